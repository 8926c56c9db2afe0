//! A metadata journal in persistent memory: a ring of groups of 128-bit records (SSP, MICRO'19
//! section 3.3), appended whole and in the order of commits (ours). A group counts when it and all
//! groups before it are durable. A checkpoint writes what the groups that count say to its places,
//! and then moves the journal's tail.
//!
//! ```text
//! the line of the tail, then the ring
//! records    what the design says                | 34 bits of that, its kind[18], 12 of form.rs
//! ```
//!
//! A group is records, and what shows that all of them are there ([`Form`]).

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::{Below, Shape};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{Cycle, LINE_BYTES, Line, PAGE_BYTES, Page, Word};

mod form;

pub use form::{Belief, Complete, Form, kind};

/// A record.
pub type Record = [u64; 2];

/// Words of a record.
const RECORD_WORDS: u64 = 2;
/// Records of a line.
pub const LINE_RECORDS: u64 = 4;
/// Bits of a record's number, its TID, which are the lowest of its second word.
pub const TID_BITS: u32 = 12;
/// Bits of a record's kind, which come next.
pub const KIND_BITS: u32 = 18;

/// Where the journal lies: the line of the tail, then the ring.
#[derive(Clone, Debug)]
pub struct Ring {
    first: Line,
    lines: u64,
    /// Consecutive lines that lie in one bank.
    bank_lines: u64,
}

impl Ring {
    /// A ring of `lines` lines behind the line of its tail, which lies at the start of a page.
    pub fn new(start: Page, lines: u64, shape: &Shape) -> Ring {
        Ring { first: start.line(0), lines, bank_lines: shape.config.pm_piece() / LINE_BYTES }
    }

    /// The address behind the ring, at the start of a page.
    pub fn end(&self) -> u64 {
        self.line(self.lines).address().next_multiple_of(PAGE_BYTES)
    }

    /// The word that says where the journal begins.
    pub fn tail(&self) -> Word {
        self.first.first_word()
    }

    /// A line of the ring. Consecutive lines lie in different banks, which program the groups of
    /// several cores at once. (Where controllers divide memory more finely than banks do, all of
    /// the lines may lie behind one controller.)
    pub fn line(&self, index: u64) -> Line {
        let pieces = self.lines / self.bank_lines;
        let place = match index < pieces * self.bank_lines {
            true => index % pieces * self.bank_lines + index / pieces,
            false => index,
        };
        Line(self.first.0 + 1 + place)
    }

    fn records(&self) -> u64 {
        self.lines * LINE_RECORDS
    }

    /// The words of the record at a position, counted from the beginning of time.
    fn words(&self, position: u64) -> [Word; RECORD_WORDS as usize] {
        let line = self.line(position / LINE_RECORDS % self.lines);
        let first = line.first_word().0 + position % LINE_RECORDS * RECORD_WORDS;
        [Word(first), Word(first + 1)]
    }
}

/// The ring, and its groups that are not durable.
pub struct Journal<W> {
    ring: Ring,
    /// Where the next record goes; positions are counted from the beginning of time.
    head: u64,
    /// Groups before this position are where a checkpoint has put them.
    pub tail: u64,
    /// Groups before this position count.
    pub durable: u64,
    form: Form,
    /// Groups that do not count yet, in order.
    groups: VecDeque<Group<W>>,
    tid: u64,
    checkpoint: Option<Checkpoint>,
    /// Groups that filled the ring to its end, or went on at its beginning.
    pub wraps: u64,
    /// Checkpoints that have begun.
    pub checkpoints: u64,
}

/// A group that does not count yet.
struct Group<W> {
    start: u64,
    end: u64,
    records: Vec<Record>,
    /// How many of its lines are not durable.
    left: u64,
    /// The design's part of the group, which it gets back when the group counts.
    what: Option<W>,
}

/// A checkpoint under way.
struct Checkpoint {
    /// The position to which the tail will move.
    until: u64,
    /// Lines that have not been sent, in order.
    unsent: VecDeque<Line>,
    /// How many lines are under way, and one more while the checkpoint begins.
    under_way: u64,
    /// Whether the tail has moved.
    has_moved: bool,
}

impl Checkpoint {
    fn is_written(&self) -> bool {
        self.unsent.is_empty() && self.under_way == 0
    }
}

impl<W> Journal<W> {
    /// An empty journal.
    pub fn new(ring: Ring, form: Form) -> Journal<W> {
        Journal::beginning_at(0, ring, form)
    }

    /// An empty journal on a machine that boots from an image: it begins where the image's tail is.
    pub fn boot(image: &Image<'_>, ring: Ring, form: Form) -> Journal<W> {
        Journal::beginning_at(image.word(ring.tail()), ring, form)
    }

    fn beginning_at(position: u64, ring: Ring, form: Form) -> Journal<W> {
        Journal {
            ring,
            head: position,
            tail: position,
            durable: position,
            form,
            groups: VecDeque::new(),
            tid: 0,
            checkpoint: None,
            wraps: 0,
            checkpoints: 0,
        }
    }

    /// Whether a group of `records` records fits.
    pub fn has_room(&self, records: u64) -> bool {
        self.head + self.form.taken(records) - self.tail <= self.ring.records()
    }

    /// How many more records the next group, of `records` records, could have in the same lines.
    pub fn spare(&self, records: u64) -> u64 {
        let end = self.head + self.form.taken(records);
        end.next_multiple_of(LINE_RECORDS) - end
    }

    /// Whether a group of `records` records takes a line or more.
    pub fn fills_a_line(&self, records: u64) -> bool {
        self.form.taken(records) >= LINE_RECORDS
    }

    /// Whether there are groups that do not count yet.
    pub fn is_writing(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The position at which the next group begins.
    pub fn next(&self) -> u64 {
        self.head
    }

    /// The number, or TID, that the records of the next group have.
    pub fn tid(&self) -> u64 {
        self.tid & ((1 << TID_BITS) - 1)
    }

    /// Appends a group, whose lines reach the controller at `at`; `notify` is told of each line
    /// that is durable.
    pub fn append<E: Copy>(
        &mut self,
        records: Vec<Record>,
        what: W,
        class: Class,
        at: Cycle,
        notify: Notify<E>,
        below: &mut Below<E>,
    ) {
        let start = self.head;
        let written = self.form.written(&records, start, self.tid());
        self.tid += 1;
        for (position, record) in (start..).zip(&written) {
            let words = self.ring.words(position);
            words.into_iter().zip(record).for_each(|(word, &value)| {
                below.view.set_word(word, value);
            });
        }
        let end = start + written.len() as u64;
        let (first, until) = (start / LINE_RECORDS, end.div_ceil(LINE_RECORDS));
        for index in first..until {
            let line = self.ring.line(index % self.ring.lines);
            let write = Write::whole(line, below.line(line), class);
            below.send_direct(at, write, notify);
        }
        self.head = self.form.after(end);
        self.wraps += u64::from(start / self.ring.records() != self.head / self.ring.records());
        let left = until - first;
        self.groups.push_back(Group { start, end: self.head, records, left, what: Some(what) });
    }

    /// Notes that a line of the group that begins at `start` is durable. Calls `count` for each
    /// record of the groups that count from now on, in order, with the end of its group. Returns
    /// what waited for those groups; with `in_order` off, what waited for this group as soon as its
    /// lines are durable.
    pub fn landed(
        &mut self,
        start: u64,
        in_order: bool,
        mut count: impl FnMut(u64, Record),
    ) -> Vec<W> {
        let group = self.groups.iter_mut().find(|group| group.start == start);
        let group = group.expect("a group is here until its last line is durable");
        group.left -= 1;
        let mut done = Vec::new();
        if group.left == 0 && !in_order {
            done.extend(group.what.take());
        }
        while self.groups.front().is_some_and(|group| group.left == 0) {
            let group = self.groups.pop_front().expect("it is there");
            self.durable = group.end;
            group.records.into_iter().for_each(|record| count(group.end, record));
            done.extend(group.what);
        }
        done
    }

    /// What the groups are for that do not count yet.
    pub fn under_way(&self) -> impl Iterator<Item = &W> {
        self.groups.iter().filter_map(|group| group.what.as_ref())
    }

    /// Whether a checkpoint is to begin: when `percent` percent of the ring are used, or when a
    /// group waits for room.
    pub fn wants_checkpoint(&self, percent: u64, is_stalled: bool) -> bool {
        let used = (self.head - self.tail) * 100 / self.ring.records();
        self.checkpoint.is_none() && (used >= percent || is_stalled)
    }

    /// Begins a checkpoint that writes these lines and then moves the tail to `until`. The event
    /// `sent` comes now and when each line is durable, and is handled by [`Journal::checkpointed`].
    pub fn begin_checkpoint<E: Copy>(
        &mut self,
        until: u64,
        lines: Vec<Line>,
        at: Cycle,
        sent: E,
        below: &mut Below<E>,
    ) {
        self.checkpoints += 1;
        let unsent = lines.into();
        self.checkpoint = Some(Checkpoint { until, unsent, under_way: 1, has_moved: false });
        below.at(at, sent);
    }

    /// Continues a checkpoint that has begun, or of which a line is durable: sends the next lines,
    /// one a cycle, with no more than `width` under way. When the last line is durable, writes the
    /// tail, if it has not moved yet and `moved`, the event that follows, is given.
    pub fn checkpointed<E: Copy>(
        &mut self,
        at: Cycle,
        width: u64,
        sent: E,
        moved: Option<E>,
        below: &mut Below<E>,
    ) {
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint is under way");
        checkpoint.under_way -= 1;
        let room = width.saturating_sub(checkpoint.under_way).min(checkpoint.unsent.len() as u64);
        for (line, cycles) in checkpoint.unsent.drain(..room as usize).zip(0..) {
            below.send(at + cycles, checkpoint_write(line, below), Notify::Design(sent));
        }
        checkpoint.under_way += room;
        if !checkpoint.is_written() {
            return;
        }
        if checkpoint.has_moved {
            self.checkpoint = None;
        } else if let Some(moved) = moved {
            self.move_tail(at, moved, below);
        }
    }

    /// Writes the tail of a checkpoint; the event `moved` comes when it is durable.
    pub fn move_tail<E: Copy>(&mut self, at: Cycle, moved: E, below: &mut Below<E>) {
        let until = self.checkpoint.as_ref().expect("a checkpoint is under way").until;
        below.view.set_word(self.ring.tail(), until);
        let write = checkpoint_write(self.ring.tail().line(), below);
        below.send(at, write, Notify::Design(moved));
    }

    /// Notes that the tail is durable: the ring has room again.
    pub fn tail_moved(&mut self) {
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint is under way");
        checkpoint.has_moved = true;
        self.tail = checkpoint.until;
        if checkpoint.is_written() {
            self.checkpoint = None;
        }
    }
}

fn checkpoint_write<E: Copy>(line: Line, below: &Below<E>) -> Write {
    Write::whole(line, below.line(line), Class::Checkpoint)
}

/// The groups of a journal that count, in order, as recovery finds them.
#[derive(Default)]
pub struct Found {
    /// Their records.
    pub records: Vec<Record>,
    /// How many records there are up to the end of each group.
    ends: Vec<usize>,
    /// The position in the journal at which the last of them ends.
    end: u64,
}

impl Found {
    /// The records of each group.
    pub fn groups(&self) -> impl Iterator<Item = &[Record]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.records[start..end])
    }
}

/// Reads a journal from its tail up to the first group that does not count.
pub fn read(image: &Image<'_>, ring: &Ring, form: Form, belief: Belief) -> Found {
    let tail = image.word(ring.tail());
    let mut found = Found { end: tail, ..Found::default() };
    while found.end - tail < ring.records()
        && let Some(end) = form.read(found.end, image, ring, belief, &mut found.records)
    {
        found.ends.push(found.records.len());
        found.end = form.after(end);
    }
    found
}

/// Empties a journal whose groups that count have been applied: it goes on a whole lap later. Whole
/// groups may lie behind one that does not count, and must not count once a new group takes its
/// place. A lap later, no record in the ring has a position that is still to come.
///
/// # Errors
/// [`PowerLoss`] when the power fails again.
pub fn restart(
    found: &Found,
    a_lap_later: bool,
    image: &mut Image<'_>,
    ring: &Ring,
) -> Result<(), PowerLoss> {
    let lap = if a_lap_later { ring.records() } else { 0 };
    image.set_word(ring.tail(), found.end + lap)
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::contents::Contents;

    use super::form::commit;
    use super::*;

    const PADDED: Form = Form { pads: true, complete: Complete::CommitRecord };
    const DENSE: Form = Form { pads: false, ..PADDED };
    const COUNTED: Form = Form { complete: Complete::Count, ..PADDED };
    const ALL: Belief = Belief { commit_record: true, checksum: true };

    fn ring() -> Ring {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (8 << 20, 4096);
        Ring::new(Page(1), 20, &Shape::new(&config, 1))
    }

    #[test]
    fn the_lines_of_a_ring_are_all_different() {
        let ring = ring();
        let mut lines: Vec<u64> = (0..20).map(|index| ring.line(index).0).collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!((lines.len(), lines[19] - lines[0]), (20, 19));
        assert!(lines[0] > ring.tail().line().0);
        assert!(ring.line(19).address() < ring.end());
    }

    #[test]
    fn a_group_fits_that_fills_the_ring_with_its_commit_record() {
        let mut journal: Journal<()> = Journal::new(ring(), DENSE);
        assert!(journal.has_room(79) && !journal.has_room(80), "it has 80 records");
        (journal.head, journal.tail) = (90, 30);
        assert!(journal.has_room(19) && !journal.has_room(20));
        let counted: Journal<()> = Journal::new(ring(), COUNTED);
        assert!(counted.has_room(80) && !counted.has_room(81));
        assert!(counted.fills_a_line(4) && !counted.fills_a_line(3) && journal.fills_a_line(3));
        assert_eq!((counted.spare(3), counted.spare(4), journal.spare(1)), (1, 0, 0));
    }

    #[test]
    fn a_checkpoint_begins_when_so_much_of_the_ring_is_used() {
        let mut journal: Journal<()> = Journal::new(ring(), DENSE);
        for (used, wanted) in [(0, false), (39, false), (40, true), (80, true)] {
            (journal.head, journal.tail) = (100 + used, 100);
            assert_eq!(journal.wants_checkpoint(50, false), wanted, "{used} of 80");
            assert!(journal.wants_checkpoint(50, true), "a group waits for room");
        }
    }

    #[test]
    fn a_group_counts_if_all_of_it_is_there() {
        let ring = ring();
        let durable = Contents::new(0, ring.end()).expect("room");
        let mut image = Image::over(&durable);
        let records = vec![[7, 8 << 12 | 5], [9, 10 << 12 | 5]];
        let write = |position: u64, record: &Record, image: &mut Image<'_>| {
            for (word, &value) in ring.words(position).into_iter().zip(record) {
                image.set_word(word, value).expect("power");
            }
        };
        write(0, &records[0], &mut image);
        write(2, &commit(&records, 0, 5), &mut image);
        assert!(read(&image, &ring, PADDED, ALL).records.is_empty(), "a record is missing");
        let gullible = read(&image, &ring, PADDED, Belief { checksum: false, ..ALL });
        assert_eq!((gullible.groups().count(), gullible.end), (1, 4));
        write(1, &records[1], &mut image);
        let found = read(&image, &ring, DENSE, ALL);
        assert_eq!((found.groups().collect(), found.end), (vec![&records[..]], 3));
        let gullible = read(&image, &ring, PADDED, Belief { commit_record: false, ..ALL });
        assert_eq!(gullible.groups().next(), Some(&records[..]));
        image.set_word(ring.tail(), 80).expect("power");
        assert!(read(&image, &ring, PADDED, ALL).records.is_empty(), "it is of the lap before");
    }

    fn lay(form: Form, position: u64, records: &[Record], ring: &Ring, image: &mut Image<'_>) {
        for (position, record) in (position..).zip(form.written(records, position, 5)) {
            for (word, value) in ring.words(position).into_iter().zip(record) {
                image.set_word(word, value).expect("power");
            }
        }
    }

    #[test]
    fn a_group_counts_if_its_last_line_says_how_many_records_there_are() {
        let ring = ring();
        let records: Vec<Record> = (1..=5).map(|place| [place, place << TID_BITS]).collect();
        for missing in 0..=16 {
            let durable = Contents::new(0, ring.end()).expect("room");
            let mut image = Image::over(&durable);
            lay(COUNTED, 0, &records[..4], &ring, &mut image);
            lay(COUNTED, 4, &records[..1], &ring, &mut image);
            assert_eq!(read(&image, &ring, COUNTED, ALL).groups().count(), 2);
            // A group of two lines takes the places of the two, and one word of it is missing.
            let [stale, place] = [missing / 2, missing % 2];
            let word = |position: usize| ring.words(position as u64)[place];
            let before = (missing < 16).then(|| image.word(word(stale)));
            lay(COUNTED, 0, &records, &ring, &mut image);
            let is_there = before.is_none_or(|before| before == image.word(word(stale)));
            if let Some(before) = before {
                image.set_word(word(stale), before).expect("power");
            }
            let found = read(&image, &ring, COUNTED, ALL);
            match is_there {
                true => assert_eq!(found.groups().collect::<Vec<_>>(), [&records[..]], "{missing}"),
                false => assert_eq!((found.groups().count(), found.end), (0, 0), "{missing}"),
            }
            image.set_word(ring.tail(), 80).expect("power");
            assert!(read(&image, &ring, COUNTED, ALL).records.is_empty(), "of the lap before");
        }
    }

    #[test]
    fn who_needs_no_count_or_no_checksum_believes_too_much() {
        let ring = ring();
        let durable = Contents::new(0, ring.end()).expect("room");
        let mut image = Image::over(&durable);
        let records: Vec<Record> = (1..=5).map(|place| [place, place << TID_BITS]).collect();
        lay(COUNTED, 0, &records, &ring, &mut image);
        image.set_word(ring.words(1)[0], 7).expect("power");
        assert!(read(&image, &ring, COUNTED, ALL).records.is_empty(), "a word is another");
        let gullible = read(&image, &ring, COUNTED, Belief { checksum: false, ..ALL });
        assert_eq!((gullible.records.len(), gullible.end), (5, 8));
        lay(COUNTED, 0, &records, &ring, &mut image);
        image.set_word(ring.words(4)[1], 0).expect("power");
        assert!(read(&image, &ring, COUNTED, ALL).records.is_empty(), "its last line is missing");
        let gullible = read(&image, &ring, COUNTED, Belief { commit_record: false, ..ALL });
        assert_eq!((&gullible.records[..], gullible.end), (&records[..4], 4));
    }

    #[test]
    fn a_group_behind_one_that_did_not_count_never_counts() {
        let ring = ring();
        let durable = Contents::new(0, ring.end()).expect("room");
        let mut image = Image::over(&durable);
        let write = |position: u64, record: &Record, image: &mut Image<'_>| {
            for (word, &value) in ring.words(position).into_iter().zip(record) {
                image.set_word(word, value).expect("power");
            }
        };
        let group = |position: u64, tid: u64, image: &mut Image<'_>| {
            let record = [7, 8 << 12 | tid];
            write(position, &record, image);
            write(position + 1, &commit(&[record], position, tid), image);
        };
        // The first group lacks its commit record, and the second one is whole.
        write(0, &[7, 8 << 12 | 5], &mut image);
        group(4, 6, &mut image);
        let found = read(&image, &ring, PADDED, ALL);
        assert_eq!(found.groups().count(), 0);
        restart(&found, true, &mut image, &ring).expect("power");
        let begin = image.word(ring.tail());
        group(begin, 5, &mut image);
        let after = read(&image, &ring, PADDED, ALL);
        assert_eq!(
            (after.groups().count(), after.end),
            (1, begin + 4),
            "the old second group is back"
        );
    }
}
