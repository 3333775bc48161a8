//! Tensor maps.

use super::{Answer, answer, list, put};
use crate::code::{Code, Failure};
use crate::maps::Map;
use std::ffi::{c_int, c_uint, c_void};

/// Extents, and strides of all dimensions but the innermost.
unsafe fn sizes(rank: c_uint, extents: *const u64, strides: *const u64) -> Result<(Vec<u64>, Vec<u64>), Failure> {
    if !(1..=5).contains(&rank) {
        return Err(Failure::new(
            Code::InvalidValue,
            format!("a tensor map of {rank} dimensions: 1 to 5 are possible"),
        ));
    }
    // SAFETY: the driver's contract: so many extents, and one stride less.
    unsafe { Ok((list(extents, rank as usize)?, list(strides, rank as usize - 1)?)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeTiled(
    to: *mut [u8; 128],
    element: c_uint,
    rank: c_uint,
    address: *const c_void,
    extents: *const u64,
    strides: *const u64,
    box_extents: *const u32,
    steps: *const u32,
    interleave: c_uint,
    swizzle: c_uint,
    _promotion: c_uint,
    fill: c_uint,
) -> Answer {
    answer("cuTensorMapEncodeTiled", || {
        // SAFETY: the driver's contract: so many numbers in each list, and 128 bytes that may be written.
        unsafe {
            let (extents, strides) = sizes(rank, extents, strides)?;
            let (box_extents, steps) = (list(box_extents, rank as usize)?, list(steps, rank as usize)?);
            let address = address as u64;
            let map =
                Map { element, address, extents, strides, box_extents, steps, interleave, swizzle, fill, pixels: None };
            put(to, map.encode()?)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeIm2col(
    to: *mut [u8; 128],
    element: c_uint,
    rank: c_uint,
    address: *const c_void,
    extents: *const u64,
    strides: *const u64,
    lower: *const c_int,
    upper: *const c_int,
    channels: c_uint,
    pixels: c_uint,
    steps: *const u32,
    interleave: c_uint,
    swizzle: c_uint,
    _promotion: c_uint,
    fill: c_uint,
) -> Answer {
    answer("cuTensorMapEncodeIm2col", || {
        // SAFETY: as above; a corner has a number for each dimension but the first and the last.
        unsafe {
            let (extents, strides) = sizes(rank, extents, strides)?;
            let inner = (rank as usize).saturating_sub(2);
            let pixels = Some((list(lower, inner)?, list(upper, inner)?, channels, pixels));
            let (address, box_extents, steps) = (address as u64, Vec::new(), list(steps, rank as usize)?);
            let map = Map { element, address, extents, strides, box_extents, steps, interleave, swizzle, fill, pixels };
            put(to, map.encode()?)
        }
    })
}
