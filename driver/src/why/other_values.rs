//! The program with other values of its compile-time parameters.

use super::answer::Known;
use crate::compile::{CompileOptions, Compiled, CompiledKernel, compile};

/// A program that was compiled with other values.
pub(super) struct OtherValues {
    pub(super) program: Compiled,
    /// The kernel in it.
    kernel: usize,
}

impl OtherValues {
    /// The program of `kernel` with these values instead of those that were given or chosen; `None`: it does not compile.
    pub(super) fn of(known: &Known<'_>, kernel: &CompiledKernel, values: &[(&str, String)]) -> Option<OtherValues> {
        let mut options = CompileOptions { show_broken: true, report_accesses: true, ..known.options.clone() };
        options.defines.retain(|(name, _)| !values.iter().any(|(other, _)| other == name));
        options.defines.extend(values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let program = compile(known.program.source.text(), &options).ok()?;
        let name = &kernel.tile.kernel.name;
        let kernel = program.kernels.iter().position(|k| k.tile.kernel.name == *name)?;
        Some(OtherValues { program, kernel })
    }

    pub(super) fn kernel(&self) -> &CompiledKernel {
        &self.program.kernels[self.kernel]
    }
}
