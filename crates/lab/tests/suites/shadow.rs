//! What is special to `shadow-paging`: on a few frames everything that happens once in a while
//! happens all the time, and what survives is right where the power is cut.

use std::collections::BTreeMap;

use crate::common::{all_hold, crash, resolve, run};
use crate::programs::{at, counted, on, store};
use model::design::{Shape, Structure};
use model::units::{CoreId, LINE_BYTES, PAGE_LINES};

/// Programs over lines of several pages.
const PROGRAMS: &[&str] = &[
    "txs=60 cores=1 seed=1 workload.words=128 workload.apart=1024",
    "txs=60 cores=2 seed=2 workload.words=128 workload.apart=2048",
    "txs=60 cores=4 seed=3 workload.words=64 workload.apart=1024 workload.lock_grain=word",
];

/// Sizes and choices under which the design has to work hard.
const SIZES: &[&str] = &[
    "design.shadow_frames=3 design.write_set=2 design.journal_lines=20 design.copy=lazy",
    "design.shadow_frames=5 design.journal_lines=20 design.checkpoint_percent=100 \
     design.shootdown=0 controller.domain=media",
    "design.shadow_frames=40 design.journal_lines=20 design.checkpoint_percent=100 \
     design.copy=lazy controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
     controller.writeback_buffer_size=64 pm.xpbuffer_entries=1 pm.tWRITE=400cycles",
    "design.journal_lines=20 tlb.entries=1 tlb.assoc=1 llc.size=256B l2.size=128B l1d.size=128B",
];

/// What each counter counts must have happened, in runs that are right where the power is cut.
#[test]
fn every_path_is_taken() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for program in PROGRAMS {
        for sizes in SIZES {
            let line = format!("shadow-paging scribble {program} {sizes}");
            for (name, count) in run(&line)["design_counters"].as_object().expect("counters") {
                *counts.entry(name.clone()).or_default() += count.as_u64().expect("a number");
            }
            all_hold([format!("{line} nested=false points=2000")]);
        }
    }
    let never: Vec<&String> =
        counts.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "{never:?} stay 0");
    assert!(counts["frames_freed"] > 40, "frames are used again: {counts:?}");
}

/// Recovery is interrupted at each of its writes.
#[test]
fn recovery_may_be_interrupted() {
    for (program, sizes) in PROGRAMS.iter().zip(SIZES) {
        let line = format!("shadow-paging scribble {program} {sizes} points=2000");
        let answer = crash(&line);
        assert_eq!(answer["violations"].as_array().map(Vec::len), Some(0), "{line}: {answer}");
        assert!(answer["nested_points"].as_u64() > Some(0), "{line}");
    }
}

/// A transaction that stores to one word writes 64 lines of its page, and its line twice if the
/// page was copied before.
#[test]
fn a_page_is_copied() {
    for (copy, copied) in [("eager", 64), ("lazy", 63)] {
        let line = format!(
            "shadow-paging scribble cores=1 txs=1 workload.words=2 workload.stores=1 \
             design.copy={copy}"
        );
        let row = run(&line);
        let lines = |class: &str| {
            row["pm_writes"]["by_class"][class].as_u64().expect("a number") / LINE_BYTES
        };
        let found = ["copy_on_write", "data", "log", "home_write_back"].map(lines);
        assert_eq!(found, [copied, 1, 1, 0], "{line}: {row}");
    }
}

/// A core has 36 bits of a page, 40 of a frame and 64 of lines, for 64 pages; the controller has
/// the first two of a commit, and knows the free ones of 1,024 frames, and where the journal begins
/// and ends.
#[test]
fn the_declared_hardware_is_what_the_design_keeps() {
    let resolved = resolve("shadow-paging scribble cores=1");
    let shape = Shape::new(&resolved.machine.config, 1);
    let bytes: Vec<u64> =
        (resolved.design.hardware)(&[], &shape).iter().map(Structure::bytes).collect();
    assert_eq!(bytes, [64 * 140 / 8, 64 * 76 / 8, 1024 * 40 / 8, 16]);
}

/// No store to a page asks for its line before the copy of the page has been read, also if it is
/// not the store that had it copied: a line that is not there comes after that.
#[test]
fn every_store_to_a_page_waits_until_it_has_been_copied() {
    let latency = |is_there: bool| {
        let outcome = on("shadow-paging scribble cores=1 machine=silo", move |pm| {
            pm.load(at(0, 0));
            if is_there {
                pm.load(at(1, 0));
            }
            pm.work(100_000);
            store(pm, &[1, 1], 1)
        });
        outcome.report.transactions.commit_latency.max()
    };
    let (there, comes) = (latency(true), latency(false));
    // A line comes from memory in more than 100 cycles.
    assert!(comes >= there + 100, "{there} and {comes} cycles");
}

/// A transaction finds as many free frames as there are for shadows.
#[test]
fn there_are_as_many_frames_for_shadows_as_it_says() {
    let exhausted = |pages: u64| {
        let line = "shadow-paging scribble cores=1 machine=silo design.shadow_frames=3";
        let outcome = on(line, move |pm| {
            pm.begin()?;
            (0..pages).for_each(|page| pm.store(at(PAGE_LINES * page, 0), 1));
            pm.commit();
            Ok(())
        });
        counted(&outcome, "frames_exhausted")
    };
    assert_eq!([3, 4].map(exhausted), [0, 1]);
}

/// The news that a translation is shot down takes a way to the cores, beside the time that it
/// takes there.
#[test]
fn shooting_down_a_translation_takes_a_way_more() {
    let latency = |way: u64, is_elsewhere: bool| {
        let line =
            format!("shadow-paging scribble cores=2 machine=silo controller.noc_latency={way}us");
        let outcome = on(&line, move |pm| {
            if pm.core() == CoreId(1) {
                pm.load(at(if is_elsewhere { 1 } else { PAGE_LINES }, 0));
                return Ok(());
            }
            pm.load(at(0, 0));
            pm.work(100_000);
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.work(200_000);
            pm.commit();
            Ok(())
        });
        assert_eq!(counted(&outcome, "shootdowns"), u64::from(is_elsewhere));
        outcome.report.transactions.commit_latency.max()
    };
    let waits = |way| latency(way, true) - latency(way, false);
    let more = waits(2) - waits(1);
    // A microsecond is 2,000 cycles.
    assert_eq!((more + 1_000) / 2_000, 1, "{more} cycles");
}
