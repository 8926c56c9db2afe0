//! A software write-ahead log by blocks, S-WAL of the LOC slides. A transaction's stores go to
//! copies of the lines in volatile memory. At commit these blocks and their headers are copied to
//! the log and flushed, and then a record is written and flushed. Only then the lines are stored to
//! and flushed, and the log is truncated (the order of the flushes is ours).
//!
//! ```text
//! a core's log:  word 0     the record: the number of the last committed transaction
//!                word 8     the number of the last one whose lines are all in place
//!                line 2..   groups of seven blocks and a line of headers: a word for each block
//!                           with its address plus 1, and the transaction
//! ```

use model::design::{Cpu, Granularity, Shape};
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineMap, TxId, Word, bits};
use model::workload::{Flush, Ptr};

use crate::parts::raise::log_size;
use crate::software::{self, Log};

model::params! {
    /// What the log costs a program beside its loads, stores, flushes and fences.
    pub struct SWalParams {
        /// Instructions of looking up a line among the copies (ours: a hash and a compare).
        lookup = 6 in 0..=1000;
        /// How lines are flushed. The paper predates `clflushopt` and `clwb`.
        flush: Instruction = Clflush;
    }
}

model::choices! {
    /// The instructions that write a line back.
    pub enum Instruction { Clflush = "clflush", Clflushopt = "clflushopt", Clwb = "clwb" }
}

model::rules! {
    /// What keeps the log right.
    pub struct SWalRules {
        /// The blocks and their headers are flushed at commit.
        flush_log,
        /// The record waits until the blocks and their headers are durable.
        order_log_before_record,
        /// The commit leaves a record, and flushes it.
        flush_record,
        /// The acknowledgement, and the stores in place, wait until the record is durable.
        durable_record,
        /// The lines that were stored to are flushed before the log is truncated.
        flush_data,
        /// The truncation waits until the lines are durable.
        order_data_before_truncation,
        /// The truncation is flushed before the locks are given back: another core may store to
        /// the same lines next, and replaying the log would take its stores back.
        flush_truncation,
        /// The locks are given back only once the truncation is durable.
        truncate_before_unlock,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A machine that boots skips the number of a transaction that may have left headers
        /// without a record, so that they do not count for a later one.
        use_up_number_at_boot,
    }
}

const PLACED: u64 = 64;
const GROUPS: u64 = 128;
/// Blocks of a group; the line after them has their headers.
const BLOCKS: u64 = 7;
const GROUP_BYTES: u64 = (BLOCKS + 1) * LINE_BYTES;

/// The log of one core.
pub struct SWal {
    params: SWalParams,
    rules: SWalRules,
    base: u64,
    bytes: u64,
    number: u64,
    /// Copies of the lines that the transaction has stored to, in order of the first stores, each
    /// with the words that it stored to; `places` says where each line's copy is.
    copies: Vec<(Line, [u64; 8], u8)>,
    places: LineMap<usize>,
}

impl SWal {
    /// A block, and the headers of its group.
    fn block(&self, index: u64) -> (Line, Line) {
        let group = Line::of(self.base + GROUPS + index / BLOCKS * GROUP_BYTES);
        (Line(group.0 + index % BLOCKS), Line(group.0 + BLOCKS))
    }

    fn flush(&self, line: Line, class: Class, cpu: &mut impl Cpu) {
        let how = match self.params.flush {
            Instruction::Clflush => Flush::EvictInOrder,
            Instruction::Clflushopt => Flush::Evict,
            Instruction::Clwb => Flush::WriteBack,
        };
        cpu.flush(line, class, how);
    }

    /// Copies the lines to the log, group by group.
    fn log(&self, cpu: &mut impl Cpu) {
        let copies = (0..).zip(&self.copies);
        for (index, (line, words, _)) in copies {
            let (block, headers) = self.block(index);
            store_line(block, words, cpu);
            let header = Word(headers.first_word().0 + index % BLOCKS);
            cpu.store(Ptr::to(header.address()), line.address() + 1, u64::MAX);
            let is_last = index + 1 == self.copies.len() as u64;
            if is_last || index % BLOCKS + 1 == BLOCKS {
                let rest = index % BLOCKS + 1..BLOCKS;
                for word in rest.map(|slot| Word(headers.first_word().0 + slot)) {
                    cpu.store(Ptr::to(word.address()), 0, u64::MAX);
                }
                let number = Word(headers.first_word().0 + BLOCKS);
                cpu.store(Ptr::to(number.address()), self.number, u64::MAX);
            }
        }
        if self.rules.flush_log {
            for index in 0..self.copies.len() as u64 {
                let (block, headers) = self.block(index);
                self.flush(block, Class::Log, cpu);
                if index % BLOCKS + 1 == BLOCKS || index + 1 == self.copies.len() as u64 {
                    self.flush(headers, Class::Metadata, cpu);
                }
            }
        }
    }
}

fn store_line(line: Line, words: &[u64; 8], cpu: &mut impl Cpu) {
    for (word, &value) in (line.first_word().0..).map(Word).zip(words) {
        cpu.store(Ptr::to(word.address()), value, u64::MAX);
    }
}

impl Log for SWal {
    const NAME: &'static str = "s-wal";
    const FILE: &'static str = file!();
    const GRANULARITY: Granularity = Granularity::Line;
    type Params = SWalParams;
    type Rules = SWalRules;

    fn new(params: &SWalParams, rules: &SWalRules, shape: &Shape, core: CoreId) -> SWal {
        SWal {
            params: params.clone(),
            rules: rules.clone(),
            base: shape.log_of(core),
            bytes: shape.log_bytes,
            number: 0,
            copies: Vec::new(),
            places: LineMap::default(),
        }
    }

    fn begin(&mut self, _tx: TxId, cpu: &mut impl Cpu) {
        if self.number == 0 {
            let placed = cpu.peek(Word::of(self.base + PLACED));
            self.number = cpu.peek(Word::of(self.base)).max(placed) + 1;
        }
    }

    fn load(&mut self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        if self.copies.is_empty() {
            return cpu.load(at);
        }
        cpu.work(self.params.lookup);
        let word = Word::of(at.address);
        match self.places.get(&word.line()) {
            Some(&place) => (self.copies[place].1[word.place()], at.known),
            None => cpu.load(at),
        }
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        cpu.work(self.params.lookup);
        let word = Word::of(at.address);
        let line = word.line();
        let place = match self.places.get(&line) {
            Some(&place) => place,
            None => {
                let words = std::array::from_fn(|place| {
                    let address = line.address() + 8 * place as u64;
                    cpu.load(Ptr { address, ..at }).0
                });
                self.places.insert(line, self.copies.len());
                self.copies.push((line, words, 0));
                self.copies.len() - 1
            }
        };
        let (_, words, stored) = &mut self.copies[place];
        let copy = &mut words[word.place()];
        *copy = (*copy & !mask) | (value & mask);
        *stored |= 1 << word.place();
    }

    fn commit(&mut self, cpu: &mut impl Cpu) {
        self.places.clear();
        let blocks = self.copies.len() as u64;
        if blocks == 0 {
            return;
        }
        let end = GROUPS + blocks.div_ceil(BLOCKS) * GROUP_BYTES;
        if end > self.bytes {
            return cpu.give_up(format!(
                "a transaction of {blocks} lines does not fit the log of {} bytes: raise it with \
                 {}, or more for a larger one",
                self.bytes,
                log_size(end)
            ));
        }
        self.log(cpu);
        if self.rules.order_log_before_record {
            cpu.order();
        }
        cpu.store(Ptr::to(self.base), self.number, u64::MAX);
        if self.rules.flush_record {
            self.flush(Line::of(self.base), Class::Commit, cpu);
        }
        if self.rules.durable_record {
            cpu.durable();
        }
    }

    /// Drops the copies. Nothing of them has been logged.
    fn abort(&mut self, _cpu: &mut impl Cpu) {
        self.places.clear();
        self.copies.clear();
    }

    fn settle(&mut self, cpu: &mut impl Cpu) {
        if self.copies.is_empty() {
            return;
        }
        for (line, words, stored) in &self.copies {
            for place in bits((*stored).into()) {
                let address = line.address() + 8 * place;
                cpu.store(Ptr::to(address), words[place as usize], u64::MAX);
            }
        }
        for (line, ..) in std::mem::take(&mut self.copies) {
            if self.rules.flush_data {
                self.flush(line, Class::Data, cpu);
            }
        }
        if self.rules.order_data_before_truncation {
            cpu.order();
        }
        cpu.store(Ptr::to(self.base + PLACED), self.number, u64::MAX);
        if self.rules.flush_truncation {
            self.flush(Line::of(self.base + PLACED), Class::Metadata, cpu);
        }
        self.number += 1;
        if self.rules.truncate_before_unlock {
            cpu.durable();
        }
    }

    fn recover(image: &mut Image<'_>, rules: &SWalRules, shape: &Shape) -> Result<(), PowerLoss> {
        for core in (0..shape.cores).map(CoreId) {
            let base = shape.log_of(core);
            let (record, placed) = (Word::of(base), Word::of(base + PLACED));
            let (number, done) = (image.word(record), image.word(placed));
            let groups = (shape.log_bytes - GROUPS) / GROUP_BYTES;
            let headers = |group: u64| Line::of(base + GROUPS + group * GROUP_BYTES).0 + BLOCKS;
            let of = |image: &Image<'_>, group| {
                image.word(Word(Line(headers(group)).first_word().0 + BLOCKS))
            };
            for group in 0..groups {
                if number <= done || of(image, group) != number {
                    break;
                }
                for slot in 0..BLOCKS {
                    let header = image.word(Word(Line(headers(group)).first_word().0 + slot));
                    if header > 0 && header < shape.log_base {
                        let data = *image.line(Line(headers(group) - BLOCKS + slot));
                        image.set_line(Line::of(header - 1), &data, u64::MAX)?;
                    }
                }
            }
            if number > done {
                if rules.fence_before_log_is_dropped {
                    image.fence();
                }
                image.set_word(placed, number)?;
            }
        }
        Ok(())
    }

    fn boot(image: &mut Image<'_>, rules: &SWalRules, shape: &Shape) -> Result<(), PowerLoss> {
        if rules.use_up_number_at_boot {
            software::use_up_numbers(image, shape, &[0, PLACED])?;
        }
        Ok(())
    }
}
