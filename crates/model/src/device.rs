//! The memories behind a controller: banks, rows, the bus, the on-DIMM buffer and the cells.

use crate::config::{Config, Encoder, Mapping};
use crate::contents::Contents;
use crate::image::apply_masked;
use crate::meters::{Class, Meters};
use crate::units::{LINE_BYTES, Line, LineData, Word};

mod bank;
mod banks;
mod buffer;
mod share;

use banks::{Banks, Timing};

pub use banks::{Read, Use};
use buffer::{Buffer, Held};
use share::Share;

/// Volatile memory. Writes to it are posted: no core waits for them.
#[derive(Clone, Debug)]
pub struct DramDevice {
    /// Its banks.
    pub(crate) banks: Banks,
}

impl DramDevice {
    /// Returns the volatile memory of one controller.
    pub fn new(config: &Config) -> DramDevice {
        let dram = &config.dram;
        let timing = Timing {
            hit: config.cycles(dram.t_hit),
            miss: config.cycles(dram.t_rp + dram.t_rcd + dram.t_hit),
            hit_takes: config.cycles(dram.t_ccd),
            miss_takes: config.cycles(dram.t_rp + dram.t_rcd + dram.t_ccd),
            write: 0,
            burst: config.cycles(dram.t_burst),
            turn_to_read: 0,
            turn_to_write: 0,
            buffer: 0,
        };
        let piece = if dram.mapping == Mapping::Rows { dram.row } else { LINE_BYTES };
        DramDevice { banks: Banks::new(timing, dram.row, piece, dram.banks, config) }
    }

    /// Reads a line.
    pub fn read(&mut self, at: u64, line: Line, now: u64) -> Read {
        self.banks.read(at, line.address(), now)
    }

    /// Writes a line; returns when its bank has it.
    pub fn write(&mut self, at: u64, line: Line, now: u64) -> u64 {
        let burst = self.banks.transfer(at, true, now);
        let Timing { hit_takes, miss_takes, .. } = self.banks.timing;
        let duration =
            if self.banks.is_open(burst, line.address()) { hit_takes } else { miss_takes };
        self.banks.program(burst, line.address(), duration, now).1
    }
}

/// The write that is sent to the device, of those that wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct NextWrite {
    /// Its place among the writes that wait.
    pub index: usize,
    /// When it may go. Before that it would be in the way of reads.
    pub goes: u64,
    /// The line that leaves the on-DIMM buffer for it, if that is known.
    leaving: Option<Leaving>,
}

/// The line that leaves the full on-DIMM buffer, and when it can be written to the cells.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    index: usize,
    idle: u64,
}

/// The device's answer to a write that it took.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// When the controller may forget the write.
    pub free: u64,
    /// When the device can take another write.
    pub next: u64,
    /// When the cells begin with the write and when they hold it, if it went to its bank at once.
    pub programmed: Option<(u64, u64)>,
}

/// The persistent memory of one controller.
pub struct PmDevice {
    /// Its banks.
    pub(crate) banks: Banks,
    buffer: Buffer,
    capacity: u64,
    encoder: Encoder,
    flip_bits: u64,
    energy_read: u64,
    energy_set: u64,
    energy_reset: u64,
    /// The number of writes to each line of cells (a line of the on-DIMM buffer, or a cache line if
    /// there is no buffer).
    wear: Contents,
    /// The memory's counts.
    pub meters: Meters,
    /// What was programmed, so that tests see whether it is what was to be.
    #[cfg(test)]
    pub cells: std::collections::BTreeMap<Line, LineData>,
}

/// The writes that wait in the controller's queue while another is sent.
#[derive(Clone, Copy)]
pub struct Behind<'a> {
    /// Their lines.
    pub lines: &'a [Line],
    /// Returns what the cells hold of a line of which neither the write that is sent nor the
    /// on-DIMM buffer has a byte. No copy of the cells is kept: they hold what is durable, but for
    /// lines with writes that wait, and those know what their lines held before.
    pub cells: &'a dyn Fn(Line) -> LineData,
}

impl PmDevice {
    /// Returns the persistent memory of one controller, all zeros. If it is written `through`,
    /// writes go past the on-DIMM buffer.
    ///
    /// # Errors
    /// When the host has no address space for it.
    pub fn new(config: &Config, through: bool) -> std::io::Result<PmDevice> {
        let pm = &config.pm;
        let timing = Timing {
            hit: config.cycles(pm.t_hit),
            miss: config.cycles(pm.t_read),
            hit_takes: config.cycles(pm.t_ccd),
            miss_takes: config.cycles(pm.t_read),
            write: config.cycles(pm.t_write),
            burst: config.cycles(pm.t_burst),
            turn_to_read: config.cycles(pm.t_wtr),
            turn_to_write: config.cycles(pm.t_rtw),
            buffer: config.cycles(pm.t_buffer),
        };
        let span = if through || pm.buffer == 0 { 1 } else { pm.xpline / LINE_BYTES };
        let mut banks = Banks::new(timing, pm.row, config.pm_piece(), pm.banks, config);
        let capacity = if through { 0 } else { pm.buffer };
        let buffer = Buffer::new(capacity, span, Share::new(config));
        banks.write_lines = buffer.reach();
        Ok(PmDevice {
            banks,
            buffer,
            capacity: pm.capacity,
            encoder: pm.encoder,
            flip_bits: pm.fnw,
            energy_read: pm.e_read,
            energy_set: pm.e_set,
            energy_reset: pm.e_reset,
            wear: Contents::new(0, (pm.capacity / LINE_BYTES).div_ceil(span) * 8)?,
            meters: Meters::default(),
            #[cfg(test)]
            cells: std::collections::BTreeMap::new(),
        })
    }

    /// Counts a write that the controller accepts.
    pub fn count(&mut self, write: &Write) {
        self.meters.wpq_bytes[write.class as usize] += u64::from(write.mask.count_ones());
        self.meters.wpq_writes += 1;
    }

    /// Reads a line.
    pub fn read(&mut self, at: u64, line: Line, now: u64) -> Read {
        self.meters.reads += 1;
        if self.buffer.holds_whole(line) {
            let done = self.banks.transfer(at + self.banks.timing.buffer, false, now);
            return Read { start: at, done, opens: false };
        }
        let read = self.banks.read(at, line.address(), now);
        if read.opens {
            self.meters.energy.read += u128::from(self.banks.row_bytes * 8 * self.energy_read);
        }
        read
    }

    /// Notes that a write of the line waits in the controller's queue from now on.
    #[inline]
    pub fn expect(&mut self, line: Line) {
        if self.buffer.capacity > 0 {
            self.buffer.expect(line);
        }
    }

    /// Chooses the oldest of the writes that wait. An `urgent` write goes before reads that come
    /// later: it goes to its bank although the bank is busy, once the last write there has begun.
    pub fn oldest(&self, at: u64, waiting: &[Line], urgent: bool) -> NextWrite {
        match self.buffer.capacity {
            0 => self.to_bank(at, 0, waiting[0], urgent).0,
            _ => NextWrite { index: 0, goes: at, leaving: None },
        }
    }

    /// Returns the choice of a write that goes directly to its bank, and when the bank would begin
    /// with it.
    fn to_bank(&self, at: u64, index: usize, line: Line, urgent: bool) -> (NextWrite, u64) {
        let bank = self.bank_of(line);
        let starts = self.banks.free_from(bank, at);
        let goes = if urgent { self.banks.begins(bank).max(at) } else { starts };
        (NextWrite { index, goes, leaving: None }, starts)
    }

    /// Chooses the oldest of the waiting writes that could start at `at`, or else the one that
    /// could start first, as FR-FCFS does with "first ready". A write starts when it joins the
    /// on-DIMM buffer, or when the bank that it needs is idle. For `urgent` see
    /// [`PmDevice::oldest`].
    pub fn first_ready(&self, at: u64, waiting: &[Line], urgent: bool) -> NextWrite {
        if self.buffer.capacity == 0 {
            let mut first = self.to_bank(at, 0, waiting[0], urgent);
            for (index, &line) in waiting.iter().enumerate().skip(1) {
                if first.1 == at {
                    break;
                }
                let other = self.to_bank(at, index, line, urgent);
                if (other.0.goes, other.1) < (first.0.goes, first.1) {
                    first = other;
                }
            }
            return first.0;
        }
        // The line that leaves the buffer matters only if some write joins a line that is in it,
        // and so needs none to leave.
        if !self.buffer.is_full() || self.buffer.joining == 0 {
            return self.oldest(at, waiting, urgent);
        }
        let leaving = self.victim(at);
        let joins = |&line: &Line| self.buffer.find(line).is_some();
        let index = match leaving.idle {
            idle if idle == at => 0,
            _ => waiting.iter().position(joins).expect("a line that joins is among them"),
        };
        NextWrite { index, goes: at, leaving: Some(leaving) }
    }

    fn bank_of(&self, line: Line) -> u32 {
        self.banks.place(line.address()).0 as u32
    }

    /// Returns the line that leaves the full on-DIMM buffer: of the older half, the least recent
    /// line whose bank is idle, or else the one whose bank is idle first.
    fn victim(&self, at: u64) -> Leaving {
        let mut first = Leaving { index: 0, idle: u64::MAX };
        for (index, bank) in self.buffer.older() {
            let idle = self.banks.free_from(bank, at);
            if idle < first.idle {
                first = Leaving { index, idle };
                if idle == at {
                    break;
                }
            }
        }
        first
    }

    /// Writes the bytes of a line that the mask selects. The write was expected
    /// ([`PmDevice::expect`]) and just chosen; `before` is what the line holds without it, once the
    /// writes that were sent before are in the cells.
    pub fn write(
        &mut self,
        at: u64,
        (write, before): (&Write, &LineData),
        choice: NextWrite,
        behind: Behind<'_>,
        now: u64,
    ) -> Taken {
        let &Write { line, ref data, mask, class } = write;
        let arrived = self.banks.transfer_in_order(at, now);
        if self.buffer.capacity == 0 {
            let held = Held { line, mask, data: *data, before: *before, class };
            let programmed = self.program(arrived, &[held], behind.cells, now);
            return Taken { free: programmed.1, next: arrived, programmed: Some(programmed) };
        }
        let mut taken = arrived;
        match self.buffer.take_expected(line) {
            Some(index) => self.buffer.touch(index),
            None => {
                let mut out = None;
                if self.buffer.is_full() {
                    // A bank that was going to be busy until `idle` still is.
                    let known = choice.leaving.filter(|leaving| arrived <= leaving.idle);
                    let victim = known.unwrap_or_else(|| self.victim(arrived));
                    let place = self.buffer.place_at(victim.index);
                    taken = taken.max(self.program_buffered(place, arrived, behind.cells, now));
                    out = Some(victim.index);
                }
                let bank = self.bank_of(line);
                self.buffer.insert(line, bank, out, behind.lines);
            }
        }
        self.wear.prefetch(Word(self.buffer.number_of(line)).line());
        self.buffer.merge(write, before);
        Taken { free: taken, next: taken, programmed: None }
    }

    /// Writes the line in a place of the on-DIMM buffer to the cells; returns when that starts.
    fn program_buffered(
        &mut self,
        place: usize,
        at: u64,
        cells: &dyn Fn(Line) -> LineData,
        now: u64,
    ) -> u64 {
        let held = std::mem::take(&mut self.buffer.held[place]);
        let (start, _) = self.program(at, &held, cells, now);
        self.buffer.held[place] = held;
        start
    }

    /// Writes all lines of the on-DIMM buffer to the cells, the least recent first, so that they
    /// are counted. For `cells` see [`Behind`].
    pub fn settle(&mut self, cells: &dyn Fn(Line) -> LineData, now: u64) {
        while let Some(place) = self.buffer.pop() {
            self.program_buffered(place, now, cells, now);
        }
        self.buffer.clear();
    }

    /// Writes lines to the cells: only the bits that differ, if the encoder compares bits. A write
    /// that does not cover its line, or whose bits are compared, reads the line first, from the row
    /// buffer if its row is open. A write that changes no bit writes no cells. Returns the write's
    /// start and end.
    fn program(
        &mut self,
        at: u64,
        held: &[Held],
        cells: &dyn Fn(Line) -> LineData,
        now: u64,
    ) -> (u64, u64) {
        let partial = held.iter().any(|held| held.mask != u64::MAX);
        let bits = self.meters.media_bits_total();
        for held in held {
            if held.mask != 0 {
                self.program_line(held);
            } else if self.encoder == Encoder::None && held.line.address() < self.capacity {
                // Where bits are compared, a line with an empty mask does not differ. Without that,
                // it is written whole, unless it lies beyond the memory, in the last line of the
                // buffer.
                self.program_line(&Held { before: cells(held.line), ..*held });
            }
        }
        self.meters.media_fill_reads += u64::from(partial);
        let is_read = partial || self.encoder != Encoder::None;
        let first = held[0].line;
        let opens = !self.banks.is_open(at, first.address());
        let mut duration = match (is_read, opens) {
            (false, _) => 0,
            (true, true) => self.banks.timing.miss,
            (true, false) => self.banks.timing.hit,
        };
        let bytes = held.len() as u64 * LINE_BYTES;
        let row = self.banks.row_bytes;
        // A row is read to be opened, unless all of it is written.
        if opens && (is_read || bytes < row) {
            self.meters.energy.read += u128::from(row * 8 * self.energy_read);
        }
        if self.meters.media_bits_total() > bits {
            duration += self.banks.timing.write;
            self.meters.media_lines += 1;
            let line = Word(self.buffer.number_of(first));
            let wear = self.wear.word(line) + 1;
            self.wear.set_word(line, wear);
            self.meters.wear_max = self.meters.wear_max.max(wear);
        }
        self.banks.program(at, first.address(), duration.max(1), now)
    }

    fn program_line(&mut self, held: &Held) {
        let (mask, mut after) = (held.mask, held.before);
        apply_masked(&mut after, &held.data, mask);
        let (was, is) = (held.before.as_chunks::<8>().0, after.as_chunks::<8>().0);
        let word = |index: usize| (u64::from_le_bytes(was[index]), u64::from_le_bytes(is[index]));
        // Most lines are written whole. The host does a loop without conditions several words at a
        // time.
        let whole = (0..8).map(word);
        let (set, reset) = match self.encoder {
            Encoder::None => total(whole.map(|(_, new)| (new.count_ones(), new.count_zeros()))),
            Encoder::Dcw if mask == u64::MAX => total(whole.map(compared)),
            Encoder::Dcw => total(words_of(mask).map(word).map(compared)),
            Encoder::Fnw => {
                total(words_of(mask).map(word).map(|words| flip_n_write(words, self.flip_bits)))
            }
        };
        self.meters.media_bits[held.class as usize] += set + reset;
        self.meters.energy.set += u128::from(set * self.energy_set);
        self.meters.energy.reset += u128::from(reset * self.energy_reset);
        #[cfg(test)]
        self.check_cells(held, after);
    }

    /// Checks that a line is taken to hold what was programmed last.
    #[cfg(test)]
    fn check_cells(&mut self, held: &Held, after: LineData) {
        let was = self.cells.insert(held.line, after).unwrap_or([0; LINE_BYTES as usize]);
        assert_eq!(held.before, was, "what the cells held of {:?}", held.line);
    }
}

/// Returns the places of the words of a line in which a mask selects bytes.
fn words_of(mask: u64) -> impl Iterator<Item = usize> {
    let after = |left: &u64| {
        let first = left.trailing_zeros() / 8 * 8;
        Some(left & !(0xff << first)).filter(|&left| left != 0)
    };
    let first = Some(mask).filter(|&mask| mask != 0);
    std::iter::successors(first, after).map(|left| (left.trailing_zeros() / 8) as usize)
}

/// Returns the sums of the bits set and reset over all words.
fn total(words: impl Iterator<Item = (u32, u32)>) -> (u64, u64) {
    let sum = words.fold((0, 0), |(set, reset), (ones, zeros)| (set + ones, reset + zeros));
    (u64::from(sum.0), u64::from(sum.1))
}

/// Returns the bits set and reset when only the bits that differ are written.
fn compared((old, new): (u64, u64)) -> (u32, u32) {
    ((new & !old).count_ones(), (old & !new).count_ones())
}

/// Returns the bits set and reset when each group of `group` bits is written as it is or inverted,
/// whichever changes fewer cells, the flip bit's cell included (Cho and Lee, MICRO 2009). The flip
/// bit is taken to be clear before the write. If it were set, the cells would hold the complement:
/// the same cells would change, but those set here would be reset, and those reset here set.
fn flip_n_write((old, new): (u64, u64), group: u64) -> (u32, u32) {
    let (mut set, mut reset) = (0, 0);
    let ones = if group == 64 { u64::MAX } else { (1 << group) - 1 };
    for first in (0..64).step_by(group as usize) {
        let (old, new) = (old >> first & ones, new >> first & ones);
        let changed = (old ^ new).count_ones();
        let inverted = !new & ones;
        if u64::from(changed) > group / 2 {
            set += (inverted & !old).count_ones() + 1;
            reset += (old & !inverted).count_ones();
        } else {
            set += (new & !old).count_ones();
            reset += (old & !new).count_ones();
        }
    }
    (set, reset)
}

/// A write on its way to persistent memory: the bytes of a line that `mask` selects.
#[derive(Clone, Debug)]
pub struct Write {
    /// The line.
    pub line: Line,
    /// The line's bytes. Those that the mask does not select mean nothing.
    pub data: LineData,
    /// The bytes that are written, one bit each.
    pub mask: u64,
    /// The reason for the write.
    pub class: Class,
}

impl Write {
    /// Returns a write of a whole line.
    #[inline]
    pub fn whole(line: Line, data: LineData, class: Class) -> Write {
        Write { line, data, mask: u64::MAX, class }
    }
}

#[cfg(test)]
mod tests;
