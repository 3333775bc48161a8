//! `swizzle`: finds the cheapest conflict-free layout of every shared-memory tile.
//!
//! All readers and writers of a tile are known by now: the elements of each lane, and the access width. The natural
//! layout has the contiguous dimension first. It is improved by the fewest elementary terms "address bit ^= higher
//! address bit" that make every access conflict-free. For linear layouts this is an exact rank condition for each phase
//! of an access ([`tilec_ir::layout::search`]). The result has no padding and is a bijection.
//!
//! Needs: layouts and access widths. Switched off: natural layouts.

mod accesses;
mod conflicts;

use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem, tile_shape};
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::memory_views;
use crate::analysis::wgmma::read_by_warpgroups;
use crate::assign_layouts::log2_shape;
use crate::producer_fills::{self, How};
use crate::refusal::Refused;
pub(crate) use accesses::times_of_width;
use accesses::{MAX_TERMS, accesses, declared, ideal_wavefronts};
use tilec_ir::diag::{Reported, counted};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::layout::hardware::{boxes, panels};
use tilec_ir::layout::{SmemLayout, search_xor};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::tensor_store::is_stored;
use tilec_ir::types::Order;

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
                if cx.enabled {
                    conflicts::with_fixed(k, cx, v, &layout);
                }
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
        "`{name}`: {before} wavefronts per warp in the natural layout, {} with {}, ideal {ideal}",
        found.wavefronts,
        counted(found.terms.len(), "xor term")
    );
    match found.conflict_free {
        true => cx.remark(span, format!("{what}: no conflicts")),
        false => {
            let refused = conflicts::remaining(k, v, natural, &found.layout);
            refused.report(k, cx, &format!("{what}: conflicts remain"), (FastPath::Banks, declared(k, v)));
        }
    }
    found.layout
}
