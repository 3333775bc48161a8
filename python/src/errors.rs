//! Exceptions; their classes are in `tilec/_errors.py`.

use crate::plan::Refusal;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

fn of(py: Python<'_>, class: &str, text: String) -> PyErr {
    let made =
        || -> PyResult<PyErr> { Ok(PyErr::from_value(py.import("tilec._errors")?.getattr(class)?.call1((text,))?)) };
    made().unwrap_or_else(|e| e)
}

/// The driver refused.
pub(crate) fn cuda(py: Python<'_>, text: String) -> PyErr {
    of(py, "CudaError", text)
}

/// The exception of an array that is not taken, with the name of the argument.
pub(crate) fn of_argument(name: &str, py: Python<'_>, error: PyErr) -> PyErr {
    let text = || format!("`{name}`: {}", error.value(py));
    match () {
        () if error.get_type(py).is(py.get_type::<PyTypeError>()) => PyTypeError::new_err(text()),
        () if error.get_type(py).is(py.get_type::<PyValueError>()) => PyValueError::new_err(text()),
        () => error,
    }
}

/// The exception of a refusal.
pub(crate) fn refusal(py: Python<'_>, refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Contract(text) => of(py, "LaunchError", text),
        Refusal::Driver(text) => cuda(py, text),
        Refusal::Simulation(text) => of(py, "SimulationError", text),
        Refusal::Program(diagnostics) => crate::compiled::error(py, &diagnostics),
    }
}
