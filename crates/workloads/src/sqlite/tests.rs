//! What cannot be seen from outside: journals, and SQLite taken out of its batches.

use std::rc::Rc;
use std::sync::Arc;

use model::contents::View;
use model::units::CoreId;
use model::workload::{Declared, Pm, Program, Site, Step, Stop, Workload};

use super::connection::Connection;
use super::file::{File, Granularity};
use super::runner::Runner;
use super::script::Script;
use super::{Sqlite, SqliteParams};
use crate::rng::Random;

const CAPACITY: u64 = 16 << 20;

fn view() -> View {
    View::new(CAPACITY, 1 << 20).expect("room")
}

fn populated(view: &mut View) -> Sqlite {
    let params = SqliteParams { rows: 3_000, ..SqliteParams::default() };
    let site = Site { cores: 1, seed: 5, heap: 0..CAPACITY, items: 1 << 20, script: None };
    let mut workload = Sqlite::new(&params, &site).expect("it can be made");
    workload.populate(&mut Pm::plain(view, CoreId(0))).expect("it fits");
    workload
}

fn measured(workload: &Sqlite) -> Runner {
    let part = workload.parts[0].clone();
    let file = File::measured(part, Granularity::DiffWords, &workload.populated[0]);
    let mut runner = workload.runner(CoreId(0), file, "sqlite").expect("it opens");
    runner.set("cache_spill=OFF").expect("it is known");
    runner.prepare_measured(0).expect("the script is right");
    runner
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
    ordinary.prepare_measured(0).expect("the script is right");
    transactions(&mut ordinary, &mut nothing, 900).expect("it runs");

    assert!(tables(&runner.connection)[1].len() > 2_000);
    assert!(tables(&runner.connection) == tables(&connection), "the tables are the same");
    // What lies in memory is what the connection sees.
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

#[test]
fn without_a_marker_the_last_definition_ends_the_first_part() {
    // A script, and how many statements there are in its parts.
    let cases = [
        ("SELECT 1; SELECT 2;", 0, 2),
        ("CREATE TABLE t (k); SELECT 1; SELECT 2;", 1, 2),
        ("CREATE TABLE t (k); SELECT 1; DROP TABLE t; SELECT 2;", 3, 1),
        ("SELECT 1; PRAGMA foreign_keys = 1; SELECT 2;", 2, 1),
        ("CREATE TABLE t (k); ALTER TABLE t ADD j; SELECT 1; -- CREATE\n", 2, 1),
        ("SELECT 1; BEGIN; CREATE TABLE t (k); SELECT 1; COMMIT; BEGIN; END;", 5, 2),
        ("BEGIN; CREATE TABLE t (k); SAVEPOINT a; RELEASE a; ROLLBACK; SELECT 1;", 5, 1),
        ("SAVEPOINT a; CREATE TABLE t (k); RELEASE a; SELECT 1;", 3, 1),
        ("CREATE TABLE t (k);\n-- measured\nSELECT 1; CREATE TABLE u (k);", 1, 2),
    ];
    for (text, populate, measured) in cases {
        let script = Script::read(Some(&("mine.sql".to_owned(), text.to_owned())));
        let script = script.expect("it is right");
        assert_eq!((script.populate.len(), script.measured.len()), (populate, measured), "{text}");
    }
}

#[test]
fn a_long_script_keeps_its_line_numbers() {
    let mut text = "-- A comment.\nINSERT INTO t\n VALUES (';',\n 1);\n".repeat(2_000);
    text.insert_str(0, "CREATE TABLE t (k, v);\n");
    let script = Script::read(Some(&("mine.sql".to_owned(), text))).expect("it is right");
    assert_eq!(script.measured.len(), 2_000);
    for (index, statement) in script.measured.iter().enumerate() {
        assert_eq!(statement.line, 3 + 4 * index);
    }
}
