//! Index arithmetic (`tilec_core::index`) on the expressions of a kernel.

#[cfg(test)]
mod tests;

pub use tilec_core::index::*;

use crate::entities::Expr;
use crate::kernel::{ExprData, Kernel};

/// The expressions of a kernel; `leaf` knows the values of references, and of whatever else is not a literal and no operator.
pub struct OfKernel<'k, F> {
    k: &'k Kernel,
    leaf: F,
    partial: bool,
}

impl<'k, F: Fn(Expr) -> Option<i64>> OfKernel<'k, F> {
    /// The expressions of `k`, of which `leaf` may leave some open: what does not depend on these has a value.
    pub fn new(k: &'k Kernel, leaf: F) -> OfKernel<'k, F> {
        OfKernel { k, leaf, partial: true }
    }
}

impl<'k> OfKernel<'k, fn(Expr) -> Option<i64>> {
    /// The expressions of `k` that are made of literals alone.
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
