//! Lines in the last level, on their way into it, on their way out of it, and in the overflow area.

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::{Below, Disposition, Evict, Shape};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, LineData, LineMap};
use slab::Slab;

use super::{Kiln, KilnEvent, WriteOut, Written};
use crate::parts::overflow::{self, Overflow};

/// A version of a line.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    pub line: Line,
    pub data: LineData,
    /// The TxID that it has; a line without one is committed.
    pub tag: Option<u16>,
    /// Later versions have later stamps.
    pub stamp: u64,
    /// The core whose transaction waits for it to arrive.
    counted: Option<CoreId>,
}

/// A transaction that is not committed: its core and its TxID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub core: CoreId,
    pub id: u16,
}

/// A version that is in the last level, and not in memory.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Its number among [`LastLevel::versions`].
    version: usize,
    /// Whether it is on its way to memory, since a newer one is to take its place.
    written_out: bool,
}

/// The versions of a line beside the copy in memory. Versions are given by their numbers: a table
/// of lines that had their bytes would be too large for the caches of the host.
#[derive(Debug, Default)]
struct LineState {
    /// The transaction that stored to it and is not committed.
    owner: Option<Owner>,
    held: Option<Held>,
    /// The committed version that lies in another way while the one that is held is pending.
    older: Option<usize>,
    /// Versions that have arrived and wait until the held one is home.
    waiting: VecDeque<usize>,
    /// How many versions are on their way to the last level.
    coming: u32,
    /// The stamp at which it left the last level: versions that were sent before went with it.
    left: u64,
    /// The slot of the overflow area that has its pending version.
    slot: Option<u32>,
}

impl LineState {
    /// The versions that the last level has.
    fn versions(&self) -> impl Iterator<Item = usize> {
        self.held.map(|held| held.version).into_iter().chain(self.older)
    }
}

/// What the overflow table says of a slot.
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub tag: Option<u16>,
    pub stamp: u64,
    owner: Owner,
}

/// The last level and the overflow area.
pub struct LastLevel {
    lines: LineMap<LineState>,
    /// Versions in the last level, and on their way to it.
    versions: Slab<Version>,
    /// Committed versions that have left and that memory does not have: the write-back buffer.
    leaving: VecDeque<Version>,
    pub overflow: Overflow<About>,
    stamp: u64,
}

impl LastLevel {
    pub fn new(shape: &Shape, overflow_lines: u64) -> LastLevel {
        LastLevel {
            lines: LineMap::default(),
            versions: Slab::new(),
            leaving: VecDeque::new(),
            overflow: Overflow::new(shape, overflow_lines),
            stamp: 0,
        }
    }

    /// The transaction that stored to a line and is not committed.
    pub fn owner(&self, line: Line) -> Option<Owner> {
        self.lines.get(&line)?.owner
    }

    /// Makes a transaction the owner of a line. Returns whether it was not.
    pub fn own(&mut self, line: Line, owner: Owner) -> bool {
        self.lines.entry(line).or_default().owner.replace(owner) != Some(owner)
    }

    /// Takes a line from a transaction that owns it no longer. Returns whether it did.
    pub fn disown(&mut self, line: Line, owner: Owner) -> bool {
        let Some(state) = self.lines.get_mut(&line) else { return false };
        if state.owner != Some(owner) {
            return false;
        }
        state.owner = None;
        state.slot = None;
        if let Some(older) = state.older.take() {
            self.versions.remove(older);
        }
        self.forget_if_done(line);
        true
    }

    /// Drops the versions of a line of an aborted transaction; the committed version is in memory,
    /// or in another way. Returns the cores that count on versions that had arrived and waited. If
    /// the caches have the line it stays dirty, even if it was not.
    pub fn drop_pending(&mut self, line: Line, owner: Owner) -> Vec<CoreId> {
        let stamp = self.next_stamp();
        let Some(state) = self.lines.get_mut(&line) else { return Vec::new() };
        if state.owner != Some(owner) {
            return Vec::new();
        }
        // A version that is on its way is dropped when it arrives.
        state.left = stamp;
        let versions = &mut self.versions;
        let is_its = |held: &mut Held| versions[held.version].tag == Some(owner.id);
        if let Some(held) = state.held.take_if(is_its) {
            versions.remove(held.version);
            let older = state.older.take();
            state.held = older.map(|version| Held { version, written_out: false });
        }
        let waiting = std::mem::take(&mut state.waiting);
        if let Some(slot) = state.slot.take() {
            self.overflow.drop(slot);
        }
        waiting.into_iter().filter_map(|number| self.versions.remove(number).counted).collect()
    }

    /// Takes a TxID from a line.
    pub fn untag(&mut self, line: Line, id: u16) {
        let Some(state) = self.lines.get(&line) else { return };
        for number in state.versions() {
            self.versions[number].tag.take_if(|tag| *tag == id);
        }
    }

    /// Takes a TxID from the overflow table.
    pub fn untag_slots(&mut self, id: u16) {
        for about in self.overflow.iter_mut().filter(|about| about.tag == Some(id)) {
            about.tag = None;
        }
    }

    pub fn is_overflowed(&self, line: Line) -> bool {
        self.lines.get(&line).is_some_and(|state| state.slot.is_some())
    }

    /// The versions that the cells of the last level and of the write-back buffer hold, and memory
    /// may not have.
    pub fn held(&self) -> impl Iterator<Item = &Version> {
        let numbers = self.lines.values().flat_map(LineState::versions);
        numbers.map(|number| &self.versions[number]).chain(&self.leaving)
    }

    fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    fn forget_if_done(&mut self, line: Line) {
        if let Some(state) = self.lines.get(&line)
            && state.owner.is_none()
            && state.held.is_none()
            && state.coming == 0
            && state.waiting.is_empty()
        {
            self.lines.remove(&line);
        }
    }
}

/// Has the last level told of a write.
fn notify(written: Written) -> Notify<KilnEvent> {
    Notify::Design(KilnEvent::Durable(written))
}

impl Kiln {
    /// Sends the newest bytes of a line to the last level, which they reach at `arrival`.
    pub(super) fn send(
        &mut self,
        line: Line,
        owner: Option<Owner>,
        counted: Option<CoreId>,
        arrival: Cycle,
        below: &mut Below<KilnEvent>,
    ) {
        let tag = owner.map(|owner| owner.id);
        let stamp = self.last.next_stamp();
        let version = Version { line, data: below.line(line), tag, stamp, counted };
        let number = self.last.versions.insert(version);
        self.last.lines.entry(line).or_default().coming += 1;
        if let Some(core) = counted {
            self.transactions.expect(core);
        }
        below.at(arrival, KilnEvent::Arrive(number));
    }

    /// Takes in a version that reaches the last level.
    pub(super) fn arrive(&mut self, number: usize, at: Cycle, below: &mut Below<KilnEvent>) {
        let Version { line, stamp, counted, .. } = self.last.versions[number];
        let state = self.last.lines.get_mut(&line).expect("a version of it is coming");
        state.coming -= 1;
        if stamp < state.left {
            self.last.versions.remove(number);
            self.last.forget_if_done(line);
            return self.arrived(counted, at, below);
        }
        if !state.waiting.is_empty() {
            self.counts.waited_for_home += 1;
            return state.waiting.push_back(number);
        }
        if self.must_wait(number, at, below) {
            self.counts.waited_for_home += 1;
            let state = self.last.lines.get_mut(&line).expect("it is held");
            return state.waiting.push_back(number);
        }
        self.enter(number, at, below);
    }

    /// Whether the version that the last level holds is committed, so that it must be home before a
    /// newer one takes its place. If so, it is on its way there afterwards.
    fn must_wait(&mut self, newer: usize, at: Cycle, below: &mut Below<KilnEvent>) -> bool {
        let Version { line, tag, .. } = self.last.versions[newer];
        let Some(state) = self.last.lines.get_mut(&line) else { return false };
        let Some(Held { version, .. }) = state.held else { return false };
        let held = self.last.versions[version].tag;
        let is_newer_pending = tag.is_some() && tag != held;
        let is_committed = held.is_none_or(|id| self.transactions.is_committed(id));
        if !is_newer_pending || !is_committed || !self.rules.home_before_newer {
            return false;
        }
        if self.params.write_out == WriteOut::Never {
            state.held = None;
            if let Some(before) = state.older.replace(version) {
                self.last.versions.remove(before);
            }
            return false;
        }
        self.write_out(line, at, below);
        true
    }

    /// Writes the committed version that the last level holds to memory; it stays there meanwhile.
    pub(super) fn write_out(&mut self, line: Line, at: Cycle, below: &mut Below<KilnEvent>) {
        let Some(state) = self.last.lines.get_mut(&line) else { return };
        let Some(held) = &mut state.held else { return };
        let Version { data, stamp, tag, .. } = self.last.versions[held.version];
        if held.written_out || !tag.is_none_or(|id| self.transactions.is_committed(id)) {
            return;
        }
        held.written_out = true;
        self.counts.written_out += 1;
        let write = Write::whole(line, data, Class::HomeWriteBack);
        below.send(at, write, notify(Written::Home(line, stamp)));
    }

    /// Puts a version into its place in the last level.
    fn enter(&mut self, number: usize, at: Cycle, below: &mut Below<KilnEvent>) {
        let Version { line, tag, counted, .. } = self.last.versions[number];
        let state = self.last.lines.entry(line).or_default();
        if let Some(before) = state.held.replace(Held { version: number, written_out: false }) {
            self.last.versions.remove(before.version);
        }
        // The last level now has a newer version than a slot of the same transaction.
        let overflow = &mut self.last.overflow;
        let is_older =
            |slot: &mut u32| overflow.get(*slot).is_some_and(|slot| tag == slot.about.tag);
        if let Some(slot) = state.slot.take_if(is_older) {
            overflow.drop(slot);
        }
        self.arrived(counted, at, below);
    }

    /// Sends a dirty line that leaves the caches, with what is on its way into the last level, to
    /// the overflow area if it is pending, and otherwise to its place in memory.
    pub(super) fn leave(
        &mut self,
        evict: &Evict,
        below: &mut Below<KilnEvent>,
    ) -> Disposition<KilnEvent> {
        let Evict { line, data, at } = *evict;
        let stamp = self.last.next_stamp();
        let owner = self.last.owner(line);
        let mut gone = VecDeque::new();
        if let Some(state) = self.last.lines.get_mut(&line) {
            state.left = stamp;
            gone = std::mem::take(&mut state.waiting);
            let (held, older) = (state.held.take(), state.older.take());
            if let Some(Held { version, written_out }) = held {
                let version = self.last.versions.remove(version);
                let is_committed = version.tag.is_none_or(|id| self.transactions.is_committed(id));
                if owner.is_some() && is_committed {
                    self.depart(version, written_out, at, below);
                }
            }
            if let Some(older) = older {
                let older = self.last.versions.remove(older);
                self.depart(older, false, at, below);
            }
        }
        match owner.filter(|_| self.rules.pending_to_overflow) {
            Some(owner) => self.overflow(line, data, owner, at, below),
            None => {
                let version = Version { line, data, tag: None, stamp, counted: None };
                self.depart(version, false, at, below);
                self.last.forget_if_done(line);
            }
        }
        for number in gone {
            let version = self.last.versions.remove(number);
            self.arrived(version.counted, at, below);
        }
        Disposition::Taken
    }

    /// Sends a committed version that leaves the last level to memory, and keeps it until it is
    /// there.
    fn depart(
        &mut self,
        version: Version,
        is_under_way: bool,
        at: Cycle,
        below: &mut Below<KilnEvent>,
    ) {
        let Version { line, data, stamp, .. } = version;
        if self.rules.keep_until_home {
            self.last.leaving.push_back(Version { tag: None, ..version });
        }
        if !is_under_way {
            let write = Write::whole(line, data, Class::HomeWriteBack);
            below.send_evicted(at, write, notify(Written::Home(line, stamp)));
        }
    }

    /// Handles the news that a version that left, or that is to be replaced, is home.
    pub(super) fn home(&mut self, line: Line, stamp: u64, at: Cycle, below: &mut Below<KilnEvent>) {
        self.last.leaving.retain(|version| version.stamp != stamp);
        let Some(state) = self.last.lines.get_mut(&line) else { return };
        let versions = &mut self.last.versions;
        if let Some(held) = state.held.take_if(|held| versions[held.version].stamp == stamp) {
            versions.remove(held.version);
        }
        while let Some(&number) = self.last.lines.get(&line).and_then(|state| state.waiting.front())
        {
            if self.must_wait(number, at, below) {
                return;
            }
            if let Some(state) = self.last.lines.get_mut(&line) {
                state.waiting.pop_front();
            }
            self.enter(number, at, below);
        }
        self.last.forget_if_done(line);
    }

    /// Sends a pending line to the overflow area.
    fn overflow(
        &mut self,
        line: Line,
        data: LineData,
        owner: Owner,
        at: Cycle,
        below: &mut Below<KilnEvent>,
    ) {
        let stamp = self.last.next_stamp();
        let state = self.last.lines.entry(line).or_default();
        let overflow = &mut self.last.overflow;
        let is_own = |&slot: &u32| overflow.get(slot).is_some_and(|slot| slot.about.owner == owner);
        let own = state.slot.filter(is_own);
        let about = About { tag: Some(owner.id), stamp, owner };
        let Some((slot, write)) = overflow.put(own, (line, data), about, &below.shape) else {
            let (slots, raise) = (overflow.slots(), overflow.more_room());
            return below.give_up(format!(
                "more than {slots} pending lines had to leave the last level: raise {raise}"
            ));
        };
        state.slot = Some(slot);
        self.counts.overflowed += 1;
        self.counts.overflow_max = self.counts.overflow_max.max(overflow.used());
        if self.rules.wait_for_overflow {
            self.transactions.expect(owner.core);
        }
        below.send_evicted(at, write, notify(Written::Overflowed(slot)));
    }

    /// Handles the news that a write of a slot is durable.
    pub(super) fn overflowed(&mut self, number: u32, at: Cycle, below: &mut Below<KilnEvent>) {
        let (slot, _) = self.last.overflow.written(number);
        let core = slot.about.owner.core;
        if slot.is_dropped {
            self.last.overflow.drop(number);
        }
        let counted = Some(core).filter(|_| self.rules.wait_for_overflow);
        self.arrived(counted, at, below);
    }

    /// Sends the lines of a committed transaction that are in the overflow area home, one a cycle.
    pub(super) fn bring_home(&mut self, owner: Owner, at: Cycle, below: &mut Below<KilnEvent>) {
        let is_its = |about: &About| about.owner == owner && about.tag.is_some();
        let overflow = &mut self.last.overflow;
        let slots = overflow.iter().filter(|(_, slot)| is_its(&slot.about));
        let slots: Vec<_> = slots.map(|(number, slot)| (number, slot.line, slot.data)).collect();
        for (sent, (number, line, data)) in (0..).zip(slots) {
            let place = overflow::place(&below.shape, number);
            let ready = below.memory.read(at + sent + self.path, place) + self.path;
            let write = Write::whole(line, data, Class::HomeWriteBack);
            below.send(ready, write, notify(Written::OverflowHome(number)));
            if !self.rules.keep_overflow_until_home {
                overflow.drop(number);
            }
        }
    }
}
