//! Open files, and general requests of the client.

use super::convert::{TOKEN_MODIFIERS, token_name};
use super::open::{BUG, Open};
use super::requests;
use super::worker::{Job, Send, Worker};
use crate::editor::analysis::Analysis;
use crate::editor::decisions::fitting;
use crate::editor::tokens::TokenKind;
use crate::{CompileOptions, Target};
use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeConfiguration, DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _,
};
use lsp_types::{
    DidChangeConfigurationParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the client set.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Options for compiling texts.
    pub(crate) options: CompileOptions,
    /// Whether the client supports requests to refresh its hints.
    pub(crate) refreshes_hints: bool,
}

impl Settings {
    /// Applies the parameters of `initialize`. Unknown ones are ignored.
    pub(crate) fn initialize(&mut self, params: &Value) {
        let refreshes = params.pointer("/capabilities/workspace/inlayHint/refreshSupport");
        self.refreshes_hints = refreshes.and_then(Value::as_bool).unwrap_or(false);
        self.set(&params["initializationOptions"]);
    }

    /// Takes `{"target": "sm_90a", "defines": {"BM": 128}, "sizes": {"M": 4096}}`; false: the target is none.
    fn set(&mut self, settings: &Value) -> bool {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(defines) = settings["defines"].as_object() {
            self.options.defines = defines.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        }
        if let Some(sizes) = settings["sizes"].as_object() {
            let sizes: Vec<_> = sizes.iter().filter_map(|(name, n)| Some((name.clone(), n.as_i64()?))).collect();
            self.options.sizes = if sizes.is_empty() { Vec::new() } else { vec![sizes] };
        }
        let Some(name) = settings["target"].as_str() else { return true };
        match Target::from_name(name) {
            Some(target) => self.options.target = target,
            None => return false,
        }
        true
    }

    /// Those that fit a text, as the client writes them.
    fn of(&self, text: &str) -> Value {
        let options = fitting(text, &self.options);
        let defines: serde_json::Map<String, Value> =
            options.defines.into_iter().map(|(name, value)| (name, value.into())).collect();
        let sizes: serde_json::Map<String, Value> =
            options.sizes.into_iter().flatten().map(|(name, n)| (name, n.into())).collect();
        json!({ "target": options.target.name(), "defines": defines, "sizes": sizes })
    }
}

/// A server between `initialize` and `exit`.
pub(crate) struct Server {
    settings: Settings,
    worker: Worker,
    files: BTreeMap<String, Open>,
    /// Texts so far.
    versions: u64,
    shut_down: bool,
}

impl Server {
    pub(crate) fn new(settings: Settings, send: Send) -> Server {
        let worker = Worker::new(send, settings.refreshes_hints);
        Server { settings, worker, files: BTreeMap::new(), versions: 0, shut_down: false }
    }

    /// Answers messages until the client leaves. Returns whether the client announced it.
    pub(crate) fn serve(&mut self, messages: impl IntoIterator<Item = Message>) -> bool {
        for message in messages {
            match message {
                Message::Notification(n) if n.method == "exit" => return self.shut_down,
                Message::Notification(n) => self.notified(n),
                Message::Request(request) => {
                    let response = self.answer(request);
                    self.worker.send(response.into());
                }
                Message::Response(_) => {}
            }
        }
        false
    }

    /// Sends nothing more, and waits for a compilation that runs.
    pub(crate) fn stop(&mut self) {
        self.worker.stop();
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        if self.shut_down {
            return Response::new_err(id, ErrorCode::InvalidRequest as i32, "the server is shut down".to_owned());
        }
        if method == "shutdown" {
            self.shut_down = true;
            return Response::new_ok(id, Value::Null);
        }
        if method == "tilec/settings" {
            let open = params.pointer("/textDocument/uri").and_then(Value::as_str).and_then(|uri| self.files.get(uri));
            return match open {
                Some(open) => Response::new_ok(id, self.settings.of(&open.analysis.text)),
                None => Response::new_err(id, ErrorCode::InvalidParams as i32, "the file is not open".to_owned()),
            };
        }
        let files = &self.files;
        let worker = &self.worker;
        let find = |uri: &Uri| {
            let file = files.get(uri.as_str())?;
            Some((file, worker.decisions(uri)))
        };
        match catch_unwind(AssertUnwindSafe(|| requests::answer(&find, &method, params))) {
            Ok(Ok(value)) => Response::new_ok(id, value),
            Ok(Err(refused)) => Response::new_err(id, refused.code as i32, refused.message),
            Err(_) => Response::new_err(id, ErrorCode::InternalError as i32, BUG.to_owned()),
        }
    }

    fn notified(&mut self, n: Notification) {
        match n.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(p) = self.read::<DidOpenTextDocumentParams>(n) {
                    let document = p.text_document;
                    self.changed(document.uri, Some(document.version), &document.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(p) = self.read::<DidChangeTextDocumentParams>(n) {
                    // Whole texts were requested: the last one is the text.
                    if p.content_changes.iter().any(|change| change.range.is_some()) {
                        self.say("a change of a part of the text is not taken: whole texts were asked for");
                    } else if let Some(change) = p.content_changes.into_iter().next_back() {
                        self.changed(p.text_document.uri, Some(p.text_document.version), &change.text);
                    }
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(p) = self.read::<DidCloseTextDocumentParams>(n) {
                    self.files.remove(p.text_document.uri.as_str());
                    self.worker.closed(&p.text_document.uri);
                }
            }
            DidChangeConfiguration::METHOD => {
                if let Some(p) = self.read::<DidChangeConfigurationParams>(n) {
                    self.configured(&p.settings);
                }
            }
            _ => {}
        }
    }

    /// The parameters of a notification. If they are malformed, the client gets an error message.
    fn read<P: DeserializeOwned>(&self, n: Notification) -> Option<P> {
        match serde_json::from_value(n.params) {
            Ok(params) => Some(params),
            Err(e) => {
                self.say(&format!("`{}`: {e}", n.method));
                None
            }
        }
    }

    fn say(&self, message: &str) {
        let params = json!({ "type": 1, "message": format!("tilec: {message}") });
        self.worker.send(Notification::new("window/showMessage".to_owned(), params).into());
    }

    fn configured(&mut self, settings: &Value) {
        let settings = settings.get("tilec").unwrap_or(settings);
        if !self.settings.set(settings) {
            let names: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
            self.say(&format!("the targets are {}", names.join(", ")));
        }
        let open: Vec<_> =
            self.files.values().map(|f| (f.uri.clone(), f.editor_version, f.analysis.text.clone())).collect();
        for (uri, version, text) in open {
            self.changed(uri, version, &text);
        }
    }

    fn changed(&mut self, uri: Uri, editor_version: Option<i32>, text: &str) {
        self.versions += 1;
        let earlier = self.files.get(uri.as_str()).map(|file| &file.analysis);
        let Ok(analysis) = catch_unwind(AssertUnwindSafe(|| Analysis::after(text, earlier))) else {
            self.say(BUG);
            return;
        };
        let mut options = self.settings.options.clone();
        let target = options.target;
        options.source_name = uri.path().as_str().rsplit('/').next().unwrap_or("input.tile").to_owned();
        let job = Job { uri: uri.clone(), version: self.versions, text: text.to_owned(), options };
        self.worker.changed(job, editor_version, &analysis.diagnostics, analysis.whole);
        self.files.insert(uri.as_str().to_owned(), Open { uri, analysis, target, editor_version });
    }
}

/// The server's capabilities.
pub(crate) fn capabilities() -> Value {
    let kinds: Vec<&str> = TokenKind::ALL.iter().map(|kind| token_name(*kind)).collect();
    json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": { "openClose": true, "change": 1 },
        "documentFormattingProvider": true,
        "documentSymbolProvider": true,
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "renameProvider": { "prepareProvider": true },
        "completionProvider": { "triggerCharacters": [":", "<", "|", "."] },
        "inlayHintProvider": true,
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "semanticTokensProvider": {
            "legend": { "tokenTypes": kinds, "tokenModifiers": TOKEN_MODIFIERS },
            "full": true,
        },
    })
}
