//! The DLPack C exchange API (version 1.3, <https://dmlc.github.io/dlpack/latest/c_api.html>): functions of a library of tensors
//! that say in one call what a tensor is, without an object of Python for each number.

use super::dlpack::{Borrowed, DlTensor};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use std::ffi::{c_int, c_void};

/// The major version of DLPack whose structures these are.
const MAJOR: u32 = 1;
/// `kDLCUDA`.
const CUDA: c_int = 2;

type TensorOf = unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int;
type StreamOf = unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int;

#[repr(C)]
struct Header {
    major: u32,
    minor: u32,
    previous: *const Header,
}

#[repr(C)]
struct Table {
    header: Header,
    /// Functions that make and export tensors, unused here.
    others: [*const c_void; 3],
    tensor: Option<TensorOf>,
    stream: Option<StreamOf>,
}

/// The functions of a library.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    tensor: TensorOf,
    stream: StreamOf,
}

impl Exchange {
    /// The exchange functions of a type's library, if it has this version.
    pub(crate) fn of(ty: &Bound<'_, PyType>) -> Option<Exchange> {
        let capsule = ty.getattr("__dlpack_c_exchange_api__").ok()?;
        let capsule = capsule.downcast::<PyCapsule>().ok()?;
        if capsule.name().ok()?? != c"dlpack_exchange_api" {
            return None;
        }
        // SAFETY: a capsule of that name holds a table that begins with this header and lives as long as the process.
        let header = unsafe { capsule.pointer().cast::<Header>().as_ref()? };
        if header.major != MAJOR {
            return None;
        }
        // SAFETY: in this version the table is this one.
        let table = unsafe { capsule.pointer().cast::<Table>().as_ref()? };
        Some(Exchange { tensor: table.tensor?, stream: table.stream? })
    }

    /// Reads an object of that type; shape and strides are appended. `None` if the library reports no tensor, or one
    /// without plain elements.
    pub(crate) fn read(
        self,
        object: &Bound<'_, PyAny>,
        shape: &mut Vec<i64>,
        strides: &mut Vec<i64>,
    ) -> Option<Borrowed> {
        let mut tensor = DlTensor::empty();
        // SAFETY: an object of the type that the function is for, and a place for the structure, which borrows from the object.
        let code = unsafe { (self.tensor)(object.as_ptr().cast(), &mut tensor) };
        if code != 0 {
            // The other protocol then reads the object, or rejects it.
            drop(PyErr::take(object.py()));
            return None;
        }
        tensor.lent(shape, strides)
    }

    /// The library's current stream of a device.
    pub(crate) fn stream(self, py: Python<'_>, device: i32) -> Option<u64> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: a place for a handle.
        if unsafe { (self.stream)(CUDA, device, &mut stream) } != 0 {
            drop(PyErr::take(py));
            return None;
        }
        Some(stream as u64)
    }
}
