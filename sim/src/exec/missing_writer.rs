//! Finds the missing writer of a premature read.
//!
//! Without a barrier between a store and a load, the scheduler may run the load first, which then reads undefined data.
//! That is a race. So the other warps continue for a while: if one of them writes the word, the report is the race and
//! names both instructions; otherwise the report does not change.

use super::warp::{Wait, Warp};
use crate::exec::cta::Cta;
use crate::exec::rng::Rng;
use crate::report::{Cause, Place, Report, ReportKind};

/// Most turns of other warps, for each warp of the block.
const TURNS: usize = 4;

impl Cta<'_> {
    /// A better report than that of the failed turn of `reader`, or the same.
    pub(super) fn explain(
        &mut self,
        warps: &mut [Warp],
        reader: usize,
        report: Box<Report>,
        rng: &mut Rng,
    ) -> Box<Report> {
        let at = |place: &Option<Place>| place.as_ref().map(|p| (p.ptx_line, p.columns));
        // The reads that may have been premature.
        let early: Vec<_> = match (report.kind, report.cause) {
            (ReportKind::Uninitialised, _) => vec![at(&report.place)],
            (ReportKind::Undefined, Some(Cause::Unwritten)) => {
                let own = self.unwritten.keys().filter(|(warp, ..)| *warp == reader);
                own.map(|(warp, lane, pc)| at(&Some(self.place(*pc, *warp, *lane)))).collect()
            }
            _ => return report,
        };
        let mut stopped = vec![false; warps.len()];
        stopped[reader] = true;
        for _ in 0..TURNS * warps.len() {
            let is_ready = |w: &Warp| !stopped[w.index] && w.frags.iter().any(|f| f.wait == Wait::Ready);
            let ready: Vec<usize> = (0..warps.len()).filter(|i| is_ready(&warps[*i])).collect();
            if ready.is_empty() {
                break;
            }
            let pick = ready[rng.below(ready.len())];
            let Err(other) = self.turn(warps, pick) else { continue };
            match other.kind {
                // The read was recorded before it failed.
                ReportKind::Race if early.contains(&at(&other.other)) => return other,
                // This read was premature, too.
                ReportKind::Uninitialised | ReportKind::Undefined => stopped[pick] = true,
                _ => break,
            }
        }
        report
    }
}
