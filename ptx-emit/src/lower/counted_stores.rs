//! Mbarriers that count the bytes that blocks of a cluster store.

use crate::inst::Reg;
use tilec_ir::ctas::Counted;
use tilec_ir::entities::Value;

/// A barrier that counts stores of blocks of a cluster, and the offset of its mbarrier.
#[derive(Clone, Debug)]
pub(super) struct CountedAt {
    pub(super) of: Counted,
    pub(super) offset: u64,
    pub(super) in_turns: Option<DoubleBuffer>,
}

/// Double buffering of counted stores in a loop.
#[derive(Clone, Debug)]
pub(super) struct DoubleBuffer {
    pub(super) buffers: Vec<Value>,
    /// Bytes from the first set of buffers to the second.
    pub(super) stride: u64,
    /// Offset of the current iteration's set, and the parity of the phase that it completes.
    pub(super) registers: Option<(Reg, Reg)>,
}

impl DoubleBuffer {
    pub(super) fn slot(&self) -> Option<Reg> {
        self.registers.map(|(slot, _)| slot)
    }
}
