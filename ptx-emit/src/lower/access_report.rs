//! The rows of the report on copies and accesses to shared memory.

use super::state::Lower;
use super::windows::{Access, Window};
use crate::report::{CopyReport, SharedReport};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, StmtData};
use tilec_ir::layout::wavefronts_by_rank;
use tilec_ir::target::{SECTOR_BYTES, WARP};
use tilec_ir::types::Elem;
use tilec_ir::typing::{ResolvedView, ViewDim};

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
        let bytes = elem.bytes_of(attrs.vec.unwrap_or(1).into()) as u32;
        let in_loop = !self.loops.is_empty();
        let span = self.k.stmt_spans[s];
        let global = access.space.has_bounds();
        let (src, dst) = self.ends_of(s, e);
        let (sector_use, sectors) = if global { self.sector_use(view, access, bytes) } else { (1.0, 0) };
        let lanes = if global { self.lanes_of(view, access) } else { Vec::new() };
        let gathered = global && self.contiguous(view).is_some_and(|dim| is_gathered(view, dim));
        self.report.copies.push(CopyReport {
            span,
            src,
            dst,
            global_bytes: if global { bytes } else { 0 },
            shared_bytes: if global { 0 } else { bytes },
            accesses: access.groups.len() as u32,
            sector_use,
            sectors,
            tensor: if global { self.k.values[view.base].name.clone() } else { String::new() },
            lanes,
            gathered,
            why: String::new(),
            in_loop,
        });
        if !global
            && let Some(smem) = self.k.tile_ty(view.base).and_then(|t| t.smem_layout.clone())
            && let Some(window) = self.window_bits(access, view)
        {
            let lanes = super::windows::lane_bytes(&smem, &access.layout, &window, &view.kept(), elem.size());
            let w = wavefronts_by_rank(&lanes, bytes);
            self.report.shared.push(SharedReport {
                span,
                buffer: self.k.values[view.base].name.clone(),
                store,
                access_bytes: bytes,
                ideal_wavefronts: w.phases,
                wavefronts: w.wavefronts,
                lanes,
                in_loop,
            });
        }
    }

    /// What an access reads and writes, as text: both sides of a copy; of a window in an expression the window, and what the expression is for.
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

    /// Where the lanes of a full warp begin with their first access: a row, and the byte in it. Nothing where elements have no bytes of their own or
    /// no dimension is contiguous.
    fn lanes_of(&mut self, view: &ResolvedView, access: &Access) -> Vec<(u64, u64)> {
        let (Some(dim), Some(elem)) = (self.contiguous(view), self.elem(view.base)) else { return Vec::new() };
        let Some(first) = access.groups.first() else { return Vec::new() };
        let shift: u32 = access.dim_bits[..dim].iter().sum();
        let mask = (1u64 << access.dim_bits[dim]) - 1;
        let gathered = is_gathered(view, dim);
        let begin = |lane: u64| {
            let places = first.iter().map(|&v| access.layout.at(lane, v as u64));
            let place = |index: u64| match gathered {
                true => (index, 0),
                false => (index & !(mask << shift), index >> shift & mask),
            };
            places.map(place).min().unwrap_or((0, 0))
        };
        let all: Vec<(u64, u64)> = (0..32).map(begin).collect();
        let mut rows: Vec<u64> = all.iter().map(|&(row, _)| row).collect();
        rows.sort_unstable();
        rows.dedup();
        let number = |row: u64| rows.partition_point(|&r| r < row) as u64;
        all.iter().map(|&(row, along)| (number(row), elem.bytes_of(along))).collect()
    }

    /// Used bytes over bytes of touched 32-byte sectors, and how many these are, for the first access of a full warp with the rows packed as
    /// aligned runs.
    fn sector_use(&mut self, view: &ResolvedView, access: &Access, bytes: u32) -> (f64, u32) {
        let Some(dim) = self.contiguous(view) else { return (f64::from(bytes) / f64::from(SECTOR_BYTES), WARP) };
        let Some(elem) = self.elem(view.base) else { return (1.0, 1) };
        let Some(first) = access.groups.first() else { return (1.0, 1) };
        let shift: u32 = access.dim_bits[..dim].iter().sum();
        let mask = (1u64 << access.dim_bits[dim]) - 1;
        let gathered = is_gathered(view, dim);
        let mut sectors = std::collections::BTreeSet::new();
        let mut touched = std::collections::BTreeSet::new();
        for lane in 0..32u64 {
            for &v in first {
                let index = access.layout.at(lane, v as u64);
                let (row, along) = match gathered {
                    true => (index, 0),
                    false => (index & !(mask << shift), index >> shift & mask),
                };
                sectors.insert((row, along / u64::from(elem.per(SECTOR_BYTES))));
                touched.insert((row, along));
            }
        }
        let used = elem.size().traffic(touched.len() as f64) / (sectors.len() as f64 * f64::from(SECTOR_BYTES));
        (used, sectors.len() as u32)
    }
}

/// Whether memory says where elements lie along a dimension of a window. Nothing is known of their distances, so each counts as a row of its own.
fn is_gathered(view: &ResolvedView, dim: usize) -> bool {
    view.kept().get(dim).is_some_and(|&d| matches!(view.dims[d], ViewDim::Gather(_)))
}
