//! Larger tiles, compiled: with which accesses become wider, because a thread holds more elements.

use super::answer::Known;
use super::faster::{current, free};
use super::other_values::OtherValues;
use super::tried::narrowest;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;

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
) -> Result<String, Option<String>> {
    let before: Vec<(Span, u32)> =
        places.iter().filter_map(|&span| Some((span, narrowest(&kernel.lowered.copies, span)?))).collect();
    let parameters = free(known, kernel);
    if before.is_empty() || parameters.is_empty() {
        return Err(None);
    }
    for parameter in &parameters {
        let own = current(kernel, &parameter.name);
        for value in TIMES.iter().filter_map(|times| own?.checked_mul(*times)) {
            if let Some((bytes, wider)) = widened(known, kernel, &before, (&parameter.name, value)) {
                return Ok(format!(
                    "`-D {}={value}`: a thread holds more of the tile, and moves {wider} bytes at a time, not {bytes} (tried)",
                    parameter.name
                ));
            }
        }
    }
    let names: Vec<String> = parameters.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
    Err(Some(format!("two and four times {} were tried, and no access is wider", names.join(", "))))
}

/// With another value of a parameter, the bytes of the first access that is wider, before and after; `None`: there is
/// none, or another one is narrower.
fn widened(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    before: &[(Span, u32)],
    (name, value): (&str, i64),
) -> Option<(u32, u32)> {
    let other = OtherValues::of(known, kernel, &[(name, value.to_string())])?;
    let after = |&(span, bytes): &(Span, u32)| Some((bytes, narrowest(&other.kernel().lowered.copies, span)?));
    let after: Vec<(u32, u32)> = before.iter().map(after).collect::<Option<_>>()?;
    after.iter().all(|(bytes, now)| now >= bytes).then(|| after.into_iter().find(|(bytes, now)| now > bytes))?
}
