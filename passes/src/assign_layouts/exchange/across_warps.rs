//! Reductions of rows that several warps share.
//!
//! ```text
//! var parts = reg f32[1, 8] layout ((32,8),1):((0,1),0) = sum(x, 1, parts (7, 8, 9))      // each warp, of its own elements
//! let parts_shared = smem f32[1, 8]
//! copy parts -> parts_shared
//! var parts_all = reg f32[1, 8] layout ((2,128),4):((4,0),1)
//! copy parts_shared -> parts_all                                                        // every warp, of all
//! .. sum(parts_all, 1) ..
//! ```
//!
//! In a scan each warp has a contiguous segment, and every warp reads the totals of all segments ([`super::segments`]).

use super::{Source, Work};
use crate::Cx;
use crate::analysis::uses::place_of;
use crate::assign_layouts::graph::Edge;
use crate::assign_layouts::infer::across_warps;
use crate::assign_layouts::materialise::{NewTile, keep_type, named, tile, unrounded};
use crate::assign_layouts::storage_types::{in_memory, loaded, stored};
use crate::bool_storage::{as_condition, as_number};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::type_of;

/// A row that warps share, and its reduction.
struct Shared {
    op: ReduceOp,
    axis: u32,
    /// The thread bits that distinguish the parts of a row.
    parts: u32,
    /// The reduced expression.
    arg: Expr,
    shape: Vec<u64>,
    /// The layout in which each warp has its part, and the layout with all parts.
    layouts: [RegLayout; 2],
}

/// The reduction or scan inside a conversion that keeps the type of a name whose operand now has a tile of another
/// type.
fn unrounded_reduction(k: &Kernel, leaf: Expr) -> Expr {
    match k.exprs[leaf] {
        ExprData::Cast { arg, .. } if matches!(k.exprs[arg], ExprData::Reduce { .. } | ExprData::Scan { .. }) => arg,
        _ => leaf,
    }
}

impl Work<'_> {
    /// Combines, through shared memory, the parts of a reduced row that warps share.
    pub(super) fn across_warps(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, of_b: &RegLayout) {
        let (b, Some(leaf)) = (&self.graph.nodes[edge.b], edge.leaf) else { return };
        if let Some((v, _)) = k.part_of(leaf) {
            return self.tuples_across_warps(k, cx, (v, b), of_b);
        }
        let leaf = unrounded_reduction(k, leaf);
        if matches!(k.exprs[leaf], ExprData::Scan { .. }) {
            return self.scan_across_warps(k, cx, (edge, leaf), of_b);
        }
        let ExprData::Reduce { op, axis, parts: 0, arg } = k.exprs[leaf] else { return };
        let (along, at) = (axis as usize, self.stands_in(k, edge.at, leaf));
        let Some((whole, parts)) = across_warps(b, of_b) else { return };
        let partial = of_b.reduction(&b.shape, along, parts).expect("bug: a warp reduces its part").layout;
        let mut shape = b.shape.clone();
        shape[along] = 1 << parts.count_ones();
        let to = whole.with_dimension(&shape, along).expect("bug: threads hold the parts of their rows");
        if op.is_place() && !matches!(k.exprs[arg], ExprData::Ref(_)) {
            // The partial maximum is read twice, so it needs a tile.
            let elem = unrounded(k, arg);
            self.own_tile(
                k,
                at,
                arg,
                NewTile { elem, shape: &b.shape, layout: of_b.clone(), what: "operand", is_part: false },
            );
        }
        let shared = Shared { op, axis, parts, arg, shape, layouts: [partial, to] };
        let span = k.expr_spans[leaf];
        // A part has another type than the whole, so the name is chosen first.
        let named = named(k, at);
        let name = match op {
            _ if op.is_place() => self.place_across_warps(k, at, leaf, &shared),
            _ if op.is_of_truths() => self.truth_across_warps(k, at, leaf, &shared),
            _ => {
                k.exprs[leaf] = ExprData::Reduce { op, axis, parts, arg };
                let (name, all) = self.parts_of(k, at, leaf, &shared);
                let arg = k.value_ref(all, span);
                k.exprs[leaf] = ExprData::Reduce { op, axis, parts: 0, arg };
                name
            }
        };
        keep_type(k, named);
        let warps = 1u64 << parts.count_ones();
        cx.remark(span, format!("`{name}`: {warps} warps combine their partial rows through shared memory"));
    }

    /// Stores each warp's part of the result in a tile with the returned name, and exchanges it to a tile with all
    /// parts.
    fn parts_of(&mut self, k: &mut Kernel, at: Stmt, part: Expr, shared: &Shared) -> (String, Value) {
        let [partial, to] = &shared.layouts;
        let elem = unrounded(k, part);
        let own = NewTile { elem, shape: &shared.shape, layout: partial.clone(), what: "parts", is_part: true };
        let value = self.own_tile(k, at, part, own);
        let source = Source { value, elem, shape: shared.shape.clone(), layout: partial.clone() };
        let all = self.gather(k, at, &source, to);
        (k.values[value].name.clone(), all)
    }

    /// `any(select(any(c, 1, parts (7)), 1, 0) != 0, 1)`: conditions are exchanged as numbers.
    fn truth_across_warps(&mut self, k: &mut Kernel, at: Stmt, leaf: Expr, shared: &Shared) -> String {
        let &Shared { op, axis, parts, arg, .. } = shared;
        let span = k.expr_spans[leaf];
        let part = k.expr(ExprData::Reduce { op, axis, parts, arg }, span);
        let number = as_number(k, part);
        let truth = as_condition(k, number);
        let (name, all) = self.parts_of(k, at, number, shared);
        k.exprs[number] = ExprData::Ref(all);
        k.exprs[leaf] = ExprData::Reduce { op, axis, parts: 0, arg: truth };
        name
    }

    /// Each warp finds the best element of its part and its index. The result is the smallest index among the best
    /// ones: `minimum(select(b == maximum(b, 1), p, 2147483647), 1)`. For floats, NaN is the best.
    fn place_across_warps(&mut self, k: &mut Kernel, at: Stmt, leaf: Expr, shared: &Shared) -> String {
        let &Shared { op, axis, parts, arg, .. } = shared;
        let span = k.expr_spans[leaf];
        let extreme = if op == ReduceOp::ArgMax { ReduceOp::Maximum } else { ReduceOp::Minimum };
        let is_float = matches!(type_of(k, arg).ok().and_then(|t| t.elem()), Some(ElemRef::Known(e)) if e.is_float());
        let operator = |k: &mut Kernel, op: Op, args: Vec<Expr>| k.expr(ExprData::Op { op, args }, span);
        let reduce = |k: &mut Kernel, op, parts, arg: Expr| k.expr(ExprData::Reduce { op, axis, parts, arg }, span);
        let again = |k: &mut Kernel, e: Expr| k.expr(k.exprs[e].clone(), span);
        let is_nan = |k: &mut Kernel, e: Expr| {
            let (x, y) = (again(k, e), again(k, e));
            operator(k, Op::Ne, vec![x, y])
        };
        let place = reduce(k, op, parts, arg);
        let own = again(k, arg);
        let mut best = reduce(k, extreme, parts, own);
        if is_float {
            let nan = is_nan(k, arg);
            let nan = reduce(k, ReduceOp::Any, parts, nan);
            let number = k.expr(ExprData::Float(f64::NAN.to_bits()), span);
            best = operator(k, Op::Select, vec![nan, number, best]);
        }
        let (name, bests) = self.parts_of(k, at, best, shared);
        let (_, places) = self.parts_of(k, at, place, shared);
        let [own, other, bests] = [(); 3].map(|()| k.value_ref(bests, span));
        let whole = reduce(k, extreme, 0, own);
        let mut is_best = operator(k, Op::Eq, vec![other, whole]);
        if is_float {
            let (nan, some) = (is_nan(k, bests), is_nan(k, bests));
            let some = reduce(k, ReduceOp::Any, 0, some);
            let none = operator(k, Op::Not, vec![some]);
            let number = operator(k, Op::And, vec![is_best, none]);
            is_best = operator(k, Op::Or, vec![nan, number]);
        }
        let (places, none) = (k.value_ref(places, span), k.int(i64::from(i32::MAX), span));
        let arg = operator(k, Op::Select, vec![is_best, places, none]);
        k.exprs[leaf] = ExprData::Reduce { op: ReduceOp::Minimum, axis, parts: 0, arg };
        name
    }

    /// A tile in the layout `to` with the elements of `source`, through a buffer of its own, which saves a barrier.
    fn gather(&mut self, k: &mut Kernel, at: Stmt, source: &Source, to: &RegLayout) -> Value {
        self.gather_all(k, at, std::slice::from_ref(source), to)[0]
    }

    /// [`Self::gather`] for several tiles, with one barrier between all stores and all loads.
    pub(super) fn gather_all(&mut self, k: &mut Kernel, at: Stmt, sources: &[Source], to: &RegLayout) -> Vec<Value> {
        let (block, index) = place_of(k, at);
        let span = k.stmt_spans[at];
        let (mut first, mut then, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for source in sources {
            let name = k.values[source.value].name.clone();
            let ty = tile(k, at, in_memory(source.elem), &source.shape, None);
            let buffer = k.value(&format!("{name}_shared"), span, ValueDef::Smem(ty));
            let ty = tile(k, at, source.elem, &source.shape, Some(to.clone()));
            let all = k.value(&format!("{name}_all"), span, ValueDef::Var(ty));
            let (from, into) = (k.value_ref(source.value, span), k.value_ref(buffer, span));
            let (back, dst) = (k.value_ref(buffer, span), k.value_ref(all, span));
            let (from, back) = (stored(k, source.elem, from), loaded(k, source.elem, back));
            let attrs = CopyAttrs::default();
            first.push(StmtData::Alloc { value: buffer, over: Vec::new() });
            first.push(StmtData::Copy { src: from, dst: into, attrs: attrs.clone() });
            then.push(StmtData::Var { value: all, init: None });
            then.push(StmtData::Copy { src: back, dst, attrs });
            self.buffers.push((block, buffer));
            found.push(all);
        }
        let [stores, loads] = [first, then].map(|of| of.into_iter().map(|data| k.stmt(data, span)).collect::<Vec<_>>());
        k.blocks[block].splice(index..index, stores.into_iter().chain(loads.iter().copied()));
        self.loads.push(loads);
        found
    }
}
