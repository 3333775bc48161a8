//! Register use of a thread of a kernel with products, for a number of warps.

use crate::Cx;
use crate::analysis::live_ranges::{self, Tile};
use crate::select_mma::atoms::{best_atom, slice_depth};
use crate::select_mma::warps::warp_tile::{LEAST, Product, warp_tile};
use tilec_ir::atoms::{Bit, Fragment};
use tilec_ir::kernel::Kernel;
use tilec_ir::target::WARP;

/// Number of copies of a fragment: one is multiplied while the next is loaded.
const BUFFERS: u64 = 2;

/// Registers of a thread for all register tiles of the kernel, and the fragments of one product.
pub(super) fn registers(k: &Kernel, cx: &Cx<'_>, products: &[Product], warps: u64) -> u64 {
    let held = |tile: &Tile| match like(products, tile) {
        Some(p) => {
            let (wm, wn) = warp_tile(p, warps);
            tile.elem.words(wm * wn / u64::from(WARP)).max(1)
        }
        None => shared_evenly(tile, warps),
    };
    let sum = live_ranges::tiles(k).into_iter().map(|tiles| tiles.iter().map(held).sum()).max().unwrap_or(0);
    // With a single product, fragments are loaded a slice ahead; with several, the assembler loads the operands of the
    // next instruction.
    let alone = products.len() == 1;
    let product = |p: &Product| fragments(cx, p, warp_tile(p, warps), alone) + staged(cx, p, warps);
    sum + products.iter().map(product).max().unwrap_or(0)
}

/// Registers of a thread for the register tiles that do not have the extents of an accumulator: all warps divide these.
pub(super) fn of_others(k: &Kernel, products: &[Product], warps: u64) -> u64 {
    let held = |tiles: Vec<Tile>| {
        let others = tiles.iter().filter(|tile| like(products, tile).is_none());
        others.map(|tile| shared_evenly(tile, warps)).sum()
    };
    live_ranges::tiles(k).into_iter().map(held).max().unwrap_or(0)
}

/// The product whose accumulator has the extents of a tile.
fn like<'a>(products: &'a [Product], tile: &Tile) -> Option<&'a Product> {
    products.iter().find(|p| tile.shape == [p.shape.0, p.shape.1])
}

/// Registers of a thread for a tile that this number of warps divide.
fn shared_evenly(tile: &Tile, warps: u64) -> u64 {
    // In a broadcast row, four lanes have the same elements.
    let repeated = if tile.shape.contains(&1) { 4 } else { 1 };
    let elements = tile.shape.iter().product::<u64>() * repeated / (warps * u64::from(WARP));
    tile.elem.words(elements).max(1)
}

/// Registers of a thread through which the next tiles of a product's operands pass, without asynchronous copies.
fn staged(cx: &Cx<'_>, p: &Product, warps: u64) -> u64 {
    let elements = (p.shape.0 + p.shape.1) * p.depth;
    let bytes = p.types.map_or(0, |(inputs, _)| inputs.size().bytes_of(elements));
    let through = !cx.options.target.has_asynchronous_copies();
    if through { bytes / (4 * warps * u64::from(WARP)) } else { 0 }
}

/// Registers of a thread for the fragments of a product with these warp tiles and the best instruction.
fn fragments(cx: &Cx<'_>, p: &Product, (wm, wn): (u64, u64), alone: bool) -> u64 {
    let Some(types) = p.types else { return 0 };
    let Some(atom) = best_atom(cx.options.target, cx.enabled, types, (wm, wn, p.depth)) else { return 0 };
    let row = atom.row();
    let depth = slice_depth(row, [Some(types.0.size()); 2], p.depth);
    let words = |rows: u64, f: &Fragment| {
        let lanes = f.lane.iter().filter(|&&bit| bit != Bit::Same).count();
        (types.0.size().bytes_of(rows * depth) >> lanes).div_ceil(4)
    };
    match alone {
        true => BUFFERS * (words(wm, &row.a[0]) + words(wn, &row.b[0])),
        false => words(wm, &row.a[0]) + BUFFERS * words(LEAST.min(wn), &row.b[0]),
    }
}
