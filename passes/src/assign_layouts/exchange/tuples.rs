//! Reductions of tuples (`reduce .. with`) across warps, and of operands in memory.
//!
//! ```text
//! let s_parts = reduce (x, p) along 1 parts (8, 9) with ..      // each warp, of its own elements
//! var s_parts_0 = reg f32[1, 4] layout .. = s_parts.0
//! ..
//! copy s_parts_0 -> s_parts_0_shared
//! copy s_parts_0_shared -> s_parts_0_all                       // every warp, of all
//! let s = reduce (s_parts_0_all, s_parts_1_all) along 1 with ..
//! ```

use super::{Moved, Source, Work};
use crate::Cx;
use crate::analysis::uses::place_of;
use crate::analysis::views::memory_views;
use crate::assign_layouts::graph::{Node, What};
use crate::assign_layouts::infer::across_warps;
use crate::assign_layouts::log2_shape;
use crate::assign_layouts::materialise::{NewTile, tile, unrounded};
use tilec_ir::combine::{Combine, How, component};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::fixed_shape;

impl Work<'_> {
    /// Combines, through shared memory, the partial tuples of rows that warps share.
    pub(super) fn tuples_across_warps(
        &mut self,
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        (v, node): (Value, &Node),
        layout: &RegLayout,
    ) {
        let Some((whole, parts)) = across_warps(node, layout).filter(|_| !self.put_together.contains(&v)) else {
            return;
        };
        self.put_together.push(v);
        let (at, e) = named(k, v);
        if node.scanned {
            return self.tuples_in_segments(k, cx, (v, at, e), node, (layout, parts));
        }
        let axis = node.axis.expect("what is reduced has a dimension");
        let partial = layout.reduction(&node.shape, axis, parts).expect("bug: a warp reduces its part").layout;
        let mut shape = node.shape.clone();
        shape[axis] = 1 << parts.count_ones();
        let to = whole.with_dimension(&shape, axis).expect("bug: threads hold the parts of their rows");
        let args = combined(k, e).args;
        // The components move, and the combining function is written twice.
        let again = k.copy_expr(e);
        let of_parts = Combine { args: args.clone(), ..combined(k, again) };
        let (by, sources) = parts_of(k, at, (v, of_parts), parts, (&partial, &shape));
        self.moved.extend(args.into_iter().map(|e| Moved { from: at, to: by, e }));
        let all = self.gather_all(k, at, &sources, &to);
        let span = k.expr_spans[e];
        let args = all.into_iter().map(|all| k.value_ref(all, span)).collect();
        let combine = combined(k, e);
        k.exprs[e] = ExprData::Combine(Box::new(Combine { args, ..combine }));
        let message = format!(
            "`{}`: {} parts of each row are combined across warps through shared memory",
            k.values[v].name,
            1u64 << parts.count_ones()
        );
        cx.remark(span, message);
    }

    /// [`Self::tuples_across_warps`] for tuples that nothing reads.
    pub(super) fn unread_tuples(&mut self, k: &mut Kernel, cx: &mut Cx<'_>) {
        let graph = self.graph;
        for (&v, &n) in &graph.of_tuples {
            if let Some(layout) = self.layout(n).cloned() {
                self.tuples_across_warps(k, cx, (v, &graph.nodes[n]), &layout);
            }
        }
    }

    /// Stores components of tuples with operands in memory in tiles of their own.
    pub(super) fn tuples_of_memory(&mut self, k: &mut Kernel) {
        for (n, node) in self.graph.nodes.iter().enumerate() {
            let (What::Reduced(e), Some(at), Some(layout)) = (node.what, node.at, self.layout(n).cloned()) else {
                continue;
            };
            let ExprData::Combine(combine) = &k.exprs[e] else { continue };
            for arg in combine.args.clone() {
                let Some(shape) = fixed_shape(k, arg).filter(|_| !memory_views(k, arg).is_empty()) else { continue };
                let Some(layout) = layout.repeated(&log2_shape(&node.shape), &log2_shape(&shape)) else { continue };
                let elem = unrounded(k, arg);
                self.own_tile(k, at, arg, NewTile { elem, shape: &shape, layout, what: "component", is_part: false });
            }
        }
    }
}

/// The statement that names tuples, and the tuples.
fn named(k: &Kernel, v: Value) -> (Stmt, Expr) {
    let names = |s: Stmt| match k.stmts[s] {
        StmtData::Let { value, init } if value == v => Some((s, init)),
        _ => None,
    };
    k.statements().into_iter().find_map(names).expect("tuples are named by a statement")
}

pub(super) fn combined(k: &Kernel, e: Expr) -> Combine {
    match &k.exprs[e] {
        ExprData::Combine(combine) => (**combine).clone(),
        other => panic!("bug: tuples are {other:?}"),
    }
}

/// Inserts in front of `at` the statement that reduces each part, and tiles with the results; `like`: the name from
/// which theirs are derived.
pub(super) fn parts_of(
    k: &mut Kernel,
    at: Stmt,
    (like, combine): (Value, Combine),
    parts: u32,
    (layout, shape): (&RegLayout, &[u64]),
) -> (Stmt, Vec<Source>) {
    let (span, name) = (k.stmt_spans[at], format!("{}_parts", k.values[like].name));
    let first = combine.first.clone();
    let whole = Combine { operation: How::Reduce { parts }, front: Vec::new(), ..combine };
    let init = k.expr(ExprData::Combine(Box::new(whole)), span);
    let tuples = k.value(&name, span, ValueDef::Let);
    let by = k.stmt(StmtData::Let { value: tuples, init }, span);
    let mut stmts = vec![by];
    let mut sources = Vec::new();
    for (i, component_of) in first.into_iter().enumerate() {
        let elem = component(k, component_of);
        let ty = tile(k, at, elem, shape, Some(layout.clone()));
        let value = k.value(&format!("{name}_{i}"), span, ValueDef::Var(ty));
        let of = k.value_ref(tuples, span);
        let part = k.expr(ExprData::Part { of, index: i as u32 }, span);
        stmts.push(k.stmt(StmtData::Var { value, init: Some(part) }, span));
        sources.push(Source { value, elem, shape: shape.to_vec(), layout: layout.clone() });
    }
    let (block, index) = place_of(k, at);
    k.blocks[block].splice(index..index, stmts);
    (by, sources)
}
