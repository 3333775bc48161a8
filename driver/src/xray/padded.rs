//! How much of the work of a launch is padding, for the budget.

use crate::compile::demands::padding::{counted_work, in_words, windows_by_data};
use tilec_passes::choose::Prediction;

/// Dimensions that are named, of those with most padding.
const EDGES: usize = 3;

/// A line with the share of padding, and one for each dimension along which tiles hang over; none without padding.
pub(super) fn padding_of(p: &Prediction) -> Vec<String> {
    let by_data = p.padding.by_data.first().map(windows_by_data);
    if p.padding.share <= 0.0 {
        return by_data.into_iter().map(|text| format!("Padding is not known: {text}.")).collect();
    }
    let useful = match p.padding.of_products {
        true => format!("; the others come to {:.1} TFLOP/s", (1.0 - p.padding.share) * p.flops / p.seconds / 1e12),
        false => String::new(),
    };
    let mut out = vec![format!("{} are padding{useful}.", counted_work(&p.padding))];
    out.extend(p.padding.edges.iter().take(EDGES).map(|edge| format!("Padding {}.", in_words(edge))));
    out.extend(by_data.map(|text| format!("Further padding is not known: {text}.")));
    out
}
