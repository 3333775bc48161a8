//! What is known of a loop over tiles, and of the values in it.

use super::exponent::Scales;
use super::kind::{Kind, Pad};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::Op;

/// Numbers beyond are no elements of masked tiles: the largest of an f16 is 65504.
pub(super) const BEYOND: f64 = 6.0e4;

/// A loop over tiles of a chosen size.
pub(super) struct Tiles<'d> {
    pub(super) k: &'d Kernel,
    pub(super) var: Value,
    /// The extent of a tile.
    pub(super) size: Expr,
    /// The variable is the number of a tile, not its first position.
    pub(super) numbers: bool,
    /// The last tile may have positions behind it.
    pub(super) padded: bool,
    /// Tensors that the loop stores to.
    pub(super) stored: BTreeSet<Value>,
    /// Variables of loops in it that go over a whole tile.
    pub(super) over_tile: BTreeSet<Value>,
    pub(super) kinds: BTreeMap<Value, Kind>,
    /// Where something was first assigned that is no sum and no extreme.
    pub(super) at: BTreeMap<Value, Span>,
    /// Stores of what is carried.
    pub(super) stores: Vec<Span>,
    pub(super) scales: Scales,
}

pub(super) fn literal(k: &Kernel, e: Expr) -> Option<f64> {
    match &k.exprs[meaning(k, e)] {
        ExprData::Int(x) => Some(*x as f64),
        ExprData::Float(bits) => Some(f64::from_bits(*bits)),
        ExprData::Op { op: Op::Neg, args } => literal(k, args[0]).map(|x| -x),
        _ => None,
    }
}

/// What a number is to an extreme.
pub(super) fn pad_of(x: f64) -> Pad {
    match x {
        _ if x <= -BEYOND => Pad::Low,
        _ if x >= BEYOND => Pad::High,
        _ if x == 0.0 => Pad::Zero,
        _ if x.is_nan() => Pad::Any,
        _ => Pad::Finite,
    }
}
