//! What is true of frames, pages and commits at any time while every rule is on (ours):
//!
//! ```text
//! P1 a frame has one use: a page lies in it or has just left it, a shadow does, or it is free
//! P2 no frame is lost: as many as there are for shadows are not those of pages
//! P3 a page is one transaction's, and has a shadow if that runs in hardware
//! P4 a commit switches its pages to their shadows, once
//! P5 a core waits for a frame only while a commit is under way that will free some
//! ```
//!
//! Lines that are stored to and not committed lie in shadows by P1 and P4: no page's frame is one.

use model::units::{CoreId, Page};

use crate::shadow_paging::ShadowPaging;
use crate::shadow_paging::commit::Commit;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// This page lies in it.
    Page(u64),
    /// This page has left it, and cores may still find the page there.
    Left(u64),
    /// The shadow of this page lies in it.
    Shadow(u64),
    /// It is free.
    Free,
}

impl ShadowPaging {
    /// Looks at every frame that is not where it was at first, and at every transaction.
    ///
    /// # Errors
    /// A sentence that says what is not true.
    pub(super) fn check_invariants(&self) -> Result<(), String> {
        self.check_pages()?;
        self.unswitched().try_for_each(|commit| self.check_commit(commit, false))?;
        self.shooting.iter().try_for_each(|commit| self.check_commit(commit, true))?;
        self.check_frames()?;
        let under_way = self.unswitched().count() + self.shooting.len();
        let ending = self.ending;
        if ending < under_way as u64 || ending == 0 && self.waits.wants_own() {
            return Err(format!(
                "P5: {ending} commits are said to be under way, and {under_way} are; a core that \
                 waits for a frame may wait for ever"
            ));
        }
        Ok(())
    }

    /// The commits whose groups do not count yet.
    fn unswitched(&self) -> impl Iterator<Item = &Commit> {
        self.stalled.iter().chain(self.journal.under_way())
    }

    /// The pages of transactions that run in hardware, or in software, each with its core.
    fn running(&self, in_software: bool) -> impl Iterator<Item = (Page, CoreId)> {
        let cores = self.running.iter();
        let cores = cores.filter(move |&(core, _)| self.waits.fell_back(core) == in_software);
        cores.flat_map(|(core, running)| running.pages.iter().map(move |&page| (page, core)))
    }

    fn check_pages(&self) -> Result<(), String> {
        let commits = self.unswitched().chain(&self.shooting);
        let committed =
            commits.flat_map(|commit| commit.switches.iter().map(|&(page, _)| (page, commit.core)));
        let mut held: Vec<(Page, CoreId)> = self.running(false).chain(committed).collect();
        let shadowed = held.len();
        if let Some((Page(page), _)) =
            held.iter().find(|(page, _)| !self.shadows.contains_key(page))
        {
            return Err(format!("P3: page {page} is a transaction's and has no shadow"));
        }
        held.extend(self.running(true));
        held.sort_unstable();
        if let Some(both) = held.windows(2).find(|both| both[0].0 == both[1].0) {
            let (Page(page), [CoreId(one), CoreId(other)]) = (both[0].0, [both[0].1, both[1].1]);
            return Err(format!("P3: page {page} is in transactions of cores {one} and {other}"));
        }
        let owned = |&&(page, core): &&(Page, CoreId)| self.owners.get(&page) == Some(&core);
        let (owners, shadows) = (self.owners.len(), self.shadows.len());
        match (held.iter().filter(owned).count(), shadowed) {
            (count, _) if count != held.len() || count != owners => Err(format!(
                "P3: {owners} pages have owners, {} are in transactions, and {count} in their \
                 owners'",
                held.len()
            )),
            (_, shadowed) if shadowed != shadows => Err(format!(
                "P3: {shadows} pages have shadows, and {shadowed} are in transactions in hardware"
            )),
            _ => Ok(()),
        }
    }

    fn check_commit(&self, commit: &Commit, is_switched: bool) -> Result<(), String> {
        for &(page, frame) in &commit.switches {
            let (shadow, own, Page(page)) = (self.shadows[&page].frame, self.frames.of(page), page);
            if frame != shadow || (frame == own) != is_switched {
                return Err(format!(
                    "P4: a commit switches page {page} to frame {}; its shadow is {}, and it lies \
                     in {}",
                    frame.0, shadow.0, own.0
                ));
            }
        }
        Ok(())
    }

    fn check_frames(&self) -> Result<(), String> {
        let mut uses: Vec<(Page, Use)> =
            self.free.iter().map(|&frame| (frame, Use::Free)).collect();
        let running = self.running(false).map(|(page, _)| (page, self.shadows[&page].frame));
        let commits = self.unswitched().flat_map(|commit| commit.switches.iter().copied());
        let shadows = running.chain(commits);
        uses.extend(shadows.map(|(page, frame)| (frame, Use::Shadow(page.0))));
        for commit in &self.shooting {
            let pages = commit.switches.iter().map(|(page, _)| Use::Left(page.0));
            uses.extend(commit.left.iter().copied().zip(pages));
        }
        let (spare, there) = (uses.len() as u64, self.params.shadow_frames);
        uses.extend(self.frames.moved().map(|(page, frame)| (frame, Use::Page(page.0))));
        uses.sort_unstable();
        if let Some(both) = uses.windows(2).find(|both| both[0].0 == both[1].0) {
            let (frame, one, other) = (both[0].0.0, both[0].1, both[1].1);
            return Err(format!("P1: frame {frame} has two uses, {one:?} and {other:?}"));
        }
        for &(frame, of) in &uses {
            if self.frames.is_home(frame) || !self.layout.is_frame(frame) {
                let Page(frame) = frame;
                return Err(format!(
                    "P1: frame {frame} has the use {of:?}, and is the frame of the page of that \
                     number, or none"
                ));
            }
        }
        match spare == there {
            true => Ok(()),
            false => Err(format!("P2: {spare} frames are not those of pages, and not {there}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::design::{Design, Setup};
    use model::params::Both;
    use model::shape::Shape;
    use model::units::Cycle;

    use super::*;
    use crate::parts::waits::For;
    use crate::shadow_paging::copy::Shadow;
    use crate::shadow_paging::{Frame, ShadowParams, ShadowRules, UndoParams, UndoRules};

    const PAGE: Page = Page(3);
    const CORE: CoreId = CoreId(0);

    /// A design of two cores, of which core 0 has stored to a page.
    fn running() -> ShadowPaging {
        let shape = Shape::new(&Config::default(), 2);
        let params = Both { first: ShadowParams::default(), second: UndoParams::default() };
        let rules = Both { first: ShadowRules::default(), second: UndoRules::default() };
        let setup = Setup { params: &params, rules: &rules, shape: &shape };
        let mut design = ShadowPaging::new(&setup);
        let frame = design.free.pop_front().expect("all are free");
        design.owners.insert(PAGE, CORE);
        design.shadows.insert(PAGE, Shadow { frame, stored: 1, ready: Cycle(0) });
        design.running[CORE].pages.push(PAGE);
        design
    }

    /// A design in which that transaction's commit waits for room in the journal.
    fn stalled() -> ShadowPaging {
        let mut design = running();
        design.running[CORE].pages.clear();
        let switches = vec![(PAGE, design.shadows[&PAGE].frame)];
        design.stalled.push_back(Commit { core: CORE, switches, left: Vec::new() });
        design.ending = 1;
        design
    }

    /// A design in which that commit counts, and other cores have still to forget the old frame.
    fn shooting() -> ShadowPaging {
        let mut design = stalled();
        let mut commit = design.stalled.pop_front().expect("it waits");
        design.frames.set(PAGE, commit.switches[0].1);
        commit.left.push(PAGE);
        design.shooting.push_back(commit);
        design
    }

    /// Checks that an invariant is found broken, in these words.
    fn check(design: &ShadowPaging, text: &str) {
        let found = design.check_invariants().expect_err("it is broken");
        assert!(found.contains(text), "{found}");
    }

    #[test]
    fn all_of_them_hold_of_a_transaction() {
        for design in [running(), stalled(), shooting()] {
            assert_eq!(design.check_invariants(), Ok(()));
        }
        // In software a page has no shadow.
        let mut design = running();
        let shadow = design.shadows.remove(&PAGE).expect("it has one");
        design.free.push_back(shadow.frame);
        check(&design, "P3: page 3 is a transaction's and has no shadow");
        design.waits.fall_back(CORE);
        assert_eq!(design.check_invariants(), Ok(()));
    }

    #[test]
    fn a_frame_with_two_uses_is_noticed() {
        let mut design = running();
        let frame = design.shadows[&PAGE].frame;
        *design.free.front_mut().expect("most are free") = frame;
        check(&design, "has two uses, Shadow(3) and Free");
        let mut design = running();
        design.frames.set(Page(5), design.shadows[&PAGE].frame);
        check(&design, "has two uses, Page(5) and Shadow(3)");
        let mut design = shooting();
        *design.free.front_mut().expect("most are free") = PAGE;
        check(&design, "P1: frame 3 has two uses, Left(3) and Free");
    }

    #[test]
    fn a_shadow_in_the_frame_of_a_page_is_noticed() {
        let mut design = running();
        design.shadows.get_mut(&PAGE).expect("it has one").frame = Page(7);
        check(&design, "P1: frame 7 has the use Shadow(3), and is the frame of the page of that");
        let mut design = running();
        *design.free.back_mut().expect("most are free") = Page(1 << 40);
        check(&design, "has the use Free, and is the frame of the page of that number, or none");
    }

    #[test]
    fn a_frame_that_is_lost_is_noticed() {
        let mut design = running();
        design.free.pop_back();
        check(&design, "P2: 1023 frames are not those of pages, and not 1024");
    }

    #[test]
    fn a_page_of_two_transactions_is_noticed() {
        let mut design = running();
        design.running[CoreId(1)].pages.push(PAGE);
        check(&design, "P3: page 3 is in transactions of cores 0 and 1");
        let mut design = stalled();
        design.running[CORE].pages.push(PAGE);
        check(&design, "P3: page 3 is in transactions of cores 0 and 0");
    }

    #[test]
    fn an_owner_without_a_transaction_is_noticed() {
        let mut design = running();
        design.owners.insert(PAGE, CoreId(1));
        check(&design, "P3: 1 pages have owners, 1 are in transactions, and 0 in their owners'");
        let mut design = running();
        design.owners.insert(Page(5), CORE);
        check(&design, "P3: 2 pages have owners, 1 are in transactions, and 1 in their owners'");
        let mut design = running();
        design.owners.clear();
        design.running[CORE].pages.clear();
        check(&design, "P3: 1 pages have shadows, and 0 are in transactions in hardware");
    }

    #[test]
    fn a_commit_to_another_frame_is_noticed() {
        let mut design = stalled();
        design.stalled[0].switches[0].1 = Page(7);
        check(&design, "P4: a commit switches page 3 to frame 7; its shadow is ");
        let mut design = stalled();
        design.frames.set(PAGE, design.shadows[&PAGE].frame);
        check(&design, "P4: ");
        let mut design = shooting();
        design.frames.set(PAGE, PAGE);
        check(&design, "P4: ");
    }

    #[test]
    fn a_wait_that_no_commit_ends_is_noticed() {
        let mut design = running();
        design.waits.wait(CoreId(1), For::Own(Frame));
        check(&design, "P5: 0 commits are said to be under way, and 0 are; a core that waits for");
        let mut design = stalled();
        design.waits.wait(CoreId(1), For::Own(Frame));
        assert_eq!(design.check_invariants(), Ok(()));
        design.ending = 0;
        check(&design, "P5: 0 commits are said to be under way, and 1 are");
    }
}
