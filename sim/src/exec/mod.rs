//! Execution of a launch: blocks, their warps, and the scheduler (see [`Device::run`]).
//!
//! A block is a plain state machine. The scheduler runs one warp until it blocks at a synchronising instruction, ends, or
//! has used its turn, then picks another by a seeded generator. Blocks are independent of each other and may run on several
//! host threads; of their errors the one of the lowest block in launch order is reported, so that a result does not depend
//! on the host.

mod access;
mod assertion;
pub(crate) mod asynchronous;
mod atomic;
mod blame;
mod collective;
pub(crate) mod convert;
mod copy;
mod global;
pub(crate) mod lanewise;
mod launch;
mod lockstep;
pub(crate) mod mbarrier;
pub(crate) mod mma;
mod schedule;
mod scratch;
mod step;
mod strong;
mod sync;
mod transfer;
mod warp;
pub(crate) mod wmma;

pub use launch::{Launch, Options, Order};
use launch::{position, volume};
use schedule::Rng;

use crate::counters::{Banks, Counters, Counts, merge};
use crate::memory::Device;
use crate::numerics::mma::Generation;
use crate::program::{Entry, Program};
use crate::progress::Progress;
use crate::race::{Conflict, Grid, Races, Side};
use crate::report::{Place, Report, ReportKind};
use asynchronous::Landing;
use scratch::Scratch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use warp::{Shape, Wait, Warp, thread_of};

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
    /// Who compares what blocks did, if there are several.
    pub(crate) grid: Option<&'a Grid>,
    /// Which block it is.
    pub(crate) block: u64,
    pub(crate) shape: Shape,
    pub(crate) shared: Scratch,
    pub(crate) locals: Vec<Scratch>,
    pub(crate) races: Races,
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
        let mut races = Races::new(warps, shared_bytes as usize);
        entry.gaps.iter().for_each(|(start, end)| races.forbid(*start as usize, *end as usize));
        Cta {
            device,
            program,
            entry,
            params,
            lock,
            grid: Some(grid).filter(|_| volume(launch.grid) != Some(1)),
            block,
            shape: Shape {
                block: launch.block,
                grid: launch.grid,
                index: position(launch.grid, block),
                dynamic: launch.dynamic_smem,
                shared: (entry.static_bytes + u64::from(launch.dynamic_smem)) as u32,
            },
            shared: Scratch::new(shared_bytes),
            locals: vec![Scratch::new(entry.local_bytes); locals],
            races,
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

    /// A report of a failure in `warp` at `pc`.
    pub(crate) fn report(&self, warp: usize, pc: usize, mask: u32, fail: Fail) -> Box<Report> {
        let lane = fail.lane.unwrap_or(mask.trailing_zeros() as usize & 31);
        Box::new(Report {
            kind: fail.kind,
            message: fail.message,
            place: Some(self.place(pc, warp, lane)),
            other: fail.other.map(|c| self.place(c.pc as usize, c.warp, c.lane)),
            other_block: None,
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
