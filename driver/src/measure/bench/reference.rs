//! Sums computed on the host in double precision, for elements chosen all over the result: independent of the compiler, of
//! the interpreter and of cuBLAS.

use super::product::{Extents, Operand, Product};
use super::protocol::Check;
use crate::run::bind::TensorPlan;
use crate::run::check::tolerance;
use crate::run::data::{Random, decode, encode, get};
use tilec_ir::interp::SumAccuracy;
use tilec_ir::numerics::float_format;

/// Elements of a result that are compared, at least this many where there are as many.
const SAMPLES: usize = 2048;
/// Mismatches that are shown.
const SHOWN: usize = 5;

/// A product with its operands on the host.
pub(super) struct Reference<'a> {
    pub(super) product: &'a Product,
    pub(super) extents: Extents,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    /// Every tensor and its contents before the launch.
    pub(super) tensors: &'a [(TensorPlan, Vec<u8>)],
    pub(super) accuracy: SumAccuracy,
}

/// A sample of a result.
#[derive(Copy, Clone)]
pub(super) struct Sum {
    /// Product of the batch, row, column.
    at: (u64, u64, u64),
    /// The element before it is rounded.
    want: f64,
    /// The sum of the magnitudes of what is added up.
    magnitude: f64,
    /// Its offset in the result.
    offset: usize,
}

impl Reference<'_> {
    /// The function that computes element `(i, j)` of product `z` of a batch: its value before rounding, the sum of the
    /// magnitudes of its terms, and its index in the result.
    fn element(&self) -> Option<impl Fn(u64, u64, u64) -> (f64, f64, usize) + Sync> {
        let find = |name: &str| self.tensors.iter().find(|(plan, _)| plan.name == name);
        let (a, a_bytes) = find(&self.product.a.tensor)?;
        let (b, b_bytes) = find(&self.product.b.tensor)?;
        let (c, c_bytes) = find(&self.product.c.tensor)?;
        // The offsets along the reduction.
        let along = |t: &TensorPlan, dim: usize| (0..t.extent(dim)).map(|i| t.offset(dim, i)).collect::<Vec<u64>>();
        let (ak, bk) = (along(a, self.product.a.dims[1]), along(b, self.product.b.dims[0]));
        let batch = |t: &TensorPlan, of: &Operand, z| of.batch.as_ref().map_or(0, |b| t.offset(b.dim, z));
        let at = |x: u64| usize::try_from(x).expect("the tensor is in memory");
        Some(move |z, i, j| {
            let (mut sum, mut magnitude) = (0.0, 0.0);
            let row = batch(a, &self.product.a, z) + a.offset(self.product.a.dims[0], i);
            let column = batch(b, &self.product.b, z) + b.offset(self.product.b.dims[1], j);
            for (ak, bk) in ak.iter().zip(&bk) {
                let x = get(a.elem, a_bytes, at(row + ak));
                let y = get(b.elem, b_bytes, at(bk + column));
                sum += x * y;
                magnitude += (x * y).abs();
            }
            let dims = self.product.c.dims;
            let offset = at(batch(c, &self.product.c, z) + c.offset(dims[0], i) + c.offset(dims[1], j));
            let (mut want, mut magnitude) = (self.alpha * sum, self.alpha.abs() * magnitude);
            if self.beta != 0.0 {
                let old = self.beta * get(c.elem, c_bytes, offset);
                want += old;
                magnitude += old.abs();
            }
            (want, magnitude, offset)
        })
    }

    /// The function that computes the element at an index of the result, rounded once: exact on whole numbers.
    pub(super) fn rounded(&self) -> Option<impl Fn(&[u64]) -> f64> {
        let element = self.element()?;
        let (of, elem) =
            (&self.product.c, self.tensors.iter().find(|(plan, _)| plan.name == self.product.c.tensor)?.0.elem);
        Some(move |index: &[u64]| {
            let z = of.batch.as_ref().map_or(0, |b| index[b.dim]);
            let (want, ..) = element(z, index[of.dims[0]], index[of.dims[1]]);
            decode(elem, encode(elem, want))
        })
    }

    /// The unrounded samples of the result, computed on all cores.
    pub(super) fn sums(&self) -> Option<Vec<Sum>> {
        let element = self.element()?;
        let batches = self.extents.batches;
        let mut sums: Vec<Sum> = samples(self.extents.m, self.extents.n)
            .into_iter()
            .enumerate()
            .map(|(n, (i, j))| {
                // The first, the last, and others by rotation.
                let z = match n {
                    0 => batches - 1,
                    n => (n as u64 - 1) % batches,
                };
                Sum { at: (z, i, j), want: 0.0, magnitude: 0.0, offset: 0 }
            })
            .collect();
        let share = sums.len().div_ceil(std::thread::available_parallelism().map_or(1, usize::from));
        std::thread::scope(|scope| {
            for mine in sums.chunks_mut(share) {
                let element = &element;
                scope.spawn(move || {
                    for sum in mine {
                        let (z, i, j) = sum.at;
                        (sum.want, sum.magnitude, sum.offset) = element(z, i, j);
                    }
                });
            }
        });
        Some(sums)
    }

    /// Compares samples of the result in `after` with their sums: exactly, or within the bound.
    pub(super) fn compare(&self, sums: &[Sum], after: &[u8], exact: bool, check: &mut Check) -> Option<()> {
        let (c, _) = self.tensors.iter().find(|(plan, _)| plan.name == self.product.c.tensor)?;
        for &Sum { at: (z, i, j), want, magnitude, offset } in sums {
            let rounded = decode(c.elem, encode(c.elem, want));
            let got = get(c.elem, after, offset);
            let bound = if exact || float_format(c.elem).is_none() {
                0.0
            } else {
                tolerance(c.elem, want, magnitude, self.extents.k as f64, self.accuracy)
            };
            let error = if got == rounded { 0.0 } else { (got - rounded).abs() };
            if exact {
                check.exact += 1;
            } else {
                check.bounded += 1;
                check.worst = check.worst.max(if bound > 0.0 { error / bound } else { 0.0 });
            }
            // An error that is not a number is too large.
            if error.is_nan() || error > bound {
                check.wrong += 1;
                if check.shown.len() < SHOWN {
                    let place =
                        if self.extents.batches > 1 { format!("[{z}, {i}, {j}]") } else { format!("[{i}, {j}]") };
                    check.shown.push(format!("{}{place} = {got}, expected {rounded} within {bound:.3e}", c.name));
                }
            }
        }
        Some(())
    }
}

/// Indices to compare: the corners, a dense patch at the far corner where ragged tiles are, the last rows and columns, and
/// random ones.
fn samples(m: u64, n: u64) -> Vec<(u64, u64)> {
    let mut random = Random::new(m ^ n.rotate_left(32), "samples");
    let mut below = |n: u64| u64::try_from((u128::from(random.next_u64()) * u128::from(n)) >> 64).unwrap_or(0);
    let mut all = Vec::new();
    for i in [0, m - 1] {
        for j in [0, n - 1] {
            all.push((i, j));
        }
    }
    for i in m.saturating_sub(16)..m {
        for j in n.saturating_sub(16)..n {
            all.push((i, j));
        }
    }
    while all.len() < SAMPLES {
        all.push((below(m), below(n)));
        all.push((m - 1, below(n)));
        all.push((below(m), n - 1));
        all.push((below(m), below(n)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use crate::measure::bench::product::{AccElem, Operand};
    use crate::run::data::set;
    use tilec_ir::types::Elem;

    fn plan(name: &str, rows: u64, cols: u64, ld: u64) -> TensorPlan {
        TensorPlan {
            reads_gaps: false,
            name: name.to_owned(),
            elem: Elem::F32,
            access: Access::ReadWrite,
            shape: vec![rows, cols],
            strides: vec![ld, 1],
            modes: vec![1, 1],
            span: (rows - 1) * ld + cols,
            pointers: false,
        }
    }

    fn product() -> Product {
        let operand = |tensor: &str| Operand { tensor: tensor.to_owned(), dims: [0, 1], batch: None };
        Product { a: operand("A"), b: operand("B"), c: operand("C"), acc: AccElem::F32, epilogue: None }
    }

    #[test]
    fn wrong_elements_are_found_anywhere() {
        let (m, n, k) = (40, 24, 3);
        let tensors: Vec<(TensorPlan, Vec<u8>)> = [("A", m, k, 5), ("B", k, n, 24), ("C", m, n, 30)]
            .into_iter()
            .map(|(name, r, c, ld)| {
                let plan = plan(name, r, c, ld);
                let mut bytes = vec![0xFF; usize::try_from(plan.bytes()).expect("small")];
                plan.for_each(|at, offset| set(Elem::F32, &mut bytes, offset, (at[0] + 2 * at[1] % 5) as f64));
                (plan, bytes)
            })
            .collect();
        let product = product();
        let reference = Reference {
            product: &product,
            extents: Extents { m, n, k, batches: 1 },
            alpha: 2.0,
            beta: 0.5,
            tensors: &tensors,
            accuracy: SumAccuracy::new(2f64.powi(24), 2f64.powi(-23)),
        };
        let mut right = tensors[2].1.clone();
        let value = |t: usize, i: u64, j: u64| {
            let (plan, bytes) = &tensors[t];
            get(Elem::F32, bytes, usize::try_from(i * plan.strides[0] + j).expect("small"))
        };
        tensors[2].0.for_each(|at, offset| {
            let sum: f64 = (0..k).map(|x| value(0, at[0], x) * value(1, x, at[1])).sum();
            set(Elem::F32, &mut right, offset, 2.0 * sum + 0.5 * value(2, at[0], at[1]));
        });
        let check = |bytes: &[u8], exact: bool| {
            let mut check = Check::default();
            reference
                .compare(&reference.sums().expect("all tensors are there"), bytes, exact, &mut check)
                .expect("all tensors are there");
            check
        };
        let good = check(&right, true);
        assert!(good.wrong == 0 && good.exact >= 1000, "{good:?}");
        assert_eq!(check(&right, false).wrong, 0);
        for (i, j) in [(0, 0), (39, 23), (0, 23), (39, 0), (17, 11)] {
            for error in [1.0, f64::NAN] {
                let mut bad = right.clone();
                set(Elem::F32, &mut bad, i * 30 + j, value(2, i as u64, j as u64) + 1000.0 * error);
                assert!(check(&bad, true).wrong > 0 && check(&bad, false).wrong > 0, "{i} {j}");
            }
        }
    }

    #[test]
    fn samples_lie_inside_and_cover_the_edges() {
        for (m, n) in [(1, 1), (1, 5000), (16_384, 3), (4096, 4096)] {
            let all = samples(m, n);
            assert!(all.len() >= 1000 && all.iter().all(|&(i, j)| i < m && j < n));
            assert!(all.contains(&(m - 1, n - 1)) && all.contains(&(0, 0)));
        }
    }
}
