//! A software redo log that commits by counting: at commit a transaction's stores are logged, each
//! entry with the number of entries, and the transaction has committed when all of them are
//! durable. There is no commit record, and so no fence between the entries and a record (the count
//! is that of LOC's eager commit, ICCD 2014; in software it is ours).
//!
//! ```text
//! a core's log:  word 0          the mark: the number of the last transaction whose stores are all
//!                                in place, and the place at which the entries of the next one
//!                                begin
//!                word 8 + 4i     place i: address, value, checksum of the other three words, and
//!                                the stamp: the transaction's number, and how many entries it has
//! ```
//!
//! Recovery finds a transaction where the mark says, and replays it if it is newer than the mark
//! and all the entries that its stamp counts are there. That is right whichever of their words
//! reached memory:
//!
//! - *A word is there or not*, and nothing in between. So a stamp that recovery finds was stored as
//!   it is, and its number and count belong together: all entries of a transaction have the same
//!   stamp, and no other transaction of the core has it, since no number is used twice. After a
//!   power failure the machine that boots uses up the numbers that entries may have.
//! - *Entries are distinct by their places*: those of a transaction lie one behind the other. The
//!   count is right if that many entries, from the first on, have the stamp. What an earlier
//!   transaction has left among them, or behind them, has another stamp.
//! - *An entry is whole*, or its checksum is wrong. Where the stamp is new and other words are left
//!   from an earlier transaction, the checksum always tells of one such word, since it is a
//!   one-to-one function of each word if the others stay; it tells of several but for one time in
//!   2^64.
//! - *An entry whose words have all arrived* is never lost by later stores: only the next
//!   transaction of the core uses its place, and that begins when the mark is durable.
//!
//! No store goes to its place before all entries are durable, so a transaction that lacks an entry
//! has left nothing there.

use model::design::{Cpu, Granularity, Shape};
use model::image::{Image, PowerLoss};
use model::units::{CoreId, Cycle, LINE_BYTES, TxId, Word, mix_all};
use model::workload::Ptr;

use crate::software::{self, ALREADY_DURABLE, Entries, LAST_IS_LAST, Log, LogPlace, Mark};
use crate::write_set::{Truncation, WriteSet};

model::params! {
    /// What the log costs a program beside its loads, stores, flushes and fences.
    pub struct CountParams {
        /// Instructions of looking up a word in the write set (ours: a hash and a compare).
        lookup = 6 in 0..=1000;
        /// Instructions of the checksum of an entry (ours: two a word, as those of the undo log).
        record = 6 in 0..=1000;
        /// Where the entries of a transaction go in its core's log. `anew`: from the first place
        /// on, over those of the transaction before (ours: as in the undo log). `ring`: behind
        /// those, and from the last place on to the first (ours: so do the hardware logs here).
        log_place: LogPlace = Anew;
    }
}

model::rules! {
    /// What keeps the log right.
    pub struct CountRules {
        /// The entries are flushed at commit.
        flush_log,
        /// The acknowledgement, and the stores to their places, wait until the entries are durable.
        durable_log,
        /// Recovery replays a transaction only if all of its entries are there.
        count_entries,
        /// Recovery counts an entry only if it belongs to the same transaction as entry 0.
        match_stamp,
        /// Recovery believes an entry only if its checksum is right.
        verify_checksum,
        /// Recovery does not replay a transaction whose stores are in place, as the mark says:
        /// others may have stored to the same words since.
        skip_placed,
        /// The lines that were stored to are flushed before the log is truncated.
        flush_data,
        /// The truncation waits until the lines are durable.
        order_data_before_truncation,
        /// The locks are given back only when the truncation is durable: another core may store
        /// to the same words next, and replaying the log would take its stores back.
        truncate_before_unlock,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A machine that boots skips the number of a transaction that may have left some of its
        /// entries, so that those do not count for a later one.
        use_up_number_at_boot,
    }
}

const PLACED: u64 = 0;
const ENTRIES: u64 = LINE_BYTES;
const ENTRY_BYTES: u64 = 32;

/// Bits of the count in a stamp; the other bits hold the number. The longest log that a machine
/// takes, of 1 GiB, has fewer entries than the count can say.
const COUNT_BITS: u32 = 25;

/// What all entries of a transaction carry: its number, and how many entries it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    number: u64,
    count: u64,
}

impl Stamp {
    fn of(word: u64) -> Stamp {
        Stamp { number: word >> COUNT_BITS, count: word % (1 << COUNT_BITS) }
    }

    fn word(self) -> u64 {
        assert!(self.count < 1 << COUNT_BITS && self.number < 1 << (64 - COUNT_BITS));
        self.number << COUNT_BITS | self.count
    }
}

/// The redo log of one core.
pub struct Count {
    record: u64,
    log_place: LogPlace,
    rules: CountRules,
    mark: Word,
    entries: Entries,
    number: u64,
    writes: WriteSet,
}

fn entries_of(shape: &Shape, core: CoreId) -> Entries {
    Entries::new(shape, core, ENTRIES, ENTRY_BYTES)
}

fn mark_of(shape: &Shape, core: CoreId) -> Word {
    Word::of(shape.log_of(core) + PLACED)
}

impl Log for Count {
    const NAME: &'static str = "count";
    const FILE: &'static str = file!();
    const GRANULARITY: Granularity = Granularity::Word;
    const NEEDLESS_WHERE_VISIBLE: &'static [(&'static str, &'static str)] = &[
        ("flush_log", ALREADY_DURABLE),
        ("durable_log", ALREADY_DURABLE),
        ("flush_data", ALREADY_DURABLE),
        ("order_data_before_truncation", ALREADY_DURABLE),
        ("truncate_before_unlock", ALREADY_DURABLE),
        ("verify_checksum", LAST_IS_LAST),
        ("fence_before_log_is_dropped", ALREADY_DURABLE),
        (
            "use_up_number_at_boot",
            "entries survive in order, so of a transaction that was cut short the last one is not \
             there",
        ),
    ];
    type Params = CountParams;
    type Rules = CountRules;

    fn new(params: &CountParams, rules: &CountRules, shape: &Shape, core: CoreId) -> Count {
        Count {
            record: params.record,
            log_place: params.log_place,
            rules: rules.clone(),
            mark: mark_of(shape, core),
            entries: entries_of(shape, core),
            number: 0,
            writes: WriteSet::new(params.lookup),
        }
    }

    fn begin(&mut self, _tx: TxId, cpu: &mut impl Cpu) {
        if self.number == 0 {
            let mark = Mark::of(cpu.peek(self.mark));
            (self.number, self.entries.from) = (mark.number + 1, mark.from);
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
        let stamp = Stamp { number: self.number, count: self.writes.len() as u64 }.word();
        let fits = self.writes.log(&self.entries, self.rules.flush_log, cpu, |word, value, cpu| {
            cpu.work(self.record);
            [word.address(), value, checksum(word.address(), value, stamp), stamp]
        });
        if fits && self.rules.durable_log {
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
            mark: self.mark,
            content: Mark { number: self.number, from: self.entries.from },
            flush_data: self.rules.flush_data,
            order_data: self.rules.order_data_before_truncation,
            wait: self.rules.truncate_before_unlock,
        };
        self.writes.settle(&how, cpu);
        self.number += 1;
    }

    fn recover(image: &mut Image<'_>, rules: &CountRules, shape: &Shape) -> Result<(), PowerLoss> {
        for core in (0..shape.cores).map(CoreId) {
            let word = mark_of(shape, core);
            let mark = Mark::of(image.word(word));
            let entries = entries_of(shape, core).beginning(mark.from);
            let [.., stamp] = entries.read::<4>(0, image);
            let stamp = Stamp::of(stamp);
            let is_placed = rules.skip_placed && stamp.number <= mark.number;
            if stamp.count == 0 || is_placed {
                continue;
            }
            let of_it = (0..entries.room()).take(stamp.count as usize);
            let counts = |&[address, value, sum, other]: &[u64; 4]| {
                (!rules.match_stamp || Stamp::of(other) == stamp)
                    && (!rules.verify_checksum || sum == checksum(address, value, other))
                    && address < shape.log_base
            };
            let found: Vec<[u64; 4]> =
                of_it.map(|place| entries.read(place, image)).filter(counts).collect();
            if rules.count_entries && found.len() as u64 != stamp.count {
                continue;
            }
            for [address, value, ..] in found {
                image.set_word(Word::of(address), value)?;
            }
            if rules.fence_before_log_is_dropped {
                image.fence();
            }
            image.set_word(word, Mark { number: stamp.number, ..mark }.word())?;
        }
        Ok(())
    }

    fn boot(image: &mut Image<'_>, rules: &CountRules, shape: &Shape) -> Result<(), PowerLoss> {
        if rules.use_up_number_at_boot {
            software::use_up_numbers(image, shape, &[PLACED])?;
        }
        Ok(())
    }
}

fn checksum(address: u64, value: u64, stamp: u64) -> u64 {
    mix_all(0, &[address, value, stamp])
}

const _: () = assert!(LINE_BYTES.is_multiple_of(ENTRY_BYTES), "an entry lies within a line");

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::contents::Contents;
    use model::params::Rules;

    use super::*;

    /// The words of a transaction's entries, in order.
    fn entries(number: u64, writes: &[(u64, u64)]) -> Vec<u64> {
        let stamp = Stamp { number, count: writes.len() as u64 }.word();
        let entry = |&(address, value)| [address, value, checksum(address, value, stamp), stamp];
        writes.iter().flat_map(entry).collect()
    }

    /// Runs recovery on a log that starts with these words and whose mark is `mark`. Returns the
    /// data from 0 to 64, and the mark.
    fn recovered(mark: u64, log: &[u64], rules: &CountRules) -> ([u64; 8], u64) {
        thread_local! {
            static NEW: Contents = Contents::new(0, CAPACITY).expect("room");
        }
        NEW.with(|memory| recovered_over(memory, mark, log, rules))
    }

    const CAPACITY: u64 = 1 << 20;

    fn recovered_over(
        memory: &Contents,
        mark: u64,
        log: &[u64],
        rules: &CountRules,
    ) -> ([u64; 8], u64) {
        let mut config = Config::default();
        config.pm.capacity = CAPACITY;
        config.pm.log = 1 << 12;
        let shape = Shape::new(&config, 1);
        let mut image = Image::over(memory);
        let base = shape.log_of(CoreId(0));
        image.set_word(Word::of(base), mark).expect("power");
        for (at, &word) in (base + ENTRIES..).step_by(8).zip(log) {
            image.set_word(Word::of(at), word).expect("power");
        }
        Count::recover(&mut image, rules, &shape).expect("power");
        let data = std::array::from_fn(|word| image.word(Word(word as u64)));
        (data, image.word(Word::of(base)))
    }

    /// The words of a log after a power failure: the new ones that arrived, over the old ones.
    fn torn(old: &[u64], new: &[u64], arrived: u32) -> Vec<u64> {
        let word = |place: usize| match (new.get(place), old.get(place)) {
            (Some(&new), _) if arrived >> place & 1 == 1 => new,
            (_, old) => old.copied().unwrap_or_default(),
        };
        (0..new.len().max(old.len())).map(word).collect()
    }

    const OLD: &[(u64, u64)] = &[(0, 10), (16, 12), (24, 13), (8, 11), (32, 14)];
    const NEW: &[(u64, u64)] = &[(0, 20), (16, 12), (8, 21)];

    #[test]
    fn whatever_words_reach_memory_it_is_all_or_nothing() {
        let (new, rules) = (entries(8, NEW), CountRules::default());
        let all = (1 << new.len()) - 1;
        for old in [vec![], entries(7, OLD), entries(7, &OLD[..2]), entries(7, NEW)] {
            for arrived in 0..=all {
                let log = torn(&old, &new, arrived);
                // Words that are the same as before need not arrive.
                let is_whole = log[..new.len()] == new;
                let expected =
                    if is_whole { ([20, 21, 12, 0, 0, 0, 0, 0], 8) } else { ([0; 8], 7) };
                assert_eq!(recovered(7, &log, &rules), expected, "{arrived:b} over {old:?}");
            }
        }
    }

    #[test]
    fn what_is_torn_would_be_replayed_without_each_of_the_rules_of_recovery() {
        let (old, new) = (entries(7, OLD), entries(8, NEW));
        let second_entry_is_old = torn(&old, &new, 0xf0f);
        let second_value_is_old = torn(&entries(7, &[(0, 1), (16, 2), (8, 3)]), &new, 0xfdf);
        for (rule, log) in [
            ("count_entries", &second_entry_is_old),
            ("match_stamp", &second_entry_is_old),
            ("verify_checksum", &second_value_is_old),
        ] {
            assert_eq!(recovered(7, log, &CountRules::default()).1, 7);
            assert_eq!(recovered(7, log, &CountRules::default().without(rule)).1, 8, "{rule}");
        }
        assert_eq!(recovered(8, &new, &CountRules::default()), ([0; 8], 8));
        assert_eq!(recovered(8, &new, &CountRules::default().without("skip_placed")).0[1], 21);
    }

    #[test]
    fn a_stamp_has_room_for_the_longest_log() {
        let stamp = Stamp { number: 1 << 38, count: (1 << 30) / ENTRY_BYTES - 1 };
        assert_eq!(Stamp::of(stamp.word()), stamp);
    }
}
