//! The areas for LAD's queues at a power failure, the undo areas, and recovery.
//!
//! ```text
//! of each controller  line 0: entries (word 0), armed (word 7, of controller 0 only)
//!                     numbers of the last committed transactions, 2 bytes a thread
//!                     valid bits of its undo entries
//!                     queue entries of 72 bytes: tag (line 40 bits, thread 8, number 16), data 64
//! undo areas          lines of each controller's own memory; an undo entry is two of them:
//!                     the old data; tag, sequence
//! ```
//!
//! ADR's energy alone writes the first part, the armed word last; without that word there is
//! nothing to recover. Recovery clears it with its last write.

use model::design::{Gasp, Setup, Shape};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, LINE_BYTES, Line, LineData, PerCore, WORD_BYTES, Word, bits};

use super::{Entry, Lad, LadParams};

/// Threads that a controller records (the paper: up to 256).
pub const THREADS: u64 = 256;
const NUMBER_BYTES: u64 = 2;
const ENTRY_BYTES: u64 = WORD_BYTES + LINE_BYTES;
const ARMED: u64 = 56;

/// The layout of LAD's part of memory.
#[derive(Clone, Debug)]
pub struct Region {
    base: u64,
    /// Bytes that one controller's queue takes at a power failure.
    saved_bytes: u64,
    undo_base: u64,
    end: u64,
    slots: u64,
    /// Undo entries that the parameter asks for.
    asked: u64,
    controllers: u64,
    interleave: u64,
}

impl Region {
    /// The region of a machine: the log areas of all cores together.
    pub fn new(shape: &Shape, params: &LadParams) -> Region {
        let controllers = u64::from(shape.controllers);
        let interleave =
            if controllers == 1 { LINE_BYTES } else { shape.config.controller.interleave };
        let end = shape.log_base + shape.log_bytes * u64::from(shape.cores);
        let entries = ENTRY_BYTES * (shape.config.controller.wpq + 1);
        let saved = |slots: u64| {
            let bytes = LINE_BYTES + THREADS * NUMBER_BYTES + slots.div_ceil(8) + entries;
            bytes.next_multiple_of(LINE_BYTES)
        };
        // Valid bits are reserved for all undo entries that the parameter asks for, even without
        // room.
        let saved_bytes = saved(params.undo_entries);
        let stripe = interleave * controllers;
        let undo_base = (shape.log_base + saved_bytes * controllers).next_multiple_of(stripe);
        let lines = end.saturating_sub(undo_base) / stripe * (interleave / LINE_BYTES);
        let asked = params.undo_entries;
        let (base, slots) = (shape.log_base, asked.min(lines / 2));
        Region { base, saved_bytes, undo_base, end, slots, asked, controllers, interleave }
    }

    /// How many undo entries a controller has.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// The option that gives a controller more undo entries: a controller has as many as the
    /// parameter says, or as fit the log areas.
    pub fn more_room(&self) -> &'static str {
        if self.slots < self.asked {
            "--set pm.log_size=..."
        } else {
            "--set design.undo_entries=..."
        }
    }

    /// Bytes of the whole region.
    pub fn bytes(&self) -> u64 {
        self.end - self.base
    }

    /// Whether the region has room for what a power failure saves.
    pub fn fits(&self) -> bool {
        self.base + self.bytes_saved() <= self.end
    }

    /// How many bytes a power failure saves.
    pub fn bytes_saved(&self) -> u64 {
        self.saved_bytes * self.controllers
    }

    fn saved(&self, controller: u8) -> u64 {
        self.base + self.saved_bytes * u64::from(controller)
    }

    fn numbers(&self, controller: u8) -> u64 {
        self.saved(controller) + LINE_BYTES
    }

    fn valid(&self, controller: u8) -> u64 {
        self.numbers(controller) + THREADS * NUMBER_BYTES
    }

    fn entry(&self, controller: u8, index: u64) -> u64 {
        self.valid(controller) + self.slots.div_ceil(8) + ENTRY_BYTES * index
    }

    /// A line of a controller's own memory: the `index`-th of its undo area.
    fn undo_line(&self, controller: usize, index: u64) -> Line {
        let in_stripe = self.interleave / LINE_BYTES;
        let stripe = index / in_stripe * self.controllers + controller as u64;
        Line::of(self.undo_base + stripe * self.interleave + index % in_stripe * LINE_BYTES)
    }

    /// The two writes of an undo entry: the old data, and the header that names the transaction.
    pub fn undo(
        &self,
        controller: usize,
        slot: u32,
        old: &LineData,
        entry: &Entry,
        sequence: u64,
    ) -> [Write; 2] {
        let line = |part| self.undo_line(controller, 2 * u64::from(slot) + part);
        let mut header = [0; LINE_BYTES as usize];
        header[..8].copy_from_slice(&tag(entry).to_le_bytes());
        header[8..16].copy_from_slice(&sequence.to_le_bytes());
        let (class, mask) = (Class::Log, u64::MAX);
        [
            Write { line: line(0), data: *old, mask, class },
            Write { line: line(1), data: header, mask: 0xffff, class },
        ]
    }

    /// Saves a controller's queue.
    pub fn save<'e>(
        &self,
        controller: u8,
        recorded: &PerCore<u16>,
        valid: &[u8],
        entries: impl Iterator<Item = &'e Entry>,
        gasp: &mut Gasp<'_, '_>,
    ) -> Result<(), PowerLoss> {
        let mut count = 0;
        for entry in entries {
            let mut bytes = [0; ENTRY_BYTES as usize];
            bytes[..8].copy_from_slice(&tag(entry).to_le_bytes());
            bytes[8..].copy_from_slice(&entry.data);
            gasp.save(self.entry(controller, count), &bytes)?;
            count += 1;
        }
        let numbers: Vec<u8> =
            recorded.iter().flat_map(|(_, serial)| serial.to_le_bytes()).collect();
        gasp.save(self.numbers(controller), &numbers)?;
        gasp.save(self.valid(controller), valid)?;
        gasp.save_words(self.saved(controller), &[count])
    }

    /// Sets the armed word, which says that everything is saved.
    pub fn arm(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        gasp.save_words(self.saved(0) + ARMED, &[1])
    }
}

fn tag(entry: &Entry) -> u64 {
    entry.line.0 | u64::from(entry.core.0) << 40 | u64::from(entry.serial) << 48
}

/// A line of a transaction as it was saved, with its transaction and its controller.
struct Saved {
    line: Line,
    core: CoreId,
    serial: u16,
    controller: usize,
    data: LineData,
    /// The sequence number of an undo entry; 0 for a queue entry.
    sequence: u64,
}

impl Saved {
    fn of(tag: u64, controller: u8, data: LineData, sequence: u64) -> Saved {
        Saved {
            line: Line(tag & ((1 << 40) - 1)),
            core: CoreId((tag >> 40) as u8),
            serial: (tag >> 48) as u16,
            controller: usize::from(controller),
            data,
            sequence,
        }
    }
}

/// Revokes what uncommitted transactions wrote in place, and writes the entries of committed ones.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, Lad>) -> Result<(), PowerLoss> {
    let region = Region::new(setup.shape, setup.params);
    let armed = Word::of(region.saved(0) + ARMED);
    if image.word(armed) == 0 {
        return Ok(());
    }
    let (mut entries, mut undo) = (Vec::new(), Vec::new());
    let mut recorded: Vec<PerCore<u16>> = Vec::new();
    for controller in 0..setup.shape.controllers {
        recorded.push(PerCore::new(setup.shape.cores, |core| {
            let at = region.numbers(controller) + NUMBER_BYTES * u64::from(core.0);
            u16::from_le_bytes(image.bytes(at))
        }));
        for index in 0..image.word(Word::of(region.saved(controller))) {
            let at = region.entry(controller, index);
            let tag = u64::from_le_bytes(image.bytes(at));
            entries.push(Saved::of(tag, controller, image.bytes(at + WORD_BYTES), 0));
        }
        let valid = |part: u64| {
            let [valid] = image.bytes(region.valid(controller) + part);
            bits(valid.into()).map(move |bit| 8 * part + bit)
        };
        let slots = (0..region.slots.div_ceil(8)).flat_map(valid);
        for slot in slots.filter(|slot| *slot < region.slots) {
            let [data, header] =
                [0, 1].map(|part| region.undo_line(usize::from(controller), 2 * slot + part));
            let [tag, sequence] = [0, 1].map(|word| image.word(Word(header.first_word().0 + word)));
            undo.push(Saved::of(tag, controller, *image.line(data), sequence));
        }
    }
    let verdict = Verdict { recorded, setup };
    undo.sort_by_key(|entry| entry.sequence);
    if setup.rules.undo_youngest_first {
        undo.reverse();
    }
    undo.retain(|entry| !verdict.has_committed(entry) || !setup.rules.undo_uncommitted_only);
    entries.retain(|entry| verdict.is_kept(entry));
    for entry in undo.iter().chain(&entries) {
        image.set_line(entry.line, &entry.data, u64::MAX)?;
    }
    if setup.rules.fence_before_log_is_dropped {
        image.fence();
    }
    image.set_word(armed, 0)
}

/// Which transactions committed.
struct Verdict<'a> {
    recorded: Vec<PerCore<u16>>,
    setup: &'a Setup<'a, Lad>,
}

impl Verdict<'_> {
    fn has_committed(&self, entry: &Saved) -> bool {
        let Setup { params, rules, .. } = self.setup;
        let is_younger = |serial, than| params.is_younger(serial, than, rules);
        let mut last = self.recorded[entry.controller][entry.core];
        if rules.maximum_over_controllers {
            for recorded in self.recorded.iter().map(|recorded| recorded[entry.core]) {
                last = if is_younger(recorded, last) { recorded } else { last };
            }
        }
        !is_younger(entry.serial, last)
    }

    /// Whether recovery writes a queue entry. Every saved entry is still marked as speculative,
    /// since an entry becomes an ordinary write when the commit arrives.
    fn is_kept(&self, entry: &Saved) -> bool {
        let rules = &self.setup.rules;
        rules.ignore_speculative_bit && (self.has_committed(entry) || !rules.discard_uncommitted)
    }
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::memory::Memory;

    use super::*;

    fn region(controllers: u64, interleave: u64) -> (Region, Memory<()>) {
        let mut config = Config::default();
        (config.pm.capacity, config.pm.log) = (8 << 20, 64 << 10);
        (config.controller.count, config.controller.interleave) = (controllers, interleave);
        let memory = Memory::new(&config).expect("room");
        (Region::new(&Shape::new(&config, 4), &LadParams::default()), memory)
    }

    #[test]
    fn an_undo_area_lies_in_the_memory_of_its_controller() {
        for (controllers, interleave) in [(1, 4096), (2, 64), (3, 4096), (4, 256)] {
            let (region, memory) = region(controllers, interleave);
            assert!(region.fits() && region.slots > 0);
            let mut lines = Vec::new();
            for controller in 0..controllers as usize {
                for index in 0..2 * region.slots {
                    let line = region.undo_line(controller, index);
                    assert_eq!(memory.controller_of(line), controller);
                    let (first, last) = (line.address(), line.address() + LINE_BYTES);
                    assert!(region.undo_base <= first && last <= region.end);
                    lines.push(line);
                }
            }
            let all = lines.len();
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len(), all, "no line is used twice");
        }
    }

    #[test]
    fn a_tag_says_whose_a_line_is() {
        let (line, core, serial) = (Line((1 << 38) - 1), CoreId(63), u16::MAX);
        let entry = Entry { line, core, serial, data: [0; 64] };
        let saved = Saved::of(tag(&entry), 0, entry.data, 0);
        assert_eq!((saved.line, saved.core, saved.serial), (line, core, serial));
    }
}
