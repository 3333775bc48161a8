//! Reads off a kernel what it multiplies and stores.

use super::form::{AccElem, Batch, Coefficient, Operand, Product};
use super::linear::Linear;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim, resolve_view};

/// Copies of copies are followed this far.
pub(super) const MAX_HOPS: usize = 16;

/// The product of a kernel, for any slice of the reduction that a block computes.
pub(super) fn of_slices(kernel: &Kernel) -> Option<Product> {
    let finder = Finder::new(kernel);
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

/// The products and stores of a kernel, and the sources of their operands.
pub(super) struct Finder<'k> {
    kernel: &'k Kernel,
    /// Accumulator and factors.
    pub(super) products: Vec<(Value, Expr, Expr)>,
    /// The values stored to global memory, with their destinations.
    pub(super) stores: Vec<(Expr, Expr)>,
    pub(super) fails: bool,
}

impl<'k> Finder<'k> {
    /// Goes through a kernel.
    pub(super) fn new(kernel: &'k Kernel) -> Finder<'k> {
        let mut finder = Finder { kernel, products: Vec::new(), stores: Vec::new(), fails: false };
        kernel.walk(kernel.body, &mut |_, _, stmt| finder.stmt(&kernel.stmts[stmt]));
        finder
    }

    fn stmt(&mut self, stmt: &StmtData) {
        match stmt {
            StmtData::Assign { dst, src } => {
                if let ExprData::Mma(mma) = self.kernel.exprs[*src] {
                    self.fails |= !matches!(self.kernel.exprs[mma.c], ExprData::Ref(v) if v == *dst);
                    self.products.push((*dst, mma.a, mma.b));
                }
            }
            StmtData::Copy { dst, src, attrs } => {
                let global = resolve_view(self.kernel, *dst).is_some_and(|v| v.space(self.kernel).has_bounds());
                if global {
                    self.fails |= attrs.reduce.is_some();
                    self.stores.push((*src, *dst));
                }
            }
            _ => {}
        }
    }

    /// The tensor that the elements of `e` come from, unchanged.
    pub(super) fn source(&self, e: Expr, hops: usize) -> Option<Operand> {
        let k = self.kernel;
        let view = resolve_view(k, e).filter(|view| !view.is_gathered())?;
        let &[rows, cols] = view.base_dims().as_slice() else { return None };
        if view.space(k).has_bounds() {
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
                        let &[into_rows, into_cols] = into.base_dims().as_slice() else { return None };
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

    /// The batch index of a matrix window: none, or the index of a grid axis. `None`: something else.
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
    pub(super) fn starts_at_zero(&self, acc: Value, term: &dyn Fn(Expr) -> bool) -> bool {
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

    /// The destination of the result, and the scaling on the way.
    #[expect(clippy::type_complexity, reason = "the two coefficients of a BLAS epilogue")]
    pub(super) fn stored(&self, acc: Value) -> Option<(Operand, Option<(Coefficient, Option<Coefficient>)>)> {
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

    /// The whole contents of a register tile or buffer written by exactly one statement. Values pass through such
    /// places to be exchanged between threads.
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
        let global = |e: Expr| resolve_view(k, e).is_some_and(|view| view.space(k).has_bounds());
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
        let same = view.space(k).has_bounds() && self.source(e, 1).as_ref() == Some(out);
        same.then(|| Linear { out: Some(Coefficient::number(1.0)), ..Linear::default() })
    }
}
