//! Cores and designs that wait for room at a controller, and how they learn that there is some.

use super::Memory;
use crate::agenda::Agenda;
use crate::controller::{Controller, Slot};
use crate::event::Event;
use crate::units::{CoreId, Cycle, Line};

impl<E: Copy> Memory<E> {
    /// Enters the design's event when the line's controller may have room again.
    pub fn when_room(&mut self, line: Line, event: E) {
        let index = self.controller_of(line);
        self.controllers[index].designs_waiting.push_back(event);
        self.designs_waiting += 1;
    }

    /// Whether all buffers for write-backs of some controller are taken, or a core that has waited
    /// for one is about to look.
    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        !self.looking.is_empty()
            || self.controllers.iter().any(|controller| controller.backlog() >= self.writebacks)
    }

    /// Returns the number of a core that waited for a buffer and may look again now; none for other
    /// cores. After it has looked, the caller lets the next core look ([`Memory::next_to_look`]).
    pub fn looks(&mut self, core: CoreId) -> Option<u64> {
        let place = self.looking.iter().position(|&(_, other)| other == core)?;
        Some(self.looking.remove(place).0)
    }

    /// Whether all buffers for write-backs of some controller are taken, or meant for cores that
    /// have waited longer. If so, the core waits there until it may look; it keeps the number that
    /// it had.
    pub fn wait_if_congested(&mut self, core: CoreId, number: Option<u64>) -> bool {
        let meant = self.looking.len();
        let is_full = |controller: &Controller<E>| controller.backlog() + meant >= self.writebacks;
        let Some(index) = self.controllers.iter().position(is_full) else { return false };
        let number = number.unwrap_or_else(|| {
            self.have_waited += 1;
            self.have_waited
        });
        let waiting = &mut self.controllers[index].cores_waiting;
        let place = waiting.partition_point(|&(other, _)| other < number);
        waiting.insert(place, (number, core));
        true
    }

    /// Returns the cores that may look, after one has: it may have taken no buffer.
    pub fn next_to_look(&mut self) -> Vec<CoreId> {
        (0..self.controllers.len()).flat_map(|index| self.unblocked(index)).collect()
    }

    /// Sets how many of a design's lines wait beside a controller. Returns the cores that waited
    /// there for room for write-backs and no longer have to.
    pub fn wait_beside(&mut self, index: usize, lines: usize) -> Vec<CoreId> {
        self.controllers[index].beside = lines;
        self.unblocked(index)
    }

    /// Returns the cores that waited for room for write-backs and may look again: one for each
    /// buffer that is free and not meant for another, those first that have waited longest.
    pub fn unblocked(&mut self, index: usize) -> Vec<CoreId> {
        let controller = &mut self.controllers[index];
        if controller.cores_waiting.is_empty() {
            return Vec::new();
        }
        let room = self.writebacks.saturating_sub(controller.backlog() + self.looking.len());
        let cores = room.min(controller.cores_waiting.len());
        let before = self.looking.len();
        self.looking.extend(controller.cores_waiting.drain(..cores));
        self.looking[before..].iter().map(|&(_, core)| core).collect()
    }

    /// Empties the slot of a write that the device took, so that there is room for another.
    pub fn free(&mut self, at: Cycle, index: usize, slot: usize, agenda: &mut Agenda<Event<E>>) {
        let controller = &mut self.controllers[index];
        let Slot { write, notify, programming, .. } = &mut controller.slots[slot];
        (*write, *programming) = (None, None);
        notify.clear();
        controller.free.push(slot);
        controller.note_slots(at);
        if let Some(timeline) = &mut self.timeline {
            timeline.forget(index, slot, at);
        }
        self.offer_room(at, index, agenda);
    }

    /// Offers a controller's room to the write that has waited longest or, if none waits and a slot
    /// is free, to the design. A write may have room although no slot is free: in the slot of an
    /// earlier write of its line, or if it has no bytes.
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

    /// Offers the room that is left after an event of the design to the design's next event that
    /// waits for room.
    #[inline]
    pub(crate) fn offer_more(&mut self, at: Cycle, agenda: &mut Agenda<Event<E>>) {
        // Nearly always no event of the design waits.
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
