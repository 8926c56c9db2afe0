//! `scribble`: stores over a few words that all cores share, for finding errors in designs rather
//! than for measuring them.
//!
//! ```text
//! heap | word 0 | word 1 | ... | word `words` - 1 |      from the heap's first line on
//!      | lock 0 covers a line (or a word) | lock 1 covers the next | ...
//! ```
//!
//! Lines follow each other, or lie `apart`, so that they are in several pages.
//!
//! A transaction takes a few locks in ascending order and then stores into the words that they
//! cover: whole words, bytes at any alignment, the same word again, the value that is there
//! already, another value and the old one back; and it loads between. One in 24 is `large`: it
//! takes many locks and stores to more words than a small log buffer has entries. With `long`, one
//! in 24 of the others computes for that long, while other cores complete many transactions.
//! `aborts` in a hundred are aborted at their end. With locks on words, lines are falsely shared on
//! purpose: designs that log or version whole lines need locks on lines, and a test may show that
//! they fail without these.

use model::image::Image;
use model::units::{CoreId, LINE_BYTES, WORD_BYTES};
use model::workload::{
    About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Stop, Workload,
};

use crate::choices::LockGrain;
use crate::rng::Random;

/// One transaction in so many is large.
const LARGE_ONE_IN: u64 = 24;
/// One of the other transactions in so many takes long, if any does.
const LONG_ONE_IN: u64 = 24;
/// Locks that the other transactions take, at most.
const LOCKS_MAX: u64 = 3;

model::params! {
    /// Parameters of `scribble`.
    pub struct ScribbleParams {
        /// Words that all cores store to; 96 are twelve lines: few enough to meet again and again,
        /// and more than the caches of machine `tiny` always have room for.
        words = 96 in 2..=4096;
        /// The most steps of a transaction that is not large; most of them are stores.
        stores = 8 in 1..=64;
        /// Words that a large transaction stores to, if there are so many (ours: twice Silo's 20
        /// log entries).
        large = 40 in 1..=4096;
        /// Instructions that one transaction in 24 computes after its first step; it has one lock.
        long = 0 in 0..=100_000_000;
        /// What one lock covers. Locks on words give false sharing of lines.
        lock_grain: LockGrain = Line;
        /// Bytes from one line to the next, a multiple of 64; 0 for none between them.
        apart = 0 in 0..=65_536;
        /// Transactions in a hundred that are aborted.
        aborts = 0 in 0..=100;
        /// Whether stores of bytes go beyond what one lock covers into what the next one does, if
        /// the transaction has it: across lines, or with locks on words across words.
        straddle: Straddle = No;
    }
}

model::choices! {
    /// Whether stores of bytes go beyond what one lock covers.
    pub enum Straddle { No = "no", Yes = "yes" }
}

/// The workload.
#[derive(Debug)]
pub struct Scribble {
    params: ScribbleParams,
    site: Site,
    first: u64,
}

impl Declared for Scribble {
    const ABOUT: About = About {
        name: "scribble",
        summary: "overlapping stores of every kind over a few shared words, for crash tests",
        source: "ours (design.md section 11, conformance)",
        file: file!(),
        shared: true,
    };
    const IN_ALL: bool = false;
    const REOPENS: Reopens = Reopens::Always;
    type Params = ScribbleParams;

    fn new(params: &ScribbleParams, site: &Site) -> Step<Scribble> {
        let first = site.heap.start.max(LINE_BYTES).next_multiple_of(LINE_BYTES);
        if !params.apart.is_multiple_of(LINE_BYTES) {
            let text = format!("workload.apart must be a multiple of 64, not {}", params.apart);
            return Err(Stop::Input(text));
        }
        let asked = place((params.words - 1) * WORD_BYTES, params.apart) + WORD_BYTES;
        let free = site.heap.end.saturating_sub(first);
        if asked > free {
            return Err(Stop::OutOfMemory { asked, free });
        }
        Ok(Scribble { params: params.clone(), site: site.clone(), first })
    }
}

impl Workload for Scribble {
    fn has_invariants(&self) -> bool {
        false
    }

    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        for word in 0..self.params.words {
            let offset = place(word * WORD_BYTES, self.params.apart);
            pm.store(Ptr::to(self.first + offset), word + 1);
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(Scribbler {
            random: Random::new(self.site.seed, core, Scribble::ABOUT.name),
            first: self.first,
            bytes: self.params.words * WORD_BYTES,
            grain: self.params.lock_grain.bytes(),
            stores: self.params.stores,
            large: self.params.large,
            long: self.params.long,
            apart: self.params.apart,
            straddles: self.params.straddle == Straddle::Yes,
            aborts: self.params.aborts,
            locks: Vec::new(),
        }))
    }

    /// The workload keeps nothing in volatile memory, so there is nothing to rebuild.
    fn reopen(&mut self, _image: &Image<'_>, seed: u64) -> Result<(), String> {
        self.site.seed = seed;
        Ok(())
    }
}

/// Returns the place in the heap of a byte of the words, whose lines begin `apart` bytes after each
/// other.
fn place(byte: u64, apart: u64) -> u64 {
    byte / LINE_BYTES * apart.max(LINE_BYTES) + byte % LINE_BYTES
}

/// The program of one core.
struct Scribbler {
    random: Random,
    first: u64,
    bytes: u64,
    /// Bytes that one lock covers.
    grain: u64,
    stores: u64,
    large: u64,
    /// Instructions in the middle of the transactions that take long.
    long: u64,
    apart: u64,
    /// Whether stores of bytes go beyond one lock.
    straddles: bool,
    /// Transactions in a hundred that are aborted.
    aborts: u64,
    /// The locks of the present transaction, ascending.
    locks: Vec<u32>,
}

impl Program for Scribbler {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let kind = self.draw_kind();
        let locks_max = match kind {
            Kind::Large => (self.large * WORD_BYTES).div_ceil(self.grain),
            Kind::Long => 1,
            Kind::Common => LOCKS_MAX,
        };
        self.draw_locks(locks_max, kind == Kind::Large);
        for &lock in &self.locks {
            pm.lock(LockId(lock));
        }
        if self.aborts > 0 {
            self.body_that_may_abort(pm, kind)?;
        } else {
            pm.begin()?;
            self.body(pm, kind);
            pm.commit();
        }
        for &lock in self.locks.iter().rev() {
            pm.unlock(LockId(lock));
        }
        Ok(())
    }
}

/// The kind of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Common,
    Large,
    Long,
}

impl Scribbler {
    fn draw_kind(&mut self) -> Kind {
        if self.random.one_in(LARGE_ONE_IN) {
            Kind::Large
        } else if self.long > 0 && self.random.one_in(LONG_ONE_IN) {
            Kind::Long
        } else {
            Kind::Common
        }
    }

    fn body(&mut self, pm: &mut Pm<'_>, kind: Kind) {
        match kind {
            Kind::Large => self.fill(pm),
            Kind::Long => {
                self.step(pm);
                pm.work(self.long);
            }
            Kind::Common => (),
        }
        for _ in 0..=self.random.below(self.stores) {
            self.step(pm);
        }
    }

    /// Runs the body of a transaction that is aborted now and then, after which its words must have
    /// their old values.
    fn body_that_may_abort(&mut self, pm: &mut Pm<'_>, kind: Kind) -> Step {
        pm.begin_abortable()?;
        if self.random.below(100) >= self.aborts {
            self.body(pm, kind);
            pm.commit();
            return Ok(());
        }
        let word = self.word();
        let old = pm.load(word);
        self.body(pm, kind);
        pm.abort();
        let now = pm.load(word);
        if now != old {
            let address = word.address;
            let text = format!("an abort left {now:#x} at {address:#x}, which held {old:#x}");
            return Err(Stop::Failed(text));
        }
        Ok(())
    }

    /// Draws from 1 to `most` different locks (exactly `most` if `all`), or all if there are fewer.
    fn draw_locks(&mut self, most: u64, all: bool) {
        let present = self.bytes.div_ceil(self.grain);
        let most = most.min(present);
        let wanted = if all { most } else { 1 + self.random.below(most) };
        self.locks.clear();
        while (self.locks.len() as u64) < wanted {
            let lock = self.random.below(present) as u32;
            if !self.locks.contains(&lock) {
                self.locks.push(lock);
            }
        }
        self.locks.sort_unstable();
    }

    /// The bytes that one of the locks covers.
    fn covered(&self, lock: u32) -> std::ops::Range<u64> {
        let start = u64::from(lock) * self.grain;
        let first = self.first + place(start, self.apart);
        first..first + self.grain.min(self.bytes - start)
    }

    /// Any word that a lock of the transaction covers.
    fn word(&mut self) -> Ptr {
        let lock = self.locks[self.random.below(self.locks.len() as u64) as usize];
        let covered = self.covered(lock);
        let words = (covered.end - covered.start) / WORD_BYTES;
        Ptr::to(covered.start + self.random.below(words) * WORD_BYTES)
    }

    /// Stores a new value to every word that the locks cover.
    fn fill(&mut self, pm: &mut Pm<'_>) {
        for index in 0..self.locks.len() {
            for word in self.covered(self.locks[index]).step_by(WORD_BYTES as usize) {
                pm.store(Ptr::to(word), self.random.any());
            }
        }
    }

    /// One load, one store, or a few that belong together.
    fn step(&mut self, pm: &mut Pm<'_>) {
        let word = self.word();
        match self.random.below(16) {
            0..=5 => pm.store(word, self.random.any()),
            // One byte of the word changes.
            6 => {
                let old = pm.load(word);
                pm.store(word, old ^ (0xff << (8 * self.random.below(8))));
            }
            // Silent.
            7 => {
                let old = pm.load(word);
                pm.store(word, old);
            }
            // Another value and back, and sometimes on to a third.
            8 | 9 => {
                let old = pm.load(word);
                pm.store(word, self.random.any());
                pm.store(word, old);
                if self.random.one_in(3) {
                    pm.store(word, self.random.any());
                }
            }
            // The same word again and again.
            10 => {
                for _ in 0..=self.random.below(3) {
                    pm.store(word, self.random.any());
                }
            }
            // The value of one word depends on another's.
            11 => {
                let value = pm.load(self.word());
                pm.store(word, value.wrapping_add(1));
            }
            12 | 13 => self.store_bytes(pm),
            14 => _ = pm.load(word),
            _ => pm.work(self.random.below(40)),
        }
    }

    /// Stores 1 to 16 bytes at any alignment, within the bytes of one lock, or also across those of
    /// the following locks that the transaction has, if nothing is between them.
    fn store_bytes(&mut self, pm: &mut Pm<'_>) {
        let first = self.random.below(self.locks.len() as u64) as usize;
        let mut covered = self.covered(self.locks[first]);
        for &lock in self.locks[first + 1..].iter().filter(|_| self.straddles) {
            let next = self.covered(lock);
            if next.start != covered.end {
                break;
            }
            covered.end = next.end;
        }
        let size = covered.end - covered.start;
        let length = 1 + self.random.below(size.min(16));
        let start = covered.start + self.random.below(size - length + 1);
        let value =
            (u128::from(self.random.any()) << 64 | u128::from(self.random.any())).to_le_bytes();
        pm.store_bytes(Ptr::to(start), &value[..length as usize]);
    }
}
