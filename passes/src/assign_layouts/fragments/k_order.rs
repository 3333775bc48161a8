//! The order in which fragments of a product cover its reduction (K).
//!
//! A sum does not depend on the order of its terms. Any assignment of the instruction's reduction bits to those of the
//! tile is correct, if it is the same for both operands. In the order of the instruction, a lane holds two adjacent
//! elements, and then two more at a distance. For unconverted operands `ldmatrix` distributes elements in this order.
//! But threads that convert an operand (4-bit or 8-bit weights) would load single bytes from many places. If lanes hold
//! longer runs of adjacent elements, they load words. Then the reduction bits that select lanes are above those of a
//! run:
//!
//! ```text
//! instruction:  value 1 | lanes 2, 4 | value 8 | repeats 16, 32    // of 64 along the reduction, for m16n8k16
//! runs of 16:   value 1, 2 | repeats 4, 8 | lanes 16, 32
//! ```
//!
//! The cost of loading both operands decides the length of runs: instructions, and cycles of shared memory.

use crate::analysis::access_width::elem_of;
use crate::analysis::uses::{all_stmts, for_each_ref};
use crate::analysis::views::{memory_views, plain_var};
use tilec_ir::atoms::{Bit, Fragment};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::types::Elem;

/// Most bytes of an access.
const WIDEST: u64 = 16;
/// Bytes that shared memory moves in a cycle: lanes whose runs are this far apart conflict in the same banks.
const LINE: u64 = 128;
/// Instructions that a multiprocessor issues in a cycle of shared memory.
const ISSUE: u64 = 4;

/// The tile's reduction bit for each of the `atom` bits of the instruction and each repetition, `all` in total. Without
/// a run, both are in the same order.
pub(super) fn places(fragment: &Fragment, run: Option<u32>, atom: u32, all: u32) -> Vec<u32> {
    let Some(run) = run else { return (0..all).collect() };
    let lanes = lane_bits(fragment);
    let own = (0..atom).filter(|i| !lanes.contains(i));
    // Tile bits in order: the run, lanes, the rest.
    let mut order: Vec<u32> = own.chain(atom..all).collect();
    let rest = order.split_off((run as usize).min(order.len()));
    order.extend(lanes);
    order.extend(rest);
    let mut places = vec![0; all as usize];
    for (place, &bit) in order.iter().enumerate() {
        places[bit as usize] = place as u32;
    }
    places
}

/// The reduction bits of the instruction that select lanes.
fn lane_bits(fragment: &Fragment) -> Vec<u32> {
    let along = |bit: &Bit| if let Bit::K(i) = *bit { Some(u32::from(i)) } else { None };
    fragment.lane.iter().filter_map(along).collect()
}

/// An operand of an instruction.
pub(super) struct Operand {
    pub(super) tile: Value,
    /// The reduction dimension of the tile.
    pub(super) k_dim: usize,
    pub(super) fragment: &'static Fragment,
    /// Rows, or columns, in a lane.
    pub(super) lines: u64,
}

/// The memory from which an operand is loaded: its element type, whether it is contiguous along the reduction, and
/// whether threads convert it.
struct Source {
    elem: Elem,
    along: bool,
    converted: bool,
}

/// Log2 of the consecutive elements along the reduction in a lane, if loading both operands is cheaper than in the
/// instruction's order, with `atom` of `all` bits in an instruction. `contiguous`: the contiguous dimension of a tile's
/// source.
pub(super) fn run(
    k: &Kernel,
    operands: &[Operand; 2],
    (atom, all): (u32, u32),
    contiguous: &dyn Fn(Value) -> Option<usize>,
) -> Option<u32> {
    let lanes = operands.each_ref().map(|o| lane_bits(o.fragment));
    if lanes[0] != lanes[1] || lanes[0].is_empty() || all < atom {
        return None;
    }
    let lanes = lanes[0].len() as u32;
    let loads: Vec<(u64, Source)> = operands
        .iter()
        .flat_map(|o| sources(k, o, contiguous).into_iter().map(|source| (o.lines << (all - lanes), source)))
        .collect();
    if !loads.iter().any(|(_, source)| source.converted) {
        return None;
    }
    let cost = |run: Option<u32>| loads.iter().map(|(n, source)| source.cost(*n, run, lanes)).sum::<u64>();
    let best = (atom - lanes..=all - lanes).min_by_key(|&run| (cost(Some(run)), run))?;
    (cost(Some(best)) < cost(None)).then_some(best)
}

impl Source {
    /// The cost of loading `elements` elements per lane, in quarters of a clock of a multiprocessor. `lanes`: log2 of
    /// the lanes that share a row.
    fn cost(&self, elements: u64, run: Option<u32>, lanes: u32) -> u64 {
        let size = self.elem.size();
        let moved = |bytes: u64| {
            let accesses = size.bytes_of(elements).div_ceil(bytes);
            // For 32 lanes.
            accesses * ((32 * bytes).div_ceil(LINE) * ISSUE + 1)
        };
        match run {
            // Unconverted operands are loaded by `ldmatrix`.
            None if !self.converted => moved(WIDEST),
            _ if !self.along => accesses_of_one(elements),
            None => moved(size.bytes_of(2).max(1)),
            Some(run) => {
                let held = size.bytes_of(1 << run).max(1);
                let apart = ((held << lanes) / LINE).max(1);
                let bytes = held.min(WIDEST);
                let accesses = size.bytes_of(elements).div_ceil(bytes);
                accesses * ((32 * bytes).div_ceil(LINE) * apart * ISSUE + 1)
            }
        }
    }
}

/// The cost of loading single elements.
fn accesses_of_one(elements: u64) -> u64 {
    elements * (ISSUE + 1)
}

/// The sources of an operand, among windows with its extents.
fn sources(k: &Kernel, operand: &Operand, contiguous: &dyn Fn(Value) -> Option<usize>) -> Vec<Source> {
    let own = elem_of(k, operand.tile).map_or(0, Elem::bits);
    let shape = |v: Value| k.tile_ty(v).and_then(|tile| k.const_shape(&tile.shape));
    let whole = shape(operand.tile);
    let (mut tiles, mut found) = (vec![operand.tile], Vec::new());
    let mut done = 0;
    while let Some(&tile) = tiles.get(done) {
        done += 1;
        let along = contiguous(tile) == Some(operand.k_dim);
        for src in filled_from(k, tile) {
            for_each_ref(k, src, &mut |v| {
                if matches!(k.values[v].def, ValueDef::Var(_)) && shape(v) == whole && !tiles.contains(&v) {
                    tiles.push(v);
                }
            });
            let elems = memory_views(k, src).into_iter().filter_map(|view| elem_of(k, view.base));
            found.extend(elems.map(|elem| Source { elem, along, converted: elem.bits() < own }));
        }
    }
    found
}

/// The sources of copies to a tile.
pub(super) fn filled_from(k: &Kernel, tile: Value) -> impl Iterator<Item = Expr> {
    all_stmts(k, k.body).into_iter().filter_map(move |s| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } if plain_var(k, dst) == Some(tile) => Some(src),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::atoms::Atom;

    #[test]
    fn lanes_stand_above_a_run() {
        let row = Atom::from_name("m16n8k16").expect("an instruction").row();
        let b = &row.b[0];
        assert_eq!(places(b, None, 4, 6), [0, 1, 2, 3, 4, 5]);
        // Bits 1 and 2 of the instruction's reduction select lanes.
        assert_eq!(places(b, Some(4), 4, 6), [0, 4, 5, 1, 2, 3]);
        assert_eq!(places(b, Some(3), 4, 6), [0, 3, 4, 1, 2, 5]);
        for run in 2..=4 {
            let mut all = places(&row.a[0], Some(run), 4, 6);
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 5]);
        }
    }
}
