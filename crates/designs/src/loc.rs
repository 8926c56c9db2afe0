//! Write-ahead logging in hardware, and Loose-Ordering Consistency (Lu, Shu, Sun and Mutlu,
//! ICCD 2014): one engine, and three designs that are settings of it.
//!
//! A transaction's lines stay in the caches; when it ends, the cache controller writes them to a
//! log, and only when they are durable there may they go to their places (redo, by line).
//!
//! - `h-wal`: when all blocks are durable, a commit record is written, and then the transaction is
//!   acknowledged.
//! - `ec-wal`, *eager commit*: there is no record. Each log block has the TxID of its transaction,
//!   and one of the transaction's blocks has the number of all of them (TxCnt); recovery counts.
//! - `loc-wal`, *speculative persistence* on top: the program goes on before its transaction is
//!   durable, with up to SD transactions in the window. They persist in any order and commit in
//!   order. If several of them stored to a line, only the last version is logged, which dependency
//!   pairs <Tp, Tq, n> remember.
//!
//! The slides fix the count, the pairs, recovery by scanning the log, and what the window is for.
//! Everything else is ours: what it must obey are switches of [`LocRules`], and why it is so is in
//! docs/fidelity/decisions.md. All cores share one log, and transactions have one order: that in
//! which they end.

use std::marker::PhantomData;

use model::design::Location::Elsewhere;
use model::design::{
    Abort, Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Fence, FenceKind,
    Fill, Gasp, Granularity, KeptBy, NeedlessWith, Needs, Progress, Setup, Shape, Store, Structure,
    Tx,
};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::params::{Both, Params};
use model::units::{Cycle, LINE_BYTES, Line};

use crate::parts::corners;

mod drain;
pub(crate) mod ended;
mod engine;
pub(crate) mod entry;
pub(crate) mod few;
mod home;
pub(crate) mod recovery;
mod ring;
pub(crate) mod speculation;
#[cfg(test)]
mod tests;
pub(crate) mod window;

use engine::Engine;
use entry::{Format, Place};
use recovery::Layout;
use ring::{Area, Grouping};
use speculation::Speculates as _;
use window::Commit;

model::params! {
    /// What a log with commit records can be given.
    pub struct WalParams {
        /// Writes of the log under way at once, and as many writes in place (ours: twice the banks
        /// of the slides' memory, so that none is idle).
        log_writes = 16 in 1..=1024;
        /// Extra cycles of a read whose newest bytes are in the log (ours: a table in the memory
        /// controller, as slow as Silo's log buffer).
        redirect_latency = 8 in 0..=1000;
        /// Bits of a TxID in the log (ours: two bytes; few bits wrap soon).
        id_bits = 16 in 5..=16;
        /// Percent of the log, or of the TxIDs, in use at which truncation begins (ours: early
        /// enough to go on beside the log, late enough to leave most lines to evictions).
        truncate_perc = 50 in 1..=100;
        /// Where the blocks of a group lie: each group begins a line further round than the one
        /// before (ours), or all alike (the slides' figure), which puts every metadata block into
        /// one bank where the banks take turns by line and a group is as long as a turn.
        groups: Groups = Turned;
    }
}

model::params! {
    /// What a log that counts can be given, too.
    pub struct BurstParams {
        /// Where the metadata of a block are: in a block that follows a group of seven (the slides'
        /// figure), or in the burst of the block itself: 8 bytes on the lane that memory has for
        /// error correction, which the log's blocks then lack (ours). The 72 bytes are durable as
        /// one, also in cells (ours: a power failure tears no burst).
        metadata: Metadata = Block;
    }
}

/// The parameters of a log that counts.
pub type CountingParams = Both<WalParams, BurstParams>;

model::params! {
    /// What LOC can be given, too.
    pub struct LocParams {
        /// The speculation degree: transactions of a core that run or are not durable (ICCD'14
        /// slides sweep 1 to 32; 16 is ours: their average of 0.651 is below the 0.689 with 32).
        sd = 16 in 1..=32;
        /// When a core's transactions are drained to the log: all that have ended when half of the
        /// window has, so that the other half runs on (ours); or when the window is full its
        /// oldest, and no more than must go with it.
        drain: Drain = Half;
        /// What happens to the TxCnt of a transaction all of whose blocks were absorbed: another
        /// one carries it, or the last block is pinned, that is, not absorbed (both ours; the
        /// slides' example shows that it happens, not what is done).
        bearer: Bearer = Carry;
    }
}

model::choices! {
    /// Where the blocks of a group lie.
    pub enum Groups {
        /// A line further round than those of the group before.
        Turned = "turned",
        /// As those of every group.
        Aligned = "aligned",
    }

    /// Where the metadata of a block are.
    pub enum Metadata {
        /// In a block that follows a group of seven.
        Block = "block",
        /// In the burst of the block itself.
        Burst = "burst",
    }

    /// When a core's transactions are drained.
    pub enum Drain {
        /// All that have ended, when half of the window has.
        Half = "half",
        /// The oldest, when the window is full.
        Oldest = "oldest",
    }

    /// What has the TxCnt of a transaction all of whose blocks were absorbed.
    pub enum Bearer {
        /// Another transaction carries it.
        Carry = "carry",
        /// The last block, which is not absorbed.
        Pin = "pin",
    }
}

model::rules! {
    /// What keeps transactions right that are committed by counting and absorb each other's lines,
    /// in a log as in a last level that survives (the count, the pairs and the order of commits are
    /// the slides'; the rest is ours).
    pub struct CountingRules {
        /// A transaction without lines of its own has its TxCnt in an entry without a line.
        count_without_blocks,
        /// A transaction counts as durable only once all before it are durable.
        acknowledge_in_order,
        /// A transaction counts as durable only once the transactions that absorbed its lines are
        /// durable.
        acknowledge_closed,
        /// Only a version that has not been sent to where it survives is absorbed.
        absorb_unissued,
        /// A transaction is drained together with the transactions that absorbed its lines.
        drain_closure,
        /// If all lines of a transaction were absorbed, another transaction carries its TxCnt.
        carry_count,
        /// Its dependency pairs are then carried by that transaction, too.
        rehome_pairs,
        /// Recovery counts absorbed lines only if the transaction that absorbed them is complete.
        count_committed,
        /// Recovery commits nothing after a transaction that is not complete.
        commit_in_order,
        /// Recovery commits no transaction that has a line beyond the prefix.
        closure_trim,
    }
}

/// The rules of the three.
pub type WalRules = Both<CountingRules, LocRules>;

model::rules! {
    /// What keeps the three logs right beside that (ours).
    pub struct LocRules {
        /// A line of a running transaction goes to the log when it leaves the caches.
        uncommitted_to_log,
        /// A line of a transaction that has ended but is not durable goes to the log when it leaves
        /// the caches.
        undurable_to_log,
        /// Blocks that a transaction wrote to the log before it ended count as its own.
        adopt_early,
        /// An aborted transaction's versions are dropped, and the versions before them are the
        /// newest again.
        drop_aborted,
        /// Blocks that an aborted transaction wrote to the log belong to no transaction: no later
        /// one adopts them.
        abandon_early,
        /// An aborted transaction with entries in the log takes a TxID, whose TxCnt (or commit
        /// record) says that it is complete without a block.
        mark_aborted,
        /// The TxCnt counts entries, and not lines: a line that left the caches twice has two.
        count_entries,
        /// The metadata of a block do not become durable before the block. (In the block's own
        /// burst they never do.)
        data_before_metadata,
        /// The commit record is written only once the blocks are durable.
        record_after_log,
        /// The acknowledgement waits for the commit record.
        acknowledge_after_record,
        /// Recovery replays transactions in their order.
        replay_in_order,
        /// If a transaction has two entries for one line, the later one counts.
        later_slot_wins,
        /// Words of the log's previous pass are not taken for new ones.
        reject_stale_pass,
        /// Entries of truncated transactions do not end recovery's scan: they may lie between an
        /// old entry of a running transaction and its new ones.
        scan_past_truncated,
        /// The log is truncated only once memory has the data of its entries.
        truncate_after_home,
        /// Only lines of durable transactions are written in place.
        home_durable,
        /// The head moves only as far as TxIDs can tell apart the entries left in groups that are
        /// in use.
        keep_head_in_reach,
        /// A transaction begins only if its TxID differs from those in groups that are in use.
        begin_in_reach,
        /// A group is used again only once the head behind it is durable.
        head_before_reuse,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A machine that boots erases what is left in the log before it uses it.
        erase_log_at_boot,
    }
}

/// A setting of the engine that is a design of its own.
pub trait Scheme: 'static {
    /// Its card.
    const CARD: Card;
    /// Rules that it does not need.
    const NEEDLESS: &'static [(&'static str, &'static str)];
    /// Rules that it does not need with a choice of a parameter.
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[];
    /// Its parameters.
    type Params: Params;
    /// The engine's parameters that they come to.
    fn how(params: &Self::Params) -> How;
    /// See [`Design::corner`].
    fn corner(trial: u64) -> Corner {
        corners::of_numbers(trial, 5)
    }
}

/// The parameters of the engine.
#[derive(Clone, Copy, Debug)]
pub struct How {
    sd: u64,
    drain: Drain,
    commit: Commit,
    log_writes: u64,
    redirect_latency: u64,
    id_bits: u64,
    truncate_perc: u64,
    grouping: Grouping,
}

impl WalParams {
    /// The engine's parameters, with a commit record or a count, and metadata in blocks or in
    /// bursts.
    fn how(&self, record: bool, in_burst: bool) -> How {
        How {
            sd: 1,
            drain: Drain::Half,
            commit: Commit { record, pin: false, entries: true },
            log_writes: self.log_writes,
            redirect_latency: self.redirect_latency,
            id_bits: self.id_bits,
            truncate_perc: self.truncate_perc,
            grouping: Grouping { turned: self.groups == Groups::Turned, in_burst },
        }
    }
}

/// A redo log with a commit record.
pub struct HWal;

/// A redo log that is committed by counting.
pub struct EcWal;

/// A redo log that is committed by counting, with transactions that persist in any order.
pub struct LocWal;

const fn card(name: &'static str, summary: &'static str, durability: Durability) -> Card {
    Card {
        name,
        paper: "Lu, Shu, Sun and Mutlu, ICCD 2014",
        family: "hardware logging",
        summary,
        file: file!(),
        durability,
        granularity: Granularity::Line,
        needs: Needs::Nothing,
    }
}

const RECORDED: &str = "there is a commit record, and no TxCnt";
const COUNTED: &str = "there is a TxCnt, and no commit record";
const SYNCHRONOUS: &str = "a transaction is logged when it ends, so none absorbs another's block";
const INDEPENDENT: &str =
    "transactions that are not durable hold their locks, so none depends on another";

/// The rule that metadata on the lane for error correction make needless.
const IN_A_BURST: &[NeedlessWith] = &[NeedlessWith {
    field: "metadata",
    choice: "burst",
    rule: "data_before_metadata",
    why: "the metadata of a block are durable with it",
}];

const PINNED: &str = "the last block of a transaction stays, so no other carries anything of it";

/// Rules that LOC does not need with a choice of a parameter.
const LOC_NEEDLESS_WITH: &[NeedlessWith] =
    &[IN_A_BURST[0], pinned("carry_count"), pinned("rehome_pairs")];

/// A rule that is needless if the last block of a transaction is not absorbed.
pub(crate) const fn pinned(rule: &'static str) -> NeedlessWith {
    NeedlessWith { field: "bearer", choice: "pin", rule, why: PINNED }
}

impl Scheme for HWal {
    const CARD: Card =
        card("h-wal", "hardware redo log with a commit record", Durability::Synchronous);
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[
        ("count_entries", RECORDED),
        ("count_without_blocks", RECORDED),
        ("data_before_metadata", "the commit record waits for both"),
        ("acknowledge_closed", SYNCHRONOUS),
        ("absorb_unissued", INDEPENDENT),
        ("drain_closure", SYNCHRONOUS),
        ("carry_count", SYNCHRONOUS),
        ("rehome_pairs", SYNCHRONOUS),
        ("count_committed", SYNCHRONOUS),
        ("closure_trim", SYNCHRONOUS),
        ("commit_in_order", INDEPENDENT),
    ];
    type Params = WalParams;
    fn how(params: &WalParams) -> How {
        params.how(true, false)
    }
}

impl Scheme for EcWal {
    const CARD: Card = card(
        "ec-wal",
        "hardware redo log that counts its blocks to commit",
        Durability::Synchronous,
    );
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[
        ("record_after_log", COUNTED),
        ("acknowledge_after_record", COUNTED),
        ("acknowledge_closed", SYNCHRONOUS),
        ("absorb_unissued", INDEPENDENT),
        ("drain_closure", SYNCHRONOUS),
        ("carry_count", SYNCHRONOUS),
        ("rehome_pairs", SYNCHRONOUS),
        ("count_committed", SYNCHRONOUS),
        ("closure_trim", SYNCHRONOUS),
        ("commit_in_order", INDEPENDENT),
    ];
    const NEEDLESS_WITH: &'static [NeedlessWith] = IN_A_BURST;
    type Params = CountingParams;
    fn how(params: &CountingParams) -> How {
        params.first.how(false, params.second.metadata == Metadata::Burst)
    }
}

impl Scheme for LocWal {
    const CARD: Card = card(
        "loc-wal",
        "eager commit, and transactions that persist out of order and commit in order",
        Durability::Asynchronous,
    );
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[
        ("record_after_log", COUNTED),
        ("acknowledge_after_record", COUNTED),
        (
            "count_committed",
            "who absorbed a block and is not complete ends the prefix, and closure_trim then takes \
             out the transaction, too",
        ),
    ];
    const NEEDLESS_WITH: &'static [NeedlessWith] = LOC_NEEDLESS_WITH;
    type Params = Both<LocParams, CountingParams>;
    fn how(params: &Self::Params) -> How {
        let (own, counting) = (&params.first, &params.second);
        How {
            sd: own.sd,
            drain: own.drain,
            commit: Commit { record: false, pin: own.bearer == Bearer::Pin, entries: true },
            ..EcWal::how(counting)
        }
    }
    fn corner(trial: u64) -> Corner {
        let mut corner = corners::of_numbers(trial, 6);
        corners::of_a_window(trial, &mut corner);
        corner
    }
}

/// One of the three as a design.
pub struct Wal<S: Scheme> {
    engine: Engine,
    scheme: PhantomData<S>,
}

/// The timed events of the three designs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocEvent {
    /// A data block of a group of the log is durable.
    Data(u64),
    /// The metadata block of a group is durable.
    Metadata(u64),
    /// The commit record of a transaction is durable.
    Record(Place),
    /// An evicted line is durable in its place, as a transaction left it.
    Homed(Line, Place),
    /// A line that was written in place to truncate the log is durable, as a transaction left it.
    Checkpointed(Line, Place),
    /// The log's head is durable.
    Head,
}

impl<S: Scheme> Design for Wal<S> {
    const CARD: Card = S::CARD;
    const NEEDLESS: &'static [(&'static str, &'static str)] = S::NEEDLESS;
    const NEEDLESS_WITH: &'static [NeedlessWith] = S::NEEDLESS_WITH;
    const REVOKES: bool = true;
    type Params = S::Params;
    type Rules = WalRules;
    type Event = LocEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Self>) -> Self {
        let asynchronous = S::CARD.durability == Durability::Asynchronous;
        let how = S::how(setup.params);
        let engine = Engine::new(how, setup.rules.clone(), asynchronous, setup.shape);
        Wal { engine, scheme: PhantomData }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<LocEvent>) -> Progress {
        self.engine.begin(tx, below)
    }

    fn store(&mut self, store: &Store, _below: &mut Below<LocEvent>) -> Progress {
        self.engine.store(store);
        Progress::Done(store.at)
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<LocEvent>) -> Progress {
        match fence.kind {
            FenceKind::Durable => self.engine.flush(fence, fence.drained + self.engine.walk, below),
            FenceKind::Flush(..) | FenceKind::Order => Progress::Done(fence.at),
        }
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<LocEvent>) -> Progress {
        self.engine.end(tx, below)
    }

    fn abort(&mut self, tx: &Tx, _by: Abort, below: &mut Below<LocEvent>) -> Progress {
        self.engine.abort(tx, below)
    }

    fn fill(&mut self, fill: &Fill, _below: &mut Below<LocEvent>) -> Cycle {
        if !fill.memory || !self.engine.lines.contains_key(&fill.line) {
            return fill.at;
        }
        self.engine.counts.redirected += 1;
        fill.at + self.engine.how.redirect_latency
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<LocEvent>) -> Disposition<LocEvent> {
        self.engine.leave(evict, below)
    }

    fn event(&mut self, at: Cycle, event: LocEvent, below: &mut Below<LocEvent>) {
        let engine = &mut self.engine;
        match event {
            LocEvent::Data(group) => engine.data_is_durable(group, at, below),
            LocEvent::Metadata(group) => engine.metadata_is_durable(group, at, below),
            LocEvent::Record(place) => engine.record_is_durable(place, at, below),
            LocEvent::Homed(line, place) => engine.homed(line, place, at, below),
            LocEvent::Checkpointed(line, place) => engine.checkpointed(line, place, at, below),
            LocEvent::Head => engine.head_is_durable(at, below),
        }
    }

    fn leaves_behind(&self, line: Line) -> bool {
        let Some(state) = self.engine.lines.get(&line) else { return false };
        let durable = self.engine.transactions.window.durable;
        state.running.is_some() || state.ended.back().is_some_and(|&(place, _)| place >= durable)
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        self.engine.ring.save_lane(gasp)
    }

    /// Only the words in the bursts of log blocks survive, and they do with their blocks.
    fn hears_at_once(&self, event: &LocEvent) -> bool {
        matches!(event, LocEvent::Data(_) | LocEvent::Metadata(_))
    }

    fn could_be_durable(
        &self,
        _below: &Below<LocEvent>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        self.engine.ring.could_be_durable(arrived)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        let how = S::how(setup.params);
        recovery::recover(image, &how.layout(setup.shape), setup.rules)
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self, PowerLoss> {
        let how = S::how(setup.params);
        let head = recovery::boot(image, &how.layout(setup.shape), setup.rules)?;
        let mut design = Self::new(setup);
        design.engine.begin_at(head);
        Ok(design)
    }

    fn hardware(setup: &Setup<'_, Self>) -> Vec<Structure> {
        S::how(setup.params).hardware(setup.shape)
    }

    fn corner(trial: u64, _has_lives: bool) -> Corner {
        S::corner(trial)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.engine.counters()
    }
}

impl How {
    fn layout(&self, shape: &Shape) -> Layout {
        Layout {
            area: Area::new(shape, self.grouping),
            format: Format { id_bits: self.id_bits },
            record: self.commit.record,
            // A closed group has a write under way, or is durable.
            gap_max: self.log_writes + 2,
        }
    }

    /// All structures are volatile but those of memory's own cells: after a power failure nothing
    /// but the log is needed.
    fn hardware(&self, shape: &Shape) -> Vec<Structure> {
        let config = &shape.config;
        let cores = u64::from(shape.cores);
        let lines = (config.llc.size + cores * (config.l1d.size + config.l2.size)) / LINE_BYTES;
        let volatile = Structure::new;
        // TxIDs of lines in the caches tell apart the transactions in the windows of all cores.
        let id = u64::from((2 * self.sd * cores).next_power_of_two().trailing_zeros());
        let speculative = self.sd > 1;
        // The open group, the groups whose data blocks are under way, and the groups to which a
        // commit record is to be added.
        let groups = 1 + self.log_writes + if self.commit.record { cores } else { 0 };
        // TxID, state, TxCnt, log writes outstanding; blocks absorbed by each later one, of any
        // core, and whether it carries the TxCnt.
        let later = if speculative { self.sd * cores - 1 } else { 0 };
        let entry = self.id_bits + 2 + 18 + 18 + (18 + 1) * later;
        let area = Area::new(shape, self.grouping);
        let mut structures = vec![
            volatile(
                "transaction id of a line, and whether it is old",
                id + 1,
                lines,
                Elsewhere("caches"),
            ),
            volatile("window table entry", entry, self.sd * cores, Elsewhere("cache controller")),
            volatile(
                "redirect table entry (line, log slot)",
                36 + 32,
                area.blocks() * area.groups,
                Elsewhere("memory controller"),
            ),
            volatile("metadata block of a group", 8 * 64, groups, Elsewhere("memory controller")),
            volatile("log tail", 32, 1, Elsewhere("memory controller")),
        ];
        if self.grouping.in_burst {
            let name = "metadata of a log block (no new cells: those for error correction)";
            let place = Elsewhere("memory, the lane for error correction");
            structures.push(Structure::new(name, 64, area.groups, place).kept(KeptBy::Cells));
        }
        structures
    }
}
