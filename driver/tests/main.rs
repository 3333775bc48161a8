//! Tests of the command, as its users call it.

mod bundle;
mod cli;
mod common;
mod explained;
mod grammars;
mod lsp;
mod measured;
mod run;
