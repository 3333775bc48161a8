//! Kernels of tilec in a crate: `docs/rust.md` goes through it.

/// Launchers that the build script wrote.
pub mod kernels {
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

use kernels::{ColumnSums, Gemm, Softmax};
use tilec_launch::{Device, LaunchError, StreamRef, Tensor, TensorMut};

/// Two kernels, loaded for a device.
pub struct Kernels {
    gemm: Gemm,
    softmax: Softmax,
    column_sums: ColumnSums,
}

impl Kernels {
    /// Loads what the device runs.
    ///
    /// # Errors
    /// It runs none of the targets.
    pub fn load(device: &Device) -> Result<Kernels, LaunchError> {
        let (gemm, softmax) = (Gemm::load(device)?, Softmax::load(device)?);
        Ok(Kernels { gemm, softmax, column_sums: ColumnSums::load(device)? })
    }

    /// The softmax of each row of `scale * Q·K`, with tensors of the host: for a simulated device.
    ///
    /// # Errors
    /// A slice is shorter than its shape, or there are more than 1024 columns.
    pub fn scores(&self, q: &[u16], k: &[u16], [m, n, d]: [usize; 3], scale: f32) -> Result<Vec<f32>, LaunchError> {
        let (mut products, mut out) = (vec![0.0f32; m * n], vec![0.0f32; m * n]);
        self.gemm
            .with(Tensor::host(q, [m, d]), Tensor::host(k, [d, n]), TensorMut::host(&mut products, [m, n]))
            .alpha(scale)
            .launch(StreamRef::DEFAULT)?;
        self.softmax
            .with(Tensor::host(&products, [m, n]), TensorMut::host(&mut out, [m, n]))
            .launch(StreamRef::DEFAULT)?;
        Ok(out)
    }

    /// The sums of the columns of `x`, with tensors of the host: for a simulated device.
    ///
    /// # Errors
    /// The slice is shorter than its shape, or there are more than 1024 columns.
    pub fn column_sums(&self, x: &[f32], [m, n]: [usize; 2]) -> Result<Vec<f32>, LaunchError> {
        let mut sums = vec![0.0f32; n];
        let launch = self.column_sums.with(Tensor::host(x, [m, n]), TensorMut::host(&mut sums, [n]), 1);
        let blocks = launch.max_active_clusters()?;
        launch.s(blocks).launch(StreamRef::DEFAULT)?;
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of ones and halves: the scores are known.
    #[test]
    fn scores_are_those_of_the_definition() {
        let (one, half) = (0x3c00, 0x3800);
        for (target, [m, n, d]) in [("sm_70", [3, 5, 8]), ("sm_80", [17, 33, 24]), ("sm_90a", [64, 65, 40])] {
            let kernels = Kernels::load(&Device::simulator(target).unwrap()).unwrap();
            let q: Vec<u16> = (0..m * d).map(|i| if i / d % 2 == 0 { one } else { half }).collect();
            let k: Vec<u16> = (0..d * n).map(|i| if i % n == 0 { one } else { half }).collect();
            let out = kernels.scores(&q, &k, [m, n, d], 0.25).unwrap();
            for i in 0..m {
                let of_row = if i % 2 == 0 { 1.0 } else { 0.5 };
                let product = |j: usize| 0.25 * d as f64 * of_row * if j == 0 { 1.0 } else { 0.5 };
                let sum: f64 = (0..n).map(|j| product(j).exp()).sum();
                for j in 0..n {
                    let (found, expected) = (f64::from(out[i * n + j]), product(j).exp() / sum);
                    assert!((found - expected).abs() < 1e-5, "{target} ({i}, {j}): {found}, expected {expected}");
                }
            }
        }
    }

    #[test]
    fn sums_of_columns_are_whole_numbers() {
        for target in ["sm_70", "sm_90a"] {
            let kernels = Kernels::load(&Device::simulator(target).unwrap()).unwrap();
            let x: Vec<f32> = (0..9 * 70).map(|i| (i % 11) as f32).collect();
            let sums = kernels.column_sums(&x, [9, 70]).unwrap();
            for (j, found) in sums.iter().enumerate() {
                assert_eq!(*found, (0..9).map(|i| x[i * 70 + j]).sum::<f32>(), "{target} {j}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let kernels = Kernels::load(&Device::simulator("sm_80").unwrap()).unwrap();
        let error = kernels.scores(&[0; 24], &[0; 64], [4, 8, 8], 1.0).unwrap_err();
        assert_eq!(error.to_string(), "tensor `A`: its memory has 48 bytes, expected 64");
    }
}
