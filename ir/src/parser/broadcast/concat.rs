//! Tiles one after the other: `concat(a, b, 1)` is a register tile whose windows are filled.

use super::{Writer, extent};
use crate::attributes::CopyAttrs;
use crate::diag::Span;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::ops::Op;
use crate::types::TileTy;
use crate::typing::{Extent, joined};

impl Writer<'_> {
    /// The tile that holds the parts; `None`: their shapes do not match, which the verifier reports.
    pub(super) fn joined(&mut self, k: &mut Kernel, e: Expr, args: &[Expr], axis: usize) -> Option<Value> {
        let span = k.expr_spans[e];
        let (elem, tiles) = joined(k, e)?;
        let rank = tiles[0].shape.len();
        // Where each part begins, and the end.
        let mut ends = vec![k.int(0, span)];
        for tile in &tiles {
            let (last, own) = (ends[ends.len() - 1], extent(k, tile.shape[axis], e));
            let last = k.copy_expr(last);
            ends.push(k.binary(Op::Add, last, own, span));
        }
        let all = ends.pop().expect("parts have an end");
        let mut shape = Vec::new();
        for d in 0..rank {
            let of_parts: Vec<Extent> = tiles.iter().map(|tile| tile.shape[d]).collect();
            shape.push(if d == axis { all } else { self.same(k, &of_parts, e) });
        }
        let value = k.value("joined", span, ValueDef::Var(TileTy::registers(elem, shape, None)));
        self.front.push(k.stmt(StmtData::Var { value, init: None }, span));
        for (&src, &first) in args.iter().zip(&ends) {
            let range = |k: &mut Kernel, d: usize| {
                let start = if d == axis { first } else { k.int(0, span) };
                Range::From { start, end: None }
            };
            let ranges = (0..rank).map(|d| range(k, d)).collect();
            let dst = k.expr(ExprData::View(View { base: value, slot: None, ranges }), span);
            self.front.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
        }
        Some(value)
    }

    /// The extent that parts have along another dimension. If parameters decide whether they are the same, the kernel demands it: a part with fewer elements would leave
    /// some of the tile undefined.
    fn same(&self, k: &mut Kernel, of_parts: &[Extent], e: Expr) -> Expr {
        let own = of_parts.iter().copied().find(|n| n.known().is_some()).unwrap_or(of_parts[0]);
        for &other in of_parts {
            if own.same(k, other).is_none() {
                let (a, b) = (extent(k, own, e), extent(k, other, e));
                demanded(k, a, b, k.expr_spans[e]);
            }
        }
        extent(k, own, e)
    }
}

/// Adds a precondition that two extents are the same, unless there is one.
fn demanded(k: &mut Kernel, a: Expr, b: Expr, span: Span) {
    let cond = k.binary(Op::Eq, a, b, span);
    if !k.requires.iter().any(|&of| crate::typing::same_expr(k, of, cond)) {
        k.requires.push(cond);
    }
}
