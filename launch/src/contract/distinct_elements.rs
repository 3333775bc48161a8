//! Conditions on strides under which the elements of an output have distinct addresses.
//!
//! Sorted by stride, each dimension must step over the extent of those below it. That admits rows at any distance,
//! windows, and dimensions in any order. A stride of 0 written in the program, and tensors that are only combined with
//! atomically, are the author's responsibility.

use crate::contract::expr;
use crate::contract::number::{Args, Number};
use crate::contract::{Contract, Dimension, Param, ParamKind, TensorParam};
use std::collections::BTreeSet;

/// How far beyond the smallest stride a value that meets another condition, such as a multiple, is searched.
const NEAR: i64 = 4096;

/// The words of an expression.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

fn is_stride(params: &[Param], name: &str) -> bool {
    params.iter().any(|p| p.name == name && matches!(p.kind, ParamKind::Stride { .. }))
}

/// The conditions under which the elements of a tensor have distinct addresses; empty if that does not depend on
/// strides given at launch.
pub(crate) fn conditions(params: &[Param], tensor: &TensorParam, pointers: bool) -> Vec<String> {
    let extents = tensor.shape.iter().skip(usize::from(pointers)).flat_map(Dimension::parts);
    let all: Vec<(&str, &str)> = extents
        .map(String::as_str)
        .zip(tensor.strides.iter().flat_map(Dimension::parts).map(String::as_str))
        .filter(|(extent, stride)| *extent != "1" && *stride != "0")
        .collect();
    if !all.iter().any(|(_, stride)| words(stride).any(|w| is_stride(params, w))) {
        return Vec::new();
    }
    // One dimension of stride 1 is innermost; another one steps over it like any.
    let first = all.iter().position(|(_, stride)| *stride == "1");
    let inner = first.map_or("1", |i| all[i].0);
    let rest: Vec<(&str, &str)> =
        all.iter().enumerate().filter(|(i, _)| Some(*i) != first).map(|(_, dim)| *dim).collect();
    let own = |&(extent, stride): &(&str, &str)| format!("{stride} >= {inner} || {extent} == 1");
    match rest[..] {
        [_] => rest.iter().map(own).collect(),
        [(m, s), (n, t)] => {
            let over = |s: &str, n: &str, t: &str| format!("{s} >= ({n} - 1) * {} + {inner}", factor(t));
            let apart = format!("{} || {} || {m} == 1 || {n} == 1", over(s, n, t), over(t, m, s));
            rest.iter().map(own).chain([apart]).collect()
        }
        _ => {
            // The dimensions below are included by a factor of 0 or 1 that compares strides.
            let reach = |at: usize| {
                let (_, stride) = all[at];
                let below = all.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, (n, s))| {
                    format!("({n} - 1) * {} * min(1, max(0, {stride} - {} + 1))", factor(s), factor(s))
                });
                below.collect::<Vec<_>>().join(" + ")
            };
            let one =
                |(at, (extent, stride)): (usize, &(&str, &str))| format!("{extent} == 1 || {stride} > {}", reach(at));
            all.iter().enumerate().map(one).collect()
        }
    }
}

/// An expression as a factor of a product.
fn factor(text: &str) -> String {
    if words(text).count() == 1 && !text.contains(' ') { text.to_owned() } else { format!("({text})") }
}

impl Contract {
    /// Adds to the conditions that the elements of the tensors called `stored` have addresses of their own.
    #[must_use]
    pub fn with_distinct(mut self, stored: &BTreeSet<String>) -> Contract {
        for param in self.params.iter().filter(|p| stored.contains(&p.name)) {
            let Some(tensor) = param.kind.tensor() else { continue };
            for condition in conditions(&self.params, tensor, matches!(param.kind, ParamKind::Pointers(_))) {
                let known = condition.split(" || ").any(|part| self.requires.iter().any(|r| r == part));
                if !known && !self.requires.contains(&condition) {
                    self.requires.push(condition);
                }
            }
        }
        self
    }
}

/// A stride with which elements of a tensor share addresses.
#[derive(Clone, PartialEq, Debug)]
pub struct Overlap {
    /// The tensor.
    pub tensor: String,
    /// The stride.
    pub stride: String,
    /// Its value.
    pub value: i64,
    /// The least value from there on that the contract allows.
    pub least: i64,
}

/// The stride that violates `condition`, if it is one of the conditions above.
pub(crate) fn violating_stride(contract: &Contract, condition: &str, values: &Args) -> Option<Overlap> {
    for param in &contract.params {
        let Some(tensor) = param.kind.tensor().filter(|t| t.access.writes()) else { continue };
        let own = conditions(&contract.params, tensor, matches!(param.kind, ParamKind::Pointers(_)));
        if !own.iter().any(|c| c == condition) {
            continue;
        }
        for stride in words(condition).filter(|w| is_stride(&contract.params, w)) {
            let Some(value) = values.get(stride).and_then(|v| v.to_i64()) else { continue };
            let holds = |all: &[String], x: i64| {
                let with = |name: &str| match name == stride {
                    true => Some(x),
                    false => values.get(name).and_then(|v: &Number| v.to_i64()),
                };
                all.iter().all(|c| expr::condition(c, &with) == Ok(true))
            };
            let Some(above) = (0..62).map(|i| value.saturating_add(1 << i)).find(|&x| holds(&own, x)) else { continue };
            let (mut low, mut high) = (value, above);
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if holds(&own, middle) { high = middle } else { low = middle }
            }
            let near = (high..high.saturating_add(NEAR)).find(|&x| holds(&own, x) && holds(&contract.requires, x));
            let least = near.unwrap_or(high);
            return Some(Overlap { tensor: param.name.clone(), stride: stride.to_owned(), value, least });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Access, I64, U32};
    use pretty_assertions::assert_eq;
    use tilec_core::elem::Elem;

    fn tensor(shape: &[&str], strides: &[&str]) -> TensorParam {
        let dims = |texts: &[&str]| texts.iter().map(|t| Dimension::from(*t)).collect();
        TensorParam {
            elem: Elem::F32,
            align: 4,
            access: Access::Write,
            shape: dims(shape),
            strides: dims(strides),
            reads_gaps: false,
            constant: false,
            scratch: None,
            may_alias: Vec::new(),
        }
    }

    fn params() -> Vec<Param> {
        let stride =
            |name: &str| Param { name: name.to_owned(), kind: ParamKind::Stride { ty: I64::I64, packed: None } };
        let size = |name: &str| Param { name: name.to_owned(), kind: ParamKind::Size { ty: U32::U32 } };
        ["r", "s", "t", "u"].map(stride).into_iter().chain(["M", "N", "Z", "Y"].map(size)).collect()
    }

    #[test]
    fn rows_do_not_overlap() {
        assert_eq!(conditions(&params(), &tensor(&["M", "N"], &["s", "1"]), false), ["s >= N || M == 1"]);
        assert_eq!(conditions(&params(), &tensor(&["M", "N"], &["1", "s"]), false), ["s >= M || N == 1"]);
        assert_eq!(conditions(&params(), &tensor(&["M", "N"], &["N", "1"]), false), [""; 0]);
        assert_eq!(conditions(&params(), &tensor(&["M", "N"], &["0", "1"]), false), [""; 0]);
    }

    /// Whether elements of a tensor of these extents share addresses.
    fn share(extents: &[i64], strides: &[i64]) -> bool {
        let mut all = vec![0];
        for (&n, &s) in extents.iter().zip(strides) {
            all = all.iter().flat_map(|x| (0..n).map(move |i| x + i * s)).collect();
        }
        let distinct: BTreeSet<i64> = all.iter().copied().collect();
        distinct.len() < all.len()
    }

    #[test]
    fn what_is_allowed_is_distinct_and_usual_layouts_are_allowed() {
        let names = ["r", "s", "t", "u"];
        for (rank, inner) in [(1, true), (2, true), (2, false), (3, true), (3, false), (4, true)] {
            let sizes = &["M", "N", "Z", "Y"][..rank];
            let mut strides: Vec<&str> = names[..rank].to_vec();
            if inner {
                strides[rank - 1] = "1";
            }
            let all = conditions(&params(), &tensor(sizes, &strides), false);
            let mut allowed = 0;
            for case in 0..6000u64 {
                let digit = |i: u32| (case.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (5 * i)) as i64 & i64::MAX;
                let n: Vec<i64> = (0..rank as u32).map(|i| 1 + digit(i) % 3).collect();
                let mut s: Vec<i64> = (0..rank as u32).map(|i| digit(i + 5) % 14).collect();
                if inner {
                    s[rank - 1] = 1;
                }
                let value = |name: &str| {
                    let at = |list: &[&str]| list.iter().position(|x| *x == name);
                    at(sizes).map(|i| n[i]).or(at(&strides).map(|i| s[i]))
                };
                let ok = all.iter().all(|c| expr::condition(c, &value).expect("it has a value"));
                assert!(!ok || !share(&n, &s), "{n:?} {s:?}: {all:?}");
                allowed += u32::from(ok);
                // Packed in any order of the dimensions.
                let mut order: Vec<usize> = (0..rank).collect();
                order.rotate_left(case as usize % rank);
                if inner && order[rank - 1] != rank - 1 {
                    continue;
                }
                let mut step = 1;
                for &d in order.iter().rev() {
                    s[d] = step;
                    step *= n[d];
                }
                let value = |name: &str| {
                    let at = |list: &[&str]| list.iter().position(|x| *x == name);
                    at(sizes).map(|i| n[i]).or(at(&strides).map(|i| s[i]))
                };
                assert!(all.iter().all(|c| expr::condition(c, &value) == Ok(true)), "{n:?} {s:?}: {all:?}");
            }
            assert!(rank == 1 || allowed > 10, "{rank} {inner}");
        }
    }
}
