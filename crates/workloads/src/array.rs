//! `array`: swaps two elements of an array (SPS, "swap positions").
//!
//! ```text
//! element, `element` bytes: at element number i of the array
//!   0  id: 1 to the number of elements; swaps change the places of ids
//!   8  padding, the same in every element: word w is a fixed function of w
//! ```
//!
//! A swap loads both elements and stores both, word by word. Elements share all bytes but the id,
//! so with 64-byte elements 7 of 8 word stores (87.5 %) are silent; Silo-23 reports that 90.4 % of
//! its array's logs were for silent stores. With 8-byte elements (SSP-19's SPS) none is. The ids
//! stay a permutation, which is what the check looks at.

use model::image::Image;
use model::units::{CoreId, LINE_BYTES, WORD_BYTES};
use model::workload::{About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Workload};

use crate::heap::{Alignment, Heap};
use crate::keyed::{OPERATION_WORK, Plan, check_multiple_of_8, locked, padding, shared_params};
use crate::rng::{KeyDistribution, Keys, Random};
use crate::walk::Walk;

shared_params! {
    /// Parameters of `array`.
    pub struct ArrayParams {
        /// How elements are drawn: uniformly, 80 % of them from 15 % of the array (hot: what SSP-19
        /// calls Zipf), or by YCSB's power law, scattered (zipf).
        distribution: KeyDistribution = Uniform;
        /// Bytes of an element, a multiple of 8 (Silo-23: 64; SSP-19: 8).
        element = 64 in 8..=4096;
        /// Swaps of a transaction (ours: write sets of any size; papers have one).
        operations = 1 in 1..=4096;
    }
}

/// The workload.
#[derive(Debug)]
pub struct Array {
    params: ArrayParams,
    plan: Plan,
    heaps: Vec<Heap>,
    /// The address of each array's first element.
    arrays: Vec<u64>,
}

impl Declared for Array {
    const ABOUT: About = About {
        name: "array",
        summary: "an array: swap two elements",
        source: "NV-Heaps-11 (SPS), SSP-19, Silo-23",
        file: file!(),
        shared: false,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = ArrayParams;

    fn new(params: &ArrayParams, site: &Site) -> Step<Array> {
        check_multiple_of_8(params, "element")?;
        let mut plan = Plan::of(params, site);
        // A swap takes two.
        plan.items = plan.items.max(2);
        // The shared array takes its whole block from one place, so it may need the whole heap.
        let heaps = (0..usize::from(plan.structures))
            .map(|array| Heap::new(plan.range(array), Alignment::Line))
            .collect();
        Ok(Array { params: params.clone(), plan, heaps, arrays: Vec::new() })
    }
}

impl Array {
    fn element(&self, array: u64, index: u64) -> u64 {
        array + index * self.params.element
    }

    fn check_array(&self, walk: &mut Walk<'_>, array: u64) -> Result<(), String> {
        let items = self.plan.items;
        walk.visit(array, items * self.params.element, "the array")?;
        let mut seen = vec![false; items as usize];
        for index in 0..items {
            let at = self.element(array, index);
            let id = walk.word(at);
            if id == 0 || id > items {
                return Err(format!("element {index} has the id {id}, which is not 1 to {items}"));
            }
            if std::mem::replace(&mut seen[id as usize - 1], true) {
                return Err(format!("id {id} is in the array twice, the second time at {index}"));
            }
            for word in 1..self.params.element / WORD_BYTES {
                let found = walk.word(at + word * WORD_BYTES);
                if found != padding(word) {
                    return Err(format!("word {word} of element {index} is {found:#x}"));
                }
            }
        }
        Ok(())
    }
}

impl Workload for Array {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        for heap in &mut self.heaps {
            let bytes = self.plan.items * self.params.element;
            let array = heap.alloc(bytes.next_multiple_of(LINE_BYTES))?;
            for index in 0..self.plan.items {
                let at = array.plus(index * self.params.element);
                pm.store(at, index + 1);
                for word in 1..self.params.element / WORD_BYTES {
                    pm.store(at.plus(word * WORD_BYTES), padding(word));
                }
            }
            self.arrays.push(array.address);
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let items = self.plan.items;
        Ok(Box::new(Swapper {
            array: self.arrays[self.plan.structure_of(core)],
            element: self.params.element,
            indices: Keys::of(self.params.distribution, items),
            operations: self.params.operations,
            random: self.plan.random(core, Array::ABOUT.name),
            lock: self.plan.lock,
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        for (index, &array) in self.arrays.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            self.check_array(&mut walk, array)
                .map_err(|error| format!("array {index}: {error}"))?;
        }
        Ok(())
    }

    /// The workload keeps nothing in volatile memory, so there is nothing to rebuild.
    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        self.plan.site.seed = seed;
        self.check(image)
    }
}

/// The program of one core.
struct Swapper {
    array: u64,
    element: u64,
    indices: Keys,
    /// Swaps of a transaction.
    operations: u64,
    random: Random,
    lock: Option<LockId>,
}

impl Program for Swapper {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        pm.work(self.operations * OPERATION_WORK);
        let (array, element) = (self.array, self.element);
        let place = |index| Ptr::to(array + index * element);
        locked(pm, self.lock, |pm| {
            pm.tx(|pm| {
                for _ in 0..self.operations {
                    let (first, second) = draw_two(&self.indices, &mut self.random);
                    swap(pm, place(first), place(second), element);
                }
                Ok(())
            })
        })
    }
}

/// Draws two different elements.
pub(crate) fn draw_two(indices: &Keys, random: &mut Random) -> (u64, u64) {
    let first = indices.draw(random);
    loop {
        let second = indices.draw(random);
        if second != first {
            return (first, second);
        }
    }
}

/// Swaps two elements, word by word; a compiler keeps a line of each in registers.
pub(crate) fn swap(pm: &mut Pm<'_>, first: Ptr, second: Ptr, bytes: u64) {
    for offset in (0..bytes).step_by(WORD_BYTES as usize) {
        let (left, right) = (pm.load(first.plus(offset)), pm.load(second.plus(offset)));
        pm.store(first.plus(offset), right);
        pm.store(second.plus(offset), left);
    }
}
