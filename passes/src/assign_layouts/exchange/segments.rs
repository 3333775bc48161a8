//! Scans of rows that several warps share: each warp scans a contiguous segment.
//!
//! ```text
//! let x_parts = reduce (x) along 1 parts (8, 9) with (a), (b) { give a + b }      // each warp, of its own segment
//! var x_parts_0 = reg f32[1, 4] layout .. = x_parts.0
//! copy x_parts_0 -> x_parts_0_shared
//! copy x_parts_0_shared -> x_parts_0_all                                          // every thread, of all
//! .. scan_sum(x, 1, parts (8, 9) totals x_parts_0_all) ..
//! ```
//!
//! The total of a segment is reduced in the order of its elements, so the result is bit for bit that of a scan within one warp.

use super::Work;
use super::tuples::{combined, parts_of};
use crate::Cx;
use crate::assign_layouts::graph::{Edge, Node};
use crate::assign_layouts::infer::across_warps;
use tilec_ir::combine::{Combine, How, type_literals};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Totals, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::rounding::computed_in;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::type_of;

impl Work<'_> {
    /// Gives warps that share scanned rows of numbers the totals of all segments, through shared memory.
    pub(super) fn scan_across_warps(
        &mut self,
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        (edge, leaf): (&Edge, Expr),
        layout: &RegLayout,
    ) {
        let node = &self.graph.nodes[edge.b];
        let Some((_, parts)) = across_warps(node, layout) else { return };
        let ExprData::Scan { op, axis, exclusive, arg, .. } = k.exprs[leaf] else {
            unreachable!("a node that is scanned is a scan")
        };
        let (at, span) = (self.stands_in(k, edge.at, leaf), k.expr_spans[leaf]);
        let elem = match type_of(k, arg).ok().and_then(|t| t.elem()) {
            Some(ElemRef::Known(elem)) => ElemRef::Known(computed_in(elem)),
            other => panic!("bug: elements of {other:?} are scanned"),
        };
        let [a, b] = ["a", "b"].map(|name| k.value(name, span, ValueDef::Element { elem }));
        let args = [a, b].map(|v| k.value_ref(v, span)).to_vec();
        let op_of_two = op.operator().expect("what is scanned has an operator");
        let both = k.expr(ExprData::Op { op: op_of_two, args }, span);
        let again = k.copy_expr(arg);
        type_literals(k, again, elem);
        let combine = Combine {
            operation: How::Scan { parts: 0 },
            axis,
            args: vec![again],
            front: Vec::new(),
            totals: Vec::new(),
            first: vec![a],
            second: vec![b],
            locals: Vec::new(),
            results: vec![both],
        };
        let name = k.value("scanned", span, ValueDef::Let);
        let all = self.totals_of(k, at, (name, combine), node, (layout, parts));
        let tile = k.value_ref(all[0], span);
        k.exprs[leaf] = ExprData::Scan { op, axis, exclusive, totals: Some(Totals { parts, tile }), arg };
        remark(cx, k, leaf, parts);
    }

    /// [`Self::scan_across_warps`] for tuples that a statement names.
    pub(super) fn tuples_in_segments(
        &mut self,
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        (v, at, e): (Value, Stmt, Expr),
        node: &Node,
        (layout, parts): (&RegLayout, u32),
    ) {
        let again = k.copy_expr(e);
        let copy = combined(k, again);
        let all = self.totals_of(k, at, (v, copy), node, (layout, parts));
        let span = k.expr_spans[e];
        let totals = all.into_iter().map(|all| k.value_ref(all, span)).collect();
        let combine = combined(k, e);
        k.exprs[e] = ExprData::Combine(Box::new(Combine { operation: How::Scan { parts }, totals, ..combine }));
        remark(cx, k, e, parts);
    }

    /// Tiles in which each thread has the totals of all segments of its rows.
    fn totals_of(
        &mut self,
        k: &mut Kernel,
        at: Stmt,
        named: (Value, Combine),
        node: &Node,
        (layout, parts): (&RegLayout, u32),
    ) -> Vec<Value> {
        let axis = node.axis.expect("what is scanned has a dimension");
        let partial = layout.reduction(&node.shape, axis, parts).expect("bug: a warp reduces its segment").layout;
        let mut shape = node.shape.clone();
        shape[axis] = 1 << parts.count_ones();
        let to =
            layout.of_totals(&node.shape, axis, parts.count_ones()).expect("bug: threads hold what segments come to");
        let (_, sources) = parts_of(k, at, named, parts, (&partial, &shape));
        self.gather_all(k, at, &sources, &to)
    }
}

fn remark(cx: &mut Cx<'_>, k: &Kernel, e: Expr, parts: u32) {
    let message = format!(
        "a row is scanned in {} segments, whose totals are exchanged between warps through shared memory",
        1u64 << parts.count_ones()
    );
    cx.remark(k.expr_spans[e], message);
}
