//! Parameters of launches in the driver's format.

use crate::cuda::TensorMap;

/// Parameters of a launch.
pub(super) struct ParamWords {
    pub(super) words: Vec<u64>,
    /// The tensor maps among them, in order, and the address for which each is there.
    pub(super) maps: Vec<(TensorMap, Option<u64>)>,
}

/// Parameters of the launches that were checked as one.
#[derive(Default)]
pub(super) struct Packed {
    /// Those of each launch.
    pub(super) words: Vec<ParamWords>,
    /// The addresses of the tensors that are in them.
    pub(super) addresses: Vec<u64>,
    /// Which rooms are in them, and how often these were made then. Nothing is packed where this is not set.
    pub(super) scratch: Option<(usize, u64)>,
}
