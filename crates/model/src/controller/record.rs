//! The controllers' timeline, the records of their banks, and their counts.

use super::Memory;
use crate::meters::Meters;
use crate::recorder::{Part, Span, shorter};
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
            controller.pm.record_banks(part);
            controller.dram.record_banks(part);
        }
    }

    /// Returns what the banks recorded and, if the window was too long to record all of it, how
    /// long a window could be.
    pub(crate) fn take_bank_uses(&mut self) -> (Vec<Span<Happening>>, Option<u64>) {
        let (mut spans, mut holds) = (Vec::new(), None);
        for (index, controller) in self.controllers.iter_mut().enumerate() {
            let (own, own_holds) = controller.pm.take_bank_uses();
            let (volatile, volatile_holds) = controller.dram.take_bank_uses();
            let own = own.into_iter().map(|span| span.map(|used| Happening::Bank(index, used)));
            let volatile = volatile.into_iter();
            let volatile =
                volatile.map(|span| span.map(|used| Happening::VolatileBank(index, used)));
            spans.extend(own.chain(volatile));
            holds = shorter(holds, shorter(own_holds, volatile_holds));
        }
        (spans, holds)
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
