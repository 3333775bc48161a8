//! `ptx` and `sass`: what is emitted, and what the assembler makes of it.
//!
//! `ptx`: the PTX is the expected output, or is checked by `//@ check:` and `//@ not:`; the assembler accepts it, and the machine
//! code has no spills and no local memory. `sass`: `//@ expect:` lines over the statistics of the machine code, for every
//! combination of `//@ matrix:`.

use super::checks::{compile, golden_or_checks, no_more};
use crate::test_file::TestFile;
use crate::{expect, golden, options};
use std::collections::BTreeMap;
use tilec::Target;
use tilec::assembler::{self, AssemblerError, SassStats};

pub(super) fn ptx(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source", "check", "not", "matrix"])?;
    let (options, rest) = options::of(file)?;
    no_more(&rest, &[])?;
    options::for_each(file, &options, |options| {
        let done = compile(file, options)?;
        let compared = golden_or_checks(file, done.ptx.clone());
        let assembled = lint(&file.name, &done.ptx, options.target).map(|_| ());
        match (compared, assembled) {
            (Err(a), Err(b)) => Err(format!("{b}\n{a}")),
            (a, b) => a.and(b),
        }
    })
}

pub(super) fn sass(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source", "expect", "matrix"])?;
    let (options, rest) = options::of(file)?;
    no_more(&rest, &[])?;
    options::for_each(file, &options, |options| {
        let done = compile(file, options)?;
        let Some(stats) = lint(&file.name, &done.ptx, options.target)? else { return Ok(()) };
        // With several kernels, each is listed under its name.
        let json = match &stats[..] {
            [one] => serde_json::to_value(one),
            all => serde_json::to_value(all.iter().map(|s| (s.entry.as_str(), s)).collect::<BTreeMap<_, _>>()),
        };
        let json = json.map_err(|e| e.to_string())?;
        let wrong: Vec<String> = file.values("expect").filter_map(|e| expect::holds(e, &json).err()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })
}

/// Assembles and disassembles `ptx`; `None`, said loudly, where this machine has no tools for the target.
///
/// # Errors
/// The assembler refuses it, or the machine code has what no kernel of ours may have.
pub fn lint(what: &str, ptx: &str, target: Target) -> Result<Option<Vec<SassStats>>, String> {
    let Some(stats) = assemble(what, ptx, target)? else { return Ok(None) };
    let problems: Vec<String> = stats.iter().flat_map(SassStats::problems).collect();
    if problems.is_empty() { Ok(Some(stats)) } else { Err(problems.join("\n")) }
}

/// Assembles and disassembles `ptx`; `None`, said loudly, where this machine has no tools for the target.
///
/// # Errors
/// The assembler refuses it, or repairs it.
pub fn assemble(what: &str, ptx: &str, target: Target) -> Result<Option<Vec<SassStats>>, String> {
    let arch: assembler::Arch = target.name().parse().map_err(|e: AssemblerError| e.to_string())?;
    let both = assembler::assemble(ptx, arch, assembler::Options { line_info: true })
        .and_then(|a| assembler::disassemble(&a.cubin, arch).map(|d| (a, d)));
    match both {
        Ok((assembled, disassembly)) => {
            // The assembler prints a message if it serialises wgmma products, or adds a missing wait.
            let repaired = |text: &str| ["wgmma", "GMMA", "warpgroup"].iter().any(|word| text.contains(word));
            match assembled.messages.iter().find(|m| repaired(&m.text)) {
                Some(m) => Err(format!("ptxas {} about wgmma products: {}", assembled.version, m.text)),
                None => Ok(Some(SassStats::all(&assembled.entries, &disassembly.functions))),
            }
        }
        Err(AssemblerError::NotFound(e)) => {
            golden::skip(&format!("{what}: machine code"), &format!("no {} for {}", e.tool, e.arch));
            Ok(None)
        }
        Err(AssemblerError::Refused { messages, version }) => {
            let said = messages.iter().map(|m| {
                let line = m.line.and_then(|l| ptx.lines().nth((l as usize).checked_sub(1)?)).unwrap_or("");
                format!("{:?}: {line}: {}\n", m.line, m.text)
            });
            Err(format!("ptxas {version} refuses the PTX:\n{}", said.take(5).collect::<String>()))
        }
        Err(e) => Err(e.to_string()),
    }
}
