//! Questions of an editor about a source text: names, places, types, decisions of the passes. It knows no protocol; `command/lsp` speaks one.

pub mod analysis;
pub mod complete;
pub mod decisions;
pub mod hints;
pub mod hover;
pub mod lines;
pub mod rename;
pub mod symbols;
pub mod tokens;
