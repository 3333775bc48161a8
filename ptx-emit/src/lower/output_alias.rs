//! Finds tensors that an output may alias, by a proof on the program as it is lowered.
//!
//! A kernel that reads `C` and writes `D` may be launched with both at one address under these conditions. Every
//! element that two accesses could share belongs to one thread, which reads it before it writes it, and does not read
//! it again:
//!
//! * both tensors are read and written only by copies to `D`, through the window that is written; or they are read
//!   before all of these into tiles ([`reads_ahead`](Lower::reads_ahead)), each element by the thread that writes it,
//!   or with a barrier in between;
//! * the copy's distribution gives each element to one thread, once (replicas of an element in other threads neither
//!   read nor write it: see [`Lower::store`](super::Lower));
//! * no two executions of these copies overlap: every grid axis and every loop around them moves the window along one
//!   dimension, past all that the others cover there; of several copies at most one is executed, as branches of an
//!   `if`.
//!
//! Or each block reads and writes rows of its own, and has read all of them, followed by a barrier, before it writes
//! (`alias_regions.rs`).
//!
//! The contract promises nothing in other cases, although aliasing may be correct there.

use super::alias_regions::{clears, movers};
use super::loaded_once::alike;
use super::program_paths::{Step, in_front, names_places, same_index, statement, walk};
use super::state::Lower;
use super::uses::{Uses, uses};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mechanism, StmtData};
use tilec_ir::layout::F2Map;
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, layout_of, resolve_view};

/// A copy to the output tensor.
struct Store {
    /// The nested blocks down to the copy, each with the index of the statement in it.
    path: Vec<Step>,
    to: ResolvedView,
}

impl Lower<'_> {
    /// The tensors whose address `written` may have, if the strides are equal too.
    pub(super) fn may_alias(&self, written: Value) -> Vec<String> {
        let k = self.k;
        if !uses(k, written).write {
            return Vec::new();
        }
        let candidates: Vec<Value> = k.params.iter().copied().filter(|&other| alike(k, written, other)).collect();
        if candidates.is_empty() {
            return Vec::new();
        }
        let stores = self.stores_to(written);
        let proved = |&other: &Value| {
            matches!(uses(k, other), Uses { read: true, write: false })
                && (stores.as_ref().is_some_and(|stores| self.only_read_under(other, stores))
                    || self.is_read_before(other, written))
        };
        candidates.into_iter().filter(proved).map(|v| k.values[v].name.clone()).collect()
    }

    /// The copies to `tensor`, if no two executions of them overlap and no other statement accesses it.
    fn stores_to(&self, tensor: Value) -> Option<Vec<Store>> {
        let k = self.k;
        let mut stores = Vec::new();
        let mut ok = true;
        walk(k, k.body, &mut Vec::new(), &mut |path, s| {
            let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return };
            let Some(to) = resolve_view(k, *dst).filter(|v| v.base == tensor) else { return };
            ok &= attrs.reduce.is_none() && !attrs.lands_later() && self.once_each(*src, attrs);
            stores.push(Store { path: path.to_vec(), to });
        });
        let apart = stores.iter().enumerate().all(|(i, a)| stores[..i].iter().all(|b| exclusive(k, &a.path, &b.path)));
        let moved = stores.iter().all(|store| self.distinct_per_iteration(store));
        (ok && apart && moved && self.only_read_under(tensor, &stores)).then_some(stores)
    }

    /// Whether a copy's distribution gives every element to one thread once, apart from replicas that are predicated
    /// off.
    fn once_each(&self, src: Expr, attrs: &CopyAttrs) -> bool {
        let Some(layout) = attrs.threads.clone().or_else(|| layout_of(self.k, src)) else { return false };
        let threads = (0..layout.thread_bits()).map(|i| layout.thread_col(i)).filter(|&c| c != 0);
        let owned: Vec<u64> = threads.chain((0..layout.value_bits()).map(|i| layout.value_col(i))).collect();
        F2Map::from_cols(owned).is_some_and(|map| map.is_injective())
    }

    /// Whether blocks, and iterations of the loops around it, write different elements.
    fn distinct_per_iteration(&self, store: &Store) -> bool {
        let k = self.k;
        let Some(movers) = movers(k, &store.path) else { return false };
        // Gathered rows may be any rows.
        if store.to.is_gathered() {
            return false;
        }
        let Some(extents) = self.extents(store) else { return false };
        // For each dimension, the distances and counts by which its windows are moved.
        let mut moves: Vec<Vec<(u64, Option<u64>)>> = vec![Vec::new(); extents.len()];
        for mover in movers {
            let mut moved = 0;
            for (dim, moves) in store.to.dims.iter().zip(&mut moves) {
                let parts = dim.starts().iter().map(|&e| self.coefficient(e, mover.var));
                let Some(parts) = parts.collect::<Option<Vec<i64>>>() else { return false };
                let distance = parts.iter().fold(0i64, |sum, c| sum.saturating_add(*c)).saturating_mul(mover.step);
                if distance != 0 {
                    moves.push((distance.unsigned_abs(), mover.times));
                    moved += 1;
                }
            }
            if moved != 1 {
                return false;
            }
        }
        moves.into_iter().zip(extents).all(|(moves, extent)| clears(moves, extent))
    }

    /// Elements of the window along each dimension of the tensor.
    fn extents(&self, store: &Store) -> Option<Vec<u64>> {
        let StmtData::Copy { src, dst, .. } = self.k.stmts[statement(self.k, &store.path)?] else { return None };
        let shape = self.copy_shape(src, dst)?;
        let kept = store.to.base_dims();
        let of = |d: usize| match (kept.iter().position(|&at| at == d), &store.to.dims[d]) {
            // A padded tile ends where the written one did.
            (Some(w), ViewDim::From { starts, end: Some(end) }) => {
                let extent = *shape.get(w)?;
                Some(length(self.k, starts, *end).map_or(extent, |n| n.min(extent)))
            }
            (Some(w), _) => shape.get(w).copied(),
            (None, _) => Some(1),
        };
        (0..store.to.dims.len()).map(of).collect()
    }

    /// Whether `tensor` is read only by these copies, through the windows that they write.
    fn only_read_under(&self, tensor: Value, stores: &[Store]) -> bool {
        let k = self.k;
        let mut ok =
            !k.statements().into_iter().any(|s| k.stmts[s].exprs().into_iter().any(|e| names_places(k, e, tensor)));
        walk(k, k.body, &mut Vec::new(), &mut |path, s| {
            let store = stores.iter().find(|store| store.path == path);
            let windows = self.windows_read(s, tensor);
            ok &= match store {
                Some(store) => windows.iter().all(|w| same_window(k, w, &store.to, &[])),
                None => windows.is_empty() || self.reads_ahead(path, s, &windows, stores),
            };
        });
        ok
    }

    /// Whether a statement reads windows into a register tile before all stores, so that each element is read by the
    /// thread that stores it.
    ///
    /// The loaded tile and the stored tile have the same layout, and each element belongs to one thread; or there is a
    /// barrier in between. The windows are those that are written, in separate loops with the same iterations: a whole
    /// row is read before its first store.
    fn reads_ahead(&self, path: &[Step], s: Stmt, windows: &[ResolvedView], stores: &[Store]) -> bool {
        let k = self.k;
        let (variable, loads) = match &k.stmts[s] {
            StmtData::Copy { dst, attrs, .. } if attrs.mechanism == Mechanism::Registers => match k.exprs[*dst] {
                ExprData::Ref(v) => (v, true),
                _ => return false,
            },
            StmtData::Assign { dst, .. } => (*dst, false),
            _ => return false,
        };
        let Some(tile) = k.tile_ty(variable) else { return false };
        let own = tile.reg_layout.as_ref().zip(k.const_shape(&tile.shape)).filter(|(layout, _)| {
            super::access::replica_bits(layout) == 0
                || loads && windows.len() == 1 && self.is_loaded_once(variable, &windows[0])
        });
        stores.iter().all(|store| {
            let Some(at) = statement(k, &store.path) else { return false };
            let StmtData::Copy { src, dst, attrs } = &k.stmts[at] else { return false };
            let Some(from) = in_front(path, &store.path).filter(|&from| !in_role(k, path[from])) else { return false };
            let stored = attrs.threads.clone().or_else(|| layout_of(k, *src));
            let by_same_threads = own.as_ref().is_some_and(|(layout, shape)| {
                stored.as_ref() == Some(layout) && self.copy_shape(*src, *dst).as_ref() == Some(shape)
            });
            let loops = run_alike(k, &path[from..], &store.path[from..]);
            (by_same_threads || self.is_behind_barrier(path[from], store.path[from]))
                && loops.is_some_and(|same| windows.iter().all(|w| same_window(k, w, &store.to, &same)))
        })
    }
}

/// Whether a step of a path leads into a role, whose threads are not those of other roles.
fn in_role(k: &Kernel, (block, index): Step) -> bool {
    matches!(k.stmts[k.blocks[block][index]], StmtData::Role { .. })
}

/// The number of elements of a window that ends so many elements after its start.
fn length(k: &Kernel, starts: &[Expr], end: Expr) -> Option<u64> {
    let &[start] = starts else { return None };
    match &k.exprs[end] {
        ExprData::Op { op: Op::Min, args } => args.iter().find_map(|&end| length(k, starts, end)),
        ExprData::Op { op: Op::Add, args } => match args[..] {
            [from, n] if same_index(k, from, start, &[]) => k.as_int(n).and_then(|n| u64::try_from(n).ok()),
            _ => None,
        },
        _ if k.as_int(start) == Some(0) => k.as_int(end).and_then(|n| u64::try_from(n).ok()),
        _ => None,
    }
}

/// Whether two statements are in different branches of one `if` that no loop repeats between them.
fn exclusive(k: &Kernel, a: &[Step], b: &[Step]) -> bool {
    let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    // The last common statement: the paths continue in different blocks of it.
    let Some(&(block, index)) = common.checked_sub(1).and_then(|last| a.get(last)) else { return false };
    let branches = matches!(k.stmts[k.blocks[block][index]], StmtData::If { .. });
    branches && a.get(common).zip(b.get(common)).is_some_and(|(x, y)| x.0 != y.0)
}

/// The loop variables on two paths, pair by pair, if the loops have the same bounds.
fn run_alike(k: &Kernel, a: &[Step], b: &[Step]) -> Option<Vec<(Value, Value)>> {
    let loops = |path: &[Step]| -> Vec<StmtData> {
        let stmts = path.iter().map(|&(block, index)| &k.stmts[k.blocks[block][index]]);
        stmts.filter(|s| matches!(s, StmtData::For { .. })).cloned().collect()
    };
    let (a, b) = (loops(a), loops(b));
    let mut pairs = Vec::new();
    for (x, y) in a.iter().zip(&b) {
        let StmtData::For { var, start, end, step, cond: None, .. } = *x else { return None };
        let StmtData::For { var: other, start: s, end: e, step: t, cond: None, .. } = *y else { return None };
        if ![(start, s), (end, e), (step, t)].into_iter().all(|(x, y)| same_index(k, x, y, &pairs)) {
            return None;
        }
        pairs.push((var, other));
    }
    (a.len() == b.len()).then_some(pairs)
}

/// Whether two windows cover the same elements for equal values of the paired loop variables.
fn same_window(k: &Kernel, a: &ResolvedView, b: &ResolvedView, pairs: &[(Value, Value)]) -> bool {
    let same = |a: Expr, b: Expr| same_index(k, a, b, pairs);
    let same_dim = |(a, b): (&ViewDim, &ViewDim)| match (a, b) {
        (ViewDim::Fixed(a), ViewDim::Fixed(b)) => same(*a, *b),
        (ViewDim::From { starts: a, end: p }, ViewDim::From { starts: b, end: q }) => {
            let ends = match (p, q) {
                (Some(p), Some(q)) => same(*p, *q),
                _ => p.is_none() && q.is_none(),
            };
            ends && a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b))
        }
        _ => false,
    };
    a.transposed == b.transposed && a.dims.len() == b.dims.len() && a.dims.iter().zip(&b.dims).all(same_dim)
}
