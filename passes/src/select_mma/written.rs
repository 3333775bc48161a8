//! Instructions that are written in the text (`mma<fma>(a, b, acc)`) of products whose operands are not in registers yet.

use super::{Atom, Cx};
use crate::select_mma::atoms::available;
use tilec_ir::atoms::Inputs;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::types::Elem;

/// Refuses a written instruction that the target, the types or the warp tile (`wm x wn x k_extent`) do not allow.
pub(super) fn check(
    cx: &mut Cx<'_>,
    span: Span,
    atom: Atom,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
) -> Result<Atom, Reported> {
    let (row, target) = (atom.row(), cx.options.target);
    let (m, n, kk) = row.log2_shape;
    let why = if !target.at_least(row.first) {
        format!("`{}` came with {}, the target is {}", row.name, row.first.name(), target.name())
    } else if row.types_for(inputs, acc).is_none() {
        format!("`{}` has no {inputs} inputs with {} accumulation", row.name, acc.name())
    } else if wm < 1 << m || wn < 1 << n || k_extent < 1 << kk {
        format!("`{}` does not fit a {wm}x{wn} warp tile and a reduction of {k_extent}", row.name)
    } else {
        return Ok(atom);
    };
    Err(cx.report(Diagnostic::error(codes::NO_ATOM, span, why).with_note(available(target))))
}
