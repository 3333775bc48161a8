//! Exponents that contain a running extreme, and the scale of their exponentials.

use super::dependence_kind::{Kind, Last};
use crate::rewrite::same_expr;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::{Op, ReduceOp};

/// The factors of an extreme; divisors if true.
pub(super) type By = Vec<(Expr, bool)>;

/// An extreme in an exponent.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) extreme: Value,
    /// Where it was computed in this iteration; `None`: in the previous iteration.
    pub(super) last: Option<Last>,
    pub(super) by: By,
    pub(super) negative: bool,
}

/// A sum of extremes and of other terms.
#[derive(Clone, PartialEq)]
pub(super) struct Exponent {
    pub(super) terms: Vec<Term>,
    pub(super) rest: Kind,
}

/// The exponents, and the factors of their extremes for each kind of exponential.
#[derive(Default)]
pub(super) struct Scales {
    pub(super) exponents: Vec<Exponent>,
    by: Vec<(By, Op)>,
}

impl Scales {
    /// A value as part of an exponent.
    pub(super) fn exponent(&self, kind: Kind) -> Option<Exponent> {
        let extreme = |extreme, last| Exponent {
            terms: vec![Term { extreme, last, by: By::new(), negative: false }],
            rest: Kind::Zero,
        };
        match kind {
            Kind::Old(v) | Kind::Safe(v, None) => Some(extreme(v, None)),
            Kind::Grown(v, ReduceOp::Maximum | ReduceOp::Minimum, Some(last)) | Kind::Safe(v, Some(last)) => {
                Some(extreme(v, Some(last)))
            }
            Kind::Exponent(at) => Some(self.exponents[at as usize].clone()),
            Kind::Zero | Kind::Fixed | Kind::Each { .. } => Some(Exponent { terms: Vec::new(), rest: kind }),
            _ => None,
        }
    }

    pub(super) fn kind(&mut self, exponent: Exponent) -> Kind {
        if exponent.terms.is_empty() {
            return exponent.rest;
        }
        let at = self.exponents.iter().position(|known| *known == exponent).unwrap_or_else(|| {
            self.exponents.push(exponent);
            self.exponents.len() - 1
        });
        Kind::Exponent(at as u32)
    }

    /// The number of a combination of factors and kind of exponential.
    pub(super) fn by(&mut self, k: &Kernel, by: &By, op: Op) -> u32 {
        let same = |(other, of): &(By, Op)| *of == op && same_factors(k, other, by);
        let at = self.by.iter().position(same).unwrap_or_else(|| {
            self.by.push((by.clone(), op));
            self.by.len() - 1
        });
        at as u32
    }
}

/// Whether both have the same factors, in any order.
pub(super) fn same_factors(k: &Kernel, a: &By, b: &By) -> bool {
    let mut rest = b.clone();
    a.len() == b.len()
        && a.iter().all(|&(x, divides)| {
            let at = rest.iter().position(|&(y, other)| divides == other && same_expr(k, x, y));
            at.map(|at| rest.swap_remove(at)).is_some()
        })
}

/// The factors of a number that multiplies or divides.
pub(super) fn factors(k: &Kernel, (e, divides): (Expr, bool)) -> By {
    match &k.exprs[e] {
        ExprData::Op { op: Op::Mul, args } => args.iter().flat_map(|&arg| factors(k, (arg, divides))).collect(),
        ExprData::Op { op: Op::Div, args } => {
            [(args[0], divides), (args[1], !divides)].into_iter().flat_map(|by| factors(k, by)).collect()
        }
        _ => vec![(e, divides)],
    }
}
