//! `mma.sync` of a whole warp: registers in, registers out.
//!
//! A register of a warp is an array of 32 lanes. Fragments are gathered into tiles by the maps of [`super::layout`], multiplied
//! as the plan of the device says, and scattered back.

use super::dense_forms::{Acc, Elem, Form, Layout, Shape};
use super::layout;
use super::model::{Generation, Model, Plan};
use super::tile::{Bf16, E4m3, E5m2, F16, Left, Right, Signed, Source, Sums, Tf32, Unsigned, WideE4m3, multiply};
use crate::numerics::half::{self, Half};
use crate::numerics::{Mode, Round, double, single};

/// One 32-bit register of every lane.
pub type Register = [u32; 32];
/// One 64-bit register of every lane.
pub type Register64 = [u64; 32];

/// Why a matrix instruction cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaError {
    /// PTX has no such form.
    Form,
    /// The device has no such instruction.
    Device,
    /// An operand has the wrong number of registers.
    Registers,
}

impl std::fmt::Display for MmaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MmaError::Form => "no such form of mma",
            MmaError::Device => "the device does not have this mma",
            MmaError::Registers => "an operand of mma has the wrong number of registers",
        })
    }
}

impl std::error::Error for MmaError {}

/// Executes an instruction of `form` as `device` does: `d = a·b + c`.
///
/// # Errors
/// If the form is not PTX, the device does not have it, or the operands do not have the registers of the form.
pub fn mma(
    form: &Form,
    device: Generation,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    d: &mut [Register],
) -> Result<(), MmaError> {
    let form = form.checked().ok_or(MmaError::Form)?;
    let plan = device.plan(&form).ok_or(MmaError::Device)?;
    let registers = form.registers();
    if (a.len(), b.len(), c.len(), d.len()) != (registers.a, registers.b, registers.c, registers.d) {
        return Err(MmaError::Registers);
    }
    match (plan, form.shape) {
        (Plan::Integer, _) => integer(&form, a, b, c, d),
        (Plan::Scalar | Plan::Fused(_) | Plan::WidenedFp8(_), Shape::M8N8K4) => quad_pairs(&form, plan, a, b, c, d),
        (Plan::Scalar, _) => return Err(MmaError::Device),
        (Plan::Fused(model), Shape::M16N8K4) => fused::<4>(&form, &model, a, b, c, d),
        (Plan::Fused(model), Shape::M16N8K8) => fused::<8>(&form, &model, a, b, c, d),
        (Plan::Fused(model), Shape::M16N8K16 | Shape::M8N8K16) => fused::<16>(&form, &model, a, b, c, d),
        (Plan::Fused(model), Shape::M16N8K32) => fused::<32>(&form, &model, a, b, c, d),
        (Plan::WidenedFp8(model), Shape::M16N8K32) => widened::<32>(&form, &model, a, b, c, d),
        (Plan::WidenedFp8(model), _) => widened::<16>(&form, &model, a, b, c, d),
    }
    Ok(())
}

/// The elements of A of m16n8kK and m8n8kK; `place` permutes k.
#[inline(always)]
fn gather_a<S: Source, const M: usize, const K: usize>(
    a: &[Register],
    place: impl Fn(usize) -> usize,
) -> [[u32; K]; M] {
    let mut left = [[0; K]; M];
    for (r, register) in a.iter().enumerate().take(M * K / S::PER / 32) {
        for (lane, &bits) in register.iter().enumerate() {
            for e in 0..S::PER {
                let (m, k) = if M == 8 { layout::m8n8_a(S::PER, lane, e) } else { layout::m16n8_a(S::PER, lane, r, e) };
                left[m % M][place(k) % K] = S::bits(bits, e);
            }
        }
    }
    left
}

/// The elements of B, likewise.
#[inline(always)]
fn gather_b<S: Source, const K: usize>(b: &[Register], place: impl Fn(usize) -> usize) -> [[u32; 8]; K] {
    let mut right = [[0; 8]; K];
    for (r, register) in b.iter().enumerate().take(8 * K / S::PER / 32) {
        for (lane, &bits) in register.iter().enumerate() {
            for e in 0..S::PER {
                let (k, n) = layout::n8_b(S::PER, lane, r, e);
                right[place(k) % K][n % 8] = S::bits(bits, e);
            }
        }
    }
    right
}

/// A as the tensor core takes it, decoded.
#[inline(always)]
fn left<const K: usize>(ty: Elem, a: &[Register]) -> Left<16, K> {
    match ty {
        Elem::F16 | Elem::S8 | Elem::U8 => Left::load::<F16>(gather_a::<F16, 16, K>(a, |k| k)),
        Elem::Bf16 => Left::load::<Bf16>(gather_a::<Bf16, 16, K>(a, |k| k)),
        Elem::Tf32 => Left::load::<Tf32>(gather_a::<Tf32, 16, K>(a, |k| k)),
        Elem::E4m3 => Left::load::<E4m3>(gather_a::<E4m3, 16, K>(a, |k| k)),
        Elem::E5m2 => Left::load::<E5m2>(gather_a::<E5m2, 16, K>(a, |k| k)),
    }
}

/// B, likewise.
#[inline(always)]
fn right<const K: usize>(ty: Elem, b: &[Register]) -> Right<K> {
    match ty {
        Elem::F16 | Elem::S8 | Elem::U8 => Right::load::<F16>(gather_b::<F16, K>(b, |k| k)),
        Elem::Bf16 => Right::load::<Bf16>(gather_b::<Bf16, K>(b, |k| k)),
        Elem::Tf32 => Right::load::<Tf32>(gather_b::<Tf32, K>(b, |k| k)),
        Elem::E4m3 => Right::load::<E4m3>(gather_b::<E4m3, K>(b, |k| k)),
        Elem::E5m2 => Right::load::<E5m2>(gather_b::<E5m2, K>(b, |k| k)),
    }
}

/// C of m16n8kK as f32.
#[inline(always)]
pub(super) fn gather_c(ty: Acc, c: &[Register]) -> Sums<16> {
    let mut sums = [[0.0; 8]; 16];
    for (r, register) in c.iter().enumerate() {
        for (lane, &bits) in register.iter().enumerate() {
            if ty == Acc::F16 {
                for e in 0..2 {
                    let (m, n) = layout::n8_c(lane, 2 * r + e);
                    sums[m % 16][n % 8] = Half::F16.widen((bits >> (16 * e)) as u16);
                }
            } else {
                let (m, n) = layout::n8_c(lane, r);
                sums[m % 16][n % 8] = f32::from_bits(bits);
            }
        }
    }
    sums
}

/// The inverse of [`gather_c`].
#[inline(always)]
pub(super) fn scatter_d(ty: Acc, sums: &Sums<16>, d: &mut [Register]) {
    for (r, register) in d.iter_mut().enumerate() {
        for (lane, bits) in register.iter_mut().enumerate() {
            let at = |i| {
                let (m, n): (usize, usize) = layout::n8_c(lane, i);
                sums[m % 16][n % 8]
            };
            *bits = if ty == Acc::F16 {
                u32::from(Half::F16.narrow(at(2 * r))) | u32::from(Half::F16.narrow(at(2 * r + 1))) << 16
            } else {
                at(r).to_bits()
            };
        }
    }
}

fn fused<const K: usize>(
    form: &Form,
    model: &Model,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    d: &mut [Register],
) {
    let mut sums = gather_c(form.c, c);
    multiply(&left::<K>(form.a, a), &right::<K>(form.b, b), 0..K, &mut sums, model);
    scatter_d(form.d, &sums, d);
}

fn widened<const K: usize>(
    form: &Form,
    model: &Model,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    d: &mut [Register],
) {
    let place = |k: usize| ((k >> 2) << 1 | (k & 1)) + (k & 2) / 2 * (K / 2);
    let left = match form.a {
        Elem::E4m3 => Left::load::<F16>(gather_a::<WideE4m3, 16, K>(a, place)),
        _ => Left::load::<F16>(gather_a::<E5m2, 16, K>(a, place)),
    };
    let right = match form.b {
        Elem::E4m3 => Right::load::<F16>(gather_b::<WideE4m3, K>(b, place)),
        _ => Right::load::<F16>(gather_b::<E5m2, K>(b, place)),
    };
    let mut sums = [[0.0; 8]; 16];
    multiply(&left, &right, 0..K, &mut sums, model);
    scatter_d(form.d, &sums, d);
    for (d, c) in d.as_flattened_mut().iter_mut().zip(c.as_flattened()) {
        *d = match form.d {
            Acc::F16 => super::super::packed2(*d, *c, |x, y| half::add(Half::F16, Mode::RN, x, y)),
            Acc::F32 | Acc::S32 => single::add(Mode::RN, *d, *c),
        };
    }
}

/// m8n8k4: four independent products.
fn quad_pairs(form: &Form, plan: Plan, a: &[Register], b: &[Register], c: &[Register], d: &mut [Register]) {
    for q in 0..4 {
        let lanes = || (0..8).map(|i| 4 * q + (i & 3) + 16 * (i >> 2));
        let (mut left, mut right) = ([[0; 4]; 8], [[0; 8]; 4]);
        let mut sums = [[0.0; 8]; 8];
        for lane in lanes() {
            for e in 0..4 {
                let (m, k) = layout::m8n8k4_a(form.a_layout, lane, e);
                left[m % 8][k % 4] = F16::bits(a[e >> 1][lane], e & 1);
                let (k, n) = layout::m8n8k4_b(form.b_layout, lane, e);
                right[k % 4][n % 8] = F16::bits(b[e >> 1][lane], e & 1);
            }
            for e in 0..8 {
                if form.c == Acc::F16 {
                    let (m, n) = layout::m8n8k4_c_f16(lane, e);
                    sums[m % 8][n % 8] = Half::F16.widen((c[e >> 1][lane] >> (16 * (e & 1))) as u16);
                } else {
                    let (m, n) = layout::m8n8k4_c_f32(lane, e);
                    sums[m % 8][n % 8] = f32::from_bits(c[e][lane]);
                }
            }
        }
        match plan {
            Plan::Fused(model) | Plan::WidenedFp8(model) => {
                multiply(&Left::load::<F16>(left), &Right::load::<F16>(right), 0..4, &mut sums, &model);
            }
            Plan::Scalar | Plan::Integer => scalar(form.d, &left, &right, &mut sums),
        }
        for lane in lanes() {
            for e in 0..8 {
                if form.d == Acc::F16 {
                    let (m, n) = layout::m8n8k4_c_f16(lane, e);
                    let shift = 16 * (e & 1);
                    let bits = u32::from(Half::F16.narrow(sums[m % 8][n % 8])) << shift;
                    let register = &mut d[e >> 1][lane];
                    *register = *register & !(0xffff << shift) | bits;
                } else {
                    let (m, n) = layout::m8n8k4_c_f32(lane, e);
                    d[e][lane] = sums[m % 8][n % 8].to_bits();
                }
            }
        }
    }
}

/// The routine of ptxas for devices without m8n8k4 (see [`Plan::Scalar`]).
fn scalar(d: Acc, a: &[[u32; 4]; 8], b: &[[u32; 8]; 4], c: &mut Sums<8>) {
    let wide = |bits: u32| Half::F16.widen(bits as u16).to_bits();
    let fma = |a, b, c| single::fma(Mode::RN, a, b, c);
    let add = |a, b| single::add(Mode::RN, a, b);
    for (m, row) in c.iter_mut().enumerate() {
        for (n, sum) in row.iter_mut().enumerate() {
            let pair = |k: usize| (wide(a[m][k]), wide(b[k][n]));
            let [(a0, b0), (a1, b1), (a2, b2), (a3, b3)] = [pair(0), pair(1), pair(2), pair(3)];
            let c = sum.to_bits();
            *sum = if d == Acc::F16 {
                let first = fma(a1, b1, single::mul(Mode::RN, a0, b0));
                let second = fma(a3, b3, single::mul(Mode::RN, a2, b2));
                let exact = f32::from_bits(add(add(c, first), second));
                Half::F16.widen(Half::F16.narrow(exact))
            } else {
                f32::from_bits(add(c, fma(a3, b3, fma(a2, b2, fma(a1, b1, fma(a0, b0, 0))))))
            };
        }
    }
}

fn integer(form: &Form, a: &[Register], b: &[Register], c: &[Register], d: &mut [Register]) {
    match (form.shape.m(), form.shape.k()) {
        (8, _) => integers::<8, 16>(form, a, b, c, d),
        (_, 16) => integers::<16, 16>(form, a, b, c, d),
        (_, _) => integers::<16, 32>(form, a, b, c, d),
    }
}

fn integers<const M: usize, const K: usize>(
    form: &Form,
    a: &[Register],
    b: &[Register],
    c: &[Register],
    d: &mut [Register],
) {
    let left = match form.a {
        Elem::U8 => gather_a::<Unsigned, M, K>(a, |k| k),
        _ => gather_a::<Signed, M, K>(a, |k| k),
    };
    let right = match form.b {
        Elem::U8 => gather_b::<Unsigned, K>(b, |k| k),
        _ => gather_b::<Signed, K>(b, |k| k),
    };
    let mut products = [[0i32; 8]; M];
    for (row, sums) in left.iter().zip(&mut products) {
        for (&x, column) in row.iter().zip(&right) {
            for (sum, &y) in sums.iter_mut().zip(column) {
                // At most 32 · 255 · 255: far from overflow.
                *sum += i32::from(x as i16) * i32::from(y as i16);
            }
        }
    }
    for (r, (d, c)) in d.iter_mut().zip(c).enumerate() {
        for lane in 0..32 {
            let (m, n) = layout::n8_c(lane, r);
            let (product, c) = (products[m % M][n % 8], c[lane] as i32);
            d[lane] = if form.satfinite { product.saturating_add(c) } else { product.wrapping_add(c) } as u32;
        }
    }
}

/// `mma.sync.aligned.m{8,16}n8kK.row.col.f64`: a chain of fused multiply-adds in ascending k, rounded as told. Registers: A
/// `m·k/32`, B `k/4`, C and D `m/4`.
///
/// # Errors
/// If there is no such shape, or the operands do not have its registers.
pub fn mma_f64(
    (m, k): (usize, usize),
    round: Round,
    a: &[Register64],
    b: &[Register64],
    c: &[Register64],
    d: &mut [Register64],
) -> Result<(), MmaError> {
    if !matches!((m, k), (8, 4) | (16, 4 | 8 | 16)) {
        return Err(MmaError::Form);
    }
    if (a.len(), b.len(), c.len(), d.len()) != (m * k / 32, k / 4, m / 4, m / 4) {
        return Err(MmaError::Registers);
    }
    let (mut left, mut right) = ([[0u64; 16]; 16], [[0u64; 8]; 16]);
    for lane in 0..32 {
        for (r, register) in a.iter().enumerate() {
            let (row, k) = layout::f64_a(m, lane, r);
            left[row][k] = register[lane];
        }
        for (r, register) in b.iter().enumerate() {
            let (k, n) = layout::f64_b(lane, r);
            right[k][n] = register[lane];
        }
    }
    for (r, (d, c)) in d.iter_mut().zip(c).enumerate() {
        for lane in 0..32 {
            let (row, n) = layout::n8_c(lane, r);
            d[lane] = (0..k).fold(c[lane], |sum, k| double::fma(round, left[row][k], right[k][n], sum));
        }
    }
    Ok(())
}

/// The form of an m8n8k4 instruction.
#[must_use]
pub const fn m8n8k4(a_layout: Layout, b_layout: Layout, d: Acc, c: Acc) -> Form {
    Form { shape: Shape::M8N8K4, a_layout, b_layout, a: Elem::F16, b: Elem::F16, c, d, satfinite: false }
}

/// The form of a `.row.col` instruction with operands of one type.
#[must_use]
pub const fn row_col(shape: Shape, ab: Elem, cd: Acc) -> Form {
    let (a_layout, b_layout) = (Layout::Row, Layout::Col);
    Form { shape, a_layout, b_layout, a: ab, b: ab, c: cd, d: cd, satfinite: false }
}
