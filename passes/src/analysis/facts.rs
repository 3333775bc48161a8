//! Divisibility: the largest power of two known to divide an index expression.
//!
//! Facts come from the preconditions (`where K % 8 == 0`), literals, loop starts and steps, and the arithmetic between.

use crate::rewrite::same_expr;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{OrderRef, Strides};

/// Divisors are tracked up to this power of two.
const MAX: u64 = 1 << 20;

/// What the preconditions say, and where loop variables come from.
pub struct Facts {
    requires: Vec<(Value, u64)>,
    /// The same of expressions that are no plain value.
    of_exprs: Vec<(Expr, u64)>,
    loops: Vec<(Value, Expr, Expr)>,
    lets: Vec<(Value, Expr)>,
}

fn pow2_part(x: u64) -> u64 {
    if x == 0 { MAX } else { (1 << x.trailing_zeros()).min(MAX) }
}

impl Facts {
    /// Collects the facts of a kernel.
    pub fn new(k: &Kernel) -> Facts {
        let mut facts = Facts { requires: Vec::new(), of_exprs: Vec::new(), loops: Vec::new(), lets: Vec::new() };
        for &e in &k.requires {
            facts.collect(k, e);
        }
        let mut loops = Vec::new();
        let mut lets = Vec::new();
        k.walk(k.body, &mut |k, _, s: Stmt| match &k.stmts[s] {
            StmtData::For { var, start, step, .. } => loops.push((*var, *start, *step)),
            StmtData::Let { value, init } => lets.push((*value, *init)),
            _ => {}
        });
        Facts { loops, lets, ..facts }
    }

    /// Adds what a precondition says: conjunctions of `x % c == 0` and `x == c`.
    fn collect(&mut self, k: &Kernel, e: Expr) {
        let ExprData::Op { op, args } = &k.exprs[e] else { return };
        let divisor = |e: Expr| k.as_int(e).and_then(|c| u64::try_from(c).ok());
        match op {
            Op::And => args.iter().for_each(|&e| self.collect(k, e)),
            Op::Eq => match (&k.exprs[args[0]], divisor(args[1])) {
                (ExprData::Op { op: Op::Rem, args: rem }, Some(0)) => {
                    let Some(c) = divisor(rem[1]) else { return };
                    match k.exprs[rem[0]] {
                        ExprData::Ref(v) => self.requires.push((v, c)),
                        _ => self.of_exprs.push((rem[0], c)),
                    }
                }
                (&ExprData::Ref(v), Some(c)) => self.requires.push((v, c)),
                _ => {}
            },
            _ => {}
        }
    }

    /// The largest power of two known to divide a value.
    pub fn divisor_of_value(&self, k: &Kernel, v: Value) -> u64 {
        if let Some(d) = self.requires.iter().filter(|(w, _)| *w == v).map(|&(_, d)| pow2_part(d)).max() {
            return d;
        }
        match &k.values[v].def {
            ValueDef::Loop => match self.loops.iter().find(|(w, ..)| *w == v) {
                Some(&(_, start, step)) => self.divisor(k, start).min(self.divisor(k, step)),
                None => 1,
            },
            ValueDef::Let => match self.lets.iter().find(|(w, _)| *w == v) {
                Some(&(_, init)) => self.divisor(k, init),
                None => 1,
            },
            _ => 1,
        }
    }

    /// The largest power of two known to divide an index expression.
    pub fn divisor(&self, k: &Kernel, e: Expr) -> u64 {
        match &k.exprs[e] {
            ExprData::Int(x) => pow2_part(x.unsigned_abs()),
            ExprData::Ref(v) => self.divisor_of_value(k, *v),
            ExprData::Op { op, args } => self.promised(k, e).max(match op {
                Op::Add | Op::Sub | Op::Min | Op::Max => self.divisor(k, args[0]).min(self.divisor(k, args[1])),
                Op::Mul => self.divisor(k, args[0]).saturating_mul(self.divisor(k, args[1])).min(MAX),
                Op::Neg => self.divisor(k, args[0]),
                Op::Rem => self.divisor(k, args[0]).min(self.divisor(k, args[1])),
                _ => 1,
            }),
            _ => 1,
        }
    }

    /// What a precondition says of just this expression.
    fn promised(&self, k: &Kernel, e: Expr) -> u64 {
        let same = self.of_exprs.iter().filter(|&&(f, _)| same_expr(k, e, f));
        same.map(|&(_, d)| pow2_part(d)).max().unwrap_or(1)
    }

    /// The largest power of two known to divide the extent of dimension `dim` of a tensor.
    pub fn extent_divisor(&self, k: &Kernel, tensor: Value, dim: usize) -> u64 {
        match k.tensor_ty(tensor) {
            Some(t) => t.shape.get(dim).map_or(1, |&e| self.divisor(k, e)),
            None => 1,
        }
    }
}

/// The stride of a tensor's dimension, in elements.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Stride {
    /// Known at compile time.
    Const(i64),
    /// A run-time stride.
    Value(Value),
}

/// The stride of dimension `dim`; `None` if its order is still a parameter.
pub fn stride(k: &Kernel, tensor: Value, dim: usize) -> Option<Stride> {
    let t = k.tensor_ty(tensor)?;
    match &t.strides {
        Strides::Explicit(list) => match &k.exprs[*list.get(dim)?] {
            ExprData::Int(x) => Some(Stride::Const(*x)),
            ExprData::Ref(v) => Some(Stride::Value(*v)),
            _ => None,
        },
        Strides::Ordered(OrderRef::Known(order)) => {
            let contiguous = order.contiguous_dim(t.shape.len());
            if dim == contiguous {
                return Some(Stride::Const(1));
            }
            let index = if dim > contiguous { dim - 1 } else { dim };
            t.ld.get(index).map(|&v| Stride::Value(v))
        }
        Strides::Ordered(OrderRef::Param(_)) => None,
    }
}

/// The dimension of a tensor with stride 1, if there is one; the last such.
pub fn contiguous_dim(k: &Kernel, tensor: Value) -> Option<usize> {
    let rank = k.tensor_ty(tensor)?.shape.len();
    (0..rank).rev().find(|&d| stride(k, tensor, d) == Some(Stride::Const(1)))
}
