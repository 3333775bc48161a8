//! Decisions of the passes about a program, computed in the background.

use crate::compile::{CompileOptions, OptimizedKernel, compile};
use tilec_ir::diag::{Diagnostic, Severity, Sink, Span};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstValue, Kernel};
use tilec_ir::target::Target;

/// A program as it was compiled.
#[derive(Clone, Debug)]
pub struct Decisions {
    /// The target that it was compiled for.
    pub target: Target,
    /// Everything that was said.
    pub diagnostics: Vec<Diagnostic>,
    /// The kernels after the passes; none of a program that was refused.
    pub kernels: Vec<OptimizedKernel>,
}

/// The options for a text: its own target, if it names one; of the parameters and sizes those that some kernel of it has. Settings of an editor are for all
/// texts, so that those for others are no mistake of this one.
pub fn fitting(source: &str, options: &CompileOptions) -> CompileOptions {
    let mut options = options.clone();
    let Ok(module) = tilec_ir::parser::parse(source, &mut Sink::new()) else { return options };
    let has = |name: &str, all: fn(&Kernel) -> &[Value]| {
        module.kernels.iter().any(|k| all(k).iter().any(|&v| k.values[v].name == name))
    };
    options.target = module.kernels.iter().find_map(|k| k.schedule.target).unwrap_or(options.target);
    options.defines.retain(|(name, _)| has(name, |k| &k.const_params));
    for sizes in &mut options.sizes {
        sizes.retain(|(name, _)| has(name, |k| &k.sizes));
    }
    options.sizes.retain(|sizes| !sizes.is_empty());
    options
}

/// Compiles a program with those of the options that fit it.
pub fn decide(source: &str, options: &CompileOptions) -> Decisions {
    let options = fitting(source, options);
    let (diagnostics, kernels) = match compile(source, &options) {
        Ok(compiled) => (compiled.diagnostics, compiled.kernels.into_iter().map(|k| k.tile).collect()),
        Err(refused) => (refused.list, Vec::new()),
    };
    Decisions { target: options.target, diagnostics, kernels }
}

impl Decisions {
    /// What became of a kernel.
    pub fn kernel(&self, name: &str) -> Option<&OptimizedKernel> {
        self.kernels.iter().find(|k| k.kernel.name == name)
    }

    /// The value of a compile-time parameter of a kernel.
    pub fn parameter(&self, kernel: &str, name: &str) -> Option<ConstValue> {
        self.kernel(kernel)?.parameters.iter().find(|(p, _)| p == name).map(|(_, value)| *value)
    }

    /// A value of a kernel after the passes, by its name and its place in the source.
    pub fn value(&self, kernel: &str, name: &str, span: Span) -> Option<(&Kernel, Value)> {
        let kernel = &self.kernel(kernel)?.kernel;
        let found = kernel.values.iter().find(|(_, data)| data.name == name && data.span == span);
        found.map(|(value, _)| (kernel, value))
    }

    /// What the passes remarked about a place: of a byte, the spans that hold it.
    pub fn remarks(&self, byte: usize) -> impl Iterator<Item = &Diagnostic> {
        let holds = move |span: Span| !span.is_none() && (span.start as usize..span.end as usize).contains(&byte);
        self.diagnostics.iter().filter(move |d| d.severity == Severity::Remark && holds(d.span))
    }
}
