//! Conversions (PTX 9.7.9.21).

use super::mode::rounding;
use crate::numerics;
use crate::numerics::convert::{Clamp, Float, Fp8};
use crate::numerics::half::Half;
use crate::numerics::{Mode, Round};
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::parse::sem::forms::slot;
use crate::parse::sem::lanes::lanes;
use crate::parse::table::limits;
use crate::program::Op;
use crate::program::convert::Map;
use crate::program::convert::int;
use crate::program::types::Ty;

pub(super) fn float(ty: Ty) -> Option<Float> {
    Some(match ty {
        Ty::F16 => Float::F16,
        Ty::BF16 => Float::Bf16,
        Ty::F32 => Float::F32,
        Ty::F64 => Float::F64,
        _ => return None,
    })
}

pub(super) fn types(m: &Mods<'_>) -> Result<(Ty, Ty)> {
    match (m.first_type(), m.last_type()) {
        (Some(to), Some(from)) => Ok((to, from)),
        _ => m.error("`cvt` needs two types"),
    }
}

pub(super) fn map(map: Map, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (to, from) = types(m)?;
    let pick = |i: usize, ty: Ty| match args.get(i) {
        Some(Arg::Many(r, wide)) => (r[0], *wide),
        _ => (slot(args, i), ty.bytes() == 8),
    };
    let (d, wide) = pick(0, to);
    let (a, from_wide) = pick(1, from);
    Ok(Op::Map { map, d, wide, a, b: a, from_wide })
}

/// Integer to float.
pub(crate) fn cvt_from_int(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (to, from) = types(m)?;
    let Some(to) = float(to) else { return m.error("no such conversion") };
    let mode = Mode { round: rounding(m), ftz: m.has("ftz"), sat: m.has("sat") };
    map(Map::IntToFloat { from: int(from), to, mode }, m, args)
}

/// Float to integer; out of range clamps (PTX 9.7.9.21).
pub(crate) fn cvt_to_int(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (to, from) = types(m)?;
    let Some(from) = float(from) else { return m.error("no such conversion") };
    let wide = match args.first() {
        Some(Arg::Many(_, wide)) => *wide,
        _ => to.bytes() == 8,
    };
    let reg_bits = if wide { 64 } else { 32 };
    let (round, ftz) = (rounding(m), m.has("ftz"));
    map(Map::FloatToInt { from, to: int(to), round, ftz, reg_bits }, m, args)
}

/// Float to float, also to an integral value of the same type.
pub(crate) fn cvt_float(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (to, from) = types(m)?;
    if let Some((first, why)) = limits::miscompiled(cx.opcode(), m.words)
        && cx.target() < first
    {
        return m.error(format!("this conversion needs sm_{first} (this is sm_{}): {why}", cx.target()));
    }
    if from == Ty::BF16 {
        let (version, target) = if to == Ty::BF16 { ((7, 8), 90) } else { ((7, 1), 80) };
        cx.require(version, target);
    }
    let (d, a) = (slot(args, 0), slot(args, 1));
    let mode = Mode { round: rounding(m), ftz: m.has("ftz"), sat: m.has("sat") };
    let clamp = Clamp { relu: m.has("relu"), satfinite: m.has("satfinite") };
    let integral = m.words.iter().any(|w| matches!(*w, "rni" | "rzi" | "rmi" | "rpi"));
    let rounded = m.words.iter().any(|w| matches!(*w, "rn" | "rz" | "rm" | "rp" | "rna"));
    let (Some(to_float), Some(from_float)) = (float(to).or(Some(Float::F32)), float(from)) else {
        return m.error("no such conversion");
    };
    match (to, from) {
        (Ty::TF32, _) => map(Map::Tf32 { round: mode.round, clamp }, m, args),
        (Ty::BF16, Ty::F32) if !mode.ftz => map(Map::Narrow { to: Half::Bf16, round: mode.round, clamp }, m, args),
        (Ty::F16, Ty::F32) if clamp != Clamp::default() => {
            map(Map::Narrow { to: Half::F16, round: mode.round, clamp }, m, args)
        }
        (Ty::F32, Ty::F16) if mode == Mode::RN => {
            Ok(Op::WW { f: lanes!(x => numerics::convert::f16_to_f32(x as u16)), d, a })
        }
        (Ty::F16, Ty::F32) if mode == Mode::RN && rounded => {
            Ok(Op::WW { f: lanes!(x => u32::from(Half::F16.narrow(f32::from_bits(x)))), d, a })
        }
        _ if to == from && integral => map(Map::Integral { ty: to_float, mode }, m, args),
        _ if integral => m.error("rounding to an integer needs equal types"),
        _ if to.bytes() < from.bytes() && !rounded => m.error("a narrowing conversion needs a rounding"),
        _ if to.bytes() > from.bytes() && rounded && from != Ty::BF16 => {
            m.error("a widening conversion takes no rounding")
        }
        _ => map(Map::FloatToFloat { from: from_float, to: to_float, mode }, m, args),
    }
}

/// Two f32 to a packed pair; the first operand goes to the upper half.
pub(crate) fn cvt_pack(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if let Some(to) = fp8(m.first_type()) {
        let map = Map::Fp8FromF32 { to, relu: m.has("relu") };
        let (d, a, b) = (slot(args, 0), slot(args, 1), slot(args, 2));
        return Ok(Op::Map { map, d, wide: false, a, b, from_wide: false });
    }
    let to = if m.has("bf16x2") { Half::Bf16 } else { Half::F16 };
    let clamp = Clamp { relu: m.has("relu"), satfinite: m.has("satfinite") };
    let round = if m.has("rz") { Round::Zero } else { Round::Nearest };
    let (d, a, b) = (slot(args, 0), slot(args, 1), slot(args, 2));
    Ok(Op::Map { map: Map::Narrow2 { to, round, clamp }, d, wide: false, a, b, from_wide: false })
}

pub(super) fn fp8(ty: Option<Ty>) -> Option<Fp8> {
    match ty {
        Some(Ty::E4M3x2) => Some(Fp8::E4m3),
        Some(Ty::E5M2x2) => Some(Fp8::E5m2),
        _ => None,
    }
}

/// Between packed f16 and packed 8-bit floats.
pub(crate) fn cvt_fp8(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let relu = m.has("relu");
    match (fp8(m.first_type()), fp8(m.last_type())) {
        (Some(to), _) => map(Map::Fp8FromHalf { to, relu }, m, args),
        (_, Some(from)) => map(Map::HalfFromFp8 { from, relu }, m, args),
        _ => m.error("no such conversion"),
    }
}
