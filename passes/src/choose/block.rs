//! Cost and legality of one block of a candidate: products, copies, registers and shared memory.

use super::cost::{Cost, ahead};
use super::illegal::Illegal;
use super::product::{Shape, wgmma};
use super::search_context::SearchContext;
use super::work::{Env, Move, Product};
use crate::analysis::access_width::MAX_ACCESS_BYTES;
use crate::roles::{LEAST_BESIDE, slots_limit, slots_of};
use crate::select_mma::keeps_in_registers;
use crate::select_mma::threads::{PLAIN, is_count};
use crate::specialize::is_extent;
use crate::stage_stores::{ALIGNED, buffer_bytes, has_no_neighbours};
use tilec_ir::cluster;
use tilec_ir::entities::Expr;
use tilec_ir::target::{REGISTERS_PER_THREAD, WARP};
use tilec_ir::types::MAX_ELEMENTS;

/// Registers that the assembler takes in addition to those of the tiles: 32 to 46, in a dozen kernels.
const BESIDE: u64 = 32;
/// The same if tiles pass through registers to shared memory.
const BESIDE_STAGED: u64 = 40;
/// The same if groups of warps share the reduction (sliced-K): 46 to 56.
const BESIDE_SLICED: u64 = 50;

impl SearchContext<'_> {
    /// The cost of a block with the values of `env`.
    pub(super) fn cost(&self, env: &Env) -> Result<Cost, Illegal> {
        let mut cost = self.block(env)?;
        self.staged(&mut cost, env)?;
        Ok(cost)
    }

    /// The cost of a block without what depends on the number of stages.
    pub(super) fn block(&self, env: &Env) -> Result<Cost, Illegal> {
        let (shapes, threads) = self.legal(env)?;
        let (work, supposed) = (self.work, self.supposed_shapes(&shapes));
        let warps = threads / u64::from(WARP);
        let (mut parts, mut next, mut macs) = (Vec::with_capacity(work.regions.len()), 0, 0.0);
        for region in &work.regions {
            let own = &supposed[next..next + region.products.len()];
            next += region.products.len();
            let part = self.part(env, region, own, &shapes, warps);
            macs += part.trips * own.iter().map(|s| (s.rows * s.cols * s.depth) as f64).sum::<f64>();
            parts.push(part);
        }
        let block = self.occupied(env, &shapes, threads, &parts)?;
        // The partial sums of the groups are exchanged in shared memory.
        let sums = |(p, s): (&Product, &Shape)| match s.groups {
            1 => 0,
            groups => p.acc.bytes_of(groups * s.rows * s.cols),
        };
        let exchanged: u64 = self.products().zip(&shapes).map(sums).sum();
        parts[0].shared += 2.0 * exchanged as f64;
        let (fixed, slot) = self.buffers(env);
        let fixed = fixed.saturating_add(self.computed(&shapes));
        let ping_pong = self.warpgroups.is_some() && self.ping_pong(env);
        let across = parts.iter().any(|p| p.across);
        let fed = self.warpgroups.is_some() && shapes.iter().any(|shape| !shape.atom.row().asynchronous());
        let cluster = match shapes.first().filter(|_| self.warpgroups.is_some() && !fed) {
            Some(shape) if self.split() == 1 => self.cluster(env, shape, across),
            _ => [1, 1],
        };
        let (tile, atom) = (shapes.first().map(|s| (s.rows, s.cols)), shapes.first().map(|s| s.atom));
        Ok(Cost {
            block,
            fixed,
            slot,
            exchanged,
            result: self.result(env, &shapes, threads),
            offloaded: false,
            room: 0,
            stream_k: if ping_pong { Some(false) } else { self.stream_k },
            split_k: self.split_k,
            ping_pong,
            fed,
            beside: false,
            cluster,
            resident: 1,
            parts,
            tile,
            atom,
            macs,
            rank: self.rank(env, tile, threads),
        })
    }

    /// The shapes with wgmma for products that are assumed to use it.
    fn supposed_shapes(&self, shapes: &[Shape]) -> Vec<Shape> {
        let of = |(product, shape): (&Product, &Shape)| {
            let wgmma = self.supposed.wgmma.contains(&product.at).then(|| wgmma(self.target, product));
            Shape { atom: wgmma.unwrap_or(shape.atom), ..*shape }
        };
        self.products().zip(shapes).map(of).collect()
    }

    /// The products of a block and its threads, if extents, preconditions and instructions are legal.
    fn legal(&self, env: &Env) -> Result<(Vec<Shape>, u64), Illegal> {
        let (work, k) = (self.work, self.work.k);
        // Products by `mma.sync` need regular extents of all tiles.
        if self.warpgroups.is_none() && work.tiles.iter().any(|t| !self.has_extents(env, &t.shape)) {
            return Err(Illegal::Extent);
        }
        let mut threads = k.schedule.threads.and_then(|e| work.extent(env, e));
        let mut shapes = Vec::new();
        for product in self.products() {
            shapes.push(self.shape(env, product, &mut threads)?);
        }
        let threads = threads.unwrap_or(u64::from(PLAIN));
        if !is_count(threads, self.warpgroups.is_some()) {
            return Err(Illegal::Threads);
        }
        if !work.tiles.iter().all(|t| self.has_extents(env, &t.shape) && self.is_small(env, &t.shape)) {
            return Err(Illegal::Extent);
        }
        if k.requires.iter().any(|&e| work.truth(env, e) == Some(false)) {
            return Err(Illegal::Precondition);
        }
        Ok((shapes, threads))
    }

    /// Whether a tile may have its extents.
    pub(super) fn has_extents(&self, env: &Env, shape: &[Expr]) -> bool {
        let right = |n: u64| is_extent(n, self.warpgroups.is_some());
        shape.iter().all(|&e| self.work.extent(env, e).is_some_and(right))
    }

    /// Whether a tile has no more elements than one may have.
    pub(super) fn is_small(&self, env: &Env, shape: &[Expr]) -> bool {
        self.work.elements(env, shape).is_some_and(|n| n <= MAX_ELEMENTS)
    }

    /// Bytes of buffers that do not depend on the stages, and bytes of one stage.
    fn buffers(&self, env: &Env) -> (u64, u64) {
        let work = self.work;
        let (mut fixed, mut slot) = (0u64, 0u64);
        for tile in work.tiles.iter().filter(|t| t.shared) {
            let slots = tile.slots.map_or(1, |e| work.extent(env, e).unwrap_or(1));
            let filled = self.moves().find(|m| m.load && m.buffer == Some(tile.value));
            let elements =
                filled.map_or_else(|| work.elements(env, &tile.shape).unwrap_or(0), |m| self.elements(env, m));
            let bytes = tile.elem.bytes_of(elements);
            // Slots of TMA loads begin at multiples of this (`place-shared`).
            let bytes = if self.warpgroups.is_some() && tile.filled { bytes.next_multiple_of(ALIGNED) } else { bytes };
            let bytes = bytes.saturating_mul(slots);
            let of = if tile.filled && tile.slots.is_none() { &mut slot } else { &mut fixed };
            *of = of.saturating_add(bytes);
        }
        (fixed, slot)
    }

    /// Bytes of buffers for computed operands, if lanes of the instruction would compute elements redundantly.
    fn computed(&self, shapes: &[Shape]) -> u64 {
        let buffers = self.products().zip(shapes).flat_map(|(product, shape)| {
            let bytes = |extent: u64| product.inputs.size().bytes_of(extent * shape.depth);
            let row = shape.atom.row();
            let extents = [shape.rows, shape.cols].map(bytes);
            let through = !row.asynchronous() && ![false, true].into_iter().all(|first| keeps_in_registers(row, first));
            product.operands.into_iter().zip(extents).filter(move |(operand, _)| through && operand.computed)
        });
        buffers.map(|(_, bytes)| bytes).sum()
    }

    /// Whether products in the main loop, whose results are stored through a buffer, have swapped operands.
    fn swapped(&self, shapes: &[Shape]) -> bool {
        let of_loop =
            self.work.regions.iter().flat_map(|region| region.products.iter().map(|_| region.loops.len() == 1));
        of_loop.zip(shapes).any(|(of_loop, shape)| of_loop && shape.form.swap)
    }

    /// Bytes of the buffer through which results are stored, if there is one.
    fn result(&self, env: &Env, shapes: &[Shape], threads: u64) -> u64 {
        if !self.stage_stores || self.warpgroups.is_none() {
            return 0;
        }
        let swapped = self.swapped(shapes);
        let buffer = |m: &Move| {
            if m.contiguous.is_some_and(|dim| has_no_neighbours(m.elem, dim, swapped)) {
                return 0;
            }
            let accelerated = self.access(env, m, shapes) >= u64::from(MAX_ACCESS_BYTES);
            if if accelerated { !self.stored_in_panels(env, m) } else { !threads.is_power_of_two() } {
                return 0;
            }
            let shape = m.shape.iter().map(|&e| self.work.extent(env, e).unwrap_or(0));
            buffer_bytes(shape, m.elem, accelerated)
        };
        let most = self.moves().filter(|m| !m.load && !m.modes).map(buffer).max().unwrap_or(0);
        most.next_multiple_of(ALIGNED)
    }

    /// A tie-breaker for equal predictions, smaller is better. A smaller product tile loses less at ragged sizes. Other
    /// tiles should give a thread four accesses of 16 bytes, in rows of 512 bytes.
    fn rank(&self, env: &Env, tile: Option<(u64, u64)>, threads: u64) -> u64 {
        if let Some((rows, cols)) = tile {
            return rows * cols;
        }
        let work = self.work;
        let far = |x: u64, from: u64| u64::from(x.max(1).ilog2().abs_diff(from.ilog2()));
        let run = |m: &Move| m.contiguous.and_then(|d| work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        let each = |m: &Move| m.elem.bytes_of(work.elements(env, &m.shape).unwrap_or(1)) / threads;
        self.moves().map(|m| 16 * far(each(m), 64) + far(m.elem.bytes_of(run(m)), 512)).max().unwrap_or(0)
    }

    /// Completes a cost for the number of stages.
    pub(super) fn staged(&self, cost: &mut Cost, env: &Env) -> Result<(), Illegal> {
        let limit = match self.warpgroups {
            Some(_) => slots_limit(self.work.k, self.target),
            None => self.target.smem_per_block(),
        };
        // Partial sums in 32 bits that other blocks of the cluster pass.
        let passed =
            cost.tile.map(|(rows, cols)| (4 * rows * cols, self.split() - 1)).filter(|&(_, others)| others > 0);
        let passed = cluster::bytes(passed.into_iter());
        let limit = limit.saturating_sub(self.work.cluster_memory(env) + passed);
        let asked = self.stages(env)?;
        // The number of slots is reduced if it was not requested.
        let fitting = limit.saturating_sub(cost.fixed).checked_div(cost.slot).unwrap_or(asked).clamp(1, asked);
        let stages = if self.work.k.schedule.stages.is_some() { asked } else { fitting };
        // Partial sums reuse the memory of the tiles.
        cost.block.shared = (cost.fixed + cost.slot * stages).max(cost.exchanged);
        if cost.block.shared > limit {
            return Err(Illegal::SharedMemory);
        }
        let with_result = cost.block.shared + cost.result;
        cost.offloaded = cost.result > 0 && with_result <= limit;
        if cost.offloaded {
            cost.block.shared = with_result;
        }
        // `split_k 1` and `stream_k 1` exclude distributed shared memory.
        let scratch = self.split_k == Some(1) || self.stream_k == Some(true);
        cost.room = if scratch { 0 } else { limit - cost.block.shared };
        cost.beside = cost.fed && stages >= LEAST_BESIDE && cost.block.shared <= slots_of(self.target, 2);
        cost.resident = if self.warpgroups.is_some() { 1 } else { self.resident(cost) };
        if self.products().next().is_none() {
            self.serve_from_caches(env, cost);
        }
        self.combine(env, cost);
        for part in cost.parts.iter_mut().filter(|p| p.synchronised) {
            part.ahead = match stages {
                1 => 0.0,
                // A load is issued at the start of an iteration, and stored at its end or at the start of the next.
                _ if part.staged || part.carried => 1.0,
                // One slot is read, two with pending products, and one is filled during an iteration.
                stages if cost.ping_pong => (stages as f64 - 2.5).max(0.0),
                stages => ahead(stages),
            };
        }
        Ok(())
    }

    /// The number of blocks of a cluster that share a tile along the reduction, from the schedule.
    fn split(&self) -> u64 {
        self.split_k.and_then(|n| u64::try_from(n).ok()).unwrap_or(1).max(1)
    }

    /// Resident blocks: the number that the compiler requests, or that fits with the registers that the assembler
    /// takes.
    fn resident(&self, cost: &Cost) -> u64 {
        let staged = cost.parts.iter().any(|p| p.staged || p.carried);
        let beside = match () {
            _ if cost.exchanged > 0 => BESIDE_SLICED,
            _ if staged => BESIDE_STAGED,
            _ => BESIDE,
        };
        let mut registers = cost.block.tiles + beside;
        if cost.parts.iter().any(|p| p.carried) {
            // Unaligned words are shifted one access after the other, so all registers of a thread may be used.
            registers = registers.min(u64::from(REGISTERS_PER_THREAD));
        }
        cost.block.resident(self.target).max(cost.block.with_registers(registers, self.target))
    }
}
