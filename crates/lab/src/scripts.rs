//! Designs that a user brings, which are in no list: the program that embeds the lab says how one
//! is found.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

use designs::scripted::Raised;
pub use designs::{Entry, scripted};

use crate::error::InputError;

/// Finds the design of a name that is none of [`designs::ALL`]: nothing if the name is not one of a
/// script, and a sentence if it is one and the script is no design.
pub type Find = fn(&str) -> Result<Option<&'static Entry>, InputError>;

static FIND: OnceLock<Find> = OnceLock::new();

/// Has scripts found by `find` from now on. The first call counts, and later ones do nothing.
pub fn found_by(find: Find) {
    FIND.get_or_init(|| find);
}

/// Finds the script of a name.
///
/// # Errors
/// A sentence that says why the script is no design.
pub fn find(name: &str) -> Result<Option<&'static Entry>, InputError> {
    FIND.get().map_or(Ok(None), |find| find(name))
}

/// Returns what a run answers, unless a script raises an error in it. What was left half done must
/// not be used again.
///
/// # Errors
/// What the script raised.
pub fn raised<T>(run: impl FnOnce() -> T) -> Result<T, Box<Raised>> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|payload| payload.downcast().unwrap_or_else(|other| resume_unwind(other)))
}

/// Returns what a run answers, or the error that a script [`raised`] in it, which is a violation.
///
/// # Errors
/// The script's own sentence that says what does not fit.
pub fn or_raised<T>(run: impl FnOnce() -> T) -> Result<Result<T, String>, InputError> {
    match raised(run) {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) if error.declined => Err(InputError::new(error.text)),
        Err(error) => Ok(Err(format!("{RAISES}{}", error.text))),
    }
}

/// Returns what a run answers, where an error that a script [`raised`] in it is one like others.
///
/// # Errors
/// Those of the run, and what the script raised.
pub fn caught<T>(run: impl FnOnce() -> Result<T, InputError>) -> Result<T, InputError> {
    raised(run).unwrap_or_else(|error| Err(InputError::new(error.text)))
}

/// How the text of a violation begins that is an error of a script.
pub const RAISES: &str = "raises: ";

/// Whether a violation is an error that a script raised ([`or_raised`]).
pub fn is_raised(violation: &str) -> bool {
    violation.starts_with(RAISES)
}
