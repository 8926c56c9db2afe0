//! The on-DIMM buffer of a persistent memory, which joins writes to lines of its own size.

use crate::sieve::Sieve;
use crate::units::{Divisor, LINE_BYTES, Line, LineData};

/// The on-DIMM buffer: lines of several cache lines, in order of recency.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    /// Most recent first.
    pub entries: Vec<Entry>,
    sieve: Sieve,
    pub held: Vec<Held>,
    /// The lines, present or not, that writes in the controller's queue belong to.
    expected: Sieve,
    /// How many of these writes would join a line that the buffer holds.
    pub joining: usize,
    pub capacity: usize,
    /// Cache lines in a line of the buffer.
    pub span: Divisor,
}

/// A line of the buffer: its first cache line, the place of its bytes, and its bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub first: Line,
    pub place: u32,
    pub bank: u32,
}

/// The bytes that were written to a line of the buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// For each cache line, the bytes that were written, one bit a byte.
    pub masks: Vec<u64>,
    pub data: Vec<LineData>,
}

impl Buffer {
    pub fn new(capacity: u64, span: u64) -> Buffer {
        Buffer {
            entries: Vec::new(),
            sieve: Sieve::default(),
            held: Vec::new(),
            expected: Sieve::default(),
            joining: 0,
            capacity: capacity as usize,
            span: Divisor::new(span),
        }
    }

    pub fn first_of(&self, line: Line) -> Line {
        Line(line.0 - self.place(line) as u64)
    }

    /// The place of a cache line in its line of the buffer.
    fn place(&self, line: Line) -> usize {
        self.span.divide(line.0).1 as usize
    }

    pub fn find(&self, line: Line) -> Option<usize> {
        let first = self.first_of(line);
        if !self.sieve.may_hold(first.0) {
            return None;
        }
        self.entries.iter().position(|entry| entry.first == first)
    }

    /// Whether the buffer holds every byte of a line.
    pub fn holds_whole(&self, line: Line) -> bool {
        let whole = |index: usize| {
            let held = &self.held[self.entries[index].place as usize];
            held.masks[self.place(line)] == u64::MAX
        };
        self.find(line).is_some_and(whole)
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() == self.capacity
    }

    /// Makes the line at `index` the most recent.
    pub fn touch(&mut self, index: usize) {
        self.entries[..=index].rotate_right(1);
    }

    /// A write waits in the controller's queue.
    pub fn expect(&mut self, line: Line) {
        self.expected.add(self.first_of(line).0);
        self.joining += usize::from(self.find(line).is_some());
    }

    /// A write that waited comes: the line that it joins, if the buffer has it.
    pub fn take_expected(&mut self, line: Line) -> Option<usize> {
        self.expected.remove(self.first_of(line).0);
        let found = self.find(line);
        self.joining -= usize::from(found.is_some());
        found
    }

    /// How many of the writes that wait would join a line of the buffer.
    fn would_join(&self, first: Line, waiting: &[Line]) -> usize {
        let at_most = self.expected.count(first.0) as usize;
        if at_most == 0 {
            return 0;
        }
        let joins = |&&line: &&Line| self.first_of(line) == first;
        waiting.iter().rev().filter(joins).take(at_most).count()
    }

    /// Takes the least recent line, which has been written to the cells, out of the buffer.
    pub fn pop(&mut self, waiting: &[Line]) -> Option<Entry> {
        let entry = self.entries.pop()?;
        self.sieve.remove(entry.first.0);
        self.joining -= self.would_join(entry.first, waiting);
        Some(entry)
    }

    /// Puts a line of a bank, of which nothing is written yet, first. If the buffer is full, the
    /// least recent one has to have been written to the cells: its room is taken.
    pub fn insert(&mut self, line: Line, bank: u32, waiting: &[Line]) {
        let place = if self.is_full() {
            self.pop(waiting).expect("a full buffer has a line").place
        } else {
            let span = self.span.value() as usize;
            let (masks, data) = (vec![0; span], vec![[0; LINE_BYTES as usize]; span]);
            self.held.push(Held { masks, data });
            self.held.len() as u32 - 1
        };
        self.held[place as usize].masks.fill(0);
        let first = self.first_of(line);
        self.entries.insert(0, Entry { first, place, bank });
        self.sieve.add(first.0);
        self.joining += self.would_join(first, waiting);
    }

    /// Merges bytes into the most recent line.
    pub fn merge(&mut self, line: Line, data: &LineData, mask: u64) {
        let index = self.place(line);
        let held = &mut self.held[self.entries[0].place as usize];
        crate::image::apply_masked(&mut held.data[index], data, mask);
        held.masks[index] |= mask;
    }
}
