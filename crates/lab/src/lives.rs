//! The lives of a machine: one that recovery has repaired boots, runs on, and is cut again.

use designs::Order;
use model::control::Control;
use model::crash::{Campaign, Check, Crashes, Points};
use model::engine::{Boot, Failure, Run};
use model::image::{Cut, Remains};
use model::oracle::{Promises, Violation};
use model::units::{Cycle, mix};
use model::workload::Stop;
use serde_json::{Value, json};

use crate::error::{Cause, InputError};
use crate::scripts;
use crate::spec::{HowMany, Resolved, failed};

/// The time from when a machine is switched on until the run on it ends.
#[derive(Clone, Copy)]
struct Life<'a> {
    /// Transactions of each core.
    txs: u64,
    /// The number of recovered images that are kept for later lives.
    keep: usize,
    /// What the machine boots from, if it is not new.
    boot: Option<Boot<'a>>,
}

impl Life<'_> {
    /// The seed from which its crash points and their orders are chosen.
    fn seed(&self, resolved: &Resolved) -> u64 {
        self.boot.map_or(resolved.seed, |boot| boot.seed)
    }
}

/// One campaign over one life, with the power cut at the points that are asked for.
fn cut(resolved: &Resolved, life: &Life<'_>, control: &Control) -> Result<Crashes, InputError> {
    let points = match (resolved.event, &resolved.points) {
        (Some(event), _) => Points::One(event),
        // The machines that boot share what is asked for.
        (None, HowMany::Some(wanted)) if life.boot.is_some() => {
            chosen(resolved, wanted.div_ceil(BOOTS), life, control)?
        }
        (None, HowMany::Some(wanted)) => chosen(resolved, *wanted, life, control)?,
        (None, HowMany::All | HowMany::Word(_)) => Points::All,
    };
    cut_at(points, resolved, life, control)
}

/// The same with the power cut at these points, or with the points only counted.
fn cut_at(
    points: Points,
    resolved: &Resolved,
    life: &Life<'_>,
    control: &Control,
) -> Result<Crashes, InputError> {
    let Life { txs, keep, boot } = *life;
    let campaign = Campaign {
        points,
        nested: resolved.nested,
        reorders: if resolved.checker.is_some() { REORDERS_CHECKED } else { REORDERS },
        violations_max: violations_max(resolved),
        seed: life.seed(resolved),
        keep,
        check: Check::Transactions,
    };
    let config = &resolved.machine.config;
    let outcome = (resolved.design.run)(Order {
        settings: &resolved.design_settings,
        without: resolved.without,
        run: Run {
            transactions: txs,
            // A checker sees images between any two stores, so no core may run ahead of the others.
            exact: resolved.exact || resolved.checker.is_some(),
            campaign: Some(campaign),
            boot,
            ..Run::new(config, resolved.cores, resolved.make_workload()?, control)
        },
    });
    match outcome {
        Ok(outcome) => Ok(outcome.crashes.unwrap_or_default()),
        Err(failure) => match ends_badly(&failure, resolved, life) {
            Some(text) => Ok(Crashes {
                checked: true,
                violations: vec![violation(text)],
                ..Crashes::default()
            }),
            None => Err(failed(failure, resolved)),
        },
    }
}

/// Why a run came to no end, if a switched-off rule, what recovery left or a user's design is to
/// blame.
fn ends_badly(failure: &Failure, resolved: &Resolved, life: &Life<'_>) -> Option<String> {
    let is_a_users = resolved.design.script.is_some();
    let may_be_wrong = is_a_users || resolved.without.is_some() || life.boot.is_some();
    match failure {
        Failure::Deadlock(stuck) if may_be_wrong => Some(format!("liveness: {stuck}")),
        Failure::Raised(text) => Some(text.clone()),
        Failure::Stopped(Stop::Failed(text)) if life.boot.is_some() => {
            Some(format!("workload: {text}"))
        }
        _ => None,
    }
}

/// A violation that no power failure of its life showed.
pub fn violation(text: String) -> Violation {
    Violation {
        point: 0,
        order: 0,
        early: Vec::new(),
        at: Cycle(0),
        nested: None,
        nested_order: 0,
        text,
        files: Vec::new(),
        marks: Vec::new(),
        account: None,
        word: None,
        history: Vec::new(),
    }
}

/// The number of orders that timing did not produce and that are tried at each crash point.
const REORDERS: u64 = 2;

/// The same where a program of the user's checks images: the lines that its flushes and fences
/// leave open at once are few, and images that the program has seen cost nothing (ours).
const REORDERS_CHECKED: u64 = 8;

/// The number of violations after which a campaign ends.
const VIOLATIONS: usize = 5;

/// Returns the number of violations after which a campaign ends: one convicts a design, or a
/// program, that was broken on purpose.
pub fn violations_max(resolved: &Resolved) -> usize {
    if resolved.without.is_some() || resolved.leaves_out() { 1 } else { VIOLATIONS }
}

/// Chooses `wanted` crash points of a life, spread over it; which ones follows from the seed.
fn chosen(
    resolved: &Resolved,
    wanted: u64,
    life: &Life<'_>,
    control: &Control,
) -> Result<Points, InputError> {
    let counted = cut_at(Points::Count, resolved, &Life { keep: 0, ..*life }, control)?;
    let all = counted.passed;
    if all <= wanted {
        return Ok(Points::All);
    }
    Ok(Points::These(spread(all, wanted, life.seed(resolved))))
}

/// Returns `wanted` of the numbers from 1 to `all`: one from each of as many parts, by the seed.
pub fn spread(all: u64, wanted: u64, seed: u64) -> Vec<u64> {
    let point = |index: u64| {
        let (from, until) = (index * all / wanted, (index + 1) * all / wanted);
        1 + from + mix(seed ^ index) % (until - from)
    };
    (0..wanted).map(point).collect()
}

/// The number of images of the first life from which machines boot (ours: a campaign then takes
/// about twice as long). Each of their lives leaves one image for the next.
const BOOTS: u64 = 8;

/// The fewest transactions of a core in a life, so that logs fill.
const TRANSACTIONS_MIN: u64 = 20;

/// What a campaign found in all lives.
#[derive(Default)]
pub struct Found {
    /// What it found in the first life.
    pub first: Crashes,
    /// What it found in the later lives together.
    pub later: Later,
}

impl Found {
    /// What was wrong, each with the power failures before the last life began.
    pub fn violations(&self) -> impl Iterator<Item = (&[Cut], &Violation)> {
        let first = self.first.violations.iter().map(|violation| (&[][..], violation));
        let later = self.later.violations.iter();
        first.chain(later.map(|(cuts, violation)| (&cuts[..], violation)))
    }

    /// Whether an image of some life could have been wrong, and said something of the design.
    pub fn checked(&self) -> bool {
        (self.first.checked || self.later.checked) && !self.announced_few()
    }

    /// How many transactions of each core were acknowledged, and announced as durable, in all
    /// lives.
    pub fn promises(&self) -> Vec<Promises> {
        let mut all = self.first.promises.clone();
        add(&mut all, &self.later.promises);
        all
    }

    /// Whether fewer than half of what some core had acknowledged was announced (ours). A window of
    /// transactions that are not durable yet may be open when a run ends; but a design is not
    /// judged by a few.
    pub fn announced_few(&self) -> bool {
        self.promises().iter().any(|of| 2 * of.announced < of.acknowledged)
    }

    /// The number of images that were checked.
    pub fn images(&self) -> u64 {
        let Found { first, later } = self;
        first.points + first.nested_points + later.points + later.nested_points
    }
}

/// Adds what was promised in another life, by cores.
fn add(all: &mut Vec<Promises>, more: &[Promises]) {
    all.resize(all.len().max(more.len()), Promises::default());
    for (of, more) in all.iter_mut().zip(more) {
        of.acknowledged += more.acknowledged;
        of.announced += more.announced;
    }
}

/// What the lives after the first found.
#[derive(Default)]
pub struct Later {
    /// Machines that were booted.
    pub boots: u64,
    /// Power failures.
    pub points: u64,
    /// Power failures during recovery, and while a machine booted.
    pub nested_points: u64,
    /// Whether an image of one of them could have been wrong.
    pub checked: bool,
    /// How many transactions of each core were acknowledged, and announced as durable, by the end
    /// of each run.
    pub promises: Vec<Promises>,
    /// What was wrong, each with the power failures before the life in which it was.
    pub violations: Vec<(Vec<Cut>, Violation)>,
    /// Whether it ended with the first life in which something was wrong.
    pub stopped: bool,
}

/// A machine that recovery has repaired, and the power failures that it has been through.
struct Survivor {
    cuts: Vec<Cut>,
    remains: Remains,
}

fn all_lives(resolved: &Resolved, control: &Control) -> Result<Found, InputError> {
    let keep = if resolved.lives > 1 { BOOTS as usize } else { 0 };
    control.expect(planned(resolved));
    let mut first = cut(resolved, &Life { txs: resolved.txs, keep, boot: None }, control)?;
    let kept = std::mem::take(&mut first.kept);
    if let Some(event) = resolved.event
        && first.points == 0
        && first.violations.is_empty()
        && !control.is_cancelled()
    {
        return Err(no_event(event, first.passed));
    }
    let goes_on = first.violations.is_empty();
    let kept = if goes_on { kept } else { Vec::new() };
    let later = live_on(resolved, kept, control)?;
    Ok(Found { first, later })
}

/// Why the power could not be cut at an event, or a timeline not end there.
pub fn no_event(event: u64, points: u64) -> InputError {
    InputError::new(format!("the run has no event {event}; its crash points are 1 to {points}"))
}

/// Runs a campaign over all lives that are asked for. An error that a user's design raises is a
/// violation; one that reaches this function belongs to no power failure.
///
/// # Errors
/// A sentence that says what does not fit.
pub fn live(resolved: &Resolved, control: &Control) -> Result<Found, InputError> {
    scripts::or_raised(|| all_lives(resolved, control))?.unwrap_or_else(|text| {
        let violations = vec![violation(text)];
        let first = Crashes { checked: true, violations, ..Crashes::default() };
        Ok(Found { first, later: Later::default() })
    })
}

/// The number of transactions in all lives.
pub fn planned(resolved: &Resolved) -> u64 {
    let boots = BOOTS * (resolved.lives - 1);
    // If the power is cut at some points only, each run is made once before, to count them.
    let runs = 1 + u64::from(resolved.points != HowMany::All);
    let txs = resolved.txs + boots * txs_of_later(resolved.txs);
    runs * u64::from(resolved.cores) * txs
}

/// The transactions of each core in a later life, if each makes `txs` in the first.
fn txs_of_later(txs: u64) -> u64 {
    (txs / BOOTS).max(TRANSACTIONS_MIN.min(txs))
}

/// Boots machines from what a first life left, up to the `lives`-th life of each, until something
/// is wrong. Each life runs fewer transactions than the first, so that all together take about as
/// long.
fn live_on(
    resolved: &Resolved,
    kept: Vec<Remains>,
    control: &Control,
) -> Result<Later, InputError> {
    let mut later = Later::default();
    let survive = |cuts: &[Cut], remains: Remains| Survivor {
        cuts: cuts.iter().copied().chain([remains.cut]).collect(),
        remains,
    };
    let mut survivors: Vec<Survivor> =
        kept.into_iter().map(|remains| survive(&[], remains)).collect();
    let txs = txs_of_later(resolved.txs);
    for life in 2..=resolved.lives {
        let mut next = Vec::new();
        for Survivor { cuts, remains } in survivors {
            if control.is_cancelled() {
                return Ok(later);
            }
            let seed = cuts.iter().fold(resolved.seed, |seed, cut| mix(seed ^ cut.point));
            let keep = usize::from(life < resolved.lives);
            let on_what_was_left = |error: InputError| {
                if error.cause == Cause::Host {
                    return error;
                }
                let advice = "what ran in the first life does not run on what recovery left";
                let leave_it = "--lives 1 skips later lives";
                InputError::new(format!("{error} (in life {life}: {advice}; {leave_it})"))
            };
            let life = Life { txs, keep, boot: Some(Boot { remains: &remains, seed }) };
            let found = cut(resolved, &life, control).map_err(on_what_was_left)?;
            later.boots += 1;
            later.points += found.points;
            later.nested_points += found.nested_points;
            later.checked |= found.checked;
            add(&mut later.promises, &found.promises);
            let wrong = found.violations.into_iter();
            later.violations.extend(wrong.map(|violation| (cuts.clone(), violation)));
            later.stopped = !later.violations.is_empty();
            if later.stopped {
                return Ok(later);
            }
            next.extend(found.kept.into_iter().map(|remains| survive(&cuts, remains)));
        }
        survivors = next;
    }
    Ok(later)
}

/// The power failures that a machine has been through, as JSON.
pub fn history(cuts: &[Cut]) -> Value {
    let cuts = cuts.iter().map(|cut| {
        let Cut { point, order, nested } = cut;
        json!({ "event": point, "order": order, "nested": nested })
    });
    cuts.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_crash_point_is_chosen_with_some_seed_and_one_of_each_part_with_every_seed() {
        for (all, wanted) in [(10, 3), (100, 7), (8, 7)] {
            let mut seen = BTreeSet::new();
            for seed in 0..500 {
                let points = spread(all, wanted, seed);
                assert_eq!(points.len() as u64, wanted);
                for (index, &point) in (0..).zip(&points) {
                    let part = index * all / wanted..(index + 1) * all / wanted;
                    assert!(part.contains(&(point - 1)), "{point} of {part:?}");
                }
                seen.extend(points);
            }
            assert_eq!(seen, (1..=all).collect(), "{wanted} of {all}");
        }
    }
}
