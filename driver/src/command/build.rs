//! `tilec IN.tile`: reads, compiles, writes.

use crate::command::args::{Build, Emit, mistyped_command};
use crate::command::bundle;
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{definitions, keeps_source, options, read, unknown, write};
use crate::compile::{Optimized, PARSED, optimize_as_far};
use crate::output::{write_stderr, write_stdout};
use crate::{Keep, Target, explain, lower, machine_code};
use std::path::Path;

/// Compiles one file.
pub(crate) fn build(args: &Build) -> Result<(), Failure> {
    let input = args.input.as_deref().expect("clap requires it without a subcommand");
    let output = args.output.as_deref().filter(|o| *o != Path::new("-"));
    let dumps_only = args.output.is_none() && args.emit.is_none() && !args.print_after.is_empty();
    let emit = args.emit.map_or_else(|| emit_for(output), Ok)?;
    if let Some(output) = output {
        keeps_source(input, output)?;
    }
    if let Some(meant) = mistyped_command(input) {
        let name = input.display();
        return Err(Failure::Usage(format!("there is no subcommand and no file `{name}`; did you mean `{meant}`?")));
    }
    if !matches!(emit, Emit::C | Emit::Bundle) && !args.targets.is_empty() {
        return Err(Failure::Usage(
            "`--targets` is for `--emit c` and `--emit bundle`; otherwise one `--target` is compiled for".to_owned(),
        ));
    }
    if emit != Emit::Bundle && args.cubin {
        return Err(Failure::Usage(
            "`--cubin` is for `--emit bundle`; `--emit cubin` writes machine code alone".to_owned(),
        ));
    }
    let source = read(input)?;
    if emit == Emit::C {
        return super::header::write_header(args, input, output, &source);
    }
    let mut options = options(&args.program, input, args.program.target.unwrap_or(Target::Sm70))?;
    options.keep = keep(&args.print_after)?;
    options.report_accesses = emit == Emit::Report;
    options.variants = definitions(&options, &args.variant)?;
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    if emit == Emit::Bundle {
        return write(output, &bundle::bytes(args, &source, &options, said)?);
    }

    let to_stderr = output.is_none() && !dumps_only;
    let program = match optimize_as_far(&source, &options) {
        Ok(program) => {
            show_dumps(to_stderr, &dumps(&program, &args.print_after))?;
            program
        }
        Err(refused) => {
            let texts = refused.texts.iter().map(|(pass, text)| dump(pass, text));
            show_dumps(to_stderr, &texts.collect::<String>())?;
            return said.unless_error(Err(refused.diagnostics));
        }
    };
    if dumps_only {
        said.warnings(program.source.clone(), program.diagnostics);
        return Ok(());
    }
    if emit == Emit::Tile {
        let text = program.tile();
        said.warnings(program.source, program.diagnostics);
        return write(output, text.as_bytes());
    }
    let mut compiled = said.unless_error(lower(program))?;
    said.unless_error(machine_code::check_demands(&mut compiled))?;
    let bytes = match emit {
        Emit::Ptx | Emit::Tile | Emit::C => std::mem::take(&mut compiled.ptx).into_bytes(),
        Emit::Launch => compiled.launch_json().into_bytes(),
        Emit::Report => {
            said.unless_error(machine_code::measure(&mut compiled))?;
            compiled.report().to_json().into_bytes()
        }
        Emit::Sass => said.unless_error(machine_code::listing(&mut compiled))?.into_bytes(),
        Emit::Cubin => said.unless_error(machine_code::cubin(&mut compiled))?.cubin,
        Emit::Bundle => unreachable!("bundles are written above"),
    };
    said.warnings(compiled.source, compiled.diagnostics);
    // The process ends here: freeing the compiler's data would only cost time.
    std::mem::forget((compiled.kernels, compiled.programs, compiled.dispatch));
    write(output, &bytes)
}

fn keep(print_after: &[String]) -> Result<Keep, Failure> {
    if print_after.iter().any(|p| p == "all") {
        return Ok(Keep::All);
    }
    for pass in print_after {
        if pass != PARSED && explain::can_disable(pass).is_none() {
            let known = explain::pass_names().into_iter().chain([PARSED, "all"]).collect();
            return Err(unknown("pass", pass, known));
        }
    }
    Ok(Keep::After(print_after.iter().cloned().collect()))
}

fn dump(pass: &str, text: &str) -> String {
    format!("// ---- after {pass}\n{text}")
}

/// Prints dumps to standard error if the output goes to standard output.
fn show_dumps(to_stderr: bool, text: &str) -> Result<(), Failure> {
    if to_stderr {
        write_stderr(text);
        return Ok(());
    }
    Ok(write_stdout(text.as_bytes())?)
}

/// The stored texts in pipeline order, each below a comment with the pass.
fn dumps(program: &Optimized, print_after: &[String]) -> String {
    if print_after.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    for pass in std::iter::once(PARSED).chain(explain::pass_names()) {
        let text = program.text_after(pass);
        if !text.is_empty() {
            out.push_str(&dump(pass, &text));
        }
    }
    out
}

/// The product that a file name requests; PTX without a suffix.
fn emit_for(output: Option<&Path>) -> Result<Emit, Failure> {
    const SUFFIXES: [&str; 7] = ["ptx", "tile", "json", "h", "cubin", "sass", "tilec"];
    let Some(suffix) = output.and_then(|o| o.extension()) else { return Ok(Emit::Ptx) };
    Ok(match suffix.to_str() {
        Some("ptx") => Emit::Ptx,
        Some("tile") => Emit::Tile,
        Some("json") => Emit::Launch,
        Some("h") => Emit::C,
        Some("cubin") => Emit::Cubin,
        Some("sass") => Emit::Sass,
        Some("tilec") => Emit::Bundle,
        _ => {
            let suffix = suffix.to_string_lossy();
            let hint = match explain::nearest(&suffix, SUFFIXES) {
                Some(near) => format!("did you mean `.{near}`?"),
                None => format!("it may be `.{}`.", SUFFIXES.join("`, `.")),
            };
            return Err(Failure::Usage(format!(
                "the suffix `.{suffix}` does not say what to write; {hint} `--emit WHAT` says it for any name"
            )));
        }
    })
}
