//! Conversions between the positions and texts of [`crate::editor`] and those of the protocol.

use crate::editor::analysis::Analysis;
use crate::editor::complete::{Proposal, ProposalKind};
use crate::editor::hints::Hint;
use crate::editor::lines::{Lines, Place};
use crate::editor::symbols::{Declared, Kind};
use crate::editor::tokens::{ColouredWord, TokenKind};
use lsp_types::{
    CodeDescription, CompletionItem, CompletionItemKind, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity,
    DocumentSymbol, Documentation, InlayHint, InlayHintKind, InlayHintLabel, Location, MarkupContent, MarkupKind,
    NumberOrString, Position, Range, SemanticToken, SymbolKind, TextEdit, Uri,
};
use std::str::FromStr;
use tilec_ir::codes;
use tilec_ir::diag::{self, Severity, Span};

/// A text with its lines, in which positions are counted.
#[derive(Copy, Clone)]
pub(crate) struct Text<'a> {
    pub(crate) text: &'a str,
    pub(crate) lines: &'a Lines,
}

impl<'a> Text<'a> {
    pub(crate) fn of(a: &'a Analysis) -> Text<'a> {
        Text { text: &a.text, lines: &a.lines }
    }

    pub(crate) fn position(self, byte: usize) -> Position {
        let place = self.lines.place(self.text, byte);
        Position::new(place.line, place.column)
    }

    pub(crate) fn range(self, span: Span) -> Range {
        Range::new(self.position(span.start as usize), self.position(span.end.max(span.start) as usize))
    }

    pub(crate) fn byte(self, at: Position) -> usize {
        self.lines.byte(self.text, Place { line: at.line, column: at.character })
    }

    pub(crate) fn whole(self) -> Range {
        self.range(Span::new(0, self.text.len()))
    }
}

/// The URI scheme of links to `tilec explain`.
pub(crate) const EXPLAIN_SCHEME: &str = "tilec-explain";

/// A diagnostic with notes after its message; nothing of a remark.
pub(crate) fn diagnostic(text: Text<'_>, uri: &Uri, d: &diag::Diagnostic) -> Option<Diagnostic> {
    let severity = match d.severity {
        // A value that the command line must give is no error of the text.
        Severity::Error if d.code == codes::MISSING_DEFINE => DiagnosticSeverity::INFORMATION,
        Severity::Error => DiagnosticSeverity::ERROR,
        Severity::Warning => DiagnosticSeverity::WARNING,
        Severity::Remark => return None,
    };
    let label = (!d.label.is_empty() && !d.message.contains(&d.label)).then(|| format!("\n{}", d.label));
    let notes = d.notes.iter().map(|note| format!("\nnote: {note}"));
    let related = d.labels.iter().filter(|l| !l.span.is_none()).map(|l| DiagnosticRelatedInformation {
        location: Location::new(uri.clone(), text.range(l.span)),
        message: l.text.clone(),
    });
    let explained = codes::ALL.iter().any(|(code, ..)| *code == d.code);
    let href = Uri::from_str(&format!("{EXPLAIN_SCHEME}:{}", d.code)).ok();
    Some(Diagnostic {
        range: text.range(d.span),
        severity: Some(severity),
        code: Some(NumberOrString::String(d.code.to_string())),
        code_description: href.filter(|_| explained).map(|href| CodeDescription { href }),
        source: Some("tilec".to_owned()),
        message: std::iter::once(d.message.clone()).chain(label).chain(notes).collect(),
        related_information: Some(related.collect()),
        tags: None,
        data: None,
    })
}

/// A short title of a fix.
pub(crate) fn fix_title(text: Text<'_>, fix: &diag::Edit) -> String {
    let old = text.text.get(fix.span.start as usize..fix.span.end as usize).unwrap_or("");
    let means = fix.means.map_or(String::new(), |means| format!(" ({means})"));
    match (old, fix.new_text(text.text).trim()) {
        ("", new) => format!("insert `{new}`{means}"),
        (old, "") => format!("remove `{}`{means}", old.trim()),
        (old, new) => format!("replace `{old}` with `{new}`{means}"),
    }
}

pub(crate) fn edit(text: Text<'_>, fix: &diag::Edit) -> TextEdit {
    TextEdit::new(text.range(fix.span), fix.new_text(text.text))
}

pub(crate) fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

#[expect(deprecated, reason = "a field that has to be written")]
pub(crate) fn symbol(text: Text<'_>, declared: &Declared) -> DocumentSymbol {
    let kind = match declared.kind {
        Kind::Kernel => SymbolKind::FUNCTION,
        Kind::Sequence => SymbolKind::MODULE,
        Kind::ConstParam => SymbolKind::TYPE_PARAMETER,
        Kind::Param => SymbolKind::FIELD,
        Kind::Index => SymbolKind::NUMBER,
        Kind::Tile => SymbolKind::ARRAY,
        Kind::Let => SymbolKind::CONSTANT,
    };
    DocumentSymbol {
        name: declared.name.clone(),
        detail: Some(declared.detail.clone()),
        kind,
        tags: None,
        deprecated: None,
        range: text.range(declared.span),
        selection_range: text.range(declared.name_span),
        children: Some(declared.children.iter().map(|child| symbol(text, child)).collect()),
    }
}

pub(crate) fn completion(proposal: Proposal) -> CompletionItem {
    let kind = match proposal.kind {
        ProposalKind::Keyword => CompletionItemKind::KEYWORD,
        ProposalKind::Type => CompletionItemKind::CLASS,
        ProposalKind::Function => CompletionItemKind::FUNCTION,
        ProposalKind::Name => CompletionItemKind::VARIABLE,
    };
    let some = |text: String| (!text.is_empty()).then_some(text);
    CompletionItem {
        label: proposal.word,
        kind: Some(kind),
        detail: some(proposal.detail),
        documentation: some(proposal.doc).map(Documentation::String),
        ..CompletionItem::default()
    }
}

pub(crate) fn hint(text: Text<'_>, hint: Hint) -> InlayHint {
    InlayHint {
        position: text.position(hint.at),
        label: InlayHintLabel::String(hint.text),
        kind: hint.is_type.then_some(InlayHintKind::TYPE),
        text_edits: None,
        tooltip: None,
        padding_left: None,
        padding_right: None,
        data: None,
    }
}

/// The protocol's names of the kinds of tokens, in the order of [`TokenKind::ALL`].
pub(crate) fn token_name(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Comment => "comment",
        TokenKind::Keyword => "keyword",
        TokenKind::Type => "type",
        TokenKind::Function => "function",
        TokenKind::Number => "number",
        TokenKind::Operator => "operator",
        TokenKind::ConstParam => "typeParameter",
        TokenKind::Parameter => "parameter",
        TokenKind::Variable => "variable",
    }
}

/// Modifiers of tokens: the first is bit 0.
pub(crate) const TOKEN_MODIFIERS: [&str; 2] = ["declaration", "readonly"];

/// Tokens as differences of places; comments over several lines are one a line.
pub(crate) fn tokens(text: Text<'_>, words: &[ColouredWord]) -> Vec<SemanticToken> {
    let mut out = Vec::new();
    let mut last = Position::default();
    for word in words {
        let modifiers = u32::from(word.declares) | u32::from(word.constant) << 1;
        let kind = TokenKind::ALL.iter().position(|kind| *kind == word.kind).unwrap_or(0);
        let mut start = word.span.start as usize;
        let all = text.text.get(start..word.span.end as usize).unwrap_or("");
        for line in all.split_inclusive(['\n', '\r']) {
            let shown = line.trim_end_matches(['\n', '\r']);
            let at = text.position(start);
            start += line.len();
            let length = shown.encode_utf16().count() as u32;
            if length == 0 {
                continue;
            }
            let delta_line = at.line - last.line;
            out.push(SemanticToken {
                delta_line,
                delta_start: if delta_line == 0 { at.character - last.character } else { at.character },
                length,
                token_type: kind as u32,
                token_modifiers_bitset: modifiers,
            });
            last = at;
        }
    }
    out
}
