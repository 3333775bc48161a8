//! A product in the view of warps, and the tile of each warp.

use tilec_ir::atoms::Inputs;
use tilec_ir::bits::Bits;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::types::Elem;

/// Rows and columns of the smallest default warp tile.
pub(crate) const LEAST: u64 = 16;

/// A product of warps.
#[derive(Debug)]
pub(crate) struct Product {
    pub(super) acc: Value,
    pub(super) shape: (u64, u64),
    /// Size of an element of the accumulator.
    pub(super) elem: Bits,
    /// Groups of warps that share the reduction.
    pub(super) groups: u64,
    /// Whether a warp has whole columns (dimension 0), or whole rows (dimension 1).
    pub(super) whole: [bool; 2],
    /// Types of the operands and of the accumulator.
    pub(super) types: Option<(Inputs, Elem)>,
    /// Depth of the tile of the reduction.
    pub(super) depth: u64,
    pub(super) span: Span,
}

/// Rows and columns of the default warp tile, if a thread has room for it.
const USUAL: u64 = 64;

/// Number of warps that share a tile of the default extents if the block has no other. Two are on average faster than
/// one or four ("Warps of a small block" in docs/performance.md).
const ALONE: u64 = 2;

/// Number of warps of a block whose warps have whole rows, if there are enough rows: one for each scheduler.
const FEW: u64 = 4;

/// The default tile of each warp, if registers suffice. `whole`: a warp has whole columns, or rows.
pub(crate) fn usual_tile(shape: (u64, u64), whole: [bool; 2]) -> (u64, u64) {
    let warps = match shape {
        _ if whole.contains(&true) => FEW,
        (USUAL, USUAL) => ALONE,
        (bm, bn) => (bm / USUAL).max(1) * (bn / USUAL).max(1),
    };
    tile_of(shape, whole, warps)
}

/// Whether a warp has room for this number of accumulator elements.
pub(super) fn fits(elems: u64) -> bool {
    elems <= USUAL * USUAL
}

/// The tile of each of `warps` warps: as many different tiles as possible, as square as possible.
pub(crate) fn warp_tile(p: &Product, warps: u64) -> (u64, u64) {
    tile_of(p.shape, p.whole, warps)
}

fn tile_of((bm, bn): (u64, u64), whole: [bool; 2], warps: u64) -> (u64, u64) {
    let parts = |all: u64, whole: bool| {
        let most = if whole { 1 } else { (all / LEAST).max(1) };
        (0..=most.ilog2()).map(|i| 1u64 << i)
    };
    let tiles = parts(bm, whole[0]).flat_map(|rows| parts(bn, whole[1]).map(move |cols| (bm / rows, bn / cols)));
    let fitting = tiles.filter(|&tile| warps_in((bm, bn), tile) <= warps);
    let best = fitting.max_by_key(|&tile| (warps_in((bm, bn), tile), std::cmp::Reverse(tile.0.abs_diff(tile.1))));
    best.unwrap_or((bm, bn))
}

pub(crate) fn warps_in((bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u64 {
    bm / wm.max(1) * (bn / wn.max(1))
}
