//! The graph of definitions: what writes an element, or reads it from a tensor, each with what it hangs on.

use super::spot::Spot;
use super::windows::Numbers;
use std::collections::BTreeMap;
use tilec_ir::combine::Combine;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, View};

/// An operation in a statement that combines the element with others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Via {
    /// A product, a reduction, a scan, a combination of tuples, or a window that the element names.
    pub(super) e: Expr,
    /// Where the element is in the operand.
    pub(super) from: Spot,
    /// Where the result is.
    pub(super) to: Spot,
    /// The operand of a product is the right one.
    pub(super) right: bool,
}

/// What a node does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// It writes elements of a tile or a name, at this spot; of a window of a tensor, in coordinates of the window.
    Write(Value, Spot),
    /// It reads elements of a window of a tensor, in coordinates of the window.
    Read(Expr, Spot),
}

/// A definition or a read.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) stmt: Stmt,
    pub(super) what: What,
    /// How many reductions are in between.
    pub(super) level: u8,
    /// It is in further iterations of these loops than the element is first in.
    pub(super) further: Vec<Value>,
    /// The node that it hangs on.
    pub(super) on: Option<usize>,
    pub(super) via: Vec<Via>,
    pub(super) numbers: Numbers,
}

/// Nodes in the order in which they are found: that of execution, or against it.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

impl Graph {
    /// Adds a node, unless there is one like it; its number.
    pub(super) fn add(&mut self, node: Node) -> usize {
        let like =
            |n: &Node| (n.stmt, n.level, &n.what, &n.further) == (node.stmt, node.level, &node.what, &node.further);
        if let Some(at) = self.nodes.iter().position(like) {
            let old = &mut self.nodes[at];
            // What else combines it in the same statement and iteration.
            node.via
                .into_iter()
                .filter(|via| !old.via.contains(via))
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|via| old.via.push(via));
            return at;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The nodes that are shown: of each statement and place the one with fewest reductions in between, the first of these.
    pub(super) fn shown(&self) -> Vec<usize> {
        let mut best: BTreeMap<(Stmt, Option<Value>, Option<Expr>), usize> = BTreeMap::new();
        for (i, n) in self.nodes.iter().enumerate() {
            let old = best.entry(n.key()).or_insert(i);
            if n.level < self.nodes[*old].level {
                *old = i;
            }
        }
        let mut all: Vec<usize> = best.into_values().collect();
        all.sort_unstable();
        all
    }

    /// The shown node for another one.
    pub(super) fn shown_for(&self, node: usize, shown: &[usize]) -> Option<usize> {
        shown.iter().copied().find(|&i| self.nodes[i].key() == self.nodes[node].key())
    }
}

impl Node {
    fn key(&self) -> (Stmt, Option<Value>, Option<Expr>) {
        match self.what {
            What::Write(place, _) => (self.stmt, Some(place), None),
            What::Read(window, _) => (self.stmt, None, Some(window)),
        }
    }
}

/// All components of a tuple.
pub(super) const ALL_PARTS: u64 = u64::MAX;

/// The components of a result that depend on the components `parts` of the operands, through any number of combinations.
pub(super) fn dependents(k: &Kernel, combine: &Combine, parts: u64) -> u64 {
    let operation = combine.operation;
    if !matches!(operation, tilec_ir::combine::How::Reduce { .. } | tilec_ir::combine::How::Scan { .. }) {
        return ALL_PARTS;
    }
    let mut found = parts;
    loop {
        let before = found;
        for (i, &result) in combine.results.iter().enumerate() {
            if reads(k, combine, result, found) {
                found |= 1 << i.min(63);
            }
        }
        if found == before {
            return found;
        }
    }
}

/// The components of the operands that a component of the result depends on.
pub(super) fn sources(k: &Kernel, combine: &Combine, part: u64) -> u64 {
    (0..combine.results.len().max(combine.args.len()).min(64))
        .filter(|i| dependents(k, combine, 1 << i) & part != 0)
        .fold(0, |all, i| all | 1 << i)
}

/// Whether an expression of a combination reads one of these components, directly or by a local.
fn reads(k: &Kernel, combine: &Combine, e: Expr, parts: u64) -> bool {
    let component =
        |all: &[Value], v: Value| all.iter().position(|w| *w == v).is_some_and(|i| parts >> i.min(63) & 1 == 1);
    k.has_part(e, |e| match k.exprs[e] {
        ExprData::Ref(v) | ExprData::View(View { base: v, .. }) => {
            component(&combine.first, v) || component(&combine.second, v)
        }
        _ => false,
    })
}
