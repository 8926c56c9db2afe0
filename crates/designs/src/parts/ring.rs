//! The log in memory: a ring of lines, and how recovery reads it.
//!
//! ```text
//! a line   records, none of which crosses into the next line            63 bytes
//!          torn bit 1, records of the line before 3, records of this 3   1 byte
//! ```
//!
//! The torn bit changes with each pass over the ring and so tells new lines from old ones (FWB,
//! HPCA 2018; there each record has one, here each line, which is accepted whole). Lines on their
//! way to several controllers overtake each other. For recovery the log therefore ends before the
//! first line that is missing, or behind a line of which a part is missing.

use model::design::Shape;
use model::image::{Image, PowerLoss};
use model::units::{
    CoreId, LINE_BYTES, Line, LineData, PAGE_LINES, PerCore, Word, WordMap, spread,
};

use super::record::{Kind, Record};
use super::rules::LogRules;

/// Where a line keeps its torn bit and its counts, and how many bytes its records have.
pub const FOOTER: usize = LINE_BYTES as usize - 1;
/// Records of a line: as many as its count can say.
pub const RECORDS_MAX: u8 = 7;

/// Where the ring is, and how its records lie.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    base: Line,
    lines: u64,
    /// Bytes that a record of data takes at least.
    least: usize,
}

impl Ring {
    /// A ring of `asked` lines or, if that is 0 or more than there are, of all lines of a core's
    /// log. There is one ring, so that its order is the order of all cores' records.
    pub fn new(shape: &Shape, asked: u64, least: usize) -> Ring {
        let room = shape.log_bytes / LINE_BYTES;
        let lines = if asked == 0 { room } else { asked.min(room) };
        Ring { base: Line::of(shape.log_of(CoreId(0))), lines, least }
    }

    /// How many lines the ring has.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The place of a line, given by its number since the log began.
    pub fn place(&self, number: u64) -> Line {
        Line(self.base.0 + number % self.lines)
    }

    /// The first line of the pass to which a line belongs.
    pub fn pass_of(&self, number: u64) -> u64 {
        number - number % self.lines
    }

    /// Bytes that a record of a kind and a length takes.
    pub fn room_for(&self, kind: Kind, length: usize) -> usize {
        let is_mark = matches!(kind, Kind::Commit | Kind::Count);
        if is_mark { length } else { length.max(self.least) }
    }

    /// The last byte of a line. The first pass has a torn bit of 1: memory begins as zeros.
    pub fn footer(&self, number: u64, before: u8, count: u8, torn_bit_flips: bool) -> u8 {
        let torn = !torn_bit_flips || (number / self.lines).is_multiple_of(2);
        u8::from(torn) << 7 | before << 4 | count
    }

    /// Reads the records in an image, oldest first.
    pub fn read(&self, image: &Image<'_>, rules: &LogRules) -> Vec<Record> {
        let footers = self.footers(image);
        let lines = footers.len() as u64;
        let footer = |slot: u64| footers[slot as usize];
        let is_new = |slot: &u64| footer(*slot) >> 7 == footer(0) >> 7;
        let follows = |slot: u64| footer(slot) >> 4 & RECORDS_MAX == footer(slot - 1) & 15;
        let breaks = |slot: &u64| !is_new(slot) || rules.hole_ends_log && !follows(*slot);
        let end = (1..lines).find(breaks).unwrap_or(lines);
        // Lines of the newest pass behind the end have taken the place of old lines. Before they
        // were sent, the log up to those old lines was no longer needed.
        let overwritten = (end..lines).rev().find(is_new);
        let old = match overwritten {
            Some(slot) if rules.forget_before_overwritten => slot + 1,
            _ => end,
        };
        let new = match overwritten {
            Some(slot) if !rules.hole_ends_log => slot + 1,
            _ => end,
        };
        let most: usize = footers.iter().map(|footer| usize::from(footer & 15)).sum();
        let mut records = Vec::with_capacity(most);
        let slots = (old..lines).filter(|slot| !is_new(slot)).chain((0..new).filter(is_new));
        slots.filter(|slot| footer(*slot) & 15 > 0).for_each(|slot| {
            self.decode(image.line(Line(self.base.0 + slot)), &mut records);
        });
        records
    }

    /// Adds the records of a line.
    fn decode(&self, line: &LineData, records: &mut Vec<Record>) {
        let mut at = 0;
        for _ in 0..line[FOOTER] & 15 {
            let Some((record, length)) = Record::decode(&line[at..FOOTER]) else { break };
            at += self.room_for(record.kind, length);
            records.push(record);
        }
    }

    /// The last bytes of the lines, up to the last page of the ring that was ever written.
    fn footers(&self, image: &Image<'_>) -> Vec<u8> {
        let all = self.base.0..self.base.0 + self.lines;
        let mut footers = Vec::new();
        for page in image.touched_pages(self.base.address()..Line(all.end).address()) {
            let first = page.line(0).0;
            let lines = first.max(all.start)..(first + PAGE_LINES).min(all.end);
            footers.resize((lines.start - all.start) as usize, 0);
            footers.extend(lines.map(|line| image.line(Line(line))[FOOTER]));
        }
        // Lines that were never written look like lines of the second pass.
        if footers.first().is_none_or(|footer| footer >> 7 == 0) {
            footers.resize(self.lines as usize, 0);
        }
        footers
    }

    /// Replays what committed and revokes what did not, as `judge` decides from the records. Then
    /// empties the log by erasing the first line's last byte.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    pub fn recover(
        &self,
        image: &mut Image<'_>,
        rules: &LogRules,
        judge: impl FnOnce(&[Record]) -> Judged<'_>,
    ) -> Result<(), PowerLoss> {
        let first = self.place(0);
        if image.line(first)[FOOTER] == 0 {
            return Ok(());
        }
        let records = self.read(image, rules);
        for (word, value, bits) in outcome(judge(&records), rules) {
            image.merge_word(word, value, bits)?;
        }
        if rules.fence_before_log_is_dropped {
            image.fence();
        }
        image.set_line(first, &[0; LINE_BYTES as usize], 1 << FOOTER)
    }

    /// Erases the last bytes of the lines before the ring is used again, which is as good as zeros.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again. The log is empty all the while.
    pub fn boot(&self, image: &mut Image<'_>, rules: &LogRules) -> Result<(), PowerLoss> {
        let lines = if rules.erase_ring_at_boot { self.lines } else { 0 };
        for line in (0..lines).map(|slot| self.place(slot)) {
            if image.line(line)[FOOTER] != 0 {
                image.set_line(line, &[0; LINE_BYTES as usize], 1 << FOOTER)?;
            }
        }
        Ok(())
    }
}

/// The records on which recovery acts.
#[derive(Clone, Debug, Default)]
pub struct Judged<'a> {
    /// The records that it replays, oldest first.
    pub redo: Vec<&'a Record>,
    /// The records that it revokes, oldest first.
    pub undo: Vec<&'a Record>,
}

/// Replays transactions that have a commit record, and revokes the others. A core's transactions
/// follow each other, so a record's transaction won if the next commit of its core is of that
/// transaction.
pub fn committed(records: &[Record], cores: u8) -> Judged<'_> {
    let mut ended: PerCore<Option<u16>> = PerCore::new(cores, |_| None);
    let mut judged = Judged { redo: Vec::with_capacity(records.len()), undo: Vec::new() };
    for record in records.iter().rev() {
        let Record { kind, core, .. } = *record;
        let won = ended[core] == Some(record.tx);
        if kind == Kind::Commit {
            ended[core] = Some(record.tx);
        } else if won && kind.redoes() {
            judged.redo.push(record);
        } else if !won && kind.undoes() {
            judged.undo.push(record);
        }
    }
    judged.redo.reverse();
    judged.undo.reverse();
    judged
}

/// The words that the records cover, in order, each with its outcome and the bits that are covered.
fn outcome(judged: Judged<'_>, rules: &LogRules) -> Vec<(Word, u64, u64)> {
    let Judged { mut redo, mut undo } = judged;
    if !rules.redo_oldest_first {
        redo.reverse();
    }
    if rules.undo_newest_first {
        undo.reverse();
    }
    let redo = redo.iter().map(|record| (record.word, record.bytes, record.redo));
    let undo = undo.iter().map(|record| (record.word, record.bytes, record.undo));
    // For each word, the bits that records cover, and their value. Most words have several records.
    let mut words: WordMap<(u64, u64)> = WordMap::default();
    words.reserve((redo.len() + undo.len()) / 4);
    redo.chain(undo).for_each(|(word, bytes, value)| {
        let spoken = spread(bytes);
        let (bits, now) = words.entry(word).or_default();
        (*bits, *now) = (*bits | spoken, *now & !spoken | value & spoken);
    });
    let mut words: Vec<_> =
        words.into_iter().map(|(word, (bits, value))| (word, value, bits)).collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::Config;
    use model::contents::Contents;
    use model::units::TxId;

    const LINES: u64 = 4;

    fn shape() -> Shape {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (1 << 20, 1 << 12);
        Shape::new(&config, 2)
    }

    fn ring() -> Ring {
        Ring::new(&shape(), LINES, 0)
    }

    /// A memory whose ring holds these lines. A line has a number, the count of the line before,
    /// and one record: the commit of a core, if one is given, or else a store whose new value is
    /// the line's number plus 1.
    fn memory(lines: &[(u64, u8, Option<u8>)]) -> Contents {
        let mut memory = Contents::new(0, 1 << 20).expect("room");
        for &(number, before, commit) in lines {
            let store = Record::of(CoreId(0), TxId(1), Word(0), number, number + 1);
            let record = commit.map_or(store, |core| Record::commit(CoreId(core), TxId(1)));
            let (bytes, length) = record.encode();
            let line = memory.line_mut(ring().place(number));
            line[..length].copy_from_slice(&bytes[..length]);
            line[FOOTER] = ring().footer(number, before, 1, true);
        }
        memory
    }

    /// The new values of the records that recovery reads.
    fn read(lines: &[(u64, u8, Option<u8>)], rules: &LogRules) -> Vec<u64> {
        let memory = memory(lines);
        let records = ring().read(&Image::over(&memory), rules);
        records.iter().map(|record| record.redo).collect()
    }

    #[test]
    fn records_are_read_oldest_first_across_the_end_of_the_ring() {
        assert_eq!(read(&[(0, 0, None), (1, 1, None)], &LogRules::default()), [1, 2]);
        let wrapped = [(2, 1, None), (3, 1, None), (4, 1, None), (5, 1, None)];
        assert_eq!(read(&wrapped, &LogRules::default()), [3, 4, 5, 6]);
    }

    #[test]
    fn the_log_ends_at_a_line_that_is_not_there() {
        let lines = [(0, 0, None), (2, 1, None)];
        assert_eq!(read(&lines, &LogRules::default()), [1]);
        let lax = LogRules { hole_ends_log: false, ..LogRules::default() };
        assert_eq!(read(&lines, &lax), [1, 3]);
    }

    #[test]
    fn the_log_ends_behind_a_line_of_which_a_part_is_not_there() {
        assert_eq!(
            read(&[(0, 0, None), (1, 2, None)], &LogRules::default()),
            [1],
            "line 0 had two records"
        );
    }

    #[test]
    fn nothing_counts_before_a_line_that_was_overwritten() {
        // Line 5 is not there yet and line 6 is, in the place of line 2.
        let lines = [(1, 1, None), (3, 1, None), (4, 1, None), (6, 1, None)];
        assert_eq!(read(&lines, &LogRules::default()), [4, 5]);
        let lax = LogRules { forget_before_overwritten: false, ..LogRules::default() };
        assert_eq!(read(&lines, &lax), [2, 4, 5]);
    }

    #[test]
    fn winners_are_replayed_losers_revoked_and_the_log_is_empty_then() {
        for (commit, value) in [(Some(0), 2), (Some(1), 0)] {
            let mut memory = memory(&[(0, 0, None), (1, 1, None), (2, 1, commit)]);
            memory.set_word(Word(0), 9);
            let mut image = Image::over(&memory);
            ring()
                .recover(&mut image, &LogRules::default(), |records| committed(records, 2))
                .expect("power");
            assert_eq!(image.word(Word(0)), value, "{commit:?}");
            assert_eq!(image.writes(), 2, "the word, and the log's end");
            ring()
                .recover(&mut image, &LogRules::default(), |records| committed(records, 2))
                .expect("power");
            assert_eq!(image.writes(), 2, "there is nothing left to do");
        }
    }

    #[test]
    fn a_ring_is_no_larger_than_its_room() {
        assert_eq!(Ring::new(&shape(), 0, 0).lines(), 64);
        assert_eq!(Ring::new(&shape(), 1000, 0).lines(), 64);
        assert_eq!(ring().lines(), LINES);
    }

    #[test]
    fn a_padded_record_takes_its_padding_and_a_commit_does_not() {
        let padded = Ring::new(&shape(), LINES, 31);
        assert_eq!(padded.room_for(Kind::UndoRedo, 26), 31);
        assert_eq!(padded.room_for(Kind::Commit, 7), 7);
    }
}
