//! The `tilec` command: arguments, dispatch, exit status.
//!
//! Exit status 0: fine; 1: diagnostics; 2: usage; 101: a bug of tilec. The work is done in the library; this file and
//! its modules read arguments and write results.

mod command;

use command::args::{Cli, Command};
use command::failure::Failure;
use command::{bench, build, doctor, failure, fmt, lsp, run, tune, why, xray};
use std::process::ExitCode;
use tilec::explain;
use tilec::output::{write_stderr, write_stdout};

fn main() -> ExitCode {
    let cli = Cli::from_command_line();
    let format = cli.error_format();
    failure::quiet_panics();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| perform(cli)));
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.show(format),
        Err(_) => failure::bug(format),
    }
}

fn perform(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        None => build::build(&cli.build),
        Some(Command::Run(options)) => run::run_command(&options),
        Some(Command::Launch) => run::launch_command(),
        Some(Command::Bench(options)) => bench::bench_command(&options),
        Some(Command::Tune(options)) => tune::tune_command(&options),
        Some(Command::BenchServe) => bench::serve_command(),
        Some(Command::Xray(options)) => xray::xray_command(&options),
        Some(Command::Why(options)) => why::why_command(&options),
        Some(Command::Fmt(options)) => fmt::fmt_command(&options),
        Some(Command::Lsp(options)) => lsp::lsp_command(&options),
        Some(Command::Doctor) => doctor::doctor_command(),
        Some(Command::Targets) => Ok(write_stdout(explain::targets().as_bytes())?),
        Some(Command::Explain { word: None }) => Ok(write_stdout(explain::index().as_bytes())?),
        Some(Command::Explain { word: Some(word) }) => match explain::explain(&word) {
            Ok(text) => Ok(write_stdout(text.as_bytes())?),
            Err(text) => {
                write_stderr(&text);
                Err(Failure::Said)
            }
        },
        Some(Command::BundleHeader { output }) => {
            build::write(output.as_deref(), tilec::c_header::bundle_reader().as_bytes())
        }
        Some(Command::Bug) => panic!("asked for by `__bug`"),
    }
}
