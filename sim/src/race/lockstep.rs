//! Code that relies on the lanes of a warp running in lockstep.
//!
//! Strong accesses such as `volatile` never race with each other, and the simulator runs converged lanes in lockstep. A
//! warp reduction from before Volta, `v[t] += v[t + 16]; v[t] += v[t + 8]; ...` on volatile shared memory, therefore
//! gives the right sum here. On a device nothing guarantees that: since sm_70 a lane may read before its neighbour has
//! written, or after it has written again. Such code is recognised by two properties: both lanes took part in both
//! instructions, and nothing in between synchronised them. A lane that waits for another lane's flag does not take part
//! in the instruction that sets it.

use std::collections::VecDeque;

use super::access::Conflict;
use super::clocks::Clocks;
use super::shadow_cell::{Cell, Sets};

/// Number of recent instructions that are remembered per warp.
const KEPT: usize = 8;

/// A strong access to shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Number of the dynamic instruction.
    pub(crate) seq: u32,
    pub(crate) pc: u32,
    pub(crate) lanes: u32,
    pub(crate) writes: bool,
    /// Where each lane did.
    pub(crate) at: [u64; 32],
}

/// The latest steps of each warp.
#[derive(Debug)]
pub(super) struct Steps {
    of: Vec<VecDeque<Step>>,
}

impl Steps {
    pub(super) fn new(warps: usize) -> Steps {
        Steps { of: vec![VecDeque::new(); warps] }
    }

    /// Remembers a strong access. Called before the access is checked.
    pub(super) fn record_strong(&mut self, warp: usize, step: Step) {
        if let Some(steps) = self.of.get_mut(warp) {
            steps.truncate(KEPT - 1);
            steps.push_front(step);
        }
    }

    /// The access that a strong access of a lane to this byte depends on in lockstep; `cell` is its history. That is a
    /// write of another lane of the warp or, for a write, a read, in which both lanes took part and which nothing has
    /// ordered since.
    pub(super) fn with(
        &self,
        clocks: &Clocks,
        sets: &Sets,
        (warp, lane): (usize, usize),
        cell: &Cell,
        writes: bool,
    ) -> Option<Conflict> {
        let both = |other: usize| 1u32 << lane | 1 << other;
        let steps = self.of.get(warp)?;
        let writer = usize::from(cell.write_lane);
        // A lane that wrote the same byte in that instruction finds its own value or another's, in lockstep or not.
        let wrote = |s: &&Step| {
            s.writes && s.seq == cell.write_seq && s.lanes & both(writer) == both(writer) && s.at[lane] != s.at[writer]
        };
        if usize::from(cell.write_agent) == warp
            && writer != lane
            && cell.write_strength.is_strong()
            && !clocks.ordered((warp, lane), (warp, writer), cell.write_clock)
            && let Some(step) = steps.iter().find(wrote)
            && !writes
        {
            return Some(Conflict {
                warp,
                lane: writer,
                pc: step.pc,
                wrote: true,
                copy: false,
                constant: false,
                byte: 0,
            });
        }
        if !writes {
            return None;
        }
        sets.reads(cell).filter(|(agent, read)| *agent == warp && read.strength.is_strong()).find_map(|(_, read)| {
            let reader = (0..32).find(|&other| {
                let unordered = || !clocks.ordered((warp, lane), (warp, other), read.clock);
                other != lane && read.lanes >> other & 1 != 0 && unordered()
            })?;
            let read_by = |s: &&Step| !s.writes && s.pc == read.pc && s.lanes & both(reader) == both(reader);
            let step = steps.iter().find(read_by)?;
            Some(Conflict { warp, lane: reader, pc: step.pc, wrote: false, copy: false, constant: false, byte: 0 })
        })
    }
}
