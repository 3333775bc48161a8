//! Comparison and selection (PTX 9.7.6, 9.7.8).

use super::*;

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
    let op = if m.ty()? == Ty::F32 { crate::parse::sem_float::setp(cx, m, args)? } else { setp(cx, m, args)? };
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
