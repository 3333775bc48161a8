//! Steps that differ from the extent of the windows (W0405): a loop skips a part of its range, or its windows overlap.
//!
//! Both may be intended: for example, blocks or roles share a range and each skips the parts of others. So they are
//! warnings, and a written end of the window suppresses them.

use super::pad::windows_of;
use crate::Cx;
use crate::analysis::uses::{all_stmts, mentions};
use tilec_ir::codes;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef, View};
use tilec_ir::loop_ends::{loop_variable, meaning};
use tilec_ir::names::Parts;
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::{resolve_view, same_expr};

/// A window that moves with a loop.
struct MovingWindow {
    at: Expr,
    tensor: Value,
    dim: usize,
    /// Its offset from the loop variable.
    offset: i64,
    extent: i64,
    /// Whether it has a written end that is not that of the loop.
    ends: bool,
    /// Whether it ends with the loop.
    cut: bool,
    /// The tile on the other side of the copy, and its dimension that moves.
    tile: Option<(Value, usize)>,
}

/// Warns of loops whose step differs from the extent of windows that begin at their variables.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    let loops = all_stmts(k, k.body).into_iter().filter(|&s| matches!(k.stmts[s], StmtData::For { .. }));
    let found: Vec<Diagnostic> = loops.flat_map(|s| of_loop(k, s)).collect();
    found.into_iter().for_each(|d| cx.warn(d));
}

fn of_loop(k: &Kernel, s: Stmt) -> Vec<Diagnostic> {
    let StmtData::For { var, start, end, step, body, .. } = k.stmts[s] else { unreachable!("it is a loop") };
    let written = step;
    let Some(step) = k.as_int(step).filter(|&step| step > 0) else { return Vec::new() };
    let Some(windows) = windows(k, body, var, end) else { return Vec::new() };
    let mut said: Vec<Diagnostic> = summed_again(k, body, &windows, step)
        .into_iter()
        .map(|window| with_step(k, reduced_again(k, window, var, step), written, window.extent))
        .collect();
    if !said.is_empty() {
        return said;
    }
    let mut seen: Vec<(Value, usize)> = Vec::new();
    for window in &windows {
        let key = (window.tensor, window.dim);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let own: Vec<&MovingWindow> = windows.iter().filter(|w| (w.tensor, w.dim) == key).collect();
        if own.iter().any(|w| w.ends) {
            continue;
        }
        let reached = reached(&own);
        if reached < step && !is_shared(k, start) {
            said.push(with_step(k, skipped(k, window, var, step, reached), written, reached));
        } else if let Some(window) = own.iter().find(|w| w.cut && w.extent > step) {
            said.push(with_step(k, overlapping(k, window, var, (step, end)), written, window.extent));
        }
    }
    said
}

/// Adds the fix to change the step, if the step is a literal.
fn with_step(k: &Kernel, d: Diagnostic, step: Expr, extent: i64) -> Diagnostic {
    match k.literal(step) {
        Some(at) => d.with_fix(at, extent.to_string()),
        None => d,
    }
}

fn skipped(k: &Kernel, window: &MovingWindow, var: Value, step: i64, reached: i64) -> Diagnostic {
    let (tensor, var) = (&k.values[window.tensor].name, &k.values[var].name);
    let message = format!(
        "`{var}` grows by {step}, and windows of `{tensor}` reach {reached} elements from it: {} of {step} are skipped",
        step - reached
    );
    Diagnostic::warning(codes::OTHER_STEP, k.expr_spans[window.at], message).with_note(format!(
        "the step is the extent of the tile: `step {reached}`; a window that is to be shorter than the step says where it ends: `{var}..{var} + {}`",
        window.extent
    ))
}

fn overlapping(k: &Kernel, window: &MovingWindow, var: Value, (step, end): (i64, Expr)) -> Diagnostic {
    let (tensor, var, end) = (&k.values[window.tensor].name, &k.values[var].name, print_expr(k, end));
    let message = format!(
        "`{var}` grows by {step}, and windows of `{tensor}` have {} elements: they overlap, and end at `{end}` with the loop",
        window.extent
    );
    Diagnostic::warning(codes::OTHER_STEP, k.expr_spans[window.at], message).with_note(format!(
        "the step is the extent of the tile: `step {}`; a window that goes on past the loop's range is written `{var}..inf`, one that ends elsewhere \
         `{var}..e`",
        window.extent
    ))
}

fn reduced_again(k: &Kernel, window: &MovingWindow, var: Value, step: i64) -> Diagnostic {
    let (tensor, var) = (&k.values[window.tensor].name, &k.values[var].name);
    let message = format!(
        "`{var}` grows by {step}, and windows of `{tensor}` have {} elements along the reduction: {} of them are summed again",
        window.extent,
        window.extent - step
    );
    Diagnostic::warning(codes::OTHER_STEP, k.expr_spans[window.at], message).with_note(format!(
        "the step is the extent of the tile: `step {}`; a window that is to be shorter says where it ends: `{var}..{var} + {step}`",
        window.extent
    ))
}

/// Windows longer than the step along the reduction of products, for both operands: then the same products are added
/// several times.
fn summed_again<'w>(
    k: &Kernel,
    body: tilec_ir::entities::Block,
    windows: &'w [MovingWindow],
    step: i64,
) -> Vec<&'w MovingWindow> {
    let mut again: Vec<&MovingWindow> = Vec::new();
    let list = all_stmts(k, body);
    let declared: Vec<Value> = list
        .iter()
        .filter_map(|&s| match k.stmts[s] {
            StmtData::Var { value, .. } => Some(value),
            _ => None,
        })
        .collect();
    for s in list {
        let StmtData::Assign { src, .. } = k.stmts[s] else { continue };
        let mut rest = vec![src];
        while let Some(e) = rest.pop() {
            rest.extend(k.children(e));
            let ExprData::Mma(product) = &k.exprs[e] else { continue };
            // An accumulator that is reset in every iteration adds each product once.
            if !matches!(k.exprs[product.c], ExprData::Ref(acc) if !declared.contains(&acc)) {
                continue;
            }
            let of = |operand: Expr, dim: usize| {
                let tile = source(k, operand, dim)?;
                windows.iter().find(|w| w.tile == Some(tile) && w.extent > step && !w.ends)
            };
            if let (Some(a), Some(b)) = (of(product.a, 1), of(product.b, 0)) {
                for window in [a, b] {
                    if again.iter().all(|other| other.at != window.at) {
                        again.push(window);
                    }
                }
            }
        }
    }
    again
}

/// The tile from which an operand comes, possibly converted and transposed, and its dimension that is the operand's
/// `dim`.
fn source(k: &Kernel, e: Expr, dim: usize) -> Option<(Value, usize)> {
    match &k.exprs[e] {
        ExprData::Ref(v) => match k.values[*v].def {
            ValueDef::Let => tilec_ir::typing::let_init(k, *v).map_or(Some((*v, dim)), |init| source(k, init, dim)),
            _ => Some((*v, dim)),
        },
        ExprData::Transpose(of) => source(k, *of, 1 - dim),
        ExprData::Cast { arg, .. } => source(k, *arg, dim),
        _ => None,
    }
}

/// The number of elements from the first window on without gaps, so that a later iteration may cover all of them.
fn reached(windows: &[&MovingWindow]) -> i64 {
    let mut parts: Vec<(i64, i64)> = windows.iter().map(|w| (w.offset, w.offset.saturating_add(w.extent))).collect();
    parts.sort_unstable();
    let first = parts.first().map_or(0, |p| p.0);
    parts.into_iter().fold(first, |reached, (from, to)| if from <= reached { reached.max(to) } else { reached }) - first
}

/// Whether a range starts elsewhere in each block, role or iteration, so that others may cover the skipped parts.
fn is_shared(k: &Kernel, start: Expr) -> bool {
    let mut parts = Parts::of(k, start);
    while let Some(e) = parts.take() {
        if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) = k.exprs[e] {
            if matches!(k.values[v].def, ValueDef::Grid | ValueDef::Loop) {
                return true;
            }
            parts.named(v);
        }
        parts.inside(e);
    }
    false
}

/// The windows of tensors in a loop that begin at its variable, plus an offset; `None`: the variable has other uses.
fn windows(k: &Kernel, body: tilec_ir::entities::Block, var: Value, loop_end: Expr) -> Option<Vec<MovingWindow>> {
    let mut found = Vec::new();
    for s in all_stmts(k, body) {
        let copied = match k.stmts[s] {
            StmtData::Copy { ref attrs, .. } if attrs.is_prefetch() => continue,
            StmtData::Copy { src, dst, .. } => Some((src, dst)),
            _ => None,
        };
        for (e, shape) in windows_of(k, s) {
            let Some(view) = resolve_view(k, e).filter(|view| k.tensor_ty(view.base).is_some()) else { continue };
            let ExprData::View(written) = &k.exprs[e] else { continue };
            let kept = view.base_dims();
            let ranges: Vec<&Range> = written.ranges.iter().filter(|r| !matches!(r, Range::At(_))).collect();
            if written.ranges.iter().any(|r| matches!(r, Range::At(i) if mentions(k, *i, var))) {
                return None;
            }
            for (w, range) in ranges.into_iter().enumerate() {
                let &Range::From { start, end } = range else { continue };
                let Some(offset) = offset(k, start, var) else {
                    if mentions(k, start, var) {
                        return None;
                    }
                    continue;
                };
                let (Some(&dim), Some(&extent)) = (kept.get(w), shape.get(w)) else { continue };
                let cut = end.is_some_and(|end| same_expr(k, end, loop_end));
                let extent = i64::try_from(extent).unwrap_or(i64::MAX);
                let ends = end.is_some() && !cut;
                let other = copied.and_then(|(src, dst)| {
                    let moves = |from: Expr, to: Expr| (e == from).then_some(to);
                    moves(src, dst).or_else(|| moves(dst, src))
                });
                let tile = other.and_then(|other| source(k, other, 0)).map(|(tile, _)| (tile, w));
                found.push(MovingWindow {
                    at: e,
                    tensor: view.base,
                    dim,
                    offset,
                    extent,
                    ends,
                    cut: cut && offset == 0,
                    tile,
                });
            }
        }
    }
    Some(found)
}

/// `c` if `e` is the variable plus `c`.
fn offset(k: &Kernel, e: Expr, var: Value) -> Option<i64> {
    if loop_variable(k, e) == Some(var) {
        return Some(0);
    }
    match &k.exprs[meaning(k, e)] {
        ExprData::Op { op: Op::Add, args } if loop_variable(k, args[0]) == Some(var) => {
            k.as_int(args[1]).filter(|&c| c > 0)
        }
        _ => None,
    }
}
