//! Products of a candidate: the tile of each warp, the instruction and the threads, as `select-mma` decides them.

use super::illegal::Illegal;
use super::setting::Setting;
use super::work::{Env, Product};
use crate::select_mma::sliced::least_depth;
use crate::select_mma::warpgroup::{self, Way};
use crate::select_mma::{accumulator_registers, best_atom, divides, slice_depth, transposes};
use tilec_ir::atoms::Atom;
use tilec_ir::layout::hardware::Exchange;
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_THREAD, WARP, WARPGROUP};
use tilec_ir::types::Elem;

/// Most elements of a tile.
pub(super) const MAX_ELEMENTS: u64 = 1 << 20;
/// Registers for tiles of three warpgroups that are chosen: of 176 columns with f32 sums. The assembler (ptxas 13.0) spills 8 to 24 bytes of 192x192.
const THREE: u64 = 88;
/// Elements of a warpgroup's tile at most where a product is turned round to fit few rows: of 176x128 the assembler (ptxas 13) spills 224 bytes, of
/// 160x128 32, of 144x128 and 240x64 none.
const TURNED: u64 = 144 * 128;

/// Of products of other units.
const PLAIN: Way = Way { swap: false, registers: false };

/// A product of a candidate.
pub(super) struct Shape {
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) depth: u64,
    pub(super) warp: (u64, u64),
    /// Groups of warps that share the depth.
    pub(super) groups: u64,
    pub(super) atom: Atom,
    /// How a product of warpgroups is computed.
    pub(super) way: Way,
    /// Registers for a sum: two where parts of it are summed beside it.
    pub(super) sums: u64,
}

impl Setting<'_> {
    /// The tiles and the instruction of a product, by the rules of `select-mma`; fixes the thread count.
    pub(super) fn shape(&self, env: &Env, product: &Product, threads: &mut Option<u64>) -> Result<Shape, Illegal> {
        let (work, schedule) = (self.work, &self.work.k.schedule);
        let extent =
            |i: usize| work.extent(env, product.shape[i]).filter(|&n| n <= MAX_ELEMENTS).ok_or(Illegal::Extent);
        let (rows, cols, depth) = (extent(0)?, extent(1)?, extent(2)?);
        let warp = match schedule.warp_tile {
            Some((m, n)) => match (work.extent(env, m), work.extent(env, n)) {
                (Some(m), Some(n)) => (m, n),
                _ => return Err(Illegal::WarpTile),
            },
            None => (rows.min(64), cols.min(64)),
        };
        let warpgroups = self.warpgroups.is_some();
        if !divides(warp.0, rows, warpgroups) || !divides(warp.1, cols, warpgroups) {
            return Err(Illegal::WarpTile);
        }
        // Which tile a reduction is of is not known before values are: of a kernel that has one all products have whole rows or columns in a warp.
        let reduced = self.reduced;
        if reduced.contains(&0) && warp.0 != rows || reduced.contains(&1) && warp.1 != cols {
            return Err(Illegal::WarpTile);
        }
        let groups = schedule.k_warps.map_or(Some(1), |e| work.extent(env, e)).ok_or(Illegal::Threads)?;
        if !groups.is_power_of_two() || depth < groups {
            return Err(Illegal::Threads);
        }
        let types = (product.inputs, product.acc);
        if let Some(way) = self.warpgroups {
            let atom = warpgroup::atom(self.target, types).ok_or(Illegal::Atom)?;
            let promoted = self.promoted(env, atom, product.acc)?;
            let sums = 1 + u64::from(promoted.is_some());
            let fits = warpgroup::tile(atom, Some(warp), (rows, cols, depth), way, (product.acc, sums), reduced);
            let needed = rows / warp.0 * (cols / warp.1) * u64::from(WARP * WARPGROUP);
            // Who takes tiles in turns computes each by itself.
            let replicas = if self.ping_pong(env) { 2 } else { 1 };
            if replicas > 1 && warp != (rows, cols) {
                return Err(Illegal::WarpTile);
            }
            // The producer has a warpgroup of its own.
            if groups > 1
                || needed * replicas + u64::from(PRODUCER_WARPS * WARP) > u64::from(MAX_THREADS)
                || threads.is_some_and(|t| t != needed)
            {
                return Err(Illegal::Threads);
            }
            *threads = Some(needed);
            return match fits {
                Some(_) if promoted.is_some_and(|most| depth > most) => Err(Illegal::Promotion),
                // Three warpgroups share the rows of the output, if anything: where the product is turned round for them, results are stored in pieces.
                Some((_, swap))
                    if !self.crowded && swap != way.swap && !if swap { cols } else { rows }.is_power_of_two() =>
                {
                    Err(Illegal::WarpTile)
                }
                Some((_, swap)) if !self.assembles(warp, (rows, cols), Way { swap, ..way }, product.acc) => {
                    Err(Illegal::Registers)
                }
                Some(_) if self.gaps(product, (rows, cols, depth)) => Err(Illegal::Extent),
                // Of odd multiples of 16 panels reach further beyond the tile, and blocks of 128 rows are slower than the model says (1536x1536x1536
                // with 128x144: 17.4 us on an H200, 15.2 with 192x96; 2560x2560x2560 64.8 with 128x208, 59.8 with 128x224).
                Some((_, swap))
                    if self.columns && swap == way.swap && uneven(if swap { (cols, rows) } else { (rows, cols) }) =>
                {
                    Err(Illegal::Extent)
                }
                // Results of a product that is turned round are exchanged before they are stored, in registers of their own.
                Some((_, swap)) if !self.crowded && swap != way.swap && warp.0 * warp.1 > TURNED => {
                    Err(Illegal::Registers)
                }
                Some(_)
                    if !self.crowded && !self.has_room(warp, (rows, cols, depth), (atom, way), (product.acc, sums)) =>
                {
                    Err(Illegal::Registers)
                }
                Some((_, swap)) if depth >= u64::from(atom.row().k) => {
                    Ok(Shape { rows, cols, depth, warp, groups, atom, way: Way { swap, ..way }, sums })
                }
                Some(_) => Err(Illegal::Atom),
                None => Err(Illegal::WarpTile),
            };
        }
        let needed = rows / warp.0 * (cols / warp.1) * u64::from(WARP) * groups;
        if needed > u64::from(MAX_THREADS) || threads.is_some_and(|t| t != needed) {
            return Err(Illegal::Threads);
        }
        *threads = Some(needed);
        if accumulator_registers(warp.0, warp.1, product.acc.bytes()) > u64::from(REGISTERS_PER_THREAD) {
            return Err(Illegal::Registers);
        }
        if groups > 1 && depth / groups < least_depth(self.target, self.tensor_cores, types, (warp.0, warp.1, depth)) {
            return Err(Illegal::Atom);
        }
        let tile = (warp.0, warp.1, depth / groups);
        let atom = product.atom.or_else(|| best_atom(self.target, self.tensor_cores, types, tile));
        Ok(Shape { rows, cols, depth, warp, groups, atom: atom.ok_or(Illegal::Atom)?, way: PLAIN, sums: 1 })
    }

    /// Whether the assembler takes the instruction of warpgroups.
    fn assembles(&self, warp: (u64, u64), tile: (u64, u64), way: Way, acc: Elem) -> bool {
        warpgroup::assembles(self.work.k, tile, warp, way, acc).is_ok()
    }

    /// Whether the threads of warpgroups have registers for their tiles.
    fn has_room(
        &self,
        warp: (u64, u64),
        (rows, cols, depth): (u64, u64, u64),
        (atom, way): (Atom, Way),
        acc: (Elem, u64),
    ) -> bool {
        let registers = warpgroup::tiles_of(atom, (warp, depth), way, acc);
        let three = rows / warp.0.max(1) * (cols / warp.1.max(1)) == 3;
        (!three || registers <= THREE) && warpgroup::has_room(self.work.k, (rows, cols), warp, registers)
    }

    /// Whether an operand would lie in several panels of rows whose number is no power of two: they can, but the model knows no measurement of such tiles.
    fn gaps(&self, product: &Product, (rows, cols, depth): (u64, u64, u64)) -> bool {
        let several = depth * u64::from(product.inputs.bytes()) > Exchange::Bytes128.row_bytes();
        let [a, b] = &product.operands;
        several && (a.along && !rows.is_power_of_two() || b.along && !cols.is_power_of_two())
    }
}

/// Whether a tile has many columns that are no multiple of 32, and rows for other than three warpgroups.
fn uneven((rows, cols): (u64, u64)) -> bool {
    cols > 128 && !cols.is_multiple_of(32) && rows.is_power_of_two()
}

/// How deep the fragments of a product are. Operands of scalar multiply-adds are never contiguous along the reduction.
pub(super) fn slice(product: &Product, shape: &Shape) -> u64 {
    let row = shape.atom.row();
    slice_depth(
        row,
        product.operands.map(|o| {
            let along = if row.sums() { o.along || transposes(row, product.inputs.a) } else { false };
            along.then(|| product.inputs.bytes())
        }),
        shape.depth / shape.groups,
    )
}
