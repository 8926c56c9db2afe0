//! Behaviour that tests outside of this crate cannot see: journals, and writes outside of batches.

use std::rc::Rc;
use std::sync::Arc;

use model::contents::View;
use model::units::{CoreId, LINE_BYTES, Line};
use model::workload::{Declared, Pm, Program, Site, Step, Stop, Workload};

use super::connection::Connection;
use super::file::{File, Granularity, PAGE_BYTES};
use super::runner::Runner;
use super::script::Script;
use super::{Sqlite, SqliteParams};
use crate::rng::Random;

const CAPACITY: u64 = 16 << 20;

fn view() -> View {
    View::new(CAPACITY, 1 << 20).expect("room")
}

fn populated(view: &mut View) -> Sqlite {
    populated_with(view, None)
}

fn populated_with(view: &mut View, script: Option<&str>) -> Sqlite {
    let params = SqliteParams { rows: 3_000, ..SqliteParams::default() };
    let script = script.map(|text| model::script::Script::new("mine.sql", text));
    let site = Site { cores: 1, seed: 5, heap: 0..CAPACITY, items: 1 << 20, script, checker: None };
    let mut workload = Sqlite::new(&params, &site).expect("it can be made");
    workload.populate(&mut Pm::plain(view, CoreId(0))).expect("it fits");
    workload
}

fn measured(workload: &Sqlite) -> Runner {
    workload.measured(CoreId(0)).expect("the script is right")
}

fn transactions(runner: &mut Runner, view: &mut View, count: usize) -> Step {
    let mut pm = Pm::plain(view, CoreId(0));
    (0..count).try_for_each(|_| runner.transaction(&mut pm))
}

fn tables(connection: &Connection) -> [Vec<String>; 3] {
    let dump = |sql| connection.query(sql).expect("there is such a table");
    [
        dump("SELECT sql FROM sqlite_schema ORDER BY name"),
        dump("SELECT k || ' ' || quote(v) FROM item ORDER BY k"),
        dump("SELECT id || ' ' || item || ' ' || amount FROM sale ORDER BY id"),
    ]
}

/// As by a transaction that was too large for the page cache.
#[test]
fn what_was_written_behind_the_file_before_it_is_measured_is_zeros() {
    let (mut view, page) = (view(), PAGE_BYTES as usize);
    let mut pm = Pm::plain(&mut view, CoreId(0));
    let mut filled = File::empty(0..CAPACITY);
    filled.write(Some(&mut pm), 0, &vec![7; 3 * page]).expect("there is room");
    filled.truncate(PAGE_BYTES).expect("it is not measured");
    filled.seal(&mut pm);
    let mut file = File::measured(0..CAPACITY, Granularity::DiffWords, filled.bytes());
    file.begin_batch(Some(&mut pm)).expect("it begins");
    file.write(Some(&mut pm), PAGE_BYTES, &vec![0; page]).expect("there is room");
    file.commit_batch(Some(&mut pm)).expect("it commits");
    let mut read = vec![1; page];
    assert!(file.read(Some(&mut pm), PAGE_BYTES, &mut read));
    assert_eq!(read, vec![0; page]);
}

/// Where cores have parts of their own that begin anywhere.
#[test]
fn a_page_of_the_database_is_a_page_of_memory() {
    for start in [0, 64, PAGE_BYTES - 64, PAGE_BYTES, 5 * PAGE_BYTES + 960] {
        let mut view = view();
        let mut pm = Pm::plain(&mut view, CoreId(0));
        let part = start..start + 4 * PAGE_BYTES;
        let mut file = File::empty(part.clone());
        let bytes: Vec<u8> = (1..=2).flat_map(|page| [page; PAGE_BYTES as usize]).collect();
        file.write(Some(&mut pm), 0, &bytes).expect("there is room");
        file.seal(&mut pm);
        let page_of = |byte: u8| {
            let lines = (0..CAPACITY / LINE_BYTES).map(Line);
            let of: Vec<_> = lines.filter(|&line| view.pm.line(line)[0] == byte).collect();
            (of[0].address(), of.len() as u64)
        };
        let [(first, lines), second] = [page_of(1), page_of(2)];
        assert_eq!((first % PAGE_BYTES, lines), (0, PAGE_BYTES / LINE_BYTES), "from {start}");
        assert_eq!(second, (first + PAGE_BYTES, PAGE_BYTES / LINE_BYTES));
        assert!(part.start < first && first <= part.start + PAGE_BYTES, "from {start}: {first}");
        let image = model::image::Image::over(&view.pm);
        assert_eq!(super::file::recovered(&image, &part), Ok(bytes));
    }
}

#[test]
fn no_journal_is_opened_and_each_writing_transaction_is_a_batch() {
    let mut view = view();
    let mut runner = measured(&populated(&mut view));
    transactions(&mut runner, &mut view, 900).expect("it runs");
    // One of the nine transactions of the default script selects; a delete may find no row.
    assert_eq!(runner.connection.file().journals, 0);
    let batches = runner.connection.file().batches;
    assert!((760..=800).contains(&batches), "{batches} batches");
}

#[test]
fn the_tables_are_those_of_an_ordinary_database() {
    let mut view = view();
    let workload = populated(&mut view);
    let mut runner = measured(&workload);
    transactions(&mut runner, &mut view, 900).expect("it runs");

    let random = |stream: &str| Random::new(workload.seed, CoreId(0), stream);
    let connection = Connection::memory(random("sqlite, populate, functions")).expect("it opens");
    let connection = Rc::new(connection);
    let on = |stream| {
        let (connection, script) = (Rc::clone(&connection), Arc::clone(&workload.script));
        Runner::new(connection, script, random(stream), CoreId(0), workload.rows)
    };
    let mut nothing = View::new(4096, 4096).expect("room");
    let mut pm = Pm::plain(&mut nothing, CoreId(0));
    on("sqlite, populate, parameters").populate("SELECT 1", &mut pm).expect("it runs");
    connection.reseed(random("sqlite, functions"));
    let mut ordinary = on("sqlite, parameters");
    ordinary.begin_measured(0).expect("the script is right");
    transactions(&mut ordinary, &mut nothing, 900).expect("it runs");

    assert!(tables(&runner.connection)[1].len() > 2_000);
    assert!(tables(&runner.connection) == tables(&connection), "the tables are the same");
    // The connection sees the database as it is in memory.
    let image = model::image::Image::over(&view.pm);
    let bytes = super::file::recovered(&image, &workload.parts[0]).expect("it is there");
    let recovered = Connection::over(bytes, random("")).expect("it opens");
    assert!(tables(&recovered) == tables(&connection), "memory holds the tables");
}

#[test]
fn leaving_the_batch_ends_the_run() {
    let settings = [
        ("synchronous=OFF", "wrote to the database"),
        ("journal_mode=PERSIST", "nothing"),
        ("locking_mode=EXCLUSIVE", "nothing"),
        ("cache_spill=ON", "opened a rollback journal"),
        ("journal_mode=OFF", "wrote to the database"),
    ];
    for (pragma, what) in settings {
        let mut view = view();
        let mut runner = measured(&populated(&mut view));
        runner.set("cache_size=1").expect("it is known");
        runner.set(pragma).expect("it is known");
        let result = transactions(&mut runner, &mut view, 900);
        let told = match &result {
            Ok(()) => "nothing",
            Err(Stop::Failed(sentence)) => sentence,
            Err(other) => panic!("{other:?}"),
        };
        assert!(told.contains(what), "{pragma}: {told}");
    }
}

fn read(text: &str) -> Script {
    Script::read(Some(&model::script::Script::new("mine.sql", text))).expect("it is right")
}

#[test]
fn without_a_marker_everything_is_measured() {
    // A script, and how many statements there are in its parts.
    let cases = [
        ("SELECT 1; SELECT 2;", 0, 2),
        ("CREATE TABLE t (k); SELECT 1; DROP TABLE t;", 0, 3),
        ("SELECT 1; PRAGMA foreign_keys = 1; PRAGMA journal_mode = DELETE;", 0, 2),
        ("BEGIN; CREATE TABLE t (k); COMMIT;", 0, 3),
        ("CREATE TABLE t (k);\n-- measured\nSELECT 1; CREATE TABLE u (k);", 1, 2),
        ("SELECT 1;\n/* it\n-- measured\nis */ SELECT 2;", 0, 2),
        ("SELECT 'it''s\n-- measured\n';\n-- a - [ ' \n-- measured\nSELECT 2;", 1, 1),
        (
            "SELECT 1 - 2 /\n1;\n-- measured\nSELECT \"x\n-- measured\n\" FROM (SELECT 1 AS \"x\n-- measured\n\");",
            1,
            1,
        ),
    ];
    for (text, populate, measured) in cases {
        let script = read(text);
        assert_eq!((script.populate.len(), script.measured.len()), (populate, measured), "{text}");
    }
}

/// The line would be skipped as a comment, and the statements that fill the database be measured.
#[test]
fn a_line_that_is_a_letter_away_from_the_marker_is_refused() {
    let refused = |text: &str| {
        let script = Script::read(Some(&model::script::Script::new("mine.sql", text)));
        match script {
            Err(Stop::Input(sentence)) => sentence,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused("SELECT 1;\n -- Measured:\nSELECT 1;"),
        "script `mine.sql`, line 2: `-- Measured:` divides nothing; did you mean `-- measured`?"
    );
    assert!(refused("SELECT 1;\n--measure\nSELECT 1;").contains("line 2: `--measure` divides"));
    let others = "SELECT 1; -- measured:\nSELECT '\n-- measured:\n';\n-- what is measured\n-- it";
    assert_eq!(read(others).measured.len(), 2);
}

/// Scripts as they are found, without a marker, and the transactions of one pass.
const WHOLE: &[(&str, usize)] = &[
    (
        "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n\
         CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT);\n\
         INSERT INTO t VALUES(1,'one');\nINSERT INTO t VALUES(2,'two');\n\
         DELETE FROM sqlite_sequence;\nINSERT INTO sqlite_sequence VALUES('t',2);\n\
         CREATE INDEX i ON t(b);\nCOMMIT;",
        1,
    ),
    (
        "DROP TABLE IF EXISTS t; CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 2), (3, 4);\n\
         CREATE INDEX i ON t(a); INSERT INTO t SELECT a + 10, b FROM t; SELECT * FROM t;\n\
         DROP TABLE t;",
        7,
    ),
    ("CREATE TABLE t(a PRIMARY KEY); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2);", 3),
    (
        "PRAGMA foreign_keys = ON; CREATE TABLE p(k INTEGER PRIMARY KEY);\n\
         CREATE TABLE c(k REFERENCES p ON DELETE CASCADE); CREATE TABLE log(what);\n\
         CREATE TRIGGER r AFTER DELETE ON c BEGIN INSERT INTO log VALUES(old.k); END;\n\
         CREATE VIEW v AS SELECT count(*) AS n FROM c; BEGIN IMMEDIATE;\n\
         INSERT INTO p VALUES(1),(2); INSERT INTO c VALUES(1),(1),(2); COMMIT;\n\
         DELETE FROM p WHERE k = 1; PRAGMA foreign_keys = OFF; DELETE FROM p;\n\
         INSERT INTO log SELECT n FROM v; PRAGMA foreign_keys = ON; PRAGMA user_version = 7;\n\
         PRAGMA recursive_triggers = ON;",
        10,
    ),
    (
        "CREATE TEMP TABLE u(k); CREATE TABLE t(v BLOB); INSERT INTO u VALUES(1),(2),(3);\n\
         INSERT INTO t SELECT zeroblob(5000 * k) FROM u; BEGIN; DELETE FROM t; ROLLBACK;\n\
         BEGIN EXCLUSIVE; DELETE FROM t WHERE length(v) > 12000; DROP TABLE u; END;\n\
         SAVEPOINT a; INSERT INTO t VALUES(1); ROLLBACK TO a; INSERT INTO t VALUES(2); RELEASE a;",
        7,
    ),
    ("SELECT 1; SELECT 2;", 2),
];

/// Returns all contents of a database.
fn dump(connection: &Connection) -> Vec<String> {
    let ask = |sql: &str| connection.query(sql).expect("it can be asked");
    let mut all = ask("SELECT name || ' ' || quote(sql) FROM sqlite_schema ORDER BY name");
    all.extend(ask("PRAGMA user_version"));
    for table in ask("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        let columns =
            ask(&format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')"));
        let row = columns.join(" || ' ' || ");
        all.extend(ask(&format!("SELECT {row} FROM {table} ORDER BY rowid")));
    }
    all
}

/// Each pass is, transaction by transaction, what SQLite makes of the script on an empty database
/// in memory; between two passes one transaction empties the database.
#[test]
fn a_script_without_a_marker_begins_each_pass_on_an_empty_database() {
    for (text, transactions_of_pass) in WHOLE {
        let mut view = view();
        let workload = populated_with(&mut view, Some(text));
        let mut runner = measured(&workload);
        for pass in 1..5 {
            let ordinary = Connection::memory(Random::new(1, CoreId(0), "")).expect("it opens");
            let nothing_changes = text.starts_with("SELECT");
            if pass > 1 && !nothing_changes {
                transactions(&mut runner, &mut view, 1).expect("it begins anew");
                assert_eq!(dump(&runner.connection), dump(&ordinary), "{text}");
            }
            let (mut at, mut seen) = (0, 0);
            while at < workload.script.measured.len() {
                transactions(&mut runner, &mut view, 1).expect(text);
                let to = runner.ran();
                for statement in &workload.script.measured[at..to] {
                    ordinary.execute(&statement.sql).expect("SQLite runs it");
                }
                assert_eq!(dump(&runner.connection), dump(&ordinary), "{text}");
                (at, seen) = (to, seen + 1);
            }
            assert_eq!(seen, *transactions_of_pass, "{text}");
            let image = model::image::Image::over(&view.pm);
            workload.check(&image).expect("it is sound");
            let bytes = super::file::recovered(&image, &workload.parts[0]).expect("it is there");
            let recovered = Connection::over(bytes, Random::new(1, CoreId(0), ""));
            assert_eq!(dump(&recovered.expect("it opens")), dump(&ordinary), "{text}");
        }
        assert_eq!(runner.connection.file().journals, 0);
    }
}

/// Memory behind an emptied file keeps its old contents, which a later life does not know.
#[test]
fn a_later_life_begins_on_an_empty_database_whatever_lies_behind_it() {
    let text = "CREATE TABLE t(v); INSERT INTO t VALUES(zeroblob(9000));\n\
                UPDATE t SET v = randomblob(9000);";
    // After the emptying between two passes, in the middle of one, and at its end.
    for count in [4, 5, 2, 3] {
        let mut view = view();
        let mut workload = populated_with(&mut view, Some(text));
        transactions(&mut measured(&workload), &mut view, count).expect("it runs");
        workload.reopen(&model::image::Image::over(&view.pm), 3).expect("it is sound");
        let mut runner = measured(&workload);
        for _ in 0..13 {
            transactions(&mut runner, &mut view, 1).expect("it runs");
            let image = model::image::Image::over(&view.pm);
            workload.check(&image).expect("it is sound");
            let bytes = super::file::recovered(&image, &workload.parts[0]).expect("it is there");
            let recovered = Connection::over(bytes, Random::new(1, CoreId(0), ""));
            assert_eq!(dump(&recovered.expect("it opens")), dump(&runner.connection), "{count}");
        }
    }
}

/// Runs a script that is measured whole, once.
fn ran(text: &str) -> Step {
    let mut view = view();
    let params = SqliteParams { rows: 100, ..SqliteParams::default() };
    let script = Some(model::script::Script::new("mine.sql", text));
    let site = Site { cores: 1, seed: 5, heap: 0..CAPACITY, items: 1 << 20, script, checker: None };
    let mut workload = Sqlite::new(&params, &site)?;
    workload.populate(&mut Pm::plain(&mut view, CoreId(0)))?;
    let mut runner = workload.measured(CoreId(0))?;
    while runner.ran() < workload.script.measured.len() {
        transactions(&mut runner, &mut view, 1)?;
    }
    workload.check(&model::image::Image::over(&view.pm)).map_err(Stop::Failed)
}

/// As in SQLite, whatever the build of `libsqlite3-sys` has for a default.
#[test]
fn foreign_keys_are_looked_at_when_a_script_asks_for_it() {
    let text = "CREATE TABLE p(k INTEGER PRIMARY KEY); CREATE TABLE c(k REFERENCES p);\n\
                INSERT INTO c VALUES (7);";
    ran(text).expect("nobody asked");
    // The other table is missing, or has no such key.
    ran("CREATE TABLE c(k REFERENCES p(j)); INSERT INTO c VALUES (7);").expect("nobody asked");
    let told = |result: Step| match result {
        Err(Stop::Input(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let asked = told(ran(&format!("PRAGMA foreign_keys = ON; {text}")));
    assert!(asked.ends_with("line 2: FOREIGN KEY constraint failed"), "{asked}");
}

/// A query that ends with the rows and numbers of a run need not end without them.
#[test]
fn a_table_made_of_a_query_is_rehearsed_without_its_rows() {
    let counts = "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c";
    for text in [
        format!("CREATE TABLE t AS {counts} LIMIT :rows - 1) SELECT i FROM c;"),
        format!("CREATE TABLE t AS {counts} WHERE i <> :rows) SELECT i FROM c -- ;"),
        format!("CREATE TEMP TABLE t AS {counts} WHERE i <> :rows) SELECT a.i FROM c a, c b;"),
        format!(
            "CREATE TABLE p(k); INSERT INTO p VALUES (3), (4), (5);\n\
             CREATE TABLE IF NOT EXISTS \"as\" /* AS ( */ AS\n\
             {counts} WHERE i <> (SELECT count(*) FROM p)) SELECT i FROM c; SELECT i FROM [as];"
        ),
    ] {
        ran(&text).expect(&text);
    }
}

/// Later statements name the columns, whatever names these have.
#[test]
fn a_table_made_of_a_query_is_rehearsed_with_its_columns() {
    for (query, columns) in [
        ("SELECT 1 AS a, 2 AS a, 3 AS \"b \"\"c\", 4 AS ä", "a, \"a:1\", \"b \"\"c\", ä"),
        ("SELECT 1 + 1, count(*), p.k, (k), p.K AS l FROM p", "\"1 + 1\", \"count(*)\", k, l"),
        ("VALUES (1, 2)", "column1, column2"),
        ("SELECT * FROM p, p AS q ORDER BY 1 LIMIT 1", "k, \"k:1\""),
    ] {
        for table in ["ä$as", "\"(\"", "[a as b]", "'t'", "main.t", "\"\""] {
            let text = format!(
                "CREATE TABLE p(k); CREATE TABLE {table} AS {query};\n\
                 SELECT {columns} FROM {table}; INSERT INTO {table}({columns}) SELECT {columns} \
                 FROM {table};"
            );
            ran(&text).expect(&text);
        }
    }
}

/// Whatever SQL can read of its database is the same in every run.
#[test]
fn the_name_of_the_file_is_no_number() {
    let text = "CREATE TABLE t(v); INSERT INTO t SELECT file FROM pragma_database_list;";
    let [first, second] = [(); 2].map(|()| {
        let mut view = view();
        let mut runner = measured(&populated_with(&mut view, Some(text)));
        transactions(&mut runner, &mut view, 2).expect("it runs");
        dump(&runner.connection)
    });
    assert_eq!(first, second);
    assert!(first.contains(&"'indelible'".to_owned()), "{first:?}");
}

#[test]
fn the_clock_begins_with_2026() {
    let text = "CREATE TABLE t(v);\n\
                INSERT INTO t VALUES (datetime('now')), (datetime('now', 'localtime'));";
    let mut view = view();
    let mut runner = measured(&populated_with(&mut view, Some(text)));
    transactions(&mut runner, &mut view, 2).expect("it runs");
    let held = runner.connection.query("SELECT v FROM t").expect("there is such a table");
    assert_eq!(held, ["2026-01-01 00:00:00"; 2]);
}

/// A constraint whose result differs each time for the same row proves nothing about the file.
#[test]
fn a_constraint_that_does_not_follow_from_its_row_is_not_checked() {
    for constraint in [
        "random() % 2 = 0",
        "randomblob(1) < x'80'",
        "changes() = v",
        "total_changes() >= v",
        "last_insert_rowid() = v",
    ] {
        let inserts = "INSERT OR IGNORE INTO t VALUES (0); INSERT OR IGNORE INTO t VALUES (1);";
        let text = format!("CREATE TABLE t(v CHECK ({constraint}));\n{}", inserts.repeat(20));
        ran(&text).expect(constraint);
    }
}

#[test]
fn a_long_script_keeps_its_line_numbers() {
    let mut text = "-- A comment.\nINSERT INTO t\n VALUES (';',\n 1);\n".repeat(2_000);
    text.insert_str(0, "CREATE TABLE t (k, v);\n");
    let script = read(&text);
    assert_eq!(script.measured.len(), 2_001);
    for (index, statement) in script.measured[1..].iter().enumerate() {
        assert_eq!(statement.line, 3 + 4 * index);
    }
}
