//! The hooks of a design in Python, on a machine that is switched on.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use lab::scripts::scripted::{Hooks, Token, raise};
use model::controller::Notify;
use model::design::{Disposition, Evict, Fence, Fill, Gasp, Load, Progress, Store, Transfer, Tx};
use model::device::Write;
use model::image::PowerLoss;
use model::units::{Cycle, Line};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyAssertionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyString};

use super::below::{self, PyArrived, PyBelow};
use super::{PyScript, arguments, explained, image, interned, or_lost, or_raise, package};

type Below = model::design::Below<Token>;

/// An instance of a class that is a design.
pub(super) struct PyHooks {
    name: &'static str,
    brings_stores: bool,
    has_cells: bool,
    design: Py<PyAny>,
    below: Py<PyBelow>,
    has: Has,
    /// The counts that the design reported last.
    counted: RefCell<HashMap<&'static str, u64>>,
    audits: Audits,
    /// What every further power failure is told, once saving was found to change the design.
    changed: RefCell<Option<String>>,
}

/// When hooks that are asked about power failures are called again.
#[derive(Default)]
struct Audits {
    power_loss: Audit,
    could_be_durable: Audit,
    invariants: Audit,
    is_so: Audit,
}

/// When a hook is called again to see whether it left the design as it was, which it must, because
/// the run goes on after a power failure: when it says more than it ever said, and one time in
/// [`AUDIT_EVERY`].
#[derive(Default)]
struct Audit {
    calls: Cell<u64>,
    /// One more than the most that the hook said until now.
    most: Cell<u64>,
}

/// One call in so many is made again. Ours: it costs a sixteenth of what these hooks take.
const AUDIT_EVERY: u64 = 16;

impl Audit {
    /// Whether the hook is called again after a call in which it said so much.
    fn is_due(&self, said: u64) -> bool {
        let calls = self.calls.replace(self.calls.get() + 1);
        let is_due = said >= self.most.get() || calls.is_multiple_of(AUDIT_EVERY);
        self.most.set(self.most.get().max(said + 1));
        is_due
    }
}

macro_rules! hooks {
    ($($hook:ident,)+) => {
        /// The hooks that a design changes; the others are not called.
        struct Has { $($hook: bool,)+ }

        impl Has {
            fn of(script: &PyScript) -> Has {
                Has { $($hook: script.changes(stringify!($hook)),)+ }
            }
        }
    };
}

hooks! {
    begin,
    load,
    store,
    fence,
    commit,
    fill,
    transfer,
    evict,
    event,
    leaves_behind,
    hears_at_once,
    could_be_durable,
    invariants,
    power_loss,
    counters,
}

/// What a hook may answer that says when something goes on.
fn answers(hook: &str, asked: Cycle) -> String {
    let wait = if matches!(hook, "fill" | "transfer" | "evict") { "" } else { "WAIT or " };
    format!("it must answer nothing, {wait}a whole number from {} up", asked.0)
}

/// The error of a hook that says something else when it is called again at once.
fn changes(hook: &str) -> String {
    format!(
        "determinism: `{hook}` changes the design, whose run goes on: called again at once, it \
         answers something else; it must only look, and take, count or mark nothing"
    )
}

/// What Python shows of a value, without the places in the host's memory that objects have which do
/// not say how they are shown: another run has others.
fn without_places(shown: &str) -> String {
    let mut parts = shown.split(" at 0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| match part.trim_start_matches(|c: char| c.is_ascii_hexdigit()) {
        rest if rest.starts_with('>') => told + rest,
        _ => told + " at 0x" + part,
    })
}

/// Returns an answer as text. Without its quotes, a text could be taken for another answer.
fn shown(answer: &Bound<'_, PyAny>) -> String {
    let quoted = answer.cast::<PyString>().ok().and_then(|text| text.repr().ok());
    quoted.as_ref().map_or(answer.as_any(), |text| text.as_any()).to_string()
}

impl PyHooks {
    pub(super) fn new(
        py: Python<'_>,
        script: &PyScript,
        design: Py<PyAny>,
        has_cells: bool,
    ) -> PyResult<PyHooks> {
        Ok(PyHooks {
            name: script.name,
            brings_stores: script.brings_stores,
            has_cells,
            design,
            below: Py::new(py, PyBelow::default())?,
            has: Has::of(script),
            counted: RefCell::default(),
            audits: Audits::default(),
            changed: RefCell::default(),
        })
    }

    /// Calls a hook with the machine below, about what happens from a cycle on.
    fn call<'py>(
        &self,
        py: Python<'py>,
        hook: &str,
        argument: impl IntoPyObject<'py>,
        from: Cycle,
        below: &mut Below,
    ) -> Bound<'py, PyAny> {
        self.below.get().is_about(from);
        let answer = below::lend(self.below.bind(py), below, false, |below| {
            self.design.bind(py).call_method1(hook, (argument, below))
        });
        or_raise(py, answer, self.name, hook)
    }

    /// Calls a hook that says whether something is so.
    fn is_so<'py>(&self, py: Python<'py>, hook: &str, of: impl IntoPyObject<'py>) -> bool {
        let of = or_raise(py, of.into_bound_py_any(py), self.name, hook);
        let ask = || {
            let answer = self.design.bind(py).call_method1(hook, (&of,));
            or_raise(py, answer.and_then(|answer| answer.is_truthy()), self.name, hook)
        };
        let is_so = ask();
        if self.audits.is_so.is_due(0) && ask() != is_so {
            self.refuse(&changes(hook));
        }
        is_so
    }

    /// Calls a hook that says when a core goes on.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        hook: &str,
        argument: impl IntoPyObject<'py>,
        asked: Cycle,
        below: &mut Below,
    ) -> Progress {
        let answer = self.call(py, hook, argument, asked, below);
        match answer.is(&package(py).wait) {
            true => Progress::Wait,
            false => Progress::Done(self.when(&answer, hook, asked)),
        }
    }

    /// Returns what the design says is not true of it, if anything is not; so says an assertion of
    /// the hook, too.
    fn broken(&self, py: Python<'_>) -> Option<String> {
        let answer = match self.design.bind(py).call_method0("invariants") {
            Err(error) if error.is_instance_of::<PyAssertionError>(py) => {
                return Some(explained(py, error, self.name, "invariants"));
            }
            answer => or_raise(py, answer, self.name, "invariants"),
        };
        if answer.is_none() {
            return None;
        }
        match answer.extract::<String>() {
            Ok(text) if !text.trim().is_empty() => {
                Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            _ => self.refuse(&format!(
                "`invariants` answered {}: it must answer nothing, or a sentence that says what is \
                 not true",
                shown(&answer)
            )),
        }
    }

    /// Returns when a hook says that something goes on: at once if it says nothing.
    fn when(&self, answer: &Bound<'_, PyAny>, hook: &str, asked: Cycle) -> Cycle {
        if answer.is_none() {
            return asked;
        }
        if answer.hasattr("send").unwrap_or(false) {
            self.refuse(&format!("`{hook}` must answer with `return`, not with `yield`"));
        }
        // Python takes a truth value for a number.
        let is_truth = answer.is_instance_of::<PyBool>();
        match answer.extract::<u64>() {
            Ok(at) if !is_truth && (asked.0..below::LATEST).contains(&at) => Cycle(at),
            Ok(at) if !is_truth && at < asked.0 => self.refuse(&format!(
                "`{hook}` was asked at cycle {} and answered the earlier cycle {at}: {}",
                asked.0,
                answers(hook, asked)
            )),
            _ => {
                let said = shown(answer);
                self.refuse(&format!(
                    "`{hook}` answered {said}, which is not a cycle: {}",
                    answers(hook, asked)
                ))
            }
        }
    }

    /// Ends the run with what is wrong with an answer of the design.
    fn refuse(&self, text: &str) -> ! {
        raise(format!("{}: {text}", self.name))
    }

    /// Returns what the design says could have become durable: lines, or the bytes of them that a
    /// mask selects.
    fn tried<'py>(
        &self,
        py: Python<'py>,
        below: &Bound<'py, PyBelow>,
        arrived: &Bound<'py, PyArrived>,
    ) -> PyResult<Vec<Write>> {
        let answer = self.design.bind(py).call_method1("could_be_durable", (below, arrived))?;
        let mut writes = Vec::new();
        let refusal = |what: &Bound<'py, PyAny>| {
            PyTypeError::new_err(format!(
                "`could_be_durable` must answer (line, bytes), or (line, bytes, mask), for each \
                 write, not {}",
                shown(what)
            ))
        };
        for item in answer.try_iter().map_err(|_| refusal(&answer))? {
            let item = item?;
            let whole = |(address, data): (u64, PyBackedBytes)| (address, data, u64::MAX);
            let write = item.extract().map(whole).or_else(|_| item.extract());
            let (address, data, mask) = write.map_err(|_: PyErr| refusal(&item))?;
            writes.push(below.get().write(address, &data, mask, "data")?);
        }
        Ok(writes)
    }

    /// Returns what the design has counted: sums, so that a part of a run has what was added.
    fn counts(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, u64)>> {
        let counts = self.design.bind(py).call_method0("counters")?;
        let mut found = Vec::new();
        for pair in counts.call_method0("items")?.try_iter()? {
            let (name, count): (String, Bound<'_, PyAny>) = pair?.extract()?;
            let name = interned(&name);
            let count: u64 = count.extract().map_err(|_| {
                PyValueError::new_err(format!(
                    "counter `{name}` is {}; it must be a whole number from 0 up",
                    shown(&count)
                ))
            })?;
            let before = self.counted.borrow_mut().insert(name, count).unwrap_or(0);
            if count < before {
                return Err(PyValueError::new_err(format!(
                    "counter `{name}` was {before} and is {count}; it must only grow"
                )));
            }
            found.push((name, count));
        }
        Ok(found)
    }
}

impl Hooks for PyHooks {
    fn begin(&mut self, tx: &Tx, below: &mut Below) -> Progress {
        if !self.has.begin {
            return Progress::Done(tx.at);
        }
        Python::attach(|py| self.ask(py, "begin", arguments::Tx::from(tx), tx.at, below))
    }

    fn load(&mut self, load: &Load, below: &mut Below) -> Progress {
        if !self.has.load {
            return Progress::Done(load.at);
        }
        Python::attach(|py| self.ask(py, "load", arguments::Load::from(load), load.at, below))
    }

    fn brings_stores(&self) -> bool {
        self.brings_stores
    }

    fn store(&mut self, store: &Store, below: &mut Below) -> Progress {
        if !self.has.store {
            return Progress::Done(store.at);
        }
        Python::attach(|py| self.ask(py, "store", arguments::Store::from(store), store.at, below))
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below) -> Progress {
        if !self.has.fence {
            return Progress::Done(fence.at);
        }
        Python::attach(|py| {
            let this = self.below.get();
            this.is_about_fence(fence.drained.0);
            let answer = self.ask(py, "fence", arguments::Fence::from(fence), fence.at, below);
            this.is_about_fence(0);
            answer
        })
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below) -> Progress {
        if !self.has.commit {
            return Progress::Done(tx.at);
        }
        Python::attach(|py| self.ask(py, "commit", arguments::Tx::from(tx), tx.at, below))
    }

    fn fill(&mut self, fill: &Fill, below: &mut Below) -> Cycle {
        if !self.has.fill {
            return fill.at;
        }
        Python::attach(|py| {
            let answer = self.call(py, "fill", arguments::Fill::from(fill), fill.asked, below);
            self.when(&answer, "fill", fill.at)
        })
    }

    fn transfer(&mut self, transfer: &Transfer, below: &mut Below) -> Cycle {
        if !self.has.transfer {
            return transfer.at;
        }
        Python::attach(|py| {
            let argument = arguments::Transfer::from(transfer);
            let answer = self.call(py, "transfer", argument, transfer.at, below);
            self.when(&answer, "transfer", transfer.at)
        })
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below) -> Disposition<Token> {
        let home = Disposition::Home { at: evict.at, notify: Notify::Nobody };
        if !self.has.evict {
            return home;
        }
        Python::attach(|py| {
            let answer = self.call(py, "evict", arguments::Evict::from(evict), evict.at, below);
            let package = package(py);
            if answer.is_none() {
                return home;
            }
            if answer.is(&package.taken) {
                return Disposition::Taken;
            }
            if !answer.is_instance(package.home.bind(py)).is_ok_and(|is_home| is_home) {
                let said = shown(&answer);
                self.refuse(&format!("`evict` must answer Home or TAKEN, not {said}"));
            }
            let part = |name| or_raise(py, answer.getattr(name), self.name, "evict");
            let notify = self.below.get().notify(part("tell"));
            Disposition::Home { at: self.when(&part("at"), "evict", evict.at), notify }
        })
    }

    fn event(&mut self, at: Cycle, event: Token, below: &mut Below) {
        Python::attach(|py| {
            let (event, line) = self.below.get().take(event);
            if let Some(line) = line {
                below.memory.came(at, line);
            }
            self.below.get().is_about(at);
            if !self.has.event {
                self.refuse(&format!("{} is due, but there is no hook `event`", event.bind(py)));
            }
            let answer = below::lend(self.below.bind(py), below, true, |below| {
                self.design.bind(py).call_method1("event", (at.0, event, below))
            });
            or_raise(py, answer, self.name, "event");
        });
    }

    fn leaves_behind(&self, line: Line) -> bool {
        self.has.leaves_behind
            && Python::attach(|py| self.is_so(py, "leaves_behind", line.address()))
    }

    fn hears_at_once(&self, event: Token) -> bool {
        !self.has.hears_at_once
            || Python::attach(|py| {
                self.is_so(py, "hears_at_once", self.below.get().look(py, event))
            })
    }

    fn invariants(&self) -> Result<(), String> {
        if !self.has.invariants {
            return Ok(());
        }
        Python::attach(|py| {
            let broken = self.broken(py);
            if self.audits.invariants.is_due(0) && self.broken(py) != broken {
                self.refuse(&changes("invariants"));
            }
            broken.map_or(Ok(()), Err)
        })
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        if !self.has.power_loss {
            return Ok(());
        }
        if let Some(text) = &*self.changed.borrow() {
            gasp.call_raised(text.clone());
            return Err(PowerLoss);
        }
        Python::attach(|py| {
            let save = |gasp: &mut Gasp<'_, '_>, tells: bool| {
                image::lend_gasp(py, gasp, (self.has_cells, tells), |gasp| {
                    self.design.bind(py).call_method1("power_loss", (gasp,)).map(drop)
                })
            };
            let (answer, saved) = save(gasp, false);
            or_lost(py, answer, self.name, "power_loss", |text| gasp.call_raised(text))?;
            if !self.audits.power_loss.is_due(saved.bytes) {
                return Ok(());
            }
            let ((again, _), told) = save(gasp, true);
            if again.is_ok() && told == saved {
                return Ok(());
            }
            let text = changes("power_loss");
            gasp.call_raised(text.clone());
            *self.changed.borrow_mut() = Some(text);
            Err(PowerLoss)
        })
    }

    fn could_be_durable(
        &self,
        below: &Below,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Option<Vec<Write>> {
        if !self.has.could_be_durable {
            return None;
        }
        let try_all = |arrived: &mut dyn FnMut() -> bool| {
            Python::attach(|py| {
                let writes = below::lend_still(self.below.bind(py), below, |below| {
                    below::lend_arrived(py, arrived, |arrived| self.tried(py, below, arrived))
                });
                or_raise(py, writes, self.name, "could_be_durable")
            })
        };
        let mut answers = Vec::new();
        let writes = try_all(&mut || {
            answers.push(arrived());
            answers[answers.len() - 1]
        });
        if self.audits.could_be_durable.is_due(answers.len() as u64) {
            let (mut told, mut asked) = (answers.iter().copied(), 0);
            let again = try_all(&mut || {
                asked += 1;
                told.next().unwrap_or(false)
            });
            let parts = |write: &Write| (write.line, write.data, write.mask);
            if asked != answers.len() || !again.iter().map(parts).eq(writes.iter().map(parts)) {
                self.refuse(&changes("could_be_durable"));
            }
        }
        Some(writes)
    }

    fn show_event(&self, event: Token) -> String {
        Python::attach(|py| {
            let event = self.below.get().look(py, event);
            let shown = or_raise(py, event.bind(py).repr(), self.name, "event").to_string();
            without_places(&shown)
        })
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        if !self.has.counters {
            return Vec::new();
        }
        Python::attach(|py| or_raise(py, self.counts(py), self.name, "counters"))
    }
}
