//! A launch that may overlap previous ones (programmatic stream serialization): its accesses to global memory must be
//! after `griddepcontrol.wait`, of the same thread or of one that is ordered before (PTX ISA 9.7.13.13).

use super::warp::Warp;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::race::Issuer;
use crate::report::{Cause, ReportKind};

impl Cta<'_> {
    /// `griddepcontrol.wait` in the lanes of `m`.
    pub(crate) fn wait_for_grids(&mut self, w: &Warp, m: u32) {
        let clock = self.races.clocks.now(w.index);
        if let Some(cleared) = self.waits.cleared.get_mut(w.index)
            && *cleared & m != m
        {
            *cleared |= m;
            self.waits.waits.push((w.index, m, clock));
        }
    }

    /// Checks that a thread may access global memory.
    #[inline(always)]
    pub(crate) fn after_other_grids(&mut self, who: Issuer) -> Step {
        match self.waits.cleared.get(who.warp) {
            Some(lanes) if self.waits.overlaps && lanes >> who.lane & 1 == 0 => self.ordered_after_wait(who),
            _ => Ok(()),
        }
    }

    #[inline(never)]
    fn ordered_after_wait(&mut self, who: Issuer) -> Step {
        let clocks = &self.races.clocks;
        let waited = self.waits.waits.iter().any(|&(warp, lanes, clock)| {
            let mut lanes = (0..32).filter(|lane| lanes >> lane & 1 != 0);
            lanes.any(|lane| clocks.ordered((who.warp, who.lane), (warp, lane), clock))
        });
        if waited {
            self.waits.cleared[who.warp] |= 1 << who.lane;
            return Ok(());
        }
        let message = "global memory is accessed and no `griddepcontrol.wait` is ordered before: a grid in front of this one, which \
                       the launch may overlap, may still use it";
        Err(Fail::new(ReportKind::Race, message.to_owned()).because(Cause::GridWait).at(who.lane))
    }
}
