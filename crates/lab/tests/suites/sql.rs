//! Scripts for `sqlite` as they are found, without a line `-- measured`: they run whole, as often
//! as needed, on every kind of design, and a power failure leaves an empty database or a whole one.

use crate::common::request;
use lab::Control;
use serde_json::{Value, json};

/// What `.dump` writes.
const DUMP: &str = "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n\
    CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);\n\
    INSERT INTO t VALUES(1,'one');\nINSERT INTO t VALUES(2,'two');\n\
    CREATE INDEX i ON t(b);\nCOMMIT;\n";

const SCRIPTS: [&str; 3] = [
    DUMP,
    "DROP TABLE IF EXISTS t; CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (3, 4);\n\
     CREATE INDEX i ON t(a); INSERT INTO t VALUES (5, 6); SELECT * FROM t; DROP TABLE t;\n",
    "CREATE TABLE t(a PRIMARY KEY); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2);\n",
];

fn answer(
    line: &str,
    script: &str,
    ask: fn(&str, &Control) -> Result<String, lab::InputError>,
) -> Value {
    let mut request = request(line);
    request["script"] = json!(["mine.sql", script]);
    let answer = ask(&request.to_string(), &Control::default());
    let answer = answer.unwrap_or_else(|error| panic!("{line}: {error}"));
    serde_json::from_str(&answer).expect("an answer is JSON")
}

/// What a script writes and how long it takes follows from its words; each of its transactions is
/// one of `txs`.
#[test]
fn a_script_without_a_marker_runs_for_several_passes() {
    for script in SCRIPTS {
        for design in ["native", "undo@x86", "silo"] {
            let line = format!("{design} sqlite cores=2 txs=20");
            let run = || answer(&line, script, lab::run);
            let (mut first, mut again) = (run(), run());
            assert_eq!(first["txs"], 40, "{line}");
            for answer in [&mut first, &mut again] {
                answer.as_object_mut().expect("an object").retain(|name, _| !name.contains("host"));
            }
            assert_eq!(first, again, "{line}");
        }
    }
}

/// A transaction that SQL rolls back is an aborted one, one that only reads a committed one without
/// stores, on designs that keep what an abort needs and on those that revoke by themselves.
#[test]
fn what_sql_rolls_back_is_aborted() {
    let filled = "CREATE TABLE t(a PRIMARY KEY); INSERT INTO t VALUES(1);\n-- measured\n";
    let [update, rolled_back, read] = [
        "UPDATE t SET a = a + 1;",
        "BEGIN; UPDATE t SET a = a + 1; ROLLBACK;",
        "BEGIN; SELECT a FROM t; COMMIT;",
    ];
    for design in ["native", "undo@x86", "redo@hops", "silo", "lad", "ssp", "loc-wal"] {
        let run = |statements: &str| {
            let line = format!("{design} sqlite cores=1 txs=30 warmup=0");
            answer(&line, &format!("{filled}{statements}"), lab::run)
        };
        let lines = |answer: &Value| answer["write_set"]["lines_max"].clone();
        let (some, none) = (run(&format!("{update}{rolled_back}{read}")), run(rolled_back));
        assert_eq!([&some["txs"], &some["aborted"]], [30, 10], "{design}");
        assert_eq!([&none["txs"], &none["aborted"]], [30, 30], "{design}");
        assert!(none["throughput_tx_per_s"] == 0.0, "{design}: {none}");
        assert_ne!(lines(&some), lines(&none), "{design}");
    }
}

/// A database that nobody stored to is sound whatever the design does.
#[test]
fn a_script_that_stores_nothing_proves_nothing() {
    let filled = "CREATE TABLE t(a PRIMARY KEY); INSERT INTO t VALUES(1);\n-- measured\n";
    for (statements, checked) in [
        ("SELECT a FROM t;", false),
        ("BEGIN; UPDATE t SET a = a + 1; ROLLBACK;", false),
        ("UPDATE t SET a = a + 1;", true),
    ] {
        let line = "silo sqlite cores=1 txs=5 points=20";
        let found = answer(line, &format!("{filled}{statements}"), lab::crash);
        assert_eq!((&found["checked"], &found["violations"]), (&json!(checked), &json!([])));
    }
}

/// Some of these designs log words, some whole lines; `kiln` and `ssp` log neither.
#[test]
fn a_power_failure_leaves_an_empty_database_or_a_whole_one() {
    for design in ["silo", "undo@x86", "redo-log", "kiln", "ssp"] {
        for (script, lives) in [(DUMP, 1), (DUMP, 2), (SCRIPTS[2], 2)] {
            let nested = lives == 1;
            let line = format!("{design} sqlite cores=2 txs=5 lives={lives} nested={nested}");
            let campaign = || answer(&line, script, lab::crash);
            let (found, again) = (campaign(), campaign());
            assert_eq!(found["violations"], json!([]), "{line}");
            assert_eq!(found["lives"], lives, "{line}");
            let also = if nested { "nested_points" } else { "later_points" };
            for name in ["points", also] {
                let points = found[name].as_u64().expect("a number");
                assert_eq!(found[name], again[name], "{line}");
                assert!(points > 100, "{line}: {points} {name}");
            }
        }
    }
}

/// The statements that recurse most deeply within SQLite's own limits run on the stack of a test,
/// and measured.
#[test]
fn what_recurses_deeply_runs_everywhere() {
    let columns: Vec<_> = (1..1_900).map(|n| format!("a{n} AS (a{} + 1)", n - 1)).collect();
    let columns = columns.join(", ");
    let mut chain: Vec<_> = (0..=900).map(|n| format!("CREATE TABLE t{n}(a);")).collect();
    chain.extend((0..900).map(|n| {
        let inserts = format!("INSERT INTO t{} VALUES (new.a);", n + 1);
        format!("CREATE TRIGGER r{n} AFTER INSERT ON t{n} BEGIN {inserts} END;")
    }));
    let mut views = vec!["CREATE TABLE t(a); CREATE VIEW v0 AS SELECT a FROM t;".to_owned()];
    views.extend(
        (1..800)
            .map(|n| format!("CREATE VIEW v{n} AS SELECT a FROM v{} UNION ALL SELECT 1;", n - 1)),
    );
    let letters = |of| format!("replace(hex(zeroblob(24999)), '00', '{of}')");
    for (first, statement) in [
        (String::new(), format!("SELECT {} LIKE {};", letters("a"), letters("%a"))),
        (format!("CREATE TABLE t(a0, {columns});"), "INSERT INTO t(a0) VALUES (1);".to_owned()),
        (chain.concat(), "INSERT INTO t0 VALUES (1);".to_owned()),
        (views.concat(), "SELECT count(*) FROM v799;".to_owned()),
    ] {
        let script = format!("{first}{statement}\n-- measured\n{statement}");
        let line = "native sqlite cores=1 txs=2 pm.device_size=64MiB";
        assert_eq!(answer(line, &script, lab::run)["txs"], 2, "{statement}");
    }
}
