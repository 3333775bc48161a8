//! Whether each block has read a part of a tensor of its own before it writes that part of another.
//!
//! The parts are windows along some dimensions, and anything along the others. A kernel that reads `X` and writes `Y`
//! may then be launched with both at one address:
//!
//! * all windows of `X` and `Y` begin at the same place along these dimensions. Every grid axis, and every loop around
//!   all accesses, moves this place past the windows along one of them. So no block, and no iteration, reads what
//!   another one writes;
//! * each access to `X` loads elements into registers or stores them to shared memory, and a barrier of all threads
//!   is between it and each store to `Y`.
//!
//! Along the other dimensions the threads may read and write in any order, also elements that indices name.

use super::distinct_tiles::{self, DistinctTiles};
use super::program_paths::{Step, any_part, in_front, names_places, reads, same_index, walk};
use super::state::Lower;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::index;
use tilec_ir::kernel::{ExprData, Kernel, Mechanism, StmtData};
use tilec_ir::names::Parts;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

/// A grid index or loop variable, with the number of its values, if that is known.
pub(super) struct MovingIndex {
    pub(super) var: Value,
    pub(super) step: i64,
    pub(super) times: Option<u64>,
}

/// The grid indices, and the variables of the loops on a path; `None`: a step is not known. In place of the blocks of a
/// persistent grid and its loop, the rows and columns of its tiles.
pub(super) fn movers(k: &Kernel, path: &[Step]) -> Option<Vec<MovingIndex>> {
    let mut movers: Vec<MovingIndex> =
        k.grid.iter().map(|a| MovingIndex { var: a.index, step: 1, times: None }).collect();
    for &(block, index) in path {
        let s = k.blocks[block][index];
        if let Some(DistinctTiles { block, names }) = distinct_tiles::of_loop(k, s) {
            movers.retain(|mover| mover.var != block);
            movers.extend(names.map(|var| MovingIndex { var, step: 1, times: None }));
            continue;
        }
        if let StmtData::For { var, start, end, step, .. } = k.stmts[s] {
            let step = k.as_int(step).filter(|s| *s > 0)?;
            let times = k.as_int(start).zip(k.as_int(end)).and_then(|(start, end)| index::trips(start, end, step));
            movers.push(MovingIndex { var, step, times });
        }
    }
    Some(movers)
}

/// Whether windows of this extent are disjoint, if they are moved by these distances, so often each.
pub(super) fn clears(mut moves: Vec<(u64, Option<u64>)>, extent: u64) -> bool {
    // Each move must exceed the range that all shorter moves cover.
    moves.sort_unstable();
    let mut covered = Some(extent);
    moves.iter().all(|&(distance, times)| {
        let clear = covered.is_some_and(|covered| distance >= covered);
        let further = times.and_then(|n| n.checked_sub(1)?.checked_mul(distance));
        covered = covered.zip(further).and_then(|(covered, further)| covered.checked_add(further));
        clear
    })
}

/// A statement that reads or writes a window.
struct Access {
    path: Vec<Step>,
    view: ResolvedView,
    /// The most elements that it has along each dimension of the tensor.
    extents: Vec<u64>,
}

impl Lower<'_> {
    /// Whether all threads pass a barrier between two statements of a block.
    pub(super) fn is_behind_barrier(&self, (block, first): Step, (_, second): Step) -> bool {
        self.k.blocks[block][first + 1..second].iter().any(|&s| self.orders_accesses(s))
    }

    /// Whether a statement is a barrier that orders all accesses before it. One that counts stores to shared memory
    /// waits for these alone.
    fn orders_accesses(&self, s: Stmt) -> bool {
        let counts = |s: Stmt| self.counted.iter().any(|c| c.of.barrier == s || c.of.begins == Some(s));
        matches!(self.k.stmts[s], StmtData::Barrier) && !counts(s)
    }

    /// Whether blocks have read their own parts of `read` when they begin to write those of `written`.
    pub(super) fn is_read_before(&self, read: Value, written: Value) -> bool {
        let k = self.k;
        let tensors = [read, written].map(|v| k.tensor_ty(v).expect("both are tensors"));
        let rank = tensors[0].shape.len();
        let plain =
            tensors.iter().all(|t| t.padded.is_empty() && !t.pointers && (0..rank).all(|d| t.modes(d).is_none()));
        let Some((loads, stores)) = self.accesses(read, written).filter(|_| plain) else { return false };
        let before = |load: &Access, store: &Access| match in_front(&load.path, &store.path) {
            Some(from) => self.is_behind_barrier(load.path[from], store.path[from]),
            None => false,
        };
        !loads.is_empty()
            && loads.iter().all(|load| stores.iter().all(|store| before(load, store)))
            && self.are_apart(&loads, &stores)
    }

    /// All statements that read the first tensor, and all that write the second; `None`: not all of them are loads and
    /// stores of threads.
    fn accesses(&self, read: Value, written: Value) -> Option<(Vec<Access>, Vec<Access>)> {
        let k = self.k;
        let named = |s: Stmt| k.stmts[s].exprs().into_iter().any(|e| names_places(k, e, read));
        let mut ok = !k.statements().into_iter().any(named);
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        walk(k, k.body, &mut Vec::new(), &mut |path, s| {
            ok &= !matches!(k.stmts[s], StmtData::Role { .. });
            let windows = self.windows_read(s, read);
            let shape = match &k.stmts[s] {
                StmtData::Copy { src, dst, attrs } if attrs.mechanism == Mechanism::Registers => {
                    self.copy_shape(*src, *dst)
                }
                StmtData::Assign { dst, .. } => k.tile_ty(*dst).and_then(|tile| k.const_shape(&tile.shape)),
                _ => None,
            };
            let mut add = |view: ResolvedView, to: &mut Vec<Access>| match extents(&view, shape.as_deref()) {
                Some(extents) => to.push(Access { path: path.to_vec(), view, extents }),
                None => ok = false,
            };
            windows.into_iter().for_each(|view| add(view, &mut loads));
            if let StmtData::Copy { dst, attrs, .. } = &k.stmts[s]
                && let Some(view) = resolve_view(k, *dst).filter(|view| view.base == written)
            {
                let stored = attrs.reduce.is_none() && !attrs.lands_later();
                add(view, &mut stores);
                ok &= stored;
            }
        });
        ok.then_some((loads, stores))
    }

    /// The windows of `tensor` that a statement itself reads. A `let` that only names a window, or is computed where it is
    /// used, reads nothing.
    pub(super) fn windows_read(&self, s: Stmt, tensor: Value) -> Vec<ResolvedView> {
        let k = self.k;
        let mut windows = Vec::new();
        for e in reads(&k.stmts[s]) {
            let named = match k.stmts[s] {
                StmtData::Let { value, .. } => resolve_view(k, e).is_some() || self.deferred.init(value).is_some(),
                _ => false,
            };
            if !named {
                self.windows_of(e, tensor, &mut windows);
            }
        }
        windows
    }

    /// The windows of `tensor` in an expression, and in the deferred `let`s that it names.
    pub(super) fn windows_of(&self, e: Expr, tensor: Value, out: &mut Vec<ResolvedView>) {
        let mut parts = Parts::of(self.k, e);
        while let Some(e) = parts.take() {
            match (resolve_view(self.k, e), &self.k.exprs[e]) {
                (Some(view), _) => out.extend(Some(view).filter(|view| view.base == tensor)),
                (None, ExprData::Ref(v)) if self.deferred.init(*v).is_some() => parts.named(*v),
                (None, ExprData::Ref(_)) => {}
                (None, _) => parts.inside(e),
            }
        }
    }

    /// Whether no block, and no iteration of the loops around all accesses, reads what another one writes.
    fn are_apart(&self, loads: &[Access], stores: &[Access]) -> bool {
        let k = self.k;
        let Some(first) = stores.first() else { return false };
        let all = || loads.iter().chain(stores);
        let shared = |path: &[Step]| path.iter().zip(&first.path).take_while(|(x, y)| x == y).count();
        let common = all().map(|access| shared(&access.path)).min().unwrap_or(0);
        // Two accesses in a loop that is not around all of them would meet in its iterations.
        let loops = |path: &[Step]| path.iter().any(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. }));
        let inner = |load: &Access, store: &Access| {
            let both = load.path.iter().zip(&store.path).take_while(|(x, y)| x == y).count();
            loops(&load.path[common.min(both)..both])
        };
        if loads.iter().any(|load| stores.iter().any(|store| inner(load, store))) {
            return false;
        }
        let Some(movers) = movers(k, &first.path[..common]) else { return false };
        // The dimensions along which all windows begin at one place, and how far they reach from there.
        let place = |d: usize| {
            let starts = starts(k, &first.view, d)?;
            let same = |access: &Access| {
                self::starts(k, &access.view, d).is_some_and(|own| {
                    own.len() == starts.len() && own.iter().zip(starts).all(|(&a, &b)| same_index(k, a, b, &[]))
                })
            };
            let extent = all().map(|access| access.extents[d]).max()?;
            all().all(same).then_some((starts, extent))
        };
        let places: Vec<(&[Expr], u64)> = (0..first.view.dims.len()).filter_map(place).collect();
        let mut moves: Vec<Vec<(u64, Option<u64>)>> = vec![Vec::new(); places.len()];
        for mover in movers {
            let mut moved = 0;
            for ((starts, _), moves) in places.iter().zip(&mut moves) {
                let parts = starts.iter().map(|&e| self.coefficient(e, mover.var));
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
        moves.into_iter().zip(places).all(|(moves, (_, extent))| clears(moves, extent))
    }
}

/// Where a window begins along a dimension of its tensor; `None`: elsewhere at each element, or where a number says that may change.
fn starts<'v>(k: &Kernel, view: &'v ResolvedView, d: usize) -> Option<&'v [Expr]> {
    let starts = match &view.dims[d] {
        ViewDim::Gather(_) => return None,
        dim => dim.starts(),
    };
    let number = |e: Expr| matches!(k.exprs[e], ExprData::Index(_));
    (!starts.iter().any(|&e| any_part(k, e, &number))).then_some(starts)
}

/// The elements of a window along each dimension of its tensor, if a tile of this shape is moved.
fn extents(view: &ResolvedView, shape: Option<&[u64]>) -> Option<Vec<u64>> {
    view.extents_of_base(shape?)
}
