//! Cutting the power: what survives, what recovery makes of it, and whether that is right.

use std::rc::Rc;

use crate::config::Domain;
use crate::design::{Below, Design, Gasp, KeptBy, Setup};
use crate::device::Write;
use crate::image::{Image, PowerLoss};
use crate::oracle::{Oracle, Violation};
use crate::units::{Cycle, LINE_WORDS, Line, LineSet, Word};
use crate::workload::Workload;

/// At which of a run's crash points the power is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Points {
    /// At none: they are counted.
    Count,
    /// At every one.
    All,
    /// At these, in ascending order, counted from 1.
    These(Vec<u64>),
}

/// What a crash campaign does at the crash points of a run. A crash point is just before
/// persistent state changes (before a write becomes durable, before an event of the design, and,
/// where caches survive, before a store), and just after a transaction is acknowledged, when the
/// oracle has become stricter.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Where the power is cut.
    pub points: Points,
    /// Whether recovery is crashed at each of its own writes, too.
    pub nested: bool,
    /// At each point, so many more images are made, in each of which some of the writes that were
    /// under way have arrived early: an order that timing did not produce and the hardware allows.
    pub reorders: u64,
    /// The run ends after so many violations.
    pub violations_max: usize,
    /// For what a torn write leaves.
    pub seed: u64,
}

/// A campaign under way.
pub struct Probe {
    /// What the image may hold.
    pub oracle: Oracle,
    campaign: Campaign,
    workload: Rc<dyn Workload>,
    next: usize,
    /// Crash points so far, whether the power was cut there or not.
    pub passed: u64,
    /// Power failures.
    pub points: u64,
    /// Power failures during recovery.
    pub nested_points: u64,
    /// What was found.
    pub violations: Vec<Violation>,
}

/// Every so many power failures the workload inspects its own data, too.
const INSPECT_EVERY: u64 = 97;

impl Probe {
    /// A campaign that begins.
    pub fn new(campaign: Campaign, oracle: Oracle, workload: Rc<dyn Workload>) -> Probe {
        Probe {
            oracle,
            campaign,
            workload,
            next: 0,
            passed: 0,
            points: 0,
            nested_points: 0,
            violations: Vec::new(),
        }
    }

    /// Whether enough was found for the run to end.
    pub fn is_done(&self) -> bool {
        self.violations.len() >= self.campaign.violations_max
    }

    /// A crash point: cuts the power if the campaign says so, and checks what is left.
    pub fn pass<D: Design>(
        &mut self,
        at: Cycle,
        design: &D,
        below: &Below<D::Event>,
        combining: &[Line],
        setup: &Setup<'_, D>,
    ) {
        self.passed += 1;
        match &self.campaign.points {
            Points::Count => return,
            Points::All => (),
            Points::These(points) => {
                if points.get(self.next) != Some(&self.passed) {
                    return;
                }
                self.next += 1;
            }
        }
        if self.is_done() {
            return;
        }
        self.points += 1;
        let energy = declared::<D>(setup);
        for order in 0..=self.campaign.reorders {
            let seed = mix(self.campaign.seed ^ self.passed ^ order << 48);
            let early = (order > 0).then_some(seed);
            if early.is_some() && below.memory.under_way(energy == 0).is_empty() {
                return;
            }
            match fail(at, design, below, combining, (energy, seed, early)) {
                Ok(image) => self.recover::<D>(at, image, setup),
                Err(text) => self.report(at, None, text, None),
            }
            if self.is_done() {
                return;
            }
        }
    }

    /// The power is back; and, if the campaign says so, it fails again at each write of recovery.
    fn recover<D: Design>(&mut self, at: Cycle, image: Image<'_>, setup: &Setup<'_, D>) {
        let mut recovered = image.failing_after(u64::MAX - 1);
        D::recover(&mut recovered, setup).expect("the power does not fail");
        self.check(at, None, &recovered);
        if !self.campaign.nested || self.is_done() {
            return;
        }
        for writes in 0..recovered.writes() {
            self.nested_points += 1;
            let mut twice = image.failing_after(writes);
            let interrupted = D::recover(&mut twice, setup);
            assert_eq!(interrupted, Err(PowerLoss), "recovery is deterministic");
            let mut twice = twice.powered();
            D::recover(&mut twice, setup).expect("the power does not fail");
            self.check(at, Some(writes), &twice);
        }
    }

    fn check(&mut self, at: Cycle, nested: Option<u64>, image: &Image<'_>) {
        if let Err((word, text)) = self.oracle.check(image) {
            return self.report(at, nested, text, Some(word));
        }
        if nested.is_none()
            && self.points % INSPECT_EVERY == 1
            && let Err(text) = self.workload.check(image)
        {
            self.report(at, nested, format!("workload: {text}"), None);
        }
    }

    fn report(&mut self, at: Cycle, nested: Option<u64>, text: String, word: Option<Word>) {
        if self.is_done() {
            return;
        }
        let history = word.map(|word| self.oracle.history(word)).unwrap_or_default();
        self.violations.push(Violation { point: self.passed, at, nested, text, history });
    }
}

/// Bytes of the structures that survive, as a design declares them.
fn declared<D: Design>(setup: &Setup<'_, D>) -> u64 {
    let structures = D::hardware(setup);
    let kept = structures.iter().filter(|structure| structure.kept_by != KeptBy::Nothing);
    kept.map(|structure| (structure.bits * structure.count).div_ceil(8)).sum()
}

/// Cuts the power and returns what is left, before recovery: with so much energy for the design's
/// structures, and with some writes arrived early if there is a seed for them.
///
/// # Errors
/// A sentence, when the design needs more energy than it declared.
fn fail<'i, D: Design>(
    at: Cycle,
    design: &D,
    below: &'i Below<D::Event>,
    combining: &[Line],
    (declared, seed, early): (u64, u64, Option<u64>),
) -> Result<Image<'i>, String> {
    let mut image = Image::over(below.memory.durable());
    if let Some(early) = early {
        // Where nothing of a design survives, neither does what it does when it is told.
        arrive_early(below.memory.under_way(declared == 0), &mut image, early);
    }
    match below.shape.config.domain() {
        Domain::Adr => (),
        Domain::Media => tear(at, below, &mut image, seed),
        Domain::Eadr | Domain::Gpf => save_caches(design, below, combining, &mut image),
    }
    let mut gasp = Gasp::new(&mut image, at, declared);
    match design.power_loss(&mut gasp) {
        Ok(()) => Ok(image),
        Err(PowerLoss) => Err(format!(
            "energy: the design needs more than the {declared} bytes of structures that survive, \
             as it declares them"
        )),
    }
}

/// Some of the writes that are under way have arrived; of one line, the first ones.
fn arrive_early(under_way: Vec<&Write>, image: &mut Image<'_>, seed: u64) {
    let mut stopped: Vec<Line> = Vec::new();
    for (index, write) in under_way.into_iter().enumerate() {
        if stopped.contains(&write.line) {
            continue;
        }
        if mix(seed ^ index as u64) & 1 == 0 {
            stopped.push(write.line);
            continue;
        }
        image.set_line(write.line, &write.data, write.mask).expect("the power is on");
    }
}

/// A write that the cells were in the middle of is there in some of its words.
fn tear<E: Copy>(at: Cycle, below: &Below<E>, image: &mut Image<'_>, seed: u64) {
    for write in below.memory.being_programmed(at) {
        let words = mix(seed ^ write.line.0);
        let torn = (0..LINE_WORDS).filter(|word| words >> word & 1 == 1);
        let mask = torn.fold(0, |mask, word| mask | 0xff << (8 * word));
        image.set_line(write.line, &write.data, write.mask & mask).expect("the power is on");
    }
}

/// The energy left saves what the queues before memory, and then the caches, hold: the lines with
/// the lowest addresses, as far as it goes.
fn save_caches<D: Design>(
    design: &D,
    below: &Below<D::Event>,
    combining: &[Line],
    image: &mut Image<'_>,
) {
    let under_way = below.memory.under_way(true);
    let mut newest: LineSet =
        below.caches.dirty_lines().into_iter().chain(combining.iter().copied()).collect();
    newest.retain(|&line| line.is_persistent() && design.saves(line));
    let mut lines: Vec<Line> =
        under_way.iter().map(|write| write.line).chain(newest.iter().copied()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.truncate((below.shape.config.controller.flush_bytes / 64) as usize);
    for write in under_way {
        if lines.binary_search(&write.line).is_ok() {
            image.set_line(write.line, &write.data, write.mask).expect("the power is on");
        }
    }
    for line in lines {
        if newest.contains(&line) {
            image.set_line(line, &below.line(line), u64::MAX).expect("the power is on");
        }
    }
}

/// A number that depends on every bit of another (SplitMix64's finalizer).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
