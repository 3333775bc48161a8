//! Prefetches of a producer's first loads, while the previous grids still run (programmatic dependent launch).
//!
//! Memory that those grids write must not be read yet. But it may be prefetched into the second-level cache (`cp.async.bulk.prefetch.tensor`), because later writes go through
//! that cache. So a role whose one lane issues TMA loads runs the statements of its first tile twice: in front of the wait it prefetches the loads of
//! the first steps of each loop, and after the wait it executes them.
//!
//! ```text
//! if the first tile { for k in begin..min(end, begin + 8 * 64) step 64 { copy W[k.., n..] -> the second-level cache } }
//! griddepcontrol.wait
//! for k in begin..end step 64 { copy W[k.., n..] -> fill.w }
//! ```
//!
//! If the role loads constant tensors, it fills slots with them, and prefetches what else these steps load ([`super::early_loads`]).
//!
//! Loops of many steps have no prefetch: TMA would spend as much time on it as it saves. Loads that depend on memory are not prefetched, nor are multicast loads and im2col loads.

use super::ranged_ints::Int;
use super::rings::Ring;
use super::state::Lower;
use crate::inst::{Class, Guard, Label, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ChannelOp, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::padded::im2col;

/// A loop is prefetched if it has at most this many times the steps that are prefetched.
const SHORT: i64 = 4;

/// A role's prefetch code under construction.
pub(super) struct Prefetch {
    /// Predicate: the prefetches have been issued before.
    again: Reg,
    /// The label after the prefetches.
    done: Label,
    /// The rings' state in front of the prefetches, restored afterwards.
    rings: Vec<Ring>,
}

impl Lower<'_> {
    /// Lets a role prefetch its first loads before it waits for the previous grids, if the schedule says so. One lane
    /// must run the role, and places and bounds must be computed from sizes: memory must not be read in front of the
    /// wait.
    pub(super) fn prefetches_first(&mut self, role: Stmt) {
        (self.prefetched, self.early) = (None, None);
        if self.follows && self.steps_ahead().is_some() && self.is_elected(role) && self.is_made_of_sizes(role) {
            let asked = self.emit.mutable(Class::B32);
            self.emit.push(P::MovB32, [asked.into(), Operand::Imm(0)]);
            self.prefetched = Some(asked);
            self.early = self.early_loads(role);
        }
    }

    /// Whether all names, bounds, conditions and places of a role read no memory.
    fn is_made_of_sizes(&self, role: Stmt) -> bool {
        let StmtData::Role { body, .. } = self.k.stmts[role] else { unreachable!("a role asks") };
        let mut all = true;
        self.k.walk(body, &mut |k, _, s| {
            all &= match k.stmts[s] {
                StmtData::Let { init, .. } => self.reads_no_memory(init),
                StmtData::For { start, end, step, cond, .. } => {
                    [start, end, step].into_iter().chain(cond).all(|e| self.reads_no_memory(e))
                }
                StmtData::If { cond, .. } => self.reads_no_memory(cond),
                StmtData::Copy { src, dst, .. } => self.reads_no_memory_in(src) && self.reads_no_memory_in(dst),
                _ => true,
            };
        });
        all
    }

    /// Begins the prefetch code, which runs once in a role. Statements are not executed until [`Self::end_prefetch`].
    pub(super) fn begin_prefetch(&mut self) -> Option<Prefetch> {
        let (asked, steps) = (self.prefetched?, self.steps_ahead().filter(|&steps| steps > 0)?);
        let steps = self.early_steps(steps);
        self.emit.comment(match self.early {
            Some(_) => "constant tensors are loaded while the launches in front of this one run",
            None => "the second-level cache is asked for what is loaded first",
        });
        let again = self.emit.def(Class::Pred, P::SetpNeS32, [asked.into(), Operand::Imm(0)]);
        let done = self.emit.label("asked");
        self.emit.push_frame();
        self.emit.push(P::MovB32, [asked.into(), Operand::Imm(1)]);
        self.prefetch_step = Some(steps);
        let rings = self.rings.clone();
        if self.early.is_some() {
            self.early_positions();
        }
        Some(Prefetch { again, done, rings })
    }

    /// Ends the prefetch code.
    pub(super) fn end_prefetch(&mut self, Prefetch { again, done, rings }: Prefetch) {
        self.prefetch_step = None;
        self.rings = rings;
        let items = self.emit.pop_frame();
        self.emit.push_if(Some(Guard { reg: again, negated: false }), P::Bra, [done.into()]);
        self.emit.items(items);
        self.emit.item(Item::Label(done));
    }

    /// Whether the prefetch code descends into a statement, or needs the names that it defines. TMA loads become
    /// prefetches here.
    pub(super) fn is_prefetched(&mut self, s: Stmt) -> Result<bool, Reported> {
        match self.k.stmts[s] {
            StmtData::Let { init, .. } => Ok(self.reads_no_memory(init)),
            StmtData::For { start, end, cond: None, next: None, .. } => {
                Ok(self.reads_no_memory(start) && self.reads_no_memory(end))
            }
            StmtData::If { cond, .. } => Ok(self.reads_no_memory(cond)),
            StmtData::Copy { src, .. } if self.is_early(s) => {
                self.load_tensor(s, src)?;
                Ok(false)
            }
            StmtData::Channel { op: ChannelOp::Publish, ref channels, .. } if self.early.is_some() => {
                self.end_early_step(s, &channels.clone());
                Ok(false)
            }
            StmtData::Copy { src, ref attrs, .. } if attrs.is_tensor() && self.reads_no_memory_in(src) => {
                self.prefetch_boxes(s, src)?;
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// The end of a loop in the prefetch code: the first steps only. A loop of more than [`SHORT`] times as many steps
    /// is not prefetched, because TMA would spend as much time on it as it saves.
    pub(super) fn end_ahead(&mut self, (start, end): (Int, Int), step: i64) -> Int {
        let Some(steps) = self.prefetch_step else { return end };
        if self.early.is_some() {
            let some = step.checked_mul(steps).and_then(|some| self.int_op(Op::Add, start, Int::constant(some)));
            return some.and_then(|some| self.int_op(Op::Min, end, some)).unwrap_or(start);
        }
        self.first_steps((start, end), step, steps).unwrap_or(start)
    }

    /// `min(end, start + some, start + min(max(start + 4 * some + step - end, 0), step) * steps)`; `None`: a term may
    /// overflow.
    fn first_steps(&mut self, (start, end): (Int, Int), step: i64, steps: i64) -> Option<Int> {
        let some = step.checked_mul(steps)?;
        let longest = some.checked_mul(SHORT)?.checked_add(step)?;
        let first = self.int_op(Op::Add, start, Int::constant(some))?;
        let short = self.int_op(Op::Add, start, Int::constant(longest))?;
        let short = self.int_op(Op::Sub, short, end)?;
        let short = self.int_op(Op::Max, short, Int::constant(0))?;
        let short = self.int_op(Op::Min, short, Int::constant(step))?;
        let short = self.int_op(Op::Mul, short, Int::constant(steps))?;
        let none = self.int_op(Op::Add, start, short)?;
        let end = self.int_op(Op::Min, end, first)?;
        self.int_op(Op::Min, end, none)
    }

    /// Whether the starts of a window read no memory.
    fn reads_no_memory_in(&self, window: Expr) -> bool {
        self.k.children(window).into_iter().all(|e| self.reads_no_memory(e))
    }

    /// Prefetches the boxes of a TMA load. Multicast loads and im2col loads are not prefetched.
    fn prefetch_boxes(&mut self, s: Stmt, src: Expr) -> Result<(), Reported> {
        let (from, _, map) = self.mapped_sides(s, src)?;
        if self.multicasts(s).is_some() || im2col(self.k, from.base).is_ok() {
            return Ok(());
        }
        let op = [
            P::CpAsyncBulkPrefetchTensor1d,
            P::CpAsyncBulkPrefetchTensor2d,
            P::CpAsyncBulkPrefetchTensor3d,
            P::CpAsyncBulkPrefetchTensor4d,
            P::CpAsyncBulkPrefetchTensor5d,
        ][map.rank() - 1];
        let starts = self.tensor_starts(&from)?;
        let end = self.own_end_of(&map, &from)?;
        for (start, _) in &map.boxes.places {
            let tensor = self.tensor_box(&map, &from, (&starts, end), start);
            self.emit.push(op, [tensor]);
        }
        Ok(())
    }
}
