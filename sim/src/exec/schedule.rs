//! The scheduler of a block: selection of warps, turns, and deadlocks.

use crate::exec::asynchronous;
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::in_flight::Load;
use crate::exec::options::volume;
use crate::exec::rng::Rng;
use crate::exec::warp::{Frag, Wait, Warp};
use crate::progress::Progress;
use crate::report::{Report, ReportKind};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Instructions of a warp's turn, so that a polling warp does not starve the others.
const TURN: u32 = 1 << 14;

/// Most rounds in which all fragments poll their mbarriers without any progress, before that is a deadlock.
pub(super) const MAX_POLLS: u32 = 1 << 9;

/// Instructions after which a block lets others run, if blocks may wait for each other.
const QUANTUM: u64 = 1 << 22;

/// Wakes every fragment that waits for a phase. The result says whether there was one.
pub(super) fn wake_all(warps: &mut [Warp]) -> bool {
    let mut any = false;
    for frag in warps.iter_mut().flat_map(|w| &mut w.frags) {
        if matches!(frag.wait, Wait::Poll { .. }) {
            frag.wait = Wait::Ready;
            any = true;
        }
    }
    any
}

/// The warps of a block, and the state of its scheduler.
pub(super) struct WarpScheduler {
    pub(super) warps: Vec<Warp>,
    rng: Rng,
    ready: Vec<usize>,
    /// Number of rounds without progress, and the state that they share.
    rounds: u32,
    seen: (u64, u32),
}

/// Why a block pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseReason {
    Ended,
    /// Nothing in it can run until a flag changes.
    Waits,
    /// Other blocks get a turn; only if blocks may wait for each other.
    Yields,
}

impl Cta<'_> {
    /// The block before its first instruction.
    pub(super) fn course(&self, rng: Rng) -> WarpScheduler {
        let threads = volume(self.shape.block).unwrap_or(1) as u32;
        let n = self.cta_warps * self.ranks;
        let new = |i: usize| Warp::new(self.entry, i, i % self.cta_warps, threads, &self.shapes[i / self.cta_warps]);
        let warps = (0..n).map(new).collect();
        WarpScheduler { warps, rng, ready: Vec::with_capacity(n), rounds: 0, seen: (0, 0) }
    }

    /// Runs the block until it ends or pauses.
    pub(super) fn go(&mut self, course: &mut WarpScheduler) -> Result<PauseReason, Box<Report>> {
        let WarpScheduler { warps, rng, ready, rounds, seen } = course;
        let quantum = if self.entry.waits { self.fuel.saturating_sub(QUANTUM) } else { 0 };
        loop {
            ready.clear();
            ready.extend((0..warps.len()).filter(|i| warps[*i].frags.iter().any(|f| f.wait == Wait::Ready)));
            if !ready.is_empty() {
                if self.fuel < quantum {
                    return Ok(PauseReason::Yields);
                }
                let pick = ready[rng.below(ready.len())];
                if self.progress.is_some_and(Progress::is_cancelled) {
                    return Err(self.cancelled(&warps[pick]));
                }
                if let Err(report) = self.turn(warps, pick) {
                    return Err(self.explain(warps, pick, report, rng));
                }
                // A waiter may use a signal at once, or after this block has run as far as possible.
                if std::mem::take(&mut self.signalled) && rng.below(2) == 0 {
                    return Ok(PauseReason::Yields);
                }
                continue;
            }
            let mut moved = self.release_barriers(warps) | self.release_cluster(warps);
            moved |= self.release_registers(warps);
            for warp in warps.iter_mut() {
                moved |= warp.converge() | self.converge_warp_barriers(warp);
            }
            if moved || (self.entry.waits && self.wake_changed(warps)) {
                continue;
            }
            if warps.iter().all(|w| w.frags.is_empty()) {
                return self.finish(warps).map(|()| PauseReason::Ended);
            }
            // No warp can run without a landed copy: late copies land now.
            if let Some(arrival) = self.arrivals.pop_front() {
                self.arrive_late(warps, arrival)?;
                continue;
            }
            if let Some(load) = self.loads.pop_front() {
                self.load_late(warps, &load)?;
                continue;
            }
            if warps.iter().flat_map(|w| &w.frags).any(|f| matches!(f.wait, Wait::Flag { .. })) {
                return Ok(PauseReason::Waits);
            }
            // A polling loop at an mbarrier may do something else after some iterations, so it is repeated.
            let state = (self.mbarrier_events, self.seq);
            *rounds = if state == *seen { *rounds + 1 } else { 0 };
            *seen = state;
            if *rounds > MAX_POLLS || !wake_all(warps) {
                return Err(self.stuck(warps));
            }
        }
    }

    /// Wakes all fragments that may continue by themselves. The result says whether there was one.
    pub(super) fn wake_pollers(&self, course: &mut WarpScheduler) -> bool {
        wake_all(&mut course.warps) | self.wake_independent(&mut course.warps)
    }

    /// A hash of the block's state.
    pub(super) fn state(&self, course: &WarpScheduler) -> u64 {
        let of = |warp: &Warp, frag: &Frag| {
            let mut hasher = DefaultHasher::new();
            (warp.index, frag.pc, frag.mask, warp.state(frag.mask)).hash(&mut hasher);
            hasher.finish()
        };
        // The order of a warp's fragments does not matter.
        let all = course.warps.iter().flat_map(|warp| warp.frags.iter().map(move |frag| of(warp, frag)));
        all.fold(self.mbarrier_events, u64::wrapping_add)
    }

    /// Lands copies that were never awaited at the end of the kernel, if that is legal: the memory of an ended block
    /// belongs to the next one, and a bulk copy does not keep it from starting.
    pub(super) fn finish(&mut self, warps: &mut [Warp]) -> Result<(), Box<Report>> {
        while let Some(arrival) = self.arrivals.pop_front() {
            self.arrive_late(warps, arrival)?;
        }
        if let Some(load) = self.loads.pop_front() {
            let message = "the block ends while this copy may still write to its shared memory: nobody waited for the \
                           phase of its mbarrier";
            let (warp, pc, lanes) = Cta::issuer(&load);
            let fail = Fail::new(ReportKind::Invalid, message).at(lanes.trailing_zeros() as usize);
            return Err(self.report(warp, pc, lanes, *fail));
        }
        if let Some(report) = self.end_steps(warps) {
            return Err(report);
        }
        for i in 0..warps.len() {
            if let Err((pc, lanes, fail)) = self.end_stores(&mut warps[i]) {
                return Err(self.report(i, pc as usize, lanes, *fail));
            }
            if let Err((pc, fail)) = self.land_unawaited(&mut warps[i]) {
                return Err(self.report(i, pc as usize, 1, *fail));
            }
        }
        self.races.publish_accesses(self.grid, self.block, true);
        self.report_unwaited_arrivals().map_or(Ok(()), Err)
    }

    /// Lands a bulk copy to shared memory.
    fn load_late(&mut self, warps: &mut [Warp], load: &Load) -> Result<(), Box<Report>> {
        if let Err(fail) = self.land_load(load) {
            let (warp, pc, lanes) = Cta::issuer(load);
            return Err(self.report(warp, pc, lanes, *fail));
        }
        self.wake(warps);
        Ok(())
    }

    pub(super) fn arrive_late(
        &mut self,
        warps: &mut [Warp],
        arrival: asynchronous::Arrival,
    ) -> Result<(), Box<Report>> {
        warps[arrival.warp].copies.arrivals[arrival.lane].pop_front();
        if let Err(fail) = self.arrive_after_copies(&mut warps[arrival.warp], arrival) {
            return Err(self.report(arrival.warp, arrival.pc as usize, 1 << arrival.lane, *fail));
        }
        self.wake(warps);
        Ok(())
    }

    /// Runs one warp until none of its fragments is ready, or its turn is over.
    pub(super) fn turn(&mut self, warps: &mut [Warp], pick: usize) -> Result<(), Box<Report>> {
        let mut left = TURN;
        self.signalled = false;
        loop {
            let warp = &mut warps[pick];
            let Some(at) = warp.frags.iter().position(|f| f.wait == Wait::Ready) else {
                if warp.converge() | self.converge_warp_barriers(warp) {
                    continue;
                }
                return Ok(());
            };
            let used = match warp.watched_lanes(warp.frags[at].mask) {
                Some(lanes) => self.watched(warp, lanes, left)?,
                None => self.fragment(warp, at, left)?,
            };
            self.release_barriers(warps);
            if !self.completed.is_empty() {
                self.wake(warps);
            }
            if std::mem::take(&mut self.cluster_moved) {
                self.release_cluster(warps);
            }
            if self.freed {
                self.release_registers(warps);
            }
            left = left.saturating_sub(used);
            if self.signalled {
                return Ok(());
            }
            if left == 0 {
                // Other fragments of this warp come first next time, because a polling one may wait for something else
                // than a phase.
                let frags = &mut warps[pick].frags;
                // There is none after the end of the kernel.
                let by = 1.min(frags.len());
                frags.rotate_left(by);
                wake_all(warps);
                if self.entry.waits {
                    self.wake_changed(warps);
                }
                return Ok(());
            }
        }
    }

    pub(super) fn cancelled(&self, warp: &Warp) -> Box<Report> {
        let (pc, mask) = warp.frags.first().map_or((0, 1), |f| (f.pc as usize, f.mask));
        self.report(warp.index, pc, mask, *Fail::new(ReportKind::Cancelled, "the launch was ended before it was done"))
    }
}
