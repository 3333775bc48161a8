//! Roles: statements that run side by side, each on warps of its own.
//!
//! A block's warps are dealt out to the roles in their order; each role branches over the others' statements. Inside a role
//! threads count from its first. The number of a thread's warp is made the same register in all lanes by a shuffle: the assembler
//! then knows that the branches do not part the lanes of a warp, which wgmma needs.
//!
//! A role that only issues TMA loads is run by one elected lane: each lane that executes such a copy makes one. Where threads fill
//! slots as well, all of them run, and tensor copies are the elected lane's.

use super::Lower;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use std::collections::BTreeSet;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::handover::role_warps;
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::layout::extent_bits;
use tilec_ir::roles::{all_warps, dealt_out, replicas as replicas_of};
use tilec_ir::target::{WARP, register_share};
use tilec_ir::tensor_store::tensor_store;
use tilec_ir::types::Lanes;

/// The role whose statements are being lowered.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part {
    /// Its first thread in the block.
    pub(super) first: u32,
    /// Its threads; those of one replica.
    pub(super) threads: u32,
    /// How many replicas it has.
    pub(super) replicas: u32,
    /// The hardware barrier of its threads, if there is one left; those of other replicas follow. Barrier 0 is for all threads of the block.
    barrier: Option<u32>,
}

/// Hardware barriers of a block (PTX ISA 9.7.13.1).
const BARRIERS: u32 = 16;

impl Lower<'_> {
    /// The first warp of the present role.
    pub(super) fn role_first_warp(&self) -> u32 {
        self.part.map_or(0, |p| p.first / WARP)
    }
}

/// Threads of the block: those that the schedule names, or of all roles.
pub(super) fn block_threads(k: &Kernel) -> u32 {
    let roles = k.blocks[k.body].iter().copied().filter(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let warps: Vec<u32> = roles.map(|s| all_warps(k, s).expect("the verifier knows the warps of a role")).collect();
    if !warps.is_empty() {
        return warps.iter().sum::<u32>() * WARP;
    }
    let scheduled = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|n| u32::try_from(n).ok());
    scheduled.expect("bug: a block without a number of threads").max(WARP)
}

impl Lower<'_> {
    /// The thread's index in the block, or in its role.
    pub(crate) fn tid(&mut self) -> Reg {
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
            _ => tid,
        }
    }

    /// The thread's index in the block.
    pub(super) fn block_tid(&mut self) -> Reg {
        self.emit.pure(Class::B32, P::MovSpecialU32, [Operand::Special(crate::inst::Special::TidX)])
    }

    /// The number of the thread's warp in the block, the same register for all lanes.
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

    /// Refuses kernels whose roles would run without the synchronisation that they need.
    ///
    /// Who fills a channel fills all of a slot, and its threads do so side by side with one lane that issues TMA loads. Buffers belong
    /// to one role each, which is proved by the pass `barriers`.
    pub(super) fn check_roles(&mut self) -> Result<(), Reported> {
        let k = self.k;
        let roles: Vec<(Stmt, Block)> = k.blocks[k.body]
            .iter()
            .filter_map(|&s| match k.stmts[s] {
                StmtData::Role { body, .. } => Some((s, body)),
                _ => None,
            })
            .collect();
        if roles.is_empty() {
            return Ok(());
        }
        if let Some((v, _)) = tilec_ir::overlay::Overlays::of(k).iter().next() {
            return Err(self.unsupported_at(k.values[v].span, "a buffer over others in a kernel with roles"));
        }
        for (v, data) in k.values.iter() {
            if !matches!(data.def, ValueDef::Channel { .. }) {
                continue;
            }
            let kinds: BTreeSet<_> = k.fills(v).map(|attrs| (attrs.is_by_threads(), attrs.lands_later())).collect();
            if kinds.len() > 1 {
                let what = "a channel that is filled by copies of several kinds, `tma`, `async` and plain; give each kind a channel of its own";
                return Err(self.unsupported_at(data.span, what));
            }
        }
        for (role, body) in roles {
            if self.is_elected(role) {
                continue;
            }
            let (mut filling, mut shared) = (None, None);
            k.walk(body, &mut |k, _, s| {
                let fills =
                    matches!(&k.stmts[s], StmtData::Channel { op: ChannelOp::Acquire | ChannelOp::Publish, .. });
                filling = filling.or(fills.then_some(s));
                let multicast = matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if attrs.is_multicast());
                shared = shared.or(multicast.then_some(s));
            });
            let replicas = replicas_of(k, role).is_none_or(|n| n > 1);
            let refused = match (filling.filter(|_| replicas), shared) {
                (Some(s), _) => Some((s, "replicas of a role that fill channels; give the copies a role of their own")),
                (None, Some(s)) => Some((
                    s,
                    "`multicast` copies in a role that does more than fill slots by tensor copies; give them a role of their own",
                )),
                (None, None) => None,
            };
            if let Some((s, what)) = refused {
                return Err(self.unsupported_at(k.stmt_spans[s], what));
            }
        }
        Ok(())
    }

    /// One role; those that stand before it in the block's body have the lower warps.
    pub(super) fn role(&mut self, s: Stmt, warps: Expr, registers: Option<Expr>, body: Block) -> Result<(), Reported> {
        let k = self.k;
        let (StmtData::Role { name, .. }, Some(count)) = (&k.stmts[s], role_warps(k, s)) else {
            return Err(self.unsupported(warps, "a role without a number of warps"));
        };
        let in_front = || k.blocks[k.body].iter().copied().take_while(|&t| t != s);
        let before: u32 = in_front().filter_map(|t| all_warps(k, t)).sum();
        let Some(replicas) = replicas_of(k, s).filter(|&n| n == 1 || dealt_out(k, body).is_some()) else {
            return Err(self.unsupported(warps, "replicas of a role that is not one loop"));
        };
        // The number of a thread in a replica is some of the bits of its number in the role.
        if replicas > 1 && !count.is_power_of_two() {
            return Err(self.unsupported(warps, "replicas of other than a power of two of warps"));
        }
        let warp = self.warp_index();
        let (first, end) = (i64::from(before), i64::from(before + count * replicas));
        let below = (first > 0).then(|| self.emit.pure(Class::Pred, P::SetpLtS32, [warp.into(), Operand::Imm(first)]));
        let above = (end < i64::from(self.block_threads / WARP))
            .then(|| self.emit.pure(Class::Pred, P::SetpGeS32, [warp.into(), Operand::Imm(end)]));
        let done = self.emit.label(&format!("after_{name}"));
        let outer = (self.part, self.thread_bits);
        let number = 1 + in_front().filter_map(|t| replicas_of(k, t)).sum::<u32>();
        let barrier = Some(number).filter(|&n| n + replicas <= BARRIERS);
        self.part = Some(Part { first: before * WARP, threads: count * WARP, replicas, barrier });
        self.thread_bits = extent_bits(u64::from(count * WARP));
        self.emit.push_role();
        let result = self.role_body(s, (warp, first), registers, body, done);
        let items = self.emit.pop_role();
        (self.part, self.thread_bits) = outer;
        result?;
        for outside in [below, above].into_iter().flatten() {
            self.emit.push_if(Some(Guard { reg: outside, negated: false }), P::BraUni, [done.into()]);
        }
        self.emit.items(items);
        self.emit.item(Item::Label(done));
        Ok(())
    }

    fn role_body(
        &mut self,
        role: Stmt,
        (warp, first): (Reg, i64),
        registers: Option<Expr>,
        body: Block,
        done: crate::inst::Label,
    ) -> Result<(), Reported> {
        if let Some(count) = registers.and_then(|e| self.k.as_int(e)) {
            let share = register_share(self.block_threads, self.emit.func.minnctapersm);
            let op = if count > i64::from(share) { P::SetmaxnregInc } else { P::SetmaxnregDec };
            self.emit.push(op, [Operand::Imm(count)]);
        }
        if self.is_elected(role) {
            self.emit.comment("one lane asks for the copies");
            let other = self.emit.def(Class::Pred, P::SetpNeS32, [warp.into(), Operand::Imm(first)]);
            self.emit.push_if(Some(Guard { reg: other, negated: false }), P::BraUni, [done.into()]);
            let elected = self.emit.reg(Class::Pred);
            self.emit.push(P::ElectSync, [Operand::Elected(elected), Operand::Imm(0xffff_ffff)]);
            self.emit.push_if(Some(Guard { reg: elected, negated: true }), P::Bra, [done.into()]);
        }
        self.asks = None;
        if self.elects_for_copies(body) {
            self.emit.comment("one lane issues the TMA loads");
            let own = self.emit.def(Class::Pred, P::SetpEqS32, [warp.into(), Operand::Imm(first)]);
            let elected = self.emit.reg(Class::Pred);
            self.emit.push(P::ElectSync, [Operand::Elected(elected), Operand::Imm(0xffff_ffff)]);
            let reg = self.emit.def(Class::Pred, P::AndPred, [own.into(), elected.into()]);
            self.asks = Some(Guard { reg, negated: false });
        }
        if self.waits_in_roles() {
            self.emit.push(P::GriddepcontrolWait, []);
        }
        let mut changes: Vec<(ChannelOp, Value)> = Vec::new();
        self.k.walk(body, &mut |k, _, s| {
            if let StmtData::Channel { op, channels, .. } = &k.stmts[s] {
                changes.extend(channels.iter().map(|&c| (*op, c)));
            }
        });
        self.positions_into_registers(&|op, c| changes.contains(&(op, c)));
        if let Some(part) = self.part {
            self.begin_turns(role, part);
        }
        self.block(body)?;
        if self.is_elected(role) {
            self.drain_multicasts();
        }
        Ok(())
    }

    /// Whether one lane does a statement for all.
    pub(super) fn is_elected(&self, s: Stmt) -> bool {
        self.k.lanes[s] == Some(Lanes::Elected)
    }

    /// Whether a lane is elected for tensor copies into slots among the statements of a role.
    fn elects_for_copies(&self, body: Block) -> bool {
        let mut asks = false;
        self.k.walk(body, &mut |k, _, s| {
            let fills = matches!(k.stmts[s], StmtData::Copy { .. }) && tensor_store(k, s).is_none();
            asks |= fills && self.is_elected(s);
        });
        asks
    }

    /// Of what the elected lane of a role does beside the other threads: its guard; `None` where that lane runs the role.
    pub(super) fn asking(&self, s: Stmt) -> Option<Guard> {
        assert!(self.is_elected(s) == self.asks.is_some(), "bug: the text does not say which lane issues TMA loads");
        self.asks
    }

    /// A barrier of the threads of the present role, or of the block.
    pub(super) fn barrier(&mut self, s: Stmt) -> Result<(), Reported> {
        match self.part {
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

    /// A predicate that never holds. `setp` takes one immediate; the assembler folds the other's move, and the instruction needs no vote.
    pub(super) fn never(&mut self) -> Reg {
        let zero = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        self.emit.pure(Class::Pred, P::SetpNeS32, [zero.into(), Operand::Imm(0)])
    }

    /// A predicate that always holds.
    pub(super) fn always(&mut self) -> Reg {
        let zero = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(0)]);
        self.emit.pure(Class::Pred, P::SetpEqS32, [zero.into(), Operand::Imm(0)])
    }
}
