//! Kiln (Zhao, Li, Yoon, Xie and Jouppi, MICRO 2013): the last-level cache is non-volatile, and
//! holds what transactions stored until memory does. There is no log.
//!
//! A line that a transaction stores to is *pending* under its TxID. It may go down to the last
//! level and no further. When the transaction ends, its lines in the levels above are cleaned into
//! the last level (*clean-on-commit*; the copies above stay). When all are there, one write of the
//! status table commits the transaction. There are always two versions: the committed one is
//! written to memory before a newer one takes its place in the last level. A pending line that has
//! to leave the last level goes to an overflow area in memory.
//!
//! Recovery replays nothing. It drops what the last level holds of transactions that did not
//! commit, and copies lines of the others from the overflow area.
//!
//! The paper is known here from notes on it (MICRO 2013). What they are silent about is decided in
//! docs/fidelity/decisions.md.

use model::design::Location::Elsewhere;
use model::design::{
    Abort, Bare, Below, Card, Design, Disposition, Durability, Evict, Fill, Gasp, Granularity,
    KeptBy, Leave, NeedlessWith, Needs, Progress, Setup, Shape, Store, Structure, Tx,
};
use model::image::{Image, PowerLoss};
use model::units::{CoreId, Cycle, LINE_BYTES, Line};

mod cells;
mod commit;
mod lines;

use cells::Cells;
use commit::Transactions;
use lines::LastLevel;

use crate::parts::overflow;

model::params! {
    /// What the paper leaves open.
    pub struct KilnParams {
        /// TxIDs, and rows of the status table (ours: six bits in each tag).
        tx_ids = 64 in 1..=2048, tight [2, 3];
        /// Lines that the overflow area holds, as far as the log area has room (ours: a sixteenth
        /// of the last level of the machine `loc`).
        overflow_lines = 1024 in 1..=65536;
        /// Cycles from one line that a commit cleans to the next (ours: one a cycle).
        flush_interval = 1 in 1..=4096;
        /// When the committed version of a line is written to memory: when a newer one reaches the
        /// last level (MICRO'13), or when a transaction first stores to the line
        /// (ours: as early as it can be known); or never, since another way of its set keeps it
        /// until the newer one is committed.
        write_out: WriteOut = Arrival;
        /// Extra cycles of a read of the last level, on top of the machine's (LOC, ICCD'14,
        /// compares at equal latencies).
        llc_read = 0 in 0..=1000;
        /// Extra cycles of a write of the last level (the same).
        llc_write = 0 in 0..=1000;
        /// Extra cycles of a read whose newest bytes are in the overflow area (ours: as in
        /// `ec-wal`).
        redirect_latency = 8 in 0..=1000;
    }
}

model::choices! {
    /// When the committed version of a line is written to memory.
    pub enum WriteOut {
        /// When a newer one reaches the last level.
        Arrival = "arrival",
        /// When a transaction first stores to the line.
        Store = "store",
        /// Not for a newer one: it is kept in another way of its set.
        Never = "never",
    }
}

model::rules! {
    /// What keeps Kiln right (MICRO'13 as far as it is known here, and ours).
    pub struct KilnRules {
        /// A pending line keeps its TxID when it comes down to the last level.
        tag_what_comes_down,
        /// A pending line that leaves the last level goes to the overflow area, and not to its
        /// place.
        pending_to_overflow,
        /// The committed version of a line is in memory, or in another way, before a newer one
        /// takes its place in the last level.
        home_before_newer,
        /// The status changes only once the transaction's lines are in the last level.
        status_after_lines,
        /// The status changes only once the lines that came down before the transaction ended are
        /// in the last level, too.
        count_what_came_down,
        /// The status changes only once the transaction's lines that left the last level are in the
        /// overflow area.
        wait_for_overflow,
        /// The acknowledgement follows the status.
        acknowledge_after_status,
        /// An aborted transaction's versions are dropped before its TxID is free.
        drop_aborted,
        /// A line that leaves the last level is kept until memory has it.
        keep_until_home,
        /// The overflow area keeps a committed line until memory has it.
        keep_overflow_until_home,
        /// A TxID is used again only once no line has it.
        reuse_after_tags,
        /// Recovery drops lines of transactions whose status is not committed.
        drop_uncommitted,
        /// Recovery copies committed lines from the overflow area.
        copy_overflow,
        /// If a line has several versions, recovery takes the newest committed one.
        newest_committed,
    }
}

/// The design.
pub struct Kiln {
    params: KilnParams,
    rules: KilnRules,
    last: LastLevel,
    transactions: Transactions,
    /// Cycles from a core to the last level, and back.
    walk: u64,
    /// Cycles from a second level to the last.
    down: u64,
    /// Cycles that a write of the last level, or of the table beside it, takes.
    write: u64,
    path: u64,
    /// Why the settings do not fit, if they do not.
    misfit: Option<String>,
    cells: Cells,
    counts: Counts,
}

/// The timed events of Kiln.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KilnEvent {
    /// A version of a line reaches the last level.
    Arrive(usize),
    /// A write of the last level is durable, and the answer leaves its controller.
    Durable(Written),
    /// The last level hears that a write of it is durable.
    Heard(Written),
    /// A core's transaction is committed: its status changes.
    Status(CoreId, u16),
    /// The versions of a core's aborted transaction have been dropped.
    Dropped(CoreId, u16),
    /// No line has a TxID any longer.
    Untagged(u16),
}

/// What the last level wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A version that left the last level, or is to be replaced there, to its place.
    Home(Line, u64),
    /// A line to its slot of the overflow area.
    Overflowed(u32),
    /// The line of a slot to its place.
    OverflowHome(u32),
}

model::counters! {
    struct Counts {
        cleaned "lines_cleaned",
        came_down "lines_came_down",
        written_out "committed_written_out",
        waited_for_home "versions_waited_for_home",
        overflowed "lines_overflowed",
        overflow_max,
        refetched "overflow_refetched",
        waited_for_id "begins_waited_for_id",
    }
}

impl Design for Kiln {
    const CARD: Card = Card {
        name: "kiln",
        paper: "Kiln, MICRO 2013",
        family: "non-volatile cache",
        summary: "non-volatile last-level cache, commit by one write of a status table",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Line,
        needs: Needs::Nothing,
    };
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[NeedlessWith {
        field: "write_out",
        choice: "never",
        rule: "count_what_came_down",
        why: "nothing waits in front of the last level, so what came down before the transaction \
              ended is there before what its end cleans",
    }];
    const REVOKES: bool = true;
    const WATCHES_L2: bool = true;
    type Params = KilnParams;
    type Rules = KilnRules;
    type Event = KilnEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Kiln>) -> Kiln {
        let Setup { params, rules, shape } = setup;
        let times = shape.times;
        Kiln {
            params: (*params).clone(),
            rules: (*rules).clone(),
            last: LastLevel::new(shape, params.overflow_lines),
            transactions: Transactions::new(shape.cores, params.tx_ids),
            walk: times.l1 + times.l2 + times.llc,
            down: times.l2 + times.llc + params.llc_write,
            write: times.llc + params.llc_write,
            path: shape.path,
            misfit: overflow::misfit(shape, params.overflow_lines),
            cells: Cells::new(shape, params),
            counts: Counts::default(),
        }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<KilnEvent>) -> Progress {
        if let Some(text) = self.misfit.take() {
            below.give_up(text);
        }
        self.take_id(tx)
    }

    fn store(&mut self, store: &Store, below: &mut Below<KilnEvent>) -> Progress {
        if store.tx.is_some() {
            self.mark(store, below);
        }
        Progress::Done(store.at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<KilnEvent>) -> Progress {
        self.end(tx, below)
    }

    fn abort(&mut self, tx: &Tx, _by: Abort, below: &mut Below<KilnEvent>) -> Progress {
        self.revoke(tx, below)
    }

    fn fill(&mut self, fill: &Fill, _below: &mut Below<KilnEvent>) -> Cycle {
        if !fill.memory {
            return fill.at + self.params.llc_read;
        }
        if !self.last.is_overflowed(fill.line) {
            return fill.at;
        }
        self.counts.refetched += 1;
        fill.at + self.params.redirect_latency
    }

    fn come_down(&mut self, leave: &Leave, below: &mut Below<KilnEvent>) {
        self.counts.came_down += 1;
        let owner = self.last.owner(leave.line).filter(|_| self.rules.tag_what_comes_down);
        let counted = owner.filter(|_| self.rules.count_what_came_down).map(|owner| owner.core);
        self.send(leave.line, owner, counted, leave.at + self.down, below);
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<KilnEvent>) -> Disposition<KilnEvent> {
        self.leave(evict, below)
    }

    fn event(&mut self, at: Cycle, event: KilnEvent, below: &mut Below<KilnEvent>) {
        match event {
            KilnEvent::Arrive(index) => self.arrive(index, at, below),
            KilnEvent::Durable(written) => below.at(at + self.path, KilnEvent::Heard(written)),
            KilnEvent::Heard(Written::Home(line, stamp)) => self.home(line, stamp, at, below),
            KilnEvent::Heard(Written::Overflowed(slot)) => self.overflowed(slot, at, below),
            KilnEvent::Heard(Written::OverflowHome(slot)) => _ = self.last.overflow.drop(slot),
            KilnEvent::Status(core, id) => self.change_status(core, id, at, below),
            KilnEvent::Dropped(core, id) => self.drop_versions(core, id, at, below),
            KilnEvent::Untagged(id) => self.untag(id, at, below),
        }
    }

    fn leaves_behind(&self, line: Line) -> bool {
        self.last.owner(line).is_some()
    }

    /// The last level hears of a durable write when the answer has come back.
    fn hears_at_once(&self, _event: &KilnEvent) -> bool {
        false
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        self.save(gasp)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Kiln>) -> Result<(), PowerLoss> {
        cells::recover(image, setup)
    }

    fn hardware(setup: &Setup<'_, Kiln>) -> Vec<Structure> {
        hardware(setup.params, setup.shape)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

/// The last level and what stands beside it are of cells that keep their state; the levels above
/// are not.
fn hardware(params: &KilnParams, shape: &Shape) -> Vec<Structure> {
    let config = &shape.config;
    let cores = u64::from(shape.cores);
    let private = cores * (config.l1d.size + config.l2.size) / LINE_BYTES;
    let id = u64::from(params.tx_ids.next_power_of_two().trailing_zeros().max(1));
    let cells = |name, bits, count| {
        Structure::new(name, bits, count, Elsewhere("last-level cache")).kept(KeptBy::Cells)
    };
    let volatile = Structure::new;
    // A version in another way takes no line's place in the model: there may be one for each line.
    let lines = config.llc.size / LINE_BYTES;
    let older = if params.write_out == WriteOut::Never { lines } else { 0 };
    vec![
        cells(
            "line (64 B, address, TxID, state: the last level itself)",
            cells::LINE_BITS,
            lines + older,
        ),
        cells(
            "write-back buffer entry (64 B, address)",
            cells::LINE_BITS,
            overflow::leaving(shape),
        ),
        cells("status table row", 2, params.tx_ids.next_multiple_of(32)),
        cells(
            "overflow table entry (address, TxID, state, slot)",
            cells::OVERFLOW_BITS,
            overflow::room(shape, params.overflow_lines),
        ),
        cells("lengths of the tables", cells::LENGTHS_BITS, 1),
        volatile(
            "TxID and state of a line",
            id + 2,
            private,
            Elsewhere("first- and second-level caches"),
        ),
        volatile(
            "FIFO entry (TxID, line's place)",
            id + 16,
            private,
            Elsewhere("first- and second-level caches"),
        ),
    ]
}
