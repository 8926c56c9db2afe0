//! Where programs wait for each other: locks, which are first come, first served, and turns, which
//! repeat the order in which the programs went on when they were recorded.

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
    /// When the store that last gave the lock back became visible.
    free_since: Cycle,
    waiting: VecDeque<CoreId>,
}

impl Locks {
    /// Takes a lock and returns since when it was free, or queues the core for it if it is taken.
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

    /// Gives a lock back with a store that is visible at `at`, and returns the core that has it
    /// now, if one waited.
    pub fn release(&mut self, core: CoreId, lock: LockId, at: Cycle) -> Option<CoreId> {
        let lock = &mut self.locks[lock.0 as usize];
        assert!(
            lock.holder == Some(core),
            "{core} gives back a lock that it does not have: a program does so only for what it \
             took, and a design wakes a core once for each WAIT"
        );
        lock.free_since = at;
        lock.holder = lock.waiting.pop_front();
        lock.holder
    }
}

/// Turns, numbered from 0 on: each begins when the one before it is passed on.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    now: u64,
    /// When the present turn began.
    since: Cycle,
    waiting: Vec<(CoreId, u64)>,
}

impl Turns {
    /// Takes a turn and returns since when it runs, or queues the core for it if it has not begun.
    pub fn take(&mut self, core: CoreId, turn: u64) -> Option<Cycle> {
        if turn <= self.now {
            return Some(self.since);
        }
        self.waiting.push((core, turn));
        None
    }

    /// The cores that wait for their turns.
    pub fn waiting(&self) -> impl Iterator<Item = CoreId> {
        self.waiting.iter().map(|&(core, _)| core)
    }

    /// Begins the next turn, and returns the core that waits for it, if any.
    pub fn pass(&mut self, at: Cycle) -> Option<CoreId> {
        self.now += 1;
        self.since = at;
        let next = self.waiting.iter().position(|&(_, turn)| turn == self.now)?;
        Some(self.waiting.swap_remove(next).0)
    }
}

/// Returns where a lock lies: a line of its own in volatile memory.
pub fn lock_line(lock: LockId) -> Ptr {
    Ptr::to(DRAM_BASE + u64::from(lock.0) * LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_begins_when_the_one_before_is_passed_on() {
        let mut turns = Turns::default();
        let (first, second) = (CoreId(0), CoreId(1));
        assert_eq!(turns.take(first, 0), Some(Cycle(0)));
        assert_eq!((turns.take(second, 2), turns.take(first, 1)), (None, None));
        assert_eq!(turns.pass(Cycle(5)), Some(first));
        assert_eq!(turns.pass(Cycle(7)), Some(second));
        assert_eq!(turns.pass(Cycle(9)), None);
        assert_eq!(turns.take(first, 3), Some(Cycle(9)), "nobody waited");
    }
}
