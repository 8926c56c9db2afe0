//! Random programs of several cores that store, load, flush and fence on a few shared lines, with
//! the power cut at every point and every order of draining tried that the hardware's own rules
//! allow. What is left is checked against the persistency model that the hardware declares.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use designs::Entry;
use model::config::Config;
use model::oracle::Violation;
use model::units::{CoreId, LINE_BYTES, mix};
use model::workload::{Pm, Program, Ptr, Step, Workload};
use serde_json::{Value, json};

use super::THREADS_MAX;
use super::cut::{Cut, DOMAIN, Hardware, Left};
use super::timeline;
use crate::corners::{self, APART, SMALL};
use crate::error::InputError;
use crate::trace::Called;

/// The number of programs in which a wrong rule is looked for (ours: each of HOPS and BBB shows in
/// fewer).
pub const PROGRAMS: u64 = 1600;

/// The number of images of a crash point that are made one after the other, and of as many again
/// that chance gives (ours: there are many points).
const REORDERS: u64 = 12;

/// Settings by name, as an [`Entry`] takes them.
type Settings = Vec<(String, u64)>;

/// The random programs of ordering hardware, by number from 1 on: the number says how the hardware
/// is set up, on which machine it is, and what the program does.
pub struct Programs<'a> {
    hardware: &'a Hardware,
    ways: Vec<Settings>,
}

/// What a program came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// Images were looked at.
    Checked {
        /// Crash points.
        points: u64,
        /// Images that were checked.
        images: u64,
        /// What is wrong with the first that broke the hardware's promise.
        violation: Option<Violation>,
    },
    /// A script raised an error.
    Raised(Violation),
    /// The program does not fit the hardware, or its machine what was asked for.
    Refused(String),
    /// The user cancelled it.
    Cancelled,
}

impl Programs<'_> {
    /// The programs of ordering hardware.
    pub fn of(hardware: &Hardware) -> Programs<'_> {
        Programs { hardware, ways: ways(hardware.entry) }
    }

    /// In how many ways the hardware is set up; programs take them in turn.
    pub fn ways(&self) -> u64 {
        self.ways.len() as u64
    }

    /// Runs a program.
    ///
    /// # Errors
    /// When the host has no room for the machine.
    pub fn run(&self, number: u64, cancelled: &Arc<AtomicBool>) -> Result<Ran, InputError> {
        self.run_on(self.hardware, number, cancelled)
    }

    fn run_on(
        &self,
        hardware: &Hardware,
        number: u64,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Ran, InputError> {
        let (settings, pairs, cores, program) = self.setup(number);
        // What was asked for fits `tiny`, but it may not fit this program's own settings.
        let config = match hardware.machine(&pairs) {
            Ok((config, _)) => config,
            Err(InputError { text, .. }) => return Ok(Ran::Refused(text)),
        };
        Ok(match cut(hardware, &settings, &config, cores, program).left(cancelled)? {
            Left::Cancelled => Ran::Cancelled,
            Left::Refused(text) => Ran::Refused(text),
            Left::Raised(violation) => Ran::Raised(violation),
            Left::Stuck(violation) => {
                Ran::Checked { points: 0, images: 0, violation: Some(violation) }
            }
            Left::Images(crashes) => Ran::Checked {
                points: crashes.points,
                images: crashes.images,
                violation: crashes.violations.into_iter().next(),
            },
        })
    }

    /// The timeline of a program in which something was wrong, as JSON: `null` if there is none.
    ///
    /// # Errors
    /// What is wrong with the machine.
    pub fn timeline(
        &self,
        number: u64,
        of: &Violation,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Value, InputError> {
        let (settings, pairs, cores, program) = self.setup(number);
        let (config, pairs) = self.hardware.machine(&pairs)?;
        let run = cut(self.hardware, &settings, &config, cores, program);
        let of = of.moment();
        let recorded = run.recorded(&of, cancelled);
        Ok(timeline::told(recorded, &of, (self.hardware, &pairs), &Called::default()))
    }

    /// Describes a program: how the hardware is set up, what the machine has that is not `tiny`'s
    /// own, and the steps of each core.
    pub fn describe(&self, number: u64) -> Value {
        let (settings, pairs, cores, program) = self.setup(number);
        let pairs = self.hardware.machine(&pairs).map_or(pairs, |(_, pairs)| pairs);
        let steps = |core| Random { core: CoreId(core), ..program }.steps();
        let said = |(name, value): &(String, u64)| {
            let field = self.hardware.entry.fields.iter().find(|field| field.name == name);
            let choice = field.and_then(|field| field.choices.get(*value as usize));
            choice.map_or_else(|| format!("{name}={value}"), |choice| format!("{name}={choice}"))
        };
        json!({
            "settings": settings.iter().map(said).collect::<Vec<_>>(),
            "machine": pairs.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>(),
            "cores": (0..cores)
                .map(|core| steps(core).map(|step| step.to_string()).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
        })
    }

    fn setup(&self, number: u64) -> (Settings, Vec<(String, String)>, u8, Random) {
        let (way, seed) = ((number - 1) % self.ways(), (number - 1) / self.ways() + 1);
        let parts = MACHINES[seed as usize % MACHINES.len()].iter().copied().flatten();
        let pairs = parts.map(|(path, value)| ((*path).into(), (*value).into())).collect();
        let turn = seed / MACHINES.len() as u64;
        let program = Random { seed, core: CoreId(0), steps: 14 + seed % 20, lines: 2 + turn % 7 };
        let settings = self.hardware.with(&self.ways[way as usize]);
        (settings, pairs, 2 + (turn % u64::from(THREADS_MAX - 1)) as u8, program)
    }

    /// Looks for a program in which something is wrong without a rule and nothing is with it.
    /// Returns the program and what is wrong.
    ///
    /// # Errors
    /// As [`run`](Programs::run).
    pub fn catch(
        &self,
        rule: &'static str,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Caught, InputError> {
        let lacking = self.hardware.lacking(rule);
        let mut raised = Vec::new();
        for number in 1..=PROGRAMS {
            let violation = match self.run_on(&lacking, number, cancelled)? {
                Ran::Cancelled => return Ok(Caught::Cancelled),
                Ran::Raised(violation) => {
                    raised.push(violation.text);
                    if raised.len() == RAISED_MAX {
                        break;
                    }
                    continue;
                }
                Ran::Checked { violation: Some(violation), .. } => violation,
                Ran::Checked { .. } | Ran::Refused(_) => continue,
            };
            match self.run(number, cancelled)? {
                Ran::Cancelled => return Ok(Caught::Cancelled),
                Ran::Checked { violation: None, .. } => {
                    return Ok(Caught::By(number, violation.text));
                }
                _ => (),
            }
        }
        Ok(raised.into_iter().next().map_or(Caught::Not, Caught::Raised))
    }
}

/// A run of a program.
fn cut<'a>(
    hardware: &'a Hardware,
    settings: &'a [(String, u64)],
    config: &'a Config,
    cores: u8,
    program: Random,
) -> Cut<'a> {
    Cut {
        hardware,
        settings,
        config,
        cores,
        workload: Box::new(program),
        reorders: REORDERS,
        violations_max: 1,
        seed: program.seed,
        images: Vec::new(),
    }
}

/// The number of programs in which a script may raise before the search ends (ours: a script that
/// raises in so many raises in nearly all).
const RAISED_MAX: usize = 100;

/// Whether a rule's absence shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caught {
    /// In the program of this number, which leaves what the sentence says.
    By(u64, String),
    /// In none, but a script raised this in some.
    Raised(String),
    /// In none.
    Not,
    /// The user cancelled the search.
    Cancelled,
}

/// A program for each core, drawn from the seed.
#[derive(Clone, Copy, Debug)]
struct Random {
    seed: u64,
    core: CoreId,
    steps: u64,
    lines: u64,
}

impl Workload for Random {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(Random { core, ..*self }))
    }
}

/// A step of a program.
#[derive(Clone, Copy, Debug)]
enum Does {
    Store(u64, u64),
    StorePast(u64, u64),
    Load(u64),
    Flush(u64),
    Order,
    Durable,
    Work(u64),
}

impl fmt::Display for Does {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Does::Store(at, value) => write!(out, "store {at:#x} {value:#x}"),
            Does::StorePast(at, value) => write!(out, "movnti {at:#x} {value:#x}"),
            Does::Load(at) => write!(out, "load {at:#x}"),
            Does::Flush(at) => write!(out, "flush {at:#x}"),
            Does::Order => write!(out, "order"),
            Does::Durable => write!(out, "durable"),
            Does::Work(instructions) => write!(out, "work {instructions}"),
        }
    }
}

impl Random {
    fn steps(self) -> impl Iterator<Item = Does> {
        let core = u64::from(self.core.0);
        let step = move |step| {
            let dice = mix(self.seed ^ core << 32 ^ step << 40);
            // Two words of each line.
            let (line, word) = (dice % self.lines, dice >> 8 & 1);
            let at = LINE_BYTES * (1 + line) + 8 * word;
            // No value is stored twice, so a value says who stored it.
            let value = core << 32 | (step + 1);
            match dice >> 16 & 15 {
                0..=4 => Does::Store(at, value),
                5 => Does::StorePast(at, value),
                6..=8 => Does::Load(at),
                9 | 10 => Does::Flush(at),
                11..=13 => Does::Order,
                14 => Does::Durable,
                _ => Does::Work(dice >> 24 & 63),
            }
        };
        (0..self.steps).map(step).chain([Does::Durable])
    }
}

impl Program for Random {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        for step in self.steps() {
            match step {
                Does::Store(at, value) => pm.store(Ptr::to(at), value),
                Does::StorePast(at, value) => pm.store_past_caches(Ptr::to(at), value),
                Does::Load(at) => _ = pm.load(Ptr::to(at)),
                Does::Flush(at) => pm.flush(Ptr::to(at)),
                Does::Order => pm.order(),
                Does::Durable => pm.durable(),
                Does::Work(instructions) => pm.work(instructions),
            }
        }
        Ok(())
    }
}

/// Machines, by what is not `tiny`'s: nothing; small caches; controllers that overtake each other;
/// both; small caches that survive (`eadr`), and both with them (`gpf`), with what the hardware
/// saves of its own (`power_loss`); and memory whose cells alone survive (`media`), if that is
/// enough for the hardware, with small caches and with both.
const MACHINES: &[&[corners::Settings]] = &[
    &[],
    &[SMALL],
    &[APART],
    &[APART, SMALL],
    &[&[(DOMAIN, "eadr")], SMALL],
    &[&[(DOMAIN, "gpf")], APART, SMALL],
    &[&[(DOMAIN, "media")], SMALL],
    &[&[(DOMAIN, "media")], APART_BUT_BUFFERED, SMALL],
];

/// [`APART`] with the on-DIMM buffer of `tiny`, which has two lines: what waits there is lost in
/// `media`.
const APART_BUT_BUFFERED: corners::Settings = &[
    ("controller.count", "2"),
    ("controller.intlv_size", "64B"),
    ("controller.write_buffer_size", "1"),
    ("pm.tWRITE", "400cycles"),
];

/// The settings of a way that ordering hardware has and takes.
fn settings_of(order: &Entry, way: &[(&str, u64)]) -> Settings {
    let known = way.iter().filter(|(name, value)| {
        order.fields.iter().any(|field| field.name == *name && field.limits.contains(value))
    });
    known.map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// The ways in which ordering hardware is set up: those of [`SETTINGS`] that mean something to it,
/// and each small size and each choice that it declares and none of those has. A script, whose
/// names mean what the script says, has only what it declares.
fn ways(order: &Entry) -> Vec<Settings> {
    let mut ways: Vec<Settings> = Vec::new();
    let ours = if order.script.is_some() { &SETTINGS[..1] } else { SETTINGS };
    for way in ours {
        let way = settings_of(order, way);
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    for field in order.fields {
        let choices = (0..field.choices.len() as u64).filter(|choice| *choice != field.default);
        for value in field.tight.iter().copied().chain(choices) {
            let own = (field.name.to_owned(), value);
            if !ways.iter().any(|way| way.contains(&own)) {
                ways.push(vec![own]);
            }
        }
    }
    ways
}

/// Ways to set hardware up, by names that HOPS has: as it is; with an entry or two; sending at
/// once; draining late; filling from its buffers; with bytes instead of lines; with a global vector
/// that is read late; and with dependences on lines that are durable.
const SETTINGS: &[&[(&str, u64)]] = &[
    &[],
    &[("entries", 1)],
    &[("entries", 2)],
    &[("threshold", 1)],
    &[("drain", 1), ("interval", 300)],
    &[("fill", 1), ("poll", 0)],
    &[("carries", 1), ("entries", 4)],
    &[("poll", 2000), ("drain", 1), ("threshold", 4)],
    &[("depends", 1)],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;

    /// A machine with a misspelt field or value would be left out.
    #[test]
    fn machines_are_of_fields_that_exist() {
        for parts in MACHINES {
            let of_part = |(path, value): &(&str, &str)| ((*path).into(), (*value).into());
            let pairs: Vec<_> = parts.iter().copied().flatten().map(of_part).collect();
            machines::load("tiny", &pairs).expect("a machine");
        }
    }
}
