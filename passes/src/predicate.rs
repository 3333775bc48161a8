//! `predicate`: peel the residue of reductions and drop bounds checks that cannot fail.
//!
//! A copy checks every dimension of its window by default. Here:
//!
//! * a dimension whose window always lies inside the extent is not checked: block tiles of extents that are known
//!   multiples of the tile, and reduction steps that divide the extent;
//! * a loop `for k in S..K step B` that fetches windows `k..` of dimensions of extent `K` is shifted so that its *first*
//!   tile is the ragged one (`0..r`, `r = K - (ceildiv(K, B) - 1) * B`): the steady iterations then read full tiles, and
//!   their remaining checks (rows) do not change from one to the next, so masked registers keep the zeros they were
//!   initialised with (`keep`) and the predicates are loop-invariant. CUTLASS 2.x loads its residue tile first too. A loop
//!   that was not pipelined has its first iteration peeled off instead.
//!
//! Needs: pipelined loops if they are to be pipelined. Switched off: everything is checked at every access.

use crate::Cx;
use crate::analysis::facts::Facts;
use crate::analysis::uses::{all_stmts, mentions, path_to};
use crate::analysis::width::kept_dims;
use crate::rewrite::{Map, Subst, clone_block, same_expr};
use crate::vectorize::{accessed_views, copy_shape};
use tilec_ir::deferred::Deferred;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled {
        return Ok(());
    }
    for s in all_stmts(k, k.body) {
        if let StmtData::For { unroll: false, .. } = k.stmts[s] {
            match Residue::of(k, s) {
                Ok(Some(residue)) => residue.apply(k, cx),
                Ok(None) => {}
                Err(why) => cx.remark(k.stmt_spans[s], format!("residue not peeled: {why}")),
            }
        }
    }
    drop_checks(k, cx);
    Ok(())
}

/// The global side of a copy.
fn global_side(k: &Kernel, src: Expr, dst: Expr) -> Option<(Expr, ResolvedView)> {
    [src, dst].into_iter().find_map(|e| {
        let view = resolve_view(k, e)?;
        k.tensor_ty(view.base).is_some().then_some((e, view))
    })
}

/// A loop over a reduction whose first tile can be the ragged one.
struct Residue {
    at: Stmt,
    var: Value,
    /// The extent `K`, that of a dimension of a tensor.
    extent: Expr,
    /// Iterations before the loop, already laid out by the pipeline.
    skipped: i64,
    /// Tiles by which the body's fetches are ahead of the loop variable.
    ahead: i64,
    step: i64,
    /// Copies of the body that fetch windows of the reduction, with the dimension of their tensor.
    fetches: Vec<(Stmt, usize)>,
    /// Copies before the loop that fetch its first tiles, with the dimension and the tile's number.
    prologue: Vec<(Stmt, usize, i64)>,
}

impl Residue {
    /// `Ok(None)`: not a reduction over a ragged extent.
    fn of(k: &Kernel, at: Stmt) -> Result<Option<Residue>, String> {
        let StmtData::For { var, start, end, step, body, .. } = k.stmts[at] else { return Ok(None) };
        let extent = end;
        let (Some(start), Some(step)) = (k.as_int(start), k.as_int(step)) else { return Ok(None) };
        let of_tensor = |v: Value| k.tensor_ty(v).is_some_and(|t| t.shape.iter().any(|&e| same_product(k, e, extent)));
        let reduces = match k.exprs[extent] {
            ExprData::Ref(v) => matches!(k.values[v].def, ValueDef::Size),
            _ => k.as_int(extent).is_none() && k.params.iter().any(|&v| of_tensor(v)),
        };
        if !reduces || step <= 1 || start % step != 0 || start < 0 {
            return Ok(None);
        }
        if Facts::new(k).divisor(k, extent) >= step as u64 {
            return Ok(None);
        }
        let mut fetches = Vec::new();
        let mut ahead = None;
        for s in all_stmts(k, body) {
            let uses = crate::analysis::uses::stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, var));
            if !uses {
                continue;
            }
            let StmtData::Copy { src, .. } = k.stmts[s] else {
                return Err(format!("`{}` is used by more than copies", k.values[var].name));
            };
            let dim = resolve_view(k, src).and_then(|view| reduction_dim(k, &view, var, extent));
            match dim {
                Some((dim, distance))
                    if distance % step == 0 && *ahead.get_or_insert(distance / step) == distance / step =>
                {
                    fetches.push((s, dim));
                }
                _ => return Err(format!("a copy uses `{}` other than as `{0}..`", k.values[var].name)),
            }
        }
        if fetches.is_empty() {
            return Ok(None);
        }
        if let Some(why) = order_matters(k, body, &fetches) {
            return Err(why);
        }
        let (skipped, ahead) = (start / step, ahead.unwrap_or(0));
        let mut residue = Residue { at, var, extent, skipped, ahead, step, fetches, prologue: Vec::new() };
        residue.find_prologue(k)?;
        Ok(Some(residue))
    }

    /// Every fetch of the loop must have its counterparts for the tiles before the loop.
    fn find_prologue(&mut self, k: &Kernel) -> Result<(), String> {
        if self.lead() > 0
            && let Some(v) = self.fetches.iter().find_map(|&(s, _)| used_elsewhere(k, s))
        {
            return Err(format!("`{}` is not only put into a channel", k.values[v].name));
        }
        let Some((block, index)) = path_to(k, self.at).and_then(|p| p.last().copied()) else { return Ok(()) };
        for tile in 0..self.lead() {
            for &(fetch, dim) in &self.fetches {
                let found = k.blocks[block][..index]
                    .iter()
                    .copied()
                    .find(|&s| fetches_tile(k, s, fetch, dim, tile * self.step));
                match found {
                    Some(s) => self.prologue.push((s, dim, tile)),
                    None => return Err("the fetches before the loop have another form".into()),
                }
            }
        }
        Ok(())
    }

    /// Tiles fetched before the loop.
    fn lead(&self) -> i64 {
        self.skipped + self.ahead
    }

    fn apply(&self, k: &mut Kernel, cx: &mut Cx<'_>) {
        let span = k.stmt_spans[self.at];
        let Some((block, index)) = path_to(k, self.at).and_then(|p| p.last().copied()) else { return };
        // r = K - (ceildiv(K, B) - 1) * B
        let size = |k: &mut Kernel| self.size(k);
        let (e1, e2, b1, b2, one) = (size(k), size(k), k.int(self.step, span), k.int(self.step, span), k.int(1, span));
        let tiles = k.expr(ExprData::Op { op: Op::CeilDiv, args: vec![e2, b1] }, span);
        let full = k.binary(Op::Sub, tiles, one, span);
        let covered = k.binary(Op::Mul, full, b2, span);
        let init = k.binary(Op::Sub, e1, covered, span);
        let name = format!("{}_head", k.values[self.var].name);
        let r = k.value(&name, span, ValueDef::Let);
        let decl = k.stmt(StmtData::Let { value: r, init }, span);

        // `r` is needed by the earliest of the copies in front of the loop.
        let position = |s: Stmt| k.blocks[block].iter().position(|&x| x == s);
        let mut place = self.prologue.iter().filter_map(|p| position(p.0)).min().unwrap_or(index);
        for &(s, dim, tile) in &self.prologue {
            self.shift_prologue(k, s, dim, tile, r);
        }
        if self.lead() == 0 {
            // Not pipelined: the first iteration moves in front of the loop, with its windows cut at `r`.
            let StmtData::For { body, .. } = k.stmts[self.at] else { return };
            let zero = k.int(0, span);
            let mut map = Map(vec![(self.var, Subst::Expr(zero))]);
            let peeled = clone_block(k, body, &mut map);
            for s in all_stmts(k, peeled) {
                if let Some(&(_, dim)) = self.fetches.iter().find(|&&(f, dim)| fetches_tile(k, s, f, dim, 0)) {
                    self.shift_prologue(k, s, dim, 0, r);
                }
            }
            let list = k.blocks[peeled].clone();
            place = index;
            k.blocks[block].splice(index..index, list);
        }
        k.blocks[block].insert(place, decl);

        // The loop variable now names the tile after the one it named: tile `t` begins at `r + (t - 1) * B`.
        let shift = if self.ahead > 0 { self.skipped } else { self.skipped.max(1) - 1 };
        let (r_ref, shift) = (k.value_ref(r, span), k.int(shift * self.step, span));
        let new_start = k.binary(Op::Add, r_ref, shift, span);
        let size = self.size(k);
        let one = k.int(self.step, span);
        let past = k.binary(Op::Add, size, one, span);
        if let StmtData::For { start, end, .. } = &mut k.stmts[self.at] {
            *start = new_start;
            if self.ahead > 0 {
                *end = past;
            }
        }
        for &(s, dim) in &self.fetches {
            if self.ahead > 0 {
                let var = k.value_ref(self.var, span);
                let distance = k.int((self.ahead - 1) * self.step, span);
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

    /// The extent once more.
    fn size(&self, k: &mut Kernel) -> Expr {
        k.clone_expr(self.extent, &mut |_, _| None)
    }

    /// Tile `n` of the reduction now covers `0..r` (n = 0) or starts at `r + (n - 1) * B`.
    fn shift_prologue(&self, k: &mut Kernel, s: Stmt, dim: usize, tile: i64, r: Value) {
        let span = k.stmt_spans[s];
        let r_ref = k.value_ref(r, span);
        if tile == 0 {
            let zero = k.int(0, span);
            set_range(k, s, dim, Range::From { start: zero, end: Some(r_ref) });
        } else {
            let lead = k.int((tile - 1) * self.step, span);
            let begin = k.binary(Op::Add, r_ref, lead, span);
            if self.ahead > 0 {
                self.begin_at(k, s, dim, begin);
                steady(k, s, dim);
            } else {
                set_range(k, s, dim, Range::From { start: begin, end: None });
            }
        }
    }

    /// A fetch ahead reads the full tile at `begin`, or nothing if that is past the end.
    fn begin_at(&self, k: &mut Kernel, s: Stmt, dim: usize, begin: Expr) {
        let span = k.stmt_spans[s];
        let again = k.clone_expr(begin, &mut |_, _| None);
        let extent = self.size(k);
        let cond = k.binary(Op::Lt, again, extent, span);
        set_range(k, s, dim, Range::From { start: begin, end: None });
        add_condition(k, s, cond);
    }
}

fn set_range(k: &mut Kernel, s: Stmt, dim: usize, range: Range) {
    let StmtData::Copy { src, .. } = k.stmts[s] else { return };
    if let ExprData::View(view) = &mut k.exprs[src]
        && let Some(slot) = view.ranges.get_mut(dim)
    {
        *slot = range;
    }
}

/// The copy moves nothing unless `cond` holds.
fn add_condition(k: &mut Kernel, s: Stmt, cond: Expr) {
    let span = k.stmt_spans[s];
    let StmtData::Copy { attrs, .. } = &k.stmts[s] else { return };
    let both = match attrs.when {
        Some(other) => k.binary(Op::And, other, cond, span),
        None => cond,
    };
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        attrs.when = Some(both);
    }
}

/// Why cutting the reduction into tiles at other places would change what the loop computes; `None` if it would not: the
/// body only fetches tiles, moves them, and accumulates products of them, and a sum of products does not depend on where it
/// is cut.
fn order_matters(k: &Kernel, body: tilec_ir::entities::Block, fetches: &[(Stmt, usize)]) -> Option<String> {
    for s in all_stmts(k, body) {
        if fetches.iter().any(|&(f, _)| f == s) {
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
            StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_)) => {}
            StmtData::For { unroll: true, .. } | StmtData::Channel { .. } | StmtData::Barrier => {}
            _ => return Some("its body is more than a sum of products".into()),
        }
    }
    None
}

/// The register tile that a fetch fills, if something else than a channel slot gets what it holds.
fn used_elsewhere(k: &Kernel, fetch: Stmt) -> Option<Value> {
    let StmtData::Copy { dst, .. } = k.stmts[fetch] else { return None };
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

/// Whether `s` fetches the window of `model` with `start` in dimension `dim` instead of the loop variable.
fn fetches_tile(k: &Kernel, s: Stmt, model: Stmt, dim: usize, start: i64) -> bool {
    let (StmtData::Copy { src: a, dst: to_a, .. }, StmtData::Copy { src: b, dst: to_b, .. }) =
        (&k.stmts[s], &k.stmts[model])
    else {
        return false;
    };
    let (ExprData::View(v), ExprData::View(w)) = (&k.exprs[*a], &k.exprs[*b]) else { return false };
    if v.base != w.base || v.ranges.len() != w.ranges.len() || !same_expr(k, *to_a, *to_b) {
        return false;
    }
    v.ranges.iter().zip(&w.ranges).enumerate().all(|(d, (x, y))| match (x, y) {
        (Range::From { start: p, end: None }, Range::From { start: q, end: None }) => {
            if d == dim {
                k.as_int(*p) == Some(start)
            } else {
                same_expr(k, *p, *q)
            }
        }
        (Range::At(p), Range::At(q)) => same_expr(k, *p, *q),
        _ => false,
    })
}

/// A fetch of full tiles: its reduction dimension is not checked, and masked registers keep their zeros.
fn steady(k: &mut Kernel, s: Stmt, dim: usize) {
    let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { return };
    let Some(view) = resolve_view(k, src) else { return };
    // `check` counts the dimensions that the window keeps.
    let kept = kept_dims(&view);
    let all: Vec<u32> = (0..kept.len() as u32).collect();
    let check: Vec<u32> =
        attrs.check.unwrap_or(all).into_iter().filter(|&d| kept.get(d as usize) != Some(&dim)).collect();
    let keep = zero_initialised(k, dst);
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        attrs.keep = keep && !check.is_empty();
        attrs.check = Some(check);
    }
}

/// Whether a register tile starts as zeros and is written by loads only, so that masked elements are zero before and after.
fn zero_initialised(k: &Kernel, dst: Expr) -> bool {
    let Some(var) = crate::assign_layouts::plain_var(k, dst) else { return false };
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

/// Leaves out checks of dimensions whose windows lie inside the extent for every launch that meets the preconditions.
fn drop_checks(k: &mut Kernel, cx: &mut Cx<'_>) {
    let facts = Facts::new(k);
    let deferred = Deferred::of(k);
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { continue };
        let Some((_, view)) = global_side(k, src, dst) else { continue };
        let Some(shape) = copy_shape(k, src, dst) else { continue };
        let kept = kept_dims(&view);
        // What is dropped is dropped for all windows of the copy.
        let others: Vec<ResolvedView> = [accessed_views(k, &deferred, src), accessed_views(k, &deferred, dst)]
            .concat()
            .into_iter()
            .filter(|v| k.tensor_ty(v.base).is_some())
            .collect();
        if kept.len() != shape.len() || others.iter().any(|v| v.kept().len() != shape.len()) {
            continue;
        }
        let checked: Vec<u32> = attrs.check.clone().unwrap_or_else(|| (0..kept.len() as u32).collect());
        let still: Vec<u32> = checked
            .iter()
            .copied()
            .filter(|&w| {
                let w = w as usize;
                !others.iter().all(|v| always_inside(k, &facts, v, v.kept()[w], shape[w]))
            })
            .collect();
        // Windows that are inside as a whole or not at all need one comparison for all threads.
        let fetch = resolve_view(k, src).is_some_and(|v| k.tensor_ty(v.base).is_some());
        let still: Vec<u32> = still
            .into_iter()
            .filter(|&w| {
                let position = if view.transposed { kept.len() - 1 - w as usize } else { w as usize };
                let cond = if fetch { whole_or_not(k, &facts, &view, kept[position], shape[w as usize]) } else { None };
                if let Some((start, extent)) = cond {
                    let span = k.stmt_spans[s];
                    let copies = [start, extent].map(|e| k.clone_expr(e, &mut |_, _| None));
                    let cond = k.binary(Op::Lt, copies[0], copies[1], span);
                    add_condition(k, s, cond);
                }
                cond.is_none()
            })
            .collect();
        let names: Vec<String> = still.iter().map(u32::to_string).collect();
        if attrs.check.as_ref() != Some(&still) {
            let text = if still.is_empty() {
                "no bounds are checked".into()
            } else {
                format!("bounds checked: dimension {}", names.join(", "))
            };
            cx.remark(k.stmt_spans[s], format!("`{}`: {text}", k.values[view.base].name));
        }
        if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
            attrs.keep &= !still.is_empty();
            attrs.check = Some(still);
        }
    }
}

/// Start and extent of a window that moves with a loop or lies past the beginning, and of whose `tile` elements in dimension
/// `dim` either all are inside or none: both are multiples of the tile.
fn whole_or_not(k: &Kernel, facts: &Facts, view: &ResolvedView, dim: usize, tile: u64) -> Option<(Expr, Expr)> {
    let ViewDim::From { starts, end: None } = &view.dims[dim] else { return None };
    let &extent = k.tensor_ty(view.base)?.shape.get(dim)?;
    let [start] = starts[..] else { return None };
    (facts.divisor(k, extent) >= tile && facts.divisor(k, start) >= tile).then_some((start, extent))
}

/// Whether the window of `tile` elements in dimension `dim` never reaches past the extent.
fn always_inside(k: &Kernel, facts: &Facts, view: &ResolvedView, dim: usize, tile: u64) -> bool {
    let ViewDim::From { starts, end: None } = &view.dims[dim] else { return false };
    let Some(&extent) = k.tensor_ty(view.base).and_then(|t| t.shape.get(dim)) else { return false };
    if facts.divisor(k, extent) < tile {
        return false;
    }
    let [start] = starts[..] else { return false };
    if k.as_int(start) == Some(0) {
        return true;
    }
    // `i * tile` for a grid index over ceildiv(extent, tile).
    let block = |e: Expr| -> Option<Value> {
        match &k.exprs[e] {
            ExprData::Op { op: Op::Mul, args } => match (&k.exprs[args[0]], k.as_int(args[1])) {
                (ExprData::Ref(v), Some(c)) if c as u64 == tile => Some(*v),
                _ => None,
            },
            _ => None,
        }
    };
    if let Some(index) = block(start)
        && let Some(axis) = k.grid.iter().find(|g| g.index == index)
        && let ExprData::Op { op: Op::CeilDiv, args } = &k.exprs[axis.extent]
    {
        return same_product(k, args[0], extent) && k.as_int(args[1]) == Some(tile as i64);
    }
    // A loop from a multiple of the tile to the extent in steps of the tile.
    if let ExprData::Ref(v) = k.exprs[start] {
        return all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
            StmtData::For { var, start, end, step, .. } => {
                var == v
                    && same_product(k, end, extent)
                    && k.as_int(step).is_some_and(|x| (x as u64).is_multiple_of(tile))
                    && facts.divisor(k, start) >= tile
            }
            _ => false,
        });
    }
    false
}
