//! Registers of a thread: those of tiles, and those that are available.

use super::cost::Part;
use super::illegal::Illegal;
use super::product::{Shape, slice};
use super::search_context::SearchContext;
use super::work::{Env, Move, Product, Tile};
use crate::registers::overhead::{
    ADDRESSES, COMBINED, Code, EPILOGUE, Products, UNPACKED, USUAL_ACCESSES, USUAL_POINTERS, combining, overhead,
};
use crate::roles;
use crate::schedule::occupancy;
use crate::select_mma::{accumulator_registers, warpgroup};
use tilec_ir::atoms::Bit;
use tilec_ir::bits::Bits;
use tilec_ir::entities::Expr;
use tilec_ir::target::WARP;

/// Registers that must remain for the assembler if fragments are loaded by words: without them a tile compiles, but
/// leaves none for another epilogue (ptxas 12.9: 254 of 255 for `gemm.tile` with tiles of 64x64 and depth 64).
const SPARE: u64 = 16;

impl SearchContext<'_> {
    /// The inputs of the occupancy calculation, if the tiles leave registers for addresses.
    pub(super) fn occupied(
        &self,
        env: &Env,
        shapes: &[Shape],
        threads: u64,
        parts: &[Part],
    ) -> Result<occupancy::Block, Illegal> {
        let elements = |m: &Move| self.work.elements(env, &m.shape).unwrap_or(0);
        let shifted = |m: &Move| m.buffer.is_some() && self.shifted(env, m, shapes);
        let mut block = occupancy::Block {
            threads,
            tiles: self.registers(env, shapes, threads, parts),
            shared: 0,
            wide: self.moves().all(|m| !m.load || self.access(env, m, shapes) >= 16)
                && self.moves().filter(|m| shifted(m)).count() < 2,
            mixed: self.products().flat_map(|p| p.operands).filter(|o| o.along).count() as u64,
            lone: true,
            other: self.work.functions,
        };
        let code = self.code(env, shapes, parts, &block);
        let loaded = self.warpgroups.map_or(0, |_| self.loaded_beside(env, &block));
        let spare = if code.products == Products::ByWords { SPARE } else { 0 };
        let room = self.has(&block).saturating_sub(overhead(&code) + loaded + spare);
        // The estimate for transposing threads of a single warp is too low.
        let alone = code.pieces && threads == u64::from(WARP);
        // Aligned words that cover unaligned rows take twice as many registers as the tile.
        let covering: u64 =
            self.moves().filter(|m| shifted(m)).map(|m| m.elem.bytes_of(elements(m)) / (4 * threads)).sum();
        let whole = self.warpgroups.is_some() && !self.fits_whole_matrix(env, &block);
        if (block.tiles + covering > room || alone || whole) && !self.crowded {
            return Err(Illegal::Registers);
        }
        block.tiles = block.tiles.min(room);
        Ok(block)
    }

    /// Registers that a thread of a consumer warp has.
    fn has(&self, block: &occupancy::Block) -> u64 {
        if self.warpgroups.is_none() {
            return block.cap(1);
        }
        // If threads fill slots, the producer keeps more registers.
        let filling = self.moves().any(|m| m.load && m.buffer.is_some() && m.modes);
        let warps = u32::try_from(block.threads / u64::from(WARP)).expect("a block has few warps");
        let (_, registers) = roles::registers(self.work.k, warps, filling);
        u64::try_from(registers.unwrap_or_else(|| roles::registers_at_start(self.work.k, warps)))
            .expect("a count of registers")
    }

    /// Properties of a candidate's code that affect registers, besides tiles.
    fn code(&self, env: &Env, shapes: &[Shape], parts: &[Part], block: &occupancy::Block) -> Code {
        let functions = self.work.functions;
        if self.warpgroups.is_some() {
            let sums = |(product, shape): (&Product, &Shape)| {
                warpgroup::tiles_of(shape.atom, (shape.warp, 0), shape.form, (product.acc, shape.sums))
            };
            let loaded = self.products().zip(shapes).filter(|(_, shape)| shape.form.registers);
            // Registers of the program's own partial sums are free after the loop.
            let crowded = self.products().zip(shapes).filter(|(product, _)| product.whole.is_none());
            return Code {
                products: Products::Warpgroups,
                loaded: loaded.map(sums).max(),
                computed: self.products().flat_map(|product| product.operands).any(|operand| operand.computed),
                // Promoted partial sums have been added before.
                exchanged: crowded.map(|p| sums(p) / p.1.sums).max().unwrap_or(0),
                halves: self.products().any(|product| product.acc.size().shares_registers()),
                functions,
                behind: true,
                repeated: if self.combines(env, block) { self.work.repeated } else { 0 },
                ..Code::default()
            };
        }
        let staged = parts.iter().any(|p| p.staged);
        let transposed = self.moves().any(|m| m.elem.shares_registers() && self.transposed(m, shapes));
        let (pointers, digits) = self.more_addresses(env, shapes, block.threads);
        Code {
            products: shapes.iter().map(|shape| Products::of(shape.atom.row(), self.target)).max().unwrap_or_default(),
            pieces: staged && (!block.wide || transposed),
            shifted: !block.wide && parts.iter().any(|p| p.carried),
            pointers,
            digits,
            functions,
            behind: true,
            ..Code::default()
        }
    }

    /// Registers of the matrices that are loaded in rarely taken branches.
    fn rare(&self, env: &Env, block: &occupancy::Block) -> u64 {
        let own = self.work.rare.moves.iter().filter(|m| m.load && m.buffer.is_none());
        own.map(|m| self.words(env, m, block)).sum()
    }

    /// Registers of a matrix during its load: bytes are unpacked.
    fn words(&self, env: &Env, m: &Move, block: &occupancy::Block) -> u64 {
        m.elem.max(Bits::new(16)).bytes_of(self.work.elements(env, &m.shape).unwrap_or(0)) / (4 * block.threads)
    }

    /// Whether a thread has registers for a matrix that is loaded completely in a rare branch, and for the values with
    /// which it is combined.
    fn fits_whole_matrix(&self, env: &Env, block: &occupancy::Block) -> bool {
        let rare = self.rare(env, block);
        let held = block.tiles + rare + ADDRESSES;
        let bytes = self.work.rare.moves.iter().any(|m| m.load && m.buffer.is_none() && m.elem.get() < 16);
        let apart = if bytes { UNPACKED } else { 0 };
        let combined = COMBINED * self.work.repeated;
        // With functions, it is loaded in pieces if not all of this fits (`stage-stores`).
        let functions = combining(self.work.functions, self.work.repeated);
        let whole = self.stage_stores && rare > 0 && held + functions <= self.has(block);
        !whole || held + combined + self.work.functions + apart <= self.has(block)
    }

    /// Registers of the matrices that an epilogue loads next to the accumulators of warpgroups, if there is room.
    fn loaded_beside(&self, env: &Env, block: &occupancy::Block) -> u64 {
        let own = self.moves().filter(|m| m.load && m.buffer.is_none());
        let (loaded, rare) = (own.map(|m| self.words(env, m, block)).sum::<u64>(), self.rare(env, block));
        // A matrix in a rarely taken branch is loaded in pieces if fewer registers are left (192x176 of `gemm.tile`: 88
        // registers of sums and 44 of C out of 160, without spills).
        let rare = if block.tiles + rare + ADDRESSES + EPILOGUE <= self.has(block) { rare } else { 0 };
        let loaded = loaded.max(rare);
        if self.stage_stores && block.tiles + loaded + ADDRESSES <= self.has(block) { loaded } else { 0 }
    }

    /// Whether results are combined with broadcast operands while a matrix, or an operand, is in registers.
    fn combines(&self, env: &Env, block: &occupancy::Block) -> bool {
        self.loaded_beside(env, block) > 0 || self.warpgroups.is_some_and(|way| way.registers)
    }

    /// Addresses of copies beyond the usual one for a thread and tile, and those of them that are computed from digits.
    fn more_addresses(&self, env: &Env, shapes: &[Shape], threads: u64) -> (u64, u64) {
        let bytes = |m: &Move| m.elem.bytes_of(self.work.elements(env, &m.shape).unwrap_or(0));
        let fills = || self.moves().filter(|m| m.load && m.buffer.is_some());
        let plain = fills().filter(|m| !m.modes).map(|m| bytes(m) / 16 / threads);
        let digits = fills().filter(|m| m.modes).map(|m| bytes(m) / self.access(env, m, shapes) / threads);
        let more = |usual: u64| move |accesses: u64| accesses.saturating_sub(usual);
        (plain.map(more(USUAL_ACCESSES)).sum(), digits.map(more(USUAL_POINTERS)).sum())
    }

    /// Registers of a thread that hold tiles, fragments, and tiles on their way to shared memory.
    fn registers(&self, env: &Env, shapes: &[Shape], threads: u64, parts: &[Part]) -> u64 {
        let words = |bytes: u64| bytes.div_ceil(4 * threads);
        let bytes = |shape: &[Expr], elem: Bits| elem.bytes_of(self.work.elements(env, shape).unwrap_or(0));
        let counted = |p: &Product, shape: &Shape, t: &Tile| {
            p.accumulator == t.value || p.whole == Some(t.value) && shape.sums > 1
        };
        let accumulator = |t: &Tile| self.products().zip(shapes).any(|(p, shape)| counted(p, shape, t));
        let tiles = self.work.tiles.iter().filter(|t| !t.shared && !accumulator(t));
        let mut sum: u64 = tiles.map(|t| words(bytes(&t.shape, t.elem))).sum();
        for (product, shape) in self.products().zip(shapes) {
            let row = shape.atom.row();
            // Operands stay in shared memory, except one that may come from registers.
            if row.asynchronous() {
                sum +=
                    warpgroup::tiles_of(shape.atom, (shape.warp, shape.depth), shape.form, (product.acc, shape.sums));
                continue;
            }
            sum += shape.sums * accumulator_registers(shape.warp.0, shape.warp.1, product.acc.size());
            // A computed operand is in registers in its computed form, in its source form, and in the instruction's
            // form. If producer warps load the source, it is computed in pairs, directly in the instruction's form
            // (ptxas 13: 80 registers for 16x32 of a warp in steps of 128 of `gemm_w4a16.tile`).
            let times = if self.warpgroups.is_some() { 2 } else { 3 };
            let extents = product.operands.iter().zip([shape.warp.0, shape.warp.1]);
            let of_warp =
                |extent: u64| product.inputs.size().bytes_of(extent * shape.depth).div_ceil(4 * u64::from(WARP));
            sum +=
                extents.filter(|(operand, _)| operand.computed).map(|(_, extent)| times * of_warp(extent)).sum::<u64>();
            let depth = slice(product, shape);
            // Slices are loaded ahead to registers of their own, if there is an even number of slices.
            let copies = if (shape.depth / shape.groups / depth).is_multiple_of(2) { 2 } else { 1 };
            // Lanes that hold the same element.
            let shared_lanes = |bits: &[Bit]| 1u64 << bits.iter().filter(|b| matches!(b, Bit::Same)).count();
            for (extent, fragment) in [(shape.warp.0, row.a), (shape.warp.1, row.b)] {
                let same = fragment.first().map_or(1, |f| shared_lanes(&f.lane));
                sum += copies * product.inputs.size().bytes_of(extent * depth * same).div_ceil(4 * u64::from(WARP));
            }
        }
        for (region, part) in self.work.regions.iter().zip(parts) {
            if part.staged || part.carried {
                // A piece of less than a register takes one register; transposed pieces are held twice.
                let shifted = |m: &Move| self.shifted(env, m, shapes);
                let into = region.moves.iter().filter(|m| m.load && m.buffer.is_some() && (part.staged || shifted(m)));
                let twice = |m: &Move| if self.transposed(m, shapes) { 2 } else { 1 };
                let pieces = |m: &Move| (4 / self.access(env, m, shapes)).max(twice(m));
                sum += into.map(|m| words(pieces(m) * bytes(&m.shape, m.elem))).sum::<u64>();
            }
        }
        sum
    }
}
