//! Time of wgmma kernels: a persistent grid, a producer warp that runs ahead, consumer warpgroups.
//!
//! The time of a step of the loop is the longest of these, which overlap: the products of all warpgroups at the rate that the
//! power of the card sustains; the sequence of one warpgroup (its products, the additions of promoted sums, the loads of an operand from registers, and the gap between the last of them and the first of the
//! next step, [`Constants::drain`]); the shared-memory reads of products; the transfer of tiles from the second-level cache; and their latency, divided by the slots. In front of the first step the
//! pipeline fills, once for all tiles of a block; after the last step of each tile the results are stored. The bandwidth of memory is a lower
//! bound of the whole.
//!
//! The constants are fitted to the kernels of `h200.csv` for sm_90a: f16 and bf16 with f32 sums, and tf32 (whose products take less power than the model says).

use super::launch::{L2_PORT, Launch, SHARED, Terms, Time, traffic};
use super::sharing::{self, HANDING, Handing, Shared, Work};
use super::supply::{SUPPLY, Supply};
use crate::choose::cards::Card;
use crate::choose::cost::{BUSY, Cost, Part};
use tilec_ir::target::{WARP, WARPGROUP};

/// What the model of warpgroups knows beside the figures of the card.
#[derive(Copy, Clone, Debug)]
pub(in crate::choose) struct Constants {
    /// Clocks from the last product of a step to the first of the next: waiting for the sums, releasing the slot, waiting for the next.
    pub(in crate::choose) drain: f64,
    /// How much longer the wgmma products take that is alone.
    pub(in crate::choose) alone: f64,
    /// Share of their rate that products of a multiprocessor reach.
    pub(in crate::choose) peak: f64,
    /// Share of their rate that products keep when all multiprocessors multiply all the time: the clock falls.
    pub(in crate::choose) sustained: f64,
    /// How much longer products take of a warpgroup that multiplies several blocks of rows one after the other.
    pub(in crate::choose) several: f64,
    /// Of the clocks that products read shared memory, the share that this takes from the power for products.
    pub(in crate::choose) power: f64,
    /// Of the clocks that tiles take from the second-level cache, the share that this takes from the power for products.
    pub(in crate::choose) moving: f64,
    /// Of the clocks that operands take from memory, the share that this takes from the power for products.
    pub(in crate::choose) fetching: f64,
    /// Share of the way from the second-level cache that products do not hide, where they take longer, or of products, where that does.
    pub(in crate::choose) overlap: f64,
    /// Clocks from the requesting a tile to its landing, beside the time that its bytes take.
    pub(in crate::choose) landing: f64,
    /// Clocks that storing a tile takes beside its bytes.
    pub(in crate::choose) storing: f64,
    /// Bytes of results a clock that threads exchange and store.
    pub(in crate::choose) written: f64,
    /// Clocks that a tile takes that TMA stores, out of a buffer, beside the filling of the buffer.
    pub(in crate::choose) staging: f64,
    /// Clocks of an element that threads store by itself: out of a buffer, where the lanes of a warp have neighbours in one row, and in the layout
    /// of sums, where they have some in each of eight (measured with rows of odd length).
    pub(in crate::choose) piece: f64,
    pub(in crate::choose) scattered: f64,
    /// What stores of whole tiles reach, all multiprocessors at the same moment, as a share of the memory's bandwidth: more than all of it,
    /// because the second-level cache takes a tile of each.
    pub(in crate::choose) stored: f64,
    /// Share of the memory's bandwidth that TMA copies reach.
    pub(in crate::choose) read: f64,
    /// Of what several multiprocessors take from memory at once, the share by which each doubling of their number is like more of it:
    /// it crosses between the halves of the second-level cache.
    pub(in crate::choose) crossing: f64,
    /// Of the time that tiles take from the second-level cache, the share that adds to the memory's.
    pub(in crate::choose) passing: f64,
    /// Seconds of a launch beside its blocks.
    pub(in crate::choose) launch: f64,
    /// Clocks of 128 bytes that a TMA load fills with zeros, because they are outside of the tensor.
    pub(in crate::choose) outside: f64,
    /// Of the time from requesting a tile to the end of its products, the share that a slot is taken by it.
    pub(in crate::choose) turn: f64,
    /// What a multiprocessor gets from the second-level cache and from memory.
    pub(in crate::choose) supply: Supply,
    /// What sharing tiles along the reduction costs.
    pub(in crate::choose) handing: Handing,
    /// Of the time that multiprocessors rest after their last tile, the share in which the others get no faster for it.
    pub(in crate::choose) resting: f64,
}

/// Found by `fit.rs` for the H200, and rounded; `several` and `turn` are those of an earlier search, since what tells them is measured there (tiles of two
/// blocks of rows, few slots).
pub(in crate::choose) static FITTED: Constants = Constants {
    drain: 190.4,
    alone: 1.303,
    peak: 0.738,
    sustained: 0.923,
    several: 1.036,
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

/// Registers for tiles from which threads have none left to store them: the assembler (ptxas 13.0) spills 320 bytes of 128x192, and at most 24 of
/// 128x176. Clocks that this costs a tile (4104x4104x4104 and 4096x6144x4096 on an H200).
const CROWDED: u64 = 180;
const SPILLED: f64 = 5000.0;
/// The same where blocks share tiles: 128x256 spills 12 bytes (4096x3584x3584).
const SHARED_CROWDED: u64 = 128;
/// Clocks of an instruction of an epilogue's arithmetic: two warps on a scheduler wait for their own results most of the time, as registers hold few elements at once
/// (`gemm_fused.tile` with `ACT=2` at 4096³ on an H200).
const COMPUTED: f64 = 2.0;
/// Of the way from one step to the next, the share that is left where its products are pending while the next are issued, as promoted ones are
/// (16x4096x4096 of e4m3 on an H200: 7.0 us with 16x64 tiles).
const PENDING: f64 = 0.7;
/// Clocks between the steps of warpgroups that compute an operand while products of the step before are pending.
const BEHIND: f64 = 60.0;
/// Clocks of a step of one of these, and the share of its own products that comes on top: it waits for a slot, loads from it, converts, and waits for its registers (W4A16 on an H200, one warpgroup: steps of
/// products of 160, 256 and 512 clocks take 532, 598 and 680 to 710).
const CHAIN: f64 = 540.0;
const CHAINED: f64 = 0.4;
/// Rows of the shortest tiles: of those nothing was seen of what is outside (1x3456x5120 takes as long as 10x3456x5120).
const SHORT: u64 = 16;
/// Bytes of a row of a TMA load.
const LINE: f64 = 128.0;
/// Threads of a warpgroup.
const THREADS: f64 = (WARP * WARPGROUP) as f64;

/// What is the same for all regions of a launch.
struct Setting<'a> {
    card: &'a Card,
    c: &'a Constants,
    cost: &'a Cost,
    /// Tiles of the output, and how many are computed at a time.
    tiles: f64,
    places: f64,
    /// Warpgroups that multiply.
    groups: f64,
    /// Multiprocessors that work at a time.
    active: f64,
    /// Bytes of memory a clock for each of them.
    dram: f64,
    /// Bytes a clock from the second-level cache to one.
    from_cache: f64,
    /// Of what is loaded, the share that comes from memory.
    from_memory: f64,
    /// Clocks that a tile costs whose threads have no registers left to store it.
    spilled: f64,
    /// Of the rows and columns of a tile, what is outside of the output.
    outside: f64,
}

/// Clocks that a launch of clusters takes more whose blocks share a tile, rounded from the eight kernels of [`sharing::PAIR`].
const PAIR_LAUNCH: f64 = 400.0;

/// Clocks of a tile of the output.
#[derive(Default)]
struct Tile {
    loops: f64,
    products: f64,
    shared: f64,
    l2: f64,
    latency: f64,
    /// Until the first slots are filled; storing, as far as that holds up the next tile, and after the last one.
    fill: f64,
    store: f64,
    behind: f64,
    /// What the power of the card allows.
    all: f64,
    /// Bytes from memory, and clocks for what is outside of tensors: nothing else is requested meanwhile.
    loads: f64,
    zeros: f64,
}

impl Tile {
    /// Adds a loop of products.
    fn multiply(&mut self, of: &Setting<'_>, part: &Part) {
        let &Setting { card, c, cost, groups, .. } = of;
        let slots = if part.ahead > 0.0 { part.ahead + BUSY } else { 1.0 };
        // Nothing runs between the wgmma products that is alone.
        let several = if part.blocks > 1.0 { c.several } else { 1.0 };
        let product = part.product * several;
        let own = product / groups * if groups > 1.0 { 1.0 } else { c.alone };
        // With products pending after it there is no way from one step to the next.
        let drain = if part.added > 0.0 { PENDING * c.drain } else { c.drain };
        let alone = if cost.ping_pong { product } else { own + drain };
        // Additions of one warpgroup take from the rate of the others' products, too.
        let multiply = match part.behind > 0.0 {
            true => (product + groups * part.behind + BEHIND).max(CHAIN + CHAINED * product / groups),
            false => (product / c.peak + groups * part.added).max(alone + part.between),
        };
        let feed = passed(part, cost) / of.from_cache;
        let zeros = c.outside * of.outside * per_row(part, cost) / LINE;
        let loaded = part.loads * of.from_memory;
        let landing = c.landing + feed.max(loaded / of.dram.min(c.supply.memory_rate(card, of.active)));
        self.loads += part.trips * loaded;
        self.zeros += part.trips * zeros;
        let read = part.shared / SHARED;
        // A slot is requested, lands, and is multiplied by all warpgroups before it is free: with few of them none is ready in time.
        let turn = c.turn * (landing + multiply + c.drain) / (part.ahead + 1.0);
        let arrive = feed + zeros;
        let step = (multiply.max(arrive) + c.overlap * multiply.min(arrive)).max(landing / slots).max(turn).max(read);
        self.all +=
            part.trips * (product / c.sustained + c.power * read + c.moving * feed + c.fetching * loaded / of.dram);
        self.loops += part.trips * step;
        self.products += part.trips * multiply;
        self.shared += part.trips * read;
        self.l2 += part.trips * feed;
        self.latency += part.trips * (step - multiply.max(feed)).max(0.0);
        self.fill = self.fill.max(landing);
    }

    /// Adds what stores the results.
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
            // TMA stores a tile while the next one is computed, and the last one after all.
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
    let together = cost.cluster[0] * cost.cluster[1];
    let places = (card.clusters(together) * together).max(1) as f64 * cost.resident as f64;
    // Clusters are whole, whether there are tiles for all of their blocks or not.
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
    // As `sharing::shared` has it.
    if shared.is_some_and(|s| s.most <= sharing::MOST) {
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
    // What the power of the card allows: where multiprocessors rest, the clock of the others is higher.
    let Tile { loops, store, behind, fill, .. } = tile;
    let mut ends = rounds.ceil() * store + behind + fill + shared.map_or(0.0, |s| s.lost);
    if cost.ping_pong {
        // Two tiles take two main loops, or one and its store if that is longer; the last one is stored after all.
        ends = rounds.ceil() * ((store - loops) / 2.0).max(0.0) + store + behind + fill;
    }
    let busy = tiles / places;
    let allowed = (busy + c.resting * (rounds - busy).max(0.0)) * tile.all + ends;
    // Each block loads at the rate that it gets from memory, the blocks of the last round at that of so many.
    let supplied = match shared {
        Some(s) => s.rounds * tile.loads / supply.memory_rate(card, s.busy),
        None => supply.rounds(card, tile.loads, taken, places),
    };
    let supplied = supplied + rounds * tile.zeros;
    let working = (rounds * loops + ends).max(supplied + ends).max(allowed) / clock;
    let memory = (traffic + c.crossing * crossing(cost, launch)) / (c.read * card.dram * 1e9);
    let memory = memory + c.passing * rounds * tile.l2 / clock;
    // One warpgroup has half as many accesses on their way when sums are passed on (64x4096x14336 of e4m3 on an H200: 22.9 us with one that has
    // 64x128, 19.9 with two).
    let alone = shared.filter(|s| groups < 2.0 && !s.paired).and(cost.tile);
    let behind_all = alone.map_or(0.0, |(rows, cols)| c.handing.clocks((rows * cols) as f64)) / clock;
    let paired = if shared.is_some_and(|s| s.paired) { PAIR_LAUNCH / clock } else { 0.0 };
    let seconds = c.launch + working.max(memory) + behind_all + paired;
    let terms = Terms {
        products: (rounds * tile.products).max(tiles / places * tile.all) / clock,
        shared: rounds * tile.shared / clock,
        l2: rounds * tile.l2 / clock,
        memory,
        latency: rounds * tile.latency / clock,
        barriers: 0.0,
        ends: ends / clock,
        uneven: (rounds - tiles / places).max(0.0) * loops / clock,
        ..Terms::default()
    };
    let blocks = shared.map_or(tiles, |s| s.blocks);
    Time { seconds, terms, tiles, blocks, waves: blocks / places, bytes: traffic, least_bytes: launch.bytes }
}

/// Where blocks share tiles along the reduction: those of a cluster share its tiles with those of others, as one. `taken`: tiles, in whole clusters.
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
        bytes: part.loads,
        row: part.sides.map_or(part.loads / (rows + cols), |_| part.row),
        computed: part.computes,
        operands: batch * (down * own + across * other) * part.trips * part.taken() / (own + other),
        distinct: launch.distinct,
        blocks: each,
        readers: down.min(across),
        room: cost.room as f64,
    };
    if let Some(n) = cost.split_k.filter(|&n| n > 1) {
        return Some(sharing::split(card, &work, n));
    }
    let shared = sharing::shared(card, &work, places / each, &c.handing);
    Some(Shared { busy: shared.busy * each, blocks: shared.blocks * each, ..shared })
        .filter(|s| cost.stream_k.unwrap_or(s.gains))
}

/// Bytes of an iteration that a row of the tile loads.
fn per_row(part: &Part, cost: &Cost) -> f64 {
    cost.tile.map_or(0.0, |(rows, cols)| part.loads / (rows + cols) as f64)
}

/// Rows and columns of a tile that are outside of the output, as far as they hold up the launch: those of the last tiles along an axis, in full where
/// these are half of all or more. Also in full where the slowest block ends the launch (`at_once`): all tiles are computed at once, in more steps than there
/// are slots, and rows do not lie across lines. (88x3584x2048 of bf16 on an H200: 10.0 us in tiles of 64x64, where 128x3584x2048 takes 7.5; 64x4008x3072 in
/// tiles of 64x32 takes as long as 64x4032x3072.)
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

/// Bytes of an iteration that pass the second-level cache: blocks of a cluster share an operand. Where rows lie across lines, `loads` says so already.
fn passed(part: &Part, cost: &Cost) -> f64 {
    let [down, right] = cost.cluster.map(|c| c as f64);
    match cost.tile.filter(|_| !part.across) {
        Some(tile) => {
            let [own, other] = part.weights(tile);
            part.loads * (own / right + other / down) / (own + other)
        }
        None => part.loads,
    }
}

/// Bytes of the operands, times the doublings from one to the tiles that take them; blocks of a cluster take them as one.
fn crossing(cost: &Cost, launch: &Launch) -> f64 {
    let products = || cost.parts.iter().filter(|p| p.product > 0.0);
    let (Some(tile), Some(part)) = (cost.tile, products().next()) else { return 0.0 };
    let [own, other] = part.weights(tile);
    let loads: f64 = products().map(|p| p.trips * p.taken()).sum();
    let ([down, across, batch], [together, beside]) = (launch.grid, cost.cluster.map(|c| c as f64));
    let of = |side: f64, tiles: f64, readers: f64| loads * side / (own + other) * tiles * readers.max(1.0).log2();
    batch * (of(own, down, across / beside) + of(other, across, down / together))
}
