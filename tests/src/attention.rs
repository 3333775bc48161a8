//! What attention is, in plain loops, and that `examples/flash_attention.tile` means it.

/// `softmax(scale * q·kᵀ)·v` of one head whose rows have `width` elements, of powers of two, without a running maximum and in f64.
pub(crate) fn head(q: &[f64], k: &[f64], v: &[f64], width: usize, scale: f64) -> Vec<f64> {
    let mut out = Vec::with_capacity(q.len());
    for q in q.chunks(width) {
        let dot = |k: &[f64]| -> f64 { q.iter().zip(k).map(|(a, b)| a * b).sum() };
        let scores: Vec<f64> = k.chunks(width).map(|k| (scale * dot(k)).exp2()).collect();
        let total: f64 = scores.iter().sum();
        let column = |d: usize| scores.iter().zip(v.chunks(width)).map(|(p, v)| p * v[d]).sum::<f64>() / total;
        out.extend((0..width).map(column));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::head;
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
            inputs.scalars = BTreeMap::from([("scale_log2".to_owned(), 0.25)]);
            let data = [("Q", q.clone()), ("K", k.clone()), ("V", v.clone()), ("O", vec![f64::NAN; count])];
            for (name, data) in data {
                inputs.tensors.insert(name.to_owned(), interp::Tensor { elem: Elem::F16, data });
            }
            interp::run(&kernel, &mut inputs, &interp::Options::default()).unwrap();
            let heads = q.chunks(rows * D).zip(k.chunks(rows * D)).zip(v.chunks(rows * D));
            let expected: Vec<f64> = heads.flat_map(|((q, k), v)| head(q, k, v, D, 0.25)).collect();
            for (i, (got, expected)) in inputs.tensors["O"].data.iter().zip(&expected).enumerate() {
                assert!((got - expected).abs() <= TOLERANCE, "{rows} rows, element {i}: {got}, not {expected}");
            }
        }
    }
}
