//! The simulator's counts compared with a GPU's counters.
//!
//! `launches` lists kernels whose counts are worth comparing, `metrics` maps counters of Nsight Compute (`ncu`) to
//! counts, `csv` reads the output of `ncu --csv --page raw`, `compare` compares both. `scripts/ncu_counters.sh` runs
//! all of it.

pub mod compare;
pub mod csv;
pub mod launches;
pub mod metrics;

#[cfg(test)]
mod tests;
