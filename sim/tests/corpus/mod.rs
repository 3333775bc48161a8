//! The corpus of CUDA kernels: one table of what to launch, on what data, and what must come out.
//!
//! The kernels are `data/cuda/*.cu`, compiled to PTX by `scripts/nvrtc_corpus.sh`. The table is read by the tests of the
//! simulator and by `cuda_corpus`, which runs the same launches on a GPU. References are computed here, without the simulator.

mod case;
pub mod data;
mod gemm;
mod moves;
mod probes;
mod reductions;
mod scalar;
mod wrong;

pub use case::{Agreement, Case, Expect, Output, Param};

/// Every launch of the corpus.
pub fn all() -> Vec<Case> {
    let mut all = gemm::cases();
    all.extend(reductions::cases());
    all.extend(moves::cases());
    all.extend(scalar::cases());
    all.extend(probes::cases());
    all.extend(wrong::cases());
    all
}
