//! That a role loads no element of a tensor which another one stores.
//!
//! Nothing tells when a tensor store has arrived. A role may load what another one stores all the same if no load comes after the
//! store of an element that it loads:
//!
//! * they stand on different sides of a condition that is decided once; or
//! * both walk over tiles ([`walked`]) in the same order, and touch no other than their own. Of its own tile the load has arrived
//!   in a slot for which the storing role has waited in front of the store.

use super::prove::is_fixed;
use super::roles::alike;
use crate::analysis::uses::path_to;
use crate::rewrite::same_expr;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, let_init, resolve_view};

/// Whether `load`, of one role, never loads what `store`, a tensor store of another, has stored.
pub(super) fn apart(k: &Kernel, load: Stmt, store: Stmt) -> bool {
    let (Some(a), Some(b)) = (path_to(k, load), path_to(k, store)) else { return false };
    exclusive(k, &a, &b) || in_turn(k, (load, &a), (store, &b))
}

/// A block, and the index of a statement in it.
type Step = (Block, usize);

/// Whether the ways to two statements part at a condition that is the same for both, and decided once.
fn exclusive(k: &Kernel, a: &[Step], b: &[Step]) -> bool {
    let sides = |path: &[Step]| {
        let mut sides = Vec::new();
        for pair in path.windows(2) {
            if let StmtData::If { cond, then, .. } = k.stmts[k.blocks[pair[0].0][pair[0].1]] {
                sides.push((cond, pair[1].0 == then));
            }
        }
        sides
    };
    let (a, b) = (sides(a), sides(b));
    a.iter().any(|&(c, x)| b.iter().any(|&(d, y)| x != y && is_fixed(k, c) && alike(k, c, d, &[])))
}

/// Whether both are of the tile that their role is at, and the store waits for what was loaded.
fn in_turn(k: &Kernel, (load, a): (Stmt, &[Step]), (store, b): (Stmt, &[Step])) -> bool {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[load] else { return false };
    let StmtData::Copy { src: buffer, dst: to, .. } = k.stmts[store] else { return false };
    let (Some(from), Some(slot), Some(to)) = (resolve_view(k, *src), resolve_view(k, *dst), resolve_view(k, to)) else {
        return false;
    };
    let channel = matches!(k.values[slot.base].def, ValueDef::Channel { .. });
    let outermost = |path: &[Step]| {
        let stmts = path.iter().map(|&(block, index)| k.blocks[block][index]);
        stmts.into_iter().find(|&s| matches!(k.stmts[s], StmtData::For { .. }))
    };
    let (Some(x), Some(y)) = (outermost(a), outermost(b)) else { return false };
    let (Some(p), Some(q)) = (walked(k, x), walked(k, y)) else { return false };
    let bounds = |s: Stmt| match k.stmts[s] {
        StmtData::For { start, end, step, .. } => Some([start, end, step]),
        _ => None,
    };
    let same = bounds(x).zip(bounds(y)).is_some_and(|(x, y)| x.iter().zip(&y).all(|(&e, &f)| alike(k, e, f, &[])));
    let (Some(loaded), Some(stored)) = (fixed_shape(k, *dst), fixed_shape(k, buffer)) else { return false };
    let steps = own_tile(k, &from, p, &loaded);
    attrs.tensor
        && channel
        && same
        && steps.is_some()
        && steps == own_tile(k, &to, q, &stored)
        && waits_in_front(k, y, slot.base, store)
}

/// Whether all waits for a channel under a loop are in front of a statement.
fn waits_in_front(k: &Kernel, at: Stmt, channel: Value, before: Stmt) -> bool {
    let StmtData::For { body, .. } = k.stmts[at] else { return false };
    let (mut waits, mut passed, mut ok) = (false, false, true);
    k.walk(body, &mut |k, _, s| {
        passed |= s == before;
        if let StmtData::Channel { op: ChannelOp::Wait, channels, .. } = &k.stmts[s]
            && channels.contains(&channel)
        {
            waits = true;
            ok &= !passed;
        }
    });
    waits && ok
}

/// The steps from tile to tile, in elements, of a window of a matrix that stays within the tile with these indices.
fn own_tile(k: &Kernel, view: &ResolvedView, indices: [Value; 2], shape: &[u64]) -> Option<[i64; 2]> {
    let ([rows, cols], &[height, width]) = (&view.dims[..], shape) else { return None };
    let own = |dim: &ViewDim, index: Value, extent: u64| {
        let ViewDim::From { starts, end: None } = dim else { return None };
        let (mut step, mut first) = (None, 0i64);
        let mut terms = starts.clone();
        while let Some(e) = terms.pop() {
            match &k.exprs[e] {
                ExprData::Int(n) => first = first.checked_add(*n)?,
                ExprData::Op { op: Op::Add, args } => terms.extend(args),
                ExprData::Op { op: Op::Mul, args } => {
                    let &[a, b] = &args[..] else { return None };
                    let by = if is(k, a, index) { k.as_int(b)? } else { k.as_int(a).filter(|_| is(k, b, index))? };
                    if step.replace(by).is_some() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        let end = first.checked_add(i64::try_from(extent).ok()?)?;
        step.filter(|&step| first >= 0 && end <= step)
    };
    let steps = [own(rows, indices[0], height)?, own(cols, indices[1], width)?];
    (!view.transposed).then_some(steps)
}

fn is(k: &Kernel, e: Expr, v: Value) -> bool {
    matches!(k.exprs[e], ExprData::Ref(w) if w == v)
}

/// The operands of an operator.
fn args(k: &Kernel, e: Expr, op: Op) -> Option<[Expr; 2]> {
    match &k.exprs[e] {
        ExprData::Op { op: o, args } if *o == op => args[..].try_into().ok(),
        _ => None,
    }
}

/// What a name stands for.
fn named(k: &Kernel, e: Expr) -> Option<(Value, Expr)> {
    match k.exprs[e] {
        ExprData::Ref(v) => Some((v, let_init(k, v)?)),
        _ => None,
    }
}

/// The indices of the tile that a loop is at, if no two iterations are at the same:
///
/// ```text
/// for tile in ..R * C {                                   // or `min(R * C, n)`
///     let strip = tile / (R * g)
///     let place = tile % (R * g)
///     let columns = max(1, min(g, C - strip * g))
///     let row = min(place / columns, R - 1)               // or `min(..) * c + m`, where `m` is the block's
///     let col = min(strip * g + place % columns, C - 1)
/// ```
///
/// As `tile < R * C`, `strip * g < C`, so `columns` is the smaller of `g` and `C - strip * g`. Then `place < R * columns`: in full
/// strips because `place < R * g`, in the last one because `tile - strip * R * g < R * (C - strip * g)`. So `place / columns < R`, and
/// neither `min` changes anything. `col` tells `strip` (`place % columns < g`) and `place % columns`, `row` tells `place / columns`; with
/// them `place` is known, and with it `tile`.
fn walked(k: &Kernel, s: Stmt) -> Option<[Value; 2]> {
    let StmtData::For { var, end, body, .. } = k.stmts[s] else { return None };
    let lets = k.blocks[body].iter().filter_map(|&s| match k.stmts[s] {
        StmtData::Let { value, init } => Some((value, init)),
        _ => None,
    });
    let lets: Vec<(Value, Expr)> = lets.collect();
    let all = match args(k, end, Op::Min) {
        Some([all, most]) => k.as_int(most).map(|_| all)?,
        None => end,
    };
    let [rows, cols] = args(k, all, Op::Mul)?;
    let row = lets.iter().find_map(|&(v, init)| Some((v, Row::of(k, of_block(k, init), rows)?)));
    let (row, found) = row?;
    let col = lets.iter().find(|&&(_, init)| found.has_column(k, of_block(k, init), (var, rows, cols)))?.0;
    Some([row, col])
}

/// Without the block's place in a cluster: `x` of `x * c + m`.
fn of_block(k: &Kernel, e: Expr) -> Expr {
    let unit = args(k, e, Op::Add).filter(|&[_, m]| is_fixed(k, m)).and_then(|[first, _]| args(k, first, Op::Mul));
    unit.filter(|&[_, c]| k.as_int(c).is_some_and(|c| c > 0)).map_or(e, |[x, _]| x)
}

/// `n - 1`.
fn last(k: &Kernel, e: Expr, n: Expr) -> bool {
    args(k, e, Op::Sub).is_some_and(|[a, one]| same_expr(k, a, n) && k.as_int(one) == Some(1))
}

/// The parts of `min(place / columns, R - 1)`.
struct Row {
    place: (Value, Expr),
    columns: (Value, Expr),
}

impl Row {
    fn of(k: &Kernel, e: Expr, rows: Expr) -> Option<Row> {
        let [quotient, most] = args(k, e, Op::Min)?;
        let [place, columns] = args(k, quotient, Op::Div)?;
        let row = Row { place: named(k, place)?, columns: named(k, columns)? };
        last(k, most, rows).then_some(row)
    }

    /// Whether `e` is the column that belongs to it, and its parts are what they must be.
    fn has_column(&self, k: &Kernel, e: Expr, (tile, rows, cols): (Value, Expr, Expr)) -> bool {
        let matched = || {
            let [sum, most] = args(k, e, Op::Min)?;
            let [first, rest] = args(k, sum, Op::Add)?;
            let [strip, g] = args(k, first, Op::Mul)?;
            let g = k.as_int(g).filter(|&g| g > 0)?;
            let (strip, init) = named(k, strip)?;
            let [place, columns] = args(k, rest, Op::Rem)?;
            let in_strip = |e: Expr, op: Op| {
                let [t, n] = args(k, e, op)?;
                let [r, by] = args(k, n, Op::Mul)?;
                Some(is(k, t, tile) && same_expr(k, r, rows) && k.as_int(by) == Some(g))
            };
            let [one, fewer] = args(k, self.columns.1, Op::Max)?;
            let [full, left] = args(k, fewer, Op::Min)?;
            let [c, before] = args(k, left, Op::Sub)?;
            let [at, by] = args(k, before, Op::Mul)?;
            let columns_fit = k.as_int(one) == Some(1)
                && k.as_int(full) == Some(g)
                && same_expr(k, c, cols)
                && is(k, at, strip)
                && k.as_int(by) == Some(g);
            Some(
                last(k, most, cols)
                    && is(k, place, self.place.0)
                    && is(k, columns, self.columns.0)
                    && in_strip(init, Op::Div)?
                    && in_strip(self.place.1, Op::Rem)?
                    && columns_fit,
            )
        };
        matched().unwrap_or(false)
    }
}
