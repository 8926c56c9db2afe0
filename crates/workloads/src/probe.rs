//! `probe`: one kind of access again and again, to measure its latency and its bandwidth on a
//! machine's memory. `indelible probe` uses it to measure what papers measured of real memories.
//!
//! ```text
//! head:   a line of words that follow from seed and core, by which a check detects empty memory
//! place:  `block` bytes, whole lines, each of them
//!   word 0   of the first line, if loads are dependent: the next place of a cycle through all
//!   word 1   the last stored value (a store past the caches writes all eight words)
//!              bit 63  set     20..63  the line     0..20  how many were written before
//! ```
//!
//! A core has places of its own and takes no lock. It goes through them in order, or draws one for
//! each access; where loads are dependent, the place of one is what the one before has loaded, so
//! that nothing overlaps, and at random they are one cycle that comes to each place once.
//!
//! As in [`crate::logcache`] its stores are outside of transactions, so that no design logs them,
//! and it uses only the ordering hardware of a design. `accesses` accesses are followed by a
//! transaction that stores nothing, which counts them. The check is that each word is one that the
//! program made for its place; it holds on every design. The only volatile state is the number of
//! accesses made, so the next life begins to count anew.

use model::image::Image;
use model::units::{CoreId, DRAM_BASE, LINE_BYTES, WORD_BYTES, Word};
use model::workload::{About, Declared, Pm, Program, Ptr, Reopens, Site, Step, Stop, Workload};

use crate::choices::Memory;
use crate::rng::{Random, mix};

/// Words of a line.
const LINE_WORDS: usize = (LINE_BYTES / WORD_BYTES) as usize;
/// The first bit of a line's number in a stored value, and the bit that is set in all of them.
const NUMBER_SHIFT: u32 = 20;
const STORED: u64 = 1 << 63;

model::params! {
    /// Parameters of `probe`.
    pub struct ProbeParams {
        /// What is done with each line: a load of a word, a store of one, the same and `clwb`, or a
        /// store of the whole line past the caches.
        access: Access = StoreClwb;
        /// The order of places.
        pattern: Pattern = Random;
        /// Whether the place of a load is the value of the one before.
        dependent: Dependent = No;
        /// Consecutive bytes of a place.
        block: Block = B64;
        /// Whether a fence follows each place.
        fence: Fence = None;
        /// Accesses to places before the next transaction, which stores nothing.
        accesses = 16 in 1..=1_000_000;
        /// Instructions between accesses.
        work = 0 in 0..=100_000;
        /// Which memory it is.
        memory: Memory = Pm;
        /// Lines of 64 bytes, over all cores; 0 means as many as the machine says.
        items = 0 in 0..=1_000_000_000;
    }
}

model::choices! {
    /// What is done with each line.
    pub enum Access {
        /// A word is loaded.
        Load = "load",
        /// A word is stored to.
        Store = "store",
        /// A word is stored to, and the line is written back.
        StoreClwb = "store+clwb",
        /// All of it is stored past the caches.
        Ntstore = "ntstore",
    }

    /// The order of places.
    pub enum Pattern { Random = "random", Sequential = "sequential" }

    /// Whether the place of a load is the value of the one before.
    pub enum Dependent { No = "no", Yes = "yes" }

    /// Bytes of a place.
    pub enum Block {
        B64 = "64", B128 = "128", B256 = "256", B512 = "512", B1024 = "1024", B4096 = "4096"
    }

    /// What follows each place.
    pub enum Fence { None = "none", Sfence = "sfence" }
}

impl Block {
    fn bytes(self) -> u64 {
        match self {
            Block::B64 => 64,
            Block::B128 => 128,
            Block::B256 => 256,
            Block::B512 => 512,
            Block::B1024 => 1024,
            Block::B4096 => 4096,
        }
    }
}

/// The workload.
#[derive(Debug)]
pub struct Probe {
    parts: Vec<Part>,
    params: ProbeParams,
    /// The seed of the places that programs draw.
    seed: u64,
}

impl Declared for Probe {
    const ABOUT: About = About {
        name: "probe",
        summary: "one kind of access again and again: what memory takes and carries",
        source: "ours; its patterns are those of Izraelevitz+ 2019 and Yang+ FAST'20",
        file: file!(),
        shared: false,
    };
    const IN_ALL: bool = false;
    const REOPENS: Reopens = Reopens::Always;
    type Params = ProbeParams;

    fn new(params: &ProbeParams, site: &Site) -> Step<Probe> {
        if params.dependent == Dependent::Yes && params.access != Access::Load {
            return Err(Stop::Input(
                "workload.dependent=yes works only with loads, whose value is the next place; add \
                 --set workload.access=load"
                    .into(),
            ));
        }
        let parts = (0..site.cores).map(|core| Part::new(params, site, CoreId(core)));
        let parts = parts.collect::<Step<Vec<_>>>()?;
        Ok(Probe { parts, params: params.clone(), seed: site.seed })
    }
}

impl Workload for Probe {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        let used = self.parts.iter().map(Part::end).max().unwrap_or(0);
        pm.check_volatile("workload probe", used, ", or lower --set workload.items=...")?;
        for part in &self.parts {
            for word in 0..LINE_WORDS as u64 {
                pm.store(Ptr::to(part.head + word * WORD_BYTES), part.head_word(word));
            }
            for (place, next) in part.chain() {
                pm.store_ptr(part.line(place, 0), part.line(next, 0));
            }
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let part = self.parts[usize::from(core.0)].clone();
        Ok(Box::new(Prober {
            at: part.line(0, 0),
            part,
            params: self.params.clone(),
            random: Random::new(self.seed, core, Probe::ABOUT.name),
            done: 0,
        }))
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        self.seed = seed;
        self.check(image)
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        for (core, part) in self.parts.iter().enumerate() {
            part.check(image, self.params.access)
                .map_err(|error| format!("core {core}: {error}"))?;
        }
        Ok(())
    }
}

/// Returns the value that store `number` writes to a word.
fn stored(at: u64, number: u64) -> u64 {
    STORED | ((at / LINE_BYTES) << NUMBER_SHIFT) | (number % (1 << NUMBER_SHIFT))
}

/// The places of one core.
#[derive(Clone, Debug)]
struct Part {
    head: u64,
    first: u64,
    places: u64,
    /// Lines of a place.
    lines: u64,
    /// The seed of the head and of the chain.
    seed: u64,
    core: CoreId,
    is_random: bool,
    is_dependent: bool,
}

impl Part {
    fn new(params: &ProbeParams, site: &Site, core: CoreId) -> Step<Part> {
        let bytes = params.block.bytes();
        let lines = bytes / LINE_BYTES;
        let asked = if params.items == 0 { site.items } else { params.items };
        let places = (asked / u64::from(site.cores) / lines).max(1);
        let size = places * bytes;
        let room = site.part(core);
        let head = room.start.next_multiple_of(LINE_BYTES);
        // Places are aligned like lines of an on-DIMM buffer.
        let behind = (head + LINE_BYTES).next_multiple_of(bytes);
        // Other programs have their locks at this place of volatile memory; this one has none.
        let is_in_pm = params.memory == Memory::Pm;
        let first = if is_in_pm { behind } else { DRAM_BASE + u64::from(core.0) * size };
        let end = if is_in_pm { first + size } else { head + LINE_BYTES };
        if end > room.end {
            let free = room.end.saturating_sub(room.start);
            return Err(Stop::OutOfMemory { asked: end - room.start, free });
        }
        Ok(Part {
            head,
            first,
            places,
            lines,
            seed: site.seed,
            core,
            is_random: params.pattern == Pattern::Random,
            is_dependent: params.dependent == Dependent::Yes,
        })
    }

    fn end(&self) -> u64 {
        self.first + self.places * self.lines * LINE_BYTES
    }

    fn line(&self, place: u64, line: u64) -> Ptr {
        Ptr::to(self.first + (place * self.lines + line) * LINE_BYTES)
    }

    fn head_word(&self, word: u64) -> u64 {
        mix(self.seed ^ u64::from(self.core.0) << 56 ^ word << 48)
    }

    /// Returns each place, with the place that a dependent load finds there.
    fn chain(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut order: Vec<u64> =
            if self.is_dependent { (0..self.places).collect() } else { vec![] };
        if self.is_random {
            Random::new(self.seed, self.core, "probe's cycle").shuffle(&mut order);
        }
        let next = order.clone().into_iter().cycle().skip(1);
        order.into_iter().zip(next)
    }

    fn check(&self, image: &Image<'_>, access: Access) -> Result<(), String> {
        let is_wrong = |at: u64, word: u64| {
            Err(format!("the word at {at:#x} is {word:#x}, which nobody stored there"))
        };
        for word in 0..LINE_WORDS as u64 {
            let at = self.head + word * WORD_BYTES;
            let found = image.word(Word::of(at));
            if found != self.head_word(word) {
                return is_wrong(at, found);
            }
        }
        if self.first >= DRAM_BASE {
            return Ok(());
        }
        let mut next = vec![0; if self.is_dependent { self.places as usize } else { 0 }];
        for (place, follows) in self.chain() {
            next[place as usize] = self.line(follows, 0).address;
        }
        for at in (self.first..self.end()).step_by(WORD_BYTES as usize) {
            let found = image.word(Word::of(at));
            let offset = at - self.first;
            let place = offset / (self.lines * LINE_BYTES);
            let is_first = offset.is_multiple_of(self.lines * LINE_BYTES);
            let is_stored_to = match access {
                Access::Load => false,
                Access::Store | Access::StoreClwb => at % LINE_BYTES == WORD_BYTES,
                Access::Ntstore => true,
            };
            let is_right = match next.get(place as usize).filter(|_| is_first) {
                Some(&follows) => found == follows,
                None if is_stored_to => {
                    found == 0 || found >> NUMBER_SHIFT == stored(at, 0) >> NUMBER_SHIFT
                }
                None => found == 0,
            };
            if !is_right {
                return is_wrong(at, found);
            }
        }
        Ok(())
    }
}

/// The program of one core.
struct Prober {
    part: Part,
    params: ProbeParams,
    random: Random,
    /// The place of the next dependent load.
    at: Ptr,
    /// Accesses so far.
    done: u64,
}

impl Program for Prober {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        for _ in 0..self.params.accesses {
            self.access(pm);
            self.done += 1;
        }
        pm.tx(|_| Ok(()))
    }
}

impl Prober {
    fn access(&mut self, pm: &mut Pm<'_>) {
        pm.work(self.params.work);
        let place = match (self.part.is_dependent, self.part.is_random) {
            (true, _) => self.at,
            (_, true) => self.part.line(self.random.below(self.part.places), 0),
            _ => self.part.line(self.done % self.part.places, 0),
        };
        for line in 0..self.part.lines {
            let at = place.plus(line * LINE_BYTES);
            let value = stored(at.address, self.done);
            match self.params.access {
                Access::Load if self.part.is_dependent && line == 0 => self.at = pm.load_ptr(at),
                Access::Load => {
                    pm.load(at);
                }
                Access::Store => pm.store(at.plus(WORD_BYTES), value),
                Access::StoreClwb => {
                    pm.store(at.plus(WORD_BYTES), value);
                    pm.flush(at);
                }
                Access::Ntstore => pm.store_words_past_caches(at, &[value; LINE_WORDS]),
            }
        }
        if self.params.fence == Fence::Sfence {
            pm.durable();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use model::params::Choice as _;

    use super::*;

    fn part(pattern: Pattern, dependent: Dependent) -> Part {
        let params = ProbeParams { pattern, dependent, items: 100, ..ProbeParams::default() };
        let site =
            Site { cores: 1, seed: 3, heap: 4096..1 << 20, items: 0, script: None, checker: None };
        Part::new(&params, &site, CoreId(0)).expect("room")
    }

    /// With as many dependent loads as there are places, each place is loaded once.
    #[test]
    fn a_cycle_comes_to_every_place_before_it_comes_again() {
        for &pattern in Pattern::ALL {
            let next: BTreeMap<u64, u64> = part(pattern, Dependent::Yes).chain().collect();
            let mut seen = BTreeSet::new();
            let mut at = 0;
            while seen.insert(at) {
                at = next[&at];
            }
            assert_eq!((seen.len(), at), (100, 0));
            assert_eq!(next[&0] == 1, pattern == Pattern::Sequential, "drawn, or in order");
        }
        assert_eq!(part(Pattern::Random, Dependent::No).chain().count(), 0);
    }

    #[test]
    fn a_store_writes_another_value_each_time_and_for_each_line() {
        let values: BTreeSet<u64> =
            (0..8).flat_map(|line| (0..8).map(move |number| stored(line * 64, number))).collect();
        assert_eq!(values.len(), 64);
    }
}
