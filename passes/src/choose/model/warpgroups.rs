//! Time of wgmma kernels: a persistent grid, a producer warp that runs ahead, consumer warpgroups.
//!
//! The time of a step of the loop is the longest of these, which overlap:
//!
//! * the products of all warpgroups, at the rate that the power of the card sustains;
//! * the sequence of one warpgroup: its products, the additions of promoted sums, the loads of an operand from registers, and the
//!   gap between the last of them and the first of the next step ([`Constants::drain`]);
//! * the shared-memory reads of products;
//! * the transfer of tiles from the second-level cache;
//! * their latency, divided by the number of slots.
//!
//! In front of the first step the pipeline fills, once for all tiles of a block. After the last step of each tile the
//! results are stored. The bandwidth of memory is a lower bound of the whole.
//!
//! The constants are fitted to the kernels of `h200.csv` for sm_90a: f16 and bf16 with f32 sums, and tf32 (whose
//! products draw less power than the model says).

use super::bandwidth::{SUPPLY, Supply};
use super::launch::{L2_PORT, Launch, SHARED, Terms, Time, traffic};
use super::stream_k::{self, ExchangeCost, HANDING, Shared, Work};
use crate::choose::cards::Card;
use crate::choose::cost::{BUSY, Cost, Part};
use tilec_ir::target::{WARP, WARPGROUP};

/// Constants of the model of warpgroups in addition to the figures of the card.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Constants {
    /// Clocks from the last product of a step to the first of the next: waiting for the sums, releasing the slot,
    /// waiting for the next slot.
    pub(in crate::choose) drain: f64,
    /// Slowdown of wgmma products of a single warpgroup.
    pub(in crate::choose) alone: f64,
    /// The share of their rate that products reach on one multiprocessor.
    pub(in crate::choose) peak: f64,
    /// The share of their rate that products keep when all multiprocessors multiply continuously, because the clock
    /// drops.
    pub(in crate::choose) sustained: f64,
    /// Slowdown of products of a warpgroup that multiplies several blocks of rows one after the other.
    pub(in crate::choose) rows_in_sequence: f64,
    /// The power cost of shared-memory reads of products: product clocks for each clock of reads.
    pub(in crate::choose) power: f64,
    /// The power cost of transfers from the second-level cache: product clocks for each clock of transfer.
    pub(in crate::choose) moving: f64,
    /// The power cost of transfers from memory: product clocks for each clock of transfer.
    pub(in crate::choose) fetching: f64,
    /// The share of the shorter of products and transfers from the second-level cache that the longer does not hide.
    pub(in crate::choose) overlap: f64,
    /// Clocks from the request of a tile until it has landed, without the transfer time of its bytes.
    pub(in crate::choose) landing: f64,
    /// Clocks for storing a tile, without the time of its bytes.
    pub(in crate::choose) storing: f64,
    /// Bytes of results per clock that threads exchange and store.
    pub(in crate::choose) written: f64,
    /// Clocks for a tile that TMA stores from a buffer, without filling the buffer.
    pub(in crate::choose) staging: f64,
    /// Clocks for an element that threads store separately: from a buffer, where the lanes of a warp have neighbours in
    /// one row; and in the layout of the accumulator, where they have neighbours in eight rows (measured with rows of
    /// odd length).
    pub(in crate::choose) piece: f64,
    pub(in crate::choose) scattered: f64,
    /// The rate of storing whole tiles from all multiprocessors at the same time, relative to the memory's bandwidth:
    /// above 1, because the second-level cache absorbs a tile of each.
    pub(in crate::choose) stored: f64,
    /// The share of the memory's bandwidth that TMA loads reach.
    pub(in crate::choose) read: f64,
    /// The share of additional transfers for each doubling of the multiprocessors that load the same data from memory.
    /// The data crosses between the halves of the second-level cache.
    pub(in crate::choose) crossing: f64,
    /// The share of the transfer time from the second-level cache that adds to the memory's.
    pub(in crate::choose) passing: f64,
    /// Seconds of a launch without its blocks.
    pub(in crate::choose) launch: f64,
    /// Clocks for 128 bytes that a TMA load fills with zeros, because they are outside of the tensor.
    pub(in crate::choose) outside: f64,
    /// The share of the time from the request of a tile to the end of its products in which its slot is occupied.
    pub(in crate::choose) turn: f64,
    /// Bandwidth of a multiprocessor from the second-level cache and from memory.
    pub(in crate::choose) supply: Supply,
    /// The cost of sharing tiles along the reduction.
    pub(in crate::choose) handing: ExchangeCost,
    /// The share of the time in which multiprocessors idle after their last tile that does not make the others faster.
    pub(in crate::choose) resting: f64,
}

/// Found by `fit.rs` for the H200, and rounded. `several` and `turn` are from an earlier search with measurements that
/// determine them (tiles of two blocks of rows, few slots).
pub(in crate::choose) static FITTED: Constants = Constants {
    drain: 190.4,
    alone: 1.303,
    peak: 0.738,
    sustained: 0.923,
    rows_in_sequence: 1.036,
    power: 0.052,
    moving: 0.143,
    fetching: 0.362,
    overlap: 0.003,
    landing: 500.0,
    storing: 0.394,
    written: 80.0,
    staging: 446.3,
    piece: 0.080,
    scattered: 0.500,
    stored: 2.000,
    read: 0.933,
    crossing: 0.440,
    launch: 1.252e-6,
    passing: 0.150,
    outside: 1.331,
    turn: 0.929,
    resting: 0.556,
    supply: SUPPLY,
    handing: HANDING,
};

/// Registers of tiles from which on threads have none left to store them: the assembler (ptxas 13.0) spills 320 bytes
/// for 128x192, and at most 24 bytes for 128x176. Clocks that this costs for a tile (4104x4104x4104 and 4096x6144x4096
/// on an H200).
const CROWDED: u64 = 180;
const SPILLED: f64 = 5000.0;
/// The same if blocks share tiles: 128x256 spills 12 bytes (4096x3584x3584).
const SHARED_CROWDED: u64 = 128;
/// Clocks for an instruction of an epilogue's arithmetic: two warps on a scheduler mostly wait for their own results,
/// because registers hold few elements at once (`gemm_fused.tile` with `ACT=2` at 4096³ on an H200).
const COMPUTED: f64 = 2.0;
/// The remaining share of the gap between steps if products are pending while the next are issued, as with promotion
/// (16x4096x4096 of e4m3 on an H200: 7.0 us with 16x64 tiles).
const PENDING: f64 = 0.7;
/// Clocks between the steps of warpgroups that compute an operand while products of the previous step are pending.
const BEHIND: f64 = 60.0;
/// Clocks of a step of such a warpgroup, and the share of its own products that adds to them: it waits for a slot,
/// loads from it, converts, and waits for its registers (W4A16 on an H200, one warpgroup: steps with products of 160,
/// 256 and 512 clocks take 532, 598 and 680 to 710).
const CHAIN: f64 = 540.0;
const CHAINED: f64 = 0.4;
/// Rows of the shortest tiles, where parts outside of the output cost nothing measurable (1x3456x5120 takes as long as
/// 10x3456x5120).
const SHORT: u64 = 16;
/// Bytes of a row of a TMA load.
const LINE: f64 = 128.0;
/// Threads of a warpgroup.
const THREADS: f64 = (WARP * WARPGROUP) as f64;

/// Properties that all regions of a launch share.
struct Setting<'a> {
    card: &'a Card,
    c: &'a Constants,
    cost: &'a Cost,
    /// The number of tiles of the output, and the number computed at a time.
    tiles: f64,
    places: f64,
    /// Number of consumer warpgroups.
    groups: f64,
    /// Number of multiprocessors that work at a time.
    active: f64,
    /// Bytes per clock from memory for each of them.
    dram: f64,
    /// Bytes per clock from the second-level cache for each of them.
    from_cache: f64,
    /// The share of loads that comes from memory.
    from_memory: f64,
    /// Clocks of spills for a tile whose threads have no registers left to store it.
    spilled: f64,
    /// The share of a tile's rows and columns that is outside of the output.
    outside: f64,
}

/// Additional clocks of a launch of clusters whose blocks share a tile, rounded from the eight kernels of
/// [`stream_k::PAIR`].
const PAIR_LAUNCH: f64 = 400.0;

/// Clocks of a tile of the output.
#[derive(Default)]
struct Tile {
    loops: f64,
    products: f64,
    shared: f64,
    l2: f64,
    /// The time of short rows beyond that of their bytes.
    rows: f64,
    latency: f64,
    /// The part of it that is for loads that do not run ahead.
    awaited: f64,
    /// Time until the first slots are filled; the part of storing that delays the next tile; and storing after the last
    /// tile.
    fill: f64,
    store: f64,
    behind: f64,
    /// Clocks by the power limit of the card.
    all: f64,
    /// Bytes of whole lines that take as long as what is requested from memory, and clocks for boxes outside of tensors, during which nothing else is
    /// requested.
    requested: f64,
    zeros: f64,
}

impl Tile {
    /// Adds a loop of products.
    fn multiply(&mut self, of: &Setting<'_>, part: &Part) {
        let &Setting { card, c, cost, groups, .. } = of;
        let slots = if part.ahead > 0.0 { part.ahead + BUSY } else { 1.0 };
        // Nothing overlaps with the gaps between products of a single warpgroup.
        let slowdown = if part.blocks > 1.0 { c.rows_in_sequence } else { 1.0 };
        let product = part.product * slowdown;
        let own = product / groups * if groups > 1.0 { 1.0 } else { c.alone };
        // With pending products, there is no full gap between steps.
        let drain = if part.added > 0.0 { PENDING * c.drain } else { c.drain };
        let alone = if cost.ping_pong { product } else { own + drain };
        // Additions of one warpgroup slow down the products of the others, too.
        let multiply = match part.behind > 0.0 {
            true => (product + groups * part.behind + BEHIND).max(CHAIN + CHAINED * product / groups),
            false => (product / c.peak + groups * part.added).max(alone + part.between),
        };
        let (feed, beyond) = passed(part, cost);
        let (feed, beyond) = (feed / of.from_cache, beyond / of.from_cache);
        let zeros = c.outside * of.outside * per_row(part, cost) / LINE;
        let loaded = part.loads * of.from_memory;
        // The limit of a multiprocessor is a number of outstanding requests.
        let requested = part.full_rows * of.from_memory;
        let landing = c.landing + feed.max(loaded / of.dram).max(requested / c.supply.memory_rate(card, of.active));
        self.requested += part.trips * requested;
        self.zeros += part.trips * zeros;
        let read = part.shared / SHARED;
        // A slot is requested, lands, and is multiplied by all warpgroups before it is free: with few slots, none is
        // ready in time.
        let turn = c.turn * (landing + multiply + c.drain) / (part.ahead + 1.0);
        let arrive = feed + zeros;
        let step = (multiply.max(arrive) + c.overlap * multiply.min(arrive)).max(landing / slots).max(turn).max(read);
        self.all +=
            part.trips * (product / c.sustained + c.power * read + c.moving * feed + c.fetching * loaded / of.dram);
        self.loops += part.trips * step;
        self.products += part.trips * multiply;
        self.shared += part.trips * read;
        self.l2 += part.trips * (feed - beyond);
        self.rows += part.trips * beyond;
        let latency = part.trips * (step - multiply.max(feed)).max(0.0);
        self.latency += latency;
        self.awaited += if part.ahead > 0.0 { 0.0 } else { latency };
        self.fill = self.fill.max(landing);
    }

    /// Adds the time of storing the results.
    fn store(&mut self, of: &Setting<'_>, part: &Part) {
        let &Setting { c, cost, spilled, .. } = of;
        let bytes = part.loads + part.stores;
        let memory = bytes / (c.stored * of.dram).min(L2_PORT);
        self.store += part.trips * part.computed * COMPUTED;
        if part.pieces > 0.0 {
            let (first, each) = if cost.offloaded { (c.staging, c.piece) } else { (c.storing, c.scattered) };
            self.store += if cost.offloaded { 0.0 } else { spilled };
            self.store += part.trips * (first + each * part.pieces).max(memory);
        } else if cost.offloaded && of.tiles > of.places {
            // TMA stores a tile while the next one is computed; the last tile is stored at the end.
            self.store += part.trips * if bytes > 0.0 { c.staging + part.stores / SHARED } else { 0.0 };
            self.behind += part.trips * memory;
        } else if bytes > 0.0 {
            self.store += part.trips * (memory + c.storing + bytes / c.written) + spilled;
        }
    }
}

pub(in crate::choose) fn time(card: &Card, c: &Constants, cost: &Cost, launch: &Launch) -> Time {
    let clock = card.clock * 1e9;
    let tiles: f64 = launch.grid.iter().product();
    let [down, right] = cost.cluster.map(|c| c as f64);
    let cluster_blocks = cost.cluster[0] * cost.cluster[1];
    let places = (card.clusters(cluster_blocks) * cluster_blocks).max(1) as f64 * cost.resident as f64;
    // Clusters are complete, even if some of their blocks have no tile.
    let taken = (launch.grid[0] / down).ceil() * down * (launch.grid[1] / right).ceil() * right * launch.grid[2];
    let groups = (cost.block.threads as f64 / THREADS).max(1.0);
    let shared = shared(card, c, cost, launch, (taken, places));
    let active = shared.map_or(tiles.min(places), |s| s.busy);
    let rounds = shared.map_or((taken / places).ceil(), |s| s.rounds);
    let dram = card.dram * 1e9 / clock / active;
    let supply = &c.supply;
    let apart = shared.is_some_and(|s| s.apart);
    let from_cache = supply.cache_rate(card, active, apart, rounds);
    let asked: f64 = cost.parts.iter().map(|p| p.trips * p.loads).sum();
    let mut traffic = traffic(card, cost, launch, tiles);
    // The same rule as in `stream_k::shared`.
    if shared.is_some_and(|s| s.most <= stream_k::MOST) {
        traffic /= launch.distinct;
    }
    if apart {
        let readers = launch.grid[0].min(launch.grid[1]);
        traffic = traffic.max(supply.read_again(card, launch.bytes, traffic, readers).min(tiles * asked));
    }
    let from_memory = (traffic / (tiles * asked).max(1.0)).min(1.0);
    let crowded = if shared.is_some() { SHARED_CROWDED } else { CROWDED };
    let spilled = if cost.block.tiles >= crowded { SPILLED } else { 0.0 };
    let steps = cost.parts.iter().any(|p| p.product > 0.0 && !p.across && p.trips > p.ahead + 1.0);
    let outside = outside(cost, launch, shared.is_none() && tiles <= places && steps);
    let of = Setting { card, c, cost, tiles, places, groups, active, dram, from_cache, from_memory, spilled, outside };
    let mut tile = Tile::default();
    for part in &cost.parts {
        if part.product > 0.0 { tile.multiply(&of, part) } else { tile.store(&of, part) }
    }
    // The power limit: if some multiprocessors idle, the others run at a higher clock.
    let Tile { loops, store, behind, fill, .. } = tile;
    let mut ends = rounds.ceil() * store + behind + fill + shared.map_or(0.0, |s| s.lost);
    if cost.ping_pong {
        // Two tiles take two main loops, or one loop and its store if that is longer; the last tile is stored at the
        // end.
        ends = rounds.ceil() * ((store - loops) / 2.0).max(0.0) + store + behind + fill;
    }
    let busy = tiles / places;
    let allowed = (busy + c.resting * (rounds - busy).max(0.0)) * tile.all + ends;
    // Each block loads at its rate from memory, with fewer active blocks in the last round.
    let supplied = match shared {
        Some(s) => s.rounds * tile.requested / supply.memory_rate(card, s.busy),
        None => supply.rounds(card, tile.requested, taken, places),
    };
    let supplied = supplied + rounds * tile.zeros;
    let working = (rounds * loops + ends).max(supplied + ends).max(allowed) / clock;
    let memory = (traffic + c.crossing * crossing(cost, launch)) / (c.read * card.dram * 1e9);
    let memory = memory + c.passing * rounds * (tile.l2 + tile.rows) / clock;
    // A single warpgroup has half as many outstanding accesses when partial sums are exchanged (64x4096x14336 of e4m3
    // on an H200: 22.9 us with one warpgroup for 64x128, 19.9 us with two).
    let alone = shared.filter(|s| groups < 2.0 && !s.paired).and(cost.tile);
    let behind_all = alone.map_or(0.0, |(rows, cols)| c.handing.clocks((rows * cols) as f64)) / clock;
    let paired = if shared.is_some_and(|s| s.paired) { PAIR_LAUNCH / clock } else { 0.0 };
    let seconds = c.launch + working.max(memory) + behind_all + paired;
    let terms = Terms {
        products: (rounds * tile.products).max(tiles / places * tile.all) / clock,
        shared: rounds * tile.shared / clock,
        l2: rounds * tile.l2 / clock,
        rows: rounds * tile.rows / clock,
        memory,
        latency: rounds * tile.latency / clock,
        barriers: 0.0,
        ends: ends / clock + behind_all + paired,
        uneven: (rounds - tiles / places).max(0.0) * loops / clock,
        launch: c.launch,
        ..Terms::default()
    };
    let blocks = shared.map_or(tiles, |s| s.blocks);
    let awaited = rounds * tile.awaited / clock;
    Time {
        seconds,
        working: seconds - c.launch - (memory - working).max(0.0),
        awaited,
        terms,
        tiles,
        blocks,
        waves: blocks / places,
        bytes: traffic,
        least_bytes: launch.bytes,
    }
}

/// Sharing of tiles along the reduction: blocks of a cluster act as one, and share its tiles with other clusters.
/// `taken`: tiles, in whole clusters.
fn shared(card: &Card, c: &Constants, cost: &Cost, launch: &Launch, (taken, places): (f64, f64)) -> Option<Shared> {
    let (rows, cols) = cost.tile.map(|(rows, cols)| (rows as f64, cols as f64))?;
    let part = cost.parts.iter().find(|p| p.product > 0.0)?;
    let [down, across, batch] = launch.grid;
    let each = cost.cluster.iter().product::<i64>() as f64;
    let [own, other] = part.weights(cost.tile?);
    let work = Work {
        tiles: taken / each,
        steps: part.trips,
        shape: (rows, cols),
        bytes: part.full_rows,
        row: part.sides.map_or(part.loads / (rows + cols), |_| part.row),
        computed: part.computes,
        operands: batch * (down * own + across * other) * part.trips * part.taken() / (own + other),
        distinct: launch.distinct,
        blocks: each,
        readers: down.min(across),
        room: cost.room as f64,
    };
    if let Some(n) = cost.split_k.filter(|&n| n > 1) {
        return Some(stream_k::split(card, &work, n));
    }
    let shared = stream_k::shared(card, &work, places / each, &c.handing);
    Some(Shared { busy: shared.busy * each, blocks: shared.blocks * each, ..shared })
        .filter(|s| cost.stream_k.unwrap_or(s.gains))
}

/// Bytes of whole lines that take as long as what an iteration loads for a row of the tile.
fn per_row(part: &Part, cost: &Cost) -> f64 {
    cost.tile.map_or(0.0, |(rows, cols)| part.full_rows / (rows + cols) as f64)
}

/// Rows and columns of a tile outside of the output, as far as they delay the launch: those of the last tiles along an
/// axis, in full if they are at least half of all tiles. Also in full if the slowest block determines the time
/// (`at_once`): all tiles are computed at once, in more steps than slots, and rows do not cross lines. (88x3584x2048 of
/// bf16 on an H200: 10.0 us in tiles of 64x64, where 128x3584x2048 takes 7.5 us; 64x4008x3072 in tiles of 64x32 takes
/// as long as 64x4032x3072.)
fn outside(cost: &Cost, launch: &Launch, at_once: bool) -> f64 {
    let Some((rows, cols)) = cost.tile else { return 0.0 };
    let of = |axis: usize, tile: u64| {
        let tiles = launch.grid[axis].max(1.0);
        let beyond = tiles * tile as f64 - launch.whole[axis];
        let share = if at_once { 1.0 } else { (2.0 / tiles).min(1.0) };
        if launch.whole[axis] > 0.0 && tile > SHORT { beyond.max(0.0) * share } else { 0.0 }
    };
    of(0, rows) + of(1, cols)
}

/// Bytes of whole lines that pass the second-level cache in the time of an iteration's loads, and those of them beyond
/// what it loads: blocks of a cluster share an operand. If rows cross lines, `full_rows` includes that already.
fn passed(part: &Part, cost: &Cost) -> (f64, f64) {
    let [down, right] = cost.cluster.map(|c| c as f64);
    let share = cost.tile.map_or(1.0, |tile| {
        let [own, other] = part.weights(tile);
        (own / right + other / down) / (own + other)
    });
    let passed = part.full_rows * if part.across { 1.0 } else { share };
    (passed, (passed - part.loads * share).max(0.0))
}

/// Bytes of the operands, times the base-two logarithm of the number of tiles that load them; blocks of a cluster count
/// as one.
fn crossing(cost: &Cost, launch: &Launch) -> f64 {
    let products = || cost.parts.iter().filter(|p| p.product > 0.0);
    let (Some(tile), Some(part)) = (cost.tile, products().next()) else { return 0.0 };
    let [own, other] = part.weights(tile);
    let loads: f64 = products().map(|p| p.trips * p.taken()).sum();
    let ([down, across, batch], [cluster_rows, cluster_columns]) = (launch.grid, cost.cluster.map(|c| c as f64));
    let of = |side: f64, tiles: f64, readers: f64| loads * side / (own + other) * tiles * readers.max(1.0).log2();
    batch * (of(own, down, across / cluster_columns) + of(other, across, down / cluster_rows))
}
