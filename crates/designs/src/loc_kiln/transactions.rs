//! Transactions: the window, from TxBegin to retirement.

use model::design::{Below, Progress, Tx};
use model::units::{CoreId, Cycle, Line};

use super::{LocKiln, LocKilnEvent};
use crate::loc::entry::Place;
use crate::loc::speculation::{Speculates, Transactions};
use crate::loc::window::{Composed, Issue, Transaction, Version};

/// What a core's running transaction stored to.
#[derive(Default)]
pub struct StoredLines {
    /// The lines, in order of the first stores.
    lines: Vec<Line>,
    /// The last of them that it stored to.
    last: Option<Line>,
}

impl Speculates<LocKilnEvent> for LocKiln {
    fn transactions(&mut self) -> &mut Transactions {
        &mut self.transactions
    }

    fn is_short(&self) -> bool {
        self.last.is_crowded()
    }

    /// Lets the entries leave the first level for the last, a line each `flush_interval`.
    fn drain(&mut self, end: Place, ready: Cycle, below: &mut Below<LocKilnEvent>) {
        let Some(mut entries) = self.transactions.drain(end) else { return };
        let down = self.walk + self.params.llc_write;
        let mut turn = ready + down;
        for Composed { by, entry, data } in entries.drain(..) {
            let arrival = turn.max(self.transactions.window.get(by).left + down);
            // Pairs and a TxCnt are no lines, and keep none waiting.
            turn += if data.is_some() { self.params.flush_interval } else { 0 };
            self.send(by, entry, data, arrival, below);
        }
        self.transactions.composed = entries;
    }
}

impl LocKiln {
    /// Marks a line to which a transaction stores.
    pub(super) fn mark(&mut self, core: CoreId, line: Line, below: &mut Below<LocKilnEvent>) {
        let state = &mut self.running[core];
        if state.last == Some(line) {
            return;
        }
        state.last = Some(line);
        if self.last.own(line, core) {
            self.running[core].lines.push(line);
            below.caches.pinned.insert(line);
        }
    }

    /// TxEnd: gives the transaction its place, and makes its lines versions.
    pub(super) fn end(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        let core = tx.core;
        self.running[core].last = None;
        let mut lines = std::mem::take(&mut self.running[core].lines);
        let stored = !lines.is_empty();
        if stored {
            self.become_versions(tx, &lines, below);
            // Slots of the overflow area may be free now.
            self.tell_all(tx.at, below);
        }
        // The next transaction takes over the list's memory, and nothing of its contents.
        lines.clear();
        self.running[core].lines = lines;
        self.finish(tx, stored, tx.stored.max(tx.at), below)
    }

    /// TxAbort: drops the transaction's versions. The last level has none of them, and in the
    /// overflow area none counts.
    pub(super) fn revoke(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        let core = tx.core;
        let state = &mut self.running[core];
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
        let transaction = Transaction::new((tx.core, tx.stored), None, 0, 0);
        let place = self.transactions.window.push(transaction);
        for &line in lines {
            let version = Version { line, data: below.line(line), state: Issue::Kept };
            self.transactions.add(place, version, self.last.end(line, tx.core));
        }
    }

    /// Notes that an entry of a transaction is on its way.
    pub(super) fn expect(&mut self, by: Place) {
        let window = &mut self.transactions.window;
        if by >= window.first {
            window.get_mut(by).expected += 1;
        }
    }

    /// Notes that an entry of a transaction is where it survives. With the last one the end of the
    /// durable prefix may move, and then the register is written.
    pub(super) fn arrived(&mut self, by: Place, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let Transactions { window, rules, .. } = &mut self.transactions;
        if by < window.first {
            return;
        }
        window.get_mut(by).expected -= 1;
        if window.get(by).expected > 0 {
            return;
        }
        let end = window.settled(|transaction| transaction.expected == 0, rules);
        if self.settle(end, at, below) {
            below.at(at + self.write, LocKilnEvent::Retire(end));
        }
    }

    /// Retires the transactions before `end`, since the register is written.
    pub(super) fn retire(&mut self, end: Place, at: Cycle, below: &mut Below<LocKilnEvent>) {
        if end <= self.retired {
            return;
        }
        self.retired = end;
        self.notes.retain(|&(by, _)| by >= end);
        let window = &mut self.transactions.window;
        for version in window.versions_before(end) {
            if self.last.retire(version.line, end) {
                below.caches.pinned.remove(&version.line);
            }
        }
        drop(window.truncate(end));
        self.bring_home(end, at, below);
        self.tell_all(at, below);
    }
}
