//! SSP, shadow sub-paging (Ni, Zhao, Litz, Bittman and Miller, MICRO 2019): each page in use has
//! two frames, and each of its lines a current copy in one of them. The first store of a
//! transaction to a line makes the other copy the current one; the line's tag changes with it, so
//! nothing is copied and evictions are free. A commit writes the lines back and then journals,
//! for each page, which copies are the committed ones. Pages that left every TLB are consolidated
//! into one frame in the background.
//!
//! ```text
//! core         extended TLB (PPN1, current bitmap), write-set buffer (updated bitmaps)   commit.rs
//! controller   SSP cache: slots with frames and bitmaps, references of cores   slots.rs, hot.rs
//! memory       page table, extra pages, persistent SSP cache, journal                    layout.rs
//! journal      update records and switch records     record.rs, groups.rs, parts/journal.rs
//! background   checkpoint.rs, consolidation.rs
//! ```
//!
//! What the paper leaves open, or says in two ways, is ours (docs/fidelity/decisions.md); each such
//! choice is a parameter or a rule here.

use std::collections::VecDeque;

use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Abort, Below, Card, Claim, Claimed, Corner, Design, Durability, Fence, Granularity, Needs,
    Ordering, Progress, Setup, Store, Structure, TlbEvict, TlbFill, Tx,
};
use model::device::Write;
use model::image::{Image, Placement, PowerLoss};
use model::params::Both;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineMap, Page, PerCore};

use crate::parts::corners;
use crate::parts::counters::insert_before;
use crate::parts::fall_back::FallBack;
use crate::parts::journal::{Complete, Form, Journal};
use crate::parts::placed;
use crate::parts::waits::Waits;
use crate::undo::{UndoParams, UndoRules};

mod checkpoint;
mod commit;
mod consolidation;
mod groups;
mod hot;
mod invariants;
mod layout;
mod record;
mod recovery;
mod slots;

use checkpoint::Known;
use commit::{Running, Written};
use consolidation::{Job, JobId};
use hot::Hot;
use layout::{Layout, SlotId};
use record::{Entry, SLOTS_MAX};
use slots::Slots;

model::params! {
    /// Sizes, and the choices that the paper leaves open.
    pub struct SspParams {
        /// Pages that a core's write-set buffer holds (MICRO'19 section 4.3: 64).
        write_set = 64 in 1..=64, tight [64, 1, 2];
        /// Slots of the SSP cache besides one for each TLB entry of each core (section 5: about
        /// 1,024 in all on its machine, of which 256 are for the TLBs).
        over_provision = 768 in 0..=4092;
        /// Slots in all; 0 for TLB entries x cores + `over_provision`, as the paper has it, but no
        /// more than the 262,141 that 18 bits of a record can name.
        slots = 0 in 0..=262_141, tight [3, 3, 40, 40, 6, 6, 9, 9];
        /// Slots that the last level of the caches has room for, which has those that were looked
        /// up last (section 5: about 1,024).
        l3_slots = 1024 in 0..=262_141;
        /// Cycles of looking a page up in the SSP cache after a walk; 0 for the last level's time,
        /// or DRAM's where it is not there (section 5: 27 and 185 cycles).
        ssp_cache_latency = 0 in 0..=100_000;
        /// Cycles that telling every TLB of a changed bit adds to a first store (ours: none, as
        /// the message rides on an invalidation; section 4.1.1 says as much).
        flip = 0 in 0..=100_000;
        /// Whether a core waits for the SSP cache and for the flip of a bit, or their cycles are
        /// only counted (`post_hoc_cycles`), to be added to the run's, as in the paper (section 5).
        mode: Mode = Full;
        /// When a page gets a slot: when a TLB gains it, as in the paper, or with its first store.
        allocate: Allocate = TlbFill;
        /// Lines of the journal's ring (ours: 256 KiB; the paper gives none).
        journal_lines = 4096 in 20..=65_536, tight [20];
        /// What happens to a line of the journal that a commit does not fill: it is left, or
        /// written again with the next group; or commits that come while a group is being written
        /// wait for its end or until they fill a line, and are one group then, whose last line is
        /// left (ours, all three; the paper says that a commit flushes its records).
        journal: Unfilled = Pad;
        /// How recovery knows that all records of a group are there: by one more record with a
        /// checksum, or by a count in the last line's own records, each line with a checksum, for
        /// which `journal` must not be `rewrite` (ours; the paper says nothing of it).
        complete: Complete = CommitRecord;
        /// When the journal has the record of a consolidation: with a commit or with others in one
        /// line, unless a core waits for the page or lacks a slot, or at once and in a line of its
        /// own (section 4.1.2: records are written when the buffer is full or asked for; for one
        /// whose page and slot nobody needs nobody asks).
        switch_records: SwitchRecords = Together;
        /// Percent of the ring in use at which a checkpoint begins (ours: half).
        checkpoint_percent = 50 in 1..=100, tight [1, 1, 100, 100];
        /// Lines that a checkpoint has under way at once (ours: a few, so that what cores wait for
        /// is not behind hundreds of them).
        checkpoint_writes = 4 in 1..=4096, tight [4, 1];
        /// Pages whose lines are copied at once (ours: a thread that works on a few, so that one
        /// write latency is not the bound).
        consolidations = 8 in 1..=4096;
        /// Into which frame a page is consolidated: the one with more lines, always that of the
        /// page table, or always the extra page.
        direction: Direction = MinCopy;
    }
}

model::choices! {
    /// Whether a core waits for the cycles of the SSP cache and of flips (full).
    pub enum Mode { Full = "full", PostHoc = "post_hoc" }

    /// When a page gets a slot.
    pub enum Allocate { TlbFill = "tlb_fill", FirstStore = "first_store" }

    /// What happens to a line of the journal that a commit does not fill.
    pub enum Unfilled {
        Pad = "pad",
        /// It is written again.
        Rewrite = "rewrite",
        /// Commits that come during the write of a group are one group.
        Group = "group",
    }

    /// When the journal has the record of a consolidation.
    pub enum SwitchRecords {
        Together = "together",
        /// At once.
        Alone = "alone",
    }

    /// Into which frame a page is consolidated.
    pub enum Direction {
        /// The one that has more of its lines.
        MinCopy = "min_copy",
        PageTable = "page_table",
        ExtraPage = "extra_page",
    }
}

model::rules! {
    /// What keeps it right (SSP, MICRO'19 sections 3 and 4, and ours where these are silent).
    pub struct SspRules {
        /// The first store of a transaction to a line makes its other copy the current one.
        remap_first_store,
        /// A first store is one whose updated bit is clear, whatever the current bit is.
        trigger_is_the_updated_bit,
        /// A store to a line that another transaction stored to waits for that transaction's end.
        line_conflict_guard,
        /// Such a store waits until the journal has the other transaction's group.
        hold_lines_until_durable,
        /// A commit writes the lines of its transaction back.
        write_back_at_commit,
        /// The journal's group follows the lines.
        journal_after_lines,
        /// A group's records are made and appended in one step, with the last update.
        append_whole_groups,
        /// A commit changes the committed bits of its own lines and no others.
        commit_own_lines_only,
        /// The acknowledgement follows the group.
        acknowledge_after_journal,
        /// A transaction that is aborted, or given up for software, makes the other copies of its
        /// lines the current ones again.
        revoke_current_bits,
        /// A group counts only if all before it do.
        groups_in_order,
        /// A group that the ring has no room for waits.
        stall_when_full,
        /// The cores that refer to a page are tracked one by one, not as a count.
        core_reference_vector,
        /// A core refers to its pages until the journal has its group.
        refer_until_durable,
        /// A page is consolidated only when no TLB has it.
        consolidate_what_no_tlb_has,
        /// A page that is to be consolidated no longer is when a TLB gains it.
        cancel_when_touched,
        /// A TLB gains a page that is being consolidated only once that is done.
        fill_after_consolidation,
        /// The switch record follows the copies.
        switch_after_copies,
        /// The page table follows the switch record.
        page_table_after_switch,
        /// A slot is free only once the switch record counts.
        reuse_after_switch,
        /// The switch record names both frames; recovery derives neither.
        log_both_pages,
        /// A checkpoint writes the mappings of groups that count, and nothing else.
        checkpoint_what_counts,
        /// A checkpoint keeps the switch records that the page table does not reflect yet.
        checkpoint_after_page_table,
        /// The tail of the journal follows the entries.
        tail_after_entries,
        /// Recovery believes a group only if its commit record is there, or as many records as its
        /// count says.
        wait_for_commit_record,
        /// Recovery believes a commit record, or a line of a group with a count, only if its
        /// checksum is right.
        verify_checksum_of_group,
        /// Recovery repeats a switch's update of the page table.
        redo_page_table,
        /// Recovery's writes are durable before the journal begins anew.
        fence_before_journal_restarts,
        /// After recovery the journal continues a whole lap later.
        restart_a_lap_later,
        /// A transaction of more pages than the write-set buffer holds runs in software.
        fall_back_when_full,
        /// Only one core at a time runs in software.
        fall_back_one_at_a_time,
    }
}

/// The design.
pub struct Ssp {
    params: SspParams,
    rules: SspRules,
    layout: Layout,
    log_base: u64,
    /// Cycles that a first store takes to own the other copy and tell the TLBs.
    remap_cycles: u64,
    dram_cycles: u64,
    slots: Slots,
    hot: Hot,
    running: PerCore<Running>,
    /// The core that may store to a line, while its transaction holds the line.
    claims: LineMap<CoreId>,
    waits: Waits<Reason>,
    journal: Journal<Vec<What>>,
    known: Known,
    /// Commits that wait in the journal's buffer for the group that is being written.
    gathered: Vec<What>,
    /// Groups that the ring has no room for.
    stalled: VecDeque<Vec<What>>,
    /// Consolidations whose switch records are in the journal's buffer and not in a group yet.
    ready: Vec<JobId>,
    /// Switches of which the page table does not know, each with the place of its group.
    swaps: Vec<(u64, JobId)>,
    /// Pages to be consolidated.
    queue: VecDeque<SlotId>,
    jobs: Vec<Job>,
    counts: Counts,
}

/// What a core waits for besides other transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The end of a page's consolidation.
    Page(SlotId),
    /// A slot.
    Slot,
}

/// What a group of the journal is for, or a part of it.
enum What {
    /// A commit: the pages and lines of the transaction.
    Commit { core: CoreId, pages: Vec<Written>, lines: Vec<Line>, early: Vec<Entry> },
    /// The end of a consolidation.
    Switch(JobId),
}

/// The timed events of SSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SspEvent {
    /// A line of a commit is durable, or all have been sent.
    WrittenBack(CoreId),
    /// The update of a page of a commit has come to the controller.
    Update(CoreId, u8),
    /// A line of the journal's group that begins at this position is durable.
    Journaled(u64),
    /// A line to be copied has been read.
    Copy(JobId, u8),
    /// A copy is durable, or all have been read.
    Copied(JobId),
    /// The copies of a consolidation are durable, and the controller hears of it.
    Ready(JobId),
    /// A core waits for a page or a slot, so switch records are not held back.
    Asked,
    /// An entry of the page table is durable.
    TableWritten(JobId),
    /// A checkpoint begins, or a line of its entries is durable.
    Checkpointed,
    /// The tail of the journal is durable.
    TailMoved,
}

model::counters! {
    struct Counts {
        tlb_misses,
        flips,
        flips_revoked,
        line_conflicts,
        fallbacks,
        slots_exhausted,
        fills_without_slot,
        fills_delayed,
        waits_for_slot,
        queue_cancelled "consolidations_cancelled",
        consolidations,
        copied_lines "lines_copied",
        swaps "frames_swapped",
        groups_stalled,
        post_hoc_cycles,
    }
}

impl Design for Ssp {
    const CARD: Card = Card {
        name: "ssp",
        paper: "Ni et al., MICRO 2019",
        family: "shadow paging",
        summary: "each line of a page in use has two copies, and a commit says which ones count",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    const REVOKES: bool = true;
    const TRANSLATES: bool = true;
    const ORDERING: Ordering =
        Ordering { fences: true, flushes: true, lines_leave: true, ..Ordering::NONE };
    type Params = Both<SspParams, UndoParams>;
    type Rules = Both<SspRules, UndoRules>;
    type Event = SspEvent;
    type Library = FallBack;

    fn new(setup: &Setup<'_, Ssp>) -> Ssp {
        let (layout, shape) = (layout_of(setup), setup.shape);
        let (params, rules) = (setup.params.first.clone(), setup.rules.first.clone());
        let dram = &shape.config.dram;
        let flip = if params.mode == Mode::Full { params.flip } else { 0 };
        Ssp {
            log_base: shape.log_base,
            remap_cycles: shape.times.l2 + shape.times.llc + flip,
            dram_cycles: shape.config.cycles(dram.t_rp + dram.t_rcd + dram.t_hit),
            slots: Slots::new(&layout),
            hot: Hot::new(layout.slots, params.l3_slots),
            running: PerCore::new(shape.cores, |_| Running::default()),
            claims: LineMap::default(),
            waits: Waits::new(shape.cores),
            journal: Journal::new(layout.ring.clone(), form(&params)),
            known: Known::new(&layout),
            gathered: Vec::new(),
            stalled: VecDeque::new(),
            ready: Vec::new(),
            swaps: Vec::new(),
            queue: VecDeque::new(),
            jobs: Vec::new(),
            counts: Counts::default(),
            params,
            rules,
            layout,
        }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<SspEvent>) -> Progress {
        if !form(&self.params).pads && self.params.complete == Complete::Count {
            below.give_up(
                "a line of the journal that has a count cannot be written again, as \
                 `design.journal=rewrite` would: --set design.journal=pad or \
                 design.complete=commit_record"
                    .to_owned(),
            );
        }
        Progress::Done(tx.stored)
    }

    fn store(&mut self, store: &Store, _below: &mut Below<SspEvent>) -> Progress {
        self.stored(store);
        Progress::Done(store.at)
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<SspEvent>) -> Progress {
        placed::fence(fence, |line| self.locate(line), below)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<SspEvent>) -> Progress {
        self.end(tx, below)
    }

    fn abort(&mut self, tx: &Tx, by: Abort, below: &mut Below<SspEvent>) -> Progress {
        match by {
            Abort::ByProgram => Progress::Done(self.revoke(tx, below)),
            Abort::ByLibrary => self.fall_back(tx, below),
        }
    }

    fn reserved(setup: &Setup<'_, Ssp>) -> u64 {
        layout_of(setup).bytes()
    }

    fn page_table(&self, page: Page) -> Line {
        self.layout.table.entry(page).line()
    }

    fn tlb_fill(&mut self, fill: &TlbFill, below: &mut Below<SspEvent>) -> Progress {
        self.tlb_gains(fill, below)
    }

    fn tlb_evict(&mut self, evict: &TlbEvict, below: &mut Below<SspEvent>) {
        self.tlb_loses(evict, below);
    }

    fn claim(&mut self, claim: &Claim, below: &mut Below<SspEvent>) -> Claimed {
        self.claim_line(claim, below)
    }

    #[inline]
    fn locate(&self, line: Line) -> Line {
        if line.address() < self.log_base { self.slots.locate(line) } else { line }
    }

    fn resolve(image: &Image<'_>, setup: &Setup<'_, Ssp>) -> Result<Placement, String> {
        recovery::resolve(image, setup)
    }

    fn event(&mut self, at: Cycle, event: SspEvent, below: &mut Below<SspEvent>) {
        match event {
            SspEvent::WrittenBack(core) => self.written_back(core, at, below),
            SspEvent::Update(core, page) => self.update(core, page, at, below),
            SspEvent::Journaled(start) => self.journaled(start, at, below),
            SspEvent::Copy(job, place) => self.copy(job, place, at, below),
            SspEvent::Copied(job) => self.copied(job, at, below),
            SspEvent::Ready(job) => self.make_ready(job, at, below),
            SspEvent::Asked => self.write_switches(at, below),
            SspEvent::TableWritten(job) => self.table_written(job, at, below),
            SspEvent::Checkpointed => {
                let moved = self.rules.tail_after_entries.then_some(SspEvent::TailMoved);
                let (width, sent) = (self.params.checkpoint_writes, SspEvent::Checkpointed);
                self.journal.checkpointed(at, width, sent, moved, below);
            }
            SspEvent::TailMoved => self.tail_moved(at, below),
        }
    }

    fn invariants(&self) -> Result<(), String> {
        self.check_invariants()
    }

    fn could_be_durable(
        &self,
        below: &Below<SspEvent>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        placed::could_be_evicted(below, |line| self.locate(line), arrived)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Ssp>) -> Result<(), PowerLoss> {
        recovery::recover(image, setup)
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Ssp>) -> Result<Ssp, PowerLoss> {
        Ok(recovery::boot(image, setup))
    }

    fn hardware(setup: &Setup<'_, Ssp>) -> Vec<Structure> {
        let (config, cores) = (&setup.shape.config, u64::from(setup.shape.cores));
        let volatile = Structure::new;
        // Section 4.3: 40 bits of PPN1 and the current bitmap; 36 of a page and the updated one.
        let (extension, written) = (40 + 64, 36 + 64);
        let pages = setup.params.first.write_set * cores;
        let (core, controller) = (AtCore("core"), Elsewhere("memory controller"));
        // The controller keeps the updates of a commit, which come page by page, until it appends
        // them all, and records of consolidations until a line of them is full. The SSP cache lies
        // in memory that the machine has anyway.
        let mut structures = vec![
            volatile("first-level TLB extension", extension, config.tlb.entries * cores, core),
            volatile("write-set buffer", written, pages, core),
            volatile("update of a page of a commit (PPN0, bitmap)", 40 + 64, pages, controller),
            volatile("journal buffer line", 8 * LINE_BYTES, 1, controller),
            volatile("journal head and tail", 2 * 64, 1, controller),
        ];
        if config.tlb.l2_entries > 0 {
            let entries = config.tlb.l2_entries * cores;
            structures.insert(1, volatile("second-level TLB extension", extension, entries, core));
        }
        structures
    }

    fn corner(trial: u64, _has_lives: bool) -> Corner {
        let mut corner = corners::of_pages(trial);
        corner.set("design.direction", ["extra_page", "min_copy"][trial as usize / 3 % 2]);
        corner
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.counts.list();
        let (slots, journal) = (&self.slots, &self.journal);
        let wraps = [("slots_reused", slots.reused), ("journal_wraps", journal.wraps)];
        insert_before("groups_stalled", &mut counters, &wraps);
        let checkpoints = [("checkpoints", journal.checkpoints)];
        insert_before("post_hoc_cycles", &mut counters, &checkpoints);
        counters
    }
}

/// How the journal's groups lie, and what shows that they are complete.
fn form(params: &SspParams) -> Form {
    Form { pads: params.journal != Unfilled::Rewrite, complete: params.complete }
}

fn layout_of(setup: &Setup<'_, Ssp>) -> Layout {
    let (params, shape) = (&setup.params.first, setup.shape);
    let tlb = &shape.config.tlb;
    let entries = if tlb.l2_entries > 0 { tlb.l2_entries } else { tlb.entries };
    let usual = entries * u64::from(shape.cores) + params.over_provision;
    let slots = if params.slots > 0 { params.slots } else { usual.min(u64::from(SLOTS_MAX)) };
    Layout::new(shape, slots as u32, params.journal_lines)
}
