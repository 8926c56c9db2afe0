//! The measured region of a run: when counting begins, and what is counted.

use crate::design::Design;
use crate::machine::Machine;
use crate::meters::Stall;
use crate::report::{Accesses, Report, WriteSets, latencies};
use crate::units::{CoreId, Cycle};

/// What is counted besides the meters of the memories.
pub(super) struct Counts {
    pub transactions: u64,
    pub commits: u64,
    pub aborted: u64,
    pub accesses: Accesses,
    pub migrations: u64,
    pub commit_latency: hdrhistogram::Histogram<u64>,
    pub write_sets: WriteSets,
    /// The design's own counters at the start of the measured region.
    pub design: Vec<(&'static str, u64)>,
}

impl Counts {
    pub fn new() -> Counts {
        Counts {
            transactions: 0,
            commits: 0,
            aborted: 0,
            accesses: Accesses::default(),
            migrations: 0,
            commit_latency: latencies(),
            write_sets: WriteSets::default(),
            design: Vec::new(),
        }
    }
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
        self.counts = Counts::new();
        self.counts.design = self.design.counters();
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
        let (mut compute, mut instructions) = (0, 0);
        let mut stalls = [0; Stall::ALL.len()];
        for (_, core) in self.cores.iter() {
            let own = core.timing.stalls();
            let ran = core.timing.clock().since(self.started);
            compute += ran - own.iter().sum::<u64>();
            instructions += core.timing.instructions();
            for (sum, cycles) in stalls.iter_mut().zip(own) {
                *sum += cycles;
            }
            stalls[Stall::Other as usize] += end.since(core.timing.clock());
        }
        let usage = self.usage.take().unwrap_or_else(|| self.below.memory.usage(end));
        while self.process_one(Cycle::NEVER) {}
        self.crash_point(end);
        self.below.memory.settle(end);
        let counts = std::mem::replace(&mut self.counts, Counts::new());
        Report {
            cycles: end.since(self.started),
            transactions: counts.transactions,
            commits: counts.commits,
            aborted: counts.aborted,
            accesses: counts.accesses,
            migrations: counts.migrations,
            instructions,
            commit_latency: counts.commit_latency,
            compute,
            stalls,
            meters: self.below.memory.meters(),
            usage,
            write_sets: counts.write_sets,
            epochs: self.epochs.as_ref().map(|epochs| epochs.totals()),
            counters: since(&counts.design, self.design.counters()),
            cancelled,
        }
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
