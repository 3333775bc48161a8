//! The launch contract: everything that a host needs to launch a kernel, as JSON (`docs/launch-contract.md`).
//!
//! serde writes and reads [`Contract`]. Every launch path works from the JSON alone, so that it must be complete.

pub mod distinct_elements;
pub mod encode;
pub mod expr;
mod file;
pub mod hash;
pub mod json;
pub mod number;
mod ptx_comment;
mod requirements;
pub mod stack_code;
#[cfg(test)]
pub(crate) mod tests;
pub mod version;

pub use file::{Case, ContractError, Dispatch, LaunchFile, Program, SCHEMA_VARIANTS, Temporary, to_json};
pub use requirements::{
    Access, Contract, Dimension, I64, Im2colParam, MAP_ADDRESS_BYTES, MAP_BYTES, Param, ParamKind, SCHEMA,
    SCHEMA_ENDED, Scratch, TensorMapParam, TensorParam, U32,
};
