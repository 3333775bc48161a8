//! What threads do to tensors in global memory, and which of it barriers order.
//!
//! What a thread stores is seen by others behind a barrier, and what others have still to load is not overwritten in front of one, as in shared
//! memory. But a thread mostly stores where it has loaded itself, and a role that walks over tiles comes to none of them twice ([`apart`]).

use super::apart::comes_back;
use super::prove::uses::tensors;
use crate::analysis::uses::{all_stmts, path_to};
use crate::analysis::views::plain_var;
use crate::rewrite::same_expr;
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::typing::{ResolvedView, ViewDim, layout_of, resolve_view};

/// The tensors that some statement loads from and some statement stores to.
pub(super) fn loaded_and_stored(k: &Kernel) -> BTreeSet<Value> {
    let (mut loads, mut stores) = (BTreeSet::new(), BTreeSet::new());
    for s in k.statements() {
        let touches = tensors(k, s);
        loads.extend(touches.loads);
        stores.extend(touches.stores);
    }
    loads.intersection(&stores).copied().collect()
}

/// Whether the statement `s` of a role may come to an element of a tensor that its threads have loaded before, or stored.
pub(super) fn meets(k: &Kernel, s: Stmt, tensor: Value, stored: bool) -> bool {
    let Some(&(block, index)) = path_to(k, s).first() else { return true };
    let mut inside = Vec::new();
    for b in k.sub_blocks(k.blocks[block][index]) {
        inside.extend(all_stmts(k, b));
    }
    let of = |t: &Stmt| {
        let touches = tensors(k, *t);
        if stored { touches.stores.contains(&tensor) } else { touches.loads.contains(&tensor) }
    };
    inside.iter().filter(|t| of(t)).any(|&t| comes_back(k, t, s, tensor))
}

/// Whether every thread that stores elements of a tensor by statement `s` is the one that loads them anywhere else: the same window,
/// dealt out to the threads in the same way. What `s` itself reads it stores to. Of threads that hold the same element one stores it, and
/// all of them load it.
pub(super) fn stores_where_loaded(k: &Kernel, s: Stmt, tensor: Value) -> bool {
    let StmtData::Copy { src, dst, .. } = &k.stmts[s] else { unreachable!("what stores a tensor is a copy") };
    let (Some(to), Some(stored)) = (resolve_view(k, *dst), layout_of(k, *src)) else { return false };
    let alone = !stored.is_replicated();
    let loads_elsewhere = |t: Stmt| t != s && tensors(k, t).loads.contains(&tensor);
    all_stmts(k, k.body).into_iter().filter(|&t| loads_elsewhere(t)).all(|t| {
        let StmtData::Copy { src, dst, .. } = &k.stmts[t] else { return false };
        let loaded = plain_var(k, *dst).and_then(|v| k.tile_ty(v)?.reg_layout.clone());
        alone
            && resolve_view(k, *src).is_some_and(|from| same_window(k, &from, &to))
            && loaded.as_ref() == Some(&stored)
    })
}

fn same_window(k: &Kernel, a: &ResolvedView, b: &ResolvedView) -> bool {
    let same = |x: &[Expr], y: &[Expr]| x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| same_expr(k, x, y));
    let dims = a.dims.iter().zip(&b.dims).all(|(x, y)| match (x, y) {
        (ViewDim::Fixed(x), ViewDim::Fixed(y)) => same_expr(k, *x, *y),
        (ViewDim::From { starts: x, end: p }, ViewDim::From { starts: y, end: q }) => {
            same(x, y) && same(p.as_slice(), q.as_slice())
        }
        _ => false,
    });
    a.base == b.base && a.transposed == b.transposed && a.dims.len() == b.dims.len() && dims
}
