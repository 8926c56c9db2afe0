//! `logcache`: the loop of "to cache, or not to cache": append an entry to a log, fence, store to
//! an array. It is the one that `indelible native logging` measures on the processor, with the same
//! names.
//!
//! ```text
//! array: elements of 4 bytes      log: entries of 8 bytes, one word
//!   bit 31  set                     low half   the element's index
//!   8..31   a function of seed,     high half  its new value (redo), or its old one (undo)
//!           core, index and pass
//!   0..8    the pass, modulo 256
//! ```
//!
//! A step of the loop is a group of `entries_per_fence` entries: draw the values, append the
//! entries, write the log's lines back if the variant does, fence, store to the array, write the
//! array's line back if asked for. Each core has an array and a log of its own and takes no lock.
//! Where whole lines are written, fewer than eight entries are padded to a line.
//!
//! **Its stores are outside of transactions**, against the rule for workloads. What is measured is
//! the durability that the program makes for itself, so no design may log its stores a second time:
//! a group is followed by a transaction that stores nothing, which counts it. So a design is its
//! ordering hardware here (`undo@x86` is `clwb` and `sfence`, `undo@eadr` caches that survive,
//! `native` fences that cost nothing and do nothing), and the oracle promises nothing of these
//! words. The check here covers the promises that can be made. With `verify = values` every element
//! and every entry must be one that the program made, which holds on every design. With `verify =
//! order` the log must also hold the entry of every element that was stored to: that holds if the
//! variant is durable and the design's fences act like x86's, and fails for the paper's cached log,
//! which writes nothing back.
//!
//! The machine's stores past the caches are of whole words. The first half of `movnti4` is an
//! instruction and no store of its own, and `movdiri` and `movnti8` are the same. A line is two
//! stores of `nt32`, and one of `nt64` or `movdir64b`.

use model::image::Image;
use model::units::{CoreId, DRAM_BASE, LINE_BYTES, WORD_BYTES};
use model::workload::{About, Declared, Flush, Pm, Program, Ptr, Site, Step, Stop, Workload};

use crate::choices::Memory;
use crate::rng::mix;
use crate::walk::Walk;

/// Instructions of a group beside its accesses and its values: two cyclic places (add, compare and
/// move, each) and a count, as the measured loop is compiled.
const GROUP_WORK: u64 = 8;
/// Bytes of a circular log, as measured.
const CIRCULAR_BYTES: u64 = 128 << 10;
/// Bytes of an element and of an entry.
const ELEMENT: u64 = 4;
const ENTRY: u64 = WORD_BYTES;
/// Entries in a line.
const LINE_ENTRIES: u64 = LINE_BYTES / ENTRY;
/// Arrays are a multiple of so many elements: the largest group, and a line.
const GRAIN: u64 = 16;
/// The number of passes after which values repeat.
const PASSES: u64 = 256;

model::params! {
    /// Parameters of `logcache`.
    pub struct LogCacheParams {
        /// How an entry is written: through the caches (the paper's), with a flush behind it, or
        /// past them, in parts of a line or by the line. Names as of `indelible native logging`.
        variant: Variant = CachedClwb;
        /// Entries before a fence.
        entries_per_fence: Group = G1;
        /// What comes between log and array: a fence that waits for what was written back, or
        /// nothing.
        fence: Fence = Sfence;
        /// Whether the new value is logged or the old one.
        logging: Logging = Redo;
        /// Whether the log is twice the array, or 128 KiB that are written again and again.
        log: LogShape = Linear;
        /// Where the log lies.
        log_in: Memory = Pm;
        /// Where the array lies.
        array_in: Memory = Pm;
        /// Whether the array's lines are written back, too.
        array_writes: ArrayWrites = Cached;
        /// Elements of 4 bytes, over all cores; 0 means as many as the machine says. The paper's
        /// array of 8 MiB has 2,097,152.
        items = 0 in 0..=1_000_000_000;
        /// Instructions that make a value; 6 are an xorshift's.
        work = 6 in 0..=100_000;
        /// What the check demands of a power failure: values that the program made, or also that
        /// the log holds the entry of every element that was stored to.
        verify: Verify = Values;
    }
}

model::choices! {
    /// How an entry is written: `cached` through the caches, the others past them.
    pub enum Variant {
        Cached = "cached",
        CachedClwb = "cached+clwb",
        CachedClflushopt = "cached+clflushopt",
        CachedClflush = "cached+clflush",
        Movnti4 = "movnti4",
        Movnti8 = "movnti8",
        Movdiri = "movdiri",
        Nt32 = "nt32",
        Nt64 = "nt64",
        Movdir64b = "movdir64b",
    }

    /// Entries before a fence.
    pub enum Group { G1 = "1", G2 = "2", G4 = "4", G8 = "8", G16 = "16" }

    /// What comes between log and array.
    pub enum Fence { Sfence = "sfence", None = "none" }

    /// Which value of an element is logged.
    pub enum Logging {
        /// The new one.
        Redo = "redo",
        /// The old one.
        Undo = "undo",
    }

    /// The extent of the log.
    pub enum LogShape {
        /// Twice the array.
        Linear = "linear",
        /// 128 KiB that are written again and again.
        Circular = "circular",
    }

    /// Whether the array's lines are written back.
    pub enum ArrayWrites { Cached = "cached", Flushed = "flushed" }

    /// What the check demands.
    pub enum Verify {
        /// Values that the program made.
        Values = "values",
        /// Also that the log has the entry of every element that was stored to.
        Order = "order",
    }
}

/// The workload.
#[derive(Debug)]
pub struct LogCache {
    parts: Vec<Part>,
    params: LogCacheParams,
}

impl Declared for LogCache {
    const ABOUT: About = About {
        name: "logcache",
        summary: "a log, cached or not: append, fence, store to an array",
        source: "Li, Ogleari and Zhao, Figure 1",
        file: file!(),
        shared: false,
    };
    const IN_ALL: bool = false;
    type Params = LogCacheParams;

    fn new(params: &LogCacheParams, site: &Site) -> Step<LogCache> {
        let parts = (0..site.cores).map(|core| Part::new(params, site, CoreId(core)));
        Ok(LogCache { parts: parts.collect::<Step<Vec<_>>>()?, params: params.clone() })
    }
}

impl Workload for LogCache {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        let used = self.parts.iter().map(Part::volatile_end).max().unwrap_or(0);
        pm.check_volatile("workload logcache", used, ", or lower --set workload.items=...")?;
        for part in &self.parts {
            for index in (0..part.items).step_by(2) {
                let [low, high] = [0, 1].map(|more| u64::from(part.value(index + more, 0)));
                pm.store(part.element(index), low | high << 32);
            }
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let part = self.parts[usize::from(core.0)].clone();
        Ok(Box::new(Logger {
            way: self.params.variant.way(),
            fences: self.params.fence == Fence::Sfence,
            flushes_array: self.params.array_writes == ArrayWrites::Flushed,
            work: self.params.work,
            next: 0,
            part,
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        for (core, part) in self.parts.iter().enumerate() {
            part.check(image, self.params.verify)
                .map_err(|error| format!("core {core}: {error}"))?;
        }
        Ok(())
    }
}

/// The way in which an entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Cached(Option<Flush>),
    /// Past the caches, with so many instructions beside the store.
    Word(u64),
    /// Past the caches by the line, in stores of so many words.
    Line(usize),
}

impl Variant {
    fn way(self) -> Way {
        match self {
            Variant::Cached => Way::Cached(None),
            Variant::CachedClwb => Way::Cached(Some(Flush::WriteBack)),
            Variant::CachedClflushopt => Way::Cached(Some(Flush::Evict)),
            Variant::CachedClflush => Way::Cached(Some(Flush::EvictInOrder)),
            Variant::Movnti4 => Way::Word(1),
            Variant::Movnti8 | Variant::Movdiri => Way::Word(0),
            Variant::Nt32 => Way::Line(4),
            Variant::Nt64 | Variant::Movdir64b => Way::Line(8),
        }
    }
}

impl Group {
    fn entries(self) -> u64 {
        match self {
            Group::G1 => 1,
            Group::G2 => 2,
            Group::G4 => 4,
            Group::G8 => 8,
            Group::G16 => 16,
        }
    }
}

/// The array and the log of one core, and the values that they may hold.
#[derive(Clone, Debug)]
struct Part {
    seed: u64,
    array: u64,
    /// Elements, a multiple of [`GRAIN`].
    items: u64,
    log: u64,
    /// Words of the log.
    slots: u64,
    /// Entries before a fence.
    group: u64,
    /// Whether a group is padded to a line.
    padded: bool,
    undo: bool,
}

impl Part {
    fn new(params: &LogCacheParams, site: &Site, core: CoreId) -> Step<Part> {
        let asked = if params.items == 0 { site.items } else { params.items };
        let items = (asked / u64::from(site.cores)).next_multiple_of(GRAIN).max(GRAIN);
        let circular = params.log == LogShape::Circular;
        // The number of slots is a power of two and divides the items, so that a slot determines
        // the elements whose entries go there.
        let slots = if circular { (CIRCULAR_BYTES / ENTRY).min(1 << items.ilog2()) } else { items };
        let items = items / slots * slots;
        let group = params.entries_per_fence.entries();
        let (array_bytes, log_bytes) = (items * ELEMENT, slots * ENTRY);
        let room = site.part(core);
        let first = room.start.next_multiple_of(LINE_BYTES);
        // Other programs have their locks at this place; this one has none.
        let volatile = DRAM_BASE + u64::from(core.0) * (array_bytes + log_bytes);
        let (array_in_pm, log_in_pm) = (params.array_in == Memory::Pm, params.log_in == Memory::Pm);
        let in_pm = u64::from(array_in_pm) * array_bytes + u64::from(log_in_pm) * log_bytes;
        let free = room.end.saturating_sub(first);
        if in_pm > free {
            return Err(Stop::OutOfMemory { asked: in_pm, free });
        }
        let after = first + u64::from(array_in_pm) * array_bytes;
        Ok(Part {
            seed: mix(site.seed ^ u64::from(core.0) << 56),
            array: if array_in_pm { first } else { volatile },
            items,
            log: if log_in_pm { after } else { volatile + array_bytes },
            slots,
            group,
            padded: matches!(params.variant.way(), Way::Line(_)) && group < LINE_ENTRIES,
            undo: params.logging == Logging::Undo,
        })
    }

    fn volatile_end(&self) -> u64 {
        let ends = [self.array + self.items * ELEMENT, self.log + self.slots * ENTRY];
        ends.into_iter().max().unwrap_or(0)
    }

    /// The word that holds an element of an even index; that of an odd one is its upper half.
    fn element(&self, index: u64) -> Ptr {
        Ptr::to(self.array + index * ELEMENT)
    }

    /// Returns the value of an element after a pass; before the first it is 0.
    fn value(&self, index: u64, pass: u64) -> u32 {
        let pass = pass % PASSES;
        1 << 31 | (mix(self.seed ^ index << 8 ^ pass) as u32 >> 9) << 8 | pass as u32
    }

    /// The element and the pass of an entry, counted from 0, and the slot that it goes to.
    fn place(&self, entry: u64) -> (u64, u64, u64) {
        let (group, place) = (entry / self.group, entry % self.group);
        let slot = if self.padded { group * LINE_ENTRIES + place } else { entry };
        (entry % self.items, entry / self.items + 1, slot % self.slots)
    }

    fn check(&self, image: &Image<'_>, verify: Verify) -> Result<(), String> {
        let (in_pm, logged) = (self.array < DRAM_BASE, self.log < DRAM_BASE);
        let mut log = Vec::new();
        if logged {
            let range = self.log..self.log + self.slots * ENTRY;
            let mut walk = Walk::new(image, &range);
            walk.visit(range.start, range.end - range.start, "the log")?;
            for slot in 0..self.slots {
                log.push(self.entry(slot, walk.word(self.log + slot * ENTRY))?);
            }
        }
        if !in_pm {
            return Ok(());
        }
        let range = self.array..self.array + self.items * ELEMENT;
        let mut walk = Walk::new(image, &range);
        walk.visit(range.start, range.end - range.start, "the array")?;
        for index in 0..self.items {
            let word = walk.word(self.element(index & !1).address);
            let value = (word >> (32 * (index % 2))) as u32;
            if value != self.value(index, u64::from(value)) {
                return Err(format!("element {index} is {value:#x}, which nobody stored"));
            }
            if verify == Verify::Order && logged {
                self.check_logged(index, u64::from(value) % PASSES, &log)?;
            }
        }
        Ok(())
    }

    /// Returns the contents of a slot of the log.
    fn entry(&self, slot: u64, word: u64) -> Result<Slot, String> {
        let (key, value) = (word & u64::from(u32::MAX), (word >> 32) as u32);
        let mut keys = self.keys(slot);
        let is_of = |key: u64| value == self.value(key, u64::from(value));
        let key_is_right = keys.clone().any(|other| other == key);
        if word == 0 {
            return Ok(Slot::Empty);
        }
        if key_is_right && is_of(key) {
            let pass = u64::from(value) % PASSES;
            let passes = if self.undo { pass } else { (pass + PASSES - 1) % PASSES };
            return Ok(Slot::Entry(key + self.items * passes));
        }
        // One half of an entry has been stored over another entry, and the other half not yet.
        if (key == 0 || key_is_right) && (value == 0 || keys.any(is_of)) {
            return Ok(Slot::Torn);
        }
        Err(format!("entry {slot} of the log is {word:#x}, which nobody stored"))
    }

    /// The elements whose entries go to a slot.
    fn keys(&self, slot: u64) -> impl Iterator<Item = u64> + Clone {
        let (line, place) = (slot / LINE_ENTRIES, slot % LINE_ENTRIES);
        let (first, step) = if self.padded {
            (line * self.group + place, self.slots / LINE_ENTRIES * self.group)
        } else {
            (slot, self.slots)
        };
        let none = self.padded && place >= self.group;
        (first..if none { 0 } else { self.items }).step_by(step as usize)
    }

    /// Checks that an element that was stored to has its entry in the log, or that a later entry
    /// has replaced it.
    fn check_logged(&self, index: u64, pass: u64, log: &[Slot]) -> Result<(), String> {
        if pass == 0 {
            return Ok(());
        }
        let needed = index + self.items * (pass - 1);
        let (.., slot) = self.place(needed);
        let all = PASSES * self.items;
        let held = match log[slot as usize] {
            Slot::Entry(held) => (held + all - needed) % all < all / 2,
            // In a circular log it may be that of a later entry.
            Slot::Torn => self.slots < self.items || self.padded,
            Slot::Empty => false,
        };
        if held {
            return Ok(());
        }
        Err(format!("element {index} was stored to in pass {pass}, and the log does not say so"))
    }
}

/// The contents of a slot of the log: nothing, an entry by its number, or halves of two entries.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Empty,
    Entry(u64),
    Torn,
}

/// The program of one core.
struct Logger {
    part: Part,
    way: Way,
    fences: bool,
    flushes_array: bool,
    work: u64,
    /// The next entry, counted from 0.
    next: u64,
}

impl Program for Logger {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let group = self.part.group;
        pm.work(GROUP_WORK + self.work * group);
        let mut line = [0; LINE_ENTRIES as usize];
        for place in 0..group {
            let (index, pass, slot) = self.part.place(self.next + place);
            let logged =
                if self.part.undo { self.old(pm, index) } else { self.part.value(index, pass) };
            self.append(pm, slot, index as u32, logged, &mut line);
            if (slot + 1) % LINE_ENTRIES == 0 {
                self.write_line(pm, slot, &mut line);
            }
        }
        let (.., last) = self.part.place(self.next + group - 1);
        if self.part.padded {
            self.write_line(pm, last, &mut line);
        }
        self.flush_log(pm, last);
        if self.fences {
            pm.durable();
        }
        for place in 0..group {
            let (index, pass, _) = self.part.place(self.next + place);
            let value = self.part.value(index, pass);
            pm.store_bytes(self.part.element(index), &value.to_le_bytes());
        }
        if self.flushes_array {
            let (index, ..) = self.part.place(self.next);
            pm.flush_as(self.part.element(index), self.array_flush());
        }
        self.next += group;
        // The empty transaction counts the group.
        pm.tx(|_| Ok(()))
    }
}

impl Logger {
    fn old(&self, pm: &mut Pm<'_>, index: u64) -> u32 {
        let word = pm.load(self.part.element(index & !1));
        (word >> (32 * (index % 2))) as u32
    }

    fn append(&self, pm: &mut Pm<'_>, slot: u64, key: u32, value: u32, line: &mut [u64]) {
        let at = Ptr::to(self.part.log + slot * ENTRY);
        let word = u64::from(key) | u64::from(value) << 32;
        match self.way {
            Way::Cached(_) => {
                pm.store_bytes(at, &key.to_le_bytes());
                pm.store_bytes(at.plus(4), &value.to_le_bytes());
            }
            Way::Word(more) => {
                pm.work(more);
                pm.store_past_caches(at, word);
            }
            Way::Line(_) => {
                // Gathered in a line that the first level holds.
                pm.work(1);
                line[(slot % LINE_ENTRIES) as usize] = word;
            }
        }
    }

    /// Writes the line of a slot, if lines are written.
    fn write_line(&self, pm: &mut Pm<'_>, slot: u64, line: &mut [u64]) {
        let Way::Line(words) = self.way else { return };
        let at = Ptr::to(self.part.log + slot / LINE_ENTRIES * LINE_BYTES);
        for (place, part) in (0..).step_by(words).zip(line.chunks(words)) {
            pm.store_words_past_caches(at.plus(place * ENTRY), part);
        }
        line.fill(0);
    }

    /// Writes back the lines of the group whose last entry is in the slot `last`.
    fn flush_log(&self, pm: &mut Pm<'_>, last: u64) {
        let Way::Cached(Some(how)) = self.way else { return };
        let lines = (self.part.group * ENTRY).div_ceil(LINE_BYTES);
        let last = self.part.log + last / LINE_ENTRIES * LINE_BYTES;
        for line in (0..lines).rev() {
            pm.flush_as(Ptr::to(last - line * LINE_BYTES), how);
        }
    }

    /// Returns the flush of the array: that of the log if it has one, or `clwb`.
    fn array_flush(&self) -> Flush {
        match self.way {
            Way::Cached(Some(how)) => how,
            _ => Flush::WriteBack,
        }
    }
}
