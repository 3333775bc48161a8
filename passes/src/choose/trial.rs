//! Runs the passes on a candidate. For kernels with several products, legality and schedules come from the passes themselves.
//!
//! A copy of the kernel with the candidate's values goes through `specialize`, `select-mma` and, if producer warps feed wgmma, `schedule-loops`. A candidate that one of
//! them refuses is not legal. Nor is one that loses wgmma, if another candidate keeps it. The decisions of the passes give the cost of a block:
//! warps and their tiles, registers from liveness, and for loops with wgmma the clocks of an iteration from the modulo schedule.

use super::cards::Card;
use super::cost::{Cost, Part, ahead};
use super::model::launch::SCHEDULERS;
use super::product::wgmma;
use super::search_context::AssumedPaths;
use super::unit_work::{CHAIN_TENSOR, DIRECT_ACCESS, NARROW, STAGED_ACCESS};
use super::work::{Env, Product, Region, Work};
use crate::analysis::access_width::MAX_ACCESS_BYTES;
use crate::analysis::live_ranges;
use crate::analysis::views::plain_var;
use crate::analysis::wgmma::elements_read;
use crate::registers::overhead::ADDRESSES;
use crate::schedule::occupancy;
use crate::schedule_loops::{self, issue_clocks, tensor_rate};
use crate::select_mma::{self, Sharing, best_atom};
use crate::{Cx, Options, pipeline, place_shared, roles, specialize, trial_passes};
use tilec_ir::atoms::Atom;
use tilec_ir::bits::Bits;
use tilec_ir::diag::{Reported, Severity, Sink};
use tilec_ir::entities::{Block, Expr, Stmt};
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::missed_paths::MissedPath;
use tilec_ir::target::{REGISTERS_PER_THREAD, Target, WARP, WARPGROUP};

/// Registers per thread that the assembler takes beyond the estimate (ptxas 13: 3 to 47 for `attention.tile` on sm_80,
/// with heads of 64 and 128, 64 or 128 queries, 32 to 128 keys).
const BESIDE: u64 = 32;
/// Bytes of the widest access of a warp.
const ACCESS: f64 = (MAX_ACCESS_BYTES * WARP) as f64;
/// Bytes of the widest access of a thread.
const WIDEST: u64 = MAX_ACCESS_BYTES as u64;

/// A candidate after the passes.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) cost: Cost,
    /// For each loop with wgmma, the number of its region and the clocks of an iteration; empty: products use
    /// `mma.sync` or scalar instructions.
    pub(super) iterations: Vec<(usize, f64)>,
    /// Clocks of a tile of the output outside of these loops.
    pub(super) ends: f64,
    /// Slots of the channels that loops fill.
    pub(super) slots: i64,
}

/// Runs a pass and drops its messages.
///
/// # Errors
/// The first message of an error.
fn quietly<R>(
    options: &Options,
    pass: &'static str,
    run: impl FnOnce(&mut Cx<'_>) -> Result<R, Reported>,
) -> Result<R, String> {
    let mut sink = Sink::new();
    let result = run(&mut Cx::new(options, pass, &mut sink).without_warnings());
    result.map_err(|_| {
        let error = sink.diagnostics().iter().find(|d| d.severity == Severity::Error);
        error.map_or_else(|| format!("`{pass}` refuses it"), |d| d.message.clone())
    })
}

impl Trial {
    /// A block with known cost, with `mma.sync` or ping-pong warpgroups.
    pub(super) fn of(cost: Cost) -> Trial {
        Trial { cost, iterations: Vec::new(), ends: 0.0, slots: 0 }
    }

    /// Whether its products are wgmma in a schedule.
    pub(super) fn scheduled(&self) -> bool {
        !self.iterations.is_empty()
    }
}

/// The same options without values for the parameters in `env`.
fn bare(options: &Options) -> Options {
    Options { defines: Vec::new(), sizes: Vec::new(), verify_each: false, ..options.clone() }
}

/// A copy of the kernel with the values of `env` as defaults.
fn with_values(work: &Work<'_>, env: &Env) -> Kernel {
    let mut k = work.k.clone();
    for &p in &work.k.const_params {
        if let (ValueDef::ConstParam(param), Some(value)) = (&mut k.values[p].def, env[p]) {
            param.default = Some(ConstValue::Int(value));
        }
    }
    k
}

/// What the kernel loses with the values of `env`, if the passes that create buffers accept them, and a block has
/// enough shared memory.
pub(super) fn compiled(work: &Work<'_>, options: &Options, env: &Env) -> Option<Vec<MissedPath>> {
    let (options, mut sink) = (bare(options), Sink::new());
    let mut k = with_values(work, env);
    let mut passes = trial_passes::between(specialize::NAME, pipeline::NAME);
    let all =
        passes.all(|(pass, run)| run(&mut k, &mut Cx::new(&options, pass.name, &mut sink).without_warnings()).is_ok());
    let limit = options.target.smem_per_block();
    let fits = all && place_shared::bytes(&k, &options, limit, &[]) <= limit;
    fits.then(|| sink.into_diagnostics().into_iter().filter_map(|d| d.loss).collect())
}

/// Tests the values of `env` with the passes. `crowded`: a thread may exceed its registers, because nothing else is
/// legal.
///
/// # Errors
/// The pass's message why they are not legal.
pub(super) fn run_trial(
    work: &Work<'_>,
    options: &Options,
    (card, crowded): (&Card, bool),
    supposed: AssumedPaths<'_>,
    env: &Env,
) -> Result<Trial, String> {
    let options = &bare(options);
    let mut k = with_values(work, env);
    quietly(options, specialize::NAME, |cx| specialize::run(&mut k, cx))?;
    let specialized = k.clone();
    let mut whole = k.clone();
    quietly(options, select_mma::NAME, |cx| select_mma::run(&mut k, cx))?;
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|t| u64::try_from(t).ok()).unwrap_or(128);
    let specialized = &specialized;
    let reader = Reader { work, card, options, env, specialized, k: &k, threads, supposed };
    if !schedule_loops::is_scheduled(&k) {
        // Sharing between warps is determined before products become loops over slices.
        let sharing = quietly(options, select_mma::NAME, |cx| select_mma::sharing(&mut whole, cx));
        let sharing = sharing?.ok_or_else(|| "the kernel has no product".to_owned())?;
        return reader.of_warps(&sharing, crowded);
    }
    reader.has_room(crowded)?;
    let (parts, shared) = (reader.parts(), reader.shared(&|_| pipeline::usual_slots(true, false)));
    let iterations = quietly(options, schedule_loops::NAME, |cx| schedule_loops::plan(&mut k, cx))?;
    Ok(Reader { work, card, options, env, specialized, k: &k, threads, supposed }.of_warpgroups(
        parts,
        shared,
        &iterations,
    ))
}

/// The smallest number of slots among channels with several slots.
fn slots(k: &Kernel) -> i64 {
    let own = k.values.values().filter_map(|v| match v.def {
        ValueDef::Channel { slots, .. } => k.as_int(slots).filter(|&n| n > 1),
        _ => None,
    });
    own.min().unwrap_or(1)
}

struct Reader<'a> {
    work: &'a Work<'a>,
    card: &'a Card,
    options: &'a Options,
    env: &'a Env,
    /// The kernel in front of `select-mma`, and after it.
    specialized: &'a Kernel,
    k: &'a Kernel,
    threads: u64,
    supposed: AssumedPaths<'a>,
}

impl Reader<'_> {
    /// Warp instructions of a region, without memory copies: of the statements beside products, and of operands that are
    /// computed.
    fn issued(&self, region: &Region) -> f64 {
        // `select-mma` makes tiles of the operands.
        let operands = region.products.iter().map(|p| issue_clocks(self.specialized, self.card, p.at, self.threads));
        let clocks = self.beside_products(region) + operands.sum::<u64>();
        clocks as f64 * (self.threads / u64::from(WARP)) as f64
    }

    /// Clocks in which a warp issues the statements of a region that are neither products nor memory copies.
    fn beside_products(&self, region: &Region) -> u64 {
        let is_product = |s: &&Stmt| region.products.iter().any(|p| p.at == **s);
        let own = region.stmts.iter().filter(|s| !is_product(s));
        own.map(|&s| issue_clocks(self.k, self.card, s, self.threads)).sum()
    }

    /// The part of a region without its products.
    fn part(&self, region: &Region) -> Part {
        let mut part =
            Part { trips: self.work.trips(self.env, region), issued: self.issued(region), ..Part::default() };
        let asynchronous = self.options.target.has_asynchronous_copies();
        let mut fills = false;
        for m in &region.moves {
            let bytes = m.elem.bytes_of(self.work.elements(self.env, &m.shape).unwrap_or(0)) as f64;
            *(if m.load { &mut part.loads } else { &mut part.stores }) += bytes;
            let filled = m.load && m.buffer.is_some();
            fills |= filled;
            part.shared += if filled { bytes } else { 0.0 };
            let narrow = self.supposed.narrow.contains(&m.at);
            let narrow =
                if narrow { (WIDEST / m.elem.bytes_of(m.width).clamp(1, WIDEST)) as f64 * NARROW } else { 1.0 };
            part.issued +=
                narrow * bytes / ACCESS * if filled && !asynchronous { STAGED_ACCESS } else { DIRECT_ACCESS };
        }
        let looped = !region.loops.is_empty();
        part.staged = looped && fills && !asynchronous;
        part.synchronised = looped && fills;
        part
    }

    fn macs(&self, region: &Region) -> f64 {
        let each = region.products.iter().map(|p| self.work.elements(self.env, &p.shape).unwrap_or(0) as f64);
        self.work.trips(self.env, region) * each.sum::<f64>()
    }

    fn cost(&self, parts: Vec<Part>, block: occupancy::Block, resident: u64, atom: Option<Atom>) -> Cost {
        let tile = self.work.regions.iter().flat_map(|r| &r.products).next();
        let extent = |i: usize| tile.and_then(|p| self.work.extent(self.env, p.shape[i]));
        let tile = extent(0).zip(extent(1));
        let macs = self.work.regions.iter().map(|r| self.macs(r)).sum();
        Cost::of_parts(block, resident, parts, (tile, atom), macs)
    }

    /// The cost with products by `mma.sync` or scalar instructions.
    fn of_warps(&self, sharing: &Sharing, crowded: bool) -> Result<Trial, String> {
        let whole = occupancy::Block {
            threads: sharing.threads,
            tiles: 0,
            shared: 0,
            wide: true,
            mixed: 0,
            lone: false,
            other: 0,
        };
        let (has, registers) = (whole.cap(1), sharing.registers + self.staged(sharing.threads));
        // Registers of functions are in addition to what code usually needs beyond its tiles.
        let functions = match self.work.functions {
            0 => 0,
            n => BESIDE + n,
        };
        if registers + functions > has && !crowded {
            return Err(format!("a thread would hold {registers} registers of tiles, and has {has}"));
        }
        let (target, warps) = (self.options.target, sharing.threads / u64::from(WARP));
        let tensor_cores = self.options.is_on(select_mma::NAME);
        let slots = |region: &Region| {
            let scheduled = self.work.k.schedule.stages.and_then(|e| self.work.extent(self.env, e));
            let multiplies_only = self.beside_products(region) == 0;
            scheduled.unwrap_or(pipeline::usual_slots(target.has_asynchronous_copies(), multiplies_only))
        };
        let (mut parts, mut first) = (Vec::new(), None);
        for region in &self.work.regions {
            let mut part = self.part(region);
            for product in &region.products {
                let [_, _, depth] = product.shape.map(|e| self.work.extent(self.env, e).unwrap_or(1));
                let tile = sharing.tiles.iter().find(|(v, _)| *v == product.accumulator).map(|(_, tile)| *tile);
                let (wm, wn) = tile.ok_or_else(|| "a product has no warp tile".to_owned())?;
                let types = (product.inputs, product.acc);
                let atom = product.atom.or_else(|| best_atom(target, tensor_cores, types, (wm, wn, depth)));
                let atom = atom.ok_or_else(|| "no instruction has these types".to_owned())?;
                first = first.or(Some(atom));
                let macs = self.work.elements(self.env, &product.shape).unwrap_or(0) as f64;
                if self.supposed.wgmma.contains(&product.at) {
                    part.product += macs / self.card.rate(wgmma(target, product), product.inputs, product.acc);
                    part.shared += read_by_warpgroups(self.work, self.env, product);
                    continue;
                }
                part.product += macs / self.card.rate(atom, product.inputs, product.acc);
                part.scalar |= !atom.row().tensor_core;
                let (m, n, k) = atom.row().log2_shape;
                part.issued += macs / f64::from(1u32 << (m + n + k));
                // Each warp reads its rows of one operand and its columns of the other.
                let read = product.operands.iter().zip([wm, wn]).filter(|(o, _)| o.buffer.is_some());
                for (_, extent) in read {
                    let read = product.inputs.size().bytes_of(warps * extent * depth) as f64;
                    part.shared += read;
                    part.issued += read / ACCESS;
                }
                part.chain += depth as f64 / f64::from(1u32 << k) * CHAIN_TENSOR;
            }
            // A computed operand waits for a product, and the next product waits for the operand: one block has nothing
            // to overlap with.
            if region.products.iter().flat_map(|p| &p.operands).any(|o| o.computed) {
                part.chain = part.chain.max(part.product + part.issued / SCHEDULERS);
            }
            part.ahead = if part.staged { 1.0 } else { ahead(slots(region)) };
            parts.push(part);
        }
        let shared = self.shared(&slots) + self.work.cluster_memory(self.env);
        if shared > target.smem_per_block() {
            return Err(format!("{shared} bytes of shared memory, and a block has {}", target.smem_per_block()));
        }
        let block = occupancy::Block { tiles: sharing.registers, shared, ..whole };
        // Code for an older target runs on the card like code for its own target.
        let own = Target::ALL.iter().copied().find(|t| t.cc() == self.card.cc).unwrap_or(target);
        let registers = (sharing.registers + BESIDE).min(u64::from(REGISTERS_PER_THREAD));
        let resident = block.with_registers(registers, own);
        Ok(Trial::of(self.cost(parts, block, resident, first)))
    }

    /// Registers that hold the tiles of a loop on their way to shared memory, beyond those of one product's operands,
    /// if copies are not asynchronous.
    fn staged(&self, threads: u64) -> u64 {
        if self.options.target.has_asynchronous_copies() {
            return 0;
        }
        let bytes = |shape: &[Expr], elem: Bits| elem.bytes_of(self.work.elements(self.env, shape).unwrap_or(0));
        let more = |region: &Region| {
            let fills = region.moves.iter().filter(|m| m.load && m.buffer.is_some());
            let all: u64 = fills.map(|m| bytes(&m.shape, m.elem)).sum();
            let of_one = region.products.iter().map(|p| {
                let [rows, cols, depth] = p.shape;
                let each = p.inputs.size();
                bytes(&[rows, depth], each) + bytes(&[depth, cols], each)
            });
            all.saturating_sub(of_one.max().unwrap_or(0))
        };
        let looped = self.work.regions.iter().filter(|r| !r.loops.is_empty());
        looped.map(more).max().unwrap_or(0) / (4 * threads)
    }

    /// Bytes of shared memory, with `slots` for the buffers that loops fill.
    fn shared(&self, slots: &dyn Fn(&Region) -> u64) -> u64 {
        let (mut all, mut filled) = (0, 0);
        for tile in self.work.tiles.iter().filter(|t| t.shared) {
            let bytes = tile.elem.bytes_of(self.work.elements(self.env, &tile.shape).unwrap_or(0));
            let fills =
                |r: &&Region| !r.loops.is_empty() && r.moves.iter().any(|m| m.load && m.buffer == Some(tile.value));
            let ring = self.work.regions.iter().find(fills).map_or(1, slots);
            all += bytes * ring;
            filled += bytes * (ring - 1);
        }
        // The number of slots is reduced if it was not requested.
        let limit = self.options.target.smem_per_block().saturating_sub(self.work.cluster_memory(self.env));
        if self.work.k.schedule.stages.is_none() && all > limit {
            all.saturating_sub(filled).max(all.min(limit))
        } else {
            all
        }
    }

    /// Whether a thread of the warpgroups has registers for the tiles and functions; `select-mma` has checked the loops
    /// with products.
    fn has_room(&self, crowded: bool) -> Result<(), String> {
        let functions = self.work.functions;
        if crowded {
            return Ok(());
        }
        let warps = u32::try_from(self.threads / u64::from(WARP)).expect("a block has few warps");
        let groups = u64::from(warps / WARPGROUP);
        // An operand that one iteration passes to the next is live while both have accumulators.
        let handed = |s: &StmtData| match s {
            StmtData::Assign { src, .. } => match self.k.exprs[*src] {
                ExprData::Mma(mma) => {
                    [mma.a, mma.b].into_iter().find_map(|e| live_ranges::tile_of(self.k, plain_var(self.k, e)?))
                }
                _ => None,
            },
            _ => None,
        };
        let handed: u64 = self.k.statement_data().filter_map(handed).map(|tile| tile.of_warpgroups(groups)).sum();
        let tiles = live_ranges::most_of_warpgroups(self.k, groups) + if functions == 0 { 0 } else { handed };
        let has = u64::try_from(roles::consumer_registers(self.k, warps)).expect("a count of registers");
        if tiles + ADDRESSES + functions <= has {
            return Ok(());
        }
        Err(format!("a thread would hold {tiles} registers of tiles and {functions} of functions, and has {has}"))
    }

    /// The parts of all regions without their products.
    fn parts(&self) -> Vec<Part> {
        self.work.regions.iter().map(|region| self.part(region)).collect()
    }

    /// The cost with wgmma and producer warps; the modulo schedule gives the clocks of an iteration. `parts` and
    /// `shared` (bytes) are from before the schedule.
    fn of_warpgroups(&self, mut parts: Vec<Part>, shared: u64, iterations: &[(Block, u64)]) -> Trial {
        let (mut clocks, mut ends) = (Vec::new(), 0.0);
        for (number, (region, part)) in self.work.regions.iter().zip(&mut parts).enumerate() {
            let body = region.at.map(|s| match self.k.stmts[s] {
                StmtData::For { body, .. } => body,
                _ => unreachable!("a region is that of a loop"),
            });
            match iterations.iter().find(|(b, _)| Some(*b) == body) {
                Some(&(_, length)) => {
                    let worked = |p: &Product| {
                        let rate = tensor_rate(self.card, p.inputs.b.size()) as f64;
                        self.work.elements(self.env, &p.shape).unwrap_or(0) as f64 / rate
                    };
                    part.product = region.products.iter().map(worked).sum();
                    part.shared = region.products.iter().map(|p| read_by_warpgroups(self.work, self.env, p)).sum();
                    clocks.push((number, length as f64));
                }
                None => ends += part.trips * part.issued / SCHEDULERS,
            }
        }
        let atom = Atom::all().find(|a| a.row().asynchronous());
        let block =
            occupancy::Block { threads: self.threads, tiles: 0, shared, wide: true, mixed: 0, lone: false, other: 0 };
        let cost = self.cost(parts, block, 1, atom);
        Trial { cost, iterations: clocks, ends, slots: slots(self.k) }
    }
}

/// Bytes of shared memory that the instructions of a product read.
pub(super) fn read_by_warpgroups(work: &Work<'_>, env: &Env, product: &Product) -> f64 {
    let shape = product.shape.map(|e| work.extent(env, e).unwrap_or(1) as f64);
    product.inputs.size().traffic(elements_read(shape, product.operands.map(|o| o.buffer.is_some())))
}
