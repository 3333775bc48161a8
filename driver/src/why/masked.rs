//! Work that a mask discards: tiles of a loop of which a `select` keeps no element, as above the diagonal of causal attention,
//! while the loop runs over them.

use super::advice::{self, Advice, Given};
use super::answer::Known;
use super::programs::Change;
use super::said::places_of;
use super::trials::{Effect, effect};
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// A loop with a mask.
struct Masked {
    /// The `select`.
    mask: Span,
    /// The end of the loop as it is written.
    end: Span,
    /// From where on the mask keeps nothing: an expression of the source, and a tile and its dimension whose extent is added.
    limit: Span,
    rows: (Value, usize),
}

/// What a mask discards: the microseconds for it, a message, and facts. `None`: there is no such mask, or the loop ends there.
pub(super) fn of(known: &Known<'_>, kernel: &CompiledKernel) -> Option<(f64, String, Vec<String>)> {
    let own = masked(&kernel.tile.specialized)?;
    let text = known.text().get(own.end.start as usize..own.end.end as usize)?;
    let limit = known.text().get(own.limit.start as usize..own.limit.end as usize)?;
    let end = format!("min({text}, {limit} + {})", extent(kernel, own.rows)?);
    let change = Change::of_part(known.text(), own.end, &end)?;
    let gain = effect(known, kernel, &change).filter(Effect::is_faster)?;
    let now = kernel.tile.prediction.as_ref()?;
    let share = 1.0 - gain.prediction.flops / now.flops.max(1.0);
    let message = format!("{:.0} % of the operations are of tiles that a mask discards whole", 100.0 * share);
    let mut facts = places_of(known, &[(own.mask, "past this end the mask keeps no element".to_owned())]);
    let way =
        format!("end the loop there, `{end}` in place of `{text}`, as far as a tile without elements adds nothing");
    let lines = advice::tried(known, kernel, vec![Advice::by(way, Some(change))], Given::NotSlower);
    facts.extend(lines.facts);
    facts.extend(lines.ways.into_iter().map(|text| format!("to change it: {text}")));
    (share > 0.0).then_some((1e6 * (gain.now - gain.then), message, facts))
}

/// The first loop with a mask along its variable.
fn masked(k: &Kernel) -> Option<Masked> {
    let mut found = None;
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { var, body, end: bound, cond: None, .. } = k.stmts[s] else { return };
        let end = k.expr_spans[bound];
        k.walk(body, &mut |k, _, s| {
            for e in k.stmts[s].exprs() {
                let Some((mask, limit, rows)) = in_expr(k, e, var).filter(|_| found.is_none() && !end.is_none()) else {
                    continue;
                };
                found = Some(Masked { mask, end, limit: k.expr_spans[limit], rows });
            }
        });
    });
    found
}

/// The extent of a tile as the source has it.
fn extent(kernel: &CompiledKernel, (tile, axis): (Value, usize)) -> Option<String> {
    let name = &kernel.tile.specialized.values[tile].name;
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let own = k.values.keys().find(|&v| k.values[v].name == *name).and_then(|v| k.tile_ty(v))?;
    Some(print_expr(k, *own.shape.get(axis)?))
}

/// A mask in an expression, `select(j + iota(s, 1) <= X + iota(s, 0), s, -inf)`: its place, X, and the tile with the dimension.
fn in_expr(k: &Kernel, e: Expr, var: Value) -> Option<(Span, Expr, (Value, usize))> {
    if let ExprData::Op { op: Op::Select, args } = &k.exprs[e]
        && let &[cond, _, other] = &args[..]
        && is_lowest(k, other)
        && let Some((limit, rows)) = last_position(k, cond, var)
    {
        return Some((k.expr_spans[e], limit, rows));
    }
    k.children(e).into_iter().find_map(|child| in_expr(k, child, var))
}

/// Whether an expression is the value that a mask writes for elements without weight.
fn is_lowest(k: &Kernel, e: Expr) -> bool {
    match &k.exprs[e] {
        ExprData::Float(x) => f64::from_bits(*x) == f64::NEG_INFINITY,
        ExprData::Op { op: Op::Neg, args } => {
            matches!(k.exprs[args[0]], ExprData::Float(x) if f64::from_bits(x) == f64::INFINITY)
        }
        _ => false,
    }
}

/// X of `j + iota(s, 1) <= X + iota(s, 0)`, with the tile of the second `iota` and its dimension.
fn last_position(k: &Kernel, cond: Expr, var: Value) -> Option<(Expr, (Value, usize))> {
    let ExprData::Op { op, args } = &k.exprs[cond] else { return None };
    let (small, large) = match (op, &args[..]) {
        (Op::Le | Op::Lt, &[a, b]) | (Op::Ge | Op::Gt, &[b, a]) => (a, b),
        _ => return None,
    };
    let (at, _) = with_iota(k, small)?;
    let is_var = matches!(k.exprs[at], ExprData::Ref(v) if v == var);
    with_iota(k, large).filter(|_| is_var)
}

/// X of `X + iota(s, 0)`, with the tile and its dimension.
fn with_iota(k: &Kernel, e: Expr) -> Option<(Expr, (Value, usize))> {
    let ExprData::Op { op: Op::Add, args } = &k.exprs[e] else { return None };
    let &[a, b] = &args[..] else { return None };
    let iota = |e: Expr| match k.exprs[e] {
        ExprData::Iota { axis, like } => Some((resolve_view(k, like)?.base, axis as usize)),
        _ => None,
    };
    iota(b).map(|own| (a, own)).or_else(|| iota(a).map(|own| (b, own)))
}
