//! One memory controller: its write-pending queue (WPQ), and the writes that wait for it.

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::calendar::Queue;
use crate::config::Domain;
use crate::contents::Contents;
use crate::device::{Behind, DramDevice, NextWrite, PmDevice, Taken, Write};
use crate::event::Event;
use crate::image::apply_masked;
use crate::sieve::Sieve;
use crate::units::{CoreId, Cycle, Line, LineData};
use crate::usage::Usage;

/// The part that is told when a write is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify<E> {
    /// None: nothing waits for the write.
    Nobody,
    /// A core, whose next fence waits for the write, and whose place for a flush is taken until a
    /// controller has accepted the write.
    Core(CoreId),
    /// The same of a core's write-combining buffer.
    Combining(CoreId),
    /// The design, which has this event in the same moment: no other event comes between.
    Design(E),
}

/// How a write came to its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Down from the caches, which keep the order of one line's writes.
    Caches,
    /// The same, as a line that had to make room, which keeps a buffer for write-backs until the
    /// controller accepts it.
    Evicted,
    /// By a path of the design's own.
    Direct,
}

/// A write on the way to its controller, and the part that is told when it is durable.
#[derive(Clone, Debug)]
pub(crate) struct Sent<E> {
    pub write: Write,
    pub notify: Notify<E>,
    pub way: Way,
    /// When it reaches its controller, and its number among all.
    pub at: Cycle,
    pub number: u64,
}

/// The place of a write that a controller can accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// The slot that holds an earlier write of its line.
    Joined(usize),
    /// A free slot.
    Free,
    /// No slot: the write has no bytes.
    None,
}

/// An entry of the write-pending queue.
#[derive(Clone, Debug)]
pub(crate) struct Slot<E> {
    pub write: Option<Write>,
    /// What the cells hold of the write's line once they hold all earlier writes of it.
    pub before: LineData,
    /// The parts that are told when the cells hold the write (domain `media`). In other domains
    /// they are told on acceptance.
    pub notify: Vec<Notify<E>>,
    /// When the cells begin and end programming this write, if it was sent to them.
    pub programming: Option<(u64, u64)>,
}

/// The slots that have not been sent to the device, and their lines, oldest first. The slot that is
/// sent next is nearly always among the oldest. So `take` moves the few older ones back by a place
/// and leaves the rest where they are: `first` counts the places that are empty in front.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsent {
    lines: Vec<Line>,
    slots: Vec<usize>,
    sieve: Sieve,
    first: usize,
}

impl Unsent {
    /// Returns the lines of the slots.
    #[inline]
    pub fn lines(&self) -> &[Line] {
        &self.lines[self.first..]
    }

    /// Returns the number of slots.
    #[inline]
    pub fn len(&self) -> usize {
        self.lines.len() - self.first
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&mut self, line: Line, slot: usize) {
        self.lines.push(line);
        self.slots.push(slot);
        self.sieve.add(line.0);
    }

    /// Returns the slot of a line.
    #[inline]
    fn slot_of(&self, line: Line) -> Option<usize> {
        if !self.sieve.may_hold(line.0) {
            return None;
        }
        // Most writes that join an earlier one come soon after it.
        let index = self.lines().iter().rposition(|&unsent| unsent == line)?;
        Some(self.slots[self.first + index])
    }

    /// Removes and returns the slot at `index`.
    pub fn take(&mut self, index: usize) -> usize {
        let at = self.first + index;
        let (line, slot) = (self.lines[at], self.slots[at]);
        // Most often the slot is the oldest, and none has to move.
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

/// How many places may be empty in front before the other slots move up (ours).
const TAKEN_MAX: usize = 64;

/// The fewest late reads at which a controller drops those that have begun (ours).
pub(crate) const LATE_READS: usize = 64;

pub(crate) struct Controller<E> {
    pub pm: PmDevice,
    pub dram: DramDevice,
    pub slots: Vec<Slot<E>>,
    pub free: Vec<usize>,
    /// The slots that have not been sent to the device.
    pub unsent: Unsent,
    pub waiting: VecDeque<Sent<E>>,
    /// The lines for which a design has taken a slot, and those slots.
    pub reserved: Vec<(Line, usize)>,
    pub reads: Queue,
    /// The entries of the queue of writes to volatile memory.
    pub dram_writes: Queue,
    /// For each read that had to wait: when it comes, and when it begins.
    pub late_reads: Vec<(u64, u64)>,
    /// The number of late reads at which the controller drops those that have begun.
    pub late_reads_max: usize,
    pub draining: bool,
    pub drained: u64,
    /// When the controller looks for a write to drain next, if it is going to.
    pub drain_at: Option<Cycle>,
    /// When the device can take another write.
    pub ready_at: Cycle,
    /// Whether `drain_at` is the time at which the chosen write's bank is idle.
    pub waits_for_bank: bool,
    /// The slot whose write the device has taken by the time of the next drain.
    pub leaving: Option<usize>,
    /// The number of a design's lines that wait beside the controller for room.
    pub beside: usize,
    /// The number of evicted lines that are on their way to the controller.
    pub evicted: usize,
    /// The cores that wait for a buffer for write-backs, each with its number in the order in which
    /// cores have begun to wait.
    pub cores_waiting: Vec<(u64, CoreId)>,
    pub designs_waiting: VecDeque<E>,
    /// The controller's record of how busy it is.
    pub usage: Usage,
}

/// A write that has just become durable.
pub struct Accepted<E> {
    /// Its line.
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

    /// Returns how busy the controller was up to `at`.
    pub(crate) fn usage_until(&self, at: Cycle) -> Usage {
        let (pm, dram) = (self.pm.banks.counts.clone(), self.dram.banks.counts.clone());
        self.usage.until(at.0, pm, dram)
    }

    /// Counts anew from `at`, where the measured region begins.
    pub(crate) fn restart_usage(&mut self, at: Cycle) {
        self.usage.restart(at.0);
        self.pm.banks.restart_counts();
        self.dram.banks.restart_counts();
    }

    /// Returns how many buffers for write-backs are taken: by evicted lines on their way, and by
    /// whatever waits for room.
    #[inline]
    pub(crate) fn backlog(&self) -> usize {
        self.evicted + self.waiting.len() + self.beside
    }

    /// Returns the place of a write, if it can be accepted. A write of no bytes, which only follows
    /// others of its line, takes no room.
    pub(crate) fn takes(&self, write: &Write) -> Option<Room> {
        if write.mask == 0 { Some(Room::None) } else { self.room_for(write.line) }
    }

    /// Lets a write of no bytes become durable when all earlier writes of its line are. Returns
    /// whether they are already.
    pub(crate) fn follow(&mut self, line: Line, notify: Notify<E>, domain: Domain) -> bool {
        if domain == Domain::Media
            && let Some(slot) = self.slot_of(line)
        {
            self.slots[slot].notify.push(notify);
            return false;
        }
        true
    }

    /// Returns the slot that holds the newest write of the line: the one that was not sent to the
    /// cells, if there is one, and otherwise the one whose programming ends last.
    pub(crate) fn slot_of(&self, line: Line) -> Option<usize> {
        let holds = |slot: &Slot<E>| slot.write.as_ref().is_some_and(|write| write.line == line);
        let programmed = |slot: usize| self.slots[slot].programming.map(|(_, end)| end);
        self.joins(line).or_else(|| {
            (0..self.slots.len())
                .filter(|&slot| holds(&self.slots[slot]))
                .max_by_key(|&slot| programmed(slot))
        })
    }

    /// Returns the place of a write of the line, if there is one.
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

    /// Records a read that comes and begins only later.
    pub(crate) fn expect_read(&mut self, comes: u64, begins: u64, now: u64) {
        if self.late_reads.len() >= self.late_reads_max {
            self.late_reads.retain(|&(_, begins)| begins > now);
            self.late_reads_max = LATE_READS.max(2 * self.late_reads.len());
        }
        self.late_reads.push((comes, begins));
    }

    /// Returns when every read that has come by `at` has begun. Drops the reads that have begun by
    /// `at`, since no later call asks about an earlier time.
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

    /// Whether the controller has to drain writes before reads.
    pub(crate) fn pressed(&self, high: usize, wpq: usize) -> bool {
        !self.waiting.is_empty() || wpq - self.free.len() >= high
    }

    /// Puts a write into the place that was found for it, and returns its slot. `before` is what
    /// the write's line holds without it.
    #[inline]
    pub(crate) fn place(&mut self, write: &Write, before: &LineData, room: Room) -> usize {
        if let Room::Joined(slot) = room {
            self.pm.meters.wpq_merged += 1;
            let queued = self.slots[slot].write.as_mut().expect("a queued slot is full");
            apply_masked(&mut queued.data, &write.data, write.mask);
            queued.mask |= write.mask;
            queued.class = write.class;
            return slot;
        }
        let slot = self.free.pop().expect("the caller saw room");
        self.unsent.push(write.line, slot);
        self.pm.expect(write.line);
        self.slots[slot].write = Some(write.clone());
        self.slots[slot].before = *before;
        slot
    }

    /// Returns what the cells will hold of a line once they hold all writes of it that are in the
    /// queue; nothing if none is (domain `media`).
    pub(crate) fn programming(&self, line: Line) -> Option<LineData> {
        let slot = &self.slots[self.slot_of(line)?];
        let mut held = slot.before;
        let write = slot.write.as_ref().expect("it holds a write of the line");
        apply_masked(&mut held, &write.data, write.mask);
        Some(held)
    }

    /// Has the controller look for a write to drain at `at`, and not at the time set before.
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

    /// Returns the write to send next. While a full queue is drained, writes go before reads.
    pub(crate) fn choose(&self, at: Cycle, first_ready: bool) -> NextWrite {
        match first_ready {
            true => self.pm.first_ready(at.0, self.unsent.lines(), self.draining),
            false => self.pm.oldest(at.0, self.unsent.lines(), self.draining),
        }
    }

    /// Sends the chosen write to the device. Returns its slot and the device's answer.
    fn send(&mut self, at: Cycle, choice: NextWrite, durable: &Contents) -> (usize, Taken) {
        let Controller { unsent, slots, pm, .. } = self;
        let slot = unsent.take(choice.index);
        let Slot { write, before, .. } = &slots[slot];
        let write = write.as_ref().expect("a queued slot is full");
        let cells = |line| match unsent.slot_of(line) {
            Some(slot) => slots[slot].before,
            None => *durable.line(line),
        };
        let behind = Behind { lines: unsent.lines(), cells: &cells };
        (slot, pm.write(at.0, (write, before), choice, behind, at.0))
    }

    /// Sends all writes to the cells, outside of time, so that they are counted.
    pub(crate) fn settle(&mut self, now: Cycle, durable: &Contents) {
        while !self.unsent.is_empty() {
            let (slot, _) = self.send(now, NextWrite::default(), durable);
            self.slots[slot].write = None;
        }
        self.pm.settle(&|line| *durable.line(line), now.0);
    }

    /// Sends one write to the device and returns when the next one may follow.
    pub(crate) fn send_one(
        &mut self,
        at: Cycle,
        index: usize,
        choice: NextWrite,
        (domain, durable): (Domain, &Contents),
        agenda: &mut Agenda<Event<E>>,
    ) -> Cycle {
        let (slot, taken) = self.send(at, choice, durable);
        match taken.programmed {
            Some(programmed) if domain == Domain::Media => {
                self.slots[slot].programming = Some(programmed);
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

    /// Holds for any slot that is taken, and after any number of slots were taken.
    #[test]
    fn what_is_not_taken_stays_in_order() {
        let (mut unsent, mut all) = (Unsent::default(), Vec::new());
        for turn in 0..5_000 {
            let random = mix(turn);
            // Fill and empty the queue in turns; half of the time, take one of the three oldest.
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
