//! A demand that does not hold: where, why, and what would change it. The overview and `--not` both show what is found here.

use super::advice::{self, Advice, Given, Lines};
use super::answer::{Decision, Known};
use super::faster::{self, Less};
use super::premise::premise;
use super::said::places_of;
use super::{source_changes, tried, ways_out};
use crate::compile::demands::way_out::By;
use crate::compile::demands::{self, Broken, PromisesTried};
use crate::compile::unrepeated::unrepeated;
use crate::compile::{CompiledKernel, with_preconditions};
use tilec_ir::demands::{Figure, What};
use tilec_ir::diag::Span;

/// What there is to say of it.
pub(super) struct Loss {
    /// How it does not hold.
    pub(super) message: String,
    /// Where.
    pub(super) places: Vec<String>,
    /// Why, and what was tried.
    pub(super) facts: Vec<String>,
    /// What passes said.
    pub(super) decisions: Vec<Decision>,
    /// What would change it, and what the model predicts with that.
    pub(super) ways: Vec<String>,
}

/// Looks for reasons and ways out, and tries these.
pub(super) fn loss(known: &Known<'_>, kernel: &CompiledKernel, what: What, broken: Broken, given: Given) -> Loss {
    let mut facts = broken.notes.clone();
    let mut advice: Vec<Advice> = Vec::new();
    let mut own = match what {
        What::AtMost(Figure::Padding, _) => tried::of_tiles(known, kernel),
        What::AtMost(Figure::Bytes, _) => faster::of_parameters(known, kernel, Less::Bytes),
        What::AtLeast(Figure::Roofline, _) => {
            let mut found = faster::of_parameters(known, kernel, Less::Time);
            found.advice.extend(source_changes::of_source(known, kernel).faster);
            found
        }
        _ => faster::Found::default(),
    };
    facts.append(&mut own.facts);
    advice.append(&mut own.advice);
    let spans: Vec<Span> = broken.places.iter().map(|(span, _)| *span).collect();
    let premise = premise(known, broken.path, kernel, &spans, what);
    facts.extend(premise.facts);
    let mut more = premise.advice;
    let mut ways = broken.change.clone();
    match promises(known, kernel, what, &broken) {
        Some(PromisesTried::Holds(needs, _)) if !more.iter().any(Advice::is_option) => {
            more.retain(|advice| !advice.declares());
            more.insert(0, ways_out::of_preconditions(known, kernel, &needs, &format!(": `{what}` holds with it")));
            ways.retain(|way| way.by != By::Hand);
        }
        Some(tried @ PromisesTried::Broken(_)) => facts.extend(tried.in_words(more.iter().any(Advice::declares))),
        _ => {}
    }
    // For padding the tiles that were tried say it all.
    if !matches!(what, What::AtMost(Figure::Padding, _)) {
        advice.extend(ways.iter().flat_map(|way| ways_out::of_way_out(known, kernel, way)));
    }
    advice.append(&mut more);
    let given = if let What::AtLeast(Figure::Roofline, _) = what { Given::Faster } else { given };
    let Lines { facts: besides, ways } = advice::tried(known, kernel, advice, given);
    facts.extend(besides);
    unrepeated(&mut facts);
    Loss {
        message: broken.message,
        places: places_of(known, &broken.places),
        facts,
        decisions: premise.decisions,
        ways,
    }
}

/// What preconditions do for a property that does not hold.
fn promises(known: &Known<'_>, kernel: &CompiledKernel, what: What, broken: &Broken) -> Option<PromisesTried> {
    // Of registers the assembler alone knows. Padding is a matter of sizes and tiles, whatever is promised, and what is
    // predicted is advised where less is predicted.
    if what.is_of_registers() || matches!(what, What::AtMost(Figure::Padding, _) | What::AtLeast(Figure::Roofline, _)) {
        return None;
    }
    let asked = demands::asked_for(kernel.tile.demanding(), broken);
    let compiled = |text: &str| known.trials.program(&super::programs::Change::of_source(text.to_owned()));
    Some(with_preconditions(&known.program.source, &compiled, &kernel.tile, what, &asked))
}
