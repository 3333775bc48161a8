//! Gathered rows whose number is no power of two, and windows with a step, which gather rows, too.
//!
//! ```text
//! copy X[rows, ..] -> x           ->   var rows_ended = reg i32[7] = select(iota(rows, 0) < 7, rows, -1)
//!                                      copy X[rows_ended, ..] -> x
//! ```
//!
//! A row of number -1 does not exist: it reads as zero and is not written. Types of 8 and 16 bits become i32, in which
//! -1 is outside of every tensor.

use crate::analysis::uses::place_of;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ir::typing::{ResolvedView, type_of};

/// The dimension of the tile of numbers that has `n` of them, if they name dimension `w` of a window.
fn axis(k: &Kernel, n: u64, (view, w): (&ResolvedView, usize), rows: Expr) -> Option<usize> {
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

/// The numbers of `n` rows for the statement `s`, with none beyond them.
pub(super) fn ended(k: &mut Kernel, n: u64, s: Stmt, of: (&ResolvedView, usize), rows: Expr) -> Expr {
    let (Some(axis), Some(from)) = (axis(k, n, of, rows), elem(k, rows)) else {
        panic!("bug: the rows are in the way")
    };
    let ExprData::Ref(v) = k.exprs[rows] else { unreachable!("it has dimensions") };
    let span = k.expr_spans[rows];
    let (elem, none) = match from {
        Elem::U32 => (from, i64::from(u32::MAX)),
        // Literals are signed, so the largest u64 is written as -1.
        Elem::I32 | Elem::I64 | Elem::U64 => (from, -1),
        _ => (Elem::I32, -1),
    };
    let [like, own] = [k.value_ref(v, span), k.value_ref(v, span)];
    let place = k.expr(ExprData::Iota { axis: axis as u32, like }, span);
    let count = k.int(n.cast_signed(), span);
    let within = k.expr(ExprData::Op { op: Op::Lt, args: vec![place, count] }, span);
    let own = if elem == from { own } else { k.expr(ExprData::Cast { elem: ElemRef::Known(elem), arg: own }, span) };
    let none = k.int(none, span);
    let init = k.expr(ExprData::Op { op: Op::Select, args: vec![within, own, none] }, span);
    let shape = k.tile_ty(v).expect("it is a tile").shape.clone();
    let shape = shape.into_iter().map(|n| k.copy_expr(n)).collect();
    let name = format!("{}_ended", k.values[v].name);
    let tile = TileTy::registers(ElemRef::Known(elem), shape, None);
    let value = k.value(&name, span, ValueDef::Var(tile));
    let declared = k.stmt(StmtData::Var { value, init: Some(init) }, k.stmt_spans[s]);
    let (block, index) = place_of(k, s);
    k.blocks[block].insert(index, declared);
    k.value_ref(value, span)
}
