//! What a machine records for a timeline, if the caller asked for one.

use crate::design::{Design, FenceKind};
use crate::machine::Machine;
use crate::recorder::Part;
use crate::timeline::{Asked, Awaits, Happening, Recorded, Timeline};
use crate::units::{CoreId, Cycle, TxId};

impl<D: Design> Machine<D> {
    /// Begins to record a timeline of the part of the run that was asked for.
    pub(crate) fn record_timeline(&mut self, asked: Asked) {
        let settings = &self.below.shape.config.controller;
        let (controllers, slots) = (settings.count as usize, settings.wpq as usize);
        let timeline = Timeline::new(asked, self.cores.cores(), controllers, slots);
        self.below.memory.timeline = Some(Box::new(timeline));
    }

    /// Starts the timeline with the measured region.
    pub(super) fn start_timeline(&mut self) {
        let Some(timeline) = &mut self.below.memory.timeline else { return };
        let part = timeline.start(self.started);
        self.record_part(&part);
    }

    /// Tells the timeline that a crash point has passed.
    pub(super) fn pass_on_timeline(&mut self, point: u64, at: Cycle) {
        let timeline = self.below.memory.timeline.as_mut();
        if let Some(part) = timeline.and_then(|timeline| timeline.pass(point, at)) {
            self.record_part(&part);
        }
    }

    /// Has cores and banks record a part of the run.
    fn record_part(&mut self, part: &Part) {
        self.below.memory.record_banks(part);
        for (_, core) in self.cores.iter_mut() {
            core.timing.waits.get_or_insert_default().open(part);
        }
    }

    /// Records a core's flush or fence.
    #[inline]
    pub(super) fn note_fence(&mut self, id: CoreId, kind: FenceKind, at: Cycle) {
        let Some(timeline) = &mut self.below.memory.timeline else { return };
        timeline.at(
            at,
            match kind {
                FenceKind::Flush(line, _, how) => Happening::Flush(id, line, how),
                FenceKind::Order => Happening::Fence(id, Awaits::Order),
                FenceKind::Durable => Happening::Fence(id, Awaits::Durability),
            },
        );
    }

    /// Records that a core hears of the abort of its transaction.
    pub(super) fn note_abort(&mut self, id: CoreId, tx: Option<TxId>, at: Cycle) {
        if let (Some(timeline), Some(tx)) = (&mut self.below.memory.timeline, tx) {
            timeline.at(at, Happening::Aborted(id, tx));
        }
    }

    /// Records an event of the design.
    #[inline]
    pub(super) fn note_event(&mut self, at: Cycle, event: &D::Event) {
        if let Some(timeline) = &mut self.below.memory.timeline
            && timeline.is_open(at)
        {
            timeline.at(at, Happening::Design(self.design.show_event(event)));
        }
    }

    /// Ends the timeline and returns it, if one was asked for.
    pub(crate) fn take_timeline(&mut self) -> Option<Recorded> {
        let timeline = self.below.memory.timeline.take()?;
        let clocks = self.cores.iter().map(|(_, core)| core.timing.clock());
        let end = clocks.max().expect("a machine has cores").max(self.below.memory.now());
        let mut others = self.below.memory.take_bank_uses();
        for (id, core) in self.cores.iter_mut() {
            if let Some(mut waits) = core.timing.waits.take() {
                others.join(waits.take().map(|stall| Happening::Wait(id, stall)));
            }
        }
        Some(timeline.finish(end, others))
    }
}
