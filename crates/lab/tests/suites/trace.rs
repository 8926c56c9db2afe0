//! Timelines: what they record is what the run counted, and recording changes nothing.

use std::collections::BTreeMap;

use lab::{Control, crash, run, trace};
use serde_json::{Value, json};

/// A timeline of a run, or of a part of it.
fn timeline(run: &Value, asked: &Value) -> Result<Value, String> {
    let mut request = json!({ "run": run, "from": "0ns", "length": "1s" });
    for (name, value) in asked.as_object().expect("fields") {
        request[name] = value.clone();
    }
    let answer = trace(&request.to_string(), &Control::default());
    answer.map(|(text, _)| read(&text)).map_err(|error| error.text)
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn spec(design: &str, workload: &str) -> Value {
    json!({
        "design": design, "workload": workload, "machine": "tiny", "cores": 2, "txs": 60,
        "warmup": 0,
    })
}

fn events(timeline: &Value) -> &Vec<Value> {
    timeline["events"].as_array().expect("rows")
}

fn cycles(event: &Value) -> u64 {
    event["until"].as_u64().expect("cycles") - event["from"].as_u64().expect("cycles")
}

type Settings = &'static [(&'static str, &'static str)];

/// Designs that wait for different things on different machines.
const RUNS: [(&str, &str, Settings); 6] = [
    ("undo@x86", "hash", &[]),
    ("silo", "btree", &[]),
    ("lad", "queue", &[]),
    ("hops", "hash", &[("controller.count", "2")]),
    ("ssp", "sps", &[]),
    ("s-wal", "array", &[("core.model", "inorder"), ("controller.domain", "media")]),
];

fn every_run(check: impl Fn(&str, &Value, &Value)) {
    for (design, workload, settings) in RUNS {
        let mut spec = spec(design, workload);
        spec["settings"] =
            settings.iter().copied().collect::<BTreeMap<_, _>>().into_iter().collect();
        let timeline = timeline(&spec, &json!({})).expect("a timeline");
        check(design, &spec, &timeline);
    }
}

#[test]
fn recording_changes_nothing() {
    every_run(|design, spec, timeline| {
        let mut plain = read(&run(&spec.to_string(), &Control::default()).expect("a run"));
        let mut recorded = timeline["run"].clone();
        for row in [&mut plain, &mut recorded] {
            row["host"] = Value::Null;
        }
        assert_eq!(plain, recorded, "{design}");
    });
}

#[test]
fn waits_are_the_stalls() {
    every_run(|design, _, timeline| {
        let mut waits: BTreeMap<String, u64> = BTreeMap::new();
        for event in events(timeline).iter().filter(|event| event["lane"] == "waits") {
            let what = event["what"].as_str().expect("a name").replace(' ', "_");
            *waits.entry(what).or_default() += cycles(event);
        }
        assert!(!waits.is_empty(), "{design}");
        let stalls = timeline["run"]["stalls"].as_object().expect("stalls");
        // A core that is done before the others has no wait of its own for that.
        for (name, counted) in
            stalls.iter().filter(|(name, _)| !["compute", "other"].contains(&&***name))
        {
            assert_eq!(
                waits.get(name).copied().unwrap_or(0),
                counted.as_u64().expect("cycles"),
                "{design}: {name}"
            );
        }
    });
}

#[test]
fn every_accepted_write_is_in_a_queue() {
    every_run(|design, _, timeline| {
        let queued = events(timeline).iter().filter(|event| event["lane"] == "write-pending queue");
        let held: u64 =
            queued.map(|event| event["args"]["writes"].as_u64().expect("a number")).sum();
        let counted = timeline["run"]["pm_writes"]["wpq_writes"].as_u64().expect("a number");
        assert!(counted > 0 && held == counted, "{design}: {held} in queues, {counted} accepted");
    });
}

#[test]
fn every_transaction_has_its_commit() {
    every_run(|design, _, timeline| {
        let of = |lane, what: &'static str| {
            let rows = events(timeline).iter().filter(move |event| event["lane"] == lane);
            rows.filter(move |event| event["what"].as_str().expect("a name").starts_with(what))
                .count()
        };
        assert_eq!((of("program", "transaction"), of("commits", "commit")), (120, 120), "{design}");
    });
}

#[test]
fn a_read_of_a_bank_is_within_its_fetch() {
    for machine in ["tiny", "silo"] {
        let mut spec = spec("undo@x86", "hash");
        spec["machine"] = machine.into();
        let timeline = timeline(&spec, &json!({})).expect("a timeline");
        let address = |event: &Value| {
            let what = event["what"].as_str().expect("a name");
            what.rsplit(' ').next().map(str::to_owned)
        };
        let of = |lane: &'static str, what: &'static str| {
            events(&timeline).iter().filter(move |event| {
                let (own, name) = (event["lane"].as_str(), event["what"].as_str());
                own.is_some_and(|own| own.starts_with(lane))
                    && name.is_some_and(|name| name.starts_with(what))
            })
        };
        let mut reads = 0;
        // What was asked for before measuring began has no fetch.
        for read in of("bank", "read").filter(|read| read["from"].as_u64() > Some(1_000)) {
            reads += 1;
            let within = of("fetches", "fetch").any(|fetch| {
                address(fetch) == address(read)
                    && fetch["from"].as_u64() <= read["from"].as_u64()
                    && read["until"].as_u64() <= fetch["until"].as_u64()
            });
            assert!(within, "{machine}: {read}");
        }
        assert!(reads > 100, "{machine}: {reads}");
    }
}

#[test]
fn a_window_is_a_part_of_the_whole() {
    let spec = spec("undo@x86", "hash");
    let whole = timeline(&spec, &json!({})).expect("a timeline");
    let part = timeline(&spec, &json!({ "from": "300ns", "length": "200ns" })).expect("one");
    let (from, until) = (part["from"].as_u64(), part["until"].as_u64());
    assert_eq!((from, until), (Some(300), Some(500)));
    let overlaps =
        |event: &&Value| event["from"].as_u64() < until && event["until"].as_u64() >= from;
    // Lines that queues hold when the run ends have no end in either timeline.
    let expected: Vec<&Value> = events(&whole).iter().filter(overlaps).collect();
    assert_eq!(events(&part).iter().collect::<Vec<_>>(), expected);
    assert!(expected.len() > 50, "{}", expected.len());
}

#[test]
fn an_address_is_followed_alone() {
    let spec = spec("undo@x86", "hash");
    let whole = timeline(&spec, &json!({})).expect("a timeline");
    let stored = |event: &&Value| event["what"].as_str().expect("a name").starts_with("store ");
    let store = events(&whole).iter().find(stored).expect("a store");
    let address = store["what"].as_str().expect("a name").trim_start_matches("store ");
    let own = timeline(&spec, &json!({ "address": address })).expect("a timeline");
    let lanes: Vec<&str> =
        events(&own).iter().map(|event| event["lane"].as_str().expect("one")).collect();
    for lane in ["program", "fetches", "arriving", "write-pending queue"] {
        assert!(lanes.contains(&lane), "{lane} is not in {lanes:?}");
    }
    assert!(events(&own).len() < events(&whole).len() / 4);
}

#[test]
fn a_violation_is_at_the_end_of_its_timeline() {
    let mut spec = spec("undo@x86", "hash");
    spec["without"] = "flush_log".into();
    spec.as_object_mut().expect("fields").remove("warmup");
    let found = read(&crash(&spec.to_string(), &Control::default()).expect("a campaign"));
    let violation = &found["violations"][0];
    let asked = json!({ "event": violation["event"], "length": "100ns" });
    let timeline = timeline(&spec, &asked).expect("a timeline");
    let last = events(&timeline).last().expect("an event");
    assert_eq!(last["what"], "power failure");
    let started = timeline["started"].as_u64().expect("a cycle");
    let cut = timeline["cut"].as_u64().expect("a cycle");
    assert_eq!(Some(cut + started), violation["cycle"].as_u64());
    assert_eq!(timeline["from"].as_u64(), Some(cut.saturating_sub(100)));
    assert!(events(&timeline).iter().all(|event| event["until"].as_u64() <= Some(cut)));
}

#[test]
fn a_window_that_is_too_long_is_told_how_long_one_may_be() {
    let spec = json!({ "design": "undo@x86", "workload": "queue", "machine": "tiny", "txs": 9000 });
    let error = timeline(&spec, &json!({})).expect_err("too much happens");
    let (told, length) = error.split_once("; lower --for to ").expect("a number");
    assert!(told.starts_with("more happens in 1s than a timeline holds, "), "{error}");
    let found = timeline(&spec, &json!({ "length": length })).expect("it is short enough");
    assert!(events(&found).len() > 200_000, "{length}: {}", events(&found).len());
}

#[test]
fn what_cannot_be_recorded_is_told() {
    let spec = spec("undo@x86", "hash");
    for (asked, told) in [
        (json!({ "length": "0ns" }), "for is 0 cycles"),
        (json!({ "length": "5" }), "for: "),
        (json!({ "from": "soon" }), "from: "),
        (json!({ "address": "0xg" }), "`0xg` is not an address"),
        (json!({ "address": "0x+40" }), "`0x+40` is not an address"),
        (
            json!({ "event": 10_000_000 }),
            "the run has no event 10000000; its crash points are 1 to",
        ),
    ] {
        let error = timeline(&spec, &asked).expect_err("it is impossible");
        assert!(error.starts_with(told), "`{error}` does not begin with `{told}`");
    }
}

#[test]
fn what_comes_after_a_power_failure_changes_nothing() {
    let up_to = |txs: u64| {
        let mut spec = spec("undo@x86", "array");
        spec["txs"] = txs.into();
        timeline(&spec, &json!({ "event": 100, "length": "200ns" })).expect("a timeline")
    };
    // So many that cores wait more often than a recorder remembers.
    let (short, long) = (up_to(20), up_to(40_000));
    assert_eq!(short["cut"], long["cut"]);
    assert_eq!(events(&short), events(&long));
}

/// The hardware that sends stores by itself sends none whose line the core is still waiting for.
#[test]
fn no_line_is_written_while_its_core_waits_for_it() {
    let plain = ["undo@hops", "redo@hops", "count@hops", "undo@dpo", "redo@dpo"];
    let at_once =
        ["undo@bbb", "redo@bbb"].map(|design| (design, json!({ "design.threshold": "1" })));
    for (design, settings) in plain.map(|design| (design, json!({}))).into_iter().chain(at_once) {
        let mut spec = spec(design, "hashmap");
        (spec["machine"], spec["cores"], spec["txs"]) = ("hops".into(), 1.into(), 400.into());
        spec["settings"] = settings;
        let timeline = timeline(&spec, &json!({ "from": "20us", "length": "60us" }));
        let timeline = timeline.expect("a timeline");
        let of_line = |event: &Value| {
            let (kind, line) = event["what"].as_str()?.split_once(' ')?;
            Some((kind.to_owned(), line.to_owned()))
        };
        let mut fetches: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        let span = |event: &Value| [&event["from"], &event["until"]].map(|at| at.as_u64());
        for event in events(&timeline).iter().filter(|event| event["lane"] == "fetches") {
            // What dispatched behind a store that waited for a fence has its line earlier.
            let is_earlier = event["args"]["earlier"].is_u64();
            if let (Some((_, line)), [Some(from), Some(until)], false) =
                (of_line(event), span(event), is_earlier)
            {
                fetches.entry(line).or_default().push((from, until));
            }
        }
        let arriving: Vec<&Value> =
            events(&timeline).iter().filter(|event| event["lane"] == "arriving").collect();
        assert!(arriving.len() > 100 && fetches.len() > 20, "{design}");
        for event in arriving {
            let (Some((_, line)), [Some(at), _]) = (of_line(event), span(event)) else { continue };
            let waited_for = fetches.get(&line).into_iter().flatten();
            let mut waited_for = waited_for.filter(|(from, until)| *from <= at && at < *until);
            assert_eq!(waited_for.next(), None, "{design} sends {line} by {at}");
        }
    }
}
