//! Sine and cosine of f64, of any number: within 0.8 units in the last place.
//!
//! A number is reduced by the nearest multiple of pi/2 to at most pi/4 in size. The rest is kept as the sum of two
//! numbers, because the relative error of a sine near zero is that of its argument. Up to 2^30 the multiple is
//! subtracted in three parts of 53 bits. The first step is exact, because both numbers are multiples of 2^-53 and the
//! result is below 1. If some lane of the warp has a larger number, its 53 bits, as an integer, are multiplied by the
//! 192 bits of 2/pi that decide the result (Payne and Hanek). The rest is accurate to 2^-126, and no f64 leaves less
//! than 2^-62. Sine and cosine of the rest are series. The rest of an infinity or NaN is NaN.

use super::functions_f64::factorial;
use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::module::ConstDecl;
use crate::ops::Op as P;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// Terms of the series after the first (sine) and after the second (cosine): the next terms are below 2^-63 at pi/4.
const TERMS: u32 = 8;
/// pi/2, in parts of 53 bits.
const PARTS: [f64; 3] = [FRAC_PI_2, f64::from_bits(0x3c91_a626_3314_5c07), f64::from_bits(0xb91f_1976_b7ed_8fbc)];
/// The parts suffice for numbers below this power of two.
const NEAR: i32 = 30;
/// The bits of 2/pi after the point, after two words of zeros.
const TWO_OVER_PI: [u32; 38] = [
    0x0000_0000,
    0x0000_0000,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
];
/// The first word of the last window of the table.
const LAST_WORD: i64 = 31;

/// The rest of a number as the sum of two, and the multiple of pi/2 modulo 4.
type Reduced = ([Reg; 2], Reg);

impl Lower<'_> {
    /// `sin(x)`, or `cos(x)`.
    pub(super) fn sine_f64(&mut self, x: Reg, cosine: bool) -> Reg {
        let size = self.d(P::AbsF64, &[x]);
        let ([rest, low], turns) = self.reduced_f64(size);
        let turns = if cosine { self.emit.pure(Class::B32, P::AddS32, [turns.into(), Operand::Imm(1)]) } else { turns };
        let [one, half] = [1.0, 0.5].map(|c| self.double(c));
        let signed = |k: u32, n: u32| if k % 2 == 1 { -1.0 / factorial(n) } else { 1.0 / factorial(n) };
        let sine: Vec<f64> = (1..=TERMS).rev().map(|k| signed(k, 2 * k + 1)).collect();
        let cosines: Vec<f64> = (2..=TERMS + 1).rev().map(|k| signed(k, 2 * k)).collect();

        // sin(r + l) = r + l (1 - r^2/2) + r^3 (..)
        let square = self.d(P::MulRnF64, &[rest, rest]);
        let halved = self.d(P::MulRnF64, &[square, half]);
        let less = self.d(P::NegF64, &[halved]);
        let tail = self.series(&sine, square);
        let cube = self.d(P::MulRnF64, &[rest, square]);
        let beside = self.d(P::FmaRnF64, &[less, low, low]);
        let beside = self.d(P::FmaRnF64, &[cube, tail, beside]);
        let of_sine = self.d(P::AddRnF64, &[rest, beside]);
        // cos(r + l) = 1 - r^2/2 - r l + r^4 (..), with what rounding the difference loses
        let tail = self.series(&cosines, square);
        let high = self.d(P::SubRnF64, &[one, halved]);
        let lost = self.d(P::SubRnF64, &[one, high]);
        let lost = self.d(P::SubRnF64, &[lost, halved]);
        let back = self.d(P::NegF64, &[rest]);
        let lost = self.d(P::FmaRnF64, &[back, low, lost]);
        let fourth = self.d(P::MulRnF64, &[square, square]);
        let beside = self.d(P::FmaRnF64, &[fourth, tail, lost]);
        let of_cosine = self.d(P::AddRnF64, &[high, beside]);

        // A quarter turn exchanges sine and cosine, half a turn changes the sign.
        let odd = self.emit.pure(Class::B32, P::AndB32, [turns.into(), Operand::Imm(1)]);
        let odd = self.emit.pure(Class::Pred, P::SetpNeS32, [odd.into(), Operand::Imm(0)]);
        let value = self.choose(odd, of_cosine, of_sine);
        let turns = self.emit.pure(Class::B64, P::CvtU64U32, [turns.into()]);
        let half = self.long(P::ShlB64, turns, 62);
        let sign = if cosine {
            half
        } else {
            let own = self.emit.pure(Class::B64, P::MovB64F64, [x.into()]);
            self.emit.pure(Class::B64, P::XorB64, [half.into(), own.into()])
        };
        let sign = self.long(P::ShrU64, sign, 63);
        let sign = self.long(P::ShlB64, sign, 63);
        let bits = self.emit.pure(Class::B64, P::MovB64F64, [value.into()]);
        let bits = self.emit.pure(Class::B64, P::XorB64, [bits.into(), sign.into()]);
        self.d(P::MovF64B64, &[bits])
    }

    /// The rest of a non-negative number after subtracting the nearest multiple of pi/2, and that multiple modulo 4.
    fn reduced_f64(&mut self, x: Reg) -> Reduced {
        let (near, turns) = self.reduced_near_f64(x);
        let far = self.test(P::SetpGeF64, x, 2f64.powi(NEAR));
        let finite = self.test(P::SetpLtF64, x, f64::INFINITY);
        let far = self.emit.pure(Class::Pred, P::AndPred, [far.into(), finite.into()]);
        let any = self.emit.def(Class::Pred, P::VoteSyncAnyPred, [far.into(), Operand::Imm(0xffff_ffff)]);
        let kept = near.map(|part| {
            let kept = self.emit.mutable(Class::F64);
            self.emit.push(P::MovF64, [kept.into(), part.into()]);
            kept
        });
        let quarter = self.emit.mutable(Class::B32);
        self.emit.push(P::MovB32, [quarter.into(), turns.into()]);

        self.where_any(any, "reduced", |cx| {
            let (of_far, turns_of_far) = cx.reduced_far_f64(x);
            for i in 0..2 {
                cx.emit.push(P::SelpF64, [kept[i].into(), of_far[i].into(), near[i].into(), far.into()]);
            }
            cx.emit.push(P::SelpB32, [quarter.into(), turns_of_far.into(), turns.into(), far.into()]);
        });
        (kept, quarter)
    }

    /// [`Self::reduced_f64`] for a number below 2^30.
    fn reduced_near_f64(&mut self, x: Reg) -> Reduced {
        let [per, first, second, third] = [FRAC_2_PI, -PARTS[0], PARTS[1], -PARTS[2]].map(|c| self.double(c));
        let quarters = self.d(P::MulRnF64, &[x, per]);
        // The multiple is kept as a float, so that an infinity gives NaN.
        let count = self.d(P::CvtRniF64F64, &[quarters]);
        let turns = self.emit.pure(Class::B32, P::CvtRniS32F64, [count.into()]);
        let left = self.d(P::FmaRnF64, &[count, first, x]);
        let part = self.d(P::MulRnF64, &[count, second]);
        let back = self.d(P::NegF64, &[part]);
        let part_rest = self.d(P::FmaRnF64, &[count, second, back]);
        let high = self.d(P::SubRnF64, &[left, part]);
        let lost = self.d(P::SubRnF64, &[left, high]);
        let lost = self.d(P::SubRnF64, &[lost, part]);
        let lost = self.d(P::SubRnF64, &[lost, part_rest]);
        let low = self.d(P::FmaRnF64, &[count, third, lost]);
        (self.sum_in_two_f64(high, low), turns)
    }

    /// [`Self::reduced_f64`] for a finite number from 2^30 on: `x = m 2^(e - 63)` with a 64-bit `m`. Bits of 2/pi count
    /// for `x 2/pi` modulo 4 if their weight is below `2^(65 - e)`.
    fn reduced_far_f64(&mut self, x: Reg) -> Reduced {
        let (word, wide) = (Class::B32, Class::B64);
        let bits = self.emit.pure(wide, P::MovB64F64, [x.into()]);
        let field = self.long(P::ShrU64, bits, 52);
        let field = self.emit.pure(word, P::CvtU32U64, [field.into()]);
        // The table begins 64 bits in front of the point. This is the position of the first needed bit.
        let place = self.emit.pure(word, P::SubS32, [field.into(), Operand::Imm(1024)]);
        let m = self.long(P::ShlB64, bits, 11);
        let m = self.long(P::OrB64, m, i64::MIN);
        let digits = self.digits_of_two_over_pi(place);

        // The upper 128 of the 192 bits modulo 4: two bits are in front of the point.
        let lowest = self.emit.pure(wide, P::MulHiU64, [m.into(), digits[2].into()]);
        let middle = self.emit.pure(wide, P::MulLoS64, [m.into(), digits[1].into()]);
        let low = self.emit.pure(wide, P::AddS64, [lowest.into(), middle.into()]);
        let carries = self.emit.pure(Class::Pred, P::SetpLtU64, [low.into(), lowest.into()]);
        let carry = self.emit.pure(wide, P::SelpB64, [Operand::Imm(1), Operand::Imm(0), carries.into()]);
        let upper = self.emit.pure(wide, P::MulHiU64, [m.into(), digits[1].into()]);
        let high = self.emit.pure(wide, P::MulLoS64, [m.into(), digits[0].into()]);
        let high = self.emit.pure(wide, P::AddS64, [high.into(), upper.into()]);
        let high = self.emit.pure(wide, P::AddS64, [high.into(), carry.into()]);

        let nearest = self.long(P::AddS64, high, 1 << 61);
        let turns = self.long(P::ShrU64, nearest, 62);
        let turns = self.emit.pure(word, P::CvtU32U64, [turns.into()]);
        // The fraction is signed: 32 bits, the next 32, and the rest.
        let high = self.long(P::ShlB64, high, 2);
        let carried = self.long(P::ShrU64, low, 62);
        let high = self.emit.pure(wide, P::OrB64, [high.into(), carried.into()]);
        let low = self.long(P::ShlB64, low, 2);
        let first = self.long(P::ShrS64, high, 32);
        let first = self.emit.pure(word, P::CvtS32S64, [first.into()]);
        let second = self.emit.pure(word, P::CvtU32U64, [high.into()]);
        let pieces = [
            (self.emit.pure(Class::F64, P::CvtRnF64S32, [first.into()]), -32),
            (self.emit.pure(Class::F64, P::CvtRnF64U32, [second.into()]), -64),
            (self.emit.pure(Class::F64, P::CvtRnF64U64, [low.into()]), -128),
        ];
        let [first, second, third] = pieces.map(|(piece, power)| {
            let unit = self.double(2f64.powi(power));
            self.d(P::MulRnF64, &[piece, unit])
        });
        let [high, low] = self.sum_in_two_f64(first, second);
        let low = self.d(P::AddRnF64, &[low, third]);
        let [high, low] = self.sum_in_two_f64(high, low);
        // Converts multiples of pi/2 to an angle.
        let [quarter, quarter_rest] = [PARTS[0], PARTS[1]].map(|c| self.double(c));
        let rest = self.d(P::MulRnF64, &[high, quarter]);
        let back = self.d(P::NegF64, &[rest]);
        let lost = self.d(P::FmaRnF64, &[high, quarter, back]);
        let lost = self.d(P::FmaRnF64, &[low, quarter, lost]);
        ([rest, self.d(P::FmaRnF64, &[high, quarter_rest, lost])], turns)
    }

    /// 192 bits of the table from a position on, in three registers. For numbers below 2^30 they are meaningless.
    fn digits_of_two_over_pi(&mut self, place: Reg) -> [Reg; 3] {
        let (word, wide) = (Class::B32, Class::B64);
        let first = self.emit.pure(word, P::ShrU32, [place.into(), Operand::Imm(5)]);
        let first = self.emit.pure(word, P::MinU32, [first.into(), Operand::Imm(LAST_WORD)]);
        let name = format!("{}$two_over_pi", self.k.name);
        let tables = &mut self.emit.func.tables;
        let index = tables.iter().position(|t| t.name == name).unwrap_or(tables.len());
        if index == tables.len() {
            tables.push(ConstDecl { name, bits: 32, words: TWO_OVER_PI.map(u64::from).to_vec() });
        }
        let base = self.emit.pure(wide, P::MovConstU64, vec![Operand::ConstSym(index as u32)]);
        let address = self.emit.pure(wide, P::MadWideU32, vec![first.into(), Operand::Imm(4), base.into()]);
        let words =
            [0, 1, 2, 3, 4, 5, 6].map(|i| self.emit.pure(word, P::LdConstB32, vec![Operand::at(address, 4 * i)]));
        let shifted = [0, 1, 2, 3, 4, 5].map(|i| {
            let operands = [words[i + 1].into(), words[i].into(), place.into()];
            self.emit.pure(word, P::ShfLWrapB32, operands)
        });
        [0, 2, 4].map(|i| {
            let halves = Operand::Vec(vec![shifted[i + 1], shifted[i]]);
            self.emit.pure(wide, P::PackB64B32, [halves])
        })
    }
}
