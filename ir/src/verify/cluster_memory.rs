//! Rule 35: each entry of distributed shared memory is passed on once.
//!
//! The mbarrier of an entry has one phase. A second `signal` would complete the next phase, which nobody awaits. So
//! statements that pass on entries are in no loop, except one over the entries. Not all blocks of a cluster may execute
//! them for the same entry.
//!
//! The phase ends when the entry is signalled and all of its bytes have arrived. If either is missing, the block that
//! awaits it never continues. So every stored entry must be signalled, every signalled entry must be stored and
//! awaited, and every entry that is read must be awaited. An entry whose index is not a literal counts as any entry.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, SignalOp, StmtData};
use crate::print::print_expr;
use crate::types::TensorTy;
use crate::typing::{ResolvedView, ViewDim, const_int, resolve_view};
use crate::verify::context::Cx;

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    if crate::cluster::memory(k).next().is_none() {
        return;
    }
    let mut uses = Vec::new();
    collect(k, k.body, &mut Around::default(), &mut uses);
    for of in uses.iter().filter(|of| of.does != Does::Read) {
        if let Some(around) = of.again {
            let (name, var) = (&k.values[of.memory].name, &k.values[around].name);
            let message = format!("a tile of `{name}` is passed again in each iteration over `{var}`");
            let d = Diagnostic::error(codes::BAD_SIGNAL, k.stmt_spans[of.s], message);
            cx.report(d.with_note(format!(
                "a launch passes each tile of `dsmem` once: index `{name}` by `{var}`, or move this behind the loop"
            )));
        }
    }
    missing(cx, &uses);
    if crate::cluster::blocks(k) > 1 {
        by_all_blocks(cx, &uses);
    }
}

/// How a statement uses an entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Does {
    Store,
    Signal,
    Await,
    Read,
}

/// A statement that uses an entry.
struct Use {
    s: Stmt,
    does: Does,
    memory: Value,
    index: Expr,
    /// The variable of a surrounding loop, if every iteration uses the same entry.
    again: Option<Value>,
    /// All blocks execute it for one entry.
    by_all: bool,
}

impl Use {
    /// `sums[p]`.
    fn entry(&self, k: &Kernel) -> String {
        format!("{}[{}]", k.values[self.memory].name, print_expr(k, self.index))
    }

    /// `sums[p, 0.., 0..]`.
    fn window(&self, k: &Kernel) -> String {
        let rank = k.tensor_ty(self.memory).map_or(0, |tensor| tensor.shape.len());
        let rest = ", 0..".repeat(rank.saturating_sub(1));
        format!("{}[{}{rest}]", k.values[self.memory].name, print_expr(k, self.index))
    }
}

/// The blocks around a statement.
#[derive(Default)]
struct Around {
    loops: Vec<Value>,
    /// The number of statements that decide whether it is executed: branches, and loops whose bounds are not literals.
    conditions: usize,
}

fn collect(k: &Kernel, block: Block, around: &mut Around, uses: &mut Vec<Use>) {
    for &s in &k.blocks[block] {
        for (does, memory, index) in entries(k, s) {
            let again = around.loops.iter().copied().find(|&var| !counts(k, index, var));
            let same = const_int(k, index).is_some() || around.loops.iter().any(|&var| counts(k, index, var));
            uses.push(Use { s, does, memory, index, again, by_all: same && around.conditions == 0 });
        }
        let (var, decides) = match k.stmts[s] {
            StmtData::For { var, start, end, cond, .. } => {
                let runs = const_int(k, start).zip(const_int(k, end)).is_some_and(|(start, end)| start < end);
                (Some(var), !runs || cond.is_some())
            }
            StmtData::If { .. } => (None, true),
            _ => (None, false),
        };
        around.loops.extend(var);
        around.conditions += usize::from(decides);
        for b in k.sub_blocks(s) {
            collect(k, b, around, uses);
        }
        around.conditions -= usize::from(decides);
        if var.is_some() {
            around.loops.pop();
        }
    }
}

/// The entries that a statement stores, signals, awaits or reads.
fn entries(k: &Kernel, s: Stmt) -> Vec<(Does, Value, Expr)> {
    let in_cluster = |v: Value| k.tensor_ty(v).is_some_and(TensorTy::is_of_cluster);
    if let StmtData::Signal { signals, index, op } = k.stmts[s] {
        let does = if op == SignalOp::Raise { Does::Signal } else { Does::Await };
        return if in_cluster(signals) { vec![(does, signals, index)] } else { Vec::new() };
    }
    let of = |view: ResolvedView| match view.dims.first() {
        Some(&ViewDim::Fixed(index)) if in_cluster(view.base) => Some((view.base, index)),
        _ => None,
    };
    let mut found = Vec::new();
    let mut stack: Vec<Expr> = k.stmts[s].exprs().into_iter().collect();
    if let StmtData::Copy { dst, .. } = k.stmts[s] {
        stack.retain(|&e| e != dst);
        found.extend(resolve_view(k, dst).and_then(of).map(|(memory, index)| (Does::Store, memory, index)));
    }
    while let Some(e) = stack.pop() {
        match &k.exprs[e] {
            ExprData::View(view) if in_cluster(view.base) => {
                found.extend(resolve_view(k, e).and_then(of).map(|(memory, index)| (Does::Read, memory, index)));
            }
            _ => stack.extend(k.children(e)),
        }
    }
    found
}

/// Whether two statements may use the same entry.
fn may_meet(k: &Kernel, a: &Use, b: &Use) -> bool {
    let numbers = const_int(k, a.index).zip(const_int(k, b.index));
    a.memory == b.memory && numbers.is_none_or(|(a, b)| a == b)
}

/// Reports entries with a missing store, signal or wait.
fn missing(cx: &mut Cx<'_, '_>, uses: &[Use]) {
    let k = cx.k;
    let any = |of: &Use, does: Does| uses.iter().any(|other| other.does == does && may_meet(k, of, other));
    for of in uses {
        let (entry, store) = (of.entry(k), of.window(k));
        let stored_alone = || {
            uses.iter().any(|other| other.does == Does::Store && may_meet(k, of, other) && !any(other, Does::Signal))
        };
        let (what, note) = match of.does {
            Does::Store if !any(of, Does::Signal) => (
                "is stored, and no statement signals it",
                format!("write `signal {entry}` after the copy: the last block of the cluster awaits it"),
            ),
            Does::Signal if !any(of, Does::Store) => (
                "is signalled, and nothing is stored to it",
                format!(
                    "write `copy x -> {store} fragment` in front: the last block of the cluster would wait for the tile forever"
                ),
            ),
            Does::Signal if !any(of, Does::Await) => (
                "is signalled, and no statement awaits it",
                format!(
                    "write `await {entry}` in the last block of the cluster: it must not end before the tile has arrived"
                ),
            ),
            Does::Await if !any(of, Does::Signal) && !stored_alone() => (
                "is awaited, and no statement signals it",
                format!("write `copy x -> {store} fragment` and `signal {entry}` in the block that has the tile"),
            ),
            Does::Read if !any(of, Does::Await) => (
                "is read, and no statement awaits it",
                format!("write `await {entry}` in front: the tile may not have arrived yet"),
            ),
            _ => continue,
        };
        let message = format!("tile `{entry}` {what}");
        cx.report(Diagnostic::error(codes::BAD_SIGNAL, k.stmt_spans[of.s], message).with_note(note));
    }
}

/// Reports entries that all blocks of a cluster pass on or await.
fn by_all_blocks(cx: &mut Cx<'_, '_>, uses: &[Use]) {
    let k = cx.k;
    for of in uses.iter().filter(|of| of.by_all && of.again.is_none()) {
        let entry = of.entry(k);
        let axis = k.grid.first().map_or("c", |axis| k.values[axis.index].name.as_str());
        let last = crate::cluster::along(k, 0) - 1;
        let (what, note) = match of.does {
            Does::Store | Does::Signal => (
                if of.does == Does::Store { "stored" } else { "signalled" },
                format!(
                    "each tile comes from one block, and its number is that of the block, or a condition selects the block: `if {axis} % {} == 0`",
                    last + 1
                ),
            ),
            Does::Await | Does::Read => (
                if of.does == Does::Await { "awaited" } else { "read" },
                format!(
                    "only the last block has the tiles: write a condition, such as `if {axis} % {} == {last}`",
                    last + 1
                ),
            ),
        };
        let message = format!("tile `{entry}` is {what} by all blocks of the cluster");
        cx.report(Diagnostic::error(codes::BAD_SIGNAL, k.stmt_spans[of.s], message).with_note(note));
    }
}

/// Whether an index is a loop variable plus a constant.
fn counts(k: &Kernel, index: Expr, var: Value) -> bool {
    match &k.exprs[index] {
        ExprData::Ref(v) => *v == var,
        ExprData::Op { op: crate::ops::Op::Add | crate::ops::Op::Sub, args } => {
            args.iter().filter(|&&a| counts(k, a, var)).count() == 1
        }
        _ => false,
    }
}
