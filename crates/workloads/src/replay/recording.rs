//! A trace while it is read, in either format, and the checks on it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::config::CORES_MAX;
use model::units::{DRAM_BASE, LINE_BYTES, PAGE_BYTES, WORD_BYTES};
use model::workload::{Step, Stop};

use super::trace::{Op, Region, Thread, Trace};

/// The most locks, whose numbers begin with 0 (ours: each takes a line).
const LOCKS_MAX: u64 = 1 << 16;
/// The most bytes of one access (ours: a page; the largest single accesses of processors, such as
/// saving all registers, are smaller).
pub const ACCESS_MAX: u64 = PAGE_BYTES;
/// The most bytes of one `flush` (ours: a mistake would fill the host's memory).
const FLUSH_MAX: u64 = 1 << 24;
/// The most instructions of one `work` (ours: what a program may do in hours).
const WORK_MAX: u64 = 1_000_000_000_000;
/// The end of a trace's addresses, as of processors' addresses.
const ADDRESSES_END: u64 = 1 << 57;

/// A trace that is being read.
pub struct Recorder<'a> {
    file: &'a str,
    /// The word for a place in the file, and the place of the operation that is being read.
    unit: &'static str,
    pub place: usize,
    regions: Vec<Region>,
    /// The places of pages of volatile memory, in order of first use.
    pages: BTreeMap<u64, u64>,
    is_measured: bool,
    current: usize,
    /// The thread of the last operation, and how often the thread has changed.
    went_on: Option<usize>,
    turns: u64,
    recorded: BTreeMap<usize, Recorded>,
    /// The bytes of a part that transactions of two threads may not share without a lock.
    grain: u64,
    /// The last store to each such part in transactions.
    stored: BTreeMap<u64, Stored>,
    trace: Trace,
}

/// A thread that is being read.
#[derive(Default)]
struct Recorded {
    ops: Vec<Op>,
    places: Vec<usize>,
    marks: Vec<String>,
    /// The begin of the open transaction, in the file and among the operations.
    open: Option<(usize, usize)>,
    /// The locks that the thread holds, and the places where it took them.
    held: Vec<(u32, usize)>,
}

impl Recorded {
    fn ended(self) -> Thread {
        Thread::of(self.ops, self.places, self.marks)
    }
}

/// The last store to a part of memory, and the locks that were held at all stores to it.
struct Stored {
    thread: usize,
    place: usize,
    locks: Vec<u32>,
}

impl<'a> Recorder<'a> {
    /// An empty trace of a file whose places are called `unit`.
    pub fn new(file: &'a str, unit: &'static str, grain: u64) -> Recorder<'a> {
        Recorder {
            file,
            unit,
            place: 0,
            regions: Vec::new(),
            pages: BTreeMap::new(),
            is_measured: true,
            current: 0,
            went_on: None,
            turns: 0,
            recorded: BTreeMap::new(),
            grain,
            stored: BTreeMap::new(),
            trace: Trace { unit, ..Trace::default() },
        }
    }

    /// Refuses the operation that is being read.
    pub fn wrong<T>(&self, text: impl AsRef<str>) -> Step<T> {
        self.wrong_at(self.place, text)
    }

    fn wrong_at<T>(&self, place: usize, text: impl AsRef<str>) -> Step<T> {
        let Recorder { file, unit, .. } = self;
        Err(Stop::Input(format!("{file}, {unit} {place}: {}", text.as_ref())))
    }

    /// A number from `least` to `most`.
    pub fn within(&self, what: &str, number: u64, least: u64, most: u64) -> Step<u64> {
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        self.wrong(format!("{what} must be from {least} to {most}, not {number}"))
    }

    /// Refuses a value for its size.
    pub fn does_not_fit<T>(&self, value: &str, bytes: usize) -> Step<T> {
        let plural = if bytes == 1 { "" } else { "s" };
        self.wrong(format!("`{value}` does not fit in {bytes} byte{plural}"))
    }

    /// Notes the place in the program of the operation that is being read; empty if unknown.
    pub fn comes_from(&mut self, source: &str) {
        if self.is_measured && !source.is_empty() {
            let plain = match source.contains(char::is_control) {
                true => Cow::from(source.replace(char::is_control, " ")),
                false => Cow::from(source),
            };
            self.trace.sources.add(self.place, &plain);
        }
    }

    /// Takes the next operations, until [`Recorder::measure`], as done before measuring begins.
    pub fn begin_before(&mut self) {
        self.is_measured = false;
    }

    /// Begins the measured part.
    pub fn measure(&mut self) -> Step {
        if self.is_measured {
            return self.wrong("`measured` may appear only once");
        }
        self.is_measured = true;
        Ok(())
    }

    /// Takes the next operations as those of another thread.
    pub fn thread(&mut self, number: u64) -> Step {
        if !self.is_measured {
            return self.wrong("threads must begin after `measured`");
        }
        // Each thread has a core of its own.
        self.current = self.within("the thread's number", number, 0, CORES_MAX - 1)? as usize;
        Ok(())
    }

    /// Takes the order of the file as that in which threads went on.
    pub fn interleave(&mut self) -> Step {
        if !self.recorded.is_empty() {
            return self.wrong("`interleaved` must come before what threads do");
        }
        self.trace.is_interleaved = true;
        Ok(())
    }

    /// Notes that the current thread goes on. If another thread went on before, that one passes its
    /// turn on, and this one waits for it.
    fn go_on(&mut self) {
        let Some(before) = self.went_on.replace(self.current) else { return };
        if self.trace.is_interleaved && before != self.current {
            self.turns += 1;
            let turn = Op::TakeTurn(self.turns);
            for (thread, op) in [(before, Op::PassTurn), (self.current, turn)] {
                let recorded = self.recorded.entry(thread).or_default();
                recorded.ops.push(op);
                recorded.places.push(self.place);
            }
        }
    }

    /// Adds a persistent region of the program's memory. All are added before any operation.
    pub fn region(&mut self, start: u64, bytes: u64) -> Step {
        if !start.is_multiple_of(LINE_BYTES) || !bytes.is_multiple_of(LINE_BYTES) || bytes == 0 {
            return self.wrong(format!("a region must be whole lines of {LINE_BYTES} bytes"));
        }
        let end = start.checked_add(bytes).filter(|&end| end <= ADDRESSES_END);
        let Some(end) = end else {
            return self.wrong("the region must end within 57 bits of addresses");
        };
        let overlaps = |other: &Region| start < other.from.end && other.from.start < end;
        if self.regions.iter().any(overlaps) {
            return self.wrong("the region overlaps another one");
        }
        // A copy has pages where the program had them.
        let to = self.trace.persistent.next_multiple_of(PAGE_BYTES) + start % PAGE_BYTES;
        self.trace.persistent = to + bytes;
        self.regions.push(Region { from: start..end, to });
        Ok(())
    }

    /// Returns the address in a copy of `bytes` from an address on, which are in one page.
    fn translate(&mut self, address: u64, bytes: u64) -> Step<u64> {
        let Some(end) = address.checked_add(bytes).filter(|&end| end <= ADDRESSES_END) else {
            return self.wrong(format!("address {address:#x} has more than 57 bits"));
        };
        if self.regions.is_empty() {
            self.trace.persistent = self.trace.persistent.max(end.next_multiple_of(LINE_BYTES));
            return Ok(address);
        }
        let touched = |region: &&Region| address < region.from.end && region.from.start < end;
        let Some(region) = self.regions.iter().find(touched) else {
            let pages = self.pages.len() as u64;
            let page = *self.pages.entry(address / PAGE_BYTES).or_insert(pages);
            return Ok(DRAM_BASE + page * PAGE_BYTES + address % PAGE_BYTES);
        };
        if address < region.from.start || end > region.from.end {
            return self.wrong(format!("{bytes} bytes at {address:#x} are partly in a region"));
        }
        Ok(region.to + address - region.from.start)
    }

    fn now(&mut self) -> &mut Recorded {
        self.recorded.entry(self.current).or_default()
    }

    fn push(&mut self, op: Op) {
        if self.is_measured {
            self.go_on();
            let place = self.place;
            let now = self.now();
            now.ops.push(op);
            now.places.push(place);
        } else {
            self.trace.before.push(op);
        }
    }

    fn in_tx(&mut self) -> bool {
        self.now().open.is_some()
    }

    /// Refuses an operation that is not possible before `measured`.
    fn needs_time(&self, what: &str) -> Step {
        if self.is_measured {
            return Ok(());
        }
        self.wrong(format!(
            "`{what}` must come after `measured`; before it there may only be stores"
        ))
    }

    pub fn load(&mut self, address: u64, bytes: u64) -> Step {
        self.needs_time("load")?;
        let bytes = self.within("the number of bytes", bytes, 1, ACCESS_MAX)?;
        for (at, bytes) in pieces(address, bytes, PAGE_BYTES) {
            let at = self.translate(at, bytes)?;
            self.push(Op::Load { at, bytes: bytes as u16 });
        }
        Ok(())
    }

    /// Adds a store of bytes, low first.
    pub fn store(&mut self, address: u64, mut bytes: &[u8]) -> Step {
        for (at, length) in pieces(address, bytes.len() as u64, WORD_BYTES) {
            let (first, rest) = bytes.split_at(length as usize);
            bytes = rest;
            let mut value = [0; WORD_BYTES as usize];
            value[..first.len()].copy_from_slice(first);
            let at = self.place_of_store(at, length)?;
            self.push(Op::Store { at, value: u64::from_le_bytes(value), bytes: length as u8 });
        }
        Ok(())
    }

    /// Adds a store of bytes whose values were not recorded.
    pub fn store_new(&mut self, address: u64, bytes: u64) -> Step {
        let bytes = self.within("the number of bytes", bytes, 1, ACCESS_MAX)?;
        for (at, length) in pieces(address, bytes, WORD_BYTES) {
            let at = self.place_of_store(at, length)?;
            self.push(Op::StoreNew { at, bytes: length as u8 });
        }
        Ok(())
    }

    pub fn store_past_caches(&mut self, address: u64, value: u64) -> Step {
        self.needs_time("ntstore")?;
        if !address.is_multiple_of(WORD_BYTES) {
            return self.wrong("`ntstore` must be to an aligned word of 8 bytes");
        }
        if self.in_tx() {
            return self.wrong("`ntstore` must be outside of transactions");
        }
        let at = self.translate(address, WORD_BYTES)?;
        self.push(Op::StorePastCaches { at, value });
        Ok(())
    }

    /// Adds a flush of the lines that hold these bytes.
    pub fn flush(&mut self, address: u64, bytes: u64) -> Step {
        self.needs_time("flush")?;
        let bytes = self.within("the number of bytes", bytes, 1, FLUSH_MAX)?;
        let before = address % LINE_BYTES;
        for (at, bytes) in pieces(address - before, before + bytes, LINE_BYTES) {
            let at = self.translate(at, bytes)?;
            self.push(Op::Flush { at });
        }
        Ok(())
    }

    /// Adds a fence, which orders earlier stores before later ones, or makes them durable.
    pub fn fence(&mut self, what: &str, op: Op) -> Step {
        self.needs_time(what)?;
        self.push(op);
        Ok(())
    }

    pub fn work(&mut self, instructions: u64) -> Step {
        self.needs_time("work")?;
        let instructions = self.within("the number of instructions", instructions, 0, WORK_MAX)?;
        self.push(Op::Work(instructions));
        Ok(())
    }

    /// Adds a mark, by which the program tells the world how far it has come.
    pub fn mark(&mut self, text: &str) -> Step {
        self.needs_time("mark")?;
        if text.contains('\0') {
            return self.wrong("a mark must not contain a NUL");
        }
        self.now().marks.push(text.to_owned());
        self.push(Op::Mark);
        Ok(())
    }

    /// Whether measuring has begun.
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }

    pub fn begin(&mut self) -> Step {
        self.needs_time("begin")?;
        let place = self.place;
        if let Some((since, _)) = self.now().open {
            let unit = self.unit;
            return self.wrong(format!("the transaction of {unit} {since} has not ended"));
        }
        self.go_on();
        let now = self.now();
        now.open = Some((place, now.ops.len()));
        self.push(Op::Begin { abortable: false });
        Ok(())
    }

    /// Ends the transaction, by a commit or an abort.
    pub fn end(&mut self, what: &str, op: Op) -> Step {
        self.needs_time(what)?;
        let Some((_, begin)) = self.now().open.take() else {
            return self.wrong(format!("`{what}` ends a transaction, and none has begun"));
        };
        self.now().ops[begin] = Op::Begin { abortable: op == Op::Abort };
        self.push(op);
        Ok(())
    }

    pub fn lock(&mut self, lock: u64) -> Step {
        self.needs_time("lock")?;
        let lock = self.within("the lock's number", lock, 0, LOCKS_MAX - 1)? as u32;
        let place = self.place;
        if self.in_tx() {
            return self.wrong("a lock must be taken before a transaction begins");
        }
        if let Some(&(last, _)) = self.now().held.last().filter(|(last, _)| *last >= lock) {
            return self.wrong(format!(
                "lock {lock} is taken after lock {last}; locks must be taken in the order of their \
                 numbers, so that no two threads wait for each other"
            ));
        }
        let mut others = self.recorded.iter().flat_map(|(thread, other)| {
            other.held.iter().map(move |(held, since)| (thread, *held, *since))
        });
        if self.trace.is_interleaved
            && let Some((thread, _, since)) = others.find(|(_, held, _)| *held == lock)
        {
            let unit = self.unit;
            return self.wrong(format!(
                "lock {lock} is taken while thread {thread} has held it since {unit} {since}: in \
                 the order of the file no thread could go on"
            ));
        }
        self.trace.locks = self.trace.locks.max(lock + 1);
        self.now().held.push((lock, place));
        self.push(Op::Lock(lock));
        Ok(())
    }

    pub fn unlock(&mut self, lock: u64) -> Step {
        self.needs_time("unlock")?;
        if self.in_tx() {
            return self.wrong("a lock must be released after the transaction has ended");
        }
        let Some(held) = self.now().held.iter().position(|&(held, _)| u64::from(held) == lock)
        else {
            return self.wrong(format!("lock {lock} is released, but was not taken"));
        };
        let (lock, _) = self.now().held.remove(held);
        self.push(Op::Unlock(lock));
        Ok(())
    }

    /// Returns the address in a copy of a store. A part to which two threads store in transactions
    /// must have a lock that both hold: otherwise the right contents after a power failure would be
    /// unknown.
    fn place_of_store(&mut self, address: u64, bytes: u64) -> Step<u64> {
        let at = self.translate(address, bytes)?;
        if at >= DRAM_BASE || !self.is_measured || !self.in_tx() {
            return Ok(at);
        }
        let (thread, place, unit) = (self.current, self.place, self.unit);
        let held: Vec<u32> = self.now().held.iter().map(|&(lock, _)| lock).collect();
        let part = at / self.grain;
        let Some(stored) = self.stored.get_mut(&part) else {
            self.stored.insert(part, Stored { thread, place, locks: held });
            return Ok(at);
        };
        stored.locks.retain(|lock| held.contains(lock));
        let has_lock = !stored.locks.is_empty();
        let other = std::mem::replace(&mut stored.thread, thread);
        let since = std::mem::replace(&mut stored.place, place);
        // In a recorded order this transaction is after the other one, if that has ended.
        let open = self.recorded.get(&other).and_then(|recorded| recorded.open);
        let overlap = open.is_some_and(|(begin, _)| begin <= since);
        let may_meet = overlap || !self.trace.is_interleaved;
        if other == thread || has_lock || !may_meet {
            return Ok(at);
        }
        let (what, more) = match self.grain {
            WORD_BYTES => ("word", ""),
            _ => ("line", ", or, for a design that logs words, --set workload.lock_grain=word"),
        };
        self.wrong(format!(
            "thread {thread} stores to a {what} to which thread {other} also stores in {unit} \
             {since}, both in transactions without a common lock; take one{more}"
        ))
    }

    /// Returns the complete trace.
    pub fn finish(mut self) -> Step<Trace> {
        for (thread, recorded) in &self.recorded {
            if let Some((place, _)) = recorded.open {
                return self.wrong_at(place, format!("thread {thread} never ends the transaction"));
            }
            if let Some(&(lock, place)) = recorded.held.first() {
                return self.wrong_at(place, format!("lock {lock} is never released"));
            }
        }
        let recorded = std::mem::take(&mut self.recorded);
        let Some((&last, _)) = recorded.last_key_value() else {
            return Err(Stop::Input(format!("{}: there is nothing to measure", self.file)));
        };
        if let Some(missing) = (0..last).find(|thread| !recorded.contains_key(thread)) {
            return Err(Stop::Input(format!(
                "{} has a thread {last} but no thread {missing}; number threads from 0 up",
                self.file
            )));
        }
        self.trace.threads = recorded.into_values().map(Recorded::ended).collect();
        self.trace.persistent = self.trace.persistent.next_multiple_of(LINE_BYTES);
        self.trace.volatile = self.pages.len() as u64 * PAGE_BYTES;
        self.trace.regions = self.regions;
        Ok(self.trace)
    }
}

/// Splits `bytes` from an address on into pieces that are in one block of `size` bytes each.
fn pieces(address: u64, bytes: u64, size: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = address;
    let mut left = bytes;
    std::iter::from_fn(move || {
        let length = left.min(size - at % size);
        let piece = (at, length);
        at = at.wrapping_add(length);
        left -= length;
        (length > 0).then_some(piece)
    })
}
