//! The cuBLAS call that computes what a kernel computes.

use super::product::{AccElem, Operand, Product};
use super::protocol::Check;
use crate::cuda::{self, Compute, MatType, Matrix};
use crate::run::bind::TensorPlan;
use crate::run::data::get;
use crate::run::program::BoundProgram;
use tilec_ir::types::Elem;

/// Number of cuBLAS algorithms that are tried for a product.
pub(super) const CHOICES: usize = 8;

/// A product as cuBLAS takes it, and what to give it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Call {
    pub(super) product: cuda::Product,
    /// Left factor, right factor, result.
    pub(super) tensors: [String; 3],
    pub(super) scalars: (f64, f64),
}

/// The call for `product` with these arguments.
///
/// # Errors
/// Why there is none, in words.
pub(super) fn call(product: &Product, bound: &BoundProgram, atom: &str) -> Result<Call, String> {
    let extents = product.extents(&bound.tensors).ok_or("its tensors are no matrices, or batches of them")?;
    let find = |operand: &Operand| bound.tensors.iter().find(|t| t.name == operand.tensor).ok_or("a tensor is missing");
    let (a, b, c) = (find(&product.a)?, find(&product.b)?, find(&product.c)?);
    let those = |which: &dyn Fn(&TensorPlan) -> bool| {
        [a, b, c].into_iter().filter(|t| which(t)).map(|t| format!("`{}`", t.name)).collect::<Vec<_>>().join(", ")
    };
    // A dimension of several modes has no leading dimension.
    let (modes, pointers) = (those(&|t| !t.is_plain()), those(&|t| t.pointers));
    if !modes.is_empty() {
        return Err(format!("it takes no dimensions of several modes: {modes}"));
    }
    if !pointers.is_empty() {
        return Err(format!("the matrices of a batch have addresses of their own: {pointers}"));
    }
    let step = |plan: &TensorPlan, operand: &Operand| operand.dims.map(|d| plan.strides[d]);
    let (sa, sb, sc) = (step(a, &product.a), step(b, &product.b), step(c, &product.c));
    // cuBLAS thinks in columns: a result with contiguous rows is the transpose of what it computes.
    let turned = sc[1] == 1 && (extents.n > 1 || sc[0] != 1);
    let flip = |s: [u64; 2]| if turned { [s[1], s[0]] } else { s };
    let (rows, cols) = if turned { (extents.n, extents.m) } else { (extents.m, extents.n) };
    let (left, right) =
        if turned { ((b, sb, &product.b), (a, sa, &product.a)) } else { ((a, sa, &product.a), (b, sb, &product.b)) };
    let depth = extents.k;
    let result = matrix(c, &product.c, flip(sc), rows, cols)?;
    let compute = match (product.acc, a.elem) {
        (AccElem::F16, _) => Compute::F16,
        (AccElem::F32, Elem::TF32) => Compute::Tf32,
        // Products of f32 tensors on tensor cores are tf32 products.
        (AccElem::F32, Elem::F32) if !atom.is_empty() && atom != "fma" => Compute::Tf32,
        (AccElem::F32, _) => Compute::F32,
        (AccElem::F64, _) => Compute::F64,
        (AccElem::I32, _) => Compute::I32,
    };
    let product_call = cuda::Product {
        rows,
        cols,
        depth,
        a: matrix(left.0, left.2, flip(left.1), rows, depth)?,
        b: matrix(right.0, right.2, flip(right.1), depth, cols)?,
        d: result,
        batches: extents.batches,
        compute,
        align: alignment(&[(a, &product.a), (b, &product.b), (c, &product.c)]),
    };
    let (alpha, beta) = match &product.epilogue {
        Some((alpha, beta)) => (alpha.value(&bound.values), beta.as_ref().map_or(0.0, |b| b.value(&bound.values))),
        None => (1.0, 0.0),
    };
    let tensors = [&left.2.tensor, &right.2.tensor, &product.c.tensor].map(Clone::clone);
    if result.transposed {
        return Err("no dimension of the result is contiguous".to_owned());
    }
    Ok(Call { product: product_call, tensors, scalars: (alpha, beta) })
}

/// Bytes that the addresses of all matrices are multiples of.
fn alignment(operands: &[(&TensorPlan, &Operand)]) -> u32 {
    // Sets of tensors begin at multiples of 1024 bytes.
    operands.iter().fold(256, |align: u32, (plan, operand)| {
        let apart = plan.elem.bytes_of(batch_stride(plan, operand));
        align.min(1 << apart.trailing_zeros().min(8))
    })
}

/// Elements from one matrix of a batch to the next.
fn batch_stride(plan: &TensorPlan, operand: &Operand) -> u64 {
    operand.batch.as_ref().map_or(0, |batch| plan.strides[batch.dim])
}

/// A tensor with these steps from row to row and column to column.
fn matrix(plan: &TensorPlan, operand: &Operand, steps: [u64; 2], rows: u64, cols: u64) -> Result<Matrix, &'static str> {
    let strided = "no dimension of a matrix is contiguous, or its rows overlap";
    let ty = MatType::of(plan.elem).ok_or("it has no products of this type")?;
    let apart = batch_stride(plan, operand);
    // A dimension of one element has no step that matters.
    if steps[0] == 1 || rows == 1 {
        let ld = if cols == 1 { rows } else { steps[1] };
        return if ld >= rows { Ok(Matrix { ty, transposed: false, ld, apart }) } else { Err(strided) };
    }
    let ld = if rows == 1 { cols } else { steps[0] };
    if steps[1] == 1 && ld >= cols { Ok(Matrix { ty, transposed: true, ld, apart }) } else { Err(strided) }
}

/// The calls without repetition.
pub(super) fn distinct<'c>(calls: impl Iterator<Item = &'c Call>) -> Vec<Call> {
    let mut all: Vec<Call> = Vec::new();
    for call in calls {
        if !all.contains(call) {
            all.push(call.clone());
        }
    }
    all
}

/// Bytes that a tensor moves: every element once per direction that the arguments need.
pub(super) fn traffic(t: &TensorPlan, call: Option<&Call>) -> f64 {
    let reads = match call {
        // The result is read only if beta is not zero.
        Some(call) if call.tensors[2] == t.name => call.scalars.1 != 0.0,
        _ => t.access.reads(),
    };
    // Elements that share an address are moved once.
    t.elem.size().traffic(t.count().min(t.span) as f64) * f64::from(u8::from(reads) + u8::from(t.access.writes()))
}

/// Elements in which results differ that are looked at by themselves.
const JUDGED: u64 = 4096;

/// Compares two results on whole numbers. Ours must be exact. Those of the library need not be, because it may round
/// partial sums of a split reduction to the result type. Of the elements that differ, [`JUDGED`] are checked, with
/// `exact` as the exact values.
pub(super) fn compare(
    plan: &TensorPlan,
    theirs: &[u8],
    ours: &[u8],
    exact: Option<impl Fn(&[u64]) -> f64>,
    check: &mut Check,
) {
    check.against_cublas += plan.count();
    if theirs == ours {
        return;
    }
    let mut different = 0;
    let differ = |offset| {
        let (want, got) = (get(plan.elem, theirs, offset), get(plan.elem, ours, offset));
        // Zeros of either sign are equal; nothing is equal to what is not a number.
        (want != got).then_some((want, got))
    };
    plan.for_each(|_, offset| different += u64::from(differ(offset).is_some()));
    let each = different.div_ceil(JUDGED).max(1);
    let (mut seen, mut wrong) = (0, 0);
    plan.for_each(|index, offset| {
        let Some((want, got)) = differ(offset) else { return };
        seen += 1;
        if (seen - 1) % each != 0 || exact.as_ref().is_some_and(|exact| exact(index) == got) {
            return;
        }
        wrong += 1;
        if check.shown.len() < 5 {
            check.shown.push(format!("{}{index:?} = {got}, {want} with cuBLAS", plan.name));
        }
    });
    *(if wrong > 0 { &mut check.wrong } else { &mut check.cublas_off }) += different;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use crate::contract::number::Args;
    use crate::measure::bench::product::Batch;
    use pretty_assertions::assert_eq;

    /// A, B and C of 3 x 5, 5 x 7 and 3 x 7 in these orders (`row` or not), with leading dimensions 100, 200 and 300.
    fn bound(orders: [bool; 3], elem: Elem) -> BoundProgram {
        let plan = |name: &str, shape: [u64; 2], ld: u64, row: bool| TensorPlan {
            reads_gaps: false,
            name: name.to_owned(),
            elem,
            access: if name == "C" { Access::ReadWrite } else { Access::Read },
            shape: shape.to_vec(),
            strides: if row { vec![ld, 1] } else { vec![1, ld] },
            modes: vec![1, 1],
            span: 1000,
            pointers: false,
        };
        let tensors = vec![
            plan("A", [3, 5], 100, orders[0]),
            plan("B", [5, 7], 200, orders[1]),
            plan("C", [3, 7], 300, orders[2]),
        ];
        BoundProgram { launches: Vec::new(), values: Args::new(), tensors }
    }

    fn product() -> Product {
        let operand = |tensor: &str| Operand { tensor: tensor.to_owned(), dims: [0, 1], batch: None };
        Product { a: operand("A"), b: operand("B"), c: operand("C"), acc: AccElem::F32, epilogue: None }
    }

    /// Computes what cuBLAS documents: columns, operations, leading dimensions.
    fn addresses(call: &Call, i: u64, j: u64, k: u64) -> [u64; 3] {
        let at = |m: &Matrix, r: u64, c: u64| if m.transposed { c + r * m.ld } else { r + c * m.ld };
        let p = &call.product;
        [at(&p.a, i, k), at(&p.b, k, j), at(&p.d, i, j)]
    }

    #[test]
    fn every_order_addresses_the_elements_of_the_product() {
        for bits in 0..8u32 {
            let orders = [bits & 1 == 0, bits & 2 == 0, bits & 4 == 0];
            let bound = bound(orders, Elem::F16);
            let call = call(&product(), &bound, "m16n8k16").expect("cuBLAS has it");
            let element = |t: usize, r: u64, c: u64| r * bound.tensors[t].strides[0] + c * bound.tensors[t].strides[1];
            for (i, j, k) in [(0, 0, 0), (2, 6, 4), (1, 5, 3)] {
                let ours = [element(0, i, k), element(1, k, j), element(2, i, j)];
                let theirs = if orders[2] {
                    let [left, right, result] = addresses(&call, j, i, k);
                    assert_eq!(call.tensors, ["B", "A", "C"]);
                    [right, left, result]
                } else {
                    assert_eq!(call.tensors, ["A", "B", "C"]);
                    addresses(&call, i, j, k)
                };
                assert_eq!(ours, theirs, "{orders:?}");
            }
        }
    }

    #[test]
    fn dimensions_of_several_modes_are_said_to_be_no_operand() {
        let mut bound = bound([true; 3], Elem::F16);
        // 3 rows as one image of 3 pixels, channels first.
        let c = &mut bound.tensors[2];
        (c.shape, c.strides, c.modes) = (vec![1, 3, 7], vec![21, 1, 3], vec![2, 1]);
        assert!(call(&product(), &bound, "m16n8k16").is_err_and(|why| why.ends_with("modes: `C`")));
    }

    #[test]
    fn batches_by_stride_are_one_call() {
        let mut bound = bound([true, false, true], Elem::F16);
        for (tensor, stride) in bound.tensors.iter_mut().zip([0, 1200, 1000]) {
            tensor.shape.insert(0, 6);
            tensor.strides.insert(0, stride);
            tensor.modes.insert(0, 1);
        }
        let operand = |tensor: &str| Operand {
            tensor: tensor.to_owned(),
            dims: [1, 2],
            batch: Some(Batch { dim: 0, axis: "z".to_owned() }),
        };
        let batched = Product { a: operand("A"), b: operand("B"), c: operand("C"), ..product() };
        let call = call(&batched, &bound, "m16n8k16").expect("cuBLAS has it");
        let p = call.product;
        assert_eq!((p.batches, p.a.apart, p.b.apart, p.d.apart), (6, 1200, 0, 1000), "turned: B is on the left");
        // 1000 elements of 2 bytes.
        assert_eq!(p.align, 16);
        bound.tensors[1].pointers = true;
        assert!(super::call(&batched, &bound, "m16n8k16").is_err_and(|why| why.ends_with("of their own: `B`")));
    }

    #[test]
    fn types_and_atoms_choose_the_arithmetic() {
        let compute = |elem, acc, atom| {
            call(&Product { acc, ..product() }, &bound([true; 3], elem), atom).map(|c| c.product.compute)
        };
        assert_eq!(compute(Elem::F32, AccElem::F32, "fma"), Ok(Compute::F32));
        assert_eq!(compute(Elem::F32, AccElem::F32, "m16n8k8"), Ok(Compute::Tf32));
        assert_eq!(compute(Elem::F16, AccElem::F16, "m16n8k16"), Ok(Compute::F16));
        assert_eq!(compute(Elem::F64, AccElem::F64, "fma"), Ok(Compute::F64));
        assert!(compute(Elem::U8, AccElem::I32, "fma").is_err_and(|why| why.contains("this type")));
    }

    #[test]
    fn results_that_differ_are_counted() {
        let plan = TensorPlan { strides: vec![7, 1], span: 21, ..bound([true; 3], Elem::F32).tensors.remove(2) };
        let ours: Vec<u8> = (0..21).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let mut theirs = ours.clone();
        let mut check = Check::default();
        compare(&plan, &theirs, &ours, None::<fn(&[u64]) -> f64>, &mut check);
        assert_eq!((check.against_cublas, check.wrong), (21, 0));
        // A zero of the other sign is equal.
        theirs[3] = 0x80;
        compare(&plan, &theirs, &ours, None::<fn(&[u64]) -> f64>, &mut check);
        assert_eq!(check.wrong, 0);
        theirs[16] = 1;
        compare(&plan, &theirs, &ours, None::<fn(&[u64]) -> f64>, &mut check);
        assert_eq!((check.wrong, check.shown.len()), (1, 1));
        // With a reference, the wrong side is known.
        let mut check = Check::default();
        compare(&plan, &theirs, &ours, Some(|index: &[u64]| (7 * index[0] + index[1]) as f64), &mut check);
        assert_eq!((check.wrong, check.cublas_off), (0, 1));
        compare(&plan, &ours, &theirs, Some(|index: &[u64]| (7 * index[0] + index[1]) as f64), &mut check);
        assert_eq!((check.wrong, check.cublas_off), (1, 1));
    }
}
