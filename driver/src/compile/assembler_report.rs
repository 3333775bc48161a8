//! Messages of the assembler about a program, at source lines: spilled registers, and warnings about wgmma products and
//! registers of roles.
//!
//! Spills get their lines from the line table. Some messages of ptxas name a line. For others, the instructions that
//! they are about are candidates, and the message says that ptxas names no line.

use crate::assembler::{self, Assembled, Disassembly, PtxasMessage, tile_location};
use crate::compile::Compiled;
use crate::compile::register_lines::{Spilled, line_of, spilled};
use crate::compile::source_lines::Places;
use crate::console::render::SourceFile;
use tilec_ir::codes;
use tilec_ir::diag::{Code, Diagnostic, Severity, Span, counted};

/// Places that a message shows, of those that it is about.
const SHOWN: usize = 4;

/// Messages of the assembler about a program that it accepted, at source lines. `listing`: the disassembly with source
/// lines.
pub(super) fn messages(program: &Compiled, assembled: &Assembled, listing: Option<&Disassembly>) -> Vec<Diagnostic> {
    let complaint = |m: &PtxasMessage| {
        let severity = match m.severity {
            assembler::Severity::Error | assembler::Severity::Warning => Severity::Warning,
            assembler::Severity::Info => Severity::Remark,
        };
        let d = at_line(m, severity, codes::ASSEMBLER_WARNS, &program.ptx, &program.source);
        if m.line.is_some() {
            return d;
        }
        if let Some(entry) = &m.caller {
            return called(program, entry, d);
        }
        let function = m.function.as_deref().and_then(|f| listing?.functions.iter().find(|own| own.name == f));
        let spills = function.filter(|_| m.spills()).map_or_else(Vec::new, spilled);
        if spills.is_empty() { candidates(program, m, d) } else { at_spills(program, &spills, d) }
    };
    assembled.messages.iter().map(complaint).collect()
}

/// A message about a function that a kernel calls out of line: the kernel, and why there is such a function.
fn called(program: &Compiled, entry: &str, mut d: Diagnostic) -> Diagnostic {
    let Some(kernel) = program.kernels.iter().find(|k| k.contract.entry == entry) else { return d };
    d.span = kernel.tile.kernel.name_span;
    d.with_note(format!(
        "kernel `{}` calls this function, which is the assembler's own: it computes what the machine has no instruction for, such as divisions and roots of f64",
        kernel.tile.kernel.name
    ))
}

/// A message of ptxas, on the source line that the PTX line which it names came from.
pub(super) fn at_line(m: &PtxasMessage, severity: Severity, code: Code, ptx: &str, source: &SourceFile) -> Diagnostic {
    let place = m.line.and_then(|line| tile_location(ptx, line));
    let span = place.and_then(|at| line_of(source, at.line, at.column));
    let mut d = Diagnostic::error(code, span.unwrap_or_default(), format!("ptxas: {}", m.text));
    d.severity = severity;
    if let Some(line) = m.line {
        let text = ptx.lines().nth(usize::try_from(line).unwrap_or(usize::MAX).wrapping_sub(1)).unwrap_or("");
        d.notes.push(format!("line {line} of the PTX: `{}`", text.trim()));
    }
    d
}

/// The lines with most bytes of spills.
fn at_spills(program: &Compiled, spills: &[Spilled], mut d: Diagnostic) -> Diagnostic {
    let mut places = spills.iter().filter_map(|s| s.place(&program.source));
    if let Some((span, text)) = places.next() {
        d.span = span;
        d = d.with_place(span, text);
    }
    for (span, text) in places.by_ref().take(SHOWN - 1) {
        d = d.with_place(span, text);
    }
    let rest = places.count();
    if rest > 0 {
        d = d.with_note(format!("and {} with fewer bytes", counted(rest, "line")));
    }
    d.with_note(
        "lines are those of the assembler's line table: where it stores and loads, not who has the most registers",
    )
}

/// The instructions that a message without a line can be about: those that it names, in the function that it names.
fn candidates(program: &Compiled, m: &PtxasMessage, mut d: Diagnostic) -> Diagnostic {
    let of_function = |k: usize| m.function.as_ref().is_none_or(|f| program.kernels[k].contract.entry == *f);
    let kernels = || (0..program.kernels.len()).filter(|&k| of_function(k)).map(|k| &program.kernels[k].tile.kernel);
    d.span = kernels().next().map_or(d.span, |k| k.name_span);
    let Some(opcode) = m.instruction() else { return d };
    let text: Vec<&str> = program.ptx.lines().collect();
    let named = program.ptx_lines.iter().filter(|l| {
        let line = text[l.line as usize - 1].trim_start();
        of_function(l.function as usize) && line.strip_prefix(opcode).is_some_and(|rest| !rest.starts_with('_'))
    });
    let (mut lines, mut spans): (Vec<u32>, Vec<Span>) = (Vec::new(), Vec::new());
    for line in named {
        lines.push(line.line);
        let kernel = &program.kernels[line.function as usize].tile.kernel;
        let span = Places::new(kernel).of_statement(line.origin).span;
        if !span.is_none() && !spans.contains(&span) {
            spans.push(span);
        }
    }
    if let Some(first) = spans.first() {
        d.span = *first;
    }
    for span in spans.iter().take(SHOWN) {
        d = d.with_place(*span, format!("has `{opcode}`"));
    }
    let shown: Vec<String> = lines.iter().take(SHOWN).map(u32::to_string).collect();
    let more = if lines.len() > SHOWN { ", .." } else { "" };
    let of = m.function.as_ref().map_or("no line".to_owned(), |f| format!("no line, only the kernel `{f}`"));
    match lines.is_empty() {
        true => d,
        false => d.with_note(format!(
            "ptxas names {of}; `{opcode}` is in {} of the PTX ({}{more})",
            counted(lines.len(), "line"),
            shown.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::{ToolVersion, ptxas::parse_log};
    use crate::compile::{CompileOptions, compile};
    use tilec_ir::target::Target;

    /// Messages name a line, a function alone, or nothing; each leads to the statements that it can be about.
    #[test]
    fn messages_lead_to_statements() {
        let source = include_str!("../../../examples/gemm.tile");
        let defines = [("BM", "128"), ("BN", "128"), ("BK", "64"), ("STAGES", "3")];
        let defines = defines.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let options = CompileOptions { target: Target::Sm90a, defines, ..CompileOptions::default() };
        let program = compile(source, &options).expect("a program");
        let line = |text: &str| 1 + program.ptx.lines().position(|l| l.trim_start().starts_with(text)).expect("there");
        let log = format!(
            "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ill \
             formed pipeline stage in the function 'gemm'\n\
             ptxas info    : (C7517) wgmma.wait_group is injected in around line {} by compiler in function 'gemm'\n\
             ptxas info    : (C7507) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements.\n",
            line("wgmma.mma_async")
        );
        let (entries, messages) = parse_log(&log);
        let version = ToolVersion { major: 13, minor: 0, build: 0 };
        let assembled = Assembled { cubin: Vec::new(), entries, messages, version };
        let said = super::messages(&program, &assembled, None);
        let at = |d: &Diagnostic| program.source.text()[d.span.start as usize..d.span.end as usize].to_owned();
        let [serialised, waits, registers] = &said[..] else { panic!("{said:?}") };
        assert_eq!((at(serialised).as_str(), serialised.severity), ("acc = mma(a, b, acc)", Severity::Warning));
        let note = format!(
            "ptxas names no line, only the kernel `gemm`; `wgmma.mma_async` is in 4 lines of the PTX ({}",
            line("wgmma.mma_async")
        );
        assert!(serialised.notes[0].starts_with(&note), "{serialised:?}");
        assert_eq!((at(waits).as_str(), waits.severity), ("acc = mma(a, b, acc)", Severity::Remark));
        assert!(registers.notes[0].starts_with("ptxas names no line; `setmaxnreg` is in 2 lines"), "{registers:?}");
        assert_eq!(registers.severity, Severity::Warning);
    }
}
