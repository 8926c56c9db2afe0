//! A script's ordering hardware: alone, for litmus tests, and under each software log.

use std::marker::PhantomData;
use std::sync::Arc;

use model::design::{Card, Design, Durability, Model};
use model::params::{Both, Params, Rules};

use super::{About, Script, ScriptParams, Scripted, made};
use crate::Entry;
use crate::count::Count;
use crate::redo::Redo;
use crate::software::{Log, Pairing, Software};
use crate::undo::Undo;

/// A software log that may stand on a script's ordering hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogName {
    /// [`Count`].
    Count,
    /// [`Redo`].
    Redo,
    /// [`Undo`].
    Undo,
}

impl LogName {
    /// The names of the logs, as in LOG@ORDER.
    pub const ALL: [(&str, LogName); 3] =
        [(Count::NAME, LogName::Count), (Redo::NAME, LogName::Redo), (Undo::NAME, LogName::Undo)];

    fn rules(self) -> &'static [(&'static str, &'static str)] {
        match self {
            LogName::Count => <Count as Log>::Rules::RULES,
            LogName::Redo => <Redo as Log>::Rules::RULES,
            LogName::Undo => <Undo as Log>::Rules::RULES,
        }
    }
}

/// A log on a script's hardware.
pub struct On<L>(PhantomData<L>);

impl<L: Log> Pairing for On<L> {
    const CARD: Card = Card {
        file: L::FILE,
        family: "software",
        durability: Durability::Synchronous,
        granularity: L::GRANULARITY,
        ..<Scripted as Design>::CARD
    };
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[];
    type Log = L;
    type Order = Scripted;
}

/// The entry of the hardware, or of a log on it.
pub(super) fn entry(
    about: &About,
    log: Option<LogName>,
    script: Arc<dyn Script>,
) -> Result<Entry, String> {
    for (rule, _) in about.needless {
        require_rule(about, rule)?;
    }
    match log {
        None => Ok(alone(about, script)),
        Some(LogName::Count) => paired::<Count>(about, script),
        Some(LogName::Redo) => paired::<Redo>(about, script),
        Some(LogName::Undo) => paired::<Undo>(about, script),
    }
}

fn alone(about: &About, script: Arc<dyn Script>) -> Entry {
    let card = Card { durability: Durability::None, ..about.card };
    let needless = needless_of(about, "", about.rules);
    super::of(&About { card, needless, ..*about }, script)
}

fn paired<L: Log>(about: &About, script: Arc<dyn Script>) -> Result<Entry, String> {
    let twice = |what: &str, name: &str| {
        Err(format!("the log `{}` also has a {what} `{name}`; choose another name", L::NAME))
    };
    let fields = [L::Params::FIELDS, about.fields].concat();
    let is_logs = |name: &str| L::Params::FIELDS.iter().any(|field| field.name == name);
    if let Some(field) = about.fields.iter().find(|field| is_logs(field.name)) {
        return twice("parameter", field.name);
    }
    let rules = [L::Rules::RULES, about.rules].concat().leak();
    if let Some((rule, _)) = about.rules.iter().find(|(rule, _)| has(L::Rules::RULES, rule)) {
        return twice("rule", rule);
    }
    let hardware = about.card;
    let summary = format!("software {} log over: {}", L::NAME, hardware.summary);
    let card = Card {
        name: format!("{}@{}", L::NAME, hardware.name).leak(),
        summary: summary.leak(),
        paper: hardware.paper,
        file: hardware.file,
        needs: hardware.needs,
        ..On::<L>::CARD
    };
    let mut needless = needless_of(about, L::NAME, rules).to_vec();
    if about.model == Some(Model::Visible) {
        let unsaid = L::NEEDLESS_WHERE_VISIBLE.iter().filter(|(rule, _)| !has(&needless, rule));
        needless = unsaid.chain(&needless).copied().collect();
    }
    let needless = needless.leak();
    let about = About { card, fields: fields.leak(), rules, needless, ..*about };
    let second = ScriptParams::of(&about, script);
    let params = move |settings: &[(String, u64)]| {
        let second = second.clone();
        let mut params = Both { first: L::Params::default(), second };
        for (name, value) in settings {
            params.set(name, *value);
        }
        params
    };
    let entry = made::<Software<On<L>>>(&about, hardware.name, params);
    Ok(Entry { stands_on: Some(hardware.name), ..entry })
}

/// Checks a rule that a script says is needless: it must be one of the script's own, or of a log. A
/// rule of one log alone is named as LOG:RULE.
fn require_rule(about: &About, named: &str) -> Result<(), String> {
    let (log, rule) = split(named);
    let names = LogName::ALL.map(|(name, _)| name);
    if log.is_some_and(|log| !names.contains(&log)) {
        let names = names.join(", ");
        return Err(format!("`needless` names `{named}`, but the logs are {names}"));
    }
    let mut of_logs = LogName::ALL.iter().filter(|(name, _)| log.is_none_or(|log| *name == log));
    match has(about.rules, rule) || of_logs.any(|(_, log)| has(log.rules(), rule)) {
        true => Ok(()),
        false => Err(format!("`needless` names `{named}`, which is not a rule, nor one of a log")),
    }
}

fn has(rules: &[(&str, &str)], rule: &str) -> bool {
    rules.iter().any(|(other, _)| *other == rule)
}

fn split(named: &str) -> (Option<&str>, &str) {
    named.split_once(':').map_or((None, named), |(log, rule)| (Some(log), rule))
}

/// Those of these rules that a script says it does not need under a log or, if the log has no name,
/// alone.
fn needless_of(
    about: &About,
    log: &str,
    rules: &[(&'static str, &'static str)],
) -> &'static [(&'static str, &'static str)] {
    let said = about.needless.iter().map(|(named, why)| (split(named), *why));
    let said = said.filter(|((of, _), _)| of.is_none_or(|of| of == log));
    let known = said.filter(|((_, rule), _)| has(rules, rule));
    known.map(|((_, rule), why)| (rule, why)).collect::<Vec<_>>().leak()
}
