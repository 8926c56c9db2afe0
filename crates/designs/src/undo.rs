//! A software undo log: before a line is first stored to in a transaction, its old bytes are
//! logged and ordered before the store; at commit the lines are flushed, and then a mark ends the
//! transaction (PMDK's libpmemobj logs in this order).
//!
//! ```text
//! a core's log:  line 0       the mark: the number of the last transaction that ended, and the
//!                             place at which the entries of the next one begin
//!                line 1 + 2i  place i: the line's old bytes
//!                line 2 + 2i  place i: address, transaction, checksum of all of these
//! ```
//!
//! An entry counts if its checksum is right and its transaction is the one after the mark, so one
//! fence covers both of its lines, and the mark invalidates all entries at once. What lies behind
//! them in a ring is of an earlier lap, and has the number of a transaction that has ended.

use model::design::{Cpu, Granularity, Shape};
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, LINE_BYTES, Line, LineData, LineSet, TxId, Word, mix, mix_all};
use model::workload::{Flush, Ptr};

use crate::software::{ALREADY_DURABLE, Entries, LAST_IS_LAST, Log, LogPlace, Mark};

model::params! {
    /// What the log costs a program beside its loads, stores, flushes and fences.
    pub struct UndoParams {
        /// Instructions of looking up whether a line is logged (ours: a hash and a compare).
        lookup = 6 in 0..=1000;
        /// Instructions of making the entry of a line, with its checksum (ours: two a word).
        record = 20 in 0..=1000;
        /// Where the entries of a transaction go in its core's log. `anew`: from the first place
        /// on, over those of the transaction before (PMDK's libpmemobj). `ring`: behind those, and
        /// from the last place on to the first (ours: so do the hardware logs here).
        log_place: LogPlace = Anew;
    }
}

model::rules! {
    /// What keeps the log right.
    pub struct UndoRules {
        /// The entry of a line is made before the line is stored to.
        log_before_store,
        /// The entry of a line is flushed.
        flush_log,
        /// The store waits until the entry is durable.
        order_log_before_store,
        /// The lines that were stored to are flushed at commit.
        flush_data,
        /// The mark waits until the lines are durable.
        order_data_before_mark,
        /// The acknowledgement waits until the mark is durable.
        durable_before_acknowledge,
        /// The commit leaves a mark.
        mark_at_commit,
        /// Recovery believes an entry only if its checksum is right.
        verify_checksum,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A transaction that was undone keeps its number to itself, so that its entries behind
        /// those of a later transaction do not count for that one.
        use_up_number,
    }
}

/// The undo log of one core.
pub struct Undo {
    params: UndoParams,
    rules: UndoRules,
    mark: Word,
    entries: Entries,
    /// The number that the next mark will hold.
    number: u64,
    /// Lines logged in this transaction, in order of their entries.
    lines: Vec<Line>,
    logged: LineSet,
}

fn entries_of(shape: &Shape, core: CoreId) -> Entries {
    Entries::new(shape, core, LINE_BYTES, 2 * LINE_BYTES)
}

/// The two lines of an entry.
fn lines_of(entries: &Entries, index: usize) -> (Line, Line) {
    let data = Line::of(entries.at(index));
    (data, Line(data.0 + 1))
}

impl Undo {
    /// Logs the old bytes of a line.
    fn log(&mut self, line: Line, old: &[u64; 8], cpu: &mut impl Cpu) {
        let index = self.lines.len();
        if index >= self.entries.room() {
            return cpu.give_up(format!(
                "a transaction of more than {index} lines does not fit the log of {} bytes: raise \
                 it with --set pm.log_size=...",
                self.entries.log
            ));
        }
        let (data, tail) = lines_of(&self.entries, index);
        for (word, &value) in (data.first_word().0..).zip(old) {
            cpu.store(Ptr::to(Word(word).address()), value, u64::MAX);
        }
        cpu.work(self.params.record);
        let sum = checksum(line, self.number, old);
        for (word, value) in (tail.first_word().0..).zip([line.address(), sum, self.number]) {
            cpu.store(Ptr::to(Word(word).address()), value, u64::MAX);
        }
        if self.rules.flush_log {
            cpu.flush(data, Class::Log, Flush::WriteBack);
            cpu.flush(tail, Class::Log, Flush::WriteBack);
        }
        if self.rules.order_log_before_store {
            cpu.order();
        }
        self.lines.push(line);
    }
}

impl Log for Undo {
    const NAME: &'static str = "undo";
    const FILE: &'static str = file!();
    const GRANULARITY: Granularity = Granularity::Line;
    const NEEDLESS_WHERE_VISIBLE: &'static [(&'static str, &'static str)] = &[
        ("flush_log", ALREADY_DURABLE),
        ("order_log_before_store", ALREADY_DURABLE),
        ("flush_data", ALREADY_DURABLE),
        ("order_data_before_mark", ALREADY_DURABLE),
        ("durable_before_acknowledge", ALREADY_DURABLE),
        ("verify_checksum", LAST_IS_LAST),
        ("fence_before_log_is_dropped", ALREADY_DURABLE),
    ];
    type Params = UndoParams;
    type Rules = UndoRules;

    fn new(params: &UndoParams, rules: &UndoRules, shape: &Shape, core: CoreId) -> Undo {
        Undo {
            params: params.clone(),
            rules: rules.clone(),
            mark: Word::of(shape.log_of(core)),
            entries: entries_of(shape, core),
            number: 0,
            lines: Vec::new(),
            logged: LineSet::default(),
        }
    }

    fn begin(&mut self, tx: TxId, cpu: &mut impl Cpu) {
        if self.number == 0 {
            // The library starts, and goes on from the mark that it finds.
            let mark = Mark::of(cpu.peek(self.mark));
            (self.number, self.entries.from) = (mark.number + 1, mark.from);
        }
        debug_assert!(self.lines.is_empty(), "{tx:?} begins in another transaction");
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        cpu.work(self.params.lookup);
        let line = Line::of(at.address);
        if !self.logged.insert(line) {
            return cpu.store(at, value, mask);
        }
        let mut old = [0; 8];
        for (word, value) in (line.first_word().0..).zip(&mut old) {
            *value = cpu.load(Ptr { address: Word(word).address(), ..at }).0;
        }
        if self.rules.log_before_store {
            self.log(line, &old, cpu);
            cpu.store(at, value, mask);
        } else {
            cpu.store(at, value, mask);
            self.log(line, &old, cpu);
        }
    }

    fn commit(&mut self, cpu: &mut impl Cpu) {
        self.logged.clear();
        if self.lines.is_empty() {
            return;
        }
        self.entries.go_on(self.lines.len(), self.params.log_place);
        for line in self.lines.drain(..) {
            if self.rules.flush_data {
                cpu.flush(line, Class::Data, Flush::WriteBack);
            }
        }
        if self.rules.order_data_before_mark {
            cpu.order();
        }
        if self.rules.mark_at_commit {
            let mark = Mark { number: self.number, from: self.entries.from };
            cpu.store(Ptr::to(self.mark.address()), mark.word(), u64::MAX);
            cpu.flush(self.mark.line(), Class::Commit, Flush::WriteBack);
        }
        self.number += 1;
        if self.rules.durable_before_acknowledge {
            cpu.durable();
        }
    }

    /// Applies the log backwards, and ends as a commit does: until the mark is durable, recovery
    /// would do the same.
    fn abort(&mut self, cpu: &mut impl Cpu) {
        for index in (0..self.lines.len()).rev() {
            let (data, _) = lines_of(&self.entries, index);
            for (from, to) in words_of(data).zip(words_of(self.lines[index])) {
                let (old, _) = cpu.load(Ptr::to(from.address()));
                cpu.store(Ptr::to(to.address()), old, u64::MAX);
            }
        }
        self.commit(cpu);
    }

    fn recover(image: &mut Image<'_>, rules: &UndoRules, shape: &Shape) -> Result<(), PowerLoss> {
        for core in (0..shape.cores).map(CoreId) {
            let word = Word::of(shape.log_of(core));
            let mark = Mark::of(image.word(word));
            let number = mark.number + 1;
            let places = entries_of(shape, core).beginning(mark.from);
            let mut entries: Vec<(Line, LineData)> = Vec::new();
            for index in 0..places.room() {
                let (data, tail) = lines_of(&places, index);
                let tail = tail.first_word();
                let [address, sum, of] = [0, 1, 2].map(|word| image.word(Word(tail.0 + word)));
                let old: [u64; 8] =
                    std::array::from_fn(|word| image.word(Word(data.first_word().0 + word as u64)));
                let line = Line::of(address);
                let right = !rules.verify_checksum || sum == checksum(line, of, &old);
                if of != number || !right || address >= shape.log_base {
                    break;
                }
                entries.push((line, *image.line(data)));
            }
            if entries.is_empty() {
                continue;
            }
            for (line, old) in entries.iter().rev() {
                image.set_line(*line, old, u64::MAX)?;
            }
            if rules.fence_before_log_is_dropped {
                image.fence();
            }
            if rules.use_up_number {
                image.set_word(word, Mark { number, ..mark }.word())?;
            }
        }
        Ok(())
    }
}

fn words_of(line: Line) -> impl Iterator<Item = Word> {
    (line.first_word().0..).map(Word).take(8)
}

fn checksum(line: Line, number: u64, data: &[u64; 8]) -> u64 {
    mix_all(mix(line.0 ^ number.rotate_left(32)), data)
}
