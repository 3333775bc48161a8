//! Reports strong accesses to shared memory that rely on lanes executing in lockstep; [`crate::race`] finds them.

use super::access::for_lanes;
use crate::exec::cta::Cta;
use crate::exec::fail::{Fail, Step};
use crate::program::Semantics;
use crate::race::LockStep;
use crate::report::{Cause, ReportKind};

impl Cta<'_> {
    /// Before a strong access of the lanes in `step` to these addresses of shared memory.
    pub(crate) fn check_step(
        &mut self,
        order: &Semantics,
        warp: usize,
        step: LockStep,
        at: &[u64; 32],
        bytes: u64,
    ) -> Step {
        // A polling thread waits for others in any order.
        if !order.strength.is_strong() || order.guess || order.polls {
            return Ok(());
        }
        for_lanes!(lane in step.lanes => {
            for word in (0..bytes).step_by(4) {
                let address = at[lane].saturating_add(word) as usize;
                if let Some(conflict) = self.races.in_step_with((warp, lane), address, step.writes) {
                    let (mine, theirs) = if step.writes { ("write", "read") } else { ("read", "write") };
                    let message = format!(
                        "this {mine} of shared address {address:#x} and an earlier {theirs} by another lane of the warp count on \
                         lanes running in step, which they need not since sm_70, `volatile` or not"
                    );
                    let fail = Fail::new(ReportKind::Race, message).because(Cause::Lockstep);
                    return Err(fail.at(lane).in_shared(address as u64).against(conflict));
                }
            }
        });
        self.races.record_strong(warp, step);
        Ok(())
    }
}
