//! The model's choice for a kernel.

use crate::contract::number::{Args, Number};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use tilec_passes::choose::Choice;

/// The chosen values of a kernel's `auto` parameters.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chosen {
    /// The kernel.
    pub kernel: String,
    /// The parameters, in the order in which they are tried.
    pub values: Vec<(String, i64)>,
    /// The card it was chosen for.
    pub card: &'static str,
    /// The sizes it was chosen for.
    pub sizes: BTreeMap<String, i64>,
    /// Microseconds that the model predicts with them.
    pub predicted_us: f64,
}

impl Chosen {
    pub(crate) fn new(kernel: &str, choice: &Choice) -> Chosen {
        Chosen {
            kernel: kernel.to_owned(),
            values: choice.values.clone(),
            card: choice.prediction.card,
            sizes: choice.prediction.sizes.iter().cloned().collect(),
            predicted_us: choice.prediction.seconds * 1e6,
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|(name, x)| format!("{name}={x}")).collect();
        let args = self.sizes.iter().map(|(name, x)| (name.clone(), Number::Int(*x))).collect();
        let (card, us) = (self.card, self.predicted_us);
        write!(f, "{} (for {} on {card}: {us:.1} us predicted)", values.join(" "), problem_name(&args))
    }
}

/// `M=4096 N=4096 K=4096`.
pub fn problem_name(args: &Args) -> String {
    // The usual order of sizes, then the others.
    let spoken = ["M", "N", "K"];
    let first = spoken.iter().filter_map(|name| args.get_key_value(*name));
    let rest = args.iter().filter(|(name, _)| !spoken.contains(&name.as_str()));
    first.chain(rest).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
