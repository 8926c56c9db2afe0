//! Draining: when the oldest entry of a persist buffer leaves, and what the controllers do with the
//! entries that have come.

use model::controller::Notify;
use model::device::Write;
use model::units::{CoreId, Cycle};

use super::buffer::{Blocked, Buffer, Entry, State, Wait, What};
use super::queue::{Marker, Ordered, Queued};
use super::{Dpo, DpoEvent, Floor};

impl Dpo {
    /// Has a buffer look for an entry that may leave, if it has one.
    pub(super) fn kick(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        let Some(index) = self.next(core, below) else { return };
        let buffer = &mut self.buffers[core];
        let at = at.max(buffer.next_send).max(buffer.entries[index].leaves);
        if buffer.drain_at.is_none_or(|due| due > at) {
            buffer.drain_at = Some(at);
            below.at(at, DpoEvent::Drain(core));
        }
    }

    pub(super) fn drain(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        if self.buffers[core].drain_at != Some(at) {
            // There was reason to look earlier, so this look is out of date.
            return;
        }
        self.buffers[core].drain_at = None;
        let Some(index) = self.next(core, below) else { return };
        let controller = controller_of(&self.buffers[core].entries[index], below);
        let buffer = &mut self.buffers[core];
        let entry = &mut buffer.entries[index];
        // The entry may have taken in a store that leaves later.
        if entry.leaves <= at {
            entry.state = State::Sent;
            buffer.waiting -= 1;
            buffer.next_send = at + 1;
            self.queue.reserve(controller);
            below.at(at + self.path + self.frontend, DpoEvent::Arrived(core, entry.id));
        }
        self.kick(core, at, below);
    }

    /// The entry of a buffer that leaves next, if it waits for nothing but its core.
    fn next(&mut self, core: CoreId, below: &Floor) -> Option<usize> {
        let (index, entry) = self.candidate(core)?;
        let drained = |&(on, id): &(CoreId, u64)| self.buffers[on].drained >= id;
        let waits = if self.rules.wait_for_dependences && !entry.after.iter().all(drained) {
            Some(Blocked::Dependences)
        } else if !self.queue.has_room(controller_of(entry, below)) {
            Some(Blocked::Room)
        } else {
            None
        };
        let Some(why) = waits else { return Some(index) };
        let blocked = Some((entry.id, why));
        if self.buffers[core].blocked != blocked {
            self.buffers[core].blocked = blocked;
            self.counts.waits += u64::from(why == Blocked::Dependences);
            self.counts.queue_full += u64::from(why == Blocked::Room);
        }
        None
    }

    /// The oldest entry of a buffer that has not left, with its place.
    fn candidate(&self, core: CoreId) -> Option<(usize, &Entry)> {
        let Buffer { entries, waiting, .. } = &self.buffers[core];
        let held = self.params.entries as usize;
        if self.rules.first_in_first_out {
            // The entries that have left are older.
            let index = entries.len() - waiting;
            return entries.get(index).filter(|_| index < held).map(|entry| (index, entry));
        }
        let entries = entries.iter().take(held).enumerate();
        let mut waiting = entries.filter(|(_, entry)| entry.state == State::Waiting);
        let oldest = waiting.next()?;
        if matches!(oldest.1.what, What::Write { .. }) {
            return Some(oldest);
        }
        let write = waiting.find(|(_, entry)| matches!(entry.what, What::Write { .. }));
        Some(write.unwrap_or(oldest))
    }

    /// Adds an entry to the controllers' order; the buffers will hear of it.
    pub(super) fn arrived(&mut self, core: CoreId, id: u64, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        let index = buffer.position(id);
        let entry = &mut buffer.entries[index];
        entry.state = State::Arrived;
        let what = match &entry.what {
            What::Write { line, data, class, .. } => Ordered::Write {
                write: Write::whole(*line, *data, *class),
                controller: below.memory.controller_of(*line) as u8,
                started: false,
            },
            What::Fence => Ordered::Marker(Marker::default()),
        };
        self.queue.entries.push_back(Queued { core, id, what });
        below.at(at + self.path, DpoEvent::Heard(core, id));
        self.go_on(at, below);
    }

    /// Removes an entry that all buffers hear has drained, and lets others go on that waited for
    /// it.
    pub(super) fn heard(&mut self, core: CoreId, id: u64, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        buffer.remove(id);
        let has_room = buffer.entries.len() as u64 <= self.params.entries;
        if has_room && buffer.waits == Some(Wait::Room) {
            buffer.waits = None;
            below.wake(core, at);
        }
        self.kick_all(at, below);
    }

    /// Does what the controllers can do now that something has changed there.
    pub(super) fn go_on(&mut self, at: Cycle, below: &mut Floor) {
        let mut found = std::mem::take(&mut self.found);
        self.queue.look(&self.rules, &mut found);
        // What is in the ordered queue has passed the front end.
        let reached = Cycle(at.since(Cycle(self.frontend)));
        for (core, id, write) in found.starts.drain(..) {
            below.send_direct(reached, write, Notify::Design(DpoEvent::Durable(core, id)));
        }
        for (core, id, controller) in found.reports.drain(..) {
            below.at(at + self.path, DpoEvent::Reported(core, id, controller));
        }
        for (core, id) in found.retired.drain(..) {
            below.at(at + self.path, DpoEvent::Room(None));
            if matches!(self.buffers[core].waits, Some(Wait::Sync(waits, _)) if waits == id) {
                below.at(at + self.path, DpoEvent::Synced(core));
            }
        }
        self.found = found;
    }

    /// Has the buffers look for room, beginning with another one each time.
    pub(super) fn kick_all(&mut self, at: Cycle, below: &mut Floor) {
        let cores = self.buffers.cores();
        self.turn = (self.turn + 1) % cores;
        for place in 0..cores {
            self.kick(CoreId((self.turn + place) % cores), at, below);
        }
    }
}

/// The controller of an entry's line; none for a fence, which goes to all.
fn controller_of(entry: &Entry, below: &Floor) -> Option<u8> {
    match &entry.what {
        What::Write { line, .. } => Some(below.memory.controller_of(*line) as u8),
        What::Fence => None,
    }
}
