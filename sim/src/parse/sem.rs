//! What the rows of the table mean: integers, logic, movement, control, synchronisation (PTX 9.7.1 to 9.7.14).
//!
//! Each function turns the resolved operands of one row into an [`Op`]. Values of 8 and 16 bits sit zero-extended in their
//! slot, so functions of small types extend first and cut last.

use super::ParseError;
use super::decode::{Arg, Cx};
use super::raw::{Space, Ty};
use super::table::Mods;
use crate::exec::mbarrier::{MBar, What};
use crate::exec::{mma, wmma};
use crate::program::{
    Access, Addr, Area, Atom, AtomOp, Bar, BoolOp, CpAsync, L32, L64, LOCAL_WINDOW, Op, PARAM_WINDOW, R, SHARED_WINDOW,
    SINK, Shfl, TRUE, Vote,
};

pub(crate) type Result<T> = std::result::Result<T, ParseError>;

/// A function over all lanes from one over a lane.
macro_rules! lanes {
    ($x:ident => $e:expr) => {
        |d, a| {
            for i in 0..32 {
                let $x = a[i];
                d[i] = $e;
            }
        }
    };
    ($x:ident, $y:ident => $e:expr) => {
        |d, a, b| {
            for i in 0..32 {
                let ($x, $y) = (a[i], b[i]);
                d[i] = $e;
            }
        }
    };
    ($x:ident, $y:ident, $z:ident => $e:expr) => {
        |d, a, b, c| {
            for i in 0..32 {
                let ($x, $y, $z) = (a[i], b[i], c[i]);
                d[i] = $e;
            }
        }
    };
}
pub(crate) use lanes;

/// The slot of an operand, by position; the table's pattern guarantees its kind.
pub(crate) fn slot(args: &[Arg], i: usize) -> R {
    match args.get(i) {
        Some(Arg::Slot(r) | Arg::Pred(r, _) | Arg::Two(r, _)) => *r,
        _ => SINK,
    }
}

fn optional(args: &[Arg], i: usize) -> Option<R> {
    match args.get(i) {
        Some(Arg::Slot(r)) => Some(*r),
        _ => None,
    }
}

fn pred(args: &[Arg], i: usize) -> (R, bool) {
    match args.get(i) {
        Some(Arg::Pred(r, negate)) => (*r, *negate),
        _ => (TRUE, false),
    }
}

fn two(args: &[Arg], i: usize) -> (R, R) {
    match args.get(i) {
        Some(Arg::Two(a, b)) => (*a, *b),
        Some(Arg::Pred(a, _)) => (*a, SINK),
        _ => (SINK, SINK),
    }
}

fn addr(args: &[Arg], i: usize) -> Addr {
    match args.get(i) {
        Some(Arg::Addr(a)) => *a,
        _ => Addr { base: crate::program::Base::None, offset: 0 },
    }
}

fn int(args: &[Arg], i: usize) -> u64 {
    match args.get(i) {
        Some(Arg::Int(v)) => *v,
        _ => 0,
    }
}

fn many(args: &[Arg], i: usize) -> (&[R], bool) {
    match args.get(i) {
        Some(Arg::Many(r, wide)) => (r, *wide),
        _ => (&[], false),
    }
}

fn four(slots: &[R]) -> [R; 4] {
    std::array::from_fn(|i| slots.get(i).copied().unwrap_or(SINK))
}

const fn sx16(x: u32) -> i32 {
    x as u16 as i16 as i32
}

pub(crate) fn www(f: fn(&mut L32, &L32, &L32), args: &[Arg]) -> Op {
    Op::WWW { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2) }
}

pub(crate) fn lll(f: fn(&mut L64, &L64, &L64), args: &[Arg]) -> Op {
    Op::LLL { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2) }
}

/// Two sources of the size of the result. Division by zero gives all ones, a remainder by zero the dividend: what the
/// hardware's expansion yields where the manual leaves it open.
pub(crate) fn int2(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let op = cx.opcode();
    let hi = m.has("hi");
    let clamp = m.has("clamp");
    if ty.bytes() == 8 {
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
            ("rem", Ty::S64) => lanes!(x, y => if y == 0 { x } else { (x as i64).wrapping_rem(y as i64) as u64 }),
            ("rem", _) => lanes!(x, y => x.checked_rem(y).unwrap_or(x)),
            ("min", Ty::S64) => lanes!(x, y => (x as i64).min(y as i64) as u64),
            ("min", _) => lanes!(x, y => x.min(y)),
            ("max", Ty::S64) => lanes!(x, y => (x as i64).max(y as i64) as u64),
            ("max", _) => lanes!(x, y => x.max(y)),
            ("and", _) => lanes!(x, y => x & y),
            ("or", _) => lanes!(x, y => x | y),
            ("xor", _) => lanes!(x, y => x ^ y),
            _ => return m.error(format!("`{op}` does not work on {ty:?}")),
        };
        return Ok(lll(f, args));
    }
    if ty.bytes() == 2 {
        let f: fn(&mut L32, &L32, &L32) = match (op, ty) {
            ("add", _) => lanes!(x, y => x.wrapping_add(y) & 0xFFFF),
            ("sub", _) => lanes!(x, y => x.wrapping_sub(y) & 0xFFFF),
            ("mul", _) if !hi => lanes!(x, y => (x & 0xFFFF).wrapping_mul(y & 0xFFFF) & 0xFFFF),
            ("mul", Ty::S16) => lanes!(x, y => ((sx16(x) * sx16(y)) >> 16) as u32 & 0xFFFF),
            ("mul", _) => lanes!(x, y => (x & 0xFFFF).wrapping_mul(y & 0xFFFF) >> 16),
            ("div", Ty::S16) => lanes!(x, y => if y == 0 { 0xFFFF } else { (sx16(x) / sx16(y)) as u32 & 0xFFFF }),
            ("div", _) => lanes!(x, y => x.checked_div(y).unwrap_or(0xFFFF)),
            ("rem", Ty::S16) => lanes!(x, y => if y == 0 { x } else { (sx16(x) % sx16(y)) as u32 & 0xFFFF }),
            ("rem", _) => lanes!(x, y => x.checked_rem(y).unwrap_or(x)),
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
        return Ok(www(f, args));
    }
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
        ("rem", Ty::S32) => lanes!(x, y => if y == 0 { x } else { (x as i32).wrapping_rem(y as i32) as u32 }),
        ("rem", _) => lanes!(x, y => x.checked_rem(y).unwrap_or(x)),
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
    Ok(www(f, args))
}

const fn low_bits(n: u32) -> u32 {
    if n > 31 { u32::MAX } else { (1 << n) - 1 }
}

const fn szext(x: u32, n: u32, signed: bool) -> u32 {
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

fn find(x: u64, bits: u32, signed: bool, shift: bool) -> u32 {
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

/// `prmt` (PTX 9.7.9.7): each nibble of the selector names a byte of `b:a`; its top bit asks for the sign instead.
const fn prmt(a: u32, b: u32, c: u32) -> u32 {
    let pool = (a as u64) | ((b as u64) << 32);
    let mut out = 0;
    let mut i = 0;
    while i < 4 {
        let nibble = (c >> (4 * i)) & 15;
        let mut byte = (pool >> (8 * (nibble & 7))) as u32 & 0xFF;
        if nibble & 8 != 0 {
            byte = if byte & 0x80 != 0 { 0xFF } else { 0 };
        }
        out |= byte << (8 * i);
        i += 1;
    }
    out
}

/// The special modes of `prmt`, as the selector of the plain one.
const fn prmt_mode(kind: u8, c: u32) -> u32 {
    let n = c & 3;
    match kind {
        // Four bytes upwards or downwards from `n`.
        0 => n | (n + 1) << 4 | (n + 2) << 8 | (n + 3) << 12,
        1 => n | ((n + 7) & 7) << 4 | ((n + 6) & 7) << 8 | ((n + 5) & 7) << 12,
        2 => n * 0x1111,
        // Edge clamp left and right.
        3 => n | (if n > 1 { n } else { 1 }) << 4 | (if n > 2 { n } else { 2 }) << 8 | 3 << 12,
        4 => (if n < 1 { n } else { 1 }) << 4 | (if n < 2 { n } else { 2 }) << 8 | n << 12,
        _ => ((n & 1) * 0x2222) | 0x1010,
    }
}

const fn funnel(a: u32, b: u32, n: u32, left: bool) -> u32 {
    let pair = (a as u64) | ((b as u64) << 32);
    if left { ((pair << n) >> 32) as u32 } else { (pair >> n) as u32 }
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

/// Sum of four products of bytes.
pub(crate) fn dp4a(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    const fn dot(a: u32, b: u32, c: u32, sa: bool, sb: bool) -> u32 {
        let mut sum = c;
        let mut i = 0;
        while i < 4 {
            let (x, y) = ((a >> (8 * i)) as u8, (b >> (8 * i)) as u8);
            let x = if sa { x as i8 as i32 } else { x as i32 };
            let y = if sb { y as i8 as i32 } else { y as i32 };
            sum = sum.wrapping_add((x * y) as u32);
            i += 1;
        }
        sum
    }
    let (d, a, b, c) = (slot(args, 0), slot(args, 1), slot(args, 2), slot(args, 3));
    let f: fn(&mut L32, &L32, &L32, &L32) = match (m.first_type(), m.last_type()) {
        (Some(Ty::S32), Some(Ty::S32)) => lanes!(x, y, z => dot(x, y, z, true, true)),
        (Some(Ty::S32), _) => lanes!(x, y, z => dot(x, y, z, true, false)),
        (_, Some(Ty::S32)) => lanes!(x, y, z => dot(x, y, z, false, true)),
        _ => lanes!(x, y, z => dot(x, y, z, false, false)),
    };
    Ok(Op::WWWW { f, d, a, b, c })
}

/// `bfe` on 64 bits; the 32-bit form extends first (PTX 9.7.1.18).
const fn extract(x: u64, pos: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (pos, len) = (pos & 0xFF, len & 0xFF);
    if len == 0 {
        return 0;
    }
    let top = if pos + len - 1 < bits - 1 { pos + len - 1 } else { bits - 1 };
    let sign = signed && (x >> top) & 1 != 0;
    let shifted = if pos >= bits { 0 } else { x >> pos };
    let have = if pos >= bits {
        0
    } else if len < bits - pos {
        len
    } else {
        bits - pos
    };
    let kept = if have >= 64 { shifted } else { shifted & ((1u64 << have) - 1) };
    if sign && have < 64 { kept | (u64::MAX << have) } else { kept }
}

/// Bit field extract.
pub(crate) fn bfe(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a, b, c) = (slot(args, 0), slot(args, 1), slot(args, 2), slot(args, 3));
    Ok(match m.ty()? {
        Ty::S64 => Op::LLWW { f: lanes!(x, y, z => extract(x, y, z, 64, true)), d, a, b, c },
        Ty::U64 => Op::LLWW { f: lanes!(x, y, z => extract(x, y, z, 64, false)), d, a, b, c },
        Ty::S32 => Op::WWWW { f: lanes!(x, y, z => extract(u64::from(x), y, z, 32, true) as u32), d, a, b, c },
        _ => Op::WWWW { f: lanes!(x, y, z => extract(u64::from(x), y, z, 32, false) as u32), d, a, b, c },
    })
}

/// Bit field insert: `a` into `b` at `c` for `d` bits.
pub(crate) fn bfi(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if m.ty()?.bytes() == 8 {
        return Ok(Op::Bfi64 {
            d: slot(args, 0),
            a: [slot(args, 1), slot(args, 2)],
            at: [slot(args, 3), slot(args, 4)],
        });
    }
    let f: fn(&mut L32, [&L32; 4]) = |out, [a, b, c, d]| {
        for i in 0..32 {
            let (pos, len) = (c[i] & 0xFF, d[i] & 0xFF);
            let mask = low_bits(len).checked_shl(pos).unwrap_or(0);
            out[i] = (b[i] & !mask) | (a[i].checked_shl(pos).unwrap_or(0) & mask);
        }
    };
    Ok(Op::Wwwww { f, d: slot(args, 0), s: std::array::from_fn(|i| slot(args, i + 1)) })
}

/// Extended-precision add and subtract.
pub(crate) fn carry(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let op = cx.opcode();
    let carry = cx.carry(m.pos)?;
    Ok(Op::Carry32 {
        d: slot(args, 0),
        a: slot(args, 1),
        b: slot(args, 2),
        carry,
        sub: op.starts_with("sub"),
        take: op.ends_with('c'),
        give: m.has("cc"),
    })
}

fn join(m: &Mods<'_>, args: &[Arg]) -> Option<(BoolOp, R, bool)> {
    let op = if m.has("and") {
        BoolOp::And
    } else if m.has("or") {
        BoolOp::Or
    } else if m.has("xor") {
        BoolOp::Xor
    } else {
        return None;
    };
    let (r, negate) = pred(args, 3);
    Some((op, r, negate))
}

/// A comparison of two 32-bit slots as [`Op`].
pub(crate) fn set_w(f: fn(&L32, &L32) -> u32, m: &Mods<'_>, args: &[Arg]) -> Op {
    let (p, q) = two(args, 0);
    Op::SetW { f, p, q, a: slot(args, 1), b: slot(args, 2), with: join(m, args) }
}

/// A comparison of two 64-bit slots as [`Op`].
pub(crate) fn set_l(f: fn(&L64, &L64) -> u32, m: &Mods<'_>, args: &[Arg]) -> Op {
    let (p, q) = two(args, 0);
    Op::SetL { f, p, q, a: slot(args, 1), b: slot(args, 2), with: join(m, args) }
}

/// A mask of the lanes in which a comparison holds.
macro_rules! test {
    ($x:ident, $y:ident => $e:expr) => {
        |a, b| {
            let mut mask = 0u32;
            for i in 0..32 {
                let ($x, $y) = (a[i], b[i]);
                mask |= u32::from($e) << i;
            }
            mask
        }
    };
}
pub(crate) use test;

/// Integer comparison; `lo`, `ls`, `hi`, `hs` are the unsigned ones (PTX 9.3.1).
pub(crate) fn setp(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let (how, signed) = match m.words.first().copied().unwrap_or("") {
        "lo" => ("lt", false),
        "ls" => ("le", false),
        "hi" => ("gt", false),
        "hs" => ("ge", false),
        other => (other, ty.signed()),
    };
    if matches!(ty, Ty::B16 | Ty::B32 | Ty::B64) && !matches!(how, "eq" | "ne") {
        return m.error("untyped values can only be compared for equality");
    }
    if ty.bytes() == 8 {
        let f: fn(&L64, &L64) -> u32 = match (how, signed) {
            ("eq", _) => test!(x, y => x == y),
            ("ne", _) => test!(x, y => x != y),
            ("lt", true) => test!(x, y => (x as i64) < (y as i64)),
            ("le", true) => test!(x, y => (x as i64) <= (y as i64)),
            ("gt", true) => test!(x, y => (x as i64) > (y as i64)),
            ("ge", true) => test!(x, y => (x as i64) >= (y as i64)),
            ("lt", false) => test!(x, y => x < y),
            ("le", false) => test!(x, y => x <= y),
            ("gt", false) => test!(x, y => x > y),
            _ => test!(x, y => x >= y),
        };
        return Ok(set_l(f, m, args));
    }
    let small = ty.bytes() == 2;
    let f: fn(&L32, &L32) -> u32 = match (how, signed, small) {
        ("eq", ..) => test!(x, y => x == y),
        ("ne", ..) => test!(x, y => x != y),
        ("lt", true, true) => test!(x, y => sx16(x) < sx16(y)),
        ("le", true, true) => test!(x, y => sx16(x) <= sx16(y)),
        ("gt", true, true) => test!(x, y => sx16(x) > sx16(y)),
        ("ge", true, true) => test!(x, y => sx16(x) >= sx16(y)),
        ("lt", true, _) => test!(x, y => (x as i32) < (y as i32)),
        ("le", true, _) => test!(x, y => (x as i32) <= (y as i32)),
        ("gt", true, _) => test!(x, y => (x as i32) > (y as i32)),
        ("ge", true, _) => test!(x, y => (x as i32) >= (y as i32)),
        ("lt", ..) => test!(x, y => x < y),
        ("le", ..) => test!(x, y => x <= y),
        ("gt", ..) => test!(x, y => x > y),
        _ => test!(x, y => x >= y),
    };
    Ok(set_w(f, m, args))
}

/// `set`: a comparison as a word, all ones or 1.0.
pub(crate) fn set(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let op = if m.ty()? == Ty::F32 { super::sem_float::setp(cx, m, args)? } else { setp(cx, m, args)? };
    let yes = if m.first_type() == Some(Ty::F32) { 0x3F80_0000 } else { u32::MAX };
    match op {
        Op::SetW { f, a, b, .. } => Ok(Op::SetWord { f, d: slot(args, 0), a, b, yes }),
        _ => m.error("no such comparison"),
    }
}

/// `selp`.
pub(crate) fn selp(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a, b) = (slot(args, 0), slot(args, 1), slot(args, 2));
    let (p, neg) = pred(args, 3);
    Ok(if m.ty()?.bytes() == 8 { Op::SelL { d, a, b, p, neg } } else { Op::SelW { d, a, b, p, neg } })
}

/// Logic on predicates; operands may be negated.
pub(crate) fn pred2(cx: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let d = slot(args, 0);
    let ((a, na), (b, nb)) = (pred(args, 1), pred(args, 2));
    let f: fn(u32, u32) -> u32 = match (cx.opcode(), na, nb) {
        ("and", false, false) => |x, y| x & y,
        ("and", true, false) => |x, y| !x & y,
        ("and", false, true) => |x, y| x & !y,
        ("and", true, true) => |x, y| !x & !y,
        ("or", false, false) => |x, y| x | y,
        ("or", true, false) => |x, y| !x | y,
        ("or", false, true) => |x, y| x | !y,
        ("or", true, true) => |x, y| !x | !y,
        ("xor", x, y) if x == y => |x, y| x ^ y,
        ("xor", ..) => |x, y| !(x ^ y),
        (_, false, _) => |x, _| !x,
        (_, true, _) => |x, _| x,
    };
    Ok(Op::Pred { f, d, a, b })
}

/// 64-bit shifts by a 32-bit amount.
pub(crate) fn shift64(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a, b) = (slot(args, 0), slot(args, 1), slot(args, 2));
    let f: fn(&mut L64, &L64, &L32) = match (cx.opcode(), m.ty()?) {
        ("shl", _) => lanes!(x, n => if n > 63 { 0 } else { x << n }),
        (_, Ty::S64) => lanes!(x, n => ((x as i64) >> n.min(63)) as u64),
        _ => lanes!(x, n => if n > 63 { 0 } else { x >> n }),
    };
    Ok(Op::LLW { f, d, a, b })
}

/// Any function of three bits.
pub(crate) fn lop3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let Ok(lut) = u8::try_from(int(args, 4)) else { return m.error("the table of `lop3` has 8 bits") };
    Ok(Op::Lop3 { d: slot(args, 0), a: slot(args, 1), b: slot(args, 2), c: slot(args, 3), lut })
}

/// `mov`: copies, packs, unpacks, takes addresses.
pub(crate) fn mov(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let wide = m.ty()?.bytes() == 8;
    Ok(match (&args[0], &args[1]) {
        (Arg::Pred(d, _), Arg::Pred(a, negate)) => {
            let f: fn(u32, u32) -> u32 = if *negate { |x, _| !x } else { |x, _| x };
            Op::Pred { f, d: *d, a: *a, b: *a }
        }
        (Arg::Slot(d), Arg::Slot(a)) if wide => Op::Mov64 { d: *d, a: *a },
        (Arg::Slot(d), Arg::Slot(a)) => Op::Mov32 { d: *d, a: *a },
        (Arg::Slot(d), Arg::Int(bits)) if wide == (*bits == 64) => Op::Clock { d: *d, wide },
        (Arg::Slot(d), Arg::Many(a, _)) => match (wide, a.len()) {
            (false, 2) => Op::Pack16 { d: *d, a: [a[0], a[1]] },
            (true, 2) => Op::Pack32 { d: *d, a: [a[0], a[1]] },
            (true, 4) => Op::Pack64 { d: *d, a: four(a) },
            _ => return m.error("`mov` cannot pack registers of this size"),
        },
        (Arg::Many(d, _), Arg::Slot(a)) => match (wide, d.len()) {
            (false, 2) => Op::Unpack16 { d: [d[0], d[1]], a: *a },
            (true, 2) => Op::Unpack32 { d: [d[0], d[1]], a: *a },
            (true, 4) => Op::Unpack64 { d: four(d), a: *a },
            _ => return m.error("`mov` cannot unpack to registers of this size"),
        },
        _ => return m.error(format!("`{}` has no such form", cx.opcode())),
    })
}

fn area(m: &Mods<'_>) -> Area {
    let space = m.words.iter().find_map(|w| match *w {
        "global" => Some(Space::Global),
        "shared" | "shared::cta" | "shared::cluster" => Some(Space::Shared),
        "local" => Some(Space::Local),
        "param" => Some(Space::Param),
        "const" => Some(Space::Const),
        _ => None,
    });
    space.map_or(Area::Generic, Area::In)
}

fn access(cx: &Cx<'_, '_>, m: &Mods<'_>, memory: &[Arg], regs: &[Arg]) -> Result<Access> {
    let ty = m.ty()?;
    let (slots, wide) = many(regs, 0);
    // Parameters of calls are in the stack of the thread; only a kernel's own have a space to themselves.
    let area = match area(m) {
        Area::In(Space::Param) if cx.stack_param() => Area::In(Space::Local),
        area => area,
    };
    Ok(Access {
        area,
        addr: addr(memory, 0),
        size: ty.bytes() as u8,
        n: slots.len() as u8,
        signed: ty.signed(),
        wide,
        regs: four(slots),
        strong: m.has("volatile") || m.has("relaxed") || m.has("acquire") || m.has("release"),
    })
}

/// `ld`.
pub(crate) fn load(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    access(cx, m, &args[1..], args).map(Op::Ld)
}

/// `st`.
pub(crate) fn store(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    access(cx, m, args, &args[1..]).map(Op::St)
}

fn atomic(m: &Mods<'_>) -> Result<(AtomOp, u8, bool)> {
    let ty = m.ty()?;
    let op = match (m.words.iter().rev().find(|w| Ty::from_word(w).is_none() && **w != "noftz"), ty) {
        (Some(&"add"), Ty::F32) => AtomOp::AddF32,
        (Some(&"add"), Ty::F64) => AtomOp::AddF64,
        (Some(&"add"), Ty::F16) => AtomOp::AddF16,
        (Some(&"add"), Ty::F16x2) => AtomOp::AddF16x2,
        (Some(&"add"), Ty::BF16) => AtomOp::AddBF16,
        (Some(&"add"), Ty::BF16x2) => AtomOp::AddBF16x2,
        (Some(&"add"), _) => AtomOp::Add,
        (Some(&"min"), _) => AtomOp::Min,
        (Some(&"max"), _) => AtomOp::Max,
        (Some(&"inc"), _) => AtomOp::Inc,
        (Some(&"dec"), _) => AtomOp::Dec,
        (Some(&"and"), _) => AtomOp::And,
        (Some(&"or"), _) => AtomOp::Or,
        (Some(&"xor"), _) => AtomOp::Xor,
        (Some(&"exch"), _) => AtomOp::Exch,
        (Some(&"cas"), _) => AtomOp::Cas,
        _ => return m.error("no such atomic operation"),
    };
    Ok((op, ty.bytes() as u8, ty.signed()))
}

fn ordered(m: &Mods<'_>) -> bool {
    m.has("acquire") || m.has("release") || m.has("acq_rel")
}

/// `atom`.
pub(crate) fn atom(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (op, size, signed) = atomic(m)?;
    let (dst, src, src2) = (slot(args, 0), slot(args, 2), slot(args, 3));
    Ok(Op::Atom(Box::new(Atom {
        op,
        signed,
        area: area(m),
        addr: addr(args, 1),
        size,
        dst,
        src,
        src2,
        ordered: ordered(m),
    })))
}

/// `red`.
pub(crate) fn red(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (op, size, signed) = atomic(m)?;
    let (area, addr, src) = (area(m), addr(args, 0), slot(args, 1));
    let ordered = ordered(m);
    Ok(Op::Atom(Box::new(Atom { op, signed, area, addr, size, dst: SINK, src, src2: SINK, ordered })))
}

/// Does nothing that can be observed.
pub(crate) fn nop(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Nop)
}

/// `isspacep`.
pub(crate) fn isspacep(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let Area::In(space) = area(m) else { return m.error("no such state space") };
    Ok(Op::IsSpace { space, p: slot(args, 0), a: slot(args, 1) })
}

/// `cvta`: global and constant addresses are generic ones, the other spaces have a window each.
pub(crate) fn cvta(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a) = (slot(args, 0), slot(args, 1));
    let f: fn(&mut L64, &L64) = match (area(m), m.has("to")) {
        (Area::In(Space::Shared), false) => lanes!(x => x.wrapping_add(SHARED_WINDOW)),
        (Area::In(Space::Shared), true) => lanes!(x => x.wrapping_sub(SHARED_WINDOW)),
        (Area::In(Space::Local), false) => lanes!(x => x.wrapping_add(LOCAL_WINDOW)),
        (Area::In(Space::Local), true) => lanes!(x => x.wrapping_sub(LOCAL_WINDOW)),
        (Area::In(Space::Param), false) => lanes!(x => x.wrapping_add(PARAM_WINDOW)),
        (Area::In(Space::Param), true) => lanes!(x => x.wrapping_sub(PARAM_WINDOW)),
        _ => return Ok(Op::Mov64 { d, a }),
    };
    Ok(Op::LL { f, d, a })
}

/// Integer conversion: the source is cut to its type, extended by its sign, then cut or clamped to the destination and
/// extended by the destination's sign to the register (PTX 9.7.9.21).
pub(crate) fn cvt_int(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (Some(to), Some(from)) = (m.first_type(), m.last_type()) else { return m.error("`cvt` needs two types") };
    let ((d, wide), (a, from_wide)) = (many(args, 0), many(args, 1));
    let (d, a) = (d[0], a[0]);
    if m.has("sat") {
        return Ok(crate::exec::convert::int_to_int(d, wide, a, from_wide, to, from));
    }
    // Without clamping only the narrower of the two types matters.
    let narrow = if from.bytes() <= to.bytes() { from } else { to };
    macro_rules! narrow {
        ($out:ty) => {
            match narrow {
                Ty::U8 => lanes!(x => x as u8 as $out),
                Ty::S8 => lanes!(x => x as i8 as $out),
                Ty::U16 => lanes!(x => x as u16 as $out),
                Ty::S16 => lanes!(x => x as i16 as $out),
                Ty::U32 => lanes!(x => x as u32 as $out),
                Ty::S32 => lanes!(x => x as i32 as $out),
                _ => lanes!(x => x as $out),
            }
        };
    }
    Ok(match (wide, from_wide) {
        (false, false) => {
            let f: fn(&mut L32, &L32) = if to.bytes() == 2 && narrow == Ty::S8 {
                lanes!(x => x as i8 as u16 as u32)
            } else if to.bytes() == 2 && narrow == Ty::S16 {
                lanes!(x => x as u16 as u32)
            } else {
                narrow!(u32)
            };
            Op::WW { f, d, a }
        }
        (true, false) => Op::LW { f: narrow!(u64), d, a },
        (false, true) => {
            let f: fn(&mut L32, &L64) = if to == Ty::S16 { lanes!(x => x as u16 as u32) } else { narrow!(u32) };
            Op::WL { f, d, a }
        }
        (true, true) => Op::LL { f: narrow!(u64), d, a },
    })
}

/// `cp.async`.
pub(crate) fn cp_async(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let size = int(args, 2);
    if !(size == 16 || (m.has("ca") && (size == 4 || size == 8))) {
        return m.error(format!("`cp.async` cannot copy {size} bytes"));
    }
    let ignore = match args.get(3) {
        Some(Arg::Pred(p, negate)) => Some((*p, *negate)),
        _ => None,
    };
    Ok(Op::CpAsync(Box::new(CpAsync {
        dst: addr(args, 0),
        src: addr(args, 1),
        size: size as u8,
        src_size: optional(args, 3),
        ignore,
    })))
}

/// `cp.async.commit_group`.
pub(crate) fn cp_commit(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::CpCommit)
}

/// `cp.async.wait_group` and `wait_all`.
pub(crate) fn cp_wait(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if m.has("wait_all") {
        return Ok(Op::CpWait(None));
    }
    match u32::try_from(int(args, 0)) {
        Ok(n) => Ok(Op::CpWait(Some(n))),
        Err(_) => m.error("too many groups"),
    }
}

/// `bra`.
pub(crate) fn bra(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    match args.first() {
        Some(Arg::Labels(targets)) if targets.len() == 1 => Ok(Op::Bra { target: targets[0], uni: m.has("uni") }),
        _ => m.error("`bra` needs a label"),
    }
}

/// `brx.idx`.
pub(crate) fn brx(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    match args.get(1) {
        Some(Arg::Labels(targets)) => {
            Ok(Op::BraIndexed { index: slot(args, 0), targets: targets.clone().into_boxed_slice() })
        }
        _ => m.error("`brx` needs a list of targets"),
    }
}

/// `ret` and `exit`: in a kernel they are the same.
pub(crate) fn exit(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Exit)
}

/// `trap`.
pub(crate) fn trap(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Trap)
}

/// `bar.sync` and `bar.arrive`; `bar` is the aligned spelling of `barrier`.
pub(crate) fn bar(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let aligned = cx.opcode() == "bar" || m.has("aligned");
    let (id, count) = (slot(args, 0), optional(args, 1));
    Ok(Op::Bar(Box::new(Bar { id, count, wait: m.has("sync"), aligned, red: None })))
}

/// `bar.red`.
pub(crate) fn bar_red(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let aligned = cx.opcode() == "bar" || m.has("aligned");
    let what = if m.has("popc") {
        Vote::Popc
    } else if m.has("and") {
        Vote::All
    } else {
        Vote::Any
    };
    let (p, negate) = pred(args, args.len().saturating_sub(1));
    let red = Some((what, p, negate, slot(args, 0)));
    Ok(Op::Bar(Box::new(Bar { id: slot(args, 1), count: optional(args, 2), wait: true, aligned, red })))
}

/// `bar.warp.sync`.
pub(crate) fn bar_warp(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::BarWarp { mask: slot(args, 0) })
}

/// `membar`, `fence`.
pub(crate) fn fence(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Fence)
}

/// `shfl.sync`.
pub(crate) fn shfl(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let mode = if m.has("up") {
        Shfl::Up
    } else if m.has("down") {
        Shfl::Down
    } else if m.has("bfly") {
        Shfl::Bfly
    } else {
        Shfl::Idx
    };
    let (d, p) = two(args, 0);
    Ok(Op::Shfl { mode, d, p, a: slot(args, 1), b: slot(args, 2), c: slot(args, 3), mask: slot(args, 4) })
}

/// `vote.sync`.
pub(crate) fn vote(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let what = if m.has("ballot") {
        Vote::Ballot
    } else if m.has("all") {
        Vote::All
    } else if m.has("any") {
        Vote::Any
    } else {
        Vote::Uni
    };
    let (p, neg) = pred(args, 1);
    Ok(Op::Vote { what, d: slot(args, 0), p, neg, mask: slot(args, 2) })
}

/// `match.sync`.
pub(crate) fn match_sync(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let wide = m.ty()?.bytes() == 8;
    let (a, mask) = (slot(args, 1), slot(args, 2));
    if m.has("any") {
        return Ok(Op::MatchAny { d: slot(args, 0), a, wide, mask });
    }
    let (d, p) = two(args, 0);
    Ok(Op::MatchAll { d, p, a, wide, mask })
}

/// `activemask`.
pub(crate) fn active_mask(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::ActiveMask { d: slot(args, 0) })
}

/// `redux.sync`.
pub(crate) fn redux(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (op, _, signed) = atomic(m)?;
    Ok(Op::Redux { op, signed, d: slot(args, 0), a: slot(args, 1), mask: slot(args, 2) })
}

/// `mma.sync`.
pub(crate) fn mma(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let regs = |i| many(args, i).0.to_vec();
    match mma::Mma::from_words(m.words, regs(0), regs(1), regs(2), regs(3)) {
        Some(mma) => Ok(Op::Mma(Box::new(mma))),
        None => m.error("this product is not supported"),
    }
}

/// `ldmatrix`.
pub(crate) fn ldmatrix(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (slots, _) = many(args, 0);
    let (n, d) = (slots.len() as u8, four(slots));
    Ok(Op::LdMatrix { addr: addr(args, 1), area: area(m), n, trans: m.has("trans"), d })
}

/// `movmatrix`.
pub(crate) fn movmatrix(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::MovMatrix { d: slot(args, 0), a: slot(args, 1) })
}

fn wmma_move(m: &Mods<'_>, memory: &[Arg], regs: &[Arg], stride: Option<R>) -> Result<Op> {
    let regs = many(regs, 0).0.to_vec();
    match wmma::Move::from_words(m.words, addr(memory, 0), area(m), regs, stride) {
        Some(mv) => Ok(Op::WmmaMove(Box::new(mv))),
        None => m.error("this tile is not supported"),
    }
}

/// `wmma.load`.
pub(crate) fn wmma_load(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    wmma_move(m, &args[1..], args, optional(args, 2))
}

/// `wmma.store`.
pub(crate) fn wmma_store(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    wmma_move(m, args, &args[1..], optional(args, 2))
}

/// `wmma.mma`.
pub(crate) fn wmma_mma(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let regs = std::array::from_fn(|i| many(args, i).0.to_vec());
    match wmma::Product::from_words(m.words, regs) {
        Some(product) => Ok(Op::WmmaMma(Box::new(product))),
        None => m.error("this product is not supported"),
    }
}

/// Everything on an mbarrier object; `shared::cluster` is the block itself, for there are no clusters.
pub(crate) fn mbarrier(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let last = |i| slot(args, i);
    let (what, memory) = match *m.words.first().unwrap_or(&"") {
        "init" => (What::Init { count: last(1) }, 0),
        "inval" => (What::Inval, 0),
        "expect_tx" => (What::ExpectTx { bytes: last(1) }, 0),
        "complete_tx" => (What::CompleteTx { bytes: last(1) }, 0),
        "test_wait" | "try_wait" => (What::Wait { p: slot(args, 0), state: last(2), parity: m.has("parity") }, 1),
        "async" => (What::Copies { counted: m.has("noinc") }, 0),
        op => {
            let (tx, value) = (m.has("expect_tx"), optional(args, 2));
            let what = What::Arrive {
                state: slot(args, 0),
                count: value.filter(|_| !tx),
                expect: value.filter(|_| tx),
                drop: op == "arrive_drop",
                incomplete: m.has("noComplete"),
            };
            (what, 1)
        }
    };
    // An operation on bytes alone orders nothing (PTX 9.7.13.15.11).
    let relaxed = m.has("relaxed") || matches!(what, What::ExpectTx { .. } | What::CompleteTx { .. });
    Ok(Op::MBar(Box::new(MBar { what, area: area(m), addr: addr(args, memory), relaxed })))
}

/// `mbarrier.pending_count`.
pub(crate) fn pending_count(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::PendingCount { d: slot(args, 0), state: slot(args, 1) })
}
