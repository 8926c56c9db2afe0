//! Cores that wait for the design, or for room at a controller, and how they go on.

use crate::below::Below;
use crate::core::Holder;
use crate::design::Design;
use crate::event::Event;
use crate::machine::{CoreState, Machine};
use crate::meters::Stall;
use crate::units::{CoreId, Cycle};

/// A core's load that the design lets wait.
#[derive(Default)]
pub(super) struct LoadWait {
    /// Since when the core is parked for it, if it is.
    since: Option<Cycle>,
    /// When the core goes on, if the design woke the load before the core was parked.
    woken: Option<Cycle>,
}

impl<D: Design> Machine<D> {
    /// Wakes cores, each once for every [`Wait`](crate::hooks::Progress::Wait) that a hook answered
    /// it: a wake completes the core's open fence or commit, and a core without one goes on. Only
    /// loads pass a fence or a commit that waits, and they have wakes of their own.
    #[inline]
    pub(crate) fn process_wakes(&mut self) {
        let Below { wakes, load_wakes, retries, .. } = &self.below;
        if !(wakes.is_empty() && load_wakes.is_empty() && retries.is_empty()) {
            self.process_all_wakes();
        }
    }

    fn process_all_wakes(&mut self) {
        let mut retries = std::mem::take(&mut self.below.retries);
        for (id, at) in retries.drain(..) {
            self.unpark(id, at);
        }
        self.below.retries = retries;
        let mut loads = std::mem::take(&mut self.below.load_wakes);
        for (id, at) in loads.drain(..) {
            match self.cores[id].load.since.take() {
                Some(_) => self.unpark(id, at),
                None => self.cores[id].load.woken = Some(at),
            }
        }
        self.below.load_wakes = loads;
        let mut wakes = std::mem::take(&mut self.below.wakes);
        for (id, at) in wakes.drain(..) {
            let core = &mut self.cores[id];
            core.unanswered = None;
            let Some(open) = core.timing.open() else {
                match core.load.since {
                    Some(_) => core.woken = Some(at),
                    None => self.unpark(id, at),
                }
                continue;
            };
            core.timing.complete(at);
            if core.parked == Some(open.stall()) {
                core.parked = None;
                core.timing.hold_until(at, open.stall());
                self.let_lead(id);
            }
            match open {
                Holder::Commit => self.below.agenda.enter(at, Event::Acknowledge { core: id }),
                Holder::Fence if self.follows_fences() => {
                    self.below.agenda.enter(at, Event::Fenced { core: id });
                }
                Holder::Fence | Holder::Flush => (),
            }
        }
        self.below.wakes = wakes;
    }

    /// Lets a parked core go on. A core that is not parked yet goes on instead of being parked.
    pub(crate) fn unpark(&mut self, id: CoreId, at: Cycle) {
        let core = &mut self.cores[id];
        let Some(stall) = core.parked.take() else {
            core.woken = Some(at);
            return;
        };
        core.timing.resume(at, stall);
        self.let_lead(id);
    }

    /// Keeps the core that runs from passing a core that was woken. A tie goes to the lower number;
    /// being a cycle stricter than that does no harm.
    fn let_lead(&mut self, id: CoreId) {
        let limit = self.cores[id].timing.clock().0.saturating_sub(1);
        self.turn_limit = self.turn_limit.min(limit);
    }

    /// Records that a hook answered a core with a wait.
    pub(crate) fn await_wake(&mut self, id: CoreId, hook: &'static str) {
        let core = &mut self.cores[id];
        core.unanswered = Some((hook, core.timing.clock()));
    }

    /// Why a core does not go on, in words; none if it does.
    pub(crate) fn stuck(&self, id: CoreId) -> Option<String> {
        let core = &self.cores[id];
        let (stall, since) = (core.parked?, core.timing.clock().0);
        if let Some(at) = core.load.since {
            let said = "answered WAIT at cycle";
            return Some(format!("{id}'s `load` {said} {} and was never woken (wake_load)", at.0));
        }
        Some(match (core.unanswered, stall) {
            (Some((hook, at)), _) => {
                format!("{id}'s `{hook}` answered WAIT at cycle {} and was never woken", at.0)
            }
            (None, Stall::Lock) => format!("{id} has waited for a lock since cycle {since}"),
            (None, _) => format!("{id} has waited since cycle {since} ({})", stall.words()),
        })
    }

    /// Returns the core whose store may come too early in the order of turns, where no core goes
    /// on: the design has it wait, and a core in the middle of a transaction, which that one may
    /// have to end first, waits for its turn.
    pub(crate) fn out_of_turn(&self) -> Option<CoreId> {
        let is_in_tx = |id| self.cores[id].tx.is_some();
        let stores = |core: &CoreState| {
            core.unanswered.is_some_and(|(hook, _)| matches!(hook, "claim" | "store"))
        };
        let store = self.cores.iter().find(|(_, core)| stores(core)).map(|(id, _)| id);
        store.filter(|_| self.turns.waiting().any(is_in_tx))
    }

    /// Parks a core until it is woken, or lets it go on if it was woken already.
    pub(crate) fn park(&mut self, id: CoreId, stall: Stall) {
        let core = &mut self.cores[id];
        match core.woken.take() {
            Some(at) => {
                core.unanswered = None;
                core.timing.resume(at, stall);
            }
            None => core.parked = Some(stall),
        }
        self.process_wakes();
    }

    /// Parks a core for a load that the design lets wait, or lets it go on if the load was woken
    /// already.
    pub(crate) fn park_for_load(&mut self, id: CoreId) {
        let core = &mut self.cores[id];
        match core.load.woken.take() {
            Some(at) => core.timing.resume(at, Stall::LoadMiss),
            None => {
                core.load.since = Some(core.timing.clock());
                core.parked = Some(Stall::LoadMiss);
            }
        }
        self.process_wakes();
    }
}
