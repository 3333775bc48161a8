//! Strong accesses and fences, with their release and acquire semantics (PTX ISA 8).

use super::access::for_lanes;
use super::warp::Warp;
use crate::exec::cta::Cta;
use crate::exec::outcome::Next;
use crate::program::Semantics;
use crate::race::{FlagAccess, Logs, Scope, Strength};
use std::sync::MutexGuard;

impl<'a> Cta<'a> {
    /// A fence of the lanes `m`, `(scope, acquire, release)`.
    pub(crate) fn fence(&mut self, warp: usize, m: u32, live: u32, (scope, acquire, release): (Scope, bool, bool)) {
        if acquire {
            self.races.clocks.fence_after(warp, m, live, scope == Scope::Wide);
        }
        if release {
            self.races.clocks.fence_before(warp, m, live, scope);
        }
    }

    /// Before a strong access writes: a release access has a fence in front of it.
    pub(crate) fn strong_begins(&mut self, order: &Semantics, (warp, m, live): (usize, u32, u32)) {
        if order.release {
            let scope = if order.strength == Strength::Wide { Scope::Wide } else { Scope::Block };
            self.races.clocks.fence_before(warp, m, live, scope);
        }
    }

    /// The lock during a strong access to global memory, if other blocks are in its scope. `sees`: the thread acquires
    /// what was there.
    pub(crate) fn lock_grid(&mut self, order: &Semantics, warp: usize, sees: bool) -> Option<MutexGuard<'a, Logs>> {
        let mut logs = self.grid.filter(|_| order.strength == Strength::Wide)?.meetings.enter();
        self.races.at_moment(logs.moment(!order.guess && self.races.clocks.may_publish(warp)), sees);
        Some(logs)
    }

    /// After that access, before [`Cta::strong_done`].
    pub(crate) fn strong_access_done(
        &mut self,
        held: Option<MutexGuard<'a, Logs>>,
        order: &Semantics,
        (warp, m, live): (usize, u32, u32),
        at: &[u64; 32],
        touch: FlagAccess,
    ) {
        let Some(mut logs) = held.filter(|logs| logs.any() && !order.guess) else { return };
        for_lanes!(lane in m => {
            self.races.access_global_flag(&mut logs, (warp, lane, live), (self.block, at[lane], touch));
        });
    }

    /// After a strong access to these addresses, in one space; an acquire access has a fence after it.
    pub(crate) fn strong_done(
        &mut self,
        order: &Semantics,
        (warp, m, live): (usize, u32, u32),
        at: &[u64; 32],
        touch: FlagAccess,
    ) {
        if !order.strength.is_strong() || order.guess {
            return;
        }
        for_lanes!(lane in m => {
            self.races.touch((warp, lane, live), at[lane], touch);
        });
        if order.acquire {
            self.races.clocks.fence_after(warp, m, live, order.strength == Strength::Wide);
        } else if order.uncached && touch == FlagAccess::Load {
            self.races.uncached[warp] |= m;
        }
    }

    /// After a store or an update for which others may wait: ends the turn of the warp, so that they may continue
    /// before its other warps and lanes.
    pub(super) fn signal(&mut self, w: &mut Warp, at: usize) -> Next {
        w.frags[at].pc += 1;
        self.signalled = true;
        Next::Stop
    }

    /// Before a barrier: values that lanes have read past the first-level cache are acquired.
    pub(crate) fn barrier_follows(&mut self, warp: usize, m: u32, live: u32) {
        let lanes = self.races.uncached[warp] & m;
        if lanes != 0 {
            self.races.uncached[warp] &= !lanes;
            self.races.clocks.fence_after(warp, lanes, live, true);
        }
    }
}
