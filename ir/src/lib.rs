//! tilec-ir: the tile language.
pub mod layout;
