//! Loads moved in front of their loop, as `pipeline` advises: the source with that, to be tried.

use super::answer::Known;
use super::programs::Change;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::kernel::StmtData;
use tilec_ir::typing::resolve_view;

/// The change that the advice asks for; `at`: a copy of the loop. `None`: it is other advice.
pub(super) fn change(known: &Known<'_>, kernel: &CompiledKernel, text: &str, at: Span) -> Option<Change> {
    let name = text.strip_prefix("load `")?.strip_suffix("` in front of the loop: no iteration changes it")?;
    let k = &kernel.tile.specialized;
    let holds = |span: Span| span.start <= at.start && at.end <= span.end;
    let loops = k.statements().into_iter().filter(|&s| matches!(k.stmts[s], StmtData::For { .. }));
    let around = loops.map(|s| k.stmt_spans[s]).filter(|&span| holds(span)).min_by_key(|span| span.end - span.start)?;
    let loads = |s: &StmtData| match s {
        StmtData::Copy { dst, .. } => resolve_view(k, *dst).is_some_and(|to| k.values[to.base].name == name),
        _ => false,
    };
    let load = k.statements().into_iter().find(|&s| loads(&k.stmts[s]) && around.start <= k.stmt_spans[s].start)?;
    let (own, source) = (k.stmt_spans[load], known.text());
    let part = |from: u32, to: u32| source.get(from as usize..to as usize);
    let text = format!("{}\n{}", part(own.start, own.end)?, part(around.start, own.start)?);
    Change::of_part(source, Span { start: around.start, end: own.end }, &text)
}
