//! What a loss costs: microseconds of the predicted time.

use crate::compile::CompiledKernel;
use tilec_ir::atoms::Atom;
use tilec_ir::demands::{Figure, Property, What};
use tilec_ir::missed_paths::FastPath;
use tilec_passes::choose::Term;

/// Microseconds of the predicted time that are for a property that does not hold; `None`: the model has no number for it.
pub(super) fn of_loss(kernel: &CompiledKernel, what: What) -> Option<f64> {
    let p = kernel.tile.whole().filter(|p| p.unknown.is_none())?;
    let budget = p.budget();
    match what {
        What::AtLeast(Figure::Roofline, _) => Some(budget.total() - budget.part(p.busiest().0)),
        What::AtMost(Figure::Bytes, _) => kernel.tile.prediction.as_ref().map(|own| 1e6 * own.seconds_of_excess()),
        What::AtMost(Figure::Padding, _) => {
            p.padding.of_products.then(|| p.padding.share * budget.part(Term::Products))
        }
        What::Has(Property::Coalesced) => Some(budget.part(Term::Sectors)),
        What::Has(Property::NoBankConflicts) => {
            // Of accesses whose executions are not known there is no number.
            (p.terms.conflicts > 0.0).then(|| budget.part(Term::Conflicts))
        }
        // Scalar products are all that is counted as products.
        What::Has(Property::TensorCores)
            if p.atom.is_some_and(|name| Atom::from_name(name).is_some_and(|atom| !atom.row().tensor_core)) =>
        {
            Some(budget.part(Term::Products))
        }
        What::Has(Property::Wgmma | Property::TensorCores) => missed(kernel, &[FastPath::Wgmma]),
        // Of the latency, what is for loads that do not run ahead.
        What::Has(Property::Pipelined) if p.awaited > 0.0 => Some(budget.part(Term::Latency).min(1e6 * p.awaited)),
        // However far ahead loads run, the busiest unit works as long.
        What::Has(Property::Pipelined) => missed(kernel, &[FastPath::Ahead, FastPath::Asynchronous])
            .map(|us| us.min(budget.total() - budget.part(p.busiest().0))),
        What::Has(Property::Vectorised) => missed(kernel, &[FastPath::Wide]),
        _ => None,
    }
}

/// Microseconds that the model predicts for lost fast paths, each lost alone.
fn missed(kernel: &CompiledKernel, paths: &[FastPath]) -> Option<f64> {
    let own = kernel.tile.missed.iter().filter_map(|d| d.loss.as_ref()).filter(|loss| paths.contains(&loss.path));
    let all: Vec<f64> = own.filter_map(|loss| loss.nanoseconds.map(|ns| ns as f64 / 1e3)).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// `3.1 us of 17.1`, in front of what a loss is.
pub(super) fn in_words(kernel: &CompiledKernel, us: Option<f64>) -> String {
    match (us, kernel.tile.whole()) {
        (Some(us), Some(p)) if us < SHOWN => {
            format!("0.0 us of {:.1}, because other work hides it", p.budget().total())
        }
        (Some(us), Some(p)) => format!("{us:.1} us of {:.1}", p.budget().total()),
        _ => "not in the predicted time".to_owned(),
    }
}

/// Microseconds below which a loss is printed as 0.
pub(super) const SHOWN: f64 = 0.05;
