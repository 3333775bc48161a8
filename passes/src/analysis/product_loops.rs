//! Loops that are sums of products. Their result depends neither on where the reduction is cut into tiles, nor on tiles of zeros.

use super::uses::{all_stmts, for_each_ref, mentions, stmt_exprs};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::typing::resolve_view;

/// The accumulator of a statement that adds a product to it: `acc = mma(a, b, acc)`.
pub(crate) fn accumulator(k: &Kernel, s: Stmt) -> Option<Value> {
    let StmtData::Assign { dst, src } = k.stmts[s] else { return None };
    let ExprData::Mma(mma) = k.exprs[src] else { return None };
    let own = matches!(k.exprs[mma.c], ExprData::Ref(v) if v == dst);
    (own && !mentions(k, mma.a, dst) && !mentions(k, mma.b, dst)).then_some(dst)
}

/// A sum that a statement under `body` reads before it is complete.
pub(crate) fn unfinished_sum(k: &Kernel, body: Block) -> Option<Value> {
    let all = all_stmts(k, body);
    let sums: Vec<Value> = all.iter().filter_map(|&s| accumulator(k, s)).collect();
    all.iter().find_map(|&s| match k.stmts[s] {
        StmtData::Assign { dst, src } => match k.exprs[src] {
            ExprData::Mma(mma) if accumulator(k, s).is_some() => {
                sums.iter().copied().find(|&v| mentions(k, mma.a, v) || mentions(k, mma.b, v))
            }
            _ => Some(dst),
        },
        _ => stmt_exprs(k, s).into_iter().find_map(|e| sums.iter().copied().find(|&v| mentions(k, e, v))),
    })
}

/// A tile that is filled under `body` for each tile of the reduction, and whose last contents something other than a
/// product reads afterwards.
pub(crate) fn outlives(k: &Kernel, body: Block) -> Option<Value> {
    let inside = all_stmts(k, body);
    let mut filled: Vec<Value> = Vec::new();
    for &s in &inside {
        if let StmtData::Copy { dst, .. } = k.stmts[s]
            && let Some(to) = resolve_view(k, dst)
            && to.slot.is_none()
            && k.tensor_ty(to.base).is_none()
        {
            filled.push(to.base);
        }
    }
    let mut found = None;
    let mut stack = vec![(k.body, Vec::new())];
    while let Some((block, outer)) = stack.pop() {
        // Refilled in front of the statements that follow.
        let mut anew: Vec<Value> = outer;
        for &s in &k.blocks[block] {
            if !inside.contains(&s) {
                for e in stmt_exprs(k, s) {
                    let into = matches!(k.stmts[s], StmtData::Copy { dst, .. } if dst == e);
                    for_each_ref(k, e, &mut |v| {
                        if filled.contains(&v) && !anew.contains(&v) && !into {
                            found = found.or(Some(v));
                        }
                    });
                }
            }
            if let StmtData::Copy { dst, ref attrs, .. } = k.stmts[s]
                && !inside.contains(&s)
                && !attrs.keep
                && !attrs.is_prefetch()
                && let ExprData::Ref(v) = k.exprs[dst]
            {
                anew.push(v);
            }
            stack.extend(k.sub_blocks(s).into_iter().filter(|&b| b != body).map(|b| (b, anew.clone())));
        }
    }
    found
}

/// A product under `body` that is cut along another dimension than its reduction if the tensor copy `fetched` is cut
/// along `dim`; or a copy that drops that dimension. Then the loop is no sum over it.
pub(crate) fn cut_along_other_dim(k: &Kernel, body: Block, fetched: Stmt, dim: usize) -> Option<Stmt> {
    let StmtData::Copy { src, dst, .. } = k.stmts[fetched] else { return Some(fetched) };
    let Some(first) = moved(k, src, dst, dim) else { return Some(fetched) };
    let all = all_stmts(k, body);
    // Tiles, each with its dimension that is cut.
    let mut cut = vec![first];
    let mut at = 0;
    while let Some(&(tile, dim)) = cut.get(at) {
        at += 1;
        for &s in &all {
            match k.stmts[s] {
                StmtData::Copy { src, dst, .. } if mentions(k, src, tile) => match moved(k, src, dst, dim) {
                    Some(next) if cut.contains(&next) => {}
                    Some(next) => cut.push(next),
                    None => return Some(s),
                },
                StmtData::Assign { src, .. } if mentions(k, src, tile) => {
                    let ExprData::Mma(mma) = k.exprs[src] else { return Some(s) };
                    // The last dimension of the left operand and the last but one of the right operand are the
                    // reduction.
                    let reduced = [(mma.a, 1), (mma.b, 2)].into_iter().all(|(e, last)| {
                        !mentions(k, e, tile) || position(k, e, dim).is_some_and(|(at, rank)| at + last == rank)
                    });
                    if !reduced {
                        return Some(s);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

/// The position of a memory dimension among the dimensions of a window, and their number.
fn position(k: &Kernel, e: Expr, dim: usize) -> Option<(usize, usize)> {
    let view = resolve_view(k, e)?;
    let kept = view.base_dims();
    kept.iter().position(|&d| d == dim).map(|at| (at, kept.len()))
}

/// The tile that a copy fills, and its dimension that corresponds to dimension `dim` of the source.
fn moved(k: &Kernel, src: Expr, dst: Expr, dim: usize) -> Option<(Value, usize)> {
    let (at, rank) = position(k, src, dim)?;
    let to = resolve_view(k, dst)?;
    let kept = to.base_dims();
    (kept.len() == rank).then(|| (to.base, kept[at]))
}
