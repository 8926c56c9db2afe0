//! A design with each of its rules switched off, and the design as it is in the same trials.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use model::control::Control;
use model::image::Cut;
use model::oracle::Violation;
use serde_json::{Value, json};

use super::trials::{Trial, trials, trials_for};
use crate::error::{Cause, InputError};
use crate::lives::{Found, live, planned};
use crate::scripts;
use crate::spec::{Resolved, Spec};

/// The number of trials in which a script may raise an error before the search for a rule ends
/// (ours: a script that raises in so many raises in nearly all).
const RAISED_MAX: u64 = 20;

/// The number of trials in which no hook of a script asks for the rule, after which the search for
/// it ends (ours: machines and small structures have come in all their combinations by then).
const UNASKED_MAX: u64 = 40;

/// What a trial shows with every rule switched on.
enum Intact {
    Right,
    /// The design says that the run does not fit it, which is no violation.
    Refused(String),
    /// What is wrong, after these earlier power failures.
    Wrong(Vec<Cut>, Violation),
}

impl Intact {
    fn of(answer: Result<Found, InputError>) -> Result<Intact, InputError> {
        Ok(match answer {
            Err(error) if error.cause == Cause::Host => return Err(error),
            Err(error) => Intact::Refused(error.text),
            Ok(found) => match found.violations().next() {
                Some((cuts, own)) => Intact::Wrong(cuts.to_vec(), own.clone()),
                None => Intact::Right,
            },
        })
    }
}

/// The rules that are to be switched off and that a design needs under its settings, each with its
/// documentation.
pub(super) fn needed_rules(
    spec: &Spec,
    resolved: &Resolved,
) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let design = resolved.design;
    let needless: Vec<_> = design.needless_under(&resolved.design_settings).collect();
    let is_needed =
        move |(rule, _): &&(&str, &str)| needless.iter().all(|(other, _)| other != rule);
    design.rules.iter().filter(|(rule, _)| spec.mutants.has(rule)).filter(is_needed)
}

/// Switches each rule of the design off, or one, and looks for a run in which the checker notices.
/// The trial in which the rule was caught before comes first, if it is known, and then the user's
/// own run. Then come runs of `scribble`, from short to long, whose few words and many overlaps
/// reach corners that ordinary workloads do not, with large and small log structures. The progress
/// moves by a rule's share of it, within a rule by trials. Each of the threads takes the next rule;
/// which thread takes which changes nothing.
pub(super) fn mutants(
    spec: &Spec,
    resolved: &Resolved,
    control: &Control,
) -> Result<Value, InputError> {
    let rules: Vec<_> = needed_rules(spec, resolved).collect();
    let share = planned(resolved);
    let search = Search { spec, resolved, control, share, intact: Mutex::default() };
    let next = AtomicUsize::new(0);
    let look = || {
        let mut rows = Vec::new();
        while let Some(&&(rule, doc)) = rules.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = search.rule(rule, doc);
            if row.is_err() {
                next.store(rules.len(), Ordering::Relaxed);
            }
            rows.push((rule, row));
        }
        rows
    };
    let mut found: BTreeMap<&str, Result<Value, InputError>> = thread::scope(|scope| {
        let others: Vec<_> = (1..search.threads()).map(|_| scope.spawn(look)).collect();
        let own = look();
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|e| resume_unwind(e)));
        own.into_iter().chain(others.flatten()).collect()
    });
    control.begin_part("");
    // The first rule whose search failed is the one whose error is told: the rules before it were
    // taken before it.
    rules.iter().map_while(|&&(rule, _)| found.remove(rule)).collect()
}

/// What a trial without a rule shows.
enum Shown {
    Nothing,
    /// Nothing, since what the trial sets does not fit the user's machine, or the design says that
    /// what it stores does not fit. The sentence says why.
    Refused(String),
    /// That a script raises an error, and not that what the rule is for goes wrong.
    Raised,
    /// That the rule is needed, or that the trial is wrong with it, too.
    Enough,
}

/// The search for the rules of a design.
struct Search<'a> {
    spec: &'a Spec,
    resolved: &'a Resolved,
    control: &'a Control,
    /// The share of a rule in the progress.
    share: u64,
    /// What trials show with every rule, as far as that is known, by their numbers.
    intact: Mutex<BTreeMap<usize, Arc<Intact>>>,
}

impl Search<'_> {
    /// How many threads search: one for a script, whose interpreter does one thing at a time, and
    /// for a program of the user's, which may count on being alone.
    fn threads(&self) -> usize {
        match self.resolved.design.script.is_some() || self.resolved.checker.is_some() {
            true => 1,
            false => self.control.threads.max(1),
        }
    }

    /// Looks for a run that shows that a rule is needed, and returns the rule's row. `caught` is
    /// null if the user asked for an end before that was known.
    fn rule(&self, rule: &'static str, doc: &str) -> Result<Value, InputError> {
        let control = self.control;
        control.begin_part(format!("without {rule}"));
        let mut row = json!({ "rule": rule, "doc": doc, "caught": false });
        let (mut raised, mut unasked, mut refused) = (0, Some(0), Vec::new());
        let is_cancelled = || control.is_cancelled();
        let trials = trials_for(rule, self.spec, self.resolved);
        let (count, mut told) = (trials.len() as u64, 0);
        let mut tell = |until: u64| {
            control.advance(until - told);
            told = until;
        };
        for (tried, trial) in (0..).zip(&trials) {
            tell(tried * self.share / count);
            if is_cancelled() {
                row["caught"] = Value::Null;
                break;
            }
            scripts::scripted::take_asked();
            let shown = self.without(rule, trial, &mut row)?;
            unasked = match scripts::scripted::take_asked() {
                Some(false) => unasked.map(|runs| runs + 1),
                Some(true) => None,
                None => unasked,
            };
            match shown {
                // A trial that was cut short has shown nothing.
                Shown::Nothing | Shown::Raised if is_cancelled() => row["caught"] = Value::Null,
                Shown::Refused(text) => refused.push(text),
                Shown::Nothing if unasked < Some(UNASKED_MAX) => (),
                Shown::Raised if raised + 1 < RAISED_MAX => raised += 1,
                Shown::Nothing | Shown::Raised | Shown::Enough => break,
            }
        }
        if row["caught"] == false && !refused.is_empty() {
            row["unmade"] = refused.len().into();
            row["refusal"] = refused.swap_remove(0).into();
        }
        if let Some(runs @ 1..) = unasked
            && row["caught"] == false
            && !["intact", "raises"].iter().any(|why| row.get(why).is_some())
        {
            row["unasked"] = runs.into();
        }
        tell(self.share);
        Ok(row)
    }

    /// Returns what a trial shows with every rule switched on. Each trial is run once.
    fn intact(
        &self,
        trial: &Trial,
        run: impl FnOnce() -> Result<Found, InputError>,
    ) -> Result<Arc<Intact>, InputError> {
        let known = || self.intact.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&trial.number) {
            return Ok(Arc::clone(known));
        }
        let intact = match run() {
            Err(error) if trial.is_own() => return Err(error),
            answer => Arc::new(Intact::of(answer)?),
        };
        known().insert(trial.number, Arc::clone(&intact));
        Ok(intact)
    }

    /// Makes a trial without a rule, and says in the rule's row what was found.
    fn without(
        &self,
        rule: &'static str,
        trial: &Trial,
        row: &mut Value,
    ) -> Result<Shown, InputError> {
        let on = match trial.resolve(self.resolved) {
            Ok(on) => on,
            Err(error) => return Ok(Shown::Refused(error.text)),
        };
        // The trial's own work is no part of the progress.
        let own = Control::ended_by(&self.control.cancelled);
        let run = |without| live(&Resolved { without, ..on.clone() }, &own);
        let found = match run(Some(rule)) {
            // Log structures are too small for what the trial stores: it shows nothing.
            Err(error) if !trial.is_own() && error.cause != Cause::Host => {
                return Ok(Shown::Refused(error.text));
            }
            found => found?,
        };
        let Some((cuts, caught)) = found.violations().next() else { return Ok(Shown::Nothing) };
        if scripts::is_raised(&caught.text) {
            row["raises"] = caught.text.clone().into();
            return Ok(Shown::Raised);
        }
        // The same run with the rule must be right, or it proves nothing about the rule.
        let intact = self.intact(trial, || run(None))?;
        match &*intact {
            // A run that was cut short does not show that the trial is right.
            Intact::Right if self.control.is_cancelled() => {
                return Ok(Shown::Nothing);
            }
            Intact::Right => (),
            Intact::Refused(text) => row["refused"] = text.clone().into(),
            Intact::Wrong(cuts, own) => {
                row["intact"] = own.text.clone().into();
                tell(row, trial, &on, cuts, own);
                return Ok(Shown::Enough);
            }
        }
        row["caught"] = true.into();
        row.as_object_mut().expect("a row is an object").remove("raises");
        tell(row, trial, &on, cuts, caught);
        Ok(Shown::Enough)
    }
}

/// Says in a row where a violation was found.
fn tell(row: &mut Value, trial: &Trial, on: &Resolved, cuts: &[Cut], violation: &Violation) {
    row["seed"] = on.seed.into();
    row["lives"] = on.lives.into();
    row["nested"] = on.nested.into();
    row["life"] = (cuts.len() + 1).into();
    row["event"] = violation.point.into();
    row["workload"] = on.workload_name.into();
    row["cores"] = on.cores.into();
    row["txs"] = on.txs.into();
    row["settings"] = json!(trial.spec.settings);
    row["text"] = violation.text.clone().into();
    row["history"] = json!(violation.history);
}

/// Runs up to `most` of the trials on the design as it was asked for: a machine that is only small
/// shows few of the corners that these reach. Ends with the first trial that is wrong.
pub(super) fn tried(
    spec: &Spec,
    resolved: &Resolved,
    most: usize,
    control: &Control,
) -> Result<Value, InputError> {
    let (mut all, mut refused) = (Vec::new(), Vec::new());
    for trial in trials(spec, resolved).into_iter().filter(|trial| !trial.is_own()) {
        match trial.resolve(resolved) {
            Ok(on) => all.push((trial, Resolved { without: resolved.without, ..on })),
            // What a trial sets may not go with the user's machine.
            Err(error) => refused.push(error.text),
        }
    }
    let work = |(_, on): &(Trial, Resolved)| planned(on);
    let done = control.done();
    control.set_total(done + all.iter().take(most).map(work).sum::<u64>());
    let (mut runs, mut points, mut wrong) = (0, 0_u64, Value::Null);
    let mut checked = 0_u64;
    for one in &all {
        if control.is_cancelled() || runs == most {
            break;
        }
        let (trial, on) = one;
        let before = control.done();
        match live(on, control) {
            // Structures may be too small for what the trial stores: another one comes in its
            // place.
            Err(error) if error.cause == Cause::Host => return Err(error),
            Err(error) => {
                refused.push(error.text);
                control.expect_more(work(one));
            }
            Ok(found) => {
                (runs, points) = (runs + 1, points + found.images());
                checked += u64::from(found.checked());
                if let Some((cuts, violation)) = found.violations().next() {
                    wrong = json!({});
                    tell(&mut wrong, trial, on, cuts, violation);
                    break;
                }
            }
        }
        // Not every life that was planned comes about.
        control.set_done(before + work(one));
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
