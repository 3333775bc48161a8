//! The parts of a launch's time that all models use.

use crate::choose::cards::Card;
use crate::choose::cost::Cost;

/// Schedulers of a multiprocessor.
pub(in crate::choose) const SCHEDULERS: f64 = tilec_ir::target::SCHEDULERS as f64;
/// Bytes that shared memory moves per clock.
pub(in crate::choose) const SHARED: f64 = tilec_ir::target::SHARED_BYTES_PER_CLOCK as f64;
/// Most bytes per clock that a multiprocessor loads from the second-level cache.
pub(in crate::choose) const L2_PORT: f64 = 64.0;
/// The share of the second-level cache that holds operands.
pub(in crate::choose) const L2_SHARE: f64 = 0.6;

/// Properties of a launch besides its blocks.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Launch {
    /// Blocks along each grid axis that have work.
    pub(in crate::choose) grid: [f64; 3],
    /// Columns of tiles that are rasterised together.
    pub(in crate::choose) raster: f64,
    /// Bytes of all tensors, each read or written once.
    pub(in crate::choose) bytes: f64,
    /// Of these, bytes of tensors that values are combined with.
    pub(in crate::choose) combined: f64,
    /// Distinct bytes divided by indexed bytes: windows of a convolution overlap.
    pub(in crate::choose) distinct: f64,
    /// Extents that the first two grid axes divide into tiles; 0 if they divide nothing.
    pub(in crate::choose) whole: [f64; 2],
}

/// A term of the predicted time, described at the fields of [`Terms`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the fields of `Terms` have them")]
pub enum Term {
    Products,
    Shared,
    L1,
    L2,
    Memory,
    Latency,
    Barriers,
    Ends,
    Uneven,
    Sectors,
    Rows,
    Combining,
    Conflicts,
    Issue,
    Copies,
    Launch,
}

impl Term {
    /// The units of the card.
    pub const UNITS: [Term; 5] = [Term::Products, Term::Shared, Term::L1, Term::L2, Term::Memory];

    /// All, units of the card first.
    pub const ALL: [Term; 16] = [
        Term::Products,
        Term::Shared,
        Term::L1,
        Term::L2,
        Term::Memory,
        Term::Latency,
        Term::Barriers,
        Term::Ends,
        Term::Uneven,
        Term::Sectors,
        Term::Rows,
        Term::Combining,
        Term::Conflicts,
        Term::Issue,
        Term::Copies,
        Term::Launch,
    ];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Term::Products => "products",
            Term::Shared => "shared memory",
            Term::L1 => "first-level cache",
            Term::L2 => "second-level cache",
            Term::Memory => "memory bandwidth",
            Term::Latency => "latency",
            Term::Barriers => "barriers",
            Term::Ends => "filling and storing",
            Term::Uneven => "uneven waves",
            Term::Sectors => "unused bytes of sectors",
            Term::Rows => "rows of TMA boxes",
            Term::Combining => "atomic operations",
            Term::Conflicts => "bank conflicts",
            Term::Issue => "instruction issue",
            Term::Copies => "copies of operands",
            Term::Launch => "launch",
        }
    }
}

/// Terms of the time in seconds; they may overlap.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Terms {
    /// Products, and the instructions around them.
    pub products: f64,
    /// Shared memory.
    pub shared: f64,
    /// The first-level cache, for copies without products.
    pub l1: f64,
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
    /// Idle multiprocessors, because blocks do not divide evenly among them.
    pub uneven: f64,
    /// Additional time for sectors whose bytes are partly unused, if the code is known.
    pub sectors: f64,
    /// Additional time of rows of TMA boxes that are short, or cross lines.
    pub rows: f64,
    /// Atomic operations of the second-level cache.
    pub combining: f64,
    /// Bank conflicts, if the code is known.
    pub conflicts: f64,
    /// The time by which issuing instructions exceeds all else, if the code is known.
    pub issue: f64,
    /// Launches in front of the kernel that copy its operands to aligned rows.
    pub copies: f64,
    /// Until a launch runs.
    pub launch: f64,
}

impl Terms {
    /// The seconds of a term.
    pub fn of(&self, term: Term) -> f64 {
        match term {
            Term::Products => self.products,
            Term::Shared => self.shared,
            Term::L1 => self.l1,
            Term::L2 => self.l2,
            Term::Memory => self.memory,
            Term::Latency => self.latency,
            Term::Barriers => self.barriers,
            Term::Ends => self.ends,
            Term::Uneven => self.uneven,
            Term::Sectors => self.sectors,
            Term::Rows => self.rows,
            Term::Combining => self.combining,
            Term::Conflicts => self.conflicts,
            Term::Issue => self.issue,
            Term::Copies => self.copies,
            Term::Launch => self.launch,
        }
    }

    /// Their names and values.
    pub fn list(&self) -> [(&'static str, f64); 16] {
        Term::ALL.map(|t| (t.name(), self.of(t)))
    }

    /// [`Self::list`] without terms of waste and of known code that are 0.
    pub fn shown(&self) -> impl Iterator<Item = (Term, f64)> + use<> {
        let (all, of_code) =
            (*self, [Term::L1, Term::Sectors, Term::Rows, Term::Combining, Term::Conflicts, Term::Issue, Term::Copies]);
        let shown = Term::ALL.into_iter().filter(move |t| !of_code.contains(t) || all.of(*t) > 0.0);
        shown.map(move |t| (t, all.of(t)))
    }

    /// The largest term of a launch that runs. Instruction issue counts as largest if it is not 0, because then it
    /// exceeds all else.
    pub fn largest(&self) -> Term {
        if self.issue > 0.0 {
            return Term::Issue;
        }
        let running = Term::ALL.into_iter().filter(|&t| t != Term::Launch);
        running.max_by(|a, b| self.of(*a).total_cmp(&self.of(*b))).unwrap_or(Term::Products)
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
    /// Seconds in which multiprocessors work and wait, without those in which only memory works.
    pub(in crate::choose) working: f64,
    /// The part of the latency that is for loads that do not run ahead.
    pub(in crate::choose) awaited: f64,
    pub(in crate::choose) terms: Terms,
    /// Tiles of the grid that is written.
    pub(in crate::choose) tiles: f64,
    /// Blocks that compute them: more than tiles where several share one, fewer where they stay for several.
    pub(in crate::choose) blocks: f64,
    /// Blocks divided by the number that is resident at once.
    pub(in crate::choose) waves: f64,
    /// Bytes between memory and the second-level cache, and their minimum: those of the tensors.
    pub(in crate::choose) bytes: f64,
    pub(in crate::choose) least_bytes: f64,
}

/// Bytes between memory and the second-level cache.
pub(super) fn traffic(card: &Card, cost: &Cost, launch: &Launch, blocks: f64) -> f64 {
    let Some(tile) = cost.tile else {
        let moved: f64 = cost.parts.iter().map(|p| p.trips * p.moved()).sum();
        return (blocks * moved).max(launch.bytes);
    };
    if launch.bytes <= L2_SHARE * card.l2_size * 1e6 || cost.parts.iter().all(|p| p.product == 0.0) {
        return launch.bytes;
    }
    // Blocks of a wave share rows and columns of the operands.
    let wave = blocks.min(f64::from(card.sms) * cost.resident as f64);
    let strip = launch.raster.min(launch.grid[1]).max(1.0);
    let down = (wave / strip).ceil().min(launch.grid[0]);
    let across = (wave / down).ceil().max(strip.min(wave)).min(launch.grid[1]);
    let part = cost.parts.iter().find(|p| p.product > 0.0);
    let [own, other] = part.map_or([1.0; 2], |part| part.weights(tile));
    let share = (down * own + across * other) / (wave * (own + other));
    let loads: f64 = cost.parts.iter().map(|p| p.trips * p.taken()).sum();
    let swapped: f64 = blocks * cost.parts.iter().map(|p| p.trips * p.swapped).sum::<f64>();
    (loads * blocks * share.min(1.0) * launch.distinct).max(launch.bytes - launch.combined)
        + swapped.max(launch.combined)
}
