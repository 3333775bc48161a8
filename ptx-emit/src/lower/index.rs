//! Operations on integers, in 32 bits if their range proves that enough.
//!
//! Divisions of values that cannot be negative become shifts, or are in `divide.rs`.

use super::ranged_ints::{Int, Repr, fits32};
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;
use tilec_ir::index::{self, Interval};
use tilec_ir::kernel::ExprData;
use tilec_ir::ops::Op;

impl Lower<'_> {
    /// Reports why an operation cannot be compiled: the divisor may not be positive, the shift may be negative, or the
    /// result may be too large.
    pub(super) fn overflow(&mut self, e: Expr, right: Option<(Op, Int)>) -> Reported {
        let text = tilec_ir::print::print_expr(self.k, e);
        let (message, note) = match right {
            Some((Op::Shl | Op::Shr, b)) if b.lo < 0 => (
                format!("`{text}` may shift by a negative number of bits"),
                "shift by what is not below 0: by a literal, or by `max(0, x)`",
            ),
            Some((Op::CeilDiv, b)) if b.lo < 1 && self.is_step(e) => (
                "the step of this loop may be 0 or negative".to_owned(),
                "a step is at least 1: give a literal, or `max(1, x)`",
            ),
            Some((Op::Div | Op::Rem | Op::CeilDiv, b)) if b.lo < 1 => (
                format!("the divisor of `{text}` may not be positive"),
                "sizes are at least 1: divide by one, by a literal, or by `max(1, x)`",
            ),
            _ => (
                format!("`{text}` may not fit 64 bits"),
                "sizes may be up to 2^31, strides up to 2^40; bound products of sizes (`where Z * H <= 65535`)",
            ),
        };
        let d = Diagnostic::error(codes::INDEX_OVERFLOW, self.k.expr_spans[e], message).with_note(note);
        let bounded = match (right, &self.k.exprs[e]) {
            (Some((Op::Shl | Op::Shr, b)), ExprData::Op { args, .. }) if b.lo < 0 => Some((args[1], "max(0, ")),
            (Some((Op::Div | Op::Rem | Op::CeilDiv, b)), ExprData::Op { args, .. }) if b.lo < 1 => {
                Some((args[1], "max(1, "))
            }
            _ => None,
        };
        self.sink.report(match bounded {
            Some((operand, front)) => d.with_fix_around(self.k.expr_spans[operand], front, ")"),
            None => d,
        })
    }

    /// Whether a division counts the iterations of a loop: it is written where the divisor is, as the loop's step.
    fn is_step(&self, e: Expr) -> bool {
        let spans = &self.k.expr_spans;
        matches!(&self.k.exprs[e], ExprData::Op { args, .. } if !spans[e].is_none() && spans[args[1]] == spans[e])
    }

    /// `~a`, `popcount(a)`; `None`: another operator.
    pub(super) fn int_of_bits(&mut self, op: Op, a: Int) -> Option<Int> {
        let Interval { lo, hi } = Interval::of_one(op, a.interval())?;
        if let Some(x) = a.as_const() {
            return Some(Int::constant(index::unary(op, x).ok()?.int()?));
        }
        // The bit count of a negative number is that of all 64 bits.
        let narrow = fits32(a.lo, a.hi) && (op == Op::BitNot || a.lo >= 0);
        let (x, pick) = if narrow { (self.as32(a), 0) } else { (self.as64(a), 1) };
        let (class, instr) = match op {
            Op::BitNot => [(Class::B32, P::NotB32), (Class::B64, P::NotB64)][pick],
            _ => (Class::B32, [P::PopcB32, P::PopcB64][pick]),
        };
        let reg = self.emit.pure(class, instr, [x]);
        Some(Int { repr: if class == Class::B32 { Repr::R32(reg) } else { Repr::R64(reg) }, lo, hi })
    }

    /// `a op b`; `None` if the result may not fit 64 bits, the divisor may not be positive or a shift may be negative.
    pub(super) fn int_op(&mut self, op: Op, a: Int, b: Int) -> Option<Int> {
        let Interval { lo, hi } = Interval::of(op, a.interval(), b.interval())?;
        if lo < i128::from(i64::MIN) || hi > i128::from(i64::MAX) {
            return None;
        }
        let known = [a.as_const(), b.as_const()];
        if let [Some(x), Some(y)] = known {
            return Some(Int::constant(index::binary(op, x, y).ok()?.int()?));
        }
        if index::is_zero(op, known) {
            return Some(Int::constant(0));
        }
        if let Some(operand) = index::unchanged(op, known) {
            return Some([a, b][operand]);
        }
        if op == Op::Mul && known[0].is_some() {
            return self.int_op(op, b, a);
        }
        if op == Op::CeilDiv {
            let one = Int::constant(1);
            let bias = self.int_op(Op::Sub, b, one)?;
            let sum = self.int_op(Op::Add, a, bias)?;
            // The range of the sum is too wide, because it is largest for the largest divisor.
            return self.int_op(Op::Div, sum, b).map(|x| Int { lo, hi, ..x });
        }
        let narrow = fits32(lo, hi) && fits32(a.lo, a.hi) && fits32(b.lo, b.hi);
        let shift = b.as_const().filter(|c| *c > 0 && c.count_ones() == 1).map(|c| i64::from(c.trailing_zeros()));
        if matches!(op, Op::Div | Op::Rem) && shift.is_none() && a.lo < 0 {
            return Some(self.floored(op, (a, b), (lo, hi), narrow));
        }
        if matches!(op, Op::Div | Op::Rem) && shift.is_none() && narrow {
            let (quotient, remainder) = self.divide32(a, b);
            let reg = if op == Op::Div { quotient } else { remainder };
            return Some(Int { repr: Repr::R32(reg), lo, hi });
        }
        let class = if narrow { Class::B32 } else { Class::B64 };
        let (x, y) = if narrow { (self.as32(a), self.as32(b)) } else { (self.as64(a), self.as64(b)) };
        let pick = |n: P, w: P| if narrow { n } else { w };
        if matches!(op, Op::Shl | Op::Shr) {
            let most = Int::constant(64);
            let by = if fits32(b.lo, b.hi) { b } else { self.int_op(Op::Min, b, most)? };
            let by = self.as32(Int { lo: by.lo.min(64), hi: by.hi.min(64), ..by });
            let instr = if op == Op::Shl { pick(P::ShlB32, P::ShlB64) } else { pick(P::ShrS32, P::ShrS64) };
            let x = match x {
                Operand::Reg(_) => x,
                literal => self.emit.pure(class, pick(P::MovB32, P::MovB64), [literal]).into(),
            };
            let reg = self.emit.pure(class, instr, [x, by]);
            return Some(Int { repr: if narrow { Repr::R32(reg) } else { Repr::R64(reg) }, lo, hi });
        }
        let (instr, y) = match (op, shift) {
            (Op::BitAnd, _) => (pick(P::AndB32, P::AndB64), y),
            (Op::BitOr, _) => (pick(P::OrB32, P::OrB64), y),
            (Op::BitXor, _) => (pick(P::XorB32, P::XorB64), y),
            (Op::Mul, Some(s)) => (pick(P::ShlB32, P::ShlB64), Operand::Imm(s)),
            (Op::Div, Some(s)) => (pick(P::ShrS32, P::ShrS64), Operand::Imm(s)),
            (Op::Rem, Some(s)) => (pick(P::AndB32, P::AndB64), Operand::Imm((1i64 << s) - 1)),
            (Op::Add, _) => (pick(P::AddS32, P::AddS64), y),
            (Op::Sub, _) => (pick(P::SubS32, P::SubS64), y),
            (Op::Mul, _) => (pick(P::MulLoS32, P::MulLoS64), y),
            // Truncation equals rounding down for non-negative numbers.
            (Op::Div, _) => (P::DivU64, y),
            (Op::Rem, _) => (P::RemU64, y),
            (Op::Min, _) => (pick(P::MinS32, P::MinS64), y),
            (Op::Max, _) => (pick(P::MaxS32, P::MaxS64), y),
            _ => return None,
        };
        let reg = self.emit.pure(class, instr, [x, y]);
        let repr = if narrow { Repr::R32(reg) } else { Repr::R64(reg) };
        Some(Int { repr, lo, hi })
    }

    /// `a / b` or `a % b` for an `a` that may be negative and a positive `b`. The machine truncates, so a negative
    /// remainder is corrected by one divisor.
    fn floored(&mut self, op: Op, (a, b): (Int, Int), (lo, hi): (i128, i128), narrow: bool) -> Int {
        let class = if narrow { Class::B32 } else { Class::B64 };
        let pick = |n: P, w: P| if narrow { n } else { w };
        let (x, y) = if narrow { (self.as32(a), self.as32(b)) } else { (self.as64(a), self.as64(b)) };
        let rest = self.emit.pure(class, pick(P::RemS32, P::RemS64), [x.clone(), y.clone()]);
        // All ones if the remainder is negative, else zero.
        let sign = Operand::Imm(if narrow { 31 } else { 63 });
        let below = self.emit.pure(class, pick(P::ShrS32, P::ShrS64), [rest.into(), sign]);
        let reg = if op == Op::Div {
            let quotient = self.emit.pure(class, pick(P::DivS32, P::DivS64), [x, y]);
            self.emit.pure(class, pick(P::AddS32, P::AddS64), [quotient.into(), below.into()])
        } else {
            let back = self.emit.pure(class, pick(P::AndB32, P::AndB64), [below.into(), y]);
            self.emit.pure(class, pick(P::AddS32, P::AddS64), [rest.into(), back.into()])
        };
        Int { repr: if narrow { Repr::R32(reg) } else { Repr::R64(reg) }, lo, hi }
    }

    /// A comparison as a predicate.
    pub(super) fn int_compare(&mut self, op: Op, a: Int, b: Int) -> Reg {
        let narrow = fits32(a.lo, a.hi) && fits32(b.lo, b.hi);
        // PTX comparisons take a literal only as second operand.
        let (op, a, b) = if a.as_const().is_some() { (flip(op), b, a) } else { (op, a, b) };
        let (x, y) = if narrow { (self.as32(a), self.as32(b)) } else { (self.as64(a), self.as64(b)) };
        let x = match x {
            Operand::Reg(_) => x,
            other if narrow => self.emit.pure(Class::B32, P::MovB32, [other]).into(),
            other => self.emit.pure(Class::B64, P::MovB64, [other]).into(),
        };
        let instr = match (op, narrow) {
            (Op::Eq, true) => P::SetpEqS32,
            (Op::Ne, true) => P::SetpNeS32,
            (Op::Lt, true) => P::SetpLtS32,
            (Op::Le, true) => P::SetpLeS32,
            (Op::Gt, true) => P::SetpGtS32,
            (_, true) => P::SetpGeS32,
            (Op::Eq, false) => P::SetpEqS64,
            (Op::Ne, false) => P::SetpNeS64,
            (Op::Lt, false) => P::SetpLtS64,
            (Op::Le, false) => P::SetpLeS64,
            (Op::Gt, false) => P::SetpGtS64,
            (_, false) => P::SetpGeS64,
        };
        self.emit.pure(Class::Pred, instr, [x, y])
    }

    /// A linear map over F2 of the bits of a 32-bit register: the xor of `cols[i]` over the set bits `i`.
    ///
    /// Bits that move by the same distance share one shift and one mask.
    pub(super) fn linear_map(&mut self, src: Reg, cols: &[u64]) -> Int {
        // (shift to the left, source mask), one entry per distance.
        let mut runs: Vec<(i32, u64)> = Vec::new();
        let mut hi = 0u64;
        for (i, &col) in cols.iter().enumerate() {
            hi |= col;
            for j in (0..64).filter(|j| col >> j & 1 == 1) {
                let distance = j - i as i32;
                match runs.iter_mut().find(|(d, _)| *d == distance) {
                    Some((_, mask)) => *mask |= 1 << i,
                    None => runs.push((distance, 1 << i)),
                }
            }
        }
        let width = cols.len() as u32;
        let mut out: Option<(Reg, u64)> = None;
        for (distance, mask) in runs {
            let full = mask == (1 << width) - 1;
            let masked =
                if full { src } else { self.emit.pure(Class::B32, P::AndB32, [src.into(), Operand::Imm(mask as i64)]) };
            let (moved, bits) = match distance {
                0 => (masked, mask),
                d if d > 0 => {
                    let s = Operand::Imm(i64::from(d));
                    (self.emit.pure(Class::B32, P::ShlB32, [masked.into(), s]), mask << d)
                }
                d => {
                    let s = Operand::Imm(i64::from(-d));
                    (self.emit.pure(Class::B32, P::ShrU32, [masked.into(), s]), mask >> -d)
                }
            };
            out = Some(match out {
                None => (moved, bits),
                Some((acc, seen)) => {
                    let op = if seen & bits == 0 { P::OrB32 } else { P::XorB32 };
                    (self.emit.pure(Class::B32, op, [acc.into(), moved.into()]), seen | bits)
                }
            });
        }
        match out {
            None => Int::constant(0),
            Some((reg, _)) => Int::r32(reg, 0, i128::from(hi)),
        }
    }

    /// The XOR of two numbers that are sums over F2, such as results of [`Self::linear_map`].
    pub(super) fn xor(&mut self, a: Int, b: Int) -> Int {
        match (a.as_const(), b.as_const()) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ => {
                // All bits up to the highest bit of either operand.
                let bits = 128 - (a.hi | b.hi).max(0).leading_zeros();
                let (x, y) = (self.as32(a), self.as32(b));
                let xor = self.emit.pure(Class::B32, P::XorB32, [x, y]);
                Int::r32(xor, 0, (1 << bits.min(31)) - 1)
            }
        }
    }
}

fn flip(op: Op) -> Op {
    match op {
        Op::Lt => Op::Gt,
        Op::Le => Op::Ge,
        Op::Gt => Op::Lt,
        Op::Ge => Op::Le,
        other => other,
    }
}
