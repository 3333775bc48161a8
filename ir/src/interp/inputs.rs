//! What goes into a run and comes out of it.

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
    /// Tensors, changed in place.
    pub tensors: BTreeMap<String, Tensor>,
    /// A result, filled if [`Options::accuracy`] is set, and taken up by a later kernel that reads the tensor: how far a device
    /// may be from the elements of each tensor; a tensor that is not there has no difference.
    pub errors: BTreeMap<String, Errors>,
}

/// How far a device may be from what the interpreter stored in a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Errors {
    /// The largest difference at each address.
    pub largest: Vec<f64>,
    /// Somewhere on the way a bound was wider than one missing product: a mistake may go unseen.
    pub drowned: bool,
}

/// Units of work between two looks at the clock: well under a tenth of a second.
pub(super) const EVERY: u64 = 1 << 16;

/// Limits of a run, and what else to compute.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// How much work may be done: a unit per statement, loop iteration, and element operation.
    pub fuel: u64,
    /// When the run is stopped, whatever is left of the work: the clock is read from time to time.
    pub deadline: Option<Instant>,
    /// How many tile elements may be live at once.
    pub memory: usize,
    /// Fill [`Inputs::errors`], for a device that sums so; about twice the time.
    pub accuracy: Option<SumAccuracy>,
    /// The device computes with other values of parameters whose author promises that they do not matter ([`crate::kernel::ConstValue::Auto`]): what is cast to fewer
    /// bits may be other numbers there, such as weights that are relative to the largest of another tile, so that both sides round by themselves.
    pub rerounded: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fuel: 1 << 38, deadline: None, memory: 1 << 27, accuracy: None, rerounded: false }
    }
}
