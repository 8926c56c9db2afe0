//! The stack of the host's thread, for hooks that cannot run on a coroutine's stack.
//!
//! Programs run on coroutines, and so do the hooks that they reach. An interpreter compares the
//! stack pointer with the bounds of its thread's stack (CPython from 3.14 on), and may need more
//! stack than a coroutine has.

use std::cell::Cell;
use std::ptr;

use corosensei::Yielder;

thread_local! {
    /// The yielder of the coroutine that runs on this thread, if its design runs hooks on the
    /// host's stack.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// Work that is carried to the host's stack. The thread stays the same.
struct Carried<F>(F);

// SAFETY: Nothing is sent to another thread: `on_parent_stack` asks for `Send` so that no reference
// to its yielder reaches the parent, where suspending would be wrong, and hooks have none.
unsafe impl<F> Send for Carried<F> {}

impl<R, F: FnOnce() -> R> Carried<F> {
    fn call(self) -> R {
        (self.0)()
    }
}

/// Notes that a coroutine runs on this thread from now on.
pub(crate) fn on_coroutine(yielder: &Yielder<(), ()>) {
    RUNNING.set(yielder);
}

/// Held while a coroutine is resumed. Its drop, also by a panic, notes that no coroutine runs on
/// this thread any more.
pub(crate) struct OnHost;

impl Drop for OnHost {
    fn drop(&mut self) {
        RUNNING.set(ptr::null());
    }
}

/// Runs `work` on the stack of the host's thread, also when a coroutine calls this. Only for a
/// design that says so ([`ON_HOST_STACK`](crate::design::Design::ON_HOST_STACK)).
pub fn on_host_stack<R>(work: impl FnOnce() -> R) -> R {
    let running = RUNNING.replace(ptr::null());
    if running.is_null() {
        return work();
    }
    let work = Carried(work);
    // SAFETY: `OnHost` clears `RUNNING` when a coroutine suspends or ends, so this coroutine runs,
    // and its yielder lives as long as it does.
    let result = unsafe { &*running }.on_parent_stack(move || work.call());
    RUNNING.set(running);
    result
}

#[cfg(test)]
mod tests {
    use corosensei::{Coroutine, CoroutineResult};

    use super::*;

    /// Returns an address on the stack that this is called on.
    #[inline(never)]
    fn here() -> usize {
        let local = 0_u8;
        ptr::from_ref(std::hint::black_box(&local)) as usize
    }

    /// Whether an address is a little below another, as that of a frame called from there is.
    fn is_below(address: usize, frame: usize) -> bool {
        (frame - 64 * 1024..frame).contains(&address)
    }

    #[test]
    fn work_of_a_coroutine_is_done_on_the_stack_of_whoever_resumed_it() {
        let mut coroutine = Coroutine::new(|yielder: &Yielder<(), ()>, ()| {
            on_coroutine(yielder);
            let seen = (here(), on_host_stack(here), on_host_stack(|| on_host_stack(here)));
            yielder.suspend(());
            on_coroutine(yielder);
            (seen, on_host_stack(here))
        });
        let mut resume = || {
            let _on_host = OnHost;
            coroutine.resume(())
        };
        let frame = here() + 1024;
        assert!(matches!(resume(), CoroutineResult::Yield(())));
        assert!(is_below(on_host_stack(here), frame), "no coroutine runs");
        let CoroutineResult::Return(((own, host, nested), again)) = resume() else {
            panic!("it has ended");
        };
        assert!(!is_below(own, frame), "a coroutine has a stack of its own");
        for address in [host, nested, again] {
            assert!(is_below(address, frame), "{address:#x} from {frame:#x}");
        }
    }

    #[test]
    fn a_panic_comes_to_whoever_asked_and_leaves_nothing_behind() {
        let mut coroutine = Coroutine::new(|yielder: &Yielder<(), ()>, ()| {
            on_coroutine(yielder);
            on_host_stack(|| std::panic::resume_unwind(Box::new("raised")));
        });
        let resumed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _on_host = OnHost;
            coroutine.resume(())
        }));
        let payload = resumed.map(drop).expect_err("it panics");
        assert_eq!(payload.downcast_ref(), Some(&"raised"));
        assert!(RUNNING.get().is_null());
    }
}
