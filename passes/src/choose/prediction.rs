//! Predictions as data and as text.

use super::cards::Card;
use super::copied_elements::{Place, Unknown};
use super::kept::Kept;
use super::model::launch::{L2_PORT, SCHEDULERS, SHARED, Term, Terms};
use super::padding::Padding;
use std::fmt;

/// Seconds by which waste of a unit makes a launch longer. What other work hides adds nothing.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Added {
    /// Unused bytes of sectors, beside products.
    pub sectors: f64,
    /// Rows of TMA boxes that are short, or cross lines.
    pub rows: f64,
    /// Atomic operations of the second-level cache.
    pub combining: f64,
    /// Bank conflicts.
    pub conflicts: f64,
}

/// Waits of the blocks of a multiprocessor for what their threads load in loops.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Waits {
    /// Clocks of all blocks, if each waited alone.
    pub clocks: f64,
    /// Blocks at a time.
    pub resident: f64,
}

/// What is known of the code of a launch.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Learned {
    /// Blocks that are launched; 0: not known.
    pub blocks: f64,
    /// Warps of a block; 0: not known.
    pub warps: f64,
    /// Instructions, over all warps.
    pub issued: f64,
    /// Of these, additions, products and multiply-adds of f32.
    pub f32_arithmetic: f64,
    /// Wavefronts of shared memory beyond those that the widths of accesses need, over all warps.
    pub conflicts: f64,
    /// Waits for loads by threads.
    pub waits: Waits,
}

impl Learned {
    /// Multiprocessors that have blocks.
    fn multiprocessors(&self, card: &Card) -> f64 {
        let all = f64::from(card.sms);
        if self.blocks > 0.0 { self.blocks.min(all) } else { all }
    }

    /// Schedulers of these that have warps, with so many blocks resident.
    fn schedulers(&self, card: &Card, resident: u64) -> f64 {
        let blocks = (self.blocks / f64::from(card.sms)).ceil().min(resident as f64).max(1.0);
        let each = if self.warps > 0.0 { (self.warps * blocks).min(SCHEDULERS) } else { SCHEDULERS };
        each * self.multiprocessors(card)
    }
}

/// The model's prediction for a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    /// The card.
    pub card: &'static str,
    /// The sizes, in the order of the kernel.
    pub sizes: Vec<(String, i64)>,
    /// Whether some of them were given.
    pub sizes_given: bool,
    /// Time of a launch.
    pub seconds: f64,
    /// The part of it in which multiprocessors work and wait, not memory alone.
    pub working: f64,
    /// The part of the latency that is for loads that do not run ahead of their use.
    pub awaited: f64,
    /// Bytes between memory and the second-level cache.
    pub bytes: f64,
    /// The minimum of these bytes: each tensor is read or written once.
    pub least_bytes: f64,
    /// How many times each tensor is read from memory, for kernels without products: bytes of its loads by the bytes
    /// that are needed of it.
    pub reads: Vec<(String, f64)>,
    /// Operations of its products, two for each multiply-add, including padding.
    pub flops: f64,
    /// The terms of the time.
    pub terms: Terms,
    /// What waste adds to the time, if the code is known.
    pub added: Added,
    /// Tiles of the grid that is written.
    pub tiles: f64,
    /// Blocks that compute them: more than tiles where several share one along the reduction.
    pub blocks: f64,
    /// Tiles, or blocks if these share tiles, divided by the number that is resident at once.
    pub waves: f64,
    /// Blocks resident on a multiprocessor.
    pub resident: u64,
    /// Threads of a block.
    pub threads: u64,
    /// Registers of a thread that hold tiles.
    pub registers: u64,
    /// Bytes of shared memory of a block.
    pub shared: u64,
    /// The instruction of the first product.
    pub atom: Option<&'static str>,
    /// The traffic of each copy in a launch, along the common branches.
    pub places: Vec<Place>,
    /// A loop whose number of iterations depends on data: it is counted once.
    pub unknown: Option<Unknown>,
    /// The part of the work that is beyond the edges of tensors.
    pub padding: Padding,
}

impl Prediction {
    /// Seconds of a launch; `None`: a loop runs as often as data say, and counts once in [`Self::seconds`].
    pub fn known_seconds(&self) -> Option<f64> {
        self.unknown.is_none().then_some(self.seconds)
    }

    /// Refines the prediction with known code. `times` gives the ratio of moved to used bytes of a copy, in sectors of
    /// a tensor.
    pub fn learn(&mut self, times: impl Fn(&Place) -> f64, of: &Learned) {
        let Some(card) = Card::from_name(self.card).filter(|_| self.unknown.is_none()) else { return };
        let sms = of.multiprocessors(card);
        self.terms.conflicts = of.conflicts / sms / (card.clock * 1e9);
        match self.has_products() {
            true => self.learn_beside_products(card, sms, times),
            false => self.learn_copies(card, sms, times),
        }
        self.learn_waits(card, of.waits);
        // A scheduler issues one instruction per clock. Where it has 16 lanes for f32, one of f32 occupies them for two.
        // The term is the time beyond everything else.
        let slots = of.issued.max(of.f32_arithmetic * card.f32_clocks());
        let issuing = self.started(slots / of.schedulers(card, self.resident) / (card.clock * 1e9));
        self.terms.issue = (issuing - self.seconds).max(0.0);
        self.seconds = self.seconds.max(issuing);
    }

    /// Adds the waste of copies for a kernel without products, of which `sms` multiprocessors have blocks.
    fn learn_copies(&mut self, card: &Card, sms: f64, times: impl Fn(&Place) -> f64) {
        let clock = card.clock * 1e9;
        let all = |global: bool| self.places.iter().filter(move |place| place.global == global);
        let used: f64 = all(true).map(|place| place.bytes * place.once).sum();
        let from_memory: f64 = all(true).map(Place::memory_bytes).sum();
        // What the next iteration finds in the first-level cache does not pass the second again.
        let passing = |place: &Place| if place.kept == Kept::L1 { 1.0 } else { times(place) };
        let moved: f64 = all(true).map(|place| place.bytes * place.once * passing(place)).sum();
        let cache = L2_PORT.min(card.l2 / sms) * sms * clock;
        // Elements that an iteration loads more than once: sectors with all of them pass the first-level cache.
        let again = all(true).any(|place| place.once < 1.0 || place.kept == Kept::L1);
        let first = |of: &dyn Fn(&Place) -> f64| {
            let bytes: f64 = all(true).map(|place| place.bytes * of(place)).sum();
            if again { bytes / (SHARED * sms * clock) } else { 0.0 }
        };
        let (l1, all_l1) = (first(&|_| 1.0), first(&times));
        // Neighbouring blocks usually share a sector that is read once: memory moves what the model says.
        let memory = self.bytes.min(from_memory).max(self.least_bytes) / (card.dram * 1e9);
        let needed = memory.max(used / cache).max(l1);
        let sectors = (self.terms.memory.max(moved / cache).max(all_l1) - needed).max(0.0);
        self.terms = Terms { memory, l1, l2: used / cache, sectors, ..self.terms };
        self.seconds = self.seconds.max(self.started(needed + sectors));
        self.added = Added { conflicts: self.wasted(Term::Shared, Term::Conflicts), ..self.added };
    }

    /// Adds the waste of copies for a kernel with products. Copies overlap with products, so the bottleneck stays the
    /// longest term.
    fn learn_beside_products(&mut self, card: &Card, sms: f64, times: impl Fn(&Place) -> f64) {
        let clock = card.clock * 1e9;
        let own = self.places.iter().filter(|place| place.global);
        let wasted: f64 = own.map(|place| place.bytes * (times(place) - 1.0)).sum();
        self.terms.sectors = wasted / (L2_PORT.min(card.l2 / sms) * sms * clock);
        self.added.sectors = self.wasted(Term::L2, Term::Sectors);
        self.added.conflicts = self.wasted(Term::Shared, Term::Conflicts);
    }

    /// Says what of the latency is for loads that blocks wait for.
    pub fn has_waits(&mut self, waits: Waits) {
        let Some(card) = Card::from_name(self.card) else { return };
        let alone = waits.clocks / waits.resident.max(1.0) / (card.clock * 1e9);
        self.awaited = self.awaited.max(alone.min(self.terms.latency));
    }

    /// Adds what blocks wait for loads while no block beside them works. Latency that the prediction has is that of the same
    /// loads.
    fn learn_waits(&mut self, card: &Card, waits: Waits) {
        if waits.clocks <= 0.0 {
            return;
        }
        let busy = (self.working - self.terms.latency).max(0.0);
        let beside = 1.0 - 1.0 / waits.resident.max(1.0);
        let alone = waits.clocks / waits.resident.max(1.0) / (card.clock * 1e9);
        let waiting = (alone - beside * busy).max(0.0);
        let more = (self.started(busy + waiting) - self.seconds).max(0.0);
        self.terms.latency += more;
        self.awaited += more;
        self.working += more;
        self.seconds += more;
    }

    /// Has the launch last as long as a unit works, waste included; returns the seconds that this adds.
    fn wasted(&mut self, unit: Term, waste: Term) -> f64 {
        let with = self.started(self.terms.of(unit) + self.terms.of(waste)).max(self.seconds);
        let added = with - self.seconds;
        self.seconds = with;
        added
    }

    /// With products: the waste that a launch waits for, in place of useful work of a unit.
    pub fn wasteful(&self) -> Option<Term> {
        match self.added {
            _ if !self.has_products() => None,
            Added { conflicts, .. } if conflicts > 0.0 => Some(Term::Conflicts),
            Added { rows, .. } if rows > 0.0 => Some(Term::Rows),
            Added { sectors, .. } if sectors > 0.0 => Some(Term::Sectors),
            _ => None,
        }
    }

    /// The prediction with the launches that copy operands in front of the kernel. They run one after the other, so
    /// their times are added; what they move is moved in addition.
    #[must_use]
    pub fn with_copies<'a>(&self, copies: impl Iterator<Item = &'a Prediction>) -> Prediction {
        copies.fold(self.clone(), |mut all, copy| {
            all.seconds += copy.seconds;
            all.terms.copies += copy.seconds;
            all.bytes += copy.bytes;
            all
        })
    }

    /// The seconds of a launch whose blocks run for `working` seconds.
    fn started(&self, working: f64) -> f64 {
        self.terms.launch + working
    }

    /// Seconds of the launch that are for bytes beyond the minimum: what memory takes for them and no other unit hides.
    pub fn seconds_of_excess(&self) -> f64 {
        if self.terms.issue > 0.0 || self.bytes <= self.least_bytes {
            return 0.0;
        }
        let excess = self.terms.memory * (1.0 - self.least_bytes / self.bytes);
        if self.busiest().0 != Term::Memory {
            let adds = 1e-6 * self.budget().part(Term::Memory);
            return adds.min(excess);
        }
        let next = Term::UNITS.into_iter().filter(|&t| t != Term::Memory).map(|t| self.terms.of(t)).fold(0.0, f64::max);
        excess.min((self.terms.memory - next).max(0.0))
    }

    pub(super) fn has_products(&self) -> bool {
        self.flops > 0.0
    }

    /// Whether a term is work that other work may hide, not waiting.
    pub(super) fn overlaps(&self, term: Term) -> bool {
        Term::UNITS.contains(&term)
    }

    /// The busiest unit (tensor cores, shared memory, second-level cache or memory), and the share of the time in which
    /// it works: `predicted .. roofline`.
    pub fn busiest(&self) -> (Term, f64) {
        let unit = Term::UNITS.into_iter().max_by(|a, b| self.terms.of(*a).total_cmp(&self.terms.of(*b)));
        let unit = unit.unwrap_or(Term::Products);
        (unit, self.terms.of(unit) / self.seconds)
    }
}

/// A choice and the reason for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Names and values of the parameters that were chosen.
    pub values: Vec<(String, i64)>,
    /// Their prediction.
    pub prediction: Prediction,
    /// Legal candidates.
    pub candidates: usize,
    /// The best other candidate.
    pub runner_up: Option<RunnerUp>,
}

/// The best candidate that was not chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct RunnerUp {
    /// Names and values of the parameters.
    pub values: Vec<(String, i64)>,
    /// How much longer it takes, as a share; negative if a rule decided.
    pub slower: f64,
    /// The reason against it.
    pub by: RejectReason,
}

/// The reason against a candidate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RejectReason {
    /// Its time: the term that grew most.
    Time(&'static str),
    /// A rule: by the model alone, it would have won.
    Rule(String),
}

impl RunnerUp {
    /// For a candidate that is slower by this share, with its own terms and those of the chosen one. `rule`: the reason
    /// against it, if it is not the time.
    pub(super) fn new(
        values: Vec<(String, i64)>,
        slower: f64,
        (own, taken): (&Terms, &Terms),
        rule: String,
    ) -> RunnerUp {
        let worse = own.list().into_iter().zip(taken.list());
        let grew = worse.max_by(|(a, b), (c, d)| (a.1 - b.1).total_cmp(&(c.1 - d.1))).map_or("", |(a, _)| a.0);
        RunnerUp { values, slower, by: if slower < 0.0 { RejectReason::Rule(rule) } else { RejectReason::Time(grew) } }
    }
}

impl RejectReason {
    /// In words.
    pub fn words(&self) -> &str {
        match self {
            RejectReason::Time(words) => words,
            RejectReason::Rule(words) => words,
        }
    }
}

/// Why one of two equal candidates was chosen.
pub(super) const SMALLER: &str = "this counts as equal, and the chosen tile is not larger";
/// Relative difference below which two times are called equal in messages.
const SAME: f64 = 0.0005;

fn list(values: &[(String, i64)]) -> String {
    values.iter().map(|(name, x)| format!("{name}={x}")).collect::<Vec<_>>().join(" ")
}

/// Seconds with a unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guess = if self.sizes_given || self.sizes.is_empty() { "" } else { " (no size was given)" };
        write!(f, "on {}", self.card)?;
        if !self.sizes.is_empty() {
            write!(f, " with {}{guess}", list(&self.sizes))?;
        }
        write!(f, ": {} predicted", duration(self.seconds))?;
        if self.flops > 0.0 {
            write!(f, " ({:.1} TFLOP/s)", self.flops / self.seconds / 1e12)?;
        }
        let (limit, each) = (self.terms.limit(), self.resident);
        write!(f, ", most of it {limit}; {:.2} waves of blocks, {each} to a multiprocessor", self.waves)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", list(&self.values), self.prediction)
    }
}

impl Choice {
    /// What lost, and why.
    pub fn note(&self) -> String {
        let count = self.candidates;
        match &self.runner_up {
            None => format!("the only legal one of its kind, of {count}"),
            Some(next) => {
                let why = match &next.by {
                    _ if next.slower.abs() < SAME => "as fast".to_owned(),
                    RejectReason::Time(term) => format!("{:+.1}%, by {term}", next.slower * 100.0),
                    RejectReason::Rule(rule) => format!("{:.1}% faster by the model, but {rule}", next.slower * -100.0),
                };
                format!("next of {count} candidates: {}: {why}", list(&next.values))
            }
        }
    }
}

#[cfg(test)]
impl Prediction {
    /// A launch of a thousand blocks that takes a hundredth of a second, for tests.
    pub(super) fn example() -> Prediction {
        Prediction {
            card: "A100",
            sizes: Vec::new(),
            sizes_given: false,
            seconds: 1e-2,
            working: 1e-2,
            awaited: 0.0,
            bytes: 1e9,
            least_bytes: 1e9,
            reads: Vec::new(),
            flops: 0.0,
            terms: Terms::default(),
            added: Added::default(),
            tiles: 1000.0,
            blocks: 1000.0,
            waves: 10.0,
            resident: 1,
            threads: 128,
            registers: 64,
            shared: 0,
            atom: None,
            places: Vec::new(),
            unknown: None,
            padding: Padding::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Span;

    fn conflicts(conflicts: f64) -> Learned {
        Learned { conflicts, ..Learned::default() }
    }

    fn prediction(flops: f64) -> Prediction {
        let place = |global: bool| Place {
            span: Span::default(),
            of: "A".to_owned(),
            bytes: 1e9,
            once: 1.0,
            global,
            ..Place::default()
        };
        Prediction {
            flops,
            terms: Terms { products: 9e-3, memory: 1e-3, l2: 1e-3, shared: 1e-3, ..Terms::default() },
            places: vec![place(true), place(false)],
            ..Prediction::example()
        }
    }

    /// A block alone waits for its loads; of several, one works while others wait. What the model has of the same latency
    /// counts once.
    #[test]
    fn waits_are_hidden_by_blocks_beside_them() {
        let waited = |resident: f64, latency: f64| {
            let mut p = Prediction { working: 1e-2 + latency, awaited: latency, ..prediction(1e12) };
            (p.seconds, p.terms.latency) = (p.working, latency);
            let clock = Card::from_name(p.card).expect("a card").clock * 1e9;
            let waits = Waits { clocks: 6e-3 * clock, resident };
            p.learn(|_| 1.0, &Learned { waits, ..Learned::default() });
            let micro = |seconds: f64| (seconds * 1e6).round() as u64;
            (micro(p.seconds), micro(p.terms.latency), micro(p.awaited))
        };
        assert_eq!(waited(1.0, 0.0), (16000, 6000, 6000));
        assert_eq!(waited(1.0, 4e-3), (16000, 6000, 6000));
        assert_eq!(waited(2.0, 0.0), (10000, 0, 0));
    }

    /// With products, too, waste of copies and issued instructions have terms; as long as products hide them, the
    /// launch takes no longer.
    #[test]
    fn waste_beside_products_has_terms() {
        let mut p = prediction(1e12);
        p.learn(|_| 3.0, &conflicts(1e9));
        assert!(p.terms.sectors > 0.0 && p.terms.conflicts > 0.0 && p.terms.issue == 0.0, "{:?}", p.terms);
        assert_eq!((p.seconds, p.terms.memory), (1e-2, 1e-3));
        let budget = p.budget();
        assert_eq!((p.busiest().0, budget.part(Term::Products)), (Term::Products, 9000.0));
        assert_eq!(budget.to_string().split(" = ").next(), Some("10000.0 us"), "{budget}");
        p.learn(|_| 1000.0, &conflicts(0.0));
        assert!(p.seconds > 1e-2 && p.wasteful() == Some(Term::Sectors), "nothing hides that much");
        let mut p = prediction(1e12);
        p.learn(|_| 1.0, &Learned { issued: 1e12, ..Learned::default() });
        assert!(p.terms.issue > 0.0 && p.terms.sectors == 0.0 && p.seconds > 1e-2, "{:?}", p.terms);
        // A loop with an unknown number of iterations: nothing changes.
        let mut p = prediction(0.0);
        p.learn(|_| 3.0, &conflicts(0.0));
        assert!(p.terms.sectors > 0.0 && p.terms.l2 != 1e-3);
    }

    /// The instructions of a grid of few blocks are issued by the schedulers that have warps, and f32 takes a scheduler of
    /// 16 lanes two clocks for each.
    #[test]
    fn few_blocks_and_narrow_lanes_issue_slower() {
        let card = Card::from_name("A100").expect("a card");
        let issues = |blocks: f64, warps: f64, f32_arithmetic: f64| {
            let mut p = prediction(1e12);
            let issued = 2e-2 * SCHEDULERS * f64::from(card.sms) * card.clock * 1e9;
            let of = Learned { blocks, warps, issued, f32_arithmetic: f32_arithmetic * issued, ..Learned::default() };
            p.learn(|_| 1.0, &of);
            (1e3 * (p.seconds - p.terms.launch)).round()
        };
        assert_eq!((issues(0.0, 0.0, 0.0), issues(1080.0, 8.0, 0.5), issues(1080.0, 8.0, 1.0)), (20.0, 20.0, 40.0));
        assert_eq!((issues(27.0, 8.0, 0.0), issues(27.0, 1.0, 0.0)), (80.0, 320.0));
    }

    /// Bank conflicts that take shared memory longer than the products are what the launch takes, and the budget says
    /// so. Conflicts that products hide add nothing.
    #[test]
    fn conflicts_may_bind_beside_products() {
        let mut p = prediction(1e12);
        let clocks = 1e-3 * 108.0 * Card::from_name("A100").expect("a card").clock * 1e9;
        p.learn(|_| 1.0, &conflicts(4.0 * clocks));
        assert_eq!((p.seconds, p.wasteful()), (1e-2, None));
        p.learn(|_| 1.0, &conflicts(19.0 * clocks));
        assert!((p.seconds - 2e-2).abs() < 1e-9, "{}", p.seconds);
        assert_eq!((p.wasteful(), p.budget().part(Term::Conflicts)), (Some(Term::Conflicts), 10000.0));
    }

    /// Launches in front of a kernel add to its time, whatever unit works in them.
    #[test]
    fn copies_in_front_are_added() {
        let own = prediction(1e12);
        let copy = Prediction { seconds: 2e-3, bytes: 5e8, ..Prediction::example() };
        let whole = own.with_copies([&copy, &copy].into_iter());
        assert_eq!((whole.seconds, whole.bytes, whole.least_bytes), (1.4e-2, 2e9, 1e9));
        assert_eq!((whole.budget().part(Term::Copies), whole.budget().part(Term::Products)), (4000.0, 9000.0));
        assert!(whole.busiest().1 < own.busiest().1);
    }

    /// Bytes beyond the minimum cost what memory takes for them longer than the next unit.
    #[test]
    fn excess_bytes_cost_what_nothing_hides() {
        let terms = |memory, l2| Terms { memory, l2, launch: 1e-3, ..Terms::default() };
        let of = |terms| Prediction { bytes: 2e9, terms, ..Prediction::example() }.seconds_of_excess();
        assert_eq!(of(terms(8e-3, 1e-3)), 4e-3);
        assert_eq!(of(terms(8e-3, 6e-3)), 2e-3);
        assert_eq!(of(Terms { issue: 1e-3, ..terms(8e-3, 1e-3) }), 0.0);
        let least = Prediction { bytes: 1e9, terms: terms(8e-3, 1e-3), ..Prediction::example() };
        assert_eq!(least.seconds_of_excess(), 0.0);
    }
}
