//! Conventional shadow paging, which SSP starts from (MICRO 2019, section 2.3): the first store of
//! a transaction to a page gives its core a shadow of it, a copy in another frame, and the core's
//! stores go there. A commit writes the shadows' lines and then journals, for each page, the frame
//! that it lies in from then on. There is no paper of its own; it is the upper bound of what
//! copying costs, 64 lines for each page.
//!
//! ```text
//! core         shadow table: pages of the transaction, their shadows, lines stored to    commit.rs
//! controller   copies pages, keeps the frames that no page lies in                         copy.rs
//! memory       page table, shadow frames, journal                                        layout.rs
//! background   checkpoints of the journal into the page table                        checkpoint.rs
//! ```
//!
//! A page belongs to one transaction from its first store until its commit is durable. Another core
//! that stores to it meanwhile waits; a circle of such waits, a transaction of too many pages, and
//! a lack of frames are resolved by going on in software, as in SSP.

use std::collections::VecDeque;

use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Abort, Below, Card, Claim, Claimed, Corner, Design, Durability, Fence, Granularity, Needs,
    Ordering, Progress, Setup, Store, Structure, Tx,
};
use model::device::Write;
use model::image::{Image, Placement, PowerLoss};
use model::params::Both;
use model::units::{CoreId, Cycle, Line, Page, PageMap, PerCore};

use crate::parts::corners;
use crate::parts::counters::insert_before;
use crate::parts::fall_back::FallBack;
use crate::parts::journal::{Form, Journal};
use crate::parts::page_table::Frames;
use crate::parts::placed;
use crate::parts::waits::Waits;
use crate::undo::{UndoParams, UndoRules};

mod checkpoint;
mod commit;
mod copy;
mod invariants;
mod layout;
mod recovery;

use commit::{Commit, Running};
use copy::Shadow;
use layout::Layout;

model::params! {
    /// Sizes, and when pages are copied.
    pub struct ShadowParams {
        /// Pages that a transaction may have shadows of (ours: what SSP's write-set buffer holds).
        write_set = 64 in 1..=64, tight [1, 2, 64, 64];
        /// Frames for shadows, besides those that pages first lie in (ours: as many as SSP has
        /// extra pages on its machine).
        shadow_frames = 1024 in 1..=65_536, tight [2, 1, 40, 3, 5, 40];
        /// What is copied before the first store to a page: all of it, or nothing, and what was not
        /// stored to at the commit (ours).
        copy: Copying = Eager;
        /// Cycles of making other cores forget the old frames of a commit's pages, before it is
        /// acknowledged, if one of their TLBs has one (SSP, MICRO'19: thousands of cycles; 4,000
        /// is ours).
        shootdown = 4000 in 0..=1_000_000, tight [0, 4000];
        /// Lines of the journal's ring (ours: 256 KiB, as SSP's here).
        journal_lines = 4096 in 20..=65_536, tight [20];
        /// Percent of the ring in use at which a checkpoint begins (ours: half).
        checkpoint_percent = 50 in 1..=100, tight [1, 100, 1, 100];
        /// Lines that a checkpoint has under way at once (ours: a few, as SSP's here).
        checkpoint_writes = 4 in 1..=4096, tight [4, 1];
    }
}

model::choices! {
    /// When the lines of a page are copied.
    pub enum Copying {
        /// All of them before the first store to the page.
        Eager = "eager",
        /// Those that were not stored to, at the commit.
        Lazy = "lazy",
    }
}

/// A group of the journal begins a line of its own.
const FORM: Form = Form::with_commit_records(true);

model::rules! {
    /// What keeps it right.
    pub struct ShadowRules {
        /// Stores of a transaction go to the shadows of their pages.
        store_to_shadow,
        /// Those lines of a page that are not stored to are copied.
        copy_other_lines,
        /// A store to a page whose shadow belongs to another transaction waits for that
        /// transaction's end.
        one_transaction_at_a_time,
        /// Such a store waits until the journal has the other transaction's group.
        hold_pages_until_durable,
        /// A transaction that is aborted, or given up for software, drops its shadows.
        drop_shadows_at_abort,
        /// A commit writes the lines of its transaction back.
        write_back_at_commit,
        /// The journal's group follows the lines that were stored to.
        switch_after_lines,
        /// The journal's group follows the copies.
        switch_after_copies,
        /// The acknowledgement follows the group.
        acknowledge_after_journal,
        /// A group counts only if all before it do.
        groups_in_order,
        /// A group that the ring has no room for waits.
        stall_when_full,
        /// The frame that a page leaves is free only once the group counts.
        free_after_switch,
        /// A checkpoint writes the mappings of groups that count, and nothing else.
        checkpoint_what_counts,
        /// The tail of the journal follows the page table.
        tail_after_entries,
        /// Recovery believes a group only if its commit record is there.
        wait_for_commit_record,
        /// Recovery believes a commit record only if its checksum is right.
        verify_checksum_of_group,
        /// Recovery brings the page table in line with the journal.
        redo_page_table,
        /// Recovery's writes are durable before the journal begins anew.
        fence_before_journal_restarts,
        /// After recovery the journal continues a whole lap later.
        restart_a_lap_later,
        /// A transaction of more pages than the shadow table holds runs in software.
        fall_back_when_full,
        /// Only one core at a time runs in software.
        fall_back_one_at_a_time,
    }
}

/// The design.
pub struct ShadowPaging {
    params: ShadowParams,
    rules: ShadowRules,
    layout: Layout,
    log_base: u64,
    /// The frame of every page.
    frames: Frames,
    /// Frames that no page lies in, longest free first.
    free: VecDeque<Page>,
    running: PerCore<Running>,
    /// The core whose transaction may store to a page.
    owners: PageMap<CoreId>,
    shadows: PageMap<Shadow>,
    waits: Waits<Frame>,
    journal: Journal<Commit>,
    /// Pages of the groups that count and are not checkpointed, each with the end of its group.
    switched: VecDeque<(u64, Page)>,
    /// Groups that the ring has no room for.
    stalled: VecDeque<Commit>,
    /// Commits that wait until other cores have forgotten their old frames.
    shooting: VecDeque<Commit>,
    /// How many commits have begun and will free frames.
    ending: u64,
    counts: Counts,
}

/// What a core waits for besides other transactions: a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame;

/// The timed events of shadow paging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShadowEvent {
    /// A line of a shadow of the core's transaction of that number is durable, or all lines of its
    /// commit have been sent.
    Landed(CoreId, u64),
    /// The updates of a commit have come to the controller.
    Update(CoreId),
    /// A line of the journal's group that begins at this position is durable.
    Journaled(u64),
    /// Other cores have forgotten the old frames of the commit that waits for that longest.
    ShotDown,
    /// A line of the page table is durable in a checkpoint, or all have been sent.
    Checkpointed,
    /// The tail of the journal is durable.
    TailMoved,
}

model::counters! {
    struct Counts {
        shadows "pages_shadowed",
        lines_copied,
        page_conflicts,
        fallbacks,
        waits_for_frame,
        frames_exhausted,
        frames_freed,
        shootdowns,
        commits_stalled "groups_stalled",
    }
}

/// A corner with much in the journal (ours).
const FULL_JOURNAL: &[(&str, &str)] = &[
    ("controller.arrival_jitter", "300cycles"),
    ("design.checkpoint_percent", "1"),
    ("design.checkpoint_writes", "4"),
    ("design.journal_lines", "20"),
    ("design.shadow_frames", "40"),
    ("design.shootdown", "0"),
    ("design.write_set", "64"),
    ("pm.xpline", "64B"),
    ("tlb.entries", "4"),
    ("workload.apart", "4096"),
    ("workload.large", "128"),
    ("workload.words", "128"),
];

impl Design for ShadowPaging {
    const CARD: Card = Card {
        name: "shadow-paging",
        paper: "none (conventional)",
        family: "shadow paging",
        summary: "a transaction copies each page that it stores to, and a commit remaps them",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    const REVOKES: bool = true;
    const TRANSLATES: bool = true;
    const ORDERING: Ordering =
        Ordering { fences: true, flushes: true, lines_leave: true, ..Ordering::NONE };
    type Params = Both<ShadowParams, UndoParams>;
    type Rules = Both<ShadowRules, UndoRules>;
    type Event = ShadowEvent;
    type Library = FallBack;

    fn new(setup: &Setup<'_, ShadowPaging>) -> ShadowPaging {
        let (layout, cores) = (layout_of(setup), setup.shape.cores);
        ShadowPaging {
            params: setup.params.first.clone(),
            rules: setup.rules.first.clone(),
            log_base: setup.shape.log_base,
            frames: Frames::new(&layout.table),
            free: layout.shadow_frames().collect(),
            running: PerCore::new(cores, |_| Running::new(0)),
            owners: PageMap::default(),
            shadows: PageMap::default(),
            waits: Waits::new(cores),
            journal: Journal::new(layout.ring.clone(), FORM),
            switched: VecDeque::new(),
            stalled: VecDeque::new(),
            shooting: VecDeque::new(),
            ending: 0,
            counts: Counts::default(),
            layout,
        }
    }

    fn store(&mut self, store: &Store, _below: &mut Below<ShadowEvent>) -> Progress {
        self.stored(store);
        Progress::Done(store.at)
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<ShadowEvent>) -> Progress {
        placed::fence(fence, |line| self.locate(line), below)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<ShadowEvent>) -> Progress {
        self.end(tx, below)
    }

    fn abort(&mut self, tx: &Tx, by: Abort, below: &mut Below<ShadowEvent>) -> Progress {
        match by {
            Abort::ByProgram => Progress::Done(self.revoke(tx, below)),
            Abort::ByLibrary => self.fall_back(tx, below),
        }
    }

    fn reserved(setup: &Setup<'_, ShadowPaging>) -> u64 {
        layout_of(setup).bytes()
    }

    fn page_table(&self, page: Page) -> Line {
        self.layout.table.entry(page).line()
    }

    fn claim(&mut self, claim: &Claim, below: &mut Below<ShadowEvent>) -> Claimed {
        self.claim_page(claim, below)
    }

    /// Lines that a transaction has stored to lie in the shadow. The others are the same in both
    /// frames once they are copied, and are read from the page's own.
    #[inline]
    fn locate(&self, line: Line) -> Line {
        if line.address() >= self.log_base {
            return line;
        }
        let (page, place) = (Page::of(line), line.place_in_page());
        let shadow = self.shadows.get(&page).filter(|shadow| shadow.stored >> place & 1 == 1);
        shadow.map_or_else(|| self.frames.of(page), |shadow| shadow.frame).line(place)
    }

    fn resolve(image: &Image<'_>, setup: &Setup<'_, ShadowPaging>) -> Result<Placement, String> {
        recovery::resolve(image, setup)
    }

    fn event(&mut self, at: Cycle, event: ShadowEvent, below: &mut Below<ShadowEvent>) {
        match event {
            ShadowEvent::Landed(core, number) => self.landed(core, number, at, below),
            ShadowEvent::Update(core) => self.update(core, at, below),
            ShadowEvent::Journaled(start) => self.journaled(start, at, below),
            ShadowEvent::ShotDown => self.shot_down(at, below),
            ShadowEvent::Checkpointed => {
                let moved = self.rules.tail_after_entries.then_some(ShadowEvent::TailMoved);
                let (width, sent) = (self.params.checkpoint_writes, ShadowEvent::Checkpointed);
                self.journal.checkpointed(at, width, sent, moved, below);
            }
            ShadowEvent::TailMoved => self.tail_moved(at, below),
        }
    }

    fn invariants(&self) -> Result<(), String> {
        self.check_invariants()
    }

    fn could_be_durable(
        &self,
        below: &Below<ShadowEvent>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        placed::could_be_evicted(below, |line| self.locate(line), arrived)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, ShadowPaging>) -> Result<(), PowerLoss> {
        recovery::recover(image, setup)
    }

    fn boot(
        image: &mut Image<'_>,
        setup: &Setup<'_, ShadowPaging>,
    ) -> Result<ShadowPaging, PowerLoss> {
        Ok(recovery::boot(image, setup))
    }

    fn hardware(setup: &Setup<'_, ShadowPaging>) -> Vec<Structure> {
        let (params, cores) = (&setup.params.first, u64::from(setup.shape.cores));
        let structure = Structure::new;
        vec![
            // As SSP's write-set buffer (36 bits of a page, a bit for each line), and 40 of the
            // shadow.
            structure("shadow table", 36 + 40 + 64, params.write_set * cores, AtCore("core")),
            // The updates of a commit come page by page, and are appended together.
            structure(
                "update of a page of a commit (page, shadow)",
                36 + 40,
                params.write_set * cores,
                Elsewhere("memory controller"),
            ),
            structure("free frame", 40, params.shadow_frames, Elsewhere("memory controller")),
            structure("journal head and tail", 2 * 64, 1, Elsewhere("memory controller")),
        ]
    }

    /// Some lives leave much in the journal, a part of which the next life overwrites while lines
    /// overtake each other: a third of such trials show what stale groups do, and hardly one in a
    /// hundred of the others.
    fn corner(trial: u64, has_lives: bool) -> Corner {
        let mut corner = corners::of_pages(trial);
        if has_lives && trial % 4 == 2 {
            (corner.has_four_cores, corner.is_alone) = (true, true);
            corner.settings.extend(FULL_JOURNAL.iter().map(|&(path, value)| (path, value.into())));
        }
        corner
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.counts.list();
        let wraps = [("journal_wraps", self.journal.wraps)];
        insert_before("groups_stalled", &mut counters, &wraps);
        counters.push(("checkpoints", self.journal.checkpoints));
        counters
    }
}

fn layout_of(setup: &Setup<'_, ShadowPaging>) -> Layout {
    let params = &setup.params.first;
    Layout::new(setup.shape, params.shadow_frames, params.journal_lines)
}
