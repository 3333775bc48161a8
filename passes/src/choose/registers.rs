//! Registers of a thread: what tiles take, and what is left for them.

use super::cost::Part;
use super::illegal::Illegal;
use super::product::{Shape, slice};
use super::setting::Setting;
use super::work::{Env, Move, Product, Tile};
use crate::roles;
use crate::schedule::{occupancy, spills};
use crate::select_mma::{accumulator_registers, warpgroup};
use tilec_ir::atoms::Bit;
use tilec_ir::bits::Bits;
use tilec_ir::entities::Expr;
use tilec_ir::target::WARP;

/// Registers that addresses and counters take at least.
const ADDRESSES: u64 = 24;
/// The same where tiles pass through registers in pieces, or are transposed there (with 40 a few programs spill).
const ADDRESSES_STAGED: u64 = 80;
/// The same where several tiles wait in registers to be shifted into place.
const ADDRESSES_CARRIED: u64 = 56;
/// Registers that warpgroups take beside their sums: 34 where lanes exchange results before they store them (ptxas 13, `conv.tile` with NCHW=1).
const BESIDE_SUMS: u64 = 40;
/// And where an operand comes from registers, of which the instruction wants more, and each row of results has an address: these, and a share of the sums (ptxas
/// 13, `gemm.tile` of tf32 with B by rows: 46 beside 80 of tiles, 94 beside 144).
const LOADED: u64 = 16;
const LOADED_SHARE: u64 = 2;
/// And where sums are halves, which the epilogue takes apart (51).
const UNPACKED: u64 = 16;

/// And of each tensor that repeats, addresses and predicates beside a matrix that tensor copies have loaded as a whole (ptxas 13: none of `gemm_fused.tile` of f16 and
/// bf16 spills with 128 registers of sums and 64 of C of 240, but with `erf`; of bytes it does).
const COMBINED: u64 = 8;

/// Registers beside these for each tensor that repeats, such as a bias (`gemm_fused.tile`: 53 beside sums and a residual, with two of them).
const REPEATED: u64 = 12;

impl Setting<'_> {
    /// What decides how many blocks are resident, if the tiles leave a thread registers for addresses.
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
            beside: self.work.functions,
        };
        let pieces = !block.wide || self.moves().any(|m| m.elem.shares_registers() && self.transposed(m, shapes));
        let staged = parts.iter().any(|p| p.staged);
        let addresses = match parts.iter().any(|p| p.carried) && !block.wide {
            _ if pieces && staged => ADDRESSES_STAGED,
            true => ADDRESSES_CARRIED,
            false => ADDRESSES + self.more_addresses(env, shapes, threads).min(ADDRESSES),
        };
        let addresses = match self.warpgroups {
            Some(_) => self.beside_sums(shapes) + self.loaded_beside(env, &block) + self.work.functions,
            // What the main loop takes beside its tiles, and what functions do.
            None if self.work.functions > 0 => {
                let rows = shapes.iter().map(|shape| spills::beside_loop(shape.atom.row(), self.target));
                addresses.max(rows.max().unwrap_or(0) + self.work.functions)
            }
            None => addresses,
        };
        let room = self.has(&block).saturating_sub(addresses);
        // What a thread of a single warp transposes is estimated too low.
        let alone = pieces && staged && threads == u64::from(WARP);
        // Aligned words that cover unaligned rows are twice as many as those of the tile.
        let covering: u64 =
            self.moves().filter(|m| shifted(m)).map(|m| m.elem.bytes_of(elements(m)) / (4 * threads)).sum();
        let whole = self.warpgroups.is_some() && !self.holds_whole(env, &block);
        if (block.tiles + covering > room || alone || whole) && !self.crowded {
            return Err(Illegal::Registers);
        }
        block.tiles = block.tiles.min(room);
        Ok(block)
    }

    /// Registers of a thread that multiplies.
    fn has(&self, block: &occupancy::Block) -> u64 {
        if self.warpgroups.is_none() {
            return block.cap(1);
        }
        // Where threads fill slots the producer keeps more.
        let filling = self.moves().any(|m| m.load && m.buffer.is_some() && m.modes);
        let warps = u32::try_from(block.threads / u64::from(WARP)).expect("a block has few warps");
        let (_, registers) = roles::registers(self.work.k, warps, filling);
        u64::try_from(registers.unwrap_or_else(|| roles::share(self.work.k, warps))).expect("a count of registers")
    }

    /// Registers that warpgroups take beside their sums.
    fn beside_sums(&self, shapes: &[Shape]) -> u64 {
        let one = |(product, shape): (&Product, &Shape)| {
            let sums = warpgroup::tiles_of(shape.atom, (shape.warp, 0), shape.way, (product.acc, shape.sums));
            let loaded = if shape.way.registers { LOADED + sums / LOADED_SHARE } else { 0 };
            let unpacked = if product.acc.size().shares_registers() { UNPACKED } else { 0 };
            BESIDE_SUMS + loaded + unpacked
        };
        self.products().zip(shapes).map(one).max().unwrap_or(BESIDE_SUMS)
    }

    /// Registers of the matrices that are loaded in branches that are rarely taken.
    fn rare(&self, env: &Env, block: &occupancy::Block) -> u64 {
        let own = self.work.rare.moves.iter().filter(|m| m.load && m.buffer.is_none());
        own.map(|m| self.words(env, m, block)).sum()
    }

    /// Registers that a matrix takes on its way: bytes are taken apart.
    fn words(&self, env: &Env, m: &Move, block: &occupancy::Block) -> u64 {
        m.elem.max(Bits::new(16)).bytes_of(self.work.elements(env, &m.shape).unwrap_or(0)) / (4 * block.threads)
    }

    /// Whether a thread has registers for a matrix that tensor copies load as a whole in a rare branch, and for what it is combined with.
    fn holds_whole(&self, env: &Env, block: &occupancy::Block) -> bool {
        let rare = self.rare(env, block);
        let held = block.tiles + rare + roles::BESIDE;
        let bytes = self.work.rare.moves.iter().any(|m| m.load && m.buffer.is_none() && m.elem.get() < 16);
        let apart = if bytes { UNPACKED } else { 0 };
        let whole = self.stage_stores && rare > 0 && held <= self.has(block);
        !whole || held + COMBINED * self.work.repeated + self.work.functions + apart <= self.has(block)
    }

    /// Registers of the matrices that an epilogue loads beside the sums of warpgroups, where a thread has room for them at all, and of what it takes to combine
    /// results with what repeats.
    fn loaded_beside(&self, env: &Env, block: &occupancy::Block) -> u64 {
        let own = self.moves().filter(|m| m.load && m.buffer.is_none());
        let (loaded, rare) = (own.map(|m| self.words(env, m, block)).sum::<u64>(), self.rare(env, block));
        // What is loaded in a branch that is rarely taken is loaded piece by piece where less is left (192x176 of `gemm.tile`: 88 registers of sums and 44 of C
        // of 160, and none is spilled).
        let rare = if block.tiles + rare + roles::BESIDE + roles::EPILOGUE <= self.has(block) { rare } else { 0 };
        let loaded = loaded.max(rare);
        let fits = self.stage_stores && block.tiles + loaded + roles::BESIDE <= self.has(block);
        match fits && loaded > 0 {
            true => loaded + REPEATED * self.work.repeated,
            false if self.warpgroups.is_some_and(|way| way.registers) => REPEATED * self.work.repeated,
            false => 0,
        }
    }

    /// Addresses of asynchronous copies beyond the usual four of a thread and tile.
    fn more_addresses(&self, env: &Env, shapes: &[Shape], threads: u64) -> u64 {
        let copies = |m: &Move| {
            let bytes = m.elem.bytes_of(self.work.elements(env, &m.shape).unwrap_or(0));
            // A place that is found by digits is a pointer, two registers.
            if m.modes { 2 * bytes / self.access(env, m, shapes) / threads } else { bytes / 16 / threads }
        };
        let fills = self.moves().filter(|m| m.load && m.buffer.is_some());
        fills.map(|m| copies(m).saturating_sub(4)).sum()
    }

    /// Registers of a thread that hold tiles, fragments and tiles on their way to shared memory.
    fn registers(&self, env: &Env, shapes: &[Shape], threads: u64, parts: &[Part]) -> u64 {
        let words = |bytes: u64| bytes.div_ceil(4 * threads);
        let bytes = |shape: &[Expr], elem: Bits| elem.bytes_of(self.work.elements(env, shape).unwrap_or(0));
        let accumulator = |t: &Tile| self.products().any(|p| p.accumulator == t.value);
        let tiles = self.work.tiles.iter().filter(|t| !t.shared && !accumulator(t));
        let mut sum: u64 = tiles.map(|t| words(bytes(&t.shape, t.elem))).sum();
        for (product, shape) in self.products().zip(shapes) {
            let row = shape.atom.row();
            // Operands stay in shared memory, but for one that may come from registers.
            if row.asynchronous() {
                sum += warpgroup::tiles_of(shape.atom, (shape.warp, shape.depth), shape.way, (product.acc, shape.sums));
                continue;
            }
            sum += shape.sums * accumulator_registers(shape.warp.0, shape.warp.1, product.acc.size());
            let depth = slice(product, shape);
            // Slices are loaded ahead, into registers of their own, if there is an even number of them.
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
                // What is loaded in pieces of less than a register takes one for each; what is transposed is there twice.
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
