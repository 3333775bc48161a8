//! Assumed values of sizes that are not given.

use super::work::{Env, Work};
use crate::analysis::uses::mentions;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::ExprData;
use tilec_ir::ops::Op;

/// Assumed number of heads or batches.
const BATCH: i64 = 16;
/// Log2 of the assumed extent of tensors.
const LOG2_LARGE: u32 = 13;
/// The same of vectors.
const LOG2_LONG: u32 = 24;

/// The assumed value of a size that is not given, subject to preconditions.
pub(super) fn assumed(work: &Work<'_>, env: &Env, size: Value) -> i64 {
    let large = if counts_blocks(work, size) { BATCH } else { large(work, size) };
    promised(work, env, size, large)
}

/// Whether a size is the number of heads or batches in a kernel with several products: the extent of a grid axis.
fn counts_blocks(work: &Work<'_>, size: Value) -> bool {
    let k = work.k;
    work.has_several_products()
        && k.grid.iter().any(|axis| matches!(k.exprs[axis.extent], ExprData::Ref(v) if v == size))
}

/// The assumed extent before preconditions: dimensions are large, larger if the kernel only has vectors, and there is
/// one batch.
fn large(work: &Work<'_>, size: Value) -> i64 {
    let k = work.k;
    let mentions = |e: Expr, v: Value| mentions(k, e, v);
    let shapes = || k.params.iter().filter_map(|&p| k.tensor_ty(p)).map(|t| &t.shape);
    let vectors = shapes().all(|s| s.len() <= 1);
    let inner = shapes().flat_map(|s| s.iter().rev().take(2)).filter(|&&e| mentions(e, size));
    // The product of several sizes in a dimension is large, not each of them.
    let bits = inner.map(|&e| {
        let sizes = k.sizes.iter().filter(|&&v| mentions(e, v)).count().max(1) as u32;
        if vectors { LOG2_LONG / sizes } else { LOG2_LARGE / sizes }
    });
    1 << bits.min().unwrap_or(0)
}

/// The smallest extent from `least` on that the preconditions allow: for `C % 64 == 0` a multiple of 64.
fn promised(work: &Work<'_>, env: &Env, size: Value, least: i64) -> i64 {
    let k = work.k;
    // `size <= BN`: a tile covers the size.
    let most = |&e: &Expr| match &k.exprs[e] {
        ExprData::Op { op: Op::Le, args } if matches!(k.exprs[args[0]], ExprData::Ref(v) if v == size) => {
            work.int(env, args[1])
        }
        _ => None,
    };
    let least = k.requires.iter().filter_map(most).fold(least, i64::min).max(1);
    let divisor = |&e: &Expr| {
        let ExprData::Op { op: Op::Eq, args } = &k.exprs[e] else { return None };
        let ExprData::Op { op: Op::Rem, args: of } = &k.exprs[args[0]] else { return None };
        let own = matches!(k.exprs[of[0]], ExprData::Ref(v) if v == size) && k.as_int(args[1]) == Some(0);
        work.int(env, of[1]).filter(|&n| own && n > 0)
    };
    let divisors: Vec<i64> = k.requires.iter().filter_map(divisor).collect();
    // A multiple of the largest divisor, which is a multiple of the others, because divisors in programs are powers of
    // two.
    let Some(&most) = divisors.iter().max() else { return least };
    let multiple = least.checked_add(most - 1).and_then(|x| x.checked_div(most)).and_then(|n| n.checked_mul(most));
    multiple.filter(|x| divisors.iter().all(|n| x % n == 0)).unwrap_or(least)
}
