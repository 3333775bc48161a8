//! `tilec bench IN.tile`: compiles variants, measures, prints.

use crate::command::args::{Against, Bench, BenchFormat};
use crate::command::build::{Said, options, read};
use crate::command::failure::Failure;
use std::process::Command;
use std::time::Duration;
use tilec::Target;
use tilec::bench::{self, BenchOptions, session, sizes, variants};
use tilec::output::write_stdout;
use tilec::progress::Bar;

/// Measures a kernel of a file.
pub(crate) fn bench_command(args: &Bench) -> Result<(), Failure> {
    let problems = sizes::problems(&args.values).map_err(Failure::Usage)?;
    let mut base = options(&args.program, &args.input, args.program.target.unwrap_or(Target::Sm70))?;
    // What a variant refuses stands in its row.
    base.refuse_sizes = false;
    let list = if args.ablate {
        if !args.variant.is_empty() {
            return Err(Failure::Usage("--ablate makes variants of its own; leave out --variant".to_owned()));
        }
        if base.sizes.len() > 1 {
            return Err(Failure::Usage("--ablate climbs with one choice for all problems: give --for once".to_owned()));
        }
        variants::ladder(&base)
    } else {
        let sizes = std::mem::take(&mut base.sizes);
        variants::for_sizes(variants::variants(&base, &args.variant).map_err(Failure::Usage)?, &sizes)
    };
    let bench_options = BenchOptions {
        kernel: args.kernel.clone(),
        variants: list,
        problems,
        cublas: args.against == Against::Cublas,
        rounds: args.rounds,
        seconds: args.seconds,
        timeout: Duration::from_secs(args.timeout),
        seed: args.seed,
        ladder: args.ablate,
    };
    let source = read(&args.input)?;
    let own = std::env::current_exe()
        .map_err(|e| Failure::io(tilec_ir::codes::LAUNCH_FAILED, format!("cannot find this program again: {e}")))?;
    let mut launcher = |subcommand: &str| {
        let mut command = Command::new(&own);
        command.arg(subcommand);
        command
    };
    let said = Said { remarks: args.program.remarks, format: args.program.error_format };
    let mut bar = Bar::new();
    let result = bench::bench(&source, &bench_options, &mut launcher, &mut |what, done| bar.show(what, done));
    bar.clear();
    let report = said.unless_error(result)?;
    let text = match args.format {
        BenchFormat::Table => report.to_string(),
        BenchFormat::Json => report.to_json(),
    };
    write_stdout(text.as_bytes())?;
    if report.ok() { Ok(()) } else { Err(Failure::Said) }
}

/// The measuring process.
pub(crate) fn serve_command() -> Result<(), Failure> {
    session::serve().map_err(Failure::from)
}
