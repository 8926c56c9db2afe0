//! One bank with a row buffer: when it is busy, and which row is open when.

use crate::calendar::Calendar;

/// A bank's busy time and rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Bank {
    calendar: Calendar,
    /// What it does from now on, and what it did last, in the order of time.
    accesses: Vec<Access>,
    /// When the last write to its cells begins.
    pub programs_from: u64,
}

/// A read that opens a row, or a write: when it begins, and when the last of the reads ends that
/// follow in its row.
#[derive(Clone, Copy, Debug)]
struct Access {
    start: u64,
    end: u64,
    row: u64,
}

/// A bank's answer to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// When the bank begins with it.
    pub start: u64,
    /// Whether a row is opened.
    pub opens: bool,
    /// Whether it overtakes others.
    pub overtakes: bool,
}

impl Bank {
    /// Takes the bank for a read that comes at `at`, for the first of two times if its row is open,
    /// and otherwise for the second.
    ///
    /// If reads are `reordered`, one that would have to wait is served as soon as another access
    /// has its row open, as FR-FCFS does with "first ready". What it overtakes keeps the time that
    /// it was told, and the bank makes up for its own behind that (ours).
    pub fn read(
        &mut self,
        at: u64,
        row: u64,
        (hit_takes, miss_takes): (u64, u64),
        reordered: bool,
        now: u64,
    ) -> Served {
        let fits = self.calendar.fits_from(at, hit_takes);
        let open = self.last_of(row, fits);
        let start = match open {
            Some(_) => fits,
            None => self.calendar.fits_from(at, miss_takes),
        };
        if reordered
            && start > at
            && let Some(ready) = self.next_of(row, at)
            && ready.end < start
        {
            let start = ready.end;
            ready.end += hit_takes;
            self.calendar.reserve_in_parts(start, hit_takes, now);
            return Served { start, opens: false, overtakes: true };
        }
        let takes = if open.is_some() { hit_takes } else { miss_takes };
        let end = start + takes;
        self.calendar.reserve(start, takes, now);
        match open {
            Some(last) => self.accesses[last].end = self.accesses[last].end.max(end),
            None => self.note(start, end, row, now),
        }
        Served { start, opens: open.is_none(), overtakes: false }
    }

    /// Takes the bank for a write to its cells; returns the write's start and end.
    pub fn program(&mut self, at: u64, row: u64, duration: u64, now: u64) -> (u64, u64) {
        let (start, end) = self.calendar.reserve_in_parts(at, duration, now);
        self.note(start, end, row, now);
        self.programs_from = start;
        (start, end)
    }

    /// Whether a row is open at `at`.
    #[inline]
    pub fn is_open(&self, row: u64, at: u64) -> bool {
        self.last_of(row, at).is_some()
    }

    /// Returns the last access that has begun by `at`, if it is of the row, which is open then.
    #[inline]
    fn last_of(&self, row: u64, at: u64) -> Option<usize> {
        self.begun(at).checked_sub(1).filter(|&last| self.accesses[last].row == row)
    }

    /// Returns the first time at or after `at` at which the bank is idle.
    pub fn free_from(&self, at: u64) -> u64 {
        self.calendar.free_from(at)
    }

    /// Returns the latest interval in which the bank is busy.
    #[inline]
    pub fn latest(&self) -> (u64, u64) {
        self.calendar.latest()
    }

    /// Returns how many accesses have begun by `at`, of those that are remembered.
    #[inline]
    fn begun(&self, at: u64) -> usize {
        let later = self.accesses.iter().rev().take_while(|access| access.start > at);
        self.accesses.len() - later.count()
    }

    /// Returns the first access of a row that is under way at `at`, or that waits then.
    fn next_of(&mut self, row: u64, at: u64) -> Option<&mut Access> {
        let under_way = self.begun(at).saturating_sub(1);
        let mut next = self.accesses[under_way..].iter_mut();
        next.find(|access| access.row == row && access.end > at)
    }

    /// Remembers an access. Of those that have begun by `now` only the last is of use, whose row is
    /// open.
    #[inline]
    fn note(&mut self, start: u64, end: u64, row: u64, now: u64) {
        let over = self.begun(now);
        if over > 1 {
            self.accesses.drain(..over - 1);
        }
        let place = self.begun(start);
        self.accesses.insert(place, Access { start, end, row });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: (u64, u64) = (10, 50);

    /// Three reads that come in three consecutive cycles, the third of the first one's row, and one
    /// of another row that comes behind them.
    fn reads(reordered: bool) -> [(u64, bool); 4] {
        let mut bank = Bank::default();
        [(1, 0), (2, 1), (3, 0), (4, 2)].map(|(at, row)| read(&mut bank, at, row, reordered))
    }

    /// Reads a row; returns when that begins, and whether it opens the row.
    fn read(bank: &mut Bank, at: u64, row: u64, reordered: bool) -> (u64, bool) {
        let served = bank.read(at, row, TAKES, reordered, at);
        (served.start, served.opens)
    }

    #[test]
    fn a_read_is_served_while_its_row_is_open_for_another() {
        assert_eq!(reads(false), [(1, true), (51, true), (101, true), (151, true)]);
        // The one that is overtaken keeps its time, and the bank has 10 cycles more to do.
        assert_eq!(reads(true), [(1, true), (51, true), (51, false), (111, true)]);
    }

    /// Each waits for the one before it, not only for the one that opens the row.
    #[test]
    fn reads_of_an_open_row_take_turns() {
        for reordered in [false, true] {
            let mut bank = Bank::default();
            let starts = [0; 4].map(|row| read(&mut bank, 0, row, reordered));
            assert_eq!(starts, [(0, true), (50, false), (60, false), (70, false)]);
        }
    }

    #[test]
    fn reads_that_follow_an_access_in_its_row_take_turns() {
        let mut bank = Bank::default();
        read(&mut bank, 0, 0, true);
        read(&mut bank, 0, 1, true);
        let starts = [1, 2, 3].map(|at| read(&mut bank, at, 0, true));
        assert_eq!(starts, [(50, false), (60, false), (70, false)]);
        assert_eq!(bank.free_from(0), 130);
    }

    #[test]
    fn a_row_that_another_access_has_closed_serves_nobody() {
        let mut bank = Bank::default();
        read(&mut bank, 0, 0, true);
        read(&mut bank, 0, 1, true);
        read(&mut bank, 0, 2, true);
        read(&mut bank, 1, 0, true);
        assert_eq!(read(&mut bank, 55, 0, true), (160, true));
        assert_eq!(read(&mut bank, 56, 1, true), (100, false));
    }

    #[test]
    fn a_write_opens_its_row() {
        let mut bank = Bank::default();
        assert_eq!(bank.program(0, 3, 100, 0), (0, 100));
        bank.program(100, 4, 100, 0);
        assert_eq!(read(&mut bank, 20, 3, true), (100, false));
        assert_eq!(read(&mut bank, 20, 3, false), (210, true));
        assert_eq!(bank.programs_from, 100);
    }

    /// A read that is booked ahead opens its row then, and not now.
    #[test]
    fn the_open_row_is_that_of_the_access_before() {
        let mut bank = Bank::default();
        assert_eq!(read(&mut bank, 0, 0, true), (0, true));
        assert_eq!(read(&mut bank, 1_000, 1, true), (1_000, true));
        assert_eq!(read(&mut bank, 100, 0, true), (100, false));
        assert!(bank.is_open(0, 999) && !bank.is_open(1, 999) && bank.is_open(1, 1_000));
        assert_eq!(read(&mut bank, 1_100, 1, true), (1_100, false));
        read(&mut bank, 1_200, 2, true);
        assert_eq!(bank.accesses.len(), 2, "what is over is forgotten");
    }
}
