//! The metadata of an allocator in persistent memory: a bitmap over each core's part of the heap,
//! in which the first grain of every block that is in use is marked.
//!
//! ```text
//! part   | bitmap, a bit for every 16 bytes of the part |  blocks, as in heap.rs  |
//! ```
//!
//! The search for a free block is volatile (heap.rs), as real allocators have an index over their
//! bitmaps. A transaction itself marks the blocks that it takes and gives back, by a store to the
//! block's word of the bitmap: blocks and marks then change together or not at all, and no block is
//! lost (as Mnemosyne and PMDK do).

use std::ops::Range;

use model::image::Image;
use model::params::{Choice as _, Params};
use model::units::{CoreId, LINE_BYTES, Line, WORD_BYTES, bits};
use model::workload::{Pm, Ptr, Site};

use crate::choices::AllocMeta;
use crate::heap::{Alignment, GRAIN_BYTES, Heap};

/// Instructions of a mark: the place in the bitmap, and the bit. Ours.
const MARK_WORK: u64 = 4;
const BITS: u64 = u64::BITS as u64;

/// The bitmaps of all cores.
#[derive(Clone, Debug)]
pub struct Marks(Vec<Part>);

/// A core's part of the heap.
#[derive(Clone, Debug)]
struct Part {
    /// The address of the bitmap, which is also that of the first grain for which it has a bit.
    start: u64,
    blocks: Range<u64>,
}

impl Part {
    fn new(part: &Range<u64>) -> Part {
        let start = part.start.max(LINE_BYTES).next_multiple_of(LINE_BYTES);
        let bytes = part.end.saturating_sub(start).div_ceil(8 * GRAIN_BYTES);
        let first = start + bytes.next_multiple_of(LINE_BYTES);
        Part { start, blocks: first..part.end.max(first) }
    }

    /// The word of the bitmap that has a block's bit, and the bit.
    fn place(&self, block: u64) -> (u64, u64) {
        let grain = (block - self.start) / GRAIN_BYTES;
        (self.start + grain / BITS * WORD_BYTES, 1 << (grain % BITS))
    }
}

impl Marks {
    /// Returns bitmaps without any mark.
    pub fn new(site: &Site) -> Marks {
        Marks((0..site.cores).map(|core| Part::new(&site.part(CoreId(core)))).collect())
    }

    /// Returns the allocators of all cores, and their bitmaps if the parameter `alloc_meta` asks
    /// for logged metadata.
    pub fn asked(params: &impl Params, site: &Site) -> (Option<Marks>, Vec<Heap>) {
        let alignment = Alignment::of(params.get("alignment"));
        if AllocMeta::of(params.get("alloc_meta")) == AllocMeta::Volatile {
            return (None, Heap::of_site(site, alignment));
        }
        let marks = Marks::new(site);
        let heaps = marks.heaps(alignment, &[]);
        (Some(marks), heaps)
    }

    /// Returns the allocators of all cores, behind their bitmaps and around the blocks in use.
    pub fn heaps(&self, alignment: Alignment, reached: &[(u64, u64)]) -> Vec<Heap> {
        let around = |part: &Part| Heap::around(part.blocks.clone(), alignment, reached);
        self.0.iter().map(|part| around(part).recording()).collect()
    }

    /// Checks that the marked blocks are those that the roots reach.
    ///
    /// # Errors
    /// A sentence that says which block is lost, or used though it is free.
    pub fn check(&self, image: &Image<'_>, reached: &[(u64, u64)]) -> Result<(), String> {
        // A large block may have been visited in parts; the first part begins where the block does.
        let blocks = reached.iter().map(|&(block, _)| block);
        let mut reached: Vec<u64> =
            blocks.filter(|block| block.is_multiple_of(GRAIN_BYTES)).collect();
        reached.sort_unstable();
        let marked: Vec<u64> = self.0.iter().flat_map(|part| part.marked(image)).collect();
        let lost = marked.iter().find(|block| reached.binary_search(block).is_err());
        if let Some(block) = lost {
            return Err(format!("the block at {block:#x} is marked as in use, and nothing has it"));
        }
        let free = reached.iter().find(|block| marked.binary_search(block).is_err());
        free.map_or(Ok(()), |block| Err(format!("the block at {block:#x} is used and not marked")))
    }
}

/// Marks the blocks that an allocator has handed out and taken back since the last call, if its
/// metadata are persistent.
pub fn publish(marks: Option<&Marks>, heap: &mut Heap, pm: &mut Pm<'_>) {
    let Some(Marks(parts)) = marks else { return };
    for (block, in_use) in heap.changes() {
        // A core that frees a block keeps it, even if the block is of another core's part.
        let part = parts.iter().find(|part| part.blocks.contains(&block));
        let (word, bit) = part.expect("an allocator has blocks of the heap").place(block);
        pm.work(MARK_WORK);
        let marked = pm.load(Ptr::to(word));
        pm.store(Ptr::to(word), if in_use { marked | bit } else { marked & !bit });
    }
}

impl Part {
    /// The blocks that are marked, in order.
    fn marked(&self, image: &Image<'_>) -> Vec<u64> {
        let mut marked = Vec::new();
        for line in (self.start..self.blocks.start).step_by(LINE_BYTES as usize).map(Line::of) {
            for (index, bytes) in (0..).zip(image.line(line).chunks_exact(8)) {
                let mask = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
                let word = line.address() - self.start + index * WORD_BYTES;
                let grains = bits(mask).map(|bit| word * 8 + bit);
                marked.extend(grains.map(|grain| self.start + grain * GRAIN_BYTES));
            }
        }
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::contents::Contents;

    #[test]
    fn a_bitmap_has_a_bit_for_every_block_of_its_part() {
        let part = Part::new(&(100..64 * 1024));
        assert_eq!((part.start, part.blocks.start % LINE_BYTES), (128, 0));
        assert_eq!(part.place(128), (128, 1));
        let (word, bit) = part.place(part.blocks.end - GRAIN_BYTES);
        assert!(word + WORD_BYTES <= part.blocks.start && bit > 0);
        let (word, bit) = part.place(part.blocks.start + 64 * GRAIN_BYTES);
        assert_eq!(
            (word, bit),
            (part.place(part.blocks.start).0 + 8, part.place(part.blocks.start).1)
        );
        assert!(Part::new(&(0..0)).blocks.is_empty());
    }

    #[test]
    fn a_block_that_is_lost_or_used_twice_is_told() {
        let site =
            Site { cores: 2, seed: 1, heap: 0..1 << 16, items: 1, script: None, checker: None };
        let marks = Marks::new(&site);
        let durable = Contents::new(0, 1 << 16).expect("room");
        let mut image = Image::over(&durable);
        let blocks = [0, 1].map(|core: usize| marks.0[core].blocks.start + 48);
        for (part, block) in marks.0.iter().zip(&blocks) {
            let (word, bit) = part.place(*block);
            image.set_word(model::units::Word::of(word), bit).expect("power");
        }
        let reached = blocks.map(|block| (block, 48));
        assert_eq!(marks.check(&image, &reached), Ok(()));
        let lost = marks.check(&image, &reached[..1]).expect_err("the second is lost");
        assert!(lost.contains("nothing has it"), "{lost}");
        let free = [reached[0], reached[1], (reached[1].0 + 48, 48)];
        let free = marks.check(&image, &free).expect_err("a third is free");
        assert!(free.contains("not marked"), "{free}");
    }
}
