//! Whether the condition of a sort orders tuples such that only equal tuples are tied.
//!
//! `a1 > a2` does, of integers with one component, and so does `a1 > a2 || a1 == a2 && b1 < b2` with two. Which of two
//! equal tuples comes first cannot be seen, so the condition may be computed in either order of the operands, and
//! inverted.

use crate::combine::{Combine, How, component, local};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::ops::Op;
use crate::types::ElemRef;
use tilec_core::numerics::cast::is_int;

/// A component by which a sort orders tuples.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The number of the component.
    pub component: usize,
    /// Whether the greater one comes first.
    pub descending: bool,
}

impl Combine {
    /// The components in the order in which the condition compares them, if it compares all of them, and all are
    /// integers. `None`: it is no sort, or the condition has another form.
    pub fn total_order(&self, k: &Kernel) -> Option<Vec<Key>> {
        let is_sort = matches!(self.operation, How::Sort { .. });
        let integer = |&v: &Value| matches!(component(k, v), ElemRef::Known(elem) if is_int(elem));
        if !is_sort || !self.first.iter().all(integer) {
            return None;
        }
        let mut keys = Vec::new();
        self.add_keys(k, self.results[0], &mut keys)?;
        (keys.len() == self.first.len()).then_some(keys)
    }

    /// Adds the keys of `a1 > a2` or `a1 > a2 || a1 == a2 && ..`, in which no component occurs twice.
    fn add_keys(&self, k: &Kernel, e: Expr, keys: &mut Vec<Key>) -> Option<()> {
        let Some((left, right)) = self.operands(k, e, Op::Or) else {
            let key = self.compared(k, e)?;
            let new = keys.iter().all(|old| old.component != key.component);
            return new.then(|| keys.push(key));
        };
        for (decided, tied) in [(left, right), (right, left)] {
            let (Some(key), Some((a, b))) = (self.compared(k, decided), self.operands(k, tied, Op::And)) else {
                continue;
            };
            let equal = |e: Expr| {
                self.operands(k, e, Op::Eq).and_then(|(x, y)| self.pair(k, x, y)).map(|(component, _)| component)
            };
            let rest = if equal(a) == Some(key.component) {
                b
            } else if equal(b) == Some(key.component) {
                a
            } else {
                continue;
            };
            if keys.iter().any(|old| old.component == key.component) {
                return None;
            }
            keys.push(key);
            return self.add_keys(k, rest, keys);
        }
        None
    }

    /// The key of a comparison of both tuples' same component.
    fn compared(&self, k: &Kernel, e: Expr) -> Option<Key> {
        for (op, greater) in [(Op::Gt, true), (Op::Ge, true), (Op::Lt, false), (Op::Le, false)] {
            if let Some((x, y)) = self.operands(k, e, op) {
                let (component, swapped) = self.pair(k, x, y)?;
                return Some(Key { component, descending: greater != swapped });
            }
        }
        None
    }

    /// The component that two expressions are of the two tuples, and whether the first expression is of the second tuple.
    fn pair(&self, k: &Kernel, x: Expr, y: Expr) -> Option<(usize, bool)> {
        let (ExprData::Ref(x), ExprData::Ref(y)) = (&k.exprs[x], &k.exprs[y]) else { return None };
        let find = |a: &Value, b: &Value| {
            self.first.iter().zip(&self.second).position(|(first, second)| first == a && second == b)
        };
        find(x, y).map(|at| (at, false)).or_else(|| find(y, x).map(|at| (at, true)))
    }

    /// The operands of an operator of two; names of the condition are what they stand for.
    fn operands(&self, k: &Kernel, e: Expr, wanted: Op) -> Option<(Expr, Expr)> {
        match &k.exprs[e] {
            ExprData::Op { op, args } if *op == wanted => match args[..] {
                [x, y] => Some((x, y)),
                _ => None,
            },
            &ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Local(_)) => self.operands(k, local(k, v), wanted),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &str, args: &str, body: &str) -> Option<Vec<(usize, bool)>> {
        let (first, second) =
            (names.replace('?', "1"), names.replace('?', "2").replace(": i32", "").replace(": f32", ""));
        let source = format!(
            "kernel t(X: gmem i32[128, 32], Y: gmem i32[128, 32]) grid (i: 1) schedule {{ threads 128 }} {{
                var x = reg i32[128, 32]
                copy X -> x
                let s = sort ({args}) along 1 with ({first}), ({second}) {{ {body} }}
                copy x -> Y
            }}"
        );
        let mut sink = crate::diag::Sink::new();
        let module = crate::parser::parse(&source, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics()));
        let k = &module.kernels[0];
        let sorts: Vec<_> =
            k.exprs.values().filter_map(|e| if let ExprData::Combine(c) = e { Some(c) } else { None }).collect();
        let keys = sorts[0].total_order(k)?;
        Some(keys.into_iter().map(|key| (key.component, key.descending)).collect())
    }

    #[test]
    fn comparisons_of_all_components_are_an_order() {
        assert_eq!(keys("a?: i32", "x", "give a1 > a2"), Some(vec![(0, true)]));
        assert_eq!(keys("a?: i32", "x", "give a2 >= a1"), Some(vec![(0, false)]));
        let two = |body: &str| keys("a?: i32, b?: i32", "x, iota(x, 1)", body);
        assert_eq!(two("give a1 > a2 || a1 == a2 && b1 < b2"), Some(vec![(0, true), (1, false)]));
        assert_eq!(two("give b2 < b1 && a2 == a1 || a2 > a1"), Some(vec![(0, false), (1, true)]));
        assert_eq!(
            two("let first = b1 < b2 let tie = b1 == b2 give first || tie && a1 < a2"),
            Some(vec![(1, false), (0, false)])
        );
    }

    /// Tuples that are tied without being equal keep the order that the network gives them.
    #[test]
    fn ties_of_different_tuples_are_no_order() {
        let two = |body: &str| keys("a?: i32, b?: i32", "x, iota(x, 1)", body);
        for body in [
            "give a1 > a2",
            "give a1 > a2 || b1 < b2",
            "give a1 > a2 || b1 == b2 && b1 < b2",
            "give a1 > a2 || a1 == a2 && a1 < a2",
            "give a1 > a2 && a1 == a2 || b1 < b2",
            "give !(a1 > a2 || a1 == a2 && b1 < b2)",
            "give a1 + 1 > a2 || a1 == a2 && b1 < b2",
        ] {
            assert_eq!(two(body), None, "{body}");
        }
        // Zeros of both signs are tied, and NaN is tied with every number.
        assert_eq!(keys("a?: f32", "cast<f32>(x)", "give a1 > a2"), None);
    }
}
