//! Data races by happens-before (oracle A).
//!
//! Every agent (warp, copy engine or asynchronous operation) of a block has a clock. For every other agent it keeps the
//! clock up to which that agent's accesses happen before its own ([`clocks`]). Barriers, mbarriers and ordered atomics
//! pass these clocks on. Every word remembers its last writer and the readers since ([`shadow_cell`]); an access that is not
//! ordered after them is a race. A word that is accessed in parts is remembered byte by byte until the next write of
//! the whole word.
//!
//! An asynchronous copy is an access of its own. Its writes are ordered before nothing until its thread waits for it,
//! or its mbarrier completes. From then on they count as writes of that thread, or of the warp's copy engine, which the
//! waiters of the mbarrier synchronise with.
//!
//! Accesses that a strong write replaces in the shadow word are kept separately ([`replaced_accesses`]).
//!
//! [`lockstep`] reports strong accesses that are correct only if the lanes of a warp run in lockstep.
//!
//! Strong accesses to words used as flags release and acquire ([`flags`] within the block, [`block_sync`] between blocks).
//!
//! Global memory is treated alike within a block ([`global`]). The clocks of a block do not cover other blocks:
//! accesses of different blocks are compared when all blocks have ended ([`grid`]). The engine reads the source of an
//! asynchronous copy until its thread has waited.
//!
//! Operations of the async proxy have agents of their own ([`proxy`]). A block of a cluster ends only when the other
//! blocks no longer access its shared memory ([`exits`]).
//!
//! For the executed path the verdict does not depend on the order in which the scheduler ran the warps.

mod access;
mod access_units;
mod async_agents;
mod block;
mod block_sync;
mod clock_front;
mod clocks;
mod exits;
mod flags;
mod global;
mod grid;
mod lockstep;
mod packed_access;
mod page_summary;
mod proxy;
mod replaced_accesses;
mod shadow_cell;
mod shared;
#[cfg(test)]
mod tests;

pub(crate) use access::{Conflict, Issuer, Strength};
pub(crate) use async_agents::{Slot, quarter, slots};
pub(crate) use block::Races;
pub(crate) use block_sync::Logs;
pub(crate) use clock_front::Known;
pub(crate) use clocks::Scope;
pub(crate) use flags::FlagAccess;
pub(crate) use grid::{Grid, Side};
pub(crate) use lockstep::Step as LockStep;
pub(crate) use proxy::ProxyError;
