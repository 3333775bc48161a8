//! The way back of an element: the program is walked against its order, with the tiles and names whose elements are still to be accounted for. What writes them
//! all ends it; loops lead from their head to the end of their body.

use super::forward::{Target, accumulates, computes};
use super::graph::{ALL_PARTS, Graph, Node, What};
use super::needs::{Needs, Source};
use super::solve::Solver;
use super::spot::{Run, Spot, contains, whole};
use super::state::{Held, add, join};
use super::windows::{Numbers, Window, from_memory};
use std::collections::BTreeMap;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// Walks of a loop's body until nothing changes, at most.
const WALKS: usize = 12;

/// Where the way back begins.
#[derive(Clone, Debug)]
pub(super) enum Of {
    /// A statement stores it, at this spot of what it stores.
    Store { stmt: Stmt, spot: Spot },
    /// A tile or a name has it, whatever writes it.
    Place { place: Value, spot: Spot },
    /// It is an element of what names rows, where a statement reads it.
    Rows { stmt: Stmt, rows: Expr, spot: Spot },
}

/// A walk.
pub(super) struct Backward<'s, 'k> {
    pub(super) k: &'k Kernel,
    pub(super) solver: &'s Solver<'k>,
    pub(super) loops: &'s BTreeMap<Stmt, Vec<Value>>,
    pub(super) of: Of,
    pub(super) numbers: Numbers,
    graph: Graph,
    further: Vec<Value>,
    begun: bool,
}

impl<'s, 'k> Backward<'s, 'k> {
    pub(super) fn new(
        (k, solver, loops): (&'k Kernel, &'s Solver<'k>, &'s BTreeMap<Stmt, Vec<Value>>),
        of: Of,
        numbers: Numbers,
    ) -> Backward<'s, 'k> {
        let begun = matches!(of, Of::Place { .. });
        Backward { k, solver, loops, of, numbers, graph: Graph::default(), further: Vec::new(), begun }
    }

    pub(super) fn run(mut self) -> Graph {
        let mut state = Vec::new();
        if let Of::Place { place, spot } = &self.of {
            let numbers = Numbers::new();
            state.push(Held { place: *place, spot: spot.clone(), parts: ALL_PARTS, level: 0, numbers, node: None });
        }
        self.block(self.k.body, &mut state);
        self.graph
    }

    fn begins_at(&self) -> Option<Stmt> {
        match self.of {
            Of::Store { stmt, .. } | Of::Rows { stmt, .. } => Some(stmt),
            Of::Place { .. } => None,
        }
    }

    fn block(&mut self, block: Block, state: &mut Vec<Held>) {
        let k = self.k;
        let stmts = &k.blocks[block];
        let roles = stmts.iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }));
        loop {
            let before = (state.len(), self.graph.nodes.len());
            stmts.iter().rev().for_each(|&s| self.stmt(s, state));
            if !roles || (state.len(), self.graph.nodes.len()) == before {
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
                let began = self.begun;
                if holds != Some(false) {
                    self.block(then, state);
                }
                let in_then = self.begun && !began;
                if holds != Some(true) && !in_then {
                    otherwise.into_iter().for_each(|block| self.block(block, &mut other));
                }
                match holds {
                    _ if in_then => {}
                    Some(true) => {}
                    Some(false) => *state = other,
                    None => join(state, other),
                }
            }
            StmtData::Role { body, .. } | StmtData::Ordered { body } => self.block(body, state),
            StmtData::Alloc { value, ref over } => {
                state.retain(|w| w.place != value && !over.contains(&w.place) || self.is_seed(w));
            }
            StmtData::Var { value, init: None } => state.retain(|w| w.place != value || self.is_seed(w)),
            _ => self.computed(s, state),
        }
    }

    fn repeated(&mut self, s: Stmt, (var, start, end, body): (Value, Expr, Expr, Block), state: &mut Vec<Held>) {
        let own = self.loops.get(&s).map_or(0, Vec::len);
        let inside =
            !self.begun && self.begins_at().and_then(|stmt| self.loops.get(&stmt)?.get(own).copied()) == Some(var);
        if state.is_empty() && !inside {
            return;
        }
        let before = state.clone();
        let mut walks = WALKS;
        if inside {
            self.block(body, state);
            // In front of the first iteration there is none.
            if self.solver.is_first(var, &self.numbers) {
                walks = 0;
            }
            self.numbers.remove(&var);
            self.further.push(var);
        }
        let mut first = state.clone();
        for walk in 0..walks {
            let known = (state.clone(), self.graph.nodes.len());
            self.block(body, state);
            if walk == 0 && !inside {
                first.clone_from(state);
            }
            join(&mut first, state.clone());
            join(state, known.0.clone());
            if (state.len(), self.graph.nodes.len()) == (known.0.len(), known.1) {
                break;
            }
            if walk == 0 && !inside {
                self.further.push(var);
            }
        }
        self.further.retain(|v| *v != var);
        let runs = self.solver.range(start, &self.numbers).zip(self.solver.range(end, &self.numbers));
        if !inside && runs.is_none_or(|(start, end)| start.hi >= end.lo) {
            join(&mut first, before);
        }
        *state = first;
    }

    fn is_seed(&self, w: &Held) -> bool {
        w.node.is_none() && matches!(&self.of, Of::Place { place, .. } if *place == w.place)
    }

    fn computed(&mut self, s: Stmt, state: &mut Vec<Held>) {
        if !self.begun && self.begins_at() == Some(s) {
            self.begun = true;
            return self.begin(s, state);
        }
        if !self.begun || state.is_empty() {
            return;
        }
        let Some((src, target, shape)) = computes(self.k, s) else { return };
        let (place, window) = match &target {
            Target::Whole(v) => (*v, None),
            Target::Window(dst) => match resolve_view(self.k, *dst) {
                Some(to) if self.k.tile_ty(to.base).is_some() => (to.base, Some(to)),
                _ => return,
            },
        };
        let wants: Vec<Held> = state.iter().filter(|w| w.place == place).cloned().collect();
        for want in wants {
            // Where it is in what is computed, at which numbers, and whether nothing else has to write it.
            let (spot, numbers, all) = match (&window, &shape) {
                (Some(view), Some(shape)) => {
                    let window = Window { solver: self.solver, k: self.k, view, shape };
                    let Some((spot, numbers)) = window.finds(&want.spot, &self.numbers, &Numbers::new()) else {
                        continue;
                    };
                    let all = self.fills(s, &window, &want.spot);
                    (spot, numbers, all)
                }
                (None, _) => (want.spot.clone(), self.numbers.clone(), !accumulates(self.k, src, place)),
                _ => continue,
            };
            let node = self.graph.add(Node {
                stmt: s,
                what: What::Write(place, want.spot.clone()),
                level: want.level,
                further: self.further.clone(),
                on: want.node,
                via: Vec::new(),
                numbers: numbers.clone(),
            });
            if all && !self.is_seed(&want) {
                state.retain(|w| *w != want);
            }
            self.needed(src, &spot, (want.parts, want.level), (s, node, &numbers), state);
        }
    }

    /// Whether a copy writes all these elements of its tile for sure.
    fn fills(&self, s: Stmt, window: &Window<'_, '_>, spot: &[Run]) -> bool {
        let (k, view) = (self.k, window.view);
        let StmtData::Copy { attrs, .. } = &k.stmts[s] else { return true };
        let ring = matches!(k.values[view.base].def, ValueDef::Channel { .. });
        let extents = k.tile_ty(view.base).and_then(|tile| k.const_shape(&tile.shape)).unwrap_or_default();
        !ring
            && !attrs.keep
            && attrs.reduce.is_none()
            && !view.dims.iter().any(|dim| from_memory(k, dim))
            && view.dims.iter().all(|dim| super::windows::sum(self.solver, k, dim, &self.numbers).is_some())
            && window.in_base(&whole(window.shape), &self.numbers, &extents).is_some_and(|own| contains(&own, spot))
    }

    /// The statement that stores the element, or that reads what names it.
    fn begin(&mut self, s: Stmt, state: &mut Vec<Held>) {
        let k = self.k;
        let numbers = self.numbers.clone();
        match self.of.clone() {
            Of::Store { spot, .. } => {
                let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return };
                let Some(to) = resolve_view(k, dst) else { return };
                let node = self.graph.add(Node {
                    stmt: s,
                    what: What::Write(to.base, spot.clone()),
                    level: 0,
                    further: Vec::new(),
                    on: None,
                    via: Vec::new(),
                    numbers: numbers.clone(),
                });
                self.needed(src, &spot, (ALL_PARTS, 0), (s, node, &numbers), state);
                let mut needs = Needs { k, solver: self.solver, numbers: &numbers, found: Vec::new() };
                needs.names_of(dst, &to, &spot, 0);
                self.found(needs.found, (s, Some(node), &numbers), state);
            }
            Of::Rows { rows, spot, .. } => {
                let mut needs = Needs { k, solver: self.solver, numbers: &numbers, found: Vec::new() };
                needs.of(rows, &spot, ALL_PARTS, 0);
                self.found(needs.found, (s, None, &numbers), state);
            }
            Of::Place { .. } => {}
        }
    }

    fn needed(
        &mut self,
        src: Expr,
        spot: &[Run],
        (parts, level): (u64, u8),
        (s, node, numbers): (Stmt, usize, &Numbers),
        state: &mut Vec<Held>,
    ) {
        let mut needs = Needs { k: self.k, solver: self.solver, numbers, found: Vec::new() };
        needs.of(src, spot, parts, level);
        let accumulated = match self.graph.nodes[node].what {
            What::Write(place, _)
                if matches!(self.k.exprs[src], ExprData::Mma(_)) && accumulates(self.k, src, place) =>
            {
                Some(place)
            }
            _ => None,
        };
        // What a product is added to is there already.
        needs.found.retain(|need| {
            !need.via.is_empty() || !matches!(need.source, Source::Place(v, _) if Some(v) == accumulated)
        });
        self.found(needs.found, (s, Some(node), numbers), state);
    }

    fn found(
        &mut self,
        found: Vec<super::needs::Need>,
        (s, node, numbers): (Stmt, Option<usize>, &Numbers),
        state: &mut Vec<Held>,
    ) {
        for need in found {
            if let Some(node) = node {
                let via = &mut self.graph.nodes[node].via;
                need.via.iter().for_each(|v| {
                    if !via.contains(v) {
                        via.push(v.clone());
                    }
                });
            }
            match need.source {
                Source::Place(place, spot) => {
                    let (parts, level, numbers) = (need.parts, need.level, Numbers::new());
                    add(state, Held { place, spot, parts, level, numbers, node });
                }
                Source::Tensor(window, spot) => {
                    self.graph.add(Node {
                        stmt: s,
                        what: What::Read(window, spot),
                        level: need.level,
                        further: self.further.clone(),
                        on: node,
                        via: Vec::new(),
                        numbers: numbers.clone(),
                    });
                }
            }
        }
    }
}
