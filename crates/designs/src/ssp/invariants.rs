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
//! A crash campaign that cuts the power has [`Ssp::check_invariants`] look at I2, I3, I6 and I7 in
//! every slot. The oracle sees I1 and I4 in what survives, and
//! [`resolve`](super::recovery::resolve) I5 in every image.

use crate::ssp::consolidation::Job;
use crate::ssp::layout::{Kept, SlotId};
use crate::ssp::slots::State;
use crate::ssp::{Ssp, What};

impl Ssp {
    /// Looks at every slot and at every consolidation under way.
    ///
    /// # Errors
    /// A sentence that says what is not true.
    pub(super) fn check_invariants(&self) -> Result<(), String> {
        let updated = self.updated()?;
        for (id, &updated) in self.layout.all_slots().zip(&updated) {
            self.check_slot(id, updated)?;
        }
        self.jobs.iter().try_for_each(|job| self.check_job(job))
    }

    /// For each slot, the lines of its page that transactions have stored to whose commit is not
    /// published.
    ///
    /// # Errors
    /// A sentence, when two of them stored to one line (I7).
    fn updated(&self) -> Result<Vec<u64>, String> {
        let running = self.running.iter().flat_map(|(_, running)| &running.pages);
        let waiting = self.gathered.iter().chain(self.stalled.iter().flatten());
        let waiting = waiting.flat_map(|what| match what {
            What::Commit { pages, .. } => &pages[..],
            What::Switch(_) => &[],
        });
        let mut updated = vec![0; self.layout.slots as usize];
        for written in running.chain(waiting) {
            let lines = &mut updated[written.slot.0 as usize];
            let shared = *lines & written.upd;
            if shared != 0 {
                let page = written.page.0;
                return Err(format!(
                    "I7: two transactions have stored to the lines {shared:#x} of page {page}"
                ));
            }
            *lines |= written.upd;
        }
        Ok(updated)
    }

    /// With I3, I2 holds of every line that a transaction stored to: its bytes go to the copy that
    /// its current bit names, which is not the committed one.
    fn check_slot(&self, id: SlotId, updated: u64) -> Result<(), String> {
        let (slot, number) = (&self.slots[id], id.0);
        let (cur, com) = (slot.cur, slot.kept.com);
        if cur != com ^ updated {
            return Err(format!(
                "I3: the current bitmap of slot {number} is {cur:#x}, its committed one {com:#x}, \
                 and transactions have updated {updated:#x}"
            ));
        }
        if slot.state == State::Idle && (com != 0 || !slot.is_unused()) {
            let (tlbs, cores) = (slot.tlbs, slot.cores);
            return Err(format!(
                "I6: slot {number} may be bound anew, but its committed bitmap is {com:#x} and its \
                 references are those of the TLBs {tlbs:#x} and of the cores {cores:#x}"
            ));
        }
        Ok(())
    }

    fn check_job(&self, job: &Job) -> Result<(), String> {
        let (slot, number) = (&self.slots[job.slot], job.slot.0);
        if slot.state != State::Consolidating || slot.page != Some(job.page) {
            let (state, page) = (slot.state, job.page.0);
            return Err(format!(
                "I6: slot {number} is {state:?} while its page {page} is being consolidated"
            ));
        }
        match overwritten(job, &slot.kept) {
            0 => Ok(()),
            lines => Err(format!(
                "I2: consolidation copies over the committed lines {lines:#x} of slot {number}"
            )),
        }
    }
}

/// The lines whose committed bytes are where copies of a consolidation go that may still be on
/// their way.
fn overwritten(job: &Job, kept: &Kept) -> u64 {
    match job.after.ppn0 {
        _ if job.copies == 0 => 0,
        to if to == kept.ppn1 => job.lines & kept.com,
        to if to == kept.ppn0 => job.lines & !kept.com,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::design::{Design, Setup};
    use model::params::Both;
    use model::shape::Shape;
    use model::units::{CoreId, Page};

    use super::*;
    use crate::ssp::commit::Written;
    use crate::ssp::consolidation::JobId;
    use crate::ssp::{SspParams, SspRules, UndoParams, UndoRules};

    const PAGE: Page = Page(3);

    /// A design of two cores with a page in the first slot, of which core 0 has stored to line 1.
    fn design() -> (Ssp, SlotId) {
        let shape = Shape::new(&Config::default(), 2);
        let params = Both { first: SspParams::default(), second: UndoParams::default() };
        let rules = Both { first: SspRules::default(), second: UndoRules::default() };
        let mut ssp = Ssp::new(&Setup { params: &params, rules: &rules, shape: &shape });
        let slot = ssp.slots.bind(PAGE, 1).expect("all are free");
        ssp.slots[slot].cur = 2;
        ssp.running[CoreId(0)].pages.push(Written { page: PAGE, slot, upd: 2 });
        (ssp, slot)
    }

    /// A design in which the lines 0 and 1 of a page, which are committed in the extra page, are
    /// being copied to the page's own frame.
    fn consolidating() -> (Ssp, SlotId) {
        let (mut ssp, slot) = design();
        ssp.running[CoreId(0)].pages.clear();
        let entry = &mut ssp.slots[slot];
        (entry.cur, entry.kept.com, entry.tlbs, entry.state) = (3, 3, 0, State::Consolidating);
        let after = Kept { com: 0, ..entry.kept };
        let (number, copies, open) = (JobId(0), 3, 2);
        let (page, lines, swaps) = (PAGE, 3, false);
        ssp.jobs.push(Job { number, slot, page, lines, after, swaps, copies, open });
        (ssp, slot)
    }

    /// Checks that an invariant is found broken, in these words.
    fn check(ssp: &Ssp, text: &str) {
        let found = ssp.check_invariants().expect_err("it is broken");
        assert!(found.contains(text), "{found}");
    }

    #[test]
    fn all_of_them_hold_of_a_store_and_of_a_consolidation() {
        assert_eq!(design().0.check_invariants(), Ok(()));
        assert_eq!(consolidating().0.check_invariants(), Ok(()));
    }

    #[test]
    fn a_committed_line_that_is_current_is_noticed() {
        let (mut ssp, slot) = design();
        ssp.slots[slot].cur = 0;
        check(&ssp, "I3: the current bitmap of slot 0 is 0x0, its committed one 0x0, and");
    }

    /// A commit that waits for room in the journal has not published its lines.
    #[test]
    fn a_commit_that_waits_counts_as_an_update() {
        let (mut ssp, _) = design();
        let pages = std::mem::take(&mut ssp.running[CoreId(0)].pages);
        check(&ssp, "I3: ");
        let (core, lines, early) = (CoreId(0), Vec::new(), Vec::new());
        ssp.stalled.push_back(vec![What::Commit { core, pages, lines, early }]);
        assert_eq!(ssp.check_invariants(), Ok(()));
        let group = ssp.stalled.pop_front().expect("it was put there");
        ssp.gathered.extend(group);
        assert_eq!(ssp.check_invariants(), Ok(()));
    }

    #[test]
    fn two_transactions_in_a_line_are_noticed() {
        let (mut ssp, slot) = design();
        ssp.running[CoreId(1)].pages.push(Written { page: PAGE, slot, upd: 3 });
        check(&ssp, "I7: two transactions have stored to the lines 0x2 of page 3");
    }

    #[test]
    fn a_slot_with_references_that_is_idle_is_noticed() {
        let (mut ssp, slot) = design();
        ssp.slots[slot].state = State::Idle;
        check(&ssp, "I6: slot 0 may be bound anew, but");
        let last = SlotId(ssp.layout.slots - 1);
        let (mut ssp, _) = design();
        (ssp.slots[last].kept.com, ssp.slots[last].cur) = (1, 1);
        check(&ssp, "may be bound anew, but its committed bitmap is 0x1 and its references");
    }

    #[test]
    fn a_copy_over_the_committed_line_is_noticed() {
        let (mut ssp, slot) = consolidating();
        (ssp.slots[slot].cur, ssp.slots[slot].kept.com) = (1, 1);
        check(&ssp, "I2: consolidation copies over the committed lines 0x2 of slot 0");
        // The other way round.
        let (mut ssp, slot) = consolidating();
        let kept = ssp.slots[slot].kept;
        (ssp.jobs[0].after.ppn0, ssp.jobs[0].after.ppn1) = (kept.ppn1, kept.ppn0);
        check(&ssp, "I2: consolidation copies over the committed lines 0x3 of slot 0");
        // With all copies durable none goes anywhere.
        ssp.jobs[0].copies = 0;
        assert_eq!(ssp.check_invariants(), Ok(()));
    }

    #[test]
    fn a_slot_that_is_bound_during_its_consolidation_is_noticed() {
        let (mut ssp, slot) = consolidating();
        ssp.slots[slot].state = State::Bound;
        check(&ssp, "I6: slot 0 is Bound while its page 3 is being consolidated");
        let (mut ssp, slot) = consolidating();
        ssp.slots[slot].page = Some(Page(4));
        check(&ssp, "I6: slot 0 is Consolidating while its page 3 is being consolidated");
    }
}
