//! The time of kernels whose products are of warpgroups: blocks that stay, a producer that runs ahead, consumers that multiply.
//!
//! A step of the loop takes the longest of what goes on side by side: the products of all warpgroups at the rate that the
//! power of the card sustains; what one warpgroup does one after the other, its products, the additions of their sums if these are promoted, and the way from the last of them to the first of the
//! next step ([`DRAIN`]); what products read of shared memory; the tiles' way from the second-level cache; and their landing, shared by the slots. In front of the first step the
//! pipeline fills, once for all tiles of a block; behind the last one of each tile the results are stored. All of that takes at least as long as
//! memory needs.
//!
//! The constants are fitted to the tiles that docs/performance.md lists ("Hopper code on an H200"), f16 with f32 sums.

use super::{Card, Constants, Cost, L2_PORT, Launch, SHARED, Terms, Time, traffic};
use tilec_ir::target::{WARP, WARPGROUP};

/// Clocks from the last product of a step to the first of the next: waiting for the sums, releasing the slot, waiting for the next.
const DRAIN: f64 = 350.0;
/// Share of their rate that products keep when all multiprocessors multiply: the clock falls.
const SUSTAINED: f64 = 0.74;
/// Share of the second-level cache's bandwidth that tensor copies reach.
const FED: f64 = 0.79;
/// Clocks from the asking for a tile to its landing, beside the time that its bytes take.
const LANDING: f64 = 1100.0;
/// Clocks that storing a tile takes beside its bytes.
const STORING: f64 = 400.0;
/// Share of the memory's bandwidth that stores of whole tiles reach, all multiprocessors at the same moment.
const STORED: f64 = 0.6;
/// Share of the memory's bandwidth that tensor copies reach.
const READ: f64 = 0.9;
/// Of the clocks that shared memory is read by products, the share that they cost even where something else takes longer: the power
/// is taken from the products.
const POWER: f64 = 0.01;
/// Threads of a warpgroup.
const THREADS: f64 = (WARP * WARPGROUP) as f64;

pub(super) fn time(card: &Card, c: &Constants, cost: &Cost, launch: &Launch) -> Time {
    let clock = card.clock * 1e9;
    let tiles: f64 = launch.grid.iter().product();
    let places = f64::from(card.sms) * cost.resident as f64;
    let active = tiles.min(places);
    let rounds = (tiles / places).ceil();
    let dram = card.dram * 1e9 / clock / active;
    let groups = (cost.block.threads as f64 / THREADS).max(1.0);
    let (mut loops, mut products, mut shared, mut l2, mut latency) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut fill, mut store) = (0.0f64, 0.0);
    for part in &cost.parts {
        if part.product > 0.0 {
            let slots = if part.ahead > 0.0 { part.ahead + 1.5 } else { 1.0 };
            let multiply = (part.product / SUSTAINED).max(part.product / groups + DRAIN + part.promotion);
            let feed = part.loads / (FED * card.l2 / active).min(L2_PORT);
            let landing = LANDING + part.loads / dram;
            let read = part.shared / SHARED;
            let step = multiply.max(feed).max(landing / slots).max(read) + POWER * read;
            loops += part.trips * step;
            products += part.trips * multiply;
            shared += part.trips * read;
            l2 += part.trips * feed;
            latency += part.trips * (step - multiply.max(feed));
            fill = fill.max(landing);
        } else {
            let bytes = part.loads + part.stores;
            let memory = bytes / (STORED * dram).min(L2_PORT);
            store += part.trips * if bytes > 0.0 { memory + STORING } else { 0.0 };
        }
    }
    let working = (rounds * (loops + store) + fill) / clock;
    let memory = traffic(card, cost, launch, tiles) / (READ * card.dram * 1e9);
    let seconds = c.launch + working.max(memory) + c.overlap * working.min(memory);
    let terms = Terms {
        products: rounds * products / clock,
        shared: rounds * shared / clock,
        l2: rounds * l2 / clock,
        memory,
        latency: rounds * latency / clock,
        barriers: 0.0,
        ends: (rounds * store + fill) / clock,
        uneven: (rounds - tiles / places) * loops / clock,
    };
    Time { seconds, terms, blocks: tiles, waves: tiles / places }
}
