//! Operands and accumulator of a product: types, memory, and order.

use crate::Cx;
use crate::analysis::access_width::elem_of;
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::facts::contiguous_dim;
use crate::analysis::uses::{all_stmts, mentions};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::space::Space;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::resolve_view;

/// Properties of an operand.
pub(crate) struct Operand {
    pub(super) elem: Elem,
    pub(super) space: Space,
    /// Whether it is contiguous along the reduction, as far as known.
    pub(super) k_contiguous: bool,
}

/// The warp tile of the schedule; the inner `None`: it is not constant.
pub(crate) fn scheduled_tile(k: &Kernel) -> Option<Option<(u64, u64)>> {
    let int = |e: Expr| k.as_int(e).and_then(|x| u64::try_from(x).ok());
    k.schedule.warp_tile.map(|(m, n)| Some((int(m)?, int(n)?)))
}

pub(crate) fn known(elem: Option<ElemRef>) -> Option<Elem> {
    match elem? {
        ElemRef::Known(e) => Some(e),
        ElemRef::Param(_) => None,
    }
}

/// Rows and columns of an accumulator.
pub(crate) fn acc_shape(k: &Kernel, acc: Value) -> Option<(u64, u64)> {
    match k.const_shape(&k.tile_ty(acc)?.shape)?[..] {
        [m, n] | [_, m, n] => Some((m, n)),
        _ => None,
    }
}

/// The properties of an operand that is a tile or a window of one. `k_dim`: its reduction dimension.
pub(crate) fn described(k: &Kernel, e: Expr, k_dim: usize) -> Option<Operand> {
    let view = resolve_view(k, e)?;
    let (elem, space) = (elem_of(k, view.base)?, view.space(k));
    let dim = if view.transposed { 1 - k_dim } else { k_dim };
    let contiguous = match space {
        s if s.has_bounds() => contiguous_dim(k, view.base),
        s if s.is_of_block() => smem_contiguous(k, view.base),
        _ => None,
    };
    Some(Operand { elem, space, k_contiguous: contiguous == Some(dim) })
}

/// [`described`], with an error for other operands.
pub(crate) fn operand(k: &Kernel, cx: &mut Cx<'_>, e: Expr, k_dim: usize) -> Result<Operand, Reported> {
    described(k, e, k_dim).ok_or_else(|| {
        let message = "this operand of a product is neither a tile nor a view of one";
        cx.report(
            Diagnostic::error(codes::MMA_FORM, k.expr_spans[e], message)
                .with_note("compute it into a register tile first: `var p = reg f16[..]`, `copy e -> p`"),
        )
    })
}

pub(crate) fn operand_name(k: &Kernel, e: Expr) -> String {
    resolve_view(k, e).map_or_else(|| "operand".into(), |v| k.values[v.base].name.to_lowercase())
}

/// Whether the accumulator is stored to a column-major tensor.
pub(crate) fn stored_column_major(k: &Kernel, acc: Value) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return false };
        if !mentions(k, src, acc) {
            return false;
        }
        let Some(view) = resolve_view(k, dst) else { return false };
        if k.tensor_ty(view.base).is_none() {
            return false;
        }
        let kept: Vec<usize> = view
            .dims
            .iter()
            .enumerate()
            .filter(|(_, d)| !matches!(d, tilec_ir::typing::ViewDim::Fixed(_)))
            .map(|(d, _)| d)
            .collect();
        let first = contiguous_dim(k, view.base) == kept.first().copied() && kept.len() == 2;
        first != view.transposed && kept.len() == 2
    })
}
