//! When messages with lines that leave the caches reach their controllers: those of one line in
//! order.

use std::collections::hash_map::Entry;

use super::Memory;
use crate::units::{Cycle, Line, mix};

impl<E: Copy> Memory<E> {
    /// When a design's own message with a line that leaves the caches, and that would be there at
    /// `at`, has reached its controller and is looked at: not before an earlier write of the line,
    /// nor a later one before it. The design says when that is ([`Memory::came`]).
    pub fn on_the_way(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = self.follow(at, line);
        self.sent += 1;
        at + self.frontend
    }

    /// The message has come ([`Memory::on_the_way`]).
    pub fn came(&mut self, at: Cycle, line: Line) {
        if let Entry::Occupied(last) = self.arrivals.entry(line)
            && *last.get() + self.frontend == at
        {
            last.remove();
        }
    }

    /// A write of the caches follows those of its line that are on their way.
    pub(super) fn follow(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = at + self.longer(line.0);
        let last = self.arrivals.entry(line).or_insert(at);
        *last = at.max(*last);
        *last
    }

    /// How much longer the way of the next message is, which is about this.
    pub fn longer(&self, what: u64) -> u64 {
        if self.jitter == 0 { 0 } else { mix(self.sent ^ what << 32) % (self.jitter + 1) }
    }
}
