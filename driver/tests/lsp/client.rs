//! A client of `tilec lsp`: starts it, frames messages, sorts answers from what the server says by itself.

use crate::common::command;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// No answer takes as long.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Notifications that nobody has requested yet.
    notified: VecDeque<Value>,
    requests: i64,
}

impl Client {
    /// A client after `initialize`, with these options.
    pub(crate) fn new(options: Value) -> Client {
        Client::bare().initialized(options)
    }

    /// The client after `initialize`, with these options.
    pub(crate) fn initialized(self, options: Value) -> Client {
        let mut client = self;
        let capabilities = json!({ "workspace": { "inlayHint": { "refreshSupport": true } } });
        let answer = client.request(
            "initialize",
            json!({ "processId": null, "rootUri": null, "capabilities": capabilities, "initializationOptions": options }),
        );
        assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
        client.notify("initialized", json!({}));
        client
    }

    /// A client in front of `initialize`.
    pub(crate) fn bare() -> Client {
        Client::of(&mut command())
    }

    /// A client of the server that a command starts.
    pub(crate) fn of(command: &mut Command) -> Client {
        let mut child = command
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("tilec starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut out) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Client { child, stdin, messages, notified: VecDeque::new(), requests: 0 }
    }

    pub(crate) fn raw(&mut self, body: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
        stdin.flush().expect("the server reads");
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.raw(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// The whole answer to a request.
    pub(crate) fn answer(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.raw(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
        }
    }

    /// The result of a request that succeeds.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The message of a request that is refused.
    pub(crate) fn refusal(&mut self, method: &str, params: Value) -> String {
        let answer = self.answer(method, params);
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{method}: {answer}")).to_owned()
    }

    /// The code of the next answer that is of no request.
    pub(crate) fn error(&mut self) -> i64 {
        loop {
            let message = self.next();
            if message.get("method").is_none() {
                assert_eq!(message["id"], Value::Null, "{message}");
                return message["error"]["code"].as_i64().unwrap_or_else(|| panic!("{message}"));
            }
        }
    }

    /// The next message; notifications are kept, and requests of the server are answered.
    fn next(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("the server says something");
        self.taken(&message);
        message
    }

    /// Keeps a notification, and answers a request of the server.
    fn taken(&mut self, message: &Value) {
        if message.get("method").is_some() {
            match message.get("id") {
                Some(id) => {
                    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": null });
                    self.raw(&answer.to_string());
                }
                None => self.notified.push_back(message.clone()),
            }
        }
    }

    /// The parameters of the next notification of a kind; others in front of it are forgotten.
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        loop {
            while let Some(message) = self.notified.pop_front() {
                if message["method"] == method {
                    return message["params"].clone();
                }
            }
            self.next();
        }
    }

    /// Opens a file; what is published of it at once.
    pub(crate) fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": "tile", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
        self.published(uri)
    }

    /// What is published next of a file.
    pub(crate) fn published(&mut self, uri: &str) -> Vec<Value> {
        loop {
            let params = self.notification("textDocument/publishDiagnostics");
            if params["uri"] == uri {
                return params["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    /// Waits until something more is published of a file; whether it was.
    pub(crate) fn publishes(&mut self, uri: &str) -> bool {
        loop {
            while let Some(message) = self.notified.pop_front() {
                if message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri {
                    return true;
                }
            }
            let Ok(message) = self.messages.recv_timeout(PATIENCE) else { return false };
            self.taken(&message);
        }
    }

    /// What is published of a file once it is so much.
    pub(crate) fn last_published(&mut self, uri: &str, count: usize) -> Vec<Value> {
        let mut found = self.published(uri);
        while found.len() != count {
            found = self.published(uri);
        }
        found
    }

    /// Says goodbye as it should be said; the status of the server.
    pub(crate) fn leave(mut self) -> Option<i32> {
        assert_eq!(self.request("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.status()
    }

    /// Closes the server's input; its status.
    pub(crate) fn status(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().expect("it ends").code()
    }
}

fn read(out: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if out.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => {
                if let Some(n) = line.strip_prefix("Content-Length: ") {
                    length = n.parse().ok();
                }
            }
        }
    }
    let mut body = vec![0; length?];
    out.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
