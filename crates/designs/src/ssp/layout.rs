//! Where what survives of SSP lies: persistent memory of its own, beside the machine's.
//!
//! ```text
//! page table        for each page of programs' data a word: its frame, exclusive-or its own number
//! extra pages       one for each slot at first; they change places with frames of data
//! SSP cache         for each slot 32 bytes: PPN0, PPN1 exclusive-or its first one, committed bitmap
//! journal           the line of the tail, then the ring
//! ```
//!
//! All of it is right when it holds zeros: every page lies in the frame of its own number.

use model::design::Shape;
use model::image::{Image, PowerLoss};
use model::units::{LINE_BYTES, Line, PAGE_BYTES, Page, WORD_BYTES, Word};

/// Bytes of a slot's entry in the persistent SSP cache: three words, two entries a line.
const ENTRY_BYTES: u64 = 32;

/// A slot of the SSP cache, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId(pub u16);

/// What survives of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The frame that the page table has.
    pub ppn0: Page,
    /// The slot's extra page.
    pub ppn1: Page,
    /// The lines, one bit each, whose committed bytes are in the extra page.
    pub com: u64,
}

/// The places.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Pages of programs' data.
    pub pages: u64,
    /// Slots of the SSP cache.
    pub slots: u16,
    /// Lines of the journal's ring.
    pub ring_lines: u64,
    /// Pages of which programs have every line, so that their frames may be given away.
    whole_pages: u64,
    /// Lines of a bank's row.
    row_lines: u64,
    start: u64,
    table: u64,
}

impl Layout {
    /// The places on a machine.
    pub fn new(shape: &Shape, slots: u16, ring_lines: u64) -> Layout {
        let pages = shape.log_base.div_ceil(PAGE_BYTES);
        let table = shape.capacity.next_multiple_of(PAGE_BYTES);
        Layout {
            pages,
            slots,
            ring_lines,
            whole_pages: shape.log_base / PAGE_BYTES,
            row_lines: shape.config.pm.row / LINE_BYTES,
            start: shape.capacity,
            table,
        }
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.ring(self.ring_lines).address().next_multiple_of(PAGE_BYTES) - self.start
    }

    /// Whether a page's frame may become another page's.
    pub fn is_whole(&self, page: Page) -> bool {
        page.0 < self.whole_pages
    }

    /// A page's entry of the page table.
    pub fn table_entry(&self, page: Page) -> Word {
        Word::of(self.table + page.0 * WORD_BYTES)
    }

    /// The extra page that a slot has at first.
    pub fn first_extra(&self, slot: SlotId) -> Page {
        let extras = (self.table + self.pages * WORD_BYTES).next_multiple_of(PAGE_BYTES);
        Page(extras / PAGE_BYTES + u64::from(slot.0))
    }

    /// The first word of a slot's entry.
    pub fn entry(&self, slot: SlotId) -> Word {
        let entries = self.first_extra(SlotId(self.slots)).address();
        Word::of(entries + u64::from(slot.0) * ENTRY_BYTES)
    }

    /// The word that says where the journal begins.
    pub fn tail(&self) -> Word {
        let end = self.entry(SlotId(self.slots)).address();
        Word::of(end.next_multiple_of(PAGE_BYTES))
    }

    /// A line of the ring. One after the other they lie in different rows, so that the banks
    /// program the groups of several cores at once.
    pub fn ring(&self, index: u64) -> Line {
        let rows = self.ring_lines / self.row_lines;
        let place = match index < rows * self.row_lines {
            true => index % rows * self.row_lines + index / rows,
            false => index,
        };
        Line(self.tail().line().0 + 1 + place)
    }

    /// The slots, in order.
    pub fn all_slots(&self) -> impl Iterator<Item = SlotId> {
        (0..self.slots).map(SlotId)
    }

    /// The slots whose entries may say something else than at first.
    pub fn written_slots(&self, image: &Image<'_>) -> Vec<SlotId> {
        let entries = self.entry(SlotId(0)).address();
        let pages = image.touched_pages(entries..self.entry(SlotId(self.slots)).address());
        let per_page = PAGE_BYTES / ENTRY_BYTES;
        let first = |page: &Page| (page.address() - entries) / ENTRY_BYTES;
        let slots = pages.iter().flat_map(|page| first(page)..first(page) + per_page);
        slots.filter(|&slot| slot < u64::from(self.slots)).map(|slot| SlotId(slot as u16)).collect()
    }

    /// What is so of a slot at first.
    pub fn first_kept(&self, slot: SlotId) -> Kept {
        Kept { ppn1: self.first_extra(slot), ..Kept::default() }
    }

    /// The slot that has an extra page at first, if one has.
    pub fn slot_of_extra(&self, page: Page) -> Option<SlotId> {
        let index = page.0.checked_sub(self.first_extra(SlotId(0)).0)?;
        (index < u64::from(self.slots)).then_some(SlotId(index as u16))
    }

    /// What a slot's entry says.
    pub fn read_entry(&self, slot: SlotId, image: &Image<'_>) -> Kept {
        let first = self.entry(slot).0;
        let [ppn0, extra, com] = [0, 1, 2].map(|word| image.word(Word(first + word)));
        Kept { ppn0: Page(ppn0), ppn1: Page(extra ^ self.first_extra(slot).0), com }
    }

    /// The words of a slot's entry.
    pub fn entry_words(&self, slot: SlotId, kept: &Kept) -> [(Word, u64); 3] {
        let first = self.entry(slot).0;
        let extra = kept.ppn1.0 ^ self.first_extra(slot).0;
        [(Word(first), kept.ppn0.0), (Word(first + 1), extra), (Word(first + 2), kept.com)]
    }

    /// The pages whose frames are not of their own numbers, and those frames.
    pub fn moved_pages(&self, image: &Image<'_>) -> Vec<(Page, Page)> {
        let end = self.table + self.pages * WORD_BYTES;
        let mut moved = Vec::new();
        for table in image.touched_pages(self.table..end) {
            let from = (table.address() - self.table) / WORD_BYTES;
            for page in from..(from + PAGE_BYTES / WORD_BYTES).min(self.pages) {
                match image.word(self.table_entry(Page(page))) {
                    0 => (),
                    entry => moved.push((Page(page), Page(page ^ entry))),
                }
            }
        }
        moved
    }

    /// Makes the page table say that a page lies in a frame.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    pub fn set_frame(
        &self,
        page: Page,
        frame: Page,
        image: &mut Image<'_>,
    ) -> Result<(), PowerLoss> {
        let entry = self.table_entry(page);
        if image.word(entry) == page.0 ^ frame.0 {
            return Ok(());
        }
        image.set_word(entry, page.0 ^ frame.0)
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
        let last = Page(layout.pages - 1);
        assert!(layout.table_entry(Page(0)).address() >= shape.capacity);
        assert!(layout.table_entry(last).address() < layout.first_extra(SlotId(0)).address());
        assert!(!layout.is_whole(last), "the logs begin in it");
        assert_eq!(layout.first_extra(SlotId(9)).address(), layout.entry(SlotId(0)).address());
        assert!(layout.entry(SlotId(8)).0 + 3 <= layout.tail().0);
        let mut ring: Vec<u64> = (0..20).map(|index| layout.ring(index).0).collect();
        ring.sort_unstable();
        ring.dedup();
        assert_eq!((ring.len(), ring[19] - ring[0]), (20, 19));
        assert!(ring[0] > layout.tail().line().0);
        assert!(layout.ring(20).address() - shape.capacity <= layout.bytes());
    }
}
