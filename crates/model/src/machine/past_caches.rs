//! Stores past the caches, through write-combining buffers.

use crate::controller::Notify;
use crate::core::Holder;
use crate::design::{Design, Progress, Store};
use crate::device::Write;
use crate::machine::Machine;
use crate::timeline::Happening;
use crate::units::{CoreId, Cycle, Line, Word};
use crate::workload::Ptr;
use crate::write_combining::Room;

impl<D: Design> Machine<D> {
    /// Returns when a store past the caches finds room in a write-combining buffer. If no buffer is
    /// free, the oldest is sent. If it is not known yet when one will be free, the answer is none:
    /// the caller parks the core, and asks again later.
    pub(crate) fn room_to_combine(&mut self, id: CoreId, line: Line) -> Option<Cycle> {
        loop {
            // One store leaves a cycle.
            let leaves = self.cores[id].timing.stored() + 1;
            match self.cores[id].combining.room(line, leaves) {
                Room::At(at) => return Some(at),
                Room::Oldest => {
                    let oldest = self.cores[id].combining.take_oldest();
                    self.send_combined(id, leaves, oldest.expect("a core has buffers"));
                }
                Room::Unknown => {
                    self.cores[id].combining.answers().wait();
                    return None;
                }
            }
        }
    }

    /// Stores words of one line past the caches, into a write-combining buffer that has room at
    /// `room` and is sent when it is full. Returns what each word held before. The caller has to
    /// tell the design of each word in persistent memory ([`Machine::tell_past_caches`]).
    pub(crate) fn store_past_caches(
        &mut self,
        id: CoreId,
        at: Ptr,
        values: &[u64],
        room: Cycle,
    ) -> Vec<u64> {
        let line = Line::of(at.address);
        let now = self.cores[id].timing.clock();
        if line.is_persistent() && self.probe.is_some() {
            self.cut_before_store(id, line);
        }
        self.combines = true;
        // The core's own buffer for the line gathers the earlier stores and this one.
        self.send_combined_line_of(|owner| owner != id, id, line);
        let dirty = self.below.caches.take_out(line);
        self.cores[id].timing.drops(line, now);
        self.tell_departures(now);
        if dirty {
            self.write_back(line, now);
        }
        self.cores[id].timing.store_past();
        self.cores[id].timing.delay_store(room);
        if let Some(epochs) = &mut self.epochs {
            epochs.store(id, line);
        }
        let first = Word::of(at.address);
        let mut before = Vec::with_capacity(values.len());
        for (word, &value) in (first.0..).map(Word).zip(values) {
            let old = self.below.view.set_word(word, value);
            before.push(old);
            if let Some(probe) = self.probe.as_mut().filter(|_| line.is_persistent()) {
                let combines = !self.design.brings_stores();
                probe.stored(id, word, (old, value), combines, &self.below.view);
            }
            if let Some(timeline) = &mut self.below.memory.timeline {
                let now = self.cores[id].timing.clock();
                timeline.at(now, Happening::Store(id, word, old, value));
            }
        }
        if let Some(full) = self.cores[id].combining.store(first, values) {
            let leaves = self.cores[id].timing.stored();
            self.send_combined(id, leaves, full);
        }
        before
    }

    /// Tells the design of a word that was just stored past the caches.
    pub(crate) fn tell_past_caches(
        &mut self,
        id: CoreId,
        word: Word,
        (old, new): (u64, u64),
    ) -> Progress {
        let core = &self.cores[id];
        let (at, leaves) = (core.timing.clock(), core.timing.stored());
        let store = Store { core: id, tx: core.tx, word, old, new, at, leaves, past_caches: true };
        let answer = self.design.store(&store, &mut self.below);
        self.answered("store", at, answer)
    }

    /// Sends what any core has stored to a line past the caches, before a core stores to that line
    /// through the caches or has it written back.
    #[inline]
    pub(super) fn send_combined_line(&mut self, id: CoreId, line: Line) {
        if self.combines {
            self.send_combined_line_of(|_| true, id, line);
        }
    }

    fn send_combined_line_of(&mut self, whose: impl Fn(CoreId) -> bool, id: CoreId, line: Line) {
        let now = self.cores[id].timing.clock();
        for owner in (0..self.cores.cores()).map(CoreId).filter(|owner| whose(*owner)) {
            if let Some(write) = self.cores[owner].combining.take_line(line) {
                let stored = self.cores[owner].timing.stored();
                let leaves = if owner == id { stored } else { stored.max(now) };
                self.send_combined(owner, leaves, write);
            }
        }
    }

    /// Sends what a buffer has gathered, at `at`.
    fn send_combined(&mut self, id: CoreId, at: Cycle, mut write: Write) {
        if self.design.brings_stores() && write.line.is_persistent() {
            self.cores[id].combining.answers().note_answer(at);
        } else if write.line.is_persistent() {
            write.line = self.locate(write.line);
            self.cores[id].combining.answers().note_sent();
            self.below.send(at, write, Notify::Combining(id));
        } else {
            let near = self.below.shape.near;
            let taken = self.below.memory.write_volatile(at + near, write.line);
            self.below.note_taken(id, taken);
            self.cores[id].combining.answers().note_answer(taken + near);
        }
    }

    /// Sends what each of the core's buffers has gathered, at `at`.
    pub(super) fn send_all_combined(&mut self, id: CoreId, at: Cycle) {
        while let Some(write) = self.cores[id].combining.take_oldest() {
            self.send_combined(id, at, write);
        }
    }

    /// Frees the buffers, and the places for flushes, whose writes controllers have accepted at
    /// `at`: each is free when its answer has reached the core.
    pub(super) fn free_buffers(&mut self, at: Cycle) {
        while let Some(notify) = self.below.memory.take_accepted() {
            let answer = at + self.below.shape.path;
            let (id, answers) = match notify {
                Notify::Core(id) => (id, &mut self.below.unacknowledged[id].flushes),
                Notify::Combining(id) => (id, self.cores[id].combining.answers()),
                Notify::Nobody | Notify::Design(_) => continue,
            };
            if answers.note_answered(answer) {
                self.hear(id, answer);
            }
        }
    }

    /// Lets a core go on that waited to hear of an answer: with its stores, which a flush held
    /// back, or with a request that found no place.
    fn hear(&mut self, id: CoreId, at: Cycle) {
        match self.cores[id].timing.open() {
            Some(Holder::Flush) => self.below.wake(id, at),
            // A fence has taken the place of the flush, and waits for more than its answer.
            Some(_) => (),
            None => self.unpark(id, at),
        }
    }
}
