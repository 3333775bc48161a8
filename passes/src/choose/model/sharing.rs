//! Whether blocks gain by sharing tiles along the reduction (stream-K), and how long they then work. The walk over tiles (`walk/stream.rs`) asks, and the model of
//! warpgroups.

use super::{Card, L2_PORT};

/// Bytes of a row of an operand that a stretch takes at least, in whole steps.
pub(crate) const LEAST: i64 = 1024;
/// Blocks for which a tile is cut at most; where stretches do not begin with tiles, five may have parts of one. Who has its beginning adds up the sums of all.
pub(crate) const MOST: i64 = 4;

/// Clocks that a block loses for handing on sums and waiting for others, and bytes of sums a clock: 4 us were measured with 16 KiB a block on an
/// H200, 6 us with 64 KiB, all passing through the second-level cache at one time.
const LOST: f64 = 6000.0;
const HANDED_ON: f64 = 16.0;
/// Clocks of a step beside its products, or its way from the second-level cache.
const STEP: f64 = 30.0;
/// Share of the memory's bandwidth that tensor copies reach at best.
const READ: f64 = 0.9;
/// What must be left of the time for a gain to count.
const GAIN: f64 = 0.97;

/// What tiles are made of.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Work {
    /// Tiles, and their steps along the reduction.
    pub(crate) tiles: f64,
    pub(crate) steps: f64,
    /// Rows and columns of a tile, and bytes of its operands in a step.
    pub(crate) shape: (f64, f64),
    pub(crate) bytes: f64,
    /// Bytes of all operands, each once.
    pub(crate) operands: f64,
}

/// How long blocks work that share tiles.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Shared {
    /// Blocks that work at a time.
    pub(crate) busy: f64,
    /// Tiles that each of them computes, counted in parts.
    pub(crate) rounds: f64,
    /// Clocks for handing on sums.
    pub(crate) lost: f64,
    /// Whether it pays.
    pub(crate) gains: bool,
}

/// Clocks in which so many sums are handed on.
pub(super) fn handed_on(sums: f64) -> f64 {
    4.0 * sums / HANDED_ON
}

/// What blocks do that share tiles.
pub(crate) fn shared(card: &Card, work: &Work, blocks: f64) -> Shared {
    let &Work { tiles, steps, shape: (rows, cols), bytes, operands } = work;
    let row_bytes = bytes / (rows + cols);
    let stretches = (steps / (LEAST as f64 / row_bytes).floor().max(1.0)).floor().min(MOST as f64);
    let (busy, rounds) = if tiles < blocks {
        let busy = (tiles * stretches).clamp(tiles, blocks);
        (busy, tiles / busy)
    } else {
        let rest = tiles % blocks;
        let each = (blocks / rest.max(1.0)).floor().min(stretches);
        (blocks, (tiles / blocks).floor() + 1.0 / each.max(1.0))
    };
    let plain = (tiles / blocks).ceil();
    let lost = LOST + handed_on(rows * cols);
    // A row of 16-bit elements has half as many as bytes.
    let multiply = rows * cols * row_bytes / (2.0 * card.warpgroups);
    let step = multiply.max(bytes / L2_PORT) + STEP;
    let memory = operands / (READ * card.dram / card.clock);
    let (apart, together) = ((plain * steps * step).max(memory), (rounds * steps * step).max(memory) + lost);
    let gains = tiles % blocks != 0.0 && together < GAIN * apart;
    Shared { busy, rounds, lost, gains }
}
