//! The extension module `indelible._core`: the functions of `lab` under the same names, JSON text
//! in and out. It adds what Python needs and nothing else: the global lock is released while a
//! simulation runs, a sentence for the user becomes `InputError`, and a panic, which is a bug of
//! ours, becomes `InternalError`. Designs that users write in Python are found by `script.rs`.

mod native;
mod panics;
mod script;

use std::panic::resume_unwind;
use std::thread;

use lab::error::Cause;
use panics::Caught;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    indelible,
    InputError,
    PyValueError,
    "What was asked for is impossible; the message says what is wrong and what is accepted."
);
pyo3::create_exception!(
    indelible,
    HostError,
    InputError,
    "This computer has no room for what was asked for, which another one may have."
);
pyo3::create_exception!(
    indelible,
    CheckError,
    InputError,
    "A program of the user's does not accept what a trace leaves when no power fails."
);
pyo3::create_exception!(
    indelible,
    InternalError,
    PyRuntimeError,
    "A bug in the simulator; the message says where."
);

/// Watches and stops a simulation from another thread.
#[pyclass(frozen)]
#[derive(Default)]
struct Control {
    inner: lab::Control,
}

#[pymethods]
impl Control {
    /// Controls a simulation that may use so many threads, or one for each processor.
    #[new]
    #[pyo3(signature = (threads = None))]
    fn new(threads: Option<usize>) -> Control {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or_else(processors);
        Control { inner: lab::Control::with_threads(threads) }
    }

    /// Asks the simulation to stop and to return what it has.
    fn cancel(&self) {
        self.inner.cancel();
    }

    /// Whether `cancel` was called.
    #[getter]
    fn cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    /// How much of the work is done, in the unit of `total`.
    #[getter]
    fn done(&self) -> u64 {
        self.inner.done()
    }

    /// How much work there is; 0 while that is not known.
    #[getter]
    fn total(&self) -> u64 {
        self.inner.total()
    }

    /// Which part of the work is being done, in words.
    #[getter]
    fn part(&self) -> String {
        self.inner.part()
    }
}

/// Calls `lab` with the global lock released.
fn answer<T: Send>(
    py: Python<'_>,
    ask: impl FnOnce() -> Result<T, lab::InputError> + Send,
) -> PyResult<T> {
    match py.detach(|| panics::caught(ask)) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(lab::InputError { text, cause })) => Err(match cause {
            Cause::Request => InputError::new_err(text),
            Cause::Host => HostError::new_err(text),
            Cause::Checker => CheckError::new_err(text),
        }),
        Err(Caught::Raised(raised)) => Err(InputError::new_err(raised.text)),
        Err(Caught::Panic(message)) => Err(InternalError::new_err(message)),
    }
}

/// The version of the simulator.
#[pyfunction]
fn version() -> &'static str {
    lab::version()
}

/// The designs, the ordering hardware, the workloads, the profiles or the machines, as
/// `{"rows": [...]}`.
#[pyfunction]
fn list(py: Python<'_>, kind: &str) -> PyResult<String> {
    answer(py, || lab::list(kind))
}

/// Everything known of a design, a workload, a machine or ordering hardware.
#[pyfunction]
#[pyo3(signature = (name, settings, against = None, on = None))]
fn explain(
    py: Python<'_>,
    name: &str,
    settings: Vec<(String, String)>,
    against: Option<&str>,
    on: Option<(String, Option<u64>)>,
) -> PyResult<String> {
    let on = on.as_ref().map(|(machine, cores)| (machine.as_str(), *cores));
    answer(py, || lab::explain(name, &settings, against, on))
}

/// The batteries that designs need; of every design, if none is named.
#[pyfunction]
fn battery(
    py: Python<'_>,
    designs: Vec<String>,
    machine: &str,
    cores: Option<u64>,
    settings: Vec<(String, String)>,
) -> PyResult<String> {
    answer(py, || lab::battery(&designs, machine, cores, &settings))
}

/// Refuses an experiment that is impossible, and runs nothing.
#[pyfunction]
fn check(py: Python<'_>, spec: &str) -> PyResult<()> {
    answer(py, || lab::check(spec))
}

/// Runs one experiment.
#[pyfunction]
fn run(py: Python<'_>, spec: &str, control: &Control) -> PyResult<String> {
    answer(py, || lab::run(spec, &control.inner))
}

/// Runs one experiment and records a part of its timeline: the answer, and a trace for Perfetto.
#[pyfunction]
fn trace(py: Python<'_>, request: &str, control: &Control) -> PyResult<(String, Vec<u8>)> {
    answer(py, || lab::trace(request, &control.inner))
}

/// Cuts the power during one experiment, at many points.
#[pyfunction]
fn crash(py: Python<'_>, spec: &str, control: &Control) -> PyResult<String> {
    answer(py, || lab::crash(spec, &control.inner))
}

/// Runs litmus tests on ordering hardware.
#[pyfunction]
fn litmus(py: Python<'_>, request: &str, control: &Control) -> PyResult<String> {
    answer(py, || lab::litmus(request, &control.inner))
}

/// Runs the workload of one experiment on plain memory, without the simulator.
#[pyfunction]
fn plain(py: Python<'_>, spec: &str) -> PyResult<String> {
    answer(py, || lab::plain(spec))
}

/// Notes that a design was set up without one of its rules, or that a hook has asked for it.
#[pyfunction]
fn note_asked(is_asked: bool) {
    lab::scripts::scripted::note_asked(is_asked);
}

/// Panics with a message on a thread of its own, as those of a campaign may, so that the tests of
/// the package see what a user would see.
#[pyfunction]
fn fail(py: Python<'_>, message: &str) -> PyResult<()> {
    answer(py, || {
        let failed = thread::scope(|scope| scope.spawn(|| panic!("{message}")).join());
        failed.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The module takes the global lock, also in a Python that could do without, because what hooks are
/// lent must be looked at by one thread at a time ([`script`]).
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    panics::install_hook();
    module.add("InputError", module.py().get_type::<InputError>())?;
    module.add("HostError", module.py().get_type::<HostError>())?;
    module.add("CheckError", module.py().get_type::<CheckError>())?;
    module.add("InternalError", module.py().get_type::<InternalError>())?;
    module.add_class::<Control>()?;
    script::add(module)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(list, module)?)?;
    module.add_function(wrap_pyfunction!(explain, module)?)?;
    module.add_function(wrap_pyfunction!(battery, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(trace, module)?)?;
    module.add_function(wrap_pyfunction!(crash, module)?)?;
    module.add_function(wrap_pyfunction!(litmus, module)?)?;
    module.add_function(wrap_pyfunction!(plain, module)?)?;
    module.add_function(wrap_pyfunction!(native::native_logging, module)?)?;
    module.add_function(wrap_pyfunction!(note_asked, module)?)?;
    module.add_function(wrap_pyfunction!(fail, module)?)
}
