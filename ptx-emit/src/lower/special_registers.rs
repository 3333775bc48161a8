//! Special registers: thread and block numbers.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg, Special};
use crate::ops::Op as P;

impl Lower<'_> {
    /// The thread's index in the block.
    pub(super) fn block_tid(&mut self) -> Reg {
        self.emit.pure(Class::B32, P::MovSpecialU32, [Operand::Special(Special::TidX)])
    }

    /// The number of the block in its cluster.
    pub(super) fn cluster_rank(&mut self) -> Reg {
        self.emit.pure(Class::B32, P::MovSpecialU32, [Operand::Special(Special::ClusterCtaRank)])
    }
}
