//! The program that a command is about: read, with the options that its words mean; and what is written.

use crate::bench::variants;
use crate::command::args::Program;
use crate::command::failure::Failure;
use crate::explain::ALL_PASSES;
use crate::output::{same_file, write_file, write_stdout};
use crate::render::SourceFile;
use crate::{CompileOptions, Diagnostics, Target, explain};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use tilec_ir::codes;
use tilec_ir::demands::Demand;
use tilec_ir::diag::{Sink, Span};
use tilec_ir::parser::parse_demands;

/// More than the parser accepts, so that it is the parser that refuses.
const READ_LIMIT: u64 = (1 << 20) + 1;

/// The requirements of `--require`.
fn demands(program: &Program) -> Result<Vec<Demand>, Failure> {
    let mut all = Vec::new();
    for text in &program.require {
        let mut sink = Sink::new();
        match parse_demands(text, &mut sink) {
            // They are in no file.
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

/// The target for a program that runs here: the given one, else the newest that the GPU supports, else the oldest.
pub(crate) fn target_here(program: &Program, on_gpu: bool) -> Target {
    let here = || if on_gpu && program.card.is_none() { target_of_gpu() } else { None };
    program.target.or_else(here).unwrap_or(Target::Sm70)
}

#[cfg(feature = "cuda")]
fn target_of_gpu() -> Option<Target> {
    let (major, minor) = crate::cuda::Device::capability(0).ok()?;
    Target::newest_on(major * 10 + minor)
}

#[cfg(not(feature = "cuda"))]
fn target_of_gpu() -> Option<Target> {
    None
}

/// The passes that are switched off.
fn disabled(program: &Program) -> Result<BTreeSet<String>, Failure> {
    let mut off = BTreeSet::new();
    for pass in &program.disable_pass {
        match explain::can_disable(pass) {
            _ if pass == ALL_PASSES => off.extend(explain::optional_passes().map(str::to_owned)),
            Some(true) => {
                off.insert(pass.clone());
            }
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
        if !off.remove(pass) {
            let message = format!(
                "pass `{pass}` is on already; `--enable-pass` keeps a pass on where `--disable-pass {ALL_PASSES}` switches the others off"
            );
            return Err(Failure::Usage(message));
        }
    }
    Ok(off)
}

/// The library options for the command-line options.
pub(crate) fn options(program: &Program, input: &Path, target: Target) -> Result<CompileOptions, Failure> {
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
        disabled: disabled(program)?,
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

pub(crate) fn unknown(what: &str, name: &str, known: Vec<&'static str>) -> Failure {
    let hint = match explain::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Failure::Usage(format!("unknown {what} `{name}`; {hint}"))
}

/// The name of a path in messages.
pub(crate) fn display_name(input: &Path) -> String {
    if input == Path::new("-") { "<stdin>".to_owned() } else { input.display().to_string() }
}

/// Rejects an output that would overwrite the source: a compiled text does not replace it.
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
        // The limit may cut a character; the parser rejects the text for its size anyway.
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
