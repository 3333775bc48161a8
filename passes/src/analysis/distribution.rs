//! The thread that moves each element of a copy, after layouts are decided.

use crate::analysis::views::{copy_shape, plain_var};
use crate::assign_layouts::log2_shape;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{CopyAttrs, Kernel};
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::{layout_of, resolve_view, scalar_shape, window_of_registers};

/// The register layout of a copy: its own, or that of the register tile on one side.
pub(crate) fn copy_layout(k: &Kernel, src: Expr, dst: Expr, attrs: &CopyAttrs) -> Option<RegLayout> {
    if let Some(layout) = &attrs.threads {
        return Some(layout.clone());
    }
    if scalar_shape(k, dst).is_some() {
        return plain_var(k, dst).and_then(|v| k.tile_ty(v)?.reg_layout.clone());
    }
    let whole = [dst, src].into_iter().find_map(|e| layout_of(k, e));
    // If a row and a column are combined, neither has the full layout.
    let has_all =
        |l: &RegLayout| copy_shape(k, src, dst).is_none_or(|s| log2_shape(&s).iter().sum::<u32>() == l.out_bits());
    if whole.as_ref().is_some_and(|l| !has_all(l)) {
        return None;
    }
    whole.or_else(|| Some(window_of_registers(k, &resolve_view(k, dst)?, &copy_shape(k, src, dst)?)?.0))
}

/// Log2 of the aligned run of neighbours along `dim` that a thread owns. The order of registers does not matter:
/// renaming is free, and halves of registers are exchanged by one instruction for each pair.
pub(crate) fn owned_run(layout: &RegLayout, dim_bits: &[u32], dim: usize) -> u32 {
    let base: u32 = dim_bits[..dim].iter().sum();
    let owned = |bit: &u32| {
        let unit = 1u64 << (base + bit);
        // In a layout that mixes bits, another column may make the run unaligned.
        let mixed = layout.value().cols().iter().chain(layout.thread().cols()).any(|&c| c != unit && c & unit != 0);
        !mixed && layout.value().cols().contains(&unit)
    };
    (0..dim_bits[dim]).take_while(owned).count() as u32
}
