//! The design that `indelible new design mine --rust` copies. It is in no list, so that the suites
//! over the registry do not see it: this suite holds it to what they hold a design to, in little.
//!
//! The same design in Python is what `indelible new design mine` writes, and
//! `tests/python/test_new_in_rust.py` holds that to the numbers of `snapshots/template.json`.

use std::path::Path;

use crate::common::{all_hold, bring, crash, run};
use designs::template::Template;
use serde_json::{Value, json};

/// Has the design found by its name in requests.
fn add_template() {
    bring("template", designs::entry::<Template>());
}

const SMALL_CACHES: &str = "llc.size=256B l2.size=128B l1d.size=128B";
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    pm.xpbuffer_entries=1 pm.tWRITE=400cycles";

#[test]
fn what_one_begins_with_is_right() {
    add_template();
    let some_energy = |domain: &str, bytes: u64| {
        format!("cores=2 nested=false controller.domain={domain} controller.flush_bytes={bytes}B")
    };
    let variants = [
        "cores=1".to_owned(),
        "cores=2 lives=3".to_owned(),
        format!("cores=4 nested=false {SMALL_CACHES}"),
        format!("cores=2 nested=false {SMALL_CACHES} {APART}"),
        "cores=4 nested=false design.records=64".to_owned(),
        "cores=2 nested=false controller.domain=eadr".to_owned(),
        some_energy("eadr", 256),
        some_energy("gpf", 128),
    ];
    let workloads = ["scribble", "hash", "btree", "queue"];
    let line = |variant: &String| {
        workloads.map(|workload| format!("template {workload} txs=20 {variant}"))
    };
    all_hold(variants.iter().flat_map(line));
}

/// The runs and what they come to, which the design in Python is held to, too.
#[test]
fn it_does_what_its_twin_in_python_does() {
    add_template();
    let row = |line: &str| {
        let answer = run(line);
        let told = ["cycles", "commit_latency_cycles", "pm_writes", "stalls", "design_counters"];
        let told = told.map(|name| (name.to_owned(), answer[name].clone()));
        json!({ "run": line, "row": Value::Object(told.into_iter().collect()) })
    };
    let rows = [
        "template hash machine=silo cores=1 txs=100",
        "template btree machine=ssp cores=2 txs=100 seed=2",
        "template queue cores=4 txs=100 seed=3 design.records=64",
        "template scribble cores=2 txs=100 controller.domain=eadr",
    ];
    // Each rule is needed, and is caught where Python's is.
    let answer = crash("template scribble cores=2 txs=20 mutants=true lives=2 trials=8");
    assert_eq!((&answer["violations"], &answer["trials"]["runs"]), (&json!([]), &8.into()));
    let mutants = answer["mutants"].as_array().expect("a list").iter().map(|mutant| {
        assert_eq!(mutant["caught"], true, "{mutant}");
        json!({ "rule": mutant["rule"], "seed": mutant["seed"], "event": mutant["event"] })
    });
    let now = json!({ "runs": rows.map(row), "mutants": mutants.collect::<Vec<_>>() });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/template.json");
    if std::env::var_os("UPDATE").is_some() {
        let text = serde_json::to_string_pretty(&now).expect("it is JSON");
        return std::fs::write(path, text + "\n").expect("a file");
    }
    let was = std::fs::read_to_string(path).expect("snapshots/template.json is there");
    let was: Value = serde_json::from_str(&was).expect("it is JSON");
    assert_eq!(was, now, "if this is meant: UPDATE=1 cargo test -p indelible-lab template::");
}
