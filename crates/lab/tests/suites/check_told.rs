//! Which of a program's stores memory has, as a campaign with a checker tells: also where a word
//! holds a value that it held before.

use serde_json::{Value, json};

use crate::check::{Bench, GOOD, VERIFY as WHOLE};

/// A journal: while it is valid, its two lines may differ.
const JOURNAL: &str = "\
region 0x10000 192
measured
store 0x10000 1
flush 0x10000
fence
store 0x10040 5
flush 0x10040
store 0x10080 5
fence
store 0x10000 0
flush 0x10000
fence";

const VERIFY: &str = r#"
    word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
    [ "$(word "$1" 0)" = 1 ] || [ "$(word "$1" 64)" = "$(word "$1" 128)" ] || exit 1"#;

/// Returns what is said of memory when the checker refuses it.
fn told(verify: &str, line: &str, trace: &str) -> Vec<String> {
    let texts = Bench::new(verify).texts(line, trace);
    let memory = |text: &String| text.split("; ").last().unwrap_or_default().to_owned();
    texts.iter().map(memory).collect()
}

#[test]
fn a_flag_that_is_cleared_again_is_told_of_as_the_newer_store() {
    let expect = "memory has the store of line 10, and not that of line 8, never flushed";
    let of = |trace: &str| told(VERIFY, "undo@x86 replay", trace);
    assert_eq!(of(JOURNAL), [expect]);
    assert_eq!(of(&JOURNAL.replace("0x10000 0", "0x10000 2")), [expect]);
    // What a write-combining buffer held is durable behind the fence, too.
    assert_eq!(of(&JOURNAL.replace("store 0x10000", "ntstore 0x10000")), [expect]);
    // Without the first fence the flag may also be the one that is missing.
    let unordered = of(&JOURNAL.replacen("fence", "", 1));
    let early = "memory has the store of line 6, and not that of line 3, flushed in line 4 with no \
                 fence since";
    assert!(unordered.iter().any(|text| text == early), "{unordered:?}");
}

/// Four records that are never flushed, made by one line of the program, and then a value that is
/// not flushed either: the second mistake is told, too, and of the first one image.
#[test]
fn a_mistake_that_is_made_again_and_again_is_told_once() {
    let mut trace = "region 0x10000 1024\nmeasured\n".to_owned();
    for record in 1..=4 {
        let at = 0x10040 + 0x40 * record;
        trace += &format!("store {at:#x} {record} # a.c:10\n");
        trace += &format!("store 0x10000 {record} # a.c:11\nflush 0x10000\nfence\n");
    }
    trace += "store 0x10200 7 # b.c:20\nstore 0x10240 1 # b.c:21\nflush 0x10240\nfence\n";
    let verify = r#"
    word() { od -An -v -tu8 -j "$2" -N 8 "$1" | tr -d ' '; }
    count=$(word "$1" 0)
    for record in 1 2 3 4; do
        [ "$record" -gt "$count" ] || [ "$(word "$1" $((64 + 64 * record)))" = "$record" ] || {
            echo "record $record of $count is lost"
            exit 1
        }
    done
    [ "$(word "$1" 576)" = 0 ] || [ "$(word "$1" 512)" = 7 ] || exit 3"#;
    let answer = Bench::new(verify).answer("undo@x86 replay", &trace);
    let violations = answer["violations"].as_array().expect("a list");
    let told: Vec<String> = violations
        .iter()
        .map(|violation| {
            let sources = violation["missing"]["stores"].as_array().expect("a list").iter();
            let mut sources: Vec<&str> =
                sources.map(|store| store["source"].as_str().expect("it is known")).collect();
            sources.dedup();
            sources.join(" ")
        })
        .collect();
    assert!(told.len() < 5 && answer["stopped"] == false, "{told:?}");
    assert_eq!(told.first().map(String::as_str), Some("a.c:10"));
    assert!(told.contains(&"b.c:20".to_owned()), "{told:?}");
    let alike: u64 = violations.iter().filter_map(|violation| violation["alike"].as_u64()).sum();
    assert_eq!(answer["checker"]["refused"], alike + violations.len() as u64);
    assert!(alike > 10, "{answer}");
    assert_eq!(answer["checker"]["nothing_new"], false);
}

/// A thousand refusals that show nothing new end a campaign, which has then not come to all crash
/// points.
#[test]
fn a_campaign_ends_when_refusals_show_nothing_new() {
    let mut trace = "region 0x10000 64\nmeasured\n".to_owned();
    for value in 1..=1_200 {
        trace += &format!("store 0x10000 {value} # a.c:10\nflush 0x10000\nfence\n");
    }
    let verify = r#"
    held=$(od -An -v -tu8 -N 8 "$1" | tr -d ' ')
    [ "$held" = 0 ] || [ "$held" = 1200 ] || { echo "$held is there"; exit 1; }"#;
    let answer = Bench::new(verify).answer("undo@x86 replay", &trace);
    let checker = &answer["checker"];
    assert_eq!((&checker["nothing_new"], &checker["refused"]), (&json!(true), &json!(1_001)));
    assert_eq!((&answer["stopped"], &answer["crash_points"]), (&json!(true), &Value::Null));
    let alike: Vec<&Value> =
        answer["violations"].as_array().expect("a list").iter().map(|row| &row["alike"]).collect();
    assert_eq!(alike, [1_000]);
}

/// Where stores are durable when they are visible, each one that was made is there; behind a fence
/// of HOPS, all of its core's stores are.
#[test]
fn where_stores_need_no_flush_the_newest_one_is_told() {
    // The journal ends before its second line is right.
    let late = JOURNAL.replace("0x10080 5", "0x10080 6") + "\nstore 0x10080 5";
    for design in ["undo@eadr", "undo@bbb", "undo@hops", "undo@dpo"] {
        let told = told(VERIFY, &format!("{design} replay"), &late);
        assert_eq!(told, ["memory has the stores up to line 10"], "{design}");
    }
}

#[test]
fn a_store_that_a_fence_made_durable_is_there_also_if_it_stored_zero() {
    let trace = "\
region 0x10000 128
measured
store 0x10000 0
flush 0x10000
fence
mark it is cleared
store 0x10040 1";
    let verify = r#"
        [ -z "$INDELIBLE_MARK" ] || [ "$(od -An -v -tu8 -j 64 -N 8 "$1" | tr -d ' ')" = 1 ]"#;
    assert_eq!(told(verify, "undo@x86 replay", trace), ["memory has the stores up to line 3"]);
}

/// It is known which transactions memory holds.
#[test]
fn a_flag_that_transactions_set_and_clear_is_told_of_as_the_newer_store() {
    let trace = "\
region 0x10000 192
measured
begin
store 0x10000 1
commit
begin
store 0x10040 5
store 0x10080 6
commit
begin
store 0x10000 0
commit
begin
store 0x10080 5
commit";
    for design in ["silo", "undo@x86", "redo@x86", "kiln", "ssp"] {
        let told = told(VERIFY, &format!("{design} replay"), trace);
        assert_eq!(told, ["memory has the stores up to line 11"], "{design}");
    }
}

/// A checker that wants two words of two lines to be alike.
const ALIKE: &str = r#"
    word() { od -An -v -tu4 -j "$2" -N 4 "$1" | tr -d ' '; }
    [ "$(word "$1" 60)" = "$(word "$1" 64)" ]"#;

#[test]
fn of_one_store_to_two_lines_the_part_that_is_missing_is_told() {
    let trace = "\
region 0x10000 128
measured
bytes 0x1003c 0700000007000000 # tear.c:3
flush 0x10000
flush 0x10040
fence";
    let part = "memory has only a part of the store of line 3 (tear.c:3)";
    let told = told(ALIKE, "undo@x86 replay", trace);
    assert!(told.contains(&format!("{part}, in the middle of which the power failed")), "{told:?}");
    let unfenced = format!("{part}, flushed in line 4 with no fence since");
    assert!(told.contains(&unfenced), "{told:?}");
    assert!(told.iter().all(|text| text.starts_with(part)), "{told:?}");
}

/// A mark that stands before the fence promises too much.
#[test]
fn a_promise_that_is_broken_is_told_with_the_store_that_is_missing() {
    let (before, mark) = GOOD.rsplit_once("fence\n").expect("a fence");
    let early = format!("{before}{mark}\n    fence");
    let found = Bench::new(WHOLE).answer("undo@x86 replay", &early);
    let of = |found: &Value| found["text"].as_str().unwrap_or_default().to_owned();
    let all: Vec<Value> = found["violations"].as_array().expect("a list").clone();
    let said = all.iter().find(|found| of(found).contains("said to be written")).expect("it is");
    let expect = "memory has the stores up to line 4, and not that of line 8, flushed in line 9 \
                  with no fence since";
    assert!(of(said).ends_with(expect), "{said}");
    let store =
        |line, address| json!({ "line": line, "source": null, "address": address, "thread": 0 });
    let there = json!([store(3, "0x1080"), store(4, "0x10c0")]);
    assert_eq!(said["there"], json!({ "stores": there, "total": 2 }));
    assert_eq!(said["missing"], json!({ "stores": [store(8, "0x1000")], "total": 1 }));
}

/// Of five lines that may each be there or not there are more images than are made.
#[test]
fn where_not_every_image_is_tried_that_is_counted() {
    let stores = |lines: u64| {
        let each = (0..lines).map(|line| format!("store {} 1\n", 0x10000 + 64 * line));
        format!("region 0x10000 4096\nmeasured\n{}mark done", each.collect::<String>())
    };
    let sampled = |design: &str, lines| {
        let line = format!("{design} replay check=/bin/true");
        Bench::new("").answer(&line, &stores(lines))["checker"]["sampled"].as_u64()
    };
    assert_eq!(sampled("undo@x86", 4), Some(0));
    assert!(sampled("undo@x86", 5) > Some(0));
    assert_eq!(sampled("undo@hops", 1), Some(0));
    assert!(sampled("undo@hops", 9) > Some(0));
    assert_eq!(sampled("undo@eadr", 9), Some(0));
}
