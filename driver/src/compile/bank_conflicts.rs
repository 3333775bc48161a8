//! Bank conflicts of the code: wavefronts of shared memory beyond those that the widths of accesses need, by statement.

use tilec_ir::diag::Span;
use tilec_ir::kernel::Kernel;
use tilec_passes::choose::Prediction;
use tilec_ptx::report::{Report, SharedReport};

/// Conflicts of a statement of the source at a buffer.
pub(super) struct Conflict {
    pub(super) span: Span,
    pub(super) buffer: String,
    pub(super) store: bool,
    /// Wavefronts of an access by those of its width: of the worst one.
    pub(super) times: f64,
    /// Wavefronts beyond those of a block, over all of its warps.
    pub(super) wavefronts: f64,
}

/// The conflicts of a block: of copies, and of loads of operands of products. Most first.
pub(super) fn of_block(k: &Kernel, report: &Report, p: &Prediction) -> Vec<Conflict> {
    let runs = tilec_passes::choose::runs(k, &p.sizes);
    let mut all: Vec<Conflict> = Vec::new();
    for access in report.shared.iter().filter(|s| s.conflicts() > 0) {
        let Some(runs) = access.stmt.and_then(|s| runs.get(&s)) else { continue };
        let (times, wavefronts) = (times(access), runs.warps * f64::from(access.all_conflicts()));
        let same = |c: &&mut Conflict| (c.span, c.store, &c.buffer) == (access.span, access.store, &access.buffer);
        match all.iter_mut().find(same) {
            Some(known) => (known.times, known.wavefronts) = (known.times.max(times), known.wavefronts + wavefronts),
            None => all.push(Conflict {
                span: access.span,
                buffer: access.buffer.clone(),
                store: access.store,
                times,
                wavefronts,
            }),
        }
    }
    all.sort_by(|a, b| b.wavefronts.total_cmp(&a.wavefronts));
    all
}

fn times(access: &SharedReport) -> f64 {
    f64::from(access.wavefronts) / f64::from(access.ideal_wavefronts.max(1))
}
