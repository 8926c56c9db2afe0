//! The machine below a design in a script.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab::scripts::scripted::Token;
use model::config::Domain;
use model::controller::Notify;
use model::design::{Below, Progress};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, TxId, WORD_BYTES, Word};
use model::workload::Flush;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use slab::Slab;

use super::image::{line, line_data, within, word};
use super::lent::Lent;
use super::package;

/// The machine below a design, for as long as one of its hooks lasts; and the events that the
/// design entered and that are not due yet.
#[pyclass(frozen, name = "Below", module = "indelible.design")]
#[derive(Default)]
pub(super) struct PyBelow {
    of: Lent<Below<Token>>,
    /// Whether the hook is `event`, in which what survives may change.
    in_event: AtomicBool,
    /// Whether the hook is one that changes nothing.
    is_still: AtomicBool,
    /// When the stores before the flush or fence that the hook is about have left their core; 0 in
    /// any other hook.
    drained: AtomicU64,
    /// The cycle from which on what the hook is about happens.
    from: AtomicU64,
    /// How many messages the design has sent.
    messages: AtomicU64,
    events: Mutex<Slab<Entered>>,
}

/// An event that the design entered.
struct Entered {
    event: Py<PyAny>,
    /// The line that the design's own message brings, if the event is that it comes.
    line: Option<Line>,
}

/// A cycle that no time reaches (ours: what is added to it overflows nothing).
pub(super) const LATEST: u64 = 1 << 62;

/// Lends the machine below to a hook; `in_event` says whether the hook is `event`.
pub(super) fn lend<'py, T>(
    lent: &Bound<'py, PyBelow>,
    below: &mut Below<Token>,
    in_event: bool,
    hook: impl FnOnce(&Bound<'py, PyBelow>) -> T,
) -> T {
    lent.get().in_event.store(in_event, Ordering::Relaxed);
    lent.get().is_still.store(false, Ordering::Relaxed);
    // SAFETY: The machine is borrowed for longer than the loan.
    let _loan = unsafe { lent.get().of.lend(below) };
    hook(lent)
}

/// Lends the machine below to a hook that changes nothing.
pub(super) fn lend_still<'py, T>(
    lent: &Bound<'py, PyBelow>,
    below: &Below<Token>,
    hook: impl FnOnce(&Bound<'py, PyBelow>) -> T,
) -> T {
    let this = lent.get();
    this.in_event.store(false, Ordering::Relaxed);
    this.is_still.store(true, Ordering::Relaxed);
    // SAFETY: The machine is borrowed for longer than the loan, in which it is only looked at.
    let _loan = unsafe { this.of.lend(ptr::from_ref(below).cast_mut()) };
    hook(lent)
}

/// The way that something goes from when it is sent until it is at its controller.
#[derive(Clone, Copy)]
enum Way {
    Nothing,
    Path,
    Walk,
}

impl PyBelow {
    fn below(&self) -> PyResult<&Below<Token>> {
        self.of.look("below")
    }

    /// Returns the machine below, for a method that changes something of it.
    fn changed(&self) -> PyResult<&mut Below<Token>> {
        if self.is_still.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(
                "this hook must change nothing: it is only asked what is there",
            ));
        }
        self.of.get("below")
    }

    fn events(&self) -> MutexGuard<'_, Slab<Entered>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token that stands for an event until the event is due.
    fn token(&self, event: Py<PyAny>) -> Token {
        self.token_with(event, None)
    }

    fn token_with(&self, event: Py<PyAny>, line: Option<Line>) -> Token {
        Token(self.events().insert(Entered { event, line }))
    }

    /// The part that is told: the design, unless it has nothing to tell itself.
    pub(super) fn notify(&self, tell: Bound<'_, PyAny>) -> Notify<Token> {
        match tell.is_none() {
            true => Notify::Nobody,
            false => Notify::Design(self.token(tell.unbind())),
        }
    }

    fn told(&self, tell: Option<Bound<'_, PyAny>>) -> Notify<Token> {
        tell.map_or(Notify::Nobody, |tell| self.notify(tell))
    }

    /// Takes the event that a token stands for and that is due, and the line that came with it.
    pub(super) fn take(&self, token: Token) -> (Py<PyAny>, Option<Line>) {
        let Entered { event, line } = self.events().remove(token.0);
        (event, line)
    }

    /// Returns the event that a token stands for.
    pub(super) fn look(&self, py: Python<'_>, token: Token) -> Py<PyAny> {
        self.events()[token.0].event.clone_ref(py)
    }

    /// Returns a core of the machine, or refuses one that the machine does not have.
    fn core(&self, core: u8) -> PyResult<CoreId> {
        let cores = self.below()?.shape.cores;
        if core >= cores {
            let text = format!("there is no core {core}; the machine has {cores}");
            return Err(PyValueError::new_err(text));
        }
        Ok(CoreId(core))
    }

    /// Returns the line of an address, or refuses an address outside of persistent memory.
    fn line_of(&self, address: u64) -> PyResult<Line> {
        within(address, 1, self.below()?.shape.capacity, false)?;
        Ok(Line::of(address))
    }

    pub(super) fn write(
        &self,
        address: u64,
        data: &[u8],
        mask: u64,
        kind: &str,
    ) -> PyResult<Write> {
        self.line_of(address)?;
        Ok(Write { line: line(address)?, data: line_data(data)?, mask, class: class(kind)? })
    }

    /// Returns a time, or refuses one at which nothing can happen any more. What is sent has a way
    /// to go, and may have been sent earlier by that.
    fn time(&self, at: u64, way: Way) -> PyResult<Cycle> {
        let below = self.below()?;
        let (now, later) = match way {
            Way::Nothing => (below.now().0, 0),
            Way::Path => (below.now().0, below.shape.path),
            Way::Walk => (below.now().0, below.shape.walk),
        };
        if at >= LATEST {
            return Err(PyValueError::new_err(format!("{at} is not a cycle")));
        }
        if at + later < now {
            return Err(PyValueError::new_err(format!("cycle {at} is past: it is {now}")));
        }
        Ok(Cycle(at))
    }

    /// Returns a time of a flush or fence, or refuses one at which an earlier store has not left
    /// the core: what it stored is not there to be flushed.
    fn time_of_fence(&self, at: u64, way: Way) -> PyResult<Cycle> {
        let drained = self.drained.load(Ordering::Relaxed);
        match at < drained {
            false => self.time(at, way),
            true => Err(PyValueError::new_err(format!(
                "at cycle {at} earlier stores have not left the core: they have at {drained}, \
                 `fence.drained`"
            ))),
        }
    }

    /// Notes the cycle from which on what the hook is about happens: nothing can be read before.
    pub(super) fn is_about(&self, from: Cycle) {
        self.from.store(from.0, Ordering::Relaxed);
    }

    /// Notes that the hook is about a flush or fence before which stores have left their core at
    /// `drained`; 0 when that hook is over.
    pub(super) fn is_about_fence(&self, drained: u64) {
        self.drained.store(drained, Ordering::Relaxed);
    }
}

/// The class of a write by its name.
fn class(kind: &str) -> PyResult<Class> {
    let found = Class::ALL.iter().find(|(_, name)| *name == kind);
    found.map(|(class, _)| *class).ok_or_else(|| {
        let known: Vec<&str> = Class::ALL.iter().map(|(_, name)| *name).collect();
        PyValueError::new_err(format!(
            "unknown kind of write `{kind}`; there are: {}",
            known.join(", ")
        ))
    })
}

/// What a hook asks whether a write could have become durable. Each time the hook goes on as if the
/// write had become durable, or had not.
#[pyclass(frozen, name = "Arrived", module = "indelible.design")]
#[derive(Default)]
pub(super) struct PyArrived {
    of: Lent<Asked<'static>>,
}

type Asked<'a> = &'a mut dyn FnMut() -> bool;

#[pymethods]
impl PyArrived {
    fn __call__(&self) -> PyResult<bool> {
        Ok(self.of.get("arrived")?())
    }

    /// Refuses an `arrived` that is tested, and not called.
    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("`arrived` must be called, once for each write: `if arrived():`"))
    }
}

/// Lends a hook what it asks.
pub(super) fn lend_arrived<T>(
    py: Python<'_>,
    mut arrived: Asked<'_>,
    hook: impl FnOnce(&Bound<'_, PyArrived>) -> PyResult<T>,
) -> PyResult<T> {
    let lent = Bound::new(py, PyArrived::default())?;
    // SAFETY: It outlives the loan, and its `'static` lifetime does not escape.
    let _loan = unsafe { lent.get().of.lend(ptr::from_mut(&mut arrived).cast()) };
    hook(&lent)
}

#[pymethods]
impl PyBelow {
    /// Has `event` called at a cycle, for work that no core waits for.
    fn at(&self, at: u64, event: Py<PyAny>) -> PyResult<()> {
        let at = self.time(at, Way::Nothing)?;
        self.changed()?.at(at, self.token(event));
        Ok(())
    }

    /// Sends a message of the design's own to a controller: `event` is called when the controller
    /// looks at it, as it would look at a write that is sent at `at` (`shape.path` cycles later and
    /// the front end). `controller.arrival_jitter` makes its way longer, as it does that of writes,
    /// so that messages overtake each other. With the address of a `line` that the message brings,
    /// the message stays in order with the writes of that line.
    #[pyo3(signature = (at, event, *, line = None))]
    fn message(&self, at: u64, event: Py<PyAny>, line: Option<u64>) -> PyResult<()> {
        let whole = |address| self.line_of(address).and(super::image::line(address));
        let line = line.map(whole).transpose()?;
        let at = self.time(at, Way::Path)?;
        let below = self.changed()?;
        let token = self.token_with(event, line);
        match line {
            Some(line) => below.message_with(at, line, token),
            None => below.message(at, self.messages.fetch_add(1, Ordering::Relaxed), token),
        }
        Ok(())
    }

    /// Lets a core go on at a cycle for which a hook other than `load` answered `WAIT`. Each such
    /// answer needs one wake. A wake that comes before its answer is kept, so one too many ends a
    /// later wait early.
    fn wake(&self, core: u8, at: u64) -> PyResult<()> {
        let (core, at) = (self.core(core)?, self.time(at, Way::Nothing)?);
        self.changed()?.wake(core, at);
        Ok(())
    }

    /// Lets a core have the value of a load at a cycle for which `load` answered `WAIT`. An earlier
    /// fence or commit of the core may still wait then; `wake` ends that.
    fn wake_load(&self, core: u8, at: u64) -> PyResult<()> {
        let (core, at) = (self.core(core)?, self.time(at, Way::Nothing)?);
        self.changed()?.wake_load(core, at);
        Ok(())
    }

    /// Announces, for an asynchronous design, that a transaction of a core, and all before it on
    /// that core, are durable. The core hears of it at a cycle.
    fn durable(&self, core: u8, tx: u64, at: u64) -> PyResult<()> {
        let (core, at) = (self.core(core)?, self.time(at, Way::Nothing)?);
        self.changed()?.durable(core, TxId(tx), at);
        Ok(())
    }

    /// The newest bytes of the line at an address.
    fn line<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Bound<'py, PyBytes>> {
        let line = self.line_of(address).and(line(address))?;
        Ok(PyBytes::new(py, &self.below()?.line(line)))
    }

    /// The newest value of the word at an address.
    fn word(&self, address: u64) -> PyResult<u64> {
        self.line_of(address)?;
        Ok(self.below()?.view.pm.word(word(address)?))
    }

    /// Which controller an address belongs to.
    fn controller_of(&self, address: u64) -> PyResult<usize> {
        let line = self.line_of(address)?;
        Ok(self.below()?.memory.controller_of(line))
    }

    /// Reads the line at an address from memory. The request is at its controller at `at`. Returns
    /// when the answer leaves.
    fn read(&self, at: u64, address: u64) -> PyResult<u64> {
        let (line, from) = (self.line_of(address)?, self.from.load(Ordering::Relaxed));
        // A core may be far ahead of what is due, before which alone a write is refused.
        if at < from {
            return Err(PyValueError::new_err(format!(
                "cycle {at} is past: what the hook is about begins at {from}"
            )));
        }
        let at = self.time(at, Way::Nothing)?;
        Ok(self.changed()?.memory.read(at, line).0)
    }

    /// Sends words to the log, past the caches, from an address on, in whole lines, one a cycle;
    /// the rest of a line has its newest bytes. They are at their controllers `shape.path` cycles
    /// later. The design is told of each line that is durable. Returns how many lines there are.
    #[pyo3(signature = (at, address, words, *, tell = None, kind = "log"))]
    fn log(
        &self,
        at: u64,
        address: u64,
        words: Vec<u64>,
        tell: Option<Py<PyAny>>,
        kind: &str,
        py: Python<'_>,
    ) -> PyResult<u64> {
        let (first, class, at) = (word(address)?, class(kind)?, self.time(at, Way::Path)?);
        let below = self.changed()?;
        let end = address.saturating_add(words.len() as u64 * WORD_BYTES);
        if address < below.shape.log_base || end > below.shape.capacity {
            return Err(PyValueError::new_err(format!(
                "{address:#x} to {end:#x} is outside of the logs, {:#x} to {:#x}",
                below.shape.log_base, below.shape.capacity
            )));
        }
        if words.is_empty() {
            return Ok(0);
        }
        for (place, value) in (first.0..).zip(&words) {
            below.view.set_word(Word(place), *value);
        }
        let lines = address / LINE_BYTES..end.div_ceil(LINE_BYTES);
        for (late, line) in (0..).zip(lines.clone().map(Line)) {
            let write = Write::whole(line, below.line(line), class);
            let tell = tell.as_ref().map(|event| event.bind(py).clone());
            below.send(at + late, write, self.told(tell));
        }
        Ok(lines.end - lines.start)
    }

    /// Sends a line, or the bytes of it that `mask` selects, one bit a byte. It is at its
    /// controller `shape.path` cycles later. With `direct` it is there at that cycle, by a path of
    /// the design's own, where it may overtake an eviction of the line. What has `waited` there,
    /// until a cycle at which some controller knew that it may go on, does not take the path again.
    #[pyo3(signature = (at, address, data, *, tell = None, kind = "data", mask = u64::MAX, direct = false, waited = None))]
    #[expect(clippy::too_many_arguments, reason = "most are words of their own in Python")]
    fn send(
        &self,
        at: u64,
        address: u64,
        data: PyBackedBytes,
        tell: Option<Bound<'_, PyAny>>,
        kind: &str,
        mask: u64,
        direct: bool,
        waited: Option<u64>,
    ) -> PyResult<()> {
        let write = self.write(address, &data, mask, kind)?;
        let shape = &self.below()?.shape;
        let way = if direct { 0 } else { shape.path };
        let goes_on = |waited: u64| waited.saturating_add(shape.hop()).saturating_sub(way);
        let at = waited.map_or(at, |waited| at.max(goes_on(waited)));
        let at = self.time(at, if direct { Way::Nothing } else { Way::Path })?;
        let (below, notify) = (self.changed()?, self.told(tell));
        match direct {
            true => below.send_direct(at, write, notify),
            false => below.send(at, write, notify),
        }
        Ok(())
    }

    /// Has the line at an address written back if it is dirty. The line leaves a first level at
    /// `at`, is at its controller `shape.walk` cycles later, and stays in the caches if `keep`.
    /// Returns False if the line is neither dirty nor on its way: the design is not told, and the
    /// bytes are durable then, unless the design has `TAKEN` them.
    #[pyo3(signature = (at, address, *, tell = None, kind = "data", keep = true))]
    fn write_back(
        &self,
        at: u64,
        address: u64,
        tell: Option<Bound<'_, PyAny>>,
        kind: &str,
        keep: bool,
    ) -> PyResult<bool> {
        let (line, class) = (self.line_of(address).and(line(address))?, class(kind)?);
        let at = self.time(at, Way::Walk)?;
        let token = tell.map(|tell| self.token(tell.unbind()));
        let notify = token.map_or(Notify::Nobody, Notify::Design);
        let how = if keep { Flush::WriteBack } else { Flush::Evict };
        let is_under_way = self.changed()?.flush_to(at, line, line, how, class, notify);
        if let Some(token) = token.filter(|_| !is_under_way) {
            self.take(token);
        }
        Ok(is_under_way)
    }

    /// Has the line at an address written back as a flush of a core at `at` does: if the line is
    /// dirty, it walks through the caches, and the core's next `fence` waits for it.
    #[pyo3(signature = (core, at, address, *, keep = true, kind = "data"))]
    fn flush(&self, core: u8, at: u64, address: u64, keep: bool, kind: &str) -> PyResult<()> {
        let (core, at) = (self.core(core)?, self.time_of_fence(at, Way::Walk)?);
        let (line, class) = (self.line_of(address).and(line(address))?, class(kind)?);
        let how = if keep { Flush::WriteBack } else { Flush::Evict };
        self.changed()?.flush(core, at, line, how, class);
        Ok(())
    }

    /// The answer to a fence that waits until what its core has flushed, or stored past the caches,
    /// is durable: a cycle, or `WAIT`, whose wake then comes by itself.
    fn fence(&self, py: Python<'_>, core: u8, at: u64) -> PyResult<Py<PyAny>> {
        let (core, at) = (self.core(core)?, self.time_of_fence(at, Way::Nothing)?);
        match self.changed()?.fence(core, at) {
            Progress::Done(at) => Ok(at.0.into_pyobject(py)?.into_any().unbind()),
            Progress::Wait => Ok(package(py).wait.clone_ref(py)),
        }
    }

    /// The lines of persistent memory that are dirty in the caches.
    fn dirty_lines(&self) -> PyResult<Vec<u64>> {
        let lines = self.below()?.caches.dirty_lines().into_iter();
        Ok(lines.filter(|line| line.is_persistent()).map(Line::address).collect())
    }

    /// Whether the controller of an address has room for a write now.
    fn has_room(&self, address: u64) -> PyResult<bool> {
        let line = self.line_of(address)?;
        Ok(self.below()?.memory.has_room(line))
    }

    /// Has `event` called when the controller of an address may have room.
    fn when_room(&self, address: u64, event: Py<PyAny>) -> PyResult<()> {
        let line = self.line_of(address)?;
        self.changed()?.memory.when_room(line, self.token(event));
        Ok(())
    }

    /// Gives a write to its controller at this moment; only from `event`, and only if the
    /// controller has room.
    #[pyo3(signature = (at, address, data, *, kind = "data", mask = u64::MAX))]
    fn give(
        &self,
        at: u64,
        address: u64,
        data: PyBackedBytes,
        kind: &str,
        mask: u64,
    ) -> PyResult<()> {
        let write = self.write(address, &data, mask, kind)?;
        if !self.in_event.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err("`give` may only be called in `event`"));
        }
        let (at, now) = (self.time(at, Way::Nothing)?, self.below()?.now());
        if at != now {
            let text = format!("`give` must be at the present cycle, {}, not at {}", now.0, at.0);
            return Err(PyValueError::new_err(text));
        }
        let below = self.changed()?;
        if below.shape.config.controller.domain == Domain::Media {
            return Err(PyRuntimeError::new_err(
                "in the domain `media` a write is not durable when it is accepted; use `send`, or \
                 say that the design needs `adr`",
            ));
        }
        if !below.give_if_room(at, &write) {
            return Err(PyRuntimeError::new_err(
                "the controller has no room; ask `has_room` first",
            ));
        }
        Ok(())
    }

    /// Ends the run with a sentence for the user: what was asked for does not fit the machine.
    fn give_up(&self, text: String) -> PyResult<()> {
        self.changed()?.give_up(text);
        Ok(())
    }
}
