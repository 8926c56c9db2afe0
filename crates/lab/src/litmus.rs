//! Litmus tests: a few stores of a few threads, and an image that a power failure may leave or not.
//! Each runs on ordering hardware without a log, many times with other delays, with the power cut
//! at every point and every order of draining tried that the hardware's rules allow. The
//! persistency model that the hardware declares says whether the image is allowed; the images say
//! whether it is seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use designs::Entry;
use model::engine::{Control, Crashes};
use model::units::{CoreId, Line, mix};
use model::workload::{Pm, Program, Ptr, Workload};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{InputError, unknown};
use crate::scripts;

mod cut;
pub mod file;
pub mod random;

use cut::Cut;
use file::{Step, Test};
use random::{Caught, Programs};

/// The tests that come with the simulator: the table of specs/ordering.md section 2, and four more.
pub const TESTS: &[(&str, &str)] = &[
    ("two_stores.litmus", include_str!("../litmus/two_stores.litmus")),
    ("order_between.litmus", include_str!("../litmus/order_between.litmus")),
    ("line_again.litmus", include_str!("../litmus/line_again.litmus")),
    ("seen_by_another.litmus", include_str!("../litmus/seen_by_another.litmus")),
    ("volatile_flag.litmus", include_str!("../litmus/volatile_flag.litmus")),
    ("durable_returned.litmus", include_str!("../litmus/durable_returned.litmus")),
    ("older_value_returns.litmus", include_str!("../litmus/older_value_returns.litmus")),
    ("after_a_read.litmus", include_str!("../litmus/after_a_read.litmus")),
    ("overwritten_by_another.litmus", include_str!("../litmus/overwritten_by_another.litmus")),
    ("third_core.litmus", include_str!("../litmus/third_core.litmus")),
    ("part_of_a_line.litmus", include_str!("../litmus/part_of_a_line.litmus")),
    ("value_between.litmus", include_str!("../litmus/value_between.litmus")),
];

/// Tests and the hardware that they run on; all there are, if none are named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Names of ordering hardware.
    #[serde(default)]
    orders: Vec<String>,
    /// Names and texts of files.
    #[serde(default)]
    tests: Vec<(String, String)>,
    /// So many random programs are run, too.
    #[serde(default)]
    random: u64,
    /// Whether each rule of the hardware is switched off, too.
    #[serde(default)]
    mutants: bool,
    /// Where the delays between steps come from.
    #[serde(default = "default_seed")]
    seed: u64,
}

fn default_seed() -> u64 {
    1
}

/// Runs litmus tests on ordering hardware.
///
/// # Errors
/// A sentence that says what is unknown, or the line of a file that is wrong.
///
/// # Panics
/// On a defect of the simulator.
pub fn litmus(request: &str, control: &Control) -> Result<String, InputError> {
    let request: Request = serde_json::from_str(request)
        .map_err(|error| InputError(format!("the request is not understood: {error}")))?;
    let orders = orders(&request.orders)?;
    let built_in = || TESTS.iter().map(|(name, text)| file::read(name, text));
    let given = || request.tests.iter().map(|(path, text)| file::read(path, text));
    let tests: Vec<Test> = match request.tests.is_empty() {
        true => built_in().collect::<Result<_, _>>()?,
        false => given().collect::<Result<_, _>>()?,
    };
    let rules =
        if request.mutants { orders.iter().map(|order| order.rules.len()).sum() } else { 0 };
    let planned = tests.len() * orders.len() + rules;
    let planned = planned as u64 + request.random * orders.len() as u64;
    control.total.store(planned, Ordering::Relaxed);
    let mut rows = Vec::new();
    for test in &tests {
        for order in &orders {
            if control.cancelled.load(Ordering::Relaxed) {
                break;
            }
            // What was cut short says nothing.
            let Some(found) = run(order, None, test, request.seed, &control.cancelled)? else {
                break;
            };
            rows.push(row(order, test, &found));
            control.done.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut answer = json!({});
    if request.random > 0 {
        answer["random"] = random(&orders, request.random, control)?.into();
    }
    if request.mutants {
        answer["mutants"] = mutants(&orders, &tests, &rows, (request.seed, control))?.into();
    }
    answer["rows"] = rows.into();
    answer["cancelled"] = control.cancelled.load(Ordering::Relaxed).into();
    Ok(answer.to_string())
}

/// What so many random programs leave on each ordering hardware, up to the first that is wrong.
fn random(orders: &[&Entry], count: u64, control: &Control) -> Result<Vec<Value>, InputError> {
    let mut rows = Vec::new();
    for order in orders {
        let programs = Programs::of(order);
        let (mut points, mut images, mut wrong) = (0, 0, None);
        for number in 1..=count {
            let Some(ran) = programs.run(None, number, &control.cancelled)? else {
                return Ok(rows);
            };
            (points, images) = (points + ran.points, images + ran.images);
            control.done.fetch_add(1, Ordering::Relaxed);
            if let Some(violation) = ran.violation {
                control.done.fetch_add(count - number, Ordering::Relaxed);
                wrong = Some((number, violation));
                break;
            }
        }
        rows.push(json!({
            "order": order.card.name,
            "programs": wrong.as_ref().map_or(count, |(number, _)| *number),
            "points": points,
            "images": images,
            "program": wrong.as_ref().map(|(number, _)| programs.describe(*number)),
            "violation": wrong.map(|(_, violation)| violation),
        }));
    }
    Ok(rows)
}

/// What shows that a rule of the hardware is switched off: the first of the tests, or of the random
/// programs, in which something is wrong, and nothing with the rule.
fn mutants(
    orders: &[&Entry],
    tests: &[Test],
    intact: &[Value],
    (seed, control): (u64, &Control),
) -> Result<Vec<Value>, InputError> {
    // Rows of the intact hardware: all orders of a test, and then those of the next.
    let holds = |order: usize, test: usize| {
        intact.get(test * orders.len() + order).is_some_and(|row| row["violation"].is_null())
    };
    let mut rows = Vec::new();
    let rules = orders.iter().enumerate();
    let rules = rules
        .flat_map(|(place, order)| order.rules.iter().map(move |(rule, _)| (place, order, rule)));
    for (place, order, rule) in rules {
        let (mut name, mut number, mut text) = (None, None, None);
        for (_, test) in tests.iter().enumerate().filter(|(index, _)| holds(place, *index)) {
            let broken = |found: &Found| found.violation.is_some();
            let found = run_until(order, Some(rule), test, seed, &control.cancelled, broken)?;
            let Some(found) = found else { return Ok(rows) };
            if found.violation.is_some() {
                (name, text) = (Some(&test.name), found.violation);
                break;
            }
        }
        if text.is_none() {
            match Programs::of(order).catch(rule, &control.cancelled)? {
                None => return Ok(rows),
                Some(Caught::By(program, violation)) => {
                    (number, text) = (Some(program), Some(violation));
                }
                Some(Caught::Not) => (),
            }
        }
        rows.push(json!({
            "order": order.card.name,
            "rule": rule,
            "caught": text.is_some(),
            "test": name,
            "random": number,
            "violation": text,
        }));
        control.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(rows)
}

fn orders(names: &[String]) -> Result<Vec<&'static Entry>, InputError> {
    if names.is_empty() {
        return Ok(designs::ORDERS.iter().collect());
    }
    names.iter().map(|name| find_order(name)).collect()
}

/// The ordering hardware of a name, or the script of a user's.
///
/// # Errors
/// A sentence that lists what exists, closest first, or says why the script is none.
fn find_order(name: &str) -> Result<&'static Entry, InputError> {
    let known = designs::ORDERS.iter().find(|order| order.card.name == name);
    let found = known.map_or_else(|| scripts::find(name), |entry| Ok(Some(entry)))?;
    match found {
        Some(entry) if entry.is_order() => Ok(entry),
        Some(_) => Err(InputError(format!(
            "{name} is no ordering hardware: tests run on that, without a log, and it says what it \
             promises (`model`)"
        ))),
        None => {
            let names = designs::ORDERS.iter().map(|order| order.card.name);
            Err(unknown("ordering hardware", name, names))
        }
    }
}

fn row(order: &Entry, test: &Test, found: &Found) -> Value {
    json!({
        "order": order.card.name,
        "model": order.model.map(model::design::Model::name),
        "test": test.name,
        "title": test.title,
        "image": test.asked,
        "allowed": found.allowed,
        "seen": found.seen,
        "images": found.images,
        "runs": found.runs,
        "counted": found.counted,
        "violation": found.violation,
    })
}

/// What all runs of a test on ordering hardware found.
#[derive(Debug, Default)]
pub struct Found {
    /// Runs, and those of them in which every load had the value that the test says.
    pub runs: u64,
    /// See `runs`; only these say whether the image is allowed, and seen.
    pub counted: u64,
    /// Images that were checked.
    pub images: u64,
    /// Whether the model allows the image after a power failure at some time of some run.
    pub allowed: bool,
    /// Whether the image was seen.
    pub seen: bool,
    /// The first image that broke the hardware's promise, whatever the test asks about.
    pub violation: Option<String>,
}

impl Found {
    /// Adds what a run found, in which loads had the values that the test says, or had not.
    fn add(&mut self, crashes: Crashes, matched: bool) {
        if let Some(violation) = crashes.violations.into_iter().next() {
            self.violation.get_or_insert(violation.text);
        }
        self.images += crashes.images;
        if matched {
            self.counted += 1;
            self.allowed |= crashes.allowed;
            self.seen |= crashes.seen;
        }
    }
}

/// The machines of a test: `tiny`, and one whose two controllers have queues of one entry over slow
/// cells, so that writes overtake each other.
const MACHINES: &[&[(&str, &str)]] = &[
    &[],
    &[
        ("controller.count", "2"),
        ("controller.intlv_size", "64B"),
        ("controller.write_buffer_size", "1"),
        ("pm.xpbuffer_entries", "1"),
        ("pm.tWRITE", "400cycles"),
    ],
];

/// Images of one crash point: as many as there are orders, up to this, and as many more by chance.
const ORDERS_MAX: u64 = 1_000;

/// Runs a test on ordering hardware, with one of its rules switched off if one is named; nothing if
/// it is cancelled.
///
/// # Errors
/// When the host has no room for the machine.
///
/// # Panics
/// When the test's programs cannot run, which is a defect.
pub fn run(
    order: &Entry,
    without: Option<&str>,
    test: &Test,
    seed: u64,
    cancelled: &Arc<AtomicBool>,
) -> Result<Option<Found>, InputError> {
    run_until(order, without, test, seed, cancelled, |_| false)
}

/// As [`run`], until what has been found is enough.
fn run_until(
    order: &Entry,
    without: Option<&str>,
    test: &Test,
    seed: u64,
    cancelled: &Arc<AtomicBool>,
    is_enough: impl Fn(&Found) -> bool,
) -> Result<Option<Found>, InputError> {
    let mut found = Found::default();
    for machine in MACHINES {
        let pairs: Vec<(String, String)> =
            machine.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
        let config = cut::machine(order, &pairs)?;
        for delays in delays(test, seed) {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if is_enough(&found) {
                return Ok(Some(found));
            }
            found.runs += 1;
            let mismatched = Arc::new(AtomicBool::new(false));
            let threads = Threads { test: test.clone(), delays, mismatched: mismatched.clone() };
            let cut = Cut {
                order,
                without,
                settings: &[],
                config: &config,
                cores: test.threads.len() as u8,
                workload: Box::new(threads),
                reorders: ORDERS_MAX,
                violations_max: usize::MAX,
                seed: 1,
                image: test.image.clone(),
            };
            match cut.left(cancelled)? {
                None => return Ok(None),
                Some(Err(text)) => _ = found.violation.get_or_insert(text),
                Some(Ok(crashes)) => found.add(crashes, !mismatched.load(Ordering::Relaxed)),
            }
        }
    }
    Ok(Some(found))
}

/// Instructions before a thread's first step and before each other one.
type Delays = Vec<(u64, u64)>;

/// When threads start: each of these against each, as long as one starts at once.
const STARTS: &[u64] = &[0, 4, 20, 60, 200, 700];
/// The same for tests of three and four threads, which have many more ways to do so.
const STARTS_OF_MANY: &[u64] = &[0, 20, 200];
/// Instructions between two steps, one of which is chosen for each step.
const GAPS: &[u64] = &[0, 1, 3, 10, 40, 150];
/// Runs in which there are such gaps.
const GAPPED: u64 = 16;

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

/// A thread looks so often for the value that it waits for: it may have come and gone.
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
    /// Whether the step found what the test says.
    fn step(&mut self, pm: &mut Pm<'_>, step: Step) -> bool {
        match step {
            Step::Store(address, value) => {
                pm.store(Ptr::to(address), value);
                let line = Line::of(address);
                if line.is_persistent() && !self.unflushed.contains(&line) {
                    self.unflushed.push(line);
                }
            }
            Step::Load(address, value) => return pm.load(Ptr::to(address)) == value,
            Step::Wait(address, value) => {
                let mut found = || {
                    pm.work(1);
                    pm.load(Ptr::to(address)) == value
                };
                return (0..LOOKS).any(|_| found());
            }
            Step::Order => {
                self.flush(pm);
                pm.order();
            }
            Step::Durable => {
                self.flush(pm);
                pm.durable();
            }
            Step::Work(instructions) => pm.work(instructions),
        }
        true
    }

    fn flush(&mut self, pm: &mut Pm<'_>) {
        for line in self.unflushed.drain(..) {
            pm.flush(Ptr::to(line.address()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One run in which the image is allowed, or seen, is enough, if its loads had the values.
    #[test]
    fn what_one_of_the_runs_allows_is_allowed() {
        for (allowed, seen) in [(true, false), (false, true)] {
            for place in 0..3 {
                let mut found = Found::default();
                for run in 0..3 {
                    let is_it = run == place;
                    let (allowed, seen) = (allowed && is_it, seen && is_it);
                    found.add(Crashes { images: 5, allowed, seen, ..Crashes::default() }, true);
                }
                assert_eq!((found.allowed, found.seen), (allowed, seen), "run {place}");
                assert_eq!((found.counted, found.images), (3, 15));
            }
        }
        let mut found = Found::default();
        found.add(Crashes { images: 5, allowed: true, seen: true, ..Crashes::default() }, false);
        assert_eq!((found.allowed, found.seen, found.counted), (false, false, 0));
        assert_eq!(found.images, 5, "it was checked all the same");
    }
}
