//! Which extents a program takes to be the same: those of copied, combined and multiplied tiles, the distances of
//! windows, and the counts of the loops and grids that windows move by.

use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::{ExprData, Kernel, Mma, Range, StmtData, ValueDef, View};
use tilec_ir::loop_ends::{loop_variable, meaning};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, let_init, resolve_view};

/// What has an extent.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Key {
    /// A number of the source, by the place where it begins.
    Number(u32),
    /// A dimension of a buffer or of a register tile.
    Tile(Value, usize),
    /// A dimension of a window.
    Window(Expr, usize),
}

/// A number in [`Agreement::keys`].
type Node = usize;

/// The extents of a program, those that have to be the same in one class.
pub(super) struct Agreement<'k> {
    k: &'k Kernel,
    keys: BTreeMap<Key, Node>,
    parents: Vec<Node>,
    /// Extents that are prescribed, or are no number of the source.
    fixed: BTreeSet<Node>,
    /// The places of the numbers.
    spans: BTreeMap<Node, Span>,
    /// What tiles of an extent cover.
    covered: Vec<(Node, Expr)>,
    /// The loops with a variable: step and end, if they begin with 0.
    loops: BTreeMap<Value, (Expr, Option<Expr>)>,
    /// The dimensions of names.
    names: BTreeMap<Value, Vec<Option<Node>>>,
}

/// Extents that agree.
pub(super) struct Class {
    pub(super) keys: Vec<Key>,
    /// The numbers of the source.
    pub(super) places: Vec<Span>,
    /// What the tiles cover.
    pub(super) covered: Vec<Expr>,
}

impl<'k> Agreement<'k> {
    pub(super) fn of(k: &'k Kernel) -> Agreement<'k> {
        let mut all = Agreement {
            k,
            keys: BTreeMap::new(),
            parents: Vec::new(),
            fixed: BTreeSet::new(),
            spans: BTreeMap::new(),
            covered: Vec::new(),
            loops: BTreeMap::new(),
            names: BTreeMap::new(),
        };
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::For { var, start, end, step, .. } = k.stmts[s] {
                all.loops.insert(var, (step, (k.as_int(start) == Some(0)).then_some(end)));
            }
        });
        for (v, _) in k.values.iter() {
            let Some(tile) = k.tile_ty(v) else { continue };
            for (d, &extent) in tile.shape.iter().enumerate() {
                let own = all.node(Key::Tile(v, d));
                if tile.reg_layout.is_some() || tile.smem_layout.is_some() || k.as_int(extent) == Some(1) {
                    all.fixed.insert(own);
                } else if !is_derived(k, extent) {
                    let written = all.extent(extent);
                    all.join(Some(own), written);
                }
            }
        }
        for s in k.statements() {
            match k.stmts[s] {
                StmtData::Let { value, .. } => drop(all.named(value)),
                StmtData::Var { value: dst, init: Some(src) } | StmtData::Assign { dst, src } => {
                    let (to, from) = (all.tile(dst), all.dims(src));
                    all.join_all(to, from);
                }
                StmtData::Copy { src, dst, .. } => {
                    let (from, to) = (all.dims(src), all.dims(dst));
                    all.join_all(from, to);
                }
                StmtData::If { cond, .. } => drop(all.dims(cond)),
                _ => {}
            }
        }
        // The place of a tile in its tensor, also where no window begins there.
        for e in k.exprs.keys().collect::<Vec<Expr>>() {
            let ExprData::Op { op: Op::Mul, args } = &k.exprs[e] else { continue };
            for (number, size) in [(args[0], args[1]), (args[1], args[0])] {
                if let Some(by) = all.divisor(number) {
                    let (by, size) = (all.extent(by), all.extent(size));
                    all.join(by, size);
                }
            }
        }
        all
    }

    /// The classes of the dimensions of tiles whose extents are numbers of the source, and prescribed by nothing else.
    pub(super) fn classes(&self) -> Vec<Class> {
        let mut all: BTreeMap<Node, Class> = BTreeMap::new();
        for (&key, &node) in &self.keys {
            let empty = || Class { keys: Vec::new(), places: Vec::new(), covered: Vec::new() };
            let class = all.entry(self.root(node)).or_insert_with(empty);
            class.keys.push(key);
            class.places.extend(self.spans.get(&node));
        }
        for &(node, covered) in &self.covered {
            if let Some(class) = all.get_mut(&self.root(node)) {
                class.covered.push(covered);
            }
        }
        let fixed: BTreeSet<Node> = self.fixed.iter().map(|&node| self.root(node)).collect();
        let is_open = |(root, class): &(Node, Class)| {
            !fixed.contains(root) && class.keys.iter().any(|key| matches!(key, Key::Tile(..)))
        };
        all.into_iter().filter(is_open).map(|(_, class)| class).collect()
    }

    fn node(&mut self, key: Key) -> Node {
        *self.keys.entry(key).or_insert_with(|| {
            self.parents.push(self.parents.len());
            self.parents.len() - 1
        })
    }

    fn root(&self, mut node: Node) -> Node {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }

    fn join(&mut self, a: Option<Node>, b: Option<Node>) {
        let (Some(a), Some(b)) = (a, b) else { return };
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// Joins dimension by dimension; returns those of the larger rank. Single elements are repeated.
    fn join_all(&mut self, a: Vec<Option<Node>>, b: Vec<Option<Node>>) -> Vec<Option<Node>> {
        if a.len() != b.len() {
            return if a.len() > b.len() { a } else { b };
        }
        a.into_iter()
            .zip(b)
            .map(|(a, b)| {
                self.join(a, b);
                a.or(b)
            })
            .collect()
    }

    fn fix(&mut self, nodes: impl IntoIterator<Item = Option<Node>>) {
        self.fixed.extend(nodes.into_iter().flatten());
    }

    /// A written extent; `None`: it is 1.
    fn extent(&mut self, e: Expr) -> Option<Node> {
        let k = self.k;
        if k.as_int(e) == Some(1) {
            return None;
        }
        match k.literal(e) {
            Some(span) => Some(self.number(span)),
            None => {
                let node = self.parents.len();
                self.parents.push(node);
                self.fixed.insert(node);
                Some(node)
            }
        }
    }

    fn number(&mut self, span: Span) -> Node {
        let node = self.node(Key::Number(span.start));
        self.spans.insert(node, span);
        node
    }

    fn tile(&mut self, v: Value) -> Vec<Option<Node>> {
        let k = self.k;
        let Some(tile) = k.tile_ty(v) else { return Vec::new() };
        let of = |(d, &extent): (usize, &Expr)| (k.as_int(extent) != Some(1)).then(|| self.node(Key::Tile(v, d)));
        tile.shape.iter().enumerate().map(of).collect()
    }

    fn named(&mut self, v: Value) -> Vec<Option<Node>> {
        if let Some(known) = self.names.get(&v) {
            return known.clone();
        }
        let own = let_init(self.k, v).map_or_else(Vec::new, |init| self.dims(init));
        self.names.insert(v, own.clone());
        own
    }

    /// The extents of an expression; `None` among them: 1.
    fn dims(&mut self, e: Expr) -> Vec<Option<Node>> {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Let) => self.named(*v),
            ExprData::Ref(v) if k.tile_ty(*v).is_some() => self.tile(*v),
            ExprData::Ref(_) | ExprData::View(_) => {
                resolve_view(k, e).map_or_else(Vec::new, |view| self.window(e, &view))
            }
            ExprData::Transpose(arg) => self.dims(*arg).into_iter().rev().collect(),
            ExprData::Reduce { axis, arg, parts, .. } => {
                let mut own = self.dims(*arg);
                let Some(along) = own.get_mut(*axis as usize) else { return own };
                let along = along.take();
                self.fix(along.filter(|_| *parts != 0).map(Some));
                own
            }
            ExprData::Scan { arg, .. } => self.dims(*arg),
            ExprData::Iota { axis, like } => {
                let own = self.dims(*like);
                self.fix(own.get(*axis as usize).copied());
                own
            }
            ExprData::Combine(combine) => {
                let mut own = Vec::new();
                for &arg in &combine.args {
                    let other = self.dims(arg);
                    own = self.join_all(own, other);
                }
                self.fix(own.get(combine.axis as usize).copied());
                own
            }
            ExprData::Part { of, .. } => self.dims(*of),
            ExprData::Reshape { arg, shape, .. } => {
                let from = self.dims(*arg);
                let to: Vec<Option<Node>> = shape.iter().map(|&e| self.extent(e)).collect();
                self.fix(from.into_iter().chain(to.clone()));
                to
            }
            ExprData::Permute { arg, order } => {
                let from = self.dims(*arg);
                order.iter().map(|&d| from.get(d as usize).copied().flatten()).collect()
            }
            ExprData::Concat { args, axis } => {
                let mut own = Vec::new();
                for &arg in args {
                    let mut other = self.dims(arg);
                    let along = other.get_mut(*axis as usize).and_then(Option::take);
                    self.fix([along]);
                    own = self.join_all(own, other);
                }
                own
            }
            ExprData::Mma(mma) => self.product(mma),
            _ => k.children(e).into_iter().fold(Vec::new(), |all, child| {
                let other = self.dims(child);
                self.join_all(all, other)
            }),
        }
    }

    fn product(&mut self, mma: &Mma) -> Vec<Option<Node>> {
        let [a, b, c] = [mma.a, mma.b, mma.c].map(|e| self.dims(e));
        let at = |dims: &[Option<Node>], d: Option<usize>| d.and_then(|d| dims.get(d).copied().flatten());
        let (rows, columns) = (c.len().checked_sub(2), c.len().checked_sub(1));
        self.join(at(&a, Some(0)), at(&c, rows));
        self.join(at(&b, Some(1)), at(&c, columns));
        self.join(at(&a, Some(1)), at(&b, Some(0)));
        c
    }

    fn window(&mut self, e: Expr, view: &ResolvedView) -> Vec<Option<Node>> {
        let k = self.k;
        let of_tile = k.tile_ty(view.base).is_some();
        let dims: Vec<Option<Node>> = view
            .base_dims()
            .into_iter()
            .enumerate()
            .map(|(w, d)| match &view.dims[d] {
                ViewDim::From { starts, end: None } if of_tile && starts.is_empty() => {
                    self.tile(view.base).get(d).copied().flatten()
                }
                ViewDim::Gather(numbers) => {
                    let own = self.node(Key::Window(e, w));
                    let numbers = self.dims(*numbers);
                    numbers.into_iter().for_each(|n| self.join(Some(own), n));
                    Some(own)
                }
                dim => {
                    let own = self.node(Key::Window(e, w));
                    match of_tile {
                        true => self.part_of_tile((view.base, d), dim),
                        false => {
                            // What does not move by its extent has a prescribed one.
                            let mut moves = false;
                            for &start in dim.starts() {
                                moves |= self.tie(start, own);
                            }
                            self.fix((!moves).then_some(Some(own)));
                        }
                    }
                    Some(own)
                }
            })
            .collect();
        for (w, count) in counts(k, e) {
            let count = count.map(|span| self.number(span));
            self.fix(count.is_none().then(|| dims.get(w).copied().flatten()));
            self.join(count, dims.get(w).copied().flatten());
        }
        dims
    }

    /// A loop over parts of a tile covers all of it; other parts are prescribed.
    fn part_of_tile(&mut self, (base, d): (Value, usize), dim: &ViewDim) {
        let end = match dim.starts() {
            [start] => loop_variable(self.k, *start).and_then(|v| self.loops.get(&v)?.1),
            _ => None,
        };
        let own = self.tile(base).get(d).copied().flatten();
        match end.map(|end| self.extent(end)) {
            Some(end) => self.join(own, end),
            None => self.fix([own]),
        }
    }

    /// Joins an extent with the distance of windows that begin at an index; returns whether there is one.
    fn tie(&mut self, start: Expr, own: Node) -> bool {
        let k = self.k;
        if let Some(v) = loop_variable(k, start) {
            let Some(&(step, end)) = self.loops.get(&v).filter(|(step, _)| k.as_int(*step) != Some(1)) else {
                return false;
            };
            self.covered.extend(end.map(|end| (own, end)));
            let step = self.extent(step);
            self.join(step, Some(own));
            return true;
        }
        let ExprData::Op { op, args } = &k.exprs[meaning(k, start)] else { return false };
        let &[a, b] = args.as_slice() else { return false };
        match op {
            Op::Add => {
                let first = self.tie(a, own);
                self.tie(b, own) || first
            }
            Op::Sub => self.tie(a, own),
            Op::Mul => [(a, b), (b, a)].into_iter().any(|(number, size)| {
                let Some(by) = self.divisor(number) else { return false };
                if let ExprData::Op { args, .. } = &k.exprs[meaning(k, self.count(number).unwrap_or(number))] {
                    self.covered.push((own, args[0]));
                }
                let (by, size) = (self.extent(by), self.extent(size));
                self.join(by, Some(own));
                self.join(size, Some(own));
                true
            }),
            _ => false,
        }
    }

    /// How far a variable of a grid or loop counts.
    fn count(&self, e: Expr) -> Option<Expr> {
        let k = self.k;
        let ExprData::Ref(v) = k.exprs[meaning(k, e)] else { return None };
        let of_grid = k.grid.iter().find(|axis| axis.index == v).map(|axis| axis.extent);
        let of_loop = || self.loops.get(&v).filter(|(step, _)| k.as_int(*step) == Some(1)).and_then(|(_, end)| *end);
        of_grid.or_else(of_loop)
    }

    /// The extent of the tiles that a variable counts, of which as many as cover something exist.
    fn divisor(&self, number: Expr) -> Option<Expr> {
        let k = self.k;
        match &k.exprs[meaning(k, self.count(number)?)] {
            ExprData::Op { op: Op::CeilDiv | Op::Div, args } => Some(args[1]),
            _ => None,
        }
    }
}

/// Whether an extent is a number that the parser has of something else.
pub(super) fn is_derived(k: &Kernel, extent: Expr) -> bool {
    matches!(k.exprs[extent], ExprData::Int(_)) && k.literal(extent).is_none()
}

/// The dimensions of a window with a written number of elements (`i..+n`), with its place; `None`: it is no number.
fn counts(k: &Kernel, e: Expr) -> Vec<(usize, Option<Span>)> {
    let ExprData::View(View { ranges, .. }) = &k.exprs[e] else { return Vec::new() };
    let own = k.expr_spans[e];
    let inside = |span: &Span| own.start <= span.start && span.end <= own.end;
    let written: Vec<Span> = k
        .fix_locations
        .iter()
        .filter(|(spot, span)| *spot == FixLocation::Count && inside(span))
        .map(|(_, s)| *s)
        .collect();
    let kept = ranges.iter().filter(|range| !matches!(range, Range::At(_)));
    let begin = |range: &Range| match *range {
        Range::From { start: e, .. } | Range::At(e) | Range::Gather(e) => k.expr_spans[e].start,
    };
    let begins: Vec<u32> = ranges.iter().map(begin).collect();
    kept.enumerate()
        .filter_map(|(w, range)| {
            let from = begin(range);
            let next = begins.iter().copied().filter(|&at| at > from).min().unwrap_or(own.end);
            let count = written.iter().find(|span| from <= span.start && span.start < next)?;
            Some((w, k.fix_locations.contains(&(FixLocation::Number, *count)).then_some(*count)))
        })
        .collect()
}
