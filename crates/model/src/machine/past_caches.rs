//! Stores past the caches, through write-combining buffers.

use crate::controller::Notify;
use crate::design::{Design, Progress, Store};
use crate::device::Write;
use crate::machine::Machine;
use crate::units::{CoreId, Cycle, Line, Word};
use crate::workload::Ptr;

impl<D: Design> Machine<D> {
    /// A store past the caches: into a write-combining buffer, which is sent when it is full or
    /// another one needs its place.
    pub(crate) fn store_past_caches(&mut self, id: CoreId, at: Ptr, value: u64) -> Progress {
        let line = Line::of(at.address);
        let now = self.cores[id].timing.clock();
        if self.stores_survive && line.is_persistent() && self.probe.is_some() {
            self.crash_point(now);
        }
        let dirty = self.below.caches.clean(line, false);
        self.cores[id].timing.drops(line, now);
        self.tell_departures(now);
        if dirty {
            self.write_back(line, now);
        }
        self.cores[id].timing.store_past();
        let word = Word::of(at.address);
        let old = self.below.view.set_word(word, value);
        if let Some(epochs) = &mut self.epochs {
            epochs.store(id, line, now);
        }
        for write in self.cores[id].combining.store(word, value) {
            self.send_combined(id, now, write);
        }
        if !line.is_persistent() {
            return Progress::Done(now);
        }
        if let Some(probe) = &mut self.probe {
            probe.stored(id, word, (old, value), true);
        }
        let tx = self.cores[id].tx;
        let leaves = self.cores[id].timing.stored();
        let store = Store { core: id, tx, word, old, new: value, at: now, leaves };
        let progress = self.design.store(&store, &mut self.below);
        self.process_wakes();
        progress
    }

    /// A store through the caches comes after those past them to the same line.
    #[inline]
    pub(super) fn send_combined_line(&mut self, id: CoreId, line: Line) {
        if self.cores[id].combining.is_empty() {
            return;
        }
        if let Some(write) = self.cores[id].combining.take_line(line) {
            let now = self.cores[id].timing.clock();
            self.send_combined(id, now, write);
        }
    }

    fn send_combined(&mut self, id: CoreId, at: Cycle, mut write: Write) {
        if write.line.is_persistent() {
            write.line = self.locate(write.line);
            self.below.send(at, write, Notify::Core(id));
        } else {
            let arrival = at + self.below.shape.path;
            self.below.memory.write_volatile(arrival, write.line);
            self.below.arrives(id, arrival);
        }
    }

    pub(super) fn send_all_combined(&mut self, id: CoreId, at: Cycle) {
        for write in self.cores[id].combining.take_all() {
            self.send_combined(id, at, write);
        }
    }
}
