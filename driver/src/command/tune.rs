//! `tilec tune IN.tile`: measures, writes the fastest, prints what was found.

use crate::bench::sizes;
use crate::command::args::{BenchFormat, Tune};
use crate::command::call::Call;
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{display_name, keeps_source, options, read, target_here};
use crate::output::{write_file, write_stderr, write_stdout};
use crate::progress::Bar;
use crate::tune::{Keep, TuneOptions, Tuner, file_name};
use crate::{Args, Target};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tilec_ir::codes;

/// Tunes a kernel of a file.
pub(crate) fn tune_command(args: &Tune, call: &Call) -> Result<(), Failure> {
    let problems = sizes::problems(&args.values).map_err(Failure::Usage)?;
    if !args.program.sizes.is_empty() {
        return Err(Failure::Usage(
            "the sizes to tune for are those of the problem: `M=.. N=..` without `--for`".to_owned(),
        ));
    }
    let target = target_here(&args.program, true);
    let mut compile = options(&args.program, &args.input, target)?;
    if compile.disabled.contains("choose") {
        return Err(Failure::Usage("tuning begins with what `choose` chooses: leave it on".to_owned()));
    }
    compile.refuse_sizes = false;
    // Without sizes, the output file would have the source's name; the error about missing sizes comes first.
    if args.output.is_some() || problems.iter().all(|p| !p.is_empty()) {
        outputs(args, &problems)?;
    }
    let source = read(&args.input)?;
    let tune_options = TuneOptions {
        compile,
        kernel: args.kernel.clone(),
        seconds: args.seconds,
        timeout: Duration::from_secs(args.timeout),
        seed: args.seed,
        cache: match (&args.cache, args.no_cache) {
            (_, true) => Keep::Not,
            (Some(path), false) => Keep::At(path.clone()),
            (None, false) => Keep::Usual,
        },
    };
    let mut launcher = call.launcher()?;
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let mut tuner = said.unless_error(Tuner::new(&source, tune_options, &problems, &mut launcher))?;
    let outputs = outputs(args, &problems)?;
    let mut report = tuner.report();
    let mut bar = Bar::new();
    for (i, (problem, output)) in problems.iter().zip(&outputs).enumerate() {
        let result = tuner.tune(problem, &mut launcher, &mut |what, done| {
            bar.show(what, (i as f64 + done.clamp(0.0, 1.0)) / problems.len() as f64);
        });
        bar.clear();
        let mut tuned = said.unless_error(result)?;
        let text = tuned.text(&display_name(&args.input), &report, &commands(args, target, problem, output.as_deref()));
        // Written at once: the next problem may be interrupted.
        match output {
            None => write_stdout(text.as_bytes())?,
            Some(path) => {
                write_file(path, text.as_bytes())
                    .map_err(|e| Failure::io(codes::NOT_WRITABLE, format!("cannot write `{}`: {e}", path.display())))?;
                tuned.file = Some(path.display().to_string());
            }
        }
        report.problems.push(tuned);
    }
    let text = match args.format {
        BenchFormat::Table => report.to_string(),
        BenchFormat::Json => report.to_json(),
    };
    if outputs.contains(&None) {
        write_stderr(&text);
    } else {
        write_stdout(text.as_bytes())?;
    }
    Ok(())
}

/// The output of each problem's best schedule; `None`: standard output.
fn outputs(args: &Tune, problems: &[Args]) -> Result<Vec<Option<PathBuf>>, Failure> {
    let stem = match args.input.file_stem() {
        Some(stem) if args.input != Path::new("-") => stem.to_string_lossy().into_owned(),
        _ => "tuned".to_owned(),
    };
    let named = |directory: &Path| problems.iter().map(|p| Some(directory.join(file_name(&stem, p)))).collect();
    let all: Vec<Option<PathBuf>> = match &args.output {
        None => named(Path::new("")),
        Some(path) if path.is_dir() => named(path),
        Some(path) if problems.len() > 1 => {
            return Err(Failure::Usage(format!(
                "{} problems have a file each, and `{}` is no directory; `-o DIR` names one that is there",
                problems.len(),
                path.display()
            )));
        }
        Some(path) if path == Path::new("-") => vec![None],
        Some(path) => vec![Some(path.clone())],
    };
    for path in all.iter().flatten() {
        keeps_source(&args.input, path)?;
        // An early error is better than one after minutes of measuring.
        if path.parent().is_some_and(|d| !d.as_os_str().is_empty() && !d.is_dir()) {
            let message = format!("cannot write `{}`: its directory is not there", path.display());
            return Err(Failure::io(codes::NOT_WRITABLE, message));
        }
    }
    Ok(all)
}

/// The commands that make the winner, and that compile it.
fn commands(args: &Tune, target: Target, problem: &Args, output: Option<&Path>) -> Vec<String> {
    let program = &args.program;
    let mut flags = vec!["--target".to_owned(), target.name().to_owned()];
    flags.extend(program.card.iter().flat_map(|card| ["--card".to_owned(), card.name.to_owned()]));
    for (flag, passes) in [("--disable-pass", &program.disable_pass), ("--enable-pass", &program.enable_pass)] {
        if !passes.is_empty() {
            flags.extend([flag.to_owned(), passes.join(",")]);
        }
    }
    let input = if args.input == Path::new("-") { "-".to_owned() } else { args.input.display().to_string() };
    let mut tune = vec!["tilec".to_owned(), "tune".to_owned(), input];
    tune.extend(flags.iter().cloned());
    tune.extend(program.defines.iter().flat_map(|(name, value)| ["-D".to_owned(), format!("{name}={value}")]));
    tune.extend(args.kernel.iter().flat_map(|kernel| ["--kernel".to_owned(), kernel.clone()]));
    tune.extend(problem.iter().map(|(name, x)| format!("{name}={x}")));
    let output = output.map_or_else(|| "OUT.tile".to_owned(), |o| o.display().to_string());
    let mut build = vec!["tilec".to_owned(), output];
    build.extend(flags);
    [tune, build].map(|words| words.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ")).into()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./,:+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
