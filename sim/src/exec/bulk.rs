//! Bulk copies (PTX 9.7.9.27): asynchronous copies of runs of bytes and of boxes of tensors, to and from shared memory.
//!
//! An mbarrier counts the bytes of a load, and a store belongs to a group of its thread. The accesses of a copy are
//! recorded when it is issued, and last until a thread has waited for the phase or the group (`race::proxy`). The mode
//! of the launch determines when the bytes move ([`Landing`]).

mod remote;
mod store;
mod tensor;

use super::access::{addresses, for_lanes, misaligned, outside};
use super::asynchronous::Landing;
use super::warp::Warp;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
pub(crate) use crate::exec::in_flight::Stores;
use crate::exec::in_flight::{Load, Piece, Plan, Reduce};
use crate::program::Op;
use crate::program::bulk::{Bulk, Direction, Extent};
use crate::program::types::R;
use crate::race::{Issuer, ProxyError, Slot, Strength};
use crate::report::{Cause, ReportKind};
use std::rc::Rc;

/// Most bulk copies in flight: of the cluster, and in the groups of a warp.
const MAX_FLYING: usize = 1 << 10;

impl Cta<'_> {
    /// Issues a copy in every lane of `m`.
    pub(crate) fn bulk(&mut self, w: &mut Warp, op: &Bulk, m: u32, pc: usize) -> Step {
        if m == 0 {
            return Ok(());
        }
        let shared = match op.direction {
            Direction::Prefetch => [0; 32],
            _ => self.cluster_addresses(w, op.shared, m)?,
        };
        let seq = self.next_seq();
        for_lanes!(lane in m => {
            let who = Issuer { warp: w.index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: true };
            if !matches!(op.direction, Direction::Prefetch) {
                self.check_room(lane, shared[lane], 1)?;
            }
            let plan = match &op.direction {
                Direction::Between { .. } => self.plan_between(w, who, &op.global, shared[lane])?,
                way => self.plan(w, who, &op.global, shared[lane], matches!(way, Direction::Store | Direction::Reduce { .. }))?,
            };
            let accesses = matches!(op.direction, Direction::Load { .. } | Direction::Store | Direction::Reduce { .. });
            if accesses && let Err(early) = self.after_other_grids(who) {
                let unchanging = matches!(op.direction, Direction::Load { .. }) && self.loads_unchanging(&plan);
                if !unchanging {
                    return Err(early);
                }
            }
            let bytes = u64::from(plan.span.1);
            let counts = &mut self.counts[pc];
            counts.boxes += 1;
            match &op.direction {
                Direction::Prefetch => {}
                Direction::Load { barrier, mask } => {
                    counts.bulk_bytes += bytes;
                    let barrier = self.cluster_addresses(w, *barrier, 1 << lane)?[lane];
                    let mask = mask.map(|r| (w.w[r as usize].v[lane] & 0xFFFF, w.w[r as usize].ok >> lane & 1 != 0));
                    self.load_bulk(who, plan, barrier, mask, None)?;
                }
                Direction::Between { barrier, reduce } => {
                    counts.bulk_bytes += bytes;
                    let barrier = self.cluster_addresses(w, *barrier, 1 << lane)?[lane];
                    let reduce = reduce.and_then(|(op, ty)| Reduce::new(op, Some(ty), None));
                    self.load_bulk(who, plan, barrier, None, reduce)?;
                }
                Direction::Store => {
                    counts.bulk_bytes += bytes;
                    self.store_bulk(w, who, plan, None)?;
                }
                Direction::Reduce { op, ty } => {
                    counts.bulk_bytes += bytes;
                    self.store_bulk(w, who, plan, Some((*op, *ty)))?;
                }
            }
        });
        Ok(())
    }

    /// Whether all that a copy loads is in memory that nobody changes while the launch may run.
    fn loads_unchanging(&self, plan: &Plan) -> bool {
        let mut read = plan.pieces.iter().filter(|piece| piece.from < piece.to);
        read.all(|piece| self.device.find(piece.global).is_some_and(|alloc| alloc.unchanging))
    }

    /// The two sides of a copy of a run of bytes.
    fn run_of(&self, w: &Warp, who: Issuer, n: R, (from, shared): (u64, u64)) -> Result<(u32, Vec<Piece>), Box<Fail>> {
        let slot = &w.w[n as usize];
        if slot.ok >> who.lane & 1 == 0 {
            return Err(Fail::new(ReportKind::Undefined, "the size of a bulk copy is undefined").at(who.lane));
        }
        let n = slot.v[who.lane];
        if !n.is_multiple_of(16) || n == 0 || n > 1 << 20 {
            let message = format!("a bulk copy of {n} bytes: it must be a multiple of 16 that fits shared memory");
            return Err(Fail::new(ReportKind::Invalid, message).at(who.lane));
        }
        for address in [from, shared] {
            if address % 16 != 0 {
                return Err(misaligned(who.lane, address, 16));
            }
        }
        let piece = |i: u32| Piece {
            shared: (shared as u32).wrapping_add(i),
            global: from.wrapping_add(u64::from(i)),
            from: 0,
            to: 16,
        };
        Ok((n, (0..n).step_by(16).map(piece).collect()))
    }

    fn plan(&mut self, w: &Warp, who: Issuer, global: &Extent, shared: u64, stores: bool) -> Result<Plan, Box<Fail>> {
        match global {
            Extent::Tensor { map, at, offsets } => {
                self.plan_tensor(w, who, (*map, at, offsets.as_deref()), shared, stores)
            }
            Extent::Bytes { at, n } => {
                let from = addresses(w, *at, 1 << who.lane)?[who.lane];
                let (n, pieces) = self.run_of(w, who, *n, (from, shared))?;
                Ok(Plan {
                    pieces,
                    fill: [0; 16],
                    span: (shared as u32, n),
                    reach: 0,
                    element: None,
                    from_shared: false,
                    width: 16,
                })
            }
        }
    }

    fn plan_between(&mut self, w: &Warp, who: Issuer, global: &Extent, shared: u64) -> Result<Plan, Box<Fail>> {
        let Extent::Bytes { at, n } = global else {
            return Err(Fail::new(ReportKind::Invalid, "no such copy"));
        };
        let from = self.cluster_addresses(w, *at, 1 << who.lane)?[who.lane];
        let (n, pieces) = self.run_of(w, who, *n, (from, shared))?;
        self.check_span(who.lane, from, u64::from(n))?;
        Ok(Plan {
            pieces,
            fill: [0; 16],
            span: (shared as u32, n),
            reach: 0,
            element: None,
            from_shared: true,
            width: 16,
        })
    }

    /// Checks that `n` bytes of shared memory exist, and belong to no mbarrier.
    pub(crate) fn check_span(&self, lane: usize, address: u64, n: u64) -> Step {
        self.check_room(lane, address, n)?;
        if self.touches_mbarrier(address as usize, n as usize) {
            let message = format!("{n} bytes at shared address {address:#x} touch an mbarrier");
            return Err(Fail::new(ReportKind::Invalid, message).at(lane).in_shared(address));
        }
        Ok(())
    }

    /// The report of an access by the async proxy that is not allowed.
    pub(crate) fn proxy_error(&self, (at, offence): (usize, ProxyError), lane: usize, writes: bool) -> Box<Fail> {
        let conflict = match offence {
            ProxyError::Race(conflict) => return self.race(conflict, lane, at, writes),
            ProxyError::Unfenced(conflict) | ProxyError::UnfencedProduct(conflict) => conflict,
        };
        let of_copy =
            matches!(self.entry.code.get(conflict.pc as usize), Some(inst) if matches!(inst.op, Op::CpAsync(_)));
        let (message, cause) = if of_copy && matches!(offence, ProxyError::UnfencedProduct(_)) {
            let message = format!(
                "shared address {at:#x} is read by `wgmma`, and no `fence.proxy.async` follows the `cp.async` that wrote it before the \
                 threads synchronise"
            );
            (message, Cause::CopyProxy)
        } else {
            let verb = if writes { "overwritten" } else { "read" };
            let message = format!(
                "shared address {at:#x} is {verb} through the async proxy, and no `fence.proxy.async` follows its ordinary \
                 write before the threads synchronise"
            );
            (message, Cause::ProxyFence)
        };
        Fail::new(ReportKind::Race, message).because(cause).at(lane).in_shared(at as u64).against(conflict)
    }

    /// Issues a load to the blocks of a mask, each counted by the mbarrier at the same offset in the block.
    fn load_bulk(
        &mut self,
        who: Issuer,
        plan: Plan,
        barrier: u64,
        mask: Option<(u32, bool)>,
        reduce: Option<Reduce>,
    ) -> Step {
        let lane = who.lane;
        // Reductions are strong accesses, so several of them to one place are no race.
        let writer = Issuer { strength: if reduce.is_some() { Strength::Block } else { Strength::Weak }, ..who };
        let clock = self.races.clocks.start_copies(who.warp);
        let (first, bytes) = plan.span;
        self.check_room(lane, barrier, 8)?;
        let own = u64::from(first) / self.stride;
        let mut targets = vec![own];
        if let Some((mask, defined)) = mask {
            if !defined {
                return Err(Fail::new(ReportKind::Undefined, "the mask of a multicast is undefined").at(lane));
            }
            if mask == 0 || mask >> self.ranks.min(31) != 0 {
                let message = format!("a multicast to the blocks {mask:#06x} of a cluster of {}", self.ranks);
                return Err(Fail::new(ReportKind::Invalid, message).at(lane));
            }
            targets = (0..16).filter(|rank| mask >> rank & 1 != 0).collect();
        }
        if barrier / self.stride != own {
            let message =
                format!("the destination {first:#x} of a copy and its mbarrier {barrier:#x} are in different blocks");
            return Err(Fail::new(ReportKind::Invalid, message).at(lane).in_shared(barrier));
        }
        let plan = Rc::new(plan);
        // The source is read once for all destinations.
        let data = Rc::new(self.read_pieces(who, &plan, true)?);
        for rank in targets {
            let shift = ((rank as i64 - own as i64) * self.stride as i64) as u32;
            let (first, object) = (first.wrapping_add(shift), (barrier as u32).wrapping_add(shift));
            self.check_alive(lane, u64::from(first))?;
            self.check_span(lane, u64::from(first), u64::from(bytes).max(plan.reach))?;
            self.check_shared(lane, u64::from(object), 8)?;
            self.check_object(who, object)?;
            let agent = self.races.slot(Slot::Phase(object), who.warp);
            if plan.from_shared {
                for piece in &plan.pieces {
                    let reader = (agent, self.races.clocks.now(agent), u32::MAX);
                    self.races
                        .async_read(who, reader, piece.global as usize, 16)
                        .map_err(|e| self.proxy_error(e, lane, false))?;
                }
            }
            for piece in &plan.pieces {
                let at = piece.shared.wrapping_add(shift) as usize;
                self.races.async_claim(writer, agent, at, 16).map_err(|e| self.proxy_error(e, lane, true))?;
                if reduce.is_none() && self.landing.poisons() {
                    self.shared.poison(at, 16);
                }
            }
            let data = (!self.landing.reads_late()).then(|| Rc::clone(&data));
            self.issue(Load { issuer: who, agent, object, plan: Rc::clone(&plan), shift, data, clock, reduce })?;
        }
        Ok(())
    }

    /// Issues a load, which lands at once or later.
    fn issue(&mut self, load: Load) -> Step {
        let lane = load.issuer.lane;
        if self.landing == Landing::Early {
            return self.land_load(&load).map_err(|fail| fail.at(lane));
        }
        self.loads.push_back(load);
        // It lands when the queue is full.
        if self.loads.len() > MAX_FLYING
            && let Some(first) = self.loads.pop_front()
        {
            self.land_load(&first).map_err(|fail| fail.at(lane))?;
        }
        Ok(())
    }

    /// Checks that the async proxy can see the mbarrier that a copy completes.
    fn check_object(&mut self, who: Issuer, object: u32) -> Step {
        let lane = who.lane;
        self.require_object(lane, object)?;
        let strong = Issuer { strength: Strength::Block, copy: false, ..who };
        self.use_object(strong, object)?;
        self.races.object_seen(who, object as usize).map_err(|conflict| {
            let message = format!(
                "a bulk copy counts at the mbarrier at {object:#x}, and no `fence.mbarrier_init` or `fence.proxy.async` follows its \
                 initialisation"
            );
            let fail = Fail::new(ReportKind::Race, message).because(Cause::InitFence);
            fail.at(lane).in_shared(u64::from(object)).against(conflict)
        })
    }

    /// The current bytes of a source.
    fn read_pieces(&mut self, who: Issuer, plan: &Plan, noted: bool) -> Result<Vec<[u8; 16]>, Box<Fail>> {
        let mut out = Vec::with_capacity(plan.pieces.len());
        for piece in &plan.pieces {
            let mut bytes = plan.fill;
            if plan.from_shared {
                let Some(words) = self.shared.words(piece.global as usize, 4) else {
                    let first = self.shared.undefined(piece.global as usize, 16);
                    let message = format!("shared address {first:#x} was never written");
                    return Err(Fail::new(ReportKind::Uninitialised, message).at(who.lane).in_shared(first as u64));
                };
                for (to, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                    *to = word.to_le_bytes();
                }
            } else if piece.from < piece.to {
                self.read_run(who, piece, &mut bytes, noted)?;
            }
            out.push(bytes);
        }
        Ok(out)
    }

    /// The bytes of a piece inside the tensor, in accesses as large as their alignment.
    fn read_run(&mut self, who: Issuer, piece: &Piece, bytes: &mut [u8; 16], noted: bool) -> Step {
        let (mut at, end) = (u64::from(piece.from), u64::from(piece.to));
        while at < end {
            let address = piece.global.wrapping_add(at);
            let n = [16, 8, 4, 2].into_iter().find(|n| address % n == 0 && at + n <= end).unwrap_or(1);
            let words = self.read_global(who, address, n, noted)?;
            for i in 0..n as usize {
                bytes[at as usize + i] = (words[i / 4] >> (i % 4 * 8)) as u8;
            }
            at += n;
        }
        Ok(())
    }

    /// Lands a load: writes its bytes, and counts them at its mbarrier.
    pub(crate) fn land_load(&mut self, load: &Load) -> Step {
        let data = match &load.data {
            Some(data) => Rc::clone(data),
            None => Rc::new(self.read_pieces(load.issuer, &load.plan, false)?),
        };
        for (piece, bytes) in load.plan.pieces.iter().zip(data.iter()) {
            let at = piece.shared.wrapping_add(load.shift) as usize;
            let words: [u32; 4] =
                std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|b| bytes[4 * i + b])));
            let width = usize::from(load.plan.width);
            match &load.reduce {
                None => self.shared.put_words(at, &words[..width / 4]),
                Some(reduce) => self.combine_words(load.issuer.lane, reduce, at, &words[..width / 4])?,
            }
            self.races.async_land(load.agent, load.issuer.seq, at, width);
        }
        let (warp, lane) = (load.issuer.warp, load.issuer.lane);
        self.count_landed(lane, load.object, load.plan.span.1, |races, known| {
            races.clocks.copies_done(warp, lane, load.clock, u32::MAX, known);
        })
    }

    /// Combines words at `at` with the words `with` by a reduction.
    fn combine_words(&mut self, lane: usize, reduce: &Reduce, at: usize, with: &[u32]) -> Step {
        let step = reduce.words();
        for (i, new) in with.chunks_exact(step).enumerate() {
            let at = at + 4 * step * i;
            let Some(old) = self.shared.words(at, step) else {
                let first = self.shared.undefined(at, 4 * step);
                let message = format!("shared address {first:#x} was never written");
                return Err(Fail::new(ReportKind::Uninitialised, message).at(lane).in_shared(first as u64));
            };
            let whole = |words: &[u32]| words.iter().rev().fold(0u64, |v, w| v << 32 | u64::from(*w));
            let sum = reduce.apply(whole(old), whole(new));
            self.shared.put_words(at, &[sum as u32, (sum >> 32) as u32][..step]);
        }
        Ok(())
    }

    /// The thread and the instruction of a load, for reports.
    pub(crate) fn issuer(load: &Load) -> (usize, usize, u32) {
        (load.issuer.warp, load.issuer.pc as usize, 1 << load.issuer.lane)
    }

    /// An access to the shared memory of a block that has ended.
    pub(crate) fn check_alive(&self, lane: usize, address: u64) -> Step {
        let rank = (address / self.stride) as usize;
        if self.alive.get(rank).copied().unwrap_or(0) > 0 {
            return Ok(());
        }
        if rank >= self.ranks {
            return Err(outside(lane, address, 1, "the shared memory of the cluster").in_shared(address));
        }
        let message =
            format!("shared address {address:#x} is in block {rank} of the cluster, all of whose threads have exited");
        Err(Fail::new(ReportKind::OutOfBounds, message).at(lane).in_shared(address))
    }
}

/// The agents of the copies in a warp's groups, for their reads and for their writes.
pub(crate) fn group_slots(warp: usize) -> [Slot; 2] {
    [Slot::Reads(warp), Slot::Writes(warp)]
}
