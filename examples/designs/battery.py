"""Words wait in a log that a battery keeps, until their lines come home by themselves or it fills.

Every store sends the old and new value of its word to a log buffer of its core in the memory
controller. A transaction is durable when its commit message is there. Nothing is written for it
then: its logs stay until the line has reached memory, evicted by the caches or, when more than half
of the buffer is taken, written back for it. So a word that many transactions change is written
once. Of a transaction that fills the buffer, the oldest words have their undo records spilled.

    word 0, 1, 7   of a core's log: spilled records, saved records, and (core 0) whether it is valid
    then           spilled records (address, old), and behind them what the battery saves (address,
                   value, place of its commit among all or 0: then the value is the old one)
"""

from collections import deque
from itertools import chain

from indelible.design import LINE, WAIT, WORD, Design, Home, Param, Structure

SPILLED, SAVED, VALID = 2 * WORD, 3 * WORD, 7 * WORD


class Log:
    """A word that a transaction has changed."""

    def __init__(self, store, stamp, arrival):
        self.address, self.line = store.address, store.line
        self.old, self.new = store.old, store.new
        self.stamp, self.arrival = stamp, arrival  # of its last store, among those of all cores
        self.commit = 0  # the place of its transaction's commit among all; 0 while that runs
        self.carried = self.saved = False  # memory has its new value; its undo record


class Core:
    """The buffer of a core, and the way to it."""

    def __init__(self, base):
        self.base, self.arrival, self.waits = base, 0, False
        self.coming, self.logs = deque(), []
        self.spilled, self.batch, self.unsaved = 0, [], 0  # records; those on their way, in lines


class Battery(Design):
    """Words wait in a log kept by a battery until their lines come home."""

    granularity = "word"
    params = {
        "entries": Param(40, 2, 4096, "Logs of a core's buffer.", tight=[4, 16, 2, 8]),
        "batch": Param(8, 1, 64, "Logs that an overflow spills at once.", tight=[3, 1]),
    }
    rules = {
        "line_after_logs": "A line does not overtake the logs of its words.",
        "commit_after_logs": "A commit message does not overtake the logs of its transaction.",
        "merge_own": "A store joins a log of its own transaction only.",
        "merge_clears": "With another store, memory has not the new value of a log any more.",
        "carry_older": "A line that comes home carries only stores from before it left.",
        "carry_all_cores": "A line that comes home carries the logs of all cores.",
        "line_before_leaving": "A spilled log leaves when memory has its new value.",
        "record_before_leaving": "A spilled log leaves when memory has its undo record.",
        "commit_drops_spilled": "The spilled records of a transaction end with it.",
        "undo_newest_first": "Of a word that was spilled and logged again the oldest value counts.",
        "redo_in_order": "Recovery repeats commits in the order of all cores.",
        "fence_before_log_is_dropped": "What recovery writes is durable before logs are dropped.",
    }

    def __init__(self, setup):
        self.cores = [Core(base) for base in setup.shape.logs]
        self.stamps = self.commits = 0
        self.sent = {}  # of lines that are being written back: the stores that they carry
        names = "logs", "merged", "ignored", "written_back", "spilled", "full", "logs_max"
        self.counts = dict.fromkeys(names, 0)

    def begin(self, tx, below):
        if LINE + (SPILLED + SAVED) * self.params.entries > self.shape.log_bytes:
            below.give_up("the buffer does not fit the log: raise pm.log_size, or lower entries")

    def store(self, store, below):
        if store.tx is None or store.old == store.new:
            self.counts["ignored"] += store.tx is not None
            return None
        core = self.cores[store.core]
        self.stamps += 1
        core.arrival = max(core.arrival, store.leaves + self.shape.path)
        log = Log(store, self.stamps, core.arrival)
        core.coming.append(log)
        below.at(log.arrival, ("log", store.core, log))
        # Every log on its way has a place in the buffer: who takes the last one waits.
        core.waits = len(core.logs) + len(core.coming) >= self.params.entries
        self.counts["logs"] += 1
        self.counts["full"] += core.waits
        return WAIT if core.waits else None

    def commit(self, tx, below):
        behind_logs = self.rules.commit_after_logs
        below.at((tx.stored if behind_logs else tx.at) + self.shape.path, ("commit", tx.core))
        return WAIT

    def evict(self, evict, below):
        return Home(self.after_logs(evict.at, evict.line), ("home", evict.line, self.stamps))

    def after_logs(self, at, line):
        """Return when a line may leave the caches so that the logs of its words are there first."""
        coming = [log.arrival for core in self.cores for log in core.coming if log.line == line]
        if not coming or not self.rules.line_after_logs:
            return at
        return max(at, max(coming) - self.shape.path + 1)

    def event(self, at, event, below):
        what, *rest = event
        getattr(self, "on_" + what)(at, below, *rest)

    def on_log(self, at, below, number, log):
        core = self.cores[number]
        core.coming.popleft()
        joins = [
            other
            for other in core.logs
            if other.address == log.address and not (other.commit and self.rules.merge_own)
        ]
        if joins:
            joins[-1].new, joins[-1].stamp = log.new, log.stamp
            joins[-1].carried &= not self.rules.merge_clears
            self.counts["merged"] += 1
        else:
            core.logs.append(log)
            self.counts["logs_max"] = max(self.counts["logs_max"], len(core.logs))
        self.settle(number, at, below)

    def on_commit(self, at, below, number):
        core = self.cores[number]
        self.commits += 1
        for log in core.logs:
            log.commit = log.commit or self.commits
        if self.rules.commit_drops_spilled:
            core.spilled = 0
        below.wake(number, at + self.shape.path)
        self.settle(number, at, below)

    def on_home(self, at, below, line, left):
        """Memory has what a line was when so many stores had been made."""
        if self.sent.get(line) == left:
            del self.sent[line]
        lines = [[log for log in core.logs if log.line == line] for core in self.cores]
        if not self.rules.carry_all_cores:
            lines = [max(lines, key=lambda logs: max([log.stamp for log in logs], default=0))]
        for log in chain(*lines):
            log.carried |= log.stamp <= left or not self.rules.carry_older
        for number in range(len(self.cores)):
            self.settle(number, at, below)

    def on_saved(self, at, below, number):
        """Memory has a line of spilled records; with the last one, all of them count."""
        core = self.cores[number]
        core.unsaved -= 1
        if core.unsaved == 0:
            batch, core.batch = core.batch, []
            if not batch[0].commit:
                core.spilled += len(batch)
                for log in batch:
                    log.saved = True
            self.settle(number, at, below)

    def settle(self, number, at, below):
        """Forget what is durable, and make more so if the buffer fills."""
        core = self.cores[number]
        core.logs = [log for log in core.logs if not self.may_leave(log)]
        taken = len(core.logs) + len(core.coming)
        if core.waits and taken < self.params.entries:
            core.waits = False
            below.wake(number, at + self.shape.path)
        if 2 * taken <= self.params.entries:
            return
        committed = [log for log in core.logs if log.commit]
        if not committed and not core.waits:
            return
        oldest = (committed or core.logs)[: self.params.batch]
        for log in oldest:
            self.write_back(log, at, below)
        if not committed and not core.batch:
            self.spill(core, number, [log for log in oldest if not log.saved], at, below)

    def may_leave(self, log):
        """Return whether memory has all of a log that recovery may need."""
        if log.carried and log.commit:
            return True
        carried = log.carried or (log.saved and not self.rules.line_before_leaving)
        saved = log.saved or (log.carried and not self.rules.record_before_leaving)
        return carried and saved

    def write_back(self, log, at, below):
        if log.carried or self.sent.get(log.line, 0) >= log.stamp:
            return
        self.sent[log.line] = self.stamps
        home = ("home", log.line, self.stamps)
        leaves = self.after_logs(at + self.shape.path, log.line)
        if below.write_back(leaves, log.line, tell=home):
            self.counts["written_back"] += 1
        else:
            below.at(at, home)

    def spill(self, core, number, logs, at, below):
        words = [word for log in logs for word in (log.address, log.old)]
        place = core.base + LINE + SPILLED * core.spilled
        end = place + SPILLED * len(logs) + SAVED * self.params.entries
        if end > core.base + self.shape.log_bytes:
            below.give_up("a transaction does not fit the log: raise pm.log_size")
        elif logs:
            core.batch = logs
            core.unsaved = below.log(at, place, words, tell=("saved", number))
            self.counts["spilled"] += len(logs)

    def power_loss(self, gasp):
        for core in self.cores:
            place = core.base + LINE + SPILLED * core.spilled
            # Where caches survive, stores survive whose logs are on their way.
            logs = core.logs + (list(core.coming) if self.shape.caches_survive else [])
            for index, log in enumerate(logs):
                value = log.new if log.commit else log.old
                gasp.save_words(place + SAVED * index, [log.address, value, log.commit])
            gasp.save_words(core.base, [core.spilled, len(logs)])
        gasp.save_words(self.cores[0].base + VALID, [1])

    @classmethod
    def recover(cls, image, setup):
        valid = setup.shape.logs[0] + VALID
        if not image.word(valid):
            return
        undo, redo = [], []
        for base in setup.shape.logs:
            spilled, saved = image.words(base, 2)
            place = base + LINE
            own = [image.words(place + SPILLED * index, 2) for index in range(spilled)]
            for index in range(saved):
                record = image.words(place + SPILLED * spilled + SAVED * index, 3)
                if record[2]:
                    redo.append(record)
                else:
                    own.append(record[:2])
            undo += own[::-1] if setup.rules.undo_newest_first else own
        if setup.rules.redo_in_order:
            redo.sort(key=lambda record: record[2])
        for address, value, *_ in redo + undo:
            image.set_word(address, value)
        if setup.rules.fence_before_log_is_dropped:
            image.fence()
        image.set_word(valid, 0)

    @classmethod
    def hardware(cls, setup):
        cores, entries = setup.shape.cores, setup.params.entries
        found = [
            Structure(
                "log (address, old, new, commit, 2 bits)",
                bits=48 + 64 + 64 + 40 + 2,
                count=entries * cores,
                kept_by="battery",
            ),
            Structure("records spilled and saved", 128, cores, kept_by="battery"),
            Structure("valid", 64, 1, kept_by="battery"),
            Structure("comparator", 64, entries * cores),
        ]
        if setup.shape.caches_survive:
            name = "log under way (kept because the caches are)"
            found.append(Structure(name, 48 + 64, entries * cores, kept_by="battery"))
        return found

    def counters(self):
        return self.counts
