//! Predictions, refined by what the emitter says of the code.

use super::{attribution, bank_conflicts};
use tilec_ir::kernel::Kernel;
use tilec_passes::Options;
use tilec_passes::choose::{Card, Learned, Prediction, Waits, launched, runs};
use tilec_passes::timeline::{self, AwaitedLoads};
use tilec_ptx::report::Report;

/// The share of a launch from which on it counts that iterations wait for loads.
const COUNTS: f64 = 0.01;

/// Refines the prediction of a kernel; returns the loads by threads that iterations of its loops wait for, unless other
/// work hides that.
pub(super) fn refine(p: Option<&mut Prediction>, k: &Kernel, options: &Options, report: &Report) -> Vec<AwaitedLoads> {
    let awaited = timeline::awaited_loads(k, options);
    let Some(p) = p else { return awaited };
    let issued: f64 = attribution::issued(k, report, p).iter().map(|(_, n)| n).sum();
    let conflicts: f64 = bank_conflicts::of_block(k, report, p).iter().map(|c| c.wavefronts).sum();
    // With products a block of the model is a tile of the result.
    let unknown = if p.flops > 0.0 { 0.0 } else { p.blocks };
    let blocks = launched(k, &p.sizes).unwrap_or(unknown);
    let waits = waits(p, k, blocks, &awaited);
    let learned = Learned { issued: blocks * issued, conflicts: blocks * conflicts, waits };
    p.learn(|place| attribution::times(report, place), &learned);
    if p.awaited > COUNTS * p.seconds { awaited } else { Vec::new() }
}

/// What the blocks of a multiprocessor wait for loads by threads.
fn waits(p: &Prediction, k: &Kernel, blocks: f64, awaited: &[AwaitedLoads]) -> Waits {
    let Some(card) = Card::from_name(p.card) else { return Waits::default() };
    let runs = runs(k, &p.sizes);
    let clocks = |own: &AwaitedLoads| runs.get(&own.stmt).map_or(0.0, |runs| runs.times * own.waits as f64);
    let each = blocks / f64::from(card.sms);
    // A persistent grid may have fewer blocks than are resident.
    let resident = (p.resident as f64).min(each.ceil()).max(1.0);
    Waits { clocks: each * awaited.iter().map(clocks).sum::<f64>(), resident }
}
