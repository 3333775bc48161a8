//! Arithmetic on the registers of a warp: computes all 32 lanes and writes those that are active.
//!
//! The simulator spends most of its time here, so the functions are inlined into the loop of [`super::step`].

use super::warp::Warp;
use crate::program::types::{L32, L64, R};
use crate::program::{BoolOp, Op};

/// Executes an instruction if it is one of the frequent arithmetic ones.
#[inline(always)]
pub(super) fn compute(w: &mut Warp, op: &Op, m: u32) -> bool {
    map_lanes(w, op, m) || move_and_select(w, op, m)
}

/// Functions of the values of lanes.
#[inline(always)]
fn map_lanes(w: &mut Warp, op: &Op, m: u32) -> bool {
    macro_rules! narrow {
        ($d:expr, $ok:expr, $call:expr) => {{
            let mut out: L32 = [0; 32];
            $call(&mut out);
            let ok = $ok;
            w.put32($d, m, &out, ok);
        }};
    }
    macro_rules! wide {
        ($d:expr, $ok:expr, $call:expr) => {{
            let mut out: L64 = [0; 32];
            $call(&mut out);
            let ok = $ok;
            w.put64($d, m, &out, ok);
        }};
    }
    macro_rules! w {
        ($r:expr) => {
            &w.w[$r as usize]
        };
    }
    macro_rules! l {
        ($r:expr) => {
            &w.l[$r as usize]
        };
    }
    match *op {
        Op::WW { f, d, a } => {
            let a = w!(a);
            narrow!(d, a.ok, |out| f(out, &a.v));
        }
        Op::WWW { f, d, a, b } => {
            let (a, b) = (w!(a), w!(b));
            narrow!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
        }
        Op::WWWW { f, d, a, b, c } => {
            let (a, b, c) = (w!(a), w!(b), w!(c));
            narrow!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
        }
        Op::Wwwww { f, d, s } => {
            let s = s.map(|r| w!(r));
            narrow!(d, s.iter().fold(u32::MAX, |ok, x| ok & x.ok), |out| f(out, s.map(|x| &x.v)));
        }
        Op::LL { f, d, a } => {
            let a = l!(a);
            wide!(d, a.ok, |out| f(out, &a.v));
        }
        Op::LLL { f, d, a, b } => {
            let (a, b) = (l!(a), l!(b));
            wide!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
        }
        Op::LLLL { f, d, a, b, c } => {
            let (a, b, c) = (l!(a), l!(b), l!(c));
            wide!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
        }
        Op::LW { f, d, a } => {
            let a = w!(a);
            wide!(d, a.ok, |out| f(out, &a.v));
        }
        Op::WL { f, d, a } => {
            let a = l!(a);
            narrow!(d, a.ok, |out| f(out, &a.v));
        }
        Op::LWW { f, d, a, b } => {
            let (a, b) = (w!(a), w!(b));
            wide!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
        }
        Op::LLW { f, d, a, b } => {
            let (a, b) = (l!(a), w!(b));
            wide!(d, a.ok & b.ok, |out| f(out, &a.v, &b.v));
        }
        Op::LLWW { f, d, a, b, c } => {
            let (a, b, c) = (l!(a), w!(b), w!(c));
            wide!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
        }
        Op::LWWL { f, d, a, b, c } => {
            let (a, b, c) = (w!(a), w!(b), l!(c));
            wide!(d, a.ok & b.ok & c.ok, |out| f(out, &a.v, &b.v, &c.v));
        }
        _ => return false,
    }
    true
}

/// Moves, logic, comparisons and selections.
#[inline(always)]
fn move_and_select(w: &mut Warp, op: &Op, m: u32) -> bool {
    macro_rules! w {
        ($r:expr) => {
            &w.w[$r as usize]
        };
    }
    macro_rules! l {
        ($r:expr) => {
            &w.l[$r as usize]
        };
    }
    match *op {
        Op::Mov32 { d, a } => {
            let a = *w!(a);
            w.put32(d, m, &a.v, a.ok);
        }
        Op::Mov64 { d, a } => {
            let a = *l!(a);
            w.put64(d, m, &a.v, a.ok);
        }
        Op::Lop3 { d, a, b, c, lut } => {
            let (a, b, c) = (w!(a), w!(b), w!(c));
            let ok = a.ok & b.ok & c.ok;
            let v = std::array::from_fn(|i| lop3(a.v[i], b.v[i], c.v[i], lut));
            w.put32(d, m, &v, ok);
        }
        Op::SetW { f, p, q, a, b, with } => {
            let (a, b) = (w!(a), w!(b));
            let (v, ok) = (f(&a.v, &b.v), a.ok & b.ok);
            set(w, m, p, q, v, ok, with);
        }
        Op::SetL { f, p, q, a, b, with } => {
            let (a, b) = (l!(a), l!(b));
            let (v, ok) = (f(&a.v, &b.v), a.ok & b.ok);
            set(w, m, p, q, v, ok, with);
        }
        Op::SelW { d, a, b, p, neg } => {
            let (p, a, b) = (w.p[p as usize], w!(a), w!(b));
            let take = if neg { !p.v } else { p.v };
            let v = std::array::from_fn(|i| if take >> i & 1 != 0 { a.v[i] } else { b.v[i] });
            let ok = p.ok & ((take & a.ok) | (!take & b.ok));
            w.put32(d, m, &v, ok);
        }
        Op::SelL { d, a, b, p, neg } => {
            let (p, a, b) = (w.p[p as usize], l!(a), l!(b));
            let take = if neg { !p.v } else { p.v };
            let v = std::array::from_fn(|i| if take >> i & 1 != 0 { a.v[i] } else { b.v[i] });
            let ok = p.ok & ((take & a.ok) | (!take & b.ok));
            w.put64(d, m, &v, ok);
        }
        Op::Pred { f, d, a, b } => {
            let (a, b) = (w.p[a as usize], w.p[b as usize]);
            w.putp(d, m, f(a.v, b.v), a.ok & b.ok);
        }
        Op::Pack16 { d, a } => {
            let [x, y] = a.map(|r| w!(r));
            let ok = x.ok & y.ok;
            let v = std::array::from_fn(|i| (x.v[i] & 0xFFFF) | (y.v[i] << 16));
            w.put32(d, m, &v, ok);
        }
        Op::Unpack16 { d, a } => {
            let a = *w!(a);
            w.put32(d[0], m, &a.v.map(|x| x & 0xFFFF), a.ok);
            w.put32(d[1], m, &a.v.map(|x| x >> 16), a.ok);
        }
        _ => return false,
    }
    true
}

pub(super) fn lop3(a: u32, b: u32, c: u32, lut: u8) -> u32 {
    let mut out = 0;
    for i in 0..8u32 {
        if lut >> i & 1 != 0 {
            let x = if i & 4 != 0 { a } else { !a };
            let y = if i & 2 != 0 { b } else { !b };
            let z = if i & 1 != 0 { c } else { !c };
            out |= x & y & z;
        }
    }
    out
}

/// Writes the results of `setp`: `p` gets the comparison, `q` its complement, both combined with a predicate (PTX
/// 9.7.6.2).
pub(super) fn set(w: &mut Warp, m: u32, p: R, q: R, v: u32, ok: u32, with: Option<(BoolOp, R, bool)>) {
    let (mut yes, mut no, mut ok) = (v, !v, ok);
    if let Some((op, r, negate)) = with {
        let c = w.p[r as usize];
        let c_v = if negate { !c.v } else { c.v };
        ok &= c.ok;
        let join = |x: u32| match op {
            BoolOp::And => x & c_v,
            BoolOp::Or => x | c_v,
            BoolOp::Xor => x ^ c_v,
        };
        (yes, no) = (join(yes), join(no));
    }
    w.putp(p, m, yes, ok);
    w.putp(q, m, no, ok);
}
