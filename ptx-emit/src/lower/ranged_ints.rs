//! Integers during lowering: a constant or a register, with the range of its values over all admissible launches (sizes
//! up to [`tilec_ir::extents::MAX_SIZE`], strides up to [`tilec_ir::extents::MAX_STRIDE`]).

use crate::inst::Reg;
use tilec_ir::index::Interval;

/// An integer known at compile time or held in a register.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Repr {
    Const(i64),
    R32(Reg),
    R64(Reg),
}

/// An index value with its range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Int {
    pub(super) repr: Repr,
    pub(super) lo: i128,
    pub(super) hi: i128,
}

impl Int {
    pub(super) fn constant(x: i64) -> Int {
        Int { repr: Repr::Const(x), lo: i128::from(x), hi: i128::from(x) }
    }

    pub(super) fn r32(reg: Reg, lo: i128, hi: i128) -> Int {
        Int { repr: Repr::R32(reg), lo, hi }
    }

    pub(super) fn interval(self) -> Interval {
        Interval::new(self.lo, self.hi)
    }

    pub(super) fn as_const(self) -> Option<i64> {
        match self.repr {
            Repr::Const(x) => Some(x),
            _ => None,
        }
    }
}

pub(super) fn fits32(lo: i128, hi: i128) -> bool {
    lo >= i128::from(i32::MIN) && hi <= i128::from(i32::MAX)
}
