//! Operations described rather than compiled, on up to three operands; and extended precision.

use super::warp::Warp;
use crate::numerics::bits::{self, Part};
use crate::numerics::single;
use crate::numerics::video::{Simd, Video};
use crate::program::{Carry, CarryKind};

/// An operation on bit patterns of up to three operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// `slct`: the first operand if the third is not negative, a float or an integer.
    Select { float: bool, ftz: bool },
    /// `fns`.
    FindNthSet,
    /// `cvt.pack`, in front of the third operand if there is one.
    Pack { part: Part, append: bool },
    /// A video instruction on one part of each operand.
    Video(Video),
    /// A video instruction on the parts of words.
    Simd(Simd),
}

impl Function {
    /// The result for one lane.
    pub(crate) fn apply(self, a: u64, b: u64, c: u64) -> u64 {
        let (x, y, z) = (a as u32, b as u32, c as u32);
        match self {
            Function::Select { float: false, .. } => {
                if (z as i32) < 0 {
                    b
                } else {
                    a
                }
            }
            Function::Select { float: true, ftz } => {
                if f32::from_bits(if ftz { single::flush(z) } else { z }) >= 0.0 {
                    a
                } else {
                    b
                }
            }
            Function::FindNthSet => u64::from(bits::find_nth_set(x, y, z as i32)),
            Function::Pack { part, append } => u64::from(bits::pack(part, x as i32, y as i32, append.then_some(z))),
            Function::Video(video) => u64::from(video.apply(x, y, z)),
            Function::Simd(simd) => u64::from(simd.apply(x, y, z)),
        }
    }
}

/// Extended-precision arithmetic (PTX 9.7.2).
pub(super) fn extended(w: &mut Warp, op: &Carry, m: u32) {
    let [(a, a_ok), (b, b_ok), (c, c_ok)] = op.s.map(|r| w.any(r, op.wide));
    let carry = w.p[op.carry as usize];
    let bits = if op.wide { 64 } else { 32 };
    let (mut out, mut flags) = ([0; 32], 0);
    for lane in 0..32 {
        let bit = u64::from(op.take && carry.v >> lane & 1 != 0);
        let (x, y, z) = (u128::from(a[lane]), u128::from(b[lane]), u128::from(c[lane]));
        // The sum, or minus the difference, has one bit more than the operands: the carry or borrow.
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
