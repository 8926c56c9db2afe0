//! Checkpoints: what the journal says of pages goes to the page table, and the journal's tail moves
//! on.

use model::design::Below;
use model::units::{Cycle, Line};

use crate::parts::page_table::PageTable;
use crate::shadow_paging::{ShadowEvent, ShadowPaging};

impl ShadowPaging {
    /// Begins a checkpoint if the ring is full enough, or if a group waits for room.
    pub(super) fn consider_checkpoint(&mut self, at: Cycle, below: &mut Below<ShadowEvent>) {
        let is_stalled = !self.stalled.is_empty();
        if !self.journal.wants_checkpoint(self.params.checkpoint_percent, is_stalled) {
            return;
        }
        let until = match self.rules.checkpoint_what_counts {
            true => self.journal.durable,
            false => self.journal.next(),
        };
        if until <= self.journal.tail {
            return;
        }
        let lines = self.entries(until, below);
        self.journal.begin_checkpoint(until, lines, at, ShadowEvent::Checkpointed, below);
        if !self.rules.tail_after_entries {
            self.journal.move_tail(at, ShadowEvent::TailMoved, below);
        }
    }

    /// The lines of the page table that the journal changes up to a position. The caches have them:
    /// a walk finds a page's frame in the table as soon as its group counts.
    fn entries(&mut self, until: u64, below: &mut Below<ShadowEvent>) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.rules.checkpoint_what_counts {
            for (&page, shadow) in &self.shadows {
                let entry = self.layout.table.entry(page);
                below.view.set_word(entry, PageTable::value(page, shadow.frame));
                lines.push(entry.line());
            }
        }
        while let Some(&(end, page)) = self.switched.front()
            && end <= until
        {
            self.switched.pop_front();
            lines.push(self.layout.table.entry(page).line());
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Notes that the tail is durable: the ring has room again.
    pub(super) fn tail_moved(&mut self, at: Cycle, below: &mut Below<ShadowEvent>) {
        self.journal.tail_moved();
        while let Some(commit) = self.stalled.pop_front() {
            if !self.fits(&commit) {
                self.stalled.push_front(commit);
                break;
            }
            self.append(commit, at, below);
        }
        self.consider_checkpoint(at, below);
    }
}
