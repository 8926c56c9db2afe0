//! Each rule of each design, switched off, is caught: every guarantee has a mutant that breaks it,
//! and the same run with the rule is right.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::crash;
use designs::Entry;

/// What is wrong with the mutants of a design, as text.
fn uncaught(entry: &Entry) -> String {
    let line = format!("{} scribble cores=2 txs=40 nested=false mutants=true", entry.card.name);
    let answer = crash(&line);
    let mutants = answer["mutants"].as_array().expect("a list");
    let needless = answer["needless_rules"].as_array().expect("a list");
    assert_eq!(mutants.len() + needless.len(), entry.rules.len(), "{line}");
    let mut found = String::new();
    for mutant in mutants {
        if let Some(intact) = mutant.get("intact") {
            found += &format!("{line}: without any mutation: {intact}\n");
        }
        if mutant["caught"] != true {
            found += &format!("{line}: {} is not caught\n", mutant["rule"]);
        } else {
            assert!(mutant["event"].is_u64() && mutant["seed"].is_u64(), "{mutant}");
        }
    }
    found
}

/// Designs take from a tenth of a second to a minute: each of two threads takes the next one.
#[test]
fn every_rule_is_needed_and_every_mutant_caught() {
    let entries: Vec<_> = common::all().filter(|entry| !entry.rules.is_empty()).collect();
    let next = AtomicUsize::new(0);
    let search = || {
        let mut found = String::new();
        while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
            found += &uncaught(entry);
        }
        found
    };
    let found: String = thread::scope(|scope| {
        let other = scope.spawn(search);
        search() + &other.join().expect("the search ends")
    });
    assert!(found.is_empty(), "{found}");
}

/// A rule is declared needless only with a reason, and only if it exists.
#[test]
fn needless_rules_exist_and_say_why() {
    for entry in designs::ALL {
        for (needless, why) in entry.needless {
            assert!(entry.rules.iter().any(|(rule, _)| rule == needless), "{needless}");
            assert!(!why.is_empty(), "{needless}");
        }
    }
}
