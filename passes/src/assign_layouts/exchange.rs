//! Exchanges between layouts, as statements.
//!
//! After the layouts of the kernel's tiles are known, this file finds those of contexts ([`super::infer`]). Each edge
//! of the graph whose ends do not match becomes a copy in the text. An operand is copied to a tile in the layout of its
//! context (`var y = reg ..; copy x -> y`), in front of the statement and of the loops that do not change it. A
//! reduction and a context's result are first stored in tiles. Elements that cross warps go through a buffer
//! (`copy x -> s; copy s -> y`), so that barriers, swizzles and the budget of shared memory include it. If no operand
//! of a context has all elements, the context is computed into a tile.
//!
//! Needs: a layout for every register tile. Always on: a program without its exchanges does not compile.

mod across_warps;
mod numbers;
mod segments;
mod shared_barrier;
mod tuples;

use super::cost;
use super::dead_buffers;
use super::graph::{Edge, Graph, NodeId, Relation, What, reduced_shape};
use super::infer::{self, given, matches, required_layout};
use super::materialise::{NewTile, own_tile, tile, unrounded};
use super::storage_types::{in_memory, in_storage_type, is_truth, loaded, stored};
use super::threads::Threads;
use crate::Cx;
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::uses::{path_to, place_of};
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::modified_values::changes;
use tilec_ir::types::{ElemRef, Order};
use tilec_ir::typing::{resolve_view, type_of};

/// The order in which edges are handled: operands before the results computed from them, and those before their
/// destinations.
const ORDER: [fn(Relation) -> bool; 7] = [
    |r| matches!(r, Relation::Operand | Relation::Rows(_) | Relation::Totals),
    |r| r == Relation::Extents,
    |r| r == Relation::Reduction,
    |r| r == Relation::Result,
    |r| r == Relation::Copy,
    |r| r == Relation::Transposed,
    |r| matches!(r, Relation::Reshaped | Relation::Permuted(_)),
];

/// Inserts the exchanges of a kernel.
pub(super) fn insert(k: &mut Kernel, cx: &mut Cx<'_>, threads: Threads) -> Result<(), Reported> {
    let graph = Graph::of(k);
    let layouts = infer::layouts(&graph, threads, cx.enabled);
    let mut work = Work {
        graph: &graph,
        layouts: &layouts,
        copies: BTreeMap::new(),
        numbers: BTreeMap::new(),
        put_together: Vec::new(),
        buffers: Vec::new(),
        moved: Vec::new(),
        loads: Vec::new(),
    };
    let mut result = Ok(());
    for is_next in ORDER {
        for edge in graph.edges.iter().filter(|e| is_next(e.relation)) {
            result = result.and(work.match_edge(k, cx, edge));
        }
        if is_next(Relation::Extents) {
            work.tuples_of_memory(k);
            work.complete(k);
        }
        if is_next(Relation::Reduction) {
            work.unread_tuples(k, cx);
        }
    }
    if cx.enabled {
        shared_barrier::merge_barriers(k, &work.loads);
    }
    for (_, buffer) in work.buffers {
        order(k, buffer);
    }
    result
}

/// Gives a buffer of a named tile the order in which threads own neighbours of the tile.
pub(super) fn order(k: &mut Kernel, buffer: Value) {
    let rank = k.tile_ty(buffer).expect("a buffer is a tile").shape.len();
    let dim = smem_contiguous(k, buffer).unwrap_or(rank.saturating_sub(1));
    let found = [Order::Row, Order::Col].into_iter().find(|o| o.contiguous_dim(rank) == dim);
    k.tile_ty_mut(buffer).expect("a buffer is a tile").order = found;
}

/// A position in a block.
pub(super) type Place = (Block, usize);

/// The position in front of the statement `at`, and of the loops around it that do not change `v`.
pub(super) fn place(k: &Kernel, at: Stmt, v: Value) -> Place {
    let path = path_to(k, at);
    let mut steps = path.iter().rev().copied();
    let mut place = steps.next().expect("a path ends at its statement");
    for (block, index) in steps {
        let around = k.blocks[block][index];
        if !matches!(k.stmts[around], StmtData::For { .. }) || changes(k, around, v) {
            break;
        }
        place = (block, index);
    }
    place
}

struct Work<'a> {
    graph: &'a Graph,
    layouts: &'a [Option<RegLayout>],
    /// Exchanged tiles by their source: the new layout, the tile, and the statement that fills it.
    copies: BTreeMap<Value, Vec<(RegLayout, Value, Stmt)>>,
    /// Tiles with the 0/1 numbers of conditions that `let`s name.
    numbers: BTreeMap<Value, Value>,
    /// Names of tuples whose partial results were combined across warps.
    put_together: Vec<Value>,
    /// Buffers of exchanges, with the block that declares them.
    buffers: Vec<(Block, Value)>,
    /// Expressions that have moved from a statement to another one in front of it.
    moved: Vec<Moved>,
    /// For each reduction, the statements that load the parts of rows that warps share.
    loads: Vec<Vec<Stmt>>,
}

/// An expression that has moved to a tile of its own.
struct Moved {
    from: Stmt,
    to: Stmt,
    e: Expr,
}

/// The source of an exchange.
struct Source {
    value: Value,
    elem: ElemRef,
    shape: Vec<u64>,
    layout: RegLayout,
}

impl Work<'_> {
    fn layout(&self, n: NodeId) -> Option<&RegLayout> {
        self.layouts[n].as_ref()
    }

    /// The statement that now contains an expression that was in `at`.
    fn stands_in(&self, k: &Kernel, mut at: Stmt, e: Expr) -> Stmt {
        while let Some(moved) = self.moved.iter().find(|m| m.from == at && self.has_moved(k, m, e)) {
            at = moved.to;
        }
        at
    }

    /// Whether an expression has moved together with another one, or further from there.
    fn has_moved(&self, k: &Kernel, with: &Moved, e: Expr) -> bool {
        within(k, with.e, e) || self.moved.iter().any(|m| m.from == with.to && self.has_moved(k, m, e))
    }

    /// Moves an expression to a tile of its own in front of the statement `at`, which then refers to the tile.
    fn own_tile(&mut self, k: &mut Kernel, at: Stmt, e: Expr, own: NewTile<'_>) -> Value {
        let (v, to, moved) = own_tile(k, at, e, own);
        self.moved.push(Moved { from: at, to, e: moved });
        v
    }

    /// Makes the two ends of an edge match.
    fn match_edge(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge) -> Result<(), Reported> {
        let (a, b) = (&self.graph.nodes[edge.a], &self.graph.nodes[edge.b]);
        let (Some(of_a), Some(of_b)) = (self.layout(edge.a).cloned(), self.layout(edge.b).cloned()) else {
            // A tile without a layout is refused later, by name.
            return Ok(());
        };
        if edge.relation == Relation::Reduction {
            self.across_warps(k, cx, edge, &of_b);
        }
        let Some(to) = required_layout(edge, a, b, &of_a) else { return Ok(()) };
        // A written layout does not allow the reduction; lowering reports it.
        let Some(from) = given(edge, b, &of_b) else { return Ok(()) };
        if matches(&to, &from) {
            return Ok(());
        }
        if to.thread_bits() != from.thread_bits() {
            return Err(self.refuse_threads(k, cx, edge, &to, &from));
        }
        match (edge.relation, edge.leaf) {
            (Relation::Operand | Relation::Rows(_) | Relation::Totals, Some(leaf)) => {
                let source = self.source(k, leaf, b.shape.clone(), from);
                self.operand(k, cx, edge, leaf, source, to);
            }
            (Relation::Extents, Some(leaf)) => match self.another_whole(k, edge).filter(|_| a.shape == b.shape) {
                Some(v) => k.exprs[leaf] = ExprData::Ref(v),
                None => self.of_extents(k, edge, leaf, &b.shape, to),
            },
            (Relation::Reduction, Some(leaf)) => {
                let at = self.stands_in(k, edge.at, leaf);
                let shape = &reduced_shape(b);
                let leaf = in_storage_type(k, leaf);
                let elem = unrounded(k, leaf);
                self.own_tile(
                    k,
                    at,
                    leaf,
                    NewTile { elem, shape, layout: from.clone(), what: "reduced", is_part: false },
                );
                let source = self.source(k, leaf, reduced_shape(b), from);
                self.operand(k, cx, edge, leaf, source, to);
            }
            (Relation::Result, _) => self.result(k, cx, edge, (to, from)),
            (Relation::Copy | Relation::Transposed, _) => self.copy(k, cx, edge, (&to, &from)),
            (Relation::Reshaped | Relation::Permuted(_), _) => self.reshaped(k, cx, edge, (&to, &from)),
            (Relation::Window { .. }, _) => unreachable!("windows are settled behind all others"),
            (_, None) => unreachable!("an operand has an expression"),
        }
        Ok(())
    }

    /// The tile that an expression names.
    fn source(&self, k: &Kernel, leaf: Expr, shape: Vec<u64>, layout: RegLayout) -> Source {
        let ExprData::Ref(value) = k.exprs[leaf] else { unreachable!("operands are names of tiles") };
        let elem = type_of(k, leaf).ok().and_then(|t| t.elem()).expect("a tile has an element type");
        Source { value, elem, shape, layout }
    }

    /// Replaces an operand by a copy in the layout of its context.
    fn operand(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, leaf: Expr, source: Source, to: RegLayout) {
        let at = self.stands_in(k, edge.at, leaf);
        let (leaf, source) = self.exchanged_as(k, leaf, source);
        let place = place(k, at, source.value);
        let known = self.copies.get(&source.value).into_iter().flatten();
        let reuse = known
            .filter(|(layout, ..)| matches(layout, &to))
            .find(|(_, _, filled)| still_holds(k, *filled, source.value, place));
        let copied = match reuse.map(|&(_, v, _)| v) {
            Some(v) => v,
            None => {
                let (v, filled) = self.exchange(k, cx, place, at, &source, &to);
                self.copies.entry(source.value).or_default().push((to, v, filled));
                v
            }
        };
        k.exprs[leaf] = ExprData::Ref(copied);
    }

    /// If only the extents of a tile are used (`iota`), uses another tile in the layout of the context instead. It need
    /// not be written.
    fn of_extents(&self, k: &mut Kernel, edge: &Edge, leaf: Expr, shape: &[u64], to: RegLayout) {
        let at = self.stands_in(k, edge.at, leaf);
        let source = self.source(k, leaf, shape.to_vec(), to.clone());
        let ty = tile(k, at, source.elem, shape, Some(to));
        let name = format!("{}_extents", k.values[source.value].name);
        let value = k.value(&name, k.stmt_spans[at], ValueDef::Var(ty));
        let declared = k.stmt(StmtData::Var { value, init: None }, k.stmt_spans[at]);
        let (block, index) = place_of(k, at);
        k.blocks[block].insert(index, declared);
        k.exprs[leaf] = ExprData::Ref(value);
    }

    /// Declares a tile in the layout `to`, and fills it from `source`, at `place`. Returns it, and the statement that fills it.
    fn exchange(
        &mut self,
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        (block, index): Place,
        at: Stmt,
        source: &Source,
        to: &RegLayout,
    ) -> (Value, Stmt) {
        let span = k.stmt_spans[at];
        let name = k.values[source.value].name.clone();
        let tile = tile(k, at, source.elem, &source.shape, Some(to.clone()));
        let v = k.value(&format!("{name}_exchanged"), span, ValueDef::Var(tile));
        let mut stmts = vec![k.stmt(StmtData::Var { value: v, init: None }, span)];
        let from = k.value_ref(source.value, span);
        let fill = self.fill(k, (block, index), at, from, source, to);
        let mut say = "between lanes";
        let last = match fill {
            Some((before, buffer)) => {
                say = "between warps, through shared memory";
                stmts.extend(before);
                loaded(k, source.elem, buffer)
            }
            None => from,
        };
        let dst = k.value_ref(v, span);
        let filled = k.stmt(StmtData::Copy { src: last, dst, attrs: CopyAttrs::default() }, span);
        stmts.push(filled);
        k.blocks[block].splice(index..index, stmts);
        let message = format!("`{name}` is exchanged {say}: it is used in two layouts");
        let note = format!("it has the layout {}, and is used here with {}", source.layout, to);
        cx.remark_note(span, message, note);
        (v, filled)
    }

    /// The statements that store a tile to a buffer, if it reaches the layout `to` that way, and the buffer.
    fn fill(
        &mut self,
        k: &mut Kernel,
        place: Place,
        at: Stmt,
        from: Expr,
        source: &Source,
        to: &RegLayout,
    ) -> Option<(Vec<Stmt>, Expr)> {
        if !cost::through_memory(&source.layout, to) {
            return None;
        }
        let span = k.stmt_spans[at];
        let mut stmts = Vec::new();
        let buffer = match self.buffer(k, place, source) {
            Some(buffer) => buffer,
            None => {
                let name = format!("{}_exchange", k.values[source.value].name);
                let ty = tile(k, at, in_memory(source.elem), &source.shape, None);
                let over = dead_buffers::buffers(k, place);
                let buffer = k.value(&name, span, ValueDef::Smem(ty));
                stmts.push(k.stmt(StmtData::Alloc { value: buffer, over }, span));
                self.buffers.push((place.0, buffer));
                buffer
            }
        };
        let (to, back) = (k.value_ref(buffer, span), k.value_ref(buffer, span));
        let src = stored(k, source.elem, from);
        stmts.push(k.stmt(StmtData::Copy { src, dst: to, attrs: CopyAttrs::default() }, span));
        Some((stmts, back))
    }

    /// A buffer of the same shape that another exchange in the same block used in front of `place`.
    fn buffer(&self, k: &Kernel, (block, index): Place, source: &Source) -> Option<Value> {
        // Declared in front of the place, and its memory not reused since.
        let declared = |v: Value| {
            let allocs = k.blocks[block][..index].iter().filter_map(|&s| match &k.stmts[s] {
                StmtData::Alloc { value, over } => Some((*value, over)),
                _ => None,
            });
            let mut since = allocs.skip_while(|&(value, _)| value != v);
            let Some((_, own)) = since.next() else { return false };
            since.all(|(_, over)| !over.iter().any(|w| *w == v || own.contains(w)))
        };
        let alike = |v: Value| {
            k.tile_ty(v).is_some_and(|t| {
                t.elem == in_memory(source.elem) && k.const_shape(&t.shape).as_ref() == Some(&source.shape)
            })
        };
        self.buffers.iter().filter(|&&(b, _)| b == block).map(|&(_, v)| v).find(|&v| alike(v) && declared(v))
    }

    /// Another operand of the context that has all elements and the right layout.
    fn another_whole(&self, k: &Kernel, edge: &Edge) -> Option<Value> {
        let shape = &self.graph.nodes[edge.a].shape;
        let others = self.graph.edges.iter().filter(|e| e.a == edge.a && e.relation == Relation::Operand);
        let whole = others.filter(|e| self.graph.nodes[e.b].shape == *shape);
        let named = whole.filter_map(|e| match k.exprs[e.leaf?] {
            ExprData::Ref(v) => Some(v),
            _ => None,
        });
        // The name must be visible where its extents are used.
        let at = path_to(k, edge.at);
        named.into_iter().find(|&v| {
            let declares =
                |s: Stmt| matches!(k.stmts[s], StmtData::Let { value, .. } | StmtData::Var { value, .. } if value == v);
            at.iter().any(|&(b, i)| k.blocks[b][..i].iter().any(|&s| declares(s)))
        })
    }

    /// Computes contexts without an operand that has all elements, and reduced expressions with operands in memory,
    /// into tiles of their own.
    fn complete(&mut self, k: &mut Kernel) {
        for (n, node) in self.graph.nodes.iter().enumerate() {
            let (Some(e), Some(at), Some(layout)) = (node.expr, node.at, self.layout(n)) else { continue };
            // A reduction of a reduction reads no memory itself.
            let combines = !matches!(k.exprs[e], ExprData::Reduce { .. } | ExprData::Scan { .. });
            let from_memory = matches!(node.what, What::Reduced(_)) && !node.accesses.is_empty() && combines;
            if self.graph.has_whole_operand(n) && !from_memory {
                continue;
            }
            match node.what {
                // The destination tile has the layout.
                What::Source(s) if goes_to_tile(k, s) => {}
                What::Let(v) if !is_truth(k, e) => {
                    let elem = type_of(k, e).ok().and_then(|t| t.elem()).expect("a tile has an element type");
                    let ty = tile(k, at, elem, &node.shape, Some(layout.clone()));
                    k.values[v].def = ValueDef::Var(ty);
                    k.stmts[at] = StmtData::Var { value: v, init: Some(e) };
                }
                What::Source(_) | What::Reduced(_) | What::Let(_) => {
                    let (layout, at) = (layout.clone(), self.stands_in(k, at, e));
                    let e = in_storage_type(k, e);
                    let elem = unrounded(k, e);
                    self.own_tile(k, at, e, NewTile { elem, shape: &node.shape, layout, what: "tile", is_part: false });
                }
                What::Tile(_) => {}
            }
        }
    }

    /// Computes a context in its own layout, and copies the result to its destination.
    fn result(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, (from, to): (RegLayout, RegLayout)) {
        let (StmtData::Assign { dst, src } | StmtData::Var { value: dst, init: Some(src) }) = k.stmts[edge.at] else {
            return self.result_of_copy(k, cx, edge, (from, to));
        };
        let shape = self.graph.nodes[edge.b].shape.clone();
        let elem = k.tile_ty(dst).expect("a register tile").elem;
        let own = NewTile { elem, shape: &shape, layout: from.clone(), what: "computed", is_part: false };
        let value = self.own_tile(k, edge.at, src, own);
        let span = k.stmt_spans[edge.at];
        let into = k.value_ref(dst, span);
        let copy = StmtData::Copy { src, dst: into, attrs: CopyAttrs::default() };
        let at = match k.stmts[edge.at] {
            StmtData::Var { .. } => {
                let (block, index) = place_of(k, edge.at);
                k.stmts[edge.at] = StmtData::Var { value: dst, init: None };
                let copy = k.stmt(copy, span);
                k.plans[copy] = k.plans[edge.at];
                k.blocks[block].insert(index + 1, copy);
                copy
            }
            _ => {
                k.stmts[edge.at] = copy;
                edge.at
            }
        };
        self.by_memory(k, cx, at, value, (&from, &to), edge);
    }

    fn result_of_copy(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, (from, to): (RegLayout, RegLayout)) {
        let StmtData::Copy { src, dst, .. } = k.stmts[edge.at] else { unreachable!("a result goes to a tile") };
        let shape = self.graph.nodes[edge.b].shape.clone();
        // A name is copied directly, like a written exchange.
        let value = match k.exprs[src] {
            ExprData::Ref(v) => v,
            _ => {
                let elem = type_of(k, dst).ok().and_then(|t| t.elem()).expect("a tile has an element type");
                let own = NewTile { elem, shape: &shape, layout: from.clone(), what: "computed", is_part: false };
                self.own_tile(k, edge.at, src, own)
            }
        };
        self.by_memory(k, cx, edge.at, value, (&from, &to), edge);
    }

    fn copy(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, (from, to): (&RegLayout, &RegLayout)) {
        let StmtData::Copy { src, .. } = k.stmts[edge.at] else { unreachable!("a copy of a tile to another") };
        let ExprData::Ref(value) = k.exprs[untransposed(k, src)] else { unreachable!("a tile is copied as a whole") };
        self.by_memory(k, cx, edge.at, value, (from, to), edge);
    }

    /// A tile that changes shape and layout gets an intermediate tile.
    fn reshaped(&mut self, k: &mut Kernel, cx: &mut Cx<'_>, edge: &Edge, (from, to): (&RegLayout, &RegLayout)) {
        if !cost::through_memory(from, to) {
            return;
        }
        let StmtData::Copy { src, dst, attrs } = k.stmts[edge.at].clone() else { unreachable!("a copy of a tile") };
        let elem = type_of(k, src).ok().and_then(|t| t.elem()).expect("a tile has an element type");
        let (span, shape) = (k.stmt_spans[edge.at], self.graph.nodes[edge.b].shape.clone());
        let ty = tile(k, edge.at, elem, &shape, Some(from.clone()));
        let value = k.value("reshaped", span, ValueDef::Var(ty));
        let (between, own) = (k.value_ref(value, span), k.value_ref(value, span));
        let front = [
            k.stmt(StmtData::Var { value, init: None }, span),
            k.stmt(StmtData::Copy { src, dst: between, attrs: CopyAttrs::default() }, span),
        ];
        k.stmts[edge.at] = StmtData::Copy { src: own, dst, attrs };
        let (block, index) = place_of(k, edge.at);
        k.blocks[block].splice(index..index, front);
        self.by_memory(k, cx, edge.at, value, (from, to), edge);
    }

    /// Makes a copy between tiles go through shared memory, if elements cross warps.
    fn by_memory(
        &mut self,
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        at: Stmt,
        value: Value,
        (from, to): (&RegLayout, &RegLayout),
        edge: &Edge,
    ) {
        let StmtData::Copy { src, dst, attrs } = k.stmts[at].clone() else { unreachable!("a copy between tiles") };
        let whole = untransposed(k, src);
        let node = &self.graph.nodes[if whole == src { edge.b } else { edge.a }];
        let elem = type_of(k, src).ok().and_then(|t| t.elem()).expect("a tile has an element type");
        let source = Source { value, elem, shape: node.shape.clone(), layout: from.clone() };
        let place = place_of(k, at);
        let Some((before, mut buffer)) = self.fill(k, place, at, whole, &source, to) else { return };
        if whole != src {
            buffer = k.expr(ExprData::Transpose(buffer), k.expr_spans[src]);
        }
        let src = loaded(k, elem, buffer);
        // Registers have no accesses that `vec` could be of; those of the buffer are the compiler's.
        k.stmts[at] = StmtData::Copy { src, dst, attrs: CopyAttrs { vec: None, ..attrs } };
        k.blocks[place.0].splice(place.1..place.1, before);
        let message = format!("`{}` is exchanged between warps, through shared memory", k.values[value].name);
        cx.remark(k.stmt_spans[at], message);
    }

    /// Refuses an edge whose ends are held by different threads.
    fn refuse_threads(&self, k: &Kernel, cx: &mut Cx<'_>, edge: &Edge, to: &RegLayout, from: &RegLayout) -> Reported {
        let span = edge.leaf.map_or(k.stmt_spans[edge.at], |e| k.expr_spans[e]);
        let message = format!(
            "a tile over {} threads is combined with one over {}",
            1u64 << from.thread_bits(),
            1u64 << to.thread_bits()
        );
        let d = Diagnostic::error(codes::UNFIT, span, message)
            .with_note(format!("it has the layout {}, and is used here with {}", from, to))
            .with_note("leave the layouts out to have them found, or write a thread mode of stride 0 to repeat a tile over further threads");
        cx.report(d)
    }
}

/// Whether what a statement computes goes to a register tile.
fn goes_to_tile(k: &Kernel, s: Stmt) -> bool {
    match k.stmts[s] {
        StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|view| view.space(k).in_registers()),
        _ => true,
    }
}

/// Whether the copy `filled` is in front of `place`, in its block, and nothing changes `v` in between.
pub(super) fn still_holds(k: &Kernel, filled: Stmt, v: Value, (block, index): Place) -> bool {
    let stmts = &k.blocks[block];
    let Some(from) = stmts.iter().position(|&s| s == filled) else { return false };
    from < index && stmts[from..index].iter().all(|&s| !changes(k, s, v))
}

/// The source tile of a copy, without a transposition.
fn untransposed(k: &Kernel, src: Expr) -> Expr {
    match k.exprs[src] {
        ExprData::Transpose(arg) => arg,
        _ => src,
    }
}

/// Whether an expression is part of another one.
fn within(k: &Kernel, whole: Expr, e: Expr) -> bool {
    whole == e || k.children(whole).into_iter().any(|c| within(k, c, e))
}
