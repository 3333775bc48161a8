//! The error function in `f64`, which the standard library lacks.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

/// Terms that are enough in each of the two regions.
const SERIES_TERMS: u32 = 64;
const FRACTION_TERMS: u32 = 60;
/// What rounding takes of `2/sqrt(pi)`.
const FRAC_2_SQRT_PI_REST: f64 = f64::from_bits(0x3c71_ae3a_914f_ed80);

/// A number as the sum of two.
type Two = (f64, f64);

/// The sum of two numbers, and what rounding takes of it (Knuth).
fn sum(a: f64, b: f64) -> Two {
    let s = a + b;
    let of_b = s - a;
    (s, (a - (s - of_b)) + (b - of_b))
}

fn plus((a, a_rest): Two, (b, b_rest): Two) -> Two {
    let (s, lost) = sum(a, b);
    sum(s, lost + (a_rest + b_rest))
}

fn times((a, a_rest): Two, (b, b_rest): Two) -> Two {
    let product = a * b;
    let lost = a.mul_add(b, -product);
    sum(product, a_rest.mul_add(b, a.mul_add(b_rest, lost)))
}

fn divided((a, a_rest): Two, by: f64) -> Two {
    let quotient = a / by;
    sum(quotient, ((-quotient).mul_add(by, a) + a_rest) / by)
}

/// `2/sqrt(pi)` times the integral of `exp(-t^2)` from 0 to `x`, to about a unit in the last place: the series of Abramowitz and Stegun 7.1.6
/// near zero, summed in two numbers, their continued fraction 7.1.14 of the complement further out.
pub fn erf(x: f64) -> f64 {
    let t = x.abs();
    if t.is_nan() {
        return x;
    }
    let value = if t < 1e-9 {
        // The next term is below a tenth of a unit. What is below the normal numbers is rounded once.
        FRAC_2_SQRT_PI.mul_add(t, FRAC_2_SQRT_PI_REST * t)
    } else if t < 2.25 {
        // 2/sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (1 * 3 * .. * (2n+1)): all terms positive.
        let square = times((t, 0.0), (t, 0.0));
        let twice = (2.0 * square.0, 2.0 * square.1);
        let (mut term, mut series) = ((t, 0.0), (t, 0.0));
        for n in 1..SERIES_TERMS {
            term = divided(times(term, twice), f64::from(2 * n + 1));
            series = plus(series, term);
        }
        let (high, low) = times(series, (FRAC_2_SQRT_PI, FRAC_2_SQRT_PI_REST));
        let power = (-square.0).exp();
        power.mul_add(high, power * (-square.1).mul_add(high, low))
    } else if t < 6.0 {
        // sqrt(pi) exp(x^2) erfc(x) = 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ..)))).
        let fraction = (1..FRACTION_TERMS).rev().fold(t, |rest, n| t + f64::from(n) / 2.0 / rest);
        1.0 - (-t * t).exp() / fraction / PI.sqrt()
    } else {
        1.0
    };
    value.copysign(x)
}
