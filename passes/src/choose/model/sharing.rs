//! Whether blocks gain by sharing tiles along the reduction (stream-K), and how long they then work. The walk over tiles (`walk/stream.rs`) asks, and the model of
//! warpgroups.

use super::supply::SUPPLY;
use crate::choose::cards::Card;

/// Bytes of a row of an operand that a segment takes at least, in whole steps.
pub(crate) const LEAST: i64 = 1024;
/// Blocks for which a tile is cut at most where sizes are not given; where segments do not begin with tiles, five may have parts of one. Who has its beginning adds up the sums
/// of all.
pub(crate) const MOST: i64 = 4;
/// The same of few tiles along a long reduction, as sizes say: the fastest of these, and of as many blocks as there are for each.
const MANY: [i64; 7] = [6, 8, 12, 16, 24, 32, 48];
/// Steps that each of so many has at least.
const LONG: i64 = 32;
/// The same of products of warps: these have tiles of few rows, so few tiles and short sums.
pub(crate) const MOST_OF_WARPS: i64 = 2 * MOST;

/// Clocks of a step of products of warps at least, and those for handing on their sums.
const STEP_OF_WARPS: f64 = 300.0;
const HANDING_OF_WARPS: f64 = 2600.0;

/// Blocks for which a tile of products of warps is cut, of `places` for each: steps of a segment are `least` or more. `asked`: whether it is to be; `None`: where it pays.
pub(crate) fn of_warps(steps: f64, least: f64, places: f64, asked: Option<bool>) -> f64 {
    let each = places.floor().min((steps / least.max(1.0)).floor()).clamp(1.0, MOST_OF_WARPS as f64);
    let pays = steps * (1.0 - 1.0 / each) * STEP_OF_WARPS > HANDING_OF_WARPS;
    if asked.unwrap_or(pays) { each } else { 1.0 }
}

/// What sharing tiles costs.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Handing {
    /// Clocks that a block loses for handing on sums and waiting for others.
    pub(crate) lost: f64,
    /// Bytes of sums a clock, all passing through the second-level cache at the same time.
    pub(crate) rate: f64,
}

/// Found by `fit.rs` for the H200, and rounded.
pub(crate) static HANDING: Handing = Handing { lost: 4780.5, rate: 19.016 };

/// The same of two blocks of a cluster, of which one stores its sums to the other's shared memory (bf16 on an H200: 128x1536x4096 takes 7.26 us in tiles of 64x48 and 80x2048x6144 11.2 in
/// 40x64, 102x3584x14336 31.9 in 104x64, 344x896x4864 12.7 in 64x96).
pub(crate) static PAIR: Handing = Handing { lost: 1500.0, rate: 19.0 };

/// Blocks of such a cluster.
pub(crate) const PAIR_BLOCKS: f64 = 2.0;
/// Bytes beside the sums that must be free in shared memory.
const SPARE: f64 = 2048.0;

/// Clocks of a step beside its products, or its way from the second-level cache.
const STEP: f64 = 30.0;
/// Clocks of an element that a warpgroup computes in registers for its product. What issues products waits for their operands, so the others' hide little of that, and pending ones no more
/// (W4A16 in bf16 on an H200: steps of two warpgroups take 300 clocks more than their products where they are 64 long, and 540 where they are 128, whatever the rows).
pub(crate) const COMPUTED: f64 = 0.027;
/// Share of the memory's bandwidth that TMA copies reach at best.
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
    /// Bytes of a row of what is multiplied in a step: more than those of an operand that is converted first.
    pub(crate) row: f64,
    /// Elements of an operand that warpgroups compute in registers for a step.
    pub(crate) computed: f64,
    /// Bytes of all operands, each element once that is indexed.
    pub(crate) operands: f64,
    /// Share of them that has memory of its own (`analysis/distinct.rs`).
    pub(crate) distinct: f64,
    /// Blocks that compute a tile together: those of a cluster, of which each has a tile of its own.
    pub(crate) blocks: f64,
    /// Tiles that load the same operand, of the one that fewer load.
    pub(crate) readers: f64,
    /// Bytes of shared memory that slots and buffers leave; 0: sums pass through scratch memory.
    pub(crate) room: f64,
}

/// How long blocks work that share tiles.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Shared {
    /// Blocks of the launch.
    pub(crate) blocks: f64,
    /// Blocks that work at a time.
    pub(crate) busy: f64,
    /// Tiles that each of them computes, counted in parts.
    pub(crate) rounds: f64,
    /// Whether blocks come past the operands that they share at different times.
    pub(crate) apart: bool,
    /// Blocks for which a tile is cut at most.
    pub(crate) most: i64,
    /// Clocks for handing on sums.
    pub(crate) lost: f64,
    /// Clocks of all.
    pub(crate) clocks: f64,
    /// Whether two blocks of a cluster share each tile, through distributed shared memory.
    pub(crate) paired: bool,
    /// Whether it pays.
    pub(crate) gains: bool,
}

/// Whether two blocks for each of so many `tiles` are those of a cluster: all run at a time, and sums of `elements` words have room beside slots.
pub(crate) fn in_pairs(card: &Card, each: f64, tiles: f64, elements: f64, room: f64) -> bool {
    each == PAIR_BLOCKS && tiles <= card.clusters(PAIR_BLOCKS as i64) as f64 && 4.0 * elements + SPARE <= room
}

impl Handing {
    /// Clocks in which so many sums are passed on.
    pub(super) fn clocks(&self, sums: f64) -> f64 {
        4.0 * sums / self.rate
    }
}

/// What blocks do that share tiles, cut for as many of them as is fastest.
pub(crate) fn shared(card: &Card, work: &Work, blocks: f64, handing: &Handing) -> Shared {
    let usual = cut(card, work, blocks, handing, MOST);
    // Blocks that there are for each tile.
    let all = (blocks / work.tiles.max(1.0)).floor() as i64;
    let more = MANY.into_iter().filter(|&most| most < all).chain((all > MOST).then_some(all));
    let more = more.filter(|&most| work.steps >= (most * LONG) as f64);
    // Where two to four blocks share a tile, windows that lie over each other count in full (32 images of 7x7, 512 channels, 512 filters of 3x3 on an H200: 24.3 us by two blocks
    // for each tile of 128x112, 16.2 in whole tiles of 64x128).
    let work = &Work { operands: work.operands * work.distinct, distinct: 1.0, ..*work };
    more.fold(usual, |best, most| {
        let next = cut(card, work, blocks, handing, most);
        if next.gains && next.clocks < GAIN * best.clocks { next } else { best }
    })
}

/// The same of tiles that are cut for at most so many: as many parts of equal length of each tile as there are blocks for; where there are not two blocks for each, parts that
/// begin anywhere.
fn cut(card: &Card, work: &Work, blocks: f64, handing: &Handing, most: i64) -> Shared {
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
    // The sums of three others are read at a time.
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

/// The same of `each` blocks of a cluster for every tile.
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
    /// Clocks in which `busy` groups of blocks compute as many tiles as `rounds` each; of whole tiles, the last round has what is left over of `whole` groups.
    fn clocks(&self, card: &Card, (busy, rounds): (f64, f64), apart: bool, whole: Option<f64>) -> f64 {
        let &Work { tiles, steps, shape: (rows, cols), bytes, row, computed, operands, blocks, readers, .. } = self;
        let active = busy * blocks;
        // A row of 16-bit elements has half as many as bytes.
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
