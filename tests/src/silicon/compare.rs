//! When a result of the device agrees with the simulator's.
//!
//! Everything must be equal bit for bit except the approximate instructions, whose errors the PTX manual bounds
//! (ISA 9.7.3, 9.7.4).

use super::operand::{Elem, Float, register};
use super::probe::{Compare, Probe};
use super::values::widen;
use tilec_sim::numerics::approx::Function;

/// A result that is compared.
pub struct Verdict {
    /// It agrees.
    pub good: bool,
    /// How many units in the last place it is away, where that means something.
    pub ulps: f64,
}

/// The rule for an instruction.
pub fn rule(opcode: &str, modifiers: &[&str]) -> Compare {
    let has = |word: &str| modifiers.contains(&word);
    if !has("approx") && !has("full") {
        return Compare::Exact;
    }
    let f16 = has("f16") || has("f16x2");
    let bf16 = has("bf16") || has("bf16x2");
    match opcode {
        "div" => Compare::Quotient(has("ftz")),
        // A routine in software, with the error that CUDA states of `rsqrt`.
        "rsqrt" if has("f64") && !has("ftz") => Compare::Ulps(Float::F64, 1.0),
        "rcp" | "rsqrt" if has("f64") => Compare::Relative(Float::F64, 2f64.powi(-20) * 1.5),
        "ex2" if f16 => Compare::Relative(Float::F16, 2f64.powf(-9.9)),
        "ex2" if bf16 => Compare::Relative(Float::BF16, 2f64.powi(-7)),
        "tanh" if f16 => Compare::Absolute(Float::F16, 2f64.powf(-10.987)),
        "tanh" if bf16 => Compare::Relative(Float::BF16, 2f64.powi(-8)),
        _ => {
            let function = match opcode {
                "ex2" => Function::Ex2,
                "lg2" => Function::Lg2,
                "rcp" => Function::Rcp,
                "rsqrt" => Function::Rsqrt,
                "sqrt" => Function::Sqrt,
                "sin" => Function::Sin,
                "cos" => Function::Cos,
                "tanh" => Function::Tanh,
                _ => return Compare::Exact,
            };
            Compare::Function(function, has("ftz"))
        }
    }
}

fn is_nan(f: Float, bits: u64) -> bool {
    let magnitude = bits & ((1 << (f.exponent + f.fraction)) - 1);
    magnitude > ((1 << f.exponent) - 1) << f.fraction
}

fn is_infinite(f: Float, bits: u64) -> bool {
    bits & ((1 << (f.exponent + f.fraction)) - 1) == ((1 << f.exponent) - 1) << f.fraction
}

/// The unit in the last place of a number.
fn unit(f: Float, bits: u64) -> f64 {
    let biased = (bits >> f.fraction & ((1 << f.exponent) - 1)).max(1) as i64;
    2f64.powi((biased - f.bias() - i64::from(f.fraction)) as i32)
}

fn near(f: Float, want: u64, got: u64, bound: impl Fn(f64, f64) -> f64) -> Verdict {
    if want == got {
        return Verdict { good: true, ulps: 0.0 };
    }
    if is_nan(f, want) || is_nan(f, got) || is_infinite(f, want) || is_infinite(f, got) {
        return Verdict { good: is_nan(f, want) && is_nan(f, got), ulps: 0.0 };
    }
    let (x, y, unit) = (widen(f, want), widen(f, got), unit(f, want));
    let error = (x - y).abs();
    Verdict { good: error <= bound(x.abs(), unit), ulps: error / unit }
}

/// Whether one f32 is the infinity, or with `.ftz` the zero, that the other is at most two units from.
fn across(ftz: bool, want: u64, got: u64) -> bool {
    let magnitude = |x: u64| x & 0x7fff_ffff;
    let (low, high) = (magnitude(want).min(magnitude(got)), magnitude(want).max(magnitude(got)));
    let overflow = high == 0x7f80_0000 && low >= high - 2;
    let underflow = ftz && low == 0 && (0x0080_0000..=0x0080_0002).contains(&high);
    want >> 31 == got >> 31 && (overflow || underflow)
}

/// Compares element `e` of a result.
pub fn compare(rule: Compare, want: u64, got: u64, input: u64) -> Verdict {
    match rule {
        Compare::Exact => Verdict { good: want == got, ulps: 0.0 },
        Compare::Function(function, ftz) => {
            let near = near(Float::F32, want, got, |_, _| 0.0);
            Verdict { good: function.allows(ftz, input as u32, got as u32), ulps: near.ulps }
        }
        Compare::Ulps(f, n) => near(f, want, got, |_, unit| n * unit),
        Compare::Quotient(ftz) => {
            let verdict = near(Float::F32, want, got, |_, unit| 2.0 * unit);
            Verdict { good: verdict.good || across(ftz, want, got), ..verdict }
        }
        // The simulator's result is rounded itself, and so is the device's.
        Compare::Relative(f, r) => near(f, want, got, |x, unit| r * x + unit),
        Compare::Absolute(f, a) => near(f, want, got, |_, unit| a + unit),
    }
}

/// One result of a warp that may disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Output register.
    pub output: usize,
    /// Lane.
    pub lane: usize,
    /// Element of the register.
    pub element: usize,
}

/// Goes through the results of one warp that differ in their bits.
pub fn differing(probe: &Probe, input: &[u32], want: &[u32], got: &[u32], mut each: impl FnMut(At, u64, u64, Verdict)) {
    for (output, operand) in probe.outputs.iter().enumerate() {
        for lane in 0..32 {
            let (x, y) = (register(&probe.outputs, want, output, lane), register(&probe.outputs, got, output, lane));
            if x == y {
                continue;
            }
            let bits = operand.elem_bits().min(64);
            for element in 0..operand.per {
                let part = |v: u64| v >> (bits * element as u32) & (u64::MAX >> (64 - bits));
                // Whatever is beyond the elements belongs to the last one.
                let whole = operand.per == 1 && !matches!(operand.elem, Elem::Float(_));
                let (x, y) = if whole { (x, y) } else { (part(x), part(y)) };
                if x == y {
                    continue;
                }
                let source = if probe.compare == Compare::Exact { 0 } else { register(&probe.inputs, input, 0, lane) };
                each(At { output, lane, element }, x, y, compare(probe.compare, x, y, source));
            }
        }
    }
}
