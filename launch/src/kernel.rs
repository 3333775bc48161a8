//! Kernels launched with typed tensors: on a GPU through the driver API, or on the simulator with tensors of the host.
//!
//! What does not change from launch to launch is done when a kernel is loaded: expressions of the contract become flat code
//! over numbered values, limits and parameters are compared with the function's. What a launch refuses is worked out again
//! by [`bind`](crate::bind), which says all that is wrong.

mod compact;
mod device;
mod device_kernel;
mod launch_cache;
#[cfg(feature = "cuda")]
mod on_cuda;
#[cfg(feature = "sim")]
mod on_simulator;
#[cfg(feature = "cuda")]
mod packed_params;
mod plan;
mod sequence;
mod shapes;
mod table;

pub use device::{Device, Module};
pub use device_kernel::Kernel;
