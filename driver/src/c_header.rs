//! A C header of a file of kernels: PTX for one target or several, and a launcher of each kernel on the CUDA driver API alone.
//!
//! All that a launch needs is read off the launch contract (`docs/launch-contract.md`) and written down as C99 that is C++ too: preconditions,
//! the grid, tensor maps, which variant to launch, the launches of a program. `docs/c.md` is the manual of the header.

mod arithmetic;
mod entry;
mod file;
mod interface;
mod map;
mod messages;
mod program;
mod text;

pub use file::header;
pub use interface::HeaderError;

use crate::contract::{Contract, LaunchFile};
use tilec_ir::target::Target;

/// What was compiled for one target.
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
    fn variants(&self, name: &str) -> Vec<&'a Contract> {
        match self.file.dispatch.iter().find(|d| d.kernel == name) {
            Some(dispatch) => dispatch.cases.iter().filter_map(|case| self.file.contract(&case.entry)).collect(),
            None => self.file.contract(name).into_iter().collect(),
        }
    }

    /// What a function of this target is called.
    fn symbol(&self, name: &str) -> String {
        format!("{name}__{}", self.target.name())
    }
}
