//! `sps`: swaps two elements of one large vector ("swap positions").
//!
//! ```text
//! element, `element` bytes, in no more lines than it must
//!   0  id: 1 to the number of elements; swaps change the places of ids
//!   8  what follows from the id
//! ```
//!
//! Where [`crate::array`] has elements that share most of their bytes, as Silo-23's do, these
//! differ in every word, so that no store is silent: the SPS of NV-Heaps-11, LOC-14 and SSP-19.
//! With 8-byte elements a swap stores two words in two lines. Shared, the vector has locks for its
//! lines, so that swaps of different elements go on beside each other, and no line is shared
//! falsely.

use std::ops::Range;

use model::image::Image;
use model::units::{CoreId, LINE_BYTES, Line, WORD_BYTES};
use model::workload::{About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Workload};

use crate::array::{draw_two, swap};
use crate::heap::{Alignment, Heap};
use crate::keyed::{OPERATION_WORK, Plan, check_multiple_of_8, shared_params};
use crate::rng::{KeyDistribution, Keys, Random, mix};
use crate::walk::Walk;

/// Locks of a shared vector. Ours: two swaps of eight cores then seldom want the same one.
const LOCKS: u64 = 1024;

shared_params! {
    /// Parameters of `sps`.
    pub struct SpsParams {
        /// How elements are drawn: uniformly, 80 % of them from 15 % of the vector (hot: what
        /// SSP-19 calls Zipf), or by YCSB's power law, scattered (zipf).
        distribution: KeyDistribution = Uniform;
        /// Bytes of an element, a multiple of 8 (SSP-19: 8).
        element = 8 in 8..=4096;
    }
}

/// The workload.
#[derive(Debug)]
pub struct Sps {
    params: SpsParams,
    plan: Plan,
    vectors: Vec<Vector>,
}

impl Declared for Sps {
    const ABOUT: About = About {
        name: "sps",
        summary: "a vector of small elements: swap two",
        source: "NV-Heaps-11, LOC-14, SSP-19",
        file: file!(),
        shared: false,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = SpsParams;

    fn new(params: &SpsParams, site: &Site) -> Step<Sps> {
        check_multiple_of_8(params, "element")?;
        let mut plan = Plan::of(params, site);
        // A swap takes two.
        plan.items = plan.items.max(2);
        Ok(Sps { params: params.clone(), plan, vectors: Vec::new() })
    }
}

impl Workload for Sps {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        for vector in 0..usize::from(self.plan.structures) {
            let range = self.plan.range(vector);
            self.vectors.push(Vector::create(self.plan.items, self.params.element, range, pm)?);
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(Swapper {
            vector: self.vectors[self.plan.structure_of(core)].clone(),
            indices: Keys::of(self.params.distribution, self.plan.items),
            random: self.plan.random(core, Sps::ABOUT.name),
            is_shared: self.plan.lock.is_some(),
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        for (index, vector) in self.vectors.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            vector.check(&mut walk).map_err(|error| format!("vector {index}: {error}"))?;
        }
        Ok(())
    }

    /// The workload keeps nothing in volatile memory, so there is nothing to rebuild.
    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        self.plan.site.seed = seed;
        self.check(image)
    }
}

/// One vector.
#[derive(Clone, Debug)]
struct Vector {
    first: u64,
    items: u64,
    element: u64,
    /// Bytes from one element to the next: a part of a line, or whole lines.
    stride: u64,
}

impl Vector {
    fn create(items: u64, element: u64, range: Range<u64>, pm: &mut Pm<'_>) -> Step<Vector> {
        let stride = if element < LINE_BYTES {
            element.next_power_of_two()
        } else {
            element.next_multiple_of(LINE_BYTES)
        };
        let bytes = (items * stride).next_multiple_of(LINE_BYTES);
        let first = Heap::new(range, Alignment::Line).alloc(bytes)?;
        for index in 0..items {
            for word in 0..element / WORD_BYTES {
                let at = first.plus(index * stride + word * WORD_BYTES);
                pm.store(at, word_of(index + 1, word));
            }
        }
        Ok(Vector { first: first.address, items, element, stride })
    }

    fn place(&self, index: u64) -> Ptr {
        Ptr::to(self.first + index * self.stride)
    }

    /// Returns the lock of an element: that of its first line, which no other element's later lines
    /// share.
    fn lock(&self, index: u64) -> u32 {
        (Line::of(self.place(index).address).0 % LOCKS) as u32
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<(), String> {
        walk.visit(self.first, self.items * self.stride, "the vector")?;
        let mut seen = vec![false; self.items as usize];
        for index in 0..self.items {
            let at = self.place(index).address;
            let id = walk.word(at);
            if id == 0 || id > self.items {
                let items = self.items;
                return Err(format!("element {index} has the id {id}, which is not 1 to {items}"));
            }
            if std::mem::replace(&mut seen[id as usize - 1], true) {
                return Err(format!("id {id} is there twice, the second time at element {index}"));
            }
            for word in 1..self.element / WORD_BYTES {
                if walk.word(at + word * WORD_BYTES) != word_of(id, word) {
                    return Err(format!("element {index} (id {id}) is torn at word {word}"));
                }
            }
        }
        Ok(())
    }
}

/// A word of the element with the given id.
fn word_of(id: u64, word: u64) -> u64 {
    if word == 0 { id } else { mix(id ^ word << 48) }
}

/// The program of one core.
struct Swapper {
    vector: Vector,
    indices: Keys,
    random: Random,
    is_shared: bool,
}

impl Program for Swapper {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let (first, second) = draw_two(&self.indices, &mut self.random);
        pm.work(OPERATION_WORK);
        let mut locks = [first, second].map(|index| self.vector.lock(index));
        locks.sort_unstable();
        // Two elements of one line have one lock.
        let distinct = if locks[0] == locks[1] { 1 } else { 2 };
        let held = if self.is_shared { &locks[..distinct] } else { &[] };
        for &lock in held {
            pm.lock(LockId(lock));
        }
        let (left, right) = (self.vector.place(first), self.vector.place(second));
        pm.tx(|pm| {
            swap(pm, left, right, self.vector.element);
            Ok(())
        })?;
        for &lock in held.iter().rev() {
            pm.unlock(LockId(lock));
        }
        Ok(())
    }
}
