//! What a persistence design is: everything that hardware, or a library, adds to a machine so that
//! writes are atomic, ordered and durable.

use crate::agenda::Agenda;
use crate::caches::Caches;
use crate::config::Config;
use crate::contents::View;
use crate::controller::{Event, Memory, Notify};
use crate::device::Write;
use crate::image::{Image, Placement, PowerLoss};
use crate::meters::Class;
use crate::params::{Params, Rules};
use crate::tlb::Tlbs;
use crate::units::{
    CoreId, Cycle, DRAM_BASE, LINE_BYTES, Line, LineData, Page, PerCore, TxId, WORD_BYTES, Word,
};
use crate::workload::{Flush, Ptr, Stop};

pub use crate::card::{Card, Durability, Granularity, KeptBy, Model, Needs, Structure};

/// What a hook answers: when the core may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At this cycle, which is not before the hook was called.
    Done(Cycle),
    /// When the design wakes it ([`Below::wake`]); until then it is parked.
    Wait,
}

/// Where the page table begins in DRAM, behind the largest heap that there can be.
const PAGE_TABLE: u64 = 1 << 42;

/// A design: its hooks in the order in which a store, a crash and a recovery meet them.
///
/// Every hook has a default, and the defaults together are a machine with no atomic durability at
/// all: a design overrides what it changes. What changes persistent state (memory, or a structure
/// that a battery or ADR backs) changes it in [`Design::event`] (or in [`Design::store`], see
/// [`Design::STORES_SURVIVE`]), so that the state at any time is
/// well defined; and it is durable first, forgotten after.
pub trait Design: Sized + 'static {
    /// What is said of it.
    const CARD: Card;
    /// Rules that it does not need, of those that it shares with others, each with the reason: to
    /// switch one off changes nothing that survives.
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[];
    /// What order of stores it promises, if it is ordering hardware or stands on it.
    const MODEL: Option<Model> = None;
    /// Whether what a program asks for besides loads and stores is an instruction.
    const HAS_FENCES: bool = true;
    /// Whether a flush is one.
    const HAS_FLUSHES: bool = Self::HAS_FENCES;
    /// Whether a store survives from when it is visible: the one change of what survives that is
    /// not made in [`Design::event`].
    const STORES_SURVIVE: bool = false;
    /// Whether it is told which lines leave a core's first level ([`Design::leave`]).
    const WATCHES_L1: bool = false;
    /// Whether it is told which changed lines a core's second level gives to the last
    /// ([`Design::come_down`]).
    const WATCHES_L2: bool = false;
    /// Whether it decides which physical line holds a line of a program's data. It then hears of
    /// each page that a TLB gains or loses, and is asked before each store.
    const TRANSLATES: bool = false;
    /// Its parameters.
    type Params: Params;
    /// Its rules, each of which a test can switch off.
    type Rules: Rules;
    /// Its own timed events.
    type Event: Copy + 'static;
    /// What runs on the core itself: [`Bare`] for a design that is all hardware.
    type Library: Library<Self>;

    /// The design on a machine that has just been switched on.
    fn new(setup: &Setup<'_, Self>) -> Self;

    // From the program, in program order.

    /// A transaction begins.
    fn begin(&mut self, tx: &Tx, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    /// A load of persistent memory has its value.
    fn load(&mut self, load: &Load, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(load.at)
    }

    /// A store to persistent memory has taken effect in the caches.
    fn store(&mut self, store: &Store, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(store.at)
    }

    /// The program asks for an order, for durability, or for a line to be written back.
    fn fence(&mut self, fence: &Fence, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(fence.at)
    }

    /// A transaction ends. When the core may go on, the transaction is acknowledged; an asynchronous
    /// design says later that it is durable ([`Below::durable`]).
    fn commit(&mut self, tx: &Tx, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    // From the caches.

    /// A line of persistent memory has come to a core's first level from the last level or from
    /// memory; the answer is when the core has it.
    fn fill(&mut self, fill: &Fill, _below: &mut Below<Self::Event>) -> Cycle {
        fill.at
    }

    /// A line of persistent memory leaves a core's first level: for the levels below, for another
    /// core, or, before [`Design::evict`], for memory. Asked only if [`Design::WATCHES_L1`].
    fn leave(&mut self, _leave: &Leave, _below: &mut Below<Self::Event>) {}

    /// The bytes that a core changed in a line of persistent memory leave its second level for the
    /// last: to make room, or because another core asks for them. Asked only if
    /// [`Design::WATCHES_L2`], and not of a line that goes on to memory at once ([`Design::evict`]).
    fn come_down(&mut self, _leave: &Leave, _below: &mut Below<Self::Event>) {}

    /// A dirty line of persistent memory leaves the caches.
    fn evict(
        &mut self,
        evict: &Evict,
        _below: &mut Below<Self::Event>,
    ) -> Disposition<Self::Event> {
        Disposition::Home { at: evict.at, notify: Notify::Nobody }
    }

    /// A line changes owner; the answer is when the new owner has it.
    fn transfer(&mut self, transfer: &Transfer, _below: &mut Below<Self::Event>) -> Cycle {
        transfer.at
    }

    // From the translation, if [`Design::TRANSLATES`]. Lines everywhere else are virtual: the
    // addresses that programs use, and the caches' tags.

    /// Bytes of persistent memory that it keeps for itself beside the machine's, from
    /// [`Shape::capacity`] on. They begin as zeros.
    fn reserved(_setup: &Setup<'_, Self>) -> u64 {
        0
    }

    /// The line of the page table that a walk reads last; in DRAM, beside what locks have there,
    /// unless the design keeps it elsewhere.
    fn page_table(&self, page: Page) -> Line {
        Line::of(DRAM_BASE + PAGE_TABLE + page.0 * WORD_BYTES)
    }

    /// A walk has found a page's translation; the answer is when the core has it. If it is to wait,
    /// it asks again when it is woken by [`Below::retry`].
    fn tlb_fill(&mut self, fill: &TlbFill, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(fill.at)
    }

    /// A page's translation leaves a core's TLBs.
    fn tlb_evict(&mut self, _evict: &TlbEvict, _below: &mut Below<Self::Event>) {}

    /// A core is about to store to a line whose translation it has.
    fn claim(&mut self, claim: &Claim, _below: &mut Below<Self::Event>) -> Claimed {
        Claimed::At(claim.at)
    }

    /// A library gives up its transaction in hardware ([`Cpu::abort`]): what it stored is revoked,
    /// and its further stores are plain ones. If it is to wait, it asks again when it is woken by
    /// [`Below::retry`].
    fn abort(&mut self, tx: &Tx, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    /// The physical line whose bytes are, or will be, the newest of a line.
    #[inline]
    fn locate(&self, line: Line) -> Line {
        line
    }

    /// Where lines lie once recovery is done, as those find it who read the image then.
    ///
    /// # Errors
    /// A sentence that says how what survived contradicts itself.
    fn resolve(_image: &Image<'_>, _setup: &Setup<'_, Self>) -> Result<Placement, String> {
        Ok(Placement::default())
    }

    // From the passing of time.

    /// An event of its own that is due.
    fn event(&mut self, _at: Cycle, _event: Self::Event, _below: &mut Below<Self::Event>) {}

    // From the power supply.

    /// Where the caches survive: whether a dirty line is nevertheless left behind, because a
    /// transaction that has not committed stored to it and recovery could not revoke that.
    fn leaves_behind(&self, _line: Line) -> bool {
        false
    }

    /// The power has failed: what a battery still writes, in order.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery is empty; `?` is all that a design does about it.
    fn power_loss(&self, _gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        Ok(())
    }

    /// What could have become durable by now if timing had been otherwise, beside what is on its
    /// way to a controller and the design does not hear of: for each write that its own rules allow
    /// at that point, it asks `arrived`, and goes on as if it had arrived or not. The writes that
    /// had, in their order. A crash campaign tries what this says at each crash point.
    fn could_be_durable(
        &self,
        _below: &Below<Self::Event>,
        _arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        Vec::new()
    }

    /// The power is back: what firmware or a library does to the image. There is no `self`, so
    /// nothing volatile can leak in; the setup was fixed before power was first applied.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again; `?` is all that a design does about it.
    fn recover(_image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        Ok(())
    }

    /// What it adds to the hardware.
    fn hardware(_setup: &Setup<'_, Self>) -> Vec<Structure> {
        Vec::new()
    }

    /// What it counted, by name, for reports.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What is fixed before power is first applied, and is the same after every reboot.
pub struct Setup<'a, D: Design> {
    /// The design's parameters.
    pub params: &'a D::Params,
    /// The rules that it obeys: all, except in a test of the checker.
    pub rules: &'a D::Rules,
    /// The machine.
    pub shape: &'a Shape,
}

/// What a design and its recovery may know of the machine.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Cores.
    pub cores: u8,
    /// Bytes of persistent memory.
    pub capacity: u64,
    /// Where the logs begin; data lie before.
    pub log_base: u64,
    /// Bytes of log that each core has.
    pub log_bytes: u64,
    /// Memory controllers.
    pub controllers: u8,
    /// Cycles from a core to a controller, past the caches.
    pub path: u64,
    /// Cycles from a core to a controller through every level of the caches.
    pub walk: u64,
    /// How long the caches take.
    pub times: Times,
    /// The machine, completely.
    pub config: Config,
}

/// Cycles that each level of the caches adds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The first level.
    pub l1: u64,
    /// The second level.
    pub l2: u64,
    /// The last level.
    pub llc: u64,
    /// Another core's cache.
    pub transfer: u64,
}

impl Shape {
    /// The machine of the given parameters, with so many cores.
    pub fn new(config: &Config, cores: u8) -> Shape {
        let pm = &config.pm;
        let path = config.cycles(config.controller.path + config.controller.link);
        let times = Times {
            l1: config.cycles(config.l1d.latency),
            l2: config.cycles(config.l2.latency),
            llc: config.cycles(config.llc.latency),
            transfer: config.cycles(config.llc.transfer),
        };
        Shape {
            cores,
            capacity: pm.capacity,
            log_base: pm.capacity - pm.log * u64::from(cores),
            log_bytes: pm.log,
            controllers: config.controller.count as u8,
            path,
            walk: times.l1 + times.l2 + times.llc + path,
            times,
            config: config.clone(),
        }
    }

    /// Where a core's log begins.
    pub fn log_of(&self, core: CoreId) -> u64 {
        self.log_base + self.log_bytes * u64::from(core.0)
    }
}

/// A transaction of a core, at the time at which it begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct Tx {
    /// The core.
    pub core: CoreId,
    /// Its number.
    pub id: TxId,
    /// When.
    pub at: Cycle,
    /// When every earlier store has left the core; a design whose commit follows the stores waits
    /// for it.
    pub stored: Cycle,
}

/// A load of an aligned word of persistent memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The core.
    pub core: CoreId,
    /// The transaction that it belongs to, if any.
    pub tx: Option<TxId>,
    /// The word.
    pub word: Word,
    /// When the core has the value.
    pub at: Cycle,
}

/// A store to an aligned word of persistent memory; one to a part of it counts as the whole.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// The core.
    pub core: CoreId,
    /// The transaction that it belongs to, if any.
    pub tx: Option<TxId>,
    /// The word.
    pub word: Word,
    /// What the word was.
    pub old: u64,
    /// What it is now.
    pub new: u64,
    /// When.
    pub at: Cycle,
}

/// A page that a core's TLB is to gain.
#[derive(Clone, Copy, Debug)]
pub struct TlbFill {
    /// The core.
    pub core: CoreId,
    /// The page.
    pub page: Page,
    /// When the walk has read the page table.
    pub at: Cycle,
}

/// A page that a core's TLBs lose.
#[derive(Clone, Copy, Debug)]
pub struct TlbEvict {
    /// The core.
    pub core: CoreId,
    /// The page.
    pub page: Page,
    /// When.
    pub at: Cycle,
}

/// A store that a core is about to make.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The core.
    pub core: CoreId,
    /// The transaction that it belongs to, if any.
    pub tx: Option<TxId>,
    /// The line.
    pub line: Line,
    /// When.
    pub at: Cycle,
}

/// What a design answers to a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The store may be made; it leaves the core at this cycle at the earliest.
    At(Cycle),
    /// The core asks again when it is woken by [`Below::retry`].
    Wait,
    /// The transaction is more than the design can keep apart.
    Refused,
}

/// What a program asks for besides loads and stores.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// The core.
    pub core: CoreId,
    /// What it asks for.
    pub kind: FenceKind,
    /// When.
    pub at: Cycle,
    /// When every earlier store has left the core and every earlier load has its value.
    pub drained: Cycle,
}

/// The kinds of what a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// That a line be written back, for the given reason, in the given way.
    Flush(Line, Class, Flush),
    /// That earlier stores survive if later ones do (sfence, ofence).
    Order,
    /// That earlier stores are durable (sfence, dfence).
    Durable,
}

/// A line that came to a core.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// The core that asked for it.
    pub core: CoreId,
    /// The line.
    pub line: Line,
    /// Whether it came from memory, and not from the last level.
    pub memory: bool,
    /// Whether the core means to write.
    pub write: bool,
    /// When the core would have it.
    pub at: Cycle,
}

/// A line that leaves a level of a core's own.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// The core.
    pub core: CoreId,
    /// The line.
    pub line: Line,
    /// When.
    pub at: Cycle,
}

/// A dirty line that leaves the caches.
#[derive(Clone, Copy, Debug)]
pub struct Evict {
    /// The line.
    pub line: Line,
    /// Its newest bytes.
    pub data: LineData,
    /// When it leaves the last level.
    pub at: Cycle,
}

/// What becomes of a dirty line that leaves the caches. A design that redirects it, or holds it
/// back, takes it and sends it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition<E> {
    /// It leaves for its place in memory at `at`, and `notify` is told when it is durable there.
    Home {
        /// When it leaves.
        at: Cycle,
        /// Who is told.
        notify: Notify<E>,
    },
    /// The design has it, or drops it.
    Taken,
}

/// A line that changes owner.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The line.
    pub line: Line,
    /// The core that had it.
    pub from: CoreId,
    /// The core that gets it.
    pub to: CoreId,
    /// Whether the new owner means to write.
    pub write: bool,
    /// When the new owner would have it.
    pub at: Cycle,
}

/// The floor on which a design stands: caches, controllers, and the agenda for its timed events.
pub struct Below<E> {
    /// The caches.
    pub caches: Caches,
    /// The controllers and what survives.
    pub memory: Memory<E>,
    /// What coherent cores see.
    pub view: View,
    /// What is known of the machine.
    pub shape: Shape,
    pub(crate) agenda: Agenda<Event<E>>,
    /// Translations that cores have; empty unless [`Design::TRANSLATES`].
    pub(crate) tlbs: Tlbs,
    /// Cores to be woken, and when.
    pub(crate) wakes: Vec<(CoreId, Cycle)>,
    /// Cores that are to ask again, and when.
    pub(crate) retries: Vec<(CoreId, Cycle)>,
    /// Why the run cannot go on.
    pub(crate) stopped: Option<Stop>,
    /// Writes of each core that are not durable yet, for its fences.
    pub(crate) unacknowledged: PerCore<Unacknowledged>,
}

/// A core's writes that are not durable yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unacknowledged {
    pub writes: u64,
    pub fenced: bool,
    pub last: Cycle,
}

impl<E: Copy> Below<E> {
    /// Enters an event of the design.
    pub fn at(&mut self, at: Cycle, event: E) {
        self.agenda.enter(at, Event::Design(event));
    }

    /// Lets a parked core go on at a cycle.
    pub fn wake(&mut self, core: CoreId, at: Cycle) {
        self.wakes.push((core, at));
    }

    /// Lets a core ask again that was told to wait for a translation, for a line to store to, or
    /// with an abort.
    pub fn retry(&mut self, core: CoreId, at: Cycle) {
        self.retries.push((core, at));
    }

    /// Cores whose TLBs have a page, one bit each.
    pub fn tlb_cores(&self, page: Page) -> u64 {
        self.tlbs.holders(page)
    }

    /// Says of an asynchronous design that a transaction of a core, and all before it on that core,
    /// are durable; the core hears of it at a cycle. Every power failure from then on holds the
    /// design to it. With other designs a transaction is durable when it is acknowledged.
    pub fn durable(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        self.agenda.enter(at, Event::Announce { core, tx });
    }

    /// Ends the run: what it was asked to do does not fit the machine. The text is a sentence for
    /// the user.
    pub fn give_up(&mut self, text: String) {
        self.stopped.get_or_insert(Stop::Input(text));
    }

    /// The newest bytes of a line of persistent memory.
    pub fn line(&self, line: Line) -> LineData {
        *self.view.pm.line(line)
    }

    /// Sends a write that leaves the caches for a controller at `at`.
    pub fn send(&mut self, at: Cycle, write: Write, notify: Notify<E>) {
        if let Notify::Core(core) = notify {
            self.unacknowledged[core].writes += 1;
        }
        self.memory.send(at + self.shape.path, write, notify, &mut self.agenda);
    }

    /// Sends a write that reaches its controller at `at` by a path of the design's own.
    pub fn send_direct(&mut self, at: Cycle, write: Write, notify: Notify<E>) {
        self.memory.send_direct(at, write, notify, &mut self.agenda);
    }

    /// Gives a write to its controller now; only from [`Design::event`], and only if the
    /// controller has room ([`Memory::has_room`]).
    pub fn give(&mut self, at: Cycle, write: Write) {
        self.memory.give(at, write, &mut self.agenda);
    }

    /// Gives a write to its controller now if it has room, and says whether it had; only from
    /// [`Design::event`].
    pub fn give_if_room(&mut self, at: Cycle, write: &Write) -> bool {
        self.memory.give_if_room(at, write, &mut self.agenda)
    }

    /// Takes a slot of the write-pending queue for what must not reach memory yet
    /// ([`Memory::reserve`]); only from [`Design::event`].
    pub fn reserve(&mut self, at: Cycle, line: Line) -> bool {
        self.memory.reserve(at, line, &mut self.agenda)
    }

    /// Gives back a slot of the write-pending queue ([`Memory::reserve`]), empty or with a write
    /// that is accepted in this moment; only from [`Design::event`].
    pub fn unreserve(&mut self, at: Cycle, line: Line, write: Option<Write>) {
        self.memory.unreserve(at, line, write, &mut self.agenda);
    }

    /// Has a line written back if it is dirty: it leaves the core at `at`, walks through the
    /// caches, and the core's next fence waits for it. The line stays in the caches if `keep`.
    pub fn flush(&mut self, core: CoreId, at: Cycle, line: Line, keep: bool, class: Class) {
        if line.is_persistent() {
            self.write_back(at, line, keep, class, Notify::Core(core));
        } else if self.caches.clean(line, keep) {
            let arrival = at + self.shape.walk;
            self.memory.write_volatile(arrival, line, at);
            self.arrives(core, arrival);
        }
    }

    /// Has a line of persistent memory written back if it is dirty: it leaves a first level at
    /// `at` and walks through the caches, and `notify` is told when its bytes are durable. False:
    /// they are durable already, and nobody is told.
    pub fn write_back(
        &mut self,
        at: Cycle,
        line: Line,
        keep: bool,
        class: Class,
        notify: Notify<E>,
    ) -> bool {
        self.write_back_to(at, line, line, keep, class, notify)
    }

    /// Has a line written back ([`Below::write_back`]) to the physical line that holds it.
    pub fn write_back_to(
        &mut self,
        at: Cycle,
        line: Line,
        to: Line,
        keep: bool,
        class: Class,
        notify: Notify<E>,
    ) -> bool {
        let dirty = self.caches.clean(line, keep);
        // A line that was evicted, or that another core flushed, may still be on its way: who
        // waits for this one waits for that, too.
        if !dirty && !self.memory.is_under_way(to) {
            return false;
        }
        let mask = if dirty { u64::MAX } else { 0 };
        let write = Write { line: to, data: self.line(line), mask, class };
        let walk = self.shape.walk - self.shape.path;
        self.send(at + walk, write, notify);
        true
    }

    /// A write of a core to volatile memory reaches its controller at `at`. Its next fence waits for
    /// that, and for the answer; what the controller does with it is posted.
    pub(crate) fn arrives(&mut self, core: CoreId, at: Cycle) {
        let pending = &mut self.unacknowledged[core];
        pending.last = pending.last.max(at + self.shape.path);
    }

    /// What a fence answers that waits until a core's writes are durable.
    pub fn fence(&mut self, core: CoreId, at: Cycle) -> Progress {
        let pending = &mut self.unacknowledged[core];
        if pending.writes > 0 {
            pending.fenced = true;
            pending.last = pending.last.max(at);
            return Progress::Wait;
        }
        Progress::Done(at.max(pending.last))
    }

    /// A write of a core has become durable at `at`.
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

/// The last breath of a machine: what a battery may still write.
pub struct Gasp<'a, 'i> {
    image: &'a mut Image<'i>,
    /// When the power failed.
    pub at: Cycle,
    left: u64,
    /// Bytes that the battery saved.
    pub saved: u64,
}

impl<'a, 'i> Gasp<'a, 'i> {
    /// A battery with energy for `bytes` bytes.
    pub fn new(image: &'a mut Image<'i>, at: Cycle, bytes: u64) -> Gasp<'a, 'i> {
        Gasp { image, at, left: bytes, saved: 0 }
    }

    /// Saves `bytes` at an address of persistent memory.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery has no energy for them; what it had saved before stays.
    pub fn save(&mut self, address: u64, bytes: &[u8]) -> Result<(), PowerLoss> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address + done as u64;
            let offset = (at % LINE_BYTES) as usize;
            let length = (LINE_BYTES as usize - offset).min(bytes.len() - done);
            if self.left < length as u64 {
                self.left = 0;
                return Err(PowerLoss);
            }
            self.left -= length as u64;
            self.saved += length as u64;
            let mut data = [0; LINE_BYTES as usize];
            data[offset..offset + length].copy_from_slice(&bytes[done..done + length]);
            let ones = if length == 64 { u64::MAX } else { (1 << length) - 1 };
            self.image.set_line(Line::of(at), &data, ones << offset)?;
            done += length;
        }
        Ok(())
    }
}

/// What a core offers to a library that runs on it, and what a program's operations become.
pub trait Cpu {
    /// The core.
    fn core(&self) -> CoreId;
    /// Loads a word; also says when it is there.
    fn load(&mut self, at: Ptr) -> (u64, Cycle);
    /// Stores the bytes of a word that `mask` selects.
    fn store(&mut self, at: Ptr, value: u64, mask: u64);
    /// Before a store in a transaction, under a design that translates: waits until the core may
    /// store to the line ([`Design::claim`]). False: the design refuses, and the transaction has
    /// to be given up.
    fn claim(&mut self, at: Ptr) -> bool;
    /// Gives up the transaction in hardware ([`Design::abort`]).
    fn abort(&mut self);
    /// Reads a word without any effect on the machine.
    fn peek(&self, word: Word) -> u64;
    /// Executes instructions that touch no memory.
    fn work(&mut self, instructions: u64);
    /// Asks for a line to be written back, for the given reason.
    fn flush(&mut self, line: Line, class: Class, how: Flush);
    /// Orders stores in what survives.
    fn order(&mut self);
    /// Waits until stores are durable.
    fn durable(&mut self);
    /// Ends the run: what it was asked to do does not fit the machine. The text is a sentence for
    /// the user.
    fn give_up(&mut self, text: String);
}

/// A library between a program and its core: a software log. Each core has one of its own; what
/// it keeps in itself is volatile.
pub trait Library<D: Design>: Sized {
    /// The library as a core starts.
    fn new(setup: &Setup<'_, D>, core: CoreId) -> Self;

    /// The program begins a transaction.
    fn begin(&mut self, _tx: TxId, _cpu: &mut impl Cpu) {}

    /// The program loads a word in a transaction.
    #[inline]
    fn load(&mut self, at: Ptr, cpu: &mut impl Cpu) -> (u64, Cycle) {
        cpu.load(at)
    }

    /// The program stores to a word in a transaction.
    #[inline]
    fn store(&mut self, at: Ptr, value: u64, mask: u64, cpu: &mut impl Cpu) {
        cpu.store(at, value, mask);
    }

    /// The program commits. When this returns and the hardware agrees, it is acknowledged.
    fn commit(&mut self, _cpu: &mut impl Cpu) {}

    /// What is left to be done once the transaction is acknowledged, while its locks are held.
    fn settle(&mut self, _cpu: &mut impl Cpu) {}
}

/// No library.
#[derive(Clone, Copy, Debug)]
pub struct Bare;

impl<D: Design> Library<D> for Bare {
    fn new(_setup: &Setup<'_, D>, _core: CoreId) -> Bare {
        Bare
    }
}

crate::params! {
    /// No parameters.
    pub struct NoParams {}
}

crate::rules! {
    /// No rules.
    pub struct NoRules {}
}
