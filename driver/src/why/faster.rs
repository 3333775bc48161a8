//! Other values of compile-time parameters: compiled, and advised where the model predicts less time with them.

use super::answer::Known;
use super::other_values::OtherValues;
use crate::compile::CompiledKernel;
use std::collections::BTreeSet;
use tilec_ir::kernel::{ConstValue, Kernel, StmtData};
use tilec_ir::target::REGISTERS_PER_THREAD;
use tilec_ir::typing::resolve_view;
use tilec_passes::choose::{FreeParameter, Prediction, Term};
use tilec_passes::occupancy::Occupancy;

/// Programs that are compiled at most.
const MOST: usize = 12;

/// Of the predicted time, the part below which another program counts as faster.
pub(super) const FASTER: f64 = 0.99;

/// Share of the predicted time from which on nothing is tried, because it is for the launch itself.
const LAUNCH: f64 = 0.5;

/// What other values are to have less of.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Less {
    /// The predicted time.
    Time,
    /// The bytes between memory and the second-level cache.
    Bytes,
}

impl Less {
    fn of(self, p: &Prediction) -> f64 {
        match self {
            Less::Time => p.seconds,
            Less::Bytes => p.bytes,
        }
    }
}

/// Values of parameters, by name.
type Values = Vec<(String, i64)>;

/// What was tried: facts, and what would change the time.
pub(super) fn of_parameters(known: &Known<'_>, kernel: &CompiledKernel, less: Less) -> (Vec<String>, Vec<String>) {
    let (mut facts, mut change) = (Vec::new(), Vec::new());
    let Some(p) = &kernel.tile.prediction else { return (facts, change) };
    if less == Less::Time && p.budget().part(Term::Launch) > LAUNCH * p.budget().total() {
        return (facts, change);
    }
    facts.extend(chosen(kernel).filter(|_| less == Less::Time));
    let free = free(known, kernel);
    if free.is_empty() {
        return (facts, change);
    }
    match best(known, kernel, (p, less), &free) {
        Some((values, own)) => change.push(advice(&values, &free, (&own, p, less))),
        None => {
            let what = if less == Less::Time { "nothing faster is predicted" } else { "no fewer bytes are predicted" };
            facts.push(format!("half and double of {} were tried, and {what}", names(&free)));
        }
    }
    (facts, change)
}

/// Of how many candidates the compiler chose its values.
fn chosen(kernel: &CompiledKernel) -> Option<String> {
    let choice = kernel.tile.choice.as_ref().filter(|choice| choice.candidates > 1)?;
    // A rule may have decided against a candidate that the model calls faster.
    let fastest = choice.runner_up.as_ref().is_some_and(|next| next.slower >= 0.0);
    let values: Vec<String> = choice.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    fastest.then(|| {
        format!(
            "{} are the compiler's own values: none of {} other legal candidates is predicted to be faster",
            values.join(" "),
            choice.candidates - 1
        )
    })
}

fn names(free: &[FreeParameter]) -> String {
    free.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")
}

fn advice(
    values: &[(String, i64)],
    free: &[FreeParameter],
    (own, now, less): (&Prediction, &Prediction, Less),
) -> String {
    let text: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let unproven: Vec<FreeParameter> =
        free.iter().filter(|p| !p.proven && values.iter().any(|(name, _)| *name == p.name)).cloned().collect();
    let proof = match unproven[..] {
        [] => String::new(),
        _ => format!("; that results do not depend on {} is not proved", names(&unproven)),
    };
    let bytes = match less {
        Less::Time => String::new(),
        Less::Bytes => format!("{:.0} bytes are moved, not {:.0}, and ", own.bytes, now.bytes),
    };
    format!(
        "with `-D {}` {bytes}{:.1} us are predicted, not {:.1} (tried{proof})",
        text.join(","),
        1e6 * own.seconds,
        1e6 * now.seconds
    )
}

/// The parameters whose values are tried.
pub(super) fn free(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<FreeParameter> {
    let shared = made_for_others(known);
    let is_number = |p: &FreeParameter| current(kernel, &p.name).is_some();
    kernel.tile.free_parameters(&shared).into_iter().filter(is_number).collect()
}

/// The value of a parameter that is a number.
pub(super) fn current(kernel: &CompiledKernel, name: &str) -> Option<i64> {
    kernel.tile.parameters.iter().find_map(|(own, value)| match value {
        ConstValue::Int(x) if own == name => Some(*x),
        _ => None,
    })
}

/// Tensors that the kernels of sequences store for each other.
fn made_for_others(known: &Known<'_>) -> Vec<String> {
    if known.program.sequences.is_empty() {
        return Vec::new();
    }
    let kernels = || known.program.kernels.iter().map(|k| &k.tile.specialized);
    let has = |k: &Kernel, tensor: &str| k.params.iter().any(|&v| k.values[v].name == tensor);
    let is_read = |by: &Kernel, tensor: &str| kernels().any(|k| k.name != by.name && has(k, tensor));
    kernels().flat_map(|k| stored(k).into_iter().filter(|tensor| is_read(k, tensor))).collect()
}

/// The tensors that a kernel stores to.
fn stored(k: &Kernel) -> Vec<String> {
    let to = |s: &StmtData| match s {
        StmtData::Copy { dst, .. } => {
            let base = resolve_view(k, *dst)?.base;
            k.tensor_ty(base).map(|_| k.values[base].name.clone())
        }
        _ => None,
    };
    k.statement_data().filter_map(to).collect()
}

/// The best of the programs with half or double of a parameter, and of those with half or double of another one in
/// addition; `None`: none is better.
fn best(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    (now, less): (&Prediction, Less),
    free: &[FreeParameter],
) -> Option<(Values, Prediction)> {
    let mut best: Option<(Values, Prediction)> = None;
    let mut seen: BTreeSet<Values> = BTreeSet::from([Values::new()]);
    loop {
        let from = best.clone();
        let (base, least) = from.map_or((Values::new(), less.of(now)), |(values, p)| (values, less.of(&p)));
        let mut next: Option<(Values, Prediction)> = None;
        for values in free.iter().flat_map(|p| neighbours(kernel, &base, &p.name)) {
            if seen.len() > MOST || !seen.insert(values.clone()) {
                continue;
            }
            let Some(own) = predicted(known, kernel, now, &values) else { continue };
            let bound = next.as_ref().map_or(FASTER * least, |(_, p)| less.of(p));
            if less.of(&own) < bound {
                next = Some((values, own));
            }
        }
        if next.is_none() {
            return best;
        }
        best = next;
    }
}

/// Values with half and with double of a parameter.
fn neighbours(kernel: &CompiledKernel, base: &Values, name: &str) -> Vec<Values> {
    let Some(own) = current(kernel, name) else { return Vec::new() };
    let value = base.iter().find(|(other, _)| other == name).map_or(own, |(_, value)| *value);
    let others = [value.checked_mul(2), (value > 1 && value % 2 == 0).then_some(value / 2)];
    let with = |other: i64| {
        let mut values: Values = base.iter().filter(|(n, _)| n != name).cloned().collect();
        if other != own {
            values.push((name.to_owned(), other));
        }
        values.sort();
        values
    };
    others.into_iter().flatten().map(with).collect()
}

/// What is predicted with these values for the same sizes; `None`: nothing, or threads do not have the registers.
pub(super) fn predicted(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    now: &Prediction,
    values: &[(String, i64)],
) -> Option<Prediction> {
    let text: Vec<(&str, String)> = values.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();
    let other = OtherValues::of(known, kernel, &text)?;
    let own = other.kernel();
    let (threads, registers) = (u64::from(own.lowered.threads), own.report.estimated_registers);
    let has_room = registers <= REGISTERS_PER_THREAD
        && Occupancy::new(known.program.target, threads, registers.into(), own.report.smem_bytes).resident() > 0;
    own.tile.prediction.clone().filter(|p| has_room && p.sizes == now.sizes)
}
