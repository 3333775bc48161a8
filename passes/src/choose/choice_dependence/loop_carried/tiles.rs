//! Facts about a loop over tiles and its values.

use super::dependence_kind::Kind;
use super::exponent::Scales;
use crate::analysis::inequalities::{Inequalities, Outside};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::Op;
use tilec_ir::typing::{Extent, ResolvedView};

/// A loop over tiles of a chosen size.
#[derive(Copy, Clone)]
pub(in crate::choose::choice_dependence) struct Loop {
    pub(in crate::choose::choice_dependence) stmt: Stmt,
    /// What is chosen.
    pub(in crate::choose::choice_dependence) parameter: Value,
    /// The extent of a tile.
    pub(in crate::choose::choice_dependence) size: Expr,
    /// The end of the range.
    pub(in crate::choose::choice_dependence) end: Expr,
    /// Whether the variable is the number of a tile, not its first position.
    pub(in crate::choose::choice_dependence) numbers: bool,
    /// Whether the last tile may have positions past the end.
    pub(in crate::choose::choice_dependence) padded: bool,
}

/// A loop over tiles of a chosen size, with the values of an iteration.
pub(super) struct Tiles<'d> {
    pub(super) k: &'d Kernel,
    pub(super) known: &'d Inequalities<'d>,
    /// Elements of a tile past the end of the range.
    pub(super) behind: Option<Outside>,
    pub(super) var: Value,
    /// The extent of a tile.
    pub(super) size: Expr,
    /// Whether the variable is the number of a tile, not its first position.
    pub(super) numbers: bool,
    /// Whether the last tile may have positions past the end.
    pub(super) padded: bool,
    /// Windows of tensors that the loop stores to.
    pub(super) stored: Vec<ResolvedView>,
    /// Variables of inner loops that cover a whole tile.
    pub(super) over_tile: BTreeSet<Value>,
    pub(super) kinds: BTreeMap<Value, Kind>,
    /// The variables that are declared in front of the loop.
    pub(super) outer: Vec<Value>,
    /// The first assignment to a variable of something that is neither sum nor extreme; true: there was none, and this
    /// is the last assignment.
    pub(super) at: BTreeMap<Value, (Span, bool)>,
    /// Stores that depend on the tiles; true: on loop-carried values.
    pub(super) stores: BTreeMap<Stmt, bool>,
    /// Values that are put into channels.
    pub(super) puts: BTreeMap<Value, Kind>,
    /// Initial numbers of variables in front of the loop.
    pub(super) begins_with: BTreeMap<Value, f64>,
    /// Extremes with guards; true if the guards are for a maximum, false for a minimum.
    pub(super) guarded: BTreeSet<(Value, bool)>,
    /// The shape of a statement's tile, which its windows have.
    pub(super) shape: Option<Vec<Extent>>,
    pub(super) scales: Scales,
}

pub(super) fn literal(k: &Kernel, e: Expr) -> Option<f64> {
    match &k.exprs[meaning(k, e)] {
        ExprData::Int(x) => Some(*x as f64),
        ExprData::Float(bits) => Some(f64::from_bits(*bits)),
        ExprData::Op { op: Op::Neg, args } => literal(k, args[0]).map(|x| -x),
        ExprData::Cast { arg, .. } => literal(k, *arg),
        _ => None,
    }
}
