//! The records of the metadata journal, as bytes: 128 bits each (MICRO'19 section 3.3;
//! specs/remapping.md 1.4).
//!
//! ```text
//! update     com[64]                             | PPN0[40] slot[12] TID[12]
//! switch     PPN0[40] PPN1[24, the low ones]     | PPN1[16, the high ones] slot[12] 0[12] FFE TID
//! page       virtual page[64]                    | 0[40] FFD TID
//! commit     checksum[32] position[32]           | count[8] 0[32] FFF TID
//! ```
//!
//! A group is records and a commit record, which holds how many there are, where the first of them
//! lies, counted from the beginning of time, and a checksum of all of that (32 bits, where a
//! controller would have a CRC).

use model::crash::mix;
use model::units::Page;

use crate::ssp::layout::SlotId;

/// A record.
pub type Record = [u64; 2];

/// Words of a record.
pub const RECORD_WORDS: u64 = 2;
/// Records of a line.
pub const LINE_RECORDS: u64 = 4;
/// The most slots that a record can name.
pub const SLOTS_MAX: u16 = 0xffd;

const COMMIT: u64 = 0xfff;
const SWITCH: u64 = 0xffe;
const PAGE: u64 = 0xffd;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A transaction committed lines of a page.
    Update {
        /// The slot.
        slot: SlotId,
        /// The frame that the page table has.
        ppn0: Page,
        /// The committed bitmap from then on.
        com: u64,
    },
    /// A page was consolidated; its number follows.
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
    /// The group ends.
    Commit {
        /// Records before this one.
        count: u64,
        /// The position of the first, its low 32 bits.
        position: u64,
        /// The checksum.
        sum: u64,
    },
}

impl Entry {
    /// As bytes.
    pub fn encode(self, tid: u64) -> Record {
        let tid = tid & 0xfff;
        match self {
            Entry::Update { slot, ppn0, com } => {
                [com, ppn0.0 << 24 | u64::from(slot.0) << 12 | tid]
            }
            Entry::Switch { slot, ppn0, ppn1 } => {
                let low = ppn0.0 << 24 | ppn1.0 & 0xff_ffff;
                [low, ppn1.0 >> 24 << 48 | u64::from(slot.0) << 36 | SWITCH << 12 | tid]
            }
            Entry::Page(page) => [page.0, PAGE << 12 | tid],
            Entry::Commit { count, position, sum } => {
                [sum << 32 | position & 0xffff_ffff, count << 56 | COMMIT << 12 | tid]
            }
        }
    }

    /// From bytes.
    pub fn decode(record: Record) -> Entry {
        let [first, second] = record;
        match second >> 12 & 0xfff {
            COMMIT => Entry::Commit {
                count: second >> 56,
                position: first & 0xffff_ffff,
                sum: first >> 32,
            },
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

/// The commit record of a group that begins at a position.
pub fn commit(records: &[Record], position: u64) -> Entry {
    let count = records.len() as u64;
    Entry::Commit { count, position, sum: checksum(records, position) }
}

/// The checksum of a group.
pub fn checksum(records: &[Record], position: u64) -> u64 {
    let start = mix(records.len() as u64 ^ position.rotate_left(32));
    let words = records.iter().flatten();
    words.fold(start, |sum, &word| mix(sum ^ word)) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (slot, ppn0, ppn1) = (SlotId(SLOTS_MAX - 1), Page((1 << 40) - 2), Page((1 << 40) - 7));
        let records = [Entry::Page(Page(9)).encode(3), Entry::Page(Page(8)).encode(3)];
        for entry in [
            Entry::Update { slot, ppn0, com: u64::MAX },
            Entry::Switch { slot, ppn0, ppn1 },
            Entry::Page(Page(77)),
            commit(&records, 5),
        ] {
            assert_eq!(Entry::decode(entry.encode(0xfff)), entry);
        }
    }
}
