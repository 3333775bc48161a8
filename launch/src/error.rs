//! Why a kernel was not loaded or launched.

use crate::bind::BindError;
use crate::bundle::BundleError;
#[cfg(feature = "cuda")]
use crate::cuda::CudaError;
use crate::dispatch::Refused;
use crate::remedies::no_variant;
use thiserror::Error;

/// Why a kernel was not loaded or launched.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The arguments break the contract.
    #[error("{}", lines(.0))]
    Bind(Vec<BindError>),
    /// Kernels that are no program together, or a launcher that is not for them.
    #[error("{0}")]
    Misfit(String),
    /// No variant fits.
    #[error("{}", no_variant(nearest, why))]
    NoVariant {
        /// The description of the nearest variant.
        nearest: String,
        /// The conditions that it fails.
        why: String,
    },
    /// A tensor of the contract was not given, or does not fit.
    #[error("tensor `{name}`: {what}")]
    Tensor {
        /// The tensor.
        name: String,
        /// The error in it.
        what: String,
    },
    /// The bundle is none, or has nothing for the device.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The driver refused.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The simulator's report.
    #[error("{0}")]
    Simulator(String),
}

impl From<Refused> for LaunchError {
    fn from(refused: Refused) -> LaunchError {
        LaunchError::NoVariant { nearest: refused.variant, why: refused.why.join("; ") }
    }
}

fn lines(errors: &[BindError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl LaunchError {
    /// An error about a tensor.
    #[cfg(any(feature = "cuda", feature = "sim"))]
    pub(crate) fn tensor(name: &str, what: impl Into<String>) -> LaunchError {
        LaunchError::Tensor { name: name.to_owned(), what: what.into() }
    }
}
