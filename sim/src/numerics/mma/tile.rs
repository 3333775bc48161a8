//! Fused steps over whole tiles, eight outputs at a time, in the host's own arithmetic.
//!
//! The exact step of [`super::dot`] has a form without variable shifts, and without conversions to integers, of which compilers
//! make poor vector code. A product of two operands with at most 11 significant bits is exact in f32. With `u = 2^(E - F)` the
//! unit after alignment, a sum with `1.5 · 2^52 u` in f64 has `u` as its last place, so that adding `x` rounds `x` to a multiple
//! of `u`; and `x` moved toward zero by `(1/2 - 2^-25) u` rounds to what is left of `x` when it is cut off: a number of at most
//! 24 bits that is not a multiple of `u` is at least `2^-24 u` short of the next one. The sum of 17 terms below `2^27 u` stays
//! exact. All loops run over arrays of eight, which compilers turn into vector instructions.
//!
//! 8-bit floats are widened to f16; [`Elem::E4m3`] then means that subnormals count with e4m3's smallest exponent.
//!
//! That needs every number finite and of moderate size: `Bounds` and `in_range` check it, and `multiply` takes the exact path for a whole step where it does not hold. Tests compare both on every kind of value.

use super::dot::{Operand, dot_accumulate};
use super::form::Elem;
use super::model::{Model, Output};
use crate::numerics::half::Half;

/// Exponent given to zeros: below any other, and sums of two stay in `i16`.
const ZERO: i16 = -10_000;
/// No alignment exponent that matters is below this: `in_range` and `Bounds` see to it.
const FLOOR: i16 = -100;
/// Exponent of the smallest normal e4m3, and of its subnormals.
const E4M3_SMALLEST: i32 = -6;

/// Bounds of what a tile holds.
#[derive(Clone, Copy)]
struct Bounds {
    finite: bool,
    /// Smallest exponent of a non-zero element.
    low: i16,
    /// Largest exponent.
    high: i16,
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

/// Values and exponents of a run of elements. 8-bit floats are widened to f16 before.
#[inline(always)]
fn decode<const N: usize>(ty: Elem, raw: &[u32; N], value: &mut [f32; N], exponent: &mut [i16; N]) -> Bounds {
    // The exponent field above the sign-free magnitude, its width, and what the smallest normal number has.
    let (field_shift, special, bias) = match ty {
        Elem::F16 | Elem::E4m3 | Elem::E5m2 => (10, 31, 15),
        Elem::Bf16 => (7, 255, 127),
        Elem::Tf32 => (23, 255, 127),
        Elem::S8 | Elem::U8 => (0, 1, 0),
    };
    let smallest = if ty == Elem::E4m3 { E4M3_SMALLEST as i16 } else { i16::MIN };
    let (mut infinite, mut low, mut high) = (0, i16::MAX, i16::MIN);
    for i in 0..N {
        let bits = raw[i];
        value[i] = match ty {
            Elem::F16 | Elem::E4m3 | Elem::E5m2 => Half::F16.widen(bits as u16),
            Elem::Bf16 => f32::from_bits(bits << 16),
            Elem::Tf32 => f32::from_bits(bits),
            Elem::S8 | Elem::U8 => 0.0,
        };
        let field = ((bits >> field_shift) & special) as i16;
        let e = (field.max(1) - bias).max(smallest);
        infinite |= u32::from(field == special as i16);
        let zero = value[i] == 0.0;
        low = low.min(if zero { i16::MAX } else { e });
        high = high.max(e);
        exponent[i] = if zero { ZERO } else { e };
    }
    Bounds { finite: infinite == 0, low, high }
}

impl Bounds {
    fn join(self, other: Bounds) -> Bounds {
        Bounds { finite: self.finite & other.finite, low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    const NOTHING: Bounds = Bounds { finite: true, low: i16::MAX, high: i16::MIN };

    /// Whether every product of these operands is exact in f32 and far from the ends of its range.
    fn product_is_exact(self, other: Bounds) -> bool {
        let low = i32::from(self.low) + i32::from(other.low);
        let high = i32::from(self.high) + i32::from(other.high);
        self.finite && other.finite && low >= -60 && high <= 90
    }
}

impl<const M: usize, const K: usize> Left<M, K> {
    /// Decodes elements; 8-bit floats come as their f16 bits, tf32 with the low 13 bits clear.
    #[inline(always)]
    pub(super) fn load(ty: Elem, raw: [[u32; K]; M]) -> Self {
        let (mut value, mut exponent) = ([[0.0; K]; M], [[0; K]; M]);
        let mut bounds = Bounds::NOTHING;
        for m in 0..M {
            bounds = bounds.join(decode(ty, &raw[m], &mut value[m], &mut exponent[m]));
        }
        Left { ty, raw, value, exponent, bounds }
    }
}

impl<const K: usize> Right<K> {
    /// As [`Left::load`].
    #[inline(always)]
    pub(super) fn load(ty: Elem, raw: [[u32; 8]; K]) -> Self {
        let (mut value, mut exponent) = ([[0.0; 8]; K], [[0; 8]; K]);
        let mut bounds = Bounds::NOTHING;
        for k in 0..K {
            bounds = bounds.join(decode(ty, &raw[k], &mut value[k], &mut exponent[k]));
        }
        Right { ty, raw, value, exponent, bounds }
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
    let exact = a.bounds.product_is_exact(b.bounds);
    for first in ks.clone().step_by(model.products) {
        let group = first..(first + model.products).min(ks.end);
        if exact && in_range(c) {
            fast_step(a, b, group, c, model);
        } else {
            exact_step(a, b, group, c, model);
        }
    }
}

#[inline(always)]
fn fast_step<const M: usize, const K: usize>(
    a: &Left<M, K>,
    b: &Right<K>,
    group: std::ops::Range<usize>,
    c: &mut Sums<M>,
    model: &Model,
) {
    let floor = model.min_exponent.max(i32::from(FLOOR)) as i16;
    let fraction_bits = model.fraction_bits as i16;
    for m in 0..M {
        let mut largest = [floor; 8];
        for n in 0..8 {
            // The field of a zero is 0, which stands for an exponent below the floor.
            let field = ((c[m][n].to_bits() >> 23) & 0xff) as i16;
            largest[n] = largest[n].max(field - 127);
        }
        for k in group.clone() {
            for n in 0..8 {
                largest[n] = largest[n].max(a.exponent[m][k] + b.exponent[k][n]);
            }
        }
        let (mut magic, mut half, mut sum) = ([0f64; 8], [0u64; 8], [0f64; 8]);
        for n in 0..8 {
            let unit = (largest[n] - fraction_bits) as i64 as u64;
            magic[n] = f64::from_bits(MAGIC.wrapping_add(unit << 52));
            half[n] = HALF.wrapping_add(unit << 52);
            sum[n] = magic[n] + toward_zero(c[m][n], half[n]);
        }
        for k in group.clone() {
            let x = a.value[m][k];
            for n in 0..8 {
                sum[n] += toward_zero(x * b.value[k][n], half[n]);
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
                odd.map(|v| Half::F16.widen(Half::F16.narrow(v)))
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

/// An element of a tile. 8-bit floats were widened to f16, where e4m3 subnormals are normal numbers; they get their exponent
/// back. (e5m2 has the exponents of f16.)
fn operand(ty: Elem, bits: u32) -> Operand {
    match ty {
        Elem::E4m3 | Elem::E5m2 => match Operand::decode(Elem::F16, bits) {
            Operand::Finite { significand, exponent } if ty == Elem::E4m3 && exponent < E4M3_SMALLEST => {
                let shift = E4M3_SMALLEST - exponent;
                Operand::Finite { significand: significand >> shift, exponent: E4M3_SMALLEST }
            }
            other => other,
        },
        Elem::F16 | Elem::Bf16 | Elem::Tf32 | Elem::S8 | Elem::U8 => Operand::decode(ty, bits),
    }
}
