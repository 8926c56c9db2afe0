//! SSP's records in the metadata journal, as bytes: 128 bits each (MICRO'19 section 3.3; their
//! widths, and all but update records, are ours).
//!
//! ```text
//! update     com[64]                         | PPN0[34] slot[18] TID[12]
//! switch     PPN0[34] PPN1[30, the low ones] | PPN1[4, the high ones] slot[18] 0[12] SWITCH[18] TID
//! page       virtual page[64]                | 0[34] PAGE[18] TID
//! ```
//!
//! Where groups have counts, the bits of the TID belong to the line (parts/journal/form.rs).
//!
//! The paper says 128 bits and no more. From its 4,096 slots one could infer 12 bits of a slot's
//! number and 40 of a frame's; with so few slots, the TLBs of a machine with more than a few cores
//! hold more pages than there are slots. 34 bits of a frame's number are 64 TiB.

use model::units::Page;

use crate::parts::journal::{KIND_BITS, Record, TID_BITS, kind};
use crate::ssp::layout::{Kept, SlotId};

/// The most slots that a record can name.
pub const SLOTS_MAX: u32 = PAGE as u32;

const SWITCH: u64 = (1 << KIND_BITS) - 2;
const PAGE: u64 = (1 << KIND_BITS) - 3;
/// Where a frame's number begins in the second word of an update, and its bits.
const FRAME: u32 = TID_BITS + KIND_BITS;
const FRAME_BITS: u32 = u64::BITS - FRAME;
/// Bits of the second frame's number that the first word of a switch has room for.
const LOW: u32 = u64::BITS - FRAME_BITS;
/// Where a slot's number is in a switch: below the rest of the second frame's number.
const SLOT: u32 = u64::BITS - (FRAME_BITS - LOW) - KIND_BITS;

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
    /// A page was consolidated into what was its extra page; the page's own record follows.
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
    /// The record that holds this entry.
    pub fn encode(self, tid: u64) -> Record {
        match self {
            Entry::Update { slot, ppn0, com } => {
                [com, ppn0.0 << FRAME | u64::from(slot.0) << TID_BITS | tid]
            }
            Entry::Switch { slot, ppn0, ppn1 } => {
                let low = ppn0.0 << LOW | ppn1.0 & ((1 << LOW) - 1);
                let high = ppn1.0 >> LOW << (SLOT + KIND_BITS) | u64::from(slot.0) << SLOT;
                [low, high | SWITCH << TID_BITS | tid]
            }
            Entry::Page(page) => [page.0, PAGE << TID_BITS | tid],
        }
    }

    /// The entry that a record holds.
    pub fn decode(record: Record) -> Entry {
        let [first, second] = record;
        match kind(&record) {
            SWITCH => Entry::Switch {
                slot: SlotId((second >> SLOT) as u32 & ((1 << KIND_BITS) - 1)),
                ppn0: Page(first >> LOW),
                ppn1: Page(second >> (SLOT + KIND_BITS) << LOW | first & ((1 << LOW) - 1)),
            },
            PAGE => Entry::Page(Page(first)),
            slot => {
                Entry::Update { slot: SlotId(slot as u32), ppn0: Page(second >> FRAME), com: first }
            }
        }
    }
}

/// Applies a record to the slots. Returns the slot that it is about.
pub fn apply(entry: Entry, has_both_pages: bool, kept: &mut [Kept]) -> Option<SlotId> {
    let (slot, now) = match entry {
        Entry::Update { slot, ppn0, com } => {
            (slot, Kept { ppn0, com, ..*kept.get(slot.0 as usize)? })
        }
        Entry::Switch { slot, ppn0, ppn1 } => {
            let before = kept.get(slot.0 as usize)?;
            let derived = if before.ppn0 == ppn0 { before.ppn1 } else { before.ppn0 };
            (slot, Kept { ppn0, ppn1: if has_both_pages { ppn1 } else { derived }, com: 0 })
        }
        Entry::Page(_) => return None,
    };
    kept[slot.0 as usize] = now;
    Some(slot)
}

/// The pages to which a group gives frames, each with its frame.
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
        let (slot, ppn0, ppn1) = (SlotId(SLOTS_MAX - 1), Page((1 << 34) - 2), Page((1 << 34) - 7));
        for entry in [
            Entry::Update { slot, ppn0, com: u64::MAX },
            Entry::Switch { slot, ppn0, ppn1 },
            Entry::Page(Page(77)),
        ] {
            assert_eq!(Entry::decode(entry.encode(0xfff)), entry);
        }
    }
}
