//! Which writes, cores and designs wait for room at a controller, and how they hear that there is
//! some.

use super::Memory;
use crate::agenda::Agenda;
use crate::units::{CoreId, Cycle, Line};
use crate::wpq::{Event, Slot};

impl<E: Copy> Memory<E> {
    /// Has the design told, by an event of its own, when the controller of a line may have room
    /// again.
    pub fn when_room(&mut self, line: Line, event: E) {
        let index = self.controller_of(line);
        self.controllers[index].designs_waiting.push_back(event);
        self.designs_waiting += 1;
    }

    /// Whether a controller has more waiting write-backs than it has buffers for.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.controllers.iter().any(|controller| controller.backlog() >= self.writebacks)
    }

    /// Whether a controller has more waiting write-backs than it has buffers for. The core is then
    /// told when it may go on.
    pub fn congested(&mut self, core: CoreId) -> bool {
        for controller in &mut self.controllers {
            if controller.backlog() >= self.writebacks {
                controller.cores_waiting.push(core);
                return true;
            }
        }
        false
    }

    /// Notes how many lines of a design wait beside a controller. Returns the cores that waited for
    /// room for write-backs and no longer need to.
    pub fn wait_beside(&mut self, index: usize, lines: usize) -> Vec<CoreId> {
        self.controllers[index].beside = lines;
        self.unblocked(index)
    }

    /// Takes the cores that waited for room for write-backs and no longer need to.
    pub fn unblocked(&mut self, index: usize) -> Vec<CoreId> {
        let controller = &mut self.controllers[index];
        if controller.backlog() >= self.writebacks || controller.cores_waiting.is_empty() {
            return Vec::new();
        }
        std::mem::take(&mut controller.cores_waiting)
    }

    /// Frees a slot whose write the device took, which gives the controller room for another.
    pub fn free(&mut self, at: Cycle, index: usize, slot: usize, agenda: &mut Agenda<Event<E>>) {
        let controller = &mut self.controllers[index];
        let Slot { write, notify, programming } = &mut controller.slots[slot];
        (*write, *programming) = (None, None);
        notify.clear();
        controller.free.push(slot);
        controller.note_slots(at);
        if let Some(timeline) = &mut self.timeline {
            timeline.forget(index, slot, at);
        }
        self.offer_room(at, index, agenda);
    }

    /// Has a controller look at the write that has waited longest or, if none waits and a slot is
    /// free, at what a design has for it. A write may have room where no slot is free: if it joins
    /// an earlier one of its line, or has no bytes.
    pub(super) fn offer_room(&mut self, at: Cycle, index: usize, agenda: &mut Agenda<Event<E>>) {
        let controller = &self.controllers[index];
        match controller.waiting.front() {
            Some(first) if controller.takes(&first.write).is_some() => {
                agenda.enter(at, Event::Accept { controller: index });
            }
            None if !controller.free.is_empty() => self.offer_to_design(at, index, agenda),
            _ => (),
        }
    }

    fn offer_to_design(&mut self, at: Cycle, index: usize, agenda: &mut Agenda<Event<E>>) {
        if let Some(event) = self.controllers[index].designs_waiting.pop_front() {
            self.designs_waiting -= 1;
            agenda.enter(at, Event::Design(event));
        }
    }

    /// Gives the next event of the design that waits for room its turn, after another event of the
    /// design, if some controller still has room.
    #[inline]
    pub fn offer_more(&mut self, at: Cycle, agenda: &mut Agenda<Event<E>>) {
        // Nearly always no event waits.
        if self.designs_waiting > 0 {
            self.offer_room_everywhere(at, agenda);
        }
    }

    fn offer_room_everywhere(&mut self, at: Cycle, agenda: &mut Agenda<Event<E>>) {
        for index in 0..self.controllers.len() {
            let controller = &self.controllers[index];
            if !controller.free.is_empty() && controller.waiting.is_empty() {
                self.offer_to_design(at, index, agenda);
            }
        }
    }
}
