//! The state of barriers.

use crate::race::Known;
use std::fmt;

/// A named barrier of the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that have arrived in this phase, whole warps counted as 32.
    pub(crate) arrived: u32,
    /// The threads among them that exist.
    pub(crate) threads: u32,
    /// The expected number of threads, if an instruction gave one.
    pub(crate) expected: Option<u32>,
    /// The joined clocks of the participants.
    pub(crate) known: Known,
    /// Phases completed.
    pub(crate) phase: u32,
    /// The last arriving instruction.
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

    /// The state of its waiting threads, for a report; `alive` is the number of live threads of the block.
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
    /// Lanes of each warp that have arrived in this phase, and lanes that have arrived and not waited.
    pub(crate) arrived: Vec<u32>,
    pub(crate) owing: Vec<u32>,
    /// The joined clocks of the arrived threads.
    pub(crate) known: Known,
    /// The joined clocks of threads with relaxed arrivals: they order only that the threads have started.
    pub(crate) begun: Known,
    /// Both, for the last phase.
    pub(crate) done: [Known; 2],
    pub(crate) phase: u32,
}

/// An object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    /// Number of arrivals in the next phases.
    pub(crate) expected: u32,
    pub(crate) pending: u32,
    /// Bytes announced and not landed yet.
    pub(crate) tx: i64,
    /// Bytes announced in this phase, for reports.
    pub(crate) announced: i64,
    pub(crate) arrivals: Arrivals,
    pub(crate) phase: u32,
    /// The joined clocks of arrived threads, in this phase and in the previous one.
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

/// Threads that have waited for the previous grids.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// There may be some.
    pub(crate) overlaps: bool,
    /// Warp, lanes and clock of every wait.
    pub(crate) waits: Vec<(usize, u32, u32)>,
    /// Lanes of each warp whose accesses are known to follow a wait.
    pub(crate) cleared: Vec<u32>,
}

impl Waits {
    pub(crate) fn new(overlaps: bool, warps: usize) -> Waits {
        Waits { overlaps, waits: Vec::new(), cleared: vec![0; if overlaps { warps } else { 0 }] }
    }
}

/// Most instructions that are listed for an mbarrier's arrivals.
pub(crate) const SHOWN: usize = 4;

/// Arrivals of lanes of a warp by one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpArrivals {
    pub(crate) warp: usize,
    pub(crate) pc: usize,
    pub(crate) lanes: u32,
    /// The number of arrivals.
    pub(crate) count: u32,
}

/// The arrivals at an mbarrier in this phase and in the previous one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) now: Vec<WarpArrivals>,
    pub(crate) before: Vec<WarpArrivals>,
}

impl Arrivals {
    pub(crate) fn add(&mut self, (warp, lane, pc): (usize, usize, usize), count: u32) {
        match self.now.last_mut() {
            Some(last) if (last.warp, last.pc) == (warp, pc) => {
                last.lanes |= 1 << lane;
                last.count += count;
            }
            _ => self.now.push(WarpArrivals { warp, pc, lanes: 1 << lane, count }),
        }
    }

    /// The phase ends.
    pub(crate) fn next(&mut self) {
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.clear();
    }
}

/// Numbers as text, with consecutive ones as a range: `0 to 3, 7`.
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
