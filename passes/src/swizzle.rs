//! `swizzle`: finds the cheapest conflict-free layout of every shared-memory tile.
//!
//! All readers and writers of a tile are known by now: the elements of each lane, and the access width. The natural
//! layout (its contiguous dimension first) is improved by the fewest elementary terms "address bit ^= higher address
//! bit" that make every access conflict-free, which for linear layouts is an exact rank condition for each phase of an
//! access ([`tilec_ir::layout::search`]). The result has no padding and is a bijection.
//!
//! Needs: layouts and access widths. Switched off: natural layouts.

use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem, tile_shape};
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::distribution::copy_layout;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{copy_shape, memory_views};
use crate::analysis::wgmma::read_by_warpgroups;
use crate::assign_layouts::log2_shape;
use crate::producer_fills::{self, How};
use crate::refusal::Refused;
use crate::vectorize::matrix_rows;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::layout::hardware::{boxes, panels};
use tilec_ir::layout::{PhaseAccess, SmemLayout, search_xor};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::tensor_store::is_stored;
use tilec_ir::types::Order;

/// Most terms of the search. Products need at most three, to spread pieces of 16 bytes over the eight units of a row of
/// banks. A transposing copy needs three more for the rows that its lanes write, because other lanes read them. A copy
/// by single words needs one for each of the five lane bits.
const MAX_TERMS: usize = 6;

pub(crate) const NAME: &str = "swizzle";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let buffers: Vec<Value> = k
        .values
        .iter()
        .filter(
            |(_, d)| matches!(&d.def, ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. } if t.smem_layout.is_none()),
        )
        .map(|(v, _)| v)
        .collect();
    for v in buffers {
        let natural = natural_layout(k, v);
        let layout = match of_hardware(k, cx, v, &natural) {
            Some(layout) => {
                let (elem, shape) = (known_elem(k, v).size(), tile_shape(k, v));
                let rows = boxes(&layout, &shape, elem).map_or(0, |b| b.exchange.row_bytes());
                let name = &k.values[v].name;
                let message = format!("`{name}` uses the {rows}-byte swizzle that TMA and `wgmma` require");
                cx.remark(k.values[v].span, message);
                layout
            }
            None if cx.enabled => improve(k, cx, v, &natural),
            None => natural,
        };
        k.tile_ty_mut(v).expect("a buffer is a tile").smem_layout = Some(layout);
    }
    Ok(())
}

fn natural_layout(k: &Kernel, v: Value) -> SmemLayout {
    let bits = log2_shape(&tile_shape(k, v));
    let first = smem_contiguous(k, v).unwrap_or(Order::Row.contiguous_dim(bits.len()));
    let mut order = vec![first];
    order.extend((0..bits.len()).rev().filter(|&d| d != first));
    SmemLayout::natural(&bits, &order).expect("an order of all dimensions")
}

/// The layout that the hardware fixes: of a buffer that wgmma reads, directly or through registers, or that TMA fills
/// or stores.
fn of_hardware(k: &Kernel, cx: &Cx<'_>, v: Value, natural: &SmemLayout) -> Option<SmemLayout> {
    let by_tensor_copies = k.fills_by_tensor_copies(v) || will_be_tensor_copies(k, cx, v);
    if !read_by_warpgroups(k, v) && !by_tensor_copies && !is_stored(k, v) {
        return None;
    }
    let contiguous = smem_contiguous(k, v).unwrap_or(Order::Row.contiguous_dim(natural.dim_bits().len()));
    panels(&k.const_shape(&k.tile_ty(v)?.shape)?, contiguous, elem_of(k, v)?.size(), is_stored(k, v))
}

/// Whether the producer fills a buffer by TMA loads; `select-mma` has marked its copies.
fn will_be_tensor_copies(k: &Kernel, cx: &Cx<'_>, v: Value) -> bool {
    let into = |s: Stmt| matches!(k.stmts[s], StmtData::Copy { dst, .. } if memory_views(k, dst).iter().any(|to| to.base == v));
    let producers = all_stmts(k, k.body).into_iter().any(|s| k.plans[s].producer && into(s));
    producers
        && producer_fills::plan(k, cx.options, &[v])
            .is_ok_and(|found| found.iter().all(|feed| feed.mechanism == How::Tensor))
}

fn improve(k: &Kernel, cx: &mut Cx<'_>, v: Value, natural: &SmemLayout) -> SmemLayout {
    let accesses = accesses(k, v, natural.dim_bits());
    let span = k.values[v].span;
    let name = &k.values[v].name;
    if accesses.is_empty() {
        return natural.clone();
    }
    let ideal: u64 = accesses.iter().map(|a| a.weight * ideal_wavefronts(a)).sum();
    let before = search_xor(&accesses, natural, 0).map_or(0, |r| r.wavefronts);
    let Some(found) = search_xor(&accesses, natural, MAX_TERMS) else {
        let refused = Refused::from("an access of it is not linear");
        refused.report(k, cx, &format!("`{name}` keeps its natural layout"), (FastPath::Banks, declared(k, v)));
        return natural.clone();
    };
    let what = format!(
        "`{name}`: {before} wavefronts per warp in the natural layout, {} with {} xor term(s), ideal {ideal}",
        found.wavefronts,
        found.terms.len()
    );
    match found.conflict_free {
        true => cx.remark(span, format!("{what}: no conflicts")),
        false => Refused::from("conflicts remain").report(k, cx, &what, (FastPath::Banks, declared(k, v))),
    }
    found.layout
}

/// The declaration of a buffer.
fn declared(k: &Kernel, v: Value) -> Vec<Stmt> {
    let declares = |&s: &Stmt| matches!(k.stmts[s], StmtData::Alloc { value, .. } if value == v);
    all_stmts(k, k.body).into_iter().filter(declares).collect()
}

fn ideal_wavefronts(a: &PhaseAccess) -> u64 {
    match a.access_bytes {
        16 => 4,
        8 => 2,
        _ => 1,
    }
}

/// Every access to `v`, as contributions of lane bits to its column-major index.
pub(crate) fn accesses(k: &Kernel, v: Value, dim_bits: &[u32]) -> Vec<PhaseAccess> {
    let mut out = Vec::new();
    let elem = known_elem(k, v);
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { continue };
        for view in [memory_views(k, *src), memory_views(k, *dst)].concat() {
            if view.base != v {
                continue;
            }
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
            out.push(PhaseAccess {
                lane_cols,
                access_bytes: elem.bytes_of(vec.into()) as u32,
                elem: elem.size(),
                weight: ((1u64 << layout.value_bits().min(20))
                    / if attrs.is_matrix() { 1 } else { u64::from(vec.max(1)) })
                .max(1),
            });
        }
    }
    out
}

/// Converts a column-major index of a window to that of its tile; `kept`: the tile's dimension for each dimension of
/// the window.
pub(crate) fn reindex(index: u64, window: &[u32], tile: &[u32], kept: &[usize]) -> u64 {
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
