//! `setmaxnreg` (PTX 9.7.20.5): warps release registers to their block and take more.
//!
//! The simulator only checks that the requested registers are available. The assembler ignores the instruction unless
//! the number of registers at the start is fixed.

use super::warp::{Wait, Warp};
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::outcome::Next;
use crate::program::Entry;
use crate::report::ReportKind;

/// Registers of a block.
const FILE: u32 = 1 << 16;

/// Registers of a thread when the kernel starts, if they are fixed.
pub(crate) fn at_start(entry: &Entry) -> Option<u32> {
    if let Some(n) = entry.max_registers.filter(|n| *n < 256) {
        return Some(n / 8 * 8);
    }
    let threads = entry.required_threads.or(entry.max_threads)?.iter().fold(1u32, |n, d| n.saturating_mul(*d));
    let blocks = entry.min_blocks?;
    // An instruction can name at most 255 registers, but 256 can be allocated.
    Some((FILE / threads.max(1) / blocks.max(1) / 8 * 8).min(256))
}

impl Cta<'_> {
    /// Releases registers, or takes them and waits until there are enough.
    pub(crate) fn max_registers(&mut self, w: &mut Warp, at: usize, (inc, n): (bool, u32)) -> Result<Next, Box<Fail>> {
        let local = w.index % self.cta_warps;
        if local / 4 * 4 + 4 > self.cta_warps {
            let message = format!("warp {local} belongs to no group of four warps: the block has {}", self.cta_warps);
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        let Some(start) = at_start(self.entry) else {
            let message = "the assembler ignores this: say how many registers the kernel starts with, by `.maxnreg`, or by `.maxntid` \
                           and `.minnctapersm`";
            return Err(Fail::new(ReportKind::Invalid, message));
        };
        let have = w.registers.unwrap_or(start);
        let pool = &mut self.pools[w.index / self.cta_warps];
        if (inc && n < have) || (!inc && n > have) {
            let verb = if inc { "raised" } else { "lowered" };
            let message = format!("a limit of {have} registers cannot be {verb} to {n}");
            return Err(Fail::new(ReportKind::Invalid, message));
        }
        if inc {
            let more = 32 * (n - have);
            if more > pool.free {
                w.frags[at].wait = Wait::Registers { more };
                return Ok(Next::Stop);
            }
            pool.free -= more;
        } else {
            pool.free += 32 * (have - n);
            self.freed = true;
        }
        w.registers = Some(n);
        Ok(Next::Advance)
    }

    /// Wakes warps that wait for available registers. The result says whether there was one.
    pub(crate) fn release_registers(&mut self, warps: &mut [Warp]) -> bool {
        self.freed = false;
        let mut any = false;
        for w in warps {
            let free = self.pools[w.index / self.cta_warps].free;
            for frag in &mut w.frags {
                if matches!(frag.wait, Wait::Registers { more } if more <= free) {
                    frag.wait = Wait::Ready;
                    any = true;
                }
            }
        }
        any
    }

    /// How many registers a warp waits for, for a report.
    pub(crate) fn register_text(&self, w: &Warp, more: u32) -> String {
        let free = self.pools[w.index / self.cta_warps].free;
        format!(
            "for {more} registers, of which the block has {free} free: what warps give back must be as much as others take"
        )
    }
}
