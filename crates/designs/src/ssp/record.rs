//! SSP's records in the metadata journal, as bytes: 128 bits each (MICRO'19 section 3.3;
//! specs/remapping.md 1.4).
//!
//! ```text
//! update     com[64]                             | PPN0[40] slot[12] TID[12]
//! switch     PPN0[40] PPN1[24, the low ones]     | PPN1[16, the high ones] slot[12] 0[12] FFE TID
//! page       virtual page[64]                    | 0[40] FFD TID
//! ```

use model::units::Page;

use crate::parts::journal::Record;
use crate::ssp::layout::{Kept, SlotId};

/// The most slots that a record can name.
pub const SLOTS_MAX: u16 = 0xffd;

const SWITCH: u64 = 0xffe;
const PAGE: u64 = 0xffd;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A transaction committed lines of a page, or the page was consolidated into its own frame.
    Update {
        /// The slot.
        slot: SlotId,
        /// The frame that the page table has.
        ppn0: Page,
        /// The committed bitmap from then on.
        com: u64,
    },
    /// A page was consolidated into what was its extra page; its number follows.
    Switch {
        /// The slot.
        slot: SlotId,
        /// The frame from then on.
        ppn0: Page,
        /// The slot's extra page from then on.
        ppn1: Page,
    },
    /// The page that the record before is about.
    Page(Page),
}

impl Entry {
    /// As bytes.
    pub fn encode(self, tid: u64) -> Record {
        match self {
            Entry::Update { slot, ppn0, com } => {
                [com, ppn0.0 << 24 | u64::from(slot.0) << 12 | tid]
            }
            Entry::Switch { slot, ppn0, ppn1 } => {
                let low = ppn0.0 << 24 | ppn1.0 & 0xff_ffff;
                [low, ppn1.0 >> 24 << 48 | u64::from(slot.0) << 36 | SWITCH << 12 | tid]
            }
            Entry::Page(page) => [page.0, PAGE << 12 | tid],
        }
    }

    /// From bytes.
    pub fn decode(record: Record) -> Entry {
        let [first, second] = record;
        match second >> 12 & 0xfff {
            SWITCH => Entry::Switch {
                slot: SlotId((second >> 36 & 0xfff) as u16),
                ppn0: Page(first >> 24),
                ppn1: Page(second >> 48 << 24 | first & 0xff_ffff),
            },
            PAGE => Entry::Page(Page(first)),
            slot => {
                Entry::Update { slot: SlotId(slot as u16), ppn0: Page(second >> 24), com: first }
            }
        }
    }
}

/// What a record makes of the slots; the slot that it is about.
pub fn apply(entry: Entry, has_both_pages: bool, kept: &mut [Kept]) -> Option<SlotId> {
    let (slot, now) = match entry {
        Entry::Update { slot, ppn0, com } => {
            (slot, Kept { ppn0, com, ..*kept.get(usize::from(slot.0))? })
        }
        Entry::Switch { slot, ppn0, ppn1 } => {
            let before = kept.get(usize::from(slot.0))?;
            let derived = if before.ppn0 == ppn0 { before.ppn1 } else { before.ppn0 };
            (slot, Kept { ppn0, ppn1: if has_both_pages { ppn1 } else { derived }, com: 0 })
        }
        Entry::Page(_) => return None,
    };
    kept[usize::from(slot.0)] = now;
    Some(slot)
}

/// The pages whose frames a group says, and the frames.
pub fn frames_of(entries: &[Entry]) -> impl Iterator<Item = (Page, Page)> {
    entries.windows(2).filter_map(|pair| match *pair {
        [Entry::Switch { ppn0, .. }, Entry::Page(page)] => Some((page, ppn0)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (slot, ppn0, ppn1) = (SlotId(SLOTS_MAX - 1), Page((1 << 40) - 2), Page((1 << 40) - 7));
        for entry in [
            Entry::Update { slot, ppn0, com: u64::MAX },
            Entry::Switch { slot, ppn0, ppn1 },
            Entry::Page(Page(77)),
        ] {
            assert_eq!(Entry::decode(entry.encode(0xfff)), entry);
        }
    }
}
