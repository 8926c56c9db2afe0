//! When messages with lines that leave the caches reach their controllers. Messages with the same
//! line stay in order.

use std::collections::hash_map::Entry;

use super::Memory;
use crate::units::{Cycle, Line, mix};

/// The last arrival of a line, and how many messages with the line arrive then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    at: Cycle,
    messages: u32,
}

impl<E: Copy> Memory<E> {
    /// Returns when a controller looks at a design's own message with a line that leaves the
    /// caches, if the message would be there at `at`. An earlier write of the line comes before it,
    /// and a later one after it. When the message has come, the design calls [`Memory::came`].
    pub(crate) fn on_the_way(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = self.follow(at, line);
        self.sent += 1;
        at + self.frontend
    }

    /// Returns when a controller looks at the next write of the caches, if that is of this line and
    /// would be there at `at`.
    pub fn next_comes(&self, at: Cycle, line: Line) -> Cycle {
        let at = at + self.longer(line.0);
        self.arrivals.get(&line).map_or(at, |last| at.max(last.at)) + self.frontend
    }

    /// Notes that a design's message with the line has come
    /// ([`message_with`](crate::design::Below::message_with)): if it was the last one on the way,
    /// the line's arrival is forgotten.
    pub fn came(&mut self, at: Cycle, line: Line) {
        if let Entry::Occupied(mut last) = self.arrivals.entry(line)
            && last.get().at + self.frontend == at
        {
            last.get_mut().messages -= 1;
            if last.get().messages == 0 {
                last.remove();
            }
        }
    }

    /// Returns when a write of the caches arrives that would be there at `at`: no earlier than the
    /// writes of its line that are on their way.
    pub(super) fn follow(&mut self, at: Cycle, line: Line) -> Cycle {
        let at = at + self.longer(line.0);
        let last = self.arrivals.entry(line).or_insert(Arrival { at, messages: 0 });
        if at > last.at {
            *last = Arrival { at, messages: 0 };
        }
        last.messages += 1;
        last.at
    }

    /// Returns when a controller looks at a design's own message that has no line, if the message
    /// would be there at `at`. Its number tells it from others that are sent before the next write.
    pub(crate) fn comes(&self, at: Cycle, number: u64) -> Cycle {
        at + self.frontend + self.longer(number)
    }

    /// Returns by how many cycles jitter delays the next message, which is about `what`.
    fn longer(&self, what: u64) -> u64 {
        if self.jitter == 0 { 0 } else { mix(self.sent ^ what << 32) % (self.jitter + 1) }
    }
}
