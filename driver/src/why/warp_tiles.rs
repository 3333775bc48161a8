//! Rows and columns of the warp tile, where the schedule has them as numbers.

use super::answer::Known;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::entities::Expr;
use tilec_passes::choose::Role;

/// Rows or columns of a warp tile.
pub(super) struct WarpExtent {
    /// The number.
    pub(super) now: i64,
    /// Where it is written.
    pub(super) span: Span,
    /// Whether it is rows or columns.
    pub(super) role: Role,
}

/// Those of a kernel.
pub(super) fn of(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<WarpExtent> {
    let Some(written) = &kernel.tile.source_kernel else { return Vec::new() };
    let k = &written.kernel;
    let extent = |(e, role): (Expr, Role)| {
        let (now, span) = (k.as_int(e)?, k.expr_spans[e]);
        let text = known.text().get(span.start as usize..span.end as usize)?;
        (text == now.to_string()).then_some(WarpExtent { now, span, role })
    };
    let both = k.schedule.warp_tile.map(|(rows, cols)| [(rows, Role::WarpRows), (cols, Role::WarpCols)]);
    both.into_iter().flatten().filter_map(extent).collect()
}

impl WarpExtent {
    /// `rows of the warp tile`.
    pub(super) fn in_words(&self) -> String {
        let side = if self.role == Role::WarpRows { "rows" } else { "columns" };
        format!("{side} of `warp_tile`")
    }
}
