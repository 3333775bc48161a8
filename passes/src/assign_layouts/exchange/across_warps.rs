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

use super::{Source, Work};
use crate::Cx;
use crate::analysis::uses::place_of;
use crate::assign_layouts::graph::Edge;
use crate::assign_layouts::infer::across_warps;
use crate::assign_layouts::own::{Own, tile, unrounded};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;

impl Work<'_> {
    /// Has warps that share rows of what is reduced put together what each has of them, by way of shared memory.
    pub(super) fn across_warps(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, of_b: &RegLayout) {
        let (b, Some(leaf)) = (&self.graph.nodes[edge.b], edge.leaf) else { return };
        let ExprData::Reduce { op, axis, parts: 0, arg } = k.exprs[leaf] else { return };
        let along = axis as usize;
        let Some((whole, parts)) = across_warps(b, of_b) else { return };
        let partial = of_b.reduction(&b.shape, along, parts).expect("bug: a warp reduces its part").layout;
        let at = self.stands_in(k, edge.at, leaf);
        k.exprs[leaf] = ExprData::Reduce { op, axis, parts, arg };
        let mut shape = b.shape.clone();
        shape[along] = 1 << parts.count_ones();
        let elem = unrounded(k, leaf);
        let value = self.own_tile(k, at, leaf, Own { elem, shape: &shape, layout: partial.clone(), what: "parts" });
        let to = whole.with_dimension(&shape, along).expect("bug: threads hold the parts of their rows");
        let source = Source { value, elem, shape, layout: partial };
        let all = self.gathered(k, at, &source, &to);
        let (span, name) = (k.expr_spans[leaf], k.values[value].name.clone());
        let warps = 1u64 << parts.count_ones();
        cx.remark(
            span,
            format!("`{name}`: {warps} warps put together what each has of a row, by way of shared memory"),
        );
        let arg = k.value_ref(all, span);
        k.exprs[leaf] = ExprData::Reduce { op, axis, parts: 0, arg };
    }

    /// A tile in the layout `to` with what a tile holds, by way of a buffer of its own: one less barrier than where others go through it.
    fn gathered(&mut self, k: &mut Kernel, at: Stmt, source: &Source, to: &RegLayout) -> Value {
        let (block, index) = place_of(k, at);
        let span = k.stmt_spans[at];
        let name = k.values[source.value].name.clone();
        let ty = tile(k, at, source.elem, &source.shape, None);
        let buffer = k.value(&format!("{name}_shared"), span, ValueDef::Smem(ty));
        let ty = tile(k, at, source.elem, &source.shape, Some(to.clone()));
        let all = k.value(&format!("{name}_all"), span, ValueDef::Var(ty));
        let (from, into) = (k.value_ref(source.value, span), k.value_ref(buffer, span));
        let (back, dst) = (k.value_ref(buffer, span), k.value_ref(all, span));
        let attrs = CopyAttrs::default();
        let stmts = [
            StmtData::Alloc { value: buffer, over: Vec::new() },
            StmtData::Copy { src: from, dst: into, attrs: attrs.clone() },
            StmtData::Var { value: all, init: None },
            StmtData::Copy { src: back, dst, attrs },
        ];
        let stmts: Vec<Stmt> = stmts.into_iter().map(|data| k.stmt(data, span)).collect();
        k.blocks[block].splice(index..index, stmts);
        self.buffers.push((block, buffer));
        all
    }
}
