//! What software redo logs share. A transaction's stores stay in a volatile write set until they
//! are in the log; then they go to their places, and a mark truncates the log.

use model::design::Cpu;
use model::meters::Class;
use model::units::{Cycle, Line, LineSet, Word, WordMap};
use model::workload::{Flush, Ptr};

use crate::parts::raise::log_size;
use crate::software::{Entries, Mark};

/// How a log is truncated.
pub struct Truncation {
    /// The word that says up to which transaction all stores are in place.
    pub mark: Word,
    /// What the mark will say.
    pub content: Mark,
    /// Whether the lines that were stored to are flushed before.
    pub flush_data: bool,
    /// Whether the mark waits until those lines are durable.
    pub order_data: bool,
    /// Whether the core waits until the mark is durable.
    pub wait: bool,
}

/// The stores of a transaction.
pub struct WriteSet {
    /// Instructions of looking up a word.
    lookup: u64,
    /// Words that the transaction has stored to, in order of their first stores, and where each
    /// stands in that order.
    writes: Vec<(Word, u64)>,
    places: WordMap<usize>,
    /// Lines that are flushed as the log is truncated; empty in between.
    flushed: LineSet,
}

impl WriteSet {
    /// An empty write set.
    pub fn new(lookup: u64) -> WriteSet {
        WriteSet {
            lookup,
            writes: Vec::new(),
            places: WordMap::default(),
            flushed: LineSet::default(),
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// How many words the transaction has stored to.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Loads a word in a transaction, from the write set if the transaction has stored to it.
    pub fn load(&self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        if self.writes.is_empty() {
            return cpu.load(at);
        }
        cpu.work(self.lookup);
        match self.places.get(&Word::of(at.address)) {
            Some(&place) => (self.writes[place].1, at.known),
            None => cpu.load(at),
        }
    }

    /// Keeps a store of the transaction.
    pub fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        cpu.work(self.lookup);
        let word = Word::of(at.address);
        if let Some(&place) = self.places.get(&word) {
            let old = &mut self.writes[place].1;
            *old = (*old & !mask) | (value & mask);
            return;
        }
        let old = if mask == u64::MAX { 0 } else { cpu.load(at).0 };
        self.places.insert(word, self.writes.len());
        self.writes.push((word, (old & !mask) | (value & mask)));
    }

    /// Ends the loads and stores of the transaction. What it stored is still to be logged and
    /// placed.
    pub fn end(&mut self) {
        self.places.clear();
    }

    /// Aborts the transaction: forgets its stores.
    pub fn forget(&mut self) {
        self.end();
        self.writes.clear();
    }

    /// Stores an entry for each word to the log, and flushes them all. Returns false if they do not
    /// fit.
    pub fn log<const WORDS: usize, C: Cpu>(
        &self,
        entries: &Entries,
        flush: bool,
        cpu: &mut C,
        entry: impl Fn(Word, u64, &mut C) -> [u64; WORDS],
    ) -> bool {
        if self.writes.len() > entries.room() {
            cpu.give_up(format!(
                "a transaction of {} words does not fit the log, which has room for {}: raise it \
                 with {}, or more for a larger one",
                self.writes.len(),
                entries.room(),
                log_size(entries.log_of(self.writes.len()))
            ));
            return false;
        }
        for (place, &(word, value)) in self.writes.iter().enumerate() {
            for (at, value) in (entries.at(place)..).step_by(8).zip(entry(word, value, cpu)) {
                cpu.store(Ptr::to(at), value, u64::MAX);
            }
        }
        if flush {
            let mut last = None;
            for line in (0..self.writes.len()).map(|place| Line::of(entries.at(place))) {
                if last.replace(line) != Some(line) {
                    cpu.flush(line, Class::Log, Flush::WriteBack);
                }
            }
        }
        true
    }

    /// Stores the words of the log to their places, and truncates the log.
    pub fn settle(&mut self, how: &Truncation, cpu: &mut impl Cpu) {
        for &(word, value) in &self.writes {
            cpu.store(Ptr::to(word.address()), value, u64::MAX);
        }
        for (word, _) in self.writes.drain(..) {
            if self.flushed.insert(word.line()) && how.flush_data {
                cpu.flush(word.line(), Class::Data, Flush::WriteBack);
            }
        }
        self.flushed.clear();
        if how.order_data {
            cpu.order();
        }
        cpu.store(Ptr::to(how.mark.address()), how.content.word(), u64::MAX);
        cpu.flush(how.mark.line(), Class::Metadata, Flush::WriteBack);
        if how.wait {
            cpu.durable();
        }
    }
}
