//! Products of special matrices, compared with plain loops: symmetric results, triangular and complex operands.

use crate::problem::{Run, Tensor};
use std::collections::BTreeMap;
use tilec_ir::kernel::ConstValue;

/// Products of such matrices.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Linear {
    /// `C = alpha * A·Aᵀ`, all of it.
    Symmetric,
    /// `C = alpha * L·B`, of the lower triangle of `L`.
    Triangular,
    /// `C = alpha * A·B` of complex matrices in two parts, `A_re` and `A_im` and so on; with `CONJ` of the conjugate of `B`.
    Complex,
}

impl Linear {
    /// The one called `name`.
    pub fn from_name(name: &str) -> Option<Linear> {
        match name {
            "syrk" => Some(Linear::Symmetric),
            "trmm" => Some(Linear::Triangular),
            "gemm_complex" => Some(Linear::Complex),
            _ => None,
        }
    }

    /// Puts what the program computes into `after`.
    ///
    /// # Errors
    /// A tensor is missing.
    pub fn apply(
        self,
        before: &[Tensor],
        after: &mut [Tensor],
        run: &Run,
        consts: &BTreeMap<String, ConstValue>,
    ) -> Result<(), String> {
        let find = |name: &str| {
            before.iter().position(|t| t.name == name).ok_or_else(|| format!("the reference needs a tensor {name}"))
        };
        let alpha = run.value("alpha").unwrap_or(1.0);
        match self {
            Linear::Symmetric => {
                let (a, c) = (&before[find("A")?], find("C")?);
                for i in 0..a.shape[0] {
                    for j in 0..=i {
                        let sum: f64 = (0..a.shape[1]).map(|k| read(a, i, k) * read(a, j, k)).sum();
                        write(&mut after[c], i, j, alpha * sum);
                        write(&mut after[c], j, i, alpha * sum);
                    }
                }
            }
            Linear::Triangular => {
                let (l, b, c) = (&before[find("L")?], &before[find("B")?], find("C")?);
                for i in 0..l.shape[0] {
                    for j in 0..b.shape[1] {
                        let sum: f64 = (0..=i).map(|k| read(l, i, k) * read(b, k, j)).sum();
                        write(&mut after[c], i, j, alpha * sum);
                    }
                }
            }
            Linear::Complex => {
                let [ar, ai, br, bi] = ["A_re", "A_im", "B_re", "B_im"].map(find);
                let (ar, ai, br, bi) = (&before[ar?], &before[ai?], &before[br?], &before[bi?]);
                let (cr, ci) = (find("C_re")?, find("C_im")?);
                let sign = if matches!(consts.get("CONJ"), Some(ConstValue::Int(1))) { -1.0 } else { 1.0 };
                for i in 0..ar.shape[0] {
                    for j in 0..br.shape[1] {
                        let (mut re, mut im) = (0.0, 0.0);
                        for k in 0..ar.shape[1] {
                            let (x, y) = ((read(ar, i, k), read(ai, i, k)), (read(br, k, j), sign * read(bi, k, j)));
                            re += x.0 * y.0 - x.1 * y.1;
                            im += x.0 * y.1 + x.1 * y.0;
                        }
                        write(&mut after[cr], i, j, alpha * re);
                        write(&mut after[ci], i, j, alpha * im);
                    }
                }
            }
        }
        Ok(())
    }
}

fn read(t: &Tensor, i: i64, j: i64) -> f64 {
    t.data[(i * t.strides[0] + j * t.strides[1]) as usize]
}

fn write(t: &mut Tensor, i: i64, j: i64, value: f64) {
    let at = (i * t.strides[0] + j * t.strides[1]) as usize;
    t.data[at] = value;
}
