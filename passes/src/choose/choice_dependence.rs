//! Checks that no result depends on a chosen value (E0435).
//!
//! An `auto` parameter may be used where its value cannot change the result:
//!
//! * as an extent of a tile;
//! * as the step of a loop whose windows end with it. Windows that begin at the loop's variable and have the parameter as extent
//!   must move by it;
//! * in `ceildiv(N, BN)` blocks or iterations whose windows begin at `i * BN` and end at `N`, implicitly or as written;
//! * in positions added to `iota`.
//!
//! In a loop whose step divides `G`, the number `k / G` of the group that contains a tile is that of each of its
//! elements, for any step. All other uses are refused. So are loop-carried values (`loop_carried`), unless they are a
//! sum or an extreme.

mod loop_carried;
mod skipped_tiles;
mod tile_groups;
mod uniform;

use super::parameters::Auto;
use crate::Cx;
use crate::analysis::inequalities::Inequalities;
use crate::analysis::uses::all_stmts;
use crate::caller::Caller;
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;
use tile_groups::{divides, group_of, group_of_tile};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ConstParam, ConstValue, ExprData, Kernel, Range, StmtData, ValueDef, View};
use tilec_ir::loop_ends::{LoopEnds, covers, implied, loop_variable, meaning};
use tilec_ir::modified_values::changes;
use tilec_ir::ops::{Form, Op, ReduceOp};
use tilec_ir::print::print_expr;
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{Extent, Type, resolve_view, same_expr, same_product, type_of};

/// How a value depends on a choice.
#[derive(Copy, Clone)]
struct Chosen {
    /// The parameter.
    parameter: Value,
    /// The author promises that conditions and bounds of loops do not change results.
    promised: bool,
    what: What,
}

#[derive(Copy, Clone)]
enum What {
    /// It is the parameter, or computed from it.
    Any,
    /// The variable of a loop over tiles of a range.
    Position,
    /// The number of a tile; tiles of `size` cover the extent.
    Tile { extent: Expr, size: Expr },
}

struct Depends<'k> {
    k: &'k Kernel,
    loops: LoopEnds,
    /// The steps of loop variables.
    steps: SecondaryMap<Value, Option<Expr>>,
    chosen: SecondaryMap<Value, Option<Chosen>>,
    /// The window that the statement copies, and the extents of its tile.
    copied: Option<(Expr, Vec<Extent>)>,
    /// Loop variables that do not move by the parameter, with the parameter.
    refused: BTreeSet<(Value, Value)>,
    wrong: Vec<Diagnostic>,
    caller: Caller,
}

/// Whether a tile of indices is loaded by a copy whose fill value is no index: `copy P[i * BM..] -> rows fill -1`.
fn names_nothing_behind_the_end(k: &Kernel, rows: Expr) -> bool {
    let ExprData::Ref(rows) = k.exprs[rows] else { return false };
    let writers = k.statements().into_iter().filter(|&s| k.sub_blocks(s).is_empty() && changes(k, s, rows));
    let writers: Vec<Stmt> = writers.filter(|&s| !matches!(k.stmts[s], StmtData::Var { init: None, .. })).collect();
    let [copy] = writers[..] else { return false };
    let (StmtData::Copy { src, attrs, .. }, ElemRef::Known(elem)) =
        (&k.stmts[copy], k.tile_ty(rows).expect("a register tile").elem)
    else {
        return false;
    };
    let negative = attrs.fill.and_then(|fill| fill.value(elem)).is_some_and(|x| x < 0.0);
    negative && resolve_view(k, *src).is_some_and(|view| k.tensor_ty(view.base).is_some())
}

/// A range of elements that tiles cover.
struct Covered {
    /// It ends here.
    end: Expr,
    /// The offset from the tile at which a window begins.
    offset: Option<Expr>,
}

/// An index as an expression plus a literal; `None`: it is a literal.
fn parts(k: &Kernel, e: Expr) -> (Option<Expr>, i64) {
    let e = meaning(k, e);
    if let Some(x) = k.as_int(e) {
        return (None, x);
    }
    match &k.exprs[e] {
        ExprData::Op { op: op @ (Op::Add | Op::Sub), args } => match k.as_int(args[1]) {
            Some(x) => (Some(meaning(k, args[0])), if *op == Op::Add { x } else { x.saturating_neg() }),
            None => (Some(e), 0),
        },
        _ => (Some(e), 0),
    }
}

/// Reports results that depend on the value of an `auto` parameter.
pub(super) fn check(k: &Kernel, cx: &mut Cx<'_>, autos: &[Auto]) -> Result<(), Reported> {
    let mut depends = Depends {
        k,
        loops: LoopEnds::of(k),
        steps: SecondaryMap::new(),
        chosen: SecondaryMap::new(),
        copied: None,
        refused: BTreeSet::new(),
        wrong: Vec::new(),
        caller: cx.options.caller,
    };
    for &p in &k.const_params {
        depends.chosen[p] = match k.values[p].def {
            ValueDef::ConstParam(ConstParam { default: Some(ConstValue::Same(earlier)), .. }) => {
                depends.chosen[earlier]
            }
            _ => autos.iter().find(|a| a.value == p).map(|a| Chosen {
                parameter: p,
                promised: a.promised,
                what: What::Any,
            }),
        };
    }
    depends.header();
    for s in all_stmts(k, k.body) {
        depends.stmt(s);
    }
    if depends.wrong.is_empty() {
        depends.wrong = depends.carried();
    }
    let mut result = Ok(());
    for d in depends.wrong {
        result = Err(cx.report(d));
    }
    result
}

impl Depends<'_> {
    /// Checks the loop-carried values of loops over tiles.
    fn carried(&self) -> Vec<Diagnostic> {
        let k = self.k;
        let loops: Vec<_> = all_stmts(k, k.body).into_iter().filter_map(|s| self.over_tiles(s)).collect();
        let known = Inequalities::new(k);
        let channels = loop_carried::Channels::of(&known, &loops);
        loops.iter().flat_map(|of| loop_carried::check(&known, of, &channels, self.caller)).collect()
    }

    fn over_tiles(&self, s: Stmt) -> Option<loop_carried::Loop> {
        let k = self.k;
        let StmtData::For { var, start, end, step, cond: None, .. } = k.stmts[s] else { return None };
        let chosen = self.chosen[var].filter(|chosen| !chosen.promised)?;
        let (size, end, numbers) = match chosen.what {
            What::Tile { extent, size } => (size, extent, true),
            What::Position | What::Any => (step, end, false),
        };
        let padded = k.as_int(start) != Some(0) || !self.divides(size, end);
        Some(loop_carried::Loop { stmt: s, parameter: chosen.parameter, size, end, numbers, padded })
    }

    /// Checks shapes of tensors, and the grid.
    fn header(&mut self) {
        let k = self.k;
        for &v in &k.params {
            let Some(tensor) = k.tensor_ty(v).filter(|t| t.scratch.is_none()) else { continue };
            if let Some((e, chosen)) = tensor.shape.iter().find_map(|&e| Some((e, self.of(e)?))) {
                self.refuse(e, chosen, format!("the shape of `{}`", k.values[v].name));
            }
        }
        for axis in &k.grid {
            self.chosen[axis.index] = self.of(axis.extent).map(|chosen| self.numbered(chosen, axis.extent));
        }
    }

    /// The dependence of a counter up to `end`: it numbers tiles if `end` is the number that covers an extent.
    fn numbered(&self, chosen: Chosen, end: Expr) -> Chosen {
        let k = self.k;
        let what = match &k.exprs[meaning(k, end)] {
            ExprData::Op { op: Op::CeilDiv, args } if self.of(args[0]).is_none() => {
                What::Tile { extent: args[0], size: args[1] }
            }
            ExprData::Op { op: Op::Div, args } if self.of(args[0]).is_none() && self.divides(args[1], args[0]) => {
                What::Tile { extent: args[0], size: args[1] }
            }
            _ => What::Any,
        };
        Chosen { what, ..chosen }
    }

    /// Whether preconditions say `extent % size == 0`.
    fn divides(&self, size: Expr, extent: Expr) -> bool {
        divides(self.k, size, extent)
    }

    /// Whether an index is the number of a group, and each tile is within one group: `k / G` where `k` counts from 0 by
    /// steps that divide `G`, or `j * BN / G` for a tile of the grid.
    fn is_group(&self, e: Expr) -> bool {
        self.group(e).is_some_and(|(group, size)| self.of(group).is_none() && self.divides(size, group))
    }

    /// The size of the group that an index numbers, and the size of a tile.
    fn group(&self, e: Expr) -> Option<(Expr, Expr)> {
        let k = self.k;
        if let Some((v, group)) = group_of(k, e) {
            let position = matches!(self.chosen[v], Some(Chosen { what: What::Position, .. }));
            return Some((group, self.steps[v].filter(|_| position)?));
        }
        let (v, size, group) = group_of_tile(k, e)?;
        match self.chosen[v]?.what {
            What::Tile { size: own, .. } if same_expr(k, own, size) => Some((group, size)),
            _ => None,
        }
    }

    /// The choice on which an expression depends, if any; preferably one without a promise.
    fn of(&self, e: Expr) -> Option<Chosen> {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Ref(v) => self.chosen[*v],
            _ => {
                let found = k.children(e).into_iter().filter_map(|child| self.of(child));
                found.reduce(|a, b| if a.promised { b } else { a })
            }
        }
    }

    /// Like [`Self::of`], for conditions and loop bounds, where a promise counts as a proof.
    fn unpromised(&self, e: Expr) -> Option<Chosen> {
        self.of(e).filter(|chosen| !chosen.promised)
    }

    fn stmt(&mut self, s: Stmt) {
        let k = self.k;
        match k.stmts[s] {
            StmtData::Let { value, init } => match type_of(k, init) {
                Ok(Type::Index | Type::Bool) => {
                    self.chosen[value] = self.of(init).map(|chosen| Chosen { what: What::Any, ..chosen });
                }
                _ => self.computed(init, false),
            },
            StmtData::Var { init, .. } => init.into_iter().for_each(|e| self.computed(e, false)),
            StmtData::Assign { src, .. } => self.computed(src, false),
            StmtData::Copy { src, dst, ref attrs } => {
                // A prefetch has no result.
                if attrs.is_prefetch() {
                    return;
                }
                for (e, tile) in [(src, dst), (dst, src)] {
                    self.copied = match type_of(k, tile) {
                        Ok(Type::Tile(tile)) => Some((e, tile.shape)),
                        _ => None,
                    };
                    self.computed(e, false);
                }
                self.copied = None;
                [(src, dst), (dst, src)].into_iter().for_each(|(e, tile)| self.moving(e, tile));
                attrs.when.into_iter().for_each(|e| self.condition(e));
            }
            StmtData::For { var, start, end, step, cond, .. } => {
                self.repeated(var, [start, end, step]);
                if let Some(cond) = cond {
                    self.condition(cond);
                    // The number of tiles depends on values computed from earlier tiles.
                    if let Some(chosen) = self.chosen[var].filter(|chosen| !chosen.promised) {
                        self.refuse(cond, chosen, "whether this loop goes on".to_owned());
                    }
                }
            }
            StmtData::If { cond, then, otherwise } => {
                if let Some(chosen) = self.decides(cond, then, otherwise) {
                    self.refuse(cond, chosen, "this condition".to_owned());
                }
            }
            StmtData::Alloc { .. }
            | StmtData::Channel { .. }
            | StmtData::Barrier
            | StmtData::Fence
            | StmtData::Await { .. }
            | StmtData::Signal { .. }
            | StmtData::Ordered { .. }
            | StmtData::Role { .. } => {}
        }
    }

    fn condition(&mut self, e: Expr) {
        if let Some(chosen) = self.unpromised(e) {
            self.refuse(e, chosen, "this condition".to_owned());
        }
    }

    fn repeated(&mut self, var: Value, [start, end, step]: [Expr; 3]) {
        let k = self.k;
        self.steps[var] = Some(step);
        if let Some(chosen) = self.unpromised(end).filter(|_| k.as_int(start) == Some(0)) {
            let counted = if k.as_int(step) == Some(1) {
                self.numbered(chosen, end)
            } else {
                Chosen { what: What::Any, ..chosen }
            };
            self.chosen[var] = Some(counted);
            let within_tile = || self.is_of_tiles(end) && self.is_of_tiles(step);
            if matches!(self.chosen[var], Some(Chosen { what: What::Any, .. })) && !within_tile() {
                self.refuse(end, chosen, "the end of this loop".to_owned());
                self.chosen[var] = None;
            }
            return;
        }
        for (e, what) in [(start, "the beginning of this loop"), (end, "the end of this loop")] {
            if let Some(chosen) = self.unpromised(e) {
                self.refuse(e, chosen, what.to_owned());
            }
        }
        self.chosen[var] = self.of(step).map(|chosen| Chosen { what: What::Position, ..chosen });
    }

    /// Whether an index is computed only from extents of tiles.
    fn is_of_tiles(&self, e: Expr) -> bool {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Int(_) => true,
            ExprData::Ref(v) => matches!(k.values[*v].def, ValueDef::ConstParam(_)),
            ExprData::Op { args, .. } => args.iter().all(|&arg| self.is_of_tiles(arg)),
            _ => false,
        }
    }

    /// Checks an expression whose value is stored; `beside`: it is combined with positions of the tile's elements.
    fn computed(&mut self, e: Expr, beside: bool) {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::View(view) => self.window(e, &view.clone()),
            ExprData::Ref(v) => {
                if let Some(chosen) = self.chosen[*v].filter(|_| !beside) {
                    self.refuse(e, chosen, "this value".to_owned());
                }
            }
            ExprData::Op { op, args } => {
                let joins = matches!(op.form(), Form::Infix(_)) && args.iter().any(|&arg| has_iota(k, arg));
                for &arg in args {
                    self.computed(arg, beside || joins);
                }
            }
            ExprData::Iota { .. } => {}
            ExprData::Reduce { op: ReduceOp::Sum | ReduceOp::Product, axis, arg, .. } => {
                self.counted(e, [(*arg, *axis)].as_slice());
                self.computed(*arg, false);
            }
            ExprData::Scan { axis, arg, .. } => {
                if let Ok(Type::Tile(tile)) = type_of(k, *arg)
                    && let Some(&Extent::Sym(extent)) = tile.shape.get(*axis as usize)
                    && let Some(chosen) = self.unpromised(extent)
                {
                    self.refuse(e, chosen, "where this scan begins".to_owned());
                }
                self.computed(*arg, false);
            }
            ExprData::Combine(combine) => {
                let chosen = combine.args.iter().find_map(|&arg| match type_of(k, arg) {
                    Ok(Type::Tile(tile)) => match tile.shape.get(combine.axis as usize) {
                        Some(&Extent::Sym(extent)) => self.unpromised(extent),
                        _ => None,
                    },
                    _ => None,
                });
                if let Some(chosen) = chosen {
                    self.refuse(e, chosen, "how many tuples are combined".to_owned());
                }
                combine.args.iter().chain(&combine.front).for_each(|&arg| self.computed(arg, false));
            }
            ExprData::Mma(m) => {
                self.counted(e, [(m.a, 1), (m.b, 0)].as_slice());
                [m.a, m.b, m.c].into_iter().for_each(|child| self.computed(child, false));
            }
            _ => k.children(e).into_iter().for_each(|child| self.computed(child, false)),
        }
    }

    /// Checks that a sum does not add one number as often as a tile has elements: for these operands and dimensions.
    fn counted(&mut self, e: Expr, along: &[(Expr, u32)]) {
        let k = self.k;
        let chosen = along.iter().find_map(|&(arg, axis)| match type_of(k, arg) {
            Ok(Type::Tile(tile)) => match tile.shape.get(axis as usize) {
                Some(&Extent::Sym(extent)) => self.unpromised(extent),
                _ => None,
            },
            _ => None,
        });
        if let Some(chosen) = chosen.filter(|_| along.iter().all(|&(arg, axis)| uniform::is_uniform(k, arg, axis))) {
            self.refuse(e, chosen, "how often this sum adds its number".to_owned());
        }
    }

    fn window(&mut self, e: Expr, view: &View) {
        let k = self.k;
        let Some(resolved) = resolve_view(k, e).filter(|v| v.space(k).has_bounds()) else { return };
        let Some(tensor) = k.tensor_ty(resolved.base).filter(|t| t.scratch.is_none()) else { return };
        let name = &k.values[resolved.base].name;
        let mut kept = resolved.base_dims().into_iter();
        for (d, range) in view.ranges.iter().enumerate() {
            match *range {
                Range::At(index) => {
                    if let Some(chosen) = self.of(index).filter(|_| !self.is_group(index)) {
                        self.refuse(index, chosen, format!("which part of `{name}` this is"));
                    }
                }
                Range::Gather(index) => {
                    kept.next();
                    let extents = match type_of(k, index) {
                        Ok(Type::Tile(tile)) => tile.shape,
                        _ => Vec::new(),
                    };
                    let chosen = extents.into_iter().find_map(|n| match n {
                        Extent::Sym(n) => self.unpromised(n),
                        Extent::Known(_) => None,
                    });
                    // Indices past the end of their tensor read as zero, a valid index into `name`, unless the fill
                    // value is invalid.
                    if let Some(chosen) = chosen.filter(|_| !names_nothing_behind_the_end(k, index)) {
                        self.refuse(index, chosen, format!("how many rows of `{name}` these indices name"));
                    }
                }
                Range::From { start, end } => {
                    let dim = kept.next();
                    // The end of the loop is checked at the loop.
                    let own = implied(k, &self.loops, view, d);
                    if own.zip(end).is_some_and(|(own, end)| same_expr(k, own, end)) {
                        continue;
                    }
                    if let Some(chosen) = end.and_then(|end| self.of(end)) {
                        self.refuse(e, chosen, format!("where this window of `{name}` ends"));
                    }
                    let Some(chosen) = self.of(start) else { continue };
                    let fixed = |at: usize| match &self.copied {
                        Some((copied, shape)) => *copied == e && matches!(shape.get(at), Some(Extent::Known(_))),
                        None => false,
                    };
                    if self.is_group(start)
                        && dim.and_then(|d| resolved.base_dims().iter().position(|&x| x == d)).is_some_and(fixed)
                    {
                        continue;
                    }
                    let extent = dim.map(|dim| tensor.shape[dim]);
                    let by_itself = |range: &Covered| {
                        [end, extent].into_iter().flatten().any(|limit| self.reaches(range, limit))
                            || end.is_none() && extent.is_some_and(|extent| self.is_padded(range, extent))
                    };
                    if !self.covered(start).is_some_and(|range| by_itself(&range)) {
                        self.refuse(start, chosen, format!("where this window of `{name}` ends"));
                    }
                }
            }
        }
    }

    /// Checks that a window at the variable of a loop, for a tile of chosen extents, moves by these extents.
    fn moving(&mut self, e: Expr, tile: Expr) {
        let k = self.k;
        let Some(view) = resolve_view(k, e).filter(|view| view.space(k).has_bounds()) else { return };
        if k.tensor_ty(view.base).is_none_or(|t| t.scratch.is_some()) {
            return;
        }
        let Ok(Type::Tile(tile)) = type_of(k, tile) else { return };
        for (&d, extent) in view.base_dims().iter().zip(tile.shape) {
            let (Extent::Sym(extent), &[start]) = (extent, view.dims[d].starts()) else { continue };
            let Some(chosen) = self.of(extent) else { continue };
            let Some((var, step)) = self.moves(start) else { continue };
            let grows =
                self.by_loop(start).is_some() && self.of(step).is_some_and(|of| of.parameter == chosen.parameter);
            let tiles = grows || same_product(k, meaning(k, step), meaning(k, extent));
            if !tiles && self.refused.insert((var, chosen.parameter)) {
                let (parameter, extent) = (&k.values[chosen.parameter], print_expr(k, extent));
                let var = &k.values[var].name;
                let step = print_expr(k, step);
                let (moves, way_out) = match self.by_loop(start) {
                    None => (
                        format!("tiles of `{var}` are {step} apart, and windows that begin there have"),
                        format!(
                            "let a window of `{extent}` elements begin at a multiple of them, or `transpose` the copied value"
                        ),
                    ),
                    Some(_) => (
                        format!("`{var}` grows by {step}, and windows that begin at it have"),
                        format!("let the loop go by tiles: `step {extent}`"),
                    ),
                };
                let message =
                    format!("{moves} `{extent}` elements, which is `auto`: another choice would give another result");
                let d = Diagnostic::error(codes::DEPENDS_ON_CHOICE, k.expr_spans[start], message)
                    .with_place(parameter.span, format!("`{}` is `auto` here", parameter.name))
                    .with_note(format!(
                        "{way_out}; or give `{}` a value, with {} or in the source",
                        parameter.name,
                        self.caller.define(&parameter.name)
                    ));
                self.wrong.push(d);
            }
        }
    }

    /// The variable by which a window's start moves, and the distance: a loop variable, alone or added to something
    /// that is no tile's position, and the loop's step; or the number of a tile, and its size.
    fn moves(&self, start: Expr) -> Option<(Value, Expr)> {
        self.by_loop(start).or_else(|| self.tile(start).map(|(v, size, _)| (v, size)))
    }

    fn by_loop(&self, start: Expr) -> Option<(Value, Expr)> {
        let k = self.k;
        let of = |e: Expr| loop_variable(k, e).and_then(|v| Some((v, self.steps[v]?)));
        of(start).or_else(|| match &k.exprs[meaning(k, start)] {
            ExprData::Op { op: Op::Add, args } => {
                let sides = [(args[0], args[1]), (args[1], args[0])];
                sides.into_iter().find_map(|(e, other)| of(e).filter(|_| self.covered(other).is_none()))
            }
            _ => None,
        })
    }

    /// The range of elements that is covered by tiles at `e`.
    fn covered(&self, e: Expr) -> Option<Covered> {
        let k = self.k;
        if let Some(v) = loop_variable(k, e) {
            let Some(Chosen { what: What::Position, .. }) = self.chosen[v] else { return None };
            return Some(Covered { end: self.loops.end(v)?, offset: None });
        }
        let ExprData::Op { op, args } = &k.exprs[meaning(k, e)] else { return None };
        let &[a, b] = args.as_slice() else { return None };
        match op {
            Op::Add => [(a, b), (b, a)].into_iter().find_map(|(tile, offset)| {
                let Covered { end, offset: None } = self.covered(tile)? else { return None };
                Some(Covered { end, offset: Some(offset) })
            }),
            Op::Mul => self.tile(e).map(|(_, _, extent)| Covered { end: extent, offset: None }),
            _ => None,
        }
    }

    /// The number of a tile, its size, and the extent that such tiles cover, if `e` is the tile's position `i * BM`.
    fn tile(&self, e: Expr) -> Option<(Value, Expr, Expr)> {
        let k = self.k;
        let ExprData::Op { op: Op::Mul, args } = &k.exprs[meaning(k, e)] else { return None };
        let &[a, b] = args.as_slice() else { return None };
        [(a, b), (b, a)].into_iter().find_map(|(number, by)| {
            let ExprData::Ref(v) = k.exprs[meaning(k, number)] else { return None };
            match self.chosen[v]?.what {
                What::Tile { extent, size } if same_expr(k, size, by) => Some((v, size, extent)),
                _ => None,
            }
        })
    }

    /// Whether a range, moved by its offset, reaches `limit`, so that elements of a tile past its range are past the
    /// limit.
    fn reaches(&self, range: &Covered, limit: Expr) -> bool {
        let k = self.k;
        let moved_by = match range.offset {
            None => Some(0),
            Some(offset) => k.as_int(offset),
        };
        if let (Some(offset), ExprData::Op { op: Op::Add, args }) = (range.offset, &k.exprs[limit])
            && same_expr(k, args[0], offset)
            && same_expr(k, args[1], range.end)
        {
            return true;
        }
        let Some(moved_by) = moved_by else { return false };
        let ((end, more), (limit_base, limit_more)) = (parts(k, range.end), parts(k, limit));
        covers(k, range.end, limit) && moved_by >= 0
            || end.zip(limit_base).is_some_and(|(a, b)| same_product(k, a, b))
                && more.saturating_add(moved_by) >= limit_more
    }

    /// Whether a dimension is the range padded to whole groups, with zeros into which windows may extend.
    fn is_padded(&self, range: &Covered, extent: Expr) -> bool {
        let k = self.k;
        let ExprData::Op { op: Op::Mul, args } = &k.exprs[extent] else { return false };
        match &k.exprs[args[0]] {
            ExprData::Op { op: Op::CeilDiv, args: groups } => {
                range.offset.is_none() && same_expr(k, groups[1], args[1]) && same_product(k, groups[0], range.end)
            }
            _ => false,
        }
    }

    fn refuse(&mut self, e: Expr, chosen: Chosen, what: String) {
        let k = self.k;
        let name = &k.values[chosen.parameter].name;
        let message = format!("{what} depends on `{name}`, which is `auto`: another choice would give another result");
        // The index is a group number, and no precondition says that each tile is within one group.
        let group = self.group(e).map(|(group, size)| (print_expr(k, group), print_expr(k, size)));
        let in_group = group.map_or_else(String::new, |(group, step)| {
            format!("declare `where {group} % {step} == 0`, if each tile of `{step}` is in one group; or ")
        });
        let d = Diagnostic::error(codes::DEPENDS_ON_CHOICE, k.expr_spans[e], message)
            .with_place(k.values[chosen.parameter].span, format!("`{name}` is `auto` here"))
            .with_note(format!(
                "{in_group}give `{name}` a value, with {} or in the source; of a window, write an end that the tiles reach, such as the extent that the grid divides by `{name}`: `i * {name}..N`",
                self.caller.define(name)
            ));
        self.wrong.push(if what.ends_with("condition") || what.ends_with("of this loop") {
            d.with_note(format!("if it only skips work without effect, promise that: `{name} = auto promised`"))
        } else {
            d
        });
    }
}

fn has_iota(k: &Kernel, e: Expr) -> bool {
    matches!(k.exprs[e], ExprData::Iota { .. }) || k.children(e).into_iter().any(|child| has_iota(k, child))
}
