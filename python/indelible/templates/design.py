"""A design to begin with: a hardware undo log that every store waits for.

A transaction's first store to a word writes the word's old value to its core's log, and waits until
that record is durable. A commit writes the transaction's lines back, and then moves the log's mark
past its records, which drops them all at once. After a power failure recovery restores the old
values in the records behind the mark.
"""

from indelible.design import LINE, TAKEN, WAIT, Design, Param, Structure

#: Bytes of a record: an address, the old value there, and the record's position plus one, which
#: tells it from records of earlier laps. Two fill a line, which survives whole or not at all.
RECORD = 32


class Area:
    """A core's log in memory: a line that holds the mark, then a ring of records."""

    def __init__(self, setup, core):
        self.mark = setup.shape.logs[core]
        room = (setup.shape.log_bytes - LINE) // LINE * LINE // RECORD
        self.records = min(room, setup.params.records // 2 * 2)

    def at(self, position):
        """Return the address of the record at a position; positions only grow."""
        return self.mark + LINE + position % self.records * RECORD


class Core:
    """The volatile state of one core's hardware, which a power failure loses."""

    def __init__(self, setup, core):
        self.area = Area(setup, core)
        self.first = 0  # position of the mark: records before it are dropped
        self.tail = 0  # position of the next record
        self.logged = set()  # words with a record of the running transaction
        self.lines = {}  # lines that the transaction stored to, oldest first
        self.pending = None  # the line whose record is not durable yet, if any
        self.unwritten = 0  # lines of the commit that are not durable yet


class Template(Design):
    """A hardware undo log: a store waits until the old value of its word is durable."""

    paper = "ours"
    granularity = "line"  # what two transactions must not share: a commit writes whole lines back
    needs = "adr"  # a write is durable when a controller has accepted it
    params = {
        "records": Param(2**20, 2, 2**20, "Records of a core's log.", tight=[64, 200]),
    }
    rules = {
        "store_waits_for_record": "A store waits until its record is durable.",
        "eviction_waits_for_record": "A line that is evicted before its record is durable waits.",
        "words_are_forgotten": "The next transaction makes records of its own.",
        "lines_before_mark": "The mark moves when the lines of the transaction are durable.",
        "mark_before_answer": "A transaction is acknowledged when the mark is durable.",
        "fence_before_log_is_dropped": "What recovery writes is durable before the mark moves.",
    }

    def __init__(self, setup):
        self.cores = [Core(setup, core) for core in range(setup.shape.cores)]
        self.held = []  # evicted lines that wait for a record
        self.counts = {"records": 0, "evictions_held": 0}

    # From the program. A hook that returns nothing lets the core go on at once.

    def store(self, store, below):
        core = self.cores[store.core]
        if store.tx is None:
            return None
        core.lines[store.line] = True
        if store.address in core.logged:
            return None
        if core.tail - core.first == core.area.records:
            below.give_up(
                f"a transaction changes more words than the log of {core.area.records} records"
                " holds: raise design.records, or pm.log_size"
            )
            return None
        core.logged.add(store.address)
        core.pending = store.line
        record = [store.address, store.old, core.tail + 1]
        place = core.area.at(core.tail)
        below.log(store.leaves, place, record, tell=("logged", store.core))
        core.tail += 1
        self.counts["records"] += 1
        return WAIT if self.rules.store_waits_for_record else None

    def commit(self, tx, below):
        core = self.cores[tx.core]
        if not core.lines:
            return tx.at
        core.unwritten = 1  # counts one more than there are until all have been sent
        for late, line in enumerate(core.lines):
            core.unwritten += below.write_back(tx.stored + late, line, tell=("written", tx.core))
        below.at(tx.stored + len(core.lines), ("written", tx.core))
        core.lines = {}
        if self.rules.words_are_forgotten:
            core.logged = set()
        if not self.rules.lines_before_mark:
            self.move_mark(tx.core, tx.stored, below)
        return WAIT

    # From the caches.

    def evict(self, evict, below):
        if self.rules.eviction_waits_for_record and self.is_pending(evict.line):
            self.held.append(evict)
            self.counts["evictions_held"] += 1
            return TAKEN
        return None  # the line goes home

    # From the passing of time: each event says that a write is durable.

    def event(self, at, event, below):
        what, number = event
        core = self.cores[number]
        if what == "logged":
            core.pending = None
            if self.rules.store_waits_for_record:
                below.wake(number, at + self.shape.path)
            self.send_held(at, below)
        elif what == "written":
            core.unwritten -= 1
            if core.unwritten == 0 and self.rules.lines_before_mark:
                self.move_mark(number, at + self.shape.path, below)
        elif what == "marked":
            core.first = core.tail
            if self.rules.mark_before_answer:
                below.wake(number, at + self.shape.path)

    def move_mark(self, number, at, below):
        core = self.cores[number]
        below.log(at, core.area.mark, [core.tail], tell=("marked", number), kind="commit")
        if not self.rules.mark_before_answer:
            below.wake(number, at)

    def is_pending(self, line):
        return any(core.pending == line for core in self.cores)

    def send_held(self, at, below):
        held, self.held = self.held, []
        for evict in held:
            if self.is_pending(evict.line):
                self.held.append(evict)
            else:
                # It waits at its controller.
                line, data = evict.line, evict.data
                below.send(evict.at, line, data, kind="home_write_back", waited=at)

    # From the power supply. Nothing of the object survives: recovery has the image alone.

    def invariants(self):
        # A campaign asks wherever it cuts the power; a sentence is a violation.
        for number, core in enumerate(self.cores):
            if core.tail - core.first > core.area.records:
                return f"core {number} has written over a record behind its mark"
        return None

    def leaves_behind(self, line):
        # If there is energy for some of the caches only, it could save a line without its record.
        return self.is_pending(line)

    @classmethod
    def recover(cls, image, setup):
        for core in range(setup.shape.cores):
            area = Area(setup, core)
            first = end = image.word(area.mark)
            undo = []
            while end - first < area.records:
                address, old, position = image.words(area.at(end), 3)
                if position != end + 1:
                    break
                undo.append((address, old))
                end += 1
            for address, old in reversed(undo):
                image.set_word(address, old)
            if undo:
                if setup.rules.fence_before_log_is_dropped:
                    image.fence()
                image.set_word(area.mark, end)

    @classmethod
    def boot(cls, image, setup):
        design = cls(setup)
        for core in design.cores:
            core.first = core.tail = image.word(core.area.mark)
        return design

    # For reports.

    @classmethod
    def hardware(cls, setup):
        cores = setup.shape.cores
        return [
            Structure("log head, tail and mark", 3 * 48, cores, "first-level cache controller"),
            Structure("words that have a record", 45, 64 * cores, "first-level cache controller"),
        ]

    def counters(self):
        return self.counts
