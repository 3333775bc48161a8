//! Fast analysis of a text: parsed, typed and verified.

use super::lines::Lines;
use crate::compile::stages;
use std::collections::HashSet;
use std::sync::OnceLock;
use tilec_ir::diag::{Diagnostic, Sink, Span};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, ValueData};
use tilec_ir::outline::{Declaration, Outline, Word, WordKind, outline, words};

/// The analysis of a text.
#[derive(Debug)]
pub struct Analysis {
    /// The text.
    pub text: String,
    /// Its lines.
    pub lines: Lines,
    /// Its diagnostics.
    pub diagnostics: Vec<Diagnostic>,
    /// Its names.
    pub outline: Outline,
    /// Its words, once they were requested.
    words: OnceLock<Vec<Word>>,
    /// For each kernel, whether it passed the verifier.
    verified: Vec<bool>,
    /// There is no error: types may be requested.
    pub whole: bool,
}

/// The text of a span.
fn part(text: &str, span: Span) -> &str {
    text.get(span.start as usize..span.end as usize).unwrap_or("")
}

/// The meaning of a name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// Something in a kernel, by its number in the module.
    Value(usize, Value),
    /// A kernel.
    Kernel(usize),
    /// A sequence.
    Sequence(usize),
}

impl Analysis {
    /// Reads a text.
    pub fn new(text: &str) -> Analysis {
        Analysis::after(text, None)
    }

    /// Reads a text that an earlier one was changed to. What was found to be right there is not verified again where it has stayed: the rules are about a
    /// kernel by itself, which its text alone makes.
    pub fn after(text: &str, earlier: Option<&Analysis>) -> Analysis {
        let mut sink = Sink::new();
        let outline = outline(text, &mut sink);
        let mut verified = Vec::new();
        if sink.error_count() == 0 {
            let right: HashSet<&str> = earlier.iter().flat_map(|a| a.right()).collect();
            for (kernel, span) in outline.module.kernels.iter().zip(&outline.kernels) {
                let said = sink.diagnostics().len();
                if !right.contains(part(text, *span)) {
                    // Errors are in the sink, which is checked below.
                    let _ = stages::verify(kernel, &mut sink);
                }
                verified.push(sink.diagnostics().len() == said);
            }
        }
        let whole = sink.error_count() == 0;
        let diagnostics = sink.into_diagnostics();
        let (text, lines) = (text.to_owned(), Lines::new(text));
        Analysis { text, lines, diagnostics, outline, words: OnceLock::new(), verified, whole }
    }

    /// The texts of the kernels of which the verifier has nothing to say.
    fn right(&self) -> impl Iterator<Item = &str> {
        let right = self.outline.kernels.iter().zip(&self.verified).filter(|(_, verified)| **verified);
        right.map(|(span, _)| self.slice(*span))
    }

    /// Its words.
    pub fn words(&self) -> &[Word] {
        self.words.get_or_init(|| words(&self.text))
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        part(&self.text, span)
    }

    /// The kernel of a number.
    pub fn kernel(&self, number: usize) -> &Kernel {
        &self.outline.module.kernels[number]
    }

    /// A value of a kernel.
    pub fn value(&self, kernel: usize, value: Value) -> &ValueData {
        &self.kernel(kernel).values[value]
    }

    /// The word that a byte is in or after.
    pub fn word_at(&self, byte: usize) -> Option<Word> {
        let reaches = |w: &&Word| w.span.start as usize <= byte && byte <= w.span.end as usize;
        let near: Vec<&Word> = self.words().iter().filter(reaches).collect();
        // Between a name and a bracket the name is meant.
        near.iter().find(|w| w.kind != WordKind::Sign).or(near.last()).map(|w| **w)
    }

    /// The symbol of the name at a byte, and the name's span.
    pub fn symbol_at(&self, byte: usize) -> Option<(Symbol, Span)> {
        let span = self.word_at(byte).filter(|w| w.kind == WordKind::Name)?.span;
        Some((self.symbol_of(span)?, span))
    }

    /// The symbol of the name at a span.
    pub fn symbol_of(&self, span: Span) -> Option<Symbol> {
        let o = &self.outline;
        if let Ok(i) = o.mentions.binary_search_by_key(&span, |m| m.span) {
            return Some(Symbol::Value(o.mentions[i].kernel, o.mentions[i].value));
        }
        if let Ok(i) = o.declarations.binary_search_by_key(&span, |d| d.span) {
            return Some(Symbol::Value(o.declarations[i].kernel, o.declarations[i].value));
        }
        if let Some(k) = o.module.kernels.iter().position(|k| k.name_span == span) {
            return Some(Symbol::Kernel(k));
        }
        if let Some(s) = o.module.sequences.iter().position(|s| s.name_span == span) {
            return Some(Symbol::Sequence(s));
        }
        let launches = o.module.sequences.iter().flat_map(|s| &s.launches);
        let (name, _) = launches.into_iter().find(|(_, at)| *at == span)?;
        o.module.kernels.iter().position(|k| k.name == *name).map(Symbol::Kernel)
    }

    /// The declaration of a symbol, if it has its own.
    pub fn declaration(&self, symbol: Symbol) -> Option<&Declaration> {
        let Symbol::Value(kernel, value) = symbol else { return None };
        self.outline.declarations.iter().find(|d| (d.kernel, d.value) == (kernel, value))
    }

    /// The span of the name that defines a symbol.
    pub fn definition(&self, symbol: Symbol) -> Span {
        match symbol {
            Symbol::Value(kernel, value) => self.value(kernel, value).span,
            Symbol::Kernel(k) => self.kernel(k).name_span,
            Symbol::Sequence(s) => self.outline.module.sequences[s].name_span,
        }
    }

    /// The uses of a symbol, in order, without its declaration.
    pub fn uses(&self, symbol: Symbol) -> Vec<Span> {
        match symbol {
            Symbol::Value(kernel, value) => {
                let of_it = self.outline.mentions.iter().filter(|m| (m.kernel, m.value) == (kernel, value));
                of_it.map(|m| m.span).collect()
            }
            Symbol::Kernel(k) => {
                let name = &self.kernel(k).name;
                let launches = self.outline.module.sequences.iter().flat_map(|s| &s.launches);
                launches.filter(|(launched, _)| launched == name).map(|(_, span)| *span).collect()
            }
            Symbol::Sequence(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_stayed_are_verified_once_and_mistakes_stay() {
        let kernel = |name: &str, extents: [u32; 2]| {
            let [a, b] = extents;
            format!(
                "kernel {name}(A: gmem f32[M]) {{\n    var x = reg f32[{a}] = 0.0\n    var y = reg f32[{b}] = 0.0\n    x = y\n}}\n"
            )
        };
        let text = |of_a: [u32; 2], of_b: [u32; 2]| kernel("a", of_a) + &kernel("b", of_b);
        let (right, wrong) = ([32, 32], [32, 64]);
        let mut last = Analysis::new(&text(right, wrong));
        assert_eq!((&last.verified[..], last.diagnostics.len()), (&[true, false][..], 1));
        for (of_a, of_b) in [(right, wrong), (wrong, wrong), (wrong, right), (right, right), (right, [64, 64])] {
            let new = text(of_a, of_b);
            let next = Analysis::after(&new, Some(&last));
            assert_eq!(next.diagnostics, Analysis::new(&new).diagnostics);
            assert_eq!(next.verified, [of_a != wrong, of_b != wrong]);
            last = next;
        }
        assert_eq!(last.right().collect::<Vec<_>>(), [kernel("a", right).trim(), kernel("b", [64, 64]).trim()]);
    }
}
