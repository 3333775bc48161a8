//! From PTX to machine code with NVIDIA's tools, where this machine has them: cubin, listing, real costs.
//!
//! What ptxas complains about comes back as diagnostics on the `.tile` lines that the PTX came from.

use super::register_lines::{self, Spilled};
use super::{assembler_report, demands, wgmma_lines};
use crate::assembler::live_registers::{Live, live_registers};
use crate::assembler::{
    self, Arch, Assembled, AssemblerError, Disassembly, EntryStats, PtxasMessage, SassFunction, SassStats, assemble,
    disassemble, disassemble_encoded,
};
use crate::compile::CompiledKernel;
use crate::compile::report_json::Assembler;
use crate::compile::{Compiled, Diagnostics};
use crate::console::render::SourceFile;
use std::fmt::Write as _;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Severity, Span};
use tilec_ir::target::Target;
use tilec_ptx::print::InstLine;

/// Assembles the PTX of a program for its target. Warnings of the assembler are added to its diagnostics.
///
/// # Errors
/// No assembler for the target on this machine, or it fails.
pub fn cubin(program: &mut Compiled) -> Result<Assembled, Diagnostics> {
    let assembled = assembled(program)?;
    let listing = match assembled.messages.iter().any(PtxasMessage::spills) {
        true => disassemble(&assembled.cubin, arch(program.target)).ok(),
        false => None,
    };
    let said = assembler_report::messages(program, &assembled, listing.as_ref());
    program.diagnostics.extend(said);
    Ok(assembled)
}

fn assembled(program: &Compiled) -> Result<Assembled, Diagnostics> {
    assemble(&program.ptx, arch(program.target), assembler::Options { line_info: true })
        .map_err(|e| diagnostics(&e, &program.ptx, &program.source))
}

/// The name of a target is one that the assembler's command line takes.
fn arch(target: Target) -> Arch {
    target.name().parse().expect("every target is an architecture")
}

/// The bytes of registers that the assembler spills in a kernel, stored and loaded; `None`: there is no assembler, or it
/// fails.
pub(crate) fn spilled_bytes(program: &Compiled, entry: &str) -> Option<u64> {
    let assembled = assembled(program).ok()?;
    let own = assembled.entries.iter().find(|e| e.name == entry)?;
    Some(own.spill_store_bytes + own.spill_load_bytes)
}

/// The disassembly of every kernel, with the source lines.
///
/// # Errors
/// There is no assembler or disassembler for the target on this machine, or one of them fails.
pub fn listing(program: &mut Compiled) -> Result<String, Diagnostics> {
    let assembled = cubin(program)?;
    let mut disassembly = disassemble(&assembled.cubin, arch(program.target))
        .map_err(|e| diagnostics(&e, &program.ptx, &program.source))?;
    let said =
        wgmma_lines::attribute_wgmma(program, &mut disassembly.functions, &wgmma_lines::of_the_source(&program.source));
    program.diagnostics.extend(said);
    let stats = SassStats::all(&assembled.entries, &disassembly.functions);
    Ok(listing_of(&disassembly, &stats, &program.source))
}

/// The machine code of a program, and the PTX line that each instruction came from.
#[derive(Clone, Debug)]
pub struct ByLine {
    /// The version of the assembler.
    pub version: String,
    /// Statistics of the assembler for each entry.
    pub entries: Vec<EntryStats>,
    /// The functions; lines of their instructions are those of the PTX.
    pub functions: Vec<SassFunction>,
    /// The registers in use at each instruction of each function.
    pub live: Vec<Live>,
    /// Messages of the assembler, at source lines.
    pub messages: Vec<Diagnostic>,
    /// Of each entry the registers that it spilled, by lines of the source.
    pub spilled: Vec<(String, Vec<Spilled>)>,
}

/// The machine code with the PTX line of every instruction; `None`: this machine has no tools for it.
///
/// The assembler gets the same PTX, with PTX line numbers instead of source lines. It generates the same code.
///
/// # Errors
/// The tools exist and one of them fails, or an environment variable names one that cannot be used.
pub fn by_ptx_line(program: &Compiled) -> Result<Option<ByLine>, Diagnostics> {
    let arch = arch(program.target);
    for tool in [assembler::Tool::Ptxas, assembler::Tool::Nvdisasm] {
        if let Err(missing) = assembler::find(tool, arch)
            && !missing.is_named()
        {
            return Ok(None);
        }
    }
    let as_written = assembled(program)?;
    let fault = |e: AssemblerError| diagnostics(&e, &program.ptx, &program.source);
    let text = numbered(&program.ptx, &program.ptx_lines);
    let assembled = assemble(&text, arch, assembler::Options { line_info: true }).map_err(fault)?;
    let mut by_line = disassemble_encoded(&assembled.cubin, arch).map_err(fault)?;
    let plain = disassemble_encoded(&as_written.cubin, arch).map_err(fault)?;
    let code = |d: &Disassembly| -> Vec<_> {
        d.functions.iter().flat_map(|f| &f.insts).map(|i| (i.text.clone(), i.encoding)).collect()
    };
    assert!(
        code(&plain) == code(&by_line),
        "bug: the assembler generates different code for the same PTX with other line numbers"
    );
    let live = live_registers(&assembled.cubin, arch).map_err(fault)?;
    let version = as_written.version.to_string();
    let mut said = assembler_report::messages(program, &as_written, Some(&plain));
    said.extend(wgmma_lines::attribute_wgmma(program, &mut by_line.functions, &wgmma_lines::of_the_ptx));
    let spilled = plain.functions.iter().map(|f| (f.name.clone(), register_lines::spilled(f))).collect();
    Ok(Some(ByLine {
        version,
        entries: as_written.entries,
        functions: by_line.functions,
        live,
        messages: said,
        spilled,
    }))
}

/// PTX whose line table refers to itself: in front of every instruction is its line number in the PTX without these
/// directives. The last such directive in front of an instruction counts.
fn numbered(ptx: &str, lines: &[InstLine]) -> String {
    let mut lines = lines.iter().map(|l| l.line).peekable();
    let mut out = String::with_capacity(2 * ptx.len());
    for (number, line) in (1..).zip(ptx.lines()) {
        if lines.next_if_eq(&number).is_some() {
            let _ = writeln!(out, "\t.loc\t1 {number} 1");
        }
        let _ = writeln!(out, "{line}");
    }
    out
}

fn listing_of(disassembly: &Disassembly, stats: &[SassStats], source: &SourceFile) -> String {
    let mut out = String::new();
    let lines: Vec<&str> = source.text().lines().collect();
    for function in &disassembly.functions {
        let _ = writeln!(out, "// ---- {}", function.name);
        if let Some(s) = stats.iter().find(|s| s.entry == function.name) {
            let spills = s.spill_store_bytes + s.spill_load_bytes;
            let _ = writeln!(out, "// {} registers, {spills} spill bytes, {} instructions", s.registers, s.total.total);
        }
        let mut labels: Vec<(usize, &str)> = function.labels.iter().map(|(name, &at)| (at, name.as_str())).collect();
        labels.sort_unstable();
        let mut labels = labels.into_iter().peekable();
        let mut last = None;
        for (i, inst) in function.insts.iter().enumerate() {
            while let Some((_, name)) = labels.next_if(|(at, _)| *at <= i) {
                // The entry's own label and that of its section say nothing new.
                if name != function.name && !name.starts_with(".text.") {
                    let _ = writeln!(out, "{name}:");
                }
            }
            let place = function.location(inst);
            if place != last {
                last = place;
                if let Some((file, line)) = place {
                    let index = usize::try_from(line).unwrap_or(usize::MAX).wrapping_sub(1);
                    let text = lines.get(index).map_or("", |l| l.trim());
                    let _ = writeln!(out, "// {file}:{line}: {text}");
                }
            }
            let _ = writeln!(out, "    /*{:04x}*/  {} ;", inst.addr, inst.text);
        }
        out.push('\n');
    }
    out
}

/// Adds the assembler's figures to the reports of the kernels, if there is an assembler. Returns whether there is one.
///
/// # Errors
/// The assembler exists and fails, or an environment variable names one that cannot be used.
pub fn measure(program: &mut Compiled) -> Result<bool, Diagnostics> {
    let arch = arch(program.target);
    if let Err(missing) = assembler::find(assembler::Tool::Ptxas, arch)
        && !missing.is_named()
    {
        return Ok(false);
    }
    let assembled = assembled(program)?;
    let (listing, live) = match disassemble(&assembled.cubin, arch) {
        Ok(listing) => (Some(listing), live_registers(&assembled.cubin, arch)),
        Err(AssemblerError::NotFound(missing)) if !missing.is_named() => (None, Ok(Vec::new())),
        Err(e) => return Err(diagnostics(&e, &program.ptx, &program.source)),
    };
    let live = live.map_err(|e| diagnostics(&e, &program.ptx, &program.source))?;
    let functions = listing.map_or_else(Vec::new, |l| l.functions);
    let stats = SassStats::all(&assembled.entries, &functions);
    for kernel in &mut program.kernels {
        let name = &kernel.contract.entry;
        let Some(entry) = assembled.entries.iter().find(|e| e.name == *name) else { continue };
        let stats = stats.iter().find(|s| s.entry == *name);
        let function = functions.iter().find(|f| f.name == *name);
        let live = live.iter().find(|(of, _)| of == name).map(|(_, live)| live);
        kernel.report.assembler = Some(Assembler {
            version: assembled.version.to_string(),
            registers: entry.registers,
            spill_store_bytes: entry.spill_store_bytes,
            spill_load_bytes: entry.spill_load_bytes,
            called: entry.called.clone(),
            spilled: function.map_or_else(Vec::new, register_lines::spilled),
            most_live: function.zip(live).and_then(|(f, live)| register_lines::most_live(f, live)),
            stack_bytes: entry.stack_bytes,
            total: stats.map(|s| s.total),
            main_loop: stats.and_then(|s| s.main_loop),
        });
    }
    Ok(true)
}

/// Checks demands that depend on registers (`no spills`, `registers <= 168`, `resident >= 2`). Compilation has checked
/// the others. Without an assembler, `resident` is checked with an estimate, and a warning lists the demands that were
/// not checked.
///
/// # Errors
/// A demand does not hold, or the assembler fails.
pub fn check_demands(program: &mut Compiled) -> Result<(), Diagnostics> {
    let list = broken_demands(program)?;
    if list.is_empty() {
        return Ok(());
    }
    Err(Diagnostics { source: program.source.clone(), errors: list.len(), list })
}

/// The same of a program that is looked at and not used: what does not hold is a warning.
///
/// # Errors
/// The assembler fails.
pub fn show_demands(program: &mut Compiled) -> Result<(), Diagnostics> {
    let list = broken_demands(program)?;
    program.diagnostics.extend(list.into_iter().map(demands::shown));
    Ok(())
}

fn broken_demands(program: &mut Compiled) -> Result<Vec<Diagnostic>, Diagnostics> {
    let demands = || program.kernels.iter().flat_map(|k| k.tile.kernel.demands.iter().copied());
    if !demands().any(|d| d.what.is_of_registers()) {
        return Ok(Vec::new());
    }
    let needed = demands().find(|d| d.what.needs_assembler());
    let measured = program.kernels.iter().all(|k| k.report.assembler.is_some());
    if !measured
        && !measure(program)?
        && let Some(first) = needed
    {
        let message = format!("`{first}` was not checked: no assembler for {} was found", program.target.name());
        let d = Diagnostic::warning(codes::DEMAND_UNCHECKED, first.span, message);
        program
            .diagnostics
            .push(d.with_note("set `TILEC_PTXAS`, or fetch a pinned version with `scripts/fetch_tools.sh`"));
    }
    let broken = |k: &CompiledKernel| {
        let by = (k.report.assembler.as_ref(), &program.source);
        demands::broken_by_registers(k.tile.demanding(), &k.lowered, by)
    };
    Ok(program.kernels.iter().flat_map(broken).collect())
}

/// A failure of the tools as diagnostics.
fn diagnostics(error: &AssemblerError, ptx: &str, source: &SourceFile) -> Diagnostics {
    let list = match error {
        AssemblerError::Refused { messages, version } => messages
            .iter()
            .filter(|m| m.severity == assembler::Severity::Error)
            .map(|m| {
                assembler_report::at_line(m, Severity::Error, codes::ASSEMBLER_REFUSED, ptx, source)
                    .with_note(format!("ptxas {version} said this about PTX that tilec wrote: please report it"))
            })
            .collect(),
        AssemblerError::NotFound(missing) => {
            let (tool, variable) = (missing.tool, missing.tool.variable());
            let (message, note) = match missing.is_named() {
                true => (
                    format!("`{variable}` names no {tool} that can be used for {}", missing.arch),
                    format!("set it to one that can, or unset it to have a {tool} looked for"),
                ),
                false => (
                    format!("no {tool} for {} was found", missing.arch),
                    format!(
                        "set `{variable}`, or fetch a pinned version with `scripts/fetch_tools.sh`; PTX (`-o x.ptx`) needs no assembler"
                    ),
                ),
            };
            let d = Diagnostic::error(codes::NO_ASSEMBLER, Span::default(), message);
            let d = missing.looked.iter().fold(d, |d, l| d.with_note(format!("looked at {}: {}", l.place, l.reason)));
            vec![d.with_note(note)]
        }
        AssemblerError::BadArch(_)
        | AssemblerError::Io { .. }
        | AssemblerError::TimedOut { .. }
        | AssemblerError::Failed { .. } => {
            vec![Diagnostic::error(codes::ASSEMBLER_FAILED, Span::default(), error.to_string())]
        }
    };
    Diagnostics { source: source.clone(), errors: list.len(), list }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::sass;

    #[test]
    fn every_target_is_an_architecture() {
        for &target in Target::ALL {
            assert_eq!(arch(target).to_string(), target.name());
        }
    }

    #[test]
    fn complaints_lead_to_the_source_line() {
        let source = SourceFile::new("k.tile", "kernel k() {\n    copy A -> a\n}\n");
        let ptx = ".version 6.4\n.file 1 \"k.tile\"\n.visible .entry k() {\n.loc 1 2 5\nbad;\n}\n";
        let message = PtxasMessage {
            severity: assembler::Severity::Error,
            line: Some(5),
            function: None,
            caller: None,
            text: "unknown `bad`".to_owned(),
        };
        let error = AssemblerError::Refused {
            messages: vec![message],
            version: assembler::ToolVersion { major: 12, minor: 9, build: 86 },
        };
        let text = diagnostics(&error, ptx, &source).to_string();
        assert!(text.contains("k.tile:2:5") && text.contains("copy A -> a") && text.contains("`bad;`"), "{text}");
    }

    #[test]
    fn listings_show_the_source_line_once_per_group() {
        let text = ".section .text.k,\"ax\"\n//## File \"k.tile\", line 2\n/*0000*/ LDG.E R0, [R2] ;\n\
                    /*0010*/ LDG.E R1, [R2] ;\n//## File \"k.tile\", line 3\n/*0020*/ EXIT ;\n";
        let disassembly = Disassembly { text: text.to_owned(), functions: sass::parse(text) };
        let source = SourceFile::new("k.tile", "kernel\n  copy A -> a\n  }\n");
        let listing = listing_of(&disassembly, &[], &source);
        let (copies, ends) = (listing.matches("k.tile:2: copy A -> a").count(), listing.matches("k.tile:3: }").count());
        assert_eq!((copies, ends), (1, 1), "{listing}");
        assert_eq!(listing.matches(" ;").count(), 3, "{listing}");
    }
}
