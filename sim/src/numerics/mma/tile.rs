//! Fused steps over whole tiles, eight outputs at a time, in the host's own arithmetic.
//!
//! The exact step of [`super::dot`] has a form without variable shifts, and without conversions to integers, of which
//! compilers make poor vector code. A product of two operands with at most 11 significant bits is exact in f32. The
//! unit after alignment is `u = 2^(E - F)`. A sum with `1.5 · 2^52 u` in f64 has `u` as its last place, so that adding
//! `x` rounds `x` to a multiple of `u`. And `x` moved toward zero by `(1/2 - 2^-25) u` rounds to what is left of `x`
//! when it is cut off: a number of at most 24 bits that is not a multiple of `u` is at least `2^-24 u` short of the
//! next one. The sum of 33 terms below `2^27 u` stays exact. All loops run over arrays of eight, which compilers turn
//! into vector instructions.
//!
//! That needs every number finite and of moderate size: `Bounds` and `in_range` check it, and `multiply` takes the exact path for a whole step where it does not hold. Tests compare both on every kind of value.

use super::dense_forms::Elem;
use super::dot::{Operand, dot_accumulate};
use super::model::{Model, Output};
use crate::numerics::half::Half;
use source::E4M3_SMALLEST;
pub(super) use source::{Bf16, E4m3, E5m2, F16, Signed, Source, Tf32, Unsigned, WideE4m3};

mod source;

/// Exponent given to zeros: below any other, and sums of two stay in `i16`.
const ZERO: i16 = -10_000;
/// No alignment exponent that matters is below this: `in_range` and `Bounds` see to it.
const FLOOR: i16 = -100;

/// Bounds of what a tile holds.
#[derive(Clone, Copy)]
struct Bounds {
    finite: bool,
    /// Whether every element is an integer of magnitude below 2^22.
    integral: bool,
    /// Smallest exponent of a non-zero element.
    low: i16,
    /// Largest exponent.
    high: i16,
}

impl Bounds {
    /// Whether every product of these operands is exact in f32 and far from the ends of its range.
    fn product_is_exact(self, other: Bounds) -> bool {
        self.finite && other.finite && self.low + other.low >= -60 && self.high + other.high <= 90
    }
}

/// Whether a number is an integer of magnitude below 2^22.
#[inline(always)]
fn is_integer(x: f32) -> bool {
    const MAGIC: f32 = 12_582_912.0;
    (x + MAGIC) - MAGIC == x
}

/// A: `M` rows of `K` elements, decoded.
pub(super) struct Left<const M: usize, const K: usize> {
    ty: Elem,
    raw: [[u32; K]; M],
    value: [[f32; K]; M],
    exponent: [[i16; K]; M],
    bounds: Bounds,
}

/// B: `K` rows of eight elements, decoded.
pub(super) struct Right<const K: usize> {
    ty: Elem,
    raw: [[u32; 8]; K],
    value: [[f32; 8]; K],
    exponent: [[i16; 8]; K],
    bounds: Bounds,
}

/// C or D: `M` rows of eight f32; an f16 accumulator is widened.
pub(super) type Sums<const M: usize> = [[f32; 8]; M];

/// Values and exponents of elements.
#[inline(always)]
fn decode<S: Source>(raw: &[u32], value: &mut [f32], exponent: &mut [i16]) -> Bounds {
    let (mut special, mut fraction, mut low, mut high) = (0, 0, 1000i16, -1000i16);
    let sign = (S::SPECIAL + 1) << S::FIELD_SHIFT;
    for ((&bits, value), exponent) in raw.iter().zip(value).zip(exponent) {
        let number = S::value(bits);
        *value = number;
        let field = ((bits >> S::FIELD_SHIFT) & S::SPECIAL) as i16;
        let e = (field.max(1) - S::BIAS).max(S::SMALLEST);
        special |= u32::from(field == S::SPECIAL as i16);
        fraction |= u32::from(!is_integer(number));
        let zero = bits & !sign == 0;
        low = low.min(if zero { 1000 } else { e });
        high = high.max(e);
        *exponent = if zero { ZERO } else { e };
    }
    Bounds { finite: special == 0, integral: fraction == 0, low, high }
}

impl<const M: usize, const K: usize> Left<M, K> {
    /// Decodes bits that [`Source::bits`] gave.
    #[inline(always)]
    pub(super) fn load<S: Source>(raw: [[u32; K]; M]) -> Self {
        let (mut value, mut exponent) = ([[0.0; K]; M], [[0; K]; M]);
        let bounds = decode::<S>(raw.as_flattened(), value.as_flattened_mut(), exponent.as_flattened_mut());
        Left { ty: S::ELEM, raw, value, exponent, bounds }
    }
}

impl<const K: usize> Right<K> {
    /// Decodes bits that [`Source::bits`] gave.
    #[inline(always)]
    pub(super) fn load<S: Source>(raw: [[u32; 8]; K]) -> Self {
        let (mut value, mut exponent) = ([[0.0; 8]; K], [[0; 8]; K]);
        let bounds = decode::<S>(raw.as_flattened(), value.as_flattened_mut(), exponent.as_flattened_mut());
        Right { ty: S::ELEM, raw, value, exponent, bounds }
    }
}

/// Whether every accumulator is zero or of a magnitude in [2^-90, 2^100).
#[inline(always)]
fn in_range<const M: usize>(c: &Sums<M>) -> bool {
    let mut outside = 0;
    for x in c.as_flattened() {
        let field = (x.to_bits() >> 23) & 0xff;
        let ok = (field.wrapping_sub(127 - 90) < 190) | (x.to_bits() << 1 == 0);
        outside |= u32::from(!ok);
    }
    outside == 0
}

/// `c + A·B`, in steps over the k of `ks` in order.
#[inline(always)]
pub(super) fn multiply<const M: usize, const K: usize>(
    a: &Left<M, K>,
    b: &Right<K>,
    ks: std::ops::Range<usize>,
    c: &mut Sums<M>,
    model: &Model,
) {
    if integers_are_exact(a, b, c, model) {
        return integer_product(a, b, ks, c);
    }
    let exact = a.bounds.product_is_exact(b.bounds);
    for first in ks.clone().step_by(model.products) {
        let group = first..(first + model.products).min(ks.end);
        if exact && in_range(c) {
            // The lengths that occur are constants to the compiler, which then unrolls over k and vectorizes over columns.
            match group.len() {
                4 => fast_step::<M, K, 4>(a, b, first, c, model),
                8 => fast_step::<M, K, 8>(a, b, first, c, model),
                16 => fast_step::<M, K, 16>(a, b, first, c, model),
                32 => fast_step::<M, K, 32>(a, b, first, c, model),
                _ => exact_step(a, b, group, c, model),
            }
        } else {
            exact_step(a, b, group, c, model);
        }
    }
}

/// Whether all numbers are integers so small that nothing is cut off or rounded anywhere.
#[inline(always)]
fn integers_are_exact<const M: usize, const K: usize>(
    a: &Left<M, K>,
    b: &Right<K>,
    c: &Sums<M>,
    model: &Model,
) -> bool {
    if !(a.bounds.finite && b.bounds.finite && a.bounds.integral && b.bounds.integral) {
        return false;
    }
    let bits = match model.output {
        Output::F32 => model.fraction_bits.min(23),
        Output::F32Short => model.fraction_bits.min(13),
        Output::F16 => model.fraction_bits.min(10),
    };
    // Every sum is at most K·2^(high + high + 2) and the largest accumulator.
    let products = i32::from(a.bounds.high) + i32::from(b.bounds.high) + 2 + K.ilog2() as i32;
    let limit = f32::from_bits(((127 + bits - 1) as u32) << 23);
    let mut large = 0;
    for &x in c.as_flattened() {
        large |= u32::from(x.abs() > limit) | u32::from(!is_integer(x));
    }
    products < bits && large == 0
}

#[inline(always)]
fn integer_product<const M: usize, const K: usize>(
    a: &Left<M, K>,
    b: &Right<K>,
    ks: std::ops::Range<usize>,
    c: &mut Sums<M>,
) {
    for m in 0..M {
        // A sum that is zero is +0.
        let mut sum = c[m].map(|x| x + 0.0);
        for k in ks.clone() {
            let x = a.value[m][k];
            for n in 0..8 {
                sum[n] += x * b.value[k][n];
            }
        }
        c[m] = sum;
    }
}

#[inline(always)]
fn fast_step<const M: usize, const K: usize, const STEP: usize>(
    a: &Left<M, K>,
    b: &Right<K>,
    first: usize,
    c: &mut Sums<M>,
    model: &Model,
) {
    let floor = model.min_exponent.max(i32::from(FLOOR)) as i16;
    let fraction_bits = model.fraction_bits as i16;
    // Subnormal accumulators have the smallest normal exponent of their type.
    let least = if model.output == Output::F16 { -14 } else { -126 };
    let (Some(columns), Some(column_exponents)) =
        (b.value[first..].first_chunk::<STEP>(), b.exponent[first..].first_chunk::<STEP>())
    else {
        return;
    };
    for m in 0..M {
        let (Some(row), Some(row_exponents)) =
            (a.value[m][first..].first_chunk::<STEP>(), a.exponent[m][first..].first_chunk::<STEP>())
        else {
            return;
        };
        let mut largest = [floor; 8];
        for n in 0..8 {
            // The exponent field of zero is 0, which is below the smallest exponent.
            let field = ((c[m][n].to_bits() >> 23) & 0xff) as i16;
            largest[n] = largest[n].max(if field == 0 { -127 } else { (field - 127).max(least) });
        }
        for k in 0..STEP {
            for n in 0..8 {
                largest[n] = largest[n].max(row_exponents[k] + column_exponents[k][n]);
            }
        }
        let (mut magic, mut half, mut sum) = ([0f64; 8], [0u64; 8], [0f64; 8]);
        for n in 0..8 {
            let unit = (largest[n] - fraction_bits) as i64 as u64;
            magic[n] = f64::from_bits(MAGIC.wrapping_add(unit << 52));
            half[n] = HALF.wrapping_add(unit << 52);
            sum[n] = magic[n] + toward_zero(c[m][n], half[n]);
        }
        for k in 0..STEP {
            for n in 0..8 {
                sum[n] += toward_zero(row[k] * columns[k][n], half[n]);
            }
        }
        for n in 0..8 {
            sum[n] -= magic[n];
        }
        c[m] = match model.output {
            Output::F32 => sum.map(|v| cut(v, 29)),
            Output::F32Short => sum.map(|v| cut(v, 39)),
            Output::F16 => {
                let odd = sum.map(|v| {
                    let kept = cut(v, 29);
                    f32::from_bits(kept.to_bits() | u32::from(f64::from(kept) != v))
                });
                // A negative sum that rounds to zero is +0.
                odd.map(|v| Half::F16.widen(Half::F16.narrow(v)) + 0.0)
            }
        };
    }
}

/// `1.5 · 2^52`: a sum with this has a unit of 1 in the last place.
const MAGIC: u64 = 0x4338_0000_0000_0000;
/// `0.5 - 2^-25`.
const HALF: u64 = 0x3fdf_ffff_e000_0000;

/// A term, almost half a unit nearer to zero, so that rounding to nearest cuts it off.
#[inline(always)]
fn toward_zero(term: f32, half: u64) -> f64 {
    let term = f64::from(term);
    term - f64::from_bits(half | (term.to_bits() & 1 << 63))
}

/// The f32 of a number without its last bits.
#[inline(always)]
fn cut(x: f64, bits: u32) -> f32 {
    f64::from_bits(x.to_bits() & !((1u64 << bits) - 1)) as f32
}

#[cold]
#[inline(never)]
fn exact_step<const M: usize, const K: usize>(
    a: &Left<M, K>,
    b: &Right<K>,
    group: std::ops::Range<usize>,
    c: &mut Sums<M>,
    model: &Model,
) {
    for m in 0..M {
        let row: Vec<Operand> = group.clone().map(|k| operand(a.ty, a.raw[m][k])).collect();
        for n in 0..8 {
            let column: Vec<Operand> = group.clone().map(|k| operand(b.ty, b.raw[k][n])).collect();
            let sum = c[m][n];
            c[m][n] = match model.output {
                Output::F32 | Output::F32Short => f32::from_bits(dot_accumulate(&row, &column, sum.to_bits(), model)),
                Output::F16 => {
                    let sum = u32::from(Half::F16.narrow(sum));
                    Half::F16.widen(dot_accumulate(&row, &column, sum, model) as u16)
                }
            };
        }
    }
}

/// An element of a tile. 8-bit floats are there in f16, where e4m3 subnormals are normal numbers; they get their exponent back.
fn operand(ty: Elem, bits: u32) -> Operand {
    match ty {
        Elem::E4m3 | Elem::E5m2 => match Operand::decode(Elem::F16, bits) {
            Operand::Finite { significand, exponent } if ty == Elem::E4m3 && exponent < E4M3_SMALLEST => {
                let shift = E4M3_SMALLEST - exponent;
                // A zero may be far below; its significand does not care.
                Operand::Finite { significand: significand >> shift.min(10), exponent: E4M3_SMALLEST }
            }
            other => other,
        },
        Elem::F16 | Elem::Bf16 | Elem::Tf32 | Elem::S8 | Elem::U8 => Operand::decode(ty, bits),
    }
}
