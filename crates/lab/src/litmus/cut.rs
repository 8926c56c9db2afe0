//! A run on ordering hardware alone, with the power cut at every point: what tests and random
//! programs have in common.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use designs::{Entry, Order};
use model::config::Config;
use model::crash::{Campaign, Check, Points};
use model::engine::{Control, Crashes, Failure};
use model::units::Word;
use model::workload::{Stop, Workload};

use crate::error::InputError;
use crate::{machines, scripts, spec};

/// The machine `tiny` with these settings, and what must survive for the hardware's promise.
///
/// # Errors
/// What is wrong with the settings.
pub fn machine(order: &Entry, pairs: &[(String, String)]) -> Result<Config, InputError> {
    let mut config = machines::load("tiny", pairs)?.config;
    if let Some((_, domain)) = spec::missing_domain(order.card.needs, config.domain()) {
        config.controller.domain = domain;
    }
    Ok(config)
}

/// A run, in which each core does its program once.
pub struct Cut<'a> {
    /// The hardware.
    pub order: &'a Entry,
    /// A rule of its that is switched off.
    pub without: Option<&'a str>,
    /// Its parameters that are not at their defaults.
    pub settings: &'a [(String, u64)],
    /// The machine.
    pub config: &'a Config,
    /// How many cores there are.
    pub cores: u8,
    /// Their programs.
    pub workload: Box<dyn Workload>,
    /// Images of a crash point.
    pub reorders: u64,
    /// Violations after which nothing more is looked at.
    pub violations_max: usize,
    /// Where what is chosen of an image's orders comes from.
    pub seed: u64,
    /// The image that is asked about.
    pub image: Vec<(Word, u64)>,
}

impl Cut<'_> {
    /// What the run leaves, or what is wrong with it whatever it leaves: cores wait for each other
    /// for ever, or a script raises. Nothing if it is cancelled.
    ///
    /// # Errors
    /// When the host has no room for the machine, or the hardware does not fit it.
    ///
    /// # Panics
    /// When its programs cannot run, which is a defect.
    pub fn left(
        self,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Option<Result<Crashes, String>>, InputError> {
        let control = Control { cancelled: Arc::clone(cancelled), ..Control::default() };
        let outcome = match scripts::or_raised(|| self.run(&control))? {
            Ok(outcome) => outcome,
            Err(raised) => return Ok(Some(Err(raised))),
        };
        match outcome {
            Ok(crashes) => Ok(Some(Ok(crashes))),
            Err(Failure::Deadlock(stuck)) => {
                Ok(Some(Err(format!("liveness: {stuck}, and nothing is due"))))
            }
            Err(Failure::Stopped(Stop::Cancelled)) => Ok(None),
            Err(Failure::Stopped(Stop::Input(text))) => Err(InputError(text)),
            Err(Failure::Host(error)) => Err(InputError(format!(
                "the host has no room for the machine's memories ({error})"
            ))),
            Err(Failure::Stopped(stop)) => panic!("a program of a litmus test: {stop:?}"),
        }
    }

    fn run(self, control: &Control) -> Result<Crashes, Failure> {
        let campaign = Campaign {
            points: Points::All,
            nested: false,
            reorders: self.reorders,
            violations_max: self.violations_max,
            seed: self.seed,
            keep: 0,
            check: Check::Stores(self.image),
        };
        let outcome = (self.order.run)(Order {
            config: self.config,
            cores: self.cores,
            settings: self.settings,
            without: self.without,
            workload: self.workload,
            warmup: 0,
            transactions: 1,
            exact: false,
            epochs: false,
            timeline: None,
            campaign: Some(campaign),
            boot: None,
            started: Rc::new(|| ()),
            control,
        })?;
        Ok(outcome.crashes.expect("a campaign was asked for"))
    }
}
