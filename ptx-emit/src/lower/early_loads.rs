//! Loads of constant tensors while the previous grids still run (programmatic dependent launch).
//!
//! Nobody writes such a tensor while the kernel may run, so its TMA loads need not wait for those grids. The slots of a ring are empty at first: the
//! lane that issues the loads fills as many of them as the schedule says with what is constant, and prefetches the other loads of these steps into the
//! second-level cache. It waits, and then executes its loop. There, the other loads of these slots follow, and the slots are published.
//!
//! ```text
//! if the first tile {
//!     for k in begin..min(end, begin + 6 * 64) step 64 {
//!         copy A[m.., k..] -> the second-level cache ; copy W[k.., n..] -> fill.w ; early = early + 1
//!     }
//! }
//! griddepcontrol.wait
//! for k in begin..end step 64 {
//!     acquire fill ; copy A[m.., k..] -> fill.a ; if early <= 0 { copy W[k.., n..] -> fill.w } ; publish fill ; early = early - 1
//! }
//! ```
//!
//! The text of the program has each load once, where the loop has it. All slots of a role must be published in one loop, so that its steps are counted alike.

use super::rings::{EarlyLoads, Position};
use super::state::Lower;
use crate::inst::{Class, Guard, Operand};
use crate::ops::Op as P;
use tilec_ir::constant_loads::ConstantLoads;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ChannelOp, StmtData};

impl Lower<'_> {
    /// The loads of a role of one lane that need not wait, if there are any. Their number begins at zero.
    pub(super) fn early_loads(&mut self, role: Stmt) -> Option<EarlyLoads> {
        let StmtData::Role { body, .. } = self.k.stmts[role] else { unreachable!("a role loads") };
        let ConstantLoads { copies, ends_step, channels } = ConstantLoads::of(self.k, body)?;
        let rings = channels.iter().filter_map(|&c| self.placed[c].and_then(|placed| placed.ring));
        let slots = rings.map(|r| self.rings[r].slots).min().and_then(|n| i64::try_from(n).ok())?;
        let steps = self.emit.mutable(Class::B32);
        self.emit.push(P::MovB32, [steps.into(), Operand::Imm(0)]);
        Some(EarlyLoads { copies, ends_step, slots, steps })
    }

    /// Of `steps` steps those for which there are slots.
    pub(super) fn early_steps(&self, steps: i64) -> i64 {
        self.early.as_ref().map_or(steps, |early| steps.min(early.slots))
    }

    /// Whether a copy is among the loads that need not wait.
    pub(super) fn is_early(&self, s: Stmt) -> bool {
        self.early.as_ref().is_some_and(|early| early.copies.contains(&s))
    }

    /// Positions of their own for the rings in front of the wait.
    pub(super) fn early_positions(&mut self) {
        for r in 0..self.rings.len() {
            let ring = self.rings[r].clone();
            if ring.put_turn.is_some() {
                self.rings[r].put = self.in_register(&ring, Position::Slot(0));
                self.rings[r].put_turn = self.first_turn(&ring, ChannelOp::Publish);
            }
        }
    }

    /// Ends a step in front of the wait: the next loads are for the next slots.
    pub(super) fn end_early_step(&mut self, s: Stmt, channels: &[Value]) {
        for r in self.rings_of(channels) {
            let ring = self.rings[r].clone();
            self.rings[r].put = self.advance(&ring, ring.put, ring.put_turn);
            self.rings[r].filling = 0;
        }
        if let Some(early) = self.early.clone().filter(|early| early.ends_step == s) {
            self.emit.push(P::AddS32, [early.steps.into(), early.steps.into(), Operand::Imm(1)]);
        }
    }

    /// In the loop: the guard of a load that has not been issued in front of the wait. `None`: it is not among those.
    pub(super) fn unless_early(&mut self, s: Stmt) -> Option<Guard> {
        let early = self.early.clone().filter(|early| self.prefetch_step.is_none() && early.copies.contains(&s))?;
        let due = self.emit.def(Class::Pred, P::SetpLeS32, [early.steps.into(), Operand::Imm(0)]);
        Some(Guard { reg: due, negated: false })
    }

    /// In the loop: counts a step whose slots are published.
    pub(super) fn count_early_step(&mut self, s: Stmt) {
        if let Some(early) = self.early.clone().filter(|early| early.ends_step == s) {
            let some = self.emit.def(Class::Pred, P::SetpGtS32, [early.steps.into(), Operand::Imm(0)]);
            let guard = Some(Guard { reg: some, negated: false });
            self.emit.push_if(guard, P::AddS32, [early.steps.into(), early.steps.into(), Operand::Imm(-1)]);
        }
    }
}
