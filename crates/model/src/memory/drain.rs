//! When a controller sends writes to the device, and which it sends.

use super::Memory;
use crate::agenda::Agenda;
use crate::config::Domain;
use crate::event::Event;
use crate::units::Cycle;

impl<E: Copy> Memory<E> {
    /// Has the controller look for a write to drain, unless it is going to look soon enough.
    pub(super) fn kick(&mut self, at: Cycle, index: usize, agenda: &mut Agenda<Event<E>>) {
        let floor = self.floor();
        let controller = &mut self.controllers[index];
        let pressed = controller.pressed(self.high, self.wpq);
        let wanted = pressed || controller.unsent.len() > floor;
        // A drain that reads have put off no longer waits for them once the controller is pressed.
        // A drain that waits for a bank looks again: the newest write's bank may be idle.
        let soonest = at.max(controller.ready_at);
        let hurries = pressed || controller.waits_for_bank;
        let due = controller.drain_at.is_some_and(|due| due <= soonest || !hurries);
        if wanted && !due {
            controller.look_again(soonest, index, false, agenda);
        }
    }

    /// Returns how many writes stay in the queue, to be joined by others, while the controller is
    /// not pressed.
    fn floor(&self) -> usize {
        if self.domain == Domain::Media { 0 } else { self.low }
    }

    /// Sends a write to the device, if it is the writes' turn.
    pub fn drain(&mut self, at: Cycle, index: usize, agenda: &mut Agenda<Event<E>>) {
        let (high, wpq, floor, burst) = (self.high, self.wpq, self.floor(), self.burst);
        if self.controllers[index].drain_at != Some(at) {
            // The drain was moved to another time after this event was entered.
            return;
        }
        if let Some(slot) = self.controllers[index].leaving.take() {
            self.free(at, index, slot, agenda);
        }
        let controller = &mut self.controllers[index];
        controller.drain_at = None;
        if controller.pressed(high, wpq) && !controller.draining {
            controller.draining = true;
            controller.drained = 0;
        }
        let enough = controller.unsent.len() <= floor;
        if enough && controller.drained >= burst || controller.unsent.is_empty() {
            controller.draining = false;
        }
        if controller.unsent.is_empty() || enough && !controller.draining {
            return;
        }
        // Reads come first: writes have their turn once every read that has come has begun.
        let turn = if controller.draining { 0 } else { controller.reads_until(at.0) };
        if turn > at.0 {
            controller.look_again(Cycle(turn), index, false, agenda);
            return;
        }
        let choice = controller.choose(at, self.first_ready);
        if choice.goes > at.0 {
            // The write waits for its bank in the queue, since a read might still want the bank.
            controller.look_again(Cycle(choice.goes), index, true, agenda);
            return;
        }
        let next = controller.send_one(at, index, choice, (self.domain, &self.durable), agenda);
        controller.drained += 1;
        controller.ready_at = next;
        controller.look_again(next, index, false, agenda);
    }
}
