//! What hooks are told: the arguments of `model::hooks`, with addresses in bytes.

use model::design as hooks;
use model::workload::Flush;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Adds the arguments to the module, for scripts that ask of what kind an argument is.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tx>()?;
    module.add_class::<Load>()?;
    module.add_class::<Store>()?;
    module.add_class::<Fence>()?;
    module.add_class::<Fill>()?;
    module.add_class::<Transfer>()?;
    module.add_class::<Evict>()
}

/// A transaction of a core, when it begins or ends; `stored` is when its stores have left the core
/// and, at its end, its loads are done.
#[pyclass(frozen, get_all, module = "indelible.design")]
#[derive(Debug)]
pub(super) struct Tx {
    core: u8,
    id: u64,
    at: u64,
    stored: u64,
}

impl From<&hooks::Tx> for Tx {
    fn from(tx: &hooks::Tx) -> Tx {
        Tx { core: tx.core.0, id: tx.id.0, at: tx.at.0, stored: tx.stored.0 }
    }
}

/// A load of an aligned word, when the core has the value.
#[pyclass(frozen, get_all, module = "indelible.design")]
#[derive(Debug)]
pub(super) struct Load {
    core: u8,
    tx: Option<u64>,
    address: u64,
    line: u64,
    at: u64,
}

impl From<&hooks::Load> for Load {
    fn from(load: &hooks::Load) -> Load {
        Load {
            core: load.core.0,
            tx: load.tx.map(|tx| tx.0),
            address: load.word.address(),
            line: load.word.line().address(),
            at: load.at.0,
        }
    }
}

/// A store to an aligned word: what the word held and holds now. It leaves the core at `leaves`.
#[pyclass(frozen, get_all, module = "indelible.design")]
#[derive(Debug)]
pub(super) struct Store {
    core: u8,
    tx: Option<u64>,
    address: u64,
    line: u64,
    old: u64,
    new: u64,
    at: u64,
    leaves: u64,
    past_caches: bool,
}

impl From<&hooks::Store> for Store {
    fn from(store: &hooks::Store) -> Store {
        Store {
            core: store.core.0,
            tx: store.tx.map(|tx| tx.0),
            address: store.word.address(),
            line: store.word.line().address(),
            old: store.old,
            new: store.new,
            at: store.at.0,
            leaves: store.leaves.0,
            past_caches: store.past_caches,
        }
    }
}

/// A fence or a flush of a program, on ordering hardware. `kind` is `flush` (write `line` back: the
/// line stays in the caches if `keep`, the core waits if `waits`, and `why` is the kind of the
/// write), `order` (what was stored survives if what is stored later does) or `durable` (what was
/// stored is durable). Earlier stores have left the core, and loads have their values, at
/// `drained`.
#[pyclass(frozen, get_all, module = "indelible.design")]
#[derive(Debug)]
pub(super) struct Fence {
    core: u8,
    kind: &'static str,
    line: Option<u64>,
    keep: bool,
    waits: bool,
    why: Option<&'static str>,
    at: u64,
    drained: u64,
}

impl From<&hooks::Fence> for Fence {
    fn from(fence: &hooks::Fence) -> Fence {
        let hooks::Fence { core, kind, at, drained } = *fence;
        let asked = Fence {
            core: core.0,
            kind: "order",
            line: None,
            keep: true,
            waits: false,
            why: None,
            at: at.0,
            drained: drained.0,
        };
        match kind {
            hooks::FenceKind::Order => asked,
            hooks::FenceKind::Durable => Fence { kind: "durable", waits: true, ..asked },
            hooks::FenceKind::Flush(line, class, how) => Fence {
                kind: "flush",
                line: Some(line.address()),
                keep: how == Flush::WriteBack,
                waits: how == Flush::EvictInOrder,
                why: Some(class.name()),
                ..asked
            },
        }
    }
}

/// A line that comes to a core, from memory or from the last level.
#[pyclass(frozen, get_all, module = "indelible.design")]
#[derive(Debug)]
pub(super) struct Fill {
    core: u8,
    line: u64,
    memory: bool,
    write: bool,
    asked: u64,
    at: u64,
    earlier: u64,
}

impl From<&hooks::Fill> for Fill {
    fn from(fill: &hooks::Fill) -> Fill {
        let hooks::Fill { core, line, memory, write, asked, at, earlier } = *fill;
        let (core, line, asked) = (core.0, line.address(), asked.0);
        Fill { core, line, memory, write, asked, at: at.0, earlier }
    }
}

/// A line that goes from one core to another.
#[pyclass(frozen, get_all, module = "indelible.design")]
#[derive(Debug)]
pub(super) struct Transfer {
    line: u64,
    from_core: u8,
    to_core: u8,
    write: bool,
    at: u64,
    earlier: u64,
}

impl From<&hooks::Transfer> for Transfer {
    fn from(transfer: &hooks::Transfer) -> Transfer {
        let hooks::Transfer { line, from, to, write, at, earlier } = *transfer;
        let (from_core, to_core) = (from.0, to.0);
        Transfer { line: line.address(), from_core, to_core, write, at: at.0, earlier }
    }
}

/// A dirty line that leaves the caches, with its newest bytes.
#[pyclass(frozen, module = "indelible.design")]
pub(super) struct Evict {
    #[pyo3(get)]
    line: u64,
    #[pyo3(get)]
    at: u64,
    data: model::units::LineData,
}

impl From<&hooks::Evict> for Evict {
    fn from(evict: &hooks::Evict) -> Evict {
        Evict { line: evict.line.address(), at: evict.at.0, data: evict.data }
    }
}

#[pymethods]
impl Evict {
    /// Its newest bytes.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    fn __repr__(&self) -> String {
        let Evict { line, at, .. } = self;
        format!("Evict {{ line: {line}, at: {at} }}")
    }
}

macro_rules! shown {
    ($($Argument:ident),*) => {
        $(#[pymethods]
        impl $Argument {
            fn __repr__(&self) -> String {
                format!("{self:?}")
            }
        })*
    };
}

shown!(Tx, Load, Store, Fence, Fill, Transfer);
