//! Programs as closures, on one machine under one design: for what random programs hardly reach.

use std::sync::Arc;

use crate::common::{order, resolve};
use designs::Order;
use lab::Control;
use model::crash::{Campaign, Check, Points};
use model::engine::{Failure, Outcome};
use model::units::{CoreId, LINE_BYTES};
use model::workload::{Pm, Program, Ptr, Step, Workload};

/// A program of every core, as a closure.
#[derive(Clone)]
struct Body(Arc<dyn Fn(&mut Pm<'_>) -> Step + Send + Sync>);

impl Workload for Body {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(self.clone()))
    }
}

impl Program for Body {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        (self.0)(pm)
    }
}

/// Runs a closure on the design, the machine and the settings of a line, and cuts the power
/// everywhere, or nowhere.
pub fn try_on(
    line: &str,
    points: Points,
    body: impl Fn(&mut Pm<'_>) -> Step + Send + Sync + 'static,
) -> Result<Outcome, Failure> {
    let resolved = resolve(line);
    let campaign = Campaign {
        points,
        nested: true,
        reorders: 2,
        violations_max: 5,
        seed: 1,
        keep: 0,
        check: Check::Transactions,
    };
    let (config, control) = (&resolved.machine.config, Control::default());
    let body = Box::new(Body(Arc::new(body)));
    let run = order(config, resolved.cores, body, Some(campaign), &control);
    (resolved.design.run)(Order { settings: &resolved.design_settings, ..run })
}

pub fn on(line: &str, body: impl Fn(&mut Pm<'_>) -> Step + Send + Sync + 'static) -> Outcome {
    try_on(line, Points::Count, body).expect("the run ends")
}

/// The word `word` of the line `line` of data.
pub fn at(line: u64, word: u64) -> Ptr {
    Ptr::to(LINE_BYTES * (1 + line) + 8 * word)
}

/// Makes a transaction that stores a value to as many words of each line as `words` says.
pub fn store(pm: &mut Pm<'_>, words: &[u64], value: u64) -> Step {
    pm.begin()?;
    for (line, &words) in (0..).zip(words) {
        for word in 0..words {
            pm.store(at(line, word), value);
        }
    }
    pm.commit();
    Ok(())
}

/// Returns what a design counted under a name.
pub fn counted(outcome: &Outcome, name: &str) -> u64 {
    let counters = &outcome.report.counters;
    counters.iter().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no {name}")).1
}
