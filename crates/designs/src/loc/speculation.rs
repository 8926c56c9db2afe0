//! Speculative persistence: transactions that may go on before they are durable, up to SD of each
//! core, and that commit in the order in which they end. What a drain sends, and where it survives,
//! is left to the design: to a log (`loc-wal`), or to a last level (`loc-kiln`). With an SD of 1
//! nothing is speculative: every transaction that stored waits until it is durable.

use model::design::{Below, Fence, Progress, Tx};
use model::units::{CoreId, Cycle, LineData, PerCore};

use super::ended::{Ended, Wait};
use super::entry::Place;
use super::few::Few;
use super::window::{Commit, Composed, Number, Version, Window};
use super::{CountingRules, Drain};

/// The transactions of all cores that have ended.
pub struct Transactions {
    /// The speculation degree.
    sd: u64,
    drain: Drain,
    commit: Commit,
    pub rules: CountingRules,
    /// Whether the oracle hears of each that is durable: their ends do not say so.
    announces: bool,
    pub window: Window,
    pub ended: PerCore<Ended>,
    /// The entries that a drain sends; empty in between, when a drain has given the list back.
    pub composed: Vec<Composed>,
    pub counts: SharedCounts,
}

/// What the designs count alike, each under names of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedCounts {
    pub transactions: u64,
    pub coalesced: u64,
    pub drains: u64,
    pub closure_max: u64,
    pub durable_at_once_max: u64,
    /// How often a core waited to begin because its window was full, or as
    /// [`Speculates::is_short`] says.
    pub window_full: u64,
    pub short: u64,
}

impl Transactions {
    /// None so far. What is durable is announced if the design is `asynchronous`.
    pub fn new(
        cores: u8,
        (sd, drain, commit): (u64, Drain, Commit),
        rules: CountingRules,
        asynchronous: bool,
    ) -> Transactions {
        Transactions {
            sd,
            drain,
            commit,
            rules,
            announces: asynchronous,
            window: Window::default(),
            ended: PerCore::new(cores, |_| Ended::default()),
            composed: Vec::new(),
            counts: SharedCounts::default(),
        }
    }

    /// Adds a version that the transaction at `by`, which ends, left in a line, to those that have
    /// ended. It absorbs the last one before it.
    pub fn add(&mut self, by: Place, version: Version, ended: &mut Few<(Place, Number)>) {
        let number = self.window.push_version(version);
        if let Some(&before) = ended.back()
            && self.window.absorb(by, before, self.commit, &self.rules)
        {
            self.counts.coalesced += 1;
        }
        ended.push_back((by, number));
    }

    /// Issues the oldest of a line's versions that was kept until now. Returns its transaction and
    /// its bytes, if there is one.
    pub fn issue_oldest(&mut self, ended: &Few<(Place, Number)>) -> Option<(Place, LineData)> {
        let durable = self.window.durable;
        let mut undurable = ended.iter().filter(|(place, _)| *place >= durable);
        undurable.find_map(|&(place, number)| Some((place, self.window.issue(place, number)?)))
    }

    /// Drains the transactions before `end`, and those that must be drained with them. Returns what
    /// of theirs has not been sent, unless all are drained already.
    pub fn drain(&mut self, end: Place) -> Option<Vec<Composed>> {
        let end = if self.rules.drain_closure { self.window.closure(end) } else { end };
        let drained = self.window.drained;
        if end <= drained {
            return None;
        }
        self.counts.drains += 1;
        self.counts.closure_max = self.counts.closure_max.max(end - drained);
        let mut entries = std::mem::take(&mut self.composed);
        self.window.compose(end, self.commit, &self.rules, &mut entries);
        Some(entries)
    }
}

/// A design, with timed events of type `E`, whose cores each have a window.
pub trait Speculates<E: Copy> {
    fn transactions(&mut self) -> &mut Transactions;

    /// Whether there is too little of what all windows share (TxIDs, or room in the overflow area):
    /// then everything that has ended is drained, and no transaction begins.
    fn is_short(&self) -> bool;

    /// Whether there is enough of it for a transaction to begin.
    fn may_begin(&self) -> bool {
        !self.is_short()
    }

    /// Drains the transactions before `end` ([`Transactions::drain`]). Whatever of theirs has not
    /// been sent goes from `ready` on, but not before the stores of its own transaction have left:
    /// those of other cores may still wait for their lines.
    fn drain(&mut self, end: Place, ready: Cycle, below: &mut Below<E>);

    /// TxBegin: gives a transaction a place in its core's window, or lets it wait for one.
    fn take_place(&mut self, tx: &Tx, ready: Cycle, below: &mut Below<E>) -> Progress {
        let (core, is_short) = (tx.core, self.is_short());
        let has_place = self.has_place(core);
        let transactions = self.transactions();
        if has_place {
            return Progress::Done(transactions.ended[core].knows_place(tx.at, transactions.sd));
        }
        let end = if is_short {
            transactions.counts.short += 1;
            transactions.window.next()
        } else {
            transactions.counts.window_full += 1;
            transactions.ended[core].oldest_stored()
        };
        self.drain(end, ready, below);
        self.transactions().ended[core].wait(Wait::Begin);
        Progress::Wait
    }

    /// Whether a core's window, and what all windows share, have room for one more transaction.
    fn has_place(&mut self, core: CoreId) -> bool {
        let may_begin = self.may_begin();
        let transactions = self.transactions();
        may_begin && transactions.ended[core].not_durable() < transactions.sd
    }

    /// TxEnd, when the window has the transaction if it `stored`. Without speculation it is
    /// acknowledged when it is durable.
    fn finish(&mut self, tx: &Tx, stored: bool, ready: Cycle, below: &mut Below<E>) -> Progress {
        let core = tx.core;
        let transactions = self.transactions();
        let speculative = transactions.sd > 1;
        transactions.counts.transactions += u64::from(stored);
        // A transaction that stored nothing is as durable as what it loaded. Without speculation
        // that is durable: the transaction that stored it kept its locks until then.
        let until = if stored || speculative { transactions.window.next() } else { 0 };
        if stored || transactions.announces {
            transactions.ended[core].push(tx.id, until, stored);
        }
        if stored && !speculative {
            transactions.ended[core].wait(Wait::Durable(until));
            self.drain(until, ready, below);
            return Progress::Wait;
        }
        if speculative {
            self.drain_if_due(core, ready, below);
        }
        self.tell(core, tx.at, below);
        Progress::Done(tx.at)
    }

    /// Drains everything that has ended, if half of a core's window has ended and is not drained,
    /// or if there is too little of what windows share: a core that waits for it has drained what
    /// had ended by then, and may have a lock that this core needs next.
    fn drain_if_due(&mut self, core: CoreId, ready: Cycle, below: &mut Below<E>) {
        let is_short = self.is_short();
        let Transactions { sd, drain, window, ended, .. } = self.transactions();
        let is_half_full =
            *drain == Drain::Half && ended[core].stored_since(window.drained) >= *sd / 2;
        if is_short || is_half_full {
            let end = window.next();
            self.drain(end, ready, below);
        }
    }

    /// TxFlush: drains everything that the core has ended, and lets the core wait for it.
    fn flush(&mut self, fence: &Fence, ready: Cycle, below: &mut Below<E>) -> Progress {
        let ended = &self.transactions().ended[fence.core];
        let Some(until) = ended.newest() else {
            return Progress::Done(fence.at.max(ended.told()));
        };
        self.drain(until, ready, below);
        self.transactions().ended[fence.core].wait(Wait::Durable(until));
        Progress::Wait
    }

    /// Moves the end of the durable prefix, if it is behind `end`, and tells the cores, who hear of
    /// it at `heard`. Returns whether it moves.
    fn settle(&mut self, end: Place, heard: Cycle, below: &mut Below<E>) -> bool {
        let Transactions { sd, window, ended, counts, .. } = self.transactions();
        if end <= window.durable {
            return false;
        }
        for place in window.durable..end {
            ended[window.get(place).core].one_is_durable(heard, *sd);
        }
        counts.durable_at_once_max = counts.durable_at_once_max.max(end - window.durable);
        window.durable = end;
        self.tell_all(heard, below);
        true
    }

    /// Tells all cores what has become durable, and lets those begin that have a place.
    fn tell_all(&mut self, at: Cycle, below: &mut Below<E>) {
        for core in (0..self.transactions().ended.cores()).map(CoreId) {
            self.tell(core, at, below);
        }
    }

    /// Tells a core which of its transactions are durable, and wakes it if it waits for that.
    fn tell(&mut self, core: CoreId, at: Cycle, below: &mut Below<E>) {
        let has_place = self.has_place(core);
        let is_short = self.is_short();
        let Transactions { window, ended, announces, .. } = self.transactions();
        let ended = &mut ended[core];
        let last = ended.forget_durable(window.durable, at);
        if let Some(id) = last.filter(|_| *announces) {
            below.durable(core, id, at);
        }
        if ended.goes_on(window.durable, has_place) {
            below.wake(core, at);
        } else if ended.waits_to_begin() && is_short {
            // There was enough when the core began to wait, and what it drained then is not enough.
            let end = window.next();
            self.drain(end, at, below);
        }
    }
}
