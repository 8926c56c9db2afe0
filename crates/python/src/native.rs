//! The benchmark of the processor, for Python: `indelible native logging`.

use pyo3::prelude::*;

use crate::{Control, answer};

/// Measures cached and uncacheable logs on the processor that this runs on.
#[pyfunction]
pub(crate) fn native_logging(py: Python<'_>, request: &str, control: &Control) -> PyResult<String> {
    let inner = &control.inner;
    let watch =
        ::native::Watch { cancelled: &inner.cancelled, done: &inner.done, total: &inner.total };
    answer(py, || ::native::logging(request, watch).map_err(|error| lab::InputError::new(error.0)))
}
