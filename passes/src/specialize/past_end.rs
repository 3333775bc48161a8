//! Elements past the end of a tensor that enter a reduction and change its result (W0412).
//!
//! Windows read as zero past the end, or as the value of `fill`. A reduction of a tile includes such elements, which is
//! harmless if they are neutral: zeros in a sum, masked elements in an extreme. The analysis follows each tile through
//! the kernel: the values of its elements past the end along a dimension (`Pad`), and the window from which they
//! come. The rules for operators and neutral values are those for `auto` parameters (E0435).
//!
//! A window has no such elements if its start, and the ends that limit it, are known to be multiples of its extent, or
//! far enough apart. If the analysis loses a tile (reshapes, joins, tuples with a combination of the program), there is
//! no warning.

mod flow;
mod found;
mod report;

use super::pad::{direct, windows_of};
use super::window_ends::drop_idle;
use crate::Cx;
use crate::analysis::facts::Facts;
use crate::analysis::inequalities::{Inequalities, Outside};
use crate::analysis::uses::all_stmts;
use flow::Flow;
use found::{Past, TaintedExpr};
use tilec_ir::diag::Span;
use tilec_ir::kernel::Kernel;
use tilec_ir::typing::resolve_view;

/// Warns of reductions that include elements past the end.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>) {
    // Ends of windows that cut nothing off are removed first.
    let mut whole = k.clone();
    drop_idle(&mut whole);
    let (known, facts) = (Inequalities::new(&whole), Facts::new(&whole));
    let mut places: Vec<Outside> = Vec::new();
    for (window, shape) in all_stmts(&whole, whole.body).into_iter().flat_map(|s| windows_of(&whole, s)) {
        let Some(view) = resolve_view(&whole, window) else { continue };
        for (&d, extent) in view.base_dims().iter().zip(shape) {
            for place in found::places(&known, &facts, &view, d, extent) {
                if !places.contains(&place.outside) {
                    places.push(place.outside);
                }
            }
        }
    }
    let mut found: Vec<TaintedExpr> = places.iter().flat_map(|of| Flow::of(&known, &facts, of)).collect();
    found.sort_by_key(|one| whole.expr_spans[one.at].start);
    let mut said: Vec<(Past, Span)> = Vec::new();
    for one in found {
        // A mask for the first one also fixes the others. Conditions of loops are computed in two places.
        let place = |past: &Past| (direct(&whole, past.window), past.dim, past.end.is_none());
        let span = whole.expr_spans[one.at];
        let is_said =
            |&(past, at): &(Past, Span)| place(&past) == place(&one.past) || at == span && past.dim == one.past.dim;
        if !said.iter().any(is_said) {
            said.push((one.past, span));
            cx.warn(report::warning(&whole, &facts, cx.options, &one));
        }
    }
}
