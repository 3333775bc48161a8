//! Predictions, refined by what the emitter says of the code.

use super::{attribution, bank_conflicts};
use tilec_ir::kernel::Kernel;
use tilec_passes::choose::{Learned, Prediction, launched};
use tilec_ptx::report::Report;

/// Refines the prediction of a kernel.
pub(super) fn refine(p: &mut Prediction, k: &Kernel, report: &Report) {
    let issued: f64 = attribution::issued(k, report, p).iter().map(|(_, n)| n).sum();
    let conflicts: f64 = bank_conflicts::of_block(k, report, p).iter().map(|c| c.wavefronts).sum();
    // With products a block of the model is a tile of the result.
    let unknown = if p.flops > 0.0 { 0.0 } else { p.blocks };
    let blocks = launched(k, &p.sizes).unwrap_or(unknown);
    let learned = Learned { issued: blocks * issued, conflicts: blocks * conflicts };
    p.learn(|place| attribution::times(report, place), &learned);
}
