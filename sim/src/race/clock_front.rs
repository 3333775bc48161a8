//! Fronts of vector clocks: for each agent (lane or asynchronous operation) of a block, the latest event that happens
//! before the current one.

/// Indices of the fenced fronts: fences of any scope, beyond the block or cluster, and beyond the block.
pub(super) const ANY: usize = 0;
pub(super) const WIDE: usize = 1;
pub(super) const CLUSTER: usize = 2;
/// Indices of the fronts of proxy fences: all data, and initialised mbarriers only.
pub(super) const DATA: usize = 3;
pub(super) const OBJECTS: usize = 4;
/// Index of the mbarriers published by relaxed arrivals: only their initialisation is ordered.
pub(super) const INITS: usize = 5;
/// How many there are.
pub(super) const LEVELS: usize = 6;

/// The clock up to which some lanes of an agent happen before the current event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) of: u16,
    pub(super) clock: u32,
    pub(super) lanes: u32,
}

/// For each agent, the clock up to which its accesses happen before the current event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// Per agent; agents beyond the end have clock 0.
    pub(super) all: Vec<u32>,
    pub(super) parts: Vec<Part>,
    /// Number of observations of other blocks that are included, as counted by the block.
    pub(crate) foreign: u32,
}

impl Front {
    /// The clock up to which all lanes of an agent are included.
    #[inline(always)]
    pub(super) fn of(&self, agent: usize) -> u32 {
        self.all.get(agent).copied().unwrap_or(0)
    }

    /// Extends the front to this number of agents.
    fn widen(&mut self, agents: usize) {
        if self.all.len() < agents {
            self.all.resize(agents, 0);
        }
    }

    /// Joins another front.
    pub(crate) fn join(&mut self, other: &Front) {
        self.widen(other.all.len());
        for (a, b) in self.all.iter_mut().zip(&other.all) {
            *a = (*a).max(*b);
        }
        self.foreign = self.foreign.max(other.foreign);
        for part in &other.parts {
            self.join_part(*part, u32::MAX);
        }
    }

    /// Joins a part; `whole` is the mask of all lanes of the agent.
    pub(super) fn join_part(&mut self, part: Part, whole: u32) {
        let of = usize::from(part.of);
        self.widen(of + 1);
        let all = &mut self.all[of];
        if part.clock <= *all {
            return;
        }
        let mut joined = part;
        if let Some(same) = self.parts.iter_mut().find(|p| p.of == part.of) {
            if same.clock > *all {
                (joined.clock, joined.lanes) = (part.clock.max(same.clock), part.lanes | same.lanes);
            }
            *same = joined;
        } else {
            self.parts.push(joined);
        }
        if joined.lanes & whole == whole {
            *all = joined.clock;
        }
    }

    /// The clock up to which `lane` of the agent `of` is included.
    pub(super) fn up_to(&self, of: usize, lane: usize) -> u32 {
        let own = self.parts.iter().filter(|p| usize::from(p.of) == of && p.lanes >> lane & 1 != 0);
        own.map(|p| p.clock).fold(self.of(of), u32::max)
    }

    /// Whether an access of `lane` of the agent `of` at `clock` is included.
    pub(crate) fn covers(&self, of: usize, lane: usize, clock: u32) -> bool {
        let part = |p: &Part| usize::from(p.of) == of && p.lanes >> lane & 1 != 0 && clock <= p.clock;
        clock <= self.of(of) || self.parts.iter().any(part)
    }
}

/// A front with the parts of it that release and acquire patterns need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(super) front: Front,
    /// The fenced parts of the front, indexed by the constants above.
    pub(super) fenced: [Option<Box<Front>>; LEVELS],
    /// What strong reads have observed without a fence since.
    pub(super) observed: Option<Box<Front>>,
}

/// Joins two optional fronts.
pub(super) fn join_some(mine: &mut Option<Box<Front>>, other: Option<&Front>) {
    if let Some(other) = other {
        mine.get_or_insert_default().join(other);
    }
}

impl Known {
    /// Joins another one.
    pub(crate) fn join(&mut self, other: &Known) {
        self.front.join(&other.front);
        for (mine, other) in self.fenced.iter_mut().zip(&other.fenced) {
            join_some(mine, other.as_deref());
        }
        join_some(&mut self.observed, other.observed.as_deref());
    }
}
