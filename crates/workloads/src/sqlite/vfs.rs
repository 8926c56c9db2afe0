//! The virtual file system through which SQLite reaches the database in persistent memory: C
//! callbacks that look up their state and act on the file.
//!
//! Each connection has a file system of its own, registered under a name of its own, whose
//! `pAppData` is the connection's [`Shared`] state. So nothing is global but SQLite's own list of
//! file systems (which it guards), also not the clock and the random numbers, and a callback may be
//! suspended in the middle (the programs of simulated cores are coroutines of one thread) while
//! another connection runs.
//!
//! Files other than the database (temporary files, and the journal that SQLite opens while the
//! database is empty) lie in host memory.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{size_of, transmute};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use libsqlite3_sys as ffi;
use model::workload::{Pm, Step};

use super::file::File;
use crate::rng::Random;

/// Steps of SQLite's virtual machine between two calls of the progress handler.
pub(super) const STEPS_BETWEEN_CALLS: u64 = 128;
/// 2026-01-01 00:00:00 UTC, in SQLite's milliseconds (since noon in Greenwich on November 24, 4714
/// B.C.): the time at which every database is first opened. Each look at the clock takes a
/// millisecond.
const CLOCK_START_MILLISECONDS: i64 = 212_633_985_600_000;
/// Longest name of a file; ours have a few letters.
const NAME_BYTES_MAX: usize = 64;

/// The instructions of what SQLite does between the operations on its file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    pub(super) instructions_per_step: u64,
    pub(super) instructions_per_statement: u64,
    pub(super) instructions_per_commit: u64,
}

/// The state that a connection and its callbacks share.
pub(super) struct Shared {
    /// The database's file.
    pub(super) file: RefCell<File>,
    /// Random numbers for SQL's `random()` and `randomblob()`.
    pub(super) random: RefCell<Random>,
    /// Whether SQL has asked for something that does not follow from its arguments: random numbers,
    /// or the connection's past.
    pub(super) asked_beyond: Cell<bool>,
    /// Whether a transaction of SQL was rolled back since this was last cleared.
    pub(super) rolled_back: Cell<bool>,
    /// Instructions between the operations on the file.
    pub(super) costs: Costs,
    /// Steps of the running statement whose instructions were executed already.
    pub(super) steps_charged: Cell<u64>,
    pm: Cell<*mut Pm<'static>>,
    /// Whether SQLite runs on this connection. It stays so if a panic unwinds through SQLite.
    running: Cell<bool>,
    clock_milliseconds: Cell<i64>,
}

impl Shared {
    pub(super) fn new(file: File, random: Random, costs: Costs) -> Rc<Shared> {
        Rc::new(Shared {
            file: RefCell::new(file),
            random: RefCell::new(random),
            asked_beyond: Cell::new(false),
            rolled_back: Cell::new(false),
            costs,
            steps_charged: Cell::new(0),
            pm: Cell::new(ptr::null_mut()),
            running: Cell::new(false),
            clock_milliseconds: Cell::new(CLOCK_START_MILLISECONDS),
        })
    }

    /// Runs `body`, during which the callbacks use `pm`.
    pub(super) fn with_pm<T>(&self, pm: &mut Pm<'_>, body: impl FnOnce() -> T) -> T {
        assert!(self.pm.get().is_null(), "one transaction at a time runs on a connection");
        self.running.set(true);
        // The lifetime is erased here; `lent` is dropped within it and clears the pointer.
        self.pm.set(ptr::from_mut(pm).cast());
        let lent = Lent { shared: self };
        let value = body();
        drop(lent);
        self.running.set(false);
        value
    }

    /// Whether a panic unwound through SQLite, which then cannot be used or closed any more.
    pub(super) fn was_interrupted(&self) -> bool {
        self.running.get()
    }

    /// Executes instructions.
    pub(super) fn work(&self, instructions: u64) {
        self.pm(|pm| {
            if let Some(pm) = pm {
                pm.work(instructions);
            }
        });
    }

    fn pm<T>(&self, body: impl FnOnce(Option<&mut Pm<'_>>) -> T) -> T {
        // SAFETY: The pointer is null, or `with_pm` set it from a `&mut Pm` that outlives the time
        // for which it is set and that only the callbacks of this connection use meanwhile, and
        // `Connection::run` between calls of SQLite. They do not overlap: none of the callbacks
        // calls SQLite, and SQLite calls one after the other.
        body(unsafe { self.pm.get().as_mut() })
    }

    /// Operates on the database's file. The reason of a failure is kept in the file, whose
    /// operations all fail from then on; SQLite hears only that there was a failure.
    fn on_file<T>(&self, act: impl FnOnce(&mut File, Option<&mut Pm<'_>>) -> Step<T>) -> Option<T> {
        let mut file = self.file.borrow_mut();
        if file.stop.is_some() {
            return None;
        }
        match self.pm(|pm| act(&mut file, pm)) {
            Ok(value) => Some(value),
            Err(stop) => {
                file.stop = Some(stop);
                None
            }
        }
    }
}

/// The guard during whose life the callbacks have a `pm`; it is also dropped by a panic.
struct Lent<'a> {
    shared: &'a Shared,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.shared.pm.set(ptr::null_mut());
    }
}

/// A callback as SQLite wants it, whose type does not say that it may unwind.
macro_rules! callback {
    ($function:ident($($argument:tt),*)) => {
        // SAFETY: The two types differ in nothing else, and the calls that lead to a callback are
        // declared to unwind, in `connection`.
        Some(unsafe {
            transmute::<
                unsafe extern "C-unwind" fn($($argument),*) -> c_int,
                unsafe extern "C" fn($($argument),*) -> c_int,
            >($function)
        })
    };
}

/// A registered file system.
pub(super) struct Vfs {
    raw: *mut ffi::sqlite3_vfs,
    name: CString,
    _shared: Rc<Shared>,
}

impl Vfs {
    /// Registers the file system of one connection.
    pub(super) fn register(shared: &Rc<Shared>) -> Vfs {
        static REGISTERED: AtomicU64 = AtomicU64::new(0);
        let number = REGISTERED.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("indelible-{number}")).expect("no zero byte");
        let vfs = ffi::sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<Handle>() as c_int,
            mxPathname: NAME_BYTES_MAX as c_int,
            pNext: ptr::null_mut(),
            zName: name.as_ptr(),
            pAppData: Rc::as_ptr(shared).cast_mut().cast(),
            xOpen: callback!(open(_, _, _, _, _)),
            xDelete: callback!(delete(_, _, _)),
            xAccess: callback!(access(_, _, _, _)),
            xFullPathname: callback!(full_pathname(_, _, _, _)),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: callback!(randomness(_, _, _)),
            xSleep: callback!(sleep(_, _)),
            xCurrentTime: callback!(current_time(_, _)),
            xGetLastError: callback!(last_error(_, _, _)),
            xCurrentTimeInt64: callback!(current_time_int64(_, _)),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        };
        let raw = Box::into_raw(Box::new(vfs));
        // SAFETY: It is not moved until it is unregistered, and the functions that it lacks are
        // those that load extensions, which no connection may do.
        let result = unsafe { ffi::sqlite3_vfs_register(raw, 0) };
        assert_eq!(result, ffi::SQLITE_OK, "SQLite registers a file system");
        Vfs { raw, name, _shared: Rc::clone(shared) }
    }

    /// The name under which SQLite knows it.
    pub(super) fn name(&self) -> &CStr {
        &self.name
    }
}

impl Drop for Vfs {
    fn drop(&mut self) {
        // SAFETY: The connection that used it is closed (or was never opened), so nothing refers to
        // it any more, and it came from a box.
        unsafe {
            ffi::sqlite3_vfs_unregister(self.raw);
            drop(Box::from_raw(self.raw));
        }
    }
}

/// An open file, as SQLite holds it.
#[repr(C)]
struct Handle {
    base: ffi::sqlite3_file,
    shared: *const Shared,
    /// The contents of a file in host memory; null for the database.
    memory: *mut Vec<u8>,
}

struct Methods(ffi::sqlite3_io_methods);
// SAFETY: It holds nothing but pointers to functions, and is never changed.
unsafe impl Sync for Methods {}

static METHODS: Methods = Methods(ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: callback!(close(_)),
    xRead: callback!(read(_, _, _, _)),
    xWrite: callback!(write(_, _, _, _)),
    xTruncate: callback!(truncate(_, _)),
    xSync: callback!(sync(_, _)),
    xFileSize: callback!(file_size(_, _)),
    xLock: callback!(lock(_, _)),
    xUnlock: callback!(lock(_, _)),
    xCheckReservedLock: callback!(check_reserved_lock(_, _)),
    xFileControl: callback!(file_control(_, _, _)),
    xSectorSize: callback!(sector_size(_)),
    xDeviceCharacteristics: callback!(device_characteristics(_)),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
});

/// The state of the connection that a file system belongs to.
///
/// # Safety
/// `vfs` is one that [`Vfs::register`] made, and it is still registered.
unsafe fn state<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Shared {
    // SAFETY: `pAppData` is the `Shared` that `Vfs` keeps alive.
    unsafe { &*(*vfs).pAppData.cast::<Shared>() }
}

/// The file behind SQLite's pointer, and the contents if they are in host memory.
///
/// # Safety
/// `file` is one that [`open`] opened, and it is not closed.
unsafe fn handle<'a>(file: *mut ffi::sqlite3_file) -> (&'a Shared, Option<&'a mut Vec<u8>>) {
    // SAFETY: SQLite hands out what `open` filled in, and uses a file from one place at a time.
    unsafe {
        let handle = &*file.cast::<Handle>();
        (&*handle.shared, handle.memory.as_mut())
    }
}

// SQLite calls the functions below. It keeps the rules of `state` and `handle`, and its other
// pointers are valid for the lengths that it passes along with them.

unsafe extern "C-unwind" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    _name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let is_database = flags & ffi::SQLITE_OPEN_MAIN_DB != 0;
    let journals =
        ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_WAL;
    // SAFETY: `file` has room for a `Handle`, as `szOsFile` says.
    unsafe {
        let shared = state(vfs);
        (*file).pMethods = ptr::null();
        let is_journal = flags & journals != 0;
        if is_journal && shared.on_file(|file, _| file.open_journal()).is_none() {
            return ffi::SQLITE_CANTOPEN;
        }
        let base = ffi::sqlite3_file { pMethods: &METHODS.0 };
        let memory = if is_database { ptr::null_mut() } else { Box::into_raw(Box::default()) };
        file.cast::<Handle>().write(Handle { base, shared, memory });
        if let Some(out_flags) = out_flags.as_mut() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn delete(
    _: *mut ffi::sqlite3_vfs,
    _: *const c_char,
    _sync_directory: c_int,
) -> c_int {
    // A file in host memory is gone when it is closed.
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn access(
    _: *mut ffi::sqlite3_vfs,
    _: *const c_char,
    _flags: c_int,
    exists: *mut c_int,
) -> c_int {
    // SQLite asks for journals that a crash left, and there are none.
    // SAFETY: See above.
    unsafe { *exists = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn full_pathname(
    _: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    full: *mut c_char,
) -> c_int {
    // SAFETY: See above; names end with a zero byte, and it is copied.
    unsafe {
        let name = CStr::from_ptr(name).to_bytes_with_nul();
        if name.len() > room as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        ptr::copy_nonoverlapping(name.as_ptr().cast(), full, name.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn randomness(
    vfs: *mut ffi::sqlite3_vfs,
    length: c_int,
    bytes: *mut c_char,
) -> c_int {
    // SAFETY: See above.
    unsafe {
        let bytes = std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length as usize);
        fill(&state(vfs).random, bytes);
    }
    length
}

/// Fills bytes with random ones.
pub(super) fn fill(random: &RefCell<Random>, bytes: &mut [u8]) {
    let mut random = random.borrow_mut();
    for piece in bytes.chunks_mut(size_of::<u64>()) {
        piece.copy_from_slice(&random.any().to_le_bytes()[..piece.len()]);
    }
}

unsafe extern "C-unwind" fn sleep(_: *mut ffi::sqlite3_vfs, _microseconds: c_int) -> c_int {
    0
}

unsafe extern "C-unwind" fn current_time_int64(
    vfs: *mut ffi::sqlite3_vfs,
    milliseconds: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: See above.
    unsafe {
        let clock = &state(vfs).clock_milliseconds;
        clock.set(clock.get() + 1);
        *milliseconds = clock.get();
    }
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn current_time(vfs: *mut ffi::sqlite3_vfs, days: *mut f64) -> c_int {
    let mut milliseconds = 0;
    // SAFETY: See above.
    unsafe {
        let result = current_time_int64(vfs, &mut milliseconds);
        *days = milliseconds as f64 / 86_400_000.0;
        result
    }
}

unsafe extern "C-unwind" fn last_error(
    _: *mut ffi::sqlite3_vfs,
    _room: c_int,
    _text: *mut c_char,
) -> c_int {
    0
}

unsafe extern "C-unwind" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: See above; the contents in host memory came from a box.
    unsafe {
        let memory = (*file.cast::<Handle>()).memory;
        if !memory.is_null() {
            drop(Box::from_raw(memory));
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn read(
    file: *mut ffi::sqlite3_file,
    bytes: *mut c_void,
    length: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: See above. Bytes that SQLite did not initialise are written as zeros first.
    let (shared, memory, bytes) = unsafe {
        ptr::write_bytes(bytes.cast::<u8>(), 0, length as usize);
        let bytes = std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length as usize);
        let (shared, memory) = handle(file);
        (shared, memory, bytes)
    };
    let whole = match memory {
        Some(memory) => {
            let from = (at as usize).min(memory.len());
            let there = (memory.len() - from).min(bytes.len());
            bytes[..there].copy_from_slice(&memory[from..][..there]);
            Some(there == bytes.len())
        }
        None => shared.on_file(|file, pm| Ok(file.read(pm, at as u64, bytes))),
    };
    match whole {
        Some(true) => ffi::SQLITE_OK,
        Some(false) => ffi::SQLITE_IOERR_SHORT_READ,
        None => ffi::SQLITE_IOERR_READ,
    }
}

unsafe extern "C-unwind" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    length: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: See above.
    let (shared, memory, bytes) = unsafe {
        let (shared, memory) = handle(file);
        (shared, memory, std::slice::from_raw_parts(bytes.cast::<u8>(), length as usize))
    };
    let Some(memory) = memory else {
        return told(shared.on_file(|file, pm| file.write(pm, at as u64, bytes)));
    };
    let end = at as usize + bytes.len();
    memory.resize(memory.len().max(end), 0);
    memory[at as usize..end].copy_from_slice(bytes);
    ffi::SQLITE_OK
}

/// Returns SQLite's code for a result. Every failure is reported as a full disk, because after any
/// other failure of a batch SQLite would try again with a journal.
fn told(done: Option<()>) -> c_int {
    done.map_or(ffi::SQLITE_FULL, |()| ffi::SQLITE_OK)
}

unsafe extern "C-unwind" fn truncate(
    file: *mut ffi::sqlite3_file,
    length: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: See above.
    let (shared, memory) = unsafe { handle(file) };
    let Some(memory) = memory else {
        return told(shared.on_file(|file, _| file.truncate(length as u64)));
    };
    memory.truncate(length as usize);
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn sync(_: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // A committed batch is durable.
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn file_size(
    file: *mut ffi::sqlite3_file,
    size: *mut ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: See above.
    let (shared, memory) = unsafe { handle(file) };
    let length = match memory {
        Some(memory) => Some(memory.len() as u64),
        None => shared.on_file(|file, pm| Ok(file.length(pm))),
    };
    let Some(length) = length else { return ffi::SQLITE_IOERR_FSTAT };
    // SAFETY: See above.
    unsafe { *size = length as ffi::sqlite3_int64 };
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn lock(_: *mut ffi::sqlite3_file, _level: c_int) -> c_int {
    // A file has one connection.
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn check_reserved_lock(
    _: *mut ffi::sqlite3_file,
    reserved: *mut c_int,
) -> c_int {
    // SAFETY: See above.
    unsafe { *reserved = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C-unwind" fn file_control(
    file: *mut ffi::sqlite3_file,
    operation: c_int,
    _: *mut c_void,
) -> c_int {
    // SAFETY: See above.
    let (shared, memory) = unsafe { handle(file) };
    match operation {
        _ if memory.is_some() => ffi::SQLITE_NOTFOUND,
        ffi::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE => {
            shared.work(shared.costs.instructions_per_commit);
            told(shared.on_file(File::begin_batch))
        }
        ffi::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE => told(shared.on_file(File::commit_batch)),
        ffi::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE => told(shared.on_file(|file, _| file.roll_back())),
        _ => ffi::SQLITE_NOTFOUND,
    }
}

unsafe extern "C-unwind" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    super::file::PAGE_BYTES as c_int
}

unsafe extern "C-unwind" fn device_characteristics(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: See above.
    let (_, memory) = unsafe { handle(file) };
    match memory {
        // A write outside of a batch is not atomic, so no other promise of atomicity is made.
        None => ffi::SQLITE_IOCAP_BATCH_ATOMIC | ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE,
        Some(_) => 0,
    }
}

/// The hook of rollbacks; its argument is the [`Shared`] of the connection.
pub(super) const ROLLED_BACK: Option<unsafe extern "C" fn(*mut c_void)> = Some(rolled_back);

/// Called by SQLite when it has rolled a transaction back.
///
/// # Safety
/// `shared` points to the [`Shared`] of the connection that runs.
unsafe extern "C" fn rolled_back(shared: *mut c_void) {
    // SAFETY: The caller keeps the rule above.
    unsafe { &*shared.cast::<Shared>() }.rolled_back.set(true);
}

/// The progress handler; its argument is the [`Shared`] of the connection.
pub(super) const PROGRESS: Option<unsafe extern "C" fn(*mut c_void) -> c_int> =
    callback!(progress(_));

/// Called by SQLite every [`STEPS_BETWEEN_CALLS`] steps.
///
/// # Safety
/// `shared` points to the [`Shared`] of the connection that runs.
unsafe extern "C-unwind" fn progress(shared: *mut c_void) -> c_int {
    // SAFETY: The caller keeps the rule above.
    let shared = unsafe { &*shared.cast::<Shared>() };
    shared.work(STEPS_BETWEEN_CALLS * shared.costs.instructions_per_step);
    shared.steps_charged.set(shared.steps_charged.get() + STEPS_BETWEEN_CALLS);
    0
}
