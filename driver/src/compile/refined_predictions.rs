//! Predictions, refined by what the emitter says of the code.

use super::{attribution, bank_conflicts};
use tilec_ir::kernel::Kernel;
use tilec_ir::target::WARP;
use tilec_passes::Options;
use tilec_passes::choose::{
    BlockTime, Card, Launched, Learned, LoopTime, Prediction, Predictor, Waits, launched, most_on_multiprocessor, runs,
};
use tilec_passes::occupancy::Occupancy;
use tilec_passes::timeline::{self, AwaitedLoads};
use tilec_ptx::report::Report;

/// The share of a launch from which on it counts that iterations wait for loads.
const COUNTS: f64 = 0.01;

/// Refines the prediction of a kernel; returns the loads by threads that iterations of its loops wait for, unless other
/// work hides that.
///
/// `by_clock`: the prediction is by the clock of the roles, which has these waits.
pub(super) fn refine(
    p: Option<&mut Prediction>,
    k: &Kernel,
    options: &Options,
    (report, by_clock): (&Report, bool),
) -> Vec<AwaitedLoads> {
    let awaited = timeline::awaited_loads(k, options);
    let Some(p) = p else { return awaited };
    let issued: f64 = attribution::issued(k, report, p).iter().map(|(_, n)| n).sum();
    let f32_arithmetic: f64 = attribution::f32_arithmetic(k, report, p).iter().map(|(_, n)| n).sum();
    let conflicts: f64 = bank_conflicts::of_block(k, report, p).iter().map(|c| c.wavefronts).sum();
    // With products a block of the model is a tile of the result.
    let unknown = if p.flops > 0.0 { 0.0 } else { p.blocks };
    let blocks = launched(k, &p.sizes).unwrap_or(unknown);
    let waits = waits(p, k, blocks, &awaited);
    let added = if by_clock { Waits::default() } else { waits };
    let learned = Learned {
        // Blocks that share a tile are more than tiles.
        blocks: blocks.max(p.blocks),
        warps: f64::from(report.threads.div_ceil(WARP)),
        issued: blocks * issued,
        f32_arithmetic: blocks * f32_arithmetic,
        conflicts: blocks * conflicts,
        waits: added,
    };
    p.learn(|place| attribution::times(report, place), &learned);
    if by_clock {
        p.has_waits(waits);
    }
    if p.awaited > COUNTS * p.seconds { awaited } else { Vec::new() }
}

/// The prediction of a kernel with written roles, from its code. `model`: the kernel in front of the passes.
///
/// # Errors
/// Why there is none.
pub(super) fn of_roles(
    model: &Kernel,
    k: &Kernel,
    options: &Options,
    report: &Report,
) -> Result<(Prediction, BlockTime), String> {
    let predictor = Predictor::new(model, options);
    let predictor = predictor.ok_or_else(|| Predictor::unseen(model, options).unwrap_or_default())?;
    let sizes = predictor.sizes();
    let unknown = predictor.unknown_loop().is_some();
    let block = timeline::block_time(k, options, &sizes, unknown)
        .ok_or_else(|| "how often loops of its roles run is not known, or they do not end".to_owned())?;
    let blocks = launched(k, &sizes).ok_or_else(|| "the grid depends on values of the launch".to_owned())?;
    let threads = u64::from(report.threads);
    let room = Occupancy::new(options.target, threads, report.estimated_registers.into(), report.smem_bytes).resident();
    let most = most_on_multiprocessor(k, options.usual_card()).unwrap_or(u64::MAX);
    let of = Launched { blocks, resident: room.min(most), threads, registers: 0, shared: report.smem_bytes };
    Ok((predictor.of_roles(&block, &of), block))
}

/// What an iteration of the loops takes that run as often as data say, by the clock of a block alone.
pub(super) fn open_loops(p: Option<&Prediction>, k: &Kernel, options: &Options) -> Vec<LoopTime> {
    let Some((p, of)) = p.and_then(|p| Some((p, p.unknown?))) else { return Vec::new() };
    let loops = timeline::block_time(k, options, &p.sizes, true).map_or_else(Vec::new, |block| block.loops);
    let own = |time: &LoopTime| of.span.start <= time.variable.start && time.variable.end <= of.span.end;
    loops.into_iter().filter(|time| own(time) && time.clocks > 0.0).collect()
}

/// What the blocks of a multiprocessor wait for loads by threads.
fn waits(p: &Prediction, k: &Kernel, blocks: f64, awaited: &[AwaitedLoads]) -> Waits {
    let Some(card) = Card::from_name(p.card) else { return Waits::default() };
    let runs = runs(k, &p.sizes);
    let clocks = |own: &AwaitedLoads| runs.get(&own.stmt).map_or(0.0, |runs| runs.times * own.waits as f64);
    let each = blocks / f64::from(card.sms);
    // A persistent grid may have fewer blocks than are resident.
    let resident = (p.resident as f64).min(each.ceil()).max(1.0);
    // A multiprocessor with a block waits for all of it.
    Waits { clocks: each.max(1.0) * awaited.iter().map(clocks).sum::<f64>(), resident }
}

#[cfg(test)]
mod tests {
    use super::of_roles;
    use crate::compile::{CompileOptions, compile};
    use tilec_ir::target::Target;

    /// Seconds that the clock of the roles predicts for an example whose roles the compiler makes.
    fn predicted(name: &str, values: &[(&str, &str)], sizes: &[(&str, i64)]) -> f64 {
        let path = format!("{}/../examples/{name}", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).expect("an example");
        let options = CompileOptions {
            target: Target::Sm90a,
            defines: values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            sizes: vec![sizes.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect()],
            ..CompileOptions::default()
        };
        let program = compile(&source, &options).expect("it compiles");
        let own = &program.kernels[0];
        let of = of_roles(&own.tile.model, &own.tile.kernel, own.tile.pass_options(), &own.lowered);
        of.expect("a prediction").0.seconds
    }

    /// What was measured on an H200 (docs/performance.md), in microseconds, of kernels whose roles the compiler makes: the
    /// clock of roles knows nothing of who wrote them.
    #[test]
    fn the_clock_of_roles_agrees_with_measurements() {
        let near = |is: f64, measured: f64| {
            let us = 1e6 * is;
            assert!((us / measured - 1.0).abs() < 0.11, "{us:.1} us, and {measured} were measured");
        };
        let attention = |d: &str, l: i64, z: i64, h: i64| {
            predicted("attention.tile", &[("T", "bf16"), ("D", d)], &[("L", l), ("Z", z), ("H", h)])
        };
        near(attention("128", 8192, 2, 16), 1702.0);
        near(attention("128", 2048, 8, 16), 454.0);
        near(attention("64", 8192, 2, 32), 2065.0);
        near(attention("256", 8192, 2, 8), 1474.0);
    }
}
