//! The question of a paper, asked of the processor that this runs on: should a log be cached? (Li,
//! Ogleari and Zhao, "Logging in Persistent Memory: to Cache, or Not to Cache?")
//!
//! [`logging`] takes a request as JSON and answers with JSON, as `lab` does. It simulates nothing,
//! so its answers differ from run to run. The workload `logcache` is the same loop for the
//! simulator.
//!
//! The loops are written for x86-64, and the code around them for Linux. On other hosts the answer
//! is a sentence that says so.

pub mod words;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod x86_64;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An error of the request, or of this computer, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// The caller's view of a measurement: its progress, and the request to stop it.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// Whether the measurement is to stop; set from another thread.
    pub cancelled: &'a AtomicBool,
    /// The number of cells that are done.
    pub done: &'a AtomicU64,
    /// The number of all cells.
    pub total: &'a AtomicU64,
}

impl Watch<'_> {
    /// Whether the caller has asked for an end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Makes the measurements of a request ([`x86_64::plan::Request`] has its fields).
///
/// # Errors
/// A sentence that says what is wrong with the request, or why this computer cannot run the
/// benchmark.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn logging(request: &str, watch: Watch<'_>) -> Result<String, InputError> {
    x86_64::logging(request, watch)
}

/// Returns the error that this host cannot be measured, with advice.
///
/// # Errors
/// Always.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn logging(_request: &str, _watch: Watch<'_>) -> Result<String, InputError> {
    Err(InputError(format!(
        "this measures x86-64 processors on Linux, and this computer is {} on {}; the simulated \
         version runs everywhere: indelible compare --workloads logcache --designs \
         native,undo@x86,undo@eadr",
        std::env::consts::ARCH,
        std::env::consts::OS,
    )))
}
