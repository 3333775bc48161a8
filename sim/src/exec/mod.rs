//! Execution of a launch: blocks, their warps, and the scheduler (see [`crate::Device::run`]).
//!
//! A block is a plain state machine. The scheduler runs one warp until it blocks at a synchronising instruction, ends,
//! or has used its turn, then picks another by a seeded generator. The blocks of a cluster are one such machine
//! ([`cluster`]). Blocks are independent of each other and may run on several host threads. Of their errors, the one of
//! the first block in launch order is reported, so that results do not depend on the host. Blocks of a kernel with
//! loops that may wait for other blocks take turns on one host thread ([`resident`]).

mod absent;
mod access;
mod assertion;
pub(crate) mod asynchronous;
mod atomic;
mod barriers;
mod blame;
pub(crate) mod bulk;
mod chance;
mod cluster;
mod collective;
mod compute;
mod copy;
mod cta;
mod fail;
mod flying;
mod global;
mod grids;
pub(crate) mod lanewise;
mod launch;
mod lockstep;
pub(crate) mod mbarrier;
pub(crate) mod mma;
mod next;
mod options;
mod origin;
mod partial;
mod products;
mod rare;
mod registers;
mod resident;
mod schedule;
mod scratch;
mod step;
mod strong;
mod stuck;
mod sync;
mod transfer;
mod warp;
mod watch;
pub(crate) mod wgmma;
pub(crate) mod wmma;

pub use cta::BLOCKS_APART;
pub use options::{Launch, Options, Order};
