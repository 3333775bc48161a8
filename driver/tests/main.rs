//! Tests of the command, as its users call it.

mod cli;
mod common;
mod grammars;
mod lsp;
mod run;
