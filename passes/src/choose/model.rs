//! An analytic model of the time of one launch.
//!
//! Multiprocessors run blocks in waves, as many at a time as are resident. An iteration of a loop takes the largest of
//! three times: its products, its accesses to shared memory, and its tiles from the second-level cache, each at the
//! card's rate. A share of the other two is added, because they do not overlap perfectly. Products lose throughput if
//! there are few warps to hide each other's latency. A barrier costs clocks ([`Constants`]). Loads ahead must land
//! within the iterations that the stages allow. In front of the first iteration the pipeline fills, and after the last
//! one the output is stored; other resident blocks hide a part of both. The bandwidth of memory for the tiles that a
//! wave reads is a lower bound of the whole.
//!
//! **Where the constants come from.** Rates, bandwidths and sizes are the card's ([`super::cards`]). The constants
//! named above are fitted to measured kernels on one H200, and so are the latency and the bandwidth of its second-level
//! cache. docs/notes/model.md has the errors of the model. `LAUNCH` is a usual figure. They apply to other cards as far
//! as those are alike. Nothing here is fitted to other cards.
//!
//! wgmma products, in kernels with roles, have a separate model ([`warpgroups`]).

mod bandwidth;
pub(super) mod launch;
mod producer_mma;
pub(super) mod scheduled;
pub(crate) mod stream_k;
pub(super) mod warpgroups;

use super::cards::Card;
use super::combined;
use super::cost::{Cost, Part};
use launch::{L2_PORT, Launch, SCHEDULERS, SHARED, Terms, Time, traffic};

/// Constants of the model in addition to the figures of the card.
#[derive(Copy, Clone, Debug)]
pub(super) struct Constants {
    /// The share of the other units' time that the bottleneck of an iteration does not hide.
    pub(super) overlap: f64,
    /// Loss of issue with a single warp per scheduler, relative to the time of tensor-core products.
    pub(super) starved: f64,
    /// Loss of issue with a single warp per scheduler, relative to the time of scalar products.
    pub(super) starved_scalar: f64,
    /// Slowdown of shared-memory reads for scalar products, because they compete with the products for register ports.
    pub(super) ports: f64,
    /// Clocks that the barrier of an iteration costs with asynchronous copies.
    pub(super) sync: f64,
    /// Clocks that it costs a block without others on its multiprocessor, if tiles pass through registers.
    pub(super) sync_staged: f64,
    /// The share of a block's ends (filling the pipeline, storing) that nothing hides.
    pub(super) ends: f64,
    /// Seconds until a launch runs.
    pub(super) launch: f64,
}

/// Found by `fit.rs` for the H200 and rounded. The error hardly depends on `ports` (1.43 was found), so it is set to
/// give the fastest tile of f32 768x768x1024.
pub(super) static FITTED: Constants = Constants {
    overlap: 0.16,
    starved: 0.254,
    starved_scalar: 0.184,
    ports: 1.44,
    sync: 30.0,
    sync_staged: 60.0,
    ends: 0.5,
    launch: 1.96e-6,
};

/// Slowdown of products in blocks with fewer warps than schedulers, because warps of different blocks are unevenly
/// distributed over schedulers. From one measured kernel with blocks of one warp, twelve on a multiprocessor.
const UNSPREAD: f64 = 1.25;
/// Clocks of a block without work.
pub(super) const IDLE_BLOCK: f64 = 500.0;
/// Clocks of an iteration of `per_sm` blocks on each of `active` multiprocessors.
#[derive(Copy, Clone, Default)]
struct IterationCost {
    clocks: f64,
    products: f64,
    shared: f64,
    l2: f64,
    latency: f64,
    /// The part of the latency that is for loads that do not run ahead.
    awaited: f64,
    barriers: f64,
}

fn trip(card: &Card, c: &Constants, part: &Part, warps: f64, per_sm: f64, active: f64) -> IterationCost {
    let per_scheduler = warps * per_sm / SCHEDULERS;
    let product = part.product * (1.0 / per_scheduler).max(1.0);
    let alone = if part.scalar { c.starved_scalar } else { c.starved };
    let starved = if part.single { 2.0 * alone } else { alone } / per_scheduler.max(0.25);
    let unspread = if warps < SCHEDULERS { UNSPREAD } else { 1.0 };
    let products = per_sm * product.max(part.issued / SCHEDULERS) * (1.0 + starved) * unspread;
    let shared = per_sm * part.shared / SHARED * if part.scalar { c.ports } else { 1.0 };
    // Loads of the same elements in one iteration meet in the first-level cache, which is as wide as shared memory.
    let l1 = if part.near > 0.0 { per_sm * (part.loads + part.stores) / SHARED } else { 0.0 };
    let l2 = per_sm * (part.loads - part.near + part.stores) / (card.l2 / active).min(L2_PORT);
    let most = products.max(shared).max(l1).max(l2);
    let busy = most + c.overlap * (products + shared + l2 - most);
    let sync = if part.staged { c.sync_staged } else { c.sync };
    // If tiles pass through registers, all warps of a block wait for the same loads, and other blocks fill the gap.
    let shared_by = if part.staged { per_sm } else { 1.0 };
    let barriers = if part.synchronised { sync / shared_by } else { 0.0 };
    let (mut clocks, mut awaited) = ((busy + barriers).max(part.chain), 0.0);
    if part.loads > 0.0 {
        // A load lands after the latency plus the transfer time of everything that was requested.
        let landing = card.latency + l1.max(l2);
        let ready = match part.ahead {
            0.0 => clocks.max(landing) + (clocks.min(landing)) / per_sm,
            ahead => clocks.max(landing / ahead),
        };
        awaited = if part.ahead == 0.0 { ready - clocks } else { 0.0 };
        clocks = ready;
    }
    IterationCost { clocks, products, shared, l2, latency: clocks - busy - barriers, awaited, barriers }
}

/// The time that blocks of this cost take on a card.
pub(super) fn time(card: &Card, cost: &Cost, launch: &Launch) -> Time {
    let time = time_with(card, &FITTED, cost, launch);
    // The cache combines values while other units work.
    let combining = combined::seconds(card, cost, launch);
    let seconds = time.seconds.max(time.terms.launch + combining);
    Time { seconds, terms: Terms { combining, ..time.terms }, ..time }
}

/// [`time`] with other constants.
pub(super) fn time_with(card: &Card, c: &Constants, cost: &Cost, launch: &Launch) -> Time {
    if cost.atom.is_some_and(|a| a.row().asynchronous()) {
        return warpgroups::time(card, &warpgroups::FITTED, cost, launch);
    }
    if cost.fed {
        return producer_mma::time(card, cost, launch);
    }
    let sms = f64::from(card.sms);
    let clock = cost.atom.map_or(card.clock, |atom| card.clock_of(atom)) * 1e9;
    let warps = cost.block.threads as f64 / 32.0;
    let blocks: f64 = launch.grid.iter().product();
    let resident = cost.resident as f64;
    let full = (blocks / (sms * resident)).floor();
    let rest = blocks - full * sms * resident;
    let dram_share = card.dram * 1e9 / clock / sms;

    // A round of `per_sm` blocks on each multiprocessor: its loops, and the code around them.
    let round = |per_sm: f64, active: f64| {
        let (mut sum, mut ends) = (IterationCost::default(), 0.0);
        for part in &cost.parts {
            let t = trip(card, c, part, warps, per_sm, active);
            let looped = part.synchronised || part.product > 0.0;
            if looped {
                sum.clocks += part.trips * t.clocks;
                sum.products += part.trips * t.products;
                sum.shared += part.trips * t.shared;
                sum.l2 += part.trips * t.l2;
                sum.latency += part.trips * t.latency;
                sum.awaited += part.trips * t.awaited;
                sum.barriers += part.trips * t.barriers;
                ends += card.latency + part.loads / (card.l2 / active).min(L2_PORT);
            } else {
                let moved = per_sm * part.moved() / (dram_share * sms / active).min(L2_PORT);
                ends += part.trips * t.clocks.max(moved);
            }
        }
        (sum, ends)
    };
    let (steady, steady_ends) = round(resident, sms);
    let (last, last_ends) = if rest > 0.0 {
        let per_sm = (rest / sms).ceil();
        round(per_sm, rest.min(sms))
    } else {
        (IterationCost::default(), 0.0)
    };
    // Loops of other resident blocks hide the ends, except those of the last round.
    let hidden = if steady.clocks > 0.0 { steady_ends / resident } else { steady_ends };
    let ends = c.ends * if rest > 0.0 { last_ends + full * hidden } else { steady_ends + (full - 1.0) * hidden };
    let padded = launch.grid[0] * launch.grid[2] * (launch.grid[1] / launch.raster).ceil() * launch.raster;
    let idle = (padded - blocks).max(0.0) / (sms * resident) * IDLE_BLOCK;
    let clocks = full * steady.clocks + last.clocks + ends + idle;
    // The time of the last wave beyond its share, if its multiprocessors were as busy as in the others.
    let even = (blocks / (sms * resident)) * steady.clocks;
    let uneven = (full * steady.clocks + last.clocks - even).max(0.0);

    let bytes = traffic(card, cost, launch, blocks);
    let memory = bytes / (card.dram * 1e9);
    let working = clocks / clock;
    let seconds = c.launch + working.max(memory) + c.overlap * working.min(memory);
    let all = |x: f64, y: f64| (full * x + y) / clock;
    let terms = Terms {
        products: all(steady.products, last.products),
        shared: all(steady.shared, last.shared),
        l2: all(steady.l2, last.l2),
        memory,
        latency: all(steady.latency, last.latency),
        barriers: all(steady.barriers, last.barriers),
        ends: (ends + idle) / clock,
        uneven: uneven / clock,
        launch: c.launch,
        ..Terms::default()
    };
    // A grid of few blocks has not as many on each multiprocessor as there is room for.
    let waves = blocks / (sms * resident.min((blocks / sms).ceil().max(1.0)));
    let awaited = all(steady.awaited, last.awaited);
    Time { seconds, working, awaited, terms, tiles: blocks, blocks, waves, bytes, least_bytes: launch.bytes }
}

/// A cost for comparing groupings of blocks for one candidate.
pub(super) fn grouping(card: &Card, cost: &Cost, launch: &Launch) -> f64 {
    let [rows, cols, batch] = launch.grid;
    let idle = rows * batch * ((cols / launch.raster).ceil() * launch.raster - cols);
    let clocks = idle / (f64::from(card.sms) * cost.resident as f64) * IDLE_BLOCK;
    traffic(card, cost, launch, launch.grid.iter().product()) / (card.dram * 1e9) + clocks / (card.clock * 1e9)
}
