//! Divisibility: the largest power of two known to divide an index expression.
//!
//! Facts come from the preconditions (`where K % 8 == 0`), literals, loop starts and steps, and the arithmetic between.

use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::Op;
use crate::types::GivenStride;
use crate::typing::same_expr;

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

    /// The largest power of two `n` of which it is known that `n` elements of a tensor's dimension, from a multiple of `n` on,
    /// are in one mode: neighbours are then one stride apart, that of the innermost mode.
    pub fn block(&self, k: &Kernel, tensor: Value, dim: usize) -> u64 {
        match k.tensor_ty(tensor).and_then(|t| t.modes(dim)?.last()) {
            Some(innermost) => self.divisor(k, innermost.extent),
            None => MAX,
        }
    }
}

/// A stride of a tensor, in elements.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Stride {
    /// Known at compile time.
    Const(i64),
    /// A run-time stride.
    Value(Value),
    /// Computed from sizes and strides.
    Computed(Expr),
}

impl Stride {
    fn of(k: &Kernel, e: Expr) -> Stride {
        match &k.exprs[e] {
            ExprData::Int(x) => Stride::Const(*x),
            ExprData::Ref(v) => Stride::Value(*v),
            _ => Stride::Computed(e),
        }
    }
}

/// The strides of the modes of dimension `dim`, outermost first: mostly one, and none where each index has an address of its
/// own. `None` if the order of the tensor is still a parameter.
pub fn strides(k: &Kernel, tensor: Value, dim: usize) -> Option<Vec<Stride>> {
    Some(match k.tensor_ty(tensor)?.given_stride(dim)? {
        GivenStride::Contiguous => vec![Stride::Const(1)],
        GivenStride::Leading(v) => vec![Stride::Value(v)],
        GivenStride::Written(stride) => stride.strides().into_iter().map(|e| Stride::of(k, e)).collect(),
        GivenStride::Pointer => Vec::new(),
    })
}

/// Whether all elements along a dimension are the same one.
pub fn repeats(k: &Kernel, tensor: Value, dim: usize) -> bool {
    strides(k, tensor, dim).is_some_and(|all| !all.is_empty() && all.iter().all(|s| *s == Stride::Const(0)))
}

/// The dimension of a tensor whose neighbours are neighbours in memory (within a mode), if there is one; the last such.
pub fn contiguous_dim(k: &Kernel, tensor: Value) -> Option<usize> {
    let rank = k.tensor_ty(tensor)?.shape.len();
    (0..rank).rev().find(|&d| strides(k, tensor, d).is_some_and(|all| all.last() == Some(&Stride::Const(1))))
}
