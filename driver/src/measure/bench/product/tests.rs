//! Examples and variants of them that are products, and that are none.

use super::*;
use crate::compile::{CompileOptions, optimize};
use crate::contract::number::Args;
use crate::run::bind::TensorPlan;
use pretty_assertions::assert_eq;
use tilec_ir::types::Elem;

fn product(source: &str, defines: &[(&str, &str)]) -> Option<Product> {
    let defines = defines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let options = CompileOptions { defines, ..CompileOptions::default() };
    let program = optimize(source, &options).unwrap_or_else(|d| panic!("{d}"));
    Product::of(&program.kernels[0].specialized)
}

fn example(name: &str) -> String {
    let path = format!("{}/../examples/{name}.tile", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn the_gemm_examples_are_products() {
    for (name, scalars) in [("gemm", true), ("gemm_naive", false), ("gemm_direct", true), ("gemm_explicit", true)] {
        let p = product(&example(name), &[]).unwrap_or_else(|| panic!("{name} is a product"));
        let operand = |tensor: &str| Operand { tensor: tensor.to_owned(), dims: [0, 1], batch: None };
        assert_eq!((&p.a, &p.b, &p.c), (&operand("A"), &operand("B"), &operand("C")), "{name}");
        assert_eq!(p.acc, AccElem::F32);
        let (alpha, beta) = p.epilogue.expect("alpha * acc + beta * c");
        if scalars {
            assert_eq!(
                (alpha.scalars, beta.map(|b| b.scalars)),
                (vec!["alpha".to_owned()], Some(vec!["beta".to_owned()])),
                "{name}"
            );
        } else {
            assert_eq!((alpha, beta), (Coefficient::number(1.0), None), "{name}");
        }
    }
    for name in ["copy", "transpose"] {
        assert_eq!(product(&example(name), &[]), None, "{name}");
    }
}

const HEAD: &str = "kernel k(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N], D: gmem f32[M, N], s: f32 = 2.0)
    grid (bm: ceildiv(M, 32), bn: ceildiv(N, 32)) {
    let a = smem f16[32, 32]
    let b = smem f16[32, 32]
    var acc = reg f32[32, 32] = 0.0
    for k in 0..K step 32 {
        copy A[bm * 32.., k..] -> a
        copy B[k.., bn * 32..] -> b
        acc = mma(a, b, acc)
    }
    let c = C[bm * 32.., bn * 32..]\n";

fn epilogue(text: &str) -> Option<Product> {
    product(&format!("{HEAD}{text}\n}}"), &[])
}

#[test]
fn epilogues_are_linear_or_fused() {
    let args = Args::from([("s".to_owned(), 3.0.into())]);
    for (text, alpha, beta) in [
        ("copy acc -> c", 1.0, None),
        ("copy 2.0 * (s * acc) - c -> c", 6.0, Some(-1.0)),
        ("copy s * (acc + 0.5 * c) -> c", 3.0, Some(1.5)),
        ("copy -acc -> c", -1.0, None),
    ] {
        let (a, b) = epilogue(text).and_then(|p| p.epilogue).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((a.value(&args), b.map(|b| b.value(&args))), (alpha, beta), "{text}");
    }
    for text in [
        "copy max(acc, 0.0) -> c",
        "copy acc + 1.0 -> c",
        "copy acc * c -> c",
        "copy acc + D[bm * 32.., bn * 32..] -> c",
    ] {
        let p = epilogue(text).unwrap_or_else(|| panic!("{text} is a product"));
        assert_eq!((p.c.tensor.as_str(), p.epilogue), ("C", None), "{text}");
    }
}

#[test]
fn other_things_are_no_products() {
    let two_results = "copy acc -> c\ncopy acc -> D[bm * 32.., bn * 32..]";
    assert_eq!(epilogue(two_results), None);
    let add = epilogue("copy acc -> c add");
    assert_eq!(add, None, "split-K is not one product per element");
    let from_one = HEAD.replace("= 0.0", "= 1.0");
    assert_eq!(product(&format!("{from_one}copy acc -> c\n}}"), &[]), None);
    let twice = HEAD.replace("acc = mma(a, b, acc)", "acc = mma(a, b, acc)\nacc = mma(b, a, acc)");
    assert_eq!(product(&format!("{twice}copy acc -> c\n}}"), &[]), None);
}

#[test]
fn batches_are_counted_by_a_grid_axis() {
    for name in ["gemm_batched", "gemm_pointers"] {
        let p = product(&example(name), &[]).unwrap_or_else(|| panic!("{name} is a product"));
        let batch = Some(Batch { dim: 0, axis: "z".to_owned() });
        for (operand, tensor) in [(&p.a, "A"), (&p.b, "B"), (&p.c, "C")] {
            assert_eq!(operand, &Operand { tensor: tensor.to_owned(), dims: [1, 2], batch: batch.clone() }, "{name}");
        }
        let plan = |name: &str, shape: [u64; 3]| plan(name, &shape);
        let tensors = [plan("A", [4, 3, 5]), plan("B", [4, 5, 7]), plan("C", [4, 3, 7])];
        assert_eq!(p.extents(&tensors), Some(Extents { m: 3, n: 7, k: 5, batches: 4 }));
        assert_eq!(p.extents(&[plan("A", [4, 3, 5]), plan("B", [2, 5, 7]), plan("C", [4, 3, 7])]), None);
    }
    // One matrix for all is one, but not as the result.
    let shared = example("gemm_batched").replace("B: gmem TB[Z, K, N]", "B: gmem TB[K, N]").replace("B[z, ", "B[");
    let p = product(&shared, &[]).expect("a product");
    assert_eq!((p.b.dims, &p.b.batch), ([0, 1], &None));
    let one_result = example("gemm_batched").replace("C: gmem Out[Z, M, N]", "C: gmem Out[M, N]");
    let one_result = one_result.replace("C[z, ", "C[");
    assert_eq!(product(&one_result, &[]), None);
    assert_eq!(product(&example("gemm_batched").replace("A[z, ", "A[0, "), &[]), None, "another matrix");
}

#[test]
fn operands_that_are_copied_first_are_those_of_the_product() {
    let z = || Some(Batch { dim: 0, axis: "z".to_owned() });
    let half = [("ALIGN", "1")].as_slice();
    let turned = [("T", "e4m3"), ("ALIGN", "16"), ("LA", "col")].as_slice();
    for (name, batch, defines, b) in [
        ("gemm", None, half, "B_rows"),
        ("gemm_batched", z(), half, "B_rows"),
        ("gemm", None, turned, "B_reordered"),
        ("gemm_batched", z(), turned, "B_reordered"),
    ] {
        let defines = defines.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let target = tilec_ir::target::Target::Sm90a;
        let options = CompileOptions { defines, target, ..CompileOptions::default() };
        let program = optimize(&example(name), &options).unwrap_or_else(|d| panic!("{d}"));
        let kernels: Vec<&Kernel> = program.kernels.iter().map(|k| &k.specialized).collect();
        assert_eq!(kernels.len(), 3, "A and B are copied");
        let p = Product::of_program(&kernels).unwrap_or_else(|| panic!("{name} is a product"));
        assert_eq!([&p.a, &p.b, &p.c].map(|o| o.tensor.as_str()), ["A", "B", "C"]);
        assert_eq!([&p.a, &p.b, &p.c].map(|o| &o.batch), [&batch; 3]);
        // Without its copy, B is a separate operand.
        let p = Product::of_program(&[kernels[0], kernels[2]]).expect("a product");
        assert_eq!([&p.a, &p.b].map(|o| o.tensor.as_str()), ["A", b]);
    }
}

#[test]
fn split_reductions_are_products() {
    let split = |source: &str| {
        let program = optimize(source, &CompileOptions::default()).unwrap_or_else(|d| panic!("{d}"));
        let kernels: Vec<&Kernel> = program.kernels.iter().map(|k| &k.specialized).collect();
        assert_eq!(kernels.iter().filter_map(|k| Product::of(k)).count(), 0, "neither kernel alone is one");
        Product::of_program(&kernels)
    };
    let source = example("gemm_splitk");
    let p = split(&source).expect("a product");
    let operand = |tensor: &str| Operand { tensor: tensor.to_owned(), dims: [0, 1], batch: None };
    assert_eq!((&p.a, &p.b, &p.c), (&operand("A"), &operand("B"), &operand("C")));
    let (alpha, beta) = p.epilogue.expect("alpha * acc + beta * c");
    assert_eq!((alpha.scalars, beta.map(|b| b.scalars)), (vec!["alpha".to_owned()], Some(vec!["beta".to_owned()])));
    for (was, is) in [
        ("copy acc -> W", "copy 2.0 * acc -> W"),
        ("reg Acc[RM, RN] = 0", "reg Acc[RM, RN] = 1"),
        ("total = total + part", "total = total * part"),
        ("total = total + part", "total = total + part\ntotal = total + part"),
        ("for s in 0..S", "for s in 1..S"),
        ("copy W[s, i", "copy W[0, i"),
    ] {
        assert_eq!(split(&source.replacen(was, is, 1)), None, "{is}");
    }
}

fn plan(name: &str, shape: &[u64]) -> TensorPlan {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    TensorPlan {
        reads_gaps: false,
        name: name.to_owned(),
        elem: Elem::F16,
        access: crate::contract::Access::Read,
        shape: shape.to_vec(),
        span: shape.iter().product(),
        modes: vec![1; shape.len()],
        strides,
        pointers: false,
    }
}

#[test]
fn transposed_operands_keep_their_dimensions() {
    let turned = HEAD
        .replace("A: gmem f16[M, K]", "A: gmem f16[K, M]")
        .replace("copy A[bm * 32.., k..] -> a", "copy transpose(A[k.., bm * 32..]) -> a");
    let p = product(&format!("{turned}copy acc -> c\n}}"), &[]).expect("a product");
    assert_eq!(p.a.dims, [1, 0]);
    let tensors = [plan("A", &[5, 3]), plan("B", &[5, 7]), plan("C", &[3, 7])];
    let extents = Some(Extents { m: 3, n: 7, k: 5, batches: 1 });
    assert_eq!(p.extents(&tensors), extents);
    assert_eq!(p.extents(&[plan("A", &[4, 3]), plan("B", &[5, 7]), plan("C", &[3, 7])]), None);
    let images = TensorPlan { shape: vec![3, 7, 1], strides: vec![7, 1, 1], modes: vec![1, 2], ..plan("C", &[3, 7]) };
    assert_eq!(p.extents(&[plan("A", &[5, 3]), plan("B", &[5, 7]), images]), extents);
}
