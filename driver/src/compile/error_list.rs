//! What went wrong with a program.

use crate::console::render::{self, SourceFile};
use std::fmt;
use tilec_ir::diag::{Diagnostic, Severity};

/// What went wrong, with the source it went wrong in. `Display` draws it for people, without colour.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The source that the spans refer to.
    pub source: SourceFile,
    /// All diagnostics, including remarks.
    pub list: Vec<Diagnostic>,
    /// How many errors there were; more than `list` holds if there were very many.
    pub errors: usize,
}

impl Diagnostics {
    /// One error that no source line is to blame for.
    pub fn one(source: SourceFile, diagnostic: Diagnostic) -> Diagnostics {
        let errors = usize::from(diagnostic.severity == Severity::Error);
        Diagnostics { source, list: vec![diagnostic], errors }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render::human(&self.source, &self.list, self.errors, render::Style::default()))
    }
}

impl std::error::Error for Diagnostics {}
