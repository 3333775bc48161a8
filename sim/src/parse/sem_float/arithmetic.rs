//! Arithmetic on f32 and f64 (PTX 9.7.3).

use super::mode::{direction, mode, round_of};
use crate::numerics::approx::Function;
use crate::numerics::single::Extremum;
use crate::numerics::{approx, double, single};
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::parse::sem::forms::{lll, slot, www};
use crate::parse::sem::lanes::{lanes, test};
use crate::program::Op;
use crate::program::types::{L32, L64, SINK, Ty};

/// Calls a function generic over rounding, `.ftz` and `.sat` with the current modifiers.
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

moded2!(div, single::div);

macro_rules! moded1 {
    ($name:ident, $call:path) => {
        fn $name<const R: u8, const F: bool, const S: bool>(d: &mut L32, a: &L32) {
            for i in 0..32 {
                d[i] = $call(mode::<R, F, S>(), a[i]);
            }
        }
    };
}

moded1!(rcp, single::rcp);

moded1!(sqrt, single::sqrt);

fn fma<const R: u8, const F: bool, const S: bool>(d: &mut L32, a: &L32, b: &L32, c: &L32) {
    for i in 0..32 {
        d[i] = single::fma(mode::<R, F, S>(), a[i], b[i], c[i]);
    }
}

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
        ("div", true, _) if m.has("approx") => lanes!(x, y => approx::div(true, x, y)),
        ("div", false, _) if m.has("approx") => lanes!(x, y => approx::div(false, x, y)),
        ("div", ..) => with_mode!(m, div),
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

/// `min` and `max` by magnitude, with the exclusive or of the signs.
pub(crate) fn xorsign(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    const fn how(ftz: bool, nan: bool) -> Extremum {
        Extremum { ftz, nan, xorsign_abs: true }
    }
    let f: fn(&mut L32, &L32, &L32) = match (cx.opcode(), m.has("ftz"), m.has("NaN")) {
        ("min", false, false) => lanes!(x, y => single::min(how(false, false), x, y)),
        ("min", true, false) => lanes!(x, y => single::min(how(true, false), x, y)),
        ("min", false, true) => lanes!(x, y => single::min(how(false, true), x, y)),
        ("min", true, true) => lanes!(x, y => single::min(how(true, true), x, y)),
        (_, false, false) => lanes!(x, y => single::max(how(false, false), x, y)),
        (_, true, false) => lanes!(x, y => single::max(how(true, false), x, y)),
        (_, false, true) => lanes!(x, y => single::max(how(false, true), x, y)),
        (_, true, true) => lanes!(x, y => single::max(how(true, true), x, y)),
    };
    Ok(www(f, args))
}

/// `testp`: tests the class of a number.
pub(crate) fn testp(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    macro_rules! kind {
        ($view:expr) => {
            match m.words.first().copied().unwrap_or("") {
                "finite" => test!(x, _y => $view(x).is_finite()),
                "infinite" => test!(x, _y => $view(x).is_infinite()),
                "number" => test!(x, _y => !$view(x).is_nan()),
                "notanumber" => test!(x, _y => $view(x).is_nan()),
                // Zero is a normal number (PTX 9.7.3.1).
                "normal" => test!(x, _y => $view(x).is_normal() || $view(x) == 0.0),
                _ => test!(x, _y => $view(x).is_subnormal()),
            }
        };
    }
    let (p, a) = (slot(args, 0), slot(args, 1));
    if m.ty()? == Ty::F64 {
        let f: fn(&L64, &L64) -> u32 = kind!(f64::from_bits);
        return Ok(Op::SetL { f, p, q: SINK, a, b: a, with: None });
    }
    let f: fn(&L32, &L32) -> u32 = kind!(f32::from_bits);
    Ok(Op::SetW { f, p, q: SINK, a, b: a, with: None })
}

/// Three f32 sources.
pub(crate) fn f32_3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L32, &L32, &L32, &L32) = with_mode!(m, fma);
    Ok(Op::WWWW { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3) })
}

/// One f32 source.
pub(crate) fn f32_1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let exact = !m.has("approx");
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
        ("rcp", _) if exact => with_mode!(m, rcp),
        ("sqrt", _) if exact => with_mode!(m, sqrt),
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

/// Selects the function generic over rounding for the current modifiers.
macro_rules! with_round {
    ($m:expr, $f:ident) => {
        match direction($m) {
            0 => $f::<0>,
            1 => $f::<1>,
            2 => $f::<2>,
            _ => $f::<3>,
        }
    };
}

macro_rules! rounded {
    ($name:ident, $call:path, $($source:ident),*) => {
        fn $name<const R: u8>(d: &mut L64, $($source: &L64),*) {
            for i in 0..32 {
                d[i] = $call(round_of(R), $($source[i]),*);
            }
        }
    };
}

rounded!(add64, double::add, a, b);

rounded!(sub64, double::sub, a, b);

rounded!(mul64, double::mul, a, b);

rounded!(div64, double::div, a, b);

rounded!(fma64, double::fma, a, b, c);

rounded!(rcp64, double::rcp, a);

rounded!(sqrt64, double::sqrt, a);

/// Two f64 sources.
pub(crate) fn f64_2(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L64, &L64, &L64) = match cx.opcode() {
        "add" => with_round!(m, add64),
        "sub" => with_round!(m, sub64),
        "mul" => with_round!(m, mul64),
        "div" => with_round!(m, div64),
        "min" => lanes!(x, y => double::min(PLAIN, x, y)),
        "max" => lanes!(x, y => double::max(PLAIN, x, y)),
        // The sign of the first operand goes to the second (PTX 9.7.3.2).
        _ => lanes!(x, y => (y & !(1 << 63)) | (x & 1 << 63)),
    };
    Ok(lll(f, args))
}

/// Three f64 sources.
pub(crate) fn f64_3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L64, &L64, &L64, &L64) = with_round!(m, fma64);
    Ok(Op::LLLL { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3) })
}

/// One f64 source.
pub(crate) fn f64_1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: fn(&mut L64, &L64) = match cx.opcode() {
        "abs" => lanes!(x => double::abs(x)),
        "neg" => lanes!(x => double::neg(x)),
        "sqrt" => with_round!(m, sqrt64),
        "rcp" if m.has("approx") => lanes!(x => approx::reciprocal_f64(false, x)),
        "rsqrt" if m.has("ftz") => lanes!(x => approx::reciprocal_f64(true, x)),
        "rsqrt" => lanes!(x => approx::rsqrt_f64(x)),
        _ => with_round!(m, rcp64),
    };
    Ok(Op::LL { f, d: slot(args, 0), a: slot(args, 1) })
}
