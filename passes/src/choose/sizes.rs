//! Assumed values of sizes that are not given.

mod images;

use super::work::{Env, Work};
use crate::analysis::uses::mentions;
use images::Images;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::ops::Op;

/// Assumed number of heads or batches.
const BATCH: i64 = 16;
/// Log2 of the assumed extent of tensors.
const LOG2_LARGE: u32 = 13;
/// The same of vectors.
const LOG2_LONG: u32 = 24;
/// How many lines an image may have for each of its windows.
const LINES: i64 = 64;

/// Gives the sizes that have no value assumed ones, subject to preconditions. Those that a precondition computes from
/// others are last.
pub(super) fn assume(work: &Work<'_>, env: &mut Env) {
    let images = Images::of(work.k);
    let open: Vec<Value> = work.k.sizes.iter().copied().filter(|&v| env[v].is_none()).collect();
    let (computed, others): (Vec<Value>, Vec<Value>) = open.into_iter().partition(|&v| is_computed(work.k, v));
    for size in others.into_iter().chain(computed) {
        let large = match &images {
            Some(images) => images.assumed(size),
            None if counts_blocks(work, size) => BATCH,
            None => large(work, size),
        };
        env[size] = Some(promised(work, env, size, large));
    }
    // Images have the lines that their windows need.
    for &size in work.k.sizes.iter().filter(|&&v| images.as_ref().is_some_and(|images| images.is_line(v))) {
        let least = env[size].unwrap_or(1);
        let own: Vec<Expr> = work.k.requires.iter().copied().filter(|&e| mentions(work.k, e, size)).collect();
        let mut with = env.clone();
        let holds = |n: i64, with: &mut Env| {
            with[size] = Some(n);
            own.iter().all(|&e| work.truth(with, e) != Some(false))
        };
        if let Some(n) = (least..least.saturating_mul(LINES)).find(|&n| holds(n, &mut with)) {
            env[size] = Some(n);
        }
    }
}

/// Whether a precondition says what a size is: `K == L * 64`.
fn is_computed(k: &Kernel, size: Value) -> bool {
    k.requires.iter().any(|&e| {
        matches!(&k.exprs[e], ExprData::Op { op: Op::Eq, args } if matches!(k.exprs[args[0]], ExprData::Ref(v) if v == size))
    })
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
    let is_size = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if v == size);
    // How a precondition compares the size, and with what.
    let bound = |&e: &Expr| {
        let ExprData::Op { op, args } = &k.exprs[e] else { return None };
        match args[..] {
            [a, b] if is_size(a) => Some((*op, work.int(env, b)?)),
            [a, b] if is_size(b) => Some((mirrored(*op)?, work.int(env, a)?)),
            _ => None,
        }
    };
    let bounds: Vec<(Op, i64)> = k.requires.iter().filter_map(bound).collect();
    if let Some((_, n)) = bounds.iter().find(|(op, _)| *op == Op::Eq) {
        return (*n).max(1);
    }
    let at_least = bounds.iter().filter_map(|&(op, n)| match op {
        Op::Ge => Some(n),
        Op::Gt => n.checked_add(1),
        _ => None,
    });
    // `size <= BN`: a tile covers the size.
    let at_most = bounds.iter().filter_map(|&(op, n)| match op {
        Op::Le => Some(n),
        Op::Lt => n.checked_sub(1),
        _ => None,
    });
    let least = at_most.fold(at_least.fold(least, i64::max), i64::min).max(1);
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

/// The comparison with its sides exchanged.
fn mirrored(op: Op) -> Option<Op> {
    Some(match op {
        Op::Eq => Op::Eq,
        Op::Le => Op::Ge,
        Op::Lt => Op::Gt,
        Op::Ge => Op::Le,
        Op::Gt => Op::Lt,
        _ => return None,
    })
}
