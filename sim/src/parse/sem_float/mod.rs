//! Semantics of the floating-point rows of the table (PTX 9.7.3 to 9.7.5, `cvt`): maps modifiers to functions of
//! `numerics`.
//!
//! The modifiers become constants of a generic function, so that the loop over the lanes does not test them.
#![allow(
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::double_comparisons,
    reason = "comparisons with NaN must be what PTX says, not what reads best"
)]
mod arithmetic;
mod compare;
mod conversion;
mod half;
mod mode;

pub(crate) use arithmetic::*;
pub(crate) use compare::*;
pub(crate) use conversion::*;
pub(crate) use half::*;
