//! LOC over Kiln: the loose ordering of LOC (Lu, Shu, Sun and Mutlu, ICCD 2014) with the
//! non-volatile last level of Kiln (MICRO 2013) in the place of the log.
//!
//! There is no status table. Every line in the last level has the TxID of the transaction that left
//! it, and one line of each transaction has its TxCnt. A transaction is committed when as many of
//! its lines are there as the TxCnt says. So transactions go on before they are durable, and their
//! lines reach the last level in any order; if several of them stored to a line, only the last
//! version need reach it. The window, the dependency pairs and the counting are those of
//! [`loc`](crate::loc).
//!
//! What LOC calls versions lie in the last level side by side, so a newer one does not wait until
//! an older one is in memory. A register holds the last transaction that is *retired*: transactions
//! up to it are committed without being counted, and only their lines may lose their TxIDs and
//! leave. A line of a later transaction that has to leave goes to the overflow area in memory.
//!
//! The slides say that LOC and Kiln combine, and no more; how they do is ours
//! (docs/fidelity/decisions.md).

use model::design::Location::Elsewhere;
use model::design::{
    Abort, Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Fence, FenceKind,
    Fill, Gasp, Granularity, KeptBy, NeedlessWith, Needs, Progress, Setup, Store, Structure, Tx,
};
use model::image::{Image, PowerLoss};
use model::params::Both;
use model::units::{Cycle, LINE_BYTES, Line, PerCore};

mod cells;
mod lines;
mod transactions;

use cells::Cells;
use lines::LastLevel;
use transactions::StoredLines;

use crate::kiln::Written;
use crate::loc::entry::{Entry, Place};
use crate::loc::speculation::{Speculates as _, Transactions};
use crate::loc::window::Commit;
use crate::loc::{Bearer, CountingRules, LocParams, pinned};
use crate::parts::{corners, overflow};

model::params! {
    /// What the slides leave open of the last level.
    pub struct LocKilnParams {
        /// Lines of the last level that hold a version older than the newest there (ours: a quarter
        /// of the last level of the machine `loc`). One that finds no room goes to the overflow
        /// area.
        old_versions = 4096 in 1..=65536, tight [1, 4];
        /// Lines that the overflow area holds, as far as the log area has room; no transaction
        /// begins while more than half of them are in use, or would be if every line that is not
        /// retired had to leave (ours: a quarter of the last level of the machine `loc`).
        overflow_lines = 4096 in 1..=65536;
        /// As in `kiln`.
        flush_interval = 1 in 1..=4096;
        /// As in `kiln`.
        llc_read = 0 in 0..=1000;
        /// As in `kiln`.
        llc_write = 0 in 0..=1000;
        /// As in `kiln`.
        redirect_latency = 8 in 0..=1000;
    }
}

model::rules! {
    /// What keeps LOC over Kiln right (ours).
    pub struct LocKilnRules {
        /// A line of a running transaction goes to the overflow area when it leaves the caches.
        running_to_overflow,
        /// A line of a transaction that has ended but is not retired goes to the overflow area when
        /// it leaves the caches.
        unretired_to_overflow,
        /// An aborted transaction's versions are dropped, and the versions before them are the
        /// newest again.
        drop_aborted,
        /// A line that leaves the last level for the overflow area is kept until it is there.
        keep_until_overflowed,
        /// A line that leaves the last level for its place is kept until memory has it.
        keep_until_home,
        /// The overflow area keeps a retired line until memory has it.
        keep_overflow_until_home,
        /// An entry of the overflow table counts only once its line is in the overflow area.
        count_what_is_there,
        /// A newer version leaves the older ones of its line in the last level.
        keep_old_versions,
        /// A line leaves for its place only once the register says that its transaction is retired.
        retire_before_leaving,
        /// If a line has several committed versions, recovery takes the newest.
        newest_committed,
    }
}

/// The design.
pub struct LocKiln {
    params: LocKilnParams,
    rules: LocKilnRules,
    last: LastLevel,
    running: PerCore<StoredLines>,
    transactions: Transactions,
    /// The register: transactions before this one are retired.
    retired: Place,
    /// Entries without a line that have arrived, kept until their transactions are retired.
    notes: Vec<(Place, Entry)>,
    /// Cycles from a core to the last level, and back.
    walk: u64,
    /// Cycles that a write of the last level, or of a register beside it, takes.
    write: u64,
    path: u64,
    /// Why the settings do not fit, if they do not.
    misfit: Option<String>,
    cells: Cells,
    counts: Counts,
}

/// The timed events of LOC over Kiln.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocKilnEvent {
    /// An entry reaches the last level.
    Arrive(usize),
    /// A write of the last level is durable, and the answer leaves its controller.
    Durable(Written),
    /// The last level hears that a write of it is durable.
    Heard(Written),
    /// The transactions before a place are retired.
    Retire(u64),
}

model::counters! {
    struct Counts {
        transactions "transactions_with_stores",
        coalesced "lines_coalesced",
        lines "lines_cleaned",
        notes,
        drains,
        closure_max,
        durable_at_once_max,
        window_full,
        overflow_crowded,
        old_versions_max,
        overflowed_running "lines_overflowed_running",
        overflowed "lines_overflowed",
        overflow_max,
        refetched "overflow_refetched",
    }
}

impl Design for LocKiln {
    const CARD: Card = Card {
        name: "loc-kiln",
        paper: "Lu, Shu, Sun and Mutlu, ICCD 2014, over Kiln, MICRO 2013",
        family: "non-volatile cache",
        summary: "non-volatile last-level cache, transactions that persist out of order",
        file: file!(),
        durability: Durability::Asynchronous,
        granularity: Granularity::Line,
        needs: Needs::Nothing,
    };
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[(
        "count_committed",
        "who absorbed a line and is not complete ends the prefix, and closure_trim then takes out the \
         transaction, too",
    )];
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[pinned("carry_count"), pinned("rehome_pairs")];
    const REVOKES: bool = true;
    type Params = Both<LocParams, LocKilnParams>;
    type Rules = Both<CountingRules, LocKilnRules>;
    type Event = LocKilnEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, LocKiln>) -> LocKiln {
        let Setup { params: Both { first: window, second: params }, rules, shape } = setup;
        let times = shape.times;
        let commit = Commit { record: false, pin: window.bearer == Bearer::Pin, entries: true };
        let kind = (window.sd, window.drain, commit);
        LocKiln {
            params: params.clone(),
            rules: rules.second.clone(),
            last: LastLevel::new(shape, params.overflow_lines),
            running: PerCore::new(shape.cores, |_| StoredLines::default()),
            transactions: Transactions::new(shape.cores, kind, rules.first.clone(), true),
            retired: 0,
            notes: Vec::new(),
            walk: times.l1 + times.l2 + times.llc,
            write: times.llc + params.llc_write,
            path: shape.path,
            misfit: overflow::misfit(shape, params.overflow_lines),
            cells: Cells::new(shape),
            counts: Counts::default(),
        }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        if let Some(text) = self.misfit.take() {
            below.give_up(text);
        }
        self.take_place(tx, tx.at, below)
    }

    fn store(&mut self, store: &Store, below: &mut Below<LocKilnEvent>) -> Progress {
        if store.tx.is_some() {
            self.mark(store.core, store.word.line(), below);
        }
        Progress::Done(store.at)
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<LocKilnEvent>) -> Progress {
        match fence.kind {
            FenceKind::Durable => self.flush(fence, fence.drained.max(fence.at), below),
            FenceKind::Flush(..) | FenceKind::Order => Progress::Done(fence.at),
        }
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<LocKilnEvent>) -> Progress {
        self.end(tx, below)
    }

    fn abort(&mut self, tx: &Tx, _by: Abort, below: &mut Below<LocKilnEvent>) -> Progress {
        self.revoke(tx, below)
    }

    fn fill(&mut self, fill: &Fill, _below: &mut Below<LocKilnEvent>) -> Cycle {
        if !fill.memory {
            return fill.at + self.params.llc_read;
        }
        if !self.last.is_overflowed(fill.line) {
            return fill.at;
        }
        self.counts.refetched += 1;
        fill.at + self.params.redirect_latency
    }

    fn evict(
        &mut self,
        evict: &Evict,
        below: &mut Below<LocKilnEvent>,
    ) -> Disposition<LocKilnEvent> {
        self.leave(evict, below)
    }

    fn event(&mut self, at: Cycle, event: LocKilnEvent, below: &mut Below<LocKilnEvent>) {
        match event {
            LocKilnEvent::Arrive(index) => self.arrive(index, at, below),
            LocKilnEvent::Durable(written) => {
                below.at(at + self.path, LocKilnEvent::Heard(written));
            }
            LocKilnEvent::Heard(Written::Home(line, stamp)) => self.last.home(line, stamp),
            LocKilnEvent::Heard(Written::Overflowed(slot)) => self.overflowed(slot, at, below),
            LocKilnEvent::Heard(Written::OverflowHome(slot)) => {
                self.last.slot_home(slot);
                self.tell_all(at, below);
            }
            LocKilnEvent::Retire(end) => self.retire(end, at, below),
        }
    }

    fn leaves_behind(&self, line: Line) -> bool {
        self.last.is_undurable(line, self.transactions.window.durable)
    }

    /// The last level hears of a durable write when the answer has come back.
    fn hears_at_once(&self, _event: &LocKilnEvent) -> bool {
        false
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        self.save(gasp)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, LocKiln>) -> Result<(), PowerLoss> {
        cells::recover(image, setup)
    }

    fn hardware(setup: &Setup<'_, LocKiln>) -> Vec<Structure> {
        hardware(setup)
    }

    fn corner(trial: u64, _has_lives: bool) -> Corner {
        let mut corner = Corner::default();
        corners::of_a_window(trial, &mut corner);
        corner
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let shared = self.transactions.counts;
        let counts = Counts {
            transactions: shared.transactions,
            coalesced: shared.coalesced,
            drains: shared.drains,
            closure_max: shared.closure_max,
            durable_at_once_max: shared.durable_at_once_max,
            window_full: shared.window_full,
            overflow_crowded: shared.short,
            ..self.counts
        };
        counts.list()
    }
}

/// The last level and what stands beside it are of cells that keep their state; the levels above
/// are not.
fn hardware(setup: &Setup<'_, LocKiln>) -> Vec<Structure> {
    let Setup { params: Both { first: LocParams { sd, .. }, second: params }, shape, .. } = setup;
    let config = &shape.config;
    let cores = u64::from(shape.cores);
    let private = cores * (config.l1d.size + config.l2.size) / LINE_BYTES;
    let window = sd * cores;
    let cells = |name, bits, count| {
        Structure::new(name, bits, count, Elsewhere("last-level cache")).kept(KeptBy::Cells)
    };
    let volatile = Structure::new;
    let id = u64::from((2 * window).next_power_of_two().trailing_zeros());
    let entry = 16 + 2 + 18 + 18 + (18 + 1) * (window - 1);
    vec![
        cells(
            "line (64 B, address, TxID, TxCnt: the last level itself)",
            cells::LINE_BITS,
            config.llc.size / LINE_BYTES,
        ),
        cells("old version (the same)", cells::LINE_BITS, params.old_versions),
        cells("write-back buffer entry (the same)", cells::LINE_BITS, overflow::leaving(shape)),
        cells("note: a pair, or a TxCnt", cells::NOTE_BITS, window * (window + 2)),
        cells(
            "overflow table entry (address, TxID, TxCnt, slot)",
            cells::OVERFLOW_BITS,
            overflow::room(shape, params.overflow_lines),
        ),
        cells("retired TxID, lengths of the tables", cells::REGISTER_BITS, 1),
        volatile(
            "TxID of a line, and whether it is old",
            id + 1,
            private,
            Elsewhere("caches above the last"),
        ),
        volatile("window table entry", entry, window, Elsewhere("cache controller")),
    ]
}
