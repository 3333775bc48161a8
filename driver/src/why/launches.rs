//! Programs of several launches: the sum of their times, and the copies of operands that the compiler adds.

use super::advice::{self, Advice, Given};
use super::answer::Known;
use super::costs;
use super::programs::Change;
use super::said::places_of;
use crate::compile::CompiledKernel;
use crate::compile::copied_operands::CopiedOperand;
use crate::compile::program_times::ProgramTime;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::types::{ElemRef, Order, OrderRef, Strides};
use tilec_passes::choose::{Card, Prediction, known_int};

/// For each program of several launches, its predicted time as a sum.
pub(super) fn sums(known: &Known<'_>) -> Vec<String> {
    known.program.program_times().iter().map(sum).collect()
}

fn sum(program: &ProgramTime) -> String {
    let count = program.launches.len();
    let all: f64 = program.launches.iter().filter_map(|launch| launch.us).sum();
    let mut launches: Vec<_> = program.launches.iter().filter_map(|l| Some((l.us?, &l.entry))).collect();
    launches.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = |us: f64| if all > 0.0 { 100.0 * us / all } else { 0.0 };
    let parts: Vec<String> =
        launches.iter().map(|(us, entry)| format!("{us:.1} `{entry}` ({:.0} %)", share(*us))).collect();
    let unknown: Vec<String> =
        program.launches.iter().filter(|l| l.us.is_none()).map(|l| format!("`{}`", l.entry)).collect();
    let name = &program.name;
    match (&parts[..], &unknown[..]) {
        ([], _) => format!("`{name}`: none of its {count} launches is predicted"),
        (_, []) => format!("`{name}`: {all:.1} us are predicted for {count} launches: {}", parts.join(" + ")),
        _ => format!(
            "`{name}`: at least {all:.1} us are predicted for {count} launches: {}; {} have no prediction",
            parts.join(" + "),
            unknown.join(" and ")
        ),
    }
}

/// Tensors that several launches of a sequence load from memory, though none of them stores to it.
pub(super) fn read_again(known: &Known<'_>) -> Vec<String> {
    known.program.programs.iter().flat_map(|program| read_again_in(known, &program.launches)).collect()
}

fn read_again_in(known: &Known<'_>, launches: &[String]) -> Vec<String> {
    let mut by: Vec<(&str, Vec<(&str, f64)>)> = Vec::new();
    let is_launched = |k: &&CompiledKernel| launches.contains(&k.contract.entry);
    let kernels = || known.program.kernels.iter().filter(is_launched).filter(|k| known.judges(k));
    let predicted = || kernels().filter_map(|k| Some((k, k.tile.prediction.as_ref()?)));
    let is_stored = |of: &str| predicted().any(|(_, p)| p.places.iter().any(|at| at.global && at.store && at.of == of));
    for (kernel, p) in predicted() {
        for at in p.places.iter().filter(|at| at.global && !at.store && !is_stored(&at.of)) {
            let Some(bytes) = bytes_of(kernel, p, &at.of) else { continue };
            let own = (kernel.tile.kernel.name.as_str(), bytes);
            match by.iter_mut().find(|(of, _)| *of == at.of) {
                Some((_, readers)) if readers.contains(&own) => {}
                Some((_, readers)) => readers.push(own),
                None => by.push((&at.of, vec![own])),
            }
        }
    }
    let card = predicted().find_map(|(_, p)| Card::from_name(p.card));
    let of = |(tensor, readers): &(&str, Vec<(&str, f64)>)| {
        let (names, card) = (readers.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>(), card?);
        let again: f64 = readers.iter().skip(1).map(|(_, bytes)| bytes).sum();
        let us = 1e6 * again / (card.dram * 1e9);
        let way = match again < card.l2_size * 1e6 {
            true => "its bytes fit into the second-level cache, so a later launch may find them there",
            false => {
                "one kernel for both would read it once, or launches for parts of it that stay in the second-level cache"
            }
        };
        (readers.len() > 1 && us >= costs::SHOWN).then(|| {
            format!(
                "`{tensor}` is read by {}: {again:.0} bytes more than once, {us:.1} us at {:.0} GB/s; {way} (not tried)",
                names.join(", "),
                card.dram
            )
        })
    };
    by.iter().filter_map(of).collect()
}

/// The bytes of a tensor with the sizes of the prediction.
fn bytes_of(kernel: &CompiledKernel, p: &Prediction, tensor: &str) -> Option<f64> {
    let k = &kernel.tile.specialized;
    let ty = k.params.iter().find(|&&v| k.values[v].name == tensor).and_then(|&v| k.tensor_ty(v))?;
    let ElemRef::Known(elem) = ty.elem else { return None };
    let bits = f64::from(elem.size().get());
    let extents: Option<Vec<i64>> = ty.shape.iter().map(|&e| known_int(k, e, &p.sizes)).collect();
    Some(extents?.into_iter().map(|n| n as f64).product::<f64>() * bits / 8.0)
}

/// The launches that copy operands of a kernel: their microseconds, what they are, and facts. `None`: there are none.
pub(super) fn copies(known: &Known<'_>, kernel: &CompiledKernel) -> Option<(Option<f64>, String, Vec<String>)> {
    let copied = &kernel.tile.copied;
    let seconds: Option<f64> = copied.iter().map(|operand| operand.seconds).sum();
    let names: Vec<String> = copied.iter().map(|operand| format!("`{}`", operand.tensor)).collect();
    let what = match (copied.iter().any(|o| o.reordered), copied.iter().any(|o| !o.reordered)) {
        (false, false) => return None,
        (true, false) => "bring",
        _ => "align rows of",
    };
    let into = if what == "bring" { " into the order of the reduction" } else { "" };
    let message = format!("copies in front of it {what} {}{into}", names.join(" and "));
    let places: Vec<_> = copied.iter().map(|o| (o.span, o.reason())).collect();
    let mut facts = places_of(known, &places);
    facts.extend(copied.iter().filter_map(|o| Some(format!("`{}` takes {:.1} us", o.launch, 1e6 * o.seconds?))));
    let advice = match options(kernel) {
        Some(values) => vec![with_options(copied, &values)],
        None => copied.iter().map(|operand| Advice::by_hand(operand.way_out())).collect(),
    };
    let lines = advice::tried(known, kernel, advice, Given::NotSlower);
    facts.extend(lines.facts);
    facts.extend(lines.ways.into_iter().map(|text| format!("to change it: {text}")));
    Some((seconds.map(|s| 1e6 * s), message, facts))
}

/// Values of parameters.
type Values<'k> = Vec<(&'k str, String)>;

/// Values with which no operand is copied; `None`: the source has no such parameters.
fn options(kernel: &CompiledKernel) -> Option<Values<'_>> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    kernel.tile.copied.iter().map(|operand| option(k, operand)).collect()
}

fn with_options(copied: &[CopiedOperand], values: &Values<'_>) -> Advice {
    let text: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let promises: Vec<String> = copied.iter().map(promise).collect();
    let text = format!("`-D {}`: {}, and nothing is copied", text.join(","), promises.join(", "));
    Advice::by(text, Some(Change::of_values(values)))
}

/// What the caller then has to keep.
fn promise(operand: &CopiedOperand) -> String {
    match operand.reordered {
        true => format!("`{}` has the other order", operand.tensor),
        false => format!("rows of `{}` are multiples of {} elements", operand.tensor, operand.multiple),
    }
}

/// The parameter that decides about the rows or the order of an operand, and the value with which it is not copied.
fn option<'k>(k: &'k Kernel, operand: &CopiedOperand) -> Option<(&'k str, String)> {
    let tensor = k.params.iter().find(|&&v| k.values[v].name == operand.tensor)?;
    let ty = k.tensor_ty(*tensor)?;
    if operand.reordered {
        let Strides::Ordered(OrderRef::Param(p)) = ty.strides else { return None };
        let now = k.values[p].name.as_str();
        let other = tilec_ir::facts::contiguous_dim(k, *tensor)
            .map_or(Order::Col, |d| if d + 1 == ty.shape.len() { Order::Col } else { Order::Row });
        return Some((now, other.name().to_owned()));
    }
    let ExprData::Ref(v) = k.exprs[ty.multiple?] else { return None };
    matches!(k.values[v].def, ValueDef::ConstParam(_))
        .then(|| (k.values[v].name.as_str(), operand.multiple.to_string()))
}
