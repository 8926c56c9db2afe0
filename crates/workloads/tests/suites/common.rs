//! A bench for workloads: plain memory, programs taking turns, and a port that watches them.

use std::collections::BTreeSet;
use std::ops::Range;

use model::contents::{Contents, View};
use model::image::Image;
use model::units::{CoreId, Cycle, Line, Word};
use model::workload::{LockId, Pm, Port, Program, Ptr, Site, Step, Workload};
use workloads::heap::{Alignment, Heap};
use workloads::rng::Random;
use workloads::{ALL, Entry};

/// A site for tests.
pub fn site(cores: u8, items: u64) -> Site {
    Site { cores, seed: 7, heap: 4096..64 << 20, items, script: None, checker: None }
}

/// An entry of the registry.
pub fn entry(name: &str) -> &'static Entry {
    ALL.iter().find(|entry| entry.about.name == name).expect("a registered workload")
}

/// Returns the settings in `text`, like `shared=shared value=8`, that a workload has; others are
/// skipped.
pub fn settings(entry: &Entry, text: &str) -> Vec<(String, u64)> {
    let mut settings = Vec::new();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').expect("name=value");
        let Some(field) = entry.fields.iter().find(|field| field.name == name) else { continue };
        let value = match field.choices.iter().position(|choice| *choice == value) {
            Some(choice) => choice as u64,
            None => value.parse().expect("a number or a choice"),
        };
        assert!(field.limits.contains(&value), "{name}={value}");
        settings.push((name.to_owned(), value));
    }
    settings
}

/// A workload that is filled and ready to run.
pub struct Bench {
    pub workload: Box<dyn Workload>,
    pub view: View,
    pub programs: Vec<Box<dyn Program>>,
}

impl Bench {
    pub fn new(entry: &Entry, text: &str, site: &Site) -> Step<Bench> {
        let mut workload = (entry.make)(&settings(entry, text), site)?;
        let mut view = View::new(site.heap.end, 1 << 20).expect("room");
        workload.populate(&mut Pm::plain(&mut view, CoreId(0)))?;
        let programs = (0..site.cores).map(|core| workload.program(CoreId(core)));
        let programs = programs.collect::<Step<Vec<_>>>()?;
        Ok(Bench { workload, view, programs })
    }

    /// Goes on with the present memory, as a machine that boots from it.
    pub fn reopen(&mut self, seed: u64) {
        self.workload.reopen(&Image::over(&self.view.pm), seed).expect("what was left is sound");
        let cores = (0..self.programs.len()).map(|core| CoreId(core as u8));
        let programs = cores.map(|core| self.workload.program(core));
        self.programs = programs.collect::<Step<Vec<_>>>().expect("programs");
    }

    /// Runs `rounds` transactions of each core, in turns, on plain memory.
    pub fn run(&mut self, rounds: u64) -> Step {
        for _ in 0..rounds {
            for (core, program) in self.programs.iter_mut().enumerate() {
                let mut pm = Pm::plain(&mut self.view, CoreId(core as u8));
                program.transaction(&mut pm)?;
            }
        }
        Ok(())
    }

    /// Runs one transaction of one core, watched.
    pub fn watch(&mut self, core: usize) -> Watched {
        let mut port = Watch { view: &mut self.view, seen: Watched::default() };
        let mut pm = Pm::simulated(&mut port, CoreId(core as u8));
        self.programs[core].transaction(&mut pm).expect("a transaction");
        port.seen.finish();
        port.seen
    }

    pub fn check(&self) -> Result<(), String> {
        self.workload.check(&Image::over(&self.view.pm))
    }

    pub fn bytes(&self, range: Range<u64>) -> &[u8] {
        self.view.pm.bytes(range.start, range.end - range.start)
    }
}

/// The heap of structures that are made without a workload.
pub const HEAP: std::ops::Range<u64> = 4096..8 << 20;

/// Empty memory, an allocator over it, and random numbers.
pub fn ground() -> (View, Heap, Random) {
    let view = View::new(HEAP.end, 1 << 20).expect("room");
    (view, Heap::new(HEAP, Alignment::Auto), Random::new(3, CoreId(0), "structures"))
}

/// A word of an image.
pub fn get(image: &Image<'_>, address: u64) -> u64 {
    image.word(Word::of(address))
}

/// Changes a word of an image.
pub fn set(image: &mut Image<'_>, address: u64, value: u64) {
    image.set_word(Word::of(address), value).expect("power");
}

/// A copy of persistent memory.
pub fn copy(contents: &Contents) -> Contents {
    let mut copy = Contents::new(0, contents.capacity()).expect("room");
    for word in (0..contents.capacity() / 8).map(Word) {
        copy.set_word(word, contents.word(word));
    }
    copy
}

/// The accesses of one transaction.
#[derive(Debug, Default)]
pub struct Watched {
    pub loads: u64,
    pub stores: u64,
    pub silent_stores: u64,
    pub partial_stores: u64,
    /// Words that were stored to.
    pub words: BTreeSet<u64>,
    /// Words that were stored to more than once.
    pub repeated: u64,
    /// Words that were loaded or stored.
    pub touched: BTreeSet<u64>,
    /// Each store: the word, what it was, what it became.
    pub log: Vec<(Word, u64, u64)>,
    /// Locks that were taken, in order.
    pub locks: Vec<u32>,
    held: u64,
    begins: u64,
    commits: u64,
    in_tx: bool,
}

impl Watched {
    pub fn lines(&self) -> usize {
        self.words.iter().map(|&word| Word(word).line()).collect::<BTreeSet<Line>>().len()
    }

    fn finish(&self) {
        assert_eq!((self.begins, self.commits, self.held), (1, 1, 0));
        assert!(self.locks.is_sorted_by(|left, right| left < right), "{:?}", self.locks);
    }
}

struct Watch<'a> {
    view: &'a mut View,
    seen: Watched,
}

impl Port for Watch<'_> {
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        assert!(self.seen.in_tx, "a load outside the transaction");
        self.seen.loads += 1;
        self.seen.touched.insert(Word::of(at.address).0);
        (self.view.word(Word::of(at.address)), at.known + 1)
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        assert!(self.seen.in_tx, "a store outside the transaction");
        let word = Word::of(at.address);
        let old = self.view.word(word);
        let new = (old & !mask) | (value & mask);
        self.view.set_word(word, new);
        self.seen.log.push((word, old, new));
        self.seen.stores += 1;
        self.seen.silent_stores += u64::from(old == new);
        self.seen.partial_stores += u64::from(mask != u64::MAX);
        self.seen.repeated += u64::from(!self.seen.words.insert(word.0));
        self.seen.touched.insert(word.0);
    }

    fn begin(&mut self, abortable: bool) {
        assert!(!abortable, "by default no workload aborts");
        self.seen.begins += 1;
        self.seen.in_tx = true;
    }

    fn commit(&mut self) {
        self.seen.commits += 1;
        self.seen.in_tx = false;
    }

    fn abort(&mut self) {
        unreachable!("by default no workload aborts");
    }

    fn lock(&mut self, lock: LockId) {
        assert!(self.seen.begins == 0, "a lock taken after the transaction began");
        self.seen.locks.push(lock.0);
        self.seen.held += 1;
    }

    fn unlock(&mut self, _lock: LockId) {
        assert!(self.seen.commits == 1, "a lock given back before the commit");
        self.seen.held -= 1;
    }
}
