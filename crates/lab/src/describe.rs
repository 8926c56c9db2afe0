//! What there is, and what each thing is: for `list` and `explain`.

use designs::Entry;
use designs::scripted::ordering::LogName;
use model::design::{Model, Shape};
use model::params::Field;
use model::workload::Reopens;
use serde_json::{Value, json};

use crate::error::{InputError, unknown};
use crate::machines;
use crate::names::{NamedWorkload, find_design, find_workload, half_of_a_name, workload_names};
use crate::profiles::{self, Profile};
use crate::scripts;
use crate::settings::{self, Settings};
use crate::spec::count_cores;

/// Lists the designs, the ordering hardware, the workloads, the profiles or the machines.
///
/// # Errors
/// A sentence, when `kind` is none of these.
pub fn list(kind: &str) -> Result<String, InputError> {
    let rows: Vec<Value> = match kind {
        "designs" => designs::ALL.iter().map(design_row).collect(),
        "orders" => designs::ORDERS.iter().map(order_row).collect(),
        "workloads" => workloads::ALL.iter().map(workload_row).collect(),
        "profiles" => profiles::ALL.iter().map(Profile::row).collect(),
        "machines" => return Ok(machines::rows().to_string()),
        _ => {
            let kinds = ["designs", "orders", "workloads", "profiles", "machines"];
            return Err(unknown("list", kind, kinds));
        }
    };
    Ok(json!({ "rows": rows }).to_string())
}

fn design_row(entry: &Entry) -> Value {
    let card = &entry.card;
    json!({
        "name": card.name,
        "family": card.family,
        "paper": card.paper,
        "durability": card.durability.name(),
        "granularity": card.granularity.name(),
        "needs": card.needs.name(),
        "summary": card.summary,
    })
}

fn order_row(entry: &Entry) -> Value {
    let card = &entry.card;
    json!({
        "name": card.name,
        "model": entry.model.map(Model::name),
        "paper": card.paper,
        "summary": card.summary,
    })
}

fn workload_row(entry: &workloads::Entry) -> Value {
    let about = &entry.about;
    json!({
        "name": about.name,
        "summary": about.summary,
        "source": about.source,
        "shared": about.shared,
        "in_all": entry.in_all,
        "reopens": entry.reopens != Reopens::Never,
    })
}

/// A machine, by its name or its file, and its number of cores, if that is not the most it can
/// have.
pub type On<'a> = (&'a str, Option<u64>);

/// Explains a design or ordering hardware, with its hardware on the machine `on` (Silo's if there
/// is none), a workload or a machine, or in what a machine differs from `against`.
///
/// # Errors
/// A sentence, when there is nothing of that name, or when it has no hardware.
pub fn explain(
    name: &str,
    pairs: &[(String, String)],
    against: Option<&str>,
    on: Option<On<'_>>,
) -> Result<String, InputError> {
    let split = settings::split(pairs)?;
    // A paper's machine has the paper's name, and so may its design: `machine:` tells them apart.
    if let Some(machine) = name.strip_prefix("machine:").or(against.and(Some(name))) {
        refuse_hardware(&format!("machine:{machine}"), on)?;
        return match against {
            Some(other) => explain_difference(machine, other, &split.machine),
            None => Ok(machines::explain(&machines::load(machine, &split.machine)?).to_string()),
        };
    }
    let (kind, name) = match name.split_once(':') {
        Some((kind @ ("design" | "workload" | "order"), name)) => (kind, name),
        _ => ("", name),
    };
    let is_asked = |other: &str| kind.is_empty() || kind == other;
    let find = |all: &'static [Entry]| all.iter().find(|entry| entry.card.name == name);
    if is_asked("design") && find(designs::ALL).is_some() || kind == "design" {
        return explain_on(find_design(name)?, "design", &split, on, explain_design);
    }
    if kind != "workload"
        && let Some(entry) = scripts::find(name)?
    {
        return match (entry.is_order(), kind) {
            (true, _) => explain_on(entry, "order", &split, on, explain_order),
            (false, "order") => Err(unknown_thing(kind, name)),
            (false, _) => explain_on(entry, "design", &split, on, explain_design),
        };
    }
    let workload = find_workload(name).ok().filter(|_| is_asked("workload"));
    let is_machine = machines::names().contains(&name) || name.contains(['/', '.']);
    let is_machine = is_machine && kind.is_empty() && workload.is_none();
    let order = find(designs::ORDERS).filter(|_| is_asked("order"));
    if let Some(entry) = order.filter(|_| workload.is_none() && !is_machine) {
        return explain_on(entry, "order", &split, on, explain_order);
    }
    refuse_hardware(name, on)?;
    if let Some(named) = workload {
        return explain_workload(named, &split);
    }
    if is_machine {
        return Ok(machines::explain(&machines::load(name, &split.machine)?).to_string());
    }
    Err(unknown_thing(kind, name))
}

/// Refuses a machine for what is not a design.
fn refuse_hardware(name: &str, on: Option<On<'_>>) -> Result<(), InputError> {
    on.map_or(Ok(()), |(machine, _)| {
        Err(InputError::new(format!(
            "{name} is not a design, so it has no hardware on machine {machine}; `indelible \
             explain machine:{machine}` explains the machine"
        )))
    })
}

/// Describes a design or ordering hardware on a machine, with parameters of these values.
type Say = fn(&Entry, &[(String, u64)], &Shape) -> Value;

fn explain_on(
    entry: &Entry,
    kind: &str,
    split: &Settings,
    on: Option<On<'_>>,
    say: Say,
) -> Result<String, InputError> {
    let (machine, cores) = on.unwrap_or(("silo", None));
    let machine = machines::load(machine, &split.machine)?;
    let owner = format!("{kind} {}", entry.card.name);
    let values = settings::params(&owner, entry.fields, &split.design)?;
    let shape = Shape::new(&machine.config, count_cores(&machine, cores, None)?);
    let mut answer = say(entry, &values, &shape);
    answer["machine"] = machine.name.into();
    answer["also"] = also(kind, entry.card.name).into();
    Ok(answer.to_string())
}

/// The other things that have the name of a design or of ordering hardware, as they are asked for.
fn also(kind: &str, name: &str) -> Vec<String> {
    let is_in = |all: &'static [Entry]| all.iter().any(|entry| entry.card.name == name);
    let kinds = [
        ("design", is_in(designs::ALL)),
        ("order", is_in(designs::ORDERS)),
        ("machine", machines::names().contains(&name)),
    ];
    let others = kinds.into_iter().filter(|&(other, is_there)| is_there && other != kind);
    others.map(|(other, _)| format!("{other}:{name}")).collect()
}

fn explain_workload(named: NamedWorkload, split: &Settings) -> Result<String, InputError> {
    let NamedWorkload { name, entry, .. } = named;
    let mut answer = workload_row(entry);
    answer["name"] = name.into();
    answer["kind"] = "workload".into();
    answer["file"] = entry.about.file.into();
    answer["params"] = params(entry.fields, &named.params(split)?);
    Ok(answer.to_string())
}

/// The error that nothing has the name, of one kind or of any.
fn unknown_thing(kind: &str, name: &str) -> InputError {
    let designs = designs::ALL.iter().map(|entry| entry.card.name);
    let orders = designs::ORDERS.iter().map(|entry| entry.card.name);
    match kind {
        "workload" => unknown(kind, name, workload_names()),
        "order" => unknown("ordering hardware", name, orders),
        _ => {
            let others = workload_names().into_iter().chain(machines::names());
            let mut all: Vec<&str> = designs.chain(orders).chain(others).collect();
            all.sort_unstable();
            all.dedup();
            let unknown = || unknown("design, workload, machine or ordering hardware", name, all);
            half_of_a_name(name).unwrap_or_else(unknown)
        }
    }
}

fn explain_difference(
    name: &str,
    other: &str,
    settings: &[(String, String)],
) -> Result<String, InputError> {
    let left = machines::load(name, settings)?;
    let right = machines::load(other.trim_start_matches("machine:"), settings)?;
    Ok(machines::diff(&left, &right).to_string())
}

fn explain_design(entry: &Entry, values: &[(String, u64)], shape: &Shape) -> Value {
    let mut answer = design_row(entry);
    let rule = |(name, doc): &(&str, &str)| {
        let needless: Vec<Value> = needless(entry, values, name).into_iter().collect();
        json!({ "name": name, "doc": doc.trim(), "needless": needless })
    };
    let rules: Vec<Value> = entry.rules.iter().map(rule).collect();
    answer["kind"] = "design".into();
    answer["file"] = entry.card.file.into();
    answer["guarantee"] = guarantee(entry).into();
    answer["params"] = params(entry.fields, values);
    answer["rules"] = rules.into();
    answer["cores"] = shape.cores.into();
    answer["hardware"] = hardware(entry, values, shape);
    answer
}

/// Why a rule is needless with these parameters of a design, if it is.
fn needless(of: &Entry, values: &[(String, u64)], name: &str) -> Option<Value> {
    let (_, why) = of.needless_under(values).find(|(rule, _)| *rule == name)?;
    Some(json!({ "design": of.card.name, "reason": why }))
}

/// Describes ordering hardware, the designs that stand on it, and which of its rules those do not
/// need.
fn explain_order(entry: &Entry, values: &[(String, u64)], shape: &Shape) -> Value {
    let card = &entry.card;
    let stands = |design: &&Entry| design.stands_on == Some(card.name);
    let pairings: Vec<&Entry> = designs::ALL.iter().filter(stands).collect();
    let names: Vec<String> = match entry.script {
        Some(_) => LogName::ALL.map(|(log, _)| format!("{log}@{}", card.name)).into(),
        None => pairings.iter().map(|design| design.card.name.to_owned()).collect(),
    };
    // A log on a script is made when it is asked for; what is wrong with one is told then.
    let on_script = names.iter().filter_map(|name| scripts::find(name).ok().flatten());
    let on_script: Vec<&Entry> = on_script.chain(entry.script.map(|_| entry)).collect();
    let rule = |(name, doc): &(&str, &str)| {
        let speaks = pairings.iter().copied().chain(on_script.iter().copied());
        let needless: Vec<Value> = speaks.filter_map(|of| needless(of, &[], name)).collect();
        json!({ "name": name, "doc": doc.trim(), "needless": needless })
    };
    json!({
        "name": card.name,
        "kind": "order",
        "paper": card.paper,
        "summary": card.summary,
        "file": card.file,
        "model": entry.model.map(Model::name),
        "promise": entry.model.map(promise),
        "needs": card.needs.name(),
        "pairings": names,
        "params": params(entry.fields, values),
        "rules": entry.rules.iter().map(rule).collect::<Vec<_>>(),
        "cores": shape.cores,
        "hardware": hardware(entry, values, shape),
    })
}

fn hardware(entry: &Entry, values: &[(String, u64)], shape: &Shape) -> Value {
    let rows: Vec<Value> = (entry.hardware)(values, shape)
        .iter()
        .map(|structure| {
            json!({
                "name": structure.name,
                "bits": structure.bits,
                "count": structure.count,
                "bytes": structure.bytes(),
                "bytes_per_core": (structure.bits * structure.count) as f64
                    / 8.0
                    / f64::from(shape.cores),
                "domain": structure.kept_by.name(),
                "where": structure.location.name(),
            })
        })
        .collect();
    rows.into()
}

fn promise(model: Model) -> &'static str {
    match model {
        Model::Unordered => "none",
        Model::Fenced => "what a core flushed before a fence is durable when the fence ends",
        Model::Epoch => {
            "what a core stored, or saw, before an ordering fence is durable before what it stores \
             after; a durability fence waits for all of its core's stores"
        }
        Model::Visible => "a store is durable when it is visible",
    }
}

fn guarantee(entry: &Entry) -> &'static str {
    match entry.card.durability {
        model::design::Durability::Synchronous => {
            "an acknowledged transaction is durable, whole; no other is there in part"
        }
        model::design::Durability::Asynchronous => {
            "what is durable is a set of whole transactions closed under dependence, with every one \
             that was announced as durable; an acknowledgement comes earlier"
        }
        model::design::Durability::None => "none: it is not crash consistent",
    }
}

fn params(fields: &[Field], values: &[(String, u64)]) -> Value {
    let rows: Vec<Value> = fields
        .iter()
        .map(|field| {
            json!({
                "name": field.name,
                "value": settings::shown(field, settings::value_of(field, values)),
                "default": settings::shown(field, field.default),
                "range": if field.choices.is_empty() {
                    format!("{} to {}", field.limits.start(), field.limits.end())
                } else {
                    field.choices.join(", ")
                },
                "choices": field.choices,
                "doc": field.doc.trim(),
            })
        })
        .collect();
    rows.into()
}
