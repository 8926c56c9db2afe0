//! Epochs: what software's ordering points cut a run into, and how they are counted.
//!
//! An **ordering point** is a fence that a core executes, of a program or of the software library
//! below it: an order or a durability fence (`sfence`, `ofence`, `dfence`), also where the hardware
//! makes it free. A flush is none, and neither is a lock. An **epoch** is what one core stores to
//! persistent memory between two of them, its log included; where it stored nothing there is none.
//! Under a hardware design only a program's own ordering points count, of which most have none.
//!
//! An epoch is a *singleton* if it stores to one line. It *depends* on the epoch that ended last of
//! those that stored to one of its lines, if that was at most [`WINDOW_PS`] before its own end. If
//! it has several lines, it may depend on epochs of its own core and of others. That is what
//! WHISPER reports of its applications (ASPLOS 2017, abstract), and how its analysis counts
//! (github.com/snalli/eliza, cross_thd_dep_memopt.py, where 50 us are the window preferred).
//! Dependences through loads are not counted.
//!
//! `pm_stores` and `dram_stores` are stores that cores execute here. A program has nothing but its
//! locks in volatile memory here, so their ratio is not WHISPER's share of writes that go to
//! persistent memory, which counts stacks and heaps.

use crate::units::{CoreId, Cycle, Line, LineMap, LineSet, PerCore};

/// How long an epoch can be depended on, in picoseconds: 50 microseconds.
pub const WINDOW_PS: u64 = 50_000_000;

/// How many lines are remembered, at least, before those that are too old are forgotten.
const REMEMBERED: usize = 1 << 14;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Ordering points.
    pub ordering_points: u64,
    /// Epochs that an ordering point ended.
    pub epochs: u64,
    /// Lines that epochs stored to, over all epochs.
    pub lines: u64,
    /// Epochs that stored to one line.
    pub singletons: u64,
    /// Epochs that depend on an earlier one of their core.
    pub self_dependent: u64,
    /// Epochs that depend on one of another core.
    pub cross_dependent: u64,
    /// Stores to persistent memory.
    pub pm_stores: u64,
    /// Stores to volatile memory.
    pub dram_stores: u64,
}

/// The epochs of a run.
#[derive(Clone, Debug)]
pub struct Epochs {
    window_cycles: u64,
    /// The lines of each core's present epoch.
    lines: PerCore<LineSet>,
    /// The core and the end of the epoch that ended last of those that stored to each line.
    ended: LineMap<(CoreId, Cycle)>,
    /// How many lines `ended` may have before those that are too old are forgotten.
    ended_max: usize,
    totals: Totals,
}

impl Epochs {
    /// Begins to count on a machine with `cores` cores.
    pub fn new(cores: u8, window_cycles: u64) -> Epochs {
        let lines = PerCore::new(cores, |_| LineSet::default());
        let (ended, ended_max) = (LineMap::default(), REMEMBERED);
        Epochs { window_cycles, lines, ended, ended_max, totals: Totals::default() }
    }

    /// Counts a core's store to a line.
    pub fn store(&mut self, core: CoreId, line: Line) {
        if !line.is_persistent() {
            self.totals.dram_stores += 1;
            return;
        }
        self.totals.pm_stores += 1;
        self.lines[core].insert(line);
    }

    /// Counts an ordering point that a core executes, and the epoch that it ends.
    pub fn order(&mut self, core: CoreId, at: Cycle) {
        self.totals.ordering_points += 1;
        let lines = self.lines[core].len() as u64;
        if lines == 0 {
            return;
        }
        self.forget(at);
        let window = self.window_cycles;
        let (mut on_itself, mut on_others) = (false, false);
        for line in self.lines[core].drain() {
            let before = self.ended.insert(line, (core, at));
            match before.filter(|&(_, then)| then + window >= at) {
                Some((whose, _)) if whose == core => on_itself = true,
                Some(_) => on_others = true,
                None => (),
            }
        }
        self.totals.epochs += 1;
        self.totals.lines += lines;
        self.totals.singletons += u64::from(lines == 1);
        self.totals.self_dependent += u64::from(on_itself);
        self.totals.cross_dependent += u64::from(on_others);
    }

    /// Forgets the epochs that ended too long ago, once there are many.
    fn forget(&mut self, at: Cycle) {
        if self.ended.len() >= self.ended_max {
            let window = self.window_cycles;
            self.ended.retain(|_, (_, then)| *then + window >= at);
            // Twice what is left, so that a line is looked at a few times at most.
            self.ended_max = REMEMBERED.max(2 * self.ended.len());
        }
    }

    /// Begins to count anew. What was stored stays known, so that later epochs can depend on it.
    pub fn restart(&mut self) {
        self.totals = Totals::default();
    }

    /// What was counted.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::DRAM_BASE;

    const WINDOW: u64 = 100;
    const HERE: CoreId = CoreId(0);
    const THERE: CoreId = CoreId(1);

    /// Has a core store to lines in one epoch, and execute the fence at `at`.
    fn epoch(epochs: &mut Epochs, core: CoreId, at: u64, lines: &[u64]) {
        for &line in lines {
            epochs.store(core, Line(line));
        }
        epochs.order(core, Cycle(at));
    }

    fn counted(epochs: &Epochs) -> [u64; 5] {
        let totals = epochs.totals();
        [
            totals.ordering_points,
            totals.epochs,
            totals.singletons,
            totals.self_dependent,
            totals.cross_dependent,
        ]
    }

    #[test]
    fn an_ordering_point_without_stores_ends_no_epoch() {
        let mut epochs = Epochs::new(1, WINDOW);
        epochs.order(HERE, Cycle(0));
        epoch(&mut epochs, HERE, 0, &[1]);
        epochs.order(HERE, Cycle(1));
        assert_eq!(counted(&epochs), [3, 1, 1, 0, 0]);
    }

    #[test]
    fn a_line_counts_once_in_an_epoch_and_does_not_make_it_depend_on_itself() {
        let mut epochs = Epochs::new(1, WINDOW);
        epoch(&mut epochs, HERE, 0, &[1, 1, 1]);
        epoch(&mut epochs, HERE, 10, &[2, 3, 2]);
        assert_eq!(counted(&epochs), [2, 2, 1, 0, 0]);
        assert_eq!((epochs.totals().lines, epochs.totals().pm_stores), (3, 6));
    }

    #[test]
    fn an_epoch_depends_on_its_own_core_on_another_or_on_both() {
        let mut epochs = Epochs::new(2, WINDOW);
        epoch(&mut epochs, HERE, 0, &[1, 2]);
        epoch(&mut epochs, HERE, 10, &[2, 3]);
        assert_eq!(counted(&epochs), [2, 2, 0, 1, 0]);
        epoch(&mut epochs, THERE, 20, &[3]);
        assert_eq!(counted(&epochs), [3, 3, 1, 1, 1]);
        // The core that stored to a line last is the one that counts.
        epoch(&mut epochs, HERE, 30, &[3]);
        assert_eq!(counted(&epochs), [4, 4, 2, 1, 2]);
        epoch(&mut epochs, HERE, 40, &[3]);
        assert_eq!(counted(&epochs), [5, 5, 3, 2, 2]);
        epoch(&mut epochs, THERE, 50, &[4]);
        epoch(&mut epochs, HERE, 60, &[3, 4]);
        assert_eq!(counted(&epochs), [7, 7, 4, 3, 3]);
    }

    #[test]
    fn an_epoch_that_still_goes_on_is_not_depended_on() {
        let mut epochs = Epochs::new(2, WINDOW);
        epochs.store(HERE, Line(1));
        epoch(&mut epochs, THERE, 5, &[1]);
        assert_eq!(counted(&epochs), [1, 1, 1, 0, 0]);
        epochs.order(HERE, Cycle(6));
        assert_eq!(counted(&epochs), [2, 2, 2, 0, 1]);
    }

    #[test]
    fn the_window_ends() {
        for (later, depends) in [(WINDOW, 1), (WINDOW + 1, 0)] {
            let mut epochs = Epochs::new(1, WINDOW);
            epoch(&mut epochs, HERE, 0, &[1]);
            epoch(&mut epochs, HERE, later, &[1]);
            assert_eq!(epochs.totals().self_dependent, depends, "{later} cycles later");
        }
        // The last epoch counts, not the first.
        let mut epochs = Epochs::new(1, WINDOW);
        for at in [0, WINDOW, WINDOW + 50] {
            epoch(&mut epochs, HERE, at, &[1]);
        }
        assert_eq!(epochs.totals().self_dependent, 2);
    }

    #[test]
    fn what_is_forgotten_is_too_old_to_matter() {
        let mut epochs = Epochs::new(1, WINDOW);
        for step in 0..4 * REMEMBERED as u64 {
            epoch(&mut epochs, HERE, 10 * step, &[step, step.saturating_sub(9)]);
            assert!(epochs.ended.len() <= REMEMBERED + 2);
        }
        // Every epoch but the first depends on the one that stored its second line, at most 90
        // cycles ago.
        assert_eq!(epochs.totals().self_dependent, 4 * REMEMBERED as u64 - 1);
    }

    #[test]
    fn volatile_stores_are_counted_apart() {
        let mut epochs = Epochs::new(1, WINDOW);
        epochs.store(HERE, Line::of(DRAM_BASE));
        epochs.order(HERE, Cycle(0));
        assert_eq!(counted(&epochs), [1, 0, 0, 0, 0]);
        assert_eq!((epochs.totals().pm_stores, epochs.totals().dram_stores), (0, 1));
    }

    #[test]
    fn after_a_restart_the_past_is_still_depended_on() {
        let mut epochs = Epochs::new(1, WINDOW);
        epoch(&mut epochs, HERE, 0, &[1]);
        epochs.restart();
        epoch(&mut epochs, HERE, 10, &[1]);
        assert_eq!(counted(&epochs), [1, 1, 1, 1, 0]);
    }
}
