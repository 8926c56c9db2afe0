//! LAD's overflow: a queue that is full of speculative entries writes the oldest in place, after
//! the line's old data have been logged.

use std::collections::VecDeque;

use model::design::Below;
use model::device::Write;
use model::units::{CoreId, Cycle};

use super::{Entry, Lad, LadEvent};

/// An entry that is being written in place; a register holds it meanwhile.
pub struct Spill {
    pub entry: Entry,
    /// The slot of its undo entry, until the undo entry counts.
    slot: Option<u32>,
    /// The writes that are left, each with the step that it completes.
    writes: VecDeque<(Write, Step)>,
    /// Whether the entry still has its slot in the queue, which its first write takes.
    reserved: bool,
    /// Whether its transaction has committed meanwhile.
    committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    OldData,
    Header,
    InPlace,
}

impl Spill {
    /// Notes that the transaction has committed: nothing is to be revoked any more.
    pub fn commit(&mut self) {
        self.committed = true;
        self.writes.retain(|&(_, step)| step == Step::InPlace);
    }
}

/// A controller's undo entries: which of them count, and which are free.
pub struct Undo {
    valid: Vec<u8>,
    /// The entries in use, each with its core.
    live: Vec<(CoreId, u32)>,
    /// Free entries, longest free first. As in a log, a new entry does not take the place of the
    /// entry that was dropped last: it would merge with that one in the queue and in the on-DIMM
    /// buffer, so that few would reach the cells.
    free: VecDeque<u32>,
    /// The sequence number of the next entry.
    sequence: u64,
}

impl Undo {
    /// An undo area of `slots` free entries.
    pub fn new(slots: usize) -> Undo {
        Undo {
            valid: vec![0; slots.div_ceil(8)],
            live: Vec::new(),
            free: (0..slots as u32).collect(),
            sequence: 0,
        }
    }

    /// Whether no entry counts.
    pub fn is_empty(&self) -> bool {
        self.valid.iter().all(|&bits| bits == 0)
    }

    /// The valid bits.
    pub fn valid(&self) -> &[u8] {
        &self.valid
    }

    fn keep(&mut self, core: CoreId, slot: u32) {
        self.valid[slot as usize / 8] |= 1 << (slot % 8);
        self.live.push((core, slot));
    }

    /// Forgets the entries of a core's transaction, and returns how many there were.
    pub fn drop_of(&mut self, core: CoreId, clear: bool) -> u64 {
        let mut dropped = 0;
        for (_, slot) in self.live.extract_if(.., |&mut (owner, _)| owner == core) {
            if clear {
                self.valid[slot as usize / 8] &= !(1 << (slot % 8));
            }
            self.free.push_back(slot);
            dropped += 1;
        }
        dropped
    }
}

impl Lad {
    /// Takes the oldest entry out of the queue, and has its line's old data read from memory first.
    pub(super) fn begin_spill(&mut self, number: usize, at: Cycle, below: &mut Below<LadEvent>) {
        let queue = &mut self.queues[number];
        let Some(slot) = queue.undo.free.pop_front() else {
            return below.give_up(format!(
                "the undo area of a controller is full with {} lines: raise it with {}",
                queue.region.slots(),
                queue.region.more_room()
            ));
        };
        let entry = queue.entries.remove(0);
        let read = below.memory.read_beneath(at, entry.line);
        let writes = VecDeque::new();
        let slot = Some(slot);
        queue.spill = Some(Spill { entry, slot, writes, reserved: true, committed: false });
        self.counts.spilled += 1;
        below.at(read, LadEvent::Spill(queue.number));
    }

    pub(super) fn go_on_spilling(&mut self, number: usize, at: Cycle, below: &mut Below<LadEvent>) {
        let queue = &mut self.queues[number];
        let spill = queue.spill.as_mut().expect("a spill is under way");
        if spill.reserved {
            let place = (spill.entry.write(), Step::InPlace);
            if let Some(slot) = spill.slot.filter(|_| !spill.committed) {
                let old = below.memory.durable().line(spill.entry.line);
                let [data, header] =
                    queue.region.undo(number, slot, old, &spill.entry, queue.undo.sequence);
                queue.undo.sequence += 1;
                spill.writes.extend([(data, Step::OldData), (header, Step::Header)]);
            }
            if self.rules.undo_before_spill {
                spill.writes.push_back(place);
            } else {
                spill.writes.push_front(place);
            }
        }
        let Some((write, step)) = spill.writes.front().cloned() else {
            // The writes that were left are not needed any more.
            return self.end_spill(number, at, below);
        };
        if std::mem::take(&mut spill.reserved) {
            below.unreserve(at, spill.entry.line, Some(write));
        } else if !below.give_if_room(at, &write) {
            below.memory.when_room(write.line, LadEvent::Spill(queue.number));
            return;
        }
        if let Some(slot) = spill.slot.take_if(|_| step == Step::Header) {
            queue.undo.keep(spill.entry.core, slot);
        }
        spill.writes.pop_front();
        if spill.writes.is_empty() {
            self.end_spill(number, at, below);
        } else {
            below.at(at + 1, LadEvent::Spill(queue.number));
        }
    }

    fn end_spill(&mut self, number: usize, at: Cycle, below: &mut Below<LadEvent>) {
        let queue = &mut self.queues[number];
        let spill = queue.spill.take().expect("a spill is under way");
        queue.undo.free.extend(spill.slot);
        if spill.committed {
            self.recorded(spill.entry.core, at, below);
        }
        self.look(number, at, below);
    }
}
