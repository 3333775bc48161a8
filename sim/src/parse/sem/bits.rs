//! Bit fields, bytes and shifts (PTX 9.7.1, 9.7.8, 9.7.9.7).

use super::forms::{int, slot};
use super::lanes::lanes;
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::types::{L32, L64, R, Ty};
use crate::program::{BoolOp, Lop3Test, Op};

/// `prmt` (PTX 9.7.9.7): each nibble of the selector names a byte of `b:a`; its top bit requests the sign instead.
pub(super) const fn prmt(a: u32, b: u32, c: u32) -> u32 {
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
pub(super) const fn prmt_mode(kind: u8, c: u32) -> u32 {
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

pub(super) const fn funnel(a: u32, b: u32, n: u32, left: bool) -> u32 {
    let pair = (a as u64) | ((b as u64) << 32);
    if left { ((pair << n) >> 32) as u32 } else { (pair >> n) as u32 }
}

/// `bfe` (PTX 9.7.1.18); a 32-bit operand comes extended. Position and length have 8 bits, says the manual. That holds of 32
/// bits; the 64-bit form is a sequence of shifts and uses all bits of both (ptxas 12.9 and 13; measured on Hopper).
pub(super) const fn extract(x: u64, pos: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (pos, len) = if bits == 64 { (pos, len) } else { (pos & 0xFF, len & 0xFF) };
    if len == 0 {
        return 0;
    }
    let last = pos.saturating_add(len - 1);
    let top = if last < bits - 1 { last } else { bits - 1 };
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

/// Whether position and length, where they are constants, have the 8 bits that the assembler allows.
fn check_field(cx: &Cx<'_, '_>, m: &Mods<'_>, field: [R; 2]) -> Result<()> {
    match field.into_iter().find_map(|slot| cx.known(slot).filter(|v| *v > 255)) {
        Some(value) => m.error(format!("{value} is no position or length of a bit field")),
        None => Ok(()),
    }
}

/// Bit field extract.
pub(crate) fn bfe(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    check_field(cx, m, [slot(args, 2), slot(args, 3)])?;
    let (d, a, b, c) = (slot(args, 0), slot(args, 1), slot(args, 2), slot(args, 3));
    Ok(match m.ty()? {
        Ty::S64 => Op::LLWW { f: lanes!(x, y, z => extract(x, y, z, 64, true)), d, a, b, c },
        Ty::U64 => Op::LLWW { f: lanes!(x, y, z => extract(x, y, z, 64, false)), d, a, b, c },
        Ty::S32 => Op::WWWW { f: lanes!(x, y, z => extract(u64::from(x), y, z, 32, true) as u32), d, a, b, c },
        _ => Op::WWWW { f: lanes!(x, y, z => extract(u64::from(x), y, z, 32, false) as u32), d, a, b, c },
    })
}

/// Bit field insert: `a` into `b` at `c` for `d` bits; of `c` and `d` counts what counts of them in [`extract`].
pub(crate) fn bfi(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    check_field(cx, m, [slot(args, 3), slot(args, 4)])?;
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

/// Any function of three bits, as a table of which the assembler takes eight; also with a predicate that says, joined with
/// another, whether any bit is set.
pub(crate) fn lop3(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let lut = int(args, 4) as u8;
    let (a, b, c) = (slot(args, 1), slot(args, 2), slot(args, 3));
    let op = if m.has("and") { BoolOp::And } else { BoolOp::Or };
    if let (Some(Arg::Two(d, p)), Some(Arg::Pred(r, negate))) = (args.first(), args.get(5)) {
        let with = (op, *r, *negate);
        return Ok(Op::Lop3Test(Box::new(Lop3Test { d: *d, p: *p, s: [a, b, c], lut, with })));
    }
    Ok(Op::Lop3 { d: slot(args, 0), a, b, c, lut })
}

/// A word with the `n` low bits set.
pub(super) const fn low_bits(n: u32) -> u32 {
    if n > 31 { u32::MAX } else { (1 << n) - 1 }
}
