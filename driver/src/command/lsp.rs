//! `tilec lsp`: the language server. This folder reads and answers messages; the answers come from [`crate::editor`].
//!
//! One thread reads messages and answers them in order, each in milliseconds. Another thread compiles the newest text
//! of each file, and publishes the diagnostics if the text is still the newest ([`worker`]). Results that need an
//! assembler follow when no text waits for compilation.

mod convert;
mod open;
mod requests;
mod server;
mod stream;
mod worker;

use crate::CompileOptions;
use crate::command::args::Lsp;
use crate::command::failure::Failure;
use crate::output::write_stderr;
use lsp_server::Connection;
use server::{Server, Settings};

/// Serves until the client says `exit`.
pub(crate) fn lsp_command(args: &Lsp) -> Result<(), Failure> {
    let (connection, writer) = stream::connection();
    let options = CompileOptions { target: args.target, verify_each: false, ..CompileOptions::default() };
    let served = serve(&connection, options);
    // Its sender is the last one, so what was sent is written before the end.
    drop(connection);
    let written = writer.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread that writes has failed")));
    let served = served.and_then(|ended| written.map(|()| ended).map_err(|e| e.to_string()));
    match served {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Said),
        Err(message) => {
            write_stderr(&format!("error: the connection to the editor: {message}\n"));
            Err(Failure::Said)
        }
    }
}

/// Whether the client shut the server down before it left.
fn serve(connection: &Connection, options: CompileOptions) -> Result<bool, String> {
    let (id, params) = connection.initialize_start().map_err(|e| e.to_string())?;
    let mut settings = Settings { options, refreshes_hints: false };
    settings.initialize(&params);
    let answer = serde_json::json!({
        "capabilities": server::capabilities(),
        "serverInfo": { "name": "tilec", "version": env!("CARGO_PKG_VERSION") },
    });
    connection.initialize_finish(id, answer).map_err(|e| e.to_string())?;
    let sender = connection.sender.clone();
    let mut server = Server::new(settings, Box::new(move |message| sender.send(message).is_ok()));
    let ended = server.serve(&connection.receiver);
    server.stop();
    Ok(ended)
}
