//! Threads that have arrived at a barrier, and threads that have not: the second part of the report of a deadlock.
//!
//! [`super::deadlock`] lists the waiting threads. This file adds, for each awaited barrier and mbarrier, which threads
//! have arrived, which arrived in the previous phase but not in this one, and which have exited.

use super::warp::{Frag, Wait, Warp};
use crate::exec::barriers::{Arrivals, SHOWN, numbers};
use crate::exec::cta::Cta;

impl Cta<'_> {
    /// A line for each awaited barrier, and one for threads that have exited.
    pub(super) fn absent(&self, warps: &[Warp]) -> Vec<String> {
        let waits: Vec<(usize, &Frag)> = warps.iter().flat_map(|w| w.frags.iter().map(|f| (w.index, f))).collect();
        let mut barriers: Vec<usize> = Vec::new();
        let mut objects: Vec<u32> = Vec::new();
        for (warp, frag) in waits {
            match frag.wait {
                Wait::Barrier { id, .. } => barriers.push(16 * self.rank_of(warp) + usize::from(id)),
                Wait::Poll { at, .. } => objects.push(at),
                _ => {}
            }
        }
        barriers.sort_unstable();
        barriers.dedup();
        objects.sort_unstable();
        objects.dedup();
        let mut lines: Vec<String> = barriers.iter().map(|at| self.at_barrier(*at)).collect();
        for at in &objects {
            lines.extend(self.at_mbarrier(*at));
        }
        if !barriers.is_empty() || !objects.is_empty() {
            lines.extend(self.gone(warps));
        }
        lines
    }

    fn at_barrier(&self, at: usize) -> String {
        let mut lanes = vec![0u32; self.cta_warps * self.ranks];
        self.barriers[at].participants().for_each(|(warp, came)| lanes[warp] |= came);
        let there: Vec<(usize, u32)> = lanes.into_iter().enumerate().filter(|(_, lanes)| *lanes != 0).collect();
        format!("barrier {} has been reached by {}", at % 16, self.listed(&there))
    }

    /// The threads that have arrived at an mbarrier in this phase, and those that arrived only in the previous one.
    fn at_mbarrier(&self, at: u32) -> Option<String> {
        let Arrivals { now, before } = self.mbarriers.get(&at)?.arrivals();
        let mut text = match now.as_slice() {
            [] => format!("nobody has arrived at the mbarrier at {at:#x} in this phase"),
            all => {
                let more = all.len().saturating_sub(SHOWN);
                let shown = all.iter().take(SHOWN).map(|came| {
                    let instruction = self.place(came.pc, came.warp, came.lanes.trailing_zeros() as usize & 31);
                    let source = instruction.source.map_or(String::new(), |(file, line)| format!(", {file}:{line}"));
                    let who = self.listed(&[(came.warp, came.lanes)]);
                    let (opcode, line) = (instruction.instruction, instruction.ptx_line);
                    format!("{} by {who} (`{opcode}` at PTX line {line}{source})", came.count)
                });
                let shown = shown.collect::<Vec<_>>().join("; ");
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                format!("arrivals at the mbarrier at {at:#x} in this phase: {shown}{more}")
            }
        };
        let missing: Vec<(usize, u32)> = before
            .iter()
            .map(|then| {
                let came = now.iter().filter(|c| c.warp == then.warp).fold(0, |lanes, c| lanes | c.lanes);
                (then.warp, then.lanes & !came)
            })
            .filter(|(_, lanes)| *lanes != 0)
            .collect();
        if !missing.is_empty() {
            text += &format!("; in the phase before there came also {}", self.listed(&missing));
        }
        Some(text)
    }

    /// Warps that have ended, and ended lanes of other warps.
    fn gone(&self, warps: &[Warp]) -> Option<String> {
        let gone = |w: &Warp| (w.index, self.races.clocks.exited(w.index));
        let gone: Vec<(usize, u32)> = warps.iter().map(gone).filter(|(_, lanes)| *lanes != 0).collect();
        (!gone.is_empty()).then(|| format!("exited: {}", self.listed(&gone)))
    }

    fn of_block(&self, warp: usize) -> String {
        if self.ranks == 1 {
            return String::new();
        }
        let [x, y, z] = self.shapes[self.rank_of(warp)].index;
        format!(" of block ({x}, {y}, {z})")
    }

    /// Whole warps as ranges of their numbers, and parts of warps with their lanes; by block, if there are several.
    fn listed(&self, who: &[(usize, u32)]) -> String {
        let mut parts = Vec::new();
        for rank in 0..self.ranks {
            let here = || who.iter().filter(|(warp, _)| self.rank_of(*warp) == rank);
            let is_whole = |(warp, lanes): &&(usize, u32)| *lanes == self.lanes_of(*warp);
            let mut whole: Vec<usize> = here().filter(is_whole).map(|(warp, _)| warp % self.cta_warps).collect();
            whole.sort_unstable();
            whole.dedup();
            let block = self.of_block(rank * self.cta_warps);
            match whole.len() {
                0 => {}
                1 => parts.push(format!("warp {}{block}", whole[0])),
                _ => parts.push(format!("warps {}{block}", numbers(&whole))),
            }
            for (warp, lanes) in here().filter(|w| !is_whole(w)) {
                let lanes: Vec<usize> = (0..32).filter(|lane| lanes >> lane & 1 != 0).collect();
                let s = if lanes.len() == 1 { "" } else { "s" };
                parts.push(format!("lane{s} {} of warp {}{block}", numbers(&lanes), warp % self.cta_warps));
            }
        }
        if parts.is_empty() { "no threads".to_owned() } else { parts.join(" and ") }
    }

    /// The lanes that a warp had at its start.
    fn lanes_of(&self, warp: usize) -> u32 {
        let threads = self.shape.block.iter().product::<u32>() as usize;
        match threads.saturating_sub(warp % self.cta_warps * 32) {
            n if n >= 32 => u32::MAX,
            n => (1 << n) - 1,
        }
    }
}
