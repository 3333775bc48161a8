//! Two variants of a program side by side: what differs in the program after the last pass, the PTX and the machine code, and in figures.

use super::columns::Columns;
use super::machine::Machine;
use crate::compile::{CompileOptions, Compiled};
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::fmt;
use tilec_ir::target::Target;

/// Lines around a difference that are shown.
const CONTEXT: usize = 2;

/// Another variant, to compare with the one that is shown.
#[derive(Clone, Debug, Serialize)]
pub struct OtherVariant {
    /// The values that it has: `BM=64`.
    pub values: String,
    /// Figures: name, of the one that is shown, of the other.
    pub figures: Vec<(String, String, String)>,
    /// The columns.
    pub columns: Vec<Compared>,
}

/// What another variant has that this one has not.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VariantDiff {
    /// Its target.
    pub target: Option<Target>,
    /// Values of compile-time parameters, and sizes that `auto` parameters are chosen for.
    pub values: Vec<(String, String)>,
}

impl VariantDiff {
    /// The options of the other variant: a name that is a size of the program is one, others are compile-time parameters.
    pub(super) fn options(&self, own: &CompileOptions, program: &Compiled) -> CompileOptions {
        let mut options = own.clone();
        if let Some(target) = self.target.filter(|t| *t != own.target) {
            // A card is one of its target.
            (options.target, options.card) = (target, None);
        }
        let is_size = |name: &str| {
            program.kernels.iter().map(|k| &k.tile.kernel).any(|k| k.sizes.iter().any(|&v| k.values[v].name == name))
        };
        for (name, value) in &self.values {
            match value.parse() {
                Ok(n) if is_size(name) => {
                    if options.sizes.is_empty() {
                        options.sizes.push(Vec::new());
                    }
                    for sizes in &mut options.sizes {
                        sizes.retain(|(own, _)| own != name);
                        sizes.push((name.clone(), n));
                    }
                }
                _ => {
                    options.defines.retain(|(own, _)| own != name);
                    options.defines.push((name.clone(), value.clone()));
                }
            }
        }
        options
    }
}

impl fmt::Display for VariantDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target.map(|t| t.name().to_owned());
        let values = self.values.iter().map(|(name, v)| format!("{name}={v}"));
        f.write_str(&target.into_iter().chain(values).collect::<Vec<_>>().join(" "))
    }
}

/// A column of both.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// What it is.
    pub title: String,
    /// Lines side by side; `None` for a line that only the other has. A line of two `None`s stands for equal lines.
    pub rows: Vec<Row>,
}

/// Lines side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Of the one that is shown: number and text.
    pub left: Option<(usize, String)>,
    /// Of the other.
    pub right: Option<(usize, String)>,
    /// Both are the same.
    pub same: bool,
}

/// Names and values of what is compared, of the one that is shown and of the other.
pub(super) struct Figures<'a> {
    pub(super) own: &'a [(String, String)],
    pub(super) other: &'a [(String, String)],
}

impl OtherVariant {
    pub(super) fn new((own, other): (&Columns, &Columns), of: Figures<'_>, values: &str) -> OtherVariant {
        let last =
            |c: &Columns| -> Vec<String> { c.stages.iter().rev().find_map(|s| s.text.clone()).unwrap_or_default() };
        let sass = |c: &Columns| c.machine.as_ref().map_or_else(Vec::new, |m| m.text.iter().map(|l| code(l)).collect());
        let columns = [
            ("the program after the last pass", last(own), last(other)),
            ("PTX", own.ptx.clone(), other.ptx.clone()),
            ("machine code", sass(own), sass(other)),
        ];
        OtherVariant {
            values: values.to_owned(),
            figures: figures(own, other, &of),
            columns: columns
                .into_iter()
                .filter(|(_, a, b)| !a.is_empty() && !b.is_empty())
                .map(|(title, a, b)| Compared { title: title.to_owned(), rows: rows(&a, &b) })
                .collect(),
        }
    }
}

/// An instruction without its address, which says nothing of it.
fn code(line: &str) -> String {
    line.split_once("*/ ").map_or(line, |(_, code)| code).to_owned()
}

fn figures(own: &Columns, other: &Columns, of: &Figures<'_>) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    let mut add = |name: String, a: String, b: String| out.push((name, a, b));
    for (name, value) in of.own {
        let theirs = of.other.iter().find(|(other, _)| other == name).map_or(String::new(), |(_, v)| v.clone());
        add(name.clone(), value.clone(), theirs);
    }
    let count = |x: &Columns| x.ptx_places.iter().flatten().count().to_string();
    add("instructions of PTX".to_owned(), count(own), count(other));
    if let (Some(a), Some(b)) = (&own.machine, &other.machine) {
        let count = |m: &Machine| m.control.iter().flatten().count().to_string();
        add("instructions of machine code".to_owned(), count(a), count(b));
        for (a, b) in a.entries.iter().zip(&b.entries) {
            add(format!("{}: registers by the assembler", a.entry), a.registers.to_string(), b.registers.to_string());
            add(format!("{}: bytes spilled", a.entry), a.spilled.to_string(), b.spilled.to_string());
            add(format!("{}: bytes of them loaded", a.entry), a.reloaded.to_string(), b.reloaded.to_string());
        }
    }
    out
}

fn rows(a: &[String], b: &[String]) -> Vec<Row> {
    let line = |list: &[String], i: usize| Some((i + 1, list[i].clone()));
    let mut out = Vec::new();
    let ops = capture_diff_slices(Algorithm::Myers, a, b);
    for (n, op) in ops.iter().enumerate() {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { len, .. } = op {
            let (before, after) = (if n == 0 { 0 } else { CONTEXT }, if n + 1 == ops.len() { 0 } else { CONTEXT });
            for i in 0..*len {
                if i < before || i + after >= *len {
                    out.push(Row { left: line(a, old.start + i), right: line(b, new.start + i), same: true });
                } else if i == before {
                    out.push(Row { left: None, right: None, same: true });
                }
            }
            continue;
        }
        for i in 0..old.len().max(new.len()) {
            let left = (i < old.len()).then(|| line(a, old.start + i)).flatten();
            let right = (i < new.len()).then(|| line(b, new.start + i)).flatten();
            out.push(Row { left, right, same: false });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_stand_beside_each_other_with_what_is_around_them() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let rows = rows(&lines("a b c d e x f"), &lines("a b c d e y z f"));
        let text: Vec<String> = rows
            .iter()
            .map(|r| {
                let of = |x: &Option<(usize, String)>| x.as_ref().map_or("-".to_owned(), |(n, t)| format!("{n}{t}"));
                format!("{}|{}{}", of(&r.left), of(&r.right), if r.same { "" } else { "!" })
            })
            .collect();
        assert_eq!(text, ["-|-", "4d|4d", "5e|5e", "6x|6y!", "-|7z!", "7f|8f"]);
        assert_eq!(code("/*0010*/ IADD3 R1"), "IADD3 R1");
    }
}
