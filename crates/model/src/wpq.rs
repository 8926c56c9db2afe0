//! One controller's queues: the write-pending queue (WPQ), and the writes that wait for it.

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::calendar::Places;
use crate::config::Domain;
use crate::device::{Choice, Dram, Pm, Write};
use crate::image::apply_masked;
use crate::sieve::Sieve;
use crate::units::{CoreId, Cycle, Line, TxId};
use crate::usage::Usage;

/// An event that may happen at a point in time. `E` is a design's own events.
#[derive(Clone, Copy, Debug)]
pub enum Event<E> {
    /// A write reaches a controller.
    Arrive {
        /// The controller's index.
        controller: usize,
        /// The write's key among the writes under way.
        write: usize,
    },
    /// A controller accepts the first of the writes that wait for room.
    Accept {
        /// The controller's index.
        controller: usize,
    },
    /// A controller may send a write to the device.
    Drain {
        /// The controller's index.
        controller: usize,
    },
    /// A controller may forget a write that the device took.
    Free {
        /// The controller's index.
        controller: usize,
        /// The slot's index.
        slot: usize,
    },
    /// The cells hold a write.
    Programmed {
        /// The controller's index.
        controller: usize,
        /// The slot's index.
        slot: usize,
    },
    /// A core's transaction is acknowledged.
    Acknowledge {
        /// The core.
        core: CoreId,
    },
    /// A core's fence is done; entered only if the order of stores is checked.
    Fenced {
        /// The core.
        core: CoreId,
    },
    /// A core hears that a transaction, and those before it, are durable.
    Announce {
        /// The core.
        core: CoreId,
        /// The transaction.
        tx: TxId,
    },
    /// An event of the design.
    Design(E),
}

/// The part that is told when a write is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify<E> {
    /// No part is told.
    Nobody,
    /// A core, whose next fence waits for it.
    Core(CoreId),
    /// A core, whose next fence waits for it, and whose write-combining buffer is in use until a
    /// controller has accepted it.
    Combining(CoreId),
    /// The design, in the same moment: nothing can come between.
    Design(E),
}

/// A write and the part that waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Sent<E> {
    pub write: Write,
    pub notify: Notify<E>,
    /// Whether the write came from the caches, whose writes of one line stay in order.
    pub cached: bool,
    /// When the write reaches its controller, and its number among all writes.
    pub at: Cycle,
    pub number: u64,
}

/// Where a write that is accepted goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Into a slot that holds an earlier write of the same line.
    Joined(usize),
    /// Into a free slot.
    Free,
    /// Nowhere, since the write has no bytes.
    None,
}

/// An entry of the write-pending queue.
#[derive(Clone, Debug)]
pub(crate) struct Slot<E> {
    pub write: Option<Write>,
    /// The parts that wait for the cells (domain `media`); in other domains they were told on
    /// acceptance.
    pub notify: Vec<Notify<E>>,
    /// When the cells begin and cease to be in the middle of this write, if they have it at all.
    pub programming: Option<(u64, u64)>,
}

/// The slots that have not been sent to the device, and their lines, oldest first. Nearly every
/// slot that is sent is among the oldest, so the older ones move up into its place, and the rest
/// stay where they are behind `first`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsent {
    lines: Vec<Line>,
    slots: Vec<usize>,
    sieve: Sieve,
    first: usize,
}

impl Unsent {
    /// The lines of the slots.
    #[inline]
    pub fn lines(&self) -> &[Line] {
        &self.lines[self.first..]
    }

    /// The number of slots.
    #[inline]
    pub fn len(&self) -> usize {
        self.lines.len() - self.first
    }

    /// Whether there is no slot.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&mut self, line: Line, slot: usize) {
        self.lines.push(line);
        self.slots.push(slot);
        self.sieve.add(line.0);
    }

    /// The slot of a line.
    #[inline]
    fn slot_of(&self, line: Line) -> Option<usize> {
        if !self.sieve.may_hold(line.0) {
            return None;
        }
        // Most writes that join another one come soon after it.
        let index = self.lines().iter().rposition(|&unsent| unsent == line)?;
        Some(self.slots[self.first + index])
    }

    /// Takes out the slot at `index`.
    pub fn take(&mut self, index: usize) -> usize {
        let at = self.first + index;
        let (line, slot) = (self.lines[at], self.slots[at]);
        // Most often it is the oldest slot, and there is none to move.
        for older in (self.first..at).rev() {
            self.lines[older + 1] = self.lines[older];
            self.slots[older + 1] = self.slots[older];
        }
        self.first += 1;
        if self.is_empty() || self.first == TAKEN_MAX {
            self.lines.drain(..self.first);
            self.slots.drain(..self.first);
            self.first = 0;
        }
        self.sieve.remove(line.0);
        slot
    }
}

/// The number of emptied places in front before the remaining slots move up (ours).
const TAKEN_MAX: usize = 64;

/// The number of late reads that are remembered before those that have begun are forgotten.
const LATE_READS: usize = 64;

pub(crate) struct Controller<E> {
    pub pm: Pm,
    pub dram: Dram,
    pub slots: Vec<Slot<E>>,
    pub free: Vec<usize>,
    /// The slots that have not been sent to the device.
    pub unsent: Unsent,
    pub waiting: VecDeque<Sent<E>>,
    /// Lines for which a design has taken a slot, and those slots.
    pub reserved: Vec<(Line, usize)>,
    pub reads: Places,
    /// Reads that had to wait: when they come, and when they begin.
    pub late_reads: Vec<(u64, u64)>,
    pub draining: bool,
    pub drained: u64,
    /// When the controller looks for a write to drain, if it is to.
    pub drain_at: Option<Cycle>,
    /// When the device can take another write.
    pub ready_at: Cycle,
    /// Whether the controller looks at that time because no write's bank is idle before.
    pub waits_for_bank: bool,
    /// A slot whose write the device has taken by the time of the next drain.
    pub leaving: Option<usize>,
    /// The number of a design's lines that wait beside the controller for room.
    pub beside: usize,
    pub cores_waiting: Vec<CoreId>,
    pub designs_waiting: VecDeque<E>,
    /// How busy the controller is.
    pub usage: Usage,
}

/// A write that has just become durable.
pub struct Accepted<E> {
    /// The line that was written.
    pub line: Line,
    /// The part that is told.
    pub notify: Notify<E>,
}

impl<E: Copy> Controller<E> {
    /// Notes that slots were taken or given back at `at`.
    #[inline]
    pub(crate) fn note_slots(&mut self, at: Cycle) {
        let taken = self.slots.len() - self.free.len();
        self.usage.wpq.change(at.0, taken as u64);
    }

    /// How busy the controller was up to `at`.
    pub(crate) fn usage_until(&self, at: Cycle) -> Usage {
        let (pm, dram) = (self.pm.bank_use().clone(), self.dram.bank_use().clone());
        self.usage.until(at.0, pm, dram)
    }

    /// Begins to count again when the measured region begins.
    pub(crate) fn restart_usage(&mut self, at: Cycle) {
        self.usage.restart(at.0);
        self.pm.restart_bank_use();
        self.dram.restart_bank_use();
    }

    /// The number of writes that wait for room.
    #[inline]
    pub(crate) fn backlog(&self) -> usize {
        self.waiting.len() + self.beside
    }

    /// Where a write goes if it can be accepted. A write of no bytes, which follows those of its
    /// line, takes no room.
    pub(crate) fn takes(&self, write: &Write) -> Option<Room> {
        if write.mask == 0 { Some(Room::None) } else { self.room_for(write.line) }
    }

    /// Whether a write of no bytes is durable now, which it is as soon as the earlier writes of its
    /// line are. If not, `notify` is told with them.
    pub(crate) fn follow(&mut self, line: Line, notify: Notify<E>, domain: Domain) -> bool {
        if domain == Domain::Media
            && let Some(slot) = self.slot_of(line)
        {
            self.slots[slot].notify.push(notify);
            return false;
        }
        true
    }

    /// The slot that holds the newest write of the line: the one that is not yet on its way to the
    /// cells, if there is one, or else the one that the cells will hold last.
    pub(crate) fn slot_of(&self, line: Line) -> Option<usize> {
        let holds = |slot: &Slot<E>| slot.write.as_ref().is_some_and(|write| write.line == line);
        let programmed = |slot: usize| self.slots[slot].programming.map(|(_, end)| end);
        self.joins(line).or_else(|| {
            (0..self.slots.len())
                .filter(|&slot| holds(&self.slots[slot]))
                .max_by_key(|&slot| programmed(slot))
        })
    }

    /// Where a write of the line goes, if there is room.
    #[inline]
    pub(crate) fn room_for(&self, line: Line) -> Option<Room> {
        match self.joins(line) {
            Some(slot) => Some(Room::Joined(slot)),
            None => (!self.free.is_empty()).then_some(Room::Free),
        }
    }

    #[inline]
    pub(crate) fn joins(&self, line: Line) -> Option<usize> {
        self.unsent.slot_of(line)
    }

    pub(crate) fn is_reserved(&self, line: Line) -> bool {
        self.reserved.iter().any(|&(other, _)| other == line)
    }

    pub(crate) fn holds_whole(&self, line: Line) -> bool {
        self.joins(line).is_some_and(|slot| {
            self.slots[slot].write.as_ref().is_some_and(|write| write.mask == u64::MAX)
        })
    }

    /// Notes a read that comes at `comes` and begins later.
    pub(crate) fn expect_read(&mut self, comes: u64, begins: u64, now: u64) {
        if self.late_reads.len() >= LATE_READS {
            self.late_reads.retain(|&(_, begins)| begins > now);
        }
        self.late_reads.push((comes, begins));
    }

    /// Returns when every read that has come by `at` has begun. Reads that have begun by `at` are
    /// forgotten: no later call asks about an earlier time.
    pub(crate) fn reads_until(&mut self, at: u64) -> u64 {
        let mut until = 0;
        self.late_reads.retain(|&(comes, begins)| {
            if comes <= at {
                until = until.max(begins);
            }
            begins > at
        });
        until
    }

    /// Whether writes are to be drained before reads.
    pub(crate) fn pressed(&self, high: usize, wpq: usize) -> bool {
        !self.waiting.is_empty() || wpq - self.free.len() >= high
    }

    /// Puts a write where there is room for it; returns its slot.
    #[inline]
    pub(crate) fn place(&mut self, write: &Write, room: Room) -> usize {
        if let Room::Joined(slot) = room {
            self.pm.meters.wpq_merged += 1;
            let queued = self.slots[slot].write.as_mut().expect("a queued slot is full");
            apply_masked(&mut queued.data, &write.data, write.mask);
            queued.mask |= write.mask;
            return slot;
        }
        let slot = self.free.pop().expect("the caller saw room");
        self.unsent.push(write.line, slot);
        self.pm.expect(write.line);
        self.slots[slot].write = Some(write.clone());
        slot
    }

    /// Has the controller look at `at` for a write to drain, instead of at the time that was set
    /// before.
    pub(crate) fn look_again(
        &mut self,
        at: Cycle,
        index: usize,
        for_bank: bool,
        agenda: &mut Agenda<Event<E>>,
    ) {
        self.drain_at = Some(at);
        self.waits_for_bank = for_bank;
        agenda.enter(at, Event::Drain { controller: index });
    }

    /// Chooses the write that is sent next. While a full queue is drained, writes go before reads.
    pub(crate) fn choose(&self, at: Cycle, first_ready: bool) -> Choice {
        match first_ready {
            true => self.pm.first_ready(at.0, self.unsent.lines(), self.draining),
            false => self.pm.oldest(at.0, self.unsent.lines(), self.draining),
        }
    }

    /// Sends one write to the device and returns when the next one may follow.
    pub(crate) fn send_one(
        &mut self,
        at: Cycle,
        index: usize,
        choice: Choice,
        domain: Domain,
        agenda: &mut Agenda<Event<E>>,
    ) -> Cycle {
        let slot = self.unsent.take(choice.index);
        let entry = &mut self.slots[slot];
        let write = entry.write.as_ref().expect("a queued slot is full");
        let taken = self.pm.write(at.0, write, choice, self.unsent.lines(), at.0);
        match taken.programmed {
            Some(programmed) if domain == Domain::Media => {
                entry.programming = Some(programmed);
                agenda.enter(Cycle(programmed.1), Event::Programmed { controller: index, slot });
            }
            _ if taken.free == taken.next && taken.free > at.0 => self.leaving = Some(slot),
            _ => {
                let free = Event::Free { controller: index, slot };
                agenda.enter(Cycle(taken.free).max(at), free);
            }
        }
        Cycle(taken.next).max(at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::mix;

    /// Whichever is taken, and however many were taken before.
    #[test]
    fn what_is_not_taken_stays_in_order() {
        let (mut unsent, mut all) = (Unsent::default(), Vec::new());
        for turn in 0..5_000 {
            let random = mix(turn);
            // Full and empty again, and mostly among the oldest.
            if all.len() < 40 && random % 200 < 90 + turn / 500 % 2 * 20 {
                let line = Line(random >> 32 & 0xff);
                if unsent.slot_of(line).is_none() {
                    unsent.push(line, turn as usize);
                    all.push((line, turn as usize));
                }
            } else if !all.is_empty() {
                let most = if random >> 16 & 1 == 0 { all.len() } else { 3.min(all.len()) };
                let index = (random >> 20) as usize % most;
                assert_eq!(unsent.take(index), all.remove(index).1);
            }
            assert!(unsent.lines().iter().eq(all.iter().map(|(line, _)| line)));
            assert!((0..256).map(Line).all(|line| {
                let slot = all.iter().find(|(other, _)| *other == line).map(|(_, slot)| *slot);
                unsent.slot_of(line) == slot
            }));
        }
    }
}
