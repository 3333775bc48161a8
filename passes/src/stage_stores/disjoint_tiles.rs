//! Whether the tiles of a persistent grid are stored to distinct elements, and by which proof.
//!
//! A block of a persistent grid stores several tiles, and TMA stores have no defined order. Usually windows show that they are disjoint.
//! If a tile begins at a number from memory, such as the rows of an expert, they cannot. But in the source each tile belongs to a block, and stores of different blocks have no order
//! either. So the result does not change if the stores count as disjoint: they are marked `apart` when the grid becomes persistent.

use crate::analysis::uses::{all_stmts, depends, path_to};
use crate::barriers::{StoredTwice, stored_twice_by_tiles};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::index_values::is_of_value;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::typing::{ViewDim, resolve_view};

/// The other stores to a tensor, by threads.
pub(super) fn others(k: &Kernel, tensor: Value, staged: &[Stmt]) -> Vec<Stmt> {
    all_stmts(k, k.body).into_iter().filter(|&s| stores(k, s, tensor) && !staged.contains(&s)).collect()
}

fn stores(k: &Kernel, s: Stmt, tensor: Value) -> bool {
    matches!(k.stmts[s], StmtData::Copy { dst, .. } if resolve_view(k, dst).is_some_and(|to| to.base == tensor))
}

/// Whether stores must be marked `apart`; `Err`: which stores may overlap.
pub(super) fn of(k: &Kernel, staged: &[Stmt], by_threads: &[Stmt]) -> Result<bool, &'static str> {
    let all = [staged, by_threads].concat();
    match stored_twice_by_tiles(k, &all) {
        None => Ok(by_threads.iter().any(|&s| depends_on_tile(k, s))),
        Some(StoredTwice::InOneTile) => Err("two stores of a tile may be to the same elements"),
        Some(StoredTwice::ByTwoTiles) if all.iter().all(|&s| placed_by_numbers(k, s)) => Ok(true),
        Some(StoredTwice::ByTwoTiles) => Err("tiles of the grid that differ may store to the same elements"),
    }
}

/// Whether a condition around a statement depends on the tile, so that a block may execute it after a TMA store.
fn depends_on_tile(k: &Kernel, s: Stmt) -> bool {
    path_to(k, s).into_iter().any(|(block, index)| match k.stmts[k.blocks[block][index]] {
        StmtData::If { cond, .. } => k.grid.iter().any(|axis| depends(k, cond, axis.index)),
        _ => false,
    })
}

/// Whether a statement that a block executes at most once stores to a window that begins at a number from memory, and
/// moves with every axis of the grid.
fn placed_by_numbers(k: &Kernel, s: Stmt) -> bool {
    let looped = |&(b, i): &(_, usize)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. });
    let StmtData::Copy { dst, .. } = k.stmts[s] else { unreachable!("a store is a copy") };
    let Some(to) = resolve_view(k, dst).filter(|_| !path_to(k, s).iter().any(looped)) else { return false };
    let starts: Vec<_> = to.dims.iter().flat_map(ViewDim::starts).copied().collect();
    let several = k.grid.iter().filter(|axis| k.as_int(axis.extent) != Some(1));
    starts.iter().any(|&e| is_of_value(k, e))
        && several.into_iter().all(|axis| starts.iter().any(|&e| depends(k, e, axis.index)))
}

/// Marks all stores to a tensor as `apart`.
pub(super) fn note(k: &mut Kernel, tensor: Value) {
    for s in all_stmts(k, k.body) {
        if stores(k, s, tensor)
            && let StmtData::Copy { attrs, .. } = &mut k.stmts[s]
        {
            attrs.apart = true;
        }
    }
}
