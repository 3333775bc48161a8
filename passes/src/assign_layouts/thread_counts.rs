//! Other thread counts for kernels without products whose tiles would not fit the registers of a thread.
//!
//! `select-mma` counts threads for the rows that are reduced or sorted, or takes the default. Another tile may be
//! larger than those rows, and tiles that this pass makes may be: partial results of all warps, exchanged tiles. Then
//! the pass runs again with more threads, up to the most of a block, and then with fewer.
//!
//! Needs: the thread count is not written. Decides: `threads`, and `ctas` and `min_ctas` that were chosen.

use crate::Cx;
use crate::analysis::live_ranges::elements_per_thread;
use crate::analysis::uses::all_stmts;
use crate::roles::threads_of;
use tilec_ir::ctas::ctas;
use tilec_ir::diag::{Reported, Sink};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::target::{MAX_THREADS, REGISTERS_PER_THREAD};
use tilec_ir::types::ElemRef;

/// Fewest threads that are tried instead of more.
const FEWEST: u32 = 128;

/// Assigns layouts by `assign`, with another thread count if tiles need one.
pub(super) fn run(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    assign: fn(&mut Kernel, &mut Cx<'_>) -> Result<(), Reported>,
) -> Result<(), Reported> {
    if !is_open(k) {
        return assign(k, cx);
    }
    let own = k.clone();
    let few = threads_of(k);
    let (first, said) = trial(k, cx, assign);
    let Some((tile, words)) = most_crowded(k) else {
        cx.sink.append(said);
        return first;
    };
    let own_blocks = u32::try_from(ctas(k)).unwrap_or(1);
    for (threads, blocks) in others(few, own_blocks) {
        let mut more = own.clone();
        with_threads(&mut more, (threads, blocks), few);
        let (result, said) = trial(&mut more, cx, assign);
        if result.is_ok() && most_crowded(&more).is_none() {
            let data = &k.values[tile];
            let (now, before) = (u64::from(threads) * u64::from(blocks), u64::from(few) * u64::from(own_blocks));
            let message = format!(
                "{now} threads instead of {before} share tiles: `{}` would take {words} registers of each thread",
                data.name
            );
            cx.remark_note(data.span, message, "`threads` and `ctas` in the schedule say how many there are");
            cx.sink.append(said);
            *k = more;
            return result;
        }
    }
    cx.sink.append(said);
    first
}

/// Other threads of a block, and blocks of a cluster that share tiles, in the order in which they are tried. Fewer
/// threads help where a warp reads the parts of all.
fn others(threads: u32, blocks: u32) -> impl Iterator<Item = (u32, u32)> {
    let more = std::iter::successors(Some(2 * threads), |n| Some(2 * n)).take_while(|&n| n <= MAX_THREADS);
    let fewer = std::iter::successors(Some((threads, blocks)), |&(threads, blocks)| match (threads / 2, blocks / 2) {
        (half, _) if half >= FEWEST => Some((half, blocks)),
        (_, 0) => None,
        (_, half) => Some((threads, half)),
    });
    more.map(move |n| (n, blocks)).chain(fewer.skip(1))
}

/// Whether the thread count follows from no product and no role, and nothing in the text says it.
fn is_open(k: &Kernel) -> bool {
    let written = k.schedule_item("threads").is_some() || k.schedule_item("ctas").is_some();
    let in_text = |s: &StmtData| match s {
        StmtData::Role { .. } => true,
        StmtData::Copy { attrs, .. } => attrs.threads.is_some(),
        _ => false,
    };
    let laid_out = |def: &ValueDef| matches!(def, ValueDef::Var(t) if t.reg_layout.is_some());
    let multiplies = || k.expressions().into_iter().any(|e| matches!(k.exprs[e], ExprData::Mma(_)));
    !written
        && !all_stmts(k, k.body).into_iter().any(|s| in_text(&k.stmts[s]))
        && !k.values.values().any(|data| laid_out(&data.def))
        && !multiplies()
}

/// Assigns layouts; returns what is said on the way.
fn trial(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    assign: fn(&mut Kernel, &mut Cx<'_>) -> Result<(), Reported>,
) -> (Result<(), Reported>, Sink) {
    let mut said = Sink::new();
    let mut own = Cx { options: cx.options, enabled: cx.enabled, pass: cx.pass, heard: cx.heard, sink: &mut said };
    let result = assign(k, &mut own);
    (result, said)
}

fn with_threads(k: &mut Kernel, (threads, blocks): (u32, u32), before: u32) {
    let span = k.name_span;
    k.schedule.threads = Some(k.int(i64::from(threads), span));
    k.schedule.ctas = (blocks > 1).then(|| k.int(i64::from(blocks), span));
    let resident = k.schedule.min_ctas.filter(|_| k.schedule_item("min_ctas").is_none()).and_then(|e| k.as_int(e));
    if let Some(resident) = resident {
        k.schedule.min_ctas = Some(k.int((resident * i64::from(before) / i64::from(threads)).max(1), span));
    }
}

/// The tile that takes most registers of a thread, and how many, if no thread has so many.
fn most_crowded(k: &Kernel) -> Option<(Value, u64)> {
    let words = |v: Value| {
        let ValueDef::Var(tile) = &k.values[v].def else { return None };
        let (Some(layout), ElemRef::Known(elem)) = (&tile.reg_layout, tile.elem) else { return None };
        Some(elem.words(elements_per_thread(layout, &k.const_shape(&tile.shape)?)))
    };
    let all = k.values.keys().filter_map(|v| Some((v, words(v)?)));
    all.filter(|&(_, words)| words > u64::from(REGISTERS_PER_THREAD)).max_by_key(|&(_, words)| words)
}
