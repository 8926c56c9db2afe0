//! A run on ordering hardware alone, with the power cut at every point: what tests and random
//! programs have in common.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use designs::{Entry, Order};
use model::config::Config;
use model::control::Control;
use model::crash::{Campaign, Check, Crashes, Points};
use model::engine::{Failure, Run};
use model::oracle::{Moment, Violation};
use model::params::Choice;
use model::timeline::{Asked, Recorded, Wanted};
use model::units::Word;
use model::workload::{Stop, Workload};

use crate::error::InputError;
use crate::lives::violation;
use crate::{machines, scripts, spec};

/// Settings of a machine, as `section.key` and value.
type Pairs = [(String, String)];

/// The parameter that says what survives a power failure.
pub const DOMAIN: &str = "controller.domain";

/// The parameter that says for how many bytes of the caches there is energy.
pub const ENERGY: &str = "controller.flush_bytes";

/// Ordering hardware as it was asked for: what is said here holds in every run.
#[derive(Clone)]
pub struct Hardware {
    /// The hardware.
    pub entry: &'static Entry,
    /// Its parameters.
    pub settings: Vec<(String, u64)>,
    /// The machine's settings that were asked for, by their paths ([`machines::own_path`]).
    pub machine: Vec<(String, String)>,
    /// A rule of the hardware that is switched off.
    pub without: Option<&'static str>,
}

impl Hardware {
    /// Hardware with all its rules, and no settings.
    pub fn of(entry: &'static Entry) -> Hardware {
        Hardware { entry, settings: Vec::new(), machine: Vec::new(), without: None }
    }

    /// Returns the same hardware without one of its rules.
    pub fn lacking(&self, rule: &'static str) -> Hardware {
        Hardware { without: Some(rule), ..self.clone() }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry.card.name
    }

    /// Returns the machine `tiny` with these settings, unless others were asked for, and with the
    /// domain that the hardware's promise needs; and those of all these settings that are not
    /// `tiny`'s own.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn machine(&self, pairs: &Pairs) -> Result<(Config, Vec<(String, String)>), InputError> {
        let mut pairs = over(pairs, &self.machine);
        let mut config = machines::load("tiny", &pairs)?.config;
        if let Some(domain) = spec::missing_domain(self.entry.card.needs, &config) {
            config.controller.domain = domain;
            pairs.retain(|(path, _)| path != DOMAIN);
            pairs.push((DOMAIN.to_owned(), domain.name().to_owned()));
        }
        Ok((config, pairs))
    }

    /// Returns these parameters, unless others were asked for.
    pub fn with(&self, settings: &[(String, u64)]) -> Vec<(String, u64)> {
        over(settings, &self.settings)
    }
}

/// Joins settings by name; a setting in `asked` replaces the one in `others`.
fn over<T: Clone>(others: &[(String, T)], asked: &[(String, T)]) -> Vec<(String, T)> {
    let is_asked = |name: &str| asked.iter().any(|(other, _)| other == name);
    let kept = others.iter().filter(|(name, _)| !is_asked(name));
    kept.chain(asked).cloned().collect()
}

/// A run, in which each core does its program once.
pub struct Cut<'a> {
    /// The hardware.
    pub hardware: &'a Hardware,
    /// Its parameters that are not at their defaults.
    pub settings: &'a [(String, u64)],
    /// The machine.
    pub config: &'a Config,
    /// How many cores there are.
    pub cores: u8,
    /// Their programs.
    pub workload: Box<dyn Workload>,
    /// The number of images of a crash point, as [`Campaign::reorders`] has it.
    pub reorders: u64,
    /// The number of violations after which nothing more is looked at.
    pub violations_max: usize,
    /// The seed from which the orders of images are chosen.
    pub seed: u64,
    /// The images that are asked about.
    pub images: Vec<Vec<(Word, u64)>>,
}

/// What a run came to.
pub enum Left {
    /// The images of its power failures.
    Images(Box<Crashes>),
    /// Cores wait for each other for ever, whatever the images hold.
    Stuck(Violation),
    /// A script raised an error.
    Raised(Violation),
    /// The run does not fit the hardware, as that says itself, or the machine has too few cores.
    Refused(String),
    /// The user cancelled it.
    Cancelled,
}

impl Cut<'_> {
    /// Makes the run, and returns what it leaves.
    ///
    /// # Errors
    /// When the host has no room for the machine.
    ///
    /// # Panics
    /// When its programs cannot run, which is a defect.
    pub fn left(self, cancelled: &Arc<AtomicBool>) -> Result<Left, InputError> {
        let limit = self.config.core.cores_max;
        if u64::from(self.cores) > limit {
            return Ok(Left::Refused(format!(
                "each of {} threads needs a core, and core.cores_max is {limit}",
                self.cores
            )));
        }
        let control = Control::ended_by(cancelled);
        let outcome = scripts::or_raised(|| self.run(Points::All, None, &control));
        // A run that was cut short says nothing.
        if cancelled.load(Ordering::Relaxed) {
            return Ok(Left::Cancelled);
        }
        let outcome = match outcome {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(raised)) => return Ok(Left::Raised(violation(raised))),
            Err(InputError { text, .. }) => return Ok(Left::Refused(text)),
        };
        Ok(match outcome {
            Ok(crashes) => match crashes.violations.first() {
                Some(first) if scripts::is_raised(&first.text) => Left::Raised(first.clone()),
                _ => Left::Images(Box::new(crashes)),
            },
            Err(Failure::Deadlock(stuck)) => Left::Stuck(violation(format!("liveness: {stuck}"))),
            Err(Failure::Raised(text)) => Left::Raised(violation(text)),
            Err(Failure::Stopped(Stop::Input(text))) => Left::Refused(text),
            Err(Failure::Host(error)) => return Err(InputError::no_room(&error, "")),
            Err(failure @ (Failure::Stopped(_) | Failure::OutOfTurn(_))) => {
                panic!("a program of a litmus test: {failure:?}")
            }
        })
    }

    /// Makes the run again, and returns what happened in it: up to a power failure that it had, or,
    /// if the crash point is 0, for as long as it goes on. There is nothing if the user cancels it,
    /// if it does something else than the first time, or if more happens in it than a timeline
    /// holds.
    ///
    /// # Panics
    /// As [`left`](Cut::left).
    pub fn recorded(self, of: &Moment, cancelled: &Arc<AtomicBool>) -> Option<Recorded> {
        let control = Control::ended_by(cancelled);
        let kept = RefCell::new(None);
        let (points, part) = match of.point {
            // What ends it may be a question about an image.
            0 => (Points::All, Asked::Last { length: u64::MAX }),
            point => (Points::Count, Asked::Until { point, length: u64::MAX }),
        };
        let timeline = Wanted { part, kept: &kept };
        let outcome = scripts::or_raised(|| self.run(points, Some(timeline), &control));
        // How it ends is known, and after the power failure it does not matter.
        drop(outcome);
        let is_it = |recorded: &Recorded| match of.point {
            0 => recorded.has_reached(part),
            _ => recorded.cut == Some(of.at.0),
        };
        let recorded = kept.take().filter(|recorded| is_it(recorded) && recorded.holds.is_none());
        recorded.filter(|_| !cancelled.load(Ordering::Relaxed))
    }

    fn run(
        self,
        points: Points,
        timeline: Option<Wanted<'_>>,
        control: &Control,
    ) -> Result<Crashes, Failure> {
        let campaign = Campaign {
            points,
            nested: false,
            reorders: self.reorders,
            violations_max: self.violations_max,
            seed: self.seed,
            keep: 0,
            check: Check::Stores(self.images),
        };
        let outcome = (self.hardware.entry.run)(Order {
            settings: self.settings,
            without: self.hardware.without,
            run: Run {
                campaign: Some(campaign),
                timeline,
                ..Run::new(self.config, self.cores, self.workload, control)
            },
        })?;
        Ok(outcome.crashes.expect("a campaign was asked for"))
    }
}
