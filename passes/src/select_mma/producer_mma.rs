//! Products by `mma.sync` in consumer warps, on operands that producer warps load and that are converted in registers.
//!
//! Threads load and convert every element of such an operand. In the fragment order of wgmma, elements of four bits are
//! single bytes from many places of a row. Shared memory fixes the order of the other operand along the reduction. If
//! both operands are fragments of a warp, the reduction may use any order that is the same for both (`assign-layouts`),
//! and a lane loads words. This pays for tiles of few rows, where conversion dominates: those that are smaller than a
//! warpgroup's (`warp_tile`).
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
//! Everything else is as with wgmma: channels, roles, persistent grids, stream-K.

use super::converted_operands;
use super::in_roles;
use super::operand_sources::{self, Product, product_of, whole_buffer};
use super::warps::Shares;
use super::wgmma;
use crate::Cx;
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::plain_var;
use crate::producer_fills::{self, How, ProducerFill};
use tilec_ir::diag::Reported;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::{WARP, WARPGROUP};

/// Makes producer warps load the operands of a kernel's product, if it uses `mma.sync` with an operand that is
/// converted in registers.
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
    let Some(feeds) = producer_copies(k, cx, &product) else {
        *k = before;
        return Ok(());
    };
    let span = k.expr_spans[product.src];
    let share = shares.of(k, cx, product.acc, span)?;
    let threads = k.schedule.threads.and_then(|e| k.as_int(e)).unwrap_or(0);
    let instruction = converted_operands::instruction(k, cx, &product, share.tile);
    let Some((inputs, atom, swap)) = instruction.filter(|_| threads % i64::from(WARPGROUP * WARP) == 0) else {
        // The decisions are kept as literals, because the kernel is replaced.
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
    cx.remark(span, format!("`{name}` for {inputs} inputs, operands loaded by producer warps, warp tile {wm}x{wn}"));
    converted_operands::multiply(k, &product, (atom, swap));
    for feed in feeds {
        k.plans[feed.fill].producer = true;
    }
    Ok(())
}

/// The copies of the producer warps for a product in a loop that only accumulates it, with one operand converted in
/// registers and the other in a buffer.
fn producer_copies(k: &Kernel, cx: &mut Cx<'_>, product: &Product) -> Option<Vec<ProducerFill>> {
    let &(body, _) = path_to(k, product.s).last()?;
    reduction::of(k, body).ok()?;
    let operands = [product.mma.a, product.mma.b];
    let tile = operands.iter().find_map(|&e| plain_var(k, e))?;
    let other = operands.iter().find_map(|&e| whole_buffer(k, e))?;
    let of = converted_operands::buffers_of(k, body, tile);
    if !converted_operands::is_converted(k, tile, &of) {
        return None;
    }
    let buffers = of.into_iter().chain([other]).fold(Vec::new(), operand_sources::with);
    if buffers.iter().any(|&v| producer_fills::by_threads(k, v)) {
        return None;
    }
    let feeds = producer_fills::plan(k, cx.options, &buffers).ok()?;
    feeds.iter().all(|f| f.mechanism == How::Tensor && !wgmma::written(k, f.fill)).then_some(feeds)
}
