//! Layout algebra: where the elements of a tile live, as data to print, compare and prove things about.
//!
//! Two notations with conversions between them:
//! * [`F2Map`]: a linear map over the two-element field, one column per input bit. Everything the
//!   compiler *decides* (bijectivity, access width, bank conflicts, swizzles) is a rank of such a map.
//! * [`CuteLayout`]: nested `shape:stride`, with an optional [`Swizzle`]; what people write and read.
//!   Extents of any size exist only here.
//!
//! [`RegLayout`] and [`SmemLayout`] are the two uses the IR makes of them, with a text form each;
//! `access` proves facts about memory accesses and `search` finds the cheapest conflict-free layout.
//!
//! Extents that are no powers of two are rounded up, and what is beyond them is not there (`extents`). Panels of such tiles in shared memory
//! follow one another at a distance that is not a power of two ([`Pitch`]).
//!
//! Invariants: no map has more than 63 input or output bits; every operation is total (an
//! impossible request is `None` or an error with a reason) and deterministic. Depends on std only.

pub mod access;
pub mod convert;
pub mod cute;
mod cute_algebra;
mod cute_text;
mod exchange;
pub mod extents;
pub mod f2;
pub mod hardware;
pub mod matrix;
mod reduction;
pub mod search;
pub mod smem;
mod sorting;
pub mod swizzle;
pub mod tile;
mod tile_text;

#[cfg(test)]
mod tests;

pub use access::{Wavefronts, wavefronts_by_enumeration, wavefronts_by_rank, widest_vector};
pub use convert::{cute_to_f2, f2_to_cute, swizzled_to_f2};
pub use cute::{CuteLayout, IntTuple, LayoutError, LayoutParseError};
pub use cute_text::{parse_cute, parse_cute_prefix};
pub use exchange::{Gather, Reach};
pub use extents::{UsedRegisters, extent_bits, shape_bits};
pub use f2::F2Map;
pub use reduction::{NoReduction, Reduction, ScanBit};
pub use search::{PhaseAccess, XorSearch, search_xor, search_xor_terms};
pub use smem::{Pitch, SmemLayout};
pub use sorting::Comparison;
pub use swizzle::{Swizzle, parse_swizzle, parse_swizzle_prefix};
pub use tile::{RegLayout, drop_dims};
pub use tile_text::{parse_reg_layout, parse_reg_layout_prefix, parse_smem_layout, parse_smem_layout_prefix};
