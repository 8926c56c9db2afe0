//! Allocation in persistent memory: slabs of equal blocks, over the part of the heap that one core
//! uses alone.
//!
//! ```text
//! part   | slab of 48-byte blocks | slab of 128-byte blocks | slab of 48 ... |  not yet carved  |
//! ```
//!
//! A slab is 4 KiB or one block, whichever is more. A freed block goes on its class's list, and
//! the block that was freed last is handed out first. The allocator's state is volatile (host
//! memory, no simulated stores): a real allocator with volatile metadata rebuilds them after a
//! failure by marking what the roots reach, so a block that an undone transaction had taken is free
//! again. For persistent metadata it also [`records`](Heap::recording) the changes, which marks.rs
//! stores.

use std::ops::Range;

use model::units::{CoreId, LINE_BYTES};
use model::workload::{Ptr, Site, Step, Stop};

/// Bytes in a slab (a page, so that SSP's pages are pages of one class).
const SLAB_BYTES: u64 = 4096;
/// The grain of blocks that are not aligned to lines, as in common allocators.
pub const GRAIN_BYTES: u64 = 16;

model::choices! {
    /// The alignment of blocks.
    pub enum Alignment {
        /// Blocks of a line or more at lines, smaller ones at 16 bytes.
        Auto = "auto",
        /// Every block at 16 bytes.
        Packed = "packed",
        /// Every block at a line, alone in its lines.
        Line = "line",
    }
}

impl Alignment {
    fn grain(self, bytes: u64) -> u64 {
        match self {
            Alignment::Line => LINE_BYTES,
            Alignment::Auto if bytes >= LINE_BYTES => LINE_BYTES,
            _ => GRAIN_BYTES,
        }
    }
}

/// The allocator of one core. A clone goes on from the same state.
#[derive(Clone, Debug)]
pub struct Heap {
    /// The ranges from which no slab has been carved yet, in order.
    uncarved: Vec<Range<u64>>,
    alignment: Alignment,
    classes: Vec<Class>,
    /// The blocks that were handed out (true) or taken back (false), if they are recorded.
    changes: Option<Vec<(u64, bool)>>,
}

/// Blocks of one size.
#[derive(Clone, Debug)]
struct Class {
    block_bytes: u64,
    /// The rest of the newest slab.
    slab: Range<u64>,
    freed: Vec<u64>,
}

impl Heap {
    /// An allocator over a range of addresses.
    pub fn new(range: Range<u64>, alignment: Alignment) -> Heap {
        // Address 0 means null, and a block may be aligned to a line.
        let start = range.start.max(LINE_BYTES).next_multiple_of(LINE_BYTES);
        let uncarved = start..range.end.max(start);
        Heap { uncarved: vec![uncarved], alignment, classes: Vec::new(), changes: None }
    }

    /// Returns an allocator over a range of addresses in which these blocks, by address and bytes,
    /// are in use: those that the roots reach after a power failure. The rest is free.
    pub fn around(range: Range<u64>, alignment: Alignment, reached: &[(u64, u64)]) -> Heap {
        let mut heap = Heap::new(range, alignment);
        let mut rest = heap.uncarved[0].clone();
        let mut blocks: Vec<(u64, u64)> = reached.to_vec();
        blocks.retain(|&(address, _)| rest.contains(&address));
        blocks.sort_unstable();
        heap.uncarved.clear();
        for (address, bytes) in blocks {
            heap.uncarved.push(rest.start..address);
            let end = address + heap.block_bytes(bytes);
            rest.start = end.next_multiple_of(LINE_BYTES).clamp(rest.start, rest.end);
        }
        heap.uncarved.push(rest);
        heap.uncarved.retain(|gap| gap.start + GRAIN_BYTES <= gap.end);
        heap
    }

    /// Returns this allocator, which from now on records the blocks handed out and taken back.
    pub fn recording(self) -> Heap {
        Heap { changes: Some(Vec::new()), ..self }
    }

    /// Returns the blocks handed out (true) and taken back (false) since the last call, in order.
    pub fn changes(&mut self) -> Vec<(u64, bool)> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// One allocator for each core of the site.
    pub fn of_site(site: &Site, alignment: Alignment) -> Vec<Heap> {
        (0..site.cores).map(|core| Heap::new(site.part(CoreId(core)), alignment)).collect()
    }

    /// A block of at least `bytes` bytes.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] when no block is left.
    pub fn alloc(&mut self, bytes: u64) -> Step<Ptr> {
        let block = self.take(bytes)?;
        if let Some(changes) = &mut self.changes {
            changes.push((block.address, true));
        }
        Ok(block)
    }

    fn take(&mut self, bytes: u64) -> Step<Ptr> {
        let block_bytes = self.block_bytes(bytes);
        let index = self.class(block_bytes);
        if let Some(address) = self.classes[index].freed.pop() {
            return Ok(Ptr::to(address));
        }
        if self.classes[index].slab.is_empty() {
            let slab = self.carve(block_bytes).or_else(|| self.take_rest(block_bytes));
            self.classes[index].slab =
                slab.ok_or(Stop::OutOfMemory { asked: block_bytes, free: self.largest_gap() })?;
        }
        let slab = &mut self.classes[index].slab;
        let address = slab.start;
        slab.start += block_bytes;
        Ok(Ptr::to(address))
    }

    /// Gives back a block that was allocated, here or by another core's allocator, as `bytes`.
    pub fn free(&mut self, block: Ptr, bytes: u64) {
        let block_bytes = self.block_bytes(bytes);
        let index = self.class(block_bytes);
        self.classes[index].freed.push(block.address);
        if let Some(changes) = &mut self.changes {
            changes.push((block.address, false));
        }
    }

    /// Returns the bytes of the largest free range from which no slab was carved.
    fn largest_gap(&self) -> u64 {
        self.uncarved.iter().map(|gap| gap.end - gap.start).max().unwrap_or(0)
    }

    fn block_bytes(&self, bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(self.alignment.grain(bytes))
    }

    /// Returns the index of the class of a size, by a search, as a workload has a handful of sizes.
    fn class(&mut self, block_bytes: u64) -> usize {
        let known = self.classes.iter().position(|class| class.block_bytes == block_bytes);
        known.unwrap_or_else(|| {
            self.classes.push(Class { block_bytes, slab: 0..0, freed: Vec::new() });
            self.classes.len() - 1
        })
    }

    /// Carves a new slab of whole blocks, a smaller one at the end of the range; `None` when no
    /// block fits.
    fn carve(&mut self, block_bytes: u64) -> Option<Range<u64>> {
        let room = |gap: &Range<u64>| gap.end.saturating_sub(gap.start) / block_bytes;
        let index = self.uncarved.iter().position(|gap| room(gap) > 0)?;
        let gap = &mut self.uncarved[index];
        let blocks = (SLAB_BYTES / block_bytes).max(1).min(room(gap));
        let slab = gap.start..gap.start + blocks * block_bytes;
        // The next slab begins at a line, whatever the size of these blocks.
        gap.start = slab.end.next_multiple_of(LINE_BYTES).min(gap.end);
        if gap.is_empty() {
            self.uncarved.remove(index);
        }
        Some(slab)
    }

    /// Takes, when nothing is left to carve, the first unused part of another class's slab that
    /// holds a block.
    fn take_rest(&mut self, block_bytes: u64) -> Option<Range<u64>> {
        let grain = if block_bytes.is_multiple_of(LINE_BYTES) { LINE_BYTES } else { GRAIN_BYTES };
        for class in &mut self.classes {
            let start = class.slab.start.next_multiple_of(grain);
            let blocks = class.slab.end.saturating_sub(start) / block_bytes;
            if blocks > 0 {
                class.slab.end = class.slab.start;
                return Some(start..start + blocks * block_bytes);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_begin_where_the_alignment_says() {
        let cases = [
            (Alignment::Auto, 48, 48),
            (Alignment::Auto, 64, 64),
            (Alignment::Auto, 104, 128),
            (Alignment::Packed, 104, 112),
            (Alignment::Packed, 8, 16),
            (Alignment::Line, 8, 64),
            (Alignment::Line, 5000, 5056),
        ];
        for (alignment, bytes, distance) in cases {
            let mut heap = Heap::new(0..1 << 20, alignment);
            let first = heap.alloc(bytes).expect("room").address;
            let second = heap.alloc(bytes).expect("room").address;
            assert_ne!(first, 0);
            assert_eq!(second - first, distance, "{alignment:?}, {bytes} bytes");
            assert_eq!(first % LINE_BYTES, 0);
        }
    }

    #[test]
    fn the_block_freed_last_is_handed_out_first() {
        let mut heap = Heap::new(64..8192, Alignment::Auto);
        let blocks: Vec<Ptr> = (0..3).map(|_| heap.alloc(40).expect("room")).collect();
        for &block in &blocks {
            heap.free(block, 40);
        }
        for &block in blocks.iter().rev() {
            assert_eq!(heap.alloc(40).expect("room"), block);
        }
    }

    #[test]
    fn a_full_heap_says_what_was_asked_and_what_is_left() {
        let mut heap = Heap::new(64..64 + 1024, Alignment::Auto);
        let mut seen = Vec::new();
        let stop = loop {
            match heap.alloc(100) {
                Ok(block) => seen.push(block.address),
                Err(stop) => break stop,
            }
        };
        assert_eq!(seen.len(), 8);
        assert!(matches!(stop, Stop::OutOfMemory { asked: 128, free: 0 }), "{stop:?}");
        heap.free(Ptr::to(seen[3]), 100);
        let stop = heap.alloc(200).expect_err("no room");
        assert!(matches!(stop, Stop::OutOfMemory { asked: 256, free: 0 }), "{stop:?}");
        assert_eq!(heap.alloc(100).expect("room").address, seen[3]);
    }

    #[test]
    fn a_heap_around_what_is_in_use_hands_out_the_rest() {
        let used = [(4096, 48), (64, 64), (4160, 100), (1 << 20, 64)];
        let mut heap = Heap::around(64..8192, Alignment::Auto, &used);
        assert_eq!(heap.uncarved, [128..4096, 4288..8192]);
        let mut blocks = Vec::new();
        while let Ok(block) = heap.alloc(200) {
            blocks.push(block.address);
        }
        assert_eq!(blocks.len(), 15 + 15);
        let overlaps = |&(at, bytes): &(u64, u64)| {
            blocks.iter().any(|&block| block < at + bytes && at < block + 200)
        };
        assert!(!used.iter().any(overlaps), "{blocks:?}");
        assert!(blocks.contains(&128) && blocks.contains(&4288));
    }

    #[test]
    fn a_slab_of_another_class_is_used_before_giving_up() {
        let mut heap = Heap::new(64..64 + 512, Alignment::Auto);
        heap.alloc(48).expect("room");
        let taken: Vec<u64> = (0..3).map(|_| heap.alloc(100).expect("room").address).collect();
        assert_eq!(taken, [128, 256, 384]);
        assert!(matches!(heap.alloc(100), Err(Stop::OutOfMemory { .. })));
    }

    #[test]
    fn blocks_do_not_overlap_and_stay_in_the_range() {
        let mut heap = Heap::new(100..100_000, Alignment::Auto);
        let mut taken = Vec::new();
        for index in 0_u64.. {
            let bytes = [24, 64, 100, 700][(index % 4) as usize];
            match heap.alloc(bytes) {
                Ok(block) => taken.push(block.address..block.address + bytes),
                Err(_) => break,
            }
        }
        taken.sort_by_key(|block| block.start);
        assert!(taken[0].start >= 100);
        assert!(taken.last().expect("blocks").end <= 100_000);
        assert!(taken.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}
