//! Rounding is monotone. So it is right everywhere if it is right at every representable value, at every midpoint of
//! two neighbours, and at the doubles next to it. Those are enumerated in full for the formats up to 19 bits; `f32` has
//! the host's conversion as an oracle.

use super::{FloatFormat, IntFormat, Overflow, Specials};
use crate::random_tests::repeat;
use arbitrary::{Arbitrary, Unstructured};
use pretty_assertions::assert_eq;

/// Formats that round to nearest, of few enough values to try them all.
const NARROW: [FloatFormat; 6] =
    [FloatFormat::E2M1, FloatFormat::E5M2, FloatFormat::E4M3, FloatFormat::BF16, FloatFormat::F16, FloatFormat::TF32];

/// Same value with the same sign of zero, or both NaN.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Encodings of all non-negative finite values, in order.
fn finite_encodings(fmt: &FloatFormat) -> impl Iterator<Item = u64> {
    let fmt = *fmt;
    (0..1u64 << (fmt.exponent_bits + fmt.mantissa_bits))
        .map(move |m| m << fmt.ignored_bits)
        .take_while(move |&m| fmt.decode(m).is_finite())
}

#[test]
fn every_encoding_survives_decoding() {
    for fmt in NARROW {
        let sign = 1u64 << (fmt.storage_bits() - 1);
        for magnitude in 0..sign >> fmt.ignored_bits {
            for bits in [magnitude << fmt.ignored_bits, magnitude << fmt.ignored_bits | sign] {
                let value = fmt.decode(bits);
                if value.is_nan() {
                    assert_eq!(fmt.encode(value), fmt.canonical_nan());
                } else {
                    assert_eq!(fmt.encode(value), bits, "{} {bits:#x}", fmt.name);
                    assert!(same(fmt.round_f64(value), value));
                    assert_eq!(value.is_sign_negative(), bits & sign != 0);
                }
            }
        }
    }
}

#[test]
fn decoding_agrees_with_half_and_with_the_host() {
    for bits in 0..=u16::MAX {
        let f16 = half::f16::from_bits(bits).to_f64();
        let bf16 = half::bf16::from_bits(bits).to_f64();
        assert!(same(FloatFormat::F16.decode(bits.into()), f16), "{bits:#x}");
        assert!(same(FloatFormat::BF16.decode(bits.into()), bf16), "{bits:#x}");
        // The upper half of a single, subnormals, infinities and NaN included.
        let single = u32::from(bits) << 16 | 0x2000;
        let value = f64::from(f32::from_bits(single));
        assert!(same(FloatFormat::TF32.decode(single.into()), value), "{bits:#x}");
        assert!(same(FloatFormat::TF32.decode(u64::from(single) | 0x1fff), value), "{bits:#x}");
    }
}

#[test]
fn neighbours_midpoints_and_doubles_beside_them_round_to_nearest_even() {
    for fmt in NARROW {
        let all: Vec<u64> = finite_encodings(&fmt).collect();
        for (index, pair) in all.windows(2).enumerate() {
            let (lo, hi) = (fmt.decode(pair[0]), fmt.decode(pair[1]));
            assert!(lo < hi, "{} is not in order at {:#x}", fmt.name, pair[0]);
            // Exact: a midpoint needs one bit more than the format has.
            let mid = lo + (hi - lo) / 2.0;
            let even = if index % 2 == 0 { lo } else { hi };
            for (x, expected) in [(mid.next_down(), lo), (mid, even), (mid.next_up(), hi)] {
                assert!(same(fmt.round_f64(x), expected), "{} {x:e}", fmt.name);
                assert!(same(fmt.round_f64(-x), -expected), "{} {x:e}", fmt.name);
            }
        }
    }
}

#[test]
fn overflow_starts_at_half_a_unit_beyond_the_largest_value() {
    for fmt in NARROW.into_iter().chain([FloatFormat::F32]) {
        let max = fmt.max_finite();
        let below = fmt.decode(fmt.encode(max) - (1 << fmt.ignored_bits));
        let mid = max + (max - below) / 2.0;
        // The tie goes to even: out of range where the largest value is odd (IEEE: all ones), and
        // back to it where it is even (e4m3: ...110). e2m1 has nothing beyond it.
        let (last, first, beyond) = match fmt.specials {
            Specials::Ieee => (mid.next_down(), mid, f64::INFINITY),
            Specials::NanOnly => (mid, mid.next_up(), f64::NAN),
            Specials::Finite => (mid.next_down(), mid, max),
            Specials::Powers => unreachable!("it rounds down"),
        };
        for sign in [1.0, -1.0] {
            assert!(same(fmt.round_f64(sign * last), sign * max), "{}", fmt.name);
            for x in [first, max * 4.0, f64::MAX, f64::INFINITY] {
                assert!(same(fmt.round_f64(sign * x), sign * beyond), "{} {x:e}", fmt.name);
                let saturated = fmt.round_with(sign * x, Overflow::Saturate);
                assert!(same(saturated, sign * max), "{} {x:e}", fmt.name);
            }
        }
        let of_nan = if fmt.has_nan() { f64::NAN } else { max };
        assert!(same(fmt.round_with(f64::NAN, Overflow::Saturate), of_nan));
    }
}

#[test]
fn floats_of_four_bits_are_those_of_the_specification() {
    let sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for (bits, size) in (0..).zip(sizes) {
        assert!(same(FloatFormat::E2M1.decode(bits), size));
        assert!(same(FloatFormat::E2M1.decode(bits | 8), -size));
    }
    assert_eq!(FloatFormat::E2M1.storage_bits(), 4);
}

#[test]
fn scales_are_cut_down_to_powers_of_two() {
    let format = FloatFormat::UE8M0;
    assert_eq!(format.storage_bits(), 8);
    assert!(format.decode(255).is_nan() && format.encode(f64::NAN) == 255);
    for bits in 0..255u64 {
        let power = 2f64.powi(bits as i32 - 127);
        assert_eq!(format.decode(bits), power);
        for x in [power, power * 1.5, (power * 2.0).next_down()] {
            assert_eq!(format.encode(x), bits, "{x:e}");
        }
    }
    for x in [0.0, -0.0, 5e-324, 2f64.powi(-127).next_down(), -1.0, -f64::MAX, f64::NEG_INFINITY] {
        assert_eq!(format.encode(x), 0, "{x:e}");
    }
    for x in [2f64.powi(128), f64::MAX, f64::INFINITY] {
        assert_eq!(format.encode(x), 254, "{x:e}");
    }
}

#[test]
fn limits_are_those_of_the_published_formats() {
    // name, max, min normal, min subnormal, epsilon, canonical NaN
    let rows = [
        ("e5m2", 57344.0, -14, -16, -2, 0x7f),
        ("e4m3", 448.0, -6, -9, -3, 0x7f),
        ("bf16", f64::from(half::bf16::MAX), -126, -133, -7, 0x7fff),
        ("f16", 65504.0, -14, -24, -10, 0x7fff),
        ("tf32", f64::from(f32::from_bits(0x7f7f_e000)), -126, -136, -10, 0x7fff_e000),
        ("f32", f64::from(f32::MAX), -126, -149, -23, 0x7fff_ffff),
        ("f64", f64::MAX, -1022, -1074, -52, 0x7fff_ffff_ffff_ffff),
    ];
    for (fmt, (name, max, min_normal, min_subnormal, epsilon, nan)) in FloatFormat::ALL.iter().zip(rows) {
        assert_eq!(fmt.name, name);
        assert_eq!(fmt.max_finite(), max);
        assert_eq!(fmt.min_normal().log2(), f64::from(min_normal), "{name}");
        assert_eq!(fmt.min_subnormal().log2(), f64::from(min_subnormal), "{name}");
        assert_eq!(fmt.epsilon().log2(), f64::from(epsilon), "{name}");
        assert_eq!(fmt.unit_roundoff(), fmt.epsilon() / 2.0);
        assert_eq!(fmt.canonical_nan(), nan, "{name}");
        assert_eq!(fmt.round_f64(1.0 + fmt.epsilon()), 1.0 + fmt.epsilon());
        assert_eq!(fmt.round_f64(1.0 + fmt.epsilon() / 2.0), 1.0);
    }
}

/// A double of any kind, with many of those that are close to a tie of some narrow format.
fn any_f64(u: &mut Unstructured) -> arbitrary::Result<f64> {
    let bits = u64::arbitrary(u)?;
    Ok(match u.int_in_range(0..=2)? {
        0 => f64::from_bits(bits),
        1 => f64::from(f32::from_bits(bits as u32)),
        // Few significant bits, then perhaps a lone bit far below.
        _ => {
            let top = bits & 0xffff_fe00_0000_0000;
            let low = if bits & 1 == 0 { 0 } else { 1 << (bits >> 1 & 31) };
            f64::from_bits(top | low)
        }
    })
}

#[test]
fn single_precision_agrees_with_the_host() {
    repeat(20_000, 64, |u| {
        let x = any_f64(u)?;
        let expected = x as f32;
        let got = FloatFormat::F32.encode(x);
        if expected.is_nan() {
            assert_eq!(got, FloatFormat::F32.canonical_nan());
        } else {
            assert_eq!(got, u64::from(expected.to_bits()), "{x:e}");
        }
        assert!(same(FloatFormat::F32.decode(u64::from(expected.to_bits())), f64::from(expected)));
        Ok(())
    });
}

#[test]
fn double_precision_is_the_identity() {
    repeat(20_000, 64, |u| {
        let x = any_f64(u)?;
        assert!(same(FloatFormat::F64.round_f64(x), x), "{x:e}");
        Ok(())
    });
}

/// `half` is an oracle from singles only: its conversion from a double drops the low 32 bits of
/// the significand before it rounds (and so does the hardware path, which goes through `f32`).
#[test]
fn rounding_of_singles_agrees_with_half() {
    repeat(20_000, 64, |u| {
        let x = any_f64(u)? as f32;
        if !x.is_nan() {
            let f16 = half::f16::from_f32(x).to_bits();
            let bf16 = half::bf16::from_f32(x).to_bits();
            assert_eq!(FloatFormat::F16.encode(x.into()), f16.into(), "{x:e}");
            assert_eq!(FloatFormat::BF16.encode(x.into()), bf16.into(), "{x:e}");
        }
        Ok(())
    });
}

#[test]
fn doubles_are_not_rounded_by_way_of_singles() {
    // Just above the tie between 1 and the next f16; as f32 it becomes the tie, then 1.
    let x = (1.0 + FloatFormat::F16.unit_roundoff()).next_up();
    assert_eq!(f64::from(x as f32), 1.0 + FloatFormat::F16.unit_roundoff());
    assert_eq!(FloatFormat::F16.round_f64(x), 1.0 + FloatFormat::F16.epsilon());
}

#[test]
fn integers_wrap_and_saturate() {
    for fmt in [IntFormat::S8, IntFormat::U8] {
        for x in -1000..=1000i128 {
            let wrapped = if fmt.signed { i128::from(x as i8) } else { i128::from(x as u8) };
            assert_eq!(fmt.wrap(x), wrapped, "{} {x}", fmt.name);
            let nearest = (fmt.min()..=fmt.max()).min_by_key(|v| v.abs_diff(x));
            assert_eq!(Some(fmt.saturate(x)), nearest, "{} {x}", fmt.name);
        }
    }
    let s32 = IntFormat::S32;
    assert_eq!((s32.min(), s32.max()), (i32::MIN.into(), i32::MAX.into()));
    assert_eq!(s32.wrap(i128::from(i32::MAX) + 1), i32::MIN.into());
    assert_eq!(IntFormat::U32.wrap(-1), u32::MAX.into());
    assert_eq!(IntFormat::S64.wrap(i128::from(u64::MAX)), -1);
    for fmt in [IntFormat::S8, IntFormat::U8, s32, IntFormat::U32, IntFormat::S64] {
        assert_eq!(fmt.wrap(i128::MAX), fmt.wrap(-1));
        assert_eq!((fmt.saturate(i128::MIN), fmt.saturate(i128::MAX)), (fmt.min(), fmt.max()));
    }
}

#[test]
fn floats_become_integers_by_rounding_then_saturating() {
    let rows = [
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (-0.5, 0),
        (-1.5, -2),
        (127.5, 127),
        (-128.5, -128),
        (1e300, 127),
        (f64::NEG_INFINITY, -128),
        (f64::NAN, 0),
    ];
    for (x, expected) in rows {
        assert_eq!(IntFormat::S8.from_f64(x), expected, "{x}");
    }
    assert_eq!(IntFormat::U8.from_f64(-3.0), 0);
    assert_eq!(IntFormat::U8.from_f64(255.5), 255);
}

#[test]
fn erf_of_tables() {
    // The series in 30-digit arithmetic.
    for (x, y) in ERF {
        assert!((super::erf(x) - y).abs() <= 2e-15 * y, "{x}: {} {y}", super::erf(x));
        assert_eq!(super::erf(-x), -super::erf(x));
    }
    assert!(super::erf(f64::NAN).is_nan() && super::erf(f64::INFINITY) == 1.0 && super::erf(-0.0).is_sign_negative());
}

const ERF: [(f64, f64); 14] = [
    (1e-10, 1.1283791670955126e-10),
    (0.01, 0.011283415555849618),
    (0.1, 0.1124629160182849),
    (0.5, 0.5204998778130465),
    (0.84375, 0.7672256612323416),
    (1.0, 0.8427007929497149),
    (1.5, 0.9661051464753108),
    (2.0, 0.9953222650189527),
    (2.2421875, 0.9984804927672285),
    (2.25, 0.9985372834133188),
    (2.5, 0.999593047982555),
    (3.0, 0.9999779095030014),
    (4.0, 0.9999999845827421),
    (5.5, 0.9999999999999927),
];
