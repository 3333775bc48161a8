//! Residues of index expressions modulo a power of two.

use super::{FactQuery, Facts, gcd};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::ops::Op;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// `(r, m)`: congruent to `r` modulo `m`.
type Residue = (u64, u64);

impl Facts {
    /// The residue of an index expression: `(r, m)` with `m` a divisor of `n`, if it is known to be congruent to `r`
    /// modulo `m`. Values accepted by `supposed` are taken as multiples of `n`.
    pub fn residue(&self, k: &Kernel, e: Expr, n: u64, supposed: &dyn Fn(Value) -> bool) -> Residue {
        Residues { asked: self.query(k), n, supposed, known: RefCell::default() }.of(e)
    }
}

/// Computes residues modulo divisors of one number.
struct Residues<'f> {
    asked: FactQuery<'f>,
    n: u64,
    supposed: &'f dyn Fn(Value) -> bool,
    /// Cached residues of names.
    known: RefCell<BTreeMap<Value, Residue>>,
}

fn by((r, m): Residue) -> Residue {
    (r % m, m)
}

/// The strongest residue that both values satisfy.
fn either((r, m): Residue, (s, o): Residue) -> Residue {
    by((r, gcd(gcd(m, o), r.abs_diff(s))))
}

impl Residues<'_> {
    fn of(&self, e: Expr) -> Residue {
        let n = self.n;
        let (r, m) = match &self.asked.k.exprs[e] {
            ExprData::Int(x) => (x.rem_euclid(n as i64) as u64, n),
            ExprData::Ref(v) => self.of_value(*v),
            ExprData::Op { op, args } => match (op, &args[..]) {
                (Op::Add | Op::Sub | Op::Mul, &[a, b]) => {
                    let ((r, m), (s, o)) = (self.of(a), self.of(b));
                    let common = gcd(m, o);
                    match op {
                        Op::Add => by((r + s, common)),
                        Op::Sub => by((r + n - s, common)),
                        // (r + i m) (s + j o)
                        _ => by((r * s, gcd(gcd(m * o, r * o), gcd(s * m, n)))),
                    }
                }
                (Op::Rem, &[a, b]) => {
                    let ((r, m), (s, o)) = (self.of(a), self.of(b));
                    by((r, gcd(m, gcd(s, o))))
                }
                (Op::Min | Op::Max, &[a, b]) | (Op::Select, &[_, a, b]) => either(self.of(a), self.of(b)),
                _ => (0, 1),
            },
            _ => (0, 1),
        };
        let divisor = gcd(self.asked.common(e, super::MAX), n);
        if divisor > m { (0, divisor) } else { (r, m) }
    }

    fn of_value(&self, v: Value) -> Residue {
        let facts = self.asked.facts;
        if (self.supposed)(v) {
            return (0, self.n);
        }
        match &self.asked.k.values[v].def {
            ValueDef::Let => facts.lets.get(&v).map_or((0, 1), |&init| self.of_name(v, init)),
            ValueDef::Loop => match facts.loops.iter().find(|(w, ..)| *w == v) {
                Some(&(_, start, step)) => {
                    let ((r, m), (s, o)) = (self.of(start), self.of(step));
                    by((r, gcd(m, gcd(s, o))))
                }
                None => (0, 1),
            },
            _ => (0, 1),
        }
    }

    /// The residue of a name's definition. The result is cached for each name.
    fn of_name(&self, v: Value, init: Expr) -> Residue {
        let known = |v: Value| self.known.borrow().get(&v).copied();
        if let Some(residue) = known(v) {
            return residue;
        }
        for (v, init) in self.asked.k.names_below(init, |v| known(v).is_some()).into_iter().chain([(v, init)]) {
            let residue = self.of(init);
            self.known.borrow_mut().insert(v, residue);
        }
        known(v).unwrap_or((0, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_are_those_of_all_values() {
        let source = "kernel t(A: gmem f32[M, N]) where M % 16 == 0 grid (b: 4) {
            for j in 3..M step 8 { let a = b * 64 + 1 let c = j - 4 let d = (M + 3) * (b * 4 + 2) let e = a * c let f = b - 1 let g = 0 - 1 let h = M + 32
                let o = N % 32 + 4 let p = min(j, 11) }
        }";
        let module = crate::parser::parse(source, &mut crate::diag::Sink::new()).expect("it parses");
        let k = &module.kernels[0];
        let facts = Facts::new(k);
        let found: BTreeMap<&str, Expr> =
            facts.lets.iter().map(|(&v, &init)| (k.values[v].name.as_str(), init)).collect();
        let residue = |name: &str| facts.residue(k, found[name], 8, &|_| false);
        assert_eq!(["a", "c", "e"].map(residue), [(1, 8), (7, 8), (7, 8)]);
        // 3 (4 b + 2) is 2 more than a multiple of 4, and b is anything.
        assert_eq!(["d", "f", "g", "h"].map(residue), [(2, 4), (0, 1), (7, 8), (0, 8)]);
        assert_eq!(facts.residue(k, found["h"], 64, &|_| false), (0, 16));
        assert_eq!(["o", "p"].map(residue), [(0, 1), (3, 8)]);
        let of_sizes = |v: Value| matches!(k.values[v].def, ValueDef::Size);
        assert_eq!(facts.residue(k, found["o"], 8, &of_sizes), (4, 8));
    }
}
