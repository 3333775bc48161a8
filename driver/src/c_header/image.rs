//! The compiled kernels of one target.

use crate::contract::{Contract, LaunchFile};
use tilec_ir::target::Target;

/// The compilation result for one target.
#[derive(Copy, Clone, Debug)]
pub struct Image<'a> {
    /// The target.
    pub target: Target,
    /// The PTX.
    pub ptx: &'a str,
    /// Its launch contracts.
    pub file: &'a LaunchFile,
}

impl<'a> Image<'a> {
    /// The contracts of what may be launched under the name of a kernel, in the order in which they are tried.
    pub(super) fn variants(&self, name: &str) -> Vec<&'a Contract> {
        match self.file.dispatch.iter().find(|d| d.kernel == name) {
            Some(dispatch) => dispatch.cases.iter().filter_map(|case| self.file.contract(&case.entry)).collect(),
            None => self.file.contract(name).into_iter().collect(),
        }
    }

    /// The symbol of a function for this target.
    pub(super) fn symbol(&self, name: &str) -> String {
        format!("{name}__{}", self.target.name())
    }
}
