//! The memory controllers: the ordering point, through which every write becomes durable.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use slab::Slab;

use crate::agenda::Agenda;
use crate::calendar::Queue;
use crate::config::{Config, Domain, Scheduling};
use crate::contents::Contents;
use crate::controller::{Accepted, Controller, LATE_READS, Notify, Room, Sent, Slot, Unsent, Way};
use crate::device::{DramDevice, PmDevice, Read, Write};
use crate::event::Event;
use crate::image::apply_masked;
use crate::timeline::Timeline;
use crate::units::{CoreId, Cycle, LINE_BYTES, Line};
use crate::usage::Usage;

mod arrivals;
mod drain;
mod record;
mod room;

/// Memory as the caches and designs see it: all controllers, and the bytes that survive.
pub struct Memory<E> {
    durable: Contents,
    controllers: Vec<Controller<E>>,
    flights: Slab<Sent<E>>,
    /// For each line with writes on the way from the caches: when the last of them arrives.
    arrivals: FxHashMap<Line, arrivals::Arrival>,
    interleave: u64,
    wpq: usize,
    high: usize,
    low: usize,
    burst: u64,
    first_ready: bool,
    frontend: u64,
    backend: u64,
    writebacks: usize,
    /// The most cycles that jitter adds to a write's way.
    jitter: u64,
    /// The time before which no request asks for banks and buses any more.
    now: u64,
    domain: Domain,
    /// Lines that a design gave since the last [`Memory::take_given`].
    given: Vec<Line>,
    /// What is to be notified of accepted writes of cores; [`Memory::take_accepted`] takes it.
    accepted: Vec<Notify<E>>,
    /// The number of the design's events that wait for room, over all controllers.
    designs_waiting: usize,
    /// The cores that have waited for a buffer for write-backs and will look next, with their
    /// numbers; and the number of the last that has begun to wait.
    looking: Vec<(u64, CoreId)>,
    have_waited: u64,
    /// The number of writes sent so far.
    sent: u64,
    /// The record of what happens and when, if the run keeps a timeline.
    pub timeline: Option<Box<Timeline>>,
}

impl<E: Copy> Memory<E> {
    /// Returns controllers with empty queues over memories of zeros.
    ///
    /// # Errors
    /// When the host has no address space for the memories.
    pub fn new(config: &Config) -> std::io::Result<Memory<E>> {
        let settings = &config.controller;
        let domain = settings.domain;
        let share = |percent: u64| (settings.wpq * percent / 100) as usize;
        let controller = || -> std::io::Result<Controller<E>> {
            let before = [0; LINE_BYTES as usize];
            let slot = Slot { write: None, before, notify: Vec::new(), programming: None };
            Ok(Controller {
                pm: PmDevice::new(config, domain == Domain::Media)?,
                dram: DramDevice::new(config),
                slots: vec![slot; settings.wpq as usize],
                free: (0..settings.wpq as usize).rev().collect(),
                unsent: Unsent::default(),
                waiting: VecDeque::new(),
                reserved: Vec::new(),
                reads: Queue::new(settings.read_queue),
                dram_writes: Queue::new(settings.wpq),
                late_reads: Vec::new(),
                late_reads_max: LATE_READS,
                draining: false,
                drained: 0,
                drain_at: None,
                ready_at: Cycle(0),
                waits_for_bank: false,
                leaving: None,
                beside: 0,
                evicted: 0,
                cores_waiting: Vec::new(),
                designs_waiting: VecDeque::new(),
                usage: Usage::new(settings.wpq),
            })
        };
        Ok(Memory {
            durable: Contents::new(0, config.pm.capacity)?,
            controllers: (0..settings.count).map(|_| controller()).collect::<Result<_, _>>()?,
            flights: Slab::new(),
            arrivals: FxHashMap::default(),
            interleave: settings.interleave,
            wpq: settings.wpq as usize,
            high: share(settings.high).max(1),
            low: share(settings.low),
            burst: settings.burst,
            first_ready: settings.policy == Scheduling::FrFcfs,
            frontend: config.cycles(settings.frontend),
            backend: config.cycles(settings.backend),
            writebacks: settings.writebacks as usize,
            jitter: config.cycles(settings.jitter),
            now: 0,
            domain,
            given: Vec::new(),
            accepted: Vec::new(),
            designs_waiting: 0,
            looking: Vec::new(),
            have_waited: 0,
            sent: 0,
            timeline: None,
        })
    }

    /// Makes a copy of `contents` the bytes of the memory, as if it had always held them.
    ///
    /// # Errors
    /// When the host has no address space for it.
    pub(crate) fn install(&mut self, contents: &Contents) -> std::io::Result<()> {
        self.durable = contents.copy()?;
        Ok(())
    }

    /// Returns the bytes that survive a power failure now. Only controllers change them.
    pub fn durable(&self) -> &Contents {
        &self.durable
    }

    /// Tells the host that a line will be written soon. It changes nothing but the host's time.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        self.durable.prefetch(line);
    }

    /// Returns the index of a line's controller.
    pub fn controller_of(&self, line: Line) -> usize {
        if self.controllers.len() == 1 {
            return 0;
        }
        (line.address() / self.interleave % self.controllers.len() as u64) as usize
    }

    /// Sets the time to `now`: no later request asks for banks and buses before it.
    #[inline]
    pub fn pass(&mut self, now: Cycle) {
        debug_assert!(now.0 >= self.now, "time passes");
        self.now = now.0;
    }

    /// Reads a line whose request reaches its controller at `at`; returns when the answer leaves.
    pub fn read(&mut self, at: Cycle, line: Line) -> Cycle {
        let index = self.controller_of(line);
        let reserved = self.controllers[index].is_reserved(line);
        self.read_from(at, line, reserved)
    }

    /// Reads the line from the queue or the device, although a slot may be reserved for it.
    pub fn read_beneath(&mut self, at: Cycle, line: Line) -> Cycle {
        self.read_from(at, line, false)
    }

    fn read_from(&mut self, at: Cycle, line: Line, reserved: bool) -> Cycle {
        let index = self.controller_of(line);
        let controller = &mut self.controllers[index];
        let comes = at.0 + self.frontend;
        let (place, start) = controller.reads.first_free(comes);
        let read = if !line.is_persistent() {
            controller.dram.read(start, line, self.now)
        } else if reserved || controller.holds_whole(line) {
            controller.pm.meters.reads += 1;
            controller.pm.meters.reads_forwarded += 1;
            Read { start, done: start, opens: false }
        } else {
            controller.pm.read(start, line, self.now)
        };
        if read.start > comes {
            controller.expect_read(comes, read.start, self.now);
        }
        let done = read.done + self.backend;
        controller.reads.take(place, start, read.done, self.now);
        let usage = &mut controller.usage;
        let reads = if line.is_persistent() { &mut usage.pm_reads } else { &mut usage.dram_reads };
        reads.add(done - at.0);
        Cycle(done)
    }

    /// Writes a line of volatile memory that reaches its controller at `at`; returns when the
    /// controller has taken it into a queue, which is as long as the write-pending queue. The write
    /// is posted: its sender waits for no more than that.
    pub fn write_volatile(&mut self, at: Cycle, line: Line) -> Cycle {
        let index = self.controller_of(line);
        let controller = &mut self.controllers[index];
        let (place, taken) = controller.dram_writes.first_free((at + self.frontend).0);
        let done = controller.dram.write(taken, line, self.now);
        controller.dram_writes.take(place, taken, done, self.now);
        Cycle(taken)
    }

    /// Sends a write of the caches. It reaches its controller at `at`, but not before an earlier
    /// write of the same line does.
    pub fn send(
        &mut self,
        at: Cycle,
        write: Write,
        notify: Notify<E>,
        agenda: &mut Agenda<Event<E>>,
    ) {
        self.send_by(Way::Caches, at, (write, notify), agenda);
    }

    /// Sends a write over a design's own path, so that it reaches its controller at `at`.
    pub fn send_direct(
        &mut self,
        at: Cycle,
        write: Write,
        notify: Notify<E>,
        agenda: &mut Agenda<Event<E>>,
    ) {
        self.send_by(Way::Direct, at, (write, notify), agenda);
    }

    /// Sends a write on one of the ways to its controller, which it reaches at `at`; from the
    /// caches not before an earlier write of the same line does.
    pub(crate) fn send_by(
        &mut self,
        way: Way,
        at: Cycle,
        (write, notify): (Write, Notify<E>),
        agenda: &mut Agenda<Event<E>>,
    ) {
        let at = if way == Way::Direct { at } else { self.follow(at, write.line) };
        self.durable.prefetch(write.line);
        self.sent += 1;
        let controller = self.controller_of(write.line);
        self.controllers[controller].evicted += usize::from(way == Way::Evicted);
        let write = self.flights.insert(Sent { write, notify, way, at, number: self.sent });
        agenda.enter(at + self.frontend, Event::Arrive { controller, write });
    }

    /// Whether a write of the line is under way, or accepted and not durable.
    pub(crate) fn is_under_way(&self, line: Line) -> bool {
        let controller = &self.controllers[self.controller_of(line)];
        self.arrivals.contains_key(&line)
            || controller.waiting.iter().any(|sent| sent.write.line == line)
            || self.domain == Domain::Media && controller.slot_of(line).is_some()
    }

    /// Whether a write that reaches its controller now would be accepted at once.
    pub fn has_room(&self, line: Line) -> bool {
        let controller = &self.controllers[self.controller_of(line)];
        controller.waiting.is_empty() && controller.room_for(line).is_some()
    }

    /// Whether a write of the line waits in its controller's queue, which another write would join.
    pub fn is_queued(&self, line: Line) -> bool {
        self.controllers[self.controller_of(line)].joins(line).is_some()
    }

    /// Whether an event may make something durable.
    pub(crate) fn makes_durable(&self, event: &Event<E>) -> bool {
        match *event {
            Event::Arrive { controller, write } => {
                let write = &self.flights[write].write;
                let controller = &self.controllers[controller];
                let is_settled = self.domain != Domain::Media || write.mask == 0;
                controller.waiting.is_empty() && is_settled && controller.takes(write).is_some()
            }
            Event::Accept { .. } => self.domain != Domain::Media,
            Event::Programmed { .. } | Event::Design(_) => true,
            Event::Drain { .. }
            | Event::Free { .. }
            | Event::Acknowledge { .. }
            | Event::Fenced { .. }
            | Event::Announce { .. } => false,
        }
    }

    /// Lets a write reach its controller, which accepts it or has it wait for room.
    pub fn arrive(
        &mut self,
        at: Cycle,
        index: usize,
        write: usize,
        agenda: &mut Agenda<Event<E>>,
    ) -> Option<Accepted<E>> {
        let sent = self.flights.remove(write);
        let line = sent.write.line;
        if sent.way != Way::Direct {
            self.came(at, line);
        }
        let controller = &mut self.controllers[index];
        controller.evicted -= usize::from(sent.way == Way::Evicted);
        if controller.waiting.is_empty()
            && let Some(room) = controller.takes(&sent.write)
        {
            return self.accept_sent(at, index, &sent, room, agenda);
        }
        controller.waiting.push_back(sent);
        self.kick(at, index, agenda);
        None
    }

    /// Accepts the first of the writes that wait at a controller, if there is room for it.
    pub fn accept_waiting(
        &mut self,
        at: Cycle,
        index: usize,
        agenda: &mut Agenda<Event<E>>,
    ) -> Option<Accepted<E>> {
        let controller = &mut self.controllers[index];
        let room = controller.takes(&controller.waiting.front()?.write)?;
        let sent = controller.waiting.pop_front()?;
        let accepted = self.accept_sent(at, index, &sent, room, agenda);
        self.offer_room(at, index, agenda);
        accepted
    }

    /// Gives a write to its controller in this moment if the controller has room. Returns whether
    /// it had. A design that sits beside the controller calls this from its own events.
    pub fn give_if_room(
        &mut self,
        at: Cycle,
        write: &Write,
        agenda: &mut Agenda<Event<E>>,
    ) -> bool {
        let index = self.controller_of(write.line);
        let controller = &self.controllers[index];
        if !controller.waiting.is_empty() {
            return false;
        }
        let Some(room) = controller.takes(write) else { return false };
        self.accept_given(at, index, write, room, agenda);
        true
    }

    fn accept_given(
        &mut self,
        at: Cycle,
        index: usize,
        write: &Write,
        room: Room,
        agenda: &mut Agenda<Event<E>>,
    ) {
        assert!(self.domain != Domain::Media, "what a controller accepts is durable");
        self.given.push(write.line);
        self.accept(at, index, (write, None), room, Notify::Nobody, agenda);
    }

    /// Takes a slot of a line's controller out of the write-pending queue for a write that a design
    /// keeps there itself: a whole line that must not reach memory yet, and from which reads are
    /// answered. Returns false if no slot is free, or if writes wait for one. Reserved slots count
    /// as taken when the controller decides whether it has to drain its queue.
    pub fn reserve(&mut self, at: Cycle, line: Line, agenda: &mut Agenda<Event<E>>) -> bool {
        let index = self.controller_of(line);
        let controller = &mut self.controllers[index];
        let slot = if controller.waiting.is_empty() { controller.free.pop() } else { None };
        controller.reserved.extend(slot.map(|slot| (line, slot)));
        controller.note_slots(at);
        if let (Some(timeline), Some(slot)) = (&mut self.timeline, slot) {
            timeline.queue((index, slot), at, line, None);
        }
        self.kick(at, index, agenda);
        slot.is_some()
    }

    /// Counts a write that a design puts into a slot that it has reserved, in place of an older
    /// write of the line. The new write has come over the bus like any other, and the older one
    /// goes no further.
    pub fn count_replaced(&mut self, write: &Write) {
        let index = self.controller_of(write.line);
        self.controllers[index].pm.count(write);
    }

    /// Gives back the slot that was reserved first for a line. If `write` is some write, the
    /// controller accepts it in this moment, even if other writes wait for room.
    ///
    /// # Panics
    /// When no slot is reserved for the line.
    pub fn unreserve(
        &mut self,
        at: Cycle,
        line: Line,
        write: Option<Write>,
        agenda: &mut Agenda<Event<E>>,
    ) {
        let index = self.controller_of(line);
        let controller = &mut self.controllers[index];
        let place = controller.reserved.iter().position(|&(other, _)| other == line);
        let (_, slot) = controller.reserved.remove(place.expect("a slot is reserved"));
        controller.free.push(slot);
        controller.note_slots(at);
        if let Some(timeline) = &mut self.timeline {
            timeline.forget(index, slot, at);
        }
        if let Some(write) = &write {
            let room = self.controllers[index].takes(write).expect("a slot was just given back");
            self.accept_given(at, index, write, room, agenda);
        }
        self.offer_room(at, index, agenda);
    }

    /// Forgets which lines a design gave, when the caller has no use for them.
    #[inline]
    pub(crate) fn forget_given(&mut self) {
        self.given.clear();
    }

    /// Returns the lines that a design gave ([`Memory::give_if_room`]) since the last call.
    pub fn take_given(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.given)
    }

    /// Takes what is to be notified of an accepted write of a core, once for each such write.
    #[inline]
    pub(crate) fn take_accepted(&mut self) -> Option<Notify<E>> {
        self.accepted.pop()
    }

    /// Accepts a write that was sent to the controller, not given to it.
    fn accept_sent(
        &mut self,
        at: Cycle,
        index: usize,
        sent: &Sent<E>,
        room: Room,
        agenda: &mut Agenda<Event<E>>,
    ) -> Option<Accepted<E>> {
        let Sent { write, notify, at: reached, number, .. } = sent;
        let waited = at.since(*reached + self.frontend);
        // A write of no bytes needs no room: it only follows others.
        if waited > 0 && write.mask != 0 {
            self.controllers[index].usage.waited.add(waited);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.arrived(index, (*reached, at), write, *number);
        }
        let durable = self.accept(at, index, (write, Some(*number)), room, *notify, agenda);
        durable.then_some(Accepted { line: write.line, notify: *notify })
    }

    /// Accepts a write, which has a number if it was sent. Returns whether it is durable now.
    fn accept(
        &mut self,
        at: Cycle,
        index: usize,
        (write, number): (&Write, Option<u64>),
        room: Room,
        notify: Notify<E>,
        agenda: &mut Agenda<Event<E>>,
    ) -> bool {
        let line = write.line;
        let controller = &mut self.controllers[index];
        if let Notify::Core(_) | Notify::Combining(_) = notify {
            self.accepted.push(notify);
        }
        if room == Room::None {
            return controller.follow(line, notify, self.domain);
        }
        controller.pm.count(write);
        let adr = self.domain != Domain::Media;
        let before = match adr {
            true => {
                let durable = self.durable.line_mut(line);
                let before = *durable;
                apply_masked(durable, &write.data, write.mask);
                before
            }
            false => controller.programming(line).unwrap_or(*self.durable.line(line)),
        };
        let slot = controller.place(write, &before, room);
        if room == Room::Free {
            controller.note_slots(at);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.queue((index, slot), at, line, Some((write, number)));
        }
        if !adr {
            controller.slots[slot].notify.push(notify);
        }
        self.kick(at, index, agenda);
        adr
    }

    /// Makes a write durable that the cells hold now (domain `media`). Returns its line, and adds
    /// its notifications to `told`, with those of the writes that joined it.
    pub fn programmed(
        &mut self,
        at: Cycle,
        index: usize,
        slot: usize,
        told: &mut Vec<Notify<E>>,
        agenda: &mut Agenda<Event<E>>,
    ) -> Line {
        let entry = &mut self.controllers[index].slots[slot];
        let write = entry.write.take().expect("a slot that is programmed holds a write");
        told.append(&mut entry.notify);
        apply_masked(self.durable.line_mut(write.line), &write.data, write.mask);
        self.free(at, index, slot, agenda);
        write.line
    }

    /// Returns the writes that the cells are in the middle of at `at` (domain `media`): any of a
    /// write's words may be there. A line has at most one, since its next write waits for the bank.
    pub fn being_programmed(&self, at: Cycle) -> impl Iterator<Item = &Write> {
        let slots = self.controllers.iter().flat_map(|controller| &controller.slots);
        let writes = slots
            .filter_map(|slot| slot.programming.zip(slot.write.as_ref()))
            .filter(|((start, end), _)| *start <= at.0 && at.0 <= *end)
            .map(|((_, end), write)| ((write.line.0, end), write, true));
        let mut before = None;
        in_order(writes.collect())
            .map(|(write, _)| write)
            .filter(move |write| before.replace(write.line) != Some(write.line))
    }

    /// Returns the writes that are not durable, those of one line in order, each with whether
    /// `takes` holds for all of its notifications: writes that wait for the cells (domain `media`),
    /// and writes that no controller has accepted yet.
    pub fn under_way(&self, takes: &dyn Fn(&Notify<E>) -> bool) -> Vec<(&Write, bool)> {
        let is_media = self.domain == Domain::Media;
        let slots = self.controllers.iter().flat_map(|controller| &controller.slots);
        let queued = slots.filter(|_| is_media).filter_map(|slot| {
            let write = slot.write.as_ref()?;
            // A write that is under way to the cells comes before those that are not.
            let end = slot.programming.map_or(u64::MAX, |(_, end)| end);
            Some(((end, write.line.0), write, slot.notify.iter().all(takes)))
        });
        let waiting = self.controllers.iter().flat_map(|controller| &controller.waiting);
        let flying = self.flights.iter().map(|(_, sent)| sent);
        let flying =
            flying.map(|sent| ((sent.at.0, sent.number), &sent.write, takes(&sent.notify)));
        let mut under_way: Vec<(&Write, bool)> = in_order(queued.collect()).collect();
        under_way.extend(waiting.map(|sent| (&sent.write, takes(&sent.notify))));
        under_way.extend(in_order(flying.collect()));
        under_way
    }

    /// Sends all queued writes to the cells, outside of time, so that they are counted.
    pub fn settle(&mut self, now: Cycle) {
        for controller in &mut self.controllers {
            controller.settle(now, &self.durable);
        }
    }
}

/// The key by which a write is sorted, the write, and whether its notifications pass a test.
type Keyed<'a> = ((u64, u64), &'a Write, bool);

/// Returns writes in the order of their keys; writes of equal keys keep their order. The function
/// is not generic over the design's events: one sort per design made up a fifth of all compiled
/// code.
fn in_order(mut writes: Vec<Keyed<'_>>) -> impl Iterator<Item = (&Write, bool)> {
    writes.sort_by_key(|&(key, ..)| key);
    writes.into_iter().map(|(_, write, takes)| (write, takes))
}

#[cfg(test)]
mod tests;
