//! Clusters (PTX 4.2.2): blocks that run together and access each other's shared memory.
//!
//! The blocks of a cluster are executed as one machine, with one set of clocks. Their shared memories are at a distance
//! of `stride` bytes, and programs see these addresses: an address of `.shared` is also one of `.shared::cluster`.

use super::access::{for_lanes, misaligned, outside, window};
use super::warp::{Wait, Warp};
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::exec::outcome::Next;
use crate::program::Addr;
use crate::program::types::{R, SHARED_WINDOW, Space};
use crate::report::ReportKind;

impl Cta<'_> {
    /// The block of a warp.
    pub(crate) fn rank_of(&self, warp: usize) -> usize {
        warp / self.cta_warps
    }

    /// The start of the shared memory of a warp's block.
    pub(crate) fn base_of(&self, warp: usize) -> u64 {
        (warp / self.cta_warps) as u64 * self.stride
    }

    /// Checks that `n` bytes of shared memory exist, in any block.
    pub(crate) fn check_room(&self, lane: usize, address: u64, n: u64) -> Step {
        let (rank, at) = (address / self.stride, address % self.stride);
        if rank as usize >= self.ranks || at >= self.room || n > self.room - at {
            let whose = if self.ranks == 1 { String::new() } else { format!(" of block {rank} of the cluster") };
            let first = if (rank as usize) < self.ranks && at < self.room { address - at + self.room } else { address };
            let dynamic = self.entry.shared_vars.iter().find(|(_, var)| var.bytes == 0);
            let launched = dynamic.map_or(String::new(), |(name, _)| {
                format!(", of which `{name}` has the {} that the launch requests", self.room - self.entry.shared_bytes)
            });
            let what = format!("the {} bytes of shared memory{whose}{launched}", self.room);
            return Err(outside(lane, address, n, &what).in_shared(first));
        }
        let next = self.entry.gaps.partition_point(|(_, end)| *end <= at);
        if let Some((start, _)) = self.entry.gaps.get(next)
            && *start < at + n
        {
            let before =
                self.entry.shared_vars.iter().find(|(_, var)| var.bytes > 0 && var.offset + var.bytes == *start);
            let behind = self.entry.shared_vars.iter().find(|(_, var)| self.entry.gaps[next].1 == var.offset);
            let before = before.map(|(name, _)| format!("`{name}` ends at {start:#x}"));
            let behind = behind.map(|(name, var)| format!("`{name}` begins at {:#x}", var.offset));
            let names: Vec<String> = before.into_iter().chain(behind).collect();
            let between = if names.is_empty() { "" } else { "; " };
            let what = format!("the variables of shared memory{between}{}", names.join(", "));
            return Err(outside(lane, address, n, &what).in_shared(address - at + at.max(*start)));
        }
        Ok(())
    }

    /// Checks that addresses of `.shared` are in the block's own memory.
    #[inline(always)]
    pub(crate) fn check_own(&self, mask: u32, at: &[u64; 32]) -> Step {
        if self.ranks == 1 { Ok(()) } else { self.check_own_slowly(mask, at) }
    }

    #[inline(never)]
    fn check_own_slowly(&self, mask: u32, at: &[u64; 32]) -> Step {
        for_lanes!(lane in mask => {
            if at[lane] / self.stride != self.rank as u64 {
                let what = "the block's shared memory; that of the cluster is `.shared::cluster`";
                return Err(outside(lane, at[lane], 1, what).in_shared(at[lane]));
            }
        });
        Ok(())
    }

    /// Checks that addresses of `.shared::cluster` are in the memory of a block that has not ended.
    pub(crate) fn check_reachable(&self, mask: u32, at: &[u64; 32]) -> Step {
        if self.ranks > 1 {
            for_lanes!(lane in mask => { self.check_alive(lane, at[lane])?; });
        }
        Ok(())
    }

    /// Addresses of shared memory of the cluster.
    pub(crate) fn cluster_addresses(&self, w: &Warp, addr: Addr, mask: u32) -> Result<[u64; 32], Box<Fail>> {
        let at = super::access::addresses(w, addr, mask)?;
        for_lanes!(lane in mask => {
            if window(at[lane]).0 == Space::Shared {
                let message = format!("{:#x} is a generic address, the instruction takes one of shared memory", at[lane]);
                return Err(Fail::new(ReportKind::OutOfBounds, message).at(lane).address(at[lane]));
            }
        });
        Ok(at)
    }

    /// Threads of a block exit; after the last one, its shared memory does not exist any more.
    pub(crate) fn block_ends(&mut self, w: &Warp, m: u32) -> Step {
        self.cluster_moved = true;
        self.races.exits(w.index, m, w.live, &mut self.ends[self.rank]);
        if self.alive[self.rank] > 0 {
            return Ok(());
        }
        let start = (self.rank as u64 * self.stride) as usize;
        let warps = self.rank * self.cta_warps..(self.rank + 1) * self.cta_warps;
        // When a thread arrives, its loads are complete. Its stores, and arrivals at mbarriers, may still be in flight.
        let loads_end = |at: usize| !self.touches_mbarrier(at, 4);
        let known = [&self.ends[self.rank], &self.begun[self.rank]];
        match self.races.foreign(start..start + self.room as usize, warps, known, loads_end) {
            None => Ok(()),
            Some((at, conflict)) => {
                let verb = match conflict.wrote {
                    true => "write",
                    false if self.touches_mbarrier(at, 4) => "use",
                    false => "read",
                };
                let message = format!(
                    "block {} of the cluster ends, and nothing orders a {verb} of its shared address {at:#x} by another block before \
                     that: a barrier of the cluster does",
                    self.rank
                );
                Err(Fail::new(ReportKind::Race, message).in_shared(at as u64).against(conflict))
            }
        }
    }

    /// `mapa`: the same offset in the block of this rank.
    pub(crate) fn mapa(&self, w: &mut Warp, (d, a, rank): (R, R, R), (wide, generic): (bool, bool), m: u32) -> Step {
        let ((v, ok), ranks) = (w.any(a, wide), w.w[rank as usize]);
        let mut out = [0u64; 32];
        for_lanes!(lane in m => {
            if (ok & ranks.ok) >> lane & 1 == 0 {
                return Err(Fail::new(ReportKind::Undefined, "an operand is undefined").at(lane));
            }
            let rank = u64::from(ranks.v[lane]);
            if rank >= self.ranks as u64 {
                let message = format!("block {rank} of a cluster of {}", self.ranks);
                return Err(Fail::new(ReportKind::Invalid, message).at(lane));
            }
            let at = self.shared_of(lane, v[lane], generic)?;
            out[lane] = rank * self.stride + at % self.stride + if generic { SHARED_WINDOW } else { 0 };
        });
        w.put_any(d, wide, m, &out, u32::MAX);
        Ok(())
    }

    /// `getctarank`.
    pub(crate) fn cta_rank(&self, w: &mut Warp, (d, a): (R, R), (wide, generic): (bool, bool), m: u32) -> Step {
        let (v, ok) = w.any(a, wide);
        let mut out = [0u32; 32];
        for_lanes!(lane in m => {
            if ok >> lane & 1 == 0 {
                return Err(Fail::new(ReportKind::Undefined, "an operand is undefined").at(lane));
            }
            out[lane] = (self.shared_of(lane, v[lane], generic)? / self.stride) as u32;
        });
        w.put32(d, m, &out, u32::MAX);
        Ok(())
    }

    fn shared_of(&self, lane: usize, address: u64, generic: bool) -> Result<u64, Box<Fail>> {
        let at = match (generic, window(address)) {
            (true, (Space::Shared, at)) => at,
            (false, _) => address,
            (true, _) => return Err(outside(lane, address, 1, "shared memory")),
        };
        if at / self.stride >= self.ranks as u64 {
            return Err(outside(lane, address, 1, "the shared memory of the cluster").in_shared(address));
        }
        Ok(at)
    }

    /// `barrier.cluster.arrive`.
    pub(crate) fn cluster_arrive(&mut self, w: &Warp, m: u32, relaxed: bool) -> Step {
        let barrier = &mut self.cluster_barrier;
        barrier.arrived.resize(self.ranks * self.cta_warps, 0);
        barrier.owing.resize(self.ranks * self.cta_warps, 0);
        let again = barrier.owing[w.index] & m;
        if again != 0 {
            let message = "this thread arrives at the barrier of the cluster a second time without having waited";
            return Err(Fail::new(ReportKind::Invalid, message).at(again.trailing_zeros() as usize));
        }
        barrier.arrived[w.index] |= m;
        barrier.owing[w.index] |= m;
        if relaxed {
            self.races.clocks.release_fenced(w.index, m, w.live, &mut self.cluster_barrier.known);
            self.races.clocks.release(w.index, m, w.live, &mut self.cluster_barrier.begun);
        } else {
            self.races.clocks.release(w.index, m, w.live, &mut self.cluster_barrier.known);
        }
        self.cluster_moved = true;
        Ok(())
    }

    /// `barrier.cluster.wait`.
    pub(crate) fn cluster_wait(&mut self, w: &mut Warp, at: usize, m: u32) -> Result<Next, Box<Fail>> {
        let missing = m & !self.cluster_barrier.owing.get(w.index).copied().unwrap_or(0);
        if missing != 0 {
            let message = "this thread waits at the barrier of the cluster without having arrived";
            return Err(Fail::new(ReportKind::Invalid, message).at(missing.trailing_zeros() as usize));
        }
        w.frags[at].pc += 1;
        if self.cluster_barrier.arrived[w.index] & m == 0 {
            // The phase is over.
            self.cluster_pass(w, m);
        } else {
            w.frags[at].wait = Wait::Cluster;
        }
        Ok(Next::Stop)
    }

    fn cluster_pass(&mut self, w: &Warp, m: u32) {
        self.cluster_barrier.owing[w.index] &= !m;
        let [known, begun] = &self.cluster_barrier.done;
        self.races.clocks.pass(w.index, false);
        self.races.clocks.acquire(w.index, m, w.live, known);
        self.begun[w.index / self.cta_warps].join(begun);
    }

    /// Ends the phase if all threads of the cluster have arrived or exited. The result says whether it did.
    pub(crate) fn release_cluster(&mut self, warps: &mut [Warp]) -> bool {
        let barrier = &mut self.cluster_barrier;
        let missing = |w: &Warp| w.live & !barrier.arrived.get(w.index).copied().unwrap_or(0) != 0;
        if barrier.arrived.iter().all(|lanes| *lanes == 0) || warps.iter().any(missing) {
            return false;
        }
        barrier.phase += 1;
        barrier.arrived.fill(0);
        barrier.done = [std::mem::take(&mut barrier.known), std::mem::take(&mut barrier.begun)];
        for w in warps.iter_mut() {
            for i in 0..w.frags.len() {
                if w.frags[i].wait == Wait::Cluster {
                    w.frags[i].wait = Wait::Ready;
                    let lanes = w.frags[i].mask;
                    self.cluster_pass(w, lanes);
                }
            }
        }
        true
    }

    /// The threads that wait at the cluster barrier, for a report.
    pub(crate) fn cluster_text(&self, warps: &[Warp]) -> String {
        let barrier = &self.cluster_barrier;
        let (mut arrived, mut all) = (0, 0);
        for w in warps {
            let there = barrier.arrived.get(w.index).copied().unwrap_or(0);
            arrived += (there & w.live).count_ones();
            all += w.live.count_ones();
        }
        format!("at the barrier of the cluster, phase {}, where {arrived} of {all} threads are", barrier.phase)
    }

    /// Checks an aligned access of `bytes` bytes in any block.
    pub(crate) fn check_aligned(&self, lane: usize, address: u64, bytes: u64) -> Result<usize, Box<Fail>> {
        self.check_room(lane, address, bytes)?;
        if address & (bytes - 1) != 0 {
            return Err(misaligned(lane, address, bytes).in_shared(address));
        }
        Ok(address as usize)
    }
}
