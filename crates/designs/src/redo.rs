//! A software redo log: a transaction's stores go to a volatile write set; at commit they are
//! logged, then a record commits them, and only then they go to their places
//! (specs/ordering.md section 1, REDO).
//!
//! ```text
//! a core's log:  word 0           the record: the number of the last committed transaction
//!                word 8           the number of the last one whose stores are all in place
//!                word 16 + 4i     entry i: address, value, transaction
//! ```

use model::design::{Cpu, Shape};
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineSet, TxId, Word, WordMap};
use model::workload::{Flush, Ptr};

use crate::software::{self, Log};

model::params! {
    /// What the log costs a program beside its loads, stores, flushes and fences.
    pub struct RedoParams {
        /// Instructions of looking up a word in the write set (ours: a hash and a compare).
        lookup = 6 in 0..=1000;
    }
}

model::rules! {
    /// What keeps the log right.
    pub struct RedoRules {
        /// The entries are flushed at commit.
        flush_log,
        /// The record waits until the entries are durable.
        order_log_before_record,
        /// The acknowledgement, and the stores to their places, wait until the record is durable.
        durable_record,
        /// The lines that were stored to are flushed before the log is truncated.
        flush_data,
        /// The truncation waits until the lines are durable.
        order_data_before_truncation,
        /// The locks are given back only when the truncation is durable: another core may store
        /// to the same words next, and replaying the log would take its stores back.
        truncate_before_unlock,
        /// A machine that boots uses up the number of the transaction that may have left entries
        /// without a record: they are not taken for those of a later one.
        use_up_number_at_boot,
    }
}

const PLACED: u64 = 64;
const ENTRIES: u64 = 128;
const ENTRY_BYTES: u64 = 32;

/// The redo log of one core.
pub struct Redo {
    params: RedoParams,
    rules: RedoRules,
    base: u64,
    bytes: u64,
    number: u64,
    /// Words that the transaction has stored to, in order of their first stores, and where each
    /// stands in that order.
    writes: Vec<(Word, u64)>,
    places: WordMap<usize>,
    in_transaction: bool,
}

impl Redo {
    /// The file that holds it.
    pub const FILE: &'static str = file!();
}

impl Log for Redo {
    type Params = RedoParams;
    type Rules = RedoRules;

    fn new(params: &RedoParams, rules: &RedoRules, shape: &Shape, core: CoreId) -> Redo {
        Redo {
            params: params.clone(),
            rules: rules.clone(),
            base: shape.log_of(core),
            bytes: shape.log_bytes,
            number: 0,
            writes: Vec::new(),
            places: WordMap::default(),
            in_transaction: false,
        }
    }

    fn begin(&mut self, _tx: TxId, cpu: &mut impl Cpu) {
        if self.number == 0 {
            let placed = cpu.peek(Word::of(self.base + PLACED));
            self.number = cpu.peek(Word::of(self.base)).max(placed) + 1;
        }
        self.in_transaction = true;
    }

    fn load(&mut self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        if self.writes.is_empty() {
            return cpu.load(at);
        }
        cpu.work(self.params.lookup);
        match self.places.get(&Word::of(at.address)) {
            Some(&place) => (self.writes[place].1, at.known),
            None => cpu.load(at),
        }
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        if !self.in_transaction {
            return cpu.store(at, value, mask);
        }
        cpu.work(self.params.lookup);
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

    fn commit(&mut self, cpu: &mut impl Cpu) {
        self.in_transaction = false;
        self.places.clear();
        if self.writes.is_empty() {
            return;
        }
        let end = self.base + ENTRIES + ENTRY_BYTES * self.writes.len() as u64;
        if end > self.base + self.bytes {
            return cpu.give_up(format!(
                "a transaction of {} words does not fit the log of {} bytes: raise it with --set \
                 pm.log_size=...",
                self.writes.len(),
                self.bytes
            ));
        }
        for (index, &(word, value)) in self.writes.iter().enumerate() {
            let entry = self.base + ENTRIES + ENTRY_BYTES * index as u64;
            for (place, value) in [word.address(), value, self.number].into_iter().enumerate() {
                cpu.store(Ptr::to(entry + 8 * place as u64), value, u64::MAX);
            }
        }
        if self.rules.flush_log {
            for line in Line::of(self.base + ENTRIES).0..=Line::of(end - 1).0 {
                cpu.flush(Line(line), Class::Log, Flush::WriteBack);
            }
        }
        if self.rules.order_log_before_record {
            cpu.order();
        }
        cpu.store(Ptr::to(self.base), self.number, u64::MAX);
        cpu.flush(Line::of(self.base), Class::Commit, Flush::WriteBack);
        if self.rules.durable_record {
            cpu.durable();
        }
    }

    /// Drops the write set. Nothing of it has been logged.
    fn abort(&mut self, _cpu: &mut impl Cpu) {
        self.in_transaction = false;
        self.places.clear();
        self.writes.clear();
    }

    fn settle(&mut self, cpu: &mut impl Cpu) {
        if self.writes.is_empty() {
            return;
        }
        let mut flushed = LineSet::default();
        for &(word, value) in &self.writes {
            cpu.store(Ptr::to(word.address()), value, u64::MAX);
        }
        for (word, _) in self.writes.drain(..) {
            if flushed.insert(word.line()) && self.rules.flush_data {
                cpu.flush(word.line(), Class::Data, Flush::WriteBack);
            }
        }
        if self.rules.order_data_before_truncation {
            cpu.order();
        }
        cpu.store(Ptr::to(self.base + PLACED), self.number, u64::MAX);
        cpu.flush(Line::of(self.base + PLACED), Class::Metadata, Flush::WriteBack);
        self.number += 1;
        if self.rules.truncate_before_unlock {
            cpu.durable();
        }
    }

    fn recover(image: &mut Image<'_>, _rules: &RedoRules, shape: &Shape) -> Result<(), PowerLoss> {
        for core in (0..shape.cores).map(CoreId) {
            let base = shape.log_of(core);
            let (record, placed) = (Word::of(base), Word::of(base + PLACED));
            let (number, done) = (image.word(record), image.word(placed));
            let mut entry = base + ENTRIES;
            while number > done && entry + ENTRY_BYTES <= base + shape.log_bytes {
                let [address, value, of] =
                    [0, 8, 16].map(|offset| image.word(Word::of(entry + offset)));
                if of != number || address >= shape.log_base {
                    break;
                }
                image.set_word(Word::of(address), value)?;
                entry += ENTRY_BYTES;
            }
            if number > done {
                image.set_word(placed, number)?;
            }
        }
        Ok(())
    }

    fn boot(image: &mut Image<'_>, rules: &RedoRules, shape: &Shape) -> Result<(), PowerLoss> {
        if rules.use_up_number_at_boot {
            software::use_up_numbers(image, shape, PLACED)?;
        }
        Ok(())
    }
}

const _: () = assert!(LINE_BYTES.is_multiple_of(ENTRY_BYTES), "an entry lies within a line");
