//! The product whose tiles blocks may share along the reduction.

use crate::analysis::access_width::elem_of;
use crate::choose::stream_k::LEAST;
use tilec_ir::bits::Bits;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::types::Elem;
use tilec_ir::typing::resolve_view;

/// What is shared.
pub(super) struct SplitProduct {
    pub(super) acc: Value,
    pub(super) elem: Elem,
    pub(super) shape: (i64, i64),
    pub(super) step: i64,
    pub(super) end: Expr,
    /// Bytes of each operand that a step loads for a tile, if the loads can be attributed.
    pub(super) sides: Option<[f64; 2]>,
    /// Elements of an operand that a step computes in registers.
    pub(super) computed: u64,
    pub(super) span: Span,
}

/// The smallest number of steps of a segment.
pub(super) fn least_steps(k: &Kernel, step: i64) -> i64 {
    (LEAST / operand_size(k).bytes_of(step.unsigned_abs()) as i64).max(1)
}

/// Size of an element of the operands.
pub(super) fn operand_size(k: &Kernel) -> Bits {
    let read = k.expressions().into_iter().map(|e| &k.exprs[e]).filter_map(|e| match e {
        ExprData::Mma(mma) => resolve_view(k, mma.a).map(|v| v.base).or(match k.exprs[mma.a] {
            ExprData::Ref(v) => Some(v),
            _ => None,
        }),
        _ => None,
    });
    read.filter_map(|v| elem_of(k, v)).map(Elem::size).max().unwrap_or(Elem::U8.size())
}
