//! `hash`: a hash table with open chaining.
//!
//! ```text
//! root record, 64 bytes            bucket: the address of the chain's first node, or 0
//!   0  address of the buckets      node, 16 + value bytes
//!   8  number of buckets             0  key
//!                                    8  next node, or 0
//!                                   16  value
//! ```
//!
//! A transaction searches a key's chain; it unlinks the node if it found one, and links a new one
//! at the chain's head otherwise.

use model::units::{LINE_BYTES, WORD_BYTES};
use model::workload::{About, Pm, Ptr, Step};

use crate::heap::Heap;
use crate::keyed::{COMPARE_WORK, HASH_WORK, Structure, Toggled, Values, keyed_params};
use crate::walk::Walk;

/// The workload, for the registry.
pub type Hash = Toggled<Table>;

const KEY: u64 = 0;
const NEXT: u64 = 8;
/// Where a node's value begins.
pub const VALUE: u64 = 16;

keyed_params! {
    /// Parameters of `hash`.
    pub struct HashParams {
        /// Buckets of one table, rounded up to a power of two; 0 means one for each item.
        buckets = 0 in 0..=1 << 32;
        /// Whether bucket heads lie a word or a line apart (a line: SSP-19's three lines and three
        /// pages for each operation).
        bucket: Bucket = Word;
    }
}

model::choices! {
    /// How far bucket heads lie apart.
    pub enum Bucket { Word = "word", Line = "line" }
}

/// One hash table.
#[derive(Clone, Debug)]
pub struct Table {
    root: u64,
    /// The number of buckets and their distance, which a compiled program has in registers.
    buckets: u64,
    stride: u64,
    values: Values,
}

impl Table {
    /// Makes a table of `buckets` empty buckets, a power of two.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(
        buckets: u64,
        stride: u64,
        values: Values,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Table> {
        let root = heap.alloc(LINE_BYTES)?;
        let first = heap.alloc((buckets * stride).next_multiple_of(LINE_BYTES))?;
        for bucket in 0..buckets {
            // Unused memory holds zeros already, and stays untouched.
            let head = first.plus(bucket * stride);
            if pm.load(head) != 0 {
                pm.store(head, 0);
            }
        }
        pm.store_ptr(root, first);
        pm.store(root.plus(8), buckets);
        Ok(Table { root: root.address, buckets, stride, values })
    }

    /// Bytes of a node.
    pub fn node_bytes(&self) -> u64 {
        VALUE + self.values.bytes
    }

    /// The number of a key's bucket.
    pub fn bucket_of(&self, key: u64) -> u64 {
        let bits = self.buckets.trailing_zeros();
        // Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio.
        if bits == 0 { 0 } else { key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits) }
    }

    /// How many bucket heads lie in one line.
    pub fn buckets_in_line(&self) -> u64 {
        LINE_BYTES / self.stride
    }

    /// Returns the pointer to a key's node, and the node; or the chain's last pointer and null.
    pub fn find(&self, pm: &mut Pm<'_>, key: u64) -> (Ptr, Ptr) {
        let mut place = self.head(pm, key);
        loop {
            let node = pm.load_ptr(place);
            if node.is_null() {
                return (place, node);
            }
            pm.work(COMPARE_WORK);
            if pm.load(node.plus(KEY)) == key {
                return (place, node);
            }
            place = node.plus(NEXT);
        }
    }

    /// Links a new node at the head of its chain; its value is for the caller to store.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn insert(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64) -> Step<Ptr> {
        let head = self.head(pm, key);
        let node = heap.alloc(self.node_bytes())?;
        let first = pm.load_ptr(head);
        pm.store(node.plus(KEY), key);
        pm.store_ptr(node.plus(NEXT), first);
        pm.store_ptr(head, node);
        Ok(node)
    }

    fn head(&self, pm: &mut Pm<'_>, key: u64) -> Ptr {
        pm.work(HASH_WORK);
        pm.load_ptr(Ptr::to(self.root)).plus(self.bucket_of(key) * self.stride)
    }

    /// Checks every chain and hands each node, with its key, to `inspect`.
    ///
    /// # Errors
    /// What is wrong with the table, or what `inspect` says.
    pub fn check_chains(
        &self,
        walk: &mut Walk<'_>,
        mut inspect: impl FnMut(&Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        walk.visit(self.root, LINE_BYTES, "the root record")?;
        let (first, buckets) = (walk.word(self.root), walk.word(self.root + 8));
        if buckets != self.buckets {
            return Err(format!("it has {buckets} buckets instead of {}", self.buckets));
        }
        walk.visit(first, buckets * self.stride, "the array of buckets")?;
        for bucket in 0..buckets {
            let mut node = walk.word(first + bucket * self.stride);
            while node != 0 {
                walk.visit(node, self.node_bytes(), "a node")?;
                let key = walk.word(node + KEY);
                let right = self.bucket_of(key);
                if right != bucket {
                    return Err(format!("key {key} is in bucket {bucket} instead of {right}"));
                }
                inspect(walk, node, key)?;
                node = walk.word(node + NEXT);
            }
        }
        Ok(())
    }
}

impl Structure for Table {
    const ABOUT: About = About {
        name: "hash",
        summary: "a hash table with chains: search a key, delete it if found, else insert it",
        source: "NV-Heaps-11 and after",
        file: file!(),
        shared: false,
    };
    type Params = HashParams;

    fn create(params: &HashParams, items: u64, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Table> {
        let buckets = if params.buckets == 0 { items } else { params.buckets };
        let stride = match params.bucket {
            Bucket::Word => WORD_BYTES,
            Bucket::Line => LINE_BYTES,
        };
        Table::new(buckets.next_power_of_two(), stride, Values::of(params), pm, heap)
    }

    fn root_record(&self) -> u64 {
        self.root
    }

    fn toggle(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, stamp: u64) -> Step<bool> {
        let (place, node) = self.find(pm, key);
        let is_new = node.is_null();
        if is_new {
            let node = self.insert(pm, heap, key)?;
            self.values.store(pm, node.plus(VALUE), key, stamp);
        } else {
            let next = pm.load_ptr(node.plus(NEXT));
            pm.store_ptr(place, next);
            heap.free(node, self.node_bytes());
        }
        Ok(is_new)
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        let mut items = Vec::new();
        self.check_chains(walk, |walk, node, key| {
            items.push((key, self.values.check(walk, node + VALUE, key)?));
            Ok(())
        })?;
        Ok(items)
    }
}
