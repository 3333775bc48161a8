//! What is said of elements past the end in a reduction.

use super::super::pad::{direct, neutral_of};
use super::found::{Found, Past, Taker};
use crate::analysis::uses::for_each_ref;
use crate::refused::required;
use std::collections::BTreeSet;
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::print::print_expr;
use tilec_ir::typing::{ViewDim, resolve_view, type_of};

pub(super) fn warning(k: &Kernel, found: &Found) -> Diagnostic {
    let Past { window, dim, extent, limit, filled } = found.past;
    let view = resolve_view(k, window).expect("a window");
    let (tensor, end) = (&k.values[view.base].name, print_expr(k, limit));
    let starts = match &view.dims[dim] {
        ViewDim::From { starts, .. } => &starts[..],
        ViewDim::Fixed(_) | ViewDim::Gather(_) => &[],
    };
    let moves = starts.iter().any(|&e| k.as_int(e).is_none());
    let when = if moves { format!("is no multiple of {extent}") } else { format!("is less than {extent}") };
    let what = match found.taker {
        Taker::Reduction { op, .. } => format!("this `{}` takes in elements past the end of `{tensor}`", op.token()),
        Taker::Product => format!("this product sums elements past the end of `{tensor}`"),
        Taker::Mean => format!("this divides by {extent}, the extent of the tile, and `{tensor}` may have fewer there"),
        Taker::Scatter => {
            format!("indices past the end of `{tensor}` read as 0, and 0 names an element, which is stored to as well")
        }
    };
    let read = if filled { "what `fill` says" } else { "0" };
    let mut d = Diagnostic::warning(
        codes::PAST_END,
        k.expr_spans[found.at],
        format!("{what}: the result is another where `{end}` {when}"),
    )
    .with_place(
        k.expr_spans[direct(k, window).unwrap_or(window)],
        format!("{extent} elements, which past the end `{end}` read as {read}"),
    );
    let begin = starts.iter().filter(|&&e| k.as_int(e) != Some(0)).map(|&e| format!("{} + ", print_expr(k, e)));
    let begin: String = begin.collect();
    d = match found.taker {
        Taker::Reduction { op, axis, arg } => d.with_note(mask(k, &format!("{begin}iota(x, {axis}) < {end}"), op, arg)),
        Taker::Product => d.with_note("mask an operand: have it be 0 there, as in `select(.., x, 0.0)`"),
        Taker::Mean => d.with_note(format!("divide by `{end}`")),
        Taker::Scatter => d.with_note("have them name nothing: `copy .. -> x fill -1`"),
    };
    if of_the_launch(k, limit) {
        let none = if moves { format!("{end} % {extent} == 0") } else { format!("{end} == {extent}") };
        d.fix = required(k, &none).filter(|_| !bounded_below(k, limit));
        d = d.with_note(format!("or declare that there are none: `where {none}`"));
    }
    d
}

fn mask(k: &Kernel, within: &str, op: ReduceOp, arg: Expr) -> String {
    let elem = type_of(k, arg).ok().and_then(|ty| ty.elem());
    let neutral = match neutral_of(op, elem) {
        Some(ExprData::Float(bits)) => format!("{:?}", f64::from_bits(bits)),
        Some(ExprData::Int(x)) => x.to_string(),
        _ => "y".to_owned(),
    };
    match op {
        ReduceOp::Any => format!("leave them out: `any({within} && x)`"),
        ReduceOp::All => format!("leave them out: `all({within} && x || !({within}))`"),
        ReduceOp::Sum | ReduceOp::Product => format!(
            "mask what is reduced: `select({within}, x, {neutral})`; for a sum of exponentials `copy .. -> x fill -inf` is enough"
        ),
        ReduceOp::Maximum | ReduceOp::Minimum | ReduceOp::ArgMax | ReduceOp::ArgMin => {
            format!(
                "have them be what changes nothing: `copy .. -> x fill {neutral}`, or `select({within}, x, {neutral})`"
            )
        }
    }
}

/// Whether preconditions can speak of an index.
fn of_the_launch(k: &Kernel, e: Expr) -> bool {
    let own = match k.exprs[meaning(k, e)] {
        ExprData::Int(_) | ExprData::Op { .. } => true,
        ExprData::Ref(v) => matches!(k.values[v].def, ValueDef::Size),
        _ => false,
    };
    own && k.children(meaning(k, e)).into_iter().all(|child| of_the_launch(k, child))
}

/// Whether a precondition says more of the sizes of an index than that they are at most something: with another one it may hold for no launch.
fn bounded_below(k: &Kernel, e: Expr) -> bool {
    let mut own = BTreeSet::new();
    for_each_ref(k, e, &mut |v| {
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
    k.requires.iter().any(|&e| mentions(e) && !at_most(e))
}
