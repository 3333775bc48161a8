//! Values of elements past the end of a range.
//!
//! Tensors read as zero there, so functions of them have known values, too. A value is known by its bounds, which are
//! exact while no rounding is involved. In addition, it is tracked how these elements compare with all others, for
//! minima and maxima: functions that are monotonic preserve that.

mod operators;
mod pad;

pub(crate) use operators::{bounds, is_rounded, operator, scaling};
pub(crate) use pad::{BEYOND, Pad};
