//! What a persistence design is: everything that hardware, or a library, adds to a machine so that
//! writes are atomic, ordered and durable.

use std::fmt::Debug;

use crate::controller::Notify;
use crate::device::Write;
use crate::image::{Image, Placement, PowerLoss};
use crate::meters::Class;
use crate::params::{Params, Rules};
use crate::units::{CoreId, Cycle, DRAM_BASE, Line, Page, TxId, WORD_BYTES, Word};
use crate::workload::{Flush, Ptr};

pub use crate::below::{Below, Gasp};
pub use crate::card::{Card, Corner, Durability, Granularity, KeptBy, Model, Needs, Structure};
pub use crate::hooks::{
    Abort, Claim, Claimed, Disposition, Evict, Fence, FenceKind, Fill, Leave, Load, Progress,
    Store, TlbEvict, TlbFill, Transfer, Tx,
};
pub use crate::host_stack::on_host_stack;
pub use crate::shape::{Shape, Times};

/// Where the page table begins in DRAM, behind the largest heap that there can be.
const PAGE_TABLE: u64 = 1 << 42;

/// A design: its hooks in the order in which a store, a crash and a recovery meet them.
///
/// Every hook has a default, and the defaults together are a machine with no atomic durability at
/// all: a design overrides what it changes. What changes persistent state (memory, or a structure
/// that a battery or ADR backs) changes it in [`Design::event`] (or in [`Design::store`], if
/// [`Design::stores_survive`]), so that the state at any time is well defined; and it is durable
/// first, forgotten after.
pub trait Design: Sized + 'static {
    /// What is said of it.
    const CARD: Card;
    /// Rules that it does not need, of those that it shares with others, each with the reason: to
    /// switch one off changes nothing that survives.
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[];
    /// Rules that it does not need with a choice of a parameter.
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[];
    /// What order of stores it promises, if it is ordering hardware.
    const MODEL: Option<Model> = None;
    /// Whether what a program asks for besides loads and stores is an instruction.
    const HAS_FENCES: bool = false;
    /// Whether a flush is one.
    const HAS_FLUSHES: bool = Self::HAS_FENCES;
    /// Whether [`could_be_durable`](Design::could_be_durable) says anything: lines may leave when
    /// nobody hears of it, so that what could survive changes with every store.
    const LINES_LEAVE: bool = false;
    /// Whether it is told which lines leave a core's first level ([`Design::leave`]).
    const WATCHES_L1: bool = false;
    /// Whether it is told which changed lines a core's second level gives to the last
    /// ([`Design::come_down`]).
    const WATCHES_L2: bool = false;
    /// Whether it revokes what a transaction stored ([`Design::abort`]). Under one that does not,
    /// the old values are stored back, and that is committed ([`Library::abort`]).
    const REVOKES: bool = false;
    /// Whether it decides which physical line holds a line of a program's data. It then hears of
    /// each page that a TLB gains or loses, and is asked before each store.
    const TRANSLATES: bool = false;
    /// Whether a thread may move to another core in the middle of a transaction (`core.migrate`).
    /// Only where what the design keeps belongs to threads, or to lines, and nothing to a core's
    /// own caches: in its hooks a core's number is its thread's.
    const MIGRATES: bool = false;
    /// Whether its hooks need the stack of the host's thread ([`on_host_stack`]), as those that an
    /// interpreter runs do.
    const ON_HOST_STACK: bool = false;
    /// Its parameters.
    type Params: Params;
    /// Its rules, each of which a test can switch off.
    type Rules: Rules;
    /// Its own timed events.
    type Event: Copy + Debug + 'static;
    /// What runs on the core itself: [`Bare`] for a design that is all hardware.
    type Library: Library<Self>;

    /// What order of stores it promises with these parameters: [`Design::MODEL`], unless it is
    /// known only when it is loaded.
    fn model(_params: &Self::Params) -> Option<Model> {
        Self::MODEL
    }

    /// Whether a fence is an instruction with these parameters: [`Design::HAS_FENCES`], unless it
    /// is known only when it is loaded.
    fn has_fences(_params: &Self::Params) -> bool {
        Self::HAS_FENCES
    }

    /// Whether a flush is one: [`Design::HAS_FLUSHES`], unless it is known only when it is loaded.
    fn has_flushes(_params: &Self::Params) -> bool {
        Self::HAS_FLUSHES
    }

    /// Whether lines may leave when nobody hears of it: [`Design::LINES_LEAVE`], unless it is known
    /// only when it is loaded.
    fn lines_leave(_params: &Self::Params) -> bool {
        Self::LINES_LEAVE
    }

    /// Whether something of a store may survive from when [`store`](Design::store) hears of it: the
    /// power is then cut before each.
    fn stores_survive(setup: &Setup<'_, Self>) -> bool {
        Self::model(setup.params) == Some(Model::Visible)
    }

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

    /// Whether [`store`](Design::store) brings to memory what it hears of: of a line that is stored
    /// to past the caches no write-combining buffer sends anything then.
    fn brings_stores(&self) -> bool {
        false
    }

    /// A store to persistent memory has taken effect in the caches.
    fn store(&mut self, store: &Store, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(store.at)
    }

    /// The program asks for an order, for durability, or for a line to be written back.
    fn fence(&mut self, fence: &Fence, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(fence.at)
    }

    /// A transaction ends. When the core may go on, the transaction is acknowledged; an
    /// asynchronous design says later that it is durable ([`Below::durable`]).
    fn commit(&mut self, tx: &Tx, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    /// A transaction is given up in hardware: what it stored is revoked. The newest bytes of its
    /// lines are the old ones again by now. Asked only if [`Design::REVOKES`]. If it is to wait, it
    /// asks again when it is woken by [`Below::retry`].
    fn abort(&mut self, tx: &Tx, _by: Abort, _below: &mut Below<Self::Event>) -> Progress {
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
    /// [`Design::WATCHES_L2`], and not of a line that goes on to memory at once
    /// ([`Design::evict`]).
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

    /// Of a design of which something survives: whether who is told that a write is durable stands
    /// beside the controller that accepts it, so that no power failure comes between. If not, a
    /// crash campaign tries, too, that the write was there and nobody knew.
    fn hears_at_once(&self, _event: &Self::Event) -> bool {
        true
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
    /// nothing volatile can leak in; the setup was fixed before power was first applied. What it
    /// writes to several lines becomes durable in any order until it asks for [`Image::fence`], if
    /// stores are not durable when they are visible; all of it is when it is done. It depends on
    /// the bytes that it reads of the image and on nothing else: a campaign relies on that.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again; `?` is all that a design does about it.
    fn recover(_image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        Ok(())
    }

    /// The design on a machine that is switched on again, over what recovery left: what it knows
    /// of it, and what is written before programs run. Left alone, it knows no more than on a new
    /// machine, and everything that it finds in its part of memory must do no harm. Data stay as
    /// they are: to repair them is recovery's part. What it writes becomes durable as what recovery
    /// writes does.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again; recovery comes next then.
    fn boot(_image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self, PowerLoss> {
        Ok(Self::new(setup))
    }

    /// What one of its events is called in a timeline.
    fn show_event(&self, event: &Self::Event) -> String {
        format!("{event:?}")
    }

    /// What it adds to the hardware.
    fn hardware(_setup: &Setup<'_, Self>) -> Vec<Structure> {
        Vec::new()
    }

    /// Its corner for a trial of the search for what breaks it, which has a number, and may go
    /// through several lives of the machine.
    fn corner(_trial: u64, _has_lives: bool) -> Corner {
        Corner::default()
    }

    /// What it has counted so far, by name, for reports: sums, of which the measured region's part
    /// is reported, and, with names that end in `_max`, what was the most at any time.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What runs: hardware, and the library on its cores. Each design is one by itself; a software log
/// is one with whatever hardware it is paired with, and the machine is compiled once for that.
pub trait System: Sized + 'static {
    /// What is said of it.
    const CARD: Card;
    /// See [`Design::NEEDLESS`].
    const NEEDLESS: &'static [(&'static str, &'static str)];
    /// See [`Design::NEEDLESS_WITH`].
    const NEEDLESS_WITH: &'static [NeedlessWith];
    /// The ordering hardware that it stands on, by name, if it is a log on some.
    const STANDS_ON: Option<&'static str>;
    /// Its parameters.
    type Params: Params;
    /// Its rules.
    type Rules: Rules;
    /// The hardware.
    type Hardware: Design;
    /// What runs on each core.
    type Library: Library<Self>;

    /// What of the setup is the hardware's.
    fn of_hardware<'a>(setup: &Setup<'a, Self>) -> Setup<'a, Self::Hardware>;

    /// What firmware and the library do to the image when the power is back ([`Design::recover`]).
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss>;

    /// The hardware of a machine that is switched on again, over what recovery left
    /// ([`Design::boot`]).
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self::Hardware, PowerLoss>;

    /// See [`Design::corner`].
    fn corner(_trial: u64, _has_lives: bool) -> Corner {
        Corner::default()
    }
}

impl<D: Design> System for D {
    const CARD: Card = D::CARD;
    const NEEDLESS: &'static [(&'static str, &'static str)] = D::NEEDLESS;
    const NEEDLESS_WITH: &'static [NeedlessWith] = D::NEEDLESS_WITH;
    const STANDS_ON: Option<&'static str> = None;
    type Params = D::Params;
    type Rules = D::Rules;
    type Hardware = D;
    type Library = D::Library;

    fn of_hardware<'a>(setup: &Setup<'a, D>) -> Setup<'a, D> {
        *setup
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, D>) -> Result<(), PowerLoss> {
        <D as Design>::recover(image, setup)
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, D>) -> Result<D, PowerLoss> {
        <D as Design>::boot(image, setup)
    }

    fn corner(trial: u64, has_lives: bool) -> Corner {
        <D as Design>::corner(trial, has_lives)
    }
}

/// A rule that a design does not need with a choice of one of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct NeedlessWith {
    /// The parameter.
    pub field: &'static str,
    /// Its choice.
    pub choice: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// What is fixed before power is first applied, and is the same after every reboot.
pub struct Setup<'a, S: System> {
    /// The design's parameters.
    pub params: &'a S::Params,
    /// The rules that it obeys: all, except in a test of the checker.
    pub rules: &'a S::Rules,
    /// The machine.
    pub shape: &'a Shape,
}

impl<S: System> Clone for Setup<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: System> Copy for Setup<'_, S> {}

/// What a core offers to a library that runs on it, and what a program's operations become.
pub trait Cpu {
    /// The core.
    fn core(&self) -> CoreId;
    /// Loads a word; also says when it is there.
    fn load(&mut self, at: Ptr) -> (u64, Cycle);
    /// Stores the bytes of a word that `mask` selects.
    fn store(&mut self, at: Ptr, value: u64, mask: u64);
    /// Before a store in a transaction, under a design that translates: waits until the core may
    /// store to the line ([`Design::claim`]), and returns when the store may leave, from which
    /// cycle on its address counts as known. Nothing: the design refuses, and the transaction has
    /// to be given up.
    fn claim(&mut self, at: Ptr) -> Option<Cycle>;
    /// Gives up the transaction in hardware ([`Design::abort`]). The words that it stored over,
    /// oldest first, hold their old values again.
    fn abort(&mut self, overwritten: &[(Word, u64)], by: Abort);
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
pub trait Library<S: System>: Sized {
    /// The library as a core starts.
    fn new(setup: &Setup<'_, S>, core: CoreId) -> Self;

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

    /// The program aborts, and the words that it stored over, oldest first, held these values. When
    /// this returns and the hardware agrees that the transaction has ended, it has had no effect.
    ///
    /// Hardware that does not revoke leaves that to the runtime, which has the list of old values
    /// in volatile memory: it stores them back, newest first, and commits that.
    fn abort(&mut self, overwritten: &[(Word, u64)], cpu: &mut impl Cpu) {
        if S::Hardware::REVOKES {
            return cpu.abort(overwritten, Abort::ByProgram);
        }
        for &(word, old) in overwritten.iter().rev() {
            self.store(Ptr::to(word.address()), old, u64::MAX, cpu);
        }
        self.commit(cpu);
    }

    /// What is left to be done once the transaction is acknowledged, while its locks are held.
    fn settle(&mut self, _cpu: &mut impl Cpu) {}
}

/// No library.
#[derive(Clone, Copy, Debug)]
pub struct Bare;

impl<S: System> Library<S> for Bare {
    fn new(_setup: &Setup<'_, S>, _core: CoreId) -> Bare {
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
