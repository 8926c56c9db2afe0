//! The on-DIMM buffer of a persistent memory, which joins writes to lines of its own size.

use crate::device::Write;
use crate::device::share::Share;
use crate::image::apply_masked;
use crate::meters::Class;
use crate::sieve::Sieve;
use crate::units::{Divisor, LINE_BYTES, Line, LineData};

/// The on-DIMM buffer: lines of several cache lines, in order of recency.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    /// The places and banks of the buffer's lines, most recent first.
    order: Vec<Slot>,
    /// The first cache line of the buffer's line in each place, as the device counts cache lines.
    firsts: Vec<Line>,
    /// The cache lines of the buffer's line in each place.
    pub held: Vec<Vec<Held>>,
    sieve: Sieve,
    /// The lines of the buffer, present or not, to which the writes in the controller's queue
    /// belong.
    expected: Sieve,
    /// The number of these writes that would join a line that the buffer holds.
    pub joining: usize,
    pub capacity: usize,
    /// The number of cache lines in a line of the buffer.
    span: Divisor,
    /// The device's way of counting cache lines, unless those of one line of the buffer follow each
    /// other in the machine's memory anyway.
    share: Option<Share>,
}

/// A line of the buffer: its place, and its bank.
#[derive(Clone, Copy, Debug)]
struct Slot {
    place: u32,
    bank: u32,
}

/// A cache line on its way to the cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub line: Line,
    /// The bytes that were written, one bit each.
    pub mask: u64,
    /// The line's bytes, of which those that the mask selects mean something.
    pub data: LineData,
    /// What the cells hold, which is known once a byte was written.
    pub before: LineData,
    /// Why the last of these bytes were written.
    pub class: Class,
}

impl Buffer {
    pub fn new(capacity: u64, span: u64, share: Share) -> Buffer {
        Buffer {
            order: Vec::new(),
            firsts: Vec::new(),
            held: Vec::new(),
            sieve: Sieve::default(),
            expected: Sieve::default(),
            joining: 0,
            capacity: capacity as usize,
            span: Divisor::new(span),
            share: (!share.keeps_together(span * LINE_BYTES)).then_some(share),
        }
    }

    /// Returns the number of the line of the buffer that a cache line belongs to, and the cache
    /// line's place in it.
    #[inline]
    fn divide(&self, line: Line) -> (u64, u64) {
        let own = self.share.map_or(line, |share| share.own_line(line));
        self.span.divide(own.0)
    }

    /// Returns the number of the line of the buffer that a cache line belongs to.
    #[inline]
    pub fn number_of(&self, line: Line) -> u64 {
        self.divide(line).0
    }

    fn first_of(&self, line: Line) -> Line {
        Line(self.number_of(line) * self.span.value())
    }

    /// Returns the place of a cache line in its line of the buffer.
    fn place(&self, line: Line) -> usize {
        self.divide(line).1 as usize
    }

    /// Returns how many of the machine's cache lines there are from the first of a line of the
    /// buffer to its last.
    pub fn reach(&self) -> u64 {
        let last = Line(self.span.value() - 1);
        self.share.map_or(last, |share| share.line_beside(Line(0), last)).0 + 1
    }

    pub fn find(&self, line: Line) -> Option<usize> {
        let first = self.first_of(line);
        if !self.sieve.may_hold(first.0) {
            return None;
        }
        self.order.iter().position(|slot| self.firsts[slot.place as usize] == first)
    }

    /// Whether the buffer holds every byte of a line.
    pub fn holds_whole(&self, line: Line) -> bool {
        let whole = |index: usize| {
            let held = &self.held[self.order[index].place as usize];
            held[self.place(line)].mask == u64::MAX
        };
        self.find(line).is_some_and(whole)
    }

    pub fn is_full(&self) -> bool {
        self.order.len() == self.capacity
    }

    /// Returns the older half of the lines, the least recent first: each line's index and bank.
    pub fn older(&self) -> impl Iterator<Item = (usize, u32)> {
        let half = self.order.len() / 2;
        let older = self.order[half..].iter().enumerate().rev();
        older.map(move |(index, slot)| (half + index, slot.bank))
    }

    /// Returns the place of the line at `index`.
    pub fn place_at(&self, index: usize) -> usize {
        self.order[index].place as usize
    }

    /// Makes the line at `index` the most recent.
    pub fn touch(&mut self, index: usize) {
        let slot = self.order[index];
        self.order.copy_within(..index, 1);
        self.order[0] = slot;
    }

    /// Notes that a write of the line waits in the controller's queue.
    pub fn expect(&mut self, line: Line) {
        self.expected.add(self.first_of(line).0);
        self.joining += usize::from(self.find(line).is_some());
    }

    /// Notes that a write of the line waits no longer. Returns the index of the buffer's line that
    /// the write joins, if the buffer holds it.
    pub fn take_expected(&mut self, line: Line) -> Option<usize> {
        self.expected.remove(self.first_of(line).0);
        let found = self.find(line);
        self.joining -= usize::from(found.is_some());
        found
    }

    /// Returns how many of the writes that wait would join a line of the buffer.
    fn would_join(&self, first: Line, waiting: &[Line]) -> usize {
        let at_most = self.expected.count(first.0) as usize;
        if at_most == 0 {
            return 0;
        }
        let joins = |&&line: &&Line| self.first_of(line) == first;
        waiting.iter().rev().filter(joins).take(at_most).count()
    }

    /// Inserts a line of a bank, without bytes yet, as the most recent one. If the buffer is full,
    /// the line takes the place of the one at `out`, which has been written to the cells.
    pub fn insert(&mut self, line: Line, bank: u32, out: Option<usize>, waiting: &[Line]) {
        let first = self.first_of(line);
        let place = match out {
            Some(index) => {
                let place = self.place_at(index);
                let left = std::mem::replace(&mut self.firsts[place], first);
                self.sieve.remove(left.0);
                self.joining -= self.would_join(left, waiting);
                self.order.copy_within(..index, 1);
                place
            }
            None => {
                let zeros = [0; LINE_BYTES as usize];
                let none =
                    Held { line: first, mask: 0, data: zeros, before: zeros, class: Class::Data };
                self.held.push(vec![none; self.span.value() as usize]);
                self.firsts.push(first);
                self.order.insert(0, Slot { place: 0, bank });
                self.held.len() - 1
            }
        };
        self.order[0] = Slot { place: place as u32, bank };
        for (held, own) in self.held[place].iter_mut().zip((first.0..).map(Line)) {
            held.line = self.share.map_or(own, |share| share.line_beside(line, own));
            held.mask = 0;
        }
        self.sieve.add(first.0);
        self.joining += self.would_join(first, waiting);
    }

    /// Forgets the least recent line, and returns its place, where its bytes stay.
    pub fn pop(&mut self) -> Option<usize> {
        let place = self.order.pop()?.place as usize;
        self.sieve.remove(self.firsts[place].0);
        Some(place)
    }

    /// Forgets the bytes of all places, once no line is left.
    pub fn clear(&mut self) {
        self.firsts.clear();
        self.held.clear();
    }

    /// Merges the bytes of a write into the most recent line; `before` is what the write's line
    /// holds without it.
    pub fn merge(&mut self, write: &Write, before: &LineData) {
        let index = self.place(write.line);
        let held = &mut self.held[self.order[0].place as usize][index];
        if held.mask == 0 {
            held.before = *before;
        }
        apply_masked(&mut held.data, &write.data, write.mask);
        held.mask |= write.mask;
        held.class = write.class;
    }
}
