//! Comparisons of positions in a tile, as in masks of its edge: `j + iota(s, 1) <= i * 128 + iota(s, 0)`.
//!
//! Each side is the sum of a part that depends on the thread and a part that depends on the element, which is a literal
//! here. So a thread subtracts its own parts once, and compares the difference with a literal for each element. It need
//! not compute and hold a coordinate for each element.

use super::ranged_ints::Int;
use super::scope::Scope;
use super::state::Lower;
use crate::inst::{Class, Operand};
use crate::ops::Op as P;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ExprData;
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op;
use tilec_ir::types::Elem;

/// Numbers of a group of elements: the sum of a part per thread (`own`) and a literal per element (`known`).
pub(super) struct Counted {
    pub(super) own: Vec<Int>,
    pub(super) known: Vec<i64>,
    /// A power of two that divides all numbers in `own`, or 0 if they are 0.
    pub(super) divisor: u64,
}

impl Counted {
    /// The same literal for each element, without a thread's part.
    pub(super) fn same(known: i64, elements: usize) -> Counted {
        Counted { own: vec![Int::constant(0); elements], known: vec![known; elements], divisor: 0 }
    }
}

/// A divisor of the sum of multiples of two powers of two; every number divides 0.
pub(super) fn common(a: u64, b: u64) -> u64 {
    let all = a | b;
    all & all.wrapping_neg()
}

/// A literal that can replace `known` in the comparison `literal op x` for all multiples `x` of `divisor`. Elements
/// between two adjacent multiples get the same literal, so they share the comparison.
pub(super) fn shared_literal(op: Op, known: i64, divisor: u64) -> i64 {
    let Ok(divisor @ 1..) = i64::try_from(divisor) else { return known };
    let below = known - known.rem_euclid(divisor);
    match op {
        // No multiple is between `below` and `known`, so both compare alike.
        Op::Lt | Op::Ge => below,
        Op::Le | Op::Gt if below < known => below.checked_add(divisor).unwrap_or(known),
        _ => known,
    }
}

impl Lower<'_> {
    /// Whether an `iota` is a term of this sum of 32-bit integers.
    pub(super) fn counts(&self, e: Expr) -> bool {
        match &self.k.exprs[e] {
            ExprData::Iota { .. } => self.elem_of_expr(e) == Some(Elem::I32),
            ExprData::Op { op: Op::Add | Op::Sub, args } => args.iter().any(|&a| self.counts(a)),
            _ => false,
        }
    }

    /// The coordinates of elements along an axis: a part from bits of the thread's number, and one from other bits of
    /// the element's register index.
    pub(super) fn coordinates(&mut self, scope: &Scope, axis: usize, group: &[usize]) -> Option<Counted> {
        let shift: u32 = scope.dim_bits[..axis].iter().sum();
        let mask = (1u64 << scope.dim_bits[axis]) - 1;
        let of_thread = |layout: &RegLayout| -> Vec<u64> {
            (0..layout.thread_bits()).map(|i| layout.thread_col(i) >> shift & mask).collect()
        };
        let cols = of_thread(&scope.layout);
        let taken = cols.iter().fold(0, |all, col| all | col);
        let known: Vec<u64> = group.iter().map(|&v| scope.layout.at(0, v as u64) >> shift & mask).collect();
        if known.iter().any(|c| c & taken != 0) {
            return None;
        }
        let tid = self.tid();
        let own = self.linear_map(tid, &cols);
        let known = known.into_iter().map(|c| c as i64).collect();
        Some(Counted { own: vec![own; group.len()], known, divisor: common(taken, 0) })
    }

    /// The coordinate along `axis` of the element with register index `v`.
    pub(super) fn coordinate(&mut self, scope: &Scope, axis: usize, v: usize) -> super::ranged_ints::Int {
        let shift: u32 = scope.dim_bits[..axis].iter().sum();
        let mask = (1u64 << scope.dim_bits[axis]) - 1;
        let cols: Vec<u64> =
            (0..scope.layout.thread_bits()).map(|i| scope.layout.thread_col(i) >> shift & mask).collect();
        let tid = self.tid();
        let thread = self.linear_map(tid, &cols);
        let c = scope.layout.at(0, v as u64) >> shift & mask;
        match thread.as_const() {
            Some(_) => super::ranged_ints::Int::constant(c as i64),
            None => {
                let t = self.in32(thread);
                let x = self.emit.pure(Class::B32, P::XorB32, [t.into(), Operand::Imm(c as i64)]);
                super::ranged_ints::Int::r32(x, 0, i128::from(mask))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{common, shared_literal};
    use tilec_ir::ops::Op;

    fn holds(op: Op, a: i64, b: i64) -> bool {
        match op {
            Op::Lt => a < b,
            Op::Le => a <= b,
            Op::Gt => a > b,
            Op::Ge => a >= b,
            Op::Eq => a == b,
            _ => a != b,
        }
    }

    #[test]
    fn a_shared_literal_decides_the_same_of_all_multiples() {
        for op in [Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne] {
            for divisor in [0, 1, 2, 8] {
                for known in -17..=17 {
                    let literal = shared_literal(op, known, divisor);
                    for multiple in -4..=4 {
                        let x = multiple * divisor as i64;
                        assert_eq!(holds(op, literal, x), holds(op, known, x), "{op:?} {known} {divisor} {x}");
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_between_two_multiples_share_a_literal() {
        let literals = |op| (8..16).map(|known| shared_literal(op, known, 8)).collect::<Vec<_>>();
        assert_eq!(literals(Op::Lt), [8; 8]);
        assert_eq!(literals(Op::Ge), [8; 8]);
        assert_eq!(literals(Op::Le)[1..], [16; 7]);
        assert_eq!(shared_literal(Op::Lt, 9, 0), 9);
    }

    #[test]
    fn sums_have_the_smaller_power_of_two() {
        assert_eq!([common(8, 32), common(0, 4), common(0, 0), common(24, 0)], [8, 4, 0, 8]);
    }
}
