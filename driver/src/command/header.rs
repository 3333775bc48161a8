//! `tilec IN.tile --emit c`: compiles for each target and writes one header.

use super::args::{Build, Emit};
use super::failure::{Failure, SideMessages};
use super::program::{definitions, options, write};
use crate::c_header::{Image, header};
use crate::compile::several_targets::SeveralTargets;
use crate::{Compiled, Target, compile, machine_code};
use std::path::Path;

/// Compiles `source` for the targets that were requested, and writes the header.
pub(crate) fn write_header(args: &Build, input: &Path, output: Option<&Path>, source: &str) -> Result<(), Failure> {
    if !args.print_after.is_empty() {
        return Err(Failure::Usage(
            "`--print-after` shows one compilation, and a C header may hold several; leave out `--emit c`".to_owned(),
        ));
    }
    debug_assert!(args.emit.is_none_or(|emit| emit == Emit::C), "asked for by `build`");
    let mut targets = args.targets.clone();
    if targets.is_empty() {
        targets.push(args.program.target.unwrap_or(Target::Sm70));
    }
    targets.sort();
    targets.dedup();
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let mut all: Vec<Compiled> = Vec::new();
    for target in targets {
        let mut options = options(&args.program, input, target)?;
        options.report_accesses = false;
        options.variants = definitions(&options, &args.variant)?;
        let mut compiled = said.unless_error(compile(source, &options))?;
        said.unless_error(machine_code::check_demands(&mut compiled))?;
        all.push(compiled);
    }
    let files: Vec<_> = all.iter().map(Compiled::launch_file).collect();
    let images: Vec<Image<'_>> =
        all.iter().zip(&files).map(|(c, file)| Image { target: c.target, ptx: &c.ptx, file }).collect();
    let text = header(&super::program::display_name(input), &images).map_err(|e| Failure::Usage(e.to_string()))?;
    let mut list = SeveralTargets::default();
    let source = all.first().map(|compiled| compiled.source.clone());
    all.into_iter().for_each(|compiled| list.add(compiled.target, compiled.diagnostics));
    if let Some(source) = source {
        let all = list.list(source);
        said.warnings(all.source, all.list);
    }
    write(output, text.as_bytes())
}
