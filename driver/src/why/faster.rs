//! Other values of compile-time parameters, and of extents that are numbers: compiled, and advised where the model predicts less time with them.

use super::advice::Advice;
use super::answer::Known;
use super::numbers::{self, Values, current, free};
use super::programs::Change;
pub(super) use super::search::Less;
use super::search::Search;
use super::trials::{Effect, Trial, effect, prepare_spills};
use crate::compile::CompiledKernel;
use tilec_ir::diag::counted;
use tilec_passes::choose::FreeParameter;

/// Of the programs that are better, those that are assembled at most to find one that does not spill.
const ASSEMBLED: usize = 2;

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
    let mut search = Search::new(known, kernel, less, p, &numbers);
    let mut better = search.run();
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
        Some((values, effect)) => found.advice.push(search.advice(&values, &effect)),
        // Without a neighbour there is nothing to say of neighbours.
        None if search.tried() == 0 => {}
        None => found.facts.push(format!(
            "{} (tried, {}): {}",
            search.in_words(),
            counted(search.tried(), "program"),
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
