//! Checkpoints: what the journal says of slots goes to the persistent SSP cache, and the journal's
//! tail moves on (MICRO'19 section 3.3; specs/remapping.md 1.4).

use model::controller::Notify;
use model::design::Below;
use model::device::Write;
use model::meters::Class;
use model::units::{Cycle, Line};

use crate::ssp::{Ssp, SspEvent};

/// A checkpoint under way.
pub struct Checkpoint {
    /// Where the tail will be.
    until: u64,
    /// Lines of entries that are not durable.
    left: u64,
}

impl Ssp {
    /// Begins a checkpoint if the ring is full enough, or if a group waits for room.
    pub(super) fn consider_checkpoint(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        let is_due = self.journal.used_percent() >= self.params.checkpoint_percent;
        if self.checkpoint.is_some() || !is_due && self.stalled.is_empty() {
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
        let left = lines.len() as u64;
        for (line, sent) in lines.into_iter().zip(0..) {
            let write =
                Write { line, data: below.line(line), mask: u64::MAX, class: Class::Checkpoint };
            below.send(at + sent, write, Notify::Design(SspEvent::Checkpointed));
        }
        self.counts.checkpoints += 1;
        self.checkpoint = Some(Checkpoint { until, left: left + 1 });
        if !self.rules.tail_after_entries {
            self.move_tail(at, below);
        }
        below.at(at, SspEvent::Checkpointed);
    }

    /// Writes the entries of the slots that the journal touches up to a position, as the groups
    /// that count left them, and returns their lines.
    fn write_entries(&mut self, until: u64, below: &mut Below<SspEvent>) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.rules.checkpoint_what_counts {
            for slot in self.layout.all_slots() {
                self.journal.kept[usize::from(slot.0)] = self.slots[slot].kept;
                self.journal.touched.push_back((until, slot));
            }
        }
        while let Some(&(end, slot)) = self.journal.touched.front()
            && end <= until
        {
            self.journal.touched.pop_front();
            let kept = self.journal.kept[usize::from(slot.0)];
            for (word, value) in self.layout.entry_words(slot, &kept) {
                below.view.set_word(word, value);
                lines.push(word.line());
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// A line of entries is durable, or all have been sent: with the last, the tail moves.
    pub(super) fn checkpointed(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        let checkpoint = self.checkpoint.as_mut().expect("a checkpoint is under way");
        checkpoint.left -= 1;
        if checkpoint.left == 0 && self.rules.tail_after_entries {
            self.move_tail(at, below);
        }
    }

    fn move_tail(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        let until = self.checkpoint.as_ref().expect("a checkpoint is under way").until;
        let word = self.layout.tail();
        below.view.set_word(word, until);
        let line = word.line();
        let write =
            Write { line, data: below.line(line), mask: u64::MAX, class: Class::Checkpoint };
        below.send(at, write, Notify::Design(SspEvent::TailMoved));
    }

    /// The tail is durable: the ring has room again.
    pub(super) fn tail_moved(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        let checkpoint = self.checkpoint.take().expect("a checkpoint is under way");
        self.journal.tail = checkpoint.until;
        while let Some(what) = self.stalled.pop_front() {
            if !self.fits(&what) {
                self.stalled.push_front(what);
                break;
            }
            self.append(what, at, below);
        }
        self.consider_checkpoint(at, below);
    }
}
