//! What accesses of warps touch of global memory, as the emitter reports it.

use super::PathBuilder;
use tilec_ir::diag::counted;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::StmtData;
use tilec_ir::typing::resolve_view;
use tilec_ptx::report::CopyReport;

impl PathBuilder<'_> {
    /// What an access of a warp touches of the tensor that a copy reads, or to which it stores; empty: threads do not access it.
    pub(super) fn sectors(&self, s: Stmt, stores: bool) -> String {
        let k = self.k;
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return String::new() };
        let Some(view) = resolve_view(k, if stores { dst } else { src }) else { return String::new() };
        let (span, tensor) = (k.stmt_spans[s], &k.values[view.base].name);
        let own = |c: &&CopyReport| c.span == span && c.tensor == *tensor && c.sectors > 0;
        let Some(c) = self.lowered.copies.iter().find(own) else { return String::new() };
        format!(
            "; {} an access, and an access of a warp uses {:.0} % of the bytes of {}",
            counted(c.global_bytes as usize, "byte"),
            100.0 * c.sector_use,
            counted(c.sectors as usize, "sector")
        )
    }
}
