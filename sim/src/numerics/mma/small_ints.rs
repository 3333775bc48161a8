//! `mma.sync` on integers of 4 bits and on single bits (PTX ISA 9.7.14.5.9 to 9.7.14.5.14): exact, then wrapped or clamped to 32 bits.

use super::layout;
use super::model::Generation;
use super::warp::{MmaError, Register};

/// The values that are summed over k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairs {
    /// Products of 4-bit integers, each side signed or not.
    Products {
        /// A is signed.
        a_signed: bool,
        /// B is signed.
        b_signed: bool,
    },
    /// Bits that differ.
    Xor,
    /// Bits that are set in both.
    And,
}

/// An instruction on small integers: `m` by 8 by `k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Small {
    /// Rows: 8 or 16.
    pub m: usize,
    /// Columns of A: 32 or 64 of 4 bits, 128 or 256 of one.
    pub k: usize,
    /// What is summed.
    pub pairs: Pairs,
    /// `.satfinite`
    pub satfinite: bool,
}

impl Small {
    /// The instruction if PTX has it.
    #[must_use]
    pub fn checked(self) -> Option<Small> {
        let legal = match self.pairs {
            Pairs::Products { .. } => matches!((self.m, self.k), (8, 32) | (16, 32 | 64)),
            Pairs::Xor | Pairs::And => matches!((self.m, self.k), (8, 128) | (16, 128 | 256)) && !self.satfinite,
        };
        legal.then_some(self)
    }

    const fn bits(self) -> usize {
        if matches!(self.pairs, Pairs::Products { .. }) { 4 } else { 1 }
    }

    /// Executes it: `d = a·b + c`. Registers: A `m·k·bits/1024`, B `k·bits/128`, C and D `m/4`.
    ///
    /// # Errors
    /// If the device does not have it (Turing has 8 rows and `.xor`, Ampere all), or the operands do not have its registers.
    pub fn run(
        self,
        device: Generation,
        a: &[Register],
        b: &[Register],
        c: &[Register],
        d: &mut [Register],
    ) -> Result<(), MmaError> {
        let form = self.checked().ok_or(MmaError::Form)?;
        let first = form.m == 8 && form.pairs != Pairs::And;
        if device < Generation::Turing || (!first && device < Generation::Ampere) {
            return Err(MmaError::Device);
        }
        let (bits, per) = (form.bits(), 32 / form.bits());
        if (a.len(), b.len(), c.len(), d.len())
            != (form.m * form.k / per / 32, form.k / per / 4, form.m / 4, form.m / 4)
        {
            return Err(MmaError::Registers);
        }
        let (a_signed, b_signed) = match form.pairs {
            Pairs::Products { a_signed, b_signed } => (a_signed, b_signed),
            Pairs::Xor | Pairs::And => (false, false),
        };
        let value = |register: u32, e: usize, signed: bool| {
            let top = register << (32 - bits * (e + 1));
            if signed { top as i32 >> (32 - bits) } else { (top >> (32 - bits)) as i32 }
        };
        let (mut left, mut right) = (vec![0i32; form.m * form.k], vec![0i32; form.k * 8]);
        for lane in 0..32 {
            for e in 0..per {
                for (r, register) in a.iter().enumerate() {
                    let (row, k) =
                        if form.m == 8 { layout::m8n8_a(per, lane, e) } else { layout::m16n8_a(per, lane, r, e) };
                    left[row * form.k + k] = value(register[lane], e, a_signed);
                }
                for (r, register) in b.iter().enumerate() {
                    let (k, n) = layout::n8_b(per, lane, r, e);
                    right[n * form.k + k] = value(register[lane], e, b_signed);
                }
            }
        }
        for (r, (d, c)) in d.iter_mut().zip(c).enumerate() {
            for lane in 0..32 {
                let (row, n) = layout::n8_c(lane, r);
                let pairs = left[row * form.k..][..form.k].iter().zip(&right[n * form.k..][..form.k]);
                // At most 64 products of 15 · 15: far from overflow.
                let sum: i32 = match form.pairs {
                    Pairs::Products { .. } => pairs.map(|(x, y)| x * y).sum(),
                    Pairs::Xor => pairs.map(|(x, y)| x ^ y).sum(),
                    Pairs::And => pairs.map(|(x, y)| x & y).sum(),
                };
                let c = c[lane] as i32;
                d[lane] = if form.satfinite { c.saturating_add(sum) } else { c.wrapping_add(sum) } as u32;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: Pairs = Pairs::Products { a_signed: true, b_signed: true };
    const UNSIGNED: Pairs = Pairs::Products { a_signed: false, b_signed: false };

    fn run(m: usize, k: usize, pairs: Pairs, satfinite: bool, a: u32, b: u32, c: u32) -> Vec<Register> {
        let per = if matches!(pairs, Pairs::Products { .. }) { 8 } else { 32 };
        let mut d = vec![[0; 32]; m / 4];
        let fill = |n: usize, v: u32| vec![[v; 32]; n];
        Small { m, k, pairs, satfinite }
            .run(Generation::Ampere, &fill(m * k / per / 32, a), &fill(k / per / 4, b), &fill(m / 4, c), &mut d)
            .expect("it is legal");
        d
    }

    #[test]
    fn sums_of_equal_elements() {
        for (m, k) in [(8, 32), (16, 32), (16, 64)] {
            let n = k as u32;
            // All elements -1 by 7, and 15 by 7 without signs.
            assert_eq!(run(m, k, SIGNED, false, u32::MAX, 0x7777_7777, 5), vec![[5u32.wrapping_sub(7 * n); 32]; m / 4]);
            assert_eq!(run(m, k, UNSIGNED, false, u32::MAX, 0x7777_7777, 5), vec![[5 + 105 * n; 32]; m / 4]);
            let mixed = Pairs::Products { a_signed: false, b_signed: true };
            assert_eq!(run(m, k, mixed, false, u32::MAX, u32::MAX, 0), vec![[0u32.wrapping_sub(15 * n); 32]; m / 4]);
            assert_eq!(run(m, k, UNSIGNED, true, u32::MAX, u32::MAX, 0x7fff_fff0), vec![[0x7fff_ffff; 32]; m / 4]);
            assert_eq!(run(m, k, UNSIGNED, false, u32::MAX, u32::MAX, 0x7fff_ffff)[0][0], 0x7fff_ffff + 225 * n);
        }
        for (m, k) in [(8, 128), (16, 128), (16, 256)] {
            assert_eq!(run(m, k, Pairs::Xor, false, 0xffff_0000, 0xff00_ff00, 1), vec![[1 + k as u32 / 2; 32]; m / 4]);
            assert_eq!(run(m, k, Pairs::And, false, 0xffff_0000, 0xff00_ff00, 1), vec![[1 + k as u32 / 4; 32]; m / 4]);
        }
    }

    /// One element of A and one of B, and the place of the only sum that is not zero (PTX ISA, figures of m16n8k64 and m16n8k256).
    #[test]
    fn single_elements_meet() {
        let one = |n: usize, lane: usize, r: usize, bit: u32| {
            let mut registers = vec![[0u32; 32]; n];
            registers[r][lane] = 1 << bit;
            registers
        };
        // a13 of lane 6 is row 1 + 8, column 2 * 8 + 5 = 21; b21 is in lane 4n + 2, register 0, element 5.
        let form = Small { m: 16, k: 64, pairs: UNSIGNED, satfinite: false };
        let mut d = vec![[0; 32]; 4];
        form.run(Generation::Hopper, &one(4, 6, 1, 20), &one(2, 14, 0, 20), &[[0; 32]; 4], &mut d)
            .expect("it is legal");
        // Row 9, column 3: registers 2 and 3 hold rows 8 and above; lane 4 * 1 + 1, odd column.
        let places: Vec<_> = (0..4).flat_map(|r| (0..32).map(move |l| (r, l))).filter(|&(r, l)| d[r][l] != 0).collect();
        assert_eq!((places, d[3][5]), (vec![(3, 5)], 1));
        let form = Small { m: 16, k: 256, pairs: Pairs::And, satfinite: false };
        let mut d = vec![[0; 32]; 4];
        // Register 2 of A: row 1, columns from 128; lane 6 begins at 128 + 64. B: register 1 of the lane with t = 2.
        form.run(Generation::Hopper, &one(4, 6, 2, 31), &one(2, 14, 1, 31), &[[0; 32]; 4], &mut d)
            .expect("it is legal");
        assert_eq!((d[1][5], d.iter().flatten().sum::<u32>()), (1, 1));
    }

    #[test]
    fn generations() {
        let form = Small { m: 8, k: 128, pairs: Pairs::Xor, satfinite: false };
        let run = |form: Small, device| {
            let (na, nc) = (form.m * form.k / 1024, form.m / 4);
            let mut d = vec![[0; 32]; nc];
            form.run(device, &vec![[0; 32]; na], &vec![[0; 32]; form.k / 128], &vec![[0; 32]; nc], &mut d)
        };
        assert_eq!(run(form, Generation::Volta), Err(MmaError::Device));
        assert_eq!(run(form, Generation::Turing), Ok(()));
        assert_eq!(run(Small { pairs: Pairs::And, ..form }, Generation::Turing), Err(MmaError::Device));
        assert_eq!(run(Small { m: 16, ..form }, Generation::Turing), Err(MmaError::Device));
        assert_eq!(run(Small { satfinite: true, ..form }, Generation::Ampere), Err(MmaError::Form));
        assert_eq!(run(Small { k: 64, ..form }, Generation::Ampere), Err(MmaError::Form));
    }
}
