//! What is said of a program, as data of a page.

use crate::console::render::SourceFile;
use serde::Serialize;
use tilec_ir::diag::{Diagnostic, Span};

/// What a pass, or the compiler, says.
#[derive(Clone, Debug, Serialize)]
pub struct Remark {
    /// `warning` or `remark`.
    pub severity: &'static str,
    /// Its code or kind.
    pub code: &'static str,
    /// The message.
    pub message: String,
    /// Causes, and the way out.
    pub notes: Vec<String>,
    /// What is said of other lines, by their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<(usize, String)>,
    /// The line of the source; 0: none.
    pub line: usize,
}

impl Remark {
    pub(super) fn new(d: &Diagnostic, source: &SourceFile) -> Remark {
        let line = |span: Span| source.position(span.start as usize).line;
        let labels = d.labels.iter().filter(|l| !l.span.is_none() && !l.text.is_empty());
        Remark {
            severity: d.severity.name(),
            code: d.code.0,
            message: d.message.clone(),
            notes: d.notes.clone(),
            places: labels.map(|l| (line(l.span), l.text.clone())).collect(),
            line: if d.span.is_none() { 0 } else { line(d.span) },
        }
    }
}
