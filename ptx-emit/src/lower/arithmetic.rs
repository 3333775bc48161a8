//! Operators on numbers as instructions.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::ops::Op;
use tilec_ir::types::Elem;

/// The instruction of an operator on numbers, if every target has one; some operators have another one for unsigned
/// words.
pub(super) fn instruction(op: Op, (class, unsigned): (Class, bool)) -> Option<P> {
    Some(match (op, class) {
        (Op::Add, Class::F32) => P::AddF32,
        (Op::Add, Class::F64) => P::AddF64,
        (Op::Add, Class::B32) => P::AddS32,
        (Op::Add, Class::B64) => P::AddS64,
        (Op::Sub, Class::F32) => P::SubF32,
        (Op::Sub, Class::F64) => P::SubF64,
        (Op::Sub, Class::B32) => P::SubS32,
        (Op::Sub, Class::B64) => P::SubS64,
        (Op::Mul, Class::F32) => P::MulF32,
        (Op::Mul, Class::F64) => P::MulF64,
        (Op::Mul, Class::B32) => P::MulLoS32,
        (Op::Mul, Class::B64) => P::MulLoS64,
        (Op::Fma, Class::F32) => P::FmaRnF32,
        (Op::Fma, Class::F64) => P::FmaRnF64,
        (Op::Div, Class::F32) => P::DivRnF32,
        (Op::Div, Class::F64) => P::DivRnF64,
        (Op::Min, Class::F32) => P::MinF32,
        (Op::Min, Class::F64) => P::MinF64,
        (Op::Min, Class::B32) if unsigned => P::MinU32,
        (Op::Min, Class::B32) => P::MinS32,
        (Op::Min, Class::B64) if unsigned => P::MinU64,
        (Op::Min, Class::B64) => P::MinS64,
        (Op::Max, Class::F32) => P::MaxF32,
        (Op::Max, Class::F64) => P::MaxF64,
        (Op::Max, Class::B32) if unsigned => P::MaxU32,
        (Op::Max, Class::B32) => P::MaxS32,
        (Op::Max, Class::B64) if unsigned => P::MaxU64,
        (Op::Max, Class::B64) => P::MaxS64,
        (Op::Neg, Class::F32) => P::NegF32,
        (Op::Neg, Class::F64) => P::NegF64,
        (Op::Neg, Class::B32) => P::NegS32,
        (Op::Neg, Class::B64) => P::NegS64,
        (Op::Abs, Class::F32) => P::AbsF32,
        (Op::Abs, Class::F64) => P::AbsF64,
        (Op::Abs, Class::B32) => P::AbsS32,
        (Op::Abs, Class::B64) => P::AbsS64,
        (Op::MulHigh, Class::B32) if unsigned => P::MulHiU32,
        (Op::MulHigh, Class::B32) => P::MulHiS32,
        (Op::MulHigh, Class::B64) if unsigned => P::MulHiU64,
        (Op::MulHigh, Class::B64) => P::MulHiS64,
        (Op::PermuteBytes, Class::B32) => P::PrmtB32,
        (Op::BitAnd, Class::B32) => P::AndB32,
        (Op::BitAnd, Class::B64) => P::AndB64,
        (Op::BitOr, Class::B32) => P::OrB32,
        (Op::BitOr, Class::B64) => P::OrB64,
        (Op::BitXor, Class::B32) => P::XorB32,
        (Op::BitXor, Class::B64) => P::XorB64,
        (Op::BitNot, Class::B32) => P::NotB32,
        (Op::BitNot, Class::B64) => P::NotB64,
        (Op::Floor, Class::F32) => P::CvtRmiF32F32,
        (Op::Floor, Class::F64) => P::CvtRmiF64F64,
        (Op::Ceil, Class::F32) => P::CvtRpiF32F32,
        (Op::Ceil, Class::F64) => P::CvtRpiF64F64,
        (Op::Round, Class::F32) => P::CvtRniF32F32,
        (Op::Round, Class::F64) => P::CvtRniF64F64,
        (Op::Exp2, Class::F32) => P::Ex2ApproxFtzF32,
        (Op::Log2, Class::F32) => P::Lg2ApproxF32,
        (Op::Sqrt, Class::F32) => P::SqrtRnF32,
        (Op::Sqrt, Class::F64) => P::SqrtRnF64,
        (Op::Rsqrt, Class::F32) => P::RsqrtApproxF32,
        _ => return None,
    })
}

pub(super) fn compare_op(op: Op, (class, unsigned): (Class, bool)) -> Option<P> {
    Some(match (op, class) {
        (Op::Eq, Class::F32) => P::SetpEqF32,
        (Op::Ne, Class::F32) => P::SetpNeuF32,
        (Op::Lt, Class::F32) => P::SetpLtF32,
        (Op::Le, Class::F32) => P::SetpLeF32,
        (Op::Gt, Class::F32) => P::SetpGtF32,
        (Op::Ge, Class::F32) => P::SetpGeF32,
        (Op::Eq, Class::F64) => P::SetpEqF64,
        (Op::Ne, Class::F64) => P::SetpNeuF64,
        (Op::Lt, Class::F64) => P::SetpLtF64,
        (Op::Le, Class::F64) => P::SetpLeF64,
        (Op::Gt, Class::F64) => P::SetpGtF64,
        (Op::Ge, Class::F64) => P::SetpGeF64,
        (Op::Lt, Class::B32) if unsigned => P::SetpLtU32,
        (Op::Le, Class::B32) if unsigned => P::SetpLeU32,
        (Op::Gt, Class::B32) if unsigned => P::SetpGtU32,
        (Op::Ge, Class::B32) if unsigned => P::SetpGeU32,
        (Op::Eq, Class::B32) => P::SetpEqS32,
        (Op::Ne, Class::B32) => P::SetpNeS32,
        (Op::Lt, Class::B32) => P::SetpLtS32,
        (Op::Le, Class::B32) => P::SetpLeS32,
        (Op::Gt, Class::B32) => P::SetpGtS32,
        (Op::Ge, Class::B32) => P::SetpGeS32,
        (Op::Lt, Class::B64) if unsigned => P::SetpLtU64,
        (Op::Le, Class::B64) if unsigned => P::SetpLeU64,
        (Op::Gt, Class::B64) if unsigned => P::SetpGtU64,
        (Op::Ge, Class::B64) if unsigned => P::SetpGeU64,
        (Op::Eq, Class::B64) => P::SetpEqS64,
        (Op::Ne, Class::B64) => P::SetpNeS64,
        (Op::Lt, Class::B64) => P::SetpLtS64,
        (Op::Le, Class::B64) => P::SetpLeS64,
        (Op::Gt, Class::B64) => P::SetpGtS64,
        (Op::Ge, Class::B64) => P::SetpGeS64,
        _ => return None,
    })
}

impl Lower<'_> {
    /// An operation on a pair of 16-bit floats, rounded to nearest and never fused with another.
    pub(super) fn operation(&mut self, op: Op, elem: Elem, a: Reg, b: Reg) -> Reg {
        if elem == Elem::F16 {
            let op = match op {
                Op::Add => P::AddRnF16x2,
                Op::Sub => P::SubRnF16x2,
                Op::Mul => P::MulRnF16x2,
                _ => unreachable!("an operation on pairs"),
            };
            return self.emit.def(Class::B32, op, [a.into(), b.into()]);
        }
        // bf16 has only fma: `a + b` is `1 a + b`, `a - b` is `-1 b + a`, `a b` is `a b - 0`, which keeps the sign of a
        // zero.
        let (x, factor, y) = match op {
            Op::Add => (a, Some(0x3f80_3f80), Some(b)),
            Op::Sub => (b, Some(0xbf80_bf80), Some(a)),
            Op::Mul => (a, None, None),
            _ => unreachable!("an operation on pairs"),
        };
        let literal = |lower: &mut Self, bits: i64| lower.emit.pure(Class::B32, P::MovB32, [Operand::Imm(bits)]);
        let factor = factor.map_or(b, |bits| literal(self, bits));
        let y = y.unwrap_or_else(|| literal(self, 0x8000_8000));
        self.emit.def(Class::B32, P::FmaRnBf16x2, [x.into(), factor.into(), y.into()])
    }

    pub(super) fn arithmetic(&mut self, op: Op, (class, unsigned): (Class, bool), xs: &[Reg]) -> Option<Reg> {
        let srcs: Vec<Operand> = xs.iter().map(|&r| r.into()).collect();
        let instr = match (op, class) {
            (Op::Exp, Class::F32) => {
                let log2e = self.literal(std::f64::consts::LOG2_E, class);
                let scaled = self.emit.pure(class, P::MulF32, [xs[0].into(), log2e.into()]);
                return Some(self.emit.pure(class, P::Ex2ApproxFtzF32, [scaled.into()]));
            }
            (Op::Log, Class::F32) => {
                let ln2 = self.literal(std::f64::consts::LN_2, class);
                let log2 = self.emit.pure(class, P::Lg2ApproxF32, srcs);
                return Some(self.emit.pure(class, P::MulF32, [log2.into(), ln2.into()]));
            }
            (Op::Sin, Class::F32) => return Some(self.sine(xs[0], false)),
            (Op::Cos, Class::F32) => return Some(self.sine(xs[0], true)),
            (Op::Pow, Class::F32) => return Some(self.power(xs[0], xs[1])),
            (Op::Erf, Class::F32) => return Some(self.erf(xs[0])),
            (Op::FastTanh, Class::F32) if self.target.has_tanh() => P::TanhApproxF32,
            (Op::FastTanh, Class::F32) => return Some(self.tanh_of_powers(xs[0])),
            (Op::Tanh, Class::F32) => return Some(self.tanh(xs[0])),
            (Op::Sin, Class::F64) => return Some(self.sine_f64(xs[0], false)),
            (Op::Cos, Class::F64) => return Some(self.sine_f64(xs[0], true)),
            (Op::Pow, Class::F64) => return Some(self.power_f64(xs[0], xs[1])),
            (Op::Erf, Class::F64) => return Some(self.erf_f64(xs[0])),
            (op, Class::F64) if xs.len() == 1 && instruction(op, (class, unsigned)).is_none() => {
                return self.function_of_f64(op, xs[0]);
            }
            _ => instruction(op, (class, unsigned))?,
        };
        Some(self.emit.pure(class, instr, srcs))
    }
}
