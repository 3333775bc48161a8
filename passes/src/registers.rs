//! Registers of a thread. [`thread`] says how many it has, [`pressure`] how many its tiles need at peak pressure, and
//! [`overhead`] how many other values need and why. [`code`] finds these reasons in the text of a kernel.
//!
//! `choose` uses this before passes have run, and fills [`overhead::Code`] from the values of a candidate. The warning of
//! spills (`schedule/spills.rs`) fills it from the text. Both use the same rows.

pub(crate) mod code;
pub(crate) mod overhead;
pub(crate) mod pressure;
pub(crate) mod thread;
pub(crate) mod tile_list;
