//! The error function of f64: within 1.3 units in the last place.
//!
//! Below 1 it is `x + x P(x^2)`; above, `1 - 2^Q(|x| - 2)`, where `Q` approximates the base-two logarithm of the
//! complement, which is below 2^-55 from 6 on. Both polynomials are fits of our own in 60-digit arithmetic: `P` is
//! within 2^-62 of the result, and the error of `2^Q` is below 2^-59.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;

/// `(erf(x) - x) / x` in powers of `x^2`, highest first, as bits.
const NEAR: [u64; 13] = [
    0x3dd0_5791_ec26_7b74,
    0xbe13_86a8_bff1_28b4,
    0x3e4f_7a40_0c27_c7a2,
    0xbe85_f1d3_51b2_7257,
    0x3ebb_9def_16b0_0e08,
    0xbeef_4d1d_f353_d53c,
    0x3f1f_9a32_1a0e_6a8f,
    0xbf4c_02db_3d8e_b35f,
    0x3f75_65bc_d0db_0234,
    0xbf9b_82ce_3128_4998,
    0x3fbc_e2f2_1a04_2b20,
    0xbfd8_1274_6b03_79e6,
    0x3fc0_6eba_8214_db69,
];

/// `log2(1 - erf(x))` in powers of `x - 2`, highest first, as bits.
const FAR: [u64; 19] = [
    0x3d7a_5adf_d100_31b0,
    0xbdb0_08ac_0f2c_f4b7,
    0x3dcd_a29e_ae0a_0a6d,
    0xbdd1_17fe_22bb_08c1,
    0xbdfb_31f7_e72e_83ef,
    0x3e2f_778e_6652_77c0,
    0xbe55_9c57_c94d_1b47,
    0x3e76_6214_a582_0efb,
    0xbe90_c4ef_d61b_d069,
    0x3e93_b758_2d4e_c24d,
    0x3ec7_a037_74a3_28b4,
    0xbeff_52fd_928b_2714,
    0x3f29_962a_0b35_d2dd,
    0xbf51_4fd2_b56d_8901,
    0x3f75_19c0_9988_1210,
    0xbf98_5301_a35f_3464,
    0xbff5_52b3_8b78_2306,
    0xc019_7f09_3d65_90d9,
    0xc01e_f5bb_c912_e9e0,
];

/// From here on the result is 1.
const FLAT: f64 = 6.0;

impl Lower<'_> {
    /// `erf(x)`.
    pub(super) fn erf_f64(&mut self, x: Reg) -> Reg {
        let [one, middle, flat] = [1.0, -2.0, FLAT].map(|c| self.double(c));
        let square = self.d(P::MulRnF64, &[x, x]);
        let near = self.series(&NEAR.map(f64::from_bits), square);
        let near = self.d(P::FmaRnF64, &[near, x, x]);

        let size = self.d(P::AbsF64, &[x]);
        let bounded = self.d(P::MinF64, &[size, flat]);
        let from_middle = self.d(P::AddRnF64, &[bounded, middle]);
        let log = self.series(&FAR.map(f64::from_bits), from_middle);
        let rest = self.exp_f64(log, true);
        let far = self.d(P::SubRnF64, &[one, rest]);
        let far = self.with_sign_f64(far, x);
        // For NaN the comparison is false, and `near` is NaN.
        let is_far = self.emit.pure(Class::Pred, P::SetpGeF64, [size.into(), Operand::F64(1.0)]);
        self.choose(is_far, far, near)
    }
}
