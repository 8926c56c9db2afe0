//! Where the persistent data of shadow paging lie, beside the machine's memory: the page table, the
//! frames for shadows, which change places with those of data, and the journal. Also the journal's
//! records.
//!
//! ```text
//! map        virtual page[64]                    | frame[34] MAP[18] TID[12]
//! ```

use model::design::Shape;
use model::units::Page;

use crate::parts::journal::{KIND_BITS, Record, Ring, TID_BITS, kind};
use crate::parts::page_table::PageTable;

/// The kind of a record.
const MAP: u64 = 1;
/// Where a frame's number begins in the second word.
const FRAME: u32 = TID_BITS + KIND_BITS;

/// The places of these data.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The page table.
    pub table: PageTable,
    /// The journal.
    pub ring: Ring,
    shadow_frames: u64,
    start: u64,
}

impl Layout {
    /// The places on a machine.
    pub fn new(shape: &Shape, shadow_frames: u64, ring_lines: u64) -> Layout {
        let table = PageTable::new(shape);
        let ring = Ring::new(Page(table.end().0 + shadow_frames), ring_lines, shape);
        Layout { table, ring, shadow_frames, start: shape.capacity }
    }

    /// Bytes of all of it.
    pub fn bytes(&self) -> u64 {
        self.ring.end() - self.start
    }

    /// The frames for shadows.
    pub fn shadow_frames(&self) -> impl Iterator<Item = Page> + use<> {
        let first = self.table.end().0;
        (first..first + self.shadow_frames).map(Page)
    }

    /// Whether a page may lie in a frame.
    pub fn is_frame(&self, frame: Page) -> bool {
        let first = self.table.end().0;
        self.table.is_whole(frame) || (first..first + self.shadow_frames).contains(&frame.0)
    }

    /// The page that a record gives a frame to, and the frame, if it is such a record.
    pub fn decode(&self, record: Record) -> Option<(Page, Page)> {
        let (page, frame) = (Page(record[0]), Page(record[1] >> FRAME));
        let is_map = kind(&record) == MAP && page.0 < self.table.pages;
        is_map.then_some((page, frame))
    }
}

/// The record that says which frame a page lies in.
pub fn encode(page: Page, frame: Page, tid: u64) -> Record {
    [page.0, frame.0 << FRAME | MAP << TID_BITS | tid]
}

#[cfg(test)]
mod tests {
    use model::config::Config;

    use super::*;

    #[test]
    fn nothing_overlaps_and_what_is_written_is_read() {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (8 << 20, 5000);
        let shape = Shape::new(&config, 3);
        let layout = Layout::new(&shape, 9, 20);
        let frames: Vec<Page> = layout.shadow_frames().collect();
        assert_eq!((frames[0], frames.len()), (layout.table.end(), 9));
        assert!(frames[8].address() < layout.ring.tail().address());
        assert_eq!(layout.ring.end() - shape.capacity, layout.bytes());
        assert!(layout.is_frame(frames[8]) && layout.is_frame(Page(0)));
        assert!(!layout.is_frame(Page(frames[8].0 + 1)));
        assert!(!layout.is_frame(Page(layout.table.pages - 1)), "logs begin in it");
        assert_eq!(layout.decode(encode(Page(7), frames[3], 0xfff)), Some((Page(7), frames[3])));
        assert_eq!(layout.decode([7, 0]), None);
    }
}
