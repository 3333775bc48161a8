//! Messages on standard input and output. A malformed message gets a JSON-RPC error, and reading continues.

use lsp_server::{Connection, ErrorCode, Message};
use serde_json::{Value, json};
use std::io::{BufRead, Read as _, Write as _, stdin, stdout};
use std::thread::{JoinHandle, spawn};

/// The server's end, and the thread that writes: it ends when no sender of the connection is left and all is written.
pub(crate) fn connection() -> (Connection, JoinHandle<std::io::Result<()>>) {
    let (server, Connection { sender, receiver }) = Connection::memory();
    // It waits for input until the process ends.
    spawn(move || {
        let mut input = stdin().lock();
        while let Ok(Some(body)) = body(&mut input) {
            let open = match message(&body) {
                Ok(message) => sender.send(message).is_ok(),
                Err(answer) => refuse(&answer).is_ok(),
            };
            if !open {
                return;
            }
        }
    });
    let writer = spawn(move || receiver.into_iter().try_for_each(|message| message.write(&mut stdout().lock())));
    (server, writer)
}

/// The body of the next message; empty of one whose header has no length. `None`: the input has ended.
fn body(input: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line).to_ascii_lowercase();
        if line.trim().is_empty() {
            break;
        }
        // After a body of unknown length the next header may begin within a line.
        if let Some((_, n)) = line.rsplit_once("content-length:") {
            length = n.trim().parse::<u64>().ok();
        }
    }
    let mut body = Vec::new();
    input.take(length.unwrap_or(0)).read_to_end(&mut body)?;
    Ok(Some(body))
}

/// A message, or the error response for malformed input.
fn message(body: &[u8]) -> Result<Message, Value> {
    let answer = |id: &Value, code: ErrorCode, why: String| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code as i32, "message": why } });
    let value: Value =
        serde_json::from_slice(body).map_err(|e| answer(&Value::Null, ErrorCode::ParseError, e.to_string()))?;
    let id = value["id"].clone();
    serde_json::from_value(value).map_err(|_| {
        answer(&id, ErrorCode::InvalidRequest, "neither a request, a response nor a notification".to_owned())
    })
}

fn refuse(answer: &Value) -> std::io::Result<()> {
    let (body, mut out) = (answer.to_string(), stdout().lock());
    write!(out, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_refused_by_its_kind() {
        let code = |body: &str| message(body.as_bytes()).expect_err(body)["error"]["code"].clone();
        assert_eq!(code("{abc}"), -32700);
        assert_eq!(code(""), -32700);
        for none in ["[]", "null", "{\"jsonrpc\":\"2.0\"}"] {
            assert_eq!(code(none), -32600, "{none}");
        }
        assert!(message(b"{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}").is_ok());
    }

    #[test]
    fn reading_goes_on_behind_a_header_without_a_length() {
        let mut input =
            &b"Content-Type: x\r\n\r\n{\"a\": 1}Content-Length: 2\r\n\r\n[]content-length: 3\r\n\r\nabc"[..];
        let all: Vec<Vec<u8>> = std::iter::from_fn(|| body(&mut input).expect("it is in memory")).collect();
        assert_eq!(all, [&b""[..], b"[]", b"abc"]);
    }
}
