//! The `tilec` command and its subcommands.

pub(crate) mod args;
pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod bundle;
pub(crate) mod doctor;
pub(crate) mod failure;
pub(crate) mod fmt;
pub(crate) mod header;
pub(crate) mod lsp;
pub(crate) mod run;
pub(crate) mod tune;
pub(crate) mod why;
pub(crate) mod xray;
