//! Larger tiles, compiled: with which accesses become wider, because a thread holds more elements.

use super::advice::Advice;
use super::answer::Known;
use super::numbers::{current, free};
use super::programs::Change;
use super::trials::Trial;
use super::tried::narrowest;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_passes::choose::FreeParameter;

/// Times the value of a parameter that are tried.
const TIMES: [i64; 2] = [2, 4];

/// The first value of a parameter with which an access of one of these statements to global memory is wider, and none is
/// narrower.
///
/// # Errors
/// There is none: what was tried, if anything was.
pub(super) fn of_wider_accesses(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    places: &[Span],
) -> Result<Advice, Option<String>> {
    let before: Vec<(Span, u32)> =
        places.iter().filter_map(|&span| Some((span, narrowest(&kernel.lowered.copies, span)?))).collect();
    let parameters = free(known, kernel);
    if before.is_empty() || parameters.is_empty() {
        return Err(None);
    }
    let of = |p: &FreeParameter, value: i64| Change::of_values(&[(&p.name, value.to_string())]);
    let larger = |p: &FreeParameter| -> Vec<i64> {
        let own = current(kernel, &p.name);
        TIMES.iter().filter_map(|times| own?.checked_mul(*times)).collect()
    };
    let all: Vec<Change> = parameters.iter().flat_map(|p| larger(p).into_iter().map(|value| of(p, value))).collect();
    known.trials.prepare(&all);
    for parameter in &parameters {
        for value in larger(parameter) {
            let change = of(parameter, value);
            if let Some((bytes, wider)) = widened(known, kernel, &before, &change) {
                let text = format!(
                    "`-D {}={value}`: a thread holds more of the tile, and moves {wider} bytes at a time, not {bytes}",
                    parameter.name
                );
                return Ok(Advice::by(text, Some(change)));
            }
        }
    }
    let names: Vec<String> = parameters.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
    Err(Some(format!("two and four times {} were tried, and no access is wider", names.join(", "))))
}

/// With another value of a parameter, the bytes of the first access that is wider, before and after; `None`: there is
/// none, or another one is narrower.
fn widened(known: &Known<'_>, kernel: &CompiledKernel, before: &[(Span, u32)], change: &Change) -> Option<(u32, u32)> {
    let other = Trial::of(known, kernel, change)?;
    let after = |&(span, bytes): &(Span, u32)| Some((bytes, narrowest(&other.kernel().lowered.copies, span)?));
    let after: Vec<(u32, u32)> = before.iter().map(after).collect::<Option<_>>()?;
    after.iter().all(|(bytes, now)| now >= bytes).then(|| after.into_iter().find(|(bytes, now)| now > bytes))?
}
