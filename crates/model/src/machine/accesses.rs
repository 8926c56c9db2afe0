//! What one load or store does in the caches and beneath, in the view, and in the design. An access
//! goes down through here once, and only a time comes back.

use crate::caches::Found;
use crate::design::{
    Below, Design, Disposition, Evict, Fill, Leave, Load, Progress, Store, Transfer,
};
use crate::device::Write;
use crate::hooks::not_before;
use crate::machine::Machine;
use crate::meters::Class;
use crate::timeline::{Fetch, Happening};
use crate::units::{CoreId, Cycle, DRAM_BASE, Line, Word};
use crate::workload::Ptr;

/// How many lines on their way are remembered before those that have arrived are forgotten.
const COMING: usize = 1024;

/// How far [`Machine::memory_misses`] rises (ours: the misses that a core may have under way,
/// nearly).
const MEMORY_MISSES_MAX: u8 = 16;

impl<D: Design> Machine<D> {
    /// Whether an access has to wait because the controllers have no room for write-backs. The
    /// caller then parks the core.
    pub(crate) fn waits_for_room(&mut self, id: CoreId, line: Line, write: bool) -> bool {
        if !self.below.memory.is_congested() {
            return false;
        }
        let caches = &mut self.below.caches;
        let evicts =
            caches.needs_others(id, line, write) || D::L1_NEEDS_ROOM && !caches.is_near(id, line);
        let number = self.below.memory.looks(id);
        let waits = evicts && self.below.memory.wait_if_congested(id, number);
        if number.is_some() {
            let at = self.cores[id].timing.clock();
            for next in self.below.memory.next_to_look() {
                self.unpark(next, at);
            }
        }
        waits
    }

    /// Counts a load, or a store, flush or fence.
    #[inline]
    pub(crate) fn count_operation(&mut self, load: bool) {
        self.counts.accesses.operations += 1;
        self.counts.accesses.loads += u64::from(load);
    }

    /// Counts a store.
    #[inline]
    pub(crate) fn count_store(&mut self) {
        self.counts.accesses.stores += 1;
    }

    /// Counts a flush or a fence.
    pub(crate) fn count_fence(&mut self, flush: bool) {
        let accesses = &mut self.counts.accesses;
        *if flush { &mut accesses.flushes } else { &mut accesses.fences } += 1;
    }

    /// Makes a load that affects no other core, and returns when its value is there; none if the
    /// core may not lead or its first level lacks the line.
    #[inline]
    pub(crate) fn load_near(&mut self, id: CoreId, word: Word, known: Cycle) -> Option<Cycle> {
        if !self.may_lead(id) || !self.below.caches.hit(id, word.line()) {
            return None;
        }
        Some(self.cores[id].timing.load_hit(word, known))
    }

    /// Prefetches, on the host, what an access will look at if it goes as far as memory, while
    /// other cores have their turns. This changes only the time that the host takes.
    #[inline]
    pub(crate) fn prefetch(&self, id: CoreId, line: Line) {
        let Below { caches, view, .. } = &self.below;
        caches.prefetch(id, line);
        view.prefetch(line);
        // The search for a victim pays off where most misses go to memory.
        if self.memory_misses > MEMORY_MISSES_MAX / 2
            && let Some(victim) = caches.victim(line)
        {
            view.prefetch(victim);
        }
    }

    /// Makes a load that misses the core's first level, and returns when its value is there.
    pub(crate) fn load_miss(&mut self, id: CoreId, line: Line, known: Cycle) -> Cycle {
        let (place, start) = self.cores[id].timing.miss_start(line, known);
        let done = self.fetch_from(id, line, false, start);
        let done = self.cores[id].timing.load_miss(place, line, done);
        // The design may have woken a core in a hook of the fetch, even if it is told of no load.
        self.process_wakes();
        done
    }

    /// Fetches the line of a store that the core's first level does not have, or may not write.
    #[inline(never)]
    fn store_miss(&mut self, id: CoreId, (word, mask): (Word, u64), known: Cycle) {
        let line = word.line();
        // A core that had to wait for its turn has prefetched before, and the host has the lines by
        // now.
        self.prefetch(id, line);
        let (place, start) = self.cores[id].timing.miss_start(line, known);
        let asked = self.cores[id].timing.asks(start);
        let done = self.fetch_from(id, line, true, asked);
        self.cores[id].timing.store_miss(place, (word, mask), start, asked, done);
    }

    /// Tells the design of a load that has its value at `done`, and returns its answer.
    #[inline]
    pub(crate) fn loaded(&mut self, id: CoreId, at: Ptr, done: Cycle) -> Progress {
        if at.address >= DRAM_BASE {
            return Progress::Done(done);
        }
        if let Some(probe) = &mut self.probe {
            probe.loaded(id, Word::of(at.address));
        }
        let tx = self.cores[id].tx;
        let heard = done.max(self.cores[id].timing.clock());
        let passed = heard.since(done);
        let load = Load { core: id, tx, word: Word::of(at.address), at: heard };
        let answer = self.design.load(&load, &mut self.below);
        match self.answered("load", heard, answer) {
            Progress::Done(at) => Progress::Done(Cycle(at.0 - passed)),
            Progress::Wait => Progress::Wait,
        }
    }

    /// Makes a store take effect in the caches, in the view, and in the design. At `known` its
    /// address is translated and the design allows it: it asks for its line, and leaves the core,
    /// no earlier.
    pub(crate) fn store(
        &mut self,
        id: CoreId,
        at: Ptr,
        value: u64,
        mask: u64,
        known: Cycle,
    ) -> Progress {
        let line = Line::of(at.address);
        let persistent = line.is_persistent();
        if persistent && self.probe.is_some() {
            self.cut_before_store(id, line);
        }
        self.send_combined_line(id, line);
        let word = Word::of(at.address);
        if self.below.caches.hit_to_write(id, line) {
            self.cores[id].timing.store_hit(word, mask);
        } else {
            self.store_miss(id, (word, mask), known);
        }
        if self.walks {
            self.cores[id].timing.delay_store(known);
        }
        let (old, new) = self.below.view.merge_word(word, value, mask);
        let core = &self.cores[id];
        let now = core.timing.clock();
        if let Some(epochs) = &mut self.epochs {
            epochs.store(id, line);
        }
        if !persistent {
            self.process_wakes();
            return Progress::Done(now);
        }
        if let Some(probe) = &mut self.probe {
            probe.stored(id, word, (old, new), false, &self.below.view);
        }
        if let Some(timeline) = &mut self.below.memory.timeline {
            timeline.at(now, Happening::Store(id, word, old, new));
        }
        let core = &self.cores[id];
        let leaves = core.timing.stored();
        let (at, past_caches) = (now, false);
        let store = Store { core: id, tx: core.tx, word, old, new, at, leaves, past_caches };
        let answer = self.design.store(&store, &mut self.below);
        self.answered("store", now, answer)
    }

    /// Records a store of the program for the write sets and the oracle, and returns whether it
    /// belongs to a transaction. A store to volatile memory belongs to none.
    #[inline]
    pub(crate) fn record(&mut self, id: CoreId, at: Ptr, value: u64, mask: u64) -> bool {
        if at.address >= DRAM_BASE {
            return false;
        }
        let word = Word::of(at.address);
        let core = &mut self.cores[id];
        let in_tx = core.tx.is_some();
        if in_tx {
            core.written.push(word);
        }
        match &mut self.probe {
            Some(probe) if in_tx => probe.oracle.store(id, word, value, mask),
            Some(probe) => probe.oracle.store_outside(id, word),
            None => (),
        }
        in_tx
    }

    /// Fetches a line as [`Machine::fetch`] does, from a time at which the core may have dispatched
    /// the access behind a store that waited for a fence. The hierarchy is asked when it is the
    /// core's turn, and its answer is moved back by the time that has passed since `start`.
    pub(super) fn fetch_from(
        &mut self,
        id: CoreId,
        line: Line,
        write: bool,
        start: Cycle,
    ) -> Cycle {
        let now = self.cores[id].timing.clock();
        let passed = now.0.saturating_sub(start.0);
        let fetch = Fetch { line, write, earlier: passed };
        let done = self.fetch(id, fetch, start + passed);
        if let Some(timeline) = &mut self.below.memory.timeline {
            timeline.span(start + passed, done, Happening::Fetch(id, fetch));
        }
        Cycle(done.0 - passed)
    }

    /// Fetches a line that the core's first level does not have, or may not write; the request
    /// starts at `start`, but changes the caches now.
    fn fetch(&mut self, id: CoreId, fetch: Fetch, start: Cycle) -> Cycle {
        let Fetch { line, write, earlier } = fetch;
        let now = self.cores[id].timing.clock();
        let access = self.below.caches.access(id, line, write);
        self.counts.accesses.found(line, access.found);
        self.tell_departures(now);
        let times = self.below.shape.times;
        let mut done = start + times.l1 + times.l2;
        match access.found {
            Found::L2 => return done,
            Found::Llc => {
                self.memory_misses = self.memory_misses.saturating_sub(1);
                done = self.arrived_by(line, done + times.llc);
                let (memory, asked) = (false, done);
                let fill = Fill { core: id, line, memory, write, asked, at: done, earlier };
                done = self.filled(&fill);
            }
            Found::Elsewhere(from) => {
                done = self.arrived_by(line, done + times.llc) + times.transfer;
                if line.is_persistent() {
                    let transfer = Transfer { line, from, to: id, write, at: done, earlier };
                    let there = self.design.transfer(&transfer, &mut self.below);
                    done = not_before(self.card.name, "transfer", done, there);
                }
                self.comes(line, done, now);
            }
            Found::Memory => {
                self.memory_misses = (self.memory_misses + 1).min(MEMORY_MISSES_MAX);
                let path = self.below.shape.path_to(line);
                let asked = done + times.llc + path;
                self.below.memory.pass(now);
                done = self.below.memory.read(asked, self.locate(line)) + path;
                let memory = true;
                let fill = Fill { core: id, line, memory, write, asked, at: done, earlier };
                done = self.filled(&fill);
                self.comes(line, done, now);
            }
        }
        if let Some((victim, true)) = access.evicted {
            self.counts.accesses.evicted(victim);
            let gone = self.write_back(victim, now);
            // The line takes the place of its victim.
            if gone > done {
                done = gone;
                self.comes(line, done, now);
            }
        }
        done
    }

    /// Tells the design that a line comes; returns when the design lets the core have it.
    fn filled(&mut self, fill: &Fill) -> Cycle {
        if !fill.line.is_persistent() {
            return fill.at;
        }
        let there = self.design.fill(fill, &mut self.below);
        not_before(self.card.name, "fill", fill.at, there)
    }

    /// Tells the design which lines left the first levels, and which came down to the last.
    #[inline]
    pub(super) fn tell_departures(&mut self, at: Cycle) {
        if D::WATCHES_L1 {
            self.below.caches.departures(&mut self.moved);
            for &(core, line) in self.moved.iter().filter(|(_, line)| line.is_persistent()) {
                self.design.leave(&Leave { core, line, at }, &mut self.below);
            }
        }
        if D::WATCHES_L2 {
            self.below.caches.lowered(&mut self.moved);
            for &(core, line) in self.moved.iter().filter(|(_, line)| line.is_persistent()) {
                self.design.come_down(&Leave { core, line, at }, &mut self.below);
            }
        }
    }

    /// Notes that a line is on its way from memory or from another core, so that other accesses to
    /// it wait until it arrives.
    fn comes(&mut self, line: Line, done: Cycle, now: Cycle) {
        if self.coming.len() >= COMING {
            self.coming.retain(|_, done| *done > now);
        }
        self.coming.insert(line, done);
        self.coming_until = self.coming_until.max(done);
    }

    pub(super) fn arrived_by(&self, line: Line, at: Cycle) -> Cycle {
        if self.coming_until <= at {
            return at;
        }
        self.coming.get(&line).map_or(at, |&done| at.max(done))
    }

    /// Sends a dirty line that leaves the caches to memory, unless the design keeps it. Returns
    /// when it has gone: one of volatile memory when its controller has room for it. For others,
    /// accesses wait before they begin ([`Machine::waits_for_room`]).
    pub(super) fn write_back(&mut self, line: Line, at: Cycle) -> Cycle {
        if !line.is_persistent() {
            let near = self.below.shape.near;
            return self.below.memory.write_volatile(at + near, line);
        }
        let data = self.below.line(line);
        let evict = Evict { line, data, at };
        if let Disposition::Home { at: leaves, notify } = self.design.evict(&evict, &mut self.below)
        {
            let at = not_before(self.card.name, "evict", at, leaves);
            let log = line.address() >= self.below.shape.log_base;
            let class = if log { Class::Log } else { Class::HomeWriteBack };
            let line = self.locate(line);
            self.below.send_evicted(at, Write::whole(line, data, class), notify);
        }
        at
    }

    /// Returns the physical line that holds a line.
    #[inline]
    pub(super) fn locate(&self, line: Line) -> Line {
        if D::TRANSLATES { self.design.locate(line) } else { line }
    }
}
