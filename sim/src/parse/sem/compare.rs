//! Comparison and selection (PTX 9.7.6, 9.7.8).

use super::forms::{joined, lanewise, pred, set_l, set_w, slot, sx16, truth};
use super::lanes::test;
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::lanewise::Function;
use crate::program::types::{L32, L64, TRUE, Ty};
use crate::program::{Op, Relation};

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

/// `set`: a comparison as a word.
pub(crate) fn set(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let float = matches!(m.ty()?, Ty::F16 | Ty::BF16 | Ty::F32 | Ty::F64);
    let op = if float { crate::parse::sem_float::setp(cx, m, args)? } else { setp(cx, m, args)? };
    let yes = truth(m.first_type());
    let d = slot(args, 0);
    let word = match op {
        Op::SetW { f, a, b, .. } => Op::SetWord { f: Relation::Words(f), d, a, b, yes },
        Op::SetL { f, a, b, .. } => Op::SetWord { f: Relation::Longs(f), d, a, b, yes },
        _ => return m.error("no such comparison"),
    };
    Ok(joined(word, yes, m, args))
}

/// `slct`.
pub(crate) fn slct(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let wide = m.first_type().is_some_and(|ty| ty.bytes() == 8);
    let f = Function::Select { float: m.ty()? == Ty::F32, ftz: m.has("ftz") };
    let s = [(slot(args, 1), wide), (slot(args, 2), wide), (slot(args, 3), false)];
    Ok(lanewise(f, (slot(args, 0), wide), s))
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
    if cx.opcode() == "xor" && (a, na) == (b, nb) {
        return Ok(Op::Pred { f: |_, _| 0, d, a: TRUE, b: TRUE });
    }
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
