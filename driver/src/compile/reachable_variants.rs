//! Which variants can be launched at all: conditions that imply others, and sizes that no variant takes.

use crate::compile::implied::{implies, multiple};
use crate::compile::options::Sizes;
use crate::contract::expr;
use crate::contract::number::{Args, Number};
use crate::contract::{Contract, Dispatch, LaunchFile};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstParam, ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_passes::caller::Caller;

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

/// A compiled kernel.
pub(crate) struct Entry<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) options: &'a tilec_passes::Options,
    /// The kernel of the source that it completes.
    pub(crate) written: Option<&'a Kernel>,
    /// The values of its compile-time parameters.
    pub(crate) parameters: &'a [(String, ConstValue)],
}

/// Errors for sizes that every variant of a kernel refuses.
pub(crate) fn forbidden(file: &LaunchFile, sizes: &[Sizes], all: &[Entry<'_>]) -> Vec<Diagnostic> {
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
            let broken: Vec<Vec<&str>> = contracts.iter().map(|c| broken(c, given)).collect();
            let Some(conditions) = broken.last().filter(|_| broken.iter().all(|of| !of.is_empty())) else { continue };
            let own = |entry: &str| all.iter().find(|own| own.kernel.name == entry);
            let (caller, span) =
                own(entries[0]).map_or_else(Default::default, |own| (own.options.caller, own.kernel.name_span));
            let message = format!(
                "{}: `{}` does not hold, so that nothing is launched for these sizes",
                caller.sizes_of(given),
                conditions[0]
            );
            let weaker = entries.last().and_then(|entry| weaker(own(entry)?, conditions, given));
            said.push(Diagnostic::error(codes::FORBIDDEN_SIZE, span, message).with_note(match weaker {
                Some((name, now, then)) => {
                    format!(
                        "give other sizes, or compile with weaker preconditions: {}",
                        caller.redefine(&name, now, then)
                    )
                }
                None => {
                    "give other sizes: the kernel declares this precondition, in `where` or by `multiple`".to_owned()
                }
            }));
        }
    }
    said
}

impl Entry<'_> {
    /// The value of a compile-time parameter, if it is a number.
    fn number(&self, name: &str) -> Option<i64> {
        self.parameters.iter().find_map(|(own, value)| match value {
            ConstValue::Int(x) if own == name => Some(*x),
            _ => None,
        })
    }

    /// The parameter that gives this one its value: itself, or an earlier one (`ALIGN_A = ALIGN`).
    fn giving(&self, k: &Kernel, p: Value) -> Value {
        let is_given = self.options.defines.iter().any(|(name, _)| *name == k.values[p].name);
        match &k.values[p].def {
            ValueDef::ConstParam(ConstParam { default: Some(ConstValue::Same(earlier)), .. }) if !is_given => {
                self.giving(k, *earlier)
            }
            _ => p,
        }
    }
}

/// The conditions of a contract that fail for these sizes with any strides.
fn broken<'c>(contract: &'c Contract, given: &Sizes) -> Vec<&'c str> {
    let fails = |c: &&str| holds(c, given) == Some(false);
    contract.requires.iter().map(String::as_str).filter(fails).collect()
}

/// Whether a condition holds for these sizes; `None`: that depends on something else.
fn holds(condition: &str, given: &Sizes) -> Option<bool> {
    let values: Args = given.iter().map(|(name, x)| (name.clone(), Number::Int(*x))).collect();
    let value = |name: &str| values.get(name).and_then(|v| v.to_i64());
    expr::condition(condition, &value).ok()
}

/// The compile-time parameter that these conditions are from, its value, and the largest with which all of them hold.
fn weaker(own: &Entry<'_>, conditions: &[&str], given: &Sizes) -> Option<(String, i64, i64)> {
    let mut found: Option<(Value, u64, u64)> = None;
    let k = own.written?;
    for condition in conditions {
        let (of, n) = multiple(condition)?;
        let parameter = own.giving(k, promising(k, of, |p| own.number(&k.values[p].name) == i64::try_from(n).ok())?);
        let less = std::iter::successors(Some(n / 2), |m| Some(m / 2)).take_while(|&m| m > 0);
        let least = less.filter(|m| n % m == 0).find(|m| holds(&format!("{of} % {m} == 0"), given) == Some(true))?;
        found = match found {
            Some((other, ..)) if other != parameter => return None,
            Some((_, now, then)) => Some((parameter, now, then.min(least))),
            None => Some((parameter, n, least)),
        };
    }
    let (parameter, now, then) = found?;
    Some((k.values[parameter].name.clone(), i64::try_from(now).ok()?, i64::try_from(then).ok()?))
}

/// The compile-time parameter, one that `fits`, by which a kernel says that `of` is a multiple of it: of rows or in a condition.
fn promising(k: &Kernel, of: &str, fits: impl Fn(Value) -> bool) -> Option<Value> {
    let parameter = |e: Expr| match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::ConstParam(_)) => Some(v).filter(|&v| fits(v)),
        _ => None,
    };
    let rows = k.params.iter().filter_map(|&v| {
        let tensor = k.tensor_ty(v)?;
        let is_own = tensor.shape.iter().any(|&e| print_expr(k, e) == of)
            || of.strip_prefix(&k.values[v].name).is_some_and(|rest| rest.starts_with('_'));
        tensor.multiple.filter(|_| is_own).and_then(parameter)
    });
    let conditions = k.exprs.values().filter_map(|e| match e {
        ExprData::Op { op: Op::Rem, args } if print_expr(k, args[0]) == of => parameter(args[1]),
        _ => None,
    });
    rows.chain(conditions).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_from_preconditions() {
        assert!(is_limit("M >= 1 && M <= 2147418112") && is_limit("ceildiv(N, 8) <= 65535"));
        assert!(!is_limit("K <= 512") && !is_limit("C_ld >= N || M == 1"));
    }
}
