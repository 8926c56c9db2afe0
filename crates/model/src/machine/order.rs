//! What puts a machine's stores in order: transactions, fences and locks.

use crate::core::Holder;
use crate::design::{Abort, Design, Durability, Fence, FenceKind, Progress, Tx};
use crate::event::Event;
use crate::machine::Machine;
use crate::timeline::Happening;
use crate::units::{CoreId, Cycle, TxId, Word};
use crate::workload::{Flush, LockId};

impl<D: Design> Machine<D> {
    pub(super) fn tx(&self, id: CoreId) -> Tx {
        let core = &self.cores[id];
        let number = core.tx.unwrap_or(core.next_tx);
        let (at, stored) = (core.timing.clock(), core.timing.stored());
        Tx { core: id, id: number, at, stored }
    }

    /// Returns the transaction that ends. The message of its end leaves the core as a store does:
    /// when every earlier store has left, and not before every earlier load has its value.
    fn ending(&self, id: CoreId) -> Tx {
        Tx { stored: self.cores[id].timing.drained(), ..self.tx(id) }
    }

    /// Begins a transaction for the program, and returns its number.
    pub(crate) fn enter_tx(&mut self, id: CoreId) -> TxId {
        let core = &mut self.cores[id];
        let tx = core.next_tx;
        core.tx = Some(tx);
        core.next_tx = TxId(tx.0 + 1);
        core.beginning = true;
        if let Some(timeline) = &mut self.below.memory.timeline {
            timeline.begin(id, core.timing.clock());
        }
        tx
    }

    /// Begins the transaction for the design.
    pub(crate) fn begin(&mut self, id: CoreId) -> Progress {
        let tx = self.tx(id);
        self.cores[id].beginning = false;
        if let Some(probe) = &mut self.probe {
            probe.oracle.begin(id, tx.id);
        }
        let answer = self.design.begin(&tx, &mut self.below);
        self.answered("begin", tx.at, answer)
    }

    /// Notes that the program asks for its transaction to be committed.
    pub(crate) fn commit_began(&mut self, id: CoreId) {
        let tx = self.tx(id);
        let core = &mut self.cores[id];
        // A core that runs ahead asks while transactions before this one wait for their loads.
        core.commits.push_back((tx.id, core.timing.all_retired()));
        if let Some(timeline) = &mut self.below.memory.timeline {
            timeline.commit(id, tx.id, tx.at);
        }
        if let Some(probe) = &mut self.probe {
            probe.oracle.committing(id);
        }
    }

    /// Notes that the program aborts its transaction, which then ends as one that stored nothing.
    pub(crate) fn abort_began(&mut self, id: CoreId) {
        let core = &mut self.cores[id];
        core.aborted = core.tx;
        if let (Some(timeline), Some(tx)) = (&mut self.below.memory.timeline, core.tx) {
            timeline.commit(id, tx, core.timing.clock());
        }
        if let Some(probe) = &mut self.probe {
            probe.oracle.aborting(id);
        }
    }

    /// Aborts a transaction in hardware: the words that it overwrote hold their old values again,
    /// and the design is told.
    pub(crate) fn abort(&mut self, id: CoreId, overwritten: &[(Word, u64)], by: Abort) -> Progress {
        for &(word, old) in overwritten.iter().rev() {
            self.below.view.set_word(word, old);
        }
        let tx = self.ending(id);
        let answer = self.design.abort(&tx, by, &mut self.below);
        self.answered("abort", tx.at, answer)
    }

    pub(crate) fn commit(&mut self, id: CoreId) -> Progress {
        let tx = self.ending(id);
        let answer = self.design.commit(&tx, &mut self.below);
        self.counts.transactions.commits += 1;
        self.cores[id].tx = None;
        self.answered("commit", tx.at, answer)
    }

    /// Keeps the stores behind a fence or commit back until the time that its hook answered.
    pub(crate) fn hold(&mut self, id: CoreId, hook: &'static str, progress: Progress, by: Holder) {
        let core = &mut self.cores[id];
        let done = match progress {
            Progress::Done(at) => Some(at),
            Progress::Wait => core.woken.take(),
        };
        let (now, ends) = (core.timing.clock(), core.timing.drained());
        core.timing.hold(done, by);
        if done.is_none() {
            core.unanswered = Some((hook, now));
        }
        match (by, done) {
            // A commit that waits for nothing ends the transaction when its stores have left.
            (Holder::Commit, Some(at)) if at <= now => self.acknowledge(id, ends),
            (Holder::Commit, Some(at)) => {
                self.below.agenda.enter(at, Event::Acknowledge { core: id });
            }
            (Holder::Fence, Some(at)) if self.follows_fences() && at > now => {
                self.below.agenda.enter(at, Event::Fenced { core: id });
            }
            (Holder::Fence, Some(_)) if self.follows_fences() => self.fenced(id, now),
            _ => (),
        }
    }

    pub(super) fn follows_fences(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.follows_fences())
    }

    /// Tells the crash campaign that a fence is done, and makes a crash point if fewer images are
    /// right from now on.
    pub(super) fn fenced(&mut self, id: CoreId, at: Cycle) {
        if self.probe.as_mut().is_some_and(|probe| probe.fenced(id)) {
            self.crash_point(at);
        }
    }

    /// Notes that the world outside knows how far a program has come, and makes a crash point.
    pub(crate) fn mark(&mut self, id: CoreId) {
        let at = self.cores[id].timing.clock();
        if let Some(probe) = &mut self.probe {
            probe.marked(id);
        }
        self.crash_point(at);
    }

    /// Notes that a transaction, or its abort, is acknowledged.
    pub(super) fn acknowledge(&mut self, id: CoreId, at: Cycle) {
        let counts = &mut self.counts.transactions;
        counts.ended += 1;
        let aborted = self.cores[id].aborted.take();
        if aborted.is_some() {
            counts.aborted += 1;
            self.note_abort(id, aborted, at);
            self.cores[id].written.clear();
        } else {
            counts.write_sets.count(&mut self.cores[id].written);
        }
        if let Some(probe) = &mut self.probe {
            probe.oracle.acknowledge(id);
        }
        let committed = || self.cores[id].commits.front().map(|&(tx, _)| tx);
        if self.card.durability != Durability::Asynchronous
            && let Some(tx) = aborted.or_else(committed)
        {
            self.announce(id, tx, at);
        }
    }

    /// Tells a core that a transaction and those before it are durable.
    pub(super) fn announce(&mut self, id: CoreId, tx: TxId, at: Cycle) {
        let commits = &mut self.cores[id].commits;
        while let Some(&(other, began)) = commits.front()
            && other <= tx
        {
            commits.pop_front();
            // When no program runs any more, none could tell anybody.
            if self.usage.is_none() {
                let latency = &mut self.counts.transactions.commit_latency;
                latency.saturating_record(at.since(began).max(1));
            }
            if let Some(timeline) = &mut self.below.memory.timeline {
                timeline.span(began, at, Happening::Commit(id, other));
            }
        }
        if let Some(probe) = &mut self.probe {
            probe.announced(at, id, tx, self.below.memory.durable());
            self.crash_point(at);
        }
    }

    /// Whether a thread that has come to a store, or to the border of a transaction, is to move to
    /// another core first.
    #[inline]
    pub(crate) fn moves_now(&mut self, id: CoreId) -> bool {
        let Some(left) = &mut self.cores[id].stays_for else { return false };
        *left -= 1;
        *left == 0
    }

    /// Moves a thread, whose core has nothing under way, to the idle core, and returns when it goes
    /// on. The lines that it had in its caches stay behind. A core number stands for a thread, so
    /// the two cores swap their numbers.
    pub(crate) fn migrate(&mut self, id: CoreId) -> Cycle {
        let idle = CoreId(self.cores.cores());
        let at = self.cores[id].timing.clock();
        self.send_all_combined(id, at);
        self.below.caches.rename(id, idle);
        if self.walks {
            self.below.tlbs.rename(id, idle);
        }
        let config = &self.below.shape.config;
        self.cores[id].stays_for = Some(config.core.migrate);
        self.counts.migrations += 1;
        at + config.cycles(config.core.t_switch)
    }

    /// Returns the current transaction of a core.
    pub(crate) fn current_tx(&self, id: CoreId) -> Option<TxId> {
        self.cores[id].tx
    }

    pub(crate) fn fence(&mut self, id: CoreId, kind: FenceKind) -> Progress {
        let timing = &mut self.cores[id].timing;
        let at = timing.clock();
        let is_flush = matches!(kind, FenceKind::Flush(..)) && self.has_flushes;
        let drained = if is_flush { timing.flushed() } else { timing.drained() };
        if let FenceKind::Flush(line, ..) = kind {
            self.send_combined_line(id, line);
        } else {
            if let Some(epochs) = &mut self.epochs {
                epochs.order(id, at);
            }
            self.send_all_combined(id, drained);
        }
        if let Some(probe) = &mut self.probe {
            probe.fence(id, kind);
        }
        self.note_fence(id, kind, at);
        let kind = match kind {
            FenceKind::Flush(line, class, Flush::WriteBack) if !self.clwb_retains => {
                FenceKind::Flush(line, class, Flush::Evict)
            }
            kind => kind,
        };
        let evicted = match kind {
            FenceKind::Flush(line, _, Flush::Evict | Flush::EvictInOrder) => Some(line),
            _ => None,
        };
        let evicted = evicted.filter(|line| self.below.caches.holds(*line));
        let fence = Fence { core: id, kind, at, drained };
        let answer = self.design.fence(&fence, &mut self.below);
        if let Some(line) = evicted.filter(|line| !self.below.caches.holds(*line)) {
            self.cores[id].timing.drops(line, drained);
        }
        self.answered("fence", at, answer)
    }

    /// Makes later stores wait for a flush that has dispatched, where one store is in flight at a
    /// time: the next store or flush then leaves when this flush is answered.
    pub(crate) fn hold_stores(&mut self, id: CoreId) {
        let timing = &self.cores[id].timing;
        let sent = timing.drained();
        if !timing.sends_one_store() || !timing.is_settled() {
            return;
        }
        match self.below.room_to_flush(id, 1, sent) {
            Some(at) if at <= sent => (),
            answered => self.cores[id].timing.hold_stores(answered),
        }
    }

    /// Returns when the lines that a core flushed, or stored past the caches, are durable: a locked
    /// operation is a fence for them.
    pub(crate) fn fence_before_lock(&mut self, id: CoreId) -> Progress {
        let at = self.cores[id].timing.clock();
        self.send_all_combined(id, at);
        self.below.fence(id, at)
    }

    /// Takes a lock behind the fence of its locked operation, and returns since when the lock was
    /// free. If it is not free, the caller parks the core, which has the lock when it is woken.
    pub(crate) fn lock(&mut self, id: CoreId, lock: LockId) -> Option<Cycle> {
        if let Some(probe) = &mut self.probe {
            probe.locked(id);
        }
        self.locks.take(id, lock)
    }

    /// Gives a core's lock back. The core that has waited longest then stores to the lock's line,
    /// which moves to it.
    pub(crate) fn unlock(&mut self, id: CoreId, lock: LockId) {
        let stored = self.cores[id].timing.stored();
        if let Some(next) = self.locks.release(id, lock, stored) {
            self.below.wake(next, stored);
            self.process_wakes();
        }
    }

    /// Takes a core's turn, and returns since when the turn runs, if it has begun.
    pub(crate) fn take_turn(&mut self, id: CoreId, turn: u64) -> Option<Cycle> {
        self.turns.take(id, turn)
    }

    /// Passes on the turn of a core whose stores have left it. That takes as long as moving a line
    /// from one core to another.
    pub(crate) fn pass_turn(&mut self, id: CoreId) {
        let at = self.cores[id].timing.clock() + self.below.shape.times.transfer;
        if let Some(next) = self.turns.pass(at) {
            self.below.wake(next, at);
            self.process_wakes();
        }
    }
}
