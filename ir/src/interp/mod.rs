//! The tile interpreter: executes kernels on the CPU, at every stage of compilation.
//!
//! Statements run one after the other and tiles are whole values. Layouts and thread counts have no effect. So a
//! program before and after a pass can be compared, and the result with that of the device.
//!
//! * Elementwise operators round as the device does: to binary64 for f64, to binary32 for other floats. Narrower types
//!   are rounded where they are stored: in a register tile, in memory, or by a `cast`. Products are summed in `f64`,
//!   and [`Options::accuracy`] tracks how far the device may differ. Index arithmetic is exact and checked.
//! * Undefined behaviour of the device is an error here. Examples are an access outside the bounds in a dimension that
//!   the copy does not check, an unwritten element that reaches global memory, and a wait without a publish.
//! * Blocks of the grid run one after the other and see each other's stores. Roles run one after the other, in order.
//!
//! No input makes it panic, run for ever ([`Options::fuel`], [`Options::deadline`]) or exhaust memory
//! ([`Options::memory`]).

mod arith;
mod bounds;
mod combine;
mod disjoint_stores;
mod element_addresses;
mod errors;
mod eval;
mod grid;
mod inputs;
mod machine;
mod memory;
mod numbers;
mod product;
mod reduce;
mod roles;
mod scan;
mod stmt;
#[cfg(test)]
mod tests;
mod tile;
mod window;
mod work_queue;

use crate::diag::Diagnostic;
use crate::interp::machine::Machine;
use crate::kernel::Kernel;
pub use bounds::{PartAccuracy, SumAccuracy};
use cranelift_entity::SecondaryMap;
pub use inputs::{Errors, Inputs, Options, Tensor};
pub use numbers::{Number, Numbers};

/// Runs every block of the grid.
///
/// # Errors
///
/// `E07..`: a precondition that does not hold, a missing or unfit input, or something that is undefined on the device. The
/// tensors then hold what was stored so far. The kernel is meant to have passed the verifier; one that has not gives an
/// error too, with less helpful words.
pub fn run(k: &Kernel, inputs: &mut Inputs, opts: &Options) -> Result<(), Box<Diagnostic>> {
    let mut machine = Machine {
        k,
        opts: opts.clone(),
        env: SecondaryMap::new(),
        consts: SecondaryMap::new(),
        globals: Vec::new(),
        fuel: opts.fuel,
        live: 0,
        depth: 0,
        in_role: false,
        check: None,
        fill: None,
        outside: false,
        of_index: false,
        passed: std::collections::BTreeMap::new(),
        last_of_cluster: true,
        apart: disjoint_stores::Stored::of(k),
        draws: std::collections::BTreeMap::new(),
        at: k.name_span,
    };
    let result = machine.bind(inputs).and_then(|()| machine.grid()).and_then(|()| machine.check_signals_clear());
    machine.give_back(inputs);
    result
}
