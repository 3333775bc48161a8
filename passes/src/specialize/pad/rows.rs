//! Gathered rows whose number is no power of two, and windows with a step, which gather rows, too.
//!
//! ```text
//! copy X[rows, ..] -> x           ->   var rows_ended = reg i32[7] = select(iota(rows, 0) < 7, rows, -1)
//!                                      copy X[rows_ended, ..] -> x
//! ```
//!
//! A row of number -1 does not exist: it reads as zero and is not written. Types of 8 and 16 bits become i32, in which
//! -1 is outside of every tensor. Indices into a buffer name none of its padding, either:
//!
//! ```text
//! copy s[p] -> x                   ->   var p_within = reg i32[64] = select(p < 10, p, -1)
//!                                      copy s[p_within] -> x
//! ```

use super::extent::Extent;
use crate::analysis::uses::{all_stmts, place_of, stmt_exprs};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{ResolvedView, type_of};

/// The dimension of the tile of numbers that has `n` of them, if they name dimension `w` of a window.
pub(super) fn axis(k: &Kernel, n: u64, (view, w): (&ResolvedView, usize), rows: Expr) -> Option<usize> {
    let ExprData::Ref(v) = k.exprs[rows] else { return None };
    let shape = k.const_shape(&k.tile_ty(v)?.shape)?;
    if view.is_by_element(k, w, rows) {
        return (shape[w] == n).then_some(w);
    }
    shape.iter().position(|&own| own == n)
}

/// Whether the numbers of `n` rows, or of elements along a dimension `w` of a window, are those of a register tile.
pub(super) fn counts(k: &Kernel, n: u64, of: (&ResolvedView, usize), rows: Expr) -> bool {
    axis(k, n, of, rows).is_some() && elem(k, rows).is_some()
}

fn elem(k: &Kernel, rows: Expr) -> Option<Elem> {
    match type_of(k, rows).ok()?.elem()? {
        ElemRef::Known(elem) => Some(elem),
        ElemRef::Param(_) => None,
    }
}

/// Has indices into buffers that will be padded name no element of the padding. `padded`: the extents that are padded.
pub(super) fn stay_within_buffers(k: &mut Kernel, padded: &[Extent]) {
    for s in all_stmts(k, k.body) {
        for e in stmt_exprs(k, s) {
            gathered_inside(k, padded, s, e);
        }
    }
}

fn gathered_inside(k: &mut Kernel, padded: &[Extent], s: Stmt, e: Expr) {
    k.children(e).into_iter().for_each(|child| gathered_inside(k, padded, s, child));
    let ExprData::View(mut view) = k.exprs[e].clone() else { return };
    let ValueDef::Smem(tile) = &k.values[view.base].def else { return };
    let Some(shape) = k.const_shape(&tile.shape) else { return };
    for (range, n) in view.ranges.iter_mut().zip(shape) {
        if let Range::Gather(rows) = *range
            && let Some(extent) = padded.iter().find(|extent| extent.own == n)
        {
            *range = Range::Gather(within(k, extent.count, s, rows));
        }
    }
    k.exprs[e] = ExprData::View(view);
}

/// Indices for the statement `s`, -1 where they are not below `n`.
fn within(k: &mut Kernel, n: u64, s: Stmt, rows: Expr) -> Expr {
    let (ExprData::Ref(v), Some(from)) = (k.exprs[rows].clone(), elem(k, rows)) else {
        panic!("bug: elements are gathered by what is no variable")
    };
    let span = k.expr_spans[rows];
    let (elem, none) = none_of(from);
    let [compared, own] = [k.value_ref(v, span), k.value_ref(v, span)];
    let count = k.int(n.cast_signed(), span);
    let below = k.expr(ExprData::Op { op: Op::Lt, args: vec![compared, count] }, span);
    declared(k, s, (v, "within"), (below, own), (from, elem, none))
}

/// Numbers for the statement `s`, with none beyond the first `n` along `axis` of their tile.
pub(super) fn ended(k: &mut Kernel, n: u64, s: Stmt, axis: Option<usize>, rows: Expr) -> Expr {
    let (Some(axis), Some(from)) = (axis, elem(k, rows)) else { panic!("bug: the rows are in the way") };
    let ExprData::Ref(v) = k.exprs[rows] else { unreachable!("it has dimensions") };
    let span = k.expr_spans[rows];
    let (elem, none) = none_of(from);
    let [like, own] = [k.value_ref(v, span), k.value_ref(v, span)];
    let place = k.expr(ExprData::Iota { axis: axis as u32, like }, span);
    let count = k.int(n.cast_signed(), span);
    let within = k.expr(ExprData::Op { op: Op::Lt, args: vec![place, count] }, span);
    declared(k, s, (v, "ended"), (within, own), (from, elem, none))
}

/// The type in which an index that names nothing is written, and that index.
fn none_of(from: Elem) -> (Elem, i64) {
    match from {
        Elem::U32 => (from, i64::from(u32::MAX)),
        // Literals are signed, so the largest u64 is written as -1.
        Elem::I32 | Elem::I64 | Elem::U64 => (from, -1),
        _ => (Elem::I32, -1),
    }
}

/// A tile in front of the statement `s`, with the extents of `like`: `own` where `cond` holds, and `none` elsewhere.
fn declared(
    k: &mut Kernel,
    s: Stmt,
    (like, suffix): (Value, &str),
    (cond, own): (Expr, Expr),
    (from, elem, none): (Elem, Elem, i64),
) -> Expr {
    let span = k.expr_spans[own];
    let own = if elem == from { own } else { k.expr(ExprData::Cast { elem: ElemRef::Known(elem), arg: own }, span) };
    let none = k.int(none, span);
    let init = k.expr(ExprData::Op { op: Op::Select, args: vec![cond, own, none] }, span);
    let shape = k.tile_ty(like).expect("it is a tile").shape.clone();
    let shape = shape.into_iter().map(|n| k.copy_expr(n)).collect();
    let name = format!("{}_{suffix}", k.values[like].name);
    let tile = TileTy::registers(ElemRef::Known(elem), shape, None);
    let value = k.value(&name, span, ValueDef::Var(tile));
    let declared = k.stmt(StmtData::Var { value, init: Some(init) }, k.stmt_spans[s]);
    let (block, index) = place_of(k, s);
    k.blocks[block].insert(index, declared);
    k.value_ref(value, span)
}
