//! Products by `mma.sync` in consumer warps, on operands that producer warps load and that are converted in registers.
//!
//! Of such an operand threads load every element and convert it. The fragments of wgmma take elements of many places of a row, a byte of each where elements have four
//! bits; the other operand's order along the reduction is that of shared memory, which cannot change. Where both operands are fragments of a warp, they may go through
//! the reduction in any order that is the same for both (`assign-layouts`), and a lane loads words. So that is for tiles of few rows, where conversion is the work: those that are
//! smaller than a warpgroup computes (`warp_tile`).
//!
//! ```text
//! @(producer) copy A[i * 16.., k..] -> a
//! @(producer) copy W[k.., j * 128..] -> w
//! copy w -> w_read
//! copy cast<f32>(w_read) * s_read -> w_bf16
//! copy a -> a_frag
//! acc = mma<m16n8k16>(a_frag, w_bf16, acc)
//! ```
//!
//! Everything else is as with wgmma: channels, roles, blocks that stay and share tiles.

use super::atoms::{best_atom, transposed};
use super::from_registers::keeps;
use super::in_roles;
use super::operands::{acc_shape, described, known, operand_name, stored_column_major};
use super::slices::{declare_beside, insert_at};
use super::sources::{self, Product, product_of, whole_buffer};
use super::warps::Shares;
use super::wgmma;
use crate::Cx;
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, for_each_ref, path_to, place_of};
use crate::analysis::views::{memory_views, plain_var};
use crate::analysis::width::{elem_of, known_elem};
use crate::feeds::{self, Feed, How};
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Block, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::typing::fixed_shape;

/// Has producer warps bring what the product of a kernel is computed of, if it is of warps, and an operand of it is converted in registers.
pub(super) fn select(k: &mut Kernel, cx: &mut Cx<'_>, shares: &mut Shares) -> Result<(), Reported> {
    if !cx.enabled || !cx.options.target.has_tensor_copies() || cx.options.missing_for_roles().is_some() {
        return Ok(());
    }
    let by_hand = |s: &StmtData| matches!(s, StmtData::Role { .. } | StmtData::Channel { .. });
    if k.statement_data().any(by_hand) || k.schedule.k_warps.and_then(|e| k.as_int(e)).is_some_and(|n| n > 1) {
        return Ok(());
    }
    let products: Vec<Product> = all_stmts(k, k.body).into_iter().filter_map(|s| product_of(k, s)).collect();
    let [mut product] = products[..] else { return Ok(()) };
    if product.mma.atom.is_some() || in_roles::in_role(k, product.s) {
        return Ok(());
    }
    let before = k.clone();
    wgmma::computed_operands(k, &mut product);
    let Some(feeds) = fed(k, cx, &product) else {
        *k = before;
        return Ok(());
    };
    let span = k.expr_spans[product.src];
    let share = shares.of(k, cx, product.acc, span)?;
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).unwrap_or(0);
    let instruction = instruction(k, cx, &product, share.tile);
    let Some((inputs, atom, swap)) = instruction.filter(|_| threads % i64::from(WARPGROUP * WARP) == 0) else {
        // What was decided stays, as expressions of the kernel as it was.
        let warp_tile = k.schedule.warp_tile.and_then(|(rows, cols)| k.as_int(rows).zip(k.as_int(cols)));
        *k = before;
        if k.schedule.threads.is_none() {
            k.schedule.threads = Some(k.int(threads, span));
        }
        if let (None, Some((rows, cols))) = (k.schedule.warp_tile, warp_tile) {
            k.schedule.warp_tile = Some((k.int(rows, span), k.int(cols, span)));
        }
        return Ok(());
    };
    let (name, (wm, wn)) = (atom.row().name, share.tile);
    cx.remark(span, format!("`{name}` for {inputs} inputs on what producer warps bring, {wm}x{wn} of a warp"));
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
    for feed in feeds {
        k.plans[feed.fill].producer = true;
    }
    Ok(())
}

/// The copies that producer warps do for a product in a loop that does nothing but add it up, if one operand of it is converted in registers and the other one is a buffer.
fn fed(k: &Kernel, cx: &mut Cx<'_>, product: &Product) -> Option<Vec<Feed>> {
    let &(body, _) = path_to(k, product.s).last()?;
    reduction::of(k, body).ok()?;
    let operands = [product.mma.a, product.mma.b];
    let tile = operands.iter().find_map(|&e| plain_var(k, e))?;
    let other = operands.iter().find_map(|&e| whole_buffer(k, e))?;
    let of = buffers_of(k, body, tile);
    let own = known_elem(k, tile).bits();
    if !of.iter().any(|&v| elem_of(k, v).is_some_and(|elem| elem.bits() < own)) {
        return None;
    }
    let buffers = of.into_iter().chain([other]).fold(Vec::new(), sources::with);
    if buffers.iter().any(|&v| feeds::by_threads(k, v)) {
        return None;
    }
    let feeds = feeds::plan(k, cx.options, &buffers).ok()?;
    feeds.iter().all(|f| f.how == How::Tensor && !wgmma::written(k, f.fill)).then_some(feeds)
}

/// The buffers out of which an iteration computes a register tile.
fn buffers_of(k: &Kernel, body: Block, tile: Value) -> Vec<Value> {
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
                found = sources::with(found, view.base);
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

/// The tensor-core product of a warp for fragments of the whole depth of both operands, and whether it is computed transposed.
///
/// Rather with what threads convert as the instruction's first operand. A lane loads neighbours along the reduction of the other one at once: those are the registers of a second
/// operand's fragment as they come, but go to two fragments of a first one, whose registers are those of two rows in turns. The assembler moves each of them, once or more (a
/// fifth of the instructions of 16x32x64 of a warp); what is converted is computed where it is wanted.
fn instruction(k: &Kernel, cx: &Cx<'_>, product: &Product, (wm, wn): (u64, u64)) -> Option<(Inputs, Atom, bool)> {
    let Product { acc, mma, .. } = *product;
    let elem = |e, dim| described(k, e, dim).map(|o| o.elem);
    let inputs = Inputs { a: elem(mma.a, 1)?, b: elem(mma.b, 0)? };
    let depth = *fixed_shape(k, mma.a)?.get(1)?;
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
