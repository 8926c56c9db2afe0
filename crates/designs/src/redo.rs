//! A software redo log: a transaction's stores go to a volatile write set; at commit they are
//! logged, then a record commits them, and only then they go to their places (Mnemosyne, ASPLOS
//! 2011, logs in this order).
//!
//! ```text
//! a core's log:  word 0           the record: the number of the last committed transaction
//!                word 8           the mark: the number of the last one whose stores are all in
//!                                 place, and the place at which the entries of the next one begin
//!                word 16 + 4i     place i: address, value, transaction
//! ```
//!
//! The next transaction makes entries only when the mark is durable, so those of a transaction with
//! a record and no mark are where the mark says.

use model::design::{Cpu, Granularity, Shape};
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, TxId, Word};
use model::workload::{Flush, Ptr};

use crate::software::{self, ALREADY_DURABLE, Entries, Log, LogPlace, Mark};
use crate::write_set::{Truncation, WriteSet};

model::params! {
    /// What the log costs a program beside its loads, stores, flushes and fences.
    pub struct RedoParams {
        /// Instructions of looking up a word in the write set (ours: a hash and a compare).
        lookup = 6 in 0..=1000;
        /// Where the entries of a transaction go in its core's log. `anew`: from the first place
        /// on, over those of the transaction before (ours: as in the undo log). `ring`: behind
        /// those, and from the last place on to the first (ours: so do the hardware logs here).
        log_place: LogPlace = Anew;
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
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A machine that boots skips the number of a transaction that may have left entries
        /// without a record, so that they do not count for a later one.
        use_up_number_at_boot,
    }
}

const PLACED: u64 = 64;
const ENTRIES: u64 = 128;
const ENTRY_BYTES: u64 = 32;

/// The redo log of one core.
pub struct Redo {
    log_place: LogPlace,
    rules: RedoRules,
    base: u64,
    entries: Entries,
    number: u64,
    writes: WriteSet,
}

fn entries_of(shape: &Shape, core: CoreId) -> Entries {
    Entries::new(shape, core, ENTRIES, ENTRY_BYTES)
}

impl Log for Redo {
    const NAME: &'static str = "redo";
    const FILE: &'static str = file!();
    const GRANULARITY: Granularity = Granularity::Word;
    const NEEDLESS_WHERE_VISIBLE: &'static [(&'static str, &'static str)] = &[
        ("flush_log", ALREADY_DURABLE),
        ("order_log_before_record", ALREADY_DURABLE),
        ("durable_record", ALREADY_DURABLE),
        ("flush_data", ALREADY_DURABLE),
        ("order_data_before_truncation", ALREADY_DURABLE),
        ("truncate_before_unlock", ALREADY_DURABLE),
        ("fence_before_log_is_dropped", ALREADY_DURABLE),
    ];
    type Params = RedoParams;
    type Rules = RedoRules;

    fn new(params: &RedoParams, rules: &RedoRules, shape: &Shape, core: CoreId) -> Redo {
        Redo {
            log_place: params.log_place,
            rules: rules.clone(),
            base: shape.log_of(core),
            entries: entries_of(shape, core),
            number: 0,
            writes: WriteSet::new(params.lookup),
        }
    }

    fn begin(&mut self, _tx: TxId, cpu: &mut impl Cpu) {
        if self.number == 0 {
            let placed = Mark::of(cpu.peek(Word::of(self.base + PLACED)));
            self.number = cpu.peek(Word::of(self.base)).max(placed.number) + 1;
            self.entries.from = placed.from;
        }
    }

    fn load(&mut self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        self.writes.load(at, cpu)
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        self.writes.store(at, value, mask, cpu);
    }

    fn commit(&mut self, cpu: &mut impl Cpu) {
        self.writes.end();
        if self.writes.is_empty() {
            return;
        }
        let entry = |word: Word, value, _: &mut _| [word.address(), value, self.number];
        if !self.writes.log(&self.entries, self.rules.flush_log, cpu, entry) {
            return;
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
        self.writes.forget();
    }

    fn settle(&mut self, cpu: &mut impl Cpu) {
        if self.writes.is_empty() {
            return;
        }
        self.entries.go_on(self.writes.len(), self.log_place);
        let how = Truncation {
            mark: Word::of(self.base + PLACED),
            content: Mark { number: self.number, from: self.entries.from },
            flush_data: self.rules.flush_data,
            order_data: self.rules.order_data_before_truncation,
            wait: self.rules.truncate_before_unlock,
        };
        self.writes.settle(&how, cpu);
        self.number += 1;
    }

    fn recover(image: &mut Image<'_>, rules: &RedoRules, shape: &Shape) -> Result<(), PowerLoss> {
        for core in (0..shape.cores).map(CoreId) {
            let base = shape.log_of(core);
            let (record, placed) = (Word::of(base), Word::of(base + PLACED));
            let (number, mark) = (image.word(record), Mark::of(image.word(placed)));
            if number <= mark.number {
                continue;
            }
            let entries = entries_of(shape, core).beginning(mark.from);
            for place in 0..entries.room() {
                let [address, value, of] = entries.read(place, image);
                if of != number || address >= shape.log_base {
                    break;
                }
                image.set_word(Word::of(address), value)?;
            }
            if rules.fence_before_log_is_dropped {
                image.fence();
            }
            image.set_word(placed, Mark { number, ..mark }.word())?;
        }
        Ok(())
    }

    fn boot(image: &mut Image<'_>, rules: &RedoRules, shape: &Shape) -> Result<(), PowerLoss> {
        if rules.use_up_number_at_boot {
            software::use_up_numbers(image, shape, &[0, PLACED])?;
        }
        Ok(())
    }
}

const _: () = assert!(LINE_BYTES.is_multiple_of(ENTRY_BYTES), "an entry lies within a line");
