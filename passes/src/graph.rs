//! The dependence graph of a list of statements, within an iteration and across iterations of a loop.
//!
//! Nodes are the statements that are directly in a block; a loop or a branch is one node with the accesses of everything
//! inside it. An edge means that its source runs before its target, `distance` iterations later. [`accesses`] is the only place that defines what a
//! statement reads and writes.
//!
//! Values that a statement of the block declares are new in every iteration, so they have no dependences across iterations.

pub(crate) mod accesses;

use accesses::{Accesses, ValueAccess};
use cranelift_entity::SecondaryMap;
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::kernel::Kernel;

/// The reason for an order of two statements.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum DepReason {
    /// The second reads what the first wrote.
    Flow,
    /// The second overwrites what the first read.
    Anti,
    /// The second overwrites what the first wrote.
    Output,
}

/// An edge: the target runs after the source, `distance` iterations later.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Dep {
    /// The value that is read or written.
    pub(crate) value: Value,
    pub(crate) reason: DepReason,
    /// 0: in the same iteration; 1: in the next.
    pub(crate) distance: u32,
}

/// The graph of a block. Nodes are positions in `stmts`.
pub(crate) struct DepGraph {
    /// Source, target and reason of each edge, in ascending order.
    edges: Vec<(usize, usize, Dep)>,
    /// The indices of the edges that end at a node, last one first.
    incoming: Vec<Vec<usize>>,
    nodes: SecondaryMap<Stmt, Option<usize>>,
    /// The statements, in program order.
    pub(crate) stmts: Vec<Stmt>,
    /// Their accesses, in the same order.
    pub(crate) accesses: Vec<Accesses>,
}

impl DepGraph {
    /// The graph of the statements of `block`; `repeats`: as the body of a loop.
    pub(crate) fn of(k: &Kernel, block: Block, repeats: bool) -> DepGraph {
        let stmts = k.blocks[block].clone();
        let accesses: Vec<Accesses> = stmts.iter().map(|&s| Accesses::of(k, s)).collect();
        let mut nodes = SecondaryMap::new();
        for (at, &s) in stmts.iter().enumerate() {
            nodes[s] = Some(at);
        }
        let edges = connect(&accesses, if repeats { 2 } else { 1 });
        let mut incoming = vec![Vec::new(); stmts.len()];
        for (edge, &(_, to, _)) in edges.iter().enumerate().rev() {
            incoming[to].push(edge);
        }
        DepGraph { edges, incoming, nodes, stmts, accesses }
    }

    /// The edges that end at a statement: source and reason.
    pub(crate) fn before(&self, s: Stmt) -> impl Iterator<Item = (Stmt, Dep)> {
        let incoming = self.nodes[s].into_iter().flat_map(|node| &self.incoming[node]);
        incoming.map(|&edge| {
            let (from, _, dep) = self.edges[edge];
            (self.stmts[from], dep)
        })
    }

    /// All edges.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (Stmt, Stmt, Dep)> {
        self.edges.iter().map(|&(from, to, dep)| (self.stmts[from], self.stmts[to], dep))
    }

    /// The index of a statement in program order.
    pub(crate) fn position(&self, s: Stmt) -> Option<usize> {
        self.nodes[s]
    }
}

/// Follows `iterations` executions of a block, and returns an edge from each access to later accesses that depend on
/// it, sorted.
fn connect(accesses: &[Accesses], iterations: u32) -> Vec<(usize, usize, Dep)> {
    let mut states: SecondaryMap<Value, State> = SecondaryMap::new();
    let mut edges: Vec<(usize, usize, Dep)> = Vec::new();
    for iteration in 0..iterations {
        for (at, accesses) in accesses.iter().enumerate() {
            for touch in &accesses.touches {
                let state = &mut states[touch.value];
                state.touch(touch, (iteration, at), &mut |from: Place, why| {
                    let dep = Dep { value: touch.value, reason: why, distance: iteration - from.0 };
                    // The second iteration repeats the edges within the first.
                    if iteration == 0 || dep.distance > 0 {
                        edges.push((from.1, at, dep));
                    }
                });
            }
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// An iteration, and the index of a statement in it.
type Place = (u32, usize);

/// The accesses to a value since it was last certainly overwritten.
#[derive(Clone, Default)]
struct State {
    writers: Vec<Place>,
    readers: Vec<Place>,
}

impl State {
    fn touch(&mut self, touch: &ValueAccess, at: Place, edge: &mut dyn FnMut(Place, DepReason)) {
        if touch.declares {
            *self = State { writers: vec![at], readers: Vec::new() };
            return;
        }
        if touch.reads {
            self.writers.iter().filter(|&&w| w != at).for_each(|&w| edge(w, DepReason::Flow));
        }
        if touch.writes {
            self.readers.iter().filter(|&&r| r != at).for_each(|&r| edge(r, DepReason::Anti));
            self.writers.iter().filter(|&&w| w != at).for_each(|&w| edge(w, DepReason::Output));
            if touch.overwrites {
                self.writers.clear();
                self.readers.clear();
            }
            self.writers.push(at);
        }
        if touch.reads {
            self.readers.push(at);
        }
    }
}

#[cfg(test)]
mod tests;
