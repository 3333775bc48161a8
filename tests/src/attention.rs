//! Attention and its gradients in plain loops, and tests that the examples compute the same.

use crate::number::Format;
use crate::problem::{Run, Tensor};
use std::collections::BTreeMap;
use tilec_ir::kernel::ConstValue;

/// The function applied to scores, and the keys that a query sees.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Form {
    /// Elements of a query and a key; those of a value are what is left of its tensor for each key.
    pub(crate) width: usize,
    /// The factor of scores, for powers of two.
    pub(crate) scale: f64,
    /// Keys after the query are not seen.
    pub(crate) causal: bool,
    /// So many keys up to the query are; 0: all.
    pub(crate) window: usize,
    /// Scores are bent to less than this.
    pub(crate) cap: Option<f64>,
    /// Weights are rounded.
    pub(crate) rounded: Option<Rounded>,
}

/// The rounding of weights before the second product: those of each tile of keys, relative to the largest score so far.
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
        let score = |k: &[f64]| -> f64 {
            let x = form.scale * q.iter().zip(k).map(|(a, b)| a * b).sum::<f64>();
            form.cap.map_or(x, |cap| cap * (x / cap).tanh())
        };
        if let Some(by) = form.rounded {
            let scores = k
                .chunks(width)
                .enumerate()
                .map(|(key, k)| if form.sees(row, key) { score(k) } else { f64::NEG_INFINITY });
            let (sums, total) = rounded(&scores.collect::<Vec<_>>(), v, values, by);
            out.extend(sums.into_iter().map(|x| x / total));
            logs.push(total.ln());
            continue;
        }
        let weight = |(key, k): (usize, &[f64])| if form.sees(row, key) { score(k).exp2() } else { 0.0 };
        let weights: Vec<f64> = k.chunks(width).enumerate().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let column = |d: usize| weights.iter().zip(v.chunks(values)).map(|(p, v)| p * v[d]).sum::<f64>() / total;
        out.extend((0..values).map(column));
        logs.push(total.ln());
    }
    (out, logs)
}

impl Form {
    /// The form that a test's description gives; heads of `width`.
    pub(crate) fn of(run: &Run, consts: &BTreeMap<String, ConstValue>, width: usize) -> Form {
        let int = |name: &str| integer(consts, name);
        // Weights in 8 bits are rounded; factors were divided by.
        let rounded = match consts.get("T") {
            Some(ConstValue::Elem(elem)) => Format::from_name(elem.name()).filter(|f| f.bytes() == 1),
            _ => None,
        };
        let rounded = rounded.map(|format| Rounded { keys: int("BKV").max(1), shift: int("SHIFT") as f64, format });
        let factor = |name: &str| run.value(name).unwrap_or(1.0);
        Form {
            width,
            scale: factor("scale_log2") * factor("descale_q") * factor("descale_k"),
            causal: int("CAUSAL") == 1,
            window: int("WINDOW"),
            cap: run.value("cap").filter(|_| int("CAP") == 1),
            rounded,
        }
    }

    fn sees(&self, row: usize, key: usize) -> bool {
        !(self.causal && key > row || self.window > 0 && key + self.window <= row)
    }
}

/// A compile-time parameter that is a number.
pub(crate) fn integer(consts: &BTreeMap<String, ConstValue>, name: &str) -> usize {
    match consts.get(name) {
        Some(ConstValue::Int(n)) => usize::try_from(*n).unwrap_or(0),
        _ => 0,
    }
}

/// The inputs of one head's gradients: query, key, value, result, gradient of the result, and logarithms.
pub(crate) struct Forward<'a> {
    pub(crate) q: &'a [f64],
    pub(crate) k: &'a [f64],
    pub(crate) v: &'a [f64],
    pub(crate) o: &'a [f64],
    pub(crate) g: &'a [f64],
    pub(crate) lse: &'a [f64],
}

/// Adds to the gradients of a head's queries, keys and values: with weights `exp(score - lse)`, whether they add up to 1 or not.
pub(crate) fn add_gradients(of: &Forward<'_>, form: Form, [dq, dk, dv]: [&mut [f64]; 3]) {
    let w = form.width;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let add = |to: &mut [f64], by: f64, x: &[f64]| to.iter_mut().zip(x).for_each(|(to, x)| *to += by * x);
    // Scores are scaled for powers of two.
    let scale = form.scale * std::f64::consts::LN_2;
    for row in 0..of.lse.len() {
        let at = row * w..(row + 1) * w;
        let (q, g) = (&of.q[at.clone()], &of.g[at.clone()]);
        let sum = dot(g, &of.o[at.clone()]);
        for key in (0..of.k.len() / w).filter(|&key| form.sees(row, key)) {
            let from = key * w..(key + 1) * w;
            let weight = (scale * dot(q, &of.k[from.clone()]) - of.lse[row]).exp();
            let slope = scale * weight * (dot(g, &of.v[from.clone()]) - sum);
            add(&mut dq[at.clone()], slope, &of.k[from.clone()]);
            add(&mut dk[from.clone()], slope, q);
            add(&mut dv[from], weight, g);
        }
    }
}

/// The memory after `examples/attention_backward.tile`.
///
/// # Errors
/// The tensors are not what the program is about.
pub(crate) fn backward(after: &mut [Tensor], run: &Run, consts: &BTreeMap<String, ConstValue>) -> Result<(), String> {
    let find = |name: &str| after.iter().position(|t| t.name == name && t.modes.len() == 4);
    let names = ["Q", "K", "V", "O", "dO", "LSE", "dQ", "dK", "dV"];
    let found: Option<Vec<usize>> = names.into_iter().map(find).collect();
    let found = found.ok_or_else(|| format!("the reference `attention_backward` needs {}", names.join(", ")))?;
    let all = |i: usize| after[found[i]].addresses().map(|at| after[found[i]].data[at]).collect::<Vec<f64>>();
    let [q, k, v, o, g, lse] = [0, 1, 2, 3, 4, 5].map(all);
    let shape = &after[found[0]].shape;
    let (rows, width) = (shape[2] as usize, shape[3] as usize);
    let (size, group) = (rows * width, integer(consts, "G").max(1));
    let form = Form::of(run, consts, width);
    let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
    for h in 0..q.len() / size {
        let (own, shared) = (h * size..(h + 1) * size, h / group * size..(h / group + 1) * size);
        let of = Forward {
            q: &q[own.clone()],
            k: &k[shared.clone()],
            v: &v[shared.clone()],
            o: &o[own.clone()],
            g: &g[own.clone()],
            lse: &lse[h * rows..(h + 1) * rows],
        };
        add_gradients(&of, form, [&mut dq[own], &mut dk[shared.clone()], &mut dv[shared]]);
    }
    for (i, data) in [(6, dq), (7, dk), (8, dv)] {
        let t = &mut after[found[i]];
        let places: Vec<usize> = t.addresses().collect();
        places.into_iter().zip(data).for_each(|(at, x)| t.data[at] = x);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Form, Forward, add_gradients, head};
    use crate::oracle;
    use crate::problem::Random;
    use std::collections::BTreeMap;
    use tilec_ir::interp;
    use tilec_ir::kernel::ConstValue;
    use tilec_ir::types::Elem;

    const EXAMPLE: &str = include_str!("../../examples/flash_attention.tile");
    /// Width of a head.
    const D: usize = 16;
    /// Values are at most 2: twice the error of rounding the weights and the result to binary16.
    const TOLERANCE: f64 = 0.004;

    #[test]
    fn the_example_of_attention_means_it() {
        let kernel = oracle::parse_one(EXAMPLE).unwrap();
        // One full tile, several tiles, and lengths that end inside a tile of queries and of keys.
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

    fn random(seed: u64, count: usize) -> Vec<f64> {
        let mut random = Random(seed);
        (0..count).map(|_| random.between(-8, 8) as f64 / 4.0).collect()
    }

    /// The gradients of a head whose forward pass has run.
    fn gradients(q: &[f64], k: &[f64], v: &[f64], g: &[f64], form: Form) -> [Vec<f64>; 3] {
        let (o, lse) = head(q, k, v, form);
        let of = Forward { q, k, v, o: &o, g, lse: &lse };
        let mut all = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
        let [dq, dk, dv] = &mut all;
        add_gradients(&of, form, [dq, dk, dv]);
        all
    }

    /// The formulas against differences of the result.
    #[test]
    fn gradients_are_slopes() {
        const STEP: f64 = 1e-5;
        for form in [
            Form { width: 4, scale: 0.25, ..Form::default() },
            Form { width: 4, scale: 0.25, causal: true, ..Form::default() },
            Form { width: 4, scale: 0.25, causal: true, window: 3, ..Form::default() },
        ] {
            let [q, k, v, g] = [1, 2, 3, 4].map(|seed| random(seed, 7 * form.width));
            let loss =
                |at: &[&[f64]; 3]| head(at[0], at[1], at[2], form).0.iter().zip(&g).map(|(o, g)| o * g).sum::<f64>();
            let found = gradients(&q, &k, &v, &g, form);
            for (which, own) in found.iter().enumerate() {
                for (i, slope) in own.iter().enumerate() {
                    let moved = |by: f64| {
                        let mut all = [q.clone(), k.clone(), v.clone()];
                        all[which][i] += by;
                        loss(&[&all[0], &all[1], &all[2]])
                    };
                    let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                    assert!((slope - expected).abs() < 1e-6, "{form:?}, input {which}, {i}: {slope}, not {expected}");
                }
            }
        }
    }

    /// After a forward pass weights are at most 1, and gradients small: rounding errors are far below the effect of a
    /// missing tile.
    #[test]
    fn the_example_of_the_backward_pass_means_it() {
        let kernels = oracle::parse_program(include_str!("../../examples/attention_backward.tile")).unwrap();
        for (seed, rows) in [1, 3, 17, 32, 75].into_iter().enumerate() {
            for (causal, window) in [(false, 0), (true, 0), (true, 20)] {
                let form = Form { width: D, scale: 0.25, causal, window, ..Form::default() };
                let [q, k, v, g] = [1, 2, 3, 4].map(|t| random(10 * seed as u64 + t, rows * D));
                let (o, lse) = head(&q, &k, &v, form);
                let expected = gradients(&q, &k, &v, &g, form);
                let mut memory: BTreeMap<String, interp::Tensor> = BTreeMap::new();
                let f16 = [("Q", q), ("K", k), ("V", v), ("O", o), ("dO", g)];
                let results = ["dQ", "dK", "dV"].map(|n| (n, vec![f64::NAN; rows * D]));
                for (name, data) in f16.into_iter().chain(results) {
                    memory.insert(name.to_owned(), interp::Tensor { elem: Elem::F16, data: data.into() });
                }
                let padded = rows.next_multiple_of(64);
                for (name, data) in [("LSE", lse), ("logs", vec![f64::NAN; padded]), ("delta", vec![f64::NAN; padded])]
                {
                    memory.insert(name.to_owned(), interp::Tensor { elem: Elem::F32, data: data.into() });
                }
                let consts = [("D", D), ("BLOCK", 32), ("TILE", 16)];
                let consts = consts.into_iter().chain([("CAUSAL", usize::from(causal)), ("WINDOW", window)]);
                let consts: Vec<(String, ConstValue)> =
                    consts.map(|(n, x)| (n.to_owned(), ConstValue::Int(x as i64))).collect();
                for kernel in &kernels {
                    run_on(kernel, &consts, rows, &mut memory);
                }
                for (name, expected) in ["dQ", "dK", "dV"].into_iter().zip(&expected) {
                    for (i, (got, expected)) in memory[name].data.floats().iter().zip(expected).enumerate() {
                        let most = 0.01 * expected.abs().max(1.0);
                        assert!(
                            (got - expected).abs() <= most,
                            "{form:?}, {rows} rows, {name} {i}: {got}, not {expected}"
                        );
                    }
                }
            }
        }
    }

    /// Runs a kernel on the tensors that it has, of one head.
    fn run_on(
        kernel: &tilec_ir::kernel::Kernel,
        consts: &[(String, ConstValue)],
        rows: usize,
        memory: &mut BTreeMap<String, interp::Tensor>,
    ) {
        let has = |name: &str| kernel.values.values().any(|v| v.name == name);
        let consts = consts.iter().filter(|(name, _)| has(name)).cloned().collect();
        let mut inputs = interp::Inputs { consts, ..interp::Inputs::default() };
        let sizes = [("Z", 1), ("H", 1), ("HK", 1), ("L", rows as i64)];
        inputs.sizes = sizes.into_iter().filter(|(n, _)| has(n)).map(|(n, x)| (n.to_owned(), x)).collect();
        if has("scale_log2") {
            inputs.scalars = BTreeMap::from([("scale_log2".to_owned(), 0.25.into())]);
        }
        inputs.tensors =
            memory.iter().filter(|(name, _)| has(name)).map(|(name, t)| (name.clone(), t.clone())).collect();
        interp::run(kernel, &mut inputs, &interp::Options::default()).unwrap();
        memory.extend(inputs.tensors);
    }
}
