//! Each rule of each design, switched off, is caught: every guarantee has a mutant that breaks it,
//! and the same run with the rule is right.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::{crash, crash_as, request};
use designs::Entry;
use lab::Control;

/// For each case, the rules that are not caught in the first trials, each with the seed of the
/// trial that catches it. To begin there spares most of the search, four minutes of five; a rule
/// that is not caught there any more is looked for everywhere, and has to be noted again.
type Known = BTreeMap<String, BTreeMap<String, u64>>;

/// `UPDATE=1 cargo test mutants::` writes this file, and with `ONLY=mine` leaves other designs
/// alone.
fn known_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/mutants.json")
}

fn known() -> Known {
    let text = std::fs::read_to_string(known_path()).expect("snapshots/mutants.json is there");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Choices that make another design of one: other records, or records elsewhere.
const CHOICES: &[(&str, &str)] = &[
    ("count@x86", "design.log_place=ring"),
    ("morlog", "design.variant=b"),
    ("morlog-dp", "design.variant=b"),
    ("redo-log", "design.commit=counts"),
    ("redo-log", "design.conflict=durable"),
    ("redo@x86", "design.log_place=ring"),
    ("silo", "design.overflow=blocking"),
    ("undo@x86", "design.log_place=ring"),
];

/// A design, as it is or with a choice.
struct Case {
    entry: &'static Entry,
    choice: &'static str,
}

impl Case {
    /// Every design that has rules, or those of [`crate::common::only`], and each choice for it.
    fn all() -> impl Iterator<Item = Case> {
        let entries = crate::common::all().filter(|entry| !entry.rules.is_empty());
        entries.flat_map(|entry| {
            let own = CHOICES.iter().filter(|(name, _)| *name == entry.card.name);
            let choices = own.map(|(_, choice)| *choice);
            std::iter::once("").chain(choices).map(move |choice| Case { entry, choice })
        })
    }

    /// What the known rules are noted under.
    fn name(&self) -> String {
        format!("{} {}", self.entry.card.name, self.choice).trim_end().to_owned()
    }
}

/// Returns what is wrong with the mutants of a case, as text, and the trials in which rules were
/// caught.
fn uncaught(case: &Case, known: &BTreeMap<String, u64>) -> (String, BTreeMap<String, u64>) {
    let Case { entry, choice } = case;
    let name = entry.card.name;
    let line = format!("{name} scribble cores=2 txs=40 nested=false mutants=true lives=2 {choice}");
    let mut request = request(&line);
    request["caught_with"] = serde_json::json!(known);
    let answer = crash_as(&request);
    let mutants = answer["mutants"].as_array().expect("a list");
    let needless = answer["needless_rules"].as_array().expect("a list");
    assert_eq!(mutants.len() + needless.len(), entry.rules.len(), "{line}");
    let mut found = String::new();
    let mut seeds = BTreeMap::new();
    for mutant in mutants {
        if let Some(intact) = mutant.get("intact") {
            found += &format!("{line}: without any mutation: {intact}\n");
        }
        if mutant["caught"] != true {
            found += &format!("{line}: {} is not caught\n", mutant["rule"]);
            continue;
        }
        assert!(mutant["event"].is_u64(), "{mutant}");
        let seed = mutant["seed"].as_u64().expect("a seed");
        if seed > 1 {
            seeds.insert(mutant["rule"].as_str().expect("a name").to_owned(), seed);
        }
    }
    (found, seeds)
}

/// Each rule is as much of the progress as the campaign itself.
#[test]
fn what_is_done_moves_with_each_rule() {
    let request = request("undo-log scribble cores=2 txs=20 nested=false mutants=true");
    let control = Control::default();
    let seen = thread::scope(|scope| {
        let run = scope.spawn(|| lab::crash(&request.to_string(), &control).expect("a campaign"));
        let mut seen = std::collections::BTreeSet::new();
        while !run.is_finished() {
            seen.insert((control.total(), control.part()));
            thread::sleep(std::time::Duration::from_micros(100));
        }
        seen
    });
    let rules = designs::ALL.iter().find(|entry| entry.card.name == "undo-log").expect("it").rules;
    let share = control.total() / (1 + rules.len() as u64);
    assert_eq!(control.total(), share * (1 + rules.len() as u64));
    assert_eq!(control.done(), control.total());
    let totals = seen.iter().map(|&(total, _)| total).filter(|&total| total > 0);
    assert!(totals.clone().all(|total| total == control.total()), "{seen:?}");
    let named = rules
        .iter()
        .filter(|(rule, _)| seen.iter().any(|(_, part)| *part == format!("without {rule}")));
    assert!(named.count() > 0, "{seen:?}");
}

/// If the search for a rule was cut short, it is not known whether the rule would have been caught.
#[test]
fn a_rule_is_open_whose_search_was_interrupted() {
    let request = request("lad scribble cores=2 txs=20 nested=false mutants=true").to_string();
    let control = Control::default();
    control.cancel();
    let text = lab::crash(&request, &control).expect("a campaign");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let mutants = answer["mutants"].as_array().expect("a list");
    assert!(mutants.len() > 3, "{answer}");
    assert!(mutants.iter().all(|mutant| mutant["caught"].is_null()), "{answer}");
}

/// What is found about a rule is the same if others are looked for, too.
#[test]
fn one_rule_is_looked_for_alone() {
    let line = "undo-log scribble cores=2 txs=20 nested=false mutants=";
    let [all, one] = ["true", "clear_filter_at_commit"].map(|mutants| {
        let answer = crash_as(&request(&format!("{line}{mutants}")));
        assert_eq!(answer["needless_rules"], serde_json::json!([]), "{answer}");
        answer["mutants"].as_array().expect("a list").clone()
    });
    assert!(all.len() > 3, "{all:?}");
    let same: Vec<_> = all.into_iter().filter(|row| row["rule"] == one[0]["rule"]).collect();
    assert_eq!(one, same);
}

/// Which thread looks for which rule changes nothing, and what is done is all of it.
#[test]
fn any_number_of_threads_finds_the_same() {
    let request = request("lad scribble cores=2 txs=20 nested=false mutants=true").to_string();
    let [alone, together] = [1, 3].map(|threads| {
        let control = Control::with_threads(threads);
        let text = lab::crash(&request, &control).expect("a campaign");
        assert_eq!(control.done(), control.total(), "{threads}");
        let mut answer: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        for of_the_host in ["seconds", "points_per_s"] {
            answer.as_object_mut().expect("an object").remove(of_the_host).expect("a number");
        }
        answer
    });
    assert!(alone["mutants"].as_array().is_some_and(|mutants| mutants.len() > 3), "{alone}");
    assert_eq!(alone, together);
}

/// Cases take from a tenth of a second to a minute: each of two threads takes the next one.
#[test]
fn every_rule_is_needed_and_every_mutant_caught() {
    let is_update = std::env::var_os("UPDATE").is_some();
    let known = known();
    let cases: Vec<_> = Case::all().collect();
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(known.clone());
    let search = || {
        let mut found = String::new();
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let nothing = BTreeMap::new();
            let name = case.name();
            let (wrong, seeds) = uncaught(case, known.get(&name).unwrap_or(&nothing));
            found += &wrong;
            caught.lock().expect("no thread panicked").insert(name, seeds);
        }
        found
    };
    let found: String = thread::scope(|scope| {
        let other = scope.spawn(search);
        search() + &other.join().expect("the search ends")
    });
    let caught = caught.into_inner().expect("no thread panicked");
    if is_update {
        let text = serde_json::to_string_pretty(&caught).expect("it is JSON");
        std::fs::write(known_path(), text + "\n").expect("a file");
    }
    assert!(found.is_empty(), "{found}");
    let names = caught.iter().filter(|&(name, seeds)| known.get(name) != Some(seeds));
    let moved: Vec<_> = names.map(|(name, _)| name).collect();
    assert!(
        is_update || moved.is_empty(),
        "rules of {moved:?} are caught elsewhere than noted: UPDATE=1 cargo test mutants::"
    );
}

/// Rules that 360 trials did not catch with a choice of a parameter, which leaves the rule no work.
#[test]
fn a_rule_that_a_choice_leaves_no_work_is_not_looked_for_with_it() {
    for (name, field, choice, rule) in [
        ("kiln", "write_out", "never", "count_what_came_down"),
        ("loc-kiln", "bearer", "pin", "carry_count"),
        ("loc-kiln", "bearer", "pin", "rehome_pairs"),
        ("loc-wal", "bearer", "pin", "carry_count"),
        ("loc-wal", "bearer", "pin", "rehome_pairs"),
        ("morlog", "variant", "b", "redo_in_order"),
        ("morlog-dp", "variant", "b", "redo_in_order"),
        ("redo-log", "commit", "counts", "commit_after_records"),
        ("silo", "overflow", "blocking", "keep_leaving"),
        ("silo", "overflow", "blocking", "keep_records_until_updated"),
        ("silo", "overflow", "blocking", "supersede_only_older"),
    ] {
        let entry = designs::ALL.iter().find(|entry| entry.card.name == name).expect("a design");
        let field = entry.fields.iter().find(|other| other.name == field).expect("a parameter");
        let value = field.choices.iter().position(|other| *other == choice).expect("a choice");
        let settings = [(field.name.to_owned(), value as u64)];
        assert!(entry.needless_under(&settings).any(|(other, _)| other == rule), "{name}: {rule}");
        assert!(entry.needless_under(&[]).all(|(other, _)| other != rule), "{name}: {rule}");
    }
}

/// Every second trial of this design has a first level of four translations, which this machine's
/// second level does not hold.
#[test]
fn trials_that_do_not_fit_the_users_machine_are_counted() {
    let tlbs = "tlb.entries=2 tlb.assoc=1 tlb.l2_entries=2 tlb.l2_assoc=1";
    let answer = crash(&format!("shadow-paging hash txs=5 points=2 trials=1 {tlbs}"));
    let trials = &answer["trials"];
    assert_eq!((&trials["runs"], &trials["refused"]), (&1.into(), &180.into()), "{trials}");
    let refusal = trials["refusal"].as_str().expect("a sentence");
    assert!(refusal.contains("2 is less than the 4 of tlb.entries"), "{refusal}");
}

/// What is needless by default may be needed with another choice, and is then looked for.
#[test]
fn a_rule_that_a_choice_needs_is_caught_with_it() {
    for (line, needed) in [
        ("hops scribble txs=40 design.depends=sticky", vec!["split_source"]),
        (
            "redo-log scribble txs=40 cores=2 design.commit=counts",
            vec!["commit_needs_records", "verify_records"],
        ),
        (
            "s-wal scribble txs=40 design.flush=clwb",
            vec![
                "order_log_before_record",
                "durable_record",
                "order_data_before_truncation",
                "truncate_before_unlock",
                "fence_waits",
            ],
        ),
    ] {
        for rule in needed {
            let answer = crash(&format!("{line} points=20 mutants={rule}"));
            assert_eq!(answer["mutants"][0]["caught"], true, "{line} {rule}: {answer}");
        }
    }
}

/// A rule is declared needless only with a reason, and only if it exists.
#[test]
fn needless_rules_exist_and_say_why() {
    for entry in designs::ALL {
        for (needless, why) in entry.needless {
            assert!(entry.rules.iter().any(|(rule, _)| rule == needless), "{needless}");
            assert!(!why.is_empty(), "{needless}");
        }
        for with in entry.needless_with {
            assert!(entry.rules.iter().any(|(rule, _)| *rule == with.rule), "{with:?}");
            let field = entry.fields.iter().find(|field| field.name == with.field);
            let Some(field) = field else { panic!("{with:?}") };
            let index = field.choices.iter().position(|choice| *choice == with.choice);
            let value = index.unwrap_or_else(|| panic!("{with:?}")) as u64;
            let has = |value: u64| {
                let settings = [(with.field.to_owned(), value)];
                entry.needless_under(&settings).any(|(rule, _)| rule == with.rule)
            };
            let values = 0..field.choices.len() as u64;
            assert_eq!(values.filter(|&value| has(value)).collect::<Vec<_>>(), [value], "{with:?}");
            let needless = entry.needless_under(&[]).any(|(rule, _)| rule == with.rule);
            assert_eq!(needless, field.default == value, "{with:?}");
        }
    }
}
