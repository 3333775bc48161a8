//! Inputs and outputs of a run.

use crate::interp::bounds::SumAccuracy;
use crate::interp::numbers::{Number, Numbers};
use crate::kernel::ConstValue;
use crate::types::Elem;
use std::collections::BTreeMap;
use std::time::Instant;

/// The memory of a global tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Element type; must be that of the parameter.
    pub elem: Elem,
    /// The allocation, from the address of element 0 on: element `(i, j)` is at `i * stride0 + j * stride1`. Every number
    /// is a value of `elem`.
    pub data: Numbers,
}

/// The arguments of a run, by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inputs {
    /// Compile-time parameters; the others take their defaults.
    pub consts: BTreeMap<String, ConstValue>,
    /// Run-time sizes.
    pub sizes: BTreeMap<String, i64>,
    /// Run-time strides, in elements. A leading stride (`A_ld`) that is absent is that of a dense tensor.
    pub strides: BTreeMap<String, i64>,
    /// Scalars; the others take their defaults.
    pub scalars: BTreeMap<String, Number>,
    /// Tensors, modified in place.
    pub tensors: BTreeMap<String, Tensor>,
    /// Output if [`Options::accuracy`] is set, and input of a later kernel that reads the tensor: error bounds of each
    /// tensor's elements. A tensor without an entry is exact.
    pub errors: BTreeMap<String, Errors>,
}

/// Error bounds of a tensor that the interpreter has stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Errors {
    /// The largest difference at each address.
    pub largest: Vec<f64>,
    /// Some bound was wider than one missing product, so a mistake may go unnoticed.
    pub drowned: bool,
}

/// Units of work between two deadline checks: well under a tenth of a second.
pub(super) const EVERY: u64 = 1 << 16;

/// Limits of a run, and what else to compute.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Work limit: one unit per statement, loop iteration, and element operation.
    pub fuel: u64,
    /// The time at which the run stops even if work is left. The clock is read periodically.
    pub deadline: Option<Instant>,
    /// Maximum number of live tile elements.
    pub memory: usize,
    /// Fill [`Inputs::errors`], for a device that sums so; about twice the time.
    pub accuracy: Option<SumAccuracy>,
    /// The device uses other values of parameters declared not to affect results ([`crate::kernel::ConstValue::Auto`]).
    /// Values cast to fewer bits may then differ, such as weights relative to the maximum of another tile, so that both
    /// sides round independently.
    pub rerounded: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fuel: 1 << 38, deadline: None, memory: 1 << 27, accuracy: None, rerounded: false }
    }
}
