//! Registers of a thread: how many it has ([`thread`]), how many its tiles need at peak pressure ([`pressure`]), how many
//! other values need and why ([`overhead`]), and which of these reasons the text of a kernel shows ([`code`]).
//!
//! `choose` uses this before passes have run, and fills [`overhead::Code`] from the values of a candidate. The warning of
//! spills (`schedule/spills.rs`) fills it from the text. Both use the same rows.

pub(crate) mod code;
pub(crate) mod overhead;
pub(crate) mod pressure;
pub(crate) mod thread;
pub(crate) mod tile_list;
