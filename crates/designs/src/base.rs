//! Base: plain hardware undo+redo logging, the denominator of Silo's evaluation (HPCA 2023,
//! figures 11 and 12; specs/logging.md section 2).
//!
//! Every store makes a record and writes its line back behind the record; a commit waits until all
//! of both are accepted, and then for its own record. How the papers' Base works beyond "log and
//! line of every write" is not known; what is decided here is in docs/fidelity.md.

use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Gasp, Granularity, Needs, Progress,
    Setup, Store, Structure, Tx,
};
use model::image::{Image, PowerLoss};
use model::units::{CoreId, Cycle, Line, LineSet, PerCore, TxId};

use crate::parts::LogEvent;
use crate::parts::commits::{CommitRules, Commits};
use crate::parts::hardware;
use crate::parts::homes::Homes;
use crate::parts::log::{Log, LogRules, Place};
use crate::parts::record::Record;
use crate::parts::ring::{RecoveryRules, Ring, committed};

/// Bytes of a record, padded to 32 with its share of the line's last byte.
const PADDED: usize = 31;

model::params! {
    /// What the papers leave open of Base.
    pub struct BaseParams {
        /// When the lines of a transaction are written back (specs/logging.md section 2).
        flush_mode = "per_store" of ["per_store", "at_commit"];
        /// Lines of the volatile log buffer, two records each (ours: small, as the spec says).
        log_buffer = 4 in 1..=4096;
        /// Lines of the log ring of all cores; 0: as many as `pm.log_size` has room for.
        log_lines = 0 in 0..=16_777_216;
    }
}

model::rules! {
    /// What keeps Base right.
    pub struct BaseRules {
        /// A line does not overtake the records of its words, whoever accepts them.
        line_after_records,
        /// The commit record follows the lines.
        commit_record_after_lines,
        /// The acknowledgement waits until the commit record is accepted.
        acknowledge_after_record,
        /// The acknowledgement waits until every record before is accepted, at all controllers.
        acknowledge_after_all_before,
        /// The torn bit changes with each pass over the ring.
        torn_bit_flips,
        /// The first line of a pass follows the pass before, and the others follow it: recovery
        /// tells by it which pass is the newest.
        pass_begins_alone,
        /// The records of a running transaction are not overwritten.
        keep_running,
        /// A line of the ring that is of use is not overwritten: stores wait.
        stall_when_full,
        /// For recovery the log ends before the first line of which something is not there.
        hole_ends_log,
        /// For recovery nothing counts that is older than a line that has been overwritten.
        forget_before_overwritten,
        /// Recovery applies redo records oldest first.
        redo_oldest_first,
        /// Recovery applies undo records newest first.
        undo_newest_first,
    }
}

/// The design.
pub struct Base {
    params: BaseParams,
    rules: BaseRules,
    log: Log,
    homes: Homes,
    commits: Commits,
    cores: PerCore<Writer>,
}

/// A core's transaction.
#[derive(Default)]
struct Writer {
    tx: TxId,
    /// Lines that it stored to, for a flush at commit.
    lines: Vec<Line>,
    stored: LineSet,
    stage: Stage,
}

/// How far a commit is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    None,
    /// The transaction has stored something.
    Running,
    /// Lines are under way; the commit record follows those before this mark.
    Lines(u64),
}

impl Design for Base {
    const CARD: Card = Card {
        name: "base",
        paper: "the baseline of Zhang and Hua, HPCA 2023",
        family: "hardware logging",
        summary: "hardware undo+redo log, written with the line at every store",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Adr,
    };
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[(
        "commit_record_after_lines",
        "recovery redoes what committed, and a line is accepted long before the ring comes round",
    )];
    const HAS_FENCES: bool = false;
    type Params = BaseParams;
    type Rules = BaseRules;
    type Event = LogEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Base>) -> Base {
        let (params, rules, shape) = (setup.params, setup.rules, setup.shape);
        let log_rules = LogRules {
            torn_bit_flips: rules.torn_bit_flips,
            pass_begins_alone: rules.pass_begins_alone,
            keep_running: rules.keep_running,
            stall_when_full: rules.stall_when_full,
        };
        let commit_rules = CommitRules {
            after_record: rules.acknowledge_after_record,
            after_all_before: rules.acknowledge_after_all_before,
            ends: true,
        };
        let mut log = Log::new(shape, ring(setup), params.log_buffer, log_rules);
        // A committed transaction's lines are home before its commit record is.
        log.forget(u64::MAX);
        Base {
            params: params.clone(),
            rules: rules.clone(),
            log,
            homes: Homes::new(shape),
            commits: Commits::new(shape, commit_rules),
            cores: PerCore::new(shape.cores, |_| Writer::default()),
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<LogEvent>) -> Progress {
        let Some(tx) = store.tx else { return Progress::Done(store.at) };
        let Store { core, word, old, new, at, .. } = *store;
        let place = self.log.append(&Record::of(core, tx, word, old, new), at, below);
        self.log.flush(place, at, below);
        let writer = &mut self.cores[core];
        (writer.tx, writer.stage) = (tx, Stage::Running);
        if self.params.flush_mode == 0 {
            self.write_back(word.line(), at, below);
        } else if writer.stored.insert(word.line()) {
            writer.lines.push(word.line());
        }
        if self.log.is_full() {
            self.log.wait(core, below);
            return Progress::Wait;
        }
        Progress::Done(at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<LogEvent>) -> Progress {
        if self.cores[tx.core].stage == Stage::None {
            return Progress::Done(tx.at);
        }
        below.at(tx.stored.max(tx.at), LogEvent::Commit(tx.core));
        Progress::Wait
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<LogEvent>) -> Disposition<LogEvent> {
        let after = self.records_of(evict.line);
        if let Some(place) = after {
            self.log.flush(place, evict.at, below);
        }
        self.homes.evict(evict, after)
    }

    fn event(&mut self, at: Cycle, event: LogEvent, below: &mut Below<LogEvent>) {
        match event {
            LogEvent::Logged { line, end } => {
                self.log.accepted(line, end, at, below);
                self.homes.release(self.log.durable(), at, below);
                self.commits.accepted(Place { line, end }, &mut self.log, at, below);
            }
            LogEvent::Home { group, .. } => {
                self.homes.accepted(group);
                for core in (0..self.cores.cores()).map(CoreId) {
                    self.go_on(core, at, below);
                }
            }
            LogEvent::Commit(core) => self.end(core, at, below),
            LogEvent::Age(_) | LogEvent::Scanned(_) => unreachable!("its records do not wait"),
        }
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        self.log.save(gasp, std::iter::empty())
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Base>) -> Result<(), PowerLoss> {
        let rules = RecoveryRules {
            hole_ends_log: setup.rules.hole_ends_log,
            forget_before_overwritten: setup.rules.forget_before_overwritten,
            redo_oldest_first: setup.rules.redo_oldest_first,
            undo_newest_first: setup.rules.undo_newest_first,
        };
        ring(setup).recover(image, &rules, |records| committed(records, setup.shape.cores))
    }

    fn hardware(setup: &Setup<'_, Base>) -> Vec<Structure> {
        hardware::buffer(setup.shape, setup.params.log_buffer)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.log.counts.list();
        counters.extend(self.homes.counts.list());
        counters
    }
}

impl Base {
    /// Up to where the log must be durable before a line may go.
    fn records_of(&self, line: Line) -> Option<Place> {
        self.log.newest(line).filter(|_| self.rules.line_after_records)
    }

    fn write_back(&mut self, line: Line, at: Cycle, below: &mut Below<LogEvent>) {
        let after = self.records_of(line);
        self.homes.force(line, at, after, below);
    }

    /// A transaction's stores have all left its core.
    fn end(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let mut lines = std::mem::take(&mut self.cores[core].lines);
        for line in lines.drain(..) {
            self.write_back(line, at, below);
        }
        let writer = &mut self.cores[core];
        writer.lines = lines;
        writer.stored.clear();
        writer.stage = Stage::Lines(self.homes.mark());
        self.go_on(core, at, below);
    }

    /// Sends a core's commit record if its lines are home.
    fn go_on(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let writer = &mut self.cores[core];
        let Stage::Lines(mark) = writer.stage else { return };
        if self.rules.commit_record_after_lines && !self.homes.are_home(mark) {
            return;
        }
        writer.stage = Stage::None;
        self.commits.send(core, writer.tx, &mut self.log, at, below);
    }
}

fn ring(setup: &Setup<'_, Base>) -> Ring {
    Ring::new(setup.shape, setup.params.log_lines, PADDED)
}
