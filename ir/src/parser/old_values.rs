//! Old values of atomic copies: `copy 1 -> counter[0] add old ticket`.
//!
//! One thread combines each element with memory, and any number of threads may hold that element of `ticket`. So the old values go to a buffer of the block, which
//! the variable is loaded from: `write_out` makes the buffer, and writes `let old_values = smem i32[1]`, `copy 1 -> counter[0] add old old_values[0]`,
//! `copy old_values[0] -> ticket`.

use crate::attributes::CopyAttrs;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::types::TileTy;

/// Writes out the buffers.
pub(super) fn write_out(k: &mut Kernel) {
    k.replace_statements(k.body, &mut |k, s, out| {
        let variable = match k.stmts[s] {
            StmtData::Copy { attrs: CopyAttrs { old: Some(old), .. }, .. } => variable(k, old),
            _ => None,
        };
        match variable {
            Some(v) => through_buffer(k, s, v, out),
            None => out.push(s),
        }
    });
}

/// The register variable that an expression names.
fn variable(k: &Kernel, e: Expr) -> Option<Value> {
    match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Var(_)) => Some(v),
        _ => None,
    }
}

fn through_buffer(k: &mut Kernel, s: Stmt, v: Value, out: &mut Vec<Stmt>) {
    let span = k.stmt_spans[s];
    let ty = k.tile_ty(v).expect("a variable is a tile").clone();
    let mut shape: Vec<Expr> = ty.shape.iter().map(|&n| k.copy_expr(n)).collect();
    let scalar = shape.is_empty();
    if scalar {
        shape.push(k.int(1, span));
    }
    let tile = TileTy { reg_layout: None, partial: None, shape, ..ty };
    let buffer = k.value("old_values", span, ValueDef::Smem(tile));
    let place = |k: &mut Kernel| match scalar {
        true => {
            let first = k.int(0, span);
            k.expr(ExprData::View(View { base: buffer, slot: None, ranges: vec![Range::At(first)] }), span)
        }
        false => k.value_ref(buffer, span),
    };
    let (old, src) = (place(k), place(k));
    let StmtData::Copy { attrs, .. } = &mut k.stmts[s] else { unreachable!("an atomic copy") };
    let dst = attrs.old.replace(old).expect("it has old values");
    out.push(k.stmt(StmtData::Alloc { value: buffer, over: Vec::new() }, span));
    out.push(s);
    out.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
}
