//! Other values of compile-time parameters: compiled, and advised where the model predicts less time with them.

use super::advice::Advice;
use super::answer::Known;
use super::by_parameters::{self, Alignment};
use super::programs::Change;
use super::trials::{Effect, FASTER, Trial, effect, prepare_spills};
use crate::compile::CompiledKernel;
use crate::compile::unrepeated::unrepeated;
use std::collections::BTreeSet;
use tilec_ir::diag::counted;
use tilec_ir::kernel::{ConstValue, Kernel, StmtData};
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;
use tilec_passes::choose::{Edge, FreeParameter, Prediction};

/// Programs that are compiled at most.
const MOST: usize = 24;

/// Of the programs that are better, those that are assembled at most to find one that does not spill.
const ASSEMBLED: usize = 2;

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

/// What is said if no other value is faster.
pub(super) const NOTHING_FASTER: &str = "nothing faster is predicted";

/// Values of parameters, by name.
type Values = Vec<(String, i64)>;

/// What was found: facts, and what would change the time.
#[derive(Default)]
pub(super) struct Found {
    pub(super) facts: Vec<String>,
    pub(super) advice: Vec<Advice>,
}

/// Tries other values of the parameters.
pub(super) fn of_parameters(known: &Known<'_>, kernel: &CompiledKernel, less: Less) -> Found {
    let mut found = Found::default();
    let Some(p) = &kernel.tile.prediction else { return found };
    let free = free(known, kernel);
    found.facts.extend(chosen(kernel, &free).filter(|_| less == Less::Time));
    let aligned = by_parameters::alignments(kernel);
    if free.is_empty() && aligned.is_empty() {
        return found;
    }
    let mut search =
        Search { known, kernel, less, now: less.of(p), free: &free, aligned: &aligned, seen: BTreeSet::new() };
    let mut better = search.run(p);
    // Those with fewer registers in front of others where spills are expected; of two with as much, the one with fewer
    // changes.
    better.sort_by(|a, b| {
        let registers = |e: &Effect| if e.expects_spills { e.prediction.registers } else { 0 };
        let own = |(values, e): &(Values, Effect)| (e.expects_spills, registers(e), values.len());
        let by_value = search.value(&a.1).total_cmp(&search.value(&b.1));
        own(a).0.cmp(&own(b).0).then(own(a).1.cmp(&own(b).1)).then(by_value).then(own(a).2.cmp(&own(b).2))
    });
    better.truncate(ASSEMBLED);
    let changes: Vec<Change> = better.iter().map(|(values, _)| change_of(values)).collect();
    prepare_spills(known, kernel, &changes);
    let mut best: Option<(Values, Effect)> = None;
    for (values, effect) in better {
        let change = change_of(&values);
        let effect = effect.assembled(known, kernel, &change);
        if !effect.spills() {
            best = Some((values, effect));
            break;
        }
        best = best.or(Some((values, effect)));
    }
    match best {
        Some((values, effect)) => found.advice.push(advice(known, kernel, &values, &free, (&effect, p, less))),
        // Without a neighbour there is nothing to say of neighbours.
        None if search.seen.is_empty() => {}
        None => found.facts.push(format!(
            "{} (tried, {}): {}",
            search.in_words(p),
            counted(search.seen.len(), "program"),
            if less == Less::Time { NOTHING_FASTER } else { "no fewer bytes are predicted" }
        )),
    }
    found
}

/// Of how many candidates the compiler chose its values.
fn chosen(kernel: &CompiledKernel, free: &[FreeParameter]) -> Option<String> {
    let choice = kernel.tile.choice.as_ref().filter(|choice| choice.candidates > 1)?;
    // A rule may have decided against a candidate that the model calls faster.
    let fastest = choice.runner_up.as_ref().is_some_and(|next| next.slower >= 0.0);
    let values: Vec<String> = choice.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let fixed: Vec<String> =
        free.iter().filter_map(|p| Some(format!("{}={}", p.name, current(kernel, &p.name)?))).collect();
    let with = match fixed[..] {
        [] => String::new(),
        _ => format!(" with {}", fixed.join(" ")),
    };
    fastest.then(|| {
        format!(
            "{} are the compiler's choice: of {} legal candidates{with}, none is predicted to be faster",
            values.join(" "),
            choice.candidates
        )
    })
}

pub(super) fn names(free: &[FreeParameter]) -> String {
    free.iter().map(|p| format!("`{}`", p.name)).collect::<Vec<_>>().join(", ")
}

fn change_of(values: &Values) -> Change {
    let text: Vec<(&str, String)> = values.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();
    Change::of_values(&text)
}

fn advice(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    values: &Values,
    free: &[FreeParameter],
    (own, now, less): (&Effect, &Prediction, Less),
) -> Advice {
    let text: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let unproven: Vec<FreeParameter> =
        free.iter().filter(|p| !p.proven && values.iter().any(|(name, _)| *name == p.name)).cloned().collect();
    let proof = match unproven[..] {
        [] => String::new(),
        _ => format!(" (that results do not depend on {} is not proved)", names(&unproven)),
    };
    let bytes = match less {
        Less::Time => String::new(),
        Less::Bytes => format!(": {:.0} bytes are moved, not {:.0}", own.prediction.bytes, now.bytes),
    };
    let restricted = restrictions(known, kernel, &change_of(values));
    Advice::tried(format!("`-D {}`{bytes}{restricted}{proof}", text.join(",")), own)
}

/// The preconditions that a kernel has with a change and does not have without it.
pub(super) fn restrictions(known: &Known<'_>, kernel: &CompiledKernel, change: &Change) -> String {
    let Some(trial) = Trial::of(known, kernel, change) else { return String::new() };
    let all = |k: &Kernel| -> Vec<String> { k.requires.iter().map(|&e| print_expr(k, e)).collect() };
    let own = all(&kernel.tile.specialized);
    let mut more = all(&trial.kernel().tile.specialized);
    more.retain(|need| !own.contains(need));
    unrepeated(&mut more);
    match more[..] {
        [] => String::new(),
        _ => format!(", for sizes with `{}`", more.join(", ")),
    }
}

/// The parameters whose values are tried.
pub(super) fn free(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<FreeParameter> {
    let shared = made_for_others(known);
    let is_number = |p: &FreeParameter| current(kernel, &p.name).is_some();
    // Of other sizes than the given ones nothing is known.
    let given = kernel.tile.prediction.as_ref().is_some_and(|p| p.sizes_given);
    let takes = |p: &FreeParameter| !p.restricts || given;
    kernel.tile.free_parameters(&shared).into_iter().filter(|p| is_number(p) && takes(p)).collect()
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

/// A search for better values: half and double of each parameter, and of the best of these half and double of another one.
struct Search<'a> {
    known: &'a Known<'a>,
    kernel: &'a CompiledKernel,
    less: Less,
    /// What there is without a change.
    now: f64,
    free: &'a [FreeParameter],
    /// Alignments, which have larger values.
    aligned: &'a [Alignment],
    seen: BTreeSet<Values>,
}

impl Search<'_> {
    /// All programs that are better.
    fn run(&mut self, p: &Prediction) -> Vec<(Values, Effect)> {
        let mut better: Vec<(Values, Effect)> = Vec::new();
        let (mut base, mut least) = (Values::new(), self.now);
        loop {
            let mut round: Vec<Values> = Vec::new();
            for values in self.neighbours(&base, p) {
                if self.seen.len() < MOST && !values.is_empty() && self.seen.insert(values.clone()) {
                    round.push(values);
                }
            }
            self.known.trials.prepare(&round.iter().map(change_of).collect::<Vec<_>>());
            let mut next: Option<(Values, f64)> = None;
            for values in round {
                let Some(own) = effect(self.known, self.kernel, &change_of(&values)) else { continue };
                let x = self.value(&own);
                if x < next.as_ref().map_or(FASTER * least, |(_, best)| *best) {
                    next = Some((values.clone(), x));
                }
                if x < FASTER * self.now {
                    better.push((values, own));
                }
            }
            let Some((values, x)) = next else { return better };
            (base, least) = (values, x);
        }
    }

    /// What there is to be less of, relative to the same without a change.
    fn value(&self, effect: &Effect) -> f64 {
        match self.less {
            // With what is launched in front of the kernel.
            Less::Time => self.now * effect.then / effect.now,
            Less::Bytes => effect.prediction.bytes,
        }
    }

    /// Values with another one of a single parameter.
    fn neighbours(&self, base: &Values, p: &Prediction) -> Vec<Values> {
        let with = |name: &str, value: i64| {
            let mut values: Values = base.iter().filter(|(n, _)| n != name).cloned().collect();
            if Some(value) != current(self.kernel, name) {
                values.push((name.to_owned(), value));
            }
            values.sort();
            values
        };
        let now = |name: &str| {
            let own = base.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
            own.or_else(|| current(self.kernel, name))
        };
        let mut all = Vec::new();
        for name in self.free.iter().map(|p| &p.name) {
            let Some(value) = now(name) else { continue };
            let others = [value.checked_mul(2), (value > 1 && value % 2 == 0).then_some(value / 2)];
            all.extend(others.into_iter().flatten().chain(near(p, name)).map(|value| with(name, value)));
        }
        for own in self.aligned.iter().filter(|_| p.sizes_given) {
            let value = now(&own.name).unwrap_or(own.now);
            all.extend(own.larger(value).map(|value| with(&own.name, value)));
        }
        all
    }

    /// What was tried.
    fn in_words(&self, p: &Prediction) -> String {
        let mut parts = Vec::new();
        if !self.free.is_empty() {
            parts.push(format!("half and double of {}", names(self.free)));
        }
        let near = self.free.iter().flat_map(|own| near(p, &own.name).map(|n| format!("`{}={n}`", own.name)));
        parts.extend(near);
        if p.sizes_given {
            let larger = self.aligned.iter().filter(|own| own.now < own.most);
            parts.extend(larger.map(|own| format!("larger `{}`", own.name)));
        }
        parts.join(", ")
    }
}

/// The power of two behind a size that is a single window of a parameter's tile.
fn near(p: &Prediction, name: &str) -> Option<i64> {
    let own = |edge: &&Edge| edge.parameter.as_deref() == Some(name) && edge.windows <= 1;
    let edge = p.padding.edges.iter().find(own)?;
    i64::try_from(edge.size.next_power_of_two()).ok().filter(|&n| n > 0 && u64::try_from(n) != Ok(edge.tile))
}

/// The compiler's own values of the `auto` parameters that are given, if a shorter time is predicted with them.
pub(super) fn of_auto(known: &Known<'_>, kernel: &CompiledKernel) -> Option<String> {
    kernel.tile.prediction.as_ref()?;
    let given = || known.options.defines.iter();
    let without = |names: Vec<String>| -> Option<(Change, Values)> {
        let change = Change::without(names);
        let trial = Trial::of(known, kernel, &change)?;
        let values = trial.kernel().tile.choice.as_ref().map_or_else(Vec::new, |choice| choice.values.clone());
        Some((change, values))
    };
    // Which of the given numbers are `auto` shows a program without any of them.
    let numbers = given().filter(|(_, text)| text.parse::<i64>().is_ok()).map(|(name, _)| name.clone());
    let (_, open) = without(numbers.collect())?;
    let names: Vec<String> =
        given().map(|(name, _)| name.clone()).filter(|name| open.iter().any(|(own, _)| own == name)).collect();
    if names.is_empty() {
        return None;
    }
    let (change, values) = without(names)?;
    let own = effect(known, kernel, &change).filter(Effect::is_faster)?.assembled(known, kernel, &change);
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(format!("the compiler's values of `auto` parameters: {} ({})", values.join(" "), own.in_words()))
}
