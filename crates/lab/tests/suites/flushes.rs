//! What flushes cost their core: how many are under way, and where the others wait.

use std::fmt::Write as _;

use model::control::Control;
use serde_json::{Value, json};

use crate::common::{request, run};

fn cycles(row: &Value) -> u64 {
    row["cycles"].as_u64().expect("a number")
}

/// A core that flushes and never fences has no more flushes under way than its machine lets it.
#[test]
fn flushes_wait_for_those_before_them() {
    let run = |flushes: u64, fence| {
        run(&format!(
            "undo@x86 probe machine=silo cores=1 txs=200 workload.access=store+clwb \
             workload.items=1000 workload.fence={fence} core.flushes_in_flight={flushes}"
        ))
    };
    let waits = |row: &Value| row["stalls"]["store_buffer_full"].as_u64().expect("a number");
    let [one, two, many] = [1, 2, 1024].map(|flushes| run(flushes, "none"));
    // One flush after the other is what a fence behind each of them makes of a program.
    let fenced = run(1024, "sfence");
    assert!(cycles(&fenced) * 9 / 10 < cycles(&one), "{one}\n{fenced}");
    assert!(cycles(&two) < cycles(&one) && cycles(&many) < cycles(&two), "{one}\n{two}\n{many}");
    assert!(waits(&one) > waits(&two), "{one}\n{two}");
}

/// Behind more flushes than the store queue holds nothing dispatches, fence or none.
#[test]
fn flushes_that_wait_fill_the_store_queue() {
    let replay = |behind: &str| {
        let mut trace = format!("region 0x0 {}\nmeasured\n", 1 << 24);
        for (operation, value) in [("store", " 1"), ("flush", "")] {
            for line in 0..2_000 {
                writeln!(trace, "{operation} 0x{:x}{value}", 64 * line).expect("it fits");
            }
            trace += if operation == "store" { "fence\n" } else { behind };
        }
        let mut request = request("undo@x86 replay machine=optane cores=1 txs=1 warmup=1");
        request["script"] = json!(["flushes.trace", trace]);
        let text = lab::run(&request.to_string(), &Control::default()).expect("a run");
        cycles(&serde_json::from_str(&text).expect("an answer is JSON"))
    };
    let [flushes, work, fenced] = ["", "work 400000\n", "fence\nwork 400000\n"].map(replay);
    assert!(work > flushes + 95_000, "{flushes} cycles, {work} with 100,000 cycles of work");
    assert!(work <= fenced, "{work} cycles, {fenced} with a fence");
}

/// A flush is answered when its controller has accepted the line, even if a fence waits for the
/// cells: a store behind a flush waits no longer.
#[test]
fn one_store_in_flight_does_not_wait_for_the_cells() {
    let run = |domain: &str| {
        cycles(&run(&format!(
            "undo@x86 probe machine=hops cores=1 txs=100 workload.access=store+clwb \
             workload.items=1000 core.stores_in_flight=one pm.tWRITE=600ns \
             controller.domain={domain}"
        )))
    };
    let (media, adr) = (run("media"), run("adr"));
    assert!(media * 10 < adr * 11, "{media} cycles, {adr} where what is accepted is durable");
}
