//! How a core waits, and what its waits are counted for.

use super::Core;
use crate::meters::Stall;
use crate::units::Cycle;

impl Core {
    /// Waits until `until`, for the given reason, and makes all that follows wait, too. Does
    /// nothing if the clock is at `until` already, even if the front is not: a caller that must
    /// hold back the front, too, drains.
    pub fn wait(&mut self, until: Cycle, stall: Stall) {
        let clock = self.clock();
        if until > clock {
            self.count_wait(clock.0, until.0, stall);
            self.front = until.0;
            self.used = 0;
        }
    }

    /// Counts the cycles that the clock advances by, and records them for a timeline. A fence or
    /// commit retires behind the loads before it, so that the wait for it is one for them at first.
    fn count_wait(&mut self, mut from: u64, until: u64, stall: Stall) {
        if matches!(stall, Stall::Fence | Stall::Commit) {
            let loads = self.before_barrier.clamp(from, until.max(from));
            self.count_wait_of(from, loads, Stall::LoadMiss);
            from = loads;
        }
        self.count_wait_of(from, until, stall);
    }

    fn count_wait_of(&mut self, from: u64, until: u64, stall: Stall) {
        self.stalls[stall as usize] += until.saturating_sub(from);
        if let Some(waits) = &mut self.waits
            && until > from
        {
            waits.record(from, until, stall);
        }
    }

    /// Keeps the next instruction from dispatching before `until`, for the given reason. Counts
    /// only the part of the wait beyond the clock, since the fence or commit costs the part before.
    pub(super) fn wait_to_dispatch(&mut self, until: u64, stall: Stall) {
        if until > self.front {
            self.count_wait(self.front.max(self.held), until, stall);
            self.front = until;
            self.used = 0;
        }
    }

    /// Keeps what others can see from happening before `until`, since a store waits for a fence or
    /// commit, or for room. Younger instructions dispatch meanwhile, unless the core dispatches in
    /// order.
    pub fn hold_until(&mut self, until: Cycle, stall: Stall) {
        if self.dispatches_in_order {
            return self.wait(until, stall);
        }
        self.count_wait(self.front.max(self.held), until.0, stall);
        self.held = self.held.max(until.0);
    }

    /// Lets the core go on at `at`, after a wait for the given reason.
    pub fn resume(&mut self, at: Cycle, stall: Stall) {
        match stall {
            Stall::LoadMiss => self.put_off(at, stall),
            Stall::StoreBuffer | Stall::LogFull => self.hold_until(at, stall),
            _ => self.wait(at, stall),
        }
    }

    /// Makes a load wait until `until` for its turn or its value. It dispatches later by the same
    /// time, so the front stays as far behind the clock as it was.
    fn put_off(&mut self, until: Cycle, stall: Stall) {
        if self.dispatches_in_order {
            return self.wait(until, stall);
        }
        let late = until.0.saturating_sub(self.clock().0);
        self.hold_until(until, stall);
        if late > 0 {
            self.front += late;
            self.used = 0;
        }
    }
}
