//! What the names of designs and workloads stand for.

use crate::error::{InputError, unknown};
use crate::profiles::{self, Profile};
use crate::scripts;

/// Finds the design of a name, or the user's script of that name.
///
/// # Errors
/// A sentence that lists what exists, closest first, or says why the script is no design.
pub fn find_design(name: &str) -> Result<&'static designs::Entry, InputError> {
    let names = || designs::ALL.iter().map(|entry| entry.card.name);
    let known = designs::ALL.iter().find(|entry| entry.card.name == name);
    let found = known.map_or_else(|| scripts::find(name), |entry| Ok(Some(entry)))?;
    match found {
        Some(entry) if entry.is_order() => Err(InputError::new(format!(
            "{name} is ordering hardware, which keeps no transaction whole; name a log on it: \
             undo@{name}, redo@{name} or count@{name}"
        ))),
        Some(entry) => Ok(entry),
        None => Err(half_of_a_name(name).unwrap_or_else(|| unknown("design", name, names()))),
    }
}

/// The error for a name that is half of a design's: that of a software log, or of the hardware that
/// it runs on.
pub fn half_of_a_name(name: &str) -> Option<InputError> {
    let logs = |is: fn(&str, &str) -> bool| -> Vec<&str> {
        let names = designs::ALL.iter().map(|entry| entry.card.name);
        names.filter(|other| other.contains('@') && is(other, name)).collect()
    };
    let on_it = logs(|other, order| other.split('@').nth(1) == Some(order));
    let of_it = logs(|other, log| other.split('@').next() == Some(log));
    if !on_it.is_empty() {
        let names = on_it.join(", ");
        return Some(InputError::new(format!(
            "`{name}` is ordering hardware, which keeps no transaction whole; name a log on it: \
             {names}"
        )));
    }
    let names = of_it.join(", ");
    (!of_it.is_empty()).then(|| {
        InputError::new(format!("`{name}` is a software log; name the hardware, too: {names}"))
    })
}

/// What a workload's name stands for: the name, the workload, and the profile whose name it is.
pub type Named = (&'static str, &'static workloads::Entry, Option<&'static Profile>);

/// The workload of a name, which may be that of a profile.
///
/// # Errors
/// A sentence that lists what exists, closest first.
pub fn find_workload(name: &str) -> Result<Named, InputError> {
    let entry = |name| workloads::ALL.iter().find(|entry| entry.about.name == name);
    if let Some(found) = entry(name) {
        return Ok((found.about.name, found, None));
    }
    let profile = profiles::find(name);
    match profile.and_then(|profile| Some((profile.name, entry(profile.workload)?, Some(profile))))
    {
        Some(found) => Ok(found),
        None => Err(unknown("workload", name, workload_names())),
    }
}

/// The names of all workloads and profiles, each once.
pub fn workload_names() -> Vec<&'static str> {
    let workloads = workloads::ALL.iter().map(|entry| entry.about.name);
    let profiles = profiles::ALL.iter().filter(|profile| profile.name != profile.workload);
    workloads.chain(profiles.map(|profile| profile.name)).collect()
}
