//! The agenda of timed events: everything that changes persistent state, in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::units::Cycle;

/// Events in order of time; of several at one time, the one entered first comes first.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    next: Cycle,
    sequence: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Cycle,
    sequence: u64,
    event: E,
}

impl<E> Default for Agenda<E> {
    fn default() -> Agenda<E> {
        Agenda { entries: BinaryHeap::new(), next: Cycle::NEVER, sequence: 0 }
    }
}

impl<E> Agenda<E> {
    /// Enters an event.
    pub fn enter(&mut self, at: Cycle, event: E) {
        self.sequence += 1;
        self.next = self.next.min(at);
        self.entries.push(Reverse(Entry { at, sequence: self.sequence, event }));
    }

    /// When the first event is due; [`Cycle::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Cycle {
        self.next
    }

    /// Takes the first event if it is due at or before `until`.
    pub fn take(&mut self, until: Cycle) -> Option<(Cycle, E)> {
        if self.next > until {
            return None;
        }
        let Reverse(entry) = self.entries.pop()?;
        self.next = self.entries.peek().map_or(Cycle::NEVER, |Reverse(entry)| entry.at);
        Some((entry.at, entry.event))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Entry<E>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Entry<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Entry<E>) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_then_of_entry() {
        let mut agenda = Agenda::default();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            agenda.enter(Cycle(at), event);
        }
        assert_eq!(agenda.next(), Cycle(3));
        let order: Vec<_> = std::iter::from_fn(|| agenda.take(Cycle(9))).map(|(_, e)| e).collect();
        assert_eq!(order, ['a', 'b', 'c', 'd']);
        assert_eq!(agenda.next(), Cycle::NEVER);
    }

    #[test]
    fn what_is_not_due_stays() {
        let mut agenda = Agenda::default();
        agenda.enter(Cycle(5), ());
        assert_eq!(agenda.take(Cycle(4)), None);
        assert_eq!(agenda.take(Cycle(5)), Some((Cycle(5), ())));
    }
}
