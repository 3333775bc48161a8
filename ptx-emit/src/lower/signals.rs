//! Signals between blocks: words of global memory through which a block hands on what it has written.
//!
//! Who raises a signal has its threads meet, and one of them stores a 1 with `.release`: what the others have written comes before that, for
//! the barrier orders it (PTX ISA 8.7: causality order is transitive). Who awaits it has one thread look with `.acquire` until it finds the 1,
//! put back the 0, and meet the others. A signal is awaited once, so nobody else looks when it goes down; the next launch begins
//! behind the end of this one.

use super::Lower;
use crate::inst::{Class, Guard, Operand};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::SignalOp;
use tilec_ir::ops::Op;

/// Bytes of a signal.
const BYTES: i64 = 4;

impl Lower<'_> {
    pub(super) fn signal(&mut self, s: Stmt, op: SignalOp, signals: Value, index: Expr) -> Result<(), Reported> {
        let Some(base) = self.pointers[signals] else {
            return Err(self.unsupported(index, "signals without an address"));
        };
        let index = self.index(index)?;
        let Some(offset) = self.int_op(Op::Mul, index, super::index::Int::constant(BYTES)) else {
            return Err(self.unsupported_at(self.k.stmt_spans[s], "so many signals"));
        };
        let offset = self.as64(offset);
        let at = self.emit.pure(Class::B64, P::AddS64, vec![base.into(), offset]);
        let tid = self.tid();
        let first = self.emit.pure(Class::Pred, P::SetpEqS32, vec![tid.into(), Operand::Imm(0)]);
        let guard = Some(Guard { reg: first, negated: false });
        match op {
            SignalOp::Raise => {
                self.barrier(s)?;
                let up = self.emit.pure(Class::B32, P::MovB32, vec![Operand::Imm(1)]);
                self.emit.push_if(guard, P::StReleaseGpuGlobalU32, vec![Operand::at(at, 0), up.into()]);
            }
            SignalOp::Await => {
                let found = self.emit.label("signalled");
                let again = self.emit.label("await_signal");
                let others = Some(Guard { reg: first, negated: true });
                self.emit.push_if(others, P::Bra, vec![found.into()]);
                self.emit.item(Item::Label(again));
                let up = self.emit.def(Class::B32, P::LdAcquireGpuGlobalU32, vec![Operand::at(at, 0)]);
                let down = self.emit.def(Class::Pred, P::SetpEqS32, vec![up.into(), Operand::Imm(0)]);
                self.emit.push_if(Some(Guard { reg: down, negated: false }), P::Bra, vec![again.into()]);
                let zero = self.emit.def(Class::B32, P::MovB32, vec![Operand::Imm(0)]);
                self.emit.push(P::StRelaxedGpuGlobalU32, vec![Operand::at(at, 0), zero.into()]);
                self.emit.item(Item::Label(found));
                self.barrier(s)?;
            }
        }
        Ok(())
    }
}
