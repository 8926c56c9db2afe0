//! The runs in which a rule that is switched off is to be noticed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::design::{Granularity, Needs};

use crate::corners::{self, Settings};
use crate::error::InputError;
use crate::machines;
use crate::spec::{HowMany, Resolved, Spec, Usual};

/// One of these runs.
pub(super) struct Trial {
    /// Its place among the trials of the user's spec.
    pub number: usize,
    pub spec: Spec,
    /// Transactions of each core.
    pub txs: u64,
}

impl Trial {
    /// Whether it is the user's own run.
    pub fn is_own(&self) -> bool {
        self.number < OWN_TRIALS
    }

    /// Returns what the trial runs.
    ///
    /// # Errors
    /// When what the trial sets does not fit the user's machine.
    pub fn resolve(&self, own: &Resolved) -> Result<Resolved, InputError> {
        if !self.is_own() {
            let on = self.spec.resolve(Usual::CAMPAIGN)?;
            return Ok(Resolved { txs: self.txs, ..on });
        }
        let Spec { points, nested, .. } = self.spec.clone();
        let own = own.keeping_nothing();
        Ok(Resolved { txs: self.txs, without: None, points, nested, ..own })
    }
}

/// How hard a rule is looked for: seeds of each kind of trial.
const SEEDS: u64 = 240;

/// The number of seeds of the trials with later lives.
const LIVES_SEEDS: u64 = 120;

/// Of the trials of one life, one in so many has the power fail in its recoveries, too (ours: it
/// has no divisor in common with how often machines come again, so that all kinds are among them).
const NESTED_EVERY: u64 = 7;

/// Trials that are the user's own run.
const OWN_TRIALS: usize = 2;

/// For each design of ours, the rules that are not caught in the first trial, each with the seed of
/// the trial that catches it in a campaign with seed 1: what `UPDATE=1 cargo test mutants::` wrote.
static CAUGHT_WITH: LazyLock<BTreeMap<String, BTreeMap<String, u64>>> = LazyLock::new(|| {
    let text = include_str!("../../snapshots/mutants.json");
    serde_json::from_str(text).expect("the tests have read it")
});

/// Returns the trials of a rule: first the one that caught it before, if that is known, and then
/// the others in order. To begin there spares most of the search, four minutes of five for all
/// designs.
pub(super) fn trials_for(rule: &str, spec: &Spec, resolved: &Resolved) -> Vec<Trial> {
    let mut trials = trials(spec, resolved);
    let ours = CAUGHT_WITH.get(resolved.design.card.name).and_then(|rules| rules.get(rule));
    let seed = spec.caught_with.get(rule).or(ours);
    let is_known = |trial: &Trial| !trial.is_own() && seed == Some(&trial.spec.seed);
    if let Some(place) = trials.iter().position(is_known) {
        trials[..=place].rotate_right(1);
    }
    trials
}

/// The user's own run, cut at every crash point, with every rule; the program that checks it, if
/// there is one, is the one of the campaign. Its settings have the names that they have here, so
/// that those of a trial take their places.
fn own(spec: &Spec) -> Spec {
    let (points, nested) = (HowMany::All, false);
    let (check, images, leave_out) = (None, None, None);
    let named = spec.settings.iter().map(|(path, value)| {
        let path = machines::own_path(path).unwrap_or_else(|_| path.clone());
        (path, value.clone())
    });
    let settings = named.collect();
    Spec { settings, points, nested, without: None, check, images, leave_out, ..spec.clone() }
}

/// The runs in which a mutant is looked for, from short to long, and then with other seeds again.
/// They go round several machines: the user's as it is; that with caches so small that lines leave
/// them in the middle of transactions; and that with two controllers of one-entry queues over slow
/// cells, so that writes overtake each other.
pub(super) fn trials(spec: &Spec, resolved: &Resolved) -> Vec<Trial> {
    // The user's machine may have more ways than such caches have lines.
    const SMALL: &[Settings] =
        &[corners::SMALL, &[("llc.assoc", "4"), ("l2.assoc", "2"), ("l1d.assoc", "2")]];
    const APART: &[Settings] = &[corners::APART, &[("controller.writeback_buffer_size", "64")]];
    let base = own(spec);
    let mut trials = vec![(base.clone(), 20), (base.clone(), resolved.txs)];
    let limit = resolved.machine.config.core.cores_max;
    let words = resolved.design.card.granularity == Granularity::Word;
    let revokes = resolved.design.revokes;
    for index in indices() {
        let mut trial = Spec {
            workload: "scribble".into(),
            lives: Some(if index < SEEDS { 1 } else { 3 }),
            script: None,
            seed: spec.seed + index,
            cores: Some((index / 3 % 3 + 2).min(limit)),
            ..base.clone()
        };
        trial.settings.retain(|path, _| !path.starts_with("workload."));
        let mut set = |path: &str, value: &str| {
            trial.settings.insert(path.into(), value.into());
        };
        set("workload.words", ["16", "48", "128"][index as usize % 3]);
        if words && index / 4 % 2 == 1 {
            set("workload.lock_grain", "word");
        }
        // What a design does by itself at an abort has rules of its own.
        if revokes && index % 5 % 2 == 1 {
            set("workload.aborts", "40");
        }
        // Long transactions come back to words that are still on their way.
        if index % 6 == 4 {
            set("workload.stores", "64");
        }
        let apart = if index % 8 == 3 { APART } else { &[] };
        let parts = [&[], SMALL, APART, SMALL][index as usize % 4].iter().chain(apart);
        for (path, value) in parts.copied().flatten() {
            set(path, value);
        }
        // More lines than a log's first group of blocks has.
        if index >= SEEDS && index % 3 == 2 {
            set("workload.large", "128");
            // In a few, more than most logs have room for (ours): the design says so, or does
            // without its log.
            if index % 24 == 23 {
                set("pm.log_size", "2KiB");
            }
        }
        // Writes that overtake each other on their ways (ours: by less than the slow cells take).
        if index % 3 == 2 {
            set("controller.arrival_jitter", "300cycles");
        }
        let is_alone = press(&mut trial, index, resolved);
        // Recoveries are interrupted in a few short trials of all these kinds.
        trial.nested = index < SEEDS && index.is_multiple_of(NESTED_EVERY);
        let is_short = is_alone || trial.nested;
        trials.push((trial, if is_short { 20 } else { 20 * (1 + index / 6 % 20) }));
    }
    let numbered = trials.into_iter().enumerate();
    numbered.map(|(number, (spec, txs))| Trial { number, spec, txs }).collect()
}

/// The numbers of the trials in their order: a trial of three lives comes after every two of one.
fn indices() -> Vec<u64> {
    let mut indices: Vec<u64> = (0..SEEDS + LIVES_SEEDS).collect();
    indices.sort_by_key(|&index| index.checked_sub(SEEDS).map_or(2 * index, |later| 4 * later + 3));
    indices
}

/// Makes structures small, by the `tight` values of the parameters that a design declares, and then
/// goes into the corner that the design declares. Returns whether the trial is to be short.
fn press(trial: &mut Spec, index: u64, resolved: &Resolved) -> bool {
    let design = resolved.design;
    let mut set = |path: &str, value: &str| {
        trial.settings.insert(path.into(), value.into());
    };
    // A design that says that the cells are enough is tried with lines of which a part is there.
    if design.card.needs == Needs::Nothing && index % 8 == 1 {
        set("controller.domain", "media");
    }
    if index % 5 != 4 {
        for field in design.fields.iter().filter(|field| !field.tight.is_empty()) {
            let value = field.tight[index as usize % field.tight.len()];
            set(&format!("design.{}", field.name), &value.to_string());
        }
    }
    let corner = (design.corner)(index, index >= SEEDS);
    if corner.has_four_cores {
        trial.cores = Some(resolved.machine.config.core.cores_max.min(4));
    }
    if corner.is_alone {
        trial.settings.retain(|path, _| !path.starts_with("workload."));
    }
    for (path, value) in corner.settings {
        trial.settings.insert(path.into(), value);
    }
    corner.is_alone
}

#[cfg(test)]
mod tests {
    use model::config::FIELDS;
    use serde_json::json;

    use super::*;
    use crate::quantity;

    /// A design is tried with what it says that it needs.
    #[test]
    fn who_needs_nothing_is_tried_with_the_cells_alone() {
        for (design, is_tried) in
            [("silo", false), ("lad", false), ("undo@x86", true), ("ssp", true)]
        {
            let text = json!({ "design": design, "workload": "hash", "machine": "tiny" });
            let spec = Spec::read(&text.to_string()).expect("a spec");
            let resolved = spec.resolve(Usual::CAMPAIGN).expect("a machine");
            assert_eq!(resolved.design.card.needs == Needs::Nothing, is_tried, "{design}");
            let domain = |trial: &Trial| trial.spec.settings.get("controller.domain").cloned();
            let of_media = trials(&spec, &resolved).iter().filter_map(domain).count();
            assert_eq!(of_media, if is_tried { 45 } else { 0 }, "{design}");
        }
    }

    /// What a trial sets must fit the machines of papers as well as `tiny`, or it is refused there.
    #[test]
    fn trials_go_with_every_machine() {
        for machine in machines::names() {
            for design in ["silo", "undo@x86", "lad", "ssp"] {
                let text = json!({ "design": design, "workload": "hash", "machine": machine });
                let spec = Spec::read(&text.to_string()).expect("a spec");
                let resolved = spec.resolve(Usual::CAMPAIGN).expect("a machine");
                let trials = trials(&spec, &resolved);
                let resolves = |trial: &&Trial| trial.spec.resolve(Usual::CAMPAIGN).is_ok();
                let count = trials.iter().filter(resolves).count();
                assert!(10 * count > 9 * trials.len(), "{design} on {machine}: {count}");
            }
        }
    }

    /// A trial that set the parameter beside another of its names would be refused.
    #[test]
    fn a_setting_by_another_name_makes_the_same_trials() {
        let trials = |path: &str, value: &str| {
            let settings = json!({ path: value });
            let text = json!({ "design": "silo", "workload": "hash", "machine": "tiny",
                               "settings": settings });
            let spec = Spec::read(&text.to_string()).expect("a spec");
            let resolved = spec.resolve(Usual::CAMPAIGN).expect("a machine");
            let settings = trials(&spec, &resolved).into_iter().map(|trial| trial.spec.settings);
            settings.collect::<Vec<_>>()
        };
        let tiny = machines::load("tiny", &[]).expect("a preset").config;
        for field in FIELDS.iter().filter(|field| !field.aliases.is_empty()) {
            let value = quantity::print(tiny.get(field.section, field.key), field.unit);
            let own = trials(&format!("{}.{}", field.section, field.key), &value);
            for alias in field.aliases {
                assert_eq!(trials(&format!("{}.{alias}", field.section), &value), own, "{alias}");
            }
        }
    }

    /// A trial with a misspelt field or value would be left out.
    #[test]
    fn corners_are_of_fields_that_exist() {
        for design in designs::ALL {
            let name = design.card.name;
            let text = json!({ "design": name, "workload": "hash", "machine": "tiny" });
            let spec = Spec::read(&text.to_string()).expect("a spec");
            let resolved = spec.resolve(Usual::CAMPAIGN).expect("a machine");
            for trial in trials(&spec, &resolved) {
                let refused = trial.spec.resolve(Usual::CAMPAIGN).err();
                let refused = refused.map(|error| error.to_string());
                assert_eq!(refused, None, "{name}, trial {}", trial.number);
            }
        }
    }
}
