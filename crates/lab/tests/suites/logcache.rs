//! What the log of `logcache` is worth after a power failure: the order that its program makes for
//! itself, on hardware that orders and on hardware that does not.

use crate::common::{crash, run, violations};

const VARIANTS: [&str; 10] = [
    "cached",
    "cached+clwb",
    "cached+clflushopt",
    "cached+clflush",
    "movnti4",
    "movnti8",
    "movdiri",
    "nt32",
    "nt64",
    "movdir64b",
];

/// A campaign in which the log must hold the entry of every element that was stored to. Array and
/// log are larger than the caches of the machine `tiny`, so that lines leave by themselves.
fn line(design: &str, variant: &str, more: &str) -> String {
    format!(
        "{design} logcache txs=600 cores=1 nested=false workload.items=256 \
         workload.variant={variant} workload.verify=order {more}"
    )
}

fn is_caught(line: &str) -> bool {
    let answer = crash(line);
    let found = answer["violations"].as_array().expect("a list");
    let text = |one: &serde_json::Value| one["text"].as_str().unwrap_or_default().to_owned();
    assert!(found.iter().all(|one| text(one).contains("the log does not say so")), "{found:?}");
    !found.is_empty()
}

#[test]
fn a_log_that_is_written_back_or_past_the_caches_holds_what_was_stored() {
    let mut found = String::new();
    for variant in &VARIANTS[1..] {
        for more in [
            "",
            "workload.entries_per_fence=4 workload.logging=undo",
            "workload.entries_per_fence=16 workload.array_writes=flushed",
            "workload.entries_per_fence=2 workload.log=circular",
            "workload.entries_per_fence=8 controller.domain=media",
        ] {
            let line = line("undo@x86", variant, more);
            found += &violations(&line, &crash(&line));
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn on_caches_that_survive_the_papers_cached_log_is_enough() {
    for variant in VARIANTS {
        for more in ["", "workload.logging=undo workload.entries_per_fence=4"] {
            let line = line("undo@eadr", variant, more);
            let found = violations(&line, &crash(&line));
            assert!(found.is_empty(), "{found}");
        }
    }
}

/// The check of the check, and the point that the paper's comparison leaves out.
#[test]
fn the_papers_cached_log_is_lost_and_so_is_any_without_a_fence() {
    assert!(is_caught(&line("undo@x86", "cached", "")));
    assert!(is_caught(&line("undo@x86", "cached", "workload.logging=undo")));
    // Without a fence the array's line may come before the log's, if the program writes it back.
    let unfenced = "workload.fence=none workload.array_writes=flushed";
    assert!(is_caught(&line("undo@x86", "movnti8", unfenced)));
    assert!(is_caught(&line("undo@x86", "cached+clwb", unfenced)));
    // The fences of this hardware do nothing.
    assert!(is_caught(&line("native", "cached+clwb", "")));
}

/// Cycles for an entry on the machine of Silo's paper, log and array in one kind of memory.
fn cycles(variant: &str, entries: u64, memory: &str) -> f64 {
    cycles_on("undo@x86", variant, entries, memory)
}

fn cycles_on(design: &str, variant: &str, entries: u64, memory: &str) -> f64 {
    let line = format!(
        "{design} logcache machine=silo cores=1 txs={} workload.variant={variant} \
         workload.entries_per_fence={entries} workload.items=65536 \
         workload.log_in={memory} workload.array_in={memory}",
        4096 / entries
    );
    let answer = run(&line);
    answer["cycles"].as_f64().expect("cycles") / 4096.0
}

#[test]
fn more_entries_before_a_fence_make_every_durable_log_cheaper() {
    for memory in ["pm", "dram"] {
        for variant in &VARIANTS[1..] {
            let costs: Vec<f64> =
                [1, 2, 4, 8, 16].iter().map(|&k| cycles(variant, k, memory)).collect();
            // `clflush` waits for each line by itself, so it gains nothing once lines are full.
            let falls = |more: &f64, less: &f64| less < more || (less - more) / more < 0.02;
            assert!(costs.is_sorted_by(falls), "{variant} {memory}: {costs:?}");
            assert!(costs[4] < costs[0] / 2.0, "{variant} {memory}: {costs:?}");
        }
    }
}

#[test]
fn a_fence_waits_for_what_goes_past_the_caches_to_volatile_memory() {
    let (fenced, free) = (cycles("movnti8", 1, "dram"), cycles("movnti8", 16, "dram"));
    assert!(fenced > 2.0 * free, "{fenced} and {free}");
    assert!(cycles("cached+clwb", 1, "dram") > 1.5 * cycles("cached", 1, "dram"));
    // No persist buffer has it.
    for design in ["undo@eadr", "undo@hops", "undo@dpo"] {
        let waits = cycles_on(design, "movnti8", 1, "dram") / fenced;
        assert!((0.9..1.1).contains(&waits), "{design}: {waits}");
    }
}

#[test]
fn volatile_memory_that_is_too_small_says_so() {
    let request = crate::common::request(
        "undo@x86 logcache workload.log_in=dram workload.items=16777216 pm.device_size=128MiB",
    );
    let refused = lab::run(&request.to_string(), &lab::Control::default());
    let sentence = refused.expect_err("too small").to_string();
    assert!(sentence.contains("raise it with --set dram.device_size"), "{sentence}");
}
