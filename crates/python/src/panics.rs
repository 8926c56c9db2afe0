//! Turns a panic below into a message, not a stack trace in the middle of the user's table.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use lab::scripts::scripted::Raised;

thread_local! {
    /// What the hook saw last on this thread: the panic's message with its place in the source.
    static SEEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// If this environment variable is set, a panic has its default report, too.
const DEBUG: &str = "INDELIBLE_DEBUG";

/// Replaces the hook that prints a panic by one that remembers it, once per process.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let default_hook = take_hook();
        set_hook(Box::new(move |info| {
            SEEN.with(|seen| *seen.borrow_mut() = Some(describe(info)));
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
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast::<Raised>() {
        Ok(raised) => Caught::Raised(raised),
        Err(payload) => Caught::Panic(
            SEEN.with(|seen| seen.borrow_mut().take())
                .unwrap_or_else(|| message(&*payload).to_owned()),
        ),
    })
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let message = message(info.payload());
    match info.location() {
        Some(place) => format!("{message} ({}:{})", place.file(), place.line()),
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
