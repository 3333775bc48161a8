//! Medians and spreads.

use serde::{Deserialize, Serialize};

/// A sample in five numbers.
#[derive(Copy, Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The middle: the mean of the two middle ones of an even number.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// A quarter is smaller.
    pub lower: f64,
    /// A quarter is larger.
    pub upper: f64,
}

impl Summary {
    /// The summary of `values`; `None` without any, or if one is not a number.
    pub fn of(values: &[f64]) -> Option<Summary> {
        if values.is_empty() || values.iter().any(|x| x.is_nan()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Linear interpolation between order statistics (Hyndman and Fan 1996, type 7).
        let quantile = |q: f64| {
            let at = q * (sorted.len() - 1) as f64;
            let (below, above) = (at.floor() as usize, at.ceil() as usize);
            sorted[below] + (sorted[above] - sorted[below]) * at.fract()
        };
        Some(Summary {
            median: quantile(0.5),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            lower: quantile(0.25),
            upper: quantile(0.75),
        })
    }

    /// The spread between the quartiles as a fraction of the median.
    pub fn spread(&self) -> f64 {
        (self.upper - self.lower) / self.median
    }
}

/// `theirs / ours` round by round: above 1, ours is faster.
pub fn ratios(theirs: &[f64], ours: &[f64]) -> Vec<f64> {
    theirs.iter().zip(ours).map(|(t, o)| t / o).collect()
}

/// The geometric mean; `None` of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: f64 = values.iter().map(|x| x.ln()).sum();
    (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn five_numbers() {
        let odd = Summary::of(&[3.0, 1.0, 2.0, 5.0, 4.0]).expect("a sample");
        assert_eq!(odd, Summary { median: 3.0, min: 1.0, max: 5.0, lower: 2.0, upper: 4.0 });
        assert_eq!(odd.spread(), 2.0 / 3.0);
        let even = Summary::of(&[4.0, 1.0]).expect("a sample");
        assert_eq!((even.median, even.lower, even.upper), (2.5, 1.75, 3.25));
        let one = Summary::of(&[7.0]).expect("a sample");
        assert_eq!((one.median, one.lower, one.max), (7.0, 7.0, 7.0));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn ratios_are_of_one_round() {
        // The card slows down in the second round: both times grow, and the ratio does not change.
        assert_eq!(ratios(&[1.0, 2.0], &[2.0, 4.0]), [0.5, 0.5]);
        assert_eq!(geometric_mean(&[2.0, 8.0]).map(|x| (x * 1e9).round()), Some(4e9));
        assert_eq!(geometric_mean(&[]), None);
    }
}
