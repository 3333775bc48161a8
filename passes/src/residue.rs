//! `residue`: puts the partial tile of a reduction first.
//!
//! A loop `for k in S..E step B` that loads windows `k..` of dimensions of extent `K`, where `E` is `K` or the minimum
//! of `K` and a bound that is whole steps away from `S`, becomes `@(ragged)`: its *first* tile is the ragged one
//! (`S..S + r`, `r = (E - S) - (ceildiv(E - S, B) - 1) * B`). The steady iterations then read full tiles, and their
//! remaining checks (rows) are loop-invariant. So masked registers keep the zeros with which they were initialised
//! (`keep`), and the predicates are computed once. CUTLASS 2.x also loads its residue tile first. `expand` writes the
//! loop: a pipelined loop loads the ragged tile in its prologue; in other loops the first iteration is peeled.
//!
//! If the loop may have no iteration, the windows in front of it have the condition `S < E`.
//!
//! Needs: stages of loops that have them; `expand`. Declines, with a remark, if the result depends on where the
//! reduction is cut. Switched off: every tile is checked.

use crate::Cx;
use crate::analysis::access_width::kept_dims;
use crate::analysis::bounds::End;
use crate::analysis::facts::Facts;
use crate::analysis::product_loops::{accumulator, cut_along_other_dim, outlives, unfinished_sum};
use crate::analysis::uses::{all_stmts, mentions, stmt_exprs};
use crate::analysis::views::copy_shape;
use crate::analysis::wgmma::is_scheduled;
use crate::rewrite::{add_condition, same_expr};
use tilec_ir::diag::{Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view, same_product};

pub(crate) const NAME: &str = "residue";

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    // Loops of roles must match the other roles' loops over the same channels, so they are not changed.
    if !cx.enabled || !cx.options.expands() || is_scheduled(k) {
        return Ok(());
    }
    let of_roles: Vec<Stmt> = k.blocks[k.body]
        .iter()
        .filter_map(|&s| match k.stmts[s] {
            StmtData::Role { body, .. } => Some(all_stmts(k, body)),
            _ => None,
        })
        .flatten()
        .collect();
    let short = short_loops(k);
    for s in all_stmts(k, k.body) {
        let left_out = of_roles.contains(&s) || short.contains(&s);
        if matches!(k.stmts[s], StmtData::For { unroll: false, .. }) && !left_out && !k.plans[s].ragged {
            match Residue::of(k, s) {
                Ok(Some(residue)) => {
                    k.plans[s].ragged = true;
                    let extent = print_expr(k, residue.extent);
                    let what =
                        format!("the first tile along `{extent}` is the ragged one; full tiles follow unchecked");
                    cx.remark(k.stmt_spans[s], what);
                }
                Ok(None) => {}
                Err(why) => cx.remark(k.stmt_spans[s], format!("residue not peeled: {why}")),
            }
        }
    }
    Ok(())
}

/// Loops that run few iterations because of a condition around them,
/// `if 64 < K { .. } else { for k in 0..K step 32 { .. } }`, so that a peeled ragged tile gains nothing. `expand`
/// writes such a loop as the alternative of a pipelined one.
fn short_loops(k: &Kernel) -> Vec<Stmt> {
    /// Most iterations of such a loop: a pipeline has at most this many slots.
    const FEW: i64 = 16;
    let beyond = |start: Expr, a: Expr| match k.exprs[a] {
        _ if k.as_int(start) == Some(0) => k.as_int(a),
        ExprData::Op { op: Op::Add, ref args } if same_expr(k, args[0], start) => k.as_int(args[1]),
        _ => None,
    };
    let mut short = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::If { cond, otherwise: Some(otherwise), .. } = k.stmts[s] else { continue };
        let ExprData::Op { op: Op::Lt, ref args } = k.exprs[cond] else { continue };
        short.extend(k.blocks[otherwise].iter().copied().filter(|&s| match k.stmts[s] {
            StmtData::For { start, end, step, .. } if same_expr(k, args[1], end) => {
                beyond(start, args[0]).zip(k.as_int(step)).is_some_and(|(n, step)| n <= FEW.saturating_mul(step))
            }
            _ => false,
        }));
    }
    short
}

/// A loop over a reduction whose first tile can be ragged.
pub(crate) struct Residue {
    /// The extent `K` of a tensor's dimension.
    extent: Expr,
    /// Start (`None`: 0) and end of the reduction.
    start: Option<Expr>,
    end: Expr,
    /// Whether it covers the whole extent: it has an iteration, and everything past its end reads as zero.
    pub(crate) whole: bool,
    step: i64,
    /// Copies of the body that load windows along the reduction, and the dimension of their tensor.
    fetches: Vec<(Stmt, usize)>,
}

impl Residue {
    /// `Ok(None)`: not a reduction over a ragged extent.
    pub(crate) fn of(k: &Kernel, at: Stmt) -> Result<Option<Residue>, String> {
        let StmtData::For { var, start, end, step, cond: None, body, .. } = k.stmts[at] else { return Ok(None) };
        let Some(bound) = End::of(k, end) else { return Ok(None) };
        let Some(step) = k.as_int(step).filter(|&s| s > 1 && s.count_ones() == 1) else { return Ok(None) };
        let start = match k.as_int(start) {
            Some(0) => None,
            // A range with a negative start is no reduction over the tensor.
            Some(n) if n < 0 => return Ok(None),
            _ => Some(start),
        };
        let facts = Facts::new(k);
        let tiles = step.unsigned_abs();
        let begins_whole = start.is_none_or(|start| facts.divisor(k, bound.start(k, start)) >= tiles);
        if facts.divisor(k, bound.extent) >= tiles && begins_whole {
            return Ok(None);
        }
        // With a single stage, the loop is treated like one without stages.
        let last = k.blocks[body].iter().filter_map(|&s| k.plans[s].stage).max().filter(|&last| last > 0);
        let mut fetches: Vec<(Stmt, usize)> = Vec::new();
        for s in all_stmts(k, body) {
            let uses = crate::analysis::uses::stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, var));
            if !uses {
                continue;
            }
            let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else {
                return Err(format!("`{}` is used by more than copies", k.values[var].name));
            };
            // TMA needs no checks: elements past the end are zero.
            if !attrs.is_by_threads() {
                return Ok(None);
            }
            // Other tiles would have other elements outside the bounds.
            if attrs.fill.is_some() {
                return Err("a copy fills elements outside the bounds with another number than zero".to_owned());
            }
            let other = || format!("a copy uses `{}` other than as `{0}..`", k.values[var].name);
            let view = resolve_view(k, src).ok_or_else(other)?;
            let dim = reduction_dim(k, &view, var, bound.extent).ok_or_else(other)?;
            if !has_range(k, src, view.base) || attrs.when.is_some_and(|e| mentions(k, e, var)) {
                return Err(other());
            }
            if last.is_some() && (k.plans[s].stage >= last || used_elsewhere(k, s)) {
                return Err(format!("the loads of `{}` are not only put into a channel", k.values[view.base].name));
            }
            let width = view.base_dims().iter().position(|&d| d == dim).zip(copy_shape(k, src, dst)).map(|(w, s)| s[w]);
            if width != Some(tiles) {
                let name = &k.values[view.base].name;
                return Err(format!("the tiles of `{name}` are not as wide as the step of the loop"));
            }
            fetches.push((s, dim));
        }
        // Nothing is loaded, or checks are written: the loop has been peeled before, or not.
        if fetches.is_empty() || fetches.iter().any(|&(s, _)| is_checked_as_written(k, s)) {
            return Ok(None);
        }
        if let Some(v) = last.is_none().then(|| read_before(k, body, &fetches)).flatten() {
            return Err(format!("an iteration reads `{}` before it fills it", k.values[v].name));
        }
        if let Some(why) = order_matters(k, body, &fetches) {
            return Err(why);
        }
        if !bound.whole_steps(k, &facts, start, tiles) {
            let extent = print_expr(k, bound.extent);
            return Err(format!("it is not known to have whole steps of {step} where it ends in front of `{extent}`"));
        }
        let whole = bound.or.is_none() && start.is_none();
        if let Some(v) = outlives(k, body) {
            return Err(format!("the last tile in `{}` is also used outside the loop", k.values[v].name));
        }
        Ok(Some(Residue { extent: bound.extent, start, end, whole, step, fetches }))
    }

    /// The reduction dimension of the tensor that a statement of the loop loads.
    pub(crate) fn fetched(&self, s: Stmt) -> Option<usize> {
        self.fetches.iter().find(|&&(fetch, _)| fetch == s).map(|&(_, dim)| dim)
    }

    /// `S + r + n * B`, without zero terms.
    pub(crate) fn place(&self, k: &mut Kernel, r: Value, n: i64, span: Span) -> Expr {
        let head = k.value_ref(r, span);
        let first = match self.start {
            None => head,
            Some(start) => {
                let start = k.copy_expr(start);
                k.binary(Op::Add, start, head, span)
            }
        };
        let rest = k.int(n * self.step, span);
        k.binary(Op::Add, first, rest, span)
    }

    /// The start of the reduction.
    pub(crate) fn first(&self, k: &mut Kernel, span: Span) -> Expr {
        match self.start {
            None => k.int(0, span),
            Some(start) => k.copy_expr(start),
        }
    }

    /// The number of elements of the ragged tile: `r`.
    pub(crate) fn head(&self, k: &mut Kernel, span: Span) -> Expr {
        let step = self.step;
        if !self.whole {
            // B - (S - E) % B, which is from 1 to B for any S and E.
            let (start, end) = (self.first(k, span), k.copy_expr(self.end));
            let (b1, b2) = (k.int(step, span), k.int(step, span));
            let back = k.binary(Op::Sub, start, end, span);
            let missing = k.expr(ExprData::Op { op: Op::Rem, args: vec![back, b1] }, span);
            return k.binary(Op::Sub, b2, missing, span);
        }
        let size = |k: &mut Kernel| k.copy_expr(self.end);
        let (e1, e2, b1, b2, one) = (size(k), size(k), k.int(step, span), k.int(step, span), k.int(1, span));
        let tiles = k.expr(ExprData::Op { op: Op::CeilDiv, args: vec![e2, b1] }, span);
        let full = k.binary(Op::Sub, tiles, one, span);
        let covered = k.binary(Op::Mul, full, b2, span);
        k.binary(Op::Sub, e1, covered, span)
    }

    /// Makes a copied load read the window of the first tile, `S..S + r`.
    pub(crate) fn cut(&self, k: &mut Kernel, s: Stmt, dim: usize, r: Value) {
        let span = k.stmt_spans[s];
        let (start, end) = (self.first(k, span), self.place(k, r, 0, span));
        set_range(k, s, dim, Range::From { start, end: Some(end) });
    }

    /// The condition that the loop has an iteration: `S < E`.
    pub(crate) fn any(&self, k: &mut Kernel, span: Span) -> Expr {
        let (start, end) = (self.first(k, span), k.copy_expr(self.end));
        k.binary(Op::Lt, start, end, span)
    }

    /// Makes a copied load start at `begin`. With `ends`, the window is empty if that is past the end.
    pub(crate) fn begin(&self, k: &mut Kernel, s: Stmt, dim: usize, begin: Expr, ends: bool) {
        let span = k.stmt_spans[s];
        if ends {
            let (again, end) = (k.copy_expr(begin), k.copy_expr(self.end));
            let cond = k.binary(Op::Lt, again, end, span);
            add_condition(k, s, cond);
        }
        set_range(k, s, dim, Range::From { start: begin, end: None });
    }
}

/// Whether a copy's window is written as ranges of the tensor itself, so that it can be changed.
fn has_range(k: &Kernel, src: Expr, tensor: Value) -> bool {
    matches!(&k.exprs[src], ExprData::View(view) if view.base == tensor && !view.ranges.is_empty())
}

fn set_range(k: &mut Kernel, s: Stmt, dim: usize, range: Range) {
    let StmtData::Copy { src, .. } = k.stmts[s] else { unreachable!("a fetch is a copy") };
    if let ExprData::View(view) = &mut k.exprs[src]
        && let Some(slot) = view.ranges.get_mut(dim)
    {
        *slot = range;
    }
}

/// Why other cuts of the reduction would change the loop's result. `None`: they would not, because the body only loads
/// and moves tiles and accumulates their products, and a sum of products does not depend on the cuts.
fn order_matters(k: &Kernel, body: Block, fetches: &[(Stmt, usize)]) -> Option<String> {
    for s in all_stmts(k, body) {
        if fetches.iter().any(|&(fetch, _)| fetch == s) {
            continue;
        }
        if let Some(tile) = stmt_exprs(k, s).into_iter().find_map(|e| tile_read_with_end(k, e)) {
            return Some(format!(
                "its body reads a window of `{}` that ends, which is other elements of other tiles",
                k.values[tile].name
            ));
        }
        match k.stmts[s] {
            StmtData::Copy { src, dst, .. } => {
                let (Some(from), Some(to)) = (resolve_view(k, src), resolve_view(k, dst)) else {
                    return Some("its body computes with the loaded elements".into());
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
    if fetches.iter().any(|&(s, dim)| cut_along_other_dim(k, body, s, dim).is_some()) {
        return Some("the loaded tile is multiplied along another dimension".into());
    }
    unfinished_sum(k, body).map(|v| format!("its body uses the sum `{}` before it is whole", k.values[v].name))
}

/// A tile of which an expression reads a window with an end.
fn tile_read_with_end(k: &Kernel, e: Expr) -> Option<Value> {
    let own = resolve_view(k, e).filter(|view| k.tensor_ty(view.base).is_none());
    let ends = own.filter(|view| view.dims.iter().any(|dim| matches!(dim, ViewDim::From { end: Some(_), .. })));
    ends.map(|view| view.base).or_else(|| k.children(e).into_iter().find_map(|child| tile_read_with_end(k, child)))
}

/// A tile that a loop loads and in an iteration also reads as the iteration before has left it, so that the order of the
/// tiles matters.
fn read_before(k: &Kernel, body: Block, fetches: &[(Stmt, usize)]) -> Option<Value> {
    let stmts = all_stmts(k, body);
    fetches.iter().find_map(|&(fetch, _)| {
        let StmtData::Copy { dst, .. } = k.stmts[fetch] else { unreachable!("a fetch is a copy") };
        let filled = resolve_view(k, dst).filter(|v| v.slot.is_none())?.base;
        let before = stmts.iter().take_while(|&&s| s != fetch);
        let reads = |&s: &Stmt| match k.stmts[s] {
            StmtData::Copy { src, dst, .. } => {
                mentions(k, src, filled)
                    || resolve_view(k, dst).is_none_or(|v| v.base != filled) && mentions(k, dst, filled)
            }
            _ => stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, filled)),
        };
        before.into_iter().any(reads).then_some(filled)
    })
}

/// Whether a register tile that a load fills is used otherwise than to fill a channel slot.
fn used_elsewhere(k: &Kernel, fetch: Stmt) -> bool {
    let StmtData::Copy { dst, .. } = k.stmts[fetch] else { unreachable!("a fetch is a copy") };
    let Some(filled) = resolve_view(k, dst).filter(|v| v.slot.is_none()).map(|v| v.base) else { return false };
    all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => {
            mentions(k, src, filled) && resolve_view(k, dst).is_none_or(|v| v.slot.is_none())
        }
        _ => crate::analysis::uses::stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, filled)),
    })
}

/// The tensor's dimension whose window starts at `var` and whose extent is `extent`, if `var` has no other use.
fn reduction_dim(k: &Kernel, view: &ResolvedView, var: Value, extent: Expr) -> Option<usize> {
    if view.transposed {
        return None;
    }
    let shape = &k.tensor_ty(view.base)?.shape;
    let is_var = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if v == var);
    let mut found = None;
    for (d, dim) in view.dims.iter().enumerate() {
        match dim {
            ViewDim::From { starts, end } => {
                let at_var = matches!(starts[..], [start] if is_var(start));
                if at_var && same_product(k, shape[d], extent) && end.is_none() && found.is_none() {
                    found = Some(d);
                } else if starts.iter().chain(end).any(|&e| mentions(k, e, var)) {
                    return None;
                }
            }
            ViewDim::Fixed(e) | ViewDim::Gather(e) => {
                if mentions(k, *e, var) {
                    return None;
                }
            }
        }
    }
    found
}

/// Whether the text says in which dimensions a load is checked.
fn is_checked_as_written(k: &Kernel, s: Stmt) -> bool {
    matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if attrs.check.is_some())
}

/// Makes a copied load read full tiles: its reduction dimension is not checked, and masked registers keep their zeros.
pub(crate) fn steady(k: &mut Kernel, s: Stmt, dim: usize) {
    let StmtData::Copy { src, dst, attrs } = k.stmts[s].clone() else { unreachable!("a fetch is a copy") };
    let view = resolve_view(k, src).expect("a fetch is of a window");
    // `check` counts the dimensions that the window keeps.
    let kept = kept_dims(&view);
    let all: Vec<u32> = (0..kept.len() as u32).collect();
    let check: Vec<u32> =
        attrs.check.unwrap_or(all).into_iter().filter(|&d| kept.get(d as usize) != Some(&dim)).collect();
    // Lines in the padding change from tile to tile.
    let keep = zero_initialised(k, dst) && k.tensor_ty(view.base).is_none_or(|t| t.padded.is_empty());
    if let StmtData::Copy { attrs, .. } = &mut k.stmts[s] {
        attrs.keep = keep && !check.is_empty() && attrs.unaligned().is_none() && !attrs.is_prefetch();
        attrs.check = Some(check);
    }
}

/// Whether a register tile starts as zeros and is only written by loads, so that masked elements are always zero.
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
    // The masked rows must be the same in every load: same tensor, same other windows.
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
