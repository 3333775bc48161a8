//! Other steps of a loop that copies tiles, by the number or the parameter that the source has for them.

use super::advice::Advice;
use super::answer::Known;
use super::numbers::{self, Number};
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};

/// The loop around a copy with steps of so many elements; `text`: the advice.
pub(super) fn advice(known: &Known<'_>, kernel: &CompiledKernel, (copy, count): (Span, u64), text: &str) -> Advice {
    let numbers = numbers::of(known, kernel);
    let own = kernel.tile.source_kernel.as_ref().and_then(|written| {
        let step = step(&written.kernel, copy)?;
        numbers.iter().position(|number| is_it(&written.kernel, step, number))
    });
    let Some((own, count)) = own.zip(i64::try_from(count).ok()) else { return Advice::by_hand(text) };
    let values = vec![(own, count)];
    let change = numbers::change(known, kernel, &numbers, &values);
    Advice::by(format!("{}: {text}", numbers::in_words(&numbers, &values)), Some(change))
}

/// The step of the innermost loop around a copy.
fn step(k: &Kernel, copy: Span) -> Option<Expr> {
    let holds = |span: Span| span.start <= copy.start && copy.end <= span.end;
    let around = k.statements().into_iter().filter(|&s| holds(k.stmt_spans[s]));
    let steps = around.filter_map(|s| match k.stmts[s] {
        StmtData::For { step, .. } => Some(step),
        _ => None,
    });
    steps.last()
}

/// Whether a number is the step of a loop.
fn is_it(k: &Kernel, step: Expr, number: &Number) -> bool {
    match number {
        Number::Parameter(own, _) => matches!(k.exprs[step], ExprData::Ref(v) if k.values[v].name == own.name),
        Number::Literal(own, _) => own.places.contains(&k.expr_spans[step]),
        _ => false,
    }
}
