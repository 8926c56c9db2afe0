"""Persist buffers with epochs, as little of them as keeps the promise: docs/design.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from indelible.design import (
    LINE,
    TAKEN,
    WAIT,
    Answer,
    Arrived,
    Below,
    Design,
    Evict,
    Fence,
    Fill,
    Gasp,
    Param,
    Setup,
    Store,
    Structure,
    Transfer,
)


@dataclass(eq=False)
class Entry:
    """A line that a core stored to in an epoch, with its bytes after the last such store."""

    number: int
    core: int
    line: int
    epoch: int
    data: bytes
    #: When the last of these stores leaves the core.
    leaves: int
    sent: bool = False
    durable: bool = False


class Epochs(Design):
    """Persist buffers that send the epochs of a core one after the other."""

    family = "ordering"
    needs = "nothing"
    model = "epoch"
    brings_stores = True
    # A buffer has each store anyway.
    has_flushes = False
    params = {
        "entries": Param(32, 1, 1024, "entries of a core's buffer, a line each", tight=(1, 2, 4)),
    }
    rules = {
        "order_opens_epoch": "what is stored after an ordering fence is of another epoch",
        "durable_waits": "a durability fence waits until the buffer is empty",
        "oldest_first": "an epoch is sent when the one before it is durable",
        "keep_what_was_sent": "an entry that was sent takes no more stores",
        "line_in_order": "an entry does not overtake an older one of its line",
        "after_who_wrote": "what a core stores is ordered behind what it saw of another",
        "drop_evictions": "a line that leaves the caches would overtake older epochs",
    }
    needless = {
        "flush_log": "a buffer has each store, without a flush",
        "flush_data": "a buffer has each store, without a flush",
        "undo:line_in_order": "of one epoch a log lets any store be durable first",
        "undo:after_who_wrote": "a log gives its locks back after a durability fence",
        "redo:line_in_order": "of one epoch a log lets any store be durable first",
        "redo:after_who_wrote": "a log gives its locks back after a durability fence",
        "count:line_in_order": "of one epoch a log lets any store be durable first",
        "count:after_who_wrote": "a log gives its locks back after a durability fence",
    }

    def __init__(self, setup: Setup) -> None:
        """Begin with empty buffers."""
        cores = setup.shape.cores
        self.buffers: list[list[Entry]] = [[] for _ in range(cores)]
        self.epochs = [0] * cores
        #: Of each core: from which epoch on it waits, and for which core up to which epoch.
        self.waits: list[list[tuple[int, int, int]]] = [[] for _ in range(cores)]
        self.writers: dict[int, int] = {}
        #: Cores whose store waits for room, and those that wait for durability, from when on.
        self.full: set[int] = set()
        self.fences: dict[int, int] = {}
        self.counts = {"entries": 0, "merged": 0, "epochs": 0, "dependences": 0}

    def store(self, store: Store, below: Below) -> Answer | None:
        """Keep the line as it is now, in the entry of this epoch if it has one."""
        core, line, buffer = store.core, store.line, self.buffers[store.core]
        if store.past_caches:
            # Its line did not come to the core, which would have told who wrote there.
            self.order_after(core, line)
        entry = next((entry for entry in reversed(buffer) if entry.line == line), None)
        may_merge = entry and not (entry.sent and self.rules.keep_what_was_sent)
        if entry and may_merge and entry.epoch == self.epochs[core]:
            entry.data, entry.leaves = below.line(line), store.leaves
            self.counts["merged"] += 1
            return None
        self.counts["entries"] += 1
        number, epoch = self.counts["entries"], self.epochs[core]
        buffer.append(Entry(number, core, line, epoch, below.line(line), store.leaves))
        self.writers[line] = core
        self.send(core, store.at, below)
        if len(buffer) <= self.params.entries:
            return None
        self.full.add(core)
        return WAIT

    def fence(self, fence: Fence, below: Below) -> int | Answer | None:
        """Open an epoch, and wait for the older ones if that is asked for."""
        if fence.kind == "order" and self.rules.order_opens_epoch:
            self.epochs[fence.core] += 1
            self.counts["epochs"] += 1
        if fence.kind != "durable" or not self.rules.durable_waits:
            return None
        if not self.buffers[fence.core]:
            return fence.drained
        self.fences[fence.core] = fence.drained
        return WAIT

    def fill(self, fill: Fill, below: Below) -> None:
        """Order a core behind who wrote what it gets; a buffer answers what memory has not."""
        self.order_after(fill.core, fill.line)

    def transfer(self, transfer: Transfer, below: Below) -> None:
        """Order a core behind who wrote what it gets."""
        self.order_after(transfer.to_core, transfer.line)

    def order_after(self, core: int, line: int) -> None:
        """Have the next epoch of the core wait for what is there of whoever wrote the line."""
        on = self.writers.get(line, core)
        if on == core or not self.rules.after_who_wrote:
            return
        until = max(entry.epoch for entry in self.buffers[on] if entry.line == line)
        self.epochs[core] += 1
        self.waits[core].append((self.epochs[core], on, until))
        self.counts["dependences"] += 1

    def evict(self, evict: Evict, below: Below) -> Answer | None:
        """Drop what leaves the caches: the buffers have it."""
        return TAKEN if self.rules.drop_evictions else None

    def may_be_sent(self, entry: Entry, missing: list[list[Entry]]) -> bool:
        """Return whether the rules let an entry be sent when these are not known to be durable."""
        older = []
        for other in missing[entry.core]:
            if other is entry:
                break
            older.append(other)
        waits = [wait for wait in self.waits[entry.core] if wait[0] <= entry.epoch]
        return not (
            (self.rules.oldest_first and any(other.epoch < entry.epoch for other in older))
            or (self.rules.line_in_order and any(other.line == entry.line for other in older))
            or any(other.epoch <= until for _, on, until in waits for other in missing[on])
        )

    def send(self, core: int, at: int, below: Below) -> None:
        """Send what may be sent of a buffer, each entry when its stores have left the core."""
        for entry in self.buffers[core]:
            if not entry.sent and self.may_be_sent(entry, self.buffers):
                entry.sent = True
                kind = "log" if entry.line >= self.shape.log_base else "data"
                leaves = max(at, entry.leaves)
                below.send(leaves, entry.line, entry.data, tell=("durable", entry), kind=kind)

    def event(self, at: int, event: tuple[str, Entry], below: Below) -> None:
        """Hear that an entry is durable, and a way later that its buffer knows."""
        what, entry = event
        if what == "durable":
            entry.durable = True
            below.at(at + self.shape.path, ("known", entry))
            return
        core, buffer = entry.core, self.buffers[entry.core]
        buffer.remove(entry)
        if self.writers[entry.line] == core and all(entry.line != other.line for other in buffer):
            del self.writers[entry.line]
        if core in self.full and len(buffer) <= self.params.entries:
            self.full.remove(core)
            below.wake(core, at)
        if core in self.fences and not buffer:
            below.wake(core, max(at, self.fences.pop(core)))
        for other in range(self.shape.cores):
            # What has come true need not be looked at again.
            self.waits[other] = [
                wait
                for wait in self.waits[other]
                if any(entry.epoch <= wait[2] for entry in self.buffers[wait[1]])
            ]
            self.send(other, at, below)

    def could_be_durable(self, below: Below, arrived: Arrived) -> list[tuple[int, bytes]]:
        """Try every order in which the buffers may be sent, whatever timing says."""
        writes = []
        if not self.rules.drop_evictions:
            dirty = [line for line in below.dirty_lines() if arrived()]
            writes = [(line, below.line(line)) for line in dirty]
        missing = [[entry for entry in buffer if not entry.durable] for buffer in self.buffers]
        # Twice: what was passed over may so arrive behind what is younger, if the rules let it.
        for entry in [entry for buffer in missing for entry in buffer] * 2:
            waits = entry in missing[entry.core]
            if waits and (entry.sent or self.may_be_sent(entry, missing)) and arrived():
                missing[entry.core].remove(entry)
                writes.append((entry.line, entry.data))
        return writes

    def power_loss(self, gasp: Gasp) -> None:
        """Save the buffers where the caches survive: they have what the caches have dropped."""
        if self.shape.caches_survive:
            left = [entry for buffer in self.buffers for entry in buffer if not entry.durable]
            for entry in sorted(left, key=lambda entry: entry.number):
                gasp.save(entry.line, entry.data)

    @classmethod
    def hardware(cls, setup: Setup) -> Iterable[Structure]:
        """Return the buffers: the bytes of each line, and its address and epoch."""
        cores, kept_by = setup.shape.cores, "battery" if setup.shape.caches_survive else "nothing"
        entries = cores * setup.params.entries
        yield Structure("persist buffer entry: data", 8 * LINE, entries, "first level", kept_by)
        yield Structure("store that waits: data", 8 * LINE, cores, "store queue", kept_by)
        yield Structure("persist buffer entry: address, epoch", 58 + 64, entries, "first level")

    def counters(self) -> Mapping[str, int]:
        """Return what has happened so far."""
        return self.counts
