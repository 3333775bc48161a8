//! Elements that several blocks load: how often, along which axis of the grid, and because of which tile.

use super::loop_copies::depends_on;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, GridAxis, Kernel, StmtData};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};
use tilec_passes::choose::{Prediction, known_int};

/// The loads of each tensor that blocks along an axis of the grid share, those that are repeated most in front.
pub(crate) fn by_blocks(k: &Kernel, p: &Prediction) -> Vec<(Span, String)> {
    let mut found: Vec<(i64, Span, String)> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::Copy { src, .. } = k.stmts[s] else { return };
        // Where indices from memory say which elements these are, blocks may load other ones.
        let known = |view: &ResolvedView| !view.is_gathered() && !starts_in_memory(k, view);
        let Some(view) = resolve_view(k, src).filter(|view| k.tensor_ty(view.base).is_some() && known(view)) else {
            return;
        };
        let starts: Vec<Expr> = view.dims.iter().flat_map(ViewDim::starts).copied().collect();
        let moves = |axis: &GridAxis| starts.iter().any(|&e| moves_with(k, e, axis.index));
        for axis in k.grid.iter().filter(|axis| !moves(axis)) {
            let Some(count) = known_int(k, axis.extent, &p.sizes).filter(|&n| n > 1) else { continue };
            let (index, tensor) = (&k.values[axis.index].name, &k.values[view.base].name);
            let tiles = tile(k, axis).map_or(String::new(), |n| {
                format!(", whose tiles have {n} elements: with twice as many it is half as often")
            });
            let text = format!(
                "each element of `{tensor}` is loaded {count} times, once by each block along `{index}`{tiles}"
            );
            if found.iter().all(|(.., other)| *other != text) {
                found.push((count, k.stmt_spans[s], text));
            }
        }
    });
    found.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    found.into_iter().map(|(_, span, text)| (span, text)).collect()
}

/// Whether an index moves with an axis of the grid, also if the loop that counts it begins at a place of the block's own.
fn moves_with(k: &Kernel, e: Expr, axis: Value) -> bool {
    depends_on(k, e, axis)
        || k.statements().into_iter().any(|s| match k.stmts[s] {
            StmtData::For { var, start, .. } => depends_on(k, e, var) && moves_with(k, start, axis),
            _ => false,
        })
}

/// Whether a window begins at an index that is read from memory.
fn starts_in_memory(k: &Kernel, view: &ResolvedView) -> bool {
    let read = |e: Expr| matches!(k.exprs[e], ExprData::Index(_));
    view.dims.iter().flat_map(ViewDim::starts).any(|&e| k.has_part(e, read))
}

/// The extent of the tiles that an axis counts.
fn tile(k: &Kernel, axis: &GridAxis) -> Option<i64> {
    match &k.exprs[meaning(k, axis.extent)] {
        ExprData::Op { op: Op::CeilDiv | Op::Div, args } => k.as_int(args[1]),
        _ => None,
    }
}
