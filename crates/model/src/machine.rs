//! The machine: cores, one design, and the hardware below it, wired once. It chooses the core that
//! goes on next and processes the events that are due.

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::below::Unacknowledged;
use crate::caches::{Caches, Watched};
use crate::config::{Config, Switch, Walks};
use crate::contents::View;
use crate::controller::{Accepted, Notify};
use crate::core::Core;
use crate::crash::Probe;
use crate::crash::failure::fail;
use crate::design::{Below, Card, Design, Progress, Setup};
use crate::device::Write;
use crate::epochs::Epochs;
use crate::event::Event;
use crate::hooks::not_before;
use crate::locks::{Locks, Turns};
use crate::memory::Memory;
use crate::meters::Stall;
use crate::tlb::Tlbs;
use crate::units::{CoreId, Cycle, Line, LineMap, LineSet, PAGE_LINES, PerCore, TxId, Word};
use crate::usage::Usage;
use crate::workload::Stop;
use crate::write_combining::Combining;

mod accesses;
mod measure;
mod order;
mod past_caches;
mod timeline;
mod translate;
mod wakes;

use measure::Counts;

/// How many events in a row may leave every core waiting, or how many of one cycle may keep a core
/// from its turn, before the run reports that the design goes round in circles (ours: a WPQ of
/// thousands of entries drains in a hundredth of it). While every core waits, [`PAGE_EVENTS`] more
/// may follow.
pub(crate) const IDLE_EVENTS_MAX: u64 = 1_000_000;

/// How many events more may do so for each page of persistent memory that holds anything, since a
/// commit may have all of it written (ours: the logs of large transactions take 1 to 4 events a
/// line, and this is 16).
const PAGE_EVENTS: u64 = 16 * PAGE_LINES;

/// A machine with a design on it.
pub struct Machine<D: Design> {
    /// The design.
    pub design: D,
    /// The design's card, which includes the library on its cores.
    pub card: Card,
    /// The machine below the design.
    pub below: Below<D::Event>,
    pub(crate) cores: PerCore<CoreState>,
    locks: Locks,
    turns: Turns,
    /// Whether fences are instructions, and whether flushes are.
    pub(crate) has_fences: bool,
    pub(crate) has_flushes: bool,
    /// When the run gave up, because [`IDLE_EVENTS_MAX`] events in a row let no core go on.
    pub(crate) circles: Option<Cycle>,
    /// A crash campaign, if there is one.
    pub probe: Option<Box<Probe>>,
    /// The last cycle at which the core that runs may do anything that others can see.
    pub(crate) turn_limit: u64,
    quantum: u64,
    /// Whether the begin and the end of a transaction are full barriers.
    pub(crate) tx_barriers: bool,
    pub(crate) clwb_retains: bool,
    /// Whether translation takes time.
    pub(crate) walks: bool,
    /// The core and the line of the claim that the design granted last, until anything else
    /// happens.
    claimed: Option<(CoreId, Line)>,
    /// Lines on their way from memory or from another core, and when each arrives.
    coming: LineMap<Cycle>,
    coming_until: Cycle,
    /// A counter that rises with each miss of the last level and falls with each hit, from 0 to
    /// `MEMORY_MISSES_MAX`.
    memory_misses: u8,
    /// The stores to persistent memory before which the power may be cut.
    cut_before_stores: CutBefore,
    /// A buffer for the lines that the design is being told of as they move, kept to be used again.
    moved: Vec<(CoreId, Line)>,
    /// A buffer for the parts that are being told that a write is durable, kept to be used again.
    told: Vec<Notify<D::Event>>,
    /// Whether any core has stored past the caches, so that write-combining buffers may hold
    /// stores.
    combines: bool,
    /// Lines that were stored to since the last crash point, kept only under [`CutBefore::Again`].
    stored_since: LineSet,
    started: Cycle,
    arrived: u8,
    counts: Counts,
    /// How busy controllers and memories were, known once every program has come to its end.
    usage: Option<Usage>,
    /// Ordering points and what lies between them, if the caller asked for them.
    pub epochs: Option<Box<Epochs>>,
}

/// The stores to persistent memory before which the power may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutBefore {
    /// None: a store alone changes nothing that could survive.
    None,
    /// Stores to a line that was stored to since the last crash point: the line may have reached
    /// memory with its present bytes, which no later crash point would see.
    Again,
    /// Every store: a store survives as soon as it is visible, or what could be durable is examined
    /// between any two stores.
    Every,
}

/// What a core is doing, and its timing.
pub(crate) struct CoreState {
    pub timing: Core,
    pub parked: Option<Stall>,
    /// The hook that answered the core with a wait, and when; none once the design has woken the
    /// core.
    unanswered: Option<(&'static str, Cycle)>,
    /// When the core goes on, if the design woke it before it was parked.
    woken: Option<Cycle>,
    /// The load that the design lets wait, if the core is parked for one.
    load: wakes::LoadWait,
    pub finished: bool,
    tx: Option<TxId>,
    next_tx: TxId,
    /// Whether the transaction has begun for the program but not yet for the design, because the
    /// one before it is still committing.
    pub beginning: bool,
    /// Stores and borders of transactions until the core's thread moves; none if it never moves.
    stays_for: Option<u64>,
    /// The transaction whose abort has begun and is not acknowledged yet.
    aborted: Option<TxId>,
    /// Transactions whose commit was asked for and that are not known to be durable, each with the
    /// time of the request.
    commits: VecDeque<(TxId, Cycle)>,
    /// The words that the transaction has stored to, one entry for each store.
    written: Vec<Word>,
    combining: Combining,
}

impl CutBefore {
    /// The stores before which a campaign may cut the power, for this design on this machine.
    fn on<D: Design>(setup: &Setup<'_, D>) -> CutBefore {
        match D::stores_survive(setup) || setup.shape.caches_survive() {
            true => CutBefore::Every,
            false if D::ordering(setup.params).lines_leave => CutBefore::Again,
            false => CutBefore::None,
        }
    }
}

impl CoreState {
    /// A core that has done nothing yet.
    fn new(config: &Config) -> CoreState {
        CoreState {
            timing: Core::new(config),
            parked: None,
            unanswered: None,
            woken: None,
            load: wakes::LoadWait::default(),
            finished: false,
            tx: None,
            next_tx: TxId(1),
            beginning: false,
            stays_for: (config.core.migrate != 0).then_some(config.core.migrate),
            aborted: None,
            commits: VecDeque::new(),
            written: Vec::new(),
            combining: Combining::new(config.core.wc_buffers),
        }
    }
}

impl<D: Design> Machine<D> {
    /// A machine that has just been switched on, with zeros in its memories.
    ///
    /// # Errors
    /// When the host has no address space for the memories.
    pub fn new(setup: &Setup<'_, D>, card: Card) -> std::io::Result<Machine<D>> {
        let (shape, cores) = (setup.shape.clone(), setup.shape.cores);
        // The design's own reserved memory lies behind that of programs and logs, so that these
        // have the same addresses under every design.
        let mut config = shape.config.clone();
        config.pm.capacity += D::reserved(setup);
        let config = &config;
        let walks = D::TRANSLATES || config.tlb.walks == Walks::All;
        // Where threads move, there is one idle core more for them to move to.
        let caches = cores + u8::from(config.core.migrate != 0);
        Ok(Machine {
            design: D::new(setup),
            card,
            below: Below {
                caches: Caches::new(
                    caches,
                    config,
                    Watched { l1: D::WATCHES_L1, l2: D::WATCHES_L2 },
                ),
                memory: Memory::new(config)?,
                view: View::new(config.pm.capacity, config.dram.capacity)?,
                shape,
                agenda: Agenda::default(),
                tlbs: Tlbs::new(if walks { caches } else { 0 }, config),
                wakes: Vec::new(),
                load_wakes: Vec::new(),
                retries: Vec::new(),
                stopped: None,
                unacknowledged: PerCore::new(cores, |_| Unacknowledged::default()),
            },
            cores: PerCore::new(cores, |_| CoreState::new(config)),
            locks: Locks::default(),
            turns: Turns::default(),
            has_fences: D::ordering(setup.params).fences,
            has_flushes: D::ordering(setup.params).flushes,
            circles: None,
            probe: None,
            turn_limit: 0,
            quantum: config.core.quantum,
            tx_barriers: config.core.tx_barriers == Switch::Yes,
            clwb_retains: config.core.clwb_retains == Switch::Yes,
            walks,
            claimed: None,
            coming: LineMap::default(),
            coming_until: Cycle(0),
            memory_misses: 0,
            cut_before_stores: CutBefore::on(setup),
            moved: Vec::new(),
            told: Vec::new(),
            combines: false,
            stored_since: LineSet::default(),
            started: Cycle(0),
            arrived: 0,
            counts: Counts::default(),
            usage: None,
            epochs: None,
        })
    }

    // Time.

    /// Chooses the core that goes on next: the one that is furthest behind of those that can go on.
    /// Also sets how far it may go.
    pub(crate) fn choose(&mut self) -> Option<CoreId> {
        self.claimed = None;
        let mut best: Option<(Cycle, CoreId)> = None;
        let mut second = u64::MAX;
        for (id, core) in self.cores.iter() {
            if core.parked.is_some() || core.finished {
                continue;
            }
            let clock = core.timing.clock();
            match best {
                Some((first, other)) if first <= clock => {
                    // A tie goes to the lower number, and `other` is the lower one.
                    second = second.min(clock.0);
                    best = Some((first, other));
                }
                Some((first, _)) => {
                    // The former best has the lower number: at a tie it would come first.
                    second = second.min(first.0.saturating_sub(1));
                    best = Some((clock, id));
                }
                None => best = Some((clock, id)),
            }
        }
        self.turn_limit = second;
        best.map(|(_, id)| id)
    }

    /// Whether it is a core's turn and no event is due at or before its clock.
    #[inline]
    fn acts_next(&self, id: CoreId) -> bool {
        let core = &self.cores[id];
        let clock = core.timing.clock();
        core.parked.is_none()
            && clock.0 <= self.turn_limit
            && self.below.agenda.next() > clock
            && self.below.stopped.is_none()
    }

    /// Returns when a core's store may ask for its line and leave, if neither other cores, nor
    /// translation, nor write-backs can make it wait; its address is known at `known`.
    #[inline]
    pub(crate) fn store_at_once(&mut self, id: CoreId, line: Line, known: Cycle) -> Option<Cycle> {
        let claimed = self.claimed.take() == Some((id, line));
        let may = self.acts_next(id)
            && (claimed || !self.is_translated(line))
            && !self.below.memory.is_congested();
        let clock = self.cores[id].timing.clock();
        may.then(|| if claimed { known.max(clock) } else { known })
    }

    /// Processes what is due before a core does something that others can see. Returns whether it
    /// may do so now: no other core is behind it, and no event is due.
    #[inline]
    pub(crate) fn catch_up(&mut self, id: CoreId) -> bool {
        // Nearly always nothing is due.
        self.acts_next(id) || self.catch_up_with_events(id)
    }

    fn catch_up_with_events(&mut self, id: CoreId) -> bool {
        let (mut now, mut events) = (Cycle(0), 0);
        while events < IDLE_EVENTS_MAX {
            let clock = self.cores[id].timing.clock();
            let core = &self.cores[id];
            if core.parked.is_some() || clock.0 > self.turn_limit || self.below.stopped.is_some() {
                return false;
            }
            let next = self.below.agenda.next();
            if next > clock {
                return true;
            }
            // While time passes, the core's turn comes.
            (now, events) = if next > now { (next, 0) } else { (now, events + 1) };
            self.process_one(clock);
        }
        self.circles = Some(self.below.agenda.next());
        false
    }

    /// Whether a core may load a line that its own first level holds: it leads the other cores and
    /// the next event by no more than the quantum.
    #[inline]
    pub(crate) fn may_lead(&self, id: CoreId) -> bool {
        let limit = self.turn_limit.min(self.below.agenda.next().0).saturating_add(self.quantum);
        self.cores[id].timing.clock().0 <= limit
    }

    /// Processes events, when no core can go on, until one can or the run is to stop. Returns false
    /// if no event is left.
    pub(crate) fn process_until_awake(&mut self) -> bool {
        let (mut events, mut most) = (0, IDLE_EVENTS_MAX);
        while events < most {
            if !self.process_one(Cycle::NEVER) {
                return false;
            }
            // Only a core that was woken lowers the limit ([`Machine::let_lead`]).
            if self.turn_limit < u64::MAX || self.below.stopped.is_some() {
                return true;
            }
            events += 1;
            if events == IDLE_EVENTS_MAX {
                let capacity = self.below.shape.config.pm.capacity;
                let pages = self.below.view.pm.touched_pages(0..capacity).len() as u64;
                most += PAGE_EVENTS * pages;
            }
        }
        self.circles = Some(self.below.agenda.next());
        true
    }

    /// Processes the first event that is due at or before `until`, and returns whether there was
    /// one.
    pub(crate) fn process_one(&mut self, until: Cycle) -> bool {
        let Some((at, event)) = self.below.agenda.take(until) else { return false };
        self.claimed = None;
        self.below.memory.pass(at);
        if self.probe.is_some() && self.below.memory.makes_durable(&event) {
            self.crash_point(at);
        }
        match event {
            Event::Design(event) => {
                self.tell_design(at, event);
                self.below.memory.offer_more(at, &mut self.below.agenda);
            }
            Event::Drain { controller } => {
                self.below.memory.drain(at, controller, &mut self.below.agenda);
            }
            Event::Free { controller, slot } => {
                self.below.memory.free(at, controller, slot, &mut self.below.agenda);
            }
            Event::Acknowledge { core } => self.acknowledge(core, at),
            Event::Fenced { core } => self.fenced(core, at),
            Event::Announce { core, tx } => self.announce(core, tx, at),
            Event::Arrive { controller, write } => {
                let Below { memory, agenda, .. } = &mut self.below;
                let accepted = memory.arrive(at, controller, write, agenda);
                self.process_accepted(at, controller, accepted);
            }
            Event::Accept { controller } => {
                let Below { memory, agenda, .. } = &mut self.below;
                let accepted = memory.accept_waiting(at, controller, agenda);
                self.process_accepted(at, controller, accepted);
            }
            Event::Programmed { controller, slot } => {
                let Below { memory, agenda, .. } = &mut self.below;
                let mut told = std::mem::take(&mut self.told);
                let line = memory.programmed(at, controller, slot, &mut told, agenda);
                self.deliver(at, line, told.drain(..));
                self.told = told;
            }
        }
        self.process_wakes();
        true
    }

    /// Passes on what follows from a controller's look at a write, which it accepted if it had
    /// room.
    fn process_accepted(
        &mut self,
        at: Cycle,
        controller: usize,
        accepted: Option<Accepted<D::Event>>,
    ) {
        if let Some(Accepted { line, notify }) = accepted {
            self.deliver(at, line, [notify]);
        }
        self.free_buffers(at);
        for core in self.below.memory.unblocked(controller) {
            self.unpark(core, at);
        }
    }

    /// Hands the design one of its own events.
    #[inline]
    fn tell_design(&mut self, at: Cycle, event: D::Event) {
        self.note_event(at, &event);
        self.design.event(at, event, &mut self.below);
        self.compare_given();
    }

    /// Tells the parts that wait for a write of a line that it has become durable.
    fn deliver(&mut self, at: Cycle, line: Line, told: impl IntoIterator<Item = Notify<D::Event>>) {
        if let Some(probe) = &mut self.probe {
            probe.oracle.compare(line, self.below.memory.durable());
        }
        for notify in told {
            match notify {
                Notify::Nobody => (),
                Notify::Core(core) | Notify::Combining(core) => {
                    self.below.acknowledge(core, at);
                }
                Notify::Design(event) => self.tell_design(at, event),
            }
        }
    }

    /// Has the oracle compare the lines that the design gave to a controller.
    #[inline]
    fn compare_given(&mut self) {
        let Some(probe) = &mut self.probe else { return self.below.memory.forget_given() };
        for line in self.below.memory.take_given() {
            probe.oracle.compare(line, self.below.memory.durable());
        }
    }

    /// Checks the answer of a hook that was called at `asked`, wakes the cores that the hook woke,
    /// and returns the answer.
    #[inline]
    fn answered(&mut self, hook: &str, asked: Cycle, answer: Progress) -> Progress {
        if let Progress::Done(at) = answer {
            not_before(self.card.name, hook, asked, at);
        }
        self.process_wakes();
        answer
    }

    /// Has a crash campaign cut the power of the machine from now on.
    pub fn cut_with(&mut self, probe: Probe) {
        if probe.asks_between_stores() {
            self.cut_before_stores = CutBefore::Every;
        }
        self.probe = Some(Box::new(probe));
    }

    /// Makes a crash point before a core stores to a line of persistent memory, if the store could
    /// change what survives.
    #[inline]
    fn cut_before_store(&mut self, id: CoreId, line: Line) {
        let is_cut = match self.cut_before_stores {
            CutBefore::None => return,
            CutBefore::Every => true,
            CutBefore::Again => self.stored_since.contains(&line),
        };
        if is_cut {
            self.crash_point(self.cores[id].timing.clock());
        }
        if self.cut_before_stores == CutBefore::Again {
            self.stored_since.insert(line);
        }
    }

    fn crash_point(&mut self, at: Cycle) {
        let Some(mut probe) = self.probe.take() else { return };
        self.stored_since.clear();
        let combining = self.cores.iter().flat_map(|(_, core)| core.combining.gathered());
        let combining: Vec<Write> =
            combining.filter(|write| write.line.is_persistent()).cloned().collect();
        probe.pass(at, &|| self.design.invariants(), &|saved, seed, arrivals| {
            fail(at, &self.design, &self.below, &combining, saved, seed, arrivals)
        });
        self.pass_on_timeline(probe.found.passed, at);
        self.probe = Some(probe);
    }

    /// Whether the crash campaign has found enough.
    pub fn is_done(&self) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.is_done())
    }

    /// Why the run cannot go on, if it cannot.
    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        self.below.stopped.take()
    }
}
