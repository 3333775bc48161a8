//! A C header of a file of kernels: PTX for one target or several, and a launcher of each kernel on the CUDA driver API alone.
//!
//! All that a launch needs is read off the launch contract (`docs/launch-contract.md`) and written down as C99 that is C++ too: preconditions,
//! the grid, tensor maps, which variant to launch, the launches of a program. `docs/c.md` is the manual of the header.
//!
//! [`bundle_reader`] is a header that launches from bundles by their launch tables, with the same functions.

mod arithmetic;
mod body;
mod bundle;
mod entry;
mod file;
mod image;
mod interface;
mod map;
mod messages;
mod program;
mod text;

pub use bundle::bundle_reader;
pub use file::header;
pub use image::Image;
pub use interface::HeaderError;
