//! `wgmma.mma_async` (PTX ISA 9.7.15): one warp's sixteen of the 64 rows, operands as rows of 32 bytes.
//!
//! A and B come from shared memory or registers as rows of K elements, which are 32 bytes for every type; the accumulator is in the
//! registers of m16n8 products side by side.

use super::dense_forms::{Acc, Elem};
use super::layout;
use super::model::{Generation, Model, Plan};
use super::tile::{Bf16, E4m3, E5m2, F16, Left, Right, Signed, Source, Sums, Tf32, Unsigned, multiply};
use super::warp::{MmaError, Register, gather_c, scatter_d};

/// K elements of a row or a column.
pub type Row = [u32; 8];

/// A form of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WgmmaForm {
    /// Columns of B: 8 to 256.
    pub n: usize,
    /// Type of A.
    pub a: Elem,
    /// Type of B.
    pub b: Elem,
    /// Type of C and D.
    pub d: Acc,
    /// `.satfinite` of integers.
    pub satfinite: bool,
}

impl WgmmaForm {
    /// The instruction its modifiers name: `mma_async sync aligned shape [satfinite] d a b`.
    #[must_use]
    pub fn from_words(words: &[&str]) -> Option<WgmmaForm> {
        let elem = |word: &str| {
            Some(match word {
                "f16" => Elem::F16,
                "bf16" => Elem::Bf16,
                "tf32" => Elem::Tf32,
                "e4m3" => Elem::E4m3,
                "e5m2" => Elem::E5m2,
                "s8" => Elem::S8,
                "u8" => Elem::U8,
                _ => return None,
            })
        };
        let shape = words.iter().find_map(|w| w.strip_prefix("m64n"))?;
        let types = words.get(words.len().checked_sub(3)?..)?;
        let d = match types[0] {
            "f16" => Acc::F16,
            "f32" => Acc::F32,
            "s32" => Acc::S32,
            _ => return None,
        };
        let n = shape.split_once('k')?.0.parse().ok()?;
        Some(WgmmaForm { n, a: elem(types[1])?, b: elem(types[2])?, d, satfinite: words.contains(&"satfinite") })
    }

    /// Columns of A.
    #[must_use]
    pub const fn k(&self) -> usize {
        8 * self.a.per_register()
    }

    /// How a device executes it; `None` if it cannot.
    #[must_use]
    pub fn plan(&self, device: Generation) -> Option<Plan> {
        if device != Generation::Hopper { None } else { Generation::wide_plan(self.a, self.d) }
    }

    /// `d = a·b`, or `d += a·b` with `add`, for sixteen rows of A and all columns of B. Registers: `n/2`, half of that for f16.
    ///
    /// # Errors
    /// If the device does not have it, or the operands are not of its size.
    pub fn run(
        &self,
        device: Generation,
        a: &[Row; 16],
        b: &[Row],
        add: bool,
        d: &mut [Register],
    ) -> Result<(), MmaError> {
        let plan = self.plan(device).ok_or(MmaError::Device)?;
        let per = if self.d == Acc::F16 { 2 } else { 4 };
        if b.len() != self.n || d.len() != self.n / 8 * per {
            return Err(MmaError::Registers);
        }
        match (plan, self.a, self.b) {
            (Plan::Integer, ..) => self.integers(a, b, add, d),
            (Plan::Fused(model), Elem::Bf16, _) => self.fused::<Bf16, Bf16, 16>(&model, a, b, add, d),
            (Plan::Fused(model), Elem::Tf32, _) => self.fused::<Tf32, Tf32, 8>(&model, a, b, add, d),
            (Plan::Fused(model), Elem::E4m3, Elem::E4m3) => self.fused::<E4m3, E4m3, 32>(&model, a, b, add, d),
            (Plan::Fused(model), Elem::E4m3, _) => self.fused::<E4m3, E5m2, 32>(&model, a, b, add, d),
            (Plan::Fused(model), Elem::E5m2, Elem::E4m3) => self.fused::<E5m2, E4m3, 32>(&model, a, b, add, d),
            (Plan::Fused(model), Elem::E5m2, _) => self.fused::<E5m2, E5m2, 32>(&model, a, b, add, d),
            (Plan::Fused(model), ..) => self.fused::<F16, F16, 16>(&model, a, b, add, d),
            (Plan::Scalar | Plan::WidenedFp8(_), ..) => return Err(MmaError::Device),
        }
        Ok(())
    }

    fn fused<A: Source, B: Source, const K: usize>(
        &self,
        model: &Model,
        a: &[Row; 16],
        b: &[Row],
        add: bool,
        d: &mut [Register],
    ) {
        let left: Left<16, K> = Left::load::<A>(a.map(|row| elements::<A, K>(&row)));
        let per = d.len() / (self.n / 8).max(1);
        for (columns, d) in b.chunks_exact(8).zip(d.chunks_exact_mut(per)) {
            let mut raw = [[0; 8]; K];
            for (n, column) in columns.iter().enumerate() {
                for (k, bits) in elements::<B, K>(column).into_iter().enumerate() {
                    raw[k][n] = bits;
                }
            }
            let right = Right::load::<B>(raw);
            let mut sums: Sums<16> = if add { gather_c(self.d, d) } else { [[0.0; 8]; 16] };
            multiply(&left, &right, 0..K, &mut sums, model);
            scatter_d(self.d, &sums, d);
        }
    }

    fn integers(&self, a: &[Row; 16], b: &[Row], add: bool, d: &mut [Register]) {
        let decode = |ty: Elem, row: &Row| -> [i32; 32] {
            let raw = if ty == Elem::U8 { elements::<Unsigned, 32>(row) } else { elements::<Signed, 32>(row) };
            raw.map(|bits| i32::from(bits as i16))
        };
        let left: Vec<[i32; 32]> = a.iter().map(|row| decode(self.a, row)).collect();
        for (columns, d) in b.chunks_exact(8).zip(d.chunks_exact_mut(4)) {
            let right: Vec<[i32; 32]> = columns.iter().map(|column| decode(self.b, column)).collect();
            for (r, register) in d.iter_mut().enumerate() {
                for (lane, bits) in register.iter_mut().enumerate() {
                    let (m, n) = layout::n8_c(lane, r);
                    let product: i32 = left[m].iter().zip(&right[n]).map(|(x, y)| x * y).sum();
                    let c = if add { *bits as i32 } else { 0 };
                    *bits = if self.satfinite { c.saturating_add(product) } else { c.wrapping_add(product) } as u32;
                }
            }
        }
    }
}

/// The elements of a row.
#[inline(always)]
fn elements<S: Source, const K: usize>(row: &Row) -> [u32; K] {
    std::array::from_fn(|k| S::bits(row[k / S::PER % 8], k % S::PER))
}

/// A row with the sign of every element of a floating type changed.
#[must_use]
pub fn negated(ty: Elem, row: &Row) -> Row {
    let signs = match ty {
        Elem::F16 | Elem::Bf16 => 0x8000_8000,
        Elem::Tf32 => 0x8000_0000,
        Elem::E4m3 | Elem::E5m2 => 0x8080_8080,
        Elem::S8 | Elem::U8 => 0,
    };
    row.map(|word| word ^ signs)
}

/// The rows of A that a warp holds in the four registers of an m16n8 product.
#[must_use]
pub fn rows_of_registers(a: &[Register; 4]) -> [Row; 16] {
    let mut rows = [[0; 8]; 16];
    for (r, register) in a.iter().enumerate() {
        for (lane, bits) in register.iter().enumerate() {
            rows[(lane >> 2) + 8 * (r & 1)][(r >> 1) * 4 + (lane & 3)] = *bits;
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::dot::{Operand, dot_accumulate};
    use super::super::{Shape, mma, row_col};
    use super::*;

    /// A generator of bits that are moderate numbers in every type.
    fn bits(seed: &mut u64) -> u32 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as u32 & 0xbf7f_bf7f
    }

    /// Compares with `mma.sync` of the same numbers, where both use the same arithmetic.
    #[test]
    fn wide_products_are_narrow_ones_side_by_side() {
        let mut seed = 1;
        for (ty, acc, shape) in [
            (Elem::F16, Acc::F32, Shape::M16N8K16),
            (Elem::F16, Acc::F16, Shape::M16N8K16),
            (Elem::Bf16, Acc::F32, Shape::M16N8K16),
            (Elem::Tf32, Acc::F32, Shape::M16N8K8),
            (Elem::S8, Acc::S32, Shape::M16N8K32),
            (Elem::U8, Acc::S32, Shape::M16N8K32),
        ] {
            let wide = WgmmaForm { n: 24, a: ty, b: ty, d: acc, satfinite: false };
            let per = if acc == Acc::F16 { 2 } else { 4 };
            for add in [false, true] {
                let a: [Register; 4] = std::array::from_fn(|_| std::array::from_fn(|_| bits(&mut seed)));
                let b: Vec<Row> = (0..24).map(|_| std::array::from_fn(|_| bits(&mut seed))).collect();
                let c: Vec<Register> = (0..3 * per).map(|_| std::array::from_fn(|_| bits(&mut seed))).collect();
                let mut d = c.clone();
                wide.run(Generation::Hopper, &rows_of_registers(&a), &b, add, &mut d).expect("it is legal");
                for j in 0..3 {
                    // B of one narrow product: column lane / 4, words lane % 4 and 4 further.
                    let narrow: [Register; 2] =
                        std::array::from_fn(|r| std::array::from_fn(|lane| b[8 * j + lane / 4][4 * r + lane % 4]));
                    let zeros = vec![[0; 32]; per];
                    let c = if add { &c[per * j..per * (j + 1)] } else { &zeros[..] };
                    let mut want = vec![[0; 32]; per];
                    mma(&row_col(shape, ty, acc), Generation::Hopper, &a, &narrow, c, &mut want).expect("it is legal");
                    assert_eq!(&d[per * j..per * (j + 1)], &want[..], "{ty:?} {acc:?} {add} {j}");
                }
            }
        }
    }

    #[test]
    fn short_sums_of_8_bit_floats() {
        // 1 + 2^-13 is kept, 1 + 2^-14 is cut off.
        let wide = WgmmaForm { n: 8, a: Elem::E5m2, b: Elem::E5m2, d: Acc::F32, satfinite: false };
        let (one, small) = (0x3c, |e: u32| (15 - e) << 2);
        for (e, want) in [(6, 1.0 + 2f32.powi(-12)), (7, 1.0)] {
            let mut a = [[0; 8]; 16];
            let mut b = vec![[0; 8]; 8];
            a[0][0] = one | small(e) << 8;
            b[0][0] = one | small(e) << 8;
            let mut d = vec![[0; 32]; 4];
            wide.run(Generation::Hopper, &a, &b, false, &mut d).expect("it is legal");
            assert_eq!(f32::from_bits(d[0][0]), want);
        }
        assert_eq!(
            wide.run(Generation::Ada, &[[0; 8]; 16], &[[0; 8]; 8], false, &mut [[0; 32]; 4]),
            Err(MmaError::Device)
        );
    }

    /// Products of 8-bit floats, which no `mma.sync` sums so: each against the model by itself, over all bits that are numbers.
    #[test]
    fn sums_of_8_bit_floats_follow_the_model() {
        let mut seed = 7;
        let pairs = [Elem::E4m3, Elem::E5m2].map(|a| [(a, Elem::E4m3), (a, Elem::E5m2)]);
        for ((ty, other), acc) in pairs.as_flattened().iter().flat_map(|&p| [(p, Acc::F32), (p, Acc::F16)]) {
            let wide = WgmmaForm { n: 16, a: ty, b: other, d: acc, satfinite: false };
            let Some(Plan::Fused(model)) = wide.plan(Generation::Hopper) else { panic!("it is one step") };
            for add in [false, true] {
                let mut word = || bits(&mut seed) ^ bits(&mut seed) << 8 & 0x4040_4040;
                let a: [Row; 16] = std::array::from_fn(|_| std::array::from_fn(|_| word()));
                let b: Vec<Row> = (0..16).map(|_| std::array::from_fn(|_| word())).collect();
                // Sums as the instruction leaves them: of 13 fraction bits, or two of f16.
                let per = if acc == Acc::F16 { 2 } else { 4 };
                let kept = if acc == Acc::F16 { u32::MAX } else { 0xc5ff_fc00 };
                let c: Vec<Register> = (0..2 * per).map(|_| std::array::from_fn(|_| word() & kept)).collect();
                let mut d = c.clone();
                wide.run(Generation::Hopper, &a, &b, add, &mut d).expect("it is legal");
                let row = |ty: Elem, row: &Row| -> Vec<Operand> {
                    (0..32).map(|k| Operand::decode(ty, row[k / 4] >> (8 * (k % 4)) & 0xff)).collect()
                };
                // The sum of a lane at this place among its four of eight columns.
                let sum = |d: &[Register], at: usize, lane: usize| match acc {
                    Acc::F16 => d[at / 2][lane] >> (16 * (at % 2)) & 0xffff,
                    Acc::F32 | Acc::S32 => d[at][lane],
                };
                for (at, lane) in (0..8).flat_map(|at| (0..32).map(move |lane| (at, lane))) {
                    let (m, n) = layout::n8_c(lane, at % 4);
                    let from = if add { sum(&c, at, lane) } else { 0 };
                    let want = dot_accumulate(&row(ty, &a[m]), &row(other, &b[8 * (at / 4) + n]), from, &model);
                    assert_eq!(sum(&d, at, lane), want, "{ty:?} {other:?} {acc:?} {add} row {m} column {n}");
                }
            }
        }
    }

    #[test]
    fn signs_change() {
        assert_eq!(negated(Elem::F16, &[0x3c00_bc00; 8]), [0xbc00_3c00; 8]);
        assert_eq!(negated(Elem::E4m3, &[1; 8]), [0x8080_8081; 8]);
    }
}
