//! Runs programs on a machine: each core's program is a coroutine, and the core that is furthest
//! behind goes on next.

use std::cell::UnsafeCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::config::Config;
use crate::crash::{Campaign, Probe};
use crate::design::{Claimed, Cpu, Design, FenceKind, Library, Model, Progress};
use crate::epochs::{self, Epochs};
use crate::locks::lock_line;
use crate::machine::Machine;
use crate::meters::{Class, Stall};
use crate::oracle::{Oracle, Violation};
use crate::persistency::Persistency;
use crate::report::Report;
use crate::units::{CoreId, Cycle, Line, Page, Word};
use crate::workload::{Flush, LockId, Pm, Port, Program, Ptr, Step, Stop, Workload};

/// Bytes of the stack on which a program runs; SQLite's deepest recursion fits many times.
const STACK_BYTES: usize = 1 << 20;

/// Events in a row after each of which every core still waits, before a design is said to go round
/// in circles (ours: a WPQ of thousands of entries drains in a hundredth of it).
const IDLE_EVENTS_MAX: u64 = 1_000_000;

/// What is shared with whoever watches a run, or wants it to end.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end the run soon.
    pub cancelled: AtomicBool,
    /// Transactions done.
    pub done: AtomicU64,
    /// Transactions to be done; 0 while that is not known.
    pub total: AtomicU64,
}

/// One run: a design, a workload and a machine, by value.
pub struct Run<'a, D: Design> {
    /// The machine.
    pub config: &'a Config,
    /// Cores, each of which runs a program.
    pub cores: u8,
    /// The design's parameters.
    pub params: D::Params,
    /// The design's rules.
    pub rules: D::Rules,
    /// The workload; not populated yet.
    pub workload: Box<dyn Workload>,
    /// Transactions of each core before the measured region.
    pub warmup: u64,
    /// Transactions of each core in the measured region.
    pub transactions: u64,
    /// Whether nobody may run ahead, not even on what it holds itself.
    pub exact: bool,
    /// Whether ordering points and epochs are counted.
    pub epochs: bool,
    /// Whether the power is cut, and where.
    pub campaign: Option<Campaign>,
    /// Called when the measured region begins; for whoever measures the host.
    pub started: Rc<dyn Fn()>,
    /// Who watches.
    pub control: &'a Control,
}

/// What a run found.
#[derive(Debug)]
pub struct Outcome {
    /// What was counted.
    pub report: Report,
    /// What the crash campaign found, if there was one.
    pub crashes: Option<Crashes>,
}

/// What a crash campaign found.
#[derive(Clone, Debug, Default)]
pub struct Crashes {
    /// Crash points of the run, whether the power was cut there or not.
    pub passed: u64,
    /// Power failures.
    pub points: u64,
    /// Power failures during recovery.
    pub nested_points: u64,
    /// What was wrong after them.
    pub violations: Vec<Violation>,
    /// If the order of stores was checked: images that were checked, and whether the one that was
    /// asked about was allowed, and was seen.
    pub images: u64,
    /// See `images`.
    pub allowed: bool,
    /// See `images`.
    pub seen: bool,
}

/// Why a run could not be made.
#[derive(Debug)]
pub enum Failure {
    /// The workload could not go on.
    Stopped(Stop),
    /// The host has no room.
    Host(std::io::Error),
    /// Every core waits, and nothing is due, or what is due wakes nobody: a defect of the design.
    Deadlock(String),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        Failure::Stopped(stop)
    }
}

/// A machine that the coroutines of its cores share. Only one of them runs at a time, and none
/// keeps a reference over a suspension.
struct Shared<D: Design>(Rc<UnsafeCell<Machine<D>>>);

impl<D: Design> Clone for Shared<D> {
    fn clone(&self) -> Shared<D> {
        Shared(Rc::clone(&self.0))
    }
}

impl<D: Design> Shared<D> {
    #[expect(clippy::mut_from_ref, reason = "coroutines take turns; see SAFETY")]
    #[inline]
    fn machine(&self) -> &mut Machine<D> {
        // SAFETY: All users run on one thread and take turns at suspension points. Each method
        // below gets the reference anew after a suspension and keeps none across one, so at most
        // one is in use at any time.
        unsafe { &mut *self.0.get() }
    }
}

/// A program's coroutine.
type Thread = Coroutine<(), (), Step, DefaultStack>;

/// Runs programs on a machine.
///
/// # Errors
/// See [`Failure`].
///
/// # Panics
/// When the design or the machine breaks one of its own rules.
pub fn run<D: Design>(run: Run<'_, D>) -> Result<Outcome, Failure> {
    let mut config = run.config.clone();
    if run.exact {
        config.core.quantum = 0;
    }
    let mut machine =
        Machine::<D>::new(&config, run.cores, run.params, run.rules).map_err(Failure::Host)?;
    let mut workload = run.workload;
    workload.populate(&mut Pm::plain(&mut machine.below.view, CoreId(0)))?;
    machine.below.view.pm.use_large_pages().map_err(Failure::Host)?;
    machine.below.memory.install(&machine.below.view.pm);
    let workload: Rc<dyn Workload> = Rc::from(workload);
    if let Some(campaign) = run.campaign {
        let log_base = machine.below.shape.log_base;
        let oracle = Oracle::new(&machine.below.view.pm, run.cores, log_base, D::CARD.durability);
        let oracle = oracle.map_err(Failure::Host)?;
        let order = Persistency::new(D::MODEL.unwrap_or(Model::Unordered), run.cores);
        let probe = Probe::new(campaign, oracle, order, Rc::clone(&workload));
        machine.probe = Some(Box::new(probe));
    }
    if run.epochs {
        let window = config.cycles(epochs::WINDOW_PS);
        machine.epochs = Some(Box::new(Epochs::new(run.cores, window)));
    }
    let shared = Shared(Rc::new(UnsafeCell::new(machine)));
    let count = Count { warmup: run.warmup, transactions: run.transactions };
    let total = u64::from(run.cores) * (run.warmup + run.transactions);
    run.control.total.store(total, Ordering::Relaxed);
    let mut threads = Vec::new();
    for core in (0..run.cores).map(CoreId) {
        let program = workload.program(core)?;
        let watch = Watch { control: run.control, started: Rc::clone(&run.started) };
        threads.push(thread(shared.clone(), core, program, count, watch)?);
    }
    let cancelled = schedule(&shared, &mut threads)?;
    drop(threads);
    let machine = shared.machine();
    let report = machine.report(cancelled);
    let crashes = machine.probe.take().map(|probe| {
        let stores = probe.stores.as_ref();
        Crashes {
            passed: probe.passed,
            points: probe.points,
            nested_points: probe.nested_points,
            images: stores.map_or(0, |stores| stores.images),
            allowed: stores.is_some_and(|stores| stores.allowed),
            seen: stores.is_some_and(|stores| stores.seen),
            violations: probe.violations,
        }
    });
    Ok(Outcome { report, crashes })
}

/// Resumes cores until all have finished; whether the run was cancelled.
fn schedule<D: Design>(shared: &Shared<D>, threads: &mut [Thread]) -> Result<bool, Failure> {
    let mut cancelled = false;
    let mut idle = 0;
    loop {
        let machine = shared.machine();
        if let Some(stop) = machine.take_stop() {
            return Err(stop.into());
        }
        let Some(core) = machine.choose() else {
            idle += 1;
            if idle < IDLE_EVENTS_MAX && machine.process_one(Cycle::NEVER) {
                continue;
            }
            let stuck: Vec<String> = machine
                .cores
                .iter()
                .filter_map(|(id, core)| Some(format!("{id} waits for {:?}", core.parked?)))
                .collect();
            if idle == IDLE_EVENTS_MAX {
                let text = format!("{}: events follow each other for ever", stuck.join(", "));
                return Err(Failure::Deadlock(text));
            }
            if stuck.is_empty() || cancelled || machine.is_done() {
                return Ok(cancelled);
            }
            return Err(Failure::Deadlock(stuck.join(", ") + ", and nothing is due"));
        };
        idle = 0;
        match threads[usize::from(core.0)].resume(()) {
            CoroutineResult::Yield(()) => (),
            CoroutineResult::Return(result) => {
                shared.machine().cores[core].finished = true;
                match result {
                    Ok(()) => (),
                    Err(Stop::Cancelled) => cancelled = true,
                    Err(stop) => return Err(stop.into()),
                }
            }
        }
    }
}

/// Who watches a run, for as long as it lasts.
#[derive(Clone)]
struct Watch {
    control: *const Control,
    started: Rc<dyn Fn()>,
}

#[derive(Clone, Copy)]
struct Count {
    warmup: u64,
    transactions: u64,
}

/// The coroutine of one core: warm up, wait for the others, then the measured transactions.
fn thread<D: Design>(
    shared: Shared<D>,
    core: CoreId,
    mut program: Box<dyn Program>,
    count: Count,
    watch: Watch,
) -> Result<Thread, Failure> {
    let stack = DefaultStack::new(STACK_BYTES).map_err(Failure::Host)?;
    Ok(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        // SAFETY: `run` holds the borrow of the control until after it has dropped the coroutines.
        let control = unsafe { &*watch.control };
        let library = D::Library::new(&shared.machine().setup(), core);
        let cpu = OnCore { shared, core, yielder };
        let mut port = Front { cpu, library, control };
        repeat(&mut *program, count.warmup, &mut port, core)?;
        port.cpu.wait_for_all(&*watch.started);
        repeat(&mut *program, count.transactions, &mut port, core)?;
        port.cpu.finish();
        Ok(())
    }))
}

/// So many transactions of a program.
fn repeat(program: &mut dyn Program, count: u64, port: &mut dyn Port, core: CoreId) -> Step {
    let mut pm = Pm::simulated(port, core);
    (0..count).try_for_each(|_| program.transaction(&mut pm))
}

/// A core as the code that runs on it sees it: its operations return when the core may go on.
struct OnCore<'y, D: Design> {
    shared: Shared<D>,
    core: CoreId,
    yielder: &'y Yielder<(), ()>,
}

impl<D: Design> OnCore<'_, D> {
    #[inline]
    fn machine(&self) -> &mut Machine<D> {
        self.shared.machine()
    }

    /// Returns when it is this core's turn to do something that others can see; whether others
    /// had theirs before.
    #[inline]
    fn turn(&self) -> bool {
        let mut waited = false;
        while !self.machine().may_act(self.core) {
            self.yielder.suspend(());
            waited = true;
        }
        waited
    }

    /// Parks the core until it is woken.
    fn park(&self, stall: Stall) {
        self.machine().park(self.core, stall);
        self.turn();
    }

    /// Dispatches an instruction. It waits for room in the reorder buffer, and for a load in the
    /// load queue.
    #[inline]
    fn dispatch(&self, load: bool) {
        while !self.machine().cores[self.core].timing.dispatch(load) {
            self.wait_for_open();
        }
    }

    /// Parks the core until its fence or commit, whose time is open, is done.
    fn wait_for_open(&self) {
        while let Some(stall) = self.machine().cores[self.core].timing.open() {
            self.park(stall);
        }
    }

    /// Dispatches a load, store, flush or fence, which may have to wait for room in the core. What
    /// it does comes later, when it is the core's turn.
    #[inline]
    fn issue(&self, load: bool) {
        self.machine().count_operation();
        self.dispatch(load);
    }

    /// Dispatches a store, with its room in the store queue.
    fn issue_store(&self) {
        self.settle();
        self.issue(false);
        self.machine().cores[self.core].timing.make_room_for_store();
    }

    /// Returns when no fence or commit holds back what others can see, and the transaction that
    /// the program is in has begun for the design.
    #[inline]
    fn settle(&self) {
        let core = &self.machine().cores[self.core];
        if !core.timing.is_settled() || core.beginning {
            self.settle_slowly();
        }
    }

    #[cold]
    fn settle_slowly(&self) {
        self.wait_for_open();
        self.machine().cores[self.core].timing.settle();
        if self.machine().cores[self.core].beginning {
            self.turn();
            let progress = self.machine().begin(self.core);
            self.obey(progress, Stall::Commit);
        }
    }

    /// Does what the hook of a fence or commit answered: it retires late, and holds back what it
    /// orders.
    fn hold(&self, progress: Progress, stall: Stall) {
        self.machine().hold(self.core, progress, stall);
        if self.machine().cores[self.core].timing.is_in_order() {
            self.settle();
        }
    }

    fn wait(&self, until: Cycle, stall: Stall) {
        self.machine().cores[self.core].timing.wait(until, stall);
    }

    /// Does what a hook answered.
    #[inline]
    fn obey(&self, progress: Progress, stall: Stall) {
        match progress {
            Progress::Done(at) => self.wait(at, stall),
            Progress::Wait => self.park(stall),
        }
    }

    /// Returns when it is this core's turn and its access of a line finds room for write-backs.
    #[inline]
    fn turn_with_room(&self, line: Line, write: bool, stall: Stall) -> bool {
        let mut waited = self.turn();
        while self.machine().is_congested(self.core, line, write) {
            self.park(stall);
            waited = true;
        }
        waited
    }

    #[inline]
    fn load_line(&self, line: Line, known: Cycle) -> Cycle {
        self.issue(true);
        let known = if self.machine().walks { self.translate(line, known) } else { known };
        match self.machine().load_near(self.core, line, known) {
            Some(done) => done,
            None => self.load_far(line, known),
        }
    }

    /// A load that has to wait for its turn, or that may miss the first level.
    fn load_far(&self, line: Line, known: Cycle) -> Cycle {
        if !self.machine().may_lead(self.core) {
            self.turn();
        }
        if self.machine().has(self.core, line) {
            return self.machine().cores[self.core].timing.load_hit(line, known);
        }
        self.machine().prefetch(line);
        // While the core waited for its turn, its first level may have gained the line.
        let waited = self.turn_with_room(line, false, Stall::LoadMiss);
        if waited && self.machine().has(self.core, line) {
            return self.machine().cores[self.core].timing.load_hit(line, known);
        }
        self.machine().load_miss(self.core, line, known)
    }

    /// When the address of a load, which the program knows at `known`, is translated.
    #[inline]
    fn translate(&self, line: Line, known: Cycle) -> Cycle {
        if !self.machine().is_translated(line) {
            return known;
        }
        let page = Page::of(line);
        match self.machine().translation(self.core, page) {
            Some(0) => known,
            Some(cycles) => known.max(self.machine().cores[self.core].timing.clock()) + cycles,
            None => self.translate_slowly(page, known),
        }
    }

    #[cold]
    fn translate_slowly(&self, page: Page, known: Cycle) -> Cycle {
        loop {
            self.turn();
            match self.machine().translate(self.core, page, known) {
                Some(at) => return at,
                None => self.park(Stall::LoadMiss),
            }
        }
    }

    /// Returns when it is this core's turn to store to a line, with when the store may leave.
    /// Nothing: the design refuses.
    fn turn_to_store(&self, line: Line, mut known: Cycle) -> Option<Cycle> {
        loop {
            self.turn_with_room(line, true, Stall::StoreBuffer);
            if !self.machine().is_translated(line) {
                return Some(known);
            }
            let page = Page::of(line);
            if let Some(cycles) = self.machine().translation(self.core, page) {
                known += cycles;
            } else if let Some(at) = self.machine().translate(self.core, page, known) {
                known = at;
            } else {
                self.park(Stall::StoreBuffer);
                continue;
            }
            if !D::TRANSLATES {
                return Some(known);
            }
            match self.machine().claim(self.core, line) {
                Claimed::At(at) => return Some(known.max(at)),
                Claimed::Wait => self.park(Stall::LogFull),
                Claimed::Refused => return None,
            }
        }
    }

    fn commit(&mut self) {
        self.settle();
        self.dispatch(false);
        self.turn();
        let progress = self.machine().commit(self.core);
        self.hold(progress, Stall::Commit);
    }

    fn fence(&self, kind: FenceKind) {
        self.settle();
        let flush = matches!(kind, FenceKind::Flush(..));
        if if flush { D::HAS_FLUSHES } else { D::HAS_FENCES } {
            self.issue(false);
        }
        self.turn();
        let progress = self.machine().fence(self.core, kind);
        self.hold(progress, Stall::Fence);
    }

    fn lock(&mut self, lock: LockId) {
        self.settle();
        let drained = self.machine().cores[self.core].timing.drained();
        self.wait(drained, Stall::Lock);
        self.turn();
        match self.machine().lock(self.core, lock) {
            Some(since) => self.wait(since, Stall::Lock),
            None => self.park(Stall::Lock),
        }
        self.store(lock_line(lock), 1, u64::MAX);
        let drained = self.machine().cores[self.core].timing.drained();
        self.wait(drained, Stall::Lock);
    }

    fn unlock(&mut self, lock: LockId) {
        self.store(lock_line(lock), 0, u64::MAX);
        self.turn();
        self.machine().unlock(self.core, lock);
    }

    fn wait_for_all(&self, started: &dyn Fn()) {
        self.settle();
        self.turn();
        if self.machine().arrive() {
            started();
            self.machine().start_measuring();
        } else {
            self.park(Stall::Other);
        }
    }

    fn finish(&self) {
        self.settle();
        let drained = self.machine().cores[self.core].timing.drained();
        self.wait(drained, Stall::Other);
        self.turn();
    }
}

impl<D: Design> Cpu for OnCore<'_, D> {
    fn core(&self) -> CoreId {
        self.core
    }

    #[inline]
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        let line = Line::of(at.address);
        let done = self.load_line(line, at.known);
        let value = self.machine().below.view.word(Word::of(at.address));
        match self.machine().loaded(self.core, at, done) {
            Progress::Done(at) => (value, at),
            Progress::Wait => {
                self.park(Stall::LoadMiss);
                (value, self.machine().cores[self.core].timing.clock())
            }
        }
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        let line = Line::of(at.address);
        self.issue_store();
        if !self.machine().below.caches.is_near(self.core, line) {
            self.machine().prefetch(line);
        }
        let leaves = self.turn_to_store(line, at.known);
        let leaves = leaves.expect("who stores has claimed the line, or stores outside");
        let progress = self.machine().store(self.core, at, value, mask, leaves);
        self.obey(progress, Stall::LogFull);
    }

    fn claim(&mut self, at: Ptr) -> bool {
        self.turn_to_store(Line::of(at.address), at.known).is_some()
    }

    fn abort(&mut self) {
        loop {
            self.turn();
            match self.machine().abort(self.core) {
                Progress::Done(at) => return self.wait(at, Stall::LogFull),
                Progress::Wait => self.park(Stall::LogFull),
            }
        }
    }

    fn peek(&self, word: Word) -> u64 {
        self.machine().below.view.word(word)
    }

    #[inline]
    fn work(&mut self, instructions: u64) {
        let mut left = self.machine().cores[self.core].timing.work(instructions);
        while left > 0 {
            self.wait_for_open();
            left = self.machine().cores[self.core].timing.work(left);
        }
    }

    fn flush(&mut self, line: Line, class: Class, how: Flush) {
        self.fence(FenceKind::Flush(line, class, how));
    }

    fn order(&mut self) {
        self.fence(FenceKind::Order);
    }

    fn durable(&mut self) {
        self.fence(FenceKind::Durable);
    }

    fn give_up(&mut self, text: String) {
        self.machine().below.give_up(text);
    }
}

/// What a program sees: its core, through the design's library.
struct Front<'y, 'c, D: Design> {
    cpu: OnCore<'y, D>,
    library: D::Library,
    control: &'c Control,
}

impl<D: Design> Port for Front<'_, '_, D> {
    #[inline]
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        self.library.load(at, &mut self.cpu)
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        self.cpu.settle();
        let machine = self.cpu.machine();
        machine.record(self.cpu.core, at, value, mask);
        if machine.current_tx(self.cpu.core).is_none() {
            return self.cpu.store(at, value, mask);
        }
        self.library.store(at, value, mask, &mut self.cpu);
    }

    fn store_past_caches(&mut self, at: Ptr, value: u64) {
        self.cpu.issue_store();
        let ready = self.cpu.turn_to_store(Line::of(at.address), at.known);
        ready.expect("a store past the caches is outside of transactions, or fits");
        self.cpu.machine().record(self.cpu.core, at, value, u64::MAX);
        let progress = self.cpu.machine().store_past_caches(self.cpu.core, at, value);
        self.cpu.obey(progress, Stall::LogFull);
    }

    fn begin(&mut self) {
        self.cpu.dispatch(false);
        let tx = self.cpu.machine().enter_tx(self.cpu.core);
        if self.cpu.machine().cores[self.cpu.core].timing.is_settled() {
            self.cpu.settle();
        }
        self.library.begin(tx, &mut self.cpu);
    }

    fn commit(&mut self) {
        self.cpu.settle();
        self.cpu.turn();
        self.cpu.machine().commit_began(self.cpu.core);
        self.library.commit(&mut self.cpu);
        self.cpu.commit();
        self.library.settle(&mut self.cpu);
        self.control.done.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&mut self, lock: LockId) {
        self.cpu.lock(lock);
    }

    fn unlock(&mut self, lock: LockId) {
        self.cpu.unlock(lock);
    }

    #[inline]
    fn work(&mut self, instructions: u64) {
        self.cpu.work(instructions);
    }

    fn flush(&mut self, at: Ptr, how: Flush) {
        self.cpu.flush(Line::of(at.address), Class::Data, how);
    }

    fn order(&mut self) {
        self.cpu.order();
    }

    fn durable(&mut self) {
        self.cpu.durable();
    }

    fn cancelled(&self) -> bool {
        self.control.cancelled.load(Ordering::Relaxed) || self.cpu.machine().is_done()
    }
}
