//! When stores ask for their lines and leave the core, and the waits until they have left.

use super::Core;
use crate::meters::Stall;
use crate::units::{Cycle, Word};

impl Core {
    /// Makes the newest store take effect, and leave, no earlier than `until`. It keeps its place
    /// in the store queue until then, and others see the core's next access after it.
    pub fn hold_store(&mut self, until: Cycle, stall: Stall) {
        if until > self.clock() {
            self.hold_until(until, stall);
            self.delay_store(until);
        }
    }

    /// Takes the newest store, of bits of a word whose line the first level has, into the store
    /// queue.
    #[inline]
    pub fn store_hit(&mut self, word: Word, mask: u64) {
        let mut ready = self.retired.max(self.clock().0);
        if self.misses_until > ready {
            ready = ready.max(self.arrival(word.line()));
        }
        self.stored = self.stored.max(ready) + self.store_time;
        self.stores.push(self.stored, word, mask);
    }

    /// Takes the newest store, which goes past the caches to a write-combining buffer, into the
    /// store queue.
    pub fn store_past(&mut self) {
        self.stored = (self.stored + 1).max(self.retired.max(self.clock().0) + 1);
        self.stores.push_other(self.stored);
    }

    /// Makes the newest store leave no earlier than `at`, since its address is not translated, or
    /// there is no room for it, before.
    pub fn delay_store(&mut self, at: Cycle) {
        if at.0 > self.stored {
            self.stored = at.0;
            self.stores.delay_newest(at.0);
        }
    }

    /// Returns when a store that misses asks for its line, if its miss begins at `start`: at once,
    /// unless the core is in order or has one store in flight at a time. It then asks when its turn
    /// comes and a miss register is free.
    pub fn asks(&self, start: Cycle) -> Cycle {
        if self.in_order || self.one_store {
            let retired = self.retired.max(self.clock().0);
            let turn = start.0.max(self.stored).max(retired);
            Cycle(self.misses.first_free(turn).1)
        } else {
            start
        }
    }

    /// Takes the newest store, of bits of a word, which misses from `start` on, into the store
    /// queue. It [asks](Core::asks) for its line at `asked`, and the line is there at `done`.
    pub fn store_miss(
        &mut self,
        place: usize,
        (word, mask): (Word, u64),
        start: Cycle,
        asked: Cycle,
        done: Cycle,
    ) {
        let line = word.line();
        let arrives = if self.in_order {
            done
        } else {
            // A load of the line asks for it by itself, before the store's turn if one store is in
            // flight at a time; or a load has asked already, and the line is still on its way.
            (start + done.since(asked)).max(Cycle(self.arrival(line)))
        };
        if self.in_order || self.one_store {
            let front = self.front;
            self.store_misses.retain(|&(_, until)| until > front);
            self.store_misses.push_back((asked.0, done.0));
            self.comes(line, arrives);
        } else {
            self.take_miss(place, line, arrives);
        }
        let retired = self.retired.max(self.clock().0);
        let leaves = arrives.0.max(retired).max(self.stored + 1);
        self.stored = if self.one_store { leaves.max(done.0) } else { leaves };
        self.stores.push(self.stored, word, mask);
    }

    /// When everything dispatched so far has retired.
    pub fn all_retired(&self) -> Cycle {
        Cycle(self.clock().0.max(self.retired))
    }

    /// When everything dispatched so far has retired and every store has left.
    pub fn drained(&self) -> Cycle {
        self.all_retired().max(Cycle(self.stored))
    }

    /// When the next flush may leave: after everything before it, one flush a cycle.
    pub fn may_flush(&self) -> Cycle {
        self.drained().max(Cycle(self.flushes_from))
    }

    /// Returns when a flush that has dispatched leaves.
    pub fn flushed(&mut self) -> Cycle {
        let leaves = self.may_flush();
        self.flushes_from = leaves.0 + 1;
        leaves
    }

    /// Gives a flush that waited for room the place in the store queue that it had meanwhile. If
    /// the queue is full, what follows dispatches when there is room.
    pub fn queue_flush(&mut self) {
        self.make_room_for_store();
        self.stores.push_other(self.drained().0);
    }

    /// Waits until everything has retired and every store has left, and dispatches nothing before.
    pub fn drain(&mut self, stall: Stall) {
        let drained = self.drained();
        self.wait(drained, stall);
        self.front = self.front.max(drained.0);
    }

    /// Drains at the border of a transaction, which is no fence, so the wait is counted for the
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
