//! A connection to one database, in safe words: prepare, run, ask.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::rc::Rc;
use std::sync::Once;

use libsqlite3_sys as ffi;
use model::workload::{Pm, Step, Stop};

use super::file::File;
use super::vfs::{self, Costs, Shared, Vfs};
use crate::rng::Random;

/// The most bytes that `randomblob()` makes, as in SQLite by default.
const BLOB_BYTES_MAX: i64 = 1_000_000_000;

/// The name of every database's file. SQL can read it, so it is not that of the file system, which
/// differs from connection to connection.
const DATABASE: &CStr = c"indelible";

// These run callbacks, through which a cancelled coroutine may unwind. `libsqlite3-sys` declares
// that they do not unwind, so they are declared again.
unsafe extern "C-unwind" {
    fn sqlite3_step(statement: *mut ffi::sqlite3_stmt) -> c_int;
    fn sqlite3_reset(statement: *mut ffi::sqlite3_stmt) -> c_int;
    fn sqlite3_finalize(statement: *mut ffi::sqlite3_stmt) -> c_int;
    fn sqlite3_close(database: *mut ffi::sqlite3) -> c_int;
    fn sqlite3_prepare_v2(
        database: *mut ffi::sqlite3,
        sql: *const c_char,
        bytes: c_int,
        statement: *mut *mut ffi::sqlite3_stmt,
        tail: *mut *const c_char,
    ) -> c_int;
}

/// Checks that SQLite was built with atomic batch writes, which the workload needs.
///
/// # Errors
/// A sentence that says how to build it.
pub(super) fn check_build() -> Step {
    // SAFETY: The name ends with a zero byte.
    if unsafe { ffi::sqlite3_compileoption_used(c"ENABLE_BATCH_ATOMIC_WRITE".as_ptr()) } == 1 {
        return Ok(());
    }
    Err(Stop::Failed(
        "this build's SQLite has no atomic batches; build where cargo reads the repository's \
         .cargo/config.toml, or with LIBSQLITE3_FLAGS=-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE"
            .to_owned(),
    ))
}

/// A function that converts seconds since 1970 to C's date and time, and returns 0 on success.
type LocalTime = unsafe extern "C" fn(*const c_void, *mut c_void) -> c_int;

/// Makes UTC the local time of all of SQLite, so that runs do not depend on the host's time zone.
fn forget_time_zone() {
    static FORGOTTEN: Once = Once::new();
    let (option, by_function) = (ffi::SQLITE_TESTCTRL_LOCALTIME_FAULT, 2 as c_int);
    // SAFETY: This option takes an integer and such a function. No connection is there yet that
    // could ask for the time meanwhile.
    FORGOTTEN.call_once(|| unsafe {
        ffi::sqlite3_test_control(option, by_function, utc as LocalTime);
    });
}

unsafe extern "C" fn utc(seconds: *const c_void, time: *mut c_void) -> c_int {
    // SAFETY: SQLite passes a `time_t`, and a `tm` to be filled.
    let done = unsafe { libc::gmtime_r(seconds.cast(), time.cast()) };
    c_int::from(done.is_null())
}

/// Whether a text ends with a complete statement.
pub(super) fn is_complete(sql: &str) -> bool {
    // SAFETY: The text ends with a zero byte.
    CString::new(sql).is_ok_and(|sql| unsafe { ffi::sqlite3_complete(sql.as_ptr()) } == 1)
}

/// A statement that a connection has prepared.
#[derive(Debug)]
pub(super) struct Prepared(usize);

/// A connection. It is used by one thread at a time.
pub(super) struct Connection {
    database: *mut ffi::sqlite3,
    prepared: RefCell<Vec<*mut ffi::sqlite3_stmt>>,
    /// The bytes of the database, if it is one that is only read.
    _bytes: Vec<u8>,
    /// The file system, unless the database lies in host memory; dropped once the rest is closed.
    vfs: Option<Rc<Vfs>>,
    shared: Rc<Shared>,
}

impl Connection {
    /// Opens the database in a file in persistent memory.
    pub(super) fn open(file: File, random: Random, costs: Costs) -> Step<Connection> {
        let shared = Shared::new(file, random, costs);
        let vfs = Vfs::register(&shared);
        Connection::open_with(shared, Some(Rc::new(vfs)))
    }

    /// Opens the same file once more, for a connection that replaces this one. The read of opening
    /// (the first 100 bytes, of which nothing is kept) costs nothing, because no other core may run
    /// while SQLite opens a file.
    pub(super) fn open_again(&self) -> Step<Connection> {
        Connection::open_with(Rc::clone(&self.shared), self.vfs.clone())
    }

    /// Opens an empty database in host memory.
    pub(super) fn memory(random: Random) -> Step<Connection> {
        Connection::open_with(Shared::new(File::empty(0..0), random, Costs::default()), None)
    }

    /// Opens a file's bytes as a database that is only read. SQL functions about the connection's
    /// past, such as `changes()`, return 0.
    pub(super) fn over(bytes: Vec<u8>, random: Random) -> Step<Connection> {
        let mut connection = Connection::memory(random)?;
        let of_past = [c"changes", c"total_changes", c"last_insert_rowid"];
        let made = of_past.into_iter().try_for_each(|name| connection.make(name, 0, nothing_done));
        made.map_err(Stop::Failed)?;
        let length = bytes.len() as i64;
        connection._bytes = bytes;
        let data = connection._bytes.as_mut_ptr();
        let flags = ffi::SQLITE_DESERIALIZE_READONLY as c_uint;
        // SAFETY: The bytes live as long as the connection, and are not resized; the database is
        // read-only, so SQLite does not resize them either.
        let result = unsafe {
            ffi::sqlite3_deserialize(
                connection.database,
                c"main".as_ptr(),
                data,
                length,
                length,
                flags,
            )
        };
        connection.ok(result).map_err(Stop::Failed)?;
        Ok(connection)
    }

    fn open_with(shared: Rc<Shared>, vfs: Option<Rc<Vfs>>) -> Step<Connection> {
        forget_time_zone();
        let name = if vfs.is_some() { DATABASE } else { c":memory:" };
        let vfs_name = vfs.as_ref().map_or(ptr::null(), |vfs| vfs.name().as_ptr());
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_NOMUTEX;
        let mut database = ptr::null_mut();
        // SAFETY: The names end with a zero byte, and the file system is registered.
        let result = unsafe { ffi::sqlite3_open_v2(name.as_ptr(), &mut database, flags, vfs_name) };
        let (prepared, bytes) = (RefCell::default(), Vec::new());
        let connection = Connection { database, prepared, _bytes: bytes, vfs, shared };
        connection.ok(result).map_err(Stop::Failed)?;
        connection.ignore_foreign_keys().map_err(Stop::Failed)?;
        connection.install_callbacks().map_err(Stop::Failed)?;
        Ok(connection)
    }

    /// Turns foreign keys off until a pragma asks for them, which is SQLite's default but not that
    /// of `libsqlite3-sys`.
    fn ignore_foreign_keys(&self) -> Result<(), String> {
        let (option, off) = (ffi::SQLITE_DBCONFIG_ENABLE_FKEY, 0 as c_int);
        // SAFETY: This option takes an integer, and a pointer that may be null.
        self.ok(unsafe {
            ffi::sqlite3_db_config(self.database, option, off, ptr::null_mut::<c_int>())
        })
    }

    /// Gives SQL random numbers of this connection's own, since those of SQLite are shared by all
    /// threads, and asks to be told of steps and rollbacks.
    fn install_callbacks(&self) -> Result<(), String> {
        self.make(c"random", 0, random)?;
        self.make(c"randomblob", 1, randomblob)?;
        let steps = vfs::STEPS_BETWEEN_CALLS as c_int;
        // SAFETY: The argument of both callbacks lives as long as the connection.
        unsafe {
            ffi::sqlite3_progress_handler(
                self.database,
                steps,
                vfs::PROGRESS,
                self.for_callbacks(),
            );
            ffi::sqlite3_rollback_hook(self.database, vfs::ROLLED_BACK, self.for_callbacks());
        }
        Ok(())
    }

    /// Makes a function of SQL with so many arguments.
    fn make(&self, name: &CStr, arguments: c_int, function: Function) -> Result<(), String> {
        let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_INNOCUOUS;
        // SAFETY: The function's argument lives as long as the connection.
        self.ok(unsafe {
            ffi::sqlite3_create_function_v2(
                self.database,
                name.as_ptr(),
                arguments,
                flags,
                self.for_callbacks(),
                Some(function),
                None,
                None,
                None,
            )
        })
    }

    fn for_callbacks(&self) -> *mut c_void {
        Rc::as_ptr(&self.shared).cast_mut().cast()
    }

    /// Whether SQL has asked for random numbers or, in a database that is only read, for the
    /// connection's past. The results may then differ each time.
    pub(super) fn has_asked_beyond(&self) -> bool {
        self.shared.asked_beyond.get()
    }

    /// Runs `body`, during which the database's file is read and written through `pm`.
    pub(super) fn with_pm<T>(&self, pm: &mut Pm<'_>, body: impl FnOnce() -> T) -> T {
        self.shared.with_pm(pm, body)
    }

    /// The database's file.
    pub(super) fn file(&self) -> std::cell::RefMut<'_, File> {
        self.shared.file.borrow_mut()
    }

    /// Starts other random numbers.
    #[cfg(test)]
    pub(super) fn reseed(&self, random: Random) {
        self.shared.random.replace(random);
    }

    /// Whether a transaction was rolled back since this was last asked.
    pub(super) fn take_rolled_back(&self) -> bool {
        self.shared.rolled_back.take()
    }

    /// Whether no transaction is open.
    pub(super) fn is_autocommit(&self) -> bool {
        // SAFETY: The connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.database) != 0 }
    }

    /// Prepares a statement, to be run any number of times.
    pub(super) fn prepare(&self, sql: &str) -> Result<Prepared, String> {
        let statement = self.compile(sql)?;
        let mut prepared = self.prepared.borrow_mut();
        prepared.push(statement);
        Ok(Prepared(prepared.len() - 1))
    }

    /// Frees a prepared statement; the others are freed with the connection.
    pub(super) fn finalize(&self, prepared: Prepared) {
        let statement = &mut self.prepared.borrow_mut()[prepared.0];
        // SAFETY: The statement is not finalized yet, and the null pointer that takes its place may
        // be finalized.
        unsafe {
            sqlite3_finalize(std::mem::replace(statement, ptr::null_mut()));
        }
    }

    /// The names of a statement's parameters, in the order of their numbers; none if it has none.
    pub(super) fn parameters(&self, sql: &str) -> Result<Vec<Option<String>>, String> {
        let statement = self.compile(sql)?;
        // SAFETY: The statement is not finalized yet; a name that is not null ends with a zero byte
        // and lives as long as the statement.
        unsafe {
            let count = ffi::sqlite3_bind_parameter_count(statement);
            let name = |number| text(ffi::sqlite3_bind_parameter_name(statement, number));
            let names = (1..=count).map(name).collect();
            sqlite3_finalize(statement);
            Ok(names)
        }
    }

    /// The names of the columns that a statement returns.
    pub(super) fn columns(&self, sql: &str) -> Result<Vec<String>, String> {
        let statement = self.compile(sql)?;
        // SAFETY: The statement is not finalized yet; a name is null, where SQLite has no memory
        // for it, or ends with a zero byte and lives as long as the statement.
        unsafe {
            let count = ffi::sqlite3_column_count(statement);
            let name = |column| text(ffi::sqlite3_column_name(statement, column));
            let names = (0..count).map(|column| name(column).unwrap_or_default()).collect();
            sqlite3_finalize(statement);
            Ok(names)
        }
    }

    /// Runs a prepared statement with these values for its parameters, and passes over its rows.
    pub(super) fn run(&self, prepared: &Prepared, values: &[i64]) -> Result<(), String> {
        let statement = self.prepared.borrow()[prepared.0];
        let costs = self.shared.costs;
        self.shared.steps_charged.set(0);
        self.shared.work(costs.instructions_per_statement);
        // SAFETY: The statement is not finalized, since `finalize` consumes its `Prepared`.
        unsafe {
            for (number, value) in (1..).zip(values) {
                self.ok(ffi::sqlite3_bind_int64(statement, number, *value))?;
            }
            let mut result = ffi::SQLITE_ROW;
            while result == ffi::SQLITE_ROW {
                result = sqlite3_step(statement);
            }
            let done = if result == ffi::SQLITE_DONE { Ok(()) } else { self.ok(result) };
            sqlite3_reset(statement);
            let counter = ffi::SQLITE_STMTSTATUS_VM_STEP;
            let steps = ffi::sqlite3_stmt_status(statement, counter, 1) as u64;
            let steps = steps.saturating_sub(self.shared.steps_charged.get());
            self.shared.work(steps * costs.instructions_per_step);
            done
        }
    }

    /// Runs a statement without parameters.
    pub(super) fn execute(&self, sql: &str) -> Result<(), String> {
        self.query(sql).map(|_| ())
    }

    /// Runs a statement without parameters and returns the first column of its rows, as text.
    pub(super) fn query(&self, sql: &str) -> Result<Vec<String>, String> {
        let statement = self.compile(sql)?;
        let mut rows = Vec::new();
        // SAFETY: The statement is not finalized yet, and there is a row when it is asked for.
        unsafe {
            let mut result = sqlite3_step(statement);
            while result == ffi::SQLITE_ROW {
                let column = ffi::sqlite3_column_text(statement, 0);
                rows.push(text(column.cast()).unwrap_or_default());
                result = sqlite3_step(statement);
            }
            let done = if result == ffi::SQLITE_DONE { Ok(rows) } else { Err(self.message()) };
            sqlite3_finalize(statement);
            done
        }
    }

    fn compile(&self, sql: &str) -> Result<*mut ffi::sqlite3_stmt, String> {
        let sql = CString::new(sql).map_err(|_| "the statement contains a zero byte")?;
        let mut statement = ptr::null_mut();
        // SAFETY: The text ends with a zero byte.
        self.ok(unsafe {
            sqlite3_prepare_v2(self.database, sql.as_ptr(), -1, &mut statement, ptr::null_mut())
        })?;
        if statement.is_null() {
            return Err("the statement is empty".to_owned());
        }
        Ok(statement)
    }

    fn ok(&self, result: c_int) -> Result<(), String> {
        if result == ffi::SQLITE_OK { Ok(()) } else { Err(self.message()) }
    }

    fn message(&self) -> String {
        // SAFETY: SQLite returns a text for every connection, also for one that is null.
        unsafe { text(ffi::sqlite3_errmsg(self.database)) }.unwrap_or_default()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.shared.was_interrupted() {
            // SQLite was interrupted in the middle of a call, so the objects that it holds must
            // neither be used nor freed.
            std::mem::forget(self.vfs.take());
            std::mem::forget(Rc::clone(&self.shared));
            return;
        }
        // SAFETY: Nothing runs, and nothing is used afterwards.
        unsafe {
            for statement in self.prepared.get_mut().drain(..) {
                sqlite3_finalize(statement);
            }
            sqlite3_close(self.database);
        }
    }
}

/// A copy of a text of SQLite's.
///
/// # Safety
/// It is null or ends with a zero byte.
unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: The caller keeps the rule above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A function of SQL.
type Function =
    unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value);

/// Notes that the result of a function of SQL does not follow from its arguments, and returns the
/// connection's state.
///
/// # Safety
/// `context` is that of a function that [`Connection::make`] made.
unsafe fn beyond<'a>(context: *mut ffi::sqlite3_context) -> &'a Shared {
    // SAFETY: The caller keeps the rule above.
    let shared = unsafe { &*ffi::sqlite3_user_data(context).cast::<Shared>() };
    shared.asked_beyond.set(true);
    shared
}

/// SQL's `changes()` and the like in a connection that has done nothing.
unsafe extern "C" fn nothing_done(
    context: *mut ffi::sqlite3_context,
    _: c_int,
    _: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite passes what `make` gave it.
    unsafe {
        beyond(context);
        ffi::sqlite3_result_int64(context, 0);
    }
}

/// SQL's `random()`: any integer but the least, which has no absolute value.
unsafe extern "C" fn random(
    context: *mut ffi::sqlite3_context,
    _: c_int,
    _: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite passes what `make` gave it.
    unsafe {
        let drawn = beyond(context).random.borrow_mut().any() as i64;
        ffi::sqlite3_result_int64(context, if drawn < 0 { -(drawn & i64::MAX) } else { drawn });
    }
}

/// SQL's `randomblob(n)`.
unsafe extern "C" fn randomblob(
    context: *mut ffi::sqlite3_context,
    _: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite passes what `make` gave it, and one argument; it copies the bytes.
    unsafe {
        let shared = beyond(context);
        let length = ffi::sqlite3_value_int64(*arguments).max(1);
        if length > BLOB_BYTES_MAX {
            return ffi::sqlite3_result_error_toobig(context);
        }
        let mut bytes = vec![0; length as usize];
        vfs::fill(&shared.random, &mut bytes);
        let length = length as c_int;
        ffi::sqlite3_result_blob(context, bytes.as_ptr().cast(), length, ffi::SQLITE_TRANSIENT());
    }
}
