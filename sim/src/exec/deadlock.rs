//! The report of a deadlock, with every waiting thread.

use super::warp::{Frag, Wait, Warp};
use crate::exec::cta::Cta;
use crate::report::{Cause, Place, Report, ReportKind};

/// Lanes that wait.
struct Waiter {
    /// The text after "wait".
    text: String,
    place: Place,
    cause: Option<Cause>,
}

impl Cta<'_> {
    /// The report of a block or cluster in which no thread can continue; threads of a cluster are listed by block.
    pub(crate) fn stuck(&self, warps: &[Warp]) -> Box<Report> {
        let mut lines = Vec::new();
        let (mut first, mut divergent, mut flag) = (None, None, None);
        let mut listed = None;
        for warp in warps {
            for frag in &warp.frags {
                let block = self.shapes[self.rank_of(warp.index)].index;
                let Some(Waiter { text, place, cause }) = self.waiter(warps, warp, frag) else { continue };
                if self.ranks > 1 && listed != Some(block) {
                    let [x, y, z] = block;
                    lines.push(format!("block ({x}, {y}, {z}):"));
                    listed = Some(block);
                }
                let number = warp.index % self.cta_warps;
                lines.push(format!("warp {number} lanes {:#010x} wait {text}", frag.mask));
                let found = match frag.wait {
                    Wait::Flag { .. } => &mut flag,
                    Wait::Converge { aligned: true, .. } => &mut divergent,
                    _ => &mut first,
                };
                found.get_or_insert((place, cause, block, self.flag_address(warp, frag)));
            }
        }
        lines.extend(self.absent(warps));
        let (kind, title, found) = match (flag, divergent) {
            // The rest of its warp waits for this thread.
            (Some(found), _) => (ReportKind::Deadlock, "nobody sets the flag that this thread waits for", Some(found)),
            (None, Some(found)) => {
                (ReportKind::Divergence, "part of a warp is at an instruction that needs all of it", Some(found))
            }
            (None, None) => (ReportKind::Deadlock, "no thread can continue", first),
        };
        let message = format!("{title}\n    {}", lines.join("\n    "));
        let (place, cause, block, address) = match found {
            Some((place, cause, block, address)) => (Some(place), cause, block, address),
            None => (None, None, self.shape.index, None),
        };
        Box::new(Report { kind, cause, message, place, other: None, other_block: None, block, address, memory: None })
    }

    /// The waiting state of a fragment, if it waits.
    fn waiter(&self, warps: &[Warp], warp: &Warp, frag: &Frag) -> Option<Waiter> {
        let lane = frag.mask.trailing_zeros() as usize & 31;
        let (text, behind, cause) = match frag.wait {
            Wait::Ready => return None,
            Wait::Barrier { id, .. } => {
                let rank = self.rank_of(warp.index);
                let barrier = &self.barriers[16 * rank + usize::from(id)];
                (barrier.wait_text(id, self.alive[rank]), true, None)
            }
            Wait::Converge { need, aligned } => {
                let text = format!("for lanes {:#010x}", need & !frag.mask);
                (text, false, (!aligned).then_some(Cause::Membermask))
            }
            Wait::Cluster => (self.cluster_text(warps), true, Some(Cause::Cluster)),
            Wait::Registers { more } => (self.register_text(warp, more), false, Some(Cause::Registers)),
            Wait::Poll { at, want } => {
                let object = self.mbarriers.get(&at).map_or("gone".to_owned(), |o| format!("in {o}"));
                let text =
                    format!("for the end of {want} of the mbarrier at shared address {at:#x}, which is {object}");
                (text, true, Some(Cause::Phase))
            }
            Wait::Flag { pc, .. } => {
                let (text, place) = self.flag_text(warp, frag, pc);
                return Some(Waiter { text, place, cause: Some(Cause::Flag) });
            }
        };
        let pc = frag.pc as usize - usize::from(behind);
        let place = self.place(pc, warp.index, lane);
        let text = format!("{text}: `{}` at PTX line {}", place.instruction, place.ptx_line);
        Some(Waiter { text, place, cause })
    }
}
