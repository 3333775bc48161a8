//! The blocks of a cluster while they run.

use crate::counters::{Banks, Counts};
use crate::exec::asynchronous::{self, Landing};
use crate::exec::barriers::{Barrier, ClusterBarrier, Object, Waits};
use crate::exec::fail::Fail;
use crate::exec::in_flight::Load;
use crate::exec::options::{Launch, Options, Order, first_of, position, volume};
use crate::exec::products::Group;
use crate::exec::scratch::Scratch;
use crate::exec::warp::{Pool, Shape, Unwritten, thread_of};
use crate::memory::Device;
use crate::numerics::mma::Generation;
use crate::program::{Entry, Op, Program};
use crate::progress::Progress;
use crate::race::{Grid, ProxyError, Races, slots};
use crate::report::{Allowance, Cause, Place, Report, ReportKind};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// Bytes from the shared memory of one block of a cluster to that of the next, in the addresses of reports.
pub const BLOCKS_APART: u64 = 1 << 18;

/// The running blocks of a cluster, without their warps.
pub(crate) struct Cta<'a> {
    pub(crate) device: &'a Device,
    pub(crate) program: &'a Program,
    pub(crate) entry: &'a Entry,
    pub(crate) params: &'a [u8],
    pub(crate) lock: &'a Mutex<()>,
    /// Compares the accesses of different blocks, if there are several.
    pub(crate) grid: Option<&'a Grid>,
    /// Which block it is.
    pub(crate) block: u64,
    /// Shape of the first block of the cluster, and of all blocks.
    pub(crate) shape: Shape,
    pub(crate) shapes: Vec<Shape>,
    /// Number of blocks of the cluster, and of warps in each.
    pub(crate) ranks: usize,
    pub(crate) cta_warps: usize,
    /// The block of the warp that runs.
    pub(crate) rank: usize,
    /// Bytes of shared memory of a block, and the distance between blocks.
    pub(crate) room: u64,
    pub(crate) stride: u64,
    /// Number of threads of each block that have not exited.
    pub(crate) alive: Vec<u32>,
    /// Joined clocks of the exited threads of each block.
    pub(crate) ends: Vec<crate::race::Known>,
    /// For each block, the threads that are known to have started, by relaxed arrivals at the cluster barrier.
    pub(crate) begun: Vec<crate::race::Known>,
    pub(crate) cluster_barrier: ClusterBarrier,
    /// Whether a thread has arrived there.
    pub(crate) cluster_moved: bool,
    /// Whether another block may run after a signal, and whether one was just given.
    pub(crate) gives_way: bool,
    pub(crate) signalled: bool,
    /// Threads that have waited for the previous grids.
    pub(crate) waits: Waits,
    /// Registers of each block, and whether some were released.
    pub(crate) pools: Vec<Pool>,
    pub(crate) freed: bool,
    /// wgmma state of each warpgroup.
    pub(crate) warpgroups: Vec<Group>,
    /// Bulk copies to shared memory in flight.
    pub(crate) loads: VecDeque<Load>,
    pub(crate) shared: Scratch,
    pub(crate) locals: Vec<Scratch>,
    pub(crate) races: Races,
    /// Sixteen for each block.
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) counts: Vec<Counts>,
    pub(crate) banks: Banks,
    pub(crate) fuel: u64,
    pub(crate) generation: Generation,
    pub(crate) landing: Landing,
    pub(crate) progress: Option<&'a Progress>,
    /// mbarrier objects by their address.
    pub(crate) mbarriers: BTreeMap<u32, Object>,
    /// Phases that have completed.
    pub(crate) completed: Vec<u32>,
    /// For a warp and a wait at an mbarrier: how many more failures before the warp sleeps.
    pub(crate) failures: BTreeMap<(usize, u32), u32>,
    /// For a warp, a lane and a vector load: the elements last found unwritten.
    pub(crate) unwritten: BTreeMap<(usize, usize, usize), Unwritten>,
    pub(crate) seed: u64,
    /// Number of changes of mbarriers.
    pub(crate) mbarrier_events: u64,
    /// Arrivals that wait for copies.
    pub(crate) arrivals: VecDeque<asynchronous::Arrival>,
    pub(crate) seq: u32,
}

/// Data that all blocks of a launch share.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) device: &'a Device,
    pub(crate) program: &'a Program,
    pub(crate) entry: &'a Entry,
    pub(crate) params: &'a [u8],
    pub(crate) lock: &'a Mutex<()>,
    pub(crate) grid: &'a Grid,
    pub(crate) launch: &'a Launch,
    pub(crate) options: &'a Options,
    pub(crate) generation: Generation,
    pub(crate) cluster: [u32; 3],
}

impl<'a> Cta<'a> {
    /// Cluster `number` of the launch; its counts are added to `counts`.
    pub(crate) fn new(setting: Setting<'a>, number: u64, counts: Vec<Counts>) -> Cta<'a> {
        let Setting { device, program, entry, params, lock, grid, launch, options, generation, cluster } = setting;
        let threads = volume(launch.block).unwrap_or(1) as usize;
        let warps = threads.div_ceil(32);
        let room = entry.shared_bytes + u64::from(launch.dynamic_smem);
        let ranks = cluster.iter().product::<u32>() as usize;
        // Each block's memory is followed by unused addresses. Swizzle patterns repeat after 1024 bytes. A matrix
        // descriptor has 18 bits of an address, which distinguish all addresses in a block's memory.
        let stride = if ranks == 1 { room.max(1) } else { (room + 1).next_multiple_of(BLOCKS_APART) };
        let shared_bytes = if ranks == 1 { room } else { stride * ranks as u64 };
        let locals = if entry.local_bytes == 0 { 0 } else { warps * ranks * 32 };
        let slots = if entry.beside || ranks > 1 { slots(ranks) } else { 0 };
        let mut races = Races::new(warps * ranks, shared_bytes as usize, slots);
        if options.allow.contains(&Allowance::CopyProxy) {
            races.allowed = entry.code.iter().map(|inst| matches!(inst.op, Op::CpAsync(_))).collect();
        }
        for rank in 0..ranks as u64 {
            let gaps = entry.gaps.iter().copied().chain((ranks > 1).then_some((room, stride)));
            gaps.for_each(|(start, end)| {
                races.forbid((rank * stride + start) as usize, (rank * stride + end) as usize)
            });
        }
        let first = first_of(launch.grid, cluster, number);
        let shape = |rank: usize| {
            let within = position(cluster, rank as u64);
            Shape {
                block: launch.block,
                grid: launch.grid,
                index: std::array::from_fn(|axis| first[axis] + within[axis]),
                dynamic: launch.dynamic_smem,
                shared: (entry.static_bytes + u64::from(launch.dynamic_smem)) as u32,
                cluster,
                base: (rank as u64 * stride) as u32,
                explicit: options.cluster.is_some() || entry.cluster.is_some(),
            }
        };
        let [x, y, z] = first.map(u64::from);
        let block = x + u64::from(launch.grid[0]) * (y + u64::from(launch.grid[1]) * z);
        Cta {
            device,
            program,
            entry,
            params,
            lock,
            grid: Some(grid).filter(|_| volume(launch.grid) != Some(ranks as u64)),
            block,
            shape: shape(0),
            shapes: (0..ranks).map(shape).collect(),
            ranks,
            cta_warps: warps,
            rank: 0,
            room,
            stride,
            alive: vec![threads as u32; ranks],
            ends: vec![crate::race::Known::default(); ranks],
            begun: vec![crate::race::Known::default(); ranks],
            cluster_barrier: ClusterBarrier::default(),
            cluster_moved: false,
            gives_way: entry.waits && options.order == Order::Seeded,
            signalled: false,
            waits: Waits::new(options.programmatic, warps * ranks),
            pools: vec![Pool::default(); ranks],
            freed: false,
            warpgroups: vec![Group::default(); warps.div_ceil(4) * ranks],
            loads: VecDeque::new(),
            shared: Scratch::new(shared_bytes),
            locals: vec![Scratch::new(entry.local_bytes); locals],
            races,
            barriers: (0..16 * ranks).map(|_| Barrier::default()).collect(),
            counts,
            banks: Banks::new(entry.code.len()),
            fuel: options.fuel.saturating_mul(ranks as u64),
            generation,
            landing: options.landing,
            progress: options.progress.as_deref(),
            mbarriers: BTreeMap::new(),
            completed: Vec::new(),
            failures: BTreeMap::new(),
            unwritten: BTreeMap::new(),
            seed: options.seed,
            mbarrier_events: 0,
            arrivals: VecDeque::new(),
            seq: 0,
        }
    }

    pub(crate) fn next_seq(&mut self) -> u32 {
        self.seq = self.seq.wrapping_add(1);
        self.seq
    }

    /// A report of a failure in `warp` at `pc`.
    pub(crate) fn report(&self, warp: usize, pc: usize, mask: u32, mut fail: Fail) -> Box<Report> {
        let lane = fail.lane.unwrap_or(mask.trailing_zeros() as usize & 31);
        if let (ReportKind::Race, Some(Cause::Unordered), Some(other)) = (fail.kind, fail.cause, fail.other)
            && self.races.clocks.missed(warp, (other.warp, other.lane))
        {
            fail.cause = Some(Cause::Exited);
            fail.message +=
                ": that thread has exited, and no barrier that others came to since orders what it did before";
        }
        // The order of an unordered copy and access is random, and the way out does not depend on it.
        if (fail.kind, fail.cause) == (ReportKind::Race, Some(Cause::Unordered)) {
            fail.cause = self.pending(pc).or(fail.cause);
        }
        Box::new(Report {
            kind: fail.kind,
            cause: fail.cause,
            message: fail.message,
            place: Some(self.place(pc, warp, lane)),
            other: fail.other.map(|c| self.place(c.pc as usize, c.warp, c.lane)),
            other_block: None,
            block: self.shapes[warp / self.cta_warps].index,
            address: fail.address,
            memory: fail.memory,
        })
    }

    /// The allowed reports, by the places of the two instructions.
    pub(crate) fn passed(&self) -> impl Iterator<Item = ([u32; 2], Report)> {
        self.races.passed.iter().map(|((pc, other), passed)| {
            let fail = self.proxy_error((passed.at, ProxyError::UnfencedProduct(passed.other)), passed.lane, false);
            ([*pc, *other], *self.report(passed.warp, *pc as usize, 1 << passed.lane, *fail))
        })
    }

    pub(crate) fn place(&self, pc: usize, warp: usize, lane: usize) -> Place {
        let pc = pc.min(self.entry.code.len() - 1);
        let inst = &self.entry.code[pc];
        Place {
            ptx_line: inst.line,
            columns: self.entry.columns[pc],
            instruction: self.entry.names[inst.name as usize].clone(),
            source: self.program.source(inst.loc),
            thread: thread_of(self.shape.block, (warp % self.cta_warps * 32 + lane) as u32),
        }
    }
}
