//! The machine below a design: caches, controllers and the agenda, and a battery's last writes.

use crate::agenda::Agenda;
use crate::answers::Answers;
use crate::caches::Caches;
use crate::contents::View;
use crate::controller::{Notify, Way};
use crate::device::Write;
use crate::event::Event;
use crate::hooks::Progress;
use crate::image::{Image, PowerLoss};
use crate::memory::Memory;
use crate::meters::Class;
use crate::shape::Shape;
use crate::tlb::Tlbs;
use crate::units::{
    CoreId, Cycle, LINE_BYTES, Line, LineData, Page, PerCore, TxId, WORD_BYTES, bits,
};
use crate::workload::{Flush, Stop};

/// The machine below a design: caches, controllers, and the agenda for its timed events.
pub struct Below<E> {
    /// The caches.
    pub caches: Caches,
    /// The controllers, and the bytes that survive.
    pub memory: Memory<E>,
    /// The newest bytes, as coherent cores see them.
    pub view: View,
    /// The machine's sizes and latencies.
    pub shape: Shape,
    pub(crate) agenda: Agenda<Event<E>>,
    /// The cores' TLBs; empty unless page walks take time, by the design or by the machine.
    pub(crate) tlbs: Tlbs,
    /// Cores to be woken, and when.
    pub(crate) wakes: Vec<(CoreId, Cycle)>,
    /// Cores whose loads are to be woken, and when.
    pub(crate) load_wakes: Vec<(CoreId, Cycle)>,
    /// Cores that are to repeat a request, and when.
    pub(crate) retries: Vec<(CoreId, Cycle)>,
    /// Why the run cannot go on, if it cannot.
    pub(crate) stopped: Option<Stop>,
    /// Each core's writes that are not durable yet, for its fences.
    pub(crate) unacknowledged: PerCore<Unacknowledged>,
}

/// A core's writes that are not durable yet, and its flushes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unacknowledged {
    pub writes: u64,
    pub fenced: bool,
    pub last: Cycle,
    /// Its flushes that no controller has accepted yet, or whose answers are on their way.
    pub flushes: Answers,
}

impl<E: Copy> Below<E> {
    /// The time before which nothing can be due any more.
    pub fn now(&self) -> Cycle {
        self.agenda.now()
    }

    /// Enters an event of the design, due at `at`.
    pub fn at(&mut self, at: Cycle, event: E) {
        self.agenda.enter(at, Event::Design(event));
    }

    /// Lets a core go on at `at` for which a hook answered
    /// [`Wait`](crate::design::Progress::Wait), other than for a load. Each such answer needs
    /// exactly one wake. One that comes before its answer is kept, so one too many ends a later
    /// wait early.
    pub fn wake(&mut self, core: CoreId, at: Cycle) {
        self.wakes.push((core, at));
    }

    /// Lets a core have the value of a load at `at` for which
    /// [`load`](crate::design::Design::load) answered [`Wait`](crate::design::Progress::Wait). A
    /// fence or a commit of the core that came before the load may still wait then, which
    /// [`Below::wake`] ends.
    pub fn wake_load(&mut self, core: CoreId, at: Cycle) {
        self.load_wakes.push((core, at));
    }

    /// Lets a core repeat a request that was answered with a wait: for a translation, for a line to
    /// store to, or for an abort.
    pub fn retry(&mut self, core: CoreId, at: Cycle) {
        self.retries.push((core, at));
    }

    /// Tells a controller how many of the design's lines wait beside it for room. Cores that need
    /// room for write-backs wait for those lines as for any others.
    pub fn wait_beside(&mut self, controller: usize, lines: usize, at: Cycle) {
        let unblocked = self.memory.wait_beside(controller, lines);
        self.retries.extend(unblocked.into_iter().map(|core| (core, at)));
    }

    /// The cores whose TLBs hold a page, one bit each.
    pub fn tlb_cores(&self, page: Page) -> u64 {
        self.tlbs.holders(page)
    }

    /// Removes a page's translation from the TLBs of every core but one. The design is not told
    /// ([`tlb_evict`](crate::design::Design::tlb_evict)). Returns whether any TLB had it.
    pub fn shoot_down(&mut self, page: Page, but: CoreId) -> bool {
        let holders = self.tlb_cores(page) & !(1 << but.0);
        bits(holders).for_each(|core| self.tlbs.remove(CoreId(core as u8), page));
        holders != 0
    }

    /// Announces, for an asynchronous design, that a transaction and all before it on its core are
    /// durable. The core hears of it at `at`, which must not be before its program asks for the
    /// commit. From then on the oracle holds the design to that, whether the transaction is
    /// acknowledged or not. Under other designs a transaction is durable when it is acknowledged.
    pub fn durable(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        self.agenda.enter(at, Event::Announce { core, tx });
    }

    /// Ends the run, because what it was asked to do does not fit the machine. The text is a
    /// sentence for the user.
    pub fn give_up(&mut self, text: String) {
        self.stopped.get_or_insert(Stop::Input(text));
    }

    /// The newest bytes of a line of persistent memory.
    pub fn line(&self, line: Line) -> LineData {
        *self.view.pm.line(line)
    }

    /// Sends a write that leaves the caches for a controller at `at`.
    pub fn send(&mut self, at: Cycle, write: Write, notify: Notify<E>) {
        self.note_sent(notify);
        self.memory.send(at + self.shape.path, write, notify, &mut self.agenda);
    }

    /// Sends a line that had to make room in the caches, as the machine does with those that a
    /// design lets go home. Until it is accepted it takes one of the controller's buffers for
    /// write-backs.
    pub fn send_evicted(&mut self, at: Cycle, write: Write, notify: Notify<E>) {
        self.note_sent(notify);
        let at = at + self.shape.path;
        self.memory.send_by(Way::Evicted, at, (write, notify), &mut self.agenda);
    }

    fn note_sent(&mut self, notify: Notify<E>) {
        if let Notify::Core(core) | Notify::Combining(core) = notify {
            self.unacknowledged[core].writes += 1;
        }
        if let Notify::Core(core) = notify {
            self.unacknowledged[core].flushes.note_sent();
        }
    }

    /// Sends a write that left the caches at `left` and has waited at its controller until `at`.
    pub fn send_on(&mut self, left: Cycle, at: Cycle, write: Write, notify: Notify<E>) {
        self.send(left.max(Cycle(at.since(Cycle(self.shape.path)))), write, notify);
    }

    /// Sends a write by a path of the design's own, so that it reaches its controller at `at`. On
    /// such a path it may overtake an eviction of the same line, which [`Below::send`] does not.
    pub fn send_direct(&mut self, at: Cycle, write: Write, notify: Notify<E>) {
        self.memory.send_direct(at, write, notify, &mut self.agenda);
    }

    /// Sends a message of the design's own past the caches: the event is due when a controller
    /// looks at it, as it would look at a write that is sent at `at`. Jitter makes the way of each
    /// message longer, so that messages overtake each other; the number tells this one from others
    /// that are sent before the next write.
    pub fn message(&mut self, at: Cycle, number: u64, event: E) {
        self.at(self.memory.comes(at + self.shape.path, number), event);
    }

    /// Sends a message ([`Below::message`]) with a line that leaves the caches. The message stays
    /// in order with the line's writes; when it has come, the design calls [`Memory::came`].
    pub fn message_with(&mut self, at: Cycle, line: Line, event: E) {
        let at = self.memory.on_the_way(at + self.shape.path, line);
        self.at(at, event);
    }

    /// Gives a write to its controller now if it has room, and says whether it had; only from
    /// [`event`](crate::design::Design::event).
    pub fn give_if_room(&mut self, at: Cycle, write: &Write) -> bool {
        self.memory.give_if_room(at, write, &mut self.agenda)
    }

    /// Takes a slot of the write-pending queue for a line that must not reach memory yet, and says
    /// whether there was one ([`Memory::reserve`]); only from
    /// [`event`](crate::design::Design::event).
    pub fn reserve(&mut self, at: Cycle, line: Line) -> bool {
        self.memory.reserve(at, line, &mut self.agenda)
    }

    /// Gives back a slot of the write-pending queue ([`Memory::reserve`]), empty or with a write
    /// that the controller accepts at once; only from [`event`](crate::design::Design::event).
    pub fn unreserve(&mut self, at: Cycle, line: Line, write: Option<Write>) {
        self.memory.unreserve(at, line, write, &mut self.agenda);
    }

    /// Writes a line back if it is dirty. It leaves the core at `at` and passes through the caches,
    /// and the core's next fence waits for it.
    pub fn flush(&mut self, core: CoreId, at: Cycle, line: Line, how: Flush, class: Class) {
        if line.is_persistent() {
            self.flush_to(at, line, line, how, class, Notify::Core(core));
        } else if self.clean(line, how) {
            let arrival = at + (self.shape.walk - self.shape.path + self.shape.near);
            let taken = self.memory.write_volatile(arrival, line);
            self.note_taken(core, taken);
            self.unacknowledged[core].flushes.note_answer(taken + self.shape.near);
        }
    }

    /// Writes a line of persistent memory back if it is dirty. It leaves a first level at `at` and
    /// passes through the caches, where it stays, and `notify` is told when its bytes are durable.
    /// Returns false if they already are; nobody is told then.
    pub fn write_back(&mut self, at: Cycle, line: Line, class: Class, notify: Notify<E>) -> bool {
        self.write_back_to(at, line, line, class, notify)
    }

    /// Writes a line back ([`Below::write_back`]) to the physical line that holds it.
    pub fn write_back_to(
        &mut self,
        at: Cycle,
        line: Line,
        to: Line,
        class: Class,
        notify: Notify<E>,
    ) -> bool {
        self.flush_to(at, line, to, Flush::WriteBack, class, notify)
    }

    /// Writes a line back as [`Below::write_back_to`] does; it may leave the caches.
    pub fn flush_to(
        &mut self,
        at: Cycle,
        line: Line,
        to: Line,
        how: Flush,
        class: Class,
        notify: Notify<E>,
    ) -> bool {
        let dirty = self.clean(line, how);
        // A line that was evicted, or that another core flushed, may still be on its way. Whoever
        // waits for this write then waits for that one, too.
        if !dirty && !self.memory.is_under_way(to) {
            return false;
        }
        let mask = if dirty { u64::MAX } else { 0 };
        let write = Write { line: to, data: self.line(line), mask, class };
        let walk = self.shape.walk - self.shape.path;
        self.send(at + walk, write, notify);
        true
    }

    /// Makes a line clean in the caches, or takes it out of them. Returns whether it was dirty.
    fn clean(&mut self, line: Line, how: Flush) -> bool {
        match how {
            Flush::WriteBack => self.caches.clean(line),
            Flush::Evict | Flush::EvictInOrder => self.caches.take_out(line),
        }
    }

    /// Notes that a controller takes a core's write to volatile memory at `at`. The core's next
    /// fence waits for that, and for the answer.
    pub(crate) fn note_taken(&mut self, core: CoreId, at: Cycle) {
        let pending = &mut self.unacknowledged[core];
        pending.last = pending.last.max(at + self.shape.near);
    }

    /// Whether a core has sent writes, by flushes or past the caches, that are not durable yet or
    /// whose acknowledgements have not come back by `at`.
    pub fn has_unacknowledged(&self, core: CoreId, at: Cycle) -> bool {
        let pending = &self.unacknowledged[core];
        pending.writes > 0 || pending.last > at
    }

    /// When the last of the writes that a core has sent is answered, as far as that is known: those
    /// to volatile memory, if the design brings stores to persistent memory itself.
    pub fn answered(&self, core: CoreId) -> Cycle {
        self.unacknowledged[core].last
    }

    /// The answer to a fence that waits until a core's writes are durable.
    pub fn fence(&mut self, core: CoreId, at: Cycle) -> Progress {
        let pending = &mut self.unacknowledged[core];
        if pending.writes > 0 {
            pending.fenced = true;
            pending.last = pending.last.max(at);
            return Progress::Wait;
        }
        Progress::Done(at.max(pending.last))
    }

    /// Returns when a core's flush that could leave at `at` finds one of `places` free; none if
    /// that is not known yet. The core hears of the next answer to a flush then.
    pub(crate) fn room_to_flush(&mut self, core: CoreId, places: u64, at: Cycle) -> Option<Cycle> {
        let flushes = &mut self.unacknowledged[core].flushes;
        let room = flushes.place(places as usize, at);
        if room.is_none() {
            flushes.wait();
        }
        room
    }

    /// Notes that a core's write has become durable at `at`, and wakes the core if its fence waited
    /// for that.
    pub(crate) fn acknowledge(&mut self, core: CoreId, at: Cycle) {
        let back = at + self.shape.path;
        let pending = &mut self.unacknowledged[core];
        pending.writes -= 1;
        pending.last = pending.last.max(back);
        if pending.fenced && pending.writes == 0 {
            pending.fenced = false;
            let at = pending.last;
            self.wake(core, at);
        }
    }
}

/// What a battery writes after the power has failed, as far as its energy reaches.
pub struct Gasp<'a, 'i> {
    image: &'a mut Image<'i>,
    /// When the power failed.
    pub at: Cycle,
    left: u64,
    /// Bytes that the battery has saved.
    pub saved: u64,
}

impl<'a, 'i> Gasp<'a, 'i> {
    /// A battery with energy for `bytes` bytes.
    pub fn new(image: &'a mut Image<'i>, at: Cycle, bytes: u64) -> Gasp<'a, 'i> {
        Gasp { image, at, left: bytes, saved: 0 }
    }

    /// Bytes of the persistent memory.
    pub fn capacity(&self) -> u64 {
        self.image.capacity()
    }

    /// Notes that a design in a script raised an error at this power failure; the text says which.
    pub fn call_raised(&mut self, text: String) {
        self.image.call_raised(text);
    }

    /// Saves `bytes` at an address of persistent memory.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery has no energy for all of them; the whole words that it saved
    /// before stay saved.
    pub fn save(&mut self, address: u64, bytes: &[u8]) -> Result<(), PowerLoss> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let offset = (at % LINE_BYTES) as usize;
            let wanted = (LINE_BYTES as usize - offset).min(bytes.len() - done);
            let length = match usize::try_from(self.left) {
                Ok(left) if left < wanted => whole_words(offset, left),
                _ => wanted,
            };
            self.left -= length as u64;
            self.saved += length as u64;
            let mut data = [0; LINE_BYTES as usize];
            data[offset..offset + length].copy_from_slice(&bytes[done..done + length]);
            let ones = if length == 64 { u64::MAX } else { (1 << length) - 1 };
            self.image.set_line(Line::of(at), &data, ones << offset)?;
            if length < wanted {
                self.left = 0;
                return Err(PowerLoss);
            }
            done += length;
        }
        Ok(())
    }

    /// Saves words, one after the other, from an address of persistent memory on.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery has no energy for all of them; the words that it saved before
    /// stay saved.
    pub fn save_words(&mut self, address: u64, words: &[u64]) -> Result<(), PowerLoss> {
        for (place, word) in (0..).zip(words) {
            self.save(address + place * WORD_BYTES, &word.to_le_bytes())?;
        }
        Ok(())
    }
}

/// How many of the first `bytes` bytes from an offset in a line are in whole words.
fn whole_words(offset: usize, bytes: usize) -> usize {
    let word = WORD_BYTES as usize;
    ((offset + bytes) / word * word).saturating_sub(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Contents;

    #[test]
    fn the_last_words_that_a_battery_saves_are_whole() {
        let memory = Contents::new(0, 4096).expect("room");
        // Where it begins, what the energy is enough for, and how much of 100 bytes is then there.
        for (address, energy, saved) in
            [(0, 7, 0), (0, 8, 8), (0, 71, 64), (4, 3, 0), (4, 5, 4), (4, 99, 92), (60, 4, 4)]
        {
            let mut image = Image::over(&memory);
            let mut gasp = Gasp::new(&mut image, Cycle(0), energy);
            assert_eq!(gasp.save(address, &[7; 100]), Err(PowerLoss), "{energy} bytes");
            assert_eq!(gasp.saved, saved, "{energy} bytes at {address}");
            let there = (0..4).flat_map(|line| image.line(Line(line)));
            let there: Vec<u64> =
                (0..).zip(there).filter(|(_, is)| **is == 7).map(|(at, _)| at).collect();
            assert_eq!(there, (address..address + saved).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn a_battery_saves_every_byte_that_it_has_energy_for_and_no_more() {
        let memory = Contents::new(0, 4096).expect("room");
        for (energy, bytes, saved) in [(64, 64, true), (64, 65, false), (0, 1, false), (9, 9, true)]
        {
            // From the middle of a line on, so that most are saved in two parts.
            for address in [0, 40] {
                let mut image = Image::over(&memory);
                let mut gasp = Gasp::new(&mut image, Cycle(0), energy);
                assert_eq!(gasp.save(address, &vec![7; bytes]).is_ok(), saved, "{bytes} bytes");
                assert_eq!(gasp.save(address, &[7]), Err(PowerLoss), "the battery is empty");
            }
        }
    }

    #[test]
    fn what_a_battery_saves_in_parts_adds_up() {
        let memory = Contents::new(0, 4096).expect("room");
        let mut image = Image::over(&memory);
        let mut gasp = Gasp::new(&mut image, Cycle(0), 100);
        assert_eq!((gasp.save(0, &[1; 50]), gasp.save(64, &[2; 50])), (Ok(()), Ok(())));
        assert_eq!((gasp.saved, gasp.save(128, &[3; 1])), (100, Err(PowerLoss)));
        assert_eq!((image.line(Line(0))[49], image.line(Line(1))[49]), (1, 2));
        assert_eq!((image.line(Line(0))[50], image.line(Line(2))[0]), (0, 0));
    }
}
