//! The functions of the language with their forms, for messages and editors.

use crate::index;
use crate::ops::{Form, Op, ReduceOp};

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Its call form: `select(a, b, c)`.
    pub form: String,
    /// A paragraph on what it computes; empty if `tilec explain` documents it as a word of the language.
    pub doc: String,
}

/// The same elements in another shape.
pub(crate) const RESHAPE: &str = "reshape";
/// The same tile with its dimensions in another order.
pub(crate) const PERMUTE: &str = "permute";
/// Tiles one after the other.
pub(crate) const CONCAT: &str = "concat";

/// Those that are neither operators nor reductions.
const OTHERS: &[(&str, &str)] = &[
    ("cast", "cast<type>(x)"),
    ("bitcast", "bitcast<type>(x)"),
    ("round_random", "round_random<type>(x, word)"),
    ("transpose", "transpose(x)"),
    (PERMUTE, "permute(x, [0, 2, 1])"),
    (RESHAPE, "reshape(x, [16, 4])"),
    (CONCAT, "concat(a, b, axis)"),
    ("iota", "iota(x, axis)"),
    (index::WORD, "index(n)"),
    ("mma", "mma(a, b, acc)"),
];

/// Whether a kernel may have the name of a word of the language: that of a function, or of what a copy does.
pub(crate) fn may_name_kernel(word: &str) -> bool {
    ["copy", "add", "fill"].contains(&word) || all().iter().any(|f| f.name == word)
}

/// Whether a function may be used in an index, and so in `where` and `grid`.
pub fn is_of_index(name: &str) -> bool {
    let Some(op) = Op::ALL.iter().copied().find(|op| op.form() == Form::Call && op.token() == name) else {
        return false;
    };
    match op.arity() {
        1 => index::unary(op, 1).is_ok(),
        2 => index::binary(op, 1, 1).is_ok(),
        _ => op == Op::Select,
    }
}

/// Every function: operators written as calls, reductions, scans, and the others.
pub fn all() -> Vec<Function> {
    let calls = Op::ALL.iter().filter(|op| op.form() == Form::Call).map(|op| {
        let operands = ["a", "b", "c"][..op.arity()].join(", ");
        Function { name: op.token(), form: format!("{}({operands})", op.token()), doc: op.doc().trim().to_owned() }
    });
    let reductions = ReduceOp::ALL.iter().map(|op| {
        let form = format!("{}(x, axis)", op.token());
        Function { name: op.token(), form, doc: op.doc().trim().to_owned() }
    });
    let scans = ReduceOp::ALL.iter().filter_map(|op| {
        let name = op.scan_token()?;
        let doc = format!("At each position along an axis, `{}` of the elements up to and including it.", op.token());
        Some(Function { name, form: format!("{name}(x, axis)"), doc })
    });
    let others = OTHERS.iter().map(|&(name, form)| Function { name, form: form.to_owned(), doc: String::new() });
    calls.chain(reductions).chain(scans).chain(others).collect()
}
