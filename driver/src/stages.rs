//! The calls into the other crates, one function a stage. (Stages that have not landed yet refuse every program.)

use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::kernel::{Kernel, Module};
use tilec_ir::target::Target;
use tilec_ptx::launch::Launch;
use tilec_ptx::report::Report;

pub(crate) fn parse(_source: &str, sink: &mut Sink) -> Result<Module, Reported> {
    Err(sink.report(Diagnostic::error(codes::NOT_BUILT, Span::default(), "this build of tilec has no parser yet")))
}

pub(crate) fn print(kernel: &Kernel) -> String {
    format!("kernel {}\n", kernel.name)
}

pub(crate) fn verify(_kernel: &Kernel, sink: &mut Sink) -> Result<(), Reported> {
    sink.check()
}

/// A lowered kernel.
pub(crate) struct Lowered {
    launch: Launch,
    report: Report,
}

pub(crate) fn lower(
    _kernel: &Kernel,
    _target: Target,
    _source_name: &str,
    _source: &str,
    sink: &mut Sink,
) -> Result<Lowered, Reported> {
    Err(sink.report(Diagnostic::error(codes::NOT_BUILT, Span::default(), "this build of tilec cannot lower yet")))
}

/// One PTX module of all kernels.
pub(crate) struct Linked {
    pub(crate) ptx: String,
    pub(crate) version: (u8, u8),
    pub(crate) launches: Vec<(Launch, Report)>,
}

pub(crate) fn link(lowered: Vec<Lowered>, target: Target, _sink: &mut Sink) -> Result<Linked, Reported> {
    let launches = lowered.into_iter().map(|l| (l.launch, l.report)).collect();
    Ok(Linked { ptx: String::new(), version: target.min_ptx(), launches })
}
