//! Stands in for the pass pipeline until it lands.

use std::collections::BTreeSet;
use tilec_ir::diag::{Reported, Sink};
use tilec_ir::kernel::Kernel;
use tilec_ir::target::Target;

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) target: Target,
    pub(crate) defines: Vec<(String, String)>,
    pub(crate) disabled: BTreeSet<String>,
    pub(crate) verify_each: bool,
}

impl Options {
    pub(crate) fn new(target: Target) -> Options {
        Options { target, defines: Vec::new(), disabled: BTreeSet::new(), verify_each: false }
    }
}

pub(crate) struct PassInfo {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) required: bool,
}

pub(crate) const PASSES: &[PassInfo] = &[
    PassInfo { name: "specialize", summary: "binds compile-time parameters", required: true },
    PassInfo { name: "vectorize", summary: "decides the access width of every copy", required: false },
    PassInfo { name: "swizzle", summary: "finds the cheapest conflict-free shared-memory layouts", required: false },
];

pub(crate) fn run(
    kernel: &mut Kernel,
    options: &Options,
    sink: &mut Sink,
    after: &mut dyn FnMut(&'static str, &Kernel),
) -> Result<(), Reported> {
    let _ = (&options.target, &options.defines, &options.disabled, options.verify_each);
    for pass in PASSES {
        after(pass.name, kernel);
    }
    sink.check()
}
