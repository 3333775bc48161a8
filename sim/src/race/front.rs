//! Up to where agents of a block are known, and by whom that is passed on.

/// Which of the fenced fronts is of fences of any scope, of those beyond the block or cluster, and of those beyond the block.
pub(super) const ANY: usize = 0;
pub(super) const WIDE: usize = 1;
pub(super) const CLUSTER: usize = 2;
/// Which are those of proxy fences: everything, and initialised mbarriers.
pub(super) const DATA: usize = 3;
pub(super) const OBJECTS: usize = 4;
/// Which is that of mbarriers that relaxed arrivals have published: of them is known that they are initialised, and no more.
pub(super) const INITS: usize = 5;
/// How many there are.
pub(super) const LEVELS: usize = 6;

/// What is known of some lanes of an agent alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) of: u16,
    pub(super) clock: u32,
    pub(super) lanes: u32,
}

/// Up to where agents are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// By agent; nothing is known of those beyond the end.
    pub(super) all: Vec<u32>,
    pub(super) parts: Vec<Part>,
    /// How much is known of other blocks: meetings with them, counted by the block.
    pub(crate) foreign: u32,
}

impl Front {
    /// Up to which clock all lanes of an agent are known.
    #[inline(always)]
    pub(super) fn of(&self, agent: usize) -> u32 {
        self.all.get(agent).copied().unwrap_or(0)
    }

    /// Makes room for so many agents.
    fn widen(&mut self, agents: usize) {
        if self.all.len() < agents {
            self.all.resize(agents, 0);
        }
    }

    /// Adds what another knows.
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

    /// `whole` are the lanes that are all.
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

    /// Up to which clock `lane` of the agent `of` is known.
    pub(super) fn up_to(&self, of: usize, lane: usize) -> u32 {
        let own = self.parts.iter().filter(|p| usize::from(p.of) == of && p.lanes >> lane & 1 != 0);
        own.map(|p| p.clock).fold(self.of(of), u32::max)
    }

    /// Whether an access of `lane` of the agent `of` at `clock` is among what is known.
    pub(crate) fn covers(&self, of: usize, lane: usize, clock: u32) -> bool {
        let part = |p: &Part| usize::from(p.of) == of && p.lanes >> lane & 1 != 0 && clock <= p.clock;
        clock <= self.of(of) || self.parts.iter().any(part)
    }
}

/// Knowledge that can be passed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(super) front: Front,
    /// What of it a fence has followed, and of what else no more is known, by the numbers above.
    pub(super) fenced: [Option<Box<Front>>; LEVELS],
    /// What strong reads have seen that no fence has followed.
    pub(super) seen: Option<Box<Front>>,
}

/// Adds what may be known to what may be known.
pub(super) fn join_some(mine: &mut Option<Box<Front>>, other: Option<&Front>) {
    if let Some(other) = other {
        mine.get_or_insert_default().join(other);
    }
}

impl Known {
    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Known) {
        self.front.join(&other.front);
        for (mine, other) in self.fenced.iter_mut().zip(&other.fenced) {
            join_some(mine, other.as_deref());
        }
        join_some(&mut self.seen, other.seen.as_deref());
    }
}
