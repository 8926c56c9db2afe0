//! When messages about lines that leave the caches reach their controllers: those about one line
//! arrive in order.

use std::collections::hash_map::Entry;

use super::Memory;
use crate::units::{Cycle, Line, mix};

impl<E: Copy> Memory<E> {
    /// Returns when a design's own message about a line that leaves the caches, which would arrive
    /// at `at`, has reached its controller and is looked at: not before an earlier write of the
    /// line, and later writes of the line not before it. The design reports the arrival
    /// ([`Memory::came`]).
    pub fn on_the_way(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = self.follow(at, line);
        self.sent += 1;
        at + self.frontend
    }

    /// Notes that a message about a line has arrived ([`Memory::on_the_way`]); with the last of
    /// them the line is forgotten.
    pub fn came(&mut self, at: Cycle, line: Line) {
        if let Entry::Occupied(last) = self.arrivals.entry(line)
            && *last.get() + self.frontend == at
        {
            last.remove();
        }
    }

    /// Returns when a write of the caches arrives, which is not before those of its line that are
    /// on their way.
    pub(super) fn follow(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = at + self.longer(line.0);
        let last = self.arrivals.entry(line).or_insert(at);
        *last = at.max(*last);
        *last
    }

    /// Returns how much longer the next message, about `what`, takes on its way.
    pub fn longer(&self, what: u64) -> u64 {
        if self.jitter == 0 { 0 } else { mix(self.sent ^ what << 32) % (self.jitter + 1) }
    }
}
