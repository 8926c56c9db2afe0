//! A crash campaign, by name: the design as it is, and with each of its rules switched off.

use std::sync::Arc;
use std::time::Instant;

use model::checker::{Listed, NamedStore};
use model::control::Control;
use model::crash::{Crashes, Recovery};
use model::image::Cut;
use model::oracle::{Left, Violation};
use model::params::Choice;
use serde_json::{Value, json};

use crate::configuration::configuration;
use crate::error::InputError;
use crate::left_out::left_out;
use crate::lives::{Found, history, live, planned, violations_max};
use crate::spec::{Resolved, Spec, Usual};
use crate::trace::{Called, early};

mod mutants;
mod trials;

use mutants::{mutants, needed_rules, tried};

/// Cuts the power of a design on a workload and a machine.
///
/// # Errors
/// A sentence that says what is unknown or impossible.
///
/// # Panics
/// On a defect of the simulator or of a design.
pub fn crash(spec: &str, control: &Control) -> Result<String, InputError> {
    let mut spec = Spec::read(spec)?;
    spec.cancelled = Some(Arc::clone(&control.cancelled));
    let resolved = spec.resolve(Usual::CAMPAIGN)?;
    if let Some(checker) = &resolved.checker {
        checker.forget_kept().map_err(InputError::new)?;
    }
    resolved.checker_ran()?;
    let start = Instant::now();
    let work = planned(&resolved);
    if spec.mutants.has_any() {
        // How long the search for a rule takes is unknown: each rule counts as much as the campaign
        // itself.
        let rules = needed_rules(&spec, &resolved).count() as u64;
        control.set_total(work * (1 + rules));
    }
    let found = found_of(&resolved, control)?;
    if !control.is_cancelled() {
        // Not every life that was planned comes about.
        control.set_done(work);
    }
    let seconds = start.elapsed().as_secs_f64();
    let Found { first, later } = &found;
    let is_stopped = is_stopped(&resolved, first);
    let mut answer = json!({
        "design": resolved.design.card.name,
        "workload": resolved.workload_name,
        "machine": resolved.machine.name,
        "cores": resolved.cores,
        "txs": resolved.txs,
        "seed": resolved.seed,
        "durability": resolved.design.card.durability.name(),
        "domain": resolved.machine.config.controller.domain.name(),
        // A run that was stopped has not come to all that it has.
        "crash_points": (!is_stopped).then_some(first.passed),
        "points": first.points,
        "nested_points": first.nested_points,
        "checked": found.checked(),
        "acknowledged": found.promises().iter().map(|of| of.acknowledged).sum::<u64>(),
        "announced": found.promises().iter().map(|of| of.announced).sum::<u64>(),
        "announced_few": found.announced_few(),
        "saved_bytes_max": first.saved.most,
        "declared_bytes": first.saved.declared,
        "energy_bytes": first.saved.energy,
        "energy_ended": first.saved.short,
        "recovery": recovery(&first.recovery),
        "lives": resolved.lives,
        "boots": later.boots,
        "later_points": later.points,
        "later_nested_points": later.nested_points,
        "violations": found.violations().map(violation).collect::<Vec<_>>(),
        "seconds": seconds,
        "points_per_s": found.images() as f64 / seconds.max(1e-9),
        "stopped": later.stopped || is_stopped,
        "never": first.counted.as_deref().map(never),
        "untried_early": first.untried,
        "notes": notes(&resolved, first),
        "config": configuration(&resolved),
    });
    if resolved.event.is_some() {
        answer["left"] = left(&first.left);
    }
    what_else(&mut answer, &spec, &resolved, &found, control)?;
    if let (Some(checker), Some(shown)) = (&resolved.checker, first.checker) {
        answer["checker"] = checker.told(shown);
        answer["checker"]["sampled"] = first.sampled.into();
    }
    answer["cancelled"] = control.is_cancelled().into();
    Ok(answer.to_string())
}

/// Runs the campaign, unless no image could be wrong: of a trace without transactions nothing is
/// promised, if no checker judges what is left.
fn found_of(resolved: &Resolved, control: &Control) -> Result<Found, InputError> {
    let workload = resolved.make_workload()?;
    if resolved.checker.is_none() && !workload.has_transactions() && !workload.has_invariants() {
        return Ok(Found::default());
    }
    drop(workload);
    let found = live(resolved, control);
    resolved.checker_ran()?;
    found
}

/// Whether a campaign has found enough, so that it did not come to its end.
fn is_stopped(resolved: &Resolved, found: &Crashes) -> bool {
    found.violations.len() >= violations_max(resolved)
        || found.checker.is_some_and(|shown| shown.has_enough)
}

/// What the user should know of the run, and of what its campaign did not try.
fn notes(resolved: &Resolved, found: &Crashes) -> Vec<String> {
    let mut notes = resolved.notes.clone();
    if found.untried > 0 && resolved.machine.config.controller.jitter == 0 {
        notes.push(format!(
            "{}'s surviving state reacts to writes as they arrive; those that it is told of were \
             tested only in the order that timing produced; --set \
             controller.arrival_jitter=500cycles lets them overtake each other",
            resolved.design.card.name
        ));
    }
    notes
}

/// The names of the counters that stayed 0 and say that something happened: sums of cycles and
/// largest values say how much.
fn never(counted: &[(&'static str, u64)]) -> Vec<&'static str> {
    let of_events = |name: &str| !name.ends_with("_cycles") && !name.ends_with("_max");
    let never = counted.iter().filter(|(name, count)| *count == 0 && of_events(name));
    never.map(|(name, _)| *name).collect()
}

/// What a power failure left of the transactions of each core; empty if it left what must not be.
fn left(of: &[Left]) -> Value {
    let cores = of.iter().enumerate().map(|(core, left)| {
        json!({
            "core": core,
            "there": left.there,
            "acknowledged": left.promises.acknowledged,
            "announced": left.promises.announced,
            "open": left.open.map(|open| {
                json!({ "stores": open.stores, "committing": open.committing })
            }),
        })
    });
    cores.collect()
}

/// What recovery read and wrote, in lines; null if nothing was recovered.
fn recovery(of: &Recovery) -> Value {
    let mean = |lines: u64| lines as f64 / of.count as f64;
    match of.count {
        0 => Value::Null,
        _ => json!({
            "lines_read_mean": mean(of.read),
            "lines_read_max": of.read_most,
            "lines_written_mean": mean(of.written),
            "lines_written_max": of.written_most,
        }),
    }
}

/// Adds what else was asked for: what shows the design's rules, the design on other machines, and a
/// trace without some of its flushes and fences.
fn what_else(
    answer: &mut Value,
    spec: &Spec,
    resolved: &Resolved,
    found: &Found,
    control: &Control,
) -> Result<(), InputError> {
    // A design, or a program, that is wrong as it is would show nothing.
    let is_right = found.violations().next().is_none();
    if spec.mutants.has_any() {
        answer["mutants"] = mutants(spec, resolved, control)?;
        resolved.checker_ran()?;
        let needless = resolved.design.needless_under(&resolved.design_settings);
        let reason = |(rule, why)| json!({ "rule": rule, "why": why });
        let asked = needless.filter(|(rule, _)| spec.mutants.has(rule));
        answer["needless_rules"] = asked.map(reason).collect::<Vec<_>>().into();
    }
    if let Some(asked) = &spec.trials {
        answer["trials"] = match is_right {
            true => tried(spec, resolved, asked.most(), control)?,
            false => Value::Null,
        };
    }
    if let Some(asked) = &spec.leave_out {
        let rows = is_right.then(|| left_out(resolved, asked, control)).transpose()?;
        resolved.checker_ran()?;
        answer["left_out"] = rows.unwrap_or_else(|| json!([]));
    }
    Ok(())
}

fn violation((cuts, violation): (&[Cut], &Violation)) -> Value {
    json!({
        "text": violation.text,
        "life": cuts.len() + 1,
        "after": history(cuts),
        "event": violation.point,
        "order": violation.order,
        "early": early(&violation.early, &Called::default()),
        "cycle": violation.at.0,
        "nested": violation.nested,
        "nested_order": violation.nested_order,
        "address": violation.word.map(|word| format!("{:#x}", word.address())),
        "files": violation.files,
        "marks": violation.marks,
        "history": violation.history,
        "there": violation.account.as_ref().map(|account| listed(&account.there)),
        "missing": violation.account.as_ref().map(|account| listed(&account.missing)),
        "alike": violation.account.as_ref().map(|account| account.alike),
    })
}

/// Stores of a trace, of many only some, and how many there are.
fn listed(of: &Listed) -> Value {
    let store = |store: &NamedStore| {
        json!({
            "line": store.place,
            "source": store.source,
            "address": format!("{:#x}", store.word.address()),
            "thread": store.thread,
        })
    };
    json!({ "stores": of.stores.iter().map(store).collect::<Vec<_>>(), "total": of.total })
}
