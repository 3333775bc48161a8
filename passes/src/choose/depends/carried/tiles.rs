//! The facts about a loop over tiles and the values in it.

use super::exponent::Scales;
use super::kind::Kind;
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
pub(in crate::choose::depends) struct Loop {
    pub(in crate::choose::depends) stmt: Stmt,
    /// What is chosen.
    pub(in crate::choose::depends) parameter: Value,
    /// The extent of a tile.
    pub(in crate::choose::depends) size: Expr,
    /// Where the range ends.
    pub(in crate::choose::depends) end: Expr,
    /// The variable is the number of a tile, not its first position.
    pub(in crate::choose::depends) numbers: bool,
    /// The last tile may have positions after it.
    pub(in crate::choose::depends) padded: bool,
}

/// A loop over tiles of a chosen size, and what is known of an iteration.
pub(super) struct Tiles<'d> {
    pub(super) k: &'d Kernel,
    pub(super) known: &'d Inequalities<'d>,
    /// Elements of a tile after the end of the range.
    pub(super) behind: Option<Outside>,
    pub(super) var: Value,
    /// The extent of a tile.
    pub(super) size: Expr,
    /// The variable is the number of a tile, not its first position.
    pub(super) numbers: bool,
    /// The last tile may have positions after it.
    pub(super) padded: bool,
    /// Windows of tensors that the loop stores to.
    pub(super) stored: Vec<ResolvedView>,
    /// Variables of loops in it that go over a whole tile.
    pub(super) over_tile: BTreeSet<Value>,
    pub(super) kinds: BTreeMap<Value, Kind>,
    /// Of these, what is declared in front of the loop.
    pub(super) outer: Vec<Value>,
    /// Where something was first assigned that is no sum and no extreme; true: nothing was, and that is where the last one was.
    pub(super) at: BTreeMap<Value, (Span, bool)>,
    /// Stores of what depends on the tiles there are; true: of what is carried.
    pub(super) stores: BTreeMap<Stmt, bool>,
    /// What is put into channels.
    pub(super) puts: BTreeMap<Value, Kind>,
    /// Numbers that variables hold in front of the loop.
    pub(super) begins_with: BTreeMap<Value, f64>,
    /// Extremes with guards, and whether these take them for the largest, not the least.
    pub(super) guarded: BTreeSet<(Value, bool)>,
    /// The shape of a statement's tile, which windows in it have.
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
