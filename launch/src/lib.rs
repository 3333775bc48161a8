//! `tilec-launch`: launches kernels of tilec from their contracts (`docs/launch-contract.md`). This is the runtime, without compiler,
//! and it accesses no files or processes. `docs/rust.md` has examples.
//!
//! * [`Device`], [`Module`] and [`Kernel`] launch kernels from a [`Bundle`], with [`Tensor`]s whose types have element type,
//!   rank and access. They run on a GPU (feature `cuda`, on by default), or on the simulator with slices of the host (feature
//!   `sim`), for tests without a GPU. The launchers of `tilec-build` use them.
//! * `loaded_kernel` launches from contracts by names.
//! * `cuda` is the driver API, the only module with `unsafe`.

pub mod bind;
pub mod bundle;
mod caller_arguments;
pub mod contract;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod dispatch;
pub mod element_runs;
mod error;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod kernel;
#[cfg(feature = "cuda")]
pub mod loaded_kernel;
pub mod overlap;
pub mod program;
pub mod remedies;
#[cfg(feature = "sim")]
pub mod simulator;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod stream;
#[cfg(any(feature = "cuda", feature = "sim"))]
mod tensor;
pub mod tensor_map;

pub use bind::{Args, Number};
pub use bundle::Bundle;
pub use contract::Contract;
pub use error::LaunchError;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use kernel::{Device, Kernel, Module};
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use stream::StreamRef;
#[cfg(any(feature = "cuda", feature = "sim"))]
pub use tensor::{Argument, Holds, Host, MAX_RANK, Tensor, TensorMut, element};
pub use tilec_core::elem::Elem;
