//! The order of elements in registers, for tiles with elements of less than 16 bits.
//!
//! A register holds the elements selected by the lowest value bits. A tile that is converted has the layout of the
//! result, whose order is that of an instruction's operand: `(1, 1024, 2, ..)` interleaves pairs of two columns. Loads
//! return adjacent elements, which threads would have to rearrange. So a tile that is loaded, and whose elements are
//! only read one by one, holds them in the order of memory. Threads keep their elements, and pairs of adjacent elements
//! stay pairs.

use crate::analysis::access_width::{elem_of, tile_shape, window_contiguous_dim};
use crate::analysis::contiguous_dim::smem_window_dim;
use crate::analysis::uses::{all_stmts, mentions, stmt_exprs};
use crate::analysis::views::plain_var;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::modified_values::changes;
use tilec_ir::typing::resolve_view;

/// Elements below this size share a register with more than one other element.
const NARROW: u32 = 16;

/// Puts the elements in registers of these tiles into the order of memory, if they are only loaded from memory
/// contiguous along one dimension.
pub(super) fn in_order(k: &mut Kernel, open: &[Value]) {
    for &v in open {
        if elem_of(k, v).is_none_or(|elem| elem.bits() >= NARROW) || !read_by_elements(k, v) {
            continue;
        }
        let Some(dim) = loaded_along(k, v) else { continue };
        let bits = shape_bits(&tile_shape(k, v));
        let first: u32 = bits[..dim].iter().sum();
        let reordered = k.tile_ty(v).and_then(|tile| tile.reg_layout.as_ref()).and_then(|own| runs_first(own, first));
        if let (Some(layout), Some(tile)) = (reordered, k.tile_ty_mut(v)) {
            tile.reg_layout = Some(layout);
        }
    }
}

/// A layout with each thread's run of neighbours as its lowest bits; the first column is `2^first`. `None` if
/// neighbours are no pairs.
fn runs_first(layout: &RegLayout, first: u32) -> Option<RegLayout> {
    let own = layout.value().cols();
    if own.first() != Some(&(1 << first)) {
        return None;
    }
    let run: Vec<u64> = (first..).map(|bit| 1 << bit).take_while(|column| own.contains(column)).collect();
    let rest = own.iter().copied().filter(|column| !run.contains(column));
    let value = run.iter().copied().chain(rest).collect();
    RegLayout::new(value, layout.thread().cols().to_vec(), layout.out_bits())
}

/// The contiguous dimension of all windows from which a tile is filled; these have the tile's extents.
fn loaded_along(k: &Kernel, v: Value) -> Option<usize> {
    let mut found = None;
    for s in all_stmts(k, k.body).into_iter().filter(|&s| k.sub_blocks(s).is_empty() && changes(k, s, v)) {
        let dim = match &k.stmts[s] {
            StmtData::Var { init: None, .. } => continue,
            StmtData::Copy { src, dst, attrs } if plain_var(k, *dst) == Some(v) && !attrs.is_matrix() => {
                let view = resolve_view(k, *src).filter(|view| elem_of(k, view.base) == elem_of(k, v))?;
                match view.space(k) {
                    space if space.has_bounds() => window_contiguous_dim(k, &view),
                    space if space.is_of_block() => smem_window_dim(k, &view),
                    _ => None,
                }?
            }
            _ => return None,
        };
        if found.is_some_and(|other| other != dim) {
            return None;
        }
        found = Some(dim);
    }
    found
}

/// Whether a tile is only read element by element, to compute other register tiles.
fn read_by_elements(k: &Kernel, v: Value) -> bool {
    let mut read = false;
    for s in all_stmts(k, k.body) {
        let fits = match k.stmts[s] {
            StmtData::Copy { src, dst, .. } if plain_var(k, dst) == Some(v) => !mentions(k, src, v),
            StmtData::Copy { src, dst, .. } if plain_var(k, dst).is_some() && mentions(k, src, v) => {
                read = true;
                // A tile that is copied unchanged may be exchanged between lanes.
                plain_var(k, src).is_none() && by_elements(k, src, v)
            }
            _ => !stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v)),
        };
        if !fits {
            return false;
        }
    }
    read
}

/// Whether only operators and conversions are applied to a tile in an expression.
fn by_elements(k: &Kernel, e: Expr, v: Value) -> bool {
    match k.exprs[e] {
        ExprData::Ref(_) => true,
        ExprData::Op { .. } | ExprData::Cast { .. } => k.children(e).into_iter().all(|arg| by_elements(k, arg, v)),
        _ => !mentions(k, e, v),
    }
}
