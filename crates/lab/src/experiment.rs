//! A run, by name: from the words of a spec to a row of results.

use std::cell::Cell;
use std::rc::Rc;

use designs::Order;
use model::control::Control;
use model::crash::Campaign;
use model::engine::{Outcome, Run};
use model::report::Transactions;
use model::timeline::Wanted;
use serde_json::Value;

use crate::error::InputError;
use crate::host_time::{HostTime, Stopwatch};
use crate::results;
use crate::spec::{Resolved, Spec, Usual, defect, failed};

/// Runs a design on a workload and a machine.
///
/// # Errors
/// A sentence that says what is unknown or impossible.
///
/// # Panics
/// On a defect of the simulator or of a design.
pub fn run(spec: &str, control: &Control) -> Result<String, InputError> {
    let spec = Spec::read(spec)?;
    let resolved = spec.resolve(Usual::RUN)?;
    let recording = Recording { epochs: spec.epochs, ..Recording::default() };
    let made = make(&resolved, recording, control)?;
    Ok(made.row(&spec, &resolved).to_string())
}

/// Refuses a spec that names something that does not exist, or a value out of range. Runs nothing.
///
/// # Errors
/// A sentence that says what is unknown or impossible. What only a run finds, such as a wrong
/// script or too little memory, is not found here.
pub fn check(spec: &str) -> Result<(), InputError> {
    Spec::read(spec)?.resolve(Usual::RUN).map(|_| ())
}

/// What a run records beside what it counts.
#[derive(Default)]
pub struct Recording<'a> {
    /// Ordering points and epochs.
    pub epochs: bool,
    /// A part of its timeline.
    pub timeline: Option<Wanted<'a>>,
    /// The campaign whose first life the run is, without power failures.
    pub crashes: Option<Campaign>,
}

/// A run that was made.
pub struct Made {
    /// What was found.
    pub outcome: Outcome,
    host: HostTime,
}

impl Made {
    /// The row of the run.
    pub fn row(&self, spec: &Spec, resolved: &Resolved) -> Value {
        let mut row = results::row(resolved, &self.outcome, self.host);
        if spec.latencies {
            let distribution = results::distribution(&self.outcome.report.transactions);
            row[results::COMMIT_LATENCY]["distribution"] = distribution;
        }
        row
    }
}

/// Makes a run.
///
/// # Errors
/// A sentence that says what is impossible.
///
/// # Panics
/// On a defect of the simulator or of a design.
pub fn make(
    resolved: &Resolved,
    recording: Recording<'_>,
    control: &Control,
) -> Result<Made, InputError> {
    let Recording { epochs, timeline, crashes } = recording;
    let workload = resolved.make_workload()?;
    if workload.ends_after().is_some() && resolved.warmup > 0 {
        let name = &resolved.workload_name;
        return Err(InputError::new(format!("{name} runs once; leave out `warmup`")));
    }
    let start = Rc::new(Cell::new(Stopwatch::start()));
    let measured = Rc::clone(&start);
    let outcome = (resolved.design.run)(Order {
        settings: &resolved.design_settings,
        without: resolved.without,
        run: Run {
            warmup: resolved.warmup,
            transactions: resolved.txs,
            exact: resolved.exact,
            epochs,
            timeline,
            campaign: crashes,
            started: Rc::new(move || measured.set(Stopwatch::start())),
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
    Ok(Made { outcome, host })
}
