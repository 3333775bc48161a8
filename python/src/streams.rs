//! Streams: the current one of a library, or one that is given.

use crate::array::Library;
use crate::foreign::Exchange;
use pyo3::prelude::*;
use pyo3::sync::GILOnceCell;

/// A stream as a number: one itself, or what a library calls so.
pub(crate) fn given(stream: &Bound<'_, PyAny>) -> PyResult<u64> {
    for name in ["cuda_stream", "ptr"] {
        if let Ok(number) = stream.getattr(name) {
            return number.extract();
        }
    }
    stream.extract()
}

/// Whether two numbers denote one stream: 0 and 1 both are the legacy default stream.
pub(crate) fn same(one: u64, other: u64) -> bool {
    let plain = |stream: u64| if stream == 1 { 0 } else { stream };
    plain(one) == plain(other)
}

/// The current stream of the library that an array is of; 0, the legacy default stream, where it has none.
pub(crate) fn current(py: Python<'_>, library: Library, torch: Option<Exchange>, device: i32) -> PyResult<u64> {
    static TORCH: GILOnceCell<Py<PyAny>> = GILOnceCell::new();
    if !library.has_streams() {
        return Ok(0);
    }
    if library == Library::Torch {
        if let Some(stream) = torch.and_then(|torch| torch.stream(py, device)) {
            return Ok(stream);
        }
        let function = TORCH.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
            Ok(py.import("torch._C")?.getattr("_cuda_getCurrentRawStream")?.unbind())
        })?;
        return function.bind(py).call1((device,))?.extract();
    }
    let modules = py.import("sys")?.getattr("modules")?;
    match modules.get_item("cupy") {
        Ok(cupy) => cupy.getattr("cuda")?.call_method0("get_current_stream")?.getattr("ptr")?.extract(),
        Err(_) => Ok(0),
    }
}
