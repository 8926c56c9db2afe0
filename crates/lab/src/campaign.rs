//! A crash campaign, by name: the design as it is, and with each of its rules switched off.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use model::crash::Recovery;
use model::design::{Granularity, Needs};
use model::engine::Control;
use model::image::Cut;
use model::oracle::{Early, Violation};
use serde_json::{Value, json};

use crate::error::InputError;
use crate::left_out::left_out;
use crate::lives::{Found, history, live, planned, violations_max};
use crate::scripts;
use crate::spec::{HowMany, Resolved, Spec};

/// Transactions of each core, if the user does not say.
pub const TRANSACTIONS: u64 = 500;
/// Cores, if the user does not say and the machine has them.
pub const CORES: u8 = 2;

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
    let resolved = spec.resolve(Some(CORES))?;
    if let Some(checker) = &resolved.checker {
        checker.forget_kept().map_err(InputError::new)?;
    }
    resolved.heard()?;
    let all = resolved.make_workload()?.ends_after();
    // What is done once is so whatever was asked for.
    let txs = all.or(spec.txs).unwrap_or(TRANSACTIONS);
    spec.txs = Some(txs);
    let start = Instant::now();
    let without = spec.without.as_deref();
    let work = planned(&spec, &resolved, txs);
    if spec.mutants {
        // How long a rule is looked for nobody knows: each counts as much as the campaign itself.
        let rules = needed_rules(&resolved).count() as u64;
        control.total.store(work * (1 + rules), Ordering::Relaxed);
    }
    let found = live(&spec, &resolved, without, txs, control);
    resolved.heard()?;
    let found = found?;
    if !control.cancelled.load(Ordering::Relaxed) {
        // Not every life that was planned comes about.
        control.done.store(work, Ordering::Relaxed);
    }
    let seconds = start.elapsed().as_secs_f64();
    let Found { first, later } = &found;
    let mut answer = json!({
        "design": resolved.design.card.name,
        "workload": resolved.workload_name,
        "machine": resolved.machine.name,
        "cores": resolved.cores,
        "txs": txs,
        "seed": resolved.seed,
        "durability": resolved.design.card.durability.name(),
        "domain": resolved.machine.config.domain().name(),
        "crash_points": first.passed,
        "points": first.points,
        "nested_points": first.nested_points,
        "checked": found.checked(),
        "announced_nothing": first.announced_nothing && !found.checked(),
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
        "stopped": later.stopped || first.violations.len() >= violations_max(&spec, without),
        "notes": resolved.notes,
    });
    what_else(&mut answer, &spec, &resolved, &found, control)?;
    if let (Some(checker), Some(shown)) = (&resolved.checker, first.checker) {
        answer["checker"] = checker.told(shown);
    }
    answer["cancelled"] = control.cancelled.load(Ordering::Relaxed).into();
    Ok(answer.to_string())
}

/// What recovery read and wrote, in lines; nothing if there was none.
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

/// Says what else was asked for: of the design's rules, of it on other machines, and of the flushes
/// and fences of a trace.
fn what_else(
    answer: &mut Value,
    spec: &Spec,
    resolved: &Resolved,
    found: &Found,
    control: &Control,
) -> Result<(), InputError> {
    // Of a design, or a program, that is wrong as it is nothing would be shown.
    let is_right = found.violations().next().is_none();
    if spec.mutants {
        answer["mutants"] = mutants(spec, resolved, control)?;
        resolved.heard()?;
        let needless = resolved.design.needless_under(&resolved.design_settings);
        let reason = |(rule, why)| json!({ "rule": rule, "why": why });
        answer["needless_rules"] = needless.map(reason).collect::<Vec<_>>().into();
    }
    if let Some(asked) = &spec.trials {
        answer["trials"] = match is_right {
            true => tried(spec, resolved, asked.most(), control)?,
            false => Value::Null,
        };
    }
    if let (Some(asked), Some(txs)) = (&spec.leave_out, spec.txs) {
        let rows = is_right.then(|| left_out(spec, resolved, asked, txs, control)).transpose()?;
        resolved.heard()?;
        answer["left_out"] = rows.unwrap_or_else(|| json!([]));
    }
    Ok(())
}

/// A write that arrived early.
fn early(of: &Early) -> Value {
    let line = format!("{:#x}", of.line.address());
    json!({ "line": line, "class": of.class.name(), "bytes": of.bytes })
}

fn violation((cuts, violation): (&[Cut], &Violation)) -> Value {
    json!({
        "text": violation.text,
        "life": cuts.len() + 1,
        "after": history(cuts),
        "event": violation.point,
        "order": violation.order,
        "early": violation.early.iter().map(early).collect::<Vec<_>>(),
        "cycle": violation.at.0,
        "nested": violation.nested,
        "nested_order": violation.nested_order,
        "address": violation.word.map(|word| format!("{:#x}", word.address())),
        "files": violation.files,
        "history": violation.history,
    })
}

/// How hard a rule is looked for: seeds of each kind of trial.
const SEEDS: u64 = 240;

/// And how hard in what is left of it in later lives.
const LIVES_SEEDS: u64 = 120;

/// Of so many trials of one life the first has the power fail in its recoveries, too (ours: it has
/// no divisor in common with how often machines come again, so that all kinds are among them).
const NESTED_EVERY: u64 = 7;

/// Trials that are the user's own run.
const OWN_TRIALS: usize = 2;

/// Trials in which a script may raise before nothing more is looked for (ours: one that raises in
/// so many raises in nearly all).
const RAISED_MAX: u64 = 20;

/// What a trial is with every rule.
enum Intact {
    Right,
    /// It says that what runs does not fit, and is not wrong.
    Refused(String),
    Wrong(String),
}

impl Intact {
    fn of(answer: Result<Found, InputError>) -> Result<Intact, InputError> {
        Ok(match answer {
            Err(error) if error.is_of_the_host => return Err(error),
            Err(error) => Intact::Refused(error.text),
            Ok(found) => match found.violations().next() {
                Some((_, own)) => Intact::Wrong(own.text.clone()),
                None => Intact::Right,
            },
        })
    }
}

/// The rules that a design needs under its settings, each with its documentation.
fn needed_rules(
    resolved: &Resolved,
) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let design = resolved.design;
    let needless: Vec<_> = design.needless_under(&resolved.design_settings).collect();
    let is_needed =
        move |(rule, _): &&(&str, &str)| needless.iter().all(|(other, _)| other != rule);
    design.rules.iter().filter(is_needed)
}

/// Switches each rule of the design off and looks for a run in which the checker notices. The
/// user's own run comes first; then come runs of `scribble`, from short to long, whose few words
/// and many overlaps reach corners that ordinary workloads do not, with large and small log
/// structures. What is done moves by a rule's share of it, within a rule by trials.
fn mutants(spec: &Spec, resolved: &Resolved, control: &Control) -> Result<Value, InputError> {
    let mut rows = Vec::new();
    let mut intact: BTreeMap<usize, Intact> = BTreeMap::new();
    let share = planned(spec, resolved, spec.txs.unwrap_or(TRANSACTIONS));
    let done = control.done.load(Ordering::Relaxed);
    for (number, (rule, doc)) in (0..).zip(needed_rules(resolved)) {
        let mut row = json!({ "rule": rule, "doc": doc, "caught": false });
        let mut raised = 0;
        let trials = trials_for(rule, spec, resolved);
        let (count, done) = (trials.len() as u64, done + number * share);
        *control.part.lock().unwrap_or_else(PoisonError::into_inner) = format!("without {rule}");
        for (tried, (index, (trial, txs))) in (0..).zip(trials) {
            control.done.store(done + tried * share / count, Ordering::Relaxed);
            if control.cancelled.load(Ordering::Relaxed) {
                break;
            }
            let on = if index < OWN_TRIALS {
                resolved.keeping_nothing()
            } else {
                // What it sets may not go with the user's machine.
                let Ok(on) = trial.resolve(Some(CORES)) else { continue };
                on
            };
            // What a trial plans is no part of the whole.
            let own = Control { cancelled: Arc::clone(&control.cancelled), ..Control::default() };
            let run = |without| live(&trial, &on, without, txs, &own);
            let found = match run(Some(*rule)) {
                // Log structures too small for what a trial stores: it shows nothing.
                Err(error) if index >= OWN_TRIALS && !error.is_of_the_host => continue,
                found => found?,
            };
            if let Some((cuts, caught)) = found.violations().next() {
                // That shows that it raises, and not that what the rule is for goes wrong.
                if scripts::is_raised(&caught.text) {
                    row["raises"] = caught.text.clone().into();
                    raised += 1;
                    if raised == RAISED_MAX {
                        break;
                    }
                    continue;
                }
                // The same run with the rule must be right, or it proves nothing about the rule.
                let with_it = match intact.entry(index) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => match run(None) {
                        Err(error) if index < OWN_TRIALS => return Err(error),
                        answer => unknown.insert(Intact::of(answer)?),
                    },
                };
                match with_it {
                    Intact::Right => (),
                    Intact::Refused(text) => row["refused"] = text.clone().into(),
                    Intact::Wrong(text) => {
                        row["intact"] = text.clone().into();
                        break;
                    }
                }
                row["caught"] = true.into();
                row.as_object_mut().expect("a row is an object").remove("raises");
                tell(&mut row, &trial, &on, txs, cuts, caught);
                break;
            }
        }
        control.done.store(done + share, Ordering::Relaxed);
        rows.push(row);
    }
    control.part.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok(rows.into())
}

/// Says in a row where a violation was found.
fn tell(
    row: &mut Value,
    trial: &Spec,
    on: &Resolved,
    txs: u64,
    cuts: &[Cut],
    violation: &Violation,
) {
    row["seed"] = trial.seed.into();
    row["lives"] = on.lives.into();
    row["nested"] = trial.nested.into();
    row["life"] = (cuts.len() + 1).into();
    row["event"] = violation.point.into();
    row["workload"] = trial.workload.clone().into();
    row["cores"] = on.cores.into();
    row["txs"] = txs.into();
    row["settings"] = json!(trial.settings);
    row["text"] = violation.text.clone().into();
    row["history"] = json!(violation.history);
}

/// Makes so many of the trials with the design as it was asked for: a machine that is only small
/// shows few of the corners that these reach. The first one that is wrong is the last.
fn tried(
    spec: &Spec,
    resolved: &Resolved,
    most: usize,
    control: &Control,
) -> Result<Value, InputError> {
    // What a trial sets may not go with the user's machine.
    let all = trials(spec, resolved).into_iter().skip(OWN_TRIALS);
    let all = all.filter_map(|(trial, txs)| {
        let on = trial.resolve(Some(CORES)).ok()?;
        Some((trial, on, txs))
    });
    let all: Vec<(Spec, Resolved, u64)> = all.collect();
    let work = |(trial, on, txs): &(Spec, Resolved, u64)| planned(trial, on, *txs);
    let done = control.done.load(Ordering::Relaxed);
    control.total.store(done + all.iter().take(most).map(work).sum::<u64>(), Ordering::Relaxed);
    let (mut runs, mut points, mut wrong) = (0, 0_u64, Value::Null);
    let mut checked = 0_u64;
    let mut refused: Vec<String> = Vec::new();
    for one in &all {
        if control.cancelled.load(Ordering::Relaxed) || runs == most {
            break;
        }
        let (trial, on, txs) = one;
        let before = control.done.load(Ordering::Relaxed);
        match live(trial, on, spec.without.as_deref(), *txs, control) {
            // Structures may be too small for what it stores: another one comes in its place.
            Err(error) if error.is_of_the_host => return Err(error),
            Err(error) => {
                refused.push(error.text);
                control.total.fetch_add(work(one), Ordering::Relaxed);
            }
            Ok(found) => {
                (runs, points) = (runs + 1, points + found.images());
                checked += u64::from(found.checked());
                if let Some((cuts, violation)) = found.violations().next() {
                    wrong = json!({});
                    tell(&mut wrong, trial, on, *txs, cuts, violation);
                    break;
                }
            }
        }
        // Not every life that was planned comes about.
        control.done.store(before + work(one), Ordering::Relaxed);
    }
    Ok(json!({
        "runs": runs,
        "checked": checked,
        "refused": refused.len(),
        "refusal": refused.first(),
        "points": points,
        "wrong": wrong,
    }))
}

/// The trials of a rule, each with its number: the one in which it was caught before, if that is
/// known, and then all of them in order.
fn trials_for(rule: &str, spec: &Spec, resolved: &Resolved) -> Vec<(usize, (Spec, u64))> {
    let mut trials: Vec<_> = trials(spec, resolved).into_iter().enumerate().collect();
    let is_known = |(index, (trial, _)): &(usize, (Spec, u64))| {
        *index >= OWN_TRIALS && spec.caught_with.get(rule) == Some(&trial.seed)
    };
    if let Some(place) = trials.iter().position(is_known) {
        trials[..=place].rotate_right(1);
    }
    trials
}

/// The user's own run, cut at every crash point, with every rule; the program that checks it, if
/// there is one, is the one of the campaign.
fn own(spec: &Spec) -> Spec {
    let (points, nested) = (HowMany::All, false);
    let (check, images, leave_out) = (None, None, None);
    Spec { points, nested, without: None, check, images, leave_out, ..spec.clone() }
}

/// The runs in which a mutant is looked for, from short to long, and then with other seeds again.
/// They go round several machines: as it is; with caches so small that lines leave them in the
/// middle of transactions; and with two controllers of one-entry queues over slow cells, so that
/// writes overtake each other.
fn trials(spec: &Spec, resolved: &Resolved) -> Vec<(Spec, u64)> {
    const SMALL: &[(&str, &str)] = &[
        ("llc.size", "256B"),
        ("llc.assoc", "4"),
        ("l2.size", "128B"),
        ("l2.assoc", "2"),
        ("l1d.size", "128B"),
        ("l1d.assoc", "2"),
    ];
    const APART: &[(&str, &str)] = &[
        ("controller.count", "2"),
        ("controller.intlv_size", "64B"),
        ("controller.write_buffer_size", "1"),
        ("controller.writeback_buffer_size", "64"),
        ("pm.xpbuffer_entries", "1"),
        ("pm.tWRITE", "400cycles"),
    ];
    let base = own(spec);
    let mut trials = vec![(base.clone(), 20), (base.clone(), spec.txs.unwrap_or(TRANSACTIONS))];
    let limit = resolved.machine.config.core.cores_max;
    let words = resolved.design.card.granularity == Granularity::Word;
    let revokes = resolved.design.revokes;
    for index in indices() {
        let mut trial = Spec {
            workload: "scribble".into(),
            lives: Some(if index < SEEDS { 1 } else { 3 }),
            script: None,
            seed: spec.seed + index,
            cores: Some((index / 3 % 3 + 2).min(limit)),
            ..base.clone()
        };
        trial.settings.retain(|path, _| !path.starts_with("workload."));
        let mut set = |path: &str, value: &str| {
            trial.settings.insert(path.into(), value.into());
        };
        set("workload.words", ["16", "48", "128"][index as usize % 3]);
        if words && index / 4 % 2 == 1 {
            set("workload.lock_grain", "word");
        }
        // What a design does by itself about an abort has rules of its own.
        if revokes && index % 5 % 2 == 1 {
            set("workload.aborts", "40");
        }
        // Long transactions come back to words that are still on their way.
        if index % 6 == 4 {
            set("workload.stores", "64");
        }
        for (path, value) in [&[], SMALL, APART, SMALL][index as usize % 4] {
            set(path, value);
        }
        if index % 8 == 3 {
            APART.iter().for_each(|(path, value)| set(path, value));
        }
        // More lines than a log's first group of blocks has.
        if index >= SEEDS && index % 3 == 2 {
            set("workload.large", "128");
        }
        // Writes that overtake each other on their ways (ours: by less than the slow cells take).
        if index % 3 == 2 {
            set("controller.arrival_jitter", "300cycles");
        }
        press(&mut trial, index, resolved);
        // Recoveries are interrupted in a few, short ones, of all these kinds.
        trial.nested = index < SEEDS && index.is_multiple_of(NESTED_EVERY);
        let is_short = leave_a_journal(&mut trial, index, resolved) || trial.nested;
        trials.push((trial, if is_short { 20 } else { 20 * (1 + index / 6 % 20) }));
    }
    trials
}

/// The numbers of the trials in their order: after every two of one life comes one of three.
fn indices() -> Vec<u64> {
    let mut indices: Vec<u64> = (0..SEEDS + LIVES_SEEDS).collect();
    indices.sort_by_key(|&index| index.checked_sub(SEEDS).map_or(2 * index, |later| 4 * later + 3));
    indices
}

/// Whether a design has a parameter by which those of a family are known. A user's may call another
/// thing so.
fn is_of_a_family(resolved: &Resolved, name: &str) -> bool {
    let design = resolved.design;
    design.script.is_none() && design.fields.iter().any(|field| field.name == name)
}

/// Makes structures small, by the `tight` values of the parameters that a design declares, and then
/// brings about what no single parameter does: corners of families of designs, which are known by
/// the parameters that they share. A design is searched without being known here.
fn press(trial: &mut Spec, index: u64, resolved: &Resolved) {
    let has = |name: &str| is_of_a_family(resolved, name);
    let mut set = |path: &str, value: &str| {
        trial.settings.insert(path.into(), value.into());
    };
    // What a checksum is for: lines of which a part is there, where a design may have no ADR.
    let has_checksum = resolved.design.rules.iter().any(|(rule, _)| *rule == "verify_checksum");
    if has_checksum && resolved.design.card.needs == Needs::Nothing && index % 8 == 1 {
        set("controller.domain", "media");
    }
    // Pages that come and go, and have a few lines each.
    if has("write_set") {
        set("workload.apart", ["1024", "4096", "512"][index as usize / 2 % 3]);
        set("tlb.entries", ["4", "1"][index as usize % 2]);
        set("tlb.assoc", "1");
        if index % 4 == 2 {
            // Rows of a line: lines of a journal that follow each other overtake each other.
            set("pm.device_rowbuffer_size", "64B");
        }
        if index % 16 == 2 {
            // So do those that the on-DIMM buffer writes.
            set("pm.xpline", "64B");
        }
    }
    if has("direction") {
        set("design.direction", ["extra_page", "min_copy"][index as usize / 3 % 2]);
    }
    if index % 5 != 4 {
        for field in resolved.design.fields.iter().filter(|field| !field.tight.is_empty()) {
            let value = field.tight[index as usize % field.tight.len()];
            set(&format!("design.{}", field.name), &value.to_string());
        }
    }
    if has("log_lines") && index % 4 == 2 && index % 3 != 1 {
        // Much in flight over few words and a ring that is nearly full.
        set("workload.words", "16");
        set("workload.lock_grain", "word");
        set("controller.count", ["2", "4"][index as usize / 12 % 2]);
        set("design.log_lines", "20");
        trial.cores = Some(resolved.machine.config.core.cores_max.min(4));
    }
    if has("id_bits") && index % 4 == 1 {
        // Transaction numbers that come again when the log does.
        let share = 36 / (index % 3 + 2) + index / 8;
        set("design.id_bits", "6");
        set("pm.log_size", &format!("{share}KiB"));
    }
    if has("truncate_perc") && index % 4 == 2 {
        set("design.truncate_perc", "100");
        set("pm.log_size", &format!("{}KiB", 2 + index % 3));
    }
    if has("truncate_perc") && index % 16 == 12 {
        // A log, and transaction numbers, that come again while one transaction runs.
        set("workload.words", "1024");
        set("workload.long", "400000");
        set("pm.log_size", "8KiB");
        let few = if has("sd") { "6" } else { "5" };
        set("design.id_bits", [few, "16"][index as usize / 16 % 2]);
    }
    if has("sd") && (!index.is_multiple_of(4) || index % 16 == 12) {
        set("design.sd", "4");
    }
    if has("sd") && has("drain") && index % 5 == 2 {
        set("design.drain", "oldest");
    }
}

/// Has lives leave much in a journal of pages, of which the next one writes over a part while lines
/// overtake each other: a third of such trials show what stale groups do, and hardly one in a
/// hundred of the others. Whether this trial is one, which is to be short.
fn leave_a_journal(trial: &mut Spec, index: u64, resolved: &Resolved) -> bool {
    let has = |name: &str| is_of_a_family(resolved, name);
    if !has("shadow_frames") || index < SEEDS || index % 4 != 2 {
        return false;
    }
    trial.cores = Some(resolved.machine.config.core.cores_max.min(4));
    trial.settings.retain(|path, _| !path.starts_with("workload."));
    for (path, value) in [
        ("controller.arrival_jitter", "300cycles"),
        ("design.checkpoint_percent", "1"),
        ("design.checkpoint_writes", "4"),
        ("design.journal_lines", "20"),
        ("design.shadow_frames", "40"),
        ("design.shootdown", "0"),
        ("design.write_set", "64"),
        ("pm.xpline", "64B"),
        ("tlb.entries", "4"),
        ("workload.apart", "4096"),
        ("workload.large", "128"),
        ("workload.words", "128"),
    ] {
        trial.settings.insert(path.into(), value.into());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    /// On the machines of papers as on `tiny`: what a trial sets would otherwise be refused there.
    #[test]
    fn trials_go_with_every_machine() {
        for machine in machines::names() {
            for design in ["silo", "undo@x86", "lad", "ssp"] {
                let text = json!({ "design": design, "workload": "hash", "machine": machine });
                let spec = Spec::read(&text.to_string()).expect("a spec");
                let resolved = spec.resolve(Some(CORES)).expect("a machine");
                let trials = trials(&spec, &resolved);
                let resolves = |(trial, _): &&(Spec, u64)| trial.resolve(Some(CORES)).is_ok();
                let count = trials.iter().filter(resolves).count();
                assert!(10 * count > 9 * trials.len(), "{design} on {machine}: {count}");
            }
        }
    }
}
