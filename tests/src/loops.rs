//! The loops that say what products, convolutions and functions are.

use crate::problem::{Run, Tensor};

/// The elements of a product of matrices. Places are looked up, not computed: of what tests do themselves this loop takes the most time.
pub(crate) fn sums<'a>(a: &'a Tensor, b: &'a Tensor) -> impl Fn(i64, i64) -> f64 + use<'a> {
    let (rows, along) = (a.offsets(0), a.offsets(1));
    let (other, columns) = (b.offsets(0), b.offsets(1));
    move |i, j| {
        let (row, column) = (rows[i as usize], columns[j as usize]);
        let mut sum = 0.0;
        for k in 0..along.len() {
            sum += a.data[(row + along[k]) as usize] * b.data[(other[k] + column) as usize];
        }
        sum
    }
}

/// The triple loop.
pub(crate) fn gemm(a: &Tensor, b: &Tensor, c: &mut Tensor, alpha: f64, beta: f64) {
    let sum = sums(a, b);
    for i in 0..c.extent(0) {
        for j in 0..c.extent(1) {
            let at = c.at(i, j);
            c.data[at] = alpha * sum(i, j) + if beta == 0.0 { 0.0 } else { beta * c.data[at] };
        }
    }
}

/// Matrix `z` of a batch, whose first dimension has one mode; a matrix is that of every batch.
pub(crate) fn matrix(batch: &Tensor, z: i64) -> Tensor {
    if batch.modes.len() == 2 {
        return batch.clone();
    }
    let (shape, strides, modes) = (batch.shape[1..].to_vec(), batch.strides[1..].to_vec(), batch.modes[1..].to_vec());
    let last: i64 = shape.iter().zip(&strides).map(|(n, s)| (n - 1) * s).sum();
    let from = z * batch.strides[0];
    let data = batch.data[from as usize..=(from + last) as usize].to_vec();
    Tensor { name: batch.name.clone(), shape, strides, modes, data }
}

/// Puts a matrix back.
pub(crate) fn put(batch: &mut Tensor, z: i64, one: &Tensor) {
    let from = (z * batch.strides[0]) as usize;
    for at in one.addresses() {
        batch.data[from + at] = one.data[at];
    }
}

/// A convolution in memory, without any tensor: packed filters of `R x S x C x O` and a packed result.
pub(crate) fn convolution(
    run: &Run,
    x: &[f64],
    w: &[f64],
    step: impl Fn(&str) -> i64,
    channels_first: bool,
) -> Result<Vec<f64>, String> {
    let given: Result<Vec<i64>, String> =
        ["B", "P", "Q", "R", "S", "C", "O", "xb", "xh", "xw"].iter().map(|n| run.integer(n)).collect();
    let [b, p, q, r, s, c, o, xb, xh, xw] = given?[..] else { return Err("numbers are missing".to_owned()) };
    let mut y = vec![0.0; (b * p * q * o) as usize];
    for image in 0..b {
        for row in 0..p {
            for column in 0..q {
                for channel in 0..o {
                    let mut sum = 0.0;
                    for i in 0..r {
                        for j in 0..s {
                            let (h, v) = (row * step("SH") + i * step("DH"), column * step("SW") + j * step("DW"));
                            for k in 0..c {
                                let from = image * xb + h * xh + v * xw + k;
                                sum += x[from as usize] * w[(((i * s + j) * c + k) * o + channel) as usize];
                            }
                        }
                    }
                    let at = if channels_first {
                        ((image * o + channel) * p + row) * q + column
                    } else {
                        ((image * p + row) * q + column) * o + channel
                    };
                    y[at as usize] = sum;
                }
            }
        }
    }
    Ok(y)
}

/// The functions of `examples/gemm_fused.tile` by their number.
pub(crate) fn activation(act: i64, x: f64) -> f64 {
    match act {
        1 => x.max(0.0),
        2 | 7 => 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x.powi(3))).tanh()),
        3 => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        4 => x / (1.0 + (-x).exp()),
        5 => 1.0 / (1.0 + (-x).exp()),
        6 => x.clamp(0.0, 6.0),
        _ => x,
    }
}

/// The error function: its integral by Simpson's rule, to some 1e-13.
pub(crate) fn erf(x: f64) -> f64 {
    const STEPS: u32 = 2000;
    let end = x.abs().min(6.5);
    let h = end / f64::from(STEPS);
    let weight = |i: u32| if i == 0 || i == STEPS { 1.0 } else { f64::from(2 + 2 * (i & 1)) };
    let sum: f64 = (0..=STEPS).map(|i| weight(i) * (-(f64::from(i) * h).powi(2)).exp()).sum();
    (std::f64::consts::FRAC_2_SQRT_PI * sum * h / 3.0).copysign(x)
}
