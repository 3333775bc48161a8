//! Which variants can be launched at all: conditions that imply others, and sizes that no variant takes.

use crate::compile::options::Sizes;
use crate::contract::expr;
use crate::contract::number::{Args, Number};
use crate::contract::{Contract, Dispatch, LaunchFile};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_passes::caller::Caller;

/// Whether a condition follows from another: the same, or a multiple of a multiple.
fn implies(given: &str, condition: &str) -> bool {
    fn multiple(text: &str) -> Option<(&str, u64)> {
        let (of, n) = text.strip_suffix(" == 0")?.rsplit_once(" % ")?;
        Some((of, n.parse().ok().filter(|&n| n > 0)?))
    }
    given == condition
        || matches!((multiple(given), multiple(condition)), (Some((x, a)), Some((y, b))) if x == y && a.is_multiple_of(b))
}

/// Blocks along the second and third axis of a grid.
const MAX_BLOCKS: i64 = 65_535;
/// Limits of sizes and of blocks along the first axis are a little below 2^31.
const NEAR_31_BITS: i64 = 1 << 30;

/// Whether a condition only keeps sizes below what a launch can have, which depends on the tiles.
fn is_limit(condition: &str) -> bool {
    let limit = |n: i64| n == MAX_BLOCKS || n >= NEAR_31_BITS;
    let last = |part: &str| part.rsplit_once(" <= ").and_then(|(_, n)| n.parse().ok()).is_some_and(limit);
    condition.split(" && ").all(|part| last(part) || part.ends_with(" >= 0") || part.ends_with(" >= 1"))
}

/// Warnings about cases that an earlier one always takes.
pub(crate) fn never_launched(file: &LaunchFile, caller: Caller, span: impl Fn(&str) -> Span) -> Vec<Diagnostic> {
    let mut said = Vec::new();
    for Dispatch { kernel, cases } in &file.dispatch {
        for (i, case) in cases.iter().enumerate() {
            let Some(own) = file.contract(&case.entry) else { continue };
            let earlier = cases[..i].iter().find(|before| {
                let Some(other) = file.contract(&before.entry) else { return false };
                let known: Vec<&String> = case.when.iter().chain(&own.requires).collect();
                let follows = |c: &String| known.iter().any(|given| implies(given, c));
                before.when.iter().chain(&other.requires).filter(|c| !is_limit(c)).all(follows)
                    && no_stricter(other, own)
            });
            // A case may be there again for other sizes.
            let elsewhere = cases[..i].iter().any(|c| c.entry == case.entry);
            if let Some(earlier) = earlier.filter(|_| !elsewhere) {
                let message = format!(
                    "`{}`, a variant of `{kernel}`, is never launched: `{}` comes before it and is launched whenever it could be",
                    case.entry, earlier.entry
                );
                said.push(Diagnostic::warning(codes::NEVER_LAUNCHED, span(&case.entry), message).with_note(format!(
                    "give the variant with the stronger preconditions first: {}",
                    caller.aligned_variants()
                )));
            }
        }
    }
    said
}

/// Whether the tensors of `a` need no more alignment than those of `b`.
fn no_stricter(a: &Contract, b: &Contract) -> bool {
    let align = |c: &Contract, name: &str| c.param(name).and_then(|p| p.kind.tensor()).map_or(1, |t| t.align);
    a.params.iter().all(|p| align(a, &p.name) <= align(b, &p.name))
}

/// Errors for sizes that every variant of a kernel refuses.
pub(crate) fn forbidden(
    file: &LaunchFile,
    sizes: &[Sizes],
    caller: Caller,
    span: impl Fn(&str) -> Span,
) -> Vec<Diagnostic> {
    let mut said = Vec::new();
    let several = file.dispatch.iter().map(|d| d.cases.iter().map(|c| c.entry.as_str()).collect::<Vec<_>>());
    let variant = |c: &&Contract| file.dispatch.iter().any(|d| d.cases.iter().any(|case| case.entry == c.entry));
    let alone = file.kernels.iter().filter(|c| !variant(c)).map(|c| vec![c.entry.as_str()]);
    let groups: Vec<Vec<&str>> = several.chain(alone).collect();
    // Of several kernels some may be for other sizes.
    if groups.len() > 1 {
        return said;
    }
    for entries in groups {
        let contracts: Vec<&Contract> = entries.iter().filter_map(|e| file.contract(e)).collect();
        for given in sizes {
            let broken: Vec<&String> = contracts.iter().filter_map(|c| breaks(c, given)).collect();
            let (Some(condition), true) = (broken.last(), broken.len() == contracts.len()) else { continue };
            let given = caller.sizes_of(given);
            let message = format!("{given}: `{condition}` does not hold, so that nothing is launched for these sizes");
            let d = Diagnostic::error(codes::FORBIDDEN_SIZE, span(entries[0]), message);
            let way = caller.aligned_variants();
            said.push(d.with_note(format!("give other sizes, or add a variant with weaker preconditions: {way}")));
        }
    }
    said
}

/// The condition of a contract that fails for these sizes with any strides.
fn breaks<'c>(contract: &'c Contract, given: &Sizes) -> Option<&'c String> {
    let values: Args = given.iter().map(|(name, x)| (name.clone(), Number::Int(*x))).collect();
    let value = |name: &str| values.get(name).and_then(|v| v.to_i64());
    contract.requires.iter().find(|c| expr::condition(c, &value) == Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_follow_from_multiples() {
        assert!(implies("K % 8 == 0", "K % 4 == 0") && implies("K % 8 == 0", "K % 8 == 0"));
        assert!(!implies("K % 4 == 0", "K % 8 == 0") && !implies("K % 8 == 0", "N % 4 == 0"));
        assert!(is_limit("M >= 1 && M <= 2147418112") && is_limit("ceildiv(N, 8) <= 65535"));
        assert!(!is_limit("K <= 512") && !is_limit("C_ld >= N || M == 1"));
        assert!(!implies("K % 8 == 1", "K % 4 == 0") && implies("C_ld >= N", "C_ld >= N"));
    }
}
