//! Registers of a thread: what tiles take, and what is left for them.

use super::cost::Part;
use super::illegal::Illegal;
use super::product::{Shape, slice};
use super::setting::Setting;
use super::work::{Env, Move, Tile};
use crate::schedule::occupancy;
use crate::select_mma::{accumulator_registers, warpgroup};
use tilec_ir::atoms::Bit;
use tilec_ir::target::WARP;

/// Registers that addresses and counters take at least.
const ADDRESSES: u64 = 24;
/// The same where tiles pass through registers in pieces, or are transposed there (with 40 a few programs spill).
const ADDRESSES_STAGED: u64 = 80;
/// The same where several tiles wait in registers to be shifted into place.
const ADDRESSES_CARRIED: u64 = 56;

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
        };
        let pieces = !block.wide || self.moves().any(|m| m.bytes < 4 && self.transposed(m, shapes));
        let staged = parts.iter().any(|p| p.staged);
        let addresses = match parts.iter().any(|p| p.carried) && !block.wide {
            _ if pieces && staged => ADDRESSES_STAGED,
            true => ADDRESSES_CARRIED,
            false => ADDRESSES + self.more_addresses(env, shapes, threads).min(ADDRESSES),
        };
        let room = block.cap(1).saturating_sub(addresses);
        // What a thread of a single warp transposes is estimated too low.
        let alone = pieces && staged && threads == u64::from(WARP);
        // Aligned words that cover unaligned rows are twice as many as those of the tile.
        let covering: u64 = self.moves().filter(|m| shifted(m)).map(|m| elements(m) * m.bytes / (4 * threads)).sum();
        if (block.tiles + covering > room || alone) && !self.crowded {
            return Err(Illegal::Registers);
        }
        block.tiles = block.tiles.min(room);
        Ok(block)
    }

    /// Addresses of asynchronous copies beyond the usual four of a thread and tile.
    fn more_addresses(&self, env: &Env, shapes: &[Shape], threads: u64) -> u64 {
        let copies = |m: &Move| {
            let bytes = self.work.elements(env, &m.shape).unwrap_or(0) * m.bytes;
            // A place that is found by digits is a pointer, two registers.
            if m.modes { 2 * bytes / self.access(env, m, shapes) / threads } else { bytes / 16 / threads }
        };
        let fills = self.moves().filter(|m| m.load && m.buffer.is_some());
        fills.map(|m| copies(m).saturating_sub(4)).sum()
    }

    /// Registers of a thread that hold tiles, fragments and tiles on their way to shared memory.
    fn registers(&self, env: &Env, shapes: &[Shape], threads: u64, parts: &[Part]) -> u64 {
        let words = |elements: u64, bytes: u64| (elements * bytes).div_ceil(4 * threads);
        let accumulator = |t: &Tile| self.products().any(|p| p.accumulator == t.value);
        let tiles = self.work.tiles.iter().filter(|t| !t.shared && !accumulator(t));
        let mut sum: u64 = tiles.map(|t| words(self.work.elements(env, &t.shape).unwrap_or(0), t.bytes)).sum();
        for (product, shape) in self.products().zip(shapes) {
            let row = shape.atom.row();
            // Operands stay in shared memory, but for one that may come from registers.
            if row.asynchronous() {
                sum += warpgroup::tiles_of(shape.atom, (shape.warp, shape.depth), shape.way, (product.acc, shape.sums));
                continue;
            }
            sum += shape.sums * accumulator_registers(shape.warp.0, shape.warp.1, product.acc.bytes());
            let bytes = u64::from(product.inputs.bytes());
            let depth = slice(product, shape);
            // Slices are loaded ahead, into registers of their own, if there is an even number of them.
            let copies = if (shape.depth / shape.groups / depth).is_multiple_of(2) { 2 } else { 1 };
            // Lanes that hold the same element.
            let shared_lanes = |bits: &[Bit]| 1u64 << bits.iter().filter(|b| matches!(b, Bit::Same)).count();
            for (extent, fragment) in [(shape.warp.0, row.a), (shape.warp.1, row.b)] {
                let same = fragment.first().map_or(1, |f| shared_lanes(&f.lane));
                sum += copies * (extent * depth * bytes * same).div_ceil(4 * u64::from(WARP));
            }
        }
        for (region, part) in self.work.regions.iter().zip(parts) {
            if part.staged || part.carried {
                // What is loaded in pieces of less than a register takes one for each; what is transposed is there twice.
                let shifted = |m: &Move| self.shifted(env, m, shapes);
                let into = region.moves.iter().filter(|m| m.load && m.buffer.is_some() && (part.staged || shifted(m)));
                let twice = |m: &Move| if self.transposed(m, shapes) { 2 } else { 1 };
                let pieces = |m: &Move| (4 / self.access(env, m, shapes)).max(twice(m)) * m.bytes;
                sum += into.map(|m| words(self.work.elements(env, &m.shape).unwrap_or(0), pieces(m))).sum::<u64>();
            }
        }
        sum
    }
}
