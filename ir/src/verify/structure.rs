//! Trees, declarations and scopes: rules 1 to 3.
//!
//! Everything here is iterative or bounded by [`MAX_DEPTH`], because it runs on unverified kernels.

use crate::codes;
use crate::combine::{Combine, How, local};
use crate::diag::{Diagnostic, Reported, Sink, Span};
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ConstKind, ConstParam, ConstValue, ExprData, Kernel, StmtData, ValueDef, View};
use crate::types::TileTy;
use cranelift_entity::SecondaryMap;
use std::collections::BTreeMap;

/// Maximum nesting depth of expressions, and of blocks.
pub(super) const MAX_DEPTH: usize = 256;

/// Checks rules 1 to 3.
pub(super) fn check(k: &Kernel, sink: &mut Sink) -> Result<(), Reported> {
    let mut trees = Trees { k, sink, exprs: SecondaryMap::new(), stmts: SecondaryMap::new(), error: None };
    trees.header();
    trees.body();
    if let Some(error) = trees.error {
        return Err(error);
    }
    let mut scopes =
        Scopes { k, sink, declared: SecondaryMap::new(), names: BTreeMap::new(), open: Vec::new(), error: None };
    scopes.header();
    scopes.block(k.body);
    scopes.error.map_or(Ok(()), Err)
}

/// Calls `f` for each value that an expression mentions, with the node that mentions it, in text order. The depth must
/// be bounded.
pub(super) fn mentions(k: &Kernel, e: Expr, f: &mut dyn FnMut(Expr, Value)) {
    if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) | ExprData::Lookup { table: v, .. } = &k.exprs[e] {
        f(e, *v);
    }
    for child in k.children(e) {
        mentions(k, child, f);
    }
}

/// The kind that a value must have: in words, and as a test.
type Kind = (&'static str, fn(&ValueDef) -> bool);

/// The value that a statement declares, and the kind that it must have.
fn declares(stmt: &StmtData) -> Option<(Value, Kind)> {
    match stmt {
        StmtData::Let { value, .. } => Some((*value, ("a `let`", |d| matches!(d, ValueDef::Let)))),
        StmtData::Var { value, .. } => Some((*value, ("a register variable", |d| matches!(d, ValueDef::Var(_))))),
        StmtData::Alloc { value, .. } => {
            let is = |d: &ValueDef| d.space().is_of_block();
            Some((*value, ("a buffer or channel", is)))
        }
        StmtData::For { var, .. } => Some((*var, ("a loop variable", |d| matches!(d, ValueDef::Loop)))),
        StmtData::Assign { .. }
        | StmtData::Copy { .. }
        | StmtData::If { .. }
        | StmtData::Channel { .. }
        | StmtData::Barrier
        | StmtData::Fence
        | StmtData::Await { .. }
        | StmtData::Signal { .. }
        | StmtData::Ordered { .. }
        | StmtData::Role { .. } => None,
    }
}

/// The values that a statement uses outside expressions.
fn uses(stmt: &StmtData) -> Vec<Value> {
    match stmt {
        StmtData::Assign { dst, .. } => vec![*dst],
        StmtData::Alloc { over, .. } => over.clone(),
        StmtData::Channel { channels, .. } => channels.clone(),
        StmtData::Await { value, after, .. } => std::iter::once(*value).chain(after.iter().copied()).collect(),
        StmtData::Signal { signals, .. } => vec![*signals],
        StmtData::For { next: Some(next), .. } => vec![next.channel, next.counter],
        _ => Vec::new(),
    }
}

/// Rule 1.
struct Trees<'k, 's> {
    k: &'k Kernel,
    sink: &'s mut Sink,
    exprs: SecondaryMap<Expr, bool>,
    stmts: SecondaryMap<Stmt, bool>,
    error: Option<Reported>,
}

impl Trees<'_, '_> {
    fn malformed(&mut self, span: Span, message: String) {
        self.error = Some(
            self.sink.report(
                Diagnostic::error(codes::MALFORMED, span, message)
                    .with_note("this is a bug of the pass or tool that made the kernel"),
            ),
        );
    }

    fn too_deep(&mut self, span: Span, what: &str) {
        let message = format!("{what} nest more than {MAX_DEPTH} deep");
        self.error = Some(self.sink.report(Diagnostic::error(codes::TOO_DEEP, span, message)));
    }

    fn header(&mut self) {
        let k = self.k;
        for data in k.values.values() {
            match &data.def {
                ValueDef::Tensor(t) => self.roots(&t.exprs()),
                ValueDef::Scalar { default: Some(e), .. } => self.roots(&[*e]),
                ValueDef::Var(t) | ValueDef::Smem(t) => self.tile(t),
                ValueDef::Channel { tile, slots } => {
                    self.tile(tile);
                    self.tile_extents(&[*slots]);
                }
                _ => {}
            }
        }
        self.roots(&k.requires);
        for axis in &k.grid {
            self.roots(&[axis.extent]);
        }
        for (_, e) in schedule_items(k) {
            self.roots(&[e]);
        }
    }

    fn tile(&mut self, t: &TileTy) {
        self.tile_extents(&t.shape);
    }

    /// Types of tiles that passes derive from each other may share literal extents.
    fn tile_extents(&mut self, extents: &[Expr]) {
        for &e in extents {
            if self.k.exprs.is_valid(e) && matches!(self.k.exprs[e], ExprData::Int(_)) {
                continue;
            }
            self.roots(&[e]);
        }
    }

    fn roots(&mut self, roots: &[Expr]) {
        let k = self.k;
        let mut stack: Vec<(Expr, usize)> = roots.iter().rev().map(|&e| (e, 1)).collect();
        while let Some((e, depth)) = stack.pop() {
            if !k.exprs.is_valid(e) {
                self.malformed(Span::default(), format!("{e} does not exist"));
                continue;
            }
            let span = k.expr_spans[e];
            if std::mem::replace(&mut self.exprs[e], true) {
                self.malformed(span, format!("expression {e} has two parents"));
                continue;
            }
            if depth > MAX_DEPTH {
                self.too_deep(span, "expressions");
                continue;
            }
            if depth > 1 && matches!(k.exprs[e], ExprData::Combine(_)) {
                self.malformed(span, "tuples are combined inside of an expression".to_owned());
                continue;
            }
            if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) | ExprData::Lookup { table: v, .. } =
                &k.exprs[e]
                && !k.values.is_valid(*v)
            {
                self.malformed(span, format!("{v} does not exist"));
                continue;
            }
            stack.extend(k.children(e).into_iter().rev().map(|c| (c, depth + 1)));
        }
    }

    fn body(&mut self) {
        let k = self.k;
        let mut blocks: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut stack = vec![(k.body, 1)];
        while let Some((b, depth)) = stack.pop() {
            if !k.blocks.is_valid(b) {
                self.malformed(Span::default(), format!("{b} does not exist"));
                continue;
            }
            if std::mem::replace(&mut blocks[b], true) {
                self.malformed(Span::default(), format!("{b} belongs to two statements"));
                continue;
            }
            for &s in &k.blocks[b] {
                if !k.stmts.is_valid(s) {
                    self.malformed(Span::default(), format!("{s} does not exist"));
                    continue;
                }
                let span = k.stmt_spans[s];
                if std::mem::replace(&mut self.stmts[s], true) {
                    self.malformed(span, format!("{s} is in two blocks"));
                    continue;
                }
                let declared = declares(&k.stmts[s]).map(|(v, _)| v);
                if let Some(v) = uses(&k.stmts[s]).into_iter().chain(declared).find(|&v| !k.values.is_valid(v)) {
                    self.malformed(span, format!("{v} does not exist"));
                    continue;
                }
                if let Some(why) = misplaced(k, s) {
                    self.malformed(span, why);
                    continue;
                }
                self.roots(&k.stmts[s].exprs());
                let inner = k.sub_blocks(s);
                if depth >= MAX_DEPTH && !inner.is_empty() {
                    self.too_deep(span, "blocks");
                    continue;
                }
                stack.extend(inner.into_iter().map(|b| (b, depth + 1)));
            }
        }
    }
}

/// Errors in combined tuples of a statement: a `let` names them, with one name for each component.
fn misplaced(k: &Kernel, s: Stmt) -> Option<String> {
    let valid = |v: &Value| k.values.is_valid(*v);
    for e in k.stmts[s].exprs().into_iter().filter(|&e| k.exprs.is_valid(e)) {
        let ExprData::Combine(c) = &k.exprs[e] else { continue };
        if !matches!(k.stmts[s], StmtData::Let { init, .. } if init == e) {
            return Some("tuples are combined, and no `let` names them".to_owned());
        }
        let locals = c.locals.iter().all(|v| valid(v) && matches!(k.values[*v].def, ValueDef::Local(_)));
        let elements =
            |list: &[Value]| list.iter().all(|v| valid(v) && matches!(k.values[*v].def, ValueDef::Element { .. }));
        let results = if matches!(c.operation, How::Sort { .. }) { 1 } else { c.args.len() };
        let totals = if matches!(c.operation, How::Scan { parts } if parts != 0) { c.args.len() } else { 0 };
        let counts = [c.first.len(), c.second.len()] == [c.args.len(); 2] && c.results.len() == results;
        let front = c.front.is_empty() || matches!(c.operation, How::Scan { .. }) && c.front.len() == c.args.len();
        let counts = counts && front && c.totals.len() == totals;
        if c.args.is_empty() || !counts || !locals || !elements(&c.first) || !elements(&c.second) {
            return Some("tuples that are combined do not have a name for each component".to_owned());
        }
    }
    None
}

/// Whether a value is in scope.
#[derive(Copy, Clone, PartialEq, Default)]
enum Scope {
    #[default]
    NotYet,
    Open,
    Closed,
}

/// Rules 2 and 3.
struct Scopes<'k, 's> {
    k: &'k Kernel,
    sink: &'s mut Sink,
    declared: SecondaryMap<Value, Scope>,
    names: BTreeMap<&'k str, Value>,
    /// Values in scope, in order of declaration.
    open: Vec<Value>,
    error: Option<Reported>,
}

impl<'k> Scopes<'k, '_> {
    fn header(&mut self) {
        let k = self.k;
        for &v in &k.const_params {
            if let ValueDef::ConstParam(ConstParam { kind, default: Some(ConstValue::Auto { .. }) }) = &k.values[v].def
                && *kind != ConstKind::Int
            {
                let message = format!("`{}` is `auto` and no integer", k.values[v].name);
                self.error = Some(self.sink.report(Diagnostic::error(codes::MALFORMED, k.values[v].span, message)));
            }
            if let ValueDef::ConstParam(ConstParam { kind, default: Some(ConstValue::Same(earlier)) }) =
                &k.values[v].def
            {
                let known = k.values.is_valid(*earlier) && self.declared[*earlier] == Scope::Open;
                let alike = known
                    && matches!(&k.values[*earlier].def, ValueDef::ConstParam(p)
                        if std::mem::discriminant(&p.kind) == std::mem::discriminant(kind));
                if !alike {
                    let message = format!("the default of `{}` is no earlier parameter of its kind", k.values[v].name);
                    self.error = Some(self.sink.report(Diagnostic::error(codes::MALFORMED, k.values[v].span, message)));
                }
            }
            self.declare(v, "a compile-time parameter", |d| matches!(d, ValueDef::ConstParam(_)));
        }
        for &v in &k.params {
            self.declare(v, "a parameter", |d| {
                matches!(d, ValueDef::Tensor(_) | ValueDef::Scalar { .. } | ValueDef::Table(_))
            });
        }
        for &v in &k.sizes {
            self.declare(v, "a size", |d| matches!(d, ValueDef::Size));
        }
        for &v in &k.strides {
            self.declare(v, "a stride", |d| matches!(d, ValueDef::Stride));
        }
        for v in k.values.keys() {
            let mut exprs: Vec<Expr> = Vec::new();
            match &k.values[v].def {
                ValueDef::Tensor(t) => exprs.extend(t.exprs()),
                ValueDef::Scalar { default, .. } => exprs.extend(*default),
                _ => {}
            }
            self.uses_in(&exprs);
        }
        self.uses_in(&k.requires);
        let extents: Vec<Expr> = k.grid.iter().map(|a| a.extent).collect();
        self.uses_in(&extents);
        let items: Vec<Expr> = schedule_items(k).into_iter().map(|(_, e)| e).collect();
        self.uses_in(&items);
        // The host evaluates everything above.
        for axis in &k.grid {
            self.declare(axis.index, "a grid index", |d| matches!(d, ValueDef::Grid));
        }
    }

    fn declare(&mut self, v: Value, what: &str, is: fn(&ValueDef) -> bool) {
        let k = self.k;
        if !k.values.is_valid(v) {
            let d = Diagnostic::error(codes::MALFORMED, Span::default(), format!("{v} does not exist"));
            self.error = Some(self.sink.report(d));
            return;
        }
        let data = &k.values[v];
        let name = data.name.as_str();
        if !is(&data.def) {
            let message = format!("`{name}` is declared as {what}, and is something else");
            self.error = Some(self.sink.report(Diagnostic::error(codes::MALFORMED, data.span, message)));
        }
        if self.declared[v] != Scope::NotYet {
            let message = format!("`{name}` is declared by two statements");
            self.error = Some(self.sink.report(Diagnostic::error(codes::MALFORMED, data.span, message)));
            return;
        }
        if let Some(&other) = self.names.get(name) {
            let d = Diagnostic::error(codes::DUPLICATE, data.span, format!("`{name}` is declared twice"))
                .with_place(k.values[other].span, "it is declared here first");
            self.error = Some(self.sink.report(d));
        } else {
            self.names.insert(name, v);
        }
        self.declared[v] = Scope::Open;
        self.open.push(v);
    }

    fn used(&mut self, v: Value, span: Span) {
        let data = &self.k.values[v];
        let state = match self.declared[v] {
            Scope::Open => return,
            Scope::NotYet => "before its declaration",
            Scope::Closed => "outside the block of its declaration",
        };
        let message = format!("`{}` is used {state}", data.name);
        let d = Diagnostic::error(codes::OUT_OF_SCOPE, span, message)
            .with_place(data.span, "declared here")
            .with_note("a name exists from its declaration to the end of the block it is declared in");
        self.error = Some(self.sink.report(d));
    }

    fn uses_in(&mut self, exprs: &[Expr]) {
        for &e in exprs {
            let k = self.k;
            mentions(k, e, &mut |at, v| self.used(v, k.expr_spans[at]));
        }
    }

    fn block(&mut self, b: Block) {
        let k = self.k;
        let outer = self.open.len();
        for &s in &k.blocks[b] {
            match &k.stmts[s] {
                StmtData::Let { init, .. } if let ExprData::Combine(combine) = &k.exprs[*init] => self.combine(combine),
                data => self.uses_in(&data.exprs()),
            }
            for v in uses(&k.stmts[s]) {
                self.used(v, k.stmt_spans[s]);
            }
            // A loop variable exists in its body only.
            let before = self.open.len();
            if let Some((v, (what, is))) = declares(&k.stmts[s]) {
                if let Some(tile) = k.tile_ty(v) {
                    self.uses_in(&tile.shape.clone());
                }
                if let ValueDef::Channel { slots, .. } = k.values[v].def {
                    self.uses_in(&[slots]);
                }
                self.declare(v, what, is);
            }
            for inner in k.sub_blocks(s) {
                self.block(inner);
            }
            if matches!(k.stmts[s], StmtData::For { .. }) {
                self.close(before);
            }
        }
        self.close(outer);
    }

    /// Names of tuple components, and of values computed from them, are only in scope where the tuples are combined.
    fn combine(&mut self, combine: &Combine) {
        let k = self.k;
        self.uses_in(&combine.args);
        let outer = self.open.len();
        for &v in combine.first.iter().chain(&combine.second) {
            self.declare(v, "a component of tuples", |d| matches!(d, ValueDef::Element { .. }));
        }
        for &v in &combine.locals {
            self.uses_in(&[local(k, v)]);
            self.declare(v, "a name of what is computed of tuples", |d| matches!(d, ValueDef::Local(_)));
        }
        self.uses_in(&combine.results);
        self.close(outer);
    }

    fn close(&mut self, from: usize) {
        for v in self.open.split_off(from) {
            self.declared[v] = Scope::Closed;
            let name = self.k.values[v].name.as_str();
            if self.names.get(name) == Some(&v) {
                self.names.remove(name);
            }
        }
    }
}

/// The expressions of the schedule and their names, in the order of the text form.
pub(super) fn schedule_items(k: &Kernel) -> Vec<(&'static str, Expr)> {
    let s = &k.schedule;
    let mut items = Vec::new();
    items.extend(s.threads.map(|e| ("`threads`", e)));
    if let Some((m, n)) = s.warp_tile {
        items.extend([("`warp_tile`", m), ("`warp_tile`", n)]);
    }
    items.extend(s.k_warps.map(|e| ("`k_warps`", e)));
    items.extend(s.ctas.map(|e| ("`ctas`", e)));
    items.extend(s.stages.map(|e| ("`stages`", e)));
    items.extend(s.raster.map(|e| ("`raster`", e)));
    items.extend(s.promote.map(|e| ("`promote`", e)));
    items.extend(s.pending.map(|e| ("`pending`", e)));
    items.extend(s.ping_pong.map(|e| ("`ping_pong`", e)));
    items.extend(s.min_ctas.map(|e| ("`min_ctas`", e)));
    items.extend(s.align_rows.map(|e| ("`align_rows`", e)));
    items.extend(s.stage_stores.map(|e| ("`stage_stores`", e)));
    items.extend(s.stream_k.map(|e| ("`stream_k`", e)));
    items.extend(s.split_k.map(|e| ("`split_k`", e)));
    items.extend(s.queue.map(|e| ("`queue`", e)));
    items.extend(s.overlap.map(|e| ("`overlap`", e)));
    items.extend(s.cluster.iter().map(|&e| ("`cluster`", e)));
    items
}
