//! Operands by their position, and operations by the form of their operands.

use crate::parse::decode::Arg;
use crate::parse::modifiers::Mods;
use crate::program::lanewise::Function;
use crate::program::types::{L32, L64, R, SINK, TRUE, Ty};
use crate::program::{Addr, BoolOp, Lanewise, Op};

/// The slot of an operand, by position; the table's pattern guarantees its kind.
pub(crate) fn slot(args: &[Arg], i: usize) -> R {
    match args.get(i) {
        Some(Arg::Slot(r) | Arg::Pred(r, _) | Arg::Two(r, _) | Arg::Part { slot: r, .. }) => *r,
        _ => SINK,
    }
}

pub(crate) fn optional(args: &[Arg], i: usize) -> Option<R> {
    match args.get(i) {
        Some(Arg::Slot(r)) => Some(*r),
        _ => None,
    }
}

pub(crate) fn pred(args: &[Arg], i: usize) -> (R, bool) {
    match args.get(i) {
        Some(Arg::Pred(r, negate)) => (*r, *negate),
        _ => (TRUE, false),
    }
}

pub(crate) fn two(args: &[Arg], i: usize) -> (R, R) {
    match args.get(i) {
        Some(Arg::Two(a, b)) => (*a, *b),
        Some(Arg::Pred(a, _)) => (*a, SINK),
        _ => (SINK, SINK),
    }
}

pub(crate) fn addr(args: &[Arg], i: usize) -> Addr {
    match args.get(i) {
        Some(Arg::Addr(a)) => *a,
        _ => Addr { base: crate::program::Base::None, offset: 0 },
    }
}

pub(crate) fn int(args: &[Arg], i: usize) -> u64 {
    match args.get(i) {
        Some(Arg::Int(v)) => *v,
        _ => 0,
    }
}

pub(crate) fn many(args: &[Arg], i: usize) -> (&[R], bool) {
    match args.get(i) {
        Some(Arg::Many(r, wide)) => (r, *wide),
        _ => (&[], false),
    }
}

pub(crate) fn four(slots: &[R]) -> [R; 4] {
    std::array::from_fn(|i| slots.get(i).copied().unwrap_or(SINK))
}

pub(crate) const fn sx16(x: u32) -> i32 {
    x as u16 as i16 as i32
}

pub(crate) fn www(f: fn(&mut L32, &L32, &L32), args: &[Arg]) -> Op {
    Op::WWW { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2) }
}

pub(crate) fn lll(f: fn(&mut L64, &L64, &L64), args: &[Arg]) -> Op {
    Op::LLL { f, d: slot(args, 0), a: slot(args, 1), b: slot(args, 2) }
}

pub(crate) fn join(m: &Mods<'_>, args: &[Arg]) -> Option<(BoolOp, R, bool)> {
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

/// An operation that is described rather than compiled.
pub(crate) fn lanewise(f: Function, d: (R, bool), s: [(R, bool); 3]) -> Op {
    Op::Lanewise(Box::new(Lanewise { f, d, s }))
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

/// The result of `set` for a register of this type if the comparison holds: all ones or 1.0.
pub(crate) fn truth(ty: Option<Ty>) -> u32 {
    match ty {
        Some(Ty::F32) => 0x3F80_0000,
        Some(Ty::F16) => 0x3C00,
        Some(Ty::F16x2) => 0x3C00_3C00,
        Some(Ty::BF16) => 0x3F80,
        Some(Ty::BF16x2) => 0x3F80_3F80,
        Some(Ty::U16 | Ty::S16) => 0xFFFF,
        _ => u32::MAX,
    }
}

/// The result of `set`, joined with a predicate if there is one.
pub(crate) fn joined(inner: Op, all: u32, m: &Mods<'_>, args: &[Arg]) -> Op {
    match join(m, args) {
        Some(with) => Op::Joined { inner: Box::new(inner), d: slot(args, 0), all, with },
        None => inner,
    }
}
