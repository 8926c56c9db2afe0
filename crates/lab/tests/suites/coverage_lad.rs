//! The corners of LAD and of the hardware baselines of SSP's paper are reached by runs like those
//! in which `conformance` cuts the power: whatever a design counts (an overflow, a spill, a wrap, a
//! hold, a wait) happened somewhere.

use std::collections::BTreeMap;

use crate::common::{play, resolve, run};
use crate::programs::{at, counted, on, store, try_on};
use model::crash::{Campaign, Check, Points};
use model::design::Shape;
use model::meters::Stall;
use model::units::{CoreId, LINE_BYTES};
use model::workload::{LockId, Pm, Program, Ptr, Step, Workload};

const SMALL_CACHES: &str = "llc.size=256B l2.size=128B l1d.size=128B";
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    pm.xpbuffer_entries=1 pm.tWRITE=400cycles";

/// The designs, and how their structures are made small.
const DESIGNS: &[(&str, &str)] = &[
    ("lad", "design.serial_bits=2 pm.log_size=4KiB"),
    ("redo-log", "design.entries=4 pm.log_size=2KiB design.conflict=durable"),
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

/// A line that is sent again in its transaction takes the place of its entry, and is a write to the
/// queue like any other.
#[test]
fn a_line_of_lad_that_is_sent_again_is_a_write() {
    let outcome = on("lad scribble cores=1 machine=silo l1d.size=64B l1d.assoc=1", |pm| {
        pm.begin()?;
        for value in 0..3 {
            pm.store(at(0, 0), value);
            pm.load(at(1, 0));
            pm.work(10_000);
        }
        pm.commit();
        Ok(())
    });
    assert_eq!(counted(&outcome, "entries_replaced"), 2);
    assert_eq!(outcome.report.meters.wpq_writes, 3);
}

/// The undo entry of a line's first spill in a transaction is applied last, also if it lies behind
/// that of the second spill: a transaction before has used up all places but one.
#[test]
fn undo_entries_of_lad_are_applied_youngest_first_wherever_they_lie() {
    for before in 0..8 {
        let line = "lad scribble cores=1 l1d.size=64B l1d.assoc=1 design.undo_entries=8 \
                    controller.write_buffer_size=1";
        let outcome = try_on(line, Points::All, move |pm| {
            // The last line stays in the queue.
            store(pm, &vec![1; 1 + before], 1)?;
            pm.begin()?;
            for value in 2..5 {
                pm.store(at(0, 0), value);
                pm.store(at(1, 0), value);
                pm.work(1_000);
            }
            pm.commit();
            Ok(())
        });
        let outcome = outcome.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(counted(&outcome, "spills") > 2, "{before}");
        let violations = outcome.crashes.expect("a campaign").violations;
        assert!(violations.is_empty(), "{before}: {violations:#?}");
    }
}

/// What LAD declares is there for each controller, or for each core.
#[test]
fn the_declared_hardware_of_lad_is_there_for_each_core_and_controller() {
    let counts = |cores: u8, controllers: u64| -> Vec<u64> {
        let line = format!(
            "lad scribble cores={cores} controller.count={controllers} design.undo_entries=10"
        );
        let resolved = resolve(&line);
        let shape = Shape::new(&resolved.machine.config, cores);
        let structures = (resolved.design.hardware)(&[("undo_entries".into(), 10)], &shape);
        structures.iter().map(|structure| structure.count).collect()
    };
    // A queue of 4, a spill register, 256 threads, 10 undo entries; a first level of two lines.
    assert_eq!(counts(1, 1), [4, 1, 256, 10, 10, 2, 1, 1]);
    assert_eq!(counts(4, 2), [8, 2, 512, 20, 20, 8, 4, 4]);
}

/// The filter of the undo log knows so many lines, and in the next transaction none of them.
#[test]
fn the_filter_of_an_undo_log_holds_as_many_lines_as_it_says() {
    for (lines, forgotten) in [(4, 0), (5, 1)] {
        let outcome = on("undo-log scribble cores=1 design.entries=4", move |pm| {
            (1..=3).try_for_each(|value| store(pm, &vec![1; lines], value))
        });
        let counts = ["entries", "filter_overflows"].map(|name| counted(&outcome, name));
        assert_eq!(counts, [3 * lines as u64, 3 * forgotten]);
    }
}

/// A store of the undo log waits for its line, which has the old bytes, and then for its entry: one
/// way there and one back each.
#[test]
fn a_store_of_an_undo_log_waits_for_its_line_and_then_for_its_entry() {
    let cycles = |way: u64, is_there: bool, stores: bool| {
        let line = format!(
            "undo-log scribble cores=1 machine=silo core.width=1 controller.noc_latency={way}us"
        );
        let outcome = on(&line, move |pm| {
            if is_there {
                pm.load(at(0, 0));
            }
            pm.work(200_000);
            if stores {
                store(pm, &[1], 1)?;
            }
            Ok(())
        });
        outcome.report.cycles - outcome.report.transactions.commit_latency.max()
    };
    for (is_there, ways) in [(true, 2), (false, 4)] {
        let waits = |way| cycles(way, is_there, true) - cycles(way, is_there, false);
        let more = waits(2) - waits(1);
        assert_eq!((more + 1_000) / 2_000, ways, "{more} cycles, is there: {is_there}");
    }
}

/// A store that waits for the records of a full log buffer hears a way later that they are durable.
#[test]
fn a_store_of_a_redo_log_that_waits_for_records_hears_of_them_a_way_later() {
    let waits = |way: u64| {
        let line = format!(
            "redo-log scribble cores=1 machine=silo design.entries=1 controller.noc_latency={way}us \
             controller.writeback_buffer_size=1"
        );
        let outcome = on(&line, |pm| {
            (0..2).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            store(pm, &[1, 1], 1)
        });
        assert_eq!(counted(&outcome, "stores_held"), 1);
        outcome.report.cores.stalls[Stall::LogFull as usize]
    };
    let more = waits(2) - waits(1);
    assert_eq!((more + 1_000) / 2_000, 2, "{more} cycles");
}

/// A store waits if as many lines of records are under way as the machine has buffers for: the
/// record of a line has two.
#[test]
fn a_store_of_a_redo_log_waits_for_as_many_records_as_there_are_buffers() {
    for (buffers, held) in [(2, 1), (3, 0)] {
        let line = format!(
            "redo-log scribble cores=1 machine=silo design.entries=1 \
             controller.writeback_buffer_size={buffers}"
        );
        let outcome = on(&line, |pm| store(pm, &[1, 1], 1));
        assert_eq!(counted(&outcome, "stores_held"), held, "{buffers}");
    }
}

/// What is there of a transaction whose commit record counts its records: words of both, in any
/// order, and beside them words of earlier laps and of the transaction before.
#[test]
fn commit_records_of_a_redo_log_that_count() {
    let log = "design.commit=counts pm.log_size=2KiB controller.arrival_jitter=500cycles";
    let lines = ["scribble", "hash", "btree", "queue"].iter().enumerate().flat_map(|(turn, on)| {
        let line = move |cores: u64, record: &str, rest: &str| {
            format!(
                "redo-log {on} cores={cores} txs=10 seed={} points=150 {log} design.record={record} \
                 {rest}",
                turn + 1
            )
        };
        [
            line(1, "line", "controller.domain=media nested=true"),
            line(2, "words", "controller.domain=media nested=true design.conflict=durable"),
            line(4, "words", "controller.domain=adr nested=true design.entries=1"),
        ]
    });
    crate::common::all_hold(lines);
}

/// A transaction comes after another one once, however many lines of it it stores to.
#[test]
fn a_dependence_of_a_redo_log_is_logged_once() {
    let line = "redo-log scribble cores=2 machine=silo controller.noc_latency=10us";
    let outcome = on(line, |pm| {
        pm.work(1 + 1_000 * u64::from(pm.core().0));
        pm.lock(LockId(0));
        store(pm, &[1; 4], 1)?;
        pm.unlock(LockId(0));
        Ok(())
    });
    assert_eq!(counted(&outcome, "dependences"), 1);
}

/// A core that comes to have a line on its way to its place goes on at once, or when the line has
/// arrived there and the answer has come back.
#[test]
fn an_access_of_a_committed_line_waits_for_its_place_or_not() {
    for stores in [false, true] {
        let cycles = |conflict: &str, way: u64| {
            let line = format!(
                "redo-log scribble cores=2 machine=silo design.conflict={conflict} \
                 controller.noc_latency={way}us"
            );
            let outcome = on(&line, move |pm| {
                pm.work(1 + 1_000 * u64::from(pm.core().0));
                pm.lock(LockId(0));
                match pm.core().0 {
                    1 if !stores => _ = pm.load(at(0, 0)),
                    _ => store(pm, &[1], 1)?,
                }
                pm.unlock(LockId(0));
                Ok(())
            });
            let held = u64::from(conflict == "durable");
            assert_eq!(counted(&outcome, "accesses_held"), held, "{conflict}, {stores}");
            outcome.report.cycles
        };
        let longer = |way| cycles("durable", way) - cycles("sent", way);
        let more = longer(2) - longer(1);
        assert_eq!((more + 1_000) / 2_000, 2, "{more} cycles, {stores}");
    }
}

/// Lines that left the caches are read from the log when they are written back, two lines of log
/// for each, and not at all while the log buffer has them.
#[test]
fn a_redo_log_reads_a_line_that_left_the_caches_where_it_is() {
    for (entries, loads, fetched, reads) in [(1, false, 0, 4), (64, true, 0, 0)] {
        let line = format!("redo-log scribble cores=1 {SMALL_CACHES} design.entries={entries}");
        let outcome = on(&line, move |pm| {
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.store(at(20, 0), 1);
            (1..10).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(10_000);
            if loads {
                pm.load(at(0, 0));
                pm.load(at(20, 0));
            } else {
                pm.commit();
            }
            pm.work(100_000);
            Ok(())
        });
        assert!(counted(&outcome, "evictions_dropped") > 0);
        assert_eq!(counted(&outcome, "fetches_from_log"), fetched, "{entries}");
        let report = outcome.report;
        assert_eq!(report.usage.pm_reads.count - report.accesses.in_pm, reads, "{entries}");
    }
}

/// A controller has undo entries for so many lines of a transaction, beside those that its queue
/// holds.
#[test]
fn an_undo_area_of_lad_holds_as_many_lines_as_it_says() {
    let fits = |lines: usize| {
        let line = "lad scribble cores=1 controller.write_buffer_size=4 design.undo_entries=8";
        let outcome = try_on(line, Points::Count, move |pm| store(pm, &vec![1; lines], 1));
        outcome.map(|outcome| counted(&outcome, "spills")).map_err(|failure| format!("{failure:?}"))
    };
    assert_eq!(fits(4 + 8), Ok(8));
    let refused = fits(4 + 9).expect_err("nine lines do not fit");
    assert!(refused.contains("full with 8 lines"), "{refused}");
}

/// A load of a line that was dropped waits for memory, which is asked first, and then for the words
/// in the log: two ways more than a load of any other line.
#[test]
fn a_load_of_a_dropped_line_waits_for_the_log_behind_memory() {
    let cycles = |way: u64, loaded: u64| {
        let line = format!(
            "redo-log scribble cores=1 core.model=inorder {SMALL_CACHES} design.entries=1 \
             controller.noc_latency={way}us"
        );
        let outcome = on(&line, move |pm| {
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.store(at(20, 0), 1);
            (1..10).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            pm.load(at(loaded, 0));
            Ok(())
        });
        assert_eq!(counted(&outcome, "fetches_from_log"), u64::from(loaded == 0));
        outcome.report.cycles
    };
    let waits = |way| cycles(way, 0) - cycles(way, 40);
    let more = waits(2) - waits(1);
    // A microsecond is 1,000 cycles.
    assert_eq!((more + 500) / 1_000, 2, "{more} cycles");
}
