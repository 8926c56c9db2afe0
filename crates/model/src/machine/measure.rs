//! The measured region of a run: when counting begins, and what is counted.

use crate::design::Design;
use crate::machine::Machine;
use crate::meters::Stall;
use crate::report::{Accesses, CoreTime, LastLevel, Report, Transactions};
use crate::units::{CoreId, Cycle};

/// What is counted besides the meters of the memories.
#[derive(Default)]
pub(super) struct Counts {
    pub transactions: Transactions,
    pub accesses: Accesses,
    pub last_level: LastLevel,
    pub migrations: u64,
    /// The design's own counters at the start of the measured region.
    pub design: Vec<(&'static str, u64)>,
}

impl<D: Design> Machine<D> {
    /// Notes that a core is ready to be measured, and returns whether all are.
    pub(crate) fn arrive(&mut self) -> bool {
        self.arrived += 1;
        self.arrived == self.cores.cores()
    }

    /// Begins counting, now that every core is ready, and wakes the cores that wait for it.
    ///
    /// # Panics
    /// When the design has woken one of them.
    pub(crate) fn start_measuring(&mut self) {
        let waiting = self.cores.iter().filter(|(_, core)| core.parked == Some(Stall::Other));
        assert!(
            waiting.count() + 1 == usize::from(self.cores.cores()),
            "a core that waits for the others is woken: a design wakes a core once for each WAIT"
        );
        let clocks = self.cores.iter().map(|(_, core)| core.timing.drained());
        self.started = clocks.max().expect("a machine has cores");
        for (id, core) in self.cores.iter_mut() {
            core.timing.drain(Stall::Other);
            core.timing.wait(self.started, Stall::Other);
            core.timing.reset_counts();
            core.commits.clear();
            core.written.clear();
            if core.parked.is_some() {
                self.below.wakes.push((id, self.started));
            }
        }
        let caches = &self.below.caches;
        let last_level = LastLevel {
            lines: caches.last_level_lines(),
            dirty_at_start: caches.dirty_lines().len() as u64,
            ..LastLevel::default()
        };
        self.counts = Counts { design: self.design.counters(), last_level, ..Counts::default() };
        if let Some(epochs) = &mut self.epochs {
            epochs.restart();
        }
        self.below.memory.reset_meters(self.started);
        self.start_timeline();
        self.process_wakes();
    }

    /// Notes that a core's program has come to its end. When all have, the usage is read:
    /// controllers and memories go on for a while, but that is outside the measured region.
    pub(crate) fn finish(&mut self, id: CoreId) {
        self.cores[id].finished = true;
        if self.cores.iter().all(|(_, core)| core.finished) {
            self.usage = Some(self.below.memory.usage(self.end()));
        }
    }

    /// Returns the time of the core that is furthest ahead.
    fn end(&self) -> Cycle {
        let clocks = self.cores.iter().map(|(_, core)| core.timing.clock());
        clocks.max().expect("a machine has cores")
    }

    /// Returns what was counted. Writes that are still on their way to memory are let through
    /// first.
    pub fn report(&mut self, cancelled: bool) -> Report {
        let end = self.end();
        let cores = self.core_time(end);
        let usage = self.usage.take().unwrap_or_else(|| self.below.memory.usage(end));
        self.counts.last_level.dirty_at_end = self.below.caches.dirty_lines().len() as u64;
        while self.process_one(Cycle::NEVER) {}
        self.crash_point(end);
        self.below.memory.settle(end);
        let Counts { transactions, accesses, last_level, design, .. } =
            std::mem::take(&mut self.counts);
        Report {
            cycles: end.since(self.started),
            transactions,
            cores,
            accesses,
            last_level,
            meters: self.below.memory.meters(),
            usage,
            epochs: self.epochs.as_ref().map(|epochs| epochs.totals()),
            counters: since(&design, self.design.counters()),
            cancelled,
        }
    }

    /// Returns what the cores did up to the end of the last one's program; after the end of its
    /// own, a core waits.
    fn core_time(&self, end: Cycle) -> CoreTime {
        let mut time = CoreTime { migrations: self.counts.migrations, ..CoreTime::default() };
        for (_, core) in self.cores.iter() {
            let stalls = core.timing.stalls();
            let ran = core.timing.clock().since(self.started);
            time.compute += ran - stalls.iter().sum::<u64>();
            time.instructions += core.timing.instructions();
            for (sum, cycles) in time.stalls.iter_mut().zip(stalls) {
                *sum += cycles;
            }
            time.stalls[Stall::Other as usize] += end.since(core.timing.clock());
        }
        time
    }
}

/// Subtracts from counters the values that they had before, except from maxima.
fn since(
    before: &[(&'static str, u64)],
    counters: Vec<(&'static str, u64)>,
) -> Vec<(&'static str, u64)> {
    let earlier = |wanted| before.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, n)| *n);
    let own = |name: &'static str, count| match name.ends_with("_max") {
        true => (name, count),
        false => (name, count - earlier(name)),
    };
    counters.into_iter().map(|(name, count)| own(name, count)).collect()
}
