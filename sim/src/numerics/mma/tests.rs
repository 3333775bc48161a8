//! Matrix products against an independent transcription of the published formula, in floating point instead of integers.

use super::dot::{Operand, dot_accumulate};
use super::*;
use crate::numerics::convert::Fp8;
use crate::numerics::half::Half;
use crate::numerics::single::tests::Rng;
use crate::numerics::{NAN_F32, Round};

const GENERATIONS: [Generation; 5] =
    [Generation::Volta, Generation::Turing, Generation::Ampere, Generation::Ada, Generation::Hopper];

/// The number that bits of an element type mean.
fn number(ty: Elem, bits: u32) -> f64 {
    f64::from(match ty {
        Elem::F16 => Half::F16.widen(bits as u16),
        Elem::Bf16 => f32::from_bits(bits << 16),
        Elem::Tf32 => f32::from_bits(bits & !0x1fff),
        Elem::E4m3 => Half::F16.widen(Fp8::E4m3.widen(bits as u8)),
        Elem::E5m2 => Half::F16.widen(Fp8::E5m2.widen(bits as u8)),
        Elem::S8 | Elem::U8 => 0.0,
    })
}

/// Exponent of a non-zero number, not below the format's smallest.
fn exponent(x: f64, smallest: i32) -> i32 {
    (((x.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(smallest)
}

fn smallest(ty: Elem) -> i32 {
    match ty {
        Elem::F16 | Elem::E5m2 => -14,
        Elem::Bf16 | Elem::Tf32 => -126,
        Elem::E4m3 => -6,
        Elem::S8 | Elem::U8 => 0,
    }
}

/// `2^e`, for any exponent that occurs, as two factors.
fn scaled(x: f64, e: i32) -> f64 {
    x * 2f64.powi(e / 2) * 2f64.powi(e - e / 2)
}

/// The published formula, in f64: every step of it is exact there.
fn formula(ty: (Elem, Elem), a: &[u32], b: &[u32], c: f32, model: &Model) -> f32 {
    let pairs: Vec<(f64, f64)> = a.iter().zip(b).map(|(&x, &y)| (number(ty.0, x), number(ty.1, y))).collect();
    let everything: f64 = pairs.iter().map(|(x, y)| x * y).sum::<f64>() + f64::from(c);
    if !everything.is_finite() {
        return everything as f32;
    }
    let mut terms: Vec<(f64, i32)> = pairs
        .iter()
        .filter(|(x, y)| *x != 0.0 && *y != 0.0)
        .map(|(x, y)| (x * y, exponent(*x, smallest(ty.0)) + exponent(*y, smallest(ty.1))))
        .collect();
    if c != 0.0 {
        terms.push((f64::from(c), exponent(f64::from(c), -126)));
    }
    let largest = terms.iter().map(|t| t.1).max().unwrap_or(0).max(model.min_exponent);
    let unit = largest - model.fraction_bits;
    let sum: f64 = terms.iter().map(|t| scaled(t.0, -unit).trunc()).sum();
    match model.output {
        Output::F16 => {
            // In units of 2^-24 below the normal range, of 2^(e - 10) above; a sum has at most 33 bits, so this is exact.
            let exact = scaled(sum, unit);
            let lsb = if exact == 0.0 { -24 } else { exponent(exact, -14) - 10 };
            let rounded = scaled(scaled(exact, -lsb).round_ties_even(), lsb);
            if rounded.abs() >= 65536.0 { f32::INFINITY.copysign(rounded as f32) } else { rounded as f32 }
        }
        Output::F32 | Output::F32Short => {
            let bits = if model.output == Output::F32 { 23 } else { 13 };
            if sum == 0.0 {
                return 0.0;
            }
            let lsb = (exponent(sum, -100) + unit).max(-126) - bits;
            scaled(scaled(sum, unit - lsb).trunc(), lsb) as f32
        }
    }
}

/// Kinds of operands.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Any,
    NearOne,
    /// Integers with exponents up to this.
    Integers(u32),
    Sparse,
    Subnormal,
    /// Nothing but subnormals.
    Tiny,
    /// Products of which f32 has no exact form.
    Small,
}

const KINDS: [Kind; 11] = [
    Kind::Any,
    Kind::NearOne,
    Kind::Integers(1),
    Kind::Sparse,
    Kind::Integers(4),
    Kind::Subnormal,
    Kind::Integers(8),
    Kind::Tiny,
    Kind::Integers(9),
    Kind::Integers(11),
    Kind::Small,
];

/// An element of a type and kind.
fn element(rng: &mut Rng, ty: Elem, kind: Kind) -> u32 {
    let x = rng.next();
    let (exponent_bits, fraction_bits) = match ty {
        Elem::F16 => (5, 10),
        Elem::Bf16 => (8, 7),
        Elem::Tf32 => (8, 23),
        Elem::E4m3 => (4, 3),
        Elem::E5m2 => (5, 2),
        Elem::S8 | Elem::U8 => return x as u32 & 0xff,
    };
    let bias = (1u32 << (exponent_bits - 1)) - 1;
    let sign = (x as u32 & 1) << (exponent_bits + fraction_bits);
    let fraction = (x >> 8) as u32 & ((1 << fraction_bits) - 1);
    let field = match kind {
        Kind::Any => (x >> 1) as u32 & ((1 << exponent_bits) - 1),
        Kind::NearOne => bias - (x >> 1) as u32 % 4,
        Kind::Integers(most) => {
            let e = ((x >> 40) as u32 % (most + 1)).min(bias - 1);
            let kept = fraction & !((1u32 << fraction_bits.max(e) >> e) - 1);
            return if x & 0x38 == 0 { sign } else { sign | (bias + e) << fraction_bits | kept };
        }
        Kind::Sparse if x & 6 != 0 => return sign,
        Kind::Sparse => bias + (x >> 3) as u32 % 5 - 2,
        Kind::Subnormal => (x >> 1) as u32 & 1,
        Kind::Tiny => 0,
        Kind::Small => bias.saturating_sub(60 + (x >> 1) as u32 % 8),
    };
    sign | field << fraction_bits | fraction
}

/// An accumulator: zero, something near the products or their negation, or, if `wild`, anything.
fn accumulator(rng: &mut Rng, near: f64, wild: bool) -> f32 {
    let x = rng.next();
    match x % 5 {
        0 => 0.0,
        1 if wild => f32::from_bits((x >> 32) as u32),
        2 => -(near as f32),
        3 => -(near as f32) * (1.0 + ((x >> 8) % 64) as f32 * f32::EPSILON),
        _ => (((x >> 8) % 4096) as f32 - 2048.0) / 1024.0 * near as f32,
    }
}

fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    let layouts = [Layout::Row, Layout::Col];
    let shapes = [Shape::M8N8K4, Shape::M8N8K16, Shape::M16N8K4, Shape::M16N8K8, Shape::M16N8K16, Shape::M16N8K32];
    let elems = [Elem::F16, Elem::Bf16, Elem::Tf32, Elem::E4m3, Elem::E5m2, Elem::S8, Elem::U8];
    let accs = [Acc::F16, Acc::F32, Acc::S32];
    for shape in shapes {
        for a in elems {
            for b in elems {
                for (c, d) in accs.into_iter().flat_map(|c| accs.map(|d| (c, d))) {
                    for (a_layout, b_layout) in layouts.into_iter().flat_map(|x| layouts.map(|y| (x, y))) {
                        for satfinite in [false, true] {
                            all.extend(Form { shape, a_layout, b_layout, a, b, c, d, satfinite }.checked());
                        }
                    }
                }
            }
        }
    }
    all
}

#[test]
fn forms_are_those_of_the_manual() {
    // m8n8k4: 4 layouts x 3 accumulators. s8/u8: 4 type pairs x 3 shapes x satfinite. f16: 2 shapes x 2. bf16, tf32: 2 each.
    // fp8: 4 type pairs x 2 shapes x 2 accumulators.
    assert_eq!(forms().len(), 12 + 24 + 4 + 2 + 2 + 16);
    let r = row_col(Shape::M16N8K16, Elem::F16, Acc::F16).registers();
    assert_eq!(r, Registers { a: 4, b: 2, c: 2, d: 2 });
    let r = m8n8k4(Layout::Row, Layout::Row, Acc::F32, Acc::F16).registers();
    assert_eq!(r, Registers { a: 2, b: 2, c: 4, d: 8 });
    let r = row_col(Shape::M8N8K16, Elem::S8, Acc::S32).registers();
    assert_eq!(r, Registers { a: 1, b: 1, c: 2, d: 2 });
    let volta = |shape| Generation::Volta.plan(&row_col(shape, Elem::F16, Acc::F32));
    assert!(volta(Shape::M8N8K4).is_some() && volta(Shape::M16N8K8).is_none());
}

/// The exact step and the formula agree on every kind of operand under every model.
#[test]
fn steps_follow_the_published_formula() {
    let mut rng = Rng(17);
    for form in forms() {
        for device in GENERATIONS {
            let Some(Plan::Fused(model) | Plan::WidenedFp8(model)) = device.plan(&form) else { continue };
            for i in 0..1500 {
                let kind = KINDS[i % KINDS.len()];
                let mut a: Vec<u32> = (0..model.products).map(|_| element(&mut rng, form.a, kind)).collect();
                let mut b: Vec<u32> = (0..model.products).map(|_| element(&mut rng, form.b, kind)).collect();
                if i % 3 == 0 && form.a == form.b {
                    // Pairs of equal products of opposite sign.
                    let sign = match form.a {
                        Elem::Tf32 => 1 << 31,
                        Elem::F16 | Elem::Bf16 => 1 << 15,
                        Elem::E4m3 | Elem::E5m2 | Elem::S8 | Elem::U8 => 1 << 7,
                    };
                    for j in (0..model.products - 1).step_by(3) {
                        (a[j + 1], b[j + 1]) = (b[j] ^ sign, a[j]);
                    }
                }
                let c = accumulator(&mut rng, number(form.a, a[0]) * number(form.b, b[0]), true);
                let half = model.output == Output::F16;
                let bits = if half { u32::from(Half::F16.narrow(c)) } else { c.to_bits() };
                let c = if half { Half::F16.widen(bits as u16) } else { c };
                let want = formula((form.a, form.b), &a, &b, c, &model);
                let operands = |ty, v: &[u32]| -> Vec<Operand> { v.iter().map(|&x| Operand::decode(ty, x)).collect() };
                let got = dot_accumulate(&operands(form.a, &a), &operands(form.b, &b), bits, &model);
                let got = if half { Half::F16.widen(got as u16) } else { f32::from_bits(got) };
                let same = got == want || got.is_nan() && want.is_nan();
                assert!(same, "{form:?} {device:?} {a:x?} {b:x?} {bits:x}: {got:e} {want:e}");
            }
        }
    }
}

/// The (row, column) maps of a form's operands, by register and element.
fn place_a(form: &Form, lane: usize, r: usize, e: usize) -> (usize, usize) {
    match form.shape {
        Shape::M8N8K4 => layout::m8n8k4_a(form.a_layout, lane, 2 * r + e),
        Shape::M8N8K16 => layout::m8n8_a(4, lane, e),
        Shape::M16N8K4 | Shape::M16N8K8 | Shape::M16N8K16 | Shape::M16N8K32 => {
            layout::m16n8_a(form.a.per_register(), lane, r, e)
        }
    }
}

fn place_b(form: &Form, lane: usize, r: usize, e: usize) -> (usize, usize) {
    match form.shape {
        Shape::M8N8K4 => layout::m8n8k4_b(form.b_layout, lane, 2 * r + e),
        Shape::M8N8K16 | Shape::M16N8K4 | Shape::M16N8K8 | Shape::M16N8K16 | Shape::M16N8K32 => {
            layout::n8_b(form.b.per_register(), lane, r, e)
        }
    }
}

fn place_c(form: &Form, ty: Acc, lane: usize, r: usize, e: usize) -> (usize, usize) {
    match (form.shape, ty) {
        (Shape::M8N8K4, Acc::F16) => layout::m8n8k4_c_f16(lane, 2 * r + e),
        (Shape::M8N8K4, _) => layout::m8n8k4_c_f32(lane, r),
        (_, Acc::F16) => layout::n8_c(lane, 2 * r + e),
        (_, _) => layout::n8_c(lane, r),
    }
}

/// Which of the independent products a lane belongs to.
fn part(form: &Form, lane: usize) -> usize {
    if form.shape == Shape::M8N8K4 { layout::quad_pair(lane) } else { 0 }
}

/// One output of a step sequence, by the exact step alone.
fn output(plan: Plan, form: &Form, a: &[u32], b: &[u32], c: u32) -> u32 {
    let chain = |model: &Model, ty: (Elem, Elem), ks: &[usize], c: u32| {
        ks.chunks(model.products).fold(c, |sum, ks| {
            let x: Vec<Operand> = ks.iter().map(|&k| Operand::decode(ty.0, a[k])).collect();
            let y: Vec<Operand> = ks.iter().map(|&k| Operand::decode(ty.1, b[k])).collect();
            dot_accumulate(&x, &y, sum, model)
        })
    };
    let all: Vec<usize> = (0..a.len()).collect();
    match plan {
        Plan::Fused(model) => chain(&model, (form.a, form.b), &all, c),
        Plan::WidenedFp8(model) => {
            let wide = |ty: Elem, x: u32| {
                let fp8 = if ty == Elem::E4m3 { Fp8::E4m3 } else { Fp8::E5m2 };
                Operand::decode(Elem::F16, u32::from(fp8.widen(x as u8)))
            };
            let sum = [0, 1].into_iter().fold(0, |sum, half| {
                let ks = || all.iter().filter(move |&k| (k >> 1) & 1 == half);
                let x: Vec<Operand> = ks().map(|&k| wide(form.a, a[k])).collect();
                let y: Vec<Operand> = ks().map(|&k| wide(form.b, b[k])).collect();
                dot_accumulate(&x, &y, sum, &model)
            });
            let f16 = |x: u32| f64::from(Half::F16.widen(x as u16));
            match form.d {
                Acc::F16 => u32::from(Half::F16.narrow((f16(sum) + f16(c)) as f32)),
                Acc::F32 | Acc::S32 => {
                    let d = f32::from_bits(sum) + f32::from_bits(c);
                    if d.is_nan() { NAN_F32 } else { d.to_bits() }
                }
            }
        }
        Plan::Scalar | Plan::Integer => unreachable!("only floating-point tensor cores"),
    }
}

/// Whole warps, every form on every device: the fast path, its refusals, the gathering and scattering.
#[test]
fn warps_agree_with_the_exact_step() {
    let mut rng = Rng(23);
    for form in forms() {
        for device in GENERATIONS {
            let Some(plan @ (Plan::Fused(_) | Plan::WidenedFp8(_))) = device.plan(&form) else { continue };
            for i in 0..KINDS.len() * 6 {
                // One wild accumulator sends the whole warp down the exact path: let there be none in most.
                let wild = i % 7 == 0;
                let kind = KINDS[i % KINDS.len()];
                let registers = form.registers();
                let per = form.a.per_register();
                let mut register = |ty: Elem| -> Register {
                    std::array::from_fn(|_| {
                        (0..per).fold(0, |bits, e| bits | element(&mut rng, ty, kind) << (32 / per * e))
                    })
                };
                let a: Vec<Register> = (0..registers.a).map(|_| register(form.a)).collect();
                let b: Vec<Register> = (0..registers.b).map(|_| register(form.b)).collect();
                let c: Vec<Register> = (0..registers.c)
                    .map(|_| {
                        std::array::from_fn(|_| {
                            let near = if matches!(kind, Kind::Small) { 0.0 } else { [1.0, 1e-3, 1e-5][i % 3] };
                            let whole = matches!(kind, Kind::Integers(_)) && i % 3 == 0;
                            let mut x = || {
                                let c = accumulator(&mut rng, near, wild);
                                if whole { (c * 64.0).trunc().clamp(-2e6, 2e6) } else { c }
                            };
                            match form.c {
                                Acc::F16 => u32::from(Half::F16.narrow(x())) | u32::from(Half::F16.narrow(x())) << 16,
                                Acc::F32 | Acc::S32 => x().to_bits(),
                            }
                        })
                    })
                    .collect();
                let mut d = vec![[0; 32]; registers.d];
                mma(&form, device, &a, &b, &c, &mut d).expect("a legal form");
                check(&form, device, plan, &a, &b, &c, &d, kind);
            }
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the whole instruction and its result")]
fn check(
    form: &Form,
    device: Generation,
    plan: Plan,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    d: &[Register],
    kind: Kind,
) {
    let per = form.a.per_register();
    let k = form.shape.k();
    let mut left = vec![[[0u32; 32]; 16]; 4];
    let mut right = vec![[[0u32; 32]; 8]; 4];
    let mut sums = vec![[[0u32; 8]; 16]; 4];
    let field = |bits: u32, e: usize| if per == 1 { bits } else { (bits >> (32 / per * e)) & ((1 << (32 / per)) - 1) };
    for lane in 0..32 {
        let q = part(form, lane);
        for (r, register) in a.iter().enumerate() {
            for e in 0..per {
                let (m, k) = place_a(form, lane, r, e);
                left[q][m][k] = field(register[lane], e);
            }
        }
        for (r, register) in b.iter().enumerate() {
            for e in 0..per {
                let (k, n) = place_b(form, lane, r, e);
                right[q][n][k] = field(register[lane], e);
            }
        }
        for (r, register) in c.iter().enumerate() {
            for e in 0..if form.c == Acc::F16 { 2 } else { 1 } {
                let (m, n) = place_c(form, form.c, lane, r, e);
                sums[q][m][n] = match (form.c, form.d) {
                    (Acc::F16, Acc::F32) => Half::F16.widen((register[lane] >> (16 * e)) as u16).to_bits(),
                    (Acc::F16, _) => (register[lane] >> (16 * e)) & 0xffff,
                    (_, _) => register[lane],
                };
            }
        }
    }
    for lane in 0..32 {
        let q = part(form, lane);
        for (r, register) in d.iter().enumerate() {
            for e in 0..if form.d == Acc::F16 { 2 } else { 1 } {
                let (m, n) = place_c(form, form.d, lane, r, e);
                let got = if form.d == Acc::F16 { (register[lane] >> (16 * e)) & 0xffff } else { register[lane] };
                let want = output(plan, form, &left[q][m][..k], &right[q][n][..k], sums[q][m][n]);
                assert_eq!(got, want, "{form:?} {device:?} {kind:?} lane {lane} register {r} element {e}");
            }
        }
    }
}

/// Cases worked out by hand, where the generations differ.
#[test]
fn generations_cut_off_where_published() {
    let one = Operand::Finite { significand: 1 << 10, exponent: 0 };
    let tiny = |e| Operand::Finite { significand: 1 << 10, exponent: e };
    let model = |device: Generation, shape, c| match device.plan(&row_col(shape, Elem::F16, c)) {
        Some(Plan::Fused(model)) => model,
        other => panic!("{other:?}"),
    };
    let bits = |x: f64| (x as f32).to_bits();
    // 1 + four products of 2^-25: kept as a sum of 2^-23 by 25 fraction bits, lost by 23 and 24.
    let (a, b) = ([tiny(-13); 4], [tiny(-12); 4]);
    for (device, shape, want) in [
        (Generation::Volta, Shape::M8N8K4, 1.0),
        (Generation::Ampere, Shape::M16N8K16, 1.0),
        (Generation::Hopper, Shape::M16N8K16, 1.0 + 2f64.powi(-23)),
    ] {
        assert_eq!(dot_accumulate(&a, &b, bits(1.0), &model(device, shape, Acc::F32)), bits(want), "{device:?}");
    }
    // 1 + two products of 2^-24: lost by 23 fraction bits only.
    let (a, b) = ([tiny(-12); 2], [tiny(-12); 2]);
    for (device, shape, want) in [
        (Generation::Volta, Shape::M8N8K4, 1.0),
        (Generation::Turing, Shape::M16N8K8, 1.0 + 2f64.powi(-23)),
        (Generation::Ampere, Shape::M16N8K16, 1.0 + 2f64.powi(-23)),
    ] {
        assert_eq!(dot_accumulate(&a, &b, bits(1.0), &model(device, shape, Acc::F32)), bits(want), "{device:?}");
    }
    // The exponent of 1.5 · 1.5 counts as 0, so that nothing of 2^-23 is lost on Volta.
    let half = Operand::Finite { significand: 3 << 9, exponent: 0 };
    let volta = model(Generation::Volta, Shape::M8N8K4, Acc::F32);
    assert_eq!(dot_accumulate(&[half, one], &[half, tiny(-23)], bits(-1.0), &volta), bits(1.25 + 2f64.powi(-23)));
    // f32 results are cut off, f16 results rounded to nearest even.
    let hopper16 = model(Generation::Hopper, Shape::M16N8K16, Acc::F16);
    assert_eq!(dot_accumulate(&[tiny(-11)], &[one], 0x3c01, &hopper16), 0x3c02);
    assert_eq!(dot_accumulate(&[tiny(-11)], &[one], 0x3c00, &hopper16), 0x3c00);
    let hopper = model(Generation::Hopper, Shape::M16N8K16, Acc::F32);
    let sum = dot_accumulate(&[tiny(-12), tiny(-12)], &[tiny(-12), tiny(-13)], bits(1.0), &hopper);
    assert_eq!(sum, bits(1.0), "0.75 units in the last place are cut off");
    assert_eq!(dot_accumulate(&[one], &[one], 0x7f7f_ffff, &hopper), 0x7f7f_ffff);
    let huge = Operand::Finite { significand: 1 << 10, exponent: 127 };
    assert_eq!(dot_accumulate(&[huge, huge], &[one, one], 0, &hopper), 0x7f80_0000);
    assert_eq!(dot_accumulate(&[one, Operand::Infinite(true)], &[one, one], 0x7f80_0000, &hopper), NAN_F32);
    assert_eq!(dot_accumulate(&[Operand::Infinite(true)], &[Operand::decode(Elem::F16, 0)], 0, &hopper), NAN_F32);
    assert_eq!(dot_accumulate(&[Operand::Infinite(true)], &[one], 0, &hopper16), 0xfc00);
}

/// The published parameters, form by form.
#[test]
fn models_are_the_published_ones() {
    use Generation::{Ada, Ampere, Hopper, Turing, Volta};
    use Output::{F16, F32, F32Short};
    use Shape::{M8N8K4, M16N8K4, M16N8K8, M16N8K16, M16N8K32};
    let rows = [
        (Volta, M8N8K4, Elem::F16, 4, 23, -1024, F32),
        (Volta, M8N8K4, Elem::F16, 4, 23, -1024, F16),
        (Turing, M8N8K4, Elem::F16, 4, 24, -132, F32),
        (Turing, M16N8K8, Elem::F16, 8, 24, -132, F32),
        (Ampere, M16N8K8, Elem::F16, 8, 24, -132, F32),
        (Ampere, M16N8K16, Elem::F16, 8, 24, -132, F32),
        (Ampere, M16N8K16, Elem::F16, 8, 24, -20, F16),
        (Ampere, M16N8K16, Elem::Bf16, 8, 24, -132, F32),
        (Ampere, M16N8K4, Elem::Tf32, 4, 24, -132, F32),
        (Ampere, M16N8K8, Elem::Tf32, 4, 24, -132, F32),
        (Ada, M16N8K16, Elem::F16, 8, 24, -132, F32),
        (Ada, M16N8K32, Elem::E4m3, 16, 13, -132, F32Short),
        (Ada, M16N8K16, Elem::E5m2, 16, 13, -132, F16),
        (Hopper, M16N8K8, Elem::F16, 8, 25, -133, F32),
        (Hopper, M16N8K16, Elem::F16, 16, 25, -133, F32),
        (Hopper, M16N8K16, Elem::F16, 16, 25, -21, F16),
        (Hopper, M16N8K16, Elem::Bf16, 16, 25, -133, F32),
        (Hopper, M16N8K8, Elem::Tf32, 8, 25, -133, F32),
    ];
    for (device, shape, elem, products, fraction_bits, min_exponent, output) in rows {
        let acc = if output == F16 { Acc::F16 } else { Acc::F32 };
        let model = Model { products, fraction_bits, min_exponent, output };
        assert_eq!(device.plan(&row_col(shape, elem, acc)), Some(Plan::Fused(model)), "{device:?} {shape:?} {elem:?}");
    }
    let fp8 = row_col(M16N8K32, Elem::E4m3, Acc::F32);
    let model = Model { products: 16, fraction_bits: 25, min_exponent: -133, output: F32 };
    assert_eq!(Hopper.plan(&fp8), Some(Plan::WidenedFp8(model)));
    assert_eq!(Ampere.plan(&fp8), None);
    let volta = m8n8k4(Layout::Row, Layout::Col, Acc::F32, Acc::F32);
    assert_eq!(Ampere.plan(&volta), Some(Plan::Scalar));
    let int8 = |shape| row_col(shape, Elem::S8, Acc::S32);
    assert_eq!(Turing.plan(&int8(Shape::M8N8K16)), Some(Plan::Integer));
    assert_eq!(Turing.plan(&int8(Shape::M16N8K32)), None);
}

/// A sum that is exactly zero is +0 by the model, whatever the signs of the zeros.
#[test]
fn zero_sums_are_positive() {
    let form = m8n8k4(Layout::Row, Layout::Col, Acc::F32, Acc::F32);
    let mut d = [[1; 32]; 8];
    mma(&form, Generation::Volta, &[[0x8000_8000; 32]; 2], &[[0; 32]; 2], &[[1 << 31; 32]; 8], &mut d)
        .expect("a legal form");
    assert_eq!(d, [[0; 32]; 8]);
}

/// Terms that miss a unit by their very last bit are cut off whole, in the fast path too.
#[test]
fn almost_a_unit_is_cut_off() {
    let form = m8n8k4(Layout::Row, Layout::Col, Acc::F32, Acc::F32);
    // k 0: 1 · 1. k 1: 1025 · 1023 · 2^-20 · 2^-23, or zero.
    let (one, x, y) = (0x3c00, 0x0c01, 0x0ffe);
    let mut d = [[0; 32]; 8];
    let mut run = |x: u32, y: u32, c: f32| {
        let (a, b) = ([[one | x << 16; 32], [0; 32]], [[one | y << 16; 32], [0; 32]]);
        mma(&form, Generation::Volta, &a, &b, &[[c.to_bits(); 32]; 8], &mut d).expect("a legal form");
        f32::from_bits(d[3][9])
    };
    let product = f64::from(Half::F16.widen(x as u16)) * f64::from(Half::F16.widen(y as u16));
    assert_eq!(product, (1.0 - 2f64.powi(-20)) * 2f64.powi(-23));
    let unit = 2f32.powi(-23);
    assert_eq!(run(x, y, 0.0), 1.0);
    assert_eq!(run(x | 0x8000, y, 0.0), 1.0);
    assert_eq!(run(0, 0, unit.next_down()), 1.0);
    assert_eq!(run(0, 0, -unit.next_down()), 1.0);
    assert_eq!(run(0, 0, unit), 1.0 + unit);
    assert_eq!(run(0, 0, -unit), 1.0 - unit);
}

/// Small integers give the exact product everywhere, the scalar routine and the integer forms included.
#[test]
fn integers_are_exact_on_every_device() {
    let mut rng = Rng(29);
    for form in forms() {
        for device in GENERATIONS {
            if device.plan(&form).is_none() {
                continue;
            }
            let encode = |ty: Elem, x: i32| match ty {
                Elem::F16 => u32::from(Half::F16.narrow(x as f32)),
                Elem::Bf16 => u32::from(Half::Bf16.narrow(x as f32)),
                Elem::Tf32 => (x as f32).to_bits(),
                Elem::E4m3 => u32::from(crate::numerics::convert::f32_to_fp8(Fp8::E4m3, false, (x as f32).to_bits())),
                Elem::E5m2 => u32::from(crate::numerics::convert::f32_to_fp8(Fp8::E5m2, false, (x as f32).to_bits())),
                Elem::S8 | Elem::U8 => x as u32 & 0xff,
            };
            let registers = form.registers();
            let per = form.a.per_register();
            let mut number = |ty: Elem| (rng.next() % 9) as i32 - if ty == Elem::U8 { 0 } else { 4 };
            let k = form.shape.k();
            let mut left = vec![[[0i32; 32]; 16]; 4];
            let mut right = vec![[[0i32; 8]; 32]; 4];
            for q in 0..4 {
                left[q].as_flattened_mut().iter_mut().for_each(|x| *x = number(form.a));
                right[q].as_flattened_mut().iter_mut().for_each(|x| *x = number(form.b));
            }
            let mut a = vec![[0; 32]; registers.a];
            let mut b = vec![[0; 32]; registers.b];
            let mut c = vec![[0; 32]; registers.c];
            let mut d = vec![[0; 32]; registers.d];
            let start = |m: usize, n: usize| m as i32 - 3 * n as i32;
            let bits = |ty: Acc, x: i32| match ty {
                Acc::F16 => u32::from(Half::F16.narrow(x as f32)),
                Acc::F32 => (x as f32).to_bits(),
                Acc::S32 => x as u32,
            };
            for lane in 0..32 {
                let q = part(&form, lane);
                for e in 0..per {
                    for (r, register) in a.iter_mut().enumerate() {
                        let (m, k) = place_a(&form, lane, r, e);
                        register[lane] |= encode(form.a, left[q][m][k]) << (32 / per * e % 32);
                    }
                    for (r, register) in b.iter_mut().enumerate() {
                        let (k, n) = place_b(&form, lane, r, e);
                        register[lane] |= encode(form.b, right[q][k][n]) << (32 / per * e % 32);
                    }
                }
                for (r, register) in c.iter_mut().enumerate() {
                    for e in 0..if form.c == Acc::F16 { 2 } else { 1 } {
                        let (m, n) = place_c(&form, form.c, lane, r, e);
                        register[lane] |= bits(form.c, start(m, n)) << (16 * e);
                    }
                }
            }
            mma(&form, device, &a, &b, &c, &mut d).expect("a legal form");
            for lane in 0..32 {
                let q = part(&form, lane);
                for (r, register) in d.iter().enumerate() {
                    for e in 0..if form.d == Acc::F16 { 2 } else { 1 } {
                        let (m, n) = place_c(&form, form.d, lane, r, e);
                        let sum: i32 = (0..k).map(|k| left[q][m][k] * right[q][k][n]).sum::<i32>() + start(m, n);
                        let got =
                            if form.d == Acc::F16 { (register[lane] >> (16 * e)) & 0xffff } else { register[lane] };
                        assert_eq!(got, bits(form.d, sum), "{form:?} {device:?} lane {lane} register {r}");
                    }
                }
            }
        }
    }
}

#[test]
fn integer_sums_wrap_or_clamp() {
    let mut form = row_col(Shape::M16N8K32, Elem::S8, Acc::S32);
    let (a, b, c) = ([[0x7f7f_7f7f; 32]; 4], [[0x7f7f_7f7f; 32]; 2], [[i32::MAX as u32 - 5; 32]; 4]);
    let mut d = [[0; 32]; 4];
    let sum = 32 * 127 * 127;
    mma(&form, Generation::Ampere, &a, &b, &c, &mut d).expect("a legal form");
    assert_eq!(d, [[(i32::MAX - 5).wrapping_add(sum) as u32; 32]; 4]);
    form.satfinite = true;
    mma(&form, Generation::Ampere, &a, &b, &c, &mut d).expect("a legal form");
    assert_eq!(d, [[i32::MAX as u32; 32]; 4]);
    assert_eq!(mma(&form, Generation::Volta, &a, &b, &c, &mut d), Err(MmaError::Device));
    assert_eq!(mma(&form, Generation::Ampere, &a[..3], &b, &c, &mut d), Err(MmaError::Registers));
    form.c = Acc::F16;
    assert_eq!(mma(&form, Generation::Ampere, &a, &b, &c, &mut d), Err(MmaError::Form));
}

/// The routine that replaces m8n8k4: where it differs from a tensor core.
#[test]
fn scalar_m8n8k4_rounds_to_nearest() {
    let form = m8n8k4(Layout::Row, Layout::Col, Acc::F32, Acc::F32);
    // k 0: 1 · 2^-14; the others zero; c = 1 + 2^-23: the sum 1 + 2^-23 + 2^-14 is exact; with 3 · 2^-24 it is not.
    let (two_to_minus_24, three) = (0x0001u32, 0x4200u32);
    let a = [[three; 32], [0; 32]];
    let b = [[two_to_minus_24; 32], [0; 32]];
    let c = [[1f32.to_bits(); 32]; 8];
    let mut d = [[0; 32]; 8];
    mma(&form, Generation::Hopper, &a, &b, &c, &mut d).expect("a legal form");
    assert_eq!(d[0][0], (1.0 + 2.0 * 2f32.powi(-23)).to_bits(), "1.5 units round to even");
    mma(&form, Generation::Volta, &a, &b, &c, &mut d).expect("a legal form");
    assert_eq!(d[0][0], (1.0 + 2f32.powi(-23)).to_bits(), "half a unit is cut off");
    // Products -0 start from +0, and the accumulator -0 is lost.
    let (a, c) = ([[0x8000_8000; 32]; 2], [[1 << 31; 32]; 8]);
    mma(&form, Generation::Hopper, &a, &[[0; 32]; 2], &c, &mut d).expect("a legal form");
    assert_eq!(d[0][0], 0);
}

#[test]
fn f64_is_a_chain_of_fma() {
    let mut rng = Rng(31);
    for (m, k) in [(8, 4), (16, 4), (16, 8), (16, 16)] {
        let mut registers = |n: usize| -> Vec<Register64> {
            let one = |rng: &mut Rng| (rng.next() & 0x801f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000;
            (0..n).map(|_| std::array::from_fn(|_| one(&mut rng))).collect()
        };
        let (a, b, c) = (registers(m * k / 32), registers(k / 4), registers(m / 4));
        let mut d = vec![[0; 32]; m / 4];
        mma_f64((m, k), Round::Nearest, &a, &b, &c, &mut d).expect("a legal shape");
        for lane in 0..32 {
            for r in 0..m / 4 {
                let (row, column) = layout::n8_c(lane, r);
                let mut sum = f64::from_bits(c[r][lane]);
                for at in 0..k {
                    let find = |registers: &[Register64], place: &dyn Fn(usize, usize) -> (usize, usize), want| {
                        (0..32)
                            .flat_map(|l| (0..registers.len()).map(move |r| (l, r)))
                            .find(|&(l, r)| place(l, r) == want)
                            .map(|(l, r)| f64::from_bits(registers[r][l]))
                            .expect("every element has a place")
                    };
                    let x = find(&a, &|l, r| layout::f64_a(m, l, r), (row, at));
                    let y = find(&b, &layout::f64_b, (at, column));
                    sum = x.mul_add(y, sum);
                }
                assert_eq!(d[r][lane], sum.to_bits());
            }
        }
    }
    assert_eq!(mma_f64((8, 8), Round::Nearest, &[], &[], &[], &mut []), Err(MmaError::Form));
}
