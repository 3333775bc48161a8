//! Data races by happens-before (oracle A).
//!
//! Every agent of a block has a clock, and knows of every other up to which clock that one's accesses are ordered before its
//! own ([`clocks`]). Barriers, mbarriers and ordered atomics hand such knowledge on. Every word remembers its last writer and
//! the readers since ([`cell`]); an access that is not ordered after them is a race. A word that someone accesses in parts is
//! remembered byte by byte until it is next written as a whole.
//!
//! An asynchronous copy is an access of its own: what it writes is ordered before nothing until its thread has waited, or
//! its mbarrier has. Then it counts as that thread's write at that moment, or as a write of the warp's copy engine, which
//! the waiters of the mbarrier know of.
//!
//! What a strong write pushes out of a word is kept beside it ([`hidden`]).
//!
//! Strong accesses that count on lanes in step are told from those that do not ([`lockstep`]).
//!
//! Strong accesses to words that stand as flags publish and learn ([`flags`] within the block, [`meet`] between blocks).
//!
//! Global memory is treated alike within a block ([`global`]), whose clocks say nothing about other blocks; what these do is
//! compared when all have ended ([`grid`]). The source of an asynchronous copy is read by the engine, until its thread has
//! waited.
//!
//! What works beside the warps has agents of its own ([`proxy`]); a block of a cluster ends only when others are done with it
//! ([`exits`]).
//!
//! For the executed path the verdict does not depend on the order in which the scheduler ran the warps.

mod access;
mod block;
mod cell;
mod clocks;
mod exits;
mod flags;
mod front;
mod global;
mod grid;
mod hidden;
mod lockstep;
mod meet;
mod packed;
mod proxy;
mod shared;
mod slots;
mod summary;
#[cfg(test)]
mod tests;
mod units;

pub(crate) use access::{Conflict, Strength, Who};
pub(crate) use block::Races;
pub(crate) use clocks::Scope;
pub(crate) use flags::Touch;
pub(crate) use front::Known;
pub(crate) use grid::{Grid, Side};
pub(crate) use lockstep::Step as LockStep;
pub(crate) use meet::Logs;
pub(crate) use proxy::Offence;
pub(crate) use slots::{Slot, quarter, slots};
