//! `echo`: a key-value store with versions, one of WHISPER's kernels (Bailey and others, Echo,
//! INFLOW 2013). Clients put into a store of their own in volatile memory and merge what they put,
//! `merge` puts at a time, into the persistent master store.
//!
//! ```text
//! master, 64 bytes                     version table, 24 bytes and the key
//!   0  address of the buckets            0  next table of the chain, or 0
//!   8  number of buckets                 8  newest version
//!  16  snapshot: merges so far          16  versions ever
//!  24  number of keys                   24  key, `key` bytes; its first word is its number
//!  32  commit log                      version, 48 bytes
//! commit record, 24 + 8 m bytes          0  address of the value
//!   0  snapshot that the merge made      8  bytes of the value
//!   8  core                             16  number among the key's versions
//!  16  puts                             24  snapshot
//!  24  the version of each put          32  version before it, or 0
//! ```
//!
//! A transaction is a merge, with the gets that the client made meanwhile. A put of a key adds a
//! version and frees the one older than the `versions` newest; the merge counts the snapshot up and
//! adds a record to the commit log, a ring. The master store has one lock, under which a merge
//! makes the next snapshot. A client's operations on its own store are charged as instructions; in
//! WHISPER they are most of the suite's writes to volatile memory.

use std::collections::BTreeMap;

use model::image::Image;
use model::units::{CoreId, LINE_BYTES, WORD_BYTES};
use model::workload::{
    About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Stop, Workload,
};

use crate::choices::Sharing;
use crate::heap::{Alignment, Heap};
use crate::keyed::{
    COMPARE_WORK, OPERATION_WORK, Plan, Seen, Stamps, Supply, Values, check_multiple_of_8, locked,
};
use crate::numbers::Numbers;
use crate::rng::{Random, mix};
use crate::walk::Walk;

/// Keys at the start, at most, unless the user says otherwise (WHISPER: 10,000).
const ITEMS_MAX: u64 = 10_000;
/// Records of the commit log. Ours: Echo's grows until it is collected.
const LOG_RECORDS: u64 = 64;
/// Instructions for each byte of a key that is hashed. Ours: Echo's hash does a shift and two
/// additions for each character.
const HASH_WORK_BYTE: u64 = 3;
/// Instructions for each word that a client copies to or from its own store: a load and a store.
const COPY_WORK_WORD: u64 = 2;

const BUCKETS: u64 = 0;
const BUCKET_COUNT: u64 = 8;
const SNAPSHOT: u64 = 16;
const KEY_COUNT: u64 = 24;
const LOG: u64 = 32;

const NEXT: u64 = 0;
const NEWEST: u64 = 8;
const VERSION_COUNT: u64 = 16;
const KEY: u64 = 24;

const VALUE: u64 = 0;
const SIZE: u64 = 8;
const NUMBER: u64 = 16;
const MADE_BY: u64 = 24;
const OLDER: u64 = 32;
const VERSION_BYTES: u64 = 48;

const RECORD_SNAPSHOT: u64 = 0;
const RECORD_CORE: u64 = 8;
const RECORD_PUTS: u64 = 16;
const RECORD_VERSIONS: u64 = 24;

model::params! {
    /// Parameters of `echo`; the defaults are WHISPER's `evaluation ... 128 1024 8 8 7 1000000 2`.
    pub struct EchoParams {
        /// Keys at the start, over all cores; 0 means as many as the machine says, 10,000 at most
        /// (WHISPER: 10,000).
        items = 0 in 0..=1_000_000_000;
        /// Whether all cores merge into one master store behind one lock, or each has a store of
        /// its own and takes no lock.
        shared: Sharing = Shared;
        /// Bytes of a key, a multiple of 8.
        key = 128 in 8..=4096;
        /// Bytes of a value, a multiple of 8.
        value = 1024 in 8..=4096;
        /// Puts that are merged in one transaction.
        merge = 8 in 1..=64;
        /// Puts in a hundred operations; the others are gets.
        put_percent = 80 in 1..=100;
        /// Puts in a hundred that give an existing key a new value; the others add a key.
        update_percent = 70 in 0..=100;
        /// Versions of a key that are kept (ours: the newest, and the one that a reader of the
        /// snapshot before it sees).
        versions = 2 in 1..=16;
    }
}

/// The workload.
#[derive(Debug)]
pub struct Echo {
    params: EchoParams,
    plan: Plan,
    supplies: Vec<Supply>,
    stores: Vec<Store>,
    /// The number of keys that each core has added.
    added: Vec<u64>,
}

impl Declared for Echo {
    const ABOUT: About = About {
        name: "echo",
        summary: "a key-value store with versions (WHISPER): merge a batch of puts",
        source: "WHISPER-17; Bailey et al., INFLOW 2013",
        file: file!(),
        shared: true,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = EchoParams;

    fn new(params: &EchoParams, site: &Site) -> Step<Echo> {
        check_multiple_of_8(params, "key")?;
        check_multiple_of_8(params, "value")?;
        let items = if params.items == 0 { site.items.min(ITEMS_MAX) } else { params.items };
        let plan = Plan::new(items, params.shared, site);
        let supplies = Supply::of_site(site, Alignment::Auto);
        let (params, added) = (params.clone(), vec![0; supplies.len()]);
        Ok(Echo { params, plan, supplies, stores: Vec::new(), added })
    }
}

impl Workload for Echo {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        for index in 0..usize::from(self.plan.structures) {
            self.plan.must_fit(index, KEY + self.params.key + VERSION_BYTES + self.params.value)?;
            let heap = &mut self.supplies[index].heap;
            let store = Store::create(&self.params, self.plan.items, pm, heap)?;
            let mut numbers: Vec<u64> = (0..self.plan.items).collect();
            self.plan.filling(index, Echo::ABOUT.name).shuffle(&mut numbers);
            for (item, number) in numbers.into_iter().enumerate() {
                let core = self.plan.supplier(index, item as u64);
                let Supply { heap, stamps } = &mut self.supplies[core];
                let put = Put { number, stamp: stamps.issue() };
                store.put(pm, heap, put, 0)?;
            }
            self.stores.push(store);
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let index = usize::from(core.0);
        let Supply { heap, stamps } = self.supplies[index].clone();
        Ok(Box::new(Client {
            store: self.stores[self.plan.structure_of(core)].clone(),
            params: self.params.clone(),
            heap,
            stamps,
            random: self.plan.random(core, Echo::ABOUT.name),
            numbers: Numbers::of(&self.plan, core, self.added[index]),
            lock: self.plan.lock,
            puts: Vec::new(),
            gets: Vec::new(),
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen;
        (seen, self.added) = self.look(image)?;
        self.supplies = self.plan.go_on(seed, Alignment::Auto, &seen);
        Ok(())
    }
}

impl Echo {
    /// Checks every store; also returns how many keys each core has added.
    fn look(&self, image: &Image<'_>) -> Result<(Seen, Vec<u64>), String> {
        let (mut seen, mut added) = (Seen::default(), vec![0; self.supplies.len()]);
        for (index, store) in self.stores.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let told = |error| format!("store {index}: {error}");
            let mut numbers = Vec::new();
            for (number, stamp) in store.check(&mut walk).map_err(told)? {
                numbers.push(number);
                seen.stamps.push(stamp);
            }
            Numbers::check(&self.plan, index, "key", numbers, &mut added).map_err(told)?;
            seen.reached.extend(walk.reached());
        }
        Ok((seen, added))
    }
}

/// A put: a key's number, and the stamp from which its value is computed.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// The key's number.
    pub number: u64,
    /// The stamp of the value.
    pub stamp: u64,
}

/// One master store.
#[derive(Clone, Debug)]
pub struct Store {
    master: u64,
    /// The number of buckets, a power of two.
    buckets: u64,
    key: u64,
    value: u64,
    versions: u64,
    merge: u64,
}

impl Store {
    /// Makes a store for about `items` keys.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn create(
        params: &EchoParams,
        items: u64,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Store> {
        let master = heap.alloc(LINE_BYTES)?;
        let store = Store {
            master: master.address,
            buckets: items.next_power_of_two().max(LINE_BYTES / WORD_BYTES),
            key: params.key,
            value: params.value,
            versions: params.versions,
            merge: params.merge,
        };
        let buckets = heap.alloc(store.buckets * WORD_BYTES)?;
        for bucket in 0..store.buckets {
            pm.store_ptr(buckets.plus(bucket * WORD_BYTES), Ptr::NULL);
        }
        let log = heap.alloc(LOG_RECORDS * store.record_bytes())?;
        for record in 0..LOG_RECORDS {
            pm.store(log.plus(record * store.record_bytes()), 0);
        }
        pm.store_ptr(master.plus(BUCKETS), buckets);
        pm.store(master.plus(BUCKET_COUNT), store.buckets);
        pm.store(master.plus(SNAPSHOT), 0);
        pm.store(master.plus(KEY_COUNT), 0);
        pm.store_ptr(master.plus(LOG), log);
        Ok(store)
    }

    /// Merges a batch of puts, at most `merge` of them: the versions, the record, the snapshot.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn merge(&self, pm: &mut Pm<'_>, heap: &mut Heap, core: u64, puts: &[Put]) -> Step {
        let master = Ptr::to(self.master);
        let snapshot = pm.load(master.plus(SNAPSHOT)) + 1;
        let place = snapshot % LOG_RECORDS * self.record_bytes();
        let record = pm.load_ptr(master.plus(LOG)).plus(place);
        for (index, &put) in puts.iter().enumerate() {
            let version = self.put(pm, heap, put, snapshot)?;
            pm.store_ptr(record.plus(RECORD_VERSIONS + index as u64 * WORD_BYTES), version);
        }
        pm.store(record.plus(RECORD_CORE), core);
        pm.store(record.plus(RECORD_PUTS), puts.len() as u64);
        pm.store(record.plus(RECORD_SNAPSHOT), snapshot);
        pm.store(master.plus(SNAPSHOT), snapshot);
        Ok(())
    }

    /// Loads the newest value of a key, if there is one, and returns its stamp.
    pub fn get(&self, pm: &mut Pm<'_>, number: u64) -> Option<u64> {
        let (_, table) = self.find(pm, number);
        if table.is_null() {
            return None;
        }
        let version = pm.load_ptr(table.plus(NEWEST));
        let value = pm.load_ptr(version.plus(VALUE));
        let stamp = pm.load(value);
        for word in 1..pm.load(version.plus(SIZE)) / WORD_BYTES {
            pm.load(value.plus(word * WORD_BYTES));
        }
        Some(stamp)
    }

    fn record_bytes(&self) -> u64 {
        (RECORD_VERSIONS + self.merge * WORD_BYTES).next_multiple_of(LINE_BYTES)
    }

    fn table_bytes(&self) -> u64 {
        KEY + self.key
    }

    fn bucket_of(&self, number: u64) -> u64 {
        mix(number) % self.buckets
    }

    /// Returns the pointer to a key's version table, and the table; or the chain's last pointer and
    /// null.
    fn find(&self, pm: &mut Pm<'_>, number: u64) -> (Ptr, Ptr) {
        pm.work(HASH_WORK_BYTE * self.key);
        let buckets = pm.load_ptr(Ptr::to(self.master + BUCKETS));
        let mut place = buckets.plus(self.bucket_of(number) * WORD_BYTES);
        loop {
            let table = pm.load_ptr(place);
            if table.is_null() || self.has_key(pm, table, number) {
                return (place, table);
            }
            place = table.plus(NEXT);
        }
    }

    /// Compares a table's key word by word, up to the first difference.
    fn has_key(&self, pm: &mut Pm<'_>, table: Ptr, number: u64) -> bool {
        (0..self.key / WORD_BYTES).all(|word| {
            pm.work(COMPARE_WORK);
            pm.load(table.plus(KEY + word * WORD_BYTES)) == key_word(number, word)
        })
    }

    /// Gives a key a new version, and returns it.
    fn put(&self, pm: &mut Pm<'_>, heap: &mut Heap, put: Put, snapshot: u64) -> Step<Ptr> {
        let (place, found) = self.find(pm, put.number);
        let table = if found.is_null() { self.add(pm, heap, place, put.number)? } else { found };
        let value = heap.alloc(self.value)?;
        Values::distinct(self.value).store(pm, value, put.number, put.stamp);
        let version = heap.alloc(VERSION_BYTES)?;
        let count = pm.load(table.plus(VERSION_COUNT)) + 1;
        let newest = pm.load_ptr(table.plus(NEWEST));
        pm.store_ptr(version.plus(VALUE), value);
        pm.store(version.plus(SIZE), self.value);
        pm.store(version.plus(NUMBER), count);
        pm.store(version.plus(MADE_BY), snapshot);
        pm.store_ptr(version.plus(OLDER), newest);
        pm.store_ptr(table.plus(NEWEST), version);
        pm.store(table.plus(VERSION_COUNT), count);
        if count > self.versions {
            self.collect(pm, heap, version);
        }
        Ok(version)
    }

    /// Links a version table for a new key.
    fn add(&self, pm: &mut Pm<'_>, heap: &mut Heap, place: Ptr, number: u64) -> Step<Ptr> {
        let table = heap.alloc(self.table_bytes())?;
        pm.store_ptr(table.plus(NEXT), Ptr::NULL);
        pm.store_ptr(table.plus(NEWEST), Ptr::NULL);
        pm.store(table.plus(VERSION_COUNT), 0);
        for word in 0..self.key / WORD_BYTES {
            pm.store(table.plus(KEY + word * WORD_BYTES), key_word(number, word));
        }
        pm.store_ptr(place, table);
        let keys = pm.load(Ptr::to(self.master + KEY_COUNT));
        pm.store(Ptr::to(self.master + KEY_COUNT), keys + 1);
        Ok(table)
    }

    /// Frees the one version that is older than those to be kept.
    fn collect(&self, pm: &mut Pm<'_>, heap: &mut Heap, newest: Ptr) {
        let mut kept = newest;
        for _ in 1..self.versions {
            kept = pm.load_ptr(kept.plus(OLDER));
        }
        let old = pm.load_ptr(kept.plus(OLDER));
        let value = pm.load_ptr(old.plus(VALUE));
        pm.store_ptr(kept.plus(OLDER), Ptr::NULL);
        heap.free(value, self.value);
        heap.free(old, VERSION_BYTES);
    }
}

/// Check.
impl Store {
    /// Checks the store and returns its keys, each with the stamp of its newest value.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        walk.visit(self.master, LINE_BYTES, "the master record")?;
        let buckets = walk.word(self.master + BUCKETS);
        let count = walk.word(self.master + BUCKET_COUNT);
        if count != self.buckets {
            return Err(format!("it has {count} buckets instead of {}", self.buckets));
        }
        walk.visit(buckets, self.buckets * WORD_BYTES, "the array of buckets")?;
        let snapshot = walk.word(self.master + SNAPSHOT);
        let log = self.check_log(walk, snapshot)?;
        let mut keys = Vec::new();
        let mut newest = 0;
        for bucket in 0..self.buckets {
            let mut table = walk.word(buckets + bucket * WORD_BYTES);
            while table != 0 {
                let number = self.check_key(walk, table, bucket)?;
                let (stamp, made) = self.check_versions(walk, table, number, &log)?;
                newest += u64::from(snapshot > 0 && made == snapshot);
                keys.push((number, stamp));
                table = walk.word(table + NEXT);
            }
        }
        let said = walk.word(self.master + KEY_COUNT);
        if said != keys.len() as u64 {
            return Err(format!("it has {} keys and says {said}", keys.len()));
        }
        // A batch may put a key twice.
        let puts = log.puts;
        if newest > puts || (newest == 0) != (puts == 0) {
            return Err(format!("{newest} keys are of snapshot {snapshot}, which made {puts}"));
        }
        Ok(keys)
    }

    /// Checks that the log holds the last merges, and returns its contents.
    fn check_log(&self, walk: &mut Walk<'_>, snapshot: u64) -> Result<Log, String> {
        let at = walk.word(self.master + LOG);
        walk.visit(at, LOG_RECORDS * self.record_bytes(), "the commit log")?;
        let first = snapshot.saturating_sub(LOG_RECORDS - 1).max(1);
        let mut log = Log { first, last: snapshot, puts: 0, made: BTreeMap::new() };
        for made in first..=snapshot {
            let record = at + made % LOG_RECORDS * self.record_bytes();
            let [found, core, puts] =
                [RECORD_SNAPSHOT, RECORD_CORE, RECORD_PUTS].map(|field| walk.word(record + field));
            if found != made || puts == 0 || puts > self.merge {
                return Err(format!("the record of snapshot {made} says {found}, {puts} puts"));
            }
            let version = |put| walk.word(record + RECORD_VERSIONS + put * WORD_BYTES);
            // A version may be at the address of a freed one: the later record then counts.
            log.made.extend((0..puts).map(|put| (version(put), (made, core))));
            log.puts = puts;
        }
        Ok(log)
    }

    /// Checks the key of a version table, and returns its number.
    fn check_key(&self, walk: &mut Walk<'_>, table: u64, bucket: u64) -> Result<u64, String> {
        walk.visit(table, self.table_bytes(), "a version table")?;
        let number = walk.word(table + KEY);
        for word in 1..self.key / WORD_BYTES {
            if walk.word(table + KEY + word * WORD_BYTES) != key_word(number, word) {
                return Err(format!("key {number} is torn at word {word}"));
            }
        }
        let right = self.bucket_of(number);
        if right != bucket {
            return Err(format!("key {number} is in bucket {bucket} instead of {right}"));
        }
        Ok(number)
    }

    /// Checks the versions of a key, and returns the stamp and the snapshot of the newest.
    fn check_versions(
        &self,
        walk: &mut Walk<'_>,
        table: u64,
        number: u64,
        log: &Log,
    ) -> Result<(u64, u64), String> {
        let count = walk.word(table + VERSION_COUNT);
        let mut version = walk.word(table + NEWEST);
        let (mut newest, mut before) = (None, log.last);
        for back in 0..count.min(self.versions) {
            walk.visit(version, VERSION_BYTES, "a version")?;
            let (said, made) = (walk.word(version + NUMBER), walk.word(version + MADE_BY));
            if said != count - back || made > before {
                return Err(format!(
                    "version {} of key {number} says {said}, of snapshot {made}, before {before}",
                    count - back
                ));
            }
            let size = walk.word(version + SIZE);
            if size != self.value {
                return Err(format!("a value of key {number} has {size} bytes"));
            }
            let value = walk.word(version + VALUE);
            walk.visit(value, self.value, "a value")?;
            let stamp = Values::distinct(self.value).check(walk, value, number)?;
            log.check(version, made, stamp)
                .map_err(|what| format!("version {said} of key {number} {what}"))?;
            newest.get_or_insert((stamp, made));
            (before, version) = (made, walk.word(version + OLDER));
        }
        match newest {
            Some(newest) if version == 0 => Ok(newest),
            _ => Err(format!("key {number} has not as many versions as it says, {count}")),
        }
    }
}

/// The contents of the commit log: the last merges.
struct Log {
    /// The snapshots of the oldest merge that it has, and of the last one.
    first: u64,
    last: u64,
    /// The number of puts of the last merge, or 0.
    puts: u64,
    /// The snapshot and the core that made each version.
    made: BTreeMap<u64, (u64, u64)>,
}

impl Log {
    /// Checks a version's fields about the merge that made it, if the log still has that merge.
    fn check(&self, version: u64, made: u64, stamp: u64) -> Result<(), String> {
        let says = (made, Stamps::split(stamp).0);
        match self.made.get(&version) {
            Some(&logged) if logged == says => Ok(()),
            None if made < self.first => Ok(()),
            Some((snapshot, core)) => Err(format!(
                "is of snapshot {made} and core {}, and the log says {snapshot} and {core}",
                says.1
            )),
            None => Err(format!("is of snapshot {made}, whose record does not have it")),
        }
    }
}

/// A word of a key: the first is its number, and the others follow from it.
fn key_word(number: u64, word: u64) -> u64 {
    if word == 0 { number } else { mix(number ^ word << 48) }
}

/// The program of one core.
struct Client {
    store: Store,
    params: EchoParams,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    /// The numbers of the keys that it knows of.
    numbers: Numbers,
    lock: Option<LockId>,
    /// The puts that the present transaction merges, and the gets made meanwhile.
    puts: Vec<Put>,
    gets: Vec<u64>,
}

impl Program for Client {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        self.draw(pm);
        let core = u64::from(pm.core().0);
        locked(pm, self.lock, |pm| {
            pm.tx(|pm| {
                for &number in &self.gets {
                    self.store.get(pm, number).ok_or_else(|| {
                        Stop::Failed(format!("key {number} is not in the master store"))
                    })?;
                }
                self.store.merge(pm, &mut self.heap, core, &self.puts)
            })
        })
    }
}

impl Client {
    /// Draws operations until there are enough puts to merge. A get that the client's own store can
    /// answer does not go to the master store.
    fn draw(&mut self, pm: &mut Pm<'_>) {
        self.puts.clear();
        self.gets.clear();
        let copy = COPY_WORK_WORD * (self.params.key + self.params.value) / WORD_BYTES;
        while (self.puts.len() as u64) < self.params.merge {
            pm.work(OPERATION_WORK + HASH_WORK_BYTE * self.params.key);
            if self.random.below(100) >= self.params.put_percent {
                let number = self.known();
                if self.puts.iter().all(|put| put.number != number) {
                    self.gets.push(number);
                }
                continue;
            }
            pm.work(copy);
            let number = if self.random.below(100) < self.params.update_percent {
                self.known()
            } else {
                self.numbers.add()
            };
            self.puts.push(Put { number, stamp: self.stamps.issue() });
        }
    }

    /// Any key that this core knows of.
    fn known(&mut self) -> u64 {
        let index = self.random.below(self.numbers.known());
        self.numbers.number(index)
    }
}
