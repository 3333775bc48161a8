//! `tilec run IN.tile`: compiles, launches, compares, prints.

use crate::args::{DataKind, Run};
use crate::build_command::{Said, options, read};
use crate::failure::Failure;
use std::process::Command;
use std::time::Duration;
use tilec::bind::{Args, Number};
use tilec::output::write_stdout;
use tilec::run::{RunOptions, child, run};
use tilec::{Target, compile};

/// Runs a kernel of a file.
pub(crate) fn run_command(args: &Run) -> Result<(), Failure> {
    let mut values = Args::new();
    for (name, value) in &args.values {
        let Ok(number) = value.parse::<Number>() else {
            return Err(Failure::Usage(format!("`{name}={value}`: `{value}` is not a number")));
        };
        if values.insert(name.clone(), number).is_some() {
            return Err(Failure::Usage(format!("`{name}` has two values")));
        }
    }
    let source = read(&args.input)?;
    let compile_options = options(&args.program, &args.input, args.program.target.unwrap_or(Target::Sm70))?;
    let said = Said { remarks: args.program.remarks, format: args.program.error_format };
    let program = said.unless_error(compile(&source, &compile_options))?;
    said.warnings(program.source.clone(), program.diagnostics.clone());
    let run_options = RunOptions {
        kernel: args.kernel.clone(),
        args: values,
        check: args.check,
        seed: args.seed,
        normal: args.data.map(|d| d == DataKind::Normal),
        repeat: args.repeat,
        timeout: Duration::from_secs(args.timeout),
    };
    let own = std::env::current_exe()
        .map_err(|e| Failure::io(tilec_ir::codes::LAUNCH_FAILED, format!("cannot find this program again: {e}")))?;
    let mut launcher = Command::new(own);
    launcher.arg(child::SUBCOMMAND);
    let report = said.unless_error(run(&program, &run_options, &mut launcher))?;
    write_stdout(report.to_string().as_bytes())?;
    if report.ok() { Ok(()) } else { Err(Failure::Said) }
}

/// The child's side of a launch.
pub(crate) fn launch_command() -> Result<(), Failure> {
    child::serve(tilec::run::work).map_err(Failure::from)
}
