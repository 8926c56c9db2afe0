//! The agenda of timed events: everything that changes persistent state, in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::units::Cycle;

/// The number of cycles that the wheel spans.
const SPAN: u64 = 1024;
const WORDS: usize = (SPAN / 64) as usize;

/// The most events that lie before the wheel (ours: a machine of one core seldom has more).
const FRONT: usize = 4;

/// Events in order of time. Events of the same time stay in their order of entry.
///
/// Events that are due soon lie in a wheel with a queue for each cycle, and later ones in a heap;
/// nearly every event is due soon. The few that are due before all of these lie in `front`, in
/// order. Most events are among the first when they are entered, and never get into the wheel.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    /// The events that are due first, in reverse order, so that the next one is last. Events of the
    /// wheel with the same times were entered after them.
    front: Vec<(Cycle, E)>,
    /// For each of the next cycles, a queue of its events in order of entry.
    wheel: Vec<Queue>,
    /// The nodes of the wheel's queues and the free nodes, as linked lists.
    nodes: Vec<Node<E>>,
    free: u32,
    /// A bit for each queue of the wheel that is not empty, and one for each word of such bits.
    taken: [u64; WORDS],
    taken_words: u32,
    later: BinaryHeap<Reverse<Entry<E>>>,
    /// When the first event of the heap is due.
    later_next: Cycle,
    /// The time of the event that was taken last: the wheel begins here.
    now: Cycle,
    /// When the first event of all is due, and when the first event of the wheel and the heap is.
    next: Cycle,
    next_behind: Cycle,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

#[derive(Clone, Debug)]
struct Node<E> {
    event: E,
    next: u32,
}

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Cycle,
    sequence: u64,
    event: E,
}

impl<E> Default for Agenda<E> {
    fn default() -> Agenda<E> {
        Agenda {
            front: Vec::with_capacity(FRONT),
            wheel: vec![Queue { first: NONE, last: NONE }; SPAN as usize],
            nodes: Vec::new(),
            free: NONE,
            taken: [0; WORDS],
            taken_words: 0,
            later: BinaryHeap::new(),
            later_next: Cycle::NEVER,
            now: Cycle(0),
            next: Cycle::NEVER,
            next_behind: Cycle::NEVER,
            sequence: 0,
        }
    }
}

impl<E: Copy> Agenda<E> {
    /// Returns when the event taken last was due. No event can be entered for an earlier time.
    pub fn now(&self) -> Cycle {
        self.now
    }

    /// Enters an event.
    #[inline]
    pub fn enter(&mut self, at: Cycle, event: E) {
        let now = self.now;
        assert!(
            at >= now,
            "an event is entered for cycle {}, and one of cycle {} has happened",
            at.0,
            now.0
        );
        if at.since(self.now) >= SPAN {
            return self.enter_later(at, event);
        }
        if at >= self.next_behind {
            return self.enter_in_wheel(at, event);
        }
        if at >= self.next || self.front.len() == FRONT {
            return self.enter_in_front(at, event);
        }
        self.front.push((at, event));
        self.next = at;
    }

    /// Enters an event among those that are due first.
    #[inline(never)]
    fn enter_in_front(&mut self, at: Cycle, event: E) {
        if self.front.len() == FRONT {
            self.make_room();
            if at >= self.next_behind {
                return self.enter_in_wheel(at, event);
            }
        }
        let mut place = self.front.len();
        self.front.push((at, event));
        while place > 0 && self.front[place - 1].0 <= at {
            self.front[place] = self.front[place - 1];
            place -= 1;
        }
        self.front[place] = (at, event);
        self.next = self.next.min(at);
    }

    /// Enters an event in the wheel, behind the others of its time.
    #[inline(never)]
    fn enter_in_wheel(&mut self, at: Cycle, event: E) {
        let slot = self.slot(at);
        let node = self.node(event);
        let queue = &mut self.wheel[slot];
        if queue.first == NONE {
            queue.first = node;
        } else {
            self.nodes[queue.last as usize].next = node;
        }
        queue.last = node;
    }

    /// Moves the last event of `front` into the wheel, before the others of its time.
    #[inline(never)]
    fn make_room(&mut self) {
        let (at, event) = self.front.remove(0);
        self.next_behind = at;
        let slot = self.slot(at);
        let node = self.node(event);
        let queue = &mut self.wheel[slot];
        if queue.first == NONE {
            queue.last = node;
        }
        self.nodes[node as usize].next = queue.first;
        queue.first = node;
    }

    /// Returns the queue of a time, and marks it as not empty.
    #[inline]
    fn slot(&mut self, at: Cycle) -> usize {
        let slot = (at.0 % SPAN) as usize;
        self.taken[slot / 64] |= 1 << (slot % 64);
        self.taken_words |= 1 << (slot / 64);
        slot
    }

    fn enter_later(&mut self, at: Cycle, event: E) {
        self.sequence += 1;
        self.later_next = self.later_next.min(at);
        self.next_behind = self.next_behind.min(at);
        self.next = self.next.min(at);
        self.later.push(Reverse(Entry { at, sequence: self.sequence, event }));
    }

    #[inline]
    fn node(&mut self, event: E) -> u32 {
        let node = Node { event, next: NONE };
        if self.free == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }

    /// Takes the first event of a queue of the wheel that is not empty.
    fn take_from_wheel(&mut self, slot: usize) -> E {
        let queue = &mut self.wheel[slot];
        let index = queue.first;
        let node = &mut self.nodes[index as usize];
        queue.first = node.next;
        if queue.first == NONE {
            self.taken[slot / 64] &= !(1 << (slot % 64));
            self.taken_words &= !(u32::from(self.taken[slot / 64] == 0) << (slot / 64));
        }
        node.next = self.free;
        self.free = index;
        node.event
    }

    /// Returns when the first event is due, or [`Cycle::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Cycle {
        self.next
    }

    /// Takes the first event if it is due at or before `until`.
    pub fn take(&mut self, until: Cycle) -> Option<(Cycle, E)> {
        if self.next > until || self.next == Cycle::NEVER {
            return None;
        }
        let at = self.next;
        self.now = self.now.max(at);
        if let Some(first) = self.front.pop() {
            self.next = self.front.last().map_or(self.next_behind, |&(at, _)| at);
            return Some(first);
        }
        let event = self.take_from_behind(at);
        self.next_behind = self.later_next.min(self.first_of_wheel());
        self.next = self.next_behind;
        event.map(|event| (at, event))
    }

    /// Takes the first event of the wheel or the heap, which is due at `at`.
    fn take_from_behind(&mut self, at: Cycle) -> Option<E> {
        // An event of the heap was entered when its time was far off, so before the events of the
        // wheel with the same time.
        if self.later_next == at {
            let first = self.later.pop();
            self.later_next = self.later.peek().map_or(Cycle::NEVER, |Reverse(entry)| entry.at);
            return first.map(|Reverse(entry)| entry.event);
        }
        Some(self.take_from_wheel((at.0 % SPAN) as usize))
    }

    /// Returns the time of the wheel's first event.
    fn first_of_wheel(&self) -> Cycle {
        let start = (self.now.0 % SPAN) as usize;
        let (word, bit) = (start / 64, start % 64);
        let near = self.taken[word] >> bit;
        if near != 0 {
            return self.now + u64::from(near.trailing_zeros());
        }
        if self.taken_words == 0 {
            return Cycle::NEVER;
        }
        // Find the next word that is not empty. After all others comes the present word again, with
        // the bits below the present one.
        let turned = (self.taken_words | self.taken_words << WORDS) >> (word + 1);
        let index = (word + 1 + turned.trailing_zeros() as usize) % WORDS;
        let slot = index * 64 + self.taken[index].trailing_zeros() as usize;
        let ahead = (slot + SPAN as usize - start) % SPAN as usize;
        self.now + ahead as u64
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

    /// Holds in each of the three places of events, with any number of other events there.
    #[test]
    fn far_and_near_events_come_in_order() {
        for waiting in [1, FRONT, 2 * FRONT, usize::MAX] {
            let mut agenda = Agenda::default();
            let mut state = 1_u64;
            let mut expected = Vec::new();
            let mut taken = Vec::new();
            let mut now = 0;
            for number in 0..20_000_u64 {
                state = model_random(state);
                let at = now + state % [1, 3, 100, 1025, 5000][(state >> 40) as usize % 5];
                agenda.enter(Cycle(at), number);
                expected.push((at, number));
                if (state >> 50 & 1 == 0 || expected.len() - taken.len() > waiting)
                    && let Some((at, number)) = agenda.take(Cycle::NEVER)
                {
                    now = at.0;
                    taken.push((at.0, number));
                }
            }
            taken.extend(std::iter::from_fn(|| agenda.take(Cycle::NEVER)).map(|(at, n)| (at.0, n)));
            expected.sort_unstable();
            assert_eq!(taken, expected, "{waiting} events wait");
        }
    }

    fn model_random(state: u64) -> u64 {
        let state = state ^ state << 13;
        let state = state ^ state >> 7;
        state ^ state << 17
    }
}
