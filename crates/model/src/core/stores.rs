//! When stores ask for their lines and leave the core, and who waits until they have.

use super::Core;
use crate::meters::Stall;
use crate::units::{Cycle, Line};

impl Core {
    /// The newest store takes effect, and leaves, at `until`: it keeps its place in the store queue
    /// so long, and what others see next comes after it.
    pub fn hold_store(&mut self, until: Cycle, stall: Stall) {
        if until > self.clock() {
            self.hold_until(until, stall);
            self.delay_store(until);
        }
    }

    /// A store that hits the first level.
    #[inline]
    pub fn store_hit(&mut self, line: Line) {
        let mut ready = self.retired.max(self.clock().0);
        if self.misses_until > ready {
            ready = ready.max(self.arrival(line));
        }
        self.stored = self.stored.max(ready) + self.store_time;
        self.stores.push_back(self.stored);
    }

    /// A store past the caches: it leaves to a write-combining buffer.
    pub fn store_past(&mut self) {
        self.stored = (self.stored + 1).max(self.retired.max(self.clock().0) + 1);
        self.stores.push_back(self.stored);
    }

    /// The newest store leaves at `at` at the earliest: until then the core does not know where to,
    /// or there is no room for it.
    pub fn delay_store(&mut self, at: Cycle) {
        if at.0 > self.stored {
            self.stored = at.0;
            *self.stores.back_mut().expect("a store has dispatched") = at.0;
        }
    }

    /// When a store that misses asks for its line, if its miss begins at `start`: at once, but in
    /// order, or where one store is in flight at a time, when its turn comes.
    pub fn asks(&self, start: Cycle) -> Cycle {
        if self.in_order || self.one_store {
            let retired = self.retired.max(self.clock().0);
            Cycle(start.0.max(self.stored).max(retired))
        } else {
            start
        }
    }

    /// A store that missed, from `start` on: it [asks](Core::asks) for its line at `asked`, which
    /// is there at `done`.
    pub fn store_miss(
        &mut self,
        place: usize,
        line: Line,
        start: Cycle,
        asked: Cycle,
        done: Cycle,
    ) {
        let arrives = if self.in_order {
            done
        } else {
            // A load that wants the line asks for it itself, before the store's turn if one store
            // is in flight at a time; or it has asked before, and the line is not here yet.
            (start + done.since(asked)).max(Cycle(self.arrival(line)))
        };
        self.take_miss(place, line, arrives);
        let retired = self.retired.max(self.clock().0);
        let leaves = arrives.0.max(retired).max(self.stored + 1);
        self.stored = if self.one_store { leaves.max(done.0) } else { leaves };
        self.stores.push_back(self.stored);
    }

    /// When everything dispatched so far has retired.
    pub fn all_retired(&self) -> Cycle {
        Cycle(self.clock().0.max(self.retired))
    }

    /// When everything dispatched so far has retired and every store has left.
    pub fn drained(&self) -> Cycle {
        self.all_retired().max(Cycle(self.stored))
    }

    /// When a flush that has dispatched leaves: behind everything before it, and one in a cycle.
    pub fn flushed(&mut self) -> Cycle {
        let leaves = self.drained().max(Cycle(self.flushes_from));
        self.flushes_from = leaves.0 + 1;
        leaves
    }

    /// Waits until everything has retired and every store has left; nothing passes.
    pub fn drain(&mut self, stall: Stall) {
        let drained = self.drained();
        self.wait(drained, stall);
        self.front = self.front.max(drained.0);
    }

    /// Does the same at the border of a transaction, which is no fence: what it waits for are the
    /// loads, and then the stores, before it.
    pub fn drain_at_border(&mut self) {
        self.wait(self.all_retired(), Stall::LoadMiss);
        self.drain(Stall::StoreBuffer);
    }

    /// When every store dispatched so far has left.
    pub fn stored(&self) -> Cycle {
        Cycle(self.stored.max(self.clock().0))
    }
}
