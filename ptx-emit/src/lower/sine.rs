//! Sine and cosine of f32, of any number.
//!
//! A number is reduced by the nearest multiple of pi/2 to at most pi/4 in size. Up to 2^16, pi/2 is subtracted in three
//! parts of 24 bits by `fma` (Cody and Waite): the first step is exact, the others round once each. If some lane of the
//! warp has a larger number, its 24 bits, as an integer, are multiplied by the 96 bits of 2/pi that decide the result
//! (Payne and Hanek). The rest is accurate to 2^-60, and no f32 leaves less than 2^-30. Polynomials of our own
//! (Chebyshev fits) give sine and cosine of the rest, in total within 1.5 units in the last place. The rest of an
//! infinity or NaN is NaN.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// `(sin(r) - r) / r^3` in powers of `r^2`, highest first.
const SINE: [f32; 3] = [-0.000_195_873_87, 0.008_332_746, -0.166_666_64];

/// `cos(r)` in powers of `r^2`, highest first.
const COSINE: [f32; 5] = [2.454_743_7e-5, -0.001_388_83, 0.041_666_664, -0.5, 1.0];

/// Minus pi/2, in parts of 24 bits.
const PARTS: [f32; 3] = [f32::from_bits(0xbfc9_0fdb), f32::from_bits(0x333b_bd2e), f32::from_bits(0x26f7_2ced)];

/// The parts suffice for numbers below this.
const NEAR: f32 = 65536.0;

/// The bits of 2/pi, from two bits in front of the point, after a word of zeros.
const TWO_OVER_PI: [u32; 8] =
    [0, 0x28be_60db, 0x9391_054a, 0x7f09_d5f4, 0x7d4d_3770, 0x36d8_a566, 0x4f10_e410, 0x7f94_58ea];

impl Lower<'_> {
    /// `sin(x)`, or `cos(x)`.
    pub(super) fn sine(&mut self, x: Reg, cosine: bool) -> Reg {
        let (float, word) = (Class::F32, Class::B32);
        let size = self.emit.pure(float, P::AbsF32, [x.into()]);
        let (rest, turns) = self.reduced(size);
        let turns = if cosine { self.emit.pure(word, P::AddS32, [turns.into(), Operand::Imm(1)]) } else { turns };

        let square = self.emit.pure(float, P::MulF32, [rest.into(), rest.into()]);
        let cubed = self.emit.pure(float, P::MulF32, [rest.into(), square.into()]);
        let tail = self.polynomial(&SINE, square);
        let of_sine = self.emit.pure(float, P::FmaRnF32, [cubed.into(), tail.into(), rest.into()]);
        let of_cosine = self.polynomial(&COSINE, square);

        // A quarter turn exchanges sine and cosine, half a turn changes the sign.
        let odd = self.emit.pure(word, P::AndB32, [turns.into(), Operand::Imm(1)]);
        let odd = self.emit.pure(Class::Pred, P::SetpNeS32, [odd.into(), Operand::Imm(0)]);
        let value = self.emit.pure(float, P::SelpF32, [of_cosine.into(), of_sine.into(), odd.into()]);
        let half = self.emit.pure(word, P::ShlB32, [turns.into(), Operand::Imm(30)]);
        let sign = if cosine {
            half
        } else {
            let own = self.emit.pure(word, P::MovB32F32, [x.into()]);
            self.emit.pure(word, P::XorB32, [half.into(), own.into()])
        };
        let sign = self.emit.pure(word, P::AndB32, [sign.into(), Operand::Imm(0x8000_0000)]);
        let bits = self.emit.pure(word, P::MovB32F32, [value.into()]);
        let bits = self.emit.pure(word, P::XorB32, [bits.into(), sign.into()]);
        self.emit.pure(float, P::MovF32B32, [bits.into()])
    }

    /// The rest of a non-negative number after subtracting the nearest multiple of pi/2, and that multiple modulo 4.
    fn reduced(&mut self, x: Reg) -> (Reg, Reg) {
        let (float, word) = (Class::F32, Class::B32);
        let per = self.literal(std::f64::consts::FRAC_2_PI, float);
        let quarters = self.emit.pure(float, P::MulF32, [x.into(), per.into()]);
        let turns = self.emit.pure(word, P::CvtRniS32F32, [quarters.into()]);
        // The multiple is kept as a float, so that an infinity gives NaN.
        let count = self.emit.pure(float, P::CvtRniF32F32, [quarters.into()]);
        let mut rest = x;
        for part in PARTS {
            let part = self.literal(f64::from(part), float);
            rest = self.emit.pure(float, P::FmaRnF32, [count.into(), part.into(), rest.into()]);
        }
        let far = self.emit.pure(Class::Pred, P::SetpGtF32, [x.into(), Operand::F32(NEAR)]);
        let finite = self.emit.pure(Class::Pred, P::SetpLtF32, [x.into(), Operand::F32(f32::INFINITY)]);
        let far = self.emit.pure(Class::Pred, P::AndPred, [far.into(), finite.into()]);
        let any = self.emit.def(Class::Pred, P::VoteSyncAnyPred, [far.into(), Operand::Imm(0xffff_ffff)]);
        let (kept, quarter) = (self.emit.mutable(float), self.emit.mutable(word));
        self.emit.push(P::MovF32, [kept.into(), rest.into()]);
        self.emit.push(P::MovB32, [quarter.into(), turns.into()]);

        self.where_any(any, "reduced", |cx| {
            let (of_far, turns_of_far) = cx.reduced_far(x);
            cx.emit.push(P::SelpF32, [kept.into(), of_far.into(), rest.into(), far.into()]);
            cx.emit.push(P::SelpB32, [quarter.into(), turns_of_far.into(), turns.into(), far.into()]);
        });
        (kept, quarter)
    }

    /// [`Self::reduced`] for numbers from 2^16 on: `x = m 2^(e - 32)` with a 32-bit `m` and `e` from 17 to 128. Bits of
    /// 2/pi count for `x 2/pi` modulo 4 if their weight is at most `2^(34 - e)`. They begin `e` bits after the start of
    /// the table, and 96 of them are enough.
    fn reduced_far(&mut self, x: Reg) -> (Reg, Reg) {
        let (word, wide) = (Class::B32, Class::B64);
        let bits = self.emit.pure(word, P::MovB32F32, [x.into()]);
        let exponent = self.emit.pure(word, P::ShrU32, [bits.into(), Operand::Imm(23)]);
        let e = self.emit.pure(word, P::SubS32, [exponent.into(), Operand::Imm(126)]);
        let m = self.emit.pure(word, P::ShlB32, [bits.into(), Operand::Imm(8)]);
        let m = self.emit.pure(word, P::OrB32, [m.into(), Operand::Imm(0x8000_0000)]);

        let mut words: Vec<Operand> = TWO_OVER_PI.iter().map(|&w| Operand::Imm(w.into())).collect();
        // First selects whole words, by shifts of four, two and one, over as many as are still needed.
        for (by, left) in [(4, 7), (2, 5), (1, 4)] {
            let moves = self.emit.pure(word, P::AndB32, [e.into(), Operand::Imm(32 * by as i64)]);
            let moves = self.emit.pure(Class::Pred, P::SetpNeS32, [moves.into(), Operand::Imm(0)]);
            let moved = |cx: &mut Self, i: usize| match words.get(i + by) {
                Some(w) => cx.emit.pure(word, P::SelpB32, [w.clone(), words[i].clone(), moves.into()]).into(),
                None => words[i].clone(),
            };
            words = (0..left).map(|i| moved(self, i)).collect();
        }
        let digits: Vec<Reg> = words
            .windows(2)
            .map(|pair| self.emit.pure(word, P::ShfLWrapB32, [pair[1].clone(), pair[0].clone(), e.into()]))
            .collect();
        let low = self.emit.pure(wide, P::MulWideU32, [m.into(), digits[2].into()]);
        let low = self.emit.pure(wide, P::ShrU64, [low.into(), Operand::Imm(32)]);
        let middle = self.emit.pure(wide, P::MulWideU32, [m.into(), digits[1].into()]);
        let sum = self.emit.pure(wide, P::AddS64, [low.into(), middle.into()]);
        let high = self.emit.pure(wide, P::MulWideU32, [m.into(), digits[0].into()]);
        let high = self.emit.pure(wide, P::ShlB64, [high.into(), Operand::Imm(32)]);
        let sum = self.emit.pure(wide, P::AddS64, [sum.into(), high.into()]);

        // The two bits in front of the point, rounded; the fraction is signed.
        let nearest = self.emit.pure(wide, P::AddS64, [sum.into(), Operand::Imm(1 << 61)]);
        let turns = self.emit.pure(wide, P::ShrU64, [nearest.into(), Operand::Imm(62)]);
        let turns = self.emit.pure(word, P::CvtU32U64, [turns.into()]);
        let rest = self.emit.pure(wide, P::ShlB64, [sum.into(), Operand::Imm(2)]);
        let rest = self.emit.pure(Class::F64, P::CvtRnF64S64, [rest.into()]);
        let unit = std::f64::consts::FRAC_PI_2 * 2f64.powi(-64);
        let rest = self.emit.pure(Class::F64, P::MulF64, [rest.into(), Operand::F64(unit)]);
        (self.emit.pure(Class::F32, P::CvtRnF32F64, [rest.into()]), turns)
    }
}
