//! The workload `sqlite`, as the registry hands it out, on plain memory and behind a port that
//! records its operations.

use model::contents::{Contents, View};
use model::image::Image;
use model::script::Script;
use model::units::{CoreId, Cycle, LINE_BYTES, Word};
use model::workload::{Pm, Port, Program, Ptr, Site, Step, Stop, Workload};

const CAPACITY: u64 = 64 << 20;

/// A core that records its program's operations.
struct Recorder<'a> {
    view: &'a mut View,
    /// The function that is run in the middle of an operation, as another core's program would be.
    between: Option<&'a mut dyn FnMut()>,
    in_transaction: bool,
    cancelled: bool,
    transactions: u64,
    loads: u64,
    stores: Vec<(u64, u64, u64)>,
    stores_outside: u64,
    instructions: u64,
}

impl<'a> Recorder<'a> {
    fn new(view: &'a mut View) -> Recorder<'a> {
        Recorder {
            view,
            between: None,
            in_transaction: false,
            cancelled: false,
            transactions: 0,
            loads: 0,
            stores: Vec::new(),
            stores_outside: 0,
            instructions: 0,
        }
    }

    fn run(&mut self, program: &mut dyn Program, core: CoreId, transactions: u64) -> Step {
        let mut pm = Pm::simulated(self, core);
        (0..transactions).try_for_each(|_| program.transaction(&mut pm))
    }
}

impl Port for Recorder<'_> {
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        self.loads += 1;
        if let Some(between) = &mut self.between
            && self.loads.is_multiple_of(700)
        {
            between();
        }
        (self.view.word(Word::of(at.address)), Cycle(0))
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        self.stores.push((at.address, value, mask));
        self.stores_outside += u64::from(!self.in_transaction);
        if let Some(between) = &mut self.between
            && self.stores.len().is_multiple_of(30)
        {
            between();
        }
        let word = Word::of(at.address);
        let kept = self.view.word(word) & !mask;
        self.view.set_word(word, kept | value & mask);
    }

    fn store_past_caches(&mut self, _: Ptr, _: &[u64]) {
        unreachable!("the workload has no non-temporal stores");
    }

    fn begin(&mut self, _: bool) {
        assert!(!self.in_transaction, "transactions are not nested");
        self.in_transaction = true;
        self.transactions += 1;
    }

    fn commit(&mut self) {
        assert!(self.in_transaction, "a transaction that commits has begun");
        self.in_transaction = false;
    }

    fn abort(&mut self) {
        assert!(self.in_transaction, "a transaction that aborts has begun");
        self.in_transaction = false;
    }

    fn work(&mut self, instructions: u64) {
        self.instructions += instructions;
    }

    fn cancelled(&self) -> bool {
        self.cancelled
    }
}

fn site(cores: u8) -> Site {
    Site { cores, seed: 7, heap: 0..CAPACITY, items: 1 << 20, script: None, checker: None }
}

fn with_script(text: &str) -> Site {
    Site { script: Some(Script::new("mine.sql", text)), ..site(1) }
}

fn make(settings: &[(&str, u64)], site: &Site) -> Step<Box<dyn Workload>> {
    let entry = workloads::ALL.iter().find(|entry| entry.about.name == "sqlite");
    let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).into(), *value)).collect();
    (entry.expect("sqlite is in the registry").make)(&settings, site)
}

fn populated(settings: &[(&str, u64)], site: &Site) -> Step<(Box<dyn Workload>, View)> {
    let mut workload = make(settings, site)?;
    let mut view = View::new(CAPACITY, 1 << 20).expect("room");
    workload.populate(&mut Pm::plain(&mut view, CoreId(0)))?;
    Ok((workload, view))
}

fn check(workload: &dyn Workload, durable: &Contents) -> Result<(), String> {
    workload.check(&Image::over(durable))
}

/// Populates and runs one core, and returns its record.
fn run<T>(
    settings: &[(&str, u64)],
    site: &Site,
    transactions: u64,
    look: impl FnOnce(&Recorder<'_>) -> T,
) -> Step<T> {
    let (workload, mut view) = populated(settings, site)?;
    let mut program = workload.program(CoreId(0))?;
    let mut recorder = Recorder::new(&mut view);
    recorder.run(&mut *program, CoreId(0), transactions)?;
    check(&*workload, &recorder.view.pm).map_err(Stop::Failed)?;
    Ok(look(&recorder))
}

/// Returns the workload's error for a script, when it is made, populated and run.
fn complaint(text: &str) -> String {
    match run(&[("rows", 100)], &with_script(text), 20, |_| ()) {
        Ok(()) => "nothing".to_owned(),
        Err(Stop::Input(sentence)) => sentence,
        Err(stop) => format!("{stop:?}"),
    }
}

#[test]
fn the_default_script_runs_on_plain_memory() {
    let (workload, mut view) = populated(&[], &site(1)).expect("it runs");
    let mut program = workload.program(CoreId(0)).expect("it starts");
    let mut pm = Pm::plain(&mut view, CoreId(0));
    (0..900).try_for_each(|_| program.transaction(&mut pm)).expect("it runs");
    check(&*workload, &view.pm).expect("it is sound");
}

#[test]
fn every_store_lies_in_a_transaction_and_each_sql_transaction_is_one() {
    run(&[], &site(1), 900, |recorder| {
        assert_eq!(recorder.transactions, 900);
        assert_eq!(recorder.stores_outside, 0);
        assert!(recorder.stores.len() > 900 * 10, "{} stores", recorder.stores.len());
        assert!(recorder.loads > 900 * 512, "{} loads", recorder.loads);
        assert!(recorder.instructions > 900 * 1_000, "{} instructions", recorder.instructions);
    })
    .expect("it runs");
}

#[test]
fn what_differs_is_stored_and_the_file_ends_up_the_same() {
    let stored = |mode| {
        run(&[("vfs_write", mode)], &site(1), 450, |recorder| {
            (recorder.stores.len(), recorder.view.pm.bytes(0, CAPACITY).to_vec())
        })
        .expect("it runs")
    };
    let [(pages, all), (lines, of_lines), (words, of_words)] = [0, 1, 2].map(stored);
    assert!(all == of_lines, "diff_lines leaves the same bytes as full_page");
    assert!(all == of_words, "diff_words leaves the same bytes as full_page");
    // A page has 512 words; SQLite writes at least two pages, and in the mean changes 5 lines.
    assert!(pages > 450 * 2 * 400, "{pages} words in full pages");
    assert!(lines < pages / 8, "{lines} words in lines that differ, {pages} in full pages");
    assert!(words * 3 < lines * 2, "{words} words differ, in lines of {lines} words");
}

#[test]
fn an_update_stores_what_was_measured_on_a_file() {
    // Measured with another program, on a file: 2.0 writes of 4,096 bytes, in which
    // 4.5 lines and 15 words change.
    let fill = include_str!("../../src/sqlite/default.sql").split("\n-- measured\n").next();
    let update = "UPDATE item SET v = randomblob(100) WHERE k = 1 + :random % :rows;";
    let script = format!("{}\n-- measured\n{update}", fill.expect("it has two parts"));
    let per_transaction = |mode| {
        let settings = [("vfs_write", mode)];
        let stores = run(&settings, &with_script(&script), 1_000, |all| all.stores.len());
        stores.expect("it runs") as f64 / 1_000.0
    };
    let [pages, lines, words] = [0, 1, 2].map(per_transaction);
    assert!((1.9..2.1).contains(&(pages / 512.0)), "{pages} words in pages");
    assert!((4.0..5.0).contains(&(lines / 8.0)), "{lines} words in lines");
    assert!((14.0..17.0).contains(&words), "{words} words");
}

#[test]
fn a_run_depends_on_the_seed_alone() {
    let stores = |seed| {
        let site = Site { seed, ..site(1) };
        run(&[("rows", 500)], &site, 200, |recorder| recorder.stores.clone()).expect("it runs")
    };
    let alone = stores(1);
    assert!(alone != stores(2), "another seed is another run");
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| stores(1))).collect();
        for other in others {
            assert!(other.join().expect("it ends") == alone, "other threads change nothing");
        }
    });
}

#[test]
fn two_databases_take_turns_in_the_middle_of_an_operation() {
    let both = site(2);
    let settings = [("rows", 2_000)];
    let alone = [0, 1].map(|core| {
        let (workload, mut view) = populated(&settings, &both).expect("it is populated");
        let mut program = workload.program(CoreId(core)).expect("it starts");
        let mut recorder = Recorder::new(&mut view);
        recorder.run(&mut *program, CoreId(core), 90).expect("it runs");
        recorder.stores
    });

    // The programs have memories of their own here, since a recorder borrows its whole memory.
    let (workload, mut view) = populated(&settings, &both).expect("it is populated");
    let (_, mut other_view) = populated(&settings, &both).expect("it is populated");
    let mut program = workload.program(CoreId(0)).expect("it starts");
    let mut other_program = workload.program(CoreId(1)).expect("it starts");
    let mut other = Recorder::new(&mut other_view);
    let mut turns = 0;
    let mut between = || {
        turns += 1;
        if turns <= 90 {
            other.run(&mut *other_program, CoreId(1), 1).expect("it runs");
        }
    };
    let mut recorder = Recorder { between: Some(&mut between), ..Recorder::new(&mut view) };
    recorder.run(&mut *program, CoreId(0), 90).expect("it runs");
    assert!(recorder.stores == alone[0], "core 0 does what it does alone");
    assert!(turns >= 90, "{turns} turns");
    assert!(other.stores == alone[1], "core 1 does what it does alone");
}

#[test]
fn each_core_has_a_database_of_its_own() {
    let site = site(3);
    let (workload, mut view) = populated(&[("rows", 300)], &site).expect("it is populated");
    for core in (0..3).map(CoreId) {
        let mut program = workload.program(core).expect("it starts");
        let mut recorder = Recorder::new(&mut view);
        recorder.run(&mut *program, core, 50).expect("it runs");
        let part = site.part(core);
        assert!(recorder.stores.iter().all(|(address, ..)| part.contains(address)));
    }
    check(&*workload, &view.pm).expect("all are sound");
}

#[test]
fn a_damaged_database_is_found() {
    let (workload, mut view) = populated(&[("rows", 2_000)], &site(2)).expect("it is populated");
    check(&*workload, &view.pm).expect("it is sound");
    let second = site(2).part(CoreId(1)).start;
    let mut damaged = |address: u64, what: &str| {
        let kept = view.pm.set_word(Word::of(address), 0x0123_4567_89ab_cdef);
        let found = check(&*workload, &view.pm).expect_err("it is damaged");
        assert!(found.starts_with("the database of core 1: "), "{found}");
        assert!(found.contains(what), "{found}");
        view.pm.set_word(Word::of(address), kept);
    };
    damaged(second, "the header");
    damaged(second + 8, "bytes, in a part that has room for");
    damaged(second + LINE_BYTES, "file is not a database");
    damaged(second + LINE_BYTES + 5 * 4096, "malformed");
    check(&*workload, &view.pm).expect("it is sound again");
}

#[test]
fn memory_that_is_used_up_is_told() {
    let site = Site { heap: 4096..4096 + (1 << 20), ..site(1) };
    let stop = populated(&[("rows", 20_000)], &site).err();
    assert!(matches!(stop, Some(Stop::OutOfMemory { asked: 4096, .. })), "{stop:?}");

    let grows = "CREATE TABLE t (v BLOB); -- Nothing is in it.\n-- measured\nINSERT INTO t VALUES \
                 (randomblob(3000));";
    let site = Site { script: Some(Script::new("grows.sql", grows)), ..site };
    let stop = run(&[], &site, 10_000, |_| ()).err();
    assert!(matches!(stop, Some(Stop::OutOfMemory { free: 0..4096, .. })), "{stop:?}");
}

#[test]
fn rows_are_fewer_on_a_small_machine() {
    let small = Site { heap: 0..2 << 16, items: 64, ..site(2) };
    let (workload, view) = populated(&[], &small).expect("it fits");
    check(&*workload, &view.pm).expect("it is sound");
    assert!(view.pm.word(Word(1)) <= 9 * 4096, "{} bytes", view.pm.word(Word(1)));
}

#[test]
fn a_cancelled_run_ends() {
    let (workload, mut view) = populated(&[("rows", 100)], &site(1)).expect("it is populated");
    let mut program = workload.program(CoreId(0)).expect("it starts");
    let mut recorder = Recorder { cancelled: true, ..Recorder::new(&mut view) };
    let stop = recorder.run(&mut *program, CoreId(0), 1);
    assert!(matches!(stop, Err(Stop::Cancelled)), "{stop:?}");
    assert!(recorder.stores.is_empty());
}

#[test]
fn a_panic_unwinds_through_sqlite_and_leaves_others_alone() {
    let begins_anew = with_script("CREATE TABLE t (v); INSERT INTO t VALUES (1); SELECT * FROM t;");
    for (site, times) in [(site(1), 1), (begins_anew, 30)] {
        for time in 1..=times {
            let (workload, mut view) = populated(&[("rows", 2_000)], &site).expect("it fits");
            let mut program = workload.program(CoreId(0)).expect("it starts");
            let mut left = time;
            let mut between = || {
                left -= 1;
                if left == 0 {
                    std::panic::resume_unwind(Box::new("stop here"));
                }
            };
            let mut recorder = Recorder { between: Some(&mut between), ..Recorder::new(&mut view) };
            let run = std::panic::AssertUnwindSafe(|| recorder.run(&mut *program, CoreId(0), 400));
            std::panic::catch_unwind(run).expect_err("it does not get far");
            drop(program);
        }
        run(&[("rows", 2_000)], &site, 90, |_| ()).expect("it runs");
    }
}

#[test]
fn scripts_are_read() {
    let table = "CREATE TABLE t (k INTEGER PRIMARY KEY, v);\n";
    let good = [
        "INSERT INTO t VALUES (NULL, ':random; -- measured') -- no semicolon",
        "INSERT INTO t VALUES (:n * 64 + :core, :rows);",
        "/* ; */ -- ;\n;; SELECT 1; INSERT INTO t (v) VALUES (datetime('now'));",
        "SAVEPOINT a; INSERT INTO t (v) VALUES (1); SAVEPOINT b; ROLLBACK TO b; RELEASE a;",
        "BEGIN; INSERT INTO t (v) VALUES (1); ROLLBACK; BEGIN; COMMIT;",
        "CREATE TABLE u (k); INSERT INTO u VALUES (1);\n-- measured\nDELETE FROM u;",
        "PRAGMA secure_delete = ON;\n-- measured\nDELETE FROM t;",
        "CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; SELECT ';'; END;\n\
         INSERT INTO t (v) VALUES (1);",
        "ANALYZE; REINDEX;",
        "-- measured\nCREATE TABLE u (k); INSERT INTO u VALUES (1); DROP TABLE u;",
        "ANALYZE; SELECT * FROM sqlite_stat1;",
        "DROP TABLE IF EXISTS u; CREATE TABLE u (k); INSERT INTO u VALUES (1); SELECT k FROM u;",
        "CREATE TABLE u AS SELECT * FROM t LIMIT :rows; SELECT * FROM u;",
        "--measured\nINSERT INTO t (v) VALUES (1);",
        "\u{feff} --- Measured \r\nINSERT INTO t (v) VALUES (1);",
        "\u{feff}\x0c\rPRAGMA foreign_keys = ON;\u{feff} SELECT 1;",
        "CREATE TEMP TABLE u (k); DROP TABLE u;\n-- measured\nSELECT 1;",
        "-- measured\nCREATE TEMP TABLE IF NOT EXISTS u (k);\n\
         BEGIN; INSERT INTO u VALUES (1); INSERT INTO t (v) VALUES (1); COMMIT;",
    ];
    for script in good {
        assert_eq!(complaint(&format!("{table}{script}")), "nothing", "of {script}");
    }
}

#[test]
fn the_first_part_runs_in_the_order_in_which_it_stands() {
    // What is measured fails, unless the copy has the one row.
    let scripts = [
        "CREATE TABLE t (k); INSERT INTO t VALUES (1); CREATE TABLE copy AS SELECT * FROM t;",
        "BEGIN; CREATE TABLE copy (k); INSERT INTO copy VALUES (1); COMMIT;",
        "CREATE TABLE copy (k); INSERT INTO copy VALUES (2); DELETE FROM copy; DROP TABLE copy;\n\
         CREATE TABLE copy (k UNIQUE); INSERT INTO copy VALUES (1); PRAGMA user_version = 7;",
    ];
    let measured = "INSERT INTO counted SELECT count(*) FROM copy;";
    for script in scripts {
        let counted = "CREATE TABLE counted (n CHECK (n = 1));";
        let script = format!("{counted}{script}\n-- measured\n{measured}");
        assert_eq!(complaint(&script), "nothing", "of {script}");
    }
}

/// Each pass of a script without a marker begins on an empty database, which takes a transaction.
#[test]
fn a_script_without_a_marker_is_repeated_from_its_first_statement() {
    let scripts = [
        "PRAGMA foreign_keys=OFF; BEGIN TRANSACTION; CREATE TABLE t(a PRIMARY KEY);\n\
         INSERT INTO t VALUES(1); COMMIT;",
        "DROP TABLE IF EXISTS t; CREATE TABLE t(a); INSERT INTO t VALUES (1), (2);\n\
         CREATE INDEX i ON t(a); INSERT INTO t VALUES (3); SELECT * FROM t; DROP TABLE t;",
        "CREATE TABLE t(a PRIMARY KEY); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2);",
        "CREATE TEMP TABLE u(k); CREATE TABLE t(k); INSERT INTO u VALUES(1);\n\
         INSERT INTO t SELECT k FROM u;",
        // Rows that a constraint forbids are no damage.
        "CREATE TABLE t(k CHECK (k > 5)); PRAGMA ignore_check_constraints = ON;\n\
         INSERT INTO t VALUES (1); PRAGMA ignore_check_constraints = OFF;",
        "CREATE TABLE t(n CHECK (n = 0)); INSERT INTO t SELECT count(*) FROM t;",
    ];
    for script in scripts {
        for mode in 0..3 {
            let settings = [("vfs_write", mode)];
            run(&settings, &with_script(script), 50, |recorder| {
                assert_eq!(recorder.transactions, 50, "{script}");
                assert_eq!(recorder.stores_outside, 0, "{script}");
            })
            .expect(script);
        }
    }
    let selects = |text| run(&[], &with_script(text), 50, |recorder| recorder.stores.len());
    assert_eq!(selects("SELECT 1; SELECT 2;").expect("it runs"), 0, "nothing is to be emptied");
}

/// `:n` counts the script's transactions, and not those that empty the database.
#[test]
fn the_numbers_of_transactions_have_no_gaps() {
    let script = "CREATE TABLE t(n CHECK (n % 2 = 1)); INSERT INTO t VALUES (:n);";
    assert_eq!(complaint(script), "nothing");
}

#[test]
fn bad_scripts_are_refused_by_line() {
    let cases = [
        ("\n\nSELEC 1;", "script `mine.sql`, line 3: near \"SELEC\": syntax error"),
        (
            "SELECT 1;\n\nSELECT\n* FORM t;",
            "script `mine.sql`, line 3: near \"FORM\": syntax error",
        ),
        ("CREATE TABLE t (k);\n-- measured\n-- x\nSELECT j FROM t;", "line 4: no such column: j"),
        (
            "SELECT 1;\n-- measured\n\n",
            "line 3: the script ends, and has no statement to measure: put what is to be measured \
             after a line `-- measured`",
        ),
        ("-- 1\n;\n/* 3 */", "line 3: the script ends, and has no statement to measure"),
        ("PRAGMA foreign_keys=1;\nPRAGMA page_size=4096;", "line 2: the script ends, and has no"),
        ("CREATE TABLE t (k)\nSELECT 1;", "line 1: near \"SELECT\": syntax error"),
        ("BEGIN;\nCREATE TABLE t (k);\nEND;\n--measured", "line 4: the script ends, and has no"),
        (
            "SELECT 1;\n-- measured\nSELECT 1;\n -- MEASURED\n",
            "line 4: a second line `-- measured`",
        ),
        ("SELECT 1;\nSELECT 'a", "line 2: the statement that begins here does not end"),
        ("SELECT 1;\nSELECT ';;;\n;", "line 2: the statement that begins here does not end"),
        ("SELECT 1;\n.print it's", "line 2: `.print` is a command of the sqlite3 shell; leave it"),
        ("SELECT 1;\nSELECT 1 +", "line 2: incomplete input"),
        ("INSERT INTO t\n-- measured\nVALUES (1);", "line 1: incomplete input"),
        ("SELECT 1;\nSELECT '\0';", "line 2: a zero byte; a script is plain text in UTF-8"),
        ("SELECT 1;\nBEGIN;\nSELECT 1;", "line 2: the transaction that begins here does not end"),
        ("BEGIN;\nCREATE TABLE t (k);", "line 1: the transaction that begins here does not end"),
        ("SELECT :key;", "line 1: unknown parameter `:key`; a statement has `:random`, `:n`,"),
        ("SELECT ?;", "line 1: unknown parameter `?`; "),
        ("ATTACH 'x' AS x;", "line 1: ATTACH is not supported here: a commit that spans two files"),
        ("SELECT 1;\nVACUUM;", "line 2: VACUUM is not supported here"),
        ("\u{feff}VACUUM; SELECT 1;", "line 1: VACUUM is not supported here"),
        (" \x0b/*/ */ VACUUM; SELECT 1;", "line 1: VACUUM is not supported here"),
        (
            "SELECT 1;\nCREATE TEMPORARY TABLE u (k);\n-- measured\nSELECT 1;",
            "line 2: the measured part has a connection of its own, in which nothing temporary of \
             before is left: put `CREATE TEMP ... IF NOT EXISTS` after the line `-- measured`",
        ),
        ("CREATE TABLE temp.u (k);\n-- measured\nSELECT 1;", "line 1: the measured part has a"),
        (
            "CREATE TABLE t (k UNIQUE);\n-- measured\nSELECT 1;\nINSERT INTO t VALUES (1);",
            "script `mine.sql`, line 4: UNIQUE constraint failed: t.k (in pass 2: what is measured \
             is repeated; what is to be done once belongs before a line `-- measured`)",
        ),
        ("-- measured\nCREATE TABLE t (k);", "line 2: table t already exists (in pass 2: "),
        ("CREATE TABLE t (k UNIQUE);\nINSERT INTO t VALUES (1), (1);", "line 2: UNIQUE constraint"),
        (
            "CREATE TABLE t (k CHECK (k < 3)); INSERT INTO t VALUES (:n);",
            "script `mine.sql`, line 1: CHECK constraint failed: k < 3 (in pass 2)",
        ),
    ];
    for (script, sentence) in cases {
        let complaint = complaint(script);
        assert!(complaint.contains(sentence), "{complaint}\nof\n{script}");
    }
    let first = "CREATE TABLE t (k UNIQUE);\n-- measured\nINSERT INTO t VALUES (1), (1);";
    let first = complaint(first);
    assert!(first.ends_with("line 3: UNIQUE constraint failed: t.k"), "{first}");
}

#[test]
fn pragmas_ask_anywhere_and_set_before_the_measured_part() {
    let asking = "page_count freelist_count compile_options database_list collation_list \
                  function_list schema_version user_version encoding journal_mode synchronous \
                  page_size locking_mode auto_vacuum cache_spill cache_size mmap_size temp_store \
                  busy_timeout table_info(t) table_xinfo(t) table_list index_list(t) index_info(i) \
                  index_xinfo(i) foreign_key_list(t) foreign_key_check(t) integrity_check \
                  quick_check main.table_info=t foreign_keys";
    for pragma in asking.split_whitespace() {
        let script = format!(
            "CREATE TABLE t (k); CREATE INDEX i ON t (k); PRAGMA {pragma};\n-- measured\n\
             PRAGMA {pragma}; INSERT INTO t VALUES (1); PRAGMA {pragma};"
        );
        assert_eq!(complaint(&script), "nothing", "of {pragma}");
    }

    let part = "CREATE TABLE t (k CHECK (k > 5));\n-- measured\nINSERT INTO t VALUES (6 + :n);";
    let plain = run(&[], &with_script(part), 50, |recorder| recorder.stores.clone());
    let plain = plain.expect("it runs");
    let same = [
        "auto_vacuum = none; PRAGMA auto_vacuum(0)",
        "cache_spill = OFF; PRAGMA cache_spill = 0",
        "Encoding = 'utf-8'; PRAGMA encoding = \"UTF8\"",
        "main.journal_mode = DELETE; PRAGMA [Journal_Mode](Delete)",
        "locking_mode = /* as ever */ NORMAL",
        "mmap_size = 0",
        "page_size = 4096",
        "synchronous = FULL; PRAGMA main . synchronous = 2",
        "temp_store = MEMORY; PRAGMA busy_timeout = 5000",
    ];
    for pragma in same {
        let script = format!("PRAGMA {pragma};\n{part}");
        let stores = run(&[], &with_script(&script), 50, |recorder| recorder.stores.clone());
        assert!(stores.expect("it runs") == plain, "{pragma} changes what is stored");
    }
    let ignoring = "PRAGMA ignore_check_constraints = ON;\n";
    assert_eq!(complaint(&format!("{ignoring}{}", part.replace("6 + ", ""))), "nothing");
}

#[test]
fn pragmas_that_are_not_possible_are_refused_with_the_reason() {
    let cases = [
        (
            "SELECT 1;\nPRAGMA main.journal_mode = WAL;",
            "line 2: PRAGMA journal_mode is not supported",
        ),
        (
            "PRAGMA \"journal_mode\"(wal); SELECT 1;",
            "here: the journal is what the design stands for",
        ),
        (
            "PRAGMA Locking_Mode=EXCLUSIVE; SELECT 1;",
            "line 1: PRAGMA locking_mode is not supported",
        ),
        (
            "PRAGMA mmap_size(9); SELECT 1;",
            "line 1: PRAGMA mmap_size is not supported here: a mapped",
        ),
        ("PRAGMA page_size = 8192; SELECT 1;", "not supported here: pages have 4096 bytes"),
        ("PRAGMA cache_size = -2000; SELECT 1;", "not supported here: set workload.cache_pages"),
        (
            "PRAGMA synchronous = OFF; SELECT 1;",
            "not supported here: every commit is to be durable",
        ),
        ("PRAGMA encoding = 'UTF-16le'; SELECT 1;", "first page already, in UTF-8"),
        ("PRAGMA auto_vacuum = FULL; SELECT 1;", "first page already, with NONE"),
        ("PRAGMA cache_spill = 100; SELECT 1;", "would need a journal, so it is OFF"),
        ("PRAGMA schema_version = 5; SELECT 1;", "SQLite counts the changes of the schema with it"),
        ("PRAGMA writable_schema=ON; SELECT 1;", "a dump of virtual tables has to CREATE them"),
        ("PRAGMA application_id = 5; SELECT 1;", "the workload signs its databases with it"),
        (
            "PRAGMA wal_checkpoint; SELECT 1;",
            "line 1: PRAGMA wal_checkpoint is not supported here; supported are ",
        ),
        (
            "PRAGMA foreign_key = 1;",
            "did you mean `foreign_keys`? supported are foreign_keys, fore",
        ),
        (
            "-- measured\nPRAGMA foreign_keys=1;",
            "line 2: PRAGMA foreign_keys belongs before the line",
        ),
        ("-- measured\nPRAGMA journal_mode=DELETE;", "line 2: PRAGMA journal_mode belongs before"),
        ("SELECT 1;\nEXPLAIN PRAGMA synchronous=OFF;", "line 2: EXPLAIN PRAGMA is not supported"),
        ("explain/**/query plan pragma x=1;", "SQLite obeys some pragmas already when"),
    ];
    for (script, sentence) in cases {
        let complaint = complaint(script);
        assert!(complaint.contains(sentence), "{complaint}\nof\n{script}");
    }
}

/// The measurement of `instructions_per_step`, when it is run under callgrind with `TRANSACTIONS`
/// and `SCRIPT` set: see the documentation of `crate::sqlite`.
#[test]
#[expect(clippy::print_stdout, reason = "it is there to print, too")]
fn profile() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let transactions = number("TRANSACTIONS").unwrap_or(300);
    let mut site = site(1);
    site.script = std::env::var("SCRIPT").ok().map(|text| Script::new("SCRIPT", text));
    let others = ["instructions_per_statement", "instructions_per_commit"].map(|name| (name, 0));
    let settings = [others[0], others[1], ("instructions_per_step", 1)];
    run(&settings, &site, transactions, |recorder| {
        assert!(recorder.instructions >= 2 * transactions, "a statement takes several steps");
        println!(
            "{transactions} transactions: {} steps, {} loads, {} stores",
            recorder.instructions,
            recorder.loads,
            recorder.stores.len()
        );
    })
    .expect("it runs");
}
