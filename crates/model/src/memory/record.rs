//! The controllers' timeline, the records of their banks, and their counts.

use super::Memory;
use crate::meters::Meters;
use crate::recorder::{Part, Record};
use crate::timeline::Happening;
use crate::units::Cycle;
use crate::usage::Usage;

impl<E: Copy> Memory<E> {
    /// Returns the current time ([`Memory::pass`]).
    pub fn now(&self) -> Cycle {
        Cycle(self.now)
    }

    /// Has every bank record what it does.
    pub(crate) fn record_banks(&mut self, part: &Part) {
        for controller in &mut self.controllers {
            controller.pm.banks.record(part);
            controller.dram.banks.record(part);
        }
    }

    /// Returns what the banks recorded.
    pub(crate) fn take_bank_uses(&mut self) -> Record<Happening> {
        let mut all = Record::default();
        for (index, controller) in self.controllers.iter_mut().enumerate() {
            let (pm, dram) = (&mut controller.pm.banks, &mut controller.dram.banks);
            all.join(pm.take_uses().map(|used| Happening::Bank(index, used)));
            all.join(dram.take_uses().map(|used| Happening::VolatileBank(index, used)));
        }
        all
    }

    /// Returns the sum of what the controllers and their persistent memories counted.
    pub fn meters(&self) -> Meters {
        let mut sum = Meters::default();
        for controller in &self.controllers {
            sum.add(&controller.pm.meters);
        }
        sum
    }

    /// Returns how busy the controllers and their memories were up to `at`.
    pub fn usage(&self, at: Cycle) -> Usage {
        let mut each = self.controllers.iter().map(|controller| controller.usage_until(at));
        let mut sum = each.next().expect("there is a controller");
        each.for_each(|usage| sum.join(usage));
        sum
    }

    /// Forgets what was counted, because the measured region begins at `at`. Wear stays.
    pub fn reset_meters(&mut self, at: Cycle) {
        for controller in &mut self.controllers {
            controller.restart_usage(at);
            let meters = &mut controller.pm.meters;
            *meters = Meters { wear_max: meters.wear_max, ..Meters::default() };
        }
    }
}
