//! Hover: the text about a word, as Markdown.

use super::analysis::{Analysis, Symbol};
use super::decisions::Decisions;
use crate::compile::explain;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstValue, Kernel, ValueDef};
use tilec_ir::outline::WordKind;
use tilec_ir::print::{print_declaration, print_expr};
use tilec_ir::typing::{Types, layout_of, type_of};

/// The hover text for the word at a byte, and the word's span. `decisions` are those for this text.
pub fn hover(a: &Analysis, decisions: Option<&Decisions>, byte: usize) -> Option<(String, Span)> {
    let word = a.word_at(byte)?;
    let mut out = match a.symbol_of(word.span) {
        Some(Symbol::Value(kernel, value)) => of_value(a, decisions, kernel, value),
        Some(Symbol::Kernel(k)) => of_kernel(a, decisions, k),
        Some(Symbol::Sequence(s)) => code(&tilec_ir::print::print_sequence(&a.outline.module.sequences[s])),
        None if matches!(word.kind, WordKind::Comment | WordKind::Number) => return None,
        None => explain::in_source(a.slice(word.span)).map_or_else(String::new, |text| format!("{text}\n")),
    };
    let Some(decisions) = decisions else { return (!out.is_empty()).then_some((out, word.span)) };
    let mut remarks = decisions.remarks(word.span.start as usize).peekable();
    if remarks.peek().is_some() {
        let _ = writeln!(out, "\nDecided for {}:\n", decisions.target.name());
    }
    let accesses = match a.symbol_of(word.span) {
        None => decisions.accesses_at(word.span.start as usize),
        Some(_) => Vec::new(),
    };
    if remarks.peek().is_none() && !accesses.is_empty() {
        let _ = writeln!(out, "\nOn {}:\n", decisions.target.name());
    }
    accesses.iter().for_each(|text| out.push_str(&format!("* {text}\n")));
    let mut said = BTreeSet::new();
    for remark in remarks {
        // Most messages end with the reason.
        let why = remark.why.iter().filter(|why| !remark.message.contains(*why));
        let why = why.map(|why| format!(" ({why})")).collect::<String>();
        let line = format!("* `{}`: {}{why}", remark.code, remark.message);
        if !said.contains(&line) {
            let _ = writeln!(out, "{line}");
            said.insert(line);
        }
    }
    (!out.is_empty()).then_some((out, word.span))
}

fn code(text: &str) -> String {
    format!("```tile\n{}\n```\n", text.trim_end())
}

/// The kind of a name, in a few words.
pub fn kind(def: &ValueDef) -> &'static str {
    match def {
        ValueDef::ConstParam(_) => "compile-time parameter",
        ValueDef::Size => "run-time size",
        ValueDef::Stride => "run-time stride",
        ValueDef::Tensor(_) => "tensor in global memory",
        ValueDef::Scalar { .. } => "scalar parameter",
        ValueDef::Table(_) => "table in constant memory",
        ValueDef::Grid => "grid index",
        ValueDef::Loop => "loop variable",
        ValueDef::Let | ValueDef::Local(_) => "value that does not change",
        ValueDef::Var(_) => "register tile",
        ValueDef::Smem(_) => "buffer in shared memory",
        ValueDef::Element { .. } => "component of tuples",
        ValueDef::Channel { .. } => "channel: a ring of slots in shared memory",
    }
}

/// The type of a `let` of an expression, as the language writes it; `None`: it has none, or another declaration has it.
pub fn let_type(k: &Kernel, types: &Types<'_>, value: Value) -> Option<String> {
    matches!(k.values[value].def, ValueDef::Let).then(|| types.let_type(value).map(|ty| ty.describe(k))).flatten()
}

/// A `let` of a tile with the layout in which threads hold it; `None`: it is none, or has no layout. `name`: that of the source, where a loop was expanded.
fn let_layout(k: &Kernel, value: Value, name: &str) -> Option<String> {
    let init = k.let_init(value)?;
    let layout = layout_of(k, init)?;
    let ty = type_of(k, init).ok().filter(|ty| ty.rank() > 0)?;
    Some(format!("let {name}: {} layout {layout}", ty.describe(k)))
}

fn of_value(a: &Analysis, decisions: Option<&Decisions>, kernel: usize, value: Value) -> String {
    let (k, data) = (a.kernel(kernel), a.value(kernel, value));
    let axis = || k.grid.iter().find(|axis| axis.index == value).map(|axis| print_expr(k, axis.extent));
    let ty = if a.whole { let_type(k, &Types::new(k), value) } else { None };
    let text = match (&data.def, ty) {
        (ValueDef::Grid, _) => axis().map_or_else(|| data.name.clone(), |e| format!("grid ({}: {e})", data.name)),
        (_, Some(ty)) => format!("let {}: {ty}", data.name),
        _ => print_declaration(k, value).unwrap_or_else(|| data.name.clone()),
    };
    let mut out = format!("{}\n{}\n", code(&text), kind(&data.def));
    let Some(decisions) = decisions else { return out };
    if let ValueDef::ConstParam(_) = data.def
        && let Some(text) = decisions.parameter(&k.name, &data.name).and_then(ConstValue::text)
    {
        let _ = writeln!(out, "\n`{text}` on {}", decisions.target.name());
    }
    let decided = match data.def {
        ValueDef::Let => {
            decisions.computed(&k.name, data.span).and_then(|(after, value)| let_layout(after, value, &data.name))
        }
        _ => decisions.value(&k.name, &data.name, data.span).and_then(|(after, value)| print_declaration(after, value)),
    };
    if let Some(decided) = decided.filter(|decided| *decided != text) {
        let threads = decisions.threads(&k.name).map(|text| format!(", {text}"));
        let _ = writeln!(out, "\nOn {}{}:\n", decisions.target.name(), threads.unwrap_or_default());
        out += &code(&decided);
    }
    // A warp's accesses by bank, as the layout that was decided has them.
    let accesses = decisions.accesses_to(&k.name, &data.name);
    if !accesses.is_empty() {
        let _ = writeln!(out, "\nAccesses on {}:\n", decisions.target.name());
        accesses.iter().for_each(|text| out.push_str(&format!("* {text}\n")));
    }
    out
}

fn of_kernel(a: &Analysis, decisions: Option<&Decisions>, number: usize) -> String {
    let k = a.kernel(number);
    let mut out = code(&format!("kernel {}", k.name));
    if let Some(threads) = decisions.and_then(|d| d.threads(&k.name)) {
        let _ = writeln!(out, "\n{threads}");
    }
    out
}
