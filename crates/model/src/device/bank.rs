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

impl Bank {
    /// Takes the bank for a read that comes at `at`, for the first of two times if its row is open,
    /// and otherwise for the second. Returns when the bank begins with it, and whether that opens
    /// the row.
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
    ) -> (u64, bool) {
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
            return (start, false);
        }
        if let Some(last) = open {
            let end = &mut self.accesses[last].end;
            *end = (*end).max(start + hit_takes);
            self.calendar.reserve(start, hit_takes, now);
        } else {
            self.calendar.reserve(start, miss_takes, now);
            self.note(start, start + miss_takes, row, now);
        }
        (start, open.is_none())
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
        [0, 1, 0, 2].map({
            let mut at = 0;
            move |row| {
                at += 1;
                bank.read(at, row, TAKES, reordered, 0)
            }
        })
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
            let starts = [0; 4].map(|row| bank.read(0, row, TAKES, reordered, 0));
            assert_eq!(starts, [(0, true), (50, false), (60, false), (70, false)]);
        }
    }

    #[test]
    fn reads_that_follow_an_access_in_its_row_take_turns() {
        let mut bank = Bank::default();
        bank.read(0, 0, TAKES, true, 0);
        bank.read(0, 1, TAKES, true, 0);
        let starts = [1, 2, 3].map(|at| bank.read(at, 0, TAKES, true, 0));
        assert_eq!(starts, [(50, false), (60, false), (70, false)]);
        assert_eq!(bank.free_from(0), 130);
    }

    #[test]
    fn a_row_that_another_access_has_closed_serves_nobody() {
        let mut bank = Bank::default();
        bank.read(0, 0, TAKES, true, 0);
        bank.read(0, 1, TAKES, true, 0);
        bank.read(0, 2, TAKES, true, 0);
        bank.read(1, 0, TAKES, true, 0);
        assert_eq!(bank.read(55, 0, TAKES, true, 55), (160, true));
        assert_eq!(bank.read(56, 1, TAKES, true, 56), (100, false));
    }

    #[test]
    fn a_write_opens_its_row() {
        let mut bank = Bank::default();
        assert_eq!(bank.program(0, 3, 100, 0), (0, 100));
        bank.program(100, 4, 100, 0);
        assert_eq!(bank.read(20, 3, TAKES, true, 0), (100, false));
        assert_eq!(bank.read(20, 3, TAKES, false, 0), (210, true));
        assert_eq!(bank.programs_from, 100);
    }

    /// A read that is booked ahead opens its row then, and not now.
    #[test]
    fn the_open_row_is_that_of_the_access_before() {
        let mut bank = Bank::default();
        assert_eq!(bank.read(0, 0, TAKES, true, 0), (0, true));
        assert_eq!(bank.read(1_000, 1, TAKES, true, 0), (1_000, true));
        assert_eq!(bank.read(100, 0, TAKES, true, 0), (100, false));
        assert!(bank.is_open(0, 999) && !bank.is_open(1, 999) && bank.is_open(1, 1_000));
        assert_eq!(bank.read(1_100, 1, TAKES, true, 1_100), (1_100, false));
        bank.read(1_200, 2, TAKES, true, 1_200);
        assert_eq!(bank.accesses.len(), 2, "what is over is forgotten");
    }
}
