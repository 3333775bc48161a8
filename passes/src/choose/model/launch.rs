//! The parts of a launch's time that all models share.

use crate::choose::cards::Card;
use crate::choose::cost::Cost;

/// Schedulers of a multiprocessor.
pub(in crate::choose) const SCHEDULERS: f64 = tilec_ir::target::SCHEDULERS as f64;
/// Bytes that shared memory moves per clock.
pub(in crate::choose) const SHARED: f64 = 128.0;
/// Bytes per clock that a multiprocessor takes from the second-level cache at most.
pub(in crate::choose) const L2_PORT: f64 = 64.0;
/// Share of the second-level cache in which operands stay.
const L2_SHARE: f64 = 0.6;

/// What a launch does besides its blocks.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Launch {
    /// Blocks per grid axis that have something to do.
    pub(in crate::choose) grid: [f64; 3],
    /// Neighbouring columns of blocks walked before the next row.
    pub(in crate::choose) raster: f64,
    /// Bytes of all tensors, each read or written once.
    pub(in crate::choose) bytes: f64,
    /// Share of what is indexed that has memory of its own: windows of a convolution lie over each other.
    pub(in crate::choose) distinct: f64,
    /// What the first two axes of the grid divide into tiles; 0 where they divide nothing.
    pub(in crate::choose) whole: [f64; 2],
}

/// A term of the predicted time; fields of [`Terms`] say what each is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields of `Terms` have them")]
pub enum Term {
    Products,
    Shared,
    L2,
    Memory,
    Latency,
    Barriers,
    Ends,
    Uneven,
    Sectors,
    Conflicts,
    Issue,
}

impl Term {
    /// The units of the card.
    pub const UNITS: [Term; 4] = [Term::Products, Term::Shared, Term::L2, Term::Memory];

    /// All, units of the card first.
    pub const ALL: [Term; 11] = [
        Term::Products,
        Term::Shared,
        Term::L2,
        Term::Memory,
        Term::Latency,
        Term::Barriers,
        Term::Ends,
        Term::Uneven,
        Term::Sectors,
        Term::Conflicts,
        Term::Issue,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Term::Products => "products",
            Term::Shared => "shared memory",
            Term::L2 => "second-level cache",
            Term::Memory => "memory bandwidth",
            Term::Latency => "latency",
            Term::Barriers => "barriers",
            Term::Ends => "filling and storing",
            Term::Uneven => "uneven waves",
            Term::Sectors => "unused bytes of sectors",
            Term::Conflicts => "bank conflicts",
            Term::Issue => "instruction issue",
        }
    }
}

/// Terms of the time, in seconds; what they add up to may overlap.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Terms {
    /// Products, and the instructions around them.
    pub products: f64,
    /// Shared memory.
    pub shared: f64,
    /// The second-level cache.
    pub l2: f64,
    /// Memory.
    pub memory: f64,
    /// Waiting for loads and for dependent instructions.
    pub latency: f64,
    /// Barriers.
    pub barriers: f64,
    /// Filling pipelines and storing results.
    pub ends: f64,
    /// Multiprocessors that are idle because blocks do not divide evenly among them.
    pub uneven: f64,
    /// Sectors whose bytes are not all used, as far as the code is known: what they take longer.
    pub sectors: f64,
    /// Bank conflicts, as far as the code is known.
    pub conflicts: f64,
    /// Issuing instructions for longer than all else takes, as far as the code is known.
    pub issue: f64,
}

impl Terms {
    /// The seconds of a term.
    pub fn of(&self, term: Term) -> f64 {
        match term {
            Term::Products => self.products,
            Term::Shared => self.shared,
            Term::L2 => self.l2,
            Term::Memory => self.memory,
            Term::Latency => self.latency,
            Term::Barriers => self.barriers,
            Term::Ends => self.ends,
            Term::Uneven => self.uneven,
            Term::Sectors => self.sectors,
            Term::Conflicts => self.conflicts,
            Term::Issue => self.issue,
        }
    }

    /// Their names and values.
    pub fn list(&self) -> [(&'static str, f64); 11] {
        Term::ALL.map(|t| (t.name(), self.of(t)))
    }

    /// The same without what only known code has, where there is none of it.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let (all, of_code) = (*self, [Term::Sectors, Term::Conflicts, Term::Issue]);
        let shown = Term::ALL.into_iter().filter(move |t| !of_code.contains(t) || all.of(*t) > 0.0);
        shown.map(move |t| (t.name(), all.of(t)))
    }

    /// The term that takes longest: instruction issue, where there is any of it, since it is what all else is shorter than.
    pub fn largest(&self) -> Term {
        if self.issue > 0.0 {
            return Term::Issue;
        }
        Term::ALL.into_iter().max_by(|a, b| self.of(*a).total_cmp(&self.of(*b))).unwrap_or(Term::Products)
    }

    /// What takes longest.
    pub fn limit(&self) -> &'static str {
        self.largest().name()
    }
}

/// The time of a launch.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(in crate::choose) struct Time {
    pub(in crate::choose) seconds: f64,
    pub(in crate::choose) terms: Terms,
    /// Tiles of the grid that is written.
    pub(in crate::choose) tiles: f64,
    /// Blocks that compute them: more than tiles where several share one, fewer where they stay for several.
    pub(in crate::choose) blocks: f64,
    /// Blocks over what is resident at once.
    pub(in crate::choose) waves: f64,
    /// Bytes that pass between memory and the second-level cache, and the least that could: those of the tensors.
    pub(in crate::choose) bytes: f64,
    pub(in crate::choose) least_bytes: f64,
}

/// Bytes that pass between memory and the second-level cache.
pub(super) fn traffic(card: &Card, cost: &Cost, launch: &Launch, blocks: f64) -> f64 {
    let Some(tile) = cost.tile else {
        let moved: f64 = cost.parts.iter().map(|p| p.trips * (p.loads + p.stores)).sum();
        return (blocks * moved).max(launch.bytes);
    };
    if launch.bytes <= L2_SHARE * card.l2_size * 1e6 || cost.parts.iter().all(|p| p.product == 0.0) {
        return launch.bytes;
    }
    // Blocks of a wave share the rows and columns of the operands that they have in common.
    let wave = blocks.min(f64::from(card.sms) * cost.resident as f64);
    let strip = launch.raster.min(launch.grid[1]).max(1.0);
    let down = (wave / strip).ceil().min(launch.grid[0]);
    let across = (wave / down).ceil().max(strip.min(wave)).min(launch.grid[1]);
    let part = cost.parts.iter().find(|p| p.product > 0.0);
    let [own, other] = part.map_or([1.0; 2], |part| part.weights(tile));
    let share = (down * own + across * other) / (wave * (own + other));
    let loads: f64 = cost.parts.iter().map(|p| p.trips * p.taken()).sum();
    (loads * blocks * share.min(1.0) * launch.distinct).max(launch.bytes)
}
