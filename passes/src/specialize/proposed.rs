//! Preconditions that messages propose: not those that the given sizes contradict, and in place of those that follow from
//! them.

use crate::Options;
use crate::refusal::required;
use tilec_ir::diag::Edit;
use tilec_ir::entities::Expr;
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::same_product;

/// How a size compares with a number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    Equal,
    AtLeast,
    AtMost,
    Multiple,
}

/// A proposed precondition.
#[derive(Copy, Clone, Debug)]
pub(super) struct Proposed {
    pub(super) size: Expr,
    pub(super) relation: Relation,
    pub(super) n: i64,
}

impl Proposed {
    /// As it is written.
    fn text(self, k: &Kernel) -> String {
        let (size, n) = (print_expr(k, self.size), self.n);
        match self.relation {
            Relation::Equal => format!("{size} == {n}"),
            Relation::AtLeast => format!("{size} >= {n}"),
            Relation::AtMost => format!("{size} <= {n}"),
            Relation::Multiple => format!("{size} % {n} == 0"),
        }
    }

    /// Whether it is false for the given sizes.
    pub(super) fn is_contradicted(self, k: &Kernel, options: &Options) -> bool {
        let given = |e: Expr| match k.exprs[e] {
            ExprData::Ref(v) => options.sizes.iter().rev().find(|(name, _)| *name == k.values[v].name).map(|(_, x)| *x),
            _ => None,
        };
        index::int(&OfKernel::new(k, given), self.size).is_some_and(|x| match self.relation {
            Relation::Equal => x != self.n,
            Relation::AtLeast => x < self.n,
            Relation::AtMost => x > self.n,
            Relation::Multiple => x.checked_rem(self.n) != Some(0),
        })
    }

    /// The precondition that follows from it.
    pub(super) fn replaced(self, k: &Kernel) -> Option<Expr> {
        k.requires.iter().copied().find(|&e| !k.expr_spans[e].is_none() && self.implies(k, e))
    }

    fn implies(self, k: &Kernel, e: Expr) -> bool {
        let ExprData::Op { op, args } = &k.exprs[e] else { return false };
        let &[own, other] = &args[..] else { return false };
        let Some(m) = k.as_int(other) else { return false };
        if let ExprData::Op { op: Op::Rem, args: of } = &k.exprs[own] {
            let divides = k.as_int(of[1]).is_some_and(|d| self.n.checked_rem(d) == Some(0));
            let exact = matches!(self.relation, Relation::Equal | Relation::Multiple);
            return *op == Op::Eq && m == 0 && exact && divides && same_product(k, of[0], self.size);
        }
        let follows = match (self.relation, op) {
            (Relation::Equal | Relation::AtMost, Op::Le) => self.n <= m,
            (Relation::Equal | Relation::AtMost, Op::Lt) => self.n < m,
            (Relation::Equal | Relation::AtLeast, Op::Ge) => self.n >= m,
            (Relation::Equal | Relation::AtLeast, Op::Gt) => self.n > m,
            _ => false,
        };
        follows && same_product(k, own, self.size)
    }

    /// The change of the source that declares it.
    pub(super) fn edit(self, k: &Kernel) -> Option<Edit> {
        match self.replaced(k) {
            Some(e) => Some(Edit { span: k.expr_spans[e], behind: None, text: self.text(k), means: Some(MEANS) }),
            None => required(k, &self.text(k)),
        }
    }

    /// As a clause, with what it replaces.
    pub(super) fn in_words(self, k: &Kernel) -> String {
        let instead = self.replaced(k).map_or_else(String::new, |e| format!(", in place of `{}`", print_expr(k, e)));
        format!("`where {}`{instead}", self.text(k))
    }
}

/// What a reader of the change is told.
const MEANS: &str = "fewer sizes are accepted then";
