//! What the log holds, and its replay.
//!
//! ```text
//! marks    mark 0: complete, where the records of the last complete transaction end
//!          mark 1: commit, where those of the last committed one end
//! ring     records: a header, which is line, kind and words (or core); a redo record's words follow
//! ```
//!
//! A transaction's records begin where those of the one before end. So it is to be replayed if
//! commit is beyond complete, and all of its records are durable then: they need no checksum.

use model::contents::View;
use model::design::Setup;
use model::image::{Image, PowerLoss, put_word};
use model::units::{CoreId, LINE_BYTES, LINE_WORDS, Line, LineData, Word};

use super::{COMMIT, COMPLETE, RedoLog};
use crate::parts::area::Area;

/// A record, without the words that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// New words of a line.
    Redo(Line, u8),
    /// A line has left the first level: whoever writes back looks for it in the last one.
    Overflow(Line),
    /// The transaction comes after another core's, whose records end there.
    After(CoreId, u64),
}

const KIND_SHIFT: u32 = 8;
const NUMBER_SHIFT: u32 = 10;

impl Record {
    fn header(self) -> u64 {
        let (number, kind, low) = match self {
            Record::Redo(line, words) => (line.0, 1, words),
            Record::Overflow(line) => (line.0, 2, 0),
            Record::After(core, end) => (end, 3, core.0),
        };
        number << NUMBER_SHIFT | kind << KIND_SHIFT | u64::from(low)
    }

    fn from_header(header: u64) -> Option<Record> {
        let (number, low) = (header >> NUMBER_SHIFT, header as u8);
        match header >> KIND_SHIFT & 3 {
            1 => Some(Record::Redo(Line(number), low)),
            2 => Some(Record::Overflow(Line(number))),
            3 => Some(Record::After(CoreId(low), number)),
            _ => None,
        }
    }

    /// Its words: the header, and of a redo record the new words, as coherent cores see them.
    pub fn write(self, view: &View, words: &mut Vec<u64>) {
        words.push(self.header());
        if let Record::Redo(line, mask) = self {
            let place = |place: &u64| mask >> place & 1 == 1;
            let word = |place| view.word(Word(line.first_word().0 + place));
            words.extend((0..LINE_WORDS).filter(place).map(word));
        }
    }
}

/// A transaction that committed and is not complete.
struct Pending {
    area: Area,
    end: u64,
    after: Vec<(CoreId, u64)>,
    redo: Vec<(Line, LineData, u64)>,
}

impl Pending {
    fn read(image: &Image<'_>, core: CoreId, setup: &Setup<'_, RedoLog>) -> Option<Pending> {
        let area = Area::new(setup.shape, core);
        let end = image.word(area.mark(COMMIT));
        let mut at = image.word(area.mark(COMPLETE));
        if end <= at {
            return None;
        }
        let (mut after, mut redo) = (Vec::new(), Vec::new());
        while at < end {
            let record = Record::from_header(image.word(area.word(at)));
            at += 1;
            match record {
                Some(Record::Redo(line, words)) if line.address() < setup.shape.log_base => {
                    let (mut data, mut mask) = ([0; LINE_BYTES as usize], 0);
                    for place in (0..LINE_WORDS).filter(|place| words >> place & 1 == 1) {
                        let word = Word(line.first_word().0 + place);
                        put_word(&mut data, word, image.word(area.word(at)));
                        mask |= word.mask();
                        at += 1;
                    }
                    redo.push((line, data, mask));
                }
                Some(Record::After(core, end)) => after.push((core, end)),
                Some(Record::Redo(..) | Record::Overflow(_)) => (),
                // Only in a log that was committed before it was there.
                None => break,
            }
        }
        if !setup.rules.replay_oldest_first {
            redo.reverse();
        }
        Some(Pending { area, end, after, redo })
    }
}

/// Replays what committed and is not complete: what comes after others after them. Each is
/// complete before the next is, so that after another power failure something old is replayed over
/// something new only if that is replayed again, too.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, RedoLog>) -> Result<(), PowerLoss> {
    let cores = || (0..setup.shape.cores).map(CoreId);
    let mut pending: Vec<(CoreId, Pending)> =
        cores().filter_map(|core| Some((core, Pending::read(image, core, setup)?))).collect();
    while !pending.is_empty() {
        let waits = |after: &[(CoreId, u64)]| {
            let is_pending = |&(core, end): &(CoreId, u64)| {
                pending.iter().any(|(other, pending)| *other == core && pending.end == end)
            };
            after.iter().any(is_pending)
        };
        let next = pending.iter().position(|(_, next)| !waits(&next.after)).unwrap_or(0);
        let (_, next) = pending.remove(next);
        for (line, data, mask) in &next.redo {
            image.set_line(*line, data, *mask)?;
        }
        if setup.rules.fence_before_log_is_dropped {
            image.fence();
        }
        image.set_word(next.area.mark(COMPLETE), next.end)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_it_was_made_of() {
        for record in [
            Record::Redo(Line(1 << 38), 0x81),
            Record::Overflow(Line(7)),
            Record::After(CoreId(3), 1 << 40),
        ] {
            assert_eq!(Record::from_header(record.header()), Some(record));
        }
        assert_eq!(Record::from_header(0), None, "memory that was never written");
    }
}
