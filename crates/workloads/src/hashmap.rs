//! `hashmap`: a hash table that grows, PMDK's `hashmap_tx`, one of WHISPER's kernels
//! ([`crate::pmembench`]).
//!
//! ```text
//! map, 48 bytes                            buckets, 8 + 16 n bytes
//!   0  seed (low half), a (high half)        0  number of buckets n
//!   8  b                                     8  identifier of each chain's first entry
//!  16  p                                   entry, 40 bytes
//!  24  number of entries                     0  key
//!  32  identifier of the buckets             8  identifier of the value
//!                                           24  identifier of the next entry
//! ```
//!
//! A key's bucket is ((a key + b) mod p) mod n. When an insert finds more than 10 entries in its
//! chain, or more than 5 in a table with more than two entries a bucket, the table is due to be
//! rebuilt with twice the buckets, in a transaction of its own that writes every entry. Here it is
//! the next transaction of the core that noticed. For a large table no log has room for that
//! transaction, so by default only small ones are rebuilt, and the chains of larger ones grow.

use model::workload::{About, Pm, Ptr, Step};

use crate::heap::Heap;
use crate::keyed::{COMPARE_WORK, HASH_WORK};
use crate::pmembench::{Inserted, Map, OID_BYTES, check_oid, load_oid, map_params, store_oid};
use crate::rng::Random;
use crate::walk::Walk;

/// The workload, for the registry.
pub type HashMap = Inserted<Table>;

const SEED_AND_A: u64 = 0;
const B: u64 = 8;
const P: u64 = 16;
const COUNT: u64 = 24;
const BUCKETS: u64 = 32;
const MAP_BYTES: u64 = BUCKETS + OID_BYTES;

const HEADS: u64 = 8;

const KEY: u64 = 0;
const VALUE: u64 = 8;
const NEXT: u64 = VALUE + OID_BYTES;
const ENTRY_BYTES: u64 = NEXT + OID_BYTES;

/// Buckets of a new table (PMDK).
const BUCKETS_AT_FIRST: u64 = 10;
/// The lengths of a chain beyond which a table is rebuilt: the first if the table has more than two
/// entries a bucket, the second in any case (PMDK).
const CHAIN_LONG: u64 = 5;
const CHAIN_TOO_LONG: u64 = 10;
/// The modulus p (PMDK).
const PRIME: u64 = 32_212_254_719;
/// Instructions of the two divisions of a hash, beside those of other hashes. Ours: a division of
/// 64 bits takes the room of some 20 simple instructions in a pipeline.
const DIVISIONS_WORK: u64 = 40;

map_params! {
    /// Parameters of `hashmap`.
    pub struct HashMapParams {
        /// Entries of the largest table that is rebuilt (ours: a transaction of about 350 lines,
        /// which fits every log); 0 means any, as in PMDK, for which pm.log_size has to be raised.
        rebuild_max = 256 in 0..=1 << 32;
    }
}

/// One hash table.
#[derive(Clone, Debug)]
pub struct Table {
    map: u64,
    rebuild_max: u64,
    /// The address of the buckets that this core has found due to be replaced.
    due: Option<u64>,
}

/// The coefficients of a hash and the number of buckets.
#[derive(Clone, Copy, Debug)]
struct Hash {
    a: u64,
    b: u64,
    p: u64,
    buckets: u64,
}

impl Hash {
    fn bucket_of(self, key: u64) -> u64 {
        (self.a.wrapping_mul(key).wrapping_add(self.b) % self.p) % self.buckets
    }
}

impl Map for Table {
    const ABOUT: About = About {
        name: "hashmap",
        summary: "a hash table that grows (WHISPER): insert a random key",
        source: "WHISPER-17, PMDK's hashmap_tx under pmembench",
        file: file!(),
        shared: true,
    };
    type Params = HashMapParams;

    fn create(
        params: &HashMapParams,
        items: u64,
        random: &mut Random,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Table> {
        let map = heap.alloc(MAP_BYTES)?;
        let (seed, a, b) = (random.below(1 << 32), 1 + random.below(1_000), random.below(100_000));
        pm.store(map.plus(SEED_AND_A), seed | a << 32);
        pm.store(map.plus(B), b);
        pm.store(map.plus(P), PRIME);
        pm.store(map.plus(COUNT), 0);
        let mut count = BUCKETS_AT_FIRST;
        while is_crowded(items, count) {
            count *= 2;
        }
        let buckets = new_buckets(pm, heap, count)?;
        store_oid(pm, map.plus(BUCKETS), buckets);
        let rebuild_max = if params.rebuild_max == 0 { u64::MAX } else { params.rebuild_max };
        Ok(Table { map: map.address, rebuild_max, due: None })
    }

    fn maintain(&mut self, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<bool> {
        let Some(due) = self.due.take() else { return Ok(false) };
        let buckets = load_oid(pm, Ptr::to(self.map + BUCKETS));
        // Another core may have done it by now.
        let is_due = buckets.address == due;
        if is_due {
            self.rebuild(pm, heap, buckets)?;
        }
        Ok(is_due)
    }

    fn insert(&mut self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, value: Ptr) -> Step {
        let map = Ptr::to(self.map);
        let buckets = load_oid(pm, map.plus(BUCKETS));
        let hash = self.hash(pm, buckets);
        let head = head_of(pm, hash, buckets, key);
        let first = load_oid(pm, head);
        let (mut entry, mut length) = (first, 0);
        while !entry.is_null() {
            pm.work(COMPARE_WORK);
            if pm.load(entry.plus(KEY)) == key {
                // As in PMDK: the entry that is there stays.
                return Ok(());
            }
            length += 1;
            entry = load_oid(pm, entry.plus(NEXT));
        }
        let new = heap.alloc(ENTRY_BYTES)?;
        pm.store(new.plus(KEY), key);
        store_oid(pm, new.plus(VALUE), value);
        store_oid(pm, new.plus(NEXT), first);
        store_oid(pm, head, new);
        let count = pm.load(map.plus(COUNT)) + 1;
        pm.store(map.plus(COUNT), count);
        length += 1;
        let is_long = length > CHAIN_LONG && is_crowded(count, hash.buckets);
        if count <= self.rebuild_max && (is_long || length > CHAIN_TOO_LONG) {
            self.due = Some(buckets.address);
        }
        Ok(())
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        walk.visit(self.map, MAP_BYTES, "the map")?;
        let buckets = check_oid(walk, self.map + BUCKETS)?;
        walk.visit(buckets, HEADS, "the array of buckets")?;
        let hash = Hash {
            a: walk.word(self.map + SEED_AND_A) >> 32,
            b: walk.word(self.map + B),
            p: walk.word(self.map + P),
            buckets: walk.word(buckets),
        };
        if hash.p != PRIME || hash.buckets == 0 {
            return Err(format!("it hashes to {} buckets, modulo {}", hash.buckets, hash.p));
        }
        let bytes = hash.buckets.saturating_mul(OID_BYTES);
        walk.visit(buckets + HEADS, bytes, "the buckets")?;
        let mut items = Vec::new();
        for bucket in 0..hash.buckets {
            let mut entry = check_oid(walk, buckets + HEADS + bucket * OID_BYTES)?;
            while entry != 0 {
                walk.visit(entry, ENTRY_BYTES, "an entry")?;
                let key = walk.word(entry + KEY);
                let right = hash.bucket_of(key);
                if right != bucket {
                    return Err(format!("key {key:#x} is in bucket {bucket}, not in {right}"));
                }
                items.push((key, check_oid(walk, entry + VALUE)?));
                entry = check_oid(walk, entry + NEXT)?;
            }
        }
        let count = walk.word(self.map + COUNT);
        if count != items.len() as u64 {
            return Err(format!("it has {} entries and says {count}", items.len()));
        }
        Ok(items)
    }
}

impl Table {
    fn hash(&self, pm: &mut Pm<'_>, buckets: Ptr) -> Hash {
        let map = Ptr::to(self.map);
        Hash {
            a: pm.load(map.plus(SEED_AND_A)) >> 32,
            b: pm.load(map.plus(B)),
            p: pm.load(map.plus(P)),
            buckets: pm.load(buckets),
        }
    }

    /// Moves every entry to an array of twice the buckets.
    fn rebuild(&self, pm: &mut Pm<'_>, heap: &mut Heap, old: Ptr) -> Step {
        let before = self.hash(pm, old);
        let hash = Hash { buckets: 2 * before.buckets, ..before };
        let new = new_buckets(pm, heap, hash.buckets)?;
        for bucket in 0..before.buckets {
            let mut entry = load_oid(pm, old.plus(HEADS + bucket * OID_BYTES));
            while !entry.is_null() {
                let next = load_oid(pm, entry.plus(NEXT));
                let key = pm.load(entry.plus(KEY));
                let head = head_of(pm, hash, new, key);
                let first = load_oid(pm, head);
                store_oid(pm, entry.plus(NEXT), first);
                store_oid(pm, head, entry);
                entry = next;
            }
        }
        store_oid(pm, Ptr::to(self.map + BUCKETS), new);
        heap.free(old, buckets_bytes(before.buckets));
        Ok(())
    }
}

/// Whether a table has more than two entries a bucket.
fn is_crowded(entries: u64, buckets: u64) -> bool {
    entries > 2 * buckets
}

fn buckets_bytes(buckets: u64) -> u64 {
    HEADS + buckets * OID_BYTES
}

fn new_buckets(pm: &mut Pm<'_>, heap: &mut Heap, count: u64) -> Step<Ptr> {
    let buckets = heap.alloc(buckets_bytes(count))?;
    pm.store(buckets, count);
    for bucket in 0..count {
        store_oid(pm, buckets.plus(HEADS + bucket * OID_BYTES), Ptr::NULL);
    }
    Ok(buckets)
}

/// The place of the identifier of a key's chain.
fn head_of(pm: &mut Pm<'_>, hash: Hash, buckets: Ptr, key: u64) -> Ptr {
    pm.work(HASH_WORK + DIVISIONS_WORK);
    buckets.plus(HEADS + hash.bucket_of(key) * OID_BYTES)
}
