//! Reading a structure out of an image that may hold garbage: every address is checked before it
//! is followed, and no walk visits more bytes than the heap has.

use std::ops::Range;

use model::image::Image;
use model::units::{WORD_BYTES, Word};

/// A bounded walk over the nodes of one structure.
#[derive(Debug)]
pub struct Walk<'a> {
    image: &'a Image<'a>,
    heap: Range<u64>,
    /// The bytes of nodes that may still be visited, since nodes do not overlap.
    bytes_left: u64,
    /// The visited nodes: their addresses, and their bytes.
    reached: Vec<(u64, u64)>,
}

impl<'a> Walk<'a> {
    /// Returns a walk over the addresses of `heap`.
    pub fn new(image: &'a Image<'_>, heap: &Range<u64>) -> Walk<'a> {
        let heap = heap.start..heap.end.min(image.capacity());
        let bytes_left = heap.end.saturating_sub(heap.start);
        Walk { image, heap, bytes_left, reached: Vec::new() }
    }

    /// Visits a node of `bytes` bytes; from then on its words may be read.
    ///
    /// # Errors
    /// When it is not in the heap, or more nodes were visited than there is room for, as happens
    /// when a walk goes in circles.
    pub fn visit(&mut self, address: u64, bytes: u64, what: &str) -> Result<(), String> {
        let end = address.checked_add(bytes);
        let fits = end.is_some_and(|end| address >= self.heap.start && end <= self.heap.end);
        if address == 0 || !fits || !address.is_multiple_of(WORD_BYTES) {
            let Range { start, end } = self.heap;
            return Err(format!(
                "{what} at {address:#x} ({bytes} bytes) is no place in {start:#x}..{end:#x}"
            ));
        }
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            format!("{what} at {address:#x}: more nodes are linked than the heap can hold")
        })?;
        self.reached.push((address, bytes));
        Ok(())
    }

    /// Returns the visited nodes: their addresses, and their bytes.
    pub fn reached(self) -> Vec<(u64, u64)> {
        self.reached
    }

    /// A word of a node that was visited.
    pub fn word(&self, address: u64) -> u64 {
        self.image.word(Word::of(address))
    }

    /// Bytes of a node that was visited, at any alignment.
    pub fn bytes(&self, address: u64, length: u64, bytes: &mut Vec<u8>) {
        bytes.clear();
        let mut at = address;
        while at < address + length {
            let word = self.word(at).to_le_bytes();
            let offset = at % WORD_BYTES;
            let end = WORD_BYTES.min(offset + address + length - at);
            bytes.extend_from_slice(&word[offset as usize..end as usize]);
            at += end - offset;
        }
    }
}
