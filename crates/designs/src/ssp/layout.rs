//! Where SSP's persistent data lie: in persistent memory of its own, beside the machine's.
//!
//! ```text
//! page table        for each page of programs' data a word: its frame, exclusive-or its own number
//! extra pages       one for each slot at first; they change places with frames of data
//! SSP cache         for each slot 32 bytes: PPN0, PPN1 exclusive-or its first one, committed bitmap
//! journal           the line of the tail, then the ring
//! ```
//!
//! All of the data are right when they hold zeros: every page lies in the frame of its own number.

use model::design::Shape;
use model::image::{Image, word_of};
use model::units::{PAGE_BYTES, Page, Word};

use crate::parts::journal::Ring;
use crate::parts::page_table::PageTable;

/// Bytes of a slot's entry in the persistent SSP cache: three words, two entries a line.
const ENTRY_BYTES: u64 = 32;

/// A slot of the SSP cache, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotId(pub u32);

/// The part of a slot that survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The frame that the page table has.
    pub ppn0: Page,
    /// The slot's extra page.
    pub ppn1: Page,
    /// The lines, one bit each, whose committed bytes are in the extra page.
    pub com: u64,
}

/// The places of SSP's data.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The page table.
    pub table: PageTable,
    /// Slots of the SSP cache.
    pub slots: u32,
    /// The journal.
    pub ring: Ring,
    start: u64,
}

impl Layout {
    /// The places on a machine.
    pub fn new(shape: &Shape, slots: u32, ring_lines: u64) -> Layout {
        let table = PageTable::new(shape);
        let entries = table.end().0 + u64::from(slots);
        let journal = entries + (u64::from(slots) * ENTRY_BYTES).div_ceil(PAGE_BYTES);
        let ring = Ring::new(Page(journal), ring_lines, shape);
        Layout { table, slots, ring, start: shape.capacity }
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.ring.end() - self.start
    }

    /// The extra page that a slot has at first.
    pub fn first_extra(&self, slot: SlotId) -> Page {
        Page(self.table.end().0 + u64::from(slot.0))
    }

    /// The first word of a slot's entry.
    pub fn entry(&self, slot: SlotId) -> Word {
        let entries = self.first_extra(SlotId(self.slots)).address();
        Word::of(entries + u64::from(slot.0) * ENTRY_BYTES)
    }

    /// The slots, in order.
    pub fn all_slots(&self) -> impl Iterator<Item = SlotId> {
        (0..self.slots).map(SlotId)
    }

    /// The slots whose entries may differ from those of a new machine.
    pub fn written_slots(&self, image: &Image<'_>) -> Vec<SlotId> {
        let entries = self.entry(SlotId(0)).address();
        let pages = image.touched_pages(entries..self.entry(SlotId(self.slots)).address());
        let per_page = PAGE_BYTES / ENTRY_BYTES;
        let first = |page: &Page| (page.address() - entries) / ENTRY_BYTES;
        let slots = pages.iter().flat_map(|page| first(page)..first(page) + per_page);
        slots.filter(|&slot| slot < u64::from(self.slots)).map(|slot| SlotId(slot as u32)).collect()
    }

    /// What is kept of a slot at first.
    pub fn first_kept(&self, slot: SlotId) -> Kept {
        Kept { ppn1: self.first_extra(slot), ..Kept::default() }
    }

    /// The slot that has an extra page at first, if one has.
    pub fn slot_of_extra(&self, page: Page) -> Option<SlotId> {
        let index = page.0.checked_sub(self.first_extra(SlotId(0)).0)?;
        (index < u64::from(self.slots)).then_some(SlotId(index as u32))
    }

    /// What a slot's entry says in an image.
    pub fn read_entry(&self, slot: SlotId, image: &Image<'_>) -> Kept {
        let first = self.entry(slot);
        let line = image.line(first.line());
        let [ppn0, extra, com] = [0, 1, 2].map(|word| word_of(line, Word(first.0 + word)));
        Kept { ppn0: Page(ppn0), ppn1: Page(extra ^ self.first_extra(slot).0), com }
    }

    /// The words of a slot's entry.
    pub fn entry_words(&self, slot: SlotId, kept: &Kept) -> [(Word, u64); 3] {
        let first = self.entry(slot).0;
        let extra = kept.ppn1.0 ^ self.first_extra(slot).0;
        [(Word(first), kept.ppn0.0), (Word(first + 1), extra), (Word(first + 2), kept.com)]
    }
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    #[test]
    fn nothing_overlaps() {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (8 << 20, 5000);
        let shape = Shape::new(&config, 3);
        let layout = Layout::new(&shape, 9, 20);
        assert!(layout.table.entry(Page(0)).address() >= shape.capacity);
        let last = layout.table.entry(Page(layout.table.pages - 1));
        assert!(last.address() < layout.first_extra(SlotId(0)).address());
        assert_eq!(layout.first_extra(SlotId(9)).address(), layout.entry(SlotId(0)).address());
        assert!(layout.entry(SlotId(8)).0 + 3 <= layout.ring.tail().0);
        assert_eq!(layout.ring.end() - shape.capacity, layout.bytes());
    }
}
