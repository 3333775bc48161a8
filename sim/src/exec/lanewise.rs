//! Extended precision.

use super::warp::Warp;
use crate::program::{Carry, CarryKind};

/// Extended-precision arithmetic (PTX 9.7.2).
pub(super) fn extended(w: &mut Warp, op: &Carry, m: u32) {
    let [(a, a_ok), (b, b_ok), (c, c_ok)] = op.s.map(|r| w.any(r, op.wide));
    let carry = w.p[op.carry as usize];
    let bits = if op.wide { 64 } else { 32 };
    let (mut out, mut flags) = ([0; 32], 0);
    for lane in 0..32 {
        let bit = u64::from(op.take && carry.v >> lane & 1 != 0);
        let (x, y, z) = (u128::from(a[lane]), u128::from(b[lane]), u128::from(c[lane]));
        // The sum, or the negated difference, has one bit more than the operands: the carry or borrow.
        let sum = match op.kind {
            CarryKind::Add => x + y + u128::from(bit),
            CarryKind::Sub => x.wrapping_sub(y).wrapping_sub(u128::from(bit)),
            CarryKind::Mad { hi, signed } => {
                let product = if signed {
                    let extend = |v: u64| i128::from(((v << (64 - bits)) as i64) >> (64 - bits));
                    (extend(a[lane]) * extend(b[lane])) as u128
                } else {
                    x * y
                };
                let half = if hi { product >> bits } else { product };
                (half & ((1 << bits) - 1)) + z + u128::from(bit)
            }
        };
        out[lane] = (sum & ((1 << bits) - 1)) as u64;
        flags |= u32::from(sum >> bits & 1 != 0) << lane;
    }
    let ok = a_ok & b_ok & c_ok & if op.take { carry.ok } else { u32::MAX };
    w.put_any(op.d, op.wide, m, &out, ok);
    if op.give {
        w.putp(op.carry, m, flags, ok);
    }
}
