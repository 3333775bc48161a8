//! Waiting for a phase of an mbarrier.

use super::state::Lower;
use crate::inst::{Class, Guard, Operand};
use crate::module::Item;
use crate::ops::Op as P;

impl Lower<'_> {
    /// Waits for a phase in a loop, because `mbarrier.try_wait` returns false after a time limit of the hardware.
    pub(super) fn wait_for(&mut self, barrier: Operand, parity: impl Into<Operand>, label: &str) {
        let again = self.emit.label(label);
        self.emit.item(Item::Label(again));
        let done = self.emit.def(Class::Pred, P::MbarrierTryWaitParity, [barrier, parity.into()]);
        self.emit.push_if(Some(Guard { reg: done, negated: true }), P::Bra, [again.into()]);
    }
}
