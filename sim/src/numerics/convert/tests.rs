//! Compares every conversion with the exact numbers.

use super::*;
use crate::numerics::single::tests::{EDGES, Rng};

const FLOATS: [Float; 4] = [Float::F16, Float::Bf16, Float::F32, Float::F64];
const ROUNDS: [Round; 4] = [Round::Nearest, Round::Zero, Round::Down, Round::Up];
const INTS: [Int; 8] = [
    Int { signed: false, bits: 8 },
    Int { signed: true, bits: 8 },
    Int { signed: false, bits: 16 },
    Int { signed: true, bits: 16 },
    Int { signed: false, bits: 32 },
    Int { signed: true, bits: 32 },
    Int { signed: false, bits: 64 },
    Int { signed: true, bits: 64 },
];

/// Operands of a type: edges and random bits, or every encoding of a 16-bit type.
fn samples(ty: Float) -> Vec<u64> {
    let mut rng = Rng(11);
    match ty {
        Float::F16 | Float::Bf16 => (0..=0xffff).collect(),
        Float::F32 => EDGES
            .iter()
            .map(|&e| u64::from(e))
            .chain((0..4000).map(|i| {
                let x = rng.next() as u32;
                // Half of them have a magnitude that f16 or an integer can hold, with short fractions.
                u64::from(if i % 2 == 0 { x } else { (x & 0x800f_f000) + 0x3000_0000 + (x >> 4) % 0x2400 * 0x1_0000 })
            }))
            .flat_map(|e| [e, e ^ 1 << 31])
            .collect(),
        Float::F64 => EDGES
            .iter()
            .map(|&e| f64::from(f32::from_bits(e)).to_bits())
            .chain((0..4000).map(|_| rng.next()))
            .chain((0..4000u64).map(|i| f64::from(f32::from_bits((i * 0x10_7f3d) as u32)).to_bits() ^ (i % 3)))
            .flat_map(|e| [e, e ^ 1 << 63])
            .collect(),
    }
}

#[test]
fn floats_round_once() {
    for from in FLOATS {
        for a in samples(from) {
            let value = from.format().decode(a);
            for to in FLOATS {
                for round in ROUNDS {
                    // The rules for NaN are those of `measured`.
                    if value == Value::Nan {
                        continue;
                    }
                    let want = to.format().encode(round, value);
                    let got = float_to_float(from, to, Mode::of(round), a);
                    assert_eq!(got, want, "{from:?} {to:?} {round:?} {a:#x}");
                }
            }
        }
    }
}

/// The definition, on exact values: round to an integer, then clamp.
#[test]
fn floats_become_integers() {
    for from in FLOATS {
        for a in samples(from).into_iter().step_by(7) {
            let exact = match from.format().decode(a) {
                Value::Finite(e) => Some(e),
                Value::Nan | Value::Infinite(_) => None,
            };
            for round in ROUNDS {
                let Some(e) = exact else { continue };
                let whole = rounded_integer(round, e);
                for to in INTS {
                    let (low, high) = to.range();
                    let want = to.extend(whole.clamp(low, high));
                    assert_eq!(float_to_int(from, to, round, false, a), want, "{from:?} {to:?} {round:?} {a:#x}");
                }
            }
        }
    }
}

/// Rounded by comparing twice the remainder with the unit; saturates far outside of every integer type.
fn rounded_integer(round: Round, e: Exact) -> i128 {
    let sign = if e.negative { -1 } else { 1 };
    if e.significand == 0 {
        return 0;
    }
    if e.exponent >= 0 {
        return if e.exponent > 66 { sign << 100 } else { sign * ((e.significand as i128) << e.exponent) };
    }
    let (whole, twice) = match -e.exponent {
        s @ 1..=100 => (e.significand >> s, (e.significand & ((1 << s) - 1)).cmp(&(1 << (s - 1)))),
        _ => (0, std::cmp::Ordering::Less),
    };
    let inexact = -e.exponent > 100 || whole << -e.exponent != e.significand;
    let up = inexact
        && match round {
            Round::Nearest => twice.is_gt() || twice.is_eq() && whole & 1 == 1,
            Round::NearestAway => twice.is_ge(),
            Round::Zero => false,
            Round::Down => e.negative,
            Round::Up => !e.negative,
        };
    sign * (whole as i128 + i128::from(up))
}

#[test]
fn specials_become_integers() {
    let (s32, u64_) = (Int { signed: true, bits: 32 }, Int { signed: false, bits: 64 });
    let nan = u64::from(NAN_F32);
    assert_eq!(float_to_int(Float::F32, s32, Round::Zero, false, nan), 0);
    assert_eq!(float_to_int(Float::F32, u64_, Round::Zero, false, nan), 1 << 63);
    assert_eq!(float_to_int(Float::F64, s32, Round::Zero, false, super::super::NAN_F64), 0xffff_ffff_8000_0000);
    assert_eq!(float_to_int(Float::F32, s32, Round::Zero, false, 0xff80_0000), 0xffff_ffff_8000_0000);
    assert_eq!(float_to_int(Float::F16, u64_, Round::Zero, false, 0x7c00), u64::MAX);
    assert_eq!(float_to_int(Float::F32, s32, Round::Up, false, 1), 1);
    assert_eq!(float_to_int(Float::F32, s32, Round::Up, true, 1), 0);
}

#[test]
fn integers_become_floats() {
    let mut rng = Rng(13);
    for i in 0..4000 {
        let a = rng.next() >> (i % 64);
        for from in INTS {
            for to in FLOATS {
                for round in ROUNDS {
                    let want = to.format().round(round, Exact::integer(from.value(a)));
                    assert_eq!(int_to_float(from, to, Mode::of(round), a), want, "{from:?} {to:?} {round:?} {a:#x}");
                }
            }
        }
    }
    let s32 = Int { signed: true, bits: 32 };
    assert_eq!(int_to_float(s32, Float::F32, Mode::RN, 0xffff_ffff), u64::from((-1f32).to_bits()));
    assert_eq!(int_to_float(s32, Float::F16, Mode::RN, 70000), 0x7c00);
    assert_eq!(int_to_float(s32, Float::F16, Mode::of(Round::Zero), 70000), 0x7bff);
}

#[test]
fn integers_narrow() {
    let (s8, u8_, s32) = (INTS[1], INTS[0], INTS[5]);
    assert_eq!(int_to_int(s32, s8, true, 300), 127);
    assert_eq!(int_to_int(s32, s8, false, 300), 44);
    assert_eq!(int_to_int(s32, s8, false, 200), 0xffff_ffff_ffff_ffc8);
    assert_eq!(int_to_int(s32, u8_, true, -5i64 as u64), 0);
    assert_eq!(int_to_int(INTS[6], INTS[7], true, u64::MAX), i64::MAX as u64);
    assert_eq!(int_to_int(s8, INTS[6], false, 0xff), u64::MAX);
}

#[test]
fn integral_values_keep_their_sign() {
    let f = |x: f32| u64::from(x.to_bits());
    assert_eq!(float_to_integral(Float::F32, Mode::RN, f(-0.25)), f(-0.0));
    assert_eq!(float_to_integral(Float::F32, Mode::RN, f(2.5)), f(2.0));
    assert_eq!(float_to_integral(Float::F32, Mode::RN, f(3.5)), f(4.0));
    assert_eq!(float_to_integral(Float::F32, Mode::of(Round::Down), f(-2.5)), f(-3.0));
    assert_eq!(float_to_integral(Float::F32, Mode::of(Round::Up), f(1e-40)), f(1.0));
    let ftz = Mode { ftz: true, ..Mode::of(Round::Up) };
    assert_eq!(float_to_integral(Float::F32, ftz, f(1e-40)), 0);
    assert_eq!(float_to_float(Float::F32, Float::F32, Mode { sat: true, ..Mode::RN }, f(-3.0)), 0);
    assert_eq!(float_to_float(Float::F64, Float::F32, Mode { sat: true, ..Mode::RN }, 2f64.to_bits()), f(1.0));
}

/// Against a search for the nearest of all finite encodings, for every f16 input.
#[test]
fn fp8_is_nearest_even() {
    for ty in [Fp8::E4m3, Fp8::E5m2] {
        let finite: Vec<f32> = (0..=ty.format().max_finite as u8).map(|b| Half::F16.widen(ty.widen(b))).collect();
        assert!(finite.windows(2).all(|w| w[0] < w[1]));
        for h in 0..0x7c00u16 {
            let x = Half::F16.widen(h);
            // The first encoding at or above the midpoint to its successor, by bisection.
            let above = finite.partition_point(|&v| v < x).min(finite.len() - 1);
            let below = above.saturating_sub(1);
            let best = match (x - finite[below]).partial_cmp(&(finite[above] - x)).expect("numbers") {
                std::cmp::Ordering::Less => below,
                std::cmp::Ordering::Greater => above,
                std::cmp::Ordering::Equal => [below, above][usize::from(below % 2 == 1)],
            } as u8;
            assert_eq!(f32_to_fp8(ty, false, x.to_bits()), best, "{ty:?} {x}");
            assert_eq!(f32_to_fp8(ty, false, (-x).to_bits()), best | 0x80, "{ty:?} -{x}");
            assert_eq!(f32_to_fp8(ty, true, (-x).to_bits()), 0);
        }
        for b in 0..=255u8 {
            match ty.format().decode(u64::from(b)) {
                Value::Nan => assert_eq!(ty.widen(b), NAN_HALF),
                v => assert_eq!(u64::from(ty.widen(b)), exact::F16.encode(Round::Nearest, v), "{ty:?} {b:#x}"),
            }
        }
        assert_eq!(f32_to_fp8(ty, false, 0x7f80_0000), ty.format().max_finite as u8);
        assert_eq!(f32_to_fp8(ty, false, 0xff80_0000), ty.format().max_finite as u8 | 0x80);
        assert_eq!(f32_to_fp8(ty, true, 0xffc0_0000), 0x7f);
    }
    assert_eq!(f32_to_fp8x2(Fp8::E4m3, false, 1f32.to_bits(), 2f32.to_bits()), 0x3840);
    assert_eq!(half2_to_fp8x2(Fp8::E5m2, Half::Bf16, false, 0x3f80_4000), 0x3c40);
    assert_eq!(fp8x2_to_half2(Fp8::E4m3, false, 0x38c0), 0x3c00_c000);
    assert_eq!(fp8x2_to_half2(Fp8::E4m3, true, 0x38c0), 0x3c00_0000);
}

#[test]
fn tf32_keeps_ten_bits() {
    let plain = Clamp::default();
    assert_eq!(f32_to_tf32(Round::NearestAway, plain, 0x3f80_1000), 0x3f80_2000);
    assert_eq!(f32_to_tf32(Round::Nearest, plain, 0x3f80_1000), 0x3f80_0000);
    assert_eq!(f32_to_tf32(Round::Nearest, plain, 0x3f80_3000), 0x3f80_4000);
    assert_eq!(f32_to_tf32(Round::Zero, plain, 0xbf80_1fff), 0xbf80_0000);
    assert_eq!(f32_to_tf32(Round::NearestAway, plain, 0x7f7f_ffff), 0x7f80_0000);
    assert_eq!(f32_to_tf32(Round::NearestAway, Clamp { satfinite: true, relu: false }, 0x7f80_0000), 0x7f7f_e000);
    assert_eq!(f32_to_tf32(Round::Zero, Clamp { satfinite: false, relu: true }, 0xbf80_0000), 0);
    assert_eq!(f32_to_tf32(Round::Zero, plain, 0xffc0_0001), 0x7fff_e000);
}

#[test]
fn halves_clamp() {
    let sat = Clamp { satfinite: true, relu: false };
    let relu = Clamp { satfinite: false, relu: true };
    assert_eq!(f32_to_half(Half::F16, Round::Nearest, sat, 1e6f32.to_bits()), 0x7bff);
    assert_eq!(f32_to_half(Half::Bf16, Round::Nearest, sat, 0xff80_0000), 0xff7f);
    assert_eq!(f32_to_half(Half::F16, Round::Nearest, sat, 0xffc0_0000), NAN_HALF);
    assert_eq!(f32_to_half(Half::F16, Round::Zero, Clamp::default(), 1e6f32.to_bits()), 0x7bff);
    assert_eq!(f32_to_half2(Half::F16, Round::Nearest, relu, 1f32.to_bits(), (-1f32).to_bits()), 0x3c00_0000);
}
