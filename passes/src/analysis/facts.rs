//! Divisibility: the largest power of two known to divide an index expression.
//!
//! Facts come from the preconditions (`where K % 8 == 0`), literals, loop starts and steps, and the arithmetic between.

use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{OrderRef, Strides};

/// Divisors are tracked up to this power of two.
const MAX: u64 = 1 << 20;

/// What the preconditions say, and where loop variables come from.
pub struct Facts {
    requires: Vec<(Value, u64)>,
    loops: Vec<(Value, Expr, Expr)>,
    lets: Vec<(Value, Expr)>,
}

fn pow2_part(x: u64) -> u64 {
    if x == 0 { MAX } else { (1 << x.trailing_zeros()).min(MAX) }
}

impl Facts {
    /// Collects the facts of a kernel.
    pub fn new(k: &Kernel) -> Facts {
        let mut requires = Vec::new();
        for &e in &k.requires {
            collect(k, e, &mut requires);
        }
        let mut loops = Vec::new();
        let mut lets = Vec::new();
        k.walk(k.body, &mut |k, _, s: Stmt| match &k.stmts[s] {
            StmtData::For { var, start, step, .. } => loops.push((*var, *start, *step)),
            StmtData::Let { value, init } => lets.push((*value, *init)),
            _ => {}
        });
        Facts { requires, loops, lets }
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
            ExprData::Op { op, args } => match op {
                Op::Add | Op::Sub | Op::Min | Op::Max => self.divisor(k, args[0]).min(self.divisor(k, args[1])),
                Op::Mul => self.divisor(k, args[0]).saturating_mul(self.divisor(k, args[1])).min(MAX),
                Op::Neg => self.divisor(k, args[0]),
                Op::Rem => self.divisor(k, args[0]).min(self.divisor(k, args[1])),
                _ => 1,
            },
            _ => 1,
        }
    }

    /// The largest power of two known to divide the extent of dimension `dim` of a tensor.
    pub fn extent_divisor(&self, k: &Kernel, tensor: Value, dim: usize) -> u64 {
        match k.tensor_ty(tensor) {
            Some(t) => t.shape.get(dim).map_or(1, |&e| self.divisor(k, e)),
            None => 1,
        }
    }
}

/// Adds what a precondition says: conjunctions of `x % c == 0` and `x == c`.
fn collect(k: &Kernel, e: Expr, out: &mut Vec<(Value, u64)>) {
    let ExprData::Op { op, args } = &k.exprs[e] else { return };
    match op {
        Op::And => {
            collect(k, args[0], out);
            collect(k, args[1], out);
        }
        Op::Eq => {
            if k.as_int(args[1]) == Some(0)
                && let ExprData::Op { op: Op::Rem, args: rem } = &k.exprs[args[0]]
                && let ExprData::Ref(v) = k.exprs[rem[0]]
                && let Some(c) = k.as_int(rem[1]).and_then(|c| u64::try_from(c).ok())
            {
                out.push((v, c));
            } else if let ExprData::Ref(v) = k.exprs[args[0]]
                && let Some(c) = k.as_int(args[1]).and_then(|c| u64::try_from(c).ok())
            {
                out.push((v, c));
            }
        }
        _ => {}
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
