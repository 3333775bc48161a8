//! The `tilec` command and its subcommands: arguments, dispatch, exit status.
//!
//! Exit status 0: fine; 1: diagnostics; 2: usage; 101: a bug of tilec. The work is done in the library; the modules here read
//! arguments and write results.

pub(crate) mod args;
pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod bundle;
mod call;
pub(crate) mod doctor;
pub(crate) mod failure;
pub(crate) mod fmt;
pub(crate) mod header;
pub(crate) mod lsp;
pub(crate) mod program;
pub(crate) mod run;
pub(crate) mod tune;
pub(crate) mod why;
pub(crate) mod xray;

use crate::explain;
use crate::output::{write_stderr, write_stdout};
use args::{Cli, Command};
pub use call::Call;
use failure::Failure;

/// Runs the command, and returns the exit status. Help and usage errors end the process.
pub fn main(call: &Call) -> u8 {
    let cli = Cli::new(call);
    let format = cli.error_format();
    failure::quiet_panics();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| perform(cli, call)));
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.show(format),
        Err(_) => failure::bug(format),
    }
}

fn perform(cli: Cli, call: &Call) -> Result<(), Failure> {
    match cli.command {
        None => build::build(&cli.build),
        Some(Command::Run(options)) => run::run_command(&options, call),
        Some(Command::Launch) => run::launch_command(),
        Some(Command::Bench(options)) => bench::bench_command(&options, call),
        Some(Command::Tune(options)) => tune::tune_command(&options, call),
        Some(Command::BenchServe) => bench::serve_command(),
        Some(Command::Xray(options)) => xray::xray_command(&options),
        Some(Command::Why(options)) => why::why_command(&options),
        Some(Command::Fmt(options)) => fmt::fmt_command(&options),
        Some(Command::Lsp(options)) => lsp::lsp_command(&options),
        Some(Command::Doctor) => doctor::doctor_command(),
        Some(Command::Targets) => Ok(write_stdout(explain::targets().as_bytes())?),
        Some(Command::Explain { word }) if word.is_empty() => Ok(write_stdout(explain::index().as_bytes())?),
        Some(Command::Explain { word }) => match explain::explain(&word.join(" ")) {
            Ok(text) => Ok(write_stdout(text.as_bytes())?),
            Err(text) => {
                write_stderr(&text);
                Err(Failure::Said)
            }
        },
        Some(Command::BundleHeader { output }) => {
            program::write(output.as_deref(), crate::c_header::bundle_reader().as_bytes())
        }
        Some(Command::Bug) => panic!("asked for by `__bug`"),
    }
}
