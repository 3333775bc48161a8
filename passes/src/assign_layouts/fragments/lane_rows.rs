//! Rows (columns) of an operand in a lane, if its fragments cover the reduction in runs ([`super::k_order`]).
//!
//! In the order of the instruction, adjacent rows belong to different lanes, and a lane holds every eighth row. Numbers
//! that each row has for the whole reduction (scales and zero points of a group of weights) would then be loaded one by
//! one. If a lane holds adjacent rows, it loads their numbers at once, and extracts each from one register:
//!
//! ```text
//! instruction:  lanes 1, 2, 4 | value 8 | repeats 16    // of 32 columns of weights of a warp, for m16n8k16
//! neighbours:   value 1 | repeats 2 | lanes 4, 8, 16
//! ```
//!
//! An operand that is loaded in runs has an access for each of its rows in either order.

use super::k_order::{Operand, filled_from};
use crate::analysis::uses::for_each_ref;
use tilec_ir::atoms::{Bit, Fragment};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, ValueDef};

/// Gives a lane adjacent rows, if the operand is computed from numbers per row that are contiguous in memory: changes
/// the tile bits of the instruction's row bits and repetitions. `contiguous`: the contiguous dimension of a tile's
/// source.
pub(super) fn place(
    k: &Kernel,
    operand: &Operand,
    (atom, repeat): (&mut [u32], &mut [u32]),
    contiguous: &dyn Fn(Value) -> Option<usize>,
) {
    if !has_numbers_of_rows(k, operand, contiguous) {
        return;
    }
    let outer = |bit: &Bit| match *bit {
        Bit::M(i) | Bit::N(i) => Some(usize::from(i)),
        Bit::K(_) | Bit::Same => None,
    };
    let bits = |of: &[Bit]| of.iter().filter_map(outer).collect::<Vec<usize>>();
    let Fragment { value, lane, .. } = operand.fragment;
    let (own, lanes) = (bits(value), bits(lane));
    // The bits of warps are above all of these.
    let mut next = 0..;
    let mut take = |place: &mut u32| *place = next.next().expect("it has no end");
    own.into_iter().for_each(|i| take(&mut atom[i]));
    repeat.iter_mut().for_each(&mut take);
    lanes.into_iter().for_each(|i| take(&mut atom[i]));
}

/// Whether an operand is computed from a tile with one element for each row, which is contiguous in memory.
fn has_numbers_of_rows(k: &Kernel, operand: &Operand, contiguous: &dyn Fn(Value) -> Option<usize>) -> bool {
    let shape = |v: Value| k.tile_ty(v).and_then(|tile| k.const_shape(&tile.shape));
    let Some(mut row) = shape(operand.tile) else { return false };
    let Some(extent) = row.get_mut(operand.k_dim) else { return false };
    *extent = 1;
    let mut found = false;
    for src in filled_from(k, operand.tile) {
        for_each_ref(k, src, &mut |v| {
            let tile = matches!(k.values[v].def, ValueDef::Var(_));
            found |= tile && shape(v).as_ref() == Some(&row) && contiguous(v) == Some(1 - operand.k_dim);
        });
    }
    found
}
