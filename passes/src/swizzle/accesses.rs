//! The accesses to a buffer: the elements of each lane, and the width.

use crate::analysis::access_width::known_elem;
use crate::analysis::distribution::copy_layout;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{copy_shape, memory_views};
use crate::assign_layouts::log2_shape;
use crate::vectorize::matrix_rows;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::layout::{PhaseAccess, search_xor};

/// Most terms of the search. Products need at most three, to spread pieces of 16 bytes over the eight units of a row of
/// banks. A transposing copy needs three more for the rows that its lanes write, because other lanes read them. A copy
/// by single words needs one for each of the five lane bits.
pub(super) const MAX_TERMS: usize = 6;

/// The declaration of a buffer.
pub(super) fn declared(k: &Kernel, v: Value) -> Vec<Stmt> {
    let declares = |&s: &Stmt| matches!(k.stmts[s], StmtData::Alloc { value, .. } if value == v);
    all_stmts(k, k.body).into_iter().filter(declares).collect()
}

pub(super) fn ideal_wavefronts(a: &PhaseAccess) -> u64 {
    match a.access_bytes {
        16 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Every access to `v`, as contributions of lane bits to its column-major index.
pub(super) fn accesses(k: &Kernel, v: Value, dim_bits: &[u32]) -> Vec<PhaseAccess> {
    of_statements(k, v, dim_bits).into_iter().map(|of| of.access).collect()
}

/// An access of a statement.
#[derive(Clone)]
pub(super) struct OfStatement {
    pub(super) s: Stmt,
    pub(super) store: bool,
    pub(super) access: PhaseAccess,
}

/// The same, each with its statement.
pub(super) fn of_statements(k: &Kernel, v: Value, dim_bits: &[u32]) -> Vec<OfStatement> {
    all_stmts(k, k.body).into_iter().flat_map(|s| of_statement(k, s, v, dim_bits)).collect()
}

/// The accesses of a statement to `v`.
fn of_statement(k: &Kernel, s: Stmt, v: Value, dim_bits: &[u32]) -> Vec<OfStatement> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return Vec::new() };
    let elem = known_elem(k, v);
    let views = [(*src, false), (*dst, true)]
        .into_iter()
        .flat_map(|(e, store)| memory_views(k, e).into_iter().map(move |view| (view, store)));
    let mut out = Vec::new();
    // Where elements with indices of their own are, data say.
    for (view, store) in views.filter(|(view, _)| view.base == v && !view.is_gathered()) {
        let (Some(layout), Some(shape)) = (copy_layout(k, *src, *dst, attrs), copy_shape(k, *src, *dst)) else {
            continue;
        };
        let window = log2_shape(&shape);
        // Matrices: the lanes give rows of 16 bytes.
        let rows = if attrs.is_matrix() { matrix_rows(k, &view, &layout, &window) } else { None };
        let layout = rows.map_or(layout, |m| m.rows);
        let kept = view.base_dims();
        let lane_cols = (0..5).map(|i| reindex(layout.thread_col(i), &window, dim_bits, &kept)).collect();
        let vec = attrs.vec.unwrap_or(1);
        let access = PhaseAccess {
            lane_cols,
            access_bytes: elem.bytes_of(vec.into()) as u32,
            elem: elem.size(),
            weight: ((1u64 << layout.value_bits().min(20)) / if attrs.is_matrix() { 1 } else { u64::from(vec.max(1)) })
                .max(1),
        };
        out.push(OfStatement { s, store, access });
    }
    out
}

/// How many times the wavefronts of its width a statement takes at a buffer that has a layout; 1 if it has none.
pub(crate) fn times_of_width(k: &Kernel, s: Stmt, v: Value) -> f64 {
    let Some(layout) = k.tile_ty(v).and_then(|tile| tile.smem_layout.as_ref()) else { return 1.0 };
    let all: Vec<PhaseAccess> = of_statement(k, s, v, layout.dim_bits()).into_iter().map(|of| of.access).collect();
    let ideal: u64 = all.iter().map(|a| a.weight * ideal_wavefronts(a)).sum();
    match search_xor(&all, layout, 0) {
        Some(found) if ideal > 0 => (found.wavefronts as f64 / ideal as f64).max(1.0),
        _ => 1.0,
    }
}

/// Converts a column-major index of a window to that of its tile; `kept`: the tile's dimension for each dimension of
/// the window.
fn reindex(index: u64, window: &[u32], tile: &[u32], kept: &[usize]) -> u64 {
    let mut coords: Vec<u64> = vec![0; tile.len()];
    let mut rest = index;
    for (&bits, &d) in window.iter().zip(kept) {
        coords[d] = rest & ((1 << bits) - 1);
        rest >>= bits;
    }
    let mut out = 0;
    let mut shift = 0;
    for (c, &bits) in coords.iter().zip(tile) {
        out |= c << shift;
        shift += bits;
    }
    out
}
