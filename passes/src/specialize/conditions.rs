//! Conditions as numbers: conversions of conditions, and register tiles of type bool, which hold 0 or 1.
//!
//! `var p = reg bool[64, 64] = x > 0.5` becomes `var p = reg i8[64, 64] = cast<i8>(select(x > 0.5, 1, 0))`, and readers of `p` read `p != 0`. So threads exchange and copy such
//! tiles like all others. A `let` stays a condition, in predicate registers.

use crate::analysis::uses::{all_stmts, stmt_exprs};
use crate::bool_storage::{NUMBERS, as_condition, as_number, as_stored};
use cranelift_entity::EntitySet;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{resolve_view, type_of};

/// Rewrites conversions of conditions: `cast<f32>(x > 0)` is `cast<f32>(select(x > 0, 1, 0))`, and `cast<bool>(x)` is
/// `x != 0`.
pub(super) fn converted(k: &mut Kernel) {
    let mut seen = EntitySet::new();
    let mut roots = k.requires.clone();
    roots.extend(all_stmts(k, k.body).into_iter().flat_map(|s| stmt_exprs(k, s)));
    roots.into_iter().for_each(|root| conversions(k, root, &mut seen));
}

/// Rewrites those in an expression; expressions in `seen` are done.
fn conversions(k: &mut Kernel, e: Expr, seen: &mut EntitySet<Expr>) {
    if !seen.insert(e) {
        return;
    }
    k.children(e).into_iter().for_each(|child| conversions(k, child, seen));
    let ExprData::Cast { elem: to, arg } = k.exprs[e] else { return };
    let truth = ElemRef::Known(Elem::Bool);
    let from = type_of(k, arg).ok().and_then(|ty| ty.elem());
    let (of, into) = (from == Some(truth), to == truth);
    k.exprs[e] = match (of, into) {
        (false, false) => return,
        (true, true) => k.exprs[arg].clone(),
        (true, false) => ExprData::Cast { elem: to, arg: as_number(k, arg) },
        (false, true) => {
            let condition = as_condition(k, arg);
            k.exprs[condition].clone()
        }
    };
}

/// Rewrites register tiles with extents that hold conditions.
pub(super) fn store_as_numbers(k: &mut Kernel) {
    let mut tiles = EntitySet::new();
    for (v, data) in k.values.iter() {
        if let ValueDef::Var(t) = &data.def
            && t.elem == ElemRef::Known(Elem::Bool)
            && !t.shape.is_empty()
        {
            tiles.insert(v);
        }
    }
    if tiles.is_empty() {
        return;
    }
    let mut seen = EntitySet::new();
    for s in all_stmts(k, k.body) {
        let (to, src) = match k.stmts[s] {
            StmtData::Var { value, init: Some(src) } => (Some(value), src),
            StmtData::Assign { dst, src } => (Some(dst), src),
            StmtData::Copy { src, dst, .. } => (resolve_view(k, dst).map(|to| to.base), src),
            _ => {
                stmt_exprs(k, s).into_iter().for_each(|e| reads(k, &tiles, e, &mut seen));
                continue;
            }
        };
        let stores = to.is_some_and(|v| tiles.contains(v));
        let moves = matches!(k.stmts[s], StmtData::Copy { .. }) && names(k, &tiles, moved(k, src));
        if stores && moves {
            continue;
        }
        reads(k, &tiles, src, &mut seen);
        if stores {
            let held = as_stored(k, src);
            match &mut k.stmts[s] {
                StmtData::Var { init: Some(e), .. }
                | StmtData::Assign { src: e, .. }
                | StmtData::Copy { src: e, .. } => {
                    *e = held;
                }
                _ => unreachable!("a statement that stores to a tile"),
            }
        }
    }
    for v in k.values.keys().filter(|&v| tiles.contains(v)).collect::<Vec<_>>() {
        k.tile_ty_mut(v).expect("it is a tile").elem = NUMBERS;
    }
}

/// The tile or window that a copy moves in another shape or order.
fn moved(k: &Kernel, src: Expr) -> Expr {
    match k.exprs[src] {
        ExprData::Reshape { arg, .. } | ExprData::Permute { arg, .. } => arg,
        _ => src,
    }
}

/// Whether an expression is such a tile, a window of one, or its transpose.
fn names(k: &Kernel, tiles: &EntitySet<Value>, e: Expr) -> bool {
    resolve_view(k, e).is_some_and(|view| tiles.contains(view.base))
}

/// Makes an expression compare the numbers in these tiles.
fn reads(k: &mut Kernel, tiles: &EntitySet<Value>, e: Expr, seen: &mut EntitySet<Expr>) {
    // `iota` only uses the extents of a tile.
    if seen.contains(e) || matches!(k.exprs[e], ExprData::Iota { .. }) {
        return;
    }
    if !names(k, tiles, e) {
        return k.children(e).into_iter().for_each(|child| reads(k, tiles, child, seen));
    }
    let number = k.expr(k.exprs[e].clone(), k.expr_spans[e]);
    let condition = as_condition(k, number);
    k.exprs[e] = k.exprs[condition].clone();
    seen.insert(e);
}
