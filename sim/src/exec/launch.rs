//! Launches: their checks against the kernel, and the distribution of blocks over host threads.

use crate::counters::{Counters, Counts, merge};
use crate::exec::cta::{Cta, Setting};
use crate::exec::options::{Launch, Options, Order, position, volume};
use crate::exec::rng::Rng;
use crate::exec::warp::thread_of;
use crate::memory::Device;
use crate::numerics::mma::Generation;
use crate::program::{Entry, Program};
use crate::race::{Grid, Side};
use crate::report::{Cause, Memory, Place, Report, ReportKind};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Threads of a block.
pub(super) const MAX_THREADS: u64 = 1024;

/// Shared memory of a block, static and dynamic: the largest limit of any device (227 KiB).
pub(super) const MAX_SHARED: u64 = 227 << 10;

/// Most bytes of host memory for the registers and local memory of a block.
pub(super) const MAX_STATE: u64 = 256 << 20;

impl Device {
    /// Executes a launch to its end and returns its counts.
    ///
    /// Global memory keeps what was stored, also after an error. Variables of the module start from their initial
    /// values at every launch. Results do not depend on the host or on `options.threads`. Kernels whose blocks see each
    /// other's global memory, by atomics with a result or strong loads, or add floats there, run on one thread, in the
    /// order of `options.order`.
    ///
    /// # Errors
    /// The first undefined behaviour of the program, a deadlock, or exhausted fuel.
    pub fn run(&mut self, program: &Program, launch: &Launch, options: &Options) -> Result<Counters, Box<Report>> {
        let entry = program
            .entry(&launch.entry)
            .ok_or_else(|| Report::launch(format!("the module has no kernel `{}`", launch.entry)))?;
        let params = check_launch(entry, launch)?;
        let generation = match options.generation {
            Some(g) => g,
            None => target_generation(program.target())?,
        };
        self.load_module(&program.vars);
        let cluster = check_cluster(program, entry, launch, options)?;
        let ranks = cluster.iter().map(|n| u64::from(*n)).product::<u64>();
        // Clusters are the unit of execution.
        let blocks = volume(launch.grid).expect("the launch was checked") / ranks;
        let order = block_order(blocks, options);
        let lock = Mutex::new(());
        let grid = Grid::default();
        let device = &*self;
        let params = params.as_slice();
        let lock = &lock;
        let setting =
            Setting { device, program, entry, params, lock, grid: &grid, launch, options, generation, cluster };
        let ended = BlockResults::default();
        let next = AtomicUsize::new(0);
        let first_error = AtomicUsize::new(usize::MAX);
        let worker = || {
            let mut counts = vec![Counts::default(); entry.code.len()];
            if entry.waits {
                let outcome = setting.run_blocks(&order, blocks, &mut counts, &ended);
                return (counts, outcome.err().map(|report| (0, report)));
            }
            let mut error = None;
            loop {
                let i = next.fetch_add(1, Relaxed);
                if i as u64 >= blocks || i > first_error.load(Relaxed) {
                    break;
                }
                let block = order.at(i as u64);
                let mut cta = Cta::new(setting, block, counts);
                let mut course = cta.course(Rng::new(options.seed, block));
                let outcome = cta.go(&mut course);
                ended.add(block, &cta);
                counts = cta.counts;
                if let Err(report) = outcome {
                    first_error.fetch_min(i, Relaxed);
                    error = Some((i, report));
                    break;
                }
                if let Some(progress) = &options.progress {
                    (0..ranks).for_each(|_| progress.block_done());
                }
            }
            (counts, error)
        };
        // Interaction of blocks must not depend on the host.
        let threads = if entry.waits || entry.ordered { 1 } else { options.threads.clamp(1, 64) };
        let results: Vec<_> = if threads == 1 {
            vec![worker()]
        } else {
            std::thread::scope(|scope| {
                let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
                handles.into_iter().map(|h| h.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
            })
        };
        let mut counts = vec![Counts::default(); entry.code.len()];
        let mut first: Option<(usize, Box<Report>)> = None;
        for (part, error) in results {
            merge(&mut counts, &part);
            if let Some((i, report)) = error
                && first.as_ref().is_none_or(|(j, _)| i < *j)
            {
                first = Some((i, report));
            }
        }
        match first {
            Some((_, report)) => Err(report),
            None => match grid.race() {
                (Some((address, one, other)), _) => {
                    Err(between_blocks(program, entry, (launch, cluster), address, one, other))
                }
                (None, partial) => {
                    let mut counters = Counters::new(program, entry, &counts);
                    counters.races_partial = partial || ended.forgot.into_inner();
                    counters.allowed =
                        ended.allowed.into_inner().unwrap_or_default().into_values().map(|(_, r)| r).collect();
                    Ok(counters)
                }
            },
        }
    }
}

/// Results of ended blocks in addition to their counts.
#[derive(Debug, Default)]
pub(super) struct BlockResults {
    /// Whether the checks exceeded their memory limits.
    forgot: AtomicBool,
    /// Allowed reports by the places of the two instructions, from the block with the lowest number.
    allowed: Mutex<BTreeMap<[u32; 2], (u64, Report)>>,
}

impl BlockResults {
    /// Adds the results of block, or cluster, `number`.
    pub(super) fn add(&self, number: u64, cta: &Cta<'_>) {
        self.forgot.fetch_or(cta.races.forgot(), Relaxed);
        let reports = cta.passed();
        // A thread that panicked with the lock is reported elsewhere.
        let Ok(mut allowed) = self.allowed.lock() else { return };
        for (places, report) in reports {
            match allowed.get(&places) {
                Some((first, _)) if *first <= number => {}
                _ => {
                    allowed.insert(places, (number, report));
                }
            }
        }
    }
}

/// The report of a race between two blocks.
pub(super) fn between_blocks(
    program: &Program,
    entry: &Entry,
    (launch, cluster): (&Launch, [u32; 3]),
    address: u64,
    one: Side,
    other: Side,
) -> Box<Report> {
    // Threads are numbered across the warps of all blocks of a cluster.
    let warps = volume(launch.block).unwrap_or(1).div_ceil(32) as u32;
    let block_of = |side: Side| {
        let (first, within) =
            (position(launch.grid, side.block), position(cluster, u64::from(side.thread / 32 / warps)));
        std::array::from_fn::<u32, 3, _>(|axis| first[axis] + within[axis])
    };
    let place = |side: Side| {
        let pc = (side.pc as usize).min(entry.code.len() - 1);
        let inst = &entry.code[pc];
        Place {
            ptx_line: inst.line,
            columns: entry.columns[pc],
            instruction: entry.names[inst.name as usize].clone(),
            source: program.source(inst.loc),
            thread: thread_of(launch.block, side.thread % (32 * warps)),
        }
    };
    let verb = |side: Side| if side.wrote { "write" } else { "read" };
    let [x, y, z] = block_of(other);
    let message = format!(
        "this {} of global address {address:#x} and a {} by block ({x}, {y}, {z}) are not ordered: blocks run in any order",
        verb(one),
        verb(other)
    );
    let constant = format!(
        "this {} of global address {address:#x} and a {} by block ({x}, {y}, {z}), one of them `.nc` or `ldu`: that is for data which \
         nobody writes while the kernel runs",
        verb(one),
        verb(other)
    );
    let (kind, message) = match one.constant || other.constant {
        true => (ReportKind::Invalid, constant),
        false => (ReportKind::Race, message),
    };
    Box::new(Report {
        kind,
        cause: Some(Cause::Unordered),
        message,
        place: Some(place(one)),
        other: Some(place(other)),
        other_block: Some(block_of(other)),
        block: block_of(one),
        address: Some(address),
        memory: Some(Memory::Global),
    })
}

pub(super) fn target_generation(target: &str) -> Result<Generation, Box<Report>> {
    let digits = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let sm = digits.parse().ok().and_then(Generation::of_sm);
    sm.ok_or_else(|| Report::launch(format!("no device of target `{target}` is known: name a generation")))
}

/// Checks the launch against the kernel, and lays out the parameters.
pub(super) fn check_launch(entry: &Entry, launch: &Launch) -> Result<Vec<u8>, Box<Report>> {
    let threads = volume(launch.block).filter(|n| *n <= MAX_THREADS);
    let Some(threads) = threads else {
        return Err(Report::launch(format!("a block of {:?} threads is not possible", launch.block)));
    };
    if volume(launch.grid).is_none_or(|n| n > 1 << 40) {
        return Err(Report::launch(format!("a grid of {:?} blocks is not possible", launch.grid)));
    }
    if let Some(max) = entry.max_threads
        && volume(max).is_some_and(|max| threads > max)
    {
        return Err(Report::launch(format!("the kernel takes at most {max:?} threads, got {:?}", launch.block)));
    }
    if let Some(required) = entry.required_threads
        && required != launch.block
    {
        return Err(Report::launch(format!("the kernel needs {required:?} threads, got {:?}", launch.block)));
    }
    let shared = entry.static_bytes + u64::from(launch.dynamic_smem);
    if shared > MAX_SHARED {
        return Err(Report::launch(format!("{shared} bytes of shared memory are more than any device has")));
    }
    check_state(entry, launch, 1)?;
    if launch.params.len() != entry.params.len() {
        let (want, got) = (entry.params.len(), launch.params.len());
        return Err(Report::launch(format!("the kernel takes {want} parameters, got {got}")));
    }
    let mut params = vec![0; entry.param_bytes as usize];
    for (i, (place, bytes)) in entry.params.iter().zip(&launch.params).enumerate() {
        if place.bytes != bytes.len() as u64 {
            let message = format!("parameter {i} has {} bytes, got {}", place.bytes, bytes.len());
            return Err(Report::launch(message));
        }
        let start = place.offset as usize;
        params[start..start + bytes.len()].copy_from_slice(bytes);
    }
    Ok(params)
}

/// Checks that this number of concurrent blocks fits host memory.
fn check_state(entry: &Entry, launch: &Launch, blocks: u64) -> Result<(), Box<Report>> {
    let threads = volume(launch.block).unwrap_or(1).saturating_mul(blocks);
    let registers = entry.n32 as u64 * 132 + entry.n64 as u64 * 260;
    let state = (registers * threads.div_ceil(32)).saturating_add(entry.local_bytes.saturating_mul(threads));
    if state > MAX_STATE {
        let whose = if blocks == 1 { "a block" } else { "a cluster" };
        return Err(Report::launch(format!("the threads of {whose} would need {state} bytes of registers and stack")));
    }
    Ok(())
}

/// The order of the blocks, computed on demand because there may be many.
pub(super) struct BlockOrder {
    n: u64,
    pub(super) order: Order,
    /// A multiplier coprime to `n`, and an offset.
    step: u64,
    shift: u64,
}

pub(super) fn block_order(n: u64, options: &Options) -> BlockOrder {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut rng = Rng::new(options.seed, n);
    let mut step = 1 + rng.below(1 << 30) as u64 % n;
    while gcd(step, n) != 1 {
        step += 1;
    }
    BlockOrder { n, order: options.order, step, shift: rng.below(1 << 30) as u64 }
}

impl BlockOrder {
    pub(super) fn at(&self, i: u64) -> u64 {
        match self.order {
            Order::Forward => i,
            Order::Reverse => self.n - 1 - i,
            Order::Seeded => {
                ((u128::from(i) * u128::from(self.step) + u128::from(self.shift)) % u128::from(self.n)) as u64
            }
        }
    }
}

/// The shape of the clusters of a launch.
fn check_cluster(
    program: &Program,
    entry: &Entry,
    launch: &Launch,
    options: &Options,
) -> Result<[u32; 3], Box<Report>> {
    let cluster = match (options.cluster, entry.cluster) {
        (Some(asked), Some(required)) if asked != required => {
            let message = format!("the kernel needs clusters of {required:?} blocks, the launch requests {asked:?}");
            return Err(Report::launch(message));
        }
        (asked, required) => asked.or(required).unwrap_or([1; 3]),
    };
    if entry.explicit_cluster && options.cluster.is_none() && entry.cluster.is_none() {
        return Err(Report::launch("the kernel has `.explicitcluster`: the launch must say how large clusters are"));
    }
    let Some(blocks) = volume(cluster).filter(|n| *n <= 16) else {
        return Err(Report::launch(format!("a cluster of {cluster:?} blocks: 1 to 16 are possible")));
    };
    if blocks == 1 {
        return Ok([1; 3]);
    }
    if target_generation(program.target())? < Generation::Hopper {
        return Err(Report::launch(format!("clusters need sm_90, the module is for {}", program.target())));
    }
    if let Some(most) = entry.max_cluster_rank.filter(|most| blocks > u64::from(*most)) {
        return Err(Report::launch(format!("the kernel takes clusters of at most {most} blocks, got {blocks}")));
    }
    if (0..3).any(|axis| !launch.grid[axis].is_multiple_of(cluster[axis])) {
        let message = format!("a grid of {:?} blocks cannot be divided into clusters of {cluster:?}", launch.grid);
        return Err(Report::launch(message));
    }
    check_state(entry, launch, blocks)?;
    Ok(cluster)
}
