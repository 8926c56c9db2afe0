//! What a workload is: a program over persistent memory, written once and run under every design.

use std::ops::Range;
use std::sync::Arc;

use crate::checker::{Checker, Examiner};
use crate::contents::View;
use crate::image::Image;
use crate::params::Params;
use crate::script::Script;
use crate::units::{CoreId, Cycle, DRAM_BASE, LINE_BYTES, WORD_BYTES, Word};

mod plain;

pub use plain::Overwritten;
use plain::Plain;

/// An address and the cycle at which the core knows it.
///
/// A program that follows a pointer cannot start the access before the pointer has arrived; one
/// that computes an address can. The type carries this, so that the out-of-order core sees which
/// loads depend on which: [`Pm::load_ptr`] returns a `Ptr` that is known when its load is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ptr {
    /// The byte address; 0 is no address.
    pub address: u64,
    /// When the core knows it; [`Cycle`] 0 for an address that the program computed.
    pub known: Cycle,
}

/// Two pointers are equal when they point to the same place, whenever that became known.
impl PartialEq for Ptr {
    fn eq(&self, other: &Ptr) -> bool {
        self.address == other.address
    }
}

impl Eq for Ptr {}

impl Ptr {
    /// No address.
    pub const NULL: Ptr = Ptr { address: 0, known: Cycle(0) };

    /// An address that the program computed.
    pub fn to(address: u64) -> Ptr {
        Ptr { address, known: Cycle(0) }
    }

    /// The address `bytes` further on, known when this one is.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Ptr {
        Ptr { address: self.address + bytes, ..self }
    }

    /// Whether it is no address.
    pub fn is_null(self) -> bool {
        self.address == 0
    }
}

/// A lock, by its number. Each lock is a line of its own in volatile memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockId(pub u32);

/// Why a program cannot go on; the run ends and the reason is told.
#[derive(Clone, Debug)]
pub enum Stop {
    /// Simulated persistent memory is used up.
    OutOfMemory {
        /// Bytes that were asked for.
        asked: u64,
        /// Bytes that were free.
        free: u64,
    },
    /// The program found its input wrong; the text is a sentence for the user.
    Input(String),
    /// A checker does not accept what the program leaves when no power fails; the text is a
    /// sentence for the user.
    NotAccepted(String),
    /// The program found itself wrong; the text says how.
    Failed(String),
    /// The user asked for an end.
    Cancelled,
}

/// The result of a program's step.
pub type Step<T = ()> = Result<T, Stop>;

/// The ways of writing a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// `clwb`: the line stays in the caches.
    WriteBack,
    /// `clflushopt`: the line leaves the caches.
    Evict,
    /// `clflush`: the line leaves the caches, and the core waits until it is durable, so that
    /// flushes and stores are in order.
    EvictInOrder,
}

/// What a simulated core offers to the program that runs on it. Programs use [`Pm`] instead. The
/// defaults are those of memory without a machine, where nothing waits and no run is cancelled.
pub trait Port {
    /// Loads an aligned word; also says when the value is there.
    fn load(&mut self, at: Ptr) -> (u64, Cycle);
    /// Stores the bytes of `value` that `mask` selects (0xff for each byte) into an aligned word.
    fn store(&mut self, at: Ptr, value: u64, mask: u64);
    /// Stores aligned words of one line, from `at` on, past the caches, with one instruction,
    /// through a write-combining buffer; outside of transactions. By default, stores each word.
    fn store_past_caches(&mut self, at: Ptr, values: &[u64]) {
        for (place, &value) in (0..).zip(values) {
            self.store(at.plus(place * WORD_BYTES), value, u64::MAX);
        }
    }
    /// Begins a transaction, which may be aborted if it is `abortable`.
    fn begin(&mut self, abortable: bool);
    /// Commits the transaction; on return it is acknowledged.
    fn commit(&mut self);
    /// Aborts the transaction, which is abortable; on return it has had no effect.
    fn abort(&mut self);
    /// Takes a lock, waiting for it if it is taken.
    fn lock(&mut self, _lock: LockId) {}
    /// Gives a lock back.
    fn unlock(&mut self, _lock: LockId) {}
    /// Executes instructions that touch no memory.
    fn work(&mut self, _instructions: u64) {}
    /// Asks for the line to be written back to memory.
    fn flush(&mut self, _at: Ptr, _how: Flush) {}
    /// Orders the stores before it, in what survives, before those after it.
    fn order(&mut self) {}
    /// Returns once the stores before it are durable.
    fn durable(&mut self) {}
    /// Tells the world outside that the program has come this far; on return the world knows.
    fn mark(&mut self) {}
    /// Waits until the turn has been passed on `turn` times.
    fn take_turn(&mut self, _turn: u64) {}
    /// Passes the turn on, when what is before has retired and its stores have left the core.
    fn pass_turn(&mut self) {}
    /// Whether the run has been cancelled.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Persistent memory, as a program sees it: on a simulated machine, or plain and functional, for
/// populating before the measured region and for measuring what simulation costs.
pub struct Pm<'a> {
    back: Back<'a>,
    core: CoreId,
}

enum Back<'a> {
    Plain(Plain<'a>),
    Simulated(&'a mut dyn Port),
}

impl<'a> Pm<'a> {
    /// Plain memory: each operation takes effect, and nothing else happens.
    pub fn plain(view: &'a mut View, core: CoreId) -> Pm<'a> {
        let overwritten = Overwritten::default();
        Pm { back: Back::Plain(Plain { view, overwritten }), core }
    }

    /// Memory behind a simulated core.
    pub fn simulated(port: &'a mut dyn Port, core: CoreId) -> Pm<'a> {
        Pm { back: Back::Simulated(port), core }
    }

    /// The core that the program runs on.
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// Checks that volatile memory reaches up to the address `end`, for what `who` keeps there.
    /// Only plain memory, on which a workload lays out its data, is checked.
    ///
    /// # Errors
    /// [`Stop::Input`] if it does not, with what helps: more memory, `or` something else.
    pub fn check_volatile(&self, who: &str, end: u64, or: &str) -> Step {
        let Back::Plain(plain) = &self.back else { return Ok(()) };
        let missing = end.saturating_sub(DRAM_BASE + plain.view.dram.capacity());
        if missing == 0 {
            return Ok(());
        }
        Err(Stop::Input(format!(
            "{who} needs {missing} more bytes of volatile memory than there are; raise it with \
             --set dram.device_size=...{or}"
        )))
    }

    /// Loads the aligned 8-byte word at `at`.
    #[inline]
    pub fn load(&mut self, at: Ptr) -> u64 {
        self.load_timed(at).0
    }

    /// Loads a pointer; accesses through it wait until it has arrived.
    #[inline]
    pub fn load_ptr(&mut self, at: Ptr) -> Ptr {
        let (address, known) = self.load_timed(at);
        Ptr { address, known }
    }

    /// Stores the aligned 8-byte word at `at`.
    #[inline]
    pub fn store(&mut self, at: Ptr, value: u64) {
        self.store_masked(at, value, u64::MAX);
    }

    /// Stores a pointer.
    #[inline]
    pub fn store_ptr(&mut self, at: Ptr, value: Ptr) {
        self.store(at, value.address);
    }

    /// Stores the aligned 8-byte word at `at` with a non-temporal store.
    pub fn store_past_caches(&mut self, at: Ptr, value: u64) {
        self.store_words_past_caches(at, &[value]);
    }

    /// Stores aligned 8-byte words, which lie in one line, from `at` on with one non-temporal
    /// store: what a vector's store does, or `movdir64b`.
    ///
    /// # Panics
    /// When they do not lie in one line.
    pub fn store_words_past_caches(&mut self, at: Ptr, values: &[u64]) {
        let end = at.address % LINE_BYTES + values.len() as u64 * WORD_BYTES;
        assert!(!values.is_empty() && end <= LINE_BYTES, "the words lie in one line");
        match &mut self.back {
            Back::Plain(plain) => {
                for (place, &value) in (0..).zip(values) {
                    plain.store(at.plus(place * WORD_BYTES), value, u64::MAX);
                }
            }
            Back::Simulated(port) => port.store_past_caches(at, values),
        }
    }

    /// Loads `bytes.len()` bytes from `at` on, at any alignment, word by word.
    pub fn load_bytes(&mut self, at: Ptr, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (word, offset, length) = piece(at.address + done as u64, bytes.len() - done);
            let value = self.load(Ptr { address: word, ..at }).to_le_bytes();
            bytes[done..done + length].copy_from_slice(&value[offset..offset + length]);
            done += length;
        }
    }

    /// Stores `bytes` from `at` on, at any alignment, word by word.
    pub fn store_bytes(&mut self, at: Ptr, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (word, offset, length) = piece(at.address + done as u64, bytes.len() - done);
            let mut value = [0; WORD_BYTES as usize];
            let mut mask = [0; WORD_BYTES as usize];
            value[offset..offset + length].copy_from_slice(&bytes[done..done + length]);
            mask[offset..offset + length].fill(0xff);
            let place = Ptr { address: word, ..at };
            self.store_masked(place, u64::from_le_bytes(value), u64::from_le_bytes(mask));
            done += length;
        }
    }

    /// Runs `body` as one transaction: after a power failure all of it is there, or none.
    ///
    /// # Errors
    /// What `body` returns; the transaction is then not committed and the run is over.
    pub fn tx<T>(&mut self, body: impl FnOnce(&mut Pm<'a>) -> Step<T>) -> Step<T> {
        self.begin()?;
        let value = body(self)?;
        self.commit();
        Ok(value)
    }

    /// Begins a transaction; programs with a transaction in one place use [`Pm::tx`].
    ///
    /// # Errors
    /// [`Stop::Cancelled`] when the user asked for an end.
    pub fn begin(&mut self) -> Step {
        self.begin_as(false)
    }

    /// Begins a transaction that may be aborted: its program ends it with [`Pm::commit`] or with
    /// [`Pm::abort`].
    ///
    /// # Errors
    /// As [`Pm::begin`].
    pub fn begin_abortable(&mut self) -> Step {
        self.begin_as(true)
    }

    fn begin_as(&mut self, abortable: bool) -> Step {
        match &mut self.back {
            Back::Plain(plain) => plain.overwritten.begin(abortable),
            Back::Simulated(port) => {
                if port.cancelled() {
                    return Err(Stop::Cancelled);
                }
                port.begin(abortable);
            }
        }
        Ok(())
    }

    /// Commits the transaction that [`Pm::begin`] or [`Pm::begin_abortable`] began.
    pub fn commit(&mut self) {
        match &mut self.back {
            Back::Plain(plain) => plain.overwritten.end(),
            Back::Simulated(port) => port.commit(),
        }
    }

    /// Aborts the transaction that [`Pm::begin_abortable`] began. On return every word is as it was
    /// before, and no power failure brings any of its stores back. Locks are given back afterwards,
    /// as after a commit.
    pub fn abort(&mut self) {
        match &mut self.back {
            Back::Plain(plain) => plain.overwritten.revert(plain.view),
            Back::Simulated(port) => port.abort(),
        }
    }

    /// Takes a lock. Locks are taken before a transaction begins, in order of their numbers.
    pub fn lock(&mut self, lock: LockId) {
        if let Back::Simulated(port) = &mut self.back {
            port.lock(lock);
        }
    }

    /// Gives a lock back, after the transaction has ended.
    pub fn unlock(&mut self, lock: LockId) {
        if let Back::Simulated(port) = &mut self.back {
            port.unlock(lock);
        }
    }

    /// Executes `instructions` that touch no memory: comparing, hashing, branching.
    #[inline]
    pub fn work(&mut self, instructions: u64) {
        if let Back::Simulated(port) = &mut self.back {
            port.work(instructions);
        }
    }

    /// Asks for the line of `at` to be written back (`clwb`, where the hardware has it).
    pub fn flush(&mut self, at: Ptr) {
        self.flush_as(at, Flush::WriteBack);
    }

    /// Asks for the line of `at` to be written back in the given way.
    pub fn flush_as(&mut self, at: Ptr, how: Flush) {
        if let Back::Simulated(port) = &mut self.back {
            port.flush(at, how);
        }
    }

    /// Orders stores in what survives (sfence, ofence).
    pub fn order(&mut self) {
        if let Back::Simulated(port) = &mut self.back {
            port.order();
        }
    }

    /// Waits until stores are durable (sfence, dfence).
    pub fn durable(&mut self) {
        if let Back::Simulated(port) = &mut self.back {
            port.durable();
        }
    }

    /// Waits until the turn has been passed on `turn` times, so that what was recorded goes on in
    /// its recorded order.
    pub fn take_turn(&mut self, turn: u64) {
        if let Back::Simulated(port) = &mut self.back {
            port.take_turn(turn);
        }
    }

    /// Passes the turn on. What is before has retired, and its stores have left the core, but
    /// nothing is said of when they are durable.
    pub fn pass_turn(&mut self) {
        if let Back::Simulated(port) = &mut self.back {
            port.pass_turn();
        }
    }

    /// Tells the world outside that the program has come this far, as a program that prints a line
    /// does: what is before has retired, and its stores have left the core. A [`Checker`] holds the
    /// program to that.
    pub fn mark(&mut self) {
        if let Back::Simulated(port) = &mut self.back {
            port.mark();
        }
    }

    #[inline]
    fn load_timed(&mut self, at: Ptr) -> (u64, Cycle) {
        debug_assert!(at.address.is_multiple_of(WORD_BYTES), "a load is aligned");
        match &mut self.back {
            Back::Plain(plain) => (plain.view.word(Word::of(at.address)), Cycle(0)),
            Back::Simulated(port) => port.load(at),
        }
    }

    #[inline]
    fn store_masked(&mut self, at: Ptr, value: u64, mask: u64) {
        debug_assert!(at.address.is_multiple_of(WORD_BYTES), "a store is aligned");
        match &mut self.back {
            Back::Plain(plain) => plain.store(at, value, mask),
            Back::Simulated(port) => port.store(at, value, mask),
        }
    }
}

/// The aligned word in which the next piece of an unaligned access lies, the piece's offset in the
/// word, and its length.
fn piece(address: u64, left: usize) -> (u64, usize, usize) {
    let offset = (address % WORD_BYTES) as usize;
    (address - offset as u64, offset, left.min(WORD_BYTES as usize - offset))
}

/// What a workload must know to lay out its data, the same for every design.
#[derive(Clone, Debug)]
pub struct Site {
    /// Cores, each of which runs one program.
    pub cores: u8,
    /// The seed from which every program's random numbers come.
    pub seed: u64,
    /// Where persistent data may lie, in bytes; logs lie elsewhere.
    pub heap: Range<u64>,
    /// How many items a structure holds if the user does not say.
    pub items: u64,
    /// A text that came with the workload: a SQL script, a YCSB property file, a trace.
    pub script: Option<Script>,
    /// The program of the user's that is shown what power failures leave, if there is one.
    pub checker: Option<Arc<dyn Examiner>>,
}

impl Site {
    /// The part of the heap that one core uses alone, whole lines.
    ///
    /// Parts have an odd number of lines (ours). At an even distance the same line of every core's
    /// nodes would lie in the same half of the sets of the last level, or in fewer, and whether it
    /// does would follow from the sizes of memory and logs.
    pub fn part(&self, core: CoreId) -> Range<u64> {
        let lines = (self.heap.end - self.heap.start) / u64::from(self.cores) / LINE_BYTES;
        let size = LINE_BYTES * (lines - u64::from(lines.is_multiple_of(2) && lines > 0));
        let start = self.heap.start + size * u64::from(core.0);
        start..start + size
    }
}

/// What the registry, the command line and the documentation say of a workload.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name, as on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Where its definition comes from.
    pub source: &'static str,
    /// The file that holds it.
    pub file: &'static str,
    /// Whether several cores share data (behind locks) unless told otherwise.
    pub shared: bool,
}

/// A program over persistent memory, for any number of cores.
pub trait Workload: Send {
    /// Fills its structures, on plain memory, before the measured region. What is there at the end
    /// is durable when measuring begins.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] when the data do not fit.
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step;

    /// The program of one core; called after [`Workload::populate`].
    ///
    /// # Errors
    /// [`Stop::Input`] when the program cannot start.
    fn program(&self, core: CoreId) -> Step<Box<dyn Program>>;

    /// Goes on with what recovery left, on a machine that boots from it: rebuilds what the workload
    /// keeps in volatile memory. Called after [`Workload::populate`], which has laid the same data
    /// out anew elsewhere, and before [`Workload::program`], whose random numbers then come from
    /// `seed`. Called only if [`Declared::REOPENS`] allows it.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the data.
    fn reopen(&mut self, _image: &Image<'_>, _seed: u64) -> Result<(), String> {
        Err("it cannot be reopened".into())
    }

    /// Checks the workload's own invariants on what a power failure left, after recovery.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    fn check(&self, _image: &Image<'_>) -> Result<(), String> {
        Ok(())
    }

    /// What a reader of addresses in the workload's memory should know, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether [`Workload::check`] finds what is wrong without the oracle, which promises nothing
    /// of stores outside of transactions.
    fn has_invariants(&self) -> bool {
        true
    }

    /// Whether any of its programs has a transaction.
    fn has_transactions(&self) -> bool {
        true
    }

    /// The number of transactions after which a core's program ends, if it ends: further ones do
    /// nothing.
    fn ends_after(&self) -> Option<u64> {
        None
    }

    /// The number of transactions of each core that the workload's script asks for, if it does: the
    /// default length of a run.
    fn asks_for(&self) -> Option<u64> {
        None
    }

    /// The checker of what the program itself promises with its stores, flushes and fences. It
    /// checks every image, and not only some of them.
    fn checker(&self) -> Option<&dyn Checker> {
        None
    }
}

/// Whether a workload can go on with what a power failure left ([`Workload::reopen`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reopens {
    /// It cannot.
    Never,
    /// It can. With a script of the user's it can only where the script may begin anew, so the user
    /// has to ask for it.
    UnlessScripted,
    /// It can.
    Always,
}

/// A workload that the registry can make.
pub trait Declared: Workload + Sized + 'static {
    /// What the registry, the command line and the documentation say of it.
    const ABOUT: About;
    /// The flag of the command line that names the file that it reads, if it reads one.
    const SCRIPT: Option<&'static str> = None;
    /// Whether `all` workloads of a comparison have it among them. Not if its transactions give
    /// designs nothing to do, or stand for no program.
    const IN_ALL: bool = true;
    /// Whether it can go on with what a power failure left.
    const REOPENS: Reopens = Reopens::Never;
    /// Its parameters.
    type Params: Params;

    /// Reads its input, if it has any, and lays out its data.
    ///
    /// # Errors
    /// [`Stop::Input`] when the script is wrong, [`Stop::OutOfMemory`] when the data do not fit.
    fn new(params: &Self::Params, site: &Site) -> Step<Self>;
}

/// What one core runs.
pub trait Program {
    /// Runs one transaction, locks included. It may be called any number of times.
    ///
    /// # Errors
    /// Why the program cannot go on.
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step;
}

#[cfg(test)]
mod tests;
