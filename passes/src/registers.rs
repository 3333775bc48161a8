//! Registers of a thread, in four questions: what it has ([`thread`]), what its tiles take where most live at once ([`held`]), what code takes beside
//! them and why ([`beside`]), and what of that the text of a kernel shows ([`code`]).
//!
//! `choose` asks before passes have run and fills [`beside::Code`] from the values of a candidate; the warning of spills (`schedule/spills.rs`) fills it
//! from the text. What goes with the tiles follows from the same rows.

pub(crate) mod beside;
pub(crate) mod code;
pub(crate) mod held;
pub(crate) mod thread;
