//! Dynamic tile scheduler, loops that take their tiles from a counter: `for tile in cta..tiles step 132 next turns from
//! drawn`.
//!
//! `publish turns` takes a tile: one thread increments the counter (`atom.inc`, which wraps to 0 after the last
//! number), stores the old value to the slot, and arrives. Other threads of its role wait for it. A thread that waits
//! for the slot reads it in front of `release turns`. A thread that reads a slot arrives at the next one after that.
//! The incrementing thread also waits for the next one, so it overwrites no slot that is still read. In a role of
//! several warps, each warp broadcasts the number from its first lane. Then the assembler knows that the loop is
//! uniform in the warp, which wgmma requires.

use super::ranged_ints::Int;
use super::rings::{Draws, Position, Ring};
use super::state::Lower;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ChannelOp, Next};
use tilec_ir::ops::Op;

impl Lower<'_> {
    /// Records the loop up to `end`, in front of its body.
    pub(super) fn begin_draws(&mut self, next: Next, end: Int) {
        self.draws.push(Draws { next, end, tile_number: None });
    }

    /// After the body: the tile number that was taken from the counter.
    pub(super) fn end_draws(&mut self, next: Next) -> Reg {
        let draws = self.draws.pop().filter(|d| d.next == next).and_then(|d| d.tile_number);
        draws.unwrap_or_else(|| panic!("bug: a loop draws no number, which is verified"))
    }

    /// The loop whose tile numbers pass through a ring.
    fn draws_of(&self, ring: usize) -> Option<usize> {
        self.draws.iter().position(|d| self.rings[ring].channels.contains(&d.next.channel))
    }

    /// The address of a slot.
    fn number_at(&mut self, channel: Value, at: Position) -> Operand {
        let place = self.placed[channel].unwrap_or_else(|| panic!("bug: a channel without a place"));
        match at {
            Position::Slot(n) => {
                let ring = place.ring.map_or(0, |r| self.rings[r].stride);
                Operand::shared(0, (place.offset + n * ring) as i64)
            }
            Position::Reg(reg) => {
                let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
                let at = self.emit.def(Class::B32, P::AddS32, [base.into(), reg.into()]);
                Operand::at(at, place.offset as i64)
            }
        }
    }

    /// Reads a slot; the same in all lanes.
    fn read_number(&mut self, channel: Value, at: Position) -> Reg {
        let at = self.number_at(channel, at);
        let number = self.emit.def(Class::B32, P::LdSharedB32, [at]);
        let first = [number.into(), Operand::Imm(0), Operand::Imm(31), Operand::Imm(0xffff_ffff)];
        self.emit.def(Class::B32, P::ShflSyncIdxB32, first)
    }

    /// Emits what an operation on a ring of tile numbers does before it arrives.
    pub(super) fn number_before(&mut self, op: ChannelOp, ring: usize) -> Result<(), Reported> {
        let Some(i) = self.draws_of(ring) else { return Ok(()) };
        let (Draws { next, end, .. }, own) = (self.draws[i], self.rings[ring].clone());
        match op {
            ChannelOp::Publish => {
                let Some(counter) = self.pointers[next.counter] else {
                    return Err(self.unsupported_at(self.k.values[next.counter].span, "a counter without an address"));
                };
                let last = self.int_op(Op::Sub, end, Int::constant(1)).expect("the end of a loop fits its index");
                let last = self.as32(last);
                let guard = (own.fill.stored > 1).then(|| {
                    let tid = self.tid();
                    let reg = self.emit.pure(Class::Pred, P::SetpEqS32, [tid.into(), Operand::Imm(0)]);
                    Guard { reg, negated: false }
                });
                let number = self.emit.mutable(Class::B32);
                if guard.is_some() {
                    self.emit.push(P::MovB32, [number.into(), Operand::Imm(0)]);
                }
                self.emit.push_if(guard, P::AtomGlobalIncU32, [number.into(), Operand::at(counter, 0), last]);
                let at = self.number_at(next.channel, own.put);
                self.emit.push_if(guard, P::StSharedB32, [at, number.into()]);
                self.draws[i].tile_number = Some(number);
            }
            ChannelOp::Release => {
                self.draws[i].tile_number = Some(self.read_number(next.channel, own.get));
                self.rings[ring].read = true;
            }
            ChannelOp::Acquire | ChannelOp::Wait => {}
        }
        Ok(())
    }

    /// Emits what it does after it arrived: the other threads of the role wait for the number.
    pub(super) fn number_behind(&mut self, op: ChannelOp, ring: usize) {
        let Some(i) = self.draws_of(ring).filter(|_| op == ChannelOp::Publish) else { return };
        let own: Ring = self.rings[ring].clone();
        if own.fill.stored == 1 {
            return;
        }
        // `full` completes the phase after the one that freed the slot.
        let turn = own.known_turn(own.put_turn);
        let parity = self.emit.def(Class::B32, P::XorB32, [turn.parity.into(), Operand::Imm(1)]);
        self.wait_for(Operand::at(turn.barrier, 0), parity, "wait_number");
        self.draws[i].tile_number = Some(self.read_number(self.draws[i].next.channel, own.put));
    }
}
