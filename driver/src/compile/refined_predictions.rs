//! Predictions, refined by what the emitter says of the code.

use super::{attribution, bank_conflicts};
use tilec_ir::kernel::Kernel;
use tilec_passes::Options;
use tilec_passes::choose::{Card, Learned, Prediction, launched, runs};
use tilec_passes::timeline::{self, AwaitedLoads};
use tilec_ptx::report::Report;

/// Refines the prediction of a kernel. `awaited`: the loads that its iterations wait for.
pub(super) fn refine(p: Option<&mut Prediction>, k: &Kernel, report: &Report, awaited: &[AwaitedLoads]) {
    let Some(p) = p else { return };
    let issued: f64 = attribution::issued(k, report, p).iter().map(|(_, n)| n).sum();
    let conflicts: f64 = bank_conflicts::of_block(k, report, p).iter().map(|c| c.wavefronts).sum();
    // With products a block of the model is a tile of the result.
    let unknown = if p.flops > 0.0 { 0.0 } else { p.blocks };
    let blocks = launched(k, &p.sizes).unwrap_or(unknown);
    let waiting = waiting(p, k, blocks, awaited);
    let learned = Learned { issued: blocks * issued, conflicts: blocks * conflicts, waiting };
    p.learn(|place| attribution::times(report, place), &learned);
}

/// Clocks of a multiprocessor in loops whose iterations wait for loads. Other resident blocks work meanwhile.
fn waiting(p: &Prediction, k: &Kernel, blocks: f64, awaited: &[AwaitedLoads]) -> f64 {
    let Some(card) = Card::from_name(p.card).filter(|_| !awaited.is_empty()) else { return 0.0 };
    let runs = runs(k, &p.sizes);
    let clocks = |own: &AwaitedLoads| runs.get(&own.stmt).map_or(0.0, |runs| runs.times * own.iteration as f64);
    let each = blocks / f64::from(card.sms);
    // A persistent grid may have fewer blocks than are resident.
    let resident = (p.resident as f64).min(each.ceil()).max(1.0);
    awaited.iter().map(clocks).fold(0.0, f64::max) * each / resident
}

/// The loads to registers that iterations of a kernel wait for.
pub(super) fn awaited(k: &Kernel, options: &Options) -> Vec<AwaitedLoads> {
    match timeline::may_await_loads(k) {
        true => timeline::of(k, options).map_or_else(|_| Vec::new(), |time| timeline::awaited_loads(k, &time)),
        false => Vec::new(),
    }
}
