//! References of TLBs, and consolidation: the lines of a page to which no core refers are brought
//! into one of its two frames (MICRO'19 section 3.4; the order of the steps is ours).
//!
//! ```text
//! C1 copy the fewer lines   C2 copies durable   C3 switch record durable
//! C4 if the frames change places: page table durable   C5 the slot is free
//! ```

use model::controller::Notify;
use model::design::{Below, Progress, TlbEvict, TlbFill};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, PAGE_LINES, Page, bits};

use crate::parts::page_table::PageTable;
use crate::parts::waits::For;
use crate::ssp::layout::{Kept, SlotId};
use crate::ssp::record::Entry;
use crate::ssp::slots::{Slot, State};
use crate::ssp::{Allocate, Direction, Mode, Reason, Ssp, SspEvent, SwitchRecords, What};

/// A consolidation under way.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub(super) number: JobId,
    pub(super) slot: SlotId,
    pub(super) page: Page,
    /// The lines that are copied, into the frame that the page has after the consolidation.
    pub(super) lines: u64,
    /// The frame and the extra page after the consolidation.
    pub(super) after: Kept,
    /// Whether the two change places.
    pub(super) swaps: bool,
    /// How many copies are not durable, and one more while copies are being made.
    pub(super) copies: u64,
    /// How many steps are not done: the copies, the switch record, and the page table's entry.
    pub(super) open: u64,
}

/// A consolidation, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId(pub(super) u64);

impl Ssp {
    /// Answers a core whose TLB is about to gain a page.
    pub(super) fn tlb_gains(&mut self, fill: &TlbFill, below: &mut Below<SspEvent>) -> Progress {
        let TlbFill { core, page, at } = *fill;
        let found = self.slots.of(page);
        let slot = match found {
            Some(slot)
                if self.slots[slot].state == State::Consolidating
                    && self.rules.fill_after_consolidation =>
            {
                self.counts.fills_delayed += 1;
                self.wait(core, Reason::Page(slot), at, below);
                return Progress::Wait;
            }
            None if self.params.allocate == Allocate::TlbFill => {
                self.slots.bind(page, below.tlb_cores(page))
            }
            found => found,
        };
        self.counts.tlb_misses += 1;
        self.counts.fills_without_slot += u64::from(slot.is_none());
        if self.params.allocate == Allocate::TlbFill && slot.is_none() {
            self.ask_for_switches(at, below);
        }
        if let Some(id) = slot {
            let slot = &mut self.slots[id];
            let is_queued = slot.state == State::Queued;
            if !is_queued || self.rules.cancel_when_touched {
                self.counts.queue_cancelled += u64::from(is_queued);
                slot.state = State::Bound;
            }
            slot.tlbs |= Slot::bit(core);
        }
        // Some pages may be waiting since the machine booted.
        self.consolidate_next(at, below);
        let cycles = self.lookup_cycles(slot, found.is_some(), below);
        Progress::Done(at + self.charge(cycles))
    }

    /// Charges cycles of the SSP cache, or of flips: returns those that a core waits for (`mode`),
    /// and counts the others.
    pub(super) fn charge(&mut self, cycles: u64) -> u64 {
        if self.params.mode == Mode::Full {
            return cycles;
        }
        self.counts.post_hoc_cycles += cycles;
        0
    }

    /// Cycles of looking a page's frame up in the SSP cache: in the last level if it is there, and
    /// otherwise in DRAM (MICRO'19 section 5: 27 and 185 cycles). A page that is new to its slot is
    /// nowhere.
    pub(super) fn lookup_cycles(
        &mut self,
        slot: Option<SlotId>,
        has_been_bound: bool,
        below: &Below<SspEvent>,
    ) -> u64 {
        let is_hot = slot.is_some_and(|slot| self.hot.look_up(slot)) && has_been_bound;
        match self.params.ssp_cache_latency {
            0 if is_hot => below.shape.times.llc,
            0 => self.dram_cycles,
            cycles => cycles,
        }
    }

    /// Notes that a core's TLBs lose a page.
    pub(super) fn tlb_loses(&mut self, evict: &TlbEvict, below: &mut Below<SspEvent>) {
        if let Some(slot) = self.slots.of(evict.page) {
            self.slots[slot].tlbs &= !Slot::bit(evict.core);
            self.retire(slot, evict.at, below);
        }
    }

    /// Makes a slot idle, or queues its page for consolidation, if no core refers to it any more.
    pub(super) fn retire(&mut self, id: SlotId, at: Cycle, below: &mut Below<SspEvent>) {
        let slot = &mut self.slots[id];
        let is_unused = match self.rules.consolidate_what_no_tlb_has {
            true => slot.is_unused(),
            false => slot.cores == 0,
        };
        if slot.state != State::Bound || !is_unused {
            return;
        }
        if slot.kept.com == 0 {
            self.slots.release(id);
            self.waits.retry_where(|what| what == For::Own(Reason::Slot), at, below);
            return;
        }
        slot.state = State::Queued;
        self.queue.push_back(id);
        self.consolidate_next(at, below);
    }

    /// Starts as many consolidations as there may be at once.
    fn consolidate_next(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        // The thread has done its part when the copies are durable.
        let mut copying = self.jobs.iter().filter(|job| job.copies > 0).count() as u64;
        while copying < self.params.consolidations
            && let Some(slot) = self.queue.pop_front()
        {
            if self.slots[slot].state == State::Queued {
                self.consolidate(slot, at, below);
                copying += 1;
            }
        }
    }

    /// C1: reads the lines to be copied, coherently.
    fn consolidate(&mut self, id: SlotId, at: Cycle, below: &mut Below<SspEvent>) {
        let slot = &mut self.slots[id];
        slot.state = State::Consolidating;
        let page = slot.page.expect("a slot that is used is bound");
        let Kept { ppn0, ppn1, com } = slot.kept;
        let is_less = match self.params.direction {
            Direction::MinCopy => u64::from(com.count_ones()) <= PAGE_LINES / 2,
            Direction::PageTable => true,
            Direction::ExtraPage => false,
        };
        let stays = is_less || !self.layout.table.is_whole(page);
        let (after, lines) = match stays {
            true => (Kept { ppn0, ppn1, com: 0 }, com),
            false => (Kept { ppn0: ppn1, ppn1: ppn0, com: 0 }, !com),
        };
        let copies = u64::from(lines.count_ones()) + 1;
        let number = JobId(self.counts.consolidations);
        let swaps = !stays;
        self.jobs.push(Job { number, slot: id, page, lines, after, swaps, copies, open: 2 });
        self.counts.consolidations += 1;
        self.counts.swaps += u64::from(swaps);
        self.counts.copied_lines += copies - 1;
        let mut asked = at;
        for place in bits(lines) {
            let line = page.line(place);
            let (times, path) = (below.shape.times, below.shape.path);
            let read = match below.caches.holds(line) {
                true => asked + times.llc,
                false => below.memory.read(asked + path, self.slots.locate(line)) + path,
            };
            below.at(read, SspEvent::Copy(number, place as u8));
            asked += 1;
        }
        below.at(asked, SspEvent::Copied(number));
        if !self.rules.switch_after_copies {
            self.append_in_turn(vec![What::Switch(number)], at, below);
        }
    }

    /// Writes a line to its copy when it has been read.
    pub(super) fn copy(&mut self, id: JobId, place: u8, at: Cycle, below: &mut Below<SspEvent>) {
        let after = self.job(id).after;
        let line = self.job(id).page.line(u64::from(place));
        let (to, data) = (after.ppn0.line(u64::from(place)), below.line(line));
        let write = Write::whole(to, data, Class::Consolidation);
        below.send(at, write, Notify::Design(SspEvent::Copied(id)));
    }

    /// C2: counts that a copy is durable, or that all lines have been read.
    pub(super) fn copied(&mut self, id: JobId, at: Cycle, below: &mut Below<SspEvent>) {
        let job = self.job(id);
        job.copies -= 1;
        if job.copies > 0 {
            return;
        }
        if self.rules.switch_after_copies {
            // The thread hears that the copies are durable, and tells the controller.
            below.at(at + 2 * below.shape.path, SspEvent::Ready(id));
        }
        self.close(id, at, below);
        self.consolidate_next(at, below);
    }

    /// Lets a core wait for a page or a slot, so that switch records are not held back.
    pub(super) fn wait(
        &mut self,
        core: CoreId,
        what: Reason,
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) {
        self.waits.wait(core, For::Own(what));
        self.ask_for_switches(at, below);
    }

    /// Puts the record of a consolidation, which the journal may have now, into its buffer.
    pub(super) fn make_ready(&mut self, id: JobId, at: Cycle, below: &mut Below<SspEvent>) {
        self.ready.push(id);
        let records: u64 = self.ready.iter().map(|&id| self.switch_records(id)).sum();
        let is_full = self.journal.fills_a_line(records);
        if is_full || self.params.switch_records == SwitchRecords::Alone || self.waits.wants_own() {
            self.write_switches(at, below);
        }
    }

    /// Has the records of consolidations that are in the journal's buffer written, by an event: a
    /// core may ask ahead of its time, and groups are appended in the order of time.
    fn ask_for_switches(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        if !self.ready.is_empty() {
            below.at(at, SspEvent::Asked);
        }
    }

    /// Appends the records of consolidations that are in the journal's buffer.
    pub(super) fn write_switches(&mut self, at: Cycle, below: &mut Below<SspEvent>) {
        let group: Vec<What> = self.ready.drain(..).map(What::Switch).collect();
        if !group.is_empty() {
            self.append_in_turn(group, at, below);
        }
    }

    /// The consolidations whose records fit the last line of a group of commits.
    pub(super) fn switches_beside(&mut self, commits: &[What]) -> Vec<What> {
        let mut records = self.records(commits);
        let mut group = Vec::new();
        while let Some(&id) = self.ready.first() {
            let more = self.switch_records(id);
            if more > self.journal.spare(records) {
                break;
            }
            records += more;
            group.push(What::Switch(self.ready.remove(0)));
        }
        group
    }

    /// How many records a consolidation has.
    pub(super) fn switch_records(&self, id: JobId) -> u64 {
        1 + u64::from(self.job_of(id).swaps)
    }

    /// The records of a consolidation: a page that stays in its frame has one, like that of a
    /// commit after which no line is in the extra page.
    pub(super) fn switch_entries(
        &mut self,
        id: JobId,
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) -> Vec<Entry> {
        let position = self.journal.next();
        let Job { slot, page, after, swaps, .. } = *self.job(id);
        if swaps {
            self.swaps.push((position, id));
            if !self.rules.page_table_after_switch {
                self.write_page_table(id, at, below);
            }
        }
        if !self.rules.reuse_after_switch {
            self.slots.switch(slot, after.ppn0, after.ppn1);
            self.free(slot, at, below);
        }
        let Kept { ppn0, ppn1, com } = after;
        match swaps {
            true => vec![Entry::Switch { slot, ppn0, ppn1 }, Entry::Page(page)],
            false => vec![Entry::Update { slot, ppn0, com }],
        }
    }

    /// C3: changes the slot and the page table, since the switch record counts.
    pub(super) fn switched(&mut self, id: JobId, at: Cycle, below: &mut Below<SspEvent>) {
        let job = *self.job(id);
        if self.rules.reuse_after_switch {
            self.slots.switch(job.slot, job.after.ppn0, job.after.ppn1);
        }
        if job.swaps && self.rules.page_table_after_switch {
            self.write_page_table(id, at, below);
        }
        self.close(id, at, below);
    }

    fn write_page_table(&mut self, id: JobId, at: Cycle, below: &mut Below<SspEvent>) {
        let job = self.job(id);
        job.open += 1;
        let (page, frame) = (job.page, job.after.ppn0);
        let word = self.layout.table.entry(page);
        below.view.set_word(word, PageTable::value(page, frame));
        let line = word.line();
        let write = Write::whole(line, below.line(line), Class::Metadata);
        below.send(at + 2 * below.shape.path, write, Notify::Design(SspEvent::TableWritten(id)));
    }

    /// C4: notes that the page table's entry is durable.
    pub(super) fn table_written(&mut self, id: JobId, at: Cycle, below: &mut Below<SspEvent>) {
        let swap = self.swaps.iter().position(|&(_, job)| job == id);
        self.swaps.remove(swap.expect("the switch is known until its entry is durable"));
        self.close(id, at, below);
        self.consider_checkpoint(at, below);
    }

    /// C5: counts a step that is done. After the last, the page is in one piece and the slot free.
    fn close(&mut self, id: JobId, at: Cycle, below: &mut Below<SspEvent>) {
        let job = self.job(id);
        job.open -= 1;
        if job.open > 0 {
            return;
        }
        let slot = job.slot;
        self.jobs.retain(|job| job.number != id);
        if self.rules.reuse_after_switch {
            self.free(slot, at, below);
        }
    }

    fn free(&mut self, id: SlotId, at: Cycle, below: &mut Below<SspEvent>) {
        self.slots[id].state = State::Bound;
        self.retire(id, at, below);
        self.waits.retry_where(|what| what == For::Own(Reason::Page(id)), at, below);
    }

    fn job_of(&self, id: JobId) -> &Job {
        self.jobs.iter().find(|job| job.number == id).expect("it is under way")
    }

    fn job(&mut self, id: JobId) -> &mut Job {
        let job = self.jobs.iter_mut().find(|job| job.number == id);
        job.expect("it is under way")
    }
}
