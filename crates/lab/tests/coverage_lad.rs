//! The corners of LAD and of the hardware baselines of SSP's paper are reached by runs like those
//! in which `conformance` cuts the power: whatever a design counts (an overflow, a wrap, a hold, a
//! wait) happened somewhere.

mod common;

use std::collections::BTreeMap;

use common::run;

const SMALL_CACHES: &str = "llc.size=256B l2.size=128B l1d.size=128B";
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    pm.xpbuffer_entries=1 pm.tWRITE=400cycles";

/// The designs, and how their structures are made small.
const DESIGNS: &[(&str, &str)] = &[
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
        assert!(!counted.is_empty(), "{design} counts nothing");
        for (name, _) in counted.iter().filter(|(_, count)| **count == 0) {
            missed += &format!("{design}: {name}\n");
        }
    }
    assert!(missed.is_empty(), "never happened:\n{missed}");
}
