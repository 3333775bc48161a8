//! What one block costs: a candidate measured against the rules of the passes and counted in units of the machine.

use super::cards::Card;
use super::work::{Env, Move, Product, Region, Work};
use crate::analysis::width::MAX_ACCESS_BYTES;
use crate::assign_layouts::reduced_axes;
use crate::roles::BARRIER_BYTES;
use crate::schedule::occupancy;
use crate::select_mma::sliced::least_depth;
use crate::select_mma::warpgroup::{self, Way};
use crate::select_mma::{accumulator_registers, best_atom, divides, slice_depth, transposes};
use crate::stage_stores::narrow;
use crate::walk::cluster::{LINE, choose as choose_cluster};
use tilec_ir::atoms::Atom;
use tilec_ir::entities::Expr;
use tilec_ir::layout::hardware::{Exchange, rows};
use tilec_ir::roles::PRODUCER_WARPS;
use tilec_ir::target::SHIFTED_ELEMENT_BYTES;
use tilec_ir::target::{ASYNCHRONOUS_COPY_BYTES, MAX_THREADS, REGISTERS_PER_THREAD, Target, WARP, WARPGROUP};
use tilec_ir::types::Elem;

/// Threads of a block without a product, unless the schedule has them.
const PLAIN_THREADS: u64 = 128;
/// Most elements of a tile.
const MAX_ELEMENTS: u64 = 1 << 20;
/// Most stages that a pipeline has.
const MAX_STAGES: u64 = 16;
/// Registers that addresses and counters take at least.
const ADDRESSES: u64 = 24;
/// The same where tiles pass through registers in pieces, or are transposed there (with 40 a few programs spill).
const ADDRESSES_STAGED: u64 = 80;
/// The same where several tiles wait in registers to be shifted into place.
const ADDRESSES_CARRIED: u64 = 56;
/// Registers that the assembler takes beside those of the tiles: 32 to 46, in a dozen kernels.
const BESIDE: u64 = 32;
/// The same where tiles pass through registers.
const BESIDE_STAGED: u64 = 40;
/// The same where groups of warps share the reduction: 46 to 56.
const BESIDE_SLICED: u64 = 50;
/// Registers for tiles of three warpgroups that are chosen: of 176 columns with f32 sums. The assembler (ptxas 13.0) spills 8 to 24 bytes of 192x192.
const THREE: u64 = 88;
/// Instructions that shift an access of two words into place, and load the second.
const SHIFTING: f64 = 16.0;
/// Warp instructions of an access to global memory with its address, and with the store to shared memory behind it (counted in machine code).
pub(super) const DIRECT_ACCESS: f64 = 1.5;
pub(super) const STAGED_ACCESS: f64 = 2.5;
/// Warp instructions of a trip that are neither products nor memory accesses.
const BOOKKEEPING: f64 = 12.0;

/// A region of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// How often it runs.
    pub(super) trips: f64,
    /// Clocks of the product units, were they never idle.
    pub(super) product: f64,
    /// Clocks that a warpgroup takes between its products: to add their sums to its accumulator, to load an operand.
    pub(super) between: f64,
    /// Of these, those of the additions.
    pub(super) added: f64,
    /// Blocks of 64 rows that a warpgroup multiplies one after the other.
    pub(super) blocks: f64,
    /// Instructions that warps issue.
    pub(super) issued: f64,
    /// Bytes of shared memory that its accesses move, in the units in which it moves them.
    pub(super) shared: f64,
    /// Bytes read from global memory, and written.
    pub(super) loads: f64,
    pub(super) stores: f64,
    /// Elements that threads store, because the accelerator cannot.
    pub(super) pieces: f64,
    /// Clocks of the longest chain of dependent instructions.
    pub(super) chain: f64,
    /// Trips that a load may take without being waited for; 0: it is waited for at once.
    pub(super) ahead: f64,
    /// Tiles pass through registers on their way to shared memory.
    pub(super) staged: bool,
    /// Tiles of unaligned rows wait in registers for a trip, and are shifted into place.
    pub(super) carried: bool,
    /// Fragments are loaded when they are needed, not one slice ahead.
    pub(super) single: bool,
    /// Its products are scalar.
    pub(super) scalar: bool,
    /// It is a loop that warps synchronise in.
    pub(super) synchronised: bool,
    /// Rows of what it loads lie across lines.
    pub(super) across: bool,
}

/// A block.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) block: occupancy::Block,
    /// Bytes of shared memory that do not depend on the stages, and those of a stage.
    fixed: u64,
    slot: u64,
    /// Bytes in which groups of warps exchange their sums.
    exchanged: u64,
    /// Bytes of a buffer out of which results can be stored, and whether there is room for it.
    result: u64,
    pub(super) offloaded: bool,
    /// As in [`Setting`].
    pub(super) stream_k: Option<bool>,
    /// Two warpgroups take tiles in turns.
    pub(super) ping_pong: bool,
    /// Blocks of a cluster along rows and columns of tiles.
    pub(super) cluster: [i64; 2],
    /// Blocks that are resident on a multiprocessor.
    pub(super) resident: u64,
    pub(super) parts: Vec<Part>,
    /// Rows and columns of the first product.
    pub(super) tile: Option<(u64, u64)>,
    /// The instruction of the first product.
    pub(super) atom: Option<Atom>,
    /// Multiply-adds.
    pub(super) macs: f64,
    /// What is smaller for the better of two that are predicted to be as fast.
    pub(super) rank: u64,
}

impl Cost {
    /// Of a kernel whose parts are known: nothing of it depends on the number of stages any more.
    pub(super) fn of_parts(
        block: occupancy::Block,
        resident: u64,
        parts: Vec<Part>,
        (tile, atom): (Option<(u64, u64)>, Option<Atom>),
        macs: f64,
    ) -> Cost {
        Cost {
            fixed: block.shared,
            block,
            slot: 0,
            exchanged: 0,
            result: 0,
            offloaded: false,
            stream_k: Some(false),
            ping_pong: false,
            cluster: [1, 1],
            resident,
            parts,
            tile,
            atom,
            macs,
            rank: tile.map_or(0, |(rows, cols)| rows * cols),
        }
    }
}

/// Why a candidate is not legal.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Illegal {
    /// An extent is no power of two, or not known.
    Extent,
    /// A precondition does not hold.
    Precondition,
    /// The warp tile does not divide the block's.
    WarpTile,
    /// Too many threads, too few, or others than the schedule says.
    Threads,
    /// No instruction takes the types and the warp tile.
    Atom,
    /// A tile of the reduction is deeper than sums may get before they are added to the accumulator.
    Promotion,
    /// Too many registers.
    Registers,
    /// Too many stages or none.
    Stages,
    /// Too much shared memory.
    SharedMemory,
}

impl Illegal {
    /// In words.
    pub(super) fn why(self) -> &'static str {
        match self {
            Illegal::Extent => {
                "an extent of a tile is no power of two (columns of products of warpgroups: no multiple of 16, or their operand is more than 128 \
                 bytes deep along the reduction, in which it is contiguous), or a tile has more than 2^20 elements"
            }
            Illegal::Precondition => "a precondition of the kernel does not hold",
            Illegal::WarpTile => {
                "the warp tile does not divide the tile of the block, or is not all of it (`ping_pong`)"
            }
            Illegal::Threads => {
                "a block has 32 to 1024 threads, a power of two or three warpgroups that multiply, and as many as the schedule says"
            }
            Illegal::Atom => "no instruction of the target takes these types and this warp tile",
            Illegal::Promotion => "a tile of the reduction is deeper than its sums may get (`promote`)",
            Illegal::Registers => "the tiles of a thread exceed its registers",
            Illegal::Stages => "a pipeline has 1 to 16 stages",
            Illegal::SharedMemory => "the tiles exceed the shared memory of a block",
        }
    }
}

/// What is the same for all candidates.
pub(super) struct Setting<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) target: Target,
    pub(super) card: &'a Card,
    /// Whether products may use tensor cores.
    pub(super) tensor_cores: bool,
    /// Whether products are of warpgroups, and then how they are computed.
    pub(super) warpgroups: Option<Way>,
    /// Whether results may be stored by the accelerator, out of a buffer.
    pub(super) stage_stores: bool,
    /// Whether blocks share tiles along the reduction; `None`: where it pays.
    pub(super) stream_k: Option<bool>,
    /// Whether the columns that warpgroups multiply are to be chosen.
    pub(super) columns: bool,
    /// Whether the tiles of a thread may take more registers than are estimated to be left, since there is nothing better: the
    /// assembler decides, and may spill.
    pub(super) crowded: bool,
}

/// Of products of other units.
const PLAIN: Way = Way { swap: false, registers: false };

/// A product of a candidate.
struct Shape {
    rows: u64,
    cols: u64,
    depth: u64,
    warp: (u64, u64),
    /// Groups of warps that share the depth.
    groups: u64,
    atom: Atom,
    /// How a product of warpgroups is computed.
    way: Way,
    /// Registers for a sum: two where parts of it are summed beside it.
    sums: u64,
}

impl Setting<'_> {
    /// Whether a product of sufficient extents is scalar, and its multiply-adds per clock and multiprocessor.
    pub(super) fn fastest(&self, product: &Product) -> (bool, f64) {
        let types = (product.inputs, product.acc);
        let best = || match self.warpgroups {
            Some(_) => warpgroup::atom(self.target, types),
            None => best_atom(self.target, self.tensor_cores, types, (64, 64, 64)),
        };
        match product.atom.or_else(best) {
            Some(atom) => (!atom.row().tensor_core, self.card.rate(atom, product.inputs, product.acc)),
            None => (true, f64::INFINITY),
        }
    }

    /// The cost of a block with the values of `env`.
    pub(super) fn cost(&self, env: &Env) -> Result<Cost, Illegal> {
        let mut cost = self.block(env)?;
        self.staged(&mut cost, env)?;
        Ok(cost)
    }

    /// The number of stages with the values of `env`: what the schedule makes of them.
    fn stages(&self, env: &Env) -> Result<u64, Illegal> {
        let stages = match self.work.k.schedule.stages {
            Some(e) => self.work.extent(env, e).ok_or(Illegal::Stages)?,
            None if self.target.has_asynchronous_copies() => 4,
            None => 2,
        };
        if (1..=MAX_STAGES).contains(&stages) { Ok(stages) } else { Err(Illegal::Stages) }
    }

    /// The same but for what depends on the number of stages.
    pub(super) fn block(&self, env: &Env) -> Result<Cost, Illegal> {
        let (work, k) = (self.work, self.work.k);
        let odd = |shape: &[Expr]| shape.iter().any(|&e| work.extent(env, e).is_some_and(|n| !n.is_power_of_two()));
        if self.warpgroups.is_none() && work.tiles.iter().any(|t| odd(&t.shape)) {
            return Err(Illegal::Extent);
        }
        let mut threads = k.schedule.threads.and_then(|e| work.extent(env, e));
        let mut shapes = Vec::new();
        for product in work.regions.iter().flat_map(|r| &r.products) {
            shapes.push(self.shape(env, product, &mut threads)?);
        }
        let threads = threads.unwrap_or(PLAIN_THREADS);
        let three = self.warpgroups.is_some() && threads == u64::from(3 * WARPGROUP * WARP);
        if !threads.is_power_of_two() && !three || !(u64::from(WARP)..=u64::from(MAX_THREADS)).contains(&threads) {
            return Err(Illegal::Threads);
        }
        let tile_ok = |shape: &[Expr]| {
            let right = |n: u64| n.is_power_of_two() || self.warpgroups.is_some() && warpgroup::is_columns(n);
            let extents = shape.iter().all(|&e| work.extent(env, e).is_some_and(right));
            extents && work.elements(env, shape).is_some_and(|n| n <= MAX_ELEMENTS)
        };
        if !work.tiles.iter().all(|t| tile_ok(&t.shape)) {
            return Err(Illegal::Extent);
        }
        if k.requires.iter().any(|&e| work.truth(env, e) == Some(false)) {
            return Err(Illegal::Precondition);
        }
        let warps = threads / u64::from(WARP);
        let (mut parts, mut next, mut macs) = (Vec::with_capacity(work.regions.len()), 0, 0.0);
        for region in &work.regions {
            let own = &shapes[next..next + region.products.len()];
            next += region.products.len();
            let part = self.part(env, region, own, &shapes, warps);
            macs += part.trips * own.iter().map(|s| (s.rows * s.cols * s.depth) as f64).sum::<f64>();
            parts.push(part);
        }
        let moves = || work.regions.iter().flat_map(|r| &r.moves);
        let operands = || work.regions.iter().flat_map(|r| &r.products).flat_map(|p| p.operands);
        let mut block = occupancy::Block {
            threads,
            tiles: self.registers(env, &shapes, threads, &parts),
            shared: 0,
            wide: moves().all(|m| !m.load || self.access(env, m, &shapes) >= 16)
                && moves().filter(|m| m.buffer.is_some() && self.shifted(env, m, &shapes)).count() < 2,
            mixed: operands().filter(|o| o.along).count() as u64,
            lone: true,
        };
        let pieces = !block.wide || moves().any(|m| m.bytes < 4 && self.transposed(m, &shapes));
        let staged = parts.iter().any(|p| p.staged);
        // Asynchronous copies beyond the usual four of a thread and tile have addresses of their own.
        let copies = |m: &Move| {
            let elements = work.elements(env, &m.shape).unwrap_or(0) * m.bytes;
            // A place that is found by digits is a pointer, two registers.
            if m.modes { 2 * elements / self.access(env, m, &shapes) / threads } else { elements / 16 / threads }
        };
        let more = moves().filter(|m| m.load && m.buffer.is_some()).map(|m| copies(m).saturating_sub(4)).sum::<u64>();
        let addresses = match parts.iter().any(|p| p.carried) && !block.wide {
            _ if pieces && staged => ADDRESSES_STAGED,
            true => ADDRESSES_CARRIED,
            false => ADDRESSES + more.min(ADDRESSES),
        };
        let room = block.cap(1).saturating_sub(addresses);
        // What a thread of a single warp transposes is estimated too low.
        let alone = pieces && staged && warps == 1;
        // Aligned words that cover unaligned rows are twice as many as those of the tile.
        let covering = |region: &Region| {
            let shifted = region.moves.iter().filter(|m| m.buffer.is_some() && self.shifted(env, m, &shapes));
            shifted.map(|m| work.elements(env, &m.shape).unwrap_or(0) * m.bytes / (4 * threads)).sum::<u64>()
        };
        let covering: u64 = work.regions.iter().map(covering).sum();
        if (block.tiles + covering > room || alone) && !self.crowded {
            return Err(Illegal::Registers);
        }
        block.tiles = block.tiles.min(room);
        // The sums of the groups meet in shared memory.
        let products = || work.regions.iter().flat_map(|r| &r.products).zip(&shapes);
        let met = products()
            .filter(|(_, s)| s.groups > 1)
            .map(|(p, s)| s.groups * s.rows * s.cols * u64::from(p.acc.bytes()));
        let exchanged: u64 = met.sum();
        parts[0].shared += 2.0 * exchanged as f64;
        let (mut fixed, mut slot) = (0u64, 0u64);
        for tile in work.tiles.iter().filter(|t| t.shared) {
            let slots = tile.slots.map_or(1, |e| work.extent(env, e).unwrap_or(1));
            let filled = moves().find(|m| m.load && m.buffer == Some(tile.value));
            let elements =
                filled.map_or_else(|| work.elements(env, &tile.shape).unwrap_or(0), |m| self.elements(env, m));
            let bytes = elements.saturating_mul(tile.bytes * slots);
            let of = if tile.filled && tile.slots.is_none() { &mut slot } else { &mut fixed };
            *of = of.saturating_add(bytes);
        }
        // What threads store themselves lies in a buffer by bits; the accelerator stores panels, which have the columns that there are.
        let buffer = |m: &Move| {
            let all = work.elements(env, &m.shape).unwrap_or(0);
            let elements = match self.access(env, m, &shapes) < 16 {
                true if threads.is_power_of_two() => all.next_power_of_two(),
                false if self.stored_in_panels(env, m) => all,
                _ => 0,
            };
            elements * m.bytes
        };
        let result = moves().filter(|m| !m.load && !m.modes).map(buffer).max().unwrap_or(0);
        let result = if self.stage_stores && self.warpgroups.is_some() { result.next_multiple_of(1024) } else { 0 };
        let ping_pong = self.warpgroups.is_some() && self.ping_pong(env);
        let across = parts.iter().any(|p| p.across);
        let cluster = match shapes.first().filter(|_| self.warpgroups.is_some()) {
            Some(shape) => self.cluster(env, shape, across),
            None => [1, 1],
        };
        let (tile, atom) = (shapes.first().map(|s| (s.rows, s.cols)), shapes.first().map(|s| s.atom));
        // The smaller tile of a product loses less where sizes are ragged. Other tiles should give a thread four accesses of 16
        // bytes, along rows of 512.
        let far = |x: u64, from: u64| u64::from(x.max(1).ilog2().abs_diff(from.ilog2()));
        let run = |m: &Move| m.contiguous.and_then(|d| work.extent(env, *m.shape.get(d)?)).unwrap_or(1) * m.bytes;
        let each = |m: &Move| work.elements(env, &m.shape).unwrap_or(1) * m.bytes / threads;
        let plain = moves().map(|m| 16 * far(each(m), 64) + far(run(m), 512)).max();
        let rank = tile.map_or(plain.unwrap_or(0), |(rows, cols)| rows * cols);
        Ok(Cost {
            block,
            fixed,
            slot,
            exchanged,
            result,
            offloaded: false,
            stream_k: if ping_pong { Some(false) } else { self.stream_k },
            ping_pong,
            cluster,
            resident: 1,
            parts,
            tile,
            atom,
            macs,
            rank,
        })
    }

    /// Completes a cost for the number of stages.
    pub(super) fn staged(&self, cost: &mut Cost, env: &Env) -> Result<(), Illegal> {
        let stages = self.stages(env)?;
        // The sums are exchanged where the tiles were.
        cost.block.shared = (cost.fixed + cost.slot * stages).max(cost.exchanged);
        let barriers = if self.warpgroups.is_some() { BARRIER_BYTES } else { 0 };
        if cost.block.shared + barriers > self.target.smem_per_block() {
            return Err(Illegal::SharedMemory);
        }
        let with_result = cost.block.shared + cost.result;
        cost.offloaded = cost.result > 0 && with_result + barriers <= self.target.smem_per_block();
        if cost.offloaded {
            cost.block.shared = with_result;
        }
        cost.resident = if self.warpgroups.is_some() { 1 } else { self.resident(cost) };
        for part in cost.parts.iter_mut().filter(|p| p.synchronised) {
            part.ahead = match stages {
                1 => 0.0,
                // A load is issued at the head of a trip and stored at its end, or at the head of the next.
                _ if part.staged || part.carried => 1.0,
                // Of the slots one is read, two where products are pending, and one is filled in the course of a trip.
                stages if cost.ping_pong => (stages as f64 - 2.5).max(0.0),
                stages => stages as f64 - 1.5,
            };
        }
        Ok(())
    }

    /// Blocks that will be resident: as many as the compiler asks for, or as fit with the registers that the assembler takes.
    fn resident(&self, cost: &Cost) -> u64 {
        let staged = cost.parts.iter().any(|p| p.staged || p.carried);
        let beside = match () {
            _ if cost.exchanged > 0 => BESIDE_SLICED,
            _ if staged => BESIDE_STAGED,
            _ => BESIDE,
        };
        let mut registers = cost.block.tiles + beside;
        if cost.parts.iter().any(|p| p.carried) {
            // Words are shifted one access after the other: there is room for all that a thread may have.
            registers = registers.min(u64::from(REGISTERS_PER_THREAD));
        }
        cost.block.resident(self.target).max(cost.block.with_registers(registers, self.target))
    }

    /// The tiles and the instruction of a product, by the rules of `select-mma`; fixes the thread count.
    fn shape(&self, env: &Env, product: &Product, threads: &mut Option<u64>) -> Result<Shape, Illegal> {
        let (work, schedule) = (self.work, &self.work.k.schedule);
        let extent =
            |i: usize| work.extent(env, product.shape[i]).filter(|&n| n <= MAX_ELEMENTS).ok_or(Illegal::Extent);
        let (rows, cols, depth) = (extent(0)?, extent(1)?, extent(2)?);
        let warp = match schedule.warp_tile {
            Some((m, n)) => match (work.extent(env, m), work.extent(env, n)) {
                (Some(m), Some(n)) => (m, n),
                _ => return Err(Illegal::WarpTile),
            },
            None => (rows.min(64), cols.min(64)),
        };
        let warpgroups = self.warpgroups.is_some();
        if !divides(warp.0, rows, warpgroups) || !divides(warp.1, cols, warpgroups) {
            return Err(Illegal::WarpTile);
        }
        // Which tile a reduction is of is not known before values are: of a kernel that has one all products have whole rows or columns in a warp.
        let reduced = reduced_axes(work.k);
        if reduced.contains(&0) && warp.0 != rows || reduced.contains(&1) && warp.1 != cols {
            return Err(Illegal::WarpTile);
        }
        let groups = schedule.k_warps.map_or(Some(1), |e| work.extent(env, e)).ok_or(Illegal::Threads)?;
        if !groups.is_power_of_two() || depth < groups {
            return Err(Illegal::Threads);
        }
        let types = (product.inputs, product.acc);
        if let Some(way) = self.warpgroups {
            let atom = warpgroup::atom(self.target, types).ok_or(Illegal::Atom)?;
            let promoted = self.promoted(env, atom, product.acc)?;
            let sums = 1 + u64::from(promoted.is_some());
            let fits = warpgroup::tile(atom, Some(warp), (rows, cols, depth), way, (product.acc, sums), &reduced);
            let needed = rows / warp.0 * (cols / warp.1) * u64::from(WARP * WARPGROUP);
            // Who takes tiles in turns computes each by itself.
            let replicas = if self.ping_pong(env) { 2 } else { 1 };
            if replicas > 1 && warp != (rows, cols) {
                return Err(Illegal::WarpTile);
            }
            // The producer has a warpgroup of its own.
            if groups > 1
                || needed * replicas + u64::from(PRODUCER_WARPS * WARP) > u64::from(MAX_THREADS)
                || threads.is_some_and(|t| t != needed)
            {
                return Err(Illegal::Threads);
            }
            *threads = Some(needed);
            return match fits {
                Some(_) if promoted.is_some_and(|most| depth > most) => Err(Illegal::Promotion),
                // Three warpgroups share the rows of the output, if anything: where the product is turned round for them, results are stored in pieces.
                Some((_, swap))
                    if !self.crowded && swap != way.swap && !if swap { cols } else { rows }.is_power_of_two() =>
                {
                    Err(Illegal::WarpTile)
                }
                Some((_, swap)) if !self.assembles(warp, (rows, cols), Way { swap, ..way }, product.acc) => {
                    Err(Illegal::Registers)
                }
                Some(_) if self.gaps(product, (rows, cols, depth)) => Err(Illegal::Extent),
                // Of odd multiples of 16 panels reach further beyond the tile, and blocks of 128 rows are slower than the model says (1536x1536x1536
                // with 128x144: 17.4 us on an H200, 15.2 with 192x96; 2560x2560x2560 64.8 with 128x208, 59.8 with 128x224).
                Some((_, swap))
                    if self.columns && swap == way.swap && uneven(if swap { (cols, rows) } else { (rows, cols) }) =>
                {
                    Err(Illegal::Extent)
                }
                // Results of a product that is turned round are exchanged before they are stored, in registers of their own.
                Some((_, swap)) if !self.crowded && swap != way.swap && warp.0 * warp.1 > TURNED => {
                    Err(Illegal::Registers)
                }
                Some(_)
                    if !self.crowded && !self.has_room(warp, (rows, cols, depth), (atom, way), (product.acc, sums)) =>
                {
                    Err(Illegal::Registers)
                }
                Some((_, swap)) if depth >= u64::from(atom.row().k) => {
                    Ok(Shape { rows, cols, depth, warp, groups, atom, way: Way { swap, ..way }, sums })
                }
                Some(_) => Err(Illegal::Atom),
                None => Err(Illegal::WarpTile),
            };
        }
        let needed = rows / warp.0 * (cols / warp.1) * u64::from(WARP) * groups;
        if needed > u64::from(MAX_THREADS) || threads.is_some_and(|t| t != needed) {
            return Err(Illegal::Threads);
        }
        *threads = Some(needed);
        if accumulator_registers(warp.0, warp.1, product.acc.bytes()) > u64::from(REGISTERS_PER_THREAD) {
            return Err(Illegal::Registers);
        }
        if groups > 1 && depth / groups < least_depth(self.target, self.tensor_cores, types, (warp.0, warp.1, depth)) {
            return Err(Illegal::Atom);
        }
        let tile = (warp.0, warp.1, depth / groups);
        let atom = product.atom.or_else(|| best_atom(self.target, self.tensor_cores, types, tile));
        Ok(Shape { rows, cols, depth, warp, groups, atom: atom.ok_or(Illegal::Atom)?, way: PLAIN, sums: 1 })
    }

    /// Blocks of a cluster, as the walk over tiles takes them.
    fn cluster(&self, env: &Env, shape: &Shape, across: bool) -> [i64; 2] {
        let k = self.work.k;
        if k.grid.len() < 2 {
            return [1, 1];
        }
        if !k.schedule.cluster.is_empty() {
            let along = |i: usize| k.schedule.cluster.get(i).and_then(|&e| self.work.int(env, e)).unwrap_or(1);
            return [along(0), along(1)];
        }
        let count = |i: usize| self.work.extent(env, k.grid[i].extent).and_then(|n| i64::try_from(n).ok());
        choose_cluster((shape.rows, shape.cols), across, [count(0), count(1)], self.card)
    }

    /// Whether the assembler takes the instruction of warpgroups.
    fn assembles(&self, warp: (u64, u64), tile: (u64, u64), way: Way, acc: Elem) -> bool {
        warpgroup::assembles(self.work.k, tile, warp, way, acc).is_ok()
    }

    /// Whether the threads of warpgroups have registers for their tiles.
    fn has_room(
        &self,
        warp: (u64, u64),
        (rows, cols, depth): (u64, u64, u64),
        (atom, way): (Atom, Way),
        acc: (Elem, u64),
    ) -> bool {
        let registers = warpgroup::tiles_of(atom, (warp, depth), way, acc);
        let three = rows / warp.0.max(1) * (cols / warp.1.max(1)) == 3;
        (!three || registers <= THREE) && warpgroup::has_room(self.work.k, (rows, cols), warp, registers)
    }

    /// Whether an operand would lie in several panels of rows whose number is no power of two: they can, but the model knows no measurement of such tiles.
    fn gaps(&self, product: &Product, (rows, cols, depth): (u64, u64, u64)) -> bool {
        let several = depth * u64::from(product.inputs.bytes()) > Exchange::Bytes128.row_bytes();
        let [a, b] = &product.operands;
        several && (a.along && !rows.is_power_of_two() || b.along && !cols.is_power_of_two())
    }

    /// Whether the accelerator can store a tile out of a buffer: neither panels nor their rows have gaps.
    fn stored_in_panels(&self, env: &Env, m: &Move) -> bool {
        let shape: Option<Vec<u64>> = m.shape.iter().map(|&e| self.work.extent(env, e)).collect();
        let (Some(shape), Some(dim)) = (shape, m.contiguous) else { return true };
        let Some(bytes) = shape.get(dim).map(|n| n.saturating_mul(m.bytes)) else { return true };
        if narrow(bytes) {
            return false;
        }
        let panels = rows(bytes, true).map_or(1, |x| bytes / x.row_bytes());
        let others = shape.iter().enumerate().filter(|&(d, _)| d != dim);
        panels.is_power_of_two() || others.map(|(_, n)| n).all(|n| n.is_power_of_two())
    }

    /// Whether the schedule asks for warpgroups that take tiles in turns.
    fn ping_pong(&self, env: &Env) -> bool {
        self.work.k.schedule.ping_pong.and_then(|e| self.work.int(env, e)) == Some(1)
    }

    /// How deep the sums of products get before they are added to the accumulator, if they are.
    fn promoted(&self, env: &Env, atom: Atom, acc: Elem) -> Result<Option<u64>, Illegal> {
        let scheduled = match self.work.k.schedule.promote {
            Some(e) => Some(self.work.int(env, e).and_then(|n| u64::try_from(n).ok()).ok_or(Illegal::Promotion)?),
            None => None,
        };
        Ok(warpgroup::promoted(atom, acc, scheduled))
    }

    /// Registers of a thread that hold tiles, fragments and tiles on their way to shared memory.
    fn registers(&self, env: &Env, shapes: &[Shape], threads: u64, parts: &[Part]) -> u64 {
        let words = |elements: u64, bytes: u64| (elements * bytes).div_ceil(4 * threads);
        let accumulator = |t: &super::work::Tile| {
            let mut products = self.work.regions.iter().flat_map(|r| &r.products);
            products.any(|p| p.accumulator == t.value)
        };
        let tiles = self.work.tiles.iter().filter(|t| !t.shared && !accumulator(t));
        let mut sum: u64 = tiles.map(|t| words(self.work.elements(env, &t.shape).unwrap_or(0), t.bytes)).sum();
        let products = self.work.regions.iter().flat_map(|r| &r.products);
        for (product, shape) in products.zip(shapes) {
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
            let shared_lanes = |bits: &[tilec_ir::atoms::Bit]| {
                1u64 << bits.iter().filter(|b| matches!(b, tilec_ir::atoms::Bit::Same)).count()
            };
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

    /// Elements that are moved: those of whole rows of panels, where tensor copies do.
    fn elements(&self, env: &Env, m: &Move) -> u64 {
        let all = self.work.elements(env, &m.shape).unwrap_or(0);
        let extent = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        if self.warpgroups.is_none() || m.buffer.is_none() || extent.is_power_of_two() {
            return all;
        }
        let row = rows(extent.saturating_mul(m.bytes), false).map_or(1, |x| x.row_bytes() / m.bytes.max(1));
        all / extent.max(1) * extent.next_multiple_of(row.max(1))
    }

    /// Bytes of a thread's access.
    fn access(&self, env: &Env, m: &Move, shapes: &[Shape]) -> u64 {
        if self.transposed(m, shapes) && m.bytes >= 4 {
            return m.bytes;
        }
        if self.shifted(env, m, shapes) {
            return u64::from(MAX_ACCESS_BYTES);
        }
        let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1);
        (m.width.min(run) * m.bytes).clamp(1, 16)
    }

    /// Whether the tile is loaded in aligned words and shifted into place.
    fn shifted(&self, env: &Env, m: &Move, shapes: &[Shape]) -> bool {
        let wide = u64::from(MAX_ACCESS_BYTES);
        let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1) * m.bytes;
        m.load
            && m.plain
            && m.bytes <= u64::from(SHIFTED_ELEMENT_BYTES)
            && m.width * m.bytes < wide
            && run >= wide
            && !self.transposed(m, shapes)
    }

    /// Whether the tile is transposed on its way into shared memory, as products of some instructions want it.
    fn transposed(&self, m: &Move, shapes: &[Shape]) -> bool {
        let Some(buffer) = m.buffer else { return false };
        let products = self.work.regions.iter().flat_map(|r| &r.products);
        products.zip(shapes).any(|(product, shape)| {
            let mine = |o: &super::work::Operand| o.buffer == Some(buffer);
            let Some(operand) = product.operands.iter().find(|o| mine(o)) else { return false };
            match shape.atom.row().sums() {
                false => operand.along,
                true => !operand.along && transposes(shape.atom.row(), product.inputs.a),
            }
        })
    }

    /// A region whose products have the shapes `own`.
    fn part(&self, env: &Env, region: &Region, own: &[Shape], shapes: &[Shape], warps: u64) -> Part {
        let looped = !region.loops.is_empty();
        let mut part = Part { trips: self.work.trips(env, region), ..Part::default() };
        for (product, shape) in region.products.iter().zip(own) {
            self.multiply(&mut part, product, shape, warps as f64);
        }
        let mut direct = self.target.has_asynchronous_copies()
            || region.moves.iter().any(|m| m.buffer.is_some() && self.shifted(env, m, shapes));
        let (mut across, mut fetched_by) = (false, Vec::new());
        for m in &region.moves {
            let bytes = self.elements(env, m) as f64 * m.bytes as f64;
            let access = self.access(env, m, shapes);
            let fills = m.load && m.buffer.is_some();
            let transposed = self.transposed(m, shapes);
            let shifted = self.shifted(env, m, shapes);
            part.carried |= looped && fills && shifted;
            // What is converted is so behind its slot.
            let by_tensor_copies = self.warpgroups.is_some() && fills;
            let asynchronous = by_tensor_copies
                || self.target.has_asynchronous_copies()
                    && m.plain
                    && !shifted
                    && (!transposed || m.bytes >= 4)
                    && ASYNCHRONOUS_COPY_BYTES.contains(&(access as u32));
            direct &= !fills || asynchronous || shifted;
            // Rows shorter than a sector of 32 bytes fetch more than they use.
            let run = m.contiguous.and_then(|d| self.work.extent(env, *m.shape.get(d)?)).unwrap_or(1) * m.bytes;
            let mut fetched = bytes * (32.0 / run as f64).max(1.0);
            // A tensor copy asks for two lines where a row of the tile lies across them.
            let pitch = m.pitch.and_then(|e| self.work.int(env, e)).unwrap_or(0).unsigned_abs().saturating_mul(m.bytes);
            if self.warpgroups.is_some() && fills {
                let lies_across = !pitch.is_multiple_of(LINE);
                across |= lies_across;
                // It asks for whole lines, whatever it takes of them.
                fetched = bytes * (LINE as f64 / run as f64).max(1.0) * if lies_across { 2.0 } else { 1.0 };
                fetched_by.push((m.buffer, fetched));
            }
            *(if m.load { &mut part.loads } else { &mut part.stores }) += fetched;
            if self.warpgroups.is_some() && !m.load && access < 16 {
                part.pieces += bytes / m.bytes as f64;
            }
            // An access, the store to shared memory if it passes through registers, and addresses of narrow ones.
            let each = if fills && !asynchronous { STAGED_ACCESS } else { DIRECT_ACCESS };
            let narrow = if access < 16 { 2.0 } else { 1.0 };
            let each = each + if shifted { SHIFTING } else { 0.0 };
            part.issued += bytes / access as f64 / f64::from(WARP) * each * narrow;
            // The unit that moves shared memory also loads the two words that cover an access.
            part.shared += if m.buffer.is_some() { bytes } else { 0.0 } + if shifted { 2.0 * bytes } else { 0.0 };
        }
        if let (true, Some(shape), Some(product)) = (across, own.first(), region.products.first()) {
            // Blocks of a cluster share operands: those beside each other along columns that of rows.
            let [down, right] = self.cluster(env, shape, across);
            for (operand, blocks) in product.operands.iter().zip([right, down]) {
                let own = fetched_by.iter().find(|(buffer, _)| *buffer == operand.buffer);
                part.loads -= own.map_or(0.0, |(_, fetched)| fetched * (1.0 - 1.0 / blocks as f64));
            }
        }
        part.across = across;
        for (shape, bytes) in &region.shared {
            let bytes = self.work.elements(env, shape).unwrap_or(0) as f64 * *bytes as f64;
            part.shared += bytes;
            part.issued += bytes / 512.0;
        }
        part.issued += BOOKKEEPING * warps as f64;
        let fills = region.moves.iter().any(|m| m.load && m.buffer.is_some());
        part.staged = looped && fills && !direct;
        part.synchronised = looped && fills;
        part
    }

    /// Adds a product of all warps to a part.
    fn multiply(&self, part: &mut Part, product: &Product, shape: &Shape, warps: f64) {
        let row = shape.atom.row();
        // What a warp does of the depth.
        let (wm, wn, depth) = (shape.warp.0 as f64, shape.warp.1 as f64, (shape.depth / shape.groups) as f64);
        let bytes = f64::from(product.inputs.bytes());
        let lanes = f64::from(WARP);
        let macs = (shape.rows * shape.cols * shape.depth) as f64;
        let clocks = macs / self.card.rate(shape.atom, product.inputs, product.acc);
        if row.asynchronous() {
            let n = if shape.way.swap { wm } else { wn };
            // Few columns take as long as more would: an instruction takes no less than so many clocks (of columns / 2).
            part.product += clocks * (SHORTEST / (n / 2.0)).max(1.0);
            // Each block of 64 rows reads its rows and all columns.
            let blocks = (shape.rows * shape.cols) as f64 / (64.0 * n);
            part.shared += blocks * (64.0 + n) * depth * bytes;
            part.blocks = blocks * f64::from(WARPGROUP) / warps;
            part.issued += blocks * depth * 4.0;
            // An addition for each register of a thread: the four warps of a group go side by side.
            let added = (shape.sums - 1) as f64 * wm * wn / (lanes * f64::from(WARPGROUP));
            part.between += added;
            part.added += added;
            if shape.way.registers {
                // The warps of a group share what moves shared memory, and products wait for the last of them.
                let rows = if shape.way.swap { wn } else { wm };
                part.between += rows * depth * bytes / f64::from(WORD * WARP) + LOADED;
                part.issued += rows * depth * bytes / f64::from(WORD * WARP);
                if !warpgroup::reads_registers(product.inputs.a) {
                    part.between += rows * depth / f64::from(WARP * WARPGROUP) * CONVERTED;
                }
            }
            return;
        }
        part.product += clocks;
        part.scalar |= !row.tensor_core;
        part.single |= !(shape.depth / shape.groups / slice(product, shape)).is_multiple_of(2);
        if row.tensor_core {
            let (m, n, k) = row.log2_shape;
            part.issued += macs / f64::from(1u32 << (m + n + k));
            let read = warps * (wm + wn) * depth * bytes;
            part.shared += read;
            part.issued += read / 512.0;
            part.chain += depth / f64::from(1u32 << k) * CHAIN_TENSOR;
        } else {
            // Four rows by eight columns of lanes: a thread reads runs of 16 bytes, and a warp's load takes two units of
            // 128 bytes, for lanes share what they read.
            let runs = (wm / 4.0 * bytes / 16.0).ceil() + (wn / 8.0 * bytes / 16.0).ceil();
            part.issued += macs / lanes / f64::from(row.k) + warps * depth * runs;
            part.shared += warps * depth * runs * 2.0 * 128.0;
            part.chain += depth / f64::from(row.k) * CHAIN_SCALAR;
        }
    }
}

/// Elements of a warpgroup's tile at most where a product is turned round to fit few rows: of 176x128 the assembler (ptxas 13) spills 224 bytes, of
/// 160x128 32, of 144x128 and 240x64 none.
const TURNED: u64 = 144 * 128;

/// Whether a tile has many columns that are no multiple of 32, and rows for other than three warpgroups.
fn uneven((rows, cols): (u64, u64)) -> bool {
    cols > 128 && !cols.is_multiple_of(32) && rows.is_power_of_two()
}

/// How deep the fragments of a product are. Operands of scalar multiply-adds are never contiguous along the reduction.
fn slice(product: &Product, shape: &Shape) -> u64 {
    let row = shape.atom.row();
    slice_depth(
        row,
        product.operands.map(|o| {
            let along = if row.sums() { o.along || transposes(row, product.inputs.a) } else { false };
            along.then(|| product.inputs.bytes())
        }),
        shape.depth / shape.groups,
    )
}

/// Bytes of a register.
const WORD: u32 = 4;
/// Clocks of the shortest product of a warpgroup, on operands in shared memory (recipes: 18 to 24).
const SHORTEST: f64 = 20.0;
/// Clocks that a warp takes to convert an element of each thread: the four of a group are on schedulers of their own.
const CONVERTED: f64 = 4.0;
/// Clocks from the last load of an operand to its arrival.
const LOADED: f64 = 30.0;
/// Clocks from a tensor-core product to the next on the same accumulator.
pub(super) const CHAIN_TENSOR: f64 = 34.0;
/// The same of a scalar multiply-add.
const CHAIN_SCALAR: f64 = 4.0;
