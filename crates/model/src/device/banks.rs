//! Banks with row buffers behind one bus, and how addresses are spread over them.

use crate::calendar::Calendar;
use crate::config::{Config, Scheduling};
use crate::device::bank::{Bank, Served};
use crate::device::share::Share;
use crate::recorder::{Part, Record, Recorder};
use crate::units::{Divisor, Line};
use crate::usage::BankUse;

/// The times of a memory device, in cycles.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    pub hit: u64,
    /// An access that opens a row: reading the cells of a persistent memory, or precharging and
    /// activating a DRAM.
    pub miss: u64,
    /// How long a read of an open row takes its bank, which can answer others meanwhile.
    pub hit_takes: u64,
    /// The same of an access that opens a row.
    pub miss_takes: u64,
    pub write: u64,
    pub burst: u64,
    pub turn_to_read: u64,
    pub turn_to_write: u64,
    pub buffer: u64,
}

/// A bank's read or write, as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The bank's number in its memory.
    pub bank: usize,
    /// Whether the bank's cells are written, and not read.
    pub write: bool,
    /// The first line.
    pub line: Line,
    /// The number of lines from the first to the last: a write from the on-DIMM buffer has several.
    pub lines: u64,
}

/// The times and the effect of a read.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// When the bank begins with the read.
    pub start: u64,
    /// When the last byte has passed the bus.
    pub done: u64,
    /// Whether a row is opened, and cells are read.
    pub opens: bool,
}

/// Banks with row buffers behind one bus.
#[derive(Clone, Debug)]
pub(crate) struct Banks {
    pub timing: Timing,
    /// The bytes that are read when a row is opened: at least a piece, which lies in one bank.
    pub row_bytes: u64,
    /// The length of a piece (consecutive bytes in one bank), the number of banks, and the number
    /// of pieces in a row.
    piece: Divisor,
    count: Divisor,
    pieces: Divisor,
    share: Share,
    /// Whether reads are served as rows are open, and not only in the order in which they come.
    reordered: bool,
    banks: Vec<Bank>,
    /// A copy of each bank's latest busy interval. They lie close together, because the search for
    /// an idle bank looks at many.
    latest: Vec<(u64, u64)>,
    bus: Calendar,
    writing: bool,
    /// When the last byte of the last write in order has passed the bus.
    written: u64,
    /// The record of what the banks did and when, if the run keeps a timeline.
    uses: Option<Box<Recorder<Use>>>,
    /// The number of lines from the first to the last line of a write to the cells.
    pub write_lines: u64,
    /// How busy the banks and the bus are.
    pub counts: BankUse,
}

impl Banks {
    pub fn new(timing: Timing, row_bytes: u64, piece: u64, banks: u64, config: &Config) -> Banks {
        Banks {
            timing,
            row_bytes: row_bytes.max(piece),
            piece: Divisor::new(piece),
            count: Divisor::new(banks),
            pieces: Divisor::new((row_bytes / piece).max(1)),
            share: Share::new(config),
            reordered: config.controller.policy == Scheduling::FrFcfs,
            banks: vec![Bank::default(); banks as usize],
            latest: vec![(0, 0); banks as usize],
            bus: Calendar::default(),
            writing: false,
            written: 0,
            uses: None,
            write_lines: 1,
            counts: BankUse::new(banks as usize),
        }
    }

    /// Returns the bank of an address and the row in it, counting only this controller's addresses.
    pub fn place(&self, address: u64) -> (usize, u64) {
        let (piece, _) = self.piece.divide(self.share.own(address));
        let (turn, bank) = self.count.divide(piece);
        (bank as usize, self.pieces.divide(turn).0)
    }

    /// Reads a line.
    pub fn read(&mut self, at: u64, address: u64, now: u64) -> Read {
        let (place, row) = self.place(address);
        let Timing { hit, miss, hit_takes, miss_takes, .. } = self.timing;
        let bank = &mut self.banks[place];
        let served = bank.read(at, row, (hit_takes, miss_takes), self.reordered, now);
        let Served { start, opens, overtakes } = served;
        let (answers, takes) = if opens { (miss, miss_takes) } else { (hit, hit_takes) };
        self.latest[place] = bank.latest();
        self.counts.busy[place] += takes;
        self.counts.reads += 1;
        self.counts.row_hits += u64::from(!opens);
        // What overtakes others is shown as a moment: it would lie across them, and viewers of
        // traces drop what is neither within another nor beside it.
        let shown = if overtakes { 1 } else { takes };
        self.used(start, start + shown, place, false, address);
        Read { start, done: self.transfer(start + answers, false, now), opens }
    }

    /// Moves a line that is written over the bus, and returns when its last byte has passed. Such
    /// writes pass in the order in which they are sent, even if a later one would fit into a gap,
    /// because the writes of one line must stay in order.
    pub fn transfer_in_order(&mut self, at: u64, now: u64) -> u64 {
        self.written = self.transfer(at.max(self.written), true, now);
        self.written
    }

    /// Moves a line over the bus, and returns when its last byte has passed.
    pub fn transfer(&mut self, at: u64, writing: bool, now: u64) -> u64 {
        let turn = match (self.writing, writing) {
            (true, false) => self.timing.turn_to_read,
            (false, true) => self.timing.turn_to_write,
            _ => 0,
        };
        self.writing = writing;
        let duration = self.timing.burst + turn;
        self.counts.bus += duration;
        self.bus.reserve(at, duration, now) + duration
    }

    /// Whether the row of an address is open when its bank is first idle from `at` on.
    pub fn is_open(&self, at: u64, address: u64) -> bool {
        let (place, row) = self.place(address);
        self.banks[place].is_open(row, self.free_from(place as u32, at))
    }

    /// Takes a bank for a write to the cells; returns the write's start and end.
    pub fn program(&mut self, at: u64, address: u64, duration: u64, now: u64) -> (u64, u64) {
        let (place, row) = self.place(address);
        let bank = &mut self.banks[place];
        let (start, end) = bank.program(at, row, duration, now);
        self.latest[place] = bank.latest();
        self.counts.busy[place] += duration;
        self.used(start, end, place, true, address);
        (start, end)
    }

    /// Records what the banks do from now on.
    pub fn record(&mut self, part: &Part) {
        self.uses.get_or_insert_default().open(part);
    }

    /// Forgets how busy the banks and the bus were.
    pub fn restart_counts(&mut self) {
        self.counts = BankUse::new(self.banks.len());
    }

    /// Returns what was recorded.
    pub fn take_uses(&mut self) -> Record<Use> {
        self.uses.as_mut().map(|uses| uses.take()).unwrap_or_default()
    }

    fn used(&mut self, from: u64, until: u64, bank: usize, write: bool, address: u64) {
        if let Some(uses) = &mut self.uses {
            let lines = if write { self.write_lines } else { 1 };
            uses.record(from, until, Use { bank, write, line: Line::of(address), lines });
        }
    }

    /// Returns when a bank begins with the last write that it was given.
    pub fn begins(&self, bank: u32) -> u64 {
        self.banks[bank as usize].programs_from
    }

    /// Returns the first time at or after `at` at which a bank is idle.
    #[inline]
    pub fn free_from(&self, bank: u32, at: u64) -> u64 {
        let (from, until) = self.latest[bank as usize];
        match at >= from {
            true => at.max(until),
            false => self.banks[bank as usize].free_from(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mapping;

    fn places(mapping: Mapping, change: impl FnOnce(&mut Config)) -> Vec<(usize, u64)> {
        let mut config = Config::default();
        (config.pm.mapping, config.pm.row, config.pm.banks, config.pm.buffer) =
            (mapping, 256, 4, 0);
        change(&mut config);
        let timing = Timing {
            hit: 1,
            hit_takes: 1,
            miss: 1,
            miss_takes: 1,
            write: 1,
            burst: 1,
            turn_to_read: 0,
            turn_to_write: 0,
            buffer: 0,
        };
        let banks = Banks::new(timing, 256, config.pm_piece(), 4, &config);
        (0..24).map(|line| banks.place(line * 64)).collect()
    }

    #[test]
    fn rows_of_banks_come_after_each_other() {
        let places = places(Mapping::Rows, |_| ());
        assert_eq!(places[..5], [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)]);
        assert_eq!((places[15], places[16]), ((3, 0), (0, 1)));
    }

    #[test]
    fn lines_of_banks_come_after_each_other() {
        let places = places(Mapping::Lines, |_| ());
        assert_eq!(places[..5], [(0, 0), (1, 0), (2, 0), (3, 0), (0, 0)]);
        assert_eq!((places[15], places[16]), ((3, 0), (0, 1)));
    }

    /// A device counts only its own controller's addresses, so these go to its banks in turn.
    #[test]
    fn each_controller_uses_all_of_its_banks() {
        let places = places(Mapping::Rows, |config| {
            (config.controller.count, config.controller.interleave) = (2, 256);
        });
        for controller in [0, 4] {
            let own = |piece: usize| places[8 * piece + controller];
            assert_eq!([own(0), own(1), own(2)], [(0, 0), (1, 0), (2, 0)]);
        }
    }

    #[test]
    fn the_bus_turns_to_reads_and_to_writes_in_times_of_their_own() {
        let timing = Timing {
            hit: 1,
            hit_takes: 1,
            miss: 1,
            miss_takes: 1,
            write: 1,
            burst: 2,
            turn_to_read: 70,
            turn_to_write: 30,
            buffer: 0,
        };
        let mut banks = Banks::new(timing, 256, 64, 4, &Config::default());
        let ways = [(false, 2), (true, 32), (true, 2), (false, 72), (false, 2), (true, 32)];
        for ((writing, takes), at) in ways.into_iter().zip((0..).step_by(1_000)) {
            assert_eq!(banks.transfer(at, writing, 0) - at, takes, "at {at}");
        }
    }

    /// A write whose order does not matter fits into a gap before one that was sent earlier, for a
    /// later time.
    #[test]
    fn only_writes_in_order_wait_for_each_other() {
        let timing = Timing {
            hit: 1,
            hit_takes: 1,
            miss: 1,
            miss_takes: 1,
            write: 1,
            burst: 2,
            turn_to_read: 0,
            turn_to_write: 0,
            buffer: 0,
        };
        let mut banks = Banks::new(timing, 256, 64, 4, &Config::default());
        assert_eq!(banks.transfer(1_000, true, 0), 1_002);
        assert_eq!(banks.transfer(10, true, 0), 12);
        assert_eq!(banks.transfer_in_order(2_000, 0), 2_002);
        assert_eq!(banks.transfer_in_order(1_500, 0), 2_004);
        assert_eq!(banks.transfer(1_500, true, 0), 1_502);
    }

    /// The copy of the banks' latest intervals gives the same answers as the calendars.
    #[test]
    fn a_bank_is_free_when_its_calendar_is() {
        let timing = Timing {
            hit: 7,
            hit_takes: 7,
            miss: 60,
            miss_takes: 60,
            write: 300,
            burst: 2,
            turn_to_read: 0,
            turn_to_write: 0,
            buffer: 0,
        };
        let mut banks = Banks::new(timing, 256, 64, 4, &Config::default());
        for turn in 0..2_000 {
            let (now, random) = (turn * 40, crate::units::mix(turn));
            let (at, address) = (now + random % 700, (random >> 32) % 64 * 64);
            match random >> 60 & 1 {
                0 => _ = banks.read(at, address, now),
                _ => _ = banks.program(at, address, 300, now),
            }
            for (bank, at) in (0..4).flat_map(|bank| [0, 90, 700].map(|ahead| (bank, now + ahead)))
            {
                let expected = banks.banks[bank as usize].free_from(at);
                assert_eq!(banks.free_from(bank, at), expected, "turn {turn}");
            }
        }
    }

    #[test]
    fn a_line_of_the_buffer_lies_in_one_bank() {
        for (mapping, row) in [(Mapping::Lines, 256), (Mapping::Rows, 64), (Mapping::Rows, 128)] {
            let places = places(mapping, |config| (config.pm.buffer, config.pm.row) = (64, row));
            assert_eq!(places[..5], [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0)]);
        }
    }
}
