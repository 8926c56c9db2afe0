//! The question of a paper, asked of the processor that this runs on: should a log be cached? (Li,
//! Ogleari and Zhao, "Logging in Persistent Memory: to Cache, or Not to Cache?")
//!
//! [`logging`] takes a request as JSON and answers with JSON, as `lab` does. It simulates nothing,
//! and nothing of it is the same twice. The workload `logcache` is the same loop for the simulator.
//!
//! The loops are of x86-64 and what is around them is of Linux. Elsewhere the answer is a sentence
//! that says so.

pub mod words;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod x86_64;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is wrong with a request, or with this computer: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// Who watches, and may ask for an end.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// Set from another thread to stop.
    pub cancelled: &'a AtomicBool,
    /// Cells that are done.
    pub done: &'a AtomicU64,
    /// Cells that there are.
    pub total: &'a AtomicU64,
}

impl Watch<'_> {
    /// Whether an end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Measures what a request asks for ([`x86_64::plan::Request`] has its fields).
///
/// # Errors
/// A sentence that says what is wrong with the request, or that this computer is not one that
/// the benchmark is for.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn logging(request: &str, watch: Watch<'_>) -> Result<String, InputError> {
    x86_64::logging(request, watch)
}

/// Says that there is nothing to measure here, and what to do instead.
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
