//! What a run shares with the caller that watches it, or wants it to end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a run shares with the caller that watches it, or wants it to end.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end the run soon; shared by the runs that one request makes.
    pub cancelled: Arc<AtomicBool>,
    /// Transactions done so far.
    pub done: AtomicU64,
    /// Transactions to be done; 0 while that is not known.
    pub total: AtomicU64,
    /// The part of the work that is under way, in words; empty if there are no parts.
    part: Mutex<String>,
    /// Threads of the host for a request of many runs; 0 stands for one.
    pub threads: usize,
}

impl Control {
    /// A control of a request that may use so many threads of the host.
    pub fn with_threads(threads: usize) -> Control {
        Control { threads, ..Control::default() }
    }

    /// A control of a run whose progress nobody watches, and that ends with others.
    pub fn ended_by(cancelled: &Arc<AtomicBool>) -> Control {
        Control { cancelled: Arc::clone(cancelled), ..Control::default() }
    }

    /// Asks for an end.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked for an end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// How much is done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// How much is to be done; 0 while that is not known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// The part of the work that is under way, in words; empty if there are no parts.
    pub fn part(&self) -> String {
        self.part.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that so much more is done.
    pub fn advance(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    /// Notes how much is done: not all that was to be done comes about.
    pub fn set_done(&self, work: u64) {
        self.done.store(work, Ordering::Relaxed);
    }

    /// Notes how much is to be done.
    pub fn set_total(&self, work: u64) {
        self.total.store(work, Ordering::Relaxed);
    }

    /// Notes that so much is to be done from now on, unless whoever makes several runs has noted
    /// more.
    pub fn expect(&self, work: u64) {
        self.total.fetch_max(self.done().saturating_add(work), Ordering::Relaxed);
    }

    /// Notes that so much more is to be done than was noted.
    pub fn expect_more(&self, work: u64) {
        self.total.fetch_add(work, Ordering::Relaxed);
    }

    /// Notes which part of the work is under way; an empty name, that none is.
    pub fn begin_part(&self, name: impl Into<String>) {
        *self.part.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }
}
