//! Loops whose tiles go through shared memory: the source with buffers for what they load straight to registers, to be tried.

use super::answer::Known;
use super::programs::Change;
use crate::compile::CompiledKernel;
use crate::compile::demands::loop_copies::{StraightLoad, straight};
use tilec_ir::diag::Span;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{copy_shape, type_of};

/// How the names of the buffers begin.
const NAME: &str = "loaded";

/// The change; `None`: a window of the loops is not written where it is loaded.
pub(super) fn change(known: &Known<'_>, kernel: &CompiledKernel) -> Option<Change> {
    let k = &kernel.tile.specialized;
    let mut parts: Vec<(Span, String)> = Vec::new();
    for own in straight(k) {
        let window = k.expr_spans[own.window];
        // A window that is read twice is loaded once.
        if !parts.iter().any(|(span, _)| *span == window) {
            let name = format!("{NAME}{}", parts.len());
            let statement = statement(kernel, window)?;
            parts.extend(buffered(k, known.text(), &own, (statement, &name))?);
        }
    }
    (!parts.is_empty()).then(|| Change::default().with_parts(parts).preserving())
}

/// The statement of the source that has a window, without those around it.
fn statement(kernel: &CompiledKernel, window: Span) -> Option<Span> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let has = |s: &Stmt| {
        let span = k.stmt_spans[*s];
        span.start <= window.start && window.end <= span.end && k.sub_blocks(*s).is_empty()
    };
    k.statements().into_iter().filter(has).map(|s| k.stmt_spans[s]).max_by_key(|span| span.end - span.start)
}

/// The parts of the source that put a load through the buffer `name`. `load`: the statement that has it.
fn buffered(k: &Kernel, source: &str, own: &StraightLoad, (load, name): (Span, &str)) -> Option<[(Span, String); 3]> {
    let StmtData::Copy { src, dst, .. } = k.stmts[own.load] else { return None };
    let ElemRef::Known(elem) = type_of(k, src).ok()?.elem()? else { return None };
    let shape: Vec<String> = copy_shape(k, src, dst)?.iter().map(u64::to_string).collect();
    let around = k.stmt_spans[own.around];
    let window = k.expr_spans[own.window];
    let text = source.get(window.start as usize..window.end as usize)?;
    let is_there = around.start <= load.start && load.start <= window.start && window.end <= load.end;
    if !is_there || shape.is_empty() || k.values.values().any(|v| v.name == name) {
        return None;
    }
    let at = |place: u32| Span { start: place, end: place };
    Some([
        (at(around.start), format!("let {name} = smem {}[{}]\n", elem.name(), shape.join(", "))),
        (at(load.start), format!("copy {text} -> {name}\n")),
        (window, name.to_owned()),
    ])
}
