//! The end of a transaction: lines and copies, the group in the journal, the switch of every page
//! to its shadow, and the shootdown; or the way out into software.

use model::controller::Notify;
use model::design::{Below, Progress, Tx};
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, Page, bits};

use crate::parts::journal::Record;
use crate::parts::page_table::PageTable;
use crate::parts::waits::For;
use crate::shadow_paging::layout::encode;
use crate::shadow_paging::{Copying, Frame, ShadowEvent, ShadowPaging};

/// What a core's hardware keeps of its transaction.
pub struct Running {
    /// The pages that it has shadows of; in software, those that it stored to.
    pub pages: Vec<Page>,
    /// How many lines of shadows are not durable, and one more until those of the commit are sent.
    pub open: u64,
    /// Its number: news of earlier transactions, which were given up, is ignored.
    pub number: u64,
}

impl Running {
    /// A transaction that has stored to nothing.
    pub fn new(number: u64) -> Running {
        Running { pages: Vec::new(), open: 1, number }
    }

    /// Goes on to the next transaction. Returns what was left of this one.
    fn end(&mut self) -> Running {
        let next = Running::new(self.number + 1);
        std::mem::replace(self, next)
    }
}

/// A commit whose lines are written.
pub struct Commit {
    pub(super) core: CoreId,
    /// Pages, and their shadows.
    pub(super) switches: Vec<(Page, Page)>,
    /// The frames that the pages leave, once they have left them.
    pub(super) left: Vec<Page>,
}

impl ShadowPaging {
    /// Ends a transaction: writes the lines that it stored to back to the shadows, and has the
    /// others copied, if they have not been.
    pub(super) fn end(&mut self, tx: &Tx, below: &mut Below<ShadowEvent>) -> Progress {
        let core = tx.core;
        let pages = self.running[core].pages.clone();
        if self.waits.fell_back(core) {
            self.running[core].pages.clear();
            self.release_pages(core, &pages, tx.stored, below);
            self.waits.leave_software(core, tx.stored, below);
            return Progress::Done(tx.stored);
        }
        if pages.is_empty() {
            return Progress::Done(tx.at);
        }
        self.ending += 1;
        let mut at = tx.stored;
        for &page in &pages {
            let shadow = self.shadows[&page];
            for place in bits(shadow.stored) {
                self.write_back(core, page.line(place), at, below);
                at += 1;
            }
            if self.params.copy == Copying::Lazy {
                self.copy_lines(core, (page, shadow.frame), !shadow.stored, at, below);
                at += u64::from((!shadow.stored).count_ones());
            }
        }
        below.at(at, ShadowEvent::Landed(core, self.running[core].number));
        Progress::Wait
    }

    fn write_back(&mut self, core: CoreId, line: Line, at: Cycle, below: &mut Below<ShadowEvent>) {
        let running = &mut self.running[core];
        let notify = match self.rules.switch_after_lines {
            true => Notify::Design(ShadowEvent::Landed(core, running.number)),
            false => Notify::Nobody,
        };
        let to = self.shadows[&Page::of(line)].frame.line(line.place_in_page());
        let is_waited_for = self.rules.write_back_at_commit
            && below.write_back_to(at, line, to, Class::Data, notify);
        running.open += u64::from(is_waited_for && self.rules.switch_after_lines);
    }

    /// Counts that a line of a shadow is durable, or that all of a commit have been sent. After the
    /// last, the pages' updates go to the controller, one a cycle.
    pub(super) fn landed(
        &mut self,
        core: CoreId,
        number: u64,
        at: Cycle,
        below: &mut Below<ShadowEvent>,
    ) {
        let running = &mut self.running[core];
        if running.number != number {
            return;
        }
        running.open -= 1;
        if running.open == 0 {
            let last = running.pages.len() as u64 - 1;
            below.at(at + 2 * below.shape.path + last, ShadowEvent::Update(core));
        }
    }

    /// Appends the group of a commit whose updates have come.
    pub(super) fn update(&mut self, core: CoreId, at: Cycle, below: &mut Below<ShadowEvent>) {
        let pages = self.running[core].end().pages;
        let switches = pages.into_iter().map(|page| (page, self.shadows[&page].frame)).collect();
        let commit = Commit { core, switches, left: Vec::new() };
        if self.stalled.is_empty() && self.fits(&commit) {
            self.append(commit, at, below);
        } else {
            self.counts.commits_stalled += 1;
            self.stalled.push_back(commit);
            self.consider_checkpoint(at, below);
        }
        if !self.rules.acknowledge_after_journal {
            below.wake(core, at + below.shape.path);
        }
    }

    pub(super) fn fits(&self, commit: &Commit) -> bool {
        self.journal.has_room(commit.switches.len() as u64) || !self.rules.stall_when_full
    }

    /// Appends the group of a commit to the journal.
    pub(super) fn append(&mut self, commit: Commit, at: Cycle, below: &mut Below<ShadowEvent>) {
        let tid = self.journal.tid();
        let records = commit.switches.iter().map(|&(page, frame)| encode(page, frame, tid));
        let records: Vec<Record> = records.collect();
        if !self.rules.free_after_switch {
            let left = commit.switches.iter().map(|&(page, _)| self.frames.of(page));
            self.free.extend(left);
        }
        if !self.rules.hold_pages_until_durable {
            self.release(&commit, at, below);
        }
        let notify = Notify::Design(ShadowEvent::Journaled(self.journal.next()));
        self.journal.append(records, commit, Class::Log, at, notify, below);
    }

    /// Notes that a line of a group is durable: the pages of the groups that count from now on lie
    /// in what were their shadows.
    pub(super) fn journaled(&mut self, start: u64, at: Cycle, below: &mut Below<ShadowEvent>) {
        let (layout, switched) = (&self.layout, &mut self.switched);
        let learn = |end, record| {
            switched.extend(layout.decode(record).map(|(page, _)| (end, page)));
        };
        for commit in self.journal.landed(start, self.rules.groups_in_order, learn) {
            self.switch(commit, at, below);
        }
        self.consider_checkpoint(at, below);
    }

    /// Switches the pages of a commit. Its core goes on when no other core can find the old frames
    /// in its TLBs any more.
    fn switch(&mut self, mut commit: Commit, at: Cycle, below: &mut Below<ShadowEvent>) {
        let mut is_elsewhere = false;
        for &(page, frame) in &commit.switches {
            commit.left.push(self.frames.of(page));
            self.frames.set(page, frame);
            below.view.set_word(self.layout.table.entry(page), PageTable::value(page, frame));
            is_elsewhere |= below.shoot_down(page, commit.core);
        }
        if is_elsewhere {
            self.counts.shootdowns += 1;
            self.shooting.push_back(commit);
            let done = at + below.shape.path + self.params.shootdown;
            below.at(done, ShadowEvent::ShotDown);
        } else {
            self.committed(&commit, at, below);
        }
    }

    /// Ends a commit whose old frames other cores have forgotten.
    pub(super) fn shot_down(&mut self, at: Cycle, below: &mut Below<ShadowEvent>) {
        let commit = self.shooting.pop_front().expect("it waits, and all wait as long");
        self.committed(&commit, at, below);
    }

    /// Ends a commit: acknowledges it, lets others store to its pages, and frees the frames that
    /// the pages left.
    fn committed(&mut self, commit: &Commit, at: Cycle, below: &mut Below<ShadowEvent>) {
        self.ending -= 1;
        for (page, _) in &commit.switches {
            self.shadows.remove(page);
        }
        if self.rules.hold_pages_until_durable {
            self.release(commit, at, below);
        }
        self.counts.frames_freed += commit.left.len() as u64;
        if self.rules.free_after_switch {
            self.free.extend(&commit.left);
        }
        self.waits.retry_where(|what| what == For::Own(Frame), at, below);
        if self.rules.acknowledge_after_journal {
            below.wake(commit.core, at + below.shape.path);
        }
    }

    /// Lets other cores store to the pages of a commit.
    fn release(&mut self, commit: &Commit, at: Cycle, below: &mut Below<ShadowEvent>) {
        let pages: Vec<Page> = commit.switches.iter().map(|&(page, _)| page).collect();
        self.release_pages(commit.core, &pages, at, below);
    }

    /// Lets other cores store to the pages of a transaction.
    fn release_pages(
        &mut self,
        core: CoreId,
        pages: &[Page],
        at: Cycle,
        below: &mut Below<ShadowEvent>,
    ) {
        for page in pages {
            if self.owners.get(page) == Some(&core) {
                self.owners.remove(page);
            }
        }
        self.waits.retry_where(|what| what == For::Holder(core), at, below);
    }

    /// Gives a transaction up: its pages are what they were, which memory has, and the shadows are
    /// free. Nothing is written. Returns when that is done.
    pub(super) fn revoke(&mut self, tx: &Tx, below: &mut Below<ShadowEvent>) -> Cycle {
        let core = tx.core;
        let running = self.running[core].end();
        let dropped = if self.rules.drop_shadows_at_abort { &running.pages[..] } else { &[] };
        for &page in dropped {
            let Some(shadow) = self.shadows.remove(&page) else { continue };
            for place in bits(shadow.stored) {
                below.caches.take_out(page.line(place));
            }
            self.free.push_back(shadow.frame);
        }
        self.release_pages(core, &running.pages, tx.at, below);
        self.waits.retry_where(|what| what == For::Own(Frame), tx.at, below);
        tx.stored.max(tx.at)
    }

    /// Gives a transaction up for its library: one core at a time goes on in software.
    pub(super) fn fall_back(&mut self, tx: &Tx, below: &mut Below<ShadowEvent>) -> Progress {
        let (core, mut at) = (tx.core, tx.at);
        if !self.waits.fell_back(core) {
            at = self.revoke(tx, below);
            self.waits.fall_back(core);
            self.counts.fallbacks += 1;
        }
        self.waits.enter_software(core, at, self.rules.fall_back_one_at_a_time)
    }
}
