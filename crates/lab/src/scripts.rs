//! Designs that a user brings, which are in no list: whoever embeds the lab says how one is found.

use std::sync::OnceLock;

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
