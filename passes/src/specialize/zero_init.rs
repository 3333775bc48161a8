//! Tiles that are zeroed at their declaration, because they are padded and copies fill them only in part.

use crate::analysis::uses::{all_stmts, place_of};
use crate::analysis::views::copy_shape;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData};
use tilec_ir::typing::{ViewDim, resolve_view};

/// Tiles with one of these extents that copies fill in part: nothing is written in the padding, and readers of a whole
/// tile need zeros there.
pub(super) fn filled_in_parts(k: &Kernel, odd: &[u64]) -> Vec<Value> {
    let mut found = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        let (Some(view), Some(shape)) = (resolve_view(k, dst), copy_shape(k, src, dst)) else { continue };
        let Some(own) = k.tile_ty(view.base).and_then(|ty| k.const_shape(&ty.shape)) else { continue };
        let part = |(w, &d): (usize, &usize)| odd.contains(&own[d]) && shape.get(w) != Some(&own[d]);
        let dropped = (0..own.len()).any(|d| odd.contains(&own[d]) && matches!(view.dims[d], ViewDim::Fixed(_)));
        if (dropped || view.base_dims().iter().enumerate().any(part)) && !found.contains(&view.base) {
            found.push(view.base);
        }
    }
    found
}

/// Zeroes a tile where it is declared.
pub(super) fn as_zero(k: &mut Kernel, v: Value) {
    for s in all_stmts(k, k.body) {
        let span = k.stmt_spans[s];
        match k.stmts[s] {
            StmtData::Var { value, init: None } if value == v => {
                let zero = k.int(0, span);
                k.stmts[s] = StmtData::Var { value, init: Some(zero) };
            }
            StmtData::Alloc { value, .. } if value == v => {
                let (src, dst) = (k.int(0, span), k.value_ref(v, span));
                let fill = k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span);
                let (block, index) = place_of(k, s);
                k.blocks[block].insert(index + 1, fill);
            }
            _ => {}
        }
    }
}
