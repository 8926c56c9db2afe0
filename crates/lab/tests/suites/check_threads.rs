//! A trace of several threads that has the order in which they met: no other order is tried, and
//! what one thread has not made durable is missing where another one builds on it.

use crate::check::Bench;

/// A trace in which a thread stores a value, and another one, which has seen it, a second value
/// that says so.
fn trace(is_interleaved: bool, makes_durable: bool) -> String {
    let interleaved = if is_interleaved { "interleaved" } else { "" };
    let durable = if makes_durable { "flush 0x10000\nfence" } else { "flush 0x10000" };
    format!(
        "
        region 0x10000 4096
        {interleaved}
        measured
        thread 1
            work 1000
            store 0x10000 1
            {durable}
        thread 0
            load 0x10000
            store 0x10040 1
            flush 0x10040
            fence
            mark done"
    )
}

/// The second value is never there without the first, nor missing where the program said so.
const VERIFY: &str = r#"
    word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
    [ "$(word "$1" 64) $(word "$1" 0)" != "1 0" ] || { echo "it was not seen"; exit 1; }
    [ -z "$INDELIBLE_MARK_0" ] || [ "$(word "$1" 64)" = 1 ]"#;

#[test]
fn threads_go_on_in_the_order_that_was_recorded() {
    let bench = Bench::new(VERIFY);
    for design in ["undo@x86", "undo@hops", "undo@eadr"] {
        assert_eq!(
            bench.texts(&format!("{design} replay"), &trace(true, true)),
            [""; 0],
            "{design}"
        );
    }
    // Otherwise simulated time decides, in which the first thread is late.
    let early = bench.texts("undo@x86 replay", &trace(false, true));
    assert!(early[0].contains("it was not seen"), "{early:?}");
}

#[test]
fn what_another_thread_has_flushed_is_not_durable_before_that_ones_fence() {
    let texts = Bench::new(VERIFY).texts("undo@x86 replay", &trace(true, false));
    let expect = "memory has the store of line 11, and not that of line 7, flushed in line 8 with \
                  no fence of that thread since";
    assert!(texts[0].ends_with(expect), "{texts:?}");
    // Epochs order stores between threads, too.
    assert_eq!(Bench::new(VERIFY).texts("undo@hops replay", &trace(true, false)), [""; 0]);
}

#[test]
fn what_is_left_when_no_power_fails_is_known_of_an_order_that_was_recorded() {
    let trace = trace(true, true) + "\nthread 1\nstore 0x10000 0";
    let refusal =
        Bench::new(VERIFY).ask("undo@x86 replay", &trace).expect_err("it is wrong at the end");
    assert!(refusal.to_string().ends_with("on what the trace leaves when no power fails"));
}

/// The thread with the lower number stores last, and what it stores is there at the end.
#[test]
fn what_is_left_is_what_the_last_thread_stored_to_a_word() {
    const VERIFY: &str = r#"[ -z "$INDELIBLE_MARK_0" ] || [ "$(od -An -tu8 -N 8 "$1")" -eq 2 ]"#;
    let trace = "
        region 0x10000 4096
        interleaved
        measured
        thread 1
            store 0x10000 1
            flush 0x10000
            fence
        thread 0
            store 0x10000 2
            flush 0x10000
            fence
            mark done";
    assert_eq!(Bench::new(VERIFY).texts("undo@x86 replay", trace), [""; 0]);
    let unfenced = trace.replacen("fence\n            mark", "mark", 1);
    let texts = Bench::new(VERIFY).texts("undo@x86 replay", &unfenced);
    assert!(texts[0].contains("flushed in line 11 with no fence"), "{texts:?}");
}

#[test]
fn transactions_of_threads_are_checked_by_the_oracle() {
    let text = "
        interleaved
        region 0x10000 4096
        measured
        begin
        store 0x10000 1
        thread 1
        begin
        store 0x10100 1
        thread 0
        store 0x10040 2
        commit
        thread 1
        load 0x10040
        store 0x10140 2
        commit
        thread 0
        begin
        store 0x10100 3
        commit";
    for design in ["undo@x86", "silo", "lad", "hops", "loc-wal", "ssp", "kiln"] {
        // The trace is done once, whatever was asked for.
        let mut request = crate::common::request(&format!("{design} replay points=all txs=5"));
        request["script"] = serde_json::json!(["mine.trace", text]);
        let answer = crate::common::crash_as(&request);
        assert_eq!((&answer["cores"], &answer["txs"]), (&2.into(), &2.into()), "{answer}");
        // Three transactions do not fill a window: the run ends before one is durable.
        let is_checked = *design != *"loc-wal";
        assert_eq!(answer["checked"], is_checked, "{answer}");
        assert_eq!(answer["announced_few"], !is_checked, "{answer}");
        assert_eq!(answer["violations"], serde_json::json!([]), "{answer}");
    }
}

#[test]
fn what_is_done_once_has_no_warmup() {
    let run = |warmup: u64| {
        let mut request = crate::common::request("undo@x86 replay machine=tiny");
        request["script"] = serde_json::json!(["mine.trace", trace(true, true)]);
        request["warmup"] = warmup.into();
        lab::run(&request.to_string(), &lab::Control::default())
    };
    let row: serde_json::Value = serde_json::from_str(&run(0).expect("a run")).expect("JSON");
    assert_eq!((&row["cores"], &row["txs"]), (&2.into(), &2.into()), "{row}");
    let refusal = run(1).expect_err("it would all be done before measuring begins");
    assert_eq!(refusal.to_string(), "replay runs once; leave out `warmup`");
}

#[test]
fn what_a_thread_stores_has_left_its_core_when_the_next_one_goes_on() {
    let cycles = |says_so: &str| {
        let stores: String =
            (0..20).map(|line| format!("store {:#x} 1\n", 0x10000 + 64 * line)).collect();
        let trace = format!(
            "region 0x10000 4096\ninterleaved\nmeasured\n{stores}{says_so}\nthread 1\nwork 9999"
        );
        let mut request = crate::common::request("undo@x86 replay machine=silo");
        request["script"] = serde_json::json!(["mine.trace", trace]);
        let row = lab::run(&request.to_string(), &lab::Control::default()).expect("a run");
        let row: serde_json::Value = serde_json::from_str(&row).expect("JSON");
        row["cycles"].as_u64().expect("a number")
    };
    // A mark waits for the same, and for nothing else.
    assert_eq!(cycles(""), cycles("mark done"));
}
