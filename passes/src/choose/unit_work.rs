//! Work of a region of a block on each unit of a multiprocessor.

use super::box_rows::BoxRows;
use super::cost::Part;
use super::product::{Shape, slice};
use super::search_context::SearchContext;
use super::stream_k;
use super::work::{Env, Product, Region};
use crate::schedule_loops::lag::FRAGMENT_REGISTERS;
use crate::select_mma::warpgroup;
use crate::tile_scheduler::cluster::{Sharing, Sums, choose as choose_cluster, open_axes};
use tilec_ir::entities::Value;
use tilec_ir::target::{ASYNCHRONOUS_COPY_BYTES, WARP, WARPGROUP};

/// Instructions for loading the second word of an unaligned access and shifting both into place.
const SHIFTING: f64 = 16.0;
/// Warp instructions of an access to global memory with its address, and with the store to shared memory after it (counted in machine code).
pub(super) const DIRECT_ACCESS: f64 = 1.5;
pub(super) const STAGED_ACCESS: f64 = 2.5;
/// Relative number of instructions of a narrow access, for its address.
pub(super) const NARROW: f64 = 2.0;
/// Instructions of a narrow access whose address is computed from the digits of indices, including its bounds, and the
/// time that lanes with different lines take (an H200: 3x3 convolution of three channels at 256² to copied rows, 7x7 of
/// three channels at 224² without copies).
const DIGITS: f64 = 40.0;
/// Warp instructions of an iteration that are neither products nor memory accesses.
const BOOKKEEPING: f64 = 12.0;
/// Bytes of a register.
const WORD: u32 = 4;
/// Clocks of the shortest wgmma product with operands in shared memory (measured: 18 to 24).
const SHORTEST: f64 = 20.0;
/// Clocks in which a warp converts an element of each thread; the four warps of a group are on different schedulers.
const CONVERTED: f64 = 4.0;
/// Clocks from the last load of an operand to its arrival.
const LOADED: f64 = 30.0;
/// Clocks in which a warpgroup computes an operand in registers, in addition to [`CONVERTED`]. Products of other
/// warpgroups do not hide them (H200, `examples/gemm_w4a16.tile`: a step of two warpgroups takes 450 to 590 clocks more
/// than its products, in tiles of 112 to 256 rows).
const COMPUTED: f64 = 250.0;
/// Clocks of a step whose partial sums are multiplied by factors of the instruction's columns. The factors come through
/// slots, TMA loads and mbarriers of their own, and are read after the products. For e4m3 with scales on an H200, a
/// step of 64x7168x16384 takes 600 clocks in tiles of 32x128, and 450 in tiles of 64x64.
const FACTORS: f64 = 200.0;
/// Instructions for an element that a warp converts in pairs for its product (W4A16 in bf16: three to extract a pair,
/// one to scale it, and half of one for the group's numbers).
const FED: f64 = 2.3;
/// Instructions for an element of a plain product's result, `alpha * acc`; the constants of warpgroups include them.
const SCALED: f64 = 1.0;
/// Clocks for the result of a special function for a warp (16 results per clock and multiprocessor).
const SPECIAL: f64 = tilec_ir::target::SPECIAL_CLOCKS as f64;
/// Latency in clocks of a tensor-core product before the next one on the same accumulator.
pub(super) const CHAIN_TENSOR: f64 = 34.0;
/// Latency in clocks of a scalar multiply-add.
const CHAIN_SCALAR: f64 = 4.0;

impl SearchContext<'_> {
    /// A region whose products have the shapes `own`.
    pub(super) fn part(&self, env: &Env, region: &Region, own: &[Shape], shapes: &[Shape], warps: u64) -> Part {
        let looped = !region.loops.is_empty();
        let mut part = Part { trips: self.work.trips(env, region), ..Part::default() };
        for (product, shape) in region.products.iter().zip(own) {
            self.multiply(&mut part, product, shape, warps as f64);
        }
        let mut direct = self.target.has_asynchronous_copies()
            || region.moves.iter().any(|m| m.buffer.is_some() && self.shifted(env, m, shapes));
        let (mut across, mut passed_by, mut brought) = (false, Vec::new(), Vec::new());
        for m in &region.moves {
            let elements = self.elements(env, m) as f64;
            let bytes = m.elem.traffic(elements);
            let access = self.access(env, m, shapes);
            let fills = m.load && m.buffer.is_some();
            let transposed = self.transposed(m, shapes);
            let shifted = self.shifted(env, m, shapes);
            part.carried |= looped && fills && shifted;
            // Converted operands are converted after their slot has been loaded.
            let by_tensor_copies = self.warpgroups.is_some() && fills;
            let asynchronous = by_tensor_copies
                || self.target.has_asynchronous_copies()
                    && m.plain
                    && !shifted
                    && (!transposed || !m.elem.shares_registers())
                    && ASYNCHRONOUS_COPY_BYTES.contains(&(access as u32));
            direct &= !fills || asynchronous || shifted;
            // Rows shorter than a sector of 32 bytes load more than they use.
            let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
            let run = m.elem.bytes_of(run);
            // The model of products is fitted with their padding.
            let plain = self.products().next().is_none();
            let inside = if plain { self.work.inside(env, region, m) } else { 1.0 };
            let mut fetched = bytes * inside * (32.0 / run as f64).max(1.0);
            let mut full_rows = fetched;
            if self.warpgroups.is_some() && fills {
                let rows = self.work.box_rows(env, m);
                across |= rows.is_some_and(|rows| rows.crosses);
                fetched = bytes;
                full_rows = bytes * rows.map_or(1.0, BoxRows::times);
                passed_by.push((m.buffer, full_rows));
                brought.push((m.buffer, bytes));
            }
            *(if m.load { &mut part.loads } else { &mut part.stores }) += fetched;
            part.full_rows += if m.load { full_rows } else { 0.0 };
            part.copied.push(fetched);
            if self.warpgroups.is_some() && !m.load && access < 16 {
                part.pieces += elements;
            }
            let (all, special) = m.computed;
            part.computed += elements / f64::from(WARP * WARPGROUP) * (all - SCALED).max(SPECIAL * special).max(0.0);
            // The access, the store to shared memory if it passes through registers, and the addresses of narrow
            // accesses.
            let each = if fills && !asynchronous { STAGED_ACCESS } else { DIRECT_ACCESS };
            let narrow = if access < 16 { NARROW } else { 1.0 };
            let each = each + if shifted { SHIFTING } else { 0.0 };
            let digits = m.modes && access < 16 && !by_tensor_copies && !shifted;
            let each = if digits { DIGITS } else { each * narrow };
            part.issued += bytes / access as f64 / f64::from(WARP) * each;
            // The load/store unit also loads the two words that cover an unaligned access.
            part.shared += if m.buffer.is_some() { bytes } else { 0.0 } + if shifted { 2.0 * bytes } else { 0.0 };
        }
        part.sides = region.products.first().and_then(|product| sides(product, &brought));
        if let (true, Some(shape), Some(product)) = (across, own.first(), region.products.first()) {
            // Blocks of a cluster share operands: blocks that are neighbours along columns share the rows' operand.
            let [down, right] = self.cluster(env, shape, across);
            for (operand, blocks) in product.operands.iter().zip([right, down]) {
                let own = passed_by.iter().find(|(buffer, _)| *buffer == operand.buffer);
                part.full_rows -= own.map_or(0.0, |(_, passed)| passed * (1.0 - 1.0 / blocks as f64));
            }
        }
        part.across = across;
        for (shape, elem) in &region.shared {
            let bytes = elem.traffic(self.work.elements(env, shape).unwrap_or(0) as f64);
            part.shared += bytes;
            part.issued += bytes / 512.0;
        }
        part.issued += BOOKKEEPING * warps as f64;
        let fills = region.moves.iter().any(|m| m.load && m.buffer.is_some());
        part.staged = looped && fills && !direct;
        part.synchronised = looped && fills;
        part
    }

    /// Adds a product of all warps to a part.
    fn multiply(&self, part: &mut Part, product: &Product, shape: &Shape, warps: f64) {
        let row = shape.atom.row();
        // A warp's share of the depth.
        let (wm, wn, depth) = (shape.warp.0 as f64, shape.warp.1 as f64, (shape.depth / shape.groups) as f64);
        let bytes = |elements: f64| product.inputs.size().traffic(elements);
        let lanes = f64::from(WARP);
        let macs = (shape.rows * shape.cols * shape.depth) as f64;
        let clocks = macs / self.card.rate(shape.atom, product.inputs, product.acc);
        part.row = bytes(depth);
        if row.asynchronous() {
            let n = if shape.form.swap { wm } else { wn };
            // Few columns cost as much as more would: an instruction takes a minimum number of clocks (normally columns
            // / 2).
            part.product += clocks * (SHORTEST / (n / 2.0)).max(1.0);
            // Each block of 64 rows reads its rows and all columns.
            let blocks = (shape.rows * shape.cols) as f64 / (64.0 * n);
            part.shared += bytes(blocks * (64.0 + n) * depth);
            part.blocks = blocks * f64::from(WARPGROUP) / warps;
            part.issued += blocks * depth * 4.0;
            // One addition for each register of a thread: the four warps of a group run in parallel.
            let added = (shape.sums - 1) as f64 * wm * wn / (lanes * f64::from(WARPGROUP));
            part.between += added;
            part.added += added;
            if product.scaled && shape.form.swap {
                part.between += FACTORS;
            }
            if shape.form.registers {
                // The warps of a group share the bandwidth of shared memory, and products wait for the last warp.
                let rows = if shape.form.swap { wn } else { wm };
                part.between += bytes(rows * depth) / f64::from(WORD * WARP) + LOADED;
                part.issued += bytes(rows * depth) / f64::from(WORD * WARP);
                if !warpgroup::reads_registers(product.inputs.a) {
                    part.between += rows * depth / f64::from(WARP * WARPGROUP) * CONVERTED;
                }
                if product.operands.iter().any(|operand| operand.computed) {
                    if self.pending(product, shape) {
                        part.behind = rows * depth * stream_k::COMPUTED;
                    }
                    let extents = [shape.rows, shape.cols].into_iter().zip(&product.operands);
                    let computed = extents.filter(|(_, operand)| operand.computed).map(|(extent, _)| extent as f64);
                    part.computes += computed.sum::<f64>() * depth;
                    part.between += COMPUTED;
                    part.added += COMPUTED;
                }
            }
            return;
        }
        part.product += clocks;
        if self.warpgroups.is_some() {
            // Warps that are neighbours along the other operand convert the same elements.
            let (rows, cols) = (shape.rows as f64, shape.cols as f64);
            let all = [rows * cols / wn, rows * cols / wm];
            let converted = all.into_iter().zip(&product.operands).filter(|(_, o)| o.computed);
            part.issued += converted.map(|(extent, _)| extent * depth).sum::<f64>() / lanes * FED;
        }
        part.scalar |= !row.tensor_core;
        part.single |= !(shape.depth / shape.groups / slice(product, shape)).is_multiple_of(2);
        if row.tensor_core {
            let (m, n, k) = row.log2_shape;
            part.issued += macs / f64::from(1u32 << (m + n + k));
            let read = bytes(warps * (wm + wn) * depth);
            part.shared += read;
            part.issued += read / 512.0;
            part.chain += depth / f64::from(1u32 << k) * CHAIN_TENSOR;
        } else {
            // Lanes are arranged as four rows by eight columns. A thread reads runs of 16 bytes, and a warp's load
            // takes two wavefronts of 128 bytes, because lanes share what they read.
            let runs = (bytes(wm / 4.0) / 16.0).ceil() + (bytes(wn / 8.0) / 16.0).ceil();
            part.issued += macs / lanes / f64::from(row.k) + warps * depth * runs;
            part.shared += warps * depth * runs * 2.0 * 128.0;
            part.chain += depth / f64::from(row.k) * CHAIN_SCALAR;
        }
    }

    /// Whether a thread has registers for the sums and two tiles of a computed operand. The products of a step are then
    /// pending while it computes the next one.
    fn pending(&self, product: &Product, shape: &Shape) -> bool {
        let sums = (product.acc, shape.sums);
        let of = |depth: u64| warpgroup::tiles_of(shape.atom, (shape.warp, depth), shape.form, sums);
        2 * of(shape.depth) - of(0) <= FRAGMENT_REGISTERS
    }

    /// Blocks of a cluster, as in the persistent tile scheduler.
    pub(super) fn cluster(&self, env: &Env, shape: &Shape, across: bool) -> [i64; 2] {
        let k = self.work.k;
        if k.grid.len() < 2 {
            return [1, 1];
        }
        if !k.schedule.cluster.is_empty() {
            let along = |i: usize| k.schedule.cluster.get(i).and_then(|&e| self.work.int(env, e)).unwrap_or(1);
            return [along(0), along(1)];
        }
        let count = |i: usize| self.work.extent(env, k.grid[i].extent).and_then(|n| i64::try_from(n).ok());
        let scaled = self.products().any(|product| product.scaled);
        let sums = if scaled { Sums::Scaled } else { Sums::Plain };
        let of = Sharing { sums, across, open: open_axes(k) };
        choose_cluster((shape.rows, shape.cols), of, [count(0), count(1)], self.card)
    }
}

/// The bytes of each operand among loads that fill buffers, if one operand is converted: everything but the other
/// operand's buffer belongs to it.
fn sides(product: &Product, brought: &[(Option<Value>, f64)]) -> Option<[f64; 2]> {
    let converted = product.operands.iter().position(|operand| operand.computed)?;
    let plain = product.operands[1 - converted].buffer?;
    let mut sides = [0.0; 2];
    for &(buffer, bytes) in brought {
        sides[if buffer == Some(plain) { 1 - converted } else { converted }] += bytes;
    }
    Some(sides)
}
