//! `replay`: a recorded trace. A program's operations on its memory are read from a text file, or
//! from a store log of Valgrind's pmemcheck, and done again.
//!
//! ```text
//! region 0x10000 8192      # persistent memory of the program; what is elsewhere is volatile
//! store 0x10000 100        # what is before `measured` is there when measuring begins
//! measured
//! begin
//! store 0x10000 90
//! commit
//! ```
//!
//! docs/replay.md has both formats. A trace of several threads takes as many cores for each copy of
//! its memory; of a trace of one thread each core has a copy of its own. The operations of a thread
//! are repeated, from the first measured one on, for as long as the run lasts.
//!
//! A trace has the address of an access, and not the load from which the address came. So a core
//! knows every address at once or, with `addresses=loaded`, when the load before has its value; the
//! program itself is between the two. The order of the threads' operations follows from simulated
//! time and from locks or, in a trace that is `interleaved`, is the recorded one.

use std::ops::Range;
use std::sync::Arc;

use model::checker::Checker;
use model::image::Image;
use model::script::Script;
use model::units::{CoreId, Cycle, DRAM_BASE, LINE_BYTES, PAGE_BYTES, WORD_BYTES};
use model::workload::{
    About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Stop, Workload,
};

mod checker;
mod history;
mod missing;
mod persists;
mod pmemcheck;
mod recording;
mod text;
mod told;
mod trace;

use crate::choices::LockGrain;
use crate::rng::mix;
use checker::Examined;
use trace::{Op, Thread, Trace};

pub use persists::Persist;

/// The trace that is replayed by default.
const LEDGER: (&str, &str) = ("ledger.trace", include_str!("replay/ledger.trace"));

model::params! {
    /// Parameters of `replay`.
    pub struct ReplayParams {
        /// When a core knows the address of an access: at once, or when the load before it in its
        /// thread has its value.
        addresses: Addresses = Known;
        /// What two threads must not both store to in transactions without a common lock: a line,
        /// or a word.
        lock_grain: LockGrain = Line;
        /// The line of the trace (the operation of a store log) whose flush or fence is left out,
        /// with all others that have the same comment; 0 leaves nothing out.
        leave_out = 0 in 0..=1_000_000_000;
    }
}

model::choices! {
    /// When a core knows the address of an access.
    pub enum Addresses {
        /// At once.
        Known = "known",
        /// When the load before it has its value.
        Loaded = "loaded",
    }
}

/// The workload.
#[derive(Debug)]
pub struct Replay {
    trace: Arc<Trace>,
    waits_for_loads: bool,
    seed: u64,
    copies: Vec<Place>,
    /// The user's check of the memory after a power failure, if there is one. The trace is then
    /// done once.
    checker: Option<Examined>,
}

/// The most regions whose addresses a note gives.
const REGIONS_TOLD: usize = 4;

/// The addresses of one copy of the trace's memory, and the first of its locks.
#[derive(Clone, Copy, Debug)]
struct Place {
    persistent: u64,
    volatile: u64,
    locks: u32,
}

impl Place {
    /// Returns the address in this copy for one of the trace.
    fn of(&self, at: u64) -> u64 {
        if at >= DRAM_BASE { at - DRAM_BASE + self.volatile } else { at + self.persistent }
    }
}

/// Reads a trace and returns it with its name: the user's `script`, if there is one, or the ledger.
fn read(script: Option<&Script>, grain: u64) -> Step<(&str, Arc<Trace>)> {
    let read = |name: &str, text: &str| match pmemcheck::is_store_log(text) {
        true => pmemcheck::read(name, text, grain),
        false => text::read(name, text, grain),
    };
    match script {
        Some(script) => Ok((script.name(), script.read(grain, read)?)),
        None => Ok((LEDGER.0, read(LEDGER.0, LEDGER.1)?.into())),
    }
}

/// Returns the bytes of a part that transactions of two threads may not share without a lock, by
/// settings of the workload.
fn grain_in(settings: &[(String, u64)]) -> u64 {
    crate::params::<ReplayParams>(settings).lock_grain.bytes()
}

/// Returns the number of cores for a trace (the user's `script`, or the ledger). A trace that is
/// done once, because it is checked or interleaved, takes one for each of its threads; others take
/// that for as many copies as `usual` cores suffice for, and for one at least.
///
/// # Errors
/// [`Stop::Input`] when it is wrong.
pub fn cores(
    script: Option<&Script>,
    settings: &[(String, u64)],
    is_checked: bool,
    usual: u8,
) -> Step<u8> {
    let (_, trace) = read(script, grain_in(settings))?;
    let threads = trace.threads.len() as u8;
    let copies = if is_checked || trace.is_interleaved { 1 } else { usual / threads };
    Ok(copies.max(1) * threads)
}

/// Returns the flushes and fences of a trace (the user's `script`, or the ledger) by their places
/// in the program.
///
/// # Errors
/// [`Stop::Input`] when it is wrong.
pub fn persists(script: Option<&Script>, settings: &[(String, u64)]) -> Step<Vec<Persist>> {
    Ok(read(script, grain_in(settings))?.1.persists())
}

impl Declared for Replay {
    const ABOUT: About = About {
        name: "replay",
        summary: "a recorded trace: what a program did to its memory, done again",
        source: "ours; store logs are those of pmemcheck, as PMDK's pmreorder reads them",
        file: file!(),
        shared: false,
    };
    const SCRIPT: Option<&'static str> = Some("--replay");
    const IN_ALL: bool = false;
    const REOPENS: Reopens = Reopens::UnlessScripted;
    type Params = ReplayParams;

    fn new(params: &ReplayParams, site: &Site) -> Step<Replay> {
        let (name, mut trace) = read(site.script.as_ref(), params.lock_grain.bytes())?;
        let place = params.leave_out;
        // Other users of the same trace keep it whole.
        if place != 0 && !Arc::make_mut(&mut trace).leave_out(place as usize) {
            let unit = trace.unit;
            return Err(Stop::Input(format!(
                "{name}, {unit} {place}: only a flush or a fence after `measured` can be left out, \
                 and there is none"
            )));
        }
        let threads = trace.threads.len() as u8;
        if !site.cores.is_multiple_of(threads) {
            let (wrong, room) = if site.cores < threads {
                (
                    "is less",
                    format!(", and --set core.cores_max={threads} if the machine has fewer"),
                )
            } else {
                ("is not a multiple of that", String::new())
            };
            return Err(Stop::Input(format!(
                "{name} has {threads} threads, and the number of cores, {}, {wrong}; use --cores \
                 {threads}{room}",
                site.cores
            )));
        }
        let copies = site.cores / threads;
        // Locks lie first in volatile memory, each in its line.
        let locks = trace.locks * u32::from(copies);
        let volatile = (DRAM_BASE + u64::from(locks) * LINE_BYTES).next_multiple_of(PAGE_BYTES);
        let each = Site { cores: copies, ..site.clone() };
        let place = |copy: u8| {
            let room = each.part(CoreId(copy));
            let persistent = room.start.next_multiple_of(PAGE_BYTES);
            if persistent + trace.persistent > room.end {
                let free = room.end.saturating_sub(persistent);
                return Err(Stop::OutOfMemory { asked: trace.persistent, free });
            }
            let volatile = volatile + u64::from(copy) * trace.volatile;
            Ok(Place { persistent, volatile, locks: u32::from(copy) * trace.locks })
        };
        let copies = (0..copies).map(place).collect::<Step<Vec<_>>>()?;
        let waits_for_loads = params.addresses == Addresses::Loaded;
        let mut replay = Replay { trace, waits_for_loads, seed: site.seed, copies, checker: None };
        let is_interleaved = replay.trace.is_interleaved;
        if replay.copies.len() > 1 && (is_interleaved || site.checker.is_some()) {
            return Err(Stop::Input(format!(
                "{} works with one copy of the trace's memory, and {} cores have {}; use --cores \
                 {threads}",
                if is_interleaved { "an `interleaved` trace" } else { "--check" },
                site.cores,
                replay.copies.len()
            )));
        }
        if let Some(examiner) = &site.checker {
            replay.checker = Some(Examined::new(examiner, &replay)?);
        }
        Ok(replay)
    }
}

impl Workload for Replay {
    fn has_invariants(&self) -> bool {
        self.checker.as_ref().is_some_and(Examined::has_stores)
    }

    fn has_transactions(&self) -> bool {
        // A thread without transactions has an empty one, which says that it is done.
        let has_one = |thread: &Thread| {
            let both = thread.ops.windows(2);
            let mut begun = both.filter(|two| matches!(two[0], Op::Begin { .. }));
            begun.any(|two| !matches!(two[1], Op::Commit))
        };
        self.trace.threads.iter().any(has_one)
    }

    fn checker(&self) -> Option<&dyn Checker> {
        self.checker.as_ref().map(|checker| checker as &dyn Checker)
    }

    fn ends_after(&self) -> Option<u64> {
        if !self.is_once() {
            return None;
        }
        self.trace.threads.iter().map(|thread| thread.parts.len() as u64).max()
    }

    fn notes(&self) -> Vec<String> {
        let Some(first) = self.copies.first() else { return Vec::new() };
        let regions = self.trace.regions.iter().map(|region| (region.from.clone(), region.to));
        let all = (regions.len() == 0).then_some((0..self.trace.persistent, 0));
        let place = |(from, to): (Range<u64>, u64)| {
            let (start, end, to) = (from.start, from.end, first.of(to));
            format!("{start:#x} to {end:#x} of the trace lie from {to:#x} on, of core 0")
        };
        let mut notes: Vec<String> = regions.chain(all).map(place).take(REGIONS_TOLD).collect();
        let more = self.trace.regions.len().saturating_sub(notes.len());
        if more > 0 {
            let regions = if more == 1 { "region" } else { "regions" };
            notes.push(format!("and {more} more {regions} after those"));
        }
        notes
    }

    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        let used = self.copies.iter().map(|copy| copy.volatile + self.trace.volatile).max();
        pm.check_volatile("the trace", used.unwrap_or(0), "")?;
        for &copy in &self.copies {
            let mut replayer = self.before(copy);
            self.trace.before.iter().try_for_each(|op| replayer.perform(op, pm))?;
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let threads = self.trace.threads.len();
        let (copy, thread) = (usize::from(core.0) / threads, usize::from(core.0) % threads);
        Ok(Box::new(self.replayer(self.copies[copy], thread)))
    }

    fn reopen(&mut self, _image: &Image<'_>, seed: u64) -> Result<(), String> {
        // The replay needs nothing from volatile memory, and begins anew.
        self.seed = seed;
        Ok(())
    }
}

impl Replay {
    /// Whether the operations are done once, and not repeated.
    fn is_once(&self) -> bool {
        self.checker.is_some() || self.trace.is_interleaved
    }

    /// What does the operations before measuring begins. Its new values are none of a thread's.
    fn before(&self, copy: Place) -> Replayer {
        let of_thread = self.replayer(copy, 0);
        Replayer { seed: mix(of_thread.seed), ..of_thread }
    }

    fn replayer(&self, copy: Place, thread: usize) -> Replayer {
        Replayer {
            trace: Arc::clone(&self.trace),
            thread,
            copy,
            waits_for_loads: self.waits_for_loads,
            known: Cycle(0),
            seed: mix(self.seed ^ (thread as u64) << 56 ^ copy.persistent),
            stores: 0,
            next: 0,
            once: self.is_once(),
        }
    }
}

/// The program of one core: a thread of the trace.
struct Replayer {
    trace: Arc<Trace>,
    thread: usize,
    copy: Place,
    waits_for_loads: bool,
    /// When the next address is known.
    known: Cycle,
    /// The seed of new values, and the number of new values so far.
    seed: u64,
    stores: u64,
    /// The next of the thread's transactions.
    next: usize,
    /// Whether the transactions are done once, and not repeated.
    once: bool,
}

impl Program for Replayer {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let trace = Arc::clone(&self.trace);
        let Thread { ops, parts, .. } = &trace.threads[self.thread];
        if self.next == parts.len() {
            if self.once {
                return Ok(());
            }
            self.next = 0;
        }
        // An interleaved trace is done in one go, however many transactions the run asks for.
        let part = match trace.is_interleaved {
            true => {
                self.next = parts.len();
                0..ops.len()
            }
            false => {
                self.next += 1;
                parts[self.next - 1].clone()
            }
        };
        ops[part].iter().try_for_each(|op| self.perform(op, pm))
    }
}

impl Replayer {
    fn at(&self, address: u64) -> Ptr {
        Ptr { address: self.copy.of(address), known: self.known }
    }

    fn perform(&mut self, op: &Op, pm: &mut Pm<'_>) -> Step {
        match *op {
            Op::Load { at, bytes } => self.load(at, u64::from(bytes), pm),
            Op::Store { at, value, bytes } => {
                pm.store_bytes(self.at(at), &value.to_le_bytes()[..usize::from(bytes)]);
            }
            Op::StoreNew { at, bytes } => {
                self.stores += 1;
                let value = mix(self.seed ^ self.stores);
                pm.store_bytes(self.at(at), &value.to_le_bytes()[..usize::from(bytes)]);
            }
            Op::StorePastCaches { at, value } => pm.store_past_caches(self.at(at), value),
            Op::Flush { at } => pm.flush(self.at(at)),
            Op::Order => pm.order(),
            Op::Durable => pm.durable(),
            Op::Mark => pm.mark(),
            Op::Work(instructions) => pm.work(instructions),
            Op::Begin { abortable: false } => pm.begin()?,
            Op::Begin { abortable: true } => pm.begin_abortable()?,
            Op::Commit => pm.commit(),
            Op::Abort => pm.abort(),
            Op::Lock(lock) => pm.lock(LockId(self.copy.locks + lock)),
            Op::Unlock(lock) => pm.unlock(LockId(self.copy.locks + lock)),
            Op::TakeTurn(turn) => pm.take_turn(turn),
            Op::PassTurn => pm.pass_turn(),
        }
        Ok(())
    }

    fn load(&mut self, at: u64, bytes: u64, pm: &mut Pm<'_>) {
        let mut known = self.known;
        for word in at / WORD_BYTES..(at + bytes).div_ceil(WORD_BYTES) {
            known = known.max(pm.load_ptr(self.at(word * WORD_BYTES)).known);
        }
        if self.waits_for_loads {
            self.known = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run makes the workload several times, and parsing takes the longest part of that.
    #[test]
    fn a_trace_is_read_once_however_often_the_workload_is_made() {
        let script =
            Script::new("mine.trace", "store 0x40 1\nfence # mine.c:7\nfence # mine.c:7\n");
        let heap = LINE_BYTES..1 << 20;
        let site =
            Site { cores: 1, seed: 1, heap, items: 1, script: Some(script.clone()), checker: None };
        let make = |leave_out| {
            let params = ReplayParams { leave_out, ..ReplayParams::default() };
            Replay::new(&params, &site.clone()).expect("it is right").trace
        };
        assert_eq!(cores(Some(&script), &[], false, 4).ok(), Some(4));
        let first = make(0);
        assert_eq!(persists(Some(&script), &[]).expect("it is right").len(), 1);
        assert!(Arc::ptr_eq(&first, &make(0)));
        assert!(!Arc::ptr_eq(&first, &make(2)), "what is left out is so of another");
        assert_eq!(make(0).threads[0].ops.len(), make(2).threads[0].ops.len() + 2);
    }
}
