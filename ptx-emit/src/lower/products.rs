//! Bounds of products of sizes, known or from preconditions.

use super::ranged_ints::{Int, Repr};
use super::state::Lower;
use crate::inst::Class;
use crate::ops::Op as P;
use tilec_ir::entities::Expr;
use tilec_ir::extents::{least, promised};
use tilec_ir::index::Interval;
use tilec_ir::kernel::ExprData;
use tilec_ir::ops::Op;
use tilec_ir::typing::factors;

impl Lower<'_> {
    /// The largest value of a product of extents and indices below them that is itself an extent; `None` if it is not
    /// known.
    pub(super) fn bound_of_product(&self, e: Expr) -> Option<i128> {
        if self.extents.is_empty() {
            return None;
        }
        // A grid index is less than its extent.
        let (mut list, mut work) = (Vec::new(), vec![e]);
        while let Some(e) = work.pop() {
            match &self.k.exprs[e] {
                ExprData::Op { op: Op::Mul, args } => work.extend(args),
                ExprData::Ref(v) => list.push(self.k.grid.iter().find(|g| g.index == *v).map_or(e, |g| g.extent)),
                _ => list.push(e),
            }
        }
        let (literal, others) = factors(self.k, &list);
        least(&self.extents, (literal, &others))
    }

    /// The largest value of an index according to the preconditions, if they bound it.
    pub(super) fn promised(&self, e: Expr) -> Option<i128> {
        promised(self.k, &self.promised, e)
    }

    /// `a op b`, the value of index `e`, with a tighter range than those of `a` and `b` give.
    pub(super) fn known_op(&mut self, e: Expr, op: Op, [a, b]: [Int; 2]) -> Option<Int> {
        let wide = |x: Interval| x.hi > i128::from(i32::MAX);
        let most =
            Interval::of(op, a.interval(), b.interval()).filter(|&x| wide(x)).and_then(|_| self.ranges.upper_bound(e));
        match most {
            Some(most) if op == Op::Mul && a.lo >= 0 && b.lo >= 0 => Some(self.bounded_product(a, b, most)),
            _ => {
                let x = self.int_op(op, a, b)?;
                Some(most.map_or(x, |most| Int { lo: x.lo.min(most), hi: x.hi.min(most), ..x }))
            }
        }
    }

    /// The product `e` of two numbers if only a precondition proves that it, or a factor, fits 64 bits.
    pub(super) fn promised_product(&mut self, e: Expr, [a, b]: [(Expr, Int); 2]) -> Option<Int> {
        if let Some(bound) = self.promised(e) {
            return Some(self.bounded_product(a.1, b.1, bound));
        }
        let [a, b] = [a, b].map(|(e, x)| match self.promised(e) {
            Some(most) => Int { lo: x.lo.min(most), hi: x.hi.min(most), ..x },
            None => x,
        });
        self.int_op(Op::Mul, a, b)
    }

    /// `a * b` of non-negative numbers whose product is at most `bound`.
    pub(super) fn bounded_product(&mut self, a: Int, b: Int, bound: i128) -> Int {
        let simple = |x: Int| x.as_const().is_some_and(|x| x == 0 || x == 1);
        let known = a.as_const().is_some() && b.as_const().is_some();
        if (known || simple(a) || simple(b))
            && let Some(product) = self.int_op(Op::Mul, a, b)
        {
            return product;
        }
        let (a, b) = if a.as_const().is_some() { (b, a) } else { (a, b) };
        let (lo, hi) = (a.lo.saturating_mul(b.lo).clamp(0, bound), a.hi.saturating_mul(b.hi).clamp(0, bound));
        let narrow = [a.hi, b.hi, hi].iter().all(|&x| x <= i128::from(i32::MAX));
        if narrow {
            let (x, y) = (self.as32(a), self.as32(b));
            return Int::r32(self.emit.pure(Class::B32, P::MulLoS32, [x, y]), lo, hi);
        }
        let (x, y) = (self.as64(a), self.as64(b));
        Int { repr: Repr::R64(self.emit.pure(Class::B64, P::MulLoS64, [x, y])), lo, hi }
    }
}
