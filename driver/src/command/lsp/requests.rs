//! Requests about one file.

use super::convert::{self, Text};
use super::open::Open;
use crate::Target;
use crate::editor::analysis::Analysis;
use crate::editor::decisions::Decisions;
use crate::editor::{complete, hints, hover, rename, symbols, tokens};
use crate::explain::explain;
use lsp_server::ErrorCode;
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentHighlightRequest, DocumentSymbolRequest, Formatting, GotoDefinition,
    HoverRequest, InlayHintRequest, PrepareRenameRequest, References, Rename, Request, SemanticTokensFullRequest,
};
use lsp_types::{
    CodeActionParams, DocumentHighlight, DocumentSymbolResponse, Hover, HoverContents, Location, Position,
    PrepareRenameResponse, SemanticTokens, TextEdit, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tilec_ir::diag::{Diagnostic, Sink, Span};
use tilec_ir::format::format;

/// Why there is no answer.
pub(crate) struct Refused {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refused {
    fn new(code: ErrorCode, message: impl Into<String>) -> Refused {
        Refused { code, message: message.into() }
    }
}

/// A file that is open, with what is decided of its text by now.
type Found<'a> = (&'a Open, Option<Arc<Decisions>>);

/// A request about a file.
struct FileRequest<'a> {
    uri: Uri,
    a: &'a Analysis,
    /// The target of a text that names none.
    target: Target,
    text: Text<'a>,
    decisions: Option<Arc<Decisions>>,
    params: Value,
}

impl FileRequest<'_> {
    /// The byte offset of the requested position.
    fn byte(&self) -> Result<usize, Refused> {
        read::<Position>(self.params["position"].clone()).map(|at| self.text.byte(at))
    }
}

/// Answers a request about a file.
type Answers = fn(&FileRequest<'_>) -> Result<Value, Refused>;

/// The answer to a request.
pub(crate) fn answer<'a>(
    find: &dyn Fn(&Uri) -> Option<Found<'a>>,
    method: &str,
    params: Value,
) -> Result<Value, Refused> {
    if method == "tilec/explain" {
        let word = params["word"].as_str().unwrap_or("");
        return explain(word).map(Value::from).map_err(|text| Refused::new(ErrorCode::InvalidParams, text.trim()));
    }
    // An unknown method is rejected, whatever its parameters are.
    let answers =
        about_file(method).ok_or_else(|| Refused::new(ErrorCode::MethodNotFound, format!("there is no `{method}`")))?;
    let uri: Uri = read(params.pointer("/textDocument/uri").cloned().unwrap_or_default())?;
    let (open, decisions) = find(&uri).ok_or_else(|| Refused::new(ErrorCode::InvalidParams, "the file is not open"))?;
    answers(&FileRequest {
        uri,
        a: &open.analysis,
        target: open.target,
        text: Text::of(&open.analysis),
        decisions,
        params,
    })
}

/// The handler of a request about a file; `None`: there is no such request.
fn about_file(method: &str) -> Option<Answers> {
    let answers: Answers = match method {
        Formatting::METHOD => |q| Ok(json!(formatted(q.a))),
        DocumentSymbolRequest::METHOD => |q| {
            let list = symbols::symbols(q.a).iter().map(|s| convert::symbol(q.text, s)).collect();
            Ok(json!(DocumentSymbolResponse::Nested(list)))
        },
        HoverRequest::METHOD => |q| {
            let found = hover::hover(q.a, q.decisions.as_deref(), q.byte()?);
            Ok(json!(found.map(|(said, span)| Hover {
                contents: HoverContents::Markup(convert::markdown(said)),
                range: Some(q.text.range(span)),
            })))
        },
        GotoDefinition::METHOD => |q| {
            let symbol = q.a.symbol_at(q.byte()?).map(|(symbol, _)| symbol);
            let place = |symbol| Location::new(q.uri.clone(), q.text.range(q.a.definition(symbol)));
            Ok(json!(symbol.map(place)))
        },
        References::METHOD => |q| {
            let declared = q.params.pointer("/context/includeDeclaration").and_then(Value::as_bool).unwrap_or(true);
            let places = all_places(q.a, q.byte()?, declared);
            let list = places.into_iter().map(|span| Location::new(q.uri.clone(), q.text.range(span)));
            Ok(json!(list.collect::<Vec<_>>()))
        },
        DocumentHighlightRequest::METHOD => |q| {
            let places = all_places(q.a, q.byte()?, true).into_iter();
            let list = places.map(|span| DocumentHighlight { range: q.text.range(span), kind: None });
            Ok(json!(list.collect::<Vec<_>>()))
        },
        PrepareRenameRequest::METHOD => |q| {
            let byte = q.byte()?;
            rename::places(q.a, byte).map_err(|why| Refused::new(ErrorCode::RequestFailed, why))?;
            let span = q.a.symbol_at(byte).map(|(_, span)| q.text.range(span));
            Ok(json!(span.map(PrepareRenameResponse::Range)))
        },
        Rename::METHOD => |q| {
            let name = q.params["newName"].as_str().unwrap_or("");
            let places = rename::rename(q.a, q.byte()?, name);
            let places = places.map_err(|why| Refused::new(ErrorCode::RequestFailed, why))?;
            let edits = places.into_iter().map(|span| TextEdit::new(q.text.range(span), name.to_owned()));
            Ok(json!({ "changes": { q.uri.as_str(): edits.collect::<Vec<_>>() } }))
        },
        Completion::METHOD => |q| {
            let list = complete::complete(q.a, q.byte()?, q.target).into_iter().map(convert::completion);
            Ok(json!(list.collect::<Vec<_>>()))
        },
        InlayHintRequest::METHOD => |q| {
            let range: lsp_types::Range = read(q.params["range"].clone())?;
            let (start, end) = (q.text.byte(range.start), q.text.byte(range.end));
            let list = hints::hints(q.a, q.decisions.as_deref()).into_iter();
            let list = list.filter(|h| (start..=end).contains(&h.at)).map(|h| convert::hint(q.text, h));
            Ok(json!(list.collect::<Vec<_>>()))
        },
        SemanticTokensFullRequest::METHOD => {
            |q| Ok(json!(SemanticTokens { result_id: None, data: convert::tokens(q.text, &tokens::tokens(q.a)) }))
        }
        CodeActionRequest::METHOD => |q| {
            let params: CodeActionParams = read(q.params.clone())?;
            let said = q.a.diagnostics.iter().chain(q.decisions.iter().flat_map(|d| &d.diagnostics));
            Ok(json!(actions(q.text, &q.uri, said, &params)))
        },
        _ => return None,
    };
    Some(answers)
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Refused> {
    serde_json::from_value(params).map_err(|e| Refused::new(ErrorCode::InvalidParams, e.to_string()))
}

/// The formatted text, if it is a program.
fn formatted(a: &Analysis) -> Option<Vec<TextEdit>> {
    let new = format(&a.text, &mut Sink::new()).ok()?;
    Some(if new == a.text { Vec::new() } else { vec![TextEdit::new(Text::of(a).whole(), new)] })
}

/// All occurrences of the name at a byte.
fn all_places(a: &Analysis, byte: usize, declared: bool) -> Vec<Span> {
    a.symbol_at(byte).map_or_else(Vec::new, |(symbol, _)| rename::all_places(a, symbol, declared))
}

/// The fixes of what is wrong in a range.
fn actions<'d>(
    text: Text<'_>,
    uri: &Uri,
    said: impl Iterator<Item = &'d Diagnostic>,
    params: &CodeActionParams,
) -> Vec<Value> {
    let wanted = params.context.only.as_ref().is_none_or(|kinds| kinds.iter().any(|k| k.as_str() == "quickfix"));
    let (start, end) = (text.byte(params.range.start), text.byte(params.range.end));
    let touches = |span: Span| span.start as usize <= end && start <= span.end as usize;
    let mut all: Vec<Value> = Vec::new();
    for d in said.filter(|_| wanted) {
        let Some(fix) = d.fix.as_ref().filter(|fix| touches(d.span) || touches(fix.span)) else { continue };
        let (title, edit) =
            (convert::fix_title(text, fix), json!({ "changes": { uri.as_str(): [convert::edit(text, fix)] } }));
        let mended = json!(convert::diagnostic(text, uri, d));
        // A change that mends several is one action.
        if let Some(action) = all.iter_mut().find(|action| action["title"] == title && action["edit"] == edit) {
            if let Some(list) = action["diagnostics"].as_array_mut().filter(|list| !list.contains(&mended)) {
                list.push(mended);
            }
            continue;
        }
        all.push(json!({
            "title": title,
            "kind": "quickfix",
            "isPreferred": fix.means.is_none(),
            "diagnostics": [mended],
            "edit": edit,
        }));
    }
    all
}
