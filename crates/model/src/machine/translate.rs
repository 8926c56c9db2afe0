//! Translation, where it takes time: TLBs, page walks, and the design's permission to store.

use crate::design::{Claim, Claimed, Design, Progress, TlbEvict, TlbFill};
use crate::hooks::not_before;
use crate::machine::Machine;
use crate::units::{CoreId, Cycle, Line, Page};

impl<D: Design> Machine<D> {
    /// Whether a line is translated: the data of programs are, those of a design or a log are not.
    #[inline]
    pub(crate) fn is_translated(&self, line: Line) -> bool {
        self.walks && line.address() < self.below.shape.log_base
    }

    /// Returns when a page whose number is known at `known` is translated, if the core's own TLBs
    /// have it.
    #[inline]
    pub(crate) fn translation(&mut self, id: CoreId, page: Page, known: Cycle) -> Option<Cycle> {
        let cycles = self.below.tlbs.hit(id, page)?;
        let front = self.cores[id].timing.front();
        let ready = self.below.tlbs.arrival(id, page, front);
        if cycles == 0 && ready == front {
            return Some(known);
        }
        // An address that was known long ago was still looked up only when its instruction
        // dispatched.
        Some(known.max(ready) + cycles)
    }

    /// Walks the page table for a page that the core's TLBs lack and whose number is known at
    /// `known`. Returns when the translation is there; if none, the caller parks the core and asks
    /// again. Meanwhile `walked` has when the walk was done, which is not made again: the design
    /// lets the fill wait, and knows where the page lies then.
    pub(crate) fn translate(
        &mut self,
        id: CoreId,
        page: Page,
        known: Cycle,
        walked: &mut Option<Cycle>,
    ) -> Option<Cycle> {
        let now = self.cores[id].timing.clock();
        let start = known.max(self.cores[id].timing.front());
        let at = match walked.take() {
            Some(at) => at.max(start),
            None if self.walk_waits(id, page) => return None,
            None => self.walk(id, page, start),
        };
        let heard = at.max(now);
        if let Some(victim) = self.below.tlbs.make_room(id, page) {
            let evict = TlbEvict { core: id, page: victim, at: now };
            self.design.tlb_evict(&evict, &mut self.below);
        }
        let fill = TlbFill { core: id, page, at: heard };
        let answer = self.design.tlb_fill(&fill, &mut self.below);
        match self.answered("tlb_fill", heard, answer) {
            Progress::Done(filled) => {
                let ready = Cycle(filled.0 - heard.since(at));
                self.below.tlbs.fill(id, page, ready);
                Some(ready)
            }
            Progress::Wait => {
                *walked = Some(at);
                None
            }
        }
    }

    /// Whether a walk has to wait because the controllers have no room for the write-backs of what
    /// it may evict.
    fn walk_waits(&mut self, id: CoreId, page: Page) -> bool {
        let line = self.design.page_table(page);
        self.waits_for_room(id, line, false)
    }

    /// Reads the last level of the page table, through the core's caches and as one of its misses;
    /// the upper levels are assumed to be in the walker's own caches.
    fn walk(&mut self, id: CoreId, page: Page, start: Cycle) -> Cycle {
        let line = self.design.page_table(page);
        self.counts.accesses.walks += 1;
        if self.below.caches.hit(id, line) {
            return self.arrived_by(line, start + self.below.shape.times.l1);
        }
        let (place, start) = self.cores[id].timing.miss_start(line, start);
        let done = self.fetch_from(id, line, false, start);
        self.cores[id].timing.miss(place, line, done)
    }

    /// Asks the design whether a core may store to a line whose address is translated at `known`.
    pub(crate) fn claim(&mut self, id: CoreId, line: Line, known: Cycle) -> Claimed {
        let core = &self.cores[id];
        let claim = Claim { core: id, tx: core.tx, line, at: core.timing.clock().max(known) };
        let claimed = self.design.claim(&claim, &mut self.below);
        if let Claimed::At(at) = claimed {
            not_before(self.card.name, "claim", claim.at, at);
            self.claimed = Some((id, line));
        }
        self.process_wakes();
        claimed
    }
}
