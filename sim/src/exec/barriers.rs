//! The state of barriers.

use crate::race::Known;
use std::fmt;

/// A named barrier of the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that have arrived in this phase, whole warps counted as 32.
    pub(crate) arrived: u32,
    /// Those of them that there are.
    pub(crate) threads: u32,
    /// Threads it waits for, if someone said so.
    pub(crate) expected: Option<u32>,
    /// What the participants know.
    pub(crate) known: Known,
    /// Phases completed.
    pub(crate) phase: u32,
    /// Where someone arrived last.
    pub(crate) last: u32,
    /// Warps and lanes in this phase.
    pub(crate) participants: Vec<(usize, u32)>,
    /// `bar.red`: lanes with a true predicate, and lanes in all.
    pub(crate) yes: u32,
    pub(crate) total: u32,
}

impl Barrier {
    /// Warps and lanes that have arrived in this phase.
    pub(crate) fn participants(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.participants.iter().copied()
    }

    /// Where its waiters wait, for a report; `alive` are all threads of the block.
    pub(crate) fn wait_text(&self, id: u8, alive: u32) -> String {
        let (arrived, expected) = match self.expected {
            Some(n) => (self.arrived, n),
            None => (self.threads, alive),
        };
        format!("at barrier {id}, phase {}, where {arrived} of {expected} threads are", self.phase)
    }
}

/// The barrier of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterBarrier {
    /// Lanes of each warp that have arrived in this phase, and those that have arrived and not waited.
    pub(crate) arrived: Vec<u32>,
    pub(crate) owing: Vec<u32>,
    /// What the arrived threads have published.
    pub(crate) known: Known,
    /// What those have done whose arrivals are relaxed: it has begun, and for nobody more than that.
    pub(crate) begun: Known,
    /// Both, of the last phase.
    pub(crate) done: [Known; 2],
    pub(crate) phase: u32,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Arrivals of the next phases.
    pub(crate) expected: u32,
    pub(crate) pending: u32,
    /// Bytes announced and not yet seen.
    pub(crate) tx: i64,
    /// Bytes announced in this phase, for reports.
    pub(crate) announced: i64,
    pub(crate) arrivals: Arrivals,
    pub(crate) phase: u32,
    /// What arrived threads know, in this phase and in the one before.
    pub(crate) known: Known,
    pub(crate) done: Known,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "phase {} with {} of {} arrivals pending", self.phase, self.pending, self.expected)?;
        match self.tx {
            0 => Ok(()),
            1.. if self.announced > self.tx => write!(f, " and {} of {} bytes pending", self.tx, self.announced),
            1.. => write!(f, " and {} bytes pending", self.tx),
            _ => write!(f, " and {} bytes more than were announced", -self.tx),
        }
    }
}

impl Object {
    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }
}

/// Who has waited for the grids in front of this one.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// There may be some.
    pub(crate) overlaps: bool,
    /// Warp, lanes and clock of every wait.
    pub(crate) waits: Vec<(usize, u32, u32)>,
    /// Lanes of each warp whose accesses are known to come after one.
    pub(crate) cleared: Vec<u32>,
}

impl Waits {
    pub(crate) fn new(overlaps: bool, warps: usize) -> Waits {
        Waits { overlaps, waits: Vec::new(), cleared: vec![0; if overlaps { warps } else { 0 }] }
    }
}

/// Instructions of an mbarrier's arrivals that are listed.
pub(crate) const SHOWN: usize = 4;

/// Arrivals of lanes of a warp by one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) warp: usize,
    pub(crate) pc: usize,
    pub(crate) lanes: u32,
    /// How many they count as.
    pub(crate) count: u32,
}

/// The arrivals at an mbarrier in this phase and in the one before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) now: Vec<Came>,
    pub(crate) before: Vec<Came>,
}

impl Arrivals {
    pub(crate) fn add(&mut self, (warp, lane, pc): (usize, usize, usize), count: u32) {
        match self.now.last_mut() {
            Some(last) if (last.warp, last.pc) == (warp, pc) => {
                last.lanes |= 1 << lane;
                last.count += count;
            }
            _ => self.now.push(Came { warp, pc, lanes: 1 << lane, count }),
        }
    }

    /// The phase ends.
    pub(crate) fn next(&mut self) {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
    }
}

/// Numbers, with those that follow each other as a range: `0 to 3, 7`.
pub(crate) fn numbers(all: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &n in all {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == n => *end = n,
            _ => runs.push((n, n)),
        }
    }
    let shown = runs.iter().map(|(first, end)| match end - first {
        0 => first.to_string(),
        1 => format!("{first}, {end}"),
        _ => format!("{first} to {end}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}
