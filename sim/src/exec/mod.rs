//! Execution of a launch: blocks, their warps, and the scheduler (see [`Device::run`]).
//!
//! A block is a plain state machine. The scheduler runs one warp until it blocks at a synchronising instruction, ends, or
//! has used its turn, then picks another by a seeded generator. Blocks are independent of each other and may run on several
//! host threads; of their errors the one of the lowest block in launch order is reported, so that a result does not depend
//! on the host.

mod access;
pub(crate) mod asynchronous;
mod blame;
mod collective;
pub(crate) mod convert;
mod copy;
pub(crate) mod mbarrier;
pub(crate) mod mma;
mod scratch;
mod step;
mod sync;
mod warp;
pub(crate) mod wmma;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::counters::{Banks, Counters, Counts, merge};
use crate::memory::Device;
use crate::numerics::mma::Generation;
use crate::program::{Entry, Program};
use crate::progress::Progress;
use crate::race::{Conflict, Grid, Races, Side};
use crate::report::{Place, Report, ReportKind};
use asynchronous::Landing;
use scratch::Scratch;
use warp::{Shape, Wait, Warp, thread_of};

/// Instructions a warp may execute before another gets its turn, so that a warp that spins does not starve the others.
const TURN: u32 = 1 << 14;
/// Times that all fragments may look at their mbarriers in vain, while nothing else happens, before that is a deadlock.
const MAX_POLLS: u32 = 1 << 9;
/// Threads of a block.
const MAX_THREADS: u64 = 1024;
/// Shared memory of a block, static and dynamic: the most any device lends (227 KiB).
const MAX_SHARED: u64 = 227 << 10;

/// Registers and local memory of a block, in bytes of the host.
const MAX_STATE: u64 = 256 << 20;

/// In which order blocks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By increasing index.
    #[default]
    Forward,
    /// By decreasing index.
    Reverse,
    /// Shuffled by the seed.
    Seeded,
}

/// How to execute.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of the scheduler.
    pub seed: u64,
    /// Order of the blocks.
    pub order: Order,
    /// Host threads that share the blocks.
    pub threads: usize,
    /// Warp instructions each block may execute.
    pub fuel: u64,
    /// Whose matrix arithmetic to imitate; by default the generation of the module's target.
    pub generation: Option<Generation>,
    /// When asynchronous copies land.
    pub landing: Landing,
    /// For a thread that watches the launch or ends it.
    pub progress: Option<Arc<Progress>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            order: Order::Forward,
            threads: 1,
            fuel: 1 << 32,
            generation: None,
            landing: Landing::Early,
            progress: None,
        }
    }
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name of the kernel.
    pub entry: String,
    /// Blocks (x, y, z).
    pub grid: [u32; 3],
    /// Threads of a block (x, y, z).
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_smem: u32,
    /// The parameters in order, each as the little-endian bytes of its declared type.
    pub params: Vec<Vec<u8>>,
}

/// An error inside an instruction, before it knows its place.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub(crate) kind: ReportKind,
    pub(crate) message: String,
    pub(crate) lane: Option<usize>,
    pub(crate) address: Option<u64>,
    pub(crate) other: Option<Conflict>,
}

impl Fail {
    pub(crate) fn new(kind: ReportKind, message: impl Into<String>) -> Box<Fail> {
        Box::new(Fail { kind, message: message.into(), lane: None, address: None, other: None })
    }

    pub(crate) fn at(mut self: Box<Fail>, lane: usize) -> Box<Fail> {
        self.lane = Some(lane);
        self
    }

    pub(crate) fn address(mut self: Box<Fail>, address: u64) -> Box<Fail> {
        self.address = Some(address);
        self
    }
}

pub(crate) type Step = Result<(), Box<Fail>>;

/// A block while it runs; its warps are kept beside it.
pub(crate) struct Cta<'a> {
    pub(crate) device: &'a Device,
    pub(crate) program: &'a Program,
    pub(crate) entry: &'a Entry,
    pub(crate) params: &'a [u8],
    pub(crate) lock: &'a Mutex<()>,
    /// Counts the moments at which blocks meet.
    pub(crate) moments: &'a Grid,
    /// Who compares what blocks did, if there are several.
    pub(crate) grid: Option<&'a Grid>,
    /// Which block it is.
    pub(crate) block: u64,
    pub(crate) shape: Shape,
    pub(crate) shared: Scratch,
    pub(crate) locals: Vec<Scratch>,
    pub(crate) races: Races,
    /// Which warps have executed a fence: their atomics order other accesses.
    pub(crate) fenced: Vec<bool>,
    pub(crate) barriers: [sync::Barrier; 16],
    pub(crate) counts: &'a mut [Counts],
    pub(crate) banks: Banks,
    pub(crate) fuel: u64,
    pub(crate) generation: Generation,
    pub(crate) landing: Landing,
    progress: Option<&'a Progress>,
    /// mbarrier objects by their address.
    pub(crate) mbarriers: BTreeMap<u32, mbarrier::Object>,
    /// Phases that have just completed.
    pub(crate) completed: Vec<u32>,
    /// Changes of mbarriers so far.
    pub(crate) mbarrier_events: u64,
    /// Arrivals that wait for copies.
    pub(crate) arrivals: VecDeque<asynchronous::Arrival>,
    seq: u32,
}

/// A small generator (xorshift64*): the scheduler needs variety, not quality.
#[derive(Clone, Copy, Debug)]
struct Rng(u64);

impl Rng {
    fn new(seed: u64, block: u64) -> Rng {
        Rng((seed ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let r = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        (r % (n as u64).max(1)) as usize
    }
}

/// Lets every fragment look again that waits for a phase; whether there is one.
fn wake_all(warps: &mut [Warp]) -> bool {
    let mut any = false;
    for frag in warps.iter_mut().flat_map(|w| &mut w.frags) {
        if matches!(frag.wait, Wait::Poll { .. }) {
            frag.wait = Wait::Ready;
            any = true;
        }
    }
    any
}

fn volume(dims: [u32; 3]) -> Option<u64> {
    dims.iter().try_fold(1u64, |n, d| n.checked_mul(u64::from(*d))).filter(|n| *n > 0)
}

impl Device {
    /// Executes a launch to its end and gives its counts.
    ///
    /// Global memory keeps what was stored, also after an error. Variables of the module start from their initial values at
    /// every launch. Atomic float additions of different blocks happen in an order that depends on the host when
    /// `options.threads` is above one; everything else does not.
    ///
    /// # Errors
    /// At the first thing the program does that PTX leaves undefined, at a deadlock, or when the fuel is spent.
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
        let blocks = volume(launch.grid).expect("the launch was checked");
        let order = block_order(blocks, options);
        let device = &*self;
        let lock = Mutex::new(());
        let grid = Grid::default();
        let next = AtomicUsize::new(0);
        let first_error = AtomicUsize::new(usize::MAX);
        let worker = || {
            let mut counts = vec![Counts::default(); entry.code.len()];
            let mut error = None;
            loop {
                let i = next.fetch_add(1, Relaxed);
                if i as u64 >= blocks || i > first_error.load(Relaxed) {
                    break;
                }
                let block = order.at(i as u64);
                let mut cta = Cta::new(
                    device,
                    program,
                    entry,
                    &params,
                    &lock,
                    &grid,
                    launch,
                    options,
                    generation,
                    block,
                    &mut counts,
                );
                if let Err(report) = cta.run(&mut Rng::new(options.seed, block)) {
                    first_error.fetch_min(i, Relaxed);
                    error = Some((i, report));
                    break;
                }
                if let Some(progress) = &options.progress {
                    progress.block_done();
                }
            }
            (counts, error)
        };
        let threads = options.threads.clamp(1, 64);
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
                Some((address, one, other)) => Err(between_blocks(program, entry, launch, address, one, other)),
                None => Ok(Counters::new(program, entry, &counts)),
            },
        }
    }
}

/// The report of a race between two blocks.
fn between_blocks(
    program: &Program,
    entry: &Entry,
    launch: &Launch,
    address: u64,
    one: Side,
    other: Side,
) -> Box<Report> {
    let place = |side: Side| {
        let inst = &entry.code[(side.pc as usize).min(entry.code.len() - 1)];
        Place {
            ptx_line: inst.line,
            instruction: entry.names[inst.name as usize].clone(),
            source: program.source(inst.loc),
            thread: thread_of(launch.block, side.thread),
        }
    };
    let verb = |side: Side| if side.wrote { "write" } else { "read" };
    let [x, y, z] = position(launch.grid, other.block);
    let message = format!(
        "this {} of global address {address:#x} and a {} by block ({x}, {y}, {z}) are not ordered: blocks run in any order",
        verb(one),
        verb(other)
    );
    Box::new(Report {
        kind: ReportKind::Race,
        message,
        place: Some(place(one)),
        other: Some(place(other)),
        block: position(launch.grid, one.block),
        address: Some(address),
    })
}

fn target_generation(target: &str) -> Result<Generation, Box<Report>> {
    let digits = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let sm = digits.parse().ok().and_then(Generation::of_sm);
    sm.ok_or_else(|| Report::launch(format!("no device of target `{target}` is known: name a generation")))
}

/// Checks the launch against the kernel and lays the parameters out.
fn check_launch(entry: &Entry, launch: &Launch) -> Result<Vec<u8>, Box<Report>> {
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
    let shared = entry.shared_bytes + u64::from(launch.dynamic_smem);
    if shared > MAX_SHARED {
        return Err(Report::launch(format!("{shared} bytes of shared memory are more than any device has")));
    }
    let registers = entry.n32 as u64 * 132 + entry.n64 as u64 * 260;
    let state = (registers * threads.div_ceil(32)).saturating_add(entry.local_bytes.saturating_mul(threads));
    if state > MAX_STATE {
        return Err(Report::launch(format!("the threads of a block would need {state} bytes of registers and stack")));
    }
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

/// The order of the blocks, computed and not stored: there may be many.
struct BlockOrder {
    n: u64,
    order: Order,
    /// A multiplier prime to `n`, and a shift.
    step: u64,
    shift: u64,
}

fn block_order(n: u64, options: &Options) -> BlockOrder {
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
    fn at(&self, i: u64) -> u64 {
        match self.order {
            Order::Forward => i,
            Order::Reverse => self.n - 1 - i,
            Order::Seeded => {
                ((u128::from(i) * u128::from(self.step) + u128::from(self.shift)) % u128::from(self.n)) as u64
            }
        }
    }
}

fn position(grid: [u32; 3], block: u64) -> [u32; 3] {
    let (x, y) = (u64::from(grid[0]), u64::from(grid[1]));
    [(block % x) as u32, (block / x % y) as u32, (block / x / y) as u32]
}

impl<'a> Cta<'a> {
    #[expect(clippy::too_many_arguments, reason = "called once: each is a part of the launch")]
    fn new(
        device: &'a Device,
        program: &'a Program,
        entry: &'a Entry,
        params: &'a [u8],
        lock: &'a Mutex<()>,
        grid: &'a Grid,
        launch: &Launch,
        options: &'a Options,
        generation: Generation,
        block: u64,
        counts: &'a mut [Counts],
    ) -> Cta<'a> {
        let threads = volume(launch.block).unwrap_or(1) as usize;
        let warps = threads.div_ceil(32);
        let shared_bytes = entry.shared_bytes + u64::from(launch.dynamic_smem);
        let locals = if entry.local_bytes == 0 { 0 } else { warps * 32 };
        Cta {
            device,
            program,
            entry,
            params,
            lock,
            moments: grid,
            grid: Some(grid).filter(|_| volume(launch.grid) != Some(1)),
            block,
            shape: Shape {
                block: launch.block,
                grid: launch.grid,
                index: position(launch.grid, block),
                dynamic: launch.dynamic_smem,
                shared: shared_bytes as u32,
            },
            shared: Scratch::new(shared_bytes),
            locals: vec![Scratch::new(entry.local_bytes); locals],
            races: Races::new(warps, shared_bytes as usize),
            fenced: vec![false; warps],
            barriers: Default::default(),
            counts,
            banks: Banks::new(entry.code.len()),
            fuel: options.fuel,
            generation,
            landing: options.landing,
            progress: options.progress.as_deref(),
            mbarriers: BTreeMap::new(),
            completed: Vec::new(),
            mbarrier_events: 0,
            arrivals: VecDeque::new(),
            seq: 0,
        }
    }

    pub(crate) fn next_seq(&mut self) -> u32 {
        self.seq = self.seq.wrapping_add(1);
        self.seq
    }

    fn run(&mut self, rng: &mut Rng) -> Result<(), Box<Report>> {
        let threads = volume(self.shape.block).unwrap_or(1) as u32;
        let n = threads.div_ceil(32) as usize;
        let mut warps: Vec<Warp> = (0..n).map(|i| Warp::new(self.entry, i, threads, &self.shape)).collect();
        let mut ready: Vec<usize> = Vec::with_capacity(n);
        let (mut rounds, mut seen) = (0, (0, 0));
        loop {
            ready.clear();
            ready.extend((0..n).filter(|i| warps[*i].frags.iter().any(|f| f.wait == Wait::Ready)));
            if !ready.is_empty() {
                let pick = ready[rng.below(ready.len())];
                if self.progress.is_some_and(Progress::is_cancelled) {
                    return Err(self.cancelled(&warps[pick]));
                }
                if let Err(report) = self.turn(&mut warps, pick) {
                    return Err(self.blame(&mut warps, pick, report, rng));
                }
                continue;
            }
            let mut moved = self.release_barriers(&mut warps);
            for warp in &mut warps {
                moved |= warp.converge() | self.converge_warp_barriers(warp);
            }
            if moved {
                continue;
            }
            if warps.iter().all(|w| w.frags.is_empty()) {
                return self.finish(&mut warps);
            }
            // Nobody can go on without a copy engine: it is as late as it gets.
            if let Some(arrival) = self.arrivals.pop_front() {
                self.arrive_late(&mut warps, arrival)?;
                continue;
            }
            // Waits at mbarriers are loops of the program, which may do something else after so many turns.
            let state = (self.mbarrier_events, self.seq);
            rounds = if state == seen { rounds + 1 } else { 0 };
            seen = state;
            if rounds > MAX_POLLS || !wake_all(&mut warps) {
                return Err(self.stuck(&warps));
            }
        }
    }

    /// What was never waited for lands at the end of the kernel.
    fn finish(&mut self, warps: &mut [Warp]) -> Result<(), Box<Report>> {
        while let Some(arrival) = self.arrivals.pop_front() {
            self.arrive_late(warps, arrival)?;
        }
        for i in 0..warps.len() {
            if let Err((pc, fail)) = self.land_all(&mut warps[i]) {
                return Err(self.report(i, pc as usize, 1, *fail));
            }
        }
        self.races.hand_in(self.grid, self.block, true);
        Ok(())
    }

    fn arrive_late(&mut self, warps: &mut [Warp], arrival: asynchronous::Arrival) -> Result<(), Box<Report>> {
        if let Err(fail) = self.arrive_after_copies(&mut warps[arrival.warp], arrival) {
            return Err(self.report(arrival.warp, arrival.pc as usize, 1 << arrival.lane, *fail));
        }
        self.wake(warps);
        Ok(())
    }

    /// Runs one warp until none of its fragments is ready, or its turn is over.
    fn turn(&mut self, warps: &mut [Warp], pick: usize) -> Result<(), Box<Report>> {
        let mut left = TURN;
        loop {
            let warp = &mut warps[pick];
            let Some(at) = warp.frags.iter().position(|f| f.wait == Wait::Ready) else {
                if warp.converge() | self.converge_warp_barriers(warp) {
                    continue;
                }
                return Ok(());
            };
            let used = self.fragment(warp, at, left)?;
            self.release_barriers(warps);
            if !self.completed.is_empty() {
                self.wake(warps);
            }
            left = left.saturating_sub(used);
            if left == 0 {
                // Others of this warp come first next time; and who polls may wait for something other than a phase.
                warps[pick].frags.rotate_left(1);
                wake_all(warps);
                return Ok(());
            }
        }
    }

    fn cancelled(&self, warp: &Warp) -> Box<Report> {
        let (pc, mask) = warp.frags.first().map_or((0, 1), |f| (f.pc as usize, f.mask));
        self.report(warp.index, pc, mask, *Fail::new(ReportKind::Cancelled, "the launch was ended before it was done"))
    }

    /// A report of a failure in `warp` at `pc`.
    pub(crate) fn report(&self, warp: usize, pc: usize, mask: u32, fail: Fail) -> Box<Report> {
        let lane = fail.lane.unwrap_or(mask.trailing_zeros() as usize & 31);
        Box::new(Report {
            kind: fail.kind,
            message: fail.message,
            place: Some(self.place(pc, warp, lane)),
            other: fail.other.map(|c| self.place(c.pc as usize, c.warp, c.lane)),
            block: self.shape.index,
            address: fail.address,
        })
    }

    pub(crate) fn place(&self, pc: usize, warp: usize, lane: usize) -> Place {
        let inst = &self.entry.code[pc.min(self.entry.code.len() - 1)];
        Place {
            ptx_line: inst.line,
            instruction: self.entry.names[inst.name as usize].clone(),
            source: self.program.source(inst.loc),
            thread: thread_of(self.shape.block, (warp * 32 + lane) as u32),
        }
    }
}
