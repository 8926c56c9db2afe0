//! What is special to SSP: on a TLB of four entries and an SSP cache of a few slots everything that
//! happens once in a while happens all the time, and what survives is right wherever the power is
//! cut.

use std::collections::BTreeMap;

use crate::common::{all_hold, resolve, run};
use model::design::{Shape, Structure};

/// Programs over lines of several pages.
const PROGRAMS: &[&str] = &[
    "txs=60 cores=1 seed=1 workload.words=128 workload.apart=1024",
    "txs=60 cores=2 seed=2 workload.words=128 workload.apart=2048",
    "txs=60 cores=3 seed=3 workload.words=48 workload.apart=512 workload.lock_grain=word",
    "txs=60 cores=4 seed=4 workload.words=64 workload.apart=1024 workload.lock_grain=word",
];

/// Sizes and choices under which SSP has to work hard.
const SIZES: &[&str] = &[
    "design.slots=3 design.write_set=2 design.journal_lines=20 design.direction=extra_page",
    "design.slots=6 design.journal_lines=20 design.consolidations=1 design.direction=page_table",
    "design.over_provision=0 design.write_set=3 design.journal=rewrite design.journal_lines=20 \
     llc.size=256B l2.size=128B l1d.size=128B",
    "design.slots=7 design.allocate=first_store design.journal_lines=20 controller.domain=media",
    "design.slots=5 design.journal_lines=20 design.checkpoint_percent=100 \
     design.direction=extra_page controller.count=2 controller.intlv_size=64B \
     controller.write_buffer_size=1 controller.writeback_buffer_size=64 pm.xpbuffer_entries=1 \
     pm.tWRITE=400cycles",
    "design.slots=12 design.consolidations=1 design.journal_lines=20 tlb.entries=1 tlb.assoc=1 \
     design.mode=post_hoc",
];

/// What each counter counts must have happened, in runs that are right wherever the power is cut.
#[test]
fn every_path_is_taken() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for program in PROGRAMS {
        for sizes in SIZES {
            let line = format!("ssp scribble {program} {sizes}");
            for (name, count) in run(&line)["design_counters"].as_object().expect("counters") {
                *counts.entry(name.clone()).or_default() += count.as_u64().expect("a number");
            }
            all_hold([format!("{line} nested=false")]);
        }
    }
    let never: Vec<&String> =
        counts.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "{never:?} stay 0");
}

/// Recovery is interrupted at each of its writes.
#[test]
fn recovery_may_be_interrupted() {
    for (program, sizes) in PROGRAMS.iter().zip(SIZES) {
        all_hold([format!("ssp scribble {program} {sizes}").replace("txs=60", "txs=30")]);
    }
}

/// What the paper says of its hardware (MICRO'19 section 4.3), of one core: 832 bytes beside a data
/// TLB of 64 entries, 13 KB beside a second level of 1,024, 800 bytes of write-set buffer; 14.6 KB.
/// It gives no sizes for the controller: ours are as many updates as the write-set buffer has
/// pages, a line of the journal, and two registers.
#[test]
fn the_declared_hardware_is_the_paper_s() {
    let resolved = resolve("ssp scribble cores=1 tlb.entries=64 tlb.l2_entries=1024");
    let shape = Shape::new(&resolved.machine.config, 1);
    let structures = (resolved.design.hardware)(&[], &shape);
    let bytes = |place| -> Vec<u64> {
        let there = structures.iter().filter(|structure| structure.location.name() == place);
        there.map(Structure::bytes).collect()
    };
    let core = bytes("core");
    assert_eq!(core, [832, 13 * 1024, 800]);
    assert_eq!(core.iter().sum::<u64>() * 10 / 1024, 145, "14.59 KiB");
    assert_eq!(bytes("memory controller"), [64 * (40 + 64) / 8, 64, 16]);
}

/// What `post_hoc` leaves out of the time and counts is what a core that waits would wait, a
/// transaction that falls back included.
#[test]
fn what_is_added_afterwards_is_what_was_left_out() {
    for rest in ["hash-rand", "scribble workload.apart=4096 design.write_set=1 design.flip=10000"] {
        let of = |mode| {
            run(&format!(
                "ssp {rest} machine=ssp cores=1 txs=200 core.model=inorder design.mode={mode}"
            ))
        };
        let (full, short) = (of("full"), of("post_hoc"));
        let cycles = |row: &serde_json::Value| row["cycles"].as_u64().expect("a number");
        let left_out = cycles(&full) - cycles(&short);
        let counted = short["design_counters"]["post_hoc_cycles"].as_u64().expect("a number");
        assert!(counted > 0 && left_out.abs_diff(counted) * 20 < counted, "{left_out} {counted}");
    }
}

/// A store whose page is in no TLB waits for the SSP cache, as a load does, although the library
/// asks for leave to store before it stores. (A few stores of one transaction wait together.)
#[test]
fn stores_wait_for_the_ssp_cache() {
    let of = |latency| {
        run(&format!(
            "ssp scribble machine=ssp cores=1 txs=500 core.model=inorder workload.words=2048 \
             workload.apart=4096 workload.stores=1 design.ssp_cache_latency={latency}"
        ))
    };
    let (short, long) = (of(1), of(5001));
    let cycles = |row: &serde_json::Value| row["cycles"].as_u64().expect("a number");
    let misses = long["design_counters"]["tlb_misses"].as_u64().expect("a number");
    let waited = cycles(&long) - cycles(&short);
    assert!(misses > 400 && waited > misses * 3_500, "{waited} for {misses} misses");
}

/// The other copy of a line is known when its page is translated: what the first store to a line
/// takes comes after the SSP cache, once, though the library asks before it stores.
#[test]
fn a_line_is_remapped_when_its_page_is_translated() {
    let of = |flip| {
        run(&format!(
            "ssp scribble machine=ssp cores=1 txs=500 core.model=inorder workload.words=2048 \
             workload.apart=4096 workload.stores=1 design.ssp_cache_latency=5000 design.flip={flip}"
        ))
    };
    let (free, slow) = (of(0), of(5_000));
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let flips = number(&slow["design_counters"]["flips"]);
    let waited = number(&slow["cycles"]) - number(&free["cycles"]);
    assert!(number(&slow["design_counters"]["tlb_misses"]) > 400 && flips > 400);
    // A few stores of one transaction wait together.
    assert!((flips * 4_000..flips * 5_500).contains(&waited), "{waited} for {flips} flips");
}

/// A store whose page is in the second level of the TLB waits for that, though its address was
/// known long before.
#[test]
fn stores_wait_for_the_second_level_of_the_tlb() {
    let cycles = |latency: &str| {
        let row = run(&format!(
            "ssp scribble machine=ssp cores=1 txs=500 workload.words=2048 workload.apart=4096 \
             workload.stores=1 workload.large=1 tlb.entries=4 tlb.assoc=4 tlb.l2_entries=1024 \
             tlb.l2_latency={latency}"
        ));
        row["cycles"].as_u64().expect("a number")
    };
    let (short, long) = (cycles("1ns"), cycles("1us"));
    assert!(long > short * 3 / 2, "{short} and {long}");
}

/// The TLBs of no machine hold more pages than there are slots, so no transaction has to run in
/// software.
#[test]
fn there_are_slots_for_all_that_tlbs_hold() {
    for machine in ["silo", "optane", "cxl"] {
        let row = run(&format!("ssp rbtree machine={machine} cores=8 txs=200"));
        let counters = &row["design_counters"];
        let [fallbacks, exhausted] =
            ["fallbacks", "slots_exhausted"].map(|name| counters[name].as_u64());
        assert_eq!((fallbacks, exhausted), (Some(0), Some(0)), "{machine}");
    }
    let tlbs = run("ssp array machine=silo cores=8 txs=1 design.slots=8192");
    assert_eq!(tlbs["design_counters"]["slots_exhausted"], 0, "and so many can be named");
}
