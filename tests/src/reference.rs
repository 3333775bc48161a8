//! What programs mean, in plain loops: independent of the language, the interpreter and the compiler.

use crate::attention;
use crate::fusions::Fusion;
use crate::gathers::Gathers;
use crate::images::Images;
use crate::inference::Inference;
use crate::linear::Linear;
use crate::loops::{activation, convolution, gemm, matrix, put, sums};
use crate::number::Format;
use crate::problem::{Run, Tensor};
use crate::rows::Rows;
use std::collections::BTreeMap;
use tilec_ir::kernel::ConstValue;

/// Values of compile-time parameters.
type Consts = BTreeMap<String, ConstValue>;

/// A reference by name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reference {
    /// `C = alpha * A·B + beta * C` of the matrices `A`, `B`, `C`, or of each matrix of batches of them; `alpha` is 1 and
    /// `beta` 0 if not given.
    Gemm,
    /// `D = act(scale * A·B + bias) + beta * C`, with the function that the compile-time parameter `ACT` numbers.
    Fused,
    /// `Y`, a convolution of `X` and `W` of `C` channels with steps `SH`, `SW` and `DH`, `DW` between windows and within them.
    /// Image, row and column of `X` are `xb`, `xh` and `xw` apart; `Y` has `O` channels, last or, if `NCHW` is 1, first.
    Conv,
    /// `Y`, of each row of `X`.
    Rows(Rows),
    /// Rows that numbers name.
    Gathers(Gathers),
    /// Elements that are computed of neighbours.
    Images(Images),
    /// Products of symmetric results, triangles and complex numbers.
    Linear(Linear),
    /// Sizes that are numbers in tensors.
    Inference(Inference),
    /// `O = softmax(scale * Q·Kᵀ)·V` of the heads of `Q`, `K` and `V`, of powers of two and `scale_log2`; `LSE`, if there is one, the logarithms of
    /// the sums. The compile-time parameters `CAUSAL`, `WINDOW`, `G` (heads that share keys) and `CAP` say which attention; of 8-bit floats `T` weights are
    /// rounded as `BKV` and `SHIFT` say, and `descale_q`, `descale_k` and `descale_v` are factors.
    Attention,
    /// `dQ`, `dK` and `dV` of that, out of `Q`, `K`, `V`, `O`, `dO` and `LSE`.
    AttentionBackward,
    /// `Y`, of each row of `X` the largest element.
    RowMaximum,
    /// The last tensor becomes the first.
    Copy,
    /// The last tensor becomes the first, transposed.
    Transpose,
    /// Products with an epilogue or a second product.
    Fusion(Fusion),
}

impl Reference {
    /// The reference called `name`.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn from_name(name: &str) -> Result<Reference, String> {
        match name {
            "gemm" => Ok(Reference::Gemm),
            "gemm_fused" => Ok(Reference::Fused),
            "conv" => Ok(Reference::Conv),
            "attention" => Ok(Reference::Attention),
            "attention_backward" => Ok(Reference::AttentionBackward),
            "row_maximum" => Ok(Reference::RowMaximum),
            "copy" => Ok(Reference::Copy),
            "transpose" => Ok(Reference::Transpose),
            _ => Fusion::from_name(name).map(Reference::Fusion).or_else(|| Rows::from_name(name).map(Reference::Rows)).or_else(|| Gathers::from_name(name).map(Reference::Gathers)).or_else(|| Images::from_name(name).map(Reference::Images)).or_else(|| Linear::from_name(name).map(Reference::Linear)).or_else(|| Inference::from_name(name).map(Reference::Inference)).ok_or_else(|| format!(
                "no reference `{name}`; there are gemm, gemm_fused, conv, softmax, softmax_backward, rms_norm, layer_norm, cross_entropy, cross_entropy_backward, argmax, cumsum, topk, log_softmax, welford, linear_scan, sort, rms_norm_backward, layer_norm_backward, attention, attention_backward, row_maximum, copy, transpose, swiglu, back_to_back, gemm_softmax, gemm_rmsnorm, weights, lora, embedding, embedding_backward, gemm_gathered, histogram, work_queue, conv2d, conv3d, conv2d_weight_grad, conv2d_data_grad, depthwise, max_pool, stencil, stencil3d, syrk, trmm, gemm_complex, moe_grouped, moe_masked, attention_varlen, paged_decode and mla_decode"
            )),
        }
    }

    /// Whether the output is written without being read, so that it can start as poison.
    pub fn overwrites(self, run: &Run) -> bool {
        match self {
            Reference::Gemm => run.value("beta").unwrap_or(0.0) == 0.0,
            // D is not the last parameter.
            Reference::Fused => false,
            Reference::Gathers(gathers) => gathers.overwrites(),
            Reference::Conv
            | Reference::Rows(_)
            | Reference::Images(_)
            | Reference::Linear(_)
            | Reference::Inference(_)
            | Reference::Attention
            | Reference::AttentionBackward
            | Reference::RowMaximum
            | Reference::Copy
            | Reference::Transpose
            | Reference::Fusion(_) => true,
        }
    }

    /// The memory after the program.
    ///
    /// # Errors
    /// The tensors are not what this reference is about.
    pub fn apply(
        self,
        before: &[Tensor],
        run: &Run,
        consts: &BTreeMap<String, ConstValue>,
    ) -> Result<Vec<Tensor>, String> {
        let mut after = before.to_vec();
        match self {
            Reference::Gemm => product(before, &mut after, run)?,
            Reference::Fused => fused(before, &mut after, run, consts)?,
            Reference::Conv => conv(before, &mut after, run, consts)?,
            Reference::Rows(rows) => rows.apply(before, &mut after, run)?,
            Reference::Gathers(gathers) => gathers.apply(before, &mut after, consts)?,
            Reference::Images(images) => images.apply(before, &mut after, run, consts)?,
            Reference::Linear(linear) => linear.apply(before, &mut after, run, consts)?,
            Reference::Inference(inference) => inference.apply(before, &mut after, run, consts)?,
            Reference::Attention => attention_forward(before, &mut after, run, consts)?,
            Reference::AttentionBackward => attention::backward(&mut after, run, consts)?,
            Reference::RowMaximum => row_maximum(before, &mut after)?,
            Reference::Fusion(fusion) => fusion.apply(before, &mut after, run)?,
            Reference::Copy => copied(before, &mut after, false)?,
            Reference::Transpose => copied(before, &mut after, true)?,
        }
        Ok(after)
    }
}

/// [`Reference::Gemm`].
fn product(before: &[Tensor], after: &mut [Tensor], run: &Run) -> Result<(), String> {
    let index = |name: &str| before.iter().position(|t| t.name == name && matches!(t.modes.len(), 2 | 3));
    let (Some(a), Some(b), Some(c)) = (index("A"), index("B"), index("C")) else {
        return Err("the reference `gemm` needs matrices A, B and C, or batches of them".to_owned());
    };
    let (alpha, beta) = (run.value("alpha").unwrap_or(1.0), run.value("beta").unwrap_or(0.0));
    if after[c].modes.len() == 2 {
        gemm(&before[a], &before[b], &mut after[c], alpha, beta);
    } else {
        for z in 0..after[c].shape[0] {
            let mut one = matrix(&after[c], z);
            gemm(&matrix(&before[a], z), &matrix(&before[b], z), &mut one, alpha, beta);
            put(&mut after[c], z, &one);
        }
    }
    Ok(())
}

/// [`Reference::Fused`].
fn fused(before: &[Tensor], after: &mut [Tensor], run: &Run, consts: &Consts) -> Result<(), String> {
    let vector = |name: &str| ["scale", "bias"].contains(&name);
    let find = |name: &str| {
        before.iter().position(|t| t.name == name && (t.modes.len() == 2 || vector(name) && t.modes.len() == 1))
    };
    let all: Option<Vec<usize>> = ["A", "B", "C", "scale", "bias", "D"].into_iter().map(find).collect();
    let Some([a, b, c, scale, bias, d]) = all.as_deref().and_then(|v| <&[usize; 6]>::try_from(v).ok()) else {
        return Err("the reference `gemm_fused` needs matrices A, B, C, scale, bias and D".to_owned());
    };
    let act = match consts.get("ACT") {
        Some(ConstValue::Int(act)) => *act,
        _ => 1,
    };
    let beta = run.value("beta").unwrap_or(0.0);
    let [a, b, c, scale, bias] = [a, b, c, scale, bias].map(|&i| &before[i]);
    let d = &mut after[*d];
    let sum = sums(a, b);
    // A matrix, or a vector along a dimension of the result.
    let values = |t: &Tensor, dim: usize| {
        let along = if t.modes.len() == 1 { t.vector() } else { Vec::new() };
        let (data, at) = (t.data.clone(), t.clone());
        move |i: i64, j: i64| match along.get(if dim == 0 { i } else { j } as usize) {
            Some(&x) => x,
            None => data[at.at(i, j)],
        }
    };
    let (scale, bias) = (values(scale, 0), values(bias, 1));
    for i in 0..d.extent(0) {
        for j in 0..d.extent(1) {
            let x = scale(i, j) * sum(i, j) + bias(i, j);
            let old = if beta == 0.0 { 0.0 } else { beta * c.data[c.at(i, j)] };
            let at = d.at(i, j);
            d.data[at] = activation(act, x) + old;
        }
    }
    Ok(())
}

/// [`Reference::Conv`].
fn conv(before: &[Tensor], after: &mut [Tensor], run: &Run, consts: &Consts) -> Result<(), String> {
    let find = |name: &str| before.iter().position(|t| t.name == name);
    let (Some(x), Some(w), Some(y)) = (find("X"), find("W"), find("Y")) else {
        return Err("the reference `conv` needs X, W and Y".to_owned());
    };
    let step = |name: &str| match consts.get(name) {
        Some(ConstValue::Int(n)) => *n,
        _ => 1,
    };
    let channels_first = matches!(consts.get("NCHW"), Some(ConstValue::Int(1)));
    let data = convolution(run, &before[x].data, &before[w].data, step, channels_first)?;
    let y = &mut after[y].data;
    if y.len() != data.len() {
        return Err(format!("Y has {} elements, not {}", y.len(), data.len()));
    }
    y.copy_from_slice(&data);
    Ok(())
}

/// [`Reference::Attention`].
fn attention_forward(before: &[Tensor], after: &mut [Tensor], run: &Run, consts: &Consts) -> Result<(), String> {
    let find = |name: &str| before.iter().find(|t| t.name == name && t.modes.len() == 4);
    let (Some(q), Some(k), Some(v)) = (find("Q"), find("K"), find("V")) else {
        return Err("the reference `attention` needs Q, K and V of four dimensions".to_owned());
    };
    let factor = |name: &str| run.value(name).unwrap_or(1.0);
    // Heads may end in the middle of a program's tile.
    let form = attention::Form::of(run, consts, q.shape[3] as usize);
    let group = attention::integer(consts, "G").max(1);
    let all = |t: &Tensor| t.addresses().map(|at| t.data[at]).collect::<Vec<f64>>();
    // Values may be of another width.
    let [of_q, of_k, of_v] = [q, k, v].map(|t| (t.shape[2] * t.shape[3]) as usize);
    let (q, k, v) = (all(q), all(k), all(v));
    let (mut out, mut logs) = (Vec::new(), Vec::new());
    for (h, q) in q.chunks(of_q).enumerate() {
        let shared = h / group;
        let part = |all: &[f64], size: usize| all[shared * size..][..size].to_vec();
        let (rows, sums) = attention::head(q, &part(&k, of_k), &part(&v, of_v), form);
        out.extend(rows.into_iter().map(|x| x * factor("descale_v")));
        logs.extend(sums);
    }
    let mut written = 0;
    for (name, data) in [("O", out), ("LSE", logs)] {
        let Some(t) = after.iter_mut().find(|t| t.name == name) else { continue };
        written += usize::from(name == "O");
        let places: Vec<usize> = t.addresses().collect();
        places.into_iter().zip(data).for_each(|(at, x)| t.data[at] = x);
    }
    if written == 0 {
        return Err("the reference `attention` needs O".to_owned());
    }
    Ok(())
}

/// [`Reference::RowMaximum`].
fn row_maximum(before: &[Tensor], after: &mut [Tensor]) -> Result<(), String> {
    let (Some(from), Some(to)) = (before.first(), after.last_mut()) else {
        return Err("no tensors".to_owned());
    };
    let all: Vec<f64> = from.addresses().map(|at| from.data[at]).collect();
    let width = from.shape.last().map_or(1, |&n| n as usize);
    let places: Vec<usize> = to.addresses().collect();
    for (at, row) in places.into_iter().zip(all.chunks(width)) {
        to.data[at] = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    }
    Ok(())
}

/// [`Reference::Copy`], or [`Reference::Transpose`].
fn copied(before: &[Tensor], after: &mut [Tensor], flip: bool) -> Result<(), String> {
    let (Some(from), Some(to)) = (before.first(), after.last_mut()) else {
        return Err("no tensors".to_owned());
    };
    let shape: Vec<i64> = if flip { from.shape.iter().rev().copied().collect() } else { from.shape.clone() };
    if shape != to.shape || (flip && shape.len() != 2) {
        return Err("the shapes do not fit the reference".to_owned());
    }
    let mut view = from.clone();
    if flip {
        view.shape.reverse();
        view.strides.reverse();
    }
    let pairs: Vec<(usize, usize)> = to.addresses().zip(view.addresses()).collect();
    for (t, f) in pairs {
        to.data[t] = from.data[f];
    }
    Ok(())
}

/// Whether integer data of magnitude `range` stay exact in a product of depth `k`: every partial sum, in any order, in
/// the accumulator (`facts`: below 2^24 for f32, 2^11 for f16).
pub fn accumulates_exactly(acc: Format, k: i64, range: i64) -> bool {
    k.saturating_mul(range).saturating_mul(range) <= 1 << acc.precision()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Random;

    fn tensor(name: &str, shape: [i64; 2], strides: [i64; 2], seed: u64) -> Tensor {
        let mut t = Tensor::new(name, &shape, &strides).unwrap();
        t.randomize(&mut Random(seed), 4);
        t
    }

    #[test]
    fn a_product_by_hand() {
        let set = |name: &str, data: [f64; 4]| Tensor { data: data.to_vec(), ..tensor(name, [2, 2], [2, 1], 1) };
        let memory = [set("A", [1.0, 2.0, 3.0, 4.0]), set("B", [5.0, 6.0, 7.0, 8.0]), set("C", [1.0, 0.0, 0.0, -1.0])];
        let run = Run::parse("alpha=2 beta=3").unwrap();
        let after = Reference::Gemm.apply(&memory, &run, &BTreeMap::new()).unwrap();
        assert_eq!(after[2].data, [41.0, 44.0, 86.0, 97.0]);
    }

    #[test]
    fn a_transposition_transposes() {
        let memory = [tensor("A", [3, 4], [7, 1], 1), tensor("B", [4, 3], [1, 6], 2)];
        let after = Reference::Transpose.apply(&memory, &Run::parse("").unwrap(), &BTreeMap::new()).unwrap();
        for i in 0..3 {
            for j in 0..4 {
                assert_eq!(after[1].data[after[1].at(j, i)], memory[0].data[memory[0].at(i, j)]);
            }
        }
    }

    #[test]
    fn exactness_limits() {
        assert!(accumulates_exactly(Format::F16, 128, 4) && !accumulates_exactly(Format::F16, 129, 4));
        assert!(accumulates_exactly(Format::F32, 1 << 20, 4) && !accumulates_exactly(Format::F32, (1 << 20) + 1, 4));
    }
}
