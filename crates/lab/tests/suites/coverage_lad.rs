//! The corners of LAD and of the hardware baselines of SSP's paper are reached by runs like those
//! in which `conformance` cuts the power: whatever a design counts (an overflow, a spill, a wrap, a
//! hold, a wait) happened somewhere.

use std::collections::BTreeMap;

use crate::common::{play, resolve, run};
use crate::programs::{at, counted, on};
use model::crash::{Campaign, Check, Points};
use model::units::{CoreId, LINE_BYTES};
use model::workload::{Pm, Program, Ptr, Step, Workload};

const SMALL_CACHES: &str = "llc.size=256B l2.size=128B l1d.size=128B";
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    pm.xpbuffer_entries=1 pm.tWRITE=400cycles";

/// The designs, and how their structures are made small.
const DESIGNS: &[(&str, &str)] = &[
    ("lad", "design.serial_bits=2 pm.log_size=4KiB"),
    ("redo-log", "design.entries=4 pm.log_size=2KiB"),
    ("undo-log", "design.entries=4 pm.log_size=2KiB"),
];

#[test]
fn whatever_a_design_counts_happened_somewhere() {
    let mut missed = String::new();
    for (design, small) in DESIGNS {
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        for machine in ["", SMALL_CACHES, &format!("{SMALL_CACHES} {APART}")] {
            for seed in 1..=3 {
                let line =
                    format!("{design} scribble cores=4 txs=80 seed={seed} {small} {machine}");
                let row = run(&line);
                for (name, count) in row["design_counters"].as_object().expect("counters") {
                    *counted.entry(name.clone()).or_default() += count.as_u64().expect("a number");
                }
            }
        }
        for (name, count) in outside(design) {
            *counted.entry(name.into()).or_default() += count;
        }
        assert!(!counted.is_empty(), "{design} counts nothing");
        for (name, _) in counted.iter().filter(|(_, count)| **count == 0) {
            missed += &format!("{design}: {name}\n");
        }
    }
    assert!(missed.is_empty(), "never happened:\n{missed}");
}

/// Stores outside of transactions, whose lines are ordinary write-backs, among transactions that
/// store to the same lines: what workloads must not do, and a machine must bear.
#[derive(Clone, Debug)]
struct Outside {
    first: u64,
    round: u64,
}

/// Lines of each core.
const LINES: u64 = 12;

impl Workload for Outside {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let first = LINE_BYTES * (1 + LINES * u64::from(core.0));
        Ok(Box::new(Outside { first, ..self.clone() }))
    }
}

impl Program for Outside {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        self.round += 1;
        let line = |index: u64| Ptr::to(self.first + index % LINES * LINE_BYTES);
        let word = |at: Ptr| Ptr::to(at.address + 8);
        pm.begin()?;
        for index in 0..LINES / 3 {
            pm.store(word(line(self.round + index)), self.round);
        }
        pm.commit();
        for index in 0..LINES {
            pm.store(line(index), self.round);
        }
        // The caches have the last four lines; those before them are on their way to memory.
        pm.begin()?;
        for index in (0..LINES - 4).rev() {
            pm.store(word(line(index)), self.round + index);
        }
        pm.commit();
        Ok(())
    }
}

/// Cuts the power of such programs everywhere, and returns what the design counted.
fn outside(design: &str) -> Vec<(&'static str, u64)> {
    let line = format!(
        "{design} scribble cores=2 {SMALL_CACHES} {APART} controller.writeback_buffer_size=16"
    );
    let resolved = resolve(&line);
    let campaign = Campaign {
        points: Points::All,
        nested: false,
        reorders: 2,
        violations_max: 1,
        seed: 1,
        keep: 0,
        check: Check::Transactions,
    };
    let workload = Box::new(Outside { first: 0, round: 0 });
    let config = &resolved.machine.config;
    let outcome = play(resolved.design, config, 2, workload, 20, Some(campaign));
    let violations = outcome.crashes.expect("a campaign").violations;
    assert!(violations.is_empty(), "{line}: {violations:?}");
    outcome.report.counters
}

/// Transactions that do not fit the queue, one after the other: what each of them logs reaches the
/// cells. An undo entry is half a line of the on-DIMM buffer.
#[test]
fn undo_entries_of_lad_do_not_take_the_places_of_those_that_were_just_dropped() {
    let lines = |txs: u64| {
        let line = format!(
            "lad array cores=1 machine=silo txs={txs} warmup=0 controller.write_buffer_size=4 \
             workload.items=64 workload.operations=12"
        );
        let row = run(&line);
        let spills = row["design_counters"]["spills"].as_u64().expect("a number");
        (row["pm_writes"]["media_lines"].as_u64().expect("a number"), spills)
    };
    let (few, many) = (lines(10), lines(60));
    assert!(many.1 > few.1 + 200, "{few:?}, {many:?}");
    assert!(many.0 - few.0 >= (many.1 - few.1) / 2, "{few:?}, {many:?}");
}

/// Jitter makes the way of a commit of LAD longer, too: here its line has come before.
#[test]
fn jitter_delays_the_commits_of_lad() {
    let latencies = |jitter: u64| {
        let line = format!(
            "lad scribble cores=1 machine=silo l1d.size=64B l1d.assoc=1 \
             controller.arrival_jitter={jitter}cycles"
        );
        let outcome = on(&line, |pm| {
            for value in 0..8 {
                pm.begin()?;
                pm.store(at(0, 0), value);
                pm.load(at(1, 0));
                pm.work(100_000);
                pm.commit();
            }
            Ok(())
        });
        assert_eq!(counted(&outcome, "lines_sent_on_leaving"), 8);
        let latency = outcome.report.transactions.commit_latency;
        (latency.min(), latency.max())
    };
    let (plain, (least, most)) = (latencies(0), latencies(1_000));
    assert_eq!(plain.0, plain.1);
    let range = plain.0..=plain.0 + 1_000;
    assert!(range.contains(&least) && range.contains(&most), "{least} to {most} cycles");
    assert!(most > least + 100, "{least} to {most} cycles");
}

/// The words of a line that left the caches are read from the log once for each of the log's lines:
/// a record of a whole line lies in two, and four words in one.
#[test]
fn a_redo_log_reads_each_line_of_its_log_once() {
    for (record, lines) in [("line", 2), ("words", 1)] {
        let line = format!(
            "redo-log scribble cores=1 {SMALL_CACHES} design.entries=1 design.record={record}"
        );
        let outcome = on(&line, |pm| {
            pm.begin()?;
            (0..4).for_each(|word| pm.store(at(0, word), 1));
            // The record of the other line takes the place of the first one in the log buffer.
            pm.store(at(20, 0), 1);
            (1..10).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(10_000);
            pm.load(at(0, 0));
            pm.work(10_000);
            Ok(())
        });
        assert_eq!(counted(&outcome, "fetches_from_log"), 1, "{record}");
        let report = outcome.report;
        let from_the_log = report.usage.pm_reads.count - report.accesses.in_pm;
        assert_eq!(from_the_log, lines, "{record}");
    }
}
