//! Exceptions; their classes are in `tilec/_errors.py`.

use crate::plan::Refusal;
use pyo3::prelude::*;

fn of(py: Python<'_>, class: &str, text: String) -> PyErr {
    let made =
        || -> PyResult<PyErr> { Ok(PyErr::from_value(py.import("tilec._errors")?.getattr(class)?.call1((text,))?)) };
    made().unwrap_or_else(|e| e)
}

/// Arguments that break the contract.
pub(crate) fn launch(py: Python<'_>, text: String) -> PyErr {
    of(py, "LaunchError", text)
}

/// The driver refused.
pub(crate) fn cuda(py: Python<'_>, text: String) -> PyErr {
    of(py, "CudaError", text)
}

/// The simulator found something wrong.
pub(crate) fn simulation(py: Python<'_>, text: String) -> PyErr {
    of(py, "SimulationError", text)
}

/// The exception of a refusal.
pub(crate) fn refusal(py: Python<'_>, refusal: Refusal) -> PyErr {
    match refusal {
        Refusal::Contract(text) => launch(py, text),
        Refusal::Driver(text) => cuda(py, text),
    }
}
