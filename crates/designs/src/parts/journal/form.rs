//! How the groups of a journal lie in its ring, and how recovery knows that one is complete.
//!
//! ```text
//! commit record   the records, whose 12 low bits are the group's TID, and one more:
//!                 checksum[32] position[32]      | count[8] 0[26] COMMIT[18] TID[12]
//! count           lines of four records; the 12 low bits of the four are one number:
//!                 count[8] checksum[40]
//! ```
//!
//! A commit record holds how many records there are, the position of the first of them, counted
//! from the beginning of time, and a checksum of all of that. A count takes no record of its own:
//! like LOC's TxCnt it is in the last line of the group, and 0 in the lines before. Each line has a
//! checksum of its records, its count and its position. Without one, a line that is torn, or left
//! from the lap before, could not be told from one of the group. (Checksums have 32 and 40 bits,
//! where a controller would have a CRC.)

use model::image::{Image, word_of};
use model::units::{Word, mix, mix_all};

use super::{KIND_BITS, LINE_RECORDS, RECORD_WORDS, Record, Ring, TID_BITS};

/// Records of a group beside its commit record, at most: one for each page that a transaction may
/// have stored to, and as many as a line has room for beside these and the commit record. They are
/// of commits that waited for it (fewer than a line of them), or of switches that fill its last
/// line.
const GROUP_RECORDS: u64 = 64 + LINE_RECORDS - 1;
/// The kind of a commit record.
const COMMIT: u64 = (1 << KIND_BITS) - 1;
/// Bits of a record that belong to its line where groups have counts.
const SHARE: u64 = (1 << TID_BITS) - 1;
/// Bits of a line's checksum, above which its count is.
const SUM_BITS: u32 = LINE_RECORDS as u32 * TID_BITS - u8::BITS;

/// How groups lie in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether a group begins a line of its own.
    pub pads: bool,
    /// What shows that all of a group is there.
    pub complete: Complete,
}

model::choices! {
    /// What shows that all of a group is there.
    pub enum Complete {
        /// One more record.
        CommitRecord = "commit_record",
        /// A count in the group's own records, for which groups begin lines of their own.
        Count = "count",
    }
}

/// What recovery demands of a group before it believes it.
#[derive(Clone, Copy, Debug)]
pub struct Belief {
    /// That it has its commit record or count.
    pub commit_record: bool,
    /// That its checksums are right.
    pub checksum: bool,
}

impl Form {
    /// The form of groups that end with a commit record.
    pub const fn with_commit_records(pads: bool) -> Form {
        Form { pads, complete: Complete::CommitRecord }
    }

    /// How many records a group takes that has so many of its own.
    pub fn taken(self, records: u64) -> u64 {
        records + u64::from(self.complete == Complete::CommitRecord)
    }

    /// Where the group begins that follows one that ends at a position.
    pub fn after(self, end: u64) -> u64 {
        if self.pads { end.next_multiple_of(LINE_RECORDS) } else { end }
    }

    /// What is written of a group that begins at a position.
    pub fn written(self, records: &[Record], start: u64, tid: u64) -> Vec<Record> {
        match self.complete {
            Complete::CommitRecord => {
                records.iter().copied().chain([commit(records, start, tid)]).collect()
            }
            Complete::Count => {
                assert!(self.pads, "a line with a checksum is never written again");
                counted(records, start)
            }
        }
    }

    /// Adds the records of the group that begins at a position to `found`, if it counts, and
    /// returns where it ends.
    pub(super) fn read(
        self,
        start: u64,
        image: &Image<'_>,
        ring: &Ring,
        belief: Belief,
        found: &mut Vec<Record>,
    ) -> Option<u64> {
        match self.complete {
            Complete::CommitRecord => read_committed(start, image, ring, belief, found),
            Complete::Count => read_counted(start, image, ring, belief, found),
        }
    }
}

/// The kind of a record.
pub fn kind(record: &Record) -> u64 {
    record[1] >> TID_BITS & ((1 << KIND_BITS) - 1)
}

fn tid(record: &Record) -> u64 {
    record[1] & ((1 << TID_BITS) - 1)
}

/// Makes the commit record of a group that begins at a position.
pub(super) fn commit(records: &[Record], start: u64, tid: u64) -> Record {
    let (count, position) = (records.len() as u64, start & 0xffff_ffff);
    let begin = mix(count ^ position.rotate_left(32));
    let sum = mix_all(begin, records.iter().flatten()) & 0xffff_ffff;
    [sum << 32 | position, count << 56 | COMMIT << TID_BITS | tid]
}

fn read_committed(
    start: u64,
    image: &Image<'_>,
    ring: &Ring,
    belief: Belief,
    found: &mut Vec<Record>,
) -> Option<u64> {
    let before = found.len();
    let mut line = records_of_line(start, image, ring);
    for at in start..=start + GROUP_RECORDS {
        if at > start && at.is_multiple_of(LINE_RECORDS) {
            line = records_of_line(at, image, ring);
        }
        let record = line[(at % LINE_RECORDS) as usize];
        if kind(&record) != COMMIT {
            found.push(record);
            continue;
        }
        let mut right = commit(&found[before..], start, tid(&record));
        if !belief.checksum {
            right[0] = right[0] & 0xffff_ffff | record[0] >> 32 << 32;
        }
        if record == right {
            return Some(at + 1);
        }
        break;
    }
    if belief.commit_record || found.len() == before {
        found.truncate(before);
        return None;
    }
    let records = &found[before..];
    let of_first = records.iter().take_while(|record| tid(record) == tid(&records[0])).count();
    found.truncate(before + of_first);
    Some(start + of_first as u64)
}

/// Fills the lines of a group that begins at a position, which begins a line, and gives each line
/// its count and checksum.
fn counted(records: &[Record], start: u64) -> Vec<Record> {
    let mut lines = Vec::with_capacity(records.len().next_multiple_of(LINE_RECORDS as usize));
    let mut at = start;
    for part in records.chunks(LINE_RECORDS as usize) {
        let mut line = [[0; RECORD_WORDS as usize]; LINE_RECORDS as usize];
        line.iter_mut().zip(part).for_each(|(to, record)| *to = [record[0], record[1] & !SHARE]);
        at += LINE_RECORDS;
        let is_last = at >= start + records.len() as u64;
        let count = if is_last { records.len() as u64 } else { 0 };
        let trailer = count << SUM_BITS | sum_of_line(&line, count, at - LINE_RECORDS);
        for (place, record) in (0..).zip(&mut line) {
            record[1] |= trailer >> (place * TID_BITS) & SHARE;
        }
        lines.extend(line);
    }
    lines
}

fn read_counted(
    start: u64,
    image: &Image<'_>,
    ring: &Ring,
    belief: Belief,
    found: &mut Vec<Record>,
) -> Option<u64> {
    let before = found.len();
    for at in (start..=start + GROUP_RECORDS).step_by(LINE_RECORDS as usize) {
        let mut line = records_of_line(at, image, ring);
        let mut trailer = 0;
        for (place, record) in (0..).zip(&mut line) {
            trailer |= (record[1] & SHARE) << (place * TID_BITS);
            record[1] &= !SHARE;
        }
        let (count, sum) = (trailer >> SUM_BITS, trailer & ((1 << SUM_BITS) - 1));
        if belief.checksum && sum != sum_of_line(&line, count, at) {
            break;
        }
        found.extend(line);
        if count.next_multiple_of(LINE_RECORDS) == at + LINE_RECORDS - start {
            found.truncate(before + count as usize);
            return Some(start + count);
        }
        if count > 0 {
            break;
        }
    }
    if belief.commit_record || found.len() == before {
        found.truncate(before);
        return None;
    }
    Some(start + (found.len() - before) as u64)
}

/// The checksum of the line that begins at a position, whose records lack their shares of it.
fn sum_of_line(line: &[Record], count: u64, position: u64) -> u64 {
    let begin = mix(count ^ position.rotate_left(32));
    mix_all(begin, line.iter().flatten()) & ((1 << SUM_BITS) - 1)
}

/// The records of the line that has a position.
fn records_of_line(
    position: u64,
    image: &Image<'_>,
    ring: &Ring,
) -> [Record; LINE_RECORDS as usize] {
    let line = image.line(ring.words(position)[0].line());
    std::array::from_fn(|record| {
        let first = record as u64 * RECORD_WORDS;
        [first, first + 1].map(|word| word_of(line, Word(word)))
    })
}
