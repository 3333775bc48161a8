//! Replicas of a role, which execute the iterations of its loop alternately ([`tilec_ir::roles`]), and warpgroups of a
//! role, which execute `ordered` statements one after the other.
//!
//! Each `ordered` statement has an mbarrier for every replica. It completes a phase when all warps of the previous
//! replica have left the statement. In front of the loop, the last replica arrives once at each, so that the first
//! replica may enter.
//!
//! A replica does not know which slots other replicas use. If a statement waits for slots of a ring, the ring index is
//! passed in a word of the next replica, after the barriers: the address of the `full` barrier, with the parity in its
//! lowest bit. All warps have read it when they let the next replica in.

use super::ranged_ints::Int;
use super::rings::{OrderedState, Position, Ring};
use super::state::{Lower, Part};
use crate::inst::{Class, Guard, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::StmtData;
use tilec_ir::ops::Op;
use tilec_ir::ordered::turns;
use tilec_ir::placement::BARRIER_BYTES;
use tilec_ir::roles::distributed_loop;

impl Lower<'_> {
    /// Records the places of the barriers and words of `ordered` statements, which the IR defines.
    pub(super) fn place_turns(&mut self) {
        for turn in turns(self.k) {
            let said = self.k.ordered[turn.stmt].and_then(|said| Some((said.arrivals, said.at?)));
            let (arrivals, offset) = said.unwrap_or_else(|| panic!("bug: an `ordered` statement has no place"));
            let ring = |v: &Value| {
                let ring = self.placed[*v].and_then(|placed| placed.ring);
                ring.unwrap_or_else(|| panic!("bug: `{}` is in no ring", self.k.values[*v].name))
            };
            let places = turn.passed_rings.iter().enumerate().map(|(i, v)| (ring(v), offset + turn.word(i))).collect();
            let turns = OrderedState { offset, replicas: turn.groups, arrivals, places, parity: None };
            self.ordered.insert(turn.stmt, turns);
        }
    }

    /// Start and step of a replica's own iterations in a loop that distributes its iterations; other loops are
    /// unchanged. `None`: beyond 64 bits.
    pub(super) fn own_iterations(&mut self, s: Stmt, start: Int, step: i64) -> Option<(Int, i64)> {
        let k = self.k;
        let mut roles = k.blocks[k.body].iter().filter_map(|&role| match k.stmts[role] {
            StmtData::Role { body, .. } => distributed_loop(k, body),
            _ => None,
        });
        match self.part {
            Some(part) if part.replicas > 1 && roles.any(|turns| turns == s) => {
                let own = Int::r32(self.replica(part), 0, i128::from(part.replicas) - 1);
                let ahead = self.int_op(Op::Mul, own, Int::constant(step))?;
                Some((self.int_op(Op::Add, start, ahead)?, step.checked_mul(i64::from(part.replicas))?))
            }
            _ => Some((start, step)),
        }
    }

    /// In front of the loop: the last replica lets the first one enter each `ordered` statement.
    pub(super) fn begin_turns(&mut self, role: Stmt, part: Part) {
        let mut all = Vec::new();
        let parts: Vec<Stmt> = turns(self.k).into_iter().filter(|t| t.role == role).map(|t| t.stmt).collect();
        for s in parts {
            let parity = self.emit.mutable(Class::B32);
            self.emit.push(P::MovB32, [parity.into(), Operand::Imm(0)]);
            let turns =
                self.ordered.get_mut(&s).unwrap_or_else(|| panic!("bug: an `ordered` statement without barriers"));
            turns.parity = Some(parity);
            all.push(turns.clone());
        }
        let Some(replicas) = all.first().map(|turns| turns.replicas) else { return };
        self.emit.comment("the last one lets the first one begin");
        let own = self.replica(part);
        let last = Operand::Imm(i64::from(replicas) - 1);
        let other = self.emit.pure(Class::Pred, P::SetpNeS32, [own.into(), last]);
        let done = self.emit.label("begun");
        self.emit.push_frame();
        for turns in &all {
            self.pass_ring_state(turns, part);
        }
        let items = self.emit.pop_frame();
        self.emit.push_if(Some(Guard { reg: other, negated: false }), P::BraUni, [done.into()]);
        self.emit.items(items);
        self.emit.item(Item::Label(done));
    }

    /// Begins `ordered { .. }`: waits for the previous replica. `None`: the role has a single group, so there is no
    /// order.
    pub(super) fn begin_ordered(&mut self, s: Stmt) -> Option<(OrderedState, Part)> {
        let turns = self.ordered.get(&s).cloned()?;
        let (Some(part), Some(parity)) = (self.part, turns.parity) else {
            panic!("bug: an `ordered` statement outside of its role")
        };
        let own = self.replica(part);
        let at = self.of_replica(turns.offset, own);
        self.wait_for(Operand::at(at, 0), parity, "wait_turn");
        self.emit.push(P::XorB32, [parity.into(), parity.into(), Operand::Imm(1)]);
        for &(r, word) in &turns.places {
            self.take_place(r, word, own);
        }
        Some((turns, part))
    }

    /// Ends `ordered { .. }`: lets the next replica in.
    pub(super) fn end_ordered(&mut self, (turns, part): &(OrderedState, Part)) {
        self.emit.comment("the next one may begin");
        self.pass_ring_state(turns, *part);
    }

    /// The address of a replica's own entry in an array of words of barrier size.
    fn of_replica(&mut self, offset: u64, replica: Reg) -> Reg {
        let first = self.barrier_address(offset);
        let bits = Operand::Imm(i64::from(BARRIER_BYTES.ilog2()));
        let own = self.emit.pure(Class::B32, P::ShlB32, [replica.into(), bits]);
        self.emit.pure(Class::B32, P::AddS32, [first.into(), own.into()])
    }

    /// Stores the ring indices for the next replica, and arrives at its barrier.
    fn pass_ring_state(&mut self, turns: &OrderedState, part: Part) {
        let own = self.replica(part);
        let next = self.emit.pure(Class::B32, P::AddS32, [own.into(), Operand::Imm(1)]);
        let all = Operand::Imm(i64::from(turns.replicas));
        let next = self.emit.pure(Class::B32, P::RemU32, [next.into(), all]);
        for &(r, word) in &turns.places {
            let turn =
                self.rings[r].get_turn.unwrap_or_else(|| panic!("bug: a ring that replicas hand on has no position"));
            let place = self.emit.def(Class::B32, P::OrB32, [turn.barrier.into(), turn.parity.into()]);
            let tid = self.tid();
            let first = self.emit.pure(Class::Pred, P::SetpEqS32, [tid.into(), Operand::Imm(0)]);
            let operands = vec![Operand::at(self.of_replica(word, next), 0), place.into()];
            self.emit.push_if(Some(Guard { reg: first, negated: false }), P::StSharedB32, operands);
        }
        let at = self.of_replica(turns.offset, next);
        // One lane arrives for its whole warp.
        self.emit.push(P::BarWarpSync, [Operand::Imm(0xffff_ffff)]);
        let lane = self.first_lane();
        let state = self.emit.reg(Class::B64);
        let guard = Some(Guard { reg: lane, negated: false });
        self.emit.push_if(guard, P::MbarrierArrive, [state.into(), Operand::at(at, 0)]);
    }

    /// Continues after the slot that the previous replica waited for last. A shuffle makes the index uniform, because
    /// descriptors are computed from it.
    fn take_place(&mut self, r: usize, word: u64, replica: Reg) {
        let ring: Ring = self.rings[r].clone();
        let (Some(barriers), Some(turn), Position::Reg(slot)) = (ring.barriers, ring.get_turn, ring.get) else {
            panic!("bug: a ring that replicas hand on has no position")
        };
        let own = self.of_replica(word, replica);
        let place = self.emit.def(Class::B32, P::LdSharedB32, [Operand::at(own, 0)]);
        let lanes = [Operand::Imm(0), Operand::Imm(31), Operand::Imm(0xffff_ffff)];
        let operands: Vec<_> = std::iter::once(Operand::from(place)).chain(lanes).collect();
        let place = self.emit.def(Class::B32, P::ShflSyncIdxB32, operands);
        let one = Operand::Imm(1);
        self.emit.push(P::AndB32, [turn.parity.into(), place.into(), one]);
        self.emit.push(P::SubS32, [turn.barrier.into(), place.into(), turn.parity.into()]);
        let start = self.barrier_address(barriers.offset);
        let bytes = self.emit.def(Class::B32, P::SubS32, [turn.barrier.into(), start.into()]);
        let stride = Operand::Imm((ring.stride / BARRIER_BYTES) as i64);
        self.emit.push(P::MulLoS32, [slot.into(), bytes.into(), stride]);
        if let Some(oldest) = ring.oldest {
            self.emit.push(P::MovB32, [oldest.into(), turn.barrier.into()]);
            self.next_oldest(&ring, oldest);
        }
    }
}
