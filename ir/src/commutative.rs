//! Whether two tuples that a program combines come to the same bits, whichever is the first.
//!
//! Lanes of a warp that exchange what they have then need not tell who is first. `s1 + s2` and `max(m1, m2)` are symmetric. A sum of products is not: the assembler may
//! join one of the products and the addition to an `fma`, so that the other is rounded and the first is not.

use crate::combine::{Combine, local};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::ops::Op;

/// Maximum number of compared expressions. Names that are sums of names would be visited exponentially often.
const STEPS: u32 = 10_000;

impl Combine {
    /// Whether the results are the same bits when the first tuple and the second change places.
    pub fn is_symmetric(&self, k: &Kernel) -> bool {
        let mut left = STEPS;
        !self.operation.keeps_extents() && self.results.iter().all(|&e| self.mirrors(k, (e, e), &mut left))
    }

    /// Whether `a`, with the names of the first tuple and the second exchanged, is `b`; not known after as many comparisons as are `left`.
    fn mirrors(&self, k: &Kernel, (a, b): (Expr, Expr), left: &mut u32) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match (&k.exprs[a], &k.exprs[b]) {
            (&ExprData::Int(x), &ExprData::Int(y)) => x == y,
            (&ExprData::Float(x), &ExprData::Float(y)) => x == y,
            (&ExprData::Ref(v), &ExprData::Ref(w)) => match (self.local(k, v), self.local(k, w)) {
                (Some(x), Some(y)) => self.mirrors(k, (x, y), left),
                _ => self.partner(v) == w,
            },
            (ExprData::Op { op, args: xs }, ExprData::Op { op: other, args: ys }) if op == other => {
                let sums = matches!(op, Op::Add | Op::Sub);
                if xs.len() != ys.len() || sums && xs.iter().any(|&x| self.has_product(k, x, left)) {
                    return false;
                }
                xs.iter().zip(ys).all(|(&x, &y)| self.mirrors(k, (x, y), left))
                    || match (&xs[..], &ys[..]) {
                        (&[x1, x2], &[y1, y2]) => {
                            commutes(*op) && self.mirrors(k, (x1, y2), left) && self.mirrors(k, (x2, y1), left)
                        }
                        _ => false,
                    }
            }
            (&ExprData::Cast { elem: x, arg: a }, &ExprData::Cast { elem: y, arg: b }) => {
                x == y && self.mirrors(k, (a, b), left)
            }
            _ => false,
        }
    }

    /// The definition of a name inside the combination.
    fn local(&self, k: &Kernel, v: Value) -> Option<Expr> {
        matches!(k.values[v].def, ValueDef::Local(_)).then(|| local(k, v))
    }

    /// The same component of the other tuple; another name is its own.
    fn partner(&self, v: Value) -> Value {
        let pairs = || self.first.iter().zip(&self.second);
        pairs().find_map(|(&a, &b)| (v == a).then_some(b).or((v == b).then_some(a))).unwrap_or(v)
    }

    /// Whether `e` contains a product, also below a sign or a conversion. Conservatively true after `left` steps.
    fn has_product(&self, k: &Kernel, e: Expr, left: &mut u32) -> bool {
        let Some(rest) = left.checked_sub(1) else { return true };
        *left = rest;
        match k.exprs[e] {
            ExprData::Op { op: Op::Mul, .. } => true,
            ExprData::Ref(v) => self.local(k, v).is_some_and(|init| self.has_product(k, init, left)),
            _ => k.children(e).into_iter().any(|child| self.has_product(k, child, left)),
        }
    }
}

/// Whether an operator gives the same bits for its operands in either order.
fn commutes(op: Op) -> bool {
    use Op::*;
    matches!(op, Add | Mul | Min | Max | BitAnd | BitOr | BitXor | And | Or | Eq | Ne)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symmetric(names: &str, args: &str, body: &str) -> bool {
        let (first, second) = (names.replace('?', "1"), names.replace('?', "2"));
        let source = format!(
            "kernel t(X: gmem f32[128, 32], Y: gmem f32[128, 1]) grid (i: 1) schedule {{ threads 128 }} {{
                var x = reg f32[128, 32]
                copy X -> x
                let s = reduce ({args}) along 1 with ({first}), ({second}) {{ {body} }}
                copy s.0 -> Y
            }}"
        );
        let module = crate::parser::parse(&source, &mut crate::diag::Sink::new()).expect("it parses");
        let k = &module.kernels[0];
        let mut found = None;
        for e in k.exprs.keys() {
            if let ExprData::Combine(combine) = &k.exprs[e] {
                found = Some(combine.is_symmetric(k));
            }
        }
        found.expect("tuples are combined")
    }

    #[test]
    fn sums_and_extremes_are_symmetric() {
        assert!(symmetric("a?, b?", "x, x", "give a1 + a2, max(b2, b1)"));
        assert!(symmetric("a?, b?", "x, x", "let m = max(a1, a2) give m, b1 + b2 + m"));
        assert!(symmetric("a?, b?", "x, x", "give a1 * a2, min(b1, b2) * 2.0"));
    }

    #[test]
    fn what_asks_who_is_first_is_not() {
        assert!(!symmetric("a?, b?", "x, x", "give a1 + a2, b1"));
        assert!(!symmetric("a?, b?", "x, x", "give a1 - a2, b1 + b2"));
        assert!(!symmetric("a?, b?", "x, x", "give a1 + a2, a1 + b2"));
        assert!(!symmetric("a?, b?", "x, x", "give a1 + a2, select(a1 < a2, b1, b2)"));
        assert!(!symmetric("a?, b?, c?", "x, x, x", "give a1 + a2, b1 + b2, c1 + c2 + a1"));
    }

    #[test]
    fn sums_of_products_may_be_rounded_once() {
        assert!(!symmetric("m?, l?", "x, x", "let m = max(m1, m2) give m, l1 * exp(m1 - m) + l2 * exp(m2 - m)"));
        assert!(!symmetric("a?, b?", "x, x", "let p = a1 * b1 let q = a2 * b2 give p + q, b1 + b2"));
        assert!(!symmetric("a?, b?", "x, x", "give -(a1 * b1) - (a2 * b2), b1 + b2"));
        assert!(!symmetric("a?, b?", "x, x", "give -(a1 * b1) + -(a2 * b2), b1 + b2"));
    }

    #[test]
    fn names_of_names_end() {
        let doubled: String = (0..16).map(|i| format!("let n{} = n{i} + n{i} ", i + 1)).collect();
        assert!(!symmetric("a?", "x", &format!("let n0 = a1 + a2 {doubled} give n16")));
    }
}
