//! Number of stages that the model would choose if the schedule did not fix one stage.

use super::prediction::Prediction;
use super::predictor::Predictor;
use crate::Options;
use crate::single_stage::Depth;
use tilec_ir::diag::Span;
use tilec_ir::kernel::Kernel;

/// Numbers of stages to try, first the default.
const TRIED: [i64; 3] = [2, 3, 4];

/// The relative time below which a number of stages counts as faster than the default.
const FASTER: f64 = 0.98;

/// Compares other numbers of stages with the single stage that the schedule requests, starting from the prediction `p`.
/// `None`: the schedule requests none, or nothing is predicted.
pub fn depth(kernel: &Kernel, options: &Options, p: &Prediction) -> Option<Depth> {
    kernel.schedule.stages?;
    if Predictor::new(kernel, options)?.stages() != Some(1) {
        return None;
    }
    let mut deeper = kernel.clone();
    let mut best: Option<(Option<i64>, f64)> = None;
    for stages in std::iter::once(None).chain(TRIED.map(Some)) {
        deeper.schedule.stages = stages.map(|n| deeper.int(n, Span::default()));
        let Some(then) = Predictor::new(&deeper, options).and_then(|p| p.predict()) else { continue };
        if best.is_none_or(|(_, least)| then.seconds < FASTER * least) {
            best = Some((stages, then.seconds));
        }
    }
    let (stages, seconds) = best?;
    let [with, now] = [seconds, p.seconds].map(|s| 1e6 * s);
    if seconds >= p.seconds {
        return Some(Depth::NoGain(format!(
            "the model predicts no gain of more: {now:.1} us with one, {with:.1} us with more"
        )));
    }
    let what = stages.map_or("leave `stages` out".to_owned(), |n| format!("write `stages {n}`"));
    Some(Depth::Write(format!("{what}: the model predicts {with:.1} us in place of {now:.1} us")))
}
