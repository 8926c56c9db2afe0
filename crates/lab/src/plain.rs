//! A workload on plain memory, without a simulated machine: what simulation is compared to.

use model::contents::View;
use model::engine::Failure;
use model::units::{CoreId, Cycle, Word};
use model::workload::{Overwritten, Pm, Port, Program, Ptr, Step, Workload};
use serde_json::json;

use crate::error::InputError;
use crate::host_time::{HostTime, Stopwatch};
use crate::spec::{Resolved, Spec, Usual, failed, stopped};

/// Runs the workload of a spec on plain memory, and measures how long the host takes.
///
/// # Errors
/// A sentence that says what is unknown or impossible.
pub fn plain(spec: &str) -> Result<String, InputError> {
    let resolved = Spec::read(spec)?.resolve(Usual::RUN)?;
    let mut workload = resolved.make_workload()?;
    let operations = count_operations(&resolved)?;
    let mut view = view(&resolved)?;
    let stop = |stop| stopped(stop, &resolved);
    workload.populate(&mut Pm::plain(&mut view, CoreId(0))).map_err(stop)?;
    // The simulator's memory has large pages, too.
    view.pm.use_large_pages().map_err(|error| failed(Failure::Host(error), &resolved))?;
    let mut programs = programs(&*workload, resolved.cores).map_err(stop)?;
    let start = Stopwatch::start();
    let one =
        |program: &mut dyn Program, core| program.transaction(&mut Pm::plain(&mut view, core));
    transactions(&mut programs, resolved.txs, one).map_err(stop)?;
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
fn count_operations(resolved: &Resolved) -> Result<u64, InputError> {
    let stop = |stop| stopped(stop, resolved);
    let overwritten = Overwritten::default();
    let mut counter = Counter { view: view(resolved)?, operations: 0, overwritten };
    let mut workload = resolved.make_workload()?;
    workload.populate(&mut Pm::plain(&mut counter.view, CoreId(0))).map_err(stop)?;
    let mut programs = programs(&*workload, resolved.cores).map_err(stop)?;
    let one = |program: &mut dyn Program, core| {
        program.transaction(&mut Pm::simulated(&mut counter, core))
    };
    transactions(&mut programs, resolved.txs, one).map_err(stop)?;
    Ok(counter.operations)
}

fn programs(workload: &dyn Workload, cores: u8) -> Step<Vec<Box<dyn Program>>> {
    (0..cores).map(|core| workload.program(CoreId(core))).collect()
}

/// Makes transactions of all cores in turn. Where cores share what they change, what a transaction
/// does depends on those before it, so that the order must be the same whenever they are made.
fn transactions(
    programs: &mut [Box<dyn Program>],
    txs: u64,
    mut one: impl FnMut(&mut dyn Program, CoreId) -> Step,
) -> Step {
    for _ in 0..txs {
        for (core, program) in (0..).map(CoreId).zip(programs.iter_mut()) {
            one(&mut **program, core)?;
        }
    }
    Ok(())
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
