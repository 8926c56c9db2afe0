//! `queue`: a singly linked list, enqueued at the tail and dequeued at the head.
//!
//! ```text
//! root record, 64 bytes      node, 8 + value bytes
//!   0  first node, or 0        0  next node, or 0
//!   8  last node, or 0         8  value; its first word says which core enqueued it, and as which
//! ```
//!
//! Operations come in pairs of an enqueue and a dequeue in random order: half of them are
//! enqueues, and the length stays within one item per core of the initial one.

use model::image::Image;
use model::units::{CoreId, LINE_BYTES};
use model::workload::{About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Workload};

use crate::heap::{Alignment, Heap};
use crate::keyed::{
    Contents, OPERATION_WORK, Plan, Seen, Stamps, Supply, Values, check_multiple_of_8, locked,
    shared_params,
};
use crate::rng::Random;
use crate::walk::Walk;

const NEXT: u64 = 0;
const VALUE: u64 = 8;
const FIRST: u64 = 0;
const LAST: u64 = 8;

/// The key from which, together with their stamps, all values in a queue are computed.
const NO_KEY: u64 = 0;

shared_params! {
    /// Parameters of `queue`.
    pub struct QueueParams {
        /// Bytes of a value, a multiple of 8 (Silo-23: 64; ATOM-17: 512 and 4096).
        value = 64 in 8..=4096;
        /// What follows the first word of a value, a stamp: words that follow from the stamp
        /// (distinct), or words that all values share, as the elements of `array` do (padded).
        contents: Contents = Distinct;
        /// Where nodes begin: at lines if they fill one (auto), at 16 bytes, or at lines.
        alignment: Alignment = Auto;
        /// Operations of a transaction (ours: write sets of any size; papers have one).
        operations = 1 in 1..=4096;
    }
}

/// The workload.
#[derive(Debug)]
pub struct Queue {
    params: QueueParams,
    plan: Plan,
    supplies: Vec<Supply>,
    lists: Vec<List>,
}

impl Declared for Queue {
    const ABOUT: About = About {
        name: "queue",
        summary: "a linked list: enqueue or dequeue an element",
        source: "Silo-23, HOOP-20, ATOM-17",
        file: file!(),
        shared: false,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = QueueParams;

    fn new(params: &QueueParams, site: &Site) -> Step<Queue> {
        check_multiple_of_8(params, "value")?;
        let plan = Plan::of(params, site);
        let supplies = Supply::of_site(site, params.alignment);
        Ok(Queue { params: params.clone(), plan, supplies, lists: Vec::new() })
    }
}

impl Queue {
    /// Links the initial items, in an order of nodes that is not the order of their addresses.
    fn fill(&mut self, pm: &mut Pm<'_>, queue: usize) -> Step {
        let heap = &mut self.supplies[queue].heap;
        let list = List::create(Values::of(&self.params), pm, heap)?;
        let mut nodes = Vec::new();
        for item in 0..self.plan.items {
            let core = self.plan.supplier(queue, item);
            nodes.push((core, self.supplies[core].heap.alloc(list.node_bytes())?));
        }
        self.plan.filling(queue, Queue::ABOUT.name).shuffle(&mut nodes);
        for (core, node) in nodes {
            list.link(pm, node, self.supplies[core].stamps.issue());
        }
        self.lists.push(list);
        Ok(())
    }
}

impl Workload for Queue {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        (0..usize::from(self.plan.structures)).try_for_each(|queue| self.fill(pm, queue))
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let Supply { heap, stamps } = self.supplies[usize::from(core.0)].clone();
        Ok(Box::new(QueueProgram {
            list: self.lists[self.plan.structure_of(core)].clone(),
            heap,
            stamps,
            random: self.plan.random(core, Queue::ABOUT.name),
            second: None,
            operations: self.params.operations,
            lock: self.plan.lock,
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen = self.look(image)?;
        let alignment = self.params.alignment;
        self.supplies = self.plan.go_on(seed, alignment, &seen);
        Ok(())
    }
}

impl Queue {
    /// Checks every list.
    fn look(&self, image: &Image<'_>) -> Result<Seen, String> {
        let mut seen = Seen::default();
        for (index, list) in self.lists.iter().enumerate() {
            let told = |error| format!("queue {index}: {error}");
            let mut walk = Walk::new(image, &self.plan.range(index));
            let stamps = list.check(&mut walk).map_err(told)?;
            check_order(&stamps, self.supplies.len()).map_err(told)?;
            seen.stamps.extend(stamps);
            seen.reached.extend(walk.reached());
        }
        Ok(seen)
    }
}

/// One list.
#[derive(Clone, Debug)]
pub struct List {
    root: u64,
    values: Values,
}

impl List {
    /// Makes an empty list.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn create(values: Values, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<List> {
        let root = heap.alloc(LINE_BYTES)?;
        pm.store_ptr(root.plus(FIRST), Ptr::NULL);
        pm.store_ptr(root.plus(LAST), Ptr::NULL);
        Ok(List { root: root.address, values })
    }

    fn node_bytes(&self) -> u64 {
        VALUE + self.values.bytes
    }

    /// Appends an element.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn enqueue(&self, pm: &mut Pm<'_>, heap: &mut Heap, stamp: u64) -> Step {
        let node = heap.alloc(self.node_bytes())?;
        self.link(pm, node, stamp);
        Ok(())
    }

    fn link(&self, pm: &mut Pm<'_>, node: Ptr, stamp: u64) {
        let root = Ptr::to(self.root);
        pm.store_ptr(node.plus(NEXT), Ptr::NULL);
        self.values.store(pm, node.plus(VALUE), NO_KEY, stamp);
        let last = pm.load_ptr(root.plus(LAST));
        let place = if last.is_null() { root.plus(FIRST) } else { last.plus(NEXT) };
        pm.store_ptr(place, node);
        pm.store_ptr(root.plus(LAST), node);
    }

    /// Takes the first element out and returns its stamp; an empty list stays as it is.
    pub fn dequeue(&self, pm: &mut Pm<'_>, heap: &mut Heap) -> Option<u64> {
        let root = Ptr::to(self.root);
        let node = pm.load_ptr(root.plus(FIRST));
        if node.is_null() {
            return None;
        }
        let stamp = pm.load(node.plus(VALUE));
        for word in 1..self.values.bytes / 8 {
            pm.load(node.plus(VALUE + 8 * word));
        }
        let next = pm.load_ptr(node.plus(NEXT));
        pm.store_ptr(root.plus(FIRST), next);
        if next.is_null() {
            pm.store_ptr(root.plus(LAST), Ptr::NULL);
        }
        heap.free(node, self.node_bytes());
        Some(stamp)
    }

    /// Checks the list and returns the stamps of its elements, the first first.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<u64>, String> {
        walk.visit(self.root, LINE_BYTES, "the root record")?;
        let mut node = walk.word(self.root + FIRST);
        let mut last = 0;
        let mut stamps = Vec::new();
        while node != 0 {
            walk.visit(node, self.node_bytes(), "a node")?;
            stamps.push(self.values.check(walk, node + VALUE, NO_KEY)?);
            last = node;
            node = walk.word(node + NEXT);
        }
        let tail = walk.word(self.root + LAST);
        if tail != last {
            return Err(format!("the last node is {last:#x}, and the tail is {tail:#x}"));
        }
        Ok(stamps)
    }
}

/// Checks that the elements of each core are in the order in which it enqueued them, without gaps.
fn check_order(stamps: &[u64], cores: usize) -> Result<(), String> {
    let mut seen: Vec<Option<u64>> = vec![None; cores];
    for &stamp in stamps {
        let (core, count) = Stamps::split(stamp);
        let Some(before) = seen.get_mut(core as usize) else {
            return Err(format!("an element is from core {core}, and there are {cores}"));
        };
        if let Some(before) = before.filter(|before| before + 1 != count) {
            return Err(format!("element {count} of core {core} follows its element {before}"));
        }
        *before = Some(count);
    }
    Ok(())
}

/// The program of one core.
struct QueueProgram {
    list: List,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    /// The second operation of a pair that has begun: whether it is an enqueue.
    second: Option<bool>,
    /// Operations of a transaction.
    operations: u64,
    lock: Option<LockId>,
}

impl Program for QueueProgram {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        pm.work(self.operations * OPERATION_WORK);
        locked(pm, self.lock, |pm| {
            pm.tx(|pm| (0..self.operations).try_for_each(|_| self.operate(pm)))
        })
    }
}

impl QueueProgram {
    /// Enqueues an element, or dequeues one.
    fn operate(&mut self, pm: &mut Pm<'_>) -> Step {
        let enqueues = match self.second.take() {
            Some(enqueues) => enqueues,
            None => {
                let enqueues = self.random.one_in(2);
                self.second = Some(!enqueues);
                enqueues
            }
        };
        if enqueues {
            return self.list.enqueue(pm, &mut self.heap, self.stamps.issue());
        }
        self.list.dequeue(pm, &mut self.heap);
        Ok(())
    }
}
