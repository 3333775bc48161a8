//! What the rows of the table mean: integers, logic, movement, control, synchronisation (PTX 9.7.1 to 9.7.14).
//!
//! Each function turns the resolved operands of one row into an [`Op`]. Values of 8 and 16 bits sit zero-extended in their
//! slot, so functions of small types extend first and cut last.
mod bits;
mod compare;
mod hopper;
mod integer;
mod matrix;
mod memory;
mod sync;
mod video;

pub(crate) use bits::*;
pub(crate) use compare::*;
pub(crate) use hopper::*;
pub(crate) use integer::*;
pub(crate) use matrix::*;
pub(crate) use memory::*;
pub(crate) use sync::*;
pub(crate) use video::*;

use crate::parse::ParseError;
use crate::parse::decode::{Arg, Cx};
use crate::parse::table::Mods;
use crate::program::lanewise::Function;
use crate::program::mbarrier::{MBar, What};
use crate::program::types::{L32, L64, LOCAL_WINDOW, PARAM_WINDOW, R, SHARED_WINDOW, SINK, Space, TRUE, Ty};
use crate::program::{
    Access, Addr, Area, Atom, AtomOp, Bar, BoolOp, Carry, CarryKind, CpAsync, Lanewise, Lop3Test, Op, Relation, Shfl,
    Vote, wmma,
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
        Some(Arg::Slot(r) | Arg::Pred(r, _) | Arg::Two(r, _) | Arg::Part { slot: r, .. }) => *r,
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
fn lanewise(f: Function, d: (R, bool), s: [(R, bool); 3]) -> Op {
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
