//! MorLog's entries on their way from the buffers to the log.

use model::design::Below;
use model::units::{CoreId, Cycle, Line, Word};

use super::words::{Redo, State, UndoRedo};
use super::{Morlog, Scheme, Slde, Variant};
use crate::parts::LogEvent;
use crate::parts::log::Place;
use crate::parts::record::{Kind, Record};

impl<S: Scheme> Morlog<S> {
    /// The record that an undo+redo entry becomes.
    pub(super) fn record(&self, core: CoreId, entry: &UndoRedo) -> Record {
        let UndoRedo { tx, word, undo, redo, .. } = *entry;
        let kind =
            if self.params.variant == Variant::UndoFirst { Kind::Undo } else { Kind::UndoRedo };
        let bytes = if self.params.slde == Slde::On { entry.bytes } else { u8::MAX };
        Record { kind, bytes, ..Record::of(core, tx, word, undo, redo) }
    }

    /// Sends the oldest undo+redo entries of a core, `most` of them at the most.
    pub(super) fn send_entries(
        &mut self,
        core: CoreId,
        most: usize,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) {
        let (mut last, discarded) = (None, self.counts.discarded);
        for _ in 0..most.min(self.cores[core].ur.len()) {
            let Some(next) = self.cores[core].ur.front() else { break };
            let is_silent = self.params.slde == Slde::On && next.bytes == 0;
            let state = if is_silent { State::Clean } else { State::UrLog };
            let Some(entry) = self.cores[core].leave_ur(state, self.params.slde == Slde::On) else {
                break;
            };
            if is_silent {
                self.counts.discarded += 1;
                continue;
            }
            if self.rules.redo_in_order
                && let Some(redo) = self.cores[core].take_redo(entry.word)
            {
                self.counts.redo_first += 1;
                self.append_redo(core, &redo, at, below);
            }
            let record = self.record(core, &entry);
            last = Some(self.log.append(&record, at, below));
            if record.kind == Kind::Undo {
                self.put(
                    core,
                    Redo { tx: entry.tx, word: entry.word, bytes: entry.bytes, redo: entry.redo },
                );
            }
        }
        if let Some(place) = last {
            self.log.flush(place, at, below);
        }
        self.tell_owed(core);
        if self.counts.discarded > discarded {
            below.at(at, LogEvent::Discarded(core));
        }
    }

    /// Continues a core whose silent entries have left room in its buffer and in the ring. They
    /// have no records whose acceptance would let waiting stores go on.
    pub(super) fn discarded(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        self.log.go_on(at, below);
        if self.cores[core].waiting {
            self.go_on(core, at, below);
        }
    }

    /// Sends the oldest entries of a core, as far as all of their stores have left the core.
    pub(super) fn send_complete(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let complete = self.cores[core].ur.iter().take_while(|entry| entry.complete <= at).count();
        if complete == 0 {
            return;
        }
        self.send_entries(core, complete, at, below);
        if let Some(next) = self.cores[core].ur.front() {
            below.at(next.due.max(at), LogEvent::Age(core));
        }
    }

    /// Has a core's entries looked at when the stores of the oldest one have left, since a store
    /// waits for its place.
    pub(super) fn await_complete(&mut self, core: CoreId, below: &mut Below<LogEvent>) {
        let words = &mut self.cores[core];
        if let Some(next) = words.ur.front().filter(|next| next.complete != words.looks) {
            words.looks = next.complete;
            below.at(words.looks, LogEvent::Age(core));
        }
    }

    /// Sends the entries of a core that are old enough and whose stores have all left the core. If
    /// a store waits for room, their age does not matter.
    pub(super) fn send_aged(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        if self.cores[core].waiting {
            self.send_complete(core, at, below);
            return self.await_complete(core, below);
        }
        let leaves = |entry: &UndoRedo| entry.due.max(entry.complete);
        let aged = self.cores[core].ur.iter().take_while(|entry| leaves(entry) <= at).count();
        if aged > 0 {
            self.send_entries(core, aged, at, below);
        }
        // A younger entry has an event already.
        let front = self.cores[core].ur.front();
        if let Some(next) = front.filter(|next| aged > 0 || next.due <= at) {
            below.at(leaves(next), LogEvent::Age(core));
        }
    }

    /// Sends the undo data of a line that the buffers hold, with the entries before them.
    pub(super) fn send_entries_of(&mut self, line: Line, at: Cycle, below: &mut Below<LogEvent>) {
        for core in (0..self.cores.cores()).map(CoreId) {
            let entries = &self.cores[core].ur;
            if let Some(last) = entries.iter().rposition(|entry| entry.word.line() == line) {
                self.counts.forced += 1;
                self.send_entries(core, last + 1, at, below);
                if let Some(next) = self.cores[core].ur.front() {
                    below.at(next.due.max(at), LogEvent::Age(core));
                }
            }
        }
    }

    /// Finds the redo data that only the first level has.
    pub(super) fn scan_first_level(&mut self, core: CoreId, below: &Below<LogEvent>) {
        let words = &mut self.cores[core];
        let before = words.left.len();
        words.scan(self.rules.reset_at_commit, |word| below.view.word(word));
        if !self.rules.scan_before_commit {
            words.left.truncate(before);
        }
    }

    /// Puts the newest redo data of a word into the redo buffer, whose oldest entries leave if it
    /// is full.
    pub(super) fn put_redo(
        &mut self,
        core: CoreId,
        word: Word,
        bytes: u8,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) {
        let redo = below.view.word(word);
        self.put(core, Redo { tx: self.cores[core].tx, word, bytes, redo });
        self.send_redo(core, self.params.r_entries, at, below);
    }

    /// Puts redo data into the redo buffer, or into the entry that has older data of the word.
    pub(super) fn put(&mut self, core: CoreId, redo: Redo) {
        let merged = self.cores[core].put_redo(redo);
        self.counts.redo_entries += u64::from(!merged);
        self.counts.redo_merged += u64::from(merged);
    }

    /// Sends the oldest redo entries of a core until `left` of them are left, as long as more may
    /// be under way.
    pub(super) fn send_redo(
        &mut self,
        core: CoreId,
        left: u64,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) {
        let mut last = None;
        while self.cores[core].r.len() as u64 > left && self.has_room_for_redo(core) {
            let Some(redo) = self.cores[core].r.pop_front() else { break };
            last = Some(self.append_redo(core, &redo, at, below));
        }
        if let Some(place) = last {
            self.log.flush(place, at, below);
        }
        self.tell_owed(core);
    }

    pub(super) fn has_room_for_redo(&self, core: CoreId) -> bool {
        self.under_way(core)[1] < self.params.r_entries
    }

    pub(super) fn append_redo(
        &mut self,
        core: CoreId,
        entry: &Redo,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) -> Place {
        let bytes = if self.params.slde == Slde::On { entry.bytes } else { u8::MAX };
        let record = Record::of(core, entry.tx, entry.word, 0, entry.redo);
        let place = self.log.append(&Record { kind: Kind::Redo, bytes, ..record }, at, below);
        self.delayed.sent(core, entry.tx, place);
        place
    }

    /// Has the log leave room in the ring for the records that are still to come.
    pub(super) fn tell_owed(&mut self, core: CoreId) {
        let words = &mut self.cores[core];
        let owed = words.owed();
        self.owed = self.owed + owed - std::mem::replace(&mut words.told, owed);
        self.log.owed = self.owed.div_ceil(2);
    }

    /// Drops the redo entries of evicted lines that are home, if redo entries do not stay.
    pub(super) fn drop_redo(&mut self) {
        let homes = &self.homes;
        for (_, line) in self.leaving.extract_if(.., |(mark, _)| homes.are_home(*mark)) {
            for (core, words) in self.cores.iter_mut() {
                words.r.retain(|entry| {
                    let stays = entry.word.line() != line;
                    if !stays {
                        self.delayed.dropped(core, entry.tx);
                    }
                    stays
                });
            }
        }
    }
}
