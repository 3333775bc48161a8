//! What the floating-point rows of the table mean (PTX 9.7.3 to 9.7.5, `cvt`): modifiers to functions of `numerics`.
//!
//! The modifiers become constants of a generic function, so that the loop over the lanes has no test of them inside.
#![allow(
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    clippy::double_comparisons,
    reason = "comparisons with NaN must be what PTX says, not what reads best"
)]

use super::decode::{Arg, Cx};
use super::raw::Ty;
use super::sem::{Result, lanes, lll, set_l, set_w, slot, test, www};
use super::table::Mods;
use crate::exec::convert::{self, Map};
use crate::numerics::approx::{self, Function};
use crate::numerics::convert::{Clamp, Float, Fp8};
use crate::numerics::half::{self, Half};
use crate::numerics::single::Extremum;
use crate::numerics::{Mode, Round, double, packed1, packed2, packed3, single};
use crate::program::{L32, L64, Op};

const fn round_of(r: u8) -> Round {
    match r {
        1 => Round::Zero,
        2 => Round::Down,
        3 => Round::Up,
        _ => Round::Nearest,
    }
}

const fn mode<const R: u8, const F: bool, const S: bool>() -> Mode {
    Mode { round: round_of(R), ftz: F, sat: S }
}

fn direction(m: &Mods<'_>) -> u8 {
    match m.words.iter().find(|w| matches!(**w, "rz" | "rm" | "rp")) {
        Some(&"rz") => 1,
        Some(&"rm") => 2,
        Some(_) => 3,
        None => 0,
    }
}

/// Rounding of a conversion.
fn rounding(m: &Mods<'_>) -> Round {
    m.words
        .iter()
        .find_map(|w| match *w {
            "rn" | "rni" => Some(Round::Nearest),
            "rna" => Some(Round::NearestAway),
            "rz" | "rzi" => Some(Round::Zero),
            "rm" | "rmi" => Some(Round::Down),
            "rp" | "rpi" => Some(Round::Up),
            _ => None,
        })
        .unwrap_or(Round::Nearest)
}

/// Calls a function generic over rounding, `.ftz` and `.sat` with the modifiers at hand.
macro_rules! with_mode {
    ($m:expr, $f:ident) => {
        match (direction($m), $m.has("ftz"), $m.has("sat")) {
            (0, false, false) => $f::<0, false, false>,
            (0, false, true) => $f::<0, false, true>,
            (0, true, false) => $f::<0, true, false>,
            (0, true, true) => $f::<0, true, true>,
            (1, false, false) => $f::<1, false, false>,
            (1, false, true) => $f::<1, false, true>,
            (1, true, false) => $f::<1, true, false>,
            (1, true, true) => $f::<1, true, true>,
            (2, false, false) => $f::<2, false, false>,
            (2, false, true) => $f::<2, false, true>,
            (2, true, false) => $f::<2, true, false>,
            (2, true, true) => $f::<2, true, true>,
            (_, false, false) => $f::<3, false, false>,
            (_, false, true) => $f::<3, false, true>,
            (_, true, false) => $f::<3, true, false>,
            (_, true, true) => $f::<3, true, true>,
        }
    };
}

macro_rules! moded2 {
    ($name:ident, $call:path) => {
        fn $name<const R: u8, const F: bool, const S: bool>(d: &mut L32, a: &L32, b: &L32) {
            for i in 0..32 {
                d[i] = $call(mode::<R, F, S>(), a[i], b[i]);
            }
        }
    };
}
moded2!(add, single::add);
moded2!(sub, single::sub);
moded2!(mul, single::mul);

fn fma<const R: u8, const F: bool, const S: bool>(d: &mut L32, a: &L32, b: &L32, c: &L32) {
    for i in 0..32 {
        d[i] = single::fma(mode::<R, F, S>(), a[i], b[i], c[i]);
    }
}

const RN: Mode = Mode::RN;
const RN_FTZ: Mode = Mode { round: Round::Nearest, ftz: true, sat: false };
const PLAIN: Extremum = Extremum { ftz: false, nan: false, xorsign_abs: false };
const FTZ: Extremum = Extremum { ftz: true, nan: false, xorsign_abs: false };
const NAN: Extremum = Extremum { ftz: false, nan: true, xorsign_abs: false };
const FTZ_NAN: Extremum = Extremum { ftz: true, nan: true, xorsign_abs: false };

/// Two f32 sources.
pub(crate) fn f32_2(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L32, &L32, &L32) = match (cx.opcode(), m.has("ftz"), m.has("NaN")) {
        ("add", ..) => with_mode!(m, add),
        ("sub", ..) => with_mode!(m, sub),
        ("mul", ..) => with_mode!(m, mul),
        ("div", ftz, _) if m.has("rn") => {
            if ftz {
                lanes!(x, y => single::div(RN_FTZ, x, y))
            } else {
                lanes!(x, y => single::div(RN, x, y))
            }
        }
        ("div", true, _) => lanes!(x, y => approx::div(true, x, y)),
        ("div", false, _) => lanes!(x, y => approx::div(false, x, y)),
        ("min", false, false) => lanes!(x, y => single::min(PLAIN, x, y)),
        ("min", true, false) => lanes!(x, y => single::min(FTZ, x, y)),
        ("min", false, true) => lanes!(x, y => single::min(NAN, x, y)),
        ("min", true, true) => lanes!(x, y => single::min(FTZ_NAN, x, y)),
        ("max", false, false) => lanes!(x, y => single::max(PLAIN, x, y)),
        ("max", true, false) => lanes!(x, y => single::max(FTZ, x, y)),
        ("max", false, true) => lanes!(x, y => single::max(NAN, x, y)),
        ("max", true, true) => lanes!(x, y => single::max(FTZ_NAN, x, y)),
        // The sign of the first operand goes to the second (PTX 9.7.3.2).
        _ => lanes!(x, y => (y & 0x7FFF_FFFF) | (x & 0x8000_0000)),
    };
    Ok(www(f, args))
}

/// Three f32 sources.
pub(crate) fn f32_3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L32, &L32, &L32, &L32) = with_mode!(m, fma);
    Ok(Op::WWWW { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3) })
}

/// One f32 source.
pub(crate) fn f32_1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let exact = m.has("rn");
    macro_rules! both {
        ($path:path) => {
            if m.has("ftz") { lanes!(x => $path(true, x)) } else { lanes!(x => $path(false, x)) }
        };
    }
    macro_rules! approximate {
        ($which:expr) => {
            if m.has("ftz") { lanes!(x => $which.apply(true, x)) } else { lanes!(x => $which.apply(false, x)) }
        };
    }
    let f: fn(&mut L32, &L32) = match (cx.opcode(), m.has("ftz")) {
        ("abs", _) => both!(single::abs),
        ("neg", _) => both!(single::neg),
        ("rcp", true) if exact => lanes!(x => single::rcp(RN_FTZ, x)),
        ("rcp", false) if exact => lanes!(x => single::rcp(RN, x)),
        ("sqrt", true) if exact => lanes!(x => single::sqrt(RN_FTZ, x)),
        ("sqrt", false) if exact => lanes!(x => single::sqrt(RN, x)),
        ("rcp", _) => approximate!(Function::Rcp),
        ("sqrt", _) => approximate!(Function::Sqrt),
        ("rsqrt", _) => approximate!(Function::Rsqrt),
        ("sin", _) => approximate!(Function::Sin),
        ("cos", _) => approximate!(Function::Cos),
        ("lg2", _) => approximate!(Function::Lg2),
        ("ex2", _) => approximate!(Function::Ex2),
        _ => approximate!(Function::Tanh),
    };
    Ok(Op::WW { f, d: slot(args, 0), a: slot(args, 1) })
}

/// Two f64 sources.
pub(crate) fn f64_2(cx: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L64, &L64, &L64) = match cx.opcode() {
        "add" => lanes!(x, y => double::add(Round::Nearest, x, y)),
        "sub" => lanes!(x, y => double::sub(Round::Nearest, x, y)),
        "mul" => lanes!(x, y => double::mul(Round::Nearest, x, y)),
        "div" => lanes!(x, y => double::div(Round::Nearest, x, y)),
        "min" => lanes!(x, y => double::min(PLAIN, x, y)),
        _ => lanes!(x, y => double::max(PLAIN, x, y)),
    };
    Ok(lll(f, args))
}

/// Three f64 sources.
pub(crate) fn f64_3(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L64, &L64, &L64, &L64) = lanes!(x, y, z => double::fma(Round::Nearest, x, y, z));
    Ok(Op::LLLL { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3) })
}

/// One f64 source.
pub(crate) fn f64_1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L64, &L64) = match cx.opcode() {
        "abs" => lanes!(x => double::abs(x)),
        "neg" => lanes!(x => double::neg(x)),
        "sqrt" => lanes!(x => double::sqrt(Round::Nearest, x)),
        "rcp" if m.has("approx") => lanes!(x => approx::reciprocal_f64(false, x)),
        "rsqrt" => lanes!(x => approx::reciprocal_f64(true, x)),
        _ => lanes!(x => double::rcp(Round::Nearest, x)),
    };
    Ok(Op::LL { f, d: slot(args, 0), a: slot(args, 1) })
}

const fn half_of<const B: bool>() -> Half {
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

/// Fused multiply-add of halves.
pub(crate) fn half3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32, &L32, &L32) =
        if m.has("relu") { with_half!(m, ty, false, half_fma_relu) } else { with_half!(m, ty, m.has("sat"), half_fma) };
    Ok(Op::WWWW { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3) })
}

/// Sign operations on halves.
pub(crate) fn half1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32) =
        if cx.opcode() == "neg" { with_half!(m, ty, false, half_neg) } else { with_half!(m, ty, false, half_abs) };
    Ok(Op::WW { f, d: slot(args, 0), a: slot(args, 1) })
}

/// The relation of a float comparison, on numbers; `u` forms also hold when an operand is NaN (PTX 9.3.2).
macro_rules! relation {
    ($m:expr, $view:expr) => {
        match $m.words.first().copied().unwrap_or("") {
            "eq" => test!(x, y => $view(x) == $view(y)),
            "ne" => test!(x, y => { let (x, y) = ($view(x), $view(y)); x < y || x > y }),
            "lt" => test!(x, y => $view(x) < $view(y)),
            "le" => test!(x, y => $view(x) <= $view(y)),
            "gt" => test!(x, y => $view(x) > $view(y)),
            "ge" => test!(x, y => $view(x) >= $view(y)),
            "equ" => test!(x, y => { let (x, y) = ($view(x), $view(y)); !(x < y || x > y) }),
            "neu" => test!(x, y => $view(x) != $view(y)),
            "ltu" => test!(x, y => !($view(x) >= $view(y))),
            "leu" => test!(x, y => !($view(x) > $view(y))),
            "gtu" => test!(x, y => !($view(x) <= $view(y))),
            "geu" => test!(x, y => !($view(x) < $view(y))),
            "num" => test!(x, y => !$view(x).is_nan() && !$view(y).is_nan()),
            _ => test!(x, y => $view(x).is_nan() || $view(y).is_nan()),
        }
    };
}

/// Float comparison.
pub(crate) fn setp(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&L32, &L32) -> u32 = match (m.ty()?, m.has("ftz")) {
        (Ty::F64, _) => {
            let f: fn(&L64, &L64) -> u32 = relation!(m, f64::from_bits);
            return Ok(set_l(f, m, args));
        }
        (Ty::F32, false) => relation!(m, f32::from_bits),
        (Ty::F32, true) => relation!(m, view_flushed),
        (Ty::F16, false) => relation!(m, view_f16),
        (Ty::F16, true) => relation!(m, view_f16_flushed),
        _ => relation!(m, view_bf16),
    };
    Ok(set_w(f, m, args))
}

/// A comparison by number in the order of the manual's names.
fn compare<const REL: u8>(x: f32, y: f32) -> bool {
    match REL {
        0 => x == y,
        1 => x < y || x > y,
        2 => x < y,
        3 => x <= y,
        4 => x > y,
        5 => x >= y,
        6 => !(x < y || x > y),
        7 => x != y,
        8 => !(x >= y),
        9 => !(x > y),
        10 => !(x <= y),
        11 => !(x < y),
        12 => !x.is_nan() && !y.is_nan(),
        _ => x.is_nan() || y.is_nan(),
    }
}

/// `set` of halves: 1.0 or all ones in each half in which the comparison holds; `.ftz` changes no comparison of f16 but with
/// zero, where both sides count as zero.
fn set_halves<const REL: u8, const B: bool, const F: bool, const ONES: bool>(d: &mut L32, a: &L32, b: &L32) {
    let view = |x: u16| half_of::<B>().widen(if F { half_of::<B>().flush(x) } else { x });
    let yes = if ONES {
        0xFFFF
    } else if B {
        0x3F80
    } else {
        0x3C00
    };
    for i in 0..32 {
        d[i] = packed2(a[i], b[i], |x, y| if compare::<REL>(view(x), view(y)) { yes } else { 0 });
    }
}

/// `set` on f16 and bf16, alone or packed.
pub(crate) fn set_half(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let bf16 = matches!(ty, Ty::BF16 | Ty::BF16x2);
    let ones = matches!(m.first_type(), Some(Ty::U16 | Ty::S16 | Ty::U32));
    macro_rules! relation {
        ($n:literal) => {
            match (bf16, m.has("ftz"), ones) {
                (false, false, false) => set_halves::<$n, false, false, false>,
                (false, false, true) => set_halves::<$n, false, false, true>,
                (false, true, false) => set_halves::<$n, false, true, false>,
                (false, true, true) => set_halves::<$n, false, true, true>,
                (true, _, false) => set_halves::<$n, true, false, false>,
                (true, _, true) => set_halves::<$n, true, false, true>,
            }
        };
    }
    let f: fn(&mut L32, &L32, &L32) = match m.words.first().copied().unwrap_or("") {
        "eq" => relation!(0),
        "ne" => relation!(1),
        "lt" => relation!(2),
        "le" => relation!(3),
        "gt" => relation!(4),
        "ge" => relation!(5),
        "equ" => relation!(6),
        "neu" => relation!(7),
        "ltu" => relation!(8),
        "leu" => relation!(9),
        "gtu" => relation!(10),
        "geu" => relation!(11),
        "num" => relation!(12),
        _ => relation!(13),
    };
    if matches!(ty, Ty::F16 | Ty::BF16) {
        // The upper half of a slot of 16 bits is zero on both sides, and must stay so.
        return Ok(Op::Low { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2) });
    }
    Ok(www(f, args))
}

fn view_flushed(x: u32) -> f32 {
    f32::from_bits(single::flush(x))
}

fn view_f16(x: u32) -> f32 {
    Half::F16.widen(x as u16)
}

fn view_f16_flushed(x: u32) -> f32 {
    Half::F16.widen(Half::F16.flush(x as u16))
}

fn view_bf16(x: u32) -> f32 {
    Half::Bf16.widen(x as u16)
}

fn float(ty: Ty) -> Option<Float> {
    Some(match ty {
        Ty::F16 => Float::F16,
        Ty::BF16 => Float::Bf16,
        Ty::F32 => Float::F32,
        Ty::F64 => Float::F64,
        _ => return None,
    })
}

fn types(m: &Mods<'_>) -> Result<(Ty, Ty)> {
    match (m.first_type(), m.last_type()) {
        (Some(to), Some(from)) => Ok((to, from)),
        _ => m.error("`cvt` needs two types"),
    }
}

fn map(map: Map, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
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
    map(Map::IntToFloat { from: convert::int(from), to, mode: Mode::of(rounding(m)) }, m, args)
}

/// Float to integer; out of range clamps (PTX 9.7.9.21).
pub(crate) fn cvt_to_int(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (to, from) = types(m)?;
    let Some(from) = float(from) else { return m.error("no such conversion") };
    let wide = matches!(args.first(), Some(Arg::Many(_, true)));
    let reg_bits = if wide { 64 } else { 32 };
    let (round, ftz) = (rounding(m), m.has("ftz"));
    map(Map::FloatToInt { from, to: convert::int(to), round, ftz, reg_bits }, m, args)
}

/// Float to float, also to an integral value of the same type.
pub(crate) fn cvt_float(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (to, from) = types(m)?;
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
        (Ty::BF16, Ty::F32) => map(Map::Narrow { to: Half::Bf16, round: mode.round, clamp }, m, args),
        (Ty::F32, Ty::F16) if mode == Mode::RN => {
            Ok(Op::WW { f: lanes!(x => Half::F16.widen(x as u16).to_bits()), d, a })
        }
        (Ty::F16, Ty::F32) if mode == Mode::RN && rounded => {
            Ok(Op::WW { f: lanes!(x => u32::from(Half::F16.narrow(f32::from_bits(x)))), d, a })
        }
        _ if to == from && integral => map(Map::Integral { ty: to_float, mode }, m, args),
        _ if integral => m.error("rounding to an integer needs equal types"),
        _ if to.bytes() < from.bytes() && !rounded => m.error("a narrowing conversion needs a rounding"),
        _ if to.bytes() > from.bytes() && rounded => m.error("a widening conversion takes no rounding"),
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
    let clamp = Clamp { relu: m.has("relu"), satfinite: false };
    let round = if m.has("rz") { Round::Zero } else { Round::Nearest };
    let (d, a, b) = (slot(args, 0), slot(args, 1), slot(args, 2));
    Ok(Op::Map { map: Map::Narrow2 { to, round, clamp }, d, wide: false, a, b, from_wide: false })
}

fn fp8(ty: Option<Ty>) -> Option<Fp8> {
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
