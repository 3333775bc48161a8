//! `tilec IN.tile`: reads, compiles, writes.

use crate::bench::variants;
use crate::command::args::{Build, Emit, ErrorFormat, Program, mistyped_command};
use crate::command::bundle;
use crate::command::failure::{Failure, show};
use crate::compile::{Optimized, PARSED, optimize_as_far};
use crate::output::{same_file, write_file, write_stderr, write_stdout};
use crate::render::SourceFile;
use crate::{CompileOptions, Diagnostics, Keep, Target, explain, lower, machine_code};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use tilec_ir::codes;
use tilec_ir::demands::Demand;
use tilec_ir::diag::{Diagnostic, Sink, Span};
use tilec_ir::parser::parse_demands;

/// More than the parser accepts, so that it is the parser that refuses.
const READ_LIMIT: u64 = (1 << 20) + 1;

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
    let said = Said { remarks: args.program.remarks, format: args.program.error_format };
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
    said.unless_error(machine_code::meet_demands(&mut compiled))?;
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
    // The process ends here: what the compiler made need not be taken apart.
    std::mem::forget((compiled.kernels, compiled.programs, compiled.dispatch));
    write(output, &bytes)
}

/// What is said besides the result, and how.
#[derive(Copy, Clone)]
pub(crate) struct Said {
    /// Remarks too.
    pub(crate) remarks: bool,
    /// In this form.
    pub(crate) format: ErrorFormat,
}

impl Said {
    /// Shows everything if there is an error.
    pub(crate) fn unless_error<T>(self, result: Result<T, Diagnostics>) -> Result<T, Failure> {
        result.map_err(|d| {
            show(&d, self.remarks, self.format);
            Failure::Said
        })
    }

    /// Shows warnings, and remarks on request.
    pub(crate) fn warnings(self, source: crate::render::SourceFile, list: Vec<Diagnostic>) {
        show(&Diagnostics { source, list, errors: 0 }, self.remarks, self.format);
    }
}

/// What `--require` demands.
fn demands(program: &Program) -> Result<Vec<Demand>, Failure> {
    let mut all = Vec::new();
    for text in &program.require {
        let mut sink = Sink::new();
        match parse_demands(text, &mut sink) {
            // They stand in no file.
            Ok(demands) => all.extend(demands.into_iter().map(|d| Demand { span: Span::default(), ..d })),
            Err(_) => {
                let errors = sink.error_count();
                let source = SourceFile::new("--require", text.as_str());
                return Err(Failure::Diagnostics(Diagnostics { source, list: sink.into_diagnostics(), errors }));
            }
        }
    }
    Ok(all)
}

/// The options of the library for those of the command line.
pub(crate) fn options(program: &Program, input: &Path, target: Target) -> Result<CompileOptions, Failure> {
    for pass in &program.disable_pass {
        match explain::can_disable(pass) {
            Some(true) => {}
            Some(false) => return Err(Failure::Usage(format!("pass `{pass}` cannot be switched off"))),
            None => return Err(unknown("pass", pass, explain::pass_names())),
        }
    }
    for pass in &program.enable_pass {
        if explain::can_disable(pass).is_none() {
            return Err(unknown("pass", pass, explain::pass_names()));
        }
        if program.disable_pass.contains(pass) {
            return Err(Failure::Usage(format!("pass `{pass}` is both enabled and disabled")));
        }
    }
    for (i, (name, value)) in program.defines.iter().enumerate() {
        if let Some((_, first)) = program.defines[..i].iter().find(|(other, _)| other == name) {
            return Err(Failure::Usage(format!(
                "`-D {name}={value}`: `{name}` is `{first}` already; `--variant {name}={first}/{value}` compiles both"
            )));
        }
    }
    if let Some(card) = program.card.filter(|card| card.cc < target.cc()) {
        let newest = Target::ALL.iter().rev().find(|t| t.cc() <= card.cc).map_or("", |t| t.name());
        return Err(Failure::Usage(format!(
            "`--card {}` cannot run code for {}; it is `--target {newest}`",
            card.name,
            target.name()
        )));
    }
    let mut deny = BTreeSet::new();
    for kind in &program.deny {
        match kind.as_str() {
            "all" => deny.extend(explain::remark_kinds().into_iter().map(str::to_owned)),
            kind if explain::is_remark_kind(kind) => {
                deny.insert(kind.to_owned());
            }
            kind => return Err(unknown("kind of remark", kind, explain::remark_kinds())),
        }
    }
    Ok(CompileOptions {
        source_name: display_name(input),
        target,
        defines: program.defines.clone(),
        sizes: program.sizes.iter().map(|s| s.0.clone()).collect(),
        zeros: program.zero.clone(),
        card: program.card,
        disabled: program.disable_pass.iter().cloned().collect(),
        enabled: program.enable_pass.iter().cloned().collect(),
        deny,
        demands: demands(program)?,
        ..CompileOptions::default()
    })
}

/// The definitions of variants in one file.
pub(crate) fn definitions(base: &CompileOptions, texts: &[String]) -> Result<Vec<Vec<(String, String)>>, Failure> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let all = variants::variants(base, texts).map_err(Failure::Usage)?;
    if let Some(variant) = all.iter().find(|v| v.options.target != base.target || v.options.disabled != base.disabled) {
        return Err(Failure::Usage(format!(
            "variant `{}`: variants in one file are for one target and have the same passes; `--targets {},..` puts several targets into a bundle or a C header, and `tilec bench` compares others",
            variant.label,
            variant.options.target.name()
        )));
    }
    Ok(all.into_iter().map(|v| v.options.defines).collect())
}

fn unknown(what: &str, name: &str, known: Vec<&'static str>) -> Failure {
    let hint = match explain::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Failure::Usage(format!("unknown {what} `{name}`; {hint}"))
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

/// Where the product goes to standard output, texts go elsewhere.
fn show_dumps(to_stderr: bool, text: &str) -> Result<(), Failure> {
    if to_stderr {
        write_stderr(text);
        return Ok(());
    }
    Ok(write_stdout(text.as_bytes())?)
}

/// The kept texts in pipeline order, each under a header that is a comment of the language.
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

/// The product that a file name asks for; PTX without a suffix.
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

/// What a path is called in messages.
pub(crate) fn display_name(input: &Path) -> String {
    if input == Path::new("-") { "<stdin>".to_owned() } else { input.display().to_string() }
}

/// Refuses to write over the source: what the compiler makes of a program is not what a person keeps of it.
pub(crate) fn keeps_source(input: &Path, output: &Path) -> Result<(), Failure> {
    if !same_file(input, output) {
        return Ok(());
    }
    let output = output.display();
    Err(Failure::Usage(format!("`{output}` is both the source and the output; `-o` names another file")))
}

/// Reads a source; at most as much of it as the parser needs to see that it is too large.
pub(crate) fn read(input: &Path) -> Result<String, Failure> {
    read_at_most(input, READ_LIMIT)
}

/// Reads a text, or its first `limit` bytes.
pub(crate) fn read_at_most(input: &Path, limit: u64) -> Result<String, Failure> {
    let name = display_name(input);
    let mut bytes = Vec::new();
    let result = if input == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(input).and_then(|f| f.take(limit).read_to_end(&mut bytes))
    };
    if let Err(e) = result {
        return Err(Failure::io(codes::NOT_READABLE, format!("cannot read `{name}`: {e}")));
    }
    let cut = bytes.len() as u64 == limit;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // The cut may go through a character; the parser refuses the rest for its size.
        Err(e) if cut && e.utf8_error().error_len().is_none() => Ok(String::from_utf8_lossy(e.as_bytes()).into_owned()),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let line = e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
            let message = format!("`{name}` is not UTF-8 text: byte {at}, on line {line}, is not part of a character");
            Err(Failure::io(codes::NOT_TEXT, message))
        }
    }
}

pub(crate) fn write(output: Option<&Path>, bytes: &[u8]) -> Result<(), Failure> {
    match output {
        None => Ok(write_stdout(bytes)?),
        Some(path) => write_file(path, bytes)
            .map_err(|e| Failure::io(codes::NOT_WRITABLE, format!("cannot write `{}`: {e}", path.display()))),
    }
}
