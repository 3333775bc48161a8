//! `tilec-launch`: kernels of tilec launched from their contracts (`docs/launch-contract.md`). The runtime alone: no compiler,
//! and no file or process is touched.

pub mod bind;
pub mod contract;
pub mod dispatch;
pub mod program;
pub mod runs;
pub mod tensor_map;

pub use bind::{Args, Number};
pub use contract::Contract;
