//! Reductions whose first tile is the ragged one.
//!
//! A loop `for k in S..E step B` that fetches windows `k..` of dimensions of extent `K`, where `E` is `K` or the smaller of
//! `K` and something whole steps away from `S`, is shifted so that its *first* tile is the ragged one (`S..S + r`,
//! `r = (E - S) - (ceildiv(E - S, B) - 1) * B`): the steady iterations then read full tiles, and their remaining checks
//! (rows) do not change from one to the next, so masked registers keep the zeros they were initialised with (`keep`) and the
//! predicates are loop-invariant. CUTLASS 2.x loads its residue tile first too. A loop that was not pipelined has its first
//! iteration peeled off instead.
//!
//! A loop that may have no iteration reads nothing in front of it then: the windows there have the condition `S < E`.

use crate::Cx;
use crate::analysis::bounds::End;
use crate::analysis::facts::Facts;
use crate::analysis::sums::{accumulator, cut_elsewhere, outlives, unfinished_sum};
use crate::analysis::uses::{all_stmts, mentions, place_of};
use crate::analysis::views::copy_shape;
use crate::analysis::width::kept_dims;
use crate::predicate::conditions::add_condition;
use crate::rewrite::{Map, Subst, clone_block, same_expr};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};

/// A copy of the body that fetches windows of the reduction.
#[derive(Copy, Clone)]
struct Fetch {
    at: Stmt,
    /// The dimension of its tensor.
    dim: usize,
    /// Tiles by which it is ahead of the loop variable.
    ahead: i64,
}

/// A loop over a reduction whose first tile can be the ragged one.
pub(super) struct Residue {
    at: Stmt,
    var: Value,
    /// The extent `K`, that of a dimension of a tensor.
    extent: Expr,
    /// Where the reduction begins (`None`: at 0), and ends.
    start: Option<Expr>,
    end: Expr,
    /// It runs over all of the extent: it has an iteration, and past its end everything reads as zero.
    whole: bool,
    /// Iterations before the loop, already laid out by the pipeline.
    skipped: i64,
    /// Whether the body's fetches are ahead of the loop variable.
    ahead: bool,
    step: i64,
    /// Copies of the body that fetch windows of the reduction.
    fetches: Vec<Fetch>,
    /// Copies before the loop that fetch its first tiles, with the dimension and the tile's number.
    prologue: Vec<(Stmt, usize, i64)>,
}

impl Residue {
    /// `Ok(None)`: not a reduction over a ragged extent.
    pub(super) fn of(k: &Kernel, at: Stmt) -> Result<Option<Residue>, String> {
        let StmtData::For { var, start, end, step, body, .. } = k.stmts[at] else { return Ok(None) };
        let Some(bound) = End::of(k, end) else { return Ok(None) };
        let Some(step) = k.as_int(step).filter(|&s| s > 1 && s.count_ones() == 1) else { return Ok(None) };
        let Some((start, skipped)) = split(k, start, step) else { return Ok(None) };
        let facts = Facts::new(k);
        let tiles = step.unsigned_abs();
        let begins_whole = start.is_none_or(|start| facts.divisor(k, bound.start(k, start)) >= tiles);
        if facts.divisor(k, bound.extent) >= tiles && begins_whole {
            return Ok(None);
        }
        let mut fetches: Vec<Fetch> = Vec::new();
        for s in all_stmts(k, body) {
            let uses = crate::analysis::uses::stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, var));
            if !uses {
                continue;
            }
            let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else {
                return Err(format!("`{}` is used by more than copies", k.values[var].name));
            };
            // Nobody checks anything: what is past the end arrives as zero.
            if !attrs.is_by_threads() {
                return Ok(None);
            }
            // Other tiles would have other elements outside the bounds.
            if attrs.fill.is_some() {
                return Err("a copy fills what is outside the bounds with another number than zero".to_owned());
            }
            let other = || format!("a copy uses `{}` other than as `{0}..`", k.values[var].name);
            let view = resolve_view(k, src).ok_or_else(other)?;
            let (dim, distance) = reduction_dim(k, &view, var, bound.extent).ok_or_else(other)?;
            let ahead = distance / step;
            if distance % step != 0 || fetches.iter().any(|f| (f.ahead > 0) != (ahead > 0)) {
                return Err(other());
            }
            if !has_range(k, src, view.base) || condition_mentions(k, s, dim, end, var) {
                return Err(other());
            }
            let width = view.kept().iter().position(|&d| d == dim).zip(copy_shape(k, src, dst)).map(|(w, s)| s[w]);
            if width != Some(tiles) {
                let name = &k.values[view.base].name;
                return Err(format!("the tiles of `{name}` are not as wide as the step of the loop"));
            }
            fetches.push(Fetch { at: s, dim, ahead });
        }
        // Fetches that are not checked along the reduction read full tiles already: the loop has been peeled before.
        if fetches.iter().all(|f| unchecked(k, f.at, f.dim)) {
            return Ok(None);
        }
        if let Some(why) = order_matters(k, body, &fetches) {
            return Err(why);
        }
        if !bound.whole_steps(k, &facts, start, tiles) {
            let extent = print_expr(k, bound.extent);
            return Err(format!("it is not known to have whole steps of {step} where it ends in front of `{extent}`"));
        }
        let whole = bound.or.is_none() && start.is_none();
        let ahead = fetches.iter().any(|f| f.ahead > 0);
        let prologue = Vec::new();
        let extent = bound.extent;
        let mut residue = Residue { at, var, extent, start, end, whole, skipped, ahead, step, fetches, prologue };
        residue.find_prologue(k)?;
        if let Some(v) = outlives(k, body, residue.leads()) {
            return Err(format!("the last tile in `{}` is also used outside the loop", k.values[v].name));
        }
        Ok(Some(residue))
    }

    /// Every fetch of the loop must have its counterparts for the tiles before the loop.
    fn find_prologue(&mut self, k: &Kernel) -> Result<(), String> {
        if self.leads()
            && let Some(v) = self.fetches.iter().find_map(|f| used_elsewhere(k, f.at))
        {
            return Err(format!("`{}` is not only put into a channel", k.values[v].name));
        }
        let (block, index) = place_of(k, self.at);
        for &Fetch { at: fetch, dim, ahead } in &self.fetches {
            for tile in 0..self.skipped + ahead {
                let at = |k: &Kernel, e: Expr| is_offset(k, e, self.start, tile * self.step);
                let found = k.blocks[block][..index].iter().copied().find(|&s| fetches_tile(k, s, fetch, dim, &at));
                match found {
                    Some(s) => self.prologue.push((s, dim, tile)),
                    None => return Err("the fetches before the loop have another form".into()),
                }
            }
        }
        Ok(())
    }

    /// Whether tiles are fetched before the loop.
    fn leads(&self) -> bool {
        self.skipped > 0 || self.ahead
    }

    /// `S + r + n * B`, without what is 0.
    fn place(&self, k: &mut Kernel, r: Value, n: i64, span: Span) -> Expr {
        let head = k.value_ref(r, span);
        let first = match self.start {
            None => head,
            Some(start) => {
                let start = copy(k, start);
                k.binary(Op::Add, start, head, span)
            }
        };
        let rest = k.int(n * self.step, span);
        k.binary(Op::Add, first, rest, span)
    }

    /// Where the reduction begins.
    fn first(&self, k: &mut Kernel, span: Span) -> Expr {
        match self.start {
            None => k.int(0, span),
            Some(start) => copy(k, start),
        }
    }

    /// The number of elements of the ragged tile: `r`.
    fn head(&self, k: &mut Kernel, span: Span) -> Expr {
        let step = self.step;
        if !self.whole {
            // B - (S - E) % B, which is from 1 to B whatever S and E are.
            let (start, end) = (self.first(k, span), copy(k, self.end));
            let (b1, b2) = (k.int(step, span), k.int(step, span));
            let back = k.binary(Op::Sub, start, end, span);
            let missing = k.expr(ExprData::Op { op: Op::Rem, args: vec![back, b1] }, span);
            return k.binary(Op::Sub, b2, missing, span);
        }
        let size = |k: &mut Kernel| copy(k, self.end);
        let (e1, e2, b1, b2, one) = (size(k), size(k), k.int(step, span), k.int(step, span), k.int(1, span));
        let tiles = k.expr(ExprData::Op { op: Op::CeilDiv, args: vec![e2, b1] }, span);
        let full = k.binary(Op::Sub, tiles, one, span);
        let covered = k.binary(Op::Mul, full, b2, span);
        k.binary(Op::Sub, e1, covered, span)
    }

    pub(super) fn apply(&self, k: &mut Kernel, cx: &mut Cx<'_>) {
        let span = k.stmt_spans[self.at];
        let (block, index) = place_of(k, self.at);
        let init = self.head(k, span);
        let name = format!("{}_head", k.values[self.var].name);
        let r = k.value(&name, span, ValueDef::Let);
        let decl = k.stmt(StmtData::Let { value: r, init }, span);

        // `r` is needed by the earliest of the copies in front of the loop.
        let position = |s: Stmt| k.blocks[block].iter().position(|&x| x == s);
        let mut place = self.prologue.iter().filter_map(|p| position(p.0)).min().unwrap_or(index);
        for &(s, dim, tile) in &self.prologue {
            self.shift_prologue(k, s, dim, tile, r);
        }
        if !self.leads() {
            // Not pipelined: the first iteration moves in front of the loop, with its windows cut at `r`.
            let StmtData::For { body, .. } = k.stmts[self.at] else { unreachable!("a loop is divided") };
            let start = self.first(k, span);
            let mut map = Map(vec![(self.var, Subst::Expr(start))]);
            let peeled = clone_block(k, body, &mut map);
            for s in all_stmts(k, peeled) {
                let first = |k: &Kernel, e: Expr| is_offset(k, e, self.start, 0);
                if let Some(f) = self.fetches.iter().find(|f| fetches_tile(k, s, f.at, f.dim, &first)) {
                    self.shift_prologue(k, s, f.dim, 0, r);
                    if !self.whole {
                        let (start, end) = (self.first(k, span), copy(k, self.end));
                        let any = k.binary(Op::Lt, start, end, span);
                        add_condition(k, s, any);
                    }
                }
            }
            let list = k.blocks[peeled].clone();
            place = index;
            k.blocks[block].splice(index..index, list);
        }
        k.blocks[block].insert(place, decl);

        // The loop variable now names the tile after the one it named: tile `t` begins at `S + r + (t - 1) * B`.
        let shift = if self.ahead { self.skipped } else { self.skipped.max(1) - 1 };
        let new_start = self.place(k, r, shift, span);
        let (end, one) = (copy(k, self.end), k.int(self.step, span));
        let past = k.binary(Op::Add, end, one, span);
        if let StmtData::For { start, end, .. } = &mut k.stmts[self.at] {
            *start = new_start;
            if self.ahead {
                *end = past;
            }
        }
        for &Fetch { at: s, dim, ahead } in &self.fetches {
            if ahead > 0 {
                let var = k.value_ref(self.var, span);
                let distance = k.int((ahead - 1) * self.step, span);
                let begin = k.binary(Op::Add, var, distance, span);
                self.begin_at(k, s, dim, begin);
            }
            steady(k, s, dim);
        }
        cx.remark(
            span,
            format!(
                "the first tile along `{}` is the ragged one; full tiles follow unchecked",
                print_expr(k, self.extent)
            ),
        );
    }

    /// Tile `n` of the reduction now covers `S..S + r` (n = 0) or starts at `S + r + (n - 1) * B`.
    fn shift_prologue(&self, k: &mut Kernel, s: Stmt, dim: usize, tile: i64, r: Value) {
        let span = k.stmt_spans[s];
        if tile == 0 {
            let (start, end) = (self.first(k, span), self.place(k, r, 0, span));
            set_range(k, s, dim, Range::From { start, end: Some(end) });
            return;
        }
        let begin = self.place(k, r, tile - 1, span);
        if self.ahead {
            self.begin_at(k, s, dim, begin);
            steady(k, s, dim);
        } else if self.whole {
            set_range(k, s, dim, Range::From { start: begin, end: None });
        } else {
            self.begin_at(k, s, dim, begin);
        }
    }

    /// A fetch ahead reads the full tile at `begin`, or nothing if that is past the end.
    fn begin_at(&self, k: &mut Kernel, s: Stmt, dim: usize, begin: Expr) {
        let span = k.stmt_spans[s];
        if let Some(rest) = other_conditions(k, s, dim, self.end)
            && let StmtData::Copy { attrs, .. } = &mut k.stmts[s]
        {
            attrs.when = rest;
        }
        let (again, end) = (copy(k, begin), copy(k, self.end));
        let cond = k.binary(Op::Lt, again, end, span);
        set_range(k, s, dim, Range::From { start: begin, end: None });
        add_condition(k, s, cond);
    }
}

fn copy(k: &mut Kernel, e: Expr) -> Expr {
    k.clone_expr(e, &mut |_, _| None)
}

/// Where a reduction begins whose loop begins at `e`, and the iterations that the pipeline has laid out in front of it.
fn split(k: &Kernel, e: Expr, step: i64) -> Option<(Option<Expr>, i64)> {
    if let Some(start) = k.as_int(e) {
        return (start >= 0 && start % step == 0).then_some((None, start / step));
    }
    if let ExprData::Op { op: Op::Add, args } = &k.exprs[e]
        && let Some(c) = k.as_int(args[1]).filter(|c| *c > 0 && c % step == 0)
    {
        return Some((Some(args[0]), c / step));
    }
    Some((Some(e), 0))
}

/// Whether `e` is `start + distance`.
fn is_offset(k: &Kernel, e: Expr, start: Option<Expr>, distance: i64) -> bool {
    match (start, &k.exprs[e]) {
        (None, _) => k.as_int(e) == Some(distance),
        (Some(start), _) if distance == 0 => same_expr(k, e, start),
        (Some(start), ExprData::Op { op: Op::Add, args }) => {
            same_expr(k, args[0], start) && k.as_int(args[1]) == Some(distance)
        }
        _ => false,
    }
}

/// Whether a copy's window is written as ranges of the tensor itself, which can be changed.
fn has_range(k: &Kernel, src: Expr, tensor: Value) -> bool {
    matches!(&k.exprs[src], ExprData::View(view) if view.base == tensor && !view.ranges.is_empty())
}

/// The conditions of a copy, but for the one that its window in dimension `dim` begins in front of `end`; `None` if it does
/// not have that one.
fn other_conditions(k: &Kernel, s: Stmt, dim: usize, end: Expr) -> Option<Option<Expr>> {
    let StmtData::Copy { src, attrs, .. } = &k.stmts[s] else { unreachable!("a fetch is a copy") };
    let ExprData::View(view) = &k.exprs[*src] else { return None };
    let Some(Range::From { start, .. }) = view.ranges.get(dim) else { return None };
    let is_it = |e: Expr| match &k.exprs[e] {
        ExprData::Op { op: Op::Lt, args } => same_expr(k, args[0], *start) && same_expr(k, args[1], end),
        _ => false,
    };
    let when = attrs.when?;
    match &k.exprs[when] {
        _ if is_it(when) => Some(None),
        ExprData::Op { op: Op::And, args } if is_it(args[1]) => Some(Some(args[0])),
        _ => None,
    }
}

/// Whether a copy has conditions over the loop variable of its own.
fn condition_mentions(k: &Kernel, s: Stmt, dim: usize, end: Expr, var: Value) -> bool {
    let StmtData::Copy { attrs, .. } = &k.stmts[s] else { unreachable!("a fetch is a copy") };
    let rest = other_conditions(k, s, dim, end).unwrap_or(attrs.when);
    rest.is_some_and(|e| mentions(k, e, var))
}

fn set_range(k: &mut Kernel, s: Stmt, dim: usize, range: Range) {
    let StmtData::Copy { src, .. } = k.stmts[s] else { unreachable!("a fetch is a copy") };
    if let ExprData::View(view) = &mut k.exprs[src]
        && let Some(slot) = view.ranges.get_mut(dim)
    {
        *slot = range;
    }
}

/// Why cutting the reduction into tiles at other places would change what the loop computes; `None` if it would not: the
/// body only fetches tiles, moves them, and accumulates products of them, and a sum of products does not depend on where it
/// is cut.
fn order_matters(k: &Kernel, body: Block, fetches: &[Fetch]) -> Option<String> {
    for s in all_stmts(k, body) {
        if fetches.iter().any(|f| f.at == s) {
            continue;
        }
        match k.stmts[s] {
            StmtData::Copy { src, dst, .. } => {
                let (Some(from), Some(to)) = (resolve_view(k, src), resolve_view(k, dst)) else {
                    return Some("its body computes with what it fetches".into());
                };
                if k.tensor_ty(from.base).is_some() || k.tensor_ty(to.base).is_some() {
                    return Some(format!("its body also reads or writes `{}`", k.values[to.base].name));
                }
            }
            StmtData::Assign { .. } if accumulator(k, s).is_some() => {}
            StmtData::For { unroll: true, .. } | StmtData::Channel { .. } | StmtData::Barrier | StmtData::Fence => {}
            _ => return Some("its body is more than a sum of products".into()),
        }
    }
    for f in fetches {
        if cut_elsewhere(k, body, f.at, f.dim).is_some() {
            return Some("what it fetches is multiplied along another dimension".into());
        }
    }
    unfinished_sum(k, body).map(|v| format!("its body uses the sum `{}` before it is whole", k.values[v].name))
}

/// The register tile that a fetch fills, if something else than a channel slot gets what it holds.
fn used_elsewhere(k: &Kernel, fetch: Stmt) -> Option<Value> {
    let StmtData::Copy { dst, .. } = k.stmts[fetch] else { unreachable!("a fetch is a copy") };
    let filled = resolve_view(k, dst).filter(|v| v.slot.is_none())?.base;
    for s in all_stmts(k, k.body) {
        match k.stmts[s] {
            StmtData::Copy { src, dst, .. } => {
                let reads = mentions(k, src, filled);
                let into_slot = resolve_view(k, dst).is_some_and(|v| v.slot.is_some());
                if reads && !into_slot {
                    return Some(filled);
                }
            }
            _ => {
                if crate::analysis::uses::stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, filled)) {
                    return Some(filled);
                }
            }
        }
    }
    None
}

/// The dimension of the tensor whose window starts at `var` plus a literal and whose extent is `extent`, and that literal;
/// the only use of `var`.
fn reduction_dim(k: &Kernel, view: &ResolvedView, var: Value, extent: Expr) -> Option<(usize, i64)> {
    if view.transposed {
        return None;
    }
    let shape = &k.tensor_ty(view.base)?.shape;
    let mut found = None;
    for (d, dim) in view.dims.iter().enumerate() {
        match dim {
            ViewDim::From { starts, end } => {
                let distance = match starts[..] {
                    [start] => distance(k, start, var),
                    _ => None,
                };
                let whole = same_product(k, shape[d], extent);
                if let Some(distance) = distance.filter(|_| whole && end.is_none() && found.is_none()) {
                    found = Some((d, distance));
                } else if starts.iter().chain(end).any(|&e| mentions(k, e, var)) {
                    return None;
                }
            }
            ViewDim::Fixed(e) => {
                if mentions(k, *e, var) {
                    return None;
                }
            }
        }
    }
    found
}

/// `c` where `e` is `var` or `var + c`.
fn distance(k: &Kernel, e: Expr, var: Value) -> Option<i64> {
    let is_var = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if v == var);
    match &k.exprs[e] {
        ExprData::Op { op: Op::Add, args } if is_var(args[0]) => k.as_int(args[1]).filter(|c| *c >= 0),
        _ => is_var(e).then_some(0),
    }
}

/// Whether `s` fetches the window of `model` with the start `at` in dimension `dim` instead of the loop variable.
fn fetches_tile(k: &Kernel, s: Stmt, model: Stmt, dim: usize, at: &dyn Fn(&Kernel, Expr) -> bool) -> bool {
    let (StmtData::Copy { src: a, dst: to_a, attrs }, StmtData::Copy { src: b, dst: to_b, attrs: model }) =
        (&k.stmts[s], &k.stmts[model])
    else {
        return false;
    };
    if attrs.is_prefetch() != model.is_prefetch() {
        return false;
    }
    let (ExprData::View(v), ExprData::View(w)) = (&k.exprs[*a], &k.exprs[*b]) else { return false };
    if v.base != w.base || v.ranges.len() != w.ranges.len() || !same_expr(k, *to_a, *to_b) {
        return false;
    }
    v.ranges.iter().zip(&w.ranges).enumerate().all(|(d, (x, y))| match (x, y) {
        (Range::From { start: p, end: None }, Range::From { start: q, end: None }) => {
            if d == dim {
                at(k, *p)
            } else {
                same_expr(k, *p, *q)
            }
        }
        (Range::At(p), Range::At(q)) => same_expr(k, *p, *q),
        _ => false,
    })
}

/// Whether the text says that a fetch is not checked in a dimension of its tensor.
fn unchecked(k: &Kernel, s: Stmt, dim: usize) -> bool {
    let StmtData::Copy { src, attrs, .. } = &k.stmts[s] else { unreachable!("a fetch is a copy") };
    let (Some(view), Some(check)) = (resolve_view(k, *src), &attrs.check) else { return false };
    let kept = kept_dims(&view);
    check.iter().all(|&d| kept.get(d as usize) != Some(&dim))
}

/// A fetch of full tiles: its reduction dimension is not checked, and masked registers keep their zeros.
fn steady(k: &mut Kernel, s: Stmt, dim: usize) {
    let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { unreachable!("a fetch is a copy") };
    let view = resolve_view(k, src).expect("a fetch is of a window");
    // `check` counts the dimensions that the window keeps.
    let kept = kept_dims(&view);
    let all: Vec<u32> = (0..kept.len() as u32).collect();
    let check: Vec<u32> =
        attrs.check.unwrap_or(all).into_iter().filter(|&d| kept.get(d as usize) != Some(&dim)).collect();
    let keep = zero_initialised(k, dst);
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        attrs.keep = keep && !check.is_empty() && attrs.unaligned().is_none() && !attrs.is_prefetch();
        attrs.check = Some(check);
    }
}

/// Whether a register tile starts as zeros and is written by loads only, so that masked elements are zero before and after.
fn zero_initialised(k: &Kernel, dst: Expr) -> bool {
    let Some(var) = crate::analysis::views::plain_var(k, dst) else { return false };
    let mut zero = false;
    let mut windows: Vec<ResolvedView> = Vec::new();
    for s in all_stmts(k, k.body) {
        match &k.stmts[s] {
            StmtData::Var { value, init: Some(e) } if *value == var => {
                zero = matches!(k.exprs[*e], ExprData::Float(bits) if bits == 0) || k.as_int(*e) == Some(0);
            }
            StmtData::Assign { dst, .. } if *dst == var => return false,
            StmtData::Copy { src, dst, .. } => {
                let Some(to) = resolve_view(k, *dst).filter(|v| v.base == var) else { continue };
                let Some(from) = resolve_view(k, *src).filter(|v| k.tensor_ty(v.base).is_some()) else { return false };
                if to.dims.iter().any(
                    |d| matches!(d, ViewDim::From { starts, .. } if starts.iter().any(|&e| k.as_int(e) != Some(0))),
                ) {
                    return false;
                }
                windows.push(from);
            }
            _ => {}
        }
    }
    // The rows that are masked must be the same in every load: same tensor, same other windows.
    let same = windows.windows(2).all(|pair| {
        pair[0].base == pair[1].base
            && pair[0].dims.len() == pair[1].dims.len()
            && pair[0].dims.iter().zip(&pair[1].dims).filter(|(a, b)| !same_dim(k, a, b)).count() <= 1
    });
    zero && same
}

fn same_dim(k: &Kernel, a: &ViewDim, b: &ViewDim) -> bool {
    match (a, b) {
        (ViewDim::Fixed(a), ViewDim::Fixed(b)) => same_expr(k, *a, *b),
        (ViewDim::From { starts: a, end: p }, ViewDim::From { starts: b, end: q }) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(&a, &b)| same_expr(k, a, b))
                && match (p, q) {
                    (None, None) => true,
                    (Some(p), Some(q)) => same_expr(k, *p, *q),
                    _ => false,
                }
        }
        _ => false,
    }
}
