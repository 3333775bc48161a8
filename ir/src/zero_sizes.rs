//! Sizes that are 0. All others are at least 1.
//!
//! `where K >= 0` means that a size may also be 0. Such a kernel has two versions, one for `K == 0` and one for all
//! other sizes ([`may_be_zero`]).

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::ops::Op;

/// The preconditions that do not say that a size is 0.
#[must_use]
pub fn nonzero_preconditions(k: &Kernel) -> Vec<Expr> {
    k.requires.iter().copied().filter(|&e| zeros_of(k, vec![e]).is_empty()).collect()
}

/// The sizes that are 0, by preconditions: `where K == 0`. All others are at least 1.
#[must_use]
pub fn zero_sizes(k: &Kernel) -> Vec<Value> {
    zeros_of(k, k.requires.clone())
}

/// The sizes that may be 0, by preconditions (`where K >= 0`), and are not known to be.
#[must_use]
pub fn may_be_zero(k: &Kernel) -> Vec<Value> {
    let zeros = zero_sizes(k);
    let mut found = Vec::new();
    for v in conjuncts(k, k.requires.clone()).into_iter().filter_map(|e| at_least_none(k, e)) {
        if !zeros.contains(&v) && !found.contains(&v) {
            found.push(v);
        }
    }
    found
}

/// A kernel for these of the sizes that may be 0 being it, and the others at least 1.
#[must_use]
pub fn with_zeros(k: &Kernel, zeros: &[Value]) -> Kernel {
    let mut own = k.clone();
    let promises = |e: &Expr| conjuncts(k, vec![*e]).into_iter().any(|e| at_least_none(k, e).is_some());
    let kept = k.requires.iter().flat_map(|e| if promises(e) { conjuncts(k, vec![*e]) } else { vec![*e] });
    own.requires = kept.filter(|&e| at_least_none(k, e).is_none()).collect();
    for &v in zeros {
        let span = k.values[v].span;
        let (size, zero) = (own.value_ref(v, span), own.int(0, span));
        let is_zero = own.binary(Op::Eq, size, zero, span);
        own.requires.push(is_zero);
    }
    own
}

/// The size that a precondition states to be at least 0.
fn at_least_none(k: &Kernel, e: Expr) -> Option<Value> {
    let ExprData::Op { op, args } = &k.exprs[e] else { return None };
    let (size, least) = match (op, &args[..]) {
        (Op::Ge, &[size, least]) | (Op::Le, &[least, size]) => (size, least),
        _ => return None,
    };
    match (&k.exprs[size], &k.exprs[least]) {
        (ExprData::Ref(v), ExprData::Int(0)) if matches!(k.values[*v].def, ValueDef::Size) => Some(*v),
        _ => None,
    }
}

/// The conditions that hold together where these do: the sides of each `&&`.
fn conjuncts(k: &Kernel, mut work: Vec<Expr>) -> Vec<Expr> {
    let mut found = Vec::new();
    work.reverse();
    while let Some(e) = work.pop() {
        match &k.exprs[e] {
            ExprData::Op { op: Op::And, args } => work.extend(args.iter().rev()),
            _ => found.push(e),
        }
    }
    found
}

fn zeros_of(k: &Kernel, conditions: Vec<Expr>) -> Vec<Value> {
    let mut found = Vec::new();
    for e in conjuncts(k, conditions) {
        let ExprData::Op { op: Op::Eq, args } = &k.exprs[e] else { continue };
        match (&k.exprs[args[0]], &k.exprs[args[1]]) {
            (ExprData::Ref(v), ExprData::Int(0)) | (ExprData::Int(0), ExprData::Ref(v))
                if matches!(k.values[*v].def, ValueDef::Size) && !found.contains(v) =>
            {
                found.push(*v);
            }
            _ => {}
        }
    }
    found
}
