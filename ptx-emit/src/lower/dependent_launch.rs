//! Programmatic dependent launch: consecutive launches overlap.

use super::state::Lower;
use crate::ops::Op as P;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ExprData, StmtData};

impl Lower<'_> {
    /// Waits for the previous grids, in front of the first access to global memory. Roles wait by themselves.
    pub(super) fn follow_other_grids(&mut self) {
        if self.overlaps() && !self.waits_in_roles() {
            self.wait_for_grids();
        }
    }

    /// Whether a role waits in front of a statement: the first one that is more than a name for an index computed from
    /// sizes. So the tile scheduler overlaps with the previous grid. A role that prefetches its first operands waits
    /// inside the loops over tiles, whose code in front of the wait reads only sizes, too.
    pub(super) fn waits_in_front_of(&self, s: Stmt) -> bool {
        if !self.follows || self.prefetch_step.is_some() {
            return false;
        }
        let of_sizes = matches!(self.k.stmts[s], StmtData::Let { init, .. } if self.reads_no_memory(init));
        !(of_sizes || self.prefetched.is_some() && self.walks(s))
    }

    /// Whether a statement is a loop around others whose bounds read no memory.
    fn walks(&self, s: Stmt) -> bool {
        let StmtData::For { start, end, cond: None, next: None, body, .. } = self.k.stmts[s] else { return false };
        let mut inner = false;
        self.k.walk(body, &mut |k, _, s| inner |= matches!(k.stmts[s], StmtData::For { .. }));
        inner && [start, end].into_iter().all(|e| self.reads_no_memory(e))
    }

    /// Waits if the role has not waited yet.
    pub(super) fn wait_in_role(&mut self) {
        if std::mem::take(&mut self.follows) {
            self.wait_for_grids();
        }
    }

    /// Whether an expression reads no memory, directly or through a name.
    pub(super) fn reads_no_memory(&self, e: Expr) -> bool {
        let reads =
            |e: Expr| matches!(self.k.exprs[e], ExprData::View(_) | ExprData::Index(_) | ExprData::Lookup { .. });
        !self.k.has_part(e, reads)
    }

    /// Waits for the previous grids, and then lets the next one begin. Not earlier: blocks of a third grid would occupy
    /// the multiprocessors that these two leave free, and share their ports to the second-level cache (1x7168x7168 of
    /// bf16 on an H200: 32 us, 26 us without overlap).
    pub(super) fn wait_for_grids(&mut self) {
        self.emit
            .comment("what this launch reads and writes waits for those in front of it; then the next one may begin");
        self.emit.push(P::GriddepcontrolWait, []);
        self.emit.push(P::GriddepcontrolLaunchDependents, []);
    }
}
