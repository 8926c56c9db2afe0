//! Litmus tests: the table that the simulator comes with, what a wrong rule makes of it, and what a
//! bad file is told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab::Control;
use lab::litmus::file::{self, Test};
use lab::litmus::{Found, Hardware, TESTS, run};
use serde_json::{Value, json};

/// Where a power failure may leave the image. Everywhere else it must not.
const ALLOWED: &[(&str, &[&str])] = &[
    ("two_stores", &["dpo", "hops", "ideal", "x86"]),
    ("order_between", &["ideal"]),
    ("line_again", &["ideal"]),
    ("seen_by_another", &["ideal"]),
    ("volatile_flag", &["dpo", "hops", "ideal"]),
    ("durable_returned", &["ideal"]),
    ("older_value_returns", &["ideal"]),
    ("after_a_read", &["dpo", "hops", "ideal"]),
    ("overwritten_by_another", &["ideal"]),
    ("third_core", &["ideal"]),
    ("part_of_a_line", &["bbb", "dpo", "eadr", "hops", "ideal", "x86"]),
    ("value_between", &["bbb", "dpo", "eadr", "hops", "ideal", "x86"]),
];

/// What is allowed and does not happen: caches write a word's stores in their order, though nothing
/// promises it, and DPO's filters know loads behind a fence, which buffered epochs do not ask for.
const ALLOWED_AND_NOT_SEEN: &[(&str, &str)] =
    &[("older_value_returns", "ideal"), ("after_a_read", "dpo")];

pub fn ask(request: &Value) -> Result<Value, String> {
    let answer = lab::litmus(&request.to_string(), &Control::default());
    let answer = answer.map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(&answer).expect("an answer is JSON"))
}

#[test]
fn the_table_is_the_models() {
    let orders: Vec<&str> = crate::common::orders().map(|order| order.card.name).collect();
    if orders.is_empty() {
        return;
    }
    let orders: Vec<Value> = orders.iter().map(|name| json!({ "name": name })).collect();
    let answer = ask(&json!({ "orders": orders })).expect("an answer");
    let rows = answer["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), TESTS.len() * orders.len());
    let differ: String = rows.iter().filter_map(difference).collect();
    assert!(differ.is_empty(), "{differ}\nThe tables are in crates/lab/tests/suites/litmus.rs.");
}

/// Twelve lines that nothing orders may leave 4,096 images, of which not every one is made; three
/// lines have every one made.
#[test]
fn it_is_told_where_not_every_order_was_tried() {
    let sampled = |lines: usize| {
        let stores: String = (0..lines).map(|line| format!("store A{line} 1\n")).collect();
        let text = format!("thread\n{stores}image A0=1 A1=0\n");
        let request = json!({ "orders": [{ "name": "x86" }], "tests": [["it.litmus", text]] });
        ask(&request).expect("an answer")["rows"][0]["sampled"].as_u64().expect("a number")
    };
    assert_eq!(sampled(3), 0);
    assert!(sampled(12) > 0);
}

/// How a row differs from the tables above, as a sentence that says what would make them agree; or
/// what is wrong with it in any case.
fn difference(row: &Value) -> Option<String> {
    let (test, order) = (row["test"].as_str().expect("text"), row["order"].as_str().expect("text"));
    let again = format!("`indelible litmus --order {order}` shows it");
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == test) else {
        return Some(format!("`{test}` has no line in ALLOWED: list the orders that allow it.\n"));
    };
    if row["violation"] != Value::Null {
        let violation = &row["violation"];
        return Some(format!("{order} breaks its model in `{test}`: {violation}; {again}.\n"));
    }
    if row["counted"].as_u64() < Some(20) {
        return Some(format!("too few runs of `{test}` on {order} say anything: {row}.\n"));
    }
    let is_listed = allowed.contains(&order);
    let mend = match (row["allowed"] == true, is_listed) {
        (true, false) => format!("allows `{test}`: add \"{order}\" to its line in ALLOWED"),
        (false, true) => format!("forbids `{test}`: take \"{order}\" out of its line in ALLOWED"),
        _ => match (row["seen"] == true, ALLOWED_AND_NOT_SEEN.contains(&(test, order))) {
            (false, false) if is_listed => format!(
                "allows `{test}`, and no run left it: if that is so by its nature, add (\"{test}\", \
                 \"{order}\") to ALLOWED_AND_NOT_SEEN"
            ),
            (true, true) => format!(
                "left `{test}` in a run: take (\"{test}\", \"{order}\") out of ALLOWED_AND_NOT_SEEN"
            ),
            _ => return None,
        },
    };
    Some(format!("{order} {mend}; {again}.\n"))
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The table that people read says the same: `no`, `allowed` or `seen` of every test, for all
/// hardware there is.
#[test]
fn the_table_of_the_documentation_is_this_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/litmus.md");
    let text = std::fs::read_to_string(path).expect("docs/litmus.md");
    let table = text.split("## What the answers are").nth(1).expect("its section");
    let mut rows = table.lines().filter(|line| line.starts_with('|')).map(cells);
    let heads = rows.next().expect("heads").split_off(1);
    let told: Vec<&str> = heads.iter().flat_map(|head| head.split(", ")).collect();
    let mut differ = String::new();
    for order in designs::ORDERS.iter().map(|order| order.card.name) {
        if !told.contains(&order) {
            differ += &format!("{order} has no column in the table of docs/litmus.md.\n");
        }
    }
    let rows: Vec<Vec<&str>> = rows.skip(1).collect();
    for (test, allowed) in ALLOWED {
        let Some(row) = rows.iter().find(|row| row[0].trim_matches('`') == *test) else {
            differ += &format!("`{test}` has no line in the table of docs/litmus.md.\n");
            continue;
        };
        for (head, cell) in heads.iter().zip(&row[1..]) {
            for order in head.split(", ") {
                let expect = match allowed.contains(&order) {
                    false => "no",
                    true if ALLOWED_AND_NOT_SEEN.contains(&(*test, order)) => "allowed",
                    true => "seen",
                };
                if *cell != expect {
                    differ += &format!(
                        "docs/litmus.md says `{cell}` of `{test}` on {order}, and ALLOWED in \
                         crates/lab/tests/suites/litmus.rs says `{expect}`.\n"
                    );
                }
            }
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let orders = json!([{ "name": "hops" }, { "name": "x86" }]);
    let request = json!({ "orders": orders, "seed": 7 });
    assert_eq!(ask(&request), ask(&request));
}

/// A rule of HOPS, and a test whose image is seen without it.
const WRONG: &[(&str, &str)] = &[
    ("ofence_opens_epoch", "order_between"),
    ("oldest_epoch_first", "order_between"),
    ("keep_versions", "line_again"),
    ("order_after_read", "seen_by_another"),
    ("wait_for_dependences", "seen_by_another"),
    ("drop_evictions", "order_between"),
];

/// What HOPS leaves of a test, with a rule switched off.
fn ran(without: Option<&'static str>, test: &Test) -> Found {
    let hops = designs::ORDERS.iter().find(|order| order.card.name == "hops").expect("hops");
    let hops = Hardware { without, ..Hardware::of(hops) };
    run(&hops, test, 1, &Arc::default()).expect("room").expect("nobody cancels it")
}

/// Of each image that a test asks about, whether it is allowed, and seen.
fn known(found: &Found) -> Vec<(bool, bool)> {
    found.asked.iter().map(|known| (known.allowed, known.seen.is_some())).collect()
}

/// What is wrong in the images of a test.
fn violation(found: &Found, test: &Test) -> Option<String> {
    found.violation.as_ref().map(|wrong| wrong.text(test))
}

#[test]
fn a_wrong_rule_is_seen() {
    for (rule, name) in WRONG {
        let (path, text) = TESTS.iter().find(|(path, _)| path.starts_with(name)).expect("a test");
        let test = file::read(path, text).expect("a test");
        let found = ran(Some(rule), &test);
        assert!(found.violation.is_some(), "{name} without {rule}: {found:?}");
        assert!(found.asked[0].seen.is_some(), "{name} without {rule}: {found:?}");
    }
}

/// A rule may be wrong though the image that is asked about is not seen.
#[test]
fn whatever_the_hardware_leaves_is_judged() {
    let (path, text) = TESTS.iter().find(|(path, _)| path.starts_with("overwritten")).expect("it");
    let test = file::read(path, text).expect("a test");
    let found = ran(Some("order_after_write"), &test);
    assert!(violation(&found, &test).is_some_and(|text| text.starts_with("order: ")));
    let test =
        file::read("one.litmus", "thread\nstore A 1\ndurable\nstore B 1\ndurable\nimage A=0 B=1")
            .expect("a test");
    let found = ran(Some("dfence_waits"), &test);
    assert_eq!(known(&found), [(false, false)]);
    let text = violation(&found, &test).expect("what was durable is not there");
    assert_eq!(text, "order: the image holds 0x0 at A and lacks 0x1, which was durable");
}

/// DPO's filters know what a core loaded behind a fence, which buffered epochs do not ask for: a
/// store to that line by another core is ordered after the fence. A filter of one bit takes every
/// line for one of its own, and only adds order.
#[test]
fn filters_order_stores_after_loads_of_other_cores() {
    let dpo = designs::ORDERS.iter().find(|order| order.card.name == "dpo").expect("dpo");
    let (path, text) = TESTS.iter().find(|(path, _)| path.starts_with("after_a")).expect("it");
    let test = file::read(path, text).expect("a test");
    for (bits, is_seen) in [(0, true), (1, false), (8, false), (512, false)] {
        let settings = vec![("filter_bits".to_owned(), bits)];
        let dpo = Hardware { settings, ..Hardware::of(dpo) };
        let found = run(&dpo, &test, 1, &Arc::default()).expect("room").expect("not cancelled");
        assert!(found.violation.is_none(), "{bits} bits: {found:?}");
        assert_eq!(known(&found), [(true, is_seen)], "{bits} bits: {found:?}");
    }
}

/// Two cores that wait for each other's stores: without the split of the source's epoch the first
/// waits for an epoch that the second ends only when it has seen what the first stores after that.
pub const CROSSING: &str = "thread\n wait B 1\n store C 1\n durable\n store D 1\n\
    thread\n store B 1\n wait D 1\n durable\nimage C=0 D=1\n";

#[test]
fn cores_that_wait_for_each_other_are_seen() {
    let test = file::read("crossing.litmus", CROSSING).expect("a test");
    let found = ran(None, &test);
    assert_eq!(violation(&found, &test), None);
    let text = violation(&ran(Some("split_source"), &test), &test).expect("it is wrong");
    assert!(text.starts_with("liveness: core "), "{text}");
    assert_eq!(text.split_once(" never woken").expect("a wait").1, ", and nothing is due");
}

#[test]
fn a_run_in_which_a_load_finds_something_else_does_not_count() {
    let text = "thread\nstore A 1\nthread\nload A 1\nimage A=1";
    let found = ran(None, &file::read("one.litmus", text).expect("a test"));
    assert!(0 < found.counted && found.counted < found.runs, "{found:?}");
}

#[test]
fn a_thread_flushes_every_line_that_it_stored_to() {
    let text = "thread\nstore A 1\nstore B 1\ndurable\nstore C 1\nimage A=0 C=1";
    let x86 = designs::ORDERS.iter().find(|order| order.card.name == "x86").expect("x86");
    for text in [text.to_owned(), text.replace("A=0", "B=0")] {
        let test = file::read("lines.litmus", &text).expect("a test");
        let found = run(&Hardware::of(x86), &test, 1, &Arc::default()).expect("room");
        assert_eq!(known(&found.expect("not cancelled")), [(false, false)], "{text}");
    }
}

#[test]
fn a_test_that_is_cut_short_says_nothing() {
    let test = file::read("crossing.litmus", CROSSING).expect("a test");
    let cancelled = Arc::new(AtomicBool::new(true));
    let found = run(&Hardware::of(&designs::ORDERS[0]), &test, 1, &cancelled).expect("room");
    assert!(found.is_none());
}

/// What is set holds in every run: in the tests, and over what a random program sets.
#[test]
fn what_is_set_holds() {
    let hops = |settings: &[(&str, &str)]| json!({ "name": "hops", "settings": settings });
    let program = |order: Value, number: u64| {
        let request = json!({ "orders": [order], "program": number });
        let answer = ask(&request).expect("an answer");
        assert_eq!(answer["rows"], json!([]));
        answer["random"][0].clone()
    };
    // The second way to set hardware up is with one entry.
    assert_eq!(program(hops(&[]), 2)["program"]["settings"], json!(["entries=1"]));
    let set = program(hops(&[("design.entries", "3"), ("controller.domain", "media")]), 2);
    assert_eq!(set["program"]["settings"], json!(["entries=3"]));
    assert_eq!(set["program"]["machine"].as_array().map(|all| all.last().cloned()), {
        Some(Some(json!("controller.domain=media")))
    });
    let alone = program(hops(&[("controller.domain", "media")]), 2);
    assert_ne!(alone["images"], program(hops(&[]), 2)["images"]);
    let small = [("design.entries", "1"), ("controller.count", "2")];
    let rows =
        |order: Value| ask(&json!({ "orders": [order] })).expect("an answer")["rows"].clone();
    assert_ne!(rows(hops(&small)), rows(hops(&[])));
    for (path, says) in [
        ("design.size", "unknown parameter `size` of ordering hardware hops"),
        ("workload.items", "workload.items changes nothing here: a litmus test has no workload"),
        (
            "workload.element",
            "workload.element changes nothing here: a litmus test has no workload",
        ),
        ("silo.entries", "`silo` is a design that is not run here"),
    ] {
        let refused = ask(&json!({ "orders": [hops(&[(path, "1")])] }));
        let refused = refused.expect_err("it sets nothing");
        assert!(refused.starts_with(says), "{refused}");
    }
}

#[test]
fn random_programs_have_numbers_from_one_on() {
    for (asked, told) in [
        (json!({ "program": 0 }), "program is 0; it takes 1 to 1000000"),
        (json!({ "program": u64::MAX }), "program is 18446744073709551615; it takes 1 to 1000000"),
        (json!({ "random": 1_000_001 }), "random is 1000001; it takes 0 to 1000000"),
    ] {
        assert_eq!(ask(&asked).expect_err("there is none"), told);
    }
}

/// A rule that is switched off by name shows where the search for mutants says that it does.
#[test]
fn what_catches_a_mutant_is_repeated_by_its_number() {
    let hops = json!([{ "name": "hops" }]);
    let test = json!([["one.litmus", "thread\nstore A 1\nimage A=1"]]);
    let request = json!({ "orders": hops, "tests": test, "mutants": true });
    let mutants = ask(&request).expect("an answer")["mutants"].clone();
    let of_programs = |mutant: &&Value| !mutant["random"].is_null();
    let caught = mutants.as_array().expect("a list").iter().find(of_programs).expect("one");
    let alone = |without: Value| {
        let request = json!({ "orders": hops, "program": caught["random"], "without": without });
        ask(&request).expect("an answer")["random"][0].clone()
    };
    let again = alone(caught["rule"].clone());
    assert_eq!((&again["violation"], &again["number"]), (&caught["violation"], &caught["random"]));
    assert_eq!(alone(Value::Null)["violation"], Value::Null);
    let unknown = ask(&json!({ "orders": hops, "without": "order_open_epoch" }));
    let unknown = unknown.expect_err("there is none");
    assert!(unknown.starts_with("unknown rule `order_open_epoch` of ordering hardware hops"));
}

/// A test or a program in which something is wrong with the rule, too, shows nothing of it.
#[test]
fn what_is_wrong_with_a_rule_does_not_catch_its_absence() {
    let rule = "fence_waits";
    let (path, text) = TESTS.iter().find(|(path, _)| path.starts_with("durable")).expect("a test");
    let right = ["one.litmus", "thread\nstore A 1\nimage A=1"];
    let request = json!({
        "orders": [{ "name": "x86" }, { "name": "x86" }],
        "tests": [right, [path, text]],
        "without": rule,
        "mutants": true,
    });
    let answer = ask(&request).expect("an answer");
    let is_wrong = |row: &Value| !row["violation"].is_null();
    let wrong: Vec<bool> = answer["rows"].as_array().expect("rows").iter().map(is_wrong).collect();
    assert_eq!(wrong, [false, false, true, true]);
    let rows = answer["mutants"].as_array().expect("a list").iter();
    let own: Vec<&Value> = rows.filter(|row| row["rule"] == rule).collect();
    assert!(own.len() == 2 && own.iter().all(|row| row["caught"] == false), "{own:?}");
}

/// A file, and the whole sentence.
const MISTAKES: &[(&str, &str)] = &[
    ("", "mine.litmus, line 1: the test ends without an `image`"),
    ("thread\nstore A 1\n", "mine.litmus, line 2: the test ends without an `image`"),
    (
        "thread\nstor A 1\nimage A=0",
        "mine.litmus, line 2: unknown word `stor`; did you mean `store`? there are: store, work, \
          order, title, movnti, thread, volatile, load, wait, flush, fence, durable, line, image",
    ),
    (
        "thread\nstore A 1\nsfence\nimage A=0",
        "mine.litmus, line 3: there is no `sfence`: `order` flushes what the thread stored to and \
          fences, and `durable` waits until that is durable, too; `flush A` and `fence` do one \
          alone",
    ),
    ("store A 1", "mine.litmus, line 1: `store` must come after the first `thread`"),
    ("thread\nstore A", "mine.litmus, line 2: `store` must be followed by a variable and a value"),
    ("thread\nstore A 0x+1", "mine.litmus, line 2: `0x+1` is not a whole number of 64 bits"),
    ("thread\nstore A +5", "mine.litmus, line 2: `+5` is not a whole number of 64 bits"),
    ("thread\nstore A 0x1g", "mine.litmus, line 2: `0x1g` is not a whole number of 64 bits"),
    ("thread\nstore A 0xfF\nthread\nload A 255\nimage A=0xff", ""),
    ("thread\nstore A one", "mine.litmus, line 2: `one` is not a whole number of 64 bits"),
    (
        "thread\nstore 1A 1",
        "mine.litmus, line 2: `1A` is not a name; use letters, digits and `_`, beginning with a \
         letter",
    ),
    ("thread\nstore A 1\nimage A=7", "mine.litmus, line 3: no thread stores 7 to `A`"),
    ("thread\norder A", "mine.litmus, line 2: `order` must stand alone on its line"),
    ("thread\nwork", "mine.litmus, line 2: `work` must be followed by a number of instructions"),
    ("thread\nwork 99999", "mine.litmus, line 2: `work` may have at most 10000 instructions"),
    ("thread 1", "mine.litmus, line 1: `thread` must stand alone on its line; its steps follow"),
    (
        "thread\nthread\nthread\nthread\nthread",
        "mine.litmus, line 5: a test may have at most 4 threads",
    ),
    ("line", "mine.litmus, line 1: `line` must be followed by names of variables"),
    ("line A B C D E F G H I", "mine.litmus, line 1: a line must not have more than 8 words"),
    (
        "line A\nline B A",
        "mine.litmus, line 2: `A` already exists; declare it once, before its first use",
    ),
    (
        "thread\nstore A 1\nline B C",
        "mine.litmus, line 3: `line` must come before the first `thread`",
    ),
    ("thread\ntitle x", "mine.litmus, line 2: `title` must come before the first `thread`"),
    ("title", "mine.litmus, line 1: `title` must be followed by a few words"),
    (
        "thread\nstore A 1\nimage",
        "mine.litmus, line 3: `image` must be followed by values, such as `A=0 B=1`",
    ),
    ("thread\nstore A 1\nimage A", ""),
    ("thread\nflush", "mine.litmus, line 2: `flush` must be followed by a variable"),
    ("thread\nfence A", "mine.litmus, line 2: `fence` must stand alone on its line"),
    (
        "volatile F\nthread\nflush F",
        "mine.litmus, line 3: `F` is volatile: a flush of it does nothing",
    ),
    (
        "thread\nstore A 1\nimage A\nimage A=0",
        "mine.litmus, line 4: the image A=0 is already asked about",
    ),
    (
        "line A B C D E F G\nthread\nstore A 1\nstore B 1\nstore C 1\nstore D 1\nstore E 1\n\
         store F 1\nstore G 1\nimage A B C D E F\nimage G",
        "mine.litmus, line 11: a test may ask about at most 64 images",
    ),
    ("thread\nstore A 1\nimage B=1", "mine.litmus, line 3: unknown variable `B`; there are: A"),
    (
        "volatile F\nthread\nstore F 1\nimage F=1",
        "mine.litmus, line 4: `F` is volatile: no image holds it",
    ),
    (
        "thread\nstore A 1\nimage A=1\nthread",
        "mine.litmus, line 4: only another `image` may follow the image of a test",
    ),
    ("title a\ntitle b\nthread\nstore A 1\nimage A=1", "mine.litmus, line 2: a test has one title"),
    ("thread\nload A 0\nthread\nimage A=0\n# x", ""),
    ("line A\nthread\nimage A=0", "mine.litmus, line 3: no thread does anything"),
    (
        "thread\nwait A 1\nstore A 2\nimage A=2",
        "mine.litmus, line 2: it expects a value that no thread stores",
    ),
    (
        "thread\nload A 5\nthread\nstore A 1\nimage A=1",
        "mine.litmus, line 2: it expects a value that no thread stores",
    ),
    (
        "thread\nstore A 1\nimage A=1 A=0",
        "mine.litmus, line 3: `A` already has a value in the image",
    ),
];

#[test]
fn a_mistake_in_a_file_names_its_line() {
    let mut differ = String::new();
    for (text, expect) in MISTAKES {
        let found =
            ask(&json!({ "orders": [{ "name": "ideal" }], "tests": [["mine.litmus", text]] }));
        let found = found.err().unwrap_or_default();
        if found != *expect {
            differ += &format!("{text:?}\n    says      {found}\n    expected  {expect}\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
    let unknown = ask(&json!({ "orders": [{ "name": "hop" }] })).expect_err("a mistake");
    let start = "unknown ordering hardware `hop`; did you mean `hops`? there are: hops, ";
    assert!(unknown.starts_with(start), "{unknown}");
    for order in designs::ORDERS {
        assert!(unknown.contains(order.card.name), "{unknown}");
    }
    let design = |name: &str| ask(&json!({ "orders": [{ "name": name }] })).expect_err("a mistake");
    assert!(
        design("silo")
            .ends_with("litmus tests have none: `indelible crash --design silo` tests it")
    );
    assert!(design("undo@hops").ends_with("name `hops`, the hardware that it stands on"));
}

#[test]
fn ordering_hardware_is_explained() {
    let about = |name: &str| -> Value {
        let text = lab::explain(name, &[], None, None).expect("it is known");
        serde_json::from_str(&text).expect("an answer is JSON")
    };
    for order in designs::ORDERS {
        let name = order.card.name;
        let told = about(&format!("order:{name}"));
        assert_eq!((&told["name"], &told["kind"]), (&json!(name), &json!("order")));
        assert_eq!(told["rules"].as_array().map(Vec::len), Some(order.rules.len()));
        assert_eq!(told["params"].as_array().map(Vec::len), Some(order.fields.len()));
        let on_it = |design: &Value| design == name || design.as_str().unwrap().ends_with(name);
        let pairings = told["pairings"].as_array().expect("a list");
        assert!(pairings.iter().any(on_it), "{told}");
        // A name that something else has, too, stands for that.
        let others = ["design", "machine"].map(|kind| format!("{kind}:{name}"));
        let is_taken = others.iter().any(|other| lab::explain(other, &[], None, None).is_ok());
        assert_eq!(about(name) == told, !is_taken, "{name}");
    }
    let x86 = about("x86");
    assert!(x86["pairings"].as_array().unwrap().contains(&json!("s-wal")));
    let waits = x86["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "fence_waits");
    assert_eq!(waits.unwrap()["needless"][0]["design"], "s-wal");
}

/// The words of the format, as docs/litmus.md gives them.
#[test]
fn variables_lie_where_the_file_says() {
    let text = "title words of a line\nline A B\nvolatile F G\nthread\nstore B 1 # a comment\n\
        load F 0\nwork 5\nwait A 0\nstore C 2\ndurable\nimage A=0 C=2\n";
    let test = file::read("some/where/one.litmus", text).expect("a test");
    assert_eq!((test.name.as_str(), test.title.as_str()), ("one", "words of a line"));
    let [file::Step::Store(b, 1), file::Step::Load(f, 0), .., file::Step::Store(c, 2), _] =
        test.threads[0][..]
    else {
        panic!("{test:?}")
    };
    let [(a, 0), (other, 2)] = test.images[0].words[..] else { panic!("{test:?}") };
    assert_eq!((b, other.address()), (a.address() + 8, c));
    assert_ne!(b / 64, c / 64);
    assert!(f >= model::units::DRAM_BASE);
}

/// A variable without a value stands for every one that it may hold.
#[test]
fn a_test_may_ask_about_several_images() {
    let text = "thread\nstore A 2\nmovnti B 1\nthread\nstore A 7\nimage A=7 B=1\nimage B=0 A\n";
    let test = file::read("several.litmus", text).expect("a test");
    let asked: Vec<&str> = test.images.iter().map(|image| image.text.as_str()).collect();
    assert_eq!(asked, ["A=7 B=1", "B=0 A=0", "B=0 A=2", "B=0 A=7"]);
}

/// What one kind of hardware says of every image of a test, as `allowed` and `seen`, in the order
/// of the values: the first variable changes last.
fn all_images(order: &str, steps: &str, image: &str) -> Vec<(bool, bool)> {
    let order = designs::ORDERS.iter().find(|other| other.card.name == order).expect("it");
    let text = format!("thread\n{steps}\nimage {image}\n").replace("; ", "\n");
    let test = file::read("steps.litmus", &text).expect("a test");
    let found = run(&Hardware::of(order), &test, 1, &Arc::default()).expect("room");
    let found = found.expect("not cancelled");
    assert_eq!(violation(&found, &test), None);
    known(&found)
}

/// A flush alone orders nothing, a fence alone makes nothing durable, and both together do; a store
/// past the caches needs a fence alone. On persist buffers a fence orders without a flush.
#[test]
fn a_flush_and_a_fence_do_one_thing_each() {
    const YES: (bool, bool) = (true, true);
    const NO: (bool, bool) = (false, false);
    let b_alone = |order, between: &str| {
        let steps = format!("store A 1; {between}store B 1; flush B; fence");
        all_images(order, &steps, "A=0 B=1")[0]
    };
    assert_eq!(b_alone("x86", ""), YES);
    assert_eq!(b_alone("x86", "flush A; "), YES);
    assert_eq!(b_alone("x86", "fence; "), YES);
    assert_eq!(b_alone("x86", "flush A; fence; "), NO);
    assert_eq!(b_alone("x86", "fence; flush A; "), YES);
    assert_eq!(b_alone("hops", ""), YES);
    assert_eq!(b_alone("hops", "flush A; "), YES);
    assert_eq!(b_alone("hops", "fence; "), NO);
    let past = |between: &str| {
        all_images("x86", &format!("movnti A 1; {between}movnti B 1; fence"), "A=0 B=1")[0]
    };
    assert_eq!((past(""), past("fence; ")), (YES, NO));
    // `order` flushes what a flush has not: B, and not A again.
    assert_eq!(
        all_images("x86", "store A 1; flush A; store B 1; order; store C 1", "C=1 A B"),
        [NO, NO, NO, YES]
    );
}

/// A program is too short to ask whether it was cancelled, and has no transactions at which it
/// would.
#[test]
fn what_is_cancelled_says_how_far_it_came() {
    let request = json!({ "orders": [{ "name": "hops" }, { "name": "x86" }], "random": 100_000 });
    let control = Control::default();
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.done() < TESTS.len() as u64 * 2 + 3 {
                std::thread::yield_now();
            }
            control.cancel();
        });
        lab::litmus(&request.to_string(), &control).expect("an answer")
    });
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["cancelled"], true);
    let rows = answer["random"].as_array().expect("a list");
    assert_eq!(rows.len(), 1, "the other hardware has run nothing");
    let ran = rows[0]["programs"].as_u64().expect("a number");
    assert!((3..100_000).contains(&ran), "{ran}");
    assert!(rows[0]["images"].as_u64() > Some(0), "{answer}");
}
