//! Register pressure of a loop's tiles in the steady state.
//!
//! A tile that one iteration passes to the next is always live. Any other is live from the statement that writes it to
//! the last one that reads it. If the stage of the latter is later, it runs in the next iteration of the expanded loop.
//! A tile that a product reads from registers is live until a statement waits for that product or a later one.

use crate::analysis::live_ranges;
use crate::analysis::wgmma::is_product;
use crate::graph::DepGraph;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::Kernel;

/// The tiles of a loop.
pub(super) struct Tiles {
    /// Registers of tiles that are always live.
    always: u64,
    /// For each other tile: the value, its registers, and the statements that use it.
    own: Vec<(Value, u64, Vec<Use>)>,
}

struct Use {
    at: usize,
    reads: bool,
    /// Whether it sets the tile to zeros that the next product replaces.
    zeroes: bool,
}

impl Tiles {
    /// The tiles of the loop with this graph; `zeroes`: the tile that a statement sets to zero.
    pub(super) fn of(k: &Kernel, graph: &DepGraph, groups: u64, zeroes: &dyn Fn(Stmt) -> Option<Value>) -> Tiles {
        let ranges = live_ranges::ranges(k);
        let inside: Vec<usize> = graph.stmts.iter().filter_map(|&s| ranges.position(s)).collect();
        let (first, last) = (inside.iter().min().copied().unwrap_or(0), inside.iter().max().copied().unwrap_or(0));
        let mut found = Tiles { always: 0, own: Vec::new() };
        for range in &ranges.tiles {
            let registers = range.tile.of_warpgroups(groups);
            let touches: Vec<(usize, _)> =
                graph.accesses.iter().enumerate().filter_map(|(at, a)| a.get(range.value).map(|t| (at, *t))).collect();
            let carried = touches.iter().find(|(_, t)| !t.declares || t.overwrites).is_some_and(|(_, t)| !t.overwrites);
            if touches.is_empty() {
                found.always += if range.from < first && range.to > last { registers } else { 0 };
            } else if carried {
                found.always += registers;
            } else {
                let uses = touches.iter().map(|&(at, t)| Use {
                    at,
                    reads: t.reads,
                    zeroes: zeroes(graph.stmts[at]) == Some(range.value),
                });
                found.own.push((range.value, registers, uses.collect()));
            }
        }
        found
    }

    /// The highest pressure in an iteration that executes the statements in this order and with these stages.
    pub(super) fn peak(&self, k: &Kernel, graph: &DepGraph, order: &[usize], stages: &[u32]) -> u64 {
        let n = order.len();
        let place = |at: usize| order.iter().position(|&o| o == at);
        let mut held = vec![self.always; n];
        for (value, registers, uses) in &self.own {
            // Positions continue through the stages.
            let when = |u: &Use| Some(place(u.at)? + n * stages[u.at] as usize);
            let Some(from) = uses.iter().filter(|u| !u.zeroes).filter_map(when).min() else { continue };
            let mut to = from;
            for u in uses.iter().filter(|u| u.reads) {
                let Some(read) = when(u) else { continue };
                let operand =
                    is_product(k, graph.stmts[u.at]) && graph.accesses[u.at].get(*value).is_some_and(|t| !t.writes);
                to = to.max(if operand { waited(k, graph, order, read) } else { read });
            }
            // A tile that is read for the last time shares registers with the tile that the statement writes.
            for at in from..to.max(from + 1).min(from + n) {
                held[at % n] += registers;
            }
        }
        held.into_iter().max().unwrap_or(self.always)
    }
}

/// The position at which a statement waits for the product at position `from`, or for a later one.
fn waited(k: &Kernel, graph: &DepGraph, order: &[usize], from: usize) -> usize {
    let n = order.len();
    let mut sums: Vec<Value> = Vec::new();
    for at in from..from + n {
        let i = order[at % n];
        let touches = &graph.accesses[i].touches;
        if is_product(k, graph.stmts[i]) {
            sums.extend(touches.iter().filter(|t| t.writes).map(|t| t.value));
        } else if touches.iter().any(|t| sums.contains(&t.value)) {
            return at;
        }
    }
    from + n
}
