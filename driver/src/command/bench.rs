//! `tilec bench IN.tile`: compiles variants, measures, prints.

use crate::bench::{self, BenchOptions, session, sizes, variants};
use crate::command::args::{Against, Bench, BenchFormat};
use crate::command::call::Call;
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{options, read, target_here};
use crate::output::write_stdout;
use crate::progress::Bar;
use std::time::Duration;

/// Measures a kernel of a file.
pub(crate) fn bench_command(args: &Bench, call: &Call) -> Result<(), Failure> {
    let problems = sizes::problems(&args.values).map_err(Failure::Usage)?;
    let mut base = options(&args.program, &args.input, target_here(&args.program, true))?;
    // A variant that rejects sizes is reported in its row.
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
    let mut launcher = call.launcher()?;
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let mut bar = Bar::new();
    let result = bench::bench(&source, &bench_options, &mut launcher, &mut |what, done| bar.show(what, done));
    bar.clear();
    let mut report = said.unless_error(result)?;
    (report.date, report.command) = (Some(today()), Some(command_line(call)));
    let text = match args.format {
        BenchFormat::Table => report.to_string(),
        BenchFormat::Json => report.to_json(),
    };
    write_stdout(text.as_bytes())?;
    if report.ok() { Ok(()) } else { Err(Failure::Said) }
}

/// The command line, as one that can be typed again if no word of it has spaces.
fn command_line(call: &Call) -> String {
    call.words().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The day in UTC.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of the given number of days after 1970-01-01. Years begin in March, so that the lengths of
/// months have a regular pattern.
fn civil(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01; 400 years have 146097.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The measuring process.
pub(crate) fn serve_command() -> Result<(), Failure> {
    session::serve().map_err(Failure::from)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_784, (2026, 11, 27)),
        ] {
            assert_eq!(civil(days), date, "{days}");
        }
    }
}
