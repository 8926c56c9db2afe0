//! Machines boot from what recovery left, run on, and are cut again: every design that promises
//! something keeps its promise in later lives, too.

use crate::common::{all_hold, crash, durable, tight, window};
use serde_json::{Value, json};

/// Settings under which logs, journals and slots come round, and what was sent first need not be
/// there first.
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
                     pm.tWRITE=400cycles";

/// The workloads that can go on, each as small as it can be.
const SMALL: &[&str] = &[
    "array txs=20",
    "bplustree txs=20 workload.order=4",
    "btree txs=20",
    "ctree txs=20",
    "echo txs=10 workload.items=20 workload.value=16 workload.key=8 workload.merge=2",
    "hash txs=20",
    "hashmap txs=20 workload.items=30",
    "memcached txs=20 workload.items=30",
    "probe txs=5 workload.items=200",
    "queue txs=20 workload.contents=padded",
    "rbtree txs=20 workload.alloc_meta=logged workload.count=stored workload.value=8",
    "sdg txs=20 workload.edges=undirected workload.degree=2",
    "sps txs=20",
    "sqlite txs=6 workload.rows=20",
    "tpcc txs=6 workload.districts=2 workload.stock=20 workload.lines=2",
    "tpcc txs=10 workload.rows=lean workload.index=array workload.stock=20 workload.lines=3",
    "vacation txs=20 workload.actions=mixed workload.user_percent=60",
    "ycsb txs=10 workload.fieldcount=2 workload.fieldlength=12",
    "memcached txs=30 workload.items=30 workload.transactions=calls",
    "tpcc txs=6 workload.districts=2 workload.stock=20 workload.index=bplustree workload.order=4",
];

#[test]
fn what_recovery_left_is_good_for_two_more_lives() {
    all_hold(durable().flat_map(|entry| {
        let name = entry.card.name;
        let lines = if entry.fields.iter().any(|field| field.name == "log_lines") {
            " design.log_lines=64"
        } else {
            ""
        };
        let line = |rest: &str| format!("{name} scribble lives=3{lines} {rest}");
        [
            line("txs=10 cores=2"),
            line(&format!("txs=30 cores=4 seed=2 nested=false {APART}")),
            line(&format!("txs=30 cores=2 seed=3 nested=false workload.large=16{}", tight(entry))),
        ]
    }));
}

#[test]
fn programs_go_on_with_the_data_that_they_find() {
    all_hold(durable().enumerate().flat_map(|(place, entry)| {
        let name = entry.card.name;
        // Each design runs a third of the workloads, and its neighbours the others.
        let own = SMALL.iter().skip(place % 3).step_by(3);
        own.map(move |small| {
            let (workload, rest) = small.split_once(' ').expect("a workload and its settings");
            // Designs that copy pages or order every store have many more crash points than others.
            let window = match workload {
                "sqlite" | "tpcc" => window(entry, 2),
                _ => String::new(),
            };
            format!("{name} {workload} cores=2 lives=3 nested=false points=700 {window} {rest}")
        })
        .collect::<Vec<_>>()
    }));
}

/// A campaign over several lives is a function of its words, and says how many lives there were.
#[test]
fn later_lives_are_the_same_every_time() {
    let line = "silo hash cores=2 txs=60 lives=3";
    let told = |answer: Value| {
        let names = ["points", "lives", "boots", "later_points", "later_nested_points"];
        names.map(|name| answer[name].as_u64().expect("a number"))
    };
    let [points, lives, boots, later, nested] = told(crash(line));
    assert_eq!([points, lives, boots, later, nested], told(crash(line)));
    assert_eq!((lives, boots), (3, 16));
    assert!(later > points && nested > later, "{later} {nested}");
}

/// A violation of a later life says which power failures came before.
#[test]
fn a_violation_of_a_later_life_says_what_came_before() {
    let answer = crash("redo@x86 scribble txs=60 lives=2 without=use_up_number_at_boot");
    let found = &answer["violations"][0];
    assert_eq!(found["life"], 2, "{answer}");
    let after = found["after"].as_array().expect("a list");
    assert_eq!(after.len(), 1);
    assert!(after[0]["event"].as_u64().is_some_and(|event| event > 0));
    // The campaign ends with the first life in which something is wrong.
    let others = answer["violations"].as_array().expect("a list").iter();
    assert!(others.into_iter().all(|other| other["after"] == found["after"]), "{answer}");
    assert!(answer["boots"].as_u64() < Some(8), "{}", answer["boots"]);
    let first = crash("redo@x86 scribble txs=60 lives=1 without=use_up_number_at_boot");
    assert_eq!(first["violations"], json!([]), "one life does not show it");
}

/// A script that inserts a key and deletes it cannot begin anew between the two, unless it is
/// measured whole: then it finds an empty database.
#[test]
fn a_script_has_one_life_unless_more_are_asked_for() {
    let ask = |request: &Value| lab::crash(&request.to_string(), &lab::Control::default());
    let mut request = crate::common::request("undo@x86 sqlite txs=20 cores=1 nested=false");
    let sql = "CREATE TABLE t (k INTEGER PRIMARY KEY);\n-- measured\n\
               INSERT INTO t VALUES (7);\nDELETE FROM t WHERE k = 7;\n";
    request["script"] = json!(["mine.sql", sql]);
    request.as_object_mut().expect("an object").remove("lives");
    let answer: Value = serde_json::from_str(&ask(&request).expect("right")).expect("JSON");
    assert_eq!((&answer["lives"], &answer["violations"]), (&json!(1), &json!([])));
    request["lives"] = 2.into();
    let error = ask(&request).expect_err("it cannot begin anew").to_string();
    assert!(error.contains("line 3: UNIQUE") && error.contains("life 2"), "{error}");
    request["script"] = json!(["mine.sql", sql.replace("-- measured", "")]);
    let answer: Value = serde_json::from_str(&ask(&request).expect("right")).expect("JSON");
    assert_eq!((&answer["lives"], &answer["violations"]), (&json!(2), &json!([])));
}

#[test]
fn a_workload_that_cannot_go_on_has_one_life() {
    let ask = |request: &Value| lab::crash(&request.to_string(), &lab::Control::default());
    let mut request = crate::common::request("silo logcache txs=1 points=3");
    request.as_object_mut().expect("an object").remove("lives");
    let answer: Value = serde_json::from_str(&ask(&request).expect("right")).expect("JSON");
    assert_eq!((&answer["lives"], &answer["boots"]), (&json!(1), &json!(0)));
    request["lives"] = 2.into();
    let error = ask(&request).expect_err("it cannot go on").to_string();
    assert!(error.contains("logcache") && error.contains("sqlite"), "{error}");
    request["lives"] = 17.into();
    assert_eq!(ask(&request).expect_err("too many").to_string(), "lives is 17; it takes 1 to 16");
}
