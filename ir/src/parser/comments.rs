//! Comments that are hardly meant to be any: Python divides by `//`.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::kernel::{ConstKind, ConstParam, Kernel, Module, ValueDef};
use crate::lexer::{Tok, Token, clip};
use crate::parser::reader::Parser;
use std::collections::BTreeSet;

/// The tokens that may follow a divisor.
const BEHIND: &[&str] = &[")", "]", ",", "->", "{"];

impl Parser<'_, '_> {
    /// Warns of comments after an operand that are a number, or an integer of the kernel, and nothing else that a comment would say. To be called at the end
    /// of the file: of a bracket that the comment took, too.
    pub(super) fn check_comments(&mut self, module: &Module) {
        let kernels = self.marks.kernels.iter().zip(&module.kernels);
        let found: Vec<Diagnostic> = kernels.flat_map(|(span, k)| self.commented(*span, &integers(k))).collect();
        found.into_iter().for_each(|d| self.sink.push(d));
    }

    fn commented(&self, kernel: Span, names: &BTreeSet<&str>) -> Vec<Diagnostic> {
        let first = self.tokens.partition_point(|t| t.span.start < kernel.start);
        let last = self.tokens.partition_point(|t| t.span.start < kernel.end);
        let tokens = &self.tokens[first..(last + 1).min(self.tokens.len())];
        tokens.windows(2).filter_map(|pair| self.between(&pair[0], &pair[1], names)).collect()
    }

    /// The warning about a comment between two tokens.
    fn between(&self, front: &Token<'_>, behind: &Token<'_>, names: &BTreeSet<&str>) -> Option<Diagnostic> {
        if !matches!(front.tok, Tok::Word(_) | Tok::Int(_) | Tok::Float(_) | Tok::Sign(")")) {
            return None;
        }
        let gap = self.source.get(front.span.end as usize..behind.span.start as usize)?;
        let line = gap.lines().next().unwrap_or("");
        let text = line.trim_start().strip_prefix("//")?;
        let start = front.span.end as usize + line.len() - text.len() - 2;
        let text = text.trim();
        let number = text.starts_with(|c: char| c.is_ascii_digit());
        let divisor = |c: char| if number { c.is_ascii_digit() || c == '.' } else { c.is_alphanumeric() || c == '_' };
        let rest = text.trim_start_matches(divisor);
        let ends = rest.is_empty() || BEHIND.iter().any(|sign| rest.trim_start().starts_with(sign));
        if !ends || !(number || names.contains(&text[..text.len() - rest.len()])) {
            return None;
        }
        let message = format!("`{}` is a comment", clip(&format!("// {text}")));
        let d = Diagnostic::warning(codes::COMMENTED, Span::new(start, start + 2), message);
        Some(d.with_note("a division is written `/`: of indices it rounds down, of floats `floor(x / y)` does"))
    }
}

/// The integers of a kernel that something may be divided by: sizes and parameters, by name.
fn integers(k: &Kernel) -> BTreeSet<&str> {
    let is_integer =
        |def: &ValueDef| matches!(def, ValueDef::Size | ValueDef::ConstParam(ConstParam { kind: ConstKind::Int, .. }));
    k.values.values().filter(|v| is_integer(&v.def)).map(|v| v.name.as_str()).collect()
}
