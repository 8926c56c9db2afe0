//! Timelines of litmus tests: how an image came about.

use lab::litmus::TESTS;
use serde_json::{Value, json};

use crate::litmus::{CROSSING, ask};

/// The first image is one of timing's, and the second needs a write to come early.
#[test]
fn an_image_that_was_seen_has_a_timeline_if_that_is_asked_for() {
    let text = "thread\nstore A 1\nstore B 1\norder\nimage A=1 B=0\nimage A=0 B=1\n";
    let mut request =
        json!({ "orders": [{ "name": "x86" }], "tests": [["here/two.litmus", text]] });
    let rows = ask(&request).expect("an answer")["rows"].clone();
    let told: Vec<&Value> = (0..2).map(|place| &rows[place]["timeline"]).collect();
    assert_eq!(told, [&Value::Null, &Value::Null]);
    request["timelines"] = json!(true);
    let rows = ask(&request).expect("an answer")["rows"].clone();
    for (row, order, image) in [(&rows[0], 0, "A=1 B=0"), (&rows[1], 1, "A=0 B=1")] {
        assert_eq!((&row["image"], &row["seen"]), (&json!(image), &json!(true)));
        assert_eq!((&row["file"], &row["test"]), (&json!("here/two.litmus"), &json!("two")));
        let timeline = &row["timeline"];
        assert_eq!(timeline["order"], order, "{timeline}");
        let early: Vec<&Value> = timeline["early"].as_array().expect("a list").iter().collect();
        assert_eq!(early.len(), order, "{timeline}");
        let stored: Vec<&str> =
            lane(timeline, "program").into_iter().map(|(what, _)| what).collect();
        assert_eq!(stored[..2], ["store A", "store B"]);
    }
}

/// The row of a test on hardware without a rule.
fn row_of((order, rule): (&str, &str), test: (&str, &str)) -> Value {
    let orders = json!([{ "name": order }]);
    let request = json!({ "orders": orders, "tests": [test], "without": rule });
    ask(&request).expect("an answer")["rows"][0].clone()
}

/// The events of a timeline in some lane, each as what and when.
fn lane<'a>(timeline: &'a Value, lane: &str) -> Vec<(&'a str, u64)> {
    let events = timeline["events"].as_array().expect("rows").iter();
    let of_lane = events.filter(|event| event["lane"] == lane);
    let told = of_lane.map(|event| (event["what"].as_str(), event["from"].as_u64()));
    told.map(|(what, from)| (what.expect("a name"), from.expect("cycles"))).collect()
}

/// A controller has the later store, and not the earlier: the power fails before it accepts that.
#[test]
fn a_timeline_shows_how_timing_left_a_forbidden_image() {
    let test = TESTS.iter().find(|(path, _)| path.starts_with("seen_by_another")).expect("it");
    let row = row_of(("hops", "order_after_read"), *test);
    let lacks = "order: the image holds 0x0 at Flag and lacks 0x1, which comes before the store \
        of 0x1 to B by core 1, which is there or comes before one that is";
    assert_eq!(row["violation"], lacks);
    let timeline = &row["timeline"];
    assert_eq!((&timeline["order"], &timeline["early"]), (&json!(0), &json!([])));
    let program = lane(timeline, "program");
    let at = |what: &str| {
        program.iter().find(|(other, _)| *other == what).map(|(_, at)| *at).expect(what)
    };
    assert!(at("store A") < at("store Flag") && at("store Flag") < at("store B"), "{program:?}");
    let queued = lane(timeline, "write-pending queue");
    let queued: Vec<&str> = queued.into_iter().map(|(what, _)| what).collect();
    assert!(queued.contains(&"data B") && !queued.contains(&"data Flag"), "{queued:?}");
    let cut = timeline["cut"].as_u64().expect("a cycle");
    assert_eq!(lane(timeline, "power"), [("power failure", cut)]);
    let events = timeline["events"].as_array().expect("rows");
    assert!(events.iter().all(|event| event["until"].as_u64() <= Some(cut)), "nothing follows");
}

/// Of an order that timing did not produce the timeline says what came early in the image.
#[test]
fn a_timeline_shows_what_came_early() {
    let test = TESTS.iter().find(|(path, _)| path.starts_with("order_between")).expect("it");
    let timeline = &row_of(("hops", "ofence_opens_epoch"), *test)["timeline"];
    assert_ne!(timeline["order"], 0);
    assert_eq!(timeline["early"], json!([{ "line": "B", "class": "data", "bytes": 64 }]));
    let program: Vec<&str> = lane(timeline, "program").into_iter().map(|(what, _)| what).collect();
    assert_eq!(program, ["store A", "clwb A", "fence, order", "store B"]);
    assert_eq!(lane(timeline, "write-pending queue"), []);
}

/// Random programs have addresses, as their steps do.
#[test]
fn a_random_program_has_a_timeline() {
    let request = json!({ "orders": [{ "name": "hops" }], "program": 490 });
    let with = ask(&request).expect("an answer")["random"][0].clone();
    assert_eq!((&with["violation"], &with["timeline"]), (&Value::Null, &Value::Null));
    let mut request = request;
    request["without"] = json!("line_in_order");
    let row = &ask(&request).expect("an answer")["random"][0];
    let (timeline, violation) = (&row["timeline"], row["violation"].as_str().expect("it is wrong"));
    assert_eq!(timeline["machine"], row["program"]["machine"]);
    let stored: Vec<&str> = lane(timeline, "program").into_iter().map(|(what, _)| what).collect();
    // The store that is missing and the one that is there.
    for place in ["0x1c8", "0x188"] {
        assert!(violation.contains(place), "{violation}");
        assert!(stored.contains(&format!("store {place}").as_str()), "{stored:?}");
    }
}

/// The run is made again on its own machine: with one controller nothing is wrong.
#[test]
fn a_run_that_needs_two_controllers_has_its_timeline() {
    let test = TESTS.iter().find(|(path, _)| path.starts_with("order_between")).expect("it");
    let timeline = &row_of(("dpo", "all_controllers_report"), *test)["timeline"];
    assert_eq!(timeline["machine"][0], "controller.count=2");
    assert!(timeline["cut"].is_u64(), "{timeline}");
}

/// Of cores that wait for each other it is shown what they did, and that nothing follows.
#[test]
fn cores_that_wait_for_each_other_have_a_timeline() {
    let row = row_of(("hops", "split_source"), ("crossing.litmus", CROSSING));
    let timeline = &row["timeline"];
    assert_eq!((&timeline["event"], &timeline["cut"]), (&Value::Null, &Value::Null));
    let program: Vec<&str> = lane(timeline, "program").into_iter().map(|(what, _)| what).collect();
    assert_eq!(program, ["store B", "store C", "clwb C", "fence, durability"]);
    assert_eq!(lane(timeline, "waits"), [], "the fence is never done");
}
