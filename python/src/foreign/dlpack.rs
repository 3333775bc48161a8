//! Tensors in DLPack capsules (<https://dmlc.github.io/dlpack/latest/c_api.html>, version 0.8 and the unversioned form of 1.0).

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;

#[repr(C)]
pub(super) struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// A library's description of a tensor, without shape and strides.
pub(crate) struct Borrowed {
    pub(crate) address: u64,
    /// `DLDeviceType`: 1 is the host, 2 CUDA.
    pub(crate) device_type: i32,
    pub(crate) device: i32,
    /// `DLDataTypeCode` and bits of an element.
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) rank: usize,
}

impl DlTensor {
    /// An empty one.
    pub(super) fn empty() -> DlTensor {
        let (data, shape, strides) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
        let (device_type, device_id, ndim, code, bits, lanes, byte_offset) = (0, 0, -1, 0, 0, 0, 0);
        DlTensor { data, device_type, device_id, ndim, code, bits, lanes, shape, strides, byte_offset }
    }

    /// Its numbers; extents and strides (in elements) are appended.
    pub(super) fn lent(&self, shape: &mut Vec<i64>, strides: &mut Vec<i64>) -> Option<Borrowed> {
        let rank = usize::try_from(self.ndim).ok()?;
        if self.lanes != 1 || (rank > 0 && self.shape.is_null()) {
            return None;
        }
        let first = shape.len();
        // SAFETY, of both: arrays of as many numbers as there are dimensions.
        shape.extend((0..rank).map(|i| unsafe { *self.shape.add(i) }));
        if self.strides.is_null() {
            let (mut step, from) = (1, strides.len());
            strides.resize(from + rank, 1);
            for i in (0..rank).rev() {
                strides[from + i] = step;
                step *= shape[first + i];
            }
        } else {
            strides.extend((0..rank).map(|i| unsafe { *self.strides.add(i) }));
        }
        Some(Borrowed {
            address: self.data as u64 + self.byte_offset,
            device_type: self.device_type,
            device: self.device_id,
            code: self.code,
            bits: self.bits,
            rank,
        })
    }
}

/// Reads a capsule called `dltensor`; extents and strides are appended. The capsule's owner keeps it, and its
/// destructor returns the tensor.
pub(crate) fn lent(capsule: &Bound<'_, PyCapsule>, shape: &mut Vec<i64>, strides: &mut Vec<i64>) -> Option<Borrowed> {
    if capsule.name().ok()?? != c"dltensor" {
        return None;
    }
    // SAFETY: a capsule of that name holds a `DLManagedTensor`, which begins with this structure and lives as long as the capsule.
    let tensor = unsafe { capsule.pointer().cast::<DlTensor>().as_ref()? };
    tensor.lent(shape, strides)
}
