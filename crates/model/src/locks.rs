//! Locks of programs: who has which, and who waits, first come, first served.

use std::collections::VecDeque;

use crate::units::{CoreId, Cycle, DRAM_BASE, LINE_BYTES};
use crate::workload::{LockId, Ptr};

/// All locks of a machine.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    locks: Vec<Lock>,
}

#[derive(Clone, Debug, Default)]
struct Lock {
    holder: Option<CoreId>,
    /// When the store that gave it back last was visible.
    free_since: Cycle,
    waiting: VecDeque<CoreId>,
}

impl Locks {
    /// Takes a lock, or waits for it; since when it is free, if it is.
    pub fn take(&mut self, core: CoreId, lock: LockId) -> Option<Cycle> {
        let index = lock.0 as usize;
        if index >= self.locks.len() {
            self.locks.resize_with(index + 1, Lock::default);
        }
        let lock = &mut self.locks[index];
        assert_ne!(lock.holder, Some(core), "a program takes a lock once");
        if lock.holder.is_none() {
            lock.holder = Some(core);
            return Some(lock.free_since);
        }
        lock.waiting.push_back(core);
        None
    }

    /// Gives a lock back with a store that is visible at `at`; who has it now, if somebody waited.
    pub fn release(&mut self, core: CoreId, lock: LockId, at: Cycle) -> Option<CoreId> {
        let lock = &mut self.locks[lock.0 as usize];
        assert_eq!(lock.holder, Some(core), "a program gives back a lock that it has");
        lock.free_since = at;
        lock.holder = lock.waiting.pop_front();
        lock.holder
    }
}

/// Where a lock lies: a line of its own in volatile memory.
pub fn lock_line(lock: LockId) -> Ptr {
    Ptr::to(DRAM_BASE + u64::from(lock.0) * LINE_BYTES)
}
