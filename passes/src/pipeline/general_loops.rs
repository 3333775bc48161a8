//! Loops with more than copies and one product: attention, two products over one tile, a `let` before a copy.
//!
//! Their statements do not change, except that they read the waited slots; only the copies run ahead.

use crate::analysis::access_width::known_elem;
use crate::analysis::index_operands::can_be_written;
use crate::analysis::uses::{all_stmts, for_each_ref, mentions, stmt_exprs};
use crate::pipeline::loop_plan::Fill;
use crate::producer_fills::{computed, index_tiles};
use crate::refusal::Refused;
use crate::schedule_loops::modulo::is_index;
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::modified_values::changes;
use tilec_ir::typing::{let_init, resolve_view};

/// Number of slots if iterations are long: one is filled while the other is read, and blocks that share a
/// multiprocessor have room.
pub(super) const SLOTS: u64 = 2;

/// Most registers of a thread for tiles on their way to shared memory.
const STAGING: u64 = 32;

/// Splits the statements of a loop's body into names for indices, and the others.
pub(super) fn without_names(k: &Kernel, stmts: &[Stmt]) -> (Vec<Stmt>, Vec<Stmt>) {
    stmts.iter().partition(|&&s| matches!(k.stmts[s], StmtData::Let { init, .. } if is_index(k, init)))
}

/// The values of these names.
fn values(k: &Kernel, names: &[Stmt]) -> BTreeSet<Value> {
    let declared = |&s: &Stmt| match k.stmts[s] {
        StmtData::Let { value, .. } => Some(value),
        _ => None,
    };
    names.iter().filter_map(declared).collect()
}

/// Whether an expression is short enough after these names are expanded.
pub(super) fn can_be_written_out(k: &Kernel, e: Expr, names: &[Stmt]) -> bool {
    let values = values(k, names);
    can_be_written(k, e, |v| values.contains(&v))
}

/// `e` with these names expanded.
pub(super) fn expand_names(k: &mut Kernel, e: Expr, names: &[Stmt]) -> Expr {
    let values = values(k, names);
    without(k, e, &values)
}

fn without(k: &mut Kernel, e: Expr, values: &BTreeSet<Value>) -> Expr {
    k.clone_expr(e, &mut |k, v| {
        let stands = |k: &Kernel, v: Value| let_init(k, v).filter(|_| values.contains(&v));
        let mut init = stands(k, v)?;
        while let ExprData::Ref(w) = k.exprs[init]
            && let Some(next) = stands(k, w)
        {
            init = next;
        }
        Some(without(k, init, values))
    })
}

/// The names that the other statements use.
pub(super) fn used_names(k: &Kernel, names: &[Stmt], rest: &[Stmt]) -> Vec<Stmt> {
    let mut wanted: Vec<Value> = Vec::new();
    let note = |k: &Kernel, s: Stmt, wanted: &mut Vec<Value>| {
        for e in stmt_exprs(k, s) {
            for_each_ref(k, e, &mut |v| wanted.push(v));
        }
    };
    for &s in rest {
        note(k, s, &mut wanted);
        k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b)).for_each(|s| note(k, s, &mut wanted));
    }
    let mut kept = Vec::new();
    for &s in names.iter().rev() {
        if matches!(k.stmts[s], StmtData::Let { value, .. } if wanted.contains(&value)) {
            note(k, s, &mut wanted);
            kept.push(s);
        }
    }
    kept.reverse();
    kept
}

/// Why copies of a loop with such other statements cannot run ahead.
pub(super) fn check(k: &Kernel, fills: &[Fill], rest: &[Stmt]) -> Result<(), Refused> {
    let buffers: Vec<Value> = fills.iter().map(|f| f.buffer).collect();
    let sources: Vec<Value> = fills.iter().filter_map(|f| resolve_view(k, f.src)).map(|v| v.base).collect();
    let inside = rest.iter().flat_map(|&s| {
        std::iter::once(s).chain(k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b)).collect::<Vec<_>>())
    });
    for s in inside {
        let at = |why: String| Refused::at(k.stmt_spans[s], why);
        match &k.stmts[s] {
            StmtData::Copy { dst, .. } => {
                let to = resolve_view(k, *dst).map(|v| v.base);
                if let Some(v) = to.filter(|v| sources.contains(v)) {
                    return Err(at(format!("it stores to `{}`, which it also loads from", k.values[v].name)));
                }
                if let Some(v) = to.filter(|v| buffers.contains(v)) {
                    return Err(at(format!("`{}` is filled twice", k.values[v].name)));
                }
            }
            StmtData::Alloc { value, over } if over.is_empty() && buffers.contains(value) => {
                let why = format!(
                    "`{}` is declared inside of the loop, so there is one in an iteration",
                    k.values[*value].name
                );
                return Err(at(why).help(&format!("declare `{}` in front of the loop", k.values[*value].name)));
            }
            StmtData::Alloc { value, over } if over.iter().chain([value]).any(|v| buffers.contains(v)) => {
                return Err(at(format!("`{}` shares memory with a buffer that is filled", k.values[*value].name)));
            }
            StmtData::Role { .. } | StmtData::Ordered { .. } | StmtData::Signal { .. } | StmtData::Channel { .. } => {
                return Err(Refused::by_request_at(k.stmt_spans[s], "its body has barriers or fences of its own"));
            }
            StmtData::Await { value, .. } if buffers.contains(value) => {
                return Err(Refused::by_request_at(k.stmt_spans[s], format!("`{}` is awaited", k.values[*value].name)));
            }
            StmtData::Assign { dst, .. } if buffers.contains(dst) => {
                return Err(at(format!("`{}` is written", k.values[*dst].name)));
            }
            _ => {}
        }
    }
    // A copy that runs ahead cannot depend on values of an iteration that has not been computed yet.
    for fill in fills {
        // Indices by which it gathers must be constant in the loop.
        let rows = index_tiles(k, fill.src);
        let named = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if rows.contains(&v));
        let indices = k.children(fill.src).into_iter().filter(|&e| !named(e));
        if let Some(v) = indices.into_iter().find_map(|e| computed(k, e)) {
            let (buffer, name) = (&k.values[fill.buffer].name, &k.values[v].name);
            let why = format!("the copy into `{buffer}` depends on `{name}`, which threads compute");
            return Err(Refused::at(fill.span, why));
        }
    }
    if let Some(f) = fills.iter().find(|f| rest.iter().all(|&s| !uses(k, s, f.buffer))) {
        return Err(Refused::at(f.span, format!("nothing reads `{}`", k.values[f.buffer].name)));
    }
    staging(k, fills)
}

/// Why a copy cannot run ahead in its loop: iterations change the indices by which it gathers, or its condition.
pub(super) fn steady(k: &Kernel, fill: &Fill, at: Stmt) -> Result<(), Refused> {
    let buffer = &k.values[fill.buffer].name;
    // An iteration that gathers ahead would use the indices of an earlier iteration.
    if let Some(v) = index_tiles(k, fill.src).into_iter().find(|&v| changes(k, at, v)) {
        let name = &k.values[v].name;
        let why = format!("the copy into `{buffer}` is gathered by `{name}`, which changes in the loop");
        let refused = Refused::at(fill.span, why);
        return Err(match is_same_in_each(k, at, v) {
            true => refused.help(&format!("load `{name}` in front of the loop: no iteration changes it")),
            false => refused,
        });
    }
    let mut computed = None;
    if let Some(when) = fill.attrs.when {
        for_each_ref(k, when, &mut |v| computed = computed.or(changes(k, at, v).then_some(v)));
    }
    let Some(v) = computed else { return Ok(()) };
    let name = &k.values[v].name;
    let why = format!("whether `{buffer}` is filled (`when`) depends on `{name}`, which the loop computes");
    Err(Refused::at(fill.span, why))
}

/// Whether each iteration of a loop makes the same of a tile: one copy does, from a tensor's window at indices that the
/// loop does not change.
fn is_same_in_each(k: &Kernel, at: Stmt, v: Value) -> bool {
    let StmtData::For { var, body, .. } = k.stmts[at] else { return false };
    let inside = all_stmts(k, body);
    let writers: Vec<Stmt> = inside.iter().copied().filter(|&s| changes(k, s, v)).collect();
    let [writer] = writers[..] else { return false };
    let StmtData::Copy { src, dst, ref attrs } = k.stmts[writer] else { return false };
    let from = resolve_view(k, src).filter(|from| k.tensor_ty(from.base).is_some() && !from.is_gathered());
    let mut steady = from.is_some() && attrs.when.is_none();
    for_each_ref(k, src, &mut |w| steady &= w != var && !inside.iter().any(|&s| changes(k, s, w)));
    // All of it, so that nothing of an earlier value is left.
    steady && matches!(k.exprs[dst], ExprData::Ref(w) if w == v) && k.blocks[body].contains(&writer)
}

/// Whether a statement, or one inside it, names a buffer.
pub(super) fn uses(k: &Kernel, s: Stmt, buffer: Value) -> bool {
    stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, buffer))
        || k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b)).any(|s| uses(k, s, buffer))
}

/// Checks that registers suffice for tiles that pass through them during an iteration.
fn staging(k: &Kernel, fills: &[Fill]) -> Result<(), Refused> {
    let mut registers = 0;
    for fill in fills.iter().filter(|f| !f.direct) {
        let values = fill.attrs.threads.as_ref().map_or(0, |l| 1u64 << l.value_bits());
        let tensor = resolve_view(k, fill.src).expect("what fills a buffer is a window").base;
        let of = if fill.computed.is_some() { tensor } else { fill.buffer };
        registers += known_elem(k, of).bytes_of(values) / 4;
    }
    match registers {
        n if n > STAGING => Err(Refused::room(format!("tiles would pass through {n} registers of each thread"))),
        _ => Ok(()),
    }
}
