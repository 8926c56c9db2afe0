//! The common part of the suites: a small machine of round numbers, and programs as closures.

use std::cell::RefCell;
use std::rc::Rc;

use model::config::{Config, Encoder};
use model::control::Control;
use model::controller::Notify;
use model::crash::{Campaign, Check, Points};
use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Granularity, Needs, NoParams,
    NoRules, Ordering, Progress, Setup, Store, Tx,
};
use model::engine::{Failure, Outcome, Run};
use model::image::{Image, PowerLoss};
use model::units::{CoreId, Line, LineData};
use model::workload::{Flush, Pm, Program, Ptr, Step, Workload};

/// A machine on which a cycle is a nanosecond and every time is a round number: 1 core, 1
/// controller with a queue of 4 that keeps nothing back, 1 bank, no on-DIMM buffer. A read of the
/// cells takes 10 cycles, a write 100, the bus 1, a controller 2 and 1.
pub fn config(change: impl FnOnce(&mut Config)) -> Config {
    const NS: u64 = 1_000;
    let mut config = Config::default();
    config.core.frequency = 1_000_000_000;
    config.core.quantum = 20;
    let controller = &mut config.controller;
    (controller.wpq, controller.high, controller.low, controller.burst) = (4, 100, 0, 1);
    (controller.frontend, controller.backend, controller.path) = (2 * NS, NS, NS);
    let pm = &mut config.pm;
    (pm.capacity, pm.log, pm.banks, pm.buffer) = (1 << 20, 1 << 10, 1, 0);
    (pm.t_hit, pm.t_read, pm.t_write, pm.t_burst) = (2 * NS, 10 * NS, 100 * NS, NS);
    (pm.t_wtr, pm.t_rtw, pm.t_buffer) = (0, 0, 2 * NS);
    // Without comparing bits, so that a whole line is written without being read first.
    pm.encoder = Encoder::None;
    config.dram.capacity = 1 << 20;
    (config.l1d.size, config.l1d.assoc, config.l1d.latency) = (128, 2, NS);
    (config.l2.size, config.l2.assoc, config.l2.latency) = (256, 2, 2 * NS);
    (config.llc.size, config.llc.assoc, config.llc.latency) = (1024, 4, 4 * NS);
    config.llc.transfer = 3 * NS;
    change(&mut config);
    assert_eq!(config.check(), Ok(()));
    config
}

/// An observation of [`Watcher`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A transaction began.
    Begin(CoreId, u64),
    /// A store took effect.
    Store(CoreId, u64),
    /// A transaction ended.
    Commit(CoreId, u64),
    /// A dirty line left the caches, with its newest bytes.
    Evict(Line, LineData),
    /// The power had failed, and the first lines of memory held this.
    Recover(Vec<[u64; 8]>),
}

thread_local! {
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
}

/// Returns the observations of the watchers on this thread since the last call.
pub fn seen() -> Vec<Seen> {
    SEEN.with(|seen| seen.take())
}

fn see(what: Seen) {
    SEEN.with(|seen| seen.borrow_mut().push(what));
}

/// The number of lines of memory that a watcher reads when the power is back.
const LINES: u64 = 4;

/// The value that a program stores to make the watcher's events follow each other for ever.
pub const CIRCLES: u64 = 0xc1c1e5;

/// The value that a program stores to make the watcher answer with a time that has passed.
pub const HURRIES: u64 = 0x00fa57;

/// The value that a program stores to make the watcher park it and never wake it.
pub const WAITS: u64 = 0x3a175;

/// Returns the card of a design that only these suites have, and that promises nothing.
pub const fn card(name: &'static str, summary: &'static str) -> Card {
    Card {
        name,
        paper: "none",
        family: "test",
        summary,
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    }
}

/// A design that changes nothing and records every hook. Flushes and fences are x86's.
pub struct Watcher;

impl Design for Watcher {
    const CARD: Card = card("watcher", "looks at everything");
    const ORDERING: Ordering = Ordering { fences: true, flushes: true, ..Ordering::NONE };
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Watcher>) -> Watcher {
        Watcher
    }
    fn begin(&mut self, tx: &Tx, _below: &mut Below<()>) -> Progress {
        see(Seen::Begin(tx.core, tx.at.0));
        Progress::Done(tx.at)
    }
    fn store(&mut self, store: &Store, below: &mut Below<()>) -> Progress {
        see(Seen::Store(store.core, store.at.0));
        if store.new == CIRCLES {
            below.at(store.at, ());
        }
        if store.new == WAITS {
            return Progress::Wait;
        }
        let passed = u64::from(store.new == HURRIES);
        Progress::Done(model::units::Cycle(store.at.0 - passed))
    }
    fn event(&mut self, at: model::units::Cycle, _event: (), below: &mut Below<()>) {
        below.at(at, ());
    }
    fn fence(&mut self, fence: &model::design::Fence, below: &mut Below<()>) -> Progress {
        match fence.kind {
            model::design::FenceKind::Flush(line, class, _) => {
                below.flush(fence.core, fence.drained, line, Flush::WriteBack, class);
                Progress::Done(fence.at)
            }
            _ => below.fence(fence.core, fence.drained),
        }
    }
    fn commit(&mut self, tx: &Tx, _below: &mut Below<()>) -> Progress {
        see(Seen::Commit(tx.core, tx.at.0));
        Progress::Done(tx.at)
    }
    fn evict(&mut self, evict: &Evict, _below: &mut Below<()>) -> Disposition<()> {
        see(Seen::Evict(evict.line, evict.data));
        Disposition::Home { at: evict.at, notify: Notify::Nobody }
    }
    fn recover(image: &mut Image<'_>, _setup: &Setup<'_, Watcher>) -> Result<(), PowerLoss> {
        let words = |line| {
            std::array::from_fn(|word| image.word(model::units::Word(8 * line + word as u64)))
        };
        see(Seen::Recover((0..LINES).map(words).collect()));
        Ok(())
    }
}

/// A program that every core runs once, as a closure.
pub struct Each<F>(Rc<F>);

// SAFETY: a test runs its workload on the thread that made it.
unsafe impl<F> Send for Each<F> {}

impl<F: Fn(&mut Pm<'_>) -> Step + 'static> Workload for Each<F> {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }
    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(Each(Rc::clone(&self.0))))
    }
}

impl<F: Fn(&mut Pm<'_>) -> Step> Program for Each<F> {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        (self.0)(pm)
    }
}

/// A workload whose program a closure is.
pub fn each(body: impl Fn(&mut Pm<'_>) -> Step + 'static) -> Box<dyn Workload> {
    Box::new(Each(Rc::new(body)))
}

/// Runs a closure on every core of a machine with a [`Watcher`], and returns the result.
pub fn try_on(
    config: &Config,
    cores: u8,
    points: Option<Points>,
    body: impl Fn(&mut Pm<'_>) -> Step + 'static,
) -> Result<Outcome, Failure> {
    try_on_design::<Watcher>(config, cores, points, (0, 1), body)
}

/// Runs a closure on every core of a machine with a design, so often before the measured region and
/// so often in it, and returns the result.
pub fn try_on_design<D: Design<Params = NoParams, Rules = NoRules>>(
    config: &Config,
    cores: u8,
    points: Option<Points>,
    (warmup, transactions): (u64, u64),
    body: impl Fn(&mut Pm<'_>) -> Step + 'static,
) -> Result<Outcome, Failure> {
    try_campaign::<D>(config, cores, points.map(campaign), (warmup, transactions), body)
}

/// Returns a campaign that cuts the power at these points, tries only the order of timing, and does
/// not end at a violation.
pub fn campaign(points: Points) -> Campaign {
    Campaign {
        points,
        nested: false,
        reorders: 0,
        violations_max: usize::MAX,
        seed: 1,
        keep: 0,
        check: Check::Transactions,
    }
}

/// As [`try_on_design`], with a campaign that is given.
pub fn try_campaign<D: Design<Params = NoParams, Rules = NoRules>>(
    config: &Config,
    cores: u8,
    campaign: Option<Campaign>,
    (warmup, transactions): (u64, u64),
    body: impl Fn(&mut Pm<'_>) -> Step + 'static,
) -> Result<Outcome, Failure> {
    let (workload, control) = (each(body), Control::default());
    let new = Run::new(config, cores, workload, &control);
    let run = Run { warmup, transactions, campaign, ..new };
    model::engine::run::<D>(D::CARD, NoParams {}, NoRules {}, run)
}

/// Runs a closure on every core of a machine with a [`Watcher`].
pub fn on(
    config: &Config,
    cores: u8,
    points: Option<Points>,
    body: impl Fn(&mut Pm<'_>) -> Step + 'static,
) -> Outcome {
    try_on(config, cores, points, body).expect("the run ends")
}

/// The word `word` of line `line`.
pub fn at(line: u64, word: u64) -> Ptr {
    Ptr::to(64 * line + 8 * word)
}
