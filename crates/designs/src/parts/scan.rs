//! The forced write-back: a scan of the tags that writes back every line that has been dirty for a
//! whole period, so that old records of the log are no longer needed (FWB, HPCA 2018).
//!
//! A scan flags the dirty lines (their fwb bits); the next scan writes back the lines that are
//! still flagged. When controllers have accepted these, and every line that was evicted before,
//! nothing needs the records that the log had when the scan before began.

use model::config::Encoder;
use model::design::Location::Elsewhere;
use model::design::{Below, Shape, Structure};
use model::units::{Cycle, LINE_BYTES, Line, LineSet};

use super::LogEvent;
use super::homes::Homes;
use super::log::Log;
use super::rules::ScanRules;

/// The scanner, and the fwb bits of all lines.
#[derive(Debug)]
pub struct Scan {
    rules: ScanRules,
    period: u64,
    /// How many lines of a scan may be under way at a time.
    width: u64,
    due: Cycle,
    stage: Stage,
    flagged: LineSet,
    /// Lines that the scan under way has still to write back, the first one last.
    left: Vec<Line>,
    under_way: u64,
    /// The line of the log that was being filled when the last scan began, and the scan before it.
    began: u64,
    began_before: u64,
    /// Its counts.
    pub counts: ScanCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Writing,
    /// The scan waits until every line before this mark is home.
    Waiting(u64),
}

model::counters! {
    /// The counts of a scanner.
    pub struct ScanCounts {
        scans,
        urgent "scans_for_room",
        truncations "log_truncations",
    }
}

impl Scan {
    /// A scanner with the given period in cycles or, if that is 0, with half the time in which the
    /// memory can fill a ring of `lines` lines. It has `width` lines under way or, if that is 0, as
    /// many as controllers have buffers for.
    pub fn new(shape: &Shape, period: u64, width: u64, lines: u64, rules: &ScanRules) -> Scan {
        let controller = &shape.config.controller;
        let period = if period == 0 { time_to_wrap(shape, lines) / 2 } else { period };
        let width = if width == 0 { controller.writebacks * controller.count } else { width };
        Scan {
            rules: rules.clone(),
            period: period.max(1),
            width,
            due: Cycle(period),
            stage: Stage::Idle,
            flagged: LineSet::default(),
            left: Vec::new(),
            under_way: 0,
            began: 0,
            began_before: 0,
            counts: ScanCounts::default(),
        }
    }

    /// Notes that a line leaves a first level.
    pub fn leave(&mut self, line: Line) {
        if !self.rules.flag_moves_with_line {
            self.clear(line);
        }
    }

    /// Clears the flag of a line, which is not dirty any more.
    pub fn clear(&mut self, line: Line) {
        self.flagged.remove(&line);
    }

    /// Begins a scan if one is due, or if a core waits for room in the ring.
    pub fn begin(&mut self, at: Cycle, log: &Log, below: &Below<LogEvent>) {
        let urgent = log.needs_cut();
        if self.stage != Stage::Idle || !urgent && at < self.due {
            return;
        }
        self.counts.scans += 1;
        self.counts.urgent += u64::from(urgent && at < self.due);
        self.due = at + self.period;
        (self.began_before, self.began) = (self.began, log.tail());
        let mut dirty = below.caches.dirty_lines();
        dirty.retain(|line| line.is_persistent());
        self.left = dirty.iter().copied().filter(|line| self.flagged.contains(line)).collect();
        self.left.reverse();
        let flagged = std::mem::take(&mut self.flagged);
        self.flagged = dirty.into_iter().filter(|line| !flagged.contains(line)).collect();
        self.stage = Stage::Writing;
    }

    /// Begins a scan if a core waits for room in the ring. (Only stores begin one that is due: when
    /// the programs have ended, nothing is scanned any more.)
    pub fn begin_for_room(&mut self, at: Cycle, log: &Log, below: &Below<LogEvent>) {
        if log.needs_cut() {
            self.begin(at, log, below);
        }
    }

    /// Notes that a line that the scan forced is home.
    pub fn forced(&mut self) {
        self.under_way -= 1;
    }

    /// Continues a scan that has begun, or one of whose lines is home.
    pub fn go_on(
        &mut self,
        at: Cycle,
        log: &mut Log,
        homes: &mut Homes,
        below: &mut Below<LogEvent>,
    ) {
        loop {
            while let Some(line) = self.next_line(homes) {
                self.write(line, at, log, homes, below);
            }
            if !self.end(at, log, homes, below) {
                return;
            }
        }
    }

    /// Takes the next line that a scan writes back now, if there is one.
    pub fn next_line(&mut self, homes: &mut Homes) -> Option<Line> {
        if self.stage != Stage::Writing || self.under_way >= self.width {
            return None;
        }
        let next = self.left.pop();
        if next.is_none() {
            self.stage = Stage::Waiting(homes.mark());
        }
        next
    }

    /// Writes a line back, behind the records that undo it.
    pub fn write(
        &mut self,
        line: Line,
        at: Cycle,
        log: &mut Log,
        homes: &mut Homes,
        below: &mut Below<LogEvent>,
    ) {
        let after = log.send_before(line, at, below);
        self.under_way += u64::from(homes.force(line, at, after, below));
    }

    /// Ends a scan whose lines are home, and cuts the log. Returns whether another scan has begun.
    pub fn end(
        &mut self,
        at: Cycle,
        log: &mut Log,
        homes: &Homes,
        below: &mut Below<LogEvent>,
    ) -> bool {
        let Stage::Waiting(mark) = self.stage else { return false };
        if self.rules.cut_when_home && !homes.are_home(mark) {
            return false;
        }
        self.stage = Stage::Idle;
        let cut = if self.rules.cut_one_scan_behind { self.began_before } else { self.began };
        self.counts.truncations += u64::from(log.forget(cut));
        log.go_on(at, below);
        self.begin_for_room(at, log, below);
        self.stage == Stage::Writing
    }
}

/// Cycles in which all banks, writing all the time, fill this many lines. A bank takes one write to
/// the cells at a time, of a line of the on-DIMM buffer if there is one, and reads the cells first
/// if it compares. More banks than the bus can feed do not shorten the time.
fn time_to_wrap(shape: &Shape, lines: u64) -> u64 {
    let (pm, controller) = (&shape.config.pm, &shape.config.controller);
    let bytes = if pm.buffer > 0 { pm.xpline } else { LINE_BYTES };
    let compares = pm.encoder != Encoder::None;
    let each = shape.config.cycles(pm.t_write + if compares { pm.t_read } else { 0 });
    let in_cells = lines * LINE_BYTES * each / (bytes * pm.banks * controller.count);
    let on_bus = lines * shape.config.cycles(pm.t_burst) / controller.count;
    in_cells.max(on_bus)
}

/// The fwb bits: one for each line of each cache.
pub fn fwb_bits(shape: &Shape) -> Structure {
    let config = &shape.config;
    let lines = |bytes: u64| bytes / LINE_BYTES;
    let private = lines(config.l1d.size) + lines(config.l2.size);
    let count = private * u64::from(shape.cores) + lines(config.llc.size);
    Structure::new("fwb bit", 1, count, Elsewhere("tags of all caches"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::Config;

    /// The machine of FWB's paper, from memory: a log of 4 MiB, 8 banks that write 64 bytes in
    /// 300 ns, and a core of 2.5 GHz make a period of about 3 million cycles.
    #[test]
    fn the_period_is_the_one_of_the_paper() {
        let mut config = Config::default();
        (config.pm.banks, config.pm.buffer, config.pm.encoder) = (8, 0, Encoder::None);
        (config.pm.t_write, config.core.frequency) = (300_000, 2_500_000_000);
        let shape = Shape::new(&config, 4);
        let scan = Scan::new(&shape, 0, 0, (4 << 20) / 64, &ScanRules::default());
        assert_eq!((scan.period, scan.due), (3_072_000, Cycle(3_072_000)));
    }

    #[test]
    fn a_larger_write_and_more_banks_shorten_the_period() {
        let mut config = Config::default();
        (config.pm.buffer, config.pm.encoder) = (0, Encoder::None);
        let slow = time_to_wrap(&Shape::new(&config, 4), 65536);
        config.pm.buffer = 64;
        assert_eq!(time_to_wrap(&Shape::new(&config, 4), 65536), slow / 4);
        config.controller.count = 2;
        assert_eq!(time_to_wrap(&Shape::new(&config, 4), 65536), slow / 8);
    }

    /// However many banks there are, a line takes the time of a burst on its controller's bus.
    #[test]
    fn the_bus_bounds_how_soon_banks_fill_the_log() {
        let mut config = Config::default();
        (config.pm.banks, config.pm.t_burst, config.core.frequency) =
            (1 << 10, 8_000, 1_000_000_000);
        let line = config.cycles(config.pm.t_burst);
        for controllers in [1, 2] {
            config.controller.count = controllers;
            let cycles = time_to_wrap(&Shape::new(&config, 4), 65536);
            assert_eq!(cycles, 65536 * line / controllers);
        }
    }
}
