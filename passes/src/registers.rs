//! Registers of a thread: how many it has ([`thread`]), how many its tiles need at peak pressure ([`held`]), how many
//! other values need and why ([`beside`]), and which of these reasons the text of a kernel shows ([`code`]).
//!
//! `choose` uses this before passes have run, and fills [`beside::Code`] from the values of a candidate. The warning of
//! spills (`schedule/spills.rs`) fills it from the text. Both use the same rows.

pub(crate) mod beside;
pub(crate) mod code;
pub(crate) mod held;
pub(crate) mod listed;
pub(crate) mod thread;
