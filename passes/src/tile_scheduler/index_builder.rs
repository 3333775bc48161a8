//! Construction of expressions for the tile scheduler, and names for them.

use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;

/// A builder of expressions and names.
pub(super) struct IndexBuilder<'k> {
    pub(super) k: &'k mut Kernel,
    pub(super) span: Span,
    /// The declarations of the names.
    pub(super) stmts: Vec<Stmt>,
}

/// An operand of an expression under construction.
pub(super) trait Term {
    fn expr(self, m: &mut IndexBuilder<'_>) -> Expr;
}

impl Term for Expr {
    fn expr(self, _: &mut IndexBuilder<'_>) -> Expr {
        self
    }
}

impl Term for Value {
    fn expr(self, m: &mut IndexBuilder<'_>) -> Expr {
        m.k.value_ref(self, m.span)
    }
}

impl Term for i64 {
    fn expr(self, m: &mut IndexBuilder<'_>) -> Expr {
        m.k.int(self, m.span)
    }
}

impl IndexBuilder<'_> {
    pub(super) fn op(&mut self, op: Op, a: impl Term, b: impl Term) -> Expr {
        let (a, b) = (a.expr(self), b.expr(self));
        self.k.binary(op, a, b, self.span)
    }

    /// `a`, clamped to the bounds.
    pub(super) fn within(&mut self, low: impl Term, a: impl Term, high: impl Term) -> Expr {
        let below = self.op(Op::Min, a, high);
        self.op(Op::Max, below, low)
    }

    /// A comparison. Unlike with [`IndexBuilder::op`], it is not folded.
    pub(super) fn compare(&mut self, op: Op, a: impl Term, b: impl Term) -> Expr {
        let args = vec![a.expr(self), b.expr(self)];
        self.k.expr(ExprData::Op { op, args }, self.span)
    }

    pub(super) fn select(&mut self, cond: Expr, a: impl Term, b: impl Term) -> Expr {
        let args = vec![cond, a.expr(self), b.expr(self)];
        self.k.expr(ExprData::Op { op: Op::Select, args }, self.span)
    }

    pub(super) fn name(&mut self, name: &str, init: Expr) -> Value {
        let value = self.k.value(name, self.span, ValueDef::Let);
        let s = self.k.stmt(StmtData::Let { value, init }, self.span);
        self.stmts.push(s);
        value
    }
}
