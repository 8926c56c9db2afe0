//! The metadata journal: a ring of groups of records, appended whole and in the order of commits.
//! A group counts when it and all before it are durable.

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::Below;
use model::device::Write;
use model::meters::Class;
use model::units::{Cycle, Page, Word};

use crate::ssp::layout::{Kept, Layout, SlotId};
use crate::ssp::record::{Entry, LINE_RECORDS, RECORD_WORDS, Record, commit};

/// The ring, its groups that are not durable, and what recovery would make of those that are.
pub struct Journal<W> {
    /// Where the next record goes; positions are counted from the beginning of time.
    head: u64,
    /// Records before it are in the persistent SSP cache.
    pub tail: u64,
    /// Groups before it count.
    pub durable: u64,
    ring_records: u64,
    /// Whether a group begins a line of its own.
    pads: bool,
    /// Groups that do not count yet, in order.
    groups: VecDeque<Group<W>>,
    /// What the groups that count say of each slot.
    pub kept: Vec<Kept>,
    /// Slots of the groups that count and are not checkpointed, with where those groups end.
    pub touched: VecDeque<(u64, SlotId)>,
    tid: u64,
    /// Groups that began a new lap of the ring.
    pub wraps: u64,
}

/// A group that does not count yet.
struct Group<W> {
    start: u64,
    end: u64,
    records: Vec<Record>,
    /// Lines that are not durable.
    left: u64,
    /// Who waits for it.
    what: Option<W>,
}

impl<W> Journal<W> {
    /// An empty journal.
    pub fn new(layout: &Layout, pads: bool) -> Journal<W> {
        Journal {
            head: 0,
            tail: 0,
            durable: 0,
            ring_records: layout.ring_lines * LINE_RECORDS,
            pads,
            groups: VecDeque::new(),
            kept: layout.all_slots().map(|slot| layout.first_kept(slot)).collect(),
            touched: VecDeque::new(),
            tid: 0,
            wraps: 0,
        }
    }

    /// Whether a group of so many records, without its commit record, fits.
    pub fn has_room(&self, records: u64) -> bool {
        self.head + records + 1 - self.tail <= self.ring_records
    }

    /// How much of the ring is in use, in percent.
    pub fn used_percent(&self) -> u64 {
        (self.head - self.tail) * 100 / self.ring_records
    }

    /// Where the next group begins.
    pub fn next(&self) -> u64 {
        self.head
    }

    /// Appends a group, whose lines the controller sends at `at`; `notify` is told of each that is
    /// durable.
    #[expect(clippy::too_many_arguments, reason = "the places, the group, and who is told")]
    pub fn append<E: Copy>(
        &mut self,
        layout: &Layout,
        entries: &[Entry],
        what: W,
        class: Class,
        at: Cycle,
        notify: Notify<E>,
        below: &mut Below<E>,
    ) {
        let start = self.head;
        let mut records: Vec<Record> = entries.iter().map(|entry| entry.encode(self.tid)).collect();
        let last = commit(&records, start & 0xffff_ffff).encode(self.tid);
        self.tid += 1;
        for (position, record) in (start..).zip(records.iter().chain([&last])) {
            let words = record_words(layout, position);
            words.into_iter().zip(record).for_each(|(word, &value)| {
                below.view.set_word(word, value);
            });
        }
        records.push(last);
        let end = start + records.len() as u64;
        let (first, until) = (start / LINE_RECORDS, end.div_ceil(LINE_RECORDS));
        for index in first..until {
            let line = layout.ring(index % layout.ring_lines);
            let write = Write { line, data: below.line(line), mask: u64::MAX, class };
            below.send_direct(at, write, notify);
        }
        self.wraps += u64::from(start / self.ring_records != end / self.ring_records);
        self.head = if self.pads { end.next_multiple_of(LINE_RECORDS) } else { end };
        let left = until - first;
        self.groups.push_back(Group { start, end: self.head, records, left, what: Some(what) });
    }

    /// A line of the group that begins at `start` is durable. Who waited for the groups that count
    /// from now on, in order; with `in_order` off, for this one as soon as its lines are durable.
    pub fn landed(&mut self, start: u64, in_order: bool) -> Vec<W> {
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
            for record in group.records {
                if let Some(slot) = apply(Entry::decode(record), true, &mut self.kept) {
                    self.touched.push_back((group.end, slot));
                }
            }
            done.extend(group.what);
        }
        done
    }
}

/// The words of a record of the ring.
pub fn record_words(layout: &Layout, position: u64) -> [Word; RECORD_WORDS as usize] {
    let line = layout.ring(position / LINE_RECORDS % layout.ring_lines);
    let first = line.first_word().0 + position % LINE_RECORDS * RECORD_WORDS;
    [Word(first), Word(first + 1)]
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
        Entry::Page(_) | Entry::Commit { .. } => return None,
    };
    kept[usize::from(slot.0)] = now;
    Some(slot)
}

/// The page whose frame a group says, if it says one, and the frame.
pub fn frame_of(entries: &[Entry]) -> Option<(Page, Page)> {
    match *entries {
        [Entry::Switch { ppn0, .. }, Entry::Page(page), ..] => Some((page, ppn0)),
        _ => None,
    }
}
