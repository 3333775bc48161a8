//! Tiles of the statements in an expanded loop: the start of their windows, and whether the tile exists.
//!
//! If the threads of a loop fill its slots themselves, tiles ahead of it may not exist. Their copies then have a
//! condition, or read zeros from outside of the tensors. In a ragged loop ([`residue`](crate::residue)) tile 0 is
//! `S..S + r`, and tile `n` begins at `S + r + (n - 1) * B`.

use super::body::Body;
use super::overrun;
use crate::residue::{Residue, steady};
use crate::rewrite::add_condition;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::ExprData;
use tilec_ir::kernel::{ChannelOp, Kernel, StmtData, StmtPlan, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::resolve_view;
use tilec_ir::window_ends::own_end;

/// An iteration of the original loop.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum At {
    /// The n-th after the first one.
    Nth(u32),
    /// The n-th after the one in a variable; negative numbers are before it.
    After(Value, i64),
    /// The n-th before the last one.
    Last(u32),
    /// The one in a variable, executed without overlap.
    Alone(Value),
}

/// A loop whose first tile is ragged.
pub(super) struct Ragged {
    pub(super) plan: Residue,
    /// The number of elements of that tile, and its declaration.
    pub(super) head: Value,
    pub(super) decl: Stmt,
}

/// Facts about the tiles of a loop.
pub(super) struct Tiles {
    ragged: Option<Ragged>,
    /// Copies that may run past the end; `None`: producer warps fill the slots, and the loop runs completely or not at
    /// all.
    fills: Option<Vec<Stmt>>,
    /// Whether they need a condition to read nothing there.
    guarded: bool,
    /// For slots that are filled asynchronously: the stage of the `publish`, and its place in the steady state. A wait
    /// counts the groups published after its tile.
    published: Option<(u32, usize)>,
}

impl Tiles {
    pub(super) fn of(k: &mut Kernel, body: &Body) -> Result<Tiles, Box<Diagnostic>> {
        let ragged = Tiles::ragged(k, body.at)?;
        let publishes: Vec<usize> = (0..body.order.len())
            .filter(|&i| {
                let s = body.order[i].0;
                matches!(k.stmts[s], StmtData::Channel { op: ChannelOp::Publish, .. }) && !k.plans[s].producer
            })
            .collect();
        let fills = (!publishes.is_empty()).then(|| {
            let early = body.order.iter().filter(|&&(_, stage)| stage < body.last).map(|&(s, _)| s);
            early.filter(|&s| !k.plans[s].producer && overrun::fetches(k, s)).collect::<Vec<Stmt>>()
        });
        if body.open {
            overrun::only_moves(k, body)?;
        }
        let asynchronous =
            |&(s, _): &(Stmt, u32)| matches!(&k.stmts[s], StmtData::Copy { attrs, .. } if attrs.is_asynchronous());
        let published = match publishes[..] {
            [one] if body.order.iter().any(asynchronous) => Some((body.order[one].1, one)),
            _ => None,
        };
        let guarded = fills.as_ref().is_some_and(|fills| !overrun::harmless(k, body, fills));
        Ok(Tiles { ragged, fills, guarded, published })
    }

    /// If a loop is ragged: declares the size of its first tile.
    pub(super) fn ragged(k: &mut Kernel, at: Stmt) -> Result<Option<Ragged>, Box<Diagnostic>> {
        if !k.plans[at].ragged {
            return Ok(None);
        }
        let span = k.stmt_spans[at];
        let why = match Residue::of(k, at) {
            Ok(Some(plan)) => {
                let StmtData::For { var, .. } = k.stmts[at] else { unreachable!("a loop is ragged") };
                let init = plan.head(k, span);
                let name = format!("{}_head", k.values[var].name);
                let head = k.value(&name, span, ValueDef::Let);
                let decl = k.stmt(StmtData::Let { value: head, init }, span);
                return Ok(Some(Ragged { plan, head, decl }));
            }
            Ok(None) => "it is no reduction over an extent that is not known to have whole tiles".to_owned(),
            Err(why) => why,
        };
        let d = Diagnostic::error(
            codes::BAD_PLAN,
            span,
            format!("the first tile of this loop cannot be the ragged one: {why}"),
        );
        let plan = k.fix_locations.iter().find(|(spot, at)| *spot == FixLocation::Plan && at.end == span.start);
        let alone = k.plans[at] == StmtPlan { ragged: true, ..StmtPlan::default() };
        let plan = plan.filter(|_| alone).map(|(_, at)| *at);
        Err(Box::new(d.with_note("without `ragged` it is the last one").with_left_out(plan)))
    }

    pub(super) fn decl(&self) -> Option<Stmt> {
        self.ragged.as_ref().map(|r| r.decl)
    }

    /// Whether the code in front of the loop and after it may run even without a tile: it fills slots that are not
    /// read.
    pub(super) fn may_be_none(&self, body: &Body) -> bool {
        self.fills.is_some() && body.open
    }

    /// The start of tile `n` if all tiles are whole.
    pub(super) fn begin(&self, k: &mut Kernel, body: &Body, n: u32) -> Expr {
        let [start, _, step] = body.bounds;
        let start = k.copy_expr(start);
        plus(k, start, i64::from(n), step, body.span)
    }

    /// The original loop variable in an iteration.
    pub(super) fn index(&self, k: &mut Kernel, body: &Body, at: At) -> Expr {
        let span = body.span;
        let [_, end, step] = body.bounds;
        match (at, &self.ragged) {
            (At::Alone(var), _) => k.value_ref(var, span),
            (At::Nth(n), Some(r)) if n > 0 => r.plan.place(k, r.head, i64::from(n) - 1, span),
            (At::Nth(n), _) => self.begin(k, body, n),
            (At::After(var, n), ragged) => {
                // In an open ragged loop, the variable is the start of the next tile.
                let behind = i64::from(ragged.is_some() && body.open);
                let var = k.value_ref(var, span);
                plus(k, var, n - behind, step, span)
            }
            // Tiles after the first are whole, up to the end.
            (At::Last(n), Some(_)) => {
                let end = k.copy_expr(end);
                plus(k, end, -i64::from(n) - 1, step, span)
            }
            (At::Last(n), None) => {
                let last = last(k, body);
                plus(k, last, -i64::from(n), step, span)
            }
        }
    }

    /// The bounds of an open loop in the steady state.
    pub(super) fn steady_open(&self, k: &mut Kernel, body: &Body, end: Expr) -> (Expr, Expr) {
        let span = body.span;
        let [start, _, step] = body.bounds;
        match &self.ragged {
            None => (start, end),
            Some(r) => {
                let start = r.plan.place(k, r.head, 0, span);
                let (end, step) = (k.copy_expr(end), k.copy_expr(step));
                (start, k.binary(Op::Add, end, step, span))
            }
        }
    }

    /// Adapts a copy of a statement to the tile of its iteration.
    pub(super) fn adapt_copy(&self, k: &mut Kernel, body: &Body, (s, copy): (Stmt, Stmt), at: At) {
        if let StmtData::Channel { op: ChannelOp::Wait, .. } = k.stmts[copy] {
            self.wait(k, body, (s, copy), at);
            return;
        }
        let inside = match at {
            // The original loop, whose last tile is ragged.
            At::Alone(_) => return,
            At::Nth(_) => false,
            At::After(_, n) => n <= 0,
            At::Last(_) => true,
        };
        if let Some((r, dim)) = self.ragged.as_ref().and_then(|r| Some((r, r.plan.fetched(s)?))) {
            self.adapt_ragged(k, body, r, (copy, dim), (at, inside));
        } else if self.guarded && !inside && self.fills.as_ref().is_some_and(|fills| fills.contains(&s)) {
            self.guard(k, body, copy, at);
        }
    }

    /// Adds the condition that the copy's tile begins in front of the end.
    fn guard(&self, k: &mut Kernel, body: &Body, s: Stmt, at: At) {
        let begin = self.index(k, body, at);
        let end = k.copy_expr(body.bounds[1]);
        let inside = k.binary(Op::Lt, begin, end, body.span);
        add_condition(k, s, inside);
    }

    fn adapt_ragged(&self, k: &mut Kernel, body: &Body, r: &Ragged, (s, dim): (Stmt, usize), (at, inside): (At, bool)) {
        if at == At::Nth(0) {
            r.plan.cut(k, s, dim, r.head);
            if self.guarded {
                self.guard(k, body, s, at);
            }
            return;
        }
        let begin = self.index(k, body, at);
        let front = matches!(at, At::Nth(_)) && !body.open;
        // In front of a loop with a drain, elements past the end of the tensor read as zero.
        r.plan.begin(k, s, dim, begin, !(inside || front && r.plan.whole));
        if !front {
            steady(k, s, dim);
        }
    }

    /// Sets the number of later tiles that may be in flight at a wait.
    fn wait(&self, k: &mut Kernel, body: &Body, (s, copy): (Stmt, Stmt), at: At) {
        let Some((published, place)) = self.published else { return };
        let position = body.order.iter().position(|&(of, _)| of == s).expect("a statement of the loop");
        let stage = i64::from(body.order[position].1);
        let ahead = stage - i64::from(published);
        let steady = ahead - i64::from(position < place);
        let pending = match at {
            // No tile follows the last one.
            At::Last(n) => steady.min(i64::from(n)),
            At::Alone(_) => 0,
            _ => steady,
        };
        self.pending(k, copy, pending);
    }

    /// Sets `pending n` of a wait for asynchronous copies.
    pub(super) fn pending(&self, k: &mut Kernel, s: Stmt, n: i64) {
        let count = u32::try_from(n).ok().filter(|&n| n > 0 && self.published.is_some());
        if let StmtData::Channel { op: ChannelOp::Wait, pending, .. } = &mut k.stmts[s] {
            *pending = count;
        }
    }
}

/// `e + n * step`.
fn plus(k: &mut Kernel, e: Expr, n: i64, step: Expr, span: Span) -> Expr {
    let step = k.copy_expr(step);
    let count = k.int(n.abs(), span);
    let distance = k.binary(Op::Mul, count, step, span);
    k.binary(if n < 0 { Op::Sub } else { Op::Add }, e, distance, span)
}

/// The loop variable in the last iteration, computed from the end, so that it is obviously in front of the end.
fn last(k: &mut Kernel, body: &Body) -> Expr {
    let [start, end, step] = body.bounds;
    let span = body.span;
    let (to, one) = (k.copy_expr(end), k.int(1, span));
    let to = k.binary(Op::Sub, to, one, span);
    if k.as_int(step) == Some(1) {
        return clamped_start(k, body, to);
    }
    let (from, by) = (k.copy_expr(start), k.copy_expr(step));
    let length = k.copy_expr(to);
    let length = k.binary(Op::Sub, length, from, span);
    let rest = k.expr(ExprData::Op { op: Op::Rem, args: vec![length, by] }, span);
    let at = k.binary(Op::Sub, to, rest, span);
    clamped_start(k, body, at)
}

/// The same, clamped to the loop's start. For TMA loads with an end of their own, ranges must prove that windows do not
/// begin in front of their tensors.
fn clamped_start(k: &mut Kernel, body: &Body, at: Expr) -> Expr {
    if !body.order.iter().any(|&(s, _)| loads_to_own_end(k, s)) {
        return at;
    }
    let from = k.copy_expr(body.bounds[0]);
    k.binary(Op::Max, from, at, body.span)
}

/// Whether a statement is a TMA load of a window with an end of its own.
fn loads_to_own_end(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { return false };
    let window = attrs.is_tensor().then(|| resolve_view(k, src)).flatten();
    window.is_some_and(|view| k.tensor_ty(view.base).is_some() && matches!(own_end(k, &view), Ok(Some(_))))
}
