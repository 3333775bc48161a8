//! Whether blocks gain by sharing tiles along the reduction (stream-K), and the resulting time. The persistent tile
//! scheduler (`tile_scheduler/stream_k.rs`) and the model of warpgroups use this.

use super::bandwidth::SUPPLY;
use crate::choose::cards::Card;

/// Least bytes of an operand's row in a segment, in whole steps.
pub(crate) const LEAST: i64 = 1024;
/// Most blocks that share one tile if sizes are not given. If segments do not start at tile boundaries, up to five
/// blocks may have a part of a tile. The block with the first part adds the partial sums.
pub(crate) const MOST: i64 = 4;
/// Numbers of blocks to try for few tiles with a long reduction, if sizes are given, in addition to the number of
/// available blocks for each tile.
const MANY: [i64; 7] = [6, 8, 12, 16, 24, 32, 48];
/// Least steps of each block in these cases.
const LONG: i64 = 32;
/// Most blocks that share a tile of `mma.sync` products: these have few rows, so there are few tiles with small sums.
pub(crate) const MOST_OF_WARPS: i64 = 2 * MOST;

/// Clocks of one step of `mma.sync` products (lower bound), and clocks to exchange partial sums.
const STEP_OF_WARPS: f64 = 300.0;
const HANDING_OF_WARPS: f64 = 2600.0;

/// The number of blocks that share a tile of `mma.sync` products, with `places` available for each tile; a segment has
/// at least `least` steps. `asked`: whether the schedule demands sharing; `None`: only if it is faster.
pub(crate) fn of_warps(steps: f64, least: f64, places: f64, asked: Option<bool>) -> f64 {
    let each = places.floor().min((steps / least.max(1.0)).floor()).clamp(1.0, MOST_OF_WARPS as f64);
    let pays = steps * (1.0 - 1.0 / each) * STEP_OF_WARPS > HANDING_OF_WARPS;
    if asked.unwrap_or(pays) { each } else { 1.0 }
}

/// The cost of sharing tiles.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ExchangeCost {
    /// Clocks that a block loses by passing partial sums and waiting for other blocks.
    pub(crate) lost: f64,
    /// Bytes of partial sums per clock, all passing through the second-level cache at the same time.
    pub(crate) rate: f64,
}

/// Found by `fit.rs` for the H200, and rounded.
pub(crate) static HANDING: ExchangeCost = ExchangeCost { lost: 4780.5, rate: 19.016 };

/// The cost for two blocks of a cluster, of which one stores its partial sums to the other's shared memory (bf16 on an
/// H200: 128x1536x4096 takes 7.26 us in tiles of 64x48, 80x2048x6144 11.2 us in 40x64, 102x3584x14336 31.9 us in
/// 104x64, 344x896x4864 12.7 us in 64x96).
pub(crate) static PAIR: ExchangeCost = ExchangeCost { lost: 1500.0, rate: 19.0 };

/// Blocks of such a cluster.
pub(crate) const PAIR_BLOCKS: f64 = 2.0;
/// Bytes of shared memory that must be free in addition to the partial sums.
const SPARE: f64 = 2048.0;

/// Clocks of a step beyond its products, or beyond its transfer from the second-level cache.
const STEP: f64 = 30.0;
/// Clocks for an element that a warpgroup computes in registers for its product. Products wait for their operands, so
/// other warpgroups and pending products hide little of it (W4A16 in bf16 on an H200: steps of two warpgroups take 300
/// clocks more than their products with 64 elements, and 540 with 128, for any number of rows).
pub(crate) const COMPUTED: f64 = 0.027;
/// The share of the memory's bandwidth that TMA loads reach at best.
const READ: f64 = 0.9;
/// The relative time below which sharing counts as faster.
const GAIN: f64 = 0.97;

/// Properties of tiles.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Work {
    /// The number of tiles, and their steps along the reduction.
    pub(crate) tiles: f64,
    pub(crate) steps: f64,
    /// Rows and columns of a tile, and bytes of its operands in a step.
    pub(crate) shape: (f64, f64),
    pub(crate) bytes: f64,
    /// Bytes of a multiplied row in a step: more than those of an operand that is converted.
    pub(crate) row: f64,
    /// Elements of an operand that warpgroups compute in registers for a step.
    pub(crate) computed: f64,
    /// Bytes of all operands, counting each indexed element once.
    pub(crate) operands: f64,
    /// Distinct bytes divided by these (`analysis/distinct.rs`).
    pub(crate) distinct: f64,
    /// Blocks of a cluster, each with a tile of its own, that work together.
    pub(crate) blocks: f64,
    /// The number of tiles that load the same operand, for the operand where it is smaller.
    pub(crate) readers: f64,
    /// Free bytes of shared memory next to slots and buffers; 0: partial sums pass through scratch memory.
    pub(crate) room: f64,
}

/// The work of blocks that share tiles.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Shared {
    /// Number of blocks in the launch.
    pub(crate) blocks: f64,
    /// Number of blocks that work at a time.
    pub(crate) busy: f64,
    /// Tiles that each of them computes, counting parts.
    pub(crate) rounds: f64,
    /// Whether blocks read their common operands at different times.
    pub(crate) apart: bool,
    /// Most blocks that share a tile.
    pub(crate) most: i64,
    /// Clocks for exchanging partial sums.
    pub(crate) lost: f64,
    /// Clocks of all.
    pub(crate) clocks: f64,
    /// Whether two blocks of a cluster share each tile through distributed shared memory.
    pub(crate) paired: bool,
    /// Whether it pays.
    pub(crate) gains: bool,
}

/// Whether two blocks for each of `tiles` can be clusters: all are resident at a time, and partial sums of `elements`
/// words fit next to the slots.
pub(crate) fn in_pairs(card: &Card, each: f64, tiles: f64, elements: f64, room: f64) -> bool {
    each == PAIR_BLOCKS && tiles <= card.clusters(PAIR_BLOCKS as i64) as f64 && 4.0 * elements + SPARE <= room
}

impl ExchangeCost {
    /// Clocks for exchanging `sums` bytes.
    pub(super) fn clocks(&self, sums: f64) -> f64 {
        4.0 * sums / self.rate
    }
}

/// The work of blocks that share tiles, with the fastest number of blocks for each tile.
pub(crate) fn shared(card: &Card, work: &Work, blocks: f64, handing: &ExchangeCost) -> Shared {
    let usual = cut(card, work, blocks, handing, MOST);
    // The number of blocks available for each tile.
    let all = (blocks / work.tiles.max(1.0)).floor() as i64;
    let more = MANY.into_iter().filter(|&most| most < all).chain((all > MOST).then_some(all));
    let more = more.filter(|&most| work.steps >= (most * LONG) as f64);
    // If two to four blocks share a tile, overlapping windows count in full (32 images of 7x7, 512 channels, 512
    // filters of 3x3 on an H200: 24.3 us with two blocks for each tile of 128x112, 16.2 us in whole tiles of 64x128).
    let work = &Work { operands: work.operands * work.distinct, distinct: 1.0, ..*work };
    more.fold(usual, |best, most| {
        let next = cut(card, work, blocks, handing, most);
        if next.gains && next.clocks < GAIN * best.clocks { next } else { best }
    })
}

/// [`shared`] with at most `most` blocks for a tile: equal parts of each tile for the available blocks. If there are
/// not two blocks for each tile, parts begin anywhere.
fn cut(card: &Card, work: &Work, blocks: f64, handing: &ExchangeCost, most: i64) -> Shared {
    let &Work { tiles, steps, shape: (rows, cols), row, readers, .. } = work;
    let segments = (steps / (LEAST as f64 / row).floor().max(1.0)).floor().min(most as f64);
    let (busy, rounds, apart, each) = if tiles < blocks {
        let workers = (tiles * segments).clamp(tiles, blocks);
        let each = (workers / tiles).floor().min(segments.max(1.0));
        match each < 2.0 {
            true => (workers, tiles / workers, workers > tiles && readers > 1.0, each),
            false => (tiles * each, 1.0 / each, false, each),
        }
    } else {
        let rest = tiles % blocks;
        let each = (blocks / rest.max(1.0)).floor().min(segments);
        (blocks, (tiles / blocks).floor() + 1.0 / each.max(1.0), false, each)
    };
    // The partial sums of three other blocks are read at a time.
    let reads = ((each - 1.0) / (MOST - 1) as f64).max(1.0);
    let paired = work.blocks == 1.0 && in_pairs(card, each, tiles, rows * cols, work.room);
    let lost = match paired {
        true => PAIR.lost + PAIR.clocks(rows * cols),
        false => handing.lost + reads * handing.clocks(rows * cols),
    };
    let whole = work.clocks(card, (tiles.min(blocks), (tiles / blocks).ceil()), false, Some(blocks));
    let clocks = work.clocks(card, (busy, rounds), apart, None) + lost;
    Shared {
        blocks: busy,
        busy,
        rounds,
        apart,
        most,
        lost,
        clocks,
        paired,
        gains: tiles % blocks != 0.0 && clocks < GAIN * whole,
    }
}

/// [`shared`] with `each` blocks of a cluster for every tile.
pub(crate) fn split(card: &Card, work: &Work, each: i64) -> Shared {
    let &Work { tiles, shape: (rows, cols), .. } = work;
    let (clusters, each) = (card.clusters(each).max(1) as f64, each as f64);
    let (busy, rounds) = (tiles.min(clusters) * each, (tiles / clusters).ceil() / each);
    let lost = PAIR.lost + (each - 1.0) * PAIR.clocks(rows * cols);
    let clocks = work.clocks(card, (busy, rounds), false, None) + lost;
    Shared {
        blocks: tiles * each,
        busy,
        rounds,
        apart: false,
        most: each as i64,
        lost,
        clocks,
        paired: true,
        gains: true,
    }
}

impl Work {
    /// Clocks in which `busy` groups of blocks compute `rounds` tiles each. If tiles are whole, the last round has the
    /// remainder for `whole` groups.
    fn clocks(&self, card: &Card, (busy, rounds): (f64, f64), apart: bool, whole: Option<f64>) -> f64 {
        let &Work { tiles, steps, shape: (rows, cols), bytes, row, computed, operands, blocks, readers, .. } = self;
        let active = busy * blocks;
        // A row of 16-bit elements has half as many elements as bytes.
        let multiply = rows * cols * row / (2.0 * card.warpgroups) + computed * COMPUTED;
        let step = multiply.max(bytes / SUPPLY.cache_rate(card, active, apart, rounds)) + STEP;
        let asked = tiles * blocks * steps * bytes;
        let loaded = if apart { SUPPLY.read_again(card, operands, operands, readers).min(asked) } else { operands };
        let of_tile = steps * bytes * (loaded / asked).min(1.0);
        let supplied = match whole {
            Some(groups) => SUPPLY.rounds(card, of_tile, tiles * blocks, groups * blocks),
            None => rounds * of_tile / SUPPLY.memory_rate(card, active),
        };
        let memory = loaded / (READ * card.dram / card.clock);
        (rounds * steps * step).max(memory).max(supplied)
    }
}
