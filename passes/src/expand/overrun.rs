//! Statements of a pipelined loop that may run past the last iteration, and conditions for the others.

use super::body::Body;
use crate::analysis::bounds::outside_past;
use crate::analysis::content_liveness::read_behind;
use crate::analysis::uses::mentions;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Slot, StmtData, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::Op;
use tilec_ir::typing::resolve_view;

/// Whether the copies read nothing past the end of the loop except addresses of the first tile or outside of the
/// tensors, and there is a first tile.
pub(super) fn harmless(k: &Kernel, body: &Body, fills: &[Stmt]) -> bool {
    let [start, end, _] = body.bounds;
    k.as_int(start) == Some(0)
        && begins(k, body)
        && fills.iter().all(|&s| {
            let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { unreachable!("copies fill slots") };
            let view = resolve_view(k, src).expect("what fills a slot is a window");
            body.open && !mentions(k, src, body.var) || attrs.check.is_none() && outside_past(k, &view, body.var, end)
        })
}

/// Checks that the stages of an open loop in front of the last one only move tiles, and to no registers that are read
/// after the loop.
pub(super) fn only_moves(k: &Kernel, body: &Body) -> Result<(), Box<Diagnostic>> {
    let early = body.order.iter().filter(|&&(_, stage)| stage < body.last).map(|&(s, _)| s);
    for s in early {
        let late = written_register(k, s).filter(|&v| read_behind(k, body.at, v));
        let (message, note) = match late {
            _ if !moves(k, s) => (
                "this statement runs past the end of the loop, which is open".to_owned(),
                "in front of the last stage an open loop copies tiles into slots and registers, no more",
            ),
            Some(v) => (
                format!("`{}` is read after the loop, which is open", k.values[v].name),
                "past the end of the loop something else is copied into it: copy it in the last stage",
            ),
            None => continue,
        };
        return Err(Box::new(Diagnostic::error(codes::BAD_PLAN, k.stmt_spans[s], message).with_note(note)));
    }
    Ok(())
}

/// Whether a loop only moves tiles, which its first stage loads, and adds their products: tiles past its end are zeros
/// and add nothing.
pub(super) fn only_adds(k: &Kernel, body: &Body) -> bool {
    body.order.iter().all(|&(s, stage)| adds(k, s) && (stage == 0 || !fetches(k, s)))
}

/// Whether a statement copies a window of a tensor.
pub(super) fn fetches(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Copy { src, .. } = k.stmts[s] else { return false };
    resolve_view(k, src).is_some_and(|view| k.tensor_ty(view.base).is_some())
}

fn adds(k: &Kernel, s: Stmt) -> bool {
    let plain = |e: Expr| matches!(k.exprs[e], ExprData::Ref(_)) || resolve_view(k, e).is_some();
    match k.stmts[s] {
        StmtData::Copy { src, .. } => plain(src) && moves(k, s),
        StmtData::For { body, .. } => k.blocks[body].iter().all(|&s| adds(k, s)),
        StmtData::Assign { dst, src } => match &k.exprs[src] {
            ExprData::Mma(product) => matches!(k.exprs[product.c], ExprData::Ref(c) if c == dst),
            _ => false,
        },
        _ => moves(k, s),
    }
}

/// Whether a statement only copies tiles to slots and registers.
fn moves(k: &Kernel, s: Stmt) -> bool {
    match &k.stmts[s] {
        StmtData::Channel { .. } | StmtData::Let { .. } | StmtData::Var { init: None, .. } => true,
        StmtData::Copy { dst, attrs, .. } => {
            let slot = resolve_view(k, *dst).is_some_and(|v| v.slot == Some(Slot::Put));
            attrs.reduce.is_none() && (slot || written_register(k, s).is_some())
        }
        _ => false,
    }
}

/// The register tile to which a statement copies.
fn written_register(k: &Kernel, s: Stmt) -> Option<Value> {
    let StmtData::Copy { dst, .. } = k.stmts[s] else { return None };
    let base = resolve_view(k, dst)?.base;
    matches!(k.values[base].def, ValueDef::Var(_)).then_some(base)
}

/// Whether a loop certainly has an iteration: sizes are at least 1.
pub(super) fn begins(k: &Kernel, body: &Body) -> bool {
    let [start, end, _] = body.bounds;
    k.as_int(meaning(k, start)).zip(least(k, end)).is_some_and(|(start, least)| start < least)
}

/// A lower bound of an index: of a literal, a size, or a product of these.
fn least(k: &Kernel, e: Expr) -> Option<i64> {
    let e = meaning(k, e);
    match &k.exprs[e] {
        ExprData::Int(x) => Some(*x),
        ExprData::Ref(v) => matches!(k.values[*v].def, ValueDef::Size).then_some(1),
        ExprData::Op { op: Op::Mul, args } => {
            let factors = args.iter().map(|&a| least(k, a).filter(|&n| n >= 1));
            factors.reduce(|a, b| a?.checked_mul(b?)).flatten()
        }
        _ => None,
    }
}
