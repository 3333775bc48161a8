//! The way of an element onwards: the program is walked in its order, with the tiles and names that hold what is made of the element. What overwrites a tile ends
//! it; loops carry it from the end of their body to its head; after a conditional it is what either branch leaves.

use super::graph::{ALL_PARTS, Graph, Node, What};
use super::solve::Solver;
use super::spot::{Spot, contains, whole};
use super::state::{Held, add, join};
use super::uses::{Use, Uses};
use super::windows::{Numbers, Window, from_memory};
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::typing::{Type, copy_shape, fixed_shape, resolve_view, type_of};

/// Walks of a loop's body until nothing changes, at most.
const WALKS: usize = 12;

/// Where the way begins.
#[derive(Clone, Debug)]
pub(super) enum From {
    /// A statement reads it in a window of a tensor.
    Read { stmt: Stmt, window: Expr, spot: Spot },
    /// A tile or a name has it, whatever writes it.
    Place { place: Value, spot: Spot },
}

/// A walk.
pub(super) struct Forward<'s, 'k> {
    pub(super) k: &'k Kernel,
    pub(super) solver: &'s Solver<'k>,
    pub(super) loops: &'s BTreeMap<Stmt, Vec<Value>>,
    pub(super) from: From,
    pub(super) numbers: Numbers,
    pub(super) graph: Graph,
    after: Numbers,
    further: Vec<Value>,
    begun: bool,
}

/// What a statement writes.
pub(super) enum Target {
    /// A name, or all of a register variable.
    Whole(Value),
    /// A window of a tile or a tensor.
    Window(Expr),
}

/// What a statement computes, where it goes, and of what extents it is; `None`: it computes nothing, or names a window.
pub(super) fn computes(k: &Kernel, s: Stmt) -> Option<(Expr, Target, Option<Vec<u64>>)> {
    let of_place = |v: Value| k.tile_ty(v).and_then(|tile| k.const_shape(&tile.shape));
    match k.stmts[s] {
        StmtData::Let { value, init } => {
            let tensor = resolve_view(k, init).is_some_and(|view| k.tile_ty(view.base).is_none());
            let shape = match type_of(k, init) {
                Ok(Type::Tile(t)) => t.known_shape(),
                _ => fixed_shape(k, init),
            };
            (!tensor).then_some((init, Target::Whole(value), shape))
        }
        StmtData::Var { value, init } => Some((init?, Target::Whole(value), of_place(value))),
        StmtData::Assign { dst, src } => Some((src, Target::Whole(dst), of_place(dst))),
        StmtData::Copy { src, dst, .. } => Some((src, Target::Window(dst), copy_shape(k, src, dst))),
        _ => None,
    }
}

/// Whether a statement adds a product to the tile that it writes.
pub(super) fn accumulates(k: &Kernel, e: Expr, dst: Value) -> bool {
    matches!(k.exprs[e], ExprData::Mma(mma) if resolve_view(k, mma.c).is_some_and(|view| view.base == dst))
}

impl<'s, 'k> Forward<'s, 'k> {
    pub(super) fn new(
        (k, solver, loops): (&'k Kernel, &'s Solver<'k>, &'s BTreeMap<Stmt, Vec<Value>>),
        from: From,
        numbers: Numbers,
    ) -> Forward<'s, 'k> {
        let (after, further) = (Numbers::new(), Vec::new());
        Forward { k, solver, loops, from, numbers, graph: Graph::default(), after, further, begun: false }
    }

    pub(super) fn run(mut self) -> Graph {
        let mut state = Vec::new();
        self.block(self.k.body, &mut state);
        self.graph
    }

    fn block(&mut self, block: Block, state: &mut Vec<Held>) {
        let k = self.k;
        let stmts = &k.blocks[block];
        let roles = stmts.iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
        loop {
            let before = (roles, state.len(), self.graph.nodes.len());
            stmts.iter().for_each(|&s| self.stmt(s, state));
            // Roles run side by side: a later one hands channels to an earlier one.
            if before == (false, before.1, before.2) || (state.len(), self.graph.nodes.len()) == (before.1, before.2) {
                return;
            }
        }
    }

    fn stmt(&mut self, s: Stmt, state: &mut Vec<Held>) {
        match self.k.stmts[s] {
            StmtData::For { var, start, end, body, .. } => self.repeated(s, (var, start, end, body), state),
            StmtData::If { cond, then, otherwise } => {
                let holds = self.solver.truth(cond, &self.numbers);
                let mut other = state.clone();
                if holds != Some(false) {
                    self.block(then, state);
                }
                if holds != Some(true) {
                    otherwise.into_iter().for_each(|block| self.block(block, &mut other));
                }
                match holds {
                    Some(true) => {}
                    Some(false) => *state = other,
                    None => join(state, other),
                }
            }
            StmtData::Role { body, .. } | StmtData::Ordered { body } => self.block(body, state),
            StmtData::Alloc { value, ref over } => {
                state.retain(|h| h.place != value && !over.contains(&h.place) || self.is_seed(h));
            }
            StmtData::Var { value, init: None } => state.retain(|h| h.place != value || self.is_seed(h)),
            _ => self.computed(s, state),
        }
    }

    /// A loop: the iteration in which the way begins, then further ones until nothing changes.
    fn repeated(&mut self, s: Stmt, (var, start, end, body): (Value, Expr, Expr, Block), state: &mut Vec<Held>) {
        let own = self.loops.get(&s).map_or(0, Vec::len);
        let inside =
            !self.begun && matches!(&self.from, From::Read { stmt, .. } if self.loops[stmt].get(own) == Some(&var));
        let seeds = matches!(self.from, From::Place { .. });
        if state.is_empty() && !inside && !seeds {
            return;
        }
        let before = state.clone();
        let number = self.numbers.get(&var).copied();
        let mut walks = WALKS;
        if inside {
            self.block(body, state);
            // Behind the last iteration there is none.
            if self.solver.is_last(var, &self.numbers) {
                walks = 0;
            }
            self.numbers.remove(&var);
            self.further.push(var);
            self.after.extend(number.map(|n| (var, n)));
        }
        let forget = |state: &mut Vec<Held>| {
            state.iter_mut().for_each(|h| {
                h.numbers.remove(&var);
            });
            join(state, Vec::new());
        };
        forget(state);
        let mut left = state.clone();
        for walk in 0..walks {
            let known = (state.clone(), self.graph.nodes.len());
            self.block(body, state);
            forget(state);
            if walk == 0 && !inside {
                left.clone_from(state);
            }
            join(&mut left, state.clone());
            join(state, known.0.clone());
            if (state.len(), self.graph.nodes.len()) == (known.0.len(), known.1) {
                break;
            }
            if walk == 0 && !inside {
                self.further.push(var);
            }
        }
        self.further.retain(|v| *v != var);
        self.after.remove(&var);
        let runs = self.solver.range(start, &self.numbers).zip(self.solver.range(end, &self.numbers));
        if !inside && runs.is_none_or(|(start, end)| start.hi >= end.lo) {
            join(&mut left, before);
        }
        *state = left;
    }

    fn is_seed(&self, h: &Held) -> bool {
        h.node.is_none() && matches!(&self.from, From::Place { place, .. } if *place == h.place)
    }

    fn computed(&mut self, s: Stmt, state: &mut Vec<Held>) {
        let Some((src, target, shape)) = computes(self.k, s) else { return };
        let uses = self.uses(s, src, &target, shape.as_deref(), state);
        let (place, spots) = match &target {
            Target::Whole(place) => {
                if !accumulates(self.k, src, *place) {
                    state.retain(|h| h.place != *place || self.is_seed(h));
                }
                (*place, uses.iter().map(|own| Some((own.spot.clone(), own.spot.clone()))).collect::<Vec<_>>())
            }
            Target::Window(dst) => {
                let Some(to) = resolve_view(self.k, *dst) else { return };
                let Some(shape) = shape else { return };
                let Some(tile) = self.k.tile_ty(to.base) else {
                    for own in uses {
                        self.node(s, What::Write(to.base, own.spot.clone()), &own);
                    }
                    return;
                };
                let extents = self.k.const_shape(&tile.shape).unwrap_or_default();
                let window = Window { solver: self.solver, k: self.k, view: &to, shape: &shape };
                self.overwrite(s, &window, &extents, state);
                let base = |own: &Use| Some((own.spot.clone(), window.in_base(&own.spot, &own.numbers, &extents)?));
                (to.base, uses.iter().map(base).collect())
            }
        };
        for (own, spots) in uses.into_iter().zip(spots) {
            let Some((_, spot)) = spots else { continue };
            let node = self.node(s, What::Write(place, spot.clone()), &own);
            let Use { parts, level, numbers, .. } = own;
            add(state, Held { place, spot, parts, level, numbers, node: Some(node) });
        }
        self.seed(&target, state);
    }

    /// What a statement has of the element; of a product added to its own tile what is added.
    fn uses(&mut self, s: Stmt, src: Expr, target: &Target, shape: Option<&[u64]>, state: &[Held]) -> Vec<Use> {
        let read = match &self.from {
            From::Read { stmt, window, spot } if *stmt == s && !self.begun => {
                Some((*window, spot.clone(), &self.numbers))
            }
            _ => None,
        };
        let begins = read.is_some();
        if !begins && state.is_empty() {
            return Vec::new();
        }
        let held = Uses { k: self.k, solver: self.solver, state, read, after: &self.after };
        let mut all = match (&self.k.exprs[src], target) {
            (ExprData::Mma(_), Target::Whole(dst)) if accumulates(self.k, src, *dst) => {
                // What the tile has already stays there.
                held.of(src, shape).into_iter().filter(|own| own.via.iter().any(|via| via.e == src)).collect()
            }
            _ => held.of(src, shape),
        };
        if let (Target::Window(dst), Some(shape)) = (target, shape)
            && let Some(view) = resolve_view(self.k, *dst)
        {
            all.extend(held.names(*dst, &view, shape));
        }
        self.begun |= begins;
        all
    }

    fn node(&mut self, stmt: Stmt, what: What, own: &Use) -> usize {
        let further = self.further.clone();
        let (via, numbers) = (own.via.clone(), own.numbers.clone());
        self.graph.add(Node { stmt, what, level: own.level, further, on: own.node, via, numbers })
    }

    /// A copy that fills a window of a tile ends what was there, if all of it is filled for sure.
    fn overwrite(&self, s: Stmt, window: &Window<'_, '_>, extents: &[u64], state: &mut Vec<Held>) {
        let (k, view) = (self.k, window.view);
        let StmtData::Copy { attrs, .. } = &k.stmts[s] else { return };
        let ring = matches!(k.values[view.base].def, ValueDef::Channel { .. });
        if ring || attrs.keep || attrs.reduce.is_some() || view.dims.iter().any(|dim| from_memory(k, dim)) {
            return;
        }
        let filled = |h: &Held| {
            let known =
                |dim: &tilec_ir::typing::ViewDim| super::windows::sum(self.solver, k, dim, &h.numbers).is_some();
            let sure = view.dims.iter().all(known);
            sure && window.in_base(&whole(window.shape), &h.numbers, extents).is_some_and(|own| contains(&own, &h.spot))
        };
        state.retain(|h| h.place != view.base || self.is_seed(h) || !filled(h));
    }

    /// A place that the way begins at has the element wherever it is written.
    fn seed(&mut self, target: &Target, state: &mut Vec<Held>) {
        let From::Place { place, spot } = &self.from else { return };
        let written = match target {
            Target::Whole(v) => *v == *place,
            Target::Window(dst) => resolve_view(self.k, *dst).is_some_and(|view| view.base == *place),
        };
        if written {
            let (place, spot, numbers) = (*place, spot.clone(), self.numbers.clone());
            state.retain(|h| h.place != place);
            add(state, Held { place, spot, parts: ALL_PARTS, level: 0, numbers, node: None });
        }
    }
}
