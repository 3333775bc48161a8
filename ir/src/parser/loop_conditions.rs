//! Conditions of loops that are computed of tiles: `while any(x > 0.0, 1) { .. }`, `while m[0, 0] > 3.0 { .. }`.
//!
//! The condition of a loop is asked before each iteration, so it reads variables. `write_out` computes each part that
//! has elements, of register tiles or of shared memory, into a variable. It does so before the loop and at the end of
//! its body:
//!
//! ```text
//! var truth = reg bool[1, 1] = any(x > 0.0, 1)
//! var goes_on = reg i32[]
//! copy select(truth[0, 0], 1, 0) -> goes_on
//! while goes_on != 0 { ..  truth = any(x > 0.0, 1)  copy select(truth[0, 0], 1, 0) -> goes_on }
//! ```
//!
//! Parts that read sizes and variables stay in the condition. Conditions of branches are in `crate::index_values`.

use super::window_notes::{Notes, rank, window};
use crate::attributes::CopyAttrs;
use crate::diag::Span;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::ops::{Domain, Op};
use crate::types::{Elem, ElemRef, TileTy};
use crate::typing::{Extent, Type, type_of};

/// Has the conditions of loops read variables.
pub(super) fn write_out(k: &mut Kernel, notes: &mut Notes) {
    k.replace_statements(k.body, &mut |k, s, out| {
        if let StmtData::For { cond: Some(cond), body, .. } = k.stmts[s] {
            let mut after = Vec::new();
            part(k, notes, cond, &mut (out, &mut after));
            k.blocks[body].append(&mut after);
        }
        out.push(s);
    });
}

/// A part of a condition. The statements are those in front of the loop, and those at the end of its body.
fn part(k: &mut Kernel, notes: &mut Notes, e: Expr, to: &mut (&mut Vec<Stmt>, &mut Vec<Stmt>)) {
    if let ExprData::Op { op, args } = k.exprs[e].clone()
        && op.domain() == Domain::Logic
    {
        return args.into_iter().for_each(|arg| part(k, notes, arg, to));
    }
    let n = rank(k, notes, e);
    if n == 0 && !has_element(k, e) {
        return;
    }
    // For the verifier to say.
    if (0..n).any(|d| !is_one(k, notes, e, d)) {
        return;
    }
    let span = k.expr_spans[e];
    let own = k.exprs[e].clone();
    let value = k.expr(own, span);
    move_notes(notes, e, value);
    let again = copied(k, notes, value);
    let number =
        k.value("goes_on", span, ValueDef::Var(TileTy::registers(ElemRef::Known(Elem::I32), Vec::new(), None)));
    to.0.push(k.stmt(StmtData::Var { value: number, init: None }, span));
    let of_tile = (n > 0).then(|| {
        let shape = (0..n).map(|_| k.int(1, span)).collect();
        k.value("truth", span, ValueDef::Var(TileTy::registers(ElemRef::Known(Elem::Bool), shape, None)))
    });
    for (value, out, first) in [(value, &mut *to.0, true), (again, &mut *to.1, false)] {
        let truth = match of_tile {
            Some(base) => {
                out.push(match first {
                    true => k.stmt(StmtData::Var { value: base, init: Some(value) }, span),
                    false => k.stmt(StmtData::Assign { dst: base, src: value }, span),
                });
                let ranges = (0..n).map(|_| Range::At(k.int(0, span))).collect();
                k.expr(ExprData::View(View { base, slot: None, ranges }), span)
            }
            None => value,
        };
        out.push(counted(k, truth, number, span));
    }
    let (number, none) = (k.value_ref(number, span), k.int(0, span));
    k.exprs[e] = ExprData::Op { op: Op::Ne, args: vec![number, none] };
}

/// `copy select(truth, 1, 0) -> number`.
fn counted(k: &mut Kernel, truth: Expr, number: Value, span: Span) -> Stmt {
    let args = vec![truth, k.int(1, span), k.int(0, span)];
    let src = k.expr(ExprData::Op { op: Op::Select, args }, span);
    let dst = k.value_ref(number, span);
    k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span)
}

/// Whether `e` reads an element of a register tile or of shared memory.
fn has_element(k: &Kernel, e: Expr) -> bool {
    let own = match &k.exprs[e] {
        ExprData::View(view) if !view.ranges.is_empty() => {
            matches!(k.values[view.base].def, ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Let)
                && k.tensor_ty(view.base).is_none()
        }
        _ => false,
    };
    own || k.children(e).into_iter().any(|child| has_element(k, child))
}

/// Whether the extent along dimension `d` is 1. Dimensions count from the last, as operands align.
fn is_one(k: &Kernel, notes: &Notes, e: Expr, d: usize) -> bool {
    let Some(at) = rank(k, notes, e).checked_sub(1 + d) else { return true };
    if let Ok(Type::Tile(tile)) = type_of(k, e) {
        return tile.shape.get(at).is_none_or(|&n| n == Extent::Known(1));
    }
    match &k.exprs[e] {
        ExprData::Op { args, .. } => args.iter().all(|&arg| is_one(k, notes, arg, d)),
        ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } => is_one(k, notes, *arg, d),
        ExprData::Reduce { axis, .. } if *axis as usize == at => true,
        ExprData::Reduce { arg, .. } => is_one(k, notes, *arg, d),
        _ => window(k, notes, e).is_some_and(|w| w.dims[at].given_extent() == Some(Extent::Known(1))),
    }
}

fn move_notes(notes: &mut Notes, from: Expr, to: Expr) {
    if let Some(said) = notes.remove(&from) {
        notes.insert(to, said);
    }
}

/// A copy of an expression, with the notes on its windows.
fn copied(k: &mut Kernel, notes: &mut Notes, e: Expr) -> Expr {
    let copy = k.copy_expr(e);
    let mut pairs = vec![(e, copy)];
    while let Some((e, copy)) = pairs.pop() {
        if let Some(said) = notes.get(&e).cloned() {
            notes.insert(copy, said);
        }
        pairs.extend(k.children(e).into_iter().zip(k.children(copy)));
    }
    copy
}
