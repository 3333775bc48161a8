//! Index arithmetic (`tilec_core::index`) on the expressions of a kernel.

#[cfg(test)]
mod tests;

pub use tilec_core::index::*;

use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel};

/// Evaluates index expressions of a kernel; `leaf` gives the values of references and other leaves.
pub struct OfKernel<'k, F> {
    k: &'k Kernel,
    leaf: F,
    partial: bool,
}

impl<'k, F: Fn(Expr) -> Option<i64>> OfKernel<'k, F> {
    /// Expressions of `k`; those that depend on a leaf without a value have none.
    pub fn new(k: &'k Kernel, leaf: F) -> OfKernel<'k, F> {
        OfKernel { k, leaf, partial: true }
    }
}

impl<'k> OfKernel<'k, fn(Expr) -> Option<i64>> {
    /// Expressions of `k` made only of literals.
    pub fn literals(k: &'k Kernel) -> OfKernel<'k, fn(Expr) -> Option<i64>> {
        OfKernel { k, leaf: |_| None, partial: false }
    }
}

impl<F: Fn(Expr) -> Option<i64>> Tree for OfKernel<'_, F> {
    type Node = Expr;

    fn node(&self, at: Expr) -> Node<'_, Expr> {
        match &self.k.exprs[at] {
            ExprData::Int(x) => Node::Int(*x),
            ExprData::Op { op, args } => Node::Op(*op, args),
            _ => Node::Leaf,
        }
    }

    fn leaf(&self, at: Expr) -> Option<i64> {
        (self.leaf)(at)
    }

    fn partial(&self) -> bool {
        self.partial
    }
}
