//! The search: every combination of values that `auto` parameters may have, the legal ones timed.

use super::Role;
use super::block::{Cost, Illegal, Setting};
use super::cards::Card;
use super::model::sharing::MOST;
use super::model::{self, Launch};
use super::predict::{Choice, Prediction, RunnerUp, SMALLER};
use super::ranked::Ranked;
use super::whole;
use super::work::{Env, Work};
use crate::assign_layouts::reduced_axes;
use crate::select_mma::divides;
use crate::select_mma::warpgroup::{self, Way, of_kernel};
use crate::{Cx, Options};
use tilec_ir::diag::Sink;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;

/// A parameter to choose.
#[derive(Copy, Clone, Debug)]
pub(super) struct Auto {
    pub(super) value: Value,
    pub(super) role: Role,
    /// The author promises that results do not depend on it.
    pub(super) promised: bool,
}

/// Why there is no choice.
#[derive(Debug)]
pub(super) enum Failed {
    /// The model cannot see through the kernel.
    Opaque(String),
    /// Every candidate breaks a rule.
    NoneLegal(Illegal),
    /// The passes refuse every candidate; why, of one.
    Refused(String),
}

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) values: Vec<(Value, i64)>,
    /// Why, where the model decided.
    pub(super) choice: Option<Choice>,
    /// No candidate leaves a thread registers for everything.
    pub(super) crowded: bool,
}

/// Heads, and batches, where no number is given.
const BATCH: i64 = 16;
/// Extent of tensors where no size is given, as a power of two.
const LOG2_LARGE: u32 = 13;
/// The same of vectors.
const LOG2_LONG: u32 = 24;
/// Values of the number of neighbouring columns that rasterisation groups; of those that do equally well the first is taken.
pub(super) const RASTERS: [i64; 4] = [8, 4, 2, 1];
/// Times that differ by less than this share count as equal.
const TIE: f64 = 0.005;
/// Stages that are tried first.
const USUAL_STAGES: i64 = 4;
/// Share by which fewer must be better.
const LEAST_GAIN: f64 = 0.02;
/// Candidates that may be so much slower than the fastest are looked at in full: one of them nearly won.
const NEAR: f64 = 1.05;
/// Most warps of a block whose warp tile is to be chosen.
const MOST_WARPS: u64 = 8;
/// The same of scalar products (fitted, too).
const MOST_SCALAR_WARPS: u64 = 16;
/// Elements of the largest tile for which groups of warps are tried: larger ones give a multiprocessor enough to do.
const SMALL_TILE: u64 = 64 * 128;
/// Most candidates; a kernel with more parameters than this allows gets plain values.
const MAX_CANDIDATES: usize = 200_000;
/// Rows of the smallest tiles of warpgroups.
const SHORTEST_TILE: i64 = 16;
/// Tiles along the rows of the output for which rows of tiles are fitted to it.
const FITTED_TILES: i64 = 3;

/// A kernel with parameters to choose.
pub(super) struct Search<'a> {
    pub(super) work: Work<'a>,
    pub(super) options: &'a Options,
    pub(super) card: &'static Card,
    /// The parameters to choose: what decides early whether a combination is worth a look comes first.
    pub(super) autos: Vec<Auto>,
    /// Values of sizes and of parameters that are known.
    pub(super) env: Env,
    /// Parameters that have the value of an earlier one.
    same: Vec<(Value, Value)>,
    /// The values that each may have; one for stages and rasterisation, which are sought apart.
    domains: Vec<Vec<i64>>,
    /// The parameter that is the number of stages, if it is to be chosen.
    stages: Option<Value>,
    /// The values that it may have.
    depths: Vec<i64>,
    /// Whether products are of warpgroups, and then whether they are better computed transposed.
    warpgroups: Option<Way>,
    /// Whether the first product is scalar.
    scalar: bool,
    /// Whether tiles may crowd the registers of a thread.
    pub(super) crowded: bool,
    /// Multiply-adds of the fastest instruction for the first product, per clock and multiprocessor.
    pub(super) fastest_rate: f64,
}

/// Whether the products of a kernel are of warpgroups once its parameters have values, and how they are computed: which values does not
/// matter, but for the types and orders.
fn of_warpgroups(k: &Kernel, values: &[(Value, ConstValue)], options: &Options) -> Option<Way> {
    if !options.target.has_tensor_copies() || !options.is_on("select-mma") {
        return None;
    }
    let mut k = k.clone();
    for &(p, value) in values {
        if let ValueDef::ConstParam(param) = &mut k.values[p].def {
            param.default = Some(value);
        }
    }
    let mut sink = Sink::new();
    let mut cx = Cx { options, enabled: true, pass: "specialize", sink: &mut sink };
    crate::specialize::run(&mut k, &mut cx).ok()?;
    of_kernel(&k, options)
}

/// A combination of values.
#[derive(Copy, Clone, Debug)]
struct Candidate {
    index: usize,
    stages: i64,
    rank: u64,
}

impl<'a> Search<'a> {
    /// Reads the kernel; with no `autos`, all of its parameters must have values.
    pub(super) fn new(k: &'a Kernel, options: &'a Options, autos: &[Auto]) -> Result<Search<'a>, Failed> {
        let mut values: Vec<(Value, ConstValue)> = Vec::new();
        let mut same = Vec::new();
        for &p in &k.const_params {
            let ValueDef::ConstParam(param) = &k.values[p].def else { continue };
            let stand_in = autos.iter().find(|a| a.value == p).map(|a| ConstValue::Int(a.role.plain()));
            let value = match (stand_in, param.default) {
                (Some(value), _) => value,
                (None, Some(ConstValue::Same(earlier))) => {
                    same.push((p, earlier));
                    let Some(&(_, value)) = values.iter().find(|(q, _)| *q == earlier) else { continue };
                    value
                }
                (None, Some(value)) => value,
                (None, None) => return Err(Failed::Opaque("a parameter has no value".to_owned())),
            };
            values.push((p, value));
        }
        let work = Work::of(k, &values).map_err(Failed::Opaque)?;
        let mut env = Env::new();
        for &(p, value) in &values {
            if let ConstValue::Int(x) = value {
                env[p] = Some(x);
            }
        }
        let card = options.usual_card();
        let stages = autos.iter().find(|a| a.role == Role::Stages).map(|a| a.value);
        let warpgroups = of_warpgroups(k, &values, options);
        let depths = match warpgroups {
            // One block has a multiprocessor to itself: there is no use for what its slots leave.
            Some(_) => vec![8, 6, 5, 4, 3, 2],
            None if options.target.has_asynchronous_copies() => vec![4, 3, 2, 5, 6, 8],
            None => vec![2],
        };
        let mut ordered = autos.to_vec();
        ordered.sort_by_key(|a| a.role as u8);
        let mut search = Search {
            work,
            options,
            card,
            autos: ordered,
            env,
            same,
            domains: Vec::new(),
            stages,
            depths,
            warpgroups,
            scalar: false,
            // Of a program that is given nothing is refused.
            crowded: autos.is_empty(),
            fastest_rate: 1.0,
        };
        let first = search.work.regions.iter().flat_map(|r| &r.products).next();
        let (scalar, rate) = first.map_or((false, 1.0), |p| search.setting().fastest(p));
        (search.scalar, search.fastest_rate) = (scalar, rate);
        for &v in &k.sizes {
            let given = options.sizes.iter().rev().find(|(name, _)| *name == k.values[v].name);
            let large = if search.counts_blocks(v) { BATCH } else { search.large(v) };
            search.env[v] = Some(given.map_or_else(|| search.promised(v, large), |&(_, x)| x));
        }
        // Loops may depend on the block: the first stands for all.
        for axis in &k.grid {
            search.env[axis.index] = Some(0);
        }
        let mut domains: Vec<Vec<i64>> = search.autos.iter().map(|a| search.domain(a.role)).collect();
        whole::keep(k, &values, &search.autos, &mut domains);
        Ok(Search { domains, ..search })
    }

    /// Whether a size is that of heads or batches of a kernel with several products: the extent of an axis of the grid.
    fn counts_blocks(&self, size: Value) -> bool {
        let k = self.work.k;
        self.is_of_several() && k.grid.iter().any(|axis| matches!(k.exprs[axis.extent], ExprData::Ref(v) if v == size))
    }

    /// The extent of a size that is not given: dimensions are large, long if the kernel has vectors only, and there is one batch.
    fn large(&self, size: Value) -> i64 {
        let k = self.work.k;
        let mentions = |e: Expr, v: Value| crate::analysis::uses::mentions(k, e, v);
        let shapes = || k.params.iter().filter_map(|&p| k.tensor_ty(p)).map(|t| &t.shape);
        let vectors = shapes().all(|s| s.len() <= 1);
        let inner = shapes().flat_map(|s| s.iter().rev().take(2)).filter(|&&e| mentions(e, size));
        // A dimension of several sizes is large, not each of them.
        let bits = inner.map(|&e| {
            let sizes = k.sizes.iter().filter(|&&v| mentions(e, v)).count().max(1) as u32;
            if vectors { LOG2_LONG / sizes } else { LOG2_LARGE / sizes }
        });
        1 << bits.min().unwrap_or(0)
    }

    /// The most rows of a tile of which the output fills more than half: TMA loads of rows that are not there take time, too
    /// (4x1280x8192 on an H200: 16.6 us in tiles of 64x32, 10.5 in tiles of 16x64).
    fn longest_rows(&self) -> i64 {
        let filled = self.divided(&self.env, 0).and_then(|n| u64::try_from(n).ok()?.checked_next_power_of_two());
        filled.and_then(|n| i64::try_from(n).ok()).map_or(i64::MAX, |n| n.max(SHORTEST_TILE))
    }

    /// Rows of tiles that leave little of the last one empty, where the output has few rows. Rows of wgmma come in blocks of 64, its columns in
    /// blocks of 8: such a product is computed transposed.
    fn fitted_rows(&self) -> Vec<i64> {
        let Some(rows) = self.divided(&self.env, 0).filter(|&rows| rows > 0) else { return Vec::new() };
        let mut fitted: Vec<i64> = Vec::new();
        for tiles in 1..=FITTED_TILES {
            let n = (rows / tiles + i64::from(rows % tiles > 0) + 15) / 16 * 16;
            if (65..=256).contains(&n) && n % 64 != 0 && !fitted.contains(&n) {
                fitted.push(n);
            }
        }
        fitted
    }

    /// The values that a parameter may have; where several do equally well, the first is taken.
    fn domain(&self, role: Role) -> Vec<i64> {
        let product = self.work.regions.iter().flat_map(|r| &r.products).next();
        // Threads with more than 64 sums of scalar products are too few, and longer loop bodies than 64 bytes of the reduction do
        // not stay in the instruction cache: fitted as the constants of the model are.
        let scalar = self.scalar;
        if let Some(way) = self.warpgroups {
            // Columns of the instruction need no power of two.
            let columns = if way.swap { [Role::Rows, Role::WarpRows] } else { [Role::Cols, Role::WarpCols] };
            // Results leave in rows that divide them: of 64 bytes at least, if elements have two.
            // (What is given may be narrower.)
            // Of large tiles (of three warpgroups) any multiple of the instruction's, for these come out even where others do not.
            let unit = |n: i64| if matches!(role, Role::Rows | Role::Cols) && n < 128 { 32 } else { 16 };
            let odd = (1..=256 / 16).rev().map(|n| 16 * n).filter(|&n| n % unit(n) == 0);
            let odd = odd.filter(|n: &i64| n.count_ones() != 1 && columns.contains(&role));
            // Odd multiples of 8 of them are a warpgroup's where the tile is given so many.
            let whole = product.and_then(|p| self.work.extent(&self.env, p.shape[usize::from(!way.swap)]));
            let given = whole.and_then(|n| i64::try_from(n).ok()).filter(|n| n % 16 == 8 && columns.contains(&role));
            // Rows of three warpgroups.
            let rows = if way.swap { Role::Cols } else { Role::Rows };
            let three = (role == rows).then_some(warpgroup::THREE as i64);
            let fitted = match role {
                Role::Rows | Role::WarpRows if !way.swap && !way.registers => self.fitted_rows(),
                _ => Vec::new(),
            };
            match role {
                Role::Rows | Role::Cols => {
                    let tiles = [128, 256, 64, 32, 16].into_iter().chain(odd).chain(three).chain(fitted);
                    // Columns, and rows of an operand in registers, come in blocks of the instruction's.
                    let most = if role == Role::Rows && !way.registers { self.longest_rows() } else { i64::MAX };
                    return tiles.filter(|&n| n <= most).collect();
                }
                Role::WarpRows | Role::WarpCols => {
                    let tiles = [256, 128, 64, 32, 16, 8].into_iter().chain(odd).chain(given.filter(|&n| n > 8));
                    return tiles.chain(fitted).collect();
                }
                // Rows of 128 bytes are exchanged without conflicts; several beside each other are fewer steps. Of equals two; one where
                // a warpgroup loads an operand into registers, as nothing of its next step can be multiplied meanwhile.
                Role::Depth => {
                    let bytes = product.map_or(2, |p| i64::from(p.inputs.bytes()));
                    let rows = if way.registers { [128, 256, 512] } else { [256, 128, 512] };
                    let mut depths = rows.map(|row| row / bytes).to_vec();
                    // What is promoted is as deep at most.
                    let promote = self.work.k.schedule.promote.and_then(|e| self.work.int(&self.env, e));
                    let promote = promote.and_then(|n| u64::try_from(n).ok());
                    let most = product.and_then(|p| {
                        let atom = warpgroup::atom(self.options.target, (p.inputs, p.acc))?;
                        warpgroup::promoted(atom, p.acc, promote)
                    });
                    if let Some(most) = most {
                        depths.retain(|&d| d.unsigned_abs() <= most);
                        if depths.is_empty() {
                            depths.push(1 << most.ilog2().min(12));
                        }
                    }
                    return depths;
                }
                Role::Groups => return vec![1],
                Role::Stages | Role::Raster | Role::Threads | Role::Extent => {}
            }
        }
        match role {
            Role::Rows | Role::Cols => vec![256, 128, 64, 32, 16],
            Role::Depth => {
                let bytes = product.map_or(4, |p| i64::from(p.inputs.bytes()));
                let groups = self.autos.iter().any(|a| a.role == Role::Groups);
                let all = &[64, 32, 128, 256][..];
                let depths = &all[..2 + usize::from(!scalar || groups) + usize::from(scalar && groups)];
                depths.iter().map(|depth| (depth / bytes).max(1)).collect()
            }
            // A warp has all elements along what is reduced.
            Role::WarpRows | Role::WarpCols if !reduced_axes(self.work.k).is_empty() => vec![32, 64, 16, 128, 256],
            Role::WarpRows if scalar => vec![32, 16],
            // Of equals the wider: rows of the output are stored in longer runs.
            Role::WarpRows => vec![32, 64, 16],
            Role::WarpCols if scalar => vec![64, 32, 16],
            // Sums of two bytes leave room for twice as many.
            Role::WarpCols if product.is_some_and(|p| p.acc.bytes() == 2) => vec![64, 32, 128, 16],
            Role::WarpCols => vec![64, 32, 16],
            Role::Groups => vec![1, 2, 4, 8],
            Role::Stages | Role::Raster => vec![1],
            Role::Threads => vec![128, 256, 64, 512, 32, 1024],
            Role::Extent => (0..=12).map(|i| 1 << i).collect(),
        }
    }

    /// The smallest extent from `least` on of which the kernel's preconditions say nothing else: of `C % 64 == 0` a multiple of 64.
    fn promised(&self, size: Value, least: i64) -> i64 {
        let k = self.work.k;
        // `size <= BN`: a tile has all of it.
        let most = |&e: &Expr| match &k.exprs[e] {
            ExprData::Op { op: Op::Le, args } if matches!(k.exprs[args[0]], ExprData::Ref(v) if v == size) => {
                self.work.int(&self.env, args[1])
            }
            _ => None,
        };
        let least = k.requires.iter().filter_map(most).fold(least, i64::min).max(1);
        let divisor = |&e: &Expr| {
            let ExprData::Op { op: Op::Eq, args } = &k.exprs[e] else { return None };
            let ExprData::Op { op: Op::Rem, args: of } = &k.exprs[args[0]] else { return None };
            let own = matches!(k.exprs[of[0]], ExprData::Ref(v) if v == size) && k.as_int(args[1]) == Some(0);
            self.work.int(&self.env, of[1]).filter(|&n| own && n > 0)
        };
        let divisors: Vec<i64> = k.requires.iter().filter_map(divisor).collect();
        // That of the largest divisor which is one of all the others': those of programs are powers of two.
        let Some(&most) = divisors.iter().max() else { return least };
        let multiple = least.checked_add(most - 1).and_then(|x| x.checked_div(most)).and_then(|n| n.checked_mul(most));
        multiple.filter(|x| divisors.iter().all(|n| x % n == 0)).unwrap_or(least)
    }

    fn setting(&self) -> Setting<'_> {
        Setting {
            work: &self.work,
            target: self.options.target,
            card: self.card,
            tensor_cores: self.tensor_cores(),
            warpgroups: self.warpgroups,
            stage_stores: self.options.is_on(crate::stage_stores::NAME)
                && self.work.k.schedule.stage_stores.and_then(|e| self.work.k.as_int(e)) != Some(0),
            stream_k: self.work.k.schedule.stream_k.and_then(|e| self.work.k.as_int(e)).map(|x| x == 1),
            columns: self.warpgroups.is_some_and(|way| {
                let columns = if way.swap { Role::Rows } else { Role::Cols };
                self.autos.iter().any(|a| a.role == columns)
            }),
            crowded: self.crowded,
        }
    }

    /// Whether products will run on tensor cores.
    fn tensor_cores(&self) -> bool {
        self.options.is_on("select-mma")
    }

    /// Sets the chosen parameters of `env`, and those that are the same.
    fn bind(&self, env: &mut Env, values: &[i64]) {
        for (auto, &value) in self.autos.iter().zip(values) {
            env[auto.value] = Some(value);
        }
        for &(p, earlier) in &self.same {
            env[p] = env[earlier];
        }
    }

    /// What a launch does besides its blocks, not rasterised. `bytes`: of all tensors.
    pub(super) fn launch(&self, env: &Env, bytes: f64) -> Launch {
        let work = &self.work;
        let extent = |i: usize| work.k.grid.get(i).and_then(|g| work.extent(env, g.extent)).unwrap_or(1) as f64;
        Launch { grid: [extent(0), extent(1), extent(2)], raster: 1.0, bytes }
    }

    /// What is smaller for the better of two that are predicted to be as fast. Tiles of warpgroups count with what of them lies outside the output: TMA loads
    /// of rows that are not there take longer than the model says (32x3072x3072 on an H200: 11.7 us in tiles of 64x32, 8.0 in tiles of 32x64).
    fn rank(&self, env: &Env, cost: &Cost, launch: &Launch) -> u64 {
        let (Some(_), Some((rows, cols))) = (self.warpgroups, cost.tile) else { return cost.rank };
        let outside = |axis: usize, tile: u64| {
            let whole = self.divided(env, axis).filter(|&n| n > 0);
            whole.map_or(1.0, |n| launch.grid[axis] * tile as f64 / n as f64)
        };
        (cost.rank as f64 * outside(0, rows) * outside(1, cols)) as u64
    }

    /// The extent that an axis of the grid divides into tiles.
    fn divided(&self, env: &Env, axis: usize) -> Option<i64> {
        let k = self.work.k;
        match k.grid.get(axis).map(|axis| &k.exprs[axis.extent]) {
            Some(ExprData::Op { op: Op::CeilDiv, args }) => self.work.int(env, args[0]),
            _ => None,
        }
    }

    /// Bytes of all tensors.
    pub(super) fn bytes(&self, env: &Env) -> f64 {
        let tensors = self.work.tensors.iter();
        tensors.map(|(shape, bytes)| self.work.elements(env, shape).unwrap_or(0) as f64 * *bytes as f64).sum()
    }

    /// Rasterises as well as can be, or as it is given: the best number of columns to group.
    pub(super) fn raster(&self, env: &mut Env, cost: &Cost, launch: &mut Launch) {
        if self.work.k.grid.len() < 2 {
            return;
        }
        let Some(auto) = self.autos.iter().find(|a| a.role == Role::Raster) else {
            let given = self.work.k.schedule.raster.and_then(|e| self.work.int(env, e));
            launch.raster = given.unwrap_or(1).max(1) as f64;
            return;
        };
        let mut best = (1, f64::INFINITY);
        for columns in RASTERS {
            let takes = model::grouping(self.card, cost, &Launch { raster: columns as f64, ..*launch });
            if takes < best.1 {
                best = (columns, takes);
            }
        }
        launch.raster = best.0 as f64;
        env[auto.value] = Some(best.0);
        self.bind_same(env);
    }

    pub(super) fn bind_same(&self, env: &mut Env) {
        for &(p, earlier) in &self.same {
            env[p] = env[earlier];
        }
    }

    fn count(&self) -> Option<usize> {
        let n = self.domains.iter().try_fold(1usize, |n, d| n.checked_mul(d.len()))?;
        (n <= MAX_CANDIDATES).then_some(n)
    }

    /// The fastest combination, of those that leave a thread registers if there are any.
    pub(super) fn best(self) -> Result<Found, Failed> {
        if self.is_of_several() {
            return match self.best_of_several() {
                Err(Failed::Refused(_)) => Search { crowded: true, ..self }.best_of_several(),
                found => found,
            };
        }
        match self.fastest() {
            Err(Failed::NoneLegal(_)) => Search { crowded: true, ..self }.fastest(),
            found => found,
        }
    }

    /// Legal combinations with the seconds that are predicted of each, in no order; not all of those that take more than `far` times
    /// as long as the fastest. Of the numbers of stages of a tile those that gain, each with its best rasterisation.
    fn timed(&self, far: f64) -> Result<Vec<(Candidate, f64)>, Failed> {
        let count = self.count().ok_or_else(|| Failed::Opaque("too many parameters are `auto`".to_owned()))?;
        let setting = self.setting();
        let mut env = self.env.clone();
        let bytes = self.bytes(&env);
        let mut timed: Vec<(Candidate, f64)> = Vec::new();
        let (mut furthest, mut fastest_yet) = (None, f64::INFINITY);
        for (least, index) in self.bounded(count, bytes) {
            // What takes longer even if nothing but products or operands took time need not be looked at.
            if least > fastest_yet * far {
                break;
            }
            self.step(index, &mut env);
            let mut launch = self.launch(&env, bytes);
            let cost = if self.stages.is_some() { setting.block(&env) } else { setting.cost(&env) };
            let mut cost = match cost {
                Ok(cost) => cost,
                Err(why) => {
                    furthest = furthest.max(Some(why));
                    continue;
                }
            };
            let (mut last, mut resident) = (f64::INFINITY, 0);
            for &stages in self.stages.map_or(&[0][..], |_| &self.depths) {
                if let Some(auto) = self.stages {
                    env[auto] = Some(stages);
                    self.bind_same(&mut env);
                    if let Err(why) = setting.staged(&mut cost, &env) {
                        furthest = furthest.max(Some(why));
                        continue;
                    }
                }
                if resident != cost.resident {
                    resident = cost.resident;
                    self.raster(&mut env, &cost, &mut launch);
                }
                let seconds = model::time(self.card, &cost, &launch).seconds;
                debug_assert!(least <= seconds, "bug: a bound of {least} s on what takes {seconds} s, with {env:?}");
                // Fewer stages leave little room for loads that take longer than most, so they must gain something. Deeper
                // pipelines take more shared memory: once one is no better, none will be.
                if stages < USUAL_STAGES && !cost.offloaded {
                    if seconds >= last * (1.0 - LEAST_GAIN) {
                        continue;
                    }
                } else if seconds >= last {
                    break;
                }
                last = seconds;
                fastest_yet = fastest_yet.min(seconds);
                timed.push((Candidate { index, stages, rank: self.rank(&env, &cost, &launch) }, seconds));
            }
        }
        // Of equals the first is taken: in the order of the values.
        timed.sort_by_key(|(c, _)| c.index);
        if timed.is_empty() { Err(Failed::NoneLegal(furthest.unwrap_or(Illegal::Extent))) } else { Ok(timed) }
    }

    /// Every combination that is worth a look, with a bound on its time: the lowest first.
    fn bounded(&self, count: usize, bytes: f64) -> Vec<(f64, usize)> {
        let mut env = self.env.clone();
        let (mut found, mut index) = (Vec::new(), 0);
        while index < count {
            let (level, fits) = self.step(index, &mut env);
            if !fits {
                // Whatever the parameters behind that level are, it does not fit.
                let below: usize = self.domains[level + 1..].iter().map(Vec::len).product();
                index = (index / below + 1) * below;
                continue;
            }
            let launch = self.launch(&env, bytes);
            found.push((self.least(&env, &launch).unwrap_or(0.0), index));
            index += 1;
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }

    fn fastest(&self) -> Result<Found, Failed> {
        let timed = self.timed(NEAR)?;
        let mut env = self.env.clone();
        let fastest = |of: &mut dyn Iterator<Item = (Candidate, f64)>| of.reduce(|a, b| if b.1 < a.1 { b } else { a });
        let Some((_, least)) = fastest(&mut timed.iter().copied()) else {
            return Err(Failed::NoneLegal(Illegal::Extent));
        };
        // Of candidates as good as equal that of the lowest rank, and of these the first, is taken; but for products of warpgroups rather one with more
        // than two slots: two of twice the depth take 2 to 4 % longer than is predicted (3072x3072x3072 on an H200: 94.3 us, 92.7 with four).
        let few = |c: &Candidate| self.warpgroups.is_some() && (1..=2).contains(&c.stages);
        let near = timed.iter().copied().filter(|(_, seconds)| *seconds <= least * (1.0 + TIE));
        let Some((best, seconds)) = near.min_by_key(|(c, _)| (few(c), c.rank)) else {
            return Err(Failed::NoneLegal(Illegal::Extent));
        };
        let (values, prediction) = self.prediction(best, &mut env);
        // What differs in stages or rasterisation alone is no other choice worth naming.
        let mut others = timed.iter().copied().filter(|(c, _)| c.index != best.index);
        let runner_up = fastest(&mut others).map(|(candidate, slower)| {
            let (values, other) = self.prediction(candidate, &mut env);
            let rule =
                if few(&candidate) { "two slots count for less where times are as good as equal" } else { SMALLER };
            RunnerUp::new(self.named(&values), slower / seconds - 1.0, (&other.terms, &prediction.terms), rule)
        });
        let choice = Choice { values: self.named(&values), prediction, candidates: timed.len(), runner_up };
        Ok(Found { values, choice: Some(choice), crowded: self.crowded })
    }

    /// What [`Search::best`] finds, and then everything else that is legal and not predicted to take more than `far` times as long, the
    /// fastest first.
    pub(super) fn ranked(self, far: f64) -> Result<Vec<Ranked>, Failed> {
        if self.is_of_several() {
            return self.ranked_of_several(far);
        }
        match self.all(far) {
            Err(Failed::NoneLegal(_)) => Search { crowded: true, ..self }.all(far),
            found => found,
        }
    }

    fn all(&self, far: f64) -> Result<Vec<Ranked>, Failed> {
        let best = self.fastest()?.choice.map(|c| Ranked { values: c.values, seconds: c.prediction.seconds });
        let mut timed = self.timed(far)?;
        timed.sort_by(|(a, x), (b, y)| x.total_cmp(y).then(a.rank.cmp(&b.rank)).then(a.index.cmp(&b.index)));
        let limit = best.as_ref().map_or(f64::INFINITY, |b| b.seconds * far);
        let mut env = self.env.clone();
        let mut others: Vec<Ranked> = Vec::new();
        for (candidate, seconds) in timed.into_iter().take_while(|(_, seconds)| *seconds <= limit) {
            let (values, _) = self.prediction(candidate, &mut env);
            let values = self.named(&values);
            if best.as_ref().is_none_or(|b| b.values != values) {
                others.push(Ranked { values, seconds });
            }
        }
        Ok(best.into_iter().chain(others).collect())
    }

    /// Binds the parameters of the `index`-th combination, the last varying fastest, and says whether it is worth a look: few
    /// enough warps, where their tiles are to be chosen; groups of warps for small tiles only; depth for each that is not too
    /// long a loop body. If not, also the last parameter that this depends on.
    fn step(&self, index: usize, env: &mut Env) -> (usize, bool) {
        let mut rest = index;
        for (auto, domain) in self.autos.iter().zip(&self.domains).rev() {
            env[auto.value] = Some(domain[rest % domain.len()]);
            rest /= domain.len();
        }
        self.bind_same(env);
        let last = self.domains.len() - 1;
        let Some(product) = self.work.regions.iter().flat_map(|r| &r.products).next() else { return (last, true) };
        let Some((m, n)) = self.work.k.schedule.warp_tile else { return (last, true) };
        let extent = |e| self.work.extent(env, e).unwrap_or(1);
        let (rows, cols, wm, wn) = (extent(product.shape[0]), extent(product.shape[1]), extent(m), extent(n));
        let tile = rows.saturating_mul(cols);
        let groups = self.work.k.schedule.k_warps.map_or(1, extent);
        let chosen = |role: Role| self.autos.iter().position(|a| a.role == role);
        let warps = tile.saturating_mul(groups) / wm.saturating_mul(wn).max(1);
        let most = if self.scalar { MOST_SCALAR_WARPS } else { MOST_WARPS };
        let warp_tile_chosen = chosen(Role::WarpRows).or(chosen(Role::WarpCols)).is_some();
        let shape = [Role::Rows, Role::Cols, Role::WarpRows, Role::WarpCols, Role::Groups];
        let level = || shape.into_iter().filter_map(chosen).max().unwrap_or(last);
        let warpgroups = self.warpgroups.is_some();
        if warp_tile_chosen && (warps > most || !divides(wm, rows, warpgroups) || !divides(wn, cols, warpgroups))
            || chosen(Role::Groups).is_some() && groups > 1 && tile > SMALL_TILE
        {
            return (level(), false);
        }
        let longest = match self.warpgroups {
            Some(_) => 512,
            None if self.scalar => 64,
            None => 128,
        };
        let depth = extent(product.shape[2]).saturating_mul(u64::from(product.inputs.bytes()));
        (last, chosen(Role::Depth).is_none() || depth <= longest * groups)
    }

    /// A bound on the time of a combination: its products at full rate on all multiprocessors, or its operands through the
    /// second-level cache. `None` without a product.
    fn least(&self, env: &Env, launch: &Launch) -> Option<f64> {
        let region = self.work.regions.iter().find(|r| !r.products.is_empty())?;
        let product = &region.products[0];
        let [rows, cols, depth] = product.shape.map(|e| self.work.extent(env, e).unwrap_or(1) as f64);
        let (blocks, sms): (f64, f64) = (launch.grid.iter().product(), f64::from(self.card.sms));
        let each = self.work.trips(env, region) * depth;
        // Bytes of each operand for a step of the reduction, as it comes from memory; of what is loaded elsewhere, or not at all, none.
        let loaded = |operand: usize, lines: f64| {
            let buffer = product.operands[operand].buffer;
            let load = region.moves.iter().find(|m| m.load && buffer.is_some() && m.buffer == buffer);
            load.map_or(0.0, |m| lines * m.bytes as f64)
        };
        let (left, right) = (loaded(0, rows), loaded(1, cols));
        // Blocks may share tiles along the reduction, and those of a cluster share the larger operand.
        let (rounds, shared) = match self.warpgroups {
            Some(_) if self.setting().stream_k != Some(false) => {
                ((blocks / sms).max(1.0 / MOST as f64), left.max(right) / 2.0)
            }
            Some(_) => ((blocks / sms).ceil(), left.max(right) / 2.0),
            None => ((blocks / sms).ceil(), 0.0),
        };
        let macs = rounds * rows * cols * each / self.fastest_rate;
        let bytes = blocks * (left + right - shared) * each / self.card.l2;
        Some(macs.max(bytes) / (self.card.clock * 1e9))
    }

    /// The values of a combination, and what is predicted of it.
    fn prediction(&self, candidate: Candidate, env: &mut Env) -> (Vec<(Value, i64)>, Prediction) {
        self.step(candidate.index, env);
        if let Some(auto) = self.stages {
            env[auto] = Some(candidate.stages);
            self.bind_same(env);
        }
        let prediction = self.predict(env).expect("it was timed");
        (self.autos.iter().map(|a| (a.value, env[a.value].unwrap_or(1))).collect(), prediction)
    }

    /// Values by name, in the order of the kernel.
    pub(super) fn named(&self, values: &[(Value, i64)]) -> Vec<(String, i64)> {
        let k = self.work.k;
        let value = |p: &Value| values.iter().find(|(v, _)| v == p).map(|&(_, x)| (k.values[*p].name.clone(), x));
        k.const_params.iter().filter_map(value).collect()
    }

    /// How many combinations are legal; each is timed, however slow it is bound to be.
    #[cfg(test)]
    pub(super) fn legal(&self) -> usize {
        self.timed(f64::INFINITY).map_or(0, |timed| timed.len())
    }

    /// What a kernel without parameters to choose costs, and what its launch is, for the model alone.
    #[cfg(test)]
    pub(super) fn parts(&self) -> Option<(Cost, Launch)> {
        let mut env = self.env.clone();
        let cost = self.setting().cost(&env).ok()?;
        let mut launch = self.launch(&env, self.bytes(&env));
        self.raster(&mut env, &cost, &mut launch);
        Some((cost, launch))
    }

    /// What is predicted with the values of `env`.
    fn predict(&self, env: &mut Env) -> Option<Prediction> {
        let cost = self.setting().cost(env).ok()?;
        let mut launch = self.launch(env, self.bytes(env));
        self.raster(env, &cost, &mut launch);
        let time = model::time(self.card, &cost, &launch);
        let k = self.work.k;
        let given = |v: Value| self.options.sizes.iter().any(|(name, _)| *name == k.values[v].name);
        Some(Prediction {
            card: self.card.name,
            sizes: k.sizes.iter().map(|&v| (k.values[v].name.clone(), env[v].unwrap_or(1))).collect(),
            sizes_given: k.sizes.iter().any(|&v| given(v)),
            seconds: time.seconds,
            flops: 2.0 * cost.macs * time.blocks,
            terms: time.terms,
            blocks: time.blocks,
            waves: time.waves,
            resident: cost.resident,
            threads: cost.block.threads,
            registers: cost.block.tiles,
            shared: cost.block.shared,
            atom: cost.atom.map(|a| a.row().name),
        })
    }

    /// What is predicted of a kernel without parameters to choose.
    pub(super) fn whole(&self) -> Option<Prediction> {
        self.sees_through().then(|| self.predict(&mut self.env.clone()))?
    }

    /// Whether the rules for one product hold for all of them: their operands are tiles.
    fn sees_through(&self) -> bool {
        let mut products = self.work.regions.iter().flat_map(|r| &r.products);
        products.all(|p| p.operands.iter().all(|o| !o.computed))
    }

    /// The seconds that it takes with these sizes.
    pub(super) fn seconds(&self, sizes: &[(Value, i64)]) -> Option<f64> {
        if !self.sees_through() {
            return None;
        }
        let mut env = self.env.clone();
        for &(v, x) in sizes {
            env[v] = Some(x);
        }
        let cost = self.setting().cost(&env).ok()?;
        let mut launch = self.launch(&env, self.bytes(&env));
        self.raster(&mut env, &cost, &mut launch);
        Some(model::time(self.card, &cost, &launch).seconds)
    }

    /// The plain values, warp tiles cut to what there is; if the kernel does not allow them, the first that it allows.
    pub(super) fn plain(self) -> Result<Found, Failed> {
        if self.is_of_several() {
            return self.plain_of_several();
        }
        match self.first() {
            Err(Failed::NoneLegal(_)) => Search { crowded: true, ..self }.first(),
            found => found,
        }
    }

    fn first(&self) -> Result<Found, Failed> {
        let mut env = self.env.clone();
        let product = self.work.regions.iter().flat_map(|r| &r.products).next();
        let extents = product.map(|p| p.shape.map(|e| self.work.int(&env, e).unwrap_or(i64::MAX)));
        let values: Vec<i64> = self
            .autos
            .iter()
            .map(|a| match (a.role, extents) {
                (Role::WarpRows, Some([rows, ..])) => a.role.plain().min(rows),
                (Role::WarpCols, Some([_, cols, _])) => a.role.plain().min(cols),
                _ => a.role.plain(),
            })
            .collect();
        let named = |values: &[i64]| self.autos.iter().map(|a| a.value).zip(values.iter().copied()).collect();
        self.bind(&mut env, &values);
        let mut furthest = match self.setting().cost(&env) {
            Ok(_) => return Ok(Found { values: named(&values), choice: None, crowded: self.crowded }),
            Err(why) => why,
        };
        for index in 0..self.count().unwrap_or(0) {
            self.step(index, &mut env);
            match self.setting().cost(&env) {
                Ok(_) => {
                    let values = self.autos.iter().map(|a| (a.value, env[a.value].unwrap_or(1))).collect();
                    return Ok(Found { values, choice: None, crowded: self.crowded });
                }
                Err(why) => furthest = furthest.max(why),
            }
        }
        Err(Failed::NoneLegal(furthest))
    }
}
