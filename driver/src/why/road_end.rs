//! The end of the road: that nothing is left which lowers the predicted time, what binds, and how fast it can be at all.

use super::answer::{Known, Part};
use super::said::places_of;
use crate::compile::demands::loaded_again;
use crate::compile::{CompiledKernel, demands};
use crate::xray::peak;
use tilec_passes::choose::{Card, Prediction, Term};

/// What is said of a kernel of which no loss is left that has a number and a way out. `tried`: what was tried. `open`:
/// losses without a number have a way out.
pub(super) fn of(known: &Known<'_>, kernel: &CompiledKernel, tried: Vec<String>, open: bool) -> Option<Part> {
    let (p, card) = predicted(kernel)?;
    let name = &kernel.tile.kernel.name;
    let mut facts = bound(known, kernel, (p, card));
    facts.push(format!("the prediction is {}", p.budget()));
    facts.extend(tried);
    if open {
        facts.push("losses above that are not in the predicted time have ways out: measure what they gain".to_owned());
    }
    let title = format!("Nothing that was tried lowers the predicted time of `{name}`");
    Some(Part { title, facts, decisions: Vec::new() })
}

/// How many times the theoretical limit a time is from which on no loss is no praise.
const FAR: f64 = 1.5;

/// Of a kernel whose checks pass, and that is far from the theoretical limit: the unit that binds in a word, and what there is
/// to say of it.
pub(super) fn far(known: &Known<'_>, kernel: &CompiledKernel) -> Option<(String, Part)> {
    let (p, card) = predicted(kernel)?;
    let (least, _) = limit(p, card, kernel)?;
    let times = p.seconds / least;
    let title = format!("What binds `{}`", kernel.tile.kernel.name);
    let word = format!("{} binds, at {times:.1} times the theoretical limit", p.busiest().0.name());
    let part = Part { title, facts: bound(known, kernel, (p, card)), decisions: Vec::new() };
    (times > FAR && p.budget().largest() != Term::Launch).then_some((word, part))
}

fn predicted(kernel: &CompiledKernel) -> Option<(&Prediction, &'static Card)> {
    let p = kernel.tile.whole().filter(|p| p.unknown.is_none())?;
    Some((p, Card::from_name(p.card)?))
}

/// The unit that binds, the limit, and the loads that are repeated.
fn bound(known: &Known<'_>, kernel: &CompiledKernel, (p, card): (&Prediction, &Card)) -> Vec<String> {
    let mut facts = vec![binds(p, card, kernel)];
    facts.extend(demands::estimated(p));
    facts.extend(demands::idle(p).map(|(note, _)| note));
    facts.extend(limit(p, card, kernel).map(|(_, text)| text));
    if matches!(p.busiest().0, Term::L2 | Term::Memory) {
        facts.extend(places_of(known, &loaded_again::by_blocks(&kernel.tile.specialized, p)));
    }
    facts
}

/// The unit that binds, with its share of the card's rate.
fn binds(p: &Prediction, card: &Card, kernel: &CompiledKernel) -> String {
    let (unit, share) = p.busiest();
    let budget = p.budget();
    if budget.largest() == Term::Launch {
        return format!(
            "limited by the launch itself: it takes {:.1} of {:.1} us",
            budget.part(Term::Launch),
            budget.total()
        );
    }
    if p.terms.issue > 0.0 {
        return "limited by instruction issue: schedulers issue one instruction per clock, without a gap".to_owned();
    }
    if let Some(waste) = p.wasteful() {
        return format!(
            "limited by {}: with them its unit works longer than {}, which works {:.1} us",
            waste.name(),
            unit.name(),
            budget.part(unit)
        );
    }
    let percent = |x: f64| (100.0 * x).floor();
    let of_rate = match (unit, peak(card, &kernel.tile.kernel)) {
        (Term::Memory, _) => {
            let rate = p.bytes / p.seconds / 1e9;
            format!("; {:.0} % of the rate of the card, {rate:.0} of {:.0} GB/s", percent(rate / card.dram), card.dram)
        }
        (Term::Products, Some((peak, unit))) => {
            let rate = p.flops / p.seconds;
            let share = percent(rate / peak);
            format!("; {share:.0} % of the rate of {unit}, {:.1} of {:.1} TFLOP/s", rate / 1e12, peak / 1e12)
        }
        _ => String::new(),
    };
    format!("limited by {}, busy {:.0} % of the predicted time{of_rate}", unit.name(), percent(share))
}

/// The time of a launch in which memory moves the minimum of bytes, or products run at their peak, without anything else.
fn limit(p: &Prediction, card: &Card, kernel: &CompiledKernel) -> Option<(f64, String)> {
    let memory = p.least_bytes / (card.dram * 1e9);
    let useful = if p.padding.of_products { p.flops * (1.0 - p.padding.share) } else { p.flops };
    let products = peak(card, &kernel.tile.kernel).map_or(0.0, |(peak, _)| useful / peak);
    let us = |seconds: f64| format!("{:.1} us", 1e6 * seconds);
    let bytes = format!("{:.0} bytes of the tensors at {:.0} GB/s", p.least_bytes, card.dram);
    let text = match products > memory {
        true => format!("the theoretical limit is {}: {useful:.0} operations at the peak of the card", us(products)),
        false => format!("the theoretical limit is {}: {bytes}", us(memory)),
    };
    let seconds = products.max(memory);
    (seconds > 0.0).then_some((seconds, text))
}
