//! Comparison of floats (PTX 9.7.5, 9.7.7).

use super::half::half_of;
use crate::numerics::half::Half;
use crate::numerics::{packed2, single};
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::parse::sem::forms::{join, joined, set_l, set_w, slot, truth, www};
use crate::parse::sem::lanes::test;
use crate::program::Op;
use crate::program::types::{L32, L64, SINK, Ty};

/// The relation of a float comparison, on numbers; `u` forms also hold when an operand is NaN (PTX 9.3.2).
macro_rules! relation {
    ($m:expr, $view:expr) => {
        match $m.words.first().copied().unwrap_or("") {
            "eq" => test!(x, y => ($view)(x) == ($view)(y)),
            "ne" => test!(x, y => { let (x, y) = (($view)(x), ($view)(y)); x < y || x > y }),
            "lt" => test!(x, y => ($view)(x) < ($view)(y)),
            "le" => test!(x, y => ($view)(x) <= ($view)(y)),
            "gt" => test!(x, y => ($view)(x) > ($view)(y)),
            "ge" => test!(x, y => ($view)(x) >= ($view)(y)),
            "equ" => test!(x, y => { let (x, y) = (($view)(x), ($view)(y)); !(x < y || x > y) }),
            "neu" => test!(x, y => ($view)(x) != ($view)(y)),
            "ltu" => test!(x, y => !(($view)(x) >= ($view)(y))),
            "leu" => test!(x, y => !(($view)(x) > ($view)(y))),
            "gtu" => test!(x, y => !(($view)(x) <= ($view)(y))),
            "geu" => test!(x, y => !(($view)(x) < ($view)(y))),
            "num" => test!(x, y => !($view)(x).is_nan() && !($view)(y).is_nan()),
            _ => test!(x, y => ($view)(x).is_nan() || ($view)(y).is_nan()),
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
pub(super) fn compare<const REL: u8>(x: f32, y: f32) -> bool {
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

/// `set` of pairs: each half where the comparison holds as all ones or 1.0; `.ftz` changes no comparison of f16 but with
/// zero, where both sides count as zero.
pub(super) fn set_halves<const REL: u8, const B: bool, const F: bool, const ONES: bool>(d: &mut L32, a: &L32, b: &L32) {
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

/// `set` on pairs of f16 and bf16.
pub(crate) fn set_pair(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ones = matches!(m.first_type(), Some(Ty::U32 | Ty::S32));
    macro_rules! relation {
        ($n:literal) => {
            match (m.ty()? == Ty::BF16x2, m.has("ftz"), ones) {
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
    Ok(joined(www(f, args), truth(m.first_type()), m, args))
}

/// Comparison of pairs: the first predicate is about the lower halves, the second about the upper ones.
pub(crate) fn setp_pair(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let f: [fn(&L32, &L32) -> u32; 2] = match (m.ty()?, m.has("ftz")) {
        (Ty::F16x2, false) => [relation!(m, view_f16), relation!(m, |x| view_f16(x >> 16))],
        (Ty::F16x2, true) => [relation!(m, view_f16_flushed), relation!(m, |x| view_f16_flushed(x >> 16))],
        _ => [relation!(m, view_bf16), relation!(m, |x| view_bf16(x >> 16))],
    };
    let (p, q) = match args.first() {
        Some(Arg::Two(p, q)) => (*p, *q),
        _ => (slot(args, 0), SINK),
    };
    Ok(Op::SetPair { f, d: [p, q], a: slot(args, 1), b: slot(args, 2), with: join(m, args) })
}

pub(super) fn view_flushed(x: u32) -> f32 {
    f32::from_bits(single::flush(x))
}

pub(super) fn view_f16(x: u32) -> f32 {
    Half::F16.widen(x as u16)
}

pub(super) fn view_f16_flushed(x: u32) -> f32 {
    Half::F16.widen(Half::F16.flush(x as u16))
}

pub(super) fn view_bf16(x: u32) -> f32 {
    Half::Bf16.widen(x as u16)
}
