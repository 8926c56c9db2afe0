//! The bytes of an item, as memcached 1.2.4 lays them out.
//!
//! ```text
//!   0  next in order of use, or 0; of a free chunk the next free one
//!   8  the one before, or 0                    40  slab class (1 byte; 0 is free), bytes of the
//!  16  next of the hash chain, or 0                key (1 byte)
//!  24  time of the last use, and of expiry     48  number of this version (cas)
//!      (4 bytes each)                          56  key, a zero, the suffix " flags bytes\r\n",
//!  32  bytes of the value and "\r\n" (4            value, "\r\n"
//!      bytes), references (2), bytes of the
//!      suffix (1), flags (1)
//! ```

use model::units::WORD_BYTES;
use model::workload::{Pm, Ptr};

use crate::keyed::COMPARE_WORK;
use crate::rng::mix;
use crate::walk::Walk;

pub const NEXT: u64 = 0;
pub const BEFORE: u64 = 8;
pub const CHAIN: u64 = 16;
pub const TIME: u64 = 24;
const SIZES: u64 = 32;
const CLASS: u64 = 40;
const VERSION: u64 = 48;
const KEY: u64 = 56;

/// Flags of an item that is found by its key, and of a free chunk.
const LINKED: u64 = 1;
const SLABBED: u64 = 4;

/// Where the flags begin in the word of the sizes, a reference there, and all of them.
const FLAGS: u32 = 56;
const REFERENCE: u64 = 1 << 32;
const REFERENCES: u64 = 0xffff << 32;

/// The end of a value.
const END: &[u8] = b"\r\n";

/// A kind of item: the sizes of its key and of its value.
#[derive(Clone, Debug)]
pub struct Item {
    key: u64,
    value: u64,
    suffix: String,
}

impl Item {
    /// Bytes before the key.
    pub const HEADER_BYTES: u64 = KEY;

    /// Items with keys of `key` bytes and values of `value` bytes.
    pub fn new(key: u64, value: u64) -> Item {
        Item { key, value, suffix: format!(" 0 {value}\r\n") }
    }

    /// All its bytes.
    pub fn bytes(&self) -> u64 {
        KEY + self.key + 1 + self.suffix.len() as u64 + self.value + END.len() as u64
    }

    /// Words of its key.
    pub fn key_words(&self) -> u64 {
        self.key / WORD_BYTES
    }

    /// The word of its sizes, with the flags of an item that is linked.
    pub fn sizes(&self) -> u64 {
        let bytes = self.value + END.len() as u64;
        bytes | (self.suffix.len() as u64) << 48 | LINKED << FLAGS
    }

    /// Returns the bytes after the header, up to the value.
    fn name(&self, number: u64) -> Vec<u8> {
        let mut name = words(self.key, |index| key_word(number, index));
        name.push(0);
        name.extend_from_slice(self.suffix.as_bytes());
        name
    }

    /// Returns the value, with its end.
    fn value(&self, number: u64, version: u64) -> Vec<u8> {
        let mut value = words(self.value, |index| mix(mix(number) ^ version ^ (index << 40)));
        value.extend_from_slice(END);
        value
    }

    /// Returns the bytes after the header.
    fn data(&self, number: u64, version: u64) -> Vec<u8> {
        let mut data = self.name(number);
        data.extend(self.value(number, version));
        data
    }

    /// Bytes before the value.
    fn bytes_before_value(&self) -> u64 {
        KEY + self.key + 1 + self.suffix.len() as u64
    }

    /// Stores all of an item except its links.
    pub fn store(&self, pm: &mut Pm<'_>, at: Ptr, header: Header) {
        pm.store(at.plus(TIME), header.now);
        pm.store(at.plus(SIZES), self.sizes());
        pm.store(at.plus(CLASS), header.class | self.key << 8);
        pm.store(at.plus(VERSION), header.version);
        pm.store_bytes(at.plus(KEY), &self.data(header.number, header.version));
    }

    /// Stores the parts of a new item that come before its value: its key, and one reference.
    pub fn store_name(&self, pm: &mut Pm<'_>, at: Ptr, number: u64, class: u64) {
        for link in [NEXT, BEFORE, CHAIN] {
            pm.store_ptr(at.plus(link), Ptr::NULL);
        }
        pm.store(at.plus(SIZES), self.sizes() & !(LINKED << FLAGS) | REFERENCE);
        pm.store(at.plus(CLASS), class | self.key << 8);
        pm.store_bytes(at.plus(KEY), &self.name(number));
    }

    /// Stores the value of a new item.
    pub fn store_value(&self, pm: &mut Pm<'_>, at: Ptr, number: u64, version: u64) {
        pm.store_bytes(at.plus(self.bytes_before_value()), &self.value(number, version));
    }

    /// Loads the value, and returns its version.
    pub fn load(&self, pm: &mut Pm<'_>, at: Ptr) -> u64 {
        let mut bytes =
            vec![0; (self.suffix.len() as u64 + self.value + END.len() as u64) as usize];
        pm.load_bytes(at.plus(KEY + self.key + 1), &mut bytes);
        pm.load(at.plus(VERSION))
    }

    /// Whether an item has a key; compares word by word, up to the first difference.
    pub fn has_key(&self, pm: &mut Pm<'_>, at: Ptr, number: u64) -> bool {
        pm.work(COMPARE_WORK);
        pm.load(at.plus(CLASS)) >> 8 & 0xff == self.key
            && (0..self.key_words()).all(|index| {
                pm.work(COMPARE_WORK);
                pm.load(at.plus(KEY + index * WORD_BYTES)) == key_word(number, index)
            })
    }

    /// Whether the item that was visited at `at` is linked and of this kind, of the given class.
    pub fn is_at(&self, walk: &Walk<'_>, at: u64, class: u64) -> bool {
        walk.word(at + SIZES) & !REFERENCES == self.sizes()
            && walk.word(at + CLASS) == (class | self.key << 8)
    }

    /// Checks the bytes after the header of a visited item of the given class (the value only if it
    /// belongs to the item's transaction), and returns the header.
    pub fn check(
        &self,
        walk: &Walk<'_>,
        at: u64,
        class: u64,
        has_value: bool,
    ) -> Result<Header, String> {
        let (number, version) = (walk.word(at + KEY), walk.word(at + VERSION));
        let mut right = self.data(number, version);
        right.truncate(if has_value { right.len() } else { self.name(number).len() });
        let mut found = Vec::new();
        walk.bytes(at + KEY, right.len() as u64, &mut found);
        match found.iter().zip(&right).position(|(found, right)| found != right) {
            Some(byte) => Err(format!(
                "the item at {at:#x} (key {number:#x}, version {version:#x}) is torn at byte {byte}"
            )),
            None => Ok(Header { number, version, class, now: walk.word(at + TIME) }),
        }
    }
}

/// The contents of an item's header, beside sizes and links.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The number of its key.
    pub number: u64,
    /// Its version.
    pub version: u64,
    /// The number of its slab class.
    pub class: u64,
    /// The time of its last use.
    pub now: u64,
}

/// The number of the key of an item, which is its first word.
pub fn number_of(pm: &mut Pm<'_>, at: Ptr) -> u64 {
    pm.load(at.plus(KEY))
}

/// The word of an item's sizes, with its flags.
pub fn sizes_of(pm: &mut Pm<'_>, at: Ptr) -> u64 {
    pm.load(at.plus(SIZES))
}

/// Marks a chunk as free.
pub fn mark_free(pm: &mut Pm<'_>, at: Ptr) {
    pm.store(at.plus(SIZES), SLABBED << FLAGS);
    pm.store(at.plus(CLASS), 0);
}

/// Whether the chunk that was visited is marked as free.
pub fn is_free(walk: &Walk<'_>, at: u64) -> bool {
    walk.word(at + SIZES) == SLABBED << FLAGS && walk.word(at + CLASS) == 0
}

/// Whether the visited chunk is an item of a class that a client refers to and no key leads to.
pub fn is_held(walk: &Walk<'_>, at: u64, class: u64) -> bool {
    let sizes = walk.word(at + SIZES);
    sizes >> FLAGS == 0 && sizes & REFERENCES > 0 && walk.word(at + CLASS) & 0xff == class
}

/// How many references there are to the item that was visited.
pub fn references(walk: &Walk<'_>, at: u64) -> u64 {
    (walk.word(at + SIZES) & REFERENCES) / REFERENCE
}

/// The number of the key of the item that was visited, and when it was last used.
pub fn use_of(walk: &Walk<'_>, at: u64) -> (u64, u64) {
    (walk.word(at + KEY), walk.word(at + TIME))
}

/// Whether any client has a reference to an item with this word of sizes.
pub fn is_referenced(sizes: u64) -> bool {
    sizes & REFERENCES > 0
}

/// Returns the word of the sizes of a linked item without references.
pub fn unreferenced(sizes: u64) -> u64 {
    sizes & !REFERENCES | LINKED << FLAGS
}

/// Marks an item as one that its key leads to, or does not.
pub fn set_linked(pm: &mut Pm<'_>, at: Ptr, sizes: u64, is_linked: bool) {
    let flag = LINKED << FLAGS;
    pm.store(at.plus(SIZES), if is_linked { sizes | flag } else { sizes & !flag });
}

/// Counts one reference more to an item.
pub fn hold(pm: &mut Pm<'_>, at: Ptr) {
    let sizes = sizes_of(pm, at);
    pm.store(at.plus(SIZES), sizes + REFERENCE);
}

/// Counts one reference less. Returns whether it was the last one to an item that no key leads to.
pub fn let_go(pm: &mut Pm<'_>, at: Ptr) -> bool {
    let sizes = sizes_of(pm, at) - REFERENCE;
    pm.store(at.plus(SIZES), sizes);
    !is_referenced(sizes) && !is_linked(sizes)
}

/// Whether a key leads to an item with this word of sizes.
pub fn is_linked(sizes: u64) -> bool {
    sizes >> FLAGS & LINKED > 0
}

/// Stores the version and the time that an item has from when it is linked.
pub fn store_version(pm: &mut Pm<'_>, at: Ptr, version: u64, now: u64) {
    pm.store(at.plus(TIME), now);
    pm.store(at.plus(VERSION), version);
}

/// Bytes that follow from a number for each word.
fn words(bytes: u64, word: impl Fn(u64) -> u64) -> Vec<u8> {
    (0..bytes / WORD_BYTES).flat_map(|index| word(index).to_le_bytes()).collect()
}

/// Returns a word of a key: the first is the key's number, and the others follow from it.
fn key_word(number: u64, index: u64) -> u64 {
    if index == 0 { number } else { mix(number ^ index << 56) }
}
