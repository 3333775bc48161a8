//! The warning about elements past the end in a reduction.

use super::super::pad::{direct, neutral_of};
use super::super::proposed::{Proposed, Relation};
use super::found::{Consumer, Past, TaintedExpr};
use crate::Options;
use crate::analysis::facts::Facts;
use crate::analysis::past_end::bounds;
use crate::analysis::uses::{all_stmts, for_each_ref, stmt_exprs};
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::numerics::IntFormat;
use tilec_ir::numerics::cast::int_format;
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::print::print_expr;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{resolve_view, type_of};

pub(super) fn warning(k: &Kernel, facts: &Facts, options: &Options, found: &TaintedExpr) -> Diagnostic {
    let Past { window, dim, extent, end, filled } = found.past;
    let view = resolve_view(k, window).expect("a window");
    let written = as_written(k);
    let print = print(&written);
    let tensor = &k.values[view.base].name;
    let starts = view.dims[dim].starts();
    let side = if end.is_some() { "past the end" } else { "in front" };
    let what = match found.taker {
        Consumer::Reduction { op, .. } => format!("this `{}` includes elements {side} of `{tensor}`", op.token()),
        Consumer::Product => format!("this product sums elements {side} of `{tensor}`"),
        Consumer::Mean => {
            format!("this divides by {extent}, the extent of the tile, and `{tensor}` may have fewer there")
        }
        Consumer::Scatter { .. } if !filled && is_read(k, found.at) => {
            format!("indices {side} of `{tensor}` read as 0, and 0 names an element, which is stored to as well")
        }
        Consumer::Scatter { .. } => format!(
            "indices computed from elements {side} of `{tensor}` may name an element, which is stored to as well"
        ),
    };
    let read = if filled { "what `fill` says" } else { "0" };
    let begin = starts.iter().filter(|&&e| k.as_int(e) != Some(0)).map(|&e| print(e));
    let begin = begin.collect::<Vec<String>>().join(" + ");
    let begins = |more: &str| if begin.is_empty() { more.to_owned() } else { format!("{begin} + {more}") };
    let first: Option<i64> = starts.iter().map(|&e| k.as_int(e)).sum();
    let none = proposed(k, facts, found.past, starts);
    let (when, place) = match (end.map(&print), &none) {
        (Some(end), Some((when, _))) => (format!("`{end}` {when}"), format!("past the end `{end}`")),
        (Some(end), None) => (format!("the window reaches past `{end}`"), format!("past the end `{end}`")),
        (None, _) => ("the window begins in front of 0".to_owned(), "in front of 0".to_owned()),
    };
    let mut d = Diagnostic::warning(
        codes::PAST_END,
        k.expr_spans[found.at],
        format!("{what}: the result may be wrong if {when}"),
    )
    .with_place(
        k.expr_spans[direct(k, window).unwrap_or(window)],
        format!("{extent} elements, which {place} read as {read}"),
    );
    let within = |tile: Expr, axis: u32| {
        let place = begins(&format!("iota({}, {axis})", print(tile)));
        match end.map(&print) {
            Some(end) => format!("{place} < {end}"),
            None => format!("{place} >= 0"),
        }
    };
    d = match found.taker {
        Consumer::Reduction { op, axis, arg } => {
            d.with_note(mask(&written, &within(arg, axis), (op, arg), Place::of(k, (window, starts), (found.at, arg))))
        }
        Consumer::Product => d.with_note("give these elements of an operand the value 0, with `select`"),
        Consumer::Mean => match end.map(&print) {
            Some(end) if first == Some(0) => d.with_note(format!("divide by `{end}`")),
            Some(end) if !begin.is_empty() => d.with_note(format!(
                "divide by the number of elements of the tensor: `min({extent}, {end} - ({begin}))`"
            )),
            _ => d.with_note("divide by the number of elements of the tensor"),
        },
        Consumer::Scatter { .. } if !filled && is_read(k, found.at) => {
            d.with_note("give these elements an index that names nothing, with `fill -1` in the copy that loads them")
        }
        Consumer::Scatter { axis } => d.with_note(format!(
            "give these elements an index that names nothing: `select({}, {}, -1)`",
            within(found.at, axis),
            print(found.at)
        )),
    };
    let none =
        none.map(|(_, none)| none).filter(|none| of_the_launch(k, none.size) && !none.is_contradicted(k, options));
    if let Some(none) = none {
        d.fix = none.edit(k).filter(|_| !bounded_below(k, none));
        d = d.with_note(format!("or state that there are no such elements: {}", none.in_words(k)));
    }
    if let (Consumer::Mean, Some(0), Some(end)) = (found.taker, first, end)
        && let ExprData::Op { op: Op::Div, args } = &k.exprs[found.at]
        && !k.expr_spans[args[1]].is_none()
    {
        let count = print(end);
        let plain = matches!(written.exprs[end], ExprData::Ref(_) | ExprData::Int(_));
        let count = if plain { count } else { format!("({count})") };
        d = d.with_fix(k.expr_spans[args[1]], count).with_meaning("divides by the number of elements of the tensor");
    }
    // If no precondition helps, a `fill` value in the copy does, for an extreme.
    if d.fix.is_none()
        && let Consumer::Reduction { op: op @ (ReduceOp::Maximum | ReduceOp::Minimum), arg, .. } = found.taker
        && is_floating(k, arg)
        && let Some(copy) = copied_by(k, window, arg)
    {
        let (span, fill) = (k.stmt_spans[copy], if op == ReduceOp::Maximum { "-inf" } else { "inf" });
        let at = Span { start: span.end, ..span };
        d = d.with_fix(at, format!(" fill {fill}")).with_meaning("elements past the end read as this value");
    }
    d
}

/// When there are no elements past the end, and the precondition that says so.
fn proposed(k: &Kernel, facts: &Facts, past: Past, starts: &[Expr]) -> Option<(String, Proposed)> {
    let (size, extent) = (past.end?, i64::try_from(past.extent).ok()?);
    let proposed = |relation, n| Proposed { size, relation, n };
    match starts.iter().map(|&e| k.as_int(e)).sum::<Option<i64>>() {
        Some(0) => Some((format!("is less than {extent}"), proposed(Relation::Equal, extent))),
        Some(first) => {
            let n = first.checked_add(extent)?;
            Some((format!("is less than {n}"), proposed(Relation::AtLeast, n)))
        }
        None if starts.iter().all(|&e| facts.is_multiple(k, e, past.extent)) => {
            Some((format!("is no multiple of {extent}"), proposed(Relation::Multiple, extent)))
        }
        None => None,
    }
}

/// Whether an index is as it was read.
fn is_read(k: &Kernel, index: Expr) -> bool {
    match k.exprs[meaning(k, index)] {
        ExprData::Ref(_) | ExprData::View(_) => true,
        ExprData::Cast { arg, .. } => is_read(k, arg),
        _ => false,
    }
}

/// The copy that loads a window without `fill` and unconverted into the whole of a reduced tile.
fn copied_by(k: &Kernel, window: Expr, arg: Expr) -> Option<Stmt> {
    let copied = |s: &Stmt| match &k.stmts[*s] {
        StmtData::Copy { src, dst, attrs } => {
            let tile = resolve_view(k, *dst).map(|to| to.base).filter(|&v| k.tile_ty(v).is_some());
            let whole = tile.is_some() && resolve_view(k, arg).map(|of| of.base) == tile;
            let whole = whole && tile.is_some_and(|tile| !is_made(k, tile, *s));
            whole && attrs.fill.is_none() && [Some(window), direct(k, window)].contains(&Some(*src))
        }
        _ => false,
    };
    all_stmts(k, k.body).into_iter().find(copied)
}

/// Whether the parser made a tile for the window that a statement copies: it then has the statement's place.
fn is_made(k: &Kernel, tile: Value, copy: Stmt) -> bool {
    k.tile_ty(tile).is_some() && k.values[tile].span == k.stmt_spans[copy]
}

fn is_floating(k: &Kernel, e: Expr) -> bool {
    let elem = type_of(k, e).ok().and_then(|ty| ty.elem());
    matches!(elem, Some(ElemRef::Known(elem)) if bounds(elem).is_none())
}

/// The kernel without names for values from memory in indices, as in the source. Tiles that the parser made have the text
/// of their windows.
fn as_written(k: &Kernel) -> Kernel {
    let mut own = k.clone();
    for s in all_stmts(k, k.body) {
        if let StmtData::Copy { src, dst, .. } = k.stmts[s]
            && let Some(tile) = resolve_view(k, dst).map(|to| to.base).filter(|&v| is_made(k, v, s))
        {
            own.values[tile].name = print_expr(k, src);
        }
    }
    for e in k.exprs.keys() {
        if let ExprData::Index(arg) = k.exprs[e] {
            own.exprs[e] = k.exprs[arg].clone();
        }
    }
    own
}

fn print(k: &Kernel) -> impl Fn(Expr) -> String + use<'_> {
    move |e| print_expr(k, e)
}

/// Where elements past the end of the operand of a reduction can get a neutral value.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    /// In the operand.
    Operand,
    /// There, or in the copy that loads the operand.
    Copy,
    /// Only in the loop that reads the window: the reduction is behind it.
    Earlier,
}

impl Place {
    /// The place for a window that begins at `starts`, and the operand of a reduction.
    fn of(k: &Kernel, (window, starts): (Expr, &[Expr]), (reduction, operand): (Expr, Expr)) -> Place {
        match copied_by(k, window, operand) {
            _ if !reaches(k, starts, reduction) => Place::Earlier,
            Some(_) => Place::Copy,
            None => Place::Operand,
        }
    }
}

/// Whether the loops by whose variables a window moves are around an expression.
fn reaches(k: &Kernel, starts: &[Expr], at: Expr) -> bool {
    let holds = |e: Expr| k.has_part(e, |part| part == at);
    all_stmts(k, k.body).into_iter().all(|s| {
        let StmtData::For { var, body, .. } = k.stmts[s] else { return true };
        let moves = |&e: &Expr| k.has_part(e, |part| matches!(k.exprs[part], ExprData::Ref(v) if v == var));
        !starts.iter().any(moves) || all_stmts(k, body).into_iter().any(|s| stmt_exprs(k, s).into_iter().any(holds))
    })
}

/// What gives elements past the end a neutral value.
fn mask(k: &Kernel, within: &str, (op, arg): (ReduceOp, Expr), place: Place) -> String {
    let x = print_expr(k, arg);
    let elem = type_of(k, arg).ok().and_then(|ty| ty.elem());
    // What the type has.
    let (lo, hi) = match elem {
        Some(ElemRef::Known(elem)) => bounds(elem).unwrap_or((f64::NEG_INFINITY, f64::INFINITY)),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let neutral = match neutral_of(op, elem) {
        Some(ExprData::Float(bits)) if f64::from_bits(bits).is_infinite() => {
            format!("{:?}", f64::from_bits(bits).clamp(lo, hi))
        }
        Some(ExprData::Int(x)) if elem == Some(ElemRef::Known(Elem::U64)) => x.cast_unsigned().to_string(),
        Some(ExprData::Int(x)) if op.is_extreme() => match elem.and_then(format_of) {
            Some(format) => i128::from(x).clamp(format.min(), format.max()).to_string(),
            None => (x as f64).clamp(lo, hi).to_string(),
        },
        Some(ExprData::Float(bits)) => format!("{:?}", f64::from_bits(bits)),
        Some(ExprData::Int(x)) => x.to_string(),
        _ => "y".to_owned(),
    };
    let select = format!("`select({within}, {x}, {neutral})`");
    match op {
        _ if place == Place::Earlier => format!(
            "give them the value {neutral} where the window is read: load it by `copy .. fill {neutral}`, or mask what is computed of it by `select`"
        ),
        ReduceOp::Any => format!("leave them out: `any({within} && {x})`"),
        ReduceOp::All => format!("leave them out: `all({within} && {x} || !({within}))`"),
        ReduceOp::Sum => {
            format!("mask the operand: {select}; for a sum of exponentials `fill -inf` in the copy is enough")
        }
        ReduceOp::Product => format!("mask the operand: {select}"),
        ReduceOp::Maximum | ReduceOp::Minimum | ReduceOp::ArgMax | ReduceOp::ArgMin if place == Place::Copy => {
            format!("give them the neutral value: `fill {neutral}` in the copy to `{x}`, or {select}")
        }
        ReduceOp::Maximum | ReduceOp::Minimum | ReduceOp::ArgMax | ReduceOp::ArgMin => {
            format!("give them the neutral value: {select}")
        }
    }
}

/// The format of an integer type.
fn format_of(elem: ElemRef) -> Option<IntFormat> {
    match elem {
        ElemRef::Known(elem) => int_format(elem),
        ElemRef::Param(_) => None,
    }
}

/// Whether preconditions can refer to an index.
fn of_the_launch(k: &Kernel, e: Expr) -> bool {
    let own = match k.exprs[meaning(k, e)] {
        ExprData::Int(_) | ExprData::Op { .. } => true,
        ExprData::Ref(v) => matches!(k.values[v].def, ValueDef::Size),
        _ => false,
    };
    own && k.children(meaning(k, e)).into_iter().all(|child| of_the_launch(k, child))
}

/// Whether a precondition bounds the sizes of an index other than from above, and does not follow from the proposed one:
/// then both might hold for no launch.
fn bounded_below(k: &Kernel, none: Proposed) -> bool {
    let (mut own, replaced) = (BTreeSet::new(), none.replaced(k));
    for_each_ref(k, none.size, &mut |v| {
        own.insert(v);
    });
    let mentions = |e: Expr| {
        let mut found = false;
        for_each_ref(k, e, &mut |v| found |= own.contains(&v));
        found
    };
    let at_most = |e: Expr| match &k.exprs[e] {
        ExprData::Op { op: Op::Le | Op::Lt, args } => !mentions(args[1]),
        _ => false,
    };
    k.requires.iter().any(|&e| replaced != Some(e) && mentions(e) && !at_most(e))
}
