//! The constraint graph of the layouts of a kernel's register tiles.
//!
//! A node is something that has a layout: a register tile, a tile named by `let`, or a *context*. A context is the
//! distribution in which threads compute an elementwise expression: the source of an assignment or a store, or the
//! operand of a reduction. An edge says which layouts its two nodes must have so that no data moves. An operand has the
//! context's layout without the dimensions along which it broadcasts. A reduction's result has its operand's layout
//! without the reduced dimension. A context's result goes to a tile. Nodes know the memory that is accessed in their
//! layout.
//!
//! Needs: products selected and their fragments laid out, literal extents. Makes no decisions ([`super::infer`] does).

use super::axis_order::AxisOrder;
use super::overlaps::{Offsets, offsets};
use super::window_starts::places;
use crate::analysis::access_width::{MAX_ACCESS_BYTES, elem_of, global_width, known_elem, window_contiguous_dim};
use crate::analysis::contiguous_dim::smem_window_dim;
use crate::analysis::facts::Facts;
use crate::analysis::views::{accessed_views, copy_shape, memory_views, register_window};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::bits::Bits;
use tilec_ir::combine::{Combine, How};
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::names::Parts;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, Type, fixed_shape, resolve_view, shape_of_tuples, type_of, window_of_registers};

/// A node's number.
pub(super) type NodeId = usize;

/// The entity that has a layout.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A register tile.
    Tile(Value),
    /// A tile that a `let` names and computes.
    Let(Value),
    /// The source of a statement, as a context.
    Source(Stmt),
    /// The operand of a reduction or scan, as a context.
    Reduced(Expr),
}

/// A node of the graph.
pub(super) struct Node {
    pub(super) what: What,
    pub(super) shape: Vec<u64>,
    /// Size of an element.
    pub(super) elem: Bits,
    /// The layout, if it is fixed: that of a product, or one written in the source.
    pub(super) fixed: Option<RegLayout>,
    /// Memory accesses in this layout.
    pub(super) accesses: Vec<Access>,
    /// Operations per element, times their number of executions; replicas count, too.
    pub(super) operations: u64,
    /// The dimension of the reduction, for operands of reductions.
    pub(super) axis: Option<usize>,
    /// The bits along it that distinguish separately reduced parts.
    pub(super) parts: u32,
    /// Whether elements along that dimension are combined in index order in any layout.
    pub(super) ordered: bool,
    /// Whether it is a scan, which gives each element a result instead of one for all.
    pub(super) scanned: bool,
    /// How its elements along that dimension are sorted, if they are.
    pub(super) sorted: Option<How>,
    /// The computed expression, for contexts.
    pub(super) expr: Option<Expr>,
    /// The statement that contains it.
    pub(super) at: Option<Stmt>,
}

/// An access to all elements of a tile in memory.
#[derive(Clone)]
pub(super) struct Access {
    /// Most elements of one access of a thread, as far as memory allows.
    pub(super) width: u32,
    /// The dimension of the tile along which memory is contiguous.
    pub(super) dim: Option<usize>,
    /// Size of an element in memory.
    pub(super) elem: Bits,
    pub(super) global: bool,
    pub(super) load: bool,
    /// Number of executions, relative to code outside of loops.
    pub(super) weight: u64,
    /// A copy between a whole tile and memory, which is the purpose of the tile.
    pub(super) plain: bool,
    /// A store whose warps should write whole sectors.
    pub(super) whole_sectors: bool,
    /// For a load: the distances to windows that were loaded before.
    pub(super) beside: Vec<Vec<i64>>,
}

impl Access {
    /// Neighbours that a thread must own: elements that share a byte are stored together.
    pub(super) fn least(&self) -> u32 {
        if self.load { 1 } else { self.elem.per(1).min(self.width) }
    }

    /// Whether it is a store to global memory of 16 bytes at a time.
    fn stores_vectors(&self) -> bool {
        self.global && !self.load && self.elem.bytes_of(u64::from(self.width)) >= u64::from(MAX_ACCESS_BYTES)
    }
}

/// How the layouts of an edge's nodes must match.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    /// `b` is an operand of the context `a`, broadcast where its extent is 1.
    Operand,
    /// `b` is an operand of which only the extents are used: `iota`.
    Extents,
    /// The reduction or scan of `b` is an operand of the context `a`.
    Reduction,
    /// The context `a` computes the tile `b`.
    Result,
    /// The tile `a` is copied to the tile `b`; their layouts are independent.
    Copy,
    /// A transposed copy.
    Transposed,
    /// A copy to another shape.
    Reshaped,
    /// A copy with the dimensions in another order: dimension `d` of `b` is dimension `order[d]` of `a`.
    Permuted(AxisOrder),
    /// `b` is a window of the tile `a`, copied to or from it, with the dimensions of `a` in the mask `kept`. Along
    /// dimensions in `shifted`, it may begin at other places than multiples of its extent.
    Window { kept: u32, shifted: u32 },
    /// The integers of `b` are the indices in memory of elements of the context `a` along this dimension: of all with one coordinate
    /// there, or with the dimensions of `a` those of single elements.
    Rows(usize),
    /// `b` has the totals of segments of the rows of `a`, which is scanned.
    Totals,
}

/// An edge of the graph.
pub(super) struct Edge {
    pub(super) a: NodeId,
    pub(super) b: NodeId,
    pub(super) relation: Relation,
    /// Number of exchanges, relative to code outside of loops, if the layouts do not match.
    pub(super) weight: u64,
    /// The statement in front of which the exchange is.
    pub(super) at: Stmt,
    /// The operand, or the reduction.
    pub(super) leaf: Option<Expr>,
}

/// The graph of a kernel.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    of_value: BTreeMap<Value, NodeId>,
    /// For a `let` of tuples, the context in which they are combined.
    pub(super) of_tuples: BTreeMap<Value, NodeId>,
    /// For a deferred `let`, the contexts in which it is computed.
    of_deferred: BTreeMap<Value, NodeId>,
}

/// Log2 of the number of iterations that a loop is assumed to have.
const LOOP_LOG2: u32 = 3;

impl Graph {
    /// The graph of a kernel; layouts that tiles already have are fixed.
    pub(super) fn of(k: &Kernel) -> Graph {
        let mut builder = Builder {
            k,
            facts: Facts::new(k),
            deferred: Deferred::of(k),
            graph: Graph::default(),
            path: Vec::new(),
            lets: BTreeMap::new(),
            deferred_of: BTreeSet::new(),
            overlaps: offsets(k),
        };
        builder.block(k.body);
        let mut graph = builder.graph;
        // Sums of products are stored in their own layout, or exchanged for the store (`epilogue`).
        if graph.nodes.iter().all(|node| node.fixed.is_none()) {
            graph
                .nodes
                .iter_mut()
                .flat_map(|node| &mut node.accesses)
                .for_each(|a| a.whole_sectors = a.stores_vectors());
        }
        graph
    }

    /// The node of a tile.
    pub(super) fn tile(&self, v: Value) -> Option<NodeId> {
        self.of_value.get(&v).copied()
    }

    /// Whether an operand of a context has all its elements.
    pub(super) fn has_whole_operand(&self, context: NodeId) -> bool {
        let shape = &self.nodes[context].shape;
        self.edges.iter().filter(|e| e.a == context).any(|e| match e.relation {
            Relation::Operand | Relation::Extents => self.nodes[e.b].shape == *shape,
            Relation::Reduction => reduced_shape(&self.nodes[e.b]) == *shape,
            Relation::Result
            | Relation::Copy
            | Relation::Transposed
            | Relation::Reshaped
            | Relation::Window { .. }
            | Relation::Rows(_)
            | Relation::Permuted(_)
            | Relation::Totals => false,
        })
    }
}

/// The shape of the reduction of a node.
pub(super) fn reduced_shape(node: &Node) -> Vec<u64> {
    let mut shape = node.shape.clone();
    if node.scanned {
        return shape;
    }
    if let Some(extent) = node.axis.and_then(|axis| shape.get_mut(axis)) {
        *extent = 1 << node.parts.count_ones();
    }
    shape
}

/// Whether a tile of extents `small` equals one of extents `large`, or is broadcast to it.
fn fits(small: &[u64], large: &[u64]) -> bool {
    small.len() == large.len() && small.iter().zip(large).all(|(a, b)| a == b || *a == 1)
}

struct Builder<'a> {
    k: &'a Kernel,
    facts: Facts,
    deferred: Deferred,
    graph: Graph,
    /// The path to the current statement.
    path: Vec<(Block, usize)>,
    /// The statements of `let`s.
    lets: BTreeMap<Value, Stmt>,
    /// Pairs of a node and a deferred `let` whose operands were added to it.
    deferred_of: BTreeSet<(NodeId, Value)>,
    overlaps: Offsets,
}

impl Builder<'_> {
    fn block(&mut self, block: Block) {
        for (i, &s) in self.k.blocks[block].iter().enumerate() {
            self.path.push((block, i));
            self.stmt(s);
            for inner in self.k.sub_blocks(s) {
                self.block(inner);
            }
            self.path.pop();
        }
    }

    fn stmt(&mut self, s: Stmt) {
        match self.k.stmts[s] {
            StmtData::Let { value, init } => {
                self.lets.insert(value, s);
                self.named(s, value, init);
            }
            StmtData::Var { value, init } => {
                if let (Some(to), Some(init)) = (self.of_tile(value), init) {
                    self.computed(s, to, init, true);
                }
            }
            StmtData::Assign { dst, src } if !matches!(self.k.exprs[src], ExprData::Mma(_)) => {
                if let Some(to) = self.of_tile(dst) {
                    self.computed(s, to, src, true);
                }
            }
            StmtData::Copy { src, dst, .. } => self.copy(s, src, dst),
            _ => {}
        }
    }

    /// A tile that a `let` names; a deferred one belongs to the contexts that use it.
    fn named(&mut self, s: Stmt, value: Value, init: Expr) {
        if let ExprData::Combine(combine) = &self.k.exprs[init] {
            return self.combined(s, value, init, combine);
        }
        let is_tile =
            matches!(type_of(self.k, init), Ok(Type::Tile(t)) if t.space.in_registers() && !t.shape.is_empty());
        let Some(shape) = fixed_shape(self.k, init).filter(|_| is_tile && self.deferred.init(value).is_none()) else {
            return;
        };
        let node = self.node(What::Let(value), shape, Some(init), Some(s), None);
        self.graph.of_value.insert(value, node);
        self.operands(s, node, init);
        self.windows(node, init);
    }

    /// Tuples that a `let` names: each use of a component is an operand of its context.
    fn combined(&mut self, s: Stmt, value: Value, e: Expr, combine: &Combine) {
        let shape = shape_of_tuples(self.k, combine).expect("tuples have extents");
        let inner = self.node(What::Reduced(e), shape, None, Some(s), None);
        let body = combine.body(self.k).into_iter().map(|e| self.operations(e)).sum::<u64>();
        let args = combine.args.iter().map(|&e| self.operations(e)).sum::<u64>();
        let operations = (body + args) * self.weight();
        let node = &mut self.graph.nodes[inner];
        (node.axis, node.parts) = (Some(combine.axis as usize), combine.operation.parts());
        (node.scanned, node.ordered, node.operations) = (combine.operation.keeps_extents(), true, operations);
        node.sorted = matches!(combine.operation, How::Sort { .. }).then_some(combine.operation);
        for &arg in &combine.args {
            self.operands(s, inner, arg);
            self.windows(inner, arg);
        }
        combine.totals.iter().for_each(|&e| self.totals(s, inner, e));
        self.graph.of_tuples.insert(value, inner);
    }

    /// A component of tuples as an operand.
    fn part(&mut self, at: Stmt, context: NodeId, e: Expr) {
        let (v, _) = self.k.part_of(e).expect("tuples are named");
        let inner = self.graph.of_tuples[&v];
        if fits(&reduced_shape(&self.graph.nodes[inner]), &self.graph.nodes[context].shape) {
            let weight = self.weight();
            let edge = Edge { a: context, b: inner, relation: Relation::Reduction, weight, at, leaf: Some(e) };
            self.graph.edges.push(edge);
        }
    }

    /// A context whose result goes to the tile `to`; `free`: it may have another layout than the tile.
    fn computed(&mut self, s: Stmt, to: NodeId, e: Expr, free: bool) {
        if !self.has_operands(e) {
            self.windows(to, e);
            return;
        }
        let shape = self.graph.nodes[to].shape.clone();
        let context = if free { self.node(What::Source(s), shape, Some(e), Some(s), None) } else { to };
        self.operands(s, context, e);
        self.windows(context, e);
        if free {
            let weight = self.weight();
            self.graph.edges.push(Edge { a: context, b: to, relation: Relation::Result, weight, at: s, leaf: None });
        }
    }

    fn copy(&mut self, s: Stmt, src: Expr, dst: Expr) {
        let StmtData::Copy { attrs, .. } = &self.k.stmts[s] else { unreachable!("it is a copy") };
        if !attrs.is_by_threads() || attrs.is_prefetch() || attrs.is_fragment() {
            return;
        }
        let from = resolve_view(self.k, src).filter(|v| v.space(self.k).is_memory());
        if let Some(to) = crate::analysis::views::plain_var(self.k, dst) {
            let Some(to) = self.of_tile(to) else { return };
            if let Some(view) = register_window(self.k, src).filter(|view| !view.transposed) {
                self.window(s, &view, to);
            } else if let Some(view) = from {
                let shape = self.graph.nodes[to].shape.clone();
                self.access(to, &view, &shape, true, true);
                let beside = self.overlaps.get(&s).cloned().unwrap_or_default();
                self.graph.nodes[to].accesses.last_mut().expect("it was added").beside = beside;
            } else if let Some((from, relation)) = self.copied(src) {
                let weight = self.weight();
                self.graph.edges.push(Edge { a: from, b: to, relation, weight, at: s, leaf: None });
            } else {
                let plain = !attrs.keep && attrs.when.is_none() && attrs.vec.is_none() && attrs.check.is_none();
                self.computed(s, to, src, plain);
            }
            return;
        }
        let Some(to) = resolve_view(self.k, dst) else { return };
        if to.space(self.k).is_memory() && (from.is_some() || !self.has_operands(src)) {
            return self.between_memories(s, src, dst);
        }
        if let (Some(view), Some(v)) = (register_window(self.k, dst), crate::analysis::views::plain_var(self.k, src)) {
            if let Some(part) = self.of_tile(v) {
                self.window(s, &view, part);
            }
            return;
        }
        let Some(shape) = copy_shape(self.k, src, dst).filter(|_| from.is_none() && self.has_operands(src)) else {
            return;
        };
        if to.space(self.k).in_registers() {
            // A window of a tile whose layout is known.
            if let Some((layout, _)) = window_of_registers(self.k, &to, &shape) {
                let context = self.node(What::Source(s), shape, Some(src), Some(s), Some(layout));
                self.operands(s, context, src);
                self.windows(context, src);
            }
            return;
        }
        let shared = self.deferred_in(src).into_iter().find_map(|v| self.graph.of_deferred.get(&v).copied());
        let shared = shared.filter(|&n| attrs.threads.is_none() && self.graph.nodes[n].shape == shape);
        let context = match shared {
            Some(context) => context,
            None => self.node(What::Source(s), shape.clone(), Some(src), Some(s), attrs.threads.clone()),
        };
        for v in self.deferred_in(src) {
            self.graph.of_deferred.entry(v).or_insert(context);
        }
        self.operands(s, context, src);
        self.windows(context, src);
        let plain = crate::analysis::views::plain_var(self.k, src).is_some();
        self.access(context, &to, &shape, false, plain);
        // A written width is the author's decision.
        if let (Some(vec), Some(access)) = (attrs.vec, self.graph.nodes[context].accesses.last_mut()) {
            access.width = access.width.min(vec);
        }
    }

    /// The edge between a tile and a tile that is copied to or from a window of it.
    fn window(&mut self, s: Stmt, view: &ResolvedView, part: NodeId) {
        let Some(whole) = self.of_tile(view.base) else { return };
        let kept = view.base_dims().into_iter().fold(0, |mask, d| mask | 1u32 << d);
        let extents = view.extents_of_base(&self.graph.nodes[part].shape).unwrap_or_default();
        let bits = shape_bits(&extents);
        let places = places(self.k, s, view).unwrap_or_default();
        let apart = |d: usize| places.iter().any(|at| at[d] & ((1 << bits[d]) - 1) != 0);
        let shifted = (0..bits.len()).filter(|&d| apart(d)).fold(0, |mask, d| mask | 1u32 << d);
        let (relation, weight) = (Relation::Window { kept, shifted }, self.weight());
        self.graph.edges.push(Edge { a: whole, b: part, relation, weight, at: s, leaf: None });
    }

    /// A copy between memories has its own layout, in which threads hold the indices of gathered or scattered elements.
    fn between_memories(&mut self, s: Stmt, src: Expr, dst: Expr) {
        let StmtData::Copy { attrs, .. } = &self.k.stmts[s] else { unreachable!("it is a copy") };
        let layout = attrs.threads.clone();
        let mut gathered = [accessed_views(self.k, &self.deferred, src), memory_views(self.k, dst)].concat();
        gathered.retain(|view| view.is_gathered());
        if gathered.is_empty() {
            return;
        }
        // Before layouts are decided, the graph is only queried for reductions.
        let Some(layout) = layout else { return };
        let shape = copy_shape(self.k, src, dst).expect("a copy has extents");
        let context = self.node(What::Source(s), shape, None, Some(s), Some(layout));
        gathered.iter().for_each(|view| self.rows(context, view));
    }

    /// The edges from a context to the register tiles with the indices of a window's elements.
    fn rows(&mut self, context: NodeId, view: &ResolvedView) {
        let &(block, index) = self.path.last().expect("a copy stands somewhere");
        let at = self.k.blocks[block][index];
        for (dim, e) in view.gathered_dims() {
            let ExprData::Ref(v) = self.k.exprs[e] else { panic!("bug: rows are gathered by what is no variable") };
            let b = self.of_tile(v).expect("the verifier has tiles of integers alone as indices");
            let weight = 1 << (LOOP_LOG2 * self.loops_that_change(v).min(4));
            self.graph.edges.push(Edge { a: context, b, relation: Relation::Rows(dim), weight, at, leaf: Some(e) });
        }
    }

    /// The tile that is copied as a whole, and the relation of the copy.
    fn copied(&mut self, src: Expr) -> Option<(NodeId, Relation)> {
        let (tile, relation) = match self.k.exprs[src] {
            ExprData::Transpose(arg) => (arg, Relation::Transposed),
            ExprData::Reshape { arg, numbered: None, .. } => (arg, Relation::Reshaped),
            ExprData::Permute { arg, ref order } => (arg, Relation::Permuted(AxisOrder::of(order))),
            _ => (src, Relation::Copy),
        };
        let node = self.of_tile(crate::analysis::views::plain_var(self.k, tile)?)?;
        Some((node, relation))
    }

    /// The deferred `let`s that an expression names, directly or through others.
    fn deferred_in(&self, e: Expr) -> Vec<Value> {
        let mut found = Vec::new();
        crate::analysis::views::for_each_tile(self.k, &self.deferred, e, &mut |v| {
            if self.deferred.init(v).is_some() && !found.contains(&v) {
                found.push(v);
            }
        });
        found
    }

    fn node(
        &mut self,
        what: What,
        shape: Vec<u64>,
        expr: Option<Expr>,
        at: Option<Stmt>,
        fixed: Option<RegLayout>,
    ) -> NodeId {
        let elem = match what {
            What::Tile(v) => elem_of(self.k, v),
            _ => expr.and_then(|e| match type_of(self.k, e).ok()?.elem() {
                Some(ElemRef::Known(elem)) => Some(elem),
                _ => None,
            }),
        };
        let elem = elem.unwrap_or(Elem::F32).size();
        let operations = expr.map_or(0, |e| self.operations(e)) * self.weight();
        self.graph.nodes.push(Node {
            what,
            shape,
            elem,
            fixed,
            accesses: Vec::new(),
            operations,
            axis: None,
            parts: 0,
            ordered: false,
            scanned: false,
            sorted: None,
            expr,
            at,
        });
        self.graph.nodes.len() - 1
    }

    /// Operations per element of an expression, without those inside of reductions.
    fn operations(&self, e: Expr) -> u64 {
        let (mut all, mut parts) = (0, Parts::of(self.k, e));
        while let Some(e) = parts.take() {
            match self.k.exprs[e] {
                ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. } | ExprData::View(_) => {}
                // A named value is computed once.
                ExprData::Ref(v) if self.deferred.init(v).is_some() => parts.named(v),
                ExprData::Ref(_) => {}
                ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. } | ExprData::Round { .. } => {
                    all += 1;
                    parts.inside(e);
                }
                _ => parts.inside(e),
            }
        }
        all
    }

    /// The node of a register tile with extents.
    fn of_tile(&mut self, v: Value) -> Option<NodeId> {
        if let Some(&node) = self.graph.of_value.get(&v) {
            return Some(node);
        }
        let ValueDef::Var(tile) = &self.k.values[v].def else { return None };
        let shape = self.k.const_shape(&tile.shape).filter(|s| !s.is_empty())?;
        let fixed = tile.reg_layout.clone();
        let node = self.node(What::Tile(v), shape, None, None, fixed);
        self.graph.of_value.insert(v, node);
        Some(node)
    }

    /// Whether an expression has operands in registers.
    fn has_operands(&self, e: Expr) -> bool {
        let mut parts = Parts::of(self.k, e);
        while let Some(e) = parts.take() {
            match self.k.exprs[e] {
                ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. } => return true,
                ExprData::Ref(v) if self.deferred.init(v).is_some() => parts.named(v),
                ExprData::Ref(v) if self.is_tile(v) => return true,
                ExprData::Ref(_) => {}
                ExprData::View(_)
                | ExprData::Mma(_)
                | ExprData::Transpose(_)
                | ExprData::Permute { .. }
                | ExprData::Reshape { .. } => {}
                _ => parts.inside(e),
            }
        }
        false
    }

    /// Whether a value is a tile in registers.
    fn is_tile(&self, v: Value) -> bool {
        match &self.k.values[v].def {
            ValueDef::Var(t) => !t.shape.is_empty(),
            ValueDef::Let => self.graph.of_value.contains_key(&v),
            _ => false,
        }
    }

    /// Edges from a context to the operands of `e`, which are in the statement `at`.
    fn operands(&mut self, at: Stmt, context: NodeId, e: Expr) {
        match self.k.exprs[e] {
            ExprData::Reduce { axis, parts, arg, .. } => {
                self.reduction(at, context, e, (arg, axis as usize), (parts, false));
            }
            ExprData::Scan { axis, arg, totals, .. } => {
                let parts = totals.map_or(0, |totals| totals.parts);
                let inner = self.reduction(at, context, e, (arg, axis as usize), (parts, true));
                totals.iter().for_each(|totals| self.totals(at, inner, totals.tile));
            }
            ExprData::Part { .. } => self.part(at, context, e),
            ExprData::Ref(v) => match self.deferred.init(v) {
                Some(init) if self.deferred_of.insert((context, v)) => {
                    let stands = self.lets.get(&v).copied().unwrap_or(at);
                    self.operands(stands, context, init);
                }
                Some(_) => {}
                None => self.operand(at, context, e, v, Relation::Operand),
            },
            ExprData::Iota { like: arg, .. } => {
                if let ExprData::Ref(v) = self.k.exprs[arg]
                    && self.deferred.init(v).is_none()
                {
                    self.operand(at, context, arg, v, Relation::Extents);
                } else {
                    self.operands(at, context, arg);
                }
            }
            ExprData::View(_)
            | ExprData::Mma(_)
            | ExprData::Transpose(_)
            | ExprData::Permute { .. }
            | ExprData::Reshape { .. } => {}
            _ => self.k.children(e).into_iter().for_each(|child| self.operands(at, context, child)),
        }
    }

    fn operand(&mut self, at: Stmt, context: NodeId, e: Expr, v: Value, relation: Relation) {
        let node = match self.k.values[v].def {
            ValueDef::Var(_) => self.of_tile(v),
            ValueDef::Let => self.graph.tile(v),
            _ => None,
        };
        let Some(node) = node.filter(|&n| fits(&self.graph.nodes[n].shape, &self.graph.nodes[context].shape)) else {
            return;
        };
        let known = self.graph.edges.iter().any(|edge| edge.a == context && edge.leaf == Some(e));
        if !known {
            let weight = 1 << (LOOP_LOG2 * self.loops_that_change(v).min(4));
            self.graph.edges.push(Edge { a: context, b: node, relation, weight, at, leaf: Some(e) });
        }
    }

    /// The edge to the totals of segments of the rows of a node.
    fn totals(&mut self, at: Stmt, inner: NodeId, e: Expr) {
        let ExprData::Ref(v) = self.k.exprs[e] else { return };
        let node = match self.k.values[v].def {
            ValueDef::Var(_) => self.of_tile(v),
            ValueDef::Let => self.graph.tile(v),
            _ => None,
        };
        if let Some(b) = node {
            let weight = 1 << (LOOP_LOG2 * self.loops_that_change(v).min(4));
            self.graph.edges.push(Edge { a: inner, b, relation: Relation::Totals, weight, at, leaf: Some(e) });
        }
    }

    /// A reduction or a scan, in parts.
    fn reduction(
        &mut self,
        at: Stmt,
        context: NodeId,
        e: Expr,
        (arg, axis): (Expr, usize),
        (parts, scanned): (u32, bool),
    ) -> NodeId {
        let shape = fixed_shape(self.k, arg).expect("what is reduced has extents");
        let inner = self.node(What::Reduced(e), shape, Some(arg), Some(at), None);
        self.graph.nodes[inner].axis = Some(axis);
        (self.graph.nodes[inner].parts, self.graph.nodes[inner].scanned) = (parts, scanned);
        self.operands(at, inner, arg);
        self.windows(inner, arg);
        if fits(&reduced_shape(&self.graph.nodes[inner]), &self.graph.nodes[context].shape) {
            let weight = self.weight();
            let edge = Edge { a: context, b: inner, relation: Relation::Reduction, weight, at, leaf: Some(e) };
            self.graph.edges.push(edge);
        }
        inner
    }

    /// How often the current statement is executed, relative to what is in no loop.
    fn weight(&self) -> u64 {
        1 << (LOOP_LOG2 * self.loops().count().min(4) as u32)
    }

    /// The loops around the current statement, the innermost first.
    fn loops(&self) -> impl Iterator<Item = Stmt> {
        let around = &self.path[..self.path.len().saturating_sub(1)];
        let stmts = around.iter().rev().map(|&(b, i)| self.k.blocks[b][i]);
        stmts.filter(|&s| matches!(self.k.stmts[s], StmtData::For { .. }))
    }

    /// The loops around the current statement out of which a copy of `v` cannot be taken.
    fn loops_that_change(&self, v: Value) -> u32 {
        let all = self.loops().count();
        let kept = self.loops().take_while(|&s| !tilec_ir::modified_values::changes(self.k, s, v)).count();
        (all - kept) as u32
    }

    /// The windows of memory that an expression reads, in a context's layout.
    fn windows(&mut self, context: NodeId, e: Expr) {
        let shape = self.graph.nodes[context].shape.clone();
        for view in accessed_views(self.k, &self.deferred, e) {
            self.access(context, &view, &shape, true, false);
        }
    }

    fn access(&mut self, node: NodeId, view: &ResolvedView, shape: &[u64], load: bool, plain: bool) {
        let elem = known_elem(self.k, view.base);
        let global = self.k.tensor_ty(view.base).is_some();
        let full = elem.per(MAX_ACCESS_BYTES);
        let (width, dim) = match global {
            true => (global_width(self.k, &self.facts, view, shape).elems, window_contiguous_dim(self.k, view)),
            false => (full, smem_window_dim(self.k, view)),
        };
        let dim = dim.filter(|&d| d < shape_bits(shape).len());
        self.rows(node, view);
        let weight = self.weight();
        let access = Access {
            width,
            dim,
            elem: elem.size(),
            global,
            load,
            weight,
            plain,
            whole_sectors: false,
            beside: Vec::new(),
        };
        self.graph.nodes[node].accesses.push(access);
    }
}
