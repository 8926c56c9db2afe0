//! What there is, and what each thing is: for `list` and `explain`.

use model::design::Shape;
use model::params::Field;
use model::workload::Reopens;
use serde_json::{Value, json};

use crate::error::{InputError, unknown};
use crate::machines;
use crate::profiles::{self, Profile};
use crate::settings;
use crate::spec::{count_cores, find_workload, workload_names};

/// Lists the designs, the workloads, the profiles or the machines.
///
/// # Errors
/// A sentence, when `kind` is none of these.
pub fn list(kind: &str) -> Result<String, InputError> {
    let rows: Vec<Value> = match kind {
        "designs" => designs::ALL.iter().map(design_row).collect(),
        "workloads" => workloads::ALL.iter().map(workload_row).collect(),
        "profiles" => profiles::ALL.iter().map(Profile::row).collect(),
        "machines" => return Ok(machines::rows().to_string()),
        _ => {
            return Err(unknown("list", kind, ["designs", "workloads", "profiles", "machines"]));
        }
    };
    Ok(json!({ "rows": rows }).to_string())
}

fn design_row(entry: &designs::Entry) -> Value {
    let card = &entry.card;
    json!({
        "name": card.name,
        "family": card.family,
        "paper": card.paper,
        "durability": card.durability.name(),
        "granularity": card.granularity.name(),
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
        "reopens": entry.reopens != Reopens::Never,
    })
}

/// A machine, by its name or its file, and how many cores it has, if not as many as it can.
pub type On<'a> = (&'a str, Option<u64>);

/// Explains a design, whose hardware is that of the machine `on` (Silo's if there is none), a
/// workload or a machine; a machine beside another one.
///
/// # Errors
/// A sentence, when there is nothing of that name, or when it is no design and has no hardware.
pub fn explain(
    name: &str,
    pairs: &[(String, String)],
    against: Option<&str>,
    on: Option<On<'_>>,
) -> Result<String, InputError> {
    let split = settings::split(pairs)?;
    // A paper's machine has the paper's name, and so may its design: `machine:` tells them apart.
    if let Some(machine) = name.strip_prefix("machine:") {
        return match against {
            Some(other) => explain_difference(machine, other, &split.machine),
            None => Ok(machines::explain(&machines::load(machine, &split.machine)?).to_string()),
        };
    }
    if let Some(other) = against {
        return explain_difference(name, other, &split.machine);
    }
    let (kind, name) = match name.split_once(':') {
        Some((kind @ ("design" | "workload"), name)) => (kind, name),
        _ => ("", name),
    };
    let design = designs::ALL.iter().find(|entry| entry.card.name == name);
    let design = design.filter(|_| kind != "workload");
    let workload = find_workload(name).ok().filter(|_| kind != "design");
    if let Some(entry) = design {
        let (machine, cores) = on.unwrap_or(("silo", None));
        let machine = machines::load(machine, &split.machine)?;
        let owner = format!("design {name}");
        let values = settings::params(&owner, entry.fields, &split.design)?;
        let shape = Shape::new(&machine.config, count_cores(&machine, cores, None)?);
        let mut answer = explain_design(entry, &values, &shape);
        answer["machine"] = machine.name.into();
        return Ok(answer.to_string());
    }
    if let Some((machine, _)) = on {
        return Err(InputError(format!(
            "{name} is no design, so it has no hardware on machine {machine}; `indelible explain \
             machine:{machine}` is about the machine"
        )));
    }
    if let Some((name, entry, profile)) = workload {
        let mut answer = workload_row(entry);
        answer["name"] = name.into();
        answer["kind"] = "workload".into();
        answer["file"] = entry.about.file.into();
        let asked = profile.map(|profile| profile.under(&split.workload));
        let mut asked = asked.unwrap_or(split.workload);
        if entry.fields.iter().any(|field| field.name == "items") {
            // The machine's word to every workload is this one's, too.
            let items = split.machine.iter().filter(|(path, _)| path == "workload.items");
            asked.extend(items.map(|(_, value)| ("items".to_owned(), value.clone())));
        }
        let values = settings::params(&format!("workload {name}"), entry.fields, &asked)?;
        answer["params"] = params(entry.fields, &values);
        return Ok(answer.to_string());
    }
    if kind.is_empty() && (machines::names().contains(&name) || name.contains(['/', '.'])) {
        return Ok(machines::explain(&machines::load(name, &split.machine)?).to_string());
    }
    Err(unknown_thing(kind, name))
}

/// Nothing has the name, of a kind or of any.
fn unknown_thing(kind: &str, name: &str) -> InputError {
    let designs = designs::ALL.iter().map(|entry| entry.card.name);
    match kind {
        "design" => unknown(kind, name, designs),
        "workload" => unknown(kind, name, workload_names()),
        _ => {
            let mut all: Vec<&str> =
                designs.chain(workload_names()).chain(machines::names()).collect();
            all.sort_unstable();
            all.dedup();
            unknown("design, workload or machine", name, all)
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

fn explain_design(entry: &designs::Entry, values: &[(String, u64)], shape: &Shape) -> Value {
    let mut answer = design_row(entry);
    let rules: Vec<Value> =
        entry.rules.iter().map(|(name, doc)| json!({ "name": name, "doc": doc.trim() })).collect();
    let hardware: Vec<Value> = (entry.hardware)(values, shape)
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
                "where": structure.place,
            })
        })
        .collect();
    answer["kind"] = "design".into();
    answer["file"] = entry.card.file.into();
    answer["guarantee"] = guarantee(entry).into();
    answer["params"] = params(entry.fields, values);
    answer["rules"] = rules.into();
    answer["cores"] = shape.cores.into();
    answer["hardware"] = hardware.into();
    answer
}

fn guarantee(entry: &designs::Entry) -> &'static str {
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
            let value = values.iter().rev().find(|(name, _)| name == field.name);
            let shown = |value: u64| match field.choices.get(value as usize) {
                Some(choice) => Value::from(*choice),
                None => Value::from(value),
            };
            json!({
                "name": field.name,
                "value": shown(value.map_or(field.default, |(_, value)| *value)),
                "default": shown(field.default),
                "range": if field.choices.is_empty() {
                    format!("{}..={}", field.limits.start(), field.limits.end())
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
