//! Replacements of a statement, and the context that operators use to make them.

use super::slice::Slices;
use super::text::Statement;

/// The kernel around a statement, as operators see it.
pub struct Unit<'a> {
    /// The uses of registers.
    pub slices: Slices<'a>,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a cluster.
    pub blocks: u32,
    /// Whether some barrier is not waited at by all threads: then barrier numbers matter.
    pub partial_barriers: bool,
}

/// A replacement of a statement.
pub struct Edit {
    /// The mutation, in a word or two.
    pub variant: String,
    /// The new text of the statement.
    pub text: String,
}

pub(super) fn edit(variant: impl Into<String>, text: impl Into<String>) -> Edit {
    Edit { variant: variant.into(), text: text.into() }
}

pub(super) fn delete() -> Edit {
    edit("delete", "")
}

/// An integer literal.
pub(super) fn literal(operand: &str) -> Option<i64> {
    match operand.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => operand.parse().ok(),
    }
}

/// The only literal among the sources of `s`, with its index.
pub(super) fn constant(s: &Statement) -> Option<(usize, i64)> {
    let mut all = s.operands.iter().enumerate().skip(1).filter_map(|(i, o)| Some((i, literal(o)?)));
    all.next().filter(|_| s.operands.len() > 2 && all.next().is_none())
}

/// `{a, b, c}` as its parts.
pub(super) fn parts(operand: &str) -> Vec<&str> {
    operand.trim_start_matches('{').trim_end_matches('}').split(',').map(str::trim).collect()
}

/// The statement with neighbours `at` and `at + 1` of a vector operand exchanged, if they differ.
pub(super) fn swapped(s: &Statement, operand: usize, at: usize) -> Option<String> {
    let text = s.operands.get(operand).filter(|o| o.starts_with('{'))?;
    let mut list = parts(text);
    if list.len() < at + 2 || list[at] == list[at + 1] {
        return None;
    }
    list.swap(at, at + 1);
    Some(s.with_operand(operand, format!("{{{}}}", list.join(", "))))
}

/// `[base+offset]` with a larger offset.
pub(super) fn moved(address: &str, step: i64) -> String {
    let inside = address.trim_start_matches('[').trim_end_matches(']');
    let (base, offset) = inside.split_once('+').map_or((inside, 0), |(b, o)| (b, literal(o).unwrap_or(0)));
    format!("[{base}+{}]", offset + step)
}
