//! Moves of the positions in rings, and their registers: slots, barriers and parities.

use super::rings::{Barriers, OrderedBarrier, Position, Ring};
use super::state::Lower;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::entities::Value;
use tilec_ir::kernel::ChannelOp;
use tilec_ir::placement::BARRIER_BYTES;

impl Lower<'_> {
    /// The rings of channels, each once.
    pub(super) fn rings_of(&self, channels: &[Value]) -> Vec<usize> {
        let mut rings: Vec<usize> = Vec::new();
        for &c in channels {
            let r = self.placed[c].and_then(|p| p.ring).expect("every channel is placed, in a ring");
            if !rings.contains(&r) {
                rings.push(r);
            }
        }
        rings
    }

    /// Advances a position to the next slot.
    pub(super) fn advance(&mut self, ring: &Ring, at: Position, turn: Option<OrderedBarrier>) -> Position {
        match at {
            Position::Reg(r) if turn.is_some() => {
                let wrap = (ring.slots > 1).then(|| {
                    self.emit.push(P::AddS32, [r.into(), r.into(), Operand::Imm(ring.stride as i64)]);
                    let end = Operand::Imm((ring.slots * ring.stride) as i64);
                    let wrap = self.emit.def(Class::Pred, P::SetpEqS32, [r.into(), end]);
                    let guard = Some(Guard { reg: wrap, negated: false });
                    self.emit.push_if(guard, P::MovB32, [r.into(), Operand::Imm(0)]);
                    wrap
                });
                if let Some(turn) = turn {
                    self.next_turn(ring, turn, wrap);
                }
                at
            }
            Position::Slot(i) => Position::Slot((i + 1) % ring.slots),
            Position::Reg(r) => {
                match ring.slots {
                    1 => {}
                    2 => self.emit.push(P::XorB32, [r.into(), r.into(), Operand::Imm(ring.stride as i64)]),
                    n => {
                        self.emit.push(P::AddS32, [r.into(), r.into(), Operand::Imm(ring.stride as i64)]);
                        let end = Operand::Imm((n * ring.stride) as i64);
                        let wrap = self.emit.def(Class::Pred, P::SetpEqS32, [r.into(), end]);
                        self.emit.push(P::SelpB32, [r.into(), Operand::Imm(0), r.into(), wrap.into()]);
                    }
                }
                Position::Reg(r)
            }
        }
    }

    /// Positions that a loop changes go into registers in front of it.
    pub(super) fn positions_into_registers(&mut self, changed: &dyn Fn(ChannelOp, Value) -> bool) {
        for r in 0..self.rings.len() {
            let ring = self.rings[r].clone();
            let touched = |op| ring.channels.iter().any(|&c| changed(op, c));
            if touched(ChannelOp::Publish) {
                self.rings[r].put = self.in_register(&ring, ring.put);
                if ring.put_turn.is_none() {
                    self.rings[r].put_turn = self.first_turn(&ring, ChannelOp::Publish);
                }
            }
            if touched(if ring.holds_several { ChannelOp::Wait } else { ChannelOp::Release }) {
                self.rings[r].get = self.in_register(&ring, ring.get);
                if ring.get_turn.is_none() {
                    self.rings[r].get_turn = self.first_turn(&ring, ChannelOp::Release);
                    self.rings[r].oldest = self.first_oldest(&ring);
                }
            }
        }
    }

    pub(super) fn in_register(&mut self, ring: &Ring, at: Position) -> Position {
        match at {
            Position::Slot(i) => {
                let reg = self.emit.mutable(Class::B32);
                self.emit.push(P::MovB32, [reg.into(), Operand::Imm((i * ring.stride) as i64)]);
                Position::Reg(reg)
            }
            reg => reg,
        }
    }

    /// Initial barrier address and parity of one side of a ring. The producer's parity is one phase ahead. A consumer
    /// that holds several slots begins one phase ahead at the last slot, because its first `wait` advances it.
    pub(super) fn first_turn(&mut self, ring: &Ring, op: ChannelOp) -> Option<OrderedBarrier> {
        let Barriers { offset, .. } = ring.barriers?;
        let (barrier, parity) = (self.emit.mutable(Class::B32), self.emit.mutable(Class::B32));
        let holds_several = ring.holds_several && op != ChannelOp::Publish;
        let start =
            self.barrier_address(if holds_several { offset + (ring.slots - 1) * BARRIER_BYTES } else { offset });
        self.emit.push(P::MovB32, [barrier.into(), start.into()]);
        let ahead = i64::from(holds_several || op == ChannelOp::Publish);
        self.emit.push(P::MovB32, [parity.into(), Operand::Imm(ahead)]);
        Some(OrderedBarrier { barrier, parity })
    }

    /// A register with the `full` barrier of the slot that is released next, if several slots are held.
    pub(super) fn first_oldest(&mut self, ring: &Ring) -> Option<Reg> {
        let Barriers { offset, .. } = ring.barriers.filter(|_| ring.holds_several)?;
        let oldest = self.emit.mutable(Class::B32);
        let start = self.barrier_address(offset);
        self.emit.push(P::MovB32, [oldest.into(), start.into()]);
        Some(oldest)
    }

    /// Advances `oldest` after a release.
    pub(super) fn next_oldest(&mut self, ring: &Ring, oldest: Reg) {
        let Barriers { offset, .. } = ring.known_barriers();
        self.emit.push(P::AddS32, [oldest.into(), oldest.into(), Operand::Imm(BARRIER_BYTES as i64)]);
        let end = self.barrier_address(offset + ring.slots * BARRIER_BYTES);
        let wrap = self.emit.def(Class::Pred, P::SetpEqS32, [oldest.into(), end.into()]);
        let start = self.barrier_address(offset);
        self.emit.push_if(Some(Guard { reg: wrap, negated: false }), P::MovB32, [oldest.into(), start.into()]);
    }

    pub(super) fn barrier_address(&mut self, offset: u64) -> Reg {
        let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
        self.emit.pure(Class::B32, P::AddS32, [base.into(), Operand::Imm(offset as i64)])
    }

    /// Advances to the next slot. The ring wraps if `wrap` holds.
    pub(super) fn next_turn(&mut self, ring: &Ring, turn: OrderedBarrier, wrap: Option<Reg>) {
        let Barriers { offset, .. } = ring.known_barriers();
        let flip = vec![turn.parity.into(), turn.parity.into(), Operand::Imm(1)];
        let Some(wrap) = wrap else {
            self.emit.push(P::XorB32, flip);
            return;
        };
        let step = Operand::Imm(BARRIER_BYTES as i64);
        self.emit.push(P::AddS32, [turn.barrier.into(), turn.barrier.into(), step]);
        let start = self.barrier_address(offset);
        let guard = Some(Guard { reg: wrap, negated: false });
        self.emit.push_if(guard, P::MovB32, [turn.barrier.into(), start.into()]);
        self.emit.push_if(guard, P::XorB32, flip);
    }
}
