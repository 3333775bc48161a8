//! Requests about one file.

use super::convert::{self, Text};
use super::open::Open;
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
    let uri: Uri = read(params.pointer("/textDocument/uri").cloned().unwrap_or_default())?;
    let (open, decisions) = find(&uri).ok_or_else(|| Refused::new(ErrorCode::InvalidParams, "the file is not open"))?;
    let (a, text) = (&open.analysis, Text::of(&open.analysis));
    let byte = || read::<Position>(params["position"].clone()).map(|at| text.byte(at));
    match method {
        Formatting::METHOD => Ok(json!(formatted(a))),
        DocumentSymbolRequest::METHOD => {
            let list = symbols::symbols(a).iter().map(|s| convert::symbol(text, s)).collect();
            Ok(json!(DocumentSymbolResponse::Nested(list)))
        }
        HoverRequest::METHOD => {
            let found = hover::hover(a, decisions.as_deref(), byte()?);
            Ok(json!(found.map(|(said, span)| Hover {
                contents: HoverContents::Markup(convert::markdown(said)),
                range: Some(text.range(span)),
            })))
        }
        GotoDefinition::METHOD => {
            let symbol = a.symbol_at(byte()?).map(|(symbol, _)| symbol);
            Ok(json!(symbol.map(|symbol| Location::new(uri, text.range(a.definition(symbol))))))
        }
        References::METHOD => {
            let declared = params.pointer("/context/includeDeclaration").and_then(Value::as_bool).unwrap_or(true);
            let places = all_places(a, byte()?, declared);
            let list = places.into_iter().map(|span| Location::new(uri.clone(), text.range(span)));
            Ok(json!(list.collect::<Vec<_>>()))
        }
        DocumentHighlightRequest::METHOD => {
            let places = all_places(a, byte()?, true).into_iter();
            let list = places.map(|span| DocumentHighlight { range: text.range(span), kind: None });
            Ok(json!(list.collect::<Vec<_>>()))
        }
        PrepareRenameRequest::METHOD => {
            let byte = byte()?;
            rename::places(a, byte).map_err(|why| Refused::new(ErrorCode::RequestFailed, why))?;
            let span = a.symbol_at(byte).map(|(_, span)| text.range(span));
            Ok(json!(span.map(PrepareRenameResponse::Range)))
        }
        Rename::METHOD => {
            let name = params["newName"].as_str().unwrap_or("");
            let places = rename::rename(a, byte()?, name).map_err(|why| Refused::new(ErrorCode::RequestFailed, why))?;
            let edits = places.into_iter().map(|span| TextEdit::new(text.range(span), name.to_owned()));
            Ok(json!({ "changes": { uri.as_str(): edits.collect::<Vec<_>>() } }))
        }
        Completion::METHOD => {
            let list = complete::complete(a, byte()?).into_iter().map(convert::completion);
            Ok(json!(list.collect::<Vec<_>>()))
        }
        InlayHintRequest::METHOD => {
            let range: lsp_types::Range = read(params["range"].clone())?;
            let (start, end) = (text.byte(range.start), text.byte(range.end));
            let list = hints::hints(a, decisions.as_deref()).into_iter();
            let list = list.filter(|h| (start..=end).contains(&h.at)).map(|h| convert::hint(text, h));
            Ok(json!(list.collect::<Vec<_>>()))
        }
        SemanticTokensFullRequest::METHOD => {
            Ok(json!(SemanticTokens { result_id: None, data: convert::tokens(text, &tokens::tokens(a)) }))
        }
        CodeActionRequest::METHOD => {
            let params: CodeActionParams = read(params.clone())?;
            let said = a.diagnostics.iter().chain(decisions.iter().flat_map(|d| &d.diagnostics));
            Ok(json!(actions(text, &uri, said, &params)))
        }
        _ => Err(Refused::new(ErrorCode::MethodNotFound, format!("there is no `{method}`"))),
    }
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Refused> {
    serde_json::from_value(params).map_err(|e| Refused::new(ErrorCode::InvalidParams, e.to_string()))
}

/// The text as it should stand, if it is a program.
fn formatted(a: &Analysis) -> Option<Vec<TextEdit>> {
    let new = format(&a.text, &mut Sink::new()).ok()?;
    Some(if new == a.text { Vec::new() } else { vec![TextEdit::new(Text::of(a).whole(), new)] })
}

/// Where the name at a byte is written.
fn all_places(a: &Analysis, byte: usize, declared: bool) -> Vec<Span> {
    let Some((symbol, _)) = a.symbol_at(byte) else { return Vec::new() };
    let mut places = a.uses(symbol);
    if declared {
        places.push(a.definition(symbol));
        places.sort();
        places.dedup();
    }
    places
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
        let action = json!({
            "title": convert::fix_title(text, fix),
            "kind": "quickfix",
            "isPreferred": fix.means.is_none(),
            "diagnostics": [convert::diagnostic(text, uri, d)],
            "edit": { "changes": { uri.as_str(): [convert::edit(text, fix)] } },
        });
        if !all.contains(&action) {
            all.push(action);
        }
    }
    all
}
