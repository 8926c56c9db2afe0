//! Transactions: TxIDs, the status table, and the commit.

use std::collections::VecDeque;

use model::design::{Below, Progress, Store, Tx};
use model::units::{CoreId, Cycle, Line, PerCore};

use super::lines::Owner;
use super::{Kiln, KilnEvent, WriteOut};

/// The transactions of the cores, and the status table.
pub struct Transactions {
    cores: PerCore<Core>,
    rows: Vec<Row>,
    free: VecDeque<u16>,
    /// Cores that wait for a TxID, the first one first.
    waiting: VecDeque<CoreId>,
}

/// A row of the status table, with what is kept beside it.
#[derive(Debug, Default)]
struct Row {
    /// The status: whether the transaction that had the TxID last is committed.
    committed: bool,
    /// The lines that have the TxID, from the FIFOs.
    lines: Vec<Line>,
}

/// A core's transaction.
#[derive(Debug, Default)]
struct Core {
    id: Option<u16>,
    /// The TxID under which it has ended, until its status is told to change.
    ends: Option<u16>,
    /// The line that it stored to last.
    last: Option<Line>,
    /// How many versions and slots are on their way.
    expected: u64,
    /// When the last level has been told of all of its lines.
    ready: Cycle,
}

impl Transactions {
    pub fn new(cores: u8, ids: u64) -> Transactions {
        let row = |_| Row { committed: true, lines: Vec::new() };
        Transactions {
            cores: PerCore::new(cores, |_| Core::default()),
            rows: (0..ids).map(row).collect(),
            free: (0..ids as u16).collect(),
            waiting: VecDeque::new(),
        }
    }

    pub fn is_committed(&self, id: u16) -> bool {
        self.rows[usize::from(id)].committed
    }

    /// The status table.
    pub fn statuses(&self) -> impl Iterator<Item = bool> {
        self.rows.iter().map(|row| row.committed)
    }

    /// Notes that a version or a slot of a core's transaction is on its way.
    pub fn expect(&mut self, core: CoreId) {
        self.cores[core].expected += 1;
    }

    fn give_id(&mut self, core: CoreId) -> bool {
        let Some(id) = self.free.pop_front() else { return false };
        self.rows[usize::from(id)].committed = false;
        self.cores[core].id = Some(id);
        true
    }
}

impl Kiln {
    /// Gives a transaction that begins a TxID, or lets its core wait for one.
    pub(super) fn take_id(&mut self, tx: &Tx) -> Progress {
        if self.transactions.give_id(tx.core) {
            return Progress::Done(tx.at);
        }
        self.counts.waited_for_id += 1;
        self.transactions.waiting.push_back(tx.core);
        Progress::Wait
    }

    /// Marks a line to which a transaction stores.
    pub(super) fn mark(&mut self, store: &Store, below: &mut Below<KilnEvent>) {
        let Store { core, at, .. } = *store;
        let line = store.word.line();
        let state = &mut self.transactions.cores[core];
        if state.last == Some(line) {
            return;
        }
        state.last = Some(line);
        let id = state.id.expect("a transaction has a TxID");
        if self.last.own(line, Owner { core, id }) {
            self.transactions.rows[usize::from(id)].lines.push(line);
            below.caches.pinned.insert(line);
            if self.params.write_out == WriteOut::Store {
                self.write_out(line, at + self.walk, below);
            }
        }
    }

    /// Ends a transaction: cleans its lines from the levels above into the last level.
    pub(super) fn end(&mut self, tx: &Tx, below: &mut Below<KilnEvent>) -> Progress {
        let core = tx.core;
        let state = &mut self.transactions.cores[core];
        state.last = None;
        let id = state.id.take().expect("a transaction has a TxID");
        let lines = std::mem::take(&mut self.transactions.rows[usize::from(id)].lines);
        if lines.is_empty() {
            self.release(id, tx.at, below);
            return Progress::Done(tx.at);
        }
        let owner = Owner { core, id };
        let mut arrival = tx.stored.max(tx.at) + self.walk + self.params.llc_write;
        let mut ready = arrival;
        for &line in &lines {
            if below.caches.lower(line) {
                self.send(line, Some(owner), Some(core), arrival, below);
                self.counts.cleaned += 1;
                ready = arrival;
                arrival += self.params.flush_interval;
            }
        }
        self.transactions.rows[usize::from(id)].lines = lines;
        let state = &mut self.transactions.cores[core];
        (state.ends, state.ready) = (Some(id), ready);
        if state.expected == 0 || !self.rules.status_after_lines {
            self.commit_at(core, ready, below);
        }
        Progress::Wait
    }

    /// Aborts a transaction: all levels drop what they have of it, and then the core goes on.
    pub(super) fn revoke(&mut self, tx: &Tx, below: &mut Below<KilnEvent>) -> Progress {
        let state = &mut self.transactions.cores[tx.core];
        state.last = None;
        let id = state.id.expect("a transaction has a TxID");
        let lines = self.transactions.rows[usize::from(id)].lines.len() as u64;
        if lines == 0 {
            return Progress::Done(tx.at);
        }
        // The FIFOs say which lines these are, one a cycle.
        let done = tx.stored.max(tx.at) + self.walk + lines;
        below.at(done, KilnEvent::Dropped(tx.core, id));
        Progress::Wait
    }

    /// Drops the versions of an aborted transaction, in the last level, on their way there, and in
    /// the overflow area. Its status stays what it is until then.
    pub(super) fn drop_versions(
        &mut self,
        core: CoreId,
        id: u16,
        at: Cycle,
        below: &mut Below<KilnEvent>,
    ) {
        let owner = Owner { core, id };
        for line in std::mem::take(&mut self.transactions.rows[usize::from(id)].lines) {
            let counted = match self.rules.drop_aborted {
                true => self.last.drop_pending(line, owner),
                false => Vec::new(),
            };
            if self.last.disown(line, owner) {
                below.caches.pinned.remove(&line);
            }
            for core in counted {
                self.arrived(Some(core), at, below);
            }
        }
        below.retry(core, at);
    }

    /// Notes that a version or a slot of a core's transaction is where it survives.
    pub(super) fn arrived(
        &mut self,
        counted: Option<CoreId>,
        at: Cycle,
        below: &mut Below<KilnEvent>,
    ) {
        let Some(core) = counted else { return };
        let state = &mut self.transactions.cores[core];
        state.expected -= 1;
        if state.ends.is_some() && state.expected == 0 {
            let at = at.max(state.ready);
            self.commit_at(core, at, below);
        }
    }

    /// Has a transaction's status written, since all of the transaction is where it survives at
    /// `at`.
    fn commit_at(&mut self, core: CoreId, at: Cycle, below: &mut Below<KilnEvent>) {
        let Some(id) = self.transactions.cores[core].ends.take() else { return };
        below.at(at + self.write, KilnEvent::Status(core, id));
        if !self.rules.acknowledge_after_status {
            below.wake(core, at);
        }
    }

    /// Changes the status of a transaction, which commits it.
    pub(super) fn change_status(
        &mut self,
        core: CoreId,
        id: u16,
        at: Cycle,
        below: &mut Below<KilnEvent>,
    ) {
        let state = &mut self.transactions.cores[core];
        if state.expected > 0 && self.rules.status_after_lines {
            // A line has left the last level meanwhile.
            state.ends = Some(id);
            return;
        }
        let owner = Owner { core, id };
        let row = &mut self.transactions.rows[usize::from(id)];
        row.committed = true;
        let lines = std::mem::take(&mut row.lines);
        self.bring_home(owner, at, below);
        for &line in &lines {
            if self.last.disown(line, owner) {
                below.caches.pinned.remove(&line);
            }
        }
        // The tags are changed in the background, one a cycle.
        let done = at + lines.len() as u64;
        self.transactions.rows[usize::from(id)].lines = lines;
        below.at(done, KilnEvent::Untagged(id));
        if !self.rules.reuse_after_tags {
            self.release(id, at, below);
        }
        if self.rules.acknowledge_after_status {
            below.wake(core, at);
        }
    }

    /// Takes the TxID of a committed transaction from all of its lines.
    pub(super) fn untag(&mut self, id: u16, at: Cycle, below: &mut Below<KilnEvent>) {
        if !self.rules.reuse_after_tags {
            return;
        }
        let mut lines = std::mem::take(&mut self.transactions.rows[usize::from(id)].lines);
        for line in lines.drain(..) {
            self.last.untag(line, id);
        }
        self.last.untag_slots(id);
        self.transactions.rows[usize::from(id)].lines = lines;
        self.release(id, at, below);
    }

    /// Frees a TxID, for the core that has waited longest for one.
    fn release(&mut self, id: u16, at: Cycle, below: &mut Below<KilnEvent>) {
        let row = &mut self.transactions.rows[usize::from(id)];
        row.committed = true;
        row.lines.clear();
        self.transactions.free.push_back(id);
        if let Some(core) = self.transactions.waiting.pop_front() {
            self.transactions.give_id(core);
            below.wake(core, at);
        }
    }
}
