//! Windows that leave a tile whose extent is no power of two.
//!
//! Lowering checks windows against the extents that tiles have then ([`tilec_ir::tile_bounds`]). A padded tile is larger, and a window that leaves its
//! written extent would read the padding. So the same check is made here, before padding.

use super::pad::windows_of;
use crate::analysis::uses::all_stmts;
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::Expr;
use tilec_ir::extents::Ranges;
use tilec_ir::index::Interval;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::tile_bounds::Reach;
use tilec_ir::typing::{ViewDim, resolve_view};

/// The errors of windows with elements in front of a tile or past its written extent, along dimensions whose extent is no power of two. Starts of
/// unknown range are not judged.
pub(super) fn leaving(k: &Kernel) -> Vec<Diagnostic> {
    let ranges = Ranges::new(k);
    let mut found: Vec<Diagnostic> = Vec::new();
    for (e, shape) in all_stmts(k, k.body).into_iter().flat_map(|s| windows_of(k, s)) {
        let Some(view) = resolve_view(k, e) else { continue };
        let (ValueDef::Var(tile) | ValueDef::Smem(tile)) = &k.values[view.base].def else { continue };
        let Some(own) = k.const_shape(&tile.shape).filter(|own| own.len() == view.dims.len()) else { continue };
        let kept = view.base_dims();
        for (d, (dim, &own)) in view.dims.iter().zip(&own).enumerate() {
            let (starts, extent) = match dim {
                ViewDim::From { starts, end: None } => {
                    let at = kept.iter().position(|&kept| kept == d);
                    (starts.as_slice(), at.and_then(|at| shape.get(at)).copied())
                }
                ViewDim::Fixed(start) => (std::slice::from_ref(start), Some(1)),
                ViewDim::From { .. } | ViewDim::Gather(_) => continue,
            };
            let (Some(extent), false) = (extent, own.is_power_of_two()) else { continue };
            let Some(start) = sum(&ranges, starts) else { continue };
            let at = starts.first().map_or(k.expr_spans[e], |&start| k.expr_spans[start]);
            let error = Reach { start, extent, end: None }.error(k, (view.base, d), i128::from(own), at);
            // Unrolled statements repeat it.
            let known = |error: &Diagnostic| found.iter().any(|d| (d.span, &d.message) == (error.span, &error.message));
            let error = error.filter(|error| !known(error));
            found.extend(error);
        }
    }
    found
}

/// The range of a sum; `None`: not known.
fn sum(ranges: &Ranges<'_>, terms: &[Expr]) -> Option<Interval> {
    terms.iter().try_fold(Interval { lo: 0, hi: 0 }, |all, &e| {
        let own = ranges.of(e)?;
        Some(Interval { lo: all.lo + own.lo, hi: all.hi + own.hi })
    })
}
