//! Split-K in clusters: the blocks of a cluster share a tile along the reduction, and pass their sums to the last of
//! them in its shared memory.
//!
//! ```text
//! grid (cta: 2 * ceildiv(M, 64), j: ceildiv(N, 64)) schedule { cluster (2) }
//! let i = cta / 2
//! let part = cta % 2
//! for k in part * each..min(K, (part + 1) * each) step 64 { .. }          // each: half of the steps, rounded up
//! if part < 1 {
//!     copy acc -> acc_sums[0, 0.., 0..] fragment                          // distributed shared memory
//!     signal acc_sums[0]
//! } else {
//!     await acc_sums[0]
//!     copy acc + acc_sums[0, 0.., 0..] -> acc fragment
//!     ..
//! }
//! ```
//!
//! A block has one tile and ends. The sums are added in the order of the blocks, so that results are the same in every
//! launch. Blocks only divide by literals before they start, and the exchange is a single transfer between
//! multiprocessors: on an H200 that saves 1 to 4 us relative to stream-K ([`super::stream_k`]).

use super::index_builder::IndexBuilder;
use super::persistent::Tiles;
use super::split_product::SplitProduct;
use super::stream_k::tensor;
use crate::Cx;
use crate::rewrite::{Map, Subst, clone_stmt};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, GridAxis, Kernel, Range, SignalOp, StmtData, ValueDef, View};
use tilec_ir::ops::Op;
use tilec_ir::types::Scratch;

/// How the blocks of a cluster share a tile.
pub(super) struct Split {
    /// Blocks of a cluster.
    parts: i64,
    /// Placeholder name for the block's part number, until it is declared.
    part: Value,
    /// Elements of a step, and of the reduction.
    step: i64,
    reduction: Expr,
    acc: Value,
    sums: Value,
    span: Span,
}

impl Split {
    pub(super) fn new(k: &mut Kernel, cx: &mut Cx<'_>, found: SplitProduct, parts: i64) -> Split {
        let SplitProduct { acc, elem, shape: (rows, cols), step, end, span, .. } = found;
        let name = format!("{}_sums", k.values[acc].name);
        let extents = [parts - 1, rows, cols];
        let sums = tensor(k, span, (&name, elem, Scratch::Cluster), &extents, &[rows * cols, cols, 1]);
        let part = k.value("part", span, ValueDef::Let);
        // The end of the last block's part fits 31 bits.
        let (all, longest) = (k.copy_expr(end), k.int(i64::from(i32::MAX) - 2 * parts * step, span));
        let within = k.binary(Op::Le, all, longest, span);
        k.requires.push(within);
        let bytes = elem.bytes_of(((parts - 1) * rows * cols).unsigned_abs());
        let message = format!(
            "split-K: {parts} blocks of a cluster share each tile along the reduction; {bytes} bytes of distributed shared memory take the sums of {rows} x {cols}"
        );
        cx.remark_note(span, message, "`split_k 1` in the schedule leaves that out");
        Split { parts, part, step, reduction: end, acc, sums, span }
    }

    /// The bounds of a block's part along the reduction, in elements.
    pub(super) fn bounds(&self, k: &mut Kernel) -> (Expr, Expr) {
        let (all, again) = (k.copy_expr(self.reduction), k.copy_expr(self.reduction));
        let mut m = IndexBuilder { k, span: self.span, stmts: Vec::new() };
        let mut each = || {
            let copy = m.k.copy_expr(again);
            let steps = m.op(Op::CeilDiv, copy, self.step * self.parts);
            m.op(Op::Mul, steps, self.step)
        };
        let (own, beside) = (each(), each());
        let start = m.op(Op::Mul, self.part, own);
        let next = m.op(Op::Add, self.part, 1);
        let end = m.op(Op::Mul, next, beside);
        (start, m.op(Op::Min, all, end))
    }

    fn window(&self, k: &mut Kernel, at: Expr) -> Expr {
        let mut ranges = vec![Range::At(at)];
        for _ in 0..2 {
            ranges.push(Range::From { start: k.int(0, self.span), end: None });
        }
        k.expr(ExprData::View(View { base: self.sums, slot: None, ranges }), self.span)
    }

    /// The code after the products of a part; `rest` is the epilogue for a complete sum.
    pub(super) fn finish(&self, k: &mut Kernel, rest: Vec<Stmt>) -> Stmt {
        let span = self.span;
        let own = |k: &mut Kernel| {
            // All parts in front of the last one.
            let mut m = IndexBuilder { k, span, stmts: Vec::new() };
            if self.parts == 2 { m.k.int(0, span) } else { m.op(Op::Min, self.part, self.parts - 2) }
        };
        let at = own(k);
        let (src, dst) = (k.value_ref(self.acc, span), self.window(k, at));
        let leave = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::of_fragment() }, span);
        let index = own(k);
        let raise = k.stmt(StmtData::Signal { op: SignalOp::Raise, signals: self.sums, index }, span);
        let then = k.block(vec![leave, raise]);
        let mut whole = Vec::new();
        let mut src = k.value_ref(self.acc, span);
        for other in 0..self.parts - 1 {
            let index = k.int(other, span);
            whole.push(k.stmt(StmtData::Signal { op: SignalOp::Await, signals: self.sums, index }, span));
            let at = k.int(other, span);
            let more = self.window(k, at);
            src = k.binary(Op::Add, src, more, span);
        }
        let dst = k.value_ref(self.acc, span);
        whole.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::of_fragment() }, span));
        whole.extend(rest);
        let otherwise = Some(k.block(whole));
        let mut m = IndexBuilder { k, span, stmts: Vec::new() };
        let cond = m.compare(Op::Lt, self.part, self.parts - 1);
        k.stmt(StmtData::If { cond, then, otherwise }, span)
    }

    /// The statements of a block, after the names of its tile and part.
    pub(super) fn walk(&self, k: &mut Kernel, tiles: &Tiles, stmts: &[Stmt]) -> Vec<Stmt> {
        let span = tiles.written_at();
        let axis = tiles.first_axis().index;
        let name = |k: &mut Kernel, name: &str, op: Op| {
            let (block, by) = (k.value_ref(tiles.block(), span), k.int(self.parts, span));
            let init = k.binary(op, block, by, span);
            let value = k.value(name, span, ValueDef::Let);
            (value, k.stmt(StmtData::Let { value, init }, span))
        };
        let title = k.values[axis].name.clone();
        let (tile, of_tile) = name(k, &title, Op::Div);
        let (part, of_part) = name(k, "part", Op::Rem);
        let mut map = Map([(axis, Subst::Value(tile)), (self.part, Subst::Value(part))].into());
        let mut body = vec![of_tile, of_part];
        body.extend(stmts.iter().map(|&s| clone_stmt(k, s, &mut map)).collect::<Vec<_>>());
        body
    }

    /// The grid: this number of blocks for each tile along the first axis.
    pub(super) fn launch(&self, k: &mut Kernel, tiles: &Tiles) {
        let span = tiles.written_at();
        let (tile, by) = (k.copy_expr(tiles.first_axis().extent), k.int(self.parts, span));
        let extent = k.binary(Op::Mul, by, tile, span);
        k.grid[0] = GridAxis { index: tiles.block(), extent };
        k.schedule.cluster = vec![k.int(self.parts, span)];
        k.schedule.raster = None;
    }
}
