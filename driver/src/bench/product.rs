//! Which kernels are a matrix product, and of what: read off the program as it was written.
//!
//! A kernel is a product if all its `mma` accumulate, from zero, one tensor times another into one register tile, and every
//! store to global memory goes to one tensor. If what is stored is `alpha * acc + beta * C` the whole kernel is what a BLAS
//! library computes; another epilogue is a fused one, and the library is measured on the bare product.

mod split;

use crate::bind::TensorPlan;
use crate::number::Args;
use serde::{Deserialize, Serialize};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef, Space};
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

/// Copies of copies are followed this far.
const MAX_HOPS: usize = 16;

/// A tensor seen as a matrix, or as a batch of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operand {
    /// Parameter name.
    pub tensor: String,
    /// Which of its dimensions are the rows and the columns.
    pub dims: [usize; 2],
    /// What counts the matrices of a batch; without it there is one for all.
    #[serde(default)]
    pub batch: Option<Batch>,
}

/// A dimension of a tensor that counts matrices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// The dimension.
    pub dim: usize,
    /// The grid axis that is its index.
    pub axis: String,
}

/// A number times the product of run-time scalars.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Coefficient {
    /// The number.
    pub factor: f64,
    /// The scalars, by parameter name.
    pub scalars: Vec<String>,
}

impl Coefficient {
    fn number(factor: f64) -> Coefficient {
        Coefficient { factor, scalars: Vec::new() }
    }

    fn times(&self, other: &Coefficient) -> Coefficient {
        let scalars = self.scalars.iter().chain(&other.scalars).cloned().collect();
        Coefficient { factor: self.factor * other.factor, scalars }
    }

    /// Its value with these scalars.
    pub fn value(&self, args: &Args) -> f64 {
        self.scalars.iter().fold(self.factor, |x, name| x * args.get(name).map_or(f64::NAN, |v| v.to_f64()))
    }
}

/// A kernel that is a matrix product.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Product {
    /// M x K.
    pub a: Operand,
    /// K x N.
    pub b: Operand,
    /// M x N, the result.
    pub c: Operand,
    /// Accumulation.
    pub acc: AccElem,
    /// `alpha` and `beta`; `None`: the epilogue is something else.
    pub epilogue: Option<(Coefficient, Option<Coefficient>)>,
}

/// The type of the accumulator.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of the element types")]
pub enum AccElem {
    F16,
    F32,
    F64,
    I32,
}

/// The extents of a product with tensors of known size.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Extents {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
    /// Products.
    pub batches: u64,
}

impl Extents {
    /// Multiply-adds.
    pub fn products(&self) -> f64 {
        self.m as f64 * self.n as f64 * self.k as f64 * self.batches as f64
    }
}

impl Product {
    /// The product that kernels (compile-time parameters bound) compute, launched one after the other.
    pub fn of_program(kernels: &[&Kernel]) -> Option<Product> {
        let copies: Vec<Copied> = kernels.iter().filter_map(|k| Copied::by(k)).collect();
        let others: Vec<&Kernel> = kernels.iter().filter(|k| Copied::by(k).is_none()).copied().collect();
        let mut product = match *others {
            [one] => Product::of(one),
            [partial, reduce] => split::product(partial, reduce),
            _ => None,
        }?;
        for operand in [&mut product.a, &mut product.b] {
            if let Some(copy) = copies.iter().find(|c| c.to == operand.tensor) {
                operand.tensor.clone_from(&copy.from);
            }
        }
        Some(product)
    }

    /// The product that `kernel` (compile-time parameters bound) computes.
    pub fn of(kernel: &Kernel) -> Option<Product> {
        if split::sliced_by(kernel).is_some() { None } else { Product::of_slices(kernel) }
    }

    /// The product, whatever part of the reduction a block goes through.
    fn of_slices(kernel: &Kernel) -> Option<Product> {
        let mut finder = Finder { kernel, products: Vec::new(), stores: Vec::new(), fails: false };
        kernel.walk(kernel.body, &mut |_, _, stmt| finder.stmt(&kernel.stmts[stmt]));
        if finder.fails {
            return None;
        }
        let &(acc, a, b) = finder.products.first()?;
        let (first_a, first_b) = (finder.source(a, MAX_HOPS)?, finder.source(b, MAX_HOPS)?);
        for &(other, a, b) in &finder.products[1..] {
            let same = other == acc
                && finder.source(a, MAX_HOPS).as_ref() == Some(&first_a)
                && finder.source(b, MAX_HOPS).as_ref() == Some(&first_b);
            if !same {
                return None;
            }
        }
        if !finder.starts_at_zero(acc, &|src| matches!(kernel.exprs[src], ExprData::Mma(_))) {
            return None;
        }
        let (c, epilogue) = finder.stored(acc)?;
        let axis = |operand: &Operand| operand.batch.as_ref().map(|b| b.axis.clone());
        if [&first_a, &first_b].into_iter().any(|factor| axis(factor).is_some() && axis(factor) != axis(&c)) {
            return None;
        }
        let ElemRef::Known(elem) = kernel.tile_ty(acc)?.elem else { return None };
        let acc = match elem {
            Elem::F16 => AccElem::F16,
            Elem::F32 => AccElem::F32,
            Elem::F64 => AccElem::F64,
            Elem::I32 => AccElem::I32,
            _ => return None,
        };
        Some(Product { a: first_a, b: first_b, c, acc, epilogue })
    }

    /// The extents, if the tensors have no further dimensions and fit each other.
    pub fn extents(&self, tensors: &[TensorPlan]) -> Option<Extents> {
        let find = |operand: &Operand| {
            let plan = tensors.iter().find(|t| t.name == operand.tensor)?;
            (plan.modes.len() == 2 + usize::from(operand.batch.is_some())).then_some(plan)
        };
        let extent = |operand: &Operand, i: usize| Some(find(operand)?.extent(operand.dims[i]));
        let batches = |operand: &Operand| match &operand.batch {
            Some(batch) => Some(find(operand)?.extent(batch.dim)),
            None => Some(1),
        };
        let (m, k, n) = (extent(&self.a, 0)?, extent(&self.a, 1)?, extent(&self.b, 1)?);
        let count = batches(&self.c)?;
        let fits = extent(&self.b, 0)? == k && extent(&self.c, 0)? == m && extent(&self.c, 1)? == n;
        let alike = [&self.a, &self.b].into_iter().all(|f| f.batch.is_none() || batches(f) == Some(count));
        (fits && alike).then_some(Extents { m, n, k, batches: count })
    }
}

/// A kernel that does nothing but copy a tensor to another one, element by element: as it lies, with rows of another length, or in another order.
struct Copied {
    from: String,
    to: String,
}

impl Copied {
    fn by(kernel: &Kernel) -> Option<Copied> {
        let mut finder = Finder { kernel, products: Vec::new(), stores: Vec::new(), fails: false };
        kernel.walk(kernel.body, &mut |_, _, stmt| finder.stmt(&kernel.stmts[stmt]));
        let ([], &[(src, dst)], false) = (finder.products.as_slice(), finder.stores.as_slice(), finder.fails) else {
            return None;
        };
        let (from, to) = (finder.source(src, MAX_HOPS)?, finder.source(dst, 1)?);
        let elem = |tensor: &str| {
            let named = |v: &&Value| kernel.values[**v].name == tensor;
            kernel.params.iter().find(named).and_then(|&v| Some(kernel.tensor_ty(v)?.elem))
        };
        let alike = (from.dims, &from.batch) == (to.dims, &to.batch) && elem(&from.tensor) == elem(&to.tensor);
        (alike && from.tensor != to.tensor).then_some(Copied { from: from.tensor, to: to.tensor })
    }
}

struct Finder<'k> {
    kernel: &'k Kernel,
    /// Accumulator and factors.
    products: Vec<(Value, Expr, Expr)>,
    /// What is stored to global memory, and where.
    stores: Vec<(Expr, Expr)>,
    fails: bool,
}

impl Finder<'_> {
    fn stmt(&mut self, stmt: &StmtData) {
        match stmt {
            StmtData::Assign { dst, src } => {
                if let ExprData::Mma(mma) = self.kernel.exprs[*src] {
                    self.fails |= !matches!(self.kernel.exprs[mma.c], ExprData::Ref(v) if v == *dst);
                    self.products.push((*dst, mma.a, mma.b));
                }
            }
            StmtData::Copy { dst, src, attrs } => {
                let global = resolve_view(self.kernel, *dst).is_some_and(|v| v.space(self.kernel) == Space::Gmem);
                if global {
                    self.fails |= attrs.reduce.is_some();
                    self.stores.push((*src, *dst));
                }
            }
            _ => {}
        }
    }

    /// The tensor that the elements of `e` come from, unchanged.
    fn source(&self, e: Expr, hops: usize) -> Option<Operand> {
        let k = self.kernel;
        let view = resolve_view(k, e)?;
        let &[rows, cols] = view.kept().as_slice() else { return None };
        if view.space(k) == Space::Gmem {
            let batch = self.batch(&view)?;
            return Some(Operand { tensor: k.values[view.base].name.clone(), dims: [rows, cols], batch });
        }
        let hops = hops.checked_sub(1)?;
        let mut found: Option<Operand> = None;
        let mut agree = true;
        k.walk(k.body, &mut |k, _, stmt| {
            let from = match &k.stmts[stmt] {
                StmtData::Copy { src, dst, .. } => {
                    let Some(into) = resolve_view(k, *dst).filter(|into| into.base == view.base) else { return };
                    (|| {
                        let &[into_rows, into_cols] = into.kept().as_slice() else { return None };
                        let from = self.source(*src, hops)?;
                        let dim = |d: usize| match d {
                            d if d == into_rows => Some(from.dims[0]),
                            d if d == into_cols => Some(from.dims[1]),
                            _ => None,
                        };
                        Some(Operand { dims: [dim(rows)?, dim(cols)?], ..from })
                    })()
                }
                StmtData::Assign { dst, .. } if *dst == view.base => None,
                _ => return,
            };
            agree &= from.is_some() && found.as_ref().is_none_or(|f| Some(f) == from.as_ref());
            found = found.take().or(from);
        });
        found.filter(|_| agree)
    }

    /// What a window of a matrix is indexed by besides: nothing, or the index of a grid axis. `None`: something else.
    #[expect(clippy::option_option, reason = "no batch, or not even none")]
    fn batch(&self, view: &ResolvedView) -> Option<Option<Batch>> {
        let k = self.kernel;
        let mut found = None;
        for (dim, range) in view.dims.iter().enumerate() {
            let ViewDim::Fixed(e) = range else { continue };
            let ExprData::Ref(v) = k.exprs[*e] else { return None };
            let axis = k.grid.iter().find(|axis| axis.index == v)?;
            if found.is_some() {
                return None;
            }
            found = Some(Batch { dim, axis: k.values[axis.index].name.clone() });
        }
        Some(found)
    }

    /// Whether the accumulator is zero before its first term, and nothing changes it but terms.
    fn starts_at_zero(&self, acc: Value, term: &dyn Fn(Expr) -> bool) -> bool {
        let k = self.kernel;
        let zero = |e: Expr| match &k.exprs[e] {
            ExprData::Int(x) => *x == 0,
            ExprData::Float(bits) => f64::from_bits(*bits) == 0.0,
            _ => false,
        };
        let mut ok = true;
        k.walk(k.body, &mut |k, _, stmt| match &k.stmts[stmt] {
            StmtData::Var { value, init } if *value == acc => ok &= init.is_some_and(zero),
            StmtData::Assign { dst, src } if *dst == acc => {
                ok &= term(*src) || zero(*src);
            }
            StmtData::Copy { dst, .. } => ok &= resolve_view(k, *dst).is_none_or(|v| v.base != acc),
            _ => {}
        });
        ok
    }

    /// Where the result goes and what becomes of it on the way.
    #[expect(clippy::type_complexity, reason = "the two coefficients of a BLAS epilogue")]
    fn stored(&self, acc: Value) -> Option<(Operand, Option<(Coefficient, Option<Coefficient>)>)> {
        let mut result: Option<Operand> = None;
        let mut best: Option<Linear> = None;
        let mut plain = true;
        for &(src, dst) in &self.stores {
            let into = self.source(dst, 1)?;
            if result.as_ref().is_some_and(|r| *r != into) {
                return None;
            }
            match self.linear(src, acc, &into) {
                Some(linear) if linear.acc.is_some() && linear.constant.is_none() => {
                    // The branch that does not read C is the same with beta = 0.
                    plain &= best.as_ref().is_none_or(|b| b.acc == linear.acc);
                    if best.as_ref().is_none_or(|b| b.out.is_none()) {
                        best = Some(linear);
                    }
                }
                _ => plain = false,
            }
            result = Some(into);
        }
        let epilogue = best.filter(|_| plain).and_then(|b| Some((b.acc?, b.out)));
        Some((result?, epilogue))
    }

    /// What the whole of a register tile or buffer holds after the one statement that writes it. Values travel through such
    /// places on their way out, to be exchanged between threads.
    fn only_source(&self, v: Value) -> Option<Expr> {
        let k = self.kernel;
        let mut sources = Vec::new();
        k.walk(k.body, &mut |k, _, stmt| match &k.stmts[stmt] {
            StmtData::Let { value, init } if *value == v => sources.push(Some(*init)),
            StmtData::Var { value, init: Some(init) } if *value == v => sources.push(Some(*init)),
            StmtData::Assign { dst, src } if *dst == v => sources.push(Some(*src)),
            StmtData::Copy { src, dst, .. } if resolve_view(k, *dst).is_some_and(|into| into.base == v) => {
                sources.push(matches!(k.exprs[*dst], ExprData::Ref(_)).then_some(*src));
            }
            _ => {}
        });
        // A `let` that names a window of global memory is not a value that was moved.
        let global = |e: Expr| resolve_view(k, e).is_some_and(|view| view.space(k) == Space::Gmem);
        match sources[..] {
            [Some(one)] if !global(one) => Some(one),
            _ => None,
        }
    }

    fn linear(&self, e: Expr, acc: Value, out: &Operand) -> Option<Linear> {
        let k = self.kernel;
        let constant = |c: Coefficient| Some(Linear { constant: Some(c), ..Linear::default() });
        match &k.exprs[e] {
            ExprData::Int(x) => return constant(Coefficient::number(*x as f64)),
            ExprData::Float(bits) => return constant(Coefficient::number(f64::from_bits(*bits))),
            ExprData::Ref(v) if *v == acc => {
                return Some(Linear { acc: Some(Coefficient::number(1.0)), ..Linear::default() });
            }
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Scalar { .. }) => {
                return constant(Coefficient { factor: 1.0, scalars: vec![k.values[*v].name.clone()] });
            }
            ExprData::Cast { arg, .. } => return self.linear(*arg, acc, out),
            ExprData::Op { op, args } => {
                let parts: Vec<Linear> = args.iter().map(|a| self.linear(*a, acc, out)).collect::<Option<_>>()?;
                return match (op, parts.as_slice()) {
                    (Op::Add, [a, b]) => a.plus(b),
                    (Op::Sub, [a, b]) => a.plus(&b.scaled(&Coefficient::number(-1.0))),
                    (Op::Neg, [a]) => Some(a.scaled(&Coefficient::number(-1.0))),
                    (Op::Mul, [a, b]) => match (a.as_constant(), b.as_constant()) {
                        (Some(c), _) => Some(b.scaled(c)),
                        (None, Some(c)) => Some(a.scaled(c)),
                        (None, None) => None,
                    },
                    _ => None,
                };
            }
            _ => {}
        }
        if let ExprData::Ref(v) = k.exprs[e]
            && let Some(src) = self.only_source(v)
        {
            return self.linear(src, acc, out);
        }
        let view = resolve_view(k, e)?;
        let same = view.space(k) == Space::Gmem && self.source(e, 1).as_ref() == Some(out);
        same.then(|| Linear { out: Some(Coefficient::number(1.0)), ..Linear::default() })
    }
}

/// `acc * accumulator + out * C + constant`.
#[derive(Clone, PartialEq, Debug, Default)]
struct Linear {
    acc: Option<Coefficient>,
    out: Option<Coefficient>,
    constant: Option<Coefficient>,
}

impl Linear {
    fn as_constant(&self) -> Option<&Coefficient> {
        if self.acc.is_none() && self.out.is_none() { self.constant.as_ref() } else { None }
    }

    fn scaled(&self, c: &Coefficient) -> Linear {
        let scale = |part: &Option<Coefficient>| part.as_ref().map(|p| p.times(c));
        Linear { acc: scale(&self.acc), out: scale(&self.out), constant: scale(&self.constant) }
    }

    /// The sum, unless the same thing is on both sides.
    fn plus(&self, other: &Linear) -> Option<Linear> {
        let one = |a: &Option<Coefficient>, b: &Option<Coefficient>| match (a, b) {
            (Some(_), Some(_)) => None,
            (a, b) => Some(a.clone().or_else(|| b.clone())),
        };
        Some(Linear {
            acc: one(&self.acc, &other.acc)?,
            out: one(&self.out, &other.out)?,
            constant: one(&self.constant, &other.constant)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, optimize};
    use pretty_assertions::assert_eq;

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

    const HEAD: &str =
        "kernel k(A: gmem f16[M, K], B: gmem f16[K, N], C: gmem f32[M, N], D: gmem f32[M, N], s: f32 = 2.0)
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
                assert_eq!(
                    operand,
                    &Operand { tensor: tensor.to_owned(), dims: [1, 2], batch: batch.clone() },
                    "{name}"
                );
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
            // Without the copy of B, it is an operand of its own.
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
        let images =
            TensorPlan { shape: vec![3, 7, 1], strides: vec![7, 1, 1], modes: vec![1, 2], ..plan("C", &[3, 7]) };
        assert_eq!(p.extents(&[plan("A", &[5, 3]), plan("B", &[5, 7]), images]), extents);
    }
}
