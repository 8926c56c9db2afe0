//! Litmus tests: a few stores of a few threads, and images that a power failure may leave or not.
//! Each runs on ordering hardware without a log, many times with other delays, with the power cut
//! at every point and every order of draining tried that the hardware's rules allow. The
//! persistency model that the hardware declares says whether such an image is allowed; what the
//! power failures leave says whether it is seen.

use model::control::Control;
use model::design::Needs;
use model::params::Choice;
use model::units::LINE_BYTES;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{InputError, unknown_of};
use crate::names::find_order;
use crate::{machines, settings, spec};

mod cut;
pub mod file;
pub mod random;
mod run;
mod timeline;

pub use cut::Hardware;
use file::Test;
use random::{Caught, Programs, Ran};
use run::run_until;
pub use run::{Found, Wrong, run};

/// The most threads of a test, and cores of a program: as many as the machine `tiny` has cores.
const THREADS_MAX: u8 = 4;

/// The tests that come with the simulator (ours, after the persistency models of Pelley, Chen and
/// Wenisch, ISCA'14).
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
    /// Ordering hardware.
    #[serde(default)]
    orders: Vec<Asked>,
    /// Names and texts of files.
    #[serde(default)]
    tests: Vec<(String, String)>,
    /// The number of random programs that are run, too.
    #[serde(default)]
    random: u64,
    /// The number of a random program that is run alone.
    program: Option<u64>,
    /// A rule of the hardware that is switched off.
    without: Option<String>,
    /// Whether each rule of the hardware is switched off, too.
    #[serde(default)]
    mutants: bool,
    /// Whether each image that was seen has a timeline.
    #[serde(default)]
    timelines: bool,
    /// The seed of the delays between steps.
    #[serde(default = "default_seed")]
    seed: u64,
}

/// Ordering hardware by its name, with settings (`section.field`, `value`) that hold in every run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    #[serde(default)]
    settings: Vec<(String, String)>,
}

fn default_seed() -> u64 {
    1
}

/// The highest number of a random program.
const RANDOM_MAX: u64 = 1_000_000;

impl Request {
    fn read(text: &str) -> Result<Request, InputError> {
        let request: Request = serde_json::from_str(text).map_err(InputError::not_understood)?;
        if request.random > RANDOM_MAX {
            let many = request.random;
            return Err(InputError::new(format!("random is {many}; it takes 0 to {RANDOM_MAX}")));
        }
        match request.program {
            Some(number) if !(1..=RANDOM_MAX).contains(&number) => {
                Err(InputError::new(format!("program is {number}; it takes 1 to {RANDOM_MAX}")))
            }
            _ => Ok(request),
        }
    }

    fn hardware(&self) -> Result<Vec<Hardware>, InputError> {
        if !self.orders.is_empty() {
            return self.orders.iter().map(|asked| self.hardware_of(asked)).collect();
        }
        let known = designs::ORDERS.iter().map(|order| order.card.name.to_owned());
        let all = known.map(|name| Asked { name, settings: Vec::new() });
        all.map(|asked| self.hardware_of(&asked)).collect()
    }

    fn hardware_of(&self, Asked { name, settings }: &Asked) -> Result<Hardware, InputError> {
        let entry = find_order(name)?;
        let owner = format!("ordering hardware {name}");
        let said = settings::split(settings)?;
        if let Some((path, _)) = settings.iter().find(|(path, _)| path.starts_with("workload.")) {
            return Err(InputError::new(format!(
                "{path} changes nothing here: a litmus test has no workload"
            )));
        }
        let settings = settings::params(&owner, entry.fields, &said.design)?;
        let tiny = machines::load("tiny", &said.machine)?;
        spec::keep_threads(entry, &tiny, THREADS_MAX)?;
        // Paths get the names that they have here, by which a run's own settings are compared with
        // them.
        let named = said.machine.into_iter();
        let named = named.map(|(path, text)| Ok((machines::own_path(&path)?, text)));
        let machine = named.collect::<Result<Vec<_>, InputError>>()?;
        let is_short = tiny.config.controller.flush_bytes < LINE_BYTES;
        let (fields, energy) = match entry.card.needs {
            Needs::Eadr if is_short => (&[cut::DOMAIN, cut::ENERGY][..], " with energy for caches"),
            _ => (&[cut::DOMAIN][..], ""),
        };
        let is_asked = |field: &&str| machine.iter().any(|(path, _)| path == field);
        let asked: Vec<&str> = fields.iter().copied().filter(is_asked).collect();
        if let Some(domain) = spec::missing_domain(entry.card.needs, &tiny.config)
            && !asked.is_empty()
        {
            return Err(InputError::new(format!(
                "{name} needs the durability domain {}{energy}; leave {} out, or name other \
                 hardware with --order",
                domain.name(),
                asked.join(" and ")
            )));
        }
        let hardware = Hardware { settings, machine, ..Hardware::of(entry) };
        let Some(without) = &self.without else { return Ok(hardware) };
        match entry.rules.iter().find(|(rule, _)| rule == without) {
            Some((rule, _)) => Ok(hardware.lacking(rule)),
            None => {
                let rules = entry.rules.iter().map(|(rule, _)| *rule);
                Err(unknown_of("rule", without, &owner, rules))
            }
        }
    }

    fn tests(&self) -> Result<Vec<Test>, InputError> {
        let built_in = || TESTS.iter().map(|(name, text)| file::read(name, text));
        let given = || self.tests.iter().map(|(path, text)| file::read(path, text));
        match (self.program, self.tests.is_empty()) {
            (Some(_), _) => Ok(Vec::new()),
            (None, true) => built_in().collect(),
            (None, false) => given().collect(),
        }
    }

    /// The random programs, by number.
    fn programs(&self) -> std::ops::RangeInclusive<u64> {
        self.program.map_or(1..=self.random, |number| number..=number)
    }
}

/// Runs litmus tests on ordering hardware.
///
/// # Errors
/// A sentence that says what is unknown, the line of a file that is wrong, or why nothing fits some
/// hardware.
///
/// # Panics
/// On a defect of the simulator.
pub fn litmus(request: &str, control: &Control) -> Result<String, InputError> {
    let request = Request::read(request)?;
    let orders = request.hardware()?;
    let tests = request.tests()?;
    let rules = orders.iter().map(|order| order.entry.rules.len()).sum();
    let planned = tests.len() * orders.len() + if request.mutants { rules } else { 0 };
    let programs = request.programs();
    let random = programs.clone().count() * orders.len();
    control.set_total((planned + random) as u64);
    let (mut rows, mut holds) = (Vec::new(), Vec::new());
    for test in &tests {
        let (of_test, held) = rows_of(test, &orders, &request, control)?;
        rows.extend(of_test);
        holds.push(held);
    }
    let mut answer = json!({});
    if random > 0 {
        answer["random"] = run_programs(&orders, programs, control)?.into();
    }
    require_fit(&rows, &answer["random"])?;
    if request.mutants {
        answer["mutants"] = mutants(&orders, (&tests, &holds), (request.seed, control))?.into();
    }
    answer["rows"] = rows.into();
    answer["cancelled"] = control.is_cancelled().into();
    Ok(answer.to_string())
}

/// The rows of a test: of each image that it asks about, one for each hardware; and on which of the
/// hardware it ran and nothing was wrong. If it is cancelled, hardware is missing in both.
fn rows_of(
    test: &Test,
    orders: &[Hardware],
    request: &Request,
    control: &Control,
) -> Result<(Vec<Value>, Vec<bool>), InputError> {
    let mut rows = vec![Vec::new(); test.images.len()];
    let mut holds = Vec::new();
    for order in orders {
        if control.is_cancelled() {
            break;
        }
        // A run that was cut short says nothing.
        let Some(found) = run(order, test, request.seed, &control.cancelled)? else {
            break;
        };
        for (place, of_image) in rows.iter_mut().enumerate() {
            let mut row = row(order, test, place, &found);
            row["file"] = (!request.tests.is_empty()).then_some(&*test.path).into();
            row["timeline"] = timeline(order, test, (place, &found), (request, control))?;
            of_image.push(row);
        }
        holds.push(found.runs != 0 && found.wrong().is_none());
        control.advance(1);
    }
    Ok((rows.concat(), holds))
}

/// The timeline of a row: of what is wrong, in the row of the first image, or else, if that was
/// asked for, of how the image came about.
fn timeline(
    order: &Hardware,
    test: &Test,
    (place, found): (usize, &Found),
    (request, control): (&Request, &Control),
) -> Result<Value, InputError> {
    let cancelled = &control.cancelled;
    match (found.wrong(), &found.asked[place].seen) {
        (Some(wrong), _) if place == 0 => run::timeline_of_wrong(order, test, wrong, cancelled),
        (None, Some(seen)) if request.timelines => {
            run::timeline_of_seen(order, test, seen, cancelled)
        }
        _ => Ok(Value::Null),
    }
}

/// Refuses a request that fits none of the hardware.
fn require_fit(rows: &[Value], random: &Value) -> Result<(), InputError> {
    let random = random.as_array().map_or(&[][..], Vec::as_slice);
    let mut all = rows.iter().chain(random).peekable();
    let first = all.peek().and_then(|row| row["refusal"].as_str().map(str::to_owned));
    let is_refused = |row: &Value| row["violation"].is_null() && row["images"] == 0;
    match first {
        Some(text) if all.all(is_refused) => Err(InputError::new(text)),
        _ => Ok(()),
    }
}

/// What random programs leave on each ordering hardware, up to the first that is wrong.
fn run_programs(
    orders: &[Hardware],
    numbers: std::ops::RangeInclusive<u64>,
    control: &Control,
) -> Result<Vec<Value>, InputError> {
    let mut rows = Vec::new();
    for order in orders {
        let all = Programs::of(order);
        let (mut points, mut images, mut refused) = (0, 0, Vec::new());
        let (mut ran, mut wrong) = (0, None);
        for number in numbers.clone() {
            let found = match all.run(number, &control.cancelled)? {
                Ran::Cancelled => break,
                Ran::Refused(text) => {
                    refused.push(text);
                    None
                }
                Ran::Raised(violation) => Some(violation),
                Ran::Checked { points: more, images: looked_at, violation } => {
                    (points, images) = (points + more, images + looked_at);
                    violation
                }
            };
            ran += 1;
            control.advance(1);
            wrong = found.map(|violation| (number, violation));
            if wrong.is_some() {
                control.advance(numbers.end() - number);
                break;
            }
        }
        // The user cancelled it before the first program.
        if ran == 0 {
            break;
        }
        let mut timeline = Value::Null;
        if let Some((number, violation)) = &wrong {
            timeline = all.timeline(*number, violation, &control.cancelled)?;
        }
        let told = wrong.as_ref().map(|(number, _)| *number);
        let told = told.or((numbers.start() == numbers.end()).then_some(*numbers.start()));
        rows.push(json!({
            "order": order.name(),
            "programs": ran,
            "refused": refused.len(),
            "refusal": refused.first(),
            "points": points,
            "images": images,
            "number": told,
            "program": told.map(|number| all.describe(number)),
            "violation": wrong.map(|(_, violation)| violation.text),
            "timeline": timeline,
        }));
    }
    Ok(rows)
}

/// Finds what shows that each rule of the hardware is switched off; `holds` says of each test on
/// which of the hardware nothing is wrong.
fn mutants(
    orders: &[Hardware],
    (tests, holds): (&[Test], &[Vec<bool>]),
    (seed, control): (u64, &Control),
) -> Result<Vec<Value>, InputError> {
    let mut rows = Vec::new();
    for (place, order) in orders.iter().enumerate() {
        let right = tests.iter().zip(holds).filter(|(_, holds)| holds.get(place) == Some(&true));
        let right: Vec<&Test> = right.map(|(test, _)| test).collect();
        for (rule, _) in order.entry.rules {
            match mutant(order, rule, &right, (seed, control))? {
                Some(row) => rows.push(row),
                None => return Ok(rows),
            }
            control.advance(1);
        }
    }
    Ok(rows)
}

/// Finds what shows that a rule is switched off: the first test, or else the first random program,
/// in which nothing is wrong with the rule and something is without it. An error that the hardware
/// raises shows that it raises, and not that what the rule is for goes wrong. Returns nothing if it
/// is cancelled.
fn mutant(
    order: &Hardware,
    rule: &'static str,
    tests: &[&Test],
    (seed, control): (u64, &Control),
) -> Result<Option<Value>, InputError> {
    let mut row = json!({ "order": order.name(), "rule": rule, "caught": false });
    for name in ["test", "random", "violation", "raises", "needless"] {
        row[name] = Value::Null;
    }
    let mut needless = order.entry.needless_under(&order.settings);
    if let Some((_, why)) = needless.find(|(other, _)| *other == rule) {
        row["needless"] = why.into();
        return Ok(Some(row));
    }
    let lacking = order.lacking(rule);
    for test in tests {
        let shows = |found: &Found| found.violation.is_some() || found.raised.is_some();
        let found = run_until(&lacking, test, seed, &control.cancelled, shows)?;
        let Some(found) = found else { return Ok(None) };
        if let Some(wrong) = &found.raised {
            row["raises"] = wrong.text(test).into();
        }
        if let Some(wrong) = &found.violation {
            (row["caught"], row["raises"]) = (true.into(), Value::Null);
            (row["test"], row["violation"]) = (test.name.clone().into(), wrong.text(test).into());
            return Ok(Some(row));
        }
    }
    match Programs::of(order).catch(rule, &control.cancelled)? {
        Caught::Cancelled => return Ok(None),
        Caught::By(program, text) => {
            (row["caught"], row["raises"]) = (true.into(), Value::Null);
            (row["random"], row["violation"]) = (program.into(), text.into());
        }
        Caught::Raised(text) => row["raises"] = text.into(),
        Caught::Not => (),
    }
    Ok(Some(row))
}

fn row(order: &Hardware, test: &Test, place: usize, found: &Found) -> Value {
    json!({
        "order": order.name(),
        "model": order.entry.model.map(model::design::Model::name),
        "test": test.name,
        "title": test.title,
        "image": test.images[place].text,
        "allowed": found.asked[place].allowed,
        "seen": found.asked[place].seen.is_some(),
        "images": found.images,
        "sampled": found.sampled,
        "runs": found.runs,
        "counted": found.counted,
        "refusal": found.refused,
        "violation": found.wrong().map(|wrong| wrong.text(test)),
        "timeline": null,
        "file": null,
    })
}
