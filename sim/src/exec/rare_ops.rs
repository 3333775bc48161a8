//! Rare arithmetic instructions; [`super::compute`] has the frequent ones.

use super::compute::{lop3, set};
use super::lanewise::extended;
use super::warp::Warp;
use crate::program::types::{L32, R, SINK};
use crate::program::{BoolOp, Op, Relation};

/// Executes an instruction if it is one of these.
pub(super) fn compute_rarely(w: &mut Warp, op: &Op, m: u32) -> bool {
    match *op {
        Op::Map { map, d, wide, a, b, from_wide } => {
            let ((x, x_ok), (y, y_ok)) = (w.any(a, from_wide), w.any(b, from_wide));
            let v = std::array::from_fn(|i| map.apply(x[i], y[i]));
            w.put_any(d, wide, m, &v, x_ok & y_ok);
        }
        Op::MovVector { ref pairs, wide } => {
            let values: Vec<_> = pairs.iter().map(|&(_, s)| w.any(s, wide)).collect();
            for (&(d, _), (v, ok)) in pairs.iter().zip(&values) {
                w.put_any(d, wide, m, v, *ok);
            }
        }
        Op::Carry(ref carry) => extended(w, carry, m),
        Op::Lanewise(ref op) => {
            let [(x, x_ok), (y, y_ok), (z, z_ok)] = op.s.map(|(r, wide)| w.any(r, wide));
            let v = std::array::from_fn(|i| op.f.apply(x[i], y[i], z[i]));
            w.put_any(op.d.0, op.d.1, m, &v, x_ok & y_ok & z_ok);
        }
        Op::SetPair { f, d, a, b, with } => {
            let (a, b) = (w.w[a as usize], w.w[b as usize]);
            for (f, d) in f.iter().zip(d) {
                set(w, m, d, SINK, f(&a.v, &b.v), a.ok & b.ok, with);
            }
        }
        Op::Lop3Test(ref op) => {
            let [a, b, c] = op.s.map(|r| w.w[r as usize]);
            let ok = a.ok & b.ok & c.ok;
            let v: L32 = std::array::from_fn(|i| lop3(a.v[i], b.v[i], c.v[i], op.lut));
            let any = (0..32).fold(0, |any, i| any | u32::from(v[i] != 0) << i);
            set(w, m, op.p, SINK, any, ok, Some(op.with));
            w.put32(op.d, m, &v, ok);
        }
        Op::Bfi64 { d, a, at } => {
            let ([a, b], [pos, len]) = (a.map(|r| w.l[r as usize]), at.map(|r| w.w[r as usize]));
            let v = std::array::from_fn(|i| {
                let (pos, len) = (pos.v[i], len.v[i]);
                let ones = if len > 63 { u64::MAX } else { (1 << len) - 1 };
                let mask = u64::checked_shl(ones, pos).unwrap_or(0);
                (b.v[i] & !mask) | (a.v[i].checked_shl(pos).unwrap_or(0) & mask)
            });
            w.put64(d, m, &v, a.ok & b.ok & pos.ok & len.ok);
        }
        Op::SetWord { f, d, a, b, yes } => {
            let (p, ok) = match f {
                Relation::Words(f) => {
                    let (a, b) = (&w.w[a as usize], &w.w[b as usize]);
                    (f(&a.v, &b.v), a.ok & b.ok)
                }
                Relation::Longs(f) => {
                    let (a, b) = (&w.l[a as usize], &w.l[b as usize]);
                    (f(&a.v, &b.v), a.ok & b.ok)
                }
            };
            w.put32(d, m, &std::array::from_fn(|i| if p >> i & 1 != 0 { yes } else { 0 }), ok);
        }
        Op::Pack32 { d, a } => {
            let [x, y] = a.map(|r| w.w[r as usize]);
            let v = std::array::from_fn(|i| u64::from(x.v[i]) | u64::from(y.v[i]) << 32);
            w.put64(d, m, &v, x.ok & y.ok);
        }
        Op::Unpack32 { d, a } => {
            let a = w.l[a as usize];
            w.put32(d[0], m, &a.v.map(|x| x as u32), a.ok);
            w.put32(d[1], m, &a.v.map(|x| (x >> 32) as u32), a.ok);
        }
        Op::Pack64 { d, a } => {
            let s = a.map(|r| w.w[r as usize]);
            let v =
                std::array::from_fn(|i| (0..4).fold(0, |v, k: usize| v | u64::from(s[k].v[i] & 0xFFFF) << (16 * k)));
            w.put64(d, m, &v, s.iter().fold(u32::MAX, |ok, x| ok & x.ok));
        }
        Op::Unpack8 { d, a } => {
            let a = w.w[a as usize];
            for (k, r) in d.iter().enumerate() {
                w.put32(*r, m, &a.v.map(|x| x >> (8 * k) & 0xFF), a.ok);
            }
        }
        Op::Unpack64 { d, a } => {
            let a = w.l[a as usize];
            for (k, r) in d.iter().enumerate() {
                w.put32(*r, m, &a.v.map(|x| (x >> (16 * k)) as u32 & 0xFFFF), a.ok);
            }
        }
        _ => return false,
    }
    true
}

/// Combines the result of `set` with a predicate (PTX 9.7.6.1): `all` is the comparison.
pub(super) fn join(w: &mut Warp, (d, all): (R, u32), (how, p, negate): (BoolOp, R, bool), m: u32) {
    let (mut out, p) = (w.w[d as usize], w.p[p as usize]);
    let take = if negate { !p.v } else { p.v };
    for (i, v) in out.v.iter_mut().enumerate() {
        *v = match (how, take >> i & 1 != 0) {
            (BoolOp::And, false) => 0,
            (BoolOp::Or, true) => all,
            (BoolOp::Xor, true) => *v ^ all,
            _ => *v,
        };
    }
    w.put32(d, m, &out.v, out.ok & p.ok);
}
