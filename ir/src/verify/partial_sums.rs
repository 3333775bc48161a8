//! Rule 31: statements may change a tile of partial sums only in ways that commute with the sum. Only copies that
//! combine the parts read it.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::ReduceOp;
use crate::partial_sums::{accumulated, is_zero, reads};
use crate::target::WARP;
use crate::types::{Partial, TileTy};
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let tiles: Vec<(Value, &TileTy, &Partial)> = k
        .values
        .iter()
        .filter_map(|(v, data)| match &data.def {
            ValueDef::Var(t) => t.partial.as_ref().map(|partial| (v, t, partial)),
            _ => None,
        })
        .collect();
    for (v, tile, partial) in tiles {
        lanes(cx, v, tile, partial);
        let mut stmts = Vec::new();
        k.walk(k.body, &mut |_, _, s| stmts.push(s));
        for s in stmts {
            if let Some((span, why)) = broken(k, s, v, tile, partial) {
                let d = Diagnostic::error(codes::BAD_PARTIAL, span, why);
                let begins = matches!(k.stmts[s], StmtData::Var { .. });
                let d = if begins { d.with_fix(span, "0") } else { d };
                cx.report(d.with_note(
                    "`copy x -> y` combines the parts of `x`; leave `partial` out to have every lane hold the value",
                ));
            }
        }
    }
}

/// Checks that lanes whose numbers differ only in the given bits hold the same elements.
fn lanes(cx: &mut Cx<'_, '_>, v: Value, tile: &TileTy, partial: &Partial) {
    let (span, name) = (cx.k.values[v].span, cx.name(v).to_owned());
    let ascending = partial.lanes.windows(2).all(|w| w[0] < w[1]);
    let why = match &tile.reg_layout {
        _ if tile.shape.is_empty() || !ascending => {
            format!("`{name}` is no tile of parts: bits of a lane's number, in ascending order")
        }
        None => format!("lanes hold parts of `{name}`, which has no layout"),
        Some(layout) => {
            let one = |&&l: &&u32| l >= WARP.ilog2() || l >= layout.thread_bits() || layout.thread_col(l) != 0;
            let Some(l) = partial.lanes.iter().find(one) else { return };
            format!(
                "lanes that differ in bit {l} have no parts of one element of `{name}`: its layout tells them apart"
            )
        }
    };
    let d = Diagnostic::error(codes::BAD_PARTIAL, span, why);
    cx.report(
        d.with_note("a thread mode of stride 0 repeats the tile: `layout ((4,8),2):((0,1),8) partial sum (0, 1)`"),
    );
}

/// The first operation of a statement that is not allowed on partial sums, and the reason.
fn broken(k: &Kernel, s: Stmt, v: Value, tile: &TileTy, partial: &Partial) -> Option<(Span, String)> {
    let name = &k.values[v].name;
    let is_v = |e| matches!(k.exprs[e], ExprData::Ref(w) if w == v);
    match &k.stmts[s] {
        StmtData::Var { value, init: Some(e) } if *value == v => {
            let fits = partial.op != ReduceOp::Sum || is_zero(k, *e);
            (!fits).then(|| {
                (
                    k.expr_spans[*e],
                    format!("each lane would add this to its part of `{name}`: a sum of parts begins with 0"),
                )
            })
        }
        StmtData::Assign { dst, src } if *dst == v => accumulated(k, v, partial.op, *src).is_none().then(|| {
            let what = if reads(k, *src, v) { "reads the value of" } else { "is no part of" };
            (k.expr_spans[*src], format!("this {what} `{name}`, whose value is partial in each lane"))
        }),
        StmtData::Copy { src, dst, .. } if is_v(*dst) => {
            Some((k.expr_spans[*src], format!("this is not a part of `{name}`, whose value is partial in each lane")))
        }
        StmtData::Copy { src, dst, .. } if is_v(*src) => {
            let whole = match k.exprs[*dst] {
                ExprData::Ref(w) => k.tile_ty(w).filter(|_| matches!(k.values[w].def, ValueDef::Var(_))),
                _ => None,
            };
            let fits = whole.is_some_and(|to| {
                to.partial.is_none() && to.elem == tile.elem && k.const_shape(&to.shape) == k.const_shape(&tile.shape)
            });
            (!fits)
                .then(|| (k.expr_spans[*src], format!("parts of `{name}` are combined in a register tile of its type")))
        }
        other => {
            let e = other.exprs().into_iter().find(|&e| reads(k, e, v))?;
            Some((k.expr_spans[e], format!("this reads `{name}`, whose value is partial in each lane")))
        }
    }
}
