//! Bundles: a program compiled for several targets, in one file with its contracts (`docs/bundle.md`).

use crate::compile::several_targets::SeveralTargets;
use crate::compile::{CompileOptions, Diagnostics, compile, machine_code};
use crate::console::render::SourceFile;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::target::Target;
use tilec_launch::bundle::Bundle;

/// Whether there is machine code in a bundle. What an assembler adds depends on its version, so it is only there if requested.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Cubins {
    /// PTX alone.
    #[default]
    None,
    /// Machine code for every target, or an error.
    Required,
}

/// A bundle, and its diagnostics.
#[derive(Clone, Debug)]
pub struct Bundled {
    /// The bundle.
    pub bundle: Bundle,
    /// Warnings and remarks, each once. Those that not every target has name their targets.
    pub diagnostics: Vec<Diagnostics>,
}

/// Compiles `source` for each of `targets`; the target of `options` does not count.
///
/// # Errors
/// There is no target, the program is wrong, a target cannot do what it requests, or machine code is requested and not made.
pub fn bundle(
    source: &str,
    options: &CompileOptions,
    targets: &[Target],
    cubins: Cubins,
) -> Result<Bundled, Diagnostics> {
    let file = || SourceFile::new(options.source_name.as_str(), source);
    if targets.is_empty() {
        let nothing = Diagnostic::error(codes::BAD_ARGUMENT, Span::default(), "a bundle is for at least one target");
        return Err(Diagnostics::one(file(), nothing));
    }
    let mut made = Bundled { bundle: Bundle::default(), diagnostics: Vec::new() };
    let mut said = SeveralTargets::default();
    for &target in targets {
        let mut compiled = compile(source, &CompileOptions { target, ..options.clone() })?;
        machine_code::check_demands(&mut compiled)?;
        let cubin = match cubins {
            Cubins::None => None,
            Cubins::Required => Some(machine_code::cubin(&mut compiled)?.cubin),
        };
        let launch_file = compiled.launch_file();
        let added = made.bundle.add(target.name(), &launch_file, &compiled.ptx, cubin);
        added.map_err(|error| {
            let error = Diagnostic::error(codes::BAD_ARGUMENT, Span::default(), error.to_string());
            Diagnostics::one(file(), error)
        })?;
        said.add(target, compiled.diagnostics);
    }
    made.diagnostics.extend(Some(said.list(file())).filter(|all| !all.list.is_empty()));
    Ok(made)
}
