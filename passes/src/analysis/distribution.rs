//! Which thread has which element of what is copied, once layouts are decided.

use crate::analysis::views::copy_shape;
use crate::assign_layouts::log2_shape;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::{fixed_shape, resolve_view, window_of_registers};

/// The distribution a copy moves elements through: its own, or that of the register tile on one side.
pub(crate) fn copy_layout(k: &Kernel, src: Expr, dst: Expr, attrs: &CopyAttrs) -> Option<RegLayout> {
    if let Some(layout) = &attrs.threads {
        return Some(layout.clone());
    }
    let whole = [dst, src].into_iter().find_map(|e| register_layout(k, e));
    // Of a row and a column that are combined neither has all elements.
    let has_all =
        |l: &RegLayout| copy_shape(k, src, dst).is_none_or(|s| log2_shape(&s).iter().sum::<u32>() == l.out_bits());
    if whole.as_ref().is_some_and(|l| !has_all(l)) {
        return None;
    }
    whole.or_else(|| Some(window_of_registers(k, &resolve_view(k, dst)?, &copy_shape(k, src, dst)?)?.0))
}

/// The layout of the largest register tile in an expression: smaller ones are repeated.
pub(crate) fn register_layout(k: &Kernel, e: Expr) -> Option<RegLayout> {
    let of_value = |v: Value| match &k.values[v].def {
        ValueDef::Var(t) if !t.shape.is_empty() => t.reg_layout.clone(),
        ValueDef::Let => tilec_ir::typing::let_init(k, v).and_then(|init| register_layout(k, init)),
        _ => None,
    };
    match &k.exprs[e] {
        ExprData::Ref(v) => of_value(*v),
        ExprData::View(_) => None,
        ExprData::Reduce { axis, arg, .. } => {
            let reduction = register_layout(k, *arg)?.reduction(&fixed_shape(k, *arg)?, *axis as usize);
            reduction.ok().map(|r| r.layout)
        }
        _ => {
            let found = k.children(e).into_iter().filter_map(|c| register_layout(k, c));
            found.reduce(|a, b| if b.out_bits() > a.out_bits() { b } else { a })
        }
    }
}

/// Log2 of the run of neighbours along `dim` that a thread owns, beginning at a multiple of it. Which of its registers hold them does not
/// matter: renaming is free, and halves of registers are exchanged by one instruction a pair.
pub(crate) fn owned_run(layout: &RegLayout, dim_bits: &[u32], dim: usize) -> u32 {
    let base: u32 = dim_bits[..dim].iter().sum();
    let owned = |bit: &u32| {
        let unit = 1u64 << (base + bit);
        // Of a layout that mixes bits another column may move where the run begins.
        let mixed = layout.value().cols().iter().chain(layout.thread().cols()).any(|&c| c != unit && c & unit != 0);
        !mixed && layout.value().cols().contains(&unit)
    };
    (0..dim_bits[dim]).take_while(owned).count() as u32
}
