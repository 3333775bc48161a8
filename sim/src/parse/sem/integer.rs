//! Integers (PTX 9.7.1, 9.7.2).

use super::bits::{funnel, low_bits, prmt, prmt_mode};
use super::forms::{lanewise, lll, slot, sx16, www};
use super::lanes::lanes;
use crate::numerics::bits::Part;
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::lanewise::Function;
use crate::program::types::{L32, L64, Ty};
use crate::program::{Carry, CarryKind, Op};

/// Operations on two sources of the result's size. A quotient and a remainder by zero are all ones, where the manual
/// leaves the result open: the hardware's instruction sequence gives that (measured on Hopper; the sequence is the same
/// for all targets).
pub(crate) fn int2(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let op = cx.opcode();
    if matches!(op, "xor" | "sub") && slot(args, 1) == slot(args, 2) && ty.bytes() >= 2 {
        // `xor` and `sub` of a register with itself give zero even if it is undefined: compilers make zeros so.
        let (d, wide) = (slot(args, 0), ty.bytes() == 8);
        let a = cx.constant(wide, 0, m.pos)?;
        return Ok(if wide { Op::Mov64 { d, a } } else { Op::Mov32 { d, a } });
    }
    Ok(match ty.bytes() {
        8 => lll(longs(m, op, ty)?, args),
        2 => www(halves(m, op, ty)?, args),
        _ => www(words(m, op, ty)?, args),
    })
}

/// Of 64 bits.
fn longs(m: &Mods<'_>, op: &str, ty: Ty) -> Result<fn(&mut L64, &L64, &L64)> {
    let hi = m.has("hi");
    let f: fn(&mut L64, &L64, &L64) = match (op, ty) {
        ("add", _) => lanes!(x, y => x.wrapping_add(y)),
        ("sub", _) => lanes!(x, y => x.wrapping_sub(y)),
        ("mul", _) if !hi => lanes!(x, y => x.wrapping_mul(y)),
        ("mul", Ty::S64) => lanes!(x, y => ((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64),
        ("mul", _) => lanes!(x, y => ((u128::from(x) * u128::from(y)) >> 64) as u64),
        ("div", Ty::S64) => {
            lanes!(x, y => if y == 0 { u64::MAX } else { (x as i64).wrapping_div(y as i64) as u64 })
        }
        ("div", _) => lanes!(x, y => x.checked_div(y).unwrap_or(u64::MAX)),
        ("rem", Ty::S64) => {
            lanes!(x, y => if y == 0 { u64::MAX } else { (x as i64).wrapping_rem(y as i64) as u64 })
        }
        ("rem", _) => lanes!(x, y => x.checked_rem(y).unwrap_or(u64::MAX)),
        ("min", Ty::S64) => lanes!(x, y => (x as i64).min(y as i64) as u64),
        ("min", _) => lanes!(x, y => x.min(y)),
        ("max", Ty::S64) => lanes!(x, y => (x as i64).max(y as i64) as u64),
        ("max", _) => lanes!(x, y => x.max(y)),
        ("and", _) => lanes!(x, y => x & y),
        ("or", _) => lanes!(x, y => x | y),
        ("xor", _) => lanes!(x, y => x ^ y),
        _ => return m.error(format!("`{op}` does not work on {ty:?}")),
    };
    Ok(f)
}

/// Of 16 bits.
fn halves(m: &Mods<'_>, op: &str, ty: Ty) -> Result<fn(&mut L32, &L32, &L32)> {
    let hi = m.has("hi");
    let f: fn(&mut L32, &L32, &L32) = match (op, ty) {
        ("add", _) => lanes!(x, y => x.wrapping_add(y) & 0xFFFF),
        ("sub", _) => lanes!(x, y => x.wrapping_sub(y) & 0xFFFF),
        ("mul", _) if !hi => lanes!(x, y => (x & 0xFFFF).wrapping_mul(y & 0xFFFF) & 0xFFFF),
        ("mul", Ty::S16) => lanes!(x, y => ((sx16(x) * sx16(y)) >> 16) as u32 & 0xFFFF),
        ("mul", _) => lanes!(x, y => (x & 0xFFFF).wrapping_mul(y & 0xFFFF) >> 16),
        ("div", Ty::S16) => lanes!(x, y => if y == 0 { 0xFFFF } else { (sx16(x) / sx16(y)) as u32 & 0xFFFF }),
        ("div", _) => lanes!(x, y => x.checked_div(y).unwrap_or(0xFFFF)),
        ("rem", Ty::S16) => lanes!(x, y => if y == 0 { 0xFFFF } else { (sx16(x) % sx16(y)) as u32 & 0xFFFF }),
        ("rem", _) => lanes!(x, y => x.checked_rem(y).unwrap_or(0xFFFF)),
        ("min", Ty::S16) => lanes!(x, y => sx16(x).min(sx16(y)) as u32 & 0xFFFF),
        ("min", _) => lanes!(x, y => x.min(y)),
        ("max", Ty::S16) => lanes!(x, y => sx16(x).max(sx16(y)) as u32 & 0xFFFF),
        ("max", _) => lanes!(x, y => x.max(y)),
        ("and", _) => lanes!(x, y => x & y),
        ("or", _) => lanes!(x, y => x | y),
        ("xor", _) => lanes!(x, y => x ^ y),
        ("shl", _) => lanes!(x, y => if y > 15 { 0 } else { (x << y) & 0xFFFF }),
        ("shr", Ty::S16) => lanes!(x, y => (sx16(x) >> y.min(15)) as u32 & 0xFFFF),
        ("shr", _) => lanes!(x, y => if y > 15 { 0 } else { x >> y }),
        _ => return m.error(format!("`{op}` does not work on {ty:?}")),
    };
    Ok(f)
}

/// Of 32 bits.
fn words(m: &Mods<'_>, op: &str, ty: Ty) -> Result<fn(&mut L32, &L32, &L32)> {
    let (hi, clamp, relu) = (m.has("hi"), m.has("clamp"), m.has("relu"));
    let f: fn(&mut L32, &L32, &L32) = match (op, ty) {
        ("add", _) if m.has("sat") => lanes!(x, y => (x as i32).saturating_add(y as i32) as u32),
        ("sub", _) if m.has("sat") => lanes!(x, y => (x as i32).saturating_sub(y as i32) as u32),
        ("add", _) => lanes!(x, y => x.wrapping_add(y)),
        ("sub", _) => lanes!(x, y => x.wrapping_sub(y)),
        ("mul", _) if !hi => lanes!(x, y => x.wrapping_mul(y)),
        ("mul", Ty::S32) => lanes!(x, y => ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32),
        ("mul", _) => lanes!(x, y => ((u64::from(x) * u64::from(y)) >> 32) as u32),
        ("mul24", Ty::S32) if hi => {
            lanes!(x, y => ((i64::from((x << 8) as i32 >> 8) * i64::from((y << 8) as i32 >> 8)) >> 16) as u32)
        }
        ("mul24", Ty::S32) => lanes!(x, y => ((x << 8) as i32 >> 8).wrapping_mul((y << 8) as i32 >> 8) as u32),
        ("mul24", _) if hi => lanes!(x, y => ((u64::from(x & 0xFF_FFFF) * u64::from(y & 0xFF_FFFF)) >> 16) as u32),
        ("mul24", _) => lanes!(x, y => (x & 0xFF_FFFF).wrapping_mul(y & 0xFF_FFFF)),
        ("div", Ty::S32) => lanes!(x, y => if y == 0 { u32::MAX } else { (x as i32).wrapping_div(y as i32) as u32 }),
        ("div", _) => lanes!(x, y => x.checked_div(y).unwrap_or(u32::MAX)),
        ("rem", Ty::S32) => lanes!(x, y => if y == 0 { u32::MAX } else { (x as i32).wrapping_rem(y as i32) as u32 }),
        ("rem", _) => lanes!(x, y => x.checked_rem(y).unwrap_or(u32::MAX)),
        ("min", Ty::S32) if relu => lanes!(x, y => (x as i32).min(y as i32).max(0) as u32),
        ("max", Ty::S32) if relu => lanes!(x, y => (x as i32).max(y as i32).max(0) as u32),
        ("min", Ty::S32) => lanes!(x, y => (x as i32).min(y as i32) as u32),
        ("min", _) => lanes!(x, y => x.min(y)),
        ("max", Ty::S32) => lanes!(x, y => (x as i32).max(y as i32) as u32),
        ("max", _) => lanes!(x, y => x.max(y)),
        ("and", _) => lanes!(x, y => x & y),
        ("or", _) => lanes!(x, y => x | y),
        ("xor", _) => lanes!(x, y => x ^ y),
        ("shl", _) => lanes!(x, y => if y > 31 { 0 } else { x << y }),
        ("shr", Ty::S32) => lanes!(x, y => ((x as i32) >> y.min(31)) as u32),
        ("shr", _) => lanes!(x, y => if y > 31 { 0 } else { x >> y }),
        ("szext", Ty::S32) if clamp => lanes!(x, n => szext(x, n.min(32), true)),
        ("szext", Ty::S32) => lanes!(x, n => szext(x, n & 31, true)),
        ("szext", _) if clamp => lanes!(x, n => szext(x, n.min(32), false)),
        ("szext", _) => lanes!(x, n => szext(x, n & 31, false)),
        ("bmsk", _) if clamp => lanes!(p, n => low_bits(n).checked_shl(p).unwrap_or(0)),
        ("bmsk", _) => lanes!(p, n => low_bits(n & 31) << (p & 31)),
        _ => return m.error(format!("`{op}` does not work on {ty:?}")),
    };
    Ok(f)
}

/// The 48 bits of a product of the low 24 bits of two words.
const fn product24(x: u32, y: u32, signed: bool) -> i64 {
    if signed {
        ((x << 8) as i32 >> 8) as i64 * ((y << 8) as i32 >> 8) as i64
    } else {
        (x & 0xFF_FFFF) as i64 * (y & 0xFF_FFFF) as i64
    }
}

pub(super) const fn szext(x: u32, n: u32, signed: bool) -> u32 {
    if n == 0 {
        0
    } else if n >= 32 {
        x
    } else if signed {
        ((x << (32 - n)) as i32 >> (32 - n)) as u32
    } else {
        x & low_bits(n)
    }
}

/// One source of the size of the result.
pub(crate) fn int1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let op = cx.opcode();
    let (d, a) = (slot(args, 0), slot(args, 1));
    if ty.bytes() == 8 {
        let f: fn(&mut L64, &L64) = match op {
            "abs" => lanes!(x => (x as i64).wrapping_abs() as u64),
            "neg" => lanes!(x => x.wrapping_neg()),
            "not" => lanes!(x => !x),
            "cnot" => lanes!(x => u64::from(x == 0)),
            _ => lanes!(x => x.reverse_bits()),
        };
        return Ok(Op::LL { f, d, a });
    }
    let f: fn(&mut L32, &L32) = match (op, ty.bytes()) {
        ("abs", 2) => lanes!(x => sx16(x).wrapping_abs() as u32 & 0xFFFF),
        ("neg", 2) => lanes!(x => x.wrapping_neg() & 0xFFFF),
        ("not", 2) => lanes!(x => !x & 0xFFFF),
        ("abs", _) => lanes!(x => (x as i32).wrapping_abs() as u32),
        ("neg", _) => lanes!(x => x.wrapping_neg()),
        ("not", _) => lanes!(x => !x),
        ("cnot", _) => lanes!(x => u32::from(x == 0)),
        _ => lanes!(x => x.reverse_bits()),
    };
    Ok(Op::WW { f, d, a })
}

pub(super) fn find(x: u64, bits: u32, signed: bool, shift: bool) -> u32 {
    let extended = if bits == 32 && signed { i64::from(x as u32 as i32) as u64 } else { x };
    let x = if signed && (extended as i64) < 0 { !extended } else { extended };
    let x = if bits == 32 { x & 0xFFFF_FFFF } else { x };
    match x.checked_ilog2() {
        None => u32::MAX,
        Some(at) if shift => bits - 1 - at,
        Some(at) => at,
    }
}

/// Counts of bits: the result has 32 bits (PTX 9.7.1.12 to 9.7.1.14).
pub(crate) fn bits1(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a) = (slot(args, 0), slot(args, 1));
    let ty = m.ty()?;
    let shift = m.has("shiftamt");
    if ty.bytes() == 8 {
        let f: fn(&mut L32, &L64) = match (cx.opcode(), ty.signed(), shift) {
            ("popc", ..) => lanes!(x => x.count_ones()),
            ("clz", ..) => lanes!(x => x.leading_zeros()),
            (_, true, true) => lanes!(x => find(x, 64, true, true)),
            (_, true, false) => lanes!(x => find(x, 64, true, false)),
            (_, false, true) => lanes!(x => find(x, 64, false, true)),
            (_, false, false) => lanes!(x => find(x, 64, false, false)),
        };
        return Ok(Op::WL { f, d, a });
    }
    let f: fn(&mut L32, &L32) = match (cx.opcode(), ty.signed(), shift) {
        ("popc", ..) => lanes!(x => x.count_ones()),
        ("clz", ..) => lanes!(x => x.leading_zeros()),
        (_, true, true) => lanes!(x => find(u64::from(x), 32, true, true)),
        (_, true, false) => lanes!(x => find(u64::from(x), 32, true, false)),
        (_, false, true) => lanes!(x => find(u64::from(x), 32, false, true)),
        (_, false, false) => lanes!(x => find(u64::from(x), 32, false, false)),
    };
    Ok(Op::WW { f, d, a })
}

/// `mul.wide`.
pub(crate) fn mul_wide(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a, b) = (slot(args, 0), slot(args, 1), slot(args, 2));
    Ok(match m.ty()? {
        Ty::S16 => Op::WWW { f: lanes!(x, y => (sx16(x) * sx16(y)) as u32), d, a, b },
        Ty::U16 => Op::WWW { f: lanes!(x, y => (x & 0xFFFF).wrapping_mul(y & 0xFFFF)), d, a, b },
        Ty::S32 => Op::LWW { f: lanes!(x, y => (i64::from(x as i32) * i64::from(y as i32)) as u64), d, a, b },
        _ => Op::LWW { f: lanes!(x, y => u64::from(x) * u64::from(y)), d, a, b },
    })
}

/// Three sources of the size of the result, and `mad.wide`.
pub(crate) fn mad(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a, b, c) = (slot(args, 0), slot(args, 1), slot(args, 2), slot(args, 3));
    let (hi, wide, clamp) = (m.has("hi"), m.has("wide"), m.has("clamp"));
    let ty = m.ty()?;
    let f: fn(&mut L32, &L32, &L32, &L32) = match (cx.opcode(), ty) {
        ("mad", Ty::S32) if wide => {
            let f: fn(&mut L64, &L32, &L32, &L64) =
                lanes!(x, y, z => (i64::from(x as i32) * i64::from(y as i32)).wrapping_add(z as i64) as u64);
            return Ok(Op::LWWL { f, d, a, b, c });
        }
        ("mad", Ty::U32) if wide => {
            let f: fn(&mut L64, &L32, &L32, &L64) = lanes!(x, y, z => (u64::from(x) * u64::from(y)).wrapping_add(z));
            return Ok(Op::LWWL { f, d, a, b, c });
        }
        ("mad", Ty::S16) if wide => lanes!(x, y, z => ((sx16(x) * sx16(y)) as u32).wrapping_add(z)),
        ("mad", Ty::U16) if wide => lanes!(x, y, z => (x & 0xFFFF).wrapping_mul(y & 0xFFFF).wrapping_add(z)),
        ("mad", Ty::S64 | Ty::U64) => {
            let f: fn(&mut L64, &L64, &L64, &L64) = match ty {
                _ if !hi => lanes!(x, y, z => x.wrapping_mul(y).wrapping_add(z)),
                Ty::S64 => {
                    lanes!(x, y, z => (((i128::from(x as i64) * i128::from(y as i64)) >> 64) as u64).wrapping_add(z))
                }
                _ => lanes!(x, y, z => (((u128::from(x) * u128::from(y)) >> 64) as u64).wrapping_add(z)),
            };
            return Ok(Op::LLLL { f, d, a, b, c });
        }
        ("sad", Ty::S64) => {
            let f: fn(&mut L64, &L64, &L64, &L64) = lanes!(x, y, z => (x as i64).abs_diff(y as i64).wrapping_add(z));
            return Ok(Op::LLLL { f, d, a, b, c });
        }
        ("sad", Ty::U64) => {
            let f: fn(&mut L64, &L64, &L64, &L64) = lanes!(x, y, z => x.abs_diff(y).wrapping_add(z));
            return Ok(Op::LLLL { f, d, a, b, c });
        }
        // The upper half of the product first, then a sum that is clamped (PTX 9.7.1.4, 9.7.1.7).
        ("mad", Ty::S32) if m.has("sat") => {
            lanes!(x, y, z => (((i64::from(x as i32) * i64::from(y as i32)) >> 32) as i32).saturating_add(z as i32) as u32)
        }
        ("mad24", Ty::S32) if m.has("sat") => {
            lanes!(x, y, z => ((product24(x, y, true) >> 16) as i32).saturating_add(z as i32) as u32)
        }
        ("mad24", Ty::S32) if hi => lanes!(x, y, z => ((product24(x, y, true) >> 16) as u32).wrapping_add(z)),
        ("mad24", Ty::S32) => lanes!(x, y, z => (product24(x, y, true) as u32).wrapping_add(z)),
        ("mad24", _) if hi => lanes!(x, y, z => ((product24(x, y, false) >> 16) as u32).wrapping_add(z)),
        ("mad24", _) => lanes!(x, y, z => (product24(x, y, false) as u32).wrapping_add(z)),
        ("mad", Ty::S16) if hi => {
            lanes!(x, y, z => (((sx16(x) * sx16(y)) >> 16) as u32).wrapping_add(z) & 0xFFFF)
        }
        ("mad", Ty::U16) if hi => {
            lanes!(x, y, z => ((x & 0xFFFF).wrapping_mul(y & 0xFFFF) >> 16).wrapping_add(z) & 0xFFFF)
        }
        ("mad", Ty::S16 | Ty::U16) => lanes!(x, y, z => x.wrapping_mul(y).wrapping_add(z) & 0xFFFF),
        ("mad", Ty::S32) if hi => {
            lanes!(x, y, z => (((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32).wrapping_add(z))
        }
        ("mad", _) if hi => lanes!(x, y, z => (((u64::from(x) * u64::from(y)) >> 32) as u32).wrapping_add(z)),
        ("mad", _) => lanes!(x, y, z => x.wrapping_mul(y).wrapping_add(z)),
        ("sad", Ty::S16) => lanes!(x, y, z => sx16(x).abs_diff(sx16(y)).wrapping_add(z) & 0xFFFF),
        ("sad", Ty::U16) => lanes!(x, y, z => x.abs_diff(y).wrapping_add(z) & 0xFFFF),
        ("sad", Ty::S32) => lanes!(x, y, z => (x as i32).abs_diff(y as i32).wrapping_add(z)),
        ("sad", _) => lanes!(x, y, z => x.abs_diff(y).wrapping_add(z)),
        ("shf", _) => match (m.has("l"), clamp) {
            (true, true) => lanes!(x, y, n => funnel(x, y, n.min(32), true)),
            (true, false) => lanes!(x, y, n => funnel(x, y, n & 31, true)),
            (false, true) => lanes!(x, y, n => funnel(x, y, n.min(32), false)),
            (false, false) => lanes!(x, y, n => funnel(x, y, n & 31, false)),
        },
        ("prmt", _) => match m.words.last() {
            Some(&"f4e") => lanes!(x, y, z => prmt(x, y, prmt_mode(0, z))),
            Some(&"b4e") => lanes!(x, y, z => prmt(x, y, prmt_mode(1, z))),
            Some(&"rc8") => lanes!(x, y, z => prmt(x, y, prmt_mode(2, z))),
            Some(&"ecl") => lanes!(x, y, z => prmt(x, y, prmt_mode(3, z))),
            Some(&"ecr") => lanes!(x, y, z => prmt(x, y, prmt_mode(4, z))),
            Some(&"rc16") => lanes!(x, y, z => prmt(x, y, prmt_mode(5, z))),
            _ => lanes!(x, y, z => prmt(x, y, z)),
        },
        (op, _) => return m.error(format!("`{op}` does not work on {ty:?}")),
    };
    Ok(Op::WWWW { f, d, a, b, c })
}

/// `dp4a`.
pub(crate) fn dp4a(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    use crate::numerics::bits::dp4a;
    let (d, a, b, c) = (slot(args, 0), slot(args, 1), slot(args, 2), slot(args, 3));
    let f: fn(&mut L32, &L32, &L32, &L32) = match (m.first_type(), m.last_type()) {
        (Some(Ty::S32), Some(Ty::S32)) => lanes!(x, y, z => dp4a(x, y, z, true, true)),
        (Some(Ty::S32), _) => lanes!(x, y, z => dp4a(x, y, z, true, false)),
        (_, Some(Ty::S32)) => lanes!(x, y, z => dp4a(x, y, z, false, true)),
        _ => lanes!(x, y, z => dp4a(x, y, z, false, false)),
    };
    Ok(Op::WWWW { f, d, a, b, c })
}

/// `dp2a`.
pub(crate) fn dp2a(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    use crate::numerics::bits::dp2a;
    let signed = |ty: Option<Ty>| ty == Some(Ty::S32);
    let (d, a, b, c) = (slot(args, 0), slot(args, 1), slot(args, 2), slot(args, 3));
    let f: fn(&mut L32, &L32, &L32, &L32) = match (signed(m.first_type()), signed(m.last_type()), m.has("hi")) {
        (true, true, true) => lanes!(x, y, z => dp2a(x, y, z, true, true, true)),
        (true, true, false) => lanes!(x, y, z => dp2a(x, y, z, true, true, false)),
        (true, false, true) => lanes!(x, y, z => dp2a(x, y, z, true, false, true)),
        (true, false, false) => lanes!(x, y, z => dp2a(x, y, z, true, false, false)),
        (false, true, true) => lanes!(x, y, z => dp2a(x, y, z, false, true, true)),
        (false, true, false) => lanes!(x, y, z => dp2a(x, y, z, false, true, false)),
        (false, false, true) => lanes!(x, y, z => dp2a(x, y, z, false, false, true)),
        (false, false, false) => lanes!(x, y, z => dp2a(x, y, z, false, false, false)),
    };
    Ok(Op::WWWW { f, d, a, b, c })
}

/// Extended-precision arithmetic.
pub(crate) fn carry(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let op = cx.opcode();
    let carry = cx.carry(m.pos)?;
    let ty = m.ty()?;
    let kind = match op {
        "add" | "addc" => CarryKind::Add,
        "sub" | "subc" => CarryKind::Sub,
        _ => CarryKind::Mad { hi: m.has("hi"), signed: ty.signed() },
    };
    let (a, b) = (slot(args, 1), slot(args, 2));
    let c = if matches!(kind, CarryKind::Mad { .. }) { slot(args, 3) } else { a };
    let (take, give) = (op.ends_with('c'), m.has("cc"));
    Ok(Op::Carry(Box::new(Carry { kind, wide: ty.bytes() == 8, d: slot(args, 0), s: [a, b, c], carry, take, give })))
}

/// `fns`.
pub(crate) fn fns(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let s = [slot(args, 1), slot(args, 2), slot(args, 3)];
    Ok(lanewise(Function::FindNthSet, (slot(args, 0), false), s.map(|r| (r, false))))
}

/// `cvt.pack`: to integers of fewer bits.
pub(crate) fn cvt_pack_int(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let Some((signed, bits)) = m.words.iter().find_map(|w| {
        let bits = w.strip_prefix(['s', 'u'])?.parse().ok()?;
        Some((w.starts_with('s'), bits))
    }) else {
        return m.error("`cvt.pack` needs a type");
    };
    let append = args.get(3).is_some();
    let (a, b) = (slot(args, 1), slot(args, 2));
    let s = [a, b, if append { slot(args, 3) } else { a }];
    let f = Function::Pack { part: Part { bits, signed }, append };
    Ok(lanewise(f, (slot(args, 0), false), s.map(|r| (r, false))))
}

/// Pairs of 16-bit integers.
pub(crate) fn pair2(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    const fn both(low: u32, high: u32) -> u32 {
        (low & 0xFFFF) | (high << 16)
    }
    let relu = m.has("relu");
    let f: fn(&mut L32, &L32, &L32) = match (cx.opcode(), m.ty()?) {
        ("add", _) => lanes!(x, y => both(x.wrapping_add(y), (x >> 16).wrapping_add(y >> 16))),
        ("min", Ty::U16x2) => lanes!(x, y => both((x & 0xFFFF).min(y & 0xFFFF), (x >> 16).min(y >> 16))),
        ("max", Ty::U16x2) => lanes!(x, y => both((x & 0xFFFF).max(y & 0xFFFF), (x >> 16).max(y >> 16))),
        ("min", _) if relu => lanes!(x, y => both(sx16(x).min(sx16(y)).max(0) as u32,
            sx16(x >> 16).min(sx16(y >> 16)).max(0) as u32)),
        ("min", _) => lanes!(x, y => both(sx16(x).min(sx16(y)) as u32, sx16(x >> 16).min(sx16(y >> 16)) as u32)),
        (_, _) if relu => lanes!(x, y => both(sx16(x).max(sx16(y)).max(0) as u32,
            sx16(x >> 16).max(sx16(y >> 16)).max(0) as u32)),
        (_, _) => lanes!(x, y => both(sx16(x).max(sx16(y)) as u32, sx16(x >> 16).max(sx16(y >> 16)) as u32)),
    };
    Ok(www(f, args))
}
