//! Instructions that need more than one fragment: barriers, and convergence of a warp (PTX 9.7.13.1).
//!
//! A fragment that reaches such an instruction without the lanes that it needs waits for them; when nothing else can
//! run, waiting fragments at the same place join. `.aligned` instructions need every live lane of the warp, `.sync`
//! ones the lanes of their membermask.

use super::access::for_lanes;
use super::warp::{Frag, Wait, Warp};
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::outcome::Next;
use crate::program::{Bar, Op, Vote};
use crate::report::{Cause, Report, ReportKind};

/// Whether all 32 lanes execute it together.
pub(super) fn is_matrix(op: &Op) -> bool {
    matches!(
        op,
        Op::Mma(_)
            | Op::WmmaMove(_)
            | Op::WmmaMma(_)
            | Op::LdMatrix { .. }
            | Op::StMatrix { .. }
            | Op::MovMatrix { .. }
            | Op::Wgmma(_)
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait(_)
            | Op::MaxRegisters { .. }
    )
}

impl Cta<'_> {
    /// Executes all synchronising instructions.
    pub(crate) fn synchronising(
        &mut self,
        w: &mut Warp,
        at: usize,
        op: &Op,
        m: u32,
        pc: usize,
    ) -> Result<Next, Box<Fail>> {
        let mask = w.frags[at].mask;
        if let Op::ActiveMask { d } = *op {
            w.put32(d, m, &[m; 32], u32::MAX);
            return Ok(Next::Advance);
        }
        if m == 0 {
            return Ok(Next::Advance);
        }
        let whole_warp = is_matrix(op)
            || matches!(op, Op::Bar(bar) if bar.aligned)
            || matches!(op, Op::ClusterArrive { aligned: true, .. } | Op::ClusterWait { aligned: true });
        if m != mask && whole_warp {
            let message = "the guard of an instruction that needs the whole warp holds in a part of it";
            return Err(Fail::new(ReportKind::Divergence, message).at((mask & !m).trailing_zeros() as usize));
        }
        if m != mask {
            // Lanes whose guard is false continue; the others wait here for the rest.
            w.frags[at].mask = m;
            w.frags.push(Frag { pc: pc as u32 + 1, mask: mask & !m, wait: Wait::Ready });
            self.not_yet(pc, m);
            return Ok(Next::Stop);
        }
        let (need, aligned) = match *op {
            Op::Bar(ref bar) if bar.aligned => (w.live, true),
            Op::Bar(_) => (m, false),
            Op::ClusterArrive { aligned, .. } | Op::ClusterWait { aligned } => {
                if aligned {
                    (w.live, true)
                } else {
                    (m, false)
                }
            }
            ref op if is_matrix(op) => (u32::MAX, true),
            Op::Shfl { mask, .. }
            | Op::Vote { mask, .. }
            | Op::MatchAny { mask, .. }
            | Op::MatchAll { mask, .. }
            | Op::Redux { mask, .. }
            | Op::Elect { mask, .. }
            | Op::BarWarp { mask } => (self.members(w, mask, m)? & w.live, false),
            _ => return Err(Fail::new(ReportKind::Invalid, "this instruction cannot be executed")),
        };
        if need & !w.live != 0 {
            let there = w.live | self.races.clocks.exited(w.index);
            return Err(match need & !there {
                0 => Fail::new(ReportKind::Divergence, "a matrix instruction needs all 32 lanes, and some have exited")
                    .because(Cause::LanesExited),
                _ => Fail::new(
                    ReportKind::Divergence,
                    "a matrix instruction needs all 32 lanes, and the block has fewer",
                ),
            });
        }
        if m & need != need {
            w.frags[at].wait = Wait::Converge { need, aligned };
            self.not_yet(pc, m);
            return Ok(Next::Stop);
        }
        match *op {
            Op::Bar(ref bar) => return self.barrier(w, at, bar, m, pc),
            Op::BarWarp { mask } => {
                let masks = w.w[mask as usize].v;
                let mut left = m;
                while left != 0 {
                    let group = masks[left.trailing_zeros() as usize] & m;
                    self.races.clocks.synchronise(w.index, group, w.live);
                    left &= !group;
                }
            }
            Op::ClusterArrive { relaxed, .. } => self.cluster_arrive(w, m, relaxed)?,
            Op::ClusterWait { .. } => return self.cluster_wait(w, at, m),
            Op::MaxRegisters { inc, n } => return self.max_registers(w, at, (inc, n)),
            Op::Wgmma(ref product) => {
                self.counts[pc].products += 1;
                self.product(w, product, pc)?;
            }
            Op::WgmmaFence => self.product_fence(w, pc)?,
            Op::WgmmaCommit => self.product_commit(w, pc)?,
            Op::WgmmaWait(n) => self.product_wait(w, n, pc)?,
            Op::Mma(ref mma) => mma.run(w, self.generation)?,
            Op::WmmaMma(ref product) => product.run(w, self.generation)?,
            Op::WmmaMove(ref mv) => self.wmma_move(w, mv, pc)?,
            _ => self.collective(w, op, m, pc)?,
        }
        Ok(Next::Advance)
    }

    /// Takes back the count of an instruction that waits for other lanes, because it will be executed by all of them at
    /// once.
    fn not_yet(&mut self, pc: usize, m: u32) {
        let counts = &mut self.counts[pc];
        counts.executed -= 1;
        counts.lanes -= u64::from(m.count_ones());
    }

    /// The union of the membermasks of the lanes. Each mask must contain its own lane, and its lanes must have the same
    /// mask.
    fn members(&self, w: &Warp, mask: u32, m: u32) -> Result<u32, Box<Fail>> {
        let slot = &w.w[mask as usize];
        if slot.ok & m != m {
            return Err(Fail::new(ReportKind::Undefined, "the membermask is undefined"));
        }
        let mut union = 0;
        for lane in (0..32).filter(|l| m >> l & 1 != 0) {
            if slot.v[lane] >> lane & 1 == 0 {
                let message = format!("lane {lane} is not in its own membermask {:#010x}", slot.v[lane]);
                return Err(Fail::new(ReportKind::Invalid, message).at(lane));
            }
            let other = slot.v[lane] & m;
            if let Some(other) = (0..32).find(|l| other >> l & 1 != 0 && slot.v[*l] != slot.v[lane]) {
                let (mine, theirs) = (slot.v[lane], slot.v[other]);
                let message = format!(
                    "the membermask {mine:#010x} of lane {lane} names lane {other}, whose membermask is {theirs:#010x}"
                );
                return Err(Fail::new(ReportKind::Invalid, message).at(lane));
            }
            union |= slot.v[lane];
        }
        Ok(union)
    }

    fn barrier(&mut self, w: &mut Warp, at: usize, bar: &Bar, m: u32, pc: usize) -> Result<Next, Box<Fail>> {
        let first = m.trailing_zeros() as usize & 31;
        let id = w.w[bar.id as usize].v[first];
        let count = bar.count.map(|r| w.w[r as usize].v[first]);
        let ok = w.w[bar.id as usize].ok & bar.count.map_or(u32::MAX, |r| w.w[r as usize].ok);
        if ok & m != m {
            return Err(Fail::new(ReportKind::Undefined, "the operand of a barrier is undefined"));
        }
        // Lanes with the barrier and thread count of the first lane.
        let alike = |r: u32| {
            let v = &w.w[r as usize].v;
            (0..32).filter(|&lane| v[lane] == v[first]).fold(0u32, |lanes, lane| lanes | 1 << lane)
        };
        let same = m & alike(bar.id) & bar.count.map_or(u32::MAX, alike);
        if same != m {
            if bar.aligned {
                let message = "lanes of a warp name different barriers, or counts of threads, in an instruction that they execute as one";
                let fail = Fail::new(ReportKind::Divergence, message).because(Cause::LanesDiffer);
                return Err(fail.at((m & !same).trailing_zeros() as usize));
            }
            // Other lanes execute their own barrier.
            w.frags[at].mask = same;
            w.frags.push(Frag { pc: pc as u32, mask: m & !same, wait: Wait::Ready });
            self.not_yet(pc, m);
            return Ok(Next::Stop);
        }
        if id > 15 {
            return Err(Fail::new(ReportKind::Invalid, format!("barrier {id}: there are 16")));
        }
        if let Some(count) = count
            && (count == 0 || count % 32 != 0 || count > 1024)
        {
            let message = format!("a barrier of {count} threads: it must be a multiple of 32 up to 1024");
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        let exited = self.races.clocks.exited(w.index);
        if bar.aligned && count.is_some() && exited != 0 {
            // `exit` only releases barriers for all threads (PTX 9.7.12).
            let message = format!(
                "all lanes of a warp have to execute this instruction, and lanes {exited:#010x} have exited: only a barrier of all \
                 threads, without a count, does not wait for them"
            );
            return Err(Fail::new(ReportKind::Divergence, message).because(Cause::LanesExited).at(first));
        }
        let block = (self.shape.block.iter().product::<u32>()).next_multiple_of(32);
        let place = 16 * self.rank + id as usize;
        let barrier = &mut self.barriers[place];
        // A barrier for all threads of the block has their number as count.
        if barrier.arrived > 0 && barrier.expected.unwrap_or(block) != count.unwrap_or(block) {
            let show = |c: Option<u32>| c.map_or("all threads".to_owned(), |c| format!("{c} threads"));
            let message =
                format!("barrier {id} waits for {}, this instruction says {}", show(barrier.expected), show(count));
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        barrier.expected = barrier.expected.or(count);
        let again =
            barrier.participants.iter().fold(0, |lanes, p| if p.0 == w.index { lanes | p.1 } else { lanes }) & m;
        if again != 0 {
            let message = format!("this thread arrives at barrier {id} a second time before the others have come");
            return Err(Fail::new(ReportKind::Invalid, message).at(again.trailing_zeros() as usize));
        }
        // A whole warp counts as 32 threads, whatever its size (PTX 9.7.13.1).
        barrier.arrived += if bar.aligned { 32 } else { m.count_ones() };
        barrier.threads += m.count_ones();
        if let Some(count) = barrier.expected
            && barrier.arrived > count
        {
            let message = format!("{} threads arrive at barrier {id}, which waits for {count}", barrier.arrived);
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        barrier.participants.push((w.index, m));
        barrier.last = pc as u32;
        self.barrier_follows(w.index, m, w.live);
        let barrier = &mut self.barriers[place];
        self.races.clocks.release(w.index, m, w.live, &mut barrier.known);
        let mut red = None;
        if let Some((what, p, negate, d)) = bar.red {
            let p = w.p[p as usize];
            if p.ok & m != m {
                return Err(Fail::new(ReportKind::Undefined, "the predicate of a reduction is undefined"));
            }
            let v = if negate { !p.v } else { p.v };
            barrier.yes += (v & m).count_ones();
            red = Some((what, d));
        }
        barrier.total += m.count_ones();
        w.frags[at].pc += 1;
        if bar.wait {
            w.frags[at].wait = Wait::Barrier { id: id as u8, red };
        }
        Ok(Next::Stop)
    }

    /// Completes the barriers at which all threads have arrived. The result says whether there was one.
    pub(crate) fn release_barriers(&mut self, warps: &mut [Warp]) -> bool {
        let mut moved = false;
        for id in 0..self.barriers.len() {
            let barrier = &self.barriers[id];
            if barrier.arrived == 0 {
                continue;
            }
            let complete = match barrier.expected {
                Some(n) => barrier.arrived >= n,
                None => barrier.threads >= self.alive[id / 16],
            };
            if !complete {
                continue;
            }
            moved = true;
            let done = std::mem::take(&mut self.barriers[id]);
            self.barriers[id].phase = done.phase + 1;
            for warp in warps.iter_mut() {
                let mut joined = 0;
                for i in 0..warp.frags.len() {
                    let Wait::Barrier { id: at, red } = warp.frags[i].wait else { continue };
                    if usize::from(at) + 16 * (warp.index / self.cta_warps) != id {
                        continue;
                    }
                    warp.frags[i].wait = Wait::Ready;
                    let mask = warp.frags[i].mask;
                    joined |= mask;
                    match red {
                        Some((Vote::Popc, d)) => warp.put32(d, mask, &[done.yes; 32], u32::MAX),
                        Some((Vote::All, d)) => {
                            warp.putp(d, mask, if done.yes == done.total { u32::MAX } else { 0 }, u32::MAX);
                        }
                        Some((_, d)) => warp.putp(d, mask, if done.yes > 0 { u32::MAX } else { 0 }, u32::MAX),
                        None => {}
                    }
                }
                if joined != 0 {
                    self.races.clocks.pass(warp.index, false);
                    self.races.clocks.acquire(warp.index, joined, warp.live, &done.known);
                }
            }
        }
        moved
    }

    /// `bar.warp.sync` at different places: lanes pass when all lanes of their membermask wait at one with the same
    /// mask.
    pub(crate) fn converge_warp_barriers(&mut self, w: &mut Warp) -> bool {
        let mut masks = [0u32; 32];
        for frag in w.frags.iter().filter(|f| matches!(f.wait, Wait::Converge { .. })) {
            let Some(Op::BarWarp { mask }) = self.entry.code.get(frag.pc as usize).map(|i| &i.op) else { continue };
            for_lanes!(lane in frag.mask => { masks[lane] = w.w[*mask as usize].v[lane]; });
        }
        let mut passing = 0;
        for lane in 0..32 {
            let group = masks[lane] & w.live;
            if masks[lane] == 0
                || passing >> lane & 1 != 0
                || (0..32).any(|l| group >> l & 1 != 0 && masks[l] != masks[lane])
            {
                continue;
            }
            passing |= group;
            self.races.clocks.synchronise(w.index, group, w.live);
        }
        if passing == 0 {
            return false;
        }
        let mut passed = Vec::new();
        for frag in w.frags.iter_mut().filter(|f| matches!(f.wait, Wait::Converge { .. })) {
            let lanes = (0..32).fold(0, |lanes, l| lanes | u32::from(masks[l] != 0) << l) & passing & frag.mask;
            if lanes != 0 {
                passed.push(Frag { pc: frag.pc + 1, mask: lanes, wait: Wait::Ready });
                frag.mask &= !lanes;
            }
        }
        w.frags.retain(|f| f.mask != 0);
        w.frags.append(&mut passed);
        true
    }

    /// Reports arrivals at a barrier for which no thread waits.
    pub(crate) fn report_unwaited_arrivals(&self) -> Option<Box<Report>> {
        let (id, barrier) = self.barriers.iter().enumerate().find(|(_, b)| b.arrived > 0)?;
        let id = id % 16;
        let (warp, lanes) = *barrier.participants.last()?;
        let message = format!(
            "the block ends with {} arrivals at barrier {id}, which waits for {}",
            barrier.arrived,
            barrier.expected.map_or("all threads".to_owned(), |n| format!("{n}"))
        );
        Some(self.report(warp, barrier.last as usize, lanes, *Fail::new(ReportKind::Invalid, message)))
    }
}
