//! Base: plain hardware undo+redo logging, the denominator of Silo's evaluation (HPCA 2023,
//! figures 11 and 12).
//!
//! Every store makes a record, and writes its line back behind the record. A commit waits until all
//! of these records and lines are accepted, and then for its own record. How the papers' Base works
//! beyond "log and line of every write" is not known; what is decided here is in
//! docs/fidelity/decisions.md.

use std::collections::VecDeque;

use model::design::{
    Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Gasp, Granularity, Needs,
    Progress, Setup, Store, Structure, Tx,
};
use model::image::{Image, PowerLoss};
use model::params::Both;
use model::units::{CoreId, Cycle, Line, LineMap, LineSet, PerCore, TxId};

use crate::parts::LogEvent;
use crate::parts::commits::Commits;
use crate::parts::corners;
use crate::parts::hardware;
use crate::parts::homes::Homes;
use crate::parts::log::{Log, Place};
use crate::parts::record::Record;
use crate::parts::ring::{Ring, committed};
use crate::parts::rules::LogRules;

/// Bytes of a record, padded to 32 with its share of the line's last byte.
const PADDED: usize = 31;

model::params! {
    /// What the papers leave open of Base.
    pub struct BaseParams {
        /// When the lines of a transaction are written back (ours; the papers do not say).
        flush_mode: FlushMode = PerStore;
        /// Lines of the volatile log buffer, two records each (ours: a small FIFO).
        log_buffer = 4 in 1..=4096, tight [8, 2];
        /// Lines of the log ring of all cores; 0: as many as `pm.log_size` has room for.
        log_lines = 0 in 0..=16_777_216, tight [24, 48, 160, 8, 48, 160];
    }
}

model::choices! {
    /// When the lines of a transaction are written back.
    pub enum FlushMode {
        /// After each store.
        PerStore = "per_store",
        AtCommit = "at_commit",
    }
}

model::rules! {
    /// What keeps Base right beside the rules of its log.
    pub struct BaseRules {
        /// The commit record follows the lines. (Otherwise the ring may come round, and the records
        /// be gone, while a line waits at another controller.)
        commit_record_after_lines,
    }
}

/// The design.
pub struct Base {
    params: BaseParams,
    rules: BaseRules,
    log: Log,
    homes: Homes,
    /// Lines that have left the caches and that no controller has accepted, with how many writes.
    under_way: LineMap<u32>,
    commits: Commits,
    cores: PerCore<Writer>,
}

/// A core's transaction.
#[derive(Default)]
struct Writer {
    tx: TxId,
    /// Lines that it stored to.
    lines: Vec<Line>,
    stored: LineSet,
    /// Lines of stores that have not left the core, each with the time at which its store leaves.
    coming: VecDeque<(Cycle, Line)>,
    stage: Stage,
}

/// How far a commit has come.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    None,
    /// The transaction has stored something.
    Running,
    /// The transaction ends when all of its records have entered the log.
    Records,
    /// The commit record follows when none of the transaction's lines is under way.
    Lines,
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
    type Params = BaseParams;
    type Rules = Both<LogRules, BaseRules>;
    type Event = LogEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Base>) -> Base {
        let Setup { params, rules, shape } = setup;
        let mut log = Log::new(shape, ring(setup), params.log_buffer, &rules.first);
        // A committed transaction's lines are home already, so only running ones need the log.
        log.forget(u64::MAX);
        Base {
            params: (*params).clone(),
            rules: rules.second.clone(),
            log,
            homes: Homes::new(shape),
            commits: Commits::new(shape, &rules.first, true),
            under_way: LineMap::default(),
            cores: PerCore::new(shape.cores, |_| Writer::default()),
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<LogEvent>) -> Progress {
        let Some(tx) = store.tx else { return Progress::Done(store.at) };
        let Store { core, word, old, new, at, leaves, .. } = *store;
        let has_entered = self.log.enter(Record::of(core, tx, word, old, new), store, below);
        let writer = &mut self.cores[core];
        (writer.tx, writer.stage) = (tx, Stage::Running);
        if writer.stored.insert(word.line()) {
            writer.lines.push(word.line());
        }
        writer.coming.push_back((if has_entered { at } else { leaves }, word.line()));
        if has_entered {
            self.send(core, at, below);
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
        *self.under_way.entry(evict.line).or_default() += 1;
        self.homes.evict(evict, &mut self.log, below)
    }

    fn event(&mut self, at: Cycle, event: LogEvent, below: &mut Below<LogEvent>) {
        match event {
            LogEvent::Logged { line, end } => {
                self.log.accepted(line, end, at, below);
                for core in (0..self.cores.cores()).map(CoreId) {
                    self.send(core, at, below);
                }
                self.homes.release(self.log.durable(), at, below);
                self.commits.accepted(Place { line, end }, &mut self.log, at, below);
            }
            LogEvent::Home { line, group, .. } => {
                self.homes.accepted(group);
                self.accepted(line);
                for core in (0..self.cores.cores()).map(CoreId) {
                    self.go_on(core, at, below);
                }
            }
            LogEvent::Left(core) => {
                self.log.left(core, at, below);
                self.send(core, at, below);
            }
            LogEvent::Commit(core) => {
                self.cores[core].stage = Stage::Records;
                self.log.left(core, at, below);
                self.send(core, at, below);
            }
            LogEvent::Age(_)
            | LogEvent::Scanned(_)
            | LogEvent::Discarded(_)
            | LogEvent::Heard(..) => {
                unreachable!("its records do not wait")
            }
        }
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        self.log.save(gasp, std::iter::empty())
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Base>) -> Result<(), PowerLoss> {
        let cores = setup.shape.cores;
        ring(setup).recover(image, &setup.rules.first, |records| committed(records, cores))
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Base>) -> Result<Base, PowerLoss> {
        ring(setup).boot(image, &setup.rules.first)?;
        Ok(Base::new(setup))
    }

    fn hardware(setup: &Setup<'_, Base>) -> Vec<Structure> {
        hardware::buffer(setup.shape, setup.params.log_buffer)
    }

    fn corner(trial: u64, _has_lives: bool) -> Corner {
        corners::of_a_ring(trial)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.log.counts.list();
        counters.extend(self.homes.counts.list());
        counters
    }
}

impl Base {
    /// Sends the records of a core that have entered the log, and behind them the lines of their
    /// stores, once for each store.
    fn send(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        if !self.cores[core].coming.is_empty() {
            self.log.flush_all(at, below);
        }
        while let Some(&(due, line)) = self.cores[core].coming.front()
            && due <= at
            && !self.log.holds_back(core, line, at)
        {
            self.cores[core].coming.pop_front();
            if self.params.flush_mode == FlushMode::PerStore {
                let after = self.log.send_before(line, at, below);
                below.caches.clean(line);
                self.homes.write(line, at, after, below);
                *self.under_way.entry(line).or_default() += 1;
            }
        }
        let writer = &self.cores[core];
        if writer.stage == Stage::Records && writer.coming.is_empty() {
            self.end(core, at, below);
        }
    }

    /// Notes that a controller has accepted a line.
    fn accepted(&mut self, line: Line) {
        let left = self.under_way.get_mut(&line).expect("an accepted line was under way");
        *left -= 1;
        if *left == 0 {
            self.under_way.remove(&line);
        }
    }

    /// Ends a transaction whose stores have left its core and whose records are in the log.
    fn end(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let lines = std::mem::take(&mut self.cores[core].lines);
        if self.params.flush_mode == FlushMode::AtCommit {
            for &line in &lines {
                let after = self.log.send_before(line, at, below);
                if self.homes.force(line, at, after, below) {
                    *self.under_way.entry(line).or_default() += 1;
                }
            }
        }
        let writer = &mut self.cores[core];
        writer.lines = lines;
        writer.stored.clear();
        writer.stage = Stage::Lines;
        self.go_on(core, at, below);
    }

    /// Sends a core's commit record if its lines are home, whatever has sent them there.
    fn go_on(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let writer = &mut self.cores[core];
        if writer.stage != Stage::Lines {
            return;
        }
        while let Some(line) = writer.lines.last() {
            if self.rules.commit_record_after_lines && self.under_way.contains_key(line) {
                return;
            }
            writer.lines.pop();
        }
        writer.stage = Stage::None;
        self.commits.send(core, writer.tx, &mut self.log, at, below);
    }
}

fn ring(setup: &Setup<'_, Base>) -> Ring {
    Ring::new(setup.shape, setup.params.log_lines, PADDED)
}
