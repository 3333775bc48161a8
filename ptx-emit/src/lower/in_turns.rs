//! What barriers count that blocks of a cluster store.

use crate::inst::Reg;
use tilec_ir::ctas::Counted;
use tilec_ir::entities::Value;

/// A barrier that counts what blocks of a cluster store, and where its mbarrier lies.
#[derive(Clone, Debug)]
pub(super) struct CountedAt {
    pub(super) of: Counted,
    pub(super) offset: u64,
    pub(super) in_turns: Option<InTurns>,
}

/// What iterations of a loop take alternately.
#[derive(Clone, Debug)]
pub(super) struct InTurns {
    pub(super) buffers: Vec<Value>,
    /// How far the second set is after the first.
    pub(super) stride: u64,
    /// Where the set of the present iteration is after the first, and the parity of the phase that it completes.
    pub(super) registers: Option<(Reg, Reg)>,
}

impl InTurns {
    pub(super) fn slot(&self) -> Option<Reg> {
        self.registers.map(|(slot, _)| slot)
    }
}
