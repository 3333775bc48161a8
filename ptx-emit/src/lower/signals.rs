//! Signals between blocks: words of global memory by which a block publishes what it has written.
//!
//! To set a signal, the threads synchronise at a barrier, and one of them stores a 1 with `.release`. The barrier
//! orders the earlier writes of the other threads (PTX ISA 8.7: causality order is transitive). To await a signal, one
//! thread polls with `.acquire` until it reads the 1, stores 0, and synchronises with the others at a barrier. A signal
//! is awaited once, so no other thread polls when it is cleared. The next launch begins after the end of this one. In a
//! loop that is `spread`, the threads poll the signals at the same time, one each: a poll takes as long as a read of
//! global memory.

use super::loops::{Trips, Width};
use super::ranged_ints::{Int, Repr};
use super::state::Lower;
use super::windows::LoopState;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{SignalOp, StmtData};
use tilec_ir::ops::Op;

/// Bytes of a signal.
const BYTES: i64 = 4;

impl Lower<'_> {
    pub(super) fn signal(&mut self, s: Stmt, op: SignalOp, signals: Value, index: Expr) -> Result<(), Reported> {
        if let Some(place) = self.cluster_place(signals) {
            return self.signal_in_cluster(op, (signals, place), index);
        }
        let at = self.signal_address(s, signals, index)?;
        let tid = self.tid();
        let first = self.emit.pure(Class::Pred, P::SetpEqS32, [tid.into(), Operand::Imm(0)]);
        let guard = Some(Guard { reg: first, negated: false });
        match op {
            SignalOp::Raise => {
                self.barrier(s)?;
                let up = self.emit.pure(Class::B32, P::MovB32, [Operand::Imm(1)]);
                self.emit.push_if(guard, P::StReleaseGpuGlobalU32, [Operand::at(at, 0), up.into()]);
            }
            SignalOp::Await => {
                let found = self.emit.label("signalled");
                let others = Some(Guard { reg: first, negated: true });
                self.emit.push_if(others, P::Bra, [found.into()]);
                self.poll_signal(at);
                self.emit.item(Item::Label(found));
                self.barrier(s)?;
            }
        }
        Ok(())
    }

    fn signal_address(&mut self, s: Stmt, signals: Value, index: Expr) -> Result<Reg, Reported> {
        let Some(base) = self.pointers[signals] else {
            return Err(self.unsupported(index, "signals without an address"));
        };
        let index = self.index(index)?;
        let Some(offset) = self.int_op(Op::Mul, index, Int::constant(BYTES)) else {
            return Err(self.too_many_signals(s));
        };
        let offset = self.as64(offset);
        Ok(self.emit.pure(Class::B64, P::AddS64, [base.into(), offset]))
    }

    fn too_many_signals(&mut self, s: Stmt) -> Reported {
        let d = Diagnostic::error(
            codes::INDEX_OVERFLOW,
            self.k.stmt_spans[s],
            "a signal whose number may be beyond 31 bits",
        );
        self.sink.report(d.with_note("bound it, `min(NUMBER, 2147483647)` say: no tensor of signals is that long"))
    }

    /// One thread polls until the signal is set, and clears it.
    fn poll_signal(&mut self, at: Reg) {
        let again = self.emit.label("await_signal");
        self.emit.item(Item::Label(again));
        let up = self.emit.def(Class::B32, P::LdAcquireGpuGlobalU32, [Operand::at(at, 0)]);
        let down = self.emit.def(Class::Pred, P::SetpEqS32, [up.into(), Operand::Imm(0)]);
        self.emit.push_if(Some(Guard { reg: down, negated: false }), P::Bra, [again.into()]);
        let zero = self.emit.def(Class::B32, P::MovB32, [Operand::Imm(0)]);
        self.emit.push(P::StRelaxedGpuGlobalU32, [Operand::at(at, 0), zero.into()]);
    }

    /// A loop that is `spread`: thread `i` awaits the signal of iteration `i`, and every further one at a distance of
    /// the thread count.
    pub(super) fn await_all(
        &mut self,
        s: Stmt,
        var: Value,
        (start, end, step): (Expr, Expr, Expr),
        body: Block,
    ) -> Result<(), Reported> {
        let stmt = self.k.blocks[body][0];
        let StmtData::Signal { op: SignalOp::Await, signals, index } = self.k.stmts[stmt] else {
            panic!("bug: a loop is spread that does other than await signals")
        };
        let beyond = |lower: &mut Self| lower.too_many_signals(s);
        let (start, end, by) = (self.index(start)?, self.index(end)?, self.index(step)?);
        let Some(by) = by.as_const().filter(|x| *x > 0) else {
            return Err(self.unsupported(step, "a loop whose step is not a positive literal"));
        };
        let threads = i64::from(self.part.map_or(self.block_threads, |part| part.threads));
        let tid = Int { repr: Repr::R32(self.tid()), lo: 0, hi: i128::from(threads) - 1 };
        let own = self.int_op(Op::Mul, tid, Int::constant(by)).and_then(|x| self.int_op(Op::Add, start, x));
        let every = by.checked_mul(threads);
        let (Some(own), Some(every)) = (own, every) else { return Err(beyond(self)) };
        let narrow =
            |x: Int, more: i64| x.lo >= i128::from(i32::MIN) && x.hi + i128::from(more) <= i128::from(i32::MAX);
        if !narrow(own, 0) || !narrow(end, every) {
            return Err(beyond(self));
        }
        let skip = self.emit.label("signalled");
        let head = self.emit.label("loop_signals");
        let outer = self.emit.depth();
        self.emit.push_frame();
        let counter = self.emit.loop_carried(Class::B32, outer + 2);
        let first = self.as32(own);
        self.emit.push(P::MovB32, [counter.into(), first]);
        self.emit.push_frame();
        let depth = self.emit.depth();
        self.loops.push(LoopState { var, depth, start: own, step: every, steady: true, induced: Vec::new() });
        let at = Int { repr: Repr::R32(counter), lo: start.lo, hi: (end.hi - 1).max(start.lo) };
        self.ints[var] = Some(at);
        let address = self.signal_address(s, signals, index);
        self.mark(stmt);
        self.ints[var] = None;
        let state = self.loops.pop();
        self.poll_signal(address?);
        let turns = Trips {
            counter,
            index: at,
            width: Width::Narrow,
            start: own,
            end,
            every,
            head,
            skip,
            uniform: false,
            while_: None,
            next_tile: None,
        };
        self.close_loop(state, turns);
        self.barrier(s)
    }
}
