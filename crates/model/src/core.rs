//! A core's time: when its instructions dispatch, when its loads and stores are done, and why it
//! waited. A core only keeps time; the machine carries out its accesses.

use std::collections::VecDeque;

use crate::calendar::Places;
use crate::config::{Config, CoreModel, FencedStores, StoresInFlight};
use crate::meters::Stall;
use crate::recorder::Recorder;
use crate::units::{Cycle, Line, Word};

mod queue;
mod stores;
mod waits;

use queue::StoreQueue;

/// Timing of one core: an out-of-order window, or in order with a store buffer.
///
/// The window is a model of timestamps. An instruction dispatches when there is room in the reorder
/// buffer and in the load or store queue; a load starts when its address is known and takes as long
/// as the hierarchy answers; retirement is in order; stores leave in order after they retire. They
/// ask for their lines when they dispatch (TSO), or one by one, each when its turn comes
/// ([`Core::sends_one_store`]). A fence or a commit retires when it is done; until then younger
/// loads and arithmetic go on as far as the reorder buffer reaches, and younger stores wait for it
/// in the store queue ([`Core::hold`]). So the core has two times: the [`front`](Core::front), at
/// which instructions dispatch, and the [`clock`](Core::clock), at which others see its accesses,
/// and which a fence moves ahead of the front. What is not modelled: functional units, branch
/// mispredictions, instruction fetch. See docs/model.md.
#[derive(Clone, Debug)]
pub struct Core {
    /// When the next instruction dispatches.
    front: u64,
    /// The time before which others see nothing new of the core, since a store waits for a fence or
    /// commit, or for room ([`Core::hold_until`]).
    held: u64,
    /// Instructions dispatched in this cycle.
    used: u64,
    width: u64,
    rob: u64,
    lq: u64,
    sq: usize,
    in_order: bool,
    /// Whether a store that waits for a fence keeps younger instructions from dispatching.
    dispatches_in_order: bool,
    /// Whether a store or flush leaves only when the one before it is answered.
    one_store: bool,
    /// Cycles from when a store that hits leaves until the next store may leave.
    store_time: u64,
    instructions: u64,
    loads: u64,
    /// Instructions that retire late, in program order.
    late: VecDeque<Late>,
    /// What the first of them keeps from dispatching.
    bound: Bound,
    /// When the newest of them retires.
    late_until: u64,
    retired: u64,
    barrier: Barrier,
    /// When what is before the last fence or commit retires: until then the core waits for loads,
    /// and behind that for the fence or commit itself.
    before_barrier: u64,
    stores: StoreQueue,
    stored: u64,
    /// When the next flush may leave.
    flushes_from: u64,
    misses: Places,
    /// When the stores that miss ask for their lines and have them, in program order, if one does
    /// after the other: each has a miss register for just that long.
    store_misses: VecDeque<(u64, u64)>,
    /// Lines on their way, and when they arrive.
    coming: Vec<(Line, u64)>,
    misses_until: u64,
    /// Lines that the core took out of the caches, and when each has gone.
    dropped: Vec<(Line, u64)>,
    stalls: [u64; Stall::ALL.len()],
    hit: u64,
    /// What the core waited for, and when, if a timeline was asked for.
    pub waits: Option<Box<Recorder<Stall>>>,
}

/// A load, fence or commit that retires late: its numbers among instructions and loads, when it
/// retires if nothing ahead of it is later ([`OPEN`] if that is not known yet), and the stall that
/// is counted for waiting until then.
#[derive(Clone, Copy, Debug)]
struct Late {
    instruction: u64,
    load: u64,
    retires: u64,
    stall: Stall,
}

/// What the first instruction that retires late keeps from dispatching: the numbers that the next
/// instruction and the next load must not reach before it has retired.
#[derive(Clone, Copy, Debug)]
struct Bound {
    instruction: u64,
    load: u64,
}

impl Bound {
    /// The bound when nothing retires late.
    const NONE: Bound = Bound { instruction: u64::MAX, load: u64::MAX };
}

/// A time that is not known yet.
const OPEN: u64 = u64::MAX;

/// What younger stores, flushes, fences and commits wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A flush, on a core that sends one store at a time: it retires without its answer.
    Flush,
    /// A fence.
    Fence,
    /// A commit.
    Commit,
}

impl Holder {
    /// The stall that is counted for waiting for it.
    pub fn stall(self) -> Stall {
        match self {
            Holder::Flush => Stall::StoreBuffer,
            Holder::Fence => Stall::Fence,
            Holder::Commit => Stall::Commit,
        }
    }
}

/// Whether something holds younger stores back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    None,
    /// It is done at this time, or at a time that is still [`OPEN`].
    Until(u64, Holder),
}

impl Core {
    /// A core at cycle 0.
    pub fn new(config: &Config) -> Core {
        let core = &config.core;
        let in_order = core.model == CoreModel::InOrder;
        let one_store = !in_order && core.stores_in_flight == StoresInFlight::One;
        Core {
            front: 0,
            held: 0,
            used: 0,
            width: core.width,
            rob: core.rob,
            lq: core.lq,
            sq: core.sq as usize,
            in_order,
            dispatches_in_order: in_order || core.fenced_stores == FencedStores::Dispatch,
            one_store,
            store_time: if one_store { config.cycles(config.l1d.latency).max(1) } else { 1 },
            instructions: 0,
            loads: 0,
            late: VecDeque::new(),
            bound: Bound::NONE,
            late_until: 0,
            retired: 0,
            barrier: Barrier::None,
            before_barrier: 0,
            stores: StoreQueue::default(),
            stored: 0,
            flushes_from: 0,
            misses: Places::new(core.mshrs),
            store_misses: VecDeque::new(),
            coming: Vec::new(),
            misses_until: 0,
            dropped: Vec::new(),
            stalls: [0; Stall::ALL.len()],
            hit: config.cycles(config.l1d.latency),
            waits: None,
        }
    }

    /// The time at which others see what the core does now: when the next instruction dispatches,
    /// but not before the end of the fence or commit that the last store, flush or fence waited
    /// for.
    #[inline]
    pub fn clock(&self) -> Cycle {
        Cycle(self.front.max(self.held))
    }

    /// The time at which the next instruction dispatches: behind stores that wait in the store
    /// queue for a fence or commit, earlier than [`Core::clock`].
    #[inline]
    pub fn front(&self) -> Cycle {
        Cycle(self.front)
    }

    /// Instructions dispatched so far.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Cycles that the clock advanced for each reason, in the order of [`Stall::ALL`].
    pub fn stalls(&self) -> [u64; Stall::ALL.len()] {
        self.stalls
    }

    /// Forgets what was counted: the measured region begins.
    pub fn reset_counts(&mut self) {
        self.stalls = [0; Stall::ALL.len()];
        self.instructions = 0;
        // The window numbers its instructions by the same counter, so it begins anew, too.
        self.late.clear();
        self.late_until = 0;
        self.loads = 0;
        self.look();
    }

    /// Dispatches one instruction. Returns false if there is no room for it until the open fence or
    /// commit is done.
    #[inline]
    #[must_use]
    pub fn dispatch(&mut self, load: bool) -> bool {
        if self.is_bound(load) && !self.make_room(load) {
            return false;
        }
        self.instructions += 1;
        self.used += 1;
        if self.used == self.width {
            self.used = 0;
            self.front += 1;
        }
        true
    }

    /// Whether the first instruction that retires late has to retire before one more dispatches.
    #[inline]
    fn is_bound(&self, load: bool) -> bool {
        let Bound { instruction, load: loads } = self.bound;
        self.instructions + 1 >= instruction || load && self.loads + 1 >= loads
    }

    /// Takes the bound from the first instruction that retires late, which may be another one now.
    fn look(&mut self) {
        self.bound = self.late.front().map_or(Bound::NONE, |first| Bound {
            instruction: first.instruction + self.rob,
            load: first.load + self.lq,
        });
    }

    /// Dispatches instructions that touch no memory, and returns how many have no room until the
    /// open fence or commit is done.
    #[must_use]
    pub fn work(&mut self, mut instructions: u64) -> u64 {
        while instructions > 0 {
            // As many as fit before the reorder buffer is full.
            let room = self.bound.instruction.saturating_sub(self.instructions + 1);
            if room == 0 {
                if !self.make_room(false) {
                    return instructions;
                }
                continue;
            }
            let step = instructions.min(room);
            self.instructions += step;
            let dispatched = self.used + step;
            self.front += dispatched / self.width;
            self.used = dispatched % self.width;
            instructions -= step;
        }
        0
    }

    /// Waits until the reorder buffer, and for a load the load queue, has room for one more.
    /// Returns false if it is not known yet when that will be.
    fn make_room(&mut self, load: bool) -> bool {
        while self.is_bound(load) {
            let Some(&Late { retires, stall, .. }) = self.late.front() else { break };
            if retires == OPEN {
                return false;
            }
            self.wait_to_dispatch(retires, stall);
            // Those that have retired by now are removed only when their room is needed.
            while self.late.front().is_some_and(|first| first.retires <= self.front) {
                self.late.pop_front();
            }
            self.look();
        }
        true
    }

    /// Holds younger stores back behind a fence or commit that has dispatched, which is done at a
    /// known time, or at one that is open until [`Core::complete`]. Younger stores, flushes and
    /// fences wait for it in the store queue ([`Core::settle`]) and take effect when it is done,
    /// while what follows them dispatches.
    pub fn hold(&mut self, done: Option<Cycle>, by: Holder) {
        debug_assert!(
            self.is_settled() || self.is_held_by_flush(),
            "a fence waits for the one before it"
        );
        let done = done.map_or(OPEN, |at| at.0);
        if done <= self.clock().0 {
            return;
        }
        self.barrier = Barrier::Until(done, by);
        self.before_barrier = self.retired;
        // The fence is no load itself, so it takes the number of the next load.
        let (instruction, load) = (self.instructions, self.loads + 1);
        let retires = if done == OPEN { OPEN } else { self.retired.max(done) };
        if done != OPEN {
            self.retired = retires;
        }
        self.append_late(Late { instruction, load, retires, stall: by.stall() });
    }

    /// Whether one store or flush is in flight at a time.
    #[inline]
    pub fn sends_one_store(&self) -> bool {
        self.one_store
    }

    /// Holds younger stores back behind a flush that has dispatched, on a core that sends one store
    /// at a time. The flush is answered at a known time, or at one that is open until
    /// [`Core::complete`]. Younger stores and flushes wait for it as for a fence, but it retires
    /// without its answer, so other instructions dispatch.
    pub fn hold_stores(&mut self, answered: Option<Cycle>) {
        let answered = answered.map_or(OPEN, |at| at.0);
        if answered > self.clock().0 {
            self.barrier = Barrier::Until(answered, Holder::Flush);
        }
    }

    /// Whether a flush, rather than a fence or commit, holds stores back. A fence behind it waits
    /// for it in any case.
    #[inline]
    pub fn is_held_by_flush(&self) -> bool {
        matches!(self.barrier, Barrier::Until(_, Holder::Flush))
    }

    /// Completes the fence, commit or flush whose time was open, at `at`. What came after a fence
    /// or commit retires after it, since retirement is in order.
    pub fn complete(&mut self, at: Cycle) {
        let Barrier::Until(OPEN, by) = self.barrier else { return };
        self.barrier = Barrier::Until(at.0, by);
        if by == Holder::Flush {
            return;
        }
        // It is one of the last, since the instructions that follow it soon wait for it.
        if let Some(open) = self.late.iter_mut().rev().find(|late| late.retires == OPEN) {
            open.retires = at.0;
        }
        self.look();
        self.retired = self.retired.max(at.0);
    }

    /// The fence, commit or flush whose time is open, if there is one.
    #[inline]
    pub fn open(&self) -> Option<Holder> {
        match self.barrier {
            Barrier::Until(OPEN, by) => Some(by),
            _ => None,
        }
    }

    /// Whether no fence, commit or flush holds stores back.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.barrier == Barrier::None
    }

    /// Makes the next store wait for the fence, commit or flush that holds it back, whose time is
    /// known.
    pub fn settle(&mut self) {
        if let Barrier::Until(at, by) = std::mem::replace(&mut self.barrier, Barrier::None) {
            assert!(at != OPEN, "a core is parked while the time of its fence is open");
            self.hold_until(Cycle(at), by.stall());
        }
    }

    /// Whether nothing dispatches before a fence or commit is done.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Makes a load that hits the first level and whose address is known at `known`, and returns
    /// when its value is there. It waits for a line that is still on its way, unless the store
    /// queue has the word.
    #[inline]
    pub fn load_hit(&mut self, word: Word, known: Cycle) -> Cycle {
        let start = known.0.max(self.front);
        let mut done = start + self.hit;
        if self.misses_until > start {
            done = self.hit_under_miss(word, start, done);
        }
        self.loads += 1;
        if self.in_order {
            self.front += self.hit;
            self.wait(Cycle(done), Stall::LoadMiss);
        } else if done > self.front + self.hit {
            self.retire_late(done);
        } else {
            self.retired = self.retired.max(done);
        }
        Cycle(done)
    }

    /// Returns when a load of a line that may be on its way has its value, which would be `done` if
    /// the line were there.
    #[inline(never)]
    fn hit_under_miss(&self, word: Word, start: u64, done: u64) -> u64 {
        let arrival = self.arrival(word.line());
        if arrival > done && !self.stores.forwards(word, start) { arrival } else { done }
    }

    /// Returns when a line that is on its way arrives; 0 for any other line.
    #[inline]
    fn arrival(&self, line: Line) -> u64 {
        let coming = self.coming.iter().rev().find(|(coming, _)| *coming == line);
        coming.map_or(0, |&(_, done)| done)
    }

    /// Notes that the core takes a line out of the caches at `at`: the core's own later misses of
    /// that line start no earlier.
    pub fn drops(&mut self, line: Line, at: Cycle) {
        let front = self.front;
        if at.0 > front {
            self.dropped.retain(|&(_, at)| at > front);
            self.dropped.push((line, at.0));
        }
    }

    /// Returns when a miss of a line whose address is known at `known` can start, and the place
    /// that it takes.
    pub fn miss_start(&self, line: Line, known: Cycle) -> (usize, Cycle) {
        let dropped = self.dropped.iter().filter(|(dropped, _)| *dropped == line);
        let dropped = dropped.map(|&(_, at)| at).max().unwrap_or(0);
        let mut wanted = known.0.max(self.front).max(dropped);
        loop {
            let (place, start) = self.misses.first_free(wanted);
            let has_one = |&&(from, until): &&(u64, u64)| from <= start && start < until;
            let Some(&(_, until)) = self.store_misses.iter().find(has_one) else {
                return (place, Cycle(start));
            };
            let two = self.misses.two_free(start);
            if two == start {
                return (place, Cycle(start));
            }
            wanted = two.min(until);
        }
    }

    /// Takes the place of a miss whose line arrives at `done`, and returns when the core has it.
    pub fn miss(&mut self, place: usize, line: Line, done: Cycle) -> Cycle {
        // It may have missed the first level only, while its line is still on its way to the
        // second.
        let done = match self.misses_until > done.0 {
            true => done.max(Cycle(self.arrival(line))),
            false => done,
        };
        self.take_miss(place, line, done);
        done
    }

    /// Makes a load that missed and whose line arrives at `done`, and returns when its value is
    /// there.
    pub fn load_miss(&mut self, place: usize, line: Line, done: Cycle) -> Cycle {
        let done = self.miss(place, line, done);
        self.loads += 1;
        if self.in_order {
            self.wait(done, Stall::LoadMiss);
        } else {
            self.retire_late(done.0);
        }
        done
    }

    /// Has the newest load get its value at `at`, later than its line came.
    pub fn delay_load(&mut self, at: Cycle) {
        if self.in_order {
            self.wait(at, Stall::LoadMiss);
        } else {
            self.retire_late(at.0);
        }
    }

    fn take_miss(&mut self, place: usize, line: Line, done: Cycle) {
        self.misses.take(place, done.0);
        self.comes(line, done);
    }

    /// Notes that a line is on its way.
    fn comes(&mut self, line: Line, done: Cycle) {
        let front = self.front;
        let mut arrives = done.0;
        self.coming.retain(|&(coming, done)| {
            if coming == line {
                arrives = arrives.max(done);
            }
            coming != line && done > front
        });
        self.coming.push((line, arrives));
        self.misses_until = self.misses_until.max(done.0);
    }

    #[inline]
    fn retire_late(&mut self, done: u64) {
        self.retired = self.retired.max(done);
        let retires = self.retired;
        // A load that retires together with the one ahead of it holds back nothing that the one
        // ahead does not.
        if retires != self.late_until {
            let (instruction, load) = (self.instructions, self.loads);
            self.append_late(Late { instruction, load, retires, stall: Stall::LoadMiss });
        }
    }

    fn append_late(&mut self, late: Late) {
        self.late_until = late.retires;
        self.late.push_back(late);
        if self.late.len() == 1 {
            self.look();
        }
    }

    /// Waits until the store queue has room for one more store.
    #[inline]
    pub fn make_room_for_store(&mut self) {
        if self.stores.len() >= self.sq {
            self.make_room_among_stores();
        }
    }

    /// Waits for the oldest entry of a full store queue, and removes the stores that have left by
    /// then.
    fn make_room_among_stores(&mut self) {
        let Some(leaves) = self.stores.pop() else { return };
        self.wait_to_dispatch(leaves, Stall::StoreBuffer);
        self.stores.forget(self.front);
    }
}

#[cfg(test)]
mod tests;
