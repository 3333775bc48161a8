//! Ways out in terms of compile-time parameters, where the source writes these: a schedule that says `stages STAGES` is
//! changed by `-D STAGES=3`, tensors that say `multiple ALIGN` by `-D ALIGN=8`, and what the model chose is said to be
//! its choice.

use super::answer::Known;
use super::programs::Change;
use super::tensor_orders::{self, OtherOrder};
use super::trials::Trial;
use crate::compile::CompiledKernel;
use crate::compile::demands::{self, DemandStatus};
use std::collections::BTreeMap;
use tilec_ir::demands::{Property, What};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::types::ElemRef;
use tilec_passes::analysis::access_width::MAX_ACCESS_BYTES;

/// Pairs of orders that are compiled, if no order alone is enough.
const PAIRS: usize = 6;

/// A parameter of alignments, `multiple ALIGN`.
pub(super) struct Alignment {
    pub(super) name: String,
    pub(super) now: i64,
    /// The elements of the widest access to a tensor that is aligned by it: a larger alignment changes nothing.
    pub(super) most: i64,
}

/// The parameter that an expression is.
pub(super) fn parameter(k: &Kernel, e: Expr) -> Option<&str> {
    match k.exprs[e] {
        ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::ConstParam(_)) => Some(&k.values[v].name),
        _ => None,
    }
}

/// The parameter that an item of the schedule is, where the source has one.
pub(super) fn of_item<'k>(kernel: &'k CompiledKernel, word: &str) -> Option<&'k str> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let item = match word {
        "stages" => k.schedule.stages,
        "min_ctas" => k.schedule.min_ctas,
        "threads" => k.schedule.threads,
        "stage_stores" => k.schedule.stage_stores,
        _ => None,
    };
    parameter(k, item?)
}

/// The parameters of alignments (`multiple ALIGN`) that have numbers.
pub(super) fn alignments(kernel: &CompiledKernel) -> Vec<Alignment> {
    let Some(written) = &kernel.tile.source_kernel else { return Vec::new() };
    let k = &written.kernel;
    let mut most: BTreeMap<&str, i64> = BTreeMap::new();
    for &v in &k.params {
        let Some(multiple) = k.tensor_ty(v).and_then(|tensor| tensor.multiple) else { continue };
        let Some(elements) = of_widest(&kernel.tile.specialized, &k.values[v].name) else { continue };
        for name in k.children(multiple).into_iter().chain([multiple]).filter_map(|e| parameter(k, e)) {
            let known = most.entry(name).or_default();
            *known = elements.max(*known);
        }
    }
    let number = |(name, most): (&str, i64)| {
        kernel.tile.parameters.iter().find_map(|(own, value)| match value {
            ConstValue::Int(now) if own == name => Some(Alignment { name: own.clone(), now: *now, most }),
            _ => None,
        })
    };
    most.into_iter().filter_map(number).collect()
}

/// The elements of the widest access to a tensor.
fn of_widest(specialized: &Kernel, tensor: &str) -> Option<i64> {
    let v = specialized.params.iter().find(|&&v| specialized.values[v].name == tensor)?;
    match specialized.tensor_ty(*v)?.elem {
        ElemRef::Known(elem) => Some(i64::from(elem.per(MAX_ACCESS_BYTES))),
        ElemRef::Param(_) => None,
    }
}

impl Alignment {
    /// Larger alignments than one, up to that of the widest access.
    pub(super) fn larger(&self, now: i64) -> impl Iterator<Item = i64> {
        let most = self.most;
        std::iter::successors(Some(now.max(1)), |n| n.checked_mul(2)).skip(1).take_while(move |&n| n <= most)
    }
}

/// The value of an alignment parameter with which a property holds that does not hold now, as an option.
pub(super) fn aligned(known: &Known<'_>, kernel: &CompiledKernel, what: What) -> Option<(String, Change)> {
    alignments(kernel).into_iter().find_map(|own| {
        let name = &own.name;
        let option = |value: i64| (format!("-D {name}={value}"), Change::of_values(&[(name, value.to_string())]));
        own.larger(own.now).map(option).find(|(_, change)| holds(known, kernel, what, change))
    })
}

/// The other order of a tensor, or of two, with which a property holds that does not hold now: in words, and as a change.
pub(super) fn ordered(known: &Known<'_>, kernel: &CompiledKernel, what: What) -> Option<(String, Change)> {
    let mut others = tensor_orders::all(known, kernel);
    // A declared order is the caller's. It is in question where the operands of products decide, and copies take any.
    if !matches!(what, What::Has(Property::Wgmma | Property::Tma | Property::TensorCores)) {
        others.retain(|own| own.option.is_some());
    }
    let later = |i: usize| others[i + 1..].iter();
    let alone = others.iter().map(|one| vec![one]);
    let pairs = others.iter().enumerate().flat_map(|(i, one)| later(i).map(move |two| vec![one, two]));
    let pairs: Vec<Vec<&OtherOrder>> = pairs.take(PAIRS).collect();
    alone.chain(pairs).find_map(|orders| {
        let mut change = orders.first()?.change.clone();
        for other in &orders[1..] {
            change = change.and(&other.change)?;
        }
        let options: Vec<String> = orders.iter().filter_map(|own| own.option.clone()).collect();
        let written = orders.iter().filter(|own| own.option.is_none()).map(|own| own.words.clone());
        let options = (!options.is_empty()).then(|| format!("`-D {}`", options.join(",")));
        let text = options.into_iter().chain(written).collect::<Vec<_>>().join(", and ");
        holds(known, kernel, what, &change).then_some((text, change))
    })
}

/// Whether a property holds with a change.
fn holds(known: &Known<'_>, kernel: &CompiledKernel, what: What, change: &Change) -> bool {
    Trial::of(known, kernel, change).is_some_and(|trial| {
        let own = trial.kernel();
        let judged = demands::judged(own.tile.demanding(), &own.lowered, (None, &trial.program().source), what);
        matches!(judged, DemandStatus::Holds)
    })
}
