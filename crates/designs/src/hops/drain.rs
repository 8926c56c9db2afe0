//! Draining: which entry a persist buffer sends next, what it waits for, and what an
//! acknowledgement sets free.

use model::controller::Notify;
use model::device::Write;
use model::units::{CoreId, Cycle, Line};

use super::buffer::{Buffer, Dependence, Entry, State};
use super::{Drain, Floor, Hops, HopsEvent};

/// What a buffer finds when it looks for an entry to send.
enum Next {
    Entry(usize),
    /// An entry that waits for another core's epoch.
    Blocked(usize),
    Nothing,
}

impl Hops {
    /// Has a buffer look for an entry to send, if it has any and does not look by then anyway.
    pub(super) fn kick(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        let buffer = &self.buffers[core];
        let at = at.max(buffer.next_send);
        if buffer.unsent == 0 || buffer.blocked || buffer.drain_at.is_some_and(|due| due <= at) {
            return;
        }
        // The dependences of an entry, too, are known only when its core has the lines.
        let at = match self.next(core) {
            Next::Entry(index) | Next::Blocked(index) => at.max(buffer.entries[index].leaves),
            Next::Nothing => return,
        };
        if buffer.drain_at.is_some_and(|due| due <= at) {
            return;
        }
        self.buffers[core].drain_at = Some(at);
        below.at(at, HopsEvent::Drain(core));
    }

    pub(super) fn drain(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        if self.buffers[core].drain_at != Some(at) {
            // There was reason to look earlier, so this look is out of date.
            return;
        }
        self.buffers[core].drain_at = None;
        self.polled.refresh(at, &self.buffers);
        match self.next(core) {
            // The entry has taken in a store that leaves later.
            Next::Entry(index) | Next::Blocked(index)
                if self.buffers[core].entries[index].leaves > at =>
            {
                self.kick(core, at, below);
            }
            Next::Entry(index) => {
                self.send(core, index, at, below);
                self.kick(core, at, below);
                self.arm_timer(core, at, below);
            }
            Next::Blocked(index) => self.block(core, index, at, below),
            Next::Nothing => self.arm_timer(core, at, below),
        }
    }

    fn next(&self, core: CoreId) -> Next {
        let buffer = &self.buffers[core];
        let Some(oldest) = buffer.entries.front().map(|entry| entry.epoch) else {
            return Next::Nothing;
        };
        let held = buffer.entries.iter().take(self.params.entries as usize).enumerate();
        let open = |epoch| epoch == oldest || !self.rules.oldest_epoch_first;
        for (index, entry) in held.take_while(|(_, entry)| open(entry.epoch)) {
            if entry.state != State::Unsent
                || self.rules.line_in_order && buffer.is_overtaking(index)
            {
                continue;
            }
            if !self.is_wanted(buffer, entry) {
                return Next::Nothing;
            }
            if self.rules.wait_for_dependences && self.unsatisfied(core, entry.epoch).is_some() {
                return Next::Blocked(index);
            }
            return Next::Entry(index);
        }
        Next::Nothing
    }

    /// Whether there is a reason to send an entry now.
    fn is_wanted(&self, buffer: &Buffer, entry: &Entry) -> bool {
        let eager = self.params.drain == Drain::Eager;
        let full = buffer.entries.len() as u64 > self.params.entries;
        eager && entry.epoch < buffer.epoch
            || entry.epoch <= buffer.requested
            || buffer.unsent as u64 >= self.params.threshold
            || buffer.overdue
            || full
    }

    /// The first dependence that an epoch of a core still waits for.
    fn unsatisfied(&self, core: CoreId, epoch: u64) -> Option<&Dependence> {
        let dependences = &self.buffers[core].dependences;
        let mut own = dependences.iter().take_while(|dependence| dependence.epoch <= epoch);
        own.find(|dependence| !self.polled.satisfies(dependence))
    }

    fn send(&mut self, core: CoreId, index: usize, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        let entry = &mut buffer.entries[index];
        entry.state = State::Sent;
        buffer.unsent -= 1;
        buffer.overdue = false;
        buffer.next_send = at + 1;
        let Entry { line, data, mask, class, stamp, .. } = *entry;
        let write = Write { line, data, mask, class };
        below.send_direct(at + self.path, write, Notify::Design(HopsEvent::Durable(core, stamp)));
    }

    /// Blocks a buffer whose entry waits for other cores' epochs, and asks for these to be sent.
    fn block(&mut self, core: CoreId, index: usize, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        buffer.blocked = true;
        let Entry { epoch, stamp, .. } = buffer.entries[index];
        self.counts.waits += u64::from(stamp > buffer.waited);
        buffer.waited = buffer.waited.max(stamp);
        let waits: Vec<Dependence> = buffer
            .dependences
            .iter()
            .filter(|dependence| dependence.epoch <= epoch && !self.polled.satisfies(dependence))
            .copied()
            .collect();
        let mut known = true;
        for Dependence { on, until, .. } in waits {
            known &= self.buffers[on].durable_epoch() >= until;
            if until > self.buffers[on].requested {
                below.at(at + self.path, HopsEvent::Asked(on, until));
            }
        }
        if known {
            // The epochs are durable already, which the next read of the vector will show.
            self.look_again(core, at, below);
        }
    }

    /// Has the blocked buffers look at the global vector, which has changed, when it is read next.
    pub(super) fn tell_blocked(&mut self, at: Cycle, below: &mut Floor) {
        for core in (0..self.buffers.cores()).map(CoreId) {
            if self.buffers[core].blocked {
                self.look_again(core, at, below);
            }
        }
    }

    fn look_again(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        let at = self.polled.next(at).max(buffer.next_send);
        buffer.blocked = false;
        // Nothing else that happens until then lets the buffer send anything.
        buffer.next_send = at;
        buffer.drain_at = Some(at);
        below.at(at, HopsEvent::Drain(core));
    }

    pub(super) fn acknowledged(&mut self, core: CoreId, stamp: u64, at: Cycle, below: &mut Floor) {
        self.polled.refresh(at, &self.buffers);
        let buffer = &mut self.buffers[core];
        let before = buffer.durable_epoch();
        let index = buffer.position(stamp);
        let entry = buffer.entries.remove(index).expect("it was found");
        let advanced = buffer.durable_epoch() > before;
        self.forget(entry.line);
        if advanced {
            self.tell_blocked(at, below);
        }
        for other in (0..self.buffers.cores()).map(CoreId) {
            self.wake_if_it_may_go_on(other, at, below);
        }
        let buffer = &mut self.buffers[core];
        if buffer.entries.is_empty()
            && let Some(drained) = buffer.fence.take()
        {
            below.wake(core, at.max(drained));
        }
        self.kick(core, at, below);
    }

    /// Counts one entry of a line less.
    fn forget(&mut self, line: Line) {
        let left = self.buffered.get_mut(&line).expect("an entry was counted");
        *left -= 1;
        if *left == 0 {
            self.buffered.remove(&line);
        }
    }

    /// Wakes a load or store when there is room and the older entries of its line are gone.
    pub(super) fn wake_if_it_may_go_on(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        let buffer = &self.buffers[core];
        if !buffer.store_waits && buffer.fill_waits.is_none() {
            return;
        }
        let full = buffer.store_waits && buffer.entries.len() as u64 > self.params.entries;
        let older = buffer.fill_waits.is_some_and(|(line, stamp)| {
            let mut entries = self.buffers.iter().flat_map(|(_, buffer)| &buffer.entries);
            entries.any(|entry| entry.line == line && entry.stamp <= stamp)
        });
        if !full && !older {
            let buffer = &mut self.buffers[core];
            (buffer.store_waits, buffer.fill_waits) = (false, None);
            match std::mem::take(&mut buffer.load_waits) {
                true => below.wake_load(core, at),
                false => below.wake(core, at),
            }
        }
    }

    pub(super) fn arm_timer(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        if !buffer.timer && buffer.unsent > 0 {
            buffer.timer = true;
            // A buffer that reads the global vector next at `next_send` sends nothing before.
            let from = at.0.max(buffer.next_send.0.saturating_sub(1));
            below.at(Cycle(from) + self.params.interval, HopsEvent::Timer(core));
        }
    }
}
