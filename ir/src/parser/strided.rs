//! Windows with a step: `X[i * 64.. step 2, ..]` has every second row.
//!
//! A copy of such a window gathers rows with computed indices. For each dimension with a step, `write_out` inserts a
//! tile of indices in front of the statement: `rows = i * 64 + 2 * iota(rows, 0)`. Indices have 64 bits, so they do not
//! wrap around. Indices past the end of the range or of the tensor select nothing, as in any gathered window.

use super::window_notes::{Notes, leaves, window};
use crate::attributes::CopyAttrs;
use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Expr, Stmt, Value};
use crate::index_values::{is_of_value, of_indices};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::loop_ends::{LoopEnds, implied, is_infinite};
use crate::ops::Op;
use crate::types::{Elem, ElemRef, TileTy};
use crate::typing::{Extent, Type, type_of};
use std::collections::BTreeSet;

/// Writes out the numbers of the rows; returns what is wrong with windows that have steps.
pub(super) fn write_out(k: &mut Kernel, notes: &Notes) -> Vec<Diagnostic> {
    let mut open: BTreeSet<Expr> = BTreeSet::new();
    for (&e, said) in notes {
        if said.iter().any(|said| said.step.is_some()) {
            open.insert(e);
        }
    }
    let mut wrong = Vec::new();
    if open.is_empty() {
        return wrong;
    }
    let loops = LoopEnds::of(k);
    k.replace_statements(k.body, &mut |k, s, out| {
        out.extend(as_copy(k, s, &open));
        if let StmtData::Copy { src, dst, .. } = k.stmts[s] {
            let mut found = Vec::new();
            leaves(k, src, &mut found);
            leaves(k, dst, &mut found);
            for e in found {
                let (seen, at) = match k.exprs[e] {
                    ExprData::Transpose(arg) => (arg, Some(1)),
                    _ => (e, None),
                };
                if open.remove(&seen) {
                    match rows(k, notes, &loops, (src, dst), seen, at) {
                        Ok(front) => out.extend(front),
                        Err(d) => wrong.push(*d),
                    }
                }
            }
        }
        out.push(s);
    });
    for e in open {
        let message = "a window with a step is read and written by copies, and by statements that set a tile";
        let d = Diagnostic::error(codes::BAD_VIEW, k.expr_spans[e], message);
        wrong.push(d.with_note("copy it into a tile first: `var x = reg f32[64, 64]`, `copy X[i.. step 2, ..] -> x`"));
    }
    wrong
}

/// Has a register tile that is set to what windows with steps have be filled by a copy; returns its declaration.
fn as_copy(k: &mut Kernel, s: Stmt, open: &BTreeSet<Expr>) -> Option<Stmt> {
    let (value, src, declares) = match k.stmts[s] {
        StmtData::Var { value, init: Some(src) } => (value, src, true),
        StmtData::Assign { dst, src } => (dst, src, false),
        _ => return None,
    };
    let mut found = Vec::new();
    leaves(k, src, &mut found);
    let steps = |&e: &Expr| open.contains(&e) || matches!(k.exprs[e], ExprData::Transpose(arg) if open.contains(&arg));
    if k.tile_ty(value).is_none_or(|tile| tile.shape.is_empty()) || !found.iter().any(steps) {
        return None;
    }
    let span = k.stmt_spans[s];
    let dst = k.value_ref(value, k.values[value].span);
    k.stmts[s] = StmtData::Copy { src, dst, attrs: CopyAttrs::default() };
    declares.then(|| k.stmt(StmtData::Var { value, init: None }, span))
}

/// Has the window `e` of a copy be gathered, seen transposed if `last` is the number of its last dimension; returns what counts the rows.
fn rows(
    k: &mut Kernel,
    notes: &Notes,
    loops: &LoopEnds,
    (src, dst): (Expr, Expr),
    e: Expr,
    last: Option<usize>,
) -> Result<Vec<Stmt>, Box<Diagnostic>> {
    let span = k.expr_spans[e];
    let bad = |message: String, note: &str| Box::new(Diagnostic::error(codes::BAD_VIEW, span, message).with_note(note));
    let ExprData::View(view) = k.exprs[e].clone() else { unreachable!("notes are of windows") };
    let base = window(k, notes, e).map_or(view.base, |window| window.base);
    if !matches!(k.values[base].def, ValueDef::Tensor(_) | ValueDef::Smem(_) | ValueDef::Var(_)) {
        let message =
            format!("a window with a step of `{}`, which is neither a tensor nor a tile", k.values[base].name);
        return Err(bad(message, "copy the rows from the tensor: `copy X[i.. step 2, ..] -> x`"));
    }
    let steps: Vec<(usize, Expr)> =
        notes[&e].iter().enumerate().filter_map(|(d, said)| said.step.map(|step| (d, step))).collect();
    if steps.iter().any(|&(_, step)| k.as_int(step).is_some_and(|step| step < 1)) {
        return Err(bad("a step is at least 1".to_owned(), "rows are counted upwards"));
    }
    // Extents and ends are those of the window as it is written.
    let mut front = Vec::new();
    let mut counted = view.clone();
    for (d, step) in steps {
        let numbers = Numbers { view: &view, dim: d, step, last, span };
        let Some(value) = numbers.count(k, loops, (src, dst), &mut front) else {
            let message = "this window has no extents".to_owned();
            return Err(bad(message, "the other tile of the copy says it, or its windows: `X[i..+64 step 2, ..]`"));
        };
        counted.ranges[d] = Range::Gather(k.value_ref(value, span));
    }
    k.exprs[e] = ExprData::View(counted);
    Ok(front)
}

/// The stepped dimension of a window.
struct Numbers<'v> {
    view: &'v View,
    dim: usize,
    step: Expr,
    /// The number of the last dimension of the window, if it is seen transposed.
    last: Option<usize>,
    span: Span,
}

impl Numbers<'_> {
    /// The tile of indices, which statements in `front` of the copy compute; `None`: the extent is unknown.
    fn count(
        &self,
        k: &mut Kernel,
        loops: &LoopEnds,
        (src, dst): (Expr, Expr),
        front: &mut Vec<Stmt>,
    ) -> Option<Value> {
        let Numbers { view, dim: d, step, last, span } = *self;
        let range = |r: &Range| {
            matches!(r, Range::From { .. }) || matches!(*r, Range::At(at) | Range::Gather(at) if is_tile(k, at))
        };
        let own = view.ranges[..d].iter().filter(|&r| range(r)).count();
        let own = last.map_or(own, |last| last - own);
        let extent = extent_of(k, (src, dst), own)?;
        let Range::From { start, end } = view.ranges[d] else { unreachable!("a range has a step") };
        let end = match end {
            Some(end) => (!is_infinite(k, end)).then_some(end),
            None => implied(k, loops, view, d).map(|end| k.copy_expr(end)),
        };
        let extent = match extent {
            Extent::Known(n) => k.int(n as i64, span),
            Extent::Sym(e) => k.copy_expr(e),
        };
        let wide = ElemRef::Known(Elem::I64);
        let value = k.value("rows", span, ValueDef::Var(TileTy::registers(wide, vec![extent], None)));
        let zero = k.int(0, span);
        front.push(k.stmt(StmtData::Var { value, init: Some(zero) }, span));
        let like = k.value_ref(value, span);
        let count = k.expr(ExprData::Iota { axis: 0, like }, span);
        let count = k.expr(ExprData::Cast { elem: wide, arg: count }, span);
        let start = named(k, start, "start", front);
        let step = named(k, step, "step", front);
        let end = end.map(|end| named(k, end, "end", front));
        let distance = k.binary(Op::Mul, step, count, span);
        let numbers = k.binary(Op::Add, start, distance, span);
        front.push(k.stmt(StmtData::Assign { dst: value, src: numbers }, span));
        if let Some(end) = end {
            front.push(cut(k, value, end, span));
        }
        Some(value)
    }
}

/// An index computed from integers gets a name: it is computed as an index, so that nothing wraps around.
fn named(k: &mut Kernel, e: Expr, name: &str, front: &mut Vec<Stmt>) -> Expr {
    of_indices(k, e);
    if !is_of_value(k, e) {
        return e;
    }
    let span = k.expr_spans[e];
    let value = k.value(name, span, ValueDef::Let);
    front.push(k.stmt(StmtData::Let { value, init: e }, span));
    k.value_ref(value, span)
}

/// Numbers at and past `end` name nothing.
fn cut(k: &mut Kernel, rows: Value, end: Expr, span: Span) -> Stmt {
    let own = |k: &mut Kernel| k.value_ref(rows, span);
    let (tested, kept, nothing) = (own(k), own(k), k.int(-1, span));
    let inside = k.expr(ExprData::Op { op: Op::Lt, args: vec![tested, end] }, span);
    let src = k.expr(ExprData::Op { op: Op::Select, args: vec![inside, kept, nothing] }, span);
    k.stmt(StmtData::Assign { dst: rows, src }, span)
}

/// The extent of a dimension of what a copy moves, by the tile on one of its sides.
fn extent_of(k: &Kernel, (src, dst): (Expr, Expr), dim: usize) -> Option<Extent> {
    let mut sides = vec![dst];
    leaves(k, src, &mut sides);
    let tiles: Vec<Vec<Extent>> = sides
        .into_iter()
        .filter_map(|e| match type_of(k, e) {
            Ok(Type::Tile(t)) => Some(t.shape),
            _ => None,
        })
        .collect();
    // A tile may repeat along it.
    let own = |tile: &Vec<Extent>| tile.get(dim).copied();
    let several = tiles.iter().filter_map(own).find(|n| n.known() != Some(1));
    several.or_else(|| tiles.iter().find_map(own))
}

fn is_tile(k: &Kernel, at: Expr) -> bool {
    matches!(type_of(k, at), Ok(Type::Tile(_)))
}
