//! Runs programs on a machine: each core's program is a coroutine, and the core that is furthest
//! behind goes on next.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::config::Config;
use crate::control::Control;
use crate::crash::{Booted, Campaign, Crashes, Probe};
use crate::design::{Card, Design, Library, Setup, Shape, System};
use crate::epochs::{self, Epochs};
use crate::firmware::{Firmware, Fixed};
use crate::host_stack::OnHost;
use crate::image::{Image, PowerLoss, Remains};
use crate::machine::Machine;
use crate::oracle::Oracle;
use crate::report::Report;
use crate::timeline::Wanted;
use crate::units::{CoreId, Line, Word};
use crate::workload::{Overwritten, Pm, Port, Program, Step, Stop, Workload};

mod on_core;
mod port;

use on_core::OnCore;
use port::ProgramPort;

/// Bytes of the stack on which a program runs, as many as a process commonly has. SQLite's deepest
/// recursion, which its own limits bound, takes 3 MiB (a pattern of `LIKE`). Only the pages that a
/// program has touched take memory of the host.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` on a stack as large as a program's, whatever thread calls this.
///
/// # Errors
/// When the host has no room for the stack.
pub fn on_program_stack<R>(work: impl FnOnce() -> R) -> std::io::Result<R> {
    Ok(corosensei::on_stack(DefaultStack::new(STACK_BYTES)?, work))
}

/// One run of a workload on a machine, whatever the machine's design.
pub struct Run<'a> {
    /// The machine.
    pub config: &'a Config,
    /// The number of cores, each of which runs a program.
    pub cores: u8,
    /// The workload; not populated yet.
    pub workload: Box<dyn Workload>,
    /// Transactions of each core before the measured region.
    pub warmup: u64,
    /// Transactions of each core in the measured region.
    pub transactions: u64,
    /// Whether no core may run ahead, not even on lines that its own first level holds.
    pub exact: bool,
    /// Whether ordering points and epochs are counted.
    pub epochs: bool,
    /// The part of the run that is recorded, if any is.
    pub timeline: Option<Wanted<'a>>,
    /// Whether the power is cut, and where.
    pub campaign: Option<Campaign>,
    /// What the machine boots from, if it is not new.
    pub boot: Option<Boot<'a>>,
    /// Called when the measured region begins, for a caller that measures the host.
    pub started: Rc<dyn Fn()>,
    /// What the run shares with the caller that watches it.
    pub control: &'a Control,
}

impl<'a> Run<'a> {
    /// A run of one transaction of each core on a new machine, without warm-up, epochs, timeline or
    /// campaign.
    pub fn new(
        config: &'a Config,
        cores: u8,
        workload: Box<dyn Workload>,
        control: &'a Control,
    ) -> Run<'a> {
        Run {
            config,
            cores,
            workload,
            warmup: 0,
            transactions: 1,
            exact: false,
            epochs: false,
            timeline: None,
            campaign: None,
            boot: None,
            started: Rc::new(|| ()),
            control,
        }
    }
}

/// What a machine that is not new boots from.
#[derive(Clone, Copy, Debug)]
pub struct Boot<'a> {
    /// What recovery left of its last life.
    pub remains: &'a Remains,
    /// The seed of the programs' random numbers.
    pub seed: u64,
}

/// What a run found.
#[derive(Debug)]
pub struct Outcome {
    /// What was counted.
    pub report: Report,
    /// What the crash campaign found, if there was one.
    pub crashes: Option<Crashes>,
}

/// Why a run could not be made.
#[derive(Debug)]
pub enum Failure {
    /// The workload could not go on.
    Stopped(Stop),
    /// The host has no room for the run.
    Host(std::io::Error),
    /// Every core waits and nothing is due, or events follow each other and no core goes on, or
    /// booting does not end. Each is a defect of the design.
    Deadlock(String),
    /// The order of threads that the program asks for cannot be kept: a store of this core comes
    /// before the end of another core's transaction, and the design delays it until that end.
    OutOfTurn(CoreId),
    /// A script raised this error about the image from which the machine was to boot.
    Raised(String),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        Failure::Stopped(stop)
    }
}

/// A machine that the coroutines of its cores share. Only one of them runs at a time, and none
/// keeps a reference over a suspension.
struct Shared<D: Design>(Rc<UnsafeCell<Machine<D>>>);

impl<D: Design> Clone for Shared<D> {
    fn clone(&self) -> Shared<D> {
        Shared(Rc::clone(&self.0))
    }
}

impl<D: Design> Shared<D> {
    #[expect(clippy::mut_from_ref, reason = "coroutines take turns; see SAFETY")]
    #[inline]
    fn machine(&self) -> &mut Machine<D> {
        // SAFETY: All users run on one thread and take turns at suspension points. Each method of
        // `OnCore` gets the reference anew after a suspension and keeps none across one, so at most
        // one is in use at any time.
        unsafe { &mut *self.0.get() }
    }
}

/// A program's coroutine.
type Thread = Coroutine<(), (), Step, DefaultStack>;

/// Makes the coroutine of a core: [`thread`], bound to the setup of the library.
type MakesThread<'a, D> =
    dyn Fn(Shared<D>, CoreId, Box<dyn Program>, Count, Watch) -> Result<Thread, Failure> + 'a;

/// What differs between the systems that stand on one hardware design.
struct Stands<'a, D: Design> {
    card: Card,
    firmware: Rc<dyn Firmware>,
    of_hardware: Setup<'a, D>,
    boot: &'a dyn Fn(&mut Image<'_>) -> Result<D, PowerLoss>,
    thread: &'a MakesThread<'a, D>,
}

/// Runs programs on a machine with a design of these parameters and rules. The card is
/// [`System::CARD`], unless the design is known only when it is loaded.
///
/// # Errors
/// See [`Failure`].
///
/// # Panics
/// When the design or the machine breaks one of its own rules.
pub fn run<S: System>(
    card: Card,
    params: S::Params,
    rules: S::Rules,
    run: Run<'_>,
) -> Result<Outcome, Failure> {
    let mut config = run.config.clone();
    if run.exact {
        config.core.quantum = 0;
    }
    let fixed = Rc::new(Fixed::<S> { params, rules, shape: Shape::new(&config, run.cores) });
    let stands = Stands::<S::Hardware> {
        card,
        firmware: Rc::clone(&fixed) as Rc<dyn Firmware>,
        of_hardware: fixed.of_hardware(),
        boot: &|image| S::boot(image, &fixed.setup()),
        thread: &|shared, core, program, count, watch| {
            thread(Rc::clone(&fixed), shared, core, program, count, watch)
        },
    };
    run_on(&stands, run)
}

fn run_on<D: Design>(stands: &Stands<'_, D>, run: Run<'_>) -> Result<Outcome, Failure> {
    let mut machine = Machine::<D>::new(&stands.of_hardware, stands.card).map_err(Failure::Host)?;
    let mut workload = run.workload;
    workload.populate(&mut Pm::plain(&mut machine.below.view, CoreId(0)))?;
    let booted = match run.boot {
        Some(from) => Some(boot(&mut machine, stands.boot, &mut *workload, from)?),
        None => {
            let pm = &mut machine.below.view.pm;
            match run.campaign {
                Some(_) => pm.share(),
                None => pm.use_large_pages().map_err(Failure::Host)?,
            }
            machine.below.memory.install(pm).map_err(Failure::Host)?;
            None
        }
    };
    let workload: Rc<dyn Workload> = Rc::from(workload);
    if let Some(campaign) = run.campaign {
        let (data, shape) = (&machine.below.view.pm, &machine.below.shape);
        let oracle = Oracle::new(data, run.cores, shape.log_base, stands.card.durability)
            .map_err(Failure::Host)?;
        let (firmware, cancelled) =
            (Rc::clone(&stands.firmware), Arc::clone(&run.control.cancelled));
        let mut probe = Probe::new(campaign, oracle, Rc::clone(&workload), firmware, cancelled);
        if let (Some(booted), Some(Boot { remains, .. })) = (&booted, run.boot) {
            // If a line was moved, the physical line with its number may hold anything, so the
            // oracle compares that, too.
            for (line, _) in remains.placement().moved() {
                probe.oracle.compare(line, machine.below.memory.durable());
            }
            probe.boot(booted);
        }
        machine.cut_with(probe);
    }
    if run.epochs {
        let window = machine.below.shape.config.cycles(epochs::WINDOW_PS);
        machine.epochs = Some(Box::new(Epochs::new(run.cores, window)));
    }
    if let Some(wanted) = run.timeline {
        machine.record_timeline(wanted.part);
    }
    let shared = Shared(Rc::new(UnsafeCell::new(machine)));
    let count = Count { warmup: run.warmup, transactions: run.transactions };
    let each = run.warmup.saturating_add(run.transactions);
    let total = each.saturating_mul(run.cores.into());
    run.control.expect(total);
    let mut threads = Vec::new();
    for core in (0..run.cores).map(CoreId) {
        let program = workload.program(core)?;
        let watch = Watch { control: run.control, started: Rc::clone(&run.started) };
        threads.push((stands.thread)(shared.clone(), core, program, count, watch)?);
    }
    to_its_end(&shared, threads, run.timeline)
}

/// Resumes cores until the run ends, and puts its timeline where it is wanted, also if the run ends
/// badly.
fn to_its_end<D: Design>(
    shared: &Shared<D>,
    mut threads: Vec<Thread>,
    timeline: Option<Wanted<'_>>,
) -> Result<Outcome, Failure> {
    // Of a machine whose design raised an error in the middle of something nothing is used but the
    // timeline.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let cancelled = schedule(shared, &mut threads)?;
        threads.clear();
        Ok::<Report, Failure>(shared.machine().report(cancelled))
    }));
    drop(threads);
    let machine = shared.machine();
    if let Some(wanted) = timeline {
        *wanted.kept.borrow_mut() = machine.take_timeline();
    }
    let report = ended.unwrap_or_else(|raised| resume_unwind(raised))?;
    let counted = (!report.cancelled).then(|| report.counters.clone());
    let crashes = machine.probe.take().map(|probe| Crashes { counted, ..probe.finish() });
    Ok(Outcome { report, crashes })
}

/// Switches a machine on again with the image that recovery left.
fn boot<D: Design>(
    machine: &mut Machine<D>,
    switch_on: &dyn Fn(&mut Image<'_>) -> Result<D, PowerLoss>,
    workload: &mut dyn Workload,
    Boot { remains, seed }: Boot<'_>,
) -> Result<Booted, Failure> {
    let before = remains.memory().map_err(Failure::Host)?;
    let mut image = Image::over(&before).remembering();
    let design = switch_on(&mut image);
    if let Some(what) = image.endless() {
        return Err(Failure::Deadlock(format!("booting does not end: `boot` makes {what}")));
    }
    if let Some(text) = image.raised() {
        return Err(Failure::Raised(text.to_owned()));
    }
    let design = design.expect("the power does not fail");
    let writes = image.take_remembered();
    let mut after = image.remains(remains.cut).memory().map_err(Failure::Host)?;
    machine.design = design;
    machine.below.memory.install(&after).map_err(Failure::Host)?;
    // Programs see a moved line at its own number, not at its physical line.
    for (line, physical) in remains.placement().moved() {
        *after.line_mut(line) = *machine.below.memory.durable().line(physical);
    }
    machine.below.view.pm = after;
    image.see_through(Rc::clone(remains.placement()));
    let mut recovered = Image::over(&before);
    recovered.see_through(Rc::clone(remains.placement()));
    let damaged = damaged(&recovered, &image, machine.below.shape.log_base);
    workload.reopen(&image, seed).map_err(|text| Stop::Failed(format!("reopening: {text}")))?;
    Ok(Booted { before, writes, damaged })
}

/// Returns the first word of data that booting changed.
fn damaged(recovered: &Image<'_>, booted: &Image<'_>, log_base: u64) -> Option<Word> {
    let placement = booted.placement();
    let in_place = booted.changed_lines().filter(|&line| placement.locate(line) == line);
    let moved = placement.moved().map(|(line, _)| line);
    let data = in_place.chain(moved).filter(|line| line.address() < log_base);
    let words = data.flat_map(Line::words);
    words.filter(|&word| recovered.word(word) != booted.word(word)).min()
}

/// Resumes cores until all have finished, and returns whether the run was cancelled.
fn schedule<D: Design>(shared: &Shared<D>, threads: &mut [Thread]) -> Result<bool, Failure> {
    let mut cancelled = false;
    loop {
        let machine = shared.machine();
        if let Some(stop) = machine.take_stop() {
            return Err(stop.into());
        }
        if let Some(at) = machine.circles {
            let text = format!("at cycle {}, events follow each other for ever", at.0);
            return Err(Failure::Deadlock(text));
        }
        let Some(core) = machine.choose() else {
            if machine.process_until_awake() {
                continue;
            }
            let stuck: Vec<String> =
                machine.cores.iter().filter_map(|(id, _)| machine.stuck(id)).collect();
            if stuck.is_empty() || cancelled || machine.is_done() {
                return Ok(cancelled);
            }
            return Err(match machine.out_of_turn() {
                Some(core) => Failure::OutOfTurn(core),
                None => Failure::Deadlock(stuck.join(", ") + ", and nothing is due"),
            });
        };
        let resumed = {
            let _on_host = D::ON_HOST_STACK.then_some(OnHost);
            threads[usize::from(core.0)].resume(())
        };
        match resumed {
            CoroutineResult::Yield(()) => (),
            CoroutineResult::Return(result) => {
                shared.machine().finish(core);
                match result {
                    Ok(()) => (),
                    Err(Stop::Cancelled) => cancelled = true,
                    Err(stop) => return Err(stop.into()),
                }
            }
        }
    }
}

/// What a coroutine needs of the caller that watches the run.
struct Watch {
    control: *const Control,
    started: Rc<dyn Fn()>,
}

#[derive(Clone, Copy)]
struct Count {
    warmup: u64,
    transactions: u64,
}

/// Makes the coroutine of one core: it warms up, waits for the others, and then runs the measured
/// transactions.
fn thread<S: System>(
    fixed: Rc<Fixed<S>>,
    shared: Shared<S::Hardware>,
    core: CoreId,
    mut program: Box<dyn Program>,
    count: Count,
    watch: Watch,
) -> Result<Thread, Failure> {
    let stack = DefaultStack::new(STACK_BYTES).map_err(Failure::Host)?;
    Ok(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        // SAFETY: `run_on` holds the borrow of the control until it has dropped the coroutines.
        let control = unsafe { &*watch.control };
        let library = S::Library::new(&fixed.setup(), core);
        let cpu = OnCore { shared, core, yielder };
        cpu.resumed();
        let mut port =
            ProgramPort::<S> { cpu, library, overwritten: Overwritten::default(), control };
        repeat(&mut *program, count.warmup, &mut port, core)?;
        port.cpu.wait_for_all(&*watch.started);
        repeat(&mut *program, count.transactions, &mut port, core)?;
        port.cpu.finish();
        Ok(())
    }))
}

/// Runs `count` transactions of a program.
fn repeat(program: &mut dyn Program, count: u64, port: &mut dyn Port, core: CoreId) -> Step {
    let mut pm = Pm::simulated(port, core);
    (0..count).try_for_each(|_| program.transaction(&mut pm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Contents;
    use crate::image::Placement;
    use crate::units::{Line, Page};

    #[test]
    fn booting_may_change_logs_and_no_data() {
        let memory = Contents::new(0, 4 * 4096).expect("room");
        let mut booted = Image::over(&memory);
        booted.set_word(Word(1024), 7).expect("power");
        let log_base = Word(1024).address();
        assert_eq!(damaged(&Image::over(&memory), &booted, log_base), None);
        booted.set_word(Word(9), 0).expect("power");
        assert_eq!(damaged(&Image::over(&memory), &booted, log_base), None, "it held zero before");
        booted.set_word(Word(9), 8).expect("power");
        booted.set_word(Word(3), 8).expect("power");
        assert_eq!(damaged(&Image::over(&memory), &booted, log_base), Some(Word(3)));
    }

    #[test]
    fn data_are_compared_where_they_are() {
        let memory = Contents::new(0, 4 * 4096).expect("room");
        let mut placement = Placement::default();
        placement.place(Page(0), Page(0), Page(3), 0b10);
        let placement = Rc::new(placement);
        let see = |line: Line, value| {
            let mut image = Image::over(&memory);
            image.set_word(line.first_word(), value).expect("power");
            image.see_through(Rc::clone(&placement));
            image
        };
        // Line 1 was moved, so the physical line of that number holds no data.
        let log_base = Page(2).address();
        assert_eq!(damaged(&see(Line(1), 0), &see(Line(1), 7), log_base), None);
        let elsewhere = Page(3).line(1);
        let found = damaged(&see(elsewhere, 0), &see(elsewhere, 7), log_base);
        assert_eq!(found, Some(Line(1).first_word()));
    }
}
