//! Lines in the last level, on their way into it, on their way out of it, and in the overflow area.

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::{Below, Disposition, Evict, Shape};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, LineData, LineMap};
use slab::Slab;

use super::{LocKiln, LocKilnEvent};
use crate::kiln::Written;
use crate::loc::entry::{Entry, Place};
use crate::loc::few::Few;
use crate::loc::speculation::Speculates as _;
use crate::loc::window::Number;
use crate::parts::overflow::{self, Overflow, Slot};

/// A version of a line in the last level.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub line: Line,
    pub data: LineData,
    /// The transaction that left it, and its TxCnt if this is the line that has it.
    pub by: Place,
    pub count: u64,
    /// Its number among the versions that left the last level; 0 if it has not.
    stamp: u64,
    /// The slot of the overflow area that it is on its way to.
    pub moves_to: Option<u32>,
}

/// The versions of a line beside the copy in memory.
#[derive(Debug, Default)]
struct LineState {
    /// The core whose running transaction stored to it last.
    running: Option<CoreId>,
    /// Versions of transactions that have ended and are not retired, oldest first: the place of the
    /// transaction, and which of its versions it is.
    ended: Few<(Place, Number)>,
    /// Its versions in the last level, oldest first; the first may be retired.
    held: VecDeque<Held>,
    /// The slot of the overflow area that has the bytes of the running transaction.
    running_slot: Option<u32>,
    /// How many slots of the overflow area have versions of it.
    slots: u32,
}

/// What the overflow table says of a slot.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// As in [`Held`]; `None` for a running transaction, of which nothing counts.
    pub tag: Option<(Place, u64)>,
    /// Whether its transaction waits for it to arrive.
    expected: bool,
    /// Whether it has arrived.
    pub is_there: bool,
    /// Whether it is on its way home.
    goes_home: bool,
}

impl About {
    fn of(tag: Option<(Place, u64)>, expected: bool) -> About {
        About { tag, expected, is_there: false, goes_home: false }
    }
}

/// An entry on its way to the last level.
#[derive(Clone, Copy, Debug)]
struct Coming {
    by: Place,
    entry: Entry,
    data: Option<LineData>,
}

/// The last level and the overflow area.
pub struct LastLevel {
    lines: LineMap<LineState>,
    coming: Slab<Coming>,
    /// Versions that have left and have not come to where they go: the write-back buffer.
    leaving: VecDeque<Held>,
    pub overflow: Overflow<About>,
    /// How many versions in the last level are not the newest there of their lines.
    old: u64,
    /// How many versions are of transactions that run or are not retired: each may need a slot.
    unretired: u64,
    stamp: u64,
}

impl LastLevel {
    pub fn new(shape: &Shape, overflow_lines: u64) -> LastLevel {
        LastLevel {
            lines: LineMap::default(),
            coming: Slab::new(),
            leaving: VecDeque::new(),
            overflow: Overflow::new(shape, overflow_lines),
            old: 0,
            unretired: 0,
            stamp: 0,
        }
    }

    /// Notes that a core's transaction stores to a line. Returns whether it had not.
    pub fn own(&mut self, line: Line, core: CoreId) -> bool {
        let before = self.lines.entry(line).or_default().running.replace(core);
        self.unretired += u64::from(before.is_none());
        before != Some(core)
    }

    /// Notes that a core's transaction that stored to a line ends, and leaves a version of it.
    /// Returns the versions that are not retired, without this one.
    pub fn end(&mut self, line: Line, core: CoreId) -> &mut Few<(Place, Number)> {
        if let Some(slot) = self.lines.entry(line).or_default().running_slot.take() {
            self.drop_slot(slot);
        }
        let state = self.lines.entry(line).or_default();
        let ran = state.running.take_if(|running| *running == core);
        self.unretired += u64::from(ran.is_none());
        &mut state.ended
    }

    /// Notes that a core's transaction that stored to a line is aborted. Returns whether no
    /// transaction that is not retired has a version of the line. If the caches have the line it
    /// stays dirty, even if it was not.
    pub fn drop_running(&mut self, line: Line, core: CoreId) -> bool {
        let Some(state) = self.lines.get_mut(&line) else { return true };
        let ran = state.running.take_if(|running| *running == core);
        self.unretired -= u64::from(ran.is_some());
        let is_free = state.running.is_none() && state.ended.is_empty();
        match state.running_slot.take() {
            Some(slot) => self.drop_slot(slot),
            None => self.forget_if_done(line),
        }
        is_free
    }

    /// Whether the newest bytes of a line are those of a transaction that is not durable.
    pub fn is_undurable(&self, line: Line, durable: Place) -> bool {
        let Some(state) = self.lines.get(&line) else { return false };
        state.running.is_some() || state.ended.back().is_some_and(|&(place, _)| place >= durable)
    }

    pub fn is_overflowed(&self, line: Line) -> bool {
        self.lines.get(&line).is_some_and(|state| state.slots > 0)
    }

    /// Retires a line's versions of transactions before `end`, of which the newest is enough.
    /// Returns whether no later transaction has a version of the line.
    pub fn retire(&mut self, line: Line, end: Place) -> bool {
        let Some(state) = self.lines.get_mut(&line) else { return true };
        while state.ended.front().is_some_and(|&(place, _)| place < end) {
            state.ended.pop_front();
            self.unretired -= 1;
        }
        while state.held.get(1).is_some_and(|held| held.by < end) {
            state.held.pop_front();
            self.old -= 1;
        }
        let is_free = state.running.is_none() && state.ended.is_empty();
        self.forget_if_done(line);
        is_free
    }

    /// Whether more than half of the overflow area is in use, or would be if everything that is not
    /// retired had to go there, too.
    pub fn is_crowded(&self) -> bool {
        2 * (self.overflow.used() + self.unretired) > self.overflow.slots()
    }

    /// Notes that a version that left is home: older ones are no longer needed.
    pub fn home(&mut self, line: Line, stamp: u64) {
        let index = self.leaving.iter().position(|held| held.stamp == stamp);
        if let Some(version) = index.and_then(|index| self.leaving.remove(index)) {
            self.drop_older(line, version.by);
        }
        self.forget_if_done(line);
    }

    /// Notes that the line of a slot is home: older versions are no longer needed.
    pub fn slot_home(&mut self, number: u32) {
        if let Some(slot) = self.overflow.get(number)
            && let Some((by, _)) = slot.about.tag
        {
            self.drop_older(slot.line, by);
        }
        self.drop_slot(number);
    }

    fn drop_older(&mut self, line: Line, than: Place) {
        self.leaving.retain(|held| held.line != line || held.by >= than);
        if let Some(state) = self.lines.get_mut(&line) {
            let before = state.held.len() as u64;
            state.held.retain(|held| held.by >= than);
            let after = state.held.len() as u64;
            self.old -= before.saturating_sub(1) - after.saturating_sub(1);
        }
        if !self.is_overflowed(line) {
            return;
        }
        let is_older = |slot: &Slot<About>| {
            slot.line == line && slot.about.tag.is_some_and(|(by, _)| by < than)
        };
        let older = self.overflow.iter().filter(|(_, slot)| is_older(slot));
        let older: Vec<u32> = older.map(|(number, _)| number).collect();
        older.into_iter().for_each(|number| self.drop_slot(number));
    }

    /// Drops a slot, which is free now, or will be when the writes under way to it have arrived.
    pub fn drop_slot(&mut self, number: u32) {
        let Some(line) = self.overflow.drop(number) else { return };
        if let Some(state) = self.lines.get_mut(&line) {
            state.slots -= 1;
        }
        self.forget_if_done(line);
    }

    /// Whether there is a version of a line that is newer than `by` and of a transaction before
    /// `retired`.
    fn has_newer(&self, line: Line, by: Place, retired: Place) -> bool {
        let is_newer = |other: Place| other > by && other < retired;
        let in_cache = self.lines.get(&line).into_iter().flat_map(|state| &state.held);
        let leaving = self.leaving.iter().filter(|held| held.line == line);
        let held = in_cache.chain(leaving).any(|held| is_newer(held.by));
        let newer = |slot: &Slot<About>| {
            let About { tag, is_there, .. } = slot.about;
            slot.line == line && is_there && tag.is_some_and(|(by, _)| is_newer(by))
        };
        held || self.is_overflowed(line) && self.overflow.iter().any(|(_, slot)| newer(slot))
    }

    /// The versions that the cells of the last level and of the write-back buffer hold, and memory
    /// may not have.
    pub fn held(&self) -> impl Iterator<Item = &Held> {
        self.lines.values().flat_map(|state| &state.held).chain(&self.leaving)
    }

    fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    fn forget_if_done(&mut self, line: Line) {
        if let Some(state) = self.lines.get(&line)
            && state.running.is_none()
            && state.ended.is_empty()
            && state.held.is_empty()
            && state.slots == 0
        {
            self.lines.remove(&line);
        }
    }
}

/// Has the last level told of a write.
fn notify(written: Written) -> Notify<LocKilnEvent> {
    Notify::Design(LocKilnEvent::Durable(written))
}

impl LocKiln {
    /// Sends an entry of a transaction to the last level, which it reaches at `arrival`.
    pub(super) fn send(
        &mut self,
        by: Place,
        entry: Entry,
        data: Option<LineData>,
        arrival: Cycle,
        below: &mut Below<LocKilnEvent>,
    ) {
        if let Entry::Block { line, .. } = entry {
            below.caches.lower(line);
            self.counts.lines += 1;
        } else {
            self.counts.notes += 1;
        }
        self.expect(by);
        let coming = Coming { by, entry, data };
        let index = self.last.coming.insert(coming);
        below.at(arrival, LocKilnEvent::Arrive(index));
    }

    /// Takes in an entry that reaches the last level. A line that has left it meanwhile, or that
    /// finds no room beside its older versions, goes on to the overflow area.
    pub(super) fn arrive(&mut self, index: usize, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let Coming { by, entry, data } = self.last.coming.remove(index);
        let (Entry::Block { line, count, .. }, Some(data)) = (entry, data) else {
            self.notes.push((by, entry));
            return self.arrived(by, at, below);
        };
        let state = self.last.lines.entry(line).or_default();
        if !self.rules.keep_old_versions {
            self.last.old -= (state.held.len() as u64).saturating_sub(1);
            state.held.clear();
        }
        let has_room = state.held.is_empty() || self.last.old < self.params.old_versions;
        if !has_room || !below.caches.holds(line) {
            self.counts.overflowed += 1;
            let about = About::of(Some((by, count)), true);
            self.overflow((line, data), about, at, below);
            return;
        }
        // The caches may have the line clean, if it was away and came back. As a dirty line it does
        // not leave unseen.
        below.caches.mark_dirty(line);
        self.last.old += u64::from(!state.held.is_empty());
        let place = state.held.partition_point(|held| held.by < by);
        // Most lines have one version: room for more from the start would be most of the memory
        // used.
        state.held.reserve_exact(1);
        state.held.insert(place, Held { line, data, by, count, stamp: 0, moves_to: None });
        self.counts.old_versions_max = self.counts.old_versions_max.max(self.last.old);
        self.arrived(by, at, below);
    }

    /// Handles a dirty line that leaves the caches: the newest retired version goes to its place in
    /// memory, and versions that are not retired go to the overflow area.
    pub(super) fn leave(
        &mut self,
        evict: &Evict,
        below: &mut Below<LocKilnEvent>,
    ) -> Disposition<LocKilnEvent> {
        let Evict { line, data, at } = *evict;
        let home = Disposition::Home { at, notify: Notify::Nobody };
        let Some(state) = self.last.lines.get_mut(&line) else { return home };
        let held = std::mem::take(&mut state.held);
        let (running, newest) = (state.running, state.ended.back());
        self.last.old -= (held.len() as u64).saturating_sub(1);
        let retired = match self.rules.retire_before_leaving {
            true => self.retired,
            false => self.transactions.window.durable,
        };
        let may_leave = !self.rules.unretired_to_overflow;
        let is_retired = |by: Place| by < retired || may_leave;
        let is_newest_retired = running.is_none() && newest.is_none_or(|&(by, _)| is_retired(by));
        let mut departs = None;
        for version in held {
            if is_retired(version.by) {
                departs = Some(version);
            } else {
                self.move_to_overflow(version, at, below);
            }
        }
        // A newer retired version may be on its way home.
        let is_old = |version: &Held| self.last.has_newer(line, version.by, retired);
        if let Some(version) = departs.filter(|version| is_newest_retired || !is_old(version)) {
            let data = if is_newest_retired { data } else { version.data };
            self.depart(Held { data, ..version }, at, below);
        }
        if running.is_some() && !self.rules.running_to_overflow
            || is_newest_retired && departs.is_none()
        {
            return home;
        }
        if !may_leave {
            self.overflow_ended(line, at, below);
        }
        if running.is_some() {
            self.counts.overflowed_running += 1;
            self.overflow((line, data), About::of(None, false), at, below);
        }
        self.last.forget_if_done(line);
        Disposition::Taken
    }

    /// Sends what transactions that have ended left in a line, and have not sent to the last level,
    /// to the overflow area: it leaves the levels above with the line.
    fn overflow_ended(&mut self, line: Line, at: Cycle, below: &mut Below<LocKilnEvent>) {
        while let Some(state) = self.last.lines.get(&line)
            && let Some((place, data)) = self.transactions.issue_oldest(&state.ended)
        {
            self.expect(place);
            self.counts.overflowed += 1;
            self.overflow((line, data), About::of(Some((place, 0)), true), at, below);
        }
    }

    /// Sends a version that leaves the last level to memory, and keeps it until it is there.
    fn depart(&mut self, version: Held, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let stamp = self.last.next_stamp();
        if self.rules.keep_until_home {
            self.last.leaving.push_back(Held { stamp, ..version });
        }
        let write = Write::whole(version.line, version.data, Class::HomeWriteBack);
        below.send_evicted(at, write, notify(Written::Home(version.line, stamp)));
    }

    /// Sends a version that leaves the last level to the overflow area, and keeps it until it is
    /// there.
    fn move_to_overflow(&mut self, version: Held, at: Cycle, below: &mut Below<LocKilnEvent>) {
        self.counts.overflowed += 1;
        let about = About::of(Some((version.by, version.count)), false);
        let moves_to = self.overflow((version.line, version.data), about, at, below);
        if self.rules.keep_until_overflowed {
            self.last.leaving.push_back(Held { moves_to, ..version });
        }
    }

    /// Writes a line to the overflow area. Returns its slot, if there is one.
    fn overflow(
        &mut self,
        (line, data): (Line, LineData),
        about: About,
        at: Cycle,
        below: &mut Below<LocKilnEvent>,
    ) -> Option<u32> {
        let state = self.last.lines.entry(line).or_default();
        let own = state.running_slot.filter(|_| about.tag.is_none());
        let overflow = &mut self.last.overflow;
        let Some((number, write)) = overflow.put(own, (line, data), about, &below.shape) else {
            let (slots, raise) = (overflow.slots(), overflow.more_room());
            below.give_up(format!(
                "more than {slots} lines of transactions that are not retired had to leave the \
                 last level: raise {raise}"
            ));
            return None;
        };
        if about.tag.is_none() {
            state.running_slot = Some(number);
        }
        state.slots += u32::from(own.is_none());
        self.counts.overflow_max = self.counts.overflow_max.max(overflow.used());
        below.send_evicted(at, write, notify(Written::Overflowed(number)));
        Some(number)
    }

    /// Handles the news that a write of a slot is durable.
    pub(super) fn overflowed(&mut self, number: u32, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let (slot, is_there) = self.last.overflow.written(number);
        if !is_there {
            return;
        }
        slot.about.is_there = true;
        let (About { tag, expected, .. }, is_dropped) = (slot.about, slot.is_dropped);
        self.last.leaving.retain(|held| held.moves_to != Some(number));
        if is_dropped {
            self.last.drop_slot(number);
            self.tell_all(at, below);
        }
        let Some((by, _)) = tag else { return };
        if expected {
            self.arrived(by, at, below);
        }
        if by < self.retired && !is_dropped {
            self.bring_slot_home(number, at, below);
            self.tell_all(at, below);
        }
    }

    /// Sends lines of transactions before `end` that are in the overflow area home, one a cycle.
    pub(super) fn bring_home(&mut self, end: Place, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let waits = |about: &About| {
            about.is_there && !about.goes_home && about.tag.is_some_and(|(by, _)| by < end)
        };
        let waiting = self.last.overflow.iter().filter(|(_, slot)| waits(&slot.about));
        let waiting: Vec<u32> = waiting.map(|(number, _)| number).collect();
        for (sent, number) in (0..).zip(waiting) {
            self.bring_slot_home(number, at + sent, below);
        }
    }

    fn bring_slot_home(&mut self, number: u32, at: Cycle, below: &mut Below<LocKilnEvent>) {
        let Some(slot) = self.last.overflow.get_mut(number) else { return };
        let (line, data, Some((by, _))) = (slot.line, slot.data, slot.about.tag) else { return };
        if self.last.has_newer(line, by, self.retired) {
            return self.last.drop_slot(number);
        }
        let place = overflow::place(&below.shape, number);
        let ready = below.memory.read(at + self.path, place) + self.path;
        if let Some(slot) = self.last.overflow.get_mut(number) {
            slot.about.goes_home = true;
        }
        let write = Write::whole(line, data, Class::HomeWriteBack);
        below.send(ready, write, notify(Written::OverflowHome(number)));
        if !self.rules.keep_overflow_until_home {
            self.last.drop_slot(number);
        }
    }
}
