//! The common part of `ctree` and `hashmap`: maps of PMDK's examples under its benchmark
//! `map_insert`, as WHISPER runs them (`pmembench map_insert -d 128 -n 102400 -t 4 -r 2 -T ctree`,
//! or `-T hashmap_tx`).
//!
//! Every transaction inserts a random key of 64 bits, under the one lock of the benchmark. Pointers
//! are PMDK's object identifiers: two words, the pool and the offset in it.
//!
//! ```text
//! identifier, 16 bytes: 0 pool, or 0   8 address, or 0       value: `value` bytes
//! ```
//!
//! The benchmark allocates nothing for a value unless it is told to (`-A`), which WHISPER's command
//! does not do: every key has the identifier of the pool's root object, and `-d 128` means nothing.
//! That is `value = 0` here. The entries of PMDK's log are left out: they are the design's
//! business.

use model::image::Image;
use model::params::{Choice as _, Params};
use model::units::{CoreId, LINE_BYTES};
use model::workload::{About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Workload};

use crate::choices::Sharing;
use crate::heap::{Alignment, Heap};
use crate::keyed::{
    OPERATION_WORK, Plan, Seen, Stamps, Supply, Values, check_multiple_of_8, locked,
};
use crate::marks::{Marks, publish};
use crate::rng::Random;
use crate::walk::Walk;

/// The most keys at the start by default: as many as each thread inserts in WHISPER.
const ITEMS_MAX: u64 = 102_400;

/// Instructions of turning an identifier into an address: PMDK compares the pool with the one that
/// it used last and adds an offset. Ours.
const DIRECT_WORK: u64 = 4;

/// The first word of every identifier that is not null. PMDK draws one when it makes a pool.
const POOL: u64 = 0x9D5F_21C6_4B07_A83E;

/// Bytes of an identifier.
pub const OID_BYTES: u64 = 16;

/// Declares the parameters of a map.
macro_rules! map_params {
    ($(#[doc = $about:literal])* $vis:vis struct $Params:ident { $($more:tt)* }) => {
        model::params! {
            $(#[doc = $about])*
            $vis struct $Params {
                /// Keys at the start, over all cores; 0 means as many as the machine says, 102,400
                /// at most. (pmembench begins with none, and inserts 102,400 in each thread.)
                items = 0 in 0..=1_000_000_000;
                /// Whether all cores use one map behind one lock, as in pmembench, or each has a
                /// map of its own and takes no lock.
                shared: $crate::choices::Sharing = Shared;
                /// Bytes of the object that is allocated for a key and filled, a multiple of 8; 0
                /// means none, as WHISPER runs it.
                value = 0 in 0..=4096;
                /// Where nodes begin: at lines if they fill one (auto), at 16 bytes, or at lines.
                alignment: $crate::heap::Alignment = Auto;
                /// Whether the allocator's metadata are a bitmap in persistent memory that a
                /// transaction changes with its blocks (logged, as in PMDK), or are rebuilt after a
                /// failure from what the roots reach (volatile).
                alloc_meta: $crate::choices::AllocMeta = Logged;
                $($more)*
            }
        }
    };
}
pub(crate) use map_params;

/// Stores an identifier.
pub fn store_oid(pm: &mut Pm<'_>, at: Ptr, object: Ptr) {
    pm.store(at, if object.is_null() { 0 } else { POOL });
    pm.store_ptr(at.plus(8), object);
}

/// Loads an identifier and turns it into an address.
pub fn load_oid(pm: &mut Pm<'_>, at: Ptr) -> Ptr {
    pm.load(at);
    pm.work(DIRECT_WORK);
    pm.load_ptr(at.plus(8))
}

/// The address in an identifier that was visited.
///
/// # Errors
/// When its words do not belong together.
pub fn check_oid(walk: &Walk<'_>, at: u64) -> Result<u64, String> {
    let (pool, address) = (walk.word(at), walk.word(at + 8));
    let right = if address == 0 { 0 } else { POOL };
    if pool != right {
        return Err(format!("the identifier at {at:#x} is of pool {pool:#x}, not {right:#x}"));
    }
    Ok(address)
}

/// A map of PMDK's examples.
pub trait Map: Clone + Send + 'static {
    /// The description of the workload.
    const ABOUT: About;
    /// Its parameters, declared with `map_params`.
    type Params: Params;

    /// Makes an empty map, of the size that it has once `items` keys have been inserted.
    ///
    /// # Errors
    /// When the heap is full.
    fn create(
        params: &Self::Params,
        items: u64,
        random: &mut Random,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Self>;

    /// Does maintenance that is due, in a transaction of its own. Returns whether there was any.
    ///
    /// # Errors
    /// When the heap is full.
    fn maintain(&mut self, _pm: &mut Pm<'_>, _heap: &mut Heap) -> Step<bool> {
        Ok(false)
    }

    /// Inserts a key, which is not 0, with the identifier of its value.
    ///
    /// # Errors
    /// When the heap is full.
    fn insert(&mut self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, value: Ptr) -> Step;

    /// Checks the map and returns its keys, each with the address of its value.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String>;
}

/// The workload that inserts random keys into a map.
#[derive(Debug)]
pub struct Inserted<M: Map> {
    params: M::Params,
    plan: Plan,
    /// Bytes of a key's value, or 0.
    value: u64,
    /// The bitmaps of the allocators, if their metadata are persistent.
    marks: Option<Marks>,
    supplies: Vec<Supply>,
    /// Each map with the root object of its pool.
    maps: Vec<(M, Ptr)>,
}

impl<M: Map> Declared for Inserted<M> {
    const ABOUT: About = M::ABOUT;
    const REOPENS: Reopens = Reopens::Always;
    type Params = M::Params;

    fn new(params: &M::Params, site: &Site) -> Step<Self> {
        check_multiple_of_8(params, "value")?;
        let items = params.get("items");
        let items = if items == 0 { site.items.min(ITEMS_MAX) } else { items };
        let plan = Plan::new(items, Sharing::of(params.get("shared")), site);
        let (marks, heaps) = Marks::asked(params, site);
        let (params, value, supplies) = (params.clone(), params.get("value"), Supply::over(heaps));
        Ok(Inserted { params, plan, value, marks, supplies, maps: Vec::new() })
    }
}

impl<M: Map> Inserted<M> {
    fn fill(&mut self, pm: &mut Pm<'_>, index: usize) -> Step {
        let mut random = self.plan.filling(index, M::ABOUT.name);
        let heap = &mut self.supplies[index].heap;
        let root = heap.alloc(LINE_BYTES)?;
        let mut map = M::create(&self.params, self.plan.items, &mut random, pm, heap)?;
        for item in 0..self.plan.items {
            let core = self.plan.supplier(index, item);
            let Supply { heap, stamps } = &mut self.supplies[core];
            while map.maintain(pm, heap)? {}
            let (key, stamp) = (draw_key(&mut random), stamps.issue());
            let value = new_value(pm, heap, self.value, (key, stamp), root)?;
            map.insert(pm, heap, key, value)?;
            publish(self.marks.as_ref(), heap, pm);
        }
        self.maps.push((map, root));
        Ok(())
    }
}

impl<M: Map> Workload for Inserted<M> {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        (0..usize::from(self.plan.structures)).try_for_each(|map| self.fill(pm, map))
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let (map, root) = self.maps[self.plan.structure_of(core)].clone();
        let Supply { heap, stamps } = self.supplies[usize::from(core.0)].clone();
        Ok(Box::new(Inserter {
            map,
            root,
            value: self.value,
            marks: self.marks.clone(),
            heap,
            stamps,
            random: self.plan.random(core, M::ABOUT.name),
            lock: self.plan.lock,
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    /// Rebuilds only the allocators: the volatile state of a map is a hint that may be lost.
    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen = self.look(image)?;
        let alignment = Alignment::of(self.params.get("alignment"));
        self.supplies = self.plan.go_on(seed, alignment, &seen);
        if let Some(marks) = &self.marks {
            let heaps = marks.heaps(alignment, &seen.reached);
            self.supplies.iter_mut().zip(heaps).for_each(|(supply, heap)| supply.heap = heap);
        }
        Ok(())
    }
}

impl<M: Map> Inserted<M> {
    /// Checks every map.
    fn look(&self, image: &Image<'_>) -> Result<Seen, String> {
        let mut seen = Seen::default();
        for (index, (map, root)) in self.maps.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let told = |error| format!("{} {index}: {error}", M::ABOUT.name);
            walk.visit(root.address, LINE_BYTES, "the root object").map_err(told)?;
            let mut items = map.check(&mut walk).map_err(told)?;
            for &(key, value) in &items {
                if self.value > 0 {
                    walk.visit(value, self.value, "a value").map_err(told)?;
                    let stamp =
                        Values::distinct(self.value).check(&walk, value, key).map_err(told)?;
                    seen.stamps.push(stamp);
                } else if value != root.address {
                    return Err(told(format!("the value of key {key:#x} is {value:#x}")));
                }
            }
            items.sort_unstable();
            if let Some(pair) = items.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(told(format!("key {:#x} is there twice", pair[0].0)));
            }
            // Nothing is ever deleted.
            if (items.len() as u64) < self.plan.items {
                let (here, first) = (items.len(), self.plan.items);
                return Err(told(format!("it has {here} keys, and had {first} at the start")));
            }
            seen.reached.extend(walk.reached());
        }
        if let Some(marks) = &self.marks {
            let told = |error| format!("{}: {error}", M::ABOUT.name);
            marks.check(image, &seen.reached).map_err(told)?;
        }
        Ok(seen)
    }
}

/// A random key; 0 is none.
fn draw_key(random: &mut Random) -> u64 {
    random.any().max(1)
}

/// Returns the value of a new key: a new object, filled with words that follow from key and stamp,
/// or the root object.
fn new_value(
    pm: &mut Pm<'_>,
    heap: &mut Heap,
    bytes: u64,
    (key, stamp): (u64, u64),
    root: Ptr,
) -> Step<Ptr> {
    if bytes == 0 {
        return Ok(root);
    }
    let value = heap.alloc(bytes)?;
    Values::distinct(bytes).store(pm, value, key, stamp);
    Ok(value)
}

/// The program of one core.
struct Inserter<M> {
    map: M,
    root: Ptr,
    value: u64,
    marks: Option<Marks>,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    lock: Option<LockId>,
}

impl<M: Map> Program for Inserter<M> {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        pm.work(OPERATION_WORK);
        locked(pm, self.lock, |pm| {
            pm.tx(|pm| {
                if !self.map.maintain(pm, &mut self.heap)? {
                    let (key, stamp) = (draw_key(&mut self.random), self.stamps.issue());
                    let value = new_value(pm, &mut self.heap, self.value, (key, stamp), self.root)?;
                    self.map.insert(pm, &mut self.heap, key, value)?;
                }
                publish(self.marks.as_ref(), &mut self.heap, pm);
                Ok(())
            })
        })
    }
}
