//! Sizes that are 0. All others are at least 1.

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::ops::Op;

/// The preconditions that do not say that a size is 0.
#[must_use]
pub fn but_for_zeros(k: &Kernel) -> Vec<Expr> {
    k.requires.iter().copied().filter(|&e| zeros_of(k, vec![e]).is_empty()).collect()
}

/// The sizes that are 0, by preconditions: `where K == 0`. All others are at least 1.
#[must_use]
pub fn zero_sizes(k: &Kernel) -> Vec<Value> {
    zeros_of(k, k.requires.clone())
}

fn zeros_of(k: &Kernel, mut work: Vec<Expr>) -> Vec<Value> {
    let mut found = Vec::new();
    while let Some(e) = work.pop() {
        match &k.exprs[e] {
            ExprData::Op { op: Op::And, args } => work.extend(args),
            ExprData::Op { op: Op::Eq, args } => match (&k.exprs[args[0]], &k.exprs[args[1]]) {
                (ExprData::Ref(v), ExprData::Int(0)) | (ExprData::Int(0), ExprData::Ref(v))
                    if matches!(k.values[*v].def, ValueDef::Size) && !found.contains(v) =>
                {
                    found.push(*v);
                }
                _ => {}
            },
            _ => {}
        }
    }
    found
}
