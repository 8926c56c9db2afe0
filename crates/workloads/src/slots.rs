//! An array of rows: the row of a key lies in the slot with the key's number, and nothing is stored
//! to find it.
//!
//! ```text
//! slot, whole lines
//!   0  key, or 0      8  row
//! ```
//!
//! A full array goes on from its first slot, where a row replaces the one in the same slot. If keys
//! are inserted in order, the array so holds the newest ones.

use model::units::{LINE_BYTES, WORD_BYTES};
use model::workload::{Pm, Ptr, Step};

use crate::heap::Heap;
use crate::walk::Walk;

const ROW: u64 = WORD_BYTES;

/// One array. Its keys are not 0.
#[derive(Clone, Debug)]
pub struct Slots {
    first: u64,
    count: u64,
    stride: u64,
}

impl Slots {
    /// Makes an array of `count` empty slots, or of one, for rows of `bytes` bytes.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(count: u64, bytes: u64, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Slots> {
        let (count, stride) = (count.max(1), (ROW + bytes).next_multiple_of(LINE_BYTES));
        let first = heap.alloc(count * stride)?;
        for slot in 0..count {
            // Unused memory holds zeros already, and stays untouched.
            let key = first.plus(slot * stride);
            if pm.load(key) != 0 {
                pm.store(key, 0);
            }
        }
        Ok(Slots { first: first.address, count, stride })
    }

    /// How many slots it has.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Where a key's slot begins.
    fn slot(&self, key: u64) -> u64 {
        self.first + key % self.count * self.stride
    }

    /// The row of a key.
    pub fn find(&self, pm: &mut Pm<'_>, key: u64) -> Option<Ptr> {
        let slot = Ptr::to(self.slot(key));
        (pm.load(slot) == key).then(|| slot.plus(ROW))
    }

    /// Puts a key into its slot and returns its row, for the caller to fill.
    pub fn insert(&self, pm: &mut Pm<'_>, key: u64) -> Ptr {
        let slot = Ptr::to(self.slot(key));
        pm.store(slot, key);
        slot.plus(ROW)
    }

    /// Checks the array and hands each row, visited, and its key to `inspect`.
    ///
    /// # Errors
    /// What is wrong with the array, or what `inspect` says.
    pub fn check(
        &self,
        walk: &mut Walk<'_>,
        mut inspect: impl FnMut(&Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        walk.visit(self.first, self.count * self.stride, "an array")?;
        for slot in (0..self.count).map(|slot| self.first + slot * self.stride) {
            let key = walk.word(slot);
            if key == 0 {
                continue;
            }
            if self.slot(key) != slot {
                return Err(format!("key {key} is in the slot at {slot:#x}, which is another's"));
            }
            inspect(walk, slot + ROW, key)?;
        }
        Ok(())
    }
}
