//! The search for kernels with several products: candidates in the order of a bound, each compiled by the passes
//! ([`super::trial`]) and timed.
//!
//! For each tile of the output, a block with wgmma takes the time of its loops and of the epilogue. That of the loops
//! is their modulo schedules', or that of their tiles' transfer from the second-level cache. The grid is persistent,
//! with one block per multiprocessor. If the end of loops depends on the block (a causal mask), tiles are assigned from
//! both ends alternately. So the time is not rounded up to whole rounds. Blocks of `mma.sync` are timed like those of
//! one product ([`super::model`]).

use super::cost::Part;
use super::illegal::Illegal;
use super::model;
use super::model::launch::{Launch, Time};
use super::model::scheduled::{self, Loop, Tiles};
use super::padding::Padding;
use super::parameters::Role;
use super::prediction::{Added, Choice, Prediction, RunnerUp, SMALLER};
use super::search_context::AssumedPaths;
use super::search_result::{Failed, Ranked, SearchResult};
use super::search_space::Space;
use super::trial::{Trial, compiled, read_by_warpgroups, run_trial};
use super::work::{Env, Product, Region};
use crate::analysis::uses::mentions;
use crate::schedule_loops::tensor_rate;
use crate::select_mma::{self, best_atom};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::types::Elem;

/// A candidate that is legal.
#[derive(Clone, Debug)]
struct Candidate {
    values: Vec<(Value, i64)>,
    /// Whether an extent of the output's tile is not a power of two.
    odd: bool,
    asked: Trial,
    time: Time,
    /// Whether the later passes have been run on it, too.
    compiled: bool,
}

impl Candidate {
    /// The time for comparisons, in seconds.
    fn counted(&self) -> f64 {
        self.time.seconds * if self.odd { 1.0 + ODD } else { 1.0 } * (1.0 + self.slots_cost())
    }

    /// The relative gain that it must have because of its few slots.
    fn slots_cost(&self) -> f64 {
        match (self.asked.scheduled(), self.asked.slots) {
            (true, ..2) => ONE,
            (true, 2) => FEW,
            _ => 0.0,
        }
    }

    /// The rule that counts against it and not against `taken`, as text.
    fn rule(&self, taken: &Candidate) -> String {
        let percent = |share: f64| (100.0 * share).round();
        let odd = format!("extents that are not powers of two must be {}% faster", percent(ODD));
        let few = format!("a pipeline of {} slot(s) must be {}% faster", self.asked.slots, percent(self.slots_cost()));
        match (self.odd && !taken.odd, self.slots_cost() > taken.slots_cost()) {
            (true, true) => format!("{odd}, {few}"),
            (true, false) => odd,
            (false, true) => few,
            (false, false) => SMALLER.to_owned(),
        }
    }
}

/// Times that differ by less than this share count as equal: then the smaller tile is taken.
const TIE: f64 = 0.005;
/// The relative gain that output tiles must have if an extent is no power of two: few were measured, and those took
/// longer than predicted (SwiGLU, 512x14336x4096 on an H200: 204 us in tiles of 128x160, 192 us in 128x64; causal
/// attention in tiles of 192 rows: 1076 us, and 913 us in 128).
const ODD: f64 = 0.06;
/// The relative gain that two slots must have: they take 2 to 4 % longer than predicted (3072x3072x3072 on an H200).
const FEW: f64 = 0.02;
/// The relative gain that one slot must have, because no load runs ahead (attention, D 256, on an H200: 15 to 19 %
/// slower with 128 keys in one slot than with 80 keys in two).
const ONE: f64 = 0.15;
/// Clocks by which a schedule may underestimate a product: less than one for each warpgroup.
const ROUNDED: f64 = 8.0;
/// A warp tile that every instruction fits.
const LARGE: (u64, u64, u64) = (64, 64, 64);
/// Most candidates that are listed at all.
const MOST: usize = 4096;
/// Most legal candidates that are tested with the passes.
const ASKED: usize = 64;

/// The search.
pub(super) struct SeveralProducts<'a> {
    space: &'a Space<'a>,
    /// Whether the number of iterations of a loop depends on the block.
    even: bool,
}

impl<'a> SeveralProducts<'a> {
    pub(super) fn of(space: &'a Space<'a>) -> SeveralProducts<'a> {
        SeveralProducts { space, even: ends_with_block(space) }
    }

    /// The fastest combination.
    pub(super) fn best(&self) -> Result<SearchResult, Failed> {
        let (mut legal, refused) = self.candidates(1.0);
        while let Some(place) = self.fastest_of(&legal) {
            if legal[place].asked.scheduled() || legal[place].compiled {
                return Ok(self.found(&legal, place));
            }
            match self.compiled(&legal[place]) {
                Some(compiled) => legal[place] = compiled,
                None => _ = legal.remove(place),
            }
        }
        Err(match refused {
            Some(why) => Failed::Refused(why),
            None => Failed::NoneLegal(Illegal::Precondition),
        })
    }

    /// The index of the candidate to take: among equal times, the smallest tile.
    fn fastest_of(&self, legal: &[Candidate]) -> Option<usize> {
        let least = legal.iter().map(Candidate::counted).reduce(f64::min)?;
        let near = legal.iter().enumerate().filter(|(_, c)| c.counted() <= least * (1.0 + TIE));
        near.min_by_key(|&(i, c)| (c.asked.cost.rank, i)).map(|(i, _)| i)
    }

    /// The candidate with loops that wait for their loads, if the passes cannot pipeline its copies. `None`: the
    /// layouts are not possible, for example because exchanges exceed shared memory.
    fn compiled(&self, c: &Candidate) -> Option<Candidate> {
        let mut env = self.space.env.clone();
        self.bind_values(&mut env, &c.values);
        let lost = compiled(&self.space.work, self.space.options, &env)?;
        let mut asked = c.asked.clone();
        asked.cost.wait_for_loads(&self.space.work.regions, lost.iter());
        Some(Candidate { compiled: true, ..self.timed_by(c.values.clone(), asked, &mut env) })
    }

    fn found(&self, legal: &[Candidate], place: usize) -> SearchResult {
        let best = &legal[place];
        let others = legal.iter().enumerate().filter(|&(i, _)| i != place).map(|(_, c)| c);
        let next = others.min_by(|a, b| a.time.seconds.total_cmp(&b.time.seconds));
        let runner_up = next.map(|c| {
            let slower = c.time.seconds / best.time.seconds - 1.0;
            RunnerUp::new(self.space.named(&c.values), slower, (&c.time.terms, &best.time.terms), c.rule(best))
        });
        let prediction = self.predicted(best);
        let choice = Choice { values: self.space.named(&best.values), prediction, candidates: legal.len(), runner_up };
        SearchResult { values: best.values.clone(), choice: Some(choice), crowded: self.space.crowded }
    }

    /// The plain values; if the passes refuse them, the first values that they accept.
    pub(super) fn plain(&self) -> Result<SearchResult, Failed> {
        let plain: Vec<(Value, i64)> = self.space.autos.iter().map(|a| (a.value, a.role.plain())).collect();
        let mut refused = None;
        for values in std::iter::once(plain).chain(self.listed().into_iter().map(|(_, values)| values)) {
            let mut env = self.space.env.clone();
            self.bind_values(&mut env, &values);
            match run_trial(
                &self.space.work,
                self.space.options,
                (self.space.card, true),
                AssumedPaths::default(),
                &env,
            ) {
                Ok(_) => return Ok(SearchResult { values, choice: None, crowded: false }),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        Err(refused.map_or(Failed::NoneLegal(Illegal::Precondition), Failed::Refused))
    }

    /// The result of [`SeveralProducts::best`], and then all other legal combinations that are predicted to take at
    /// most `far` times as long.
    pub(super) fn ranked(&self, far: f64) -> Result<Vec<Ranked>, Failed> {
        let best = self.best()?.choice.map(|c| Ranked { values: c.values, seconds: c.prediction.seconds });
        let (mut legal, _) = self.candidates(far);
        legal.sort_by(|a, b| a.time.seconds.total_cmp(&b.time.seconds));
        let limit = best.as_ref().map_or(f64::INFINITY, |b| b.seconds * far);
        let others = legal.iter().take_while(|c| c.time.seconds <= limit);
        let others = others.map(|c| Ranked { values: self.space.named(&c.values), seconds: c.time.seconds });
        let others: Vec<Ranked> = others.filter(|r| best.as_ref().is_none_or(|b| b.values != r.values)).collect();
        Ok(best.into_iter().chain(others).collect())
    }

    /// Legal candidates, and the reason why the first illegal one was refused; without those that certainly take more
    /// than `far` times the fastest time.
    fn candidates(&self, far: f64) -> (Vec<Candidate>, Option<String>) {
        let mut listed = self.listed();
        listed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut legal, mut refused): (Vec<Candidate>, Option<String>) = (Vec::new(), None);
        let mut least = f64::INFINITY;
        for (bound, values) in listed {
            // A combination whose products alone take too long need not be tested.
            if bound > least * (1.0 + ODD) * (1.0 + FEW) * far || legal.len() >= ASKED {
                break;
            }
            let mut env = self.space.env.clone();
            self.bind_values(&mut env, &values);
            match run_trial(
                &self.space.work,
                self.space.options,
                (self.space.card, self.space.crowded),
                AssumedPaths::default(),
                &env,
            ) {
                Ok(asked) => {
                    let candidate = self.timed_by(values, asked, &mut env);
                    let seconds = candidate.time.seconds;
                    debug_assert!(
                        bound <= seconds,
                        "bug: a bound of {bound} s on what takes {seconds} s, with {env:?}"
                    );
                    least = least.min(candidate.time.seconds);
                    legal.push(candidate);
                }
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        (legal, refused)
    }

    /// Every combination that the preconditions allow, with a lower bound on its time.
    fn listed(&self) -> Vec<(f64, Vec<(Value, i64)>)> {
        let domains: Vec<Vec<i64>> = self.space.autos.iter().map(|a| self.values_of(a.value, a.role)).collect();
        let count = domains.iter().map(Vec::len).product::<usize>().min(MOST);
        let mut listed = Vec::new();
        for index in 0..count {
            let (mut rest, mut values) = (index, Vec::new());
            for (auto, domain) in self.space.autos.iter().zip(&domains).rev() {
                values.push((auto.value, domain[rest % domain.len()]));
                rest /= domain.len();
            }
            values.reverse();
            let mut env = self.space.env.clone();
            self.bind_values(&mut env, &values);
            if self.space.work.k.requires.iter().any(|&e| self.space.work.truth(&env, e) == Some(false)) {
                continue;
            }
            listed.push((self.least(&env), values));
        }
        listed
    }

    /// Whether a parameter is the depth of a product.
    fn reduces(&self, p: Value) -> bool {
        let mut products = self.space.work.regions.iter().flat_map(|r| &r.products);
        products.any(|product| mentions(self.space.work.k, product.shape[2], p))
    }

    /// The values that a parameter may have. The depth of a reduction is a power of two, or 80, for which slots of
    /// heads of 256 have room (attention on an H200: 4 to 8 % faster than 64).
    fn values_of(&self, p: Value, role: Role) -> Vec<i64> {
        let products = || self.space.work.regions.iter().flat_map(|r| &r.products);
        let deep = self.reduces(p);
        let wide = self.space.options.target.has_tensor_copies();
        let inputs = products().next().map_or(Elem::F16.size(), |p| p.inputs.size());
        let depth = |bytes: u32| i64::from(inputs.per(bytes));
        match role {
            Role::Rows if wide => vec![128, 192, 64, 256],
            Role::Rows => vec![128, 64, 256],
            Role::Cols if deep && wide => vec![128, 64, 80, 32],
            Role::Cols if deep || !wide => vec![128, 64, 32],
            // Odd multiples of 16 columns spill if results are computed from several sums.
            Role::Cols => vec![128, 64, 256, 96, 160, 192, 32],
            Role::Depth => vec![depth(128), depth(64), depth(256)],
            Role::Groups | Role::Raster => vec![1],
            Role::WarpRows | Role::WarpCols => vec![64, 32, 128, 16],
            Role::Threads => vec![128, 256, 384, 64, 512],
            Role::Stages => vec![2, 3, 4],
            Role::Extent => vec![64, 128, 32, 16],
        }
    }

    /// Binds values, and the block in the middle of the grid, because loop bounds may depend on the block.
    fn bind_values(&self, env: &mut Env, values: &[(Value, i64)]) {
        for &(p, value) in values {
            env[p] = Some(value);
        }
        self.space.bind_same(env);
        for axis in &self.space.work.k.grid {
            env[axis.index] = self.space.work.int(env, axis.extent).map(|n| n / 2);
        }
    }

    fn timed_by(&self, mut values: Vec<(Value, i64)>, asked: Trial, env: &mut Env) -> Candidate {
        let mut launch = self.space.launch(env, self.space.bytes(env));
        self.space.raster(env, &asked.cost, &mut launch);
        for (p, value) in &mut values {
            *value = env[*p].unwrap_or(*value);
        }
        let time = self.time(&asked, &launch);
        let odd = values.iter().any(|&(p, x)| x.count_ones() > 1 && !self.reduces(p));
        Candidate { values, odd, asked, time, compiled: false }
    }

    /// The time of a launch.
    pub(super) fn time(&self, asked: &Trial, launch: &Launch) -> Time {
        match asked.scheduled() {
            false => model::time(self.space.card, &asked.cost, launch),
            true => self.of_schedule(asked, launch),
        }
    }

    /// The time of blocks whose loops have a modulo schedule.
    fn of_schedule(&self, asked: &Trial, launch: &Launch) -> Time {
        let groups = (asked.cost.block.threads as f64 / f64::from(WARP * WARPGROUP)).max(1.0);
        let loops = asked.cost.parts.iter().enumerate().map(|(number, part)| {
            let length = asked.iterations.iter().find(|(n, _)| *n == number).map_or(0.0, |(_, length)| *length);
            // Products whose operands are only loaded have no waits between them.
            let computed = |p: &Product| p.operands.iter().any(|o| o.buffer.is_none());
            let groups = if self.space.work.regions[number].products.iter().any(computed) { groups } else { 0.0 };
            let Part { trips, product, loads, shared, .. } = *part;
            Loop { trips, length, product, groups, loads, shared }
        });
        scheduled::time(self.space.card, &self.tiles(launch, asked.ends), loops)
    }

    fn tiles(&self, launch: &Launch, ends: f64) -> Tiles {
        Tiles { tiles: launch.grid.iter().product(), even: self.even, ends, bytes: launch.bytes }
    }

    /// A lower bound on the time of a combination, over all product instructions.
    fn least(&self, env: &Env) -> f64 {
        let launch = self.space.launch(env, 0.0);
        let by_warps = self.least_of_warps(env, &launch);
        match self.space.options.target.has_tensor_copies() {
            true => by_warps.min(self.least_of_warpgroups(env, &launch)),
            false => by_warps,
        }
    }

    /// The lower bound with `mma.sync` or scalar products alone.
    fn least_of_warps(&self, env: &Env, launch: &Launch) -> f64 {
        let (card, work) = (self.space.card, &self.space.work);
        let (blocks, sms): (f64, f64) = (launch.grid.iter().product(), f64::from(card.sms));
        // A multiprocessor executes whole blocks, unless blocks of different length even out.
        let each = if self.even { blocks / sms } else { (blocks / sms).ceil() };
        let product = |p: &Product| work.elements(env, &p.shape).unwrap_or(0) as f64 / self.rate(p);
        let clocks = |r: &Region| work.trips(env, r) * r.products.iter().map(product).sum::<f64>();
        let clocks = each * work.regions.iter().map(clocks).sum::<f64>();
        model::FITTED.launch + clocks / (card.clock.max(card.clock_scalar) * 1e9)
    }

    /// Multiply-adds per clock and multiprocessor of the fastest `mma.sync` or scalar instruction for a product.
    fn rate(&self, p: &Product) -> f64 {
        let (space, tensor_cores) = (self.space, self.space.options.is_on(select_mma::NAME));
        let best = || best_atom(space.options.target, tensor_cores, (p.inputs, p.acc), LARGE);
        p.atom.or_else(best).map_or(f64::INFINITY, |atom| space.card.rate(atom, p.inputs, p.acc))
    }

    /// The lower bound with wgmma products alone.
    fn least_of_warpgroups(&self, env: &Env, launch: &Launch) -> f64 {
        let (card, work) = (self.space.card, &self.space.work);
        let elements = |shape: &[Expr]| work.elements(env, shape).unwrap_or(0) as f64;
        // Clocks are whole numbers for each warpgroup.
        let product = |p: &Product| {
            let clocks = elements(&p.shape) / tensor_rate(card, p.inputs.b.size()) as f64;
            (clocks - ROUNDED).max(1.0)
        };
        let clocks = |r: &Region| r.products.iter().map(product).sum();
        let loops = work.regions.iter().filter(|r| !r.products.is_empty()).map(|r| Loop {
            trips: work.trips(env, r),
            length: clocks(r),
            product: clocks(r),
            groups: 0.0,
            loads: r.moves.iter().filter(|m| m.load).map(|m| m.elem.traffic(elements(&m.shape))).sum(),
            shared: r.products.iter().map(|p| read_by_warpgroups(work, env, p)).sum(),
        });
        scheduled::time(card, &self.tiles(launch, 0.0), loops).seconds
    }

    /// The prediction of a kernel without `auto` parameters.
    ///
    /// # Errors
    /// The passes' message why its values are not legal.
    pub(super) fn given(&self) -> Result<Prediction, String> {
        let (work, options) = (&self.space.work, self.space.options);
        let mut env = self.space.env.clone();
        self.bind_values(&mut env, &[]);
        let asked = run_trial(work, options, (self.space.card, true), AssumedPaths::default(), &env)?;
        let candidate = self.timed_by(Vec::new(), asked, &mut env);
        let compiled = (!candidate.asked.scheduled()).then(|| self.compiled(&candidate)).flatten();
        Ok(self.predicted(&compiled.unwrap_or(candidate)))
    }

    fn predicted(&self, c: &Candidate) -> Prediction {
        let k = self.space.work.k;
        let cost = &c.asked.cost;
        let given = |v: Value| self.space.options.sizes.iter().any(|(name, _)| *name == k.values[v].name);
        Prediction {
            card: self.space.card.name,
            sizes: k.sizes.iter().map(|&v| (k.values[v].name.clone(), self.space.env[v].unwrap_or(1))).collect(),
            sizes_given: k.sizes.iter().any(|&v| given(v)),
            seconds: c.time.seconds,
            working: c.time.working,
            awaited: c.time.awaited,
            bytes: c.time.bytes,
            least_bytes: c.time.least_bytes,
            reads: Vec::new(),
            flops: 2.0 * cost.macs * c.time.tiles,
            terms: c.time.terms,
            added: Added::default(),
            tiles: c.time.tiles,
            blocks: c.time.blocks,
            waves: c.time.waves,
            resident: cost.resident,
            threads: cost.block.threads,
            registers: cost.block.tiles,
            shared: cost.block.shared,
            atom: cost.atom.map(|a| a.row().name),
            places: Vec::new(),
            unknown: None,
            padding: Padding::default(),
        }
    }
}

/// Whether the number of iterations of a loop depends on the block.
pub(super) fn ends_with_block(space: &Space<'_>) -> bool {
    let k = space.work.k;
    let of_block = |e| k.grid.iter().any(|axis| mentions(k, e, axis.index));
    space.work.regions.iter().flat_map(|r| &r.loops).flatten().any(|&e| of_block(e) && !fixed(space, e))
}

/// Whether an expression has the same value in all blocks; branches that are not taken do not count.
fn fixed(space: &Space<'_>, e: Expr) -> bool {
    let mut env = space.env.clone();
    let mut value = |at: i64| {
        for axis in &space.work.k.grid {
            env[axis.index] = Some(at);
        }
        space.work.int(&env, e)
    };
    value(0) == value(1)
}
