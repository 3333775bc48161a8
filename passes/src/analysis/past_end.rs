//! Values of elements past the end of a range.
//!
//! Tensors read as zero there, and functions of that are as certain: what a number is is known by its bounds, which are exact as long as no rounding is in them.
//! Beside them stands how elements compare with the others, for extremes: no function that grows with its operand changes that.

mod operators;
mod pad;

pub(crate) use operators::{bounds, is_rounded, operator, scaling};
pub(crate) use pad::{BEYOND, Pad};
