//! What a crash campaign finds.

use crate::checker::Shown;
use crate::design::{KeptBy, Structure};
use crate::firmware::Firmware;
use crate::image::Remains;
use crate::oracle::{Left, Moment, Promises, Violation};

/// What a crash campaign found.
#[derive(Clone, Debug, Default)]
pub struct Crashes {
    /// Crash points of the run, whether the power was cut there or not.
    pub passed: u64,
    /// Crash points that were tried: power failures, and announcements that came too early where
    /// the power was not cut.
    pub points: u64,
    /// Power failures during recovery.
    pub nested_points: u64,
    /// Whether an image could have been wrong
    /// ([`has_something_to_check`](super::Probe::has_something_to_check)).
    pub checked: bool,
    /// For each core, what was acknowledged, and announced as durable, by the end of the run.
    pub promises: Vec<Promises>,
    /// What the design saved at the power failures.
    pub saved: Saved,
    /// How much recovery read and wrote.
    pub recovery: Recovery,
    /// Writes under way, counted at each power failure, that have arrived early in none of its
    /// images, because what survives of the design would have acted on their arrival.
    pub untried: u64,
    /// What the design counted in the run ([`Report::counters`](crate::report::Report::counters)),
    /// unless the run ended early.
    pub counted: Option<Vec<(&'static str, u64)>>,
    /// What the workload's checker was asked about, if it has one.
    pub checker: Option<Shown>,
    /// What was wrong after power failures.
    pub violations: Vec<Violation>,
    /// For each core, what recovery left of its transactions in the image that timing produced, if
    /// the power was cut at one point only and the image holds what it may.
    pub left: Vec<Left>,
    /// The recovered images that were kept, in the order of their crash points.
    pub kept: Vec<Remains>,
    /// Images that were checked, if the order of stores was.
    pub images: u64,
    /// Power failures that may leave more images than were checked, if the order of stores was
    /// checked or the workload has a checker.
    pub sampled: u64,
    /// For each image that was asked about, whether it was allowed and seen, if the order of stores
    /// was checked.
    pub asked: Vec<Answer>,
}

/// What is known of an image that a campaign was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether the hardware's model allows it after some power failure.
    pub allowed: bool,
    /// The power failure that left it: the first of those after which timing produced it, or else
    /// the first.
    pub seen: Option<Moment>,
}

/// What a design saves when the power fails, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saved {
    /// The most that was saved at one power failure.
    pub most: u64,
    /// The size of the structures that survive, as the design declares them.
    pub declared: u64,
    /// How much of that there is energy for.
    pub energy: u64,
    /// Power failures at which the energy ended before all was saved.
    pub short: u64,
}

/// How many lines recovery reads and writes in the images that timing produced; each recovery
/// counts a line once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// The recoveries.
    pub count: u64,
    /// The lines that all of them read.
    pub read: u64,
    /// The most that one recovery read.
    pub read_most: u64,
    /// The lines that all of them wrote.
    pub written: u64,
    /// The most that one recovery wrote.
    pub written_most: u64,
}

impl Recovery {
    /// Counts one recovery.
    pub(super) fn add(&mut self, read: u64, written: u64) {
        self.count += 1;
        self.read += read;
        self.read_most = self.read_most.max(read);
        self.written += written;
        self.written_most = self.written_most.max(written);
    }
}

impl Saved {
    /// Works out what the design declares to survive, and how much of it there is energy for: all
    /// that cells keep, and the machine's share of the rest.
    pub(super) fn budget(&mut self, firmware: &dyn Firmware) {
        let structures = firmware.hardware();
        let bytes = |is_kept: fn(KeptBy) -> bool| -> u64 {
            let kept = structures.iter().filter(|structure| is_kept(structure.kept_by));
            kept.map(Structure::bytes).sum()
        };
        let powered = bytes(|by| matches!(by, KeptBy::Adr | KeptBy::Battery));
        let cells = bytes(|by| by == KeptBy::Cells);
        self.declared = cells + powered;
        self.energy = cells + powered * firmware.shape().config.controller.battery / 100;
    }
}
