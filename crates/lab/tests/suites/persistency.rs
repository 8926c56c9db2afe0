//! Ordering hardware alone, without a log: random programs of several cores that store, load, flush
//! and fence on a few shared lines, with the power cut at every point and every order of draining
//! tried that the hardware's own rules allow. What is left is checked against the persistency model
//! that the hardware declares, before any recovery; and each of its rules, switched off, is caught
//! by that.

use crate::common::{orders, resolve};
use designs::{Entry, Order};
use lab::Control;
use lab::spec::missing_domain;
use model::crash::{Campaign, Check, Points};
use model::engine::{Crashes, Failure};
use model::units::{CoreId, LINE_BYTES, mix};
use model::workload::{Pm, Program, Ptr, Step, Workload};

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

impl Program for Random {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let core = u64::from(self.core.0);
        for step in 0..self.steps {
            let dice = mix(self.seed ^ core << 32 ^ step << 40);
            // Two words of each line.
            let (line, word) = (dice % self.lines, dice >> 8 & 1);
            let at = Ptr::to(LINE_BYTES * (1 + line) + 8 * word);
            match dice >> 16 & 15 {
                // No value is stored twice, so a value says who stored it.
                0..=4 => pm.store(at, core << 32 | (step + 1)),
                5 => pm.store_past_caches(at, core << 32 | (step + 1)),
                6..=8 => _ = pm.load(at),
                9 | 10 => pm.flush(at),
                11..=13 => pm.order(),
                14 => pm.durable(),
                _ => pm.work(dice >> 24 & 63),
            }
        }
        pm.durable();
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

/// Runs the programs of a seed on ordering hardware; the seed also chooses the machine.
fn cut(
    order: &Entry,
    settings: &[(String, u64)],
    without: Option<&str>,
    seed: u64,
) -> Result<Crashes, Failure> {
    let machine = MACHINES[seed as usize % MACHINES.len()];
    let mut config = resolve(&format!("native scribble {machine}")).machine.config;
    if let Some((_, domain)) = missing_domain(order.card.needs, config.domain()) {
        config.controller.domain = domain;
    }
    let turn = seed / MACHINES.len() as u64;
    let cores = 2 + (turn % 3) as u8;
    let program = Random { seed, core: CoreId(0), steps: 14 + seed % 20, lines: 2 + turn % 7 };
    let campaign = Campaign {
        points: Points::All,
        nested: false,
        reorders: 12,
        violations_max: 1,
        seed,
        keep: 0,
        check: Check::Stores(Vec::new()),
    };
    let control = Control::default();
    let run = crate::common::order(&config, cores, Box::new(program), Some(campaign), &control);
    let outcome = (order.run)(Order { settings, without, ..run });
    outcome.map(|outcome| outcome.crashes.expect("a campaign"))
}

type Settings = Vec<(String, u64)>;

/// Settings of a line that ordering hardware knows.
fn settings_of(order: &Entry, line: &str) -> Settings {
    let pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
    let known = pairs.filter(|(name, _)| order.fields.iter().any(|field| field.name == *name));
    known.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
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

#[test]
fn every_order_keeps_its_promise() {
    let mut found = String::new();
    for order in orders() {
        for way in ways(order) {
            for seed in 1..=48 {
                let crashes = cut(order, &way, None, seed).expect("the run ends");
                assert!(crashes.images >= crashes.points && crashes.points > 0);
                if let Some(violation) = crashes.violations.first() {
                    let name = order.card.name;
                    found += &format!("{name} {way:?} seed {seed}: {violation:#?}\n");
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Seeds in which a wrong rule is looked for.
const SEEDS: u64 = 1600;

/// Whether a rule's absence shows in a run that is right with it.
fn is_caught(order: &Entry, rule: &str) -> bool {
    let ways = ways(order);
    ways.iter().any(|way| {
        (1..=SEEDS / ways.len() as u64).any(|seed| {
            let wrong = match cut(order, way, Some(rule), seed) {
                Ok(crashes) => !crashes.violations.is_empty(),
                Err(Failure::Deadlock(_)) => true,
                Err(failure) => panic!("{failure:?}"),
            };
            wrong && cut(order, way, None, seed).expect("it ends").violations.is_empty()
        })
    })
}

#[test]
fn every_wrong_rule_is_caught() {
    let mut left = String::new();
    for order in orders() {
        for (rule, _) in order.rules.iter().filter(|(rule, _)| !is_caught(order, rule)) {
            left += &format!("{} without {rule} is not caught\n", order.card.name);
        }
    }
    assert!(left.is_empty(), "{left}");
}
