//! Transactions: the window, from TxBegin to retirement.

use model::design::{Below, Fence, Progress, Tx};
use model::units::{CoreId, Cycle, Line, PerCore};
use slab::Slab;

use super::{LocKiln, LocKilnEvent};
use crate::loc::Drain;
use crate::loc::ended::{Ended, Wait};
use crate::loc::entry::{Entry, Place};
use crate::loc::window::{Composed, Issue, Transaction, Version, Window};

/// The transactions of the cores.
pub struct Transactions {
    cores: PerCore<Core>,
    pub window: Window,
    /// The entries that a drain sends; empty in between.
    composed: Vec<Composed>,
    /// How many entries of each transaction in the window are on their way, by its receipt.
    expected: Slab<u64>,
    /// The register: transactions before this one are retired.
    pub retired: Place,
    /// Entries without a line that have arrived, kept until their transactions are retired.
    pub notes: Vec<(Place, Entry)>,
}

/// The state of a core.
#[derive(Default)]
struct Core {
    /// Lines that its transaction stored to, in order of the first stores.
    lines: Vec<Line>,
    /// The line that it stored to last.
    last: Option<Line>,
    ended: Ended,
}

impl Transactions {
    pub fn new(cores: u8) -> Transactions {
        Transactions {
            cores: PerCore::new(cores, |_| Core::default()),
            window: Window::default(),
            composed: Vec::new(),
            expected: Slab::new(),
            retired: 0,
            notes: Vec::new(),
        }
    }

    /// Notes that an entry of a transaction is on its way.
    pub fn expect(&mut self, by: Place) {
        if by >= self.window.first {
            let receipt = self.window.get(by).receipt;
            self.expected[receipt] += 1;
        }
    }

    /// Notes that an entry of a transaction is where it survives. Returns whether all of them are.
    fn note_survivor(&mut self, by: Place) -> bool {
        if by < self.window.first {
            return false;
        }
        let expected = &mut self.expected[self.window.get(by).receipt];
        *expected -= 1;
        *expected == 0
    }
}

impl LocKiln {
    /// TxBegin: gives a transaction a place in its core's window, if there is one and the overflow
    /// area has room, or lets it wait.
    pub(super) fn take_place(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        if self.has_place(tx.core) {
            let ended = &mut self.transactions.cores[tx.core].ended;
            return Progress::Done(ended.knows_place(tx.at, self.window.sd));
        }
        let end = match self.last.is_crowded() {
            true => {
                self.counts.overflow_crowded += 1;
                self.transactions.window.next()
            }
            false => {
                self.counts.window_full += 1;
                self.transactions.cores[tx.core].ended.oldest_stored()
            }
        };
        self.drain(end, tx.at, below);
        self.transactions.cores[tx.core].ended.wait(Wait::Begin);
        Progress::Wait
    }

    fn has_place(&self, core: CoreId) -> bool {
        self.transactions.cores[core].ended.not_durable() < self.window.sd
            && !self.last.is_crowded()
    }

    /// Marks a line to which a transaction stores.
    pub(super) fn mark(&mut self, core: CoreId, line: Line, below: &mut Below<LocKilnEvent>) {
        let state = &mut self.transactions.cores[core];
        if state.last == Some(line) {
            return;
        }
        state.last = Some(line);
        if self.last.own(line, core) {
            self.transactions.cores[core].lines.push(line);
            below.caches.pinned.insert(line);
        }
    }

    /// TxEnd: gives the transaction its place, and makes its lines versions.
    pub(super) fn end(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        let core = tx.core;
        let speculative = self.window.sd > 1;
        self.transactions.cores[core].last = None;
        let mut lines = std::mem::take(&mut self.transactions.cores[core].lines);
        let stored = !lines.is_empty();
        if stored {
            self.counts.transactions += 1;
            self.become_versions(tx, &lines, below);
            // Slots of the overflow area may be free now.
            self.tell_all(tx.at, below);
        }
        // The next transaction takes over the list's memory, and nothing of its contents.
        lines.clear();
        self.transactions.cores[core].lines = lines;
        // A transaction that stored nothing is as durable as what it loaded. Without speculation
        // that is durable: the transaction that stored it kept its locks until then.
        let until = if stored || speculative { self.transactions.window.next() } else { 0 };
        self.transactions.cores[core].ended.push(tx.id, until, stored);
        let ready = tx.stored.max(tx.at);
        if speculative && self.last.is_crowded() {
            // A core that waits for room to begin drained what had ended by then, and may have a
            // lock that this core needs next.
            self.drain(self.transactions.window.next(), ready, below);
        } else if speculative {
            self.drain_if_half(core, ready, below);
        }
        if speculative || !stored {
            self.tell(core, tx.at, below);
            return Progress::Done(tx.at);
        }
        self.transactions.cores[core].ended.wait(Wait::Durable(until));
        self.drain(until, ready, below);
        Progress::Wait
    }

    /// TxAbort: drops the transaction's versions. The last level has none of them, and in the
    /// overflow area none counts.
    pub(super) fn revoke(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        let core = tx.core;
        let state = &mut self.transactions.cores[core];
        state.last = None;
        for line in std::mem::take(&mut state.lines) {
            if self.rules.drop_aborted && self.last.drop_running(line, core) {
                below.caches.pinned.remove(&line);
            }
        }
        // Slots of the overflow area may be free now.
        self.tell_all(tx.at, below);
        Progress::Done(tx.stored.max(tx.at) + self.walk)
    }

    fn become_versions(&mut self, tx: &Tx, lines: &[Line], below: &Below<LocKilnEvent>) {
        let receipt = self.transactions.expected.insert(0);
        let window = &mut self.transactions.window;
        let place = window.push(Transaction::new((tx.core, tx.stored), None, 0, receipt));
        for &line in lines {
            let version = Version { line, data: below.line(line), state: Issue::Kept };
            let number = window.push_version(version);
            if let Some(before) = self.last.end(line, tx.core, (place, number))
                && window.absorb(place, before, self.commit, &self.counting)
            {
                self.counts.coalesced += 1;
            }
        }
    }

    /// Drains everything that has ended, if half of a core's window has ended and is not drained.
    fn drain_if_half(&mut self, core: CoreId, ready: Cycle, below: &mut Below<LocKilnEvent>) {
        if self.window.drain == Drain::Oldest {
            return;
        }
        let ended = &self.transactions.cores[core].ended;
        if ended.stored_since(self.transactions.window.drained) >= self.window.sd / 2 {
            self.drain(self.transactions.window.next(), ready, below);
        }
    }

    /// TxFlush: drains everything that the core has ended, and lets the core wait for it.
    pub(super) fn flush(&mut self, fence: &Fence, below: &mut Below<LocKilnEvent>) -> Progress {
        let ended = &self.transactions.cores[fence.core].ended;
        let Some(until) = ended.newest() else {
            return Progress::Done(fence.at.max(ended.told()));
        };
        self.drain(until, fence.drained.max(fence.at), below);
        self.transactions.cores[fence.core].ended.wait(Wait::Durable(until));
        Progress::Wait
    }

    /// Drains the transactions before `end`, and those that must be drained with them. Whatever of
    /// theirs has not been sent leaves the first level from `ready` on, but not before the stores
    /// of its own transaction have left: those of other cores may still wait for their lines.
    fn drain(&mut self, end: Place, ready: Cycle, below: &mut Below<LocKilnEvent>) {
        let window = &mut self.transactions.window;
        let end = if self.counting.drain_closure { window.closure(end) } else { end };
        if end <= window.drained {
            return;
        }
        self.counts.drains += 1;
        self.counts.closure_max = self.counts.closure_max.max(end - window.drained);
        let down = self.walk + self.params.llc_write;
        let mut turn = ready + down;
        let mut entries = std::mem::take(&mut self.transactions.composed);
        window.compose(end, self.commit, &self.counting, &mut entries);
        for Composed { by, entry, data } in entries.drain(..) {
            let arrival = turn.max(self.transactions.window.get(by).left + down);
            // Pairs and a TxCnt are no lines, and keep none waiting.
            turn += if data.is_some() { self.params.flush_interval } else { 0 };
            self.send(by, entry, data, arrival, below);
        }
        self.transactions.composed = entries;
    }

    /// Notes that an entry of a transaction is where it survives.
    pub(super) fn arrived(&mut self, by: Place, at: Cycle, below: &mut Below<LocKilnEvent>) {
        if self.transactions.note_survivor(by) {
            self.advance(at, below);
        }
    }

    /// Moves the end of the durable prefix, and tells the cores that wait for that.
    fn advance(&mut self, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let Transactions { window, expected, .. } = &self.transactions;
        let is_written = |transaction: &Transaction| expected[transaction.receipt] == 0;
        let (durable, end) = (window.durable, window.settled(is_written, &self.counting));
        if end <= durable {
            return;
        }
        for place in durable..end {
            let core = self.transactions.window.get(place).core;
            self.transactions.cores[core].ended.one_is_durable(at, self.window.sd);
        }
        self.counts.durable_at_once_max = self.counts.durable_at_once_max.max(end - durable);
        self.transactions.window.durable = end;
        self.tell_all(at, below);
        below.at(at + self.write, LocKilnEvent::Retire(end));
    }

    /// Tells all cores what has become durable, and lets those begin that have a place.
    pub(super) fn tell_all(&mut self, at: Cycle, below: &mut Below<LocKilnEvent>) {
        for core in (0..self.transactions.cores.cores()).map(CoreId) {
            self.tell(core, at, below);
        }
    }

    /// Tells a core which of its transactions are durable, and wakes it if it waits for that.
    fn tell(&mut self, core: CoreId, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let durable = self.transactions.window.durable;
        let has_place = self.has_place(core);
        let ended = &mut self.transactions.cores[core].ended;
        if let Some(id) = ended.forget_durable(durable, at) {
            below.durable(core, id, at);
        }
        if ended.goes_on(durable, has_place) {
            below.wake(core, at);
        } else if ended.waits_to_begin() && self.last.is_crowded() {
            // There was room when the core began to wait, and what it drained then is not enough.
            self.drain(self.transactions.window.next(), at, below);
        }
    }

    /// Retires the transactions before `end`, since the register is written.
    pub(super) fn retire(&mut self, end: Place, at: Cycle, below: &mut Below<LocKilnEvent>) {
        if end <= self.transactions.retired {
            return;
        }
        self.transactions.retired = end;
        self.transactions.notes.retain(|&(by, _)| by >= end);
        let Transactions { window, expected, .. } = &mut self.transactions;
        for version in window.versions_before(end) {
            if self.last.retire(version.line, end) {
                below.caches.pinned.remove(&version.line);
            }
        }
        for transaction in window.truncate(end) {
            expected.remove(transaction.receipt);
        }
        self.bring_home(end, at, below);
        self.tell_all(at, below);
    }
}
