//! What programs over the rows of a matrix mean.

use crate::problem::{Run, Tensor};

/// Programs over rows that compute `Y` from `X`, unless noted otherwise.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Rows {
    /// `exp(x) / sum of exp` of the row.
    Softmax,
    /// `x / sqrt(mean of x² + eps) * W`.
    RmsNorm,
    /// Of `S = X + R`: `(s - mean) / sqrt(variance + eps) * W + B`.
    LayerNorm,
    /// `dX = Y * (dY - sum of Y * dY)`.
    SoftmaxBackward,
    /// `Loss = log(sum of exp) - x[label]`, and `dX`, `scale` times its gradient; `Labels` may name no element.
    CrossEntropy,
    /// `dX`, `dLoss` times the gradient of cross entropy, of the logarithm of the sum in `Lse`; `Labels` may name no element.
    CrossEntropyBackward,
    /// The index of the greatest element, of several the least; of the first NaN, if there is one.
    ArgMax,
    /// Sums up to each element.
    CumSum,
    /// The greatest elements, one for each column of `Y`, in descending order with NaN first, and their `Places`.
    TopK,
    /// The logarithm of softmax.
    LogSoftmax,
    /// Mean and variance.
    Welford,
    /// A linear recurrence.
    LinearScan,
    /// Elements in descending order, and where they were.
    Sort,
    /// The gradients of RMS norm.
    RmsNormBackward,
    /// The gradients of layer norm.
    LayerNormBackward,
}

impl Rows {
    /// The one called `name`.
    pub fn from_name(name: &str) -> Option<Rows> {
        match name {
            "softmax" => Some(Rows::Softmax),
            "rms_norm" => Some(Rows::RmsNorm),
            "layer_norm" => Some(Rows::LayerNorm),
            "softmax_backward" => Some(Rows::SoftmaxBackward),
            "cross_entropy_backward" => Some(Rows::CrossEntropyBackward),
            "cross_entropy" => Some(Rows::CrossEntropy),
            "argmax" => Some(Rows::ArgMax),
            "cumsum" => Some(Rows::CumSum),
            "topk" => Some(Rows::TopK),
            "log_softmax" => Some(Rows::LogSoftmax),
            "welford" => Some(Rows::Welford),
            "linear_scan" => Some(Rows::LinearScan),
            "sort" => Some(Rows::Sort),
            "rms_norm_backward" => Some(Rows::RmsNormBackward),
            "layer_norm_backward" => Some(Rows::LayerNormBackward),
            _ => None,
        }
    }

    /// Puts what the program computes into `after`.
    ///
    /// # Errors
    /// A tensor is missing.
    pub fn apply(self, before: &[Tensor], after: &mut [Tensor], run: &Run) -> Result<(), String> {
        let x = find(before, if self == Rows::SoftmaxBackward { "Y" } else { "X" })?;
        let eps = run.value("eps");
        if matches!(self, Rows::RmsNormBackward | Rows::LayerNormBackward) {
            return self.gradients(before, after, eps.unwrap_or(1e-6));
        }
        for i in 0..before[x].extent(0) {
            let row = row(&before[x], i);
            let out = match self {
                Rows::SoftmaxBackward => {
                    let gradient = self::row(&before[find(before, "dY")?], i);
                    let total: f64 = row.iter().zip(&gradient).map(|(y, d)| y * d).sum();
                    let out: Vec<f64> = row.iter().zip(&gradient).map(|(y, d)| y * (d - total)).collect();
                    put(after, "dX", i, &out)?;
                    continue;
                }
                Rows::CrossEntropyBackward => {
                    let [lse, label, scale] =
                        ["Lse", "Labels", "dLoss"].map(|name| find(before, name).map(|t| self::row(&before[t], i)[0]));
                    let (lse, label, scale) = (lse?, label?, scale?);
                    let own = |j: usize| if j as f64 == label { 1.0 } else { 0.0 };
                    let out: Vec<f64> =
                        row.iter().enumerate().map(|(j, x)| scale * ((x - lse).exp() - own(j))).collect();
                    put(after, "dX", i, &out)?;
                    continue;
                }
                Rows::CrossEntropy => {
                    let label = self::row(&before[find(before, "Labels")?], i)[0];
                    let own = |j: usize| if j as f64 == label { 1.0 } else { 0.0 };
                    let logarithm = row.iter().map(|x| x.exp()).sum::<f64>().ln();
                    let taken: f64 = row.iter().enumerate().map(|(j, x)| x * own(j)).sum();
                    put(after, "Loss", i, &[logarithm - taken])?;
                    let scale = run.value("scale").unwrap_or(1.0);
                    let shares = softmax(&row);
                    let out: Vec<f64> = shares.iter().enumerate().map(|(j, p)| scale * (p - own(j))).collect();
                    put(after, "dX", i, &out)?;
                    continue;
                }
                Rows::LogSoftmax => {
                    let logarithm = row.iter().map(|x| x.exp()).sum::<f64>().ln();
                    row.iter().map(|x| x - logarithm).collect()
                }
                Rows::Welford => {
                    let middle = mean(&row);
                    let squares: Vec<f64> = row.iter().map(|x| (x - middle) * (x - middle)).collect();
                    put(after, "Mean", i, &[middle])?;
                    put(after, "Var", i, &[mean(&squares)])?;
                    continue;
                }
                Rows::LinearScan => {
                    let decay = self::row(&before[find(before, "D")?], i);
                    let step = |h: &mut f64, (x, d): (&f64, f64)| {
                        *h = (-d.abs()).exp() * *h + x;
                        Some(*h)
                    };
                    row.iter().zip(decay).scan(0.0, step).collect()
                }
                Rows::Sort => {
                    let (places, values) = greatest(&row, row.len() as i64);
                    put(after, "Places", i, &places)?;
                    values
                }
                Rows::RmsNormBackward | Rows::LayerNormBackward => unreachable!("gradients are of all rows"),
                Rows::ArgMax => vec![argmax(&row)],
                Rows::CumSum => sums(&row),
                Rows::TopK => {
                    let (places, values) = greatest(&row, after[find(after, "Y")?].extent(1));
                    put(after, "Places", i, &places)?;
                    values
                }
                Rows::Softmax => softmax(&row),
                Rows::RmsNorm => rms_norm(&row, &before[find(before, "W")?].vector(), eps.unwrap_or(1e-6)),
                Rows::LayerNorm => {
                    let residual = self::row(&before[find(before, "R")?], i);
                    let sums: Vec<f64> = row.iter().zip(residual).map(|(x, r)| x + r).collect();
                    put(after, "S", i, &sums)?;
                    let [w, b] = ["W", "B"].map(|name| find(before, name).map(|at| before[at].vector()));
                    layer_norm(&sums, &w?, &b?, eps.unwrap_or(1e-5))
                }
            };
            put(after, "Y", i, &out)?;
        }
        Ok(())
    }

    /// The gradients of X, W and B, from that of Y.
    fn gradients(self, before: &[Tensor], after: &mut [Tensor], eps: f64) -> Result<(), String> {
        let (x, dy) = (find(before, "X")?, find(before, "dY")?);
        let w = before[find(before, "W")?].vector();
        let (mut dw, mut db) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        for i in 0..before[x].extent(0) {
            let (x, dy) = (row(&before[x], i), row(&before[dy], i));
            let number = |name: &str| find(before, name).map(|at| row(&before[at], i)[0]);
            let (middle, scale) = match self {
                Rows::LayerNormBackward => (number("Mean")?, number("Scale")?),
                _ => (0.0, 1.0 / (mean(&x.iter().map(|x| x * x).collect::<Vec<_>>()) + eps).sqrt()),
            };
            let v: Vec<f64> = x.iter().map(|x| (x - middle) * scale).collect();
            let g: Vec<f64> = dy.iter().zip(&w).map(|(d, w)| d * w).collect();
            let shares = mean(&v.iter().zip(&g).map(|(v, g)| v * g).collect::<Vec<_>>());
            let total = if self == Rows::LayerNormBackward { mean(&g) } else { 0.0 };
            let dx: Vec<f64> = v.iter().zip(&g).map(|(v, g)| scale * (g - total - v * shares)).collect();
            put(after, "dX", i, &dx)?;
            dw.iter_mut().zip(dy.iter().zip(&v)).for_each(|(sum, (d, v))| *sum += d * v);
            db.iter_mut().zip(&dy).for_each(|(sum, d)| *sum += d);
        }
        put_vector(after, "dW", &dw)?;
        if self == Rows::LayerNormBackward { put_vector(after, "dB", &db) } else { Ok(()) }
    }
}

fn put_vector(after: &mut [Tensor], name: &str, values: &[f64]) -> Result<(), String> {
    let t = &mut after[find(after, name)?];
    for (j, &value) in (0..).zip(values) {
        let at = t.offset(0, j) as usize;
        t.data[at] = value;
    }
    Ok(())
}

fn find(all: &[Tensor], name: &str) -> Result<usize, String> {
    let dims = if ["W", "B", "dW", "dB"].contains(&name) { 1 } else { 2 };
    let found = all.iter().position(|t| t.name == name && t.modes.len() == dims);
    found.ok_or_else(|| format!("the reference needs {name}, of {dims} dimensions"))
}

fn row(t: &Tensor, i: i64) -> Vec<f64> {
    (0..t.extent(1)).map(|j| t.data[t.at(i, j)]).collect()
}

fn put(after: &mut [Tensor], name: &str, i: i64, values: &[f64]) -> Result<(), String> {
    let y = find(after, name)?;
    for (j, &value) in (0..).zip(values) {
        let at = after[y].at(i, j);
        after[y].data[at] = value;
    }
    Ok(())
}

fn argmax(row: &[f64]) -> f64 {
    let nan = row.iter().position(|x| x.is_nan());
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    nan.or_else(|| row.iter().position(|&x| x == top)).map_or(0.0, |at| at as f64)
}

fn greatest(row: &[f64], many: i64) -> (Vec<f64>, Vec<f64>) {
    let rank = |x: f64| if x.is_nan() { (1, 0.0) } else { (0, x) };
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| rank(row[b]).partial_cmp(&rank(row[a])).unwrap_or(std::cmp::Ordering::Equal));
    order.truncate(usize::try_from(many).unwrap_or(0));
    (order.iter().map(|&at| at as f64).collect(), order.iter().map(|&at| row[at]).collect())
}

fn sums(row: &[f64]) -> Vec<f64> {
    let add = |total: &mut f64, x: &f64| {
        *total += x;
        Some(*total)
    };
    row.iter().scan(0.0, add).collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let total: f64 = row.iter().map(|x| x.exp()).sum();
    row.iter().map(|x| x.exp() / total).collect()
}

fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

fn rms_norm(row: &[f64], w: &[f64], eps: f64) -> Vec<f64> {
    let squares: Vec<f64> = row.iter().map(|x| x * x).collect();
    let scale = 1.0 / (mean(&squares) + eps).sqrt();
    row.iter().zip(w).map(|(x, w)| x * scale * w).collect()
}

fn layer_norm(row: &[f64], w: &[f64], b: &[f64], eps: f64) -> Vec<f64> {
    let middle = mean(row);
    let squares: Vec<f64> = row.iter().map(|x| (x - middle) * (x - middle)).collect();
    let scale = 1.0 / (mean(&squares) + eps).sqrt();
    row.iter().zip(w.iter().zip(b)).map(|(x, (w, b))| (x - middle) * scale * w + b).collect()
}
