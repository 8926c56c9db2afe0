//! LAD at a controller: the speculative entries of its queue, and the lines that wait for room in
//! it.

use std::collections::VecDeque;

use model::design::{Below, Gasp, Shape};
use model::device::Write;
use model::image::PowerLoss;
use model::meters::Class;
use model::units::{CoreId, Cycle, PerCore};

use super::region::Region;
use super::spill::{Spill, Undo};
use super::{Entry, Lad, LadEvent};

/// One controller's queue.
pub struct Queue {
    pub number: u8,
    pub region: Region,
    /// Slots of the write-pending queue.
    pub slots: usize,
    /// Speculative entries, each in a reserved slot, oldest first.
    pub entries: Vec<Entry>,
    /// The number of the last committed transaction of each thread.
    pub recorded: PerCore<u16>,
    /// Lines that have arrived and wait for room.
    pub arrived: VecDeque<usize>,
    /// How many of these, the first ones, have been counted as waiting.
    counted: usize,
    /// Whether the queue is to be told when there may be room.
    pub asked: bool,
    pub spill: Option<Spill>,
    pub undo: Undo,
}

impl Queue {
    /// The empty queue of a controller.
    pub fn new(number: u8, shape: &Shape, region: Region) -> Queue {
        let undo = Undo::new(region.slots());
        Queue {
            number,
            region,
            slots: shape.config.controller.wpq as usize,
            entries: Vec::new(),
            recorded: PerCore::new(shape.cores, |_| 0),
            arrived: VecDeque::new(),
            counted: 0,
            asked: false,
            spill: None,
            undo,
        }
    }

    /// Whether the queue holds nothing that recovery would have to judge.
    pub fn is_at_rest(&self) -> bool {
        self.entries.is_empty() && self.spill.is_none() && self.undo.is_empty()
    }

    /// Whether every slot holds a speculative entry.
    fn is_full(&self) -> bool {
        self.entries.len() == self.slots
    }

    /// Saves the queue with ADR's energy.
    pub fn save(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        let spilling = self.spill.as_ref().map(|spill| &spill.entry);
        let entries = self.entries.iter().chain(spilling);
        self.region.save(self.number, &self.recorded, self.undo.valid(), entries, gasp)
    }
}

impl Entry {
    /// The write that the entry becomes.
    pub fn write(&self) -> Write {
        Write::whole(self.line, self.data, Class::Data)
    }
}

/// What became of a line that arrived.
enum Taken {
    /// The queue has taken the line.
    Yes,
    /// The line waits; the queue is told when it is to look again.
    No,
    /// The line waits until the oldest entry has been written in place.
    Full,
}

impl Lad {
    /// Takes the lines that have arrived, in order, as far as there is room.
    pub(super) fn look(&mut self, number: usize, at: Cycle, below: &mut Below<LadEvent>) {
        let mut is_full = false;
        while self.queues[number].spill.is_none() {
            let Some(&message) = self.queues[number].arrived.front() else { break };
            match self.take(number, message, at, below) {
                Taken::Yes => (),
                Taken::No => break,
                Taken::Full => {
                    is_full = true;
                    break;
                }
            }
            let queue = &mut self.queues[number];
            queue.arrived.pop_front();
            queue.counted = queue.counted.saturating_sub(1);
            let message = self.messages.remove(message);
            if message.counted {
                self.acknowledge(message.entry.core, at, below);
            }
        }
        let queue = &mut self.queues[number];
        let waiting = queue.arrived.len();
        self.counts.room += (waiting - std::mem::replace(&mut queue.counted, waiting)) as u64;
        below.wait_beside(number, waiting, at);
        if is_full {
            return self.begin_spill(number, at, below);
        }
        let waits = |&(line, arrives): &(_, Cycle)| {
            arrives <= at && below.memory.controller_of(line) == number
        };
        if queue.spill.is_none() && queue.is_full() && self.write_backs.iter().any(waits) {
            self.counts.pressed += 1;
            self.begin_spill(number, at, below);
        }
    }

    /// Takes one line, if the queue has room for it.
    fn take(
        &mut self,
        number: usize,
        message: usize,
        at: Cycle,
        below: &mut Below<LadEvent>,
    ) -> Taken {
        let entry = self.messages[message].entry;
        let queue = &mut self.queues[number];
        let own = |other: &&mut Entry| other.line == entry.line && other.core == entry.core;
        if let Some(older) = queue.entries.iter_mut().find(own) {
            if self.rules.replace_own_entry {
                *older = entry;
            }
            below.memory.count_replaced(&entry.write());
            self.counts.replaced += 1;
            return Taken::Yes;
        }
        if !self.rules.keep_committed_write
            && below.memory.is_queued(entry.line)
            && below.give_if_room(at, &entry.write())
        {
            return Taken::Yes;
        }
        // Nothing is reserved while an ordinary write-back waits, so an entry never overtakes an
        // older write-back of its line.
        if below.reserve(at, entry.line) {
            queue.entries.push(entry);
            return Taken::Yes;
        }
        if queue.is_full() && self.rules.spill_when_full {
            return Taken::Full;
        }
        if !queue.asked {
            queue.asked = true;
            below.memory.when_room(entry.line, LadEvent::Look(queue.number));
        }
        Taken::No
    }

    /// Records a commit of which a controller is told. The transaction's entries are ordinary
    /// writes from now on.
    pub(super) fn commit_arrives(
        &mut self,
        core: CoreId,
        number: usize,
        serial: u16,
        at: Cycle,
        below: &mut Below<LadEvent>,
    ) {
        let queue = &mut self.queues[number];
        queue.recorded[core] = serial;
        let own = |entry: &Entry| entry.core == core || !self.rules.commit_own_entries;
        for entry in queue.entries.extract_if(.., |entry| own(entry)) {
            below.unreserve(at, entry.line, Some(entry.write()));
            self.counts.committed += 1;
        }
        self.counts.undo_dropped += queue.undo.drop_of(core, self.rules.drop_undo_at_commit);
        match &mut queue.spill {
            Some(spill) if spill.entry.core == core => {
                // The controller answers after the spilled line has been written.
                spill.commit();
                self.counts.spilled_late += 1;
            }
            _ => self.recorded(core, at, below),
        }
        self.look(number, at, below);
    }
}
