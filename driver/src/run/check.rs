//! Compares a device's result with the interpreter's.
//!
//! Results that do not depend on order and rounding must agree exactly: sums of integers whose magnitudes stay below
//! the limit of the accumulator, and elementwise operators on them. All others must agree within the bound that the
//! interpreter computes (`ir/src/interp/bounds.rs`). For a sum of `K` products, with `S` the sum of their absolute
//! values, the device's error is at most `c * K * S`. The factor `c` follows from how the hardware aligns and truncates
//! the products of a step.

use crate::contract::encode::word;
use crate::run::bind::TensorPlan;
use crate::run::data::{POISON, get_exact};
use std::fmt::Write as _;
use tilec_ir::atoms::{Atom, ShortSums};
use tilec_ir::interp::{Number, Numbers, PartAccuracy, SumAccuracy};
use tilec_ir::numerics::float_format;
use tilec_ir::types::Elem;

/// Mismatches that are shown.
const SHOWN: usize = 5;

/// Accuracy of sums of products of the atom called `atom` (or of scalar code), with accumulators of f16 or f32, on a
/// device of compute capability `cc` (times ten). `promoted`: maximum number of products that are summed before they
/// are added to the accumulator.
///
/// A tensor core adds a few products at a time, aligned to the largest and truncated, and rounds the new accumulator.
/// Volta adds four with 23 fraction bits: `(5 * 2^-23 + 2^-r) / 4` per term, `r` = 23 for f32 and 11 for f16. Later
/// chips emulate m8n8k4 with scalar fused multiply-adds, each rounded once. For 8-bit floats some keep only 13 fraction
/// bits, in the sum too.
pub fn accuracy(atom: &str, f16_accumulators: bool, cc: u32, promoted: Option<u64>) -> SumAccuracy {
    let fused = |step: u32, bits: i32, round: f64| (f64::from(step + 1) * 2f64.powi(-bits) + round) / f64::from(step);
    let (exact_below, round) =
        if f16_accumulators { (2f64.powi(11), 2f64.powi(-11)) } else { (2f64.powi(24), 2f64.powi(-23)) };
    let whole = SumAccuracy::new(exact_below, round);
    if atom == "m8n8k4" && cc < 80 {
        return SumAccuracy::new(exact_below, fused(4, 23, round));
    }
    let short = match atom {
        // Hopper computes it with f16 instructions.
        "m16n8k32_f8" if cc == 89 => Some(ShortSums { step: 16, bits: 13 }),
        _ => Atom::from_name(atom).and_then(|a| a.row().short_sums),
    };
    let Some(ShortSums { step, bits }) = short.filter(|_| !f16_accumulators) else { return whole };
    let bits = bits.cast_signed();
    let (exact_below, per_term) = (2f64.powi(bits + 1), fused(step, bits, 2f64.powi(-bits)));
    match promoted {
        Some(terms) => {
            SumAccuracy { parts: Some(PartAccuracy { terms: terms as f64, exact_below, per_term }), ..whole }
        }
        None => SumAccuracy::new(exact_below, per_term),
    }
}

/// The expected elements of a tensor.
pub struct Expected<'a> {
    /// The reference, by offset.
    pub values: &'a Numbers,
    /// Error bounds by offset; if empty, all are zero.
    pub errors: &'a [f64],
    /// A bound was wider than one missing product on the way.
    pub drowned: bool,
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Verdict {
    /// Elements compared.
    pub elements: u64,
    /// Elements that differ by more than they may.
    pub wrong: u64,
    /// Largest absolute difference of elements with a bound.
    pub largest_error: f64,
    /// Largest bound that is a number; 0: the comparison was exact.
    pub largest_bound: f64,
    /// The bound was larger than one missing product would have been somewhere: a mistake may have gone unseen.
    pub weak: bool,
    /// Elements whose bound is not a number: any result of the device is within it.
    pub without_bound: u64,
    /// Those of them that differ.
    pub unbounded: u64,
    /// Elements that are no numbers, here and in the reference, and which of `inf`, `-inf` and `nan` all of them are, if
    /// they are alike.
    pub infinite: (u64, Option<&'static str>),
    /// Bytes between the elements that were written.
    pub stray_bytes: u64,
    /// Elements of a write-only tensor that still have their initial poison (for floats: if the poison is not a
    /// number), and the index of the first. The reference does not write them either, so they are equal.
    pub unwritten: (u64, Option<String>),
    /// The first mismatches, a line each.
    pub shown: Vec<String>,
}

impl Verdict {
    /// Whether everything is as it must be.
    pub fn ok(&self) -> bool {
        self.wrong == 0 && self.stray_bytes == 0 && !self.compares_nothing()
    }

    /// Whether no element was compared: all of them may be anything.
    pub fn compares_nothing(&self) -> bool {
        self.elements > 0 && self.unbounded == self.elements
    }

    /// What all elements are, if none is a number: their equality proves little.
    pub fn only_infinities(&self) -> Option<&'static str> {
        let (count, which) = self.infinite;
        (self.elements > 0 && count == self.elements).then(|| which.unwrap_or("infinite or nan"))
    }
}

/// Elements of a tensor that is only written which are still poison after the launch, and the index of the first; as far as there is `more` time.
pub fn unwritten(plan: &TensorPlan, after: &[u8], mut more: impl FnMut() -> bool) -> (u64, Option<String>) {
    let (mut count, mut first) = (0, None);
    if plan.access.reads() || !float_format(plan.elem).is_some_and(|format| format.has_nan()) {
        return (count, first);
    }
    let size = plan.elem.bytes_of(1) as usize;
    plan.while_each(|index, offset| {
        let bytes = after.get(offset * size..(offset + 1) * size);
        if bytes.is_some_and(|bytes| bytes.iter().all(|&b| b == POISON)) {
            count += 1;
            first.get_or_insert_with(|| index.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
        }
        more()
    });
    (count, first)
}

/// Compares the memory of a tensor after the launch with what is expected, and the gaps between its elements with what
/// was there before.
pub fn compare(plan: &TensorPlan, before: &[u8], after: &[u8], expected: &Expected<'_>) -> Verdict {
    let mut verdict =
        Verdict { weak: expected.drowned, unwritten: unwritten(plan, after, || true), ..Verdict::default() };
    let mut element = vec![false; before.len() * 8 / plan.elem.bits() as usize];
    plan.for_each(|index, offset| {
        element[offset] = true;
        verdict.elements += 1;
        let got = get_exact(plan.elem, after, offset);
        let want = expected.values.get(offset).unwrap_or(Number::Float(f64::NAN));
        let bound = expected.errors.get(offset).copied().unwrap_or(0.0);
        let error = difference(got, want);
        let bounded = bound.is_finite();
        verdict.without_bound += u64::from(!bounded);
        verdict.unbounded += u64::from(!bounded && error != 0.0);
        verdict.weak |= !bounded;
        if let (Some(which), 0.0) = (no_number(got), error) {
            let (count, alike) = verdict.infinite;
            verdict.infinite = (count + 1, if count == 0 { Some(which) } else { alike.filter(|own| *own == which) });
        }
        if bounded {
            verdict.largest_bound = verdict.largest_bound.max(bound);
        }
        if bounded || error.is_nan() {
            let error = if error.is_nan() { f64::INFINITY } else { error };
            verdict.largest_error = verdict.largest_error.max(error);
        }
        // An error that is not a number is too large.
        if error.is_nan() || error > bound || (got.to_f64().is_nan() && !want.to_f64().is_nan()) {
            verdict.wrong += 1;
            if verdict.shown.len() < SHOWN {
                let place: Vec<String> = index.iter().map(u64::to_string).collect();
                let mut line = format!("{}[{}] = {got}, expected {want}", plan.name, place.join(", "));
                if bound > 0.0 {
                    let _ = write!(line, " within {bound:.3e}");
                }
                verdict.shown.push(line);
            }
        }
    });
    for (i, _) in element.iter().enumerate().filter(|(_, is)| !**is) {
        let changed = word(plan.elem, before, i) ^ word(plan.elem, after, i);
        verdict.stray_bytes += changed.to_le_bytes().iter().filter(|byte| **byte != 0).count() as u64;
    }
    verdict
}

/// What an element is that is no number.
fn no_number(x: Number) -> Option<&'static str> {
    match x.to_f64() {
        x if x.is_nan() => Some("nan"),
        f64::INFINITY => Some("inf"),
        f64::NEG_INFINITY => Some("-inf"),
        _ => None,
    }
}

/// Difference of two elements: zero if both are NaN, NaN if one is.
fn difference(got: Number, want: Number) -> f64 {
    match (got, want) {
        (Number::Wide(got), Number::Wide(want)) => (got - want).unsigned_abs() as f64,
        _ => {
            let (got, want) = (got.to_f64(), want.to_f64());
            if got == want || (got.is_nan() && want.is_nan()) { 0.0 } else { (got - want).abs() }
        }
    }
}

/// The largest difference from `want` of a sum of `k` products whose magnitudes add up to `s`, rounded to `elem`; 0 for
/// integers.
pub fn tolerance(elem: Elem, want: f64, s: f64, k: f64, accuracy: SumAccuracy) -> f64 {
    let Some(format) = float_format(elem) else { return 0.0 };
    // A few roundings to f32 in the epilogue besides the accumulation.
    let sum = (accuracy.relative(k) + 8.0 * 2f64.powi(-24)) * s;
    // The device rounds its value to the element type, and so did the interpreter.
    2.0 * format.unit_roundoff() * (want.abs() + sum) + sum + format.min_subnormal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use crate::run::data::set;

    fn plan() -> TensorPlan {
        TensorPlan {
            reads_gaps: false,
            name: "C".to_owned(),
            elem: Elem::F32,
            access: Access::Write,
            shape: vec![2, 2],
            strides: vec![3, 1],
            modes: vec![1, 1],
            span: 5,
            pointers: false,
        }
    }

    fn memory(values: [f64; 4]) -> Vec<u8> {
        let mut bytes = vec![POISON; 20];
        for (offset, x) in [0, 1, 3, 4].into_iter().zip(values) {
            set(Elem::F32, &mut bytes, offset, x);
        }
        bytes
    }

    fn exact(values: &Numbers) -> Expected<'_> {
        Expected { values, errors: &[], drowned: false }
    }

    fn want() -> Numbers {
        vec![1.0, 2.0, 0.0, 3.0, 4.0].into()
    }

    #[test]
    fn equal_results_are_ok_and_others_are_shown() {
        let before = vec![POISON; 20];
        let good = compare(&plan(), &before, &memory([1.0, 2.0, 3.0, 4.0]), &exact(&want()));
        assert!(good.ok() && good.elements == 4 && good.largest_error == 0.0);
        let bad = compare(&plan(), &before, &memory([1.0, 2.0, 3.5, f64::NAN]), &exact(&want()));
        assert_eq!((bad.ok(), bad.wrong), (false, 2));
        assert_eq!(bad.shown[0], "C[1, 0] = 3.5, expected 3");
        assert_eq!(bad.largest_error, f64::INFINITY);
    }

    #[test]
    fn elements_that_nobody_writes_are_counted() {
        let mut after = memory([1.0, 2.0, 3.0, 4.0]);
        after[12..16].fill(POISON);
        let want = vec![1.0, 2.0, 0.0, f64::NAN, 4.0].into();
        let verdict = compare(&plan(), &[POISON; 20], &after, &exact(&want));
        assert!(verdict.ok() && verdict.unwritten == (1, Some("1, 0".to_owned())), "{verdict:?}");
        // What is read as well may stay as it is.
        let read = TensorPlan { access: Access::ReadWrite, ..plan() };
        assert_eq!(compare(&read, &[POISON; 20], &after, &exact(&want)).unwritten.0, 0);
    }

    #[test]
    fn writes_between_the_elements_are_found() {
        let mut after = memory([1.0, 2.0, 3.0, 4.0]);
        after[8] = 0;
        let verdict = compare(&plan(), &[POISON; 20], &after, &exact(&want()));
        assert_eq!((verdict.ok(), verdict.wrong, verdict.stray_bytes), (false, 0, 1));
    }

    #[test]
    fn bounds_hold_element_by_element() {
        let before = vec![POISON; 20];
        let values = want();
        let expected = |drowned| Expected { values: &values, errors: &[1e-3, 0.0, 0.0, 0.0, 0.0], drowned };
        let near = memory([1.0 + 1e-4, 2.0, 3.0, 4.0]);
        let verdict = compare(&plan(), &before, &near, &expected(false));
        assert!(verdict.ok() && !verdict.weak && verdict.largest_error > 9e-5, "{verdict:?}");
        let far = memory([1.0 + 1e-2, 2.0, 3.0, 4.0]);
        assert!(!compare(&plan(), &before, &far, &expected(false)).ok());
        let other = memory([1.0, 2.0 + 1e-4, 3.0, 4.0]);
        assert!(!compare(&plan(), &before, &other, &expected(false)).ok());
        assert!(compare(&plan(), &before, &near, &expected(true)).weak);
    }

    #[test]
    fn integers_of_64_bits_are_compared_to_the_last_one() {
        let plan = TensorPlan { elem: Elem::I64, ..plan() };
        let big = (1i64 << 53) + 1;
        let memory = |x: i64| [x, 0, -1, 2, 3].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let want: Numbers = vec![big, 0, -1, 2, 3].into();
        assert!(compare(&plan, &memory(0), &memory(big), &exact(&want)).ok());
        let verdict = compare(&plan, &memory(0), &memory(big - 1), &exact(&want));
        assert_eq!((verdict.wrong, verdict.largest_error), (1, 1.0));
        assert_eq!(verdict.shown[0], "C[0, 0] = 9007199254740992, expected 9007199254740993");
    }

    #[test]
    fn nothing_stands_for_a_number() {
        let values = want();
        let expected = Expected { values: &values, errors: &[f64::INFINITY; 5], drowned: false };
        let verdict = compare(&plan(), &[POISON; 20], &memory([f64::NAN, 2.0, 3.0, 4.0]), &expected);
        assert!(!verdict.ok() && verdict.weak);
    }

    #[test]
    fn what_may_be_anything_is_not_compared() {
        let (values, before) = (want(), [POISON; 20]);
        let of = |bound: f64, got: [f64; 4]| {
            compare(&plan(), &before, &memory(got), &Expected { values: &values, errors: &[bound; 5], drowned: false })
        };
        for bound in [f64::INFINITY, f64::NAN] {
            let all = of(bound, [9.0; 4]);
            assert!(!all.ok() && all.compares_nothing() && all.wrong == 0, "{all:?}");
            let some = of(bound, [1.0, 2.0, 3.0, 9.0]);
            assert!(some.ok() && some.unbounded == 1 && some.without_bound == 4, "{some:?}");
            assert!(some.largest_error == 0.0 && some.largest_bound == 0.0, "{some:?}");
        }
    }

    #[test]
    fn infinities_alone_are_told() {
        let before = [POISON; 20];
        let of = |all: [f64; 4]| {
            let values: Numbers = vec![all[0], all[1], 0.0, all[2], all[3]].into();
            compare(&plan(), &before, &memory(all), &exact(&values)).only_infinities()
        };
        let inf = f64::INFINITY;
        assert_eq!(of([-inf; 4]), Some("-inf"));
        assert_eq!(of([-inf, inf, inf, -inf]), Some("infinite or nan"));
        assert_eq!(of([-inf, -inf, -inf, 1.0]), None);
    }

    #[test]
    fn volta_has_the_constant_of_its_model() {
        let per_term = accuracy("m8n8k4", false, 70, None).per_term;
        assert!((1.7e-7..1.9e-7).contains(&per_term), "{per_term}");
    }

    #[test]
    fn eight_bit_floats_have_short_sums() {
        let all = accuracy("m64k32_f8", false, 90, None);
        assert!((1.29e-4..1.31e-4).contains(&all.per_term) && all.exact_below == 16384.0, "{all:?}");
        let promoted = accuracy("m64k32_f8", false, 90, Some(128));
        assert!((0.016..0.018).contains(&promoted.relative(8192.0)), "{promoted:?}");
        assert!(promoted.exact_below == 2f64.powi(24) && promoted.parts.is_some_and(|p| p.exact_below == 16384.0));
        let bytes = |cc| accuracy("m16n8k32_f8", false, cc, None).per_term;
        assert!(bytes(89) > 1e-4 && bytes(90) < 2e-7);
    }
}
