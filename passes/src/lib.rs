//! `tilec-passes`: IR to IR, one file per pass.
//!
//! [`PASSES`] is the pipeline, a literal table. A pass is a function `run(kernel, cx) -> Result<(), Reported>`; its file,
//! its name on the command line and its test folder are one string. Input is verified IR. A pass that is switched off still
//! runs, with [`Cx::enabled`] false: it then makes the plainest decision there is (one element per access, natural
//! layouts, scalar products) and the program gives the same results.
//!
//! What is written in the text is kept: a pass only fills in what is absent, so the output of any pass can be fed in again.

mod align_rows;
pub mod analysis;
mod assign_layouts;
mod barriers;
pub mod choose;
mod contract;
mod cx;
mod defer_reductions;
mod expand;
mod feeds;
mod graph;
mod hand_over;
mod overlap_launches;
mod pipeline;
mod place_shared;
mod predicate;
mod rewrite;
mod roles;
mod schedule;
mod schedule_loops;
mod select_mma;
mod specialize;
mod stage_stores;
mod swizzle;
mod tensor_copies;
mod thread_fills;
mod unaligned;
mod vectorize;
mod walk;

pub use barriers::prove;
pub use cx::{Cx, Options, Sizes};

use tilec_ir::diag::{Reported, Severity, Sink};
use tilec_ir::kernel::{Kernel, Module};

/// A row of the pipeline.
pub struct PassInfo {
    /// Name: file, command line, tests, remark kind.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Cannot be switched off.
    pub required: bool,
    /// Switched on if nothing is said; what has not been measured yet is not.
    pub by_default: bool,
    run: Run,
}

/// What a pass looks at.
#[derive(Clone, Copy)]
enum Run {
    /// Each kernel by itself.
    Kernel(fn(&mut Kernel, &mut Cx<'_>) -> Result<(), Reported>),
    /// The whole file, and the sizes for which `auto` parameters are chosen: before anything else.
    File(fn(&mut Module, &[Sizes], &mut Cx<'_>) -> Result<(), Reported>),
}

/// The pipeline, in order.
pub const PASSES: &[PassInfo] = &[
    PassInfo {
        name: align_rows::NAME,
        summary: "has operands copied that products of warpgroups cannot read as they lie, by kernels in front of the product",
        required: false,
        by_default: true,
        run: Run::File(align_rows::run),
    },
    PassInfo {
        name: choose::NAME,
        summary: "chooses values for `auto` parameters by predicting the time of every legal combination",
        required: false,
        by_default: true,
        run: Run::Kernel(choose::run),
    },
    PassInfo {
        name: "specialize",
        summary: "binds compile-time parameters, folds constants, checks what can be checked",
        required: true,
        by_default: true,
        run: Run::Kernel(specialize::run),
    },
    PassInfo {
        name: "select-mma",
        summary: "picks the instruction of every product; makes its fragments explicit register tiles",
        required: false,
        by_default: true,
        run: Run::Kernel(select_mma::run),
    },
    PassInfo {
        name: stage_stores::NAME,
        summary: "stores results of warpgroups out of a buffer, by the tensor memory accelerator",
        required: false,
        by_default: true,
        run: Run::Kernel(stage_stores::run),
    },
    PassInfo {
        name: "assign-layouts",
        summary: "decides which thread holds and moves which element",
        required: false,
        by_default: true,
        run: Run::Kernel(assign_layouts::run),
    },
    PassInfo {
        name: defer_reductions::NAME,
        summary: "lets lanes keep their own parts of what a loop reduces",
        required: false,
        by_default: true,
        run: Run::Kernel(defer_reductions::run),
    },
    PassInfo {
        name: "vectorize",
        summary: "decides the access width of every copy",
        required: false,
        by_default: true,
        run: Run::Kernel(vectorize::run),
    },
    PassInfo {
        name: "swizzle",
        summary: "finds the cheapest conflict-free shared-memory layouts",
        required: false,
        by_default: true,
        run: Run::Kernel(swizzle::run),
    },
    PassInfo {
        name: schedule_loops::NAME,
        summary: "decides when the statements of loops with wgmma run: channels, pipeline stages, cycles",
        required: false,
        by_default: true,
        run: Run::Kernel(schedule_loops::run),
    },
    PassInfo {
        name: expand::NAME,
        summary: "makes prologue, steady state, drain and roles of scheduled loops",
        required: false,
        by_default: true,
        run: Run::Kernel(expand::run),
    },
    PassInfo {
        name: "pipeline",
        summary: "turns buffers filled in a loop into channels; prologue, drain, fragment double-buffering",
        required: false,
        by_default: true,
        run: Run::Kernel(pipeline::run),
    },
    PassInfo {
        name: "predicate",
        summary: "peels the residue and drops bounds checks that cannot fail",
        required: false,
        by_default: true,
        run: Run::Kernel(predicate::run),
    },
    PassInfo {
        name: "schedule",
        summary: "orders loads, products and stores inside loop bodies",
        required: false,
        by_default: true,
        run: Run::Kernel(schedule::run),
    },
    PassInfo {
        name: overlap_launches::NAME,
        summary: "lets a launch begin while the one in front of it ends",
        required: false,
        by_default: true,
        run: Run::Kernel(overlap_launches::run),
    },
    PassInfo {
        name: contract::NAME,
        summary: "has sums take in products, so that both are rounded once",
        required: true,
        by_default: true,
        run: Run::Kernel(contract::run),
    },
    PassInfo {
        name: hand_over::NAME,
        summary: "counts the arrivals and the bytes for which roles wait",
        required: true,
        by_default: true,
        run: Run::Kernel(hand_over::run),
    },
    PassInfo {
        name: place_shared::NAME,
        summary: "decides where buffers and channels lie in shared memory",
        required: false,
        by_default: true,
        run: Run::Kernel(place_shared::run),
    },
    PassInfo {
        name: "barriers",
        summary: "places the barriers that shared memory needs, and proves that they suffice",
        required: true,
        by_default: true,
        run: Run::Kernel(barriers::run),
    },
];

/// Runs the passes that look at a whole file, for some sizes (none: large ones). `after` is shown the file after each.
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
        let Run::File(run) = pass.run else { continue };
        let mut cx = Cx { options, enabled: enabled(pass, options), pass: pass.name, sink };
        run(module, sizes, &mut cx)?;
        if options.verify_each {
            module.kernels.iter().for_each(|kernel| verify_after(pass.name, kernel));
        }
        after(pass.name, module);
    }
    sink.check()
}

/// Whether a pass may do more than the plain thing.
fn enabled(pass: &PassInfo, options: &Options) -> bool {
    let wanted = pass.by_default || options.enabled.contains(pass.name);
    pass.required || wanted && !options.disabled.contains(pass.name)
}

/// Runs the passes of a kernel. `after` is shown the kernel after each pass.
///
/// # Errors
/// `Err` means that the sink holds at least one error.
pub fn run(
    kernel: &mut Kernel,
    options: &Options,
    sink: &mut Sink,
    after: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<(), Reported> {
    for pass in PASSES {
        let Run::Kernel(run) = pass.run else { continue };
        let mut cx = Cx { options, enabled: enabled(pass, options), pass: pass.name, sink };
        run(kernel, &mut cx)?;
        if options.verify_each || pass.name == LAST {
            verify_after(pass.name, kernel);
        }
        after(pass.name, kernel);
    }
    sink.check()
}

/// The last pass: its output is verified always, for it becomes machine code.
const LAST: &str = "barriers";

/// A pass that turns a valid program into an invalid one is our bug, not the user's.
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
    fn what_roles_need_is_switched_off_by_name() {
        let mut options = Options::new(Target::Sm90a);
        assert_eq!(options.missing_for_roles(), None);
        let missing = PASSES.iter().filter(|pass| {
            options.disabled = [pass.name.to_owned()].into();
            options.missing_for_roles() == Some(pass.name)
        });
        assert_eq!(missing.count(), super::cx::FOR_ROLES.len(), "a name that is no pass's");
    }
}
