//! Other values of compile-time parameters, and of extents that are numbers: compiled, and advised where the model predicts less time with them.

use super::advice::Advice;
use super::answer::Known;
use super::numbers::{self, Number, Values, current, free};
use super::programs::Change;
use super::trials::{Effect, FASTER, Trial, effect, prepare_spills};
use crate::compile::CompiledKernel;
use crate::compile::unrepeated::unrepeated;
use std::collections::BTreeSet;
use tilec_ir::diag::counted;
use tilec_ir::kernel::Kernel;
use tilec_ir::print::print_expr;
use tilec_passes::choose::{FreeParameter, Prediction};

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
    found.facts.extend(chosen(kernel, &free(known, kernel)).filter(|_| less == Less::Time));
    let numbers = numbers::of(known, kernel);
    if numbers.is_empty() {
        return found;
    }
    let mut search = Search { known, kernel, less, now: less.of(p), numbers: &numbers, seen: BTreeSet::new() };
    let mut better = search.run(p);
    // Those with fewer registers in front of others where spills are expected; of two with as much, the one with fewer
    // changes.
    better.sort_by(|a, b| {
        let registers = |e: &Effect| if e.expects_spills { e.prediction.registers } else { 0 };
        let own = |(values, e): &(Values, Effect)| (e.expects_spills, registers(e), values.len());
        let by_value = search.value(&a.1).total_cmp(&search.value(&b.1));
        own(a).0.cmp(&own(b).0).then(own(a).1.cmp(&own(b).1)).then(by_value).then(own(a).2.cmp(&own(b).2))
    });
    // Where the best one spills, one with another number of threads may not.
    let threads = better.first().map(|(_, best)| best.prediction.threads);
    let next = better.iter().position(|(_, e)| Some(e.prediction.threads) != threads);
    if let Some(next) = next.filter(|&next| next > 1) {
        better.swap(1, next);
    }
    better.truncate(ASSEMBLED);
    let changes: Vec<Change> = better.iter().map(|(values, _)| search.change(values)).collect();
    prepare_spills(known, kernel, &changes);
    let mut best: Option<(Values, Effect)> = None;
    for (values, effect) in better {
        let effect = effect.assembled(known, kernel, &search.change(&values));
        if !effect.spills() {
            best = Some((values, effect));
            break;
        }
        best = best.or(Some((values, effect)));
    }
    match best {
        Some((values, effect)) if effect.spilled().is_some_and(|bytes| bytes > 0) && effect.spills() => {
            let numbers = numbers::in_words(&numbers, &values);
            found.facts.push(format!("not advised: {numbers} ({})", effect.in_words()));
        }
        Some((values, effect)) => found.advice.push(search.advice(&values, &effect, p)),
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

/// A search for better values: half and double of each parameter, and of the best of these half and double of another one.
struct Search<'a> {
    known: &'a Known<'a>,
    kernel: &'a CompiledKernel,
    less: Less,
    /// What there is without a change.
    now: f64,
    numbers: &'a [Number],
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
            self.known.trials.prepare(&round.iter().map(|values| self.change(values)).collect::<Vec<_>>());
            let mut next: Option<(Values, f64)> = None;
            for values in round {
                let Some(own) = effect(self.known, self.kernel, &self.change(&values)) else { continue };
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

    fn change(&self, values: &Values) -> Change {
        numbers::change(self.known, self.kernel, self.numbers, values)
    }

    /// Values with another one of a single number.
    fn neighbours(&self, base: &Values, p: &Prediction) -> Vec<Values> {
        let with = |at: usize, value: i64| {
            let mut values: Values = base.iter().filter(|(other, _)| *other != at).copied().collect();
            if value != self.numbers[at].now() {
                values.push((at, value));
            }
            values.sort_unstable();
            values
        };
        let mut all = Vec::new();
        for (at, number) in self.numbers.iter().enumerate() {
            let own = base.iter().find(|(other, _)| *other == at).map(|(_, value)| *value);
            let others = number.beside(own.unwrap_or(number.now()), p);
            all.extend(others.into_iter().map(|value| with(at, value)));
        }
        all
    }

    /// What was tried.
    fn in_words(&self, p: &Prediction) -> String {
        numbers::tried(self.numbers, p)
    }

    fn advice(&self, values: &Values, own: &Effect, now: &Prediction) -> Advice {
        let unproven = values.iter().filter_map(|&(at, _)| match &self.numbers[at] {
            Number::Parameter(own, _) if !own.proven => Some(format!("`{}`", own.name)),
            _ => None,
        });
        let unproven: Vec<String> = unproven.collect();
        let proof = match unproven[..] {
            [] => String::new(),
            _ => format!(" (that results do not depend on {} is not proved)", unproven.join(", ")),
        };
        let bytes = match self.less {
            Less::Time => String::new(),
            Less::Bytes => format!(": {:.0} bytes are moved, not {:.0}", own.prediction.bytes, now.bytes),
        };
        let restricted = restrictions(self.known, self.kernel, &self.change(values));
        Advice::tried(format!("{}{bytes}{restricted}{proof}", numbers::in_words(self.numbers, values)), own)
    }
}

/// The compiler's own values of the `auto` parameters that are given, if a shorter time is predicted with them.
pub(super) fn of_auto(known: &Known<'_>, kernel: &CompiledKernel) -> Option<String> {
    kernel.tile.prediction.as_ref()?;
    let given = || known.options.defines.iter();
    let without = |names: Vec<String>| -> Option<(Change, Vec<(String, i64)>)> {
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
