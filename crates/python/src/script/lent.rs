//! What a hook is lent for as long as it lasts.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A place for what is lent, which Python may keep for longer.
pub(super) struct Lent<T>(AtomicPtr<T>);

/// Until it is dropped, also by a panic, something is lent.
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
    /// It is alive, and nobody else uses it, for as long as the loan is there. If others look at it
    /// meanwhile, it is only looked at.
    #[must_use]
    pub(super) unsafe fn lend(&self, thing: *mut T) -> Loan<'_, T> {
        self.0.store(thing, Ordering::Relaxed);
        Loan(self)
    }

    /// What is lent, for a method that changes nothing.
    ///
    /// # Errors
    /// That the hook has ended to which it was lent.
    pub(super) fn look(&self, name: &str) -> PyResult<&T> {
        // SAFETY: As of `get`.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }.ok_or_else(|| ended(name))
    }

    /// What is lent; a method asks for it once, after it has checked its arguments.
    ///
    /// # Errors
    /// That the hook has ended to which it was lent.
    #[expect(clippy::mut_from_ref, reason = "see SAFETY")]
    pub(super) fn get(&self, name: &str) -> PyResult<&mut T> {
        // SAFETY: A loan ends before what it points at goes, and whoever has that borrowed waits
        // for the hook. Methods run one at a time, under the global lock, and none has two of these
        // in use or hands one on.
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
