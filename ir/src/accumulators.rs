//! Products that are not in place.
//!
//! A product adds to a register tile, in place. The parser rewrites other forms: `o = mma(p, v, o * a)` becomes `o = o * a`, then
//! `o = mma(p, v, o)`; a `let` of a product becomes a `var`; and a product inside an expression gets a tile. So all other code sees only
//! products that add to the tile to which they are assigned.

use crate::diag::Span;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use crate::names::mentions;
use crate::typing::{Type, register_tile, resolve_view, type_of};

/// Has every product of a kernel add to the tile that it is assigned to.
pub(crate) fn write_out(k: &mut Kernel) {
    if k.exprs.values().any(|e| matches!(e, ExprData::Mma(_))) {
        k.replace_statements(k.body, &mut |k, s, out| {
            let behind = statement(k, s, out);
            out.push(s);
            out.extend(behind);
        });
    }
}

/// Appends the statements that precede `s` to `front`; returns `s` as rewritten.
fn statement(k: &mut Kernel, s: Stmt, front: &mut Vec<Stmt>) -> Vec<Stmt> {
    let span = k.stmt_spans[s];
    let (dst, src) = match k.stmts[s] {
        StmtData::Assign { dst, src } => (Some(dst), src),
        StmtData::Let { value, init } | StmtData::Var { value, init: Some(init) } => (Some(value), init),
        StmtData::Copy { src, .. } => (None, src),
        _ => return Vec::new(),
    };
    for child in k.children(src) {
        inside(k, child, span, front);
    }
    let ExprData::Mma(m) = k.exprs[src] else { return Vec::new() };
    let Some(dst) = dst.filter(|&dst| takes(k, s, dst, &m)) else {
        inside(k, src, span, front);
        return Vec::new();
    };
    if k.exprs[m.c] == ExprData::Ref(dst) {
        return Vec::new();
    }
    let mut behind = Vec::new();
    if let StmtData::Assign { .. } = k.stmts[s] {
        front.push(filled(k, dst, m.c, span));
    } else {
        if matches!(k.values[dst].def, ValueDef::Let) {
            k.values[dst].def = ValueDef::Var(register_tile(k, m.c).expect("a product that a name takes has a type"));
        }
        k.stmts[s] = StmtData::Var { value: dst, init: None };
        behind.push(filled(k, dst, m.c, span));
        behind.push(k.stmt(StmtData::Assign { dst, src }, span));
    }
    k.exprs[src] = adding(k, m, dst);
    behind
}

/// Whether a product can accumulate into `dst`, which the statement `s` assigns: a tile of the accumulator's type that
/// is not also an operand.
fn takes(k: &Kernel, s: Stmt, dst: Value, m: &Mma) -> bool {
    let Ok(Type::Tile(sums)) = type_of(k, m.c) else { return false };
    match k.stmts[s] {
        StmtData::Let { .. } => true,
        _ => {
            k.tile_ty(dst).is_some_and(|own| own.elem == sums.elem) && ![m.a, m.b].iter().any(|&e| mentions(k, e, dst))
        }
    }
}

/// Gives products inside an expression tiles of their own.
fn inside(k: &mut Kernel, e: Expr, span: Span, front: &mut Vec<Stmt>) {
    for child in k.children(e) {
        inside(k, child, span, front);
    }
    let ExprData::Mma(m) = k.exprs[e] else { return };
    // Untyped expressions are left to the verifier.
    let Some(own) = register_tile(k, m.c) else { return };
    let acc = k.value("product", k.expr_spans[e], ValueDef::Var(own));
    front.push(k.stmt(StmtData::Var { value: acc, init: None }, span));
    front.push(filled(k, acc, m.c, span));
    let src = adding(k, m, acc);
    let src = k.expr(src, k.expr_spans[e]);
    front.push(k.stmt(StmtData::Assign { dst: acc, src }, span));
    k.exprs[e] = ExprData::Ref(acc);
}

/// A product that adds to `acc`.
fn adding(k: &mut Kernel, m: Mma, acc: Value) -> ExprData {
    let c = k.value_ref(acc, k.expr_spans[m.c]);
    ExprData::Mma(Mma { c, ..m })
}

/// The statement that puts into `acc` what a product adds to.
fn filled(k: &mut Kernel, acc: Value, e: Expr, span: Span) -> Stmt {
    let data = match resolve_view(k, e) {
        Some(_) if !matches!(k.exprs[e], ExprData::Ref(_)) => {
            StmtData::Copy { src: e, dst: k.value_ref(acc, span), attrs: CopyAttrs::default() }
        }
        _ => StmtData::Assign { dst: acc, src: e },
    };
    k.stmt(data, span)
}
