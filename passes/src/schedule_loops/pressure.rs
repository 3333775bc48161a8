//! Register pressure of a loop's tiles in the steady state.
//!
//! A tile that one iteration passes to the next is always live. Any other is live from the statement that writes it to the last one that reads it,
//! which runs in the next iteration of the expanded loop if its stage is later. A tile that a product reads from registers is live until
//! a statement waits for that product or a later one.

use crate::analysis::live;
use crate::analysis::wgmma::is_product;
use crate::graph::DepGraph;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::Kernel;

/// The tiles of a loop.
pub(super) struct Tiles {
    /// Registers of those that live all the time.
    always: u64,
    /// Of each other one the value, its registers, and the statements that touch it.
    own: Vec<(Value, u64, Vec<Use>)>,
}

struct Use {
    at: usize,
    reads: bool,
    /// It sets the tile to what the next product overwrites.
    zeroes: bool,
}

impl Tiles {
    /// Those of the loop whose body has this graph; `zeroes`: whether a statement sets a tile to zero.
    pub(super) fn of(k: &Kernel, graph: &DepGraph, groups: u64, zeroes: &dyn Fn(Stmt) -> Option<Value>) -> Tiles {
        let ranges = live::ranges(k);
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

    /// The most that live at one place of an iteration that runs the statements in this order, each of its stage.
    pub(super) fn most(&self, k: &Kernel, graph: &DepGraph, order: &[usize], stages: &[u32]) -> u64 {
        let n = order.len();
        let place = |at: usize| order.iter().position(|&o| o == at);
        let mut held = vec![self.always; n];
        for (value, registers, uses) in &self.own {
            // Places count on through the stages.
            let when = |u: &Use| Some(place(u.at)? + n * stages[u.at] as usize);
            let Some(from) = uses.iter().filter(|u| !u.zeroes).filter_map(when).min() else { continue };
            let mut to = from;
            for u in uses.iter().filter(|u| u.reads) {
                let Some(read) = when(u) else { continue };
                let operand =
                    is_product(k, graph.stmts[u.at]) && graph.accesses[u.at].get(*value).is_some_and(|t| !t.writes);
                to = to.max(if operand { waited(k, graph, order, read) } else { read });
            }
            // What is read for the last time makes room for what the statement writes.
            for at in from..to.max(from + 1).min(from + n) {
                held[at % n] += registers;
            }
        }
        held.into_iter().max().unwrap_or(self.always)
    }
}

/// The place at which something waits for the product at place `from`, or for a later one.
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
