//! A run, by name: from the words of a spec to a row of results.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use cpu_time::ThreadTime;
use designs::Order;
use model::contents::View;
use model::crash::Campaign;
use model::engine::{Control, Failure, Outcome, Run};
use model::report::Transactions;
use model::timeline::Asked;
use model::units::{CoreId, Cycle, Word};
use model::workload::{Overwritten, Pm, Port, Ptr, Stop, Workload};
use serde_json::{Value, json};

use crate::campaign;
use crate::error::InputError;
use crate::quantity;
use crate::results::{self, How};
use crate::settings;
use crate::spec::{self, Resolved, Spec};

/// The parameters of workloads that say how large they are. The first of them that a workload has
/// is its size, unless the user has raised others.
const SIZES: [&str; 8] =
    ["items", "stock", "rows", "words", "warehouses", "customers", "orders", "buckets"];

/// Transactions of each core in the measured region, if the user does not say (ours: the default
/// comparison of three designs and four workloads on eight cores then takes well under a minute).
const TRANSACTIONS: u64 = 2_000;

/// When measuring the host's time began: by the clock, and in processor time of this thread.
#[derive(Clone, Copy)]
struct Since(Instant, ThreadTime);

impl Since {
    fn now() -> Since {
        Since(Instant::now(), ThreadTime::now())
    }

    fn elapsed(&self) -> HostTime {
        HostTime { seconds: self.0.elapsed().as_secs_f64(), cpu: self.1.elapsed().as_secs_f64() }
    }
}

/// How long the host took.
#[derive(Clone, Copy, Debug)]
pub struct HostTime {
    /// By the clock, in seconds.
    pub seconds: f64,
    /// How long the thread had a processor, in seconds: less than by the clock if other threads had
    /// it, too.
    pub cpu: f64,
}

/// Runs a design on a workload and a machine.
///
/// # Errors
/// A sentence that says what is unknown or impossible.
///
/// # Panics
/// On a defect of the simulator or of a design.
pub fn run(spec: &str, control: &Control) -> Result<String, InputError> {
    let spec = Spec::read(spec)?;
    let resolved = spec.resolve(None)?;
    let made = make(&spec, &resolved, Recording::default(), control)?;
    Ok(made.row(&spec, &resolved).to_string())
}

/// Refuses a spec that names something that does not exist, or a value out of range. Runs nothing.
///
/// # Errors
/// A sentence that says what is unknown or impossible. What only a run finds, such as a wrong
/// script or too little memory, is not found here.
pub fn check(spec: &str) -> Result<(), InputError> {
    Spec::read(spec)?.resolve(None).map(|_| ())
}

/// What a run records beside what it counts.
#[derive(Default)]
pub struct Recording {
    /// A part of its timeline.
    pub timeline: Option<Asked>,
    /// The campaign whose first life the run is, without power failures.
    pub crashes: Option<Campaign>,
}

/// A run that was made.
pub struct Made {
    /// What was found.
    pub outcome: Outcome,
    txs: u64,
    warmup: u64,
    host: HostTime,
}

impl Made {
    /// The row of the run.
    pub fn row(&self, spec: &Spec, resolved: &Resolved) -> Value {
        let (txs, warmup, exact, without) =
            (self.txs, self.warmup, spec.exact, spec.without.as_deref());
        let how = How { txs, warmup, exact, without };
        let mut row = results::row(resolved, &self.outcome, how, self.host);
        if spec.latencies {
            let distribution = results::distribution(&self.outcome.report.transactions);
            row[results::COMMIT_LATENCY]["distribution"] = distribution;
        }
        row
    }
}

/// Transactions of each core: those that were asked for, or the usual number. A workload that is
/// done once has its own number, whatever was asked for.
pub fn transactions(spec: &Spec, workload: &dyn Workload, usual: u64) -> u64 {
    workload.ends_after().or(spec.txs).unwrap_or(usual)
}

/// Makes a run.
///
/// # Errors
/// A sentence that says what is impossible.
///
/// # Panics
/// On a defect of the simulator or of a design.
pub fn make(
    spec: &Spec,
    resolved: &Resolved,
    recording: Recording,
    control: &Control,
) -> Result<Made, InputError> {
    let Recording { timeline, crashes } = recording;
    let workload = resolved.make_workload()?;
    let is_done_once = workload.ends_after().is_some();
    let usual = if crashes.is_some() { campaign::TRANSACTIONS } else { TRANSACTIONS };
    let txs = transactions(spec, &*workload, usual);
    let usual = if crashes.is_some() || is_done_once { 0 } else { txs / 10 };
    let warmup = spec.warmup.unwrap_or(usual);
    if is_done_once && warmup > 0 {
        let name = &resolved.workload_name;
        return Err(InputError::new(format!("{name} runs once; leave out `warmup`")));
    }
    let start = Rc::new(Cell::new(Since::now()));
    let measured = Rc::clone(&start);
    let outcome = (resolved.design.run)(Order {
        settings: &resolved.design_settings,
        without: spec.without.as_deref(),
        run: Run {
            warmup,
            transactions: txs,
            exact: spec.exact,
            epochs: spec.epochs,
            timeline,
            campaign: crashes,
            started: Rc::new(move || measured.set(Since::now())),
            ..Run::new(&resolved.machine.config, resolved.cores, workload, control)
        },
    })
    .map_err(|failure| failed(failure, resolved))?;
    let host = start.get().elapsed();
    let Transactions { commits, ended: acknowledged, .. } = outcome.report.transactions;
    if commits != acknowledged && !outcome.report.cancelled {
        let text = format!(
            "{acknowledged} of {commits} commits were acknowledged: it wakes a core too often"
        );
        return Err(defect(resolved, &text));
    }
    Ok(Made { outcome, txs, warmup, host })
}

/// Why a run could not be made, as a sentence.
///
/// # Panics
/// On a deadlock of a design of ours, which is a defect.
pub fn failed(failure: Failure, resolved: &Resolved) -> InputError {
    match failure {
        Failure::Stopped(stop) => stopped(stop, resolved),
        Failure::Host(error) => InputError::no_room(&error, ": lower pm.device_size"),
        Failure::Raised(text) => InputError::new(text),
        Failure::Deadlock(stuck) => defect(resolved, &format!("deadlock: {stuck}")),
        Failure::OutOfTurn(core) => InputError::new(format!(
            "{} cannot keep the order of the trace: a store of {core} waits for the end of a \
             transaction that ends later in it; take another design, or a trace without the line \
             `interleaved`",
            resolved.design.card.name
        )),
    }
}

/// What is wrong with a design that a user brought.
///
/// # Panics
/// If the design is ours.
fn defect(resolved: &Resolved, text: &str) -> InputError {
    let design = resolved.design;
    assert!(design.script.is_some(), "design {}: {text}", design.card.name);
    InputError::new(format!("{}: {text}", design.card.name))
}

/// Why a workload stopped, as a sentence.
///
/// # Panics
/// When the workload found itself wrong, which is a defect, unless transactions share what the
/// design takes for one transaction's alone.
pub fn stopped(stop: Stop, resolved: &Resolved) -> InputError {
    let workload = resolved.workload.about.name;
    match stop {
        Stop::OutOfMemory { asked, free } => InputError::new(format!(
            "workload {workload} needs {} of simulated persistent memory in one piece, and {} is \
             free; raise it with --set pm.device_size=..., or {}",
            quantity::about(asked),
            quantity::about(free),
            how_to_need_less(resolved),
        )),
        Stop::Input(text) => InputError::new(text),
        Stop::NotAccepted(text) => InputError::not_accepted(text),
        Stop::Failed(text) => {
            match spec::false_sharing(resolved.design, &resolved.workload_settings, resolved.cores)
            {
                Some(why) => InputError::new(format!("workload {workload}: {text}: {why}")),
                None => panic!("workload {workload}: {text}"),
            }
        }
        Stop::Cancelled => InputError::new("cancelled"),
    }
}

/// What a user can do for a workload to need less memory: its size is in its script, if it has one.
fn how_to_need_less(resolved: &Resolved) -> String {
    let entry = resolved.workload;
    match resolved.script.as_ref().map(|script| (script.name(), script.text())) {
        Some((file, _)) if entry.about.name == "ycsb" => format!("lower `recordcount` in {file}"),
        Some((file, text)) if text.contains(":rows") => {
            format!("lower --set workload.rows=..., which is :rows in {file}")
        }
        Some((file, _)) if entry.about.name == "replay" => {
            format!("add `region` lines for persistent memory to {file}, or use fewer cores")
        }
        Some((file, _)) => format!("let {file} insert less"),
        None => match sizes(resolved).as_slice() {
            [] => "use fewer cores".into(),
            [size] => format!("lower --set workload.{size}=..."),
            [others @ .., last] => {
                format!(
                    "lower --set workload.{}=... or workload.{last}=...",
                    others.join("=..., workload.")
                )
            }
        },
    }
}

/// The parameters that say how large a workload is: those that the user has raised, or the first.
fn sizes(resolved: &Resolved) -> Vec<&'static str> {
    let has = |name: &&str| resolved.workload.fields.iter().any(|field| field.name == *name);
    let all = SIZES.into_iter().filter(has);
    let is_raised = |name: &&str| {
        let field = resolved.workload.fields.iter().find(|field| field.name == *name);
        let value = |field| settings::value_of(field, &resolved.workload_settings);
        field.is_some_and(|field| value(field) > field.default)
    };
    let raised: Vec<_> = all.clone().filter(is_raised).collect();
    if raised.is_empty() { all.take(1).collect() } else { raised }
}

/// Runs a workload on plain memory, without a simulated machine: what simulation is compared to.
///
/// # Errors
/// A sentence that says what is unknown or impossible.
pub fn plain(spec: &str) -> Result<String, InputError> {
    let spec = Spec::read(spec)?;
    let resolved = spec.resolve(None)?;
    let mut workload = resolved.make_workload()?;
    let txs = transactions(&spec, &*workload, TRANSACTIONS);
    let operations = count_operations(&resolved, txs)?;
    let mut view = view(&resolved)?;
    let stop = |stop| stopped(stop, &resolved);
    workload.populate(&mut Pm::plain(&mut view, CoreId(0))).map_err(stop)?;
    // The simulator's memory has large pages, too.
    view.pm.use_large_pages().map_err(|error| failed(Failure::Host(error), &resolved))?;
    let cores = || (0..resolved.cores).map(CoreId);
    let mut programs = cores().map(|core| workload.program(core)).collect::<Result<Vec<_>, _>>();
    let programs = programs.as_mut().map_err(|error| stop(error.clone()))?;
    let start = Since::now();
    for _ in 0..txs {
        for (core, program) in cores().zip(programs.iter_mut()) {
            program.transaction(&mut Pm::plain(&mut view, core)).map_err(stop)?;
        }
    }
    let HostTime { seconds, cpu } = start.elapsed();
    Ok(json!({
        "mem_ops": operations,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "mem_ops_per_s": operations as f64 / seconds.max(1e-9),
    })
    .to_string())
}

fn view(resolved: &Resolved) -> Result<View, InputError> {
    let config = &resolved.machine.config;
    View::new(config.pm.capacity, config.dram.capacity)
        .map_err(|error| failed(Failure::Host(error), resolved))
}

/// How many loads and stores a workload makes; counted apart, so that counting costs the timed run
/// nothing.
fn count_operations(resolved: &Resolved, txs: u64) -> Result<u64, InputError> {
    let stop = |stop| stopped(stop, resolved);
    let overwritten = Overwritten::default();
    let mut counter = Counter { view: view(resolved)?, operations: 0, overwritten };
    let mut workload = resolved.make_workload()?;
    workload.populate(&mut Pm::plain(&mut counter.view, CoreId(0))).map_err(stop)?;
    for core in (0..resolved.cores).map(CoreId) {
        let mut program = workload.program(core).map_err(stop)?;
        for _ in 0..txs {
            program.transaction(&mut Pm::simulated(&mut counter, core)).map_err(stop)?;
        }
    }
    Ok(counter.operations)
}

/// Plain memory that counts loads and stores.
struct Counter {
    view: View,
    operations: u64,
    overwritten: Overwritten,
}

impl Port for Counter {
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        self.operations += 1;
        (self.view.word(Word::of(at.address)), Cycle(0))
    }
    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        self.operations += 1;
        let word = Word::of(at.address);
        let old = self.view.word(word);
        self.overwritten.keep(word, || old);
        self.view.set_word(word, (old & !mask) | (value & mask));
    }
    fn begin(&mut self, abortable: bool) {
        self.overwritten.begin(abortable);
    }
    fn commit(&mut self) {
        self.overwritten.end();
    }
    fn abort(&mut self) {
        self.overwritten.revert(&mut self.view);
    }
}
