//! What is true of a slot at any time while every rule is on (ours):
//!
//! ```text
//! I1 in the copy of a line that its committed bit names is the last committed value
//! I2 no transaction and no consolidation writes to that copy
//! I3 the current bitmap is the committed one and, of running transactions, the updated ones
//! I4 when a transaction's records are durable, its lines are
//! I5 a slot's extra frame is in no page table entry and in no other slot
//! I6 a slot that may be bound anew has a page in one piece, and no references
//! I7 one transaction at a time stores to a line
//! ```
//!
//! Assertions of debug builds, as the tests are, look at I2, I3, I6 and I7; release builds do not
//! look. The oracle sees I1 and I4 in what survives, and [`resolve`](super::recovery::resolve) I5
//! in every image.

use model::units::{Line, Page};

use crate::ssp::layout::SlotId;
use crate::ssp::slots::State;
use crate::ssp::{Ssp, SspRules, What};

impl Ssp {
    /// The lines of a slot's page that transactions have stored to whose commit is not published.
    ///
    /// # Panics
    /// When two of them stored to one line (I7).
    fn updated(&self, id: SlotId) -> u64 {
        let running = self.running.iter().flat_map(|(_, running)| &running.pages);
        let waiting = self.gathered.iter().chain(self.stalled.iter().flatten());
        let waiting = waiting.flat_map(|what| match what {
            What::Commit { pages, .. } => &pages[..],
            What::Switch(_) => &[],
        });
        let of_slot = running.chain(waiting).filter(|written| written.slot == id);
        of_slot.fold(0, |updated, written| {
            assert_eq!(updated & written.upd, 0, "I7: one transaction stores to a line at a time");
            updated | written.upd
        })
    }

    /// Asserts what is true of a slot between two steps.
    pub(super) fn assert_invariants(&self, id: SlotId) {
        if !cfg!(debug_assertions) || self.rules != SspRules::default() {
            return;
        }
        let (slot, updated) = (&self.slots[id], self.updated(id));
        // With I3, I2 holds of every line that a transaction stored to: its bytes go to the copy
        // that its current bit names, which is not the committed one.
        assert_eq!(slot.cur, slot.kept.com ^ updated, "I3: current is committed and updated");
        let (is_whole, is_unused) = (slot.kept.com == 0, slot.is_unused());
        assert!(
            slot.state != State::Idle || is_whole && is_unused,
            "I6: a slot that may be bound anew has a page in one piece, and no references"
        );
    }

    /// Asserts that a copy of a consolidation goes to the copy of the line that is not committed
    /// (I2).
    pub(super) fn assert_copy_is_free(&self, line: Line, to: Line) {
        if cfg!(debug_assertions) && self.rules == SspRules::default() {
            let committed = self.slots.of(Page::of(line)).map(|_| self.slots.locate(line));
            assert_ne!(committed, Some(to), "I2: a copy leaves the committed line as it is");
        }
    }
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::design::{Design, Setup};
    use model::params::Both;
    use model::shape::Shape;
    use model::units::CoreId;

    use super::*;
    use crate::ssp::commit::Written;
    use crate::ssp::{SspParams, UndoParams, UndoRules};

    const PAGE: Page = Page(3);

    /// A design of two cores with a page in the first slot, of which core 0 has stored to line 1.
    fn design(rules: SspRules) -> (Ssp, SlotId) {
        let shape = Shape::new(&Config::default(), 2);
        let params = Both { first: SspParams::default(), second: UndoParams::default() };
        let rules = Both { first: rules, second: UndoRules::default() };
        let mut ssp = Ssp::new(&Setup { params: &params, rules: &rules, shape: &shape });
        let slot = ssp.slots.bind(PAGE, 1).expect("all are free");
        ssp.slots[slot].cur = 2;
        ssp.running[CoreId(0)].pages.push(Written { page: PAGE, slot, upd: 2 });
        (ssp, slot)
    }

    #[test]
    fn a_stored_line_is_current_in_the_copy_that_is_not_committed() {
        let (ssp, slot) = design(SspRules::default());
        ssp.assert_invariants(slot);
        ssp.assert_copy_is_free(PAGE.line(1), ssp.slots[slot].kept.ppn0.line(1));
    }

    #[test]
    #[should_panic(expected = "I3")]
    fn a_committed_line_that_is_current_is_noticed() {
        let (mut ssp, slot) = design(SspRules::default());
        ssp.slots[slot].cur = 0;
        ssp.assert_invariants(slot);
    }

    #[test]
    #[should_panic(expected = "I7")]
    fn two_transactions_in_a_line_are_noticed() {
        let (mut ssp, slot) = design(SspRules::default());
        ssp.running[CoreId(1)].pages.push(Written { page: PAGE, slot, upd: 3 });
        ssp.assert_invariants(slot);
    }

    #[test]
    #[should_panic(expected = "I6")]
    fn a_slot_with_references_that_is_idle_is_noticed() {
        let (mut ssp, slot) = design(SspRules::default());
        ssp.slots[slot].state = State::Idle;
        ssp.assert_invariants(slot);
    }

    #[test]
    #[should_panic(expected = "I2")]
    fn a_copy_over_the_current_line_is_noticed() {
        let (ssp, slot) = design(SspRules::default());
        ssp.assert_copy_is_free(PAGE.line(0), ssp.slots[slot].kept.ppn0.line(0));
    }

    /// A rule that is off may break them, which the crash test is to notice in what survives.
    #[test]
    fn a_mutant_is_not_looked_at() {
        let rules = SspRules { line_conflict_guard: false, ..SspRules::default() };
        let (mut ssp, slot) = design(rules);
        ssp.slots[slot].cur = 0;
        ssp.assert_invariants(slot);
    }
}
