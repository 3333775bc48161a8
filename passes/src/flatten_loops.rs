//! `flatten-loops`: merges a loop nest whose only effect is to accumulate a product into one loop.
//!
//! ```text
//! for place in 0..R * S {                 for n in 0..R * S * ceildiv(O, 32) {
//!     for o in 0..O step 32 {                 let place = n / max(1, ceildiv(O, 32))
//!         ..                         ->       let o = n % max(1, ceildiv(O, 32)) * 32
//!     }                                       ..
//! }                                       }
//! ```
//!
//! A pipeline of the inner loop would drain and fill once per iteration of the outer one. After this pass, all other passes and
//! [`crate::choose`] see a reduction in one loop. Steps count from the first iteration: if `O` is not a multiple of the step, the last tile of each inner loop is the ragged one.
//!
//! A nest is flattened if the outer loop contains only names of indices and the inner loop. Neither loop may have a
//! condition or be unrolled, and the bounds of the inner loop may not depend on the outer one. Names that read memory
//! are not allowed between the loops, because they would be read once per iteration. Loops with a written plan, such as stages of their statements, stay as they are.
//!
//! Needs: parsed IR, before parameters have values. Switched off: loops stay as they are.

use crate::analysis::index_operands::{of_indices, of_sizes};
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, mentions};
use crate::{Cx, Sizes};
use tilec_ir::diag::{Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::{Kernel, Module, StmtData, ValueDef};
use tilec_ir::ops::Op;

pub(crate) const NAME: &str = "flatten-loops";

pub(crate) fn run(module: &mut Module, _sizes: &[Sizes], cx: &mut Cx<'_>) -> Result<(), Reported> {
    if cx.enabled {
        module.kernels.iter_mut().for_each(|k| block(k, cx, k.body));
    }
    Ok(())
}

/// Flattens the nests in a block, the innermost first.
fn block(k: &mut Kernel, cx: &mut Cx<'_>, b: Block) {
    for s in k.blocks[b].clone() {
        for inner in k.sub_blocks(s) {
            block(k, cx, inner);
        }
        if let Some(nest) = nest(k, s) {
            let names = [nest.outer.var, nest.inner.var].map(|v| k.values[v].name.clone());
            let [outer, inner] = names;
            let span = k.stmt_spans[s];
            if flatten(k, s, nest) {
                let message = "are one: the pipeline does not drain between them";
                cx.remark(span, format!("the loops over `{outer}` and `{inner}` {message}"));
            } else {
                let message = "are not merged: they may have more than 2^31 iterations in total";
                cx.remark(span, format!("the loops over `{outer}` and `{inner}` {message}"));
            }
        }
    }
}

/// A loop without condition.
#[derive(Copy, Clone)]
struct Loop {
    var: Value,
    start: Expr,
    end: Expr,
    step: Expr,
    body: Block,
}

struct Nest {
    outer: Loop,
    /// Names in front of the inner loop.
    names: Vec<Stmt>,
    inner: Loop,
}

fn counted(k: &Kernel, s: Stmt) -> Option<Loop> {
    match k.stmts[s] {
        StmtData::For { var, start, end, step, cond: None, next: None, unroll: false, body } => {
            Some(Loop { var, start, end, step, body })
        }
        _ => None,
    }
}

/// The nest with the outer loop `s`.
fn nest(k: &Kernel, s: Stmt) -> Option<Nest> {
    let outer = counted(k, s)?;
    let (&last, names) = k.blocks[outer.body].split_last()?;
    let inner = counted(k, last)?;
    let mut inside = vec![outer.var];
    for &name in names {
        let StmtData::Let { value, init } = k.stmts[name] else { return None };
        if !of_indices(k, init) {
            return None;
        }
        inside.push(value);
    }
    let bounds = [inner.start, inner.end, inner.step];
    let apart = bounds.iter().all(|&e| of_indices(k, e) && !inside.iter().any(|&v| mentions(k, e, v)));
    let planned = all_stmts(k, outer.body).into_iter().chain([s]).any(|s| k.plans[s].is_some());
    (apart && !planned && reduction::of(k, inner.body).is_ok()).then(|| Nest { outer, names: names.to_vec(), inner })
}

/// Merges the nest to one loop. The result is false if the iterations may exceed 31 bits, and no precondition over
/// sizes can exclude that.
fn flatten(k: &mut Kernel, s: Stmt, Nest { outer, names, inner }: Nest) -> bool {
    let span = k.stmt_spans[s];
    let counts = [outer, inner].map(|l| trips(k, l, span));
    let trips = counts.map(|count| at_least_none(k, count, span));
    let end = k.binary(Op::Mul, trips[0], trips[1], span);
    if !of_sizes(k, end) && Ranges::new(k).of(end).is_none_or(|range| range.hi > i128::from(i32::MAX)) {
        return false;
    }
    let var = k.value("n", span, ValueDef::Loop);
    let (zero, one) = (k.int(0, span), k.int(1, span));
    let mut stmts = Vec::new();
    for (l, op) in [(outer, Op::Div), (inner, Op::Rem)] {
        let (n, count, least) = (k.value_ref(var, span), k.copy_expr(counts[1]), k.int(1, span));
        let count = match k.as_int(count) {
            Some(1..) => count,
            _ => k.binary(Op::Max, least, count, span),
        };
        let number = k.binary(op, n, count, span);
        let (start, step) = (k.copy_expr(l.start), k.copy_expr(l.step));
        let at = if k.as_int(step) == Some(1) { number } else { k.binary(Op::Mul, number, step, span) };
        let at = if k.as_int(start) == Some(0) { at } else { k.binary(Op::Add, start, at, span) };
        k.values[l.var].def = ValueDef::Let;
        stmts.push(k.stmt(StmtData::Let { value: l.var, init: at }, k.values[l.var].span));
        if op == Op::Div {
            stmts.extend(&names);
        }
    }
    stmts.extend(k.blocks[inner.body].clone());
    let body = k.block(stmts);
    k.stmts[s] = StmtData::For { var, start: zero, end, step: one, cond: None, next: None, unroll: false, body };
    true
}

/// The number of iterations of a loop; negative if it ends in front of its start.
fn trips(k: &mut Kernel, l: Loop, span: Span) -> Expr {
    let (start, end, step) = (k.copy_expr(l.start), k.copy_expr(l.end), k.copy_expr(l.step));
    let from_zero = k.as_int(start) == Some(0);
    let length = if from_zero { end } else { k.binary(Op::Sub, end, start, span) };
    if k.as_int(step) == Some(1) { length } else { k.binary(Op::CeilDiv, length, step, span) }
}

fn at_least_none(k: &mut Kernel, count: Expr, span: Span) -> Expr {
    if Ranges::new(k).of(count).is_some_and(|range| range.lo >= 0) {
        return count;
    }
    let (zero, count) = (k.int(0, span), k.copy_expr(count));
    k.binary(Op::Max, zero, count, span)
}
