//! The launch contract: what a host needs to launch a kernel, as JSON (`docs/launch-contract.md`).
//!
//! The emitter's [`Launch`](tilec_ptx::launch::Launch) is turned into [`Contract`], which is written and read back with serde. Our own runner works
//! from the JSON alone, so that nothing a kernel needs can be missing from it.

pub mod distinct;
pub mod encode;
pub mod expr;
mod file;
mod form;
pub(crate) mod hash;
pub(crate) mod json;
pub mod launch_file;
mod made;
pub(crate) mod number;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod version;

pub use file::{Case, ContractError, Dispatch, LaunchFile, Program, SCHEMA_VARIANTS, Temporary, to_json};
pub use form::{
    Access, Contract, Dimension, I64, Im2colParam, Param, ParamKind, SCHEMA, Scratch, TensorMapParam, TensorParam, U32,
};
pub(crate) use form::{MAP_ADDRESS_BYTES, MAP_BYTES};
