//! `tilec._tilec`: the compiler and the launcher after the Python package (docs/python.md).

mod array;
mod compiled;
mod devices;
mod dtype;
mod errors;
mod foreign;
mod hash;
mod interface;
mod kernel;
mod launcher;
mod plan;
mod simulated;
mod streams;
mod xla;

use compiled::Program;
use kernel::Kernel;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::OsString;
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

/// Takes a kernel out of the bytes of a bundle; `device` is the one to choose for, if there is one.
#[pyfunction]
#[pyo3(signature = (bytes, name, target, device, kernel))]
fn load(bytes: &[u8], name: &str, target: Option<&str>, device: i32, kernel: Option<&str>) -> PyResult<Kernel> {
    let program = Program::of_bundle(bytes, name, target, capability(device)).map_err(PyValueError::new_err)?;
    Kernel::new(Arc::new(program), kernel)
}

/// The compute capability of a device, if there is a driver and that device.
fn capability(device: i32) -> Option<(u32, u32)> {
    tilec::cuda::Device::capability(u32::try_from(device).ok()?).ok()
}

/// The target for a device; `None` where there is no driver or no device.
#[pyfunction]
fn target_of_device(device: i32) -> Option<&'static str> {
    let (major, minor) = capability(device)?;
    tilec::Target::newest_on(10 * major + minor).map(tilec::Target::name)
}

/// Compares what a program of XLA is to call with the contract of the kernel that was shared under this name: tensors with their types and
/// shapes, and numbers. Its code is loaded on devices.
#[pyfunction]
fn xla_prepare(
    py: Python<'_>,
    key: &str,
    tensors: Vec<(String, String, Vec<i64>)>,
    numbers: &Bound<'_, PyDict>,
    devices: Vec<i32>,
) -> PyResult<()> {
    let numbers = numbers.iter().map(|(name, value)| Ok((name.extract()?, kernel::number(&value)?)));
    let numbers = numbers.collect::<PyResult<Vec<_>>>()?;
    let typed = |(name, dtype, shape): (String, String, Vec<i64>)| match dtype::Dtype::named(&dtype) {
        Some(dtype) => Ok((name, dtype, shape)),
        None => Err(PyTypeError::new_err(format!("`{name}` has elements {dtype}, which no kernel takes"))),
    };
    let tensors = tensors.into_iter().map(typed).collect::<PyResult<Vec<_>>>()?;
    py.allow_threads(|| xla::prepare(key, tensors, &numbers, &devices)).map_err(|r| errors::refusal(py, r))
}

/// Handlers of calls of XLA, as capsules: of the host, and of CUDA for kernels that need no memory and that do.
#[pyfunction]
fn xla_handlers(py: Python<'_>) -> PyResult<[Py<PyAny>; 3]> {
    foreign::handlers(py)
}

/// Does what the `tilec` command does with these words, and gives its exit status. The words `again` start it in another process.
#[pyfunction]
fn command(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.allow_threads(|| tilec::command::main(&tilec::command::Call::new(words, again)))
}

/// The module.
#[pymodule]
fn _tilec(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Kernel>()?;
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(xla_prepare, module)?)?;
    module.add_function(wrap_pyfunction!(xla_handlers, module)?)?;
    module.add_function(wrap_pyfunction!(target_of_device, module)?)
}
