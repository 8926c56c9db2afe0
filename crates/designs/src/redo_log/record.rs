//! What the log holds, and its replay.
//!
//! ```text
//! marks    mark 0: complete, where the records of the last complete transaction end
//!          mark 1: commit, where those of the last committed one begin and end
//!          mark 2: their checksum, if the commit record counts them
//! ring     records: a header, which is line, kind and words (or core); a redo record's words follow
//! ```
//!
//! A transaction is to be replayed if the commit mark is beyond the complete mark. If the commit
//! record waits for its records, all of them are durable then, and need no checksum. They begin
//! where those of the transaction before end, but the complete mark may be older than that: a
//! commit record is sent behind the complete record before it, and one word of the line with both
//! marks may be there without the other. So the commit mark has both places, in one word.
//!
//! A commit record that counts its records may be there before they are, or one of its two words
//! without the other. The checksum is of all words between the two places, and of the commit mark.
//! Words of an earlier lap, and a checksum of an earlier transaction, do not fit it. If it is
//! wrong, the transaction was not acknowledged, and nothing is lost with the one before, the
//! lines of which were in their places when this one began. Recovery then drops the transaction:
//! its records count as those of a complete one, so that what a later life puts there is not taken
//! for them. The checksum may also be there without the commit mark, beside all of its records. A
//! machine that is switched on again clears it, or the records would fit the commit mark of a later
//! life, which may have the same two places.

use model::contents::View;
use model::design::Setup;
use model::image::{Image, PowerLoss, put_word};
use model::units::{CoreId, LINE_BYTES, LINE_WORDS, Line, LineData, Word, bits, mix, mix_all};

use super::{CHECKSUM, COMMIT, COMPLETE, CommitRecord, RedoLog};
use crate::parts::area::Area;

/// A record, without the words that follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// New words of a line.
    Redo(Line, u8),
    /// A line has left the first level: a write-back looks for it in the last one.
    Overflow(Line),
    /// The transaction comes after another core's transaction, whose records end there.
    After(CoreId, u64),
}

/// Bits of a commit mark that say how many words the records have; the other bits say where they
/// end. The longest log that a machine takes, of 1 GiB, has fewer words than they can count.
const LENGTH_BITS: u32 = 28;

/// The commit mark of a transaction whose records lie between two places.
pub fn commit(first: u64, end: u64) -> u64 {
    assert!(end - first < 1 << LENGTH_BITS && end < 1 << (64 - LENGTH_BITS));
    end << LENGTH_BITS | (end - first)
}

/// The checksum mark of a transaction, from its commit mark and the sum of its records' words.
pub fn checksum(commit: u64, records: u64) -> u64 {
    mix(commit ^ records)
}

/// The places between which the records of a commit mark lie.
fn committed(mark: u64) -> (u64, u64) {
    let end = mark >> LENGTH_BITS;
    (end - mark % (1 << LENGTH_BITS), end)
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

    /// Adds the record's words: the header, and for a redo record the new words, as coherent cores
    /// see them.
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
        let (mut at, end) = committed(image.word(area.mark(COMMIT)));
        if end <= image.word(area.mark(COMPLETE)) {
            return None;
        }
        let (mut after, mut redo) = (Vec::new(), Vec::new());
        while at < end {
            let record = Record::from_header(image.word(area.word(at)));
            at += 1;
            match record {
                Some(Record::Redo(line, words)) if line.address() < setup.shape.log_base => {
                    let (mut data, mut mask) = ([0; LINE_BYTES as usize], 0);
                    for place in bits(words.into()) {
                        let word = Word(line.first_word().0 + place);
                        put_word(&mut data, word, image.word(area.word(at)));
                        mask |= word.mask();
                        at += 1;
                    }
                    redo.push((line, data, mask));
                }
                Some(Record::After(core, end)) => after.push((core, end)),
                Some(Record::Redo(..) | Record::Overflow(_)) => (),
                // This happens only in a log that was committed before it was there.
                None => break,
            }
        }
        if !setup.rules.replay_oldest_first {
            redo.reverse();
        }
        Some(Pending { area, end, after, redo })
    }
}

/// Drops the transaction of a core's commit mark if not all of its records are there.
fn drop_incomplete(image: &mut Image<'_>, area: &Area) -> Result<(), PowerLoss> {
    let mark = image.word(area.mark(COMMIT));
    let (first, end) = committed(mark);
    if end <= image.word(area.mark(COMPLETE)) {
        return Ok(());
    }
    let words: Vec<u64> = (first..end).map(|at| image.word(area.word(at))).collect();
    if checksum(mark, mix_all(0, &words)) == image.word(area.mark(CHECKSUM)) {
        return Ok(());
    }
    image.set_word(area.mark(COMPLETE), end)
}

/// Replays the transactions that committed and are not complete, each after those that it comes
/// after. Each is complete before the next one is, so that after another power failure something
/// old is replayed over something new only if the new is replayed again, too.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, RedoLog>) -> Result<(), PowerLoss> {
    let cores = || (0..setup.shape.cores).map(CoreId);
    if setup.params.commit == CommitRecord::Counts && setup.rules.verify_records {
        for core in cores() {
            drop_incomplete(image, &Area::new(setup.shape, core))?;
        }
    }
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
    use model::config::Config;
    use model::contents::Contents;
    use model::design::{Design, Shape};

    use super::*;
    use crate::redo_log::{RedoLogParams, RedoLogRules};

    /// Core 0's transaction comes after one of core 1, which has completed it and has committed
    /// another one. The line with core 1's marks has the new commit mark without the complete mark.
    #[test]
    fn a_complete_transaction_is_not_replayed_though_its_complete_record_is_not_there() {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (1 << 20, 1 << 12);
        let (shape, params) = (Shape::new(&config, 2), RedoLogParams::default());
        let setup = Setup { shape: &shape, params: &params, rules: &RedoLogRules::default() };
        let [ours, theirs] = [0, 1].map(|core| Area::new(&shape, CoreId(core)));
        let redo = |line, value| vec![Record::Redo(Line(line), 1).header(), value];
        let mut memory = Contents::new(0, config.pm.capacity).expect("room");
        let mut put = |area: &Area, at: u64, words: &[u64]| {
            for (at, &word) in (at..).zip(words) {
                memory.set_word(area.word(at), word);
            }
            at + words.len() as u64
        };
        let complete = put(&theirs, 0, &redo(1, 5));
        let end = put(&theirs, complete, &redo(2, 7));
        let after = put(&ours, 0, &[Record::After(CoreId(1), complete).header()]);
        let own = put(&ours, after, &redo(1, 6));
        memory.set_word(ours.mark(COMMIT), commit(0, own));
        memory.set_word(theirs.mark(COMMIT), commit(complete, end));
        let mut image = Image::over(&memory);
        recover(&mut image, &setup).expect("power");
        let words = [1, 2].map(|line| image.word(Line(line).first_word()));
        assert_eq!(words, [6, 7]);
        assert_eq!(image.word(theirs.mark(COMPLETE)), end);
        recover(&mut image, &setup).expect("power");
        assert_eq!(image.word(ours.mark(COMPLETE)), own);
    }

    /// A small log of one core whose commit records count their records.
    fn counting() -> (Shape, RedoLogParams) {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (1 << 20, 1 << 12);
        let params = RedoLogParams { commit: CommitRecord::Counts, ..RedoLogParams::default() };
        (Shape::new(&config, 1), params)
    }

    /// What recovery leaves of the line that a transaction stored 7 to, whose commit record counts
    /// its records, once `change` has changed a word of the log at a place or mark.
    fn counted(change: Option<(Word, u64)>, setup: &Setup<'_, RedoLog>) -> (u64, u64) {
        let area = Area::new(setup.shape, CoreId(0));
        let mut memory = Contents::new(0, setup.shape.capacity).expect("room");
        let words = [Record::Redo(Line(1), 1).header(), 7];
        let mark = commit(area.words() - 1, area.words() + 1);
        let mut put = |word, value| _ = memory.set_word(word, value);
        (0..).zip(words).for_each(|(at, word)| put(area.word(area.words() - 1 + at), word));
        put(area.mark(COMMIT), mark);
        put(area.mark(CHECKSUM), checksum(mark, mix_all(0, &words)));
        change.into_iter().for_each(|(word, value)| put(word, value));
        let mut image = Image::over(&memory);
        recover(&mut image, setup).expect("power");
        (image.word(Line(1).first_word()), image.word(area.mark(COMPLETE)))
    }

    /// The records go round the end of the ring. Whatever is missing, they are dropped, and what a
    /// later life puts there is behind them.
    #[test]
    fn a_transaction_is_replayed_if_its_records_are_those_that_are_counted() {
        let (shape, params) = counting();
        let setup = Setup { shape: &shape, params: &params, rules: &RedoLogRules::default() };
        let area = Area::new(&shape, CoreId(0));
        let end = area.words() + 1;
        assert_eq!(counted(None, &setup), (7, end));
        for missing in [
            (area.word(0), 5),
            (area.word(area.words() - 1), Record::Redo(Line(2), 1).header()),
            (area.mark(COMMIT), commit(area.words() - 2, end)),
            (area.mark(CHECKSUM), 0),
        ] {
            assert_eq!(counted(Some(missing), &setup), (0, end), "{missing:?}");
        }
        let complete = (area.mark(COMPLETE), end + 1);
        assert_eq!(counted(Some(complete), &setup), (0, end + 1));
    }

    /// The checksum and the records of a transaction are there, and its commit mark is not. In the
    /// next life the first commit mark is there without its checksum.
    #[test]
    fn a_checksum_of_an_earlier_life_fits_nothing() {
        let (shape, params) = counting();
        let setup = Setup { shape: &shape, params: &params, rules: &RedoLogRules::default() };
        let area = Area::new(&shape, CoreId(0));
        let mut memory = Contents::new(0, shape.capacity).expect("room");
        let words = [Record::Redo(Line(1), 1).header(), 7];
        (0..).zip(words).for_each(|(at, word)| _ = memory.set_word(area.word(at), word));
        let mark = commit(0, 2);
        memory.set_word(area.mark(CHECKSUM), checksum(mark, mix_all(0, &words)));
        let mut image = Image::over(&memory);
        recover(&mut image, &setup).expect("power");
        RedoLog::boot(&mut image, &setup).expect("power");
        image.set_word(area.mark(COMMIT), mark).expect("power");
        recover(&mut image, &setup).expect("power");
        assert_eq!(image.word(Line(1).first_word()), 0);
    }

    #[test]
    fn a_commit_mark_has_room_for_the_longest_log() {
        let end = (1 << 36) - 1;
        assert_eq!(committed(commit(end - (1 << 27), end)), (end - (1 << 27), end));
        assert_eq!(committed(0), (0, 0), "memory that was never written");
    }

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
