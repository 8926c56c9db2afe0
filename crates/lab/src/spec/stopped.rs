//! Why what was asked for could not be run, as a sentence.

use model::config::Unit;
use model::engine::Failure;
use model::workload::Stop;

use super::{Resolved, false_sharing};
use crate::error::InputError;
use crate::machines;
use crate::quantity;
use crate::settings;

/// The parameters of workloads that say how large they are. The first of them that a workload has
/// is its size, unless the user has raised others.
const SIZES: [&str; 8] =
    ["items", "stock", "rows", "words", "warehouses", "customers", "orders", "buckets"];

/// Why a run could not be made, as a sentence.
///
/// # Panics
/// On a deadlock of a design of ours, which is a defect.
pub fn failed(failure: Failure, resolved: &Resolved) -> InputError {
    match failure {
        Failure::Stopped(stop) => stopped(stop, resolved),
        Failure::Host(error) => InputError::no_room(&error, ": lower pm.device_size"),
        Failure::Raised(text) => InputError::new(text),
        Failure::Deadlock(stuck) => defect(resolved, &format!("deadlock: {stuck}")),
        Failure::OutOfTurn(core) => InputError::new(format!(
            "{} cannot keep the order of the trace: a store of {core} waits for the end of a \
             transaction that ends later in it; take another design, or a trace without the line \
             `interleaved`",
            resolved.design.card.name
        )),
    }
}

/// What is wrong with a design that a user brought.
///
/// # Panics
/// If the design is ours.
pub fn defect(resolved: &Resolved, text: &str) -> InputError {
    let design = resolved.design;
    assert!(design.script.is_some(), "design {}: {text}", design.card.name);
    InputError::new(format!("{}: {text}", design.card.name))
}

/// Why a workload stopped, as a sentence.
///
/// # Panics
/// When the workload found itself wrong, which is a defect, unless transactions share what the
/// design takes for one transaction's alone.
pub fn stopped(stop: Stop, resolved: &Resolved) -> InputError {
    let workload = resolved.workload.about.name;
    match stop {
        Stop::OutOfMemory { asked, free } => InputError::new(format!(
            "workload {workload} needs {} of simulated persistent memory in one piece, and {} is \
             free; {}{}",
            quantity::about(asked),
            quantity::about(free),
            how_to_have_more(asked, free, resolved),
            how_to_need_less(resolved),
        )),
        Stop::Input(text) => InputError::new(text),
        Stop::NotAccepted(text) => InputError::not_accepted(text),
        Stop::Failed(text) => match false_sharing(resolved) {
            Some(why) => InputError::new(format!("workload {workload}: {text}: {why}")),
            None => panic!("workload {workload}: {text}"),
        },
        Stop::Cancelled => InputError::new("cancelled"),
    }
}

/// What a user can do for more memory, if any machine has so much. The size is known of a trace
/// alone, which asks for all that it needs at once: the room of each copy grows at least as much as
/// the memory does.
fn how_to_have_more(asked: u64, free: u64, resolved: &Resolved) -> String {
    let raise = |size: &str| format!("raise it with --set pm.device_size={size}, or ");
    if resolved.workload.about.name != "replay" || free == 0 {
        return raise("...");
    }
    let limits = &machines::field("pm.device_size").limits;
    let times = asked.div_ceil(free).checked_next_power_of_two();
    let size = times.and_then(|times| resolved.machine.config.pm.capacity.checked_mul(times));
    let size = size.filter(|size| limits.contains(size));
    size.map_or(String::new(), |size| raise(&quantity::print(size, Unit::Bytes)))
}

/// What a user can do for a workload to need less memory: its size is in its script, if it has one.
fn how_to_need_less(resolved: &Resolved) -> String {
    let entry = resolved.workload;
    match resolved.script.as_ref().map(|script| (script.name(), script.text())) {
        Some((file, text)) if entry.about.name == "ycsb" => match text.contains("recordcount") {
            true => format!("lower `recordcount` in {file}"),
            false => "lower --set workload.items=...".to_owned(),
        },
        Some((file, text)) if text.contains(":rows") => {
            format!("lower --set workload.rows=..., which is :rows in {file}")
        }
        Some((file, text)) if entry.about.name == "replay" => {
            let less = match text.lines().any(|line| line.starts_with("region ")) {
                true => format!("record less persistent memory than {file} has"),
                false => format!("add `region` lines for persistent memory to {file}"),
            };
            match resolved.cores {
                1 => less,
                _ => format!("{less}, or use fewer cores"),
            }
        }
        Some((file, _)) => format!("let {file} insert less"),
        None => match sizes(resolved).as_slice() {
            [] => "use fewer cores".into(),
            [size] => format!("lower --set workload.{size}=..."),
            [others @ .., last] => {
                format!(
                    "lower --set workload.{}=... or workload.{last}=...",
                    others.join("=..., workload.")
                )
            }
        },
    }
}

/// The parameters that say how large a workload is: those that the user has raised, or the first.
fn sizes(resolved: &Resolved) -> Vec<&'static str> {
    let has = |name: &&str| resolved.workload.fields.iter().any(|field| field.name == *name);
    let all = SIZES.into_iter().filter(has);
    let is_raised = |name: &&str| {
        let field = resolved.workload.fields.iter().find(|field| field.name == *name);
        let value = |field| settings::value_of(field, &resolved.workload_settings);
        field.is_some_and(|field| value(field) > field.default)
    };
    let raised: Vec<_> = all.clone().filter(is_raised).collect();
    if raised.is_empty() { all.take(1).collect() } else { raised }
}
