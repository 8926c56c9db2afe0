//! The first store to a page: the permission to store, a frame for the shadow, and the copy.

use model::controller::Notify;
use model::design::{Below, Claim, Claimed, Store};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, Page, bits};

use crate::parts::waits::For;
use crate::shadow_paging::{Copying, Frame, ShadowEvent, ShadowPaging};

/// The shadow of a page, while a transaction has one.
#[derive(Clone, Copy, Debug)]
pub struct Shadow {
    /// The frame that it lies in.
    pub frame: Page,
    /// The lines, one bit each, that the transaction has stored to.
    pub stored: u64,
    /// When stores to the page may leave their core: the lines copied before them have been read.
    pub(super) ready: Cycle,
}

impl ShadowPaging {
    /// Answers a core that is about to store to a line of a page.
    pub(super) fn claim_page(&mut self, claim: &Claim, below: &mut Below<ShadowEvent>) -> Claimed {
        let Claim { core, tx, line, at } = *claim;
        let page = Page::of(line);
        match self.owners.get(&page) {
            Some(&owner) if owner != core && self.rules.one_transaction_at_a_time => {
                let claimed = self.waits.conflict(core, owner, at, below);
                self.counts.page_conflicts += u64::from(claimed == Claimed::Wait);
                return claimed;
            }
            _ if tx.is_none() => return Claimed::At(at),
            _ => (),
        }
        if self.waits.fell_back(core) {
            if self.owners.insert(page, core) != Some(core) {
                self.running[core].pages.push(page);
            }
            return Claimed::At(at);
        }
        match self.shadows.get(&page) {
            Some(shadow) => {
                let ready = at.max(shadow.ready);
                if shadow.stored >> line.place_in_page() & 1 == 0 {
                    self.keep_old(line, at, below);
                }
                Claimed::At(ready)
            }
            None => self.shadow(core, page, line, at, below),
        }
    }

    /// Gives a core a shadow of a page, and has the page copied.
    fn shadow(
        &mut self,
        core: CoreId,
        page: Page,
        line: Line,
        at: Cycle,
        below: &mut Below<ShadowEvent>,
    ) -> Claimed {
        let is_full = self.running[core].pages.len() as u64 >= self.params.write_set;
        // A frame that a log begins in stays where it is.
        if !self.layout.table.is_whole(page) || is_full && self.rules.fall_back_when_full {
            return Claimed::Refused;
        }
        if is_full {
            let forgotten = self.running[core].pages.remove(0);
            self.owners.remove(&forgotten);
            self.shadows.remove(&forgotten);
        }
        let Some(frame) = self.free.pop_front() else {
            if self.ending > 0 {
                self.counts.waits_for_frame += 1;
                self.waits.wait(core, For::Own(Frame));
                return Claimed::Wait;
            }
            self.counts.frames_exhausted += 1;
            return Claimed::Refused;
        };
        self.counts.shadows += 1;
        self.owners.insert(page, core);
        self.running[core].pages.push(page);
        self.keep_old(line, at, below);
        let lines = if self.params.copy == Copying::Eager { u64::MAX } else { 0 };
        let ready = self.copy_lines(core, (page, frame), lines, at, below);
        self.shadows.insert(page, Shadow { frame, stored: 0, ready });
        Claimed::At(ready)
    }

    /// Writes the bytes that a line has before its first store to the frame that the page may keep,
    /// also those that were stored outside of transactions.
    fn keep_old(&self, line: Line, at: Cycle, below: &mut Below<ShadowEvent>) {
        let to = self.frames.of(Page::of(line)).line(line.place_in_page());
        if below.caches.clean(line) {
            let (data, class) = (below.line(line), Class::HomeWriteBack);
            below.send(at, Write::whole(to, data, class), Notify::Nobody);
        }
    }

    /// Has lines of a page, one bit each, copied to its shadow: they are read coherently, one a
    /// cycle, and written when they have been read. No other core stores to the page meanwhile, so
    /// each line has by now the bytes that it will have. Returns when all have been read.
    pub(super) fn copy_lines(
        &mut self,
        core: CoreId,
        (page, shadow): (Page, Page),
        lines: u64,
        at: Cycle,
        below: &mut Below<ShadowEvent>,
    ) -> Cycle {
        if !self.rules.copy_other_lines {
            return at;
        }
        let own = self.frames.of(page);
        let (times, path) = (below.shape.times, below.shape.path);
        let running = &mut self.running[core];
        let notify = match self.rules.switch_after_copies {
            true => Notify::Design(ShadowEvent::Landed(core, running.number)),
            false => Notify::Nobody,
        };
        let (mut asked, mut done) = (at, at);
        for place in bits(lines) {
            let line = page.line(place);
            let read = match below.caches.holds(line) {
                true => asked + times.llc,
                false => below.memory.read(asked + path, own.line(place)) + path,
            };
            let (to, data) = (shadow.line(place), below.line(line));
            let write = Write::whole(to, data, Class::CopyOnWrite);
            below.send(read, write, notify);
            running.open += u64::from(self.rules.switch_after_copies);
            self.counts.lines_copied += 1;
            asked += 1;
            done = done.max(read);
        }
        done
    }

    /// Notes that a store has taken effect: from the first on, its line lies in the shadow.
    pub(super) fn stored(&mut self, store: &Store) {
        let line = store.word.line();
        if store.tx.is_none() || self.waits.fell_back(store.core) {
            return;
        }
        let Some(shadow) = self.shadows.get_mut(&Page::of(line)) else { return };
        if self.rules.store_to_shadow {
            shadow.stored |= 1 << line.place_in_page();
        }
    }
}
