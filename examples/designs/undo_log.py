"""A store blocks until the old bytes of its line are logged (a port of the Rust design undo-log).

crates/designs/src/undo_log.rs and parts/area.rs, hook for hook: every cycle is the same.

    mark 0       the position of the first entry of the running transaction
    ring         an entry is two lines: the old bytes; address, where the next begins, checksum
"""

from indelible.design import LINE, TAKEN, WAIT, WORD, Design, Param, Structure

ENTRY = 16  # words of an entry: two lines
PIECE = 16  # the ring is a multiple of two lines
ONES = 2**64 - 1


def mix(value):
    """Return the bits of a number, mixed, as those of the original are."""
    value = value + 0x9E3779B97F4A7C15 & ONES
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & ONES
    value = (value ^ value >> 27) * 0x94D049BB133111EB & ONES
    return value ^ value >> 31


def checksum(position, address, old):
    """Return what an entry at a position holds if all of it is there."""
    total = mix(address ^ (position << 32 | position >> 32) & ONES)
    for word in old:
        total = mix(total ^ word)
    return total


class Area:
    """A line of marks, and a ring of words behind it."""

    def __init__(self, shape, core):
        self.base, self.bytes = shape.logs[core], shape.log_bytes
        words = (self.bytes - LINE) // WORD
        self.words = words - words % PIECE

    def mark(self, index):
        return self.base + index * WORD

    def at(self, position):
        return self.base + LINE + position % self.words * WORD

    def wraps(self, position, words):
        return position // self.words != (position + words) // self.words


class Pending:
    """An entry that is not durable."""

    def __init__(self, line, position, entry, writes):
        self.line, self.position, self.entry, self.writes = line, position, entry, writes


class CoreLog:
    """A core's log, and what its hardware knows of it."""

    def __init__(self, shape, core):
        self.area = Area(shape, core)
        self.tail = self.first = 0
        self.filter = {}  # lines that are known to be logged, in order of entry
        self.lines = []  # lines that were stored to in this transaction
        self.pending = []
        self.writing_back = 0


class UndoLog(Design):
    """A store blocks until the old bytes of its line are logged."""

    paper = "Ni et al., MICRO 2019 (a baseline)"
    family = "hardware logging"
    granularity = "line"
    needs = "nothing"
    params = {
        "entries": Param(
            64, 1, 4096, "Lines that one core's filter holds.", tight=[4, 4, 4, 4, 4, 1]
        ),
    }
    rules = {
        "block_until_entry_is_durable": "A store that makes an entry blocks until it is durable.",
        "eviction_after_entry": "A line that is evicted before its entry is durable waits for it.",
        "clear_filter_at_commit": "The filter forgets its lines when the transaction ends.",
        "write_back_at_commit": "A commit writes the lines of its transaction back.",
        "mark_after_lines": "The mark follows the lines.",
        "acknowledge_after_mark": "The acknowledgement follows the mark.",
        "undo_newest_first": "Recovery applies entries newest first.",
        "verify_checksum": "Recovery believes an entry only if its checksum is right.",
        "fence_before_log_is_dropped": "What recovery writes is durable before the mark moves.",
    }

    def __init__(self, setup):
        self.cores = [CoreLog(setup.shape, core) for core in range(setup.shape.cores)]
        self.held = []
        names = "entries", "filter_overflows", "log_wraps", "evictions_held", "lines_written_back"
        self.counts = dict.fromkeys(names, 0)

    def store(self, store, below):
        log, line = self.cores[store.core], store.line
        if store.tx is None or line in log.filter:
            return None
        log.filter[line] = True
        if len(log.filter) > self.params.entries:
            del log.filter[next(iter(log.filter))]
            self.counts["filter_overflows"] += 1
        log.lines.append(line)
        old = bytearray(below.line(line))
        place = store.address - line
        old[place : place + WORD] = store.old.to_bytes(WORD, "little")
        self.log(store, line, old, below)
        return WAIT if self.rules.block_until_entry_is_durable else None

    def log(self, store, line, old, below):
        log = self.cores[store.core]
        area, position = log.area, log.tail
        if position + ENTRY - log.first > area.words:
            below.give_up(
                f"a transaction of more than {area.words // ENTRY} lines does not fit the log of "
                f"{area.bytes} bytes: raise it with --set pm.log_size=..."
            )
            return
        entry = [int.from_bytes(old[at : at + WORD], "little") for at in range(0, LINE, WORD)]
        entry += [line, position + ENTRY, checksum(position, line, entry), 0, 0, 0, 0, 0]
        tell = ("logged", store.core, position)
        writes = below.log(store.leaves, area.at(position), entry, tell=tell)
        log.pending.append(Pending(line, position, entry, writes))
        log.tail += ENTRY
        self.counts["entries"] += 1
        self.counts["log_wraps"] += area.wraps(position, ENTRY)

    def commit(self, tx, below):
        log = self.cores[tx.core]
        if not log.lines:
            return tx.at
        if self.rules.clear_filter_at_commit:
            log.filter.clear()
        lines, log.lines = sorted(set(log.lines)), []
        at, tell = tx.stored, ("written", tx.core, 0)
        for line in lines:
            if self.rules.write_back_at_commit and below.write_back(at, line, tell=tell):
                log.writing_back += 1
                self.counts["lines_written_back"] += 1
            at += 1
        log.writing_back += 1
        below.at(at, tell)
        if not self.rules.mark_after_lines:
            self.mark(tx.core, tx.stored, below)
        return WAIT

    def evict(self, evict, below):
        if self.rules.eviction_after_entry and self.is_pending(evict.line):
            self.counts["evictions_held"] += 1
            self.held.append(evict)
            return TAKEN
        return None

    def event(self, at, event, below):
        what, core, position = event
        log = self.cores[core]
        if what == "logged":
            self.logged(core, position, at, below)
        elif what == "written":
            log.writing_back -= 1
            if log.writing_back == 0 and self.rules.mark_after_lines:
                self.mark(core, at + self.shape.path, below)
        else:
            log.first = position
            if self.rules.acknowledge_after_mark:
                below.wake(core, at + self.shape.path)

    def logged(self, core, position, at, below):
        log = self.cores[core]
        pending = next(one for one in log.pending if one.position == position)
        pending.writes -= 1
        if pending.writes > 0:
            return
        log.pending.remove(pending)
        if self.rules.block_until_entry_is_durable:
            below.wake(core, at + self.shape.path)
        held, self.held = self.held, []
        for evict in held:
            if self.is_pending(evict.line):
                self.held.append(evict)
            else:
                # It waits at its controller.
                line, data = evict.line, evict.data
                below.send(evict.at, line, data, kind="home_write_back", waited=at)

    def is_pending(self, line):
        return any(one.line == line for log in self.cores for one in log.pending)

    def mark(self, core, at, below):
        log = self.cores[core]
        tell = ("marked", core, log.tail)
        below.log(at, log.area.mark(0), [log.tail], tell=tell, kind="commit")
        if not self.rules.acknowledge_after_mark:
            below.wake(core, at)

    def power_loss(self, gasp):
        if not self.shape.caches_survive:
            return
        for log in self.cores:
            for pending in log.pending:
                gasp.save_words(log.area.at(pending.position), pending.entry)

    @classmethod
    def recover(cls, image, setup):
        for core in range(setup.shape.cores):
            recover(image, Area(setup.shape, core), setup.rules)

    @classmethod
    def boot(cls, image, setup):
        design = cls(setup)
        for log in design.cores:
            # The place of an entry that may be there in part is passed over.
            log.first = log.tail = image.word(log.area.mark(0)) + ENTRY
            image.set_word(log.area.mark(0), log.first)
        return design

    @classmethod
    def hardware(cls, setup):
        cores, place = setup.shape.cores, "first-level cache controller"
        entries = setup.params.entries * cores
        found = [
            Structure("filter of logged lines (line address)", 42, entries, place),
            Structure("log head and tail", 2 * 48, cores, place),
        ]
        if setup.shape.caches_survive:
            name = "entry under way (kept because the caches are)"
            found.append(Structure(name, 128 * 8, cores, place, "battery"))
        return found

    def counters(self):
        return self.counts


def recover(image, area, rules):
    """Undo what the running transaction of a core stored, and drop its entries."""
    first = end = image.word(area.mark(0))
    entries = []
    while end + ENTRY - first <= area.words:
        entry = image.words(area.at(end), ENTRY)
        address, after, total = entry[8:11]
        if after != end + ENTRY:
            break
        if rules.verify_checksum and total != checksum(end, address, entry[:8]):
            break
        entries.append((address, image.line(area.at(end))))
        end += ENTRY
    if not entries:
        return
    if rules.undo_newest_first:
        entries.reverse()
    for line, old in entries:
        image.set_line(line, old)
    if rules.fence_before_log_is_dropped:
        image.fence()
    image.set_word(area.mark(0), end)
