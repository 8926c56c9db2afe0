//! What a hook is lent for as long as the hook lasts.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A place for what is lent. Python may keep the place for longer.
pub(super) struct Lent<T>(AtomicPtr<T>);

/// Something is lent until this is dropped, also by a panic.
pub(super) struct Loan<'a, T>(&'a Lent<T>);

impl<T> Default for Lent<T> {
    fn default() -> Lent<T> {
        Lent(AtomicPtr::default())
    }
}

impl<T> Lent<T> {
    /// Lends something.
    ///
    /// # Safety
    /// The thing is alive for as long as the loan exists, and no other code uses it. If other code
    /// reads it meanwhile, the hook only reads it, too.
    #[must_use]
    pub(super) unsafe fn lend(&self, thing: *mut T) -> Loan<'_, T> {
        self.0.store(thing, Ordering::Relaxed);
        Loan(self)
    }

    /// Returns what is lent, for a method that changes nothing.
    ///
    /// # Errors
    /// When the hook to which it was lent has ended.
    pub(super) fn look(&self, name: &str) -> PyResult<&T> {
        // SAFETY: As in `get`.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }.ok_or_else(|| ended(name))
    }

    /// Returns what is lent. A method calls this once.
    ///
    /// # Errors
    /// When the hook to which it was lent has ended.
    #[expect(clippy::mut_from_ref, reason = "see SAFETY")]
    pub(super) fn get(&self, name: &str) -> PyResult<&mut T> {
        // SAFETY: A loan ends before what it points at goes, and the caller that has that borrowed
        // waits for the hook. Methods run one at a time, under the global lock, and none has two of
        // these in use or hands one on.
        unsafe { self.0.load(Ordering::Relaxed).as_mut() }.ok_or_else(|| ended(name))
    }
}

fn ended(name: &str) -> PyErr {
    PyRuntimeError::new_err(format!("`{name}` was lent to a hook that has ended"))
}

impl<T> Drop for Loan<'_, T> {
    fn drop(&mut self) {
        self.0.0.store(ptr::null_mut(), Ordering::Relaxed);
    }
}
