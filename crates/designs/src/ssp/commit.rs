//! Transactions: the write-set buffer, the permission to store, the first store to a line, and the
//! commit (MICRO'19 sections 3.2 and 4.1).

use model::controller::Notify;
use model::design::{Below, Claim, Claimed, Progress, Store, Tx};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, Page, bits};

use crate::parts::waits::For;
use crate::ssp::layout::SlotId;
use crate::ssp::record::Entry;
use crate::ssp::slots::{Slot, State};
use crate::ssp::{Reason, Ssp, SspEvent, What};

/// What a core's hardware keeps of its transaction.
#[derive(Default)]
pub struct Running {
    /// The write-set buffer.
    pub pages: Vec<Written>,
    /// Lines that it may store to, in order.
    pub lines: Vec<Line>,
    /// How many lines of a commit are not durable, and one more while lines are being sent.
    writing_back: u64,
    /// The committed bitmaps of the pages whose updates have come, if each is computed by itself.
    early: Vec<Entry>,
}

/// An entry of the write-set buffer.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub page: Page,
    pub slot: SlotId,
    /// The updated bitmap: lines that the transaction has stored to.
    pub upd: u64,
}

impl Running {
    fn written(&mut self, page: Page) -> Option<&mut Written> {
        self.pages.iter_mut().rev().find(|written| written.page == page)
    }
}

impl Ssp {
    /// Answers a core that is about to store to a line.
    pub(super) fn claim_line(&mut self, claim: &Claim, below: &mut Below<SspEvent>) -> Claimed {
        let Claim { core, tx, line, at } = *claim;
        match self.claims.get(&line) {
            Some(&holder) if holder != core && self.rules.line_conflict_guard => {
                let claimed = self.waits.conflict(core, holder, at, below);
                self.counts.line_conflicts += u64::from(claimed == Claimed::Wait);
                return claimed;
            }
            _ if tx.is_none() => return Claimed::At(at),
            _ => (),
        }
        if self.waits.fell_back(core) {
            if self.claims.insert(line, core) != Some(core) {
                self.running[core].lines.push(line);
            }
            return Claimed::At(at);
        }
        let bit = 1 << line.place_in_page();
        let looked_up = match self.running[core].written(Page::of(line)) {
            Some(written) if written.upd & bit != 0 => return Claimed::At(at),
            Some(_) => at,
            None => match self.track(core, Page::of(line), at, below) {
                Claimed::At(looked_up) => looked_up,
                refused => return refused,
            },
        };
        if self.claims.insert(line, core) == Some(core) {
            // The library has asked for this store before.
            return Claimed::At(at);
        }
        self.running[core].lines.push(line);
        // The bytes that the line has so far stay in the copy that it leaves.
        let to = self.slots.locate(line);
        if below.caches.clean(line) {
            let (data, class) = (below.line(line), Class::HomeWriteBack);
            below.send(at, Write::whole(to, data, class), Notify::Nobody);
        }
        Claimed::At(looked_up + self.remap_cycles)
    }

    /// Gives a page an entry in a core's write-set buffer, and a slot. A slot that it has not yet
    /// comes from the SSP cache, as one does that a TLB asks for.
    fn track(
        &mut self,
        core: CoreId,
        page: Page,
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) -> Claimed {
        if self.running[core].pages.len() as u64 >= self.params.write_set {
            if self.rules.fall_back_when_full {
                return Claimed::Refused;
            }
            self.running[core].pages.remove(0);
        }
        let (slot, cycles) = match self.slots.of(page) {
            // The core's TLB has the page, so the page is not being consolidated.
            Some(slot) => (slot, 0),
            None => match self.slots.bind(page, below.tlb_cores(page)) {
                Some(slot) => (slot, self.lookup_cycles(Some(slot), false, below)),
                None if !self.jobs.is_empty() => {
                    self.counts.waits_for_slot += 1;
                    self.wait(core, Reason::Slot, at, below);
                    return Claimed::Wait;
                }
                None => {
                    self.counts.slots_exhausted += 1;
                    return Claimed::Refused;
                }
            },
        };
        self.slots[slot].state = State::Bound;
        self.slots[slot].cores |= Slot::bit(core);
        self.running[core].pages.push(Written { page, slot, upd: 0 });
        Claimed::At(at + self.charge(cycles))
    }

    /// Notes that a store has taken effect: the first to its line makes the other copy the newest.
    pub(super) fn stored(&mut self, store: &Store) {
        let line = store.word.line();
        let fell_back = self.waits.fell_back(store.core);
        if store.tx.is_none() || fell_back || line.address() >= self.log_base {
            return;
        }
        let running = &mut self.running[store.core];
        let bit = 1 << line.place_in_page();
        let Some(written) = running.written(Page::of(line)) else { return };
        let slot = &mut self.slots[written.slot];
        let is_first = written.upd & bit == 0;
        let stays = !self.rules.trigger_is_the_updated_bit && slot.cur & bit != 0;
        if !is_first || stays || !self.rules.remap_first_store {
            return;
        }
        written.upd |= bit;
        slot.cur ^= bit;
        self.counts.flips += 1;
        // Where cores wait for it, the claim of the line has.
        self.charge(self.params.flip);
    }

    /// Ends a transaction: writes its lines back, and then sends its pages' updates to the
    /// controller.
    pub(super) fn end(&mut self, tx: &Tx, below: &mut Below<SspEvent>) -> Progress {
        let core = tx.core;
        if self.waits.fell_back(core) {
            let running = std::mem::take(&mut self.running[core]);
            self.release_lines(core, &running.lines, tx.stored, below);
            self.waits.leave_software(core, tx.stored, below);
            return Progress::Done(tx.stored);
        }
        let running = &mut self.running[core];
        if running.lines.is_empty() {
            return Progress::Done(tx.at);
        }
        let mut at = tx.stored;
        for &line in &running.lines {
            let notify = Notify::Design(SspEvent::WrittenBack(core));
            let to = self.slots.locate(line);
            if self.rules.write_back_at_commit
                && below.write_back_to(at, line, to, Class::Data, notify)
            {
                running.writing_back += 1;
            }
            at += 1;
        }
        running.writing_back += 1;
        below.at(at, SspEvent::WrittenBack(core));
        if !self.rules.journal_after_lines {
            self.send_updates(core, tx.stored, below);
        }
        Progress::Wait
    }

    /// Counts that a line of a commit is durable, or that all have been sent.
    pub(super) fn written_back(&mut self, core: CoreId, at: Cycle, below: &mut Below<SspEvent>) {
        let running = &mut self.running[core];
        running.writing_back -= 1;
        if running.writing_back == 0 && self.rules.journal_after_lines {
            self.send_updates(core, at + below.shape.path, below);
        }
    }

    /// Sends an update of each page to the controller, one a cycle.
    fn send_updates(&mut self, core: CoreId, at: Cycle, below: &mut Below<SspEvent>) {
        for page in 0..self.running[core].pages.len().max(1) as u64 {
            below.at(at + below.shape.path + page, SspEvent::Update(core, page as u8));
        }
    }

    /// Takes an update that has come. With the last one, the group is appended as a whole.
    pub(super) fn update(
        &mut self,
        core: CoreId,
        index: u8,
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) {
        let running = &mut self.running[core];
        if !self.rules.append_whole_groups
            && let Some(&written) = running.pages.get(usize::from(index))
        {
            let entry = self.publish(&written);
            self.running[core].early.push(entry);
        }
        let running = &mut self.running[core];
        if usize::from(index) + 1 < running.pages.len() {
            return;
        }
        let pages = std::mem::take(&mut running.pages);
        let lines = std::mem::take(&mut running.lines);
        let early = std::mem::take(&mut running.early);
        self.append_commit(What::Commit { core, pages, lines, early }, at, below);
        if !self.rules.acknowledge_after_journal {
            below.wake(core, at + below.shape.path);
        }
    }

    /// Makes the lines of a transaction the committed ones of a page. Returns the record of that.
    pub(super) fn publish(&mut self, written: &Written) -> Entry {
        let slot = &mut self.slots[written.slot];
        slot.kept.com = match self.rules.commit_own_lines_only {
            true => slot.kept.com ^ written.upd,
            false => slot.cur,
        };
        Entry::Update { slot: written.slot, ppn0: slot.kept.ppn0, com: slot.kept.com }
    }

    /// Acknowledges a transaction whose group counts, and frees what it held.
    pub(super) fn committed(
        &mut self,
        core: CoreId,
        pages: &[Written],
        lines: &[Line],
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) {
        if self.rules.hold_lines_until_durable {
            self.release_lines(core, lines, at, below);
        }
        if self.rules.refer_until_durable {
            self.drop_references(core, pages, at, below);
        }
        if self.rules.acknowledge_after_journal {
            below.wake(core, at + below.shape.path);
        }
    }

    /// Lets other cores store to the lines of a transaction.
    pub(super) fn release_lines(
        &mut self,
        core: CoreId,
        lines: &[Line],
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) {
        for line in lines {
            if self.claims.get(line) == Some(&core) {
                self.claims.remove(line);
            }
        }
        self.waits.retry_where(|what| what == For::Holder(core), at, below);
    }

    /// Ends the references of a core's transaction to its pages.
    pub(super) fn drop_references(
        &mut self,
        core: CoreId,
        pages: &[Written],
        at: Cycle,
        below: &mut Below<SspEvent>,
    ) {
        for written in pages {
            let slot = &mut self.slots[written.slot];
            slot.cores &= match self.rules.core_reference_vector {
                true => !Slot::bit(core),
                false => 0,
            };
            self.retire(written.slot, at, below);
        }
    }

    /// Gives a transaction up: the old copies of its lines, which memory has, are current again.
    /// Nothing is written. Returns when the TLBs have heard of it.
    pub(super) fn revoke(&mut self, tx: &Tx, below: &mut Below<SspEvent>) -> Cycle {
        let core = tx.core;
        let running = std::mem::take(&mut self.running[core]);
        for written in &running.pages {
            if self.rules.revoke_current_bits {
                self.slots[written.slot].cur ^= written.upd;
            }
            for place in bits(written.upd) {
                below.caches.take_out(written.page.line(place));
            }
        }
        self.release_lines(core, &running.lines, tx.at, below);
        self.drop_references(core, &running.pages, tx.at, below);
        // The TLBs hear of each page, as they do of a first store.
        let flips = running.pages.len() as u64;
        self.counts.flips_revoked += flips;
        tx.stored.max(tx.at) + self.charge(self.params.flip * flips)
    }

    /// Gives a transaction up for its library: one core at a time goes on in software.
    pub(super) fn fall_back(&mut self, tx: &Tx, below: &mut Below<SspEvent>) -> Progress {
        let (core, mut at) = (tx.core, tx.at);
        if !self.waits.fell_back(core) {
            at = self.revoke(tx, below);
            self.waits.fall_back(core);
            self.counts.fallbacks += 1;
        }
        self.waits.enter_software(core, at, self.rules.fall_back_one_at_a_time)
    }
}
