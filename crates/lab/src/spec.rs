//! What the user asked for, as text, and what it comes to: a design, a workload and a machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use model::checker::Examiner;
use model::design::Shape;
use model::script::Script;
use model::units::LINE_BYTES;
use model::workload::{Reopens, Site, Workload};
use serde::{Deserialize, Deserializer};

use crate::checker::Program;
use crate::error::{InputError, unknown_of};
use crate::machines::{self, Machine};
use crate::names::{find_design, find_workload};
use crate::settings;

mod fit;
mod stopped;
mod which;

use fit::{bring_domain, doubts, false_sharing};
pub use fit::{count_cores, keep_threads, missing_domain};
pub use stopped::{defect, failed, stopped};
pub use which::{HowMany, Mutants};

/// A run or a campaign, as asked for. What is left out takes its default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The design's name.
    pub design: String,
    /// The workload's name.
    pub workload: String,
    /// The machine's name, or the path of a file that describes one.
    #[serde(default = "default_machine")]
    pub machine: String,
    /// Cores, each of which runs a program.
    pub cores: Option<u64>,
    /// Transactions of each core in the measured region.
    pub txs: Option<u64>,
    /// Transactions of each core before it; a tenth of `txs` if not given.
    pub warmup: Option<u64>,
    /// The seed.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Values of parameters by `section.field`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The name and the text of the workload's script.
    #[serde(default, deserialize_with = "named_text")]
    pub script: Option<Script>,
    /// Whether no core may run ahead of the others.
    #[serde(default)]
    pub exact: bool,
    /// Whether ordering points and epochs are counted.
    #[serde(default)]
    pub epochs: bool,
    /// Whether the whole distribution of commit latencies is told.
    #[serde(default)]
    pub latencies: bool,
    /// Where the power is cut.
    #[serde(default)]
    pub points: HowMany,
    /// The only crash point of the first life at which the power is cut, if one is asked for.
    pub event: Option<u64>,
    /// A rule of the design to be switched off.
    pub without: Option<String>,
    /// Which rules of the design are switched off, too, one at a time.
    #[serde(default)]
    pub mutants: Mutants,
    /// How many of the trials in which mutants are looked for are run on the design as it is.
    pub trials: Option<HowMany>,
    /// The seeds of the trials in which rules were caught before; the trial comes first. For
    /// designs of ours they are known.
    #[serde(default)]
    pub caught_with: BTreeMap<String, u64>,
    /// Whether recovery is crashed at each of its own writes, too.
    #[serde(default = "default_nested")]
    pub nested: bool,
    /// How often a machine is switched on: once, or again and again over what recovery left. If not
    /// given, twice where the workload can go on with that and has no script, and otherwise once.
    pub lives: Option<u64>,
    /// The command of a program of the user's that checks each image of a trace.
    pub check: Option<String>,
    /// The folder in which the images that this program does not accept are kept.
    pub images: Option<PathBuf>,
    /// How many of the trace's flushes and fences are left out, one at a time, for the program to
    /// notice.
    pub leave_out: Option<HowMany>,
    /// Set when the user wants an end, of which the program that checks images is told.
    #[serde(skip)]
    pub cancelled: Option<Arc<AtomicBool>>,
}

fn default_machine() -> String {
    "silo".into()
}

fn default_seed() -> u64 {
    1
}

fn default_nested() -> bool {
    true
}

fn named_text<'de, D: Deserializer<'de>>(of: D) -> Result<Option<Script>, D::Error> {
    let said = Option::<(String, String)>::deserialize(of)?;
    Ok(said.map(|(name, text)| Script::new(name, text)))
}

/// The most seeds that trials take, from that of their campaign on (ours: there are 360).
const SEEDS_OF_TRIALS: u64 = 1_000;

/// The parameter of a trace that says which flush or fence of it is left out.
const LEAVE_OUT: &str = "leave_out";

/// What is usual where the user does not say.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// Cores, if the machine has so many; `None` for as many as it has.
    cores: Option<u8>,
    /// Transactions of each core in the measured region.
    txs: u64,
    /// Whether a script may say how many, and a tenth as many are made before it.
    is_run: bool,
}

impl Usual {
    /// In a run (ours: the default comparison of three designs and four workloads on eight cores
    /// then takes well under a minute).
    pub const RUN: Usual = Usual { cores: None, txs: 2_000, is_run: true };
    /// In a campaign.
    pub const CAMPAIGN: Usual = Usual { cores: Some(2), txs: 500, is_run: false };
}

/// What a spec comes to: all that a run or a campaign depends on.
#[derive(Clone)]
pub struct Resolved {
    /// The design.
    pub design: &'static designs::Entry,
    /// The design's parameters that were set.
    pub design_settings: Vec<(String, u64)>,
    /// The rule of the design that is switched off.
    pub without: Option<&'static str>,
    /// The workload.
    pub workload: &'static workloads::Entry,
    /// The workload's name, or that of the profile that was asked for.
    pub workload_name: &'static str,
    /// The workload's parameters that were set.
    pub workload_settings: Vec<(String, u64)>,
    /// The machine.
    pub machine: Machine,
    /// Cores.
    pub cores: u8,
    /// Transactions of each core in the measured region.
    pub txs: u64,
    /// Transactions of each core before it; a campaign makes none.
    pub warmup: u64,
    /// The seed.
    pub seed: u64,
    /// Whether no core may run ahead of the others.
    pub exact: bool,
    /// The workload's script.
    pub script: Option<Script>,
    /// The program of the user's that is shown images.
    pub checker: Option<Arc<Program>>,
    /// Where the power is cut.
    pub points: HowMany,
    /// The only crash point of the first life at which it is cut, if one is asked for.
    pub event: Option<u64>,
    /// Whether recovery is crashed at each of its own writes, too.
    pub nested: bool,
    /// How often a machine is switched on.
    pub lives: u64,
    /// What the user should know about how the words were understood.
    pub notes: Vec<String>,
}

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn read(text: &str) -> Result<Spec, InputError> {
        let spec: Spec = serde_json::from_str(text).map_err(InputError::not_understood)?;
        spec.checked()
    }

    /// Returns the spec, if what it says by itself is possible.
    ///
    /// # Errors
    /// A sentence that says what is not.
    pub fn checked(mut self) -> Result<Spec, InputError> {
        let spec = &mut self;
        spec.points.check("crash points", "check")?;
        if let Some(trials) = &mut spec.trials {
            trials.check("trials", "show")?;
        }
        if let Some(leave_out) = &mut spec.leave_out {
            leave_out.check("flushes and fences", "show")?;
        }
        if spec.event.is_some() {
            spec.require_only_event()?;
        }
        // The user is told the seed of a trial, and may ask for it again.
        let most = i64::MAX as u64 - SEEDS_OF_TRIALS;
        if (spec.mutants.has_any() || spec.trials.is_some()) && spec.seed > most {
            return Err(InputError::new(format!(
                "seed is {}; with trials or mutants, which also use the seeds after it, it must be \
                 at most {most}",
                spec.seed
            )));
        }
        if spec.txs == Some(0) {
            return Err(InputError::new("txs is 0; it takes 1 or more"));
        }
        Ok(self)
    }

    /// Resolves the spec.
    ///
    /// # Errors
    /// A sentence that says what is unknown or impossible, and what exists.
    pub fn resolve(&self, usual: Usual) -> Result<Resolved, InputError> {
        let design = find_design(&self.design)?;
        let named = find_workload(&self.workload)?;
        let workload = named.entry;
        let pairs: Vec<(String, String)> =
            self.settings.iter().map(|(path, value)| (path.clone(), value.clone())).collect();
        let settings = settings::split(&pairs)?;
        let mut machine = machines::load(&self.machine, &settings.machine)?;
        let design_settings = settings::params(&owner_of(design), design.fields, &settings.design)?;
        let workload_settings = named.params(&settings)?;
        let usual_cores = match self.cores {
            Some(_) => None,
            None => self.usual_cores(&machine, workload, &workload_settings, usual.cores),
        };
        let cores = count_cores(&machine, self.cores, usual_cores)?;
        let without = self.require_rules(design, &design_settings)?;
        keep_threads(design, &machine, cores)?;
        let brought = bring_domain(design, &mut machine);
        self.require_reader(workload)?;
        let mut resolved = Resolved {
            design,
            design_settings,
            without,
            workload,
            workload_name: named.name,
            workload_settings,
            machine,
            cores,
            txs: self.txs.unwrap_or(usual.txs),
            warmup: 0,
            seed: self.seed,
            exact: self.exact,
            script: self.script.clone(),
            checker: self.asked_checker(workload)?,
            points: self.points.clone(),
            event: self.event,
            nested: self.nested,
            lives: self.count_lives(workload)?,
            notes: brought.into_iter().collect(),
        };
        let doubts = doubts(&resolved);
        resolved.notes.extend(doubts);
        let mut warms_up = usual.is_run;
        if workload.about.name == "replay" {
            let trace = resolved.make_workload()?;
            resolved.notes.extend(trace.notes());
            // What is done once has its own number, whatever was asked for, and no warm-up.
            if let Some(txs) = trace.ends_after() {
                (resolved.txs, warms_up) = (txs, false);
            }
        } else if usual.is_run && self.txs.is_none() && self.script.is_some() {
            // What is wrong with a script is told when the run makes the workload.
            let asked = resolved.make_workload().ok().and_then(|workload| workload.asks_for());
            resolved.txs = asked.unwrap_or(resolved.txs);
        }
        let usual_warmup = if warms_up { resolved.txs / 10 } else { 0 };
        resolved.warmup = self.warmup.unwrap_or(usual_warmup);
        Ok(resolved)
    }
}

impl Spec {
    /// Refuses what asks for other power failures than that at one event.
    fn require_only_event(&self) -> Result<(), InputError> {
        let others = [
            ("--points", self.points != HowMany::All),
            ("--lives", self.lives.is_some_and(|lives| lives > 1)),
            ("--mutants", self.mutants.has_any()),
            ("--trials", self.trials.is_some()),
            ("--leave-out", self.leave_out.is_some()),
        ];
        match others.into_iter().find(|(_, is_asked)| *is_asked) {
            Some((flag, _)) => Err(InputError::new(format!(
                "--event cuts the power once, and {flag} asks for more; drop one"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the rule that is switched off, if one is. Refuses a rule that the design does not
    /// have, and to look for what shows a rule that is not needed.
    fn require_rules(
        &self,
        design: &'static designs::Entry,
        settings: &[(String, u64)],
    ) -> Result<Option<&'static str>, InputError> {
        let find = |rule: &String| {
            let rules = design.rules.iter().map(|(name, _)| *name);
            let unknown = || unknown_of("rule", rule, &owner_of(design), rules.clone());
            rules.clone().find(|name| name == rule).ok_or_else(unknown)
        };
        let without = self.without.as_ref().map(find).transpose()?;
        let searched = match &self.mutants {
            Mutants::Rule(rule) => Some(find(rule)?),
            Mutants::All(_) => None,
        };
        let mut needless = design.needless_under(settings);
        match needless.find(|(rule, _)| searched == Some(rule)) {
            Some((rule, why)) => Err(InputError::new(format!(
                "no run can show that rule `{rule}` of {} is switched off: {why}; --without \
                 {rule} cuts the power without it",
                owner_of(design)
            ))),
            None => Ok(without),
        }
    }

    /// Refuses a script for a workload that reads none.
    fn require_reader(&self, workload: &workloads::Entry) -> Result<(), InputError> {
        if self.script.is_none() || workload.script.is_some() {
            return Ok(());
        }
        let with = |entry: &workloads::Entry| {
            entry.script.map(|flag| format!("{flag} is for {}", entry.about.name))
        };
        Err(InputError::new(format!(
            "workload {} takes no script: {}",
            workload.about.name,
            workloads::ALL.iter().filter_map(with).collect::<Vec<_>>().join(", ")
        )))
    }

    /// On how many cores a workload is run if the user does not say: a trace on as many as it has
    /// threads for.
    fn usual_cores(
        &self,
        machine: &Machine,
        workload: &workloads::Entry,
        settings: &[(String, u64)],
        usual: Option<u8>,
    ) -> Option<u8> {
        if workload.about.name != "replay" {
            return usual;
        }
        let all = machine.config.core.cores_max as u8;
        let usual = usual.unwrap_or(all).min(all);
        // What is wrong with a trace is told when the workload is made.
        let script = self.script.as_ref();
        workloads::replay::cores(script, settings, self.check.is_some(), usual).ok()
    }

    /// The program that checks images, if the workload is one whose images it can be asked about.
    fn asked_checker(
        &self,
        workload: &workloads::Entry,
    ) -> Result<Option<Arc<Program>>, InputError> {
        let Some(command) = self.check.clone() else {
            return match (&self.images, &self.leave_out) {
                (Some(_), _) => {
                    Err(InputError::new("--images keeps what --check rejects; give both"))
                }
                (None, Some(_)) => {
                    Err(InputError::new("--leave-out tests whether --check notices; give both"))
                }
                (None, None) => Ok(None),
            };
        };
        if workload.about.name != "replay" {
            let name = workload.about.name;
            return Err(InputError::new(format!(
                "--check works only on a trace; give --replay FILE, or leave it out for {name}, \
                 which the oracle checks"
            )));
        }
        if command.trim().is_empty() {
            return Err(InputError::new("--check must name a program; it is an empty string"));
        }
        let left_out = format!("workload.{LEAVE_OUT}");
        if self.leave_out.is_some() && self.settings.contains_key(&left_out) {
            return Err(InputError::new(format!(
                "--leave-out leaves out one after the other, and {left_out} is set; keep one"
            )));
        }
        if self.lives.is_some_and(|lives| lives > 1) {
            return Err(InputError::new("--check runs a program only once; leave --lives at 1"));
        }
        let program = Program::new(&command, self.images.clone());
        let program = program.map_err(InputError::new)?;
        // The program is asked for the first time when the workload is made.
        self.cancelled.iter().for_each(|cancelled| program.heed(cancelled));
        Ok(Some(Arc::new(program)))
    }
}

/// The most lives that there can be (ours: what three do not show, more hardly will).
const LIVES_MAX: u64 = 16;

impl Spec {
    /// How often a machine is switched on.
    fn count_lives(&self, workload: &workloads::Entry) -> Result<u64, InputError> {
        let reopens = workload.reopens != Reopens::Never;
        match self.lives {
            None if self.event.is_some() => Ok(1),
            None => Ok(match workload.reopens {
                Reopens::Never => 1,
                Reopens::UnlessScripted if self.script.is_some() || self.check.is_some() => 1,
                Reopens::UnlessScripted | Reopens::Always => 2,
            }),
            Some(lives) if !(1..=LIVES_MAX).contains(&lives) => {
                Err(InputError::new(format!("lives is {lives}; it takes 1 to {LIVES_MAX}")))
            }
            Some(lives) if lives > 1 && !reopens => {
                let others = workloads::ALL.iter().filter(|entry| entry.reopens != Reopens::Never);
                let names: Vec<_> = others.map(|entry| entry.about.name).collect();
                Err(InputError::new(format!(
                    "workload {} cannot resume after a power failure; give --lives 1, or one of {}",
                    workload.about.name,
                    names.join(", ")
                )))
            }
            Some(lives) => Ok(lives),
        }
    }
}

fn owner_of(design: &designs::Entry) -> String {
    format!("design {}", design.card.name)
}

impl Resolved {
    /// Whether flushes or fences of the trace are left out.
    pub fn leaves_out(&self) -> bool {
        self.workload_settings.iter().any(|(name, _)| name == LEAVE_OUT)
    }

    /// Leaves out the flushes or fences of one place of the trace.
    pub fn leave_out(&mut self, place: u64) {
        self.workload_settings.push((LEAVE_OUT.to_owned(), place));
    }

    /// Returns the same with a checker that keeps no images.
    pub fn keeping_nothing(&self) -> Resolved {
        let checker = self.checker.as_ref().map(|program| Arc::new(program.without_images()));
        Resolved { checker, ..self.clone() }
    }

    /// Checks that the user's program, if there is one, could be run on every image.
    ///
    /// # Errors
    /// A sentence that says why it could not be run.
    pub fn checker_ran(&self) -> Result<(), InputError> {
        self.checker.as_ref().map_or(Ok(()), |program| program.ran()).map_err(InputError::new)
    }

    /// Where the workload's data lie.
    pub fn site(&self) -> Site {
        let shape = Shape::new(&self.machine.config, self.cores);
        Site {
            cores: self.cores,
            seed: self.seed,
            heap: LINE_BYTES..shape.log_base,
            items: self.machine.config.workload.items,
            script: self.script.clone(),
            checker: self.checker.clone().map(|program| program as Arc<dyn Examiner>),
        }
    }

    /// The workload, not populated yet.
    ///
    /// # Errors
    /// A sentence that says what is wrong with its input.
    pub fn make_workload(&self) -> Result<Box<dyn Workload>, InputError> {
        (self.workload.make)(&self.workload_settings, &self.site())
            .map_err(|stop| stopped(stop, self))
    }
}
