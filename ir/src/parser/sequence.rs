//! Programs of several kernels: `sequence NAME { kernel, kernel }`.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::kernel::{Module, Sequence};
use crate::lexer::{Tok, clip};
use crate::parser::reader::{Parsed, Parser};
use std::collections::BTreeMap;

/// Most launches of a sequence.
const MAX_LAUNCHES: usize = 64;

impl Parser<'_, '_> {
    /// At `sequence NAME {`: a word alone is no reason to stop at.
    pub(super) fn at_sequence(&self) -> bool {
        self.at_word("sequence") && matches!(self.peek_at(1), Tok::Word(_)) && matches!(self.peek_at(2), Tok::Sign("{"))
    }

    /// `sequence NAME { NAME, .. }`.
    pub(super) fn sequence(&mut self) -> Parsed<Sequence> {
        self.expect_word("sequence")?;
        let (name, name_span) = self.name_of_kernel("the name of the sequence")?;
        self.expect_sign("{")?;
        let launches =
            self.comma_list(|p| p.name_of_kernel("the name of a kernel").map(|(name, span)| (name.to_owned(), span)))?;
        self.list_end("}")?;
        if launches.len() > MAX_LAUNCHES {
            let message = format!("{} launches, at most {MAX_LAUNCHES} are allowed", launches.len());
            return Err(self.report(codes::TOO_LARGE, name_span, message));
        }
        Ok(Sequence { name: name.to_owned(), name_span, launches })
    }

    /// Adds a sequence under a name of its own; `seen`: the names of the file so far.
    pub(super) fn add_sequence(&mut self, module: &mut Module, seen: &mut BTreeMap<String, Span>, sequence: Sequence) {
        match seen.get(&sequence.name) {
            Some(&first) => self.duplicate(&sequence.name, "sequence", sequence.name_span, first),
            None => {
                seen.insert(sequence.name.clone(), sequence.name_span);
            }
        }
        module.sequences.push(sequence);
    }

    /// Checks sequences: they launch kernels of the file, which may be declared before or after.
    pub(super) fn check_sequences(&mut self, module: &Module) {
        let names: Vec<&str> = module.kernels.iter().map(|k| k.name.as_str()).collect();
        for (name, span) in module.sequences.iter().flat_map(|s| &s.launches) {
            if names.contains(&name.as_str()) {
                continue;
            }
            let mut d = Diagnostic::error(codes::UNKNOWN_NAME, *span, format!("there is no kernel `{}`", clip(name)));
            if let Some(near) = self.near_word(name, &names) {
                d = d.with_spelling(near);
            }
            self.error(d.with_note("a sequence launches kernels of its file"));
        }
    }
}
