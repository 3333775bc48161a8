//! Products of warps with an operand that is converted in registers, in fragments of the whole depth.
//!
//! Threads load every element of such an operand. In the order of the instruction they load single bytes from several places of each row, if elements have four
//! bits. If the fragments of both operands cover the whole depth of the tile, the reduction may use any order that is the same for both (`assign-layouts`): then a lane loads words that contain only its own elements.
//!
//! ```text
//! copy w -> w_read
//! copy cast<f32>(w_read) * s_read -> w_bf16
//! copy a -> a_frag
//! acc = mma<m16n8k16, swap>(a_frag, w_bf16, acc)
//! ```

use super::atoms::{best_atom, transposed};
use super::from_registers::keeps;
use super::k_slices::{declare_beside, insert_at};
use super::operand_sources::{self, Product, whole_buffer};
use super::operands::{acc_shape, described, known, operand_name, stored_column_major};
use crate::Cx;
use crate::analysis::access_width::{elem_of, known_elem};
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::uses::{for_each_ref, path_to, place_of};
use crate::analysis::views::{memory_views, plain_var};
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::entities::{Block, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::typing::{fixed_shape, product_depth};

/// Whether a register tile is computed from a buffer with narrower elements. `of`: the buffers.
pub(super) fn is_converted(k: &Kernel, tile: Value, of: &[Value]) -> bool {
    let own = known_elem(k, tile).bits();
    of.iter().any(|&v| elem_of(k, v).is_some_and(|elem| elem.bits() < own))
}

/// The instruction for a product of a buffer and a converted operand, and whether it is transposed. `None` if fragments
/// of the whole depth take more registers of a thread than fragments of slices.
pub(super) fn whole(k: &Kernel, cx: &Cx<'_>, product: &Product, (wm, wn): (u64, u64)) -> Option<(Inputs, Atom, bool)> {
    let &(body, _) = path_to(k, product.s).last()?;
    let Product { mma, .. } = *product;
    let (tile, k_dim, other, (own, rows)) = match (plain_var(k, mma.a), plain_var(k, mma.b)) {
        (_, Some(b)) if whole_buffer(k, mma.a).is_some() => (b, 0, mma.a, (wn, wm)),
        (Some(a), _) if whole_buffer(k, mma.b).is_some() => (a, 1, mma.b, (wm, wn)),
        _ => return None,
    };
    // Elements across the reduction are loaded one by one, and `ldmatrix` distributes those that it transposes.
    let along =
        |&v: &Value| known_elem(k, v).bits() < known_elem(k, tile).bits() && smem_contiguous(k, v) == Some(k_dim);
    let narrow = buffers_of(k, body, tile).iter().any(along);
    let buffer = whole_buffer(k, other)?;
    let runs = known_elem(k, buffer).bits() == HALF && smem_contiguous(k, buffer) == Some(1 - k_dim);
    if !narrow || !runs || rows > own {
        return None;
    }
    instruction(k, cx, product, (wm, wn))
}

/// Bits of elements of which two share a register.
const HALF: u32 = 16;

/// Makes fragments of the whole depth for operands in buffers, and selects the instruction.
pub(super) fn multiply(k: &mut Kernel, product: &Product, (atom, swap): (Atom, bool)) {
    let span = k.expr_spans[product.src];
    let mut mma = Mma { atom: Some(atom), swap, ..product.mma };
    for e in [&mut mma.a, &mut mma.b] {
        if whole_buffer(k, *e).is_none() {
            continue;
        }
        let (shape, elem) =
            (fixed_shape(k, *e).expect("a buffer has extents"), described(k, *e, 0).expect("a buffer").elem);
        let name = format!("{}_frag", operand_name(k, *e));
        let fragment = declare_beside(k, product.s, &name, elem, &shape, span);
        let dst = k.value_ref(fragment, span);
        let copy = k.stmt(StmtData::Copy { src: *e, dst, attrs: CopyAttrs::default() }, span);
        let place = place_of(k, product.s);
        insert_at(k, place, vec![copy]);
        *e = k.value_ref(fragment, span);
    }
    k.exprs[product.src] = ExprData::Mma(mma);
}

/// The buffers from which an iteration computes a register tile.
pub(super) fn buffers_of(k: &Kernel, body: Block, tile: Value) -> Vec<Value> {
    let (mut tiles, mut found) = (vec![tile], Vec::new());
    let mut done = 0;
    while let Some(&tile) = tiles.get(done) {
        done += 1;
        for &s in &k.blocks[body] {
            let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
            if plain_var(k, dst) != Some(tile) {
                continue;
            }
            for view in memory_views(k, src).iter().filter(|v| matches!(k.values[v.base].def, ValueDef::Smem(_))) {
                found = operand_sources::with(found, view.base);
            }
            for_each_ref(k, src, &mut |v| {
                if matches!(k.values[v].def, ValueDef::Var(_)) && !tiles.contains(&v) {
                    tiles.push(v);
                }
            });
        }
    }
    found
}

/// The tensor-core product of a warp for fragments of the whole depth of both operands, and whether it is transposed.
///
/// The converted operand preferably is the instruction's first. A lane loads adjacent elements along the reduction of
/// the other operand at once: for a second operand these registers are the fragment, but for a first operand they
/// alternate between two rows of a fragment. Then the assembler moves each of them at least once (a fifth of the
/// instructions for 16x32x64 in a warp). Converted elements are computed directly in the right registers.
pub(super) fn instruction(
    k: &Kernel,
    cx: &Cx<'_>,
    product: &Product,
    (wm, wn): (u64, u64),
) -> Option<(Inputs, Atom, bool)> {
    let Product { acc, mma, .. } = *product;
    let elem = |e, dim| described(k, e, dim).map(|o| o.elem);
    let inputs = Inputs { a: elem(mma.a, 1)?, b: elem(mma.b, 0)? };
    let depth = product_depth(k, &mma)?;
    acc_shape(k, acc)?;
    let types = (inputs, known(k.tile_ty(acc).map(|t| t.elem))?);
    let best = |tile| best_atom(cx.options.target, true, types, tile).filter(|atom: &Atom| atom.row().tensor_core);
    let tile = (wm, wn, depth);
    let second = whole_buffer(k, mma.a).is_some();
    let rather = mma.swap || second || whole_buffer(k, mma.b).is_none() && stored_column_major(k, acc);
    let ways = [rather, !rather].into_iter().filter(|&swap| swap || !mma.swap);
    let (atom, swap) =
        ways.filter_map(|swap| Some((best(if swap { transposed(tile) } else { tile })?, swap))).next()?;
    [true, false].into_iter().all(|first| keeps(atom.row(), first)).then_some((inputs, atom, swap))
}
