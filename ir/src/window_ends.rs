//! Windows that end in front of the tensor's end, as TMA loads them: `copy V[first + j..first + len, h, 0..] -> v tma`.
//!
//! A descriptor has one end along each dimension, which the host gives it. So the dimension of such a window is there twice: once with the extent of a box, and once
//! more after all others, with the same stride, of one element more than the tensor has. The descriptor's address is a box in front of the tensor's. A box whose
//! rows end in front of row `s` begins at `s` along the second; along the first it begins as far in as its first row is in front of `s`, counted from a whole box.
//! Rows from the end on are then outside of the first, and arrive as zero.

use crate::extents::Ranges;
use crate::facts::contiguous_dim;
use crate::kernel::Kernel;
use crate::target::MAX_TENSOR_RANK;
use crate::typing::{ResolvedView, ViewDim};

/// The dimension of the tensor along which the window ends before the tensor; `None`: it ends with the tensor.
///
/// # Errors
/// The reason why no descriptor has such an end.
pub fn own_end(k: &Kernel, window: &ResolvedView) -> Result<Option<usize>, &'static str> {
    let ends = |d: &usize| matches!(window.dims[*d], ViewDim::From { end: Some(_), .. });
    let mut ended = (0..window.dims.len()).filter(ends);
    let Some(dim) = ended.next() else { return Ok(None) };
    if ended.next().is_some() {
        return Err("has ends of its own along two dimensions");
    }
    if contiguous_dim(k, window.base) == Some(dim) {
        return Err("has an end of its own along its rows");
    }
    let tensor = k.tensor_ty(window.base).ok_or("is of no tensor")?;
    if !tensor.padded.is_empty() || (0..tensor.shape.len()).any(|d| tensor.modes(d).is_some()) {
        return Err("has an end of its own, and its tensor is padded or has dimensions of several modes");
    }
    if tensor.shape.len() >= MAX_TENSOR_RANK {
        return Err("has an end of its own, and its tensor no dimension to spare");
    }
    // Rows in front of the tensor would be read: the descriptor begins there.
    let ranges = Ranges::new(k);
    let least = window.dims[dim].starts().iter().map(|&e| Some(ranges.of(e)?.lo)).sum::<Option<i128>>();
    match least {
        Some(least) if least >= 0 => Ok(Some(dim)),
        _ => Err("has an end of its own, and may begin in front of the tensor, as far as ranges tell"),
    }
}
