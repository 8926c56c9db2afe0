//! Whether a design, a machine and its cores go together: what is refused, what a design brings,
//! and what the user is told.

use model::config::{CORES_MAX, Config, Domain};
use model::design::{Durability, Granularity, Needs};
use model::params::Choice;
use workloads::choices::LockGrain;

use super::Resolved;
use crate::error::InputError;
use crate::machines::Machine;

/// Returns how many cores the user asked for or, if the user did not say, the usual number, or all
/// that the machine has.
///
/// # Errors
/// A sentence, when the machine does not have so many.
pub fn count_cores(
    machine: &Machine,
    asked: Option<u64>,
    usual: Option<u8>,
) -> Result<u8, InputError> {
    let limit = machine.config.core.cores_max;
    match asked {
        Some(cores) if (1..=limit).contains(&cores) => Ok(cores as u8),
        Some(cores) => Err(InputError::new(format!(
            "cores is {cores}; machine {} takes 1 to {limit} (core.cores_max)",
            machine.name
        ))),
        None => Ok(usual.unwrap_or(limit as u8).min(limit as u8)),
    }
}

/// Refuses threads that move on a design whose structures belong to cores.
///
/// # Errors
/// A sentence that says which designs let threads move, or that no core is idle for them to move
/// to.
pub fn keep_threads(
    design: &designs::Entry,
    machine: &Machine,
    cores: u8,
) -> Result<(), InputError> {
    if machine.config.core.migrate == 0 {
        return Ok(());
    }
    if !design.migrates {
        let all = if design.is_order() { designs::ORDERS } else { designs::ALL };
        let movable = all.iter().filter(|entry| entry.migrates);
        let names: Vec<&str> = movable.map(|entry| entry.card.name).collect();
        let name = design.card.name;
        return Err(InputError::new(match design.script {
            Some(_) => format!(
                "{name} does not say that threads may move; leave core.migrate at 0, or set \
                 `migrates = True` if the design keeps nothing per core"
            ),
            None => format!(
                "{name} keeps the state of a transaction at its core, so threads cannot move; \
                 leave core.migrate at 0, or use one of {}",
                names.join(", ")
            ),
        }));
    }
    if u64::from(cores) == CORES_MAX {
        return Err(InputError::new(format!(
            "with core.migrate a thread moves to an idle core, and cores is {cores}; it must be \
             1 to {}",
            CORES_MAX - 1
        )));
    }
    Ok(())
}

/// Brings what a design's guarantee needs to survive if the machine keeps less: the domain and,
/// where that domain saves caches and the machine has no energy for it, the energy. Returns a note
/// of that.
pub(super) fn bring_domain(design: &designs::Entry, machine: &mut Machine) -> Option<String> {
    if design.card.durability == Durability::None {
        return None;
    }
    let wanted = missing_domain(design.card.needs, &machine.config)?;
    let has_domain = machine.config.controller.domain == wanted;
    machine.config.controller.domain = wanted;
    let mut energy = String::new();
    if design.card.needs == Needs::Eadr && !machine.config.caches_survive() {
        let given = machine.config.controller.flush_bytes;
        machine.config.controller.flush_bytes = Config::default().controller.flush_bytes;
        energy = format!("energy for every cache (controller.flush_bytes is {given})");
    }
    let (name, machine) = (design.card.name, &machine.name);
    Some(if has_domain {
        format!("{name} needs caches that survive, and gives machine {machine} {energy}")
    } else {
        let with = if energy.is_empty() { "" } else { ", with " };
        format!(
            "{name} needs the durability domain {}, which it gives to machine \
             {machine}{with}{energy}",
            wanted.name()
        )
    })
}

/// What the user has asked for under which the design cannot keep its promise, or a program that
/// makes its own durability cannot be right.
pub(super) fn doubts(resolved: &Resolved) -> Vec<String> {
    let lost = lost_caches(resolved);
    let shared = false_sharing(resolved).map(|why| format!("{why}: expect violations"));
    let promised = match resolved.design.card.durability {
        Durability::None => [None, None],
        Durability::Synchronous | Durability::Asynchronous => [lost, shared],
    };
    promised.into_iter().chain([ignored_fences(resolved)]).flatten().collect()
}

/// The note that a design needs more of the caches to survive than there is energy for.
fn lost_caches(resolved: &Resolved) -> Option<String> {
    let (card, config) = (&resolved.design.card, &resolved.machine.config);
    let caches = config.cache_bytes(resolved.cores);
    let is_short = card.needs == Needs::Eadr && config.controller.flush_bytes < caches;
    is_short.then(|| {
        format!(
            "{} needs every cache to survive, and controller.flush_bytes is {} for {caches} bytes \
             of caches: the rest is lost",
            card.name, config.controller.flush_bytes
        )
    })
}

/// The sentence about transactions that share lines which the design takes for one transaction's
/// alone, if any do.
pub(super) fn false_sharing(resolved: &Resolved) -> Option<String> {
    let (card, set) = (&resolved.design.card, &resolved.workload_settings);
    let words = LockGrain::Word as u64;
    let on_words = set.iter().any(|(name, value)| name == "lock_grain" && *value == words);
    let is_wrong = card.granularity == Granularity::Line && on_words && resolved.cores > 1;
    is_wrong.then(|| {
        format!(
            "{} logs or versions whole lines, and locks on words let transactions share them",
            card.name
        )
    })
}

/// The note that a program which makes its own durability, and is checked by the user's, cannot be
/// right on this design, whatever it does.
fn ignored_fences(resolved: &Resolved) -> Option<String> {
    let design = resolved.design;
    let survives = resolved.machine.config.caches_survive();
    if resolved.checker.is_none() || survives || !design.ignores_fences() {
        return None;
    }
    let counts = match design.card.durability {
        Durability::None => "it promises nothing",
        _ => "only transactions of this program count",
    };
    let name = design.card.name;
    Some(format!(
        "on {name} flushes and fences do nothing: {counts}; crash-test its own durability on \
         undo@x86, undo@hops or undo@eadr"
    ))
}

/// The domain that is needed, if the machine's does not suffice or has no energy for what it is to
/// save. A global persistent flush keeps caches, too, if there is energy for its first phase,
/// however little.
pub fn missing_domain(needs: Needs, config: &Config) -> Option<Domain> {
    let (enough, wanted) = match needs {
        Needs::Nothing => return None,
        Needs::Adr => (config.controller.domain != Domain::Media, Domain::Adr),
        Needs::Eadr => (config.caches_survive(), Domain::Eadr),
    };
    (!enough).then_some(wanted)
}
