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
pub use crate::card::{
    Card, Corner, Durability, Granularity, KeptBy, Location, Model, Needs, Ordering, Structure,
};
pub use crate::hooks::{
    Abort, Claim, Claimed, Disposition, Evict, Fence, FenceKind, Fill, Leave, Load, Progress,
    Store, TlbEvict, TlbFill, Transfer, Tx,
};
pub use crate::host_stack::on_host_stack;
pub use crate::shape::{CacheLatencies, Shape};

/// Where the page table begins in DRAM, behind the largest heap that there can be.
const PAGE_TABLE: u64 = 1 << 42;

/// A design: its hooks, in the order in which a store, a crash and a recovery reach them.
///
/// Every hook has a default, and the defaults together are a machine without any atomic
/// durability: a design overrides only what it changes. Two rules keep designs right:
///
/// - A design changes persistent state (memory, or a structure that a battery or ADR backs) in
///   [`Design::event`] and nowhere else (or also in [`Design::store`], if
///   [`Design::stores_survive`]). So what would survive is well defined at any time.
/// - It makes data durable first and forgets its own copy after.
pub trait Design: Sized + 'static {
    /// Its name, paper, durability and granularity, as `indelible list` shows them.
    const CARD: Card;
    /// Rules that it shares with other designs and does not need itself, each with the reason:
    /// switching one off changes nothing that survives.
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[];
    /// Rules that it does not need under certain choices of a parameter.
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[];
    /// What it makes of the order of stores.
    const ORDERING: Ordering = Ordering::NONE;
    /// Whether it wants to be told of lines that leave a core's first level ([`Design::leave`]).
    const WATCHES_L1: bool = false;
    /// Whether it wants to be told of changed lines that move from a core's second level to the
    /// last ([`Design::come_down`]).
    const WATCHES_L2: bool = false;
    /// Whether what leaves a core's first level may go on to a controller at once. An access that
    /// misses the first level then waits while a controller has no room for write-backs. Under
    /// other designs only an access beyond the core's second level does.
    const L1_NEEDS_ROOM: bool = false;
    /// Whether the hardware can revoke a transaction's stores ([`Design::abort`]). If it cannot,
    /// the library stores the old values back and commits them ([`Library::abort`]).
    const REVOKES: bool = false;
    /// Whether the design maps a program's lines to physical lines. It is then told of each page
    /// that a TLB gains or loses, and is asked before each store ([`Design::claim`]).
    const TRANSLATES: bool = false;
    /// Whether a thread may move to another core in the middle of a transaction (`core.migrate`).
    /// A design may allow that only if its state belongs to threads or to lines, and none of it to
    /// a core's own caches: the core number that its hooks see is the thread's.
    const MIGRATES: bool = false;
    /// Whether its hooks must run on the stack of the host's thread ([`on_host_stack`]), as hooks
    /// that call an interpreter must.
    const ON_HOST_STACK: bool = false;
    /// Its parameters.
    type Params: Params;
    /// Its rules, each of which a test can switch off.
    type Rules: Rules;
    /// Its own timed events.
    type Event: Copy + Debug + 'static;
    /// What runs on the core itself: [`Bare`] for a design that is all hardware.
    type Library: Library<Self>;

    /// What it makes of the order of stores with these parameters: [`Design::ORDERING`], unless the
    /// design is read from a file.
    fn ordering(_params: &Self::Params) -> Ordering {
        Self::ORDERING
    }

    /// Whether a store may survive from the moment at which [`store`](Design::store) is called. A
    /// crash campaign then cuts the power before each store.
    fn stores_survive(setup: &Setup<'_, Self>) -> bool {
        Self::ordering(setup.params).model == Some(Model::Visible)
    }

    /// Makes the design for a machine that is switched on for the first time.
    fn new(setup: &Setup<'_, Self>) -> Self;

    // From the program, in program order.

    /// A transaction begins.
    fn begin(&mut self, tx: &Tx, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    /// A load of persistent memory has received its value; the answer is when the core may use it.
    fn load(&mut self, load: &Load, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(load.at)
    }

    /// Whether the design itself brings to memory the stores that [`store`](Design::store) tells it
    /// of. The write-combining buffers then send nothing for stores past the caches.
    fn brings_stores(&self) -> bool {
        false
    }

    /// A store to persistent memory has taken effect in the caches; the answer is when it may leave
    /// the store queue. What others can see of the core waits with it: no later store, fence or
    /// commit of the core reaches a hook before then.
    fn store(&mut self, store: &Store, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(store.at)
    }

    /// The program asks for an order of its stores, for their durability, or for a line to be
    /// written back; the answer is when that is done.
    fn fence(&mut self, fence: &Fence, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(fence.at)
    }

    /// A transaction ends. The answer is when it is acknowledged and the core may go on. An
    /// asynchronous design announces later that the transaction is durable ([`Below::durable`]).
    fn commit(&mut self, tx: &Tx, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    /// The hardware is to revoke the stores of a transaction. The view of the cores already holds
    /// the old values of its words again. Called only if [`Design::REVOKES`]. If the answer is
    /// [`Progress::Wait`], the core asks again when [`Below::retry`] wakes it.
    fn abort(&mut self, tx: &Tx, _by: Abort, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(tx.at)
    }

    // From the caches.

    /// A line of persistent memory has come to a core's first level, from the last level or from
    /// memory; the answer is when the core has it.
    fn fill(&mut self, fill: &Fill, _below: &mut Below<Self::Event>) -> Cycle {
        fill.at
    }

    /// A line of persistent memory leaves a core's first level: for a level below, for another core
    /// or, just before [`Design::evict`], for memory. Called only if [`Design::WATCHES_L1`].
    fn leave(&mut self, _leave: &Leave, _below: &mut Below<Self::Event>) {}

    /// A line of persistent memory that a core changed moves from its second level to the last, to
    /// make room or because another core asks for it. Called only if [`Design::WATCHES_L2`], and
    /// not for a line that goes on to memory at once ([`Design::evict`]).
    fn come_down(&mut self, _leave: &Leave, _below: &mut Below<Self::Event>) {}

    /// A dirty line of persistent memory leaves the last level; the answer is what becomes of it.
    fn evict(
        &mut self,
        evict: &Evict,
        _below: &mut Below<Self::Event>,
    ) -> Disposition<Self::Event> {
        Disposition::Home { at: evict.at, notify: Notify::Nobody }
    }

    /// A line moves from one core's caches to another's; the answer is when the new owner has it.
    fn transfer(&mut self, transfer: &Transfer, _below: &mut Below<Self::Event>) -> Cycle {
        transfer.at
    }

    // From the translation, if [`Design::TRANSLATES`]. Programs and the caches' tags use virtual
    // lines; so do all hooks but these.

    /// Bytes of persistent memory that the design needs for itself, behind the machine's
    /// [`Shape::capacity`]. They are zero at first.
    fn reserved(_setup: &Setup<'_, Self>) -> u64 {
        0
    }

    /// The line of the page table that a walk reads last. It is in DRAM unless the design keeps its
    /// page table elsewhere.
    fn page_table(&self, page: Page) -> Line {
        Line::of(DRAM_BASE + PAGE_TABLE + page.0 * WORD_BYTES)
    }

    /// A walk has found a page's translation; the answer is when the core has it. If the answer is
    /// [`Progress::Wait`], the core asks again when [`Below::retry`] wakes it.
    fn tlb_fill(&mut self, fill: &TlbFill, _below: &mut Below<Self::Event>) -> Progress {
        Progress::Done(fill.at)
    }

    /// A page's translation leaves a core's TLBs.
    fn tlb_evict(&mut self, _evict: &TlbEvict, _below: &mut Below<Self::Event>) {}

    /// A core is about to store to a line whose translation is in its TLB; the answer is whether
    /// and when it may.
    fn claim(&mut self, claim: &Claim, _below: &mut Below<Self::Event>) -> Claimed {
        Claimed::At(claim.at)
    }

    /// The physical line that holds, or will hold, the newest bytes of a virtual line.
    #[inline]
    fn locate(&self, line: Line) -> Line {
        line
    }

    /// Where each virtual line lies once recovery is done, for checkers that read the image then.
    ///
    /// # Errors
    /// A sentence that says how the mapping that survived contradicts itself.
    fn resolve(_image: &Image<'_>, _setup: &Setup<'_, Self>) -> Result<Placement, String> {
        Ok(Placement::default())
    }

    // From the passing of time.

    /// One of the design's own events is due ([`Below::at`], [`Notify::Design`]).
    fn event(&mut self, _at: Cycle, _event: Self::Event, _below: &mut Below<Self::Event>) {}

    // From the power supply.

    /// Where the caches survive a power failure: whether a dirty line is nevertheless not saved,
    /// because a transaction that has not committed stored to it and recovery could not revoke
    /// that.
    fn leaves_behind(&self, _line: Line) -> bool {
        false
    }

    /// What must be true of the design at any time while all of its rules are on. A crash campaign
    /// asks at every crash point at which it cuts the power, before it makes any image, and what is
    /// not true is a violation of that point: an error that is not visible in what survives yet, or
    /// never. The run goes on, so the hook only looks.
    ///
    /// A mutant is not asked: what a rule does must be seen in what survives. A library on a core
    /// is not asked either; under a software log it is the hardware alone that answers.
    ///
    /// # Errors
    /// A sentence that says what is not true.
    fn invariants(&self) -> Result<(), String> {
        Ok(())
    }

    /// The power has failed: writes what the design's battery still saves, in order.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery is empty. A design passes it on with `?` and does nothing
    /// else about it.
    fn power_loss(&self, _gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        Ok(())
    }

    /// For a design with structures that survive: whether the part that is told of a durable write
    /// with this event stands beside the controller that accepts the write, so that no power
    /// failure can come between the two. If it does not, a crash campaign also tries that the write
    /// arrived and the design had not heard of it.
    fn hears_at_once(&self, _event: &Self::Event) -> bool {
        true
    }

    /// Writes that could be durable by now if timing had been different, in their order. For each
    /// write that the design's own rules allow next, it calls `arrived`, and goes on as if the
    /// write had arrived or had not. Writes that are on their way to a controller without the
    /// design being told are not among them: the campaign tries those itself. It calls this at each
    /// crash point.
    fn could_be_durable(
        &self,
        _below: &Below<Self::Event>,
        _arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        Vec::new()
    }

    /// The power is back: repairs the image, as firmware or a library does. There is no `self`, so
    /// nothing volatile can leak in, and the setup was fixed before power was first applied.
    ///
    /// Unless stores are durable when they are visible, writes to different lines become durable in
    /// any order up to the next [`Image::fence`]; all of them are durable when recovery is done.
    /// What recovery does must depend on the bytes that it reads of the image and on nothing else:
    /// a campaign relies on that.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again. A design passes it on with `?` and does nothing
    /// else about it.
    fn recover(_image: &mut Image<'_>, _setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        Ok(())
    }

    /// Makes the design for a machine that is switched on again after recovery, and writes what
    /// must be in memory before programs run. By default the design knows no more than on a new
    /// machine; whatever earlier lives left in its part of memory must then do no harm. Data stay
    /// as they are, since repairing them is the task of [`Design::recover`]. Writes become durable
    /// as those of recovery do.
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again. Recovery is then run once more.
    fn boot(_image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self, PowerLoss> {
        Ok(Self::new(setup))
    }

    /// The name of one of its events in a timeline.
    fn show_event(&self, event: &Self::Event) -> String {
        format!("{event:?}")
    }

    /// The structures that it adds to the hardware, for its cost and its battery.
    fn hardware(_setup: &Setup<'_, Self>) -> Vec<Structure> {
        Vec::new()
    }

    /// What trial number `_trial` of the search for mutants sets for this design, beside what the
    /// trial sets for all, so that its corner cases happen often. The machine may go through
    /// several lives.
    fn corner(_trial: u64, _has_lives: bool) -> Corner {
        Corner::default()
    }

    /// Its counters so far, by name, for reports. Each is a sum, of which the part of the measured
    /// region is reported, or, if its name ends in `_max`, the largest value at any time.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A complete system: hardware, and the library on its cores. Each design is a system by itself. A
/// software log is a system together with the ordering hardware that it is paired with, and the
/// machine is compiled once for each such pair.
pub trait System: Sized + 'static {
    /// Its name, paper, durability and granularity.
    const CARD: Card;
    /// See [`Design::NEEDLESS`].
    const NEEDLESS: &'static [(&'static str, &'static str)];
    /// See [`Design::NEEDLESS_WITH`].
    const NEEDLESS_WITH: &'static [NeedlessWith];
    /// The name of the ordering hardware below it, if it is a software log.
    const STANDS_ON: Option<&'static str>;
    /// Its parameters.
    type Params: Params;
    /// Its rules.
    type Rules: Rules;
    /// The hardware.
    type Hardware: Design;
    /// What runs on each core.
    type Library: Library<Self>;

    /// The hardware's part of the setup.
    fn of_hardware<'a>(setup: &Setup<'a, Self>) -> Setup<'a, Self::Hardware>;

    /// Repairs the image when the power is back, as firmware and the library do
    /// ([`Design::recover`]).
    ///
    /// # Errors
    /// [`PowerLoss`] when the power fails again.
    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss>;

    /// Makes the hardware for a machine that is switched on again after recovery
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

/// A rule that a design does not need under one choice of a parameter.
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

/// Everything that is fixed before power is first applied, and is the same after every reboot.
pub struct Setup<'a, S: System> {
    /// The design's parameters.
    pub params: &'a S::Params,
    /// The rules that it obeys: all of them, except in a mutant.
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

/// The operations of a core, for a library that runs on it. A program's own operations go through
/// it, too.
pub trait Cpu {
    /// The core.
    fn core(&self) -> CoreId;
    /// Loads a word. Returns its value, and when the core has it.
    fn load(&mut self, at: Ptr) -> (u64, Cycle);
    /// Stores the bytes of a word that `mask` selects.
    fn store(&mut self, at: Ptr, value: u64, mask: u64);
    /// Waits until the core may store to a line ([`Design::claim`]); for stores in transactions,
    /// under a design that translates. Returns the cycle from which the store's address counts as
    /// known and the store may leave. `None` if the design refuses: the transaction must then be
    /// given up.
    fn claim(&mut self, at: Ptr) -> Option<Cycle>;
    /// Gives up the transaction in hardware ([`Design::abort`]). The overwritten words, oldest
    /// first, get their old values back.
    fn abort(&mut self, overwritten: &[(Word, u64)], by: Abort);
    /// Reads a word without any effect on the machine.
    fn peek(&self, word: Word) -> u64;
    /// Executes instructions that touch no memory.
    fn work(&mut self, instructions: u64);
    /// Asks for a line to be written back; `class` is what the write counts as.
    fn flush(&mut self, line: Line, class: Class, how: Flush);
    /// Orders earlier stores before later ones in what survives a power failure.
    fn order(&mut self);
    /// Waits until earlier stores are durable.
    fn durable(&mut self);
    /// Ends the run, because what it was asked to do does not fit the machine. The text is a
    /// sentence for the user.
    fn give_up(&mut self, text: String);
}

/// A library between a program and its core, such as a software log. Each core has its own, and its
/// fields are volatile.
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

    /// The program commits. The transaction is acknowledged once this has returned and the hardware
    /// agrees ([`Design::commit`]).
    fn commit(&mut self, _cpu: &mut impl Cpu) {}

    /// The program aborts. `overwritten` are the words that it stored to, oldest first, with the
    /// values that they held before. Once this has returned and the hardware agrees that the
    /// transaction has ended, the transaction has had no effect.
    ///
    /// If the hardware does not revoke, the runtime does: from its list of old values in volatile
    /// memory it stores them back, newest first, and commits that.
    fn abort(&mut self, overwritten: &[(Word, u64)], cpu: &mut impl Cpu) {
        if S::Hardware::REVOKES {
            return cpu.abort(overwritten, Abort::ByProgram);
        }
        for &(word, old) in overwritten.iter().rev() {
            self.store(Ptr::to(word.address()), old, u64::MAX, cpu);
        }
        self.commit(cpu);
    }

    /// Does what is left to do once the transaction is acknowledged, while its locks are still
    /// held.
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
