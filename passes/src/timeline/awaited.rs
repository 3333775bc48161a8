//! Loops whose iterations wait for operands that threads load to registers, before they store them to shared memory or
//! multiply them.

use super::data::Timeline;
use crate::analysis::uses::all_stmts;
use crate::graph::accesses::Accesses;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Stmt};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::typing::resolve_view;

/// A statement of a loop that waits for what the same iteration loads to registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedLoads {
    /// The statement.
    pub stmt: Stmt,
    /// The loads, each with its tensor.
    pub loads: Vec<(Span, String)>,
    /// Clocks of an iteration in which it waits.
    pub waits: u64,
    /// Clocks from one iteration to the next.
    pub iteration: u64,
}

/// The statements that wait, by the roles in time.
pub fn awaited_loads(k: &Kernel, time: &Timeline) -> Vec<AwaitedLoads> {
    candidates(k).into_iter().filter_map(|(stmt, loads)| timed(time, stmt, loads)).collect()
}

/// Whether there are statements that may wait.
pub fn may_await_loads(k: &Kernel) -> bool {
    !candidates(k).is_empty()
}

/// Statements of loops with products that use what the iteration has loaded to registers: copies to shared memory, and
/// products.
fn candidates(k: &Kernel) -> Vec<(Stmt, Vec<(Span, String)>)> {
    let mut found = Vec::new();
    for s in all_stmts(k, k.body) {
        let StmtData::For { body, .. } = k.stmts[s] else { continue };
        let inside = all_stmts(k, body);
        let innermost = !inside.iter().any(|&s| matches!(k.stmts[s], StmtData::For { .. }));
        if innermost && inside.iter().any(|&s| is_product(k, s)) {
            of_loop(k, body, &mut found);
        }
    }
    found
}

fn of_loop(k: &Kernel, body: Block, found: &mut Vec<(Stmt, Vec<(Span, String)>)>) {
    let list = &k.blocks[body];
    for (i, &user) in list.iter().enumerate().filter(|(_, s)| uses_operand(k, **s)) {
        let reads: Vec<_> = Accesses::of(k, user).touches.into_iter().filter(|t| t.reads).map(|t| t.value).collect();
        let loaded = |&s: &Stmt| {
            let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return None };
            let from = resolve_view(k, src).map(|view| view.base).filter(|&v| k.tensor_ty(v).is_some())?;
            let into = resolve_view(k, dst)?.base;
            let held = matches!(k.values[into].def, ValueDef::Var(_)) && reads.contains(&into);
            held.then(|| (k.stmt_spans[s], k.values[from].name.clone()))
        };
        let loads: Vec<(Span, String)> = list[..i].iter().filter_map(loaded).collect();
        if !loads.is_empty() {
            found.push((user, loads));
        }
    }
}

fn is_product(k: &Kernel, s: Stmt) -> bool {
    matches!(k.stmts[s], StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_)))
}

/// Whether a statement stores to shared memory or multiplies.
fn uses_operand(k: &Kernel, s: Stmt) -> bool {
    match k.stmts[s] {
        StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|to| to.space(k).is_of_block()),
        _ => is_product(k, s),
    }
}

/// What a statement waits in an iteration, and what an iteration takes: of all that are drawn, the ones in the middle.
fn timed(time: &Timeline, stmt: Stmt, loads: Vec<(Span, String)>) -> Option<AwaitedLoads> {
    let number = time.lines.iter().find(|line| line.stmt == stmt)?.number?;
    let of = |waits: bool| time.events.iter().filter(move |e| e.number == number && e.waits == waits);
    let waits = middle(of(true).map(|e| e.end - e.begin).collect())?;
    let steps = (0..time.rows.len()).flat_map(|row| {
        let begins: Vec<u64> = of(false).filter(|e| e.row == row).map(|e| e.begin).collect();
        begins.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect::<Vec<_>>()
    });
    let iteration = middle(steps.collect())?;
    Some(AwaitedLoads { stmt, loads, waits, iteration })
}

fn middle(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}
