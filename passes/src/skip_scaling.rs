//! `skip-scaling`: lets warps skip multiplications of a tile by one.
//!
//! ```text
//! let a = exp2(scale * (m - m_new))
//! o = o * a changing
//! ```
//!
//! Attention rescales its results in every iteration, because the largest score of a row may grow. After a few iterations it rarely grows: the factor is 1, and the
//! multiplication has no effect. A warp tests its factors (a comparison for each, and a vote) and skips the multiplications if all are 1.
//! The pass assumes that a factor is mostly 1 if it is 1 whenever the running extremes of the loop do not change.
//!
//! The branch prevents the assembler from interleaving code. In kernels with wgmma, which runs asynchronously, that costs nothing (H200, heads of 128: 2048 keys equal, 8192 keys 3.7 %
//! faster, causal 1.9 %). With `mma.sync` it does (sm_80 code, heads of 64 and 128: up to 3 % slower), so there all factors are multiplied.
//!
//! Needs: layouts; roles (`expand`). Decides: which multiplications are `changing`. Switched off: nothing is skipped.

use crate::Cx;
use crate::analysis::uses::all_stmts;
use crate::analysis::wgmma::is_product;
use crate::rewrite::same_expr;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::lanes::scaling;
use tilec_ir::names::Parts;
use tilec_ir::ops::Op;
use tilec_ir::types::Lanes;
use tilec_ir::typing::{layout_of, let_init};

pub(crate) const NAME: &str = "skip-scaling";

/// Fewest elements that a thread multiplies by one factor: fewer are multiplied in the time of the vote.
const WORTH: u64 = 16;

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled || !all_stmts(k, k.body).into_iter().any(|s| is_product(k, s)) {
        return Ok(());
    }
    for s in all_stmts(k, k.body) {
        if let Some(factor) = scaling(k, s).filter(|&v| k.lanes[s].is_none() && is_worth(k, s, v)) {
            let (dst, factor) = (destination(k, s), k.values[factor].name.clone());
            k.lanes[s] = Some(Lanes::Changing);
            let name = k.values[dst].name.clone();
            cx.remark(
                k.stmt_spans[s],
                format!("a warp skips the scaling of `{name}` if `{factor}` is 1 in all its lanes"),
            );
        }
    }
    Ok(())
}

fn destination(k: &Kernel, s: Stmt) -> Value {
    let StmtData::Assign { dst, .. } = k.stmts[s] else { unreachable!("a scaling is assigned") };
    dst
}

/// Whether a thread multiplies many elements by few factors that are usually 1.
fn is_worth(k: &Kernel, s: Stmt, factor: Value) -> bool {
    let held = |v: Value| k.tile_ty(v).and_then(|t| t.reg_layout.clone()).map(|l| 1u64 << l.value_bits().min(32));
    let Some(init) = let_init(k, factor) else { return false };
    let (Some(elements), Some(factors)) = (held(destination(k, s)), layout_of(k, init)) else { return false };
    elements >= WORTH << factors.value_bits().min(32) && matches!(known_value(k, init), Some(KnownValue::One))
}

/// The value of an expression if the loop's extremes do not change.
#[derive(Clone, Debug)]
enum KnownValue {
    Zero,
    One,
    /// A loop-carried tile, multiplied by these factors, negated if the flag is set.
    Kept {
        tile: Value,
        by: Vec<Expr>,
        negative: bool,
    },
}

impl KnownValue {
    fn negated(self) -> Option<KnownValue> {
        match self {
            KnownValue::Zero => Some(KnownValue::Zero),
            KnownValue::One => None,
            KnownValue::Kept { tile, by, negative } => Some(KnownValue::Kept { tile, by, negative: !negative }),
        }
    }

    fn multiplied(self, k: &Kernel, e: Expr) -> Option<KnownValue> {
        match (self, &k.exprs[e]) {
            (KnownValue::Kept { tile, by, negative }, ExprData::Op { op: Op::Neg, args }) => {
                KnownValue::Kept { tile, by, negative: !negative }.multiplied(k, args[0])
            }
            (KnownValue::Kept { tile, mut by, negative }, _) => {
                by.push(e);
                Some(KnownValue::Kept { tile, by, negative })
            }
            _ => None,
        }
    }

    fn plus(self, k: &Kernel, other: &KnownValue) -> Option<KnownValue> {
        match (&self, other) {
            (KnownValue::Zero, KnownValue::Zero) => Some(KnownValue::Zero),
            (KnownValue::Kept { tile: v, by: x, negative: m }, KnownValue::Kept { tile: w, by: y, negative: n }) => {
                let same = v == w && x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| same_expr(k, x, y));
                (same && m != n).then_some(KnownValue::Zero)
            }
            _ => None,
        }
    }
}

fn known_value(k: &Kernel, e: Expr) -> Option<KnownValue> {
    k.by_names(e, |e, known| known_value_with(k, e, known))
}

/// [`known_value`], with the known values of names in the expression.
fn known_value_with(k: &Kernel, e: Expr, known: &BTreeMap<Value, Option<KnownValue>>) -> Option<KnownValue> {
    match &k.exprs[e] {
        ExprData::Ref(v) => match let_init(k, *v) {
            Some(_) => known.get(v).cloned().flatten(),
            None => keeps_extreme(k, *v).then(|| KnownValue::Kept { tile: *v, by: Vec::new(), negative: false }),
        },
        ExprData::Op { op, args } => match (op, &args[..]) {
            // It has not grown.
            (Op::Max | Op::Min, &[a, b]) => kept(k, a, known).or_else(|| kept(k, b, known)),
            (Op::Add, &[a, b]) => known_value_with(k, a, known)?.plus(k, &known_value_with(k, b, known)?),
            (Op::Sub, &[a, b]) => known_value_with(k, a, known)?.plus(k, &known_value_with(k, b, known)?.negated()?),
            (Op::Neg, &[a]) => known_value_with(k, a, known)?.negated(),
            (Op::Mul, &[a, b]) => match (known_value_with(k, a, known), known_value_with(k, b, known)) {
                (Some(KnownValue::Zero), _) | (_, Some(KnownValue::Zero)) => Some(KnownValue::Zero),
                (Some(own), None) => own.multiplied(k, b),
                (None, Some(own)) => own.multiplied(k, a),
                _ => None,
            },
            (Op::Exp | Op::Exp2, &[a]) => {
                matches!(known_value_with(k, a, known)?, KnownValue::Zero).then_some(KnownValue::One)
            }
            _ => None,
        },
        _ => None,
    }
}

fn kept(k: &Kernel, e: Expr, known: &BTreeMap<Value, Option<KnownValue>>) -> Option<KnownValue> {
    known_value_with(k, e, known).filter(|s| matches!(s, KnownValue::Kept { by, negative: false, .. } if by.is_empty()))
}

/// Whether a register tile only changes to the maximum, or minimum, of itself and something else.
fn keeps_extreme(k: &Kernel, v: Value) -> bool {
    let mut changed = false;
    let only = all_stmts(k, k.body).into_iter().all(|s| match k.stmts[s] {
        StmtData::Assign { dst, src } if dst == v => {
            changed = true;
            is_extreme_of(k, src, v)
        }
        StmtData::Copy { dst, .. } => !matches!(k.exprs[dst], ExprData::Ref(w) if w == v),
        _ => true,
    });
    matches!(k.values[v].def, ValueDef::Var(_)) && changed && only
}

fn is_extreme_of(k: &Kernel, e: Expr, v: Value) -> bool {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match k.exprs[e] {
            ExprData::Ref(w) if w == v => return true,
            ExprData::Ref(_) | ExprData::Op { op: Op::Max | Op::Min, .. } => parts.inside(e),
            _ => {}
        }
    }
    false
}
