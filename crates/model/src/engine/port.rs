//! What a program does, through the design's library, on its core.

use super::on_core::OnCore;
use crate::control::Control;
use crate::design::{Cpu, Library, System};
use crate::meters::{Class, Stall};
use crate::units::{Cycle, Line, WORD_BYTES, Word};
use crate::workload::{Flush, LockId, Overwritten, Port, Ptr};

/// The port of a program: its core, through the design's library.
pub(super) struct ProgramPort<'y, 'c, S: System> {
    pub cpu: OnCore<'y, S::Hardware>,
    pub library: S::Library,
    pub overwritten: Overwritten,
    pub control: &'c Control,
}

impl<S: System> Port for ProgramPort<'_, '_, S> {
    #[inline]
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        self.library.load(at, &mut self.cpu)
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        self.cpu.at_a_stop();
        self.cpu.settle();
        let machine = self.cpu.machine();
        if !machine.record(self.cpu.core, at, value, mask) {
            return self.cpu.store(at, value, mask);
        }
        let word = Word::of(at.address);
        self.overwritten.keep(word, || machine.below.view.word(word));
        self.library.store(at, value, mask, &mut self.cpu);
    }

    fn store_past_caches(&mut self, at: Ptr, values: &[u64]) {
        let line = Line::of(at.address);
        self.cpu.at_a_stop();
        self.cpu.issue_store();
        let known = self.cpu.turn_to_store(line, at.known);
        let known = known.expect("a store outside of transactions may begin");
        let core = self.cpu.core;
        // No library logs such a store, so none may be in a transaction.
        assert!(
            self.cpu.machine().current_tx(core).is_none(),
            "a store past the caches is outside of transactions"
        );
        let room = loop {
            match self.cpu.machine().room_to_combine(core, line) {
                Some(room) => break room,
                None => self.cpu.park(Stall::StoreBuffer),
            }
        };
        let words = (Word::of(at.address).0..).map(Word);
        for (place, &value) in (0..).zip(values) {
            self.cpu.machine().record(core, at.plus(place * WORD_BYTES), value, u64::MAX);
        }
        let before = self.cpu.machine().store_past_caches(core, at, values, room.max(known));
        if line.is_persistent() {
            for (word, old_and_new) in words.zip(before.into_iter().zip(values.iter().copied())) {
                let progress = self.cpu.machine().tell_past_caches(core, word, old_and_new);
                self.cpu.obey_store(progress);
            }
        }
    }

    fn begin(&mut self, abortable: bool) {
        self.cpu.at_a_stop();
        self.overwritten.begin(abortable);
        self.cpu.be_a_barrier();
        self.cpu.dispatch(false);
        let tx = self.cpu.machine().enter_tx(self.cpu.core);
        if self.cpu.machine().cores[self.cpu.core].timing.is_settled() {
            self.cpu.settle();
        }
        self.cpu.be_a_barrier();
        self.library.begin(tx, &mut self.cpu);
    }

    fn commit(&mut self) {
        self.cpu.at_a_stop();
        self.cpu.settle();
        self.cpu.be_a_barrier();
        self.cpu.turn();
        self.cpu.machine().commit_began(self.cpu.core);
        self.library.commit(&mut self.cpu);
        self.cpu.commit();
        self.library.settle(&mut self.cpu);
        self.overwritten.end();
        self.control.advance(1);
    }

    fn abort(&mut self) {
        self.cpu.at_a_stop();
        self.cpu.settle();
        self.cpu.be_a_barrier();
        self.cpu.turn();
        self.cpu.machine().abort_began(self.cpu.core);
        let overwritten = self.overwritten.take();
        self.library.abort(&overwritten, &mut self.cpu);
        self.cpu.commit();
        self.library.settle(&mut self.cpu);
        self.control.advance(1);
    }

    fn lock(&mut self, lock: LockId) {
        self.cpu.lock(lock);
    }

    fn unlock(&mut self, lock: LockId) {
        self.cpu.unlock(lock);
    }

    #[inline]
    fn work(&mut self, instructions: u64) {
        self.cpu.work(instructions);
    }

    fn flush(&mut self, at: Ptr, how: Flush) {
        self.cpu.flush(Line::of(at.address), Class::Data, how);
    }

    fn order(&mut self) {
        self.cpu.order();
    }

    fn durable(&mut self) {
        self.cpu.durable();
    }

    fn take_turn(&mut self, turn: u64) {
        self.cpu.take_turn(turn);
    }

    fn pass_turn(&mut self) {
        self.cpu.pass_turn();
    }

    fn mark(&mut self) {
        self.cpu.settle();
        self.cpu.machine().cores[self.cpu.core].timing.drain(Stall::Other);
        self.cpu.turn();
        self.cpu.machine().mark(self.cpu.core);
    }

    fn cancelled(&self) -> bool {
        self.control.is_cancelled() || self.cpu.machine().is_done()
    }
}
