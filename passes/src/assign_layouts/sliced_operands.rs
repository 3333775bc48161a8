//! Register tiles of which products read windows: fragments of slices of the reduction.

use super::log2_shape;
use crate::analysis::uses::all_stmts;
use crate::analysis::views::{plain_var, unassigned};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::layout::RegLayout;

use tilec_ir::typing::resolve_view;

/// Gives register tiles whose windows are fragments the fragment's layout, repeated. Tiles that are loaded from memory
/// and copied to such a tile get the same layout, so that the copy moves nothing between threads.
pub(super) fn assign_repeated_layouts(k: &mut Kernel) {
    let copy = |s: Stmt| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => Some((src, dst)),
        _ => None,
    };
    let copies: Vec<(Expr, Expr)> = all_stmts(k, k.body).into_iter().filter_map(copy).collect();
    let mut read = Vec::new();
    for &(src, dst) in &copies {
        let Some(view) = resolve_view(k, src).filter(|v| v.space(k).in_registers() && !v.transposed) else { continue };
        let Some(fragment) = plain_var(k, dst).filter(|_| unassigned(k, view.base)) else { continue };
        if let Some(layout) = window_repeated(k, fragment, view.base)
            && let Some(tile) = k.tile_ty_mut(view.base)
        {
            tile.reg_layout = Some(layout);
            read.push(view.base);
        }
    }
    for &(src, dst) in &copies {
        let Some(to) = plain_var(k, dst).filter(|to| read.contains(to)) else { continue };
        let Some((from, transposed)) = whole_tile(k, src).filter(|&(v, _)| unassigned(k, v)) else { continue };
        if !filled_from_memory(k, from, &copies) {
            continue;
        }
        let tile = k.tile_ty(to).and_then(|t| t.reg_layout.clone().zip(k.const_shape(&t.shape)));
        let layout = tile.and_then(|(layout, shape)| match transposed {
            true => layout.transposed(*log2_shape(&shape).first()?),
            false => Some(layout),
        });
        if let Some(tile) = k.tile_ty_mut(from) {
            tile.reg_layout = layout;
        }
    }
}

/// The register tile that an expression names as a whole, and whether it is transposed.
fn whole_tile(k: &Kernel, e: Expr) -> Option<(Value, bool)> {
    match k.exprs[e] {
        ExprData::Transpose(arg) => whole_tile(k, arg).map(|(v, transposed)| (v, !transposed)),
        _ => plain_var(k, e).map(|v| (v, false)),
    }
}

/// The layout of a tile with the window `fragment`, in which each thread has the same part of each window.
fn window_repeated(k: &Kernel, fragment: Value, whole: Value) -> Option<RegLayout> {
    let tile = k.tile_ty(fragment)?;
    let (bits, all) = (log2_shape(&k.const_shape(&tile.shape)?), log2_shape(&k.const_shape(&k.tile_ty(whole)?.shape)?));
    tile.reg_layout.as_ref()?.of_windows(&bits, &all)
}

/// Whether a tile is filled only from memory.
fn filled_from_memory(k: &Kernel, tile: Value, copies: &[(Expr, Expr)]) -> bool {
    let elsewhere = |s: Stmt| match k.stmts[s] {
        StmtData::Assign { dst, .. } => dst == tile,
        StmtData::Var { value, init } => value == tile && init.is_some(),
        _ => false,
    };
    let memory = |e: Expr| resolve_view(k, e).is_some_and(|v| v.space(k).is_memory());
    let mut fills = copies.iter().filter(|&&(_, dst)| resolve_view(k, dst).is_some_and(|v| v.base == tile));
    !all_stmts(k, k.body).into_iter().any(elsewhere) && fills.all(|&(src, _)| memory(src))
}
