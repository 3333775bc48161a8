//! The error function in `f64`, which the standard library lacks.

/// Terms that are enough in each of the two regions.
const SERIES_TERMS: u32 = 64;
const FRACTION_TERMS: u32 = 60;

/// `2/sqrt(pi)` times the integral of `exp(-t^2)` from 0 to `x`, to some 1e-15: the series of Abramowitz and Stegun 7.1.6
/// near zero, their continued fraction 7.1.14 of the complement further out.
pub fn erf(x: f64) -> f64 {
    let t = x.abs();
    if t.is_nan() {
        return x;
    }
    let value = if t < 2.25 {
        // 2/sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1)): all terms positive.
        let (mut term, mut sum) = (t, t);
        for n in 1..SERIES_TERMS {
            term *= 2.0 * t * t / f64::from(2 * n + 1);
            sum += term;
        }
        std::f64::consts::FRAC_2_SQRT_PI * (-t * t).exp() * sum
    } else if t < 6.0 {
        // sqrt(pi) exp(x^2) erfc(x) = 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ..)))).
        let fraction = (1..FRACTION_TERMS).rev().fold(t, |rest, n| t + f64::from(n) / 2.0 / rest);
        1.0 - (-t * t).exp() / fraction / std::f64::consts::PI.sqrt()
    } else {
        1.0
    };
    value.copysign(x)
}
