//! What the controllers say for a timeline, and what their banks record.

use std::ops::Range;

use super::Memory;
use crate::recorder::Span;
use crate::timeline::Happening;
use crate::units::Cycle;

impl<E: Copy> Memory<E> {
    /// The time that it is ([`Memory::pass`]).
    pub fn now(&self) -> Cycle {
        Cycle(self.now)
    }

    /// Has every bank record what it does in a window of time.
    pub fn record_banks(&mut self, window: &Range<u64>) {
        for controller in &mut self.controllers {
            controller.pm.record_banks(window);
            controller.dram.record_banks(window);
        }
    }

    /// What the banks recorded.
    pub fn take_bank_uses(&mut self) -> Vec<Span<Happening>> {
        let mut spans = Vec::new();
        for (index, controller) in self.controllers.iter_mut().enumerate() {
            let own = controller.pm.take_bank_uses().into_iter();
            spans.extend(own.map(|span| span.map(|used| Happening::Bank(index, used))));
            let volatile = controller.dram.take_bank_uses().into_iter();
            spans
                .extend(volatile.map(|span| span.map(|used| Happening::VolatileBank(index, used))));
        }
        spans
    }
}
