//! Moves of the positions in rings, and their registers.

use super::rings::{OrderedBarrier, Position, Ring};
use super::state::Lower;
use crate::inst::{Class, Guard, Operand};
use crate::ops::Op as P;
use tilec_ir::entities::Value;
use tilec_ir::kernel::ChannelOp;

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
}
