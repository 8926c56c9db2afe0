//! A core as seen by the code that runs on it: each operation returns when the core may go on.

use corosensei::Yielder;

use super::Shared;
use crate::core::Holder;
use crate::design::{Abort, Claimed, Cpu, Design, FenceKind, Progress};
use crate::host_stack;
use crate::locks::lock_line;
use crate::machine::Machine;
use crate::meters::{Class, Stall};
use crate::units::{CoreId, Cycle, Line, Page, Word};
use crate::workload::{Flush, LockId, Ptr};

/// A core as the code that runs on it sees it: its operations return when the core may go on.
pub(super) struct OnCore<'y, D: Design> {
    pub shared: Shared<D>,
    pub core: CoreId,
    pub yielder: &'y Yielder<(), ()>,
}

impl<D: Design> OnCore<'_, D> {
    #[inline]
    pub(super) fn machine(&self) -> &mut Machine<D> {
        self.shared.machine()
    }

    /// Notes that the core's coroutine has begun, or goes on.
    #[inline]
    pub(super) fn resumed(&self) {
        if D::ON_HOST_STACK {
            host_stack::on_coroutine(self.yielder);
        }
    }

    /// Suspends until it is this core's turn to do something that others can see. Returns whether
    /// it had to wait for others.
    #[inline]
    pub(super) fn turn(&self) -> bool {
        let mut waited = false;
        while !self.machine().catch_up(self.core) {
            self.yielder.suspend(());
            self.resumed();
            waited = true;
        }
        waited
    }

    /// Parks the core until it is woken.
    pub(super) fn park(&self, stall: Stall) {
        self.machine().park(self.core, stall);
        self.turn();
    }

    /// Dispatches an instruction. It waits for room in the reorder buffer, and for a load in the
    /// load queue.
    #[inline]
    pub(super) fn dispatch(&self, load: bool) {
        while !self.machine().cores[self.core].timing.dispatch(load) {
            self.wait_for_open();
        }
    }

    /// Parks the core until its fence or commit, whose time is open, is done.
    fn wait_for_open(&self) {
        while let Some(open) = self.machine().cores[self.core].timing.open() {
            self.park(open.stall());
        }
    }

    /// Dispatches a load, store, flush or fence, which may have to wait for room in the core. It
    /// takes effect later, when it is the core's turn.
    #[inline]
    fn issue(&self, load: bool) {
        self.machine().count_operation(load);
        self.dispatch(load);
    }

    /// Dispatches a store, with its room in the store queue.
    #[inline]
    pub(super) fn issue_store(&self) {
        self.settle();
        self.machine().count_store();
        self.issue(false);
        self.machine().cores[self.core].timing.make_room_for_store();
    }

    /// Waits until no fence or commit holds back what others can see, and the program's transaction
    /// has begun for the design.
    #[inline]
    pub(super) fn settle(&self) {
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
            match progress {
                // Like a commit, the begin retires when it is done.
                Progress::Done(at) => {
                    let timing = &mut self.machine().cores[self.core].timing;
                    timing.hold(Some(at), Holder::Commit);
                    timing.settle();
                }
                Progress::Wait => self.park_for("begin", Stall::Commit),
            }
        }
    }

    /// Carries out the answer of a fence's or commit's hook: the fence or commit retires late, and
    /// holds back the stores that it orders.
    fn hold(&self, hook: &'static str, progress: Progress, by: Holder) {
        self.machine().hold(self.core, hook, progress, by);
        if self.machine().cores[self.core].timing.is_in_order() {
            self.settle();
        }
    }

    /// Parks the core, which a hook answered with a wait.
    fn park_for(&self, hook: &'static str, stall: Stall) {
        self.machine().await_wake(self.core, hook);
        self.park(stall);
    }

    fn wait(&self, until: Cycle, stall: Stall) {
        self.machine().cores[self.core].timing.wait(until, stall);
    }

    /// Carries out the answer of the newest store's hook: the store may have to wait in the store
    /// queue.
    #[inline]
    pub(super) fn obey_store(&self, progress: Progress) {
        match progress {
            Progress::Done(at) => {
                self.machine().cores[self.core].timing.hold_store(at, Stall::LogFull);
            }
            Progress::Wait => {
                self.park_for("store", Stall::LogFull);
                let timing = &mut self.machine().cores[self.core].timing;
                timing.delay_store(timing.clock());
            }
        }
    }

    /// Waits until it is this core's turn and its access of a line finds room for write-backs.
    /// Returns whether it had to wait.
    #[inline]
    fn turn_with_room(&self, line: Line, write: bool, stall: Stall) -> bool {
        let mut waited = self.turn();
        while self.machine().waits_for_room(self.core, line, write) {
            self.park(stall);
            waited = true;
        }
        waited
    }

    #[inline]
    fn load_word(&self, word: Word, known: Cycle) -> Cycle {
        self.issue(true);
        let line = word.line();
        let known = if self.machine().walks { self.translate(line, known) } else { known };
        match self.machine().load_near(self.core, word, known) {
            Some(done) => done,
            None => self.load_far(word, known),
        }
    }

    /// Makes a load that has to wait for its turn, or that may miss the first level.
    #[inline(never)]
    fn load_far(&self, word: Word, known: Cycle) -> Cycle {
        let line = word.line();
        if !self.machine().may_lead(self.core) {
            self.turn();
            if self.machine().below.caches.hit(self.core, line) {
                return self.machine().cores[self.core].timing.load_hit(word, known);
            }
        }
        self.machine().prefetch(self.core, line);
        // While the core waited for its turn, its first level may have gained the line.
        let waited = self.turn_with_room(line, false, Stall::LoadMiss);
        if waited && self.machine().below.caches.hit(self.core, line) {
            return self.machine().cores[self.core].timing.load_hit(word, known);
        }
        self.machine().load_miss(self.core, line, known)
    }

    /// Returns when the address of a load, which the program knows at `known`, is translated.
    #[inline]
    fn translate(&self, line: Line, known: Cycle) -> Cycle {
        if !self.machine().is_translated(line) {
            return known;
        }
        let page = Page::of(line);
        match self.machine().translation(self.core, page, known) {
            Some(at) => at,
            None => self.translate_slowly(page, known),
        }
    }

    #[cold]
    fn translate_slowly(&self, page: Page, known: Cycle) -> Cycle {
        let mut walked = None;
        loop {
            self.turn();
            if let Some(at) = self.machine().translate(self.core, page, known, &mut walked) {
                return at;
            }
            self.park(Stall::LoadMiss);
        }
    }

    /// Waits until it is this core's turn to store to a line. Returns when the store may ask for
    /// the line and leave; none if the design refuses.
    pub(super) fn turn_to_store(&self, line: Line, mut known: Cycle) -> Option<Cycle> {
        let mut walked = None;
        loop {
            self.turn();
            if !self.machine().is_translated(line) {
                self.turn_with_room(line, true, Stall::StoreBuffer);
                return Some(known);
            }
            let page = Page::of(line);
            let there = match self.machine().translation(self.core, page, known) {
                Some(at) => Some(at),
                None => self.machine().translate(self.core, page, known, &mut walked),
            };
            let Some(at) = there else {
                self.park(Stall::StoreBuffer);
                continue;
            };
            known = at;
            if self.turn_with_room(line, true, Stall::StoreBuffer) {
                // The page may have left the TLBs meanwhile.
                let Some(at) = self.machine().translation(self.core, page, known) else { continue };
                known = at;
            }
            if !D::TRANSLATES {
                return Some(known);
            }
            match self.machine().claim(self.core, line, known) {
                Claimed::At(at) => return Some(known.max(at)),
                Claimed::Wait => self.park_for("claim", Stall::LogFull),
                Claimed::Refused => return None,
            }
        }
    }

    /// Does as [`OnCore::turn_to_store`], for a store that has claimed its line, or is outside of
    /// transactions.
    #[inline(never)]
    fn wait_to_store(&self, at: Ptr) -> Cycle {
        let line = Line::of(at.address);
        if !self.machine().below.caches.is_near(self.core, line) {
            self.machine().prefetch(self.core, line);
        }
        let known = self.turn_to_store(line, at.known);
        known.expect("a store in a transaction has claimed its line")
    }

    /// Moves the thread to another core if it is time to, at a store or the border of a
    /// transaction.
    #[inline]
    pub(super) fn at_a_stop(&self) {
        if self.machine().moves_now(self.core) {
            self.migrate();
        }
    }

    #[cold]
    fn migrate(&self) {
        self.settle();
        self.machine().cores[self.core].timing.drain(Stall::Other);
        self.turn();
        let until = self.machine().migrate(self.core);
        self.wait(until, Stall::Other);
    }

    pub(super) fn commit(&mut self) {
        self.settle();
        self.dispatch(false);
        self.turn();
        let progress = self.machine().commit(self.core);
        self.hold("commit", progress, Holder::Commit);
        self.be_a_barrier();
    }

    /// Drains the core, where the borders of transactions are full barriers.
    pub(super) fn be_a_barrier(&self) {
        if self.machine().tx_barriers {
            self.settle();
            self.machine().cores[self.core].timing.drain_at_border();
        }
    }

    fn fence(&self, kind: FenceKind) {
        let flush = matches!(kind, FenceKind::Flush(..));
        if flush || !self.machine().cores[self.core].timing.is_held_by_flush() {
            self.settle();
        }
        let machine = self.machine();
        if if flush { machine.has_flushes } else { machine.has_fences } {
            self.machine().count_fence(flush);
            self.issue(false);
        }
        self.turn();
        if flush {
            self.find_room_to_flush();
        }
        let progress = self.machine().fence(self.core, kind);
        self.hold("fence", progress, Holder::Fence);
        if flush {
            self.machine().hold_stores(self.core);
        }
    }

    /// Waits, in the store queue, until a flush finds room among those that are under way.
    fn find_room_to_flush(&self) {
        let mut waited = false;
        loop {
            let machine = self.machine();
            let leaves = machine.cores[self.core].timing.may_flush();
            let places = machine.below.shape.config.core.flushes_in_flight;
            match machine.below.room_to_flush(self.core, places, leaves) {
                Some(room) if room > leaves => {
                    machine.cores[self.core].timing.hold_until(room, Stall::StoreBuffer);
                    self.turn();
                }
                Some(_) => break,
                None => self.park(Stall::StoreBuffer),
            }
            waited = true;
        }
        if waited {
            self.machine().cores[self.core].timing.queue_flush();
        }
    }

    pub(super) fn lock(&mut self, lock: LockId) {
        self.settle();
        self.machine().cores[self.core].timing.drain(Stall::Lock);
        self.turn();
        match self.machine().fence_before_lock(self.core) {
            Progress::Done(at) => self.wait(at, Stall::Fence),
            Progress::Wait => self.park(Stall::Fence),
        }
        self.turn();
        match self.machine().lock(self.core, lock) {
            Some(since) => self.wait(since, Stall::Lock),
            None => self.park(Stall::Lock),
        }
        self.store(lock_line(lock), 1, u64::MAX);
        self.machine().cores[self.core].timing.drain(Stall::Lock);
    }

    pub(super) fn unlock(&mut self, lock: LockId) {
        self.store(lock_line(lock), 0, u64::MAX);
        self.turn();
        self.machine().unlock(self.core, lock);
    }

    pub(super) fn take_turn(&self, turn: u64) {
        self.settle();
        self.turn();
        match self.machine().take_turn(self.core, turn) {
            Some(since) => self.wait(since, Stall::Lock),
            None => self.park(Stall::Lock),
        }
    }

    pub(super) fn pass_turn(&self) {
        self.settle();
        self.machine().cores[self.core].timing.drain(Stall::Lock);
        self.turn();
        self.machine().pass_turn(self.core);
    }

    pub fn wait_for_all(&self, started: &dyn Fn()) {
        self.settle();
        self.turn();
        if self.machine().arrive() {
            started();
            self.machine().start_measuring();
        } else {
            self.park(Stall::Other);
        }
    }

    pub fn finish(&self) {
        self.settle();
        self.machine().cores[self.core].timing.drain(Stall::Other);
        self.turn();
    }
}

impl<D: Design> Cpu for OnCore<'_, D> {
    fn core(&self) -> CoreId {
        self.core
    }

    #[inline]
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        let word = Word::of(at.address);
        let done = self.load_word(word, at.known);
        let value = self.machine().below.view.word(word);
        match self.machine().loaded(self.core, at, done) {
            Progress::Done(at) => {
                if at > done {
                    self.machine().cores[self.core].timing.delay_load(at);
                }
                (value, at)
            }
            // It may be woken before memory has answered.
            Progress::Wait => {
                self.machine().park_for_load(self.core);
                self.turn();
                (value, done.max(self.machine().cores[self.core].timing.clock()))
            }
        }
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        self.issue_store();
        let known = match self.machine().store_at_once(self.core, Line::of(at.address), at.known) {
            Some(known) => known,
            None => self.wait_to_store(at),
        };
        let progress = self.machine().store(self.core, at, value, mask, known);
        self.obey_store(progress);
    }

    fn claim(&mut self, at: Ptr) -> Option<Cycle> {
        self.turn_to_store(Line::of(at.address), at.known)
    }

    fn abort(&mut self, mut overwritten: &[(Word, u64)], by: Abort) {
        let stall = match by {
            Abort::ByProgram => Stall::Commit,
            Abort::ByLibrary => Stall::LogFull,
        };
        loop {
            self.turn();
            // The old values go in only once: when the core asks again, others may have stored to
            // the words.
            let words = std::mem::take(&mut overwritten);
            match self.machine().abort(self.core, words, by) {
                Progress::Done(at) => return self.wait(at, stall),
                Progress::Wait => self.park_for("abort", stall),
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
