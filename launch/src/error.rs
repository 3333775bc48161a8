//! Why a kernel was not loaded or launched.

use crate::bind::BindError;
use crate::bundle::BundleError;
#[cfg(feature = "cuda")]
use crate::cuda::CudaError;
use crate::dispatch::Refused;
use crate::remedies::no_variant;
use std::fmt;
use thiserror::Error;

/// Why a kernel was not loaded or launched. `Debug` is the same text as `Display`, because `main` and `unwrap` print that form.
#[derive(Error)]
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

impl fmt::Debug for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_prints_the_sentence() {
        let error =
            LaunchError::Tensor { name: "Z".to_owned(), what: "its memory has 16 bytes, expected 24".to_owned() };
        assert_eq!(format!("{error:?}"), "tensor `Z`: its memory has 16 bytes, expected 24");
        let error = LaunchError::Bundle(BundleError::NoImage { major: 7, minor: 5, targets: "sm_80".to_owned() });
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}
