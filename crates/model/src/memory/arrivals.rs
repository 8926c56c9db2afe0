//! When messages with lines that leave the caches reach their controllers. Messages with the same
//! line stay in order.

use std::collections::hash_map::Entry;

use super::Memory;
use crate::units::{Cycle, Line, mix};

impl<E: Copy> Memory<E> {
    /// Returns when a controller looks at a design's own message with a line that leaves the
    /// caches, if the message would be there at `at`. An earlier write of the line comes before it,
    /// and a later one after it. When the message has come, the design calls [`Memory::came`].
    pub fn on_the_way(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = self.follow(at, line);
        self.sent += 1;
        at + self.frontend
    }

    /// Notes that a message with the line has come ([`Memory::on_the_way`]): if it was the last one
    /// on the way, the line's arrival is forgotten.
    pub fn came(&mut self, at: Cycle, line: Line) {
        if let Entry::Occupied(last) = self.arrivals.entry(line)
            && *last.get() + self.frontend == at
        {
            last.remove();
        }
    }

    /// Returns when a write of the caches arrives that would be there at `at`: no earlier than the
    /// writes of its line that are on their way.
    pub(super) fn follow(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = at + self.longer(line.0);
        let last = self.arrivals.entry(line).or_insert(at);
        *last = at.max(*last);
        *last
    }

    /// Returns by how many cycles jitter delays the next message, which is about `what`.
    pub fn longer(&self, what: u64) -> u64 {
        if self.jitter == 0 { 0 } else { mix(self.sent ^ what << 32) % (self.jitter + 1) }
    }
}
