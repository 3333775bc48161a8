//! Windows of 4-bit elements that begin at any element, copied into buffers.
//!
//! ```text
//! copy W[k.., j * 64 + index(s[0])..] -> w   ->   copy W[k.., j * 64 + index(s[0])..] -> w_part,   copy w_part -> w
//! ```
//!
//! Threads store whole bytes, and a copy between memories loads and stores the same elements at once. If the window is
//! not known to begin and end at whole bytes, threads load single elements into registers, and store bytes from there.

use crate::Cx;
use crate::analysis::access_width::{elem_of, global_width_up_to};
use crate::analysis::facts::Facts;
use crate::analysis::views::copy_shape;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::types::TileTy;
use tilec_ir::typing::resolve_view;

/// Makes such copies go through registers, with a remark.
pub(super) fn through_registers(k: &mut Kernel, cx: &mut Cx<'_>) {
    if !k.values.values().any(|data| matches!(&data.def, ValueDef::Smem(t) if shares_bytes(t))) {
        return;
    }
    k.replace_statements(k.body, &mut |k, s, out| {
        if let StmtData::Copy { src, dst, .. } = k.stmts[s]
            && let Some(shape) = splits_bytes(k, s, (src, dst))
        {
            out.extend(split(k, cx, s, (src, dst), &shape));
        }
        out.push(s);
    });
}

fn shares_bytes(tile: &TileTy) -> bool {
    matches!(tile.elem, tilec_ir::types::ElemRef::Known(elem) if elem.size().whole_bytes().is_none())
}

/// The extents of a copy of a tensor's window to a buffer, if the window may begin or end inside a byte.
fn splits_bytes(k: &Kernel, s: Stmt, (src, dst): (Expr, Expr)) -> Option<Vec<u64>> {
    let StmtData::Copy { attrs, .. } = &k.stmts[s] else { return None };
    // How the elements move is open, apart from what is read.
    let read = CopyAttrs { check: attrs.check.clone(), fill: attrs.fill, when: attrs.when, ..CopyAttrs::default() };
    let (from, to) = (resolve_view(k, src)?, resolve_view(k, dst)?);
    let elem = elem_of(k, to.base)?;
    let alike = elem_of(k, from.base) == Some(elem) && elem.size().whole_bytes().is_none();
    let between = k.tensor_ty(from.base).is_some() && matches!(k.values[to.base].def, ValueDef::Smem(_));
    if *attrs != read || !alike || !between {
        return None;
    }
    let shape = copy_shape(k, src, dst)?;
    let whole = u64::from(elem.per(1));
    let width = global_width_up_to(k, &Facts::new(k), &from, &shape, (elem, whole));
    (u64::from(width.elems) < whole).then_some(shape)
}

/// The declaration of the register tile, and the copy that loads it; `s` then stores it.
fn split(k: &mut Kernel, cx: &mut Cx<'_>, s: Stmt, (src, dst): (Expr, Expr), shape: &[u64]) -> [Stmt; 2] {
    let span = k.stmt_spans[s];
    let (from, to) = (resolve_view(k, src).expect("a window"), resolve_view(k, dst).expect("a buffer").base);
    let message = format!(
        "the window of `{}` may begin or end inside a byte: it goes through registers, from which threads store whole bytes",
        k.values[from.base].name
    );
    cx.remark(span, message);
    let elem = k.tile_ty(to).expect("a buffer is a tile").elem;
    let shape = shape.iter().map(|&n| k.int(n.cast_signed(), span)).collect();
    let name = format!("{}_part", k.values[to].name);
    let tile = k.value(&name, span, ValueDef::Var(TileTy::registers(elem, shape, None)));
    let declared = k.stmt(StmtData::Var { value: tile, init: None }, span);
    let StmtData::Copy { attrs, .. } = &mut k.stmts[s] else { unreachable!("it is a copy") };
    let attrs = std::mem::take(attrs);
    let to_tile = k.value_ref(tile, span);
    let load = k.stmt(StmtData::Copy { src, dst: to_tile, attrs }, span);
    let loaded = k.value_ref(tile, span);
    k.stmts[s] = StmtData::Copy { src: loaded, dst, attrs: CopyAttrs::default() };
    [declared, load]
}
