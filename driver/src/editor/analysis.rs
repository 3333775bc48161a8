//! Fast analysis of a text: parsed, typed and verified.

use super::lines::Lines;
use crate::compile::stages;
use tilec_ir::diag::{Diagnostic, Sink, Span};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, ValueData};
use tilec_ir::outline::{Declaration, Outline, Word, WordKind, outline, words};

/// What is known of a text.
#[derive(Debug)]
pub struct Analysis {
    /// The text.
    pub text: String,
    /// Its lines.
    pub lines: Lines,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
    /// Its names.
    pub outline: Outline,
    /// Its words.
    pub words: Vec<Word>,
    /// There is no error: types may be asked for.
    pub whole: bool,
}

/// What a name stands for.
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
        let mut sink = Sink::new();
        let outline = outline(text, &mut sink);
        if sink.error_count() == 0 {
            for kernel in &outline.module.kernels {
                // What is wrong is in the sink, which is asked below.
                let _ = stages::verify(kernel, &mut sink);
            }
        }
        let whole = sink.error_count() == 0;
        let diagnostics = sink.into_diagnostics();
        Analysis { text: text.to_owned(), lines: Lines::new(text), diagnostics, outline, words: words(text), whole }
    }

    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The kernel of a number.
    pub fn kernel(&self, number: usize) -> &Kernel {
        &self.outline.module.kernels[number]
    }

    /// What a value of a kernel is.
    pub fn value(&self, kernel: usize, value: Value) -> &ValueData {
        &self.kernel(kernel).values[value]
    }

    /// The word that a byte lies in or behind.
    pub fn word_at(&self, byte: usize) -> Option<Word> {
        let reaches = |w: &&Word| w.span.start as usize <= byte && byte <= w.span.end as usize;
        let near: Vec<&Word> = self.words.iter().filter(reaches).collect();
        // Between a name and a bracket the name is meant.
        near.iter().find(|w| w.kind != WordKind::Sign).or(near.last()).map(|w| **w)
    }

    /// What the name at a byte stands for, and where the name is.
    pub fn symbol_at(&self, byte: usize) -> Option<(Symbol, Span)> {
        let span = self.word_at(byte).filter(|w| w.kind == WordKind::Name)?.span;
        Some((self.symbol_of(span)?, span))
    }

    /// What the name at a span stands for.
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

    /// Where a symbol is declared, if it has a declaration of its own.
    pub fn declaration(&self, symbol: Symbol) -> Option<&Declaration> {
        let Symbol::Value(kernel, value) = symbol else { return None };
        self.outline.declarations.iter().find(|d| (d.kernel, d.value) == (kernel, value))
    }

    /// Where the name is written that a symbol comes from.
    pub fn definition(&self, symbol: Symbol) -> Span {
        match symbol {
            Symbol::Value(kernel, value) => self.value(kernel, value).span,
            Symbol::Kernel(k) => self.kernel(k).name_span,
            Symbol::Sequence(s) => self.outline.module.sequences[s].name_span,
        }
    }

    /// Where a symbol is used, in order, without its declaration.
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
