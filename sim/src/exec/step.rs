//! The inner loop: one fragment of a warp, instruction by instruction.
//!
//! Arithmetic computes all 32 lanes and writes those that are active. An instruction that needs a whole warp, or lanes
//! of other fragments, stops the fragment: [`super::sync`] decides when it continues.

use super::access::for_lanes;
use super::compute::compute;
use super::rare_ops::{compute_rarely, join};
use super::warp::{Frag, Wait, Warp};
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::outcome::Next;
use crate::program::Op;
use crate::program::types::{LOCAL_WINDOW, PARAM_WINDOW, R, SHARED_WINDOW, Space, WINDOW_BYTES};
use crate::report::{Cause, Report, ReportKind};

impl Cta<'_> {
    /// Runs fragment `at` until it stops or has executed `limit` instructions; returns the number of executed ones.
    pub(crate) fn fragment(&mut self, warp: &mut Warp, at: usize, limit: u32) -> Result<u32, Box<Report>> {
        self.rank = warp.index / self.cta_warps;
        let entry = self.entry;
        let code = entry.code.as_slice();
        let mut pc = warp.frags[at].pc as usize;
        let mask = warp.frags[at].mask;
        let mut used = 0;
        while used < limit {
            let Some(inst) = code.get(pc) else {
                let fail = Fail::new(ReportKind::Invalid, "execution ran past the end of the kernel");
                return Err(self.report(warp.index, pc, mask, *fail));
            };
            used += 1;
            if self.fuel == 0 {
                let fail = Fail::new(ReportKind::Fuel, "the block has used up its instructions: does it end at all?");
                return Err(self.report(warp.index, pc, mask, *fail));
            }
            self.fuel -= 1;
            let guard = &warp.p[inst.guard as usize];
            if guard.ok & mask != mask {
                let lane = (mask & !guard.ok).trailing_zeros() as usize;
                let fail = Fail::new(ReportKind::Undefined, "the predicate of this instruction is undefined").at(lane);
                return Err(self.report(warp.index, pc, mask, *self.with_origin(warp, pc, mask, fail)));
            }
            let active = mask & (guard.v ^ inst.flip);
            let counts = &mut self.counts[pc];
            counts.executed += 1;
            counts.lanes += u64::from(active.count_ones());
            if let Op::Bra { target, uni } = inst.op {
                if active == 0 {
                    pc += 1;
                } else if active == mask {
                    pc = target as usize;
                } else if uni {
                    let fail = Fail::new(ReportKind::Divergence, "lanes differ at a branch marked uniform")
                        .because(Cause::UniformBranch);
                    return Err(self.report(warp.index, pc, mask & !active, *fail));
                } else {
                    warp.frags[at] = Frag { pc: pc as u32 + 1, mask: mask & !active, wait: Wait::Ready };
                    warp.frags.push(Frag { pc: target, mask: active, wait: Wait::Ready });
                    return Ok(used);
                }
                continue;
            }
            warp.frags[at].pc = pc as u32;
            if let Some(touched) = entry.touches.get(pc)
                && !touched.is_empty()
                && active != 0
                && !matches!(inst.op, Op::Wgmma(_))
                && let Err(fail) = self.touch(warp, touched)
            {
                return Err(self.report(warp.index, pc, active, *fail));
            }
            match self.execute(warp, at, &inst.op, active, pc) {
                Ok(Next::Advance) => pc += 1,
                Ok(Next::Stop) => return Ok(used),
                Err(fail) => {
                    return Err(self.report(warp.index, pc, active, *self.with_origin(warp, pc, active, fail)));
                }
            }
        }
        warp.frags[at].pc = pc as u32;
        Ok(used)
    }

    /// Executes one instruction other than a branch in the lanes of `m`.
    #[inline(always)]
    fn execute(&mut self, w: &mut Warp, at: usize, op: &Op, m: u32, pc: usize) -> Result<Next, Box<Fail>> {
        match *op {
            Op::Ld(ref access) => {
                self.load(w, access, m, pc)?;
                if access.order.waits && m != 0 {
                    return Ok(self.after_poll(w, at));
                }
            }
            Op::St(ref access) => {
                self.store(w, access, m, pc)?;
                if self.gives_way && m != 0 && access.order.is_signal() {
                    return Ok(self.signal(w, at));
                }
            }
            Op::Nop => {}
            Op::GridWait => self.wait_for_grids(w, m),
            _ if compute(w, op, m) => {}
            _ => return self.rare(w, at, op, m, pc),
        }
        Ok(Next::Advance)
    }

    /// Instructions that are neither frequent arithmetic nor plain memory accesses.
    #[inline(never)]
    fn rare(&mut self, w: &mut Warp, at: usize, op: &Op, m: u32, pc: usize) -> Result<Next, Box<Fail>> {
        match *op {
            Op::Joined { ref inner, d, all, with: (how, p, negate) } => {
                self.execute(w, at, inner, m, pc)?;
                join(w, (d, all), (how, p, negate), m);
            }
            Op::Atom(ref atom) => {
                self.atomic(w, atom, m, pc)?;
                if atom.order.waits && m != 0 {
                    return Ok(self.after_poll(w, at));
                }
                if self.gives_way && m != 0 && atom.order.is_signal() {
                    return Ok(self.signal(w, at));
                }
            }
            Op::CpAsync(ref copy) => self.copy_async(w, copy, m, pc)?,
            Op::CpCommit => {
                for_lanes!(lane in m => { w.copies.groups[lane] = w.copies.groups[lane].saturating_add(1); });
            }
            Op::CpWait(n) => self.copy_wait(w, n, m)?,
            Op::Bulk(ref copy) => self.bulk(w, copy, m, pc)?,
            Op::Remote(ref store) => self.remote(w, store, m, pc)?,
            Op::BulkCommit => Cta::bulk_commit(w, m),
            Op::BulkWait { n, read } => self.bulk_wait(w, n, read, m)?,
            Op::ProxyFence { init, global } => {
                if m != 0 && !global {
                    self.races.clocks.fence_proxy(w.index, m, w.live, init);
                }
            }
            Op::Mapa { d, a, rank, wide, generic } => self.mapa(w, (d, a, rank), (wide, generic), m)?,
            Op::CtaRank { d, a, wide, generic } => self.cta_rank(w, (d, a), (wide, generic), m)?,
            Op::MBar(ref op) => return self.mbarrier(w, at, op, m, pc),
            Op::PendingCount { d, state } => self.pending_counts(w, d, state, m)?,
            Op::Fence { scope, acquire, release } => {
                if m != 0 {
                    self.fence(w.index, m, w.live, (scope, acquire, release));
                }
            }
            Op::Clock { d, wide } => {
                let now = self.fuel.wrapping_neg();
                w.put_any(d, wide, m, &[now; 32], u32::MAX);
            }
            Op::IsSpace { space, p, a } => self.is_space(w, space, p, a, m),
            Op::BraIndexed { index, ref targets } => return branch_indexed(w, at, index, targets, m, pc),
            Op::Exit => return self.exit(w, at, m),
            Op::Discard { addr, area } => self.discard(w, addr, area, m, pc)?,
            Op::Assert(ref parts) => {
                if m != 0 {
                    return Err(self.failed_assertion(w, parts, m));
                }
            }
            Op::Trap => {
                if m != 0 {
                    return Err(Fail::new(ReportKind::Trap, "the kernel gave up"));
                }
            }
            _ if compute_rarely(w, op, m) => {}
            _ => return self.synchronising(w, at, op, m, pc),
        }
        Ok(Next::Advance)
    }

    /// `isspacep`.
    fn is_space(&self, w: &mut Warp, space: Space, p: R, a: R, m: u32) {
        let a = w.l[a as usize];
        let inside = |x: u64, start: u64| x.checked_sub(start).is_some_and(|o| o < WINDOW_BYTES);
        let test = |x: u64| match space {
            Space::Shared => inside(x, SHARED_WINDOW) && (x - SHARED_WINDOW) / self.stride == self.rank as u64,
            Space::Cluster => inside(x, SHARED_WINDOW),
            Space::Local => inside(x, LOCAL_WINDOW),
            Space::Param => inside(x, PARAM_WINDOW),
            Space::Const => self.device.find(x).is_some_and(|alloc| alloc.constant),
            Space::Global => [SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW].iter().all(|s| !inside(x, *s)),
        };
        let v = (0..32).fold(0, |v, i| v | u32::from(test(a.v[i])) << i);
        w.putp(p, m, v, a.ok);
    }

    /// The lanes of `m` end.
    fn exit(&mut self, w: &mut Warp, at: usize, m: u32) -> Result<Next, Box<Fail>> {
        if m == 0 {
            return Ok(Next::Advance);
        }
        if w.products.is_busy() {
            self.products_done(w)?;
        }
        self.alive[self.rank] -= m.count_ones();
        if self.ranks > 1 {
            self.block_ends(w, m)?;
        }
        self.races.clocks.exit(w.index, m);
        w.retire(at, m);
        Ok(Next::Stop)
    }
}

fn branch_indexed(w: &mut Warp, at: usize, index: R, targets: &[u32], m: u32, pc: usize) -> Result<Next, Box<Fail>> {
    let slot = w.w[index as usize];
    if slot.ok & m != m {
        return Err(Fail::new(ReportKind::Undefined, "the index of a branch is undefined"));
    }
    let rest = w.frags[at].mask & !m;
    w.frags.remove(at);
    for (i, target) in targets.iter().enumerate() {
        let lanes = (0..32).fold(0, |v, lane| v | u32::from(slot.v[lane] as usize == i) << lane) & m;
        if lanes != 0 {
            w.frags.push(Frag { pc: *target, mask: lanes, wait: Wait::Ready });
        }
    }
    if rest != 0 {
        w.frags.push(Frag { pc: pc as u32 + 1, mask: rest, wait: Wait::Ready });
    }
    let wild = (0..32).find(|lane| m >> lane & 1 != 0 && slot.v[*lane] as usize >= targets.len());
    match wild {
        Some(lane) => Err(Fail::new(ReportKind::Invalid, "the index of a branch has no target").at(lane)),
        None => Ok(Next::Stop),
    }
}
