//! `tilec-passes`: IR to IR, one file per pass.
//!
//! [`PASSES`] is the pipeline, a literal table. A pass is a function `run(kernel, cx) -> Result<(), Reported>`; its file,
//! its name on the command line and its test folder have the same name. Input is verified IR. A pass that is switched off still
//! runs, with [`Cx::enabled`] false: it then makes the simplest decision (one element per access, natural
//! layouts, scalar products), and the program gives the same results.
//!
//! A pass keeps what the text contains and decides only what is absent. So the output of any pass can be compiled again.

mod align_rows;
pub mod analysis;
mod assign_layouts;
mod barriers;
mod bool_storage;
pub mod caller;
pub mod choose;
mod context;
mod contract;
mod defer_reductions;
mod expand;
mod flatten_loops;
mod graph;
mod hand_over;
mod narrow_products;
pub mod occupancy;
mod ordered;
mod overlap_launches;
mod pipeline;
mod place_shared;
mod predicate;
mod producer_fills;
mod refusal;
mod registers;
mod residue;
mod reuse_loads;
mod rewrite;
mod roles;
mod schedule;
mod schedule_loops;
mod select_mma;
pub mod single_stage;
mod skip_scaling;
mod specialize;
mod stage_stores;
mod swizzle;
mod table;
mod tensor_copies;
mod thread_fills;
mod tile_scheduler;
pub mod timeline;
mod trial_passes;
mod unaligned;
mod vectorize;

pub use barriers::prove;
pub use context::{Cx, Options, Sizes};
pub use pipeline::MAX_SLOTS;
pub use refusal::required;
pub use registers::tile_list::{Pressure, RegisterTile, pressure as register_pressure, tiles as register_tiles};
pub use table::{PASSES, PassInfo};

use tilec_ir::diag::{Reported, Severity, Sink};
use tilec_ir::kernel::{Kernel, Module};

/// The unit on which a pass works.
#[derive(Clone, Copy)]
enum Run {
    /// Each kernel by itself.
    Kernel(fn(&mut Kernel, &mut Cx<'_>) -> Result<(), Reported>),
    /// The whole file, and the sizes for which `auto` parameters are chosen: before anything else.
    File(fn(&mut Module, &[Sizes], &mut Cx<'_>) -> Result<(), Reported>),
}

/// The function of each pass of [`PASSES`].
fn run_of(pass: &PassInfo) -> Run {
    match pass.name {
        flatten_loops::NAME => Run::File(flatten_loops::run),
        align_rows::NAME => Run::File(align_rows::run),
        choose::NAME => Run::Kernel(choose::run),
        _ => Run::Kernel(trial_passes::of(pass)),
    }
}

/// Runs the passes on whole files, for some sizes (none: large ones). `after` is called with the file after each pass.
///
/// # Errors
/// `Err` means that the sink holds at least one error.
pub fn run_on_file(
    module: &mut Module,
    options: &Options,
    sizes: &[Sizes],
    sink: &mut Sink,
    after: &mut dyn FnMut(&'static str, &Module),
) -> Result<(), Reported> {
    for pass in PASSES {
        let Run::File(run) = run_of(pass) else { continue };
        let mut cx = Cx::new(options, pass.name, sink);
        run(module, sizes, &mut cx)?;
        if options.verify_each {
            module.kernels.iter().for_each(|kernel| verify_after(pass.name, kernel));
        }
        after(pass.name, module);
    }
    sink.check()
}

/// Runs the passes on a kernel. `after` is called with the kernel after each pass.
///
/// # Errors
/// `Err` means that the sink holds at least one error.
pub fn run(
    kernel: &mut Kernel,
    options: &Options,
    sink: &mut Sink,
    after: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<(), Reported> {
    let (said, mut chosen) = (sink.diagnostics().len(), None);
    for pass in PASSES {
        let Run::Kernel(run) = run_of(pass) else { continue };
        let mut cx = Cx::new(options, pass.name, sink);
        run(kernel, &mut cx)?;
        if pass.name == choose::NAME {
            chosen = Some(kernel.clone());
        }
        if options.verify_each || pass.name == LAST {
            verify_after(pass.name, kernel);
        }
        after(pass.name, kernel);
    }
    let chosen = chosen.expect("`choose` is one of the passes");
    choose::predicted_losses::remarks_to_warnings(&chosen, options, said, sink);
    sink.check()
}

/// The last pass. Its output is always verified, because it becomes machine code.
const LAST: &str = barriers::NAME;

/// Verifies a pass's output: a pass that makes a valid program invalid is a compiler bug.
fn verify_after(pass: &str, kernel: &Kernel) {
    let mut sink = Sink::new();
    if tilec_ir::verify::verify(kernel, &mut sink).is_err() {
        let first = sink.diagnostics().iter().find(|d| d.severity == Severity::Error);
        let message = first.map_or_else(String::new, |d| format!("[{}] {}", d.code, d.message));
        panic!("bug in pass `{pass}`: its output does not verify: {message}\n{}", tilec_ir::print::print(kernel));
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, PASSES};
    use tilec_ir::target::Target;

    #[test]
    fn every_pass_has_a_function() {
        for pass in PASSES {
            super::run_of(pass);
        }
    }

    #[test]
    fn what_roles_need_is_switched_off_by_name() {
        let mut options = Options::new(Target::Sm90a);
        assert_eq!(options.missing_for_roles(), None);
        for pass in PASSES {
            options.disabled = [pass.name.to_owned()].into();
            assert_eq!(options.missing_for_roles(), pass.for_roles.then_some(pass.name));
        }
    }
}
