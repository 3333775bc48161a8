//! Strong accesses and fences: what they publish and what is learnt by them (PTX ISA 8).

use super::Cta;
use super::access::for_lanes;
use crate::program::Semantics;
use crate::race::{Logs, Strength, Touch};
use std::sync::MutexGuard;

impl<'a> Cta<'a> {
    /// A fence of the lanes `m`, `(wide, acquire, release)`.
    pub(crate) fn fence(&mut self, warp: usize, m: u32, live: u32, (wide, acquire, release): (bool, bool, bool)) {
        if acquire {
            self.races.clocks.fence_after(warp, m, live, wide);
        }
        if release {
            self.races.clocks.fence_before(warp, m, live, wide);
        }
    }

    /// Before a strong access writes: one that releases has its fence in front of it.
    pub(crate) fn strong_begins(&mut self, order: &Semantics, (warp, m, live): (usize, u32, u32)) {
        if order.release {
            self.races.clocks.fence_before(warp, m, live, order.strength == Strength::Wide);
        }
    }

    /// To be held while a strong access to global memory happens, if other blocks may learn of it or by it.
    pub(crate) fn meeting(&self, order: &Semantics, warp: usize) -> Option<MutexGuard<'a, Logs>> {
        let grid = self.grid.filter(|_| order.strength == Strength::Wide && !order.guess)?;
        grid.meetings.enter(self.races.clocks.tells_others(warp))
    }

    /// After that access, before [`Cta::strong_done`].
    pub(crate) fn met(
        &mut self,
        held: Option<MutexGuard<'a, Logs>>,
        order: &Semantics,
        (warp, m, live): (usize, u32, u32),
        at: &[u64; 32],
        touch: Touch,
    ) {
        let Some(grid) = self.grid.filter(|_| order.strength == Strength::Wide && !order.guess) else { return };
        let late = held.is_none();
        let Some(mut logs) = held.or_else(|| grid.meetings.enter_late()) else { return };
        for_lanes!(lane in m => {
            self.races.touch_beyond(&mut logs, (warp, lane, live), (self.block, at[lane], touch), late);
        });
    }

    /// After a strong access to these addresses, in one space; one that acquires has its fence behind it.
    pub(crate) fn strong_done(
        &mut self,
        order: &Semantics,
        (warp, m, live): (usize, u32, u32),
        at: &[u64; 32],
        touch: Touch,
    ) {
        if !order.strength.is_strong() || order.guess {
            return;
        }
        for_lanes!(lane in m => {
            self.races.touch((warp, lane, live), at[lane], touch);
        });
        if order.acquire {
            self.races.clocks.fence_after(warp, m, live, order.strength == Strength::Wide);
        } else if order.uncached && touch == Touch::Load {
            self.races.uncached[warp] |= m;
        }
    }

    /// Before a barrier: what lanes have seen past the first-level cache is known.
    pub(crate) fn barrier_follows(&mut self, warp: usize, m: u32, live: u32) {
        let lanes = self.races.uncached[warp] & m;
        if lanes != 0 {
            self.races.uncached[warp] &= !lanes;
            self.races.clocks.fence_after(warp, lanes, live, true);
        }
    }
}
