//! A litmus test on ordering hardware: many runs with other delays, and what they found.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::config::Config;
use model::crash::Crashes;
use model::oracle::{Moment, Violation};
use model::units::{CoreId, Line, mix};
use model::workload::{Pm, Program, Ptr, Workload};
use serde_json::Value;

use super::cut::{Cut, Hardware, Left};
use super::file::{Step, Test};
use super::timeline;
use crate::corners::{APART, Settings};
use crate::error::InputError;
use crate::trace::Called;

/// What all runs of a test on ordering hardware found.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs, and those of them in which every load had the value that the test says.
    pub runs: u64,
    /// See `runs`; only these say whether an image is allowed, and seen.
    pub counted: u64,
    /// Images that were checked.
    pub images: u64,
    /// Power failures for which not every image that the hardware's rules allow was checked.
    pub sampled: u64,
    /// For each image that the test asks about, whether the model allows it after a power failure
    /// at some time of some run, and where it was seen.
    pub asked: Vec<Known>,
    /// An image that broke the hardware's promise, whatever the test asks about: the first that
    /// timing produced, whose timeline shows all of it, or else the first.
    pub violation: Option<Wrong>,
    /// The error that a script raised.
    pub raised: Option<Wrong>,
    /// Why runs on one of the machines, or on all, do not fit the hardware, or what was asked for.
    pub refused: Option<String>,
}

/// What is known of an image that a test asks about.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Whether the model allows it after a power failure at some time of some run.
    pub allowed: bool,
    /// The first time that timing left it, or else the first time that anything did.
    pub seen: Option<Seen>,
}

/// An image that was seen, and the run in which it was.
#[derive(Clone, Debug)]
pub struct Seen {
    moment: Moment,
    run: Timing,
}

/// Something wrong, and the run in which it was.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What is wrong.
    pub violation: Violation,
    run: Timing,
}

impl Wrong {
    fn of(violation: Violation, run: &Timing) -> Wrong {
        Wrong { violation, run: run.clone() }
    }

    /// What is wrong, in a sentence with the names of the test's variables.
    pub fn text(&self, test: &Test) -> String {
        called(test).in_sentence(&self.violation.text)
    }
}

/// What sets a run of a test apart from the others: one of [`MACHINES`], and its threads' delays.
#[derive(Clone, Debug, Default)]
struct Timing {
    machine: usize,
    delays: Delays,
}

impl Found {
    /// Begins with no run of a test.
    fn of(test: &Test) -> Found {
        Found { asked: vec![Known::default(); test.images.len()], ..Found::default() }
    }

    /// What is wrong, an image before an error.
    pub fn wrong(&self) -> Option<&Wrong> {
        self.violation.as_ref().or(self.raised.as_ref())
    }

    /// Adds what a run found; `matched` says whether its loads had the values that the test says.
    fn add(&mut self, run: &Timing, crashes: Crashes, matched: bool) {
        let is_of_timing = |violation: &Violation| violation.order == 0;
        let place = crashes.violations.iter().position(is_of_timing).unwrap_or(0);
        if let Some(violation) = crashes.violations.into_iter().nth(place) {
            let is_better =
                |known: &Wrong| is_of_timing(&violation) && !is_of_timing(&known.violation);
            if self.violation.as_ref().is_none_or(is_better) {
                self.violation = Some(Wrong::of(violation, run));
            }
        }
        self.images += crashes.images;
        self.sampled += crashes.sampled;
        if !matched {
            return;
        }
        self.counted += 1;
        for (known, answer) in self.asked.iter_mut().zip(crashes.asked) {
            known.allowed |= answer.allowed;
            if let Some(moment) = answer.seen
                && known.seen.as_ref().is_none_or(|seen| moment.order == 0 && seen.moment.order > 0)
            {
                known.seen = Some(Seen { moment, run: run.clone() });
            }
        }
    }
}

/// The machines of a test: `tiny`, and one on which writes overtake each other.
const MACHINES: &[Settings] = &[&[], APART];

/// The number of images of a crash point: as many as there are orders, up to this, and if there are
/// more, as many again by chance.
const ORDERS_MAX: u64 = 1_000;

/// Runs a test on ordering hardware. Returns nothing if it is cancelled.
///
/// # Errors
/// When the host has no room for the machine.
///
/// # Panics
/// When the test's programs cannot run, which is a defect.
pub fn run(
    hardware: &Hardware,
    test: &Test,
    seed: u64,
    cancelled: &Arc<AtomicBool>,
) -> Result<Option<Found>, InputError> {
    run_until(hardware, test, seed, cancelled, |_| false)
}

/// Does as [`run`], until what has been found is enough.
pub(super) fn run_until(
    hardware: &Hardware,
    test: &Test,
    seed: u64,
    cancelled: &Arc<AtomicBool>,
    is_enough: impl Fn(&Found) -> bool,
) -> Result<Option<Found>, InputError> {
    let mut found = Found::of(test);
    for machine in 0..MACHINES.len() {
        let config = match hardware.machine(&settings_of(machine)) {
            Ok((config, _)) => config,
            Err(InputError { text, .. }) => {
                found.refused.get_or_insert(text);
                continue;
            }
        };
        for delays in delays(test, seed) {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if is_enough(&found) {
                return Ok(Some(found));
            }
            let run = Timing { machine, delays };
            let mismatched = Arc::new(AtomicBool::new(false));
            found.runs += 1;
            match cut(hardware, test, &config, &run, &mismatched).left(cancelled)? {
                Left::Cancelled => return Ok(None),
                Left::Refused(text) => {
                    found.refused.get_or_insert(text);
                    found.runs -= 1;
                    break;
                }
                Left::Raised(violation) => {
                    found.raised.get_or_insert_with(|| Wrong::of(violation, &run));
                }
                Left::Stuck(violation) => {
                    found.violation.get_or_insert_with(|| Wrong::of(violation, &run));
                }
                Left::Images(crashes) => {
                    found.add(&run, *crashes, !mismatched.load(Ordering::Relaxed));
                }
            }
        }
    }
    Ok(Some(found))
}

/// The settings of one of [`MACHINES`].
fn settings_of(machine: usize) -> Vec<(String, String)> {
    MACHINES[machine].iter().map(|(path, value)| ((*path).into(), (*value).into())).collect()
}

/// A run of a test; `mismatched` is set if a load has another value than the test says.
fn cut<'a>(
    hardware: &'a Hardware,
    test: &Test,
    config: &'a Config,
    run: &Timing,
    mismatched: &Arc<AtomicBool>,
) -> Cut<'a> {
    let (delays, mismatched) = (run.delays.clone(), Arc::clone(mismatched));
    Cut {
        hardware,
        settings: &hardware.settings,
        config,
        cores: test.threads.len() as u8,
        workload: Box::new(Threads { test: test.clone(), delays, mismatched }),
        reorders: ORDERS_MAX,
        violations_max: usize::MAX,
        seed: 1,
        images: test.images.iter().map(|image| image.words.clone()).collect(),
    }
}

/// The timeline of the run in which something was wrong, as JSON: `null` if there is none.
///
/// # Errors
/// What is wrong with the machine.
pub fn timeline_of_wrong(
    hardware: &Hardware,
    test: &Test,
    wrong: &Wrong,
    cancelled: &Arc<AtomicBool>,
) -> Result<Value, InputError> {
    timeline_of(hardware, test, (&wrong.run, &wrong.violation.moment()), cancelled)
}

/// The timeline of the run in which an image was seen, as JSON: `null` if there is none.
///
/// # Errors
/// What is wrong with the machine.
pub fn timeline_of_seen(
    hardware: &Hardware,
    test: &Test,
    seen: &Seen,
    cancelled: &Arc<AtomicBool>,
) -> Result<Value, InputError> {
    timeline_of(hardware, test, (&seen.run, &seen.moment), cancelled)
}

fn timeline_of(
    hardware: &Hardware,
    test: &Test,
    (timing, moment): (&Timing, &Moment),
    cancelled: &Arc<AtomicBool>,
) -> Result<Value, InputError> {
    let (config, pairs) = hardware.machine(&settings_of(timing.machine))?;
    let run = cut(hardware, test, &config, timing, &Arc::default());
    let recorded = run.recorded(moment, cancelled);
    Ok(timeline::told(recorded, moment, (hardware, &pairs), &called(test)))
}

/// What a test calls its words.
fn called(test: &Test) -> Called {
    Called(test.variables.clone())
}

/// Instructions before a thread's first step and before each other one.
type Delays = Vec<(u64, u64)>;

/// When threads start, in instructions: every combination in which one starts at once.
const STARTS: &[u64] = &[0, 4, 20, 60, 200, 700];
/// The same for tests of three and four threads, which have many more combinations.
const STARTS_OF_MANY: &[u64] = &[0, 20, 200];
/// Instructions between two steps, one of which is chosen for each step.
const GAPS: &[u64] = &[0, 1, 3, 10, 40, 150];
/// The number of runs in which there are such gaps (ours: 64 allow 131 of 158 images of random
/// programs that could come about, and that 16 did not allow).
const GAPPED: u64 = 64;

/// The delays of each run of a test; the second number of a thread is a seed for its gaps, 0 for
/// none.
fn delays(test: &Test, seed: u64) -> Vec<Delays> {
    let count = test.threads.len();
    let starts = if count > 2 { STARTS_OF_MANY } else { STARTS };
    let combinations = starts.len().pow(count as u32);
    let start = |combination: usize, thread: usize| {
        starts[combination / starts.len().pow(thread as u32) % starts.len()]
    };
    let mut all: Vec<Delays> = (0..combinations)
        .map(|index| (0..count).map(|thread| (start(index, thread), 0)).collect())
        .filter(|delays: &Delays| delays.iter().any(|(start, _)| *start == 0))
        .collect();
    for run in 0..GAPPED {
        let gaps = |thread| mix(mix(seed) ^ (run << 8) ^ thread).max(1);
        all.push((0..count as u64).map(|thread| (0, gaps(thread))).collect());
    }
    all
}

/// A test as programs.
struct Threads {
    test: Test,
    delays: Delays,
    mismatched: Arc<AtomicBool>,
}

impl Workload for Threads {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> model::workload::Step {
        Ok(())
    }

    fn program(&self, core: CoreId) -> model::workload::Step<Box<dyn Program>> {
        let index = usize::from(core.0);
        Ok(Box::new(Thread {
            steps: self.test.threads[index].clone(),
            delay: self.delays[index],
            mismatched: self.mismatched.clone(),
            unflushed: Vec::new(),
        }))
    }
}

struct Thread {
    steps: Vec<Step>,
    delay: (u64, u64),
    mismatched: Arc<AtomicBool>,
    /// Lines of persistent memory that were stored to since the last fence.
    unflushed: Vec<Line>,
}

/// The number of times that a thread looks for the value that it waits for, which may have come and
/// gone.
const LOOKS: u64 = 20_000;

impl Program for Thread {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> model::workload::Step {
        let (start, gaps) = self.delay;
        pm.work(start);
        for index in 0..self.steps.len() {
            if gaps != 0 {
                pm.work(GAPS[(mix(gaps ^ index as u64) % GAPS.len() as u64) as usize]);
            }
            if !self.step(pm, self.steps[index]) {
                self.mismatched.store(true, Ordering::Relaxed);
                break;
            }
        }
        Ok(())
    }
}

impl Thread {
    /// Does a step, and returns whether it found what the test says.
    fn step(&mut self, pm: &mut Pm<'_>, step: Step) -> bool {
        match step {
            Step::Store(address, value) => {
                pm.store(Ptr::to(address), value);
                let line = Line::of(address);
                if line.is_persistent() && !self.unflushed.contains(&line) {
                    self.unflushed.push(line);
                }
            }
            Step::StorePast(address, value) => pm.store_past_caches(Ptr::to(address), value),
            Step::Load(address, value) => return pm.load(Ptr::to(address)) == value,
            Step::Wait(address, value) => {
                let mut found = || {
                    pm.work(1);
                    pm.load(Ptr::to(address)) == value
                };
                return (0..LOOKS).any(|_| found());
            }
            Step::Flush(address) => {
                let line = Line::of(address);
                self.unflushed.retain(|other| *other != line);
                pm.flush(Ptr::to(line.address()));
            }
            Step::Fence => pm.order(),
            Step::Order => {
                self.flush_all(pm);
                pm.order();
            }
            Step::Durable => {
                self.flush_all(pm);
                pm.durable();
            }
            Step::Work(instructions) => pm.work(instructions),
        }
        true
    }

    /// Flushes every line that is not flushed yet.
    fn flush_all(&mut self, pm: &mut Pm<'_>) {
        for line in self.unflushed.drain(..) {
            pm.flush(Ptr::to(line.address()));
        }
    }
}

#[cfg(test)]
mod tests {
    use model::crash::Answer;
    use model::units::Cycle;

    use super::*;

    /// A test that asks about one image.
    fn asking() -> Found {
        Found { asked: vec![Known::default()], ..Found::default() }
    }

    /// What a run says of that image; where it was seen is the number of an order.
    fn says(allowed: bool, seen: Option<u64>) -> Crashes {
        let moment = |order| Moment { point: 1, order, at: Cycle(7), early: Vec::new() };
        let asked = vec![Answer { allowed, seen: seen.map(moment) }];
        Crashes { images: 5, asked, ..Crashes::default() }
    }

    /// What is known of the image.
    fn known(found: &Found) -> (bool, Option<u64>) {
        let Known { allowed, seen } = &found.asked[0];
        (*allowed, seen.as_ref().map(|seen| seen.moment.order))
    }

    /// One run in which the image is allowed, or seen, is enough, if its loads had the values that
    /// the test says.
    #[test]
    fn what_one_of_the_runs_allows_is_allowed() {
        for (allowed, seen) in [(true, None), (false, Some(3))] {
            for place in 0..3 {
                let mut found = asking();
                for run in 0..3 {
                    let crashes =
                        if run == place { says(allowed, seen) } else { says(false, None) };
                    found.add(&Timing::default(), crashes, true);
                }
                assert_eq!(known(&found), (allowed, seen), "run {place}");
                assert_eq!((found.counted, found.images), (3, 15));
            }
        }
        let mut found = asking();
        found.add(&Timing::default(), says(true, Some(0)), false);
        assert_eq!((known(&found), found.counted), ((false, None), 0));
        assert_eq!(found.images, 5, "it was checked all the same");
        assert!(found.wrong().is_none());
    }

    /// The first image that timing produced, or else the first, has the timeline.
    #[test]
    fn where_timing_left_an_image_is_known_if_it_did() {
        for (orders, expect) in [([2, 0, 0], (1, 0)), ([0, 2, 0], (0, 0)), ([5, 3, 4], (0, 5))] {
            let mut found = asking();
            for (machine, order) in orders.into_iter().enumerate() {
                let run = Timing { machine, ..Timing::default() };
                found.add(&run, says(true, Some(order)), true);
            }
            let seen = found.asked[0].seen.as_ref().expect("it was seen");
            assert_eq!((seen.run.machine, seen.moment.order), expect);
        }
    }

    /// The first image that timing produced, or else the first, is the one that is told.
    #[test]
    fn what_a_timeline_can_show_is_told() {
        const FOUND: &[(&[&[u64]], u64)] =
            &[(&[&[3, 7], &[5]], 3), (&[&[3, 0], &[0]], 0), (&[&[3], &[], &[5, 0]], 0)];
        for &(orders, expect) in FOUND {
            let mut found = Found::default();
            for orders in orders {
                let of = |order: &u64| {
                    let violation = crate::lives::violation(format!("order: {order}"));
                    Violation { order: *order, ..violation }
                };
                let violations = orders.iter().map(of).collect();
                found.add(&Timing::default(), Crashes { violations, ..Crashes::default() }, false);
            }
            let violation = &found.wrong().expect("it is wrong").violation;
            assert_eq!((violation.order, &violation.text), (expect, &format!("order: {expect}")));
        }
    }
}
