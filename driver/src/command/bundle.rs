//! `tilec IN.tile --emit bundle`: several targets in one file.

use crate::command::args::Build;
use crate::command::failure::{Failure, SideMessages};
use crate::compile::bundle::{Cubins, bundle};
use crate::{CompileOptions, Target};

/// The bytes of a bundle of what the arguments say; warnings are shown.
pub(crate) fn bytes(
    args: &Build,
    source: &str,
    options: &CompileOptions,
    said: SideMessages,
) -> Result<Vec<u8>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for &target in &args.targets {
        if targets.contains(&target) {
            return Err(Failure::Usage(format!("`--targets` names {} twice", target.name())));
        }
        targets.push(target);
    }
    if targets.is_empty() {
        targets.push(options.target);
    }
    let cubins = if args.cubin { Cubins::Required } else { Cubins::None };
    let made = said.unless_error(bundle(source, options, &targets, cubins))?;
    for all in made.diagnostics {
        said.warnings(all.source, all.list);
    }
    Ok(made.bundle.to_bytes())
}
