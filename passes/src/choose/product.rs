//! Products of a candidate: warp tile, instruction and threads, as `select-mma` decides them.

use super::illegal::Illegal;
use super::search_context::SearchContext;
use super::work::{Env, Product};
use crate::registers::overhead::ADDRESSES;
use crate::roles::consumer_registers;
use crate::select_mma::atoms::transposed;
use crate::select_mma::k_warps::least_depth;
use crate::select_mma::tiles::{NoTile, Owners, TileMisfit, Tiled, WgmmaQuery};
use crate::select_mma::warpgroup::{self, WgmmaForm};
use crate::select_mma::{best_atom, slice_depth, transposes, usual_tile};
use tilec_ir::atoms::Atom;
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::{MAX_THREADS, Target, WARP, WARPGROUP};
use tilec_ir::types::MAX_ELEMENTS;

/// Most accumulator registers of chosen tiles for three warpgroups: 176 columns with f32 sums. The assembler (ptxas
/// 13.0) spills 8 to 24 bytes for 192x192.
const THREE: u64 = 88;
/// Most elements of a warpgroup's tile if a product is transposed to fit few rows: the assembler (ptxas 13) spills 224
/// bytes for 176x128, 32 bytes for 160x128, none for 144x128 and 240x64.
const TURNED: u64 = 144 * 128;

/// Most rows that a warp multiplies with an operand that it converts, if chosen.
const FED_ROWS: u64 = 16;

/// The requested extents of a product.
struct Extents {
    rows: u64,
    cols: u64,
    depth: u64,
    /// Groups of warps that share the depth (sliced-K).
    groups: u64,
}

/// For products without wgmma.
const PLAIN: WgmmaForm = WgmmaForm { swap: false, registers: false };

/// The wgmma instruction for a product with supported types.
pub(super) fn wgmma(target: Target, product: &Product) -> Atom {
    warpgroup::atom(target, (product.inputs, product.acc)).expect("bug: a product that could be no wgmma is none")
}

/// A product of a candidate.
#[derive(Copy, Clone)]
pub(super) struct Shape {
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) depth: u64,
    pub(super) warp: (u64, u64),
    /// Groups of warps that share the depth (sliced-K).
    pub(super) groups: u64,
    pub(super) atom: Atom,
    /// How a wgmma product is computed.
    pub(super) form: WgmmaForm,
    /// Registers for each sum: two if partial sums are promoted.
    pub(super) sums: u64,
}

impl SearchContext<'_> {
    /// The tiles and instruction of a product, as `select-mma` decides them; sets the thread count.
    pub(super) fn shape(&self, env: &Env, product: &Product, threads: &mut Option<u64>) -> Result<Shape, Illegal> {
        let (work, schedule) = (self.work, &self.work.k.schedule);
        let extent =
            |i: usize| work.extent(env, product.shape[i]).filter(|&n| n <= MAX_ELEMENTS).ok_or(Illegal::Extent);
        let (rows, cols, depth) = (extent(0)?, extent(1)?, extent(2)?);
        let groups = schedule.k_warps.map_or(Some(1), |e| work.extent(env, e)).ok_or(Illegal::Threads)?;
        if !groups.is_power_of_two() || depth < groups {
            return Err(Illegal::Threads);
        }
        let wanted = Extents { rows, cols, depth, groups };
        match self.warpgroups {
            Some(way) => match self.of_warpgroups(env, product, way, &wanted, threads) {
                Err(Illegal::WarpTile) if is_converted(product) => self.of_fed_warps(env, product, &wanted, threads),
                found => found,
            },
            None => self.of_warps(env, product, wanted, threads),
        }
    }

    /// The tile of each warp, or warpgroup, in the schedule.
    fn scheduled(&self, env: &Env) -> Result<Option<(u64, u64)>, Illegal> {
        let Some((m, n)) = self.work.k.schedule.warp_tile else { return Ok(None) };
        let tile = self.work.extent(env, m).zip(self.work.extent(env, n));
        tile.map(Some).ok_or(Illegal::WarpTile)
    }

    /// A product of warps.
    fn of_warps(
        &self,
        env: &Env,
        product: &Product,
        Extents { rows, cols, depth, groups }: Extents,
        threads: &mut Option<u64>,
    ) -> Result<Shape, Illegal> {
        // Without a schedule, products divide the available registers later; this is the initial tile.
        let reduced = [0, 1].map(|axis| self.reduced.contains(&axis));
        let warp = self.scheduled(env)?.unwrap_or_else(|| usual_tile((rows, cols), reduced));
        let fit = Owners::Warps { groups }.fit((rows, cols), warp, product.acc.size(), *threads);
        // Before values are known, it is unknown which tile a reduction has. So in a kernel with a reduction, all
        // products have whole rows or columns in a warp.
        let whole = |axis: usize, own: u64, all: u64| !self.reduced.contains(&axis) || own == all;
        if fit != Err(TileMisfit::Divides) && !(whole(0, warp.0, rows) && whole(1, warp.1, cols)) {
            return Err(Illegal::WarpTile);
        }
        *threads = Some(fit?);
        let types = (product.inputs, product.acc);
        if groups > 1 && depth / groups < least_depth(self.target, self.tensor_cores, types, (warp.0, warp.1, depth)) {
            return Err(Illegal::Atom);
        }
        let tile = (warp.0, warp.1, depth / groups);
        let atom = product.atom.or_else(|| best_atom(self.target, self.tensor_cores, types, tile));
        Ok(Shape { rows, cols, depth, warp, groups, atom: atom.ok_or(Illegal::Atom)?, form: PLAIN, sums: 1 })
    }

    /// A wgmma product.
    fn of_warpgroups(
        &self,
        env: &Env,
        product: &Product,
        way: WgmmaForm,
        &Extents { rows, cols, depth, groups }: &Extents,
        threads: &mut Option<u64>,
    ) -> Result<Shape, Illegal> {
        let atom = warpgroup::atom(self.target, (product.inputs, product.acc)).ok_or(Illegal::Atom)?;
        // Partial sums that the program itself adds are as deep as its tiles.
        let promoted = match product.whole {
            Some(_) => Some(depth),
            None => self.promoted(env, atom, product.acc)?,
        };
        // Ping-pong warpgroups each compute a whole tile.
        let whole = self.ping_pong(env).then_some((rows, cols));
        let scheduled = self.scheduled(env)?.or(whole);
        let (block, reduced) = ((rows, cols, depth), self.reduced);
        let (fixed, written) = (false, false);
        let wanted =
            WgmmaQuery { atom, form: way, fixed, written, block, acc: product.acc, scheduled, promoted, reduced };
        let tiled = wanted.plan(self.work.k).map_err(|why| match why {
            NoTile::Deep { .. } => Illegal::Promotion,
            NoTile::Shape => Illegal::WarpTile,
            NoTile::Instruction { .. } => Illegal::Registers,
        })?;
        if whole.is_some_and(|whole| whole != tiled.tile) {
            return Err(Illegal::WarpTile);
        }
        let needed = Owners::Warpgroups.fit((rows, cols), tiled.tile, product.acc.size(), *threads)?;
        // The producer has a warpgroup of its own.
        let replicas = if whole.is_some() { 2 } else { 1 };
        if groups > 1 || needed * replicas + u64::from(PRODUCER_WARPS * WARP) > u64::from(MAX_THREADS) {
            return Err(Illegal::Threads);
        }
        *threads = Some(needed);
        self.measured(&wanted, &tiled)?;
        Ok(Shape { rows, cols, depth, warp: tiled.tile, groups, atom, form: tiled.form, sums: tiled.sums })
    }

    /// An `mma.sync` product whose operands producer warps load (`select_mma::producer_mma`), with tiles that are smaller than a
    /// warpgroup's.
    fn of_fed_warps(
        &self,
        env: &Env,
        product: &Product,
        &Extents { rows, cols, depth, groups }: &Extents,
        threads: &mut Option<u64>,
    ) -> Result<Shape, Illegal> {
        let warp = self.scheduled(env)?.ok_or(Illegal::WarpTile)?;
        if groups > 1 || self.ping_pong(env) {
            return Err(Illegal::WarpTile);
        }
        let needed = Owners::Warps { groups }.fit((rows, cols), warp, product.acc.size(), *threads)?;
        let whole = needed.is_multiple_of(u64::from(WARPGROUP * WARP));
        if !whole || needed + u64::from(PRODUCER_WARPS * WARP) > u64::from(MAX_THREADS) {
            return Err(Illegal::Threads);
        }
        // With more rows, a step takes twice the predicted time (64x8192x8192 of W4A16 on an H100: 38.7 us in tiles of
        // 64x256, 26.2 us by warpgroups in tiles of 64x64).
        let others = if product.operands[1].computed { warp.0 } else { warp.1 };
        if others > FED_ROWS {
            return Err(Illegal::Registers);
        }
        let types = (product.inputs, product.acc);
        let best = |tile| best_atom(self.target, self.tensor_cores, types, tile).filter(|atom| atom.row().tensor_core);
        let tile = (warp.0, warp.1, depth);
        let atom = best(tile).or_else(|| best(transposed(tile))).ok_or(Illegal::WarpTile)?;
        // The sums, fragments of both operands, and the source of the converted operand.
        let bytes =
            product.acc.bytes_of(warp.0 * warp.1) + product.inputs.size().bytes_of((warp.0 + 2 * warp.1) * depth);
        let warps = u32::try_from(needed / u64::from(WARP)).map_err(|_| Illegal::Threads)?;
        let room = u64::try_from(consumer_registers(self.work.k, warps)).unwrap_or(0);
        if bytes / u64::from(WARP) / 4 + ADDRESSES > room {
            return Err(Illegal::Registers);
        }
        *threads = Some(needed);
        Ok(Shape { rows, cols, depth, warp, groups, atom, form: PLAIN, sums: 1 })
    }

    /// Excludes legal shapes whose predictions deviate from measurements.
    fn measured(&self, wanted: &WgmmaQuery<'_>, tiled: &Tiled) -> Result<(), Illegal> {
        let (rows, cols, _) = wanted.block;
        let own_rows = if tiled.form.swap { cols } else { rows };
        let turned = tiled.form.swap != wanted.form.swap;
        if self.crowded {
            return Ok(());
        }
        // Three warpgroups divide the rows of the output: if the product is transposed for them, results are stored in
        // narrow pieces.
        if turned && !own_rows.is_power_of_two() {
            return Err(Illegal::WarpTile);
        }
        // Results of a transposed product are exchanged before they are stored, in additional registers.
        let three = Owners::Warpgroups.threads((rows, cols), tiled.tile) == u64::from(3 * WARPGROUP * WARP);
        let has_room = tiled.has_room(self.work.k, (rows, cols));
        // Partial sums are dead when results are stored.
        let stored = tiled.registers / tiled.sums;
        if !has_room || turned && tiled.tile.0 * tiled.tile.1 > TURNED || three && stored > THREE {
            return Err(Illegal::Registers);
        }
        Ok(())
    }
}

/// Whether threads convert an operand of a product whose operands producer warps load.
pub(super) fn is_converted(product: &Product) -> bool {
    product.operands.iter().any(|operand| operand.computed)
}

/// The depth of the fragments of a product. Operands of scalar multiply-adds are never contiguous along the reduction.
pub(super) fn slice(product: &Product, shape: &Shape) -> u64 {
    let row = shape.atom.row();
    slice_depth(
        row,
        product.operands.map(|o| {
            let along = if row.sums() { o.along || transposes(row, product.inputs.a) } else { false };
            along.then(|| product.inputs.size())
        }),
        shape.depth / shape.groups,
    )
}
