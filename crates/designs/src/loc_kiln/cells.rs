//! The cells that survive: how they are found after a power failure, and recovery.
//!
//! The cells of the last level keep what they hold, and so do those of the tables beside it. The
//! image has them beyond the memory's last address:
//!
//! ```text
//! line 0            retired TxID, lines that are held, slots, notes, any of them (words 0 to 4)
//! then              a held line: its TxID and TxCnt, its address and age (2 words); and its bytes
//! then              an overflow table entry: the same two words, and its slot
//! then              notes, a word each
//! ```
//!
//! TxIDs and TxCnts are as in LOC's log. A line of a retired transaction has neither. Its *age* is
//! its place among the retired versions of the line, the oldest first. The overflow area itself
//! lies in the log area of memory.

use std::collections::BTreeMap;

use model::design::{Gasp, Setup, Shape};
use model::image::{Image, PowerLoss};
use model::units::{LINE_BYTES, Line, WORD_BYTES, Word};

use super::LocKiln;
use crate::loc::entry::{Entry, Format, Place};
use crate::loc::recovery::Scan;
use crate::parts::overflow::{self, Bytes};

/// Bits of a line that is held: its bytes, TxID, TxCnt, address and age.
pub const LINE_BITS: u64 = 8 * (LINE_BYTES + 2 * WORD_BYTES);
/// Bits of an entry of the overflow table.
pub const OVERFLOW_BITS: u64 = 8 * 3 * WORD_BYTES;
/// Bits of a note.
pub const NOTE_BITS: u64 = 8 * WORD_BYTES;
/// Bits of the register, and of the lengths of the tables.
pub const REGISTER_BITS: u64 = 8 * 5 * WORD_BYTES;

const FORMAT: Format = Format { id_bits: 16 };
const AGE: u32 = 48;

/// Where the image has the cells.
pub struct Cells {
    base: u64,
}

/// Bytes from one table to the next, more than the lines of a last level take.
const PART: u64 = 1 << 36;

impl Cells {
    pub fn new(shape: &Shape) -> Cells {
        Cells { base: shape.capacity }
    }

    fn register(&self, index: u64) -> u64 {
        self.base + index * WORD_BYTES
    }

    fn held(&self, index: u64) -> u64 {
        self.base + LINE_BYTES + index * 2 * LINE_BYTES
    }

    fn slot(&self, index: u64) -> u64 {
        self.base + PART + index * LINE_BYTES
    }

    fn note(&self, index: u64) -> u64 {
        self.base + 2 * PART + index * WORD_BYTES
    }
}

/// A version as it is saved.
struct Kept<'a> {
    line: Line,
    by: Place,
    count: u64,
    bytes: Bytes<'a>,
}

impl LocKiln {
    /// Saves what the cells hold.
    pub(super) fn save(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        let held = self.last.held().map(|held| Kept {
            line: held.line,
            by: held.by,
            count: held.count,
            bytes: Bytes::Held(&held.data),
        });
        let slots = self.last.overflow.iter().filter_map(|(number, slot)| {
            let (by, count) = slot.about.tag?;
            let counts = slot.about.is_there || !self.rules.count_what_is_there;
            counts.then_some(Kept { line: slot.line, by, count, bytes: Bytes::Slot(number) })
        });
        let mut kept: Vec<Kept<'_>> = held.chain(slots).collect();
        if kept.is_empty() && self.notes.is_empty() {
            return Ok(());
        }
        kept.sort_unstable_by_key(|kept| (kept.line, kept.by));
        let retired = self.retired;
        let (mut held, mut slots, mut age, mut before) = (0, 0, 0, None);
        for Kept { line, by, count, bytes } in kept {
            age = if before == Some(line) { age + 1 } else { 0 };
            before = Some(line);
            let entry = Entry::Block { line, by, count };
            let tag = if by < retired { 0 } else { FORMAT.encode(entry, 0) };
            let words = [tag, line.0 | age << AGE];
            match bytes {
                Bytes::Held(data) => {
                    let at = self.cells.held(held);
                    gasp.save_words(at, &words)?;
                    gasp.save(at + LINE_BYTES, data)?;
                    held += 1;
                }
                Bytes::Slot(number) => {
                    let [tag, line] = words;
                    gasp.save_words(self.cells.slot(slots), &[tag, line, u64::from(number)])?;
                    slots += 1;
                }
            }
        }
        for (index, &(_, note)) in (0..).zip(&self.notes) {
            gasp.save_words(self.cells.note(index), &[FORMAT.encode(note, 0)])?;
        }
        let notes = self.notes.len() as u64;
        gasp.save_words(self.cells.register(0), &[retired, held, slots, notes, 1])
    }
}

/// Makes the image what loads find from now on. In the hardware the committed lines of the last
/// level stay there; the image, which is of memory, gets them.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, LocKiln>) -> Result<(), PowerLoss> {
    let cells = Cells::new(setup.shape);
    let word = |address| image.word(Word::of(address));
    let [retired, held, slots, notes, any] =
        [0, 1, 2, 3, 4].map(|index| word(cells.register(index)));
    if any == 0 {
        return Ok(());
    }
    let held = (0..held).map(|index| (cells.held(index), Line::of(cells.held(index) + LINE_BYTES)));
    let slots = (0..slots).map(|index| {
        let at = cells.slot(index);
        (at, overflow::place(setup.shape, word(at + 2 * WORD_BYTES) as u32))
    });
    let mut scan = Scan::default();
    let mut old: BTreeMap<(Line, u64), Line> = BTreeMap::new();
    for (order, (at, bytes)) in (0..).zip(held.chain(slots)) {
        let address = word(at + WORD_BYTES);
        match FORMAT.decode(word(at), None, retired) {
            Some(entry) => scan.add(entry, order, bytes),
            None => _ = old.insert((Line(address & ((1 << AGE) - 1)), address >> AGE), bytes),
        }
    }
    for index in 0..notes {
        if let Some(note) = FORMAT.decode(word(cells.note(index)), None, retired) {
            scan.add(note, 0, Line(0));
        }
    }
    // The versions of retired transactions come first, the oldest first.
    let mut versions: Vec<(Line, Line)> =
        old.into_iter().map(|((line, _), bytes)| (line, bytes)).collect();
    for place in scan.committed(retired, false, &setup.rules.first) {
        let blocks = &scan.of(place).blocks;
        versions.extend(blocks.iter().map(|&(_, line, bytes)| (line, bytes)));
    }
    if !setup.rules.second.newest_committed {
        versions.reverse();
    }
    let newest: BTreeMap<Line, Line> = versions.into_iter().collect();
    for (line, bytes) in newest {
        let bytes = *image.line(bytes);
        image.set_line(line, &bytes, u64::MAX)?;
    }
    // In the hardware nothing is copied and nothing is fenced: the fence is the image's.
    image.fence();
    image.set_word(Word::of(cells.register(4)), 0)
}
