//! `tilec._tilec`: the compiler and the launcher behind the Python package (docs/python.md).

mod array;
mod compiled;
mod errors;
mod foreign;
mod interface;
mod kernel;
mod plan;
mod simulated;
mod streams;

use compiled::Program;
use kernel::Kernel;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// Compiles a program for a target and gives one of its kernels.
#[pyfunction]
#[pyo3(signature = (source, name, target, params, sizes, variants, zeros, kernel))]
#[expect(clippy::too_many_arguments, reason = "those of the function that people call, with their defaults")]
fn compile(
    py: Python<'_>,
    source: String,
    name: &str,
    target: &str,
    params: &Bound<'_, PyDict>,
    sizes: &Bound<'_, PyList>,
    variants: &Bound<'_, PyList>,
    zeros: Vec<String>,
    kernel: Option<&str>,
) -> PyResult<Kernel> {
    let options = compiled::options(name, target, params, sizes, variants, zeros)?;
    let program = py.allow_threads(|| Program::new(source, options)).map_err(|d| compiled::error(py, &d))?;
    Kernel::new(Arc::new(program), kernel)
}

/// The target for a device; `None` where there is no driver or no device.
#[pyfunction]
fn target_of_device(device: i32) -> Option<&'static str> {
    let driver = foreign::Driver::get().ok()?;
    if device >= driver.devices().ok()? {
        return None;
    }
    let capability = driver.capability(device).ok()?;
    tilec::Target::ALL.iter().rfind(|t| t.runs_on(capability)).map(|t| t.name())
}

/// The module.
#[pymodule]
fn _tilec(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Kernel>()?;
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(target_of_device, module)?)
}
