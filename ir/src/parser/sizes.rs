//! Sizes that are probably typos: a misspelt name in a shape declares a new size, without any other error.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, ValueDef};
use crate::parser::reader::Parser;

impl Parser<'_, '_> {
    /// Warns of a size that occurs once, if one of nearly the same name occurs more often. Called at the end of a
    /// kernel.
    pub(super) fn check_sizes(&mut self) {
        let kernel = self.marks.kernels.len();
        let used = |v: Value| self.marks.mentions.iter().any(|m| m.kernel == kernel && m.value == v);
        let name = |v: Value| self.kernel.values[v].name.as_str();
        let (often, once): (Vec<Value>, Vec<Value>) = self.kernel.sizes.iter().partition(|&&v| used(v));
        let pair = |&v: &Value| Some((v, *often.iter().find(|&&other| is_like(name(v), name(other)))?));
        let mut pairs: Vec<(Value, Value)> = once.iter().filter_map(pair).collect();
        // `H`, `W` and `h`, `w` are extents of an image and of a filter, and `X: gmem f32[H, h]` has heads and their
        // elements: names that differ in case are distinct.
        let by_case = |&(a, b): &(Value, Value)| name(a).eq_ignore_ascii_case(name(b));
        let cases = pairs.iter().filter(|p| by_case(p)).count();
        pairs.retain(|p| !(by_case(p) && (cases > 1 || self.in_one_shape(p.0, p.1))));
        for (v, other) in pairs {
            let [(name, span), (meant, declared)] =
                [v, other].map(|v| (self.kernel.values[v].name.clone(), self.kernel.values[v].span));
            let message = format!("the size `{name}` is used once, and `{meant}` elsewhere");
            let d = Diagnostic::warning(codes::USED_ONCE, span, message).with_label("declares another size");
            let d = d.with_place(declared, format!("`{meant}` is declared here"));
            self.sink.push(d.with_spelling(&meant));
        }
    }
}

impl Parser<'_, '_> {
    /// Whether the shape of a tensor has both sizes.
    fn in_one_shape(&self, a: Value, b: Value) -> bool {
        let is = |e: Expr, v: Value| matches!(self.kernel.exprs[e], ExprData::Ref(of) if of == v);
        let has = |shape: &[Expr], v: Value| shape.iter().any(|&e| is(e, v));
        let defs = self.kernel.values.values().map(|value| &value.def);
        let mut shapes = defs.filter_map(|def| if let ValueDef::Tensor(t) = def { Some(&t.shape) } else { None });
        shapes.any(|shape| has(shape, a) && has(shape, b))
    }
}

/// Whether names differ only in case, in doubled letters, or in exchanged letters.
fn is_like(a: &str, b: &str) -> bool {
    let once = |text: &str| {
        let mut letters: Vec<char> = text.to_ascii_lowercase().chars().collect();
        letters.dedup_by(|a, b| a == b && a.is_ascii_alphabetic());
        letters
    };
    let swapped = || {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        let other: Vec<usize> = (0..a.len().min(b.len())).filter(|&i| a[i] != b[i]).collect();
        let letters = |i: usize| a[i].is_ascii_alphabetic() && b[i].is_ascii_alphabetic();
        a.len() == b.len()
            && a.len() >= 4
            && matches!(other[..], [i, j] if j == i + 1 && a[i] == b[j] && a[j] == b[i] && letters(i) && letters(j))
    };
    once(a) == once(b) || swapped()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sizes_that_are_confused() {
        for (a, b, alike) in [
            ("KK", "K", true),
            ("k", "K", true),
            ("ROSW", "ROWS", true),
            ("K1", "K11", false),
            ("K1", "K2", false),
            ("MN", "NM", false),
            ("HEADS", "HEAD", false),
            ("M", "N", false),
        ] {
            assert_eq!(is_like(a, b), alike, "{a} {b}");
        }
    }
}
