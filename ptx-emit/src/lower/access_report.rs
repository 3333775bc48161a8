//! The rows of the report on copies and accesses to shared memory.

use super::sectors::AccessSectors;
use super::state::Lower;
use super::windows::{Access, Window};
use crate::report::{CopyReport, SharedReport};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, StmtData};
use tilec_ir::layout::wavefronts_by_rank;
use tilec_ir::target::{SECTOR_BYTES, WARP};
use tilec_ir::types::Elem;
use tilec_ir::typing::ResolvedView;

impl Lower<'_> {
    #[expect(clippy::too_many_arguments, reason = "the facts of one row of the report")]
    pub(super) fn report_copy(
        &mut self,
        s: Stmt,
        e: Expr,
        view: &ResolvedView,
        access: &Access,
        elem: Elem,
        attrs: &CopyAttrs,
        store: bool,
    ) {
        if !self.report_accesses {
            return;
        }
        let width = match access.groups.first() {
            Some(group) if attrs.is_fragment() => group.len() as u64,
            _ => attrs.vec.unwrap_or(1).into(),
        };
        let bytes = elem.bytes_of(width) as u32;
        let in_loop = !self.loops.is_empty();
        let span = self.k.stmt_spans[s];
        let global = access.space.has_bounds();
        let (src, dst) = self.ends_of(s, e);
        let nothing = AccessSectors { used: 1.0, used_of_runs: 1.0, sectors: 0, lanes: Vec::new(), gathered: false };
        let touched = match (global, attrs.is_fragment()) {
            // The lanes of a warp access one run of bytes.
            (true, true) => AccessSectors { sectors: WARP * bytes / SECTOR_BYTES, ..nothing },
            (true, false) => self.touched(view, access, bytes),
            (false, _) => nothing,
        };
        self.report.copies.push(CopyReport {
            span,
            src,
            dst,
            global_bytes: if global { bytes } else { 0 },
            shared_bytes: if global { 0 } else { bytes },
            accesses: access.groups.len() as u32,
            sector_use: touched.used,
            sector_use_of_runs: touched.used_of_runs,
            sectors: touched.sectors,
            tensor: if global { self.k.values[view.base].name.clone() } else { String::new() },
            lanes: touched.lanes,
            gathered: touched.gathered,
            single: access.dim_bits.extents().iter().all(|&n| n == 1),
            why: String::new(),
            in_loop,
        });
        if !global
            && let Some(smem) = self.k.tile_ty(view.base).and_then(|t| t.smem_layout.clone())
            && let Some(window) = self.window_bits(access, view)
        {
            let by_index = view.is_gathered();
            let lanes = super::windows::lane_bytes(&smem, &access.layout, &window, &view.base_dims(), elem.size());
            // Where the data say which elements, at least one wavefront is known.
            let lanes = if by_index { Vec::new() } else { lanes };
            let w = wavefronts_by_rank(&lanes, bytes);
            self.report.shared.push(SharedReport {
                span,
                stmt: Some(s),
                accesses: access.groups.len() as u32,
                buffer: self.k.values[view.base].name.clone(),
                store,
                access_bytes: bytes,
                ideal_wavefronts: w.phases,
                wavefronts: w.wavefronts,
                lanes,
                by_index,
                in_loop,
            });
        }
    }

    /// The source and destination of an access as text. For a window in an expression: the window, and the expression's
    /// destination.
    fn ends_of(&self, s: Stmt, e: Expr) -> (String, String) {
        let text = |e: Expr| tilec_ir::print::print_expr(self.k, e);
        match self.k.stmts[s] {
            StmtData::Copy { src, dst, .. } if e == dst => (text(src), text(dst)),
            StmtData::Copy { dst, .. } => (text(e), text(dst)),
            StmtData::Assign { dst: value, .. } | StmtData::Var { value, .. } | StmtData::Let { value, .. } => {
                (text(e), self.k.values[value].name.clone())
            }
            _ => (text(e), String::new()),
        }
    }

    fn window_bits(&self, access: &Access, view: &ResolvedView) -> Option<Vec<u32>> {
        match &access.window {
            Window::Shared(w) => Some(w.bits().to_vec()),
            Window::Global(_) | Window::Fragment(_) => {
                let _ = view;
                None
            }
        }
    }
}
