//! `sqlite`: a real SQLite, whose database lies in persistent memory.
//!
//! SQLite is told that its file system writes batches of pages atomically
//! (`SQLITE_IOCAP_BATCH_ATOMIC`). It then opens no rollback journal but brackets the pages of each
//! commit as one batch, and the batch is the design's transaction: what is measured is the design
//! in place of SQLite's journal. Each core has a connection and a database of its own.
//!
//! Simulated are all bytes that SQLite reads from or writes to its file, with one load or store a
//! word, and the instructions in between, estimated from the steps of SQLite's virtual machine.
//! SQLite's own memory is not simulated, its page cache included, which stands for data in DRAM
//! that hits the caches. A page that fits the page cache (`cache_pages`) is not loaded again.
//!
//! SQLite reads while a statement runs, and writes when it commits. So a design's transaction
//! begins with the commit and holds nothing but stores. A transaction that changes nothing (one of
//! `SELECT` alone, say) counts as an empty transaction of the design, and one that SQL rolls back
//! as an empty one that is aborted.
//!
//! The setting is SQLite's default (`journal_mode=DELETE`, `synchronous=FULL`,
//! `locking_mode=NORMAL`, pages of 4096 bytes) but for `cache_spill=OFF`: a page that is written
//! before the commit would need a journal. Whatever should take a commit out of the batch all the
//! same ends the run with [`Stop::Failed`]. Foreign keys are looked at only after `PRAGMA
//! foreign_keys = ON`, as ever in SQLite. Two of the options that SQLite is compiled with here are
//! not its defaults and change what a script does: `ENABLE_STAT4`, with which `ANALYZE` also fills
//! `sqlite_stat4`, and plans follow from that; and `ENABLE_FTS3_PARENTHESIS`, with which `MATCH`
//! in FTS3 and FTS4 reads `AND`, `NOT` and parentheses. The others add functions and tables.
//!
//! **Instructions.** SQLite's steps differ much in cost, and most of a short transaction is not
//! steps but starting the statement and committing. So there are three costs, fitted to what
//! callgrind counts (SQLite 3.54.1 at `-O2` on x86-64, without the file operations) per
//! transaction:
//!
//! ```text
//!                                          steps    counted  estimated
//! SELECT by key                               13      3,722      3,700
//! UPDATE by key                               21     14,973     16,500
//! INSERT OR REPLACE by key                    19     15,006     16,300
//! DELETE of the oldest, with an index         28     19,212     17,200
//! the default script, mean of its nine      42.0     21,981     20,200
//! SELECT max(v), over 20,000 rows         80,010 10,775,548  8,003,400
//! SELECT count(*) WHERE .. AND length(v)  91,445  6,346,580  9,146,900
//! ```
//!
//! Counted as the difference of runs with `TRANSACTIONS=9000` and `TRANSACTIONS=0` of `valgrind
//! --tool=callgrind --toggle-collect=sqlite3_step` (and with `--toggle-collect=` of each of
//! `workloads::sqlite::vfs::{read, write, file_control, file_size, progress}`, which takes them
//! out) on the test `profile` of tests/suites/sqlite.rs. The steps of a statement are charged while
//! it runs, every 128, and the rest when it is done. Those of the statements that virtual tables
//! (FTS, R-tree) run inside of another are charged every 128 only, without the rest.
//!
//! **Scripts.** `--sql FILE` is plain SQL in UTF-8. What stands before a line `-- measured` (or
//! `--measured`, in any case) fills the database; what stands after it is measured, and repeated
//! on what is there. A measured statement must not fail, also not when it is repeated.
//!
//! A script without such a line is measured whole, from its first statement on an empty database,
//! so that whatever SQLite runs there can be measured. When it has come to its end and more
//! transactions are asked for, it begins anew: one transaction of the design makes the file the
//! empty database, and another connection takes the place of the one before. This transaction
//! stores what differs of the first page, and the length in the header, and is one of the run's
//! (but not of `:n`). So a power failure leaves the database as the script made it, or an empty
//! one. The new connection reads the first page again; what SQLite does to open and close besides
//! is free, as is compiling statements. After a pass that changed nothing (one of `SELECT` alone,
//! say) there is nothing to empty, and no such transaction. The empty database is one page with the
//! workload's signature, since a file of no bytes has no atomic batches.
//!
//! Statements may use the parameters `:random` (0 to 2^63 - 1, new for each execution of a
//! statement), `:n` (the number of transactions before this one), `:core` and `:rows`; `random()`
//! and `randomblob()` are seeded, the clock starts on 2026-01-01, and local time is UTC. But some
//! of what SQLite makes up comes from a generator that all of its connections in the process share,
//! and no seed determines that: further rowids of a table whose largest is 2^63 - 1, names of
//! columns from the sixth of one name on (`CREATE TABLE ... AS`), and what `fts5_locale()` begins
//! with.
//!
//! The rows of a recovered database are held to their `CHECK` constraints. Where one of these asks
//! for `random()`, `changes()` or the like, it may refuse a row that it let in, in any database; if
//! it does, the database is checked without its constraints.
//!
//! The measured part has a connection of its own: `PRAGMA` statements of the first part that set
//! something for a connection hold there too (and where the database is checked), and tables that
//! are `TEMP` are to be made in the measured part, `IF NOT EXISTS`. In a script that is measured
//! whole, each pass has its connection, and such pragmas are run where they stand, together with
//! the transaction before them. Which pragmas there are is in `pragma.rs`: those that ask are
//! possible anywhere; of those that would touch files, journals and locks only the value that the
//! workload has anyway.

mod connection;
mod file;
mod pragma;
mod runner;
mod script;
#[cfg(test)]
mod tests;
mod vfs;
mod words;

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use model::engine::on_program_stack;
use model::image::Image;
use model::units::CoreId;
use model::workload::{About, Declared, Pm, Program, Reopens, Site, Step, Stop, Workload};

use connection::Connection;
use file::{File, Granularity};
use runner::Runner;
use script::Script;
use vfs::Costs;

use crate::rng::{Random, mix};

model::params! {
    /// Parameters of the workload `sqlite`.
    pub struct SqliteParams {
        /// Rows of each core's table, `:rows` in a script. 0 is 20,000, or as many as the machine's
        /// items allow for each core, or as fill half of the core's memory at 256 bytes a row.
        rows = 0 in 0..=1_000_000_000;
        /// Pages of 4 KiB in SQLite's page cache. The default, 256 KiB, is a tenth of the default
        /// database, so that most statements read; SQLite's own is 2,000 KiB.
        cache_pages = 64 in 10..=1_000_000;
        /// What a page that SQLite writes becomes: stores to all of it, to the lines that differ,
        /// or to the words that differ, which is what a program made for persistent memory stores.
        vfs_write: Granularity = DiffWords;
        /// Instructions for each step of SQLite's virtual machine. Measured, as are the next two:
        /// 70 to 135 in scans of the default table.
        instructions_per_step = 100 in 0..=1_000_000;
        /// Instructions for each execution of a statement, besides its steps.
        instructions_per_statement = 2_400 in 0..=1_000_000;
        /// Instructions for each commit that writes, besides the statement's.
        instructions_per_commit = 12_000 in 0..=1_000_000;
    }
}

/// Rows of the default table, as in the measurements that the workload is checked against.
const ROWS: u64 = 20_000;
/// Bytes of memory for each row, twice over, when the memory limits the rows.
const ROW_BYTES: u64 = 512;
/// Pages of the page cache while the database is populated.
const POPULATE_CACHE_PAGES: u64 = 4096;
/// `indl`, for the field of the database's header that names the application. Storing it makes the
/// database's first page, because a database without pages has no atomic batches.
const APPLICATION_ID: u32 = u32::from_be_bytes(*b"indl");

/// A real SQLite, whose database lies in persistent memory.
#[derive(Debug)]
pub struct Sqlite {
    params: SqliteParams,
    rows: u64,
    seed: u64,
    script: Arc<Script>,
    parts: Vec<Range<u64>>,
    /// The file in each part, as populating, or a power failure and recovery, left it.
    populated: Vec<Vec<u8>>,
    /// The file on which each pass of a script that is measured whole begins.
    empty: Arc<[u8]>,
    /// Whether a power failure and recovery have left the databases.
    reopened: bool,
    /// The `:n` of the first measured transaction.
    first_number: i64,
}

impl Declared for Sqlite {
    const ABOUT: About = About {
        name: "sqlite",
        summary: "a real SQLite on a database in persistent memory; SQL's transactions are the \
                  design's",
        source: "SQLite 3 with batch-atomic writes; LOC (ICCD'14) has SQLite as macro-benchmark",
        file: file!(),
        shared: false,
    };
    const SCRIPT: Option<&'static str> = Some("--sql");
    const REOPENS: Reopens = Reopens::UnlessScripted;
    type Params = SqliteParams;

    fn new(params: &SqliteParams, site: &Site) -> Step<Sqlite> {
        connection::check_build()?;
        let script =
            on_large_stack(|| Script::read(site.script.as_ref())).map_err(Stop::Input)??;
        let script = Arc::new(script);
        let parts: Vec<_> = (0..site.cores).map(|core| site.part(CoreId(core))).collect();
        let part = parts.first().map_or(0, |part| part.end - part.start);
        let items = site.items / u64::from(site.cores.max(1));
        let rows = match params.rows {
            0 => ROWS.min(items).min(part / ROW_BYTES).max(1),
            rows => rows,
        };
        Ok(Sqlite {
            params: params.clone(),
            rows,
            seed: site.seed,
            script,
            parts,
            populated: Vec::new(),
            empty: Arc::default(),
            reopened: false,
            first_number: 0,
        })
    }
}

impl Workload for Sqlite {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        let cores = (0..self.parts.len() as u8).map(CoreId);
        let fill = || cores.map(|core| self.fill(core, pm)).collect::<Step<_>>();
        self.populated = on_large_stack(fill).map_err(Stop::Input)??;
        if let Some(filled) = self.populated.first().filter(|_| self.script.whole) {
            self.empty = filled.as_slice().into();
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(on_large_stack(|| self.measured(core)).map_err(Stop::Input)??))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        let check = |(core, bytes)| {
            self.integrity(bytes).map_err(|what| format!("the database of core {core}: {what}"))
        };
        let files = self.recovered(image)?;
        on_large_stack(|| files.into_iter().enumerate().try_for_each(check))?
    }

    /// Has SQLite open each database as it was left. The script goes on from its first measured
    /// statement (on an empty database, if the script is measured whole), with a `:n` that no
    /// earlier life has had.
    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        self.check(image)?;
        self.populated = self.recovered(image)?;
        self.reopened = true;
        self.first_number = (mix(seed) >> 24) as i64;
        self.seed = seed;
        Ok(())
    }
}

/// Does some work with SQLite on a stack that has room for its recursion, since a thread's stack
/// may be smaller than that of the programs.
fn on_large_stack<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    on_program_stack(work).map_err(|error| format!("the host has no room for a stack: {error}"))
}

impl Sqlite {
    /// The files of all databases, as an image has them.
    fn recovered(&self, image: &Image<'_>) -> Result<Vec<Vec<u8>>, String> {
        let file = |(core, part)| {
            let what = |what| format!("the database of core {core}: {what}");
            file::recovered(image, part).map_err(what)
        };
        self.parts.iter().enumerate().map(file).collect()
    }

    /// Returns the runner of one core in the measured region.
    fn measured(&self, core: CoreId) -> Step<Runner> {
        let place = usize::from(core.0);
        let (Some(part), Some(bytes)) = (self.parts.get(place), self.populated.get(place)) else {
            return Err(Stop::Failed(format!("the database of {core} is not populated")));
        };
        let mut file = File::measured(part.clone(), self.params.vfs_write, bytes);
        if self.reopened && self.script.whole {
            file = file.with_anything_behind();
        }
        let mut runner = self.runner(core, file, "sqlite")?;
        let cache_size = format!("cache_size={}", self.params.cache_pages);
        runner.own_settings = vec!["cache_spill=OFF".to_owned(), cache_size];
        runner.empty = Arc::clone(&self.empty);
        runner.begin_measured(self.first_number)?;
        Ok(runner)
    }

    fn runner(&self, core: CoreId, file: File, stream: &str) -> Step<Runner> {
        let random = |what: &str| Random::new(self.seed, core, &format!("{stream}, {what}"));
        let costs = Costs {
            instructions_per_step: self.params.instructions_per_step,
            instructions_per_statement: self.params.instructions_per_statement,
            instructions_per_commit: self.params.instructions_per_commit,
        };
        let connection = Connection::open(file, random("functions"), costs)?;
        let script = Arc::clone(&self.script);
        Ok(Runner::new(Rc::new(connection), script, random("parameters"), core, self.rows))
    }

    /// Fills the database of one core, and returns the file.
    fn fill(&self, core: CoreId, pm: &mut Pm<'_>) -> Step<Vec<u8>> {
        let file = File::empty(self.parts[usize::from(core.0)].clone());
        let mut runner = self.runner(core, file, "sqlite, populate")?;
        runner.set(&format!("page_size={}", file::PAGE_BYTES))?;
        runner.set(&format!("cache_size={POPULATE_CACHE_PAGES}"))?;
        let sign = format!("PRAGMA application_id={APPLICATION_ID}");
        runner.populate(&sign, pm)?;
        let mut file = runner.connection.file();
        file.seal(pm);
        Ok(file.bytes().to_vec())
    }

    /// Checks that a file is a sound database, as the script's connections see it: a connection
    /// that ignores constraints may leave rows that break them. If the check fails and a constraint
    /// has asked for more than its row, the check is repeated without constraints.
    fn integrity(&self, bytes: Vec<u8>) -> Result<(), String> {
        let random = Random::new(0, CoreId(0), "check");
        let connection = Connection::over(bytes, random).map_err(|stop| format!("{stop:?}"))?;
        self.script.settings_of_check().try_for_each(|pragma| connection.execute(pragma))?;
        let mut found = connection.query("PRAGMA integrity_check")?;
        if found != ["ok"] && connection.has_asked_beyond() {
            connection.execute("PRAGMA ignore_check_constraints = ON")?;
            found = connection.query("PRAGMA integrity_check")?;
        }
        if found == ["ok"] { Ok(()) } else { Err(found.join("; ")) }
    }
}
