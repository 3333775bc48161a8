//! Tests of the simulator from outside, one program: what links is what takes the time.

mod addresses;
mod behaviour;
mod blame;
mod calls;
mod clusters;
mod constants;
mod conversions;
pub mod corpus;
mod cuda;
mod flags;
mod gemm;
mod global_races;
mod hopper;
mod hopper_gemm;
mod hostile;
mod instructions;
mod lockstep;
mod mbarrier;
mod ordering;
mod partial;
mod permissions;
mod progress;
mod same_value;
mod verdicts;
mod waits;
mod wgmma;
mod wmma;
