//! What a design makes a load wait for, beyond its line.

use crate::common::{card, config, on, try_on_design};
use model::config::CoreModel;
use model::design::{Bare, Below, Card, Design, Load, NoParams, NoRules, Progress, Setup, Tx};
use model::engine::Failure;
use model::hooks::Fill;
use model::units::{CoreId, Cycle, PerCore};
use model::workload::{Pm, Ptr, Step};

/// Cycles by which [`Slow`] delays a load.
const LATE: u64 = 1_000;

/// Loads of words whose address is a multiple of a page have their value late.
struct Slow;

impl Design for Slow {
    const CARD: Card = card("slow", "some loads take longer");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Slow>) -> Slow {
        Slow
    }
    fn load(&mut self, load: &Load, _below: &mut Below<()>) -> Progress {
        let is_slow = load.word.address().is_multiple_of(4096);
        Progress::Done(load.at + if is_slow { LATE } else { 0 })
    }
}

fn commit(pm: &mut Pm<'_>, at: u64) -> Step {
    pm.begin()?;
    pm.load(Ptr::to(at));
    pm.commit();
    Ok(())
}

fn chain(pm: &mut Pm<'_>, at: u64) -> Step {
    let first = pm.load_ptr(Ptr::to(at));
    pm.load(Ptr { address: 512, ..first });
    Ok(())
}

fn commit_of_a_line_that_is_there(pm: &mut Pm<'_>, at: u64) -> Step {
    pm.load(Ptr::to(at + 8));
    commit(pm, at)
}

/// Whatever waits for a load waits for the value that the design hands out late: a commit, a core
/// in order, and a load that follows a pointer.
#[test]
fn a_value_that_comes_late_holds_up_what_waits_for_it() {
    let cycles = |model, at: u64, body: fn(&mut Pm<'_>, u64) -> Step| {
        let config = config(|config| config.core.model = model);
        let run = move |pm: &mut Pm<'_>| body(pm, at);
        let outcome = try_on_design::<Slow>(&config, 1, None, (0, 1), run);
        outcome.expect("the run ends").report.cycles
    };
    for model in [CoreModel::Window, CoreModel::InOrder] {
        for body in [commit, chain, commit_of_a_line_that_is_there] {
            let (soon, late) = (cycles(model, 4096 + 64, body), cycles(model, 4096, body));
            assert_eq!(late, soon + LATE, "{model:?}");
        }
    }
}

/// A load that misses waits for a look-up that is done before memory answers.
struct Hold {
    asked: PerCore<Option<Cycle>>,
}

impl Design for Hold {
    const CARD: Card = card("hold", "looks beside memory");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = CoreId;
    type Library = Bare;

    fn new(setup: &Setup<'_, Hold>) -> Hold {
        Hold { asked: PerCore::new(setup.shape.cores, |_| None) }
    }
    fn fill(&mut self, fill: &Fill, _below: &mut Below<CoreId>) -> Cycle {
        self.asked[fill.core] = fill.memory.then_some(fill.asked);
        fill.at
    }
    fn load(&mut self, load: &Load, below: &mut Below<CoreId>) -> Progress {
        let Some(asked) = self.asked[load.core].take() else { return Progress::Done(load.at) };
        below.at(asked, load.core);
        Progress::Wait
    }
    fn event(&mut self, at: Cycle, core: CoreId, below: &mut Below<CoreId>) {
        below.wake_load(core, at);
    }
}

/// The value is there when memory has answered, although the wait is over before.
#[test]
fn a_load_that_is_woken_early_has_its_value_no_earlier() {
    fn ten_loads(pm: &mut Pm<'_>) -> Step {
        let mut next = Ptr::to(0);
        for line in 1..10 {
            next = Ptr { address: 640 * line, ..pm.load_ptr(next) };
        }
        Ok(())
    }
    let config = config(|_| ());
    let alone = on(&config, 1, None, ten_loads).report.cycles;
    let held = try_on_design::<Hold>(&config, 1, None, (0, 1), ten_loads).expect("the run ends");
    let held = held.report.cycles;
    assert!(held >= alone, "{held} cycles of a design that only waits, {alone} without it");
}

/// Commits wait long, and loads a little; either is woken by its own call.
struct Both;

/// Cycles by which [`Both`] wakes loads and commits late.
const LOAD_WAITS: u64 = 10;
const COMMIT_WAITS: u64 = 10_000;

impl Design for Both {
    const CARD: Card = card("both", "a load waits behind a commit");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = (CoreId, bool);
    type Library = Bare;

    fn new(_setup: &Setup<'_, Both>) -> Both {
        Both
    }
    fn load(&mut self, load: &Load, below: &mut Below<(CoreId, bool)>) -> Progress {
        below.at(load.at + LOAD_WAITS, (load.core, true));
        Progress::Wait
    }
    fn commit(&mut self, tx: &Tx, below: &mut Below<(CoreId, bool)>) -> Progress {
        below.at(tx.at + COMMIT_WAITS, (tx.core, false));
        Progress::Wait
    }
    fn event(
        &mut self,
        at: Cycle,
        (core, load): (CoreId, bool),
        below: &mut Below<(CoreId, bool)>,
    ) {
        match load {
            true => below.wake_load(core, at),
            false => below.wake(core, at),
        }
    }
}

/// A load behind a commit may wait, and be woken, while the commit waits: the commit is
/// acknowledged when it is woken, and the load has its value before.
#[test]
fn a_load_is_woken_and_the_commit_before_it_waits_on() {
    for model in [CoreModel::Window, CoreModel::InOrder] {
        let config = config(|config| config.core.model = model);
        let outcome = try_on_design::<Both>(&config, 1, None, (0, 3), |pm: &mut Pm<'_>| {
            pm.begin()?;
            pm.commit();
            for line in 0..4 {
                pm.load(Ptr::to(64 * line));
            }
            Ok(())
        });
        let report = outcome.expect("the run ends").report;
        let least = report.transactions.commit_latency.min();
        assert!(least >= COMMIT_WAITS, "{model:?}: a commit took {least} cycles");
        assert!(report.cycles < 4 * COMMIT_WAITS, "{model:?}: {} cycles", report.cycles);
    }
}

/// Looks at something each cycle while a transaction runs.
struct Poll {
    running: bool,
}

impl Design for Poll {
    const CARD: Card = card("poll", "looks each cycle");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Poll>) -> Poll {
        Poll { running: false }
    }
    fn begin(&mut self, tx: &Tx, below: &mut Below<()>) -> Progress {
        self.running = true;
        below.at(tx.at + 1, ());
        Progress::Done(tx.at)
    }
    fn commit(&mut self, tx: &Tx, _below: &mut Below<()>) -> Progress {
        self.running = false;
        Progress::Done(tx.at)
    }
    fn event(&mut self, at: Cycle, _event: (), below: &mut Below<()>) {
        if self.running {
            below.at(at + 1, ());
        }
    }
}

/// More events than may follow each other at one time before a run is given up.
const MANY: u64 = 2_000_000;

/// A core that computes for long is not kept from its turn by events that follow each other while
/// time passes.
#[test]
fn events_of_a_long_wait_are_no_circle() {
    let config = config(|_| ());
    let width = config.core.width;
    let body = move |pm: &mut Pm<'_>| -> Step {
        pm.begin()?;
        pm.store(Ptr::to(0), 1);
        pm.work(MANY * width);
        pm.store(Ptr::to(0), 2);
        pm.commit();
        Ok(())
    };
    let outcome = try_on_design::<Poll>(&config, 1, None, (0, 1), body).expect("the run ends");
    assert!(outcome.report.cycles > MANY);
}

/// Acknowledges a commit after an event in each of [`SENT`] cycles, as one does that drains a long
/// log.
struct Sends {
    left: u64,
}

/// More events than may leave every core waiting where memory holds next to nothing.
const SENT: u64 = 1_500_000;

impl Design for Sends {
    const CARD: Card = card("sends", "sends for long");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Sends>) -> Sends {
        Sends { left: SENT }
    }
    fn commit(&mut self, tx: &Tx, below: &mut Below<()>) -> Progress {
        below.at(tx.at + 1, ());
        Progress::Wait
    }
    fn event(&mut self, at: Cycle, _event: (), below: &mut Below<()>) {
        self.left -= 1;
        match self.left {
            0 => below.wake(CoreId(0), at),
            _ => below.at(at + 1, ()),
        }
    }
}

/// What a commit may take grows with the memory that it may have to write.
#[test]
fn the_commit_of_much_memory_is_no_circle() {
    let of = |pages: u64| {
        let config = config(|config| config.pm.capacity = 16 << 20);
        let body = move |pm: &mut Pm<'_>| -> Step {
            pm.begin()?;
            for page in 0..pages {
                pm.store(Ptr::to(4096 * page), 1);
            }
            pm.commit();
            Ok(())
        };
        try_on_design::<Sends>(&config, 1, None, (0, 1), body)
    };
    assert!(of(1_000).expect("the run ends").report.cycles > SENT);
    assert!(matches!(of(1), Err(Failure::Deadlock(text)) if text.contains("for ever")));
}
