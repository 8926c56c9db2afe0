//! Random programs of several cores that store, load, flush and fence on a few shared lines, with
//! the power cut at every point and every order of draining tried that the hardware's own rules
//! allow. What is left is checked against the persistency model that the hardware declares.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use designs::Entry;
use model::units::{CoreId, LINE_BYTES, mix};
use model::workload::{Pm, Program, Ptr, Step, Workload};
use serde_json::{Value, json};

use super::cut::{self, Cut};
use crate::error::InputError;

/// So many programs a wrong rule is looked for in (ours: each of HOPS and BBB shows in fewer).
pub const PROGRAMS: u64 = 1600;

/// Images of a crash point (ours: chosen by chance, and there are many points).
const REORDERS: u64 = 12;

/// Settings by name, as an [`Entry`] takes them.
type Settings = Vec<(String, u64)>;

/// The random programs of ordering hardware, by number from 1 on: the number says how the hardware
/// is set up, on which machine it is, and what the program does.
pub struct Programs<'a> {
    order: &'a Entry,
    ways: Vec<Settings>,
}

/// What a program left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Crash points.
    pub points: u64,
    /// Images that were checked.
    pub images: u64,
    /// The first that broke the hardware's promise.
    pub violation: Option<String>,
}

impl Programs<'_> {
    /// Those of ordering hardware.
    pub fn of(order: &Entry) -> Programs<'_> {
        Programs { order, ways: ways(order) }
    }

    /// In how many ways the hardware is set up; programs take them in turn.
    pub fn ways(&self) -> u64 {
        self.ways.len() as u64
    }

    /// Runs a program, with one of the hardware's rules switched off if one is named; nothing if it
    /// is cancelled.
    ///
    /// # Errors
    /// When the host has no room for the machine, or the hardware does not fit.
    pub fn run(
        &self,
        without: Option<&str>,
        number: u64,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Ran>, InputError> {
        let (settings, pairs, cores, program) = self.setup(number);
        let cut = Cut {
            order: self.order,
            without,
            settings,
            config: &cut::machine(self.order, &pairs)?,
            cores,
            workload: Box::new(program),
            reorders: REORDERS,
            violations_max: 1,
            seed: program.seed,
            image: Vec::new(),
        };
        Ok(cut.left(cancelled)?.map(|left| match left {
            Err(text) => Ran { violation: Some(text), ..Ran::default() },
            Ok(crashes) => Ran {
                points: crashes.points,
                images: crashes.images,
                violation: crashes.violations.into_iter().next().map(|violation| violation.text),
            },
        }))
    }

    /// What a program is: how the hardware is set up, what the machine `tiny` has that is not its
    /// own, and the steps of each core.
    pub fn describe(&self, number: u64) -> Value {
        let (settings, pairs, cores, program) = self.setup(number);
        let steps = |core| Random { core: CoreId(core), ..program }.steps();
        json!({
            "settings": settings.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>(),
            "machine": pairs.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>(),
            "cores": (0..cores)
                .map(|core| steps(core).map(|step| step.to_string()).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
        })
    }

    fn setup(&self, number: u64) -> (&Settings, Vec<(String, String)>, u8, Random) {
        let (way, seed) = ((number - 1) % self.ways(), (number - 1) / self.ways() + 1);
        let pairs = MACHINES[seed as usize % MACHINES.len()].split_whitespace();
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(path, value)| (path.into(), value.into())).collect();
        let turn = seed / MACHINES.len() as u64;
        let program = Random { seed, core: CoreId(0), steps: 14 + seed % 20, lines: 2 + turn % 7 };
        (&self.ways[way as usize], pairs, 2 + (turn % 3) as u8, program)
    }

    /// Whether a rule's absence shows in a program that leaves nothing wrong with it: which, and
    /// what is wrong. Nothing if it is cancelled.
    ///
    /// # Errors
    /// As of [`run`](Programs::run).
    pub fn catch(
        &self,
        rule: &str,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Caught>, InputError> {
        for number in 1..=PROGRAMS {
            let Some(wrong) = self.run(Some(rule), number, cancelled)? else { return Ok(None) };
            let Some(violation) = wrong.violation else { continue };
            let Some(right) = self.run(None, number, cancelled)? else { return Ok(None) };
            if right.violation.is_none() {
                return Ok(Some(Caught::By(number, violation)));
            }
        }
        Ok(Some(Caught::Not))
    }
}

/// Whether a rule's absence shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caught {
    /// In the program of this number, which leaves what the sentence says.
    By(u64, String),
    /// In none.
    Not,
}

/// A program for each core, which follows from the seed.
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

/// Machines: as `tiny` is; with caches so small that lines leave them soon; with controllers that
/// overtake each other; both; and small caches that survive, with what the hardware saves of its
/// own (`power_loss`).
const MACHINES: &[&str] = &["", SMALL_CACHES, APART, BOTH, EADR, GPF];
const SMALL_CACHES: &str = "llc.size=256B l2.size=128B l1d.size=128B";
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    pm.xpbuffer_entries=1 pm.tWRITE=400cycles";
const BOTH: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    pm.xpbuffer_entries=1 pm.tWRITE=400cycles llc.size=256B l2.size=128B l1d.size=128B";
const EADR: &str = "controller.domain=eadr llc.size=256B l2.size=128B l1d.size=128B";
const GPF: &str = "controller.domain=gpf controller.count=2 controller.intlv_size=64B \
    controller.write_buffer_size=1 pm.xpbuffer_entries=1 pm.tWRITE=400cycles llc.size=256B \
    l2.size=128B l1d.size=128B";

/// Settings of a line that ordering hardware knows.
fn settings_of(order: &Entry, line: &str) -> Settings {
    let pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(name, value)| (name, value.parse().expect("a number")));
    let known = pairs.filter(|(name, value)| {
        order.fields.iter().any(|field| field.name == *name && field.limits.contains(value))
    });
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The ways in which ordering hardware is set up: those of [`SETTINGS`] that mean something to it,
/// and each small size and each choice that it declares and none of those has.
fn ways(order: &Entry) -> Vec<Settings> {
    let mut ways: Vec<Settings> = Vec::new();
    for line in SETTINGS {
        let way = settings_of(order, line);
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
const SETTINGS: &[&str] = &[
    "",
    "entries=1",
    "entries=2",
    "threshold=1",
    "drain=1 interval=300",
    "fill=1 poll=0",
    "carries=1 entries=4",
    "poll=2000 drain=1 threshold=4",
    "depends=1",
];
