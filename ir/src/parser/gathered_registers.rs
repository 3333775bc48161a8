//! Elements of register tiles that indices name: `copy x[rows, ..] -> y`.
//!
//! Threads hold a register tile in parts, and the elements that a thread wants are known at run time only. So the tile
//! goes through shared memory:
//!
//! ```text
//! let x_shared = smem f32[64, 32]
//! copy x -> x_shared
//! copy x_shared[rows, ..] -> y
//! ```

use super::window_notes::leaves;
use crate::attributes::CopyAttrs;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use crate::types::{Elem, ElemRef, TileTy};
use crate::typing::{Type, type_of};

/// Writes out the buffers.
pub(super) fn write_out(k: &mut Kernel) {
    k.replace_statements(k.body, &mut |k, s, out| {
        if let StmtData::Copy { src, .. } = k.stmts[s] {
            let mut found = Vec::new();
            leaves(k, src, &mut found);
            let mut buffers: Vec<(Value, Value)> = Vec::new();
            for e in found {
                through_shared_memory(k, (s, e), &mut buffers, out);
            }
        }
        out.push(s);
    });
}

/// Has the window `e` of the statement `s` be one of a buffer. `buffers`: register tiles, and the buffer of each.
fn through_shared_memory(k: &mut Kernel, (s, e): (Stmt, Expr), buffers: &mut Vec<(Value, Value)>, out: &mut Vec<Stmt>) {
    let e = match k.exprs[e] {
        ExprData::Transpose(arg) => arg,
        _ => e,
    };
    let ExprData::View(view) = k.exprs[e].clone() else { return };
    let ValueDef::Var(tile) = k.values[view.base].def.clone() else { return };
    let names = |at: Expr| matches!(type_of(k, at), Ok(Type::Tile(_)));
    let gathers = view.ranges.iter().any(|r| matches!(*r, Range::At(at) | Range::Gather(at) if names(at)));
    // Conditions and rounded factors have no form in memory.
    if !gathers || matches!(tile.elem, ElemRef::Known(Elem::Bool | Elem::TF32)) {
        return;
    }
    let known = buffers.iter().find(|(of, _)| *of == view.base).map(|&(_, buffer)| buffer);
    let buffer = known.unwrap_or_else(|| {
        let span = k.stmt_spans[s];
        let name = format!("{}_shared", k.values[view.base].name);
        let shape = tile.shape.iter().map(|&n| k.copy_expr(n)).collect();
        let ty = TileTy { reg_layout: None, partial: None, shape, ..tile };
        let buffer = k.value(&name, span, ValueDef::Smem(ty));
        let [src, dst] = [k.value_ref(view.base, span), k.value_ref(buffer, span)];
        out.push(k.stmt(StmtData::Alloc { value: buffer, over: Vec::new() }, span));
        out.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
        buffers.push((view.base, buffer));
        buffer
    });
    if let ExprData::View(view) = &mut k.exprs[e] {
        view.base = buffer;
    }
}
