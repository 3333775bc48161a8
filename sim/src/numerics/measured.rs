//! Measured results of an H200 where the manual is silent or the device deviates from it: operands and results as
//! recorded by `silicon_check` (2026-11-21, ptxas of the driver for sm_90). `docs/numerics.md` states the rules.

use super::approx::{self, Function};
use super::convert::{self, Float};
use super::half::{self, Half};
use super::mma::dot::{Operand, dot_accumulate};
use super::mma::{Acc, Elem, Generation, Plan, Shape, row_col};
use super::single::{self, Extremum};
use super::{Mode, NAN_F32, NAN_HALF, Round, double};
use crate::numerics::convert::Clamp;

const FTZ: Mode = Mode { ftz: true, ..Mode::RN };
const NEAREST: Round = Round::Nearest;

/// A row, a column and an accumulator whose negative sum rounds to zero.
fn sum(shape: Shape, ty: Elem, acc: Acc, a: &[u32], b: &[u32], c: u32) -> u32 {
    let Some(Plan::Fused(model)) = Generation::Hopper.plan(&row_col(shape, ty, acc)) else { panic!("not fused") };
    let decode = |list: &[u32]| list.iter().map(|x| Operand::decode(ty, *x)).collect::<Vec<_>>();
    dot_accumulate(&decode(a), &decode(b), c, &model)
}

#[test]
fn a_sum_that_rounds_to_zero_is_positive() {
    let half = |a: [u32; 8], b: [u32; 8], c| sum(Shape::M16N8K8, Elem::F16, Acc::F16, &a, &b, c);
    let (a, b) =
        ([7, 0x82e8, 1, 0xb7, 0x130, 4, 0x6f, 0x8003], [0x1d7, 0x8001, 0x8005, 0x42, 0x8092, 1, 0x8000, 0x8006]);
    assert_eq!(half(a, b, 0x8000), 0);
    let a = [6, 5, 0x8007, 0x8007, 0x8004, 0x8004, 0x8004, 0x8007];
    let b = [0x3541, 0x43de, 0x2c60, 0x34b2, 0x388d, 0xbce5, 0x2e7c, 0x4229];
    assert_eq!(half(a, b, 0), 0);
    let a = [0x8015, 0x8051, 0x8013, 0x1c, 0x79, 0x16, 0x42, 0x8002];
    let b = [0x2d86, 0x33a8, 0xb8f3, 0x33da, 0x301f, 0xb412, 0xaf43, 0x2aca];
    assert_eq!(half(a, b, 0x8000), 0);
    let a = [0x0d79, 0x8d37, 0x0de5, 0x8d38, 0x0ca9, 0x0d64, 0x8d49, 0x0cfa];
    let b = [0xa7bc, 0xa972, 0x27c1, 0x2900, 0xa89f, 0x293d, 0x29c3, 0x28d8];
    assert_eq!(sum(Shape::M16N8K8, Elem::Bf16, Acc::F32, &a, &b, 1), 0);
    let (a, b) = ([0x377e_1577, 0xb722_487b, 0x3754_93f5, 0xb772_dc7b], [0x1bbc, 0x8000_0f6e, 0x8000_7c7c, 0x2202]);
    assert_eq!(sum(Shape::M16N8K4, Elem::Tf32, Acc::F32, &a, &b, 0), 0);
}

#[test]
fn which_nan_an_f64_instruction_gives() {
    let (quiet, signaling, all) = (0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0x7fff_ffff_ffff_ffff);
    let (minus, second) = (0xfff0_0000_0000_0001, 0x7ff8_0000_0000_0001);
    let extremum = Extremum::default();
    for first in [quiet, all, minus] {
        assert_eq!(double::add(NEAREST, first, signaling), second);
        assert_eq!(double::sub(NEAREST, first, signaling), second);
        assert_eq!(double::mul(NEAREST, first, signaling), second);
        assert_eq!(double::min(extremum, first, signaling), second);
        assert_eq!(double::max(extremum, first, signaling), second);
    }
    let negative = 0xfff8_0000_0000_0000;
    assert_eq!(double::fma(NEAREST, negative, signaling, 0), second);
    assert_eq!(double::fma(NEAREST, signaling, negative, 0x0020_0000_0000_0000), negative);
    assert_eq!((double::abs(signaling), double::neg(signaling)), (second, second));
    assert_eq!((double::abs(minus), double::abs(negative)), (0xfff8_0000_0000_0001, negative));
    assert_eq!(double::neg(quiet), quiet);
    // A row times a column, as a chain over k: the second factor, else the accumulator, else the first factor.
    let chain = |a: [u64; 4], b: [u64; 4], c| (0..4).fold(c, |sum, k| double::fma(NEAREST, a[k], b[k], sum));
    let a = [0xbfd1_8707_598f_8006, 0xc003_1cad_9506_0432, 0xc00d_a33d_d806_9978, all];
    let b = [minus, 0x3ffe_470c_d440_8fa3, u64::MAX, 0xc01b_5ac7_fc7e_2a2f];
    assert_eq!(chain(a, b, 0xbfc7_13cf_b59a_daef), u64::MAX);
    let a = [0xbfdb_9a7a_92d8_8820, 0x3fda_b017_8b5b_d6e4, u64::MAX, 0x3ff2_b2bf_adc6_0ba0];
    let b = [0x4018_817a_dc8a_40f5, 0xbfd2_1b65_fd49_cdef, 0x3fdd_1bec_c8f6_a567, 0xc014_2dca_ef7c_57ea];
    assert_eq!(chain(a, b, signaling), second);
}

#[test]
fn signs_of_nan_are_not_kept_by_shorter_types() {
    for nan in [0x7f80_0001, 0x7fc0_0000, 0xffc0_0001] {
        for ftz in [false, true] {
            assert_eq!((single::abs(ftz, nan), single::neg(ftz, nan)), (NAN_F32, NAN_F32));
        }
    }
    for (ty, nan) in [(Half::F16, 0x7c01), (Half::F16, 0xfc64), (Half::Bf16, 0x7f81), (Half::Bf16, 0xffc1)] {
        assert_eq!((half::abs(ty, false, nan), half::neg(ty, false, nan)), (NAN_HALF, NAN_HALF));
    }
}

#[test]
fn a_subnormal_accumulator_is_aligned_as_the_smallest_normal_number() {
    let a = [0x8f32, 0x0da2, 0x0ee0, 0x8c20, 0x8c65, 0x0de4, 0x8fa4, 0x0d96];
    let b = [0x8073, 0x01b8, 0x817d, 0x80eb, 0x00c6, 0x01dc, 0x80f2, 0x01ed];
    assert_eq!(sum(Shape::M16N8K8, Elem::F16, Acc::F16, &a, &b, 0x00b7), 0x00b7);
}

#[test]
fn a_flushed_nan_is_canonical_before_it_is_widened() {
    use super::convert::{Float, float_to_float};
    for nan in [0x7f80_0001, 0x7fc0_0000, 0xffc0_0001, 0xffff_ffff] {
        assert_eq!(float_to_float(Float::F32, Float::F64, FTZ, nan), 0x7fff_ffff_e000_0000);
    }
}

#[test]
fn ftz_flushes_what_is_subnormal_without_a_bound_on_exponents() {
    assert_eq!(single::mul(FTZ, 0x3f7f_ffff, 0x0080_0000), 0);
    assert_eq!(single::mul(FTZ, 0xbf7f_ffff, 0x0080_0000), 1 << 31);
    assert_eq!(single::mul(Mode { round: Round::Up, ..FTZ }, 0x3eff_ffff, 0x0100_0000), 0);
    assert_eq!(single::mul(Mode { round: Round::Down, ..FTZ }, 0xbf7f_ffff, 0x0080_0000), 1 << 31);
    assert_eq!(single::fma(FTZ, 0xbeff_ffff, 0x0100_0000, 0), 1 << 31);
    assert_eq!(single::fma(FTZ, 0xbeff_ffff, 0x0100_0000, 0x007f_ffff), 1 << 31);
    assert_eq!(single::div(FTZ, 0x3f7f_ffff, 0x7e80_0000), 0);
    assert_eq!(single::div(FTZ, 0x3fff_ffff, 0x7f00_0000), 0);
    // Without the modifier they are rounded up.
    assert_eq!(single::mul(Mode::RN, 0x3f7f_ffff, 0x0080_0000), 0x0080_0000);
    assert_eq!(half::mul(Half::F16, FTZ, 0x3bff, 0x0400), 0);
    assert_eq!(half::mul(Half::F16, FTZ, 0x2000, 0x1fff), 0);
    assert_eq!(half::fma(Half::F16, FTZ, 0xb7ff, 0x0800, 0), 1 << 15);
    assert_eq!(half::fma(Half::F16, FTZ, 0xbbff, 0x8400, 3), 0);
    // At the middle between the number before the smallest normal one and that, rounding goes up, and nothing is flushed
    // (65 · 63 = 4095).
    let (x, y) = (Half::F16.narrow(65.0 / 4096.0), Half::F16.narrow(63.0 / 16384.0));
    assert_eq!(half::mul(Half::F16, FTZ, x, y), 0x0400);
    let least = f64::from(f32::MIN_POSITIVE);
    for (parts, nearest, away) in [(4.0, true, true), (3.0, true, false), (2.0, false, false), (1.0, false, false)] {
        let exact = least * (1.0 - parts * 2f64.powi(-26));
        assert_eq!(single::tiny(NEAREST, exact), nearest, "{parts}");
        assert_eq!((single::tiny(Round::Up, exact), single::tiny(Round::Down, -exact)), (away, away), "{parts}");
        assert!(
            single::tiny(Round::Zero, -exact) && single::tiny(Round::Up, -exact) && single::tiny(Round::Down, exact)
        );
    }
}

#[test]
fn conversions_of_nan() {
    let nan = |from, to, a| convert::float_to_float(from, to, Mode::RN, a);
    assert_eq!(nan(Float::F32, Float::F32, 0x7f80_0001), 0x7f80_0001);
    assert_eq!(nan(Float::F64, Float::F64, 0x7ff0_0000_0000_0001), 0x7ff0_0000_0000_0001);
    assert_eq!(nan(Float::Bf16, Float::F32, 0x7f81), 0x7f81_0000);
    assert_eq!(nan(Float::F16, Float::F32, 0x7c01), u64::from(NAN_F32));
    assert_eq!(convert::f16_to_f32(0x7c01), NAN_F32);
    assert_eq!(nan(Float::F16, Float::F64, 0x7c01), 0x7ff8_0400_0000_0000);
    assert_eq!(nan(Float::F32, Float::F64, 0x7fc0_0001), 0x7ff8_0000_2000_0000);
    for (a, half, word) in [(0x7ff0_0000_0000_0001, 0x7e00, 0x7fc0_0000), (u64::MAX, 0xffff, 0xffff_ffff)] {
        for round in [NEAREST, Round::Zero, Round::Down, Round::Up] {
            assert_eq!(convert::float_to_float(Float::F64, Float::F16, Mode::of(round), a), half);
            assert_eq!(convert::float_to_float(Float::F64, Float::F32, Mode::of(round), a), word);
        }
    }
    let whole = |a| convert::float_to_integral(Float::F64, Mode::RN, a);
    assert_eq!(whole(0x7ff0_0000_0000_0001), 0x7ff8_0000_0000_0001);
    let tf32 = |round, satfinite, a| convert::f32_to_tf32(round, Clamp { relu: false, satfinite }, a);
    for a in [0x7f80_0001, 0x7fc0_0000, 0x7fc0_0001] {
        assert_eq!(tf32(NEAREST, false, a), 0x7fff_e000);
        assert_eq!(tf32(Round::Zero, false, a), 0x7fff_e000);
        assert_eq!(tf32(Round::NearestAway, false, a), if a == 0x7f80_0001 { 0x7f80_0000 } else { 0x7fc0_0000 });
        assert_eq!(tf32(Round::NearestAway, true, a), if a == 0x7f80_0001 { 0x7f7f_e000 } else { 0x7fbf_e000 });
    }
}

#[test]
fn ftz_of_conversions() {
    let convert = |to, round, ftz, a| convert::float_to_float(Float::F32, to, Mode { round, ftz, sat: false }, a);
    assert_eq!(convert(Float::F16, Round::Down, true, 0x8000_0001), 0x8001);
    assert_eq!(convert(Float::F16, Round::Up, true, 3), 1);
    assert_eq!(convert(Float::F32, NEAREST, true, 3), 0);
    // For f64 to f32 conversions, ptxas compares with these bounds.
    let narrow = |round, a| convert::float_to_float(Float::F64, Float::F32, Mode { round, ..FTZ }, a);
    assert_eq!(narrow(NEAREST, 0x380f_ffff_efff_ffff), 0);
    assert_eq!(narrow(NEAREST, 0x380f_ffff_f000_0000), 0x0080_0000);
    assert_eq!(narrow(Round::Zero, 0x380f_ffff_ffff_ffff), 0);
    assert_eq!(narrow(Round::Up, 0x380f_ffff_dfff_ffff), 0);
    assert_eq!(narrow(Round::Up, 0x380f_ffff_e000_0001), 0x0080_0000);
    assert_eq!(narrow(Round::Down, 0x380f_ffff_ffff_ffff), 0);
}

#[test]
fn approximations() {
    // A NaN in the lower word is not seen.
    assert_eq!(approx::reciprocal_f64(false, 0x7ff0_0000_0000_0001), 0);
    assert_eq!(approx::reciprocal_f64(false, 0xfff0_0000_0000_0001), 1 << 63);
    assert_eq!(approx::reciprocal_f64(true, 0x7ff0_0000_0000_0001), 0);
    let roots = [(1, 0x6180_0000_0000_0000), (2, 0x6176_a09e_667f_3bcd), (3, 0x6172_79a7_4590_331c)];
    for (a, want) in roots.into_iter().chain([(4f64.to_bits(), 0.5f64.to_bits()), (0, 0x7ff0_0000_0000_0000)]) {
        assert_eq!(approx::rsqrt_f64(a), want, "{a:#x}");
    }
    // Full range, subnormal quotients included.
    assert_eq!(single::div(Mode::RN, 0x36ff_ffff, 0x7e80_0001), 0x40);
    // Farther off than the manual says, near three quarters of a turn.
    assert!(Function::Cos.allows(false, 0xc098_e46a, 0x3d86_089a));
    assert!(Function::Cos.allows(false, 0x409c_ccbd, 0x3e3e_fafa));
}
