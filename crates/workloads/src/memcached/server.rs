//! The data of a server in persistent memory, and the operations of commands on them.
//!
//! ```text
//! record, 64 bytes                       class, 64 bytes each, after the record
//!   0  buckets                             0  first item in order of use, or 0
//!   8  number of buckets                   8  last item, or 0
//!  16  old buckets, while the table        16  number of items
//!      grows, or 0                         24  first free chunk, or 0
//!  24  the next of them to be moved        32  number of free chunks
//!  32  number of items                     40  next chunk of the newest page, or 0
//!  40  number of pages                     48  chunks that are left there
//! page, a word each, after the classes:    56  number of pages
//! address + number of the class
//! ```

use std::sync::Arc;

use model::units::{LINE_BYTES, WORD_BYTES};
use model::workload::{Pm, Ptr, Step, Stop};

use super::item::{self, Header};
use super::slabs::{Class, Growth, Shape};
use crate::heap::Heap;
use crate::keyed::HASH_WORK;
use crate::rng::mix;

pub const BUCKETS: u64 = 0;
pub const BUCKET_COUNT: u64 = 8;
pub const OLD_BUCKETS: u64 = 16;
pub const MOVED: u64 = 24;
pub const ITEMS: u64 = 32;
pub const PAGES: u64 = 40;
const RECORD_BYTES: u64 = LINE_BYTES;

/// Words of a class.
pub mod class {
    pub const FIRST: u64 = 0;
    pub const LAST: u64 = 8;
    pub const ITEMS: u64 = 16;
    pub const FREE: u64 = 24;
    pub const FREE_COUNT: u64 = 32;
    pub const REST: u64 = 40;
    pub const REST_COUNT: u64 = 48;
    pub const PAGES: u64 = 56;
}

/// Instructions for each eight bytes of a key that is hashed. Ours: Jenkins' hash does 24 to mix
/// twelve bytes.
const HASH_WORK_WORD: u64 = 16;

/// Items at the end of a list that are looked at for one to evict (memcached 1.2.4).
const EVICTION_TRIES: u32 = 50;

/// A SET.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// The number of the key.
    pub number: u64,
    /// The index of the size.
    pub size: usize,
    /// The stamp from which the value is computed.
    pub stamp: u64,
    /// The client's time.
    pub now: u64,
}

/// A server. A compiled program has the server's shape in its own memory.
#[derive(Clone, Debug)]
pub struct Server {
    root: u64,
    shape: Arc<Shape>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn create(shape: Arc<Shape>, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Server> {
        let server = Server { root: 0, shape };
        let root = heap.alloc(server.bytes())?;
        for word in 0..server.bytes() / WORD_BYTES {
            pm.store(root.plus(word * WORD_BYTES), 0);
        }
        let buckets = new_buckets(pm, heap, server.shape.buckets)?;
        pm.store_ptr(root.plus(BUCKETS), buckets);
        pm.store(root.plus(BUCKET_COUNT), server.shape.buckets);
        Ok(Server { root: root.address, ..server })
    }

    /// Returns the values that were fixed before the server started.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes of the record with its classes and pages.
    pub fn bytes(&self) -> u64 {
        (self.page_entry(self.shape.pages_limit()) - self.root).next_multiple_of(LINE_BYTES)
    }

    /// A field of the record.
    pub fn field(&self, field: u64) -> u64 {
        self.root + field
    }

    /// A field of a class.
    pub fn class_field(&self, class: usize, field: u64) -> u64 {
        self.root + RECORD_BYTES + class as u64 * LINE_BYTES + field
    }

    /// The word of a page.
    pub fn page_entry(&self, page: u64) -> u64 {
        self.class_field(self.shape.classes.len(), page * WORD_BYTES)
    }

    /// Sets the value of a key: makes the item, evicting another if need be, and links it in place
    /// of the key's old item, if there is one.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn set(&self, pm: &mut Pm<'_>, heap: &mut Heap, set: Set) -> Step {
        let (kind, class) = &self.shape.sizes[set.size];
        let none = || Stop::Failed("no chunk is free, and no item is there".to_owned());
        let new = self.chunk(pm, heap, *class)?.ok_or_else(none)?;
        let number = self.shape.classes[*class].number;
        let header = Header { number: set.number, version: set.stamp, class: number, now: set.now };
        kind.store(pm, new, header);
        self.link(pm, heap, set.number, *class, new)
    }

    /// Links an item in place of the key's old item, if there is one.
    pub fn link(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        number: u64,
        class: usize,
        new: Ptr,
    ) -> Step {
        let (place, old) = self.find(pm, number);
        if !old.is_null() {
            self.unlink(pm, place, old)?;
        }
        let head = self.bucket(pm, number);
        let first = pm.load_ptr(head);
        pm.store_ptr(new.plus(item::CHAIN), first);
        pm.store_ptr(head, new);
        let items = pm.load(Ptr::to(self.field(ITEMS))) + 1;
        pm.store(Ptr::to(self.field(ITEMS)), items);
        self.put_first(pm, class, new);
        self.grow(pm, heap, items)
    }

    /// Loads the value of a key, if it is there, and returns its version.
    ///
    /// # Errors
    /// [`Stop::Failed`] when the chunk that is found is no item.
    pub fn get(&self, pm: &mut Pm<'_>, number: u64, now: u64) -> Step<Option<u64>> {
        let (_, found) = self.find(pm, number);
        if found.is_null() {
            return Ok(None);
        }
        let (kind, class) = self.shape.kind_of(item::sizes_of(pm, found))?;
        let version = kind.load(pm, found);
        self.update(pm, class, found, now);
        Ok(Some(version))
    }

    /// Moves an item to the head of its list, if it was not used for long.
    pub fn update(&self, pm: &mut Pm<'_>, class: usize, found: Ptr, now: u64) {
        let used = pm.load(found.plus(item::TIME));
        if now.saturating_sub(used) > self.shape.update_interval {
            self.take_out(pm, class, found);
            pm.store(found.plus(item::TIME), now);
            self.put_first(pm, class, found);
        }
    }

    /// Moves a bucket to the new table, if the table grows.
    pub fn move_bucket(&self, pm: &mut Pm<'_>, heap: &mut Heap) {
        let old = pm.load_ptr(Ptr::to(self.field(OLD_BUCKETS)));
        if old.is_null() {
            return;
        }
        let next = pm.load(Ptr::to(self.field(MOVED)));
        let place = old.plus(next * WORD_BYTES);
        let mut found = pm.load_ptr(place);
        pm.store_ptr(place, Ptr::NULL);
        let count = pm.load(Ptr::to(self.field(BUCKET_COUNT))) / 2;
        pm.store(Ptr::to(self.field(MOVED)), next + 1);
        while !found.is_null() {
            let chain = pm.load_ptr(found.plus(item::CHAIN));
            let number = item::number_of(pm, found);
            // Its old bucket counts as moved, so this is the new one.
            let head = self.bucket(pm, number);
            let first = pm.load_ptr(head);
            pm.store_ptr(found.plus(item::CHAIN), first);
            pm.store_ptr(head, found);
            found = chain;
        }
        if next + 1 == count {
            pm.store_ptr(Ptr::to(self.field(OLD_BUCKETS)), Ptr::NULL);
            heap.free(old, count * WORD_BYTES);
        }
    }

    /// Moves the buckets that are left, if the table grows.
    pub fn move_all(&self, pm: &mut Pm<'_>, heap: &mut Heap) {
        while !pm.load_ptr(Ptr::to(self.field(OLD_BUCKETS))).is_null() {
            self.move_bucket(pm, heap);
        }
    }
}

/// Chunks.
impl Server {
    /// Takes a chunk of a class: a free one, one that is left of the newest page, one of a new
    /// page, or that of the least recently used item. `None` if clients have references to every
    /// item that could be evicted: memcached is out of memory then, and stores nothing.
    pub fn chunk(&self, pm: &mut Pm<'_>, heap: &mut Heap, class: usize) -> Step<Option<Ptr>> {
        let free = self.free_chunk(pm, class);
        if free.is_some() {
            return Ok(free);
        }
        if !self.carve(pm, heap, class)? {
            let last = self.last(pm, class);
            if last.is_null() {
                return Ok(None);
            }
            let number = item::number_of(pm, last);
            let (place, found) = self.find(pm, number);
            if found != last {
                return Err(Stop::Failed(format!("the last item, {number:#x}, is not found")));
            }
            self.unlink(pm, place, last)?;
        }
        match self.free_chunk(pm, class) {
            None => Err(Stop::Failed("no chunk is free after an eviction".to_owned())),
            chunk => Ok(chunk),
        }
    }

    /// Returns the least recently used item to which no client has a reference.
    fn last(&self, pm: &mut Pm<'_>, class: usize) -> Ptr {
        let mut last = pm.load_ptr(self.place(class, class::LAST));
        if !self.shape.by_calls {
            return last;
        }
        for _ in 0..EVICTION_TRIES {
            if last.is_null() || !item::is_referenced(item::sizes_of(pm, last)) {
                return last;
            }
            last = pm.load_ptr(last.plus(item::BEFORE));
        }
        Ptr::NULL
    }

    fn free_chunk(&self, pm: &mut Pm<'_>, class: usize) -> Option<Ptr> {
        let free = pm.load_ptr(self.place(class, class::FREE));
        if !free.is_null() {
            let next = pm.load_ptr(free.plus(item::NEXT));
            pm.store_ptr(self.place(class, class::FREE), next);
            self.count(pm, class, class::FREE_COUNT, -1);
            return Some(free);
        }
        let rest = pm.load_ptr(self.place(class, class::REST));
        if rest.is_null() {
            return None;
        }
        let left = pm.load(self.place(class, class::REST_COUNT)) - 1;
        let next = rest.plus(self.shape.classes[class].chunk);
        let next = if left == 0 { Ptr::NULL } else { next };
        pm.store_ptr(self.place(class, class::REST), next);
        pm.store(self.place(class, class::REST_COUNT), left);
        Some(rest)
    }

    /// Gives a class a new page. Returns whether another page was allowed.
    fn carve(&self, pm: &mut Pm<'_>, heap: &mut Heap, class: usize) -> Step<bool> {
        let pages = pm.load(Ptr::to(self.field(PAGES)));
        let own = pm.load(self.place(class, class::PAGES));
        if pages >= self.shape.pages_max && own > 0 {
            return Ok(false);
        }
        let page = heap.alloc(self.shape.page)?;
        let Class { number, chunk } = self.shape.classes[class];
        pm.store(Ptr::to(self.page_entry(pages)), page.address | number);
        pm.store(Ptr::to(self.field(PAGES)), pages + 1);
        pm.store(self.place(class, class::PAGES), own + 1);
        let chunks = self.shape.chunks_of(class);
        if self.shape.carves_at_once {
            for index in (0..chunks).rev() {
                self.free(pm, class, page.plus(index * chunk));
            }
        } else {
            pm.store_ptr(self.place(class, class::REST), page);
            pm.store(self.place(class, class::REST_COUNT), chunks);
        }
        Ok(true)
    }

    /// Adds a chunk to the free ones of its class.
    pub fn free(&self, pm: &mut Pm<'_>, class: usize, chunk: Ptr) {
        item::mark_free(pm, chunk);
        let first = pm.load_ptr(self.place(class, class::FREE));
        pm.store_ptr(chunk.plus(item::NEXT), first);
        pm.store_ptr(self.place(class, class::FREE), chunk);
        self.count(pm, class, class::FREE_COUNT, 1);
    }

    fn place(&self, class: usize, field: u64) -> Ptr {
        Ptr::to(self.class_field(class, field))
    }

    fn count(&self, pm: &mut Pm<'_>, class: usize, field: u64, more: i64) {
        let count = pm.load(self.place(class, field));
        pm.store(self.place(class, field), count.wrapping_add_signed(more));
    }
}

/// Lists in order of use.
impl Server {
    fn put_first(&self, pm: &mut Pm<'_>, class: usize, new: Ptr) {
        let first = pm.load_ptr(self.place(class, class::FIRST));
        pm.store_ptr(new.plus(item::BEFORE), Ptr::NULL);
        pm.store_ptr(new.plus(item::NEXT), first);
        if first.is_null() {
            pm.store_ptr(self.place(class, class::LAST), new);
        } else {
            pm.store_ptr(first.plus(item::BEFORE), new);
        }
        pm.store_ptr(self.place(class, class::FIRST), new);
        self.count(pm, class, class::ITEMS, 1);
    }

    fn take_out(&self, pm: &mut Pm<'_>, class: usize, old: Ptr) {
        let next = pm.load_ptr(old.plus(item::NEXT));
        let before = pm.load_ptr(old.plus(item::BEFORE));
        let to_next = if before.is_null() {
            self.place(class, class::FIRST)
        } else {
            before.plus(item::NEXT)
        };
        let to_before =
            if next.is_null() { self.place(class, class::LAST) } else { next.plus(item::BEFORE) };
        pm.store_ptr(to_next, next);
        pm.store_ptr(to_before, before);
        self.count(pm, class, class::ITEMS, -1);
    }
}

/// The hash table.
impl Server {
    /// The pointer that points to a key's item, and the item; or the chain's last pointer and null.
    pub fn find(&self, pm: &mut Pm<'_>, number: u64) -> (Ptr, Ptr) {
        pm.work(HASH_WORK_WORD * self.shape.key_words());
        let mut place = self.bucket(pm, number);
        loop {
            let found = pm.load_ptr(place);
            if found.is_null() || self.shape.sizes[0].0.has_key(pm, found, number) {
                return (place, found);
            }
            place = found.plus(item::CHAIN);
        }
    }

    /// The head of a key's chain: in the old table, if its bucket there is not moved yet.
    fn bucket(&self, pm: &mut Pm<'_>, number: u64) -> Ptr {
        pm.work(HASH_WORK);
        let count = pm.load(Ptr::to(self.field(BUCKET_COUNT)));
        let old = pm.load_ptr(Ptr::to(self.field(OLD_BUCKETS)));
        if !old.is_null() {
            let bucket = bucket_of(number, count / 2);
            if bucket >= pm.load(Ptr::to(self.field(MOVED))) {
                return old.plus(bucket * WORD_BYTES);
            }
        }
        let buckets = pm.load_ptr(Ptr::to(self.field(BUCKETS)));
        buckets.plus(bucket_of(number, count) * WORD_BYTES)
    }

    /// Removes an item, to which `place` points, from the table and from its list, and frees its
    /// chunk, unless a client has a reference to it.
    fn unlink(&self, pm: &mut Pm<'_>, place: Ptr, old: Ptr) -> Step {
        let sizes = item::sizes_of(pm, old);
        let (_, class) = self.shape.kind_of(sizes)?;
        let chain = pm.load_ptr(old.plus(item::CHAIN));
        pm.store_ptr(place, chain);
        let items = pm.load(Ptr::to(self.field(ITEMS)));
        pm.store(Ptr::to(self.field(ITEMS)), items - 1);
        self.take_out(pm, class, old);
        if item::is_referenced(sizes) {
            item::set_linked(pm, old, sizes, false);
        } else {
            self.free(pm, class, old);
        }
        Ok(())
    }

    /// Begins to double the table when it has three items for two buckets.
    fn grow(&self, pm: &mut Pm<'_>, heap: &mut Heap, items: u64) -> Step {
        let count = pm.load(Ptr::to(self.field(BUCKET_COUNT)));
        let is_due = items > count + count / 2 && self.shape.growth != Growth::Never;
        if !is_due || pm.load(Ptr::to(self.field(OLD_BUCKETS))) != 0 {
            return Ok(());
        }
        let old = pm.load_ptr(Ptr::to(self.field(BUCKETS)));
        let new = new_buckets(pm, heap, 2 * count)?;
        pm.store_ptr(Ptr::to(self.field(BUCKETS)), new);
        pm.store(Ptr::to(self.field(BUCKET_COUNT)), 2 * count);
        pm.store_ptr(Ptr::to(self.field(OLD_BUCKETS)), old);
        pm.store(Ptr::to(self.field(MOVED)), 0);
        if self.shape.growth == Growth::AtOnce {
            (0..count).for_each(|_| self.move_bucket(pm, heap));
        }
        Ok(())
    }
}

/// The bucket of a key in a table of `count` buckets, a power of two. As the table doubles, a
/// bucket's items go to two.
pub fn bucket_of(number: u64, count: u64) -> u64 {
    mix(number) & (count - 1)
}

/// Makes a table of empty buckets. Unused memory holds zeros already, like memory that memcached
/// gets from `calloc`, and stays untouched. Other contents (of an old block, or of a doubling that
/// a power failure cut short) are cleared in the transaction that also links the table, so that a
/// power failure leaves both or neither.
fn new_buckets(pm: &mut Pm<'_>, heap: &mut Heap, count: u64) -> Step<Ptr> {
    let buckets = heap.alloc(count * WORD_BYTES)?;
    for bucket in 0..count {
        let head = buckets.plus(bucket * WORD_BYTES);
        if !pm.load_ptr(head).is_null() {
            pm.store_ptr(head, Ptr::NULL);
        }
    }
    Ok(buckets)
}
