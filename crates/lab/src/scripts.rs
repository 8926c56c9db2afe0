//! Designs that a user brings, which are in no list: whoever embeds the lab says how one is found.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

use designs::scripted::Raised;
pub use designs::{Entry, scripted};

use crate::error::InputError;

/// Finds the design of a name that is none of [`designs::ALL`]: nothing if the name is not one of a
/// script, and a sentence if it is and the script is no design.
pub type Find = fn(&str) -> Result<Option<&'static Entry>, InputError>;

static FIND: OnceLock<Find> = OnceLock::new();

/// Has scripts found from now on; the first who says how is heard.
pub fn found_by(find: Find) {
    FIND.get_or_init(|| find);
}

/// The script of a name.
///
/// # Errors
/// A sentence that says why the script is no design.
pub fn find(name: &str) -> Result<Option<&'static Entry>, InputError> {
    FIND.get().map_or(Ok(None), |find| find(name))
}

/// What a run answers, or what a script raised in it, which is a violation. Nothing that was left
/// half done may be used again.
///
/// # Errors
/// A sentence of the script's that says what does not fit.
pub fn or_raised<T>(run: impl FnOnce() -> T) -> Result<Result<T, String>, InputError> {
    let payload = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(answer) => return Ok(Ok(answer)),
        Err(payload) => payload,
    };
    match payload.downcast::<Raised>() {
        Ok(raised) if raised.declined => Err(InputError::new(raised.text)),
        Ok(raised) => Ok(Err(format!("{RAISES}{}", raised.text))),
        Err(payload) => resume_unwind(payload),
    }
}

/// How a violation begins that is what a script raised.
pub const RAISES: &str = "raises: ";

/// Whether a violation is that a script raised ([`or_raised`]).
pub fn is_raised(violation: &str) -> bool {
    violation.starts_with(RAISES)
}
