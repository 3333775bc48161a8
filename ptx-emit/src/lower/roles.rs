//! Roles: statements that run at the same time, each on its own warps.
//!
//! A block's warps are assigned to the roles in their order; each role branches over the others' statements. Inside a
//! role, thread numbers start at its first thread. A shuffle makes the warp number uniform, so that the assembler knows
//! that the branches are uniform in a warp, which wgmma requires.
//!
//! One elected lane runs a role that only issues TMA loads, because each lane that executes such a copy would issue
//! one. If threads fill slots as well, all of them run, and the elected lane issues the TMA loads.

use super::state::{Lower, Part};
use crate::inst::{Class, Guard, Label, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use std::collections::BTreeSet;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::handover::role_warps;
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, ValueDef};
use tilec_ir::layout::extent_bits;
use tilec_ir::roles::{all_warps, distributed_loop, first_warp, replicas as replicas_of};
use tilec_ir::target::{WARP, register_share};
use tilec_ir::tensor_store::tensor_store;

/// Hardware barriers of a block (PTX ISA 9.7.13.1).
const BARRIERS: u32 = 16;

/// Threads of the block: the number in the schedule, or the sum over all roles.
pub(super) fn block_threads(k: &Kernel) -> u32 {
    let roles = k.blocks[k.body].iter().copied().filter(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
    let warps: Vec<u32> = roles.map(|s| all_warps(k, s).expect("the verifier knows the warps of a role")).collect();
    if !warps.is_empty() {
        return warps.iter().sum::<u32>() * WARP;
    }
    let scheduled = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|n| u32::try_from(n).ok());
    scheduled.expect("bug: a block without a number of threads").max(WARP)
}

/// A role that has begun.
pub(super) struct ActiveRole {
    role: Stmt,
    /// Predicates of threads that do not execute it: those of warps below, and of warps above.
    outside: [Option<Reg>; 2],
    /// The label after it.
    done: Label,
    /// The surrounding part and its thread bits.
    outer: (Option<Part>, u32),
}

impl Lower<'_> {
    /// Refuses kernels whose roles would lack synchronisation.
    ///
    /// A producer fills its slots completely. Its threads fill them at the same time as the lane that issues TMA loads.
    /// Each buffer belongs to one role, which the pass `barriers` proves.
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
        if let Some((v, _)) = tilec_ir::memory_reuse::Overlays::of(k).iter().next() {
            return Err(self.unfit_at(k.values[v].span, "a buffer over others in a kernel with roles"));
        }
        for (v, data) in k.values.iter() {
            if !matches!(data.def, ValueDef::Channel { .. }) {
                continue;
            }
            let kinds: BTreeSet<_> = k.fills(v).map(|attrs| (attrs.is_by_threads(), attrs.lands_later())).collect();
            if kinds.len() > 1 {
                let what = "a channel that is filled by copies of several kinds, `tma`, `async` and plain; give each kind a channel of its own";
                return Err(self.unfit_at(data.span, what));
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
                    "`multicast` copies in a role that does more than fill slots by TMA copies; give them a role of their own",
                )),
                (None, None) => None,
            };
            if let Some((s, what)) = refused {
                return Err(self.unfit_at(k.stmt_spans[s], what));
            }
        }
        Ok(())
    }

    /// Begins a role. Roles in front of it in the block's body have the lower warps. The role's statements and
    /// [`Lower::leave_role`] follow.
    pub(super) fn enter_role(
        &mut self,
        s: Stmt,
        warps: Expr,
        registers: Option<Expr>,
        body: Block,
    ) -> Result<ActiveRole, Reported> {
        let k = self.k;
        let (StmtData::Role { name, .. }, Some(count)) = (&k.stmts[s], role_warps(k, s)) else {
            return Err(self.unsupported(warps, "a role without a number of warps"));
        };
        let in_front = || k.blocks[k.body].iter().copied().take_while(|&t| t != s);
        let before = first_warp(k, s).expect("the verifier knows the warps of a role");
        let Some(replicas) = replicas_of(k, s).filter(|&n| n == 1 || distributed_loop(k, body).is_some()) else {
            return Err(self.unsupported(warps, "replicas of a role that is not one loop"));
        };
        // The thread number in a replica consists of the low bits of the number in the role.
        if replicas > 1 && !count.is_power_of_two() {
            return Err(self.unfit(warps, "replicas of other than a power of two of warps"));
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
        let entered = ActiveRole { role: s, outside: [below, above], done, outer };
        self.begin_role(&entered, (warp, first), registers, body);
        Ok(entered)
    }

    /// Ends a role after its statements.
    pub(super) fn leave_role(&mut self, entered: ActiveRole) {
        let ActiveRole { role, outside, done, outer } = entered;
        self.wait_in_role();
        if self.is_elected(role) {
            self.drain_multicasts();
        }
        let items = self.emit.pop_role();
        (self.part, self.thread_bits) = outer;
        for outside in outside.into_iter().flatten() {
            self.emit.push_if(Some(Guard { reg: outside, negated: false }), P::BraUni, [done.into()]);
        }
        self.emit.items(items);
        self.emit.item(Item::Label(done));
    }

    /// Emits the code in front of a role's statements.
    fn begin_role(&mut self, entered: &ActiveRole, (warp, first): (Reg, i64), registers: Option<Expr>, body: Block) {
        let &ActiveRole { role, done, .. } = entered;
        if let Some(count) = registers.and_then(|e| self.k.as_int(e)) {
            let share = register_share(self.block_threads, self.emit.func.minnctapersm);
            let op = if count > i64::from(share) { P::SetmaxnregInc } else { P::SetmaxnregDec };
            self.emit.push(op, [Operand::Imm(count)]);
        }
        if self.is_elected(role) {
            self.emit.comment("one lane issues the TMA loads");
            let other = self.emit.def(Class::Pred, P::SetpNeS32, [warp.into(), Operand::Imm(first)]);
            self.emit.push_if(Some(Guard { reg: other, negated: false }), P::BraUni, [done.into()]);
            let elected = self.emit.reg(Class::Pred);
            self.emit.push(P::ElectSync, [Operand::Elected(elected), Operand::Imm(0xffff_ffff)]);
            self.emit.push_if(Some(Guard { reg: elected, negated: true }), P::Bra, [done.into()]);
        }
        self.sync_cluster(body);
        self.asks = None;
        if self.elects_for_copies(body) {
            self.emit.comment("one lane issues the TMA loads");
            let own = self.emit.def(Class::Pred, P::SetpEqS32, [warp.into(), Operand::Imm(first)]);
            let elected = self.emit.reg(Class::Pred);
            self.emit.push(P::ElectSync, [Operand::Elected(elected), Operand::Imm(0xffff_ffff)]);
            let reg = self.emit.def(Class::Pred, P::AndPred, [own.into(), elected.into()]);
            self.asks = Some(Guard { reg, negated: false });
        }
        self.follows = self.waits_in_roles();
        self.prefetches_first(role);
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
    }

    /// Whether a lane is elected for TMA loads into slots in a role's statements.
    fn elects_for_copies(&self, body: Block) -> bool {
        let mut asks = false;
        self.k.walk(body, &mut |k, _, s| {
            let fills = matches!(k.stmts[s], StmtData::Copy { .. }) && tensor_store(k, s).is_none();
            asks |= fills && self.is_elected(s);
        });
        asks
    }
}
