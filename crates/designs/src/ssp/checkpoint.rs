//! Checkpoints: what the journal says of slots goes to the persistent SSP cache, and the journal's
//! tail moves on (MICRO'19 section 3.3; when one begins is ours).

use std::collections::VecDeque;

use model::design::Below;
use model::image::Image;
use model::units::{Cycle, Line};

use crate::parts::journal::Record;
use crate::ssp::layout::{Kept, Layout, SlotId};
use crate::ssp::record::{Entry, apply};
use crate::ssp::{Ssp, SspEvent};

/// The slots as the groups that count say, which is what recovery would make of them.
pub struct Known {
    /// What is kept of each slot.
    kept: Vec<Kept>,
    /// Slots of the groups that are not checkpointed, each with the end of its group.
    touched: VecDeque<(u64, SlotId)>,
}

impl Known {
    /// The slots of a new machine.
    pub fn new(layout: &Layout) -> Known {
        let kept = layout.all_slots().map(|slot| layout.first_kept(slot)).collect();
        Known { kept, touched: VecDeque::new() }
    }

    /// The slots that an image has after recovery.
    pub fn boot(image: &Image<'_>, layout: &Layout) -> Known {
        let mut known = Known::new(layout);
        for slot in layout.written_slots(image) {
            known.kept[slot.0 as usize] = layout.read_entry(slot, image);
        }
        known
    }

    /// Takes in a record that counts, of a group that ends at `end`.
    pub fn learn(&mut self, end: u64, record: Record) {
        if let Some(slot) = apply(Entry::decode(record), true, &mut self.kept) {
            self.touched.push_back((end, slot));
        }
    }

    /// Takes the slots that the groups up to a position touched, some of them several times.
    fn take_touched(&mut self, until: u64) -> Vec<SlotId> {
        let count = self.touched.iter().take_while(|&&(end, _)| end <= until).count();
        self.touched.drain(..count).map(|(_, slot)| slot).collect()
    }
}

impl Ssp {
    /// Begins a checkpoint if the ring is full enough, or if a group waits for room.
    pub(super) fn consider_checkpoint(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        let is_stalled = !self.stalled.is_empty();
        if !self.journal.wants_checkpoint(self.params.checkpoint_percent, is_stalled) {
            return;
        }
        let until = if self.rules.checkpoint_what_counts {
            self.journal.durable
        } else {
            self.journal.next()
        };
        // A switch stays in the journal until the page table says the same.
        let first_swap = self.swaps.iter().map(|&(start, _)| start).min();
        let held = first_swap.filter(|_| self.rules.checkpoint_after_page_table);
        let until = held.map_or(until, |start| until.min(start));
        if until <= self.journal.tail {
            return;
        }
        let lines = self.write_entries(until, below);
        self.journal.begin_checkpoint(until, lines, at, SspEvent::Checkpointed, below);
        if !self.rules.tail_after_entries {
            self.journal.move_tail(at, SspEvent::TailMoved, below);
        }
    }

    /// Writes the entries of the slots that the journal touches up to a position, as the groups
    /// that count left them, and returns their lines.
    fn write_entries(&mut self, until: u64, below: &mut Below<SspEvent>) -> Vec<Line> {
        if !self.rules.checkpoint_what_counts {
            for slot in self.layout.all_slots() {
                self.known.kept[slot.0 as usize] = self.slots[slot].kept;
                self.known.touched.push_back((until, slot));
            }
        }
        let mut slots = self.known.take_touched(until);
        slots.sort_unstable();
        slots.dedup();
        let mut lines = Vec::new();
        for slot in slots {
            let kept = self.known.kept[slot.0 as usize];
            for (word, value) in self.layout.entry_words(slot, &kept) {
                below.view.set_word(word, value);
                lines.push(word.line());
            }
        }
        // Entries lie in the order of their slots.
        lines.dedup();
        lines
    }

    /// Notes that the tail is durable: the ring has room again.
    pub(super) fn tail_moved(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        self.journal.tail_moved();
        while let Some(group) = self.stalled.pop_front() {
            if !self.fits(&group) {
                self.stalled.push_front(group);
                break;
            }
            self.append(group, at, below);
        }
        self.consider_checkpoint(at, below);
    }
}
