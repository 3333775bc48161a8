//! Layouts of register tiles, inferred over the whole kernel.
//!
//! Every node of the graph ([`super::graph`]) without a layout gets one of its candidates: layouts of products and of the source, layouts
//! that make a copy to or from global memory wide, and layouts that follow from these along edges. The cost of a choice is that of all
//! accesses to memory, plus an exchange for each edge whose ends do not match ([`super::cost`]); statements in loops count
//! more.
//!
//! The search is deterministic and local. It begins with the first candidate in source order, propagated along edges.
//! As long as it is cheaper, it then assigns a candidate to one node, or to a part of the graph. The part is connected
//! by edges of a certain weight or more. So a tile of a loop and one after it can have different layouts, with one
//! exchange between them.
//!
//! Needs: the graph. Decides: a layout for each node. Switched off: the same, with candidates whose threads have single elements.

use super::cost;
use super::graph::{Access, Edge, Graph, Node, NodeId, Relation, What, reduced_shape};
use super::threads::Threads;
use super::{log2_shape, overlaps};
use crate::assign_layouts::coalesced::{coalesced_of, coalesced_owning, coalesced_within};
use std::collections::BTreeMap;
use tilec_ir::combine::How;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::layout::{NoReduction, RegLayout};

/// The cost of an impossible choice: an edge whose ends cannot be compared.
const NEVER: u64 = 1 << 40;
/// Relative cost of an uncoalesced access, whose lanes touch sectors of which they use a part.
const APART: u64 = 2;
/// Most rounds of the search.
const ROUNDS: usize = 16;

/// A layout for each node; `None` if threads cannot divide a tile.
pub(super) fn layouts(graph: &Graph, threads: Threads, wide: bool) -> Vec<Option<RegLayout>> {
    let mut search = Search::new(graph, threads, wide);
    search.seed();
    search.improve();
    (0..graph.nodes.len()).map(|n| search.layout(n).cloned()).collect()
}

/// Assigns layouts to the tiles of a kernel that have none.
pub(super) fn assign(k: &mut Kernel, threads: Threads, wide: bool) {
    let graph = Graph::of(k);
    let found = layouts(&graph, threads, wide);
    for (node, layout) in graph.nodes.iter().zip(found) {
        if let What::Tile(v) = node.what
            && node.fixed.is_none()
            && let Some(tile) = k.tile_ty_mut(v)
        {
            tile.reg_layout = layout;
        }
    }
    // Tiles of rank 0: every thread holds the number.
    let everywhere = threads.scalar();
    for v in k.values.keys().collect::<Vec<_>>() {
        if let ValueDef::Var(tile) = &mut k.values[v].def
            && tile.shape.is_empty()
            && tile.reg_layout.is_none()
        {
            tile.reg_layout = everywhere.clone();
        }
    }
}

/// The layout that an edge's operand, or its reduction, must have for a context with layout `of_a`.
pub(super) fn required_layout(edge: &Edge, a: &Node, b: &Node, of_a: &RegLayout) -> Option<RegLayout> {
    match edge.relation {
        Relation::Operand | Relation::Extents => of_a.repeated(&log2_shape(&a.shape), &log2_shape(&b.shape)),
        Relation::Reduction => of_a.repeated(&log2_shape(&a.shape), &log2_shape(&reduced_shape(b))),
        Relation::Result | Relation::Copy => Some(of_a.clone()),
        Relation::Transposed => of_a.transposed(*log2_shape(&a.shape).first()?),
        Relation::Reshaped => of_a.reshaped(&log2_shape(&a.shape), &log2_shape(&b.shape)),
        Relation::Permuted(order) => of_a.permuted(&log2_shape(&a.shape), &order.axes(a.shape.len())),
        Relation::Window { kept, shifted } => {
            let bits = extents_in(kept, a, b)?;
            let first: Vec<u64> = (0..a.shape.len()).map(|d| u64::from(shifted >> d & 1)).collect();
            of_a.window(&log2_shape(&a.shape), &first, &bits).map(|(layout, _)| layout)
        }
        // An index for each element, or for each coordinate along the dimension.
        Relation::Rows(_) if a.shape.len() == b.shape.len() => {
            of_a.repeated(&log2_shape(&a.shape), &log2_shape(&b.shape))
        }
        Relation::Rows(dim) => of_a.alone(&log2_shape(&a.shape), dim),
        Relation::Totals => of_a.of_totals(&a.shape, a.axis?, a.parts.count_ones()),
    }
}

/// Log2 extents of the window `b` along the dimensions of `a`; `b` has the dimensions in `kept`.
fn extents_in(kept: u32, a: &Node, b: &Node) -> Option<Vec<u32>> {
    let own = log2_shape(&b.shape);
    let mut own = own.iter().copied();
    let bits: Vec<u32> =
        (0..a.shape.len()).map(|d| if kept >> d & 1 == 1 { own.next() } else { Some(0) }).collect::<Option<_>>()?;
    own.next().is_none().then_some(bits)
}

/// The layout of an edge's operand that is compared with the wanted one.
pub(super) fn given(edge: &Edge, b: &Node, of_b: &RegLayout) -> Option<RegLayout> {
    match (edge.relation, b.axis) {
        (Relation::Reduction, Some(axis)) if !b.scanned => match in_warps(b, axis, of_b) {
            Ok(layout) => Some(layout),
            // Warps combine their parts through memory, and all of them read the result.
            Err(_) => across_warps(b, of_b).map(|(layout, _)| layout),
        },
        _ => Some(of_b.clone()),
    }
}

/// Log2 of the most segments of a row in a scan, because a thread reads the totals of all of them.
const MOST_TOTALS: u32 = 6;

/// The layout of a reduction's result if the elements of a row are in several warps, and the bits that distinguish
/// their parts.
pub(super) fn across_warps(b: &Node, of_b: &RegLayout) -> Option<(RegLayout, u32)> {
    let (axis, may) = (b.axis?, b.parts == 0 && b.sorted.is_none());
    let (whole, warps) = of_b.across_warps(&b.shape, axis).filter(|_| may)?;
    if !b.ordered && !b.scanned {
        return Some((whole, warps));
    }
    // Elements after those of another warp are a separate part.
    let parts = (b.shape[axis] as u32 - 1) & !((1 << warps.trailing_zeros()) - 1);
    of_b.scan(&b.shape, axis, parts).ok()?;
    let totals = parts.count_ones() + whole.value_bits();
    if b.scanned && (totals > MOST_TOTALS || of_b.segments(&b.shape, axis, parts).is_err()) {
        return None;
    }
    Some((whole, parts))
}

/// The layout of a reduction's result if each row is within a warp.
fn in_warps(b: &Node, axis: usize, layout: &RegLayout) -> Result<RegLayout, NoReduction> {
    match b.ordered {
        true => layout.combined(&b.shape, axis, How::Reduce { parts: b.parts }),
        false => Ok(layout.reduction(&b.shape, axis, b.parts)?.layout),
    }
}

/// Whether two layouts match: threads hold the same elements, in any registers.
pub(super) fn matches(wanted: &RegLayout, given: &RegLayout) -> bool {
    wanted.thread() == given.thread()
}

/// A layout in which a thread owns a run of `2^chunk` elements along `contiguous`, and elements along reduced
/// dimensions (`within`) are in one warp. To have few replicas of warps, the run may be shorter, or be along a reduced
/// dimension, so that a warp has fewer rows.
pub(super) fn coalesced_for(
    shape: &[u64],
    contiguous: usize,
    chunk: u32,
    within: &[usize],
    threads: Threads,
) -> Option<RegLayout> {
    let of = |contiguous: usize, chunk: u32| {
        let layout =
            threads.distribute_within(shape, within, &|part: &[u64], threads: u32| match log2_shape(part)[..] {
                [] => RegLayout::new(Vec::new(), vec![0; threads as usize], 0),
                ref bits => coalesced_within(bits, contiguous, chunk, threads, within),
            });
        layout.filter(|l| l.is_even(shape))
    };
    if within.is_empty() {
        return of(contiguous, chunk);
    }
    let repeats = |l: &RegLayout| l.thread().cols().iter().filter(|&&c| c == 0).count();
    let shorter = (0..=chunk).rev().filter_map(|chunk| of(contiguous, chunk));
    shorter.chain(within.iter().filter_map(|&dim| of(dim, 0))).min_by_key(repeats)
}

struct Search<'a> {
    graph: &'a Graph,
    threads: Threads,
    /// Whether threads may own more than single elements.
    wide: bool,
    /// Edges at each node.
    edges: Vec<Vec<usize>>,
    /// Candidates of each node.
    labels: Vec<Vec<RegLayout>>,
    chosen: Vec<Option<usize>>,
    /// Initial candidates, in the order in which they are tried.
    seeds: Vec<(NodeId, RegLayout)>,
    node_costs: BTreeMap<(NodeId, usize), u64>,
    edge_costs: BTreeMap<(usize, usize, usize), u64>,
}

/// A candidate for each of the nodes that it reaches.
type CandidateSet = Vec<(NodeId, usize)>;

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, threads: Threads, wide: bool) -> Search<'a> {
        let n = graph.nodes.len();
        let mut edges = vec![Vec::new(); n];
        for (i, edge) in graph.edges.iter().enumerate() {
            edges[edge.a].push(i);
            edges[edge.b].push(i);
        }
        Search {
            graph,
            threads,
            wide,
            edges,
            labels: vec![Vec::new(); n],
            chosen: vec![None; n],
            seeds: Vec::new(),
            node_costs: BTreeMap::new(),
            edge_costs: BTreeMap::new(),
        }
    }

    fn layout(&self, n: NodeId) -> Option<&RegLayout> {
        self.labels[n].get(self.chosen[n]?)
    }

    /// The index of a node's candidate; `None` if it is not legal: threads would have different numbers of registers,
    /// or a reduction would be impossible.
    fn label(&mut self, n: NodeId, layout: &RegLayout) -> Option<usize> {
        if let Some(i) = self.labels[n].iter().position(|l| l == layout) {
            return Some(i);
        }
        let node = &self.graph.nodes[n];
        let reduces = node.axis.is_none_or(|axis| match node.scanned {
            true if let Some(how) = node.sorted => layout.combined(&node.shape, axis, how).is_ok(),
            true => layout.scan(&node.shape, axis, node.parts).is_ok() || across_warps(node, layout).is_some(),
            false => in_warps(node, axis, layout).is_ok() || across_warps(node, layout).is_some(),
        });
        let open = node.fixed.is_none() && layout.is_even(&node.shape) && layout.covers_tile() && reduces;
        if !open && node.fixed.as_ref() != Some(layout) {
            return None;
        }
        self.labels[n].push(layout.clone());
        Some(self.labels[n].len() - 1)
    }

    /// Finds candidates, and chooses the first that reaches a node.
    fn seed(&mut self) {
        let graph = self.graph;
        for (n, node) in graph.nodes.iter().enumerate() {
            if let Some(fixed) = &node.fixed {
                self.begin(n, fixed.clone());
            }
        }
        // Tiles that only pass to or from global memory come first, and then stored expressions. Sums of products are
        // stored in their own layout, or exchanged between lanes (`epilogue`).
        for plain in [true, false] {
            for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.fixed.is_none()) {
                for access in node.accesses.iter().filter(|a| a.global && a.plain == plain) {
                    let free = plain && !self.edges[n].iter().any(|&i| graph.nodes[graph.edges[i].b].fixed.is_some());
                    if (free || self.chosen[n].is_none())
                        && let Some(layout) = self.coalesced(n, Some(access))
                    {
                        self.begin(n, layout);
                        self.unrepeated(n, access);
                    }
                    self.owned_by_threads(n, access);
                }
            }
        }
        self.whole_sectors();
        self.blocks();
        self.whole_bytes();
        self.that_fit();
        // Larger tiles first: others follow from them.
        let mut rest: Vec<NodeId> = (0..graph.nodes.len()).filter(|&n| self.chosen[n].is_none()).collect();
        rest.sort_by_key(|&n| std::cmp::Reverse(graph.nodes[n].shape.iter().product::<u64>()));
        for n in rest {
            if self.chosen[n].is_none()
                && let Some(layout) = self.coalesced(n, None)
            {
                self.begin(n, layout);
                // A reduced buffer may have more elements than a warp has registers.
                for access in graph.nodes[n].accesses.iter().filter(|a| a.load) {
                    self.unrepeated(n, access);
                }
            }
        }
    }

    /// Log2 of the neighbours in a thread for a coalesced access.
    fn chunk(&self, access: &Access) -> u32 {
        if self.wide { access.width.max(1).ilog2() } else { access.least().ilog2() }
    }

    /// For 16-byte stores of computed elements, adds a candidate in which neighbouring threads have neighbouring accesses: the
    /// operands may be loaded in longer pieces.
    fn whole_sectors(&mut self) {
        let graph = self.graph;
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.fixed.is_none()) {
            for access in node.accesses.iter().filter(|a| a.whole_sectors && !a.plain) {
                if let Some(layout) = self.coalesced(n, Some(access)) {
                    self.begin(n, layout);
                }
            }
        }
    }

    /// For windows that overlap, adds candidates in which threads have neighbours in blocks.
    fn blocks(&mut self) {
        let graph = self.graph;
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.fixed.is_none()) {
            // The widest access of the tiles that share the layout: a thread loads only the edges of the others.
            let alike = self.alike(n).into_iter().flat_map(|n| &graph.nodes[n].accesses);
            let chunk = alike.filter(|a| a.global).map(|a| self.chunk(a)).max().unwrap_or(0);
            for access in node.accesses.iter().filter(|a| !a.beside.is_empty()) {
                let of = |dim| overlaps::in_blocks(&access.beside, &node.shape, (dim, chunk), self.threads);
                if let Some(layout) = access.dim.and_then(of) {
                    self.begin(n, layout);
                }
            }
        }
    }

    /// For tiles of which a thread would hold more than it has registers, since few threads hold a window of them, adds a candidate that divides them among
    /// all threads.
    fn that_fit(&mut self) {
        let graph = self.graph;
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.fixed.is_none()) {
            let holds = self.layout(n).map_or(0, |layout| cost::registers(node.elem, layout));
            if holds > 0
                && let Some(layout) = self.coalesced(n, node.accesses.first())
            {
                self.begin(n, layout);
            }
        }
    }

    /// If elements share bytes, adds a candidate in which threads store whole bytes.
    fn whole_bytes(&mut self) {
        let graph = self.graph;
        for (n, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.fixed.is_none()) {
            for access in node.accesses.iter().filter(|a| a.least() > 1) {
                let chunk = self.chunk(access);
                let contiguous = access.dim.unwrap_or(node.shape.len().saturating_sub(1));
                let whole = self.threads.distribute(&node.shape, &|part, threads| {
                    coalesced_of(access.least().ilog2(), &log2_shape(part), contiguous, chunk, threads)
                });
                if let Some(layout) = whole.filter(|l| l.is_even(&node.shape)) {
                    self.begin(n, layout);
                }
            }
        }
    }

    /// The layout of a tile that an access prefers; without an access, single elements are distributed over threads.
    fn coalesced(&self, n: NodeId, access: Option<&Access>) -> Option<RegLayout> {
        let node = &self.graph.nodes[n];
        let last = node.shape.len().saturating_sub(1);
        let contiguous = access.and_then(|a| a.dim).unwrap_or(last);
        let chunk = access.map_or(0, |a| self.chunk(a));
        coalesced_for(&node.shape, contiguous, chunk, &self.reduced_along(n), self.threads)
    }

    /// If windows start anywhere along some dimensions, adds a candidate in which each thread has all elements along
    /// these.
    fn owned_by_threads(&mut self, n: NodeId, access: &Access) {
        let graph = self.graph;
        let windows = self.alike(n).into_iter().flat_map(|a| self.edges[a].iter().map(move |&i| (a, &graph.edges[i])));
        let shifted = windows.fold(0, |mask, (a, edge)| match edge.relation {
            Relation::Window { shifted, .. } if edge.a == a => mask | shifted,
            _ => mask,
        });
        let shape = &graph.nodes[n].shape;
        let own: Vec<usize> = (0..shape.len()).filter(|d| shifted >> d & 1 == 1).collect();
        if own.is_empty() {
            return;
        }
        let contiguous = access.dim.unwrap_or(shape.len().saturating_sub(1));
        let chunk = self.chunk(access);
        let make = |part: &[u64], threads: u32| coalesced_owning(&log2_shape(part), contiguous, chunk, threads, &own);
        if let Some(layout) = self.threads.distribute_within(shape, &own, &make) {
            self.begin(n, layout);
        }
    }

    /// If a reduction would make warps replicas, or its loads uncoalesced, adds a candidate without these drawbacks,
    /// which is exchanged for the reduction. If elements are combined in order, it also adds a candidate in which each
    /// warp has a segment.
    fn unrepeated(&mut self, n: NodeId, access: &Access) {
        let node = &self.graph.nodes[n];
        let chunk = self.chunk(access);
        let contiguous = access.dim.unwrap_or(node.shape.len().saturating_sub(1));
        let Some(layout) = coalesced_for(&node.shape, contiguous, chunk, &[], self.threads) else { return };
        let repeats = |l: &RegLayout| l.thread().cols().contains(&0);
        let slower = |l: &RegLayout| {
            let of = |l: &RegLayout| cost::access(access, l, &node.shape);
            access.load && of(l) > APART * of(&layout)
        };
        if !self.labels[n].last().is_some_and(|l| repeats(l) || slower(l)) {
            return;
        }
        let ordered = self.along(n, |node| node.ordered || node.scanned);
        let segments = ordered.into_iter().find_map(|axis| layout.in_segments(&node.shape, axis));
        self.begin(n, layout);
        if let Some(segments) = segments {
            self.begin(n, segments);
        }
    }

    /// The dimensions along which a node, or one that shares its extents and layout, is reduced.
    fn reduced_along(&self, n: NodeId) -> Vec<usize> {
        self.along(n, |_| true)
    }

    /// The reduced dimensions of the nodes that `which` selects.
    fn along(&self, n: NodeId, which: impl Fn(&Node) -> bool) -> Vec<usize> {
        let nodes = self.alike(n).into_iter().map(|n| &self.graph.nodes[n]);
        let mut axes: Vec<usize> = nodes.filter(|node| which(node)).filter_map(|node| node.axis).collect();
        axes.sort_unstable();
        axes.dedup();
        axes
    }

    /// A node, and the nodes that share its extents and layout.
    fn alike(&self, n: NodeId) -> Vec<NodeId> {
        let shape = &self.graph.nodes[n].shape;
        let (mut seen, mut next) = (vec![n], vec![n]);
        while let Some(n) = next.pop() {
            for &i in &self.edges[n] {
                let edge = &self.graph.edges[i];
                let other = if edge.a == n { edge.b } else { edge.a };
                let alike = matches!(edge.relation, Relation::Operand | Relation::Result)
                    && self.graph.nodes[other].shape == *shape
                    && self.graph.nodes[other].fixed.is_none();
                if alike && !seen.contains(&other) {
                    seen.push(other);
                    next.push(other);
                }
            }
        }
        seen
    }

    /// Propagates a candidate to all nodes that it reaches; nodes without a choice take it.
    fn begin(&mut self, n: NodeId, layout: RegLayout) {
        let spread = self.spread(n, &layout, 0);
        for (n, label) in spread {
            self.chosen[n].get_or_insert(label);
        }
        self.seeds.push((n, layout));
    }

    /// A candidate of `start`, and the candidates that follow along edges of at least this weight, up to nodes with a
    /// fixed layout.
    fn spread(&mut self, start: NodeId, layout: &RegLayout, weight: u64) -> CandidateSet {
        let mut found: CandidateSet = Vec::new();
        let mut next: Vec<(NodeId, RegLayout)> = vec![(start, layout.clone())];
        while !next.is_empty() {
            let mut further = Vec::new();
            for (n, layout) in next {
                if found.iter().any(|&(m, _)| m == n) {
                    continue;
                }
                let Some(label) = self.label(n, &layout) else { continue };
                found.push((n, label));
                for &i in &self.edges[n] {
                    let edge = &self.graph.edges[i];
                    let other = if edge.a == n { edge.b } else { edge.a };
                    if edge.weight >= weight
                        && self.graph.nodes[other].fixed.is_none()
                        && let Some(layout) = self.follows(edge, edge.a == n, &layout)
                    {
                        further.push((other, layout));
                    }
                }
            }
            next = further;
        }
        found
    }

    /// The layout of the other end of an edge, if it follows from the layout of one end.
    fn follows(&self, edge: &Edge, from_a: bool, layout: &RegLayout) -> Option<RegLayout> {
        let (a, b) = (&self.graph.nodes[edge.a], &self.graph.nodes[edge.b]);
        match (edge.relation, from_a) {
            (Relation::Reduction, true) => (b.scanned && a.shape == b.shape).then(|| layout.clone()),
            (_, true) => required_layout(edge, a, b, layout),
            (Relation::Reduction, false) => given(edge, b, layout).filter(|_| reduced_shape(b) == a.shape),
            (Relation::Window { kept, .. }, false) => {
                layout.of_windows(&extents_in(kept, a, b)?, &log2_shape(&a.shape))
            }
            (Relation::Reshaped, false) => layout.reshaped(&log2_shape(&b.shape), &log2_shape(&a.shape)),
            (Relation::Permuted(order), false) => layout.permuted(&log2_shape(&b.shape), &order.inverse(b.shape.len())),
            (Relation::Totals, false) => None,
            (Relation::Transposed, false) => layout.transposed(*log2_shape(&b.shape).first()?),
            (_, false) => (a.shape == b.shape).then(|| layout.clone()),
        }
    }

    fn node_cost(&mut self, n: NodeId, label: usize) -> u64 {
        if let Some(&known) = self.node_costs.get(&(n, label)) {
            return known;
        }
        let (node, layout) = (&self.graph.nodes[n], &self.labels[n][label]);
        let accesses: u64 = node.accesses.iter().map(|a| cost::access(a, layout, &node.shape)).sum();
        let computed = node.operations * cost::elements(layout);
        let cost = accesses + computed + cost::registers(node.elem, layout);
        self.node_costs.insert((n, label), cost);
        cost
    }

    fn edge_cost(&mut self, i: usize) -> u64 {
        let edge = &self.graph.edges[i];
        let (Some(x), Some(y)) = (self.chosen[edge.a], self.chosen[edge.b]) else { return 0 };
        if let Some(&known) = self.edge_costs.get(&(i, x, y)) {
            return known;
        }
        let (a, b) = (&self.graph.nodes[edge.a], &self.graph.nodes[edge.b]);
        let of_b = &self.labels[edge.b][y];
        let ends = required_layout(edge, a, b, &self.labels[edge.a][x]).zip(given(edge, b, of_b));
        let across =
            across_warps(b, of_b).map_or(0, |(whole, parts)| edge.weight * cost::across_warps(&whole, parts, b.elem));
        let found = match ends {
            Some((wanted, given)) if matches(&wanted, &given) => across,
            // Another operand can give the extents, if there is one.
            Some(_) if edge.relation == Relation::Extents => 1,
            Some((wanted, given)) => {
                let forth = matches!(
                    edge.relation,
                    Relation::Result
                        | Relation::Copy
                        | Relation::Transposed
                        | Relation::Reshaped
                        | Relation::Window { .. }
                );
                let (from, to) = if forth { (&wanted, &given) } else { (&given, &wanted) };
                1 + across + edge.weight * cost::exchange(from, to, b.elem)
            }
            // The tile goes through shared memory.
            None if matches!(edge.relation, Relation::Window { .. }) => {
                1 + edge.weight * cost::by_memory(&self.labels[edge.a][x], a.elem)
            }
            None => NEVER,
        };
        self.edge_costs.insert((i, x, y), found);
        found
    }

    /// The cost of everything in which the layouts of these nodes take part.
    fn cost(&mut self, nodes: &[NodeId]) -> u64 {
        let mut edges: Vec<usize> = nodes.iter().flat_map(|&n| self.edges[n].iter().copied()).collect();
        edges.sort_unstable();
        edges.dedup();
        let chosen: Vec<_> = nodes.iter().filter_map(|&n| Some((n, self.chosen[n]?))).collect();
        let of_nodes: u64 = chosen.into_iter().map(|(n, l)| self.node_cost(n, l)).sum();
        of_nodes + edges.into_iter().map(|i| self.edge_cost(i)).sum::<u64>()
    }

    /// Takes the candidates of `spread` if that is cheaper.
    fn accept(&mut self, spread: &CandidateSet) -> bool {
        let nodes: Vec<NodeId> =
            spread.iter().map(|&(n, _)| n).filter(|&n| self.graph.nodes[n].fixed.is_none()).collect();
        let before: Vec<Option<usize>> = nodes.iter().map(|&n| self.chosen[n]).collect();
        if spread.iter().all(|&(n, label)| self.chosen[n] == Some(label)) {
            return false;
        }
        let old = self.cost(&nodes);
        for &(n, label) in spread {
            self.chosen[n] = Some(label);
        }
        if self.cost(&nodes) < old {
            return true;
        }
        for (&n, label) in nodes.iter().zip(before) {
            self.chosen[n] = label;
        }
        false
    }

    fn improve(&mut self) {
        let mut weights: Vec<u64> = self.graph.edges.iter().map(|e| e.weight).collect();
        weights.push(0);
        weights.sort_unstable();
        weights.dedup();
        for _ in 0..ROUNDS {
            let mut changed = false;
            for (n, layout) in self.seeds.clone() {
                for &weight in &weights {
                    let spread = self.spread(n, &layout, weight);
                    changed |= self.accept(&spread);
                }
            }
            for (n, weight) in self.parts(&weights) {
                for layout in self.labels[n].clone() {
                    let spread = self.spread(n, &layout, weight);
                    changed |= self.accept(&spread);
                }
            }
            for n in 0..self.graph.nodes.len() {
                for label in 0..self.labels[n].len() {
                    if self.graph.nodes[n].fixed.is_none() {
                        changed |= self.accept(&vec![(n, label)]);
                    }
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// For each weight, a node of each part of the graph that is connected by edges of at least that weight.
    fn parts(&self, weights: &[u64]) -> Vec<(NodeId, u64)> {
        let mut found = Vec::new();
        for &weight in weights {
            let mut seen = vec![false; self.graph.nodes.len()];
            for start in 0..self.graph.nodes.len() {
                if seen[start] || self.graph.nodes[start].fixed.is_some() {
                    continue;
                }
                found.push((start, weight));
                let mut next = vec![start];
                while let Some(n) = next.pop() {
                    if std::mem::replace(&mut seen[n], true) || self.graph.nodes[n].fixed.is_some() {
                        continue;
                    }
                    let near = self.edges[n].iter().map(|&i| &self.graph.edges[i]).filter(|e| e.weight >= weight);
                    next.extend(near.map(|e| if e.a == n { e.b } else { e.a }));
                }
            }
        }
        found
    }
}
