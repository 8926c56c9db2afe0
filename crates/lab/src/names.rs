//! What the names of designs and workloads stand for.

use designs::Entry;

use crate::error::{InputError, unknown};
use crate::profiles::{self, Profile};
use crate::scripts;
use crate::settings::{self, Settings};

/// Finds the design of a name, or the user's script of that name.
///
/// # Errors
/// A sentence that lists what exists, closest first, or says why the script is no design.
pub fn find_design(name: &str) -> Result<&'static Entry, InputError> {
    match one_of(designs::ALL, name)? {
        Some(entry) if entry.is_order() => Err(InputError::new(format!(
            "{name} is ordering hardware, which keeps no transaction whole; name a log on it: \
             undo@{name}, redo@{name} or count@{name}"
        ))),
        Some(entry) => Ok(entry),
        None => Err(half_of_a_name(name).unwrap_or_else(|| {
            unknown("design", name, designs::ALL.iter().map(|entry| entry.card.name))
        })),
    }
}

/// Finds the ordering hardware of a name, or the user's script of that name.
///
/// # Errors
/// A sentence that lists what exists, closest first, or says why the script is none.
pub fn find_order(name: &str) -> Result<&'static Entry, InputError> {
    match one_of(designs::ORDERS, name)? {
        Some(entry) if entry.is_order() => Ok(entry),
        Some(_) => Err(InputError::new(format!(
            "{name} is not ordering hardware, on which tests run without a log; ordering hardware \
             sets `model`, what it promises"
        ))),
        None => Err(design_for_order(name).unwrap_or_else(|| {
            let names = designs::ORDERS.iter().map(|order| order.card.name);
            unknown("ordering hardware", name, names)
        })),
    }
}

/// The error for a design where ordering hardware is meant.
fn design_for_order(name: &str) -> Option<InputError> {
    let entry = designs::ALL.iter().find(|entry| entry.card.name == name)?;
    let instead = match entry.stands_on {
        Some(order) => format!("name `{order}`, the hardware that it stands on"),
        None => format!("`indelible crash --design {name}` tests it"),
    };
    Some(InputError::new(format!(
        "`{name}` is a design, which keeps transactions whole, and litmus tests have none: {instead}"
    )))
}

/// The one of `all` that has a name, or else the user's script of that name.
fn one_of(all: &'static [Entry], name: &str) -> Result<Option<&'static Entry>, InputError> {
    let known = all.iter().find(|entry| entry.card.name == name);
    known.map_or_else(|| scripts::find(name), |entry| Ok(Some(entry)))
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

/// What a workload's name stands for.
#[derive(Clone, Copy)]
pub struct NamedWorkload {
    /// The workload's own name, or that of the profile.
    pub name: &'static str,
    /// The workload.
    pub entry: &'static workloads::Entry,
    /// The profile, if the name is that of one.
    profile: Option<&'static Profile>,
}

impl NamedWorkload {
    /// Returns the workload's parameters that are not left at their defaults: those that the user
    /// has set, and those of the profile that the user has not.
    ///
    /// # Errors
    /// As [`settings::params`].
    pub fn params(&self, said: &Settings) -> Result<Vec<(String, u64)>, InputError> {
        let mut asked = match self.profile {
            Some(profile) => profile.under(&said.workload),
            None => said.workload.clone(),
        };
        // The machine's number of items for every workload is this one's, too. Left alone, some
        // have fewer items than the machine says.
        if self.entry.fields.iter().any(|field| field.name == "items") {
            let items = said.machine.iter().filter(|(path, _)| path == "workload.items");
            asked.extend(items.map(|(_, value)| ("items".to_owned(), value.clone())));
        }
        settings::params(&format!("workload {}", self.name), self.entry.fields, &asked)
    }
}

/// The workload of a name, which may be that of a profile.
///
/// # Errors
/// A sentence that lists what exists, closest first.
pub fn find_workload(name: &str) -> Result<NamedWorkload, InputError> {
    let entry = |name| workloads::ALL.iter().find(|entry| entry.about.name == name);
    if let Some(entry) = entry(name) {
        return Ok(NamedWorkload { name: entry.about.name, entry, profile: None });
    }
    let named = profiles::find(name).and_then(|profile| {
        let entry = entry(profile.workload)?;
        Some(NamedWorkload { name: profile.name, entry, profile: Some(profile) })
    });
    named.ok_or_else(|| unknown("workload", name, workload_names()))
}

/// The names of all workloads and profiles, each once.
pub fn workload_names() -> Vec<&'static str> {
    let workloads = workloads::ALL.iter().map(|entry| entry.about.name);
    let profiles = profiles::ALL.iter().filter(|profile| profile.name != profile.workload);
    workloads.chain(profiles.map(|profile| profile.name)).collect()
}
