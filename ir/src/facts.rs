//! Divisibility: the largest power of two, or the largest divisor of a number, known to divide an index expression.
//!
//! Facts come from preconditions (`where K % 8 == 0`), literals, loop starts and steps, and arithmetic.

use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::Op;
use crate::types::GivenStride;
use crate::typing::same_expr;
use std::cell::RefCell;
use std::collections::BTreeMap;

mod residues;

/// Divisors are tracked up to this power of two.
const MAX: u64 = 1 << 20;

/// Facts from the preconditions, and the ranges of loop variables.
pub struct Facts {
    requires: Vec<(Value, u64)>,
    /// The same of expressions that are no plain value.
    of_exprs: Vec<(Expr, u64)>,
    loops: Vec<(Value, Expr, Expr)>,
    lets: BTreeMap<Value, Expr>,
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of two divisors of one number, which divides that number.
fn lcm(a: u64, b: u64) -> u64 {
    a / gcd(a, b) * b
}

impl Facts {
    /// Collects the facts of a kernel.
    pub fn new(k: &Kernel) -> Facts {
        let mut facts = Facts::nothing();
        for &e in &k.requires {
            facts.collect(k, e);
        }
        let mut loops = Vec::new();
        let mut lets = BTreeMap::new();
        k.walk(k.body, &mut |k, _, s: Stmt| match &k.stmts[s] {
            StmtData::For { var, start, step, .. } => loops.push((*var, *start, *step)),
            StmtData::Let { value, init } => drop(lets.insert(*value, *init)),
            _ => {}
        });
        Facts { loops, lets, ..facts }
    }

    fn nothing() -> Facts {
        Facts { requires: Vec::new(), of_exprs: Vec::new(), loops: Vec::new(), lets: BTreeMap::new() }
    }

    /// Adds the facts of a precondition: `x % c == 0` and `x == c`, all of a conjunction, and those common to both
    /// sides of a disjunction.
    fn collect(&mut self, k: &Kernel, e: Expr) {
        let ExprData::Op { op, args } = &k.exprs[e] else { return };
        let divisor = |e: Expr| k.as_int(e).and_then(|c| u64::try_from(c).ok());
        match op {
            Op::And => args.iter().for_each(|&e| self.collect(k, e)),
            Op::Or => {
                let [one, other] = [args[0], args[1]].map(|e| {
                    let mut side = Facts::nothing();
                    side.collect(k, e);
                    side
                });
                for (v, n) in one.requires {
                    let common = gcd(n, other.common_of_value(k, v, n));
                    self.requires.push((v, common));
                }
            }
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
        self.common_of_value(k, v, MAX)
    }

    /// The largest power of two known to divide an index expression.
    pub fn divisor(&self, k: &Kernel, e: Expr) -> u64 {
        self.query(k).common(e, MAX)
    }

    /// Whether an index expression is known to be a multiple of `n`.
    pub fn is_multiple(&self, k: &Kernel, e: Expr, n: u64) -> bool {
        n > 0 && self.query(k).common(e, n) == n
    }

    /// The largest divisor of `n` known to divide a value.
    fn common_of_value(&self, k: &Kernel, v: Value, n: u64) -> u64 {
        self.query(k).common_of_value(v, n)
    }

    fn query<'f>(&'f self, k: &'f Kernel) -> FactQuery<'f> {
        FactQuery { facts: self, k, known: RefCell::default() }
    }

    /// The largest power of two `n` such that any `n` elements of a tensor's dimension from a multiple of `n` on are
    /// known to be in one mode. Consecutive elements are then one stride of the innermost mode apart.
    pub fn block(&self, k: &Kernel, tensor: Value, dim: usize) -> u64 {
        match k.tensor_ty(tensor).and_then(|t| t.modes(dim)?.last()) {
            Some(innermost) => self.divisor(k, innermost.extent),
            None => MAX,
        }
    }
}

/// The facts of a kernel, queried for one expression.
struct FactQuery<'f> {
    facts: &'f Facts,
    k: &'f Kernel,
    /// Cached results: for a name and a number, the largest divisor of that number known to divide the name.
    known: RefCell<BTreeMap<(Value, u64), u64>>,
}

impl FactQuery<'_> {
    /// The largest divisor of `n` known to divide a value.
    fn common_of_value(&self, v: Value, n: u64) -> u64 {
        let k = self.k;
        let promised = self.facts.requires.iter().filter(|(w, _)| *w == v).fold(1, |all, &(_, d)| lcm(all, gcd(d, n)));
        let own = match &k.values[v].def {
            ValueDef::Loop => match self.facts.loops.iter().find(|(w, ..)| *w == v) {
                Some(&(_, start, step)) => gcd(self.common(start, n), self.common(step, n)),
                None => 1,
            },
            ValueDef::Let => self.facts.lets.get(&v).map_or(1, |&init| self.common_of_name((v, init), n)),
            _ => 1,
        };
        lcm(promised, own)
    }

    /// The same for the definition of a name. The result is cached for each name.
    fn common_of_name(&self, (v, init): (Value, Expr), n: u64) -> u64 {
        let k = self.k;
        let known = |v: Value| self.known.borrow().get(&(v, n)).copied();
        if let Some(common) = known(v) {
            return common;
        }
        for (v, init) in k.names_below(init, |v| known(v).is_some()).into_iter().chain([(v, init)]) {
            let common = self.common(init, n);
            self.known.borrow_mut().insert((v, n), common);
        }
        known(v).unwrap_or(1)
    }

    /// The largest divisor of `n` known to divide an index expression.
    fn common(&self, e: Expr, n: u64) -> u64 {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Int(x) => gcd(x.unsigned_abs(), n),
            ExprData::Ref(v) => self.common_of_value(*v, n),
            ExprData::Op { op, args } => lcm(
                lcm(self.promised(e, n), self.whole_part(e, n)),
                match op {
                    Op::Add | Op::Sub | Op::Min | Op::Max | Op::Rem => {
                        gcd(self.common(args[0], n), self.common(args[1], n))
                    }
                    Op::Mul => {
                        let first = self.common(args[0], n);
                        first * self.common(args[1], n / first)
                    }
                    Op::Neg => self.common(args[0], n),
                    _ => 1,
                },
            ),
            _ => 1,
        }
    }

    /// The divisor of `a - (a - c) % m`, or `a - a % m`: what divides both `m` and `c`.
    fn whole_part(&self, e: Expr, n: u64) -> u64 {
        let k = self.k;
        let binary = |e: Expr, wanted: Op| match &k.exprs[e] {
            ExprData::Op { op, args } if *op == wanted => args.first().copied().zip(args.get(1).copied()),
            _ => None,
        };
        let Some((a, (b, m))) = binary(e, Op::Sub).and_then(|(a, rest)| Some((a, binary(rest, Op::Rem)?))) else {
            return 1;
        };
        let apart = match binary(b, Op::Sub) {
            _ if same_expr(k, a, b) => n,
            Some((same, c)) if same_expr(k, a, same) => self.common(c, n),
            _ => return 1,
        };
        gcd(apart, self.common(m, n))
    }

    /// The divisor that a precondition gives for exactly this expression.
    fn promised(&self, e: Expr, n: u64) -> u64 {
        let k = self.k;
        let same = self.facts.of_exprs.iter().filter(|&&(f, _)| same_expr(k, e, f));
        same.fold(1, |all, &(_, d)| lcm(all, gcd(d, n)))
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

/// The strides of the modes of dimension `dim`, outermost first: usually one, and none if each index has its own
/// address. `None` if the order of the tensor is still a parameter.
pub fn strides(k: &Kernel, tensor: Value, dim: usize) -> Option<Vec<Stride>> {
    Some(match k.tensor_ty(tensor)?.given_stride(dim)? {
        GivenStride::Contiguous => vec![Stride::Const(1)],
        GivenStride::Leading(v) => vec![Stride::Value(v)],
        GivenStride::Written(stride) => stride.strides().into_iter().map(|e| Stride::of(k, e)).collect(),
        GivenStride::Repeats => vec![Stride::Const(0)],
        GivenStride::Pointer => Vec::new(),
    })
}

/// Whether all elements along a dimension are the same one.
pub fn repeats(k: &Kernel, tensor: Value, dim: usize) -> bool {
    strides(k, tensor, dim).is_some_and(|all| !all.is_empty() && all.iter().all(|s| *s == Stride::Const(0)))
}

/// The last dimension of a tensor whose elements are contiguous in memory (within a mode), if any.
pub fn contiguous_dim(k: &Kernel, tensor: Value) -> Option<usize> {
    let rank = k.tensor_ty(tensor)?.shape.len();
    (0..rank).rev().find(|&d| strides(k, tensor, d).is_some_and(|all| all.last() == Some(&Stride::Const(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the facts against all values that the names can have.
    #[test]
    fn divisors_are_those_of_all_values() {
        let source = "kernel t(A: gmem f32[M, N], B: gmem f32[O]) where M % 24 == 0, N == 20, O == 96 || O % 64 == 0 grid (b: 4) {
            let t = M * N
            for j in 40..M step 20 { let a = min(j + 60, t) let c = j * b let d = ceildiv(b, 3) * 176 let e = j % 15
                let f = t - 1 - (t - 1) % 32 let g = b - (b - 12) % 32 let h = b - (j - 12) % 32 let o = O }
        }";
        let module = crate::parser::parse(source, &mut crate::diag::Sink::new()).expect("it parses");
        let k = &module.kernels[0];
        let facts = Facts::new(k);
        let found: BTreeMap<&str, Expr> =
            facts.lets.iter().map(|(&v, &init)| (k.values[v].name.as_str(), init)).collect();
        let multiple = |name: &str, n: u64| facts.is_multiple(k, found[name], n);
        assert!(multiple("t", 480) && multiple("t", 96) && !multiple("t", 960));
        assert!(multiple("a", 20) && multiple("a", 10) && !multiple("a", 40));
        assert!(multiple("c", 20) && !multiple("c", 40));
        assert!(multiple("d", 176) && multiple("d", 16) && !multiple("d", 352));
        assert!(multiple("e", 5) && !multiple("e", 15) && !multiple("e", 0));
        assert!(multiple("f", 32) && !multiple("f", 64) && multiple("g", 4) && !multiple("g", 8) && !multiple("h", 2));
        assert!(multiple("o", 32) && !multiple("o", 64));
        assert_eq!(["t", "a", "c", "d", "e"].map(|n| facts.divisor(k, found[n])), [32, 4, 4, 16, 1]);
    }
}
