//! FWB: steal but no force (Ogleari, Miller and Zhao, HPCA 2018).
//!
//! Every store makes an undo+redo record, which goes past the caches through a small volatile
//! buffer. A line may leave the caches in the middle of a transaction (steal) and need not leave
//! them at its end (no force): a commit waits for its records only. The forced write-back of lines
//! that have been dirty for long keeps the log bounded (`parts/scan.rs`).
//!
//! In the paper a record reaches memory before its line because its path is shorter than the
//! caches' and the buffer is no deeper than that allows. Here the order is enforced: a line waits
//! for the acknowledgement of its records.

use model::design::{
    Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Gasp, Granularity, Leave,
    Needs, Progress, Setup, Store, Structure, Tx,
};
use model::image::{Image, PowerLoss};
use model::params::Both;
use model::units::{Cycle, PerCore, TxId};

use crate::parts::LogEvent;
use crate::parts::commits::Commits;
use crate::parts::corners;
use crate::parts::hardware;
use crate::parts::homes::Homes;
use crate::parts::log::{Log, Place};
use crate::parts::record::Record;
use crate::parts::ring::{Ring, committed};
use crate::parts::rules::{LogRules, ScanRules};
use crate::parts::scan::{self, Scan};

model::params! {
    /// The sizes of the paper (HPCA'18, from memory).
    pub struct FwbParams {
        /// Lines of the volatile log buffer (15 lines, 964 B, from memory).
        log_buffer = 15 in 1..=4096, tight [8, 2];
        /// Lines of the log ring of all cores; 0: as many as `pm.log_size` has room for, 4 MiB by
        /// default as in the paper.
        log_lines = 0 in 0..=16_777_216, tight [24, 48, 160, 8, 48, 160];
        /// Cycles from scan to scan; 0: half the time in which the memory's banks can fill the ring
        /// (HPCA'18).
        period = 0 in 0..=1_000_000_000_000;
        /// Lines of a scan that are under way at a time; 0: as many as the controllers have buffers
        /// for, each `controller.writeback_buffer_size` (docs/fidelity/decisions.md has what it
        /// moves).
        scan_width = 0 in 0..=4096, tight [64, 1];
    }
}

/// The design.
pub struct Fwb {
    log: Log,
    homes: Homes,
    scan: Scan,
    commits: Commits,
    cores: PerCore<Writer>,
}

/// A core's transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    tx: TxId,
    stored: bool,
}

impl Design for Fwb {
    const CARD: Card = Card {
        name: "fwb",
        paper: "Ogleari, Miller and Zhao, HPCA 2018",
        family: "hardware logging",
        summary: "undo+redo log past the caches; old dirty lines are forced out",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Adr,
    };
    const WATCHES_L1: bool = true;
    type Params = FwbParams;
    type Rules = Both<LogRules, ScanRules>;
    type Event = LogEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Fwb>) -> Fwb {
        let Setup { params, rules, shape } = setup;
        let ring = ring(setup);
        Fwb {
            log: Log::new(shape, ring, params.log_buffer, &rules.first),
            homes: Homes::new(shape),
            scan: Scan::new(shape, params.period, params.scan_width, ring.lines(), &rules.second),
            commits: Commits::new(shape, &rules.first, true),
            cores: PerCore::new(shape.cores, |_| Writer::default()),
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<LogEvent>) -> Progress {
        let Some(tx) = store.tx else { return Progress::Done(store.at) };
        let Store { core, word, old, new, at, .. } = *store;
        self.log.enter(Record::of(core, tx, word, old, new), store, below);
        self.cores[core] = Writer { tx, stored: true };
        let waits = self.log.is_full();
        if waits {
            self.log.wait(core, below);
        }
        self.scan.begin(at, &self.log, below);
        self.scan.go_on(at, &mut self.log, &mut self.homes, below);
        if waits { Progress::Wait } else { Progress::Done(at) }
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<LogEvent>) -> Progress {
        if !std::mem::take(&mut self.cores[tx.core].stored) {
            return Progress::Done(tx.at);
        }
        below.at(tx.stored.max(tx.at), LogEvent::Commit(tx.core));
        Progress::Wait
    }

    fn leave(&mut self, leave: &Leave, _below: &mut Below<LogEvent>) {
        self.scan.leave(leave.line);
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<LogEvent>) -> Disposition<LogEvent> {
        self.scan.clear(evict.line);
        self.homes.evict(evict, &mut self.log, below)
    }

    fn event(&mut self, at: Cycle, event: LogEvent, below: &mut Below<LogEvent>) {
        match event {
            LogEvent::Logged { line, end } => {
                self.log.accepted(line, end, at, below);
                self.homes.release(self.log.durable(), at, below);
                self.commits.accepted(Place { line, end }, &mut self.log, at, below);
                self.scan.begin_for_room(at, &self.log, below);
                self.scan.go_on(at, &mut self.log, &mut self.homes, below);
            }
            LogEvent::Home { group, forced, .. } => {
                self.homes.accepted(group);
                if forced {
                    self.scan.forced();
                }
                self.scan.go_on(at, &mut self.log, &mut self.homes, below);
            }
            LogEvent::Left(core) => {
                self.log.left(core, at, below);
            }
            LogEvent::Commit(core) => {
                self.commits.end(core, self.cores[core].tx, &mut self.log, at, below);
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

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Fwb>) -> Result<(), PowerLoss> {
        let cores = setup.shape.cores;
        ring(setup).recover(image, &setup.rules.first, |records| committed(records, cores))
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Fwb>) -> Result<Fwb, PowerLoss> {
        ring(setup).boot(image, &setup.rules.first)?;
        Ok(Fwb::new(setup))
    }

    fn hardware(setup: &Setup<'_, Fwb>) -> Vec<Structure> {
        let mut structures = hardware::buffer(setup.shape, setup.params.log_buffer);
        structures.push(scan::fwb_bits(setup.shape));
        structures
    }

    fn corner(trial: u64, _has_lives: bool) -> Corner {
        corners::of_a_ring(trial)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let counts = [self.log.counts.list(), self.homes.counts.list(), self.scan.counts.list()];
        counts.concat()
    }
}

fn ring(setup: &Setup<'_, Fwb>) -> Ring {
    Ring::new(setup.shape, setup.params.log_lines, 0)
}
