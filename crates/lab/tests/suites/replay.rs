//! `replay` on designs: the power is cut in traces of several threads, a program's own flushes and
//! fences take their time, and volatile memory is not logged.

use crate::common::request;
use lab::Control;
use lab::spec::{Spec, Usual};
use model::script::Script;
use serde_json::{Value, json};

type Ask = fn(&str, &Control) -> Result<String, lab::InputError>;

fn ask(line: &str, trace: &str, ask: Ask) -> Result<Value, lab::InputError> {
    let mut request = request(line);
    request["script"] = json!(["mine.trace", trace]);
    let answer = ask(&request.to_string(), &Control::default())?;
    Ok(serde_json::from_str(&answer).expect("an answer is JSON"))
}

fn answer(line: &str, trace: &str, how: Ask) -> Value {
    ask(line, trace, how).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Two threads that move amounts between what they share, behind locks, and keep something of their
/// own. One of them aborts.
const TWO_THREADS: &str = "
    region 0x10000 0x1000
    store 0x10000 100
    store 0x10040 100
    measured
    thread 0
        lock 0
        lock 1
        begin
        load 0x10000
        store 0x10000 ?
        store 0x10040 ?
        store 0x7f0000000000 3
        commit
        unlock 1
        unlock 0
        begin
        store 0x10083 ? 21
        commit
    thread 1
        lock 1
        begin
        load 0x10040
        store 0x10040 ? 4
        store 0x10100 ?
        abort
        begin
        store 0x10048 ?
        commit
        unlock 1
        begin
        store 0x10140 ?
        store 0x10148 ?
        commit";

#[test]
fn a_power_failure_leaves_transactions_of_a_trace_whole() {
    for design in ["silo", "undo@x86", "redo@hops", "lad", "kiln", "loc-wal", "ssp"] {
        let line = format!("{design} replay cores=2 txs=12 lives=2");
        let found = answer(&line, TWO_THREADS, lab::crash);
        assert_eq!(found["violations"], json!([]), "{line}");
        assert!(found["points"].as_u64() >= Some(12), "{line}: {found}");
    }
}

/// A program that publishes what it has not flushed: the oracle promises nothing of either store.
const OUTSIDE: &str = "
    region 0x10000 8192
    measured
    store 0x10040 42
    store 0x10000 0x10040
    flush 0x10000
    fence
    flush 0x10040
    fence";

#[test]
fn a_trace_of_which_nothing_is_promised_is_not_called_right() {
    let outside = OUTSIDE.to_owned();
    let volatile = OUTSIDE.replace("measured", "measured\nbegin\nstore 0x7f0000000000 3\ncommit");
    let aborted = OUTSIDE.replace("measured", "measured\nbegin\nstore 0x10080 3\nabort");
    for (trace, checked) in [(outside, false), (volatile, false), (aborted, true)] {
        for design in ["native", "lad", "undo@x86"] {
            let line = format!("{design} replay cores=1 txs=20");
            let crash = answer(&line, &trace, lab::crash);
            assert_eq!(crash["checked"], checked, "{line} {trace}");
            // Without transactions that is known before the power is cut anywhere.
            assert_eq!(crash["points"] != 0, trace.contains("begin"), "{line} {trace}");
            let notes = answer(&line, &trace, lab::run)["notes"].to_string();
            assert_eq!(notes.contains("nothing to make atomic"), !checked, "{notes}");
        }
    }
    let own = request("native logcache cores=1 txs=20").to_string();
    let own = lab::crash(&own, &Control::default()).expect("a campaign");
    assert!(own.contains(r#""checked":true"#), "it checks its own log: {own}");
}

#[test]
fn where_the_memory_of_a_trace_lies_is_told() {
    let line = "silo replay cores=2 txs=20";
    for how in [lab::run as Ask, lab::crash] {
        let notes = answer(line, OUTSIDE, how)["notes"].to_string();
        assert!(notes.contains("0x10000 to 0x12000 of the trace lie from 0x1000 on"), "{notes}");
    }
    let regions: String = (1..=6).map(|page| format!("region 0x{page}0000 64\n")).collect();
    let notes = answer(line, &format!("{regions}store 0x10000 1"), lab::run)["notes"].to_string();
    assert!(notes.contains("and 2 more regions"), "{notes}");
}

#[test]
fn a_rule_that_is_off_is_caught_in_a_trace() {
    for (design, rule) in [("undo@x86", "log_before_store"), ("silo", "undo_newest_first")] {
        let line = format!("{design} replay cores=4 txs=40 without={rule} design.entries=1");
        let line = if design == "silo" { line } else { line.replace(" design.entries=1", "") };
        let found = answer(&line, TWICE, lab::crash);
        assert_ne!(found["violations"], json!([]), "{line}");
    }
}

/// A word that is stored to again and again in a transaction of many words.
const TWICE: &str = "begin\nstore 0 ?\nstore 64 ?\nstore 128 ?\nstore 192 ?\nstore 0 ?\nstore 64 \
 ?\n\
    store 0 ?\ncommit\n";

/// The same stores, flushed and fenced by a program that has no transactions.
#[test]
fn flushes_and_fences_of_a_program_take_their_time() {
    let plain = "begin\nstore 0 ?\nstore 64 ?\ncommit\n";
    let flushed = "store 0 ?\nflush 0\nfence\nstore 64 ?\nflush 64\nfence\n";
    let written = |design: &str, trace| {
        let found = answer(&format!("{design} replay cores=1 txs=50"), trace, lab::run);
        (found["cycles"].as_u64(), found["pm_writes"]["wpq_bytes"].as_u64())
    };
    let (fast, none) = written("native", plain);
    assert_eq!(none, Some(0));
    // A design without flushes has nothing to do for them; software on x86 has.
    assert_eq!(written("native", flushed).1, Some(0));
    let (slow, bytes) = written("undo@x86", flushed);
    assert_eq!(bytes, Some(100 * 64));
    assert!(slow > fast, "{slow:?} {fast:?}");
    let (eadr, _) = written("undo@eadr", flushed);
    assert!(eadr < slow, "{eadr:?} {slow:?}");
}

/// Persist buffers bring stores past the caches to memory, and no other part writes them again.
#[test]
fn a_store_past_the_caches_is_written_once() {
    let line: String = (0..8).map(|word| format!("ntstore {} 5\n", word * 8)).collect();
    let trace = format!("{line}fence\nstore 64 ?\nflush 64\nntstore 72 6\nload 72\nfence\n");
    // HOPS writes whole lines, and what survives in a buffer stays there.
    for (order, bytes) in [("x86", 64 + 64 + 8), ("hops", 64 + 64), ("bbb", 0)] {
        let line = format!("undo@{order} replay cores=1 txs=50");
        let found = answer(&line, &trace, lab::run);
        let written = found["pm_writes"]["wpq_bytes"].as_u64();
        assert_eq!(written, Some(50 * bytes), "{order}");
        let found = answer(&line, &trace, lab::crash);
        assert_eq!(found["violations"], json!([]), "{order}");
    }
}

#[test]
fn what_is_volatile_is_not_logged() {
    let trace = "region 0 4096\nbegin\nstore 0x8000 ?\nload 0x8000\nstore 0x8008 ?\ncommit\n";
    for design in ["undo@x86", "redo@x86", "count@x86", "silo", "base", "loc-wal", "ssp"] {
        let found = answer(&format!("{design} replay cores=1 txs=50"), trace, lab::run);
        let class = &found["pm_writes"]["by_class"];
        assert_eq!(class["log"].as_u64(), Some(0), "{design}: {class}");
        assert_eq!(found["write_set"]["words_avg"].as_f64(), Some(0.0), "{design}");
    }
}

#[test]
fn a_trace_that_does_not_fit_says_what_to_do() {
    let refused = |line: &str, trace: &str| ask(line, trace, lab::run).expect_err(line).to_string();
    let said = refused("silo replay cores=1", "store 0x7f0000000000 1\n");
    assert!(said.ends_with("add `region` lines for persistent memory to mine.trace"), "{said}");
    let large = "region 0 67108864\nstore 0 1\n";
    let said = refused("silo replay cores=2", large);
    assert!(said.contains("--set pm.device_size=256MiB, or record less"), "{said}");
    answer("silo replay cores=2 pm.device_size=256MiB", large, lab::run);
    let said = refused("silo replay cores=1", "region 0 70368744177664\nstore 0 1\n");
    assert!(said.contains(" is free; record less"), "no machine has 64 TiB: {said}");
    let said = refused("silo replay cores=1", "region 0 1073741824\nstore 0 1\n");
    assert!(said.ends_with("or record less persistent memory than mine.trace has"), "{said}");
    let pages: String = (1..300).map(|page| format!("load {}\n", page * 4096)).collect();
    let wide = format!("region 0 64\nload 0\n{pages}");
    let said = refused("silo replay cores=1 dram.device_size=1MiB", &wide);
    assert!(said.ends_with("raise it with --set dram.device_size=..."), "{said}");
}

#[test]
fn the_advice_on_cores_is_what_the_trace_needs() {
    let said = |cores: u64| {
        let line = format!("silo replay cores={cores}");
        ask(&line, TWO_THREADS, lab::run).expect_err("2 threads").to_string()
    };
    let three = "mine.trace has 2 threads, and the number of cores, 3, is not a multiple of that; \
     use --cores 2";
    assert_eq!(said(3), three);
    let one = "mine.trace has 2 threads, and the number of cores, 1, is less; use --cores 2, and \
     --set core.cores_max=2 if the machine has fewer";
    assert_eq!(said(1), one);
}

/// A trace may have millions of operations, and a request makes its workload several times, but
/// what that reads of its script it reads once.
#[test]
fn all_workloads_of_a_request_have_the_same_script() {
    let mut request = request("native replay cores=1");
    request["script"] = json!(["mine.trace", "store 0x40 1\n"]);
    let spec = Spec::read(&request.to_string()).expect("a spec");
    let resolved = spec.resolve(Usual::RUN).expect("it is right");
    let of = |script: &Option<Script>| script.clone().expect("the user's");
    let copies = [
        of(&spec.clone().script),
        of(&resolved.script),
        of(&resolved.site().script),
        of(&spec.resolve(Usual::CAMPAIGN).expect("it is right").script),
    ];
    let another = Script::new("mine.trace", "store 0x40 1\n");
    assert!(copies.iter().all(|copy| copy.is(&copies[0])));
    assert!(!copies[0].is(&another));
}

/// A thread stores to a line, and another one loads that and stores to a line of its own.
const FOLLOWS: &str = "
    region 0x10000 8192
    interleaved
    measured
    thread 0
    store 0x10000 1
    thread 1
    load 0x10000
    store 0x10040 2
    fence
    thread 0
    fence";

/// Replays a trace once on a design, with a timeline. The answer is asked for a lane and the
/// beginning of a name, and returns when each such event began and ended.
fn happened(line: &str, trace: &str) -> impl Fn(&str, &str) -> Vec<(u64, u64)> {
    let mut request = json!({ "run": request(line), "from": "0ns", "length": "10us" });
    request["run"]["script"] = json!(["mine.trace", trace]);
    let (text, _) = lab::trace(&request.to_string(), &Control::default()).expect("a timeline");
    let timeline: Value = serde_json::from_str(&text).expect("JSON");
    move |lane, what| {
        let events = timeline["events"].as_array().expect("rows").iter();
        let is = |event: &&Value| {
            event["lane"] == lane && event["what"].as_str().is_some_and(|own| own.starts_with(what))
        };
        let span = |event: &Value| {
            let at = |end: &str| event[end].as_u64().expect("a cycle");
            (at("from"), at("until"))
        };
        events.filter(is).map(span).collect()
    }
}

#[test]
fn a_buffer_asks_for_an_epoch_no_earlier_than_it_hears_of_it() {
    let happened = happened("undo@hops replay cores=2 txs=1 warmup=0 design.poll=0", FOLLOWS);
    let (_, loaded) = happened("fetches", "fetch 0x")[0];
    let (sent, _) = happened("arriving", "data")[0];
    assert!(sent > loaded, "asked for at {sent}, before the line came at {loaded}");
}

#[test]
fn a_buffer_hears_of_room_at_a_controller_one_way_after_it_is_there() {
    let two = "region 0 8192\nmeasured\nstore 0 1\nstore 64 1\nfence";
    let line = "undo@dpo replay cores=1 txs=1 warmup=0 controller.noc_latency=50ns design.queue=1";
    let happened = happened(line, two);
    let [(first, accepted), (second, _)] = happened("arriving", "data")[..] else { panic!() };
    let way = first - happened("events", "Drain")[0].0;
    assert!(way >= 50, "{way}");
    assert!(second >= accepted + 2 * way, "{accepted} to {second}, a way is {way}");
}

#[test]
fn flushes_leave_a_core_one_a_cycle() {
    let three = "region 0 8192\nmeasured\nstore 0 1\nstore 64 1\nstore 128 1
        flush 0\nflush 64\nflush 128\nfence";
    let happened = happened("undo@x86 replay cores=1 txs=1 warmup=0", three);
    let sent: Vec<u64> = happened("arriving", "data").iter().map(|(from, _)| *from).collect();
    assert_eq!(sent[1..], [sent[0] + 1, sent[0] + 2]);
}

/// What another thread does in the middle of a transaction that has stored to a line, until that
/// ends: a transaction on other lines of the page, and a store to the line.
const OVERLAPPING: [&str; 2] = [
    "begin\nstore 0x10080 2\nthread 0\nstore 0x10100 1\ncommit\nthread 1\ncommit",
    "store 0x10008 2\nthread 0\ncommit",
];

/// The store would wait for the end of the transaction, which comes after it.
#[test]
fn an_order_that_a_design_cannot_keep_is_refused() {
    let traces = OVERLAPPING.map(|others| {
        format!(
            "region 0x10000 8192\ninterleaved\nmeasured\nbegin\nstore 0x10000 1\nthread 1\n{others}"
        )
    });
    let designs = ["silo", "undo-log", "ssp", "shadow-paging"];
    let cannot = [[false, false], [false, false], [false, true], [true, true]];
    for (design, cannot) in designs.into_iter().zip(cannot) {
        let line = format!("{design} replay machine=tiny cores=2");
        for (trace, cannot) in traces.iter().zip(cannot) {
            for how in [lab::run as Ask, lab::crash as Ask] {
                let told =
                    ask(&line, trace, how).map_or_else(|error| error.text, |_| String::new());
                let is_refused = told.contains(" cannot keep the order of the trace: a store of");
                assert_eq!(is_refused, cannot, "{line}, {trace}: {told}");
                assert_eq!(told.is_empty(), !cannot, "{line}, {trace}: {told}");
            }
        }
    }
    // No rule is to blame for it.
    let line = "shadow-paging replay machine=tiny cores=2 without=use_up_number";
    let text = ask(line, &traces[0], lab::crash).expect_err("it cannot be kept").text;
    assert!(text.starts_with("shadow-paging cannot keep the order of the trace"), "{text}");
}

/// It is done as it was recorded, and so is one run with one id.
#[test]
fn an_interleaved_trace_is_done_once_whatever_is_asked_for() {
    let trace = "region 0x10000 8192\ninterleaved\nmeasured\nbegin\nstore 0x10000 1\ncommit
        thread 1\nbegin\nstore 0x10040 1\ncommit\nbegin\nstore 0x10040 2\ncommit";
    let of = |txs: &str| {
        let row = answer(&format!("silo replay cores=2 {txs}"), trace, lab::run);
        (row["id"].clone(), row["cycles"].clone(), row["txs"].clone())
    };
    let once = of("");
    assert_eq!(once.2, 3);
    assert_eq!((of("txs=3"), of("txs=20")), (once.clone(), once));
}
