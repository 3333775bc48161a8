//! Arithmetic on f16, bf16 and pairs of them (PTX 9.7.4).

use crate::numerics::half::Half;
use crate::numerics::single::Extremum;
use crate::numerics::{Mode, Round, approx, half, packed1, packed2, packed3};
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::parse::sem::forms::{slot, www};
use crate::parse::sem::lanes::lanes;
use crate::program::Op;
use crate::program::types::{L32, Ty};

pub(super) const fn half_of<const B: bool>() -> Half {
    if B { Half::Bf16 } else { Half::F16 }
}

/// Chooses among the functions generic over bf16, packed, `.ftz`, and one more modifier.
macro_rules! with_half {
    ($m:expr, $ty:expr, $extra:expr, $f:ident) => {
        match ($ty, $m.has("ftz"), $extra) {
            (Ty::BF16, _, false) => $f::<true, false, false, false>,
            (Ty::BF16, _, true) => $f::<true, false, false, true>,
            (Ty::BF16x2, _, false) => $f::<true, true, false, false>,
            (Ty::BF16x2, _, true) => $f::<true, true, false, true>,
            (Ty::F16, false, false) => $f::<false, false, false, false>,
            (Ty::F16, false, true) => $f::<false, false, false, true>,
            (Ty::F16, true, false) => $f::<false, false, true, false>,
            (Ty::F16, true, true) => $f::<false, false, true, true>,
            (_, false, false) => $f::<false, true, false, false>,
            (_, false, true) => $f::<false, true, false, true>,
            (_, true, false) => $f::<false, true, true, false>,
            (_, true, true) => $f::<false, true, true, true>,
        }
    };
}

macro_rules! halves2 {
    ($name:ident, $call:path, $how:expr) => {
        fn $name<const B: bool, const P: bool, const F: bool, const X: bool>(d: &mut L32, a: &L32, b: &L32) {
            let how = $how;
            for i in 0..32 {
                d[i] = if P {
                    packed2(a[i], b[i], |x, y| $call(half_of::<B>(), how, x, y))
                } else {
                    u32::from($call(half_of::<B>(), how, a[i] as u16, b[i] as u16))
                };
            }
        }
    };
}

halves2!(half_add, half::add, Mode { round: Round::Nearest, ftz: F, sat: X });

halves2!(half_sub, half::sub, Mode { round: Round::Nearest, ftz: F, sat: X });

halves2!(half_mul, half::mul, Mode { round: Round::Nearest, ftz: F, sat: X });

halves2!(half_min, half::min, Extremum { ftz: F, nan: X, xorsign_abs: false });

halves2!(half_max, half::max, Extremum { ftz: F, nan: X, xorsign_abs: false });

halves2!(half_min_xorsign, half::min, Extremum { ftz: F, nan: X, xorsign_abs: true });

halves2!(half_max_xorsign, half::max, Extremum { ftz: F, nan: X, xorsign_abs: true });

fn half_fma<const B: bool, const P: bool, const F: bool, const X: bool>(d: &mut L32, a: &L32, b: &L32, c: &L32) {
    let how = Mode { round: Round::Nearest, ftz: F, sat: X };
    for i in 0..32 {
        d[i] = if P {
            packed3(a[i], b[i], c[i], |x, y, z| half::fma(half_of::<B>(), how, x, y, z))
        } else {
            u32::from(half::fma(half_of::<B>(), how, a[i] as u16, b[i] as u16, c[i] as u16))
        };
    }
}

fn half_fma_relu<const B: bool, const P: bool, const F: bool, const X: bool>(d: &mut L32, a: &L32, b: &L32, c: &L32) {
    half_fma::<B, P, F, false>(d, a, b, c);
    for lane in d.iter_mut() {
        *lane = packed1(*lane, |x| half::relu(half_of::<B>(), x));
    }
}

fn half_fma_oob<const B: bool, const P: bool, const F: bool, const X: bool>(d: &mut L32, a: &L32, b: &L32, c: &L32) {
    half_fma::<B, P, F, X>(d, a, b, c);
    for i in 0..32 {
        d[i] = packed3(d[i], a[i], b[i], |sum, x, y| if half::is_outside(x) || half::is_outside(y) { 0 } else { sum });
    }
}

fn half_fma_oob_relu<const B: bool, const P: bool, const F: bool, const X: bool>(
    d: &mut L32,
    a: &L32,
    b: &L32,
    c: &L32,
) {
    half_fma_oob::<B, P, F, false>(d, a, b, c);
    for lane in d.iter_mut() {
        *lane = packed1(*lane, |x| half::relu(half_of::<B>(), x));
    }
}

fn half_neg<const B: bool, const P: bool, const F: bool, const X: bool>(d: &mut L32, a: &L32) {
    for i in 0..32 {
        let all = packed1(a[i], |x| half::neg(half_of::<B>(), F, x));
        d[i] = if P { all } else { all & 0xFFFF };
    }
}

fn half_abs<const B: bool, const P: bool, const F: bool, const X: bool>(d: &mut L32, a: &L32) {
    for i in 0..32 {
        let all = packed1(a[i], |x| half::abs(half_of::<B>(), F, x));
        d[i] = if P { all } else { all & 0xFFFF };
    }
}

/// Two f16 or bf16 sources, alone or packed.
pub(crate) fn half2(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32, &L32) = match cx.opcode() {
        "add" => with_half!(m, ty, m.has("sat"), half_add),
        "sub" => with_half!(m, ty, m.has("sat"), half_sub),
        "mul" => with_half!(m, ty, m.has("sat"), half_mul),
        "min" => with_half!(m, ty, m.has("NaN"), half_min),
        _ => with_half!(m, ty, m.has("NaN"), half_max),
    };
    Ok(www(f, args))
}

/// `min` and `max` of halves by magnitude, with the exclusive or of the signs.
pub(crate) fn xorsign_half(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32, &L32) = if cx.opcode() == "min" {
        with_half!(m, ty, m.has("NaN"), half_min_xorsign)
    } else {
        with_half!(m, ty, m.has("NaN"), half_max_xorsign)
    };
    Ok(www(f, args))
}

/// Fused multiply-add of halves.
pub(crate) fn half3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32, &L32, &L32) = match (m.has("oob"), m.has("relu")) {
        (false, false) => with_half!(m, ty, m.has("sat"), half_fma),
        (false, true) => with_half!(m, ty, false, half_fma_relu),
        (true, false) => with_half!(m, ty, m.has("sat"), half_fma_oob),
        (true, true) => with_half!(m, ty, false, half_fma_oob_relu),
    };
    Ok(Op::WWWW { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3) })
}

/// Sign operations on halves.
pub(crate) fn half1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32) =
        if cx.opcode() == "neg" { with_half!(m, ty, false, half_neg) } else { with_half!(m, ty, false, half_abs) };
    Ok(Op::WW { f, d: slot(args, 0), a: slot(args, 1) })
}

/// `ex2` and `tanh` of halves.
pub(crate) fn half_approx(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    macro_rules! both {
        ($one:path, $two:path) => {
            match m.ty()? {
                Ty::F16 => lanes!(x => u32::from($one(Half::F16, x as u16))),
                Ty::F16x2 => lanes!(x => $two(Half::F16, x)),
                Ty::BF16 => lanes!(x => u32::from($one(Half::Bf16, x as u16))),
                _ => lanes!(x => $two(Half::Bf16, x)),
            }
        };
    }
    let f: fn(&mut L32, &L32) = if cx.opcode() == "ex2" {
        both!(approx::ex2_half, approx::ex2_half2)
    } else {
        both!(approx::tanh_half, approx::tanh_half2)
    };
    Ok(Op::WW { f, d: slot(args, 0), a: slot(args, 1) })
}
