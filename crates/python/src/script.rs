//! Designs that users write in Python: how one is found, and how its hooks are called.
//!
//! The simulator is told of a class once, by `indelible.scripts.about`, which makes it an entry of
//! the registry's kind for ever. The hooks are called with the global lock, on the stack of the
//! thread. An error that they raise ends the run with a sentence that names the line; one of
//! `power_loss`, `recover` or `boot` is a violation of the power failure that the hook is told of.

mod arguments;
mod below;
mod hooks;
mod image;
mod lent;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use lab::InputError;
use lab::scripts::RAISES;
use lab::scripts::scripted::ordering::LogName;
use lab::scripts::scripted::{self, About, Given, Hooks, Instructions, Script, decline, raise};
use model::design::{Card, Durability, Granularity, KeptBy, Location, Model, Needs, Structure};
use model::image::{Image, PowerLoss};
use model::params::Field;
use model::units::{CoreId, LINE_BYTES};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use below::{PyArrived, PyBelow};
use hooks::PyHooks;
use image::{PyGasp, PyImage};

pyo3::create_exception!(
    indelible,
    PyPowerLoss,
    pyo3::exceptions::PyException,
    "The power failed (again) before a write took effect; let it pass."
);

/// Adds what scripts use to the module, and has scripts found by [`find`].
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    lab::scripts::found_by(find);
    module.add("PowerLoss", module.py().get_type::<PyPowerLoss>())?;
    arguments::add(module)?;
    module.add_class::<PyBelow>()?;
    module.add_class::<PyArrived>()?;
    module.add_class::<PyImage>()?;
    module.add_class::<PyGasp>()
}

/// What the hooks need from the package.
struct Package {
    scripts: Py<PyModule>,
    wait: Py<PyAny>,
    taken: Py<PyAny>,
    home: Py<PyAny>,
}

fn package(py: Python<'_>) -> &Package {
    static PACKAGE: PyOnceLock<Package> = PyOnceLock::new();
    PACKAGE.get_or_init(py, || {
        let load = || -> PyResult<Package> {
            let design = py.import("indelible.design")?;
            Ok(Package {
                scripts: py.import("indelible.scripts")?.unbind(),
                wait: design.getattr("WAIT")?.unbind(),
                taken: design.getattr("TAKEN")?.unbind(),
                home: design.getattr("Home")?.unbind(),
            })
        };
        load().expect("the package has its modules")
    })
}

/// Returns a copy of a text that is never freed: names in cards and counters are few, and come
/// again and again.
fn interned(text: &str) -> &'static str {
    static TEXTS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = texts.get_or_insert_default();
    if let Some(known) = texts.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(text.into());
    texts.insert(kept);
    kept
}

/// Says where a script went wrong and how, in the hook that was called.
fn explained(py: Python<'_>, error: PyErr, name: &str, hook: &str) -> String {
    let text = error.to_string();
    // The error keeps its traceback, which `value` has only from Python 3.12 on.
    let error = error.into_value(py);
    let told = package(py).scripts.bind(py).call_method1("explained", (error, name, hook));
    told.and_then(|told| told.extract()).unwrap_or(text)
}

/// Finds the script of a name: see [`lab::scripts::Find`].
fn find(name: &str) -> Result<Option<&'static lab::scripts::Entry>, InputError> {
    Python::attach(|py| {
        let scripts = package(py).scripts.bind(py);
        let entry = || -> PyResult<_> {
            let found = scripts.call_method1("find", (name,))?;
            if found.is_none() {
                return Ok(None);
            }
            let (class, log, name): (Bound<'_, PyType>, Option<String>, String) =
                found.extract()?;
            Ok(Some(entry_of(class, log, &name)?))
        };
        entry().map_err(|error| match error.is_instance_of::<crate::InputError>(py) {
            true => InputError::new(error.value(py).to_string()),
            false => InputError::new(explained(py, error, name, "")),
        })
    })
}

/// Returns the entry of a class by a name, or of a log on it, made at the first request.
fn entry_of(
    class: Bound<'_, PyType>,
    log: Option<String>,
    name: &str,
) -> PyResult<&'static lab::scripts::Entry> {
    type Key = (usize, Option<String>, &'static str, String);
    type Known = HashMap<Key, &'static lab::scripts::Entry>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let py = class.py();
    let about = package(py).scripts.bind(py).call_method1("about", (&class, name))?;
    let about = about.cast_into::<PyDict>()?;
    // The text of `about` is a part of the key: a class may have been changed in place.
    let key = (class.as_ptr() as usize, log, interned(name), about.repr()?.to_string());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = known().get_or_insert_default().get(&key) {
        return Ok(entry);
    }
    let overridden: Vec<String> = item(&about, "hooks")?;
    let overridden = overridden.into_iter().collect();
    let cells = Mutex::default();
    let brings_stores = item(&about, "brings_stores")?;
    let about = about_of(&about)?;
    let log = key
        .1
        .as_deref()
        .and_then(|log| LogName::ALL.iter().find(|(name, _)| *name == log).map(|(_, log)| *log));
    let name = key.2;
    let class = class.unbind();
    let script = PyScript { name, class, brings_stores, overridden, cells };
    let entry = scripted::entry(&about, log, Arc::new(script))
        .map_err(|text| crate::InputError::new_err(format!("{name}: {text}")))?;
    // The class is part of the entry, so that no other class ever has its address.
    Ok(known().get_or_insert_default().entry(key).or_insert(entry))
}

fn item<'py, T: for<'a> FromPyObject<'a, 'py>>(of: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let value = of.get_item(key)?.expect("`about` has it");
    value.extract().map_err(Into::into)
}

fn word_of(about: &Bound<'_, PyDict>, key: &str) -> PyResult<&'static str> {
    Ok(interned(&item::<String>(about, key)?))
}

fn about_of(about: &Bound<'_, PyDict>) -> PyResult<About> {
    let word = |key| word_of(about, key);
    let pairs = |key| -> PyResult<&'static [(&'static str, &'static str)]> {
        let pairs: Vec<(String, String)> = item(about, key)?;
        Ok(pairs.iter().map(|(name, text)| (interned(name), interned(text))).collect::<Vec<_>>())
            .map(|pairs| &*pairs.leak())
    };
    let fields: Vec<Bound<'_, PyDict>> = item(about, "fields")?;
    let fields = fields.iter().map(field_of).collect::<PyResult<Vec<_>>>()?;
    let card = Card {
        name: word("name")?,
        paper: word("paper")?,
        family: word("family")?,
        summary: word("summary")?,
        file: word("file")?,
        durability: match word("durability")? {
            "synchronous" => Durability::Synchronous,
            "asynchronous" => Durability::Asynchronous,
            _ => Durability::None,
        },
        granularity: match word("granularity")? {
            "word" => Granularity::Word,
            _ => Granularity::Line,
        },
        needs: match word("needs")? {
            "nothing" => Needs::Nothing,
            "adr" => Needs::Adr,
            _ => Needs::Eadr,
        },
    };
    let model = match item::<Option<String>>(about, "model")?.as_deref() {
        Some("fenced") => Some(Model::Fenced),
        Some("epoch") => Some(Model::Epoch),
        Some("visible") => Some(Model::Visible),
        _ => None,
    };
    let (rules, needless, digest) = (pairs("rules")?, pairs("needless")?, word("digest")?);
    let fields = fields.leak();
    let (fences, flushes) = (item(about, "has_fences")?, item(about, "has_flushes")?);
    let instructions = match model {
        Some(_) => Instructions { fences, flushes },
        None => Instructions::default(),
    };
    let migrates = item(about, "migrates")?;
    Ok(About { card, model, fields, rules, needless, instructions, migrates, digest })
}

fn field_of(field: &Bound<'_, PyDict>) -> PyResult<Field> {
    let choices: Vec<String> = item(field, "choices")?;
    let choices: Vec<&'static str> = choices.iter().map(|choice| interned(choice)).collect();
    Ok(Field {
        name: word_of(field, "name")?,
        doc: word_of(field, "doc")?,
        default: item(field, "default")?,
        limits: item(field, "least")?..=item(field, "most")?,
        choices: choices.leak(),
        tight: item::<Vec<u64>>(field, "tight")?.leak(),
    })
}

/// The parameters, the cores, the bytes of memory, and whether the caches survive. A script's
/// structures may depend on what else it is told of a machine in size, and not in kind.
type SetUp = (Vec<(String, u64)>, u8, u64, bool);

/// After one in so many interrupted recoveries the class is loaded anew (ours: to load it takes as
/// long as a power failure, and a script that relies on variables shows that at others, too).
const LOADED_EVERY: u64 = 16;

/// A class that is a design.
#[derive(Debug)]
struct PyScript {
    name: &'static str,
    /// The class on which the hooks of a machine's first life are called.
    class: Py<PyType>,
    brings_stores: bool,
    /// The hooks that the class changes.
    overridden: HashSet<String>,
    /// Whether the design has cells of its own, which are behind the memory in an image, by how it
    /// is set up, as far as that was asked before.
    cells: Mutex<HashMap<SetUp, bool>>,
}

thread_local! {
    /// The next life under each script, by the address of the script, which is never freed. Runs
    /// beside each other have nothing to do with one another, and what is left of one goes with its
    /// thread.
    static LIVES: RefCell<HashMap<*const PyScript, Life>> = RefCell::default();
}

/// What is known of a machine's next life.
#[derive(Default)]
struct Life {
    /// The class, loaded anew, because what was put in its variables, and in those of its module,
    /// was lost with the power.
    class: Option<Py<PyType>>,
    /// How often recovery was interrupted since a machine was switched on.
    interrupted: u64,
}

impl PyScript {
    /// Does something with this thread's life of the script, without calling Python.
    fn with_life<R>(&self, work: impl FnOnce(&mut Life) -> R) -> R {
        LIVES.with_borrow_mut(|lives| work(lives.entry(self).or_default()))
    }

    fn changes(&self, hook: &str) -> bool {
        self.overridden.contains(hook)
    }

    /// Returns the class without what a machine that is switched on has put in its variables,
    /// loaded at the first request.
    fn anew<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        let known = self.with_life(|life| life.class.as_ref().map(|class| class.clone_ref(py)));
        if let Some(class) = known {
            return Ok(class.into_bound(py));
        }
        let class = package(py).scripts.bind(py).call_method1("anew", (&self.class,))?;
        let class = class.cast_into::<PyType>()?;
        let of_life = class.clone().unbind();
        let gone = self.with_life(|life| life.class.replace(of_life));
        drop(gone);
        Ok(class)
    }

    /// Forgets what was put in the variables of the class loaded anew, too.
    fn forget(&self) {
        // Dropping it may run Python, so it is dropped outside of the borrow.
        let gone = self.with_life(|life| life.class.take());
        drop(gone);
    }

    /// Returns what a design is set up with.
    fn setup<'py>(&self, py: Python<'py>, given: &Given<'_>) -> PyResult<Bound<'py, PyAny>> {
        let shape = given.shape;
        let settings = PyDict::new(py);
        for (name, value) in given.settings {
            settings.set_item(name, value)?;
        }
        let machine = PyDict::new(py);
        let logs = (0..shape.cores).map(|core| shape.log_of(CoreId(core)));
        machine.set_item("cores", shape.cores)?;
        machine.set_item("capacity", shape.capacity)?;
        machine.set_item("log_base", shape.log_base)?;
        machine.set_item("logs", PyTuple::new(py, logs.collect::<Vec<_>>())?)?;
        machine.set_item("log_bytes", shape.log_bytes)?;
        machine.set_item("controllers", shape.controllers)?;
        machine.set_item("path", shape.path)?;
        machine.set_item("walk", shape.walk)?;
        machine.set_item("hop", shape.hop())?;
        machine.set_item("caches_survive", shape.caches_survive())?;
        let config = &shape.config;
        machine.set_item("interleave", config.controller.interleave)?;
        machine.set_item("frequency", config.core.frequency)?;
        machine.set_item("l1d_lines", config.l1d.size / LINE_BYTES)?;
        machine.set_item("l2_lines", config.l2.size / LINE_BYTES)?;
        machine.set_item("llc_lines", config.llc.size / LINE_BYTES)?;
        let scripts = package(py).scripts.bind(py);
        scripts.call_method1("setup", (&self.class, settings, given.without, machine))
    }

    /// Whether images have cells of the design's own.
    fn has_cells(&self, py: Python<'_>, given: &Given<'_>) -> bool {
        let Given { settings, shape, .. } = given;
        let key = (settings.to_vec(), shape.cores, shape.capacity, shape.caches_survive());
        let known = || self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(has) = known().get(&key) {
            return *has;
        }
        // Python runs without this lock: another thread may ask meanwhile, and finds the same.
        let structures = or_raise(py, self.structures(py, given), self.name, "hardware");
        let has = structures.iter().any(|structure| structure.kept_by == KeptBy::Cells);
        known().insert(key, has);
        has
    }

    fn hooks(
        &self,
        py: Python<'_>,
        (class, design): (&Bound<'_, PyType>, Bound<'_, PyAny>),
        has_cells: bool,
    ) -> PyResult<Box<dyn Hooks>> {
        if !design.is_instance(class)? {
            return Err(PyTypeError::new_err(format!("it must return the design, not {design}")));
        }
        Ok(Box::new(PyHooks::new(py, self, design.unbind(), has_cells)?))
    }
}

/// Returns what a script answers, or ends the run with the error that it raised.
fn or_raise<T>(py: Python<'_>, result: PyResult<T>, name: &str, hook: &str) -> T {
    result.unwrap_or_else(|error| raise_error(py, error, name, hook))
}

/// Ends the run with the error that a script raised.
fn raise_error(py: Python<'_>, error: PyErr, name: &str, hook: &str) -> ! {
    let declined = error.is_instance_of::<crate::InputError>(py);
    let text = explained(py, error, name, hook);
    if declined { decline(text) } else { raise(text) }
}

/// Returns what a script answers about what one power failure left, where the power may fail again.
/// An error that the script raises of its own is told of that power failure.
fn or_lost<T>(
    py: Python<'_>,
    (result, lost): (PyResult<T>, bool),
    name: &str,
    hook: &str,
    tell: impl FnOnce(String),
) -> Result<T, PowerLoss> {
    match result {
        Ok(answer) if !lost => Ok(answer),
        // A hook that hides that the power failed has not gone on either.
        Ok(_) => Err(PowerLoss),
        Err(error) if lost && error.is_instance_of::<PyPowerLoss>(py) => Err(PowerLoss),
        // The script says that what was asked for does not fit.
        Err(error) if error.is_instance_of::<crate::InputError>(py) => {
            raise_error(py, error, name, hook)
        }
        Err(error) => {
            tell(format!("{RAISES}{}", explained(py, error, name, hook)));
            Err(PowerLoss)
        }
    }
}

impl Script for PyScript {
    fn switch_on(&self, given: &Given<'_>) -> Box<dyn Hooks> {
        Python::attach(|py| {
            self.forget();
            self.with_life(|life| life.interrupted = 0);
            let has_cells = self.has_cells(py, given);
            let class = self.class.bind(py);
            let design = self.setup(py, given).and_then(|setup| class.call1((setup,)));
            let hooks = design.and_then(|design| self.hooks(py, (class, design), has_cells));
            or_raise(py, hooks, self.name, "__init__")
        })
    }

    fn recover(&self, image: &mut Image<'_>, given: &Given<'_>) -> Result<(), PowerLoss> {
        if !self.changes("recover") {
            return Ok(());
        }
        Python::attach(|py| {
            let answer = image::lend(py, image, self.has_cells(py, given), |image| {
                let setup = self.setup(py, given)?;
                self.anew(py)?.call_method1("recover", (image, setup)).map(drop)
            });
            // An interrupted recovery must leave nothing in variables for the next one.
            let is_forgotten = answer.1
                && self.with_life(|life| {
                    life.interrupted += 1;
                    life.interrupted % LOADED_EVERY == 1
                });
            if is_forgotten {
                self.forget();
            }
            self.place_endless(py, image, &answer.0, "recover");
            or_lost(py, answer, self.name, "recover", |text| image.call_raised(text))
        })
    }

    fn boot(&self, image: &mut Image<'_>, given: &Given<'_>) -> Result<Box<dyn Hooks>, PowerLoss> {
        Python::attach(|py| {
            let has_cells = self.has_cells(py, given);
            let answer = image::lend(py, image, has_cells, |image| {
                let (class, setup) = (self.anew(py)?, self.setup(py, given)?);
                let design = class.call_method1("boot", (image, setup))?;
                self.hooks(py, (&class, design), has_cells)
            });
            // From now on the class is that machine's, whose power may fail like the one before.
            self.forget();
            self.place_endless(py, image, &answer.0, "boot");
            or_lost(py, answer, self.name, "boot", |text| image.call_raised(text))
        })
    }

    fn hardware(&self, given: &Given<'_>) -> Vec<Structure> {
        Python::attach(|py| or_raise(py, self.structures(py, given), self.name, "hardware"))
    }
}

impl PyScript {
    /// If a hook was ended because it does not end, adds where in the script that was.
    fn place_endless<T>(
        &self,
        py: Python<'_>,
        image: &mut Image<'_>,
        answer: &PyResult<T>,
        hook: &str,
    ) {
        let (Some(what), Err(error)) = (image.endless().map(str::to_owned), answer) else { return };
        let error = error.clone_ref(py).into_value(py);
        let scripts = package(py).scripts.bind(py);
        let place = scripts.call_method1("placed", (error, self.name, hook));
        if let Ok(place) = place.and_then(|place| place.extract::<String>()) {
            image.call_endless(format!("{what}, {place}"));
        }
    }

    fn structures(&self, py: Python<'_>, given: &Given<'_>) -> PyResult<Vec<Structure>> {
        type Row = (String, u64, u64, String, String);
        let scripts = package(py).scripts.bind(py);
        let rows = scripts.call_method1("hardware", (self.anew(py)?, self.setup(py, given)?))?;
        let rows: Vec<Row> = rows.cast_into::<PyList>()?.extract()?;
        let structure = |(name, bits, count, place, kept_by): Row| Structure {
            name: interned(&name),
            bits,
            count,
            location: Location::named(interned(&place)),
            kept_by: match kept_by.as_str() {
                "adr" => KeptBy::Adr,
                "battery" => KeptBy::Battery,
                "eadr" => KeptBy::Eadr,
                "cells" => KeptBy::Cells,
                _ => KeptBy::Nothing,
            },
        };
        Ok(rows.into_iter().map(structure).collect())
    }
}
