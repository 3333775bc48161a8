//! The launch contract: what a host needs to launch a kernel, as JSON (`docs/launch-contract.md`).
//!
//! [`Contract`] is written and read back with serde. Whatever launches a kernel works from the JSON alone, so that nothing a
//! kernel needs can be missing from it.

pub mod distinct;
pub mod encode;
pub mod expr;
mod file;
pub mod flat;
mod form;
pub mod hash;
pub mod json;
mod mark;
pub mod number;
#[cfg(test)]
pub(crate) mod tests;
pub mod version;

pub use file::{Case, ContractError, Dispatch, LaunchFile, Program, SCHEMA_VARIANTS, Temporary, to_json};
pub use form::{
    Access, Contract, Dimension, I64, Im2colParam, MAP_ADDRESS_BYTES, MAP_BYTES, Param, ParamKind, SCHEMA,
    SCHEMA_ENDED, Scratch, TensorMapParam, TensorParam, U32,
};
