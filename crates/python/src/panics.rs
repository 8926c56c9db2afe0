//! Turns a panic below into a message, not a stack trace in the middle of the user's table.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use lab::scripts;
use lab::scripts::scripted::Raised;

/// The messages that the hook saw last, each with its place in the source, the newest at the end.
/// A panic is caught on another thread than it was seen on if its thread is joined, and only its
/// message comes along.
static SEEN: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The number of messages that are remembered (ours: more than the threads of a search, of which
/// each may panic while the first is waited for).
const SEEN_MAX: usize = 256;

/// If this environment variable is set, a panic has its default report, too.
const DEBUG: &str = "INDELIBLE_DEBUG";

/// Replaces the hook that prints a panic by one that remembers it, once per process.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let default_hook = take_hook();
        set_hook(Box::new(move |info| {
            remember(info);
            if std::env::var_os(DEBUG).is_some() {
                default_hook(info);
            }
        }));
    });
}

/// Why some work panicked.
pub(crate) enum Caught {
    /// A script raised an error: a sentence for the user.
    Raised(Box<Raised>),
    /// A bug of ours.
    Panic(String),
}

/// Returns the result of `work`, or the message of its panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Caught> {
    // What `work` may have left half done is not used again: a panic ends the experiment.
    match catch_unwind(AssertUnwindSafe(|| scripts::raised(work))) {
        Ok(answer) => answer.map_err(Caught::Raised),
        Err(payload) => Err(Caught::Panic(with_place(message(&*payload)))),
    }
}

fn seen() -> MutexGuard<'static, Vec<(String, String)>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember(info: &PanicHookInfo<'_>) {
    let (message, Some(place)) = (message(info.payload()), info.location()) else { return };
    let mut seen = seen();
    seen.retain(|(other, _)| other != message);
    if seen.len() == SEEN_MAX {
        seen.remove(0);
    }
    seen.push((message.to_owned(), format!("{}:{}", place.file(), place.line())));
}

fn with_place(message: &str) -> String {
    match seen().iter().find(|(seen, _)| seen == message) {
        Some((_, place)) => format!("{message} ({place})"),
        None => message.to_owned(),
    }
}

fn message(payload: &dyn Any) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a panic without a message"
    }
}
