//! What attention is, in plain loops, and that `examples/flash_attention.tile` means it.

use crate::number::Format;

/// What is computed of scores, and which keys a query sees.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Form {
    /// Elements of a query and a key; those of a value are what is left of its tensor for each key.
    pub(crate) width: usize,
    /// What scores are multiplied by, for powers of two.
    pub(crate) scale: f64,
    /// Keys behind the query are not seen.
    pub(crate) causal: bool,
    /// So many keys up to the query are; 0: all.
    pub(crate) window: usize,
    /// Scores are bent to less than this.
    pub(crate) cap: Option<f64>,
    /// Weights are rounded.
    pub(crate) rounded: Option<Rounded>,
}

/// How weights are rounded in front of the second product: those of each tile of keys, in relation to the largest score up to there.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rounded {
    /// Keys of a tile.
    pub(crate) keys: usize,
    /// Weights count powers of two below this one.
    pub(crate) shift: f64,
    pub(crate) format: Format,
}

/// The weighted sum of values of which the weights are rounded tile by tile, and the sum of the weights as they were.
fn rounded(scores: &[f64], v: &[f64], values: usize, by: Rounded) -> (Vec<f64>, f64) {
    let (mut top, mut total, mut sums) = (f64::NEG_INFINITY, 0.0, vec![0.0; values]);
    for (scores, v) in scores.chunks(by.keys).zip(v.chunks(by.keys * values)) {
        let new = scores.iter().copied().fold(top, f64::max);
        if new == f64::NEG_INFINITY {
            continue;
        }
        let before = (top - new).exp2();
        total *= before;
        sums.iter_mut().for_each(|x| *x *= before);
        for (score, v) in scores.iter().zip(v.chunks(values)) {
            let weight = (score - new + by.shift).exp2();
            total += weight;
            let kept = by.format.stored(weight);
            sums.iter_mut().zip(v).for_each(|(sum, x)| *sum += kept * x);
        }
        top = new;
    }
    (sums, total)
}

/// `softmax(scale * q·kᵀ)·v` of one head, without a running maximum and in f64, and of each row the natural logarithm of the sum of its weights.
pub(crate) fn head(q: &[f64], k: &[f64], v: &[f64], form: Form) -> (Vec<f64>, Vec<f64>) {
    let width = form.width;
    let values = v.len() * width / k.len().max(1);
    let (mut out, mut logs) = (Vec::with_capacity(q.len() / width * values), Vec::new());
    for (row, q) in q.chunks(width).enumerate() {
        let seen = |key: usize| !(form.causal && key > row || form.window > 0 && key + form.window <= row);
        let score = |k: &[f64]| -> f64 {
            let x = form.scale * q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>();
            form.cap.map_or(x, |cap| cap * (x / cap).tanh())
        };
        if let Some(by) = form.rounded {
            let scores =
                k.chunks(width).enumerate().map(|(key, k)| if seen(key) { score(k) } else { f64::NEG_INFINITY });
            let (sums, total) = rounded(&scores.collect::<Vec<_>>(), v, values, by);
            out.extend(sums.into_iter().map(|x| x / total));
            logs.push(total.ln());
            continue;
        }
        let weight = |(key, k): (usize, &[f64])| if seen(key) { score(k).exp2() } else { 0.0 };
        let weights: Vec<f64> = k.chunks(width).enumerate().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let column = |d: usize| weights.iter().zip(v.chunks(values)).map(|(p, v)| p * v[d]).sum::<f64>() / total;
        out.extend((0..values).map(column));
        logs.push(total.ln());
    }
    (out, logs)
}

#[cfg(test)]
mod tests {
    use super::{Form, head};
    use crate::oracle;
    use crate::problem::Random;
    use std::collections::BTreeMap;
    use tilec_ir::interp;
    use tilec_ir::kernel::ConstValue;
    use tilec_ir::types::Elem;

    const EXAMPLE: &str = include_str!("../../examples/flash_attention.tile");
    /// Width of a head.
    const D: usize = 16;
    /// Values are at most 2: what rounding the weights and the result to binary16 makes of them, twice.
    const TOLERANCE: f64 = 0.004;

    #[test]
    fn the_example_of_attention_means_it() {
        let kernel = oracle::parse_one(EXAMPLE).unwrap();
        // One tile that is full, several, and such that end inside a tile of queries and one of keys.
        for (seed, rows) in [32, 64, 1, 40, 75].into_iter().enumerate() {
            let [batches, heads] = [1, 2];
            let mut random = Random(7 + seed as u64);
            let count = batches * heads * rows * D;
            let mut tensor = || -> Vec<f64> { (0..count).map(|_| random.between(-8, 8) as f64 / 4.0).collect() };
            let [q, k, v] = [tensor(), tensor(), tensor()];
            let mut inputs = interp::Inputs::default();
            let tile = [("BQ", 32), ("BKV", 16), ("D", D as i64)];
            inputs.consts = tile.into_iter().map(|(n, x)| (n.to_owned(), ConstValue::Int(x))).collect();
            let sizes = [("Z", batches), ("H", heads), ("L", rows)];
            inputs.sizes = sizes.into_iter().map(|(n, x)| (n.to_owned(), x as i64)).collect();
            inputs.scalars = BTreeMap::from([("scale_log2".to_owned(), 0.25.into())]);
            let data = [("Q", q.clone()), ("K", k.clone()), ("V", v.clone()), ("O", vec![f64::NAN; count])];
            for (name, data) in data {
                inputs.tensors.insert(name.to_owned(), interp::Tensor { elem: Elem::F16, data: data.into() });
            }
            interp::run(&kernel, &mut inputs, &interp::Options::default()).unwrap();
            let form = Form { width: D, scale: 0.25, ..Form::default() };
            let heads = q.chunks(rows * D).zip(k.chunks(rows * D)).zip(v.chunks(rows * D));
            let expected: Vec<f64> = heads.flat_map(|((q, k), v)| head(q, k, v, form).0).collect();
            for (i, (got, expected)) in inputs.tensors["O"].data.floats().iter().zip(&expected).enumerate() {
                assert!((got - expected).abs() <= TOLERANCE, "{rows} rows, element {i}: {got}, not {expected}");
            }
        }
    }
}
