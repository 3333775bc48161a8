//! `wgmma` (PTX 9.7.15): asynchronous products of four warps.
//!
//! Each warp multiplies sixteen of the 64 rows, at issue or at the wait ([`Landing`](super::asynchronous::Landing)).
//! From issue to wait, nothing may access the registers of the accumulator and of A, and the shared memory that is read
//! must not be written. Ordinary accesses to such registers need a `wgmma.fence` before the next product that names
//! them, except a product of the same shape on the same accumulator. The four warps must execute the same products with
//! the same operands.

pub(super) mod operand;

use super::warp::Warp;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::products::{Common, IN_USE, Job, PendingProduct, READ, TOUCHED};
use crate::numerics::mma::wide::{negated, rows_of_registers};
use crate::program::types::R;
use crate::program::wgmma::{Matrix, Wgmma};
use crate::race::{Issuer, Known, Slot, Strength, quarter};
use crate::report::{Cause, Report, ReportKind};
use operand::Layout;
use std::sync::Arc;

/// How many instructions one warp may be ahead of the others of its group.
const MAX_AHEAD: usize = 1 << 16;
/// Most products of a warp in flight.
const MAX_FLYING: usize = 1 << 12;

impl Cta<'_> {
    /// The warpgroup of `w`, which must have four warps.
    fn warpgroup(&self, w: &Warp) -> Result<usize, Box<Fail>> {
        let local = w.index % self.cta_warps;
        if local / 4 * 4 + 4 > self.cta_warps {
            let message = format!("warp {local} belongs to no group of four warps: the block has {}", self.cta_warps);
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        Ok(w.index - local % 4)
    }

    /// Checks that the four warps of a group execute the same instructions.
    fn in_step(&mut self, w: &mut Warp, pc: usize, operands: [u64; 3]) -> Result<usize, Box<Fail>> {
        let first = self.warpgroup(w)?;
        let mine = Common { pc: pc as u32, operands };
        let number = first / self.cta_warps * self.cta_warps.div_ceil(4) + first % self.cta_warps / 4;
        let group = &mut self.warpgroups[number];
        let at = w.products.steps - group.done;
        if at >= MAX_AHEAD {
            let message = format!("this warp is {MAX_AHEAD} instructions ahead of another one of its group of four");
            return Err(Fail::new(ReportKind::Divergence, message).because(Cause::Warpgroup));
        }
        w.products.steps += 1;
        group.each[w.index - first] += 1;
        match group.steps.get(at) {
            None => group.steps.push_back(mine),
            Some(theirs) if *theirs == mine => {}
            Some(theirs) => {
                let what = if theirs.pc == mine.pc { "with other operands" } else { "another instruction" };
                let line = self.entry.code.get(theirs.pc as usize).map_or(0, |inst| inst.line);
                let message = format!(
                    "the four warps of a group execute these instructions alike; another warp has executed {what} (PTX line {line})"
                );
                return Err(Fail::new(ReportKind::Divergence, message).because(Cause::Warpgroup));
            }
        }
        let least = group.each.iter().min().copied().unwrap_or(0);
        while group.done < least {
            group.steps.pop_front();
            group.done += 1;
        }
        Ok(first)
    }

    /// The warps of a group, if there are four.
    fn four<'w>(&self, number: usize, warps: &'w [Warp]) -> Option<&'w [Warp]> {
        let per = self.cta_warps.div_ceil(4);
        let (rank, first) = (number / per, number % per * 4);
        let block = warps.get(rank * self.cta_warps..(rank + 1) * self.cta_warps)?;
        block.get(first..first + 4)
    }

    /// At the end of the block: checks that the warps of a group have executed the same number of instructions.
    pub(crate) fn end_steps(&self, warps: &[Warp]) -> Option<Box<Report>> {
        for (i, group) in self.warpgroups.iter().enumerate() {
            for w in self.four(i, warps).unwrap_or_default() {
                if let Some(missed) = group.steps.get(w.products.steps.saturating_sub(group.done)) {
                    let message = format!(
                        "warp {} ends without having executed this instruction, as the others of its group of four have",
                        w.index % self.cta_warps
                    );
                    let fail = Fail::new(ReportKind::Divergence, message).because(Cause::Warpgroup);
                    return Some(self.report(w.index, missed.pc as usize, u32::MAX, *fail));
                }
            }
        }
        None
    }

    /// An ordinary instruction accesses these slots.
    pub(crate) fn touch(&mut self, w: &mut Warp, slots: &[R]) -> Step {
        let n = w.w.len();
        for r in slots {
            let state = w.products.get(*r);
            if state & (IN_USE | READ) != 0 {
                let flight = w.products.flying.iter().find(|f| f.op.d.contains(r) || state & IN_USE == 0);
                let line = flight.map_or(0, |f| self.entry.code[f.pc as usize].line);
                let what = if state & IN_USE != 0 { "in the accumulator" } else { "in the matrix A" };
                let message = format!(
                    "a register that is {what} of the product at PTX line {line}, for which no `wgmma.wait_group` has waited yet"
                );
                return Err(Fail::new(ReportKind::Race, message).because(Cause::ProductPending));
            }
            if state & TOUCHED == 0 {
                w.products.set(*r, n, TOUCHED);
                w.products.touched.push(*r);
            }
        }
        Ok(())
    }

    /// `wgmma.fence`.
    pub(crate) fn product_fence(&mut self, w: &mut Warp, pc: usize) -> Step {
        self.in_step(w, pc, [0; 3])?;
        w.products.fences += 1;
        for r in std::mem::take(&mut w.products.touched) {
            w.products.state[r as usize] &= !TOUCHED;
        }
        Ok(())
    }

    /// `wgmma.commit_group`.
    pub(crate) fn product_commit(&mut self, w: &mut Warp, pc: usize) -> Step {
        self.in_step(w, pc, [0; 3])?;
        w.products.groups += 1;
        Ok(())
    }

    /// `wgmma.wait_group`.
    pub(crate) fn product_wait(&mut self, w: &mut Warp, n: u32, pc: usize) -> Step {
        let first = self.in_step(w, pc, [0; 3])?;
        if let Some(flight) = w.products.flying.back()
            && flight.group == w.products.groups
        {
            let line = self.entry.code[flight.pc as usize].line;
            let message = format!("a wait for products while the one at PTX line {line} is in no committed group");
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        let done = w.products.groups.saturating_sub(n);
        let mut last = None;
        while w.products.flying.front().is_some_and(|f| f.group < done) {
            let Some(mut flight) = w.products.flying.pop_front() else { break };
            if let Some(job) = flight.job.take() {
                self.compute(w, &flight.op, &job)?;
            }
            last = Some(flight.clock);
        }
        if let Some(clock) = last {
            let agent = self.races.slot(Slot::Products(first), w.index);
            let mut known = Known::default();
            self.races.async_done(agent, clock, quarter(w.index - first), &mut known);
            self.races.clocks.acquire(w.index, w.live, w.live, &known);
            let n = w.w.len();
            w.products.mark(n);
        }
        Ok(())
    }

    /// A 64-bit operand that must be equal in all lanes.
    fn shared_operand(w: &Warp, r: R, what: &str) -> Result<u64, Box<Fail>> {
        let slot = &w.l[r as usize];
        if slot.ok != u32::MAX {
            let lane = (!slot.ok).trailing_zeros() as usize;
            return Err(Fail::new(ReportKind::Undefined, format!("{what} is undefined")).at(lane));
        }
        match (1..32).find(|lane| slot.v[*lane] != slot.v[0]) {
            Some(lane) => {
                let message = format!("{what} is {:#x} in lane 0 and {:#x} in lane {lane}", slot.v[0], slot.v[lane]);
                Err(Fail::new(ReportKind::Divergence, message).because(Cause::LanesDiffer).at(lane))
            }
            None => Ok(slot.v[0]),
        }
    }

    /// `wgmma.mma_async`.
    pub(crate) fn product(&mut self, w: &mut Warp, op: &Arc<Wgmma>, pc: usize) -> Step {
        let (p, flip) = op.add;
        let add = w.p[p as usize];
        if add.ok != u32::MAX || (add.v != 0 && add.v != u32::MAX) {
            let message = "the predicate that says whether to add differs among lanes, or is undefined";
            return Err(Fail::new(ReportKind::Divergence, message).because(Cause::LanesDiffer));
        }
        let add = (add.v != 0) != flip;
        let describe = |matrix: &Matrix, what: &str| match matrix {
            Matrix::Registers(_) => Ok(0),
            Matrix::Shared { descriptor, .. } => Self::shared_operand(w, *descriptor, what),
        };
        let [a, b] = [describe(&op.a, "the descriptor of A")?, describe(&op.b, "the descriptor of B")?];
        let first = self.in_step(w, pc, [a, b, u64::from(add)])?;
        self.check_registers(w, op)?;
        let base = self.base_of(w.index);
        let layout = |matrix: &Matrix, descriptor: u64| match matrix {
            Matrix::Shared { across, .. } => Layout::new(descriptor, *across, base).map(Some),
            Matrix::Registers(_) => Ok(None),
        };
        let (a, b) = (layout(&op.a, a)?, layout(&op.b, b)?);
        let Some(b) = b else { return Err(Fail::new(ReportKind::Invalid, "B is in registers")) };
        if w.products.flying.len() >= MAX_FLYING {
            let message = format!("{MAX_FLYING} products of a warp are on their way, and nobody has waited");
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        w.products.issued += 1;
        let clock = w.products.issued;
        let agent = self.races.slot(Slot::Products(first), w.index);
        // The operands may be read at any time from now on.
        let who = Issuer { warp: w.index, lane: 0, pc: pc as u32, seq: 0, strength: Strength::Weak, copy: true };
        let reader = (agent, clock, quarter(w.index - first));
        let rows = 16 * (w.index - first);
        for (layout, from, n) in a.iter().map(|a| (a, rows, 16)).chain([(&b, 0, op.form.n)]) {
            layout.units(from, n, op.form.k(), |at| {
                self.check_room(0, at, 16)?;
                self.races.async_read(who, reader, at as usize, 16).map_err(|e| self.proxy_error(e, 0, false))
            })?;
        }
        let a = match (op.a, a) {
            (Matrix::Registers(a), _) => {
                let slots = a.map(|r| w.w[r as usize]);
                if slots.iter().any(|s| s.ok != u32::MAX) {
                    return Err(Fail::new(ReportKind::Undefined, "a register of A is undefined"));
                }
                Ok(Box::new(rows_of_registers(&slots.map(|s| s.v))))
            }
            (_, Some(layout)) => Err(layout.from(rows)),
            (_, None) => return Err(Fail::new(ReportKind::Invalid, "A is nowhere")),
        };
        let job = Job { a, b, add };
        let (group, fences) = (w.products.groups, w.products.fences);
        let late = self.landing.reads_late();
        if !late {
            self.compute(w, op, &job)?;
        }
        let flight =
            PendingProduct { group, pc: pc as u32, clock, op: Arc::clone(op), fences, job: late.then_some(job) };
        w.products.flying.push_back(flight);
        let n = w.w.len();
        op.d.iter().for_each(|r| w.products.set(*r, n, IN_USE));
        if let Matrix::Registers(a) = op.a {
            a.iter().for_each(|r| w.products.set(*r, n, READ));
        }
        Ok(())
    }

    /// Checks that a product may use its registers now.
    fn check_registers(&self, w: &Warp, op: &Wgmma) -> Step {
        if w.products.fences == 0 {
            let message = "no `wgmma.fence` comes before the first wgmma of this warp";
            return Err(Fail::new(ReportKind::Race, message).because(Cause::ProductFence));
        }
        let a: &[R] = if let Matrix::Registers(a) = &op.a { a } else { &[] };
        for r in op.d.iter().chain(a) {
            if w.products.get(*r) & TOUCHED != 0 {
                let message = "a register of this product was used by other instructions since the last `wgmma.fence`: one must come between";
                return Err(Fail::new(ReportKind::Race, message).because(Cause::ProductFence));
            }
        }
        let clash = |f: &&PendingProduct| {
            let other_shape = f.op.form != op.form && f.fences == w.products.fences;
            let reads = |a: Matrix, d: &[R]| matches!(a, Matrix::Registers(a) if a.iter().any(|r| d.contains(r)));
            reads(op.a, &f.op.d) || reads(f.op.a, &op.d) || (other_shape && op.d.iter().any(|r| f.op.d.contains(r)))
        };
        if let Some(flight) = w.products.flying.iter().find(clash) {
            let line = self.entry.code[flight.pc as usize].line;
            let message = format!(
                "this product shares registers with the one at PTX line {line}, for which no `wgmma.wait_group` has waited, and \
                 which is not of the same shape on the same accumulator"
            );
            return Err(Fail::new(ReportKind::Race, message).because(Cause::ProductPending));
        }
        Ok(())
    }

    /// Multiplies the current operands.
    fn compute(&mut self, w: &mut Warp, op: &Wgmma, job: &Job) -> Step {
        let mut a = match &job.a {
            Ok(rows) => **rows,
            Err(layout) => {
                let mut rows = [[0; 8]; 16];
                layout.gather(&self.shared, op.form.a, &mut rows)?;
                rows
            }
        };
        let mut b = vec![[0; 8]; op.form.n];
        job.b.gather(&self.shared, op.form.b, &mut b)?;
        if op.negate[0] {
            a.iter_mut().for_each(|row| *row = negated(op.form.a, row));
        }
        if op.negate[1] {
            b.iter_mut().for_each(|row| *row = negated(op.form.b, row));
        }
        let mut d: Vec<[u32; 32]> = op.d.iter().map(|r| w.w[*r as usize].v).collect();
        // An undefined accumulator makes the sum undefined.
        let ok = if job.add { op.d.iter().fold(u32::MAX, |ok, r| ok & w.w[*r as usize].ok) } else { u32::MAX };
        op.form
            .run(self.generation, &a, &b, job.add, &mut d)
            .map_err(|e| Fail::new(ReportKind::Invalid, format!("{e} ({:?})", self.generation)))?;
        let ok = if ok == u32::MAX { ok } else { 0 };
        for (r, v) in op.d.iter().zip(&d) {
            w.put32(*r, u32::MAX, v, ok);
        }
        Ok(())
    }

    /// Checks that an exiting warp has awaited its products.
    pub(crate) fn products_done(&self, w: &Warp) -> Step {
        match w.products.flying.front() {
            None => Ok(()),
            Some(flight) => {
                let line = self.entry.code[flight.pc as usize].line;
                let why = match w.products.flying.iter().all(|f| f.group < w.products.groups) {
                    true => "no `wgmma.wait_group` waits for it",
                    false => "it is in no committed group, or nobody waits for that",
                };
                let message = format!("the warp ends while the product at PTX line {line} is on its way: {why}");
                Err(Fail::new(ReportKind::Invalid, message))
            }
        }
    }
}
