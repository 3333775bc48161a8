//! Tensors in DLPack capsules (<https://dmlc.github.io/dlpack/latest/c_api.html>, version 0.8 and the unversioned form of 1.0).

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::c_void;

#[repr(C)]
struct DlTensor {
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

/// What a capsule says of a tensor. Strides are in elements.
pub(crate) struct Lent {
    pub(crate) address: u64,
    /// `DLDeviceType`: 1 is the host, 2 CUDA.
    pub(crate) device_type: i32,
    pub(crate) device: i32,
    /// `DLDataTypeCode` and bits of an element.
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// Reads a capsule called `dltensor`. It stays the capsule of whoever holds it, whose end returns the tensor.
pub(crate) fn lent(capsule: &Bound<'_, PyCapsule>) -> Option<Lent> {
    if capsule.name().ok()?? != c"dltensor" {
        return None;
    }
    let tensor = capsule.pointer().cast::<DlTensor>();
    // SAFETY: a capsule of that name holds a `DLManagedTensor`, which begins with this structure and lives as long as the capsule.
    let tensor = unsafe { tensor.as_ref()? };
    let rank = usize::try_from(tensor.ndim).ok()?;
    if tensor.lanes != 1 {
        return None;
    }
    let list = |from: *const i64| -> Option<Vec<i64>> {
        if from.is_null() {
            return None;
        }
        // SAFETY: arrays of as many numbers as there are dimensions.
        Some((0..rank).map(|i| unsafe { *from.add(i) }).collect())
    };
    let shape = if rank == 0 { Vec::new() } else { list(tensor.shape)? };
    let packed = || {
        let mut strides = vec![1; rank];
        for i in (1..rank).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        strides
    };
    Some(Lent {
        address: tensor.data as u64 + tensor.byte_offset,
        device_type: tensor.device_type,
        device: tensor.device_id,
        code: tensor.code,
        bits: tensor.bits,
        strides: list(tensor.strides).unwrap_or_else(packed),
        shape,
    })
}
