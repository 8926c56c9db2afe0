//! What is wrong with what a user wrote: one sentence that names the thing and says what to write.

use std::io;

use strsim::normalized_damerau_levenshtein as similarity;

/// A mistake in what a user wrote, as one line that begins in lower case and says how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// How the one mistake begins that is none: another host takes what was asked for, or this one when
/// it has more room.
const NO_ROOM: &str = "the host has no room for the machine's memories";

impl InputError {
    /// That the host has no room for a machine's memories, and what helps.
    pub fn no_room(why: &io::Error, advice: &str) -> InputError {
        InputError(format!("{NO_ROOM} ({why}){advice}"))
    }

    /// Whether it is of the host as it is now, and not of what was asked for.
    pub fn is_of_the_host(&self) -> bool {
        self.0.starts_with(NO_ROOM)
    }
}

/// An unknown design, workload, machine, ...: says what there is, the closest name first.
pub fn unknown<'a>(
    kind: &str,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> InputError {
    unknown_of(kind, name, "", candidates)
}

/// As [`unknown`], for a name that belongs to something: `unknown parameter `x` of design silo`.
pub fn unknown_of<'a>(
    kind: &str,
    name: &str,
    owner: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> InputError {
    let of = if owner.is_empty() { String::new() } else { format!(" of {owner}") };
    let names = closest_first(name, candidates);
    let list = names.join(", ");
    InputError(match names.first() {
        None => format!("unknown {kind} `{name}`{of}; there is none"),
        Some(closest) if likeness(name, closest) >= LIKELY => {
            format!("unknown {kind} `{name}`{of}; did you mean `{closest}`? there are: {list}")
        }
        Some(_) => format!("unknown {kind} `{name}`{of}; there are: {list}"),
    })
}

/// The candidates, the one most like `name` first; equally like ones keep their order.
pub fn closest_first<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut names: Vec<&str> = candidates.into_iter().collect();
    names.sort_by(|left, right| likeness(name, right).total_cmp(&likeness(name, left)));
    names
}

/// From here on a candidate is offered as what was meant.
const LIKELY: f64 = 0.5;

/// How much two names have in common, 0 to 1; case does not matter.
fn likeness(name: &str, candidate: &str) -> f64 {
    let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
    let contained = name.len() >= 3 && (candidate.contains(&name) || name.contains(&candidate));
    let floor = if contained && !candidate.is_empty() { LIKELY } else { 0.0 };
    similarity(&name, &candidate).max(floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_comes_first() {
        assert_eq!(
            unknown("design", "sillo", ["fwb", "native", "silo"]).to_string(),
            "unknown design `sillo`; did you mean `silo`? there are: silo, fwb, native"
        );
    }

    #[test]
    fn nothing_is_suggested_when_nothing_is_close() {
        assert_eq!(
            unknown("design", "qqqqqq", ["fwb", "silo"]).to_string(),
            "unknown design `qqqqqq`; there are: fwb, silo"
        );
        assert_eq!(unknown("design", "x", []).to_string(), "unknown design `x`; there is none");
    }

    #[test]
    fn case_and_parts_of_names_count() {
        assert_eq!(closest_first("SILO", ["lad", "silo"])[0], "silo");
        assert_eq!(
            closest_first("buffer_size", ["tCL", "write_buffer_size"])[0],
            "write_buffer_size"
        );
    }
}
