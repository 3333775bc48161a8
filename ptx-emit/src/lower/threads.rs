//! Thread numbers in the block, the role and the replica; elected lanes; barriers.

use super::state::{Lower, Part};
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Stmt;
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::types::Lanes;

impl Lower<'_> {
    /// The first warp of the present role.
    pub(super) fn role_first_warp(&self) -> u32 {
        self.part.map_or(0, |p| p.first / WARP)
    }

    /// The thread's index in the block, or in its role; if blocks of a cluster share tiles, in the cluster.
    pub(super) fn tid(&mut self) -> Reg {
        let tid = self.block_tid();
        match self.part {
            Some(part) if part.replicas > 1 => {
                let own = match part.first {
                    0 => tid,
                    first => self.emit.pure(Class::B32, P::SubS32, [tid.into(), Operand::Imm(i64::from(first))]),
                };
                let last = Operand::Imm(i64::from(part.threads) - 1);
                self.emit.pure(Class::B32, P::AndB32, [own.into(), last])
            }
            Some(Part { first, .. }) if first > 0 => {
                self.emit.pure(Class::B32, P::SubS32, [tid.into(), Operand::Imm(i64::from(first))])
            }
            None if self.ctas() > 1 => self.cluster_tid(tid),
            _ => tid,
        }
    }

    /// The number of the thread's warp in the block; uniform.
    pub(super) fn warp_index(&mut self) -> Reg {
        let tid = self.block_tid();
        let warp = self.emit.pure(Class::B32, P::ShrU32, [tid.into(), Operand::Imm(5)]);
        let all = [Operand::Imm(0), Operand::Imm(31), Operand::Imm(0xffff_ffff)];
        let mut from = vec![warp.into()];
        from.extend(all);
        self.emit.pure(Class::B32, P::ShflSyncIdxB32, from)
    }

    /// A predicate: whether the thread is the first lane of its warp.
    pub(super) fn first_lane(&mut self) -> Reg {
        let tid = self.block_tid();
        let lane = self.emit.pure(Class::B32, P::AndB32, [tid.into(), Operand::Imm(31)]);
        self.emit.pure(Class::Pred, P::SetpEqS32, [lane.into(), Operand::Imm(0)])
    }

    /// Whether one elected lane executes a statement.
    pub(super) fn is_elected(&self, s: Stmt) -> bool {
        self.k.lanes[s] == Some(Lanes::Elected)
    }

    /// The guard of statements that only the elected lane of a role executes; `None` if that lane alone runs the role.
    pub(super) fn elected_guard(&self, s: Stmt) -> Option<Guard> {
        assert!(self.is_elected(s) == self.asks.is_some(), "bug: the text does not say which lane issues TMA loads");
        self.asks
    }

    /// A predicate that is always false, without a vote. `setp` takes only one immediate; the assembler folds the `mov`
    /// of the other.
    pub(super) fn never(&mut self) -> Reg {
        let zero = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        self.emit.pure(Class::Pred, P::SetpNeS32, [zero.into(), Operand::Imm(0)])
    }

    /// A predicate that is always true.
    pub(super) fn always(&mut self) -> Reg {
        let zero = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        self.emit.pure(Class::Pred, P::SetpEqS32, [zero.into(), Operand::Imm(0)])
    }

    /// A barrier of the threads of the present role, or of the block.
    pub(super) fn barrier(&mut self, s: Stmt) -> Result<(), Reported> {
        match self.part {
            None if self.ctas() > 1 => self.ctas_barrier(s),
            None => self.emit.push(P::BarSync, [Operand::Imm(0)]),
            Some(part @ Part { barrier: Some(barrier), threads, .. }) => {
                for i in 0..part.replicas {
                    let operands = vec![Operand::Imm(i64::from(barrier + i)), Operand::Imm(i64::from(threads))];
                    let guard = (part.replicas > 1).then(|| {
                        let replica = self.replica(part);
                        let own = vec![replica.into(), Operand::Imm(i64::from(i))];
                        Guard { reg: self.emit.pure(Class::Pred, P::SetpEqS32, own), negated: false }
                    });
                    self.emit.push_if(guard, P::BarSyncCount, operands);
                }
            }
            Some(Part { barrier: None, .. }) => {
                let what = "barriers of more than fifteen roles";
                return Err(self.unsupported_at(self.k.stmt_spans[s], what));
            }
        }
        self.report.barriers += 1;
        if !self.loops.is_empty() {
            self.report.barriers_in_loop += 1;
        }
        Ok(())
    }

    /// The number of the thread's replica; in a role without replicas, of its warpgroup.
    pub(super) fn replica(&mut self, part: Part) -> Reg {
        let warp = self.warp_in_role(part);
        let warps = if part.replicas > 1 { part.threads / WARP } else { WARPGROUP };
        let bits = Operand::Imm(i64::from(warps.max(1).ilog2()));
        self.emit.pure(Class::B32, P::ShrU32, [warp.into(), bits])
    }

    /// The number of the thread's warp in its replica.
    pub(super) fn warp_in_replica(&mut self, part: Part) -> Reg {
        let warp = self.warp_in_role(part);
        let last = Operand::Imm(i64::from(part.threads / WARP) - 1);
        self.emit.pure(Class::B32, P::AndB32, [warp.into(), last])
    }

    fn warp_in_role(&mut self, part: Part) -> Reg {
        let (warp, first) = (self.warp_index(), Operand::Imm(i64::from(part.first / WARP)));
        self.emit.pure(Class::B32, P::SubS32, [warp.into(), first])
    }
}
