//! The launch contract: everything that a host needs to launch a kernel, as JSON (`docs/launch-contract.md`).
//!
//! serde writes and reads [`Contract`]. Every launch path works from the JSON alone, so that it must be complete.

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
