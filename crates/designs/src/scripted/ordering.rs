//! Ordering hardware of a script's: alone, for litmus tests, and under each software log.

use std::marker::PhantomData;
use std::sync::Arc;

use model::design::{Card, Design, Durability};
use model::params::{Both, Params, Rules};

use super::{About, Kind, Script, ScriptParams, Scripted, made};
use crate::Entry;
use crate::count::Count;
use crate::redo::Redo;
use crate::software::{Log, Pairing, Software};
use crate::undo::Undo;

/// A software log that may stand on ordering hardware of a script's.
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
    /// Their names, as in LOG@ORDER.
    pub const ALL: [(&str, LogName); 3] =
        [(Count::NAME, LogName::Count), (Redo::NAME, LogName::Redo), (Undo::NAME, LogName::Undo)];
}

/// Hardware that orders, and leaves atomicity to a log.
#[derive(Debug)]
pub struct Ordering;

impl Kind for Ordering {
    const DURABILITY: Durability = Durability::None;
    const ORDERS: bool = true;
}

/// A log on a script's hardware.
pub struct On<L>(PhantomData<L>);

impl<L: Log> Pairing for On<L> {
    const CARD: Card = Card {
        file: L::FILE,
        family: "software",
        durability: Durability::Synchronous,
        granularity: L::GRANULARITY,
        ..<Scripted<Ordering> as Design>::CARD
    };
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[];
    type Log = L;
    type Order = Scripted<Ordering>;
}

/// The entry of the hardware, or of a log on it.
pub(super) fn entry(
    about: &About,
    log: Option<LogName>,
    script: Arc<dyn Script>,
) -> Result<Entry, String> {
    let logs =
        [<Count as Log>::Rules::RULES, <Redo as Log>::Rules::RULES, <Undo as Log>::Rules::RULES];
    let own = || about.rules.iter().map(|(rule, _)| *rule);
    let of_logs = || logs.iter().copied().flatten().map(|(rule, _)| *rule);
    if let Some((rule, _)) =
        about.needless.iter().find(|(rule, _)| !own().chain(of_logs()).any(|other| other == *rule))
    {
        return Err(format!("`needless` names `{rule}`, which is no rule, nor one of a log"));
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
    let needless = needless_of(about, about.rules);
    super::of::<Ordering>(&About { card, needless, ..*about }, script)
}

fn paired<L: Log>(about: &About, script: Arc<dyn Script>) -> Result<Entry, String> {
    let twice = |what: &str, name: &str| {
        Err(format!("the log `{}` has a {what} `{name}`, too; name it otherwise", L::NAME))
    };
    let fields = [L::Params::FIELDS, about.fields].concat();
    let is_logs = |name: &str| L::Params::FIELDS.iter().any(|field| field.name == name);
    if let Some(field) = about.fields.iter().find(|field| is_logs(field.name)) {
        return twice("parameter", field.name);
    }
    let rules = [L::Rules::RULES, about.rules].concat().leak();
    let is_logs = |name: &str| L::Rules::RULES.iter().any(|(rule, _)| *rule == name);
    if let Some((rule, _)) = about.rules.iter().find(|(rule, _)| is_logs(rule)) {
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
    let needless = needless_of(about, rules);
    let about = About { card, fields: fields.leak(), rules, needless, ..*about };
    let model = about.model;
    let params = move |settings: &[(String, u64)]| {
        let script = Some(Arc::clone(&script));
        let second = ScriptParams { script, model, ..ScriptParams::default() };
        let mut params = Both { first: L::Params::default(), second };
        for (name, value) in settings {
            params.set(name, *value);
        }
        params
    };
    let entry = made::<Software<On<L>>>(&about, hardware.name, params);
    Ok(Entry { stands_on: Some(hardware.name), ..entry })
}

/// What a script says of these rules that it does not need.
fn needless_of(
    about: &About,
    rules: &[(&'static str, &'static str)],
) -> &'static [(&'static str, &'static str)] {
    let known = |(rule, _): &&(&str, &str)| rules.iter().any(|(other, _)| other == rule);
    about.needless.iter().filter(known).copied().collect::<Vec<_>>().leak()
}
