//! The cells that survive: how they are found after a power failure, and recovery.
//!
//! The cells of the last level keep what they hold, and so do those of the tables beside it. The
//! image has them beyond the memory's last address:
//!
//! ```text
//! line 0            lines that are held, slots that are used, any of them (words 0, 1, 7)
//! then              the status table, a bit for each TxID
//! then              a held line: its address, its TxID and age (2 words); and its bytes
//! then              an overflow table entry: line, TxID and age, slot (3 words)
//! ```
//!
//! An *age* is the place of a version among those of its line, the oldest first: it says in which
//! of the structures the newer one is. The overflow area itself lies in the log area of memory.

use std::collections::BTreeMap;

use model::design::{Gasp, Setup, Shape};
use model::image::{Image, PowerLoss};
use model::units::{LINE_BYTES, Line, WORD_BYTES, Word};

use super::{Kiln, KilnParams};
use crate::parts::overflow::{self, Bytes};

/// Bits of a line that is held: its bytes, address, TxID and age.
pub const LINE_BITS: u64 = 8 * (LINE_BYTES + 2 * WORD_BYTES);
/// Bits of an entry of the overflow table.
pub const OVERFLOW_BITS: u64 = 8 * 3 * WORD_BYTES;
/// Bits of the lengths of the tables.
pub const LENGTHS_BITS: u64 = 8 * 3 * WORD_BYTES;

const ANY: u64 = 7 * WORD_BYTES;
const TAGGED: u64 = 1 << 16;
const AGE: u32 = 32;

/// Where the image has the cells.
pub struct Cells {
    base: u64,
    held: u64,
    overflow: u64,
}

impl Cells {
    pub fn new(shape: &Shape, params: &KilnParams) -> Cells {
        let base = shape.capacity + LINE_BYTES;
        let held = base + (params.tx_ids / 8 + 1).next_multiple_of(LINE_BYTES);
        // Whatever the last level and the write-back buffer hold fits before the overflow table.
        let lines = 2 * shape.config.llc.size / LINE_BYTES + (1 << 16);
        Cells { base, held, overflow: held + lines * 2 * LINE_BYTES }
    }

    fn length(&self, index: u64) -> u64 {
        self.base - LINE_BYTES + index * WORD_BYTES
    }

    fn any(&self) -> u64 {
        self.base - LINE_BYTES + ANY
    }

    fn held(&self, index: u64) -> u64 {
        self.held + index * 2 * LINE_BYTES
    }

    fn slot(&self, index: u64) -> u64 {
        self.overflow + index * LINE_BYTES
    }
}

fn tag_word(tag: Option<u16>, age: u64) -> u64 {
    tag.map_or(0, |id| TAGGED | u64::from(id)) | age << AGE
}

/// A version as it is saved.
struct Kept<'a> {
    line: Line,
    tag: Option<u16>,
    stamp: u64,
    bytes: Bytes<'a>,
}

impl Kiln {
    /// Saves what the cells hold.
    pub(super) fn save(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        let held = self.last.held().map(|version| Kept {
            line: version.line,
            tag: version.tag,
            stamp: version.stamp,
            bytes: Bytes::Held(&version.data),
        });
        let slots = self.last.overflow.iter().map(|(number, slot)| Kept {
            line: slot.line,
            tag: slot.about.tag,
            stamp: slot.about.stamp,
            bytes: Bytes::Slot(number),
        });
        let mut kept: Vec<Kept<'_>> = held.chain(slots).collect();
        if kept.is_empty() {
            return Ok(());
        }
        kept.sort_unstable_by_key(|kept| (kept.line, kept.stamp));
        let cells = &self.cells;
        let (mut lengths, mut age, mut before) = ([0, 0], 0, None);
        for Kept { line, tag, bytes, .. } in kept {
            age = if before == Some(line) { age + 1 } else { 0 };
            before = Some(line);
            let words = [line.0, tag_word(tag, age)];
            match bytes {
                Bytes::Held(data) => {
                    let at = cells.held(lengths[0]);
                    gasp.save_words(at, &words)?;
                    gasp.save(at + LINE_BYTES, data)?;
                    lengths[0] += 1;
                }
                Bytes::Slot(number) => {
                    let [line, tag] = words;
                    gasp.save_words(cells.slot(lengths[1]), &[line, tag, u64::from(number)])?;
                    lengths[1] += 1;
                }
            }
        }
        let mut statuses = vec![0; self.params.tx_ids.div_ceil(8) as usize];
        for (id, committed) in self.transactions.statuses().enumerate() {
            statuses[id / 8] |= u8::from(committed) << (id % 8);
        }
        gasp.save(cells.base, &statuses)?;
        gasp.save_words(cells.length(0), &lengths)?;
        gasp.save_words(cells.any(), &[1])
    }
}

/// A version that survived.
struct Found {
    line: Line,
    committed: bool,
    age: u64,
    /// Where its bytes are.
    bytes: Line,
}

/// Makes the image what loads find from now on. In the hardware the committed lines of the last
/// level stay there; the image, which is of memory, gets them.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, Kiln>) -> Result<(), PowerLoss> {
    let Setup { params, rules, shape } = setup;
    let cells = Cells::new(shape, params);
    if image.word(Word::of(cells.any())) == 0 {
        return Ok(());
    }
    let mut versions: BTreeMap<Line, Found> = BTreeMap::new();
    for found in find(image, setup, &cells) {
        if !found.committed && rules.drop_uncommitted {
            continue;
        }
        let line = found.line;
        let is_better = |other: &Found| (found.age > other.age) == rules.newest_committed;
        if versions.get(&line).is_none_or(is_better) {
            versions.insert(line, found);
        }
    }
    for (line, found) in versions {
        let bytes = *image.line(found.bytes);
        image.set_line(line, &bytes, u64::MAX)?;
    }
    // In the hardware nothing is copied and nothing is fenced: the fence is the image's.
    image.fence();
    image.set_word(Word::of(cells.any()), 0)
}

/// The versions that survived, in the last level and then in the overflow area.
fn find(image: &Image<'_>, setup: &Setup<'_, Kiln>, cells: &Cells) -> Vec<Found> {
    let word = |address| image.word(Word::of(address));
    let is_committed = |tag: u64| {
        let id = tag & (TAGGED - 1);
        let byte = cells.base + id / 8;
        tag & TAGGED == 0 || word(byte) >> (8 * (byte % WORD_BYTES) + id % 8) & 1 == 1
    };
    let read = |at: u64, bytes: Line| {
        let tag = word(at + WORD_BYTES);
        Found { line: Line(word(at)), committed: is_committed(tag), age: tag >> AGE, bytes }
    };
    let held = |index| {
        let at = cells.held(index);
        read(at, Line::of(at + LINE_BYTES))
    };
    let slot = |index| {
        let at = cells.slot(index);
        read(at, overflow::place(setup.shape, word(at + 2 * WORD_BYTES) as u32))
    };
    let mut found: Vec<Found> = (0..word(cells.length(0))).map(held).collect();
    if setup.rules.copy_overflow {
        found.extend((0..word(cells.length(1))).map(slot));
    }
    found
}
