//! The simulator's counts against a GPU's counters.
//!
//! `launches` lists kernels whose counts are worth comparing, `metrics` says which counter of Nsight Compute (`ncu`) holds
//! which count, `csv` reads what `ncu --csv --page raw` writes, `compare` sets one beside the other.
//! `scripts/ncu_counters.sh` runs all of it.

pub mod compare;
pub mod csv;
pub mod launches;
pub mod metrics;

#[cfg(test)]
mod tests;
