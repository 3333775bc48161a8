//! Time of kernels whose consumer warps multiply by `mma.sync` and whose producer warps load the operands: few rows,
//! with an operand converted in registers.
//!
//! The time of a step is the largest of three: the instructions of its warps, its accesses to shared memory, and the
//! transfer of its tiles from the second-level cache. The sum is at least the time that memory needs for the operands.
//! As many blocks share a tile along the reduction as there are multiprocessors for.
//!
//! The constants are rounded from W4A16 in bf16 of 8192x8192, 16384x8192 and 4096x4096 with 16 rows on an H100: 18.1,
//! 31.1 and 8.8 us in tiles of 16x256x128; the last takes 7.6 us in tiles of 16x128x128.

use super::launch::{L2_PORT, Launch, SCHEDULERS, SHARED, Terms, Time};
use super::stream_k::{LEAST, in_pairs, of_warps};
use crate::choose::cards::Card;
use crate::choose::cost::Cost;

/// The share of issue slots that schedulers use with two warps each.
const ISSUED: f64 = 0.6;
/// Clocks between two steps: waiting for a slot, releasing it.
const STEP: f64 = 150.0;
/// Clocks from the request of a tile until it has landed.
const LANDING: f64 = 1000.0;
/// The share of the memory's bandwidth that is reached.
const READ: f64 = 0.9;
/// Seconds that a launch saves if its blocks start next to those of the previous launch.
const BESIDE: f64 = 0.8e-6;
/// Seconds of a launch outside of its steps, and seconds for passing partial sums, for each further block that shares a
/// tile.
const LAUNCH: f64 = 3.0e-6;
const HANDED: f64 = 0.35e-6;
/// Seconds that a launch saves if two blocks of a cluster share each tile: no segments are computed, and the partial
/// sums pass through distributed shared memory (16x8192x8192 in tiles of 16x128 on an H200: 15.1 us, and 16.3 us
/// through scratch memory).
const PAIR_SAVES: f64 = 0.85e-6;

pub(in crate::choose) fn time(card: &Card, cost: &Cost, launch: &Launch) -> Time {
    let clock = card.clock * 1e9;
    let tiles: f64 = launch.grid.iter().product();
    let places = f64::from(card.sms);
    let (mut products, mut shared, mut l2, mut latency, mut loops, mut ends) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    let each = blocks_of_a_tile(cost, places / tiles);
    let port = (card.l2 / (tiles * each).min(places)).min(L2_PORT);
    for part in &cost.parts {
        if part.product == 0.0 {
            ends += part.trips * (part.loads + part.stores) / port;
            continue;
        }
        let warps = cost.block.threads as f64 / 32.0;
        let multiply = part.product.max(part.issued / SCHEDULERS / (ISSUED * (warps / (2.0 * SCHEDULERS)).min(1.0)));
        let (read, moved) = (part.shared / SHARED, part.loads / port);
        let step = (multiply.max(read).max(moved) + STEP).max((LANDING + moved) / part.ahead.max(1.0));
        products += part.trips * multiply / each;
        shared += part.trips * read / each;
        l2 += part.trips * moved / each;
        latency += part.trips * (step - multiply).max(0.0) / each;
        loops += part.trips * step / each;
    }
    let rounds = (tiles * each / places).ceil();
    let memory = launch.bytes / (READ * card.dram * 1e9);
    let elements = cost.tile.map_or(0.0, |(rows, cols)| (rows * cols) as f64);
    let paired = cost.split_k.is_some_and(|n| n > 1) || in_pairs(card, each, tiles, elements, cost.room as f64);
    let handed = if paired { -PAIR_SAVES } else { HANDED * (each - 1.0).max(0.0) };
    let launched = if cost.beside { LAUNCH - BESIDE } else { LAUNCH };
    let working = handed + rounds * (loops + ends) / clock;
    let seconds = launched + handed + (rounds * loops / clock).max(memory) + rounds * ends / clock;
    let terms = Terms {
        products: rounds * products / clock,
        shared: rounds * shared / clock,
        l2: rounds * l2 / clock,
        memory,
        latency: rounds * latency / clock,
        barriers: 0.0,
        ends: rounds * ends / clock + handed.max(0.0),
        uneven: (rounds - tiles * each / places) * loops / clock,
        launch: launched + handed.min(0.0),
        ..Terms::default()
    };
    let blocks = tiles * each;
    Time {
        seconds,
        working,
        awaited: 0.0,
        terms,
        tiles,
        blocks,
        waves: blocks / places,
        bytes: launch.bytes,
        least_bytes: launch.bytes,
    }
}

/// The number of blocks that share a tile, limited by the number of multiprocessors.
fn blocks_of_a_tile(cost: &Cost, places: f64) -> f64 {
    let (Some((rows, cols)), Some(part)) = (cost.tile, cost.parts.iter().find(|p| p.product > 0.0)) else { return 1.0 };
    if let Some(n) = cost.split_k.filter(|&n| n > 1) {
        return n as f64;
    }
    // Elements of 16 bits.
    let row = 2.0 * cost.macs / (part.trips * (rows * cols) as f64).max(1.0);
    of_warps(part.trips, (LEAST as f64 / row.max(1.0)).floor(), places, cost.stream_k)
}
