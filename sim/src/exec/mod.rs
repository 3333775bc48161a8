//! Execution of a launch: blocks, their warps, and the scheduler (see [`crate::Device::run`]).
//!
//! A block is a plain state machine. The scheduler runs one warp until it blocks at a synchronising instruction, ends,
//! or has used its turn, then picks another by a seeded generator. The blocks of a cluster are one such machine
//! ([`cluster`]). Blocks are independent of each other and may run on several host threads. Of their errors, the one of
//! the first block in launch order is reported, so that results do not depend on the host. Blocks of a kernel with
//! loops that may wait for other blocks take turns on one host thread ([`resident`]).

mod access;
mod assertion;
pub(crate) mod asynchronous;
mod atomic;
mod barriers;
pub(crate) mod bulk;
mod cluster;
mod collective;
mod compute;
mod copy;
mod cta;
mod deadlock;
mod fail;
mod global;
mod grids;
mod in_flight;
pub(crate) mod lanewise;
mod launch;
mod load_store;
mod lockstep;
pub(crate) mod mbarrier;
mod missing_arrivals;
mod missing_writer;
pub(crate) mod mma;
mod options;
mod origin;
mod outcome;
mod partial_loads;
mod polling;
mod products;
mod rare_ops;
mod registers;
mod resident;
mod rng;
mod schedule;
mod scratch;
mod step;
mod strong_access;
mod sync;
mod warp;
pub(crate) mod wgmma;
pub(crate) mod wmma;

pub use cta::BLOCKS_APART;
pub use options::{Launch, Options, Order};
