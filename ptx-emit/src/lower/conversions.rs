//! Conversions between the types in which numbers are stored and the register classes in which they are computed.
//! 16-bit floats are computed in f32 and rounded when they are stored or cast.

use super::state::Lower;
use super::tile::class_of;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::numerics::FloatFormat;
use tilec_ir::types::Elem;

impl Lower<'_> {
    /// Converts an 8-bit float in the low byte of a register to f16.
    pub(super) fn half_of_fp8(&mut self, raw: Reg, elem: Elem) -> Reg {
        if !self.target.has_fp8_conversions() {
            return if elem == Elem::E4M3 { self.half_of_e4m3(raw) } else { self.half_of_e5m2(raw) };
        }
        let op = if elem == Elem::E4M3 { P::CvtRnF16x2E4m3x2 } else { P::CvtRnF16x2E5m2x2 };
        let pair = self.emit.def(Class::B16, P::CvtU16U32, [raw.into()]);
        let pair = self.emit.def(Class::B32, op, [pair.into()]);
        let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), pair.into()]);
        lo
    }

    /// Converts from the stored form to the computed form.
    pub(super) fn widen(&mut self, raw: Reg, elem: Elem) -> Reg {
        let wide = self.widened_form(raw, elem);
        if wide != raw {
            self.read.insert(wide, (elem, raw));
        }
        wide
    }

    fn widened_form(&mut self, raw: Reg, elem: Elem) -> Reg {
        match elem {
            Elem::F16 => self.emit.def(Class::F32, P::CvtF32F16, [raw.into()]),
            Elem::BF16 => {
                // A bf16 is the upper half of an f32.
                let zero = self.emit.pure(Class::B16, P::MovB16, [Operand::Imm(0)]);
                self.emit.def(Class::F32, P::PackF32B16, [Operand::Vec(vec![zero, raw])])
            }
            Elem::TF32 => {
                // The low 13 bits of a tf32 are not part of its value.
                let bits = self.emit.def(Class::B32, P::AndB32, [raw.into(), Operand::Imm(0xffff_e000)]);
                self.emit.def(Class::F32, P::MovF32B32, [bits.into()])
            }
            Elem::I16 => self.emit.def(Class::B32, P::CvtS32S16, [raw.into()]),
            Elem::U16 => self.emit.def(Class::B32, P::CvtU32U16, [raw.into()]),
            Elem::I4 | Elem::U4 | Elem::E2M1 => self.nibble((raw, 0), elem),
            Elem::UE8M0 => self.of_exponent(raw),
            Elem::I8 => self.emit.def(Class::B32, P::CvtS32S8, [raw.into()]),
            Elem::U8 => self.emit.def(Class::B32, P::CvtU32U8, [raw.into()]),
            Elem::E4M3 | Elem::E5M2 => {
                let half = self.half_of_fp8(raw, elem);
                self.emit.def(Class::F32, P::CvtF32F16, [half.into()])
            }
            _ => raw,
        }
    }

    /// Numbers of type `from` in the stored form: unchanged if they were loaded, else rounded.
    pub(super) fn stored_form(&mut self, at: Expr, xs: Vec<Reg>, from: Elem) -> Result<Vec<Reg>, Reported> {
        let mut raw = Vec::new();
        for x in xs {
            match self.read.get(&x).filter(|(of, _)| *of == from) {
                Some(&(_, read)) => raw.push(read),
                None => raw.extend(self.narrow_all(at, vec![x], (Some(from), from))?),
            }
        }
        Ok(raw)
    }

    /// Reinterprets the bits of a stored element as an element of another type of the same size, in the computed form.
    pub(super) fn read_as(&mut self, raw: Reg, (from, to): (Elem, Elem)) -> Reg {
        // The low 13 bits of a tf32 are not part of its value.
        let raw = match from {
            Elem::TF32 => self.emit.pure(Class::B32, P::AndB32, [raw.into(), Operand::Imm(0xffff_e000)]),
            _ => raw,
        };
        let from = self.emit.func.regs[raw];
        let class = class_of(to).expect("bug: conditions have no bits, which is verified");
        let raw = match (from, class) {
            (Class::F32, Class::B32) => self.emit.pure(class, P::MovB32F32, [raw.into()]),
            (Class::B32, Class::F32) => self.emit.pure(class, P::MovF32B32, [raw.into()]),
            (Class::F64, Class::B64) => self.emit.pure(class, P::MovB64F64, [raw.into()]),
            (Class::B64, Class::F64) => self.emit.pure(class, P::MovF64B64, [raw.into()]),
            _ if from == class => raw,
            _ => panic!("bug: bits of {from:?} are read as {}", to.name()),
        };
        let wide = self.widen(raw, to);
        // A conversion back would lose an infinity of e5m2.
        if to == Elem::E5M2 {
            self.rounded.insert(wide, (to, raw));
        }
        wide
    }

    /// Widens a number to the class from which it is converted to `to`. u32 is computed in 32-bit registers as i32, so
    /// it becomes a class that holds all u32.
    pub(super) fn wide_enough(&mut self, x: Reg, from: Option<Elem>, to: Elem) -> Reg {
        if matches!(from, Some(Elem::I4 | Elem::U4)) && to.is_float() && self.emit.func.regs[x] == Class::B32 {
            return self.small_as_float(x);
        }
        if from == Some(Elem::U64) && self.emit.func.regs[x] == Class::B64 {
            return self.of_unsigned(x, to);
        }
        if from != Some(Elem::U32) || matches!(to, Elem::I32 | Elem::U32) || self.emit.func.regs[x] != Class::B32 {
            return x;
        }
        let wide = self.emit.def(Class::B64, P::CvtU64U32, [x.into()]);
        match to {
            // Exact, so that only one rounding remains.
            Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 => {
                self.emit.def(Class::F64, P::CvtRnF64S64, [wide.into()])
            }
            _ => wide,
        }
    }

    /// A u64 in a form whose conversion to `to` may treat it as signed.
    fn of_unsigned(&mut self, x: Reg, to: Elem) -> Reg {
        match to {
            Elem::F32 => self.emit.def(Class::F32, P::CvtRnF32U64, [x.into()]),
            Elem::F64 => self.emit.def(Class::F64, P::CvtRnF64U64, [x.into()]),
            Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 => {
                self.round_to_odd_by(x, (P::CvtRzF32U64, P::CvtRziU64F32, P::SetpNeS64))
            }
            Elem::I64 | Elem::U64 | Elem::Bool => x,
            // Numbers above 63 bits saturate in the narrower type anyway.
            Elem::I4 | Elem::U4 | Elem::I8 | Elem::U8 | Elem::I16 | Elem::U16 | Elem::I32 | Elem::U32 => {
                self.emit.def(Class::B64, P::MinU64, [x.into(), Operand::Imm(i64::MAX)])
            }
        }
    }

    /// A small integer as f32: added to the bits of 1.5 * 2^23, because the conversion instruction is slower.
    fn small_as_float(&mut self, x: Reg) -> Reg {
        const SHIFTED: f32 = 12_582_912.0;
        let bits = self.emit.def(Class::B32, P::AddS32, [x.into(), Operand::Imm(SHIFTED.to_bits().into())]);
        let moved = self.emit.def(Class::F32, P::MovF32B32, [bits.into()]);
        let back = self.literal(f64::from(-SHIFTED), Class::F32);
        self.emit.def(Class::F32, P::AddF32, [moved.into(), back.into()])
    }

    /// From the computed form `x` of type `from` to the stored form of `to`, rounded to nearest even.
    pub(super) fn narrow(&mut self, x: Reg, to: Elem) -> Option<Reg> {
        if let Some([raw]) = self.as_stored([x], to) {
            return Some(raw);
        }
        let class = self.emit.func.regs[x];
        Some(match (class, to) {
            (Class::F32, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16F32, [x.into()]),
            (Class::F64, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16F64, [x.into()]),
            (Class::F32, Elem::BF16) => self.round_bf16(x),
            // Rounding to f32 by round-to-odd first makes the second rounding exact.
            (Class::F64, Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0) => {
                let odd = self.round_to_odd(x);
                return self.narrow(odd, to);
            }
            (Class::B32, Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0) => {
                let exact = self.emit.def(Class::F64, P::CvtRnF64S32, [x.into()]);
                return self.narrow(exact, to);
            }
            (Class::F32, Elem::TF32) => self.round_upper(x, 13),
            (Class::F32, Elem::UE8M0) => self.exponent_below(x),
            (Class::F32, Elem::E2M1) => self.round_small(x, &FloatFormat::E2M1),
            (Class::F32, Elem::E4M3) if !self.target.has_fp8_conversions() => self.round_small(x, &FloatFormat::E4M3),
            (Class::F32, Elem::E5M2) if !self.target.has_fp8_conversions() => self.round_small(x, &FloatFormat::E5M2),
            (Class::F32, Elem::E4M3 | Elem::E5M2) => {
                let op = if to == Elem::E4M3 { P::CvtRnSatfiniteE4m3x2F32 } else { P::CvtRnSatfiniteE5m2x2F32 };
                let zero = self.literal(0.0, Class::F32);
                let pair = self.emit.def(Class::B16, op, [zero.into(), x.into()]);
                self.emit.def(Class::B32, P::CvtU32U16, [pair.into()])
            }
            (Class::B32, Elem::I8) => self.emit.def(Class::B32, P::CvtSatS8S32, [x.into()]),
            (Class::B32, Elem::U8) => self.emit.def(Class::B32, P::CvtSatU8S32, [x.into()]),
            (Class::B32, Elem::I16 | Elem::U16) => {
                let (low, high) = if to == Elem::I16 { (-0x8000, 0x7fff) } else { (0, 0xffff) };
                let above = self.emit.def(Class::B32, P::MaxS32, [x.into(), Operand::Imm(low)]);
                let within = self.emit.def(Class::B32, P::MinS32, [above.into(), Operand::Imm(high)]);
                self.emit.def(Class::B16, P::CvtU16U32, [within.into()])
            }
            (Class::B32, Elem::I4 | Elem::U4) => {
                let (low, high) = if to == Elem::I4 { (-8, 7) } else { (0, 15) };
                let above = self.emit.def(Class::B32, P::MaxS32, [x.into(), Operand::Imm(low)]);
                self.emit.def(Class::B32, P::MinS32, [above.into(), Operand::Imm(high)])
            }
            (Class::F32 | Class::F64, Elem::I4 | Elem::U4 | Elem::I16 | Elem::U16) => {
                let round = if class == Class::F32 { P::CvtRniS32F32 } else { P::CvtRniS32F64 };
                let whole = self.emit.def(Class::B32, round, [x.into()]);
                return self.narrow(whole, to);
            }
            (Class::F32 | Class::F64, Elem::I8 | Elem::U8) => {
                let round = if class == Class::F32 { P::CvtRniS32F32 } else { P::CvtRniS32F64 };
                let whole = self.emit.def(Class::B32, round, [x.into()]);
                let op = if to == Elem::I8 { P::CvtSatS8S32 } else { P::CvtSatU8S32 };
                self.emit.def(Class::B32, op, [whole.into()])
            }
            (Class::F32, Elem::F32) | (Class::F64, Elem::F64) => x,
            (Class::F64, Elem::F32) => self.emit.def(Class::F32, P::CvtRnF32F64, [x.into()]),
            (Class::F32, Elem::F64) => self.emit.def(Class::F64, P::CvtF64F32, [x.into()]),
            (Class::B32, Elem::I32 | Elem::U32) | (Class::B64, Elem::I64 | Elem::U64) => x,
            (Class::B32, Elem::F32) => self.emit.def(Class::F32, P::CvtRnF32S32, [x.into()]),
            (Class::B32, Elem::F64) => self.emit.def(Class::F64, P::CvtRnF64S32, [x.into()]),
            (Class::B32, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16S32, [x.into()]),
            (Class::F32, Elem::I32) => self.emit.def(Class::B32, P::CvtRniS32F32, [x.into()]),
            (Class::F64, Elem::I32) => self.emit.def(Class::B32, P::CvtRniS32F64, [x.into()]),
            (Class::F32, Elem::U32) => self.emit.def(Class::B32, P::CvtRniU32F32, [x.into()]),
            (Class::F64, Elem::U32) => self.emit.def(Class::B32, P::CvtRniU32F64, [x.into()]),
            (Class::F32, Elem::I64) => self.emit.def(Class::B64, P::CvtRniS64F32, [x.into()]),
            (Class::F64, Elem::I64) => self.emit.def(Class::B64, P::CvtRniS64F64, [x.into()]),
            (Class::F32, Elem::U64) => self.emit.def(Class::B64, P::CvtRniU64F32, [x.into()]),
            (Class::F64, Elem::U64) => self.emit.def(Class::B64, P::CvtRniU64F64, [x.into()]),
            (Class::B32, Elem::I64 | Elem::U64) => self.emit.def(Class::B64, P::CvtS64S32, [x.into()]),
            (Class::B64, Elem::I4 | Elem::U4 | Elem::I8 | Elem::U8 | Elem::I16 | Elem::U16 | Elem::I32 | Elem::U32) => {
                let (low, high) = match to {
                    Elem::I4 => (-8, 7),
                    Elem::U4 => (0, 15),
                    Elem::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
                    Elem::U8 => (0, i64::from(u8::MAX)),
                    Elem::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
                    Elem::U16 => (0, i64::from(u16::MAX)),
                    Elem::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    _ => (0, i64::from(u32::MAX)),
                };
                let above = self.emit.def(Class::B64, P::MaxS64, [x.into(), Operand::Imm(low)]);
                let clamped = self.emit.def(Class::B64, P::MinS64, [above.into(), Operand::Imm(high)]);
                let word = self.emit.def(Class::B32, P::CvtS32S64, [clamped.into()]);
                match to {
                    Elem::I16 | Elem::U16 => self.emit.def(Class::B16, P::CvtU16U32, [word.into()]),
                    _ => word,
                }
            }
            (Class::B64, Elem::F16) => self.emit.def(Class::B16, P::CvtRnF16S64, [x.into()]),
            (Class::B64, Elem::BF16 | Elem::TF32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0) => {
                let odd = self.round_to_odd(x);
                return self.narrow(odd, to);
            }
            (Class::B64, Elem::F32) => self.emit.def(Class::F32, P::CvtRnF32S64, [x.into()]),
            (Class::B64, Elem::F64) => self.emit.def(Class::F64, P::CvtRnF64S64, [x.into()]),
            _ => return None,
        })
    }

    /// Rounds numbers of type `from` to type `to`, in the computed form. Equal numbers are rounded once, and two at a
    /// time if there is an instruction for pairs.
    pub(super) fn rounded(
        &mut self,
        at: Expr,
        computed: Vec<Reg>,
        (from, to): (Option<Elem>, Elem),
    ) -> Result<Vec<Reg>, Reported> {
        let mut seen = BTreeSet::new();
        let unlike: Vec<Reg> = computed.iter().copied().filter(|&x| seen.insert(x)).collect();
        let mut known = BTreeMap::new();
        for pair in unlike.chunks(2) {
            let wide: Vec<Reg> = pair.iter().map(|&x| self.wide_enough(x, from, to)).collect();
            let word = match wide[..] {
                [low, high] => self.narrow_pair(low, high, to),
                _ => None,
            };
            let raw = match word {
                Some(word) => {
                    let halves = [self.emit.reg(Class::B16), self.emit.reg(Class::B16)];
                    self.emit.push(P::UnpackB32B16, [Operand::Vec(halves.to_vec()), word.into()]);
                    halves.to_vec()
                }
                None => self.narrow_all(at, wide, (None, to))?,
            };
            for (&x, raw) in pair.iter().zip(raw) {
                let wide = self.widen(raw, to);
                self.rounded.insert(wide, (to, raw));
                known.insert(x, wide);
            }
        }
        Ok(computed.iter().map(|x| known[x]).collect())
    }

    /// The stored form of numbers that are already rounded to this type.
    pub(super) fn as_stored<const N: usize>(&self, numbers: [Reg; N], elem: Elem) -> Option<[Reg; N]> {
        let raw: Option<Vec<Reg>> =
            numbers.iter().map(|x| self.rounded.get(x).filter(|(of, _)| *of == elem).map(|&(_, raw)| raw)).collect();
        raw?.try_into().ok()
    }

    /// Converts two numbers of the computed form to a pair of 16-bit floats, `low` in the low half; `None`: there is no
    /// instruction for pairs.
    pub(super) fn narrow_pair(&mut self, low: Reg, high: Reg, to: Elem) -> Option<Reg> {
        let floats = [low, high].iter().all(|&r| self.emit.func.regs[r] == Class::F32);
        let op = match to {
            Elem::F16 => P::CvtRnF16x2F32,
            Elem::BF16 => P::CvtRnBf16x2F32,
            _ => return None,
        };
        if !(floats && self.target.has_pair_conversions()) {
            return None;
        }
        Some(match self.as_stored([low, high], to) {
            Some(halves) => self.emit.def(Class::B32, P::PackB32B16, [Operand::Vec(halves.to_vec())]),
            None => self.emit.def(Class::B32, op, [high.into(), low.into()]),
        })
    }

    /// Converts numbers of type `from` to the stored form of `to`.
    pub(super) fn narrow_all(
        &mut self,
        at: Expr,
        computed: Vec<Reg>,
        (from, to): (Option<Elem>, Elem),
    ) -> Result<Vec<Reg>, Reported> {
        let mut raw = Vec::new();
        for x in computed {
            let x = self.wide_enough(x, from, to);
            match self.narrow(x, to) {
                Some(r) => raw.push(r),
                None => return Err(self.unsupported(at, "this conversion")),
            }
        }
        Ok(raw)
    }

    /// Like [`narrow_all`](Lower::narrow_all), but pairs of 16-bit numbers stay packed in one register.
    pub(super) fn narrow_words(
        &mut self,
        at: Expr,
        computed: Vec<Reg>,
        (from, to): (Option<Elem>, Elem),
    ) -> Result<Vec<Reg>, Reported> {
        let computed: Vec<Reg> = computed.into_iter().map(|x| self.wide_enough(x, from, to)).collect();
        let pairs = computed.chunks(2).map(|pair| match *pair {
            [low, high] => self.narrow_pair(low, high, to),
            _ => None,
        });
        match pairs.collect() {
            Some(words) => Ok(words),
            None => self.narrow_all(at, computed, (from, to)),
        }
    }

    /// Packs pairs of 16-bit registers; other registers are unchanged.
    pub(super) fn packed(&mut self, raw: Vec<Reg>) -> Vec<Reg> {
        if raw.iter().any(|&r| self.emit.func.regs[r] != Class::B16) {
            return raw;
        }
        let pack = |p: &[Reg]| self.emit.def(Class::B32, P::PackB32B16, [Operand::Vec(p.to_vec())]);
        raw.chunks(2).map(pack).collect()
    }

    /// An f64 or i64 truncated to f32, with the last bit set if the truncation was inexact. Rounding the result to a
    /// type with at least two fraction bits less equals rounding the number itself (Boldo and Melquiond, "When double
    /// rounding is odd", 2005).
    fn round_to_odd(&mut self, x: Reg) -> Reg {
        let wide = self.emit.func.regs[x];
        match wide {
            Class::B64 => self.round_to_odd_by(x, (P::CvtRzF32S64, P::CvtRziS64F32, P::SetpNeS64)),
            _ => self.round_to_odd_by(x, (P::CvtRzF32F64, P::CvtF64F32, P::SetpNeuF64)),
        }
    }

    /// Implements [`Self::round_to_odd`] by the instructions that truncate, convert back and compare.
    fn round_to_odd_by(&mut self, x: Reg, (cut, back, differs): (P, P, P)) -> Reg {
        let wide = self.emit.func.regs[x];
        let cut = self.emit.def(Class::F32, cut, [x.into()]);
        let back = self.emit.def(wide, back, [cut.into()]);
        let inexact = self.emit.def(Class::Pred, differs, [back.into(), x.into()]);
        let bits = self.emit.def(Class::B32, P::MovB32F32, [cut.into()]);
        let sticky = self.emit.def(Class::B32, P::OrB32, [bits.into(), Operand::Imm(1)]);
        let bits = self.emit.def(Class::B32, P::SelpB32, [sticky.into(), bits.into(), inexact.into()]);
        self.emit.def(Class::F32, P::MovF32B32, [bits.into()])
    }

    /// f32 to bf16, to nearest even; with integer instructions where the target has no conversion.
    fn round_bf16(&mut self, x: Reg) -> Reg {
        if self.target.has_bf16_conversions() {
            return self.emit.def(Class::B16, P::CvtRnBf16F32, [x.into()]);
        }
        let rounded = self.round_upper(x, 16);
        let (lo, hi) = (self.emit.reg(Class::B16), self.emit.reg(Class::B16));
        self.emit.push(P::UnpackB32B16, [Operand::Vec(vec![lo, hi]), rounded.into()]);
        hi
    }

    /// The bits of an f32 rounded to nearest even at bit `drop`; lower bits are undefined.
    fn round_upper(&mut self, x: Reg, drop: i64) -> Reg {
        let bits = self.emit.def(Class::B32, P::MovB32F32, [x.into()]);
        let shifted = self.emit.def(Class::B32, P::ShrU32, [bits.into(), Operand::Imm(drop)]);
        let odd = self.emit.def(Class::B32, P::AndB32, [shifted.into(), Operand::Imm(1)]);
        let biased = self.emit.def(Class::B32, P::AddS32, [bits.into(), Operand::Imm((1 << (drop - 1)) - 1)]);
        let rounded = self.emit.def(Class::B32, P::AddS32, [biased.into(), odd.into()]);
        // A NaN must stay a NaN: the addition may carry into the exponent.
        let nan = self.emit.def(Class::Pred, P::SetpNeuF32, [x.into(), x.into()]);
        let quiet = self.emit.def(Class::B32, P::OrB32, [bits.into(), Operand::Imm(0x0040_0000)]);
        self.emit.def(Class::B32, P::SelpB32, [quiet.into(), rounded.into(), nan.into()])
    }
}
