//! What is wrong with what a user wrote: one sentence that names the thing and says what to write.

use std::io;

pub use workloads::spelling::closest_first;
use workloads::spelling::meant;

/// A mistake in what a user wrote, as one line that begins in lower case and says how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct InputError {
    /// The line.
    pub text: String,
    /// What is at fault.
    pub cause: Cause,
}

/// What is at fault when something cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// What the user wrote.
    Request,
    /// The host as it is now: another host, or this one with more room, can do what was asked for.
    Host,
    /// A user's checker, which does not accept what a trace leaves when no power fails, or the
    /// program that was traced.
    Checker,
}

impl InputError {
    /// A mistake, and how to mend it.
    pub fn new(text: impl Into<String>) -> InputError {
        InputError { text: text.into(), cause: Cause::Request }
    }

    /// The error that a request is not what its type takes.
    pub fn not_understood(error: serde_json::Error) -> InputError {
        InputError::new(format!("the request is not understood: {error}"))
    }

    /// The error that a checker does not accept what a trace leaves when no power fails.
    pub fn not_accepted(text: String) -> InputError {
        InputError { text, cause: Cause::Checker }
    }

    /// The error that the host has no room for a machine's memories, and what helps.
    pub fn no_room(why: &io::Error, advice: &str) -> InputError {
        let text = format!("the host has no room for the machine's memories ({why}){advice}");
        InputError { text, cause: Cause::Host }
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
    InputError::new(match meant(name, names.iter().copied()) {
        _ if names.is_empty() => format!("unknown {kind} `{name}`{of}; there is none"),
        Some(closest) => {
            format!("unknown {kind} `{name}`{of}; did you mean `{closest}`? there are: {list}")
        }
        None => format!("unknown {kind} `{name}`{of}; there are: {list}"),
    })
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
}
