//! The common parts of the micro-benchmarks: one structure for each core or one for all, values
//! that show whether they are whole, and the driver of the keyed structures, which deletes a key if
//! it finds it and inserts it otherwise.

use std::ops::Range;

use model::image::Image;
use model::params::{Choice as _, Params};
use model::units::{CoreId, LINE_BYTES, WORD_BYTES};
use model::workload::{
    About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Stop, Workload,
};

use crate::choices::Sharing;
use crate::heap::{Alignment, Heap};
use crate::marks::{Marks, publish};
use crate::rng::{KeyDistribution, Keys, Random, mix};
use crate::walk::Walk;

/// Instructions of one operation beside those of its search: the call, the arguments, the draw
/// from a list that was made before. Ours; the order of magnitude of a compiled driver loop.
pub const OPERATION_WORK: u64 = 20;
/// Instructions for each node that a search visits: compare, branch, address. Ours.
pub const COMPARE_WORK: u64 = 3;
/// Instructions of hashing a key: a multiplication, a shift, an address. Ours.
pub const HASH_WORK: u64 = 6;

/// Declares parameters, of which every micro-benchmark has the first two.
macro_rules! shared_params {
    ($(#[doc = $about:literal])* $vis:vis struct $Params:ident { $($more:tt)* }) => {
        model::params! {
            $(#[doc = $about])*
            $vis struct $Params {
                /// Items at the start, over all cores; 0 means as many as the machine says.
                items = 0 in 0..=1_000_000_000;
                /// Whether each core has a structure of its own and takes no lock, or all use one
                /// behind a lock, taken before the transaction and released after its commit. In
                /// `sps` and `ycsb` there are many locks, each of a part of the structure.
                shared: $crate::choices::Sharing = Private;
                $($more)*
            }
        }
    };
}

/// Declares the parameters of a keyed structure.
macro_rules! keyed_params {
    ($(#[doc = $about:literal])* $vis:vis struct $Params:ident { $($more:tt)* }) => {
        $crate::keyed::shared_params! {
            $(#[doc = $about])*
            $vis struct $Params {
                /// How keys are drawn: uniformly, 80 % of the operations on 15 % of the keys (hot:
                /// what SSP-19 calls Zipf), or by YCSB's power law, scattered (zipf).
                distribution: $crate::rng::KeyDistribution = Uniform;
                /// Bytes of a value, a multiple of 8 (Silo-23: 64; SSP-19: 8).
                value = 64 in 8..=4096;
                /// What follows the first word of a value, a stamp: words that follow from its key
                /// and its stamp (distinct), or words that all values share, as the elements of
                /// `array` do (padded: of 64 bytes, Janus-19's array, queue and hash table set 8).
                contents: $crate::keyed::Contents = Distinct;
                /// Where nodes begin: at lines if they fill one (auto), at 16 bytes, or at lines.
                alignment: $crate::heap::Alignment = Auto;
                /// Operations of a transaction (ours: write sets of any size; papers have one).
                operations = 1 in 1..=4096;
                /// Whether the allocator's metadata are rebuilt after a failure from what the roots
                /// reach (volatile), or are a bitmap in persistent memory that a transaction
                /// changes with its blocks (logged, as in Mnemosyne and PMDK).
                alloc_meta: $crate::choices::AllocMeta = Volatile;
                /// Whether the root record has the number of items, which every insert and delete
                /// changes.
                count: $crate::keyed::Count = None;
                $($more)*
            }
        }
    };
}
pub(crate) use {keyed_params, shared_params};

model::choices! {
    /// What follows the first word of a value, its stamp.
    pub enum Contents {
        /// Words that follow from its key and its stamp.
        Distinct = "distinct",
        /// Words that all values share.
        Padded = "padded",
    }

    /// Whether the root record of a structure has the number of its items.
    pub enum Count { None = "none", Stored = "stored" }
}

/// The structures, and the cores that use each.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cores, the heap and the values that the user and the machine give.
    pub site: Site,
    /// The number of structures: one, or one for each core.
    pub structures: u8,
    /// The number of items of each structure at the start.
    pub items: u64,
    /// The lock of the one structure, if it is shared.
    pub lock: Option<LockId>,
}

impl Plan {
    /// The plan that the parameters `items` and `shared` make for a site.
    pub fn new(items: u64, sharing: Sharing, site: &Site) -> Plan {
        let items = if items == 0 { site.items } else { items };
        let (structures, lock) = match sharing {
            Sharing::Private => (site.cores, None),
            Sharing::Shared => (1, Some(LockId(0))),
        };
        let items = (items / u64::from(structures)).max(1);
        Plan { site: site.clone(), structures, items, lock }
    }

    /// The plan of parameters declared with `shared_params`.
    pub fn of(params: &impl Params, site: &Site) -> Plan {
        Plan::new(params.get("items"), Sharing::of(params.get("shared")), site)
    }

    /// The structure that a core uses.
    pub fn structure_of(&self, core: CoreId) -> usize {
        if self.structures == 1 { 0 } else { usize::from(core.0) }
    }

    /// Returns the addresses at which the nodes of a structure may lie.
    pub fn range(&self, structure: usize) -> Range<u64> {
        if self.structures == 1 {
            self.site.heap.clone()
        } else {
            self.site.part(CoreId(structure as u8))
        }
    }

    /// Checks that a structure has room for its items, of which each takes `bytes` bytes at least,
    /// before the host's memory is filled with the numbers of items that do not fit.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] when it has none.
    pub fn must_fit(&self, structure: usize, bytes: u64) -> Step {
        let Range { start, end } = self.range(structure);
        let (asked, free) = (self.items.saturating_mul(bytes), end.saturating_sub(start));
        if asked > free { Err(Stop::OutOfMemory { asked, free }) } else { Ok(()) }
    }

    /// The core from whose part of the heap a structure takes the block of its `item`th item.
    pub fn supplier(&self, structure: usize, item: u64) -> usize {
        if self.structures == 1 { (item % u64::from(self.site.cores)) as usize } else { structure }
    }

    /// Goes on from the contents of an image, with other random numbers. Returns what each core
    /// takes from: its allocator, around the blocks in use, and its stamps, after those in use.
    pub fn go_on(&mut self, seed: u64, alignment: Alignment, seen: &Seen) -> Vec<Supply> {
        self.site.seed = seed;
        let part = |core| Heap::around(self.site.part(CoreId(core)), alignment, &seen.reached);
        let mut supplies = Supply::over((0..self.site.cores).map(part).collect());
        for &stamp in &seen.stamps {
            let (core, count) = Stamps::split(stamp);
            if let Some(Supply { stamps, .. }) = supplies.get_mut(core as usize) {
                stamps.count = stamps.count.max(count);
            }
        }
        supplies
    }

    /// Returns the random numbers of a core's program.
    pub fn random(&self, core: CoreId, workload: &str) -> Random {
        Random::new(self.site.seed, core, workload)
    }

    /// Returns the random numbers with which a structure is filled, different from every core's.
    pub fn filling(&self, structure: usize, workload: &str) -> Random {
        Random::new(mix(self.site.seed), CoreId(structure as u8), workload)
    }
}

/// What a core takes from for its writes: blocks and stamps.
#[derive(Clone, Debug)]
pub struct Supply {
    /// The allocator over its part of the heap.
    pub heap: Heap,
    /// Its stamps.
    pub stamps: Stamps,
}

impl Supply {
    /// One for each core of the site, of which nothing is taken yet.
    pub fn of_site(site: &Site, alignment: Alignment) -> Vec<Supply> {
        Supply::over(Heap::of_site(site, alignment))
    }

    /// One for each core, with these allocators, of whose stamps none is in use.
    pub fn over(heaps: Vec<Heap>) -> Vec<Supply> {
        let supply = |(core, heap)| Supply { heap, stamps: Stamps { core, count: 0 } };
        (0..).zip(heaps).map(supply).collect()
    }
}

/// The source of a core's stamps. A stamp, the core and a count, distinguishes its write from every
/// other one.
#[derive(Clone, Debug)]
pub struct Stamps {
    core: u64,
    count: u64,
}

impl Stamps {
    /// The next stamp.
    pub fn issue(&mut self) -> u64 {
        self.count += 1;
        self.core << 48 | self.count
    }

    /// The core and the count of a stamp.
    pub fn split(stamp: u64) -> (u64, u64) {
        (stamp >> 48, stamp & ((1 << 48) - 1))
    }
}

/// The size and the contents of a structure's values. The first word of a value is its stamp.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    /// Bytes of a value, a multiple of 8.
    pub bytes: u64,
    contents: Contents,
}

impl Values {
    /// Returns values whose words follow from key and stamp, so that a check finds a partly written
    /// value.
    pub fn distinct(bytes: u64) -> Values {
        Values { bytes, contents: Contents::Distinct }
    }

    /// The values that the parameters `value` and `contents` ask for.
    pub fn of(params: &impl Params) -> Values {
        Values { bytes: params.get("value"), contents: Contents::of(params.get("contents")) }
    }

    fn word(self, key: u64, stamp: u64, index: u64) -> u64 {
        match (index, self.contents) {
            (0, _) => stamp,
            (_, Contents::Padded) => padding(index),
            (_, Contents::Distinct) => mix(mix(key) ^ stamp.wrapping_add(index << 32)),
        }
    }

    /// Stores a value.
    pub fn store(self, pm: &mut Pm<'_>, at: Ptr, key: u64, stamp: u64) {
        for index in 0..self.bytes / WORD_BYTES {
            pm.store(at.plus(index * WORD_BYTES), self.word(key, stamp, index));
        }
    }

    /// Checks a value whose node was visited and returns its stamp.
    ///
    /// # Errors
    /// A sentence that says which of its words is wrong.
    pub fn check(self, walk: &Walk<'_>, at: u64, key: u64) -> Result<u64, String> {
        let stamp = walk.word(at);
        if Stamps::split(stamp).1 == 0 {
            return Err(format!("the value at {at:#x} (key {key}) has no stamp: {stamp:#x}"));
        }
        for index in 1..self.bytes / WORD_BYTES {
            let (found, expect) = (walk.word(at + index * 8), self.word(key, stamp, index));
            if found != expect {
                return Err(format!(
                    "the value at {at:#x} (key {key}, stamp {stamp:#x}) is torn: word {index} is \
                     {found:#x} and should be {expect:#x}"
                ));
            }
        }
        Ok(stamp)
    }
}

/// Returns word `index` of all padding. It is not 0, so that a check finds missing padding. Storing
/// it is silent only where a block had padding in the same place before, and not in unused memory.
pub fn padding(index: u64) -> u64 {
    mix(index)
}

/// A structure that maps keys to values, in persistent memory.
pub trait Structure: Clone + Send + 'static {
    /// The description of the workload.
    const ABOUT: About;
    /// Its parameters, declared with `keyed_params`.
    type Params: Params;

    /// Makes an empty structure for about `items` items.
    ///
    /// # Errors
    /// When the heap is full.
    fn create(params: &Self::Params, items: u64, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Self>;

    /// Returns the address of its root record, a line whose last word is free.
    fn root_record(&self) -> u64;

    /// Deletes the key if it is there, and inserts it with a stamped value otherwise. Returns
    /// whether it was inserted.
    ///
    /// # Errors
    /// When the heap is full.
    fn toggle(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, stamp: u64) -> Step<bool>;

    /// Checks the structure and returns its keys, each with the stamp of its value.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String>;
}

/// The offset of the number of items in a root record.
const COUNT: u64 = LINE_BYTES - WORD_BYTES;

/// The persistent metadata of a structure and of its blocks.
#[derive(Clone, Debug)]
struct Metadata {
    /// The bitmaps of the allocators, if their metadata are persistent.
    marks: Option<Marks>,
    counts: bool,
}

impl Metadata {
    /// Toggles a key of a structure, and changes the metadata accordingly.
    fn toggle<S: Structure>(
        &self,
        structure: &S,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        key: u64,
        stamp: u64,
    ) -> Step {
        let inserted = structure.toggle(pm, heap, key, stamp)?;
        if self.counts {
            let count = Ptr::to(structure.root_record() + COUNT);
            let items = pm.load(count);
            pm.store(count, if inserted { items + 1 } else { items - 1 });
        }
        publish(self.marks.as_ref(), heap, pm);
        Ok(())
    }
}

/// The workload that toggles the keys of a structure: half of twice as many keys are there, so
/// that a delete and an insert are equally likely and the size stays what it was.
#[derive(Debug)]
pub struct Toggled<S: Structure> {
    params: S::Params,
    plan: Plan,
    metadata: Metadata,
    supplies: Vec<Supply>,
    structures: Vec<S>,
}

impl<S: Structure> Toggled<S> {
    fn fill(&mut self, pm: &mut Pm<'_>, structure: usize) -> Step {
        self.plan.must_fit(structure, WORD_BYTES + self.params.get("value"))?;
        let mut keys: Vec<u64> = (0..self.plan.items).map(|item| item * 2).collect();
        self.plan.filling(structure, S::ABOUT.name).shuffle(&mut keys);
        let heap = &mut self.supplies[structure].heap;
        let filled = S::create(&self.params, self.plan.items, pm, heap)?;
        publish(self.metadata.marks.as_ref(), heap, pm);
        for (item, key) in keys.into_iter().enumerate() {
            let core = self.plan.supplier(structure, item as u64);
            let Supply { heap, stamps } = &mut self.supplies[core];
            self.metadata.toggle(&filled, pm, heap, key, stamps.issue())?;
        }
        self.structures.push(filled);
        Ok(())
    }
}

impl<S: Structure> Declared for Toggled<S> {
    const ABOUT: About = S::ABOUT;
    const REOPENS: Reopens = Reopens::Always;
    type Params = S::Params;

    fn new(params: &S::Params, site: &Site) -> Step<Self> {
        check_multiple_of_8(params, "value")?;
        let plan = Plan::of(params, site);
        let (marks, heaps) = Marks::asked(params, site);
        let metadata = Metadata { marks, counts: Count::of(params.get("count")) == Count::Stored };
        let (params, supplies, structures) = (params.clone(), Supply::over(heaps), Vec::new());
        Ok(Toggled { params, plan, metadata, supplies, structures })
    }
}

impl<S: Structure> Workload for Toggled<S> {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        (0..usize::from(self.plan.structures)).try_for_each(|structure| self.fill(pm, structure))
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let key_space = 2 * self.plan.items;
        let Supply { heap, stamps } = self.supplies[usize::from(core.0)].clone();
        Ok(Box::new(Toggler {
            structure: self.structures[self.plan.structure_of(core)].clone(),
            metadata: self.metadata.clone(),
            heap,
            stamps,
            random: self.plan.random(core, S::ABOUT.name),
            keys: Keys::of(KeyDistribution::of(self.params.get("distribution")), key_space),
            operations: self.params.get("operations"),
            lock: self.plan.lock,
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen = self.look(image)?;
        let alignment = Alignment::of(self.params.get("alignment"));
        self.supplies = self.plan.go_on(seed, alignment, &seen);
        if let Some(marks) = &self.metadata.marks {
            let heaps = marks.heaps(alignment, &seen.reached);
            self.supplies.iter_mut().zip(heaps).for_each(|(supply, heap)| supply.heap = heap);
        }
        Ok(())
    }
}

/// The contents of all structures of an image.
#[derive(Debug, Default)]
pub struct Seen {
    /// The stamps of all values.
    pub stamps: Vec<u64>,
    /// The blocks in use: their addresses, and their bytes.
    pub reached: Vec<(u64, u64)>,
}

impl<S: Structure> Toggled<S> {
    /// Checks every structure.
    fn look(&self, image: &Image<'_>) -> Result<Seen, String> {
        let mut seen = Seen::default();
        for (index, structure) in self.structures.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let told = |error| format!("{} {index}: {error}", S::ABOUT.name);
            let items = structure.check(&mut walk).map_err(told)?;
            if self.metadata.counts {
                let (count, items) = (walk.word(structure.root_record() + COUNT), items.len());
                if count != items as u64 {
                    return Err(told(format!("it has {items} items and says {count}")));
                }
            }
            let cores = self.supplies.len() as u64;
            let is_of_nobody = |&&(_, stamp): &&(u64, u64)| Stamps::split(stamp).0 >= cores;
            if let Some((key, stamp)) = items.iter().find(is_of_nobody) {
                return Err(told(format!("key {key} has the stamp {stamp:#x} of no core")));
            }
            seen.stamps.extend(items.iter().map(|&(_, stamp)| stamp));
            seen.reached.extend(walk.reached());
            check_keys(items, 2 * self.plan.items).map_err(told)?;
        }
        if let Some(marks) = &self.metadata.marks {
            marks
                .check(image, &seen.reached)
                .map_err(|error| format!("{}: {error}", S::ABOUT.name))?;
        }
        Ok(seen)
    }
}

/// The program of one core.
struct Toggler<S> {
    structure: S,
    metadata: Metadata,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    keys: Keys,
    /// Operations of a transaction.
    operations: u64,
    lock: Option<LockId>,
}

impl<S: Structure> Program for Toggler<S> {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        pm.work(self.operations * OPERATION_WORK);
        locked(pm, self.lock, |pm| {
            pm.tx(|pm| {
                (0..self.operations).try_for_each(|_| {
                    let key = self.keys.draw(&mut self.random);
                    let stamp = self.stamps.issue();
                    self.metadata.toggle(&self.structure, pm, &mut self.heap, key, stamp)
                })
            })
        })
    }
}

/// Runs `body` with the lock taken, if there is one.
pub fn locked(
    pm: &mut Pm<'_>,
    lock: Option<LockId>,
    body: impl FnOnce(&mut Pm<'_>) -> Step,
) -> Step {
    if let Some(lock) = lock {
        pm.lock(lock);
    }
    body(pm)?;
    if let Some(lock) = lock {
        pm.unlock(lock);
    }
    Ok(())
}

/// Checks a parameter that is a number of bytes but must be a number of words.
///
/// # Errors
/// [`Stop::Input`] when it is not.
pub fn check_multiple_of_8(params: &impl Params, name: &str) -> Step {
    let bytes = params.get(name);
    if bytes.is_multiple_of(WORD_BYTES) {
        return Ok(());
    }
    let text = format!("`{name}` must be a multiple of 8 bytes, not {bytes}");
    Err(Stop::Input(text))
}

/// Checks that no key is there twice, and that each is one that may be drawn.
fn check_keys(mut items: Vec<(u64, u64)>, key_space: u64) -> Result<(), String> {
    items.sort_unstable();
    for pair in items.windows(2) {
        if pair[0].0 == pair[1].0 {
            return Err(format!("key {} is there twice", pair[0].0));
        }
    }
    match items.last() {
        Some(&(key, _)) if key >= key_space => {
            Err(format!("key {key} is there, and no key is above {}", key_space - 1))
        }
        _ => Ok(()),
    }
}
